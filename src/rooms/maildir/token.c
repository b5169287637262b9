/* SPDX-License-Identifier: MIT */
/*
 * token.c - holds/<token>: the holder of mail or work, and whether it lives; and the move of that file when the claim
 * ends. claim.c says why it is safe.
 *
 * Claims that last as long as a room handle share one file, locked as long as the handle is open. The kernel releases
 * the lock when the process dies, in any way and in any pid namespace. The file need not survive a power cut, because
 * the lock does not either. A lease has a file of its own; if a power cut takes it, the deadline in the held name
 * decides.
 *
 * When a lease ends its file is not removed but moved to past/<YYYY-MM>/<id>.<token>.<attempt>.<ended, ms>.<how>, in
 * the folder of the queue or, for an agent's own mail, at the top of the room: one rename instead of one unlink, so the
 * history costs a claimer nothing. It is not synced and nothing depends on it: a kill between the end of a claim and
 * the move leaves a gap in the history, never in the work. In a queue the month is that of the id, and the history is
 * removed together with the work. At the top of the room it is that of the end, and the first claim that ends in a
 * month removes all but this month and the one before.
 */
#include "base/process.h"
#include "rooms/maildir/maildir.h"
#include <inttypes.h>
#include <stddef.h>
#include <sys/file.h>
#include <unistd.h>

#define RECORD_LIMIT ((size_t)16 << 10)
#define TOKEN_TRIES 5
#define MONTHS_KEPT 2

int64_t
lease_clamp(int64_t lease_ms)
{
	return lease_ms < 0 ? 0 : lease_ms > LEASE_MAX_MS ? LEASE_MAX_MS : lease_ms;
}

int64_t
lease_deadline_s(int64_t lease_ms)
{
	return (clock_now_ms() + lease_ms + 999) / 1000;
}

/* ---- The file in holds/ ---- */

struct holder { /* the content of holds/<token> */
	const char *agent, *queue, *session;
	unsigned life;
	int64_t since_ms;
	struct mr_process process;
	/* The clock of the deadline; 0: not a lease. */
	const char *boot, *host;
	int64_t boot_began_ms, boot_deadline_ms;
};
static const struct record_field holder_fields[] = {
	{ "Agent", RECORD_TEXT, offsetof(struct holder, agent) },
	{ "Life", RECORD_COUNT, offsetof(struct holder, life) },
	{ "Queue", RECORD_TEXT, offsetof(struct holder, queue) },
	{ "Session", RECORD_TEXT, offsetof(struct holder, session) },
	{ "Since", RECORD_NUMBER, offsetof(struct holder, since_ms) },
	{ "Process", RECORD_PROCESS, offsetof(struct holder, process) },
	{ "Boot", RECORD_TEXT, offsetof(struct holder, boot) },
	{ "Host", RECORD_TEXT, offsetof(struct holder, host) },
	{ "Boot-Began", RECORD_NUMBER, offsetof(struct holder, boot_began_ms) },
	{ "Boot-Deadline", RECORD_NUMBER, offsetof(struct holder, boot_deadline_ms) },
};

/* The strings of ret live in *own. */
static enum mr_rc
holder_load(int fd, const char *name, struct record *own, struct holder *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	TRY(file_read(fd, name, RECORD_LIMIT, &text, err));
	TRY(record_parse(buf_str(&text), own, err));
	record_read(own, RECORD_FIELDS(holder_fields), ret);
	return MR_OK;
}

static void
holder_fill(const struct holder *h, struct claim *ret)
{
	(void)snprintf(ret->agent, sizeof(ret->agent), "%s", h->agent);
	(void)snprintf(ret->box, sizeof(ret->box), "%s%s", *h->queue ? "queue:" : "", *h->queue ? h->queue : h->agent);
	ret->life = h->life;
	ret->since_ms = h->since_ms;
	ret->kind = h->boot_deadline_ms > 0 ? CLAIM_LEASE : CLAIM_HANDLE;
}

static struct holder
holder_of(const struct claim *claim)
{
	const char *queue = box_queue(claim->box);

	return (struct holder){
		.agent = claim->agent, .queue = queue ? queue : "", .life = claim->life, .since_ms = claim->since_ms
	};
}

/* Without a boot id, the host and the progress of the clock identify it. In an unknown time namespace the clock cannot
 * be identified, and the wall clock decides. */
static void
holder_lease(struct holder *h, int64_t lease_ms)
{
	int64_t now_ms = 0;
	bool known = boot_clock_ms(&now_ms);
	bool has_id = boot_id()[0] != '\0';

	h->boot = known && has_id ? boot_id() : "";
	h->host = known && !has_id ? host_name() : "";
	h->boot_began_ms = known && !has_id ? now_ms : 0;
	h->boot_deadline_ms = (known ? now_ms : clock_boot_ms()) + lease_ms;
}

/* ---- Taking ---- */

/* Locks the file before it becomes visible. */
static enum mr_rc
publish_locked(
    struct maildir *md, int holds_fd, const char *token, struct mr_str record, int *ret_fd, struct mr_error *err)
{
	mr_auto(stage_done) struct staged s = STAGED_INIT;

	TRY(stage_open(&s, holds_fd, holds_fd, md->file_mode, err));
	TRY(stage_write(&s, record, err));
	if (sys_flock(s.fd, LOCK_EX) < 0)
		return mr_fail_errno(err, "cannot lock a hold");
	TRY(stage_link(&s, holds_fd, token, err));
	/* If the unnamed file could not be linked it was copied, and the copy is not locked yet. Nothing is held under
	 * the token so far, but a process that tidies holds/ may just have removed it. */
	if (sys_flock(s.fd, LOCK_EX) < 0)
		return mr_fail_errno(err, "cannot lock a hold");
	if (!file_is_same(s.fd, NULL, holds_fd, token))
		return mr_fail(err, MR_EXISTS, "hold '%s' was removed", token);
	*ret_fd = fcntl(s.fd, F_DUPFD_CLOEXEC, 0); /* the same open file, so the lock stays when s.fd is closed */
	if (*ret_fd >= 0)
		return MR_OK;
	enum mr_rc rc = mr_fail_errno(err, "cannot keep a hold");
	(void)sys_unlink(holds_fd, token);
	return rc;
}

enum mr_rc
token_take(struct maildir *md, const struct claim_terms *terms, struct claim *claim, struct mr_error *err)
{
	mr_auto(sys_close_fd) int holds_fd = -1;
	mr_auto(buf_done) struct buf record = BUF_INIT;
	struct holder holder = holder_of(claim);
	bool lease = terms->kind == CLAIM_LEASE;
	int64_t lease_ms = lease_clamp(terms->lease_ms);
	char token[MR_TOKEN_LEN + 1];

	claim->since_ms = clock_now_ms();
	claim->deadline_ms = 0;
	holder.session = terms->session;
	if (!lease && md->process_token[0] != '\0') {
		memcpy(claim->token, md->process_token, sizeof(claim->token));
		return MR_OK;
	}
	if (lease) {
		holder.process = terms->process;
		holder.since_ms = claim->since_ms;
		holder_lease(&holder, lease_ms);
	} else { /* the file also serves other claims */
		holder.queue = "";
		(void)process_describe((int64_t)getpid(), &holder.process);
	}
	TRY(maildir_folder(md, md->root_fd, "holds", true, &holds_fd, err));
	record_write(&record, RECORD_FIELDS(holder_fields), &holder);
	if (!buf_ok(&record))
		return mr_nomem(err);
	enum mr_rc rc = MR_EXISTS;
	for (int tries = 0; tries < TOKEN_TRIES && rc == MR_EXISTS; tries++) {
		token_new(token);
		rc = lease
			 ? file_publish(holds_fd, holds_fd, token, buf_str(&record), md->file_mode, PUBLISH_NOSYNC, err)
			 : publish_locked(md, holds_fd, token, buf_str(&record), &md->process_hold_fd, err);
	}
	if (rc != MR_OK)
		return rc;
	memcpy(claim->token, token, sizeof(token));
	if (lease)
		claim->deadline_ms = lease_deadline_s(lease_ms) * 1000;
	else
		memcpy(md->process_token, token, sizeof(token));
	return MR_OK;
}

void
token_close(struct maildir *md)
{
	token_drop(md, md->process_token);
	sys_close_fd(&md->process_hold_fd);
	md->process_token[0] = '\0';
}

void
token_drop(struct maildir *md, const char *token)
{
	mr_auto(sys_close_fd) int holds_fd = -1;

	if (dir_open(md->root_fd, "holds", &holds_fd, IGNORED) == MR_OK)
		(void)sys_unlink(holds_fd, token);
}

/* ---- Reading and changing ---- */

enum mr_rc
token_read(struct maildir *md, const char *token, struct claim *claim, struct mr_error *err)
{
	mr_auto(sys_close_fd) int holds_fd = -1;
	mr_auto(record_done) struct record own = { 0 };
	struct holder holder;

	TRY(dir_open(md->root_fd, "holds", &holds_fd, err));
	TRY(holder_load(holds_fd, token, &own, &holder, err));
	holder_fill(&holder, claim);
	return MR_OK;
}

/* The content of the file; if a power cut lost it, what is known of the claim. */
static struct holder
holder_again(int holds_fd, const struct claim *claim, struct record *own)
{
	struct holder holder;

	return holder_load(holds_fd, claim->token, own, &holder, IGNORED) == MR_OK ? holder : holder_of(claim);
}

enum mr_rc
token_extend(struct maildir *md, const struct claim *claim, int64_t lease_ms, struct mr_error *err)
{
	mr_auto(sys_close_fd) int holds_fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(record_done) struct record own = { 0 };

	TRY(maildir_folder(md, md->root_fd, "holds", true, &holds_fd, err));
	struct holder holder = holder_again(holds_fd, claim, &own);
	holder_lease(&holder, lease_ms);
	record_write(&text, RECORD_FIELDS(holder_fields), &holder);
	return buf_ok(&text) ? file_replace(holds_fd, claim->token, buf_str(&text), md->file_mode, err) : mr_nomem(err);
}

/* Drops the lines of an earlier release that failed: the new ones count. */
enum mr_rc
token_note(struct maildir *md, const struct claim *claim, struct mr_error *err)
{
	mr_auto(sys_close_fd) int holds_fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(record_done) struct record own = { 0 };
	char until[24];

	TRY(maildir_folder(md, md->root_fd, "holds", true, &holds_fd, err));
	struct holder holder = holder_again(holds_fd, claim, &own);
	record_write(&text, RECORD_FIELDS(holder_fields), &holder);
	if (claim->reason)
		TRY(header_add(&text, "Reason", str_of(claim->reason), err));
	if (claim->only_for) {
		(void)snprintf(until, sizeof(until), "%" PRId64, claim->only_until_ms);
		record_add(&text, "Only-For", claim->only_for);
		record_add(&text, "Only-Until", until);
	}
	return buf_ok(&text) ? file_replace(holds_fd, claim->token, buf_str(&text), md->file_mode, err) : mr_nomem(err);
}

/* ---- Has it ended? ---- */

bool
lease_time_is_up(const struct lease_time *t)
{
	/* Within one boot it uses a clock that cannot be set. */
	return t->shares_clock ? t->boot_now_ms >= t->boot_deadline_ms : t->now_ms >= t->deadline_ms + CLOCK_GRACE_MS;
}

bool
token_is_over(struct maildir *md, const struct file_name *held)
{
	mr_auto(sys_close_fd) int holds_fd = -1;
	mr_auto(record_done) struct record own = { 0 };
	struct lease_time t = { .now_ms = clock_now_ms(), .deadline_ms = held->deadline_s * 1000 };
	struct holder h;

	if (md->process_token[0] != '\0' && strcmp(held->token, md->process_token) == 0)
		return false;
	enum mr_rc rc = dir_open(md->root_fd, "holds", &holds_fd, IGNORED);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return false; /* cannot be told now (no descriptors left): the mail stays where it is */
	if (held->deadline_s == 0)
		return rc == MR_NOTFOUND || !lock_is_held(holds_fd, held->token);
	if (holder_load(holds_fd, held->token, &own, &h, IGNORED) != MR_OK)
		return lease_time_is_up(&t);
	/* Was the record made in this boot? Without boot ids: on this host, and its clock has not begun anew since. A
	 * reboot goes unnoticed only if the current boot is already longer than the last one was; then the lease only
	 * ends later. */
	t.boot_deadline_ms = h.boot_deadline_ms;
	t.shares_clock = t.boot_deadline_ms > 0 && boot_clock_ms(&t.boot_now_ms) &&
			 (*h.boot ? strcmp(h.boot, boot_id()) == 0
				  : *h.host && strcmp(h.host, host_name()) == 0 && h.boot_began_ms > 0 &&
					t.boot_now_ms >= h.boot_began_ms);
	/* A process that cannot be checked from here does not extend the lease; its own commands and hooks do. Neither
	 * does a server, which outlives the session. */
	return lease_time_is_up(&t) && (h.process.pid == 0 || process_state(&h.process) != PROCESS_ALIVE ||
					   process_codex(&h.process) == CODEX_SHARED);
}

/* The process locked the file before it had this name; where that is impossible, it checks the name after locking. So a
 * free lock means a dead process, and all mail under the token is put back, whether or not the file exists. */
int
token_of_dead(int holds_fd, const char *token, const char *agent)
{
	mr_auto(sys_close_fd) int fd = sys_open(holds_fd, token, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	mr_auto(record_done) struct record own = { 0 };
	struct holder holder;

	if (fd < 0 || !token_valid(str_of(token)) || sys_flock(fd, LOCK_EX | LOCK_NB) < 0 ||
	    !file_is_same(fd, NULL, holds_fd, token) || holder_load(holds_fd, token, &own, &holder, IGNORED) != MR_OK ||
	    holder.boot_deadline_ms > 0 || !*holder.agent || (agent != NULL && strcmp(holder.agent, agent) != 0))
		return -1;
	return sys_take_fd(&fd);
}

/* ---- The history of claims ---- */

static const char ends[] = { [SETTLE_BACK] = 'b', [SETTLE_LATER] = 'r', [SETTLE_DONE] = 'd', [SETTLE_DEAD] = 'f' };

/* "<id>.<token>.<attempt>.<ended, ms>.<how>": fills in claim's id, token and attempt. */
static bool
past_parse(const char *name, struct claim *claim, struct past_claim *ret)
{
	uint64_t attempt = 0, ended = 0;

	if (strlen(name) <= MR_ID_LEN + 1 + MR_TOKEN_LEN + 1 || name[MR_ID_LEN] != '.' ||
	    name[MR_ID_LEN + 1 + MR_TOKEN_LEN] != '.')
		return false;
	const char *rest = name + MR_ID_LEN + 1 + MR_TOKEN_LEN + 1, *dot = strchr(rest, '.');
	const char *last = dot ? strchr(dot + 1, '.') : NULL;
	if (last == NULL || !str_to_u64((struct mr_str){ rest, (size_t)(dot - rest) }, &attempt) ||
	    !str_to_u64((struct mr_str){ dot + 1, (size_t)(last - dot - 1) }, &ended) || attempt > UINT32_MAX ||
	    ended > INT64_MAX / 2)
		return false;
	(void)snprintf(claim->id, sizeof(claim->id), "%.*s", MR_ID_LEN, name);
	(void)snprintf(claim->token, sizeof(claim->token), "%.*s", MR_TOKEN_LEN, name + MR_ID_LEN + 1);
	claim->attempt = (unsigned)attempt;
	ret->ended_ms = (int64_t)ended;
	const char *letter = last[1] ? memchr(ends, last[1], sizeof(ends)) : NULL;
	if (letter)
		ret->how = (enum settle)(letter - ends);
	return letter != NULL;
}

struct past_search {
	const char *id, *token; /* one of them, or NULL */
	int64_t since_ms;
	const char *queue; /* of this queue; NULL: of agents' own mail */
	size_t told;
	void (*fn)(void *ctx, const struct past_claim *past);
	void *ctx;
};

static bool
is_wanted(const struct past_search *s, const char *name)
{
	struct claim claim;
	struct past_claim past;

	return past_parse(name, &claim, &past) && past.ended_ms >= s->since_ms &&
	       (s->id == NULL || strcmp(claim.id, s->id) == 0) &&
	       (s->token == NULL || strcmp(claim.token, s->token) == 0);
}

static int
by_end(const void *a, const void *b)
{
	struct claim ignored;
	struct past_claim x = { 0 }, y = { 0 };

	(void)past_parse(*(char *const *)a, &ignored, &x);
	(void)past_parse(*(char *const *)b, &ignored, &y);
	return (x.ended_ms > y.ended_ms) - (x.ended_ms < y.ended_ms);
}

static void
tell_past(struct past_search *s, int fd, const char *name)
{
	mr_auto(record_done) struct record own = { 0 };
	struct holder holder;
	struct claim claim = { 0 };
	struct past_claim past = { .claim = &claim };

	if (!past_parse(name, &claim, &past) || holder_load(fd, name, &own, &holder, IGNORED) != MR_OK)
		return;
	holder.queue = s->queue ? s->queue : "";
	holder_fill(&holder, &claim);
	claim.kind = CLAIM_LEASE;
	claim.reason = record_get(&own, "Reason");
	claim.only_for = record_get(&own, "Only-For");
	claim.only_until_ms = record_int(&own, "Only-Until", 0);
	s->fn(s->ctx, &past);
}

static enum mr_rc
past_in(int past_fd, const char *month, struct past_search *s, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(mr_names_done) struct mr_names names = { 0 }, found = { 0 };

	TRY(names_in(past_fd, month, &fd, &names, err));
	for (size_t i = 0; i < names.n; i++)
		if (is_wanted(s, names.v[i]))
			TRY(mr_got(names_add(&found, str_of(names.v[i])), err));
	if (found.n > 1)
		qsort(found.v, found.n, sizeof(*found.v), by_end);
	for (size_t i = 0; i < found.n; i++)
		tell_past(s, fd, found.v[i]);
	s->told += found.n;
	return MR_OK;
}

/* Searches the months of a queue, or of the agents' own mail, for a token until it is found. In a queue the id tells
 * the month. */
static enum mr_rc
past_below(int base_fd, struct past_search *s, struct mr_error *err)
{
	mr_auto(sys_close_fd) int past_fd = -1;
	mr_auto(mr_names_done) struct mr_names months = { 0 };
	char month[24] = "";

	if (s->id != NULL && s->queue != NULL)
		name_month("", id_time_ms(s->id), month);
	TRY(names_in(base_fd, "past", &past_fd, &months, err));
	for (size_t i = 0; i < months.n && (s->token == NULL || s->told == 0); i++)
		if (!month[0] || strcmp(months.v[i], month + 1) == 0)
			TRY(past_in(past_fd, months.v[i], s, err));
	return MR_OK;
}

/* A token tells neither the month nor the queue. Only an agent that settles a claim twice asks so. */
enum mr_rc
maildir_each_past(struct mr_room *room, const char *box, const char *id, const char *token, int64_t since_ms,
    void (*fn)(void *ctx, const struct past_claim *past), void *ctx, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	const char *queue = id != NULL || token == NULL ? box_queue(box) : NULL;
	struct past_search s = { .id = id, .token = token, .since_ms = since_ms, .fn = fn, .ctx = ctx };

	if (queue == NULL)
		TRY(past_below(md->root_fd, &s, err));
	if (id == NULL && token != NULL)
		TRY(queue_names(md, &queues, err));
	else if (queue != NULL && !names_add(&queues, str_of(queue)))
		return mr_nomem(err);
	for (size_t i = 0; i < queues.n && s.told == 0; i++) {
		mr_auto(queue_done) struct queue q = QUEUE_INIT;

		s.queue = queues.v[i];
		enum mr_rc rc = queue_open_any(&q, md, queues.v[i], err);
		if (rc == MR_OK)
			rc = past_below(q.fd, &s, err);
		if (rc != MR_OK && rc != MR_NOTFOUND &&
		    (queue != NULL || !shared_skip(md, err, "queues/%s", queues.v[i])))
			return rc;
	}
	return MR_OK;
}

/* Removes the history of these messages (NULL: of all) in one month, and the month if it is then empty. Best effort. */
static void
remove_month(int past_fd, const char *month, const struct mr_names *ids)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct past_claim past;
	struct claim claim;

	(void)names_in(past_fd, month, &fd, &names, IGNORED);
	for (size_t i = 0; i < names.n; i++)
		if (past_parse(names.v[i], &claim, &past) && (ids == NULL || names_find(ids, claim.id)))
			(void)sys_unlink(fd, names.v[i]);
	(void)sys_rmdir(past_fd, month);
}

void
past_remove(const struct queue *q, const struct mr_names *ids)
{
	mr_auto(sys_close_fd) int past_fd = -1;
	mr_auto(mr_names_done) struct mr_names months = { 0 };

	(void)names_in(q->fd, "past", &past_fd, &months, IGNORED);
	for (size_t i = 0; i < months.n; i++) {
		bool concerned = ids == NULL;

		for (size_t k = 0; !concerned && k < ids->n; k++) {
			char month[24];

			name_month("", id_time_ms(ids->v[k]), month);
			concerned = strcmp(month + 1, months.v[i]) == 0;
		}
		if (concerned)
			remove_month(past_fd, months.v[i], ids);
	}
	if (ids == NULL)
		(void)sys_rmdir(q->fd, "past");
}

void
past_keep(struct maildir *md, const struct queue *q, const struct file_name *n, enum settle how)
{
	mr_auto(sys_close_fd) int holds_fd = -1;
	mr_auto(sys_close_fd) int past_fd = -1;
	mr_auto(sys_close_fd) int fd = -1;
	int64_t now_ms = clock_now_ms();
	int base_fd = q != NULL ? q->fd : md->root_fd;
	char dotted[24], name[NAME_LEN];
	const char *month = dotted + 1;

	name_month("", q != NULL ? id_time_ms(n->id) : now_ms, dotted);
	(void)snprintf(
	    name, sizeof(name), "%s.%s.%u.%" PRId64 ".%c", n->id, n->token, n->hold_attempt, now_ms, ends[how]);
	if (dir_open(md->root_fd, "holds", &holds_fd, IGNORED) != MR_OK)
		return;
	const struct sys_relief *relief = sys_relief_set(NULL); /* on a full disk the reserve has better uses */
	bool kept = ends[how] != '\0' && !md->reserve_spent;
	if (kept && dir_open(base_fd, path_of("past/", month, NULL).z, &fd, IGNORED) != MR_OK) {
		mr_auto(mr_names_done) struct mr_names months = { 0 };

		kept = dir_make(base_fd, "past", md->dir_mode, false, &past_fd, IGNORED) == MR_OK &&
		       dir_make(past_fd, month, md->dir_mode, false, &fd, IGNORED) == MR_OK;
		if (kept && q == NULL)
			(void)names_in(past_fd, ".", NULL, &months, IGNORED);
		for (size_t i = 0; i + MONTHS_KEPT < months.n; i++) /* sorted by time */
			remove_month(past_fd, months.v[i], NULL);
	}
	if (!kept || sys_rename(holds_fd, n->token, fd, name) < 0)
		token_drop(md, n->token);
	(void)sys_relief_set(relief);
}
