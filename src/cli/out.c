/* SPDX-License-Identifier: MIT */
/*
 * out.c - stdout, stderr and the exit code. Text for stdout gathers in cli->out and is written in one go, so
 * that a command knows whether stdout took it before it marks anything (promise 9).
 */
#include <errno.h>
#include <poll.h>

#include "base/format.h"
#include "base/full.h"
#include "base/sys.h"
#include "cli/view.h"

int
exit_of(enum mr_rc rc)
{
	static const char codes[] = {
		[MR_OK] = EXIT_DONE,
		[MR_EMPTY] = EXIT_NOTHING,
		[MR_NOTFOUND] = EXIT_MISSING,
		[MR_REFUSED] = EXIT_REFUSED,
		[MR_UNTRUSTED] = EXIT_REFUSED,
		[MR_UNSUPPORTED] = EXIT_REFUSED,
		[MR_EXISTS] = EXIT_REFUSED,
		[MR_BUSY] = EXIT_REFUSED,
		[MR_INDOUBT] = EXIT_DOUBT,
	};

	return rc < sizeof(codes) ? codes[rc] : EXIT_FAILED; /* I/O, no space, no memory, a broken file */
}

static void
write_err(const struct buf *text)
{
	if (buf_ok(text)) /* an error on stderr cannot be reported anywhere */
		(void)sys_write_all(2, text->ptr, text->len);
}

void
cli_say(struct cli *cli, const struct buf *text)
{
	if (cli->sink)
		cli->sink->say(cli->sink->ctx, NULL, buf_z(text), "");
	else
		write_err(text);
}

/* Hints are written for mailroom's own commands. Does this one name an option that the command of gt at hand lacks? */
static bool
is_of_mailroom(const struct cli *cli, const char *hint)
{
	for (const char *p = hint, *part = hint; cli->gt && (p = strstr(p, "--")) != NULL;) {
		struct mr_str name = { p + 2, strspn(p + 2, "abcdefghijklmnopqrstuvwxyz-") };

		for (const char *semi = part; (semi = strchr(semi, ';')) != NULL && semi < p;)
			part = ++semi;
		const char *command = strstr(part, "mailroom "); /* an option behind it is its own */

		if (name.len > 0 && !(command && command < p) && !opt_find(cli, name, 0))
			return true;
		p += 2 + name.len;
	}
	return false;
}

/* Errors and warnings quote names, paths and lines of files, so all of their text goes through the fence; as JSON it
 * is a string. A warning has no code. */
static void
say(struct cli *cli, const char *code, const char *message, const char *hint)
{
	mr_auto(buf_done) struct buf line = BUF_INIT, fenced = BUF_INIT, next = BUF_INIT, own = BUF_INIT;

	if (is_of_mailroom(cli, hint)) {
		buf_addf(&own, "with mailroom's own command, not with gt: %s", hint);
		hint = buf_ok(&own) ? buf_z(&own) : hint;
	}
	if (cli->sink) {
		out_line(&fenced, message);
		out_line(&next, hint);
		cli->sink->say(cli->sink->ctx, code, buf_z(&fenced), buf_z(&next));
		return;
	}
	if (cli->json) {
		struct json j = JSON_INIT(&line);

		if (code)
			json_cells(&j, CELLS(kv_open(""), kv_open("error"), kv_str("code", code),
					   kv_str("message", message), kv_opt("hint", hint), kv_close(), kv_close()));
		else
			json_cells(&j, CELLS(kv_open(""), kv_str("warning", message), kv_close()));
	} else {
		buf_adds(&line, "mailroom: ");
		out_line(&line, message);
		buf_adds(&line, hint[0] ? "\n  hint: " : "");
		out_line(&line, hint);
	}
	buf_addc(&line, '\n');
	write_err(&line);
}

/* Inside a harness a refusal of the kernel is mostly its sandbox: then the setting that is missing is the
 * best hint. */
static const char *
sandbox_hint(const struct cli *cli, const struct mr_error *err)
{
	bool refused = err->sys_errno == EROFS || err->sys_errno == EACCES || err->sys_errno == EPERM;
	struct mr_str session = str_of(refused && cli->env.session ? cli->env.session : "");

	if (str_starts(session, "codex-"))
		return "if Codex's sandbox refuses it: add the room's folder to "
		       "sandbox_workspace_write.writable_roots in ~/.codex/config.toml";
	if (str_starts(session, "claude-code-"))
		return "if Claude Code's sandbox refuses it: add the room's folder to "
		       "sandbox.filesystem.allowWrite in .claude/settings.json";
	return NULL;
}

int
cli_fail(struct cli *cli, const struct mr_error *err)
{
	const char *hint = sandbox_hint(cli, err);

	if (full_missed && cli->command_line && err->code == MR_UNSUPPORTED)
		cli_hand_over_to_full(cli); /* nothing was printed or changed yet: it begins anew there */
	say(cli, mr_rc_word(err->code), err->message, hint ? hint : err->hint);
	return err->code == MR_OK ? EXIT_FAILED
				  : exit_of(err->code); /* a failure whose reason was lost is one all the same */
}

int
cli_usage(struct cli *cli, const char *fmt, ...)
{
	char message[400], hint[80];
	va_list args;

	va_start(args, fmt);
	format_print(message, sizeof(message), fmt, args);
	va_end(args);
	if (cli->cmd && !cli->cmd->hidden)
		(void)snprintf(hint, sizeof(hint), "mailroom %s --help", cli->cmd->name);
	else
		(void)snprintf(hint, sizeof(hint), "mailroom --help");
	say(cli, "usage", message, hint);
	return EXIT_USAGE;
}

void
cli_warn(struct cli *cli, const char *fmt, ...)
{
	char message[700];
	va_list args;

	va_start(args, fmt);
	format_print(message, sizeof(message), fmt, args);
	va_end(args);
	say(cli, NULL, message, "");
}

void
cli_warn_each(struct cli *cli, const struct mr_names *warnings)
{
	for (size_t i = 0; i < warnings->n; i++)
		cli_warn(cli, "%s", warnings->v[i]);
}

/* A harness may pass a pipe that does not block. A full pipe is then a reason to wait, not an error. */
int
out_write(const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t did = sys_write(1, bytes, n);

		if (did < 0) {
			struct pollfd ready = { .fd = 1, .events = POLLOUT };

			if (errno != EAGAIN || poll(&ready, 1, -1) < 0)
				return -1;
			continue;
		}
		bytes += did;
		n -= (size_t)did;
	}
	return 0;
}

bool
cli_flush(struct cli *cli)
{
	struct mr_error err = { 0 };
	const char *id = cli->done_id, *reason = "out of memory";

	if (!cli->out.failed) {
		if (cli->out.len == 0)
			return true;
		bool taken = cli->sink ? cli->sink->take(cli->sink->ctx, cli, buf_str(&cli->out))
				       : out_write(cli->out.ptr, cli->out.len) == 0;

		reason = strerror(cli->sink ? EPIPE : errno);
		buf_cut(&cli->out, 0);
		if (taken)
			return true;
	}
	/* What was done stays done when its answer gets lost: a send that is repeated then is sent twice. */
	if (cli->changed)
		(void)mr_fail(&err, MR_INDOUBT,
		    "it was done%s%s%s, but stdout did not take the answer: %s\ndo not repeat it", id ? " (" : "",
		    id ? id : "", id ? ")" : "", reason);
	else if (cli->out.failed)
		(void)mr_nomem(&err);
	else
		(void)mr_fail(&err, MR_IO, "stdout did not take the output: %s\n%s", reason,
		    cli->cmd && command_changes(cli->cmd, cli->subword)
			? "a part of it may be done: look before you repeat it"
			: "what was not shown was not marked either; run the command again");
	(void)cli_fail(cli, &err);
	return false;
}

void
out_json_line(struct cli *cli, struct json *j)
{
	while (j->depth > 0)
		json_close(j);
	j->comma = false;
	buf_addc(&cli->out, '\n');
}

struct said
counted(size_t n, const char *noun)
{
	struct said said;
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%zu", n), at = 0;

	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			said.text[at++] = ',';
		said.text[at++] = digits[i];
	}
	(void)snprintf(said.text + at, sizeof(said.text) - (size_t)at, " %s%s", noun, n == 1 ? "" : "s");
	return said;
}

struct said
lasting(int64_t ms)
{
	struct said said;

	duration_text(ms, said.text);
	return said;
}

struct said
dated(int64_t ms)
{
	struct said said;

	time_rfc3339(ms, said.text);
	return said;
}

void
out_fact(struct cli *cli, struct buf *out, const char *indent, int width, const char *name, const char *value)
{
	if (!value[0])
		return;
	buf_addf(out, "%s%-*s ", indent, width, name);
	out_styled(cli, out, STYLE_PLAIN, value);
	buf_addc(out, '\n');
}

unsigned
out_form(const struct cli *cli, enum fence_form form)
{
	return form | (cli->out_tty ? FENCE_PERSON : 0U);
}

void
out_names(struct buf *out, const char *indent, const struct mr_names *names)
{
	for (size_t i = 0; i < names->n; i++) {
		buf_adds(out, indent);
		fence_name(out, names->v[i]);
		buf_addc(out, '\n');
	}
}

void
out_fenced(struct cli *cli, const struct buf *lines)
{
	char mark[FENCE_MARK_LEN + 1];

	cli->out.failed |= lines->failed;
	fence_mark(mark);
	if (!cli->out_tty)
		fence_open(&cli->out, mark);
	buf_add(&cli->out, buf_str(lines));
	if (!cli->out_tty)
		fence_close(&cli->out, mark);
}

void
out_colored(struct cli *cli, struct buf *out, enum style style, struct mr_str fenced)
{
	static const char *const codes[] = { "", "1", "2", "31", "33", "32" };
	bool on = cli->color && style != STYLE_PLAIN;

	if (on)
		buf_addf(out, "\033[%sm", codes[style]);
	buf_add(out, fenced);
	if (on)
		buf_adds(out, "\033[0m");
}

void
out_line(struct buf *out, const char *text)
{
	(void)fence_add(out, str_of(text), FENCE_LINE, 0);
}

void
out_styled(struct cli *cli, struct buf *out, enum style style, const char *text)
{
	char first[200];
	mr_auto(buf_done) struct buf fenced = BUF_IN(first);

	(void)fence_add(&fenced, str_of(text), out_form(cli, FENCE_LINE), 0);
	out_colored(cli, out, style, buf_str(&fenced));
	out->failed |= fenced.failed;
}
