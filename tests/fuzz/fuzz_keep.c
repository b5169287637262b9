/* SPDX-License-Identifier: MIT */
/* Any bytes as a setting of retention: what is understood is a day or more, or a number or a size above nothing, and
 * everything else keeps everything. */
#include "fuzz.h"

#include "room/room.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct room_keep keep = { .by = KEEP_COUNT, .limit = 1 };

	buf_add(&text, input_of(data, size));
	bool understood = room_keep_parse(buf_z(&text), &keep);

	switch (keep.by) {
	case KEEP_ALL:
		assert(keep.limit == 0);
		break;
	case KEEP_TIME:
		assert(understood && keep.limit >= (int64_t)24 * 3600 * 1000);
		break;
	case KEEP_SIZE:
		assert(understood && keep.limit >= 1024 && keep.limit % 1024 == 0);
		break;
	case KEEP_COUNT:
		assert(understood && keep.limit >= 1);
		break;
	}
	return 0;
}
