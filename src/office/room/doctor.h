/* SPDX-License-Identifier: MIT */
/*
 * doctor.h - what the doctor's files in the post office share.
 *
 *	doctor.c           settings, storage, the clock, the operator, mail that nobody fetches
 *	doctor_work.c      claims of the dead, links that lead nowhere
 *	doctor_sessions.c  bindings of harness sessions that are over
 *
 * What only a driver can see is in src/rooms/X/inspect.c.
 */
#ifndef OFFICE_DOCTOR_H
#define OFFICE_DOCTOR_H

#include "base/findings.h"
#include "office/who/who.h"

struct examination {
	struct mr_room *room;
	struct findings f;    /* its attic is in the state folder */
	struct mr_names gone; /* agents that nobody is acting as */
};

enum mr_rc doctor_claims(struct examination *x, struct mr_error *err);
enum mr_rc doctor_links(struct examination *x, struct mr_error *err);
void doctor_sessions(struct examination *x);

#endif
