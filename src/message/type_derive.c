/* SPDX-License-Identifier: MIT */
/* type_derive.c - fields that nobody gave: from addresses, the clock, the message answered, or the type's default. */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "message/address.h"
#include "message/type_own.h"

struct source {
	const struct type_def *def;
	const struct type_context *context;
	const char *const *by_field;
	const struct type_field *field;
	bool received;
};

static bool
condition_holds(const struct type_def *def, const char *const *by_field, const char *field, const char *value)
{
	for (size_t i = 0; i < def->fields_n; i++)
		if (strcmp(def->fields[i].name, field) == 0)
			return by_field[i] && strcmp(by_field[i], value) == 0;
	return false;
}

/* ---- Parts of an address ---- */

static struct mr_str
agent_of(const char *address)
{
	struct mr_str agent, room;

	address_split(str_of(address ? address : ""), &agent, &room);
	if (agent.len > 1 && agent.ptr[agent.len - 1] == '/')
		agent.len--;
	return agent;
}

/* "gp" of "gp/polecats/nux". The mayor and the deacon, and who works for them, belong to no rig. */
static struct mr_str
rig_of(const char *address)
{
	struct mr_str agent = agent_of(address);
	const char *slash = agent.len > 0 ? memchr(agent.ptr, '/', agent.len) : NULL;
	struct mr_str rig = { agent.ptr, slash ? (size_t)(slash - agent.ptr) : 0 };

	if (str_eq(rig, STR("mayor")) || str_eq(rig, STR("deacon")))
		rig.len = 0;
	return rig;
}

static struct mr_str
name_of(const char *address)
{
	struct mr_str agent = agent_of(address);
	size_t at = agent.len;

	while (at > 0 && agent.ptr[at - 1] != '/')
		at--;
	return (struct mr_str){ agent.ptr + at, agent.len - at };
}

/* ---- One word of "derive" ---- */

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

static void
add_new(const struct source *s, struct mr_str word, struct buf *out)
{
	if (str_eq(word, STR("now"))) {
		char now[RFC3339_LEN + 1];

		time_rfc3339(s->context->now_ms, now);
		buf_adds(out, now);
	} else if (str_eq(word, STR("now-ms"))) {
		buf_addf(out, "%lld", (long long)s->context->now_ms);
	} else if (str_eq(word, STR("id")) || str_starts(word, "id:")) {
		char id[MR_ID_LEN + 1];

		id_new(id);
		if (word.len > 3)
			buf_add(out, (struct mr_str){ word.ptr + 3, word.len - 3 });
		buf_adds(out, id);
	} else if (str_eq(word, STR("request"))) {
		add_request(s, str_of(s->field->name), out);
	} else if (str_starts(word, "request:")) {
		add_request(s, (struct mr_str){ word.ptr + 8, word.len - 8 }, out);
	}
}

/* What a message that was received lacks, only its addresses can tell. */
static void
add_word(const struct source *s, struct mr_str word, struct buf *out)
{
	const char *sender = s->context->sender;

	if (str_eq(word, STR("sender"))) {
		buf_adds(out, sender ? sender : "");
	} else if (str_eq(word, STR("recipient"))) {
		buf_adds(out, s->context->recipient ? s->context->recipient : "");
	} else if (str_eq(word, STR("rig"))) {
		struct mr_str rig = rig_of(sender);

		buf_add(out, rig.len > 0 ? rig : rig_of(s->context->recipient));
	} else if (str_eq(word, STR("name"))) {
		buf_add(out, name_of(sender));
	} else if (!s->received) {
		add_new(s, word, out);
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

static const char *
derive_one(const struct source *s, struct arena **own, struct buf *out)
{
	struct mr_str rest = str_of(s->field->derive ? s->field->derive : "");

	buf_clear(out);
	while (rest.len > 0 && out->len == 0) {
		size_t n = 0;

		while (n < rest.len && rest.ptr[n] != ' ')
			n++;
		struct mr_str word = { rest.ptr, n };

		rest = str_trim((struct mr_str){ rest.ptr + n, rest.len - n });
		if (!memchr(word.ptr, '{', word.len))
			add_word(s, word, out);
		else if (!s->received)
			add_template(s, word, out);
	}
	return out->len > 0 ? type_dup(own, buf_str(out)) : NULL;
}

/* Is the member in an object that was given as JSON? */
static bool
given_inside(const struct type_def *def, const char *const *by_field, const char *name)
{
	struct json_value object, value;
	const char *problem;

	for (size_t i = 0; i < def->fields_n; i++) {
		size_t n = strlen(def->fields[i].name);

		if (by_field[i] && strncmp(name, def->fields[i].name, n) == 0 && name[n] == '.' &&
		    json_whole(str_of(by_field[i]), &object, &problem) && type_json_at(object, name + n + 1, &value))
			return true;
	}
	return false;
}

/* A member is filled in only where its object is: nobody gets half an object. */
static bool
parent_is_there(const struct type_def *def, const char *const *by_field, const char *name)
{
	const char *dot = strrchr(name, '.');

	if (!dot)
		return true;
	for (size_t i = 0; i < def->fields_n; i++)
		if (str_eq(str_of(def->fields[i].name), (struct mr_str){ name, (size_t)(dot - name) }))
			return def->fields[i].required || by_field[i];
	return false;
}

enum mr_rc
type_derive(const struct type_def *def, const struct type_context *context, bool received, const char **by_field,
    struct arena **own, struct mr_error *err)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	for (size_t i = 0; i < def->fields_n; i++) {
		const struct type_field *f = &def->fields[i];
		struct source s = { def, context, by_field, f, received };

		if ((by_field[i] && by_field[i][0]) || strstr(f->name, "[]") ||
		    (f->only_field && !condition_holds(def, by_field, f->only_field, f->only_value)) ||
		    !parent_is_there(def, by_field, f->name) || given_inside(def, by_field, f->name))
			continue;
		const char *value = derive_one(&s, own, &out);

		if (!value && f->kind == TYPE_LITERAL && !received)
			value = f->choices.v[0];
		if (!value)
			value = f->fallback;
		if (value)
			by_field[i] = value;
		if (!buf_ok(&out))
			return mr_nomem(err);
	}
	return MR_OK;
}

/* ---- For messages that were received ---- */

static enum mr_rc
put_together(const struct type_def *def, const char *const *by_field, struct type_values *values, struct mr_error *err)
{
	struct mr_header *v = arena_alloc(&values->own, (def->fields_n + values->n + 1) * sizeof(*v));
	size_t n = 0;

	if (!v)
		return mr_nomem(err);
	for (size_t i = 0; i < def->fields_n; i++) {
		if (!by_field[i])
			continue;
		v[n].name = arena_dup(&values->own, str_of(def->fields[i].name));
		v[n].value = arena_dup(&values->own, str_of(by_field[i]));
		if (!v[n].name || !v[n].value)
			return mr_nomem(err);
		n++;
	}
	for (size_t i = 0; i < values->n; i++)
		if (type_index(def, str_of(values->v[i].name)) == TYPE_NONE)
			v[n++] = values->v[i];
	values->v = v;
	values->n = n;
	return MR_OK;
}

enum mr_rc
type_complete(
    const struct type_def *def, const struct type_context *context, struct type_values *values, struct mr_error *err)
{
	const char **by_field = arena_alloc(&values->own, (def->fields_n + 1) * sizeof(*by_field));
	enum mr_rc rc;

	if (!by_field)
		return mr_nomem(err);
	for (size_t i = 0; i < def->fields_n; i++)
		by_field[i] = type_value(values, def->fields[i].name);
	rc = type_derive(def, context, true, by_field, &values->own, err);
	return rc == MR_OK ? put_together(def, by_field, values, err) : rc;
}
