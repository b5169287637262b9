/* SPDX-License-Identifier: MIT */
/* crash.c - the kill campaign on the user's own disk. */
#include "base/clock.h"
#include "base/file.h"
#include "base/sys.h"
#include "cli/selftest/selftest.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void
interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

/* ---- The room ---- */

/* The commands shall see this room and nobody's session. */
static enum mr_rc
set_environment(const struct scratch *s, const char *room, struct mr_error *err)
{
	static const char *const others[] = { "MAILROOM_AGENT", "MAILROOM_FAULT", "MAILROOM_DEBUG",
		"CLAUDE_CODE_SESSION_ID", "CLAUDE_PID", "CLAUDE_CODE_AGENT_NAME", "CODEX_THREAD_ID",
		"GEMINI_SESSION_ID", "AGENT_MAILBOX_ID", "GT_ROLE", "BD_ACTOR", "TMUX" };
	mr_auto(buf_done) struct buf state = BUF_INIT;

	buf_addf(&state, "%s/state", s->path);
	if (!buf_ok(&state))
		return mr_nomem(err);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		(void)unsetenv(others[i]);
	if (setenv("MAILROOM", room, 1) < 0 || setenv("XDG_STATE_HOME", buf_z(&state), 1) < 0)
		return mr_nomem(err);
	return MR_OK;
}

static enum mr_rc
must_run(const char *const *args, struct mr_error *err)
{
	mr_auto(child_done) struct child c = { 0 };
	enum mr_rc rc = child_run(args, -1, &c, err);

	if (rc == MR_OK && c.exit_code != 0)
		rc = mr_fail(err, MR_IO, "'mailroom %s %s' exits with %d", args[0], args[1], c.exit_code);
	return rc;
}

/* A room excludes itself in the repository around it: that shall be one of its own, which goes with it. */
static enum mr_rc
make_repository(const struct scratch *s, struct mr_error *err)
{
	static const char *const folders[] = { ".git/objects", ".git/refs", ".git/info" };
	mr_auto(sys_close_fd) int git = -1;
	enum mr_rc rc = MR_OK;

	for (size_t i = 0; rc == MR_OK && i < sizeof folders / sizeof folders[0]; i++) {
		mr_auto(sys_close_fd) int fd = -1;

		rc = dir_make(s->fd, folders[i], 0700, false, &fd, err);
	}
	if (rc == MR_OK)
		rc = dir_open(s->fd, ".git", &git, err);
	if (rc == MR_OK)
		rc = file_publish(git, git, "HEAD", STR("ref: refs/heads/main\n"), 0600, PUBLISH_NOSYNC, err);
	return rc;
}

static enum mr_rc
make_room(const struct scratch *s, char **ret_path, struct mr_error *err)
{
	struct mr_init_options options = { .name = "selftest" };
	const char *const queue[] = { "queue", "create", "work", "--attempts", "0", "--as", "s", NULL };
	char names[READERS + HANDS + 1][8] = { "s" };
	enum mr_rc rc = make_repository(s, err);

	if (rc == MR_OK)
		rc = mr_room_init(s->path, s->path, &options, ret_path, err);

	if (rc == MR_OK)
		rc = set_environment(s, *ret_path, err);
	for (unsigned i = 0; i < READERS; i++)
		reader_name(i, names[1 + i]);
	for (unsigned i = 0; i < HANDS; i++)
		hand_name(i, names[1 + READERS + i]);
	for (unsigned i = 0; rc == MR_OK && i < READERS + HANDS + 1; i++) {
		const char *const args[] = { "register", names[i], NULL };

		rc = must_run(args, err);
	}
	return rc == MR_OK ? must_run(queue, err) : rc;
}

/* ---- The campaign ---- */

static pid_t
start(const struct campaign *c, unsigned worker, int64_t deadline_ms)
{
	struct mr_error err = { 0 };
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	if (work(c, worker, deadline_ms, &err) == MR_OK)
		_exit(0);
	(void)fprintf(stderr, "mailroom: selftest: %s\n", err.message);
	(void)fflush(stderr);
	_exit(1);
}

static enum mr_rc
run_workers(const struct campaign *c, struct mr_error *err)
{
	int64_t deadline_ms = clock_boot_ms() + c->time_ms;
	pid_t pids[WORKERS];
	bool failed = false;

	for (unsigned i = 0; i < WORKERS; i++)
		pids[i] = start(c, i, deadline_ms);
	for (unsigned i = 0; i < WORKERS; i++) {
		int status = 1;

		if (pids[i] < 0) {
			failed = true;
			continue;
		}
		while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
			(void)kill(pids[i], SIGTERM); /* only a signal to us ends this wait */
		failed |= status != 0;
	}
	if (interrupted)
		return mr_fail(err, MR_BUSY, "interrupted");
	return failed ? mr_fail(err, MR_IO, "the campaign could not go on") : MR_OK;
}

/* ---- Telling ---- */

static void
print_json(struct cli *cli, const struct campaign *c, const struct verdict *v)
{
	struct json j = JSON_INIT(&cli->out);
	const struct {
		const char *name;
		size_t value;
	} counts[] = {
		{ "commands", v->commands },
		{ "killed", v->killed },
		{ "accepted", v->accepted },
		{ "doubtful", v->doubtful },
		{ "doubtful_arrived", v->arrived },
		{ "refused", v->refused },
		{ "fan_outs_cut", v->fan_outs },
		{ "shown", v->shown },
		{ "work_done", v->done },
		{ "broken", v->broken_n },
	};

	json_open(&j, '{');
	json_key_int(&j, "seed", (int64_t)c->seed);
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
		json_key_int(&j, counts[i].name, (int64_t)counts[i].value);
	json_key(&j, "promises_broken");
	json_open(&j, '[');
	for (size_t i = 0; i < v->broken.n; i++)
		json_str(&j, str_of(v->broken.v[i]));
	json_close(&j);
	out_json_line(cli, &j);
}

static void
print_text(struct cli *cli, const struct campaign *c, const struct verdict *v)
{
	struct buf *out = &cli->out;

	buf_addf(out, "seed %" PRIu64 ": ", c->seed);
	out_count(out, v->commands, "command");
	buf_addf(out, ", %zu killed\n", v->killed);
	buf_addf(out, "sends: %zu accepted, %zu cut off (%zu of them arrived), %zu refused\n", v->accepted, v->doubtful,
	    v->arrived, v->refused);
	buf_addf(out, "sends to several that were cut off, at all or at nobody: %zu\n", v->fan_outs);
	buf_addf(out, "messages shown: %zu; work done: %zu\n", v->shown, v->done);
	for (size_t i = 0; i < v->broken.n; i++)
		buf_addf(out, "BROKEN  %s\n", v->broken.v[i]);
	if (v->broken_n > 0)
		buf_addf(out, "%zu promises broken; the room is kept in %s\n", v->broken_n, c->scratch->path);
	else
		buf_adds(out, "no promise was broken\n");
}

int
crash_run(struct cli *cli, const struct scratch *s, int64_t time_ms, uint64_t seed, bool *ret_keep)
{
	const struct campaign c = { .scratch = s, .time_ms = time_ms, .seed = seed };
	const struct sigaction on = { .sa_handler = interrupt };
	struct mr_room_options options = { 0 };
	mr_auto(free_ptr) char *path = NULL;
	struct mr_room *room = NULL;
	struct mr_error err = { 0 };
	struct verdict v = { 0 };

	(void)sigaction(SIGINT, &on, NULL);
	(void)sigaction(SIGTERM, &on, NULL);
	enum mr_rc rc = make_room(s, &path, &err);

	if (rc == MR_OK)
		rc = run_workers(&c, &err);
	if (rc == MR_OK)
		rc = work_off(&c, &err);
	if (rc == MR_OK)
		rc = mr_room_open(path, &options, &room, &err); /* completes what was cut off, as any command does */
	if (rc == MR_OK)
		rc = verdict_reach(&c, room, &v, &err);
	mr_room_close(room);
	if (rc == MR_OK && cli->json)
		print_json(cli, &c, &v);
	else if (rc == MR_OK)
		print_text(cli, &c, &v);
	*ret_keep = v.broken_n > 0;
	mr_names_done(&v.broken);
	return rc != MR_OK ? cli_fail(cli, &err) : *ret_keep ? EXIT_FAILED : EXIT_DONE;
}
