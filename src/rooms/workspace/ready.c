/* SPDX-License-Identifier: MIT */
/*
 * ready.c - is a file complete? Our own appear whole, but a peer's cp makes an empty file, writes, closes. A file that
 * nobody wrote to for 200 ms is taken as complete; a younger one when two looks, 50 ms apart, find it the same.
 */
#include "base/clock.h"
#include "base/sys.h"
#include "rooms/workspace/workspace.h"
#include <poll.h>
#include <stdlib.h>

#define OLD_NS 200000000
#define LOOK_AGAIN_MS 50
#define SETTLED_MAX 4096

int64_t
mtime_of(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

void
settled_add(struct workspace *ws, const struct stat *st)
{
	if (!ws->settled)
		ws->settled = calloc(SETTLED_MAX, sizeof *ws->settled);
	if (!ws->settled)
		return; /* it is only looked at once more */
	ws->settled[ws->settled_n++ % SETTLED_MAX] =
	    (struct settled){ .inode = (uint64_t)st->st_ino, .mtime_ns = mtime_of(st), .size = (int64_t)st->st_size };
}

static bool
is_settled(const struct workspace *ws, const struct stat *st)
{
	for (size_t i = 0; i < ws->settled_n && i < SETTLED_MAX; i++) {
		const struct settled *s = &ws->settled[i];

		if (s->inode == (uint64_t)st->st_ino && s->mtime_ns == mtime_of(st) && s->size == (int64_t)st->st_size)
			return true;
	}
	return false;
}

static bool
same_as_before(int dir_fd, const struct candidate *c)
{
	struct stat st;

	return sys_stat(dir_fd, c->name, &st) == 0 && st.st_ino == c->st.st_ino && st.st_size == c->st.st_size &&
	       mtime_of(&st) == mtime_of(&c->st);
}

void
candidates_settle(struct workspace *ws, int dir_fd, struct candidate *v, size_t n)
{
	int64_t now_ns = clock_now_ns();
	size_t young = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t mtime_ns = mtime_of(&v[i].st);

		/* A date in the future says nothing about its age. */
		v[i].ready = (mtime_ns <= now_ns && now_ns - mtime_ns > OLD_NS) || is_settled(ws, &v[i].st);
		young += !v[i].ready;
	}
	if (young == 0)
		return;
	(void)poll(NULL, 0, LOOK_AGAIN_MS);
	for (size_t i = 0; i < n; i++)
		if (!v[i].ready && same_as_before(dir_fd, &v[i])) {
			v[i].ready = true;
			settled_add(ws, &v[i].st);
		}
}
