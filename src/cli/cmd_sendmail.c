/* SPDX-License-Identifier: MIT */
/* cmd_sendmail.c - mailroom sendmail: the message of a mail program through the same mr_send as all other mail. */
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "draft.h"
#include "helptext.h"
#include "message/address.h"
#include "message/message.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sysexits.h>
#include <unistd.h>

#define SPOOL_MAX ((uint64_t)128 << 20) /* 64 MiB of attachments and their text, encoded */

int
sendmail_exit(int code)
{
	static const int codes[] = { [EXIT_DONE] = EX_OK,
		[EXIT_FAILED] = EX_TEMPFAIL,
		[EXIT_USAGE] = EX_USAGE,
		[EXIT_NOTHING] = EX_TEMPFAIL,
		[EXIT_REFUSED] = EX_NOPERM,
		[EXIT_MISSING] = EX_CONFIG, /* of the command itself: no room, no identity */
		[EXIT_DOUBT] = EX_OK };     /* accepted: a second try would send it twice */

	return code < (int)(sizeof(codes) / sizeof(codes[0])) ? codes[code] : code;
}

/* ---- The message ---- */

/* Stdin as a file that can be read at any place: itself, or a copy without a name. */
static enum mr_rc
open_input(struct staged *spool, int *ret_fd, struct mr_error *err)
{
	const char *tmp = env_get("TMPDIR");
	mr_auto(sys_close_fd) int dir_fd = -1;
	mr_auto(free_ptr) char *piece = malloc(65536);
	uint64_t total = 0;
	struct stat st;

	*ret_fd = STDIN_FILENO;
	if (sys_stat_fd(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode) && lseek(STDIN_FILENO, 0, SEEK_CUR) == 0)
		return MR_OK;
	TRY(mr_got(piece, err));
	dir_fd = sys_open(AT_FDCWD, tmp && tmp[0] == '/' ? tmp : "/tmp", O_RDONLY | O_DIRECTORY, 0);
	if (dir_fd < 0)
		return mr_fail_errno(err, "cannot open the folder for temporary files");
	TRY(stage_open(spool, dir_fd, dir_fd, 0600, err));
	for (;;) {
		ssize_t got = sys_read(STDIN_FILENO, piece, 65536);

		if (got < 0)
			return mr_fail_errno(err, "cannot read the message");
		if (got == 0)
			break;
		total += (uint64_t)got;
		if (total > SPOOL_MAX)
			return mr_fail(err, MR_REFUSED, "the message is longer than 128 MiB");
		TRY(stage_write(spool, (struct mr_str){ piece, (size_t)got }, err));
	}
	*ret_fd = spool->fd;
	if (lseek(spool->fd, 0, SEEK_SET) < 0)
		return mr_fail_errno(err, "cannot read the message again");
	return MR_OK;
}

/* ---- An SMTP server that hands the message over ---- */

#define GONE_MS 200 /* a process that ends closes its pipes a moment before it is nobody's parent any more */
#define GONE_LOOK_MS 10

/* msmtpd waits for the command after a whole message. When its client breaks off, it ends, and the end of what it
 * wrote looks like the end of the message. */
static bool
server_stays(pid_t server)
{
	int64_t end_ms = clock_boot_ms() + GONE_MS;

	while (getppid() == server && getsid(server) == getsid(0)) {
		if (clock_boot_ms() >= end_ms)
			return true;
		(void)poll(NULL, 0, GONE_LOOK_MS);
	}
	return false;
}

/* A client that got no answer sends the same message again. "" without a Message-ID. */
static enum mr_rc
submitted_key(const struct mr_message *msg, const struct mr_draft *draft, char ret[65], struct mr_error *err)
{
	const char *const *lists[] = { draft->to, draft->cc }, *const * one;
	const char *id = mr_message_header(msg, "Message-ID");
	mr_auto(mr_names_done) struct mr_names all = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;

	ret[0] = '\0';
	if (!id || !*id)
		return MR_OK;
	for (size_t i = 0; i < 2; i++)
		for (one = lists[i]; *one; one++)
			TRY(mr_got(names_add(&all, str_of(*one)), err));
	names_sort(&all);
	buf_addf(&text, "%s\n", id);
	for (size_t i = 0; i < all.n; i++)
		buf_addf(&text, "%s\n", all.v[i]);
	TRY(mr_got(buf_ok(&text), err));
	sha256_hex(buf_str(&text), ret);
	return MR_OK;
}

/* ---- Recipients ---- */

struct recipients {
	struct mr_names names;
	const char *room; /* what stands behind @ of its own agents */
	bool failed;
};

static void
recipients_done(struct recipients *l)
{
	mr_names_done(&l->names);
}

static void
add_recipient(struct recipients *l, struct mr_str address)
{
	struct mr_str agent, room;

	address_split(address, &agent, &room);
	bool here = agent.len > 0 && str_caseeq(room, str_of(l->room));

	l->failed |= !names_add(&l->names, here ? agent : address);
}

static void
add_recipients(struct recipients *l, const char *addresses)
{
	struct address_list list = address_list(str_of(addresses));

	for (struct mr_str one; !l->failed && address_next(&list, &one);)
		add_recipient(l, one);
}

static bool
names(const struct mr_names *list, const char *one)
{
	for (size_t i = 0; i < list->n; i++)
		if (ascii_caseeq(list->v[i], one))
			return true;
	return false;
}

static enum mr_rc
sort_recipients(const struct mr_message *msg, const struct recipients *given, struct recipients *to,
    struct recipients *cc, struct mr_error *err)
{
	const char *blind = mr_message_header(msg, "Bcc");
	size_t n = given->names.n;

	for (size_t i = 0; n == 0 && i < msg->to.n; i++)
		add_recipient(to, str_of(msg->to.v[i]));
	for (size_t i = 0; n == 0 && i < msg->cc.n; i++)
		add_recipient(cc, str_of(msg->cc.v[i]));
	for (size_t i = 0; i < n; i++) {
		const char *one = given->names.v[i];
		bool first = names(&msg->to, one), copy = names(&msg->cc, one) && !first;

		if (msg->to.n + msg->cc.n > 0 && !copy && !first)
			blind = one;
		add_recipient(copy ? cc : to, str_of(one));
	}
	if (blind && *blind)
		return mr_fail(err, MR_UNSUPPORTED,
		    "blind copies are not supported: '%.100s' is in neither To nor Cc\nname every recipient there",
		    blind);
	if (to->names.n == 0 && cc->names.n > 0) { /* mail to nobody but copies */
		struct recipients swap = *to;

		*to = *cc;
		*cc = swap;
	}
	return given->failed || to->failed || cc->failed ? mr_nomem(err) : MR_OK;
}

/* The caller is the sender. A name of this room that is not the caller's is no slip of a mail program. */
static enum mr_rc
check_sender(struct cli *cli, const char *claimed, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	mr_auto(recipients_done) struct recipients one = { .room = mr_room_name(cli->room) };

	add_recipients(&one, claimed);
	if (one.names.n == 0 || ascii_caseeq(one.names.v[0], cli->self.agent) || strchr(one.names.v[0], '@') ||
	    mr_agent_get(cli->room, one.names.v[0], &agent, IGNORED) != MR_OK)
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "'%.100s' is another agent: you are '%s'\nset From to that name, or give --as",
	    claimed, cli->self.agent);
}

/* ---- All of it ---- */

/* Further headers; those of transport, and what is written anew, are left out. */
static const struct mr_header *
kept_headers(struct cli *cli, const struct mr_message *msg, size_t *ret_n)
{
	static const char left_out[] =
	    "References Bcc Return-Path Received Sender X-Priority Importance Status Lines Fcc";
	struct mr_header *kept = arena_alloc(&cli->own, (msg->headers_n + 1) * sizeof(*kept));

	for (size_t i = 0; kept && i < msg->headers_n && *ret_n < 50; i++) {
		struct mr_str name = str_of(msg->headers[i].name);

		if (msg->headers[i].value[0] && !message_header_reserved(name) && !str_is_among(name, left_out, " "))
			kept[(*ret_n)++] = msg->headers[i];
	}
	return kept;
}

static enum mr_rc
send_it(struct cli *cli, const struct mr_message *msg, struct mr_draft *draft, struct mr_receipt *receipt,
    struct mr_error *err)
{
	const struct sendmail_options *o = cli->opts;
	mr_auto(recipients_done) struct recipients given = { .room = mr_room_name(cli->room) }, to = given, cc = given;
	mr_auto(mr_message_done) struct mr_message answered = { 0 };
	char key[65] = "";

	for (int i = 0; i < cli->argc; i++)
		add_recipients(&given, cli->argv[i]);
	if (!o->headers && given.names.n == 0)
		return mr_fail(
		    err, MR_NOTFOUND, "there are no recipients\nname them, or give -t to take them from To and Cc");
	TRY(sort_recipients(msg, &given, &to, &cc, err));
	TRY(check_sender(cli, o->from ? o->from : msg->from, err));
	if (!msg->content && str_trim_end((struct mr_str){ msg->body, msg->body_len }).len == 0)
		return mr_fail(err, MR_CORRUPT, "the message has no text");
	if (to.names.n == 0)
		return mr_fail(err, MR_NOTFOUND, "neither To nor Cc names a recipient");
	draft->to = names_list(&to.names);
	draft->cc = names_list(&cc.names);
	draft->subject = msg->subject[0] ? msg->subject : NULL;
	draft->body = msg->body;
	draft->body_len = msg->body_len;
	draft->priority = msg->priority;
	draft->headers = kept_headers(cli, msg, &draft->headers_n);
	draft->mime = msg->content ? msg : NULL;
	if (id_valid(str_of(msg->reply_to)) &&
	    mr_fetch(cli->room, cli->self.agent, msg->reply_to, &answered, IGNORED) == MR_OK)
		draft->reply_to = msg->reply_to;
	enum mr_rc rc = o->submitted ? submitted_key(msg, draft, key, err) : MR_OK;

	draft->key = key[0] ? key : NULL;
	if (rc == MR_OK)
		rc = mr_send(cli->room, &cli->self, draft, receipt, err);
	if (rc == MR_UNSUPPORTED && draft->key) { /* a room without send keys */
		draft->key = NULL;
		rc = mr_send(cli->room, &cli->self, draft, receipt, err);
	}
	draft->to = draft->cc = NULL; /* they end here, and so does the key */
	draft->key = NULL;
	return rc;
}

int
cmd_sendmail(struct cli *cli, const struct sendmail_options *o)
{
	mr_auto(stage_done) struct staged spool = STAGED_INIT;
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	struct mr_draft draft = { 0 };
	pid_t server = getppid();
	int fd = -1;

	if (o->mode && strcmp(o->mode, "m") != 0)
		return cli_usage(cli, "this sendmail has no mode -b%s: it sends the message on stdin", o->mode);
	enum mr_rc rc = open_input(&spool, &fd, &cli->err);
	int code = rc == MR_REFUSED ? EX_DATAERR : EX_TEMPFAIL;

	if (rc == MR_OK && o->submitted && !server_stays(server))
		rc = mr_fail(&cli->err, MR_IO,
		    "the submitting program has ended, and the message may be incomplete: it was not sent");
	if (rc == MR_OK) {
		rc = mr_message_read(fd, mr_room_name(cli->room), &msg, &cli->err);
		code = EX_DATAERR;
	}
	if (rc != MR_OK) {
		(void)cli_fail(cli, &cli->err);
		return code;
	}
	rc = send_it(cli, &msg, &draft, &receipt, &cli->err);
	if (rc == MR_OK && draft.reply_to)
		draft_note_limited(cli, &receipt);
	draft.subject = msg.subject;
	code = draft_report(cli, &draft, rc, &receipt, &cli->err);

	if (rc == MR_OK || rc == MR_INDOUBT)
		return code;
	return rc == MR_NOTFOUND                          ? EX_NOUSER
	       : rc == MR_UNSUPPORTED || rc == MR_CORRUPT ? EX_DATAERR
							  : sendmail_exit(exit_of(rc));
}
