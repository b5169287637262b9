/* SPDX-License-Identifier: MIT */
/*
 * session.c - which harness session is which agent: one small file each, outside the room, so that the
 * shell, the hooks and the MCP server of one session agree without any exported variable.
 *
 * The file is <state>/sessions/<session>. A session that works in a second room as well has its
 * binding there in <session>+<hash of the room>: neither may silently end the other.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "base/process.h"
#include "base/sys.h"
#include "message/address.h"
#include "office/who/who.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define SESSIONS "sessions"
#define BINDING_MAX ((size_t)16 << 10)
#define FILE_NAME_MAX 200
#define ROOM_MARK_LEN 12 /* hex digits of the room's hash */
#define LOCK_WAIT_MS 5000
#define CLEARING_HARNESS "claude-code-"
#define ANCESTORS_MAX 64

/* ---- Names of the files ---- */

/* A session id comes from outside and becomes a file name: what is not plain is written %XX, what is
 * too long ends in its hash. */
static void
file_name(const char *session, const char *room_spec, struct buf *out)
{
	for (const char *c = session; *c; c++) {
		bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
			     *c == '-' || *c == '_' || (*c == '.' && c != session);

		if (plain)
			buf_addc(out, *c);
		else
			buf_addf(out, "%%%02X", (unsigned char)*c);
	}
	if (out->len > FILE_NAME_MAX && buf_ok(out)) {
		char hash[65];

		sha256_hex(str_of(session), hash);
		out->len = FILE_NAME_MAX - sizeof hash;
		buf_addf(out, ".%s", hash);
	}
	if (room_spec) {
		char hash[65];

		sha256_hex(str_of(room_spec), hash);
		buf_addf(out, "+%.*s", ROOM_MARK_LEN, hash);
	}
}

static enum mr_rc
open_folder(const char *state_dir, bool make, int *ret_fd, struct mr_error *err)
{
	return dir_below(state_dir, SESSIONS, make, false, ret_fd, err);
}

int
session_lock(const char *state_dir)
{
	mr_auto(sys_close_fd) int folder = -1;
	struct mr_error ignored = { 0 };
	int fd = -1;

	if (!state_dir || open_folder(state_dir, true, &folder, &ignored) != MR_OK ||
	    lock_take(folder, ".lock", 0600, LOCK_WAIT_MS, &fd, &ignored) != MR_OK)
		return -1;
	return fd;
}

/* The same room by whichever path it was opened. */
static char *
canonical(const char *room_spec)
{
	const char *colon = strchr(room_spec, ':');

	if (!colon || colon[1] != '/')
		return strdup(room_spec);
	mr_auto(free_ptr) char *path = path_full("/", colon + 1);
	struct buf spec = BUF_INIT;

	buf_add(&spec, (struct mr_str){ room_spec, (size_t)(colon + 1 - room_spec) });
	buf_adds(&spec, path ? path : colon + 1);
	return buf_take(&spec);
}

/* ---- One binding ---- */

void
binding_done(struct binding *b)
{
	free(b->session);
	free(b->worktree);
	free(b->room);
	free(b->noted);
	free(b->inherited);
	*b = (struct binding){ 0 };
}

static enum mr_rc
parse(const struct record *lines, struct binding *ret, struct mr_error *err)
{
	const char *agent = record_get(lines, "Agent"), *session = record_get(lines, "Session");
	const char *worktree = record_get(lines, "Worktree"), *bound = record_get(lines, "Bound");
	const char *process = record_get(lines, "Process"), *noted = record_get(lines, "Unconfirmed");
	const char *inherited = record_get(lines, "Inherited");
	int64_t life = record_int(lines, "Life", -1); /* 0: of a room without lives */
	const char *shell = record_get(lines, "Shell");
	struct mr_error ignored = { 0 };
	struct binding b = { .life = (unsigned)life };

	if (!agent || life < 0 || life > UINT32_MAX || address_normal(str_of(agent), b.agent, &ignored) != MR_OK)
		return mr_fail(err, MR_CORRUPT, "no agent and life in it");
	if (process && process[0] && !process_parse(str_of(process), &b.process))
		return mr_fail(err, MR_CORRUPT, "bad 'Process: %.60s'", process);
	if (shell && !process_parse(str_of(shell), &b.shell))
		return mr_fail(err, MR_CORRUPT, "bad 'Shell: %.60s'", shell);
	if (bound)
		(void)time_parse_rfc3339(str_of(bound), &b.bound_ms);
	b.session = strdup(session ? session : "");
	b.worktree = strdup(worktree ? worktree : "");
	b.room = strdup(record_get(lines, "Room"));
	b.hooked = record_get(lines, "Hooked") != NULL;
	b.noted = noted ? strdup(noted) : NULL;
	b.inherited = inherited ? strdup(inherited) : NULL;
	if (!b.session || !b.worktree || !b.room || (noted && !b.noted) || (inherited && !b.inherited)) {
		binding_done(&b);
		return mr_nomem(err);
	}
	*ret = b;
	return MR_OK;
}

/* MR_NOTFOUND: no such file, or a binding in another room. room_spec NULL: whichever. */
static enum mr_rc
load_file(int folder, const char *name, const char *room_spec, struct binding *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = sys_open(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(record_done) struct record lines = { 0 };
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "no binding '%s'", name);
	if (fd < 0 || sys_stat_fd(fd, &st) < 0)
		return mr_fail_errno(err, "cannot read session binding '%s'", name);
	if (!S_ISREG(st.st_mode) || st.st_uid != sys_euid())
		return mr_fail(err, MR_REFUSED, "session binding '%s' is not a file of this user", name);
	if (file_read_sized(fd, st.st_size, BINDING_MAX, &text, err) != MR_OK ||
	    record_parse(buf_str(&text), &lines, err) != MR_OK)
		return mr_wrap(err, "session binding '%s'", name);
	const char *room = record_get(&lines, "Room");

	if (room && room_spec && strcmp(room, room_spec) != 0)
		return mr_fail(err, MR_NOTFOUND, "binding '%s' is for another room", name);
	if (!room)
		return mr_fail(err, MR_CORRUPT, "session binding '%s': no room in it", name);
	if (parse(&lines, ret, err) != MR_OK)
		return mr_wrap(err, "session binding '%s'", name);
	return MR_OK;
}

/* By the room's path without links in it, and where the session has its binding in a second room. */
static enum mr_rc
load_canonical(int folder, const char *session, const char *plain, const char *room_spec, struct binding *ret,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf other = BUF_INIT;
	mr_auto(free_ptr) char *room = canonical(room_spec);
	enum mr_rc rc = MR_NOTFOUND;

	file_name(session, room, &other);
	if (!room || !buf_ok(&other))
		return mr_nomem(err);
	if (strcmp(room, room_spec) != 0)
		rc = load_file(folder, plain, room, ret, err);
	return rc == MR_NOTFOUND ? load_file(folder, buf_z(&other), room, ret, err) : rc;
}

enum mr_rc
session_load(
    const char *state_dir, const char *session, const char *room_spec, struct binding *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf plain = BUF_INIT, path = BUF_INIT;
	mr_auto(sys_close_fd) int folder = -1;

	file_name(session, NULL, &plain);
	buf_adds(&path, state_dir);
	buf_adds(&path, "/" SESSIONS "/");
	buf_add(&path, buf_str(&plain));
	if (!buf_ok(&plain) || !buf_ok(&path))
		return mr_nomem(err);
	/* Mostly the room was opened by the path that stands in the binding. */
	enum mr_rc rc = load_file(AT_FDCWD, buf_z(&path), room_spec, ret, err);

	if (rc != MR_NOTFOUND)
		return rc;
	rc = open_folder(state_dir, false, &folder, err);
	return rc == MR_OK ? load_canonical(folder, session, buf_z(&plain), room_spec, ret, err) : rc;
}

static enum mr_rc
write_lines(struct buf *out, const char *room_spec, const struct binding *b, const struct binding *lists,
    const char *inherited, struct mr_error *err)
{
	mr_auto(buf_done) struct buf process = BUF_INIT, shell = BUF_INIT;
	char bound[RFC3339_LEN + 1];

	if (b->process.pid)
		process_format(&b->process, &process);
	if (b->shell.pid)
		process_format(&b->shell, &shell);
	time_rfc3339(b->lists && b->bound_ms ? b->bound_ms : clock_now_ms(), bound);
	TRY(header_add(out, "Room", str_of(room_spec), err));
	TRY(header_add(out, "Session", str_of(b->session), err));
	TRY(header_add(out, "Agent", str_of(b->agent), err));
	buf_addf(out, "Life: %u\n", b->life);
	if ((process.len && header_add(out, "Process", buf_str(&process), err) != MR_OK) ||
	    (shell.len && header_add(out, "Shell", buf_str(&shell), err) != MR_OK) ||
	    (b->worktree && b->worktree[0] && header_add(out, "Worktree", str_of(b->worktree), err) != MR_OK) ||
	    header_add(out, "Bound", str_of(bound), err) != MR_OK ||
	    (lists->hooked && header_add(out, "Hooked", STR("yes"), err) != MR_OK) ||
	    (lists->noted && lists->noted[0] && header_add(out, "Unconfirmed", str_of(lists->noted), err) != MR_OK) ||
	    (inherited && header_add(out, "Inherited", str_of(inherited), err) != MR_OK))
		return err->code;
	return buf_ok(out) && buf_ok(&process) && !shell.failed ? MR_OK : mr_nomem(err);
}

enum mr_rc
session_save(const char *state_dir, const char *room_spec, const struct binding *b, struct mr_error *err)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(free_ptr) char *room = canonical(room_spec);
	mr_auto(binding_done) struct binding there = { 0 };
	mr_auto(sys_close_fd) int folder = -1;
	struct mr_error why = { 0 };
	struct stat st;

	file_name(b->session, NULL, &name);
	if (!room || !buf_ok(&name))
		return mr_nomem(err);
	if (open_folder(state_dir, true, &folder, err) != MR_OK)
		return mr_wrap(err, "bind session '%.80s'", b->session);
	/* Taken by a good binding in another room; a broken one is written over. */
	if (load_file(folder, buf_z(&name), room, &there, &why) == MR_NOTFOUND &&
	    sys_stat(folder, buf_z(&name), &st) == 0) {
		buf_clear(&name);
		file_name(b->session, room, &name);
		(void)load_file(folder, buf_z(&name), room, &there, &why);
	}
	if (!buf_ok(&name))
		return mr_nomem(err);
	bool same = !b->lists && there.life == b->life && strcmp(there.agent, b->agent) == 0;

	if (write_lines(&text, room, b, same ? &there : b, b->inherited ? b->inherited : there.inherited, err) !=
		MR_OK ||
	    file_replace(folder, buf_z(&name), buf_str(&text), 0600, err) != MR_OK)
		return mr_wrap(err, "bind session '%.80s'", b->session);
	return MR_OK;
}

/* ---- After /clear ---- */

bool
session_may_clear(const char *a, const char *b)
{
	return strncmp(a, CLEARING_HARNESS, strlen(CLEARING_HARNESS)) == 0 &&
	       strncmp(b, CLEARING_HARNESS, strlen(CLEARING_HARNESS)) == 0;
}

struct process_search {
	int folder;
	const char *room_spec;
	const struct mr_process *process;
	struct binding best;
	bool found;
};

static bool
keep_if_same_process(void *ctx, const struct dir_entry *entry)
{
	struct process_search *search = ctx;
	mr_auto(binding_done) struct binding b = { 0 };
	struct mr_error ignored = { 0 };

	if (strncmp(entry->name, CLEARING_HARNESS, strlen(CLEARING_HARNESS)) != 0 ||
	    load_file(search->folder, entry->name, search->room_spec, &b, &ignored) != MR_OK ||
	    !process_same(&b.process, search->process))
		return true;
	/* Several /clear in a row leave several bindings; the last one says who the session is now. */
	if (!search->found || b.bound_ms >= search->best.bound_ms) {
		struct binding older = search->best;

		search->best = b;
		b = older;
		search->found = true;
	}
	return true;
}

enum mr_rc
session_find_process(const char *state_dir, const char *session, const char *room_spec,
    const struct mr_process *process, struct binding *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int folder = -1;
	mr_auto(free_ptr) char *room = canonical(room_spec);
	struct process_search search = { .room_spec = room, .process = process };
	enum mr_rc rc;

	if (!room)
		return mr_nomem(err);
	if (process->pid == 0 || !session_may_clear(session, session) || process_state(process) != PROCESS_ALIVE)
		return mr_fail(err, MR_NOTFOUND, "session '%.80s' is not bound", session);
	rc = open_folder(state_dir, false, &folder, err);
	if (rc != MR_OK)
		return rc;
	search.folder = folder;
	rc = dir_each(folder, keep_if_same_process, &search, err);
	if (rc == MR_OK && !search.found)
		rc = mr_fail(err, MR_NOTFOUND, "session '%.80s' is not bound", session);
	if (rc == MR_OK)
		*ret = search.best;
	else
		binding_done(&search.best);
	return rc;
}

/* ---- All of them ---- */

bool
session_is_in(const struct binding *b, const char *room_spec)
{
	mr_auto(free_ptr) char *room = canonical(room_spec);

	return room && strcmp(b->room, room) == 0;
}

bool
session_is_known(const char *state_dir, const char *session)
{
	mr_auto(sys_close_fd) int folder = -1;
	mr_auto(buf_done) struct buf name = BUF_INIT;
	struct mr_error ignored = { 0 };
	struct stat st;

	file_name(session, NULL, &name);
	return state_dir && buf_ok(&name) && open_folder(state_dir, false, &folder, &ignored) == MR_OK &&
	       sys_stat(folder, buf_z(&name), &st) == 0;
}

/* One harness started inside the other leaves its variable in the environment of the inner one. The hooks of the inner
 * one have seen it there. */
bool
mr_session_inherits(const char *state_dir, const char *session, const char *other)
{
	mr_auto(sys_close_fd) int folder = -1;
	mr_auto(buf_done) struct buf name = BUF_INIT;
	mr_auto(binding_done) struct binding b = { 0 };
	struct mr_error ignored = { 0 };
	size_t len = strlen(other);

	file_name(session, NULL, &name);
	if (!state_dir || len == 0 || !buf_ok(&name) || open_folder(state_dir, false, &folder, &ignored) != MR_OK ||
	    load_file(folder, buf_z(&name), NULL, &b, &ignored) != MR_OK)
		return false;
	for (const char *at = b.inherited; at && (at = strstr(at, other)); at += len)
		if ((at == b.inherited || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
			return true;
	return false;
}

static bool
note_session(void *ctx, const struct dir_entry *entry)
{
	return entry->name[0] == '.' || names_add(ctx, str_of(entry->name));
}

enum mr_rc
session_each(const char *state_dir, session_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(sys_close_fd) int folder = -1;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	enum mr_rc rc = open_folder(state_dir, false, &folder, err);

	if (rc == MR_OK)
		rc = dir_each(folder, note_session, &names, err); /* gathered first: fn may take files away */
	for (size_t i = 0; rc == MR_OK && i < names.n; i++) {
		mr_auto(binding_done) struct binding b = { 0 };
		struct mr_error broken = { 0 };

		if (load_file(folder, names.v[i], NULL, &b, &broken) == MR_OK && !fn(ctx, folder, names.v[i], &b))
			break;
	}
	return rc;
}

/* ---- By a process above us ---- */

/* A process of these is in one session at a time. One of the others, such as an editor, may run several side by side.
 */
static const char *const single[] = { CLEARING_HARNESS, "gemini-" };
#define SINGLE_N (sizeof single / sizeof single[0])

static size_t
which_single(const char *session)
{
	size_t i = 0;

	while (i < SINGLE_N && strncmp(session, single[i], strlen(single[i])) != 0)
		i++;
	return i;
}

struct above_search {
	struct mr_process above[ANCESTORS_MAX]; /* the nearest first */
	size_t n;
	struct binding best;
	size_t harness; /* of it, in `single` */
	bool clear;     /* its process is in this one session */
};

/* Of the nearest process; of several sessions of it (after /clear, or in another room) the last. */
static bool
keep_if_nearest(void *ctx, int folder, const char *name, const struct binding *b)
{
	struct above_search *search = ctx;
	size_t at = 0, harness = which_single(b->session);

	(void)folder;
	(void)name;
	if (b->process.pid <= 1 || terminal_is(b->session))
		return true;
	while (at < search->n && !process_same(&b->process, &search->above[at]))
		at++;
	if (at == search->n)
		return true;
	bool nearer = !search->best.session || at + 1 < search->n;

	/* What sessions of two harnesses are bound to is neither of them, but something above both. */
	search->clear = harness < SINGLE_N && (nearer || (search->clear && harness == search->harness));
	search->harness = harness;
	search->n = at + 1; /* what is further away does not matter any more */
	char *session = nearer || b->bound_ms >= search->best.bound_ms ? strdup(b->session) : NULL;

	if (session) {
		free(search->best.session);
		search->best = (struct binding){ .session = session, .process = b->process, .bound_ms = b->bound_ms };
	}
	return true;
}

static bool
find_above(const char *state_dir, struct binding *ret, bool *ret_clear)
{
	struct above_search search = { 0 };
	struct mr_error ignored = { 0 };

	search.n = process_ancestors(search.above, ANCESTORS_MAX);
	if (state_dir && search.n > 0)
		(void)session_each(state_dir, keep_if_nearest, &search, &ignored);
	*ret = search.best;
	*ret_clear = search.clear;
	return search.best.session != NULL;
}

bool
session_above(const char *state_dir, struct binding *ret)
{
	mr_auto(binding_done) struct binding b = { 0 };
	bool clear;

	/* With the same program in between that is another session of it, which nobody has bound. */
	if (!find_above(state_dir, &b, &clear) || !clear || !process_is_innermost(&b.process))
		return false;
	*ret = b;
	b = (struct binding){ 0 };
	return true;
}

char *
mr_session_above(const char *state_dir)
{
	struct binding b = { 0 };
	bool clear;

	return find_above(state_dir, &b, &clear) ? b.session : NULL; /* nothing else in it is owned */
}
