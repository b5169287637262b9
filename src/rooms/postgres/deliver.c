/* SPDX-License-Identifier: MIT */
/*
 * deliver.c - sending: one statement, and behind it in the same pipeline, as a transaction of its own, the poke that
 * wakes what waits. The send is accepted with the first answer; the second is read by the next call, or never.
 */
#include "message/message.h"
#include "rooms/postgres/postgres.h"

#define NEW_IDS_MAX 5
#define BATCH_BYTES ((size_t)8 << 20)
#define BATCH_MAX 500
#define MIB_MS 250

struct split { /* the recipients by kind */
	struct mr_names agents, queues, channels;
};

static void
split_done(struct split *s)
{
	mr_names_done(&s->agents);
	mr_names_done(&s->queues);
	mr_names_done(&s->channels);
}

static enum mr_rc
split(const struct mr_names *to, struct split *ret, struct mr_error *err)
{
	for (size_t i = 0; i < to->n; i++) {
		struct mr_str name = str_of(to->v[i]);
		bool queue = str_starts(name, "queue:"), channel = str_starts(name, "channel:");
		struct mr_str rest = queue || channel ? str_of(strchr(to->v[i], ':') + 1) : name;

		if (!names_add(queue ? &ret->queues : channel ? &ret->channels : &ret->agents, rest))
			return mr_nomem(err);
	}
	return MR_OK;
}

/* A message as its two columns. */
struct written { /* finish with written_done */
	struct buf text;
	struct mr_str head, body;
	struct pg_spool spool; /* a body that is too long for a column: with bytes > 0. Then `body` is its outline */
	char digest[65];
};
#define WRITTEN_INIT ((struct written){ .spool = PG_SPOOL_INIT })

static void
written_done(struct written *w)
{
	buf_done(&w->text);
	pg_spool_done(&w->spool);
}

static enum mr_rc
write_message(struct mr_room *room, const struct mr_message *msg, struct written *ret, struct mr_error *err)
{
	TRY(message_write(msg, room->name, &ret->text, err));
	if (msg->content)
		TRY(pg_content_gather(room, msg, &ret->text, &ret->spool, err));
	if (!buf_ok(&ret->text))
		return mr_nomem(err);
	const char *end = strstr(buf_z(&ret->text), "\n\n"); /* headers have no NUL */
	size_t head = end ? (size_t)(end - ret->text.ptr) + 2 : ret->text.len;

	ret->head = (struct mr_str){ ret->text.ptr, head };
	ret->body = (struct mr_str){ ret->text.ptr + head, ret->text.len - head };
	message_digest(msg, ret->digest);
	return MR_OK;
}

static void
new_id(struct mr_message *msg)
{
	bool starts_thread = msg->thread && strcmp(msg->thread, msg->id) == 0;

	id_new(msg->id);
	if (starts_thread)
		msg->thread = msg->id;
}

/* Watches of this handle: the server does not tell a session of its own pokes. */
static void
ring_own(struct postgres *pg, const struct mr_names *to)
{
	for (struct pg_watch *w = pg->watches; w; w = w->next)
		w->rung |= names_has(to, w->name);
}

struct pg_sent
pg_sent(const struct pg_call *c, int row)
{
	const char *text = pg_get_text(c, row, 0), *id = text + (text[0] ? 2 : 0), *end = id + strcspn(id, " ");
	struct pg_sent sent = { .rc = text[0] - '0', .note = end + (*end ? 1 : 0) };

	(void)snprintf(sent.id, sizeof(sent.id), "%.*s", (int)(end - id), id);
	return sent;
}

static enum mr_rc
outcome(struct mr_room *room, const struct delivery *what, const struct pg_call *c, int row, struct delivered *ret,
    struct mr_error *err)
{
	struct postgres *pg = pg_of(room);
	const struct pg_sent sent = pg_sent(c, row);
	const char *note = sent.note;
	char line[120];

	switch (sent.rc) {
	case PG_DONE:
		*ret = (struct delivered){ .repeated = strcmp(note, "repeated") == 0 && what->key };
		memcpy(ret->id, sent.id, sizeof(ret->id));
		pg_seen_note(room, &pg->seen, true);
		if (pg->away_ms > 0) {
			(void)snprintf(line, sizeof(line),
			    "the server was away for %lld ms; the message is there, once", (long long)pg->away_ms);
			(void)names_add(&ret->warnings, str_of(line));
		}
		return MR_OK;
	case PG_NOTFOUND:
		if (strchr(note, ':'))
			return mr_fail(err, MR_NOTFOUND, "no %.*s '%s' in this room", (int)strcspn(note, ":"), note,
			    strchr(note, ':') + 1);
		return pg_no_agent(note, err);
	case PG_EXISTS:
		return mr_fail(err, MR_EXISTS, "the message '%s' already exists", what->msg->id);
	default:
		if (strcmp(note, "key") == 0)
			return mr_fail(err, MR_REFUSED,
			    "key '%s' was used for another message, '%s'\nrepeat the same message, or use a new key",
			    what->key, sent.id);
		return mr_fail(
		    err, MR_REFUSED, "cannot make that mailbox: its name differs from '%s' only in case", note);
	}
}

/* The call of send(); what it points to are the arguments. */
static void
compose(struct pg_call *c, const struct delivery *what, const struct split *to, struct written *w)
{
	const struct mr_message *msg = what->msg;

	PG_BIND(c, TEXT(msg->id), BYTES(w->head));
	if (w->spool.bytes > 0) {
		c->function = "send_long";
		c->content = &w->spool;
		c->wait_ms = (int64_t)(w->spool.bytes >> 20) * MIB_MS; /* the commit writes all of it */
	}
	PG_BIND(c, BYTES(w->body), TEXT(w->digest), TEXT(what->sender ? what->sender : ""), NAMES(&to->agents),
	    NAMES(&to->queues), NAMES(&to->channels), TEXT(what->key),
	    INT((what->make_mailboxes ? 1 : 0) | (what->keep ? 2 : 0) | (what->key_is_all ? 8 : 0)),
	    INT(MR_URGENT - msg->priority), INT(msg->not_before_ms), BOOL(what->look), AGAIN);
	c->value = true;
	c->poke[0] = to->agents.n ? &to->agents : NULL;
	c->poke[1] = to->queues.n ? &to->queues : NULL;
	c->poke[2] = to->channels.n ? &to->channels : NULL;
	c->tells = true;
}

/* The send is in doubt: the message is kept here, and the next command sends it. */
static void
keep(struct mr_room *room, struct pg_call *c, const struct split *to, struct delivered *ret, struct mr_error *err)
{
	const struct mr_names *const names[3] = { &to->agents, &to->queues, &to->channels };
	struct mr_error why = { 0 };

	*ret = (struct delivered){ 0 };
	(void)snprintf(ret->id, sizeof(ret->id), "%s", c->values[0]);
	if (c->failed || pg_outbox_keep(room, c, names, &why) != MR_OK)
		(void)mr_hint(
		    err, "it could not be kept here (%.80s): ask 'mailroom why %s' later", why.message, ret->id);
	else
		(void)mr_hint(err,
		    "it is kept on this machine: the next command that reaches the room completes it, once; "
		    "'mailroom why %s' shows it",
		    ret->id);
}

static enum mr_rc
send_once(struct mr_room *room, struct delivery *what, struct split *to, struct delivered *ret, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("send");
	mr_auto(written_done) struct written w = WRITTEN_INIT;

	TRY(write_message(room, what->msg, &w, err));
	compose(&c, what, to, &w);
	enum mr_rc rc = pg_run(room, &c, err);

	if (rc == MR_INDOUBT)
		keep(room, &c, to, ret, err);
	if (rc == MR_OK)
		rc = outcome(room, what, &c, 0, ret, err);
	if (rc == MR_OK)
		ring_own(pg_of(room), what->to);
	return rc;
}

static enum mr_rc
deliver_one(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	mr_auto(split_done) struct split to = { 0 };
	enum mr_rc rc = MR_EXISTS;

	if (what->keep && (what->to->n != 1 || what->key))
		return mr_fail(err, MR_REFUSED, "cannot import a message for several at once, or with a key");
	TRY(split(what->to, &to, err));
	if (what->keep) {
		if (!id_valid(str_of(what->msg->id)))
			id_from_name(what->msg->date_ms, str_of(what->msg->from), what->msg->id);
		rc = send_once(room, what, &to, ret, err);
		if (rc == MR_EXISTS) {
			*ret = (struct delivered){ 0 };
			(void)snprintf(ret->id, sizeof(ret->id), "%s", what->msg->id);
		}
		return rc;
	}
	if (what->msg->id[0] == '\0')
		new_id(what->msg);
	for (int tries = 0; tries < NEW_IDS_MAX && rc == MR_EXISTS; tries++) {
		if (tries > 0)
			new_id(what->msg);
		rc = send_once(room, what, &to, ret, err);
	}
	return rc;
}

/* ---- Many at once ---- */

struct batch { /* finish with batch_done */
	struct parcel **parcels;
	struct written *written;
	struct mr_str *columns; /* COLUMNS for each: written to the call as arrays */
	size_t n, cap, bytes;
};
enum { ID, HEAD, BODY, DIGEST, SENDER, TO, PRIO, LOOK, COLUMNS };

static void
batch_done(struct batch *b)
{
	for (size_t i = 0; b->written && i < b->n; i++)
		written_done(&b->written[i]);
	free(b->parcels);
	free(b->written);
	free(b->columns);
}

static void
batch_one_by_one(struct mr_room *room, struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		struct parcel *p = b->parcels[i];

		p->rc = deliver_one(room, &p->what, &p->got, &p->err);
	}
}

static void
batch_send(struct mr_room *room, struct batch *b)
{
	static const char *const prios[] = { "0", "1", "2", "3" };
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("send_many");
	struct mr_names poke = { 0 };
	struct mr_error err = { 0 };

	for (size_t i = 0; i < b->n; i++) {
		const struct delivery *what = &b->parcels[i]->what;
		const struct mr_message *msg = what->msg;
		const struct mr_str row[COLUMNS] = { str_of(msg->id), b->written[i].head, b->written[i].body,
			str_of(b->written[i].digest), str_of(what->sender ? what->sender : ""), str_of(what->to->v[0]),
			str_of(prios[(MR_URGENT - msg->priority) & 3]), what->look ? STR("t") : STR("f") };

		for (size_t k = 0; k < COLUMNS; k++)
			b->columns[k * b->n + i] = row[k];
		(void)names_add_once(&poke, what->to->v[0]); /* without memory nothing is woken: a poll finds it */
	}
	for (size_t k = 0; k < COLUMNS; k++)
		pg_array(&c, b->columns + k * b->n, b->n, k == HEAD || k == BODY);
	PG_BIND(&c, AGAIN);
	c.poke[0] = poke.n ? &poke : NULL;
	c.tells = true;
	enum mr_rc rc = pg_run(room, &c, &err);

	ring_own(pg_of(room), &poke);
	mr_names_done(&poke);
	if (rc != MR_OK && rc != MR_INDOUBT) { /* nothing was done: perhaps one of them is the reason */
		batch_one_by_one(room, b);
		return;
	}
	for (size_t i = 0; i < b->n; i++) {
		struct parcel *p = b->parcels[i];

		p->rc = rc;
		p->err = err;
		if (rc == MR_INDOUBT) {
			mr_auto(pg_call_done) struct pg_call alone = PG_CALL("send");
			mr_auto(split_done) struct split to = { 0 };

			alone.failed = split(p->what.to, &to, IGNORED) != MR_OK;
			compose(&alone, &p->what, &to, &b->written[i]);
			keep(room, &alone, &to, &p->got, &p->err);
		} else if (pg_sent(&c, (int)i).rc == PG_EXISTS) /* its id is taken */
			p->rc = deliver_one(room, &p->what, &p->got, &p->err);
		else
			p->rc = outcome(room, &p->what, &c, (int)i, &p->got, &p->err);
	}
}

static enum mr_rc
deliver_many(struct mr_room *room, struct parcel *many, size_t n, struct mr_error *err)
{
	for (size_t at = 0; at < n;) {
		mr_auto(batch_done) struct batch b = { .cap = n - at < BATCH_MAX ? n - at : BATCH_MAX };

		b.parcels = calloc(b.cap, sizeof(*b.parcels));
		b.written = calloc(b.cap, sizeof(*b.written));
		b.columns = calloc(b.cap, COLUMNS * sizeof(*b.columns));
		if (!b.parcels || !b.written || !b.columns)
			return mr_nomem(err);
		for (; at < n && b.n < b.cap && b.bytes < BATCH_BYTES; at++) {
			struct parcel *p = &many[at];

			if (p->what.msg->content) { /* attachments go by themselves */
				p->rc = deliver_one(room, &p->what, &p->got, &p->err);
				continue;
			}
			if (p->what.msg->id[0] == '\0')
				new_id(p->what.msg);
			b.written[b.n] = WRITTEN_INIT;
			p->rc = write_message(room, p->what.msg, &b.written[b.n], &p->err);
			if (p->rc != MR_OK) {
				written_done(&b.written[b.n]);
				continue;
			}
			b.bytes += b.written[b.n].text.len;
			b.parcels[b.n++] = p;
		}
		if (b.n > 0)
			batch_send(room, &b);
	}
	return MR_OK;
}

enum mr_rc
pg_slot_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	return what->many_n > 0 ? deliver_many(room, what->many, what->many_n, err) : deliver_one(room, what, ret, err);
}
