/* SPDX-License-Identifier: MIT */
/* build.c - a state of the model as names that can be reached, and as real folders. */
#include "model.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Names ---- */

/* Takes, folder by folder from the top, what can be reached; a folder has one place. */
static void
take_reachable(const struct fs *fs, const struct slot *const *now, struct tree *t)
{
	bool *placed = calloc((size_t)fs->nodes_n, sizeof(*placed));
	int *queue = model_alloc(NULL, (size_t)fs->nodes_n + 1, sizeof(*queue));
	int head = 0, tail = 0;

	if (!placed)
		model_die("no memory");
	queue[tail++] = fs->root;
	placed[fs->root] = true;
	while (head < tail) {
		int dir = queue[head++];
		for (int i = fs->dirs[dir]; i < fs->dirs[dir + 1]; i++) {
			const struct slot *slot = now[fs->in_dir[i]];
			if (!slot || slot->node < 0)
				continue;
			bool is_dir = fs->nodes[slot->node].is_dir;
			if (is_dir && placed[slot->node])
				continue;
			placed[slot->node] = true;
			if (is_dir)
				queue[tail++] = slot->node;
			t->names[t->n++] = slot;
		}
	}
	free(placed);
	free(queue);
}

void
tree_of(const struct fs *fs, const struct state *s, struct tree *ret)
{
	const struct slot **now = calloc((size_t)fs->slots_n + 1, sizeof(*now));

	if (!now)
		model_die("no memory");
	for (int i = 0; i < fs->names_n; i++)
		now[fs->names[i].id] = &fs->names[i];
	for (int i = 0; i < s->after; i++) {
		const struct event *e = &fs->events[i];
		/* 1: both; 2: only what was gained; 3: only what was lost */
		if (s->applied[i] == 1 || s->applied[i] == 3)
			now[e->slots[0].id] = &e->slots[0];
		if (e->slots_n == 2 && (s->applied[i] == 1 || s->applied[i] == 2))
			now[e->slots[1].id] = &e->slots[1];
	}
	*ret = (struct tree){ model_alloc(NULL, (size_t)fs->slots_n, sizeof(*ret->names)), 0 };
	take_reachable(fs, now, ret);
	free(now);
}

void
tree_done(struct tree *t)
{
	free(t->names);
	*t = (struct tree){ 0 };
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

/* ---- For people ---- */

void
state_print(FILE *out, const struct fs *fs, const struct state *s)
{
	static const char *const what[] = { "lost", "there", "only the new name", "only the loss" };
	char bytes[64];

	(void)fprintf(
	    out, "# flavour %s, cut after call %d of %d:\n", flavour_names[s->flavour], s->after, fs->events_n);
	for (int i = 0; i < s->after; i++) {
		const struct event *e = &fs->events[i];

		if (e->kind == EVENT_NAMES) {
			(void)fprintf(out, "#   %3d %c %s: %s\n", i, e->call, e->label, what[s->applied[i]]);
		} else if (e->kind == EVENT_BYTES) {
			contents_name(fs, s, e->node, bytes);
			(void)fprintf(
			    out, "#   %3d %c file %d, now %zu bytes: %s\n", i, e->call, e->node, e->now.len, bytes);
		} else if (e->kind == EVENT_SYNC && e->call == 'A') {
			(void)fprintf(out, "#   %3d A everything\n", i);
		} else if (e->kind == EVENT_SYNC) {
			(void)fprintf(out, "#   %3d %c %s %d\n", i, e->call,
			    fs->nodes[e->node].is_dir ? "folder" : "file", e->node);
		} else {
			(void)fprintf(out, "#   %3d said %.40s\n", i, e->now.ptr);
		}
	}
}
