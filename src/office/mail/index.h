/* SPDX-License-Identifier: MIT */
/*
 * index.h - the office's interface to an index of the mail. src/index has one, linked only into mailroom-full. It
 * proposes messages; they are read from the room and judged by the same matcher as without an index.
 */
#ifndef OFFICE_MAIL_INDEX_H
#define OFFICE_MAIL_INDEX_H

#include "base/full.h"
#include "office/mail/mail.h"

struct index_scan {
	const char *agent;
	const struct matcher *matcher;
	unsigned folders;
	enum scan_depth depth; /* of the messages passed to fn */
	bool newest_first;
	bool (*wants)(void *ctx, const char *id); /* as in struct mr_scan; or NULL */
	void *wants_ctx;
	bool (*fn)(void *ctx, const struct mr_message *msg); /* each matching message, once */
	mr_trouble_fn *trouble;
	void *ctx;
};

struct index_ends { /* of ids, for scan_request.ends; finish with index_ends_done */
	struct mr_room *room;
	const char *agent, *suffix;
	bool asked;             /* of this agent */
	void *index;            /* it stays open for the next agent */
	struct mr_names known;  /* stores that are completely indexed */
	struct mr_names stores; /* with such ids */
	struct mr_names ids;
};

struct mail_index { /* `folder` is the index's own, from room_files.index_folder */
	enum mr_rc (*update)(struct mr_room *room, const char *folder, bool wait, mr_index_fn *progress, void *ctx,
	    struct mr_indexed *ret, struct mr_error *err);
	/* MR_UNSUPPORTED: the index does not help here, or cannot be used; then err says why, if a person should know.
	 * Some messages may have been passed to fn before. */
	enum mr_rc (*scan)(
	    struct mr_room *room, const char *folder, const struct index_scan *want, struct mr_error *err);
	/* Fills in known, stores and ids for the agent. After an error there are fewer of them. */
	void (*ends)(struct index_ends *e, const char *folder);
	void (*ends_done)(struct index_ends *e);
};
extern const struct mail_index sqlite_index FULL_ONLY;

/* Like mail_index.scan; MR_UNSUPPORTED also without an index. A reason that a person should know becomes a warning of
 * the room. */
enum mr_rc index_scan(struct mr_room *room, const struct index_scan *want, struct mr_error *err);
/* For scan_request.ends. The index is opened at the first question: near mail needs none. */
bool index_ends(void *ends, const char *store, struct mr_names *ret);
void index_ends_next(struct index_ends *e, const char *agent);
void index_ends_done(struct index_ends *e);

#endif
