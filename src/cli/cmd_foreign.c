/* SPDX-License-Identifier: MIT */
/*
 * cmd_foreign.c - hidden commands behind scripts that stand in for those of other programs.
 *
 * `mailroom mb VERB ...`, behind share/mailroom/mailbox.sh: the verbs of the mailbox skill with its arguments, outputs
 * and exit codes. Where the original would act for an id that nobody has, send an empty message because a file is
 * missing, or lose mail, this one says so and fails. See mailroom-handoff(5).
 *
 * `mailroom generate-message`, behind share/mailroom/generate_message: the bytes of a message for a workspace mailbox,
 * from options. It delivers nothing and looks at no room. See mailroom-workspace(5).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "message/memo.h"
#include "helptext.h"

/* ---- mb ---- */

#define WAIT_SECONDS "540"
#define NAME_TRIES 20

struct mb {
	struct cli *cli;
	const char *verb;
	const char *arg[4]; /* "" where there is none */
	const char *self;   /* $AGENT_MAILBOX_ID, or "" */
	const char *id;     /* whose mailbox it is about */
};

static const char *
variable(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

static enum mr_rc
call(const struct mb *mb, const char *const *args, struct mr_str input, struct mr_error *err)
{
	mr_auto(free_ptr) char *text = NULL;
	size_t len = 0;

	TRY(mr_room_face(mb->cli->room, mb->verb, args, input.ptr, input.len, &text, &len, err));
	buf_add(&mb->cli->out, (struct mr_str){ text, len });
	return MR_OK;
}

static enum mr_rc
run_self(const struct mb *mb, struct mr_error *err)
{
	if (!mb->self[0])
		return call(mb, (const char *[]){ NULL }, STR(""), err);
	buf_adds(&mb->cli->out, mb->self);
	return MR_OK;
}

static enum mr_rc
run_send(const struct mb *mb, struct mr_error *err)
{
	mr_auto(buf_done) struct buf body = BUF_INIT;

	/* The whole body first: nothing is made for a message that cannot be sent. */
	TRY(cli_read(mb->arg[1], &body, err));
	mb->cli->changed = true;
	return call(mb, (const char *[]){ mb->arg[0], mb->id, mb->arg[2], mb->arg[3], NULL }, buf_str(&body), err);
}

static enum mr_rc
run_archive(const struct mb *mb, struct mr_error *err)
{
	enum mr_rc rc = call(mb, (const char *[]){ mb->arg[0], mb->id, NULL }, STR(""), err);

	if (rc == MR_OK && mb->cli->out.len == 0)
		cli_warn(mb->cli, "already archived, or never in the inbox: '%s'", mb->arg[0]);
	buf_clear(&mb->cli->out); /* the original says nothing */
	return rc;
}

/* "540", "1.5" */
static bool
milliseconds(const char *text, char ret[24])
{
	const char *dot = strchr(text, '.');
	uint64_t whole = 0, thousandths = 0;
	size_t digits = dot ? strlen(dot + 1) : 0;

	if (!str_to_u64((struct mr_str){ text, dot ? (size_t)(dot - text) : strlen(text) }, &whole) ||
	    whole > 1000000 || (dot && (digits > 3 || !str_to_u64(str_of(dot + 1), &thousandths))))
		return false;
	for (; digits < 3; digits++)
		thousandths *= 10;
	(void)snprintf(ret, 24, "%" PRIu64, whole * 1000 + thousandths);
	return true;
}

static enum mr_rc
run_wait(const struct mb *mb, struct mr_error *err)
{
	const char *seconds = mb->arg[0][0] ? mb->arg[0] : WAIT_SECONDS;
	char ms[24];

	if (!milliseconds(seconds, ms))
		return mr_fail(err, MR_REFUSED, "'%s' is not a number of seconds", seconds);
	return call(mb, (const char *[]){ ms, mb->id, NULL }, STR(""), err);
}

static enum mr_rc
run_register(const struct mb *mb, struct mr_error *err)
{
	const char *harness = variable("AGENT_HARNESS");
	enum mr_rc rc = MR_EXISTS;
	bool named = mb->arg[0][0];
	char made[16] = "agent-", pid[24];
	const char *name = named ? mb->arg[0] : made;

	if (!harness[0] && variable("CLAUDE_CODE")[0])
		harness = "claude";
	(void)snprintf(pid, sizeof(pid), "%ld", (long)getppid());
	for (int i = 0; rc == MR_EXISTS && i < (named ? 1 : NAME_TRIES); i++) {
		if (!named)
			random_hex(made + 6, 4);
		rc = call(mb, (const char *[]){ name, mb->id, harness, pid, NULL }, STR(""), err);
	}
	if (rc != MR_OK && rc != MR_EXISTS)
		return rc;
	buf_adds(&mb->cli->out, rc == MR_OK ? name : "collision");
	return MR_OK;
}

static const struct {
	const char *verb;
	int min, max;                                                 /* arguments */
	enum mr_rc (*run)(const struct mb *mb, struct mr_error *err); /* NULL: called with the id, or the argument */
	enum mr_rc silent; /* a result that is no error but a bare exit code 1 */
	enum {
		NO_ROOM,
		NOBODY,
		SELF,
		SELF_OR_FIRST,
		SELF_OR_SECOND
	} whose; /* mailbox: the caller's, or that of an argument */
} verbs[] = {
	{ "root", 0, 0, NULL, MR_OK, NO_ROOM },
	{ "dir", 1, 1, NULL, MR_OK, NO_ROOM },
	{ "resolve_self", 0, 0, run_self, MR_OK, NOBODY },
	{ "ensure_inbox", 0, 1, NULL, MR_OK, SELF_OR_FIRST },
	{ "send", 2, 4, run_send, MR_OK, SELF },
	{ "list", 0, 1, NULL, MR_OK, SELF_OR_FIRST },
	{ "archive", 1, 2, run_archive, MR_OK, SELF_OR_SECOND },
	{ "wait", 0, 2, run_wait, MR_EMPTY, SELF_OR_SECOND },
	{ "register", 0, 2, run_register, MR_OK, SELF_OR_SECOND },
	{ "lookup", 1, 1, NULL, MR_NOTFOUND, NOBODY },
	{ "names", 0, 0, NULL, MR_OK, NOBODY },
	{ "whois", 1, 1, NULL, MR_NOTFOUND, NOBODY },
};

int
cmd_mb(struct cli *cli)
{
	struct mb mb = { .cli = cli, .verb = cli->argv[0], .self = variable("AGENT_MAILBOX_ID") };
	const char *spec = spec_expand(cli, "handoff:");
	size_t i = 0, n = sizeof(verbs) / sizeof(verbs[0]);

	for (size_t k = 0; k < 4; k++)
		mb.arg[k] = cli->argc > (int)k + 1 ? cli->argv[k + 1] : "";
	while (i < n && strcmp(verbs[i].verb, mb.verb) != 0)
		i++;
	if (i == n)
		return cli_usage(cli, "mb has no verb '%s'", mb.verb);
	if (cli->argc - 1 < verbs[i].min || cli->argc - 1 > verbs[i].max)
		return cli_usage(cli, "mb %s takes %d to %d arguments", mb.verb, verbs[i].min, verbs[i].max);
	TRY_CLI(mr_got(spec, &cli->err));
	if (verbs[i].whose == NO_ROOM) { /* root, dir: where it would be */
		buf_adds(&cli->out, spec + strlen("handoff:"));
		if (verbs[i].max > 0)
			buf_addf(&cli->out, "/%s", mb.arg[0]);
		return EXIT_DONE;
	}
	TRY_CLI(mr_room_open(spec, NULL, &cli->room, &cli->err));
	/* The original makes up an id where none is known, which no agent would own: we refuse. */
	const char *given = verbs[i].whose == SELF_OR_FIRST    ? mb.arg[0]
			    : verbs[i].whose == SELF_OR_SECOND ? mb.arg[1]
							       : "";

	mb.id = given[0] ? given : mb.self;
	if (verbs[i].whose != NOBODY && !mb.id[0])
		TRY_CLI(mr_fail(&cli->err, MR_REFUSED,
		    "AGENT_MAILBOX_ID is not set, so '%s' does not know which mailbox is meant\n"
		    "export AGENT_MAILBOX_ID=$(mb_resolve_self) once, or the id that mb_lookup NAME prints",
		    mb.verb));
	const char *only = verbs[i].whose != NOBODY ? mb.id : verbs[i].max > 0 ? mb.arg[0] : NULL;
	enum mr_rc rc =
	    verbs[i].run ? verbs[i].run(&mb, &cli->err) : call(&mb, (const char *[]){ only, NULL }, STR(""), &cli->err);

	if (rc != MR_OK && rc == verbs[i].silent)
		return EXIT_FAILED;
	TRY_CLI(rc);
	return EXIT_DONE;
}

/* ---- generate-message ---- */

/* The body; from a file with CRLF and CR as LF, as in one that is read as text. */
static enum mr_rc
read_memo_body(const struct generate_message_options *o, struct buf *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int fd = o->body_file ? sys_open_user(o->body_file, 0) : -1; /* links and all */

	if (!o->body_file && o->body) {
		buf_adds(ret, o->body);
		return MR_OK;
	}
	if (!o->body_file)
		return file_read_fd(0, MEMO_MAX, ret, err) == MR_OK ? MR_OK : mr_wrap(err, "cannot read the body");
	if (fd < 0)
		return mr_fail_errno(err, "cannot open '%s'", o->body_file);
	if (file_read_fd(fd, MEMO_MAX, &text, err) != MR_OK)
		return mr_wrap(err, "cannot read '%s'", o->body_file);
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] != '\r')
			buf_addc(ret, text.ptr[i]);
		else if (i + 1 == text.len || text.ptr[i + 1] != '\n')
			buf_addc(ret, '\n');
	}
	return MR_OK;
}

enum mr_rc
cli_write_file(const char *path, struct mr_str bytes, struct mr_error *err)
{
	mr_auto(buf_done) struct buf folder = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	mr_auto(free_ptr) char *cwd = path[0] == '/' ? NULL : getcwd(NULL, 0);

	if (!name[0])
		return mr_fail(err, MR_REFUSED, "'%s' is the name of a folder", path);
	buf_addf(&folder, "%s/", cwd ? cwd : "");
	buf_add(&folder, (struct mr_str){ path, (size_t)(name - path) });
	TRY(mr_got(buf_ok(&folder), err));
	TRY(dir_make(AT_FDCWD, buf_z(&folder), 0755, false, &fd, err));
	return file_replace(fd, name, bytes, 0644, err);
}

static struct mr_str
str_or_empty(const char *text)
{
	return str_of(text ? text : "");
}

static enum mr_rc
generate(struct cli *cli, struct mr_error *err)
{
	const struct generate_message_options *o = cli->opts;
	mr_auto(buf_done) struct buf body = BUF_INIT, bytes = BUF_INIT;
	char fresh[MEMO_ID_LEN + 1]; /* a UUID of version 4 without its dashes */
	struct memo memo = { .request_id = str_or_empty(o->request_id),
		.is_reply = str_eq(str_or_empty(o->message_type), STR("REPLY")),
		.channel = str_or_empty(o->channel_id),
		.receiver = str_or_empty(o->receiver_inbox_path),
		.reply = str_or_empty(o->reply_inbox_path) };

	TRY(read_memo_body(o, &body, err));
	memo.body = buf_str(&body);
	if (!utf8_valid(memo.body))
		return mr_fail(err, MR_REFUSED, "the body is not UTF-8 text");
	random_hex(fresh, MEMO_ID_LEN);
	fresh[12] = '4';
	fresh[16] = "89ab"[fresh[16] & 3];
	if (memo.request_id.len == 0)
		memo.request_id = str_of(fresh);
	memo_write(&bytes, &memo);
	TRY(mr_got(buf_ok(&bytes), err));
	if (o->output)
		return cli_write_file(o->output, buf_str(&bytes), err);
	buf_add(&cli->out, buf_str(&bytes));
	return MR_OK;
}

int
cmd_generate_message(struct cli *cli, const struct generate_message_options *o)
{
	const struct {
		const char *name, *value;
	} valued[] = {
		{ "request-id", o->request_id },
		{ "channel-id", o->channel_id },
		{ "receiver-inbox-path", o->receiver_inbox_path },
		{ "reply-inbox-path", o->reply_inbox_path },
	};

	for (size_t i = 0; i < sizeof(valued) / sizeof(*valued); i++) {
		const char *problem = valued[i].value ? memo_value_problem(str_of(valued[i].value)) : NULL;

		if (problem)
			return cli_usage(cli, "the value of --%s %s", valued[i].name, problem);
	}
	TRY_CLI(generate(cli, &cli->err));
	return EXIT_DONE;
}
