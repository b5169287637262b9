/* SPDX-License-Identifier: MIT */
/*
 * check.c - does a message reach an agent of this harness? What stands in the settings files is tried, not what we
 * would write: the very command lines of hooks and server, and a shell. They run in a temporary folder with a room, a
 * state folder, an agent that a made-up session is bound to, and mail for it. Nothing of it is left.
 */
#include "base/file.h"
#include "base/id.h"
#include "base/process.h"
#include "base/spawn.h"
#include "base/sys.h"
#include "cli/hook/hook.h"
#include "cli/peer/peer.h"
#include "cli/setup/setup.h"
#include "cli/view.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIMIT_MS 10000
#define RING_MS 2000 /* a waiter that rings through a socket stays: so long it is listened to */
#define AGENT "probe"
#define ENV_MAX 32

struct check {
	struct setup *s;
	check_say_fn *say;
	void *ctx;
	const char *apply; /* the command that repairs most of it */
	char root[256];    /* the temporary folder; "": none */
	char session[40];
	char mark[24]; /* in the subject of the last message: nobody else writes it */
	struct mr_room *room;
	/* Of the hooks, servers and shells that are tried: what the harness tells them, and no more. */
	const char *env[ENV_MAX], *shell_env[ENV_MAX];
};

static void
say(struct check *c, const char *part, const char *problem, const char *repair)
{
	c->say(c->ctx, c->s, part ? part : "out of memory", problem, repair);
}

/* ---- The room in which things are tried ---- */

/* Only the made-up session may be seen, wherever --check is run, and only through `variable`. */
static enum mr_rc
fill_env(struct check *c, const char *variable, const char **env, struct mr_error *err)
{
#define LINE(variable, harness) variable "=",
	static const char *const unset[] = { SESSION_VARIABLES(LINE) "CLAUDE_CODE_ENTRYPOINT=",
		"CLAUDE_CODE_SESSION_ATTENDED=", "QWEN_CODE_MESSAGING_SOCKET=", "CLAUDE_CODE_MESSAGING_SOCKET=",
		"CLAUDE_CODE_MESSAGING_TOKEN=", "CLAUDE_PID=", "CLAUDE_CODE_AGENT_NAME=", "AGENT_MAILBOX_ID=",
		"GT_ROLE=", "BD_ACTOR=", "TMUX=" };
#undef LINE
	size_t n = 0;

	for (size_t i = 0; i < sizeof unset / sizeof unset[0]; i++)
		if (!variable || strncmp(unset[i], variable, strlen(variable)) != 0)
			env[n++] = unset[i];
	env[n++] = cli_text(c->s->cli, "MAILROOM=%s", mr_room_spec(c->room));
	env[n++] = cli_text(c->s->cli, "XDG_STATE_HOME=%s/state", c->root);
	env[n++] = cli_text(c->s->cli, "CLAUDE_PROJECT_DIR=%s", c->root);
	if (variable)
		env[n++] = cli_text(c->s->cli, "%s=%s", variable, c->session);
	/* Cursor tells its shells nothing: there the user names the agent. */
	env[n++] = cli_text(c->s->cli, "MAILROOM_AGENT=%s", harness_says_session(c->s->harness) ? "" : AGENT);
	for (size_t i = 0; i < n; i++)
		TRY(mr_got(env[i], err));
	return MR_OK;
}

static enum mr_rc
open_room(struct check *c, struct mr_error *err)
{
	const struct harness *harness = c->s->harness;
	const char *tmp = getenv("TMPDIR");
	mr_auto(free_ptr) char *path = NULL;
	struct mr_env env = { .worktree = c->root };
	struct mr_registration made;
	char random[13];

	random_hex(random, 12);
	(void)snprintf(c->session, sizeof c->session, "mailroom-check-%s", random);
	if (!tmp || tmp[0] != '/' || strlen(tmp) > 200)
		tmp = "/tmp";
	(void)snprintf(c->root, sizeof c->root, "%s/mailroom-check-%s", tmp, random);
	if (sys_mkdir(AT_FDCWD, c->root, 0700) < 0) {
		(void)mr_fail_errno(err, "cannot make '%s'", c->root);
		c->root[0] = '\0';
		return err->code;
	}
	env.state_dir = cli_text(c->s->cli, "%s/state/mailroom", c->root);
	env.session = cli_text(c->s->cli, "%s-%s", harness->name, c->session);
	TRY(mr_got(env.state_dir && env.session, err));
	TRY(mr_room_init(c->root, c->root, &(struct mr_init_options){ .name = "check", .sync = "none" }, &path, err));
	TRY(mr_room_open(path, &(struct mr_room_options){ .state_dir = env.state_dir }, &c->room, err));
	/* For what is started here, this process is the harness. */
	if (harness->by_process)
		(void)process_describe((int64_t)getpid(), &env.process);
	TRY(mr_register(c->room, AGENT, &env, &(struct mr_register_options){ 0 }, &made, err));
	TRY(fill_env(c, harness->session_variable, c->env, err));
	return fill_env(c, harness->shell_variable, c->shell_env, err);
}

/* Mail for the agent, under a new mark. */
static enum mr_rc
send_mail(struct check *c, struct mr_error *err)
{
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	mr_auto(buf_done) struct buf subject = BUF_INIT;
	struct mr_self self = { 0 };
	const char *const to[] = { AGENT, NULL };
	char random[9];

	random_hex(random, 8);
	(void)snprintf(c->mark, sizeof c->mark, "check-%s", random);
	buf_addf(&subject, "setup %s %s", c->s->harness->name, c->mark);
	TRY(mr_self_named(c->room, "operator", &self, err));
	return mr_send(c->room, &self,
	    &(struct mr_draft){ .to = to,
		.subject = buf_z(&subject),
		.body = "nothing to do",
		.body_len = strlen("nothing to do"),
		.priority = MR_URGENT,
		.priority_given = true },
	    &receipt, err);
}

static bool
has_mark(const struct check *c, struct mr_str text)
{
	return text.len > 0 && memmem(text.ptr, text.len, c->mark, strlen(c->mark));
}

/* What a program said, for a message. */
static void
add_words(struct buf *out, const char *before, struct mr_str words)
{
	buf_adds(out, words.len > 0 ? before : "");
	text_clean_line(out, utf8_cut(words, 120));
}

/* ---- Hooks, the bell, shells ---- */

static enum mr_rc
run_line(struct check *c, const char *line, struct mr_str input, const char *const *env, int64_t limit_ms,
    struct spawned *ret, struct mr_error *err)
{
	const char *const argv[] = { "sh", "-c", line, NULL };

	return spawn_run(
	    &(struct spawn){ .argv = argv, .input = input, .env = env, .dir = c->root, .limit_ms = limit_ms }, ret,
	    err);
}

/* The command line of the settings, with our room in the place of the one that it names; else as it is. */
static enum mr_rc
run_ours(
    struct check *c, const char *line, const char *event, int64_t limit_ms, struct spawned *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf input = BUF_INIT, ours = BUF_INIT;
	mr_auto(mr_names_done) struct mr_names words = { 0 };
	const struct mr_names roots = { (char *[]){ c->root }, 1 };
	struct json j = JSON_INIT(&input);

	TRY(send_mail(c, err));
	if (command_split(line, &words))
		for (size_t i = 0; i < words.n; i++) {
			bool room = i > 0 && strcmp(words.v[i - 1], "--room") == 0;

			buf_adds(&ours, i > 0 ? " " : "");
			command_quote(&ours, room ? mr_room_spec(c->room) : words.v[i]);
		}
	json_cells(
	    &j, CELLS(kv_open(""), kv_str(c->s->harness->session_key, c->session), kv_str("hook_event_name", event),
		    kv_str("cwd", c->root), kv_names("workspace_roots", &roots), kv_str("source", "startup"),
		    kv_str("prompt", "is there mail?"), kv_close()));
	buf_addc(&input, '\n');
	TRY(mr_got(buf_ok(&input) && buf_ok(&ours), err));
	return run_line(c, ours.len > 0 ? buf_z(&ours) : line, buf_str(&input), c->env, limit_ms, ret, err);
}

static enum mr_rc
run_hook(struct check *c, const char *line, const struct harness_event *event, struct mr_error *err)
{
	mr_auto(buf_done) struct buf why = BUF_INIT;
	mr_auto(spawned_done) struct spawned ran = { 0 };

	TRY(run_ours(c, line, event->name, LIMIT_MS, &ran, err));
	if (ran.exit_code == 0 && (!event->shows || has_mark(c, buf_str(&ran.out))))
		return MR_OK;
	spawned_describe(&ran, LIMIT_MS, &why);
	add_words(&why, ": ", ran.err.len > 0 ? buf_str(&ran.err) : buf_str(&ran.out));
	return mr_fail(err, MR_REFUSED, "the message is not in what it prints (%s)", buf_z(&why));
}

/* What a bell that is rung through a socket has to say: it goes to one of ours. */
static bool
heard(int listens, struct buf *ret)
{
	mr_auto(sys_close_fd) int fd = accept(listens, NULL, NULL);

	while (fd >= 0 && ret->len < PIPE_BUF && buf_reserve(ret, PIPE_BUF)) {
		ssize_t n = sys_read(fd, ret->ptr + ret->len, PIPE_BUF);

		if (n <= 0)
			break;
		ret->len += (size_t)n;
	}
	return ret->len > 0;
}

/* Mail comes, and the waiter beside the session rings. Codex is asked whether it has such a bell: a ring of its own
 * needs a session of its own. */
static enum mr_rc
try_bell(struct check *c, const char *line, struct mr_error *err)
{
	static const char *const queue[] = { "codex", "help", "queue", NULL };
	const struct harness *harness = c->s->harness;
	mr_auto(buf_done) struct buf quick = BUF_INIT, said = BUF_INIT, why = BUF_INIT;
	mr_auto(spawned_done) struct spawned ran = { 0 };
	mr_auto(sys_close_fd) int listens = -1;
	bool socket = harness->bell == BELL_SOCKET, rang = false;

	if (harness->bell == BELL_QUEUE) {
		TRY(spawn_run(&(struct spawn){ .argv = queue, .limit_ms = LIMIT_MS }, &ran, err));
		return ran.exit_code == 0
			   ? MR_OK
			   : mr_fail(err, MR_REFUSED, "this Codex has no 'codex queue'; 0.149 and later have it");
	}
	if (socket) {
		const char *path = cli_text(c->s->cli, "%s/bell", c->root);

		listens = path ? socket_listen(path) : -1;
		for (size_t i = 0; c->env[i]; i++)
			if (strncmp(c->env[i], harness->socket->path, strlen(harness->socket->path)) == 0)
				c->env[i] = cli_text(c->s->cli, "%s=%s", harness->socket->path, path ? path : "");
	}
	buf_addf(&quick, "%s --gather 0", line);
	TRY(mr_got(buf_ok(&quick), err));
	TRY(run_ours(c, buf_z(&quick), "Stop", socket ? RING_MS : LIMIT_MS, &ran, err));
	if (socket)
		rang = heard(listens, &said) && has_mark(c, buf_str(&said));
	else if (ran.exit_code == 2)
		rang = harness->bell == BELL_EXIT ? has_mark(c, buf_str(&ran.err))
						  : str_starts(buf_str(&ran.err), "mailroom bell ");
	if (rang)
		return MR_OK;
	spawned_describe(&ran, LIMIT_MS, &why);
	add_words(&why, ": ", buf_str(&ran.err));
	return mr_fail(err, MR_REFUSED, "mail came, and the waiter did not ring (%s)", buf_z(&why));
}

static void
check_bell(struct check *c, const char *line)
{
	struct mr_error err = { 0 };

	enum mr_rc rc = try_bell(c, line, &err);

	if (rc == MR_NOTFOUND && c->s->harness->bell == BELL_QUEUE)
		say(c, "bell, not tried: there is no 'codex' in $PATH", NULL, "");
	else
		say(c, "bell", rc == MR_OK ? NULL : err.message, c->apply);
}

static void
check_shell(struct check *c)
{
	mr_auto(buf_done) struct buf line = BUF_INIT, link = BUF_INIT, why = BUF_INIT;
	mr_auto(spawned_done) struct spawned ran = { 0 };
	const char *repair = "mailroom --as NAME with each command of the agent, or a newer version of the harness";
	struct mr_error err = { 0 };

	/* A command that the agent types: is it the agent that the hooks speak to? */
	command_quote(&line, c->s->program);
	buf_adds(&line, " inbox; :"); /* so that a shell stays in between, as it does in a harness */
	if (send_mail(c, &err) != MR_OK) {
		repair = c->apply;
	} else if (run_line(c, buf_z(&line), (struct mr_str){ 0 }, c->shell_env, LIMIT_MS, &ran, &err) == MR_OK &&
		   !has_mark(c, buf_str(&ran.out))) {
		add_words(&why, "", ran.err.len > 0 ? buf_str(&ran.err) : buf_str(&ran.out));
		(void)mr_fail(&err, MR_REFUSED, "a command there does not see the message: %s", buf_z(&why));
	}
	say(c, "shell", err.code == MR_OK ? NULL : err.message, repair);
	/* Agents type "mailroom", and that is what they are allowed. */
	buf_addf(&link, "ln -s %s DIR, where DIR is a folder of $PATH", c->s->program);
	say(c, "mailroom in $PATH", command_in_path(c->s) ? NULL : "a shell does not find it by its name",
	    buf_z(&link));
}

/* ---- The server ---- */

/* The answer to the second request: the line that has its id. */
static struct mr_str
answer_in(struct mr_str out)
{
	struct json_value all;
	struct mr_str line;

	while (out.len > 0 && memchr(out.ptr, '\n', out.len) && str_line(&out, &line))
		if (json_whole(line, &all, NULL) && str_eq(json_get(all, "id").raw, STR("2")))
			return line;
	return (struct mr_str){ 0 };
}

static bool
has_answered(void *ctx, const struct buf *out)
{
	(void)ctx;
	return answer_in(buf_str(out)).len > 0;
}

/* Starts the server and asks it for the inbox, as a client would. */
static enum mr_rc
run_server(struct check *c, const char *const *argv, const char *const *env, struct mr_error *err)
{
	mr_auto(buf_done) struct buf requests = BUF_INIT, why = BUF_INIT;
	mr_auto(spawned_done) struct spawned ran = { 0 };

	TRY(send_mail(c, err));
	buf_adds(&requests,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\","
	    "\"capabilities\":{},\"clientInfo\":{\"name\":\"mailroom-setup\",\"version\":\"1\"}}}\n"
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"inbox\",\"arguments\":{}");
	if (strcmp(c->s->harness->name, "codex") == 0)
		buf_addf(&requests, ",\"_meta\":{\"threadId\":\"%s\"}", c->session);
	buf_adds(&requests, "}}\n");
	TRY(mr_got(buf_ok(&requests), err));
	TRY(spawn_run(&(struct spawn){ .argv = argv,
			  .input = buf_str(&requests),
			  .env = env,
			  .dir = c->root,
			  .limit_ms = LIMIT_MS,
			  .enough = has_answered },
	    &ran, err));
	struct mr_str answer = answer_in(buf_str(&ran.out));

	if (has_mark(c, answer))
		return MR_OK;
	if (answer.len > 0) {
		add_words(&why, ": ", answer);
		return mr_fail(err, MR_REFUSED, "its inbox does not have the message%s", buf_z(&why));
	}
	spawned_describe(&ran, LIMIT_MS, &why);
	add_words(&why, ": ", (struct mr_str){ ran.err.ptr, strcspn(buf_z(&ran.err), "\n") });
	return mr_fail(err, MR_REFUSED, "it gives no answer (%s)", buf_z(&why));
}

/* ---- --peers: the server takes what another session sends ---- */

struct peer_try {
	struct check *c;
	int sessions; /* folder */
	bool taken;
};

/* An entry appears in the list of sessions: the message goes to its socket. */
static bool
send_to_peer(void *ctx, const struct dir_entry *file)
{
	struct peer_try *t = ctx;
	mr_auto(buf_done) struct buf text = BUF_INIT, name = BUF_INIT, lines = BUF_INIT, token = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_str name_of = str_of(file->name);
	struct registry_entry entry;
	struct json_value key;
	uint64_t pid = 0;
	char answer;

	if (!str_ends(name_of, ".json") || !str_to_u64((struct mr_str){ name_of.ptr, name_of.len - 5 }, &pid) ||
	    !registry_read(t->sessions, (int64_t)pid, &entry))
		return true;
	registry_key_name((int64_t)pid, entry.socket, &name);
	if (file_read(t->sessions, buf_z(&name), PIPE_BUF, &text, IGNORED) != MR_OK ||
	    !json_whole(buf_str(&text), &key, NULL) || !json_find_text(key, "peerToken", &token))
		return true;
	buf_addf(&lines,
	    "{\"type\":\"auth\",\"token\":\"%s\"}\n{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"%s\"}}\n",
	    buf_z(&token), t->c->mark);
	fd = buf_ok(&lines) ? socket_connect(entry.socket) : -1;
	t->taken = fd >= 0 && sys_write_all(fd, lines.ptr, lines.len) == 0 && sys_read(fd, &answer, 1) == 0;
	return false;
}

static bool
peer_has_taken(void *ctx)
{
	struct peer_try *t = ctx;

	(void)dir_each(t->sessions, send_to_peer, t, IGNORED);
	return t->taken;
}

static bool
never(void *ctx, const struct buf *out)
{
	(void)ctx, (void)out;
	return false;
}

static enum mr_rc
run_peer(struct check *c, const char *const *argv, const char *const *env, struct mr_error *err)
{
	const char *path = cli_text(c->s->cli, "%s/sessions", c->root);
	struct mr_counts before = { 0 }, after = { 0 };
	mr_auto(spawned_done) struct spawned ran = { 0 };
	mr_auto(sys_close_fd) int sessions = -1;

	TRY(mr_got(path, err));
	TRY(dir_make(AT_FDCWD, path, 0700, false, &sessions, err));
	struct peer_try t = { .c = c, .sessions = sessions };

	TRY(mr_count(c->room, AGENT, &before, err));
	TRY(spawn_run(&(struct spawn){ .argv = argv,
			  .env = env,
			  .dir = c->root,
			  .limit_ms = LIMIT_MS,
			  .enough = never,
			  .stop = peer_has_taken,
			  .stop_ctx = &t },
	    &ran, err));
	TRY(mr_count(c->room, AGENT, &after, err));
	return t.taken && after.unread == before.unread + 1
		   ? MR_OK
		   : mr_fail(err, MR_REFUSED, "a message that was sent to its socket did not come");
}

/* With our room in the place of the one that is named; `more`: its environment, or NULL. */
static void
check_server(struct check *c, const struct mr_names *words, const struct mr_names *more)
{
	const char *argv[16] = { 0 }, *env[42 + ENV_MAX];
	struct mr_error err = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < words->n && i < 15; i++)
		argv[i] = i > 0 && strcmp(words->v[i - 1], "--room") == 0 ? mr_room_spec(c->room) : words->v[i];
	for (size_t i = 0; more && i < more->n && n < 40; i++)
		env[n++] = more->v[i];
	for (size_t i = 0; c->env[i]; i++)
		env[n++] = c->env[i];
	env[n] = NULL;
	if (!argv[0]) {
		say(c, "MCP server", "it is not configured", c->apply);
		return;
	}
	say(c, "MCP server", run_server(c, argv, env, &err) == MR_OK ? NULL : err.message, c->apply);
	if (!names_has(words, "--peers"))
		return;
	env[n++] = cli_text(c->s->cli, "CLAUDE_CONFIG_DIR=%s", c->root);
	env[n] = NULL;
	say(c, "peer", run_peer(c, argv, env, &err) == MR_OK ? NULL : err.message, c->apply);
}

/* ---- Files ---- */

/* Codex tells its servers no variable but these, and what is tried here had them all. */
static void
check_home(struct check *c, size_t i, const char *has, const char *part, const char *or_else)
{
	const char *want = c->s->homes[i] ? c->s->homes[i] : "";
	const char *problem = cli_text(c->s->cli, "it has %s '%s', and the hooks '%s': they would not %s",
	    setup_home_names[i], has, want, or_else);

	say(c, part, strcmp(has, want) == 0 ? NULL : problem ? problem : "out of memory", c->apply);
}

/* For a project, with the roots and variables of the user's own file: Codex reads both. */
static void
check_toml(struct check *c, struct setup_file *f)
{
	mr_auto(file_done) struct setup_file own = { 0 };
	mr_auto(codex_says_done) struct codex_says says = { 0 };
	const char *const wanted[] = { c->s->state_dir, c->s->room_dir };
	struct mr_error err = { 0 };
	struct setup as_user = *c->s;

	as_user.project = false;
	if (c->s->project && read_settings(&as_user, &c->s->harness->files[1], &own, &err) == MR_OK &&
	    codex_read(&own.before, &says, &err) == MR_OK)
		mr_names_done(&says.argv);
	if (err.code != MR_OK || codex_read(&f->before, &says, &err) != MR_OK) {
		say(c, f->path, err.message, "correct the file by hand");
		return;
	}
	check_server(c, &says.argv, NULL);
	if (says.argv.n > 0) {
		check_home(c, 0, buf_z(&says.homes[0]), "state folder of the MCP server", "be one agent");
		check_home(c, 1, buf_z(&says.homes[1]), "configuration of the MCP server", "trust the same rooms");
	}
	for (size_t i = 0; i < 2; i++)
		if (wanted[i])
			say(c, cli_text(c->s->cli, "writable root %s", wanted[i]),
			    names_has(&says.roots, wanted[i]) ? NULL : "commands in Codex's sandbox cannot write to it",
			    c->apply);
}

static void
check_json(struct check *c, struct setup_file *f)
{
	mr_auto(jsonc_done) struct jsonc doc = { 0 };
	mr_auto(mr_names_done) struct mr_names argv = { 0 }, env = { 0 };
	struct mr_error err = { 0 };

	if (text_object(&f->before, &doc, &err) != MR_OK && err.code != MR_EMPTY) {
		say(c, f->path, err.message, "correct the file by hand");
		return;
	}
	if (f->parts & SETUP_HOOKS) {
		mr_auto(buf_done) struct buf bell = BUF_INIT;

		for (const struct harness_event *e = c->s->harness->events; e->name; e++) {
			mr_auto(buf_done) struct buf line = BUF_INIT, waiter = BUF_INIT;
			struct mr_error wrong = { 0 };
			const char *problem = NULL;

			if (!hooks_command(c->s, doc.root, e->name, false, &line))
				problem = "it is not configured";
			else if (e->waits && !hooks_command(c->s, doc.root, e->name, true, &waiter))
				problem = "the waiter that wakes an idle session is not configured";
			else if (run_hook(c, buf_z(&line), e, &wrong) != MR_OK)
				problem = wrong.message;
			say(c, cli_text(c->s->cli, "hook %s", e->name), problem, c->apply);
			if (e->waits && bell.len == 0)
				buf_add(&bell, buf_str(&waiter));
		}
		if (bell.len > 0 && buf_ok(&bell))
			check_bell(c, buf_z(&bell));
	}
	for (size_t i = SETUP_OLD_PERMISSIONS; i < setup_permissions_n && (f->parts & SETUP_ALLOW); i++)
		say(c, cli_text(c->s->cli, "permission %s", setup_permissions[i]),
		    allow_has(doc.root, setup_permissions[i]) ? NULL : "it is not granted", c->apply);
	/* Every command without asking, also those that start programs: an earlier setup wrote it, or the user. */
	for (size_t i = 0; i < SETUP_OLD_PERMISSIONS && (f->parts & SETUP_ALLOW); i++)
		if (allow_has(doc.root, setup_permissions[i]))
			say(c, cli_text(c->s->cli, "permission %s", setup_permissions[i]),
			    "it lets an agent start any program through mailroom (patrol --handler, config)",
			    "remove it, or let --apply do it if an earlier setup wrote it");
	if (f->parts & (SETUP_SERVER | SETUP_MCP_SERVER)) {
		(void)server_command(doc.root, f->parts, &argv, &env);
		check_server(c, &argv, &env);
	}
}

enum mr_rc
check_try(struct setup *s, check_say_fn *say_it, void *ctx, struct mr_error *err)
{
	struct check c = { .s = s, .say = say_it, .ctx = ctx };
	enum mr_rc rc = open_room(&c, err);

	c.apply = cli_text(s->cli, "mailroom setup %s%s --apply", s->harness->name, s->project ? " --project" : "");
	if (!c.apply)
		c.apply = "mailroom setup";
	for (size_t i = 0; s->harness->files[i].name && rc == MR_OK; i++) {
		mr_auto(file_done) struct setup_file f = { 0 };

		if (!settings_wanted(s, &s->harness->files[i], SETUP_IN))
			continue;
		rc = read_settings(s, &s->harness->files[i], &f, err);
		if (rc == MR_OK && (f.parts & SETUP_PLUGIN)) {
			/* What the plugin would run. Where hooks tell the mail, its bell alone. */
			say(&c, cli_text(s->cli, "plugin %s", f.path),
			    !f.there                          ? "it does not exist"
			    : plugin_is_current(s, &f.before) ? NULL
							      : "it differs from the one that this program writes",
			    c.apply);
			for (const struct harness_event *e = s->harness->events; e->name && !s->harness->timeout; e++) {
				struct mr_error wrong = { 0 };

				say(&c, cli_text(s->cli, "hook %s", e->name),
				    run_hook(&c, s->hook, e, &wrong) == MR_OK ? NULL : wrong.message, c.apply);
			}
			check_bell(&c, s->waiter);
		} else if (rc == MR_OK && (f.parts & SETUP_TOML)) {
			check_toml(&c, &f);
		} else if (rc == MR_OK) {
			check_json(&c, &f);
		}
	}
	if (rc == MR_OK)
		check_shell(&c);
	mr_room_close(c.room);
	if (c.root[0])
		dir_remove_tree(AT_FDCWD, c.root);
	return rc;
}
