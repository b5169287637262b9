/* SPDX-License-Identifier: MIT */
/* inspect.c - what the doctor finds odd in a chipset room. What is odd is somebody's mail and is left alone; only our
 * own temporary files are taken away. */
#include "base/error.h"
#include "base/findings.h"
#include "base/sys.h"
#include "base/text.h"
#include "message/foreign.h"
#include "message/message.h"
#include "rooms/chipset/chipset.h"

struct inspection {
	struct mr_room *room;
	struct findings f;
	const char *box, *folder; /* looked at for leftovers */
	int fd;
	struct mr_error *err;
	enum mr_rc rc;
};

static void
find(struct inspection *x, const char *code, const char *path, const char *text, const char *why, const char *fix)
{
	findings_say(&x->f,
	    &(struct mr_finding){ .severity = MR_PROBLEM, .code = code, .path = path, .why = why, .fix = fix }, "%s",
	    text);
}

/* ---- Mail ---- */

static void
tell_trouble(void *ctx, const char *path, const struct mr_error *why)
{
	struct inspection *x = ctx;
	mr_auto(buf_done) struct buf text = BUF_INIT, shown = BUF_INIT;

	text_clean_line(&shown, str_of(path));
	buf_addf(&text, "%s: %s", buf_z(&shown), why->message);
	find(x, "mail", buf_z(&shown), buf_z(&text), "a writer of another program was killed, or wrote something else",
	    "it is kept and passed over; look at it, then mend or remove it");
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
	find(x, "mail", msg->path, buf_z(&text), "two senders wrote through one temporary file",
	    "ask both to send again");
	return true;
}

/* ---- Leftovers ---- */

/* All names of ours; the format's own temporary names are everybody's, and left alone. */
static bool
look_for_leftover(void *ctx, const struct dir_entry *entry)
{
	struct inspection *x = ctx;
	mr_auto(buf_done) struct buf path = BUF_INIT;
	struct mr_str name = str_of(entry->name);

	if (!str_ends(name, ".tmp") || !(str_starts(name, ".mailroom-") || str_starts(name, "mr-")))
		return true;
	buf_addf(&path, "mail/%s%s/%s", x->box, x->folder, entry->name);
	if (buf_ok(&path))
		findings_leftover(&x->f, x->fd, entry->name, buf_z(&path));
	return true;
}

static void
look_for_leftovers(struct inspection *x, const char *box)
{
	static const struct {
		enum mr_folder folder;
		const char *path;
	} folders[] = { { MR_INBOX, "" }, { MR_ARCHIVE, "/archive" } };

	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
		mr_auto(sys_close_fd) int fd = -1;
		struct mr_error ignored = { 0 };

		if (chipset_box_open(chipset_of(x->room), box, folders[i].folder, &fd, &ignored) != MR_OK)
			continue;
		x->box = box;
		x->folder = folders[i].path;
		x->fd = fd;
		(void)dir_each(fd, look_for_leftover, x, &ignored);
	}
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
		find(x, "names", buf_z(&shown), buf_z(&text), "no mail can be read from it or sent to it",
		    "rename the folder");
		return true;
	}
	look_for_leftovers(x, box);
	x->rc = foreign_to_address(str_of(box), address, x->err);
	if (x->rc == MR_OK)
		x->rc = chipset_scan(x->room, address, &want, look_for_note, x, x->err);
	return x->rc == MR_OK;
}

enum mr_rc
chipset_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(sys_close_fd) int root = -1;
	struct inspection x = { .room = room, .f = findings_begin(fix, fn, ctx), .fd = -1, .err = err };
	struct mr_error ignored = { 0 };

	findings_keep_in_state(&x.f, room->state_dir);
	enum mr_rc rc = chipset_each_box(chipset_of(room), inspect_box, &x, err);

	if (chipset_open_below(chipset_of(room), "mail", &root, &ignored) == MR_OK)
		findings_space(&x.f, root);
	if (rc == MR_OK)
		rc = x.rc;
	if (rc == MR_OK && x.f.told == 0)
		findings_say(
		    &x.f, &(struct mr_finding){ .severity = MR_FINE, .code = "mail" }, "every message can be read");
	findings_end(&x.f);
	return rc;
}
