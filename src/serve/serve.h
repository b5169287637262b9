/* SPDX-License-Identifier: MIT */
/*
 * serve.h - the HTTP door: `mailroom serve`. It parses, calls mr_* and prints; it decides nothing and keeps nothing
 * that a kill -9 could lose.
 *
 *	main.c     the command line, the room, the link that is printed, the end
 *	server.c   libmicrohttpd: bodies, limits, the queue of requests, streams
 *	request.c  paths, queries, forms and cookies as values: pure functions, fuzzed
 *	access.c   who asks: the link, the cookie, bearer tokens, Host, Origin, the tokens of forms
 *	route.c    the table of paths, and errors as pages or JSON
 *	html.c     text of others in HTML
 *	page*.c    the pages: page.h
 *	events.c   /events: one watch for all streams
 *	api.c      /api/v1: the commands as JSON
 *	metrics.c  /metrics
 *	mcp.c      /mcp
 *
 * Threads: one does all input and output and never touches a room. A few workers answer requests, each with a room
 * handle of its own; the connection of a request is suspended meanwhile. So a slow answer delays nobody but one worker.
 */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include <pthread.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/cli.h"
#include "cli/view.h"

struct MHD_Connection;

static inline void
lock_given(pthread_mutex_t **lock)
{
	(void)pthread_mutex_unlock(*lock);
}
/* Takes a lock for the rest of a block. */
#define HOLD(lock)                                                                                                     \
	__attribute__((unused)) mr_auto(lock_given) pthread_mutex_t *held = ((void)pthread_mutex_lock(&(lock)), &(lock))

/* ---- request.c ---- */

struct param { /* decoded; a value with a NUL in it is none, so both are plain strings */
	const char *name, *value;
};
struct params {
	struct param *v;
	size_t n;
};
#define PARAMS_MAX 64
/* "a=1&b=x+y%20z". False: not well-formed (a bad escape, a NUL, bad UTF-8, more than PARAMS_MAX): 400. */
bool params_parse(struct mr_str text, struct params *ret, struct arena **own);
/* The first of that name, or NULL. */
const char *params_get(const struct params *params, const char *name);
/* %XX decoded; NULL: as for params_parse. */
char *path_decode(struct mr_str raw, struct arena **own);
/* A cookie of that name in a Cookie header; an empty string: none. */
struct mr_str cookie_find(struct mr_str header, const char *name);

/* ---- A request and its reply ---- */

enum who {
	WHO_NOBODY,
	WHO_READER,   /* a link that was shared: looks, and changes nothing */
	WHO_OPERATOR, /* the cookie of the link that was printed at the start */
	WHO_AGENT,    /* a bearer token: acts as that agent and no other */
};

struct request {
	const char *method; /* "GET" (also for HEAD), "POST", "DELETE" */
	const char *path;   /* decoded, without the query: "/thread/01k9..." */
	const char *rest;   /* what follows the path of its route */
	struct params query, form;
	struct mr_str body;
	enum who who;
	bool may_write; /* neither the server nor the token is read-only */
	char agent[MR_ADDRESS_MAX +
		   1]; /* who acts: "operator", or the agent of the token; a reader looks as the operator */
	char token[MR_SECRET_LEN + 1]; /* the cookie or bearer's token, "": none that is known */
	char secret[65];               /* hash of it; the tokens of forms are made of that */
	struct mr_room *room;          /* of this worker */
	struct mr_self self;           /* agent, in that room */
	const size_t *needs;           /* how much needs the operator, when that was counted already; or NULL */
	struct mr_names agents;        /* of that room, when they were looked up: letters.c */
	struct arena *own;             /* strings that live as long as the request */
	struct reply *reply;
	struct buf *out; /* the body of its reply, where pages are written */
	bool begun;      /* stream_begin: the reply is not the handler's any more */
	struct MHD_Connection *connection;
	const struct server *server;
};
/* A value of the form or, without it, of the query; "": none. */
const char *req_value(const struct request *req, const char *name);
const char *req_header(const struct request *req, const char *name); /* or NULL */
#define CSRF_LEN 32
/* The token that a form with this action must carry in its field "csrf". */
void req_csrf(const struct request *req, const char *action, char ret[CSRF_LEN + 1]);

struct stream; /* server.c: a reply that goes on */
struct reply {
	unsigned status;  /* 200 unless said */
	const char *type; /* "text/html; charset=utf-8" unless said */
	struct buf body;
	struct mr_header headers[8]; /* further ones; strings live in req->own */
	size_t headers_n;
	struct stream *stream; /* instead of a body */
};
void reply_header(const struct request *req, const char *name, const char *value);

typedef enum mr_rc handler_fn(struct request *req, struct mr_error *err);

/* ---- route.c ---- */

enum access {
	FOR_ALL = 1,     /* without any token: the page that explains, styles */
	FOR_READERS = 2, /* looks only */
	FOR_WRITERS = 4, /* changes something: not with a read-only token or server */
	FOR_AGENTS = 8,  /* also with a bearer token */
	FOR_FORMS = 16,  /* a POST by a page: needs the token of its form */
};
struct route {
	const char *method; /* "GET" or "POST" */
	const char *path;   /* "/queues"; one that ends in "/" is of all below it */
	handler_fn *run;
	unsigned access;
};
extern const struct route routes[]; /* method NULL ends it */
/* Is this path at that place of a table, or below one that ends in "/"? *ret_rest is what is below it. */
bool path_fits(const char *place, const char *path, const char **ret_rest);
/* Checks access, finds the row, runs it; errors become a page, or JSON below /api. */
void route(struct request *req);
unsigned status_of(enum mr_rc rc);
/* A page, or JSON below /api and /mcp. MR_OK: it is the answer. */
enum mr_rc reply_error(
    const struct request *req, unsigned status, const char *code, const char *message, const char *hint);

/* ---- html.c ---- */

/* Text of others: what steers a terminal or reorders a line becomes visible, then & < > " ' are escaped. Line breaks
 * stay: put it into <pre>. */
void html_text(struct buf *out, struct mr_str text);
/* buf_addf whose %s are such text on one line, right between tags and in the quotes of an attribute. Knows %s %u %zu
 * and
 * %%. */
void html_addf(struct buf *out, const char *fmt, ...) MR_PRINTF(2, 3);
/* Everything but letters, digits and what is plain as %XX. */
#define URL_PART "-._~" /* a part of a path or query */
#define URL_PATH "/" URL_PART
void url_add(struct buf *out, const char *text, const char *plain);
/* Escaped and nothing else: for a field that gives back what was typed into it. */
void html_value(struct buf *out, const char *text);
/* page.c: <!doctype html> to <main>, with a heading and a few words beside it unless more is NULL. route.c closes it.
 */
void page_begin(const struct request *req, const char *title, const char *more);
#define PAGE_END "</main>\n</div>\n</body>\n</html>\n"
/* <form method=post action=...> with its token; the caller adds fields and closes it. */
void form_begin(const struct request *req, const char *action);

/* ---- server.c ---- */

struct server {              /* what does not change while it runs */
	const char *spec;    /* of the room */
	const char *address; /* "127.0.0.1" */
	unsigned port;
	char cookie[32]; /* its name */
	bool read_only, insecure;
	bool conformance; /* test builds: /mcp is the conformance suite's, without a token */
	int listen_fd;
};
/* Serves until SIGINT, SIGTERM or SIGHUP. */
enum mr_rc server_run(struct server *server, struct mr_error *err);
/* A reply that goes on: what is added to it follows its headers. The caller ends it. From any thread. A client that is
 * so slow that more than `max` bytes wait for it is cut off. */
struct stream *stream_new(struct request *req, size_t max);
/* The same for a page that is begun before it is whole: its headers and body are sent now, and the handler goes on with
 * what it adds. From then on the reply is not the handler's. */
struct stream *stream_begin(struct request *req);
/* False: its client left, or was cut off. No bytes only ask that. */
bool stream_add(struct stream *stream, struct mr_str bytes);
/* From now on it has no writer but streams_tell, which adds to all that joined: how many are there. */
void stream_join(struct stream *stream);
size_t streams_tell(struct mr_str bytes);
void stream_end(struct stream *stream);
/* Ends the streams whose token was revoked, or whose time is up. */
void streams_judge(struct mr_room *room);

/* ---- access.c ---- */

/* The link that is printed at the start; good for one browser. */
void access_link(struct server *server, struct buf *out);
/* Fills in who asks. False: refused, and the reply says why. */
bool access_check(struct request *req, const struct route *row);
handler_fn page_login;
/* Does this token open anything now? */
bool access_holds(struct mr_room *room, const char *token);

/* ---- Assets: compiled in from assets/ ---- */
struct asset {
	const char *name; /* "style.css" */
	const char *type;
	const char *text;
	size_t len;
};
extern const struct asset assets[]; /* name NULL ends it */
handler_fn page_asset;

/* ---- api.c, metrics.c, events.c, mcp.c ---- */
handler_fn api, api_messages, api_threads, events, mcp, metrics;
/* Starts and ends the thread that watches the room. */
enum mr_rc events_start(const struct server *server, struct mr_error *err);
void events_stop(void);
/* Grows with each event; the same number twice: nothing was seen to change in between. 0: nobody watches. */
uint64_t events_seen(void);

/* letters.c: the names of all agents of the room, unless they are there already. */
enum mr_rc room_agents(struct mr_room *room, struct mr_names *ret, struct mr_error *err);

/* ---- Pages: page.h ---- */
handler_fn page_attention, page_threads, page_thread, page_search, page_queues, page_dead, page_dead_one, page_agents,
    page_agent, page_channels, page_channel, page_write, page_picture, page_picture_svg, page_picture_css;
handler_fn do_send, do_reply, do_mark, do_nudge, do_release, do_retry, do_drop, do_queue;

#endif
