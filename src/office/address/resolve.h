/* SPDX-License-Identifier: MIT */
/*
 * resolve.h - what the files that turn addresses into recipients share.
 *
 *	recipients.c   the lists that come out, and the loop over what stands after `send`
 *	resolve.c      one address: the order in which it is tried, what is ambiguous
 *	canonical.c    spellings of one agent
 *	pattern.c      wildcards and @patterns
 *	expand.c       groups and the room's own patterns into their members, channels into their subscribers
 *	near.c         what to offer for a name that is unknown
 *
 * An address that fails fails the whole resolution at depth 0, where the sender wrote it; further down it is
 * a member of something, and becomes a sentence in out->trouble.
 */
#ifndef OFFICE_RESOLVE_H
#define OFFICE_RESOLVE_H

#include "base/error.h"
#include "office/office.h"

/* ---- nameset.c ---- */

#define NAMESET_FEW 8
struct nameset { /* borrowed names; finish with nameset_done */
	const char **v;
	size_t n, cap; /* cap 0: they are in `few` */
	const char *few[NAMESET_FEW];
};
bool nameset_has(const struct nameset *s, const char *name);
/* Adds the name to the list, unless it is there; the list keeps what the set borrows. */
enum mr_rc nameset_add_once(struct nameset *s, struct mr_names *list, const char *name, struct mr_error *err);
void nameset_done(struct nameset *s);

/* ---- recipients.c ---- */

struct known_agent {
	const char *name;
	bool live, stray;
};

#define NOT_LIVE_MAX 16 /* nobody reads a longer list of who is away */

struct resolver { /* finish with resolver_done */
	struct mr_room *room;
	const char *sender; /* "" for nobody */
	bool hold;
	bool many;          /* more than NOT_LIVE_MAX: who is live is not looked up, only who is there */
	signed char any[4]; /* of the kinds of prefixes[]: 0 not looked, 1 there are some, -1 there are none */
	struct recipients *out;
	struct mr_names *header; /* out->to or out->cc */
	struct nameset in_all, in_header;
	struct mr_names trail; /* how it was found, a sentence each */

	/* The agents of the room, read once, when the first pattern or unknown name asks for them. */
	struct known_agent *agents;
	size_t agents_n, agents_cap;
	bool agents_read;
	struct arena *own;

	/* Of the address under way, as it was written. */
	const char *form; /* of struct mr_resolution */
	char name[MR_ADDRESS_MAX + 1];
	struct mr_names visited; /* groups and patterns that were entered: cycles end there */
	unsigned depth;          /* 0: named by the sender; else inside of that many groups and patterns */
	bool unlisted;           /* subscribers get the mail, but the message names only the channel */
	size_t reached;          /* targets, also those that others had reached before */
	size_t left_out;         /* times that it was the sender, who is left out of groups and patterns */
	size_t trouble_before;   /* sentences in out->trouble that are about other addresses */
};
void resolver_init(struct resolver *r, struct mr_room *room, const char *sender, bool hold, struct recipients *out);
void resolver_done(struct resolver *r);
/* Takes one address of the sender's. */
enum mr_rc resolver_take(struct resolver *r, const char *given, struct mr_error *err);
/* So many are to come, before the first of them is looked up. */
void resolver_expect_many(struct resolver *r, size_t n);
/* A target that was found. `chosen`: by its name, not as one of many, so that it may be the sender. */
enum mr_rc resolver_reach(struct resolver *r, const char *target, bool live, bool chosen, struct mr_error *err);
/* Somebody in a linked room: his mail goes into the queue of that link, and the message names him. `missing`: he has no
 * mailbox there yet. */
enum mr_rc resolver_reach_away(
    struct resolver *r, const char *target, const char *address, bool missing, struct mr_error *err);
/* What the address is, kept at depth 0 only. */
void resolver_form(struct resolver *r, const char *form, const char *name);
enum mr_rc resolver_trail(struct resolver *r, struct mr_error *err, const char *fmt, ...) MR_PRINTF(3, 4);
enum mr_rc resolver_trouble(struct resolver *r, struct mr_error *err, const char *fmt, ...) MR_PRINTF(3, 4);
/* Fills in r->agents. */
enum mr_rc resolver_agents(struct resolver *r, struct mr_error *err);

/* ---- resolve.c ---- */

/* One address at any depth. */
enum mr_rc resolve_address(struct resolver *r, const char *given, struct mr_error *err);
/* Only an agent, in any spelling. */
enum mr_rc resolve_agent(struct resolver *r, struct mr_str spelling, struct mr_error *err);

/* ---- canonical.c ---- */

bool canonical_operator(struct mr_str name); /* operator, human, overseer */
/* `name` is a normal address. MR_NOTFOUND: nobody; ret is then the name under which a mailbox would be made.
 * MR_REFUSED: it is short for several. */
enum mr_rc canonical_agent(
    struct resolver *r, const char *name, char ret[MR_ADDRESS_MAX + 1], bool *ret_live, struct mr_error *err);

/* ---- pattern.c ---- */

/* The first part, up to a slash; rest is what comes after it. */
struct mr_str pattern_part(struct mr_str *rest);
enum mr_rc pattern_check(struct mr_str text, struct mr_error *err);
enum mr_rc pattern_wildcard(struct resolver *r, struct mr_str text, struct mr_error *err);
/* "@..." */
enum mr_rc pattern_at(struct resolver *r, const char *given, struct mr_error *err);
/* Names of patterns without "@": built in, then the room's own. */
void pattern_each(const struct mr_room *room, void (*fn)(void *ctx, struct mr_str name), void *ctx);

/* ---- expand.c ---- */

enum mr_rc expand_group(struct resolver *r, const char *name, struct mr_error *err);
/* The room's own patterns: lines "Pattern-NAME: ADDRESS, ..." of its settings. */
#define OWN_PATTERN "Pattern-"
bool expand_has_pattern(const struct mr_room *room, const char *name);
enum mr_rc expand_pattern(struct resolver *r, const char *name, struct mr_error *err);
enum mr_rc expand_queue(struct resolver *r, const char *name, struct mr_error *err);
enum mr_rc expand_channel(struct resolver *r, const char *name, struct mr_error *err);

/* ---- near.c ---- */

/* Fails with MR_NOTFOUND: nothing is called so. `what` is "agent", "group", ...; `name` is without a prefix.
 */
enum mr_rc near_unknown(struct resolver *r, const char *what, const char *name, struct mr_error *err);

#endif
