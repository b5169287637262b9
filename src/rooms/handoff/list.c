/* SPDX-License-Identifier: MIT */
/*
 * list.c - which messages are in a mailbox.
 *
 * Others move files between inbox/ and archive/ while we read. A file that moved from a folder not yet read into one
 * already read would be missed, so the folders are read again until neither changed meanwhile, and what any pass saw
 * counts, where the last one saw it.
 */
#include "rooms/handoff/handoff.h"

#include "base/sys.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define PASSES 4

const char *
handoff_folder(enum mr_folder folder)
{
	return folder == MR_ARCHIVE ? "archive" : "inbox";
}

int64_t
handoff_mtime_ms(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

void
handoff_list_done(struct handoff_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->v[i].name);
	free(list->v);
	*list = (struct handoff_list){ 0 };
}

struct reading {
	struct handoff_list *list;
	int fd;
	enum mr_folder folder;
	bool failed; /* out of memory */
};

static bool
note(void *ctx, const struct dir_entry *e)
{
	struct reading *r = ctx;
	struct handoff_list *list = r->list;
	struct stat st = { 0 };

	if (!handoff_name_is_mail(e->name, r->folder))
		return true;
	/* Links and folders are nobody's mail. A name with its time in it needs no look at the file for that. */
	if (e->type != DT_REG || !handoff_name_has_stamp(e->name))
		if (sys_stat(r->fd, e->name, &st) < 0 || !S_ISREG(st.st_mode))
			return true;
	if (list->n == list->cap) {
		size_t cap = list->cap ? 2 * list->cap : 64;
		struct handoff_item *grown = realloc(list->v, cap * sizeof *grown);

		r->failed = !grown;
		if (!grown)
			return false;
		list->v = grown;
		list->cap = cap;
	}
	struct handoff_item *item = &list->v[list->n];

	item->name = strdup(e->name);
	item->folder = r->folder;
	handoff_message_id(e->name, handoff_mtime_ms(&st), item->id);
	r->failed = !item->name;
	list->n += !r->failed;
	return !r->failed;
}

struct folders {
	int fd[2]; /* inbox, archive; -1: not there, or not asked for */
	int64_t changed[2];
};

static void
folders_done(struct folders *f)
{
	sys_close_fd(&f->fd[0]);
	sys_close_fd(&f->fd[1]);
}

static const enum mr_folder both[] = { MR_INBOX, MR_ARCHIVE };

static enum mr_rc
folders_open(struct handoff *h, const char *mailbox, unsigned want, struct folders *f, struct mr_error *err)
{
	int root_fd = -1;
	enum mr_rc rc = handoff_root(h, false, &root_fd, err);

	for (size_t i = 0; rc == MR_OK && i < 2; i++) {
		char path[HANDOFF_ID_MAX + 16];

		(void)snprintf(path, sizeof path, "%s/%s", mailbox, handoff_folder(both[i]));
		if (want & both[i])
			rc = dir_open(root_fd, path, &f->fd[i], err);
		if (rc == MR_NOTFOUND)
			rc = MR_OK; /* made by the first who needs it */
	}
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

static bool
has_changed(struct folders *f)
{
	bool changed = false;

	for (size_t i = 0; i < 2; i++) {
		struct stat st;
		int64_t now = 0;

		if (f->fd[i] >= 0 && sys_stat_fd(f->fd[i], &st) == 0)
			now = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
		changed |= now != f->changed[i];
		f->changed[i] = now;
	}
	return changed;
}

static int
by_id(const void *a, const void *b)
{
	const struct handoff_item *x = a, *y = b;
	int order = strcmp(x->id, y->id);

	return order ? order : strcmp(x->name, y->name);
}

struct numbered { /* to sort by name, and of equal names the one seen last first */
	size_t at;
	const struct handoff_item *item;
};

static int
by_name_latest_first(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;
	int order = strcmp(x->item->name, y->item->name);

	return order ? order : (x->at < y->at) - (x->at > y->at);
}

/* Of each name only where it was seen last. */
static bool
keep_latest(struct handoff_list *list)
{
	mr_auto(free_ptr) struct numbered *order = calloc(list->n + 1, sizeof *order);
	mr_auto(free_ptr) struct handoff_item *kept = calloc(list->n + 1, sizeof *kept);
	size_t n = 0;

	if (!order || !kept)
		return false;
	for (size_t i = 0; i < list->n; i++)
		order[i] = (struct numbered){ i, &list->v[i] };
	qsort(order, list->n, sizeof *order, by_name_latest_first);
	for (size_t i = 0; i < list->n; i++)
		if (n > 0 && strcmp(kept[n - 1].name, order[i].item->name) == 0)
			free(order[i].item->name);
		else
			kept[n++] = *order[i].item;
	memcpy(list->v, kept, n * sizeof *kept);
	list->n = n;
	return true;
}

static void
remember(struct handoff *h, const char *mailbox, const struct handoff_list *list)
{
	known_begin(&h->known, mailbox);
	for (size_t i = 0; i < list->n; i++)
		if (handoff_name_has_stamp(list->v[i].name))
			known_add(&h->known, list->v[i].id, list->v[i].folder, list->v[i].name);
}

enum mr_rc
handoff_list(struct handoff *h, const char *mailbox, unsigned folders, struct handoff_list *ret, struct mr_error *err)
{
	mr_auto(folders_done) struct folders f = { { -1, -1 }, { 0, 0 } };
	mr_auto(handoff_list_done) struct handoff_list list = { 0 };
	int passes = 0;

	TRY(folders_open(h, mailbox, folders, &f, err));
	(void)has_changed(&f);
	do {
		for (size_t i = 0; i < 2; i++) {
			struct reading r = { &list, f.fd[i], both[i], false };

			if (f.fd[i] >= 0 && dir_each(f.fd[i], note, &r, err) != MR_OK)
				return err->code;
			if (r.failed)
				return mr_nomem(err);
		}
	} while (++passes < PASSES && has_changed(&f));
	if (list.n > 0 && !keep_latest(&list))
		return mr_nomem(err);
	if (list.n > 0)
		qsort(list.v, list.n, sizeof *list.v, by_id);
	remember(h, mailbox, &list);
	*ret = list;
	list = (struct handoff_list){ 0 };
	return MR_OK;
}

/* ---- One message ---- */

static bool
keep_only(struct handoff_list *list, const char *name, enum mr_folder folder, const char *id)
{
	struct handoff_item item = { .folder = folder };
	struct handoff_item *one = calloc(1, sizeof *one);

	memcpy(item.id, id, sizeof item.id);
	item.name = one ? strdup(name) : NULL;
	handoff_list_done(list);
	if (!item.name) {
		free(one);
		return false;
	}
	*one = item;
	*list = (struct handoff_list){ .v = one, .n = 1, .cap = 1 };
	return true;
}

/* Where the last look at all of them found it. In both folders it is archived, as it is for handoff_list. */
static bool
find_known(struct handoff *h, const char *mailbox, unsigned folders, const char *id, struct handoff_list *ret)
{
	mr_auto(folders_done) struct folders f = { { -1, -1 }, { 0, 0 } };
	const struct known_file *file = known_find(&h->known, mailbox, id);
	struct mr_error ignored = { 0 };
	struct stat st;

	if (!file || folders_open(h, mailbox, folders, &f, &ignored) != MR_OK)
		return false;
	for (size_t i = 2; i-- > 0;)
		if (f.fd[i] >= 0 && handoff_name_is_mail(file->name, both[i]) &&
		    sys_stat(f.fd[i], file->name, &st) == 0 && S_ISREG(st.st_mode))
			return keep_only(ret, file->name, both[i], id);
	return false;
}

enum mr_rc
handoff_list_one(struct handoff *h, const char *mailbox, unsigned folders, const char *id, struct handoff_list *ret,
    struct mr_error *err)
{
	mr_auto(handoff_list_done) struct handoff_list all = { 0 };

	if (find_known(h, mailbox, folders, id, ret))
		return MR_OK;
	TRY(handoff_list(h, mailbox, folders, &all, err));
	for (size_t i = 0; i < all.n; i++)
		if (strcmp(all.v[i].id, id) == 0)
			return keep_only(ret, all.v[i].name, all.v[i].folder, id) ? MR_OK : mr_nomem(err);
	return MR_OK;
}
