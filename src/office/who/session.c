/* SPDX-License-Identifier: MIT */
/*
 * session.c - which harness session, or which terminal, is which agent: one small file each, outside the room, so that
 * the shell, the hooks and the MCP server of one session agree without an exported variable.
 *
 * The file is <state>/sessions/<session>. If a session also works in a second room, its binding there is in
 * <session>+<hash of the room>, so that neither ends the other silently.
 *
 * Outside of a harness a terminal session is identified by its leader's number and start time. It has a binding for
 * each agent that it registered; with several bindings it identifies none of them.
 *
 * Codex calls its sessions threads. Its background server runs those of all terminals in one process, with the
 * environment of the terminal that started it: the process does not identify a thread and outlives it. A thread is
 * identified by its id, a UUID that begins with its time of creation, and by the file
 *
 *	<CODEX_HOME>/thread-writer-locks/<id>.lock
 *
 * which exists while the server has the thread loaded. The server unloads a thread, and reports it with SessionEnd, a
 * minute after its last terminal left it: closed, or gone on to another thread by /clear or /new. The lock itself is
 * never tried, because Codex could not load the thread at that moment.
 */
#include "base/id.h"
#include "message/address.h"
#include "office/who/who.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <unistd.h>

#define SESSIONS "sessions"
#define TERMINAL "terminal-"
#define BINDING_MAX ((size_t)16 << 10)
#define FILE_NAME_MAX 200
#define ROOM_MARK_LEN 12 /* hex digits of the room's hash */
#define LOCK_WAIT_MS 5000
#define CLEARING_HARNESS "claude-code-"
#define ANCESTORS_MAX 64
#define THREAD "codex-"
#define LOCKS "thread-writer-locks"
#define LOCK_END ".lock"
#define SWEPT ".swept" /* its mtime: the last search for ended sessions */
#define DAY_MS ((int64_t)24 * 3600 * 1000)
#define SESSION_KEPT_MS (30 * DAY_MS)
#define UNKNOWN_KEPT_MS (180 * DAY_MS)
#define TIME_DIGITS 12 /* the first 48 bits of a UUID of version 7: milliseconds since 1970 */

/* ---- Names of the files ---- */

/* A session id comes from outside and becomes a file name: unusual characters become %XX, and a long id ends in its
 * hash. room_spec NULL: without a mark of the room. */
static void
file_name(const char *session, const char *room_spec, struct buf *out)
{
	char hash[65];

	for (const char *c = session; *c; c++) {
		if (ascii_alnum(*c) || *c == '-' || *c == '_' || (*c == '.' && c != session))
			buf_addc(out, *c);
		else
			buf_addf(out, "%%%02X", (unsigned char)*c);
	}
	if (out->len > FILE_NAME_MAX && buf_ok(out)) {
		sha256_hex(str_of(session), hash);
		out->len = FILE_NAME_MAX - sizeof hash;
		buf_addf(out, ".%s", hash);
	}
	if (room_spec) {
		sha256_hex(str_of(room_spec), hash);
		buf_addf(out, "+%.*s", ROOM_MARK_LEN, hash);
	}
}

static enum mr_rc
open_folder(const char *state_dir, bool make, int *ret_fd, struct mr_error *err)
{
	if (!state_dir)
		return mr_fail(err, MR_NOTFOUND, "no state folder");
	return dir_below(state_dir, SESSIONS, make, false, ret_fd, err);
}

int
session_lock(const char *state_dir)
{
	mr_auto(sys_close_fd) int folder = -1;
	int fd = -1;

	if (open_folder(state_dir, true, &folder, IGNORED) != MR_OK ||
	    lock_take(folder, ".lock", 0600, LOCK_WAIT_MS, &fd, IGNORED) != MR_OK)
		return -1;
	return fd;
}

/* The same spec for every path by which the room may be opened. */
static char *
canonical(const char *room_spec)
{
	const char *colon = strchr(room_spec, ':');

	if (!colon || colon[1] != '/')
		return strdup(room_spec);
	mr_auto(free_ptr) char *path = path_full("/", colon + 1);
	struct buf spec = BUF_INIT;

	buf_addf(&spec, "%.*s:%s", (int)(colon - room_spec), room_spec, path ? path : colon + 1);
	return buf_take(&spec);
}

/* ---- One binding ---- */

static const struct record_field fields[] = {
	{ "Room", RECORD_TEXT, offsetof(struct binding, room) },
	{ "Session", RECORD_TEXT, offsetof(struct binding, session) },
	{ "Life", RECORD_COUNT, offsetof(struct binding, life) },
	{ "Process", RECORD_PROCESS, offsetof(struct binding, process) },
	{ "Shell", RECORD_PROCESS, offsetof(struct binding, shell) },
	{ "Worktree", RECORD_TEXT, offsetof(struct binding, worktree) },
	{ "Bound", RECORD_TIME, offsetof(struct binding, bound_ms) },
	{ "Unconfirmed", RECORD_TEXT, offsetof(struct binding, noted) },
	{ "Inherited", RECORD_TEXT, offsetof(struct binding, inherited) },
};

/* `from` is empty afterwards. */
static struct binding
binding_move(struct binding *from)
{
	struct binding b = *from;

	*from = (struct binding){ 0 };
	return b;
}

/* MR_NOTFOUND: no such file, or a binding in another room. room_spec NULL: any room. */
static enum mr_rc
load_file(int folder, const char *name, const char *room_spec, struct binding *ret, struct mr_error *err)
{
	mr_auto(binding_done) struct binding b = { 0 };

	TRY(office_own_file(folder, name, "session binding", BINDING_MAX, &b.own, err));
	const char *room = record_get(&b.own, "Room");

	if (!room)
		return mr_fail(err, MR_CORRUPT, "session binding '%s': no room in it", name);
	if (room_spec && strcmp(room, room_spec) != 0)
		return mr_fail(err, MR_NOTFOUND, "binding '%s' is for another room", name);
	const char *agent = record_get(&b.own, "Agent"), *process = record_get(&b.own, "Process");
	const char *shell = record_get(&b.own, "Shell");
	int64_t life = record_int(&b.own, "Life", -1); /* 0: in a room without lives */

	record_read(&b.own, RECORD_FIELDS(fields), &b);
	b.hooked = record_get(&b.own, "Hooked") != NULL;
	if (!agent || life < 0 || life > UINT32_MAX || address_normal(str_of(agent), b.agent, IGNORED) != MR_OK)
		return mr_fail(err, MR_CORRUPT, "session binding '%s': no agent and life in it", name);
	if (process && process[0] && b.process.pid == 0)
		return mr_fail(err, MR_CORRUPT, "session binding '%s': bad 'Process: %.60s'", name, process);
	if (shell && b.shell.pid == 0)
		return mr_fail(err, MR_CORRUPT, "session binding '%s': bad 'Shell: %.60s'", name, shell);
	*ret = binding_move(&b);
	return MR_OK;
}

enum mr_rc
session_load(
    const char *state_dir, const char *session, const char *room_spec, struct binding *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf plain = BUF_INIT, path = BUF_INIT, second = BUF_INIT;
	mr_auto(free_ptr) char *room = NULL;
	mr_auto(sys_close_fd) int folder = -1;

	if (!state_dir)
		return mr_fail(err, MR_NOTFOUND, "no state folder");
	file_name(session, NULL, &plain);
	buf_addf(&path, "%s/" SESSIONS "/%s", state_dir, buf_z(&plain));
	TRY(mr_got(buf_ok(&plain) && buf_ok(&path), err));
	/* Usually the room was opened by the path in the binding. */
	enum mr_rc rc = load_file(AT_FDCWD, buf_z(&path), room_spec, ret, err);

	if (rc != MR_NOTFOUND)
		return rc;
	TRY(open_folder(state_dir, false, &folder, err));
	/* By the room's path without links, and the session's binding in a second room. */
	room = canonical(room_spec);
	if (room)
		file_name(session, room, &second);
	TRY(mr_got(room && buf_ok(&second), err));
	if (strcmp(room, room_spec) != 0)
		rc = load_file(folder, buf_z(&plain), room, ret, err);
	return rc == MR_NOTFOUND ? load_file(folder, buf_z(&second), room, ret, err) : rc;
}

/* ---- All of them ---- */

enum mr_rc
sessions_load(const char *state_dir, const char *beginning, struct sessions *ret)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	size_t cap = 0;

	*ret = (struct sessions){ .folder = -1 };
	TRY(open_folder(state_dir, false, &ret->folder, IGNORED));
	TRY(dir_names(ret->folder, &names, IGNORED));
	for (size_t i = 0; i < names.n; i++) {
		mr_auto(binding_done) struct binding b = { 0 };

		if (names.v[i][0] == '.' || !str_starts(str_of(names.v[i]), beginning) ||
		    load_file(ret->folder, names.v[i], NULL, &b, IGNORED) != MR_OK)
			continue;
		b.file = arena_dup(&b.own.own, str_of(names.v[i]));
		if (!b.file || !array_grow(&ret->v, ret->n, &cap, sizeof *ret->v))
			return MR_NOMEM;
		ret->v[ret->n++] = binding_move(&b);
	}
	return MR_OK;
}

void
sessions_done(struct sessions *all)
{
	for (size_t i = 0; i < all->n; i++)
		binding_done(&all->v[i]);
	free(all->v);
	sys_close_fd(&all->folder);
}

/*
 * Once a day, with the first binding of a session: removes what ended sessions left in the state folder. A binding is
 * removed a month after it was made if its process is dead, after half a year if its process was never known; a session
 * that is resumed even later gets a name like a new one. The other files are written at every use, so their age counts
 * from the last use.
 */
static void
sweep(const char *state_dir, int sessions)
{
	static const char *const folders[] = { "telling", "waiters", "announced", "announced-log", "stopped", "bell",
		"replies" };
	mr_auto(sessions_done) struct sessions all = { .folder = -1 };
	int64_t now_ms = clock_now_ms();
	struct stat st;

	if (sys_stat(sessions, SWEPT, &st) == 0 && (int64_t)st.st_mtime * 1000 > now_ms - DAY_MS &&
	    (int64_t)st.st_mtime * 1000 < now_ms + DAY_MS)
		return;
	mr_auto(sys_close_fd) int stamp = sys_open(sessions, SWEPT, O_WRONLY | O_CREAT, 0600);

	if (stamp < 0 || sys_set_mtime(stamp, now_ms * 1000000) < 0 || sessions_load(state_dir, "", &all) != MR_OK)
		return;
	for (const struct binding *b = all.v; b < all.v + all.n; b++)
		if (b->bound_ms < now_ms - (b->process.pid ? SESSION_KEPT_MS : UNKNOWN_KEPT_MS) &&
		    (!b->process.pid || process_state(&b->process) == PROCESS_DEAD))
			(void)sys_unlink(sessions, b->file);
	for (size_t k = 0; k < sizeof folders / sizeof folders[0]; k++) {
		mr_auto(mr_names_done) struct mr_names files = { 0 };
		mr_auto(sys_close_fd) int fd = -1;

		if (dir_below(state_dir, folders[k], false, false, &fd, IGNORED) == MR_OK)
			(void)dir_names(fd, &files, IGNORED);
		for (size_t i = 0; i < files.n; i++)
			if (sys_stat(fd, files.v[i], &st) == 0 && S_ISREG(st.st_mode) &&
			    (int64_t)st.st_mtime * 1000 < now_ms - SESSION_KEPT_MS && !lock_is_held(fd, files.v[i]))
				(void)sys_unlink(fd, files.v[i]);
	}
}

bool
session_save(const char *state_dir, const char *room_spec, const struct binding *b)
{
	mr_auto(buf_done) struct buf name = BUF_INIT, text = BUF_INIT;
	mr_auto(sys_close_fd) int folder = -1;
	mr_auto(free_ptr) char *room = canonical(room_spec);
	mr_auto(binding_done) struct binding there = { 0 };
	struct binding now = *b;
	struct stat st;

	file_name(b->session, NULL, &name);
	if (!room || !buf_ok(&name) || open_folder(state_dir, true, &folder, IGNORED) != MR_OK)
		return false;
	/* Taken by a valid binding in another room; a broken one is overwritten. */
	if (load_file(folder, buf_z(&name), room, &there, IGNORED) == MR_NOTFOUND &&
	    sys_stat(folder, buf_z(&name), &st) == 0) {
		buf_clear(&name);
		file_name(b->session, room, &name);
		(void)load_file(folder, buf_z(&name), room, &there, IGNORED);
	}
	now.room = room;
	now.bound_ms = b->lists && b->bound_ms ? b->bound_ms : clock_now_ms();
	if (!b->lists && there.life == b->life && strcmp(there.agent, b->agent) == 0) {
		now.hooked = there.hooked;
		now.noted = there.noted;
	}
	now.inherited = b->inherited ? b->inherited : there.inherited;
	/* A record is cleaned, and the cleaned name could be that of another session. */
	if (header_add(&text, "Session", str_of(b->session), IGNORED) != MR_OK)
		return false;
	buf_clear(&text);
	record_add(&text, "Agent", b->agent);
	record_write(&text, RECORD_FIELDS(fields), &now);
	record_add(&text, "Hooked", now.hooked ? "yes" : NULL);
	if (!buf_ok(&name) || !buf_ok(&text) ||
	    file_replace(folder, buf_z(&name), buf_str(&text), 0600, IGNORED) != MR_OK)
		return false;
	if (!there.agent[0])
		sweep(state_dir, folder);
	return true;
}

bool
session_is_in(const struct binding *b, const char *room_spec)
{
	mr_auto(free_ptr) char *room = canonical(room_spec);

	return room && strcmp(b->room, room) == 0;
}

bool
session_is_unconfirmed(const struct binding *b)
{
	for (const char *at = b->noted ? b->noted : ""; *at; at += strspn(at, " ")) {
		at += strcspn(at, " ");
		if (at[-1] != '-')
			return true;
	}
	return false;
}

/* A harness that was started inside another inherits the outer one's variable. The hooks of the inner one have seen
 * it. */
bool
mr_session_inherits(const char *state_dir, const char *session, const char *other)
{
	mr_auto(sys_close_fd) int folder = -1;
	mr_auto(buf_done) struct buf name = BUF_INIT;
	mr_auto(binding_done) struct binding b = { 0 };
	size_t len = strlen(other);

	file_name(session, NULL, &name);
	if (len == 0 || !buf_ok(&name) || open_folder(state_dir, false, &folder, IGNORED) != MR_OK ||
	    load_file(folder, buf_z(&name), NULL, &b, IGNORED) != MR_OK)
		return false;
	for (const char *at = b.inherited; (at = strstr(at, other)); at += len)
		if ((at == b.inherited || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
			return true;
	return false;
}

/* ---- After /clear ---- */

bool
session_may_clear(const char *a, const char *b)
{
	return strncmp(a, CLEARING_HARNESS, strlen(CLEARING_HARNESS)) == 0 &&
	       strncmp(b, CLEARING_HARNESS, strlen(CLEARING_HARNESS)) == 0;
}

bool
session_find_process(const char *state_dir, const char *session, const char *room_spec,
    const struct mr_process *process, struct binding *ret)
{
	mr_auto(sessions_done) struct sessions all = { .folder = -1 };
	struct binding *best = NULL;

	if (process->pid != 0 && session_may_clear(session, session) && process_state(process) == PROCESS_ALIVE)
		(void)sessions_load(state_dir, CLEARING_HARNESS, &all);
	/* Several /clear in a row leave several bindings; the last one is current. */
	for (struct binding *b = all.v; b < all.v + all.n; b++)
		if (session_may_clear(b->file, b->file) && process_same(&b->process, process) &&
		    session_is_in(b, room_spec) && (!best || b->bound_ms >= best->bound_ms))
			best = b;
	if (best)
		*ret = binding_move(best);
	return best;
}

/* ---- Through a process above us ---- */

/* A process of these harnesses has one session at a time. A process of another, such as an editor, may run several side
 * by side. */
static const char *const single[] = { CLEARING_HARNESS, "gemini-" };
#define SINGLE_N (sizeof single / sizeof single[0])

/* The session of the nearest process above us; of several of that process (after /clear, in another room) the last.
 * NULL: none. *ret_clear: that process has only this session. */
static char *
find_above(const char *state_dir, struct mr_process *ret, bool *ret_clear)
{
	struct mr_process ancestors[ANCESTORS_MAX]; /* the nearest first */
	mr_auto(sessions_done) struct sessions all = { .folder = -1 };
	size_t n = process_ancestors(ancestors, ANCESTORS_MAX), best_harness = 0;
	const struct binding *best = NULL;

	*ret_clear = false;
	if (n > 0)
		(void)sessions_load(state_dir, "", &all);
	for (const struct binding *b = all.v; b < all.v + all.n; b++) {
		size_t at = 0, harness = 0;

		while (harness < SINGLE_N && strncmp(b->session, single[harness], strlen(single[harness])) != 0)
			harness++;
		while (at < n && !process_same(&b->process, &ancestors[at]))
			at++;
		if (b->process.pid <= 1 || terminal_is(b->session) || at == n)
			continue;
		bool nearer = !best || at + 1 < n;

		/* If sessions of two harnesses are bound to one process, it is neither of them, but a process above
		 * both. */
		*ret_clear = harness < SINGLE_N && (nearer || (*ret_clear && harness == best_harness));
		best_harness = harness;
		n = at + 1; /* processes further away do not matter any more */
		if (nearer || b->bound_ms >= best->bound_ms)
			best = b;
	}
	if (best)
		*ret = best->process;
	return best ? strdup(best->session) : NULL;
}

char *
session_above(const char *state_dir, struct mr_process *ret)
{
	bool clear;
	char *session = find_above(state_dir, ret, &clear);

	/* If the same program is in between, that is another session of it, which is not bound. */
	if (session && !(clear && process_is_innermost(ret)))
		free_ptr(&session);
	return session;
}

char *
mr_session_above(const char *state_dir)
{
	return find_above(state_dir, &(struct mr_process){ 0 }, &(bool){ false });
}

/* ---- Terminals ---- */

bool
terminal_is(const char *session)
{
	return strncmp(session, TERMINAL, strlen(TERMINAL)) == 0;
}

/* All bindings, and the process that leads this terminal. False: there is no terminal, or no state folder. */
static bool
load_terminals(const struct mr_env *env, struct mr_process *ret_leader, struct sessions *ret)
{
	if (!env->outside || !env->state_dir || !process_terminal(ret_leader))
		return false;
	(void)sessions_load(env->state_dir, "", ret);
	return true;
}

static bool
is_ours(const struct mr_room *room, const struct binding *b, const struct mr_process *leader)
{
	return terminal_is(b->session) && process_same(&b->process, leader) && session_is_in(b, room->spec);
}

/* Is it still the registered life, and has no session become it since? */
static bool
is_still(struct mr_room *room, const struct binding *b)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };

	if (room->driver->find_agent(room, b->agent, &agent, IGNORED) != MR_OK)
		return false;
	return !office_has_lives(room) || (agent_has_life(&agent) && agent.life == b->life && !agent.session[0]);
}

enum mr_rc
terminal_agents(struct mr_room *room, const struct mr_env *env, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(sessions_done) struct sessions all = { .folder = -1 };
	const char *lost = NULL;
	struct mr_process leader;

	if (!load_terminals(env, &leader, &all))
		return MR_OK;
	for (const struct binding *b = all.v; b < all.v + all.n; b++)
		if (is_ours(room, b, &leader) && !is_still(room, b))
			lost = b->agent;
		else if (is_ours(room, b, &leader))
			TRY(mr_got(names_add(ret, str_of(b->agent)), err));
	if (lost && ret->n == 0)
		return mr_fail(err, MR_REFUSED,
		    "this terminal was '%.80s', and the name was taken over or pruned since\n"
		    "mailroom register NAME takes another name, mailroom takeover %.80s takes this one back",
		    lost, lost);
	return MR_OK;
}

bool
terminal_registered(struct mr_room *room, const struct mr_env *env, const char *agent)
{
	mr_auto(sessions_done) struct sessions all = { .folder = -1 };
	struct mr_process leader;

	if (self_session(env)[0] || !load_terminals(env, &leader, &all))
		return false;
	for (const struct binding *b = all.v; b < all.v + all.n; b++)
		if (is_ours(room, b, &leader) && strcmp(b->agent, agent) == 0 && process_is_ancestor(&b->shell) &&
		    is_still(room, b))
			return true;
	return false;
}

bool
terminal_bind(struct mr_room *room, const struct mr_env *env, const char *agent, unsigned life, bool alone)
{
	mr_auto(sessions_done) struct sessions all = { .folder = -1 };
	mr_auto(buf_done) struct buf name = BUF_INIT;
	struct binding now = { .life = life };
	struct mr_process leader;

	if (!load_terminals(env, &leader, &all))
		return false;
	for (const struct binding *b = all.v; b < all.v + all.n; b++) /* skips those of other and of closed terminals */
		if (is_ours(room, b, &leader) ? alone && strcmp(b->agent, agent) != 0
					      : terminal_is(b->session) && process_state(&b->process) == PROCESS_DEAD)
			(void)sys_unlink(all.folder, b->file);
	if (leader.pid == getpid())
		return false;
	buf_addf(&name, TERMINAL "%" PRId64 "-%" PRIu64 "-%s", leader.pid, leader.start, agent);
	now.process = leader;
	now.session = buf_z(&name);
	(void)process_describe((int64_t)getppid(), &now.shell);
	text_join(now.agent, sizeof now.agent, agent, NULL);
	return buf_ok(&name) && session_save(env->state_dir, room->spec, &now);
}

/* ---- Threads of Codex ---- */

bool
thread_is(const char *session)
{
	return strncmp(session, THREAD, strlen(THREAD)) == 0;
}

int64_t
thread_made_ms(const char *session)
{
	const char *c = session + strlen(THREAD);
	int64_t ms = 0;

	if (!thread_is(session))
		return 0;
	for (int digits = 0; digits < TIME_DIGITS; c++) {
		const char *hex = "0123456789abcdef", *at = *c ? strchr(hex, *c) : NULL;

		if (at) {
			ms = ms * 16 + (at - hex);
			digits++;
		} else if (*c != '-') {
			return 0;
		}
	}
	return c[0] == '-' && c[1] == '7' ? ms : 0;
}

/* The folder of the locks; false: that Codex has none, or it cannot be found. */
static bool
open_locks(const struct mr_process *server, int *ret_fd)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	if (!process_variable(server, "CODEX_HOME", &path)) {
		buf_clear(&path);
		if (!process_variable(server, "HOME", &path))
			return false;
		buf_adds(&path, "/.codex");
	}
	buf_adds(&path, "/" LOCKS);
	*ret_fd = buf_ok(&path) ? sys_open(AT_FDCWD, buf_z(&path), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0) : -1;
	return *ret_fd >= 0;
}

bool
thread_is_unloaded(const char *session, const struct mr_process *process)
{
	mr_auto(sys_close_fd) int locks = -1;
	mr_auto(buf_done) struct buf name = BUF_INIT;
	struct stat st;

	if (!thread_is(session) || strchr(session, '/') || process_codex(process) != CODEX_SHARED ||
	    !open_locks(process, &locks))
		return false;
	buf_adds(&name, session + strlen(THREAD));
	buf_adds(&name, LOCK_END);
	return buf_ok(&name) && sys_stat(locks, buf_z(&name), &st) < 0 && errno == ENOENT;
}

bool
thread_has_strangers(const char *state_dir, const char *own, const struct mr_process *server)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(sys_close_fd) int locks = -1, folder = -1;
	size_t end = strlen(LOCK_END);
	struct stat st;

	if (!open_locks(server, &locks) || dir_names(locks, &names, IGNORED) != MR_OK)
		return true;
	(void)open_folder(state_dir, false, &folder, IGNORED);
	for (size_t i = 0; i < names.n; i++) {
		mr_auto(buf_done) struct buf session = BUF_INIT, file = BUF_INIT;
		const char *name = names.v[i];

		if (name[0] == '.' || strlen(name) <= end || !str_ends(str_of(name), LOCK_END))
			continue;
		buf_addf(&session, THREAD "%.*s", (int)(strlen(name) - end), name);
		file_name(buf_z(&session), NULL, &file);
		if (!buf_ok(&session) || !buf_ok(&file))
			return true;
		/* Is it bound, in any room? */
		if (strcmp(buf_z(&session), own) != 0 && (folder < 0 || sys_stat(folder, buf_z(&file), &st) < 0))
			return true;
	}
	return false;
}
