/* SPDX-License-Identifier: MIT */
/*
 * queue_name.c - the names that work has in a queue's folders. Pure: no I/O, any bytes.
 *
 *	ready, done, failed   1772706600.<id>.mr,A=1
 *	delayed               1772710200000.p2.1772706600.<id>.mr
 *	claimed               h.<token>.<deadline>.<attempt>.p2.1772706600.<id>.mr,A=1
 *
 * "p2" is where it goes back to: its priority cannot be seen from anything else but the message itself.
 */
#include "rooms/maildir/queue.h"
#include <inttypes.h>
#include <stdio.h>

/* Takes "p<digit>." off the front. */
static bool
take_priority(struct mr_str *s, unsigned *ret)
{
	if (s->len < 4 || s->ptr[0] != 'p' || s->ptr[1] < '0' || s->ptr[1] >= (char)('0' + QUEUE_PRIORITIES) ||
	    s->ptr[2] != '.')
		return false;
	*ret = (unsigned)(s->ptr[1] - '0');
	*s = (struct mr_str){ s->ptr + 3, s->len - 3 };
	return true;
}

static bool
parse_claimed(struct mr_str name, struct work_name *ret)
{
	struct file_name held;
	struct work_name n = { 0 };

	if (!name_parse_held(name, &held))
		return false;
	struct mr_str rest = { held.base.ptr, name.len - (size_t)(held.base.ptr - name.ptr) };
	if (!take_priority(&rest, &n.p) || !name_parse(rest, &n.file))
		return false;
	n.file.held = true;
	memcpy(n.file.token, held.token, sizeof(n.file.token));
	n.file.deadline_s = held.deadline_s;
	n.file.hold_attempt = held.hold_attempt;
	*ret = n;
	return true;
}

static bool
parse_delayed(struct mr_str name, struct work_name *ret)
{
	const char *dot = memchr(name.ptr, '.', name.len);
	struct work_name n = { 0 };
	uint64_t ms = 0;

	if (dot == NULL || !str_to_u64((struct mr_str){ name.ptr, (size_t)(dot - name.ptr) }, &ms) || ms > INT64_MAX)
		return false;
	struct mr_str rest = { dot + 1, name.len - (size_t)(dot + 1 - name.ptr) };
	if (!take_priority(&rest, &n.p) || !name_parse(rest, &n.file))
		return false;
	n.not_before_ms = (int64_t)ms;
	*ret = n;
	return true;
}

bool
work_parse(enum queue_state state, struct mr_str name, struct work_name *ret)
{
	struct work_name n = { 0 };

	if (name.len == 0 || name.len >= NAME_LEN)
		return false;
	if (state == QUEUE_CLAIMED)
		return parse_claimed(name, ret);
	if (state == QUEUE_DELAYED)
		return parse_delayed(name, ret);
	if (!name_parse(name, &n.file))
		return false;
	*ret = n;
	return true;
}

bool
work_claimed_name(
    const char *token, int64_t deadline_s, unsigned attempt, unsigned p, const char *file, char ret[NAME_LEN])
{
	char with_p[NAME_LEN + 4];

	(void)snprintf(with_p, sizeof(with_p), "p%u.%.*s", p % QUEUE_PRIORITIES, NAME_LEN, file);
	return name_build_held(token, deadline_s, attempt, str_of(with_p), ret);
}

bool
work_delayed_name(int64_t not_before_ms, unsigned p, const char *file, char ret[NAME_LEN])
{
	int len = snprintf(ret, NAME_LEN, "%" PRId64 ".p%u.%s", not_before_ms, p % QUEUE_PRIORITIES, file);

	return len > 0 && len < NAME_LEN;
}

unsigned
work_attempt(const struct work_name *n)
{
	return n->file.held ? n->file.hold_attempt : n->file.attempt;
}
