/* SPDX-License-Identifier: MIT */
/* export.h - shared by export.c (the run, and which message answers which) and export_names.c (agents of one room as
 * agents of the other). */
#ifndef OFFICE_EXPORT_H
#define OFFICE_EXPORT_H

#include "office/mail/mail.h"

struct name_pair {
	const char *here, *there; /* addresses */
};
struct name_pairs {
	struct name_pair *v;
	size_t n, cap;
	struct arena *own;
};
struct crossing { /* finish with crossing_done */
	struct mr_room *from, *to;
	struct name_pairs renamed; /* by the options */
	struct name_pairs agents;  /* agents whose mail is copied */
};
enum mr_rc crossing_plan(struct crossing *c, const struct mr_export_options *options, struct mr_error *err);
/* Makes the mailbox of agents.v[i] in the other room, if it is missing. */
enum mr_rc crossing_make(struct crossing *c, size_t i, struct mr_error *err);
/* MR_OK also if it exists. */
enum mr_rc crossing_add_agent(struct mr_room *to, const char *name, const char *role, struct mr_error *err);
/* The sender of a message in the other room; a name that cannot be spelled there is replaced by a similar one. */
enum mr_rc crossing_sender(
    struct crossing *c, const char *name, char ret[MR_ADDRESS_MAX + 1], bool *ret_rough, struct mr_error *err);
enum mr_rc crossing_names(struct crossing *c, const struct mr_names *names, struct mr_names *ret, struct mr_error *err);
void crossing_done(struct crossing *c);

#endif
