/* SPDX-License-Identifier: MIT */
/*
 * list.c - what is in a mailbox: names that end in .json, in the inbox and in its archive. The format has no index, so
 * a look at a mailbox costs by all that is in it.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/chipset/chipset.h"
#include <dirent.h>
#include <stdlib.h>

void
chipset_list_done(struct chipset_list *list)
{
	sys_close_fd(&list->inbox_fd);
	sys_close_fd(&list->archive_fd);
	free(list->v);
	arena_free(list->own);
	*list = CHIPSET_LIST_INIT;
}

int
chipset_list_fd(const struct chipset_list *list, enum mr_folder folder)
{
	return folder == MR_ARCHIVE ? list->archive_fd : list->inbox_fd;
}

enum mr_rc
chipset_file_read(int fd, const char *name, struct buf *ret, struct mr_error *err)
{
	return file_read(fd, name, CHIPSET_READ_MAX, ret, err);
}

/* ---- Reading a folder ---- */

struct collector {
	struct chipset_list *list;
	enum mr_folder folder;
	const char *only_id;
	int64_t only_ms;
	bool failed;
};

static bool
grow(struct chipset_list *list)
{
	if (list->n < list->cap)
		return true;
	size_t cap = list->cap > 0 ? list->cap * 2 : 64;
	struct chipset_entry *grown = realloc(list->v, cap * sizeof *grown);

	if (!grown)
		return false;
	list->v = grown;
	list->cap = cap;
	return true;
}

/* A name whose time is another cannot have that id: no hash is needed to see it. */
static bool
is_another(const struct collector *c, const char *name)
{
	struct chipset_name parts;

	return c->only_id && chipset_name_parse(str_of(name), &parts) && (parts.ms > 0 ? parts.ms : 0) != c->only_ms;
}

static bool
collect(void *ctx, const struct dir_entry *entry)
{
	struct collector *c = ctx;

	if (entry->type == DT_DIR || !chipset_is_message(entry->name) || is_another(c, entry->name))
		return true;
	char *name = grow(c->list) ? arena_dup(&c->list->own, str_of(entry->name)) : NULL;

	c->failed = !name;
	if (name)
		c->list->v[c->list->n++] = (struct chipset_entry){ .name = name, .folder = c->folder };
	return !c->failed;
}

static enum mr_rc
collect_folder(struct chipset_list *list, enum mr_folder folder, const char *only_id, struct mr_error *err)
{
	struct collector c = { list, folder, only_id, only_id ? id_time_ms(only_id) : 0, false };
	enum mr_rc rc = dir_each(chipset_list_fd(list, folder), collect, &c, err);

	return rc == MR_OK && c.failed ? mr_nomem(err) : rc;
}

/* Only a name without a time makes us look inside. */
static void
identify(const struct chipset_list *list, struct chipset_entry *entry)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error ignored = { 0 };
	struct json_value object;

	if (chipset_name_id(str_of(entry->name), entry->id))
		return;
	bool known = chipset_file_read(chipset_list_fd(list, entry->folder), entry->name, &text, &ignored) == MR_OK &&
		     chipset_object(buf_str(&text), &object, &ignored) == MR_OK;

	chipset_message_id(entry->name, known ? &object : NULL, entry->id);
}

/* ---- One message in both folders ---- */

static bool
read_as_unread(const struct chipset_list *list, const struct chipset_entry *entry, struct buf *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error ignored = { 0 };
	struct json_value object;

	if (chipset_file_read(chipset_list_fd(list, entry->folder), entry->name, &text, &ignored) != MR_OK ||
	    chipset_object(buf_str(&text), &object, &ignored) != MR_OK)
		return false;
	if (!chipset_set_read(buf_str(&text), object, false, ret))
		buf_add(ret, buf_str(&text));
	return buf_ok(ret);
}

/* Mark-read of the original brings archived mail back into the inbox: that is one message, shown once. Another message
 * that merely got the name again is another. */
static bool
is_same_message(const struct chipset_list *list, const struct chipset_entry *a, const struct chipset_entry *b)
{
	mr_auto(buf_done) struct buf left = BUF_INIT, right = BUF_INIT;

	return strcmp(a->id, b->id) == 0 && strcmp(a->name, b->name) == 0 && read_as_unread(list, a, &left) &&
	       read_as_unread(list, b, &right) && str_eq(buf_str(&left), buf_str(&right));
}

static void
drop_doubles(struct chipset_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n; i++)
		if (kept == 0 || !is_same_message(list, &list->v[kept - 1], &list->v[i]))
			list->v[kept++] = list->v[i];
	list->n = kept;
}

static int
by_id(const void *a, const void *b)
{
	const struct chipset_entry *left = a, *right = b;
	int order = strcmp(left->id, right->id);

	return order != 0 ? order : (int)left->folder - (int)right->folder;
}

/* ---- The whole ---- */

static enum mr_rc
open_folder(struct chipset *cs, const char *id, enum mr_folder folder, int *ret_fd, struct mr_error *err)
{
	enum mr_rc rc = chipset_box_open(cs, id, folder, ret_fd, err);

	return rc == MR_NOTFOUND ? MR_OK : rc;
}

static void
remember(struct chipset *cs, const char *id, const struct chipset_list *list)
{
	struct chipset_name parts;

	known_begin(&cs->known, id);
	for (size_t i = 0; i < list->n; i++)
		if (chipset_name_parse(str_of(list->v[i].name), &parts))
			known_add(&cs->known, list->v[i].id, list->v[i].folder, list->v[i].name);
}

enum mr_rc
chipset_list(struct chipset *cs, const char *id, unsigned folders, const char *only_id, struct chipset_list *ret,
    struct mr_error *err)
{
	static const enum mr_folder order[] = { MR_INBOX, MR_ARCHIVE };
	mr_auto(chipset_list_done) struct chipset_list list = CHIPSET_LIST_INIT;
	enum mr_rc rc = MR_OK;

	/* The inbox before the archive: what is moved in between is seen twice, not never. */
	for (size_t i = 0; i < 2 && rc == MR_OK; i++) {
		int *fd = order[i] == MR_ARCHIVE ? &list.archive_fd : &list.inbox_fd;

		if (!(folders & order[i]))
			continue;
		rc = open_folder(cs, id, order[i], fd, err);
		if (rc == MR_OK && *fd >= 0)
			rc = collect_folder(&list, order[i], only_id, err);
	}
	if (rc != MR_OK)
		return mr_wrap(err, "the mailbox of '%s'", id);
	for (size_t i = 0; i < list.n; i++)
		identify(&list, &list.v[i]);
	if (list.n > 1) {
		qsort(list.v, list.n, sizeof *list.v, by_id);
		drop_doubles(&list);
	}
	if (!only_id)
		remember(cs, id, &list);
	*ret = list;
	list = CHIPSET_LIST_INIT;
	return MR_OK;
}

/* ---- One message ---- */

static bool
is_file(int fd, const char *name)
{
	struct stat st;

	return fd >= 0 && sys_stat(fd, name, &st) == 0 && S_ISREG(st.st_mode);
}

/* Where the last look at all of them found it. False: it has to be searched for. */
static bool
find_known(struct chipset *cs, const char *box, const char *message_id, unsigned folders, struct chipset_list *ret)
{
	mr_auto(chipset_list_done) struct chipset_list list = CHIPSET_LIST_INIT;
	const struct known_file *file = known_find(&cs->known, box, message_id);
	struct mr_error ignored = { 0 };

	if (!file || !grow(&list))
		return false;
	if (((folders & MR_INBOX) && open_folder(cs, box, MR_INBOX, &list.inbox_fd, &ignored) != MR_OK) ||
	    ((folders & MR_ARCHIVE) && open_folder(cs, box, MR_ARCHIVE, &list.archive_fd, &ignored) != MR_OK))
		return false;
	list.v[0].folder = is_file(list.inbox_fd, file->name) ? MR_INBOX : MR_ARCHIVE;
	list.v[0].name = arena_dup(&list.own, str_of(file->name));
	if (!list.v[0].name || !is_file(chipset_list_fd(&list, list.v[0].folder), file->name))
		return false;
	memcpy(list.v[0].id, file->id, sizeof file->id);
	list.n = 1;
	*ret = list;
	list = CHIPSET_LIST_INIT;
	return true;
}

enum mr_rc
chipset_find(struct chipset *cs, const char *agent, const char *message_id, unsigned folders, struct chipset_list *list,
    const struct chipset_entry **ret_at, struct mr_error *err)
{
	char id[CHIPSET_ID_MAX + 1];
	enum mr_rc rc = chipset_id(agent, id, err);

	if (rc == MR_OK && !find_known(cs, id, message_id, folders, list))
		rc = chipset_list(cs, id, folders, message_id, list, err);
	if (rc != MR_OK)
		return rc;
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i].id, message_id) == 0) {
			*ret_at = &list->v[i];
			return MR_OK;
		}
	return mr_fail(err, MR_NOTFOUND, "no message '%s' for '%s'", message_id, agent);
}
