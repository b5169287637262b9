/* SPDX-License-Identifier: MIT */
/*
 * place_shared.c - copies of a message that belong to no agent: work in queues, also in what a removed queue has left,
 * and posts of channels. Evidence and purge, like place.c for mailboxes.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "base/sys.h"
#include "rooms/maildir/channel.h"
#include "rooms/maildir/holding.h"
#include "rooms/maildir/queue.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- Work ---- */

typedef enum mr_rc work_fn(void *ctx, struct queue *q, const struct work_at *at, struct mr_error *err);

static enum mr_rc
each_work(struct maildir *md, const char *id, work_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	enum mr_rc rc = queue_names(md, &names, err);
	for (size_t i = 0; i < names.n && rc == MR_OK; i++) {
		mr_auto(queue_done) struct queue q = QUEUE_INIT;
		mr_auto(work_at_done) struct work_at at = WORK_AT_INIT;
		rc = queue_open_any(&q, md, names.v[i], err);
		if (rc == MR_OK)
			rc = queue_find(&q, id, &at, err);
		if (rc == MR_OK)
			rc = fn(ctx, &q, &at, err);
		if (rc == MR_NOTFOUND || (rc != MR_OK && shared_skip(md, err, "queues/%s", names.v[i])))
			rc = MR_OK;
	}
	return rc;
}

static void
claim_evidence(struct buf *out, struct maildir *md, const struct work_name *n)
{
	struct mr_error ignored = { 0 };
	struct hold hold = { 0 };
	char until[RFC3339_LEN + 1];

	(void)token_read(md, n->file.token, &hold, &ignored);
	buf_adds(out, "claimed");
	if (hold.agent[0] != '\0')
		format_addf(out, " by '%s'", hold.agent);
	time_rfc3339(n->file.deadline_s * 1000, until);
	if (n->file.deadline_s == 0)
		buf_adds(out, " for as long as the command that works on it runs");
	else
		buf_addf(out, " until %s", until);
	buf_addf(out, " (attempt %u)", n->file.hold_attempt);
	if (token_is_over(md, &n->file))
		buf_adds(out, "; that time is over, so the next claim may get it");
}

static const char *
work_evidence(struct buf *out, const struct queue *q, const struct work_at *at)
{
	struct work_name n;
	struct released released;
	mr_auto(mr_names_done) struct mr_names agents = { 0 };
	char agent[MR_ADDRESS_MAX + 1];
	char until[RFC3339_LEN + 1];

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
		buf_addf(out, "nobody can claim it before %s", until);
		return "delayed";
	case QUEUE_CLAIMED:
		claim_evidence(out, q->md, &n);
		return "claimed";
	case QUEUE_DONE:
		buf_addf(out, "worked off at attempt %u", work_attempt(&n));
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

struct telling {
	place_fn *fn;
	void *ctx;
};

static enum mr_rc
tell_work(void *ctx, struct queue *q, const struct work_at *at, struct mr_error *err)
{
	const struct telling *telling = ctx;
	mr_auto(buf_done) struct buf evidence = BUF_INIT;

	const char *state = work_evidence(&evidence, q, at);
	if (!buf_ok(&evidence))
		return mr_nomem(err);
	telling->fn(telling->ctx, &(struct place_of){ .agent = "", .state = state, .evidence = buf_z(&evidence) });
	return MR_OK;
}

static enum mr_rc
remove_work(void *ctx, struct queue *q, const struct work_at *at, struct mr_error *err)
{
	size_t *removed = ctx;
	struct work_name n;

	if (sys_unlink(at->fd, at->name) < 0) {
		if (errno != ENOENT)
			return mr_fail_errno(err, "cannot remove '%s' of queue '%s'", at->name, q->name);
		return MR_OK; /* it moved: the next pass finds it */
	}
	if (q->md->sync && sys_fsync(at->fd) < 0)
		return mr_fail_errno(err, "cannot make the removal of '%s' durable", at->name);
	if (work_parse(at->state, str_of(at->name), &n))
		past_remove(q, n.file.id);
	++*removed;
	return MR_OK;
}

/* ---- Posts ---- */

struct post_search {
	const char *id;
	uint64_t number; /* 0: not there */
};

static bool
match_post(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct post_search *s = ctx;

	if (strcmp(msg->id, s->id) == 0)
		s->number = number;
	return s->number == 0;
}

struct channel_names {
	struct mr_names names;
	bool failed;
};

static bool
note_channel(void *ctx, const char *name)
{
	struct channel_names *all = ctx;

	all->failed = !names_add(&all->names, str_of(name));
	return !all->failed;
}

typedef enum mr_rc post_fn(void *ctx, struct maildir *md, const char *channel, uint64_t number, struct mr_error *err);

static enum mr_rc
each_post(struct mr_room *room, const char *id, post_fn *fn, void *ctx, struct mr_error *err)
{
	struct channel_names all = { 0 };

	enum mr_rc rc = maildir_record_each(room, "channel", "", note_channel, &all, err);
	if (rc == MR_OK && all.failed)
		rc = mr_nomem(err);
	for (size_t i = 0; i < all.names.n && rc == MR_OK; i++) {
		struct post_search s = { .id = id };
		struct mr_error other = { 0 };
		rc = maildir_channel_scan(room, all.names.v[i], 0, SCAN_HEADERS, match_post, &s, &other);
		if (s.number > 0)
			rc = fn(ctx, maildir_of(room), all.names.v[i], s.number, err);
		else if (rc == MR_NOTFOUND || rc == MR_CORRUPT || /* removed just now; another post is damaged */
			 (rc != MR_OK && shared_skip(maildir_of(room), &other, "channels/%s", all.names.v[i])))
			rc = MR_OK;
		else if (rc != MR_OK)
			*err = other;
	}
	mr_names_done(&all.names);
	return rc;
}

static enum mr_rc
tell_post(void *ctx, struct maildir *md, const char *channel, uint64_t number, struct mr_error *err)
{
	const struct telling *telling = ctx;
	mr_auto(buf_done) struct buf evidence = BUF_INIT;

	(void)md;
	format_addf(&evidence, "in channel '%s': post %" PRIu64, channel, number);
	if (!buf_ok(&evidence))
		return mr_nomem(err);
	telling->fn(telling->ctx, &(struct place_of){ .agent = "", .state = "posted", .evidence = buf_z(&evidence) });
	return MR_OK;
}

/* An empty file takes its place, so that the number stays taken (channel.h). Retention must not be at work: it might
 * have removed this number and gone on. */
static enum mr_rc
remove_post(void *ctx, struct maildir *md, const char *channel, uint64_t number, struct mr_error *err)
{
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;
	size_t *removed = ctx;
	char name[POST_NAME_LEN];

	enum mr_rc rc = channel_open(&c, md, channel, CHANNEL_ALONE, err);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	if (!post_exists(&c, number))
		return MR_OK;
	post_name(number, name);
	rc = file_replace(c.posts_fd, name, STR(""), md->message_mode, err);
	*removed += rc == MR_OK;
	return rc;
}

/* ---- Both ---- */

enum mr_rc
place_tell_shared(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err)
{
	struct telling telling = { .fn = fn, .ctx = ctx };

	enum mr_rc rc = each_work(maildir_of(room), id, tell_work, &telling, err);
	return rc == MR_OK ? each_post(room, id, tell_post, &telling, err) : rc;
}

enum mr_rc
place_purge_shared(struct mr_room *room, const char *id, size_t *removed, struct mr_error *err)
{
	enum mr_rc rc = each_work(maildir_of(room), id, remove_work, removed, err);

	return rc == MR_OK ? each_post(room, id, remove_post, removed, err) : rc;
}
