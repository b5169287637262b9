/* SPDX-License-Identifier: MIT */
/* env.c - the one place that reads the environment to find out who is calling (DESIGN, "Who is who"). */
#include <stdarg.h>
#include <unistd.h>

#include "base/process.h"
#include "cli/gt/gt.h"

#define SESSION_ID_MAX 120
#define SESSION_ID_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* NULL also for an empty one. */
const char *
env_get(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

const char *
cli_text(struct cli *cli, const char *fmt, ...)
{
	mr_auto(free_ptr) char *text = NULL;
	va_list args;

	va_start(args, fmt);
	int len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len < 0)
		text = NULL;
	return text ? arena_dup(&cli->own, (struct mr_str){ text, (size_t)len }) : NULL;
}

static const char *
join(struct cli *cli, char *const *words, size_t n, const char *between)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	for (size_t i = 0; i < n; i++)
		buf_addf(&text, "%s%s", i > 0 ? between : "", words[i]);
	const char *kept = buf_ok(&text) ? arena_dup(&cli->own, buf_str(&text)) : NULL;

	return kept ? kept : "";
}

const char *
joined(struct cli *cli, const struct mr_names *names)
{
	return join(cli, names->v, names->n, ", ");
}

const char *
operands_text(struct cli *cli, int from)
{
	return join(cli, cli->argv + from, from < cli->argc ? (size_t)(cli->argc - from) : 0, " ");
}

static const struct {
	const char *variable, *harness;
} sessions[] = {
#define ROW(variable, harness) { variable, harness },
	SESSION_VARIABLES(ROW)
#undef ROW
};
#define SESSIONS (sizeof(sessions) / sizeof(sessions[0]))

/* A hook knows its session. Variables of other harnesses in its environment come from the harness outside, or from the
 * terminal that started its harness's server. The shells of this session will find them, too: note them. */
static void
find_inherited(struct cli *cli)
{
	mr_auto(buf_done) struct buf names = BUF_INIT;

	for (size_t i = 0; i < SESSIONS; i++) {
		const char *id = env_get(sessions[i].variable);
		size_t len = strlen(sessions[i].harness);
		bool own =
		    len == 0 ? id && strcmp(cli->env.session, id) == 0
			     : strncmp(cli->env.session, sessions[i].harness, len) == 0 && cli->env.session[len] == '-';

		if (id && !own && strlen(id) <= SESSION_ID_MAX && id[strspn(id, SESSION_ID_LETTERS)] == '\0')
			buf_addf(
			    &names, "%s%s%s%s", names.len > 0 ? " " : "", sessions[i].harness, len > 0 ? "-" : "", id);
	}
	if (names.len > 0 && buf_ok(&names))
		cli->env.inherited = arena_dup(&cli->own, buf_str(&names));
}

/* A harness that was started inside another has the variables of both. The hooks of the inner one have noted the outer
 * one as inherited; without that note there is no session, and --as decides, or the wrong agent would act. */
static void
find_session(struct cli *cli)
{
	const char *named[SESSIONS] = { 0 };
	size_t n = 0;

	if (cli->caller_session) { /* said with this very call: nothing that an outer harness left is nearer */
		cli->env.session = cli->caller_session;
		if (cli->hooked)
			find_inherited(cli);
		return;
	}
	for (size_t i = 0; i < SESSIONS; i++) {
		const char *id = env_get(sessions[i].variable);

		if (id && ++n > 1)
			cli->second_session = sessions[i].variable;
		named[i] =
		    id ? cli_text(cli, "%s%s%s", sessions[i].harness, sessions[i].harness[0] ? "-" : "", id) : NULL;
	}
	for (size_t i = 0; i < SESSIONS; i++) {
		size_t outer = 0;

		for (size_t j = 0; named[i] && n > 1 && j < SESSIONS; j++)
			outer += j != i && named[j] && mr_session_inherits(cli->env.state_dir, named[i], named[j]);
		if (named[i] && outer + 1 == n) {
			cli->env.session = named[i];
			cli->second_session = NULL;
		}
	}
	cli->env.two_sessions = cli->second_session != NULL;
	cli->env.session_aged = cli->env_aged;
}

/* Gas Town names an agent by role and place; only a role with "/" is an address already. */
static const char *
gastown_agent(struct cli *cli, const char *role)
{
	const char *rig = env_get("GT_RIG");

	if (strchr(role, '/'))
		return role;
	const char *name = env_get(strcmp(role, "polecat") == 0 ? "GT_POLECAT"
				   : strcmp(role, "crew") == 0  ? "GT_CREW"
								: "GT_DOG_NAME");

	return gt_address(cli, role, rig ? rig : "", name ? name : "");
}

/* CLAUDE_PID leaks into nested agents and survives its process: it counts only while it is above us with no second
 * harness in between. A nested agent that took the outer process for its own would be taken for the outer session
 * after a /clear, and act as its parent. */
void
env_find_process(struct cli *cli)
{
	struct mr_process p = { 0 };
	const char *named = env_get("CLAUDE_PID");
	uint64_t pid = 0;

	if (!cli->env.session || cli->env.process.pid)
		return;
	if ((named && str_to_u64(str_of(named), &pid) && pid <= INT64_MAX && process_describe((int64_t)pid, &p) &&
		process_is_innermost(&p)) ||
	    process_harness(&p))
		cli->env.process = p;
}

/* The folder mailroom in that of the variable, or in the one under the home folder. */
static const char *
own_folder(struct cli *cli, const char *variable, const char *under_home)
{
	const char *given = env_get(variable), *home = env_get("HOME");

	if (given && given[0] == '/')
		return cli_text(cli, "%s/mailroom", given);
	return home && home[0] == '/' ? cli_text(cli, "%s%s/mailroom", home, under_home) : NULL;
}

const char *
env_state_dir(struct cli *cli)
{
	return own_folder(cli, "XDG_STATE_HOME", "/.local/state");
}

const char *
env_config_dir(struct cli *cli)
{
	return own_folder(cli, "XDG_CONFIG_HOME", "/.config");
}

/* A harness names itself to its shells, and a door knows its caller. */
static const char *
harness_around(struct cli *cli)
{
	static const char *const variables[] = { "CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "QWEN_CODE",
		"CURSOR_AGENT", "OPENCODE", "COPILOT_CLI" };

	if (cli->caller_session || cli->sink)
		return cli->caller_session ? cli->caller_session : "a server of a harness";
	for (size_t i = 0; i < SESSIONS; i++)
		if (env_get(sessions[i].variable))
			return cli_text(cli, "$%s is set", sessions[i].variable);
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (env_get(variables[i]))
			return cli_text(cli, "$%s is set", variables[i]);
	return NULL;
}

bool
env_is_outside(struct cli *cli)
{
	return !cli->hooked && !cli->gt && !harness_around(cli);
}

enum mr_rc
env_not_in_session(struct cli *cli, const char *what, struct mr_error *err)
{
	const char *session = harness_around(cli);
	/* A process above us may be bound to a session, too. */
	mr_auto(free_ptr) char *above = session ? NULL : mr_session_above(env_state_dir(cli));

	if (!session)
		session = above;
	if (!session)
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "%s is for the user to do, not for an agent in a harness session (%.80s)\n"
	    "ask the user to run it in a terminal of their own",
	    what, session);
}

/* Claude Code without a terminal (-p, an SDK) waits for its hooks to end, at the start and at the stop, also for those
 * that run beside it. Such a run is never idle, so there is nothing to wake, and a waiting hook would keep it for ever.
 */
bool
env_is_headless(void)
{
	const char *entry = env_get("CLAUDE_CODE_ENTRYPOINT"), *attended = env_get("CLAUDE_CODE_SESSION_ATTENDED");

	return (entry && strcmp(entry, "cli") != 0) || (attended && strcmp(attended, "0") == 0);
}

void
env_fill(struct cli *cli)
{
	const char *const variables[] = { "MAILROOM_AGENT", "CLAUDE_CODE_AGENT_NAME",
		mr_spec_agent_variable(cli->place.spec), "GT_ROLE", "BD_ACTOR" };
	const char *tmux = env_get("TMUX"), *pane = env_get("TMUX_PANE"), *path = env_get("PATH");
	struct mr_process p;

	cli->env = (struct mr_env){ .as = cli->as_option, .worktree = cli->place.worktree, .hooked = cli->hooked };
	cli->env.state_dir = env_state_dir(cli);
	find_session(cli);
	/* Codex runs the sessions of all terminals in one background server. Its hooks and shells have the environment
	 * of the terminal that started the server: the agent's name and the tmux pane there belong to another session.
	 * A shell in the sandbox cannot see the processes above it, but has the server's folder in its PATH. MCP
	 * servers get only the variables of Codex's settings. */
	if (cli->env.session && strncmp(cli->env.session, "codex-", 6) == 0 && (!cli->caller_session || cli->hooked)) {
		enum process_codex above = process_harness(&p) ? process_codex(&p) : CODEX_NOT;

		cli->env.shared =
		    above == CODEX_SHARED || (above == CODEX_NOT && path && strstr(path, "/app-server-daemon/"));
	}
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]) && !cli->env.agent && !cli->env.shared; i++) {
		const char *name = variables[i] ? env_get(variables[i]) : NULL;

		cli->env.agent = name && strcmp(variables[i], "GT_ROLE") == 0 ? gastown_agent(cli, name) : name;
		cli->env.agent_source = cli->env.agent ? variables[i] : NULL;
	}
	if (tmux && pane && !cli->env.shared) { /* "socket,pid,session" and "%3": where a nudge for us can be typed */
		cli->env.tmux = arena_dup(&cli->own, (struct mr_str){ tmux, strcspn(tmux, ",") });
		cli->env.tmux_pane = pane;
	}
}

/* $MAILROOM_DATA alone; else beside the folder of the command (an installed one), two folders above it (one that was
 * just built), and where it was meant to be installed. Which folder the command is in costs more than most of what a
 * command does: the office finds out when it needs it. */
const char *
env_data_dirs(void)
{
	const char *given = env_get("MAILROOM_DATA");

	return given ? given : "@/../share/mailroom:@/../../share/mailroom:" MAILROOM_DATA_DIR;
}

/* ---- Specs of rooms ---- */

/*
 * The part after the colon of --room, where another system has its own place for it: that place is known from the
 * environment, which only a door reads. The library gets absolute paths.
 *
 *	teams:[TEAM]      $CLAUDE_CONFIG_DIR/teams/TEAM, else ~/.claude/teams/TEAM; $CLAUDE_CODE_TEAM_NAME, else default
 *	chipset:[PATH]    .chipset/state
 *	handoff:[PATH]    $MB_TEST_ROOT, else /tmp/agent-mailbox
 *	workspace:[PATH]  the working folder
 */
static void
add_absolute(struct buf *out, const char *path)
{
	mr_auto(free_ptr) char *cwd = path[0] != '/' ? getcwd(NULL, 0) : NULL;

	if (path[0] != '/')
		buf_addf(out, "%s%s", cwd ? cwd : "", path[0] ? "/" : "");
	buf_adds(out, path);
}

const char *
spec_expand(struct cli *cli, const char *spec)
{
	static const char *const kinds[] = { "teams", "chipset", "handoff", "workspace" };
	mr_auto(buf_done) struct buf out = BUF_INIT;
	const char *colon = spec ? strchr(spec, ':') : NULL, *where = colon ? colon + 1 : "";

	if (!colon)
		return spec;
	const char *root = env_get("MB_TEST_ROOT"), *config = env_get("CLAUDE_CONFIG_DIR"), *home = env_get("HOME");
	const char *team = where[0] ? where : env_get("CLAUDE_CODE_TEAM_NAME");
	const char *defaults[] = { "", ".chipset/state", root ? root : "/tmp/agent-mailbox", "" };
	size_t kind = 0;

	while (kind < 4 && !str_eq((struct mr_str){ spec, (size_t)(colon - spec) }, str_of(kinds[kind])))
		kind++;
	if (kind == 4)
		return spec;
	buf_addf(&out, "%s:", kinds[kind]);
	if (kind == 0 && !strchr(where, '/')) { /* the name of a team */
		if (config)
			add_absolute(&out, config);
		else
			buf_addf(&out, "%s/.claude", home ? home : "");
		buf_addf(&out, "/teams/%s", team ? team : "default");
	} else {
		add_absolute(&out, where[0] ? where : defaults[kind]);
	}
	return arena_dup(&cli->own, buf_str(&out));
}

enum mr_rc
cli_find_room(struct cli *cli, const char *given, bool warns, struct mr_place *ret, struct mr_error *err)
{
	const char *named = given ? given : env_get("MAILROOM"), *spec = named ? spec_expand(cli, named) : NULL;

	if (given)
		TRY(mr_got(spec, err));
	return mr_room_find(given ? spec : NULL, given ? NULL : spec, NULL, warns, ret, err);
}

const char *
cli_folder(struct cli *cli, const char *path)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	if (!path)
		return NULL;
	add_absolute(&out, strcmp(path, ".") == 0 ? "" : strncmp(path, "./", 2) == 0 ? path + 2 : path);
	while (out.len > 1 && out.ptr[out.len - 1] == '/')
		out.len--;
	return arena_dup(&cli->own, buf_str(&out));
}
