/* SPDX-License-Identifier: MIT */
/* place.c - where the files are, and what our entries are to say: which program, which room. */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "cli/setup/setup.h"

static const char *
variable(const char *name)
{
	const char *value = name ? getenv(name) : NULL;

	return value && value[0] ? value : NULL;
}

static const char *
kept(struct setup *s, const struct buf *text, struct mr_error *err)
{
	const char *copy = buf_ok(text) ? arena_dup(&s->cli->own, buf_str(text)) : NULL;

	if (!copy)
		(void)mr_nomem(err);
	return copy;
}

/* ---- The program ---- */

static enum mr_rc
find_program(struct setup *s, struct mr_error *err)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);

	if (len <= 0 || path[0] != '/') {
		return mr_fail(err, MR_NOTFOUND,
		    "cannot tell where this program is: '/proc/self/exe' says nothing\n"
		    "settings need its absolute path; run it where /proc is mounted");
	}
	path[len] = '\0';
	if (access(path, X_OK) < 0) { /* replaced while it ran: "... (deleted)" */
		return mr_fail(err, MR_NOTFOUND,
		    "the program '%s' is not there any more\nrun the command again: with the program that is there now",
		    path);
	}
	s->program = arena_dup(&s->cli->own, str_of(path));
	s->command = s->project ? "mailroom" : s->program;
	return s->program ? MR_OK : mr_nomem(err);
}

static const char *
command_line(struct setup *s, bool waits, struct mr_error *err)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	command_quote(&line, s->command);
	buf_addf(&line, " hook %s", s->harness->name);
	if (waits)
		buf_adds(&line, " --wait");
	if (s->room) {
		buf_adds(&line, " --room ");
		command_quote(&line, s->room);
	}
	return kept(s, &line, err);
}

const char *
command_in_path(struct setup *s)
{
	mr_auto(buf_done) struct buf file = BUF_INIT;
	const char *path = variable("PATH");

	for (const char *at = path ? path : ""; *at; at += strcspn(at, ":"), at += *at == ':') {
		buf_clear(&file);
		buf_addf(&file, "%.*s/mailroom", (int)strcspn(at, ":"), at);
		if (buf_ok(&file) && access(buf_z(&file), X_OK) == 0)
			return arena_dup(&s->cli->own, buf_str(&file));
	}
	return NULL;
}

/* ---- The room ---- */

/* No sandbox is opened for a folder that only lay on the way. */
static bool
is_usable(struct setup *s, const struct mr_place *place)
{
	struct mr_room_options options = { .found = place->found,
		.no_recover = true,
		.config_dir = env_config_dir(s->cli),
		.trust_paths = env_get("MAILROOM_TRUST") };
	struct mr_room *room = NULL;
	struct mr_error err = { 0 };
	enum mr_rc rc = mr_room_open(place->spec, &options, &room, &err);

	mr_room_close(room);
	return rc != MR_UNTRUSTED;
}

static enum mr_rc
find_room(struct setup *s, const char *cwd, struct mr_error *err)
{
	mr_auto(mr_place_done) struct mr_place place = { 0 };
	const char *env = variable("MAILROOM"), *option = s->cli->room_option;
	enum mr_rc rc = mr_room_find(spec_expand(s->cli, option, cwd), spec_expand(s->cli, env, cwd), cwd, &place, err);

	if (rc == MR_NOTFOUND && !option) {
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	if (rc != MR_OK)
		return rc;
	const char *spec = arena_dup(&s->cli->own, str_of(place.spec)), *colon = spec ? strchr(spec, ':') : NULL;

	if (!spec)
		return mr_nomem(err);
	if (option)
		s->room = spec;
	if (is_usable(s, &place))
		s->room_dir = colon ? colon + 1 : spec;
	else
		cli_warn(s->cli, "the room '%s' is not trusted, and is left out; if it is yours: mailroom trust", spec);
	return MR_OK;
}

/* The top of the worktree that the working folder is in, else that folder. */
static const char *
find_project(struct setup *s, const char *cwd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf dir = BUF_INIT;

	for (size_t len = strlen(cwd); len > 0; len--) {
		if (cwd[len] != '\0' && cwd[len] != '/')
			continue;
		buf_clear(&dir);
		buf_addf(&dir, "%.*s/.git", (int)len, cwd);
		if (buf_ok(&dir) && access(buf_z(&dir), F_OK) == 0) {
			dir.len -= strlen("/.git");
			return kept(s, &dir, err);
		}
	}
	buf_clear(&dir);
	buf_adds(&dir, cwd);
	return kept(s, &dir, err);
}

enum mr_rc
setup_place(struct setup *s, struct mr_error *err)
{
	mr_auto(free_ptr) char *cwd = getcwd(NULL, 0);

	if (!cwd)
		return mr_fail_errno(err, "cannot tell the working folder");
	TRY(find_program(s, err));
	TRY(find_room(s, cwd, err));
	s->project_dir = find_project(s, cwd, err);
	s->hook = command_line(s, false, err);
	s->waiter = command_line(s, true, err);
	s->state_dir = env_state_dir(s->cli);
	s->config_dir = env_config_dir(s->cli);
	s->state_home = variable("XDG_STATE_HOME");
	if (s->state_home && s->state_home[0] != '/')
		s->state_home = NULL;
	s->config_home = variable("XDG_CONFIG_HOME");
	if (s->config_home && s->config_home[0] != '/')
		s->config_home = NULL;
	return s->project_dir && s->hook && s->waiter ? MR_OK : err->code;
}

const char *
setup_path(struct setup *s, const struct setup_where *where, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;
	const char *own = variable(where->variable), *home = variable("HOME");

	if (s->project) {
		buf_addf(&path, "%s/%s", s->project_dir, where->in_project);
	} else if (own) {
		const char *folder = cli_folder(s->cli, own);

		buf_addf(&path, "%s/%s", folder ? folder : own, where->name);
	} else if (home && home[0] == '/') {
		buf_addf(&path, "%s/%s%s%s", home, where->folder, where->folder[0] ? "/" : "", where->name);
	} else {
		(void)mr_fail(err, MR_NOTFOUND, "cannot tell the home folder: $HOME is not set");
		(void)mr_hint(err, "set HOME, or use --project");
		return NULL;
	}
	return kept(s, &path, err);
}
