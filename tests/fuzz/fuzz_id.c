/* SPDX-License-Identifier: MIT */
/* Any bytes as an id, a token, a message id, a number; ids made from names are valid and always the same. */
#include "fuzz.h"

#include "base/id.h"
#include "message/message.h"

static void
check_hash(struct mr_str text)
{
	struct sha256 hash;
	unsigned char sum[32];
	char whole[65], pieces[65];

	sha256_hex(text, whole);
	sha256_init(&hash);
	size_t half = text.len / 3;
	sha256_add(&hash, (struct mr_str){ text.ptr, half });
	sha256_add(&hash, (struct mr_str){ text.ptr + half, text.len - half });
	sha256_end(&hash, sum);
	for (size_t i = 0; i < sizeof(sum); i++)
		(void)snprintf(pieces + 2 * i, 3, "%02x", sum[i]);
	assert(strcmp(whole, pieces) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size);
	char id[MR_ID_LEN + 1], again[MR_ID_LEN + 1];
	uint64_t number, ms = 0;

	if (id_valid(text)) {
		assert(text.len == MR_ID_LEN);
		memcpy(id, text.ptr, MR_ID_LEN);
		id[MR_ID_LEN] = '\0';
		assert(id_time_ms(id) >= 0 && id_time_ms(id) < (int64_t)1 << 48);
	}
	assert(!token_valid(text) || text.len == MR_TOKEN_LEN);
	memcpy(&ms, text.ptr, text.len < 6 ? text.len : 6); /* 48 bits */
	id_from_name((int64_t)ms, text, id);
	id_from_name((int64_t)ms, text, again);
	assert(id_valid(str_of(id)) && id_time_ms(id) == (int64_t)ms && strcmp(id, again) == 0);
	struct mr_str inner = msgid_inner(text, "town");
	assert(lies_within(inner, text));
	(void)msgid_inner(text, NULL);
	if (str_to_u64(text, &number)) {
		mr_auto(buf_done) struct buf digits = BUF_INIT;
		buf_addf(&digits, "%llu", (unsigned long long)number);
		assert(str_ends(text, buf_z(&digits)));
	}
	check_hash(text);
	return 0;
}
