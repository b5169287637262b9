/* SPDX-License-Identifier: MIT */
/*
 * page.h - what the pages of the operator's view share. A page is a function that calls mr_*, then writes HTML:
 *
 *	page_begin(req, "Queues", "each piece of work goes to one agent");
 *	html_addf(out, "<li>%s</li>", task->subject);       %s is escaped
 *	page_button(req, "/do/release", "Release", "", FIELDS({ "id", id }));
 *
 *	letters.c         mail of all mailboxes, each message once
 *	page_attention.c  what needs the operator
 *	page_threads.c    conversations, one of them whole, search
 *	page_picture.c    who told whom
 *	page_work.c       queues as a board, dead letters
 *	page_agents.c     agents, a mailbox, channels
 *	page_write.c      writing, answering, and the actions behind the buttons
 *
 * What the script replaces when something happened is in an element with data-part; a row that keeps its place has
 * data-key.
 */
#ifndef SERVE_PAGE_H
#define SERVE_PAGE_H

#include "message/query.h"
#include "serve/serve.h"

#define OPERATOR_NAME "operator"

/* ---- page.c ---- */

/* What needs the operator, and how much that is; with NULL only how much, which is not looked up for each page. */
enum mr_rc page_needs(const struct request *req, struct mr_attention *ret, size_t *ret_n, struct mr_error *err);
/* The heading of a page, and a few words beside it. */
void page_head(struct buf *out, const char *title, const char *more);
/* <time>12m</time>; 0: nothing */
void page_time(struct buf *out, int64_t ms);
/* <time>10:31</time> */
void page_at(struct buf *out, int64_t ms);
/* A sentence with times in it. */
void page_evidence(struct buf *out, const char *text);
/* <a href="BASE + NAME as a part of a path">TEXT</a> */
void page_link(struct buf *out, const char *base, const char *name, const char *class, const char *text);
/* An address: an agent, queue or channel with its page. */
void page_address(struct buf *out, const char *address);
/* The first few of both; more may be NULL. */
void page_addresses(struct buf *out, const struct mr_names *names, const struct mr_names *more);
void page_tag(struct buf *out, const char *class, const char *text);
/* "3 messages" */
void page_count(struct buf *out, size_t n, const char *noun);
/* A form that is one button; nothing for a reader who may not write. It comes back to this page. */
#define FIELDS(...) ((const struct param[]){ __VA_ARGS__, { 0 } })
void page_button(
    const struct request *req, const char *action, const char *label, const char *class, const struct param *fields);
/* Retry and drop, coming back to that page. */
void page_dead_buttons(const struct request *req, const char *id, const char *back);
/* The subject, or words in its place. */
const char *page_subject(const char *subject);
/* A list of rows; when there are none, a box that says so. A row has a line with its title (base NULL: the caller adds
 * one), ROW_WHY and what is said of it in spans, then ROW_WHEN or ROW_ACTIONS, and ROW_END. */
void rows_begin(struct buf *out, const char *part);
void rows_end(struct buf *out, size_t n, const char *quiet, const char *more);
void row_begin(
    struct buf *out, const char *key, const char *class, const char *base, const char *name, const char *title);
#define ROW_WHY "</div><div class=\"line why\"><span>"
#define ROW_WHEN "</span></div><div class=\"when\">"
#define ROW_ACTIONS "</span></div><div class=\"actions\">"
#define ROW_END "</div></div></li>\n"
/* Nothing is here: a box that says so. */
void page_quiet(struct buf *out, const char *what, const char *more);

/* ---- letters.c ---- */

struct letter {               /* a message, whatever mailboxes have copies of it */
	struct mr_message is; /* its first copy */
	const char *agent;    /* whose that is */
	size_t letters;       /* of a conversation that this one stands for */
	size_t unread;        /* copies in inboxes, as far as they were looked at */
	bool mine;            /* the operator has a copy */
	const char *json;     /* of the first copy; NULL: it was not wanted */
};
struct letters { /* the newest first; finish with letters_done */
	struct letter *v;
	size_t n, cap;
	size_t known;                    /* of them, in order and each once */
	int64_t whole_ms;                /* older mail was left out by the limit, or is not wanted; 0: none was */
	int64_t before_ms;               /* no mail that came later (a filter asks for dates); 0: all */
	bool bodies, json, failed, sent; /* sent: mailboxes were looked through, and what was sent comes, */
	const struct letters *seen;      /* but not what is known to be in one; or NULL */
	const char *only;                /* no other id; or NULL */
	const char *agent;               /* whose mailbox is looked through */
	struct mr_room *room;
	struct arena *own;
};
#define LETTERS_EACH 40 /* of a mailbox, where all are looked through */
/* How many of each mailbox: the cost of a list follows what it shows, not the size of the room. */
size_t letters_share(struct request *req, size_t most);
/* Mail of that agent, or with NULL of all; with a limit, the newest that so many of each mailbox tell of. Unless the
 * filter names folders it is mail that was sent, too, and a thread is followed from mailbox to mailbox, to the agents
 * that its messages name: it costs what the few cost that talked. Not for an agent, which sees its own mailbox alone.
 */
enum mr_rc letters_load(struct request *req, const char *agent, const struct mr_filter *filter, size_t limit,
    struct letters *ret, struct mr_error *err);
void letters_done(struct letters *letters);
struct letters_filter {
	struct mr_filter is;
	const char *agent; /* only this mailbox; NULL: all. An agent sees only its own */
	enum mr_priority priority;
};
/* As the query says: agent, q, from, type, thread, priority, unread, since, before. */
enum mr_rc letters_filter(const struct request *req, struct letters_filter *ret, struct mr_error *err);
/* Conversations: the newest n that it lets through, or more, as far as letters_share allows. */
enum mr_rc letters_threads(
    struct request *req, const struct letters_filter *filter, size_t n, struct letters *ret, struct mr_error *err);
/* A message by its whole id, in whosever mailbox: returns whose, or NULL. */
const char *letter_find(struct request *req, const char *id, struct mr_message *ret);
/* <li> of a list: subject, sender and recipients, age, what it is; with a query the text around its first hit. */
void letter_row(struct buf *out, const struct letter *l, const struct query *query);
/* The whole message, its subject unless it answers `above`; with `fate` also what became of it for each recipient. The
 * caller closes </article>. */
void letter_whole(struct request *req, const struct mr_message *msg, const char *above, bool fate);
/* "alice → bob, carol" */
void letter_way(struct buf *out, const struct mr_message *msg);

#endif
