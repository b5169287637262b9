/* SPDX-License-Identifier: MIT */
/* handoff_collect.c - what the next life will want to know and the last one forgets to write: the state of its git
 * worktree, the work in its hands, the head of its inbox. */
#include "base/spawn.h"
#include "base/text.h"
#include "office/handoff.h"

#define GIT_LINES 30
#define INBOX_LINES 10
#define GIT_LIMIT_MS 5000

static void
add_lines(struct buf *out, struct mr_str text, size_t most)
{
	size_t n = 0;

	while (text.len > 0) {
		const char *lf = memchr(text.ptr, '\n', text.len);
		size_t len = lf ? (size_t)(lf - text.ptr) : text.len, step = lf ? len + 1 : len;

		if (n++ == most) {
			buf_adds(out, "    ...\n");
			return;
		}
		buf_adds(out, "    ");
		text_clean_line(out, (struct mr_str){ text.ptr, len });
		buf_addc(out, '\n');
		text.ptr += step;
		text.len -= step;
	}
}

static void
add_git(struct buf *out, const char *dir)
{
	const char *const argv[] = { "git", "status", "--short", "--branch", NULL };
	struct spawned ran = { 0 };
	struct mr_error ignored = { 0 };

	if (spawn_run(&(struct spawn){ .argv = argv, .dir = dir, .limit_ms = GIT_LIMIT_MS }, &ran, &ignored) == MR_OK &&
	    ran.exit_code == 0) {
		buf_adds(out, "\n## Git\n\n");
		add_lines(out, buf_str(&ran.out), GIT_LINES);
	}
	spawned_done(&ran);
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
