/* SPDX-License-Identifier: MIT */
/*
 * lives.c - lives/<N>. A life is one continuous occupation of an agent's name, by a session of a harness or by a
 * process: whoever registers or takes over the name begins the next one. Numbers only grow. Number N is taken with
 * link(2) of a complete file, so of several that want it one gets it. Beginning a life fences the ones before
 * (sweep.c). The mtime of the file is when the life was last seen.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/sys.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>

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

struct span { /* of the numbers in a folder; 0: none */
	unsigned oldest, newest;
};

static bool
note_number(void *ctx, const struct dir_entry *entry)
{
	struct span *span = ctx;
	unsigned n;

	if (life_number(entry->name, &n)) {
		span->newest = n > span->newest ? n : span->newest;
		span->oldest = span->oldest == 0 || n < span->oldest ? n : span->oldest;
	}
	return true;
}

static enum mr_rc
newest_in(int lives_fd, unsigned *ret, struct mr_error *err)
{
	struct span span = { 0 };

	TRY(dir_each(lives_fd, note_number, &span, err));
	*ret = span.newest;
	return MR_OK;
}

enum mr_rc
life_newest(struct mailbox *box, unsigned *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = dir_open(box->fd, "lives", &fd, err);

	*ret = 0;
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	return newest_in(fd, ret, err);
}

/* ---- Reading and writing one ---- */

enum mr_rc
life_read(struct mailbox *box, struct mr_agent *ret, struct arena **own, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = dir_open(box->fd, "lives", &fd, err);

	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	/* Old files are removed, and a new life may begin, between the two looks: then look again. */
	for (unsigned tries = 0; tries < 3; tries++) {
		mr_auto(record_done) struct record lines = { 0 };
		char name[16], first[500];
		mr_auto(buf_done) struct buf text = BUF_IN(first);
		struct stat st;
		unsigned newest = 0;

		TRY(newest_in(fd, &newest, err));
		if (newest == 0)
			return MR_OK;
		(void)snprintf(name, sizeof name, "%u", newest);
		rc = file_read_stat(fd, name, LIFE_FILE_MAX, &text, &st, err);
		if (rc == MR_NOTFOUND)
			continue;
		if (rc != MR_OK)
			return rc;
		TRY(record_parse(buf_str(&text), &lines, err));
		const char *started = record_get(&lines, "Started"), *process = record_get(&lines, "Process");

		ret->life = newest;
		ret->seen_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
		if (started)
			(void)time_parse_rfc3339(str_of(started), &ret->started_ms);
		if (process && !process_parse(str_of(process), &ret->process))
			ret->process = (struct mr_process){ 0 };
		ret->session = agent_line(&lines, "Session", own);
		ret->worktree = agent_line(&lines, "Worktree", own);
		ret->host = agent_line(&lines, "Host", own);
		return MR_OK;
	}
	return rc;
}

static enum mr_rc
write_life(const struct maildir *md, const struct mr_agent *agent, struct buf *out, struct mr_error *err)
{
	mr_auto(buf_done) struct buf process = BUF_INIT;
	char started[RFC3339_LEN + 1];

	time_rfc3339(agent->started_ms ? agent->started_ms : clock_now_ms(), started);
	if (agent->process.pid)
		process_format(&agent->process, &process);
	const struct {
		const char *name, *value;
	} lines[] = {
		{ "Session", agent->session },
		{ "Process", buf_z(&process) },
		{ "Worktree", agent->worktree },
		{ "Host", agent->host },
	};

	buf_addf(out, "Life: %u\nStarted: %s\n", agent->life, started);
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		if (lines[i].value && lines[i].value[0])
			TRY(header_add(out, lines[i].name, str_of(lines[i].value), err));
	shared_add_user(md, out);
	return buf_ok(out) && !process.failed ? MR_OK : mr_nomem(err);
}

static enum mr_rc
open_lives(struct maildir *md, const char *name, int *ret_fd, struct mr_error *err)
{
	char path[MR_ADDRESS_MAX + 8];

	text_join(path, sizeof path, name, "/lives", NULL);
	return dir_open(md->agents_fd, path, ret_fd, err);
}

enum mr_rc
life_update(struct maildir *md, const struct mr_agent *agent, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	struct stat st;
	char name[16];

	(void)snprintf(name, sizeof name, "%u", agent->life);
	TRY(write_life(md, agent, &text, err));
	TRY(open_lives(md, agent->name, &fd, err));
	if (sys_stat(fd, name, &st) < 0)
		return errno == ENOENT
			   ? mr_fail(err, MR_NOTFOUND, "agent '%s' has no life %u", agent->name, agent->life)
			   : mr_fail_errno(err, "cannot look at life %u of '%s'", agent->life, agent->name);
	return file_replace(fd, name, buf_str(&text), md->file_mode, err);
}

/* ---- Taking one ---- */

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
	TRY(newest_in(lives_fd, &newest, err));
	TRY(mailbox_folder(box, BOX_TMP, &tmp_fd, err));
	(void)snprintf(name, sizeof name, "%u", agent->life);
	enum mr_rc rc = newest >= agent->life ? MR_EXISTS
					      : file_publish(lives_fd, tmp_fd, name, buf_str(&text), md->file_mode,
						    md->sync ? PUBLISH_FULL : PUBLISH_NOSYNC, err);

	if (rc == MR_EXISTS)
		return mr_fail(err, MR_EXISTS, "life %u of agent '%s' is taken", agent->life, agent->name);
	return rc;
}

/* The oldest first, and none after one that stays: whatever stops us, those that are left have no gap, which is how
 * maildir_check_life sees by two looks which one is the newest. */
static void
forget_old(int fd, unsigned newest)
{
	struct span span = { 0 };
	char name[16];

	(void)dir_each(fd, note_number, &span, IGNORED);
	for (unsigned n = span.oldest, done = 0; n > 0 && n + LIVES_KEPT <= newest && done < LIVES_KEPT; n++, done++) {
		(void)snprintf(name, sizeof name, "%u", n);
		if (sys_unlink(fd, name) < 0 && errno != ENOENT)
			break;
	}
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

/* The file of a life, from agents/. */
static void
life_path(const char *name, unsigned life, char ret[MR_ADDRESS_MAX + 24])
{
	char digits[21];

	(void)text_number(digits, life, 0);
	text_join(ret, MR_ADDRESS_MAX + 24, name, "/lives/", digits, NULL);
}

/* Two looks: the next life, and our own. The newest 16 files are kept without gaps, so a life whose
 * own file is gone is older than all of them. */
enum mr_rc
maildir_check_life(struct mr_room *room, const char *name, unsigned life, const char *session, unsigned *ret_newest,
    struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	char path[MR_ADDRESS_MAX + 24], first[500];
	mr_auto(buf_done) struct buf text = BUF_IN(first);
	struct maildir *md = maildir_of(room);
	unsigned newest = life + 1;
	struct stat st;

	if (ret_newest) {
		TRY(maildir_find_agent(room, name, NULL, err));
	} else {
		life_path(name, life + 1, path);
		bool fenced = sys_stat(md->agents_fd, path, &st) == 0;

		if (!fenced && errno != ENOENT && errno != ENOTDIR)
			return mr_fail_errno(err, "cannot look at the lives of '%s'", name);
		life_path(name, life, path);
		if (!fenced && session) {
			const char *named = NULL;

			if (file_read(md->agents_fd, path, LIFE_FILE_MAX, &text, err) == MR_OK &&
			    record_parse(buf_str(&text), &lines, err) == MR_OK)
				named = record_get(&lines, "Session");
			return named && strcmp(named, session) == 0
				   ? MR_OK
				   : mr_fail(err, MR_NOTFOUND, "'%s' is another session's", path);
		}
		if (!fenced && (life == 0 || sys_stat(md->agents_fd, path, &st) == 0 || errno != ENOENT))
			return MR_OK;
	}
	enum mr_rc rc = open_lives(md, name, &fd, err);

	if (rc == MR_NOTFOUND && ret_newest)
		*ret_newest = 0;
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	if (ret_newest)
		return newest_in(fd, ret_newest, err);
	(void)newest_in(fd, &newest, err);
	return mr_fail(err, MR_REFUSED,
	    "agent '%s' is now life %u, this is life %u: its mail belongs to the new one\n"
	    "register under another name, or take it back with: mailroom takeover %s",
	    name, newest, life, name);
}

/* A look costs a fifth of a change, and an agent that acts many times a minute was seen often enough. Where a group
 * shares the room, another member could put a link in the way, and a file of ours elsewhere would be touched: there the
 * folder is opened first. */
void
maildir_seen(struct mr_room *room, const char *name, unsigned life)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct maildir *md = maildir_of(room);
	char path[MR_ADDRESS_MAX + 24];
	struct stat st;

	if (life == 0)
		return;
	life_path(name, life, path);
	if (sys_stat(md->agents_fd, path, &st) == 0) {
		int64_t age_ms = clock_now_ms() - (int64_t)st.st_mtim.tv_sec * 1000 - st.st_mtim.tv_nsec / 1000000;

		if (age_ms >= 0 && age_ms < SEEN_EVERY_MS)
			return;
	}
	if (!maildir_is_shared(md))
		(void)sys_touch(md->agents_fd, path);
	else if (open_lives(md, name, &fd, IGNORED) == MR_OK)
		(void)sys_touch(fd, strrchr(path, '/') + 1);
}
