/* SPDX-License-Identifier: MIT */
/*
 * inspect.c - a first doctor. Looks at everything that this driver keeps, says what is so and what to
 * do, and with `fix` repairs only what is safe without thinking: modes, our own stray temporary files,
 * sends and holds that a crash cut off. Mail is never removed.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/maildir/inspect.h"
#include "rooms/maildir/queue.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SPACE_MIN ((uint64_t)64 << 20)

void
inspect_say(struct inspection *in, enum mr_severity severity, const char *check, bool fixed, const char *advice,
    const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	in->fn(in->ctx,
	    &(struct mr_finding){
		.severity = severity, .check = check, .text = text, .advice = fixed ? "" : advice, .fixed = fixed });
}

/* ---- Work under way ---- */

static bool
collect_id(void *ctx, const struct dir_entry *entry)
{
	return !id_valid(str_of(entry->name)) || names_add(ctx, str_of(entry->name));
}

static void
check_record(struct inspection *in, const char *id)
{
	mr_auto(spool_done) struct spool_job job;
	struct mr_error why = { 0 };

	spool_init(&job, in->room);
	enum mr_rc rc = spool_open(&job, false, &why);

	if (rc == MR_OK)
		rc = spool_lock(&job, id, 0, &why);
	if (rc == MR_NOTFOUND)
		return;
	if (rc == MR_BUSY)
		inspect_say(in, MR_FINE, "spool", false, "", "message '%s' is being delivered right now", id);
	else if (rc == MR_OK)
		inspect_say(in, MR_NOTE, "spool", false, "any sending command completes it",
		    "the sender of message '%s' died before all %zu recipients had it", id, job.to.n);
	else
		inspect_say(in, MR_PROBLEM, "spool", false,
		    "its message, if any, is beside it; see who lacks it, send it "
		    "anew, then remove both",
		    "%s", why.message);
}

static enum mr_rc
check_spool(struct inspection *in, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names ids = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_error failed = { 0 };

	if (in->fix && maildir_recover(in->room, &failed) != MR_OK)
		inspect_say(in, MR_PROBLEM, "spool", false, failed.hint, "%s", failed.message);
	enum mr_rc rc = dir_open(in->md->root_fd, "spool", &fd, err);

	if (rc == MR_OK)
		rc = dir_each(fd, collect_id, &ids, err);
	for (size_t i = 0; rc == MR_OK && i < ids.n; i++)
		check_record(in, ids.v[i]);
	if (rc == MR_OK && ids.n == 0)
		inspect_say(in, MR_FINE, "spool", false, "", "no delivery is half done");
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

/* ---- Mailboxes ---- */

struct held_count {
	struct maildir *md;
	struct mr_names tokens; /* in use by some hold */
	size_t n, orphans;
};

static bool
count_hold(void *ctx, const struct hold *hold)
{
	struct held_count *count = ctx;
	struct stat st;
	char path[MR_TOKEN_LEN + 8];

	(void)snprintf(path, sizeof path, "holds/%s", hold->token);
	count->n++;
	if (sys_stat(count->md->root_fd, path, &st) < 0 && errno == ENOENT)
		count->orphans++;
	return names_add(&count->tokens, str_of(hold->token));
}

/* A registration or a life that cannot be read keeps its agent from acting, and nobody else tells why. */
static void
check_registration(struct inspection *in, const char *agent)
{
	struct mr_agent found = { 0 };
	struct mr_error why = { 0 };

	if (maildir_find_agent(in->room, agent, &found, &why) == MR_OK)
		arena_free(found.own);
	else if (why.code == MR_CORRUPT)
		inspect_say(in, MR_PROBLEM, "agents", false, "look at 'agent' and the newest file in 'lives' by hand",
		    "%s", why.message);
}

static enum mr_rc
check_mailbox(struct inspection *in, const char *agent, struct held_count *held, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(listing_done) struct listing unread = { 0 };
	struct stat st;
	size_t orphans = held->orphans;

	if (mailbox_open_any(&box, in->md, agent, err) != MR_OK)
		return err->code == MR_NOTFOUND ? MR_OK : err->code;
	if (sys_stat(box.fd, "agent", &st) < 0) {
		if (list_folders(&box, MR_INBOX | MR_HELD, true, NULL, &unread, err) != MR_OK)
			return err->code;
		size_t buried = 0;
		if (unread.n > 0 && in->fix && bury_leftovers(in->md, agent, &buried, err) != MR_OK)
			return err->code;
		if (unread.n > 0)
			inspect_say(in, MR_PROBLEM, "mailboxes", buried > 0,
			    buried > 0 ? "they are among the dead letters now"
				       : "register that name again to read it, or let doctor --fix move it to the dead "
					 "letters",
			    "'agents/%s' has %zu unread messages, but no agent is registered there", agent, unread.n);
		return MR_OK;
	}
	check_registration(in, agent);
	if (in->fix) {
		size_t back = 0;

		if (maildir_sweep(in->room, agent, err) != MR_OK || life_return_gone(&box, &back, err) != MR_OK)
			return err->code;
		if (back > 0)
			inspect_say(in, MR_NOTE, "holds", true, "", "%zu messages of fenced lives of '%s' are back",
			    back, agent);
	}
	enum mr_rc rc = maildir_each_hold(in->room, agent, count_hold, held, err);

	if (rc == MR_OK && held->orphans > orphans)
		inspect_say(in, MR_NOTE, "holds", false, "it comes back when its time is up",
		    "'%s' has %zu held messages whose holder left no record", agent, held->orphans - orphans);
	return rc;
}

static enum mr_rc
check_mailboxes(struct inspection *in, struct held_count *held, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	enum mr_rc rc = agents_collect(in->md, false, &names, err);

	for (size_t i = 0; rc == MR_OK && i < names.n; i++)
		rc = check_mailbox(in, names.v[i], held, err);
	if (rc == MR_OK && in->fix)
		rc = commit_flush(in->md, err);
	return rc;
}

/* ---- Queues ---- */

static bool
note_visible(void *ctx, const struct dir_entry *entry)
{
	return entry->name[0] == '.' || names_add(ctx, str_of(entry->name));
}

static bool
count_claim(void *ctx, const struct queue_item *item)
{
	return count_hold(ctx, item->hold);
}

static enum mr_rc
count_work(void *ctx, const struct work_folder *at, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	enum mr_rc rc = dir_each(at->fd, note_visible, &names, err);

	*(size_t *)ctx += names.n;
	return rc;
}

/* A removal that was cut off leaves work in a folder that is no queue. */
static enum mr_rc
check_queue(struct inspection *in, const char *name, struct held_count *held, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	size_t left = 0;
	enum mr_rc rc = maildir_queue_each(in->room, name, QUEUE_CLAIMED, count_claim, held, err);

	if (rc != MR_NOTFOUND)
		return rc;
	rc = queue_open_any(&q, in->md, name, err);
	if (rc == MR_OK)
		rc = queue_each_folder(&q, QUEUE_WORK, count_work, &left, err);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	size_t buried = 0;
	if (left > 0 && in->fix && maildir_queue_remove(in->room, name, true, &buried, err) != MR_OK)
		return err->code;
	if (left > 0)
		inspect_say(in, MR_PROBLEM, "queues", buried > 0,
		    buried > 0 ? "they are among the dead letters now"
			       : "make that queue again to go on, or let doctor --fix move it to the dead letters",
		    "'queues/%s' has %zu messages of work, but there is no such queue", name, left);
	return MR_OK;
}

static enum mr_rc
check_queues(struct inspection *in, struct held_count *held, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	enum mr_rc rc = queue_names(in->md, &names, err);

	for (size_t i = 0; rc == MR_OK && i < names.n; i++)
		rc = check_queue(in, names.v[i], held, err);
	return rc;
}

/* ---- holds/ ---- */

struct tokens {
	struct inspection *in;
	const struct held_count *held;
	int fd;
	size_t dead, removed;
};

/* A file in holds/ that no held mail names and nobody locks says nothing any more. A fresh one may be
 * about to be used. */
static bool
check_token(void *ctx, const struct dir_entry *entry)
{
	struct tokens *tokens = ctx;
	struct stat st;

	if (!token_valid(str_of(entry->name)) || names_has(&tokens->held->tokens, entry->name) ||
	    sys_stat(tokens->fd, entry->name, &st) < 0 || lock_is_held(tokens->fd, entry->name) ||
	    (int64_t)st.st_mtime * 1000 > clock_now_ms() - SPOOL_STRAY_MS)
		return true;
	tokens->dead++;
	if (tokens->in->fix && sys_unlink(tokens->fd, entry->name) == 0)
		tokens->removed++;
	return true;
}

static enum mr_rc
check_holds(struct inspection *in, const struct held_count *held, struct mr_error *err)
{
	struct tokens tokens = { .in = in, .held = held, .fd = -1 };
	enum mr_rc rc = dir_open(in->md->root_fd, "holds", &tokens.fd, err);

	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	rc = dir_each(tokens.fd, check_token, &tokens, err);
	(void)sys_close(tokens.fd);
	if (tokens.dead > 0)
		inspect_say(in, MR_NOTE, "holds", tokens.removed == tokens.dead, "mailroom doctor --fix removes them",
		    "%zu files in 'holds' belong to holds that are over", tokens.dead);
	else if (rc == MR_OK)
		inspect_say(in, MR_FINE, "holds", false, "", "%zu messages are held", held->n);
	return rc;
}

/* ---- The disk ---- */

static enum mr_rc
check_space(struct inspection *in, struct mr_error *err)
{
	struct statvfs fs;

	if (fstatvfs(in->md->root_fd, &fs) < 0)
		return mr_fail_errno(err, "cannot look at the file system");
	uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize, all = (uint64_t)fs.f_blocks * fs.f_frsize;

	if (all > 0 && (free_bytes < SPACE_MIN || free_bytes < all / 100))
		inspect_say(in, MR_PROBLEM, "space", false, "make room: sends are refused when it is full",
		    "only %llu MiB are free", (unsigned long long)(free_bytes >> 20));
	else if (fs.f_files > 0 && fs.f_favail < fs.f_files / 100)
		inspect_say(in, MR_PROBLEM, "space", false,
		    "every message is a file: archive elsewhere or use a file "
		    "system with more inodes",
		    "only %llu inodes are free", (unsigned long long)fs.f_favail);
	else
		inspect_say(
		    in, MR_FINE, "space", false, "", "%llu MiB are free", (unsigned long long)(free_bytes >> 20));
	return MR_OK;
}

enum mr_rc
maildir_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	struct inspection in = { .room = room, .md = maildir_of(room), .fix = fix, .fn = fn, .ctx = ctx };
	struct held_count held = { .md = in.md };
	struct stat st;
	enum mr_rc rc = check_space(&in, err);

	if (rc == MR_OK && sys_stat_fd(in.md->root_fd, &st) == 0) {
		buf_adds(&in.path, ".");
		inspect_mode(&in, in.md->root_fd, ".", &st);
		buf_clear(&in.path);
	}
	if (rc == MR_OK)
		rc = inspect_walk(&in, in.md->root_fd, ".", 0, err);
	if (rc == MR_OK) {
		inspect_say_tree(&in);
		rc = check_spool(&in, err);
	}
	if (rc == MR_OK)
		rc = check_mailboxes(&in, &held, err);
	if (rc == MR_OK)
		rc = check_queues(&in, &held, err);
	if (rc == MR_OK)
		rc = check_holds(&in, &held, err);
	mr_names_done(&held.tokens);
	buf_done(&in.path);
	return rc;
}
