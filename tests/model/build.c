/* SPDX-License-Identifier: MIT */
/* build.c - a state of the model as names that can be reached, as contents, and as real folders. */
#include "model.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Names ---- */

static void
set_name(struct tree *t, const struct slot *slot)
{
	for (int i = 0; i < t->n; i++)
		if (t->names[i]->dir == slot->dir && strcmp(t->names[i]->name, slot->name) == 0) {
			t->names[i] = slot;
			return;
		}
	t->names[t->n++] = slot;
}

/* Keeps, folder by folder from the top, what can be reached; a folder has one place. */
static void
keep_reachable(const struct fs *fs, struct tree *t)
{
	const struct slot **kept = model_alloc(NULL, (size_t)t->n, sizeof(*kept));
	bool *placed = calloc((size_t)fs->nodes_n, sizeof(*placed));
	int *queue = model_alloc(NULL, (size_t)fs->nodes_n + 1, sizeof(*queue));
	int n = 0, head = 0, tail = 0;

	if (!placed)
		model_die("no memory");
	queue[tail++] = fs->root;
	placed[fs->root] = true;
	while (head < tail) {
		int dir = queue[head++];
		for (int i = 0; i < t->n; i++) {
			const struct slot *slot = t->names[i];
			if (slot->dir != dir || slot->node < 0)
				continue;
			bool is_dir = fs->nodes[slot->node].is_dir;
			if (is_dir && placed[slot->node])
				continue;
			placed[slot->node] = true;
			if (is_dir)
				queue[tail++] = slot->node;
			kept[n++] = slot;
		}
	}
	free(t->names);
	free(placed);
	free(queue);
	t->names = kept;
	t->n = n;
}

void
tree_of(const struct fs *fs, const struct state *s, struct tree *ret)
{
	*ret = (struct tree){ model_alloc(NULL, (size_t)(fs->names_n + 2 * fs->events_n), sizeof(*ret->names)), 0 };
	for (int i = 0; i < fs->names_n; i++)
		ret->names[ret->n++] = &fs->names[i];
	for (int i = 0; i < s->after; i++) {
		const struct event *e = &fs->events[i];
		/* 1: both; 2: only what was gained; 3: only what was lost */
		if (s->applied[i] == 1 || s->applied[i] == 3)
			set_name(ret, &e->slots[0]);
		if (e->slots_n == 2 && (s->applied[i] == 1 || s->applied[i] == 2))
			set_name(ret, &e->slots[1]);
	}
	keep_reachable(fs, ret);
}

void
tree_done(struct tree *t)
{
	free(t->names);
	*t = (struct tree){ 0 };
}

/* ---- Contents ---- */

/* What is on the disk for certain, and what the program had written. */
static void
known_contents(const struct fs *fs, int node, int after, struct bytes *ret_synced, struct bytes *ret_now)
{
	*ret_synced = *ret_now = fs->nodes[node].first;
	for (int i = 0; i < after; i++) {
		const struct event *e = &fs->events[i];

		if (e->node != node && e->call != 'A')
			continue;
		if (e->kind == EVENT_BYTES)
			*ret_now = e->now;
		else if (e->kind == EVENT_SYNC)
			*ret_synced = *ret_now;
	}
}

struct bytes
contents_of(const struct fs *fs, const struct state *s, int node, bool *ret_own)
{
	struct bytes synced, now;

	*ret_own = false;
	known_contents(fs, node, s->after, &synced, &now);
	if (synced.ptr == now.ptr || s->contents[node] == WITH_ALL)
		return now;
	if (s->contents[node] == WITH_SYNCED)
		return synced;
	size_t keep = synced.len < now.len ? synced.len : now.len;
	size_t half = keep + (now.len - keep) / 2;
	struct bytes mixed = { model_alloc(NULL, now.len, 1), s->contents[node] == WITH_HALF ? half : now.len };

	if (keep == now.len) /* nothing but old blocks written over: the first half of them */
		half = mixed.len = now.len;
	*ret_own = true;
	memset(mixed.ptr, 0, now.len);
	memcpy(mixed.ptr, synced.ptr ? synced.ptr : "", keep);
	if (keep == now.len)
		memcpy(mixed.ptr, now.ptr ? now.ptr : "", now.len / 2);
	else if (s->contents[node] != WITH_ZEROS)
		memcpy(mixed.ptr, now.ptr, half);
	return mixed;
}

/* ---- Real folders ---- */

static int
remove_below(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	return where->level > 0 ? remove(path) : 0;
}

static void
make_file(const struct fs *fs, const struct state *s, int dir_fd, const struct slot *slot)
{
	const struct node *node = &fs->nodes[slot->node];
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
		{ .tv_sec = (time_t)(node->mtime_ns / 1000000000), .tv_nsec = (long)(node->mtime_ns % 1000000000) } };
	bool own = false;
	struct bytes b = contents_of(fs, s, slot->node, &own);
	int fd = openat(dir_fd, slot->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || (b.len > 0 && write(fd, b.ptr, b.len) != (ssize_t)b.len) || futimens(fd, times) < 0 ||
	    fchmod(fd, node->mode) < 0)
		model_die(slot->name);
	(void)close(fd);
	if (own)
		free(b.ptr);
}

struct made {   /* a node each: where it is now */
	int fd; /* of a folder */
	const struct slot *slot;
};

void
state_build(const struct fs *fs, const struct state *s)
{
	struct made *made = calloc((size_t)fs->nodes_n, sizeof(*made));
	struct tree tree;

	if (!made || nftw(fs->top, remove_below, 16, FTW_DEPTH | FTW_PHYS) != 0)
		model_die(fs->top);
	made[fs->root].fd = open(fs->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tree_of(fs, s, &tree);
	for (int i = 0; i < tree.n; i++) { /* parents come first */
		const struct slot *slot = tree.names[i];
		struct made *m = &made[slot->node];
		int dir_fd = made[slot->dir].fd;

		if (fs->nodes[slot->node].is_dir) {
			if (mkdirat(dir_fd, slot->name, 0700) < 0)
				model_die(slot->name);
			m->fd = openat(dir_fd, slot->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			(void)fchmod(m->fd, fs->nodes[slot->node].mode);
		} else if (!m->slot) {
			make_file(fs, s, dir_fd, slot);
			m->slot = slot;
		} else if (linkat(made[m->slot->dir].fd, m->slot->name, dir_fd, slot->name, 0) < 0) {
			model_die(slot->name);
		}
	}
	for (int i = 0; i < fs->nodes_n; i++)
		if (made[i].fd > 0)
			(void)close(made[i].fd);
	tree_done(&tree);
	free(made);
}
