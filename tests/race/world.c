/* SPDX-License-Identifier: MIT */
/* world.c - the room of a race: made once by a script, copied for every schedule, and looked at afterwards. */
#include "lib/settle.h"
#include "race.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char prelude[] =
    "set -e\n"
    "mr() { \"$BIN\" \"$@\" </dev/null >>log 2>&1; }\n"
    "say() { \"$BIN\" --as \"$1\" send \"$2\" -s \"$3\" -m \"$3: whole\" </dev/null 2>>log >\"$3\"; }\n"
    "mr init --name town .\n"
    "for name in alice bob carol dave; do mr register $name; done\n";

void
violate(struct world *w, const char *fmt, ...)
{
	va_list args;

	if (w->violation[0] != '\0')
		return;
	va_start(args, fmt);
	(void)vsnprintf(w->violation, sizeof(w->violation), fmt, args);
	va_end(args);
}

/* ---- Making it ---- */

static int
run_to_end(const char *const *argv, const char *dir, const char *out)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		int fd = open(out ? out : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600),
		    in = open("/dev/null", O_RDONLY);
		if (chdir(dir) < 0 || dup2(fd, 1) < 0 || dup2(in, 0) < 0 || dup2(fd, 2) < 0)
			_exit(126);
		(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

void
world_remove(const char *path)
{
	(void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Rooms know absolute paths (links), so the script runs in the very folder that the copies will have. */
bool
world_make(struct world *w)
{
	char script[8192], template[200], log[200];

	(void)snprintf(w->dir, sizeof(w->dir), "%s/w", w->base);
	(void)snprintf(template, sizeof(template), "%s/template", w->base);
	(void)snprintf(log, sizeof(log), "%s/log", w->base);
	(void)mkdir(w->base, 0700);
	world_remove(w->dir);
	world_remove(template);
	(void)mkdir(w->dir, 0700);
	(void)setenv("HOME", w->dir, 1);
	(void)setenv("XDG_STATE_HOME", w->dir, 1);
	(void)setenv("XDG_CONFIG_HOME", w->dir, 1);
	(void)setenv("BIN", w->bin, 1);
	(void)setenv("DEVBIN", w->devbin, 1);
	(void)snprintf(script, sizeof(script), "%s%s", prelude, w->pair->script);
	int rc = run_to_end((const char *[]){ "sh", "-c", script, NULL }, w->dir, log);
	if (rc != 0 || rename(w->dir, template) < 0) {
		(void)fprintf(stderr, "# %s: the script of the pair failed (%d), see %s and %s/log\n", w->pair->name,
		    rc, log, w->dir);
		return false;
	}
	return true;
}

/* What a copy does not keep, such as times of folders, the script leaves to be done to each: a script "each". */
static bool
make_anew(const struct world *w)
{
	char each[200];

	(void)snprintf(each, sizeof(each), "%s/each", w->dir);
	return access(each, F_OK) < 0 || run_to_end((const char *[]){ "sh", "-e", each, NULL }, w->dir, NULL) == 0;
}

bool
world_reset(struct world *w)
{
	char template[200];

	(void)snprintf(template, sizeof(template), "%s/template", w->base);
	world_remove(w->dir);
	free(w->out_a);
	free(w->out_b);
	w->out_a = w->out_b = NULL;
	w->found_n = 0;
	w->violation[0] = '\0';
	if (run_to_end((const char *[]){ "cp", "-a", template, w->dir, NULL }, "/", NULL) != 0)
		return false;
	(void)snprintf(template, sizeof(template), "%s/mailroom", w->dir);
	settle_configuration(template);
	return make_anew(w);
}

void
world_done(struct world *w)
{
	free(w->out_a);
	free(w->out_b);
	w->out_a = w->out_b = NULL;
	world_remove(w->base);
}

/* ---- Running commands in it ---- */

static char *
read_text(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = calloc(1, 1 << 16);
	ssize_t n = fd >= 0 && text ? read(fd, text, (1 << 16) - 1) : 0;

	(void)n;
	if (fd >= 0)
		(void)close(fd);
	return text;
}

struct words {
	const char *v[16];
	char room[8][300];
};

static void
expand(const struct world *w, const char *const *argv, struct words *ret)
{
	size_t n = 0, rooms = 0;

	if (strcmp(argv[0], "!") == 0)
		argv++;
	else
		ret->v[n++] = w->bin;
	for (; *argv && n < 15; argv++, n++) {
		ret->v[n] = *argv;
		if ((*argv)[0] != '@' || rooms == 8)
			continue;
		char path[300];
		(void)snprintf(path, sizeof(path), "%s/%s", w->dir, *argv + 1);
		char *text = read_text(path);
		(void)snprintf(ret->room[rooms], sizeof(ret->room[0]), "%.*s", (int)strcspn(text, "\n"), text);
		free(text);
		ret->v[n] = ret->room[rooms++];
	}
	ret->v[n] = NULL;
}

bool
world_start(struct world *w, struct actor *a, const char *const *argv)
{
	static char names[2][200];
	struct words words;
	char *name = names[a == &w->b];

	(void)snprintf(name, sizeof(names[0]), "%s/out.%c", w->base, a == &w->b ? 'b' : 'a');
	a->out = name;
	expand(w, argv, &words);
	return actor_start(a, words.v, w->dir);
}

int
world_run(struct world *w, const char *const *argv)
{
	struct words words;

	expand(w, argv, &words);
	return run_to_end(words.v, w->dir, NULL);
}

/* ---- Looking ---- */

struct looking {
	struct world *w;
	const char *agent;
};

static bool
note_copy(void *ctx, const struct mr_message *msg)
{
	struct looking *l = ctx;
	struct world *w = l->w;

	if (w->found_n == FOUND_MAX) {
		violate(w, "more than %d messages", FOUND_MAX);
		return false;
	}
	struct found *f = &w->found[w->found_n++];
	*f = (struct found){ .folder = msg->folder, .flags = msg->flags, .attempt = msg->attempt };
	(void)snprintf(f->agent, sizeof(f->agent), "%s", l->agent);
	(void)snprintf(f->id, sizeof(f->id), "%s", msg->id);
	(void)snprintf(f->tag, sizeof(f->tag), "%s", msg->subject);
	(void)snprintf(f->token, sizeof(f->token), "%s", msg->token);
	char body[48];
	(void)snprintf(body, sizeof(body), "%s: whole", f->tag);
	f->whole = msg->body && memmem(msg->body, msg->body_len, body, strlen(body)) != NULL;
	if (!f->whole && strcmp(msg->type, "bounce") != 0)
		violate(w, "%s has a torn message '%s'", l->agent, f->tag);
	return true;
}

static void
note_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	struct looking *l = ctx;

	violate(l->w, "%s: '%s': %s", l->agent, path, err->message);
}

static void
look_into(struct world *w, struct mr_room *room, const char *agent, const char *as, unsigned folders)
{
	struct mr_error err = { 0 };
	struct looking l = { w, as };
	struct mr_scan scan = { .bodies = true, .trouble = note_trouble };

	scan.filter.folders = folders;
	enum mr_rc rc = mr_scan(room, agent, &scan, note_copy, &l, &err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		violate(w, "looking into %s: %s", as, err.message);
}

/* trouble's ctx is that of the scan */
static struct mr_room *
open_room(struct world *w, const char *spec)
{
	struct mr_error err = { 0 };
	struct mr_room *room = NULL;
	struct mr_room_options options = { .state_dir = w->dir };

	if (mr_room_open(spec, &options, &room, &err) != MR_OK)
		violate(w, "opening '%s': %s", spec, err.message);
	return room;
}

static void
look_there(struct world *w)
{
	char spec[300];
	const char *colon = strchr(w->pair->there, ':');

	(void)snprintf(
	    spec, sizeof(spec), "%.*s:%s/%s", (int)(colon - w->pair->there), w->pair->there, w->dir, colon + 1);
	struct mr_room *room = open_room(w, spec);
	if (!room)
		return;
	unsigned folders = MR_INBOX | (strcmp(mr_room_kind(room), "maildir") == 0 ? MR_HELD | MR_ARCHIVE : 0);
	look_into(w, room, "carol", "there/carol", folders);
	mr_room_close(room);
}

void
world_look_at(struct world *w, const char *agents)
{
	char spec[200], names[120], *rest = NULL;

	(void)snprintf(spec, sizeof(spec), "maildir:%s/.mailroom", w->dir);
	struct mr_room *room = open_room(w, spec);
	if (!room)
		return;
	(void)snprintf(names, sizeof(names), "%s", agents);
	for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
		look_into(w, room, name, name, MR_INBOX | MR_HELD | MR_ARCHIVE);
	look_into(w, room, NULL, "dead", MR_DEAD);
	mr_room_close(room);
}

void
world_look(struct world *w)
{
	w->out_a = read_text(w->a.out);
	w->out_b = read_text(w->b.out);
	w->exit_a = actor_exit(&w->a);
	w->exit_b = actor_exit(&w->b);
	if (w->pair->agents[0])
		world_look_at(w, w->pair->agents);
	if (w->pair->there)
		look_there(w);
}

size_t
copies(const struct world *w, const char *agent, const char *tag)
{
	size_t n = 0;

	for (size_t i = 0; i < w->found_n; i++)
		n += strcmp(w->found[i].agent, agent) == 0 && strcmp(w->found[i].tag, tag) == 0;
	return n;
}

const struct found *
the_copy(const struct world *w, const char *agent, const char *tag)
{
	for (size_t i = 0; i < w->found_n; i++)
		if (strcmp(w->found[i].agent, agent) == 0 && strcmp(w->found[i].tag, tag) == 0)
			return &w->found[i];
	return NULL;
}

unsigned
shown_by(const char *out, const char *tag)
{
	char whole[48];
	unsigned n = 0;

	(void)snprintf(whole, sizeof(whole), "%s: whole", tag);
	for (const char *at = out; (at = strstr(at, whole)) != NULL; at++)
		n++;
	return n;
}

bool
consumed(const struct found *f)
{
	return (f->flags & MR_SEEN) || f->folder == MR_ARCHIVE;
}

bool
out_value(const char *out, const char *name, char *ret, size_t size)
{
	char key[40];

	(void)snprintf(key, sizeof(key), "\"%s\":\"", name);
	const char *at = strstr(out, key);
	if (!at)
		return false;
	at += strlen(key);
	(void)snprintf(ret, size, "%.*s", (int)strcspn(at, "\""), at);
	return true;
}
