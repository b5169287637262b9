/* SPDX-License-Identifier: MIT */
/*
 * show.c - mail is shown before it is consumed (promise 9). Mail that is about to be shown is held as long as this
 * process lives, so that no other command shows it too; after stdout took it, finish settles the holds. A kill at any
 * point in between gives all of it back. If the life was fenced meanwhile its holds are gone: settling them fails, and
 * the new life has the mail.
 *
 *	not taken --take--> held --finish--> seen or archived
 *	                     |--back, close, death--> not taken
 */
#include "base/fault.h"
#include "base/id.h"
#include "office/mail/mail.h"
#include "office/tell/tell.h"
#include "office/who/who.h"

#define TAKE_TRIES 8 /* a message can change folders meanwhile, but not for ever */

struct mr_show {
	struct mr_room *room;
	struct mr_self self;
	bool holds; /* the room has holds; else only agent and id of `taken` are used */
	struct claim *taken;
	size_t n, cap;
	struct mr_show_choice choice; /* wanted NULL: all mail */
};

enum mr_rc
mr_show_open(struct mr_room *room, const struct mr_self *self, const struct mr_show_choice *choice,
    struct mr_show **ret, struct mr_error *err)
{
	struct mr_show *show;

	TRY(office_not_fenced(room, self, err));
	show = calloc(1, sizeof(*show));
	TRY(mr_got(show, err));
	show->room = room;
	show->self = *self;
	if (choice)
		show->choice = *choice;
	show->holds = room->driver->abilities & ROOM_HOLDS;
	*ret = show;
	return MR_OK;
}

static struct claim *
find_taken(const struct mr_show *show, const char *id)
{
	for (size_t i = 0; i < show->n; i++)
		if (strcmp(show->taken[i].id, id) == 0)
			return &show->taken[i];
	return NULL;
}

/* ---- Taking ---- */

/* MR_NOTFOUND: it moved between the look and the hold; look again. */
static enum mr_rc
take_once(struct mr_show *show, const char *id, struct mr_message *msg, struct mr_error *err)
{
	const struct room_driver *driver = show->room->driver;
	mr_auto(claims_done) struct claims leases = { 0 };
	struct claim hold = { 0 };

	enum mr_rc rc = lookup_own(show->room, show->self.agent, id, SCAN_BODIES, msg, err);

	/* Work of a queue and dead letters are shown but not taken. */
	if (rc == MR_NOTFOUND && lookup_elsewhere(show->room, show->self.agent, id, msg))
		return MR_OK;
	const struct mr_show_choice *choose = &show->choice;

	if (choose->wanted && rc != MR_NOMEM && rc != MR_NOTFOUND &&
	    (rc != MR_OK || !choose->wanted(choose->ctx, msg))) {
		if (rc != MR_OK)
			choose->trouble(choose->ctx, id, err);
		return MR_EMPTY;
	}
	/* Taken already? In a room with holds it is then held: searching for each of a thousand would be slow. */
	if (rc != MR_OK || ((msg->folder == MR_HELD || !show->holds) && find_taken(show, id)))
		return rc;
	if (msg->folder == MR_INBOX && !(msg->flags & MR_SEEN)) {
		struct claim_terms terms = {
			.kind = CLAIM_HANDLE, .life = show->self.life, .session = show->self.session
		};

		text_join(hold.agent, sizeof(hold.agent), show->self.agent, NULL);
		text_join(hold.id, sizeof(hold.id), id, NULL);
		if (show->holds) {
			TRY(driver->claim(show->room, show->self.agent, id, &terms, &hold, err));
			msg->folder = MR_HELD;
			msg->attempt =
			    hold.attempt; /* but no token: nobody can settle a hold of this process by name */
		}
		show->taken[show->n++] = hold;
		return MR_OK;
	}
	if (msg->folder != MR_HELD)
		return MR_OK;
	/* Work that this life has received may be shown again. */
	(void)claims_in(show->room, show->self.agent, &leases, IGNORED);
	for (const struct claim *c = leases.v; c < leases.v + leases.n; c++)
		if (c->kind == CLAIM_LEASE && c->life == show->self.life && strcmp(c->id, id) == 0)
			return MR_OK;
	return mr_fail(err, MR_BUSY,
	    "another command is showing or working on '%s'\n"
	    "it comes back by itself when that command ends without finishing it",
	    id);
}

enum mr_rc
mr_show_take(struct mr_show *show, const char *id, struct mr_message *ret_msg, struct mr_error *err)
{
	char full[MR_ID_LEN + 1];

	if (id_valid(str_of(id))) /* the full id from a list, a thousand times */
		memcpy(full, id, sizeof(full));
	else
		TRY(mr_resolve_id(show->room, show->self.agent, id, 0, full, err));
	mr_auto(relief_end) struct relief relief = relief_begin(show->room);
	TRY(mr_got(array_grow(&show->taken, show->n, &show->cap, sizeof(*show->taken)), err));
	for (int tries = 0;; tries++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };

		*err = (struct mr_error){ 0 };
		enum mr_rc rc = take_once(show, full, &msg, err);

		if (rc == MR_BUSY && tries == 0) { /* its holder may be dead */
			scan_sweep(show->room, show->self.agent);
			continue;
		}
		if (rc == MR_NOTFOUND && msg.own && tries < TAKE_TRIES)
			continue;
		if (rc == MR_OK || (rc == MR_BUSY && msg.own)) {
			*ret_msg = msg;
			msg = (struct mr_message){ 0 };
		}
		if (rc == MR_OK && sys_break_is(BREAK_MARK_BEFORE_SHOW))
			return mr_show_finish(show, false, NULL, err);
		return rc;
	}
}

/* ---- Giving back, finishing ---- */

enum mr_rc
mr_show_back(struct mr_show *show, const char *id, struct mr_error *err)
{
	char full[MR_ID_LEN + 1];

	TRY(mr_resolve_id(show->room, show->self.agent, id, 0, full, err));
	struct claim *hold = find_taken(show, full);

	if (!hold)
		return MR_OK; /* seen mail was never taken */
	mr_auto(relief_end) struct relief relief = relief_begin(show->room);
	if (show->holds) /* not found: it ended already and the mail is back */
		TRY(mr_unless(show->room->driver->settle(show->room, hold, SETTLE_BACK, err), MR_NOTFOUND, err));
	*hold = show->taken[--show->n];
	return MR_OK;
}

static enum mr_rc
settle_shown(struct mr_show *show, const struct claim *hold, bool archive, struct mr_error *err)
{
	const struct room_driver *driver = show->room->driver;

	if (show->holds)
		return driver->settle(show->room, hold, archive ? SETTLE_ARCHIVE : SETTLE_SEEN, err);
	/* In a room without holds it is marked only now, so that looking did not consume it. */
	if (!ROOM_HAS(show->room, mark))
		return MR_OK;
	archive = archive && (driver->abilities & ROOM_ARCHIVE);
	return driver->mark(show->room, hold->agent, hold->id, MR_SEEN, 0, archive ? MR_ARCHIVE : 0, err);
}

enum mr_rc
mr_show_finish(struct mr_show *show, bool archive, size_t *ret_marked, struct mr_error *err)
{
	size_t marked = 0, fenced = 0;
	enum mr_rc rc = MR_OK;

	mr_auto(relief_end) struct relief relief = relief_begin(show->room);
	confirm_note(show->room, &show->self, show->taken, show->n);
	for (; show->n > 0; show->n--) {
		struct mr_error one = { 0 };

		rc = settle_shown(show, &show->taken[show->n - 1], archive, &one);
		marked += rc == MR_OK;
		fenced += rc == MR_NOTFOUND;
		if (rc != MR_OK && rc != MR_NOTFOUND) {
			*err = one;
			break; /* the rest goes back at close: shown again and not lost */
		}
		rc = MR_OK;
	}
	if (rc == MR_OK)
		rc = show->room->driver->flush(show->room, err);
	if (rc != MR_OK)
		return mr_wrap(err, "mark shown mail of '%s'", show->self.agent);
	if (fenced > 0)
		return mr_fail(err, MR_REFUSED,
		    "%zu of the messages shown no longer belong to this life of '%s'\n"
		    "a newer life took over and gets them; stop acting as '%s'",
		    fenced, show->self.agent, show->self.agent);
	if (ret_marked)
		*ret_marked = marked;
	return MR_OK;
}

void
mr_show_close(struct mr_show *show)
{
	if (!show)
		return;
	mr_auto(relief_end) struct relief relief = relief_begin(show->room);
	for (size_t i = 0; show->holds && i < show->n; i++)
		(void)show->room->driver->settle(show->room, &show->taken[i], SETTLE_BACK, IGNORED);
	if (show->holds && show->n > 0)
		(void)show->room->driver->flush(show->room, IGNORED);
	free(show->taken);
	free(show);
}
