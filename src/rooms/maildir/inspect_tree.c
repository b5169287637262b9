/* SPDX-License-Identifier: MIT */
/* inspect_tree.c - doctor's walk over every file and folder of a room: modes, owners, times, stray temporary files,
 * what does not belong there. */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/inspect.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define DEEPEST 12

static const char *const ours_at_the_top[] = { "room", ".gitignore", ".git", "agents", "dead", "spool", "keys", "holds",
	"past", "records", "groups", "queues", "channels", "nudges", "types", "links", "reserve", ATTIC };

static bool
is_temporary(const char *name)
{
	struct mr_str s = str_of(name);

	return str_ends(s, ".tmp") && (str_starts(s, "mr-") || name[0] == '.');
}

/* ---- Modes, owners, times ---- */

void
inspect_mode(struct inspection *in, int dir_fd, const char *name, const struct stat *st)
{
	bool folder = S_ISDIR(st->st_mode), fixed = false;
	mode_t allowed = folder ? in->md->dir_mode : in->md->file_mode, needed = folder ? 0700 : 0400;
	bool open = (st->st_mode & 0777 & ~allowed) != 0;

	if (!open && (st->st_mode & needed) == needed)
		return;
	in->modes++;
	if (in->f.fix && st->st_uid == geteuid()) {
		mr_auto(sys_close_fd) int fd = sys_open(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);

		fixed = fd >= 0 && sys_chmod_fd(fd, (st->st_mode & 07777 & allowed) | needed | (allowed & 07000)) == 0;
	}
	findings_say(&in->f,
	    &(struct mr_finding){ .severity = MR_PROBLEM,
		.code = "modes",
		.path = buf_z(&in->path),
		.why = open ? "others on this machine can read it or write into it; mailroom makes nothing so open, "
			      "whatever "
			      "the umask"
			    : "its own owner cannot use it, so commands fail there",
		.fix = fixed ? "its mode was put right" : "mailroom doctor --fix puts it right, if it is yours",
		.fixed = fixed },
	    "'%s' has mode %04o", buf_z(&in->path), (unsigned)st->st_mode & 07777);
}

static void
check_owner(struct inspection *in, const struct stat *st)
{
	bool shared = (in->md->dir_mode & 070) != 0;

	if (shared ? st->st_gid == in->group : st->st_uid == in->owner)
		return;
	/* Not ours to change: who may chown could be led to another file by a hard link that somebody made here. */
	findings_say(&in->f,
	    &(struct mr_finding){ .severity = MR_PROBLEM,
		.code = "owners",
		.path = buf_z(&in->path),
		.why = "a command that another user ran (sudo?) made it, and the owner of the room may not be able to "
		       "use it",
		.fix = shared ? "give it to the room's group: chgrp" : "give it to the owner of the room: sudo chown" },
	    shared ? "'%s' belongs to group %lu, the room to %lu" : "'%s' belongs to user %lu, the room to %lu",
	    buf_z(&in->path), shared ? (unsigned long)st->st_gid : (unsigned long)st->st_uid,
	    shared ? (unsigned long)in->group : (unsigned long)in->owner);
}

static void
check_mtime(struct inspection *in, const struct stat *st)
{
	int64_t ahead = (int64_t)st->st_mtim.tv_sec * 1000 - clock_now_ms();
	char text[24];

	if (ahead <= FINDINGS_FUTURE_MS)
		return;
	duration_text(ahead, text);
	findings_say(&in->f,
	    &(struct mr_finding){ .severity = MR_PROBLEM,
		.code = "clock",
		.path = buf_z(&in->path),
		.why = "this machine's clock is behind, or was ahead when it was written: until then it passes for "
		       "new, and "
		       "what goes by age (leftovers, 'last seen') waits",
		.fix = "compare this machine's clock (date -u) with others'; touch(1) sets the file's time" },
	    "'%s' was changed in the future: %s ahead of the clock", buf_z(&in->path), text);
}

/* ---- What does not belong there ---- */

/* The message of a fan-out gets its name before its record, without which it means nothing. */
static bool
is_unrecorded(const struct inspection *in, int dir_fd, const char *name)
{
	char record[NAME_LEN];
	struct stat st;

	if (!str_starts(buf_str(&in->path), "spool/") || !str_ends(str_of(name), ".mr"))
		return false;
	(void)snprintf(record, sizeof record, "%.*s", (int)(strlen(name) - strlen(".mr")), name);
	return sys_stat(dir_fd, record, &st) < 0 && errno == ENOENT;
}

static void
check_stray(struct inspection *in, int dir_fd, const char *name, const struct stat *st)
{
	char since[24];

	if (findings_age_ms(st) < FINDINGS_STRAY_MS || findings_in_use(dir_fd, name))
		return;
	in->stray++;
	duration_text(findings_age_ms(st), since);
	findings_take(&in->f, dir_fd, name,
	    &(struct mr_finding){ .severity = MR_NOTE,
		.code = "leftovers",
		.path = buf_z(&in->path),
		.why =
		    "its writer was killed before it had its name: nobody reads it, and nobody was promised anything",
		.fix = "mailroom doctor --fix moves it to the attic" },
	    "'%s' is a temporary file, %s old", buf_z(&in->path), since);
}

static void
say_foreign(struct inspection *in, enum mr_severity severity, const char *what, const char *why)
{
	findings_say(&in->f,
	    &(struct mr_finding){ .severity = severity,
		.code = "foreign",
		.path = buf_z(&in->path),
		.why = why,
		.fix = "see whose it is, and move it away; mailroom leaves it alone" },
	    "'%s' %s", buf_z(&in->path), what);
}

/* What is not ours is not touched, and not looked into. */
static bool
is_ours_at_the_top(struct inspection *in, const char *name)
{
	for (size_t i = 0; i < sizeof ours_at_the_top / sizeof ours_at_the_top[0]; i++)
		if (strcmp(name, ours_at_the_top[i]) == 0)
			return true;
	if (is_temporary(name))
		return true;
	say_foreign(in, MR_NOTE, "is no part of a room", "somebody put it there, or a newer mailroom did");
	return false;
}

/* ---- The walk ---- */

enum walk_kind { WALK_PLAIN, WALK_MAIL /* new/ or cur/ */, WALK_WORK /* where a queue keeps work */, WALK_SKIP };

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
kind_of_folder(const struct inspection *in, const char *name, unsigned depth)
{
	if (strcmp(name, ".git") == 0 || (depth == 1 && strcmp(name, ATTIC) == 0))
		return WALK_SKIP;
	if (is_work_folder(buf_z(&in->path)))
		return WALK_WORK;
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

enum mr_rc
inspect_walk(struct inspection *in, int parent_fd, const char *name, unsigned depth, struct mr_error *err)
{
	struct tree tree = { .in = in, .fd = -1, .kind = kind_of_folder(in, name, depth), .depth = depth, .err = err };
	enum mr_rc rc = MR_OK;

	if (tree.kind == WALK_SKIP || depth > DEEPEST)
		return MR_OK;
	if (dir_open(parent_fd, name, &tree.fd, err) != MR_OK) {
		if (err->code != MR_NOTFOUND)
			findings_say(&in->f,
			    &(struct mr_finding){ .severity = MR_PROBLEM,
				.code = "folders",
				.path = buf_z(&in->path),
				.why = "what is in it cannot be seen, and commands that need it fail",
				.fix = err->hint },
			    "%s", err->message);
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	in->keywords = tree.kind == WALK_MAIL ? inspect_keywords(parent_fd) : 0;
	rc = dir_each(tree.fd, walk_entry, &tree, err);
	(void)sys_close(tree.fd);
	return rc == MR_OK ? tree.rc : rc;
}

static void
look_at_file(struct tree *tree, const char *name, const struct stat *st)
{
	struct inspection *in = tree->in;

	if (!S_ISREG(st->st_mode)) {
		say_foreign(
		    in, MR_PROBLEM, "is neither a file nor a folder", "nothing of mailroom is a pipe or a device");
		return;
	}
	inspect_mode(in, tree->fd, name, st);
	check_mtime(in, st);
	if (is_temporary(name) || is_unrecorded(in, tree->fd, name))
		check_stray(in, tree->fd, name, st);
	else if (tree->kind != WALK_PLAIN && name[0] != '.')
		inspect_mail(in, tree->fd, name, st);
}

static void
look_at_folder(struct tree *tree, const char *name, const struct stat *st)
{
	struct inspection *in = tree->in;

	inspect_mode(in, tree->fd, name, st);
	if (tree->kind == WALK_MAIL)
		say_foreign(in, MR_PROBLEM, "is a folder where only mail can be", "mail in it is seen by nobody");
	else
		tree->rc = inspect_walk(in, tree->fd, name, tree->depth + 1, tree->err);
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
	bool ours = tree->depth > 0 || is_ours_at_the_top(in, entry->name);

	if (S_ISLNK(st.st_mode)) {
		findings_say(&in->f,
		    &(struct mr_finding){ .severity = MR_PROBLEM,
			.code = "symlinks",
			.path = buf_z(&in->path),
			.why = "somebody planted it: mailroom makes none and follows none",
			.fix = "see where it leads (ls -l), then remove it" },
		    "'%s' is a symbolic link", buf_z(&in->path));
	} else if (ours) {
		check_owner(in, &st);
		if (S_ISDIR(st.st_mode))
			look_at_folder(tree, entry->name, &st);
		else
			look_at_file(tree, entry->name, &st);
	}
	in->path.len = len;
	if (in->path.ptr)
		in->path.ptr[len] = '\0';
	return tree->rc == MR_OK;
}
