/* SPDX-License-Identifier: MIT */
/*
 * events.c - /events: server-sent events for all pages from one watch of the room.
 *
 *	event: mail      a message came; data is the message as `inbox --json` prints it
 *	event: change    something else may be different: marks, work, agents. A page that shows such things loads them
 *again
 *
 * A client that names the last id it saw (Last-Event-ID, or ?after=) gets what came since: from the ring of the newest
 * events, or, when the server was started again or the ring has gone on, from the mail itself. Then a message may come
 *a second time, never not at all, and `change` follows.
 *
 * One thread watches. After a change it looks at once, and then not again for GAP_MS or four times as long as the look
 * took: a busy room costs a fifth of a processor at most. A look lists the mail of the last seconds in each mailbox,
 *the newest first, until it meets what it knows; every LONG_MS it looks back further, for senders that were slow.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "serve/serve.h"

#define STREAMS_MAX 300
#define RING 512
#define KNOWN 8192 /* ids: a power of two */
#define GAP_MS 100
#define BACK_MS 10000
#define LONG_MS 30000
#define LONG_BACK_MS (5 * 60000)
#define COMMENT_MS 15000
#define STREAM_MS (10 * 60000) /* then a client connects again, and is asked for its token again */
#define PAGE 50

struct entry {
	char id[40];
	char *text;
};
static struct {
	pthread_mutex_t lock; /* taken before that of streams */
	struct {
		struct stream *stream;
		int64_t begun_ms;
	} streams[STREAMS_MAX];
	size_t streams_n;
	struct entry ring[RING];
	uint64_t next; /* number of the next event; the newest is at (next - 1) % RING */
	char newest[40];
	bool ending;
	pthread_t thread;
	const struct server *server;
} hub = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
add_event(struct buf *out, const char *id, const char *name, struct mr_str data)
{
	buf_addf(out, "id: %s\nevent: %s\ndata: ", id, name);
	buf_add(out, data); /* one line: JSON of ours has no line breaks */
	buf_adds(out, "\n\n");
}

static void
emit(const char *name, struct mr_str data)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	(void)pthread_mutex_lock(&hub.lock);
	struct entry *e = &hub.ring[hub.next % RING];

	(void)snprintf(
	    hub.newest, sizeof(hub.newest), "%lld-%llu", (long long)clock_now_ms(), (unsigned long long)hub.next++);
	add_event(&text, hub.newest, name, data);
	free(e->text);
	(void)snprintf(e->id, sizeof(e->id), "%s", hub.newest);
	for (size_t i = 0; i < hub.streams_n && buf_ok(&text); i++)
		stream_add(hub.streams[i].stream, buf_str(&text));
	e->text = buf_take(&text); /* NULL: a reconnect does not find it here, and asks the mail */
	if (!e->text)
		e->id[0] = '\0';
	(void)pthread_mutex_unlock(&hub.lock);
}

void
events_now(struct buf *out)
{
	(void)pthread_mutex_lock(&hub.lock);
	buf_adds(out, hub.newest);
	(void)pthread_mutex_unlock(&hub.lock);
}

/* ---- Looking ---- */

struct look {
	struct mr_room *room;
	uint64_t known[KNOWN]; /* hashes of the newest ids, in a ring */
	size_t known_n;
	struct mr_agents agents;
	uint64_t print;      /* of all counts, where nothing rings */
	size_t shown, fresh; /* of one mailbox */
};

static bool
is_known(const struct look *l, uint64_t hash)
{
	for (size_t i = 0; i < l->known_n && i < KNOWN; i++)
		if (l->known[(l->known_n - 1 - i) % KNOWN] == hash)
			return true;
	return false;
}

static bool
note_mail(void *ctx, const struct mr_message *msg)
{
	struct look *l = ctx;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct json j = JSON_INIT(&text);
	uint64_t hash = hash_bytes(str_of(msg->id));

	l->shown++;
	if (is_known(l, hash))
		return true;
	l->fresh++;
	l->known[l->known_n++ % KNOWN] = hash;
	json_message(&j, msg, l->room, false);
	if (buf_ok(&text))
		emit("mail", buf_str(&text));
	return true;
}

/* False: the room cannot be read now. */
static bool
look(struct look *l, int64_t back_ms, bool sees)
{
	struct mr_scan scan = { .order = MR_NEWEST_FIRST, .filter = { .folders = MR_INBOX | MR_HELD } };
	uint64_t print = 14695981039346656037ULL;
	char now[RFC3339_LEN + 1], data[64];

	mr_list_done(&l->agents);
	l->agents = (struct mr_agents){ 0 };
	if (mr_agent_list(l->room, &l->agents, IGNORED) != MR_OK)
		return false;
	scan.filter.since_ms = clock_now_ms() - back_ms;
	for (size_t i = 0; i < l->agents.n; i++) {
		struct mr_counts counts = { 0 };

		for (scan.limit = PAGE; scan.limit < 100000; scan.limit *= 4) {
			l->shown = l->fresh = 0;
			if (mr_scan(l->room, l->agents.v[i].name, &scan, note_mail, l, IGNORED) != MR_OK ||
			    l->shown < scan.limit || l->fresh == 0)
				break; /* else there may be more behind them */
		}
		if (sees || mr_count(l->room, l->agents.v[i].name, &counts, IGNORED) != MR_OK)
			continue;
		print = (print ^ counts.unread ^ counts.seen << 20 ^ counts.held << 40) * 1099511628211ULL;
	}
	bool same = !sees && print == l->print;

	l->print = print;
	time_rfc3339(clock_now_ms(), now);
	(void)snprintf(data, sizeof(data), "{\"at\":\"%s\"}", now);
	if (!same)
		emit("change", str_of(data));
	return true;
}

/* ---- The thread ---- */

static bool
is_ending(bool *ret_alone)
{
	(void)pthread_mutex_lock(&hub.lock);
	bool ending = hub.ending;

	*ret_alone = hub.streams_n == 0;
	(void)pthread_mutex_unlock(&hub.lock);
	return ending;
}

/* A comment for all, and the end of those that are old enough. */
static void
keep_alive(void)
{
	(void)pthread_mutex_lock(&hub.lock);
	for (size_t i = 0; i < hub.streams_n; i++) {
		stream_add(hub.streams[i].stream, STR(":\n\n"));
		if (clock_boot_ms() - hub.streams[i].begun_ms > STREAM_MS)
			stream_end(hub.streams[i].stream);
	}
	(void)pthread_mutex_unlock(&hub.lock);
}

/* As long as the room can be read. */
static void
watch_room(struct look *l)
{
	struct mr_watch *watch = NULL;
	int64_t comment_ms = clock_boot_ms(), long_ms = 0;
	bool alone, fine = mr_watch_open(l->room, &watch, IGNORED) == MR_OK;

	while (fine && !is_ending(&alone)) {
		bool changed = mr_watch_wait(watch, 1000);
		int64_t begun_ms = clock_boot_ms();

		if (begun_ms - comment_ms >= COMMENT_MS) {
			comment_ms = begun_ms;
			keep_alive();
		}
		bool far = begun_ms - long_ms >= LONG_MS;

		if (is_ending(&alone) || alone || (!changed && !far))
			continue;
		if (far)
			long_ms = begun_ms;
		fine = look(l, far && l->known_n > 0 ? LONG_BACK_MS : BACK_MS, mr_watch_sees(watch));
		int64_t pause_ms = 4 * (clock_boot_ms() - begun_ms);

		(void)poll(NULL, 0, (int)(pause_ms > GAP_MS ? pause_ms : GAP_MS));
	}
	mr_watch_close(watch);
}

static void *
run(void *ctx)
{
	struct look *l = ctx;
	bool alone;

	while (!is_ending(&alone)) {
		struct cli cli = {
			.room_option = hub.server->spec, .unheard = true, .env_aged = true, .threaded = true
		};

		if (cli_open_room(&cli, IGNORED) == MR_OK) {
			l->room = cli.room;
			watch_room(l);
		}
		cli_done(&cli);
		(void)poll(NULL, 0, GAP_MS);
	}
	mr_list_done(&l->agents);
	free(l);
	return NULL;
}

enum mr_rc
events_start(const struct server *server, struct mr_error *err)
{
	struct look *l = calloc(1, sizeof(*l));

	hub.server = server;
	(void)snprintf(hub.newest, sizeof(hub.newest), "%lld-0", (long long)clock_now_ms());
	(void)snprintf(hub.ring[0].id, sizeof(hub.ring[0].id), "%s", hub.newest);
	hub.ring[0].text = strdup("");
	hub.next = 1;
	if (l && pthread_create(&hub.thread, NULL, run, l) == 0)
		return MR_OK;
	free(l);
	return mr_nomem(err);
}

void
events_stop(void)
{
	(void)pthread_mutex_lock(&hub.lock);
	hub.ending = true;
	for (size_t i = 0; i < hub.streams_n; i++)
		stream_end(hub.streams[i].stream);
	(void)pthread_mutex_unlock(&hub.lock);
	(void)pthread_join(hub.thread, NULL);
}

/* ---- A client ---- */

static void
forget(void *stream)
{
	(void)pthread_mutex_lock(&hub.lock);
	for (size_t i = 0; i < hub.streams_n; i++)
		if (hub.streams[i].stream == stream)
			hub.streams[i--] = hub.streams[--hub.streams_n];
	(void)pthread_mutex_unlock(&hub.lock);
}

struct replay {
	struct request *req;
	struct buf text;
	char id[40];
};

static bool
replay_mail(void *ctx, const struct mr_message *msg)
{
	struct replay *r = ctx;
	mr_auto(buf_done) struct buf data = BUF_INIT;
	struct json j = JSON_INIT(&data);

	json_message(&j, msg, r->req->room, false);
	add_event(&r->text, r->id, "mail", buf_str(&data));
	return buf_ok(&r->text);
}

/* What came since that id and is not in the ring: all mail since then, from the mailboxes. */
static void
replay(struct request *req, const char *after, struct buf *out)
{
	struct replay r = { .req = req };
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };
	struct mr_scan scan = { .filter.folders = MR_INBOX | MR_HELD | MR_ARCHIVE };
	uint64_t ms = 0;

	(void)str_to_u64((struct mr_str){ after, strcspn(after, "-") }, &ms);
	scan.filter.since_ms = (int64_t)(ms < INT64_MAX ? ms : 0) - BACK_MS;
	scan.limit = 1000;
	(void)snprintf(r.id, sizeof(r.id), "%lld-0", (long long)clock_now_ms());
	if (ms > 0)
		(void)mr_agent_list(req->room, &agents, IGNORED);
	for (size_t i = 0; i < agents.n; i++)
		(void)mr_scan(req->room, agents.v[i].name, &scan, replay_mail, &r, IGNORED);
	buf_add(out, buf_str(&r.text));
	add_event(out, r.id, "change", STR("{\"again\":true}"));
	buf_done(&r.text);
}

/* True: what came since is in the ring, and was added. */
static bool
replay_ring(const char *after, struct buf *out)
{
	uint64_t from = hub.next > RING ? hub.next - RING : 0, at = hub.next;
	bool found = strcmp(after, hub.newest) == 0;

	while (!found && at > from && (found = strcmp(hub.ring[(at - 1) % RING].id, after) == 0) == false)
		at--;
	for (; found && at < hub.next; at++) {
		if (!hub.ring[at % RING].text)
			return false;
		buf_adds(out, hub.ring[at % RING].text);
	}
	return found;
}

enum mr_rc
events(struct request *req, struct reply *reply, struct mr_error *err)
{
	const char *after = req_header(req, "Last-Event-ID");
	mr_auto(buf_done) struct buf first = BUF_INIT;
	struct stream *stream = stream_new(req);

	TRY(mr_got(stream != NULL, err));
	stream_on_close(stream, forget, stream);
	if (!after)
		after = params_get(&req->query, "after");
	buf_adds(&first, "retry: 1000\n\n");
	(void)pthread_mutex_lock(&hub.lock);
	bool fits = hub.streams_n < STREAMS_MAX && !hub.ending;
	bool found = !after || replay_ring(after, &first);

	stream_add(stream, buf_str(&first));
	if (fits) {
		hub.streams[hub.streams_n].begun_ms = clock_boot_ms();
		hub.streams[hub.streams_n++].stream = stream;
	}
	(void)pthread_mutex_unlock(&hub.lock);
	reply->stream = stream;
	if (!fits) {
		stream_end(stream);
		reply_error(req, reply, 503, "busy", "too many pages are open", "close some of them");
		return MR_OK;
	}
	/* Live events may overtake these: each names its message. */
	buf_clear(&first);
	if (!found)
		replay(req, after, &first);
	stream_add(stream, buf_str(&first));
	reply->type = "text/event-stream";
	return MR_OK;
}
