/* SPDX-License-Identifier: MIT */
/*
 * export.h - what the files of an export share.
 *
 *	export.c          the run: what is copied, in which order, and what is told
 *	export_message.c  one message
 *	export_names.c    agents of one room as agents of the other
 *	export_index.c    which message answers which, and what it is called over there
 */
#ifndef OFFICE_EXPORT_H
#define OFFICE_EXPORT_H

#include "office/office.h"

/* ---- export_names.c ---- */

struct name_pair {
	const char *here, *there; /* addresses */
};
struct name_pairs { /* finish with name_pairs_done */
	struct name_pair *v;
	size_t n, cap;
	struct arena *own;
};
void name_pairs_done(struct name_pairs *p);

struct crossing { /* finish with crossing_done */
	struct mr_room *from, *to;
	struct name_pairs renamed; /* by the options */
	struct name_pairs agents;  /* whose mail is copied */
};
enum mr_rc crossing_plan(struct crossing *c, const struct mr_export_options *options, struct mr_error *err);
/* Makes the mailbox of agents.v[i] over there, if it is missing. */
enum mr_rc crossing_make(struct crossing *c, size_t i, struct mr_error *err);
/* What a name in a message of the first room is in the second. */
enum mr_rc crossing_name(struct crossing *c, const char *name, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err);
/* The same for a sender, who must be somebody: one that cannot be spelled there gets a name that resembles his. */
enum mr_rc crossing_sender(
    struct crossing *c, const char *name, char ret[MR_ADDRESS_MAX + 1], bool *ret_rough, struct mr_error *err);
enum mr_rc crossing_names(struct crossing *c, const struct mr_names *names, struct mr_names *ret, struct mr_error *err);
void crossing_done(struct crossing *c);

/* ---- export_index.c ---- */

struct known { /* one copy of a message */
	char id[MR_ID_LEN + 1];
	size_t agent;                  /* number in crossing.agents */
	const char *spoken;            /* what its own room calls it */
	const char *reply_to, *thread; /* as the message has them */
	char there_id[MR_ID_LEN + 1];  /* "": not copied yet */
	const char *there;             /* what the other room calls it; NULL: unknown */
};
struct index {           /* finish with index_done */
	struct known *v; /* sorted by id, then agent */
	size_t n, cap;
	struct known **spoken; /* sorted by spoken */
	bool failed;
	struct arena *own;
};
/* Adds all mail of that agent. */
enum mr_rc index_agent(
    struct index *x, struct mr_room *room, const char *agent, size_t number, unsigned folders, struct mr_error *err);
enum mr_rc index_sort(struct index *x, struct mr_error *err); /* after the last was added */
/* The message that an id, or what a room calls a message, means: the copy in that agent's mailbox, else any. NULL: none
 * that is known. */
struct known *index_find(struct index *x, const char *name, size_t agent);
/* The id of the message that began what `k` belongs to, going back from answer to answer. */
const char *index_root(struct index *x, struct known *k);
void index_done(struct index *x);

/* ---- export.c ---- */

#define MAIL_FOLDERS ((unsigned)(MR_INBOX | MR_HELD | MR_ARCHIVE))

struct late { /* an answer that was put off */
	size_t agent;
	char id[MR_ID_LEN + 1];
};

struct export_run {
	struct crossing c;
	struct index x;
	const struct mr_export_options *options;
	mr_export_fn *fn;
	void *ctx;
	struct mr_exported *ret;
	size_t agent; /* whose mail is under way */
	size_t done;
	size_t unflushed;
	struct late *late;
	size_t late_n, late_cap;
	bool too_early;   /* the message answers one that comes later */
	bool last_chance; /* nothing is put off any more */
	enum mr_rc fatal;
	struct mr_error *err; /* of what is fatal */
};

/* ---- export_message.c ---- */

/* MR_EXISTS: it is there already. With MR_OK and e->too_early it was put off. */
enum mr_rc export_message(struct export_run *e, const struct mr_message *original, struct mr_error *err);

#endif
