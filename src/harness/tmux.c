/* SPDX-License-Identifier: MIT */
/* tmux.c - the few tmux commands that a nudge needs. Each has a socket and a pane that were remembered, so the
 * environment of the process that nudges does not matter. */
#include "base/error.h"
#include "base/spawn.h"
#include "base/text.h"
#include "harness/harness.h"

#define LIMIT_MS 3000
#define CHUNK 1000     /* bytes in one send-keys */
#define HISTORY "-400" /* lines that scrolled away and are looked at, too */
#define ARGS_MAX 12
#define FACTS 12

/* Arguments end with NULL. Any failure of tmux is MR_IO, with its own words. */
static enum mr_rc
run(const struct tmux *t, const char *const *args, struct buf *out, struct mr_error *err)
{
	const char *argv[ARGS_MAX + 5] = { "tmux", "-u", "-S", t->socket };
	struct spawned ran = { 0 };

	for (size_t i = 0; args[i] && i < ARGS_MAX; i++)
		argv[4 + i] = args[i];
	enum mr_rc rc = spawn_run(&(struct spawn){ .argv = argv, .limit_ms = LIMIT_MS }, &ran, err);

	if (rc == MR_OK && (ran.exit_code != 0 || ran.timed_out)) {
		mr_auto(buf_done) struct buf how = BUF_INIT;
		struct mr_str said = str_trim(str_first(buf_str(&ran.err), strcspn(buf_z(&ran.err), "\n")));

		spawned_describe(&ran, LIMIT_MS, &how);
		said = said.len > 0 ? said : buf_str(&how);
		rc = mr_fail(err, MR_IO, "tmux: %.*s", (int)said.len, said.ptr);
	}
	if (rc == MR_OK && out) {
		buf_add(out, buf_str(&ran.out));
		rc = buf_ok(out) ? MR_OK : mr_nomem(err);
	}
	spawned_done(&ran);
	return rc;
}

enum mr_rc
tmux_look(const struct tmux *t, struct tmux_pane *ret, struct mr_error *err)
{
	static const char format[] = "#{pane_id} #{pane_dead} #{pane_in_mode} #{pane_synchronized} #{pane_input_off} "
				     "#{pane_pid} #{session_attached} #{cursor_x} #{cursor_y} #{history_size} "
				     "#{pane_tty} #{pane_current_command}";
	const char *args[] = { "display-message", "-p", "-t", t->pane, format, NULL };
	mr_auto(buf_done) struct buf line = BUF_INIT;
	const char *words[FACTS] = { 0 };
	uint64_t n[FACTS] = { 0 };
	size_t found = 0;

	TRY(run(t, args, &line, err));
	char *rest = line.ptr;

	while (rest && found < FACTS - 1)
		words[found++] = strsep(&rest, " ");
	if (rest) {
		rest[strcspn(rest, "\n")] = '\0';
		words[found++] = rest;
	}
	/* A pane that is gone: some versions answer for another one. */
	if (found < FACTS || strcmp(words[0], t->pane) != 0)
		return mr_fail(err, MR_NOTFOUND, "tmux no longer has a pane '%s'", t->pane);
	for (size_t i = 1; i < FACTS - 2; i++)
		(void)str_to_u64(str_of(words[i]), &n[i]);
	*ret = (struct tmux_pane){ .dead = n[1] != 0,
		.in_mode = n[2] != 0,
		.synchronized = n[3] != 0,
		.input_off = n[4] != 0,
		.pid = (int64_t)n[5],
		.clients = (int64_t)n[6],
		.cursor_x = (int64_t)n[7],
		.cursor_y = (int64_t)n[8],
		.history = (int64_t)n[9] };
	(void)snprintf(ret->tty, sizeof ret->tty, "%s", words[FACTS - 2]);
	(void)snprintf(ret->command, sizeof ret->command, "%s", words[FACTS - 1]);
	return MR_OK;
}

enum mr_rc
tmux_capture(const struct tmux *t, enum tmux_capture how, struct buf *ret, struct mr_error *err)
{
	const char *looks[] = { "capture-pane", "-p", "-e", "-t", t->pane, NULL };
	const char *text[] = { "capture-pane", "-p", "-J", "-S", HISTORY, "-t", t->pane, NULL };

	buf_clear(ret);
	return run(t, how == TMUX_LOOKS ? looks : text, ret, err);
}

enum mr_rc
tmux_type(const struct tmux *t, struct mr_str text, struct mr_error *err)
{
	for (struct mr_str part; text.len > 0; text = str_from(text, part.len)) {
		mr_auto(buf_done) struct buf chunk = BUF_INIT;

		part = utf8_within(text, CHUNK);
		buf_add(&chunk, part);
		/* To tmux a semicolon at the end of an argument is the end of a command, unless escaped. */
		if (chunk.ptr && chunk.ptr[chunk.len - 1] == ';') {
			chunk.ptr[chunk.len - 1] = '\\';
			buf_addc(&chunk, ';');
		}
		TRY(mr_got(buf_ok(&chunk), err));
		const char *args[] = { "send-keys", "-t", t->pane, "-l", "--", buf_z(&chunk), NULL };

		TRY(run(t, args, NULL, err));
	}
	return MR_OK;
}

enum mr_rc
tmux_key(const struct tmux *t, const char *key, struct mr_error *err)
{
	const char *press[] = { "send-keys", "-t", t->pane, key, NULL };
	const char *leave[] = { "send-keys", "-t", t->pane, "-X", "cancel", NULL };

	return run(t, key ? press : leave, NULL, err);
}
