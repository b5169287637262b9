/* SPDX-License-Identifier: MIT */
/* cmd_send.c - mailroom send, reply; and what all commands that send share: a message from the command line, its text
 * from -m, -f, or stdin when that is a pipe or a file, its other parts from options; and what became of it. */
#include "base/file.h"
#include "base/sys.h"
#include "draft.h"
#include "helptext.h"
#include <errno.h>
#include <poll.h>
#include <strings.h>
#include <sys/stat.h>

#define PIECE ((size_t)64 << 10)
#define LIMITED_MAX 16 /* recipients who are asked whether it wakes them */

/* ---- The text ---- */

enum mr_rc
cli_read(const char *file, struct buf *ret, struct mr_error *err)
{
	bool standard = strcmp(file, "-") == 0;
	/* The user's own file, links and all: not a name in a room. */
	mr_auto(sys_close_fd) int fd = standard ? -1 : sys_open_user(file, 0);

	if (!standard && fd < 0 && errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "there is no file '%s'", file);
	if (!standard && fd < 0)
		return mr_fail_errno(err, "cannot open '%s'", file);
	enum mr_rc rc = file_read_fd(standard ? 0 : fd, MR_BODY_MAX, ret, err);

	if (rc == MR_REFUSED)
		return mr_fail(err, MR_REFUSED,
		    "the text from '%s' is longer than 16 MiB\nput it in a file that the recipient can read, and mail the path",
		    standard ? "stdin" : file);
	return rc == MR_OK ? MR_OK : mr_wrap(err, "the text from '%s'", standard ? "stdin" : file);
}

bool
cli_stdin_has_text(void)
{
	struct stat st;

	return sys_stat_fd(0, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode));
}

bool
lines_read(struct lines *l)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	ssize_t got;

	errno = ENOMEM;
	do /* somebody who shares it may have made it one that does not block */
		got = buf_reserve(&l->bytes, PIECE) ? sys_read(0, l->bytes.ptr + l->bytes.len, PIECE) : -1;
	while (got < 0 && errno == EAGAIN && poll(&in, 1, -1) > 0);
	l->bytes.len += got > 0 ? (size_t)got : 0;
	l->ended = got <= 0;
	return got >= 0;
}

enum line
lines_next(struct lines *l, struct mr_str *ret)
{
	bool skipped;

	while (l->from < l->bytes.len) {
		const char *begin = l->bytes.ptr + l->from;
		size_t n = l->bytes.len - l->from;
		const char *end = memchr(begin + l->looked, '\n', n - l->looked);

		l->looked = n;
		if (!end && !l->ended)
			break;
		*ret = (struct mr_str){ begin, end ? (size_t)(end - begin) : n };
		l->from += ret->len + (end != NULL);
		l->looked = 0;
		skipped = l->skipping;
		l->skipping = false;
		if (!skipped)
			return LINE_WHOLE;
	}
	if (l->from > 0) { /* a long line comes in many pieces: it is not to be copied with each */
		l->bytes.len -= l->from;
		memmove(l->bytes.ptr, l->bytes.ptr + l->from, l->bytes.len);
		l->from = 0;
	}
	skipped = l->skipping;
	l->skipping |= l->bytes.len > l->longest;
	if (!l->skipping)
		return LINE_NONE;
	buf_clear(&l->bytes);
	l->looked = 0;
	return skipped ? LINE_NONE : LINE_TOO_LONG;
}

int
cli_body(struct cli *cli, const char *text, const char *file, struct buf *ret)
{
	mr_auto(buf_done) struct buf body = BUF_INIT, example = BUF_INIT;
	const char *const *examples = cli->cmd->help->examples;
	struct mr_error *err = &cli->err;

	if (text && file)
		return cli_usage(cli, "-m and -f are both given: give the text with one of them");
	if (!text && !file && !cli_stdin_has_text()) {
		cli_usage(cli, "there is no text to send: give it on stdin, with -m TEXT or with -f FILE");
		buf_addf(&example, "  for example:\n%s\n", examples ? examples[0] : "");
		if (!cli->json && examples && buf_ok(&example))
			cli_say(cli, &example);
		return EXIT_USAGE;
	}
	if (text) {
		buf_adds(&body, text);
	} else {
		TRY_CLI(cli_read(file ? file : "-", &body, err));
	}
	TRY_CLI(mr_got(buf_ok(&body), err));
	if (body.len == 0)
		TRY_CLI(mr_fail(err, MR_REFUSED,
		    "the body is empty\ngive the text with -m TEXT, with -f FILE, or on stdin with -f - (<<'EOF')"));
	buf_done(ret);
	*ret = body;
	body = BUF_INIT;
	return EXIT_DONE;
}

/* ---- The other parts ---- */

/* What the harness of a team tells of an agent in environment variables: its colour, which is a header, and the id
 * under which it asks for a permission, which is not the name of its inbox. */
static const struct own {
	const char *type; /* NULL: a header of all types */
	const char *name, *variable;
} owns[] = {
	{ NULL, "Color", "CLAUDE_CODE_AGENT_COLOR" },
	{ "permission_request", "agent_id", "CLAUDE_CODE_AGENT_ID" },
	{ "sandbox_permission_request", "workerId", "CLAUDE_CODE_AGENT_ID" },
	{ "sandbox_permission_request", "workerColor", "CLAUDE_CODE_AGENT_COLOR" },
};
#define OWNS (sizeof(owns) / sizeof(owns[0]))

/* Lines such as "Name: value" or "Name=value", and what belongs to them from the environment. NULL: a line that has no
 * `between`, *ret_bad. Names and values are judged by the library. */
static const struct mr_header *
read_pairs(
    struct cli *cli, const char *const *lines, char between, const char *type, size_t *ret_n, const char **ret_bad)
{
	bool team = mr_room_lead(cli->room), header = between == ':';
	size_t n = opt_count(lines);
	struct mr_header *pairs = arena_alloc(&cli->own, (n + OWNS) * sizeof(*pairs));

	for (size_t i = 0; pairs && i < n; i++) {
		const char *at = strchr(lines[i], between);

		*ret_bad = lines[i];
		if (!at || (at == lines[i] && !header))
			return NULL;
		pairs[i].name = arena_dup(&cli->own, (struct mr_str){ lines[i], (size_t)(at - lines[i]) });
		pairs[i].value = header ? arena_dup(&cli->own, str_trim(str_of(at + 1))) : at + 1;
	}
	*ret_bad = NULL;
	*ret_n = pairs ? n : 0;
	for (size_t i = 0; pairs && team && (header || n > 0) && i < OWNS; i++) {
		const char *value = env_get(owns[i].variable);
		bool fits = header ? !owns[i].type : owns[i].type && type && strcmp(owns[i].type, type) == 0;

		for (size_t k = 0; k < n; k++)
			fits &= pairs[k].name && (header ? strcasecmp : strcmp)(pairs[k].name, owns[i].name) != 0;
		if (fits && value)
			pairs[(*ret_n)++] = (struct mr_header){ owns[i].name, value };
	}
	return *ret_n > 0 ? pairs : NULL;
}

/* In the place of the files themselves: where they are. */
static enum mr_rc
add_paths(struct cli *cli, const char *const *files, struct buf *body, struct mr_error *err)
{
	for (; *files; files++) {
		const char *path = cli_folder(cli, *files);
		struct stat st;

		TRY(mr_got(path, err));
		if (sys_stat_target(path, &st) < 0)
			return mr_fail(err, MR_NOTFOUND, "there is no file '%s'", *files);
		if (body->len > 0 && body->ptr[body->len - 1] != '\n')
			buf_addc(body, '\n');
		buf_addf(body, "Attachment: %s (%lld bytes)\n", path, (long long)st.st_size);
	}
	return mr_got(buf_ok(body), err);
}

int
draft_read(
    struct cli *cli, const struct draft_options *o, const char *subject, struct mr_draft *draft, struct buf *body)
{
	const char *text = o->message ? o->message : o->body, *bad = NULL;
	bool team = mr_room_lead(cli->room) != NULL;

	draft->subject = subject;
	draft->no_subject = subject && !subject[0] && team; /* a summary may be missing there */
	draft->type = o->type;
	draft->force = o->force;
	draft->priority = o->priority ? *o->priority : MR_NORMAL;
	draft->priority_given = o->priority != NULL;
	draft->key = o->key;
	draft->by_ms = o->by_ms > 0 ? clock_now_ms() + o->by_ms : 0;
	if (team || o->header[0])
		draft->headers = read_pairs(cli, o->header, ':', NULL, &draft->headers_n, &bad);
	if (bad)
		return cli_usage(cli, "--header '%s' has no colon: write it as 'Name: value'", bad);
	if (o->field[0])
		draft->fields = read_pairs(cli, o->field, '=', draft->type, &draft->fields_n, &bad);
	if (bad)
		return cli_usage(cli, "--field '%s' has no value: write it as NAME=VALUE", bad);
	if (o->field[0] && draft->type == NULL)
		return cli_usage(cli, "--field needs --type: the type says how its fields are written");
	/* Fields, a type without any, and files need no text: then stdin is read only where it was named, or has some.
	 */
	bool files = o->attach[0] && !text && !o->file && draft->fields_n == 0;
	bool needless = draft->fields_n > 0 || ((draft->type != NULL || files) && !cli_stdin_has_text());
	int code = EXIT_DONE;

	if (files && !needless)
		TRY_CLI(cli_read("-", body, &cli->err));
	else if (text || o->file || !needless)
		code = cli_body(cli, text, o->file, body);
	if (code == EXIT_DONE && o->attach_as_path)
		TRY_CLI(add_paths(cli, o->attach, body, &cli->err));
	else
		draft->attach = o->attach;
	draft->body = body->ptr;
	draft->body_len = body->len;
	return code;
}

/* ---- What became of it ---- */

void
draft_note_limited(struct cli *cli, struct mr_receipt *receipt)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	char why[MR_WAKE_WHY_MAX];

	for (size_t i = 0; i < receipt->to.n && i < LIMITED_MAX && receipt->id[0] && !receipt->repeated; i++) {
		if (strpbrk(receipt->to.v[i], ":@") != NULL ||
		    !mr_wake_limited(cli->room, receipt->to.v[i], receipt->id, why))
			continue;
		buf_clear(&line);
		buf_addf(&line, "stored for '%s'; %s", receipt->to.v[i], why);
		(void)names_add(&receipt->warnings, buf_str(&line)); /* out of memory: the mail is there all the same */
	}
}

int
draft_report(struct cli *cli, const struct mr_draft *draft, enum mr_rc rc, const struct mr_receipt *receipt,
    const struct mr_error *err)
{
	struct json j = JSON_INIT(&cli->out);
	size_t n = receipt->superseded.n;

	if (rc != MR_OK && rc != MR_INDOUBT)
		return cli_fail(cli, err);
	if (cli->json) {
		json_cells(&j, CELLS(kv_open(""), kv_str("id", draft->dry_run ? NULL : receipt->id),
				   kv_names("to", &receipt->to), kv_names("not_live", &receipt->not_live),
				   kv_names("missing", &receipt->missing), kv_names("trouble", &receipt->trouble),
				   kv_names("warnings", &receipt->warnings), kv_bool("repeated", receipt->repeated),
				   kv_size("retired", receipt->retired), kv_names("superseded", &receipt->superseded)));
		json_fields_value(&j, receipt->fields);
		json_cells(&j, CELLS(kv_bool("dry_run", draft->dry_run), kv_str("room", mr_room_name(cli->room))));
		out_json_line(cli, &j);
	} else if (!draft->dry_run) {
		buf_adds(&cli->out, receipt->id);
		buf_addc(&cli->out, '\n');
	} else {
		buf_adds(&cli->out, "nothing was sent; it would go to ");
		text_names(cli, &cli->out, &receipt->to, receipt->to.n);
		buf_addc(&cli->out, '\n');
	}
	/* The id goes out before any word of warning: a reader that stops here has the one thing that matters. */
	cli->changed = rc == MR_OK && !draft->dry_run;
	cli->done_id = receipt->id;
	bool flushed = cli_flush(cli);

	cli->done_id = NULL; /* the receipt goes before the command ends */
	if (!flushed && rc == MR_OK)
		return draft->dry_run ? EXIT_FAILED : EXIT_DOUBT;
	if (receipt->repeated)
		cli_warn(cli, "this key was used before: the message was not sent a second time");
	if (receipt->warning != NULL)
		cli_warn(cli, "%s", receipt->warning);
	cli_warn_each(cli, &receipt->trouble);
	cli_warn_each(cli, &receipt->warnings);
	/* An answer that ended others, too: which ones, and what to give to leave them open, on a command line or to
	 * the tool. */
	if (n > 0)
		cli_warn(cli,
		    "%zu older question%s of the same sender and channel got an empty answer: %s (option 'only' leaves them open)",
		    n, n == 1 ? "" : "s", joined(cli, &receipt->superseded));
	/* Recipients without a life are named at once: "sent, but never seen" is the worst surprise. */
	for (size_t i = 0; i < receipt->not_live.n; i++) {
		mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
		const char *name = receipt->not_live.v[i];

		if (mr_agent_get(cli->room, name, &agent, IGNORED) != MR_OK)
			continue;
		if (agent.life == 0)
			cli_warn(cli, "'%s' is not here yet: the mail waits for it", name);
		else
			cli_warn(cli, "'%s' is gone, last seen %s ago: the mail waits for its next life", name,
			    lasting(clock_now_ms() - agent.seen_ms).text);
	}
	if (!draft->dry_run && !receipt->repeated) {
		if (receipt->notify)
			cli_notify(cli, receipt, cli->self.agent, draft->subject);
		nudges_of_mail(cli, draft, receipt);
	}
	return rc == MR_INDOUBT ? cli_fail(cli, err) : EXIT_DONE;
}

/* ---- send, reply ---- */

/* The text where a recipient belongs is the commonest slip, and without -m there is no body either: what is said first
 * must be the help that is needed. Other programs have agents with blanks in their names. */
static enum mr_rc
check_blanks(struct cli *cli, const char *to, struct mr_error *err)
{
	mr_auto(mr_resolution_done) struct mr_resolution meant = { 0 };

	if (mr_resolve(cli->room, cli->self.agent, to, &meant, IGNORED) == MR_OK)
		return MR_OK;
	return mr_fail(
	    err, MR_REFUSED, "'%.60s' is not a recipient\ndid you mean -m? give the text with -m or on stdin", to);
}

int
cmd_send(struct cli *cli, const struct send_options *o)
{
	mr_auto(buf_done) struct buf body = BUF_INIT;
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	size_t n = (size_t)cli->argc, more = opt_count(o->to); /* operands, and the hidden --to */
	const char **to = arena_alloc(&cli->own, (n + more + 1) * sizeof(*to));
	struct mr_draft draft = {
		.to = to,
		.cc = o->cc,
		.thread = o->thread,
		.reply_to = o->reply_to,
		.replace_key = o->replace_key,
		.reply_path = o->reply_path ? cli_folder(cli, o->reply_path) : NULL,
		.hold = o->hold,
		.dry_run = cli->dry_run,
	};

	if (o->batch)
		return batch_run(cli);
	if (o->not_before && mr_duration_parse(o->not_before, &draft.not_before_ms, IGNORED) == MR_OK)
		draft.not_before_ms += clock_now_ms();
	else if (o->not_before && mr_time_parse(o->not_before, &draft.not_before_ms, IGNORED) != MR_OK)
		return cli_usage(cli,
		    "option '--not-before': '%.60s' is not a time; give 30m, 2h, or 2026-03-05T10:30:00Z",
		    o->not_before);
	TRY_CLI(mr_got(to, &cli->err));
	for (size_t i = 0; i < n + more; i++) {
		to[i] = i < n ? cli->argv[i] : o->to[i - n];
		if (strpbrk(to[i], " \t\r\n") != NULL)
			TRY_CLI(check_blanks(cli, to[i], &cli->err));
	}
	TRY_CODE(draft_read(cli, &o->draft, o->subject, &draft, &body));
	enum mr_rc rc = mr_send(cli->room, &cli->self, &draft, &receipt, &cli->err);

	/* The first message of a thread cannot be limited. A room without threads counts each message as one of many.
	 */
	if (rc == MR_OK && !draft.dry_run && (draft.thread || draft.reply_to || !mr_room_has(cli->room, MR_HAS_LIVES)))
		draft_note_limited(cli, &receipt);
	return draft_report(cli, &draft, rc, &receipt, &cli->err);
}

int
cmd_reply(struct cli *cli, const struct reply_options *o)
{
	mr_auto(buf_done) struct buf body = BUF_INIT;
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	struct mr_draft draft = { .only = o->only };
	TRY_CODE(draft_read(cli, &o->draft, o->subject, &draft, &body));
	enum mr_rc rc = mr_reply(cli->room, &cli->self, cli->argv[0], &draft, o->all, &receipt, &cli->err);

	if (rc == MR_OK)
		draft_note_limited(cli, &receipt);
	return draft_report(cli, &draft, rc, &receipt, &cli->err);
}
