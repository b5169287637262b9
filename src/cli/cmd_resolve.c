/* SPDX-License-Identifier: MIT */
/* cmd_resolve.c - what an address means, before anything is sent to it. */
#include "base/format.h"
#include "cli/view.h"
#include "message/foreign.h"
#include "helptext.h"

static void
print_list(struct cli *cli, const char *heading, const struct mr_names *names)
{
	if (names->n == 0)
		return;
	out_styled(cli, &cli->out, STYLE_DIM, heading);
	buf_addc(&cli->out, '\n');
	for (size_t i = 0; i < names->n; i++) {
		buf_adds(&cli->out, "  ");
		out_styled(cli, &cli->out, STYLE_PLAIN, names->v[i]);
		buf_addc(&cli->out, '\n');
	}
}

/* Only of agents other programs have other names. */
static void
print_text(struct cli *cli, const struct mr_resolution *r)
{
	mr_auto(buf_done) struct buf line = BUF_INIT, name = BUF_INIT;

	if (!mr_room_has_lives(cli->room) && strcmp(r->form, "agent") == 0)
		foreign_from_address(r->name, &name);
	else
		buf_adds(&name, r->name);
	format_addf(&line, "%s '%s%s': ", r->form, strcmp(r->form, "pattern") == 0 ? "@" : "", buf_z(&name));
	out_count(&line, r->targets.n, "recipient");
	if (r->targets.n > 0)
		out_styled(cli, &cli->out, STYLE_DIM, buf_z(&line));
	for (size_t i = 0; i < r->targets.n; i++) {
		buf_adds(&cli->out, i == 0 ? "\n  " : "  ");
		text_name(cli, &cli->out, r->targets.v[i]);
		buf_addc(&cli->out, '\n');
	}
	print_list(cli, "how", &r->trail);
	print_list(cli, "trouble", &r->trouble);
}

int
cmd_resolve(struct cli *cli)
{
	struct mr_error err = { 0 };
	int code = EXIT_DONE;

	/* Groups leave their sender out, so it matters who asks; but nobody in particular may ask too. */
	if (cli_know_self(cli, &err) != MR_OK && cli->as_option)
		return cli_fail(cli, &err);
	for (int i = 0; i < cli->argc; i++) {
		struct mr_resolution r = { 0 };

		err = (struct mr_error){ 0 };
		if (mr_resolve(cli->room, cli->self_known ? cli->self.agent : "", cli->argv[i], &r, &err) != MR_OK) {
			code = cli_fail(cli, &err);
			continue;
		}
		if (!out_json(cli, kv_str("address", cli->argv[i]), kv_str("form", r.form), kv_str("name", r.name),
			kv_names("targets", &r.targets), kv_names("trouble", &r.trouble), kv_names("trail", &r.trail),
			kv_str("room", mr_room_name(cli->room))))
			print_text(cli, &r);
		mr_resolution_done(&r);
	}
	return code;
}
