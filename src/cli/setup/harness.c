/* SPDX-License-Identifier: MIT */
/* harness.c - the table of harnesses: where they look, and at which moments they run a hook. */
#include "cli/setup/setup.h"

static const struct setup_event claude_events[] = {
	{ .name = "SessionStart", .waits = true, .shows = true },
	{ .name = "UserPromptSubmit", .shows = true },
	{ .name = "PostToolUse", .shows = true },
	{ .name = "PostToolUseFailure", .shows = true },
	{ .name = "Stop", .waits = true, .shows = true },
	{ .name = "SessionEnd" },
	{ 0 },
};
static const struct setup_event codex_events[] = {
	{ .name = "SessionStart", .shows = true },
	{ .name = "UserPromptSubmit", .shows = true },
	{ .name = "PostToolUse", .shows = true },
	{ .name = "Stop", .shows = true },
	{ .name = "SessionEnd", .timeout = 3 }, /* it allows no more, and says so at each start */
	{ 0 },
};
static const struct setup_event gemini_events[] = {
	{ .name = "SessionStart", .shows = true },
	{ .name = "BeforeAgent", .shows = true },
	{ .name = "AfterTool", .shows = true },
	{ .name = "AfterAgent", .shows = true },
	{ .name = "SessionEnd" },
	{ 0 },
};
static const struct setup_event cursor_events[] = {
	{ .name = "sessionStart", .shows = true },
	{ .name = "beforeSubmitPrompt" },
	{ .name = "postToolUse" }, /* leases only: what it says reaches nobody */
	{ .name = "stop", .shows = true },
	{ .name = "sessionEnd" },
	{ 0 },
};

static const struct setup_harness harnesses[] = {
	{
	    .name = "claude-code",
	    .title = "Claude Code",
	    .files = { { "CLAUDE_CONFIG_DIR", ".claude", "settings.json", ".claude/settings.json",
			   SETUP_HOOKS | SETUP_ALLOW },
		{ "CLAUDE_CONFIG_DIR", "", ".claude.json", ".mcp.json", SETUP_SERVER } },
	    .files_n = 2,
	    .events = claude_events,
	    .timeout = 10,
	    .typed = true,
	    .session_key = "session_id",
	    .session_variable = "CLAUDE_CODE_SESSION_ID",
	    .by_process = true, /* shells of 2.1.90 and before are told nothing */
	    .note = "sessions that run already see it after a restart; a server in .mcp.json must be approved once",
	},
	{
	    .name = "codex",
	    .title = "Codex",
	    .files = { { "CODEX_HOME", ".codex", "hooks.json", ".codex/hooks.json", SETUP_HOOKS },
		{ "CODEX_HOME", ".codex", "config.toml", ".codex/config.toml", SETUP_TOML } },
	    .files_n = 2,
	    .events = codex_events,
	    .timeout = 10,
	    .session_key = "session_id",
	    .shell_variable = "CODEX_THREAD_ID",
	    .note = "Codex asks once whether these hooks are to be trusted, and again when they change",
	},
	{
	    .name = "gemini",
	    .title = "Gemini CLI",
	    .files = { { NULL, ".gemini", "settings.json", ".gemini/settings.json", SETUP_HOOKS | SETUP_SERVER } },
	    .files_n = 1,
	    .events = gemini_events,
	    .timeout = 10000,
	    .named = true,
	    .session_key = "session_id",
	    .by_process = true,
	    .note = "Gemini CLI uses it only in folders that it trusts",
	},
	{
	    .name = "cursor",
	    .title = "Cursor",
	    .files = { { NULL, ".cursor", "hooks.json", ".cursor/hooks.json", SETUP_HOOKS },
		{ NULL, ".cursor", "mcp.json", ".cursor/mcp.json", SETUP_SERVER } },
	    .files_n = 2,
	    .events = cursor_events,
	    .flat = true,
	    .session_key = "conversation_id",
	},
};
#define HARNESSES (sizeof harnesses / sizeof harnesses[0])

const struct setup_harness *
setup_harness(const char *name)
{
	for (size_t i = 0; i < HARNESSES; i++)
		if (strcmp(harnesses[i].name, name) == 0)
			return &harnesses[i];
	return NULL;
}

void
setup_harness_names(struct buf *out)
{
	for (size_t i = 0; i < HARNESSES; i++)
		buf_addf(out, "%s%s", i == 0 ? "" : i + 1 < HARNESSES ? ", " : " or ", harnesses[i].name);
}
