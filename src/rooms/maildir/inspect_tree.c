/* SPDX-License-Identifier: MIT */
/* inspect_tree.c - doctor's walk over every file and folder of a room: modes, stray temporary files, links, empty
 * messages. */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/maildir/inspect.h"
#include "rooms/maildir/queue.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define FUTURE_MS ((int64_t)5 * 60 * 1000)

static void
remember_first(char ret[NAME_LEN], const struct inspection *in)
{
	if (ret[0] == '\0')
		(void)snprintf(ret, NAME_LEN, "%s", buf_z(&in->path));
}

static bool
is_temporary(const char *name)
{
	struct mr_str s = str_of(name);

	return str_ends(s, ".tmp") && (str_starts(s, "mr-") || name[0] == '.');
}

void
inspect_mode(struct inspection *in, int dir_fd, const char *name, const struct stat *st)
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
		inspect_say(in, MR_PROBLEM, "messages", false,
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

enum mr_rc
inspect_walk(struct inspection *in, int parent_fd, const char *name, unsigned depth, struct mr_error *err)
{
	struct tree tree = { .in = in, .fd = -1, .kind = kind_of_folder(in, name), .depth = depth, .err = err };
	enum mr_rc rc = MR_OK;

	if (tree.kind == WALK_SKIP || depth > 12)
		return MR_OK;
	if (dir_open(parent_fd, name, &tree.fd, err) != MR_OK) {
		if (err->code != MR_NOTFOUND)
			inspect_say(in, MR_PROBLEM, "folders", false, "look at it by hand", "%s", err->message);
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
		inspect_say(in, MR_PROBLEM, "links", false,
		    "mailroom never follows it; remove it if you did not put "
		    "it there",
		    "'%s' is a symbolic link", buf_z(&in->path));
	} else {
		inspect_mode(in, tree->fd, entry->name, &st);
		if (S_ISDIR(st.st_mode))
			tree->rc = inspect_walk(in, tree->fd, entry->name, tree->depth + 1, tree->err);
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

void
inspect_say_tree(struct inspection *in)
{
	if (in->modes)
		inspect_say(in, MR_PROBLEM, "modes", in->modes == in->modes_fixed, "mailroom doctor --fix closes them",
		    "%zu files or folders are open to others, the first is '%s'", in->modes, in->first_mode);
	else
		inspect_say(in, MR_FINE, "modes", false, "", "nothing is open to others");
	if (in->stray)
		inspect_say(in, MR_NOTE, "leftovers", in->stray == in->stray_fixed,
		    "mailroom doctor --fix removes them", "%zu temporary files of crashed commands, the first is '%s'",
		    in->stray, in->first_stray);
	else
		inspect_say(in, MR_FINE, "leftovers", false, "", "no temporary files were left behind");
	if (in->future)
		inspect_say(in, MR_PROBLEM, "clock", false, "compare this machine's clock with the others'",
		    "%zu messages are from the future, the first is '%s'", in->future, in->first_future);
	if (!in->links && !in->empty)
		inspect_say(in, MR_FINE, "messages", false, "", "no empty messages, no planted links");
}
