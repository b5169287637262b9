/* SPDX-License-Identifier: MIT */
/* record.c - what the recorded calls did to the abstract file system. */
#include "model.h"
#include "support/sys_record.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- While the calls are read: the names and contents as the program saw them ---- */

struct live {
	struct slot *names;
	int n;
	struct bytes *contents; /* a node each */
	int contents_n;
	bool all_written; /* a sync of everything: the disk is told to keep it only by a sync of something right after
			     it */
};

static struct slot *
live_slot(struct live *live, int dir, const char *name)
{
	for (int i = 0; i < live->n; i++)
		if (live->names[i].dir == dir && strcmp(live->names[i].name, name) == 0)
			return &live->names[i];
	return NULL;
}

static void
live_set(struct live *live, const struct slot *slot)
{
	struct slot *there = live_slot(live, slot->dir, slot->name);

	if (!there) {
		live->names = model_alloc(live->names, (size_t)live->n + 1, sizeof(*live->names));
		there = &live->names[live->n++];
	}
	*there = *slot;
}

/* Its number; from now on it is known, be it as a name of nothing. */
static int
slot_id(struct fs *fs, struct live *live, int dir, const char *name)
{
	const struct slot *there = dir >= 0 ? live_slot(live, dir, name) : NULL;

	if (there)
		return there->id;
	if (dir >= 0)
		live_set(live, &(struct slot){ dir, name, -1, fs->slots_n });
	return fs->slots_n++;
}

static struct bytes *
live_contents(const struct fs *fs, struct live *live, int node)
{
	while (live->contents_n < fs->nodes_n) {
		live->contents = model_alloc(live->contents, (size_t)live->contents_n + 1, sizeof(*live->contents));
		live->contents[live->contents_n] = fs->nodes[live->contents_n].first;
		live->contents_n++;
	}
	return &live->contents[node];
}

/* The folder of a path, and its last name; -1: not below the top. */
static int
resolve(struct fs *fs, struct live *live, const char *path, const char **ret_name)
{
	size_t n = strlen(fs->top);
	int dir = fs->root;

	if (strncmp(path, fs->top, n) != 0 || path[n] != '/')
		return -1;
	for (path += n + 1;; path += n + 1) {
		n = strcspn(path, "/");
		if (path[n] == '\0') {
			*ret_name = fs_keep_text(fs, path, n);
			return dir;
		}
		char part[256];
		(void)snprintf(part, sizeof(part), "%.*s", (int)n, path);
		const struct slot *slot = live_slot(live, dir, part);
		if (!slot || slot->node < 0) {
			(void)fprintf(stderr, "model: '%s' in a recorded path is unknown\n", part);
			exit(3);
		}
		dir = slot->node;
	}
}

static struct event *
add_event(struct fs *fs, enum event_kind kind, char call, int node)
{
	if ((fs->events_n & (fs->events_n - 1)) == 0)
		fs->events = model_alloc(fs->events, fs->events_n ? 2 * (size_t)fs->events_n : 1, sizeof(*fs->events));
	struct event *e = &fs->events[fs->events_n++];
	*e = (struct event){ .kind = kind, .call = call, .node = node, .label = "" };
	return e;
}

static void
label_event(struct fs *fs, struct event *e, const char *a, const char *b)
{
	char text[600];
	size_t n = strlen(fs->top) + 1;

	(void)snprintf(
	    text, sizeof(text), "%s%s%s", strlen(a) > n ? a + n : a, b[0] ? " -> " : "", strlen(b) > n ? b + n : b);
	e->label = fs_keep_text(fs, text, strlen(text));
}

/* ---- One call ---- */

static void
read_names(struct fs *fs, struct live *live, const struct record_head *head, const char *a, const char *b)
{
	const char *a_name = NULL, *b_name = NULL;
	int a_dir = a[0] ? resolve(fs, live, a, &a_name) : -1;
	int b_dir = b[0] ? resolve(fs, live, b, &b_name) : -1;
	char call = (char)head->kind;
	int node = fs_find_node(fs, head->inode);

	if ((a[0] && a_dir < 0 && call != RECORD_LINK) || (b[0] && b_dir < 0))
		return; /* elsewhere */
	int a_id = slot_id(fs, live, a_dir, a_name), b_id = slot_id(fs, live, b_dir, b_name);
	const struct slot *from = a_dir >= 0 ? live_slot(live, a_dir, a_name) : NULL;
	const struct slot *to = b_dir >= 0 ? live_slot(live, b_dir, b_name) : NULL;
	struct event e = { .slots_n = 1, .node = node };

	switch (call) {
	case RECORD_CREATE:
	case RECORD_MKDIR:
		e.slots[0] = (struct slot){ a_dir, a_name, node, a_id };
		break;
	case RECORD_LINK:
		e.slots[0] = (struct slot){ b_dir, b_name, node, b_id };
		break;
	case RECORD_UNLINK:
		e.slots[0] = (struct slot){ a_dir, a_name, -1, a_id };
		e.node = from ? from->node : -1;
		break;
	default: /* slots[1] is what gained a name */
		e.slots[0] = (struct slot){ a_dir, a_name, call == RECORD_EXCHANGE && to ? to->node : -1, a_id };
		e.slots[1] = (struct slot){ b_dir, b_name, from && from->node >= 0 ? from->node : node, b_id };
		e.slots_n = 2;
		e.across = a_dir != b_dir;
		e.node = e.slots[1].node;
		break;
	}
	struct event *added = add_event(fs, EVENT_NAMES, call, e.node);
	e.kind = added->kind;
	e.call = call;
	e.label = "";
	*added = e;
	label_event(fs, added, a, b);
	for (int i = 0; i < e.slots_n; i++)
		live_set(live, &e.slots[i]);
}

static void
read_bytes(struct fs *fs, struct live *live, const struct record_head *head, int node, const char *bytes)
{
	struct bytes *old = live_contents(fs, live, node);
	size_t end = (size_t)head->at + head->bytes_len;
	struct bytes now = { NULL, head->kind == RECORD_TRUNCATE ? 0 : end > old->len ? end : old->len };

	now.ptr = model_alloc(NULL, now.len, 1);
	memset(now.ptr, 0, now.len);
	memcpy(now.ptr, old->ptr ? old->ptr : "", old->len < now.len ? old->len : now.len);
	memcpy(now.ptr + (head->kind == RECORD_TRUNCATE ? 0 : head->at), bytes, head->bytes_len);
	struct event *e = add_event(fs, EVENT_BYTES, (char)head->kind, node);
	e->now = now;
	fs->nodes[node].mtime_ns = head->mtime_ns;
	*old = now;
}

static void
read_call(
    struct fs *fs, struct live *live, const struct record_head *head, const char *a, const char *b, const char *bytes)
{
	int node = fs_find_node(fs, head->inode);
	bool is_new = head->kind == RECORD_CREATE || head->kind == RECORD_UNNAMED || head->kind == RECORD_MKDIR;

	if (is_new) {
		struct node fresh = { .inode = head->inode,
			.is_dir = S_ISDIR(head->mode),
			.mode = head->mode & 07777,
			.mtime_ns = head->mtime_ns };
		node = fs_add_node(fs, &fresh);
	}
	if (head->kind != RECORD_SYNC)
		live->all_written = false;
	switch (head->kind) {
	case RECORD_UNNAMED:
		break;
	case RECORD_WRITE:
	case RECORD_TRUNCATE:
		if (node >= 0)
			read_bytes(fs, live, head, node, bytes);
		break;
	case RECORD_SYNC:
		if (live->all_written)
			(void)add_event(fs, EVENT_SYNC, 'A', -1);
		live->all_written = false;
		if (node >= 0)
			(void)add_event(fs, EVENT_SYNC, 'S', node);
		break;
	case RECORD_SYNC_ALL:
		live->all_written = true;
		break;
	case RECORD_WRITE_OUT:
		if (node >= 0)
			(void)add_event(fs, EVENT_SYNC, 'F', node);
		break;
	case RECORD_CHANGE:
		if (node >= 0) {
			fs->nodes[node].mode = head->mode & 07777;
			fs->nodes[node].mtime_ns = head->mtime_ns;
		}
		break;
	default:
		read_names(fs, live, head, a, b);
		break;
	}
}

/* ---- The file ---- */

static struct bytes
read_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		model_die(path);
	return fs_read_whole(AT_FDCWD, path, (size_t)st.st_size);
}

static void
add_said(struct fs *fs, const char *text, size_t n)
{
	struct event *e = add_event(fs, EVENT_SAID, '"', -1);

	e->now = (struct bytes){ model_alloc(NULL, n, 1), n };
	memcpy(e->now.ptr, text, n);
}

/* Which names each folder has had. */
static void
index_slots(struct fs *fs, const struct live *live)
{
	fs->in_dir = model_alloc(NULL, (size_t)live->n, sizeof(int));
	fs->dirs = calloc((size_t)fs->nodes_n + 2, sizeof(int));
	if (!fs->dirs)
		model_die("no memory");
	for (int i = 0; i < live->n; i++)
		fs->dirs[live->names[i].dir + 2]++;
	for (int i = 2; i <= fs->nodes_n + 1; i++)
		fs->dirs[i] += fs->dirs[i - 1];
	for (int i = 0; i < live->n; i++)
		fs->in_dir[fs->dirs[live->names[i].dir + 1]++] = live->names[i].id;
}

void
fs_read_record(struct fs *fs, const char *path)
{
	struct bytes all = read_file(path);
	struct live live = { .names = model_alloc(NULL, (size_t)fs->names_n, sizeof(struct slot)), .n = fs->names_n };
	const uint32_t magic = RECORD_MAGIC;

	memcpy(live.names, fs->names, (size_t)fs->names_n * sizeof(struct slot));
	for (size_t at = 0; at < all.len;) {
		struct record_head head;
		const char *next = memmem(all.ptr + at, all.len - at, &magic, sizeof(magic));
		size_t said = next ? (size_t)(next - all.ptr) - at : all.len - at;

		if (said > 0)
			add_said(fs, all.ptr + at, said);
		at += said;
		if (!next)
			break;
		memcpy(&head, all.ptr + at, sizeof(head));
		const char *a = all.ptr + at + sizeof(head), *b = a + head.a_len, *bytes = b + head.b_len;
		read_call(fs, &live, &head, fs_keep_text(fs, a, head.a_len), fs_keep_text(fs, b, head.b_len), bytes);
		at += sizeof(head) + head.a_len + head.b_len + head.bytes_len;
	}
	index_slots(fs, &live);
	free(live.names);
	free(live.contents);
	free(all.ptr);
}
