/* SPDX-License-Identifier: MIT */
/*
 * hygiene.h - rules against too much mail in a room. Lines of the room's settings:
 *
 *	Hygiene: off | warn | refuse      warn if there is a policy, else off
 *	Hygiene-Policy: gastown           a file policy/NAME of the data folder, or a record of kind "policy"
 *
 * A policy has header lines:
 *
 *	Budget: polecat 1 except POLECAT_DONE      so many messages a life of an agent in that role; these do not count
 *	Budget: refinery MERGED MERGE_FAILED       only mail of these types
 *	Always: escalation HANDOFF                 types that every role may send, and that never count
 *	Duplicate-Within: 10m
 *	No-Answer: HEALTH_CHECK                    types that are not answered with mail
 *
 * hygiene.c reads a policy and applies the rules to facts; mail/lint.c finds the facts about messages.
 */
#ifndef OFFICE_HYGIENE_H
#define OFFICE_HYGIENE_H

#include "office/office.h"

enum hygiene_mode { HYGIENE_OFF, HYGIENE_WARN, HYGIENE_REFUSE };

struct policy { /* finish with policy_done */
	enum hygiene_mode mode;
	struct record lines;
	int64_t within_ms;
};

struct hygiene_mail { /* the facts that the rules use */
	char id[MR_ID_LEN + 1];
	const char *from, *role; /* the role that its sender registered with; "" */
	const char *type;        /* "" for plain mail */
	const char *topic;       /* its Issue or Bead; "" */
	const char *subject;
	const char *answers; /* type of the message that it answers; NULL: none */
	unsigned life;
	int64_t date_ms;
	bool nudge; /* its type is for nudges */
};

/* A sentence without a full stop. */
typedef void hygiene_fn(void *ctx, const struct hygiene_mail *mail, const char *rule, const char *text);

/* ---- hygiene.c ---- */
/* name NULL: the policy of the room. MR_NOTFOUND: there is no such policy. */
enum mr_rc policy_load(struct mr_room *room, const char *name, struct policy *ret, struct mr_error *err);
void policy_done(struct policy *policy);
/* Judges the message alone. */
void hygiene_judge(
    const struct policy *policy, const struct hygiene_mail *mail, struct mr_str body, hygiene_fn *fn, void *ctx);
/* Judges it together with its sender's earlier mail: `before`, the oldest first. */
void hygiene_judge_history(const struct policy *policy, const struct hygiene_mail *mail,
    const struct hygiene_mail *before, size_t n, hygiene_fn *fn, void *ctx);
/* Does a message of this sender's role count towards its budget in this life? */
bool hygiene_counts(const struct policy *policy, const struct hygiene_mail *mail);
bool hygiene_has_placeholder(struct mr_str subject, struct mr_str body, struct mr_str *ret);
bool hygiene_is_empty_handoff(struct mr_str body);
/* Does it say nothing but "status: fine" and the like? */
bool hygiene_is_routine(struct mr_str subject, struct mr_str body);

#endif
