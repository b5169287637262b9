/* SPDX-License-Identifier: MIT */
/* place.c - where the settings files are, and what our entries say: which program, which room, in command lines that a
 * shell reads as we mean them. A line with more in it than plain words is somebody else's, and is left alone. */
#include <limits.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/setup/setup.h"

#define CONFIG ".config/"

const char *const setup_home_names[2] = { "XDG_STATE_HOME", "XDG_CONFIG_HOME" };

/* ---- Command lines ---- */

void
command_quote(struct buf *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:@%=,";

	if (word[0] && !word[strspn(word, plain)]) {
		buf_adds(out, word);
		return;
	}
	buf_addc(out, '\'');
	for (const char *c = word; *c; c++)
		buf_adds(out, *c == '\'' ? "'\\''" : (char[]){ *c, '\0' });
	buf_addc(out, '\'');
}

/* One piece of a word: up to the end of its quotes, or one character. NULL: no plain word. */
static const char *
take_piece(const char *at, struct buf *word)
{
	if (*at == '\'') {
		const char *end = strchr(at + 1, '\'');

		if (!end)
			return NULL;
		buf_add(word, (struct mr_str){ at + 1, (size_t)(end - at - 1) });
		return end + 1;
	}
	if (*at == '"') {
		for (at++; *at && *at != '"'; at++) {
			if (*at == '$' || *at == '`')
				return NULL;
			if (*at == '\\' && at[1] && strchr("\"\\$`", at[1]))
				at++;
			buf_addc(word, *at);
		}
		return *at ? at + 1 : NULL;
	}
	if (*at == '\\' && at[1])
		at++;
	else if (strchr("|&;<>()$`*?[]#~!{}\n\\", *at))
		return NULL;
	buf_addc(word, *at);
	return at + 1;
}

bool
command_split(const char *line, struct mr_names *ret)
{
	for (const char *at = line;;) {
		mr_auto(buf_done) struct buf word = BUF_INIT;

		at += strspn(at, " \t");
		if (!*at)
			return true;
		while (at && *at && *at != ' ' && *at != '\t')
			at = take_piece(at, &word);
		if (!at || !buf_ok(&word) || !names_add(ret, str_of(buf_z(&word))))
			return false;
	}
}

bool
command_is_program(const struct setup *s, const char *word)
{
	return strcmp(word, s->program) == 0 || strcmp(path_name(word), "mailroom") == 0;
}

bool
command_is_hook(const struct setup *s, const char *line, bool *ret_waits)
{
	mr_auto(mr_names_done) struct mr_names words = { 0 };

	if (!command_split(line, &words) || words.n < 3 || !command_is_program(s, words.v[0]) ||
	    strcmp(words.v[1], "hook") != 0 || strcmp(words.v[2], s->harness->name) != 0)
		return false;
	*ret_waits = false;
	for (size_t i = 3; i < words.n; i++) {
		if (strcmp(words.v[i], "--wait") == 0)
			*ret_waits = true;
		else if (strcmp(words.v[i], "--room") == 0 && i + 1 < words.n)
			i++;
		else
			return false;
	}
	return true;
}

static const char *
hook_line(struct setup *s, bool waits)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	command_quote(&line, s->command);
	buf_addf(&line, " hook %s%s", s->harness->name, waits ? " --wait" : "");
	if (s->room) {
		buf_adds(&line, " --room ");
		command_quote(&line, s->room);
	}
	return buf_ok(&line) ? arena_dup(&s->cli->own, buf_str(&line)) : NULL;
}

const char *
command_in_path(struct setup *s)
{
	const char *path = env_get("PATH");

	for (const char *at = path ? path : ""; *at; at += strcspn(at, ":"), at += *at == ':') {
		const char *file = cli_text(s->cli, "%.*s/mailroom", (int)strcspn(at, ":"), at);

		if (file && access(file, X_OK) == 0)
			return file;
	}
	return NULL;
}

/* ---- The program, the room, the project ---- */

static enum mr_rc
find_room(struct setup *s, struct mr_error *err)
{
	mr_auto(mr_place_done) struct mr_place place = { 0 };
	const char *option = s->cli->room_option;
	struct mr_room *room = NULL;
	enum mr_rc rc = cli_find_room(s->cli, option, true, &place, err);

	if (rc == MR_NOTFOUND && !option) {
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	TRY(rc);
	const char *spec = arena_dup(&s->cli->own, str_of(place.spec)), *colon = spec ? strchr(spec, ':') : NULL;
	struct mr_room_options options = { .found = place.found,
		.no_recover = true,
		.config_dir = env_config_dir(s->cli),
		.trust_paths = env_get("MAILROOM_TRUST") };

	TRY(mr_got(spec, err));
	if (option)
		s->room = spec;
	/* A sandbox is not opened for a room that happens to lie on the way. */
	if (mr_room_open(place.spec, &options, &room, IGNORED) != MR_UNTRUSTED)
		s->room_dir = colon ? colon + 1 : spec;
	else
		cli_warn(s->cli, "the room '%s' is not trusted, and is left out; if it is yours: mailroom trust", spec);
	mr_room_close(room);
	return MR_OK;
}

/* The top of the worktree that the working folder is in, else that folder. */
static const char *
find_project(struct setup *s, const char *cwd)
{
	for (size_t len = strlen(cwd); len > 0; len--) {
		const char *git =
		    cwd[len] == '\0' || cwd[len] == '/' ? cli_text(s->cli, "%.*s/.git", (int)len, cwd) : NULL;

		if (git && access(git, F_OK) == 0)
			return cli_text(s->cli, "%.*s", (int)len, cwd);
	}
	return cli_text(s->cli, "%s", cwd);
}

enum mr_rc
setup_place(struct setup *s, struct mr_error *err)
{
	mr_auto(free_ptr) char *cwd = getcwd(NULL, 0);
	char program[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);

	if (!cwd)
		return mr_fail_errno(err, "cannot find the working folder");
	if (len <= 0 || program[0] != '/')
		return mr_fail(err, MR_NOTFOUND,
		    "cannot find the path of this program: '/proc/self/exe' cannot be read\n"
		    "settings need its absolute path; run it where /proc is mounted");
	program[len] = '\0';
	if (access(program, X_OK) < 0) /* replaced while it ran: "... (deleted)" */
		return mr_fail(err, MR_NOTFOUND,
		    "the program '%s' no longer exists\nrun the command again with the program that replaced it",
		    program);
	s->program = arena_dup(&s->cli->own, str_of(program));
	s->command = s->project ? "mailroom" : s->program;
	TRY(mr_got(s->program, err));
	TRY(find_room(s, err));
	s->project_dir = find_project(s, cwd);
	s->hook = hook_line(s, false);
	s->waiter = hook_line(s, true);
	s->state_dir = env_state_dir(s->cli);
	s->config_dir = env_config_dir(s->cli);
	for (size_t i = 0; i < 2; i++) {
		const char *home = env_get(setup_home_names[i]);

		s->homes[i] = home && home[0] == '/' ? home : NULL;
	}
	return mr_got(s->project_dir && s->hook && s->waiter, err);
}

const char *
setup_path(struct setup *s, const struct setup_where *where, struct mr_error *err)
{
	const char *own = where->variable ? env_get(where->variable) : NULL, *home = env_get("HOME");
	const char *xdg = env_get("XDG_CONFIG_HOME"), *folder = own ? cli_folder(s->cli, own) : NULL, *path = NULL;

	if (s->project)
		path = cli_text(s->cli, "%s/%s", s->project_dir, where->in_project);
	else if (own)
		path = cli_text(s->cli, "%s/%s", folder ? folder : own, where->name);
	else if (xdg && xdg[0] == '/' && strncmp(where->folder, CONFIG, strlen(CONFIG)) == 0)
		path = cli_text(s->cli, "%s/%s/%s", xdg, where->folder + strlen(CONFIG), where->name);
	else if (home && home[0] == '/')
		path = cli_text(s->cli, "%s/%s%s%s", home, where->folder, where->folder[0] ? "/" : "", where->name);
	else
		(void)mr_fail(
		    err, MR_NOTFOUND, "cannot find the home folder: $HOME is not set\nset HOME, or use --project");
	if (!path && err->code == MR_OK)
		(void)mr_nomem(err);
	return path;
}
