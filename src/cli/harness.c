/* SPDX-License-Identifier: MIT */
/* harness.c - the table of harnesses, and the only place that knows one from another by name. */
#include "cli/harness.h"

extern const char text_copilot_js[], text_opencode_js[], text_pi_js[];

/* What Claude Code began, and others took over: the same events, the same names in them, the same answers. Our plugins
 * speak that way, too. */
#define LIKE_CLAUDE(waiter, stop, ...)                                                                                 \
	.session_key = "session_id", .decision = "block",                                                              \
	.events = { { "SessionStart", MOMENT_START, .waits = (waiter), .shows = true },                                \
		{ "UserPromptSubmit", MOMENT_PROMPT, .shows = true }, { "PostToolUse", MOMENT_TOOL, .shows = true },   \
		{ "Stop", MOMENT_STOP, .waits = (waiter), .shows = (stop) },                                           \
		{ "SessionEnd", MOMENT_END, __VA_ARGS__ } }
#define AFTER_RESTART "sessions that run already see it after a restart"

static const struct harness_socket claude_socket = { "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN",
	"msg_id", "session_id" };
static const struct harness_socket qwen_socket = { "QWEN_CODE_MESSAGING_SOCKET", "QWEN_CODE_MESSAGING_TOKEN", "msgId",
	"toSessionId" };

const struct harness harnesses[] = {
	{
	    .name = "claude-code",
	    .title = "Claude Code",
	    .session_key = "session_id",
	    .events = {
		{ "SessionStart", MOMENT_START, .waits = true, .shows = true },
		{ "UserPromptSubmit", MOMENT_PROMPT, .shows = true },
		{ "PostToolUse", MOMENT_TOOL, .shows = true },
		{ "PostToolUseFailure", MOMENT_TOOL, .shows = true },
		{ "Stop", MOMENT_STOP, .waits = true, .shows = true },
		{ "SessionEnd", MOMENT_END },
	    },
	    .decision = "block",
	    .bell = BELL_EXIT,
	    .socket = &claude_socket,
	    .shows_results = true,
	    .files = {
		{ "CLAUDE_CONFIG_DIR", ".claude", "settings.json", ".claude/settings.json", SETUP_HOOKS | SETUP_ALLOW },
		{ "CLAUDE_CONFIG_DIR", "", ".claude.json", ".mcp.json", SETUP_SERVER },
	    },
	    .timeout = 10,
	    .typed = true,
	    .session_variable = "CLAUDE_CODE_SESSION_ID",
	    .by_process = true, /* 2.1.90 and before tell their shells nothing */
	    .note = AFTER_RESTART "; a server in .mcp.json must be approved once",
	},
	{
	    .name = "codex",
	    .title = "Codex",
	    LIKE_CLAUDE(true, true, .timeout = 3), /* it allows no more, and says so at each start */
	    .bell = BELL_QUEUE, /* since 0.149 */
	    .files = {
		{ "CODEX_HOME", ".codex", "hooks.json", ".codex/hooks.json", SETUP_HOOKS },
		{ "CODEX_HOME", ".codex", "config.toml", ".codex/config.toml", SETUP_TOML },
	    },
	    .timeout = 10,
	    .shell_variable = "CODEX_THREAD_ID",
	    .note = "Codex asks once whether these hooks are to be trusted, and again when they change",
	},
	{
	    .name = "qwen",
	    .title = "Qwen Code",
	    LIKE_CLAUDE(true, true),
	    .bell = BELL_SOCKET,
	    .socket = &qwen_socket,
	    .files = {
		{ NULL, ".qwen", "settings.json", ".qwen/settings.json", SETUP_HOOKS | SETUP_SERVER },
	    },
	    .timeout = 10000,
	    .session_variable = "QWEN_CODE_SESSION_ID",
	    .shell_variable = "QWEN_CODE_SESSION_ID",
	    .note = AFTER_RESTART,
	},
	{
	    .name = "opencode",
	    .title = "OpenCode",
	    LIKE_CLAUDE(false, false),
	    .bell = BELL_PLUGIN,
	    .plugin = text_opencode_js,
	    .files = {
		{ "OPENCODE_CONFIG_DIR", ".config/opencode", "plugins/mailroom.js", ".opencode/plugins/mailroom.js", SETUP_PLUGIN },
		{ "OPENCODE_CONFIG_DIR", ".config/opencode", "opencode.json", "opencode.json", SETUP_MCP_SERVER },
	    },
	    .session_variable = "MAILROOM_SESSION",
	    .shell_variable = "MAILROOM_SESSION",
	    .note = AFTER_RESTART,
	},
	{
	    .name = "pi",
	    .title = "Pi",
	    LIKE_CLAUDE(false, false),
	    .bell = BELL_PLUGIN,
	    .plugin = text_pi_js,
	    .files = {
		{ "PI_CODING_AGENT_DIR", ".pi/agent", "extensions/mailroom.js", ".pi/extensions/mailroom.js", SETUP_PLUGIN },
	    },
	    .shell_variable = "PI_SESSION_ID",
	    .note = AFTER_RESTART,
	},
	{
	    .name = "copilot",
	    .title = "Copilot CLI",
	    LIKE_CLAUDE(false, true),
	    .form = FORM_TOP,
	    .bell = BELL_PLUGIN,
	    .plugin = text_copilot_js,
	    .files = {
		{ "COPILOT_HOME", ".copilot", "hooks/mailroom.json", ".github/hooks/mailroom.json", SETUP_HOOKS },
		{ "COPILOT_HOME", ".copilot", "mcp-config.json", NULL, SETUP_SERVER },
		{ "COPILOT_HOME", ".copilot", "extensions/mailroom/extension.mjs", NULL, SETUP_PLUGIN, .only_with = "experimental" },
	    },
	    .timeout = 10,
	    .typed = true,
	    .session_variable = "COPILOT_AGENT_SESSION_ID",
	    .shell_variable = "COPILOT_AGENT_SESSION_ID",
	    .note = "mail wakes it only with its setting \"experimental\" on; switch that on first, or run this again then",
	},
	{
	    .name = "gemini",
	    .title = "Gemini CLI",
	    .session_key = "session_id",
	    .events = {
		{ "SessionStart", MOMENT_START, .shows = true },
		{ "BeforeAgent", MOMENT_PROMPT, .shows = true },
		{ "AfterTool", MOMENT_TOOL, .shows = true },
		{ "AfterAgent", MOMENT_STOP, .shows = true },
		{ "SessionEnd", MOMENT_END },
	    },
	    .decision = "deny",
	    .files = {
		{ NULL, ".gemini", "settings.json", ".gemini/settings.json", SETUP_HOOKS | SETUP_SERVER },
	    },
	    .timeout = 10000,
	    .named = true,
	    .by_process = true,
	    .note = "Gemini CLI uses it only in folders that it trusts",
	},
	{
	    .name = "cursor",
	    .title = "Cursor",
	    .session_key = "conversation_id",
	    .events = {
		{ "sessionStart", MOMENT_START, .shows = true },
		{ "beforeSubmitPrompt", MOMENT_PROMPT },
		{ "postToolUse", MOMENT_TOOL }, /* for leases only: Cursor drops the answer */
		{ "stop", MOMENT_STOP, .shows = true },
		{ "sessionEnd", MOMENT_END },
	    },
	    .form = FORM_CURSOR,
	    .files = {
		{ NULL, ".cursor", "hooks.json", ".cursor/hooks.json", SETUP_HOOKS },
		{ NULL, ".cursor", "mcp.json", ".cursor/mcp.json", SETUP_SERVER },
	    },
	    .flat = true,
	},
};
const size_t harnesses_n = sizeof harnesses / sizeof harnesses[0];

const struct harness *
harness_named(const char *name)
{
	for (size_t i = 0; i < harnesses_n; i++)
		if (strcmp(harnesses[i].name, name) == 0)
			return &harnesses[i];
	return NULL;
}

void
harness_names(struct buf *out)
{
	for (size_t i = 0; i < harnesses_n; i++)
		buf_addf(out, "%s%s", i == 0 ? "" : i + 1 < harnesses_n ? ", " : " or ", harnesses[i].name);
}

bool
harness_says_session(const struct harness *harness)
{
	return harness->by_process || harness->session_variable || harness->shell_variable;
}
