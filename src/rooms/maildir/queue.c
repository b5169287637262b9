/* SPDX-License-Identifier: MIT */
/*
 * queue.c - a queue's folders: open, make, walk, find, read, remove. A queue exists while its settings do; a folder
 * without them is a leftover, like that of an agent without a registration.
 *
 * Work moves delayed -> ready -> claimed -> done or failed, and from claimed back to ready. A search in the order of
 * the moves finds everything that only moves forward. Work that is given back meanwhile can be missed, but then
 * claimed/ has changed: "not found" counts only if it has not.
 *
 * Removal of a queue: its settings are removed first, so that nobody can send to it or claim from it any more; then the
 * remaining work and the failed work, which nobody would find here any more, are moved to the dead letters; then the
 * folders are removed. done/ stays if it is not empty, because finished work is not a dead letter; a new queue with
 * this name has it again. A crash after the settings are gone leaves work in a folder without settings; removing the
 * queue once more, or making it again, goes on from there.
 */
#include "message/message.h"
#include "rooms/maildir/maildir.h"
#include <inttypes.h>

#define FIND_PASSES 6
#define ATTEMPTS_TRIED 10
#define STAMP_MS 50 /* two changes within one tick of the file system's clock look like one */
#define FETCH_TRIES 20
#define REMOVE_ROUNDS 20 /* a sender that found the queue just before may still put work into it */

/* ---- Opening ---- */

/* "": such a name cannot be a queue. */
static struct path
folder_of(const char *queue)
{
	char escaped[NAME_LEN];

	if (queue[0] == '\0' || queue[0] == '.' || strlen(queue) > MR_ADDRESS_MAX)
		return path_of("", NULL);
	name_escape(queue, escaped);
	return path_of("queues/", escaped, NULL);
}

enum mr_rc
queue_missing(const char *name, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND, "no queue '%.170s'\nsee: mailroom queue list", name);
}

bool
queue_is_there(const struct queue *q)
{
	struct stat st;

	/* An error does not mean that the queue is gone. */
	return sys_stat(q->fd, "settings", &st) == 0 || errno != ENOENT;
}

enum mr_rc
queue_open_any(struct queue *q, struct maildir *md, const char *name, struct mr_error *err)
{
	const struct path path = folder_of(name);

	enum mr_rc rc = path.z[0] ? dir_open(md->root_fd, path.z, &q->fd, err) : MR_NOTFOUND;
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? queue_missing(name, err) : rc;
	q->md = md;
	text_join(q->name, sizeof(q->name), name, NULL);
	return MR_OK;
}

enum mr_rc
queue_open(struct queue *q, struct maildir *md, const char *name, struct mr_error *err)
{
	TRY(queue_open_any(q, md, name, err));
	if (queue_is_there(q))
		return MR_OK;
	queue_done(q);
	return queue_missing(name, err);
}

enum mr_rc
queue_folder(const struct queue *q, const char *path, int *ret_fd, struct mr_error *err)
{
	return dir_make(q->fd, path, q->md->dir_mode, q->md->sync, ret_fd, err);
}

enum mr_rc
maildir_queue_make(struct mr_room *room, const char *queue, struct mr_error *err)
{
	static const char *const folders[] = { "ready", "delayed", "claimed", "done", "failed" };
	struct maildir *md = maildir_of(room);
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	const struct path path = folder_of(queue);

	if (!path.z[0])
		return mr_fail(err, MR_REFUSED, "'%.170s' cannot name a queue", queue);
	enum mr_rc rc = dir_make(md->root_fd, path.z, md->dir_mode, md->sync, &q.fd, err);
	q.md = md;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && rc == MR_OK; i++) {
		mr_auto(sys_close_fd) int fd = -1;
		rc = queue_folder(&q, folders[i], &fd, err);
	}
	return rc == MR_OK ? rc : mr_wrap(err, "make queue '%s'", queue);
}

enum mr_rc
queue_names(struct maildir *md, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names folders = { 0 };
	char name[NAME_LEN];

	TRY(shared_pass(md, names_in(md->root_fd, "queues", NULL, &folders, err), err, "queues"));
	for (size_t i = 0; i < folders.n; i++)
		if (name_unescape(folders.v[i], name))
			TRY(mr_got(names_add(ret, str_of(name)), err));
	return MR_OK;
}

/* ---- Names of work ----
 *
 *	ready, done, failed   1772706600.<id>.mr,A=1
 *	delayed               1772710200000.p2.1772706600.<id>.mr
 *	claimed               h.<token>.<deadline>.<attempt>.p2.1772706600.<id>.mr,A=1
 *
 * "p2" is the priority folder that it goes back to; otherwise only the message itself tells the priority. */

bool
work_parse(enum queue_state state, struct mr_str name, struct work_name *ret)
{
	struct work_name n = { 0 };
	struct file_name held = { 0 };
	struct mr_str rest = name;

	if (name.len == 0 || name.len >= NAME_LEN)
		return false;
	if (state == QUEUE_CLAIMED) {
		if (!name_parse_held(name, &held))
			return false;
		rest = (struct mr_str){ held.base.ptr, name.len - (size_t)(held.base.ptr - name.ptr) };
	} else if (state == QUEUE_DELAYED) {
		const char *dot = memchr(name.ptr, '.', name.len);
		uint64_t ms = 0;

		if (dot == NULL || !str_to_u64((struct mr_str){ name.ptr, (size_t)(dot - name.ptr) }, &ms) ||
		    ms > INT64_MAX)
			return false;
		n.not_before_ms = (int64_t)ms;
		rest = (struct mr_str){ dot + 1, name.len - (size_t)(dot + 1 - name.ptr) };
	}
	if (state == QUEUE_CLAIMED || state == QUEUE_DELAYED) {
		if (rest.len < 4 || rest.ptr[0] != 'p' || rest.ptr[1] < '0' ||
		    rest.ptr[1] >= (char)('0' + QUEUE_PRIORITIES) || rest.ptr[2] != '.')
			return false;
		n.p = (unsigned)(rest.ptr[1] - '0');
		rest = (struct mr_str){ rest.ptr + 3, rest.len - 3 };
	}
	if (!name_parse(rest, &n.file))
		return false;
	if (state == QUEUE_CLAIMED) {
		n.file.held = true;
		memcpy(n.file.token, held.token, sizeof(n.file.token));
		n.file.deadline_s = held.deadline_s;
		n.file.hold_attempt = held.hold_attempt;
	}
	*ret = n;
	return true;
}

bool
work_claimed_name(
    const char *token, int64_t deadline_s, unsigned attempt, unsigned p, const char *file, char ret[NAME_LEN])
{
	char with_p[NAME_LEN + 4];

	(void)snprintf(with_p, sizeof(with_p), "p%u.%.*s", p % QUEUE_PRIORITIES, NAME_LEN, file);
	return name_build_held(token, deadline_s, attempt, str_of(with_p), ret);
}

bool
work_delayed_name(int64_t not_before_ms, unsigned p, const char *file, char ret[NAME_LEN])
{
	int len = snprintf(ret, NAME_LEN, "%" PRId64 ".p%u.%s", not_before_ms, p % QUEUE_PRIORITIES, file);

	return len > 0 && len < NAME_LEN;
}

unsigned
work_attempt(const struct work_name *n)
{
	return n->file.held ? n->file.hold_attempt : n->file.attempt;
}

/* ---- Walking ---- */

struct walk {
	const struct queue *q;
	const char *id; /* or NULL: all */
	work_fn *fn;    /* NULL: remove the folder itself, if it is empty */
	void *ctx;
};

static enum mr_rc
walk_folder(const struct walk *w, struct work_at at, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	if (w->fn == NULL) {
		(void)sys_rmdir(w->q->fd, at.path);
		return MR_OK;
	}
	TRY(mr_unless(dir_open_names(w->q->fd, at.path, &fd, &names, err), MR_NOTFOUND, err));
	if (w->id == NULL)
		names_sort(&names);
	at.fd = fd;
	for (size_t i = 0; i < names.n; i++) {
		struct work_name n;

		text_join(at.name, sizeof(at.name), names.v[i], NULL);
		if (!work_parse(at.state, str_of(at.name), &n) || (w->id != NULL && strcmp(n.file.id, w->id) != 0))
			continue;
		at.p = at.state == QUEUE_READY ? at.p : n.p;
		TRY(w->fn(w->ctx, &at, &n, err));
	}
	return MR_OK;
}

/* The folders in at.path: buckets of a priority, hours of delayed work, months of done work. */
static enum mr_rc
walk_inside(const struct walk *w, struct work_at at, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	size_t len = strlen(at.path);
	char month[24] = "";

	if (w->id != NULL && at.state == QUEUE_DONE)
		name_month("", id_time_ms(w->id), month);
	TRY(names_in(w->q->fd, at.path, NULL, &names, err));
	for (size_t i = 0; i < names.n; i++) {
		if ((at.state == QUEUE_DELAYED && !work_is_hour(names.v[i], &(int64_t){ 0 })) ||
		    (month[0] && strcmp(names.v[i], month + 1) != 0))
			continue;
		(void)snprintf(at.path + len, sizeof(at.path) - len, "/%.38s", names.v[i]);
		TRY(walk_folder(w, at, err));
	}
	return MR_OK;
}

static enum mr_rc
walk(const struct walk *w, unsigned states, struct mr_error *err)
{
	static const struct work_at folders[] = {
		{ QUEUE_DELAYED, .path = "delayed" },
		{ QUEUE_READY, 0, .path = "ready/0" },
		{ QUEUE_READY, 1, .path = "ready/1" },
		{ QUEUE_READY, 2, .path = "ready/2" },
		{ QUEUE_READY, 3, .path = "ready/3" },
		{ QUEUE_CLAIMED, .path = "claimed" },
		{ QUEUE_DONE, .path = "done" },
		{ QUEUE_FAILED, .path = "failed" },
	};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		if (!(folders[i].state & states))
			continue;
		if (folders[i].state & (QUEUE_READY | QUEUE_DONE | QUEUE_DELAYED))
			TRY(walk_inside(w, folders[i], err));
		if (!(folders[i].state & (QUEUE_READY | QUEUE_DONE)))
			TRY(walk_folder(w, folders[i], err));
	}
	return MR_OK;
}

enum mr_rc
queue_each_work(const struct queue *q, unsigned states, work_fn *fn, void *ctx, struct mr_error *err)
{
	return walk(&(struct walk){ .q = q, .fn = fn, .ctx = ctx }, states, err);
}

/* ---- Finding one message ---- */

/* MR_EXISTS: found, which ends the walk. */
static enum mr_rc
take_found(void *ctx, const struct work_at *at, const struct work_name *n, struct mr_error *err)
{
	struct work_at *ret = ctx;
	int fd = -1;

	(void)n;
	TRY(dir_open(at->fd, ".", &fd, err));
	*ret = *at;
	ret->fd = fd;
	return MR_EXISTS;
}

/* The names of finished work follow from id and attempts, so a few lookups are enough, however large the folder is. */
static bool
find_over(const struct queue *q, const char *id, enum queue_state state, struct work_at *ret)
{
	char month[24], base[NAME_LEN];

	name_month("", id_time_ms(id), month);
	*ret = (struct work_at){ .state = state, .fd = -1 };
	text_join(ret->path, sizeof ret->path, state == QUEUE_DONE ? "done/" : "failed",
	    state == QUEUE_DONE ? month + 1 : "", NULL);
	name_for_id(id, base);
	if (dir_open(q->fd, ret->path, &ret->fd, IGNORED) != MR_OK)
		return false;
	for (unsigned attempt = 0; attempt < ATTEMPTS_TRIED; attempt++) {
		struct stat st;

		(void)snprintf(
		    ret->name, sizeof ret->name, attempt > 0 ? "%.*s,A=%u" : "%.*s", NAME_LEN - 16, base, attempt);
		if (sys_stat(ret->fd, ret->name, &st) == 0)
			return true;
	}
	work_at_done(ret);
	return false;
}

static int64_t
changed_ms(const struct queue *q, const char *path)
{
	struct stat st;

	if (sys_stat(q->fd, path, &st) < 0)
		return errno == ENOENT ? 0 : INT64_MAX; /* as if it had changed just now */
	return time_ms(st.st_mtim);
}

enum mr_rc
queue_find(const struct queue *q, const char *id, struct work_at *ret, struct mr_error *err)
{
	struct walk w = { .q = q, .id = id, .fn = take_found, .ctx = ret };
	bool settled = false;

	for (int pass = 0; pass < FIND_PASSES && !settled; pass++) {
		int64_t before_ms = changed_ms(q, "claimed"), now_ms = clock_now_ms();
		/* Claimed first: usually a caller asks for work that was claimed just before. */
		enum mr_rc rc = walk(&w, QUEUE_CLAIMED, err);

		if (rc == MR_OK && (find_over(q, id, QUEUE_FAILED, ret) || find_over(q, id, QUEUE_DONE, ret)))
			return MR_OK;
		if (rc == MR_OK)
			rc = walk(&w, QUEUE_ANY, err);
		if (rc != MR_OK)
			return rc == MR_EXISTS ? MR_OK : rc;
		settled = changed_ms(q, "claimed") == before_ms && before_ms < now_ms - STAMP_MS;
	}
	return mr_fail(err, MR_NOTFOUND, "no message '%s' in queue '%s'", id, q->name);
}

enum mr_rc
queue_has(struct maildir *md, const char *queue, const char *id, bool *ret, int *ret_fd, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	mr_auto(work_at_done) struct work_at at = WORK_AT_INIT;

	TRY(queue_open(&q, md, queue, err));
	enum mr_rc rc = queue_find(&q, id, &at, err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	*ret = rc == MR_OK;
	*ret_fd = sys_take_fd(&at.fd);
	return MR_OK;
}

static enum mr_rc
read_found(struct mr_room *room, const struct queue *q, const struct work_at *at, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct work_name n;
	struct stat st;

	TRY(message_open(at->fd, at->name, &fd, &st, err));
	if (!work_parse(at->state, str_of(at->name), &n))
		return mr_fail(err, MR_CORRUPT, "'%s' is not the name of a piece of work", at->name);
	struct mr_message msg = message_blank(n.file.id);
	struct path path = path_of("queues/", q->name, "/", at->path, "/", at->name, NULL);

	msg.attempt = work_attempt(&n);
	if (at->state == QUEUE_CLAIMED) {
		msg.folder = MR_HELD;
		memcpy(msg.token, n.file.token, sizeof(msg.token));
	}
	if (message_read(room, fd, &st, depth, path.z, &text, &msg, err) != MR_OK)
		return mr_wrap(err, "'%s'", at->name);
	*ret = msg;
	return MR_OK;
}

enum mr_rc
maildir_queue_fetch(struct mr_room *room, const char *queue, const char *id, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;

	TRY(queue_open(&q, maildir_of(room), queue, err));
	for (int tries = 0; tries < FETCH_TRIES; tries++) {
		mr_auto(work_at_done) struct work_at at = WORK_AT_INIT;

		TRY(queue_find(&q, id, &at, err));
		enum mr_rc rc = read_found(room, &q, &at, depth == SCAN_RAW ? depth : SCAN_BODIES, ret, err);
		if (rc == MR_REFUSED) /* a planted link or folder, or larger than any mail: it can never be read */
			return err->code = MR_CORRUPT;
		if (rc != MR_NOTFOUND) /* else it moved between finding and reading: find it again */
			return rc;
	}
	return mr_fail(err, MR_BUSY, "message '%s' in queue '%s' keeps being moved", id, queue);
}

/* ---- Listing all work ---- */

struct listing_all {
	struct maildir *md;
	struct mr_names agents; /* of the room; read when work that is reserved for one of them is found */
	const char *queue;
	bool (*fn)(void *ctx, const struct queue_item *item);
	void *ctx;
};

bool
queue_only_for(struct maildir *md, struct mr_names *agents, const struct released *r, char ret[MR_ADDRESS_MAX + 1])
{
	char hash[NAME_WHO_LEN + 1];

	if (r->only_for[0] == '\0' || clock_now_ms() >= r->only_until_s * 1000)
		return false;
	(void)snprintf(ret, MR_ADDRESS_MAX + 1, "?");
	if (agents->n == 0 && agents_collect(md, true, agents, IGNORED) != MR_OK)
		return true;
	for (size_t i = 0; i < agents->n; i++) {
		name_who(agents->v[i], hash);
		if (strcmp(hash, r->only_for) == 0) {
			(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", agents->v[i]);
			return true;
		}
	}
	ret[0] = '\0';
	return false;
}

/* MR_EMPTY: fn returned false. */
static enum mr_rc
list_work(void *ctx, const struct work_at *at, const struct work_name *n, struct mr_error *err)
{
	static const enum mr_priority priorities[QUEUE_PRIORITIES] = { MR_URGENT, MR_HIGH, MR_NORMAL, MR_LOW };
	struct listing_all *all = ctx;
	bool over = at->state == QUEUE_DONE || at->state == QUEUE_FAILED;
	struct queue_item item = { .state = at->state,
		.priority = over ? MR_NORMAL /* only the message tells */ : priorities[at->p],
		.attempt = work_attempt(n),
		.not_before_ms = n->not_before_ms };
	struct claim claim = { 0 };
	struct released r;

	(void)err;
	memcpy(item.id, n->file.id, sizeof(item.id));
	if (at->state == QUEUE_READY && name_released(&n->file, &r)) {
		item.released_ms = r.at_ms;
		if (queue_only_for(all->md, &all->agents, &r, item.only_for))
			item.only_until_ms = r.only_until_s * 1000;
	}
	if (at->state == QUEUE_CLAIMED) {
		/* Lost in a power cut: the holder is unknown. */
		(void)token_read(all->md, n->file.token, &claim, IGNORED);
		claim_from_name(&n->file, &claim);
		(void)snprintf(claim.box, sizeof(claim.box), "queue:%s", all->queue);
		claim.over = token_is_over(all->md, &n->file);
		item.claim = &claim;
	}
	return all->fn(all->ctx, &item) ? MR_OK : MR_EMPTY;
}

enum mr_rc
queue_each(struct maildir *md, const char *queue, unsigned states, bool (*fn)(void *ctx, const struct queue_item *item),
    void *ctx, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	struct listing_all all = { .md = md, .queue = queue, .fn = fn, .ctx = ctx };

	TRY(queue_open(&q, md, queue, err));
	enum mr_rc rc = queue_each_work(&q, states, list_work, &all, err);
	mr_names_done(&all.agents);
	return rc == MR_EMPTY ? MR_OK : rc;
}

/* ---- Removing ---- */

struct clearing {
	struct queue *q;
	size_t moved;
};

static enum mr_rc
bury(void *ctx, const struct work_at *at, const struct work_name *n, struct mr_error *err)
{
	struct clearing *c = ctx;
	struct file_name file = n->file;

	file.released = (struct mr_str){ 0 };
	enum mr_rc rc = mark_to_dead(c->q->md, at->fd, at->name, &file, work_attempt(n), err);
	if (rc != MR_OK) /* not found: settled just now, or moving from one folder to the next */
		return rc == MR_NOTFOUND ? MR_OK : rc;
	c->moved++;
	if (file.held && file.deadline_s > 0)
		token_drop(c->q->md, file.token);
	return MR_OK;
}

static enum mr_rc
bury_all(struct queue *q, unsigned states, size_t *ret, struct mr_error *err)
{
	struct clearing c = { .q = q };
	enum mr_rc rc = MR_OK;

	for (int round = 0; round < REMOVE_ROUNDS && rc == MR_OK; round++) {
		size_t before = c.moved;

		rc = queue_each_work(q, states, bury, &c, err);
		if (c.moved == before)
			break;
	}
	*ret = c.moved;
	return rc == MR_OK ? commit_flush(q->md, err) : rc;
}

static enum mr_rc
refuse_work(void *ctx, const struct work_at *at, const struct work_name *n, struct mr_error *err)
{
	(void)n;
	return mr_fail(err, MR_REFUSED,
	    "queue '%s' has work in '%s'\nfinish it, or remove the queue with --force, which moves it to the dead letters",
	    ((struct queue *)ctx)->name, at->path);
}

/* rmdir fails for a folder that is not empty. */
static void
remove_folders(struct queue *q)
{
	static const char *const ready[QUEUE_PRIORITIES] = { "ready/0", "ready/1", "ready/2", "ready/3" };
	mr_auto(sys_close_fd) int lock_fd = -1;
	struct stat st;

	/* A process that makes the queue again holds this lock; it must not lose its new folders to us. */
	if (lock_take(q->md->root_fd, "queues/.lock", q->md->file_mode, LOCK_WAIT_MS, &lock_fd, IGNORED) != MR_OK ||
	    queue_is_there(q))
		return;
	(void)walk(&(struct walk){ .q = q }, QUEUE_ANY, IGNORED);
	for (unsigned p = 0; p < QUEUE_PRIORITIES; p++) {
		(void)sys_unlink(q->fd, path_of(ready[p], "/.low", NULL).z);
		(void)sys_unlink(q->fd, path_of(ready[p], "/.high", NULL).z);
		(void)sys_rmdir(q->fd, ready[p]);
	}
	(void)sys_rmdir(q->fd, "ready");
	(void)sys_rmdir(q->fd, "done");
	if (sys_stat(q->fd, "done", &st) < 0) /* nothing is left that the past belongs to */
		past_remove(q, NULL);
	(void)sys_unlink(q->fd, ".lock");
	(void)sys_rmdir(q->md->root_fd, folder_of(q->name).z);
}

enum mr_rc
maildir_queue_remove(struct mr_room *room, const char *queue, bool to_dead, size_t *ret_dead, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	mr_auto(buf_done) struct buf settings = BUF_INIT;
	struct mr_error late = { 0 };
	size_t dead = 0, failed = 0;

	TRY(queue_open_any(&q, maildir_of(room), queue, err));
	if (!to_dead)
		TRY(queue_each_work(&q, QUEUE_WORK, refuse_work, &q, err));
	enum mr_rc rc = maildir_record_get(room, "queue", "", queue, &settings, err);
	if (rc == MR_OK)
		rc = maildir_record_drop(room, "queue", "", queue, err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	if (to_dead) {
		rc = bury_all(&q, QUEUE_WORK, &dead, err);
	} else if (queue_each_work(&q, QUEUE_WORK, refuse_work, &q, err) != MR_OK) {
		/* Work came in between the check and the removal: restore the queue. */
		if (settings.len > 0 && file_publish(q.fd, q.fd, "settings", buf_str(&settings), q.md->file_mode,
					    PUBLISH_FULL, &late) != MR_OK)
			(void)mr_hint(
			    err, "its settings could not be put back (%.60s): make the queue again", late.message);
		return err->code;
	} else {
		rc = MR_OK;
	}
	if (rc == MR_OK)
		rc = bury_all(&q, QUEUE_FAILED, &failed, err);
	*ret_dead = dead;
	if (rc == MR_OK)
		remove_folders(&q);
	return rc;
}
