/* SPDX-License-Identifier: MIT */
/* fs.c - the abstract file system, how it was before the operation. */
#include "model.h"

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

const char *
fs_keep_text(struct fs *fs, const char *text, size_t n)
{
	char *copy = model_alloc(NULL, n + 1, 1);

	memcpy(copy, text, n);
	copy[n] = '\0';
	fs->texts = model_alloc(fs->texts, (size_t)fs->texts_n + 1, sizeof(*fs->texts));
	fs->texts[fs->texts_n++] = copy;
	return copy;
}

/* ---- Before ---- */

int
fs_add_node(struct fs *fs, const struct node *node)
{
	if ((fs->nodes_n & (fs->nodes_n - 1)) == 0)
		fs->nodes = model_alloc(fs->nodes, fs->nodes_n ? 2 * (size_t)fs->nodes_n : 1, sizeof(*fs->nodes));
	fs->nodes[fs->nodes_n] = *node;
	return fs->nodes_n++;
}

int
fs_find_node(const struct fs *fs, uint64_t inode)
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
	fs->names[fs->names_n++] = (struct slot){ dir, fs_keep_text(fs, name, strlen(name)), node, fs->slots_n++ };
}

struct bytes
fs_read_whole(int dir_fd, const char *name, size_t size)
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
	int known = fs_find_node(fs, st.st_ino);
	if (known >= 0)
		return known;
	struct node node = { .inode = st.st_ino,
		.is_dir = S_ISDIR(st.st_mode),
		.mode = st.st_mode & 07777,
		.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec };
	if (S_ISREG(st.st_mode))
		node.first = fs_read_whole(dir_fd, name, (size_t)st.st_size);
	else if (!node.is_dir)
		model_die("neither a file nor a folder");
	return fs_add_node(fs, &node);
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
	free(fs->in_dir);
	free(fs->dirs);
	free(fs->nodes);
	free(fs->names);
	free(fs->events);
	*fs = (struct fs){ 0 };
}
