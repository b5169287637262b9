/* SPDX-License-Identifier: MIT */
/*
 * place.c - where a message is: every mailbox (also those of pruned agents), dead letters, spool; queues and channels
 * are place_shared.c's. And purge, which is the same walk with an unlink at the end.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>

#define EVERY_FOLDER (MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT)
#define PURGE_PASSES_MAX 20
#define PURGE_WAIT_MS 10000

/* ---- One walk for both ---- */

typedef enum mr_rc copy_fn(void *ctx, struct mailbox *box, const struct listed *at, struct mr_error *err);

static enum mr_rc
each_copy_in(struct mailbox *box, unsigned folders, const char *id, copy_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(listing_done) struct listing list = { 0 };
	enum mr_rc rc = list_folders(box, folders, false, id, &list, err);

	for (size_t i = 0; rc == MR_OK && i < list.n; i++)
		if (strcmp(list.v[i].id, id) == 0)
			rc = fn(ctx, box, &list.v[i], err);
	return rc;
}

static enum mr_rc
each_copy(struct maildir *md, unsigned folders, const char *id, copy_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(mailbox_done) struct mailbox dead = MAILBOX_INIT;
	enum mr_rc rc = agents_collect(md, false, &names, err);

	for (size_t i = 0; rc == MR_OK && i < names.n; i++) {
		mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;

		rc = mailbox_open_any(&box, md, names.v[i], err);
		if (rc == MR_OK)
			rc = each_copy_in(&box, folders, id, fn, ctx, err);
		if (rc == MR_NOTFOUND || (rc != MR_OK && shared_skip(md, err, "agents/%s", names.v[i])))
			rc = MR_OK;
	}
	if (rc == MR_OK)
		rc = mailbox_open_dead(&dead, md, err);
	return rc == MR_OK ? each_copy_in(&dead, MR_INBOX, id, fn, ctx, err) : rc;
}

/* ---- Evidence ---- */

struct telling {
	place_fn *fn;
	void *ctx;
};

static const char *
state_of(const struct listed *at, bool dead)
{
	if (dead)
		return "dead";
	switch ((enum mr_folder)at->folder) {
	case MR_HELD:
		return "held";
	case MR_ARCHIVE:
		return "archived";
	case MR_SENT:
		return "sent";
	case MR_DEAD:
		return "dead";
	case MR_INBOX:
		break;
	}
	return at->flags & MR_SEEN ? "read" : "unread";
}

static void
held_evidence(struct buf *out, const struct listed *at)
{
	struct file_name name;
	char until[RFC3339_LEN + 1];

	buf_addf(out, "held by life %u", at->life);
	if (!name_parse_held(str_of(at->name), &name))
		return;
	if (name.deadline_s == 0) {
		buf_adds(out, " for as long as the command that shows it runs");
	} else {
		time_rfc3339(name.deadline_s * 1000, until);
		buf_addf(out, " until %s", until);
	}
	buf_addf(out, " (attempt %u)", name.hold_attempt);
}

static void
inbox_evidence(struct buf *out, const char *agent, const struct listed *at)
{
	buf_addf(out, "in agents/%s/%s: ", agent, at->box == BOX_NEW ? "new" : "cur");
	if (at->flags & MR_REPLIED)
		buf_adds(out, "marked read and answered");
	else if (at->flags & MR_SEEN)
		buf_adds(out, "marked read");
	else if (at->box == BOX_NEW)
		buf_adds(out, at->attempt ? "handed out before and given back" : "nobody has looked at it");
	else
		buf_adds(out, "listed by a mail program or marked unread again, not read");
	if (at->attempt)
		buf_addf(out, " (handed out %u times)", at->attempt);
}

/* Marking and moving change the file's own time: what was done to it was done then or before. Copies of one message may
 * be one file, so it can be later. */
static void
add_changed(struct buf *out, struct mailbox *box, const struct listed *at)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_error ignored = { 0 };
	char when[RFC3339_LEN + 1];
	struct stat st;

	if (list_open_folder(box, at, &fd, &ignored) != MR_OK || sys_stat(fd, at->name, &st) < 0)
		return;
	time_rfc3339((int64_t)st.st_ctim.tv_sec * 1000 + st.st_ctim.tv_nsec / 1000000, when);
	buf_addf(out, "; its file last changed at %s", when);
}

static enum mr_rc
tell_copy(void *ctx, struct mailbox *box, const struct listed *at, struct mr_error *err)
{
	const struct telling *telling = ctx;
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	bool dead = box->agent[0] == '\0';
	struct stat st;

	if (dead)
		buf_adds(&evidence, "in dead/: it could not be delivered, failed, or its agent was pruned");
	else if (at->folder == MR_HELD)
		held_evidence(&evidence, at);
	else if (at->subfolder)
		buf_addf(&evidence, "in agents/%s/%s%s", box->agent, at->subfolder,
		    at->flags & MR_ACKED ? ": worked off" : "");
	else
		inbox_evidence(&evidence, box->agent, at);
	if (!dead && at->folder != MR_SENT && (at->flags & (MR_SEEN | MR_REPLIED | MR_ACKED)))
		add_changed(&evidence, box, at);
	if (!dead && sys_stat(box->fd, "agent", &st) < 0 && errno == ENOENT)
		buf_adds(&evidence, "; the agent was pruned");
	if (!buf_ok(&evidence))
		return mr_nomem(err);
	telling->fn(telling->ctx, &(struct place_of){ .agent = box->agent,
				      .folder = dead ? MR_DEAD : (enum mr_folder)at->folder,
				      .flags = at->flags,
				      .state = state_of(at, dead),
				      .evidence = buf_z(&evidence) });
	return MR_OK;
}

static void
tell_room(const struct telling *telling, const char *state, const char *evidence)
{
	telling->fn(telling->ctx, &(struct place_of){ .agent = "", .state = state, .evidence = evidence });
}

static enum mr_rc
tell_spool(struct mr_room *room, const char *id, const struct telling *telling, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = dir_open(maildir_of(room)->root_fd, "spool", &fd, err);
	struct stat st;

	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	if (sys_stat(fd, id, &st) == 0)
		tell_room(telling, "pending",
		    lock_is_held(fd, id) ? "in spool/: it is being delivered right now"
					 : "in spool/: its sender died; the next command that can write completes it");
	return MR_OK;
}

enum mr_rc
maildir_each_place(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err)
{
	struct telling telling = { .fn = fn, .ctx = ctx };

	TRY(tell_spool(room, id, &telling, err));
	TRY(each_copy(maildir_of(room), EVERY_FOLDER, id, tell_copy, &telling, err));
	return place_tell_shared(room, id, fn, ctx, err);
}

/* ---- Purge ---- */

static enum mr_rc
remove_copy(void *ctx, struct mailbox *box, const struct listed *at, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	size_t *removed = ctx;
	enum mr_rc rc = list_open_folder(box, at, &fd, err);

	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	if (sys_unlink(fd, at->name) < 0) {
		if (errno == ENOENT)
			return MR_OK; /* it moved: the next pass finds it */
		return mr_fail_errno(err, "cannot remove '%s' of '%s'", at->name, box->agent);
	}
	if (box->md->sync && sys_fsync(fd) < 0)
		return mr_fail_errno(err, "cannot make the removal of '%s' durable", at->name);
	++*removed;
	return MR_OK;
}

/* A send of it that is under way ends first: with its record locked nobody links it anew. */
static enum mr_rc
remove_spooled(struct mr_room *room, const char *id, struct mr_error *err)
{
	mr_auto(spool_done) struct spool_job job;

	spool_init(&job, room);
	enum mr_rc rc = spool_open(&job, false, err);

	if (rc == MR_OK)
		rc = spool_lock(&job, id, PURGE_WAIT_MS, err);
	if (rc == MR_BUSY)
		return mr_hint(err, "try again when its sender is finished");
	if (job.spool_fd >= 0 && (rc == MR_OK || rc == MR_NOTFOUND || rc == MR_CORRUPT))
		rc = spool_remove(&job, err);
	if (rc == MR_OK && job.md->sync && sys_fsync(job.spool_fd) < 0)
		rc = mr_fail_errno(err, "cannot make the removal of '%s' durable", id);
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

enum mr_rc
maildir_purge(struct mr_room *room, const char *id, size_t *ret_removed, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	size_t removed = 0, before;
	unsigned passes = 0;

	TRY(remove_spooled(room, id, err));
	/* Mail moves between folders while we walk: only a pass that meets none ends it. The sender's own copy goes
	 * last: as long as it is there, a purge that was cut off can be repeated. */
	do {
		before = removed;
		if (each_copy(md, EVERY_FOLDER & ~(unsigned)MR_SENT, id, remove_copy, &removed, err) != MR_OK ||
		    place_purge_shared(room, id, &removed, err) != MR_OK ||
		    (removed == before && each_copy(md, MR_SENT, id, remove_copy, &removed, err) != MR_OK))
			return mr_wrap(err, "cannot purge '%s' everywhere", id);
	} while (removed != before && ++passes < PURGE_PASSES_MAX);
	md->reserve_spent |= removed > 0; /* what was freed goes there first */
	*ret_removed = removed;
	return MR_OK;
}
