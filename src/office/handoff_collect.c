/* SPDX-License-Identifier: MIT */
/* handoff_collect.c - what the next life will want to know and the last one forgets to write: the branch of its git
 * worktree, the work in its hands, the head of its inbox. */
#include "base/text.h"
#include "office/handoff.h"
#include "office/who.h"
#include <unistd.h>

#define INBOX_LINES 10

/* Read from git's files. Running git would run what the folder's own git configuration says (filters, a monitor), and a
 * hand-off may be written unasked. */
static void
add_git(struct buf *out, const char *dir)
{
	mr_auto(buf_done) struct buf branch = BUF_INIT, commit = BUF_INIT;
	mr_auto(free_ptr) char *here = dir ? NULL : getcwd(NULL, 0);

	if ((!dir && !here) || !git_head(dir ? dir : here, &branch, &commit))
		return;
	buf_adds(out, "\n## Git\n\n- branch: ");
	text_clean_line(out, branch.len > 0 ? buf_str(&branch) : STR("(detached)"));
	buf_adds(out, "\n- commit: ");
	text_clean_line(out, commit.len > 0 ? buf_str(&commit) : STR("(none yet)"));
	buf_adds(out, "\n- `git status` there shows what is not committed\n");
}

struct listing {
	struct buf *out;
	const char *heading;
	size_t n;
};

static bool
add_mail(void *ctx, const struct mr_message *msg)
{
	struct listing *l = ctx;

	if (l->n++ == 0)
		buf_adds(l->out, l->heading);
	buf_addf(l->out, "- %s from ", msg->id);
	text_clean_line(l->out, str_of(msg->from));
	buf_adds(l->out, ": ");
	text_clean_line(l->out, utf8_cut(str_of(msg->subject), 100));
	buf_addc(l->out, '\n');
	return true;
}

void
handoff_collect(struct mr_room *room, const struct mr_self *self, const char *dir, struct buf *out)
{
	struct listing held = { .out = out, .heading = "\n## In hand\n\n" };
	struct listing inbox = { .out = out, .heading = "\n## Inbox\n\n" };
	struct mr_scan in_hand = { .filter = { .folders = MR_HELD } };
	struct mr_scan unread = { .filter = { .unread = true }, .order = MR_BY_PRIORITY, .limit = INBOX_LINES };
	struct mr_error ignored = { 0 };

	add_git(out, dir);
	if (office_folders(room, MR_HELD))
		(void)mr_scan(room, self->agent, &in_hand, add_mail, &held, &ignored);
	(void)mr_queue_held(room, self->agent, NULL, add_mail, &held, &ignored);
	(void)mr_scan(room, self->agent, &unread, add_mail, &inbox, &ignored);
}
