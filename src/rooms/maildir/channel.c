/* SPDX-License-Identifier: MIT */
/*
 * channel.c - channels: folders of numbered posts.
 *
 *	channels/<name>/posts/<number>   twelve digits, so that ls sorts; the first is 000000000001
 *	channels/<name>/.ends            "<first> <last>\n": a guess that is checked before it is used, and the lock
 *	channels/<name>/.floor           the last number, once its post was removed too
 *
 * Why numbers are never skipped and never used twice:
 *
 * - A post takes last + 1 by link(2), and the next number if another process was faster. A number is never given back,
 *   so there are no holes, and a reader that sees number n can see all earlier posts that are still kept.
 * - Retention removes posts from the low end only, one after the other. A poster that found the end, was stopped, and
 *   went on after all posts it saw were removed would use a number twice. So posters hold a shared lock of .ends and
 *   retention an exclusive one: posters never wait for each other, and a stopped poster delays only retention.
 * - Before the newest post is removed, its number is written to .floor, durably.
 * - Purging a post leaves an empty file, so that its number stays taken.
 *
 * A reader shows only posts whose numbers survive a power cut (it syncs the folder once for all that it found).
 * Otherwise the next post could get the same number, and the reader's cursor would skip it.
 */
#include "rooms/maildir/maildir.h"
#include <inttypes.h>
#include <sys/file.h>

#define ENDS_FILE ".ends"
#define FLOOR_FILE ".floor"
#define POST_DIGITS 12
#define REMOVE_TRIES 5
#define POSTS_NEAR 4

/* ---- Opening ---- */

enum mr_rc
channel_name_check(const char *name, struct mr_error *err)
{
	size_t n = strlen(name);

	/* Allows a little more than the office does; what matters here is that the name stays in its folder. */
	if (n >= 1 && n <= 80 && name[0] != '.' &&
	    strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == n)
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "'%.80s' cannot name a channel", name);
}

void
channel_done(struct channel *c)
{
	sys_close_fd(&c->fd);
	sys_close_fd(&c->posts_fd);
	sys_close_fd(&c->lock_fd);
	*c = CHANNEL_INIT;
}

/* MR_NOTFOUND: the channel was removed while we waited. A lock on an unlinked file excludes nobody. */
static enum mr_rc
take_lock(struct channel *c, int how, struct mr_error *err)
{
	struct stat ours, there = { 0 };

	c->lock_fd = sys_open(c->fd, ENDS_FILE, O_RDWR | O_CREAT | O_NONBLOCK, c->md->file_mode);
	if (c->lock_fd < 0)
		return errno == ENOENT ? mr_fail(err, MR_NOTFOUND, "no lock")
				       : mr_fail_errno(err, "cannot open the lock of channel '%s'", c->name);
	if (lock_within(c->lock_fd, how, LOCK_WAIT_MS) < 0)
		return errno == EWOULDBLOCK ? mr_fail(err, MR_BUSY,
						  "channel '%s' is locked by another process\n"
						  "try again in a moment; the lock ends with that process",
						  c->name)
					    : mr_fail_errno(err, "cannot lock channel '%s'", c->name);
	if (sys_stat_fd(c->lock_fd, &ours) < 0 || (sys_stat(c->fd, ENDS_FILE, &there) < 0 && errno != ENOENT))
		return mr_fail_errno(err, "cannot look at the lock of channel '%s'", c->name);
	if (ours.st_dev != there.st_dev || ours.st_ino != there.st_ino)
		return mr_fail(err, MR_NOTFOUND, "no lock");
	return MR_OK;
}

enum mr_rc
channel_open(struct channel *c, struct maildir *md, const char *name, enum channel_lock lock, struct mr_error *err)
{
	mr_auto(channel_done) struct channel opened = CHANNEL_INIT;

	opened.md = md;
	opened.name = name;
	if (channel_name_check(name, err) != MR_OK)
		return mr_fail(err, MR_NOTFOUND, "no channel '%s'", name);
	enum mr_rc rc = dir_open(md->root_fd, path_of("channels/", name, NULL).z, &opened.fd, err);

	if (rc == MR_OK && lock != CHANNEL_UNLOCKED)
		rc = take_lock(&opened, lock == CHANNEL_ALONE ? LOCK_EX : LOCK_SH, err);
	/* Opened after the lock, because a removal renames posts/ away while it holds the exclusive lock. */
	if (rc == MR_OK)
		rc = dir_open(opened.fd, "posts", &opened.posts_fd, err);
	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND, "no channel '%s'", name);
	if (rc != MR_OK)
		return mr_wrap(err, "channel '%s'", name);
	*c = opened;
	opened = CHANNEL_INIT;
	return MR_OK;
}

enum mr_rc
channel_open_posts(struct maildir *md, const char *channel, int *ret_fd, struct mr_error *err)
{
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;

	TRY(channel_open(&c, md, channel, CHANNEL_UNLOCKED, err));
	*ret_fd = sys_take_fd(&c.posts_fd);
	return MR_OK;
}

/* ---- Making and removing ---- */

enum mr_rc
maildir_channel_make(struct mr_room *room, const char *channel, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	mr_auto(sys_close_fd) int fd = -1;

	TRY(channel_name_check(channel, err));
	if (dir_make(md->root_fd, path_of("channels/", channel, "/posts", NULL).z, md->dir_mode, md->sync, &fd, err) !=
	    MR_OK)
		return mr_wrap(err, "cannot make channel '%s'", channel);
	return MR_OK;
}

enum mr_rc
maildir_channel_remove(struct mr_room *room, const char *channel, struct mr_error *err)
{
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct maildir *md = maildir_of(room);
	char gone[32] = ".gone.";
	struct stat st;
	bool left = false;

	TRY(channel_open(&c, md, channel, CHANNEL_ALONE, err));
	/* One rename, so that after a crash the channel exists or not. The office keeps its settings. */
	random_hex(gone + strlen(gone), 12);
	if (sys_rename_new(c.fd, "posts", c.fd, gone) < 0)
		return mr_fail_errno(err, "cannot remove channel '%s'", channel);
	if (sys_unlink(c.fd, FLOOR_FILE) < 0 && errno != ENOENT)
		return mr_fail_errno(err, "cannot remove channel '%s'", channel);
	if (md->sync && sys_fsync(c.fd) < 0)
		return mr_fail_errno(err, "cannot make the removal of channel '%s' durable", channel);
	TRY(dir_names(c.fd, &names, err));
	for (size_t i = 0; i < names.n; i++) {
		if (!str_starts(str_of(names.v[i]), ".gone."))
			continue;
		/* Reading a folder while files are removed may miss some, so repeat until it is gone. */
		for (int tries = 0; tries < REMOVE_TRIES && sys_stat(c.fd, names.v[i], &st) == 0; tries++)
			dir_remove_tree(c.fd, names.v[i]);
		left |= sys_stat(c.fd, names.v[i], &st) == 0;
	}
	if (left)
		return mr_fail(err, MR_IO,
		    "channel '%s' is removed, but not all its files\nwhat is left in 'channels/%s' can be removed by hand",
		    channel, channel);
	(void)sys_unlink(c.fd, ENDS_FILE);
	(void)sys_rmdir(md->root_fd, path_of("channels/", channel, NULL).z); /* unless the settings are still there */
	return MR_OK;
}

/* ---- Numbers ---- */

static struct path
post_name(uint64_t number)
{
	char digits[21];

	(void)text_number(digits, number, POST_DIGITS);
	return path_of(digits, NULL);
}

static bool
post_exists(const struct channel *c, uint64_t number)
{
	struct stat st;

	return sys_stat(c->posts_fd, post_name(number).z, &st) == 0;
}

/* 0: not a post. "7" is not how we write 7. */
static uint64_t
number_of(const char *name)
{
	uint64_t number = 0;

	return str_to_u64(str_of(name), &number) && strcmp(post_name(number).z, name) == 0 ? number : 0;
}

enum mr_rc
channel_posts(const struct channel *c, uint64_t from, struct posts *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	*ret = (struct posts){ 0 };
	if (dir_names(c->posts_fd, &names, err) != MR_OK)
		return mr_wrap(err, "channel '%s'", c->name);
	for (size_t i = 0; i < names.n; i++) {
		uint64_t number = number_of(names.v[i]);

		if (number == 0)
			continue;
		ret->n++;
		ret->first = ret->first == 0 || number < ret->first ? number : ret->first;
		ret->last = number > ret->last ? number : ret->last;
		if (number >= from && (ret->next == 0 || number < ret->next))
			ret->next = number;
	}
	return MR_OK;
}

struct ends {
	uint64_t first, last; /* 0: not known */
};

static struct ends
guess_ends(const struct channel *c)
{
	mr_auto(sys_close_fd) int own_fd = -1;
	struct ends guess = { 0 };
	char text[POST_DIGITS * 2 + 1];
	int fd = c->lock_fd;

	if (fd < 0)
		fd = own_fd = sys_open(c->fd, ENDS_FILE, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0 || sys_pread(fd, text, sizeof text, 0) != (ssize_t)sizeof text ||
	    !str_to_u64((struct mr_str){ text, POST_DIGITS }, &guess.first) ||
	    !str_to_u64((struct mr_str){ text + POST_DIGITS + 1, POST_DIGITS }, &guess.last))
		return (struct ends){ 0 };
	return guess;
}

/* 0: keep the old value. Not locked against other posters, not synced, and allowed to fail, because every reader checks
 * it. */
static void
note_ends(const struct channel *c, uint64_t first, uint64_t last)
{
	struct ends ends = guess_ends(c);
	char text[64];

	int n = snprintf(text, sizeof text, "%0*" PRIu64 " %0*" PRIu64 "\n", POST_DIGITS, first ? first : ends.first,
	    POST_DIGITS, last ? last : ends.last);

	if (n == 2 * POST_DIGITS + 2)
		(void)sys_pwrite_all(c->lock_fd, text, (size_t)n, 0);
}

static enum mr_rc
read_floor(const struct channel *c, uint64_t *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	enum mr_rc rc = file_read(c->fd, FLOOR_FILE, 64, &text, err);
	struct mr_str digits = buf_str(&text);

	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : mr_wrap(err, "channel '%s'", c->name);
	while (digits.len > 0 && digits.ptr[digits.len - 1] == '\n')
		digits.len--;
	if (str_to_u64(digits, ret))
		return MR_OK;
	return mr_fail(err, MR_CORRUPT,
	    "'channels/%s/%s' is not a number\nwrite the number of the channel's newest post into it, so that none comes twice",
	    c->name, FLOOR_FILE);
}

/* The highest number that was ever taken. Under a lock it stays true although posts are removed. */
static enum mr_rc
find_last(const struct channel *c, uint64_t *ret, struct mr_error *err)
{
	uint64_t last = guess_ends(c).last, floor = 0;
	struct posts posts;

	/* If that post exists, so do all up to the newest, because posts are removed from the other end. */
	if (last == 0 || !post_exists(c, last)) {
		TRY(read_floor(c, &floor, err));
		TRY(channel_posts(c, 0, &posts, err));
		last = posts.last > floor ? posts.last : floor;
	}
	while (post_exists(c, last + 1))
		last++;
	*ret = last;
	return MR_OK;
}

enum mr_rc
maildir_channel_range(struct mr_room *room, const char *channel, uint64_t *ret_first, uint64_t *ret_last,
    size_t *ret_count, struct mr_error *err)
{
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;
	struct posts posts = { 0 };

	TRY(channel_open(&c, maildir_of(room), channel, CHANNEL_UNLOCKED, err));
	struct ends ends = guess_ends(&c);

	if (ends.first > 0 && ends.last >= ends.first && post_exists(&c, ends.first) && post_exists(&c, ends.last) &&
	    (ends.first == 1 || !post_exists(&c, ends.first - 1))) {
		while (post_exists(&c, ends.last + 1))
			ends.last++;
		posts = (struct posts){ ends.first, ends.last, .n = (size_t)(ends.last - ends.first + 1) };
	} else {
		TRY(channel_posts(&c, 0, &posts, err));
	}
	*ret_first = posts.first;
	*ret_last = posts.last;
	*ret_count = posts.n;
	return MR_OK;
}

/* ---- Retention ---- */

enum mr_rc
channel_drop(struct mr_room *room, const char *channel, uint64_t below, size_t *ret_removed, struct mr_error *err)
{
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;
	uint64_t last = 0, number;
	size_t removed = 0;

	TRY(channel_open(&c, maildir_of(room), channel, CHANNEL_ALONE, err));
	TRY(find_last(&c, &last, err));
	/* Numbers above the floor are never removed, whatever the caller asked, because they would be used again. */
	if (below > last && last > 0)
		TRY(file_replace(
		    c.fd, FLOOR_FILE, str_of(path_of(post_name(last).z, "\n", NULL).z), c.md->file_mode, err));
	below = below > last ? last + 1 : below;
	uint64_t first = guess_ends(&c).first;

	/* Upwards from the first. Not synced: posts that a power cut brings back are removed by the next drop. */
	if (first == 0 || !post_exists(&c, first) || (first > 1 && post_exists(&c, first - 1)))
		first = 1;
	for (number = first;; number++) {
		struct posts posts;

		if (!post_exists(&c, number)) { /* read the folder only if a post is missing */
			TRY(channel_posts(&c, number, &posts, err));
			number = posts.next;
		}
		if (number == 0 || number >= below)
			break;
		if (sys_unlink(c.posts_fd, post_name(number).z) < 0)
			return mr_fail_errno(err, "cannot remove post %" PRIu64 " of channel '%s'", number, channel);
		removed++;
	}
	if (number > 0)
		note_ends(&c, number, 0);
	*ret_removed = removed;
	return MR_OK;
}

/* Retention must not run: it might have removed this number and gone on. */
enum mr_rc
channel_blank_post(struct maildir *md, const char *channel, uint64_t number, size_t *removed, struct mr_error *err)
{
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;

	TRY(mr_unless(channel_open(&c, md, channel, CHANNEL_ALONE, err), MR_NOTFOUND, err));
	if (c.fd < 0 || !post_exists(&c, number))
		return MR_OK;
	TRY(file_replace(c.posts_fd, post_name(number).z, STR(""), md->message_mode, err));
	++*removed;
	return MR_OK;
}

/* ---- Posting ---- */

/* MR_EXISTS: another process was faster. Once the name exists nothing fails any more, because the name cannot be taken
 * back: the number may have been read, and a later post may follow it. `copy` is used where a link is not possible. */
static enum mr_rc
take_number(
    const struct channel *c, int from_fd, const char *from, struct staged *copy, uint64_t number, struct mr_error *err)
{
	const struct path name = post_name(number);

	if (copy->fd < 0) {
		if (sys_link(from_fd, from, c->posts_fd, name.z) == 0)
			return MR_OK;
		if (errno == EEXIST)
			return file_is_same(from_fd, from, c->posts_fd, name.z)
				   ? MR_OK
				   : mr_fail(err, MR_EXISTS, "post '%s' is taken", name.z);
		if (!deliver_needs_copy(errno))
			return mr_fail_errno(err, "cannot publish '%s'", name.z);
		TRY(stage_open(copy, c->posts_fd, c->fd, c->md->message_mode, err));
		TRY(stage_copy(copy, from_fd, from, err));
		if (c->md->sync)
			TRY(stage_sync(copy, err));
	}
	TRY(stage_link(copy, c->posts_fd, name.z, err));
	/* Its bytes were flushed; this flushes its link count, for a file system without a journal. A disk error here
	 * also fails the caller, which syncs the folder. */
	if (c->md->sync)
		(void)sys_fsync(copy->fd);
	return MR_OK;
}

enum mr_rc
channel_give(struct mr_room *room, const char *channel, int from_fd, const char *from, const char *id, int *ret_fd,
    struct mr_error *err)
{
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;
	mr_auto(stage_done) struct staged copy = STAGED_INIT;
	uint64_t number = 0;
	struct stat st;

	if (sys_stat(from_fd, from, &st) < 0)
		return mr_fail_errno(err, "cannot look at message '%s'", id);
	TRY(channel_open(&c, maildir_of(room), channel, CHANNEL_SHARED, err));
	enum mr_rc rc = find_last(&c, &number, err);

	if (rc == MR_OK) {
		do
			rc = take_number(&c, from_fd, from, &copy, ++number, err);
		while (rc == MR_EXISTS);
	}
	if (rc != MR_OK)
		return mr_wrap(err, "cannot post message '%s' in channel '%s'", id, channel);
	*err = (struct mr_error){ 0 }; /* of numbers that were taken */
	note_ends(&c, number == 1 || !post_exists(&c, number - 1) ? number : 0, number);
	*ret_fd = sys_take_fd(&c.posts_fd);
	return MR_OK;
}

/* Was it posted before a crash? A copy has the same bytes, which contain the id. */
enum mr_rc
channel_has(struct maildir *md, const char *channel, int from_fd, const char *from, bool *ret, struct mr_error *err)
{
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct stat ours, there;
	bool found = false;

	if (sys_stat(from_fd, from, &ours) < 0)
		return mr_fail_errno(err, "cannot look at message '%s'", from);
	/* Under the lock retention cannot remove the post, and no names vanish while the folder is read. */
	TRY(channel_open(&c, md, channel, CHANNEL_SHARED, err));
	if (dir_names(c.posts_fd, &names, err) != MR_OK)
		return mr_wrap(err, "channel '%s'", channel);
	names_sort(&names);
	for (size_t i = names.n; i > 0 && !found; i--) {
		const char *name = names.v[i - 1];
		if (number_of(name) == 0 || sys_stat(c.posts_fd, name, &there) < 0)
			continue;
		found = there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
		if (found || !S_ISREG(there.st_mode) || there.st_size != ours.st_size)
			continue;
		if (file_equals(from_fd, from, c.posts_fd, name, &found, err) != MR_OK)
			return mr_wrap(err, "channel '%s'", channel);
	}
	*ret = found;
	return MR_OK;
}

/* ---- Reading from a number on ---- */

/*
 * A scan goes from number to number by opening the next one, so that it costs only what is new, and a post that arrives
 * meanwhile comes in its turn. The folder is read only if the next number is missing and may not be the end. A post
 * that is unreadable or wrongly missing does not stop the others; the scan ends with the first such error.
 */
struct scanning {
	struct mr_room *room;
	struct channel *c;
	enum scan_depth depth;
	bool (*fn)(void *ctx, uint64_t number, const struct mr_message *msg);
	void *ctx;
	struct buf text;
	uint64_t durable;        /* numbers up to this one survive a power cut */
	bool stopped;            /* fn returned false */
	struct mr_error trouble; /* the first */
};

static void
note_trouble(struct scanning *s, const struct mr_error *err)
{
	if (s->trouble.code == MR_OK)
		s->trouble = *err;
}

/* MR_NOTFOUND: no such post. */
static enum mr_rc
show(struct scanning *s, uint64_t number, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	const struct path name = post_name(number);
	const struct path path = path_of("channels/", s->c->name, "/posts/", name.z, NULL);
	struct stat st;
	enum mr_rc rc = message_open(s->c->posts_fd, name.z, &fd, &st, err);

	if (rc == MR_OK && st.st_size == 0)
		return MR_OK; /* purged */
	if (rc == MR_REFUSED)
		err->code = rc = MR_IO;
	if (rc == MR_OK)
		rc = message_read(s->room, fd, &st, s->depth, path.z, &s->text, &msg, err);
	if (rc != MR_OK)
		return mr_wrap(err, "post %" PRIu64, number);
	if (msg.id[0] == '\0')
		id_from_name((int64_t)st.st_mtim.tv_sec * 1000, str_of(name.z), msg.id);
	/* A reader continues after the number that it was shown, so that number must not be lost to a power cut and
	 * given to another post. A disk error here also reaches the poster, which waits for the same. */
	if (s->c->md->sync && number > s->durable) {
		uint64_t last = guess_ends(s->c).last;

		s->durable = last > number && post_exists(s->c, last) ? last : number;
		(void)sys_fsync(s->c->posts_fd);
	}
	s->stopped = !s->fn(s->ctx, number, &msg);
	return MR_OK;
}

/* `number` is missing. *ret: where to go on, 0: that was the end. */
static enum mr_rc
go_on(struct scanning *s, uint64_t number, uint64_t *ret, struct mr_error *err)
{
	struct ends ends = guess_ends(s->c);
	struct mr_error missing = { 0 };
	struct posts posts;

	*ret = 0;
	/* The post before it exists, so retention has not passed us, and nobody has noted a later one. */
	if (number > 1 && ends.last < number && post_exists(s->c, number - 1))
		return MR_OK;
	/* Retention noted how far it went. */
	if (ends.first > number && post_exists(s->c, ends.first) && !post_exists(s->c, ends.first - 1)) {
		*ret = ends.first;
		return MR_OK;
	}
	TRY(channel_posts(s->c, number, &posts, err));
	*ret = posts.next;
	/* The end; or retention removed those before; or it was posted just now. */
	if (posts.next == 0 || posts.next == posts.first || posts.next == number)
		return MR_OK;
	/* Lower and higher posts exist, but not this one. Was it posted while the folder was read, or removed by
	 * retention since then? Retention removes the lowest first, so if the lowest post is still there, this one
	 * should be, too. */
	if (post_exists(s->c, number) || !post_exists(s->c, posts.first)) {
		*ret = number;
		return MR_OK;
	}
	(void)mr_fail(&missing, MR_CORRUPT,
	    "post %" PRIu64 " is missing between others\n"
	    "a file was removed by hand; use retention, which removes the oldest first",
	    number);
	note_trouble(s, &missing);
	return MR_OK;
}

static enum mr_rc
walk(struct scanning *s, uint64_t number, struct mr_error *err)
{
	while (!s->stopped && number > 0) {
		struct mr_error failure = { 0 };
		enum mr_rc rc = show(s, number, &failure);

		if (rc == MR_NOMEM)
			return mr_nomem(err);
		if (rc == MR_NOTFOUND) {
			TRY(go_on(s, number, &number, err));
			continue;
		}
		if (rc != MR_OK)
			note_trouble(s, &failure);
		/* If no post can be opened any more, no number would ever be the end. */
		if (rc != MR_OK && rc != MR_CORRUPT && !post_exists(s->c, number))
			break;
		number++;
	}
	return MR_OK;
}

enum mr_rc
maildir_channel_scan(struct mr_room *room, const char *channel, uint64_t after, enum scan_depth depth,
    bool (*fn)(void *ctx, uint64_t number, const struct mr_message *msg), void *ctx, struct mr_error *err)
{
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;
	struct scanning s = { .room = room, .c = &c, .depth = depth, .fn = fn, .ctx = ctx, .text = BUF_INIT };

	if (after == UINT64_MAX)
		return MR_OK;
	TRY(channel_open(&c, maildir_of(room), channel, CHANNEL_UNLOCKED, err));
	enum mr_rc rc = walk(&s, after + 1, err);

	buf_done(&s.text);
	if (rc == MR_OK && s.trouble.code != MR_OK) {
		*err = s.trouble;
		rc = err->code;
	}
	return rc == MR_OK ? rc : mr_wrap(err, "channel '%s'", channel);
}

struct id_search {
	const char *id;
	uint64_t number; /* of the post with that id; 0: not found yet */
	int order;       /* of the last post that was compared: < 0 is older */
};

static bool
match_id(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct id_search *s = ctx;

	s->order = strcmp(msg->id, s->id);
	if (s->order == 0)
		s->number = number;
	return s->number == 0;
}

/* Posts are nearly in the order of their ids, so search near the place where the id belongs. */
static void
find_near(struct scanning *s, struct id_search *search, struct ends ends)
{
	uint64_t low = ends.first, high = ends.last;

	while (low < high && search->number == 0) {
		uint64_t middle = low + (high - low) / 2;

		search->order = -1; /* treat a purged or unreadable post as older */
		(void)show(s, middle, IGNORED);
		if (search->order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	uint64_t end = low + POSTS_NEAR;

	for (low = low > POSTS_NEAR ? low - POSTS_NEAR : 1; low <= end && search->number == 0; low++)
		if (show(s, low, IGNORED) == MR_NOTFOUND && low > ends.last)
			break;
}

enum mr_rc
channel_find(struct mr_room *room, const char *channel, const char *id, bool all, uint64_t *ret, struct mr_error *err)
{
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;
	struct id_search search = { .id = id };
	struct scanning s = { .room = room,
		.c = &c,
		.depth = SCAN_HEADERS,
		.fn = match_id,
		.ctx = &search,
		.text = BUF_INIT,
		.durable = UINT64_MAX /* no reader continues after these */ };

	TRY(channel_open(&c, maildir_of(room), channel, CHANNEL_UNLOCKED, err));
	struct ends ends = guess_ends(&c);

	find_near(&s, &search, ends);
	buf_done(&s.text);
	enum mr_rc rc = search.number == 0 && (all || ends.last == 0)
			    ? maildir_channel_scan(room, channel, 0, SCAN_HEADERS, match_id, &search, err)
			    : MR_OK;

	*ret = search.number;
	return search.number > 0 ? MR_OK : rc;
}
