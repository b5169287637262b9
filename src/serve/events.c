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
 * took: a busy room costs a fifth of a processor at most. A look reads the names of the last seconds in each mailbox
 *and opens what it does not know; every LONG_MS it looks back further, for senders that were slow and readers that were
 *quick. Where nothing changed it does not look.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "serve/serve.h"

#define STREAMS_MAX 300
#define EVENTS_BEHIND                                                                                                  \
	((size_t)64 << 10) /* bytes that wait for a slow client, which comes back and asks for the rest                \
			    */
#define RING 512
#define KNOWN 8192 /* ids: a power of two */
#define GAP_MS 100
#define BACK_MS 10000
#define LONG_MS 30000
#define LONG_BACK_MS (5 * 60000)
#define COMMENT_MS 15000
#define JUDGE_MS 5000          /* a token that is revoked: its streams end */
#define STREAM_MS (10 * 60000) /* then a client connects again, and is asked for its token again */

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
	uint64_t next;    /* number of the next event; the newest is at (next - 1) % RING */
	uint64_t watched; /* how often the first stream came: nobody looked before */
	int64_t alone_ms; /* since when there is no stream; 0: there is one */
	bool catch_up;    /* the first came: look back as far as nobody looked */
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

/* The events of one look: each message, then one `change`. A stream is woken once for all of them. */
static void
emit(const struct mr_names *mails, const char *change)
{
	mr_auto(buf_done) struct buf all = BUF_INIT;

	(void)pthread_mutex_lock(&hub.lock);
	for (size_t i = 0; i <= mails->n; i++) {
		struct entry *e = &hub.ring[hub.next % RING];
		struct buf text = BUF_INIT;

		(void)snprintf(hub.newest, sizeof(hub.newest), "%lld-%llu", (long long)clock_now_ms(),
		    (unsigned long long)hub.next++);
		add_event(
		    &text, hub.newest, i < mails->n ? "mail" : "change", str_of(i < mails->n ? mails->v[i] : change));
		buf_add(&all, buf_str(&text));
		free(e->text);
		e->text = buf_take(&text); /* NULL: a reconnect does not find it here, and asks the mail */
		(void)snprintf(e->id, sizeof(e->id), "%s", e->text ? hub.newest : "");
	}
	for (size_t i = 0; i < hub.streams_n && buf_ok(&all); i++)
		(void)stream_add(hub.streams[i].stream, buf_str(&all));
	(void)pthread_mutex_unlock(&hub.lock);
}

uint64_t
events_seen(void)
{
	(void)pthread_mutex_lock(&hub.lock);
	uint64_t n = hub.streams_n > 0 ? hub.next + hub.watched : 0;

	(void)pthread_mutex_unlock(&hub.lock);
	return n;
}

/* ---- Looking ---- */

struct look {
	struct mr_room *room;
	uint64_t known[KNOWN]; /* hashes of the newest ids, in a ring */
	size_t known_n;
	struct mr_names agents, found; /* found: new mail, as JSON */
	uint64_t print;                /* of all counts, where nothing rings */
	bool looked;
};

static bool
is_new(void *ctx, const char *id)
{
	const struct look *l = ctx;
	uint64_t hash = hash_bytes(str_of(id));

	for (size_t i = 0; i < l->known_n && i < KNOWN; i++)
		if (l->known[(l->known_n - 1 - i) % KNOWN] == hash)
			return false;
	return true;
}

static bool
note_mail(void *ctx, const struct mr_message *msg)
{
	struct look *l = ctx;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct json j = JSON_INIT(&text);

	if (!is_new(l, msg->id))
		return true;
	json_message(&j, msg, l->room, false);
	if (buf_ok(&text) && names_add(&l->found, buf_str(&text)))
		l->known[l->known_n++ % KNOWN] = hash_bytes(str_of(msg->id));
	return true;
}

/* False: the room cannot be read now. */
static bool
look(struct look *l, int64_t back_ms, bool sees)
{
	struct mr_scan scan = { .filter = { .folders = MR_INBOX | MR_HELD }, .wants = is_new };
	uint64_t print = 14695981039346656037ULL;
	char now[RFC3339_LEN + 1], data[64];

	mr_names_done(&l->agents);
	if (room_agents(l->room, &l->agents, IGNORED) != MR_OK)
		return false;
	scan.filter.since_ms = clock_now_ms() - back_ms;
	if (back_ms > BACK_MS) /* also what was read before anybody could see it come */
		scan.filter.folders |= MR_ARCHIVE;
	for (size_t i = 0; i < l->agents.n; i++) {
		struct mr_counts counts = { 0 };

		(void)mr_scan(l->room, l->agents.v[i], &scan, note_mail, l, IGNORED);
		if (!sees && mr_count(l->room, l->agents.v[i], &counts, IGNORED) == MR_OK)
			print = (print ^ counts.unread ^ counts.seen << 20 ^ counts.held << 40) * 1099511628211ULL;
	}
	time_rfc3339(clock_now_ms(), now);
	(void)snprintf(data, sizeof(data), "{\"at\":\"%s\"}", now);
	if (sees || l->found.n > 0 || print != l->print)
		emit(&l->found, data);
	l->print = print;
	mr_names_done(&l->found);
	l->looked = true;
	return true;
}

/* ---- The thread ---- */

static void
forget(size_t i)
{
	stream_end(hub.streams[i].stream);
	hub.streams[i] = hub.streams[--hub.streams_n];
}

/* Also forgets the clients that left. *ret_catch_up becomes true once after the first came. */
static bool
is_ending(bool *ret_alone, bool *ret_catch_up)
{
	(void)pthread_mutex_lock(&hub.lock);
	bool ending = hub.ending;

	for (size_t i = hub.streams_n; i > 0; i--)
		if (!stream_is_there(hub.streams[i - 1].stream))
			forget(i - 1);
	if (hub.streams_n == 0 && hub.alone_ms == 0)
		hub.alone_ms = clock_boot_ms();

	*ret_alone = hub.streams_n == 0;
	if (ret_catch_up) {
		*ret_catch_up |= hub.catch_up;
		hub.catch_up = false;
	}
	(void)pthread_mutex_unlock(&hub.lock);
	return ending;
}

/* A comment for all, and the end of those that are old enough. */
static void
keep_alive(void)
{
	(void)pthread_mutex_lock(&hub.lock);
	for (size_t i = hub.streams_n; i > 0; i--)
		if (!stream_add(hub.streams[i - 1].stream, STR(":\n\n")) ||
		    clock_boot_ms() - hub.streams[i - 1].begun_ms > STREAM_MS)
			forget(i - 1);
	(void)pthread_mutex_unlock(&hub.lock);
}

/* As long as the room can be read. */
static void
watch_room(struct look *l)
{
	struct mr_watch *watch = NULL;
	int64_t comment_ms = clock_boot_ms(), judge_ms = comment_ms, long_ms = 0;
	bool alone, stirred = true, fine = mr_watch_open(l->room, &watch, IGNORED) == MR_OK;

	while (fine && !is_ending(&alone, NULL)) {
		bool changed = mr_watch_wait(watch, 1000);
		int64_t begun_ms = clock_boot_ms();

		if (begun_ms - comment_ms >= COMMENT_MS) {
			comment_ms = begun_ms;
			keep_alive();
		}
		if (begun_ms - judge_ms >= JUDGE_MS) {
			judge_ms = begun_ms;
			streams_judge(l->room);
		}
		/* Where nothing changed, a longer look would find nothing, either. */
		stirred |= changed || !mr_watch_sees(watch);
		bool far = stirred && begun_ms - long_ms >= LONG_MS;

		if (is_ending(&alone, &far) || alone || (!changed && !far))
			continue;
		if (far) {
			long_ms = begun_ms;
			stirred = false;
		}
		fine = look(l, far && l->looked ? LONG_BACK_MS : BACK_MS, mr_watch_sees(watch));
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

	while (!is_ending(&alone, NULL)) {
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
	mr_names_done(&l->agents);
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
	hub.alone_ms = clock_boot_ms();
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
	while (hub.streams_n > 0)
		forget(hub.streams_n - 1);
	(void)pthread_mutex_unlock(&hub.lock);
	(void)pthread_join(hub.thread, NULL);
}

/* ---- A client ---- */

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
	mr_auto(mr_names_done) struct mr_names agents = { 0 };
	struct mr_scan scan = { .filter.folders = MR_INBOX | MR_HELD | MR_ARCHIVE };
	uint64_t ms = 0;

	(void)str_to_u64((struct mr_str){ after, strcspn(after, "-") }, &ms);
	scan.filter.since_ms = (int64_t)(ms < INT64_MAX ? ms : 0) - BACK_MS;
	scan.limit = 1000;
	(void)snprintf(r.id, sizeof(r.id), "%lld-0", (long long)clock_now_ms());
	if (ms > 0 && room_agents(req->room, &agents, IGNORED) == MR_OK)
		for (size_t i = 0; i < agents.n; i++)
			(void)mr_scan(req->room, agents.v[i], &scan, replay_mail, &r, IGNORED);
	buf_add(out, buf_str(&r.text));
	add_event(out, r.id, "change", STR("{\"again\":true}"));
	buf_done(&r.text);
}

/* The number of the event behind that one; 0: the ring does not have it. */
static uint64_t
number_behind(const char *id)
{
	uint64_t oldest = hub.next > RING ? hub.next - RING : 0;

	for (uint64_t n = hub.next; n > oldest; n--)
		if (hub.ring[(n - 1) % RING].text && strcmp(hub.ring[(n - 1) % RING].id, id) == 0)
			return n;
	return 0;
}

enum mr_rc
events(struct request *req, struct reply *reply, struct mr_error *err)
{
	const char *after = req_header(req, "Last-Event-ID");
	mr_auto(buf_done) struct buf first = BUF_INIT;
	struct stream *stream = stream_new(req, reply, EVENTS_BEHIND);

	TRY(mr_got(stream != NULL, err));
	reply->type = "text/event-stream";
	buf_adds(&first, "retry: 1000\n\n");
	if (!after)
		after = params_get(&req->query, "after");
	(void)pthread_mutex_lock(&hub.lock);
	uint64_t at = after ? number_behind(after) : hub.next;
	/* What came while nobody looked is in no ring: the look that catches up tells of it, unless that is too long
	 * ago. */
	bool known = at > 0 && (!after || hub.alone_ms == 0 || clock_boot_ms() - hub.alone_ms < LONG_BACK_MS / 2);

	at = known ? at : hub.next;
	(void)pthread_mutex_unlock(&hub.lock);
	if (!known)
		replay(req, after, &first);
	(void)pthread_mutex_lock(&hub.lock);
	bool fits = hub.streams_n < STREAMS_MAX && !hub.ending;

	for (at = at + RING > hub.next ? at : hub.next - RING; at < hub.next; at++)
		if (hub.ring[at % RING].text)
			buf_adds(&first, hub.ring[at % RING].text);
	(void)stream_add(stream, buf_str(&first));
	if (fits) {
		hub.watched += hub.streams_n == 0;
		hub.catch_up |= hub.streams_n == 0;
		hub.alone_ms = 0;
		hub.streams[hub.streams_n].begun_ms = clock_boot_ms();
		hub.streams[hub.streams_n++].stream = stream;
	}
	(void)pthread_mutex_unlock(&hub.lock);
	if (fits)
		return MR_OK;
	stream_end(stream);
	reply_error(req, reply, 503, "busy", "too many pages are open", "close some of them");
	return MR_OK;
}
