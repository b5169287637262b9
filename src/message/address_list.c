/* SPDX-License-Identifier: MIT */
/*
 * address_list.c - mailbox lists as in To:, one pass, nothing copied.
 *
 *	alice@x, "Smith, Bob" <bob@y>, (the boss) carol@z (Carol), Friends: dave@w, eve@v;
 *
 * Our own addresses may have a colon ("queue:work"), so a colon names a group only in a list that also has
 * the semicolon that ends one.
 */
#include "message/address.h"

struct mailbox_span {                /* of the mailbox being read; NULL: not seen yet */
	const char *bare, *bare_end; /* text outside comments and angle brackets */
	const char *angle, *angle_end;
};

/* Just after the quoted string, comment or <...> that begins at p; `end` when it never closes. */
static const char *
skip_quoted(const char *p, const char *end)
{
	for (p++; p < end; p++) {
		if (*p == '\\' && p + 1 < end)
			p++;
		else if (*p == '"')
			return p + 1;
	}
	return end;
}

static const char *
skip_comment(const char *p, const char *end)
{
	size_t depth = 0;

	for (; p < end; p++) {
		if (*p == '\\' && p + 1 < end)
			p++;
		else if (*p == '(')
			depth++;
		else if (*p == ')' && --depth == 0)
			return p + 1;
	}
	return end;
}

static const char *
skip_angle(const char *p, const char *end)
{
	const char *close = memchr(p, '>', (size_t)(end - p));
	return close ? close + 1 : end;
}

/* "<@relay,@other:bob@y>": the old source routes say nothing about who it is. */
static struct mr_str
without_route(struct mr_str s)
{
	const char *colon = s.len > 0 && s.ptr[0] == '@' ? memchr(s.ptr, ':', s.len) : NULL;
	if (!colon)
		return s;
	size_t skip = (size_t)(colon + 1 - s.ptr);
	return str_trim((struct mr_str){ s.ptr + skip, s.len - skip });
}

static bool
emit(struct mailbox_span *m, address_fn *fn, void *ctx)
{
	struct mr_str found = { NULL, 0 };

	if (m->angle)
		found = without_route(str_trim((struct mr_str){ m->angle, (size_t)(m->angle_end - m->angle) }));
	else if (m->bare)
		found = (struct mr_str){ m->bare, (size_t)(m->bare_end - m->bare) };
	*m = (struct mailbox_span){ 0 };
	return found.len == 0 || fn(ctx, found);
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

void
address_list_each(struct mr_str value, address_fn *fn, void *ctx)
{
	struct mailbox_span m = { 0 };
	if (value.len == 0)
		return;
	const char *end = value.ptr + value.len;
	bool groups = memchr(value.ptr, ';', value.len) != NULL;

	for (const char *p = value.ptr, *next; p < end; p = next) {
		next = p + 1;
		if (*p == ',' || (groups && *p == ';')) {
			if (!emit(&m, fn, ctx))
				return;
			continue;
		}
		if (groups && *p == ':') {
			m = (struct mailbox_span){ 0 };
			continue;
		}
		if (*p == '(') {
			next = skip_comment(p, end);
			continue;
		}
		if (*p == '<') {
			next = skip_angle(p, end);
			m.angle = p + 1;
			m.angle_end = next[-1] == '>' ? next - 1 : next;
			continue;
		}
		if (is_space(*p))
			continue;
		if (*p == '"')
			next = skip_quoted(p, end);
		if (!m.bare)
			m.bare = p;
		m.bare_end = next;
	}
	(void)emit(&m, fn, ctx);
}
