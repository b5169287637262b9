/* SPDX-License-Identifier: MIT */
/*
 * check.c - powercut-check BIN ROOM ACKS: looks at a room after a power cut. Knows only the promises:
 *
 *	what was accepted is there, whole, once, for every recipient;
 *	what was done, drained, read or archived is not unread again;
 *	a fan-out that was not acknowledged reached all or nobody;
 *	a send with a key that was not acknowledged can be repeated, and is there once;
 *	what was refused is nowhere; no file is torn; a name that was given is taken;
 *	what a search finds with the index, however that came out of it, is what it finds without.
 *
 * Prints one line of figures; exits with 1 when a promise is broken.
 */
#include "lib/settle.h"
#include "check.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct op ops[WORKERS * TAGS_A_WORKER];
struct sums sum;
const char *room;
static const char *bin;

void
complain(unsigned *counter, const char *what, unsigned tag)
{
	++*counter;
	(void)printf("# %s: tag %u, id %s\n", what, tag, tag < WORKERS * TAGS_A_WORKER ? ops[tag].id : "");
}

/* ---- What was told ---- */

static void
note_ok(const char *kind, unsigned tag, const char *id)
{
	struct op *op = &ops[tag];

	sum.acknowledged++;
	if (id[0] != '-')
		(void)snprintf(op->id, sizeof(op->id), "%s", id);
	op->done |= strcmp(kind, "done") == 0;
	op->drained |= strcmp(kind, "drain") == 0;
	/* Another process may take mail before its sender has the answer; what was done or drained is durable, too. */
	op->accepted |= op->done || op->drained || strcmp(kind, "send") == 0 || strcmp(kind, "fan") == 0 ||
			strcmp(kind, "key") == 0;
	op->read |= strcmp(kind, "read") == 0;
	op->archived |= strcmp(kind, "archive") == 0;
}

static void
check_name(const char *kind, unsigned tag, const char *name)
{
	char path[512];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/agents/%s/agent", room, name);
	if (stat(path, &st) < 0 || st.st_size == 0)
		complain(&sum.names, "a registered name is gone", tag);
	(void)snprintf(path, sizeof(path), "%s/agents/%s/lives/%d", room, name, strcmp(kind, "takeover") == 0 ? 2 : 1);
	if (stat(path, &st) < 0 || st.st_size == 0)
		complain(&sum.names, "a life is gone", tag);
}

static bool
read_acks(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[200], kind[20], id[40];
	unsigned tag;

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "ok %19s %u %39s", kind, &tag, id) == 3 && tag < WORKERS * TAGS_A_WORKER) {
			note_ok(kind, tag, id);
			if (tag / TAGS_A_WORKER == W_NAMES)
				check_name(kind, tag, id);
		} else if (sscanf(line, "try %19s %u", kind, &tag) == 2 && tag < WORKERS * TAGS_A_WORKER) {
			ops[tag].tried = true;
			ops[tag].keyed = strcmp(kind, "key") == 0 || strcmp(kind, "batchkey") == 0;
		} else if (sscanf(line, "no refused %u", &tag) == 1 && tag < WORKERS * TAGS_A_WORKER) {
			ops[tag].refused = true;
		} else {
			sum.trouble++;
			(void)printf("# %s", line);
		}
	}
	(void)fclose(f);
	return true;
}

/* ---- The next commands, which complete what was cut off ---- */

/* Exit code; what it printed, as much as has room, is in ret_out (NULL: thrown away). */
int
run_there(const char *spec, const char *const *argv, char *ret_out, size_t size)
{
	const char *full[16] = { bin, "--room", spec };
	int status = 0, fds[2];
	size_t n = 0;

	for (size_t i = 0; i < 12 && argv[i]; i++)
		full[3 + i] = argv[i];
	if (pipe2(fds, O_CLOEXEC) < 0)
		exit(2);
	pid_t pid = fork();
	if (pid == 0) {
		(void)dup2(open("/dev/null", O_RDWR), 0);
		(void)dup2(fds[1], 1);
		(void)execv(bin, (char *const *)(uintptr_t)full);
		_exit(127);
	}
	(void)close(fds[1]);
	for (ssize_t got = 1; got > 0;) {
		char ignored[4096];
		bool keep = ret_out && n + 1 < size;

		got = keep ? read(fds[0], ret_out + n, size - 1 - n) : read(fds[0], ignored, sizeof(ignored));
		n += keep && got > 0 ? (size_t)got : 0;
	}
	if (ret_out)
		ret_out[n] = '\0';
	(void)close(fds[0]);
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
#define RUN(...) run_there(room, (const char *const[]){ __VA_ARGS__, NULL }, NULL, 0)

static void
go_on(void)
{
	static char body[BODY_MAX];

	for (unsigned w = 0; w < WORKERS; w++)
		for (const char *const *who = recipients_of[w]; *who && w != W_REFUSED; who++)
			if (RUN("--as", *who, "inbox", "--json") != 0)
				complain(&sum.trouble, "inbox failed after the cut", w * TAGS_A_WORKER);
	for (unsigned tag = 0; tag < WORKERS * TAGS_A_WORKER; tag++) {
		char key[20];

		if (!ops[tag].keyed || ops[tag].accepted)
			continue;
		const char *to = tag / TAGS_A_WORKER == W_BATCH ? batch_recipient(tag) : "keyed";
		(void)snprintf(key, sizeof(key), "key-%u", tag);
		(void)body_of(tag, body);
		if (RUN("--as", "alice", "send", to, "--key", key, "-m", body) != 0)
			complain(&sum.trouble, "a keyed send cannot be repeated", tag);
		ops[tag].accepted = true;
	}
	if (RUN("carry") != 0)
		complain(&sum.trouble, "carry failed after the cut", W_CARRY * TAGS_A_WORKER);
}

/* ---- What is there ---- */

static char *
read_file(const char *path, size_t *ret_len)
{
	static char bytes[BODY_MAX + 8192];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, bytes, sizeof(bytes) - 1) : -1;

	if (fd >= 0)
		(void)close(fd);
	*ret_len = n < 0 ? 0 : (size_t)n;
	bytes[*ret_len] = '\0';
	return bytes;
}

/* The whole text, byte for byte. */
static bool
is_whole(const char *path, unsigned *ret_tag)
{
	static char body[BODY_MAX];
	size_t len;
	const char *bytes = read_file(path, &len);
	const char *text = strstr(bytes, "\n\n");

	if (!text || sscanf(text + 2, "tag %u", ret_tag) != 1 || *ret_tag >= WORKERS * TAGS_A_WORKER)
		return false;
	size_t want = body_of(*ret_tag, body);
	size_t got = len - (size_t)(text + 2 - bytes);

	return (got == want || got + 1 == want) && memcmp(text + 2, body, got < want ? got : want) == 0;
}

static void
take_file(const char *agent, const char *path, const char *name, bool in_archive)
{
	unsigned tag = 0;

	if (!is_whole(path, &tag)) {
		sum.torn++;
		(void)printf("# torn: %s\n", path);
		return;
	}
	struct op *op = &ops[tag];
	const char *const *to = recipients_of[tag / TAGS_A_WORKER];
	const char *flags = strstr(name, ":2,");

	if (op->refused || tag / TAGS_A_WORKER == W_REFUSED ||
	    (tag / TAGS_A_WORKER == W_BATCH && strcmp(agent, batch_recipient(tag)) != 0))
		complain(&sum.visible, "refused, and there", tag);
	for (unsigned i = 0; i < RECIPIENTS && to[i]; i++) {
		if (strcmp(to[i], agent) != 0)
			continue;
		op->copies[tag / TAGS_A_WORKER == W_BATCH ? 0 : i]++;
		op->seen = flags && strchr(flags, 'S');
		op->finished = flags && strchr(flags, 'a');
		op->in_archive = in_archive;
	}
}

static void
take_folder(const char *agent, const char *folder, bool in_archive)
{
	char path[1024];
	DIR *dir = opendir(folder);
	struct dirent *e;

	while (dir && (e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.' || !strstr(e->d_name, ".mr"))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		take_file(agent, path, e->d_name, in_archive);
	}
	if (dir)
		(void)closedir(dir);
}

/* Folders within a folder: held/<life>, or the cur of .Archive.<month>. */
static void
take_subfolders(const char *agent, const char *where, const char *begins, const char *then, bool in_archive)
{
	char path[1024];
	DIR *dir = opendir(where);
	struct dirent *e;

	while (dir && (e = readdir(dir)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    strncmp(e->d_name, begins, strlen(begins)) != 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s%s", where, e->d_name, then);
		take_folder(agent, path, in_archive);
	}
	if (dir)
		(void)closedir(dir);
}

static void
take_mailbox(const char *agent)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/agents/%s/new", room, agent);
	take_folder(agent, path, false);
	(void)snprintf(path, sizeof(path), "%s/agents/%s/cur", room, agent);
	take_folder(agent, path, false);
	(void)snprintf(path, sizeof(path), "%s/agents/%s/held", room, agent);
	take_subfolders(agent, path, "", "", false);
	(void)snprintf(path, sizeof(path), "%s/agents/%s", room, agent);
	take_subfolders(agent, path, ".Archive.", "/new", true);
	take_subfolders(agent, path, ".Archive.", "/cur", true);
}

/* ---- The promises ---- */

/* A channel is a recipient too; work_elsewhere.c writes to one at a time. */
static unsigned
recipients_n(unsigned worker)
{
	unsigned n = 0;

	while (n < RECIPIENTS && recipients_of[worker][n])
		n++;
	return worker == W_CHANNEL ? n + 1 : n == 0 || worker == W_BATCH ? 1 : n;
}

static void
check_op(unsigned tag)
{
	const struct op *op = &ops[tag];
	unsigned has = 0, n = 0, want = recipients_n(tag / TAGS_A_WORKER);

	for (; n < want; n++) {
		has += op->copies[n] > 0;
		if (op->copies[n] > 1)
			complain(&sum.twice, "there twice", tag);
		if (op->accepted && op->copies[n] == 0)
			complain(&sum.lost, "accepted, and lost", tag);
	}
	if (!op->accepted && has > 0 && has < n)
		complain(&sum.half, "a fan-out reached some and not all", tag);
	if (has == 0)
		return;
	if (op->done && !(op->in_archive && op->seen && op->finished))
		complain(&sum.undone, "done, and not any more", tag);
	if ((op->drained || op->archived) && !(op->in_archive && op->seen))
		complain(&sum.undone, "drained or archived, and not any more", tag);
	if (op->read && !op->seen)
		complain(&sum.undone, "read, and unread again", tag);
}

/* As it is, each search bringing it up to date for its mailbox, and after all of it was. */
static void
check_index(void)
{
	static char with[1 << 20], without[1 << 20];

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned w = 0; w < WORKERS; w++)
			for (const char *const *who = recipients_of[w]; *who && w != W_REFUSED; who++) {
				const char *const ask[] = { "--as", *who, "search", "line", "--json", NULL },
						  *const look[] = { "--as", *who, "search", "line", "--json",
							  "--no-index", NULL };
				int a = run_there(room, ask, with, sizeof(with)),
				    b = run_there(room, look, without, sizeof(without));

				if (a != b || strcmp(with, without) != 0)
					complain(&sum.index, "a search finds something else with the index",
					    w * TAGS_A_WORKER);
			}
		int code = round == 0 ? RUN("index") : 0;

		if (code != 0 && code != 4)
			complain(&sum.index, "the index cannot be brought up to date", 0);
	}
}

/* A copy of a btrfs disk is another device. */
static void
settle_rooms(void)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	char path[400];

	(void)snprintf(path, sizeof(path), "%s/mailroom", config ? config : "/nonexistent");
	settle_configuration(path);
}

int
main(int argc, char **argv)
{
	if (argc != 4) {
		(void)fprintf(stderr, "usage: powercut-check BIN ROOM ACKS\n");
		return 2;
	}
	bin = argv[1];
	room = argv[2];
	set_state_folder();
	settle_rooms();
	if (!read_acks(argv[3]))
		return 2;
	go_on();
	for (unsigned w = 0; w < WORKERS; w++)
		for (const char *const *who = recipients_of[w]; *who && w != W_REFUSED; who++)
			take_mailbox(*who);
	take_elsewhere();
	check_index();
	for (unsigned tag = 0; tag < WORKERS * TAGS_A_WORKER; tag++)
		if (ops[tag].tried && !ops[tag].refused && tag / TAGS_A_WORKER != W_REFUSED &&
		    tag / TAGS_A_WORKER != W_NAMES)
			check_op(tag);
	unsigned broken =
	    sum.lost + sum.torn + sum.twice + sum.undone + sum.half + sum.visible + sum.names + sum.index + sum.trouble;

	(void)printf(
	    "acknowledged %u lost %u torn %u twice %u undone %u half %u visible %u names %u index %u trouble %u\n",
	    sum.acknowledged, sum.lost, sum.torn, sum.twice, sum.undone, sum.half, sum.visible, sum.names, sum.index,
	    sum.trouble);
	return broken > 0;
}
