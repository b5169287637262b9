/* SPDX-License-Identifier: MIT */
/*
 * past.c - claims that are over, for people who ask what happened to mail and to work.
 *
 * While a claim lives, holds/<token> says whose it is. When it ends that file is not removed but moved to
 * past/<YYYY-MM>/<id>.<token>.<attempt>.<ended, ms>.<how>, in the folder of the queue or, for an agent's own mail, at
 * the top of the room: one rename in the place of one unlink, so the past costs a claimant nothing. It is not synced
 * and nothing depends on it: a kill between the end of a claim and the move leaves a gap in the story, never in the
 * work.
 *
 * In a queue the month is that of the id, and the past goes with its work. At the top it is that of the end, and the
 * first claim that ends in a month removes all but this month and the one before.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/holding.h"
#include "rooms/maildir/queue.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PAST_MONTH_LEN 7 /* YYYY-MM */
#define MONTHS_KEPT 2
#define PAST_LIMIT ((size_t)16 << 10)

static const struct {
	enum settle how;
	char letter;
} ends[] = { { SETTLE_BACK, 'b' }, { SETTLE_LATER, 'r' }, { SETTLE_DONE, 'd' }, { SETTLE_DEAD, 'f' } };

static void
month_of_id(const char *id, char ret[PAST_MONTH_LEN + 1])
{
	char folder[24];

	name_month(id, folder);
	(void)snprintf(ret, PAST_MONTH_LEN + 1, "%.*s", PAST_MONTH_LEN, folder + strlen(".Archive."));
}

/* ---- Reading it ---- */

struct past_name {
	char id[MR_ID_LEN + 1], token[MR_TOKEN_LEN + 1];
	unsigned attempt;
	int64_t ended_ms;
	enum settle how;
};

static bool
past_parse(const char *name, struct past_name *ret)
{
	struct past_name p = { 0 };
	char letter = 0;
	int end = 0;

	if (strlen(name) <= MR_ID_LEN + 1 + MR_TOKEN_LEN + 1 || name[MR_ID_LEN] != '.' ||
	    name[MR_ID_LEN + 1 + MR_TOKEN_LEN] != '.')
		return false;
	memcpy(p.id, name, MR_ID_LEN);
	memcpy(p.token, name + MR_ID_LEN + 1, MR_TOKEN_LEN);
	const char *rest = name + MR_ID_LEN + 1 + MR_TOKEN_LEN + 1;
	const char *dot = strchr(rest, '.');
	const char *last = dot ? strchr(dot + 1, '.') : NULL;
	uint64_t attempt = 0, ended = 0;
	if (last == NULL || !str_to_u64((struct mr_str){ rest, (size_t)(dot - rest) }, &attempt) ||
	    !str_to_u64((struct mr_str){ dot + 1, (size_t)(last - dot - 1) }, &ended) || attempt > UINT32_MAX ||
	    ended > INT64_MAX / 2)
		return false;
	letter = last[1];
	p.attempt = (unsigned)attempt;
	p.ended_ms = (int64_t)ended;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (ends[i].letter == letter) {
			p.how = ends[i].how;
			end = 1;
		}
	*ret = p;
	return end == 1;
}

struct past_search {
	const char *id, *token; /* one of them, or NULL */
	struct mr_names names;  /* of files, as they come */
	bool failed;
};

static bool
match_past(void *ctx, const struct dir_entry *entry)
{
	struct past_search *s = ctx;
	struct past_name p;

	if (!past_parse(entry->name, &p) || (s->id != NULL && strcmp(p.id, s->id) != 0) ||
	    (s->token != NULL && strcmp(p.token, s->token) != 0))
		return true;
	s->failed = !names_add(&s->names, str_of(entry->name));
	return !s->failed;
}

static int
by_end(const void *a, const void *b)
{
	struct past_name x = { 0 }, y = { 0 };

	(void)past_parse(*(char *const *)a, &x);
	(void)past_parse(*(char *const *)b, &y);
	return (x.ended_ms > y.ended_ms) - (x.ended_ms < y.ended_ms);
}

static void
tell_past(const char *queue, int fd, const char *name, void (*fn)(void *ctx, const struct past_claim *past), void *ctx)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(record_done) struct record r = { 0 };
	struct mr_error ignored = { 0 };
	struct past_name p;
	struct hold hold = { .kind = HOLD_LEASE };

	if (!past_parse(name, &p) || file_read(fd, name, PAST_LIMIT, &text, &ignored) != MR_OK ||
	    record_parse(buf_str(&text), &r, &ignored) != MR_OK)
		return;
	const char *agent = record_get(&r, "Agent");
	int64_t life = record_int(&r, "Life", 0);
	(void)snprintf(hold.agent, sizeof(hold.agent), "%s", agent != NULL ? agent : "");
	(void)snprintf(hold.queue, sizeof(hold.queue), "%s", queue);
	memcpy(hold.id, p.id, sizeof(hold.id));
	memcpy(hold.token, p.token, sizeof(hold.token));
	hold.life = life > 0 && life <= UINT32_MAX ? (unsigned)life : 0;
	hold.attempt = p.attempt;
	hold.since_ms = record_int(&r, "Since", 0);
	hold.reason = record_get(&r, "Reason");
	hold.only_for = record_get(&r, "Only-For");
	hold.only_until_ms = record_int(&r, "Only-Until", 0);
	fn(ctx, &(struct past_claim){ .hold = &hold, .how = p.how, .ended_ms = p.ended_ms });
}

static enum mr_rc
past_in(int past_fd, const char *month, const char *queue, struct past_search *s,
    void (*fn)(void *ctx, const struct past_claim *past), void *ctx, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	mr_names_done(&s->names);
	enum mr_rc rc = dir_open(past_fd, month, &fd, err);
	if (rc == MR_OK)
		rc = dir_each(fd, match_past, s, err);
	if (rc == MR_OK && s->failed)
		rc = mr_nomem(err);
	if (rc == MR_OK && s->names.n > 1)
		qsort(s->names.v, s->names.n, sizeof(*s->names.v), by_end);
	for (size_t i = 0; i < s->names.n && rc == MR_OK; i++)
		tell_past(queue, fd, s->names.v[i], fn, ctx);
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

/* All months of a queue, or with queue "" of the agents' own mail; of a token, until it is found. */
static enum mr_rc
past_below(int base_fd, const char *queue, struct past_search *s, void (*fn)(void *ctx, const struct past_claim *past),
    void *ctx, struct mr_error *err)
{
	mr_auto(sys_close_fd) int past_fd = -1;
	mr_auto(mr_names_done) struct mr_names months = { 0 };

	enum mr_rc rc = dir_open(base_fd, "past", &past_fd, err);
	if (rc == MR_OK)
		rc = queue_names_in(past_fd, &months, err);
	for (size_t i = 0; i < months.n && rc == MR_OK && (s->token == NULL || s->names.n == 0); i++)
		rc = past_in(past_fd, months.v[i], queue, s, fn, ctx, err);
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

/* A token does not say which month, nor in which queue. Only an agent that settles a claim twice asks so. */
static enum mr_rc
past_of_token(struct maildir *md, struct past_search *s, void (*fn)(void *ctx, const struct past_claim *past),
    void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };

	enum mr_rc rc = past_below(md->root_fd, "", s, fn, ctx, err);
	if (rc == MR_OK)
		rc = queue_names(md, &queues, err);
	for (size_t i = 0; i < queues.n && rc == MR_OK && s->names.n == 0; i++) {
		mr_auto(queue_done) struct queue q = QUEUE_INIT;

		rc = queue_open_any(&q, md, queues.v[i], err);
		if (rc == MR_OK)
			rc = past_below(q.fd, queues.v[i], s, fn, ctx, err);
		if (rc == MR_NOTFOUND || (rc != MR_OK && shared_skip(md, err, "queues/%s", queues.v[i])))
			rc = MR_OK;
	}
	return rc;
}

enum mr_rc
maildir_queue_past(struct mr_room *room, const char *queue, const char *id, const char *token,
    void (*fn)(void *ctx, const struct past_claim *past), void *ctx, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	mr_auto(sys_close_fd) int past_fd = -1;
	struct past_search s = { .id = id, .token = token };
	char month[PAST_MONTH_LEN + 1];
	enum mr_rc rc;

	if (id == NULL) {
		rc = past_of_token(maildir_of(room), &s, fn, ctx, err);
	} else if (queue[0] == '\0') {
		rc = past_below(maildir_of(room)->root_fd, "", &s, fn, ctx, err);
	} else {
		month_of_id(id, month);
		rc = queue_open_any(&q, maildir_of(room), queue, err);
		if (rc == MR_OK)
			rc = dir_open(q.fd, "past", &past_fd, err);
		if (rc == MR_OK)
			rc = past_in(past_fd, month, queue, &s, fn, ctx, err);
		if (rc == MR_NOTFOUND)
			rc = MR_OK;
	}
	mr_names_done(&s.names);
	return rc;
}

/* ---- Removing it ---- */

static void
remove_month(int past_fd, const char *month, const char *id)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct past_search s = { .id = id };
	struct mr_error ignored = { 0 };

	if (dir_open(past_fd, month, &fd, &ignored) == MR_OK)
		(void)dir_each(fd, match_past, &s, &ignored);
	for (size_t i = 0; i < s.names.n; i++)
		(void)sys_unlink(fd, s.names.v[i]);
	mr_names_done(&s.names);
	if (id == NULL)
		(void)sys_rmdir(past_fd, month);
}

void
past_remove(const struct queue *q, const char *id)
{
	mr_auto(sys_close_fd) int past_fd = -1;
	mr_auto(mr_names_done) struct mr_names months = { 0 };
	struct mr_error ignored = { 0 };

	if (dir_open(q->fd, "past", &past_fd, &ignored) != MR_OK || queue_names_in(past_fd, &months, &ignored) != MR_OK)
		return;
	for (size_t i = 0; i < months.n; i++)
		remove_month(past_fd, months.v[i], id);
	if (id == NULL)
		(void)sys_rmdir(q->fd, "past");
}

/* ---- Keeping it ---- */

/* Names are months, so their order is that of time. */
static void
forget_old_months(int past_fd)
{
	mr_auto(mr_names_done) struct mr_names months = { 0 };
	struct mr_error ignored = { 0 };

	if (queue_names_in(past_fd, &months, &ignored) != MR_OK)
		return;
	for (size_t i = 0; i + MONTHS_KEPT < months.n; i++)
		remove_month(past_fd, months.v[i], NULL);
}

/* past/<month>, made if need be. */
static bool
open_month(struct maildir *md, int base_fd, const char *month, int *ret_fd)
{
	mr_auto(sys_close_fd) int past_fd = -1;
	struct mr_error ignored = { 0 };
	char path[16];

	(void)snprintf(path, sizeof(path), "past/%.*s", PAST_MONTH_LEN, month);
	if (dir_open(base_fd, path, ret_fd, &ignored) == MR_OK)
		return true;
	if (dir_make(base_fd, "past", md->dir_mode, false, &past_fd, &ignored) != MR_OK ||
	    dir_make(past_fd, month, md->dir_mode, false, ret_fd, &ignored) != MR_OK)
		return false;
	if (base_fd == md->root_fd)
		forget_old_months(past_fd);
	return true;
}

void
past_keep(struct maildir *md, const struct queue *q, const struct file_name *n, enum settle how)
{
	mr_auto(sys_close_fd) int holds_fd = -1;
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_error ignored = { 0 };
	int64_t now_ms = clock_now_ms();
	char month[RFC3339_LEN + 1], name[NAME_LEN], letter = '\0';

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (ends[i].how == how)
			letter = ends[i].letter;
	time_rfc3339(now_ms, month);
	month[PAST_MONTH_LEN] = '\0';
	if (q != NULL)
		month_of_id(n->id, month);
	(void)snprintf(name, sizeof(name), "%s.%s.%u.%" PRId64 ".%c", n->id, n->token, n->hold_attempt, now_ms, letter);
	if (dir_open(md->root_fd, "holds", &holds_fd, &ignored) != MR_OK)
		return;
	const struct sys_relief *relief = sys_relief_set(NULL); /* on a full disk the inode is worth more */
	if (letter == '\0' || md->reserve_spent || !open_month(md, q != NULL ? q->fd : md->root_fd, month, &fd) ||
	    sys_rename(holds_fd, n->token, fd, name) < 0)
		token_drop(md, n->token);
	(void)sys_relief_set(relief);
}
