/* SPDX-License-Identifier: MIT */
/*
 * settings.c - the records behind queues and channels: a few header lines under a name. Every change is made
 * under the record's lock, from what stands there at that moment, so that of any number of changes at once
 * none is lost; a line that we do not know is kept.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "office/address/address.h"
#include "office/office.h"

#define NEAR_MAX 4

/* ---- Names ---- */

enum mr_rc
settings_name(const char *kind, const char *given, char *ret, struct mr_error *err)
{
	size_t prefix = strlen(kind);
	const char *name = str_starts(str_of(given), kind) && given[prefix] == ':' ? given + prefix + 1 : given;
	enum mr_rc rc = target_name_check(kind, name, err);

	if (rc == MR_OK)
		(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", name);
	return rc;
}

struct nearness {
	const char *wanted;
	struct buf *list;
	size_t n;
};

static bool
note_if_near(void *ctx, const char *name)
{
	struct nearness *near = ctx;

	if (edit_distance(near->wanted, name, 2) <= 2)
		format_addf(near->list, "%s'%s'", near->n++ > 0 ? ", " : "", name);
	return near->n < NEAR_MAX;
}

static enum mr_rc
say_unknown(struct mr_room *room, const char *kind, const char *name, struct mr_error *err)
{
	mr_auto(buf_done) struct buf list = BUF_INIT;
	struct nearness near = { .wanted = name, .list = &list };
	struct mr_error ignored = { 0 };

	(void)room->driver->record_each(room, kind, "", note_if_near, &near, &ignored);
	(void)mr_fail(err, MR_NOTFOUND, "no %s '%s' in room '%s'", kind, name, room->name);
	if (near.n > 0)
		return mr_hint(err, "did you mean %s?", buf_z(&list));
	return mr_hint(err, "`mailroom %s list` shows them, `mailroom %s create %s` makes it", kind, kind, name);
}

/* ---- Reading ---- */

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
check_not_empty(const struct record *lines, struct mr_error *err)
{
	if (lines->n > 0)
		return MR_OK;
	return mr_fail(err, MR_CORRUPT,
	    "there is no line in it\nwrite its lines again, or remove that file and create it anew: what is in it stays");
}

enum mr_rc
settings_load(struct mr_room *room, const char *kind, const char *name, struct record *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	enum mr_rc rc = check_records(room, kind, err);

	if (rc == MR_OK)
		rc = room->driver->record_get(room, kind, "", name, &text, err);
	if (rc == MR_NOTFOUND)
		return say_unknown(room, kind, name, err);
	if (rc != MR_OK)
		return rc;
	rc = record_parse(buf_str(&text), ret, err);
	if (rc == MR_OK)
		rc = check_not_empty(ret, err);
	return rc == MR_OK ? MR_OK : mr_wrap(err, "settings of %s '%s'", kind, name);
}

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

enum mr_rc
settings_names(struct mr_room *room, const char *kind, struct mr_names *ret, struct mr_error *err)
{
	TRY(check_records(room, kind, err));
	return office_records(room, kind, "", ret, err);
}

/* ---- Writing ---- */

static enum mr_rc
write_new(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	const struct buf *lines = ctx;

	if (exists)
		return mr_fail(err, MR_EXISTS, "that name is taken");
	buf_add(text, buf_str(lines));
	return buf_ok(text) ? MR_OK : mr_nomem(err);
}

enum mr_rc
settings_create(
    struct mr_room *room, const char *kind, const char *name, const char *by, struct buf *lines, struct mr_error *err)
{
	char now[RFC3339_LEN + 1];
	enum mr_rc rc = check_records(room, kind, err);

	time_rfc3339(clock_now_ms(), now);
	if (rc == MR_OK)
		rc = header_add(lines, "Created", str_of(now), err);
	if (rc == MR_OK)
		rc = header_add(lines, "Created-By", str_of(by), err);
	if (rc != MR_OK)
		return rc;
	if (!buf_ok(lines))
		return mr_nomem(err);
	rc = room_record_change(room, kind, "", name, write_new, lines, err);
	if (rc != MR_EXISTS)
		return rc;
	return mr_fail(err, MR_EXISTS, "there is a %s '%s' already\n`mailroom %s show %s` tells what it is", kind, name,
	    kind, name);
}

/* Is this line one that the edit takes away? */
static bool
goes(const struct settings_edit *edit, const struct mr_header *line)
{
	if (!ascii_caseeq(line->name, edit->field))
		return false;
	return edit->how == SETTINGS_SET || (edit->how == SETTINGS_REMOVE && strcmp(line->value, edit->value) == 0);
}

static bool
has_line(const struct record *lines, const struct settings_edit *edit)
{
	for (size_t i = 0; i < lines->n; i++)
		if (ascii_caseeq(lines->lines[i].name, edit->field) && strcmp(lines->lines[i].value, edit->value) == 0)
			return true;
	return false;
}

/* MR_EMPTY: it is so already, nothing is written. */
static enum mr_rc
edit_lines(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	const struct settings_edit *edit = ctx;
	mr_auto(record_done) struct record lines = { 0 };
	mr_auto(buf_done) struct buf out = BUF_INIT;
	enum mr_rc rc;

	if (!exists)
		return mr_fail(err, MR_NOTFOUND, "no such name");
	rc = record_parse(buf_str(text), &lines, err);
	if (rc == MR_OK)
		rc = check_not_empty(&lines, err);
	if (rc != MR_OK)
		return rc;
	if (has_line(&lines, edit) == (edit->how != SETTINGS_REMOVE))
		return mr_fail(err, MR_EMPTY, "nothing to change");
	for (size_t i = 0; i < lines.n && rc == MR_OK; i++)
		if (!goes(edit, &lines.lines[i]))
			rc = header_add(&out, lines.lines[i].name, str_of(lines.lines[i].value), err);
	if (rc == MR_OK && edit->how != SETTINGS_REMOVE)
		rc = header_add(&out, edit->field, str_of(edit->value), err);
	if (rc != MR_OK)
		return rc;
	buf_clear(text);
	buf_add(text, buf_str(&out));
	return buf_ok(&out) && buf_ok(text) ? MR_OK : mr_nomem(err);
}

enum mr_rc
settings_change(struct mr_room *room, const char *kind, const char *name, struct settings_edit edit, bool *ret_changed,
    struct mr_error *err)
{
	enum mr_rc rc = check_records(room, kind, err);

	if (rc != MR_OK)
		return rc;
	rc = room_record_change(room, kind, "", name, edit_lines, &edit, err);
	if (rc == MR_NOTFOUND)
		return say_unknown(room, kind, name, err);
	if (rc != MR_OK && rc != MR_EMPTY)
		return mr_wrap(err, "settings of %s '%s'", kind, name);
	if (ret_changed)
		*ret_changed = rc == MR_OK;
	*err = (struct mr_error){ 0 };
	return MR_OK;
}
