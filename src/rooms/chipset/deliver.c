/* SPDX-License-Identifier: MIT */
/*
 * deliver.c - sending. The name of a message is its time and its sender, so a name that is taken means another time:
 * a millisecond later, and the text is written anew. One sender's times in one mailbox only grow, also when the clock
 * is set back. Nothing is ever written over, and no name of ours is one that others truncate.
 *
 * An import keeps its date, so a second import finds it by its name; two messages of one sender in one millisecond are
 * told apart by the id that they came with ("mailroom_id").
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/text.h"
#include "message/message.h"
#include "rooms/chipset/chipset.h"
#include <stdio.h>

#define NAME_TRIES 1000 /* names that may be taken, a millisecond each */
#define STALE_MS ((int64_t)60 * 60 * 1000)
#define STALE_MAX 8 /* removed with one send */

struct sending {
	struct mr_room *room;
	const struct delivery *what;
	char from[CHIPSET_ID_MAX + 1];
	int64_t ms; /* the time that is tried next */
	char name[CHIPSET_NAME_MAX + 1];
	char imported[MR_ID_LEN + 1]; /* the id that it came with; "": it is no import */
	int fd;                       /* of the mailbox that is walked through */
	unsigned looked; /* at files that may be left over: a send looks at a few, however many there are */
};

/* ---- What can be refused before anything is visible ---- */

unsigned
chipset_unsupported(struct mr_room *room, const struct mr_message *msg)
{
	unsigned fields = kit_fields(msg, NULL) & ~(unsigned)(FIELD_TYPE | FIELD_HEADERS);
	char answered[MR_ID_LEN + 1];

	(void)room;
	if (msg->priority != MR_HIGH)
		fields &= ~(unsigned)FIELD_PRIORITY;
	if (chipset_name_plain(str_of(msg->reply_to)))
		fields &= ~(unsigned)FIELD_REPLY_TO;
	if (chipset_name_id(str_of(msg->reply_to), answered) && strcmp(msg->thread, answered) == 0)
		fields &= ~(unsigned)FIELD_THREAD;
	for (size_t i = 0; i < msg->headers_n; i++)
		if (!message_header_reserved(str_of(msg->headers[i].name)) &&
		    !ascii_caseeq(msg->headers[i].name, "References"))
			fields |= FIELD_HEADERS;
	return fields;
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
	TRY(mr_got(buf_ok(out), err));
	if (out->len <= CHIPSET_MESSAGE_MAX)
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "the message has %zu bytes: at most %zu (64 KiB) are allowed in a chipset room\n"
	    "put it into a file and send its path",
	    out->len, CHIPSET_MESSAGE_MAX);
}

/* ---- One walk through the mailbox: the newest of this sender, and what crashes left ---- */

static bool
look_at(void *ctx, const struct dir_entry *entry)
{
	struct sending *s = ctx;
	struct mr_str name = str_of(entry->name);
	struct chipset_name parts;
	struct stat st;

	if (chipset_name_parse(name, &parts)) {
		if (str_eq(parts.sender, str_of(s->from)) && parts.ms >= s->ms)
			s->ms = parts.ms + 1;
		return true;
	}
	/* A temporary file of ours that no ticket tells of. By the time of the last change of name: an exchanged file
	 * has the old message's own time. */
	if (!kit_is_temporary(name.ptr) || str_starts(name, FILE_CARRY) || s->looked++ >= STALE_MAX)
		return true;
	if (str_starts(name, FILE_VOID) ? file_void_is_old(s->fd, name.ptr)
					: sys_stat(s->fd, name.ptr, &st) == 0 && S_ISREG(st.st_mode) &&
					      clock_now_ms() - (int64_t)st.st_ctim.tv_sec * 1000 > STALE_MS)
		(void)sys_unlink(s->fd, name.ptr);
	return true;
}

static enum mr_rc
walk_box(struct sending *s, const char *address, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	char to[CHIPSET_ID_MAX + 1];
	enum mr_rc rc = chipset_id(address, to, err);

	if (rc == MR_OK)
		rc = chipset_folder(s->room, to, MR_INBOX, true, &fd, err);
	s->fd = fd;
	s->looked = 0;
	if (rc == MR_OK && !s->imported[0])
		rc = dir_each(fd, look_at, s, err);
	return rc == MR_OK ? rc : mr_wrap(err, "the mailbox of '%s'", address);
}

/* ---- Imports ---- */

/* Looks at the file of that path in the mailbox. MR_EXISTS: it is this message; *ret_taken: it is another one. */
static enum mr_rc
look_for_import(const struct sending *s, int box_fd, const char *path, bool *ret_taken, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, imported = BUF_INIT;
	struct json_value object;
	char own[MR_ID_LEN + 1] = "";
	enum mr_rc rc = file_read(box_fd, path, CHIPSET_READ_MAX, &text, err);

	if (rc == MR_NOTFOUND || rc == MR_NOMEM)
		return rc == MR_NOMEM ? rc : MR_OK;
	*ret_taken = true; /* by whatever it is */
	if (rc != MR_OK || chipset_object(buf_str(&text), &object, IGNORED) != MR_OK)
		return MR_OK;
	if (!json_find_text(object, "mailroom_id", &imported) && chipset_name_id(str_of(s->name), own))
		buf_adds(&imported, own);
	if (strcmp(buf_z(&imported), s->imported) == 0)
		return mr_fail(err, MR_EXISTS, "'%s' already exists", s->name);
	return MR_OK;
}

/* ---- Publishing ---- */

static enum mr_rc
publish(void *sending, const char *address, struct delivered *ret, struct mr_error *err)
{
	struct sending *s = sending;
	mr_auto(sys_close_fd) int fd = -1;
	char to[CHIPSET_ID_MAX + 1];

	TRY(chipset_id(address, to, err));
	TRY(chipset_folder(s->room, to, MR_INBOX, true, &fd, err));
	if (s->imported[0])
		s->ms = s->what->msg->date_ms;
	for (int tries = 0; tries < NAME_TRIES; tries++) {
		mr_auto(buf_done) struct buf bytes = BUF_INIT;
		char archived[CHIPSET_NAME_MAX + 16];
		enum mr_rc rc = MR_EXISTS;
		bool taken = false;
		struct stat st;

		chipset_name_make(s->ms, s->from, s->name);
		(void)snprintf(archived, sizeof archived, "archive/%s", s->name);
		id_from_name(s->ms, str_of(s->name), ret->id);
		(void)snprintf(ret->native_id, sizeof ret->native_id, "%s", s->name);
		/* The other programs never look into the archive, but an id must not be there twice. */
		if (s->imported[0]) {
			TRY(look_for_import(s, fd, s->name, &taken, err));
			TRY(look_for_import(s, fd, archived, &taken, err));
		} else {
			taken = sys_stat(fd, archived, &st) == 0;
		}
		if (!taken) {
			TRY(make_bytes(s, to, &bytes, err));
			rc = kit_publish(&(struct kit_file){ .tmp_fd = fd,
					     .dir_fd = fd,
					     .name = s->name,
					     .bytes = buf_str(&bytes),
					     .mode = chipset_file_mode(fd) },
			    s->what, to, err);
		}
		if (rc != MR_EXISTS)
			return rc;
		s->ms += taken || !s->imported[0]; /* else another import was faster: it may be the same message */
	}
	return mr_fail(err, MR_BUSY, "%d names in a row are taken", NAME_TRIES);
}

enum mr_rc
chipset_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	struct sending s = { .room = room, .what = what, .ms = clock_now_ms() };
	const struct mr_message *msg = what->msg;

	/* Carried mail keeps its date where the order of its sender's mail allows it. */
	if (what->keep || (what->carried && msg->date_ms > 0 && msg->date_ms < s.ms))
		s.ms = msg->date_ms;
	if (what->keep)
		(void)snprintf(s.imported, sizeof s.imported, "%s", msg->id);
	/* What can be refused is refused before anything is visible. */
	if (chipset_id(msg->from, s.from, err) != MR_OK)
		return mr_wrap(err, "the sender");
	if (!utf8_valid(kit_text(msg)) || !utf8_valid(str_of(msg->subject)) || !utf8_valid(str_of(msg->type)))
		return mr_fail(err, MR_REFUSED,
		    "the message is not UTF-8 text, and a chipset room holds nothing else\n"
		    "put it into a file and send its path");
	for (size_t i = 0; i < what->to->n; i++) {
		mr_auto(buf_done) struct buf bytes = BUF_INIT;
		char to[CHIPSET_ID_MAX + 1];

		TRY(chipset_id(what->to->v[i], to, err));
		TRY(make_bytes(&s, to, &bytes, err));
	}
	for (size_t i = 0; i < what->to->n; i++)
		TRY(walk_box(&s, what->to->v[i], err));
	return kit_deliver(what, publish, &s, ret, err);
}
