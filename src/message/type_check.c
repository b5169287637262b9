/* SPDX-License-Identifier: MIT */
/* type_check.c - are the fields of a message what its type says? See type.h. */
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "message/address.h"
#include "message/type_own.h"

bool
type_is_placeholder(struct mr_str value)
{
	return value.len > 2 && value.ptr[0] == '<' && value.ptr[1] != ' ' && memchr(value.ptr, '>', value.len);
}

/* ---- One value as text ---- */

static bool
is_word(struct mr_str value)
{
	for (size_t i = 0; i < value.len; i++)
		if ((unsigned char)value.ptr[i] <= ' ' || value.ptr[i] == 0x7f)
			return false;
	return value.len > 0;
}

static bool
is_address(struct mr_str value)
{
	struct mr_str agent, room;
	char normal[MR_ADDRESS_MAX + 1];
	struct mr_error err;

	address_split(value, &agent, &room);
	return address_normal(agent, normal, &err) == MR_OK;
}

static bool
is_json(struct mr_str value, struct json_value *ret)
{
	const char *problem;

	return json_whole(value, ret, &problem);
}

static bool
is_list(struct mr_str value)
{
	struct json_value json;

	if (value.len > 0 && value.ptr[0] == '[' && is_json(value, &json))
		return true;
	for (size_t i = 0, from = 0; i <= value.len; i++)
		if (i == value.len || value.ptr[i] == ',') {
			if (str_trim((struct mr_str){ value.ptr + from, i - from }).len == 0)
				return false;
			from = i + 1;
		}
	return true;
}

static bool
is_choice(const struct type_field *field, struct mr_str value)
{
	for (size_t i = 0; i < field->choices.n; i++)
		if (str_eq(value, str_of(field->choices.v[i])))
			return true;
	return false;
}

/* All choices as a document prints them: "MERGED|ESCALATED|DEFERRED". */
static bool
are_choices(const struct type_field *field, struct mr_str value)
{
	for (size_t i = 0, from = 0; i <= value.len; i++)
		if (i == value.len || value.ptr[i] == '|') {
			if (!is_choice(field, (struct mr_str){ value.ptr + from, i - from }))
				return false;
			from = i + 1;
		}
	return true;
}

static const char *
say_choices(const struct type_field *field, struct buf *scratch)
{
	buf_clear(scratch);
	buf_adds(scratch, field->choices.n > 1 ? "one of " : "");
	for (size_t i = 0; i < field->choices.n; i++)
		buf_addf(scratch, "%s%s", i > 0 ? ", " : "", field->choices.v[i]);
	return buf_z(scratch);
}

const char *
type_value_problem(const struct type_field *field, struct mr_str value, struct buf *scratch)
{
	struct json_value json;
	int64_t ms;

	switch (field->kind) {
	case TYPE_WORD:
		return is_word(value) ? NULL : "one word";
	case TYPE_ADDRESS:
		return is_address(value) ? NULL : "an address";
	case TYPE_TIME:
		return time_parse_rfc3339(value, &ms) ? NULL : "a time such as 2026-03-05T10:30:00Z";
	case TYPE_NUMBER:
		return is_json(value, &json) && json.kind == JSON_NUMBER ? NULL : "a number";
	case TYPE_BOOLEAN:
		return str_eq(value, STR("true")) || str_eq(value, STR("false")) ? NULL : "true or false";
	case TYPE_LITERAL:
	case TYPE_ONE_OF:
		return is_choice(field, value) ? NULL : say_choices(field, scratch);
	case TYPE_LIST:
		return is_list(value) ? NULL : "a list with ', ' between";
	case TYPE_TEXT:
		return utf8_valid(value) ? NULL : "text in UTF-8";
	case TYPE_JSON:
		return is_json(value, &json) ? NULL : "JSON";
	case TYPE_OBJECT:
		return is_json(value, &json) && json.kind == JSON_OBJECT ? NULL : "a JSON object";
	case TYPE_OBJECTS:
		return is_json(value, &json) && json.kind == JSON_ARRAY ? NULL : "a list of JSON objects";
	}
	return NULL;
}

/* ---- All of them ---- */

struct check {
	const struct type_def *def;
	const struct type_values *values;
	bool strict; /* for sending: the form of every value counts */
	struct mr_error *err;
};

static bool
holds(const struct check *c, const char *field, const char *value)
{
	const char *is = type_value(c->values, field);

	return is && strcmp(is, value) == 0;
}

static enum mr_rc
refuse(const struct check *c, const struct type_field *f, const char *must, struct mr_str value)
{
	mr_auto(buf_done) struct buf shown = BUF_INIT;

	text_clean_line(&shown, utf8_cut(value, 60));
	return mr_fail(c->err, MR_REFUSED,
	    "field '%s' of %s must be %s, not '%s'\n'mailroom types show %s' tells its fields", f->name, c->def->name,
	    must, buf_z(&shown), c->def->name); /* a sender hears of --force, too */
}

static enum mr_rc
check_absent(const struct check *c, const struct type_field *f)
{
	bool needed = f->required && (!f->when_field || holds(c, f->when_field, f->when_value)) &&
		      (!f->only_field || holds(c, f->only_field, f->only_value));

	if (!needed || (!c->strict && c->def->receive_type && f->kind != TYPE_LITERAL))
		return MR_OK;
	if (f->when_field)
		(void)mr_fail(c->err, MR_REFUSED, "field '%s' of %s is missing, which is needed when %s is %s", f->name,
		    c->def->name, f->when_field, f->when_value);
	else
		(void)mr_fail(c->err, MR_REFUSED, "field '%s' of %s is missing", f->name, c->def->name);
	return mr_hint(
	    c->err, "give it with --field '%s=...'; 'mailroom types show %s' tells its fields", f->name, c->def->name);
}

static enum mr_rc
check_place(const struct check *c, const struct type_field *f)
{
	if (!c->strict || !f->only_field || holds(c, f->only_field, f->only_value))
		return MR_OK;
	return mr_fail(c->err, MR_REFUSED,
	    "field '%s' of %s may stand only when %s is %s\nleave it out, or change '%s'", f->name, c->def->name,
	    f->only_field, f->only_value, f->only_field);
}

static bool
form_counts(const struct check *c, const struct type_field *f)
{
	return c->strict || f->kind == TYPE_LITERAL || (f->kind == TYPE_ONE_OF && !c->def->receive_type);
}

static enum mr_rc
check_line(const struct check *c, const struct type_field *f)
{
	mr_auto(buf_done) struct buf scratch = BUF_INIT;
	const char *z = type_value(c->values, f->name);
	struct mr_str value = str_of(z ? z : "");

	if (value.len == 0)
		return check_absent(c, f);
	enum mr_rc rc = check_place(c, f);

	if (rc != MR_OK || type_is_placeholder(value) || (f->kind == TYPE_ONE_OF && are_choices(f, value)))
		return rc;
	const char *must = form_counts(c, f) ? type_value_problem(f, value, &scratch) : NULL;

	return must ? refuse(c, f, must, value) : MR_OK;
}

/* ---- In JSON the sort of value counts, too ---- */

static const char *
json_problem(const struct type_field *f, struct json_value v)
{
	struct json_value item;
	enum json_kind inside = f->kind == TYPE_LIST ? JSON_STRING : JSON_OBJECT;

	switch (f->kind) {
	case TYPE_NUMBER:
		return v.kind == JSON_NUMBER ? NULL : "a number";
	case TYPE_BOOLEAN:
		return v.kind == JSON_TRUE || v.kind == JSON_FALSE ? NULL : "true or false";
	case TYPE_JSON:
		return NULL;
	case TYPE_OBJECT:
		return v.kind == JSON_OBJECT ? NULL : "a JSON object";
	case TYPE_LIST:
	case TYPE_OBJECTS:
		for (size_t at = 0; json_item(v, &at, &item);)
			if (item.kind != inside)
				v.kind = JSON_NULL;
		return v.kind == JSON_ARRAY ? NULL : f->kind == TYPE_LIST ? "a list of strings" : "a list of objects";
	case TYPE_WORD:
	case TYPE_ADDRESS:
	case TYPE_TIME:
	case TYPE_LITERAL:
	case TYPE_ONE_OF:
	case TYPE_TEXT:
		break;
	}
	return v.kind == JSON_STRING ? NULL : "a string";
}

static enum mr_rc check_object(const struct check *c, const char *prefix, struct json_value object);

static enum mr_rc
check_inside(const struct check *c, const struct type_field *f, struct json_value v)
{
	mr_auto(buf_done) struct buf prefix = BUF_INIT;
	struct json_value item;
	enum mr_rc rc = MR_OK;

	if (f->kind == TYPE_OBJECT)
		return check_object(c, f->name, v);
	buf_addf(&prefix, "%s[]", f->name);
	for (size_t at = 0; rc == MR_OK && json_item(v, &at, &item);)
		rc = check_object(c, buf_z(&prefix), item);
	return rc;
}

static enum mr_rc
check_member(const struct check *c, const struct type_field *f, struct json_value v)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, scratch = BUF_INIT;

	TRY(check_place(c, f));
	if (!c->strict && c->def->receive_type && f->kind != TYPE_LITERAL)
		return MR_OK;
	const char *must = json_problem(f, v);

	if (must)
		return refuse(c, f, must, v.raw);
	if (f->kind == TYPE_OBJECT || f->kind == TYPE_OBJECTS)
		return check_inside(c, f, v);
	if (v.kind != JSON_STRING || f->kind == TYPE_JSON || !form_counts(c, f))
		return MR_OK;
	json_text(v, &text);
	must = type_value_problem(f, buf_str(&text), &scratch);
	return must ? refuse(c, f, must, buf_str(&text)) : MR_OK;
}

static bool
find_member(const struct type_def *def, struct json_value object, const struct type_field *f, const char *last,
    struct json_value *ret)
{
	if (json_find(object, last, ret))
		return true;
	for (size_t i = 0; last == f->name && i < def->also_n; i++)
		if (strcmp(def->also[i].value, f->name) == 0 && json_find(object, def->also[i].name, ret))
			return true;
	return false;
}

static enum mr_rc
check_object(const struct check *c, const char *prefix, struct json_value object)
{
	enum mr_rc rc = MR_OK;
	struct json_value value;
	const char *last;

	for (size_t i = 0; rc == MR_OK && i < c->def->fields_n; i++) {
		const struct type_field *f = &c->def->fields[i];

		if (!type_is_member(f->name, prefix, &last))
			continue;
		if (f->in_subject)
			rc = check_line(c, f);
		else if (find_member(c->def, object, f, last, &value))
			rc = check_member(c, f, value);
		else
			rc = check_absent(c, f);
	}
	return rc;
}

static enum mr_rc
check_all(const struct check *c)
{
	enum mr_rc rc = MR_OK;

	if (c->def->body == TYPE_BODY_JSON)
		return check_object(c, "", (struct json_value){ JSON_OBJECT, c->values->json });
	for (size_t i = 0; rc == MR_OK && i < c->def->fields_n; i++)
		rc = check_line(c, &c->def->fields[i]);
	return rc;
}

enum mr_rc
type_validate(const struct type_def *def, const struct type_values *values, struct mr_error *err)
{
	return check_all(&(struct check){ def, values, true, err });
}

enum mr_rc
type_validate_received(const struct type_def *def, const struct type_values *values, struct mr_error *err)
{
	return check_all(&(struct check){ def, values, false, err });
}
