/* SPDX-License-Identifier: MIT */
#include "cli/view.h"
#include <sys/ioctl.h>

bool
cli_window(size_t *ret_columns, size_t *ret_lines)
{
	struct winsize size = { 0 };

	if (ioctl(1, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return false;
	*ret_columns = size.ws_col;
	*ret_lines = size.ws_row;
	return true;
}
