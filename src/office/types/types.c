/* SPDX-License-Identifier: MIT */
/*
 * types.c - the message types that a room knows, read when first needed and kept with the handle.
 *
 * Asking for a type by name reads one file. Finding the type of a message by its subject (types_of.c) reads the files
 * whose names begin like it. Only a list reads all of them.
 */
#include "office/types/types.h"

#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/sys.h"
#include "base/text.h"
#include <fcntl.h>

#define NEAR_MAX 4

const struct type_def *
types_find(const struct types_store *s, const char *name, bool any_case)
{
	for (size_t i = 0; i < s->n; i++)
		if (any_case ? ascii_caseeq(s->v[i]->name, name) : strcmp(s->v[i]->name, name) == 0)
			return s->v[i];
	return NULL;
}

void
types_reread(struct mr_room *room)
{
	struct types_store *s = room->office->types;

	for (size_t i = 0; i < s->n; i++) {
		type_done(s->v[i]);
		free(s->v[i]);
	}
	free(s->v);
	roll_done(&s->wrong);
	s->wrong = (struct roll){ 0 };
	s->v = NULL;
	s->n = s->cap = 0;
	s->own_read = s->all_read = false;
}

/* Parses it and stores it. ret may be NULL. */
static enum mr_rc
keep_type(struct types_store *s, struct mr_str text, const char *pack, const char *name, const struct type_def **ret,
    struct mr_error *err)
{
	struct type_def *def = calloc(1, sizeof(*def));
	bool room = array_grow(&s->v, s->n, &s->cap, sizeof(*s->v));
	enum mr_rc rc = room && def ? type_parse(text, pack, name, def, err) : mr_nomem(err);

	if (rc != MR_OK) {
		free(def);
		return rc;
	}
	s->v[s->n++] = def;
	if (ret)
		*ret = def;
	return MR_OK;
}

/* Stores what was read. A file with errors is noted; only lack of memory is an error. */
static enum mr_rc
keep_or_note(struct types_store *s, enum mr_rc read, const struct buf *text, const char *pack, const char *name,
    struct mr_error *trouble, struct mr_error *err)
{
	if (read == MR_OK && buf_ok(text))
		read = keep_type(s, buf_str(text), pack, name, NULL, trouble);
	if (read == MR_NOMEM || !buf_ok(text))
		return mr_nomem(err);
	if (read == MR_OK || read == MR_NOTFOUND)
		return MR_OK;
	mr_auto(buf_done) struct buf path = BUF_INIT;
	struct types_wrong *w = roll_add(&s->wrong, sizeof(*w));

	buf_addf(&path, "types/%s%s%s", pack, *pack ? "/" : "", name);
	if (w)
		*w = (struct types_wrong){ roll_str(&s->wrong, buf_z(&path)), *trouble };
	return mr_got(!s->wrong.failed && buf_ok(&path), err);
}

/* ---- Packs: folders of the data folder ---- */

/* The names in a folder, sorted. */
static enum mr_rc
names_in(int fd, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names all = { 0 };

	TRY(dir_names(fd, &all, err));
	for (size_t i = 0; i < all.n; i++)
		if (all.v[i][0] != '.' && !str_ends(str_of(all.v[i]), "~"))
			TRY(mr_got(names_add(ret, str_of(all.v[i])), err));
	names_sort(ret);
	return MR_OK;
}

/* The data folder is the first of its list that exists; none: there are no packs. The packs in effect are the words of
 * the setting, else all, the one with the name of this kind of room first. */
static enum mr_rc
know_packs(struct types_store *s, struct mr_room *room, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names all = { 0 };
	const char *setting = mr_room_setting(room, "Types");
	bool fine = true;

	if (s->packs_known)
		return MR_OK;
	struct mr_str rest = str_of(room->data_dir ? office_data_dirs(room) : ""), one;

	while (s->data_fd < 0 && str_cut(&rest, ':', &one)) {
		mr_auto(buf_done) struct buf path = BUF_INIT;

		buf_addf(&path, "%.*s/types", (int)one.len, one.ptr);
		TRY(mr_got(buf_ok(&path), err));
		if (one.len > 0)
			(void)dir_open(AT_FDCWD, buf_z(&path), &s->data_fd, IGNORED);
	}
	if (s->data_fd >= 0 && setting) {
		for (rest = str_of(setting); fine && str_word(&rest, " \t,", &one);)
			fine = memchr(one.ptr, '/', one.len) || *one.ptr == '.' || names_add(&s->packs, one);
	} else if (s->data_fd >= 0) {
		TRY(names_in(s->data_fd, &all, err));
		for (int turn = 0; turn < 2; turn++)
			for (size_t i = 0; i < all.n && fine; i++)
				if ((strcmp(all.v[i], room->driver->kind) == 0) == (turn == 0))
					fine = names_add(&s->packs, str_of(all.v[i]));
	}
	s->packs_known = fine;
	return mr_got(fine, err);
}

/* ---- One type by its name ---- */

/* The file of a type, the room's own first. *ret_pack is borrowed. */
static enum mr_rc
read_file(struct mr_room *room, const char *name, struct buf *ret, const char **ret_pack, struct mr_error *err)
{
	struct types_store *s = room->office->types;

	if (!*name || *name == '.' || strlen(name) > 80 || strchr(name, '/'))
		return mr_fail(err, MR_NOTFOUND, "'%.80s' cannot be the name of a type", name);
	*ret_pack = "";
	if (room->driver->record_get(room, "type", "", name, ret, IGNORED) == MR_OK)
		return MR_OK;
	TRY(know_packs(s, room, err));
	for (size_t i = 0; i < s->packs.n; i++) {
		mr_auto(sys_close_fd) int fd = -1;

		if (dir_open(s->data_fd, s->packs.v[i], &fd, IGNORED) != MR_OK)
			continue;
		*ret_pack = s->packs.v[i];
		enum mr_rc rc = file_read(fd, name, TYPE_FILE_MAX, ret, err);

		if (rc != MR_NOTFOUND)
			return rc;
	}
	return mr_fail(err, MR_NOTFOUND, "there is no type '%.80s'", name);
}

enum mr_rc
types_get_exact(struct mr_room *room, const char *name, const struct type_def **ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct types_store *s = room->office->types;
	const struct type_def *def = types_find(s, name, false);
	const char *pack = "";

	if (def) {
		*ret = def;
		return MR_OK;
	}
	if (s->all_read)
		return mr_fail(err, MR_NOTFOUND, "there is no type '%.80s'", name);
	TRY(read_file(room, name, &text, &pack, err));
	return keep_type(s, buf_str(&text), pack, name, ret, err);
}

enum mr_rc
types_get(struct mr_room *room, const char *name, const struct type_def **ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf near = BUF_INIT;
	const struct types_store *s = room->office->types;
	size_t n = 0;
	enum mr_rc rc = types_get_exact(room, name, ret, err);

	if (rc != MR_NOTFOUND)
		return rc;
	*err = (struct mr_error){ 0 };
	TRY(types_read_all(room, err));
	const struct type_def *def = types_find(s, name, true);

	if (def) {
		*ret = def;
		return MR_OK;
	}
	for (size_t i = 0; i < s->n && n < NEAR_MAX; i++)
		if (edit_distance(s->v[i]->name, name, 2) <= 2)
			format_addf(&near, "%s'%s'", n++ > 0 ? ", " : "", s->v[i]->name);
	(void)mr_fail(err, MR_NOTFOUND, "there is no type '%.80s'", name);
	if (n > 0)
		return mr_hint(err, "did you mean %s?", buf_z(&near));
	return mr_hint(err, "`mailroom types list` shows them, `mailroom types new %.60s` makes it", name);
}

/* ---- Several of them ---- */

/* Reads the types of one pack ("": the room's own) whose names begin with `head`. */
static enum mr_rc
read_pack(struct mr_room *room, const char *pack, struct mr_str head, struct mr_error *err)
{
	struct types_store *s = room->office->types;
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	if (!*pack && ROOM_HAS(room, record_each))
		TRY(office_records(room, "type", "", &names, err));
	/* The setting may name a missing pack: of an older or a smaller mailroom. */
	if (*pack && dir_open(s->data_fd, pack, &fd, IGNORED) == MR_OK)
		TRY(names_in(fd, &names, err));
	for (size_t i = 0; i < names.n; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		struct mr_error trouble = { 0 };
		const char *name = names.v[i];

		if (strncasecmp(name, head.ptr, head.len) != 0 || types_find(s, name, false))
			continue;
		enum mr_rc rc = *pack ? file_read(fd, name, TYPE_FILE_MAX, &text, &trouble)
				      : room->driver->record_get(room, "type", "", name, &text, &trouble);

		TRY(keep_or_note(s, rc, &text, pack, name, &trouble, err));
	}
	return MR_OK;
}

static enum mr_rc
read_packs(struct mr_room *room, struct mr_str head, struct mr_error *err)
{
	struct types_store *s = room->office->types;

	TRY(know_packs(s, room, err));
	for (size_t i = 0; i < s->packs.n; i++)
		TRY(read_pack(room, s->packs.v[i], head, err));
	return MR_OK;
}

enum mr_rc
types_read_called(struct mr_room *room, struct mr_str head, struct mr_error *err)
{
	struct types_store *s = room->office->types;

	if (!s->own_read)
		TRY(read_pack(room, "", STR(""), err));
	s->own_read = true;
	return s->all_read || head.len == 0 ? MR_OK : read_packs(room, head, err);
}

static int
by_pack_and_name(const void *va, const void *vb)
{
	const struct type_def *a = *(struct type_def *const *)va, *b = *(struct type_def *const *)vb;

	return strcmp(a->pack, b->pack) ?: strcmp(a->name, b->name);
}

enum mr_rc
types_read_all(struct mr_room *room, struct mr_error *err)
{
	struct types_store *s = room->office->types;

	TRY(types_read_called(room, STR(""), err)); /* the room's own */
	if (s->all_read)
		return MR_OK;
	TRY(read_packs(room, STR(""), err));
	if (s->n > 1)
		qsort(s->v, s->n, sizeof(*s->v), by_pack_and_name);
	s->all_read = true;
	return MR_OK;
}

/* ---- The public interface ---- */

enum mr_rc
mr_type_list(struct mr_room *room, struct mr_types *ret, mr_trouble_fn *trouble, void *ctx, struct mr_error *err)
{
	const struct types_store *s = room->office->types;
	mr_auto(roll_done) struct roll l = { 0 };

	TRY(types_read_all(room, err));
	const struct types_wrong *wrong = s->wrong.v;

	for (size_t i = 0; trouble && i < s->wrong.n; i++)
		trouble(ctx, wrong[i].path, &wrong[i].why);
	for (size_t i = 0; i < s->n; i++) {
		const struct type_def *def = s->v[i];
		struct mr_type *t = roll_add(&l, sizeof(*t));

		if (t)
			*t = (struct mr_type){
				.name = roll_str(&l, def->name),
				.pack = roll_str(&l, def->pack),
				.summary = roll_str(&l, def->summary),
				.subject = roll_str(&l, def->subject),
				.nudge = def->nudge,
				.routed = def->routed,
			};
	}
	TRY(mr_got(!l.failed, err));
	*ret = (struct mr_types){ .v = l.v, .n = l.n, .own = roll_take(&l) };
	return MR_OK;
}

enum mr_rc
mr_type_text(struct mr_room *room, const char *name, char **ret, size_t *ret_len, char **ret_pack, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	const struct type_def *def = NULL;
	const char *pack = "";
	enum mr_rc rc = read_file(room, name, &text, &pack, err);

	if (rc == MR_NOTFOUND) { /* try another spelling, or hint similar names */
		TRY(types_get(room, name, &def, err));
		rc = read_file(room, def->name, &text, &pack, err);
	}
	if (rc != MR_OK)
		return rc;
	size_t len = text.len;
	mr_auto(free_ptr) char *taken = buf_take(&text), *from = strdup(pack);

	TRY(mr_got(taken && from, err));
	*ret = taken;
	*ret_len = len;
	*ret_pack = from;
	taken = from = NULL;
	return MR_OK;
}

bool
types_handler_is_name(const char *handler)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	return handler[strspn(handler, letters)] == '\0';
}

enum mr_rc
mr_type_put(
    struct mr_room *room, const char *name, const char *text, size_t text_len, bool replace, struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };
	mr_auto(type_done) struct type_def def = { 0 };
	struct mr_str given = { text, text_len };

	if (!ROOM_HAS(room, record_put) || !office_has_lives(room))
		return room_lacks(room, "types of its own", err);
	TRY(type_parse(given, "", name, &def, err));
	if (!types_handler_is_name(def.handler))
		return mr_fail(err, MR_REFUSED,
		    "'Handler: %.60s' is a command, and a room holds no commands\n"
		    "name it in the type (Handler: my-handler), then type in a terminal: mailroom config set "
		    "Handler-my-handler COMMAND",
		    def.handler);
	TRY(record_edit_begin(&e, room, "type", "", name, err));
	if (e.exists && !replace)
		return mr_fail(err, MR_EXISTS,
		    "this room already has a type '%s'\nchange its file, types/%s of the room, or replace it with --force",
		    name, name);
	buf_clear(&e.text);
	buf_add(&e.text, given);
	TRY(record_edit_save(&e, err));
	types_reread(room);
	return MR_OK;
}
