/* SPDX-License-Identifier: MIT */
/* type_json.c - fields as members of a JSON object: finding them, and writing them in the order of the type. */
#include "base/error.h"
#include "message/type_own.h"

bool
type_json_at(struct json_value object, const char *path, struct json_value *ret)
{
	char part[128];

	for (;;) {
		size_t n = strcspn(path, ".");

		if (n >= sizeof(part) || (n > 0 && path[n - 1] == ']'))
			return false;
		memcpy(part, path, n);
		part[n] = '\0';
		if (!json_find(object, part, ret))
			return false;
		if (!path[n])
			return true;
		object = *ret;
		path += n + 1;
	}
}

bool
type_is_member(const char *name, const char *prefix, const char **ret_last)
{
	size_t n = strlen(prefix);

	if (strncmp(name, prefix, n) != 0 || (n > 0 && name[n] != '.'))
		return false;
	*ret_last = n > 0 ? name + n + 1 : name;
	return !strchr(*ret_last, '.');
}

/* ---- Writing ---- */

struct writer {
	const struct type_def *def;
	const char *const *by_field;
	const struct mr_header *extra;
	size_t extra_n;
	struct buf *out;
};

static bool
whole(const char *text, struct json_value *ret)
{
	const char *problem;

	return text && json_whole(str_of(text), ret, &problem);
}

static void
write_list(struct buf *out, const char *text)
{
	const char *comma = "";

	buf_addc(out, '[');
	for (struct mr_str rest = str_of(text); rest.len > 0; comma = ",") {
		const char *end = memchr(rest.ptr, ',', rest.len);
		size_t len = end ? (size_t)(end - rest.ptr) : rest.len, taken = end ? len + 1 : len;

		buf_adds(out, comma);
		json_stringify(out, str_trim((struct mr_str){ rest.ptr, len }));
		rest.ptr += taken;
		rest.len -= taken;
	}
	buf_addc(out, ']');
}

/* What does not fit its kind becomes a string, and the check says so by the field's name. */
static void
write_text(struct buf *out, enum type_kind kind, const char *text)
{
	struct json_value value;
	bool is = whole(text, &value);

	if (kind == TYPE_LIST && !(is && value.kind == JSON_ARRAY)) {
		write_list(out, text);
		return;
	}
	switch (kind) {
	case TYPE_NUMBER:
		is = is && value.kind == JSON_NUMBER;
		break;
	case TYPE_BOOLEAN:
		is = is && (value.kind == JSON_TRUE || value.kind == JSON_FALSE);
		break;
	case TYPE_LIST:
	case TYPE_JSON:
	case TYPE_OBJECT:
	case TYPE_OBJECTS:
		break;
	case TYPE_WORD:
	case TYPE_ADDRESS:
	case TYPE_TIME:
	case TYPE_LITERAL:
	case TYPE_ONE_OF:
	case TYPE_TEXT:
		is = false;
	}
	if (is)
		buf_add(out, value.raw);
	else
		json_stringify(out, str_of(text));
}

static bool
any_below(const struct writer *w, const char *prefix)
{
	size_t n = strlen(prefix);

	for (size_t i = 0; i < w->def->fields_n; i++)
		if (w->by_field[i] && strncmp(w->def->fields[i].name, prefix, n) == 0 &&
		    w->def->fields[i].name[n] == '.')
			return true;
	return false;
}

static void write_object(struct writer *w, const char *prefix, const struct json_value *from);

static void
write_objects(struct writer *w, const struct type_field *field, struct json_value array)
{
	mr_auto(buf_done) struct buf prefix = BUF_INIT;
	struct json_value item;
	bool first = true;

	buf_addf(&prefix, "%s[]", field->name);
	buf_addc(w->out, '[');
	for (size_t at = 0; json_item(array, &at, &item); first = false) {
		if (!first)
			buf_addc(w->out, ',');
		if (item.kind == JSON_OBJECT)
			write_object(w, buf_z(&prefix), &item);
		else
			buf_add(w->out, item.raw);
	}
	buf_addc(w->out, ']');
}

/* False: it has no value, nothing is written. */
static bool
write_member(struct writer *w, size_t i, const struct json_value *from, const char *last, bool comma)
{
	const struct type_field *field = &w->def->fields[i];
	const char *text = strstr(field->name, "[]") ? NULL : w->by_field[i];
	struct json_value value = { 0 };
	bool nested = field->kind == TYPE_OBJECT || field->kind == TYPE_OBJECTS;
	bool has = text ? nested && whole(text, &value) : from && json_find(*from, last, &value);

	if (!has && !text && !(field->kind == TYPE_OBJECT && any_below(w, field->name)))
		return false;
	if (comma)
		buf_addc(w->out, ',');
	json_stringify(w->out, str_of(last));
	buf_addc(w->out, ':');
	if (field->kind == TYPE_OBJECT && (has ? value.kind == JSON_OBJECT : !text))
		write_object(w, field->name, has ? &value : NULL);
	else if (field->kind == TYPE_OBJECTS && has && value.kind == JSON_ARRAY)
		write_objects(w, field, value);
	else if (has)
		buf_add(w->out, value.raw);
	else
		write_text(w->out, field->kind, text);
	return true;
}

static bool
is_field(const struct type_def *def, const char *prefix, struct json_value key)
{
	const char *last;

	for (size_t i = 0; i < def->fields_n; i++)
		if (type_is_member(def->fields[i].name, prefix, &last) && json_key_is(key, last))
			return true;
	return false;
}

static void
write_extra(struct writer *w, bool comma)
{
	for (size_t i = 0; i < w->extra_n; i++, comma = true) {
		if (comma)
			buf_addc(w->out, ',');
		json_stringify(w->out, str_of(w->extra[i].name));
		buf_addc(w->out, ':');
		write_text(w->out, TYPE_JSON, w->extra[i].value);
	}
}

/* As deep as the names of the fields, which is TYPE_NEST_MAX. */
static void
write_object(struct writer *w, const char *prefix, const struct json_value *from)
{
	struct json_value key, value;
	bool comma = false;
	const char *last;

	buf_addc(w->out, '{');
	for (size_t i = 0; i < w->def->fields_n; i++)
		if (type_is_member(w->def->fields[i].name, prefix, &last) && !w->def->fields[i].in_subject)
			comma = write_member(w, i, from, last, comma) || comma;
	for (size_t at = 0; from && json_member(*from, &at, &key, &value);) {
		if (is_field(w->def, prefix, key))
			continue;
		if (comma)
			buf_addc(w->out, ',');
		buf_add(w->out, key.raw);
		buf_addc(w->out, ':');
		buf_add(w->out, value.raw);
		comma = true;
	}
	if (!prefix[0])
		write_extra(w, comma);
	buf_addc(w->out, '}');
}

enum mr_rc
type_json_render(const struct type_def *def, const char *const *by_field, const struct mr_header *extra, size_t extra_n,
    struct buf *out, struct mr_error *err)
{
	struct writer w = { def, by_field, extra, extra_n, out };

	write_object(&w, "", NULL);
	return buf_ok(out) ? MR_OK : mr_nomem(err);
}
