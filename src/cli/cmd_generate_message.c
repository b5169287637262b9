/* SPDX-License-Identifier: MIT */
/*
 * cmd_generate_message.c - `mailroom generate-message`, behind share/mailroom/generate_message: the bytes of a message
 * for a workspace mailbox, from options. It delivers nothing and looks at no room. See mailroom-workspace(5).
 */
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/text.h"
#include "cli/cli.h"
#include "message/memo.h"
#include "helptext.h"
#include <fcntl.h>
#include <unistd.h>

/* CRLF and CR become LF, as in a file that is read as text. */
static void
add_as_lines(struct buf *out, struct mr_str text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] != '\r')
			buf_addc(out, text.ptr[i]);
		else if (i + 1 == text.len || text.ptr[i + 1] != '\n')
			buf_addc(out, '\n');
	}
}

static enum mr_rc
read_stdin(struct buf *ret, struct mr_error *err)
{
	return file_read_fd(0, MEMO_MAX, ret, err) == MR_OK ? MR_OK : mr_wrap(err, "cannot read the body");
}

/* The user's own file, links and all. */
static enum mr_rc
read_file(const char *path, struct buf *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int fd = sys_open_user(path, 0);

	if (fd < 0)
		return mr_fail_errno(err, "cannot open '%s'", path);
	if (file_read_fd(fd, MEMO_MAX, &text, err) != MR_OK)
		return mr_wrap(err, "cannot read '%s'", path);
	add_as_lines(ret, buf_str(&text));
	return MR_OK;
}

static enum mr_rc
read_body(struct cli *cli, struct buf *ret, struct mr_error *err)
{
	const struct generate_message_options *o = cli->opts;
	const char *text = o->body, *file = o->body_file;

	if (file)
		return read_file(file, ret, err);
	if (!text)
		return read_stdin(ret, err);
	buf_adds(ret, text);
	return MR_OK;
}

/* Its folders are made. Whole or not at all, unlike a plain write: somebody may watch that folder. */
static enum mr_rc
write_output(const char *path, struct mr_str bytes, struct mr_error *err)
{
	mr_auto(buf_done) struct buf folder = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	mr_auto(free_ptr) char *cwd = path[0] == '/' ? NULL : getcwd(NULL, 0);

	if (!name[0])
		return mr_fail(err, MR_REFUSED, "'%s' is the name of a folder", path);
	buf_addf(&folder, "%s/", cwd ? cwd : "");
	buf_add(&folder, (struct mr_str){ path, (size_t)(name - path) });
	if (!buf_ok(&folder))
		return mr_nomem(err);
	TRY(dir_make(AT_FDCWD, buf_z(&folder), 0755, false, &fd, err));
	return file_replace(fd, name, bytes, 0644, err);
}

static int
check_options(struct cli *cli)
{
	const struct generate_message_options *o = cli->opts;
	const char *type = o->message_type;
	const struct {
		const char *name, *value;
	} valued[] = {
		{ "request-id", o->request_id },
		{ "channel-id", o->channel_id },
		{ "receiver-inbox-path", o->receiver_inbox_path },
		{ "reply-inbox-path", o->reply_inbox_path },
	};

	if (!o->receiver_inbox_path || !o->reply_inbox_path)
		return cli_usage(
		    cli, "--receiver-inbox-path and --reply-inbox-path are both needed; they may be empty");
	if (type && strcmp(type, "NEW") != 0 && strcmp(type, "REPLY") != 0)
		return cli_usage(cli, "--message-type is NEW or REPLY, not '%s'", type);
	if (o->body && o->body_file)
		return cli_usage(cli, "--body and --body-file are both given; the text comes from one place");
	for (size_t i = 0; i < sizeof(valued) / sizeof(*valued); i++) {
		const char *problem = valued[i].value ? memo_value_problem(str_of(valued[i].value)) : NULL;

		if (problem)
			return cli_usage(cli, "the value of --%s %s", valued[i].name, problem);
	}
	return EXIT_DONE;
}

static struct mr_str
str_or_empty(const char *text)
{
	return str_of(text ? text : "");
}

/* A UUID of version 4 without its dashes. */
static void
new_id(char ret[MEMO_ID_LEN + 1])
{
	random_hex(ret, MEMO_ID_LEN);
	ret[12] = '4';
	ret[16] = "89ab"[ret[16] & 3];
}

static enum mr_rc
compose(const struct cli *cli, struct mr_str body, struct buf *out, struct mr_error *err)
{
	char fresh[MEMO_ID_LEN + 1];
	const struct generate_message_options *o = cli->opts;
	struct memo memo = { .request_id = str_or_empty(o->request_id),
		.is_reply = str_eq(str_or_empty(o->message_type), STR("REPLY")),
		.channel = str_or_empty(o->channel_id),
		.receiver = str_or_empty(o->receiver_inbox_path),
		.reply = str_or_empty(o->reply_inbox_path),
		.body = body };

	if (!utf8_valid(body))
		return mr_fail(err, MR_REFUSED, "the body is not UTF-8 text");
	new_id(fresh);
	if (memo.request_id.len == 0)
		memo.request_id = str_of(fresh);
	memo_write(out, &memo);
	return buf_ok(out) ? MR_OK : mr_nomem(err);
}

int
cmd_generate_message(struct cli *cli)
{
	const struct generate_message_options *o = cli->opts;
	mr_auto(buf_done) struct buf body = BUF_INIT, bytes = BUF_INIT;
	struct mr_error err = { 0 };
	const char *output = o->output;
	int exit = check_options(cli);

	if (exit != EXIT_DONE)
		return exit;
	enum mr_rc rc = read_body(cli, &body, &err);

	if (rc == MR_OK)
		rc = compose(cli, buf_str(&body), &bytes, &err);
	if (rc == MR_OK && output)
		rc = write_output(output, buf_str(&bytes), &err);
	if (rc != MR_OK)
		return cli_fail(cli, &err);
	if (!output)
		buf_add(&cli->out, buf_str(&bytes));
	return EXIT_DONE;
}
