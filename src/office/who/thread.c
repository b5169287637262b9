/* SPDX-License-Identifier: MIT */
/*
 * thread.c - sessions of Codex, which calls them threads. Its background server runs those of all terminals in one
 * process, with the environment of the terminal that started it: the process does not tell them apart and outlives
 * them. What does is the thread's id, a UUID that begins with the time when it was made, and the file
 *
 *	<CODEX_HOME>/thread-writer-locks/<id>.lock
 *
 * which is there while the server has the thread loaded. The server unloads a thread, and says so with SessionEnd, a
 * minute after its last terminal left it: closed, or gone on to another thread by /clear or /new. The lock itself is
 * never tried: for that moment Codex could not load the thread.
 */
#include "base/file.h"
#include "base/process.h"
#include "base/sys.h"
#include "office/who/who.h"
#include <errno.h>
#include <fcntl.h>

#define THREAD "codex-"
#define LOCKS "thread-writer-locks"
#define LOCK_END ".lock"
#define TIME_DIGITS 12 /* the first 48 bits of a UUID of version 7: milliseconds since 1970 */

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

/* The folder of the locks; false: that Codex has none, or it cannot be told. */
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
	mr_auto(sys_close_fd) int locks = -1;
	size_t end = strlen(LOCK_END);

	if (!open_locks(server, &locks) || dir_names(locks, &names, IGNORED) != MR_OK)
		return true;
	for (size_t i = 0; i < names.n; i++) {
		mr_auto(buf_done) struct buf session = BUF_INIT;
		const char *name = names.v[i];

		if (name[0] == '.' || strlen(name) <= end || !str_ends(str_of(name), LOCK_END))
			continue;
		buf_addf(&session, THREAD "%.*s", (int)(strlen(name) - end), name);
		if (!buf_ok(&session) ||
		    (strcmp(buf_z(&session), own) != 0 && !session_is_known(state_dir, buf_z(&session))))
			return true;
	}
	return false;
}
