/* SPDX-License-Identifier: MIT */
/* type_parse.c - reading a type file. See type.h. */
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "message/front.h"
#include "message/type_own.h"

enum { LINE_MAX_LEN = 4096, ROUTES_MAX = 32, TIME_LIMIT_MS = 60000 };

struct parser {
	struct type_def *def;
	struct buf intro, text; /* gathered from their lines */
	bool has_intro, has_text;
	unsigned seen; /* bits: settings that may stand once */
};

/* Each setting returns NULL, or what is wrong as the end of a sentence. */
typedef const char *set_fn(struct parser *p, struct mr_str value);

static const char no_memory[] = "does not fit into memory";

static const char *
keep(struct parser *p, struct mr_str value, const char **ret)
{
	char *copy = arena_dup(&p->def->own, value);

	if (!copy)
		return no_memory;
	*ret = copy;
	return NULL;
}

static const char *
keep_something(struct parser *p, struct mr_str value, const char **ret)
{
	return value.len > 0 ? keep(p, value, ret) : "is empty";
}

static const char *
set_type(struct parser *p, struct mr_str value)
{
	return str_eq(value, str_of(p->def->name)) ? NULL : "is not the name of the file";
}

static const char *
set_summary(struct parser *p, struct mr_str value)
{
	return keep(p, value, &p->def->summary);
}

static const char *
set_subject(struct parser *p, struct mr_str value)
{
	return keep_something(p, value, &p->def->subject);
}

static const char *
set_route(struct parser *p, struct mr_str value)
{
	struct mr_names *routes = &p->def->routes;
	const char *arrow = value.len > 0 ? memmem(value.ptr, value.len, "->", 2) : NULL;

	if (!arrow || arrow == value.ptr || arrow + 2 == value.ptr + value.len)
		return "is not 'SENDER -> RECEIVER'";
	if (routes->n == ROUTES_MAX)
		return "is one route too many";
	if (!routes->v && !(routes->v = arena_alloc(&p->def->own, ROUTES_MAX * sizeof(*routes->v))))
		return no_memory;
	if (!(routes->v[routes->n] = arena_dup(&p->def->own, value)))
		return no_memory;
	routes->n++;
	return NULL;
}

/* One of some words; the index goes to *ret. */
static const char *
choose(struct mr_str value, const char *const *words, size_t n, size_t *ret, const char *problem)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(value, str_of(words[i]))) {
			*ret = i;
			return NULL;
		}
	return problem;
}

static const char *
set_via(struct parser *p, struct mr_str value)
{
	static const char *const words[] = { "mail", "nudge" };
	size_t i = 0;
	const char *problem = choose(value, words, 2, &i, "is neither mail nor nudge");

	p->def->nudge = i == 1;
	return problem;
}

static const char *
set_priority(struct parser *p, struct mr_str value)
{
	static const char *const words[] = { "low", "normal", "high", "urgent" };
	size_t i = 1;
	const char *problem = choose(value, words, 4, &i, "is none of low, normal, high, urgent");

	p->def->priority = (enum mr_priority)((int)i - 1);
	return problem;
}

static const char *
set_body(struct parser *p, struct mr_str value)
{
	static const char *const words[] = { "lines", "json", "text", "front" };
	size_t i = 0;
	const char *problem = choose(value, words, 4, &i, "is none of lines, json, text, front");

	if (p->def->fields_n > 0)
		return "must stand before the fields";
	p->def->body = (enum type_body)i;
	return problem;
}

static const char *
set_receive(struct parser *p, struct mr_str value)
{
	static const char *const words[] = { "all", "type" };
	size_t i = 0;
	const char *problem = choose(value, words, 2, &i, "is neither all nor type");

	p->def->receive_type = i == 1;
	return problem;
}

static const char *
set_control(struct parser *p, struct mr_str value)
{
	p->def->routed = str_eq(value, STR("routed"));
	return p->def->routed ? NULL : "is not routed, the only sort there is";
}

static const char *
add_line(struct buf *out, bool *has, struct mr_str value)
{
	if (*has)
		buf_addc(out, '\n');
	*has = true;
	buf_add(out, value);
	return buf_ok(out) ? NULL : no_memory;
}

static const char *
set_intro(struct parser *p, struct mr_str value)
{
	return add_line(&p->intro, &p->has_intro, value);
}

static const char *
set_text(struct parser *p, struct mr_str value)
{
	return add_line(&p->text, &p->has_text, value);
}

static const char *
set_field(struct parser *p, struct mr_str value)
{
	struct type_def *def = p->def;
	struct type_field field = { 0 };

	if (def->fields_n == TYPE_FIELDS_MAX)
		return "is one field too many";
	const char *problem = type_field_parse(def, value, &field);

	if (problem)
		return problem;
	if (!def->fields && !(def->fields = arena_alloc(&def->own, TYPE_FIELDS_MAX * sizeof(*def->fields))))
		return no_memory;
	def->fields[def->fields_n++] = field;
	return NULL;
}

static const char *
set_also(struct parser *p, struct mr_str value)
{
	struct type_def *def = p->def;
	const char *equals = value.len > 0 ? memchr(value.ptr, '=', value.len) : NULL;
	struct mr_header also = { 0 };

	if (!equals)
		return "is not 'SPELLING = FIELD'";
	size_t at = (size_t)(equals - value.ptr);
	const char *problem = keep_something(p, str_trim((struct mr_str){ value.ptr, at }), &also.name);

	if (!problem)
		problem = keep_something(p, str_trim((struct mr_str){ equals + 1, value.len - at - 1 }), &also.value);
	if (problem)
		return problem;
	if (def->also_n == TYPE_FIELDS_MAX)
		return "is one spelling too many";
	if (!def->also && !(def->also = arena_alloc(&def->own, TYPE_FIELDS_MAX * sizeof(*def->also))))
		return no_memory;
	def->also[def->also_n++] = also;
	return NULL;
}

static const char *
set_handler(struct parser *p, struct mr_str value)
{
	return keep_something(p, value, &p->def->handler);
}

static const char *
set_time_limit(struct parser *p, struct mr_str value)
{
	bool fine = duration_parse(value, &p->def->time_limit_ms) && p->def->time_limit_ms > 0;

	return fine ? NULL : "is no time such as 60s or 5m";
}

static const char *
set_cooldown(struct parser *p, struct mr_str value)
{
	return duration_parse(value, &p->def->cooldown_ms) ? NULL : "is no time such as 60s or 5m";
}

static const char *
set_cooldown_key(struct parser *p, struct mr_str value)
{
	return keep_something(p, value, &p->def->cooldown_key);
}

static const char *
set_escalate_after(struct parser *p, struct mr_str value)
{
	uint64_t n;

	if (!str_to_u64(value, &n) || n == 0 || n > 1000)
		return "is no number from 1 to 1000";
	p->def->escalate_after = (unsigned)n;
	return NULL;
}

static const char *
set_escalate_to(struct parser *p, struct mr_str value)
{
	return keep_something(p, value, &p->def->escalate_to);
}

static const char *
set_earlier_life(struct parser *p, struct mr_str value)
{
	static const char *const words[] = { "aside", "act" };
	size_t i = 0;
	const char *problem = choose(value, words, 2, &i, "is neither act nor aside");

	p->def->any_life = i == 1;
	return problem;
}

static const struct setting {
	const char *name;
	set_fn *set;
	bool many;
} settings[] = {
	{ "Type", set_type, false },
	{ "Summary", set_summary, false },
	{ "Subject", set_subject, false },
	{ "Route", set_route, true },
	{ "Via", set_via, false },
	{ "Priority", set_priority, false },
	{ "Body", set_body, false },
	{ "Receive", set_receive, false },
	{ "Intro", set_intro, true },
	{ "Field", set_field, true },
	{ "Also", set_also, true },
	{ "Text", set_text, true },
	{ "Control", set_control, false },
	{ "Handler", set_handler, false },
	{ "Time-Limit", set_time_limit, false },
	{ "Cooldown", set_cooldown, false },
	{ "Cooldown-Key", set_cooldown_key, false },
	{ "Escalate-After", set_escalate_after, false },
	{ "Escalate-To", set_escalate_to, false },
	{ "Earlier-Life", set_earlier_life, false },
};

/* Blanks within Intro: and Text: are kept, but for the one behind the colon. */
static struct mr_str
value_of(const struct setting *s, struct mr_str raw)
{
	struct mr_str trimmed = str_trim(raw);

	if (s->set != set_intro && s->set != set_text)
		return trimmed;
	if (raw.len > 0 && raw.ptr[0] == ' ') {
		raw.ptr++;
		raw.len--;
	}
	while (raw.len > 0 && (raw.ptr[raw.len - 1] == ' ' || raw.ptr[raw.len - 1] == '\t'))
		raw.len--;
	return raw;
}

static const char *
parse_line(struct parser *p, struct mr_str line)
{
	const char *colon = memchr(line.ptr, ':', line.len);

	if (line.len > LINE_MAX_LEN)
		return "is longer than 4096 bytes";
	if (!header_value_valid(line))
		return "has bytes that are no text";
	if (!colon)
		return "is no 'Name: value' line";
	struct mr_str name = str_trim((struct mr_str){ line.ptr, (size_t)(colon - line.ptr) });

	for (unsigned i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		const struct setting *s = &settings[i];

		if (!str_caseeq(name, str_of(s->name)))
			continue;
		if (!s->many && p->seen & 1U << i)
			return "stands there twice";
		p->seen |= 1U << i;
		return s->set(p, value_of(s, (struct mr_str){ colon + 1, (size_t)(line.ptr + line.len - colon) - 1 }));
	}
	return "is no setting of a type";
}

static enum mr_rc
parse_lines(struct parser *p, struct mr_str text, struct mr_error *err)
{
	struct mr_str line;

	for (unsigned n = 1; front_line(&text, &line); n++) {
		if (str_trim(line).len == 0 || line.ptr[0] == '#')
			continue;
		const char *problem = parse_line(p, line);

		if (problem) {
			mr_auto(buf_done) struct buf shown = BUF_INIT;

			text_clean_line(&shown, utf8_cut(line, 80));
			return mr_fail(err, MR_REFUSED,
			    "line %u of type '%s': '%s' %s\nmailroom-types(5) tells the lines that a type file may have",
			    n, p->def->name, buf_z(&shown), problem);
		}
	}
	if (!(p->seen & 1))
		return mr_fail(err, MR_REFUSED, "type '%s' has no line 'Type: %s'", p->def->name, p->def->name);
	return MR_OK;
}

static bool
is_name(struct mr_str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
			((c == '-' || c == '.' || c == ':') && i > 0)))
			return false;
	}
	return name.len > 0 && name.len <= 64;
}

static enum mr_rc
begin(struct type_def *def, const char *pack, const char *name, struct mr_error *err)
{
	if (!is_name(str_of(name)))
		return mr_fail(err, MR_REFUSED,
		    "'%.80s' is no name of a type\nuse letters, digits, '_', '-', '.' and ':', at most 64", name);
	*def = (struct type_def){ .summary = "",
		.subject = "",
		.intro = "",
		.text = "",
		.handler = "",
		.cooldown_key = "",
		.escalate_to = "",
		.time_limit_ms = TIME_LIMIT_MS };
	def->name = arena_dup(&def->own, str_of(name));
	def->pack = arena_dup(&def->own, str_of(pack));
	return def->name && def->pack ? MR_OK : mr_nomem(err);
}

enum mr_rc
type_parse(struct mr_str text, const char *pack, const char *name, struct type_def *ret, struct mr_error *err)
{
	mr_auto(type_done) struct type_def def = { 0 };
	struct parser p = { .def = &def };
	enum mr_rc rc;

	if (text.len > TYPE_FILE_MAX)
		return mr_fail(err, MR_REFUSED, "type '%.80s' is larger than %zu bytes", name, TYPE_FILE_MAX);
	rc = begin(&def, pack, name, err);
	if (rc == MR_OK)
		rc = parse_lines(&p, text, err);
	if (rc == MR_OK && (keep(&p, buf_str(&p.intro), &def.intro) || keep(&p, buf_str(&p.text), &def.text)))
		rc = mr_nomem(err);
	if (rc == MR_OK)
		rc = type_fields_check(&def, err);
	buf_done(&p.intro);
	buf_done(&p.text);
	if (rc == MR_OK) {
		*ret = def;
		def = (struct type_def){ 0 };
	}
	return rc;
}
