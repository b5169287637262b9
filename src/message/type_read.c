/* SPDX-License-Identifier: MIT */
/* type_read.c - the fields of a message: "Key: value" lines, front matter, and what the subject says. See type.h. */
#include "base/error.h"
#include "message/front.h"
#include "message/type_own.h"

struct reader {
	const struct type_def *def;
	struct type_values *values;
	const char **by_field;                   /* value of each field of the type, or NULL */
	struct mr_header extra[TYPE_FIELDS_MAX]; /* what the type does not know */
	size_t extra_n;
	size_t last;     /* field that a line without key continues, or TYPE_NONE */
	struct buf open; /* its value so far */
	bool failed;
};

static struct mr_str
without_quotes(struct mr_str s)
{
	return s.len >= 2 && s.ptr[0] == '"' && s.ptr[s.len - 1] == '"' ? (struct mr_str){ s.ptr + 1, s.len - 2 } : s;
}

static const char *
keep(struct reader *r, struct mr_str s)
{
	const char *copy = type_dup(&r->values->own, s);

	if (!copy)
		r->failed = true;
	return copy;
}

static void
keep_extra(struct reader *r, struct mr_str key, struct mr_str value)
{
	if (r->extra_n == TYPE_FIELDS_MAX)
		return;
	for (size_t i = 0; i < r->extra_n; i++)
		if (str_eq(str_of(r->extra[i].name), key))
			return;
	struct mr_header one = { keep(r, key), keep(r, value) };

	if (!r->failed)
		r->extra[r->extra_n++] = one;
}

/* Gathered first and copied once: a body may be a million lines that continue one field. */
static void
close_last(struct reader *r)
{
	if (r->last != TYPE_NONE)
		r->by_field[r->last] = keep(r, buf_str(&r->open));
	r->failed = r->failed || !buf_ok(&r->open);
	r->last = TYPE_NONE;
}

/* The first of a name counts. */
static void
keep_field(struct reader *r, size_t i, struct mr_str value)
{
	close_last(r);
	if (r->by_field[i])
		return;
	r->by_field[i] = keep(r, value);
	if (r->def->fields[i].kind != TYPE_TEXT)
		return;
	r->last = i;
	buf_clear(&r->open);
	buf_add(&r->open, value);
}

/* ---- Lines ---- */

static bool
is_key_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
	       c == ' ';
}

/* "Key: value". A key is short, and begins with a letter or digit. */
static bool
split_line(struct mr_str line, struct mr_str *ret_key, struct mr_str *ret_value)
{
	size_t n = 0;

	line = str_trim(line);
	while (n < line.len && n < 64 && is_key_byte(line.ptr[n]))
		n++;
	if (n == 0 || n == line.len || line.ptr[n] != ':' || line.ptr[0] == '-' || line.ptr[0] == '_')
		return false;
	*ret_key = str_trim((struct mr_str){ line.ptr, n });
	*ret_value = str_trim((struct mr_str){ line.ptr + n + 1, line.len - n - 1 });
	return true;
}

static void
continue_line(struct reader *r, struct mr_str line)
{
	if (r->open.len > 0)
		buf_addc(&r->open, ' ');
	buf_add(&r->open, str_trim(line));
}

/* One line within the fields. False: they are over, and the line is none of them. */
static bool
read_line(struct reader *r, struct mr_str line)
{
	struct mr_str key, value;

	if (!split_line(line, &key, &value)) {
		if (r->last == TYPE_NONE)
			return false;
		continue_line(r, line);
		return true;
	}
	size_t i = type_index(r->def, key);

	if (i != TYPE_NONE)
		keep_field(r, i, value);
	else if (r->last != TYPE_NONE && value.len > 0 && value.ptr[-1] != ' ' && value.ptr[-1] != '\t')
		continue_line(r, line); /* an address on the web, a time: no key */
	else {
		close_last(r);
		keep_extra(r, key, value);
	}
	return true;
}

/* The fields are the paragraph in which the first known key stands, from that line on; what is before is the intro. */
static struct mr_str
read_lines(struct reader *r, struct mr_str body)
{
	struct mr_str rest = body, line, key, value;
	bool inside = false;

	for (const char *at = rest.ptr; front_line(&rest, &line); at = rest.ptr) {
		if (!inside)
			inside = split_line(line, &key, &value) && type_index(r->def, key) != TYPE_NONE;
		if (!inside)
			continue;
		if (str_trim(line).len == 0)
			return rest;
		if (!read_line(r, line))
			return (struct mr_str){ at, (size_t)(body.ptr + body.len - at) };
	}
	return inside ? rest : body;
}

/* ---- Front matter ---- */

static enum mr_rc
read_front(struct reader *r, struct mr_str body, struct mr_str *ret_rest, struct mr_error *err)
{
	struct front front;
	struct mr_str key, value;

	if (!front_split(body, &front))
		return mr_fail(err, MR_CORRUPT, "the body of %s has no front matter", r->def->name);
	while (front_next(&front.head, &key, &value)) {
		size_t i = type_index(r->def, key);

		if (i != TYPE_NONE)
			keep_field(r, i, without_quotes(value));
		else
			keep_extra(r, key, value);
	}
	*ret_rest = front.body;
	return MR_OK;
}

/* ---- JSON ---- */

static void
text_of(struct json_value value, struct buf *out)
{
	buf_clear(out);
	if (value.kind == JSON_STRING)
		json_text(value, out);
	else
		buf_add(out, value.raw);
}

static void
read_members(struct reader *r, struct json_value object)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, name = BUF_INIT;
	struct json_value key, value;

	for (size_t i = 0; i < r->def->fields_n; i++) {
		if (!type_json_at(object, r->def->fields[i].name, &value))
			continue;
		text_of(value, &text);
		r->by_field[i] = keep(r, buf_str(&text));
	}
	for (size_t at = 0; json_member(object, &at, &key, &value);) {
		text_of(key, &name);
		size_t i = type_index(r->def, buf_str(&name));

		text_of(value, &text);
		if (i == TYPE_NONE)
			keep_extra(r, buf_str(&name), buf_str(&text));
		else if (!r->by_field[i]) /* another spelling */
			r->by_field[i] = keep(r, buf_str(&text));
	}
	r->failed = r->failed || !buf_ok(&text) || !buf_ok(&name);
}

static enum mr_rc
read_json(struct reader *r, struct mr_str body, struct mr_error *err)
{
	struct json_value object;
	const char *problem = NULL;
	char *copy;

	if (!json_whole(body, &object, &problem))
		return mr_fail(err, MR_CORRUPT, "the body of %s is no JSON: it %s", r->def->name, problem);
	if (object.kind != JSON_OBJECT)
		return mr_fail(err, MR_CORRUPT, "the body of %s is no JSON object", r->def->name);
	copy = arena_alloc(&r->values->own, object.raw.len);
	if (!copy)
		return mr_nomem(err);
	memcpy(copy, object.raw.ptr, object.raw.len);
	r->values->json = (struct mr_str){ copy, object.raw.len };
	read_members(r, object);
	return MR_OK;
}

bool
type_fits_body(const struct type_def *def, struct mr_str body)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct json_value object, value;
	struct front front;
	struct mr_str found;
	const char *problem;
	size_t literals = 0;
	bool json = def->body == TYPE_BODY_JSON;

	if (json ? !json_whole(body, &object, &problem) || object.kind != JSON_OBJECT
		 : def->body != TYPE_BODY_FRONT || !front_split(body, &front))
		return false;
	for (size_t i = 0; i < def->fields_n; i++) {
		const struct type_field *f = &def->fields[i];

		if (f->kind != TYPE_LITERAL || strchr(f->name, '.'))
			continue;
		buf_clear(&text);
		if (json && json_find(object, f->name, &value) && value.kind == JSON_STRING)
			json_text(value, &text);
		else if (!json && front_get(front.head, f->name, &found))
			buf_add(&text, without_quotes(found));
		if (!str_eq(buf_str(&text), str_of(f->choices.v[0])))
			return false;
		literals++;
	}
	return literals > 0;
}

/* Some write {"action": "restart"} where others write a line. True: it was one. */
static bool
read_as_json(struct reader *r, struct mr_str body)
{
	struct json_value object;
	const char *problem;
	size_t at = json_skip_space(body, 0);

	if (at == body.len || body.ptr[at] != '{' || !json_whole(body, &object, &problem))
		return false;
	read_members(r, object);
	return true;
}

/* ---- All of it ---- */

static void
read_subject(struct reader *r, struct mr_str subject)
{
	struct mr_str parts[TYPE_FIELDS_MAX], name;
	size_t n, weight, at = 0, from;

	if (!type_subject_parts(r->def, subject, parts, TYPE_FIELDS_MAX, &n, &weight))
		return;
	for (size_t k = 0; k < n && type_next_brace(r->def->subject, &at, &from, &name); k++) {
		size_t i = type_index(r->def, name);

		if (i != TYPE_NONE && parts[k].len > 0 && (!r->by_field[i] || !r->by_field[i][0]))
			r->by_field[i] = keep(r, parts[k]);
	}
}

/* Empty lines around it do not count; blanks within the first line do. */
static struct mr_str
trim_lines(struct mr_str s)
{
	for (struct mr_str rest = s, line; front_line(&rest, &line) && str_trim(line).len == 0;)
		s = rest;
	while (s.len > 0 && strchr(" \t\r\n", s.ptr[s.len - 1]) && s.ptr[s.len - 1])
		s.len--;
	return s;
}

static enum mr_rc
finish(struct reader *r, struct mr_str free_text, struct mr_error *err)
{
	struct type_values *values = r->values;
	size_t n = 0;
	char *text = arena_alloc(&values->own, free_text.len + 1);

	values->v = arena_alloc(&values->own, (r->def->fields_n + r->extra_n + 1) * sizeof(*values->v));
	if (r->failed || !values->v || !text)
		return mr_nomem(err);
	for (size_t i = 0; i < r->def->fields_n; i++) {
		if (!r->by_field[i])
			continue;
		values->v[n].name = keep(r, str_of(r->def->fields[i].name)); /* they may outlive the definition */
		values->v[n++].value = r->by_field[i];
	}
	for (size_t i = 0; i < r->extra_n; i++)
		values->v[n++] = r->extra[i];
	values->n = n;
	if (free_text.len > 0)
		memcpy(text, free_text.ptr, free_text.len);
	values->free_text = (struct mr_str){ text, free_text.len };
	return r->failed ? mr_nomem(err) : MR_OK;
}

enum mr_rc
type_read(const struct type_def *def, struct mr_str subject, struct mr_str body, struct type_values *ret,
    struct mr_error *err)
{
	mr_auto(type_values_done) struct type_values values = { 0 };
	struct reader r = { .def = def, .values = &values, .last = TYPE_NONE };
	struct mr_str rest = { body.ptr, 0 };
	enum mr_rc rc = MR_OK;

	r.by_field = arena_alloc(&values.own, (def->fields_n + 1) * sizeof(*r.by_field));
	if (!r.by_field)
		return mr_nomem(err);
	if (def->body == TYPE_BODY_LINES)
		rest = read_as_json(&r, body) ? rest : read_lines(&r, body);
	else if (def->body == TYPE_BODY_FRONT)
		rc = read_front(&r, body, &rest, err);
	else if (def->body == TYPE_BODY_JSON)
		rc = read_json(&r, body, err);
	else
		rest = body;
	close_last(&r);
	buf_done(&r.open);
	if (rc != MR_OK)
		return rc;
	read_subject(&r, subject);
	rc = finish(&r, trim_lines(rest), err);
	if (rc == MR_OK) {
		*ret = values;
		values = (struct type_values){ 0 };
	}
	return rc;
}
