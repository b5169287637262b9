/* SPDX-License-Identifier: MIT */
/* fs.c - the abstract file system: how it was before, and what the recorded calls did to it. */
#include "model.h"
#include "base/sys_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Noreturn void
model_die(const char *what)
{
	(void)fprintf(stderr, "model: %s: %s\n", what, strerror(errno));
	exit(3);
}

void *
model_alloc(void *old, size_t n, size_t size)
{
	void *p = reallocarray(old, n ? n : 1, size);

	if (!p)
		model_die("no memory");
	return p;
}

static char *
copy_text(const char *text, size_t n)
{
	char *copy = model_alloc(NULL, n + 1, 1);

	memcpy(copy, text, n);
	copy[n] = '\0';
	return copy;
}

/* Lives as long as the file system. */
static const char *
keep_text(struct fs *fs, const char *text, size_t n)
{
	fs->texts = model_alloc(fs->texts, (size_t)fs->texts_n + 1, sizeof(*fs->texts));
	fs->texts[fs->texts_n] = copy_text(text, n);
	return fs->texts[fs->texts_n++];
}

/* ---- Before ---- */

static int
add_node(struct fs *fs, const struct node *node)
{
	if ((fs->nodes_n & (fs->nodes_n - 1)) == 0)
		fs->nodes = model_alloc(fs->nodes, fs->nodes_n ? 2 * (size_t)fs->nodes_n : 1, sizeof(*fs->nodes));
	fs->nodes[fs->nodes_n] = *node;
	return fs->nodes_n++;
}

static int
find_node(const struct fs *fs, uint64_t inode)
{
	for (int i = fs->nodes_n - 1; i >= 0; i--)
		if (fs->nodes[i].inode == inode)
			return i;
	return -1;
}

static void
add_name(struct fs *fs, int dir, const char *name, int node)
{
	if ((fs->names_n & (fs->names_n - 1)) == 0)
		fs->names = model_alloc(fs->names, fs->names_n ? 2 * (size_t)fs->names_n : 1, sizeof(*fs->names));
	fs->names[fs->names_n++] = (struct slot){ dir, keep_text(fs, name, strlen(name)), node };
}

static struct bytes
read_whole(int dir_fd, const char *name, size_t size)
{
	struct bytes b = { model_alloc(NULL, size, 1), size };
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || read(fd, b.ptr, size) != (ssize_t)size)
		model_die(name);
	(void)close(fd);
	return b;
}

static int
take_entry(struct fs *fs, int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		model_die(name);
	int known = find_node(fs, st.st_ino);
	if (known >= 0)
		return known;
	struct node node = { .inode = st.st_ino,
		.is_dir = S_ISDIR(st.st_mode),
		.mode = st.st_mode & 07777,
		.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec };
	if (S_ISREG(st.st_mode))
		node.first = read_whole(dir_fd, name, (size_t)st.st_size);
	else if (!node.is_dir)
		model_die("neither a file nor a folder");
	return add_node(fs, &node);
}

static void
take_folder(struct fs *fs, int node, int fd)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;

	if (!dir)
		model_die("folder");
	while ((e = readdir(dir)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		int child = take_entry(fs, dirfd(dir), e->d_name);
		add_name(fs, node, e->d_name, child);
		if (fs->nodes[child].is_dir)
			take_folder(fs, child, openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	}
	(void)closedir(dir);
}

void
fs_take_snapshot(struct fs *fs, const char *top)
{
	*fs = (struct fs){ 0 };
	(void)snprintf(fs->top, sizeof(fs->top), "%s", top);
	fs->root = take_entry(fs, AT_FDCWD, top);
	take_folder(fs, fs->root, open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

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
			*ret_name = keep_text(fs, path, n);
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
	e->label = keep_text(fs, text, strlen(text));
}

/* ---- One call ---- */

static void
read_names(struct fs *fs, struct live *live, const struct record_head *head, const char *a, const char *b)
{
	const char *a_name = NULL, *b_name = NULL;
	int a_dir = a[0] ? resolve(fs, live, a, &a_name) : -1;
	int b_dir = b[0] ? resolve(fs, live, b, &b_name) : -1;
	char call = (char)head->kind;
	int node = find_node(fs, head->inode);

	if ((a[0] && a_dir < 0 && call != RECORD_LINK) || (b[0] && b_dir < 0))
		return; /* elsewhere */
	const struct slot *from = a_dir >= 0 ? live_slot(live, a_dir, a_name) : NULL;
	const struct slot *to = b_dir >= 0 ? live_slot(live, b_dir, b_name) : NULL;
	struct event e = { .slots_n = 1, .node = node };

	switch (call) {
	case RECORD_CREATE:
	case RECORD_MKDIR:
		e.slots[0] = (struct slot){ a_dir, a_name, node };
		break;
	case RECORD_LINK:
		e.slots[0] = (struct slot){ b_dir, b_name, node };
		break;
	case RECORD_UNLINK:
		e.slots[0] = (struct slot){ a_dir, a_name, -1 };
		e.node = from ? from->node : -1;
		break;
	default: /* slots[1] is what gained a name */
		e.slots[0] = (struct slot){ a_dir, a_name, call == RECORD_EXCHANGE && to ? to->node : -1 };
		e.slots[1] = (struct slot){ b_dir, b_name, from ? from->node : node };
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
	int node = find_node(fs, head->inode);
	bool is_new = head->kind == RECORD_CREATE || head->kind == RECORD_UNNAMED || head->kind == RECORD_MKDIR;

	if (is_new) {
		struct node fresh = { .inode = head->inode,
			.is_dir = S_ISDIR(head->mode),
			.mode = head->mode & 07777,
			.mtime_ns = head->mtime_ns };
		node = add_node(fs, &fresh);
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
	return read_whole(AT_FDCWD, path, (size_t)st.st_size);
}

static void
add_said(struct fs *fs, const char *text, size_t n)
{
	struct event *e = add_event(fs, EVENT_SAID, '"', -1);

	e->now = (struct bytes){ copy_text(text, n), n };
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
		char *a_text = copy_text(a, head.a_len), *b_text = copy_text(b, head.b_len);
		read_call(fs, &live, &head, a_text, b_text, bytes);
		free(a_text);
		free(b_text);
		at += sizeof(head) + head.a_len + head.b_len + head.bytes_len;
	}
	free(live.names);
	free(live.contents);
	free(all.ptr);
}

void
fs_done(struct fs *fs)
{
	for (int i = 0; i < fs->nodes_n; i++)
		free(fs->nodes[i].first.ptr);
	for (int i = 0; i < fs->events_n; i++)
		free(fs->events[i].now.ptr);
	for (int i = 0; i < fs->texts_n; i++)
		free(fs->texts[i]);
	free(fs->texts);
	free(fs->nodes);
	free(fs->names);
	free(fs->events);
	*fs = (struct fs){ 0 };
}
