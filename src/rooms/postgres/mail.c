/* SPDX-License-Identifier: MIT */
/* mail.c - looking, marking and removing mail; posts of channels. A scan is read in pages, and a page as a whole before
 * the first message of it is shown: what is called back may use the room. */
#include "message/message.h"
#include "rooms/postgres/postgres.h"

#define PAGE_FIRST 100
#define PAGE_MORE 1000
#define PAGE_BODIES 100
#define NAMES_AND_LETTERS 3 /* a depth of scan() */
#define COUNTS 4            /* likewise */
#define EVERYWHERE_OF_AGENT (MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT)

static const char *
folder_name(int64_t folder)
{
	static const char *const names[MR_DEAD + 1] = { [MR_INBOX] = "inbox",
		[MR_HELD] = "held",
		[MR_ARCHIVE] = "archive",
		[MR_SENT] = "sent",
		[MR_DEAD] = "dead" };

	return folder > 0 && folder <= MR_DEAD && names[folder] ? names[folder] : "work";
}

/* Columns that letters and posts have one behind the other. */
enum { TEXT_HEAD, TEXT_BODY, TEXT_AUTHOR, TEXT_CONTENT };

/* msg->id is filled in; `first` is the column of its headers. */
static enum mr_rc
read_text(struct mr_room *room, const struct pg_call *c, int row, int first, const char *box, enum scan_depth depth,
    struct mr_message *msg, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_str head = pg_get_bytes(c, row, first + TEXT_HEAD);
	int64_t content = pg_get_int(c, row, first + TEXT_CONTENT);

	if (depth == SCAN_NAMES)
		return MR_OK;
	if (depth == SCAN_HEADERS)
		return message_parse(head, room->name, MESSAGE_HEADERS, msg, err);
	if (content > 0)
		return pg_content_read(room, box, head, pg_get_bytes(c, row, first + TEXT_BODY), content, msg, err);
	buf_add(&text, head);
	buf_add(&text, pg_get_bytes(c, row, first + TEXT_BODY));
	return buf_ok(&text) ? message_parse(buf_str(&text), room->name, MESSAGE_ALL, msg, err) : mr_nomem(err);
}

/* The server checked the login of `author` when the message was sent; what the header says must be the same name. */
static enum mr_proof
proof_of(struct mr_room *room, const char *author, const char *from)
{
	return !pg_of(room)->guarded ? MR_PROOF_NONE : author[0] && strcmp(author, from) == 0 ? MR_PROVEN : MR_UNPROVEN;
}

static struct mr_message
empty_message(const char *id)
{
	struct mr_message msg = {
		.from = "", .subject = "", .type = "", .thread = "", .reply_to = "", .replace_key = "", .path = ""
	};

	(void)snprintf(msg.id, sizeof(msg.id), "%s", id);
	return msg;
}

/* Columns of the type letter. */
enum { ID, FOLDER, FLAGS, ATTEMPT, TOKEN, RELEASED, PRIO, LOOK, TOTAL, SIZE, HEAD, BODY, AUTHOR, CONTENT };

/* held: NULL, or what this handle did to it since it was listed. */
static enum mr_rc
read_letter(struct mr_room *room, const struct pg_call *c, int row, const char *agent, enum scan_depth depth,
    const struct pg_held *held, struct mr_message *ret, struct mr_error *err)
{
	const bool ours = held && held->claimed;
	struct mr_message msg = empty_message(pg_get_text(c, row, ID));
	char path[MR_ADDRESS_MAX + MR_ID_LEN + 24];

	msg.priority = (enum mr_priority)(MR_URGENT - pg_get_int(c, row, PRIO));
	TRY(read_text(room, c, row, HEAD, agent, depth, &msg, err));
	if (depth != SCAN_NAMES)
		msg.proof = proof_of(room, pg_get_text(c, row, AUTHOR), msg.from);
	struct arena *own = msg.own;

	msg.folder = ours ? MR_HELD : (enum mr_folder)pg_get_int(c, row, FOLDER);
	(void)snprintf(path, sizeof(path), "%s/%s/%s", agent, folder_name(msg.folder), msg.id);
	msg.path = arena_dup(&own, str_of(path));
	msg.own = own;
	if (!msg.path) {
		mr_message_done(&msg);
		return mr_nomem(err);
	}
	msg.flags = ours ? held->flags : (unsigned)pg_get_int(c, row, FLAGS);
	msg.attempt = ours ? held->attempt : (unsigned)pg_get_int(c, row, ATTEMPT);
	(void)snprintf(msg.token, sizeof(msg.token), "%s", ours ? held->token : pg_get_text(c, row, TOKEN));
	msg.released_ms = pg_get_int(c, row, RELEASED);
	msg.look = pg_get_int(c, row, LOOK) != 0;
	msg.size_bytes = (size_t)pg_get_int(c, row, SIZE);
	*ret = msg;
	return MR_OK;
}

/* The smallest id of that time; "" for none. */
static void
id_at(int64_t ms, char ret[MR_ID_LEN + 1])
{
	ret[0] = '\0';
	if (ms > 0) {
		id_from_name(ms, STR(""), ret);
		memset(ret + 10, '0', MR_ID_LEN - 10);
	}
}

struct scan { /* one scan under way */
	struct mr_room *room;
	const char *agent;
	const struct scan_request *want;
	mr_message_fn *fn;
	void *ctx;
	char last[MR_ID_LEN + 1]; /* a message comes once, also when it is in two folders */
	struct pg_batch *ahead;   /* or NULL: what is asked together for what is listed */
	size_t shown, total;
	unsigned folders;
	int near_month;    /* of what was shown with `nearest`: year * 12 + month; 0: nothing yet */
	bool only_look;    /* as many as are wanted were shown; only mail to look into still counts */
	bool any, stopped; /* something was shown; that was enough */
};

/* A command lists the names of an inbox, and opens the first letters. */
static bool
brings_letters(const struct scan *s)
{
	return s->want->depth == SCAN_NAMES && s->folders == MR_INBOX && pg_of(s->room)->expects.n > 0;
}

/* A glance at all that is there: the server counts what differs in nothing but its id. */
static bool
is_counted(const struct scan_request *want)
{
	return want->glance && want->depth == SCAN_NAMES && !want->wants && !want->most && !want->one_is_enough &&
	       !want->id_suffix && !want->ret_total && want->order == SCAN_OLDEST;
}

static void
compose(const struct scan *s, struct pg_call *c, const char *agent, const char *from, const char *until, size_t limit)
{
	const struct scan_request *want = s->want;

	PG_BIND(c, TEXT(agent), INT(s->folders),
	    INT(is_counted(want)    ? COUNTS
		: brings_letters(s) ? NAMES_AND_LETTERS
				    : want->depth),
	    INT(want->order), BOOL(want->unread_only), TEXT(want->id_suffix), TEXT(s->last[0] ? s->last : NULL),
	    TEXT(from[0] ? from : NULL), TEXT(until[0] ? until : NULL), BOOL(s->only_look), INT((int64_t)limit),
	    BOOL(want->ret_total && !s->last[0]));
}

/* A command that listed all agents counts the mail of one after the other: the next ones are asked for together. */
static void
glance_at_all(struct scan *s, const char *from, const char *until, size_t limit)
{
	struct postgres *pg = pg_of(s->room);
	size_t at = pg->glanced;

	while (at < pg->listed.n && strcmp(pg->listed.v[at], s->agent) != 0)
		at++;
	struct pg_batch *b = at < pg->listed.n ? calloc(1, sizeof(*b)) : NULL;

	if (!b)
		return;
	for (; at < pg->listed.n && b->n < PG_BATCH_MAX; at++)
		compose(s, pg_batch_add(b, "scan"), pg->listed.v[at], from, until, limit);
	pg->glanced = at; /* each is asked for once so */
	pg_ask_ahead(s->room, b);
}

static enum mr_rc
ask_page(struct scan *s, struct pg_call *c, size_t limit, struct mr_error *err)
{
	const struct scan_request *want = s->want;
	char from[MR_ID_LEN + 1], until[MR_ID_LEN + 1];

	id_at(want->since_ms, from);
	id_at(want->before_ms, until);
	compose(s, c, s->agent, from, until, limit);
	if (want->glance && !s->last[0])
		glance_at_all(s, from, until, limit);
	return pg_run(s->room, c, err);
}

static enum mr_rc
show(struct scan *s, const struct pg_call *c, int row, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	const struct scan_request *want = s->want;
	struct mr_error trouble = { 0 };

	if (strcmp(pg_get_text(c, row, ID), s->last) == 0)
		return MR_OK;
	(void)snprintf(s->last, sizeof(s->last), "%s", pg_get_text(c, row, ID));
	bool look = pg_get_int(c, row, LOOK) != 0;

	if ((want->wants && !want->wants(want->wants_ctx, s->last)) || (s->only_look && !look))
		return MR_OK;
	struct civil day = civil_of(id_time_ms(s->last) / 1000);

	if (want->nearest && s->near_month && s->near_month != day.year * 12 + day.month) {
		s->stopped = true;
		return MR_OK;
	}
	s->near_month = s->folders & (MR_ARCHIVE | MR_SENT | MR_DEAD) ? day.year * 12 + day.month : s->near_month;
	enum mr_rc rc = read_letter(s->room, c, row, s->agent, want->depth, NULL, &msg, &trouble);

	if (rc == MR_NOMEM)
		return mr_nomem(err);
	if (rc != MR_OK && want->trouble)
		want->trouble(want->trouble_ctx, s->last, &trouble);
	if (rc != MR_OK)
		return MR_OK;
	if (s->ahead)
		pg_expect_sent(s->ahead, s->agent, &msg);
	s->any = true;
	s->shown += !look;
	s->only_look = want->most > 0 && s->shown == want->most;
	for (int64_t n = is_counted(want) ? pg_get_int(c, row, TOTAL) : 1; n > 0 && !s->stopped; n--)
		s->stopped = !s->fn(s->ctx, &msg);
	return MR_OK;
}

static enum mr_rc
scan_folders(struct scan *s, struct mr_error *err)
{
	const struct scan_request *want = s->want;
	const bool by_id = (want->order == SCAN_OLDEST || want->order == SCAN_NEWEST) && !is_counted(want);
	const size_t most = want->wants ? 0 : want->most;
	size_t limit = want->one_is_enough ? 1 : !by_id || (most > 0 && most < PAGE_FIRST) ? most : PAGE_FIRST;
	int n;

	do {
		mr_auto(pg_call_done) struct pg_call c = PG_READ("scan");

		TRY(ask_page(s, &c, limit, err));
		n = PQntuples(c.rows);
		if (n == 1 && pg_get_int(&c, 0, FOLDER) == -PG_NOTFOUND)
			return pg_no_agent(s->agent, err);
		if (!s->last[0])
			s->total = n > 0 ? (size_t)pg_get_int(&c, 0, TOTAL) : 0;
		for (int i = 0; i < n && !s->stopped; i++)
			TRY(show(s, &c, i, err));
		if (brings_letters(s))
			pg_letters_keep(pg_of(s->room), s->agent, &c);
		if (!by_id || s->stopped || (want->one_is_enough && s->any) || (size_t)n < limit)
			break;
		limit = want->depth == SCAN_BODIES ? PAGE_BODIES : PAGE_MORE;
	} while (n > 0);
	return MR_OK;
}

enum mr_rc
pg_slot_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	const unsigned near = want->folders & (MR_INBOX | MR_HELD);
	struct scan s = { .room = room, .agent = agent, .want = want, .fn = fn, .ctx = ctx, .folders = want->folders };

	if (want->state)
		*want->state = (struct scan_state){ 0 };
	if (want->glance && names_has(&pg_of(room)->others, agent)) /* as the server would say, one by one */
		return mr_fail(err, MR_REFUSED, "this login does not act for '%s'", agent);
	if (want->nearest && near && near != want->folders) {
		s.folders = near;
		TRY(scan_folders(&s, err));
		if (s.any)
			return MR_OK;
		s.last[0] = '\0';
		s.folders = want->folders & ~near;
	}
	if (want->folders == MR_SENT && want->depth == SCAN_HEADERS && pg_of(room)->expects.n > 0)
		s.ahead = calloc(1, sizeof(*s.ahead));
	enum mr_rc rc = scan_folders(&s, err);

	if (s.ahead)
		pg_ask_ahead(room, s.ahead);
	if (rc == MR_OK && want->ret_total)
		*want->ret_total = s.total;
	return rc;
}

/* A body in pieces stays at the server, and is read from there. */
static enum mr_rc
fetch_raw(struct mr_room *room, const char *agent, const char *id, struct mr_message *ret, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_READ("mail_fetch");
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_message msg = empty_message(id);
	struct arena *own = NULL;

	PG_BIND(&c, TEXT(agent), TEXT(id), INT(agent[0] ? EVERYWHERE_OF_AGENT | MR_DEAD : MR_DEAD), INT(SCAN_BODIES));
	TRY(pg_run(room, &c, err));
	if (PQntuples(c.rows) == 0)
		return mr_fail(err, MR_NOTFOUND, "no message '%s' for '%s'", id, agent);
	int64_t content = pg_get_int(&c, 0, CONTENT);

	buf_add(&text, pg_get_bytes(&c, 0, HEAD));
	if (content == 0)
		buf_add(&text, pg_get_bytes(&c, 0, BODY));
	TRY(mr_got(buf_ok(&text), err));
	msg.body = arena_dup(&own, buf_str(&text));
	msg.body_len = text.len;
	msg.own = own;
	TRY(mr_got(msg.body != NULL, err));
	*ret = msg;
	return content > 0 ? pg_content_attach(room, agent, text.len, (uint64_t)content, ret, err) : MR_OK;
}

enum mr_rc
pg_slot_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_READ("mail_fetch");
	int row;

	if (depth == SCAN_RAW)
		return fetch_raw(room, agent, id, ret, err);
	const struct pg_held *held = pg_letter_held(pg_of(room), agent, id, &row);

	c.rows = held ? pg_of(room)->letters.rows : NULL;
	if (held && !held->gone && !PQgetisnull(c.rows, row, HEAD) &&
	    (!folders || folders & (held->claimed ? MR_HELD : MR_INBOX))) {
		enum mr_rc rc = read_letter(room, &c, row, agent, depth, held, ret, err);

		c.rows = NULL; /* not ours */
		return rc;
	}
	c.rows = NULL;
	PG_BIND(&c, TEXT(agent), TEXT(id), INT(folders ? folders : EVERYWHERE_OF_AGENT), INT(depth));
	TRY(pg_run(room, &c, err));
	if (PQntuples(c.rows) == 0)
		return mr_fail(err, MR_NOTFOUND, "no message '%s' for '%s'", id, agent);
	return read_letter(room, &c, 0, agent, depth, NULL, ret, err);
}

enum mr_rc
pg_slot_mark(struct mr_room *room, const char *agent, const char *id, unsigned set, unsigned clear, enum mr_folder to,
    struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("mark");

	pg_letter_gone(pg_of(room), agent, id);
	if (to && to != MR_INBOX && to != MR_ARCHIVE && to != MR_DEAD)
		return mr_fail(err, MR_UNSUPPORTED, "messages cannot be moved to that folder");
	PG_BIND(&c, TEXT(agent), TEXT(id), INT(set), INT(clear), INT(to), AGAIN);
	TRY(pg_run(room, &c, err));
	switch (pg_rc(&c)) {
	case PG_DONE:
		return MR_OK;
	case PG_BUSY:
		return mr_fail(err, MR_BUSY,
		    "message '%s' is being shown or worked on\nfinish it with its token, or try again later", id);
	default:
		return mr_fail(err, MR_NOTFOUND, "no message '%s' for '%s'", id, agent);
	}
}

enum mr_rc
pg_slot_remove(struct mr_room *room, const struct removal *what, size_t *ret_removed, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("remove");
	uint64_t below = what->below > INT64_MAX ? INT64_MAX : what->below;

	pg_letters_done(pg_of(room));
	if (what->what == REMOVE_INBOX)
		return room_lacks(room, "way to clear an inbox", err);
	PG_BIND(&c,
	    INT(what->what == REMOVE_EVERYWHERE ? 0
		: what->what == REMOVE_DEAD     ? 1
						: 2),
	    TEXT(what->box ? what->box : ""), TEXT(what->id ? what->id : ""), INT((int64_t)below), AGAIN);
	TRY(pg_run(room, &c, err));
	if (pg_rc(&c) != PG_DONE && what->what == REMOVE_POSTS)
		return mr_fail(err, MR_NOTFOUND, "no channel '%s' in this room", what->box);
	if (pg_rc(&c) != PG_DONE)
		return mr_fail(err, MR_NOTFOUND, "no dead letter '%s'", what->id);
	if (ret_removed)
		*ret_removed = (size_t)pg_get_int(&c, 0, 1);
	return MR_OK;
}

/* ---- Channels ---- */

enum mr_rc
pg_slot_channel_scan(struct mr_room *room, const char *channel, uint64_t after, enum scan_depth depth,
    bool (*fn)(void *ctx, uint64_t number, const struct mr_message *msg), void *ctx, struct mr_error *err)
{
	enum { POST_N, POST_ID, POST_SIZE, POST_HEAD, POST_AUTHOR = POST_HEAD + TEXT_AUTHOR };
	struct room_box box = room_box("channel", channel);
	int64_t last = after > INT64_MAX ? INT64_MAX : (int64_t)after;
	int page = PAGE_BODIES;

	for (;;) {
		mr_auto(pg_call_done) struct pg_call c = PG_READ("posts");

		PG_BIND(&c, TEXT(channel), INT(last), INT(depth), INT(page));
		TRY(pg_run(room, &c, err));
		if (PQntuples(c.rows) == 0)
			return mr_fail(err, MR_NOTFOUND, "no channel '%s' in this room", channel);
		if (PQgetisnull(c.rows, 0, POST_N)) /* no further posts */
			return MR_OK;
		for (int i = 0; i < PQntuples(c.rows); i++) {
			mr_auto(mr_message_done) struct mr_message msg = empty_message(pg_get_text(&c, i, POST_ID));

			last = pg_get_int(&c, i, POST_N);
			enum mr_rc rc = read_text(
			    room, &c, i, POST_HEAD, box.z, depth == SCAN_BODIES ? depth : SCAN_HEADERS, &msg, err);

			if (rc == MR_NOMEM)
				return rc;
			msg.size_bytes = (size_t)pg_get_int(&c, i, POST_SIZE);
			msg.proof =
			    rc == MR_OK ? proof_of(room, pg_get_text(&c, i, POST_AUTHOR), msg.from) : MR_UNPROVEN;
			if (rc == MR_OK && !fn(ctx, (uint64_t)last, &msg))
				return MR_OK;
		}
	}
}

enum mr_rc
pg_slot_channel_range(struct mr_room *room, const char *channel, uint64_t *ret_first, uint64_t *ret_last,
    size_t *ret_count, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_READ("channel_range");

	PG_BIND(&c, TEXT(channel));
	TRY(pg_run(room, &c, err));
	if (PQntuples(c.rows) == 0)
		return mr_fail(err, MR_NOTFOUND, "no channel '%s' in this room", channel);
	*ret_first = (uint64_t)pg_get_int(&c, 0, 0);
	*ret_last = (uint64_t)pg_get_int(&c, 0, 1);
	*ret_count = (size_t)pg_get_int(&c, 0, 2);
	return MR_OK;
}
