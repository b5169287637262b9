/* SPDX-License-Identifier: MIT */
/*
 * copies.c - every copy of a message: in mailboxes (also those of pruned agents), among the dead letters, in spool/, in
 * queues (also leftovers of removed queues) and in channels. One walk reports each copy, or removes it. A dead letter
 * can also be dropped alone; other copies of that message stay.
 */
#include "base/format.h"
#include "rooms/maildir/maildir.h"
#include <inttypes.h>

#define EVERY_FOLDER (MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT)
#define PURGE_PASSES_MAX 20
#define PURGE_WAIT_MS 10000
#define DROP_ROUNDS_MAX 20

struct visit { /* to every copy of one message */
	struct mr_room *room;
	struct maildir *md;
	const char *id;
	place_fn *tell; /* NULL: the copy is removed */
	void *ctx;
	size_t removed;
	bool known;         /* the recipients are known from a copy */
	struct mr_names to; /* with cc */
};

static void
visit_done(struct visit *v)
{
	mr_names_done(&v->to);
}

/* Durable. A missing file has moved: the next pass finds it. */
static enum mr_rc
remove_file(struct visit *v, int fd, const char *name, const char *of, struct mr_error *err)
{
	if (sys_unlink(fd, name) < 0)
		return errno == ENOENT ? MR_OK : mr_fail_errno(err, "cannot remove '%s' of '%s'", name, of);
	if (v->md->sync && sys_fsync(fd) < 0)
		return mr_fail_errno(err, "cannot make the removal of '%s' durable", name);
	v->removed++;
	return MR_OK;
}

/* ---- In mailboxes ---- */

static void
describe_copy(struct buf *out, struct mailbox *box, const struct listed *at, const char **ret_state)
{
	mr_auto(sys_close_fd) int fd = -1;
	char when[RFC3339_LEN + 1];
	struct file_name name;
	struct stat st;

	if (box->agent[0] == '\0') {
		*ret_state = "dead";
		buf_adds(out, "in dead/: it could not be delivered, failed, or its agent was pruned");
		return;
	}
	if (at->folder == MR_HELD) {
		*ret_state = "held";
		buf_addf(out, "held by life %u", at->life);
		if (name_parse_held(str_of(at->name), &name)) {
			time_rfc3339(name.deadline_s * 1000, when);
			if (name.deadline_s == 0)
				buf_adds(out, " for as long as the command that shows it runs");
			else
				buf_addf(out, " until %s", when);
			buf_addf(out, " (attempt %u)", name.hold_attempt);
		}
	} else if (at->folder & (MR_ARCHIVE | MR_SENT)) {
		*ret_state = at->folder == MR_SENT ? "sent" : "archived";
		buf_addf(out, "in agents/%s/%s%s%s", box->agent, at->subfolder, at->packed.length ? "/" PACK_FILE : "",
		    at->flags & MR_ACKED ? ": finished" : "");
	} else {
		*ret_state = at->flags & MR_SEEN ? "read" : "unread";
		buf_addf(out, "in %s: %s", list_path(box, at).z,
		    at->flags & MR_REPLIED ? "marked read and answered"
		    : at->flags & MR_SEEN  ? "marked read"
		    : at->box == BOX_CUR   ? "listed by a mail program or marked unread again, not read"
		    : at->attempt > 0      ? "handed out before and given back"
					   : "it has not been looked at");
		if (at->attempt)
			buf_addf(out, " (handed out %u times)", at->attempt);
	}
	/* Marking and moving change the file's ctime, so they happened then or before. Copies of one message may share
	 * an inode, so the ctime can be later. */
	if (at->folder != MR_SENT && (at->flags & (MR_SEEN | MR_REPLIED | MR_ACKED)) &&
	    list_open_folder(box, at, &fd, IGNORED) == MR_OK && sys_stat(fd, at->name, &st) == 0) {
		time_rfc3339(time_ms(st.st_ctim), when);
		buf_addf(out, "; its file last changed at %s", when);
	}
	if (sys_stat(box->fd, "agent", &st) < 0 && errno == ENOENT)
		buf_adds(out, "; the agent was pruned");
}

static void
note_recipients(struct visit *v, const char *agent, unsigned folder)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };

	if (v->known || maildir_fetch(v->room, agent, v->id, folder, SCAN_HEADERS, &msg, IGNORED) != MR_OK)
		return;
	v->known = true;
	for (size_t i = 0; i < msg.to.n; i++)
		v->known &= names_add(&v->to, str_of(msg.to.v[i]));
	for (size_t i = 0; i < msg.cc.n; i++)
		v->known &= names_add(&v->to, str_of(msg.cc.v[i]));
}

static enum mr_rc
visit_box(struct visit *v, struct mailbox *box, unsigned folders, struct mr_error *err)
{
	mr_auto(listing_done) struct listing list = { 0 };

	struct scan_request want = { .id_suffix = v->id };

	/* Copies are in the folders of the id's month; a purge also searches the others, where somebody may have moved
	 * one. */
	if (v->tell) {
		want.since_ms = id_time_ms(v->id);
		want.before_ms = want.since_ms + 1;
	}
	TRY(list_wanted(box, folders, &want, &list, err));
	for (size_t i = 0; i < list.n; i++) {
		mr_auto(buf_done) struct buf evidence = BUF_INIT;
		mr_auto(sys_close_fd) int fd = -1;
		const struct listed *at = &list.v[i];
		struct place_of place = { .agent = box->agent,
			.folder = box->agent[0] ? (enum mr_folder)at->folder : MR_DEAD,
			.flags = at->flags };

		if (strcmp(at->id, v->id) != 0)
			continue;
		if (v->tell) {
			describe_copy(&evidence, box, at, &place.state);
			place.evidence = buf_z(&evidence);
			if (!buf_ok(&evidence))
				return mr_nomem(err);
			v->tell(v->ctx, &place);
			note_recipients(v, box->agent, place.folder);
			continue;
		}
		size_t dropped = 0;
		enum mr_rc rc = at->packed.length ? pack_purge(box, at->subfolder, v->id, &dropped, err)
						  : list_open_folder(box, at, &fd, err);

		v->removed += dropped;
		if (rc == MR_OK && !at->packed.length)
			rc = remove_file(v, fd, at->name, box->agent, err);
		if (rc != MR_OK && rc != MR_NOTFOUND)
			return rc;
	}
	return MR_OK;
}

/* A command that was killed while it packed may have left the text. A damaged pack may hold the message. */
static enum mr_rc
sweep_packs(struct mailbox *box, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names months = { 0 };

	TRY(list_months(box, MR_ARCHIVE, &months, err));
	for (size_t i = 0; i < months.n; i++) {
		const struct path folder = path_of("agents/", box->agent, "/", months.v[i], NULL);

		pack_sweep(box, months.v[i]);
		if (pack_each(box->md, folder.z, NULL, NULL, err) == MR_CORRUPT)
			return mr_hint(err, "its contents cannot be read: remove the file if the message must go");
	}
	*err = (struct mr_error){ 0 };
	return MR_OK;
}

static enum mr_rc
visit_boxes(struct visit *v, unsigned folders, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(mailbox_done) struct mailbox dead = MAILBOX_INIT;

	TRY(agents_collect(v->md, false, &names, err));
	for (size_t i = 0; i < names.n; i++) {
		mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
		enum mr_rc rc = mailbox_open_any(&box, v->md, names.v[i], err);

		if (rc == MR_OK && !v->tell)
			rc = sweep_packs(&box, err);
		if (rc == MR_OK)
			rc = visit_box(v, &box, folders, err);
		TRY(shared_pass(v->md, rc, err, "agents/%s", names.v[i]));
	}
	TRY(mailbox_open_dead(&dead, v->md, err));
	return visit_box(v, &dead, MR_INBOX, err);
}

/* ---- In queues and channels ---- */

static void
describe_claim(struct buf *out, struct maildir *md, const struct file_name *n)
{
	struct claim hold = { 0 };
	char until[RFC3339_LEN + 1];

	(void)token_read(md, n->token, &hold, IGNORED);
	buf_adds(out, "claimed");
	if (hold.agent[0] != '\0')
		format_addf(out, " by '%s'", hold.agent);
	time_rfc3339(n->deadline_s * 1000, until);
	if (n->deadline_s == 0)
		buf_adds(out, " for as long as the command that works on it runs");
	else
		buf_addf(out, " until %s", until);
	buf_addf(out, " (attempt %u)", n->hold_attempt);
	if (token_is_over(md, n))
		buf_adds(out, "; that time is over, so the next claim may get it");
}

/* Returns the state. */
static const char *
describe_work(struct buf *out, const struct queue *q, const struct work_at *at)
{
	mr_auto(mr_names_done) struct mr_names agents = { 0 };
	char agent[MR_ADDRESS_MAX + 1], until[RFC3339_LEN + 1];
	struct released released;
	struct work_name n;

	format_addf(out, "in queue '%s': ", q->name);
	if (!queue_is_there(q))
		buf_adds(out, "the queue was removed; ");
	if (!work_parse(at->state, str_of(at->name), &n))
		return "ready";
	switch (at->state) {
	case QUEUE_READY:
		buf_adds(out, "waits to be claimed");
		break;
	case QUEUE_DELAYED:
		time_rfc3339(n.not_before_ms, until);
		buf_addf(out, "it cannot be claimed before %s", until);
		return "delayed";
	case QUEUE_CLAIMED:
		describe_claim(out, q->md, &n.file);
		return "claimed";
	case QUEUE_DONE:
		buf_addf(out, "finished at attempt %u", work_attempt(&n));
		return "done";
	case QUEUE_FAILED:
		buf_addf(out, "failed after %u attempts", work_attempt(&n));
		return "failed";
	}
	if (work_attempt(&n) > 0)
		buf_addf(
		    out, " (%u claim%s on it came to nothing)", work_attempt(&n), work_attempt(&n) == 1 ? "" : "s");
	if (name_released(&n.file, &released) && queue_only_for(q->md, &agents, &released, agent)) {
		time_rfc3339(released.only_until_s * 1000, until);
		format_addf(out, "; only for '%s' until %s", agent, until);
	}
	return "ready";
}

static enum mr_rc
tell_shared(const struct visit *v, const char *state, const struct buf *evidence, struct mr_error *err)
{
	if (!buf_ok(evidence))
		return mr_nomem(err);
	v->tell(v->ctx, &(struct place_of){ .agent = "", .state = state, .evidence = buf_z(evidence) });
	return MR_OK;
}

static enum mr_rc
visit_queue(struct visit *v, const char *name, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	mr_auto(work_at_done) struct work_at at = WORK_AT_INIT;
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	size_t before = v->removed;
	struct work_name n;

	TRY(queue_open_any(&q, v->md, name, err));
	TRY(queue_find(&q, v->id, &at, err));
	if (v->tell)
		return tell_shared(v, describe_work(&evidence, &q, &at), &evidence, err);
	TRY(remove_file(v, at.fd, at.name, name, err));
	if (v->removed > before && work_parse(at.state, str_of(at.name), &n))
		past_remove(&q, &(struct mr_names){ .v = (char *[]){ n.file.id }, .n = 1 });
	return MR_OK;
}

static bool
note_channel(void *ctx, const char *name)
{
	return names_add(ctx, str_of(name));
}

static enum mr_rc
visit_shared(struct visit *v, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 }, channels = { 0 };

	TRY(queue_names(v->md, &queues, err));
	for (size_t i = 0; i < queues.n; i++)
		TRY(shared_pass(v->md, visit_queue(v, queues.v[i], err), err, "queues/%s", queues.v[i]));
	TRY(maildir_record_each(v->room, "channel", "", note_channel, &channels, err));
	for (size_t i = 0; i < channels.n; i++) {
		mr_auto(buf_done) struct buf evidence = BUF_INIT;
		uint64_t number = 0;
		/* If a copy does not name the channel, the post is there only if another program made it. */
		bool all = !v->known || names_has(&v->to, room_box("channel", channels.v[i]).z);
		enum mr_rc rc = channel_find(v->room, channels.v[i], v->id, all, &number, err);

		if (rc == MR_CORRUPT) /* another post is damaged */
			continue;
		TRY(shared_pass(v->md, rc, err, "channels/%s", channels.v[i])); /* not found: removed just now */
		if (number > 0 && v->tell) {
			format_addf(&evidence, "in channel '%s': post %" PRIu64, channels.v[i], number);
			TRY(tell_shared(v, "posted", &evidence, err));
		} else if (number > 0) {
			TRY(channel_blank_post(v->md, channels.v[i], number, &v->removed, err));
		}
	}
	*err = (struct mr_error){ 0 };
	return MR_OK;
}

/* ---- Evidence ---- */

enum mr_rc
maildir_each_place(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(visit_done) struct visit v = { .room = room, .md = maildir_of(room), .id = id, .tell = fn, .ctx = ctx };
	mr_auto(sys_close_fd) int fd = -1;
	struct stat st;

	TRY(mr_unless(dir_open(v.md->root_fd, "spool", &fd, err), MR_NOTFOUND, err));
	if (fd >= 0 && sys_stat(fd, id, &st) == 0)
		fn(ctx,
		    &(struct place_of){ .agent = "",
			.state = "pending",
			.evidence = lock_is_held(fd, id)
					? "in spool/: it is being delivered right now"
					: "in spool/: its sender died; the next command that can write completes it" });
	TRY(visit_boxes(&v, EVERY_FOLDER, err));
	return visit_shared(&v, err);
}

/* ---- Purge ---- */

/* First ends a send of this message that is under way: while its record is locked, nobody can link the message
 * again. */
static enum mr_rc
remove_spooled(struct mr_room *room, const char *id, struct mr_error *err)
{
	mr_auto(spool_done) struct spool_job job;

	enum mr_rc rc = spool_lock(&job, room, id, PURGE_WAIT_MS, err);

	if (rc == MR_BUSY)
		return mr_hint(err, "try again when its sender is finished");
	if (job.spool_fd >= 0 && (rc == MR_OK || rc == MR_NOTFOUND || rc == MR_CORRUPT))
		rc = spool_remove(&job, err);
	if (rc == MR_OK && job.md->sync && sys_fsync(job.spool_fd) < 0)
		rc = mr_fail_errno(err, "cannot make the removal of '%s' durable", id);
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

static enum mr_rc
purge(struct mr_room *room, const char *id, size_t *ret_removed, struct mr_error *err)
{
	mr_auto(pack_unlock) void *lock = NULL;
	struct visit v = { .room = room, .md = maildir_of(room), .id = id };
	unsigned passes = 0;
	size_t before;

	if (pack_lock(room, &lock, err) ==
	    MR_BUSY) /* any other failure comes from a full disk, where no lock can be made */
		return err->code;
	TRY(remove_spooled(room, id, err));
	/* Mail moves between folders during the walk, so it is repeated until a pass finds none. The sender's own copy
	 * is removed last: as long as it exists, a purge that was cut off can be repeated. */
	do {
		before = v.removed;
		if (visit_boxes(&v, EVERY_FOLDER & ~(unsigned)MR_SENT, err) != MR_OK ||
		    visit_shared(&v, err) != MR_OK || (v.removed == before && visit_boxes(&v, MR_SENT, err) != MR_OK))
			return mr_wrap(err, "cannot purge '%s' everywhere", id);
	} while (v.removed != before && ++passes < PURGE_PASSES_MAX);
	v.md->reserve_spent |= v.removed > 0; /* the freed space refills the reserve first */
	*ret_removed = v.removed;
	return MR_OK;
}

/* ---- Dropping a dead letter ---- */

/* Every file with that id: failed work is named like mail. *ret counts. */
static enum mr_rc
drop_from(struct maildir *md, int fd, const char *id, size_t *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	TRY(dir_names(fd, &names, err));
	for (size_t i = 0; i < names.n; i++) {
		struct file_name n;

		if (!name_parse(str_of(names.v[i]), &n) || strcmp(n.id, id) != 0)
			continue;
		TRY(remove_file(&(struct visit){ .md = md }, fd, names.v[i], "dead", err));
		++*ret;
	}
	return MR_OK;
}

/* Copies of several mailboxes may have met in dead/, each in a file of its own: all are removed. A listing shows one of
 * them, but only a listing is sure that none is left while mail programs rename them. */
static enum mr_rc
drop_letters(struct maildir *md, const char *id, size_t *ret, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox dead = MAILBOX_INIT;

	TRY(mailbox_open_dead(&dead, md, err));
	for (unsigned rounds = 0; rounds < DROP_ROUNDS_MAX; rounds++) {
		mr_auto(listing_done) struct listing left = { 0 };

		TRY(list_folders(&dead, MR_INBOX, false, id, &left, err));
		if (left.n == 0)
			return MR_OK;
		for (unsigned which = BOX_NEW; which <= BOX_CUR; which++) {
			int fd = -1;

			TRY(mailbox_folder(&dead, (enum box_folder)which, &fd, err));
			TRY(drop_from(md, fd, id, ret, err));
		}
	}
	return mr_fail(err, MR_BUSY, "the dead letter '%s' keeps being moved", id);
}

static enum mr_rc
drop_dead(struct mr_room *room, const char *queue, const char *id, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	struct maildir *md = maildir_of(room);
	size_t found = 0;

	if (*queue) {
		TRY(queue_open(&q, md, queue, err));
		TRY(queue_folder(&q, "failed", &fd, err));
		TRY(drop_from(md, fd, id, &found, err));
	} else {
		TRY(drop_letters(md, id, &found, err));
	}
	return found > 0 ? MR_OK : mr_fail(err, MR_NOTFOUND, "no dead letter '%s'", id);
}

enum mr_rc
maildir_remove(struct mr_room *room, const struct removal *what, size_t *ret_removed, struct mr_error *err)
{
	size_t removed = 0;

	if (what->what == REMOVE_INBOX)
		return room_lacks(room, "way to clear an inbox", err);
	if (what->what == REMOVE_DEAD)
		return drop_dead(room, what->box, what->id, err);
	TRY(what->what == REMOVE_POSTS ? channel_drop(room, what->box, what->below, &removed, err)
				       : purge(room, what->id, &removed, err));
	if (ret_removed)
		*ret_removed = removed;
	return MR_OK;
}
