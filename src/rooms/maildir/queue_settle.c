/* SPDX-License-Identifier: MIT */
/*
 * queue_settle.c - how a claim ends: done, failed, released or back. Like the end of a hold it is one rename of a name
 * that carries the token, so of a claimer that is late and whoever put its work back exactly one succeeds.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/maildir/holding.h"
#include "rooms/maildir/queue.h"
#include <errno.h>
#include <stdio.h>

static enum mr_rc
claim_is_over(const struct hold *hold, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND,
	    "that claim on '%s' is over\n"
	    "it ran out or was settled; another may be at work on it: stop, and change nothing more",
	    hold->id);
}

/* ---- Finding it ---- */

struct claim_match {
	const char *token;
	const struct hold *hold; /* or NULL: any with that token */
	char name[NAME_LEN];
	bool found;
};

static bool
match_claim(void *ctx, const struct dir_entry *entry)
{
	struct claim_match *m = ctx;
	struct work_name n;

	if (!work_parse(QUEUE_CLAIMED, str_of(entry->name), &n) || strcmp(n.file.token, m->token) != 0)
		return true;
	if (m->hold != NULL && (n.file.hold_attempt != m->hold->attempt || strcmp(n.file.id, m->hold->id) != 0))
		return true;
	(void)snprintf(m->name, sizeof(m->name), "%s", entry->name);
	m->found = true;
	return false;
}

struct claimed { /* a claim, found and open */
	struct queue q;
	int fd; /* claimed/ */
	char name[NAME_LEN];
	struct work_name n; /* points into name */
};
#define CLAIMED_INIT ((struct claimed){ .q = QUEUE_INIT, .fd = -1 })

static void
claimed_done(struct claimed *c)
{
	sys_close_fd(&c->fd);
	queue_done(&c->q);
}

/* MR_NOTFOUND: not there. */
static enum mr_rc
find_in(struct maildir *md, const char *queue, const char *token, const struct hold *hold, struct claimed *c,
    struct mr_error *err)
{
	struct claim_match m = { .token = token, .hold = hold };

	enum mr_rc rc = queue_open_any(&c->q, md, queue, err);
	if (rc == MR_OK)
		rc = dir_open(c->q.fd, "claimed", &c->fd, err);
	if (rc == MR_OK)
		rc = dir_each(c->fd, match_claim, &m, err);
	if (rc != MR_OK)
		return rc;
	if (!m.found)
		return mr_fail(err, MR_NOTFOUND, "no claim '%s' in queue '%s'", token, queue);
	memcpy(c->name, m.name, sizeof(c->name));
	return work_parse(QUEUE_CLAIMED, str_of(c->name), &c->n)
		   ? MR_OK
		   : mr_fail(err, MR_CORRUPT, "'%s' is no name of claimed work", c->name);
}

/* ---- Ending it ---- */

static enum mr_rc
move_into(void *ctx, int to_fd, struct mr_error *err)
{
	struct claimed *c = ctx;

	return mark_rename(c->q.md, c->fd, c->name, to_fd, &c->n.file, c->n.file.hold_attempt,
	    name_flags(&c->n.file, false), c->n.file.has_info, err);
}

/* Released: no attempt, and its name says by whom, and for whom alone. */
static enum mr_rc
move_later(void *ctx, int to_fd, struct mr_error *err)
{
	struct claimed *c = ctx;
	unsigned attempt = c->n.file.hold_attempt;

	return mark_rename(c->q.md, c->fd, c->name, to_fd, &c->n.file, attempt > 0 ? attempt - 1 : 0,
	    name_flags(&c->n.file, false), c->n.file.has_info, err);
}

static enum mr_rc
put_later(struct claimed *c, const struct hold *hold, struct mr_error *err)
{
	struct released r = { .at_ms = clock_now_ms() };
	char text[NAME_RELEASED_LEN];

	name_who(hold->agent, r.by);
	if (hold->only_for != NULL) {
		name_who(hold->only_for, r.only_for);
		r.only_until_s = (hold->only_until_ms + 999) / 1000;
	}
	name_released_text(&r, text);
	c->n.file.released = str_of(text);
	return bucket_put(&c->q, c->n.p, BUCKET_HIGHEST, move_later, c, NULL, err);
}

static enum mr_rc
move_to(struct claimed *c, const char *path, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	enum mr_rc rc = queue_folder(&c->q, path, &fd, err);
	c->n.file.released = (struct mr_str){ 0 };
	return rc == MR_OK ? move_into(c, fd, err) : rc;
}

static void
done_folder(const struct claimed *c, char ret[32])
{
	char month[24];

	name_month(c->n.file.id, month);
	(void)snprintf(ret, 32, "done/%.16s", month + strlen(".Archive."));
}

/* Was this very claim settled? A power cut can leave the file under both names: without a journal, and on btrfs when
 * the folder of the month was new (seen). The name in claimed/ is a ghost then, and must not bring the work back. */
static bool
is_settled(const struct claimed *c)
{
	char month[32], name[NAME_LEN];
	const char *const folders[] = { month, "failed" };
	struct file_name named = c->n.file;
	struct stat here, there;

	done_folder(c, month);
	named.released = (struct mr_str){ 0 };
	if (!name_build(&named, named.hold_attempt, name_flags(&named, false), named.has_info, name) ||
	    sys_stat(c->fd, c->name, &here) < 0)
		return false;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		mr_auto(sys_close_fd) int fd = -1;
		struct mr_error ignored = { 0 };

		if (dir_open(c->q.fd, folders[i], &fd, &ignored) == MR_OK && sys_stat(fd, name, &there) == 0 &&
		    there.st_ino == here.st_ino)
			return true;
	}
	return false;
}

static enum mr_rc
end_claim(struct claimed *c, const struct hold *hold, enum settle how, struct mr_error *err)
{
	char path[32];

	if ((how == SETTLE_BACK || how == SETTLE_DEAD) && is_settled(c))
		return sys_unlink(c->fd, c->name) == 0 || errno == ENOENT
			   ? MR_OK
			   : mr_fail_errno(err, "cannot remove '%s'", c->name);
	switch (how) {
	case SETTLE_BACK:
		return bucket_put(&c->q, c->n.p, BUCKET_LOWEST, move_into, c, NULL, err);
	case SETTLE_LATER:
		return put_later(c, hold, err);
	case SETTLE_DONE:
		done_folder(c, path);
		return move_to(c, path, err);
	case SETTLE_DEAD:
		return move_to(c, "failed", err);
	case SETTLE_SEEN:
	case SETTLE_ARCHIVE:
		break;
	}
	return mr_fail(err, MR_REFUSED, "work of a queue ends as done or failed, or goes back");
}

enum mr_rc
maildir_queue_settle(struct mr_room *room, const struct hold *hold, enum settle how, struct mr_error *err)
{
	mr_auto(claimed_done) struct claimed c = CLAIMED_INIT;

	bool noted = hold->reason != NULL || hold->only_for != NULL;
	enum mr_rc rc = find_in(maildir_of(room), hold->queue, hold->token, hold, &c, err);
	if (rc == MR_OK && noted)
		rc = token_note(c.q.md, hold, err);
	if (rc == MR_OK)
		rc = end_claim(&c, hold, how, err);
	if (rc == MR_NOTFOUND) {
		if (noted && c.n.file.deadline_s > 0)
			token_drop(c.q.md, hold->token); /* who ended the claim moved it away; we just made it again */
		return claim_is_over(hold, err);
	}
	if (rc != MR_OK || c.n.file.deadline_s == 0)
		return rc;
	/* After a power cut the claim may be there again, and without its file nobody would know whose it is. So the
	 * file goes when the end is durable. Work that came back needs none: its time is up. */
	if (how != SETTLE_BACK)
		rc = commit_flush(c.q.md, err);
	if (rc == MR_OK)
		past_keep(c.q.md, &c.q, &c.n.file, how);
	return rc;
}

enum mr_rc
maildir_queue_extend(struct mr_room *room, struct hold *hold, int64_t lease_ms, struct mr_error *err)
{
	mr_auto(claimed_done) struct claimed c = CLAIMED_INIT;
	char file[NAME_LEN], extended[NAME_LEN];

	enum mr_rc rc = find_in(maildir_of(room), hold->queue, hold->token, hold, &c, err);
	if (rc == MR_NOTFOUND)
		return claim_is_over(hold, err);
	if (rc != MR_OK || hold->kind == HOLD_PROCESS) /* that one lasts as long as its process */
		return rc;
	lease_ms = hold_clamp_lease(lease_ms);
	int64_t deadline_s = hold_deadline_s(lease_ms);
	(void)snprintf(file, sizeof(file), "%s", c.n.file.base.ptr); /* from its base on: the name in ready/ */
	if (!work_claimed_name(hold->token, deadline_s, hold->attempt, c.n.p, file, extended))
		return mr_fail(err, MR_REFUSED, "the file name '%.60s...' is too long", c.name);
	/* The file first, then the name: hold.c says why. */
	rc = token_extend(c.q.md, hold, lease_ms, err);
	if (rc == MR_OK && strcmp(c.name, extended) != 0)
		rc = commit_move(c.q.md, c.fd, c.name, c.fd, extended, err);
	if (rc == MR_NOTFOUND) {
		token_drop(c.q.md, hold->token); /* who ended the claim removed it; we just made it again */
		return claim_is_over(hold, err);
	}
	if (rc == MR_OK)
		hold->deadline_ms = deadline_s * 1000;
	return rc;
}

/* ---- From a token alone ---- */

static void
fill_in(struct hold *hold, const struct claimed *c)
{
	memcpy(hold->id, c->n.file.id, sizeof(hold->id));
	memcpy(hold->token, c->n.file.token, sizeof(hold->token));
	(void)snprintf(hold->queue, sizeof(hold->queue), "%s", c->q.name);
	hold->attempt = c->n.file.hold_attempt;
	hold->deadline_ms = c->n.file.deadline_s * 1000;
	hold->kind = c->n.file.deadline_s == 0 ? HOLD_PROCESS : HOLD_LEASE;
	hold->over = token_is_over(c->q.md, &c->n.file);
}

/* Where a power cut took holds/<token>, or it is a process's and serves several claims: in every queue. */
static enum mr_rc
find_anywhere(struct maildir *md, const char *token, struct hold *hold, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	enum mr_rc rc = queue_names(md, &names, err);
	for (size_t i = 0; i < names.n && rc == MR_OK; i++) {
		mr_auto(claimed_done) struct claimed c = CLAIMED_INIT;
		rc = find_in(md, names.v[i], token, NULL, &c, err);
		if (rc == MR_OK) {
			fill_in(hold, &c);
			return MR_OK;
		}
		if (rc == MR_NOTFOUND || shared_skip(md, err, "queues/%s", names.v[i]))
			rc = MR_OK;
	}
	return rc == MR_OK ? MR_NOTFOUND : rc;
}

enum mr_rc
maildir_queue_find_claim(struct mr_room *room, const char *token, struct hold *ret, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	mr_auto(claimed_done) struct claimed c = CLAIMED_INIT;
	struct hold hold = { 0 };

	enum mr_rc rc = token_valid(str_of(token)) ? token_read(md, token, &hold, err) : MR_EMPTY;
	if (rc == MR_OK && hold.queue[0] != '\0') {
		rc = find_in(md, hold.queue, token, NULL, &c, err);
		if (rc == MR_OK)
			fill_in(&hold, &c);
	} else if (rc == MR_NOTFOUND || rc == MR_CORRUPT || (rc == MR_OK && hold.kind == HOLD_PROCESS)) {
		rc = find_anywhere(md, token, &hold, err);
	} else if (rc == MR_OK || rc == MR_EMPTY) {
		rc = MR_NOTFOUND; /* a lease on an agent's own mail, or no token at all */
	}
	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND, "no claim '%s': it is over, or never was", token);
	if (rc == MR_OK)
		*ret = hold;
	return rc;
}
