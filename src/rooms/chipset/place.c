/* SPDX-License-Identifier: MIT */
/* place.c - where a message is (why). */
#include "base/error.h"
#include "base/sys.h"
#include "base/text.h"
#include "message/foreign.h"
#include "rooms/chipset/chipset.h"
#include <errno.h>

/* ---- Why ---- */

struct search {
	struct chipset *cs;
	const char *id;
	place_fn *fn;
	void *ctx;
	struct mr_error *err;
	enum mr_rc rc;
};

static void
tell_place(struct search *s, const char *box, const struct chipset_list *list, const struct chipset_entry *at)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, evidence = BUF_INIT;
	struct mr_error ignored = { 0 };
	struct json_value object;
	char address[MR_ADDRESS_MAX + 1] = "";

	if (chipset_file_read(chipset_list_fd(list, at->folder), at->name, &text, &ignored) != MR_OK ||
	    chipset_object(buf_str(&text), &object, &ignored) != MR_OK ||
	    foreign_to_address(str_of(box), address, &ignored) != MR_OK)
		return;
	bool read = chipset_is_read(object);

	buf_adds(&evidence, "it is ");
	chipset_box_path(&evidence, box, at->folder);
	buf_addf(&evidence, "/%s, which says that it was %sread", at->name, read ? "" : "not ");
	s->fn(s->ctx, &(struct place_of){ .agent = address,
			  .folder = at->folder,
			  .flags = read ? MR_SEEN : 0,
			  .state = at->folder == MR_ARCHIVE ? "archived"
				   : read                   ? "read"
							    : "unread",
			  .evidence = buf_z(&evidence) });
}

static bool
search_box(void *ctx, const char *box)
{
	struct search *s = ctx;
	mr_auto(chipset_list_done) struct chipset_list list = CHIPSET_LIST_INIT;

	if (chipset_id_problem(str_of(box)))
		return true;
	s->rc = chipset_list(s->cs, box, MR_INBOX | MR_ARCHIVE, s->id, &list, s->err);
	for (size_t i = 0; i < list.n && s->rc == MR_OK; i++)
		if (strcmp(list.v[i].id, s->id) == 0)
			tell_place(s, box, &list, &list.v[i]);
	return s->rc == MR_OK;
}

enum mr_rc
chipset_each_place(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err)
{
	struct search s = { chipset_of(room), id, fn, ctx, err, MR_OK };
	enum mr_rc rc = chipset_each_box(s.cs, search_box, &s, err);

	return rc == MR_OK ? s.rc : rc;
}
