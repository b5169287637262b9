/* SPDX-License-Identifier: MIT */
/*
 * type_write.c - from fields to subject and body. Fields that nobody gave come from addresses, the clock, the message
 * answered, or the type's default. What was rendered is read again before it is given away: what a receiver would see
 * must be what the sender gave.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "message/type_own.h"

/* ---- Deriving ---- */

struct source {
	const struct type_def *def;
	const struct type_context *context;
	const char *const *by_field; /* values of def->fields; NULL: none */
	const struct type_field *field;
	bool received; /* only from addresses and defaults */
};

/* "gp" of "gp/polecats/nux". The mayor and the deacon, and who works for them, belong to no rig. */
static struct mr_str
rig_of(const char *address)
{
	struct mr_str agent = type_agent_of(address);
	const char *slash = agent.len > 0 ? memchr(agent.ptr, '/', agent.len) : NULL;
	struct mr_str rig = { agent.ptr, slash ? (size_t)(slash - agent.ptr) : 0 };

	if (str_eq(rig, STR("mayor")) || str_eq(rig, STR("deacon")))
		rig.len = 0;
	return rig;
}

static void
add_request(const struct source *s, struct mr_str name, struct buf *out)
{
	const struct type_values *request = s->context->request;

	for (size_t i = 0; request && i < request->n; i++)
		if (type_key_same(str_of(request->v[i].name), name)) {
			buf_adds(out, request->v[i].value);
			return;
		}
}

/* One word of "derive". */
static void
add_word(const struct source *s, struct mr_str word, struct buf *out)
{
	const char *sender = s->context->sender ? s->context->sender : "";
	const char *recipient = s->context->recipient ? s->context->recipient : "";
	struct mr_str agent = type_agent_of(sender);
	char text[RFC3339_LEN + MR_ID_LEN + 1];

	if (str_eq(word, STR("sender"))) {
		buf_adds(out, sender);
	} else if (str_eq(word, STR("recipient"))) {
		buf_adds(out, recipient);
	} else if (str_eq(word, STR("rig"))) {
		buf_add(out, rig_of(sender).len > 0 ? rig_of(sender) : rig_of(recipient));
	} else if (str_eq(word, STR("name"))) {
		const char *slash = agent.len > 0 ? memrchr(agent.ptr, '/', agent.len) : NULL;
		size_t from = slash ? (size_t)(slash - agent.ptr) + 1 : 0;

		buf_add(out, str_from(agent, from));
	} else if (s->received) {
		return; /* what a message that was received lacks, only its addresses can tell */
	} else if (str_eq(word, STR("now"))) {
		time_rfc3339(s->context->now_ms, text);
		buf_adds(out, text);
	} else if (str_eq(word, STR("now-ms"))) {
		buf_addf(out, "%lld", (long long)s->context->now_ms);
	} else if (str_eq(word, STR("id")) || str_starts(word, "id:")) {
		id_new(text);
		buf_addf(out, "%.*s%s", word.len > 3 ? (int)word.len - 3 : 0, word.len > 3 ? word.ptr + 3 : "", text);
	} else if (str_eq(word, STR("request"))) {
		add_request(s, str_of(s->field->name), out);
	} else if (str_starts(word, "request:")) {
		add_request(s, str_from(word, 8), out);
	}
}

static void
add_template(const struct source *s, struct mr_str word, struct buf *out)
{
	mr_auto(buf_done) struct buf form = BUF_INIT;
	size_t at = 0, last = 0, from;
	struct mr_str name;

	buf_add(&form, word);
	for (; type_next_brace(buf_z(&form), &at, &from, &name); last = at) {
		size_t before, i = type_index(s->def, name);

		buf_add(out, (struct mr_str){ form.ptr + last, from - last });
		before = out->len;
		if (i != TYPE_NONE)
			buf_adds(out, s->by_field[i] ? s->by_field[i] : "");
		else
			add_word(s, name, out);
		if (out->len == before) { /* half a form is nothing */
			buf_clear(out);
			return;
		}
	}
	buf_adds(out, buf_z(&form) + last);
}

/* Is there a place for it? Not in each object of a list, not where its condition does not hold, not in an object that
 * is not there (nobody gets half an object) or that was given as JSON and has the member. */
static bool
may_derive(const struct source *s)
{
	const struct type_def *def = s->def;
	const char *name = s->field->name, *dot = strrchr(name, '.'), *problem;
	struct json_value object, value;
	bool holds = !s->field->only_field, parent = !dot;

	if (strstr(name, "[]"))
		return false;
	for (size_t i = 0; i < def->fields_n; i++) {
		const char *other = def->fields[i].name, *is = s->by_field[i];
		size_t n = strlen(other);

		if (!holds && strcmp(other, s->field->only_field) == 0)
			holds = is && strcmp(is, s->field->only_value) == 0;
		if (dot && str_eq(str_of(other), (struct mr_str){ name, (size_t)(dot - name) }))
			parent = def->fields[i].required || is;
		if (is && strncmp(name, other, n) == 0 && name[n] == '.' && json_whole(str_of(is), &object, &problem) &&
		    type_json_at(object, name + n + 1, &value))
			return false;
	}
	return holds && parent;
}

/* Fills what is not given of by_field. */
static enum mr_rc
derive(const struct type_def *def, const struct type_context *context, bool received, const char **by_field,
    struct arena **own, struct mr_error *err)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	for (size_t i = 0; i < def->fields_n; i++) {
		const struct type_field *f = &def->fields[i];
		struct source s = { def, context, by_field, f, received };
		struct mr_str rest = str_of(f->derive ? f->derive : ""), word;
		const char *value = NULL;

		if ((by_field[i] && by_field[i][0]) || !may_derive(&s))
			continue;
		buf_clear(&out);
		while (out.len == 0 && str_word(&rest, " ", &word)) {
			if (!memchr(word.ptr, '{', word.len))
				add_word(&s, word, &out);
			else if (!received)
				add_template(&s, word, &out);
		}
		if (out.len > 0)
			value = type_dup(own, buf_str(&out));
		if (!value && f->kind == TYPE_LITERAL && !received)
			value = f->choices.v[0];
		if (!value)
			value = f->fallback;
		if (value)
			by_field[i] = value;
		TRY(mr_got(buf_ok(&out), err));
	}
	return MR_OK;
}

enum mr_rc
type_complete(
    const struct type_def *def, const struct type_context *context, struct type_values *values, struct mr_error *err)
{
	const char **by_field = arena_alloc(&values->own, (def->fields_n + 1) * sizeof(*by_field));
	struct mr_header *v = arena_alloc(&values->own, (def->fields_n + values->n + 1) * sizeof(*v));
	size_t n = 0;

	TRY(mr_got(by_field && v, err));
	for (size_t i = 0; i < def->fields_n; i++)
		by_field[i] = type_value(values, def->fields[i].name);
	TRY(derive(def, context, true, by_field, &values->own, err));
	for (size_t i = 0; i < def->fields_n; i++) {
		if (!by_field[i])
			continue;
		v[n].name = arena_dup(&values->own, str_of(def->fields[i].name));
		v[n].value = arena_dup(&values->own, str_of(by_field[i]));
		TRY(mr_got(v[n].name && v[n].value, err));
		n++;
	}
	for (size_t i = 0; i < values->n; i++)
		if (!type_field(def, values->v[i].name))
			v[n++] = values->v[i];
	values->v = v;
	values->n = n;
	return MR_OK;
}

/* ---- JSON: members in the order of the type, then fields that it does not know ---- */

struct render {
	const struct type_def *def;
	const char **by_field;
	struct type_values values;               /* for the forms */
	struct mr_header extra[TYPE_FIELDS_MAX]; /* fields that the type does not know, with force */
	size_t extra_n;
	struct buf *out; /* JSON */
	struct mr_error *err;
};

static bool
whole(const char *text, struct json_value *ret)
{
	const char *problem;

	return text && json_whole(str_of(text), ret, &problem);
}

/* What does not fit its kind becomes a string, and the check says so by the field's name. */
static void
write_text(struct buf *out, enum type_kind kind, const char *text)
{
	struct json_value value;
	bool is = whole(text, &value);

	if (kind == TYPE_LIST && !(is && value.kind == JSON_ARRAY)) {
		const char *before = "[";

		for (struct mr_str rest = str_of(text), one; str_cut(&rest, ',', &one); before = ",") {
			buf_adds(out, before);
			json_stringify(out, str_trim(one));
		}
		buf_adds(out, *before == '[' ? "[]" : "]");
		return;
	}
	if (kind == TYPE_NUMBER)
		is = is && value.kind == JSON_NUMBER;
	else if (kind == TYPE_BOOLEAN)
		is = is && (value.kind == JSON_TRUE || value.kind == JSON_FALSE);
	else
		is = is && (kind == TYPE_LIST || kind == TYPE_JSON || kind == TYPE_OBJECT || kind == TYPE_OBJECTS);
	if (is)
		buf_add(out, value.raw);
	else
		json_stringify(out, str_of(text));
}

static void
begin_member(struct buf *out, bool *comma, const char *name)
{
	if (*comma)
		buf_addc(out, ',');
	json_stringify(out, str_of(name));
	buf_addc(out, ':');
	*comma = true;
}

static void write_object(struct render *r, const char *prefix, const struct json_value *from);

/* Writes nothing if it has no value. */
static void
write_member(struct render *r, size_t i, const struct json_value *from, const char *last, bool *comma)
{
	const struct type_field *field = &r->def->fields[i];
	const char *text = strstr(field->name, "[]") ? NULL : r->by_field[i];
	struct json_value value = { 0 };
	bool nested = field->kind == TYPE_OBJECT || field->kind == TYPE_OBJECTS;
	bool has = text ? nested && whole(text, &value) : from && json_find(*from, last, &value), below = false;
	size_t len = strlen(field->name);

	for (size_t k = 0; field->kind == TYPE_OBJECT && k < r->def->fields_n; k++) {
		const char *other = r->def->fields[k].name;

		below |= r->by_field[k] && strncmp(other, field->name, len) == 0 && other[len] == '.';
	}
	if (!has && !text && !below)
		return;
	begin_member(r->out, comma, last);
	if (field->kind == TYPE_OBJECT && (has ? value.kind == JSON_OBJECT : !text))
		write_object(r, field->name, has ? &value : NULL);
	else if (field->kind == TYPE_OBJECTS && has && value.kind == JSON_ARRAY) {
		mr_auto(buf_done) struct buf prefix = BUF_INIT;
		const char *before = "[";
		struct json_value item;

		buf_addf(&prefix, "%s[]", field->name);
		for (size_t at = 0; json_item(value, &at, &item); before = ",") {
			buf_adds(r->out, before);
			if (item.kind == JSON_OBJECT)
				write_object(r, buf_z(&prefix), &item);
			else
				buf_add(r->out, item.raw);
		}
		buf_adds(r->out, *before == '[' ? "[]" : "]");
	} else if (has)
		buf_add(r->out, value.raw);
	else
		write_text(r->out, field->kind, text);
}

/* As deep as the names of the fields, which is TYPE_NEST_MAX. */
static void
write_object(struct render *r, const char *prefix, const struct json_value *from)
{
	struct json_value key, value;
	bool comma = false;
	const char *last;

	buf_addc(r->out, '{');
	for (size_t i = 0; i < r->def->fields_n; i++)
		if (type_is_member(r->def->fields[i].name, prefix, &last) && !r->def->fields[i].in_subject)
			write_member(r, i, from, last, &comma);
	for (size_t at = 0; from && json_member(*from, &at, &key, &value);) {
		bool is_field = false;

		for (size_t i = 0; i < r->def->fields_n && !is_field; i++)
			is_field = type_is_member(r->def->fields[i].name, prefix, &last) && json_key_is(key, last);
		if (is_field)
			continue;
		buf_adds(r->out, comma ? "," : "");
		buf_add(r->out, key.raw);
		buf_addc(r->out, ':');
		buf_add(r->out, value.raw);
		comma = true;
	}
	for (size_t i = 0; !prefix[0] && i < r->extra_n; i++) {
		begin_member(r->out, &comma, r->extra[i].name);
		write_text(r->out, TYPE_JSON, r->extra[i].value);
	}
	buf_addc(r->out, '}');
}

/* ---- Rendering ---- */

static enum mr_rc
refuse_unknown(struct render *r, const char *name)
{
	const char *near = NULL;
	size_t limit = 3;

	for (size_t i = 0; i < r->def->fields_n; i++) {
		size_t d = edit_distance(name, r->def->fields[i].name, limit);

		if (d <= limit && d > 0) {
			near = r->def->fields[i].name;
			limit = d - 1;
		}
	}
	(void)mr_fail(r->err, MR_REFUSED, "%s has no field '%.80s'", r->def->name, name);
	if (near)
		return mr_hint(r->err, "did you mean '%s'?", near);
	return mr_hint(r->err, "'mailroom types show %s' tells its fields", r->def->name);
}

static enum mr_rc
take_given(struct render *r, const struct mr_header *one, bool force)
{
	size_t i = type_index(r->def, str_of(one->name));
	bool line = r->def->body != TYPE_BODY_JSON || (i != TYPE_NONE && r->def->fields[i].in_subject);
	struct mr_str value = line ? str_trim(str_of(one->value)) : str_of(one->value);
	const char *problem = line ? header_value_problem(value) : NULL;

	if (i == TYPE_NONE && (!force || r->extra_n == TYPE_FIELDS_MAX))
		return refuse_unknown(r, one->name);
	if (problem)
		return mr_fail(r->err, MR_REFUSED,
		    "field '%s' of %s %s\na field is one line; what is longer goes into the text after the fields",
		    one->name, r->def->name, problem);
	const char *copy = type_dup(&r->values.own, value);

	TRY(mr_got(copy, r->err));
	if (i == TYPE_NONE)
		r->extra[r->extra_n++] = (struct mr_header){ one->name, copy };
	else if (r->by_field[i])
		return mr_fail(r->err, MR_REFUSED, "field '%s' of %s is given twice", one->name, r->def->name);
	else
		r->by_field[i] = copy;
	return MR_OK;
}

static enum mr_rc
gather(struct render *r, const struct mr_header *given, size_t given_n, const struct type_context *context)
{
	const struct type_def *def = r->def;

	r->by_field = arena_alloc(&r->values.own, (def->fields_n + 1) * sizeof(*r->by_field));
	r->values.v = arena_alloc(&r->values.own, (def->fields_n + 1) * sizeof(*r->values.v));
	TRY(mr_got(r->by_field && r->values.v, r->err));
	for (size_t i = 0; i < given_n; i++)
		TRY(take_given(r, &given[i], context->force));
	TRY(derive(def, context, false, r->by_field, &r->values.own, r->err));
	for (size_t i = 0; i < def->fields_n; i++)
		if (r->by_field[i])
			r->values.v[r->values.n++] = (struct mr_header){ def->fields[i].name, r->by_field[i] };
	if (context->force || def->body == TYPE_BODY_JSON)
		return MR_OK;
	return type_validate(def, &r->values, r->err); /* before one broken field in the subject hides another */
}

static void
trim_end(struct buf *b)
{
	while (b->len > 0 && strchr(" \t\r\n", b->ptr[b->len - 1]) && b->ptr[b->len - 1])
		b->ptr[--b->len] = '\0';
}

static void
add_lines(const struct render *r, struct mr_str free_text, struct buf *out)
{
	const struct type_def *def = r->def;
	bool front = def->body == TYPE_BODY_FRONT, any = front;

	if (def->body != TYPE_BODY_TEXT) {
		if (def->intro[0]) {
			type_fill(out, def->intro, &r->values);
			buf_adds(out, "\n\n");
		}
		buf_adds(out, front ? "---\n" : "");
		for (size_t i = 0; i < def->fields_n; i++) {
			const char *value = r->by_field[i];

			if (def->fields[i].in_subject || !value || (!*value && !front))
				continue;
			buf_addf(out, "%s: %s\n", def->fields[i].name, value);
			any = true;
		}
		for (size_t i = 0; i < r->extra_n; i++)
			buf_addf(out, "%s: %s\n", r->extra[i].name, r->extra[i].value);
		if (any || r->extra_n > 0)
			buf_adds(out, front ? "---\n\n" : "\n");
	}
	if (free_text.len > 0)
		buf_add(out, free_text);
	else
		type_fill(out, def->text, &r->values);
	trim_end(out);
	if (out->len > 0)
		buf_addc(out, '\n');
}

/* Looks at it as a receiver would. */
static enum mr_rc
check_again(const struct render *r, struct mr_str subject, struct mr_str body)
{
	mr_auto(type_values_done) struct type_values read = { 0 };
	enum mr_rc rc = type_read(r->def, subject, body, &read, r->err);

	if (rc == MR_CORRUPT) /* nothing is broken yet: what was given cannot be said in this form */
		rc = r->err->code = MR_REFUSED;
	TRY(rc);
	TRY(type_validate(r->def, &read, r->err));
	for (size_t i = 0; i < r->def->fields_n; i++) {
		const struct type_field *f = &r->def->fields[i];
		const char *is = type_value(&read, f->name), *was = r->by_field[i];
		bool within = !was && r->def->body == TYPE_BODY_JSON; /* inside an object that was given */

		if (!within && f->kind != TYPE_OBJECT && f->kind != TYPE_OBJECTS && f->kind != TYPE_LIST &&
		    strcmp(is ? is : "", was ? was : "") != 0)
			return mr_fail(r->err, MR_REFUSED,
			    "field '%s' of %s would not be read as it was given\n"
			    "'%s' is taken for something else where it stands",
			    f->name, r->def->name, was ? was : is);
	}
	return MR_OK;
}

static void
render_done(struct render *r)
{
	type_values_done(&r->values);
}

enum mr_rc
type_render(const struct type_def *def, const struct mr_header *given, size_t given_n,
    const struct type_context *context, struct mr_str free_text, struct buf *ret_subject, struct buf *ret_body,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
	mr_auto(render_done) struct render r = { .def = def, .out = &body, .err = err };

	TRY(gather(&r, given, given_n, context));
	type_fill(&subject, def->subject, &r.values);
	trim_end(&subject);
	if (def->body == TYPE_BODY_JSON)
		write_object(&r, "", NULL);
	else
		add_lines(&r, free_text, &body);
	TRY(mr_got(buf_ok(&subject) && buf_ok(&body), err));
	if (!context->force)
		TRY(check_again(&r, buf_str(&subject), buf_str(&body)));
	buf_add(ret_subject, buf_str(&subject));
	buf_add(ret_body, buf_str(&body));
	return buf_ok(ret_subject) && buf_ok(ret_body) ? MR_OK : mr_nomem(err);
}
