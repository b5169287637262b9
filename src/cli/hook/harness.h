/* SPDX-License-Identifier: MIT */
/* harness.h - what is known of one harness: a row of the table in event.c, read also by answer.c. */
#ifndef CLI_HOOK_HARNESS_H
#define CLI_HOOK_HARNESS_H

#include "cli/hook/hook.h"

struct named_moment {
	const char *name;
	enum moment moment;
};

enum form {
	FORM_SPECIFIC, /* {"hookSpecificOutput":{"hookEventName","additionalContext"}}, {"decision","reason"} */
	FORM_CURSOR,   /* {"additional_context"}, {"followup_message"} */
};

struct harness {
	const char *name;        /* also the beginning of its session's name */
	const char *session_key; /* of the event */
	const struct named_moment *events;
	enum form form;
	const char *decision; /* FORM_SPECIFIC: that word lets the turn go on */
	bool wakes;
	bool says_session;  /* its shells and servers can tell which session is theirs */
	bool shows_results; /* after every tool its hook gets what the model gets of it */
};

#endif
