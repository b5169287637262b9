/* SPDX-License-Identifier: MIT */
/*
 * lives.c - lives/<N>: who an agent is now, and who it was. Numbers only grow. Number N is taken with
 * link(2) of a complete file, so of several who want it one gets it.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/process.h"
#include "base/sys.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>
#include <fcntl.h>

#define LIFE_FILE_MAX ((size_t)64 << 10)
#define LIVES_KEPT 16
#define SEEN_EVERY_MS 5000

/* ---- Which one is the newest ---- */

bool
life_number(const char *name, unsigned *ret)
{
	uint64_t n;

	if (!str_to_u64(str_of(name), &n) || n == 0 || n > UINT32_MAX || name[0] == '0')
		return false;
	*ret = (unsigned)n;
	return true;
}

static bool
keep_newest(void *ctx, const struct dir_entry *entry)
{
	unsigned *newest = ctx, n;

	if (life_number(entry->name, &n) && n > *newest)
		*newest = n;
	return true;
}

/* `again`: the descriptor was read before. */
static enum mr_rc
newest_in(int lives_fd, bool again, unsigned *ret, struct mr_error *err)
{
	unsigned newest = 0;

	if ((again ? dir_each : dir_each_once)(lives_fd, keep_newest, &newest, err) != MR_OK)
		return err->code;
	*ret = newest;
	return MR_OK;
}

enum mr_rc
life_newest(struct mailbox *box, unsigned *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = dir_open(box->fd, "lives", &fd, err);

	if (rc == MR_NOTFOUND) {
		*ret = 0;
		return MR_OK;
	}
	return rc == MR_OK ? newest_in(fd, false, ret, err) : rc;
}

/* ---- Reading and writing one ---- */

static const char *
line_of(const struct record *lines, const char *name, struct arena **own)
{
	const char *value = record_get(lines, name);
	char *copy = value ? arena_dup(own, str_of(value)) : NULL;

	return copy ? copy : "";
}

static enum mr_rc
fill_life(struct mr_str text, struct mr_agent *ret, struct arena **own, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };

	TRY(record_parse(text, &lines, err));
	const char *started = record_get(&lines, "Started"), *process = record_get(&lines, "Process");

	if (started)
		(void)time_parse_rfc3339(str_of(started), &ret->started_ms);
	if (process && !process_parse(str_of(process), &ret->process))
		ret->process = (struct mr_process){ 0 };
	ret->session = line_of(&lines, "Session", own);
	ret->worktree = line_of(&lines, "Worktree", own);
	ret->host = line_of(&lines, "Host", own);
	return MR_OK;
}

enum mr_rc
life_read(struct mailbox *box, struct mr_agent *ret, struct arena **own, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = dir_open(box->fd, "lives", &fd, err);

	if (rc == MR_NOTFOUND)
		return MR_OK;
	/* Old files are removed, and a new life may begin, between the two looks: then look again. */
	for (unsigned tries = 0; rc == MR_OK || (rc == MR_NOTFOUND && tries < 3); tries++) {
		char name[16], first[500];
		mr_auto(buf_done) struct buf text = BUF_IN(first);
		struct stat st;
		unsigned newest = 0;

		rc = newest_in(fd, tries > 0, &newest, err);
		if (rc != MR_OK || newest == 0)
			return rc;
		(void)snprintf(name, sizeof name, "%u", newest);
		rc = file_read(fd, name, LIFE_FILE_MAX, &text, err);
		if (rc != MR_OK)
			continue;
		if (sys_stat(fd, name, &st) == 0)
			ret->seen_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
		ret->life = newest;
		return fill_life(buf_str(&text), ret, own, err);
	}
	return rc;
}

static enum mr_rc
add_line(struct buf *out, const char *name, const char *value, struct mr_error *err)
{
	return value && value[0] ? header_add(out, name, str_of(value), err) : MR_OK;
}

static enum mr_rc
write_life(const struct maildir *md, const struct mr_agent *agent, struct buf *out, struct mr_error *err)
{
	mr_auto(buf_done) struct buf process = BUF_INIT;
	char started[RFC3339_LEN + 1];

	time_rfc3339(agent->started_ms ? agent->started_ms : clock_now_ms(), started);
	if (agent->process.pid)
		process_format(&agent->process, &process);
	buf_addf(out, "Life: %u\nStarted: %s\n", agent->life, started);
	TRY(add_line(out, "Session", agent->session, err));
	TRY(add_line(out, "Process", buf_z(&process), err));
	TRY(add_line(out, "Worktree", agent->worktree, err));
	TRY(add_line(out, "Host", agent->host, err));
	shared_add_user(md, out);
	return buf_ok(out) && !process.failed ? MR_OK : mr_nomem(err);
}

/* ---- Taking one ---- */

struct old_lives {
	int fd;
	unsigned newest;
	unsigned v[LIVES_KEPT]; /* the oldest, mostly one; the others go next time */
	size_t n;
};

static bool
note_old(void *ctx, const struct dir_entry *entry)
{
	struct old_lives *old = ctx;
	const char *number = entry->name[0] == '.' ? strrchr(entry->name, '.') + 1 : entry->name;
	size_t youngest = 0;
	unsigned n;

	if (!life_number(number, &n) || n + LIVES_KEPT > old->newest)
		return true;
	if (entry->name[0] == '.')
		(void)sys_unlink(old->fd, entry->name);
	else if (old->n < LIVES_KEPT)
		old->v[old->n++] = n;
	else {
		for (size_t i = 1; i < old->n; i++)
			youngest = old->v[i] > old->v[youngest] ? i : youngest;
		if (n < old->v[youngest])
			old->v[youngest] = n;
	}
	return true;
}

static int
by_number(const void *va, const void *vb)
{
	unsigned a = *(const unsigned *)va, b = *(const unsigned *)vb;

	return a < b ? -1 : a > b;
}

/* The oldest first, and none after one that stays: whatever stops us, those that are left have no gap, which is how
 * others see by two looks which one is the newest. */
static void
forget_old(int fd, unsigned newest)
{
	struct old_lives old = { .fd = fd, .newest = newest };
	struct mr_error ignored = { 0 };
	char name[16];

	(void)dir_each(fd, note_old, &old, &ignored);
	qsort(old.v, old.n, sizeof old.v[0], by_number);
	for (size_t i = 0; i < old.n; i++) {
		(void)snprintf(name, sizeof name, "%u", old.v[i]);
		if (sys_unlink(fd, name) < 0 && errno != ENOENT)
			break;
	}
}

/* MR_EXISTS: that number, or a higher one, is taken. */
static enum mr_rc
link_life(struct mailbox *box, const struct mr_agent *agent, int lives_fd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct maildir *md = box->md;
	unsigned newest = 0;
	char name[16];
	int tmp_fd;

	TRY(write_life(md, agent, &text, err));
	TRY(newest_in(lives_fd, true, &newest, err));
	TRY(mailbox_folder(box, BOX_TMP, &tmp_fd, err));
	(void)snprintf(name, sizeof name, "%u", agent->life);
	enum mr_rc rc = newest >= agent->life ? MR_EXISTS
					      : file_publish(lives_fd, tmp_fd, name, buf_str(&text), md->file_mode,
						    md->sync ? PUBLISH_FULL : PUBLISH_NOSYNC, err);

	if (rc == MR_EXISTS)
		return mr_fail(err, MR_EXISTS, "life %u of agent '%s' is taken", agent->life, agent->name);
	return rc;
}

enum mr_rc
maildir_take_life(struct mr_room *room, const struct mr_agent *agent, size_t *ret_returned, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	struct maildir *md = maildir_of(room);
	size_t returned = 0;

	TRY(mailbox_open(&box, md, agent->name, err));
	TRY(dir_make(box.fd, "lives", md->dir_mode, md->sync, &fd, err));
	TRY(link_life(&box, agent, fd, err));
	if (life_fence(&box, agent->life, &returned, err) != MR_OK || commit_flush(md, err) != MR_OK)
		return mr_wrap(
		    err, "life %u of '%s' has begun, but its mail is not all back", agent->life, agent->name);
	forget_old(fd, agent->life);
	reserve_keep(md);
	*ret_returned = returned;
	return MR_OK;
}

/* ---- What every command does with its own ---- */

static enum mr_rc
open_lives(struct mr_room *room, const char *name, int *ret_fd, struct mr_error *err)
{
	char path[MR_ADDRESS_MAX + 8];

	text_join(path, sizeof path, name, "/lives", NULL);
	return dir_open(maildir_of(room)->agents_fd, path, ret_fd, err);
}

/* The file of a life, from agents/. Only for a look: nothing is opened through it. */
static void
life_path(const char *name, unsigned life, char ret[MR_ADDRESS_MAX + 24])
{
	char digits[12];
	size_t at = sizeof digits - 1;

	digits[at] = '\0';
	do
		digits[--at] = (char)('0' + life % 10);
	while ((life /= 10) > 0);
	text_join(ret, MR_ADDRESS_MAX + 24, name, "/lives/", digits + at, NULL);
}

static void
note_look(struct maildir *md, const char *path, const struct stat *st)
{
	text_join(md->seen, sizeof md->seen, path, NULL);
	md->seen_ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

/* 0: it is there. Remembers when it was last seen: maildir_seen comes next. */
static int
look_at_life(struct maildir *md, const char *path)
{
	struct stat st;

	if (sys_stat(md->agents_fd, path, &st) < 0)
		return -1;
	note_look(md, path, &st);
	return 0;
}

/* Two looks instead of reading the folder. Lives begin in order, and of those before only the newest 16 stay: no second
 * one, and then the first still there, means that it was the newest. Who is called by --as mostly has but one. */
static bool
has_first_life_only(struct maildir *md, const char *name)
{
	char path[MR_ADDRESS_MAX + 24];

	life_path(name, 2, path);
	if (look_at_life(md, path) == 0 || errno != ENOENT)
		return false;
	life_path(name, 1, path);
	return look_at_life(md, path) == 0;
}

enum mr_rc
maildir_newest_life(struct mr_room *room, const char *name, unsigned *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	TRY(maildir_has_agent(room, name, err));
	if (has_first_life_only(maildir_of(room), name)) {
		*ret = 1;
		return MR_OK;
	}
	enum mr_rc rc = open_lives(room, name, &fd, err);

	if (rc == MR_NOTFOUND) {
		*ret = 0;
		return MR_OK;
	}
	return rc == MR_OK ? newest_in(fd, false, ret, err) : rc;
}

enum mr_rc
maildir_update_life(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	struct stat st;
	char name[16];

	(void)snprintf(name, sizeof name, "%u", agent->life);
	TRY(write_life(maildir_of(room), agent, &text, err));
	TRY(open_lives(room, agent->name, &fd, err));
	if (sys_stat(fd, name, &st) < 0)
		return errno == ENOENT
			   ? mr_fail(err, MR_NOTFOUND, "agent '%s' has no life %u", agent->name, agent->life)
			   : mr_fail_errno(err, "cannot look at life %u of '%s'", agent->life, agent->name);
	return file_replace(fd, name, buf_str(&text), maildir_of(room)->file_mode, err);
}

/* Asked at every prompt: what is looked up for it also tells when the life was seen last, and nothing is copied. */
static enum mr_rc
check_session(struct maildir *md, const char *path, const char *session, struct mr_error *err)
{
	char first[500];
	mr_auto(buf_done) struct buf text = BUF_IN(first);
	mr_auto(sys_close_fd) int fd = sys_open(md->agents_fd, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	struct header_line line;
	struct stat st;

	if (fd < 0 || sys_stat_fd(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return mr_fail(err, MR_NOTFOUND, "no life '%s'", path);
	note_look(md, path, &st);
	TRY(file_read_sized(fd, st.st_size, LIFE_FILE_MAX, &text, err));
	for (struct header_cursor c = header_begin(buf_str(&text)); header_next(&c, &line);)
		if (str_caseeq(line.name, STR("Session")) && str_eq(line.raw, str_of(session)))
			return MR_OK;
	return mr_fail(err, MR_NOTFOUND, "'%s' is another session's", path);
}

/* Two looks: the next life, and our own. The newest 16 files are kept without gaps, so a life whose
 * own file is gone is older than all of them. */
enum mr_rc
maildir_check_life(struct mr_room *room, const char *name, unsigned life, const char *session, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct maildir *md = maildir_of(room);
	char path[MR_ADDRESS_MAX + 24];
	unsigned newest = life + 1;

	life_path(name, life + 1, path);
	if (look_at_life(md, path) < 0) {
		if (errno != ENOENT && errno != ENOTDIR)
			return mr_fail_errno(err, "cannot look at the lives of '%s'", name);
		life_path(name, life, path);
		if (session)
			return check_session(md, path, session, err);
		if (life == 0 || look_at_life(md, path) == 0 || errno != ENOENT)
			return MR_OK;
	}
	enum mr_rc rc = open_lives(room, name, &fd, err);

	if (rc == MR_NOTFOUND)
		return MR_OK;
	if (rc != MR_OK)
		return rc;
	(void)newest_in(fd, false, &newest, err);
	return mr_fail(err, MR_REFUSED,
	    "agent '%s' is now life %u, this is life %u: its mail belongs to the new one\n"
	    "register under another name, or take it back with: mailroom takeover %s",
	    name, newest, life, name);
}

/* A look costs a fifth of a change. Who acts many times a minute was seen often enough. What is remembered may be too
 * old, which makes it a change too many. */
static bool
seen_just_now(struct maildir *md, const char *path)
{
	if (strcmp(md->seen, path) != 0 && look_at_life(md, path) < 0)
		return false;
	int64_t age_ms = clock_now_ms() - md->seen_ms;

	return age_ms >= 0 && age_ms < SEEN_EVERY_MS;
}

/* Where a group shares the room, another member could put a link in the way, and a file of ours elsewhere would be
 * touched; in a room of our own nobody can. */
void
maildir_seen(struct mr_room *room, const char *name, unsigned life)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct maildir *md = maildir_of(room);
	struct mr_error ignored = { 0 };
	char path[MR_ADDRESS_MAX + 24];

	if (life == 0)
		return;
	life_path(name, life, path);
	if (seen_just_now(md, path))
		return;
	md->seen[0] = '\0';
	if (!(md->dir_mode & S_IRWXG))
		(void)sys_touch(md->agents_fd, path);
	else if (open_lives(room, name, &fd, &ignored) == MR_OK)
		(void)sys_touch(fd, strrchr(path, '/') + 1);
}

bool
maildir_once(struct mr_room *room, const char *name, unsigned life, const char *what)
{
	mr_auto(sys_close_fd) int fd = -1;
	char path[MR_ADDRESS_MAX + NAME_LEN];

	(void)snprintf(path, sizeof path, "%.160s/lives/.%.60s.%u", name, what, life);
	fd = sys_open(maildir_of(room)->agents_fd, path, O_WRONLY | O_CREAT | O_EXCL, maildir_of(room)->file_mode);
	return fd >= 0;
}
