/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a line of an MCP client: it is sorted or refused, and whatever arguments it has for whichever tool, no
 * value of it becomes an option of the command line.
 */
#include "fuzz.h"

#include "cli/cells.c"
#include "cli/mcp/request.c"
#include "cli/mcp/tools.c"

static const char *const with_value[] = { "--message", "--subject", "--priority", "--type", "--key", "--reply-to",
	"--from", "--limit", "--budget", "--timeout", "--id", "--lease", "--reason", NULL };
static const char *const flags[] = { "--all", "--live", "--urgent", "--read", "--only", NULL };
static const char *const commands_known[] = { "send", "reply", "inbox", "read", "wait", "recv", "done", "release",
	"fail", "who", "nudge", NULL };

static bool
is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(word, *list) == 0)
			return true;
	return false;
}

static void
check_words(const struct words *w)
{
	assert(!w->failed && w->v.n > 0 && is_one_of(w->v.v[0], commands_known));
	for (size_t i = 1; i < w->v.n && strcmp(w->v.v[i], "--") != 0; i++) {
		if (is_one_of(w->v.v[i], flags))
			continue;
		assert(is_one_of(w->v.v[i], with_value) && i + 1 < w->v.n);
		i++; /* its value, whatever that is */
	}
}

static void
check_arguments(struct json_value arguments)
{
	for (size_t i = 0; i < mcp_tools_n; i++) {
		mr_auto(args_done) struct args args = { 0 };
		mr_auto(words_done) struct words words = { 0 };
		mr_auto(buf_done) struct buf wrong = BUF_INIT;
		const char *problem = NULL;

		if (!args_read(&mcp_tools[i], arguments, &args, &wrong))
			assert(wrong.len > 0 && utf8_valid(buf_str(&wrong)));
		else if (!args_command(&mcp_tools[i], &args, &words, &problem))
			assert(problem && problem[0]);
		else
			check_words(&words);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str line = input_of(data, size);

	for (int initialized = 0; initialized < 2; initialized++) {
		struct json_value arguments;
		struct mcp_request r;

		request_parse(line, initialized, &r);
		assert(lies_within(r.id, line) || str_eq(r.id, STR("null")));
		assert(r.params.kind == JSON_OBJECT && r.meta.kind == JSON_OBJECT);
		assert((r.kind == MCP_BAD) == (r.problem[0] != '\0'));
		assert(r.kind != MCP_BAD || r.code < 0);
		if (r.kind == MCP_BAD)
			continue;
		char *session = request_session(&r, true);

		assert(!session || (strlen(session) > 6 && strlen(session) <= SESSION_MAX));
		free(session);
		if (json_find(r.params, "arguments", &arguments) && arguments.kind == JSON_OBJECT)
			check_arguments(arguments);
	}
	return 0;
}
