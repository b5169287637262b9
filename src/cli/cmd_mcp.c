/* SPDX-License-Identifier: MIT */
/* mailroom mcp: the same commands as tools of the Model Context Protocol. */
#include "cli/mcp/mcp.h"
#include "helptext.h"

int
cmd_mcp(struct cli *cli)
{
	const struct mcp_options *o = cli->opts;
	struct mcp_server server = { .room = cli->room_option, .as = cli->as_option };

#ifdef MR_FAULT_ENV
	if (o->conformance)
		server.extra = &mcp_fixtures;
#endif
	return mcp_serve(&server);
}
