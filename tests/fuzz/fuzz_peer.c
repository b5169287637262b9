/* SPDX-License-Identifier: MIT */
/* Any bytes as what a session of Claude Code writes to a socket: no text without the token, and none that is longer
 * than what was sent, but for bytes that are no UTF-8 (three for one). */
#include "fuzz.h"

#include "cli/peer/frame.c"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str lines = input_of(data, size);
	mr_auto(buf_done) struct buf text = BUF_INIT, none = BUF_INIT;
	const char *problem = frame_text(lines, "00000000", "s1", &text);

	assert(problem ? *problem && text.len == 0 : text.len <= 3 * size);
	assert(problem || memmem(lines.ptr, lines.len, "token", 5));
	assert(frame_text(lines, "00000000\n", "s1", &none) && none.len == 0);
	return 0;
}
