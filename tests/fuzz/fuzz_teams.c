/* SPDX-License-Identifier: MIT */
/* Any bytes as an inbox of a team: after an entry was added and all were marked it is a good one, with all that could
 * be read before; of a good one no byte of another entry has changed. */
#include "fuzz.h"

#include "rooms/teams/teams.h"
#include <stdlib.h>

static void
parse(struct inbox *in, struct mr_str text)
{
	struct mr_error err = { 0 };

	assert(in);
	buf_add(&in->text, text);
	enum mr_rc rc = inbox_parse(in, &err);

	assert(rc == MR_OK);
	for (size_t i = 0, first, n; i < in->order_n; i = first + n) {
		rc = inbox_moment(in, i, &first, &n, &err);
		assert(rc == MR_OK && first == i && n > 0);
	}
	for (size_t i = 0; i < in->n; i++) {
		assert(lies_within(in->v[i].raw, buf_str(&in->text)));
		assert(in->v[i].problem || inbox_find(in, in->v[i].id) == &in->v[i]);
	}
	for (size_t i = 0; i < in->order_n; i++) {
		struct mr_message msg = { 0 };

		assert(i == 0 || strcmp(in->order[i - 1]->id, in->order[i]->id) < 0);
		rc = entry_message(in->order[i], "bob", "x", SCAN_BODIES, &msg, &err);
		assert(rc == MR_OK && msg.from && msg.subject && msg.type && msg.body);
		mr_message_done(&msg);
	}
}

static void
check_edit(struct inbox *in, bool mark, const struct letter *more)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(inbox_unref) struct inbox *after = inbox_new("bob");
	struct mr_error err = { 0 };
	bool changed = false;

	for (size_t i = 0; i < in->n; i++) {
		in->v[i].marked = mark && !in->v[i].problem;
		in->v[i].seen |= in->v[i].marked;
	}
	enum mr_rc rc = edit_inbox(in, more, &text, &changed, &err);

	assert(rc == MR_OK);
	parse(after, buf_str(&text));
	assert(after->state == INBOX_GOOD && after->n == in->n + (more ? 1 : 0));
	for (size_t i = 0; i < in->n; i++) {
		assert(mark || str_eq(in->v[i].raw, after->v[i].raw));
		assert(in->v[i].problem || !mark || after->v[i].seen);
		assert(in->v[i].problem || strcmp(in->v[i].id, after->v[i].id) == 0);
	}
	if (in->state == INBOX_GOOD && in->n > 0 && !mark && !more)
		assert(!changed && str_eq(buf_str(&in->text), buf_str(&text)));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	mr_auto(inbox_unref) struct inbox *in = inbox_new("bob");
	mr_auto(letter_done) struct letter letter = { 0 };
	struct mr_message msg = {
		.from = "alice", .subject = "s", .date_ms = 1, .type = "", .body = "hi", .body_len = 2
	};
	struct delivery what = { .msg = &msg, .keep = true };
	struct mr_error err = { 0 };
	struct mr_str text = input_of(data, size);
	mr_auto(buf_done) struct buf name = BUF_INIT;
	struct mr_str stem;

	parse(in, text);
	enum mr_rc rc = letter_make(&letter, &what, &err);

	assert(rc == MR_OK);
	if (in->state != INBOX_ALIEN) {
		check_edit(in, false, NULL);
		check_edit(in, true, NULL);
		check_edit(in, true, &letter);
		check_edit(in, false, &letter);
	}
	teams_sanitise(&name, (struct mr_str){ text.ptr, text.len < 100 ? text.len : 100 }, SANITISE_INBOX);
	buf_adds(&name, ".json");
	assert(name.len == 5 || teams_is_inbox(buf_z(&name), &stem));
	return 0;
}
