/* SPDX-License-Identifier: MIT */
/*
 * events.c - /events: server-sent events for all pages from one watch of the room.
 *
 *	event: mail      a message came; data is the message as `inbox --json` prints it
 *	event: change    something else may be different: marks, work, agents. A page that shows such things loads them
 *	                 again
 *
 * A client that names the last id it saw (Last-Event-ID, or ?after=) gets what came since: the events themselves where
 * they were told a moment ago, else the mail itself. Then a message may come a second time, never not at all, and
 * `change` follows.
 *
 * One thread watches. After a change it looks at once, and then not again for GAP_MS or four times as long as the look
 * took: a busy room costs a fifth of a processor at most. A look reads the names of the last seconds in each mailbox
 * and opens what it does not know. Every LONG_MS, and before it forgets what it told since, it looks back further, for
 * senders that were slow, and after a change that was no new mail it looks into the archives, for readers that were
 * quick. Where nothing changed it does not look.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/id.h"
#include "serve/page.h"

#define STREAMS_MAX 300
#define REPLAYED 1000 /* of each mailbox */
/* Of the newest events, for a client that was cut off and comes back at once. */
#define RECENT_MAX ((size_t)256 << 10)
#define PIECE_MAX ((size_t)16 << 10) /* events that are told together */
#define PIECE_MS 20
#define KNOWN 8192 /* ids, after a look */
#define GAP_MS 100
#define BACK_MS 10000
#define LONG_MS 30000
#define LONG_BACK_MS (5 * 60000)
#define COMMENT_MS 15000
#define JUDGE_MS 5000 /* a token that is revoked: its streams end */
#define SOON_MS 2000  /* after a change that was no new mail: it may have been read by the time we looked */

static struct {
	pthread_mutex_t lock; /* taken before that of streams */
	uint64_t next;        /* number of the next event */
	uint64_t watched;     /* how often the first stream came: nobody looked before */
	char newest[40];      /* id of the newest event */
	struct buf recent;    /* what was told last, since somebody has been there all the time */
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
tell(struct buf *events)
{
	struct buf *recent = &hub.recent;

	(void)streams_tell(buf_ok(events) ? buf_str(events) : STR(""));
	buf_add(recent, buf_str(events));
	if (!buf_ok(events) || !buf_ok(recent))
		buf_done(recent);
	buf_done(events);
	if (recent->len <= RECENT_MAX)
		return;
	const char *middle = recent->ptr + recent->len - RECENT_MAX / 2;
	const char *at = memmem(middle, RECENT_MAX / 2, "\n\nid: ", 6);

	buf_replace(recent, 0, at ? (size_t)(at + 2 - recent->ptr) : recent->len, STR(""));
}

/* What was told after that event. False: that is not known any more. */
static bool
told_since(const char *after, struct buf *out)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	struct mr_str all = buf_str(&hub.recent);

	buf_addf(&line, "id: %s\nevent: ", after);
	const char *at = all.len > 0 && buf_ok(&line) ? memmem(all.ptr, all.len, line.ptr, line.len) : NULL;

	at = at ? memmem(at, (size_t)(all.ptr + all.len - at), "\n\n", 2) : NULL;
	if (at)
		buf_add(out, (struct mr_str){ at + 2, (size_t)(all.ptr + all.len - at - 2) });
	return at != NULL;
}

/* The events of one look: each message, then one `change`. A stream is woken for many of them at once. */
static void
emit(const struct mr_names *mails, const char *change)
{
	mr_auto(buf_done) struct buf all = BUF_INIT;

	for (size_t i = 0, ending = 0; i <= mails->n && !ending; i++) {
		(void)pthread_mutex_lock(&hub.lock);
		ending = hub.ending;
		(void)snprintf(hub.newest, sizeof(hub.newest), "%lld-%llu", (long long)clock_now_ms(),
		    (unsigned long long)hub.next++);
		add_event(
		    &all, hub.newest, i < mails->n ? "mail" : "change", str_of(i < mails->n ? mails->v[i] : change));
		bool told = all.len >= PIECE_MAX || i == mails->n;

		if (told)
			tell(&all);
		(void)pthread_mutex_unlock(&hub.lock);
		if (told && i < mails->n) /* clients take it meanwhile: one that falls behind is cut off */
			(void)poll(NULL, 0, PIECE_MS);
	}
}

uint64_t
events_seen(void)
{
	HOLD(hub.lock);
	return streams_tell(STR("")) > 0 ? hub.next + hub.watched : 0;
}

/* ---- Looking ---- */

struct look {
	struct mr_room *room;
	struct known { /* an id: its hash, its time */
		uint64_t hash;
		int64_t at_ms;
	} * known;                       /* what was told, the newest last */
	size_t known_n, known_cap, told; /* told: since it looked further back */
	/* What is older is not wanted; nor is that when it is older than the last far look, and was known once. */
	int64_t since_ms, seen_ms, forgot_ms, took_ms; /* the last look took, without telling of it */
	struct mr_names found;                         /* found: new mail, as JSON */
	uint64_t print;                                /* of all counts, where nothing rings */
	int64_t far_ms;                                /* when it looked further back */
	int64_t alone_ms;                              /* when there was no client yet */
	bool missed;                                   /* a change was seen, and no mail that made it */
};

static bool
is_new(void *ctx, const char *id)
{
	const struct look *l = ctx;
	uint64_t hash = hash_bytes(str_of(id));
	int64_t at_ms = id_time_ms(id);

	if (at_ms < l->since_ms || (at_ms < l->seen_ms && at_ms <= l->forgot_ms))
		return false;
	for (size_t i = l->known_n; i > 0; i--)
		if (l->known[i - 1].hash == hash)
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
	if (buf_ok(&text) && array_grow(&l->known, l->known_n, &l->known_cap, sizeof(*l->known)) &&
	    names_add(&l->found, buf_str(&text)))
		l->known[l->known_n++] = (struct known){ hash_bytes(str_of(msg->id)), id_time_ms(msg->id) };
	return true;
}

/* False: the room cannot be read now. */
static bool
look(struct look *l, int64_t back_ms, bool changed, bool sees)
{
	int64_t begun_ms = clock_boot_ms(), now_ms = clock_now_ms();
	struct mr_scan scan = { .filter = { .folders = MR_INBOX | MR_HELD }, .wants = is_new };
	mr_auto(mr_names_done) struct mr_names agents = { 0 };
	uint64_t print = 14695981039346656037ULL;
	char now[RFC3339_LEN + 1], data[64];

	if (room_agents(l->room, &agents, IGNORED) != MR_OK)
		return false;
	scan.filter.since_ms = now_ms - back_ms;
	if (scan.filter.since_ms < l->alone_ms - BACK_MS) /* what is older is no news to anybody */
		scan.filter.since_ms = l->alone_ms - BACK_MS;
	l->since_ms = scan.filter.since_ms;
	l->seen_ms = now_ms - (begun_ms - l->far_ms) - 1000; /* from the id of mail to the mail */
	if (back_ms > BACK_MS)                               /* also what was read before anybody could see it come */
		scan.filter.folders |= MR_ARCHIVE;
	for (size_t i = 0; i < agents.n; i++) {
		struct mr_counts counts = { 0 };

		(void)mr_scan(l->room, agents.v[i], &scan, note_mail, l, IGNORED);
		if (!sees && mr_count(l->room, agents.v[i], &counts, IGNORED) == MR_OK)
			print = (print ^ counts.unread ^ counts.seen << 20 ^ counts.held << 40) * 1099511628211ULL;
	}
	l->told += l->found.n;
	size_t gone = l->known_n > KNOWN ? l->known_n - KNOWN : 0;

	for (size_t i = 0; i < gone; i++)
		l->forgot_ms = l->known[i].at_ms > l->forgot_ms ? l->known[i].at_ms : l->forgot_ms;
	l->known_n -= gone;
	if (gone > 0)
		memmove(l->known, l->known + gone, l->known_n * sizeof(*l->known));
	l->took_ms = clock_boot_ms() - begun_ms;
	time_rfc3339(clock_now_ms(), now);
	(void)snprintf(data, sizeof(data), "{\"at\":\"%s\"}", now);
	if ((sees && changed) || l->found.n > 0 || print != l->print)
		emit(&l->found, data);
	l->missed = back_ms == BACK_MS && l->found.n == 0;
	l->print = print;
	mr_names_done(&l->found);
	return true;
}

/* ---- The thread ---- */

static bool
is_ending(struct look *l)
{
	HOLD(hub.lock);
	if (streams_tell(STR("")) == 0)
		l->alone_ms = clock_now_ms();
	return hub.ending;
}

/* As long as the room can be read. */
static void
watch_room(struct look *l)
{
	struct mr_watch *watch = NULL;
	int64_t comment_ms = clock_boot_ms(), judge_ms = comment_ms, soon_ms = SOON_MS;
	bool stirred = true, fine = mr_watch_open(l->room, &watch, IGNORED) == MR_OK;

	while (fine) {
		bool changed = mr_watch_wait(watch, 1000);
		int64_t begun_ms = clock_boot_ms();

		if (begun_ms - comment_ms >= COMMENT_MS) {
			comment_ms = begun_ms;
			(void)streams_tell(STR(":\n\n"));
		}
		if (begun_ms - judge_ms >= JUDGE_MS) {
			judge_ms = begun_ms;
			streams_judge(l->room);
		}
		if (is_ending(l))
			break;
		/* Where nothing changed, a longer look would find nothing, either. */
		stirred |= changed || !mr_watch_sees(watch);
		bool far = stirred && (begun_ms - l->far_ms >= (l->missed ? soon_ms : LONG_MS) || l->told >= KNOWN / 2);

		if (streams_tell(STR("")) == 0 || (!changed && !far))
			continue;
		fine = look(l, far ? LONG_BACK_MS : BACK_MS, changed, mr_watch_sees(watch));
		if (far) {
			l->far_ms = begun_ms;
			l->told = 0;
			stirred = l->missed;
			soon_ms = SOON_MS + 20 * l->took_ms;
		}
		(void)poll(NULL, 0, (int)(4 * l->took_ms > GAP_MS ? 4 * l->took_ms : GAP_MS));
	}
	mr_watch_close(watch);
}

static void *
run(void *ctx)
{
	struct look *l = ctx;

	while (!is_ending(l)) {
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
	free(l->known);
	free(l);
	return NULL;
}

enum mr_rc
events_start(const struct server *server, struct mr_error *err)
{
	struct look *l = calloc(1, sizeof(*l));

	hub.server = server;
	(void)snprintf(hub.newest, sizeof(hub.newest), "%lld-0", (long long)clock_now_ms());
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
	(void)pthread_mutex_unlock(&hub.lock);
	(void)pthread_join(hub.thread, NULL);
}

/* ---- A client ---- */

/* What came since that id. */
static void
replay(struct request *req, const char *after, struct buf *out)
{
	mr_auto(letters_done) struct letters all = { .json = true };
	struct mr_filter filter = { .folders = MR_INBOX | MR_HELD | MR_ARCHIVE };
	uint64_t ms = 0;
	char id[40];

	(void)str_to_u64((struct mr_str){ after, strcspn(after, "-") }, &ms);
	filter.since_ms = (int64_t)(ms < INT64_MAX ? ms : 0) - BACK_MS;
	(void)snprintf(id, sizeof(id), "%lld-0", (long long)clock_now_ms());
	if (ms > 0)
		(void)letters_load(req, NULL, &filter, REPLAYED, &all, IGNORED);
	for (size_t i = all.n; i > 0; i--)
		add_event(out, id, "mail", str_of(all.v[i - 1].json));
	add_event(out, id, "change", STR("{\"again\":true}"));
}

/* How many were told before it; STREAMS_MAX: it is not. *ret_missed: something happened since the event `after` that
 * `first` does not tell. */
static size_t
join(struct stream *stream, const char *after, struct buf *first, bool *ret_missed)
{
	HOLD(hub.lock);
	size_t n = hub.ending ? STREAMS_MAX : streams_tell(STR(""));

	if (n == 0) /* what came while nobody was there was told to nobody */
		buf_done(&hub.recent);
	hub.watched += n == 0;
	*ret_missed = after && (n == 0 || (strcmp(after, hub.newest) != 0 && !told_since(after, first)));
	if (n < STREAMS_MAX) {
		(void)stream_add(stream, buf_str(first));
		buf_done(first);
		stream_join(stream);
	}
	return n;
}

enum mr_rc
events(struct request *req, struct mr_error *err)
{
	const char *after = req_header(req, "Last-Event-ID");
	mr_auto(buf_done) struct buf first = BUF_INIT;
	struct stream *stream = stream_new(req, SIZE_MAX);
	bool missed;

	TRY(mr_got(stream != NULL, err));
	req->reply->type = "text/event-stream";
	buf_adds(&first, "retry: 1000\n\n");
	after = after ? after : params_get(&req->query, "after");
	if (join(stream, after, &first, &missed) < STREAMS_MAX) {
		if (missed) /* it is told already of what comes meanwhile */
			replay(req, after, &first);
		(void)stream_add(stream, buf_str(&first));
		return MR_OK;
	}
	stream_end(stream);
	return reply_error(req, 503, "busy", "too many pages are open", "close some of them");
}
