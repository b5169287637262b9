/* SPDX-License-Identifier: MIT */
/*
 * address.h - resolves the addresses of a send to agents, queues and channels.
 *
 *	resolve.c   one address: the order of attempts, spellings of an agent, names similar to an unknown one,
 *	            and the lists of the result
 *	expand.c    addresses that stand for others: wildcards, @patterns, groups, channels
 *	target.c    groups, queues, channels and links: their names and settings; the groups themselves
 *
 * May call: the driver's agents and records, message, base. AGENT@LINK is resolved by struct linked_rooms. An address
 * that fails at depth 0, where the sender wrote it, fails the whole resolution; at a greater depth it is a member of
 * something, and becomes a sentence in out->trouble.
 */
#ifndef OFFICE_ADDRESS_H
#define OFFICE_ADDRESS_H

#include "base/error.h"
#include "office/office.h"

/* ---- resolve.c ---- */

struct recipients { /* finish with recipients_done */
	struct mr_names to,
	    cc; /* as the message names them: agents, "queue:Q", "channel:C"; each once in both lists together */
	struct mr_names all;      /* the recipients, in order, once each: both lists, and the subscribers of channels */
	struct mr_names not_live; /* of all: agents whose life is gone or who never lived; never the operator */
	struct mr_names trouble;  /* members of groups and subscribers that reach nobody, a sentence each */
	struct mr_names away;     /* AGENT@LINK without a mailbox in their room, which is to be made */
	bool missing;             /* some have no mailbox, which is to be made (--hold) */
	uint64_t removals;        /* struct delivery */
};
/* `hold` (or the room's Unknown-Recipients: hold) accepts unknown names. */
enum mr_rc recipients_resolve(struct mr_room *room, const char *sender, const char *const *to, const char *const *cc,
    bool hold, struct recipients *ret, struct mr_error *err);
bool recipients_copy(const struct recipients *from, struct recipients *ret); /* false: out of memory */
void recipients_done(struct recipients *r);

bool address_is_operator(struct mr_str name); /* operator, human, overseer */
/* One spelling for addresses of the same agent: "mayor/" and "rig/mayor" are "mayor", "rig/crew/max" and
 * "rig/polecats/max" are "rig/max". */
struct mr_str address_short(struct mr_str name, char ret[MR_ADDRESS_MAX + 1]);
/* Removes a prefix such as "list:", and returns its kind: "group"; NULL: there is none. */
const char *address_kind(struct mr_str *address);
/* The registered agent of a normal address. MR_NOTFOUND: none. MR_REFUSED: it is short for several. */
enum mr_rc address_registered(
    struct mr_room *room, const char *name, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err);

#define NEAR_MAX 4
struct near { /* names similar to an unknown one, the nearest first; the last place is for the one that drops out */
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

#define NOT_LIVE_MAX 16 /* nobody reads a longer list of absent agents */

struct known_agent {
	const char *name;
	bool stray;
};
struct resolver { /* finish with resolver_done */
	struct mr_room *room;
	const char *sender; /* "" for nobody */
	bool hold;
	bool many;                 /* more than NOT_LIVE_MAX recipients: presence is not checked, only existence */
	struct mr_names named[4];  /* existing names, by the kinds of prefixes[], */
	signed char named_read[4]; /* 1: read; -1: cannot be read */
	struct recipients *out;
	struct mr_names *header; /* out->to or out->cc */
	struct nameset in_all, in_header;
	struct mr_names trail; /* how each was found, a sentence each */
	bool failed;           /* out of memory for one of the lists */

	/* The agents of the room, read once, when the first pattern or unknown name asks for them. */
	struct roll agents; /* of struct known_agent */
	bool agents_read;

	/* The current address, as written. */
	const char *form; /* of struct mr_resolution */
	char name[MR_ADDRESS_MAX + 1];
	struct mr_names visited; /* groups and patterns entered so far: cycles end there */
	unsigned depth;          /* 0: named by the sender; else inside that many groups and patterns */
	bool subscribers;        /* recipients found now are not named in the message: it names the channel */
	size_t reached;          /* targets found, also those that others had reached before */
	size_t left_out;         /* how often the sender was left out of groups and patterns */
	size_t trouble_before;   /* sentences in out->trouble about earlier addresses */
};
void resolver_init(struct resolver *r, struct mr_room *room, const char *sender, bool hold, struct recipients *out);
void resolver_done(struct resolver *r);
/* Resolves one address of the sender. */
enum mr_rc resolver_take(struct resolver *r, const char *given, struct mr_error *err);
/* Fills in r->agents, from names alone. */
enum mr_rc resolver_agents(struct resolver *r, struct mr_error *err);
/* Is that agent to be listed as not live? Not checked if there are many. */
bool resolver_is_gone(struct resolver *r, const char *name);
/* Adds a target; `gone`: an agent without a life. */
void resolver_reach(struct resolver *r, const char *target, bool gone);
/* Adds an agent of a linked room: the mail goes into the queue of that link, and the message names the agent.
 * `missing`: it has no mailbox there yet. */
void resolver_reach_away(struct resolver *r, const char *target, const char *address, bool missing);
/* Is that the sender, who gets no copy as a member? Counts it. */
bool resolver_leaves_out(struct resolver *r, const char *name);
/* Notes the form of the address, at depth 0 only. */
void resolver_form(struct resolver *r, const char *form, const char *name);
/* A sentence for r->trail or r->out->trouble. */
void resolver_say(struct resolver *r, struct mr_names *list, const char *fmt, ...) MR_PRINTF(3, 4);

/* One address at any depth; only an agent, in any spelling. */
enum mr_rc resolve_address(struct resolver *r, const char *given, struct mr_error *err);
enum mr_rc resolve_agent(struct resolver *r, struct mr_str spelling, struct mr_error *err);
/* Fails with MR_NOTFOUND and the nearest names. `what` is "agent", "group", ...; `name` is without a prefix. */
enum mr_rc resolve_unknown(struct resolver *r, const char *what, const char *name, struct mr_error *err);

/* ---- expand.c ---- */

/* Does the agent's name match? In the pattern '*' stands for one whole part between slashes. */
bool pattern_fits(struct mr_str pattern, struct mr_str name);
enum mr_rc pattern_check(struct mr_str text, struct mr_error *err);
/* The names that are allowed after '@': the built-in patterns, then those of the room's settings. False: out of
 * memory. */
bool pattern_names(const struct mr_room *room, struct mr_names *ret);
enum mr_rc expand_wildcard(struct resolver *r, const char *text, struct mr_error *err);
enum mr_rc expand_at(struct resolver *r, const char *name, struct mr_error *err); /* "@NAME" */
enum mr_rc expand_group(struct resolver *r, const char *name, struct mr_error *err);
enum mr_rc expand_target(
    struct resolver *r, const char *kind, const char *name, struct mr_error *err); /* queue, channel */

/* ---- target.c ---- */

/* Kinds are "group", "queue", "channel" and "link". A name is [a-z0-9][a-z0-9_-]{0,63}, of a queue also RIG/NAME. */
enum mr_rc target_name_check(const char *kind, const char *name, struct mr_error *err);
/* Can this room have that kind? MR_OK or MR_UNSUPPORTED. */
enum mr_rc target_supported(const struct mr_room *room, const char *kind, struct mr_error *err);
/* Both checks, and the name without "KIND:" before it. */
enum mr_rc target_name(const struct mr_room *room, const char *kind, const char *given, char ret[MR_ADDRESS_MAX + 1],
    struct mr_error *err);
/* May a new one have that name? MR_REFUSED: it is the name of an agent or of a pattern, so mail to it would go
 * elsewhere or be ambiguous from then on. */
enum mr_rc target_name_free(struct mr_room *room, const char *kind, const char *name, struct mr_error *err);
/* The lines of its settings. MR_NOTFOUND: there is none of that name. */
enum mr_rc target_settings(
    struct mr_room *room, const char *kind, const char *name, struct record *ret, struct mr_error *err);
/* True also if its settings exist but cannot be read: the call that reads them reports the reason. */
bool target_exists(struct mr_room *room, const char *kind, const char *name);
/* May mail go to "queue:x" or "channel:x" now? MR_REFUSED: it is closed. Anything else is an agent: MR_OK. */
enum mr_rc target_check(struct mr_room *room, const char *target, struct mr_error *err);

/* Like target_settings; MR_NOTFOUND comes with similar names. */
enum mr_rc settings_load(
    struct mr_room *room, const char *kind, const char *name, struct record *ret, struct mr_error *err);
/* Sorted. */
enum mr_rc settings_names(struct mr_room *room, const char *kind, struct mr_names *ret, struct mr_error *err);
/* Reads an item of a list from its settings; the item takes over the strings of the record. False: out of memory. */
typedef bool settings_read_fn(void *ret, const char *name, struct record *lines);
/* One, from any spelling of its name. *ret_own, a member of *ret, holds its strings. */
enum mr_rc settings_get(struct mr_room *room, const char *kind, const char *name, settings_read_fn *read, void *ret,
    void **ret_own, struct mr_error *err);
/* All readable ones of that kind, as a list of mailroom.h; the error is that of the first unreadable one. */
enum mr_rc settings_list(
    struct mr_room *room, const char *kind, size_t item, settings_read_fn *read, void *ret_list, struct mr_error *err);
/* The values of all lines of that field. False: out of memory. */
bool settings_values(struct record *lines, const char *field, struct mr_names *ret);
/* The value of the first; "" if there is none. */
const char *settings_text(const struct record *lines, const char *field);

struct settings_edit {
	enum { SETTINGS_SET /* the only lines of that field */, SETTINGS_ADD, SETTINGS_REMOVE } how;
	const char *field;
	struct mr_names values; /* borrowed */
};
/* Adds Created: and Created-By: to the lines, then `more` (or NULL), and takes the name. MR_EXISTS. */
enum mr_rc settings_create(struct mr_room *room, const char *kind, const char *name, const char *by, struct buf *lines,
    const struct settings_edit *more, struct mr_error *err);
/* ret_changed has one element for each value: false if it was so already. */
enum mr_rc settings_change(struct mr_room *room, const char *kind, const char *name, const struct settings_edit *edit,
    bool *ret_changed, struct mr_error *err);
/* One field to one value. */
enum mr_rc settings_set(struct mr_room *room, const char *kind, const char *name, const char *field, const char *value,
    struct mr_error *err);

#endif
