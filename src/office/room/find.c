/* SPDX-License-Identifier: MIT */
/*
 * find.c - finds the room: the option, the variable, the nearest .mailroom/ upwards, and in a linked git worktree
 * upwards from the main one, so that agents in worktrees of one repository use the same room. There is no other
 * default, because that would silently split a room in two.
 */
#include "base/file.h"
#include "base/sys.h"
#include "office/who/who.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool
path_has_room(const char *room_path)
{
	mr_auto(free_ptr) char *file = path_join(room_path, "room");
	struct stat st;

	return file && sys_stat(AT_FDCWD, file, &st) == 0 && S_ISREG(st.st_mode);
}

/* ---- Looking upwards ---- */

/* The nearest room above `folder`, or NULL. */
static char *
look_up(const char *folder)
{
	mr_auto(free_ptr) char *at = strdup(folder);

	while (at) {
		char *room = path_join(at, ROOM_FOLDER);

		if (room && path_has_room(room))
			return room;
		free(room);
		if (strcmp(at, "/") == 0)
			return NULL;
		char *up = path_parent(at);

		free(at);
		at = up;
	}
	return NULL;
}

/* ---- Warnings ---- */

/* A room that git tracks changes with commits: half of the mail may be in the past of another branch. With the stub
 * .git that init makes inside, git cannot track anything in it, so usually one look is enough. */
static bool
is_tracked(const char *room, const struct git_place *around)
{
	mr_auto(free_ptr) char *stub = path_join(room, ".git/HEAD");
	mr_auto(free_ptr) char *home = path_parent(room);
	mr_auto(git_place_done) struct git_place git = { 0 };
	struct stat st;

	/* `around` is the repository of a folder at or below the room's folder; without one there is none above. */
	if (!stub || !home || (around && !around->worktree) || sys_stat(AT_FDCWD, stub, &st) == 0 ||
	    git_find(home, &git, IGNORED) != MR_OK || !git.worktree)
		return false;
	mr_auto(free_ptr) char *file = path_join(room, "room");
	size_t top = strlen(git.worktree);

	return file && strlen(file) > top + 1 && strncmp(file, git.worktree, top) == 0 &&
	       git_tracks(&git, file + top + 1);
}

/* Fills in the room at that path. With `warns` also reports another room (or NULL) that agents may use by mistake, and
 * git. */
static enum mr_rc
fill_in(struct mr_place *place, const char *room, bool warns, const char *other, const struct git_place *around,
    struct buf *why, struct mr_error *err)
{
	mr_auto(buf_done) struct buf spec = BUF_INIT, warning = BUF_INIT;

	buf_addf(&spec, "maildir:%s", room);
	place->tracked = warns && is_tracked(room, around);
	if (other && strcmp(room, other) != 0)
		buf_addf(
		    &warning, "there is a second room at '%s': agents that use it do not meet the ones here", other);
	if (place->tracked)
		buf_addf(
		    &warning, "%sgit tracks the room: run 'git rm -r -q --cached %s'", warning.len ? "; " : "", room);
	bool warned = warning.len > 0;

	place->spec = buf_take(&spec);
	place->why = buf_take(why);
	place->warning = warned ? buf_take(&warning) : NULL;
	return place->spec && place->why && (place->warning || !warned) ? MR_OK : mr_nomem(err);
}

/* ---- The ways to a room ---- */

/* "KIND:WHERE" of another kind is left to its driver; a path may name the room or the project folder around it. */
static enum mr_rc
by_name(
    const char *given, const char *source, const char *cwd, bool warns, struct mr_place *place, struct mr_error *err)
{
	mr_auto(buf_done) struct buf why = BUF_INIT;
	const char *path = strncmp(given, "maildir:", 8) == 0 ? given + 8 : given;

	buf_adds(&why, source);
	if (path == given && strchr(given, ':') && given[0] != '/' && given[0] != '.') {
		place->spec = strdup(given);
		place->why = buf_take(&why);
		return place->spec && place->why ? MR_OK : mr_nomem(err);
	}
	mr_auto(free_ptr) char *full = path_full(cwd, path);
	mr_auto(free_ptr) char *inner = full ? path_join(full, ROOM_FOLDER) : NULL;

	TRY(mr_got(inner, err));
	return fill_in(
	    place, !path_has_room(full) && path_has_room(inner) ? inner : full, warns, NULL, NULL, &why, err);
}

/* near: the nearest room above cwd, or NULL. Without warnings nothing else is needed, and git is not asked. */
static enum mr_rc
by_looking(const char *cwd, const char *near, const struct git_place *git, bool warns, struct mr_place *place,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf why = BUF_INIT;
	mr_auto(free_ptr) char *shared = git->main && strcmp(git->main, git->worktree) != 0 ? look_up(git->main) : NULL;
	const char *room = near ? near : shared;

	if (!room)
		return mr_fail(err, MR_NOTFOUND,
		    "no room found from '%s' upwards\n"
		    "run 'mailroom init' in the project's folder, or name a room with --room or $MAILROOM",
		    cwd);
	/* The next room above this one. */
	mr_auto(free_ptr) char *home = path_parent(room), *above = home ? path_parent(home) : NULL;
	mr_auto(free_ptr) char *next = warns && above && strcmp(home, "/") != 0 ? look_up(above) : NULL;

	buf_addf(&why, "nearest " ROOM_FOLDER " above %s%s", near ? "" : "the main worktree ", near ? cwd : git->main);
	place->found = true;
	return fill_in(place, room, warns,
	    !warns                                        ? NULL
	    : near && shared && strcmp(near, shared) != 0 ? shared
							  : next,
	    near ? git : NULL, &why, err);
}

enum mr_rc
mr_room_find(
    const char *option, const char *env, const char *cwd, bool warns, struct mr_place *ret, struct mr_error *err)
{
	mr_auto(mr_place_done) struct mr_place place = { 0 };
	mr_auto(git_place_done) struct git_place git = { 0 };
	mr_auto(free_ptr) char *here = cwd ? path_full("/", cwd) : getcwd(NULL, 0);
	const char *named = option ? option : env && env[0] ? env : NULL;

	if (!here)
		return cwd ? mr_nomem(err) : mr_fail_errno(err, "cannot find the working folder");
	mr_auto(free_ptr) char *near = named ? NULL : look_up(here);

	if (warns || !near) {
		TRY(git_find(here, &git, err));
		place.worktree = strdup(git.worktree ? git.worktree : here);
		TRY(mr_got(place.worktree, err));
	}
	TRY(named ? by_name(named, option ? "--room" : "$MAILROOM", here, warns, &place, err)
		  : by_looking(here, near, &git, warns, &place, err));
	*ret = place;
	place = (struct mr_place){ 0 };
	return MR_OK;
}

enum mr_rc
mr_place_worktree(struct mr_place *place, struct mr_error *err)
{
	mr_auto(git_place_done) struct git_place git = { 0 };
	mr_auto(free_ptr) char *here = place->worktree ? NULL : getcwd(NULL, 0);

	if (place->worktree)
		return MR_OK;
	if (!here)
		return mr_fail_errno(err, "cannot find the working folder");
	TRY(git_find(here, &git, err));
	place->worktree = strdup(git.worktree ? git.worktree : here);
	return place->worktree ? MR_OK : mr_nomem(err);
}

void
mr_place_done(struct mr_place *place)
{
	if (!place)
		return;
	free(place->spec);
	free(place->why);
	free(place->warning);
	free(place->worktree);
	*place = (struct mr_place){ 0 };
}
