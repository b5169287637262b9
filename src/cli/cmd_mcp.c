/* SPDX-License-Identifier: MIT */
/* mailroom mcp: the same commands as tools of the Model Context Protocol. */
#include "cli/mcp/mcp.h"

static const struct opt opts[] = {
#ifdef MR_FAULT_ENV
	OPT_HIDDEN(0, "conformance", NULL),
#endif
	OPT_END,
};
static const char *const about[] = {
	"A server of the Model Context Protocol on standard input and output, for a harness to start: one JSON-RPC "
	"message a line. It speaks the revision 2026-07-28 and the ones with a handshake, 2024-11-05 to 2025-11-25.",
	"Its tools are send (also reply and publish), inbox, read, wait, recv, done (also release and fail), who and "
	"nudge. Each runs the command of that name, with the same checks, hints and fence. The resource "
	"mailroom://inbox lists unread mail; who subscribes to it is told when mail comes.",
	"Who is calling is found out anew with each call: from --as, from the session that the harness names in the "
	"call or in the environment, and so on as for every command; never from an argument of a tool.",
	"What an answer shows is marked as read after standard output took the answer. A server that is killed before "
	"has consumed nothing.",
	"It ends when standard input ends, and on SIGINT and SIGTERM.",
	NULL,
};
static const char *const examples[] = {
	"echo "
	"'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\"}}' | "
	"mailroom mcp",
	NULL,
};

static int
run(struct cli *cli)
{
	struct mcp_server server = { .room = cli->room_option, .as = cli->as_option };

#ifdef MR_FAULT_ENV
	if (opt_flag(cli, "conformance"))
		server.extra = &mcp_fixtures;
#endif
	return mcp_serve(&server);
}

const struct cmd cmd_mcp = {
	.name = "mcp",
	.synopsis = "",
	.summary = "serve agents by the Model Context Protocol, on stdin and stdout",
	.opts = opts,
	.about = about,
	.examples = examples,
	.max_args = 0,
	.run = run,
};
