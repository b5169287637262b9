/* SPDX-License-Identifier: MIT */
/* probe.c - the room in which --check tries things: a temporary folder with a room, a state folder, an agent that a
 * made-up session is bound to, and mail for it. Nothing of it is left. */
#include "base/file.h"
#include "base/id.h"
#include "base/process.h"
#include "base/sys.h"
#include "cli/setup/setup.h"

#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#define AGENT "probe"

void
probe_close(struct probe *p)
{
	mr_room_close(p->room);
	if (p->root[0])
		dir_remove_tree(AT_FDCWD, p->root);
	arena_free(p->own);
	*p = (struct probe){ 0 };
}

/* ---- Making ---- */

MR_PRINTF(2, 3)
static const char *
keep(struct probe *p, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	return arena_dup(&p->own, str_of(text));
}

/* Only the probe's own session may be seen, whoever runs --check, and only through `variable`. */
static enum mr_rc
fill_env(const struct setup *s, struct probe *p, const char *variable, const char **env, struct mr_error *err)
{
	static const char *const unset[] = { "CLAUDE_CODE_SESSION_ID=", "CODEX_THREAD_ID=", "GEMINI_SESSION_ID=",
		"CLAUDE_PID=", "CLAUDE_CODE_AGENT_NAME=", "AGENT_MAILBOX_ID=", "GT_ROLE=", "BD_ACTOR=", "TMUX=" };
	const struct setup_harness *h = s->harness;
	bool told = h->by_process || h->session_variable || h->shell_variable;
	size_t n = 0;

	for (size_t i = 0; i < sizeof unset / sizeof unset[0]; i++)
		if (!variable || strncmp(unset[i], variable, strlen(variable)) != 0)
			env[n++] = unset[i];
	env[n++] = keep(p, "MAILROOM=%s", mr_room_spec(p->room));
	env[n++] = keep(p, "XDG_STATE_HOME=%s/state", p->root);
	env[n++] = keep(p, "CLAUDE_PROJECT_DIR=%s", p->root);
	if (variable)
		env[n++] = keep(p, "%s=%s", variable, p->session);
	/* Cursor tells nobody anything: there the user names the agent. */
	env[n++] = keep(p, "MAILROOM_AGENT=%s", told ? "" : AGENT);
	for (size_t i = 0; i < n; i++)
		if (!env[i])
			return mr_nomem(err);
	return MR_OK;
}

static enum mr_rc
make_room(struct probe *p, const char *state, struct mr_error *err)
{
	mr_auto(free_ptr) char *path = NULL;
	struct mr_init_options quick = { .name = "check", .sync = "none" };
	struct mr_room_options options = { .state_dir = state };
	enum mr_rc rc = mr_room_init(p->root, p->root, &quick, &path, err);

	return rc == MR_OK ? mr_room_open(path, &options, &p->room, err) : rc;
}

enum mr_rc
probe_open(struct setup *s, struct probe *p, struct mr_error *err)
{
	const char *tmp = getenv("TMPDIR"), *state, *session;
	struct mr_env env = { 0 };
	struct mr_registration made;
	struct mr_register_options none = { 0 };
	char random[13];
	enum mr_rc rc;

	random_hex(random, 12);
	(void)snprintf(p->session, sizeof p->session, "mailroom-check-%s", random);
	if (!tmp || tmp[0] != '/' || strlen(tmp) > 200)
		tmp = "/tmp";
	(void)snprintf(p->root, sizeof p->root, "%s/mailroom-check-%s", tmp, random);
	if (sys_mkdir(AT_FDCWD, p->root, 0700) < 0) {
		(void)mr_fail_errno(err, "cannot make '%s'", p->root);
		p->root[0] = '\0';
		return err->code;
	}
	state = keep(p, "%s/state/mailroom", p->root);
	session = keep(p, "%s-%s", s->harness->name, p->session);
	if (!state || !session)
		return mr_nomem(err);
	rc = make_room(p, state, err);
	env = (struct mr_env){ .session = session, .worktree = p->root, .state_dir = state };
	/* For what is started here, this process is the harness. */
	if (rc == MR_OK && s->harness->by_process)
		(void)process_describe((int64_t)getpid(), &env.process);
	if (rc == MR_OK)
		rc = mr_register(p->room, AGENT, &env, &none, &made, err);
	if (rc == MR_OK)
		rc = fill_env(s, p, s->harness->session_variable, p->env, err);
	return rc == MR_OK ? fill_env(s, p, s->harness->shell_variable, p->shell_env, err) : rc;
}

enum mr_rc
probe_send(struct probe *p, const struct setup *s, struct mr_error *err)
{
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	mr_auto(buf_done) struct buf subject = BUF_INIT;
	struct mr_self self = { 0 };
	const char *const to[] = { AGENT, NULL };
	char random[9];
	enum mr_rc rc = mr_self_named(p->room, "operator", &self, err);

	random_hex(random, 8);
	(void)snprintf(p->mark, sizeof p->mark, "check-%s", random);
	buf_addf(&subject, "setup %s %s", s->harness->name, p->mark);
	struct mr_draft draft = { .to = to,
		.subject = buf_z(&subject),
		.body = "nothing to do",
		.body_len = strlen("nothing to do"),
		.priority = MR_URGENT,
		.priority_given = true };

	return rc == MR_OK ? mr_send(p->room, &self, &draft, &receipt, err) : rc;
}

const char *
probe_line(struct probe *p, const char *line)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct mr_names words = { 0 };
	bool room = false;

	if (command_split(line, &words))
		for (size_t i = 0; i < words.n; i++) {
			buf_adds(&out, i > 0 ? " " : "");
			command_quote(&out, room ? mr_room_spec(p->room) : words.v[i]);
			room = strcmp(words.v[i], "--room") == 0;
		}
	mr_names_done(&words);
	return arena_dup(&p->own, out.len > 0 ? buf_str(&out) : str_of(line));
}
