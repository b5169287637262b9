/* SPDX-License-Identifier: MIT */
/*
 * shared.c - a room that several users share (Share: group): proof of a message's sender, and files to which a user
 * gives the others no access. In a room of one user none of this is checked.
 *
 * Proof. All members can write into all folders, so anybody can put a message there that says From: alice. But nobody
 * can choose the owner of a file. A life of an agent is a file, too, and belongs to the user who began it. So a message
 * is proven if its file belongs to the user of the newest life of its sender. For an agent that never lived, that is
 * the user who registered it; for the operator, the owner of the room.
 * - The line Uid: must fit the owner of that file: in a copy of the room, made by another user, it does not, and then
 *   nothing is proven.
 * - A file that the group may write proves nothing: another member may have filled it. Messages are 0440.
 * - Mail from AGENT@LINK is written by the user who carries it, and is not proven.
 * A member who takes over a name becomes its user: that is the purpose of a takeover, and the old life is told.
 *
 * Closed files. A member may remove the group's rights from a file or folder of its own, on purpose or by the umask of
 * another tool. Commands that look at everything (who, @all, why, doctor) skip it and say so once; a command that needs
 * exactly that file is refused with the reason.
 */
#include "message/address.h"
#include "rooms/maildir/maildir.h"
#include <stdarg.h>
#include <unistd.h>

#define RECORD_LIMIT ((size_t)64 << 10)
#define BARRED_MAX 32

/* ---- Closed files ---- */

static bool
is_closed_errno(int error)
{
	return error == EACCES || error == EPERM;
}

/* The first part of an agent's mailbox that we have no access to; false: all is open or missing. */
static bool
find_closed(struct maildir *md, const char *agent, bool all, char *ret, size_t size)
{
	static const struct {
		const char *name;
		int mode;
		bool all; /* needed only by commands that look at everything */
	} parts[] = {
		{ "", R_OK | X_OK, true },
		{ "/agent", R_OK, false },
		{ "/lives", R_OK | X_OK, false },
		{ "/new", R_OK | W_OK | X_OK, false },
		{ "/cur", R_OK | X_OK, true },
		{ "/held", R_OK | X_OK, true },
	};

	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		if (parts[i].all && !all)
			continue;
		(void)snprintf(ret, size, "agents/%.160s%s", agent, parts[i].name);
		if (sys_access(md->root_fd, ret, parts[i].mode) < 0 && is_closed_errno(errno))
			return true;
	}
	return false;
}

/* Names the obstacle: the first part of a path, or the closed part of a mailbox. */
static void
describe(struct maildir *md, const char *path, struct buf *out)
{
	char part[NAME_LEN * 2];
	struct stat st = { 0 };
	bool closed = false;

	for (size_t len = 0; !closed && path[len]; len += path[len] == '/') {
		len += strcspn(path + len, "/");
		(void)snprintf(part, sizeof part, "%.*s", (int)len, path);
		if (sys_stat(md->root_fd, part, &st) < 0)
			break;
		closed = sys_access(md->root_fd, part, S_ISDIR(st.st_mode) ? R_OK | X_OK : R_OK) < 0;
	}
	if (!closed && str_starts(str_of(path), "agents/"))
		closed = find_closed(md, path + strlen("agents/"), true, part, sizeof part) &&
			 sys_stat(md->root_fd, part, &st) == 0;
	if (closed)
		buf_addf(out, "'%s' is closed to you (user %lu, mode %04o)", part, (unsigned long)st.st_uid,
		    (unsigned)st.st_mode & 07777);
	else
		buf_addf(out, "something in '%s' is closed to you", path);
}

static void
note_barred(struct maildir *md, const char *path)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	describe(md, path, &line);
	buf_adds(&line, ": left out");
	if (buf_ok(&line) && md->barred->n < BARRED_MAX && !names_has(md->barred, buf_z(&line)))
		(void)names_add(md->barred, buf_str(&line)); /* out of memory: skipped all the same */
}

bool
shared_skip(struct maildir *md, struct mr_error *err, const char *fmt, ...)
{
	char path[NAME_LEN * 2];
	va_list args;

	if (!maildir_is_shared(md) || !is_closed_errno(err->sys_errno))
		return false;
	va_start(args, fmt);
	(void)vsnprintf(path, sizeof path, fmt, args);
	va_end(args);
	note_barred(md, path);
	*err = (struct mr_error){ 0 };
	return true;
}

enum mr_rc
shared_pass(struct maildir *md, enum mr_rc rc, struct mr_error *err, const char *fmt, ...)
{
	char path[NAME_LEN * 2];
	va_list args;

	if (rc == MR_OK || rc == MR_NOTFOUND)
		return mr_unless(rc, MR_NOTFOUND, err);
	va_start(args, fmt);
	(void)vsnprintf(path, sizeof path, fmt, args);
	va_end(args);
	return shared_skip(md, err, "%s", path) ? MR_OK : rc;
}

bool
shared_skip_agent(struct maildir *md, const char *agent)
{
	char path[NAME_LEN * 2];

	if (!maildir_is_shared(md) || !find_closed(md, agent, true, path, sizeof path))
		return false;
	note_barred(md, path);
	return true;
}

enum mr_rc
shared_check_agent(struct maildir *md, const char *agent, struct mr_error *err)
{
	mr_auto(buf_done) struct buf what = BUF_INIT;
	char path[NAME_LEN * 2];

	if (!maildir_is_shared(md) || !find_closed(md, agent, false, path, sizeof path))
		return MR_OK;
	describe(md, path, &what);
	return mr_fail(err, MR_REFUSED,
	    "the mailbox of '%s' cannot be used: %s\n"
	    "the user it belongs to must open it to the group of the room: chmod -R g+rwX",
	    agent, buf_z(&what));
}

/* ---- Proof ---- */

/* The user that owns this file of an agent, if the file says the same. */
static bool
user_of(int dir_fd, const char *name, uid_t *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(record_done) struct record lines = { 0 };
	struct stat st;

	if (file_read_stat(dir_fd, name, RECORD_LIMIT, &text, &st, IGNORED) != MR_OK ||
	    record_parse(buf_str(&text), &lines, IGNORED) != MR_OK)
		return false;
	*ret = st.st_uid;
	return record_int(&lines, "Uid", (int64_t)st.st_uid) == (int64_t)st.st_uid; /* an older mailroom wrote none */
}

static bool
find_user(struct maildir *md, const char *agent, uid_t *ret)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	struct stat st;
	unsigned life = 0;
	char path[24] = "agent";

	if (strcmp(agent, "operator") == 0) { /* init makes the mailbox for its user */
		if (sys_stat_fd(md->root_fd, &st) < 0)
			return false;
		*ret = st.st_uid;
		return true;
	}
	if (address_check(str_of(agent), IGNORED) != MR_OK || mailbox_open(&box, md, agent, IGNORED) != MR_OK ||
	    life_newest(&box, 0, &life, IGNORED) != MR_OK)
		return false;
	if (life > 0)
		(void)snprintf(path, sizeof path, "lives/%u", life);
	return user_of(box.fd, path, ret);
}

enum mr_proof
shared_proof(struct maildir *md, const char *from, const struct stat *st)
{
	uid_t user;

	if (!maildir_is_shared(md))
		return MR_PROOF_NONE;
	return find_user(md, from, &user) && user == st->st_uid && (st->st_mode & 022) == 0 ? MR_PROVEN : MR_UNPROVEN;
}

bool
shared_is_others(struct maildir *md, const char *agent)
{
	uid_t user;

	return maildir_is_shared(md) && !(find_user(md, agent, &user) && user == geteuid());
}

void
shared_add_user(const struct maildir *md, struct buf *out)
{
	if (maildir_is_shared(md))
		buf_addf(out, "Uid: %lu\n", (unsigned long)geteuid());
}
