/* SPDX-License-Identifier: MIT */
/*
 * types.c - the message types that a room knows, read when first needed and kept with the handle.
 *
 * A type that is asked for by name costs the reading of one file; all of them are read only for whoever lists them, or
 * to tell the type of a message by its subject (types_of.c).
 */
#include "office/types_store.h"

#include "base/error.h"
#include "base/file.h"
#include "base/sys.h"
#include "base/text.h"
#include "office/office.h"
#include <fcntl.h>

#define NEAR_MAX 4
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

static const struct type_def *
find_known(const struct types_store *s, const char *name, bool any_case)
{
	for (size_t i = 0; i < s->n; i++)
		if (any_case ? ascii_caseeq(s->v[i]->name, name) : strcmp(s->v[i]->name, name) == 0)
			return s->v[i];
	return NULL;
}

static enum mr_rc
keep(struct types_store *s, struct mr_str text, const char *pack, const char *name, const struct type_def **ret,
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

static enum mr_rc
note_wrong(struct types_store *s, const char *pack, const char *name, const struct mr_error *why, struct mr_error *err)
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

static enum mr_rc
names_in(int fd, struct mr_names *ret, struct mr_error *err)
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
	enum mr_rc rc = names_in(s->data_fd, &all, err);

	for (size_t i = 0; i < all.n && fine; i++)
		if (strcmp(all.v[i], room->driver->kind) == 0)
			fine = names_add(&s->packs, str_of(all.v[i]));
	for (size_t i = 0; i < all.n && fine; i++)
		if (strcmp(all.v[i], room->driver->kind) != 0)
			fine = names_add(&s->packs, str_of(all.v[i]));
	mr_names_done(&all);
	return rc == MR_OK && !fine ? mr_nomem(err) : rc;
}

static enum mr_rc
know_packs(struct types_store *s, struct mr_room *room, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	if (s->packs_known)
		return MR_OK;
	if (room->data_dir)
		rc = open_data(s, room->data_dir, err);
	if (rc == MR_OK && s->data_fd >= 0)
		rc = choose_packs(s, room, err);
	s->packs_known = rc == MR_OK;
	return rc;
}

/* ---- One type by its name ---- */

static bool
is_file_name(const char *name)
{
	return *name && *name != '.' && strlen(name) <= 80 && !strchr(name, '/');
}

enum mr_rc
types_file(struct mr_room *room, const char *name, struct buf *ret, const char **ret_pack, struct mr_error *err)
{
	struct types_store *s = types_store(room, err);
	struct mr_error ignored = { 0 };
	enum mr_rc rc = MR_NOTFOUND;

	if (!s)
		return err->code;
	if (!is_file_name(name))
		return mr_fail(err, MR_NOTFOUND, "'%.80s' cannot be the name of a type", name);
	*ret_pack = "";
	if (room->driver->record_get)
		rc = room->driver->record_get(room, "type", "", name, ret, &ignored);
	if (rc == MR_OK)
		return MR_OK;
	rc = know_packs(s, room, err);
	for (size_t i = 0; rc == MR_OK && i < s->packs.n; i++) {
		mr_auto(sys_close_fd) int fd = -1;

		if (dir_open(s->data_fd, s->packs.v[i], &fd, &ignored) != MR_OK)
			continue;
		rc = file_read(fd, name, TYPE_FILE_MAX, ret, err);
		*ret_pack = s->packs.v[i];
		if (rc != MR_NOTFOUND)
			return rc;
		rc = MR_OK;
	}
	return rc == MR_OK ? mr_fail(err, MR_NOTFOUND, "there is no type '%.80s'", name) : rc;
}

static enum mr_rc
say_unknown(const struct types_store *s, const char *name, struct mr_error *err)
{
	mr_auto(buf_done) struct buf near = BUF_INIT;
	size_t n = 0;

	for (size_t i = 0; i < s->n && n < NEAR_MAX; i++)
		if (edit_distance(s->v[i]->name, name, 2) <= 2)
			buf_addf(&near, "%s'%s'", n++ > 0 ? ", " : "", s->v[i]->name);
	(void)mr_fail(err, MR_NOTFOUND, "there is no type '%.80s'", name);
	if (n > 0)
		return mr_hint(err, "did you mean %s?", buf_z(&near));
	return mr_hint(err, "`mailroom types list` shows them, `mailroom types new %.60s` makes it", name);
}

enum mr_rc
types_get_exact(struct mr_room *room, const char *name, const struct type_def **ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct types_store *s = types_store(room, err);
	const struct type_def *def = s ? find_known(s, name, false) : NULL;
	const char *pack = "";
	enum mr_rc rc = s ? MR_OK : err->code;

	if (def)
		*ret = def;
	else if (rc == MR_OK && s->all_read)
		rc = mr_fail(err, MR_NOTFOUND, "there is no type '%.80s'", name);
	if (rc != MR_OK || def)
		return rc;
	rc = types_file(room, name, &text, &pack, err);
	return rc == MR_OK ? keep(s, buf_str(&text), pack, name, ret, err) : rc;
}

enum mr_rc
types_get(struct mr_room *room, const char *name, const struct type_def **ret, struct mr_error *err)
{
	const struct type_def *def = NULL;
	enum mr_rc rc = types_get_exact(room, name, ret, err);

	if (rc != MR_NOTFOUND)
		return rc;
	*err = (struct mr_error){ 0 };
	rc = types_read_all(room, err);
	if (rc != MR_OK)
		return rc;
	def = find_known(room->types, name, true);
	if (!def)
		return say_unknown(room->types, name, err);
	*ret = def;
	return MR_OK;
}

/* ---- All of them ---- */

struct own_names {
	struct mr_names names;
	bool failed;
};

static bool
note_own(void *ctx, const char *name)
{
	struct own_names *o = ctx;

	o->failed |= !names_add(&o->names, str_of(name));
	return !o->failed;
}

/* A file that is wrong is noted; only memory ends it. */
static enum mr_rc
keep_or_note(struct types_store *s, enum mr_rc read, const struct buf *text, const char *pack, const char *name,
    struct mr_error *trouble, struct mr_error *err)
{
	if (read == MR_OK && buf_ok(text))
		read = keep(s, buf_str(text), pack, name, NULL, trouble);
	if (read == MR_NOMEM || !buf_ok(text))
		return mr_nomem(err);
	return read == MR_OK || read == MR_NOTFOUND ? MR_OK : note_wrong(s, pack, name, trouble, err);
}

enum mr_rc
types_read_own(struct mr_room *room, struct mr_error *err)
{
	struct types_store *s = types_store(room, err);
	struct own_names own = { 0 };
	enum mr_rc rc = s ? MR_OK : err->code;

	if (rc != MR_OK || s->own_read)
		return rc;
	if (room->driver->record_each && room->driver->record_get)
		rc = room->driver->record_each(room, "type", "", note_own, &own, err);
	if (rc == MR_OK && own.failed)
		rc = mr_nomem(err);
	for (size_t i = 0; rc == MR_OK && i < own.names.n; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		struct mr_error trouble = { 0 };
		const char *name = own.names.v[i];

		if (!find_known(s, name, false))
			rc = keep_or_note(s, room->driver->record_get(room, "type", "", name, &text, &trouble), &text,
			    "", name, &trouble, err);
	}
	mr_names_done(&own.names);
	s->own_read = rc == MR_OK;
	return rc;
}

static enum mr_rc
read_pack(struct types_store *s, const char *pack, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_names names = { 0 };
	struct mr_error trouble = { 0 };
	enum mr_rc rc = dir_open(s->data_fd, pack, &fd, &trouble);

	if (rc != MR_OK) /* the setting names what is not there: an older or a smaller mailroom */
		return MR_OK;
	rc = names_in(fd, &names, err);
	for (size_t i = 0; rc == MR_OK && i < names.n; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;

		trouble = (struct mr_error){ 0 };
		if (!find_known(s, names.v[i], false))
			rc = keep_or_note(s, file_read(fd, names.v[i], TYPE_FILE_MAX, &text, &trouble), &text, pack,
			    names.v[i], &trouble, err);
	}
	mr_names_done(&names);
	return rc;
}

static int
by_pack_and_name(const void *va, const void *vb)
{
	const struct type_def *a = *(struct type_def *const *)va, *b = *(struct type_def *const *)vb;
	int pack = strcmp(a->pack, b->pack);

	return pack ? pack : strcmp(a->name, b->name);
}

enum mr_rc
types_read_all(struct mr_room *room, struct mr_error *err)
{
	struct types_store *s = types_store(room, err);
	enum mr_rc rc = s ? types_read_own(room, err) : err->code;

	if (rc != MR_OK || s->all_read)
		return rc;
	rc = know_packs(s, room, err);
	for (size_t i = 0; rc == MR_OK && i < s->packs.n; i++)
		rc = read_pack(s, s->packs.v[i], err);
	if (rc == MR_OK && s->n > 1)
		qsort(s->v, s->n, sizeof(*s->v), by_pack_and_name);
	s->all_read = rc == MR_OK;
	return rc;
}

enum mr_rc
types_each(struct mr_room *room, types_fn *fn, mr_trouble_fn *trouble, void *ctx, struct mr_error *err)
{
	enum mr_rc rc = types_read_all(room, err);
	const struct types_store *s = room->types;

	if (rc != MR_OK)
		return rc;
	for (size_t i = 0; trouble && i < s->wrong_n; i++)
		trouble(ctx, s->wrong[i].path, &s->wrong[i].why);
	for (size_t i = 0; i < s->n && fn(ctx, s->v[i]); i++)
		;
	return MR_OK;
}
