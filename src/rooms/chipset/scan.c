/* SPDX-License-Identifier: MIT */
/* scan.c - looking. Whatever is planted in a mailbox is reported and passed over. */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/chipset/chipset.h"
#include <errno.h>

#define BOTH (MR_INBOX | MR_ARCHIVE)

static enum mr_rc
read_letter(const struct chipset_list *list, const struct chipset_entry *at, const char *box, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	int fd = chipset_list_fd(list, at->folder);
	struct chipset_origin origin = { .box = box, .name = at->name, .folder = at->folder };
	struct stat st;
	enum mr_rc rc = chipset_file_read(fd, at->name, &text, err);

	if (rc != MR_OK)
		return rc;
	if (sys_stat(fd, at->name, &st) == 0)
		origin.mtime_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	rc = chipset_letter(buf_str(&text), &origin, depth, ret, err);
	return rc == MR_OK ? rc : mr_wrap(err, "'%s'", at->name);
}

static bool
is_folder(const struct chipset_list *list, const struct chipset_entry *at)
{
	struct stat st;

	return sys_stat(chipset_list_fd(list, at->folder), at->name, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Gone meanwhile is no trouble, and neither is a folder; all else is told, and looked at again the next time. */
static void
report(const struct scan_request *want, const struct chipset_list *list, const struct chipset_entry *at,
    const char *box, struct mr_error *why)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	if (why->code == MR_NOTFOUND || !want->trouble || is_folder(list, at))
		return;
	chipset_box_path(&path, box, at->folder);
	buf_addf(&path, "/%s", at->name);
	want->trouble(want->trouble_ctx, buf_z(&path), why);
}

static enum mr_rc
show(const struct chipset_list *list, const char *box, const struct scan_request *want, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct chipset_entry *at = &list->v[want->newest_first ? list->n - 1 - i : i];
		struct mr_message msg = { 0 };
		struct mr_error why = { 0 };

		if (want->id_suffix && !str_ends(str_of(at->id), want->id_suffix))
			continue;
		enum mr_rc rc = read_letter(list, at, box, want->depth, &msg, &why);

		if (rc == MR_NOMEM)
			return mr_nomem(err);
		if (rc != MR_OK) {
			report(want, list, at, box, &why);
			continue;
		}
		bool more = (want->unread_only && (msg.flags & MR_SEEN)) || fn(ctx, &msg);

		mr_message_done(&msg);
		if (!more)
			break;
	}
	return MR_OK;
}

enum mr_rc
chipset_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	mr_auto(chipset_list_done) struct chipset_list list = CHIPSET_LIST_INIT;
	char id[CHIPSET_ID_MAX + 1];

	if (!(want->folders & BOTH)) /* no mail is sent, held or dead here */
		return MR_OK;
	enum mr_rc rc = chipset_id(agent, id, err);

	if (rc == MR_OK)
		rc = chipset_list(chipset_of(room), id, want->folders, NULL, &list, err);
	return rc == MR_OK ? show(&list, id, want, fn, ctx, err) : rc;
}

enum mr_rc
chipset_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	mr_auto(chipset_list_done) struct chipset_list list = CHIPSET_LIST_INIT;
	const struct chipset_entry *at = NULL;
	char box[CHIPSET_ID_MAX + 1];

	if (folders && !(folders & BOTH))
		return mr_fail(err, MR_NOTFOUND, "no message '%s' for '%s'", id, agent);
	enum mr_rc rc = chipset_find(chipset_of(room), agent, id, folders ? folders : BOTH, &list, &at, err);

	if (rc == MR_OK)
		rc = chipset_id(agent, box, err);
	return rc == MR_OK ? read_letter(&list, at, box, depth, ret, err) : rc;
}

enum mr_rc
chipset_fetch_raw(struct mr_room *room, const char *agent, const char *id, struct buf *ret, struct mr_error *err)
{
	mr_auto(chipset_list_done) struct chipset_list list = CHIPSET_LIST_INIT;
	const struct chipset_entry *at = NULL;
	enum mr_rc rc = chipset_find(chipset_of(room), agent, id, BOTH, &list, &at, err);

	return rc == MR_OK ? chipset_file_read(chipset_list_fd(&list, at->folder), at->name, ret, err) : rc;
}
