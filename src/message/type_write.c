/* SPDX-License-Identifier: MIT */
/*
 * type_write.c - from fields to subject and body. Missing fields come from addresses, the clock, the answered message,
 * or the type's default. The result is read back before it is returned, because a receiver must see what the sender
 * gave.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "message/type_own.h"

/* ---- Deriving ---- */

struct source {
	const struct type_def *def;
	const struct type_values *values;
	const struct type_context *context;
	const struct type_field *field;
	bool received; /* use only addresses and defaults */
};

/* "gp" of "gp/polecats/nux". The mayor, the deacon and their agents belong to no rig. */
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
		return; /* a missing field of a received message can only follow from its addresses */
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
			buf_adds(out, s->values->v[i].value ? s->values->v[i].value : "");
		else
			add_word(s, name, out);
		if (out->len == before) { /* a partly filled form is dropped */
			buf_clear(out);
			return;
		}
	}
	buf_adds(out, buf_z(&form) + last);
}

/* May this field be derived? Not in each object of a list, not if its condition does not hold, not in a missing object
 * (half an object is not sent), and not in one that was given as JSON with that member. */
static bool
may_derive(const struct source *s)
{
	const struct type_def *def = s->def;
	const char *name = s->field->name, *dot = strrchr(name, '.');
	struct json_value object, value;
	bool holds = !s->field->only_field, parent = !dot;

	if (strstr(name, "[]"))
		return false;
	for (size_t i = 0; i < def->fields_n; i++) {
		const char *other = def->fields[i].name, *is = s->values->v[i].value;
		size_t n = strlen(other);

		if (!holds && strcmp(other, s->field->only_field) == 0)
			holds = is && strcmp(is, s->field->only_value) == 0;
		if (dot && str_eq(str_of(other), (struct mr_str){ name, (size_t)(dot - name) }))
			parent = def->fields[i].required || is;
		if (is && strncmp(name, other, n) == 0 && name[n] == '.' && json_whole(str_of(is), &object, NULL) &&
		    type_json_at(object, name + n + 1, &value))
			return false;
	}
	return holds && parent;
}

/* Fills in missing fields. */
static enum mr_rc
derive(const struct type_def *def, struct type_values *values, const struct type_context *context, bool received,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	for (size_t i = 0; i < def->fields_n; i++) {
		const struct type_field *f = &def->fields[i];
		const char **value = &values->v[i].value;
		struct source s = { def, values, context, f, received };
		struct mr_str rest = str_of(f->derive ? f->derive : ""), word;

		if ((*value && **value) || !may_derive(&s))
			continue;
		buf_clear(&out);
		while (out.len == 0 && str_word(&rest, " ", &word)) {
			if (!memchr(word.ptr, '{', word.len))
				add_word(&s, word, &out);
			else if (!received)
				add_template(&s, word, &out);
		}
		TRY(mr_got(buf_ok(&out), err));
		bool none = out.len == 0;

		if (none && f->kind == TYPE_LITERAL && !received)
			buf_adds(&out, f->choices.v[0]);
		else if (none && f->fallback)
			buf_adds(&out, f->fallback);
		else if (none)
			continue;
		*value = type_dup(&values->own, buf_str(&out));
		TRY(mr_got(buf_ok(&out) && *value, err));
	}
	return MR_OK;
}

enum mr_rc
type_complete(
    const struct type_def *def, const struct type_context *context, struct type_values *values, struct mr_error *err)
{
	const struct type_values given = *values;

	TRY(type_values_begin(def, values, err));
	for (size_t i = 0; i < def->fields_n; i++)
		values->v[i].value = type_value(&given, def->fields[i].name);
	for (size_t i = 0; i < given.n && values->n < def->fields_n + TYPE_FIELDS_MAX; i++)
		if (!type_field(def, given.v[i].name))
			values->v[values->n++] = given.v[i];
	TRY(derive(def, values, context, true, err));
	type_values_end(values);
	return MR_OK;
}

/* ---- JSON: members in the order of the type, then unknown fields ---- */

struct render {
	const struct type_def *def;
	struct type_values *values; /* with force also unknown fields */
	struct buf *out;            /* JSON */
	struct mr_error *err;
};

/* A value that does not fit its kind becomes a string, and the check reports it by the field's name. */
static void
write_text(struct buf *out, enum type_kind kind, const char *text)
{
	struct json_value value;
	bool is = json_whole(str_of(text), &value, NULL);

	if (kind == TYPE_LIST && !(is && value.kind == JSON_ARRAY)) {
		const char *before = "[";

		for (struct mr_str rest = str_of(text), one; str_cut(&rest, ',', &one); before = ",") {
			buf_adds(out, before);
			json_stringify(out, str_trim(one));
		}
		buf_adds(out, *before == '[' ? "[]" : "]");
		return;
	}
	/* Invalid objects are kept as they are, too: the check reports them. */
	if (kind == TYPE_NUMBER || kind == TYPE_BOOLEAN)
		is = is && type_json_fits(kind, value);
	else
		is = is && kind >= TYPE_LIST && kind != TYPE_TEXT;
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
	const char *text = strstr(field->name, "[]") ? NULL : r->values->v[i].value;
	struct json_value value = { 0 };
	bool nested = field->kind == TYPE_OBJECT || field->kind == TYPE_OBJECTS;
	bool has = text ? nested && json_whole(str_of(text), &value, NULL) : from && json_find(*from, last, &value),
	     below = false;
	size_t len = strlen(field->name);

	for (size_t k = 0; field->kind == TYPE_OBJECT && k < r->def->fields_n; k++) {
		const char *other = r->def->fields[k].name;

		below |= r->values->v[k].value && strncmp(other, field->name, len) == 0 && other[len] == '.';
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

/* The depth is that of the field names, at most TYPE_NEST_MAX. */
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
	for (size_t i = r->def->fields_n; !prefix[0] && i < r->values->n; i++) {
		begin_member(r->out, &comma, r->values->v[i].name);
		write_text(r->out, TYPE_JSON, r->values->v[i].value);
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
	return mr_hint(r->err, "'mailroom types show %s' lists its fields", r->def->name);
}

static enum mr_rc
take_given(struct render *r, const struct mr_header *one, bool force)
{
	size_t i = type_index(r->def, str_of(one->name));
	bool line = r->def->body != TYPE_BODY_JSON || (i != TYPE_NONE && r->def->fields[i].in_subject);
	struct mr_str value = line ? str_trim(str_of(one->value)) : str_of(one->value);
	const char *problem = line ? header_value_problem(value) : NULL;

	if (i == TYPE_NONE && (!force || r->values->n == r->def->fields_n + TYPE_FIELDS_MAX))
		return refuse_unknown(r, one->name);
	if (problem)
		return mr_fail(r->err, MR_REFUSED,
		    "field '%s' of %s %s\na field is one line; longer text goes after the fields", one->name,
		    r->def->name, problem);
	const char *copy = type_dup(&r->values->own, value);

	TRY(mr_got(copy, r->err));
	if (i == TYPE_NONE)
		r->values->v[r->values->n++] = (struct mr_header){ one->name, copy };
	else if (r->values->v[i].value)
		return mr_fail(r->err, MR_REFUSED, "field '%s' of %s is given twice", one->name, r->def->name);
	else
		r->values->v[i].value = copy;
	return MR_OK;
}

static void
trim_end(struct buf *b)
{
	if (b->len > 0)
		buf_cut(b, str_trim_end(buf_str(b)).len);
}

static void
add_lines(const struct render *r, struct mr_str free_text, struct buf *out)
{
	const struct type_def *def = r->def;
	bool front = def->body == TYPE_BODY_FRONT, any = front;

	if (def->body != TYPE_BODY_TEXT) {
		if (def->intro[0]) {
			type_fill(out, def->intro, r->values);
			buf_adds(out, "\n\n");
		}
		buf_adds(out, front ? "---\n" : "");
		for (size_t i = 0; i < def->fields_n; i++) {
			const char *value = r->values->v[i].value;

			if (def->fields[i].in_subject || !value || (!*value && !front))
				continue;
			buf_addf(out, "%s: %s\n", def->fields[i].name, value);
			any = true;
		}
		for (size_t i = def->fields_n; i < r->values->n; i++)
			buf_addf(out, "%s: %s\n", r->values->v[i].name, r->values->v[i].value);
		if (any || r->values->n > def->fields_n)
			buf_adds(out, front ? "---\n\n" : "\n");
	}
	if (free_text.len > 0)
		buf_add(out, free_text);
	else
		type_fill(out, def->text, r->values);
	trim_end(out);
	if (out->len > 0)
		buf_addc(out, '\n');
}

/* Reads it as a receiver would. */
static enum mr_rc
check_again(const struct render *r, struct mr_str subject, struct mr_str body)
{
	mr_auto(type_values_done) struct type_values read = { 0 };
	enum mr_rc rc = type_read(r->def, subject, body, &read, r->err);

	if (rc == MR_CORRUPT) /* nothing is broken yet: the given values cannot be expressed in this form */
		rc = r->err->code = MR_REFUSED;
	TRY(rc);
	TRY(type_validate(r->def, &read, r->err));
	for (size_t i = 0; i < r->def->fields_n; i++) {
		const struct type_field *f = &r->def->fields[i];
		const char *is = type_value(&read, f->name), *was = r->values->v[i].value;
		bool within = !was && r->def->body == TYPE_BODY_JSON; /* inside a given object */

		if (!within && f->kind != TYPE_OBJECT && f->kind != TYPE_OBJECTS && f->kind != TYPE_LIST &&
		    strcmp(is ? is : "", was ? was : "") != 0)
			return mr_fail(r->err, MR_REFUSED,
			    "field '%s' of %s would not be read back as it was given\n'%s' has another meaning at that place",
			    f->name, r->def->name, was ? was : is);
	}
	return MR_OK;
}

enum mr_rc
type_render(const struct type_def *def, const struct mr_header *given, size_t given_n,
    const struct type_context *context, struct mr_str free_text, struct buf *ret_subject, struct buf *ret_body,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
	mr_auto(type_values_done) struct type_values values = { 0 };
	struct render r = { .def = def, .values = &values, .out = &body, .err = err };

	TRY(type_values_begin(def, &values, err));
	for (size_t i = 0; i < given_n; i++)
		TRY(take_given(&r, &given[i], context->force));
	TRY(derive(def, &values, context, false, err));
	if (!context->force &&
	    def->body != TYPE_BODY_JSON) /* otherwise a broken field in the subject could hide another */
		TRY(type_validate(def, &values, err));
	type_fill(&subject, def->subject, &values);
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
