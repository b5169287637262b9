/* SPDX-License-Identifier: MIT */
/*
 * move.c - to the archive and back. One rename that never overwrites: where the name is taken by the same bytes, the
 * message is there already; where by others, it goes beside them as NAME.1.json, which gives it another id.
 */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/chipset/chipset.h"
#include <errno.h>
#include <stdio.h>

#define BESIDE_MAX 1000

struct moving {
	int from_fd, to_fd;
	const char *name;
};

static bool
same_bytes(const struct moving *m, const char *target)
{
	mr_auto(buf_done) struct buf here = BUF_INIT, there = BUF_INIT;
	struct mr_error ignored = { 0 };

	return chipset_file_read(m->from_fd, m->name, &here, &ignored) == MR_OK &&
	       chipset_file_read(m->to_fd, target, &there, &ignored) == MR_OK &&
	       str_eq(buf_str(&here), buf_str(&there));
}

static enum mr_rc
gone(const struct moving *m, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND,
	    "'%s' is gone: moved or removed by another\nlook again with: mailroom inbox --all", m->name);
}

/* MR_EXISTS: the name is taken. */
static enum mr_rc
move_as(const struct moving *m, const char *target, struct mr_error *err)
{
	if (sys_rename_new(m->from_fd, m->name, m->to_fd, target) == 0)
		return MR_OK;
	if (errno == ENOENT)
		return gone(m, err);
	if (errno != EEXIST)
		return mr_fail_errno(err, "cannot move '%s'", m->name);
	if (!same_bytes(m, target))
		return mr_fail(err, MR_EXISTS, "'%s' is there already", target);
	if (sys_unlink(m->from_fd, m->name) < 0)
		return errno == ENOENT ? gone(m, err) : mr_fail_errno(err, "cannot remove '%s'", m->name);
	return MR_OK;
}

static enum mr_rc
move_file(const struct moving *m, struct mr_error *err)
{
	const size_t stem = strlen(m->name) - strlen(".json");
	char target[CHIPSET_NAME_MAX + 1];
	enum mr_rc rc = move_as(m, m->name, err);

	for (int i = 1; rc == MR_EXISTS && i < BESIDE_MAX; i++) {
		int n = snprintf(target, sizeof target, "%.*s.%d.json", (int)stem, m->name, i);

		if (n < 0 || (size_t)n >= sizeof target)
			break;
		rc = move_as(m, target, err);
	}
	return rc;
}

static enum mr_rc
move_between(struct chipset *cs, const char *box, const struct chipset_list *list, const struct chipset_entry *at,
    enum mr_folder to, struct mr_error *err)
{
	mr_auto(sys_close_fd) int to_fd = -1;
	struct moving m = { .from_fd = chipset_list_fd(list, at->folder), .name = at->name };
	enum mr_rc rc = chipset_box_make(cs, box, to, &to_fd, err);

	m.to_fd = to_fd;
	/* The mailbox itself is what every change of ours locks. */
	if (rc == MR_OK)
		rc = chipset_box_lock(to == MR_INBOX ? to_fd : m.from_fd, box, err);
	if (rc == MR_OK)
		rc = move_file(&m, err);
	if (rc != MR_OK)
		return rc;
	chipset_dirty(cs, box, to, to_fd); /* where it is now first: a power cut in between leaves two, not none */
	chipset_dirty(cs, box, at->folder, m.from_fd);
	return MR_OK;
}

enum mr_rc
chipset_move(struct mr_room *room, const char *agent, const char *id, enum mr_folder to, struct mr_error *err)
{
	mr_auto(chipset_list_done) struct chipset_list list = CHIPSET_LIST_INIT;
	struct chipset *cs = chipset_of(room);
	const struct chipset_entry *at = NULL;
	char box[CHIPSET_ID_MAX + 1];

	if (to != MR_INBOX && to != MR_ARCHIVE)
		return mr_fail(err, MR_UNSUPPORTED, "a chipset room has an inbox and an archive, nothing else");
	enum mr_folder from = to == MR_INBOX ? MR_ARCHIVE : MR_INBOX;
	enum mr_rc rc = chipset_find(cs, agent, id, from, &list, &at, err);

	if (rc == MR_NOTFOUND) { /* there already? */
		chipset_list_done(&list);
		return chipset_find(cs, agent, id, to, &list, &at, err);
	}
	if (rc == MR_OK)
		rc = chipset_id(agent, box, err);
	return rc == MR_OK ? move_between(cs, box, &list, at, to, err) : rc;
}
