/* SPDX-License-Identifier: MIT */
/*
 * queue_ready.c - ready/<p>/<bucket>/: waiting work, spread over folders so that no command reads all of it; putting
 * work in, and taking the next one out.
 *
 * A folder with a hundred thousand files takes tens of milliseconds to read, and it never shrinks. So waiting work is
 * in buckets, folders named by a growing number: senders link into the highest, claimers take from the lowest. There is
 * no exact count and no lock:
 *
 * - One sender in 32 counts the bucket that it has just used, and makes the next one when it is full. Many senders at
 *   once may overfill it a little; a claimer that finds it far too full makes the next one too. Only one mkdir
 *   succeeds.
 * - A claimer that finds a bucket empty, if it is not the highest, removes it. rmdir fails if work came in. A sender
 *   that has chosen the bucket just before cannot link into a removed folder, and chooses again. The highest bucket is
 *   never removed, so numbers only grow.
 * - Work that comes back goes into the lowest bucket: it has the smallest ids there, and is handed out next.
 *
 * Order: later sends never go to a lower bucket than earlier ones, and in a bucket the id decides.
 *
 * Even the list of buckets is long when a million messages wait. So ready/<p>/.low and .high cache its ends. Both ends
 * only grow, so a number that was right once is never too high. If it is too low by now, then .low names a bucket that
 * is gone, or .high one that has a successor, and the list is read after all. Numbers of another boot do not count,
 * because a power cut may have brought buckets back. And one lookup in 32 reads the list in any case, in case a person
 * moved files by hand.
 *
 * The removal of a queue removes its settings first and then moves the work. So a sender looks for the settings once
 * more after its link: if they are still there, the remover will find the work; if not, it may have passed already.
 *
 * Taking is one rename, of which only one succeeds (claim.c tells why that is safe).
 * A claimer reads the lowest bucket with something in it of each priority, and keeps the few smallest names. It tries
 * the smallest first, so a single claimer sees the exact order. A claimer that loses that race does not try the second,
 * which all other losers would try too: it goes on at a random place among the next sixteen, and reads again only when
 * the others have taken all that it kept.
 *
 * Work that is to wait is in delayed/<hour>/, by the hour in which it becomes due. A claimer reads the hours that have
 * begun, moves the work that is due and removes hours that have passed, so work for later hours costs it nothing.
 *
 * Released work is ordered by the time of its release. The agent that released it gets it only when nothing else is
 * ready; while it is reserved for one agent, no other agent gets it.
 *
 * A limit on live claims needs a lock, because no other claim may happen between counting and taking.
 */
#include "base/process.h"
#include "rooms/maildir/maildir.h"
#include <inttypes.h>

#define BUCKET_FULL 128u
#define BUCKET_DIGITS 8
#define COUNT_ONE_IN 32u
#define LIST_ONE_IN 32u
#define PUT_TRIES 1000
#define KEPT 32u     /* names that are kept */
#define SPREAD 16u   /* losers go on at a random one of so many */
#define CROWDED 512u /* a highest bucket this full should have a successor */
#define ROUNDS_MAX 10000
#define HOUR_MS ((int64_t)3600 * 1000)
#define HOUR_DIGITS 10

struct path
bucket_name(uint32_t number)
{
	char digits[21];

	(void)text_number(digits, number, BUCKET_DIGITS);
	return path_of(digits, NULL);
}

void
buckets_done(struct buckets *b)
{
	sys_close_fd(&b->fd);
	free(b->v);
	*b = BUCKETS_INIT;
}

static enum mr_rc
bucket_open(const struct buckets *b, size_t i, int *ret_fd, struct mr_error *err)
{
	return dir_open(b->fd, bucket_name(b->v[i]).z, ret_fd, err);
}

static enum mr_rc
make_bucket(const struct queue *q, const struct buckets *b, uint32_t number, int *ret_fd, struct mr_error *err)
{
	return dir_make(b->fd, bucket_name(number).z, q->md->dir_mode, q->md->sync, ret_fd, err);
}

/* ---- The ends ---- */

static const char *const hint_names[] = { [BUCKET_LOWEST] = ".low", [BUCKET_HIGHEST] = ".high" };

static bool
one_in(unsigned n)
{
	unsigned char dice = 0;

	random_bytes(&dice, sizeof(dice));
	return dice % n == 0;
}

/* "<number> <boot id>" */
static bool
hint_read(const struct buckets *b, enum bucket_end end, uint32_t *ret)
{
	mr_auto(sys_close_fd) int fd = sys_open(b->fd, hint_names[end], O_RDONLY | O_NONBLOCK, 0);
	char text[64];
	uint64_t number = 0;

	ssize_t len = fd < 0 ? -1 : sys_pread(fd, text, sizeof(text), 0);
	if (len <= BUCKET_DIGITS + 1 || text[BUCKET_DIGITS] != ' ')
		return false;
	struct mr_str boot = { text + BUCKET_DIGITS + 1, (size_t)len - BUCKET_DIGITS - 1 };
	if (!str_eq(boot, str_of(boot_id())) || !str_to_u64((struct mr_str){ text, BUCKET_DIGITS }, &number))
		return false;
	*ret = (uint32_t)number;
	return true;
}

static void
bucket_note(const struct queue *q, const struct buckets *b, enum bucket_end end, uint32_t number)
{
	mr_auto(sys_close_fd) int fd = -1;
	char text[64];
	uint32_t known;

	if (boot_id()[0] == '\0' || (hint_read(b, end, &known) && known == number))
		return;
	fd = sys_open(b->fd, hint_names[end], O_RDWR | O_CREAT | O_NONBLOCK, q->md->file_mode);
	int len = snprintf(text, sizeof(text), "%0*" PRIu32 " %.50s", BUCKET_DIGITS, number, boot_id());
	if (fd >= 0 && len > 0)
		(void)sys_pwrite_all(fd, text, (size_t)len, 0);
}

void
bucket_rotate(const struct queue *q, const struct buckets *b)
{
	mr_auto(sys_close_fd) int fd = -1;

	if (b->n > 0 && make_bucket(q, b, b->v[b->n - 1] + 1, &fd, IGNORED) == MR_OK)
		bucket_note(q, b, BUCKET_HIGHEST, b->v[b->n - 1] + 1);
}

static bool
is_there(const struct buckets *b, uint32_t number)
{
	struct stat st;

	return sys_stat(b->fd, bucket_name(number).z, &st) == 0;
}

static enum mr_rc
open_ready(const struct queue *q, unsigned p, bool make, struct buckets *ret, struct mr_error *err)
{
	const char digit[2] = { (char)('0' + p) };
	const struct path path = path_of("ready/", digit, NULL);

	return mr_unless(maildir_folder(q->md, q->fd, path.z, make, &ret->fd, err), MR_NOTFOUND, err);
}

/* Their names have leading zeros, so their order is that of the numbers. */
static enum mr_rc
read_list(struct buckets *b, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	uint64_t number = 0;

	if (b->fd < 0)
		return MR_OK;
	TRY(names_in(b->fd, ".", NULL, &names, err));
	b->v = malloc((names.n + 1) * sizeof(*b->v));
	TRY(mr_got(b->v, err));
	for (size_t i = 0; i < names.n; i++)
		if (strlen(names.v[i]) == BUCKET_DIGITS && str_to_u64(str_of(names.v[i]), &number))
			b->v[b->n++] = (uint32_t)number;
	return MR_OK;
}

enum mr_rc
buckets_read(const struct queue *q, unsigned p, struct buckets *ret, struct mr_error *err)
{
	TRY(open_ready(q, p, false, ret, err));
	return read_list(ret, err);
}

static enum mr_rc
bucket_end(const struct queue *q, unsigned p, enum bucket_end end, bool make, struct buckets *ret, struct mr_error *err)
{
	uint32_t number;

	TRY(open_ready(q, p, make, ret, err));
	if (ret->fd < 0)
		return MR_OK;
	if (!one_in(LIST_ONE_IN) && hint_read(ret, end, &number) && is_there(ret, number) &&
	    (end == BUCKET_LOWEST || !is_there(ret, number + 1))) {
		ret->v = malloc(sizeof(*ret->v));
		TRY(mr_got(ret->v, err));
		ret->v[0] = number;
		ret->n = 1;
		return MR_OK;
	}
	TRY(read_list(ret, err));
	if (ret->n == 0)
		return MR_OK;
	ret->v[0] = ret->v[end == BUCKET_LOWEST ? 0 : ret->n - 1];
	ret->n = 1;
	bucket_note(q, ret, end, ret->v[0]);
	return MR_OK;
}

/* ---- Putting work in ---- */

/* Was the folder that we hold open removed? */
static bool
is_gone(const struct buckets *b, uint32_t number, int bucket_fd)
{
	if (!is_there(b, number))
		return errno == ENOENT;
	return !file_is_same(bucket_fd, NULL, b->fd, bucket_name(number).z);
}

static enum mr_rc
put_once(const struct queue *q, unsigned p, enum bucket_end end, bucket_put_fn *put, void *ctx, int *ret_fd,
    bool *ret_again, struct mr_error *err)
{
	mr_auto(buckets_done) struct buckets b = BUCKETS_INIT;
	mr_auto(mr_names_done) struct mr_names work = { 0 };
	mr_auto(sys_close_fd) int fd = -1;

	*ret_again = false;
	TRY(bucket_end(q, p, end, true, &b, err));
	enum mr_rc rc = b.n > 0 ? bucket_open(&b, 0, &fd, err) : make_bucket(q, &b, 0, &fd, err);
	if (rc == MR_OK)
		rc = put(ctx, fd, err);
	if (rc == MR_NOTFOUND)
		*ret_again = fd < 0 || is_gone(&b, b.n == 0 ? 0 : b.v[0], fd);
	if (rc != MR_OK)
		return rc;
	/* Only now and then: reading a bucket for each send would cost more than the send. */
	if (end == BUCKET_HIGHEST && one_in(COUNT_ONE_IN) && dir_names(fd, &work, IGNORED) == MR_OK &&
	    work.n >= BUCKET_FULL)
		bucket_rotate(q, &b);
	if (ret_fd != NULL)
		*ret_fd = sys_take_fd(&fd);
	return MR_OK;
}

enum mr_rc
bucket_put(const struct queue *q, unsigned p, enum bucket_end end, bucket_put_fn *put, void *ctx, int *ret_fd,
    struct mr_error *err)
{
	bool again = true;
	enum mr_rc rc = MR_OK;

	for (int tries = 0; again && tries < PUT_TRIES; tries++)
		rc = put_once(q, p, end, put, ctx, ret_fd, &again, err);
	if (again)
		return mr_fail(err, MR_BUSY, "the buckets of queue '%s' keep changing", q->name);
	return rc;
}

/* ---- Incoming work: a new message, or a link of a fan-out ---- */

struct incoming {
	struct queue *q;
	const char *id;
	struct staged *file; /* a new message ... */
	int from_fd;         /* ... or an existing file */
	const char *from;
	char name[NAME_LEN]; /* its name in its folder */
};

/* MR_NOTFOUND: the folder was removed. */
static enum mr_rc
link_in(void *ctx, int fd, struct mr_error *err)
{
	const struct incoming *in = ctx;
	struct maildir *md = in->q->md;

	if (in->file != NULL) {
		enum mr_rc rc = stage_link(in->file, fd, in->name, err);
		return rc == MR_IO && err->sys_errno == ENOENT ? MR_NOTFOUND : rc;
	}
	if (sys_link(in->from_fd, in->from, fd, in->name) == 0)
		return MR_OK;
	if (errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "cannot publish '%s': its folder was removed", in->name);
	if (errno == EEXIST)
		return file_is_same(in->from_fd, in->from, fd, in->name)
			   ? MR_OK
			   : mr_fail(err, MR_EXISTS, "another message is named '%s'", in->name);
	if (!deliver_needs_copy(errno))
		return mr_fail_errno(err, "cannot publish '%s'", in->name);
	return file_publish_copy(in->from_fd, in->from, fd, in->q->fd, in->name, md->message_mode, md->publish, err);
}

static enum mr_rc
put(struct incoming *in, const struct mr_message *msg, int *ret_fd, struct mr_error *err)
{
	unsigned p = msg->priority >= MR_URGENT ? 0 : msg->priority == MR_HIGH ? 1 : msg->priority == MR_NORMAL ? 2 : 3;
	char file[NAME_LEN];

	name_for_id(in->id, file);
	if (msg->not_before_ms <= clock_now_ms()) {
		memcpy(in->name, file, sizeof(file));
		return bucket_put(in->q, p, BUCKET_HIGHEST, link_in, in, ret_fd, err);
	}
	if (!work_delayed_name(msg->not_before_ms, p, file, in->name))
		return mr_fail(err, MR_REFUSED, "the name of message '%s' is too long", in->id);
	/* Tries twice, in case its hour passed just now and a claimer removed the folder. */
	char path[32];
	enum mr_rc rc = MR_NOTFOUND;

	(void)snprintf(path, sizeof(path), "delayed/%010" PRId64, msg->not_before_ms / HOUR_MS);
	for (int tries = 0; tries < 2 && rc == MR_NOTFOUND; tries++) {
		sys_close_fd(ret_fd);
		TRY(queue_folder(in->q, path, ret_fd, err));
		rc = link_in(in, *ret_fd, err);
	}
	return rc;
}

/* Into ready/ or delayed/, as msg says. *ret_fd: the folder, also on failure. */
static enum mr_rc
come_in(struct incoming *in, const struct mr_message *msg, int *ret_fd, struct mr_error *err)
{
	enum mr_rc rc = put(in, msg, ret_fd, err);

	if (queue_is_there(in->q))
		return rc;
	if (rc != MR_OK)
		return queue_missing(in->q->name, err);
	bool ours = sys_unlink(*ret_fd, in->name) == 0;
	(void)mr_fail(err, MR_NOTFOUND, "queue '%s' was removed just now", in->q->name);
	return ours ? err->code : mr_hint(err, "a copy of the message is among the dead letters");
}

enum mr_rc
queue_publish(
    struct mr_room *room, struct queue *q, const struct mr_message *msg, struct staged *file, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct incoming in = { .q = q, .id = msg->id, .file = file };

	/* Staged in the queue's own folder, because others may remove the bucket meanwhile. */
	TRY(stage_open(file, q->fd, q->fd, q->md->message_mode, err));
	TRY(deliver_write(file, room, msg, err));
	TRY(commit_bytes(q->md, file, err));
	TRY(come_in(&in, msg, &fd, err));
	return deliver_make_durable(q->md, q->name, file->fd, fd, in.name, err);
}

enum mr_rc
queue_give(struct mr_room *room, const char *queue, int from_fd, const char *from, const char *id, int *ret_fd,
    struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(sys_close_fd) int file_fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct incoming in = { .q = &q, .id = id, .from_fd = from_fd, .from = from };
	struct stat st;

	TRY(queue_open(&q, maildir_of(room), queue, err));
	/* Its headers say when it may be claimed. */
	TRY(message_open(from_fd, from, &file_fd, &st, err));
	memcpy(msg.id, id, sizeof(msg.id));
	if (message_read(room, file_fd, &st, SCAN_HEADERS, from, &text, &msg, err) != MR_OK)
		return mr_wrap(err, "'%s'", from);
	TRY(come_in(&in, &msg, &fd, err));
	*ret_fd = sys_take_fd(&fd);
	return MR_OK;
}

/* ---- Taking the next one ---- */

struct candidate {
	char id[MR_ID_LEN + 1];
	int64_t at_ms; /* waiting since then */
	unsigned p;
	char name[NAME_LEN]; /* in its bucket */
};

struct claiming {
	struct queue q;
	const struct claim_terms *terms;
	struct claim *claim; /* the claim for the caller */
	int claimed_fd;
	int bucket_fd[QUEUE_PRIORITIES]; /* of the candidates */
	unsigned p;                      /* being read */
	size_t seen;                     /* entries of that bucket */
	bool usable;                     /* one of them is a candidate */
	bool own_too;                    /* also work that this claimer released itself */
	bool own_skipped;
	struct mr_names agents;     /* of the room; read when work that is reserved for one of them is found */
	char who[NAME_WHO_LEN + 1]; /* the claimer, in names of released work; "": not computed yet */
	struct candidate *v;        /* sorted, when all are read */
	size_t n, cap;
	bool failed; /* out of memory */
};

static void
forget_candidates(struct claiming *c)
{
	for (unsigned p = 0; p < QUEUE_PRIORITIES; p++)
		sys_close_fd(&c->bucket_fd[p]);
	c->n = 0;
}

static void
claiming_done(struct claiming *c)
{
	forget_candidates(c);
	free(c->v);
	sys_close_fd(&c->claimed_fd);
	mr_names_done(&c->agents);
	queue_done(&c->q);
}

/* ---- Delayed work that is due ---- */

struct arrival {
	struct maildir *md;
	int from_fd;
	const char *name;
	const struct file_name *parts;
};

static enum mr_rc
move_in(void *ctx, int bucket_fd, struct mr_error *err)
{
	const struct arrival *a = ctx;

	return mark_rename(a->md, a->from_fd, a->name, bucket_fd, a->parts, a->parts->attempt, 0, false, err);
}

bool
work_is_hour(const char *name, int64_t *ret_ms)
{
	uint64_t hour = 0;

	if (strlen(name) != HOUR_DIGITS || !str_to_u64(str_of(name), &hour))
		return false;
	*ret_ms = (int64_t)hour * HOUR_MS;
	return true;
}

static enum mr_rc
release_from(struct claiming *c, int fd, const struct mr_names *names, struct mr_error *err)
{
	for (size_t i = 0; i < names->n; i++) {
		struct work_name n;

		if (!work_parse(QUEUE_DELAYED, str_of(names->v[i]), &n) || n.not_before_ms > clock_now_ms())
			continue;
		struct arrival a = { c->q.md, fd, names->v[i], &n.file };
		enum mr_rc rc = bucket_put(&c->q, n.p, BUCKET_HIGHEST, move_in, &a, NULL, err);

		if (rc != MR_OK && rc != MR_NOTFOUND) /* not found: another claimer was faster */
			return rc;
	}
	return MR_OK;
}

/* Reads the hours that have begun. Removes one that has passed and is empty. */
static enum mr_rc
release_due(struct claiming *c, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	int64_t hour_ms = 0;

	TRY(names_in(c->q.fd, "delayed", &fd, &names, err));
	TRY(release_from(c, fd, &names, err)); /* in the layout of an earlier version */
	for (size_t i = 0; i < names.n; i++) {
		mr_auto(mr_names_done) struct mr_names due = { 0 };
		mr_auto(sys_close_fd) int hour_fd = -1;

		if (!work_is_hour(names.v[i], &hour_ms) || hour_ms > clock_now_ms())
			continue;
		TRY(names_in(fd, names.v[i], &hour_fd, &due, err));
		TRY(release_from(c, hour_fd, &due, err));
		if (hour_ms + HOUR_MS <= clock_now_ms())
			(void)sys_rmdir(fd, names.v[i]);
	}
	return MR_OK;
}

/* ---- Choosing ---- */

/* By age alone: if priorities count, only the most urgent priority with work was read. */
static int
by_age(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->at_ms != y->at_ms ? (x->at_ms < y->at_ms ? -1 : 1) : memcmp(x->id, y->id, MR_ID_LEN);
}

/* May this claimer have this released work now? It may be reserved for another. */
static bool
is_for_us(struct claiming *c, const struct released *r)
{
	char agent[MR_ADDRESS_MAX + 1];

	if (c->who[0] == '\0')
		name_who(c->claim->agent, c->who);
	if (strcmp(r->only_for, c->who) != 0 && queue_only_for(c->q.md, &c->agents, r, agent))
		return false;
	if (c->own_too || strcmp(r->by, c->who) != 0)
		return true;
	c->own_skipped = true;
	return false;
}

static bool
consider(void *ctx, const struct dir_entry *entry)
{
	struct claiming *c = ctx;
	struct released r;
	struct work_name n;

	if (!work_parse(QUEUE_READY, str_of(entry->name), &n))
		return true;
	c->seen++;
	bool released = name_released(&n.file, &r);
	if (released && !is_for_us(c, &r))
		return true;
	c->usable = true;
	c->failed = !array_grow(&c->v, c->n, &c->cap, sizeof(*c->v));
	if (c->failed)
		return false;
	struct candidate *new = &c->v[c->n++];

	*new = (struct candidate){ .p = c->p, .at_ms = released ? r.at_ms : id_time_ms(n.file.id) };
	memcpy(new->id, n.file.id, sizeof(new->id));
	text_join(new->name, sizeof(new->name), entry->name, NULL);
	return true;
}

/* A bucket that another claimer emptied and removed counts as empty. */
static enum mr_rc
read_bucket(struct claiming *c, const struct buckets *b, size_t i, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	c->seen = 0;
	TRY(mr_unless(bucket_open(b, i, &fd, err), MR_NOTFOUND, err));
	if (fd < 0)
		return MR_OK;
	TRY(dir_each(fd, consider, c, err));
	if (c->usable) {
		c->bucket_fd[c->p] = sys_take_fd(&fd);
	} else if (c->seen == 0 && i + 1 < b->n) {
		(void)sys_rmdir(b->fd, bucket_name(b->v[i]).z);
	}
	return MR_OK;
}

/* Reads only the lowest bucket. If it has nothing for us, or far too much, goes through all up to the first with
 * something for us and removes empty ones. */
static enum mr_rc
read_priority(struct claiming *c, unsigned p, struct mr_error *err)
{
	mr_auto(buckets_done) struct buckets lowest = BUCKETS_INIT, all = BUCKETS_INIT;

	c->p = p;
	c->usable = false;
	TRY(bucket_end(&c->q, p, BUCKET_LOWEST, false, &lowest, err));
	if (lowest.n == 0)
		return MR_OK;
	TRY(read_bucket(c, &lowest, 0, err));
	if (c->usable && c->seen <= CROWDED)
		return MR_OK;
	TRY(buckets_read(&c->q, p, &all, err));
	size_t at = 0;
	for (; at < all.n && !c->usable; at++) {
		TRY(read_bucket(c, &all, at, err));
		if (c->seen > 0 && at == 0)
			bucket_note(&c->q, &all, BUCKET_LOWEST, all.v[0]);
	}
	if (c->seen > CROWDED && (at == all.n || all.n == 1))
		bucket_rotate(&c->q, &all);
	return MR_OK;
}

/* Work that the claimer released itself is taken only if there is nothing else. */
static enum mr_rc
gather(struct claiming *c, struct mr_error *err)
{
	c->own_too = c->own_skipped = false;
	do {
		c->own_too = c->own_skipped;
		forget_candidates(c);
		for (unsigned p = 0; p < QUEUE_PRIORITIES && !(c->terms->by_priority && c->n > 0); p++)
			TRY(read_priority(c, p, err));
	} while (c->n == 0 && c->own_skipped && !c->own_too);
	if (c->n > 1)
		qsort(c->v, c->n, sizeof(*c->v), by_age);
	c->n = c->n < KEPT ? c->n : KEPT;
	return mr_got(!c->failed, err);
}

/* ---- Taking ---- */

/* MR_NOTFOUND: another claimer was faster. */
static enum mr_rc
take(struct claiming *c, const struct candidate *want, struct mr_error *err)
{
	struct claim *claim = c->claim;
	struct work_name n;
	char name[NAME_LEN];

	if (!work_parse(QUEUE_READY, str_of(want->name), &n))
		return mr_fail(err, MR_CORRUPT, "'%s' is not the name of a piece of work", want->name);
	claim->attempt = n.file.attempt + 1;
	if (!work_claimed_name(claim->token, claim->deadline_ms / 1000, claim->attempt, want->p, want->name, name))
		return mr_fail(err, MR_REFUSED,
		    "the file name '%.60s...' is too long to be claimed\nrename the file: its name may have at most 200 bytes",
		    want->name);
	TRY(commit_move(c->q.md, c->bucket_fd[want->p], want->name, c->claimed_fd, name, err));
	memcpy(claim->id, want->id, sizeof(claim->id));
	return MR_OK;
}

static enum mr_rc
check_limit(struct claiming *c, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	unsigned live = 0;

	TRY(names_in(c->claimed_fd, ".", NULL, &names, err));
	for (size_t i = 0; i < names.n && live < c->terms->max_claims; i++) {
		struct work_name n;

		live += work_parse(QUEUE_CLAIMED, str_of(names.v[i]), &n) && !token_is_over(c->q.md, &n.file);
	}
	if (live < c->terms->max_claims)
		return MR_OK;
	return mr_fail(err, MR_BUSY,
	    "queue '%s' has %u live claims, which is its limit\ntry again when one of them is done", c->q.name, live);
}

enum mr_rc
queue_claim_next(
    struct maildir *md, const char *queue, const struct claim_terms *terms, struct claim *claim, struct mr_error *err)
{
	mr_auto(sys_close_fd) int lock_fd = -1; /* released after everything else */
	mr_auto(claiming_done) struct claiming c = {
		.q = QUEUE_INIT, .terms = terms, .claim = claim, .claimed_fd = -1, .bucket_fd = { -1, -1, -1, -1 }
	};

	TRY(queue_open(&c.q, md, queue, err));
	TRY(queue_folder(&c.q, "claimed", &c.claimed_fd, err));
	if (terms->max_claims > 0) {
		TRY(lock_take(c.q.fd, ".lock", md->file_mode, LOCK_WAIT_MS, &lock_fd, err));
		TRY(check_limit(&c, err));
	}
	TRY(release_due(&c, err));

	unsigned char dice = 0;

	for (int round = 0; round < ROUNDS_MAX; round++) {
		TRY(gather(&c, err));
		if (c.n == 0)
			return mr_fail(err, MR_EMPTY, "nothing is ready in queue '%s'", c.q.name);
		if (c.claim->token[0] == '\0')
			TRY(token_take(c.q.md, c.terms, c.claim, err));
		enum mr_rc rc = take(&c, &c.v[0], err);
		size_t others = c.n - 1;
		if (rc == MR_NOTFOUND && others > 0)
			random_bytes(&dice, sizeof(dice));
		for (size_t i = 0; i < others && rc == MR_NOTFOUND; i++)
			rc = take(&c, &c.v[1 + (dice % SPREAD + i) % others], err);
		if (rc != MR_NOTFOUND)
			return rc;
	}
	return mr_fail(err, MR_BUSY, "other claimers take all work of queue '%s' first", c.q.name);
}
