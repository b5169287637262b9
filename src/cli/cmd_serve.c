/* SPDX-License-Identifier: MIT */
/* cmd_serve.c - the operator's view is a program of its own, which has libmicrohttpd: src/serve. */
#include "helptext.h"

int
cmd_serve(struct cli *cli, const struct serve_options *)
{
	if (serve_run)
		return serve_run(cli);
	cli_hand_over(cli, "mailroom-serve");
	(void)mr_fail(&cli->err, MR_UNSUPPORTED,
	    "mailroom-serve is not installed beside this program\n"
	    "build it with libmicrohttpd (Debian: libmicrohttpd-dev), then make install");
	return cli_fail(cli, &cli->err);
}
