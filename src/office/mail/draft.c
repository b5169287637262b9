/* SPDX-License-Identifier: MIT */
/*
 * draft.c - from a draft to a message that may be sent: everything that can be refused is refused here, before the
 * driver is asked to deliver. If a kind of room cannot store something that the sender asked for, the send is refused;
 * what came from the answered message is left out.
 */
#include "base/text.h"
#include "message/message.h"
#include "office/mail/outgoing.h"

#define SUBJECT_MAX 2000
#define TYPE_MAX 64
#define THREAD_MAX 80
#define HEADERS_MAX 100
#define HEADER_VALUE_MAX 8192

void
outgoing_done(struct outgoing *l)
{
	recipients_done(&l->who);
	buf_done(&l->typed.subject);
	buf_done(&l->typed.body);
	mr_names_done(&l->typed.warnings);
	mr_message_done(&l->original);
	mr_names_done(&l->superseded);
	if (l->attached)
		l->attached->free(l->attached);
	arena_free(l->own);
}

/* ---- What can be refused before anything is looked up ---- */

static bool
is_word(const char *s, size_t max, const char *also)
{
	size_t n = 0;

	for (; s[n]; n++)
		if (n == max || !(ascii_alnum(s[n]) || strchr(also, s[n])))
			return false;
	return n > 0;
}

static enum mr_rc
check_text(const struct mr_draft *draft, struct mr_error *err)
{
	size_t len = draft->body ? draft->body_len : 0, i = 0;

	while (i < len && draft->body[i] && strchr(" \t\r\n", draft->body[i]))
		i++;
	if (i == len && !draft->no_text && !draft->mime && !(draft->attach && draft->attach[0]))
		return mr_fail(
		    err, MR_REFUSED, "the message has no text\ngive it with -m TEXT, with -f FILE or on stdin");
	if (len > MR_BODY_MAX)
		return mr_fail(err, MR_REFUSED,
		    "the text has %zu bytes: at most %zu (16 MiB) are allowed\nput it into a file and send its path",
		    len, MR_BODY_MAX);
	return MR_OK;
}

static enum mr_rc
check_draft(const struct mr_room *room, const struct mr_draft *draft, struct mr_error *err)
{
	const char *const keys[][2] = { { "key", draft->key }, { "replace key", draft->replace_key } };
	unsigned abilities = room->driver->abilities;

	/* A text that its type makes is checked later. */
	if (!draft->type || !*draft->type || (draft->fields_n == 0 && draft->body_len > 0))
		TRY(check_text(draft, err));
	if (draft->subject && strlen(draft->subject) > SUBJECT_MAX)
		return mr_fail(err, MR_REFUSED, "the subject has %zu bytes: at most %d are allowed",
		    strlen(draft->subject), SUBJECT_MAX);
	for (size_t i = 0; i < 2; i++) {
		const char *key = keys[i][1];
		size_t len = key ? strlen(key) : 1;

		if (len == 0 || len > ROOM_KEY_MAX)
			return mr_fail(err, MR_REFUSED, "the %s has %zu bytes: 1 to %d are allowed", keys[i][0], len,
			    ROOM_KEY_MAX);
		for (const char *c = key ? key : ""; *c; c++)
			if ((unsigned char)*c < 0x20 || *c == 0x7f)
				return mr_fail(err, MR_REFUSED, "the %s has a control character", keys[i][0]);
	}
	if (draft->headers_n > HEADERS_MAX)
		return mr_fail(
		    err, MR_REFUSED, "%zu extra headers: at most %d are allowed", draft->headers_n, HEADERS_MAX);
	for (const struct mr_header *h = draft->headers; h < draft->headers + draft->headers_n; h++) {
		if (!h->name || !h->value)
			return mr_fail(err, MR_REFUSED, "an extra header has no name or no value");
		if (ascii_caseeq(h->name, "References"))
			return mr_fail(err, MR_REFUSED,
			    "header 'References' is written by mailroom itself\nuse --reply-to or --thread");
		if (strlen(h->value) > HEADER_VALUE_MAX)
			return mr_fail(
			    err, MR_REFUSED, "the header '%.76s' has over %d bytes", h->name, HEADER_VALUE_MAX);
	}
	if (draft->type && !is_word(draft->type, TYPE_MAX, "_.:-"))
		return mr_fail(err, MR_REFUSED, "'%.80s' is not a message type: 1 to %d of A-Z a-z 0-9 _ . : -",
		    draft->type, TYPE_MAX);
	if (draft->priority < MR_LOW || draft->priority > MR_URGENT)
		return mr_fail(err, MR_REFUSED, "%d is not a priority", (int)draft->priority);
	if ((draft->key || draft->replace_key) && !(abilities & ROOM_KEYS))
		return room_lacks(room, "send keys", err);
	if (draft->reply_path && !(abilities & ROOM_REPLY_PATHS))
		return room_lacks(room, "reply paths", err);
	if (draft->reply_path && draft->reply_path[0] != '/')
		return mr_fail(err, MR_REFUSED, "the reply path '%.100s' is not absolute", draft->reply_path);
	return MR_OK;
}

static enum mr_rc
check_sender(struct mr_room *room, const struct mr_self *self, struct mr_error *err)
{
	if (self->bound && strcmp(self->agent, OPERATOR) == 0)
		return mr_fail(err, MR_REFUSED,
		    "an agent's session may not send as '%s'\nthat name belongs to the person who runs the room; send as yourself",
		    OPERATOR);
	TRY(office_not_fenced(room, self, err));
	if (!office_has_lives(room)) /* anybody may write; where it needs a return address the driver says so */
		return MR_OK;
	enum mr_rc rc = agent_exists(room, self->agent, err);

	if (rc != MR_NOTFOUND)
		return rc;
	return mr_fail(err, MR_NOTFOUND,
	    "the sender '%s' is not registered in room '%s'\n`mailroom register %s` makes its mailbox", self->agent,
	    room->name, self->agent);
}

/* ---- Recipients ---- */

static bool
same_list(const char *const *a, const char *const *b)
{
	while (a && *a && b && *b && strcmp(*a, *b) == 0) {
		a++;
		b++;
	}
	return (!a || !*a) && (!b || !*b);
}

/* Only a queue can keep a delay: an agent's own mail is readable at once. And only an agent's mail can be retired: in a
 * queue it is work that may have begun. */
static enum mr_rc
check_promises(const struct outgoing *l, struct mr_error *err)
{
	const char *other = NULL, *queue = NULL, *channel = NULL; /* the first of each */

	for (size_t i = l->who.all.n; i-- > 0;) {
		const char *name = l->who.all.v[i];

		if (str_starts(str_of(name), "queue:"))
			queue = name;
		else
			other = name;
		if (str_starts(str_of(name), "channel:"))
			channel = name;
	}
	if (l->draft->not_before_ms != 0 && other)
		return mr_fail(err, MR_REFUSED,
		    "only mail to a work queue can wait for a time, and '%s' is not one\n"
		    "send it to queue:NAME alone, or leave out --not-before",
		    other);
	if (l->draft->replace_key && (queue || channel))
		return mr_fail(err, MR_REFUSED,
		    "a replace key does nothing in '%s': no mail is retired there\nleave out --replace-key, or send to agents only",
		    queue ? queue : channel);
	return MR_OK;
}

/* ---- Fields that the room cannot store ---- */

/* Refuses those that the sender asked for; removes the others from the message. */
static enum mr_rc
check_fields(struct outgoing *l, struct mr_error *err)
{
	const struct room_driver *driver = l->room->driver;
	const struct mr_draft *d = l->draft;
	const struct {
		enum room_field field;
		bool asked;
		const char *what, *hint;
	} fields[] = {
		{ FIELD_SUBJECT, d->subject && *d->subject, "subjects",
		    "leave out -s: the first line of the text can say it" },
		{ FIELD_CC, d->cc && d->cc[0], "copies marked as such", "leave out --cc: name all as recipients" },
		{ FIELD_TYPE, d->type && *d->type, "message types", "leave out --type, and say it in the text" },
		{ FIELD_PRIORITY, d->priority != MR_NORMAL, "priorities",
		    "leave out --priority, and say it in the text" },
		{ FIELD_THREAD, d->thread && *d->thread, "threads", "leave out --thread" },
		{ FIELD_REPLY_TO, d->reply_to && *d->reply_to, "answers that name what they answer",
		    "leave out --reply-to" },
		{ FIELD_HEADERS, d->headers_n > 0, "such headers", "leave out --header, and say it in the text" },
		{ FIELD_BY, d->by_ms != 0, "times by which an answer is wanted",
		    "leave out --by, and say it in the text" },
		{ FIELD_ATTACHMENTS, true, "attachments", "give --attach-as-path: then the text names the file" },
		{ FIELD_BINARY, true, "way to hold bytes that are not text", "put it into a file and send its path" },
	};
	struct mr_message own = l->msg; /* without References, which nobody asked for */

	own.headers_n = d->headers_n;
	unsigned lacks = room_cannot_hold(l->room, &own);

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (!fields[i].asked || !(lacks & ~l->implied & fields[i].field))
			continue;
		if (fields[i].field == FIELD_PRIORITY && (driver->abilities & ROOM_PRIORITIES))
			(void)mr_fail(err, MR_UNSUPPORTED, "a %s room has no priority '%s'", driver->kind,
			    mr_priority_word(d->priority));
		else
			(void)room_lacks(l->room, fields[i].what, err);
		return mr_hint(err, "%s", fields[i].hint);
	}
	if (lacks & FIELD_PRIORITY)
		l->msg.priority = MR_NORMAL;
	if (lacks & FIELD_TYPE) /* the subject says it */
		l->msg.type = "";
	if (lacks & FIELD_THREAD)
		l->msg.thread = "";
	if (l->msg.headers_n > d->headers_n && (room_cannot_hold(l->room, &l->msg) & FIELD_HEADERS))
		l->msg.headers_n = d->headers_n;
	return MR_OK;
}

/* ---- Composing ---- */

/* The answered message and the thread: that of the answered message, or one that the draft names by a word or a
 * message. */
static enum mr_rc
compose_thread(struct outgoing *l, struct mr_error *err)
{
	const char *thread = l->draft->thread, *answered = l->draft->reply_to;

	if (answered && *answered) {
		if (lookup_original(l->room, l->self->agent, answered, &l->original, err) != MR_OK)
			return mr_wrap(err, "reply to '%.60s'", answered);
		l->msg.reply_to = lookup_native_id(l->room, &l->original, &l->own);
		TRY(mr_got(l->msg.reply_to, err));
		l->msg.thread = *l->original.thread ? l->original.thread : l->original.id;
	}
	if (!thread || !*thread)
		return MR_OK;
	if (!is_word(thread, THREAD_MAX, "._-") && !lookup_is_id(l->room, thread))
		return mr_fail(err, MR_REFUSED,
		    "'%.90s' is not a thread: a message id, or 1 to %d of A-Z a-z 0-9 . _ -", thread, THREAD_MAX);
	return lookup_thread(l->room, l->self->agent, thread, &l->own, &l->msg.thread, err);
}

/* The sender's own, and the references of an answer. */
static enum mr_rc
compose_headers(struct outgoing *l, struct mr_error *err)
{
	mr_auto(buf_done) struct buf references = BUF_INIT;
	size_t n = l->draft->headers_n;
	struct mr_header *headers = arena_alloc(&l->own, (n + 1) * sizeof(*headers));

	TRY(mr_got(headers, err));
	if (n > 0)
		memcpy(headers, l->draft->headers, n * sizeof(*headers));
	if (*l->msg.reply_to) {
		references_of(&references, l->room, &l->original);
		headers[n].name = "References";
		headers[n].value = buf_ok(&references) ? arena_dup(&l->own, buf_str(&references)) : NULL;
		TRY(mr_got(headers[n++].value, err));
	}
	l->msg.headers = headers;
	l->msg.headers_n = n;
	return MR_OK;
}

static enum mr_rc
compose(struct outgoing *l, struct mr_error *err)
{
	char first[400];
	mr_auto(buf_done) struct buf line = BUF_IN(first);
	const struct mr_draft *d = l->draft;
	struct typed_from from = {
		.room = l->room, .self = l->self, .who = &l->who, .original = &l->original, .implied = l->implied
	};

	l->msg = message_new(l->self->agent, "", (struct mr_str){ d->body, d->body_len });
	l->msg.to = l->who.to;
	l->msg.cc = l->who.cc;
	l->msg.type = d->type ? d->type : "";
	l->msg.priority = d->priority;
	l->msg.replace_key = d->replace_key ? d->replace_key : "";
	l->msg.sender_life = l->self->life;
	l->msg.by_ms = d->by_ms;
	l->msg.not_before_ms = d->not_before_ms;
	/* A thread of its own is "": a reader gets the message's id there, and a send key does not depend on it. */
	if ((d->reply_to && *d->reply_to) || (d->thread && *d->thread))
		TRY(compose_thread(l, err));
	/* Its fields may come from its recipients, or from the message that it answers. */
	if ((d->type && *d->type) || d->fields_n > 0)
		TRY(typed_compose(&l->typed, d, &from, err));
	if (l->typed.def) {
		l->draft = d = &l->typed.draft;
		l->implied |= l->typed.implied;
		l->msg.type = d->type;
		l->msg.priority = d->priority;
		l->msg.body = d->body;
		l->msg.body_len = d->body_len;
		TRY(check_text(d, err));
	}
	if (d->headers_n > 0 || *l->msg.reply_to)
		TRY(compose_headers(l, err));
	if ((d->attach && d->attach[0]) || d->mime)
		TRY(outgoing_attach(l, err));
	if (l->typed.no_subject) { /* programs of another system look at the text alone; a person here sees the type */
		l->msg.subject = office_has_lives(l->room) ? l->typed.def->name : "";
	} else if ((d->subject && *d->subject) || d->no_subject) {
		l->msg.subject = d->subject ? d->subject : "";
	} else {
		subject_from_body(&line, (struct mr_str){ d->body, d->body_len });
		if (line.len == 0 && l->msg.attachments_n > 0)
			buf_adds(&line, l->msg.attachments[0].name);
		l->msg.subject = buf_ok(&line) ? arena_dup(&l->own, buf_str(&line)) : NULL;
	}
	return mr_got(l->msg.subject, err);
}

enum mr_rc
outgoing_prepare(struct outgoing *l, struct mr_error *err)
{
	const struct mr_draft *draft = l->draft;
	const struct mr_draft *before = l->before ? l->before->draft : NULL;

	TRY(check_draft(l->room, draft, err));
	if (!before)
		TRY(check_sender(l->room, l->self, err));
	if (!before || !same_list(before->to, draft->to) || !same_list(before->cc, draft->cc) ||
	    before->hold != draft->hold || !recipients_copy(&l->before->who, &l->who))
		TRY(recipients_resolve(l->room, l->self->agent, draft->to, draft->cc, draft->hold, &l->who, err));
	if (draft->not_before_ms != 0 || draft->replace_key)
		TRY(check_promises(l, err));
	TRY(compose(l, err));
	if (*l->msg.type)
		TRY(typed_check_member(l->room, l->self->agent, &l->msg, err));
	TRY(check_fields(l, err));
	l->judged = mr_room_setting(l->room, "Hygiene") || mr_room_setting(l->room, "Hygiene-Policy");
	if (draft->force || !l->judged)
		return MR_OK;
	return hygiene_check(l->room, l->self, &l->msg, &l->original, draft->key != NULL, &l->typed.warnings, err);
}
