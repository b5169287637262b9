/* SPDX-License-Identifier: MIT */
/*
 * crash.c - the kill campaign on the user's own disk. Each worker is a process that runs our commands one after the
 * other, kills three in four of them at a random moment of their usual time, and notes what they answered in the
 * journal.
 */
#include "base/file.h"
#include "base/process.h"
#include "base/sys.h"
#include "cli/selftest/selftest.h"
#include "cli/view.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGS_MAX 24
#define HANGS_US ((int64_t)120 * 1000000) /* no command takes that long: something is wrong */

/* ---- Our own program as a child that may be killed at any moment ---- */

struct child {
	int exit_code; /* -1: killed */
	struct buf out;
	int64_t took_us;
};

static void
child_done(struct child *c)
{
	buf_done(&c->out);
}

static int64_t
now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Until it closes its end; killed when its time is up. A killed child closes it, too. */
static bool
gather(int fd, pid_t pid, int64_t end_us, struct buf *out)
{
	char chunk[8192];
	bool killed = false;

	for (;;) {
		int64_t left = end_us - now_us();
		struct timespec wait = { .tv_sec = left / 1000000, .tv_nsec = (left % 1000000) * 1000 };
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (!killed && left <= 0) {
			(void)kill(pid, SIGKILL);
			killed = true;
		}
		int n = ppoll(&p, 1, killed ? NULL : &wait, NULL);

		if (n == 0 || (n < 0 && errno == EINTR))
			continue;
		ssize_t got = read(fd, chunk, sizeof chunk);

		if (got <= 0)
			return killed;
		buf_add(out, (struct mr_str){ chunk, (size_t)got });
	}
}

/* Runs this program with these arguments, NULL-terminated, and gathers what it prints. kill_us < 0: it is not killed.
 */
static enum mr_rc
child_run(const char *const *args, int64_t kill_us, struct child *ret, struct mr_error *err)
{
	int64_t begin_us = now_us();
	int ends[2], status = 0;

	*ret = (struct child){ 0 };
	if (pipe2(ends, O_CLOEXEC) < 0)
		return mr_fail_errno(err, "cannot make a pipe");
	pid_t pid = fork();

	if (pid == 0) {
		char *argv[ARGS_MAX + 2] = { strdup("mailroom") };
		int nothing = sys_open(AT_FDCWD, "/dev/null", O_RDWR, 0);

		for (size_t i = 0; args[i] && i < ARGS_MAX; i++)
			argv[i + 1] = strdup(args[i]);
		if (nothing >= 0 && dup2(nothing, 0) >= 0 && dup2(ends[1], 1) >= 0 && dup2(nothing, 2) >= 0)
			(void)execv("/proc/self/exe", argv);
		_exit(127);
	}
	(void)close(ends[1]);
	if (pid < 0) {
		(void)close(ends[0]);
		return mr_fail_errno(err, "cannot start a process");
	}
	bool killed = gather(ends[0], pid, begin_us + (kill_us < 0 ? HANGS_US : kill_us), &ret->out);

	(void)close(ends[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	ret->took_us = now_us() - begin_us;
	/* It may have ended before the signal reached it: then its answer counts. */
	ret->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	if (killed && kill_us < 0)
		return mr_fail(err, MR_BUSY, "'mailroom %s' does not end", args[0]);
	if (!killed && ret->exit_code == -1)
		return mr_fail(err, MR_CORRUPT, "'mailroom %s' died of signal %d", args[0], WTERMSIG(status));
	if (ret->exit_code == 127)
		return mr_fail(err, MR_NOTFOUND, "cannot start this program again: '/proc/self/exe' is not there");
	return buf_ok(&ret->out) ? MR_OK : mr_nomem(err);
}

/* ---- The room ---- */

static enum mr_rc
must_run(const char *const *args, struct mr_error *err)
{
	mr_auto(child_done) struct child c = { 0 };

	TRY(child_run(args, -1, &c, err));
	if (c.exit_code != 0)
		return mr_fail(err, MR_IO, "'mailroom %s %s' exits with %d", args[0], args[1], c.exit_code);
	return MR_OK;
}

static enum mr_rc
make_room(const struct scratch *s, char **ret_path, struct mr_error *err)
{
	static const char *const folders[] = { ".git/objects", ".git/refs", ".git/info" };
	static const char *const agents[] = { "s", "r0", "r1", "r2", "w0", "w1" };
	const char *const queue[] = { "queue", "create", "work", "--attempts", "0", "--as", "s", NULL };
#define NAME(variable, harness) variable,
	static const char *const others[] = { "MAILROOM_AGENT", "MAILROOM_FAULT", "MAILROOM_DEBUG",
		SESSION_VARIABLES(NAME) "CLAUDE_PID", "CLAUDE_CODE_AGENT_NAME", "AGENT_MAILBOX_ID", "GT_ROLE",
		"BD_ACTOR", "TMUX" };
#undef NAME
	mr_auto(buf_done) struct buf state = BUF_INIT;
	mr_auto(sys_close_fd) int git = -1;

	/* A room excludes itself in the repository around it: that is one of its own, which goes with it. */
	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
		mr_auto(sys_close_fd) int fd = -1;

		TRY(dir_make(s->fd, folders[i], 0700, false, &fd, err));
	}
	TRY(dir_open(s->fd, ".git", &git, err));
	TRY(file_publish(git, git, "HEAD", STR("ref: refs/heads/main\n"), 0600, PUBLISH_NOSYNC, err));
	TRY(mr_room_init(s->path, s->path, &(struct mr_init_options){ .name = "selftest" }, ret_path, err));
	/* The commands see this room and no session. */
	buf_addf(&state, "%s/state", s->path);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		(void)unsetenv(others[i]);
	if (!buf_ok(&state) || setenv("MAILROOM", *ret_path, 1) < 0 || setenv("XDG_STATE_HOME", buf_z(&state), 1) < 0)
		return mr_nomem(err);
	for (size_t i = 0; i < sizeof agents / sizeof agents[0]; i++) {
		const char *const args[] = { "register", agents[i], NULL };

		TRY(must_run(args, err));
	}
	return must_run(queue, err);
}

/* ---- A worker ---- */

enum { OP_SEND, OP_KEY, OP_FAN, OP_QUEUE, OP_DRAIN, OP_RECV, OP_DONE, OPS };

struct worker {
	struct journal *j;
	uint64_t random;
	unsigned number;
	int64_t usual_us[OPS]; /* how long it takes when it is not killed; 0: not known yet */
};

void
body_of(const char *tag, struct buf *out)
{
	unsigned long n = strtoul(strchr(tag, '-') ? strchr(tag, '-') + 1 : "0", NULL, 10);

	for (unsigned long i = 0; i < 1 + n * 7 % 300; i++)
		buf_addf(out, "%s line %lu\n", tag, i);
}

/* The same seed, the same choices. */
static unsigned
choose(struct worker *w, uint64_t n)
{
	uint64_t z = w->random += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return (unsigned)((z ^ (z >> 31)) % n);
}

/* One in four is left alone, and so is the first of each kind. */
static enum mr_rc
run(struct worker *w, int op, bool may_kill, const char *const *args, struct child *ret, struct mr_error *err)
{
	int64_t *usual_us = &w->usual_us[op];
	bool spared = !may_kill || *usual_us == 0 || choose(w, 4) == 0;

	w->j->commands[w->number]++;
	TRY(child_run(args, spared ? -1 : (int64_t)choose(w, (uint64_t)(*usual_us + 1)), ret, err));
	w->j->killed[w->number] += ret->exit_code == -1;
	if (ret->exit_code != -1) /* a slow moment does not make all later kills come too late */
		*usual_us = *usual_us ? (*usual_us * 7 + ret->took_us) / 8 : ret->took_us;
	return MR_OK;
}

static enum mr_rc
send_one(struct worker *w, struct mr_error *err)
{
	static const int ops[] = { OP_SEND, OP_SEND, OP_KEY, OP_FAN, OP_FAN, OP_QUEUE, OP_QUEUE };
	static const char kinds[] = { [OP_SEND] = 'p', [OP_KEY] = 'k', [OP_FAN] = 'f', [OP_QUEUE] = 'q' };
	mr_auto(buf_done) struct buf body = BUF_INIT;
	int op = ops[choose(w, sizeof ops / sizeof ops[0])];
	unsigned reader = choose(w, READERS);
	char tag[TAG_LEN], to[] = { 'r', (char)('0' + reader), '\0' };
	size_t n = w->j->n[w->number];
	struct sent *s = &w->j->all[w->number][n];

	if (n == SENDS_MAX)
		return MR_OK;
	*s = (struct sent){ .kind = kinds[op], .reader = (unsigned char)reader };
	w->j->n[w->number]++;
	(void)snprintf(tag, sizeof tag, "t%u-%zu", w->number, n);
	body_of(tag, &body);
	TRY(mr_got(buf_ok(&body), err));
	const char *const one[] = { "send", to, "-s", tag, "-m", buf_z(&body), "--as", "s", NULL };
	const char *const keyed[] = { "send", to, "--key", tag, "-s", tag, "-m", buf_z(&body), "--as", "s", NULL };
	const char *const all[] = { "send", "r0", "r1", "r2", "-s", tag, "-m", buf_z(&body), "--as", "s", NULL };
	const char *const queue[] = { "send", "queue:work", "-s", tag, "-m", buf_z(&body), "--as", "s", NULL };
	const char *const *const args[] = { [OP_SEND] = one, [OP_KEY] = keyed, [OP_FAN] = all, [OP_QUEUE] = queue };

	do { /* a send with a key is repeated until there is an answer */
		mr_auto(child_done) struct child c = { 0 };

		TRY(run(w, op, true, args[op], &c, err));
		s->answer = c.exit_code == 0 ? 'y' : c.exit_code == -1 || c.exit_code == EXIT_DOUBT ? 'm' : 'n';
	} while (op == OP_KEY && s->answer == 'm');
	return MR_OK;
}

/* The string of that key in a line of JSON, cut to its buffer; "" where it is missing. */
static void
take_string(struct mr_str line, const char *key, char *ret, size_t size)
{
	const char *at = memmem(line.ptr, line.len, key, strlen(key));

	at = at ? at + strlen(key) : "";
	(void)snprintf(ret, size, "%.*s", (int)strcspn(at, "\""), at);
}

/* The next whole line of what was printed: only that was shown, and what was cut off must come again. */
static bool
next_line(const char **at, struct mr_str *ret)
{
	const char *end = strchr(*at, '\n');

	if (!end)
		return false;
	*ret = (struct mr_str){ *at, (size_t)(end - *at) };
	*at = end + 1;
	return true;
}

/* The send of what was shown or handed out; NULL: there was none. */
static struct sent *
shown_as(struct journal *j, const char *tag)
{
	struct sent *s = journal_find(j, tag);

	if (!s) {
		j->strays++;
		text_join(j->stray, sizeof j->stray, tag, NULL);
	}
	return s;
}

static enum mr_rc
read_some(struct worker *w, struct mr_error *err)
{
	mr_auto(child_done) struct child c = { 0 };
	unsigned reader = choose(w, READERS);
	char name[] = { 'r', (char)('0' + reader), '\0' }, tag[TAG_LEN];
	const char *const args[] = { "drain", "--json", "--budget", "0", "--limit", "5", "--as", name, NULL };
	struct mr_str line;

	TRY(run(w, OP_DRAIN, true, args, &c, err));
	for (const char *at = buf_z(&c.out); next_line(&at, &line);) {
		take_string(line, "\"subject\":\"", tag, sizeof tag);
		struct sent *s = shown_as(w->j, tag);

		w->j->shown++;
		if (s)
			s->shown[reader] = true;
	}
	return MR_OK;
}

/* What a killed worker held comes back when its name is taken over. */
static enum mr_rc
take_over(struct worker *w, const char *name, struct mr_error *err)
{
	mr_auto(child_done) struct child c = { 0 };
	const char *const args[] = { "takeover", name, NULL };

	w->j->commands[w->number]++;
	return child_run(args, -1, &c, err);
}

/* *ret_empty: there was nothing to do. */
static enum mr_rc
work_one(struct worker *w, bool may_kill, bool *ret_empty, struct mr_error *err)
{
	mr_auto(child_done) struct child got = { 0 }, done = { 0 };
	char name[] = { 'w', (char)('0' + choose(w, HANDS)), '\0' }, tag[TAG_LEN], token[MR_TOKEN_LEN + 1];
	const char *const take[] = { "recv", "queue:work", "--json", "--as", name, NULL };
	struct mr_str line;

	TRY(run(w, OP_RECV, may_kill, take, &got, err));
	const char *at = buf_z(&got.out);
	/* {"state":"empty"... is no work: what is left in the queue, also told by a command that was killed after it */
	bool work = next_line(&at, &line) && !str_starts(line, "{\"state\":\"empty\"");

	*ret_empty = got.exit_code == EXIT_NOTHING;
	if (!may_kill && !work && !*ret_empty)
		return mr_fail(err, MR_IO, "work cannot be taken any more: 'mailroom recv queue:work' exits with %d",
		    got.exit_code);
	if (work) {
		const char *const finish[] = { "done", token, "--as", name, NULL };

		take_string(line, "\"subject\":\"", tag, sizeof tag);
		take_string(line, "\"token\":\"", token, sizeof token);
		struct sent *s = shown_as(w->j, tag);

		if (s) {
			s->again |= s->done > 0;
			s->claimed = true;
		}
		TRY(run(w, OP_DONE, may_kill, finish, &done, err));
		if (s && done.exit_code == 0) {
			s->done++;
			w->j->done++;
		}
	}
	return got.exit_code == -1 || done.exit_code == -1 ? take_over(w, name, err) : MR_OK;
}

static enum mr_rc
work(struct journal *j, unsigned number, uint64_t seed, int64_t boot_deadline_ms, struct mr_error *err)
{
	struct worker w = { .j = j, .number = number, .random = seed + number * UINT64_C(7919) };
	bool empty;

	while (clock_boot_ms() < boot_deadline_ms)
		TRY(number < SENDERS    ? send_one(&w, err)
		    : number == SENDERS ? read_some(&w, err)
					: work_one(&w, true, &empty, err));
	return MR_OK;
}

/* ---- The campaign ---- */

static void
print(struct cli *cli, const struct scratch *s, uint64_t seed, const struct journal *j, const struct verdict *v)
{
	struct buf *out = &cli->out;

	if (out_json(cli, kv_int("seed", (int64_t)seed), kv_size("commands", v->commands), kv_size("killed", v->killed),
		kv_size("accepted", v->accepted), kv_size("doubtful", v->doubtful),
		kv_size("doubtful_arrived", v->arrived), kv_size("refused", v->refused),
		kv_size("fan_outs_cut", v->fan_outs), kv_size("shown", j->shown), kv_size("work_done", j->done),
		kv_size("broken", v->broken_n), kv_names("promises_broken", &v->broken)))
		return;
	buf_addf(out, "seed %" PRIu64 ": %s, %zu killed\n", seed, counted(v->commands, "command").text, v->killed);
	buf_addf(out, "sends: %zu accepted, %zu cut off (%zu of them arrived), %zu refused\n", v->accepted, v->doubtful,
	    v->arrived, v->refused);
	buf_addf(out, "sends to several that were cut off, delivered to all or to none: %zu\n", v->fan_outs);
	buf_addf(out, "messages shown: %zu; work done: %zu\n", j->shown, j->done);
	for (size_t i = 0; i < v->broken.n; i++)
		buf_addf(out, "BROKEN  %s\n", v->broken.v[i]);
	if (v->broken_n > 0)
		buf_addf(out, "%zu promises broken; the room is kept in %s\n", v->broken_n, s->path);
	else
		buf_adds(out, "no promise was broken\n");
}

static enum mr_rc
run_campaign(const struct scratch *s, struct journal *j, int64_t time_ms, uint64_t seed, struct verdict *ret,
    struct mr_error *err)
{
	struct worker w = { .j = j, .number = WORKERS, .random = seed };
	mr_auto(free_ptr) char *path = NULL;
	struct mr_room *room = NULL;

	TRY(make_room(s, &path, err));
	int64_t deadline_ms = clock_boot_ms() + time_ms;
	pid_t pids[WORKERS];
	bool failed = false;

	for (unsigned i = 0; i < WORKERS; i++) {
		pids[i] = fork();
		if (pids[i] != 0)
			continue;
		(void)signal(SIGINT, SIG_DFL);
		(void)signal(SIGTERM, SIG_DFL);
		if (work(j, i, seed, deadline_ms, err) == MR_OK)
			_exit(0);
		(void)fprintf(stderr, "mailroom: selftest: %s\n", err->message);
		(void)fflush(stderr);
		_exit(1);
	}
	for (unsigned i = 0; i < WORKERS; i++) {
		int status = 1;

		while (pids[i] > 0 && waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
			(void)kill(pids[i], SIGTERM); /* only a signal to us ends this wait */
		failed |= status != 0;
	}
	if (stop_asked(NULL))
		return mr_fail(err, MR_BUSY, "interrupted");
	TRY(failed ? mr_fail(err, MR_IO, "the campaign could not go on") : MR_OK);
	/* What is left of the work is taken and finished by a worker that is not killed. */
	TRY(take_over(&w, "w0", err));
	TRY(take_over(&w, "w1", err));
	for (bool empty = false; !empty;)
		TRY(work_one(&w, false, &empty, err));
	/* Opening it completes what was cut off, as any command does. */
	TRY(mr_room_open(path, &(struct mr_room_options){ 0 }, &room, err));
	enum mr_rc rc = verdict_reach(j, room, ret, err);

	mr_room_close(room);
	return rc;
}

int
crash_run(struct cli *cli, const struct scratch *s, int64_t time_ms, uint64_t seed, bool *ret_keep)
{
	struct verdict v = { 0 };
	struct journal *j =
	    mmap(NULL, sizeof *j, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (j == MAP_FAILED)
		TRY_CLI(mr_fail_errno(&cli->err, "no memory for the journal"));
	stop_heed(0);
	enum mr_rc rc = run_campaign(s, j, time_ms, seed, &v, &cli->err);

	if (rc == MR_OK)
		print(cli, s, seed, j, &v);
	*ret_keep = v.broken_n > 0;
	mr_names_done(&v.broken);
	(void)munmap(j, sizeof *j);
	return rc != MR_OK ? cli_fail(cli, &cli->err) : *ret_keep ? EXIT_FAILED : EXIT_DONE;
}
