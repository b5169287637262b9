/* SPDX-License-Identifier: MIT */
/*
 * server.c - libmicrohttpd and the threads around it.
 *
 * The thread of libmicrohttpd reads requests and writes replies. A whole request goes into a queue, and its connection
 * is suspended; a worker takes it, answers it and resumes the connection. What is too much is answered before it costs
 * anything: a queue that is full, a body that is too long, a client that asks too often.
 *
 * Slow clients: a connection on which nothing moves for IDLE_S is closed by libmicrohttpd. One that dribbles is cut off
 * when its request is not whole after REQUEST_MS, and a second for every BODY_RATE bytes of it (the main thread looks
 * every second). A stream that does not take what is written for it is cut off (EVENTS_BEHIND); one whose client left
 * is ended by the main thread, too.
 */
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <microhttpd.h>
#include <poll.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/serve.h"

#define WORKERS 4
#define QUEUE_MAX 256
#define CONNECTIONS_MAX 512
#define CONNECTIONS_SPARE 32 /* get a 503 */
#define HEADERS_MAX ((size_t)32 << 10)
#define BODY_MAX (MR_BODY_MAX + ((size_t)1 << 20))
#define BODY_MAX_UNKNOWN ((size_t)64 << 10) /* of one that brings no token at all */
#define BODIES_MAX ((size_t)64 << 20)       /* of all that are being read */
#define BODY_RATE (100 << 10)
#define REQUEST_MS 10000
#define IDLE_S 30U
#define CLIENTS 64 /* whose requests are counted: by token, else by address */
#define REQUESTS_S 100
#define REQUESTS_BURST 200
/* Bytes that wait for a slow client, which comes back and asks for the rest. */
#define EVENTS_BEHIND ((size_t)64 << 10)
#define ROOM_MAX_MS 5000 /* a handle is opened anew then: a room may be moved, changed or repaired meanwhile */

struct job { /* a request from its first line to its reply */
	struct request req;
	struct reply reply;
	struct buf body;
	char *uri;
	size_t body_max;
	unsigned refused; /* a status that was decided before the body was read; 0: none */
	bool answered;
	bool working, left; /* under the lock: a worker has it; its client left meanwhile */
	struct peer *peer;
	STAILQ_ENTRY(job) link;
};

struct peer { /* a connection */
	int fd;
	int64_t since_ms; /* a request is awaited since then; 0: it is whole, and being answered */
	size_t bytes;     /* of its body */
	LIST_ENTRY(peer) link;
};

static struct {
	const struct server *server;
	pthread_mutex_t lock;
	pthread_cond_t more;
	STAILQ_HEAD(, job) jobs;
	size_t queued;
	bool ending;
	LIST_HEAD(, peer) peers; /* under the lock */
	/* Of the thread of libmicrohttpd alone: */
	unsigned connections;
	size_t bodies;
	struct client {
		uint64_t who;
		int64_t at_ms, spent; /* thousandths of a request */
	} clients[CLIENTS];
} all = {
	.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER, .jobs = STAILQ_HEAD_INITIALIZER(all.jobs)
};

/* ---- Streams ---- */

struct stream {
	struct MHD_Connection *connection;
	int fd;
	char token[MR_SECRET_LEN + 1]; /* by which it was asked for; "": nobody asks for one here */
	struct buf pending;
	size_t max;
	bool joined, waiting, ended, left;
	unsigned holders; /* the response, and those who write */
	LIST_ENTRY(stream) link;
};
static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER; /* of all streams: what is done under it is short */
static LIST_HEAD(, stream) all_streams;

static struct job *
job_of(struct request *req)
{
	return (struct job *)(void *)((char *)req - offsetof(struct job, req));
}

struct stream *
stream_new(struct request *req, size_t max)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	*stream =
	    (struct stream){ .connection = req->connection, .fd = job_of(req)->peer->fd, .max = max, .holders = 2 };
	memcpy(stream->token, req->token, sizeof(stream->token));
	HOLD(streams_lock);
	LIST_INSERT_HEAD(&all_streams, stream, link);
	return req->reply->stream = stream;
}

static void
wake(struct stream *stream)
{
	if (stream->waiting && !stream->left)
		MHD_resume_connection(stream->connection);
	stream->waiting = false;
}

static void
cut(struct stream *stream)
{
	stream->ended = true;
	wake(stream);
}

static bool
add_to(struct stream *stream, struct mr_str bytes)
{
	bool there = !stream->left && !stream->ended;

	if (bytes.len > 0 && stream->pending.len > 0 && stream->pending.len + bytes.len > stream->max)
		stream->ended = true;
	else if (there)
		buf_add(&stream->pending, bytes);
	if (bytes.len > 0)
		wake(stream);
	return there;
}

bool
stream_add(struct stream *stream, struct mr_str bytes)
{
	HOLD(streams_lock);
	return add_to(stream, bytes);
}

size_t
streams_tell(struct mr_str bytes)
{
	size_t n = 0;

	HOLD(streams_lock);
	for (struct stream *s = LIST_FIRST(&all_streams); s; s = LIST_NEXT(s, link))
		if (s->joined) {
			s->ended |= bytes.len > 0 && s->pending.len > 0 && s->pending.len + bytes.len > EVENTS_BEHIND;
			n += add_to(s, bytes);
		}
	return n;
}

static void
let_go(struct stream *stream)
{
	if (--stream->holders > 0)
		return;
	buf_done(&stream->pending);
	free(stream);
}

void
stream_join(struct stream *stream)
{
	HOLD(streams_lock);
	stream->joined = true;
	let_go(stream);
}

void
stream_end(struct stream *stream)
{
	HOLD(streams_lock);
	cut(stream);
	let_go(stream);
}

static void
judge(const char *token, struct mr_names *ret_tokens)
{
	HOLD(streams_lock);
	for (struct stream *s = LIST_FIRST(&all_streams); s; s = LIST_NEXT(s, link))
		if (token && strcmp(s->token, token) == 0)
			cut(s);
		else if (!token && s->token[0] && !s->ended)
			(void)names_add_once(ret_tokens, s->token); /* without memory it is judged the next time */
}

/* Looked at without the lock, because it is read from the room. */
void
streams_judge(struct mr_room *room)
{
	mr_auto(mr_names_done) struct mr_names tokens = { 0 };

	judge(NULL, &tokens);
	for (size_t i = 0; i < tokens.n; i++)
		if (!access_holds(room, tokens.v[i]))
			judge(tokens.v[i], NULL);
}

/* libmicrohttpd is done with it, or never began: its connection may be gone after this. */
static void
stream_free(void *ctx)
{
	struct stream *stream = ctx;

	if (!stream)
		return;
	HOLD(streams_lock);
	stream->ended = stream->left = true;
	LIST_REMOVE(stream, link);
	let_go(stream);
}

static ssize_t
stream_read(void *ctx, uint64_t at, char *to, size_t max)
{
	struct stream *stream = ctx;
	struct buf *pending = &stream->pending;

	(void)at;
	HOLD(streams_lock);
	if (pending->len > 0 && !pending->failed) {
		size_t part = pending->len < max ? pending->len : max;

		memcpy(to, pending->ptr, part);
		memmove(pending->ptr, pending->ptr + part, pending->len - part);
		pending->len -= part;
		if (pending->len == 0)
			buf_done(pending);
		return (ssize_t)part;
	}
	if (stream->ended || pending->failed)
		return MHD_CONTENT_READER_END_OF_STREAM;
	stream->waiting = true;
	MHD_suspend_connection(stream->connection);
	return 0;
}

/* libmicrohttpd does not look at a connection that is suspended: here clients are seen that left their stream. */
static void
cut_left(void)
{
	HOLD(streams_lock);
	for (struct stream *s = LIST_FIRST(&all_streams); s; s = LIST_NEXT(s, link))
		if (s->waiting && poll(&(struct pollfd){ .fd = s->fd, .events = POLLRDHUP }, 1, 0) > 0)
			cut(s);
}

/* ---- Replies ---- */

static const struct mr_header always[] = {
	{ "Content-Security-Policy",
	    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
	    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'" },
	{ "X-Frame-Options", "DENY" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "Referrer-Policy", "same-origin" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Cache-Control", "no-store" },
};

static enum MHD_Result
send_reply(struct MHD_Connection *connection, struct reply *reply)
{
	bool streamed = reply->stream && reply->status == 200;
	struct MHD_Response *response =
	    streamed
		? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, stream_read, reply->stream, stream_free)
		: MHD_create_response_from_buffer(reply->body.len, reply->body.ptr, MHD_RESPMEM_MUST_COPY);

	if (!response)
		return MHD_NO;
	if (streamed)
		reply->stream = NULL; /* the response frees it */
	for (size_t i = 0, k; i < sizeof(always) / sizeof(always[0]); i++) {
		for (k = 0; k < reply->headers_n && strcmp(reply->headers[k].name, always[i].name) != 0;)
			k++;
		if (k == reply->headers_n) /* the page says no other */
			(void)MHD_add_response_header(response, always[i].name, always[i].value);
	}
	(void)MHD_add_response_header(response, "Content-Type", reply->type);
	for (size_t i = 0; i < reply->headers_n; i++)
		(void)MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
	enum MHD_Result sent = MHD_queue_response(connection, reply->status, response);

	MHD_destroy_response(response);
	return sent;
}

static enum MHD_Result
send_status(struct MHD_Connection *connection, struct job *job, unsigned status)
{
	static const struct {
		unsigned status;
		const char *code, *message;
	} words[] = {
		{ 400, "bad-request", "the request is not well-formed" },
		{ 405, "method", "GET, HEAD, POST and DELETE are answered here" },
		{ 413, "too-large", "the body is too long" },
		{ 429, "too-often", "too many requests: try again in a second" },
		{ 503, "busy", "too much is asked at once: try again in a second" },
	};
	size_t i = 0;

	while (words[i].status != status)
		i++;
	(void)reply_error(&job->req, status, words[i].code, words[i].message, "");
	if (status == 429 || status == 503)
		reply_header(&job->req, "Retry-After", "1");
	if (status == 400) /* what follows may be a part of it */
		reply_header(&job->req, "Connection", "close");
	return send_reply(connection, &job->reply);
}

/* ---- Workers ---- */

struct worker {
	struct cli cli; /* how a room is found and opened */
	int64_t opened_ms;
};

static enum mr_rc
worker_room(struct worker *w, struct mr_error *err)
{
	if (w->cli.room && clock_boot_ms() - w->opened_ms < ROOM_MAX_MS)
		return MR_OK;
	cli_done(&w->cli);
	w->cli =
	    (struct cli){ .room_option = all.server->spec, .unheard = true, .env_aged = true, .budget_option = -1 };
	w->opened_ms = clock_boot_ms();
	return cli_open_room(&w->cli, err);
}

static void
answer(struct worker *w, struct job *job)
{
	struct request *req = &job->req;
	struct mr_str uri = str_of(job->uri), path = STR("");
	const char *type = req_header(req, "Content-Type");

	job->reply.status = 200;
	job->reply.type = "text/html; charset=utf-8";
	(void)str_cut(&uri, '?', &path);
	const char *decoded = path_decode(path, &req->own);

	req->body = buf_str(&job->body);
	if (!decoded || !params_parse(uri, &req->query, &req->own) ||
	    (type && str_starts(str_of(type), "application/x-www-form-urlencoded") &&
		!params_parse(req->body, &req->form, &req->own))) {
		job->refused = 400;
		return;
	}
	if (worker_room(w, IGNORED) != MR_OK) { /* no byte of the reason: nobody was asked for a token yet */
		job->refused = 503;
		return;
	}
	req->server = all.server;
	req->path = decoded;
	req->room = w->cli.room;
	route(req);
}

static void
job_free(struct job *job)
{
	buf_done(&job->body);
	buf_done(&job->reply.body);
	arena_free(job->req.own);
	mr_names_done(&job->req.agents);
	free(job->uri);
	free(job);
}

static void
resume(struct job *job)
{
	job->answered = true;
	MHD_resume_connection(job->req.connection);
}

struct stream *
stream_begin(struct request *req)
{
	struct stream *stream = stream_new(req, SIZE_MAX);

	req->begun = stream && stream_add(stream, buf_str(req->out));
	if (req->begun)
		resume(job_of(req));
	return stream;
}

static struct job *
next_job(void)
{
	HOLD(all.lock);
	while (!all.ending && STAILQ_EMPTY(&all.jobs))
		(void)pthread_cond_wait(&all.more, &all.lock);
	if (all.ending)
		return NULL;
	struct job *job = STAILQ_FIRST(&all.jobs);

	STAILQ_REMOVE_HEAD(&all.jobs, link);
	all.queued--;
	job->working = true;
	return job;
}

/* The worker and its client are done with it, in whatever order. */
static void
job_end(struct job *job, bool left)
{
	HOLD(all.lock);
	if (left)
		job->left = true;
	else
		job->working = false;
	if (job->left && !job->working)
		job_free(job);
}

static void *
work(void *ctx)
{
	struct worker w = { 0 };

	(void)ctx;
	(void)nice(10); /* this thread: those who send go first */
	for (struct job *job; (job = next_job());) {
		answer(&w, job);
		if (!job->answered)
			resume(job);
		job_end(job, false);
	}
	cli_done(&w.cli);
	return NULL;
}

/* False: the queue is full. */
static bool
enqueue(struct MHD_Connection *connection, struct job *job)
{
	HOLD(all.lock);
	if (all.queued == QUEUE_MAX)
		return false;
	MHD_suspend_connection(connection);
	STAILQ_INSERT_TAIL(&all.jobs, job, link);
	all.queued++;
	(void)pthread_cond_signal(&all.more);
	return true;
}

/* ---- Clients that are slow, or ask too often ---- */

static void
await(struct peer *peer, bool awaited)
{
	HOLD(all.lock);
	peer->since_ms = awaited ? clock_boot_ms() : 0;
	peer->bytes = 0;
}

static void
note_connection(
    void *ctx, struct MHD_Connection *connection, void **socket_context, enum MHD_ConnectionNotificationCode what)
{
	struct peer *peer = *socket_context;
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	bool begins = what == MHD_CONNECTION_NOTIFY_STARTED;

	(void)ctx;
	all.connections += begins ? 1U : -1U;
	if (begins)
		peer = *socket_context = info ? calloc(1, sizeof(*peer)) : NULL;
	if (!peer)
		return;
	HOLD(all.lock); /* its socket is closed after this: nobody shuts down another's */
	if (begins) {
		peer->fd = info->connect_fd;
		peer->since_ms = clock_boot_ms();
		LIST_INSERT_HEAD(&all.peers, peer, link);
	} else {
		LIST_REMOVE(peer, link);
		free(peer);
	}
}

static void
cut_slow(void)
{
	int64_t now_ms = clock_boot_ms();

	HOLD(all.lock);
	for (const struct peer *p = LIST_FIRST(&all.peers); p; p = LIST_NEXT(p, link))
		if (p->since_ms > 0 && now_ms - p->since_ms > REQUEST_MS + (int64_t)(p->bytes / BODY_RATE) * 1000)
			(void)shutdown(p->fd, SHUT_RDWR);
}

/* One request of this client more; false: too many. A client that is new takes the place of the one that was quiet
 * longest. */
static bool
may_ask(const char *token, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct mr_str who = str_of(token ? token : "");
	int64_t now_ms = clock_boot_ms();
	struct client *c = all.clients;

	if (!token && info && info->client_addr->sa_family == AF_INET)
		who = (struct mr_str){
			(const char *)&((const struct sockaddr_in *)(const void *)info->client_addr)->sin_addr, 4
		};
	uint64_t hash = hash_bytes(who);

	for (struct client *i = all.clients; i < all.clients + CLIENTS && c->who != hash; i++)
		if (i->who == hash || i->at_ms < c->at_ms)
			c = i;
	c->spent -= c->who == hash ? (now_ms - c->at_ms) * REQUESTS_S : c->spent;
	c->spent = c->spent < 0 ? 0 : c->spent;
	c->who = hash;
	c->at_ms = now_ms;
	if (c->spent > REQUESTS_BURST * 1000)
		return false;
	c->spent += 1000;
	return true;
}

/* ---- What libmicrohttpd calls ---- */

const char *
req_header(const struct request *req, const char *name)
{
	return MHD_lookup_connection_value(req->connection, MHD_HEADER_KIND, name);
}

static void *
begin(void *ctx, const char *uri, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct job *job = info && info->socket_context ? calloc(1, sizeof(*job)) : NULL;

	(void)ctx;
	if (!job)
		return NULL;
	*job = (struct job){ .uri = strdup(uri), .req.connection = connection, .peer = info->socket_context };
	job->req.reply = &job->reply;
	job->req.out = &job->reply.body;
	return job;
}

static void
finish(void *ctx, struct MHD_Connection *connection, void **con_cls, enum MHD_RequestTerminationCode how)
{
	struct job *job = *con_cls;

	(void)ctx, (void)connection, (void)how;
	if (!job)
		return;
	await(job->peer, true);
	all.bodies -= job->body.len;
	stream_free(job->reply.stream); /* the client left before it was begun */
	job->reply.stream = NULL;
	*con_cls = NULL;
	job_end(job, true);
}

/* Two programs must not read one request differently: where its body ends and whose it is are said once, and plainly.
 */
struct heads {
	unsigned hosts, lengths;
	bool odd;
};

static enum MHD_Result
judge_header(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct heads *h = ctx;
	bool length = ascii_caseeq(name, "Content-Length"), coding = ascii_caseeq(name, "Transfer-Encoding");

	(void)kind;
	h->hosts += ascii_caseeq(name, "Host");
	h->lengths += length || coding;
	h->odd |= strpbrk(name, " \t") || (length && (!*value || value[strspn(value, "0123456789")])) ||
		  (coding && !ascii_caseeq(value, "chunked"));
	return MHD_YES;
}

/* The status with which it is refused for its first lines alone; 0: it may go on. */
static unsigned
refuse_early(struct job *job, const char *method)
{
	const char *length = req_header(&job->req, "Content-Length"), *cookie = req_header(&job->req, "Cookie");
	const char *bearer = req_header(&job->req, "Authorization");
	static const char *const methods[] = { "GET", "POST", "DELETE" };
	struct heads heads = { 0 };
	uint64_t bytes = 0;

	job->body_max = cookie || bearer ? BODY_MAX : BODY_MAX_UNKNOWN;
	(void)MHD_get_connection_values(job->req.connection, MHD_HEADER_KIND, judge_header, &heads);
	if (heads.hosts > 1 || heads.lengths > 1 || heads.odd)
		return 400;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strcmp(strcmp(method, "HEAD") == 0 ? "GET" : method, methods[i]) == 0)
			job->req.method = methods[i];
	if (!job->req.method)
		return 405;
	if (length && str_to_u64(str_of(length), &bytes) && bytes > job->body_max)
		return 413;
	if (all.connections > CONNECTIONS_MAX)
		return 503;
	return may_ask(bearer ? bearer : cookie, job->req.connection) ? 0 : 429;
}

/* A further piece of the body. What is too long is read to its end, and not kept. */
static void
take_body(struct job *job, struct mr_str piece)
{
	if (job->body.len + piece.len > job->body_max)
		job->refused = 413;
	else if (all.bodies + piece.len > BODIES_MAX || job->body.failed)
		job->refused = 503;
	if (!job->refused) {
		buf_add(&job->body, piece);
		all.bodies += piece.len;
	}
	HOLD(all.lock);
	job->peer->bytes += piece.len;
}

static enum MHD_Result
handle(void *ctx, struct MHD_Connection *connection, const char *url, const char *method, const char *version,
    const char *upload, size_t *upload_n, void **con_cls)
{
	struct job *job = *con_cls;

	(void)ctx, (void)url, (void)version;
	if (!job || !job->uri)
		return MHD_NO;
	if (!job->body_max) { /* it begins */
		job->refused = refuse_early(job, method);
		return job->refused ? send_status(connection, job, job->refused) : MHD_YES;
	}
	if (*upload_n > 0) {
		take_body(job, (struct mr_str){ upload, *upload_n });
		*upload_n = 0;
		return MHD_YES;
	}
	if (!job->refused && !job->answered) {
		await(job->peer, false);
		if (!job->body.failed && enqueue(connection, job))
			return MHD_YES;
		job->refused = 503;
	}
	return job->refused ? send_status(connection, job, job->refused) : send_reply(connection, &job->reply);
}

/* ---- The daemon ---- */

enum mr_rc
server_run(struct server *server, struct mr_error *err)
{
	pthread_t threads[WORKERS];
	size_t started = 0;
	sigset_t ends;

	all.server = server;
	/* What wakes the threads that begin here is often a send, which goes on: it is not interrupted. */
	(void)sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 });
#ifdef __GLIBC__
	/* What one worker freed, the next can use: the memory of one page, not of four. */
	(void)mallopt(M_ARENA_MAX, 1);
#endif
	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGINT);
	(void)sigaddset(&ends, SIGTERM);
	(void)sigaddset(&ends, SIGHUP);
	(void)pthread_sigmask(SIG_BLOCK, &ends, NULL); /* in all threads: this one waits for them */
	struct MHD_Daemon *daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
	    NULL, handle, NULL, MHD_OPTION_LISTEN_SOCKET, server->listen_fd, MHD_OPTION_CONNECTION_LIMIT,
	    CONNECTIONS_MAX + CONNECTIONS_SPARE, MHD_OPTION_CONNECTION_MEMORY_LIMIT, HEADERS_MAX,
	    MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_URI_LOG_CALLBACK, begin, NULL,
	    MHD_OPTION_NOTIFY_COMPLETED, finish, NULL, MHD_OPTION_NOTIFY_CONNECTION, note_connection, NULL,
	    MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);

	if (!daemon)
		return mr_fail_errno(err, "cannot serve on %s:%u", server->address, server->port);
	bool watching = events_start(server, err) == MR_OK;

	while (watching && started < WORKERS && pthread_create(&threads[started], NULL, work, NULL) == 0)
		started++;
	while (started == WORKERS && sigtimedwait(&ends, NULL, &(struct timespec){ .tv_sec = 1 }) < 0) {
		cut_left();
		cut_slow();
	}
	(void)pthread_mutex_lock(&all.lock);
	all.ending = true;
	(void)pthread_cond_broadcast(&all.more);
	(void)pthread_mutex_unlock(&all.lock);
	for (size_t i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	events_stop();
	/* The daemon is left to the end of the process: it must not be stopped while connections are suspended, and
	 * there is nothing in it to save. */
	return started == WORKERS ? MR_OK : mr_fail(err, MR_NOMEM, "cannot start a thread");
}
