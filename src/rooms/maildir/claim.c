/* SPDX-License-Identifier: MIT */
/*
 * claim.c - mail that an agent is being shown or works on, and work of a queue that an agent holds.
 *
 * A claim is one rename: new/X -> held/<life>/h.<token>.<deadline>.<attempt>.X, in a queue ready/.../X -> claimed/h...
 * Only one rename of a file succeeds, so exactly one of several agents gets a message; the others find no source.
 * Ending the claim is one rename as well, so exactly one of the holder that finishes and the sweeper that takes the
 * mail back succeeds; the other gets the error "that claim is over". Every held name has a token and every new claim a
 * new attempt number, so a process can only end the claim that it means.
 *
 * When mail may be taken back, and why a sweeper never takes it from a living holder:
 *
 * - Claims of a handle (deadline 0) live as long as holds/<token> is locked. The holder (1) makes the file without a
 *   name, (2) locks it, (3) gives it the name holds/<token>, (4) renames mail to held names with this token. A sweeper
 *   starts from a held name, so it looks at the lock after (4), and by then the lock is held until the handle is closed
 *   or the process dies. A missing file means that the holder's own close undid (3), or a power cut did, which ended
 *   the lock as well. If the lock is free, the sweeper renames the held name that it saw; if the holder settled in
 *   between, it renamed that name first and the sweeper finds nothing. The name is never used again, because the token
 *   is random.
 * - Leases write holds/<token> before the rename, too, so a sweeper that sees the name can read the deadline. `extend`
 *   first writes the new deadline into the file and then renames: in between the old name has expired but the file says
 *   otherwise, and within one boot the file decides. If a sweeper read the old file just before, it renames the old
 *   name; then the holder's rename finds no source and `extend` reports that the claim is over. After a reboot the name
 *   decides, which has either the old deadline or the new one.
 * - A life that was taken over. takeover links lives/<N+1>, then renames held/<N> away, then puts back the mail in it.
 *   A claim of the old life opens held/<N>, then checks that N is still the newest life, then renames into the folder
 *   that it opened. If N+1 came before the check, the claim is refused. If it came after, takeover renames away the
 *   very folder that was opened; mail that arrives in it late is found by the sweep that finishes that folder, which
 *   cannot be removed while it is not empty (recover.c).
 *
 * A claim need not be durable: a power cut that undoes it puts the mail back, which is right.
 */
#include "rooms/maildir/maildir.h"

#define CLAIM_TRIES 20

static enum mr_rc
claim_is_over(const struct claim *claim, struct mr_error *err)
{
	if (box_queue(claim->box))
		return mr_fail(err, MR_NOTFOUND,
		    "that claim on '%s' is over\n"
		    "it ran out or was settled; another agent may be at work on it: stop, and change nothing more",
		    claim->id);
	return mr_fail(err, MR_NOTFOUND,
	    "that hold on '%s' is over\n"
	    "it ran out, was settled or the name was taken over; another agent may have the message",
	    claim->id);
}

void
claim_from_name(const struct file_name *n, struct claim *ret)
{
	memcpy(ret->id, n->id, sizeof(ret->id));
	memcpy(ret->token, n->token, sizeof(ret->token));
	ret->attempt = n->hold_attempt;
	ret->deadline_ms = n->deadline_s * 1000;
	ret->kind = n->deadline_s == 0 ? CLAIM_HANDLE : CLAIM_LEASE;
}

/* ---- Taking ---- */

/* One try, the first with the most likely name. MR_NOTFOUND with *ret_again: the message has another name, or was
 * renamed meanwhile. */
static enum mr_rc
take_mail(struct mailbox *box, const struct claim_terms *terms, bool guess, struct claim *claim, bool *ret_again,
    struct mr_error *err)
{
	mr_auto(sys_close_fd) int own_fd = -1;
	mr_auto(arena_done) struct arena *own = NULL;
	struct listed at;
	char name[NAME_LEN], likely[NAME_LEN];
	unsigned newest = 0;
	int held_fd = -1, from_fd = -1;

	*ret_again = false;
	/* Searches the archive only because finding it there is quicker than proving that it is nowhere. */
	if (guess)
		list_guess(claim->id, likely, &at);
	else
		TRY(list_find(box, claim->id, MR_INBOX | MR_HELD | MR_ARCHIVE, &own, &at, err));
	if (at.folder == MR_HELD)
		return mr_fail(err, MR_BUSY,
		    "message '%s' is being shown or worked on by another command\n"
		    "it comes back by itself when that ends without success",
		    claim->id);
	if (at.folder != MR_INBOX || (at.flags & MR_SEEN))
		return mr_fail(err, MR_NOTFOUND, "message '%s' is no longer unread", claim->id);
	/* Opens held/<life>, then checks the life; the order matters, see above. */
	if (mailbox_held(box, terms->life, true, &held_fd, err) != MR_OK) {
		*ret_again = err->sys_errno == ENOENT; /* it was empty and removed meanwhile: renew.c */
		return err->code;
	}
	TRY(life_newest(box, terms->life, &newest, err));
	if (newest > terms->life)
		return mr_fail(err, MR_REFUSED,
		    "'%s' was taken over by its life %u, this is life %u\n"
		    "the mail is with the new life; register under another name to go on",
		    box->agent, newest, terms->life);
	if (claim->token[0] == '\0')
		TRY(token_take(box->md, terms, claim, err));
	if (at.subfolder) { /* in a folder that is being replaced: renew.c */
		TRY(list_open_folder(box, &at, &own_fd, err));
		from_fd = own_fd;
	} else {
		TRY(mailbox_folder(box, (enum box_folder)at.box, &from_fd, err));
	}
	claim->attempt = at.attempt + 1;
	claim->flags = at.flags;
	claim->priority = (enum mr_priority)at.priority;
	claim->look = at.look;
	if (!name_build_held(claim->token, claim->deadline_ms / 1000, claim->attempt, str_of(at.name), name))
		return mr_fail(err, MR_REFUSED,
		    "the file name '%.60s...' is too long to be held\nrename the file: its name may have at most 200 bytes",
		    at.name);
	enum mr_rc rc = commit_move(box->md, from_fd, at.name, held_fd, name, err);
	*ret_again = rc == MR_NOTFOUND || rc == MR_BUSY; /* busy: the empty held/<life> was removed */
	if (*ret_again)
		(void)mailbox_refresh(box);
	if (rc == MR_EXISTS) /* two files have the same name, and this handle holds the other one */
		return mr_fail(err, MR_BUSY, "message '%s' is held already", claim->id);
	return rc;
}

enum mr_rc
maildir_claim(struct mr_room *room, const char *box, const char *id, const struct claim_terms *terms, struct claim *ret,
    struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox mailbox = MAILBOX_INIT;
	struct maildir *md = maildir_of(room);
	const char *queue = box_queue(box);
	struct claim claim = { .life = terms->life, .kind = terms->kind };
	enum mr_rc rc;

	text_join(claim.box, sizeof claim.box, box, NULL);
	text_join(claim.agent, sizeof claim.agent, queue ? terms->claimer : box, NULL);
	if (queue) {
		rc = queue_claim_next(md, queue, terms, &claim, err);
	} else {
		text_join(claim.id, sizeof claim.id, id, NULL);
		rc = mailbox_open(&mailbox, md, box, err);
		bool again = rc == MR_OK;
		for (int tries = 0; again && tries < CLAIM_TRIES; tries++)
			rc = take_mail(&mailbox, terms, tries == 0, &claim, &again, err);
		if (again)
			rc = mr_fail(err, MR_BUSY, "message '%s' keeps being renamed by other programs", id);
	}
	if (rc == MR_OK)
		*ret = claim;
	else if (claim.token[0] != '\0' && terms->kind == CLAIM_LEASE)
		token_drop(md, claim.token);
	return rc;
}

/* ---- Finding a claim again ---- */

struct claimed { /* finish with claimed_done */
	struct mailbox box;
	struct queue q; /* fd < 0: the claim is on mail of the mailbox */
	int fd;         /* held/<life>, borrowed from the box, or claimed/ */
	char name[NAME_LEN];
	struct work_name n; /* points into name */
	unsigned attempt;   /* of the name that it will get */
};
#define CLAIMED_INIT ((struct claimed){ .box = MAILBOX_INIT, .q = QUEUE_INIT, .fd = -1 })

static void
claimed_done(struct claimed *c)
{
	if (c->q.fd >= 0)
		sys_close_fd(&c->fd);
	queue_done(&c->q);
	mailbox_done(&c->box);
}

/* The most likely name of a claim on mail of ours; `from_cur`: it was taken from cur/. With it, settling many claims
 * does not read the folder each time. */
static bool
guess_name(struct claimed *c, const struct claim *claim, bool from_cur)
{
	struct file_name n;
	char base[NAME_LEN], original[NAME_LEN];

	name_new(claim->id, claim->priority, claim->look, base);
	return name_parse(str_of(base), &n) && claim->attempt > 0 &&
	       name_build(&n, claim->attempt - 1, claim->flags & ~(unsigned)MR_ACKED, from_cur, original) &&
	       name_build_held(claim->token, claim->deadline_ms / 1000, claim->attempt, str_of(original), c->name) &&
	       name_parse_held(str_of(c->name), &c->n.file);
}

/* The folder of the claims in claim->box of claim->life. */
static enum mr_rc
open_claims(struct maildir *md, const struct claim *claim, struct claimed *c, struct mr_error *err)
{
	const char *queue = box_queue(claim->box);

	if (queue) {
		TRY(queue_open_any(&c->q, md, queue, err));
		return dir_open(c->q.fd, "claimed", &c->fd, err);
	}
	TRY(mailbox_open_any(&c->box, md, claim->box, err));
	return mailbox_held(&c->box, claim->life, false, &c->fd, err);
}

/* `exact`: only this claim; else any with its token. MR_NOTFOUND: not there. */
static enum mr_rc
find_claimed(const struct claim *claim, bool exact, struct claimed *c, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	const struct file_name *file = &c->n.file;

	TRY(dir_names(c->fd, &names, err));
	for (size_t i = 0; i < names.n; i++) {
		text_join(c->name, sizeof(c->name), names.v[i], NULL);
		if (!(c->q.fd >= 0 ? work_parse(QUEUE_CLAIMED, str_of(c->name), &c->n)
				   : name_parse_held(str_of(c->name), &c->n.file)) ||
		    strcmp(file->token, claim->token) != 0 ||
		    (exact && (file->hold_attempt != claim->attempt || strcmp(file->id, claim->id) != 0)))
			continue;
		c->attempt = file->hold_attempt;
		return MR_OK;
	}
	c->n = (struct work_name){ 0 };
	return mr_fail(err, MR_NOTFOUND, "no claim '%s' in '%s'", claim->token, claim->box);
}

/* From a token alone. If a power cut took holds/<token>, or the token is a handle's and has several claims: searches
 * every queue. */
enum mr_rc
maildir_find_claim(struct mr_room *room, const char *token, struct claim *ret, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	mr_auto(mr_names_done) struct mr_names boxes = { 0 };
	struct claim claim = { 0 };

	if (!token_valid(str_of(token)))
		return mr_fail(err, MR_NOTFOUND, "no claim '%s': it is over, or never existed", token);
	enum mr_rc rc = token_read(md, token, &claim, err);
	bool anywhere = rc == MR_NOTFOUND || rc == MR_CORRUPT || (rc == MR_OK && claim.kind == CLAIM_HANDLE);
	(void)snprintf(claim.token, sizeof(claim.token), "%s", token);
	if (anywhere)
		rc = queue_names(md, &boxes, err);
	for (size_t i = 0; rc == MR_OK && i < (anywhere ? boxes.n : 1); i++) {
		mr_auto(claimed_done) struct claimed c = CLAIMED_INIT;

		if (anywhere)
			(void)snprintf(claim.box, sizeof(claim.box), "queue:%s", boxes.v[i]);
		rc = open_claims(md, &claim, &c, err);
		if (rc == MR_OK)
			rc = find_claimed(&claim, false, &c, err);
		if (rc == MR_OK) {
			claim_from_name(&c.n.file, &claim);
			claim.flags = name_flags(&c.n.file, false);
			claim.over = token_is_over(md, &c.n.file);
			*ret = claim;
			return MR_OK;
		}
		rc = anywhere ? shared_pass(md, rc, err, "queues/%s", boxes.v[i]) : mr_unless(rc, MR_NOTFOUND, err);
	}
	return rc == MR_OK ? mr_fail(err, MR_NOTFOUND, "no claim '%s': it is over, or never existed", token) : rc;
}

enum mr_rc
maildir_each_claim(struct mr_room *room, const char *box, unsigned states,
    bool (*fn)(void *ctx, const struct queue_item *item), void *ctx, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox mailbox = MAILBOX_INIT;
	mr_auto(listing_done) struct listing l = { 0 };
	bool go_on = true;

	if (box_queue(box))
		return queue_each(maildir_of(room), box_queue(box), states, fn, ctx, err);
	TRY(mailbox_open(&mailbox, maildir_of(room), box, err));
	TRY(list_folders(&mailbox, MR_HELD, false, NULL, &l, err));
	listing_sort(&l, SCAN_OLDEST);
	for (size_t i = 0; i < l.n && go_on; i++) {
		struct claim claim = { .life = l.v[i].life, .flags = l.v[i].flags };
		struct queue_item item = { .state = QUEUE_CLAIMED, .claim = &claim };
		struct file_name n;

		if (!name_parse_held(str_of(l.v[i].name), &n))
			continue;
		claim_from_name(&n, &claim);
		(void)snprintf(claim.agent, sizeof(claim.agent), "%s", box);
		(void)snprintf(claim.box, sizeof(claim.box), "%s", box);
		memcpy(item.id, claim.id, sizeof(item.id));
		item.attempt = claim.attempt;
		go_on = fn(ctx, &item);
	}
	return MR_OK;
}

/* ---- Ending ---- */

enum mr_rc
mail_end(struct mailbox *box, int held_fd, const char *name, struct file_name *n, enum settle how, struct mr_error *err)
{
	bool archive = how == SETTLE_ARCHIVE || how == SETTLE_DONE, seen = archive || how == SETTLE_SEEN;
	bool with_info = seen || n->has_info;
	unsigned flags = name_flags(n, false) | (seen ? (unsigned)MR_SEEN : 0);
	unsigned attempt = seen ? n->attempt : n->hold_attempt;
	char text[NAME_RELEASED_LEN], month[24];
	int fd = -1;

	if (how != SETTLE_BACK)
		n->released = (struct mr_str){ 0 };
	if (how == SETTLE_DEAD) {
		TRY(mark_to_dead(box->md, held_fd, name, n, attempt, err));
	} else {
		if (how == SETTLE_LATER) { /* the holder gets it again after all others; it was no attempt */
			name_released_text(&(struct released){ .at_ms = clock_now_ms() }, text);
			n->released = str_of(text);
			attempt -= attempt > 0;
		}
		enum box_folder to = archive ? BOX_MONTH : with_info ? BOX_CUR : BOX_NEW;
		enum mr_rc rc = MR_BUSY;

		name_month(ARCHIVE_FOLDER, id_time_ms(n->id), month);
		/* Busy: that folder was removed since it was opened: replaced (renew.c), or an old month (retain.c). */
		for (int tries = 0; rc == MR_BUSY && tries <= CLAIM_TRIES; tries++) {
			if (tries > 0)
				sys_close_fd(&box->folder[to]);
			TRY(archive ? mailbox_subfolder(box, month, true, &fd, err)
				    : mailbox_folder(box, to, &fd, err));
			if (archive)
				flags |= mark_carry_acked(box, "", month, n);
			if (how == SETTLE_DONE && mailbox_map_acked(box, month)) {
				flags |= MR_ACKED;
				n->a_is_ours = true;
			}
			rc = mark_rename(box->md, held_fd, name, fd, n, attempt, flags, with_info, err);
		}
		TRY(rc);
		mark_note(box, how == SETTLE_SEEN);
	}
	if (n->deadline_s > 0)
		past_keep(box->md, NULL, n, how);
	return MR_OK;
}

static enum mr_rc
move_work(void *ctx, int to_fd, struct mr_error *err)
{
	struct claimed *c = ctx;

	return mark_rename(c->q.md, c->fd, c->name, to_fd, &c->n.file, c->attempt, name_flags(&c->n.file, false),
	    c->n.file.has_info, err);
}

static struct path
done_folder(const struct claimed *c)
{
	char month[24];

	name_month("", id_time_ms(c->n.file.id), month);
	return path_of("done/", month + 1, NULL);
}

/* Was this very claim settled? A power cut can leave the file under both names: without a journal, and on btrfs if the
 * folder of the month was new (observed). Then the name in claimed/ is stale and must not bring the work back. */
static bool
is_settled(const struct claimed *c)
{
	char name[NAME_LEN];
	const struct path month = done_folder(c);
	const char *const folders[] = { month.z, "failed" };
	struct file_name named = c->n.file;
	struct stat here, there;

	named.released = (struct mr_str){ 0 };
	if (!name_build(&named, named.hold_attempt, name_flags(&named, false), named.has_info, name) ||
	    sys_stat(c->fd, c->name, &here) < 0)
		return false;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		mr_auto(sys_close_fd) int fd = -1;

		if (dir_open(c->q.fd, folders[i], &fd, IGNORED) == MR_OK && sys_stat(fd, name, &there) == 0 &&
		    there.st_ino == here.st_ino)
			return true;
	}
	return false;
}

static enum mr_rc
work_end(struct claimed *c, const struct claim *claim, enum settle how, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct released r = { .at_ms = clock_now_ms() };
	char text[NAME_RELEASED_LEN];

	if ((how == SETTLE_BACK || how == SETTLE_DEAD) && is_settled(c))
		return sys_unlink(c->fd, c->name) == 0 || errno == ENOENT
			   ? MR_OK
			   : mr_fail_errno(err, "cannot remove '%s'", c->name);
	switch (how) {
	case SETTLE_BACK:
		return bucket_put(&c->q, c->n.p, BUCKET_LOWEST, move_work, c, NULL, err);
	case SETTLE_LATER: /* no attempt; its name says who released it and for whom it is reserved */
		name_who(claim->agent, r.by);
		if (claim->only_for != NULL) {
			name_who(claim->only_for, r.only_for);
			r.only_until_s = (claim->only_until_ms + 999) / 1000;
		}
		name_released_text(&r, text);
		c->n.file.released = str_of(text);
		c->attempt -= c->attempt > 0;
		return bucket_put(&c->q, c->n.p, BUCKET_HIGHEST, move_work, c, NULL, err);
	case SETTLE_DONE:
	case SETTLE_DEAD:
		break;
	case SETTLE_SEEN:
	case SETTLE_ARCHIVE:
		return mr_fail(err, MR_REFUSED, "work of a queue ends as done or failed, or goes back");
	}
	TRY(queue_folder(&c->q, how == SETTLE_DONE ? done_folder(c).z : "failed", &fd, err));
	c->n.file.released = (struct mr_str){ 0 };
	return move_work(c, fd, err);
}

enum mr_rc
maildir_settle(struct mr_room *room, const struct claim *claim, enum settle how, struct mr_error *err)
{
	mr_auto(claimed_done) struct claimed c = CLAIMED_INIT;
	struct maildir *md = maildir_of(room);
	bool work = box_queue(claim->box) != NULL, noted = work && (claim->reason || claim->only_for);

	enum mr_rc opened = open_claims(md, claim, &c, err), rc = opened == MR_OK ? MR_NOTFOUND : opened;

	for (int from_cur = 0; opened == MR_OK && rc == MR_NOTFOUND && !work && from_cur < 2; from_cur++)
		if (guess_name(&c, claim, from_cur))
			rc = mail_end(&c.box, c.fd, c.name, &c.n.file, how, err);
	if (opened == MR_OK && rc == MR_NOTFOUND) {
		rc = find_claimed(claim, true, &c, err);
		if (rc == MR_OK && noted)
			rc = token_note(md, claim, err);
		if (rc == MR_OK)
			rc = work ? work_end(&c, claim, how, err) : mail_end(&c.box, c.fd, c.name, &c.n.file, how, err);
	}
	if (rc == MR_NOTFOUND) {
		if (noted && c.n.file.deadline_s > 0)
			token_drop(
			    md, claim->token); /* the end of the claim moved the file away, and we made it again */
		return claim_is_over(claim, err);
	}
	if (rc != MR_OK || !work || c.n.file.deadline_s == 0)
		return rc;
	/* After a power cut the claim may be there again, and without its file nobody would know the holder. So the
	 * file is removed only when the end is durable. Work that came back needs none: its time is up. */
	if (how != SETTLE_BACK)
		TRY(commit_flush(md, err));
	past_keep(md, &c.q, &c.n.file, how);
	return MR_OK;
}

enum mr_rc
maildir_extend(struct mr_room *room, struct claim *claim, int64_t lease_ms, struct mr_error *err)
{
	mr_auto(claimed_done) struct claimed c = CLAIMED_INIT;
	struct maildir *md = maildir_of(room);
	char extended[NAME_LEN];

	enum mr_rc rc = open_claims(md, claim, &c, err);
	if (rc == MR_OK)
		rc = find_claimed(claim, true, &c, err);
	if (rc == MR_NOTFOUND)
		return claim_is_over(claim, err);
	if (rc != MR_OK || claim->kind == CLAIM_HANDLE) /* that one lasts as long as its handle */
		return rc;
	lease_ms = lease_clamp(lease_ms);
	int64_t deadline_s = lease_deadline_s(lease_ms);
	const char *original = c.name;
	for (int dots = 0; dots < 4; dots++) /* the part after h.<token>.<deadline>.<attempt>. */
		original += strcspn(original, ".") + 1;
	if (!name_build_held(claim->token, deadline_s, claim->attempt, str_of(original), extended))
		return mr_fail(err, MR_REFUSED, "the file name '%.60s...' is too long", c.name);
	/* First the file, then the name: see above. */
	rc = token_extend(md, claim, lease_ms, err);
	if (rc == MR_OK && strcmp(c.name, extended) != 0)
		rc = commit_move(md, c.fd, c.name, c.fd, extended, err);
	if (rc == MR_NOTFOUND) {
		token_drop(md, claim->token); /* the end of the claim removed the file, and we made it again */
		return claim_is_over(claim, err);
	}
	if (rc == MR_OK)
		claim->deadline_ms = deadline_s * 1000;
	return rc;
}
