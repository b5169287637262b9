/* SPDX-License-Identifier: MIT */
/* filter.c - the filter options that several commands share. */
#include "helptext.h"

struct mr_filter
filter_of(const struct cli *cli, const struct filter_options *o)
{
	return (struct mr_filter){
		.from = o->from,
		.type = o->type,
		.priority = o->priority,
		.thread = o->thread,
		.since_ms = o->since_ms,
		.no_control = !cli->json, /* those are for programs, and wait for a patrol */
	};
}

bool
filter_is_given(const struct filter_options *o)
{
	return o->from || o->type || o->priority || o->thread || o->since_ms != 0;
}
