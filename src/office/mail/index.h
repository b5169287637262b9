/* SPDX-License-Identifier: MIT */
/*
 * index.h - what the post office asks of an index of the mail. src/index has one, linked into mailroom-full alone. It
 * proposes messages; what they are is read from the room and judged by the matcher that judges without an index.
 */
#ifndef OFFICE_MAIL_INDEX_H
#define OFFICE_MAIL_INDEX_H

#include "base/full.h"
#include "office/mail/mail.h"

struct index_scan {
	const char *agent;
	const struct matcher *matcher;
	unsigned folders;
	enum scan_depth depth; /* of what is told */
	bool newest_first;
	bool (*wants)(void *ctx, const char *id); /* as in struct mr_scan; or NULL */
	void *wants_ctx;
	bool (*fn)(void *ctx, const struct mr_message *msg); /* each message that the matcher lets through, once */
	mr_trouble_fn *trouble;
	void *ctx;
};

struct index_ends { /* of ids, for scan_request.ends; finish with index_ends_done */
	struct mr_room *room;
	const char *agent, *suffix;
	bool asked;             /* of this agent */
	void *index;            /* it stays open for the next agent */
	struct mr_names known;  /* stores that the index has whole */
	struct mr_names stores; /* where the ids end so */
	struct mr_names ids;
};

struct mail_index { /* `folder` is the index's own, from room_files.index_folder */
	enum mr_rc (*update)(struct mr_room *room, const char *folder, bool wait, mr_index_fn *progress, void *ctx,
	    struct mr_indexed *ret, struct mr_error *err);
	/* MR_UNSUPPORTED: the index is no help for this question, or cannot be used; then err says why, where a person
	 * should know. Some messages may have been told before. */
	enum mr_rc (*scan)(
	    struct mr_room *room, const char *folder, const struct index_scan *want, struct mr_error *err);
	/* Fills in known, stores and ids for the agent. Whatever fails, less is known. */
	void (*ends)(struct index_ends *e, const char *folder);
	void (*ends_done)(struct index_ends *e);
};
extern const struct mail_index sqlite_index FULL_ONLY;

/* As mail_index.scan; MR_UNSUPPORTED also without an index. What a person should know is a warning of the room. */
enum mr_rc index_scan(struct mr_room *room, const struct index_scan *want, struct mr_error *err);
/* For scan_request.ends. The index is asked with the first question: mail that is near needs none. */
bool index_ends(void *ends, const char *store, struct mr_names *ret);
void index_ends_next(struct index_ends *e, const char *agent);
void index_ends_done(struct index_ends *e);

#endif
