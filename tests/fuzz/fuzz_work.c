/* SPDX-License-Identifier: MIT */
/* Any name in a queue's folders: what parses has an id, and a name built from it says the same. */
#include "fuzz.h"

#include "base/id.h"
#include "rooms/maildir/maildir.h"

static void
check_parsed(struct mr_str name)
{
	static const enum queue_state states[] = { QUEUE_READY, QUEUE_DELAYED, QUEUE_CLAIMED, QUEUE_DONE,
		QUEUE_FAILED };

	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		struct work_name n;

		if (!work_parse(states[i], name, &n))
			continue;
		assert(id_valid(str_of(n.file.id)) && n.p < QUEUE_PRIORITIES && lies_within(n.file.base, name));
		assert(states[i] != QUEUE_CLAIMED || token_valid(str_of(n.file.token)));
		assert(states[i] != QUEUE_DELAYED || n.not_before_ms >= 0);
	}
}

static void
check_built(struct mr_str name)
{
	struct work_name ready, back;
	char file[NAME_LEN], built[NAME_LEN];

	if (name.len >= sizeof(file) || !work_parse(QUEUE_READY, name, &ready))
		return;
	memcpy(file, name.ptr, name.len);
	file[name.len] = '\0';
	if (work_claimed_name("0123456789ab", 1772706600, 4, 1, file, built)) {
		assert(work_parse(QUEUE_CLAIMED, str_of(built), &back));
		assert(strcmp(back.file.id, ready.file.id) == 0 && back.p == 1 && work_attempt(&back) == 4);
	}
	if (work_delayed_name(1772706600123, 3, file, built)) {
		assert(work_parse(QUEUE_DELAYED, str_of(built), &back));
		assert(strcmp(back.file.id, ready.file.id) == 0 && back.p == 3 && back.not_before_ms == 1772706600123);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str name = input_of(data, size);

	for (size_t i = 0; i < name.len; i++) {
		if (name.ptr[i] == '\0' || name.ptr[i] == '/')
			name.len = i;
	}
	check_parsed(name);
	check_built(name);
	return 0;
}
