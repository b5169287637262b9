/* SPDX-License-Identifier: MIT */
/*
 * edit.c - the next version of an inbox. A good file keeps every byte but those of a changed `read` and of the new
 * entry, whatever its layout; of a damaged one the whole entries are put together anew.
 */
#include "base/error.h"
#include "rooms/teams/teams.h"

/* Where there is no `read`: as the last member, laid out like the first. */
static void
add_read(const struct entry *e, const char *word, struct buf *out)
{
	struct json_value object = { JSON_OBJECT, e->raw }, key = { 0 }, value = { 0 };
	const char *end = e->raw.ptr + 1;
	size_t space = json_skip_space(e->raw, 1) - 1;

	for (size_t at = 0; json_member(object, &at, &key, &value);)
		end = value.raw.ptr + value.raw.len;
	buf_add(out, (struct mr_str){ e->raw.ptr, (size_t)(end - e->raw.ptr) });
	buf_addc(out, ',');
	buf_add(out, (struct mr_str){ e->raw.ptr + 1, space });
	buf_addf(out, "\"read\":%s%s", space > 0 ? " " : "", word);
	buf_add(out, (struct mr_str){ end, (size_t)(e->raw.ptr + e->raw.len - end) });
}

static bool
add_entry(const struct entry *e, struct buf *out)
{
	bool is = e->read.raw.ptr && json_truthy(e->read);

	if (e->mark == ENTRY_AS_IS || (e->mark == ENTRY_SEEN) == is) {
		buf_add(out, e->raw);
		return false;
	}
	const char *word = e->mark == ENTRY_SEEN ? "true" : "false";

	if (e->read.raw.ptr) {
		const char *behind = e->read.raw.ptr + e->read.raw.len;

		buf_add(out, (struct mr_str){ e->raw.ptr, (size_t)(e->read.raw.ptr - e->raw.ptr) });
		buf_adds(out, word);
		buf_add(out, (struct mr_str){ behind, (size_t)(e->raw.ptr + e->raw.len - behind) });
	} else {
		add_read(e, word, out);
	}
	return true;
}

enum mr_rc
edit_inbox(const struct inbox *in, const struct letter *more, struct buf *ret, bool *ret_changed, struct mr_error *err)
{
	bool good = in->state == INBOX_GOOD && in->n > 0, changed = in->state != INBOX_GOOD || more != NULL;
	const char *at = good ? in->text.ptr : NULL; /* up to here it is copied */

	for (size_t i = 0; i < in->n; i++) {
		const struct entry *e = &in->v[i];

		if (good)
			buf_add(ret, (struct mr_str){ at, (size_t)(e->raw.ptr - at) });
		else
			buf_adds(ret, i == 0 ? "[\n  " : ",\n  ");
		changed |= add_entry(e, ret);
		at = e->raw.ptr + e->raw.len;
	}
	if (more) {
		buf_adds(ret, in->n == 0 ? "[\n" : ",\n");
		letter_add(more, ret);
	}
	if (good)
		buf_add(ret, (struct mr_str){ at, (size_t)(in->text.ptr + in->text.len - at) });
	else
		buf_adds(ret, in->n == 0 && !more ? "[]" : "\n]");
	if (!buf_ok(ret))
		return mr_nomem(err);
	*ret_changed = changed;
	return MR_OK;
}
