/* SPDX-License-Identifier: MIT */
/* Any bytes as front matter: parts lie inside the input, and a letter that can be written is read again as it was. */
#include "fuzz.h"

#include "message/front.h"
#include "rooms/handoff/handoff.h"

static void
check_front(struct mr_str text)
{
	struct front front;
	struct mr_str rest, key, value, first;

	if (!front_split(text, &front))
		return;
	assert(lies_within(front.head, text) && lies_within(front.body, text));
	assert(front.head.len + front.body.len + 6 <= text.len);
	rest = front.head;
	while (front_next(&rest, &key, &value)) {
		assert(lies_within(key, front.head) && lies_within(value, front.head));
		assert(value.len == 0 || !memchr(value.ptr, '\n', value.len));
	}
	assert(rest.len == 0);
	if (front_get(front.head, "from", &first))
		assert(lies_within(first, front.head));
}

static void
check_same(struct mr_str a, struct mr_str b)
{
	assert(str_eq(a, b));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size);
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct mr_error err = { 0 };
	struct letter letter, again;

	check_front(text);
	if (!letter_parse(text, &letter))
		return 0;
	assert(lies_within(letter.from, text) && lies_within(letter.body, text) && lies_within(letter.head, text));
	if (letter_write(&letter, &out, &err) != MR_OK) {
		assert(err.code == MR_REFUSED);
		return 0;
	}
	assert(letter_parse(buf_str(&out), &again));
	check_same(letter.from, again.from);
	check_same(letter.msg_id, again.msg_id);
	check_same(letter.subject, again.subject);
	check_same(letter.reply_to, again.reply_to);
	check_same(letter.to, again.to);
	check_same(letter.body, again.body);
	return 0;
}
