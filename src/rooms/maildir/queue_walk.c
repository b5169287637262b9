/* SPDX-License-Identifier: MIT */
/*
 * queue_walk.c - looking at all of a queue: every folder, every message, one message by its id.
 *
 * Work moves delayed -> ready -> claimed -> done or failed, and from claimed back to ready. A look in the order of
 * the moves meets everything that only goes forward. What is given back meanwhile can slip through from behind,
 * but then claimed/ has changed: "not found" is believed only when it has not.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/holding.h"
#include "rooms/maildir/queue.h"
#include <stdio.h>
#include <stdlib.h>

#define FIND_PASSES 6
#define STAMP_MS 50 /* two changes within one tick of the file system's clock look like one */

/* ---- Folders ---- */

static bool
note_name(void *ctx, const struct dir_entry *entry)
{
	return entry->name[0] == '.' || names_add(ctx, str_of(entry->name));
}

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names are gathered first: who is called may move them. */
enum mr_rc
queue_names_in(int fd, struct mr_names *ret, struct mr_error *err)
{
	enum mr_rc rc = dir_each(fd, note_name, ret, err);

	if (rc == MR_OK && ret->n > 0)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_bytes);
	return rc;
}

static enum mr_rc
visit(const struct queue *q, struct work_folder at, work_folder_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	enum mr_rc rc = dir_open(q->fd, at.path, &fd, err);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	at.fd = fd;
	return fn(ctx, &at, err);
}

/* The folders in path: buckets of a priority, months of done work. */
static enum mr_rc
visit_inside(const struct queue *q, struct work_folder at, work_folder_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(buf_done) struct buf path = BUF_INIT;

	enum mr_rc rc = dir_open(q->fd, at.path, &fd, err);
	if (rc == MR_OK)
		rc = queue_names_in(fd, &names, err);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	for (size_t i = 0; i < names.n && rc == MR_OK; i++) {
		struct work_folder inner = at;
		buf_clear(&path);
		buf_addf(&path, "%s/%s", at.path, names.v[i]);
		if (!buf_ok(&path))
			return mr_nomem(err);
		inner.path = buf_z(&path);
		rc = visit(q, inner, fn, ctx, err);
	}
	return rc;
}

enum mr_rc
queue_each_folder(const struct queue *q, unsigned states, work_folder_fn *fn, void *ctx, struct mr_error *err)
{
	static const char *const ready[QUEUE_PRIORITIES] = { "ready/0", "ready/1", "ready/2", "ready/3" };
	enum mr_rc rc = MR_OK;

	if (states & QUEUE_DELAYED)
		rc = visit(q, (struct work_folder){ .state = QUEUE_DELAYED, .path = "delayed" }, fn, ctx, err);
	for (unsigned p = 0; (states & QUEUE_READY) && p < QUEUE_PRIORITIES && rc == MR_OK; p++)
		rc = visit_inside(
		    q, (struct work_folder){ .state = QUEUE_READY, .p = p, .path = ready[p] }, fn, ctx, err);
	if ((states & QUEUE_CLAIMED) && rc == MR_OK)
		rc = visit(q, (struct work_folder){ .state = QUEUE_CLAIMED, .path = "claimed" }, fn, ctx, err);
	if ((states & QUEUE_DONE) && rc == MR_OK)
		rc = visit_inside(q, (struct work_folder){ .state = QUEUE_DONE, .path = "done" }, fn, ctx, err);
	if ((states & QUEUE_FAILED) && rc == MR_OK)
		rc = visit(q, (struct work_folder){ .state = QUEUE_FAILED, .path = "failed" }, fn, ctx, err);
	return rc;
}

/* ---- One message ---- */

struct search {
	const char *id;
	const struct work_folder *folder;
	struct work_at found;
	bool has;
};

static bool
match_id(void *ctx, const struct dir_entry *entry)
{
	struct search *s = ctx;
	struct work_name n;

	if (!work_parse(s->folder->state, str_of(entry->name), &n) || strcmp(n.file.id, s->id) != 0)
		return true;
	s->has = true;
	s->found.state = s->folder->state;
	s->found.p = s->folder->state == QUEUE_READY ? s->folder->p : n.p;
	(void)snprintf(s->found.name, sizeof(s->found.name), "%s", entry->name);
	(void)snprintf(s->found.path, sizeof(s->found.path), "%.47s", s->folder->path);
	return false;
}

/* MR_EXISTS: found, which ends the walk. */
static enum mr_rc
search_folder(void *ctx, const struct work_folder *at, struct mr_error *err)
{
	struct search *s = ctx;
	char month[24];

	name_month(s->id, month);
	if (at->state == QUEUE_DONE && !str_ends(str_of(at->path), month + strlen(".Archive.")))
		return MR_OK;
	s->folder = at;
	enum mr_rc rc = dir_each(at->fd, match_id, s, err);
	if (rc == MR_OK && s->has)
		rc = dir_open(at->fd, ".", &s->found.fd, err);
	return rc == MR_OK && s->has ? MR_EXISTS : rc;
}

static int64_t
changed_ms(int fd)
{
	struct stat st;

	if (sys_stat_fd(fd, &st) < 0)
		return INT64_MAX; /* as if just now */
	return (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
}

enum mr_rc
queue_find(const struct queue *q, const char *id, struct work_at *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int claimed_fd = -1;
	struct search s = { .id = id, .found = WORK_AT_INIT };
	bool settled = false;

	enum mr_rc rc = dir_open(q->fd, "claimed", &claimed_fd, err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	rc = MR_OK;
	for (int pass = 0; pass < FIND_PASSES && rc == MR_OK && !settled; pass++) {
		int64_t before_ms = claimed_fd < 0 ? 0 : changed_ms(claimed_fd), now_ms = clock_now_ms();
		/* Claimed first: who asks for work has mostly just claimed it. */
		rc = queue_each_folder(q, QUEUE_CLAIMED, search_folder, &s, err);
		if (rc == MR_OK)
			rc = queue_each_folder(q, QUEUE_ANY, search_folder, &s, err);
		settled = claimed_fd < 0 || (changed_ms(claimed_fd) == before_ms && before_ms < now_ms - STAMP_MS);
	}
	if (rc == MR_EXISTS) {
		*ret = s.found;
		return MR_OK;
	}
	return rc != MR_OK ? rc : mr_fail(err, MR_NOTFOUND, "no message '%s' in queue '%s'", id, q->name);
}

void
work_at_done(struct work_at *at)
{
	sys_close_fd(&at->fd);
	at->fd = -1;
}

/* ---- All of it ---- */

struct listing_all {
	struct maildir *md;
	struct mr_names agents; /* of the room, once work is met that is for one of them alone */
	const char *queue;
	bool (*fn)(void *ctx, const struct queue_item *item);
	void *ctx;
};

static void
fill_hold(struct maildir *md, const char *queue, const struct work_name *n, struct hold *ret)
{
	struct mr_error ignored = { 0 };

	(void)token_read(md, n->file.token, ret, &ignored); /* lost in a power cut: nobody knows the holder */
	(void)snprintf(ret->queue, sizeof(ret->queue), "%s", queue);
	memcpy(ret->id, n->file.id, sizeof(ret->id));
	memcpy(ret->token, n->file.token, sizeof(ret->token));
	ret->attempt = n->file.hold_attempt;
	ret->deadline_ms = n->file.deadline_s * 1000;
	ret->kind = n->file.deadline_s == 0 ? HOLD_PROCESS : HOLD_LEASE;
	ret->over = token_is_over(md, &n->file);
}

bool
queue_only_for(struct maildir *md, struct mr_names *agents, const struct released *r, char ret[MR_ADDRESS_MAX + 1])
{
	struct mr_error ignored = { 0 };
	char hash[NAME_WHO_LEN + 1];

	if (r->only_for[0] == '\0' || clock_now_ms() >= r->only_until_s * 1000)
		return false;
	(void)snprintf(ret, MR_ADDRESS_MAX + 1, "?");
	if (agents->n == 0 && agents_collect(md, true, agents, &ignored) != MR_OK)
		return true;
	for (size_t i = 0; i < agents->n; i++) {
		name_who(agents->v[i], hash);
		if (strcmp(hash, r->only_for) == 0) {
			(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", agents->v[i]);
			return true;
		}
	}
	return false;
}

static void
fill_released(struct listing_all *all, const struct file_name *file, struct queue_item *item)
{
	char agent[MR_ADDRESS_MAX + 1];
	struct released r;

	if (!name_released(file, &r))
		return;
	item->released_ms = r.at_ms;
	if (!queue_only_for(all->md, &all->agents, &r, agent))
		return;
	item->only_until_ms = r.only_until_s * 1000;
	(void)snprintf(item->only_for, sizeof(item->only_for), "%s", agent);
}

/* MR_EMPTY: fn wants no more. */
static enum mr_rc
list_folder(void *ctx, const struct work_folder *at, struct mr_error *err)
{
	struct listing_all *all = ctx;
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	enum mr_rc rc = queue_names_in(at->fd, &names, err);
	for (size_t i = 0; i < names.n && rc == MR_OK; i++) {
		struct queue_item item = { .state = at->state };
		struct hold hold = { 0 };
		struct work_name n;
		if (!work_parse(at->state, str_of(names.v[i]), &n))
			continue;
		memcpy(item.id, n.file.id, sizeof(item.id));
		item.priority = queue_priority(at->state == QUEUE_READY ? at->p : n.p);
		if (at->state & (QUEUE_DONE | QUEUE_FAILED))
			item.priority = MR_NORMAL; /* the message knows */
		item.attempt = work_attempt(&n);
		item.not_before_ms = n.not_before_ms;
		if (at->state == QUEUE_READY)
			fill_released(all, &n.file, &item);
		if (at->state == QUEUE_CLAIMED) {
			fill_hold(all->md, all->queue, &n, &hold);
			item.hold = &hold;
		}
		if (!all->fn(all->ctx, &item))
			rc = MR_EMPTY;
	}
	return rc;
}

enum mr_rc
maildir_queue_each(struct mr_room *room, const char *queue, unsigned states,
    bool (*fn)(void *ctx, const struct queue_item *item), void *ctx, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	struct listing_all all = { .md = maildir_of(room), .queue = queue, .fn = fn, .ctx = ctx };

	enum mr_rc rc = queue_open(&q, all.md, queue, err);
	if (rc == MR_OK)
		rc = queue_each_folder(&q, states, list_folder, &all, err);
	mr_names_done(&all.agents);
	return rc == MR_EMPTY ? MR_OK : rc;
}
