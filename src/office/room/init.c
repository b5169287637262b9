/* SPDX-License-Identifier: MIT */
/*
 * init.c - making a native room. The file `room` is made last and by link, so that a half-made room does not count as
 * one, and running init again completes it. In a git repository the room is first protected from git:
 *
 *	info/exclude   `add -A`, `stash -u` and `clean -fd` skip it; before the stub, because an
 *	               untracked nested repository without a commit makes `add -A` fail
 *	.gitignore     the same in a copy of the folder
 *	stub .git      HEAD, objects/, refs/: the least that git takes for a repository of its own,
 *	               which `clean -fdx` and `stash -a` leave alone (a file or an empty folder is not enough)
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/sys.h"
#include "message/address.h"
#include "base/id.h"
#include "office/rules/config.h"
#include "office/who/who.h"
#include <fcntl.h>
#include <unistd.h>

#define EXCLUDE_MAX ((size_t)4 << 20)
#define LOCK_WAIT_MS 5000
#define COMPONENT_MAX 64
#define ROOM_FILE_MAX ((size_t)64 << 10)

struct making {
	char *path; /* of the room */
	char *spec; /* "maildir:<path>" */
	char *home; /* the folder around it */
	struct git_place git;
	int fd;
	mode_t dir_mode, file_mode;
	const struct mr_init_options *options;
};

static void
making_done(struct making *m)
{
	free(m->path);
	free(m->spec);
	free(m->home);
	git_place_done(&m->git);
	sys_close_fd(&m->fd);
}

/* ---- Place and name ---- */

static enum mr_rc
choose_place(struct making *m, const char *where, const char *cwd, struct mr_error *err)
{
	mr_auto(free_ptr) char *full = path_full(cwd, where ? where : ".");
	mr_auto(git_place_done) struct git_place git = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	struct buf spec = BUF_INIT;

	if (!full || (!where && git_find(full, &git, err) != MR_OK))
		return full ? err->code : mr_nomem(err);
	while (strlen(full) > 1 && full[strlen(full) - 1] == '/')
		full[strlen(full) - 1] = '\0';
	bool is_room = strcmp(path_name(full), ROOM_FOLDER) == 0;
	mr_auto(free_ptr) char *parent = is_room ? path_parent(full) : NULL;

	m->home = path_full("/", git.main ? git.main : is_room ? parent : full);
	m->path = m->home ? path_join(m->home, ROOM_FOLDER) : NULL;
	TRY(mr_got(m->path, err));
	buf_addf(&spec, "maildir:%s", m->path);
	m->spec = buf_take(&spec);
	TRY(mr_got(m->spec, err));
	if (dir_open(AT_FDCWD, m->home, &fd, err) != MR_OK) {
		(void)mr_wrap(err, "make a room in '%s'", m->home);
		return err->code == MR_NOTFOUND ? mr_hint(err, "make that folder first") : err->code;
	}
	return git_find(m->home, &m->git, err);
}

static enum mr_rc
check_component(const char *name, struct mr_error *err)
{
	if (strchr(name, '/'))
		return mr_fail(err, MR_REFUSED, "'%.80s' has a slash in it", name);
	return address_check(str_of(name), err);
}

/* The folder's name, as far as an address can express it. */
static void
name_from_folder(const char *home, struct buf *out)
{
	const char *folder = path_name(home);

	for (folder += strspn(folder, "."); *folder && out->len < COMPONENT_MAX; folder++)
		buf_addc(out, ascii_alnum(*folder) || strchr("._+-", *folder) ? *folder : '-');
	if (out->len == 0 || check_component(buf_z(out), IGNORED) != MR_OK) {
		buf_clear(out);
		buf_adds(out, "room");
	}
}

/* ---- Git ---- */

/* The room as a pattern of info/exclude: from the top of the worktree, special characters escaped. */
static enum mr_rc
exclude_room(const struct making *m, struct mr_error *err)
{
	mr_auto(free_ptr) char *folder = path_join(m->git.common, "info");
	mr_auto(buf_done) struct buf text = BUF_INIT, line = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	size_t top = strlen(m->git.worktree);
	bool below = strncmp(m->path, m->git.worktree, top) == 0 && m->path[top] == '/';
	struct stat st = { .st_mode = 0644 };

	/* A bare repository has no worktree that shows its git folder. */
	for (const char *path = below ? m->path + top : "/" ROOM_FOLDER; *path; path++) {
		if (strchr("*?[]\\ ", *path))
			buf_addc(&line, '\\');
		buf_addc(&line, *path);
	}
	buf_addc(&line, '/');
	TRY(mr_got(folder && buf_ok(&line), err));
	TRY(dir_make(AT_FDCWD, folder, 0755, false, &fd, err));
	enum mr_rc rc = file_read_stat(fd, "exclude", EXCLUDE_MAX, &text, &st, err);

	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	for (const char *at = buf_z(&text); *at; at += strcspn(at, "\n"), at += *at == '\n')
		if (str_eq((struct mr_str){ at, strcspn(at, "\n") }, buf_str(&line)))
			return rc;
	if (text.len > 0 && text.ptr[text.len - 1] != '\n')
		buf_addc(&text, '\n');
	buf_addf(&text, "%s\n", buf_z(&line));
	return buf_ok(&text) ? file_replace(fd, "exclude", buf_str(&text), st.st_mode & 0777, err) : mr_nomem(err);
}

/* MR_OK also if it exists already, from an init that was cut off. */
static enum mr_rc
put_file(const struct making *m, int dir_fd, const char *name, struct mr_str text, struct mr_error *err)
{
	enum mr_rc rc = file_publish(dir_fd, dir_fd, name, text, m->file_mode, PUBLISH_FULL, err);

	return rc == MR_EXISTS ? MR_OK : rc;
}

static enum mr_rc
make_folder(const struct making *m, const char *path, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	return dir_make(m->fd, path, m->dir_mode, true, &fd, err);
}

static enum mr_rc
guard_from_git(const struct making *m, struct mr_error *err)
{
	mr_auto(sys_close_fd) int stub = -1, lock = -1, agents = -1;

	if (!m->git.worktree)
		return MR_OK;
	TRY(put_file(m, m->fd, ".gitignore", STR("*\n"), err));
	TRY(make_folder(m, "agents", err));
	TRY(dir_open(m->fd, "agents", &agents, err));
	TRY(lock_take(agents, ".lock", m->file_mode, LOCK_WAIT_MS, &lock, err));
	if (exclude_room(m, err) != MR_OK)
		return mr_wrap(err, "exclude the room in '%s/info/exclude'", m->git.common);
	TRY(make_folder(m, ".git/objects", err));
	TRY(make_folder(m, ".git/refs", err));
	TRY(dir_open(m->fd, ".git", &stub, err));
	return put_file(m, stub, "HEAD", STR("ref: refs/heads/mailroom-keeps-git-away\n"), err);
}

/* ---- The room ---- */

enum mr_rc
room_add_operator(struct mr_room *room, struct mr_error *err)
{
	const struct mr_agent operator= { .name = OPERATOR,
		.created_ms = clock_now_ms(),
		.worktree = "",
		.session = "",
		.host = "",
		.role = "the person in charge",
		.wake = "" };

	return room->driver->add_agent(room, &operator, err);
}

static enum mr_rc
open_and_add_operator(const char *spec, const struct mr_init_options *init, struct mr_error *err)
{
	struct mr_room *room = NULL;
	enum mr_rc rc = room_open_spec(spec, &(struct mr_room_options){ .init = init }, &room, err);

	if (rc == MR_OK)
		rc = mr_unless(room_add_operator(room, err), MR_EXISTS, err);
	mr_room_close(room);
	return rc;
}

static enum mr_rc
open_own_folder(struct making *m, struct mr_error *err)
{
	struct stat st;

	if (dir_make(AT_FDCWD, m->path, m->dir_mode, true, &m->fd, err) != MR_OK)
		return mr_wrap(err, "make a room in '%s'", m->home);
	if (sys_stat_fd(m->fd, &st) < 0)
		return mr_fail_errno(err, "cannot look at '%s'", m->path);
	if (st.st_uid != geteuid())
		return mr_fail(err, MR_REFUSED,
		    "'%s' belongs to another user\nmake a room elsewhere: mailroom init FOLDER", m->path);
	return MR_OK;
}

/* Completes an existing room after an init that was cut off, or after a later `git init`. Best effort: the result is
 * the same. */
static void
complete_room(struct making *m)
{
	struct stat st;

	if ((m->fd < 0 && open_own_folder(m, IGNORED) != MR_OK) || sys_stat_fd(m->fd, &st) < 0)
		return;
	m->dir_mode = st.st_mode & 070 ? 02770 : 0700;
	m->file_mode = st.st_mode & 070 ? 0660 : 0600;
	(void)guard_from_git(m, IGNORED);
	(void)open_and_add_operator(m->spec, NULL, IGNORED);
}

/* ---- Leftovers of an init that was cut off ---- */

/* A folder .mailroom without `room` may be our own half-made one. A folder from a clone or an archive is not: with a
 * file `room` in it, its agents, groups and types would count as those of a trusted room. */
static enum mr_rc
check_half_made(const struct making *m, struct mr_error *err)
{
	static const struct {
		const char *folder, *ours; /* names with a space around each */
	} parts[] = {
		{ ".", " .gitignore .git agents dead spool keys holds records reserve " },
		{ "agents", " .lock " },
		{ "dead", " tmp new cur " },
		{ "dead/new", "" },
		{ "dead/cur", "" },
		{ "spool", "" },
		{ "keys", "" },
		{ "holds", "" },
		{ "records", "" },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		mr_auto(sys_close_fd) int fd = -1;
		mr_auto(mr_names_done) struct mr_names names = { 0 };
		enum mr_rc rc = dir_open(m->fd, parts[i].folder, &fd, err);

		if (rc == MR_OK)
			rc = dir_names(fd, &names, err);
		TRY(mr_unless(rc, MR_NOTFOUND, err));
		for (size_t n = 0; n < names.n; n++) {
			struct mr_str name = str_of(names.v[n]);
			mr_auto(buf_done) struct buf spaced = BUF_INIT;

			buf_addf(&spaced, " %s ", names.v[n]);
			if (!strstr(parts[i].ours, buf_z(&spaced)) &&
			    !(str_starts(name, "mr-") && str_ends(name, ".tmp"))) /* of stage_open */
				return mr_fail(err, MR_REFUSED,
				    "'%s' is not a room, but has '%s/%.60s' in it\n"
				    "it came from elsewhere: look at it, move it away, then run `mailroom init` again",
				    m->path, parts[i].folder, names.v[n]);
		}
	}
	*err = (struct mr_error){ 0 };
	return MR_OK;
}

enum mr_rc
room_put_setting(const char *path, const char *name, const char *value, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1, agents = -1, lock = -1;
	mr_auto(buf_done) struct buf old = BUF_INIT, text = BUF_INIT;
	mr_auto(record_done) struct record lines = { 0 };
	bool there = false;
	struct stat st;

	TRY(dir_open(AT_FDCWD, path, &fd, err));
	TRY(dir_open(fd, "agents", &agents, err));
	TRY(lock_take(agents, ".lock", 0600, LOCK_WAIT_MS, &lock, err));
	TRY(file_read(fd, "room", ROOM_FILE_MAX, &old, err));
	TRY(record_parse(buf_str(&old), &lines, err));
	if (sys_stat(fd, "room", &st) < 0)
		return mr_fail_errno(err, "cannot look at '%s/room'", path);
	if (st.st_uid != geteuid())
		return mr_fail(
		    err, MR_REFUSED, "only the owner of the room (uid %ld) can set its %s:", (long)st.st_uid, name);
	for (size_t i = 0; i < lines.n; i++) {
		bool same = ascii_caseeq(lines.lines[i].name, name);

		there |= same;
		if (!same)
			TRY(header_add(&text, lines.lines[i].name, str_of(lines.lines[i].value), err));
	}
	if (!value && !there)
		return mr_fail(err, MR_NOTFOUND, "there is no setting '%s' for this room", name);
	if (value)
		TRY(header_add(&text, name, str_of(value), err));
	return buf_ok(&text) ? file_replace(fd, "room", buf_str(&text), st.st_mode & 0777, err) : mr_nomem(err);
}

static enum mr_rc
make_room(struct making *m, struct mr_error *err)
{
	static const char *const folders[] = { "agents", "dead/tmp", "dead/new", "dead/cur", "spool", "keys", "holds",
		"records" };
	mr_auto(buf_done) struct buf name = BUF_INIT, text = BUF_INIT;
	char now[RFC3339_LEN + 1], identity[ROOM_IDENTITY_LEN + 1];

	if (m->options->name)
		buf_adds(&name, m->options->name);
	else
		name_from_folder(m->home, &name);
	TRY(mr_got(buf_ok(&name), err));
	if (check_half_made(m, err) != MR_OK)
		return path_has_room(m->path) ? MR_EXISTS : err->code; /* another init was faster */
	TRY(guard_from_git(m, err));
	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
		TRY(make_folder(m, folders[i], err));
	random_hex(identity, ROOM_IDENTITY_LEN);
	/* Trust is recorded before the room exists: if it were after, a kill could leave a room that its maker must
	 * trust by hand. A room that cannot be recorded (no home, a sandbox that protects the configuration) is made
	 * all the same. */
	struct mr_error why = { 0 };
	struct stat st;
	char place[ROOM_PLACE_LEN];

	if (sys_stat_fd(m->fd, &st) < 0)
		(void)mr_fail_errno(&why, "cannot look at '%s'", m->path);
	else if (config_note_made(m->options->config_dir, m->spec, room_place(m->fd, &st, place), identity, &why) ==
		 MR_OK)
		why = (struct mr_error){ 0 };
	if (m->options->ret_trust)
		*m->options->ret_trust = why;
	time_rfc3339(clock_now_ms(), now);
	buf_addf(&text, "Format: 1\nName: %s\nIdentity: %s\nCreated: %s\n%sSync: %s\n", buf_z(&name), identity, now,
	    m->options->share_group ? "Share: group\n" : "", m->options->sync ? m->options->sync : "auto");
	TRY(mr_got(buf_ok(&text), err));
	return file_publish(m->fd, m->fd, "room", buf_str(&text), m->file_mode, PUBLISH_FULL, err);
}

/* A room that is not a folder: its driver makes it when it is opened. */
static enum mr_rc
make_elsewhere(const char *spec, const struct mr_init_options *options, char **ret_path, struct mr_error *err)
{
	if (options->share_group || options->sync)
		return mr_fail(err, MR_REFUSED,
		    "a room in a database has no --share and no --sync\nthe server's roles and settings decide that");
	enum mr_rc rc = open_and_add_operator(spec, options, err);

	if (rc != MR_OK && rc != MR_EXISTS)
		return rc;
	*ret_path = strdup(spec);
	return *ret_path ? rc : mr_nomem(err);
}

enum mr_rc
mr_room_init(
    const char *where, const char *cwd, const struct mr_init_options *options, char **ret_path, struct mr_error *err)
{
	static const struct mr_init_options plain = { 0 };
	mr_auto(making_done) struct making m = { .fd = -1, .options = options ? options : &plain };

	const char *sync = m.options->sync;

	if (where && (str_starts(str_of(where), "postgres:") || str_starts(str_of(where), "postgresql:")))
		return make_elsewhere(where, m.options, ret_path, err);
	if (m.options->roles)
		return mr_fail(err, MR_REFUSED,
		    "only a room in a database has logins\nfor several users of one machine: mailroom init --share group");
	if (m.options->upgrade)
		return mr_fail(err, MR_REFUSED, "a room in a folder needs no upgrade: every version reads it as it is");
	m.dir_mode = m.options->share_group ? 02770 : 0700;
	m.file_mode = m.options->share_group ? 0660 : 0600;
	if (sync && strcmp(sync, "auto") != 0 && strcmp(sync, "full") != 0 && strcmp(sync, "fast") != 0 &&
	    strcmp(sync, "none") != 0)
		return mr_fail(err, MR_REFUSED,
		    "'%.40s' is not a way to sync\n"
		    "use 'auto', 'full', 'fast', or 'none' for a room whose mail may be lost at a power cut",
		    sync);
	if (m.options->name && check_component(m.options->name, err) != MR_OK)
		return mr_wrap(err, "name of the room");
	TRY(choose_place(&m, where, cwd, err));
	bool there = path_has_room(m.path);

	if (!there && open_own_folder(&m, err) != MR_OK)
		return err->code;
	enum mr_rc rc = there ? MR_EXISTS : make_room(&m, err);

	if (rc == MR_EXISTS) {
		complete_room(&m);
		(void)mr_fail(err, MR_EXISTS,
		    "there is already a room in '%s'\nuse it as it is; 'mailroom where' shows which room is used and why",
		    m.home);
	} else if (rc == MR_OK) {
		rc = open_and_add_operator(m.spec, NULL, err);
	}
	if (rc == MR_OK || rc == MR_EXISTS) {
		*ret_path = m.path;
		m.path = NULL;
	}
	return rc;
}
