/* SPDX-License-Identifier: MIT */
/* plan.c - one settings file: what is in it, and what is to be in it. Nothing is written here. */
#include "base/file.h"
#include "base/sys.h"
#include "cli/setup/setup.h"
#include "message/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#define SETTINGS_MAX ((size_t)64 << 20)
#define LINKS_MAX 40

void
file_done(struct setup_file *f)
{
	buf_done(&f->before);
	buf_done(&f->after);
	mr_names_done(&f->memory.folders);
	mr_names_done(&f->memory.added);
	mr_names_done(&f->left);
	*f = (struct setup_file){ 0 };
}

void
text_take(struct buf *text, struct buf *changed)
{
	struct buf old = *text;

	if (changed->failed) {
		text->failed = true;
		return;
	}
	*text = *changed;
	*changed = old;
	buf_clear(changed);
}

enum mr_rc
text_object(struct buf *text, struct jsonc *ret, struct mr_error *err)
{
	enum mr_rc rc = text->failed ? mr_nomem(err) : jsonc_parse(buf_str(text), ret, err);

	if (rc == MR_OK && ret->root->kind != JSON_OBJECT) {
		jsonc_done(ret);
		return mr_fail(err, MR_CORRUPT, "line %zu: it is no object", splice_line(buf_str(text), 0));
	}
	return rc;
}

/* ---- Reading ---- */

/* Without symbolic links, also where its end is not there yet. */
static const char *
real_folder(struct setup *s, const char *path)
{
	mr_auto(buf_done) struct buf whole = BUF_INIT;
	size_t len = strlen(path);

	for (;; len--) {
		mr_auto(free_ptr) char *part = strndup(path, len);
		mr_auto(free_ptr) char *real =
		    part && (len == 0 || path[len] == '/' || !path[len]) ? realpath(len > 0 ? part : "/", NULL) : NULL;

		if (!part)
			return NULL;
		if (!real && len > 0)
			continue;
		buf_addf(&whole, "%s%s", real && strcmp(real, "/") != 0 ? real : "", path + len);
		return arena_dup(&s->cli->own, whole.len > 0 ? buf_str(&whole) : STR("/"));
	}
}

/* Symbolic links are followed to the file that is to be written: the link stays a link. */
static enum mr_rc
follow_links(struct setup *s, struct setup_file *f, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;
	char target[PATH_MAX];

	buf_adds(&path, f->path);
	for (int i = 0; buf_ok(&path); i++) {
		ssize_t len = readlink(buf_z(&path), target, sizeof target - 1);

		if (len < 0)
			break;
		if (i == LINKS_MAX)
			return mr_fail(err, MR_REFUSED, "'%s' is a symbolic link that leads nowhere", f->path);
		target[len] = '\0';
		if (target[0] == '/')
			path.len = 0;
		else
			while (path.len > 0 && path.ptr[path.len - 1] != '/')
				path.len--;
		buf_adds(&path, target);
	}
	if (!buf_ok(&path))
		return mr_nomem(err);
	char *slash = strrchr(path.ptr, '/');

	*slash = '\0';
	f->name = arena_dup(&s->cli->own, str_of(slash + 1));
	f->folder = real_folder(s, path.ptr);
	return f->folder && f->name ? MR_OK : mr_nomem(err);
}

static enum mr_rc
read_file(struct setup *s, struct setup_file *f, struct mr_error *err)
{
	mr_auto(sys_close_fd) int dir_fd = -1, fd = -1;
	enum mr_rc rc = follow_links(s, f, err);

	if (rc == MR_OK)
		rc = dir_open(AT_FDCWD, f->folder, &dir_fd, err);
	if (rc == MR_NOTFOUND) {
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	if (rc != MR_OK)
		return rc;
	fd = sys_open(dir_fd, f->name, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0 && errno == ENOENT)
		return MR_OK;
	if (fd < 0 || sys_stat_fd(fd, &f->st) < 0)
		return mr_fail_errno(err, "cannot read '%s'", f->path);
	if (!S_ISREG(f->st.st_mode))
		return mr_fail(err, MR_REFUSED, "'%s' is no regular file", f->path);
	f->there = true;
	rc = file_read_fd(fd, SETTINGS_MAX, &f->before, err);
	return rc == MR_OK ? rc : mr_wrap(err, "cannot read '%s'", f->path);
}

/* ---- Editing ---- */

/* In: hooks, server, permission; out: the other way round (see splice.h). */
static enum mr_rc
edit_json(const struct setup *s, struct setup_file *f, enum setup_way way, struct buf *text, struct mr_error *err)
{
	bool keep_root = f->memory.was == WAS_THERE;
	enum mr_rc rc = MR_OK;

	if (way == SETUP_OUT && (f->parts & SETUP_ALLOW))
		rc = allow_edit(s, f, way, keep_root, text, err);
	if (way == SETUP_OUT && rc == MR_OK && (f->parts & SETUP_SERVER))
		rc = server_edit(s, way, keep_root, text, err);
	if (rc == MR_OK && (f->parts & SETUP_HOOKS))
		rc = hooks_edit(s, way, keep_root, text, err);
	if (way == SETUP_IN && rc == MR_OK && (f->parts & SETUP_SERVER))
		rc = server_edit(s, way, keep_root, text, err);
	if (way == SETUP_IN && rc == MR_OK && (f->parts & SETUP_ALLOW))
		rc = allow_edit(s, f, way, keep_root, text, err);
	return rc;
}

/* A file without anything in it gets an object behind whatever white space it has; a new one ends in a newline, which
 * is how they can be told apart later. */
static enum mr_rc
fill_blank(const struct setup *s, struct setup_file *f, struct buf *text, struct mr_error *err)
{
	mr_auto(buf_done) struct buf object = BUF_INIT;
	enum mr_rc rc;

	buf_adds(&object, "{}");
	rc = edit_json(s, f, SETUP_IN, &object, err);
	jsonc_pretty(buf_str(&object), splice_newline(buf_str(text)), text);
	if (!f->there)
		buf_addc(text, '\n');
	text->failed |= object.failed;
	return rc;
}

static enum mr_rc
edit(const struct setup *s, struct setup_file *f, enum setup_way way, struct buf *text, struct mr_error *err)
{
	enum mr_rc rc;

	if (f->parts & SETUP_TOML)
		rc = codex_edit(s, f, way, text, err);
	else if (!splice_is_blank(buf_str(text)))
		rc = edit_json(s, f, way, text, err);
	else
		rc = way == SETUP_IN ? fill_blank(s, f, text, err) : MR_OK;
	return rc == MR_OK && text->failed ? mr_nomem(err) : rc;
}

/* ---- What was there before us ---- */

/* Is there anything that can only be ours? A permission or a writable root can be the user's own. */
static enum mr_rc
is_fresh(const struct setup *s, struct setup_file *f, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	enum mr_rc rc;

	buf_add(&text, buf_str(&f->before));
	f->keep_all = true;
	rc = edit(s, f, SETUP_OUT, &text, err);
	f->keep_all = false;
	f->fresh = str_eq(buf_str(&text), buf_str(&f->before));
	return rc;
}

static enum mr_rc
note_list(const struct setup_file *f, struct buf *text, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(jsonc_done) struct jsonc doc = { 0 };
	bool fine = true;

	if (f->parts & SETUP_TOML)
		return codex_roots(text, ret, err);
	if (!(f->parts & SETUP_ALLOW) || splice_is_blank(buf_str(text)))
		return MR_OK;
	TRY(text_object(text, &doc, err));
	for (size_t i = 0; i < setup_permissions_n + 2 && fine; i++) {
		const char *permission = i < 2 ? setup_old_permissions[i] : setup_permissions[i - 2];

		if (allow_has(doc.root, permission))
			fine = names_add(ret, str_of(permission));
	}
	return fine ? MR_OK : mr_nomem(err);
}

/* In: what is in it now and was not before is ours, as is what was ours and is still there. Out: what is left. */
static enum mr_rc
note_added(struct setup_file *f, enum setup_way way, struct mr_error *err)
{
	struct mr_names before = { 0 }, after = { 0 }, added = { 0 };
	enum mr_rc rc = note_list(f, &f->before, &before, err);

	if (rc == MR_OK)
		rc = note_list(f, &f->after, &after, err);
	for (size_t i = 0; i < after.n && rc == MR_OK && way == SETUP_IN; i++)
		if ((!names_has(&before, after.v[i]) || names_has(&f->memory.added, after.v[i])) &&
		    !names_add(&added, str_of(after.v[i])))
			rc = mr_nomem(err);
	if (way == SETUP_IN) {
		mr_names_done(&f->memory.added);
		f->memory.added = added;
		mr_names_done(&after);
	} else if (!(f->parts & SETUP_TOML)) { /* a root may be anybody's: only permissions speak of mailroom */
		f->left = after;
	} else {
		mr_names_done(&after);
	}
	mr_names_done(&before);
	return rc;
}

/* Folders that saving will have to make. */
static enum mr_rc
note_folders(struct setup_file *f, struct mr_error *err)
{
	for (size_t i = 1; i <= strlen(f->folder); i++) {
		mr_auto(buf_done) struct buf part = BUF_INIT;

		if (f->folder[i] != '/' && f->folder[i] != '\0')
			continue;
		buf_add(&part, (struct mr_str){ f->folder, i });
		if (access(buf_z(&part), F_OK) < 0 && !names_add(&f->memory.folders, buf_str(&part)))
			return mr_nomem(err);
	}
	return MR_OK;
}

static enum mr_rc
remember(const struct setup *s, struct setup_file *f, struct mr_error *err)
{
	enum mr_rc rc = is_fresh(s, f, err);

	if (rc != MR_OK || !f->fresh)
		return rc;
	mr_names_done(&f->memory.folders);
	mr_names_done(&f->memory.added);
	f->memory = (struct setup_memory){ 0 };
	f->memory.was = !f->there ? WAS_MISSING : splice_is_blank(buf_str(&f->before)) ? WAS_BLANK : WAS_THERE;
	return note_folders(f, err);
}

/* ---- The plan ---- */

/* Nothing is left of it but what we wrote around it. */
static bool
is_gone(const struct setup_file *f)
{
	struct mr_str before = buf_str(&f->before), after = buf_str(&f->after);

	if (!splice_is_blank(after) || f->memory.was == WAS_BLANK || f->memory.was == WAS_THERE)
		return false;
	if (f->memory.was == WAS_MISSING)
		return true;
	if (f->parts & SETUP_TOML)
		return after.len == 0 && str_ends(before, "\n");
	return str_eq(after, STR("\n")) && str_starts(before, "{");
}

enum mr_rc
read_settings(struct setup *s, const struct setup_where *where, struct setup_file *f, struct mr_error *err)
{
	file_done(f);
	f->parts = where->parts;
	f->path = setup_path(s, where, err);
	return f->path ? read_file(s, f, err) : err->code;
}

enum mr_rc
plan_file(
    struct setup *s, const struct setup_where *where, enum setup_way way, struct setup_file *f, struct mr_error *err)
{
	enum mr_rc rc;

	rc = read_settings(s, where, f, err);
	if (rc != MR_OK)
		return rc;
	buf_add(&f->after, buf_str(&f->before));
	rc = setup_memory_load(s, f, err);
	if (rc == MR_OK && way == SETUP_IN)
		rc = remember(s, f, err);
	if (rc == MR_OK)
		rc = edit(s, f, way, &f->after, err);
	if (rc == MR_OK)
		rc = note_added(f, way, err);
	if (rc != MR_OK) {
		char hint[sizeof err->hint];

		(void)snprintf(hint, sizeof hint, "%s", err->hint);
		(void)mr_wrap(err, "cannot set up '%s'", f->path);
		return hint[0] ? mr_hint(err, "%s", hint)
			       : mr_hint(err, "no file was changed; mend it, or move it away, and run this again");
	}
	f->learnt = way == SETUP_IN;
	f->changed = !f->there ? f->after.len > 0 : !str_eq(buf_str(&f->before), buf_str(&f->after));
	f->gone = way == SETUP_OUT && f->there && f->changed && is_gone(f);
	return MR_OK;
}
