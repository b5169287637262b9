/* SPDX-License-Identifier: MIT */
/*
 * deliver.c - putting mail into inboxes.
 *
 * The original's readers take every name that ends in .md in inbox/ for a whole message, and its writers rename over
 * what is there. So ours is complete and durable before it has that name, takes the name only if it is free, and when
 * it is not takes another: the same second, the same eight digits and the same subject must not destroy mail.
 */
#include "rooms/handoff/handoff.h"

#include "base/clock.h"
#include "base/sys.h"
#include <inttypes.h>
#include <stdio.h>

#define TRIES 20

unsigned
handoff_unsupported(struct mr_room *room, const struct mr_message *msg)
{
	static const char *const known[] = { "Message-ID", NULL };

	(void)room;
	return kit_fields(msg, known) & ~(unsigned)(FIELD_REPLY_TO | FIELD_BINARY);
}

/* ---- One file into one mailbox ---- */

struct sending {
	struct handoff *h;
	const struct delivery *what; /* NULL: a plain letter */
	const char *id;              /* of the mailbox */
	int tmp_fd, inbox_fd;
	struct letter letter;
	char msg_id[HANDOFF_UUID_LEN + 1];
	char name[HANDOFF_NAME_MAX + 1];
	int64_t mtime_ns;    /* 0: now */
	struct mr_names ids; /* of the mailboxes of all recipients */
};

static void
close_mailbox(struct sending *s)
{
	sys_close_fd(&s->tmp_fd);
	sys_close_fd(&s->inbox_fd);
	s->tmp_fd = s->inbox_fd = -1;
}

static void
sending_done(struct sending *s)
{
	close_mailbox(s);
	mr_names_done(&s->ids);
}

static enum mr_rc
open_mailbox(struct sending *s, const char *id, struct mr_error *err)
{
	close_mailbox(s);
	s->id = id;
	TRY(handoff_id_check(id, err));
	TRY(handoff_dir(s->h, id, "tmp", true, &s->tmp_fd, err));
	return handoff_dir(s->h, id, "inbox", true, &s->inbox_fd, err);
}

enum mr_rc
handoff_make_mailbox(struct handoff *h, const char *id, struct mr_error *err)
{
	mr_auto(sending_done) struct sending s = { .h = h, .tmp_fd = -1, .inbox_fd = -1 };
	mr_auto(sys_close_fd) int archive_fd = -1;

	TRY(open_mailbox(&s, id, err));
	return handoff_dir(h, id, "archive", true, &archive_fd, err);
}

static enum mr_rc
publish(struct sending *s, struct mr_error *err)
{
	mr_auto(buf_done) struct buf bytes = BUF_INIT;

	s->letter.msg_id = str_of(s->msg_id);
	s->letter.to = str_of(s->id);
	TRY(letter_write(&s->letter, &bytes, err));
	return kit_publish(&(struct kit_file){ .tmp_fd = s->tmp_fd,
			       .dir_fd = s->inbox_fd,
			       .name = s->name,
			       .bytes = buf_str(&bytes),
			       .mode = 0600,
			       .mtime_ns = s->mtime_ns },
	    s->what, s->id, err);
}

static void
mint(struct sending *s)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT;
	int64_t now_ns = clock_now_ns();

	buf_add(&subject, s->letter.subject);
	handoff_msg_id_at(now_ns, s->msg_id);
	handoff_file_name(now_ns / 1000000, s->msg_id, buf_z(&subject), s->name);
}

static void
tell(const struct sending *s, struct delivered *ret)
{
	handoff_message_id(s->name, 0, ret->id);
	(void)snprintf(ret->native_id, sizeof ret->native_id, "%s", s->msg_id);
}

/* MR_EXISTS: this import is there already; *ret_taken: another message has its name. The inbox first: what is archived
 * meanwhile is then seen at least once. */
static enum mr_rc
look_for_import(const struct sending *s, bool *ret_taken, struct mr_error *err)
{
	static const char *const folders[] = { "inbox", "archive" };

	for (size_t i = 0; i < 2; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		char path[HANDOFF_ID_MAX + HANDOFF_NAME_MAX + 32];
		struct letter there;

		(void)snprintf(path, sizeof path, "%s/%s/%s", s->id, folders[i], s->name);
		enum mr_rc rc = file_read(s->h->root_fd, path, HANDOFF_FILE_MAX, &text, err);

		if (rc == MR_NOTFOUND)
			continue;
		TRY(rc);
		*ret_taken = true;
		if (letter_parse(buf_str(&text), &there) && str_eq(there.msg_id, str_of(s->msg_id)))
			return mr_fail(err, MR_EXISTS, "'%s' is in the %s of '%s' already", s->name, folders[i], s->id);
	}
	return MR_OK;
}

static enum mr_rc
send_to(struct sending *s, const char *id, struct delivered *ret, struct mr_error *err)
{
	const struct mr_message *kept = s->what && s->what->keep ? s->what->msg : NULL;
	mr_auto(buf_done) struct buf seed = BUF_INIT;
	unsigned others = 0; /* messages that have a name of the import */

	if (kept)
		buf_addf(&seed, "%s %" PRId64 " %s", kept->id, kept->date_ms, kept->from);
	TRY(mr_got(buf_ok(&seed), err));
	TRY(open_mailbox(s, id, err));
	for (int tries = 0; tries < TRIES; tries++) {
		bool taken = false;

		if (kept) {
			handoff_msg_id_from(kept->date_ms, buf_str(&seed), others, s->msg_id);
			handoff_file_name(kept->date_ms, s->msg_id, kept->subject, s->name);
		} else if (tries > 0) {
			mint(s);
		}
		tell(s, ret);
		if (kept)
			TRY(look_for_import(s, &taken, err));
		enum mr_rc rc = taken ? MR_EXISTS : publish(s, err);

		if (rc != MR_EXISTS)
			return rc;
		others += taken; /* else another import was faster: look what it put there */
	}
	return mr_fail(err, MR_IO, "found no free name in the inbox of '%s'", id);
}

enum mr_rc
handoff_post(struct handoff *h, const char *from_id, const char *to_id, const char *subject, const char *reply_to,
    struct mr_str body, char ret_name[HANDOFF_NAME_MAX + 1], struct mr_error *err)
{
	mr_auto(sending_done) struct sending s = { .h = h,
		.tmp_fd = -1,
		.inbox_fd = -1,
		.letter = { str_of(from_id), .subject = str_of(subject), .reply_to = str_of(reply_to), .body = body } };

	TRY(handoff_id_check(from_id, err));
	mint(&s);
	TRY(send_to(&s, to_id, &(struct delivered){ 0 }, err));
	memcpy(ret_name, s.name, sizeof s.name);
	return MR_OK;
}

/* ---- A delivery ---- */

/* All of them, before anything is written. */
static enum mr_rc
find_ends(struct mr_room *room, const struct delivery *what, char ret_from[HANDOFF_ID_MAX + 1],
    struct mr_names *ret_ids, struct mr_error *err)
{
	struct handoff *h = handoff_of(room);
	mr_auto(registry_done) struct registry r = { 0 };
	mr_auto(mr_names_done) struct mr_names missing = { 0 };
	char id[HANDOFF_ID_MAX + 1] = "";

	TRY(handoff_registry_read(h, &r, err));
	for (size_t i = 0; i < what->to->n; i++) {
		enum mr_rc rc = handoff_mailbox_of(h, &r, what->to->v[i], id, NULL, err);

		if (rc == MR_NOTFOUND && what->make_mailboxes)
			TRY(mr_got(names_add(&missing, str_of(what->to->v[i])), err));
		else
			TRY(rc);
	}
	for (size_t i = 0; i < missing.n; i++) {
		struct mr_agent agent = kit_agent(missing.v[i]);
		enum mr_rc rc = handoff_add_agent(room, &agent, err);

		if (rc != MR_OK && rc != MR_EXISTS)
			return rc;
	}
	if (missing.n > 0) {
		registry_done(&r);
		TRY(handoff_registry_read(h, &r, err));
	}
	for (size_t i = 0; i < what->to->n; i++) {
		TRY(handoff_mailbox_of(h, &r, what->to->v[i], id, NULL, err));
		TRY(mr_got(names_add(ret_ids, str_of(id)), err));
	}
	enum mr_rc rc = handoff_mailbox_of(h, &r, what->msg->from, ret_from, NULL, err);

	if (rc != MR_NOTFOUND)
		return rc;
	return mr_fail(err, MR_REFUSED,
	    "'%s' has no mailbox in this room, so nobody could answer\n"
	    "register first: mailroom --room handoff:%s register %s",
	    what->msg->from, h->kit.path, what->msg->from);
}

static enum mr_rc
send_one(void *sending, const char *address, struct delivered *ret, struct mr_error *err)
{
	struct sending *s = sending;
	size_t at = 0;

	while (s->what->to->v[at] != address)
		at++;
	return send_to(s, s->ids.v[at], ret, err);
}

enum mr_rc
handoff_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	const struct mr_message *msg = what->msg;
	char from[HANDOFF_ID_MAX + 1] = "";
	mr_auto(sending_done) struct sending s = { .h = handoff_of(room), .what = what, .tmp_fd = -1, .inbox_fd = -1 };

	TRY(find_ends(room, what, from, &s.ids, err));
	s.letter = (struct letter){ .from = str_of(from),
		.subject = str_of(msg->subject),
		.reply_to = str_of(msg->reply_to ? msg->reply_to : ""),
		.body = { msg->body, msg->body_len } };
	if ((what->keep || what->carried) && msg->date_ms > 0)
		s.mtime_ns = msg->date_ms * 1000000;
	mint(&s);
	return kit_deliver(what, send_one, &s, ret, err);
}
