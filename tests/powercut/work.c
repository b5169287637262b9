/* SPDX-License-Identifier: MIT */
/*
 * work.c - powercut-work BIN ROOM ACKS SEED [DISK COPY]: works in a room with the real command, several processes at
 * once, and shuts the file system down under them. What is not on the disk by then is lost, as in a power cut: the
 * file system writes nothing more, and its journal is replayed at the next mount.
 *
 * The cut comes right after the acknowledgement of a command that the seed picks, or at a moment that it picks.
 *
 * With POWERCUT_ALONE only the process that will cut works: no sync of another hides one that is missing. With
 * POWERCUT_WORKER it is that one (enum worker).
 *
 * With DISK and COPY, for file systems that cannot be shut down: one process works, and right after an
 * acknowledgement copies the disk, which has what the file system has written out by then and nothing else.
 */
#include "work.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHUTDOWN _IOR('X', 125, uint32_t) /* EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN are one number */
#define FLUSH_LOG 1u
#define NO_FLUSH 2u

struct shared {
	atomic_bool cut;
	unsigned cut_worker, cut_after;
	uint32_t how;
};
static struct shared *shared;
const char *room;
static const char *bin, *where, *disk, *copy; /* disk: copied instead of shut down */
static int acks_fd, room_fd;
static unsigned acked;               /* by this process */
static unsigned member, members = 1; /* of several processes that are one worker: which, of how many */
enum worker me;
static uint64_t dice_state;

unsigned
dice(unsigned sides)
{
	dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(dice_state >> 33) % sides;
}

static void
copy_disk(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)execlp("cp", "cp", "--sparse=always", disk, copy, (char *)NULL);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) < 0 || status != 0)
		_exit(3);
}

static void
cut_now(void)
{
	if (atomic_exchange(&shared->cut, true))
		return; /* by another process of this worker */
	if (disk) {
		copy_disk();
		return;
	}
	if (ioctl(room_fd, SHUTDOWN, &shared->how) < 0) {
		perror("shutdown ioctl");
		_exit(3);
	}
}

static void
say(const char *line)
{
	if (write(acks_fd, line, strlen(line)) < 0)
		_exit(3);
}

/* What is told while the file system goes down does not count: xfs answers fsync of a folder with success when the
 * shutdown has just thrown its changes away. In a real power cut nobody lives to say it. */
void
ack(const char *kind, unsigned tag, const char *id)
{
	char line[160];

	if (atomic_load(&shared->cut))
		return;
	(void)snprintf(line, sizeof(line), "ok %s %u %s\n", kind, tag, id);
	say(line);
	if (++acked == shared->cut_after && me == shared->cut_worker)
		cut_now();
}

void
say_try(const char *kind, unsigned tag)
{
	char line[80];

	(void)snprintf(line, sizeof(line), "try %s %u\n", kind, tag);
	say(line);
}

/* ---- Running the command ---- */

char out[1 << 18];
int input_fd = -1;

static void
read_all(int fd)
{
	size_t n = 0;

	for (;;) {
		ssize_t got = read(fd, out + n, sizeof(out) - 1 - n);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	out[n] = '\0';
}

static void
become(const char *const *argv, int out_fd)
{
	const char *full[32] = { bin };
	size_t n = 1;
	int null = open("/dev/null", O_RDWR);

	if (strcmp(argv[0], "init") != 0) {
		full[n++] = "--room";
		full[n++] = where ? where : room;
	}
	while (n < 31 && *argv)
		full[n++] = *argv++;
	(void)dup2(input_fd >= 0 ? input_fd : null, 0);
	(void)dup2(out_fd, 1);
	if (!getenv("POWERCUT_DEBUG"))
		(void)dup2(null, 2);
	(void)execv(bin, (char *const *)(uintptr_t)full);
	_exit(127);
}

/* Exit code; what it printed is in `out`. */
int
run_command(const char *const *argv)
{
	int fds[2], status = 0;

	if (pipe2(fds, O_CLOEXEC) < 0)
		_exit(3);
	pid_t pid = fork();
	if (pid == 0)
		become(argv, fds[1]);
	(void)close(fds[1]);
	read_all(fds[0]);
	(void)close(fds[0]);
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
int
run_in(const char *spec, const char *const *argv)
{
	where = spec;
	int code = run_command(argv);

	where = NULL;
	return code;
}

bool
worked(int code, const char *what)
{
	char line[120];

	if (code == 0)
		return true;
	if (!atomic_load(&shared->cut)) {
		(void)snprintf(line, sizeof(line), "trouble %s exited with %d\n", what, code);
		say(line);
	}
	return false;
}

void
first_word(char ret[40])
{
	size_t n = strcspn(out, " \n");

	(void)snprintf(ret, 40, "%.*s", (int)(n < 39 ? n : 39), out);
}

bool
next_tag(const char **at, unsigned *ret_tag)
{
	char subject[40];

	while (next_value(at, "subject", subject))
		if (sscanf(subject, "tag %6u", ret_tag) == 1)
			return true;
	return false;
}

/* The value of "key":"..." behind *at, which moves on. */
bool
next_value(const char **at, const char *key, char ret[40])
{
	char pattern[32];

	(void)snprintf(pattern, sizeof(pattern), "\"%s\":\"", key);
	const char *found = strstr(*at, pattern);
	if (!found)
		return false;
	found += strlen(pattern);
	(void)snprintf(ret, 40, "%.*s", (int)strcspn(found, "\""), found);
	*at = found;
	return true;
}

/* ---- What the workers do; false: the disk is gone ---- */

bool
send_one(const char *kind, unsigned tag, const char *key, char ret_id[40])
{
	static char body[BODY_MAX];
	const char *argv[20] = { "--as", "alice", "send" };
	size_t n = 3;

	(void)body_of(tag, body);
	if (me == W_QUEUE || me == W_CHANNEL)
		argv[n++] = me == W_QUEUE ? "queue:work" : "channel:news";
	else
		for (const char *const *to = recipients_of[me]; *to; to++)
			argv[n++] = *to;
	if (key) {
		argv[n++] = "--key";
		argv[n++] = key;
	}
	argv[n++] = "-m";
	argv[n] = body;
	say_try(kind, tag);
	if (!worked(run_command(argv), kind))
		return false;
	first_word(ret_id);
	ack(kind, tag, ret_id);
	return true;
}

static bool
do_send(unsigned tag)
{
	char id[40];

	return send_one(me == W_FAN || me == W_CHANNEL ? "fan" : "send", tag, NULL, id);
}

/* Three send to one mailbox, and a fourth takes mail out of it that may not be synced yet. */
static bool
do_crowd(unsigned tag)
{
	const char *at = out;

	if (members == 1 || member < members - 1)
		return do_send(tag);
	if (!worked(RUN("--as", "bob", "drain", "--limit", "10", "--budget", "0", "--json"), "drain"))
		return false;
	while (next_tag(&at, &tag))
		ack("drain", tag, "-");
	return true;
}

static bool
do_key(unsigned tag)
{
	char id[40], key[20];

	(void)snprintf(key, sizeof(key), "key-%u", tag);
	return send_one("key", tag, key, id);
}

static bool
do_work(unsigned tag)
{
	char id[40], token[40];
	const char *at = out;

	if (!send_one("send", tag, NULL, id) || !worked(RUN("--as", "worker", "recv", "--json"), "recv") ||
	    !next_value(&at, "token", token))
		return false;
	ack("recv", tag, id);
	if (dice(4) == 0) {
		if (!worked(RUN("--as", "worker", "release", token), "release"))
			return false;
		ack("release", tag, id);
		if (!worked(RUN("--as", "worker", "recv", "--json"), "recv"))
			return false;
		at = out;
		if (!next_value(&at, "token", token))
			return false;
	}
	if (!worked(RUN("--as", "worker", "done", token), "done"))
		return false;
	ack("done", tag, id);
	return true;
}

/* One to three messages, then a drain: all that it showed is read and archived. */
static bool
do_drain(unsigned tag)
{
	static unsigned tags[3];
	static char ids[3][40];
	static unsigned n;

	if (!send_one("send", tag, NULL, ids[n]))
		return false;
	tags[n++] = tag;
	if (n < 3 && dice(3) > 0)
		return true;
	if (!worked(RUN("--as", "drainer", "drain", "--json"), "drain"))
		return false;
	for (unsigned i = 0; i < n; i++)
		if (strstr(out, ids[i]))
			ack("drain", tags[i], ids[i]);
	n = 0;
	return true;
}

static bool
do_state(unsigned tag)
{
	char id[40];

	if (!send_one("send", tag, NULL, id) || !worked(RUN("--as", "marker", "read", id, "--json"), "read"))
		return false;
	ack("read", tag, id);
	if (dice(2) == 0)
		return true;
	if (!worked(RUN("--as", "marker", "archive", id), "archive"))
		return false;
	ack("archive", tag, id);
	return true;
}

static bool
do_names(unsigned tag)
{
	char name[20];

	(void)snprintf(name, sizeof(name), "n%u", tag);
	if (!worked(RUN("register", name), "register"))
		return false;
	ack("register", tag, name);
	if (dice(2) == 0)
		return true;
	if (!worked(RUN("takeover", name), "takeover"))
		return false;
	ack("takeover", tag, name);
	return true;
}

/* A cache promises nothing but to be right: what it says after the cut is compared by the checker. */
static bool
do_index(unsigned tag)
{
	static const enum worker asked[] = { W_SEND, W_FAN, W_STATE, W_DRAIN };

	if (dice(3) == 0) {
		(void)RUN("--as", recipients_of[asked[dice(4)]][0], "search", "line", "--json", "--limit", "3");
		return true;
	}
	int code = RUN("index");

	if (code == 4) /* this command has no SQLite */
		return false;
	if (!worked(code, "index"))
		return false;
	ack("index", tag, "-");
	return true;
}

static bool
do_refused(unsigned tag)
{
	static char body[BODY_MAX];
	char line[80];

	(void)body_of(tag, body);
	say_try("refused", tag);
	int code = RUN("--as", "alice", "send", "bob", "nobody", "-m", body);
	if (code != 4 && code != 5)
		return worked(code == 0 ? 99 : code, "a send to nobody");
	(void)snprintf(line, sizeof(line), "no refused %u\n", tag);
	say(line);
	(void)usleep(3000);
	return true;
}

static bool (*const jobs[WORKERS])(unsigned tag) = {
	[W_SEND] = do_crowd,
	[W_FAN] = do_send,
	[W_KEY] = do_key,
	[W_WORK] = do_work,
	[W_DRAIN] = do_drain,
	[W_STATE] = do_state,
	[W_NAMES] = do_names,
	[W_QUEUE] = do_queue,
	[W_CHANNEL] = do_send,
	[W_TEAM] = do_elsewhere,
	[W_CHIPSET] = do_elsewhere,
	[W_HANDOFF] = do_elsewhere,
	[W_WORKSPACE] = do_elsewhere,
	[W_CARRY] = do_carry,
	[W_BATCH] = do_batch,
	[W_INDEX] = do_index,
	[W_REFUSED] = do_refused,
};

/* How many processes one worker is, when it does not work alone. */
static const unsigned crew[WORKERS] = { [W_SEND] = 4, [W_FAN] = 2, [W_KEY] = 2, [W_QUEUE] = 3, [W_BATCH] = 2 };

/* ---- The day ---- */

static void
set_up(void)
{
	static const char *const agents[] = { "alice", "bob", "f1", "f2", "f3", "f4", "f5", "keyed", "worker",
		"drainer", "marker", "c1", "c2", "batch1", "batch2" };
	const char *sync = getenv("POWERCUT_SYNC");
	char parent[512], state[520];

	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(room, '/') - room), room);
	(void)snprintf(state, sizeof(state), "%s/own", parent);
	(void)setenv("XDG_STATE_HOME", state, 1);
	if (mkdir(parent, 0700) < 0 || RUN("init", parent, "--name", "town", "--sync", sync ? sync : "full") != 0) {
		(void)fprintf(stderr, "cannot make a room in %s\n", parent);
		exit(3);
	}
	if (sync && (RUN("where", "--json") != 0 || !strstr(out, "\"sync\":\"") ||
			strncmp(strstr(out, "\"sync\":\"") + 8, sync, strlen(sync)) != 0)) {
		(void)fprintf(stderr, "here the room is not synced in the way '%s'\n", sync);
		exit(3);
	}
	for (size_t i = 0; i < sizeof(agents) / sizeof(agents[0]); i++)
		if (RUN("register", agents[i]) != 0) {
			(void)fprintf(stderr, "cannot register %s\n", agents[i]);
			exit(3);
		}
	if (RUN("--as", "alice", "queue", "create", "work") != 0 ||
	    RUN("--as", "alice", "channel", "create", "news") != 0 ||
	    RUN("--as", "c1", "channel", "subscribe", "news") != 0 ||
	    RUN("--as", "c2", "channel", "subscribe", "news") != 0 || !set_up_elsewhere(parent)) {
		(void)fprintf(stderr, "cannot make the queue, the channel or the other rooms\n");
		exit(3);
	}
	int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)syncfs(fd); /* what those other systems would have made long ago */
	(void)close(fd);
}

static void
begin_worker(enum worker which, unsigned processes, uint64_t seed)
{
	me = which;
	members = processes;
	for (member = 0; member < members; member++) {
		if (fork() != 0)
			continue;
		dice_state = seed * 31 + which + WORKERS * member;
		for (unsigned i = member; i < TAGS_A_WORKER && !atomic_load(&shared->cut); i += members)
			if (!jobs[me](me * TAGS_A_WORKER + i))
				break;
		_exit(0);
	}
}

static void
choose_cut(void)
{
	const char *asked = getenv("POWERCUT_WORKER");

	shared->cut_worker = dice(W_REFUSED);
	if (asked && asked[0])
		shared->cut_worker = (unsigned)atoi(asked) % W_REFUSED;
	shared->cut_after = dice(3) > 0 ? 1 + dice(10) : 0; /* 0: by time */
	shared->how = dice(4) > 0 ? NO_FLUSH : FLUSH_LOG;
	if (disk && shared->cut_after == 0)
		shared->cut_after = 11;
}

int
main(int argc, char **argv)
{
	int status = 0, bad = 0;

	if (argc != 5 && argc != 7) {
		(void)fprintf(stderr, "usage: powercut-work BIN ROOM ACKS SEED [DISK COPY]\n");
		return 2;
	}
	disk = argc == 7 ? argv[5] : NULL;
	copy = argc == 7 ? argv[6] : NULL;
	bin = argv[1];
	room = argv[2];
	dice_state = strtoull(argv[4], NULL, 10);
	(void)dice(2);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	acks_fd = open(argv[3], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (shared == MAP_FAILED || acks_fd < 0)
		return 3;
	set_up();
	room_fd = open(room, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	choose_cut();
	bool alone = disk || getenv("POWERCUT_ALONE");

	for (unsigned w = 0; w < WORKERS; w++)
		if (w == shared->cut_worker || (!alone && dice(2) == 0))
			begin_worker(w, !alone && crew[w] ? crew[w] : 1, dice_state);
	/* By time, or when the chosen worker did not get that far. */
	unsigned patience_ms = disk ? 60000 : shared->cut_after ? 700 : 5 + dice(120);
	for (unsigned ms = 0; ms < patience_ms && !atomic_load(&shared->cut); ms++)
		(void)usleep(1000);
	if (!atomic_load(&shared->cut))
		cut_now();
	while (wait(&status) > 0 || errno == EINTR)
		bad |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	return bad ? 3 : 0;
}
