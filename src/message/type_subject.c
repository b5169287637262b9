/* SPDX-License-Identifier: MIT */
/* type_subject.c - which type does a subject say, and which fields are in it. See type.h. */
#include "base/error.h"
#include "base/text.h"
#include "message/type_own.h"

static struct mr_str
behind(struct mr_str s, size_t n)
{
	return (struct mr_str){ s.ptr + n, s.len - n };
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* A handshake, a warning sign: signs and what joins to them. Letters of other alphabets are none. */
static struct mr_str
skip_signs(struct mr_str s)
{
	uint32_t cp;
	size_t n;

	for (s = str_trim(s); s.len > 0; s = str_trim(behind(s, n))) {
		n = utf8_next(s, &cp);
		if (n == 0 || !((cp >= 0x2000 && cp < 0x2c00) || cp == 0xfe0f || cp >= 0x1f000))
			break;
	}
	return s;
}

/* Without "Re:"s and signs before it. */
static struct mr_str
strip(struct mr_str subject)
{
	subject = skip_signs(subject);
	while (subject.len >= 3 && str_caseeq((struct mr_str){ subject.ptr, 3 }, STR("re:")))
		subject = skip_signs(behind(subject, 3));
	return subject;
}

static bool
is_capital(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

struct mr_str
type_word(struct mr_str subject)
{
	struct mr_str s = strip(subject);
	size_t n = 0;

	while (n < s.len && is_capital(s.ptr[n]))
		n++;
	size_t next = n < s.len && s.ptr[n] == ':' ? n + 1 : n; /* "LIFECYCLE:Shutdown" is one word */

	if (n < 3 || !(s.ptr[0] >= 'A' && s.ptr[0] <= 'Z') || (next < s.len && !is_blank(s.ptr[next])))
		return (struct mr_str){ s.ptr, 0 };
	return (struct mr_str){ s.ptr, n };
}

/* ---- A form: head, then {Field}s with something between them ---- */

/* "MERGED " -> "MERGED", "HELP: " -> "HELP" */
static struct mr_str
head_of(const char *form)
{
	size_t at = 0, from = strlen(form);
	struct mr_str name, head;

	(void)type_next_brace(form, &at, &from, &name);
	head = skip_signs((struct mr_str){ form, from });
	if (head.len > 0 && head.ptr[head.len - 1] == ':')
		head.len--;
	return head;
}

/* A word in capitals may be followed by a blank or a colon, whichever the form has. Anything else is taken exactly, and
 * all that the form has must be there: "[HIGH] disk full" is an escalation, "[channel:x] hello" is none. */
static bool
head_is_word(struct mr_str head)
{
	size_t letters = 0;

	for (size_t i = 0; i < head.len; i++) {
		if (head.ptr[i] >= 'a' && head.ptr[i] <= 'z' && letters < 3)
			return false;
		letters += is_capital(head.ptr[i]);
	}
	return letters >= 3;
}

/* Takes the head from the subject. False: it has another one. */
static bool
take_head(const char *form, struct mr_str *subject)
{
	struct mr_str head = head_of(form);

	if (head.len == 0 || subject->len < head.len || memcmp(subject->ptr, head.ptr, head.len) != 0)
		return false;
	const char *colon = head.ptr + head.len; /* in the form */

	*subject = behind(*subject, head.len);
	if (!head_is_word(head)) {
		if (*colon == ':' && (subject->len == 0 || subject->ptr[0] != ':'))
			return false;
	} else if (subject->len > 0 && subject->ptr[0] != ':' && !is_blank(subject->ptr[0])) {
		return false;
	}
	if (subject->len > 0 && subject->ptr[0] == ':')
		*subject = behind(*subject, 1);
	*subject = str_trim(*subject);
	return true;
}

static struct mr_str
first_word(struct mr_str s)
{
	size_t n = 0;

	while (n < s.len && !is_blank(s.ptr[n]))
		n++;
	return (struct mr_str){ s.ptr, n };
}

/* The value of one {Field}: up to the text that follows it in the form; else one word, or all of it. */
static struct mr_str
take_value(const struct type_field *field, struct mr_str literal, struct mr_str *rest, bool *ret_exact)
{
	const char *end =
	    literal.len > 0 && rest->len > 0 ? memmem(rest->ptr, rest->len, literal.ptr, literal.len) : NULL;
	struct mr_str value;

	if (end) {
		value = (struct mr_str){ rest->ptr, (size_t)(end - rest->ptr) };
		*rest = behind(*rest, value.len + literal.len);
		return str_trim(value);
	}
	*ret_exact = *ret_exact && literal.len == 0;
	bool whole = !field || field->kind == TYPE_TEXT || field->kind == TYPE_LIST || field->kind == TYPE_JSON;

	value = whole || type_is_placeholder(*rest) ? *rest : first_word(*rest);
	*rest = str_trim(behind(*rest, value.len));
	return value;
}

bool
type_subject_parts(const struct type_def *def, struct mr_str subject, struct mr_str *ret, size_t max, size_t *ret_n,
    size_t *ret_weight)
{
	size_t at = 0, from, next, n = 0;
	struct mr_str rest = strip(subject), name, following;
	mr_auto(buf_done) struct buf scratch = BUF_INIT;
	bool exact = true;

	if (def->subject[0] == '{' && head_of(def->subject).len == 0)
		rest = str_trim(subject); /* fits everything, and says nothing about the type */
	else if (!def->subject[0] || !take_head(def->subject, &rest))
		return false;
	for (bool more = type_next_brace(def->subject, &at, &from, &name); more && n < max; n++) {
		size_t literal = at;
		size_t i = type_index(def, name);
		const struct type_field *field = i == TYPE_NONE ? NULL : &def->fields[i];

		more = type_next_brace(def->subject, &at, &next, &following);
		if (!more)
			next = strlen(def->subject);
		ret[n] = take_value(field, (struct mr_str){ def->subject + literal, next - literal }, &rest, &exact);
		exact = exact && ret[n].len > 0 && field && !type_value_problem(field, ret[n], &scratch);
		name = following;
	}
	if (head_of(def->subject).len > 0 && !head_is_word(head_of(def->subject)) && !exact)
		return false;
	*ret_n = n;
	*ret_weight = head_of(def->subject).len;
	return true;
}

size_t
type_subject_weight(const struct type_def *def, struct mr_str subject)
{
	struct mr_str parts[TYPE_FIELDS_MAX];
	size_t n, weight;

	return type_subject_parts(def, subject, parts, TYPE_FIELDS_MAX, &n, &weight) ? weight : 0;
}

bool
type_fits_subject(const struct type_def *def, struct mr_str subject, struct mr_names *ret_fields)
{
	struct mr_str parts[TYPE_FIELDS_MAX];
	size_t n, weight;

	if (!type_subject_parts(def, subject, parts, TYPE_FIELDS_MAX, &n, &weight) || weight == 0)
		return false;
	for (size_t i = 0; ret_fields && i < n; i++)
		if (!names_add(ret_fields, parts[i]))
			return false;
	return true;
}
