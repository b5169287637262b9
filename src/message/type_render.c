/* SPDX-License-Identifier: MIT */
/*
 * type_render.c - from fields to subject and body. What was rendered is read again before it is given away: what a
 * receiver would see must be what the sender gave.
 */
#include "base/error.h"
#include "base/text.h"
#include "message/type_own.h"

struct render {
	const struct type_def *def;
	const char **by_field;
	struct type_values values;               /* for the forms */
	struct mr_header extra[TYPE_FIELDS_MAX]; /* fields that the type does not know, with force */
	size_t extra_n;
	struct mr_error *err;
};

static const char *
nearest(const struct type_def *def, const char *name)
{
	const char *best = NULL;
	size_t limit = 3;

	for (size_t i = 0; i < def->fields_n; i++) {
		size_t d = edit_distance(name, def->fields[i].name, limit);

		if (d <= limit && d > 0) {
			best = def->fields[i].name;
			limit = d - 1;
		}
	}
	return best;
}

static enum mr_rc
unknown_field(struct render *r, const char *name)
{
	const char *near = nearest(r->def, name);

	(void)mr_fail(r->err, MR_REFUSED, "%s has no field '%.80s'", r->def->name, name);
	if (near)
		return mr_hint(r->err, "did you mean '%s'?", near);
	return mr_hint(r->err, "'mailroom types show %s' tells its fields", r->def->name);
}

static enum mr_rc
take_given(struct render *r, const struct mr_header *one, bool force)
{
	size_t i = type_index(r->def, str_of(one->name));
	bool line = type_one_line(r->def) || (i != TYPE_NONE && r->def->fields[i].in_subject);
	struct mr_str value = line ? str_trim(str_of(one->value)) : str_of(one->value);
	const char *problem = line ? header_value_problem(value) : NULL;
	const char *copy;

	if (i == TYPE_NONE && (!force || r->extra_n == TYPE_FIELDS_MAX))
		return unknown_field(r, one->name);
	if (problem) {
		return mr_fail(r->err, MR_REFUSED,
		    "field '%s' of %s %s\na field is one line; what is longer goes into the text after the fields",
		    one->name, r->def->name, problem);
	}
	copy = type_dup(&r->values.own, value);
	if (!copy)
		return mr_nomem(r->err);
	if (i == TYPE_NONE) {
		r->extra[r->extra_n++] = (struct mr_header){ one->name, copy };
		return MR_OK;
	}
	if (r->by_field[i])
		return mr_fail(r->err, MR_REFUSED, "field '%s' of %s is given twice", one->name, r->def->name);
	r->by_field[i] = copy;
	return MR_OK;
}

static enum mr_rc
gather(struct render *r, const struct mr_header *given, size_t given_n, const struct type_context *context)
{
	const struct type_def *def = r->def;
	enum mr_rc rc = MR_OK;

	r->by_field = arena_alloc(&r->values.own, (def->fields_n + 1) * sizeof(*r->by_field));
	r->values.v = arena_alloc(&r->values.own, (def->fields_n + 1) * sizeof(*r->values.v));
	if (!r->by_field || !r->values.v)
		return mr_nomem(r->err);
	for (size_t i = 0; rc == MR_OK && i < given_n; i++)
		rc = take_given(r, &given[i], context->force);
	if (rc == MR_OK)
		rc = type_derive(def, context, false, r->by_field, &r->values.own, r->err);
	for (size_t i = 0; rc == MR_OK && i < def->fields_n; i++)
		if (r->by_field[i])
			r->values.v[r->values.n++] = (struct mr_header){ def->fields[i].name, r->by_field[i] };
	if (rc == MR_OK && !context->force && type_one_line(def))
		rc = type_validate(def, &r->values, r->err); /* before one broken field in the subject hides another */
	return rc;
}

/* ---- Bodies ---- */

static void
trim_end(struct buf *b, size_t from)
{
	while (b->len > from && strchr(" \t\r\n", b->ptr[b->len - 1]) && b->ptr[b->len - 1])
		b->ptr[--b->len] = '\0';
}

static size_t
add_fields(const struct render *r, struct buf *out)
{
	bool front = r->def->body == TYPE_BODY_FRONT;
	size_t n = 0;

	for (size_t i = 0; i < r->def->fields_n; i++) {
		const struct type_field *f = &r->def->fields[i];

		if (f->in_subject || !r->by_field[i] || (!r->by_field[i][0] && !front))
			continue;
		buf_addf(out, "%s: %s\n", f->name, r->by_field[i]);
		n++;
	}
	for (size_t i = 0; i < r->extra_n; i++, n++)
		buf_addf(out, "%s: %s\n", r->extra[i].name, r->extra[i].value);
	return n;
}

static void
add_text(const struct render *r, struct mr_str free_text, struct buf *out)
{
	size_t from = out->len;

	if (free_text.len > 0)
		buf_add(out, free_text);
	else
		type_fill(out, r->def->text, &r->values);
	trim_end(out, from);
}

static void
add_lines(const struct render *r, struct mr_str free_text, struct buf *out)
{
	bool front = r->def->body == TYPE_BODY_FRONT;
	size_t from = out->len;

	if (r->def->body != TYPE_BODY_TEXT) {
		if (r->def->intro[0]) {
			type_fill(out, r->def->intro, &r->values);
			buf_adds(out, "\n\n");
		}
		buf_adds(out, front ? "---\n" : "");
		if (add_fields(r, out) > 0 || front)
			buf_adds(out, front ? "---\n\n" : "\n");
	}
	add_text(r, free_text, out);
	trim_end(out, from);
	if (out->len > from)
		buf_addc(out, '\n');
}

/* ---- Looking at it as a receiver would ---- */

static bool
is_plain(enum type_kind kind)
{
	return kind != TYPE_OBJECT && kind != TYPE_OBJECTS && kind != TYPE_LIST;
}

static enum mr_rc
check_again(const struct render *r, struct mr_str subject, struct mr_str body)
{
	mr_auto(type_values_done) struct type_values read = { 0 };
	enum mr_rc rc = type_read(r->def, subject, body, &read, r->err);

	if (rc == MR_CORRUPT) /* nothing is broken yet: what was given cannot be said in this form */
		rc = r->err->code = MR_REFUSED;
	if (rc == MR_OK)
		rc = type_validate(r->def, &read, r->err);
	for (size_t i = 0; rc == MR_OK && i < r->def->fields_n; i++) {
		const struct type_field *f = &r->def->fields[i];
		const char *is = type_value(&read, f->name), *was = r->by_field[i];

		if (!is_plain(f->kind) || strcmp(is ? is : "", was ? was : "") == 0)
			continue;
		if (!was && !type_one_line(r->def)) /* inside an object that was given */
			continue;
		(void)mr_fail(
		    r->err, MR_REFUSED, "field '%s' of %s would not be read as it was given", f->name, r->def->name);
		rc = mr_hint(r->err, "'%s' is taken for something else where it stands", was ? was : is);
	}
	return rc;
}

enum mr_rc
type_render(const struct type_def *def, const struct mr_header *given, size_t given_n,
    const struct type_context *context, struct mr_str free_text, struct buf *ret_subject, struct buf *ret_body,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
	struct render r = { .def = def, .err = err };
	enum mr_rc rc = gather(&r, given, given_n, context);

	if (rc == MR_OK) {
		type_fill(&subject, def->subject, &r.values);
		trim_end(&subject, 0);
		if (def->body == TYPE_BODY_JSON)
			rc = type_json_render(def, r.by_field, r.extra, r.extra_n, &body, err);
		else
			add_lines(&r, free_text, &body);
	}
	if (rc == MR_OK && (!buf_ok(&subject) || !buf_ok(&body)))
		rc = mr_nomem(err);
	if (rc == MR_OK && !context->force)
		rc = check_again(&r, buf_str(&subject), buf_str(&body));
	type_values_done(&r.values);
	if (rc != MR_OK)
		return rc;
	buf_add(ret_subject, buf_str(&subject));
	buf_add(ret_body, buf_str(&body));
	return buf_ok(ret_subject) && buf_ok(ret_body) ? MR_OK : mr_nomem(err);
}
