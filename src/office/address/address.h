/* SPDX-License-Identifier: MIT */
/*
 * address.h - from what stands after `send` to agents, queues and channels.
 *
 *	resolve.c   one address: the order in which it is tried, spellings of an agent, names near an unknown one,
 *	            and the lists that come out
 *	expand.c    what stands for others: wildcards, @patterns, groups, channels
 *	target.c    groups, queues, channels and links: their names and settings; the groups themselves
 *
 * May call: the driver's agents and records, message, base. AGENT@LINK is resolved by struct linked_rooms.
 * An address that fails fails the whole resolution at depth 0, where the sender wrote it; further down it is
 * a member of something, and becomes a sentence in out->trouble.
 */
#ifndef OFFICE_ADDRESS_H
#define OFFICE_ADDRESS_H

#include "base/error.h"
#include "office/office.h"

/* ---- resolve.c ---- */

struct recipients { /* finish with recipients_done */
	struct mr_names to,
	    cc; /* what the message says: agents, "queue:Q", "channel:C"; nobody twice, also not across the two */
	struct mr_names all;      /* who gets it, in order, once each: both of those, and the subscribers of channels */
	struct mr_names not_live; /* of all: agents whose life is gone or who never lived; never the operator */
	struct mr_names trouble;  /* members of groups and subscribers that reach nobody, a sentence each */
	struct mr_names away;     /* AGENT@LINK who have no mailbox in their room yet: it is to be made */
	bool missing;             /* some have no mailbox yet: it is to be made (--hold) */
	uint64_t removals;        /* struct delivery */
};
/* `hold` (or the room's Unknown-Recipients: hold) lets unknown names through. */
enum mr_rc recipients_resolve(struct mr_room *room, const char *sender, const char *const *to, const char *const *cc,
    bool hold, struct recipients *ret, struct mr_error *err);
bool recipients_copy(const struct recipients *from, struct recipients *ret); /* false: out of memory */
void recipients_done(struct recipients *r);

bool address_is_operator(struct mr_str name); /* operator, human, overseer */
/* One spelling for those that mean the same agent: "mayor/" and "rig/mayor" are "mayor", "rig/crew/max" and
 * "rig/polecats/max" are "rig/max". */
struct mr_str address_short(struct mr_str name, char ret[MR_ADDRESS_MAX + 1]);
/* Takes a prefix such as "list:" off, and says which kind it means: "group"; NULL: there is none. */
const char *address_kind(struct mr_str *address);
/* The registered agent that a normal address spells. MR_NOTFOUND: none. MR_REFUSED: it is short for several. */
enum mr_rc address_registered(
    struct mr_room *room, const char *name, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err);

#define NEAR_MAX 4
struct near { /* names near one that is unknown, the nearest first; the last place is for the one that drops out */
	const char *wanted;
	const char *prefix; /* "group:" and the like, put before the name that is offered */
	struct {
		char shown[MR_ADDRESS_MAX + 16];
		size_t distance;
	} v[NEAR_MAX + 1];
	size_t n;
};
bool near_offer(void *near, const char *name);            /* for driver->record_each, too */
void near_list(const struct near *near, struct buf *out); /* "'a', 'b'" */

/* ---- The resolver: shared by the files of this folder, and by office/link ---- */

#define NOT_LIVE_MAX 16 /* nobody reads a longer list of who is away */

struct known_agent {
	const char *name;
	bool stray;
};
struct resolver { /* finish with resolver_done */
	struct mr_room *room;
	const char *sender; /* "" for nobody */
	bool hold;
	bool many;                 /* more than NOT_LIVE_MAX to come: who is live is not looked up, only who is there */
	struct mr_names named[4];  /* of the kinds of prefixes[]: what there is, */
	signed char named_read[4]; /* once it was read: 1; -1: it cannot be */
	struct recipients *out;
	struct mr_names *header; /* out->to or out->cc */
	struct nameset in_all, in_header;
	struct mr_names trail; /* how it was found, a sentence each */
	bool failed;           /* out of memory for one of the lists */

	/* The agents of the room, read once, when the first pattern or unknown name asks for them. */
	struct roll agents; /* of struct known_agent */
	bool agents_read;

	/* Of the address under way, as it was written. */
	const char *form; /* of struct mr_resolution */
	char name[MR_ADDRESS_MAX + 1];
	struct mr_names visited; /* groups and patterns that were entered: cycles end there */
	unsigned depth;          /* 0: named by the sender; else inside of that many groups and patterns */
	bool subscribers;        /* who gets the mail now, the message does not name: it names the channel */
	size_t reached;          /* targets, also those that others had reached before */
	size_t left_out;         /* times that it was the sender, who is left out of groups and patterns */
	size_t trouble_before;   /* sentences in out->trouble that are about other addresses */
};
void resolver_init(struct resolver *r, struct mr_room *room, const char *sender, bool hold, struct recipients *out);
void resolver_done(struct resolver *r);
/* Takes one address of the sender's. */
enum mr_rc resolver_take(struct resolver *r, const char *given, struct mr_error *err);
/* Fills in r->agents, from names alone. */
enum mr_rc resolver_agents(struct resolver *r, struct mr_error *err);
/* Is that agent to be named as not live? Not looked up for many. */
bool resolver_is_gone(struct resolver *r, const char *name);
/* Adds a target; `gone`: an agent without a life. */
void resolver_reach(struct resolver *r, const char *target, bool gone);
/* Somebody in a linked room: the mail goes into the queue of that link, and the message names the agent. `missing`:
 * there is no mailbox over there yet. */
void resolver_reach_away(struct resolver *r, const char *target, const char *address, bool missing);
/* Is that the sender, who gets no copy as a member of something? Counts it. */
bool resolver_leaves_out(struct resolver *r, const char *name);
/* What the address is, kept at depth 0 only. */
void resolver_form(struct resolver *r, const char *form, const char *name);
/* A sentence for r->trail or r->out->trouble. */
void resolver_say(struct resolver *r, struct mr_names *list, const char *fmt, ...) MR_PRINTF(3, 4);

/* One address at any depth; only an agent, in any spelling. */
enum mr_rc resolve_address(struct resolver *r, const char *given, struct mr_error *err);
enum mr_rc resolve_agent(struct resolver *r, struct mr_str spelling, struct mr_error *err);
/* Fails with MR_NOTFOUND and the nearest names. `what` is "agent", "group", ...; `name` is without a prefix. */
enum mr_rc resolve_unknown(struct resolver *r, const char *what, const char *name, struct mr_error *err);

/* ---- expand.c ---- */

/* Does the name of an agent fit? In the pattern '*' stands for one whole part between slashes. */
bool pattern_fits(struct mr_str pattern, struct mr_str name);
enum mr_rc pattern_check(struct mr_str text, struct mr_error *err);
/* What can stand behind an @: the built-in patterns, then those of the room's settings. False: out of memory. */
bool pattern_names(const struct mr_room *room, struct mr_names *ret);
enum mr_rc expand_wildcard(struct resolver *r, const char *text, struct mr_error *err);
enum mr_rc expand_at(struct resolver *r, const char *name, struct mr_error *err); /* "@NAME" */
enum mr_rc expand_group(struct resolver *r, const char *name, struct mr_error *err);
enum mr_rc expand_target(
    struct resolver *r, const char *kind, const char *name, struct mr_error *err); /* queue, channel */

/* ---- target.c ---- */

/* Kinds are "group", "queue", "channel" and "link". A name is [a-z0-9][a-z0-9_-]{0,63}, of a queue also RIG/NAME. */
enum mr_rc target_name_check(const char *kind, const char *name, struct mr_error *err);
/* Can this room have that kind at all: MR_OK or MR_UNSUPPORTED. */
enum mr_rc target_supported(const struct mr_room *room, const char *kind, struct mr_error *err);
/* Both of these, and the name without "KIND:" before it. */
enum mr_rc target_name(const struct mr_room *room, const char *kind, const char *given, char ret[MR_ADDRESS_MAX + 1],
    struct mr_error *err);
/* May a new one be called so? MR_REFUSED: it is the name of an agent or of a pattern, and mail that went there would go
 * elsewhere or be ambiguous from then on. */
enum mr_rc target_name_free(struct mr_room *room, const char *kind, const char *name, struct mr_error *err);
/* The lines of its settings. MR_NOTFOUND: there is none of that name. */
enum mr_rc target_settings(
    struct mr_room *room, const char *kind, const char *name, struct record *ret, struct mr_error *err);
/* Also true when its settings are there but cannot be read: the call that reads them says why. */
bool target_exists(struct mr_room *room, const char *kind, const char *name);
/* May mail go to "queue:x" or "channel:x" now? MR_REFUSED: it is closed. Anything else is an agent: MR_OK. */
enum mr_rc target_check(struct mr_room *room, const char *target, struct mr_error *err);

/* target_settings; MR_NOTFOUND comes with near names. */
enum mr_rc settings_load(
    struct mr_room *room, const char *kind, const char *name, struct record *ret, struct mr_error *err);
/* Sorted. */
enum mr_rc settings_names(struct mr_room *room, const char *kind, struct mr_names *ret, struct mr_error *err);
/* An item of a list from its settings, with strings of the record: what that lives in is the item's from then on.
 * False: out of memory. */
typedef bool settings_read_fn(void *ret, const char *name, struct record *lines);
/* One, from any spelling of its name. *ret_own, a member of *ret, is what it lives in. */
enum mr_rc settings_get(struct mr_room *room, const char *kind, const char *name, settings_read_fn *read, void *ret,
    void **ret_own, struct mr_error *err);
/* All of that kind that can be read, as a list of mailroom.h; the error is that of the first that cannot. */
enum mr_rc settings_list(
    struct mr_room *room, const char *kind, size_t item, settings_read_fn *read, void *ret_list, struct mr_error *err);
/* The values of all lines of that field. False: out of memory. */
bool settings_values(struct record *lines, const char *field, struct mr_names *ret);
/* The value of the first; "" where there is none. */
const char *settings_text(const struct record *lines, const char *field);

struct settings_edit {
	enum { SETTINGS_SET /* the only lines of that field */, SETTINGS_ADD, SETTINGS_REMOVE } how;
	const char *field;
	struct mr_names values; /* borrowed */
};
/* Adds Created: and Created-By: to the lines, then `more` (or NULL), and takes the name. MR_EXISTS. */
enum mr_rc settings_create(struct mr_room *room, const char *kind, const char *name, const char *by, struct buf *lines,
    const struct settings_edit *more, struct mr_error *err);
/* ret_changed has a place for each value: false when it was so already. */
enum mr_rc settings_change(struct mr_room *room, const char *kind, const char *name, const struct settings_edit *edit,
    bool *ret_changed, struct mr_error *err);
/* One field to one value. */
enum mr_rc settings_set(struct mr_room *room, const char *kind, const char *name, const char *field, const char *value,
    struct mr_error *err);

#endif
