/* SPDX-License-Identifier: MIT */
/*
 * hold.c - mail that someone is being shown or works on.
 *
 * A hold is one rename: new/X -> held/<life>/h.<token>.<deadline>.<attempt>.X. Rename has one winner, so of any
 * number of agents that want a message exactly one gets it; the others find no source. Ending the hold
 * is one rename as well, so of the holder that finishes and the sweeper that takes the mail
 * back exactly one succeeds, and the other is told: "that hold is over". Every held name carries a token
 * and every new hold a new attempt number, so nobody ends a hold that is not the one he means.
 *
 * Who may take mail back, and why a sweeper never takes it from a living holder:
 *
 * - Process holds (deadline 0) live as long as holds/<token> is locked. The order of the holder is
 *   (1) make the file without a name, (2) lock it, (3) give it the name holds/<token>, (4) rename mail to held names
 *   with this token. A sweeper begins at a held name, so it looks at the lock after (4), and by then the
 *   lock is held until the handle is closed or the process dies. A missing file means that (3) was undone by
 *   the holder's own close, or by a power cut, which took the lock as well. If the lock is free the sweeper
 *   renames the held name that it saw; a holder that settled in between has renamed it first and the
 *   sweeper finds nothing. The name is never used again: the token is random.
 * - Leases write holds/<token> before the rename, too, so a sweeper that sees the name can read the deadline.
 *   `extend` writes the new deadline into the file first and renames then: in between, the old
 *   name has run out but the file says otherwise, and within one boot the file decides. A sweeper that read
 *   the old file just before goes on to rename the old name; then the holder's rename finds no source and
 *   `extend` reports that the hold is over. After a reboot the name decides, which by then has either deadline.
 * - A life that was taken over. takeover links lives/<N+1>, then renames held/<N> away, then gives back
 *   what is in it. A hold of the old life opens held/<N>, then checks that N is still the newest life, then
 *   renames into the folder it opened. If N+1 came before the check the hold is refused. If it came
 *   after, then what takeover renames away is the very folder that was opened, and what is put there late is
 *   found by whoever finishes that folder: it cannot be removed while something is in it (sweep.c).
 *
 * A hold need not be durable: a power cut that undoes it gives the mail back, which is what it should do.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/holding.h"
#include <stdio.h>

#define HOLD_TRIES 20
#define LEASE_MAX_MS (INT64_C(3650) * 24 * 3600 * 1000)

int64_t
hold_clamp_lease(int64_t lease_ms)
{
	return lease_ms < 0 ? 0 : lease_ms > LEASE_MAX_MS ? LEASE_MAX_MS : lease_ms;
}

int64_t
hold_deadline_s(int64_t lease_ms)
{
	return (clock_now_ms() + lease_ms + 999) / 1000;
}

static enum mr_rc
hold_is_over(const struct hold *hold, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND,
	    "that hold on '%s' is over\n"
	    "it ran out, was settled or the name was taken over; the message may be with someone else",
	    hold->id);
}

/* ---- Taking ---- */

struct taking {
	struct mailbox *box;
	const struct hold_terms *terms;
	struct hold hold; /* what the caller will get */
	bool has_token;
};

static enum mr_rc
take_token(struct taking *t, struct mr_error *err)
{
	struct maildir *md = t->box->md;

	if (t->has_token)
		return MR_OK;
	int64_t lease_ms = hold_clamp_lease(t->terms->lease_ms);
	enum mr_rc rc = t->terms->kind == HOLD_PROCESS
			    ? token_for_process(md, t->box->agent, t->terms, t->hold.token, err)
			    : token_for_lease(md, t->box->agent, "", t->terms, lease_ms, t->hold.token, err);
	if (rc != MR_OK)
		return rc;
	t->hold.deadline_ms = t->terms->kind == HOLD_PROCESS ? 0 : hold_deadline_s(lease_ms) * 1000;
	t->has_token = true;
	return MR_OK;
}

/* Opens held/<life>, then checks the life: in this order, see above. */
static enum mr_rc
open_held(struct taking *t, int *ret_fd, struct mr_error *err)
{
	unsigned newest = 0;

	enum mr_rc rc = mailbox_held(t->box, t->terms->life, true, ret_fd, err);
	if (rc == MR_OK)
		rc = life_newest(t->box, &newest, err);
	if (rc != MR_OK)
		return rc;
	if (newest > t->terms->life) {
		return mr_fail(err, MR_REFUSED,
		    "'%s' was taken over by its life %u, this is life %u\n"
		    "the mail is with the new life; register under another name to go on",
		    t->box->agent, newest, t->terms->life);
	}
	return MR_OK;
}

static enum mr_rc
find_unread(struct taking *t, struct arena **own, struct listed *ret, struct mr_error *err)
{
	const char *id = t->hold.id;
	struct listed at;

	/* The archive only because finding it there is quicker than being sure that it is nowhere. */

	TRY(list_find(t->box, id, MR_INBOX | MR_HELD | MR_ARCHIVE, own, &at, err));
	if (at.folder == MR_HELD)
		return mr_fail(err, MR_BUSY,
		    "message '%s' is being shown or worked on by another\nit comes back by itself when that ends without success",
		    id);
	if (at.folder != MR_INBOX || (at.flags & MR_SEEN))
		return mr_fail(err, MR_NOTFOUND, "message '%s' is not unread any more", id);
	*ret = at;
	return MR_OK;
}

/* One try. MR_NOTFOUND with *ret_again: the message was renamed under our hands. */
static enum mr_rc
take_once(struct taking *t, bool *ret_again, struct mr_error *err)
{
	mr_auto(sys_close_fd) int held_fd = -1;
	mr_auto(sys_close_fd) int from_fd = -1;
	struct arena *own = NULL;
	struct listed at;
	char name[NAME_LEN];

	*ret_again = false;
	enum mr_rc rc = find_unread(t, &own, &at, err);
	if (rc == MR_OK)
		rc = open_held(t, &held_fd, err);
	if (rc == MR_OK)
		rc = take_token(t, err);
	if (rc == MR_OK)
		rc = list_open_folder(t->box, &at, &from_fd, err);
	if (rc == MR_OK) {
		t->hold.attempt = at.attempt + 1;
		t->hold.flags = at.flags;
		if (!name_build_held(
			t->hold.token, t->hold.deadline_ms / 1000, t->hold.attempt, str_of(at.name), name)) {
			(void)mr_fail(err, MR_REFUSED, "the file name '%.60s...' is too long to be held", at.name);
			rc = mr_hint(err, "rename the file: its name may have at most 200 bytes");
		} else {
			rc = commit_move(t->box->md, from_fd, at.name, held_fd, name, err);
			*ret_again = rc == MR_NOTFOUND;
			if (rc == MR_EXISTS) /* two files of one name, and this handle holds the other */
				rc = mr_fail(err, MR_BUSY, "message '%s' is held already", t->hold.id);
		}
	}
	arena_free(own);
	return rc;
}

enum mr_rc
maildir_hold(struct mr_room *room, const char *agent, const char *id, const struct hold_terms *terms, struct hold *ret,
    struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	struct taking t = { .box = &box, .terms = terms };
	bool again = true;

	(void)snprintf(t.hold.agent, sizeof(t.hold.agent), "%s", agent);
	(void)snprintf(t.hold.id, sizeof(t.hold.id), "%s", id);
	t.hold.kind = terms->kind;
	t.hold.life = terms->life;
	enum mr_rc rc = mailbox_open(&box, maildir_of(room), agent, err);
	if (rc != MR_OK)
		return rc;
	for (int tries = 0; again && tries < HOLD_TRIES; tries++)
		rc = take_once(&t, &again, err);
	if (again)
		rc = mr_fail(err, MR_BUSY, "message '%s' is renamed by others all the time", id);
	if (rc == MR_OK)
		*ret = t.hold;
	else if (t.has_token && terms->kind == HOLD_LEASE)
		token_drop(box.md, t.hold.token);
	return rc;
}

/* ---- Ending ---- */

static enum mr_rc
end_in_archive(
    struct mailbox *box, int held_fd, const char *name, struct file_name *n, bool acked, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	char month[24];

	name_month(n->id, month);

	TRY(mailbox_subfolder(box, month, true, &fd, err));
	unsigned flags = name_flags(n, false) | MR_SEEN | mark_carry_acked(box, "", month, n);
	if (acked && mailbox_map_acked(box, month)) {
		flags |= MR_ACKED;
		n->a_is_ours = true;
	}
	return mark_rename(box->md, held_fd, name, fd, n, n->attempt, flags, true, err);
}

static enum mr_rc
end_in_box(struct mailbox *box, int held_fd, const char *name, struct file_name *n, bool seen, unsigned attempt,
    struct mr_error *err)
{
	int fd = -1;
	bool with_info = seen || n->has_info;
	unsigned flags = name_flags(n, false) | (seen ? (unsigned)MR_SEEN : 0);

	TRY(mailbox_folder(box, with_info ? BOX_CUR : BOX_NEW, &fd, err));
	return mark_rename(box->md, held_fd, name, fd, n, attempt, flags, with_info, err);
}

/* Released by its owner, who gets it again after everything else; that was no attempt. */
static enum mr_rc
end_later(struct mailbox *box, int held_fd, const char *name, struct file_name *n, struct mr_error *err)
{
	char text[NAME_RELEASED_LEN];

	name_released_text(&(struct released){ .at_ms = clock_now_ms() }, text);
	n->released = str_of(text);
	return end_in_box(box, held_fd, name, n, false, n->hold_attempt > 0 ? n->hold_attempt - 1 : 0, err);
}

enum mr_rc
hold_end(struct mailbox *box, int held_fd, const char *name, struct file_name *n, enum settle how, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	if (how != SETTLE_BACK)
		n->released = (struct mr_str){ 0 };
	switch (how) {
	case SETTLE_BACK:
		rc = end_in_box(box, held_fd, name, n, false, n->hold_attempt, err);
		break;
	case SETTLE_LATER:
		rc = end_later(box, held_fd, name, n, err);
		break;
	case SETTLE_SEEN:
		rc = end_in_box(box, held_fd, name, n, true, n->attempt, err);
		if (rc == MR_OK)
			mark_look_for_crowd(box, n->id);
		break;
	case SETTLE_ARCHIVE:
		rc = end_in_archive(box, held_fd, name, n, false, err);
		break;
	case SETTLE_DONE:
		rc = end_in_archive(box, held_fd, name, n, true, err);
		break;
	case SETTLE_DEAD:
		rc = mark_to_dead(box->md, held_fd, name, n, n->hold_attempt, err);
		break;
	}
	if (rc == MR_OK && n->deadline_s > 0)
		past_keep(box->md, NULL, n, how);
	return rc;
}

/* ---- Finding a hold again ---- */

/* The name that a hold on mail of ours most likely has; `from_cur`: it was in cur/ when it was taken. */
static bool
likely_name(const struct hold *hold, bool from_cur, char ret[NAME_LEN])
{
	struct file_name n;
	char base[NAME_LEN], original[NAME_LEN];

	name_for_id(hold->id, base);
	return name_parse(str_of(base), &n) && hold->attempt > 0 &&
	       name_build(&n, hold->attempt - 1, hold->flags & ~(unsigned)MR_ACKED, from_cur, original) &&
	       name_build_held(hold->token, hold->deadline_ms / 1000, hold->attempt, str_of(original), ret);
}

struct held_match {
	const struct hold *hold;
	char *name;
	bool found;
};

static bool
match_hold(void *ctx, const struct dir_entry *entry)
{
	struct held_match *m = ctx;
	struct file_name n;

	if (!name_parse_held(str_of(entry->name), &n) || strcmp(n.token, m->hold->token) != 0 ||
	    n.hold_attempt != m->hold->attempt || strcmp(n.id, m->hold->id) != 0)
		return true;
	(void)snprintf(m->name, NAME_LEN, "%s", entry->name);
	m->found = true;
	return false;
}

/* Which of its names is there now. Settling many one after the other must not read the folder each time. */
static enum mr_rc
find_held(int held_fd, const struct hold *hold, char ret[NAME_LEN], struct mr_error *err)
{
	struct held_match m = { .hold = hold, .name = ret };
	struct stat st;

	if (likely_name(hold, false, ret) && sys_stat(held_fd, ret, &st) == 0)
		return MR_OK;
	if (likely_name(hold, true, ret) && sys_stat(held_fd, ret, &st) == 0)
		return MR_OK;

	TRY(dir_each(held_fd, match_hold, &m, err));
	return m.found ? MR_OK : hold_is_over(hold, err);
}

static enum mr_rc
open_hold(struct mailbox *box, struct mr_room *room, const struct hold *hold, int *ret_fd, char ret_name[NAME_LEN],
    struct mr_error *err)
{
	enum mr_rc rc = mailbox_open_any(box, maildir_of(room), hold->agent, err);
	if (rc == MR_OK)
		rc = mailbox_held(box, hold->life, false, ret_fd, err);
	if (rc == MR_NOTFOUND)
		return hold_is_over(hold, err);
	return rc == MR_OK ? find_held(*ret_fd, hold, ret_name, err) : rc;
}

enum mr_rc
maildir_settle(struct mr_room *room, const struct hold *hold, enum settle how, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(sys_close_fd) int held_fd = -1;
	char name[NAME_LEN];
	struct file_name n;

	enum mr_rc rc = open_hold(&box, room, hold, &held_fd, name, err);
	if (rc != MR_OK)
		return rc;
	if (!name_parse_held(str_of(name), &n))
		return mr_fail(err, MR_CORRUPT, "'%s' is no name of held mail", name);
	rc = hold_end(&box, held_fd, name, &n, how, err);
	return rc == MR_NOTFOUND ? hold_is_over(hold, err) : rc;
}

enum mr_rc
maildir_extend(struct mr_room *room, struct hold *hold, int64_t lease_ms, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(sys_close_fd) int held_fd = -1;
	char name[NAME_LEN], extended[NAME_LEN];

	enum mr_rc rc = open_hold(&box, room, hold, &held_fd, name, err);
	if (rc != MR_OK || hold->kind == HOLD_PROCESS) /* that one lasts as long as its process */
		return rc;
	lease_ms = hold_clamp_lease(lease_ms);
	int64_t deadline_s = hold_deadline_s(lease_ms);
	struct mr_str original = str_of(name);
	for (int dots = 0; dots < 4; dots++) { /* behind h.<token>.<deadline>.<attempt>. */
		const char *dot = memchr(original.ptr, '.', original.len);
		if (dot == NULL)
			return mr_fail(err, MR_CORRUPT, "'%s' is no name of held mail", name);
		original = str_of(dot + 1);
	}
	if (!name_build_held(hold->token, deadline_s, hold->attempt, original, extended))
		return mr_fail(err, MR_REFUSED, "the file name '%.60s...' is too long", name);
	rc = token_extend(box.md, hold, lease_ms, err);
	if (rc == MR_OK && strcmp(name, extended) != 0)
		rc = commit_move(box.md, held_fd, name, held_fd, extended, err);
	if (rc == MR_NOTFOUND) {
		token_drop(box.md, hold->token); /* who ended the hold removed it; we just made it again */
		return hold_is_over(hold, err);
	}
	if (rc == MR_OK)
		hold->deadline_ms = deadline_s * 1000;
	return rc;
}

enum mr_rc
maildir_each_hold(struct mr_room *room, const char *agent, bool (*fn)(void *ctx, const struct hold *hold), void *ctx,
    struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(listing_done) struct listing l = { 0 };
	bool go_on = true;

	enum mr_rc rc = mailbox_open(&box, maildir_of(room), agent, err);
	if (rc == MR_OK)
		rc = list_folders(&box, MR_HELD, false, NULL, &l, err);
	listing_sort(&l, false);
	for (size_t i = 0; i < l.n && go_on && rc == MR_OK; i++) {
		struct hold hold = { .life = l.v[i].life, .flags = l.v[i].flags };
		struct file_name n;
		if (!name_parse_held(str_of(l.v[i].name), &n))
			continue;
		(void)snprintf(hold.agent, sizeof(hold.agent), "%s", agent);
		memcpy(hold.id, n.id, sizeof(hold.id));
		memcpy(hold.token, n.token, sizeof(hold.token));
		hold.attempt = n.hold_attempt;
		hold.deadline_ms = n.deadline_s * 1000;
		hold.kind = n.deadline_s == 0 ? HOLD_PROCESS : HOLD_LEASE;
		go_on = fn(ctx, &hold);
	}
	return rc;
}
