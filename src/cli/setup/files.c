/* SPDX-License-Identifier: MIT */
/*
 * files.c - one settings file: read it, plan what is to be in it, write it.
 *
 * Writing: whole and durable beside the old file, with its mode and owner, then renamed over it. Right before that the
 * old one is read again: a harness writes its settings whenever it likes, and a change of its own must not be lost.
 * Between that look and the rename there is no lock that all of them know.
 *
 * What the text of a file cannot tell is kept in a record (struct setup_prior), one small file each in the
 * configuration folder, where no sandbox can write, because --remove believes it: whether the file and its folder were
 * there before us, and which permissions and writable roots --apply put in, as they could as well be the user's own. It
 * is written before the settings file is changed. Without it the text alone decides, and permissions and roots stay.
 */
#include "base/file.h"
#include "base/findings.h"
#include "base/id.h"
#include "base/sys.h"
#include "cli/setup/setup.h"
#include "message/header.h"
#include "message/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#define SETTINGS_MAX ((size_t)64 << 20)
#define LINKS_MAX 40
#define PRIOR_MAX ((size_t)64 << 10)
#define PRIOR_NAME_LEN 32
#define LOCK_WAIT_MS 20000
#define RANDOM_LEN 12

void
file_done(struct setup_file *f)
{
	buf_done(&f->before);
	buf_done(&f->after);
	mr_names_done(&f->prior.folders);
	mr_names_done(&f->prior.added);
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
	TRY(mr_got(!text->failed, err));
	TRY(jsonc_parse(buf_str(text), ret, err));
	if (ret->root.kind == JSON_OBJECT)
		return MR_OK;
	jsonc_done(ret);
	return mr_fail(err, MR_CORRUPT, "line %zu: it is not an object", splice_line(buf_str(text), 0));
}

/* ---- Reading ---- */

/* Without symbolic links, also where its end is not there yet. The caller frees it; NULL: out of memory. */
static char *
real_folder(const char *path)
{
	char *real = realpath(path, NULL);
	mr_auto(free_ptr) char *parent = real || strcmp(path, "/") == 0 ? NULL : path_parent(path);
	mr_auto(free_ptr) char *above = parent ? real_folder(parent) : NULL;

	return above ? path_join(above, path_name(path)) : real;
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
	TRY(mr_got(buf_ok(&path), err));
	mr_auto(free_ptr) char *parent = path_parent(path.ptr), *folder = parent ? real_folder(parent) : NULL;

	f->name = arena_dup(&s->cli->own, str_of(path_name(path.ptr)));
	f->folder = folder ? arena_dup(&s->cli->own, str_of(folder)) : NULL;
	return mr_got(f->folder && f->name, err);
}

enum mr_rc
read_settings(struct setup *s, const struct setup_where *where, struct setup_file *f, struct mr_error *err)
{
	mr_auto(sys_close_fd) int dir_fd = -1, fd = -1;

	file_done(f);
	f->parts = where->parts;
	f->path = setup_path(s, where, err);
	if (!f->path)
		return err->code;
	TRY(follow_links(s, f, err));
	enum mr_rc rc = dir_open(AT_FDCWD, f->folder, &dir_fd, err);

	if (rc == MR_NOTFOUND) {
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	TRY(rc);
	fd = sys_open(dir_fd, f->name, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0 && errno == ENOENT)
		return MR_OK;
	if (fd < 0 || sys_stat_fd(fd, &f->st) < 0)
		return mr_fail_errno(err, "cannot read '%s'", f->path);
	if (!S_ISREG(f->st.st_mode))
		return mr_fail(err, MR_REFUSED, "'%s' is not a regular file", f->path);
	f->there = true;
	rc = file_read_fd(fd, SETTINGS_MAX, &f->before, err);
	return rc == MR_OK ? rc : mr_wrap(err, "cannot read '%s'", f->path);
}

bool
settings_wanted(struct setup *s, const struct setup_where *where, enum setup_way way)
{
	mr_auto(file_done) struct setup_file f = { 0 };
	mr_auto(jsonc_done) struct jsonc doc = { 0 };
	struct setup_where settings = *where;

	if (s->project && !where->in_project)
		return false;
	if (!where->only_with || way == SETUP_OUT)
		return true;
	settings.name = "settings.json";
	if (read_settings(s, &settings, &f, IGNORED) != MR_OK || text_object(&f.before, &doc, IGNORED) != MR_OK)
		return false;
	return json_get(doc.root, where->only_with).kind == JSON_TRUE;
}

/* ---- The record of what was there before us ---- */

static const char *const was_words[] = { "unknown", "missing", "blank", "there" };

static enum mr_rc
open_records(const struct setup *s, bool make, int *ret_fd, struct mr_error *err)
{
	if (!s->config_dir)
		return mr_fail(err, MR_NOTFOUND, "there is no configuration folder\nset HOME or XDG_CONFIG_HOME");
	return dir_below(s->config_dir, "setup", make, true, ret_fd, err);
}

static void
prior_name(const struct setup_file *f, char ret[65])
{
	sha256_hex(str_of(f->path), ret);
	ret[PRIOR_NAME_LEN] = '\0';
}

int
prior_lock(const struct setup *s, enum setup_way way)
{
	mr_auto(sys_close_fd) int dir_fd = -1;
	int fd = -1;

	if (open_records(s, way == SETUP_IN, &dir_fd, IGNORED) == MR_OK)
		(void)lock_take(dir_fd, ".lock", 0600, LOCK_WAIT_MS, &fd, IGNORED);
	return fd;
}

bool
prior_added(const struct setup_file *f, const char *string)
{
	return !f->keep_all && names_has(&f->prior.added, string);
}

enum mr_rc
prior_add(struct setup_file *f, const char *string, struct mr_error *err)
{
	return mr_got(names_add_once(&f->prior.added, string), err);
}

/* Whatever is wrong with the record: then nothing is known. */
static enum mr_rc
prior_load(const struct setup *s, struct setup_file *f, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(record_done) struct record lines = { 0 };
	struct setup_prior *prior = &f->prior;
	char name[65];
	bool fine = true;

	prior_name(f, name);
	if (open_records(s, false, &fd, IGNORED) != MR_OK || file_read(fd, name, PRIOR_MAX, &text, IGNORED) != MR_OK ||
	    record_parse(buf_str(&text), &lines, IGNORED) != MR_OK)
		return MR_OK;
	prior->known = true;
	for (size_t i = 0; i < lines.n && fine; i++) {
		const char *key = lines.lines[i].name, *value = lines.lines[i].value;

		if (ascii_caseeq(key, "Folder"))
			fine = names_add(&prior->folders, str_of(value));
		else if (ascii_caseeq(key, "Added"))
			fine = names_add(&prior->added, str_of(value));
		for (int w = WAS_MISSING; w <= WAS_THERE && ascii_caseeq(key, "Was"); w++)
			if (strcmp(value, was_words[w]) == 0)
				prior->was = w;
	}
	return mr_got(fine, err);
}

static enum mr_rc
prior_save(const struct setup *s, const struct setup_file *f, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char name[65];

	TRY(header_add(&text, "File", str_of(f->path), err));
	TRY(header_add(&text, "Was", str_of(was_words[f->prior.was]), err));
	for (size_t i = 0; i < f->prior.folders.n; i++)
		TRY(header_add(&text, "Folder", str_of(f->prior.folders.v[i]), err));
	for (size_t i = 0; i < f->prior.added.n; i++)
		TRY(header_add(&text, "Added", str_of(f->prior.added.v[i]), err));
	TRY(open_records(s, true, &fd, err));
	prior_name(f, name);
	return file_replace(fd, name, buf_str(&text), 0600, err);
}

/* Not one that came meanwhile: an --apply beside us, before there was a folder for the lock, has just added what it
 * says. */
void
prior_drop(const struct setup *s, const struct setup_file *f)
{
	mr_auto(sys_close_fd) int fd = -1;
	char name[65];

	prior_name(f, name);
	if (f->prior.known && open_records(s, false, &fd, IGNORED) == MR_OK)
		(void)sys_unlink(fd, name);
}

/* ---- Planning ---- */

enum mr_rc
edit_all(const struct setup *s, struct setup_file *f, edit_fn *edit, struct buf *text, struct mr_error *err)
{
	for (;;) {
		mr_auto(jsonc_done) struct jsonc doc = { 0 };
		mr_auto(buf_done) struct buf changed = BUF_INIT;
		bool json = !(f->parts & (SETUP_PLUGIN | SETUP_TOML));
		enum mr_rc rc = json ? text_object(text, &doc, err) : MR_OK; /* MR_EMPTY: no text is left at all */

		if (f->parts & SETUP_TOML)
			buf_add(&changed, buf_str(text));
		if (rc == MR_OK)
			rc = edit(&(struct edit){ s, f, buf_str(text), json ? &doc : NULL, &changed, err });
		if (rc != MR_OK && rc != MR_EMPTY)
			return rc;
		TRY(mr_got(!text->failed && !changed.failed, err));
		if (rc == MR_EMPTY || str_eq(buf_str(&changed), buf_str(text))) {
			*err = (struct mr_error){ 0 };
			return MR_OK;
		}
		text_take(text, &changed);
	}
}

/* What is put in last is taken out first. */
static enum mr_rc
edit_parts(const struct setup *s, struct setup_file *f, enum setup_way way, struct buf *text, struct mr_error *err)
{
	static const struct {
		unsigned part;
		edit_fn *put, *take;
	} parts[] = {
		{ SETUP_PLUGIN, plugin_put, plugin_take },
		{ SETUP_HOOKS, hooks_put, hooks_take },
		{ SETUP_HOOKS, NULL, hooks_take_version },
		{ SETUP_SERVER | SETUP_MCP_SERVER, server_put, server_take },
		{ SETUP_ALLOW, allow_put, allow_take },
		{ SETUP_TOML, codex_put_server, codex_take_server },
		{ SETUP_TOML, codex_put_env, NULL },
		{ SETUP_TOML, codex_put_root, codex_take_root },
	};
	const size_t n = sizeof parts / sizeof parts[0];

	for (size_t i = 0; i < n; i++) {
		size_t at = way == SETUP_IN ? i : n - 1 - i;
		edit_fn *edit = way == SETUP_IN ? parts[at].put : parts[at].take;

		if (edit && (f->parts & parts[at].part))
			TRY(edit_all(s, f, edit, text, err));
	}
	return MR_OK;
}

static enum mr_rc
edit(const struct setup *s, struct setup_file *f, enum setup_way way, struct buf *text, struct mr_error *err)
{
	mr_auto(buf_done) struct buf object = BUF_INIT;

	if ((f->parts & (SETUP_PLUGIN | SETUP_TOML)) || !splice_is_blank(buf_str(text)))
		return edit_parts(s, f, way, text, err);
	if (way == SETUP_OUT)
		return MR_OK;
	/* A file without anything in it gets an object behind whatever white space it has; a new one ends in a newline,
	 * which is how they can be told apart later. */
	buf_adds(&object, "{}");
	TRY(edit_parts(s, f, way, &object, err));
	jsonc_pretty(buf_str(&object), splice_newline(buf_str(text)), text);
	if (!f->there)
		buf_addc(text, '\n');
	return mr_got(!text->failed && !object.failed, err);
}

/* In: if there is nothing that can only be ours, what is there was there before us. A permission or a writable root can
 * be the user's own. */
static enum mr_rc
note_prior(const struct setup *s, struct setup_file *f, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct setup_prior *prior = &f->prior;

	buf_add(&text, buf_str(&f->before));
	f->keep_all = true;
	TRY(edit(s, f, SETUP_OUT, &text, err));
	f->keep_all = false;
	f->fresh = str_eq(buf_str(&text), buf_str(&f->before));
	if (!f->fresh)
		return MR_OK;
	mr_names_done(&prior->folders);
	mr_names_done(&prior->added);
	*prior = (struct setup_prior){ 0 };
	prior->was = !f->there ? WAS_MISSING : splice_is_blank(buf_str(&f->before)) ? WAS_BLANK : WAS_THERE;
	for (size_t i = 1; i <= strlen(f->folder); i++) { /* those that saving will have to make */
		mr_auto(buf_done) struct buf part = BUF_INIT;

		if (f->folder[i] != '/' && f->folder[i] != '\0')
			continue;
		buf_add(&part, (struct mr_str){ f->folder, i });
		if (access(buf_z(&part), F_OK) < 0 && !names_add(&prior->folders, buf_str(&part)))
			return mr_nomem(err);
	}
	return MR_OK;
}

/* After --remove: what is still granted to mailroom by name. A root may be anybody's. */
static enum mr_rc
note_left(struct setup_file *f, struct mr_error *err)
{
	mr_auto(jsonc_done) struct jsonc doc = { 0 };

	if (!(f->parts & SETUP_ALLOW) || splice_is_blank(buf_str(&f->after)))
		return MR_OK;
	TRY(text_object(&f->after, &doc, err));
	for (size_t i = 0; i < setup_permissions_n; i++)
		if (allow_has(doc.root, setup_permissions[i]))
			TRY(mr_got(names_add(&f->left, str_of(setup_permissions[i])), err));
	return MR_OK;
}

enum mr_rc
plan_file(
    struct setup *s, const struct setup_where *where, enum setup_way way, struct setup_file *f, struct mr_error *err)
{
	struct mr_str before, after;

	TRY(read_settings(s, where, f, err));
	buf_add(&f->after, buf_str(&f->before));
	if (prior_load(s, f, err) != MR_OK || (way == SETUP_IN && note_prior(s, f, err) != MR_OK) ||
	    edit(s, f, way, &f->after, err) != MR_OK || (way == SETUP_OUT && note_left(f, err) != MR_OK)) {
		(void)mr_wrap(err, "cannot set up '%s'", f->path);
		return err->hint[0]
			   ? err->code
			   : mr_hint(err, "no file was changed; correct it or move it away, and run this again");
	}
	before = buf_str(&f->before);
	after = buf_str(&f->after);
	f->changed = !f->there ? after.len > 0 : !str_eq(before, after);
	/* It goes when nothing is left of it but what we wrote around it. */
	bool ours = f->prior.was == WAS_MISSING ||
		    (f->prior.was == WAS_UNKNOWN &&
			(f->parts & SETUP_TOML ? after.len == 0 && str_ends(before, "\n")
					       : str_eq(after, STR("\n")) && str_starts(before, "{")));

	f->gone = way == SETUP_OUT && f->there && f->changed && splice_is_blank(after) && ours;
	return MR_OK;
}

/* ---- Writing ---- */

static mode_t
new_mode(const struct setup *s, mode_t full)
{
	mode_t mask = umask(0);

	(void)umask(mask);
	return s->project ? full & ~mask : full & 0700;
}

static enum mr_rc
changed_meanwhile(const struct setup_file *f, struct mr_error *err)
{
	return mr_fail(err, MR_BUSY, "'%s' was changed by another program at the same time\nrun this again", f->path);
}

static enum mr_rc
is_still_the_same(int dir_fd, const struct setup_file *f, struct mr_error *err)
{
	mr_auto(buf_done) struct buf now = BUF_INIT;
	enum mr_rc rc = file_read(dir_fd, f->name, f->before.len + 1, &now, err);

	if (rc == MR_NOTFOUND || rc == MR_REFUSED || (rc == MR_OK && !str_eq(buf_str(&now), buf_str(&f->before))))
		return changed_meanwhile(f, err);
	return rc;
}

/* A setup that is alive, just before its rename, notices that its file is gone and begins again. */
void
save_sweep(const struct setup_file *f)
{
	mr_auto(sys_close_fd) int dir_fd = -1;
	mr_auto(buf_done) struct buf prefix = BUF_INIT;
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	buf_addf(&prefix, ".%s.mailroom-", f->name);
	if (!buf_ok(&prefix) || dir_open(AT_FDCWD, f->folder, &dir_fd, IGNORED) != MR_OK ||
	    dir_names(dir_fd, &names, IGNORED) != MR_OK)
		return;
	for (size_t i = 0; i < names.n; i++)
		if (strlen(names.v[i]) == prefix.len + RANDOM_LEN && str_starts(str_of(names.v[i]), prefix.ptr) &&
		    !findings_in_use(dir_fd, names.v[i]))
			(void)sys_unlink(dir_fd, names.v[i]);
}

/* Whole and durable in `temporary`, which is then renamed over the file. */
static enum mr_rc
write_file(const struct setup *s, const struct setup_file *f, int dir_fd, const char *temporary, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct stat st;

	TRY(file_prepare(
	    dir_fd, temporary, buf_str(&f->after), f->there ? f->st.st_mode & 07777 : new_mode(s, 0666), 0, err));
	if (!f->there) {
		enum mr_rc rc = file_prepared_publish(dir_fd, temporary, dir_fd, f->name, err);

		return rc == MR_EXISTS || rc == MR_NOTFOUND ? changed_meanwhile(f, err) : rc;
	}
	/* Root may set up another user's files: they keep their owner. */
	fd = sys_open(dir_fd, temporary, O_RDONLY, 0);
	if (fd < 0 && errno == ENOENT) /* another setup has swept it away */
		return changed_meanwhile(f, err);
	if (fd < 0 || sys_stat_fd(fd, &st) < 0)
		return mr_fail_errno(err, "cannot read '%s'", temporary);
	if ((st.st_uid != f->st.st_uid || st.st_gid != f->st.st_gid) &&
	    (sys_chown_fd(fd, f->st.st_uid, f->st.st_gid) < 0 || sys_chmod_fd(fd, f->st.st_mode & 07777) < 0 ||
		sys_fsync(fd) < 0))
		return mr_fail_errno(err, "cannot keep the owner of '%s'", f->path);
	TRY(is_still_the_same(dir_fd, f, err));
	if (sys_rename(dir_fd, temporary, dir_fd, f->name) < 0)
		return errno == ENOENT ? changed_meanwhile(f, err) : mr_fail_errno(err, "cannot replace '%s'", f->path);
	if (sys_fsync(dir_fd) < 0)
		return mr_fail_errno(err, "cannot make '%s' durable", f->path);
	return MR_OK;
}

enum mr_rc
save_file(const struct setup *s, enum setup_way way, struct setup_file *f, struct mr_error *err)
{
	mr_auto(sys_close_fd) int dir_fd = -1;
	mr_auto(buf_done) struct buf temporary = BUF_INIT;
	struct mr_error forgotten = { 0 };
	char random[RANDOM_LEN + 1];

	if (f->there && access(f->path, W_OK) < 0) {
		if (errno == ENOENT)
			return changed_meanwhile(f, err);
		(void)mr_fail_errno(err, "cannot write '%s'", f->path);
		return mr_hint(err, "it is write-protected; if another tool makes this file, change it there");
	}
	if (way == SETUP_IN && prior_save(s, f, &forgotten) != MR_OK)
		cli_warn(s->cli, "the earlier content could not be recorded: %s", forgotten.message);
	TRY(dir_make(AT_FDCWD, f->folder, new_mode(s, 0777), true, &dir_fd, err));
	if (!f->gone) {
		random_hex(random, RANDOM_LEN);
		buf_addf(&temporary, ".%s.mailroom-%s", f->name, random);
		enum mr_rc rc = buf_ok(&temporary) ? write_file(s, f, dir_fd, buf_z(&temporary), err) : mr_nomem(err);

		if (rc != MR_OK)
			(void)sys_unlink(dir_fd, buf_z(&temporary));
		return rc;
	}
	TRY(is_still_the_same(dir_fd, f, err));
	if ((sys_unlink(dir_fd, f->name) < 0 && errno != ENOENT) || sys_fsync(dir_fd) < 0)
		return mr_fail_errno(err, "cannot remove '%s'", f->path);
	/* The folders that we made go with the file, if nothing else is in them. */
	for (size_t i = f->prior.folders.n; i > 0; i--)
		if (sys_rmdir(AT_FDCWD, f->prior.folders.v[i - 1]) < 0)
			break;
	return MR_OK;
}
