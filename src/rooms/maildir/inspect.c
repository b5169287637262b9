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
#include "rooms/maildir/queue.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FUTURE_MS ((int64_t)5 * 60 * 1000)
#define SPACE_MIN ((uint64_t)64 << 20)

struct inspection {
	struct mr_room *room;
	struct maildir *md;
	bool fix;
	mr_finding_fn *fn;
	void *ctx;
	struct buf path; /* of what is being looked at, relative to the room */
	size_t modes, modes_fixed, stray, stray_fixed, links, empty, future;
	char first_mode[NAME_LEN], first_stray[NAME_LEN], first_future[NAME_LEN];
};

static void say(struct inspection *in, enum mr_severity severity, const char *check, bool fixed, const char *advice,
    const char *fmt, ...) MR_PRINTF(6, 7);

static void
say(struct inspection *in, enum mr_severity severity, const char *check, bool fixed, const char *advice,
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

static void
remember_first(char ret[NAME_LEN], const struct inspection *in)
{
	if (ret[0] == '\0')
		(void)snprintf(ret, NAME_LEN, "%s", buf_z(&in->path));
}

/* ---- Every file and folder ---- */

static bool
is_temporary(const char *name)
{
	struct mr_str s = str_of(name);

	return str_ends(s, ".tmp") && (str_starts(s, "mr-") || name[0] == '.');
}

static void
check_mode(struct inspection *in, int dir_fd, const char *name, const struct stat *st)
{
	mode_t allowed = S_ISDIR(st->st_mode) ? in->md->dir_mode : in->md->file_mode;

	if ((st->st_mode & 0777 & ~allowed) == 0)
		return;
	in->modes++;
	remember_first(in->first_mode, in);
	if (!in->fix || st->st_uid != geteuid())
		return;
	mr_auto(sys_close_fd) int fd = sys_open(dir_fd, name, O_RDONLY | O_NONBLOCK, 0);

	if (fd >= 0 && sys_chmod_fd(fd, (st->st_mode & 07777 & allowed) | (allowed & 07000)) == 0)
		in->modes_fixed++;
}

static void
check_message(struct inspection *in, const char *name, const struct stat *st)
{
	struct file_name parts;

	if (st->st_size == 0) {
		in->empty++;
		say(in, MR_PROBLEM, "messages", false,
		    "a power cut on storage that is not safe does this; move it away by hand, it holds nothing",
		    "'%s' is empty", buf_z(&in->path));
	}
	if (name_parse(str_of(name), &parts) && parts.ours && id_time_ms(parts.id) > clock_now_ms() + FUTURE_MS) {
		in->future++;
		remember_first(in->first_future, in);
	}
}

static void
check_stray(struct inspection *in, int dir_fd, const char *name, const struct stat *st)
{
	if ((int64_t)st->st_mtime * 1000 > clock_now_ms() - SPOOL_STRAY_MS)
		return;
	in->stray++;
	remember_first(in->first_stray, in);
	if (in->fix && sys_unlink(dir_fd, name) == 0)
		in->stray_fixed++;
}

enum walk_kind { WALK_PLAIN, WALK_MAIL /* new/ or cur/, and where a queue keeps work */, WALK_SKIP };

/* queues/<name>/ready/<p>/<bucket>, or one of the plain folders, at any depth. */
static bool
is_work_folder(const char *path)
{
	static const char *const folders[] = { "ready", "delayed", "claimed", "failed", "done" };
	const char *inside = str_starts(str_of(path), "queues/") ? strchr(path + strlen("queues/"), '/') : NULL;

	for (size_t i = 0; inside && i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t len = strlen(folders[i]);
		if (strncmp(inside + 1, folders[i], len) == 0 && (inside[1 + len] == '/' || inside[1 + len] == '\0'))
			return true;
	}
	return false;
}

static enum walk_kind
kind_of_folder(const struct inspection *in, const char *name)
{
	if (strcmp(name, ".git") == 0)
		return WALK_SKIP;
	if (is_work_folder(buf_z(&in->path)))
		return WALK_MAIL;
	return strcmp(name, "new") == 0 || strcmp(name, "cur") == 0 ? WALK_MAIL : WALK_PLAIN;
}

struct tree {
	struct inspection *in;
	int fd;
	enum walk_kind kind;
	unsigned depth;
	enum mr_rc rc;
	struct mr_error *err;
};

static bool walk_entry(void *ctx, const struct dir_entry *entry);

static enum mr_rc
walk_tree(struct inspection *in, int parent_fd, const char *name, unsigned depth, struct mr_error *err)
{
	struct tree tree = { .in = in, .fd = -1, .kind = kind_of_folder(in, name), .depth = depth, .err = err };
	enum mr_rc rc = MR_OK;

	if (tree.kind == WALK_SKIP || depth > 12)
		return MR_OK;
	if (dir_open(parent_fd, name, &tree.fd, err) != MR_OK) {
		if (err->code != MR_NOTFOUND)
			say(in, MR_PROBLEM, "folders", false, "look at it by hand", "%s", err->message);
		return MR_OK;
	}
	rc = dir_each(tree.fd, walk_entry, &tree, err);
	(void)sys_close(tree.fd);
	return rc == MR_OK ? tree.rc : rc;
}

static bool
walk_entry(void *ctx, const struct dir_entry *entry)
{
	struct tree *tree = ctx;
	struct inspection *in = tree->in;
	size_t len = in->path.len;
	struct stat st;

	if (sys_stat(tree->fd, entry->name, &st) < 0)
		return true; /* mail moves while we look */
	buf_addf(&in->path, "%s%s", len ? "/" : "", entry->name);
	if (S_ISLNK(st.st_mode)) {
		in->links++;
		say(in, MR_PROBLEM, "links", false,
		    "mailroom never follows it; remove it if you did not put "
		    "it there",
		    "'%s' is a symbolic link", buf_z(&in->path));
	} else {
		check_mode(in, tree->fd, entry->name, &st);
		if (S_ISDIR(st.st_mode))
			tree->rc = walk_tree(in, tree->fd, entry->name, tree->depth + 1, tree->err);
		else if (is_temporary(entry->name))
			check_stray(in, tree->fd, entry->name, &st);
		else if (tree->kind == WALK_MAIL && S_ISREG(st.st_mode) && entry->name[0] != '.')
			check_message(in, entry->name, &st);
	}
	in->path.len = len;
	if (in->path.ptr)
		in->path.ptr[len] = '\0';
	return tree->rc == MR_OK;
}

static void
say_tree(struct inspection *in)
{
	if (in->modes)
		say(in, MR_PROBLEM, "modes", in->modes == in->modes_fixed, "mailroom doctor --fix closes them",
		    "%zu files or folders are open to others, the first is '%s'", in->modes, in->first_mode);
	else
		say(in, MR_FINE, "modes", false, "", "nothing is open to others");
	if (in->stray)
		say(in, MR_NOTE, "leftovers", in->stray == in->stray_fixed, "mailroom doctor --fix removes them",
		    "%zu temporary files of crashed commands, the first is '%s'", in->stray, in->first_stray);
	else
		say(in, MR_FINE, "leftovers", false, "", "no temporary files were left behind");
	if (in->future)
		say(in, MR_PROBLEM, "clock", false, "compare this machine's clock with the others'",
		    "%zu messages are from the future, the first is '%s'", in->future, in->first_future);
	if (!in->links && !in->empty)
		say(in, MR_FINE, "messages", false, "", "no empty messages, no planted links");
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
		say(in, MR_FINE, "spool", false, "", "message '%s' is being delivered right now", id);
	else if (rc == MR_OK)
		say(in, MR_NOTE, "spool", false, "any sending command completes it",
		    "the sender of message '%s' died before all %zu recipients had it", id, job.to.n);
	else
		say(in, MR_PROBLEM, "spool", false,
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
		say(in, MR_PROBLEM, "spool", false, failed.hint, "%s", failed.message);
	enum mr_rc rc = dir_open(in->md->root_fd, "spool", &fd, err);

	if (rc == MR_OK)
		rc = dir_each(fd, collect_id, &ids, err);
	for (size_t i = 0; rc == MR_OK && i < ids.n; i++)
		check_record(in, ids.v[i]);
	if (rc == MR_OK && ids.n == 0)
		say(in, MR_FINE, "spool", false, "", "no delivery is half done");
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
		say(in, MR_PROBLEM, "agents", false, "look at 'agent' and the newest file in 'lives' by hand", "%s",
		    why.message);
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
			say(in, MR_PROBLEM, "mailboxes", buried > 0,
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
			say(in, MR_NOTE, "holds", true, "", "%zu messages of fenced lives of '%s' are back", back,
			    agent);
	}
	enum mr_rc rc = maildir_each_hold(in->room, agent, count_hold, held, err);

	if (rc == MR_OK && held->orphans > orphans)
		say(in, MR_NOTE, "holds", false, "it comes back when its time is up",
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
		say(in, MR_PROBLEM, "queues", buried > 0,
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
		say(in, MR_NOTE, "holds", tokens.removed == tokens.dead, "mailroom doctor --fix removes them",
		    "%zu files in 'holds' belong to holds that are over", tokens.dead);
	else if (rc == MR_OK)
		say(in, MR_FINE, "holds", false, "", "%zu messages are held", held->n);
	return rc;
}

/* ---- The disk ---- */

static enum mr_rc
check_storage(struct inspection *in, struct mr_error *err)
{
	struct mr_storage storage;
	struct statvfs fs;

	if (maildir_storage(in->room, &storage, err) != MR_OK)
		return err->code;
	if (storage.power_safe)
		say(in, MR_FINE, "storage", false, "", "%s keeps accepted mail through a power cut",
		    storage.file_system);
	else
		say(in, MR_NOTE, "storage", false, "put the room on ext4 with a journal, xfs or btrfs", "%s: %s",
		    storage.file_system, storage.reason);
	if (fstatvfs(in->md->root_fd, &fs) < 0)
		return mr_fail_errno(err, "cannot look at the file system");
	uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize, all = (uint64_t)fs.f_blocks * fs.f_frsize;

	if (all > 0 && (free_bytes < SPACE_MIN || free_bytes < all / 100))
		say(in, MR_PROBLEM, "space", false, "make room: sends are refused when it is full",
		    "only %llu MiB are free", (unsigned long long)(free_bytes >> 20));
	else if (fs.f_files > 0 && fs.f_favail < fs.f_files / 100)
		say(in, MR_PROBLEM, "space", false,
		    "every message is a file: archive elsewhere or use a file "
		    "system with more inodes",
		    "only %llu inodes are free", (unsigned long long)fs.f_favail);
	else
		say(in, MR_FINE, "space", false, "", "%llu MiB are free", (unsigned long long)(free_bytes >> 20));
	return MR_OK;
}

enum mr_rc
maildir_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	struct inspection in = { .room = room, .md = maildir_of(room), .fix = fix, .fn = fn, .ctx = ctx };
	struct held_count held = { .md = in.md };
	struct stat st;
	enum mr_rc rc = check_storage(&in, err);

	if (rc == MR_OK && sys_stat_fd(in.md->root_fd, &st) == 0) {
		buf_adds(&in.path, ".");
		check_mode(&in, in.md->root_fd, ".", &st);
		buf_clear(&in.path);
	}
	if (rc == MR_OK)
		rc = walk_tree(&in, in.md->root_fd, ".", 0, err);
	if (rc == MR_OK) {
		say_tree(&in);
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
