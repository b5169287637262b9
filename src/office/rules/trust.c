/* SPDX-License-Identifier: MIT */
/* trust.c - which rooms this user trusts: the line Trusted: of a room's configuration (config.h), and the list of all.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sys.h"
#include "office/rules/config.h"
#include "office/who/who.h"
#include <errno.h>
#include <fcntl.h>

const char *
config_path_of(const char *spec)
{
	return str_starts(str_of(spec), "maildir:") ? spec + strlen("maildir:") : spec;
}

const char *
mr_trust_word(enum mr_trust trust)
{
	static const char *const words[] = {
		[MR_TRUST_NONE] = "not trusted",
		[MR_TRUST_NAMED] = "named explicitly",
		[MR_TRUST_VARIABLE] = "$MAILROOM_TRUST",
		[MR_TRUST_USER] = "mailroom trust",
		[MR_TRUST_INIT] = "mailroom init",
	};

	return words[trust];
}

/* The line "TIME init" or "TIME trust". */
static enum mr_trust
read_trusted(const struct record *lines, int64_t *ret_since_ms)
{
	const char *line = record_get(lines, "Trusted"), *space = line ? strchr(line, ' ') : NULL;

	if (!space)
		return MR_TRUST_NONE;
	(void)time_parse_rfc3339((struct mr_str){ line, (size_t)(space - line) }, ret_since_ms);
	return strcmp(space + 1, "init") == 0 ? MR_TRUST_INIT : MR_TRUST_USER;
}

/* The room's own path, or that of the folder around it. */
static bool
is_in_paths(const char *paths, const char *room_path)
{
	mr_auto(free_ptr) char *home = path_parent(room_path);
	struct mr_str rest = str_of(paths ? paths : ""), one;

	while (home && str_cut(&rest, ':', &one)) {
		while (one.len > 1 && one.ptr[one.len - 1] == '/')
			one.len--;
		if (str_eq(one, str_of(room_path)) || str_eq(one, str_of(home)))
			return true;
	}
	return false;
}

enum mr_trust
mr_room_trust(struct mr_room *room, int64_t *ret_since_ms)
{
	const struct user_config *u = room->office->user;

	*ret_since_ms = 0;
	enum mr_trust by = read_trusted(config_lines(room), ret_since_ms);

	if (by != MR_TRUST_NONE)
		return by;
	if (is_in_paths(u->paths, config_path_of(room->spec)))
		return MR_TRUST_VARIABLE;
	return u->found ? MR_TRUST_NONE : MR_TRUST_NAMED;
}

enum mr_rc
config_trusts(struct mr_room *room, struct mr_error *err)
{
	const struct user_config *u = room->office->user;
	const char *path = config_path_of(room->spec), *why;
	struct stat st;
	int64_t since_ms;

	if (!u->found || mr_room_trust(room, &since_ms) != MR_TRUST_NONE)
		return MR_OK;
	if (sys_stat(AT_FDCWD, path, &st) == 0 && S_ISLNK(st.st_mode))
		why = "it is a symbolic link to another folder";
	else if (u->elsewhere)
		why = "it is not the folder that was trusted: it was copied, moved, replaced or mounted anew";
	else if (!u->dir)
		why = "there is no configuration folder ($XDG_CONFIG_HOME, $HOME) that could say so";
	else if (!room->identity[0])
		why = "it was made by an earlier mailroom, or came with a folder from elsewhere";
	else
		why = "you did not make it on this machine, and have not trusted it";
	return mr_fail(err, MR_UNTRUSTED,
	    "room '%.200s' is not trusted: %s\nif it is yours, type in a terminal: mailroom trust '%.140s'", path, why,
	    path);
}

/* ---- Trusting a room ---- */

bool
config_room_is_there(const struct record *lines)
{
	const char *spec = record_get(lines, "Room"), *place = record_get(lines, "Place");
	struct mr_room *there = NULL;

	if (!spec)
		return false;
	if (!place) /* a room of another program: nothing tells it from a later one */
		return true;
	bool same = room_open_spec(spec, &(struct mr_room_options){ .must_exist = true }, &there, IGNORED) == MR_OK &&
		    config_fits(lines, there);

	room_free(there);
	return same;
}

/* A room of an earlier build has no identity, and a copy beside its original has one that is taken. */
static enum mr_rc
ensure_identity(struct mr_room *room, bool *ret_moved, struct mr_error *err)
{
	mr_auto(sys_close_fd) int folder = -1;
	mr_auto(record_done) struct record old = { 0 };
	char name[ROOM_IDENTITY_LEN + 1];

	if (!room->place[0])
		return MR_OK;
	if (config_file_of(room, name)) {
		if (config_folder(room->office->user->dir, false, &folder, IGNORED) != MR_OK ||
		    config_read_file(folder, name, &old, IGNORED) != MR_OK || config_fits(&old, room))
			return MR_OK;
		*ret_moved = !config_room_is_there(&old);
		if (*ret_moved)
			return MR_OK;
	}
	return room_give_identity(config_path_of(room->spec), room->identity, err);
}

enum mr_rc
mr_trust_add(struct mr_room *room, struct mr_error *err)
{
	struct config_change c = { .trusted = "trust" };

	if (ensure_identity(room, &c.moved, err) != MR_OK)
		return mr_wrap(err, "cannot trust '%.160s'", config_path_of(room->spec));
	return config_change(room, &c, err);
}

/* ---- All records ---- */

struct telling {
	mr_trust_fn *fn;
	void *ctx;
	bool prune, dry_run;
	const char *spec; /* remove: of this room */
	bool removed;
};

/* Goes through the records as `t` says. `what` is what cannot be removed, for the error. */
static enum mr_rc
each_record(const char *config_dir, struct telling *t, const char *what, struct mr_error *err)
{
	mr_auto(sys_close_fd) int folder = -1;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	enum mr_rc rc = config_folder(config_dir, false, &folder, err);

	if (rc == MR_NOTFOUND)
		return MR_OK;
	if (rc == MR_OK)
		rc = dir_names(folder, &names, err);
	for (size_t i = 0; rc == MR_OK && i < names.n; i++) {
		mr_auto(record_done) struct record lines = { 0 };
		struct mr_trust_record r = { 0 };

		if (names.v[i][0] == '.' || config_read_file(folder, names.v[i], &lines, IGNORED) != MR_OK)
			continue;
		r.spec = record_get(&lines, "Room");
		if (!r.spec || (t->spec && strcmp(r.spec, t->spec) != 0))
			continue;
		r.gone = !t->spec && !config_room_is_there(&lines);
		r.by = read_trusted(&lines, &r.since_ms);
		if (t->prune && !r.gone)
			continue;
		if ((t->spec || (t->prune && !t->dry_run)) && sys_unlink(folder, names.v[i]) < 0)
			return mr_fail_errno(err, "%s", what);
		t->removed = true;
		if (t->fn && !t->fn(t->ctx, &r))
			break;
	}
	return rc;
}

enum mr_rc
mr_trust_each(const char *config_dir, mr_trust_fn *fn, void *ctx, struct mr_error *err)
{
	return each_record(config_dir, &(struct telling){ .fn = fn, .ctx = ctx }, "", err);
}

enum mr_rc
mr_trust_prune(const char *config_dir, bool dry_run, mr_trust_fn *fn, void *ctx, struct mr_error *err)
{
	struct telling t = { .fn = fn, .ctx = ctx, .prune = true, .dry_run = dry_run };

	return each_record(config_dir, &t, "cannot remove a trust record", err);
}

enum mr_rc
mr_trust_remove(const char *config_dir, const char *spec, struct mr_error *err)
{
	struct telling t = { .spec = spec };
	mr_auto(buf_done) struct buf what = BUF_INIT;

	buf_addf(&what, "cannot remove the trust record of '%.160s'", spec);
	TRY(each_record(config_dir, &t, buf_z(&what), err));
	if (!t.removed)
		return mr_fail(err, MR_NOTFOUND, "there is no trust record of '%.160s'", spec);
	return MR_OK;
}
