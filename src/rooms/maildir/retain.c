/* SPDX-License-Identifier: MIT */
/*
 * retain.c - retention: removes mail that the room's settings do not keep.
 *
 *	Keep-Archive:   agents/<address>/.Archive.<month>/cur     each agent's archive by itself; a packed month
 *	                                                          (pack.c) goes as a whole, when all of it may go
 *	Keep-Sent:      agents/<address>/.Sent[.<month>]/cur      ... each agent's copies of what it sent; by number or
 *	                                                          size, those of a removed agent go after 90 days, too
 *	Keep-Done:      queues/<name>/done/<month>                each queue by itself, with the past of that work
 *	Keep-Dead:      dead/{new,cur}, queues/<name>/failed      ... each by itself
 *
 * It also removes old bookkeeping (over.c), independent of the settings.
 *
 * No command runs only for this: one that delivers or makes marks durable removes some files (at most SLICE). A pass
 * goes over all mailboxes and queues; records/kept/_/look stores how far it came, and its mtime is an hour before the
 * next look is due. So between two looks it costs a command one stat. A room gets that record with the first setting,
 * or with the first file that only this module removes. The lock of that record lets one command at a time do it; the
 * others do not wait.
 *
 * Never removed:
 *	- mail in an inbox or held, unread and pinned mail; the folders above never hold claimed mail;
 *	- mail that was sent, written, or moved to its folder within a day. The ctime shows a move. Removing another
 *	  link changes it, too, so it does not count for a file with more than two links: each removal would protect
 *	  the other copies for another day;
 *	- messages of an unfinished fan-out (they would be delivered again) or purge, and questions whose answer is due
 *	  (send --by);
 *	- anything while the clock is in doubt: it is earlier than the room, or a file is from the future. A look
 *	  after a month without one, and the first look after a setting changed, removes nothing for a day: the clock
 *	  may have been set forward, and a mistyped setting can still be corrected.
 *
 * Whole old months are removed first; an empty folder is removed a day later, by rmdir, which fails if mail came in
 * meanwhile. Removals are not synced: files that a power cut brings back are removed again. Before a removal a line for
 * its month is recorded (room.h, ROOM_KEPT), so that `why` can report it; the newest MONTHS_NOTED lines are kept.
 */
#include "rooms/maildir/maildir.h"
#include <dirent.h>

#define PASS_EVERY_MS ((int64_t)3600 * 1000)
#define VISITS_EVERY_MS 2000
#define SLICE 256  /* files that one command checks and removes */
#define VISITS 64  /* mailboxes and queues that one command reads */
#define SAMPLE 256 /* files of a folder whose size is read */
#define MONTHS_NOTED 60
#define MONTH_LEN 7 /* YYYY-MM */
#define LOOK KEPT_LOCK
#define LOOK_PATH "records/" ROOM_KEPT "/_/" LOOK
#define PATH_LEN (MR_ADDRESS_MAX + 64)

struct look {
	struct mr_room *room;
	struct maildir *md;
	struct room_keep keep[ROOM_SHELVES];
	int64_t now_ms, since_ms; /* since_ms: looks have come at the usual intervals since then */
	char cursor[PATH_LEN];    /* the next mailbox or queue; "": a new pass */
	struct mr_names spared;   /* ids, sorted; read with the first candidate */
	bool spared_read, stop;   /* stop: there is a doubt */
	size_t left, removed;     /* of SLICE; files removed so far */
};

/* ".Archive.2026-01" -> "2026-01"; "": the name has no month. */
static const char *
month_in(const char *path)
{
	size_t n = strlen(path);
	const char *at = n > MONTH_LEN ? path + n - MONTH_LEN : "";

	return *at && (at[-1] == '.' || at[-1] == '/') && at[4] == '-' && strspn(at, "0123456789-") == MONTH_LEN ? at
														 : "";
}

static void
month_of(int64_t ms, char ret[RFC3339_LEN + 1])
{
	time_rfc3339(ms, ret);
	ret[MONTH_LEN] = '\0';
}

/* ---- What is never removed ---- */

static void
spare(struct look *k, const char *folder, bool below)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	k->stop |= names_in(k->md->root_fd, folder, NULL, &names, IGNORED) != MR_OK;
	for (size_t i = 0; i < names.n && !k->stop; i++) {
		if (below)
			spare(k, path_of(folder, "/", names.v[i], NULL).z, false);
		else if (!below && id_valid(str_of(names.v[i])))
			k->stop |= !names_add(&k->spared, str_of(names.v[i]));
	}
}

static bool
is_spared(struct look *k, const char *id)
{
	if (!k->spared_read) {
		k->spared_read = true;
		spare(k, "spool", false);
		spare(k, "records/purged", true);
		spare(k, "records/due", true);
		names_sort(&k->spared);
	}
	return k->stop || names_find(&k->spared, id);
}

/* By its name alone: marks. */
static bool
may_go(enum room_shelf shelf, const struct file_name *n)
{
	unsigned flags = name_flags(n, false);

	return !(flags & MR_PINNED) && (shelf != SHELF_ARCHIVE || (flags & MR_SEEN));
}

/* By its file: is it old enough? */
static bool
is_settled(struct look *k, int fd, const char *name)
{
	int64_t day_ago = k->now_ms - DAY_MS;
	struct stat st;

	if (sys_stat(fd, name, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	k->stop |= time_ms(st.st_mtim) > k->now_ms + DAY_MS || time_ms(st.st_ctim) > k->now_ms + DAY_MS;
	return !k->stop && time_ms(st.st_mtim) < day_ago && (st.st_nlink > 2 || time_ms(st.st_ctim) < day_ago);
}

/* ---- Writing down what goes ---- */

/* Records that mail of that month which was sent before before_ms is about to be removed. False: that failed. */
static bool
note(struct look *k, enum room_shelf shelf, const char *month, int64_t before_ms)
{
	const struct room_shelf_name *name = &room_shelves[shelf];
	mr_auto(buf_done) struct buf text = BUF_INIT, old = BUF_INIT;
	mr_auto(record_done) struct record lines = { 0 };
	char today[RFC3339_LEN + 1], before[RFC3339_LEN + 1];
	enum mr_rc rc = maildir_record_get(k->room, ROOM_KEPT, "", name->record, &old, IGNORED);

	if (rc == MR_OK && record_parse(buf_str(&old), &lines, IGNORED) != MR_OK)
		record_done(&lines); /* damaged: begin again */
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return false;
	time_rfc3339(k->now_ms, today);
	time_rfc3339(before_ms, before);
	for (size_t i = 0; i < lines.n; i++) {
		struct mr_str rest = str_of(lines.lines[i].value), of, when, until;

		if (!str_cut(&rest, ' ', &of) || !str_eq(of, str_of(month)) || !str_cut(&rest, ' ', &when) ||
		    !str_cut(&rest, ' ', &until))
			continue;
		if (when.len >= 10 && memcmp(when.ptr, today, 10) == 0 && until.len == RFC3339_LEN &&
		    memcmp(until.ptr, before, RFC3339_LEN) >= 0)
			return true; /* recorded today already */
		if (until.len == RFC3339_LEN && memcmp(until.ptr, before, RFC3339_LEN) > 0)
			memcpy(before, until.ptr, RFC3339_LEN);
		lines.lines[i].value = "";
	}
	buf_addf(&text, "Removed: %s %s %s %s\n", month, today, before,
	    record_get(&k->room->settings, name->setting) ? record_get(&k->room->settings, name->setting) : "");
	for (size_t i = 0, n = 1; i < lines.n && n < MONTHS_NOTED; i++)
		if (*lines.lines[i].value && ++n)
			record_add(&text, "Removed", lines.lines[i].value);
	return buf_ok(&text) &&
	       maildir_record_put(k->room, ROOM_KEPT, "", name->record, buf_str(&text), IGNORED) == MR_OK;
}

/* ---- One folder ---- */

struct limit { /* limit of removal: sent before before_ms, and not newer than `through` if that is not "" */
	int64_t before_ms;
	char through[MR_ID_LEN + 1];
};

struct candidates {
	enum room_shelf shelf;
	const struct limit *limit;
	size_t max, files; /* files: entries that are messages, removed or not */
	struct mr_names names;
	bool failed;
};

static bool
collect(void *ctx, const struct dir_entry *entry)
{
	struct candidates *c = ctx;
	struct file_name n;

	if (!name_parse(str_of(entry->name), &n))
		return true;
	c->files++;
	if (id_time_ms(n.id) >= c->limit->before_ms || (c->limit->through[0] && strcmp(n.id, c->limit->through) > 0) ||
	    !may_go(c->shelf, &n))
		return true;
	c->failed |= !names_add(&c->names, str_of(entry->name));
	return !c->failed && c->names.n < c->max;
}

/* The folder with the mail of a box: only agents have Maildirs. */
static struct path
mail_in(enum room_shelf shelf, const char *box)
{
	return path_of(box, shelf == SHELF_ARCHIVE || shelf == SHELF_SENT ? "/cur" : "", NULL);
}

/* Removes the folder of a month that has been empty for a day. */
static void
retire(struct look *k, enum room_shelf shelf, const char *box, int fd)
{
	static const char *const rest[] = { "new", "tmp" }, *const files[] = { "maildirfolder", "dovecot-keywords" };
	mr_auto(sys_close_fd) int box_fd = -1;
	struct stat st;

	if (sys_stat(k->md->root_fd, path_of(box, "/" PACK_FILE, NULL).z, &st) == 0 || sys_stat_fd(fd, &st) < 0 ||
	    time_ms(st.st_mtim) > k->now_ms - DAY_MS || sys_rmdir(k->md->root_fd, mail_in(shelf, box).z) < 0 ||
	    shelf == SHELF_DONE || dir_open(k->md->root_fd, box, &box_fd, IGNORED) != MR_OK)
		return;
	/* New mail of that month makes cur/ and the rest again; a folder that cannot be removed stays. */
	for (size_t i = 0; i < 2; i++)
		if (sys_rmdir(box_fd, rest[i]) < 0)
			return;
	for (size_t i = 0; i < 2; i++)
		(void)sys_unlink(box_fd, files[i]);
	(void)sys_rmdir(k->md->root_fd, box);
}

/* `removed` gets the ids of the removed mail, or is NULL. */
static void
clear_folder(
    struct look *k, enum room_shelf shelf, const char *box, const struct limit *limit, struct mr_names *removed)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct candidates c = { .shelf = shelf, .limit = limit, .max = k->left };
	char noted[RFC3339_LEN + 1] = "", month[RFC3339_LEN + 1], last[RFC3339_LEN + 1];

	if (dir_open(k->md->root_fd, mail_in(shelf, box).z, &fd, IGNORED) != MR_OK ||
	    dir_each(fd, collect, &c, IGNORED) != MR_OK)
		c.failed = true;
	if (c.names.n > 0)
		names_sort(&c.names); /* names begin with their time, so each month is noted once */
	for (size_t i = 0; i < c.names.n && !c.failed && !k->stop; i++) {
		struct file_name parts;

		k->left--;
		if (!name_parse(str_of(c.names.v[i]), &parts) || is_spared(k, parts.id) ||
		    !is_settled(k, fd, c.names.v[i]))
			continue;
		month_of(id_time_ms(parts.id), month);
		if (strcmp(month, noted) != 0) {
			if (!note(k, shelf, month, limit->before_ms)) {
				k->stop = true;
				break;
			}
			memcpy(noted, month, sizeof noted);
		}
		if (sys_unlink(fd, c.names.v[i]) < 0)
			continue; /* moved, or another user's */
		k->removed++;
		if (removed)
			(void)names_add(removed, str_of(parts.id));
	}
	month_of(limit->before_ms, last);
	if (!c.failed && c.files == 0 && *month_in(box) && strcmp(month_in(box), last) < 0)
		retire(k, shelf, box, fd);
	mr_names_done(&c.names);
}

struct packed_month {
	struct look *k;
	const struct limit *limit;
	size_t n;
	bool stays;
};

static bool
weigh_packed(void *ctx, const char *name, struct packed_at at)
{
	struct packed_month *m = ctx;
	struct file_name n;

	(void)at;
	m->n++;
	m->stays |= !name_parse(str_of(name), &n) || id_time_ms(n.id) >= m->limit->before_ms ||
		    (m->limit->through[0] && strcmp(n.id, m->limit->through) > 0) || is_spared(m->k, n.id);
	return !m->stays;
}

static void
clear_pack(struct look *k, const char *box, const struct limit *limit)
{
	struct packed_month m = { .k = k, .limit = limit };
	mr_auto(sys_close_fd) int fd = -1;

	if (pack_each(k->md, box, weigh_packed, &m, IGNORED) != MR_OK || m.stays || k->stop ||
	    dir_open(k->md->root_fd, box, &fd, IGNORED) != MR_OK || !is_settled(k, fd, PACK_FILE))
		return;
	k->stop |= !note(k, SHELF_ARCHIVE, month_in(box), limit->before_ms);
	if (!k->stop && sys_unlink(fd, PACK_FILE) == 0)
		k->removed += m.n;
	k->left--;
}

/* ---- One shelf: the folders of an archive, of sent mail, of done work, oldest first ---- */

struct tally {               /* the files of a folder, for a limit by number or size */
	struct mr_names ids; /* with wants_ids; with any_name: the folders */
	struct mr_names sample;
	bool failed, wants_ids, sizes, any_name; /* any_name: not only messages */
	size_t seen;
};

static bool
count_file(void *ctx, const struct dir_entry *entry)
{
	struct tally *t = ctx;
	struct file_name n;

	if (t->any_name && entry->type == DT_DIR)
		t->failed |= !names_add(&t->ids, str_of(entry->name));
	if (t->any_name ? entry->type == DT_DIR : !name_parse(str_of(entry->name), &n))
		return !t->failed;
	t->failed |= t->wants_ids && !names_add(&t->ids, str_of(n.id));
	/* All of the first files, then fewer and fewer: enough for a mean size. */
	if (t->sizes && t->sample.n < SAMPLE && (t->seen < SAMPLE / 2 || t->seen % 64 == 0))
		t->failed |= !names_add(&t->sample, str_of(entry->name));
	t->seen++;
	return !t->failed;
}

static bool
count_packed(void *ctx, const char *name, struct packed_at at)
{
	struct tally *t = ctx;
	struct file_name n;

	(void)at;
	t->failed |= t->wants_ids && (!name_parse(str_of(name), &n) || !names_add(&t->ids, str_of(n.id)));
	t->seen++;
	return !t->failed;
}

/* Reads the folder `path`, and with `box` also a pack in it. With t->sizes returns the average size of its files on the
 * disk; else 1. */
static int64_t
tally_folder(struct look *k, const char *path, const char *box, struct tally *t)
{
	mr_auto(sys_close_fd) int fd = -1;
	int64_t bytes = 0;
	struct stat st;

	if (dir_open(k->md->root_fd, path, &fd, IGNORED) != MR_OK)
		return 1;
	t->failed |= dir_each(fd, count_file, t, IGNORED) != MR_OK;
	for (size_t i = 0; i < t->sample.n; i++)
		bytes += sys_stat(fd, t->sample.v[i], &st) == 0 ? (int64_t)st.st_blocks * 512 : 0;
	int64_t each = t->sample.n > 0 ? bytes / (int64_t)t->sample.n + 1 : 1;
	size_t files = t->seen;

	if (!box || pack_each(k->md, box, count_packed, t, IGNORED) != MR_OK || t->seen == files)
		return each;
	bytes =
	    sys_stat(k->md->root_fd, path_of(box, "/" PACK_FILE, NULL).z, &st) == 0 ? (int64_t)st.st_blocks * 512 : 0;
	return t->sizes ? ((int64_t)files * each + bytes) / (int64_t)t->seen + 1 : 1;
}

static void
tally_done(struct tally *t)
{
	mr_names_done(&t->ids);
	mr_names_done(&t->sample);
}

/* Goes from the newest folder to the oldest until the limit is reached. False: it is not reached. */
static bool
find_through(struct look *k, enum room_shelf shelf, const struct room_keep *keep, const struct mr_names *boxes,
    char ret[MR_ID_LEN + 1])
{
	int64_t left = keep->limit;

	for (size_t i = boxes->n; i-- > 0;) {
		mr_auto(tally_done) struct tally t = { .wants_ids = true, .sizes = keep->by == KEEP_SIZE };
		int64_t each = tally_folder(k, mail_in(shelf, boxes->v[i]).z, boxes->v[i], &t);

		names_sort(&t.ids);
		bool over = !t.failed && t.ids.n > 0 && left / each < (int64_t)t.ids.n;

		if (over)
			(void)snprintf(ret, MR_ID_LEN + 1, "%s", t.ids.v[t.ids.n - 1 - (size_t)(left / each)]);
		left -= (int64_t)t.ids.n * each;
		k->stop |= t.failed;
		if (over || k->stop)
			return over;
	}
	return false;
}

static void
clear_shelf(struct look *k, enum room_shelf shelf, const struct room_keep *keep, const struct mr_names *boxes,
    const struct queue *q)
{
	struct limit limit = { .before_ms = k->now_ms - DAY_MS };
	char last[RFC3339_LEN + 1];

	if (keep->by == KEEP_ALL || boxes->n == 0)
		return;
	if (keep->by == KEEP_TIME)
		limit.before_ms = k->now_ms - keep->limit;
	else if (!find_through(k, shelf, keep, boxes, limit.through))
		return;
	if (limit.through[0] && id_time_ms(limit.through) < limit.before_ms)
		limit.before_ms = id_time_ms(limit.through) + 1;
	month_of(limit.before_ms, last);
	for (size_t i = 0; i < boxes->n && k->left > 0 && !k->stop; i++) {
		mr_auto(mr_names_done) struct mr_names removed = { 0 };
		const char *box = boxes->v[i];

		if (*month_in(box) && strcmp(month_in(box), last) > 0)
			break; /* this and all that follow are newer */
		if (shelf == SHELF_ARCHIVE)
			clear_pack(k, box, &limit);
		if (k->left > 0 && !k->stop)
			clear_folder(k, shelf, box, &limit, q ? &removed : NULL);
		names_sort(&removed);
		if (removed.n > 0)
			past_remove(q, &removed);
	}
}

/* Adds the entries of `folder` that begin with `prefix` (with "": all that do not begin with a dot) as sorted paths. */
static void
add_boxes(struct look *k, const char *folder, const char *prefix, struct mr_names *ret)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	(void)dir_names_in(k->md->root_fd, folder, &names, IGNORED);
	for (size_t i = 0; i < names.n; i++)
		if (*prefix ? str_starts(str_of(names.v[i]), prefix) : names.v[i][0] != '.')
			k->stop |= !names_add(ret, str_of(path_of(folder, "/", names.v[i], NULL).z));
	names_sort(ret);
}

/* The boxes of each shelf at `where`: "agents/<address>", "dead" or "queues/<name>". */
static void
find_shelves(struct look *k, const char *where, struct mr_names ret[ROOM_SHELVES])
{
	if (str_starts(str_of(where), "agents/")) {
		add_boxes(k, where, ".Archive.", &ret[SHELF_ARCHIVE]);
		add_boxes(k, where, ".Sent", &ret[SHELF_SENT]);
	} else if (strcmp(where, "dead") == 0) {
		k->stop |=
		    !names_add(&ret[SHELF_DEAD], STR("dead/new")) || !names_add(&ret[SHELF_DEAD], STR("dead/cur"));
	} else {
		add_boxes(k, path_of(where, "/done", NULL).z, "", &ret[SHELF_DONE]);
		k->stop |= !names_add(&ret[SHELF_DEAD], str_of(path_of(where, "/failed", NULL).z));
	}
}

static void
visit(struct look *k, const char *where)
{
	struct mr_names boxes[ROOM_SHELVES] = { 0 };
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	const struct room_keep over = { .by = KEEP_TIME, .limit = ROOM_OVER_MS };
	bool agent = str_starts(str_of(where), "agents/"), queue = str_starts(str_of(where), "queues/");
	struct stat st;

	if (agent && shared_is_others(k->md, where + strlen("agents/")))
		return;
	k->left -= over_clear(k->room, where, k->left, &k->stop);
	if (queue && queue_open_any(&q, k->md, where + strlen("queues/"), IGNORED) != MR_OK)
		return;
	bool gone = agent && sys_stat(k->md->root_fd, path_of(where, "/agent", NULL).z, &st) < 0 && errno == ENOENT;

	if (agent || queue || strcmp(where, "dead") == 0)
		find_shelves(k, where, boxes);
	for (unsigned i = 0; i < ROOM_SHELVES; i++) {
		clear_shelf(k, (enum room_shelf)i, &k->keep[i], &boxes[i], queue ? &q : NULL);
		if (gone && k->keep[i].by != KEEP_ALL && k->keep[i].by != KEEP_TIME)
			clear_shelf(k, (enum room_shelf)i, &over, &boxes[i], NULL);
		mr_names_done(&boxes[i]);
	}
}

/* ---- One look ---- */

/* Adds all places that a setting limits, or with `all` every one, and every mailbox, because its agent may be gone. */
static void
add_places(struct look *k, bool all, struct mr_names *ret)
{
	mr_auto(mr_names_done) struct mr_names agents = { 0 }, queues = { 0 };

	k->stop |= agents_collect(k->md, false, &agents, IGNORED) != MR_OK;
	if (all || k->keep[SHELF_DONE].by || k->keep[SHELF_DEAD].by)
		k->stop |= queue_names(k->md, &queues, IGNORED) != MR_OK;
	for (size_t i = 0; i < agents.n; i++)
		k->stop |= !names_add(ret, str_of(path_of("agents/", agents.v[i], NULL).z));
	for (size_t i = 0; i < queues.n; i++)
		k->stop |= !names_add(ret, str_of(path_of("queues/", queues.v[i], NULL).z));
	if (all || k->keep[SHELF_DEAD].by)
		k->stop |= !names_add(ret, STR("dead"));
}

/* The settings as one line, by which a change of them is noticed. */
static void
add_settings(const struct look *k, struct buf *out)
{
	for (unsigned i = 0; i < ROOM_SHELVES; i++)
		buf_addf(out, "%s%d %lld", i ? ", " : "", (int)k->keep[i].by, (long long)k->keep[i].limit);
}

/* Reads where the last look stopped. False: nothing may be removed yet. */
static bool
read_look(struct look *k)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, settings = BUF_INIT;
	mr_auto(record_done) struct record lines = { 0 };
	int64_t created_ms = record_time(&k->room->settings, "Created");

	add_settings(k, &settings);
	k->since_ms = k->now_ms;
	if (file_read(k->md->root_fd, LOOK_PATH, 4096, &text, IGNORED) != MR_OK ||
	    record_parse(buf_str(&text), &lines, IGNORED) != MR_OK || !buf_ok(&settings) ||
	    !record_has(&lines, "Settings", buf_z(&settings)))
		return false;
	int64_t last_ms = record_int(&lines, "Last", 0), since_ms = record_int(&lines, "Since", 0);
	const char *cursor = record_get(&lines, "Cursor");

	if (last_ms > k->now_ms + DAY_MS || last_ms < k->now_ms - PAUSE_MAX_MS || since_ms > k->now_ms ||
	    created_ms > k->now_ms)
		return false;
	k->since_ms = since_ms;
	(void)snprintf(k->cursor, sizeof k->cursor, "%s", cursor ? cursor : "");
	return k->now_ms - since_ms >= DAY_MS;
}

/* Not durable: if a power cut loses it, the next look removes nothing for a day. */
static void
write_look(struct look *k, int64_t next_ms)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int folder = -1, fd = -1;

	buf_addf(&text, "Since: %lld\nLast: %lld\n", (long long)k->since_ms, (long long)k->now_ms);
	record_add(&text, "Cursor", k->cursor);
	buf_adds(&text, "Settings: ");
	add_settings(k, &text);
	buf_addc(&text, '\n');
	if (!buf_ok(&text) || dir_open(k->md->root_fd, "records/" ROOM_KEPT "/_", &folder, IGNORED) != MR_OK)
		return;
	(void)sys_unlink(folder, LOOK);
	fd = sys_open(folder, LOOK, O_WRONLY | O_CREAT | O_EXCL, k->md->file_mode);
	if (fd >= 0 && sys_write_all(fd, text.ptr, text.len) == 0)
		(void)sys_set_mtime(fd, (next_ms - PASS_EVERY_MS) * 1000000);
}

static void
take_look(struct look *k)
{
	mr_auto(mr_names_done) struct mr_names places = { 0 };
	int64_t next_ms = k->now_ms + PASS_EVERY_MS;
	size_t at = 0, visits = 0, before = 0;

	if (read_look(k)) {
		k->left = SLICE;
		add_places(k, false, &places);
		k->stop |= !over_places(k->md, &places);
		names_sort(&places); /* the order of a pass */
		while (at < places.n && strcmp(places.v[at], k->cursor) < 0)
			at++;
		for (; at < places.n && k->left > 0 && visits < VISITS && !k->stop; at++, visits++) {
			before = k->removed;
			visit(k, places.v[at]);
		}
		/* The place that used up the slice may have more, unless all that it has is protected. */
		if (k->left == 0 && k->removed > before)
			at--;
		k->cursor[0] = '\0';
		if (at < places.n && !k->stop) {
			(void)snprintf(k->cursor, sizeof k->cursor, "%s", places.v[at]);
			next_ms = k->now_ms + (k->left == 0 ? 0 : VISITS_EVERY_MS);
		}
	}
	write_look(k, next_ms);
	k->md->retain_next_ms = next_ms;
	mr_names_done(&k->spared);
}

void
retain_some(struct mr_room *room, bool begin)
{
	struct look k = { .room = room, .md = maildir_of(room), .now_ms = clock_now_ms() };
	const struct sys_relief *relief = NULL;
	void *lock = NULL;
	bool any = false;
	struct stat st;

	if (k.now_ms < k.md->retain_next_ms && k.md->retain_next_ms - k.now_ms <= 2 * PASS_EVERY_MS)
		return;
	for (unsigned i = 0; i < ROOM_SHELVES; i++) {
		const char *value = record_get(&room->settings, room_shelves[i].setting);

		any |= value && room_keep_parse(value, &k.keep[i]) && k.keep[i].by != KEEP_ALL;
	}
	bool looked = sys_stat(k.md->root_fd, LOOK_PATH, &st) == 0;

	if (!any && !begin && !looked)
		return;
	k.md->retain_next_ms = k.now_ms + PASS_EVERY_MS;
	/* A time in the future was written with another clock. */
	if (looked && time_ms(st.st_mtim) <= k.now_ms && time_ms(st.st_mtim) + PASS_EVERY_MS > k.now_ms)
		return;
	relief = sys_relief_set(NULL); /* do not spend the reserve on this */
	if (maildir_record_lock(room, ROOM_KEPT, "", LOOK, 0, &lock, IGNORED) == MR_OK) {
		take_look(&k);
		maildir_record_unlock(room, lock);
	}
	(void)sys_relief_set(relief);
}

/* ---- Costs ---- */

/* The small files of the post office, folder by folder. */
static void
cost_of_records(struct look *k, const char *path, unsigned depth, struct mr_cost *cost)
{
	mr_auto(tally_done) struct tally t = { .sizes = true, .any_name = true };
	int64_t each = tally_folder(k, path, NULL, &t);

	cost->files += t.seen;
	cost->bytes += t.seen * (uint64_t)each;
	k->stop |= t.failed;
	for (size_t i = 0; i < t.ids.n && depth < 4; i++)
		cost_of_records(k, path_of(path, "/", t.ids.v[i], NULL).z, depth + 1, cost);
}

enum mr_rc
maildir_each_cost(struct mr_room *room, mr_cost_fn *fn, void *ctx, struct mr_error *err)
{
	static const char *const records[] = { "records", "keys", "holds", "past", "spool", "nudges" };
	mr_auto(mr_names_done) struct mr_names places = { 0 };
	struct look k = { .room = room, .md = maildir_of(room) };
	struct mr_cost costs[ROOM_SHELVES + 1] = { 0 };

	add_places(&k, true, &places);
	for (size_t i = 0; i < places.n && !k.stop; i++) {
		struct mr_names boxes[ROOM_SHELVES] = { 0 };

		find_shelves(&k, places.v[i], boxes);
		for (unsigned shelf = 0; shelf < ROOM_SHELVES; shelf++) {
			for (size_t b = 0; b < boxes[shelf].n; b++) {
				mr_auto(tally_done) struct tally t = { .sizes = true };
				const char *box = boxes[shelf].v[b];
				int64_t each = tally_folder(&k, mail_in((enum room_shelf)shelf, box).z, box, &t);

				costs[shelf].files += t.seen;
				costs[shelf].bytes += t.seen * (uint64_t)each;
				k.stop |= t.failed;
			}
			mr_names_done(&boxes[shelf]);
		}
		if (!room_step(room, "mailboxes", i, places.n))
			return mr_fail(err, MR_STOPPED, "stopped after %zu of %zu mailboxes and queues", i, places.n);
	}
	for (size_t i = 0; i < sizeof records / sizeof records[0]; i++)
		cost_of_records(&k, records[i], 0, &costs[ROOM_SHELVES]);
	if (k.stop)
		return mr_fail(err, MR_IO, "not all folders can be read\n`mailroom doctor` shows which");
	for (unsigned i = 0; i <= ROOM_SHELVES; i++) {
		const struct room_shelf_name *name = i < ROOM_SHELVES ? &room_shelves[i] : NULL;
		const char *keep = name ? record_get(&room->settings, name->setting) : NULL;

		costs[i].what = name ? name->record : "records";
		costs[i].setting = name ? name->setting : "";
		costs[i].keep = keep ? keep : "";
		fn(ctx, &costs[i]);
	}
	return MR_OK;
}
