/* SPDX-License-Identifier: MIT */
/* mailroom handoff: a note to one's own next life. */
#include "cli/draft.h"

static const struct opt opts[] = {
	OPT('s', "subject", "TEXT", "what it is about; default: the first line of the text"),
	OPT('m', "message", "TEXT", "the text"),
	OPT('f', "file", "FILE", "read the text from a file; - is standard input"),
	OPT('c', "collect", NULL,
	    "add the state of the git worktree, the work in hand, unread mail and open questions"),
	OPT('n', "dry-run", NULL, "check everything, send nothing"),
	OPT_END,
};
static const char *const about[] = {
	"Writes a message of type HANDOFF to yourself and prints its id. It is on stable storage when the command "
	"ends, "
	"pinned, and the first thing that your next life is shown: by 'mailroom check --inject', 'drain' and 'inbox'.",
	"Say what the next life cannot see: what you were about (## Context), how far it is (## Status), what comes "
	"next (## Next). The text comes from -m, -f, or standard input when that is a pipe or a file; without any, the "
	"note says that there is none. Hand-offs that were read are archived by the next one.",
	"-c adds what is easily forgotten: branch, commit and the last moves of HEAD, a merge or rebase in progress, "
	"tracked "
	"files that changed or are missing; what you hold; unread mail; what you asked and nobody answered (mail with "
	"--by or a question mark); and what you read and did not answer. Git is not run, as it would run what the "
	"repository's configuration says: its files are read, and changes are seen by size and time. What is staged "
	"and "
	"untracked files are not known, and it says so.",
	NULL,
};
static const char *const examples[] = {
	"mailroom --as alice handoff <<'EOF'\n## Context\nporting the parser to the new grammar\n## Status\nall tests "
	"but two pass\n## Next\nsee why quoted names fail\nEOF",
	"mailroom --as alice handoff -s 'parser half done' -c",
	NULL,
};

static int
run(struct cli *cli)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_handoff what = { .subject = opt_text(cli, "subject"),
		.collect = opt_flag(cli, "collect"),
		.dir = cli->place.worktree,
		.dry_run = opt_flag(cli, "dry-run") };
	const char *given = opt_text(cli, "message"), *file = opt_text(cli, "file");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	int code;

	if (given || file || cli_stdin_has_text()) {
		code = cli_body(cli, given, file, &text);
		if (code != EXIT_DONE)
			return code;
		if (strlen(buf_z(&text)) != text.len)
			return cli_usage(cli, "the text has a NUL byte");
		what.text = buf_z(&text);
	}
	struct mr_draft draft = { .subject = what.subject ? what.subject : "hand-off", .dry_run = what.dry_run };
	enum mr_rc rc = mr_handoff(cli->room, &cli->self, &what, &receipt, &err);

	code = draft_report(cli, &draft, rc, &receipt, &err);
	mr_receipt_done(&receipt);
	return code;
}

const struct cmd cmd_handoff = {
	.name = "handoff",
	.needs = CMD_SELF,
	.synopsis = "[-s SUBJECT] [-m TEXT | -f FILE | <stdin] [-c]",
	.summary = "leave a note for your own next life",
	.opts = opts,
	.about = about,
	.examples = examples,
	.exits = "456",
	.max_args = 0,
	.run = run,
};
