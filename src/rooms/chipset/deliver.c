/* SPDX-License-Identifier: MIT */
/*
 * deliver.c - sending. The name of a message is its time and its sender, so a name that is taken means another time:
 * a millisecond later, and the text is written anew. One sender's times in one mailbox only grow, also when the clock
 * is set back. Nothing is ever written over, and no name of ours is one that others truncate.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/text.h"
#include "message/message.h"
#include "rooms/chipset/chipset.h"
#include <errno.h>
#include <stdio.h>

#define STALE_MS ((int64_t)60 * 60 * 1000)
#define STALE_MAX 8 /* removed with one send */

struct sending {
	struct mr_room *room;
	struct delivery *what;
	struct delivered *ret;
	char from[CHIPSET_ID_MAX + 1];
	int64_t ms; /* the time that is tried next */
	char name[CHIPSET_NAME_MAX + 1];
	char imported[MR_ID_LEN + 1]; /* the id that it came with; "": it is no import */
};

/* ---- What can be refused before anything is visible ---- */

static bool
thread_is_own(const struct mr_message *msg)
{
	char answered[MR_ID_LEN + 1];

	if (!msg->thread || !msg->thread[0] || strcmp(msg->thread, msg->id) == 0)
		return true;
	return chipset_name_id(str_of(msg->reply_to), answered) && strcmp(msg->thread, answered) == 0;
}

static bool
has_extra_headers(const struct mr_message *msg)
{
	for (size_t i = 0; i < msg->headers_n; i++)
		if (!message_header_reserved(str_of(msg->headers[i].name)) &&
		    !ascii_caseeq(msg->headers[i].name, "References"))
			return true;
	return false;
}

static bool
is_text(const struct mr_message *msg)
{
	return !msg->body || utf8_valid((struct mr_str){ msg->body, msg->body_len });
}

unsigned
chipset_lacks(struct mr_room *room, const struct mr_message *msg)
{
	unsigned lacks = 0;

	(void)room;
	lacks |= msg->cc.n > 0 ? FIELD_CC : 0;
	lacks |= msg->to.n > 1 ? FIELD_TO : 0;
	lacks |= msg->priority == MR_HIGH ? FIELD_PRIORITY : 0;
	lacks |= thread_is_own(msg) ? 0 : FIELD_THREAD;
	lacks |= msg->reply_to[0] && !chipset_name_plain(str_of(msg->reply_to)) ? FIELD_REPLY_TO : 0;
	lacks |= msg->by_ms != 0 ? FIELD_BY : 0;
	lacks |= has_extra_headers(msg) ? FIELD_HEADERS : 0;
	lacks |= is_text(msg) ? 0 : FIELD_BINARY;
	return lacks;
}

static enum mr_rc
check_text(const struct mr_message *msg, struct mr_error *err)
{
	if (is_text(msg) && utf8_valid(str_of(msg->subject)) && utf8_valid(str_of(msg->type)))
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "the message is no text (UTF-8), and a chipset room holds nothing else\nput it into a file and send its path");
}

static enum mr_rc
make_bytes(const struct sending *s, const char *to, struct buf *out, struct mr_error *err)
{
	const struct mr_message *msg = s->what->msg;
	char own[MR_ID_LEN + 1];
	struct chipset_words words = { .from = s->from, .to = to, .ms = s->ms, .imported = "" };

	if (s->imported[0]) {
		/* Where the name alone says who it is, as between two rooms of this kind, nothing need be added. */
		id_from_name(s->ms, str_of(s->name), own);
		words.imported = strcmp(own, s->imported) == 0 ? "" : s->imported;
		words.read = msg->flags & MR_SEEN;
	}
	chipset_write(out, msg, &words);
	if (!buf_ok(out))
		return mr_nomem(err);
	if (out->len <= CHIPSET_MESSAGE_MAX)
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "the message has %zu bytes: at most %zu (64 KiB) are allowed in a chipset room\n"
	    "put it into a file and send its path",
	    out->len, CHIPSET_MESSAGE_MAX);
}

static enum mr_rc
check_all(struct sending *s, struct mr_error *err)
{
	enum mr_rc rc = chipset_id(s->what->msg->from, s->from, err);

	if (rc != MR_OK)
		return mr_wrap(err, "the sender");
	rc = check_text(s->what->msg, err);
	for (size_t i = 0; i < s->what->to->n && rc == MR_OK; i++) {
		mr_auto(buf_done) struct buf bytes = BUF_INIT;
		char to[CHIPSET_ID_MAX + 1];

		rc = chipset_id(s->what->to->v[i], to, err);
		if (rc == MR_OK)
			rc = make_bytes(s, to, &bytes, err);
	}
	return rc;
}

/* ---- One walk through the mailbox: the newest of this sender, and what crashes left ---- */

/* A temporary file of ours that no ticket tells of. */
static bool
may_be_stale(struct mr_str name)
{
	return str_ends(name, ".tmp") &&
	       (str_starts(name, CHIPSET_MARK_PREFIX) || str_starts(name, "mr-") || str_starts(name, FILE_VOID));
}

struct walk {
	struct sending *s;
	char stale[STALE_MAX][64];
	size_t stale_n;
};

static bool
look_at(void *ctx, const struct dir_entry *entry)
{
	struct walk *w = ctx;
	struct mr_str name = str_of(entry->name);
	struct chipset_name parts;

	if (chipset_name_parse(name, &parts)) {
		if (str_eq(parts.sender, str_of(w->s->from)) && parts.ms >= w->s->ms)
			w->s->ms = parts.ms + 1;
	} else if (may_be_stale(name) && w->stale_n < STALE_MAX && name.len < sizeof w->stale[0]) {
		memcpy(w->stale[w->stale_n++], name.ptr, name.len + 1);
	}
	return true;
}

/* By the time of the last change of name: an exchanged file has the old message's own time. */
static bool
is_stale(int box_fd, const char *name)
{
	struct stat st;

	if (str_starts(str_of(name), FILE_VOID))
		return file_void_is_old(box_fd, name);
	return sys_stat(box_fd, name, &st) == 0 && S_ISREG(st.st_mode) &&
	       clock_now_ms() - (int64_t)st.st_ctim.tv_sec * 1000 > STALE_MS;
}

static void
remove_stale(int box_fd, const struct walk *w)
{
	for (size_t i = 0; i < w->stale_n; i++)
		if (is_stale(box_fd, w->stale[i]))
			(void)sys_unlink(box_fd, w->stale[i]);
}

static enum mr_rc
walk_box(struct sending *s, const char *address, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct walk w = { .s = s };
	char to[CHIPSET_ID_MAX + 1];
	enum mr_rc rc = chipset_id(address, to, err);

	if (rc == MR_OK)
		rc = chipset_box_make(chipset_of(s->room), to, MR_INBOX, &fd, err);
	if (rc == MR_OK && !s->imported[0])
		rc = dir_each(fd, look_at, &w, err);
	if (rc == MR_OK)
		remove_stale(fd, &w);
	return rc == MR_OK ? rc : mr_wrap(err, "the mailbox of '%s'", address);
}

/* ---- Publishing ---- */

/* The other programs never look into the archive, but an id must not be there twice. */
static bool
is_archived(int box_fd, const char *name)
{
	mr_auto(sys_close_fd) int archive = -1;
	struct mr_error ignored = { 0 };
	struct stat st;

	return dir_open(box_fd, "archive", &archive, &ignored) == MR_OK && sys_stat(archive, name, &st) == 0;
}

static void
fill_in(const struct sending *s, struct delivered *ret)
{
	id_from_name(s->ms, str_of(s->name), ret->id);
	(void)snprintf(ret->spoken, sizeof ret->spoken, "%s", s->name);
}

/* For whoever must know after a kill: the temporary name is there until the rename that publishes. */
static enum mr_rc
publish_staged(struct sending *s, int box_fd, const char *to, struct mr_str bytes, struct mr_error *err)
{
	char random[17], temporary[64], ticket[ROOM_TICKET_MAX + 1];

	random_hex(random, 16);
	(void)snprintf(temporary, sizeof temporary, "%s%s.tmp", FILE_CARRY, random);
	(void)snprintf(ticket, sizeof ticket, "%s/%s", to, temporary);
	enum mr_rc rc = file_prepare(box_fd, temporary, bytes, chipset_file_mode(box_fd), 0, err);

	if (rc != MR_OK)
		return rc == MR_EXISTS ? mr_fail(err, MR_BUSY, "'%s' is there already", temporary) : rc;
	/* Whoever notes the ticket notes what the message will be called. */
	fill_in(s, s->ret);
	memcpy(s->what->msg->id, s->ret->id, sizeof s->ret->id);
	rc = s->what->staged(s->what->staged_ctx, ticket, err);
	/* After an error the temporary file stays: gone, it would say that it was published. settle_ticket puts it
	 * aside. */
	return rc == MR_OK ? file_prepared_publish(box_fd, temporary, box_fd, s->name, err) : rc;
}

static enum mr_rc
publish_once(struct sending *s, int box_fd, const char *to, struct mr_error *err)
{
	mr_auto(buf_done) struct buf bytes = BUF_INIT;

	chipset_name_make(s->ms, s->from, s->name);
	if (is_archived(box_fd, s->name))
		return mr_fail(err, MR_EXISTS, "'%s' is in the archive", s->name);

	TRY(make_bytes(s, to, &bytes, err));
	if (s->what->staged)
		return publish_staged(s, box_fd, to, buf_str(&bytes), err);
	return file_publish(box_fd, box_fd, s->name, buf_str(&bytes), chipset_file_mode(box_fd), PUBLISH_FULL, err);
}

static enum mr_rc
publish(struct sending *s, const char *to, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = chipset_box_make(chipset_of(s->room), to, MR_INBOX, &fd, err);

	if (s->imported[0])
		s->ms = s->what->msg->date_ms;
	for (int tries = 0; rc == MR_OK && tries < CHIPSET_TRIES; tries++) {
		if (s->imported[0]) {
			rc = chipset_keep_place(fd, s->from, s->imported, &s->ms, err);
			chipset_name_make(s->ms, s->from, s->name);
			if (rc != MR_OK)
				return rc;
		}
		rc = publish_once(s, fd, to, err);
		if (rc != MR_EXISTS)
			return rc;
		s->ms += s->imported[0] ? 0 : 1; /* another import was faster: it may be this very message */
		rc = MR_OK;
	}
	return rc == MR_OK ? mr_fail(err, MR_BUSY, "%d names in a row are taken", CHIPSET_TRIES) : rc;
}

/* ---- The whole ---- */

static enum mr_rc
say_missing(const struct delivery *what, size_t from, struct delivered *ret, struct mr_error *err)
{
	struct mr_error first = *err;

	for (size_t i = from; i < what->to->n; i++)
		if (!names_add(&ret->missing, str_of(what->to->v[i])))
			return mr_nomem(err);
	return mr_fail(err, MR_INDOUBT,
	    "%zu of %zu have it, the others not: %s\nsend it again to those only who are missing", from, what->to->n,
	    first.message);
}

static enum mr_rc
deliver_each(struct sending *s, struct delivered *ret, struct mr_error *err)
{
	for (size_t i = 0; i < s->what->to->n; i++) {
		char to[CHIPSET_ID_MAX + 1];
		enum mr_rc rc = chipset_id(s->what->to->v[i], to, err);

		if (rc == MR_OK)
			rc = publish(s, to, err);
		if (i == 0 && (rc == MR_OK || rc == MR_EXISTS || rc == MR_INDOUBT))
			fill_in(s, ret);
		if (rc == MR_EXISTS && i + 1 < s->what->to->n)
			continue;
		if (rc != MR_OK)
			return i == 0 || rc == MR_EXISTS ? rc : say_missing(s->what, i, ret, err);
	}
	return MR_OK;
}

/* Carried mail keeps its date where the order of its sender's mail allows it. */
static int64_t
first_time(const struct delivery *what)
{
	int64_t now = clock_now_ms(), date = what->msg->date_ms;

	if (what->keep)
		return date;
	return what->carried && date > 0 && date < now ? date : now;
}

enum mr_rc
chipset_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	struct sending s = { .room = room, .what = what, .ret = ret, .ms = first_time(what) };
	struct delivered done = { 0 };

	if (what->keep)
		(void)snprintf(s.imported, sizeof s.imported, "%s", what->msg->id);
	enum mr_rc rc = check_all(&s, err);

	for (size_t i = 0; i < what->to->n && rc == MR_OK; i++)
		rc = walk_box(&s, what->to->v[i], err);
	if (rc == MR_OK)
		rc = deliver_each(&s, &done, err);
	if (rc != MR_OK && rc != MR_INDOUBT && rc != MR_EXISTS) {
		mr_names_done(&done.missing);
		return rc;
	}
	memcpy(what->msg->id, done.id, sizeof done.id);
	if (rc == MR_OK)
		what->msg->date_ms = s.ms;
	*ret = done;
	return rc;
}

/* ---- After a kill ---- */

static bool
is_ticket_name(struct mr_str name)
{
	return str_starts(name, FILE_CARRY) && str_ends(name, ".tmp") && name.len < 64 &&
	       !memchr(name.ptr, '/', name.len);
}

enum mr_rc
chipset_settle_ticket(struct mr_room *room, const char *ticket, bool *ret_published, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	const char *slash = strchr(ticket, '/');
	struct mr_str box = { ticket, slash ? (size_t)(slash - ticket) : 0 };
	char id[CHIPSET_ID_MAX + 1];

	if (!slash || chipset_id_problem(box) || !is_ticket_name(str_of(slash + 1)))
		return mr_fail(err, MR_REFUSED, "'%.80s' is no ticket of a chipset room", ticket);
	(void)snprintf(id, sizeof id, "%.*s", (int)box.len, box.ptr);
	enum mr_rc rc = chipset_box_open(chipset_of(room), id, MR_INBOX, &fd, err);

	if (rc == MR_OK)
		return file_prepared_void(fd, slash + 1, ret_published, err);
	if (rc == MR_NOTFOUND) { /* the mailbox was there: whoever removed it removed what was in it */
		*ret_published = true;
		return MR_OK;
	}
	return rc;
}
