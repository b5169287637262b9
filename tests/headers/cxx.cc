/* SPDX-License-Identifier: MIT */
/* The public headers alone, as C++: it compiles, and links by C names. */
#include <mailroom-hooks.h>
#include <mailroom-town.h>

int
main()
{
	mr_error err = {};
	mr_draft draft = {};
	int64_t ms = 0;

	(void)draft;
	if (mr_duration_parse("90s", &ms, &err) != MR_OK || ms != 90000)
		return 1;
	return mr_address_check("..", &err) == MR_OK || err.message[0] == '\0';
}
