/* SPDX-License-Identifier: MIT */
#ifndef OFFICE_TARGETS_H
#define OFFICE_TARGETS_H

#include "office/office.h"

/* May a new group, queue or channel be called so? MR_REFUSED: it is the name of an agent or of a pattern, and mail that
 * went there would go elsewhere or be ambiguous from then on. */
enum mr_rc target_name_free(struct mr_room *room, const char *kind, const char *name, struct mr_error *err);

#endif
