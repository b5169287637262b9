/* SPDX-License-Identifier: MIT */
/* body.c - where the text of a message comes from: -m, -f, or stdin when that is a pipe or a file. */
#include <errno.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "cli/cli.h"

/* Stops one byte after the limit: an endless pipe must not fill the memory before it is refused. */
static enum mr_rc
read_limited(int fd, const char *what, struct buf *ret, struct mr_error *err)
{
	for (;;) {
		if (!buf_reserve(ret, 65536))
			return mr_nomem(err);
		ssize_t got = sys_read(fd, ret->ptr + ret->len, 65536);
		if (got < 0)
			return mr_fail_errno(err, "cannot read '%s'", what);
		if (got == 0)
			return MR_OK;
		ret->len += (size_t)got;
		ret->ptr[ret->len] = '\0';
		if (ret->len > MR_BODY_MAX)
			return mr_fail(err, MR_REFUSED,
			    "the body from '%s' is longer than 16 MiB\nput it in a file that the recipient can read, and mail the path",
			    what);
	}
}

static enum mr_rc
read_file(const char *path, struct buf *ret, struct mr_error *err)
{
	/* The user's own file, links and all: not a name in a room. */
	mr_auto(sys_close_fd) int fd = sys_open_user(path, 0);

	if (fd < 0 && errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "there is no file '%s'", path);
	if (fd < 0)
		return mr_fail_errno(err, "cannot open '%s'", path);
	return read_limited(fd, path, ret, err);
}

bool
cli_stdin_has_text(void)
{
	struct stat st;

	return sys_stat_fd(0, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode));
}

static int
no_body(struct cli *cli)
{
	cli_usage(cli, "there is no text to send: give it on stdin, with -m TEXT or with -f FILE");
	if (!cli->json && cli->cmd->help->examples && cli->cmd->help->examples[0]) {
		mr_auto(buf_done) struct buf text = BUF_INIT;

		buf_addf(&text, "  for example:\n%s\n", cli->cmd->help->examples[0]);
		if (buf_ok(&text))
			cli_say(cli, &text);
	}
	return EXIT_USAGE;
}

int
cli_body(struct cli *cli, const char *text, const char *file, struct buf *ret)
{
	struct mr_error err = { 0 };
	mr_auto(buf_done) struct buf body = BUF_INIT;
	enum mr_rc rc = MR_OK;

	if (text && file)
		return cli_usage(cli, "-m and -f are both given; the text comes from one place");
	if (text)
		buf_adds(&body, text);
	else if (file && strcmp(file, "-") != 0)
		rc = read_file(file, &body, &err);
	else if (file || cli_stdin_has_text())
		rc = read_limited(0, "stdin", &body, &err);
	else
		return no_body(cli);
	if (rc == MR_OK && body.failed)
		rc = mr_nomem(&err);
	if (rc == MR_OK && body.len > MR_BODY_MAX)
		rc = mr_fail(&err, MR_REFUSED, "the body is longer than 16 MiB");
	if (rc == MR_OK && body.len == 0) {
		(void)mr_fail(&err, MR_REFUSED, "the body is empty");
		rc = mr_hint(&err, "give the text with -m TEXT, with -f FILE, or on stdin with -f - (<<'EOF')");
	}
	if (rc != MR_OK)
		return cli_fail(cli, &err);
	buf_done(ret);
	*ret = body;
	body = BUF_INIT;
	return EXIT_DONE;
}
