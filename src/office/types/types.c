/* SPDX-License-Identifier: MIT */
/*
 * types.c - the message types that a room knows, read when first needed and kept with the handle.
 *
 * A type that is asked for by name costs the reading of one file, the type of a message that only its subject tells
 * (types_of.c) the reading of those that are called alike; all of them are read for whoever lists them.
 */
#include "office/types/types_store.h"

#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/sys.h"
#include "base/text.h"
#include "office/office.h"

#define NEAR_MAX 4

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
	if (ROOM_HAS(room, record_get))
		rc = room->driver->record_get(room, "type", "", name, ret, &ignored);
	if (rc == MR_OK)
		return MR_OK;
	rc = types_know_packs(s, room, err);
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
			format_addf(&near, "%s'%s'", n++ > 0 ? ", " : "", s->v[i]->name);
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
	const struct type_def *def = s ? types_find(s, name, false) : NULL;
	const char *pack = "";
	enum mr_rc rc = s ? MR_OK : err->code;

	if (def)
		*ret = def;
	else if (rc == MR_OK && s->all_read)
		rc = mr_fail(err, MR_NOTFOUND, "there is no type '%.80s'", name);
	if (rc != MR_OK || def)
		return rc;
	rc = types_file(room, name, &text, &pack, err);
	return rc == MR_OK ? types_keep(s, buf_str(&text), pack, name, ret, err) : rc;
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
	def = types_find(room->types, name, true);
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
		read = types_keep(s, buf_str(text), pack, name, NULL, trouble);
	if (read == MR_NOMEM || !buf_ok(text))
		return mr_nomem(err);
	return read == MR_OK || read == MR_NOTFOUND ? MR_OK : types_note_wrong(s, pack, name, trouble, err);
}

enum mr_rc
types_read_own(struct mr_room *room, struct mr_error *err)
{
	struct types_store *s = types_store(room, err);
	struct own_names own = { 0 };
	enum mr_rc rc = s ? MR_OK : err->code;

	if (rc != MR_OK || s->own_read)
		return rc;
	if (ROOM_HAS(room, record_each) && ROOM_HAS(room, record_get))
		rc = room->driver->record_each(room, "type", "", note_own, &own, err);
	if (rc == MR_OK && own.failed)
		rc = mr_nomem(err);
	for (size_t i = 0; rc == MR_OK && i < own.names.n; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		struct mr_error trouble = { 0 };
		const char *name = own.names.v[i];

		if (!types_find(s, name, false))
			rc = keep_or_note(s, room->driver->record_get(room, "type", "", name, &text, &trouble), &text,
			    "", name, &trouble, err);
	}
	mr_names_done(&own.names);
	s->own_read = rc == MR_OK;
	return rc;
}

static bool
begins_with(const char *name, struct mr_str head)
{
	return strlen(name) >= head.len && str_caseeq((struct mr_str){ name, head.len }, head);
}

/* Those whose names begin with `head`, in any case; "": all. */
static enum mr_rc
read_pack(struct types_store *s, const char *pack, struct mr_str head, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_names names = { 0 };
	struct mr_error trouble = { 0 };
	enum mr_rc rc = dir_open(s->data_fd, pack, &fd, &trouble);

	if (rc != MR_OK) /* the setting names what is not there: an older or a smaller mailroom */
		return MR_OK;
	rc = types_names_in(fd, &names, err);
	for (size_t i = 0; rc == MR_OK && i < names.n; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;

		trouble = (struct mr_error){ 0 };
		if (begins_with(names.v[i], head) && !types_find(s, names.v[i], false))
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
	rc = types_know_packs(s, room, err);
	for (size_t i = 0; rc == MR_OK && i < s->packs.n; i++)
		rc = read_pack(s, s->packs.v[i], STR(""), err);
	if (rc == MR_OK && s->n > 1)
		qsort(s->v, s->n, sizeof(*s->v), by_pack_and_name);
	s->all_read = rc == MR_OK;
	return rc;
}

enum mr_rc
types_read_called(struct mr_room *room, struct mr_str head, struct mr_error *err)
{
	struct types_store *s = types_store(room, err);
	enum mr_rc rc = s ? types_read_own(room, err) : err->code;

	if (rc != MR_OK || s->all_read || head.len == 0)
		return rc;
	rc = types_know_packs(s, room, err);
	for (size_t i = 0; rc == MR_OK && i < s->packs.n; i++)
		rc = read_pack(s, s->packs.v[i], head, err);
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
