/* SPDX-License-Identifier: MIT */
/* filter.c - the filter options that several commands share. */
#include "cli/cli.h"

bool
filter_read(struct cli *cli, struct mr_filter *ret, struct filter_store *store)
{
	struct mr_filter filter = { 0 };

	filter.from = opt_text(cli, "from");
	filter.type = opt_text(cli, "type");
	filter.no_control = !cli->json; /* those are for programs, and wait for a patrol */
	filter.thread = opt_text(cli, "thread");
	if (!opt_time(cli, "since", &filter.since_ms))
		return false;
	if (opt_text(cli, "priority")) {
		if (!opt_priority(cli, "priority", &store->priority))
			return false;
		filter.priority = &store->priority;
	}
	*ret = filter;
	return true;
}
