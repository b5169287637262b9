/* SPDX-License-Identifier: MIT */
/* types_store.c - what a handle has read of message types, and the packs in the data folder. */
#include "office/types/types_store.h"

#include "base/error.h"
#include "base/file.h"
#include "base/sys.h"
#include "office/office.h"
#include <fcntl.h>

#define PATHS_BETWEEN ":"

/* ---- The store ---- */

struct types_store *
types_store(struct mr_room *room, struct mr_error *err)
{
	struct types_store *s = room->types;

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s) {
		(void)mr_nomem(err);
		return NULL;
	}
	s->data_fd = -1;
	s->below = room->driver;
	room->types = s;
	room->forget_types = types_forget;
	return s;
}

static void
drop_known(struct types_store *s)
{
	for (size_t i = 0; i < s->n; i++) {
		type_done(s->v[i]);
		free(s->v[i]);
	}
	for (size_t i = 0; i < s->wrong_n; i++)
		free(s->wrong[i].path);
	free(s->v);
	free(s->wrong);
	s->v = NULL;
	s->wrong = NULL;
	s->n = s->cap = s->wrong_n = 0;
	s->own_read = s->all_read = false;
}

void
types_forget(struct mr_room *room)
{
	struct types_store *s = room->types;

	if (!s)
		return;
	if (room->driver == &s->table)
		room->driver = s->below;
	drop_known(s);
	mr_names_done(&s->packs);
	sys_close_fd(&s->data_fd);
	free(s);
	room->types = NULL;
	room->forget_types = NULL;
}

void
types_reread(struct mr_room *room)
{
	if (room->types)
		drop_known(room->types);
}

const struct type_def *
types_find(const struct types_store *s, const char *name, bool any_case)
{
	for (size_t i = 0; i < s->n; i++)
		if (any_case ? ascii_caseeq(s->v[i]->name, name) : strcmp(s->v[i]->name, name) == 0)
			return s->v[i];
	return NULL;
}

enum mr_rc
types_keep(struct types_store *s, struct mr_str text, const char *pack, const char *name, const struct type_def **ret,
    struct mr_error *err)
{
	struct type_def *def = calloc(1, sizeof(*def));
	enum mr_rc rc = def ? type_parse(text, pack, name, def, err) : mr_nomem(err);

	if (rc == MR_OK && s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 64;
		struct type_def **v = reallocarray(s->v, cap, sizeof(*v));

		if (v) {
			s->v = v;
			s->cap = cap;
		} else {
			type_done(def);
			rc = mr_nomem(err);
		}
	}
	if (rc != MR_OK) {
		free(def);
		return rc;
	}
	s->v[s->n++] = def;
	if (ret)
		*ret = def;
	return MR_OK;
}

enum mr_rc
types_note_wrong(
    struct types_store *s, const char *pack, const char *name, const struct mr_error *why, struct mr_error *err)
{
	struct types_wrong *v = reallocarray(s->wrong, s->wrong_n + 1, sizeof(*v));
	struct buf path = BUF_INIT;

	buf_addf(&path, "types/%s%s%s", pack, *pack ? "/" : "", name);
	char *taken = buf_take(&path);

	if (v)
		s->wrong = v;
	if (!v || !taken) {
		free(taken);
		return mr_nomem(err);
	}
	v[s->wrong_n++] = (struct types_wrong){ taken, *why };
	return MR_OK;
}

/* ---- Packs: folders of the data folder ---- */

struct folder_names {
	struct mr_names names;
	bool failed;
};

static bool
note_name(void *ctx, const struct dir_entry *entry)
{
	struct folder_names *f = ctx;

	if (entry->name[0] != '.' && entry->name[strlen(entry->name) - 1] != '~')
		f->failed |= !names_add(&f->names, str_of(entry->name));
	return !f->failed;
}

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

enum mr_rc
types_names_in(int fd, struct mr_names *ret, struct mr_error *err)
{
	struct folder_names f = { 0 };
	enum mr_rc rc = dir_each(fd, note_name, &f, err);

	if (rc == MR_OK && f.failed)
		rc = mr_nomem(err);
	if (rc != MR_OK) {
		mr_names_done(&f.names);
		return rc;
	}
	if (f.names.n > 0)
		qsort(f.names.v, f.names.n, sizeof(*f.names.v), by_bytes);
	*ret = f.names;
	return MR_OK;
}

/* The first folder of the list that is there. None: there are no packs. */
static enum mr_rc
open_data(struct types_store *s, const char *list, struct mr_error *err)
{
	for (size_t len; *list; list += len + (list[len] != '\0')) {
		mr_auto(buf_done) struct buf path = BUF_INIT;
		struct mr_error ignored = { 0 };

		len = strcspn(list, PATHS_BETWEEN);
		buf_add(&path, (struct mr_str){ list, len });
		buf_adds(&path, "/types");
		if (!buf_ok(&path))
			return mr_nomem(err);
		if (len > 0 && dir_open(AT_FDCWD, buf_z(&path), &s->data_fd, &ignored) == MR_OK)
			return MR_OK;
	}
	return MR_OK;
}

/* The words of the setting, else all packs: the one that is called like this kind of room first. */
static enum mr_rc
choose_packs(struct types_store *s, struct mr_room *room, struct mr_error *err)
{
	const char *at = mr_room_setting(room, "Types");
	struct mr_names all = { 0 };
	bool fine = true;

	if (at) {
		for (at += strspn(at, " \t,"); *at && fine; at += strspn(at, " \t,")) {
			size_t len = strcspn(at, " \t,");

			fine = memchr(at, '/', len) || *at == '.' || names_add(&s->packs, (struct mr_str){ at, len });
			at += len;
		}
		return fine ? MR_OK : mr_nomem(err);
	}
	enum mr_rc rc = types_names_in(s->data_fd, &all, err);

	for (size_t i = 0; i < all.n && fine; i++)
		if (strcmp(all.v[i], room->driver->kind) == 0)
			fine = names_add(&s->packs, str_of(all.v[i]));
	for (size_t i = 0; i < all.n && fine; i++)
		if (strcmp(all.v[i], room->driver->kind) != 0)
			fine = names_add(&s->packs, str_of(all.v[i]));
	mr_names_done(&all);
	return rc == MR_OK && !fine ? mr_nomem(err) : rc;
}

enum mr_rc
types_know_packs(struct types_store *s, struct mr_room *room, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	if (s->packs_known)
		return MR_OK;
	if (room->data_dir)
		rc = open_data(s, office_data_dirs(room), err);
	if (rc == MR_OK && s->data_fd >= 0)
		rc = choose_packs(s, room, err);
	s->packs_known = rc == MR_OK;
	return rc;
}
