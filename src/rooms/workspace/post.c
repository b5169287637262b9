/* SPDX-License-Identifier: MIT */
/*
 * post.c - one file into one folder. Peers list every name in an inbox, so nothing may be seen there before it is
 * whole: it is written without a name, or with one that begins with a dot where the system cannot do that.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/workspace/workspace.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define BUSY_STEP_MS 50
#define NUMBERS_MAX 10000

int64_t
post_stamp(struct workspace *ws)
{
	while (clock_now_ms() == ws->last_ms) /* ids of one date would be in no order */
		(void)poll(NULL, 0, 1);
	int64_t now_ns = clock_now_ns();

	ws->last_ms = now_ns / 1000000;
	return now_ns;
}

/* As readable as its folder, and always for its owner when that is not us. */
static mode_t
mode_for(int dir_fd)
{
	struct stat st;

	if (sys_stat_fd(dir_fd, &st) < 0)
		return 0600;
	return 0600 | (st.st_mode & 0044) | (st.st_uid != geteuid() ? 0044 : 0);
}

static void
note(struct workspace *ws, struct posting *p, const struct stat *st)
{
	p->mtime_ns = kit_mtime_ns(st);
	workspace_settled(ws, st);
}

/* ---- With a name that begins with a dot ---- */

static enum mr_rc
post_by_rename(
    struct workspace *ws, int dir_fd, const char *dir, const char *name, struct posting *p, struct mr_error *err)
{
	struct stat st;

	TRY(kit_publish(&(struct kit_file){ .tmp_fd = dir_fd,
			    .dir_fd = dir_fd,
			    .name = name,
			    .bytes = p->bytes,
			    .mode = mode_for(dir_fd),
			    .mtime_ns = p->mtime_ns,
			    .st = &st },
	    p->what, dir, err));
	note(ws, p, &st);
	return MR_OK;
}

enum mr_rc
workspace_settle_ticket(struct mr_room *room, const char *ticket, bool *ret_published, struct mr_error *err)
{
	mr_auto(sys_close_fd) int dir_fd = -1;
	struct mr_str dir;
	const char *name;

	(void)room;
	if (!kit_ticket(ticket, &dir, &name) || !str_ends(str_of(name), ".tmp"))
		return mr_fail(err, MR_REFUSED, "'%.100s' is no ticket of this kind of room", ticket);
	enum mr_rc rc = route_open_dir(dir, &dir_fd, err);

	return kit_settle(rc, dir_fd, name, false, ret_published, err);
}

/* ---- Without a name ---- */

/* *ret_cannot: this system has no unnamed files. */
static enum mr_rc
post_unnamed(
    struct workspace *ws, int dir_fd, const char *name, struct posting *p, bool *ret_cannot, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = sys_open_unnamed(dir_fd, mode_for(dir_fd));
	struct stat st;

	*ret_cannot = fd < 0 && errno == EOPNOTSUPP;
	if (fd < 0)
		return mr_fail_errno(err, "cannot make a file for '%s'", name);
	if (sys_write_all(fd, p->bytes.ptr, p->bytes.len) < 0 || sys_set_mtime(fd, p->mtime_ns) < 0 ||
	    sys_fsync(fd) < 0 || sys_stat_fd(fd, &st) < 0)
		return mr_fail_errno(err, "cannot write '%s'", name);
	if (sys_link_unnamed(fd, dir_fd, name) < 0) {
		*ret_cannot = errno == EOPNOTSUPP;
		if (errno == EEXIST)
			return mr_fail(err, MR_EXISTS, "'%s' is there already", name);
		return mr_fail_errno(err, "cannot publish '%s'", name);
	}
	if (sys_fsync(fd) < 0 || sys_fsync(dir_fd) < 0) {
		(void)mr_fail_errno(err, "cannot make '%s' durable", name);
		struct mr_error first = *err;

		if (sys_unlink(dir_fd, name) == 0) {
			(void)sys_fsync(dir_fd);
			return err->code;
		}
		return mr_fail(err, MR_INDOUBT,
		    "'%s' is visible but may not survive a power cut: %s\n"
		    "look at the disk; the message is whole: do not send it again",
		    name, first.message);
	}
	note(ws, p, &st);
	return MR_OK;
}

static enum mr_rc
post_at(struct workspace *ws, int dir_fd, const char *dir, const char *name, struct posting *p, struct mr_error *err)
{
	bool cannot = true;

	if (!p->what || !p->what->staged) {
		enum mr_rc rc = post_unnamed(ws, dir_fd, name, p, &cannot, err);

		if (!cannot)
			return rc;
	}
	return post_by_rename(ws, dir_fd, dir, name, p, err);
}

/* ---- At a destination ---- */

/* A resend finds its own bytes: it has that one's date then. */
static bool
is_there_already(int dir_fd, const char *name, struct posting *p)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct stat st;

	if (file_read_stat(dir_fd, name, MEMO_MAX, &text, &st, IGNORED) != MR_OK || !str_eq(buf_str(&text), p->bytes))
		return false;
	p->mtime_ns = kit_mtime_ns(&st);
	return true;
}

/* What stands at the destination, as far as it concerns us. */
struct occupant {
	bool is_message, same_request, empty_answer;
	char request_id[64]; /* the beginning of it */
};

static struct occupant
look_at(int dir_fd, const char *name, struct mr_str ours)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct occupant o = { 0 };
	struct memo memo, own;

	if (file_read(dir_fd, name, MEMO_MAX, &text, IGNORED) != MR_OK || memo_parse(buf_str(&text), &memo))
		return o;
	while (memo.body.len > 0 && (unsigned char)memo.body.ptr[memo.body.len - 1] <= ' ')
		memo.body.len--;
	o.is_message = true;
	o.same_request = !memo_parse(ours, &own) && str_eq(memo.request_id, own.request_id);
	o.empty_answer = memo.is_reply && str_eq(memo.body, STR("\"\""));
	(void)snprintf(o.request_id, sizeof o.request_id, "%.*s", (int)memo.request_id.len, memo.request_id.ptr);
	return o;
}

static bool
is_empty_answer(int dir_fd, const char *name, const struct posting *p)
{
	struct occupant o = look_at(dir_fd, name, p->bytes);

	return o.same_request && o.empty_answer;
}

/* The question got the empty answer, nobody took that yet, and now it is answered in earnest: the two change places, so
 * that the name is never free for a third. MR_EXISTS: something else stands there. */
static enum mr_rc
post_over_empty(struct workspace *ws, int dir_fd, const char *name, struct posting *p, struct mr_error *err)
{
	char random[17], temporary[300];
	struct stat st;

	if (!p->over_empty || (p->what && p->what->staged) || !is_empty_answer(dir_fd, name, p))
		return mr_fail(err, MR_EXISTS, "'%s' is there already", name);
	random_hex(random, 16);
	(void)snprintf(temporary, sizeof temporary, ".%s.tmp-%s", name, random);
	TRY(file_prepare(dir_fd, temporary, p->bytes, mode_for(dir_fd), p->mtime_ns, err));
	if (sys_stat(dir_fd, temporary, &st) < 0 || sys_rename_exchange(dir_fd, temporary, dir_fd, name) < 0) {
		(void)sys_unlink(dir_fd, temporary);
		return mr_fail(err, MR_EXISTS, "'%s' is there already", name);
	}
	if (!is_empty_answer(dir_fd, temporary, p)) {
		/* Another message came under that name in the moment of the swap. It goes back; what then has the
		 * temporary name is ours if it is our inode. */
		struct stat left;

		if (sys_rename_exchange(dir_fd, temporary, dir_fd, name) < 0)
			(void)sys_rename_new(dir_fd, temporary, dir_fd, name);
		else if (sys_stat(dir_fd, temporary, &left) == 0 && left.st_ino == st.st_ino)
			(void)sys_unlink(dir_fd, temporary);
		return mr_fail(err, MR_EXISTS, "'%s' is there already", name);
	}
	note(ws, p, &st);
	(void)sys_unlink(dir_fd, temporary);
	if (sys_fsync(dir_fd) == 0)
		return MR_OK;
	return mr_fail(err, MR_INDOUBT,
	    "'%s' is visible but may not survive a power cut\nlook at the disk; the message is whole: do not send it again",
	    name);
}

/* Its name is taken. A conversation has one name, so what stands there may go any moment; the answer to another request
 * goes when its sender wants, and a file that is no message may never. */
static enum mr_rc
fail_busy(const char *dir, const char *name, const struct occupant *o, struct mr_error *err)
{
	if (o->same_request)
		(void)mr_fail(err, MR_BUSY, "a message of the same conversation still waits in '%s'", dir);
	else if (o->is_message)
		(void)mr_fail(err, MR_BUSY, "in '%s' a message of another request, '%s', still waits as '%s'", dir,
		    o->request_id, name);
	else
		(void)mr_fail(err, MR_BUSY, "in '%s' stands '%s', which is no message", dir, name);
	return mr_hint(
	    err, "try again when '%s' was %s there; nothing was sent", name, o->is_message ? "read" : "removed");
}

enum mr_rc
post_deliver(
    struct workspace *ws, int dir_fd, const char *dir, const char *name, struct posting *p, struct mr_error *err)
{
	int64_t end_ms = clock_boot_ms() + (p->at_once ? 0 : ws->busy_ms);

	for (;;) {
		enum mr_rc rc = post_at(ws, dir_fd, dir, name, p, err);

		if (rc != MR_EXISTS)
			return rc;
		if (is_there_already(dir_fd, name, p))
			return MR_OK;
		rc = post_over_empty(ws, dir_fd, name, p, err);
		if (rc != MR_EXISTS)
			return rc;
		struct occupant o = look_at(dir_fd, name, p->bytes);

		if (clock_boot_ms() >= end_ms || (o.is_message && !o.same_request))
			return fail_busy(dir, name, &o, err);
		(void)poll(NULL, 0, BUSY_STEP_MS);
	}
}

/* ---- Our own copy ---- */

/* Two of ours may do this at once: the number that a rename gets is that one's. */
static enum mr_rc
make_way(const struct box *box, const char *id, struct mr_error *err)
{
	for (unsigned n = 1; n < NUMBERS_MAX; n++) {
		mr_auto(buf_done) struct buf older = BUF_INIT;

		buf_addf(&older, "%s.%u", id, n);
		if (!buf_ok(&older))
			return mr_nomem(err);
		if (sys_rename_new(box->scratch_fd, id, box->scratch_fd, buf_z(&older)) == 0 || errno == ENOENT)
			return MR_OK;
		if (errno != EEXIST)
			return mr_fail_errno(err, "cannot keep the older copy of '%s'", id);
	}
	return mr_fail(err, MR_BUSY, "scratch has too many copies of '%s'", id);
}

enum mr_rc
post_draft(struct workspace *ws, struct box *box, const char *id, struct posting *p, struct mr_error *err)
{
	TRY(box_need_scratch(box, err));
	for (unsigned tries = 0; tries < 100; tries++) {
		struct posting plain = { .bytes = p->bytes, .mtime_ns = p->mtime_ns };
		enum mr_rc rc = post_at(ws, box->scratch_fd, "", id, &plain, err);

		if (rc == MR_INDOUBT) { /* only the copy is in doubt: nobody has the message */
			struct mr_error first = *err;

			return mr_fail(err, MR_IO,
			    "cannot keep a copy in scratch: %s\nnothing was sent; look at the disk, then send it again",
			    first.message);
		}
		if (rc == MR_OK)
			p->mtime_ns = plain.mtime_ns;
		if (rc != MR_EXISTS)
			return rc;
		TRY(make_way(box, id, err));
	}
	return mr_fail(err, MR_BUSY, "others keep writing to '%s' in scratch", id);
}
