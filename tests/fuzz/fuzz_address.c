/* SPDX-License-Identifier: MIT */
/* Any bytes as an address and as a list of them. What an address cannot hold of a foreign name stands in it as "%1E".
 */
#include "fuzz.h"

#include "base/text.h"
#include "message/address.h"

static bool
is_capital_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F');
}

static bool
is_escaped(struct mr_str address, size_t at)
{
	return address.ptr[at] == '%' && address.len - at > 2 && is_capital_hex(address.ptr[at + 1]) &&
	       is_capital_hex(address.ptr[at + 2]);
}

static void
check_accepted(struct mr_str address)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-/";

	assert(address.len >= 1 && address.len <= MR_ADDRESS_MAX);
	for (size_t i = 0; i < address.len; i++) {
		bool starts = i == 0 || address.ptr[i - 1] == '/';
		assert(address.ptr[i] && (strchr(allowed, address.ptr[i]) || is_escaped(address, i)));
		assert(!starts || (address.ptr[i] != '.' && address.ptr[i] != '/'));
	}
	assert(address.ptr[address.len - 1] != '/');
	assert(address_plain(address));
}

/* How many of them could stand in a list as they are: those, joined, are the same list. */
static size_t
read_list(struct mr_str text, struct buf *joined, size_t *ret_plain)
{
	struct address_list list = address_list(text);
	size_t n = 0;

	*ret_plain = 0;
	for (struct mr_str address; address_next(&list, &address); n++) {
		assert(address.len > 0 && lies_within(address, text));
		if (!address_plain(address))
			continue;
		++*ret_plain;
		buf_adds(joined, joined->len > 0 ? ", " : "");
		buf_add(joined, address);
	}
	return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size);
	struct mr_error err = { 0 };
	char normal[MR_ADDRESS_MAX + 1];
	struct mr_str agent, room;

	enum mr_rc rc = address_check(text, &err);
	assert(rc == MR_OK || rc == MR_REFUSED);
	if (rc == MR_OK)
		check_accepted(text);
	else
		assert(err.message[0] && err.hint[0] && !strchr(err.message, '\n'));
	if (address_normal(text, normal, &err) == MR_OK)
		check_accepted(str_of(normal));
	address_split(text, &agent, &room);
	assert(lies_within(agent, text) && lies_within(room, text));
	assert(agent.len + room.len == text.len || agent.len + room.len + 1 == text.len);

	struct buf first = BUF_INIT, second = BUF_INIT;
	size_t plain, again;

	(void)read_list(text, &first, &plain);
	assert(read_list(buf_str(&first), &second, &again) == plain && str_eq(buf_str(&second), buf_str(&first)));
	buf_done(&first);
	buf_done(&second);
	return 0;
}
