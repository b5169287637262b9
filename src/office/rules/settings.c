/* SPDX-License-Identifier: MIT */
/*
 * settings.c - records of the room, and among them those behind queues, channels and links: a few header lines under a
 * name. Every change is made under the record's lock, from what stands there at that moment, so that of any number of
 * changes at once none is lost; a line that we do not know is kept.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "base/id.h"
#include "base/text.h"
#include "office/address/address.h"
#include "office/office.h"

#define NEAR_MAX 4
#define HISTORY_MS ((int64_t)366 * 24 * 3600 * 1000)

static bool
note_name(void *ctx, const char *name)
{
	return names_add(ctx, str_of(name));
}

enum mr_rc
office_records(struct mr_room *room, const char *kind, const char *owner, struct mr_names *ret, struct mr_error *err)
{
	return room->driver->record_each(room, kind, owner, note_name, ret, err);
}

enum mr_rc
office_record(struct mr_room *room, const char *kind, const char *owner, const char *name, struct record *ret,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	TRY(room->driver->record_get(room, kind, owner, name, &text, err));
	return record_parse(buf_str(&text), ret, err);
}

void
office_records_age(struct mr_room *room, const char *kind)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	char oldest[MR_ID_LEN + 1];
	unsigned char dice;

	random_bytes(&dice, sizeof dice);
	if (dice % 16 != 0)
		return;
	id_from_name(clock_now_ms() - HISTORY_MS, STR(""), oldest);
	(void)office_records(room, kind, "", &names, IGNORED);
	for (size_t i = 0; i < names.n; i++)
		if (strncmp(names.v[i], oldest, strlen(names.v[i])) < 0)
			(void)room->driver->record_drop(room, kind, "", names.v[i], IGNORED);
}

/* ---- Reading settings ---- */

enum mr_rc
settings_name(const char *kind, const char *given, char *ret, struct mr_error *err)
{
	size_t prefix = strlen(kind);
	const char *name = str_starts(str_of(given), kind) && given[prefix] == ':' ? given + prefix + 1 : given;

	TRY(target_name_check(kind, name, err));
	(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", name);
	return MR_OK;
}

static enum mr_rc
say_unknown(struct mr_room *room, const char *kind, const char *name, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names all = { 0 };
	mr_auto(buf_done) struct buf near = BUF_INIT;
	size_t n = 0;

	(void)office_records(room, kind, "", &all, IGNORED);
	for (size_t i = 0; i < all.n && n < NEAR_MAX; i++)
		if (edit_distance(name, all.v[i], 2) <= 2)
			format_addf(&near, "%s'%s'", n++ > 0 ? ", " : "", all.v[i]);
	(void)mr_fail(err, MR_NOTFOUND, "no %s '%s' in room '%s'", kind, name, room->name);
	if (n > 0)
		return mr_hint(err, "did you mean %s?", buf_z(&near));
	return mr_hint(err, "`mailroom %s list` shows them, `mailroom %s create %s` makes it", kind, kind, name);
}

static enum mr_rc
check_records(const struct mr_room *room, const char *kind, struct mr_error *err)
{
	if (ROOM_HAS(room, record_put))
		return MR_OK;
	return office_lacks(room, strcmp(kind, "queue") == 0 ? "work queues" : "channels", err);
}

/* We never write an empty one: a power cut on storage that is not safe leaves it, or an editor. Defaults would hide
 * that a limit, or a queue that was closed, is forgotten. */
static enum mr_rc
parse(struct mr_str text, struct record *ret, struct mr_error *err)
{
	TRY(record_parse(text, ret, err));
	if (ret->n > 0)
		return MR_OK;
	return mr_fail(err, MR_CORRUPT,
	    "there is no line in it\nwrite its lines again, or remove that file and create it anew: what is in it stays");
}

enum mr_rc
settings_load(struct mr_room *room, const char *kind, const char *name, struct record *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	TRY(check_records(room, kind, err));
	enum mr_rc rc = room->driver->record_get(room, kind, "", name, &text, err);

	if (rc == MR_NOTFOUND)
		return say_unknown(room, kind, name, err);
	if (rc != MR_OK)
		return rc;
	return parse(buf_str(&text), ret, err) == MR_OK ? MR_OK : mr_wrap(err, "settings of %s '%s'", kind, name);
}

enum mr_rc
settings_names(struct mr_room *room, const char *kind, struct mr_names *ret, struct mr_error *err)
{
	TRY(check_records(room, kind, err));
	return office_records(room, kind, "", ret, err);
}

/* ---- Writing ---- */

enum mr_rc
settings_create(
    struct mr_room *room, const char *kind, const char *name, const char *by, struct buf *lines, struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };
	char now[RFC3339_LEN + 1];

	TRY(check_records(room, kind, err));
	time_rfc3339(clock_now_ms(), now);
	TRY(header_add(lines, "Created", str_of(now), err));
	TRY(header_add(lines, "Created-By", str_of(by), err));
	TRY(mr_got(buf_ok(lines), err));
	TRY(record_edit_begin(&e, room, kind, "", name, err));
	if (e.exists)
		return mr_fail(err, MR_EXISTS, "there is a %s '%s' already\n`mailroom %s show %s` tells what it is",
		    kind, name, kind, name);
	buf_add(&e.text, buf_str(lines));
	return record_edit_save(&e, err);
}

/* The lines after the edit. */
static enum mr_rc
edit_lines(const struct record *lines, const struct settings_edit *edit, struct buf *text, struct mr_error *err)
{
	buf_clear(text);
	for (size_t i = 0; i < lines->n; i++) {
		const struct mr_header *line = &lines->lines[i];
		bool goes = edit->how == SETTINGS_SET ||
			    (edit->how == SETTINGS_REMOVE && strcmp(line->value, edit->value) == 0);

		if (!goes || !ascii_caseeq(line->name, edit->field))
			TRY(header_add(text, line->name, str_of(line->value), err));
	}
	return edit->how == SETTINGS_REMOVE ? MR_OK : header_add(text, edit->field, str_of(edit->value), err);
}

enum mr_rc
settings_change(struct mr_room *room, const char *kind, const char *name, struct settings_edit edit, bool *ret_changed,
    struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };
	mr_auto(record_done) struct record lines = { 0 };
	bool changes = false;

	TRY(check_records(room, kind, err));
	enum mr_rc rc = record_edit_begin(&e, room, kind, "", name, err);

	if (rc == MR_OK && !e.exists)
		return say_unknown(room, kind, name, err);
	if (rc == MR_OK)
		rc = parse(buf_str(&e.text), &lines, err);
	if (rc == MR_OK)
		changes = record_has(&lines, edit.field, edit.value) != (edit.how != SETTINGS_REMOVE);
	if (rc == MR_OK && changes)
		rc = edit_lines(&lines, &edit, &e.text, err);
	if (rc == MR_OK && changes)
		rc = record_edit_save(&e, err);
	if (rc != MR_OK)
		return mr_wrap(err, "settings of %s '%s'", kind, name);
	if (ret_changed)
		*ret_changed = changes;
	return MR_OK;
}
