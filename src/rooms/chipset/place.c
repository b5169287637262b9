/* SPDX-License-Identifier: MIT */
/* place.c - where a message is (why), and what is odd in the room (doctor). */
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

/* ---- Doctor ---- */

struct inspection {
	struct mr_room *room;
	mr_finding_fn *fn;
	void *ctx;
	size_t problems;
	const char *box;
	struct mr_error *err;
	enum mr_rc rc;
};

static void
find(struct inspection *x, const char *check, const char *text, const char *advice)
{
	x->problems++;
	x->fn(x->ctx, &(struct mr_finding){ .severity = MR_PROBLEM, .check = check, .text = text, .advice = advice });
}

static void
tell_trouble(void *ctx, const char *path, const struct mr_error *why)
{
	struct inspection *x = ctx;
	mr_auto(buf_done) struct buf text = BUF_INIT, shown = BUF_INIT;

	text_clean_line(&shown, str_of(path));
	buf_addf(&text, "%s: %s", buf_z(&shown), why->message);
	find(x, "mail", buf_z(&text), "it is kept and passed over; look at it, then mend or remove it");
}

static bool
look_for_note(void *ctx, const struct mr_message *msg)
{
	struct inspection *x = ctx;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	const char *note = mr_message_header(msg, "Mailroom-Note");

	if (!note)
		return true;
	buf_addf(&text, "%s: %s", msg->path, note);
	find(x, "mail", buf_z(&text), "two senders wrote through one temporary file: ask both to send again");
	return true;
}

static bool
inspect_box(void *ctx, const char *box)
{
	struct inspection *x = ctx;
	mr_auto(buf_done) struct buf text = BUF_INIT, shown = BUF_INIT;
	struct scan_request want = {
		.folders = MR_INBOX | MR_ARCHIVE, .depth = SCAN_HEADERS, .trouble = tell_trouble, .trouble_ctx = x
	};
	const char *problem = chipset_id_problem(str_of(box));
	char address[MR_ADDRESS_MAX + 1];

	if (problem) {
		text_clean_line(&shown, str_of(box));
		buf_addf(&text, "mail/%s is nobody's mailbox here: the name %s", buf_z(&shown), problem);
		find(x, "names", buf_z(&text), "no mail can be read from it or sent to it; rename the folder");
		return true;
	}
	x->rc = foreign_to_address(str_of(box), address, x->err);
	if (x->rc == MR_OK)
		x->rc = chipset_scan(x->room, address, &want, look_for_note, x, x->err);
	return x->rc == MR_OK;
}

enum mr_rc
chipset_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	struct inspection x = { .room = room, .fn = fn, .ctx = ctx, .err = err };
	enum mr_rc rc = chipset_each_box(chipset_of(room), inspect_box, &x, err);

	(void)fix; /* what is odd here is somebody's mail: nothing of it is ours to change */
	if (rc == MR_OK)
		rc = x.rc;
	if (rc == MR_OK && x.problems == 0)
		fn(ctx, &(struct mr_finding){
			    .severity = MR_FINE, .check = "mail", .text = "every message can be read", .advice = "" });
	return rc;
}
