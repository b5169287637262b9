/* SPDX-License-Identifier: MIT */
/* env.c - the one place that reads the environment to find out who is calling (DESIGN, "Who is who"). */
#include <limits.h>
#include <unistd.h>

#include "base/process.h"
#include "cli/cli.h"

static const char *
env_get(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

static const char *
joined(struct cli *cli, const char *a, const char *between, const char *b)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_addf(&text, "%s%s%s", a, between, b);
	return arena_dup(&cli->own, buf_str(&text)); /* NULL, out of memory, is "not known" */
}

/* One harness started inside the other leaves both variables: which of them is ours cannot be seen from here,
 * and the wrong one would act as somebody else. Then there is no session, and --as decides. */
static void
find_session(struct cli *cli)
{
	static const struct {
		const char *variable, *harness;
	} known[] = {
		{ "CLAUDE_CODE_SESSION_ID", "claude-code" },
		{ "CODEX_THREAD_ID", "codex" },
		{ "GEMINI_SESSION_ID", "gemini" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const char *id = env_get(known[i].variable);

		if (id && cli->env.session)
			cli->second_session = known[i].variable;
		else if (id)
			cli->env.session = joined(cli, known[i].harness, "-", id);
	}
	if (cli->second_session)
		cli->env.session = NULL;
}

/* Gas Town names an agent by role and place; only a role with "/" is an address already. */
static const char *
gastown_agent(struct cli *cli)
{
	const char *role = env_get("GT_ROLE"), *rig = env_get("GT_RIG");
	const char *polecat = env_get("GT_POLECAT"), *crew = env_get("GT_CREW"), *dog = env_get("GT_DOG_NAME");

	if (!role || strchr(role, '/'))
		return role;
	if (strcmp(role, "polecat") == 0 && rig && polecat)
		return joined(cli, rig, "/", polecat);
	if (strcmp(role, "crew") == 0 && rig && crew)
		return joined(cli, rig, "/crew/", crew);
	if ((strcmp(role, "witness") == 0 || strcmp(role, "refinery") == 0) && rig)
		return joined(cli, rig, "/", role);
	if (strcmp(role, "dog") == 0 && dog)
		return dog;
	return role;
}

static void
find_agent(struct cli *cli)
{
	static const char *const variables[] = { "MAILROOM_AGENT", "CLAUDE_CODE_AGENT_NAME", "AGENT_MAILBOX_ID",
		"GT_ROLE", "BD_ACTOR" };

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]) && !cli->env.agent; i++) {
		/* The id of a mailbox of the mailbox skill is nobody's name in any other kind of room. */
		if (strcmp(variables[i], "AGENT_MAILBOX_ID") == 0 && strncmp(cli->place.spec, "handoff:", 8) != 0)
			continue;
		cli->env.agent = strcmp(variables[i], "GT_ROLE") == 0 ? gastown_agent(cli) : env_get(variables[i]);
		cli->env.agent_source = cli->env.agent ? variables[i] : NULL;
	}
}

/* CLAUDE_PID leaks into nested agents and survives its process: it counts only while it is above us with no second
 * harness in between. A nested agent that took the outer process for its own would be taken for the outer session
 * after a /clear, and act as its parent. */
static void
find_process(struct cli *cli)
{
	struct mr_process p = { 0 };
	const char *named = env_get("CLAUDE_PID");
	uint64_t pid = 0;

	if (!cli->env.session)
		return;
	if (named && str_to_u64(str_of(named), &pid) && pid <= INT64_MAX && process_describe((int64_t)pid, &p) &&
	    process_is_innermost(&p))
		cli->env.process = p;
	else if (process_harness(&p))
		cli->env.process = p;
}

/* "socket,pid,session" and "%3": where a nudge for us can be typed. */
static void
find_pane(struct cli *cli)
{
	const char *tmux = env_get("TMUX"), *pane = env_get("TMUX_PANE");

	if (!tmux || !pane)
		return;
	cli->env.tmux = arena_dup(&cli->own, (struct mr_str){ tmux, strcspn(tmux, ",") });
	cli->env.tmux_pane = pane;
}

void
env_fill(struct cli *cli)
{
	const char *state = env_get("XDG_STATE_HOME"), *home = env_get("HOME");

	cli->env = (struct mr_env){ .as = cli->as_option, .worktree = cli->place.worktree };
	find_session(cli);
	find_agent(cli);
	find_process(cli);
	find_pane(cli);
	if (state && state[0] == '/')
		cli->env.state_dir = joined(cli, state, "/", "mailroom");
	else if (home && home[0] == '/')
		cli->env.state_dir = joined(cli, home, "/", ".local/state/mailroom");
}

/* $MAILROOM_DATA alone; else beside the folder of the command (an installed one), two folders above it (one that was
 * just built), and where it was meant to be installed. Only the first that is there is looked at, and only by whoever
 * needs it. */
const char *
env_data_dir(struct cli *cli)
{
	mr_auto(buf_done) struct buf list = BUF_INIT;
	const char *given = env_get("MAILROOM_DATA");
	char self[PATH_MAX];
	ssize_t len = given ? 0 : readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (given)
		return given;
	while (len > 0 && self[len - 1] != '/')
		len--;
	if (len > 0)
		buf_addf(&list, "%.*s../share/mailroom:%.*s../../share/mailroom:", (int)len, self, (int)len, self);
	buf_adds(&list, MAILROOM_DATA_DIR);
	return arena_dup(&cli->own, buf_str(&list));
}
