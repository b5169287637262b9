/* SPDX-License-Identifier: MIT */
/* settings.h - a town whose room has other settings, and the data folder of this tree. */
#ifndef TESTS_OFFICE_SETTINGS_H
#define TESTS_OFFICE_SETTINGS_H

#include "town.h"

/* In this handle only. */
static inline void
town_settings(struct town *t, const char *lines)
{
	struct mr_error err = { 0 };

	record_done(&t->room->settings);
	t->room->settings = (struct record){ 0 };
	assert_ok(record_parse(str_of(lines), &t->room->settings, &err));
}

static inline void
town_data(struct town *t)
{
	free(t->room->data_dir);
	t->room->data_dir = strdup(TEST_DATA "/../../share/mailroom");
}

#endif
