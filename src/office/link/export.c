/* SPDX-License-Identifier: MIT */
/*
 * export.c - copies all mail of a room into another, of any two kinds.
 *
 * Each message is delivered as an import, with its date: the other room tells by its identity whether it has it
 * already, so a run that was killed is simply repeated. Its state is set after that, and again on every repetition,
 * because a kill may have come in between.
 *
 * An answer names the answered message by its id in the other room, so that message must be there first. Agents are
 * copied one after the other, each in order of time; an answer that comes too early is postponed until all others are
 * done.
 */
#include "base/error.h"
#include "office/link/link.h"
#include "office/link/export.h"

#define MAIL_FOLDERS ((unsigned)(MR_INBOX | MR_HELD | MR_ARCHIVE))
#define FLUSH_EVERY 64
#define ANSWERS_MAX 1000 /* steps back from answer to answer; mail that answers itself ends here */

/* One room names the answered message by our id, another by the id of its own format, and after the copy the id is a
 * third one: this list has all three for every copy. */
struct known { /* one copy of a message */
	char id[MR_ID_LEN + 1];
	size_t agent;                 /* number in crossing.agents */
	const char *native;           /* its id in its own room */
	const char *reply_to;         /* as in the message */
	char there_id[MR_ID_LEN + 1]; /* "": not copied yet */
	const char *there;            /* its id in the other room; NULL: unknown */
};
struct late { /* an answer that was postponed */
	size_t agent;
	char id[MR_ID_LEN + 1];
};
struct export_run { /* finish with export_done */
	struct crossing c;
	const struct mr_export_options *options;
	mr_export_fn *fn;
	void *ctx;
	struct mr_exported *ret;
	struct known *known; /* sorted by id, then agent */
	size_t known_n, known_cap;
	struct known **by_native; /* the same, sorted by native */
	struct arena *own;
	size_t agent; /* whose mail is being copied */
	size_t done;
	size_t unflushed;
	struct late *late;
	size_t late_n, late_cap;
	bool too_early;   /* the message answers a later one */
	bool last_chance; /* nothing is postponed any more */
	struct mr_error fatal;
};

static void
export_done(struct export_run *e)
{
	crossing_done(&e->c);
	free(e->known);
	free(e->by_native);
	arena_free(e->own);
	free(e->late);
}

/* ---- Which message answers which ---- */

static bool
note_known(void *ctx, const struct mr_message *msg)
{
	struct export_run *e = ctx;
	struct known k = { .agent = e->agent,
		.native = lookup_native_id(e->c.from, msg, &e->own),
		.reply_to = arena_dup(&e->own, str_of(msg->reply_to)) };

	if (!k.native || !k.reply_to || !array_grow(&e->known, e->known_n, &e->known_cap, sizeof(*e->known))) {
		(void)mr_nomem(&e->fatal);
		return false;
	}
	memcpy(k.id, msg->id, sizeof(k.id));
	e->known[e->known_n++] = k;
	e->ret->stopped = !room_step(e->c.from, "looking", e->known_n, 0);
	return !e->ret->stopped;
}

static int
by_id(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return strcmp(x->id, y->id) ?: ORDER(x->agent, y->agent);
}

static int
by_native(const void *a, const void *b)
{
	struct known *const *x = a, *const *y = b;

	return strcmp((*x)->native, (*y)->native) ?: ORDER((*x)->agent, (*y)->agent);
}

static enum mr_rc
index_mail(struct export_run *e, struct mr_error *err)
{
	struct scan_request want = { .folders = MAIL_FOLDERS, .depth = SCAN_HEADERS };

	for (e->agent = 0; e->agent < e->c.agents.n; e->agent++) {
		/* Not found: registered, but without a mailbox, so no mail. */
		TRY(mr_unless(
		    e->c.from->driver->scan(e->c.from, e->c.agents.v[e->agent].here, &want, note_known, e, err),
		    MR_NOTFOUND, err));
		TRY(mr_got(e->fatal.code == MR_OK, err));
		if (e->ret->stopped)
			return MR_OK;
	}
	e->by_native = calloc(e->known_n + 1, sizeof(struct known *));
	TRY(mr_got(e->by_native, err));
	if (e->known_n > 0)
		qsort(e->known, e->known_n, sizeof(*e->known), by_id);
	for (size_t i = 0; i < e->known_n; i++)
		e->by_native[i] = &e->known[i];
	qsort(e->by_native, e->known_n, sizeof(struct known *), by_native);
	return MR_OK;
}

static struct known *
entry(const struct export_run *e, size_t i, bool native)
{
	return native ? e->by_native[i] : &e->known[i];
}

/* The message with that id, ours or its room's: the copy in that agent's mailbox, else any. NULL: none is known. */
static struct known *
find_known(struct export_run *e, const char *name, size_t agent)
{
	for (int native = 0; *name && native < 2; native++) {
		size_t low = 0, high = e->known_n;
		struct known *any = NULL;

		while (low < high) { /* binary search: the first that is not before `name` */
			size_t middle = low + (high - low) / 2;
			const struct known *k = entry(e, middle, native);

			if (strcmp(native ? k->native : k->id, name) < 0)
				low = middle + 1;
			else
				high = middle;
		}
		for (size_t i = low; i < e->known_n; i++) {
			struct known *k = entry(e, i, native);

			if (strcmp(native ? k->native : k->id, name) != 0)
				break;
			if (k->agent == agent)
				return k;
			any = any && native ? any : k; /* of several equal ids the last, of several names the first */
		}
		if (any)
			return any;
	}
	return NULL;
}

/* The other room's id of a copied message. MR_NOTFOUND: it was not copied, or is gone again. */
static enum mr_rc
name_there(struct export_run *e, struct known *k, const char **ret, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_room *to = e->c.to;

	if (k->there_id[0] == '\0')
		return mr_fail(err, MR_NOTFOUND, "'%s' was not copied so far", k->id);
	if (!k->there) {
		TRY(to->driver->fetch(
		    to, e->c.agents.v[k->agent].there, k->there_id, MAIL_FOLDERS, SCAN_HEADERS, &msg, err));
		k->there = lookup_native_id(to, &msg, &e->own);
	}
	*ret = k->there;
	return mr_got(k->there, err);
}

/* Sets the thread and the answered message of msg to those in the other room. */
static enum mr_rc
cross_thread(struct export_run *e, struct mr_message *msg, struct mr_error *err)
{
	struct mr_room *to = e->c.to;
	struct known *self = find_known(e, msg->id, e->agent), *answered = NULL;
	size_t writer = e->agent;

	if (msg->reply_to[0]) { /* the writer of an answer has the answered message in its own mailbox */
		for (size_t i = 0; i < e->c.agents.n; i++)
			writer = strcmp(e->c.agents.v[i].here, msg->from) == 0 ? i : writer;
		answered = find_known(e, msg->reply_to, writer);
	}
	if (!msg->thread[0] || (self && strcmp(msg->thread, self->native) == 0))
		msg->thread = msg->id;
	struct known *began = find_known(e, msg->thread, e->agent);

	if (began && strcmp(msg->thread, msg->id) != 0)
		msg->thread = began->id;
	if (answered && !(e->c.from->driver->abilities & ROOM_THREADS)) {
		struct known *root = answered, *before = answered;

		for (int i = 0; before && i < ANSWERS_MAX; i++) { /* back from answer to answer */
			root = before;
			before = find_known(e, root->reply_to, root->agent);
			before = before == root ? NULL : before;
		}
		msg->thread = root->id;
	}
	if (!answered)
		return MR_OK;
	if (!ROOM_HAS(to, unsupported)) { /* it keeps our ids */
		msg->reply_to = answered->id;
		return MR_OK;
	}
	if (to->driver->unsupported(to, msg) & FIELD_REPLY_TO)
		return MR_OK;
	e->too_early = answered->there_id[0] == '\0' && !e->last_chance;
	if (e->too_early)
		return MR_OK;
	enum mr_rc rc = name_there(e, answered, &msg->reply_to, err);

	return rc == MR_NOTFOUND ? MR_OK : rc; /* then they stay as they are */
}

/* ---- One message ---- */

/* In a format without marks, read mail is mail outside of the inbox. If an agent holds the message or moved it on, its
 * state there is newer than ours. */
static enum mr_rc
set_state(struct export_run *e, const char *id, const struct mr_message *msg, struct mr_error *err)
{
	struct mr_room *to = e->c.to;
	const char *agent = e->c.agents.v[e->agent].there;
	unsigned abilities = to->driver->abilities, flags = msg->flags & MR_SEEN;
	bool marks = abilities & ROOM_READ_STATE;
	enum mr_rc rc = MR_OK;

	if (msg->folder == MR_ARCHIVE && !(e->c.from->driver->abilities & ROOM_READ_STATE))
		flags = MR_SEEN;
	bool archive = msg->folder == MR_ARCHIVE || (!marks && flags);

	if (abilities & ROOM_PIN)
		flags |= msg->flags & (MR_REPLIED | MR_PINNED | MR_TRASHED);
	if (abilities & ROOM_HOLDS)
		flags |= msg->flags & MR_ACKED;
	if (marks && flags)
		rc = to->driver->mark(to, agent, id, flags, 0, 0, err);
	if (rc == MR_OK && archive && (abilities & ROOM_ARCHIVE))
		rc = to->driver->mark(to, agent, id, 0, 0, MR_ARCHIVE, err);
	return rc == MR_NOTFOUND || rc == MR_BUSY || rc == MR_EXISTS ? MR_OK : rc;
}

/* `msg` has its names and answers as in the other room. */
static enum mr_rc
deliver(struct export_run *e, const struct mr_message *msg, struct mr_error *err)
{
	mr_auto(translated_done) struct translated t = { 0 };
	mr_auto(mr_message_done) struct mr_message found = { 0 };
	mr_auto(mr_names_done) struct mr_names to = { 0 };
	struct delivered got = { 0 };
	struct mr_room *there = e->c.to;
	const char *agent = e->c.agents.v[e->agent].there;
	struct known *self = find_known(e, msg->id, e->agent);

	TRY(translate(there, msg, &t, err));
	TRY(mr_got(names_add(&to, str_of(agent)), err));
	if (e->options->dry_run) {
		if (!ROOM_HAS(there, unsupported) &&
		    there->driver->fetch(there, agent, msg->id, MAIL_FOLDERS, SCAN_NAMES, &found, IGNORED) == MR_OK)
			return mr_fail(err, MR_EXISTS, "it already exists there");
		return MR_OK;
	}
	struct delivery what = {
		.msg = &t.msg, .to = &to, .sender = "", .make_mailboxes = true, .keep = true, .carried = true
	};
	enum mr_rc rc = there->driver->deliver(there, &what, &got, err);

	/* Some rooms know senders only by their mailboxes, and accept no mail from others. Ours accept any sender. */
	if (rc == MR_REFUSED && !office_has_lives(there) && (there->driver->abilities & ROOM_REGISTER) &&
	    msg->from[0] && crossing_add_agent(there, msg->from, "", IGNORED) == MR_OK)
		rc = there->driver->deliver(there, &what, &got, err);
	delivered_done(&got);
	if (rc != MR_OK && rc != MR_EXISTS)
		return rc;
	if (self && got.id[0]) {
		memcpy(self->there_id, got.id, sizeof(self->there_id));
		self->there = got.native_id[0] ? arena_dup(&e->own, str_of(got.native_id)) : NULL;
	}
	if (got.id[0] && set_state(e, got.id, msg, err) != MR_OK)
		return mr_wrap(err, "it was copied, but not marked as it was");
	return rc;
}

/* MR_EXISTS: it is there already. With MR_OK and e->too_early it was postponed. */
static enum mr_rc
export_message(struct export_run *e, const struct mr_message *original, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names to = { 0 }, cc = { 0 };
	mr_auto(record_done) struct record own = { 0 };
	mr_auto(free_ptr) struct mr_header *headers = calloc(original->headers_n + 1, sizeof(*headers));
	char from[MR_ADDRESS_MAX + 1];
	struct mr_message msg = *original;
	struct tombstone stone;
	bool rough = false;

	TRY(mr_got(headers, err));
	/* A message that was purged there does not come back. */
	if ((e->c.to->driver->abilities & ROOM_PURGE) && tombstone_get(e->c.to, msg.id, &stone, &own))
		return mr_fail(err, MR_EXISTS, "it was there, and was purged");
	TRY(cross_thread(e, &msg, err));
	if (e->too_early) {
		TRY(mr_got(array_grow(&e->late, e->late_n, &e->late_cap, sizeof(*e->late)), err));
		e->late[e->late_n].agent = e->agent;
		memcpy(e->late[e->late_n++].id, msg.id, sizeof(msg.id));
		return MR_OK;
	}
	TRY(crossing_sender(&e->c, original->from, from, &rough, err));
	TRY(crossing_names(&e->c, &original->to, &to, err));
	TRY(crossing_names(&e->c, &original->cc, &cc, err));
	for (size_t i = 0; i < msg.headers_n; i++)
		headers[i] = msg.headers[i];
	if (rough)
		headers[msg.headers_n++] = (struct mr_header){ "X-From", original->from };
	msg.headers = headers;
	msg.from = from;
	msg.to = to;
	msg.cc = cc;
	return deliver(e, &msg, err);
}

/* ---- The run ---- */

static bool
tell(struct export_run *e, const char *what, const struct mr_error *trouble)
{
	struct mr_export_step step = {
		.done = e->done,
		.total = e->known_n > e->done ? e->known_n : e->done,
		.agent = e->c.agents.v[e->agent].here,
		.what = what,
		.trouble = trouble,
	};

	if (e->fn && !e->fn(e->ctx, &step))
		e->ret->stopped = true;
	return !e->ret->stopped;
}

static void
tell_unreadable(void *ctx, const char *path, const struct mr_error *what)
{
	struct export_run *e = ctx;

	e->ret->skipped++;
	(void)tell(e, path, what);
}

static bool
copy_one(void *ctx, const struct mr_message *msg)
{
	struct export_run *e = ctx;
	struct mr_error err = { 0 };
	bool fine;

	e->too_early = false;
	enum mr_rc rc = export_message(e, msg, &err);

	if (rc == MR_OK && e->too_early)
		return true;
	if (rc == MR_FULL || rc == MR_NOMEM) { /* the next message would fail as well */
		e->fatal = err;
		return false;
	}
	fine = rc == MR_OK || rc == MR_EXISTS;
	e->done++;
	e->ret->copied += rc == MR_OK;
	e->ret->there += rc == MR_EXISTS;
	e->ret->skipped += !fine;
	if (!tell(e, fine ? msg->id : msg->path, fine ? NULL : &err))
		return false;
	if (e->options->dry_run || ++e->unflushed < FLUSH_EVERY)
		return true;
	e->unflushed = 0;
	return e->c.to->driver->flush(e->c.to, &e->fatal) == MR_OK;
}

static int
by_time(const void *a, const void *b)
{
	const struct late *x = a, *y = b;

	return memcmp(x->id, y->id, MR_ID_LEN);
}

static void
copy_late(struct export_run *e)
{
	struct mr_room *from = e->c.from;

	e->last_chance = true;
	if (e->late_n > 1)
		qsort(e->late, e->late_n, sizeof(*e->late), by_time);
	for (size_t i = 0; i < e->late_n && !e->ret->stopped && e->fatal.code == MR_OK; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct mr_error trouble = { 0 };

		e->agent = e->late[i].agent;
		enum mr_rc rc = from->driver->fetch(
		    from, e->c.agents.v[e->agent].here, e->late[i].id, MAIL_FOLDERS, SCAN_BODIES, &msg, &trouble);

		if (rc == MR_OK)
			(void)copy_one(e, &msg);
		else if (rc != MR_NOTFOUND) /* removed meanwhile */
			tell_unreadable(e, e->late[i].id, &trouble);
	}
}

static bool
has_mail(const struct export_run *e, size_t agent)
{
	for (size_t i = 0; i < e->known_n; i++)
		if (e->known[i].agent == agent)
			return true;
	return false;
}

static enum mr_rc
copy_all(struct export_run *e, struct mr_error *err)
{
	struct scan_request want = {
		.folders = MAIL_FOLDERS, .depth = SCAN_BODIES, .trouble = tell_unreadable, .trouble_ctx = e
	};

	for (size_t i = 0; i < e->c.agents.n && !e->options->dry_run; i++)
		if (strcmp(e->c.agents.v[i].here, OPERATOR) != 0 ||
		    has_mail(e, i)) /* every room has its own operator */
			TRY(crossing_make(&e->c, i, err));
	for (e->agent = 0; e->agent < e->c.agents.n && !e->ret->stopped && e->fatal.code == MR_OK; e->agent++) {
		/* Not found: a name without a mailbox. */
		TRY(mr_unless(e->c.from->driver->scan(e->c.from, e->c.agents.v[e->agent].here, &want, copy_one, e, err),
		    MR_NOTFOUND, err));
	}
	if (!e->ret->stopped && e->fatal.code == MR_OK)
		copy_late(e);
	if (e->fatal.code != MR_OK)
		*err = e->fatal;
	return e->fatal.code;
}

enum mr_rc
mr_export(struct mr_room *from, struct mr_room *to, const struct mr_export_options *options, mr_export_fn *fn,
    void *ctx, struct mr_exported *ret, struct mr_error *err)
{
	mr_auto(export_done) struct export_run e = {
		.c = { .from = from, .to = to }, .options = options, .fn = fn, .ctx = ctx, .ret = ret
	};
	struct mr_error unsynced = { 0 };

	*ret = (struct mr_exported){ 0 };
	if (strcmp(from->spec, to->spec) == 0)
		return mr_fail(err, MR_REFUSED, "cannot copy '%s' into itself", from->spec);
	if (!ROOM_HAS(to, add_agent)) {
		(void)room_lacks(to, "way to take in mail", err);
		return mr_hint(err, "it is only read");
	}
	enum mr_rc rc = crossing_plan(&e.c, options, err);

	ret->agents = e.c.agents.n;
	if (rc == MR_OK)
		rc = index_mail(&e, err);
	if (rc == MR_OK && !ret->stopped)
		rc = copy_all(&e, err);
	if (options->dry_run || to->driver->flush(to, &unsynced) == MR_OK || rc != MR_OK)
		return rc;
	*err = unsynced;
	return err->code;
}
