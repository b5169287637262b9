/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a line of the user's configuration: "NAME" up to the first line break, then the value. It is refused
 * with a reason, or it is a value that a line can hold; and a command that passed hands no field of a message to a
 * shell as its program.
 */
#include "fuzz.h"

#include "message/header.h"
#include "office/rules/config.h"
#include "office/patrol/patrol.h"

/* sh -c PROGRAM in its plainest form, judged without the code that is tested. */
static void
check_program(const char *command)
{
	struct mr_error err = { 0 };
	mr_auto(mr_names_done) struct mr_names words = split_command(command, &err);

	if (words.n < 3 || strcmp(words.v[0], "sh") != 0 || strcmp(words.v[1], "-c") != 0)
		return;
	const char *open = strchr(words.v[2], '{'), *close = open ? strchr(open, '}') : NULL;

	assert(!close || close == open + 1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	mr_auto(buf_done) struct buf name = BUF_INIT, value = BUF_INIT;
	const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
	size_t n = end ? (size_t)(end - data) : size;
	struct mr_error err = { 0 };

	buf_add(&name, (struct mr_str){ (const char *)data, n });
	if (end)
		buf_add(&value, (struct mr_str){ (const char *)end + 1, size - n - 1 });
	enum mr_rc rc = mr_config_set(NULL, buf_z(&name), buf_z(&value), false, &err);

	assert(rc == MR_OK || err.message[0]);
	if (rc != MR_OK)
		return 0;
	assert(header_name_valid(str_of(buf_z(&name))) && !header_value_problem(str_of(buf_z(&value))));
	if (config_check_command(buf_z(&value), &err) == MR_OK)
		check_program(buf_z(&value));
	return 0;
}
