/* SPDX-License-Identifier: MIT */
/* inspect.c - what the doctor finds in workspaces: files that are no messages, our own temporary files. */
#include "base/error.h"
#include "base/findings.h"
#include "base/sys.h"
#include "base/text.h"
#include "rooms/workspace/workspace.h"
#include <fcntl.h>

struct inspection {
	struct mr_room *room;
	struct findings f;
	const char *agent, *folder; /* looked at */
	int fd;
	struct mr_error *err;
	enum mr_rc rc;
};

static void
tell_trouble(void *ctx, const char *path, const struct mr_error *why)
{
	struct inspection *x = ctx;
	mr_auto(buf_done) struct buf shown = BUF_INIT;

	text_clean_line(&shown, str_of(path));
	findings_say(&x->f,
	    &(struct mr_finding){ .severity = MR_PROBLEM,
		.code = "mail",
		.path = buf_z(&shown),
		.why = "a writer of another program was killed, or wrote something else",
		.fix = "it is kept and passed over; look at it, then mend or remove it" },
	    "%s: %s", buf_z(&shown), why->message);
}

static bool
ignore_message(void *ctx, const struct mr_message *msg)
{
	(void)ctx;
	(void)msg;
	return true;
}

/* .NAME.tmp-<hex> of a delivery, .mailroom-*.tmp of a carrier. */
static bool
look_for_leftover(void *ctx, const struct dir_entry *entry)
{
	struct inspection *x = ctx;
	mr_auto(buf_done) struct buf path = BUF_INIT;

	if (entry->name[0] != '.' || !(str_starts(str_of(entry->name), ".mailroom-") || strstr(entry->name, ".tmp-")))
		return true;
	buf_addf(&path, "%s/.mailbox/%s/%s", x->agent, x->folder, entry->name);
	if (buf_ok(&path))
		findings_leftover(&x->f, x->fd, entry->name, buf_z(&path));
	return true;
}

static void
look_into(struct inspection *x, int fd, const char *folder)
{
	struct mr_error ignored = { 0 };

	if (fd < 0)
		return;
	x->fd = fd;
	x->folder = folder;
	(void)dir_each(fd, look_for_leftover, x, &ignored);
}

static bool
inspect_agent(void *ctx, const struct mr_agent *agent)
{
	struct inspection *x = ctx;
	mr_auto(box_done) struct box box = BOX_INIT;
	struct scan_request want = {
		.folders = MR_INBOX, .depth = SCAN_HEADERS, .trouble = tell_trouble, .trouble_ctx = x
	};

	x->rc = box_open(&box, workspace_of(x->room), agent->name, BOX_AS_IT_IS, x->err);
	if (x->rc == MR_OK) {
		x->agent = agent->name;
		look_into(x, box.inbox_fd, "inbox");
		look_into(x, box.scratch_fd, "scratch");
		x->rc = workspace_scan(x->room, agent->name, &want, ignore_message, x, x->err);
	}
	if (x->rc == MR_NOTFOUND) { /* it went while we look */
		x->rc = MR_OK;
		*x->err = (struct mr_error){ 0 };
	}
	return x->rc == MR_OK;
}

enum mr_rc
workspace_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	const struct workspace *ws = workspace_of(room);
	struct inspection x = { .room = room, .f = findings_begin(fix, fn, ctx), .fd = -1, .err = err };
	mr_auto(sys_close_fd) int yard = sys_open(AT_FDCWD, ws->yard[0] ? ws->yard : "/", O_RDONLY | O_DIRECTORY, 0);

	findings_keep_in_state(&x.f, room->state_dir);
	if (yard >= 0)
		findings_space(&x.f, yard);
	enum mr_rc rc = workspace_each_agent(room, inspect_agent, &x, err);

	if (rc == MR_OK)
		rc = x.rc;
	if (rc == MR_OK && x.f.told == 0)
		findings_say(
		    &x.f, &(struct mr_finding){ .severity = MR_FINE, .code = "mail" }, "every message can be read");
	findings_end(&x.f);
	return rc;
}
