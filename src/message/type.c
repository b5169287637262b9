/* SPDX-License-Identifier: MIT */
/*
 * type.c - fields by any spelling of their names, values by name, filling in forms; the type and the fields of a
 * subject; routes. See type.h.
 */
#include "base/error.h"
#include "base/text.h"
#include "message/address.h"
#include "message/type_own.h"

#define FILLERS "-_ " /* ignored in keys */

void
type_done(struct type_def *def)
{
	arena_free(def->own);
	*def = (struct type_def){ 0 };
}

void
type_values_done(struct type_values *values)
{
	arena_free(values->own);
	*values = (struct type_values){ 0 };
}

bool
type_is_key_byte(char c)
{
	return ascii_alnum(c) || (c && strchr(FILLERS, c));
}

bool
type_key_same(struct mr_str a, struct mr_str b)
{
	size_t i = 0, k = 0;

	for (;;) {
		while (i < a.len && a.ptr[i] && strchr(FILLERS, a.ptr[i]))
			i++;
		while (k < b.len && b.ptr[k] && strchr(FILLERS, b.ptr[k]))
			k++;
		if (i == a.len || k == b.len)
			return i == a.len && k == b.len;
		if (ascii_lower(a.ptr[i++]) != ascii_lower(b.ptr[k++]))
			return false;
	}
}

const struct type_field *
type_field_exact(const struct type_def *def, struct mr_str name)
{
	for (size_t i = 0; i < def->fields_n; i++)
		if (str_eq(str_of(def->fields[i].name), name))
			return &def->fields[i];
	return NULL;
}

size_t
type_index(const struct type_def *def, struct mr_str key)
{
	bool loose = def->body == TYPE_BODY_LINES || def->body == TYPE_BODY_TEXT;
	const struct type_field *found = type_field_exact(def, key);

	for (size_t i = 0; !found && i < def->also_n; i++) {
		struct mr_str other = str_of(def->also[i].name);

		if (loose ? type_key_same(other, key) : str_eq(other, key))
			found = type_field_exact(def, str_of(def->also[i].value));
	}
	for (size_t i = 0; !found && loose && i < def->fields_n; i++)
		if (type_key_same(str_of(def->fields[i].name), key))
			found = &def->fields[i];
	return found ? (size_t)(found - def->fields) : TYPE_NONE;
}

const struct type_field *
type_field(const struct type_def *def, const char *name)
{
	size_t i = type_index(def, str_of(name));

	return i == TYPE_NONE ? NULL : &def->fields[i];
}

const char *
type_value(const struct type_values *values, const char *name)
{
	for (size_t i = 0; i < values->n; i++)
		if (strcmp(values->v[i].name, name) == 0)
			return values->v[i].value;
	return NULL;
}

char *
type_dup(struct arena **own, struct mr_str s)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	if (str_find(s, '\0') == s.len)
		return arena_dup(own, s);
	for (struct mr_str part; str_split(s, '\0', &part, &s); buf_adds(&out, "\xEF\xBF\xBD"))
		buf_add(&out, part);
	buf_add(&out, s);
	return buf_ok(&out) ? arena_dup(own, buf_str(&out)) : NULL;
}

/* ---- Forms ---- */

bool
type_next_brace(const char *form, size_t *at, size_t *ret_from, struct mr_str *ret_name)
{
	for (size_t i = *at; form[i]; i++) {
		size_t end = i + 1;

		if (form[i] != '{')
			continue;
		while (type_is_key_byte(form[end]) || (form[end] && strchr(".[]:", form[end])))
			end++;
		if (form[end] != '}' || end == i + 1)
			continue; /* a brace that is not a field */
		*ret_from = i;
		*ret_name = (struct mr_str){ form + i + 1, end - i - 1 };
		*at = end + 1;
		return true;
	}
	return false;
}

void
type_fill(struct buf *out, const char *form, const struct type_values *values)
{
	size_t at = 0, last = 0, from;
	struct mr_str name;

	for (; type_next_brace(form, &at, &from, &name); last = at) {
		buf_add(out, (struct mr_str){ form + last, from - last });
		for (size_t i = 0; i < values->n; i++)
			if (values->v[i].value && str_eq(str_of(values->v[i].name), name)) {
				buf_adds(out, values->v[i].value);
				break;
			}
	}
	buf_adds(out, form + last);
}

void
type_variable(struct buf *out, const char *field)
{
	buf_adds(out, "MAILROOM_FIELD_");
	for (; *field; field++) {
		bool small = *field >= 'a' && *field <= 'z';

		buf_addc(out, small ? (char)(*field - 'a' + 'A') : ascii_alnum(*field) ? *field : '_');
	}
}

/* ---- Subjects ---- */

/* A handshake, a warning sign: signs and characters that join to them, but no letters of any alphabet. */
static struct mr_str
skip_signs(struct mr_str s)
{
	uint32_t cp;
	size_t n;

	for (s = str_trim(s); s.len > 0; s = str_trim(str_from(s, n))) {
		n = utf8_next(s, &cp);
		if (n == 0 || !((cp >= 0x2000 && cp < 0x2c00) || cp == 0xfe0f || cp >= 0x1f000))
			break;
	}
	return s;
}

/* Removes "Re:"s and signs from the front. */
static struct mr_str
strip(struct mr_str subject)
{
	subject = skip_signs(subject);
	while (str_casestarts(subject, "re:"))
		subject = skip_signs(str_from(subject, 3));
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

	if (n < 3 || !(s.ptr[0] >= 'A' && s.ptr[0] <= 'Z') || (next < s.len && !ascii_blank(s.ptr[next])))
		return str_first(s, 0);
	return str_first(s, n);
}

/* ---- A form: head, then {Field}s with text between them ---- */

/* A word in capitals may be followed by a blank or a colon, whichever the form has. Any other head must match exactly
 * and completely: "[HIGH] disk full" is an escalation, "[channel:x] hello" is not. */
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

/* Removes the head, a part of the form, from the subject. False: it has another one. */
static bool
take_head(struct mr_str head, struct mr_str *subject)
{
	if (head.len == 0 || subject->len < head.len || memcmp(subject->ptr, head.ptr, head.len) != 0)
		return false;
	const char *colon = head.ptr + head.len; /* in the form */

	*subject = str_from(*subject, head.len);
	if (!head_is_word(head)) {
		if (*colon == ':' && (subject->len == 0 || subject->ptr[0] != ':'))
			return false;
	} else if (subject->len > 0 && subject->ptr[0] != ':' && !ascii_blank(subject->ptr[0])) {
		return false;
	}
	if (subject->len > 0 && subject->ptr[0] == ':')
		*subject = str_from(*subject, 1);
	*subject = str_trim(*subject);
	return true;
}

/* The value of one {Field}: up to the text that follows it in the form; else one word, or the rest. */
static struct mr_str
take_value(const struct type_field *field, struct mr_str literal, struct mr_str *rest, bool *ret_exact)
{
	const char *end =
	    literal.len > 0 && rest->len > 0 ? memmem(rest->ptr, rest->len, literal.ptr, literal.len) : NULL;
	struct mr_str value, copy = *rest;

	if (end) {
		value = str_between(rest->ptr, end);
		*rest = str_from(*rest, value.len + literal.len);
		return str_trim(value);
	}
	*ret_exact = *ret_exact && literal.len == 0;
	bool whole = !field || field->kind == TYPE_TEXT || field->kind == TYPE_LIST || field->kind == TYPE_JSON;

	if (whole || type_is_placeholder(*rest) || !str_word(&copy, " \t", &value))
		value = *rest;
	*rest = str_trim(str_from(*rest, value.len));
	return value;
}

bool
type_subject_parts(const struct type_def *def, struct mr_str subject, struct mr_str ret[TYPE_FIELDS_MAX], size_t *ret_n,
    size_t *ret_weight)
{
	size_t at = 0, from, next, n = 0;
	struct mr_str rest = strip(subject), head, name, following;
	mr_auto(buf_done) struct buf scratch = BUF_INIT;
	bool exact = true, more = type_next_brace(def->subject, &at, &from, &name);

	/* "MERGED " -> "MERGED", "HELP: " -> "HELP" */
	head = skip_signs((struct mr_str){ def->subject, more ? from : strlen(def->subject) });
	if (str_ends(head, ":"))
		head.len--;
	if (def->subject[0] == '{' && head.len == 0)
		rest = str_trim(subject); /* fits every subject, and says nothing about the type */
	else if (!def->subject[0] || !take_head(head, &rest))
		return false;
	for (; more && n < TYPE_FIELDS_MAX; n++) {
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
	if (head.len > 0 && !head_is_word(head) && !exact)
		return false;
	*ret_n = n;
	*ret_weight = head.len;
	return true;
}

size_t
type_subject_weight(const struct type_def *def, struct mr_str subject)
{
	struct mr_str parts[TYPE_FIELDS_MAX];
	size_t n, weight;

	return type_subject_parts(def, subject, parts, &n, &weight) ? weight : 0;
}

/* ---- Routes ---- */

struct party {
	struct mr_str agent;
	const char *role; /* or NULL */
};

struct mr_str
type_agent_of(const char *address)
{
	struct mr_str agent, room;

	address_split(str_of(address ? address : ""), &agent, &room);
	if (agent.len > 1 && agent.ptr[agent.len - 1] == '/')
		agent.len--;
	return agent;
}

/* Is a part of it "polecat", "polecats", "polecat-7" or "team-lead"? */
static bool
address_says(struct mr_str agent, struct mr_str role)
{
	for (struct mr_str part; str_cut(&agent, '/', &part);) {
		size_t more = part.len - role.len;

		if (part.len < role.len)
			continue;
		if (str_caseeq(str_first(part, role.len), role)) {
			if (more == 0 || part.ptr[role.len] == '-' || (more == 1 && part.ptr[role.len] == 's'))
				return true;
		} else if (str_caseeq((struct mr_str){ part.ptr + more, role.len }, role) &&
			   part.ptr[more - 1] == '-') {
			return true;
		}
	}
	return false;
}

static bool
is_role(const struct party *p, struct mr_str role)
{
	static const char *const others[] = { "mayor", "deacon", "witness", "refinery", "polecat", "crew", "dog",
		"boot", "overseer" };

	if (str_eq(role, STR("any")))
		return true;
	if (p->role && p->role[0] && str_caseeq(str_of(p->role), role))
		return true;
	if (str_eq(role, STR("worker")))
		return !is_role(p, STR("lead"));
	if (address_says(p->agent, role))
		return !str_eq(role, STR("deacon")) || p->agent.len == role.len;
	if ((!str_eq(role, STR("polecat")) && !str_eq(role, STR("crew"))) || !memchr(p->agent.ptr, '/', p->agent.len))
		return false;
	/* "deacon/dogs/rex" is a dog and "gp/witness" a witness; "gp/nux" names no role, so it is a worker. */
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (address_says(p->agent, str_of(others[i])))
			return false;
	return true;
}

static bool
side_fits(struct mr_str side, const struct party *p, const struct party *sender)
{
	for (struct mr_str role; str_word(&side, " \t,", &role);)
		if (str_eq(role, STR("self")) ? str_eq(p->agent, sender->agent) : is_role(p, role))
			return true;
	return false;
}

bool
type_route_fits(const struct type_def *def, const char *sender, const char *sender_role, const char *recipient,
    const char *recipient_role)
{
	struct party from = { type_agent_of(sender), sender_role }, to = { type_agent_of(recipient), recipient_role };

	for (size_t i = 0; i < def->routes.n; i++) {
		const char *route = def->routes.v[i], *arrow = strstr(route, "->");

		if (arrow && side_fits(str_between(route, arrow), &from, &from) &&
		    side_fits(str_of(arrow + 2), &to, &from))
			return true;
	}
	return def->routes.n == 0;
}
