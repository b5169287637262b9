/* SPDX-License-Identifier: MIT */
/* type_parse.c - reading a type file: its settings, its fields, and whether they are consistent. See type.h. */
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "message/front.h"
#include "message/type_own.h"
#include <stddef.h>

enum { LINE_MAX_LEN = 4096, ROUTES_MAX = 32, TIME_LIMIT_MS = 60000, NAME_MAX_LEN = 120 };

/* Functions that read a value return NULL, or the problem as the end of a sentence. */
static const char no_memory[] = "does not fit into memory";

static const char *
keep(struct type_def *def, struct mr_str value, const char **ret)
{
	*ret = arena_dup(&def->own, value);
	return *ret ? NULL : no_memory;
}

/* ---- The line "Field: NAME; KIND; ..." ---- */

static const char a_string[] = "a string";

const struct type_kind_rule type_kinds[] = {
	[TYPE_WORD] = { "word", "one word", a_string, JSON_STRING },
	[TYPE_ADDRESS] = { "address", "an address", a_string, JSON_STRING },
	[TYPE_TIME] = { "time", "a time such as 2026-03-05T10:30:00Z", a_string, JSON_STRING },
	[TYPE_NUMBER] = { "number", "a number", "a number", JSON_NUMBER },
	[TYPE_BOOLEAN] = { "boolean", "true or false", "true or false", JSON_TRUE },
	[TYPE_LITERAL] = { "literal", NULL, a_string, JSON_STRING },
	[TYPE_ONE_OF] = { "one-of", NULL, a_string, JSON_STRING },
	[TYPE_LIST] = { "list", "a list with ', ' between", "a list of strings", JSON_ARRAY },
	[TYPE_TEXT] = { "text", "text in UTF-8", a_string, JSON_STRING },
	[TYPE_JSON] = { "json", "JSON", NULL, JSON_NULL },
	[TYPE_OBJECT] = { "object", "a JSON object", "a JSON object", JSON_OBJECT },
	[TYPE_OBJECTS] = { "objects", "a list of JSON objects", "a list of objects", JSON_ARRAY },
};
enum { KINDS = sizeof(type_kinds) / sizeof(type_kinds[0]) };

const char *
type_kind_word(enum type_kind kind)
{
	return type_kinds[kind].word;
}

/* The part before the next `separator`; *rest moves behind it. */
static struct mr_str
take(struct mr_str *rest, char separator)
{
	struct mr_str part = *rest;

	(void)str_cut(rest, separator, &part);
	return str_trim(part);
}

/* Removes `word` and the blank after it from the front. */
static bool
take_word(struct mr_str *s, const char *word)
{
	size_t len = strlen(word);

	if (!str_starts(*s, word) || (s->len > len && s->ptr[len] != ' '))
		return false;
	*s = str_trim(str_from(*s, len));
	return true;
}

/* Names: "a", "a.b", "a[].b", each member after its object. */
static const char *
check_field_name(const struct type_def *def, struct mr_str name)
{
	static const char wrong[] = "is not a valid name of a field";
	bool json = def->body == TYPE_BODY_JSON;
	struct mr_str rest = name, parent = { name.ptr, 0 };
	size_t parts = 0;

	if (name.len == 0)
		return wrong;
	if (name.len > NAME_MAX_LEN)
		return "has a name that is too long";
	do {
		parent.len = parts > 0 ? (size_t)(rest.ptr - name.ptr) - 1 : 0;
		struct mr_str part = take(&rest, '.');

		if (rest.len > 0 && str_ends(part, "[]"))
			part.len -= 2;
		if (part.len == 0 || (!json && parts > 0))
			return wrong;
		for (size_t i = 0; i < part.len; i++)
			if (!type_is_key_byte(part.ptr[i]) || (json && part.ptr[i] == ' '))
				return wrong;
		parts++;
	} while (rest.len > 0);
	if (parts > TYPE_NEST_MAX)
		return "is nested too deep";
	if (name.ptr[name.len - 1] == '.')
		return wrong;
	if (parts == 1)
		return NULL;
	/* The part before the last dot must be an object, or with "[]" a list of objects. */
	enum type_kind kind = str_ends(parent, "[]") ? TYPE_OBJECTS : TYPE_OBJECT;

	parent.len -= kind == TYPE_OBJECTS ? 2 : 0;
	const struct type_field *field = type_field_exact(def, parent);

	return field && field->kind == kind ? NULL : "is a member of something that is not an object";
}

static const char *
parse_kind(struct type_def *def, struct mr_str text, struct type_field *ret)
{
	for (unsigned kind = 0; kind < KINDS; kind++) {
		struct mr_names *choices = &ret->choices;
		struct mr_str rest = text, one;

		if (!take_word(&rest, type_kinds[kind].word))
			continue;
		ret->kind = (enum type_kind)kind;
		if (kind != TYPE_LITERAL && kind != TYPE_ONE_OF)
			return rest.len == 0 ? NULL : "has text after its kind";
		if (rest.len == 0)
			return "has no value";
		for (size_t cap = 0; rest.len > 0;) {
			one = kind == TYPE_ONE_OF ? take(&rest, ' ') : rest;
			rest = kind == TYPE_ONE_OF ? str_trim(rest) : str_first(rest, 0);
			if (!arena_grow(&def->own, &choices->v, choices->n, &cap, sizeof(*choices->v)) ||
			    !(choices->v[choices->n++] = arena_dup(&def->own, one)))
				return no_memory;
		}
		return NULL;
	}
	return "has an unknown kind";
}

/* "if FIELD=VALUE" */
static const char *
parse_condition(
    struct type_def *def, struct mr_str text, const char *problem, const char **ret_field, const char **ret_value)
{
	struct mr_str field, value;

	if (!take_word(&text, "if"))
		return problem;
	if (!str_split(text, '=', &field, &value) || str_trim(field).len == 0 || str_trim(value).len == 0)
		return "has a condition that is not 'FIELD=VALUE'";
	problem = keep(def, str_trim(field), ret_field);
	return problem ? problem : keep(def, str_trim(value), ret_value);
}

static const char *
parse_attribute(struct type_def *def, struct mr_str one, struct type_field *ret)
{
	if (take_word(&one, "required")) {
		ret->required = true;
		return one.len == 0 ? NULL
				    : parse_condition(def, one, "has unknown text after 'required'", &ret->when_field,
					  &ret->when_value);
	}
	if (take_word(&one, "only"))
		return parse_condition(def, one, "has unknown text after 'only'", &ret->only_field, &ret->only_value);
	if (take_word(&one, "derive") && one.len > 0)
		return keep(def, one, &ret->derive);
	bool *flag = str_eq(one, STR("subject"))   ? &ret->in_subject
		     : str_eq(one, STR("answers")) ? &ret->answers
						   : NULL;

	if (!flag)
		return "has an unknown word after the kind";
	*flag = true;
	return NULL;
}

static const char *
parse_field(struct type_def *def, struct mr_str line)
{
	struct type_field field = { 0 };

	if (def->fields_n == TYPE_FIELDS_MAX)
		return "is one field too many";
	struct mr_str name = take(&line, ';');
	const char *problem = check_field_name(def, name);

	if (!problem)
		problem = keep(def, name, &field.name);
	if (!problem)
		problem = parse_kind(def, take(&line, ';'), &field);
	for (line = str_trim(line); !problem && line.len > 0; line = str_trim(line)) {
		struct mr_str rest = line;

		if (take_word(&rest, "default")) { /* its value may have semicolons */
			problem = keep(def, rest, &field.fallback);
			break;
		}
		problem = parse_attribute(def, take(&line, ';'), &field);
	}
	if (problem)
		return problem;
	if (!def->fields && !(def->fields = arena_alloc(&def->own, TYPE_FIELDS_MAX * sizeof(*def->fields))))
		return no_memory;
	def->fields[def->fields_n++] = field;
	return NULL;
}

/* ---- The other lines ---- */

enum setting_kind { NAME, TEXT, SOMETHING, ROUTE, FLAG, CHOICE, LINES, FIELD, ALSO, TIME, COUNT };
#define AT(member) offsetof(struct type_def, member)
static const struct setting {
	const char *name;
	enum setting_kind kind;
	size_t at;
	int least; /* of a time, in ms; the value of the first word */
	const char *words[4];
	const char *problem;
} settings[] = {
	{ "Type", NAME, 0, 0, { 0 }, "is not the name of the file" },
	{ "Summary", TEXT, AT(summary), 0, { 0 }, NULL },
	{ "Subject", SOMETHING, AT(subject), 0, { 0 }, NULL },
	{ "Route", ROUTE, 0, 0, { 0 }, NULL },
	{ "Via", FLAG, AT(nudge), 0, { "mail", "nudge" }, "is neither mail nor nudge" },
	{ "Priority", CHOICE, AT(priority), MR_LOW, { "low", "normal", "high", "urgent" },
	    "is none of low, normal, high, urgent" },
	{ "Body", CHOICE, AT(body), 0, { "lines", "json", "text", "front" }, "is none of lines, json, text, front" },
	{ "Receive", FLAG, AT(receive_type), 0, { "all", "type" }, "is neither all nor type" },
	{ "Intro", LINES, AT(intro), 0, { 0 }, NULL },
	{ "Field", FIELD, 0, 0, { 0 }, NULL },
	{ "Also", ALSO, 0, 0, { 0 }, NULL },
	{ "Text", LINES, AT(text), 0, { 0 }, NULL },
	{ "Control", FLAG, AT(routed), 1, { "routed" }, "is not routed, the only sort there is" },
	{ "Handler", SOMETHING, AT(handler), 0, { 0 }, NULL },
	{ "Time-Limit", TIME, AT(time_limit_ms), 1, { 0 }, "is not a duration such as 60s or 5m" },
	{ "Cooldown", TIME, AT(cooldown_ms), 0, { 0 }, "is not a duration such as 60s or 5m" },
	{ "Cooldown-Key", SOMETHING, AT(cooldown_key), 0, { 0 }, NULL },
	{ "Escalate-After", COUNT, AT(escalate_after), 0, { 0 }, "is not a number from 1 to 1000" },
	{ "Escalate-To", SOMETHING, AT(escalate_to), 0, { 0 }, NULL },
	{ "Earlier-Life", FLAG, AT(any_life), 0, { "aside", "act" }, "is neither act nor aside" },
};

struct parser {
	struct type_def *def;
	struct buf intro, text; /* collected from their lines */
	unsigned seen;          /* bits: settings seen so far */
};

static const char *
add_route(struct type_def *def, struct mr_str value)
{
	struct mr_names *routes = &def->routes;
	const char *arrow = value.len > 0 ? memmem(value.ptr, value.len, "->", 2) : NULL;

	if (!arrow || arrow == value.ptr || arrow + 2 == value.ptr + value.len)
		return "is not 'SENDER -> RECEIVER'";
	if (routes->n == ROUTES_MAX)
		return "is one route too many";
	if (!routes->v && !(routes->v = arena_alloc(&def->own, ROUTES_MAX * sizeof(*routes->v))))
		return no_memory;
	routes->v[routes->n] = arena_dup(&def->own, value);
	return routes->v[routes->n++] ? NULL : no_memory;
}

static const char *
add_spelling(struct type_def *def, struct mr_str value)
{
	struct mr_header also = { 0 };
	struct mr_str name;

	if (!str_split(value, '=', &name, &value))
		return "is not 'SPELLING = FIELD'";
	name = str_trim(name);
	value = str_trim(value);
	if (name.len == 0 || value.len == 0)
		return "is empty";
	if (keep(def, name, &also.name) || keep(def, value, &also.value))
		return no_memory;
	if (def->also_n == TYPE_FIELDS_MAX)
		return "is one spelling too many";
	if (!def->also && !(def->also = arena_alloc(&def->own, TYPE_FIELDS_MAX * sizeof(*def->also))))
		return no_memory;
	def->also[def->also_n++] = also;
	return NULL;
}

/* `raw` has its blanks, which lines of free text keep, except the one after the colon. */
static const char *
set(struct parser *p, const struct setting *s, struct mr_str raw, bool again)
{
	struct type_def *def = p->def;
	struct mr_str value = str_trim(raw);
	struct buf *lines = s->at == AT(intro) ? &p->intro : &p->text;
	void *at = (char *)def + s->at;
	uint64_t number = 0;
	int choice = 0;

	switch (s->kind) {
	case NAME:
		return str_eq(value, str_of(def->name)) ? NULL : s->problem;
	case SOMETHING:
		return value.len > 0 ? keep(def, value, at) : "is empty";
	case TEXT:
		return keep(def, value, at);
	case ROUTE:
		return add_route(def, value);
	case FIELD:
		return parse_field(def, value);
	case ALSO:
		return add_spelling(def, value);
	case TIME:
		return duration_parse(value, at) && *(int64_t *)at >= s->least ? NULL : s->problem;
	case COUNT:
		if (!str_to_u64(value, &number) || number == 0 || number > 1000)
			return s->problem;
		*(unsigned *)at = (unsigned)number;
		return NULL;
	case LINES:
		if (again)
			buf_addc(lines, '\n');
		buf_add(lines, str_trim_end(str_starts(raw, " ") ? str_from(raw, 1) : raw));
		return lines->failed ? no_memory : NULL;
	case FLAG:
	case CHOICE:
		break;
	}
	if (s->at == AT(body) && def->fields_n > 0)
		return "must come before the fields";
	while (choice < 4 && s->words[choice] && !str_eq(value, str_of(s->words[choice])))
		choice++;
	if (choice == 4 || !s->words[choice])
		return s->problem;
	choice += s->least;
	if (s->kind == FLAG)
		*(bool *)at = choice != 0;
	else
		memcpy(at, &choice, sizeof(choice)); /* an enum */
	return NULL;
}

static const char *
parse_line(struct parser *p, struct mr_str line)
{
	struct mr_str name;

	if (line.len > LINE_MAX_LEN)
		return "is longer than 4096 bytes";
	if (header_value_problem(line))
		return "has bytes that are not text";
	if (!str_split(line, ':', &name, &line))
		return "is not a 'Name: value' line";
	for (unsigned i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		const struct setting *s = &settings[i];
		bool many = s->kind == ROUTE || s->kind == LINES || s->kind == FIELD || s->kind == ALSO;
		bool again = p->seen & 1U << i;

		if (!str_caseeq(str_trim(name), str_of(s->name)))
			continue;
		p->seen |= 1U << i;
		return again && !many ? "is given twice" : set(p, s, line, again);
	}
	return "is not a setting of a type";
}

/* ---- Consistency of the whole ---- */

static enum mr_rc
refuse(const struct type_def *def, const char *what, const char *field, const char *problem, struct mr_error *err)
{
	return mr_fail(err, MR_REFUSED,
	    "type '%s': %s '%s' %s\nevery name must be that of a 'Field:' line, and no two may make the same variable",
	    def->name, what, field, problem);
}

static enum mr_rc
check_field(const struct type_def *def, size_t i, struct mr_error *err)
{
	mr_auto(buf_done) struct buf brace = BUF_INIT, variable = BUF_INIT, other = BUF_INIT;
	const struct type_field *f = &def->fields[i];

	type_variable(&variable, f->name);
	for (size_t k = 0; k < i; k++) {
		buf_clear(&other);
		type_variable(&other, def->fields[k].name);
		if (str_eq(buf_str(&variable), buf_str(&other)) ||
		    (def->body != TYPE_BODY_JSON && type_key_same(str_of(f->name), str_of(def->fields[k].name))))
			return refuse(def, "field", f->name, "has the same name as an earlier one", err);
	}
	if ((f->when_field && !type_field_exact(def, str_of(f->when_field))) ||
	    (f->only_field && !type_field_exact(def, str_of(f->only_field))))
		return refuse(def, "field", f->name, "depends on a field that does not exist", err);
	buf_addf(&brace, "{%s}", f->name);
	if ((f->in_subject || def->body == TYPE_BODY_TEXT) && !strstr(def->subject, buf_z(&brace)))
		return refuse(def, "field", f->name, "is not in 'Subject:', the only place for it", err);
	return MR_OK;
}

/* Every brace names a field; those of a command may also name a part of the message. */
static enum mr_rc
check_forms(const struct type_def *def, struct mr_error *err)
{
	static const char *const of_message[] = { "id", "from", "to", "subject", "type", "agent", "room", "attempt" };
	const struct {
		const char *what, *form;
		bool command;
	} forms[] = {
		{ "Subject:", def->subject, false },
		{ "Intro:", def->intro, false },
		{ "Text:", def->text, false },
		{ "Cooldown-Key:", def->cooldown_key, true },
		{ "Handler:", def->handler, true },
	};

	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		struct mr_str name;

		for (size_t at = 0, from; type_next_brace(forms[f].form, &at, &from, &name);) {
			bool known = type_field_exact(def, name) != NULL;

			for (size_t i = 0; forms[f].command && i < sizeof(of_message) / sizeof(of_message[0]); i++)
				known |= str_eq(name, str_of(of_message[i]));
			if (!known)
				return refuse(
				    def, forms[f].what, forms[f].form, "names a field that does not exist", err);
		}
	}
	return MR_OK;
}

static enum mr_rc
parse(struct parser *p, struct mr_str text, struct mr_error *err)
{
	struct type_def *def = p->def;
	struct mr_str line;

	for (unsigned n = 1; str_line(&text, &line); n++) {
		mr_auto(buf_done) struct buf shown = BUF_INIT;
		struct mr_str whole = line;

		if (str_trim(line).len == 0 || line.ptr[0] == '#')
			continue;
		const char *problem = parse_line(p, line);

		if (!problem)
			continue;
		text_clean_line(&shown, utf8_cut(whole, 80));
		return mr_fail(err, MR_REFUSED,
		    "line %u of type '%s': '%s' %s\nmailroom-types(5) lists the lines that a type file may have", n,
		    def->name, buf_z(&shown), problem);
	}
	if (!(p->seen & 1))
		return mr_fail(err, MR_REFUSED, "type '%s' has no line 'Type: %s'", def->name, def->name);
	if (keep(def, buf_str(&p->intro), &def->intro) || keep(def, buf_str(&p->text), &def->text))
		return mr_nomem(err);
	for (size_t i = 0; i < def->fields_n; i++)
		TRY(check_field(def, i, err));
	for (size_t i = 0; i < def->also_n; i++)
		if (!type_field_exact(def, str_of(def->also[i].value)))
			return refuse(
			    def, "Also:", def->also[i].name, "is a spelling of a field that does not exist", err);
	return check_forms(def, err);
}

enum mr_rc
type_parse(struct mr_str text, const char *pack, const char *name, struct type_def *ret, struct mr_error *err)
{
	mr_auto(type_done) struct type_def def = { .summary = "",
		.subject = "",
		.intro = "",
		.text = "",
		.handler = "",
		.cooldown_key = "",
		.escalate_to = "",
		.time_limit_ms = TIME_LIMIT_MS };
	struct parser p = { .def = &def };

	if (text.len > TYPE_FILE_MAX)
		return mr_fail(err, MR_REFUSED, "type '%.80s' is larger than %zu bytes", name, TYPE_FILE_MAX);
	bool fine = name[0] && strlen(name) <= 64;

	for (const char *c = name; fine && *c; c++)
		fine = *c == '.' || *c == ':' || *c == '-' ? c > name : *c != ' ' && type_is_key_byte(*c);
	if (!fine)
		return mr_fail(err, MR_REFUSED,
		    "'%.80s' is not a name of a type\nuse letters, digits, '_', '-', '.' and ':', at most 64", name);
	if (keep(&def, str_of(name), &def.name) || keep(&def, str_of(pack), &def.pack))
		return mr_nomem(err);
	enum mr_rc rc = parse(&p, text, err);

	buf_done(&p.intro);
	buf_done(&p.text);
	if (rc == MR_OK) {
		*ret = def;
		def = (struct type_def){ 0 };
	}
	return rc;
}
