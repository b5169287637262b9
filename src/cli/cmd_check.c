/* SPDX-License-Identifier: MIT */
/*
 * mailroom check: is there mail? For scripts by its exit code, for hooks with --inject: text that a harness puts before
 * its model, or nothing. A hook must never fail its harness: with --inject the exit code is 0 whatever happens.
 */
#include "printout.h"
#include "helptext.h"

static int
inject(struct cli *cli, enum mr_inject_format format)
{
	struct mr_injection *inj = NULL;
	struct mr_error *err = &cli->err;

	cli->unheard = true;
	enum mr_rc rc = cli_open_as_self(cli, err);

	if (rc == MR_OK)
		cli_carry_first(cli, CARRY_PATIENCE_MS);
	cli->self_known = false; /* answers that did not come are told here, not on stderr */
	if (rc == MR_OK)
		rc = mr_inject_open(cli->room, &cli->self, MR_INJECT_ALL, format, &inj, err);
	if (rc == MR_OK && !out_json(cli, kv_str("address", cli->self.agent), kv_str("text", mr_inject_text(inj))))
		buf_adds(&cli->out, mr_inject_text(inj));
	/* Only what stdout took was told. */
	if (rc == MR_OK && cli_flush(cli))
		rc = mr_inject_shown(inj, "check", err);
	/* That somebody works outside of any room, or is no agent, is nothing that a hook needs to say at every
	 * prompt. */
	if (rc != MR_OK && err->code != MR_NOTFOUND && err->code != MR_EMPTY)
		(void)cli_fail(cli, err);
	mr_inject_close(inj);
	return EXIT_DONE;
}

int
cmd_check(struct cli *cli, const struct check_options *o)
{
	bool teams = o->format && strcmp(o->format, "teams-xml") == 0;
	struct printout l = { .cli = cli };
	size_t unread = 0;

	if (o->inject)
		return inject(cli, teams ? MR_INJECT_TEAMS : MR_INJECT_REMINDER);
	TRY_CLI(cli_open_as_self(cli, &cli->err));
	cli_carry_first(cli, CARRY_PATIENCE_MS);
	TRY_CLI(mr_check(cli->room, cli->self.agent, printout_trouble, &l, &unread, &cli->err));
	if (!out_json(cli, kv_str("address", cli->self.agent), kv_size("unread", unread),
		kv_bool("has_new", unread > 0), l.trouble > 0 ? kv_size("unreadable", l.trouble) : kv_none())) {
		buf_addf(&cli->out, "%s for ", unread > 0 ? counted(unread, "unread message").text : "no unread mail");
		text_name(cli, &cli->out, cli->self.agent);
		buf_adds(&cli->out, unread == 0 && l.trouble > 0 ? " that can be read\n" : "\n");
	}
	return unread > 0 ? EXIT_DONE : EXIT_NOTHING;
}
