/* SPDX-License-Identifier: MIT */
/*
 * type_read.c - the fields of a message ("Key: value" lines, front matter, JSON, and fields in the subject), and their
 * validation by its type. See type.h.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "message/address.h"
#include "message/front.h"
#include "message/type_own.h"

enum mr_rc
type_values_begin(const struct type_def *def, struct type_values *values, struct mr_error *err)
{
	struct mr_header *v = arena_alloc(&values->own, (def->fields_n + TYPE_FIELDS_MAX) * sizeof(*v));

	TRY(mr_got(v, err));
	for (size_t i = 0; i < def->fields_n; i++) {
		/* Copies the names, too: the values may outlive the definition. */
		v[i].name = arena_dup(&values->own, str_of(def->fields[i].name));
		TRY(mr_got(v[i].name, err));
	}
	values->v = v;
	values->n = def->fields_n;
	return MR_OK;
}

void
type_values_end(struct type_values *values)
{
	size_t n = 0;

	for (size_t i = 0; i < values->n; i++)
		if (values->v[i].value)
			values->v[n++] = values->v[i];
	values->n = n;
}

/* ---- Reading ---- */

struct reader {
	const struct type_def *def;
	struct type_values *values;
	size_t last;      /* field that a line without a key continues, or TYPE_NONE */
	struct buf *open; /* its value so far */
	bool failed;
};

static const char *
keep(struct reader *r, struct mr_str s)
{
	const char *copy = type_dup(&r->values->own, s);

	r->failed |= !copy;
	return copy;
}

static void
keep_extra(struct reader *r, struct mr_str key, struct mr_str value)
{
	size_t known = r->def->fields_n;

	for (size_t i = known; i < r->values->n; i++)
		if (str_eq(str_of(r->values->v[i].name), key))
			return;
	if (r->values->n == known + TYPE_FIELDS_MAX)
		return;
	struct mr_header one = { keep(r, key), keep(r, value) };

	if (!r->failed)
		r->values->v[r->values->n++] = one;
}

/* Collected first and copied once, because a body may be a million lines that continue one field. */
static void
close_last(struct reader *r)
{
	if (r->last != TYPE_NONE)
		r->values->v[r->last].value = keep(r, buf_str(r->open));
	r->failed = r->failed || !buf_ok(r->open);
	r->last = TYPE_NONE;
}

/* If a name occurs twice, the first counts. */
static void
keep_field(struct reader *r, size_t i, struct mr_str value)
{
	close_last(r);
	if (r->values->v[i].value)
		return;
	r->values->v[i].value = keep(r, value);
	if (r->def->fields[i].kind != TYPE_TEXT)
		return;
	r->last = i;
	buf_clear(r->open);
	buf_add(r->open, value);
}

/* ---- Lines ---- */

/* "Key: value". A key is short, and begins with a letter or digit. */
static bool
split_line(struct mr_str line, struct mr_str *ret_key, struct mr_str *ret_value)
{
	size_t n = 0;

	line = str_trim(line);
	while (n < line.len && n < 64 && type_is_key_byte(line.ptr[n]))
		n++;
	if (n == 0 || n == line.len || line.ptr[n] != ':' || line.ptr[0] == '-' || line.ptr[0] == '_')
		return false;
	*ret_key = str_trim(str_first(line, n));
	*ret_value = str_trim(str_from(line, n + 1));
	return true;
}

/* The fields are the paragraph with the first known key, from that line on; the text before it is the intro. */
static struct mr_str
read_lines(struct reader *r, struct mr_str body)
{
	struct mr_str rest = body, line, key, value;
	bool inside = false;

	for (const char *at = rest.ptr; str_line(&rest, &line); at = rest.ptr) {
		bool pair = split_line(line, &key, &value);
		size_t i = pair ? type_index(r->def, key) : TYPE_NONE;

		inside |= i != TYPE_NONE;
		if (!inside)
			continue;
		if (str_trim(line).len == 0)
			return rest;
		if (i != TYPE_NONE) {
			keep_field(r, i, value);
		} else if (r->last != TYPE_NONE && (!pair || (value.len > 0 && !ascii_blank(value.ptr[-1])))) {
			/* A continuation; "https://..." and "12:30" are not keys. */
			buf_adds(r->open, r->open->len > 0 ? " " : "");
			buf_add(r->open, str_trim(line));
		} else if (pair) {
			close_last(r);
			keep_extra(r, key, value);
		} else {
			return str_between(at, body.ptr + body.len);
		}
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

		bool quoted = value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"';

		if (i == TYPE_NONE)
			keep_extra(r, key, value);
		else
			keep_field(r, i, quoted ? (struct mr_str){ value.ptr + 1, value.len - 2 } : value);
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
		r->values->v[i].value = keep(r, buf_str(&text));
	}
	for (size_t at = 0; json_member(object, &at, &key, &value);) {
		text_of(key, &name);
		size_t i = type_index(r->def, buf_str(&name));

		text_of(value, &text);
		if (i == TYPE_NONE)
			keep_extra(r, buf_str(&name), buf_str(&text));
		else if (!r->values->v[i].value) /* another spelling */
			r->values->v[i].value = keep(r, buf_str(&text));
	}
	r->failed = r->failed || !buf_ok(&text) || !buf_ok(&name);
}

/* ---- The whole message ---- */

static void
read_subject(struct reader *r, struct mr_str subject)
{
	struct mr_str parts[TYPE_FIELDS_MAX], name;
	size_t n, weight, at = 0, from;

	if (!type_subject_parts(r->def, subject, parts, &n, &weight))
		return;
	for (size_t k = 0; k < n && type_next_brace(r->def->subject, &at, &from, &name); k++) {
		size_t i = type_index(r->def, name);

		if (i != TYPE_NONE && parts[k].len > 0 && (!r->values->v[i].value || !r->values->v[i].value[0]))
			r->values->v[i].value = keep(r, parts[k]);
	}
}

enum mr_rc
type_read(const struct type_def *def, struct mr_str subject, struct mr_str body, struct type_values *ret,
    struct mr_error *err)
{
	mr_auto(type_values_done) struct type_values values = { 0 };
	mr_auto(buf_done) struct buf open = BUF_INIT;
	struct reader r = { .def = def, .values = &values, .last = TYPE_NONE, .open = &open };
	struct mr_str rest = { body.ptr, 0 };
	struct json_value object = { 0 };
	const char *problem = NULL;
	bool is_json =
	    def->body != TYPE_BODY_FRONT && def->body != TYPE_BODY_TEXT && json_whole(body, &object, &problem);

	TRY(type_values_begin(def, &values, err));
	if (def->body == TYPE_BODY_FRONT) {
		TRY(read_front(&r, body, &rest, err));
	} else if (def->body == TYPE_BODY_TEXT) {
		rest = body;
	} else if (is_json &&
		   object.kind == JSON_OBJECT) { /* some write {"action": "restart"} where others write a line */
		read_members(&r, object);
	} else if (def->body == TYPE_BODY_JSON) {
		return is_json ? mr_fail(err, MR_CORRUPT, "the body of %s is not a JSON object", def->name)
			       : mr_fail(err, MR_CORRUPT, "the body of %s is not JSON: it %s", def->name, problem);
	} else {
		rest = read_lines(&r, body);
	}
	if (def->body == TYPE_BODY_JSON)
		values.json = (struct mr_str){ arena_keep(&values.own, object.raw, &r.failed), object.raw.len };
	close_last(&r);
	read_subject(&r, subject);
	/* Empty lines around the text are ignored; blanks within its first line are kept. */
	for (struct mr_str behind = rest, line; str_line(&behind, &line) && str_trim(line).len == 0;)
		rest = behind;
	rest = str_trim_end(rest);
	values.free_text = (struct mr_str){ arena_keep(&values.own, rest, &r.failed), rest.len };
	TRY(mr_got(!r.failed, err));
	type_values_end(&values);
	*ret = values;
	values = (struct type_values){ 0 };
	return MR_OK;
}

/* ---- Members of JSON objects ---- */

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
is_choice(const struct type_field *field, struct mr_str value)
{
	for (size_t i = 0; i < field->choices.n; i++)
		if (str_eq(value, str_of(field->choices.v[i])))
			return true;
	return false;
}

/* Checks the text between the separators; with a field, each must be one of its choices. */
static bool
are_parts(struct mr_str value, char separator, const struct type_field *field)
{
	if (value.len == 0 || value.ptr[value.len - 1] == separator)
		return false;
	for (struct mr_str one; str_cut(&value, separator, &one);)
		if (field ? !is_choice(field, one) : str_trim(one).len == 0)
			return false;
	return true;
}

const char *
type_value_problem(const struct type_field *field, struct mr_str value, struct buf *scratch)
{
	const char *must = type_kinds[field->kind].must;
	struct json_value json = { 0 };
	bool is_json = field->kind >= TYPE_NUMBER && json_whole(value, &json, NULL), fine = false;
	char normal[MR_ADDRESS_MAX + 1];
	struct mr_str agent, room;
	int64_t ms;

	switch (field->kind) {
	case TYPE_WORD:
		fine = is_word(value);
		break;
	case TYPE_ADDRESS:
		address_split(value, &agent, &room);
		fine = address_normal(agent, normal, IGNORED) == MR_OK;
		break;
	case TYPE_TIME:
		fine = time_parse_rfc3339(value, &ms);
		break;
	case TYPE_TEXT:
		fine = utf8_valid(value);
		break;
	case TYPE_LITERAL:
	case TYPE_ONE_OF:
		fine = is_choice(field, value);
		break;
	case TYPE_LIST:
		fine = (is_json && value.ptr[0] == '[') || are_parts(value, ',', NULL);
		break;
	case TYPE_NUMBER:
	case TYPE_BOOLEAN:
	case TYPE_JSON:
	case TYPE_OBJECT:
	case TYPE_OBJECTS:
		fine = is_json && type_json_fits(field->kind, json);
		break;
	}
	if (fine || must)
		return fine ? NULL : must;
	buf_clear(scratch);
	buf_adds(scratch, field->choices.n > 1 ? "one of " : "");
	for (size_t i = 0; i < field->choices.n; i++)
		buf_addf(scratch, "%s%s", i > 0 ? ", " : "", field->choices.v[i]);
	return buf_z(scratch);
}

/* ---- All values ---- */

struct check {
	const struct type_def *def;
	const struct type_values *values;
	bool strict; /* for sending: check the form of every value */
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
	    "field '%s' of %s must be %s, not '%s'\n'mailroom types show %s' lists its fields", f->name, c->def->name,
	    must, buf_z(&shown), c->def->name); /* a sender is told about --force, too */
}

static enum mr_rc
check_absent(const struct check *c, const struct type_field *f)
{
	bool needed = f->required && (!f->when_field || holds(c, f->when_field, f->when_value)) &&
		      (!f->only_field || holds(c, f->only_field, f->only_value));

	if (!needed || (!c->strict && c->def->receive_type && f->kind != TYPE_LITERAL))
		return MR_OK;
	if (f->when_field)
		(void)mr_fail(c->err, MR_REFUSED, "field '%s' of %s is missing: it is required when %s is %s", f->name,
		    c->def->name, f->when_field, f->when_value);
	else
		(void)mr_fail(c->err, MR_REFUSED, "field '%s' of %s is missing", f->name, c->def->name);
	return mr_hint(
	    c->err, "give it with --field '%s=...'; 'mailroom types show %s' lists its fields", f->name, c->def->name);
}

static enum mr_rc
check_place(const struct check *c, const struct type_field *f)
{
	if (!c->strict || !f->only_field || holds(c, f->only_field, f->only_value))
		return MR_OK;
	return mr_fail(c->err, MR_REFUSED,
	    "field '%s' of %s is allowed only when %s is %s\nleave it out, or change '%s'", f->name, c->def->name,
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

	/* Documents print all choices at once: "MERGED|ESCALATED|DEFERRED". */
	if (rc != MR_OK || type_is_placeholder(value) || (f->kind == TYPE_ONE_OF && are_parts(value, '|', f)))
		return rc;
	const char *must = form_counts(c, f) ? type_value_problem(f, value, &scratch) : NULL;

	return must ? refuse(c, f, must, value) : MR_OK;
}

/* ---- In JSON the kind of a value counts, too ---- */

bool
type_json_fits(enum type_kind kind, struct json_value value)
{
	enum json_kind want = type_kinds[kind].json;

	return want == JSON_NULL || value.kind == want || (want == JSON_TRUE && value.kind == JSON_FALSE);
}

static enum mr_rc check_object(const struct check *c, const char *prefix, struct json_value object);

static enum mr_rc
check_member(const struct check *c, const struct type_field *f, struct json_value v)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, scratch = BUF_INIT;
	struct json_value item;

	TRY(check_place(c, f));
	if (!c->strict && c->def->receive_type && f->kind != TYPE_LITERAL)
		return MR_OK;
	bool fits = type_json_fits(f->kind, v);

	for (size_t at = 0; (f->kind == TYPE_LIST || f->kind == TYPE_OBJECTS) && json_item(v, &at, &item);)
		fits &= item.kind == (f->kind == TYPE_LIST ? JSON_STRING : JSON_OBJECT);
	if (!fits)
		return refuse(c, f, type_kinds[f->kind].must_json, v.raw);
	if (f->kind == TYPE_OBJECT)
		return check_object(c, f->name, v);
	if (f->kind == TYPE_OBJECTS) {
		buf_addf(&text, "%s[]", f->name);
		for (size_t at = 0; json_item(v, &at, &item);)
			TRY(check_object(c, buf_z(&text), item));
		return MR_OK;
	}
	if (v.kind != JSON_STRING || f->kind == TYPE_JSON || !form_counts(c, f))
		return MR_OK;
	json_text(v, &text);
	const char *must = type_value_problem(f, buf_str(&text), &scratch);

	return must ? refuse(c, f, must, buf_str(&text)) : MR_OK;
}

static enum mr_rc
check_object(const struct check *c, const char *prefix, struct json_value object)
{
	struct json_value value;
	const char *last;

	for (size_t i = 0; i < c->def->fields_n; i++) {
		const struct type_field *f = &c->def->fields[i];

		if (!type_is_member(f->name, prefix, &last))
			continue;
		value = json_get(object, last);
		for (size_t k = 0; !value.raw.ptr && last == f->name && k < c->def->also_n; k++)
			if (strcmp(c->def->also[k].value, last) == 0)
				value = json_get(object, c->def->also[k].name);
		if (f->in_subject)
			TRY(check_line(c, f));
		else if (value.raw.ptr)
			TRY(check_member(c, f, value));
		else
			TRY(check_absent(c, f));
	}
	return MR_OK;
}

static enum mr_rc
check_all(const struct check *c)
{
	if (c->def->body == TYPE_BODY_JSON)
		return check_object(c, "", (struct json_value){ JSON_OBJECT, c->values->json });
	for (size_t i = 0; i < c->def->fields_n; i++)
		TRY(check_line(c, &c->def->fields[i]));
	return MR_OK;
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
