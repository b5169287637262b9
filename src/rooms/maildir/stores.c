/* SPDX-License-Identifier: MIT */
/*
 * stores.c - for an index of the mail: the folders of a mailbox with a stamp each, and where the index is kept.
 *
 * The stamp is made of the inodes and change times of new/, cur/ and a pack: the kernel changes the time with each name
 * that comes or goes, and no program can set it back. As for a listing (list.c), a time of the last tick proves
 * nothing.
 */
#include "base/storage.h"
#include "rooms/maildir/maildir.h"
#include <limits.h>

#define TICK_NS 20000000
#define INDEX "index"

/* Adds a folder to the stamp; a missing one counts, too. */
static void
add_stamp(struct mail_store *store, int dir_fd, const char *path)
{
	struct stat st;
	uint64_t parts[3] = { store->stamp };

	if (sys_stat(dir_fd, path, &st) == 0) {
		int64_t changed_ns = time_ns(st.st_ctim);
		int64_t age_ns = clock_now_ns() - changed_ns;

		parts[1] = (uint64_t)st.st_ino;
		parts[2] = (uint64_t)changed_ns;
		store->moving |= age_ns < TICK_NS && age_ns > -TICK_NS;
	}
	store->stamp = hash_bytes((struct mr_str){ (const char *)parts, sizeof parts });
}

static enum mr_rc
tell_inbox(struct mailbox *box, store_fn *fn, void *ctx, bool *ret_more, struct mr_error *err)
{
	struct mail_store store = { .name = "", .folders = MR_INBOX | MR_HELD };
	mr_auto(mr_names_done) struct mr_names lives = { 0 };
	int held = -1;

	add_stamp(&store, box->fd, "new");
	add_stamp(&store, box->fd, "cur");
	add_stamp(&store, box->fd, "held");
	TRY(mailbox_folder(box, BOX_HELD, &held, err));
	TRY(dir_names(held, &lives, err));
	names_sort(&lives);
	for (size_t i = 0; i < lives.n; i++)
		add_stamp(&store, held, lives.v[i]);
	*ret_more = fn(ctx, &store);
	return MR_OK;
}

enum mr_rc
maildir_each_store(struct mr_room *room, const char *agent, store_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	bool more = true;

	TRY(mailbox_open(&box, maildir_of(room), agent, err));
	TRY(tell_inbox(&box, fn, ctx, &more, err));
	TRY(dir_names(box.fd, &names, err));
	names_sort(&names);
	for (size_t i = 0; i < names.n && more; i++) {
		struct mr_str name = str_of(names.v[i]);
		struct mail_store store = { .name = names.v[i],
			.folders = str_starts(name, ".Archive") ? MR_ARCHIVE
				   : str_starts(name, ".Sent")  ? MR_SENT
								: 0 };

		if (store.folders == 0)
			continue;
		add_stamp(&store, box.fd, path_of(names.v[i], "/new", NULL).z);
		add_stamp(&store, box.fd, path_of(names.v[i], "/cur", NULL).z);
		add_stamp(&store, box.fd, path_of(names.v[i], "/" PACK_FILE, NULL).z);
		more = fn(ctx, &store);
	}
	return MR_OK;
}

enum mr_rc
maildir_index_folder(struct mr_room *room, bool make, char **ret, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(buf_done) struct buf path = BUF_INIT;
	struct stat st;

	if (!make) /* most rooms have none, and many commands ask */
		TRY(dir_open(md->root_fd, INDEX, &fd, err));
	/* The index holds words of all mail, so there is none in a shared room, where users may close mailboxes to each
	 * other. SQLite shares memory between its users, so there is none where they may be on several machines. */
	struct mr_storage storage = { 0 };

	if (maildir_is_shared(md))
		return mr_fail(err, MR_REFUSED,
		    "a room of several users (Share: group) has no index: it would show mail of closed mailboxes");
	TRY(storage_of(md->root_fd, md->path, &storage, err));
	for (const char *const *fs = (const char *const[]){ "nfs", "cifs", "smb2", "ceph", "9p", NULL }; *fs; fs++)
		if (strcmp(*fs, storage.file_system) == 0)
			return mr_fail(err, MR_REFUSED, "a room on a network file system (%s) has no index", *fs);
	if (make)
		TRY(maildir_folder(md, md->root_fd, INDEX, true, &fd, err));
	if (sys_stat_fd(fd, &st) < 0)
		return mr_fail_errno(err, "cannot look at '%s'", INDEX);
	if (st.st_uid != sys_euid() || (st.st_mode & 077) != 0)
		return mr_fail(err, MR_REFUSED,
		    "the folder '%s' of the room is not yours alone\nremove it, and run mailroom index again", INDEX);
	mr_auto(free_ptr) char *root = realpath(md->path, NULL);

	if (!root)
		return mr_fail_errno(err, "cannot find the way to '%s'", md->path);
	buf_addf(&path, "%s/" INDEX, root);
	*ret = buf_take(&path);
	return *ret ? MR_OK : mr_nomem(err);
}
