/* SPDX-License-Identifier: MIT */
/*
 * once.c - a harness runs all hooks that match a moment side by side, and ours may be among them twice: in the user's
 * settings and in the project's, or in a plugin. The session is told once all the same.
 *
 * <state>/telling/<hash of session and room> is the lock of whoever tells the session something. What the one before
 * has told is remembered then, and not new any more. Only a start tells things again: so the file also says which start
 * was told last, and when.
 */
#include "cli/hook/hook.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include <fcntl.h>

#define FOLDER "telling"
#define LOCK_WAIT_MS 2000
#define SAME_MOMENT_MS 1000
#define NOTE_MAX 200

static int lock_fd = -1; /* until this process ends */
static bool repeat;

static void
file_name(struct cli *cli, char ret[65])
{
	mr_auto(buf_done) struct buf whole = BUF_INIT;

	buf_addf(&whole, "%s\n%s", cli->env.session, mr_room_spec(cli->room));
	sha256_hex(buf_str(&whole), ret);
}

static int
open_folder(struct cli *cli, bool make)
{
	struct mr_error ignored = { 0 };
	int fd = -1;

	if (!cli->env.state_dir || !cli->env.session ||
	    dir_below(cli->env.state_dir, FOLDER, make, false, &fd, &ignored) != MR_OK)
		return -1;
	return fd;
}

/* Always as long, so that it is written over whole. */
static void
add_note(const struct event *event, struct buf *out)
{
	buf_addf(out, "%-20.20s %-20.20s\n", event->name, event->source);
}

static bool
has_note_of(const struct event *event)
{
	mr_auto(buf_done) struct buf had = BUF_INIT, note = BUF_INIT;
	struct mr_error ignored = { 0 };
	uint64_t told_ms = 0;

	add_note(event, &note);
	if (!buf_ok(&note) || file_read_fd(lock_fd, NOTE_MAX, &had, &ignored) != MR_OK || had.len == 0)
		return false;
	size_t digits = strcspn(buf_z(&had), " ");
	int64_t now_ms = clock_boot_ms();

	return had.ptr[digits] == ' ' && str_to_u64((struct mr_str){ had.ptr, digits }, &told_ms) &&
	       strcmp(had.ptr + digits + 1, buf_z(&note)) == 0 && (int64_t)told_ms <= now_ms &&
	       now_ms - (int64_t)told_ms < SAME_MOMENT_MS;
}

void
once_begin(struct cli *cli, const struct event *event)
{
	mr_auto(sys_close_fd) int folder = lock_fd < 0 ? open_folder(cli, true) : -1;
	struct mr_error ignored = { 0 };
	char name[65];

	if (folder < 0)
		return;
	file_name(cli, name);
	if (lock_take(folder, name, 0600, LOCK_WAIT_MS, &lock_fd, &ignored) != MR_OK)
		lock_fd = -1; /* told twice is better than not at all */
	else
		repeat = has_note_of(event);
}

bool
once_is_repeat(void)
{
	return repeat;
}

void
once_note(const struct event *event)
{
	mr_auto(buf_done) struct buf note = BUF_INIT;

	if (lock_fd < 0)
		return;
	buf_addf(&note, "%020lld ", (long long)clock_boot_ms());
	add_note(event, &note);
	if (buf_ok(&note) && sys_pwrite_all(lock_fd, note.ptr, note.len, 0) < 0)
		log_line("what a session was told cannot be written down");
}

void
once_forget(struct cli *cli)
{
	mr_auto(sys_close_fd) int folder = open_folder(cli, false);
	char name[65];

	if (folder < 0)
		return;
	file_name(cli, name);
	(void)sys_unlink(folder, name);
}
