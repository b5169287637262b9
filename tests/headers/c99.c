/* SPDX-License-Identifier: MIT */
/* The public headers alone, as strict C99. */
#include <mailroom-hooks.h>
#include <mailroom-town.h>

int main(void);

int
main(void)
{
	struct mr_error err = { MR_OK, 0, "", "" };
	struct mr_draft draft = { 0 };
	int64_t ms = 0;

	(void)draft;
	if (mr_duration_parse("90s", &ms, &err) != MR_OK || ms != 90000)
		return 1;
	return mr_address_check("..", &err) == MR_OK || err.message[0] == '\0';
}
