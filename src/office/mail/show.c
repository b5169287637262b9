/* SPDX-License-Identifier: MIT */
/*
 * show.c - mail is shown before it is consumed (promise 9). What is about to be shown is held as long as this
 * process lives, so that no other command shows it too; after stdout took it, finish settles the holds. A
 * kill at any point in between gives all of it back. A life that was fenced meanwhile finds its holds gone:
 * settling them fails, and the new life has the mail.
 *
 *	not taken --take--> held --finish--> seen or archived
 *	                     |--back, close, death--> not taken
 */
#include "base/error.h"
#include "base/sys_break.h"
#include "office/office.h"
#include "office/who/who.h"

#define TAKE_TRIES 8 /* a message can change folders under our eyes, but not for ever */

struct mr_show {
	struct mr_room *room;
	struct mr_self self;
	struct hold *taken; /* in a room without holds only agent and id count */
	size_t n, cap;
};

enum mr_rc
mr_show_open(struct mr_room *room, const struct mr_self *self, struct mr_show **ret, struct mr_error *err)
{
	enum mr_rc rc = office_not_fenced(room, self, err);
	struct mr_show *show;

	if (rc != MR_OK)
		return rc;
	show = calloc(1, sizeof(*show));
	if (!show)
		return mr_nomem(err);
	show->room = room;
	show->self = *self;
	*ret = show;
	return MR_OK;
}

static bool
room_has_holds(const struct mr_room *room)
{
	return (room->driver->abilities & ROOM_HOLDS) && ROOM_HAS(room, hold) && ROOM_HAS(room, settle);
}

static struct hold *
find_taken(const struct mr_show *show, const char *id)
{
	for (size_t i = 0; i < show->n; i++)
		if (strcmp(show->taken[i].id, id) == 0)
			return &show->taken[i];
	return NULL;
}

static void
forget_taken(struct mr_show *show, struct hold *hold)
{
	*hold = show->taken[--show->n];
}

static bool
reserve_taken(struct mr_show *show)
{
	if (show->n < show->cap)
		return true;
	size_t cap = show->cap ? 2 * show->cap : 16;
	struct hold *v = reallocarray(show->taken, cap, sizeof(*v));

	if (!v)
		return false;
	show->taken = v;
	show->cap = cap;
	return true;
}

/* ---- Taking ---- */

struct own_lease {
	const char *id;
	unsigned life;
	bool found;
};

static bool
note_own_lease(void *ctx, const struct hold *hold)
{
	struct own_lease *own = ctx;

	own->found = hold->kind == HOLD_LEASE && hold->life == own->life && strcmp(hold->id, own->id) == 0;
	return !own->found;
}

/* Work that this very life has received may be looked at again. */
static bool
is_own_lease(const struct mr_show *show, const char *id)
{
	struct own_lease own = { .id = id, .life = show->self.life };
	struct mr_error ignored = { 0 };

	if (ROOM_HAS(show->room, each_hold))
		(void)show->room->driver->each_hold(show->room, show->self.agent, note_own_lease, &own, &ignored);
	return own.found;
}

static enum mr_rc
hold_for_show(struct mr_show *show, const char *id, struct mr_message *msg, struct mr_error *err)
{
	struct hold_terms terms = { .kind = HOLD_PROCESS, .life = show->self.life, .session = show->self.session };
	struct hold hold = { 0 };
	enum mr_rc rc;

	if (!room_has_holds(show->room)) {
		(void)snprintf(hold.agent, sizeof(hold.agent), "%s", show->self.agent);
		(void)snprintf(hold.id, sizeof(hold.id), "%s", id);
		show->taken[show->n++] = hold;
		return MR_OK;
	}
	rc = show->room->driver->hold(show->room, show->self.agent, id, &terms, &hold, err);
	if (rc != MR_OK)
		return rc;
	show->taken[show->n++] = hold;
	msg->folder = MR_HELD;
	msg->attempt = hold.attempt; /* but no token: the hold ends with this process, nobody can settle it by name */
	return MR_OK;
}

/* MR_NOTFOUND: it moved between the look and the hold; look again. */
static enum mr_rc
take_once(struct mr_show *show, const char *id, struct mr_message *msg, struct mr_error *err)
{
	struct mr_error ignored = { 0 };
	enum mr_rc rc = show->room->driver->fetch(
	    show->room, show->self.agent, id, office_folders(show->room, ALL_FOLDERS), SCAN_BODIES, msg, err);

	/* Work of a queue is looked at, not taken: it is in our hands already. */
	if (rc == MR_NOTFOUND && lookup_claimed(show->room, show->self.agent, id, msg, &ignored) == MR_OK)
		return MR_OK;
	if (rc == MR_NOTFOUND && office_folders(show->room, MR_DEAD) &&
	    show->room->driver->fetch(show->room, show->self.agent, id, MR_DEAD, SCAN_BODIES, msg, &ignored) == MR_OK)
		return MR_OK;
	if (rc != MR_OK || find_taken(show, id))
		return rc;
	if (msg->folder == MR_INBOX && !(msg->flags & MR_SEEN))
		return hold_for_show(show, id, msg, err);
	if (msg->folder != MR_HELD || is_own_lease(show, id))
		return MR_OK;
	return mr_fail(err, MR_BUSY,
	    "another command is showing or working on '%s'\n"
	    "it comes back by itself when that command ends without finishing it",
	    id);
}

enum mr_rc
mr_show_take(struct mr_show *show, const char *id, struct mr_message *ret_msg, struct mr_error *err)
{
	mr_auto(relief_end) struct relief relief = { 0 };
	char full[MR_ID_LEN + 1];
	enum mr_rc rc = mr_resolve_id(show->room, show->self.agent, id, 0, full, err);

	relief_begin(&relief, show->room);
	if (rc != MR_OK)
		return rc;
	if (!reserve_taken(show))
		return mr_nomem(err);
	for (int tries = 0;; tries++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };

		*err = (struct mr_error){ 0 };
		rc = take_once(show, full, &msg, err);
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
	mr_auto(relief_end) struct relief relief = { 0 };
	char full[MR_ID_LEN + 1];
	enum mr_rc rc = mr_resolve_id(show->room, show->self.agent, id, 0, full, err);
	struct hold *hold = rc == MR_OK ? find_taken(show, full) : NULL;

	relief_begin(&relief, show->room);
	if (!hold)
		return rc; /* seen mail was never taken */
	if (room_has_holds(show->room))
		rc = show->room->driver->settle(show->room, hold, SETTLE_BACK, err);
	if (rc == MR_OK || rc == MR_NOTFOUND) /* over already: it is back */
		forget_taken(show, hold);
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

/* A room without holds: marked only now, so that looking did not consume. */
static enum mr_rc
mark_shown(struct mr_show *show, const struct hold *hold, bool archive, struct mr_error *err)
{
	const struct room_driver *driver = show->room->driver;
	enum mr_rc rc = MR_OK;

	if (ROOM_HAS(show->room, mark))
		rc = driver->mark(show->room, hold->agent, hold->id, MR_SEEN, 0, err);
	if (rc == MR_OK && archive && ROOM_HAS(show->room, move) && (driver->abilities & ROOM_ARCHIVE))
		rc = driver->move(show->room, hold->agent, hold->id, MR_ARCHIVE, err);
	return rc;
}

static enum mr_rc
settle_shown(struct mr_show *show, const struct hold *hold, bool archive, struct mr_error *err)
{
	if (!room_has_holds(show->room))
		return mark_shown(show, hold, archive, err);
	return show->room->driver->settle(show->room, hold, archive ? SETTLE_ARCHIVE : SETTLE_SEEN, err);
}

enum mr_rc
mr_show_finish(struct mr_show *show, bool archive, size_t *ret_marked, struct mr_error *err)
{
	mr_auto(relief_end) struct relief relief = { 0 };
	size_t marked = 0, fenced = 0;
	enum mr_rc rc = MR_OK;

	relief_begin(&relief, show->room);
	confirm_note(show->room, &show->self, show->taken, show->n);
	while (show->n > 0 && rc == MR_OK) {
		struct mr_error one = { 0 };

		rc = settle_shown(show, &show->taken[show->n - 1], archive, &one);
		if (rc == MR_NOTFOUND) {
			fenced++;
			rc = MR_OK;
		} else if (rc == MR_OK) {
			marked++;
		} else {
			*err = one;
			break; /* what is left goes back at close: shown again rather than lost */
		}
		show->n--;
	}
	if (rc == MR_OK)
		rc = office_flush(show->room, err);
	if (rc != MR_OK)
		return mr_wrap(err, "mark shown mail of '%s'", show->self.agent);
	if (fenced > 0) {
		return mr_fail(err, MR_REFUSED,
		    "%zu of the messages shown left this life of '%s' meanwhile\n"
		    "a newer life took over and gets them; stop acting as '%s'",
		    fenced, show->self.agent, show->self.agent);
	}
	if (ret_marked)
		*ret_marked = marked;
	return MR_OK;
}

void
mr_show_close(struct mr_show *show)
{
	mr_auto(relief_end) struct relief relief = { 0 };
	struct mr_error ignored = { 0 };
	size_t given_back = 0;

	if (!show)
		return;
	relief_begin(&relief, show->room);
	if (room_has_holds(show->room))
		for (; given_back < show->n; given_back++)
			(void)show->room->driver->settle(show->room, &show->taken[given_back], SETTLE_BACK, &ignored);
	if (given_back > 0)
		(void)office_flush(show->room, &ignored);
	free(show->taken);
	free(show);
}
