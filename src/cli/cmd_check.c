/* SPDX-License-Identifier: MIT */
/*
 * mailroom check: is there mail? For scripts by its exit code, for hooks with --inject: text that a harness puts before
 * its model, or nothing. A hook must never fail its harness: with --inject the exit code is 0 whatever happens.
 */
#include "printout.h"
#include "helptext.h"

static bool
read_format(struct cli *cli, enum mr_inject_format *ret)
{
	const struct check_options *o = cli->opts;
	const char *word = o->format;

	*ret = MR_INJECT_REMINDER;
	if (word == NULL || strcmp(word, "system-reminder") == 0)
		return true;
	*ret = MR_INJECT_TEAMS;
	if (strcmp(word, "teams-xml") == 0)
		return true;
	(void)cli_usage(cli, "option '--format': '%.40s' is not system-reminder or teams-xml", word);
	return false;
}

/* That somebody works outside of any room, or is no agent, is nothing that a hook needs to say at every prompt. */
static void
say_trouble(struct cli *cli, const struct mr_error *err)
{
	if (err->code != MR_NOTFOUND && err->code != MR_EMPTY)
		(void)cli_fail(cli, err);
}

static void
print_injection(struct cli *cli, const struct mr_injection *inj)
{
	struct json j = JSON_INIT(&cli->out);

	if (!cli->json) {
		buf_adds(&cli->out, mr_inject_text(inj));
		return;
	}
	json_open(&j, '{');
	json_key_str(&j, "address", cli->self.agent);
	json_key_str(&j, "text", mr_inject_text(inj));
	out_json_line(cli, &j);
}

static int
inject(struct cli *cli, enum mr_inject_format format)
{
	struct mr_injection *inj = NULL;
	struct mr_error err = { 0 };

	cli->unheard = true;
	enum mr_rc rc = cli_open_as_self(cli, &err);

	if (rc == MR_OK)
		cli_bring(cli, BRING_PATIENCE_MS);
	cli->self_known = false; /* answers that did not come are told here, not on stderr */
	if (rc == MR_OK)
		rc = mr_inject_open(cli->room, &cli->self, format, &inj, &err);
	if (rc == MR_OK)
		print_injection(cli, inj);
	/* Only what stdout took was told. */
	if (rc == MR_OK && cli_flush(cli))
		rc = mr_inject_shown(inj, &err);
	if (rc != MR_OK)
		say_trouble(cli, &err);
	mr_inject_close(inj);
	return EXIT_DONE;
}

int
cmd_check(struct cli *cli)
{
	const struct check_options *o = cli->opts;
	enum mr_inject_format format;
	struct mr_error err = { 0 };
	struct printout l = { .cli = cli };
	size_t unread = 0;

	if (!read_format(cli, &format))
		return EXIT_USAGE;
	if (o->inject)
		return inject(cli, format);
	if (o->format != NULL)
		return cli_usage(cli, "--format goes with --inject");
	if (cli_open_as_self(cli, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli_bring(cli, BRING_PATIENCE_MS);
	if (mr_check_all(cli->room, cli->self.agent, printout_trouble, &l, &unread, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "address", cli->self.agent);
		json_key_int(&j, "unread", (int64_t)unread);
		json_key_bool(&j, "has_new", unread > 0);
		if (l.trouble > 0)
			json_key_int(&j, "unreadable", (int64_t)l.trouble);
		out_json_line(cli, &j);
	} else if (unread > 0) {
		out_count(&cli->out, unread, "unread message");
		buf_adds(&cli->out, " for ");
		text_name(cli, &cli->out, cli->self.agent);
		buf_addc(&cli->out, '\n');
	} else {
		buf_adds(&cli->out, "no unread mail for ");
		text_name(cli, &cli->out, cli->self.agent);
		buf_adds(&cli->out, l.trouble > 0 ? " that can be read\n" : "\n");
	}
	return unread > 0 ? EXIT_DONE : EXIT_NOTHING;
}
