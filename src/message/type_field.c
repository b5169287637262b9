/* SPDX-License-Identifier: MIT */
/* type_field.c - the line "Field: NAME; KIND; ..." of a type file, and whether all fields fit together. See type.h. */
#include "base/error.h"
#include "message/type_own.h"

enum { NAME_MAX_LEN = 120 };

static const char *const kinds[] = {
	[TYPE_WORD] = "word",
	[TYPE_ADDRESS] = "address",
	[TYPE_TIME] = "time",
	[TYPE_NUMBER] = "number",
	[TYPE_BOOLEAN] = "boolean",
	[TYPE_LITERAL] = "literal",
	[TYPE_ONE_OF] = "one-of",
	[TYPE_LIST] = "list",
	[TYPE_TEXT] = "text",
	[TYPE_JSON] = "json",
	[TYPE_OBJECT] = "object",
	[TYPE_OBJECTS] = "objects",
};

const char *
type_kind_word(enum type_kind kind)
{
	return kinds[kind];
}

/* The part before the next `separator`; *rest is behind it. */
static struct mr_str
take(struct mr_str *rest, char separator)
{
	const char *end = rest->len > 0 ? memchr(rest->ptr, separator, rest->len) : NULL;
	struct mr_str part = { rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len };
	size_t taken = end ? part.len + 1 : part.len;

	rest->ptr += taken;
	rest->len -= taken;
	return str_trim(part);
}

/* Takes `word` and the blank behind it from the front. */
static bool
take_word(struct mr_str *s, const char *word)
{
	size_t len = strlen(word);

	if (!str_starts(*s, word) || (s->len > len && s->ptr[len] != ' '))
		return false;
	*s = str_trim((struct mr_str){ s->ptr + len, s->len - len });
	return true;
}

/* ---- Names: "a", "a.b", "a[].b", each member behind its object ---- */

static bool
is_name_byte(char c, bool json)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
	       (c == ' ' && !json);
}

static const struct type_field *
find_exact(const struct type_def *def, struct mr_str name)
{
	for (size_t i = 0; i < def->fields_n; i++)
		if (str_eq(str_of(def->fields[i].name), name))
			return &def->fields[i];
	return NULL;
}

/* What stands before the last dot must be an object, or with "[]" a list of them. */
static const char *
check_parent(const struct type_def *def, struct mr_str name)
{
	size_t dot = name.len;

	while (dot > 0 && name.ptr[dot - 1] != '.')
		dot--;
	if (dot == 0)
		return NULL;
	struct mr_str parent = { name.ptr, dot - 1 };
	enum type_kind kind = str_ends(parent, "[]") ? TYPE_OBJECTS : TYPE_OBJECT;

	if (kind == TYPE_OBJECTS)
		parent.len -= 2;
	const struct type_field *field = find_exact(def, parent);

	return field && field->kind == kind ? NULL : "is a member of something that is no object";
}

static const char *
check_name(const struct type_def *def, struct mr_str name)
{
	bool json = def->body == TYPE_BODY_JSON;
	struct mr_str rest = name;
	size_t parts = 0;

	if (name.len > NAME_MAX_LEN)
		return "has a name that is too long";
	do {
		struct mr_str part = take(&rest, '.');

		if (rest.len > 0 && str_ends(part, "[]"))
			part.len -= 2;
		if (part.len == 0 || (!json && parts > 0))
			return "has no name that a field may have";
		for (size_t i = 0; i < part.len; i++)
			if (!is_name_byte(part.ptr[i], json))
				return "has no name that a field may have";
		parts++;
	} while (rest.len > 0);
	if (parts > TYPE_NEST_MAX)
		return "is nested too deep";
	if (name.ptr[name.len - 1] == '.')
		return "has no name that a field may have";
	return check_parent(def, name);
}

/* ---- The kind, and what follows it ---- */

static const char *
parse_choices(struct type_def *def, struct mr_str rest, bool words, struct type_field *ret)
{
	size_t most = 1;

	for (size_t i = 0; i < rest.len; i++)
		most += rest.ptr[i] == ' ';
	if (rest.len == 0)
		return "says no value";
	ret->choices.v = arena_alloc(&def->own, most * sizeof(*ret->choices.v));
	while (ret->choices.v && rest.len > 0) {
		struct mr_str one = words ? take(&rest, ' ') : rest;

		rest = words ? str_trim(rest) : (struct mr_str){ rest.ptr, 0 };
		ret->choices.v[ret->choices.n] = arena_dup(&def->own, one);
		if (!ret->choices.v[ret->choices.n++])
			return "does not fit into memory";
	}
	return ret->choices.v ? NULL : "does not fit into memory";
}

static const char *
parse_kind(struct type_def *def, struct mr_str text, struct type_field *ret)
{
	for (unsigned kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
		struct mr_str rest = text;

		if (!take_word(&rest, kinds[kind]))
			continue;
		ret->kind = (enum type_kind)kind;
		if (kind == TYPE_LITERAL || kind == TYPE_ONE_OF)
			return parse_choices(def, rest, kind == TYPE_ONE_OF, ret);
		return rest.len == 0 ? NULL : "says more than its kind";
	}
	return "has a kind that is not known";
}

/* FIELD=VALUE */
static const char *
parse_condition(struct type_def *def, struct mr_str text, const char **ret_field, const char **ret_value)
{
	struct mr_str value = text, field = take(&value, '=');

	value = str_trim(value);
	if (field.len == 0 || value.len == 0)
		return "has a condition that is not 'FIELD=VALUE'";
	*ret_field = arena_dup(&def->own, field);
	*ret_value = arena_dup(&def->own, value);
	return *ret_field && *ret_value ? NULL : "does not fit into memory";
}

static const char *
parse_attribute(struct type_def *def, struct mr_str one, struct type_field *ret)
{
	if (take_word(&one, "required")) {
		ret->required = true;
		if (one.len == 0)
			return NULL;
		return take_word(&one, "if") ? parse_condition(def, one, &ret->when_field, &ret->when_value)
					     : "has something behind 'required'";
	}
	if (take_word(&one, "only"))
		return take_word(&one, "if") ? parse_condition(def, one, &ret->only_field, &ret->only_value)
					     : "has something behind 'only'";
	if (str_eq(one, STR("subject"))) {
		ret->in_subject = true;
		return NULL;
	}
	if (str_eq(one, STR("answers"))) {
		ret->answers = true;
		return NULL;
	}
	if (take_word(&one, "derive") && one.len > 0) {
		ret->derive = arena_dup(&def->own, one);
		return ret->derive ? NULL : "does not fit into memory";
	}
	return "says something that is not known after the kind";
}

const char *
type_field_parse(struct type_def *def, struct mr_str line, struct type_field *ret)
{
	struct mr_str name = take(&line, ';');
	const char *problem = name.len > 0 ? check_name(def, name) : "has no name that a field may have";

	if (problem)
		return problem;
	if (!(ret->name = arena_dup(&def->own, name)))
		return "does not fit into memory";
	problem = parse_kind(def, take(&line, ';'), ret);
	for (line = str_trim(line); !problem && line.len > 0; line = str_trim(line)) {
		struct mr_str rest = line;

		if (take_word(&rest, "default")) { /* it may have semicolons */
			ret->fallback = arena_dup(&def->own, rest);
			return ret->fallback ? NULL : "does not fit into memory";
		}
		problem = parse_attribute(def, take(&line, ';'), ret);
	}
	return problem;
}

/* ---- All of them together ---- */

static enum mr_rc
refuse(const struct type_def *def, const char *what, const char *field, const char *problem, struct mr_error *err)
{
	return mr_fail(err, MR_REFUSED,
	    "type '%s': %s '%s' %s\nevery name must be that of a 'Field:' line, and no two may make the same variable",
	    def->name, what, field, problem);
}

static enum mr_rc
check_braces(
    const struct type_def *def, const char *what, const char *form, const char *const *more, struct mr_error *err)
{
	size_t at = 0, from;
	struct mr_str name;

	while (type_next_brace(form, &at, &from, &name)) {
		bool known = find_exact(def, name) != NULL;

		for (size_t i = 0; !known && more && more[i]; i++)
			known = str_eq(name, str_of(more[i]));
		if (!known)
			return refuse(def, what, form, "names a field that is not there", err);
	}
	return MR_OK;
}

static enum mr_rc
check_forms(const struct type_def *def, struct mr_error *err)
{
	static const char *const of_message[] = { "id", "from", "to", "subject", "type", "agent", "room", "attempt",
		NULL };
	enum mr_rc rc = check_braces(def, "Subject:", def->subject, NULL, err);

	if (rc == MR_OK)
		rc = check_braces(def, "Intro:", def->intro, NULL, err);
	if (rc == MR_OK)
		rc = check_braces(def, "Text:", def->text, NULL, err);
	if (rc == MR_OK)
		rc = check_braces(def, "Cooldown-Key:", def->cooldown_key, of_message, err);
	return rc == MR_OK ? check_braces(def, "Handler:", def->handler, of_message, err) : rc;
}

static bool
same_variable(const char *a, const char *b)
{
	mr_auto(buf_done) struct buf one = BUF_INIT, other = BUF_INIT;

	type_variable(&one, a);
	type_variable(&other, b);
	return str_eq(buf_str(&one), buf_str(&other));
}

static enum mr_rc
check_field(const struct type_def *def, size_t i, struct mr_error *err)
{
	const struct type_field *f = &def->fields[i];

	for (size_t k = 0; k < i; k++)
		if (same_variable(f->name, def->fields[k].name) ||
		    (def->body != TYPE_BODY_JSON && type_key_same(str_of(f->name), str_of(def->fields[k].name))))
			return refuse(def, "field", f->name, "is the same as one before it", err);
	if (f->when_field && !find_exact(def, str_of(f->when_field)))
		return refuse(def, "field", f->name, "depends on a field that is not there", err);
	if (f->only_field && !find_exact(def, str_of(f->only_field)))
		return refuse(def, "field", f->name, "depends on a field that is not there", err);
	if (f->in_subject || def->body == TYPE_BODY_TEXT) {
		mr_auto(buf_done) struct buf brace = BUF_INIT;

		buf_addf(&brace, "{%s}", f->name);
		if (!strstr(def->subject, buf_z(&brace)))
			return refuse(def, "field", f->name, "is not in the subject, and nowhere else", err);
	}
	return MR_OK;
}

enum mr_rc
type_fields_check(const struct type_def *def, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	for (size_t i = 0; rc == MR_OK && i < def->fields_n; i++)
		rc = check_field(def, i, err);
	for (size_t i = 0; rc == MR_OK && i < def->also_n; i++)
		if (!find_exact(def, str_of(def->also[i].value)))
			rc = refuse(def, "Also:", def->also[i].name, "is a spelling of a field that is not there", err);
	return rc == MR_OK ? check_forms(def, err) : rc;
}
