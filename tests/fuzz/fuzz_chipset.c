/* SPDX-License-Identifier: MIT */
/* Any bytes as a message file and as its name; a mark changes "read" and nothing else, and can be taken back. */
#include "fuzz.h"

#include "base/id.h"
#include "base/text.h"
#include "rooms/chipset/chipset.h"

static void
check_name(struct mr_str text)
{
	struct chipset_name parts = { 0 };
	char id[MR_ID_LEN + 1];

	if (!chipset_name_parse(text, &parts))
		return;
	assert(parts.sender.len > 0 && lies_within(parts.sender, text));
	assert(chipset_name_id(text, id) && id_valid(str_of(id)));
	if (!chipset_id_problem(parts.sender)) {
		char sender[CHIPSET_ID_MAX + 1] = "", made[CHIPSET_NAME_MAX + 1];
		struct chipset_name again = { 0 };

		memcpy(sender, parts.sender.ptr, parts.sender.len);
		chipset_name_make(parts.ms, sender, made);
		assert(chipset_name_parse(str_of(made), &again) && str_eq(again.sender, parts.sender));
		assert(parts.ms < 0 || again.ms == parts.ms);
	}
}

static void
check_message(const struct mr_message *msg)
{
	assert(id_valid(str_of(msg->id)));
	assert(msg->from && msg->subject && msg->type && msg->thread && msg->reply_to && msg->path && msg->body);
	assert(!strchr(msg->subject, '\n') && !strchr(msg->type, '\n'));
	assert(utf8_valid((struct mr_str){ msg->body, msg->body_len }));
	for (size_t i = 0; i < msg->to.n; i++)
		assert(msg->to.v[i][0]);
	assert(mr_message_header(msg, "Message-ID"));
}

static void
check_mark(struct mr_str text, struct json_value object)
{
	mr_auto(buf_done) struct buf marked = BUF_INIT, back = BUF_INIT, again = BUF_INIT;
	struct mr_error err = { 0 };
	struct json_value changed;
	bool was = chipset_is_read(object);

	assert(!chipset_set_read(text, object, was, &marked) && marked.len == 0);
	assert(chipset_set_read(text, object, !was, &marked));
	assert(chipset_object(buf_str(&marked), &changed, &err) == MR_OK);
	assert(chipset_is_read(changed) == !was);
	assert(chipset_set_read(buf_str(&marked), changed, was, &back));
	assert(chipset_object(buf_str(&back), &changed, &err) == MR_OK && chipset_is_read(changed) == was);
	assert(chipset_set_read(buf_str(&back), changed, !was, &again));
	assert(str_eq(buf_str(&again), buf_str(&marked)));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size);
	struct mr_error err = { 0 };
	struct json_value object;
	struct chipset_origin at = {
		.box = "bob", .name = "2026-07-01T08-15-30.250Z-lead-01.json", .folder = MR_INBOX, .mtime_ms = 1
	};

	check_name(text);
	if (chipset_object(text, &object, &err) == MR_OK)
		check_mark(text, object);
	for (enum scan_depth depth = SCAN_NAMES; depth <= SCAN_BODIES; depth++) {
		struct mr_message msg = { 0 };
		enum mr_rc rc = chipset_letter(text, &at, depth, &msg, &err);

		assert(rc == MR_OK || rc == MR_CORRUPT);
		if (rc == MR_OK && depth == SCAN_BODIES)
			check_message(&msg);
		mr_message_done(&msg);
	}
	return 0;
}
