/* SPDX-License-Identifier: MIT */
/*
 * outgoing.c - from a draft to a message that may be sent: everything that can be refused is refused here, before the
 * driver is asked to deliver.
 */
#include "office/mail/outgoing.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "message/message.h"
#include "office/rules/hygiene.h"

#define SUBJECT_MAX 2000
#define TYPE_MAX 64
#define KEY_MAX 200
#define THREAD_MAX 80
#define HEADERS_MAX 100
#define HEADER_VALUE_MAX 8192

void
outgoing_done(struct outgoing *l)
{
	recipients_done(&l->who);
	typed_done(&l->typed);
	mr_message_done(&l->original);
	mr_names_done(&l->superseded);
	arena_free(l->own);
}

/* ---- May this self send ---- */

static enum mr_rc
check_sender(struct mr_room *room, const struct mr_self *self, struct mr_error *err)
{
	enum mr_rc rc;

	if (self->bound && strcmp(self->agent, OPERATOR) == 0) {
		return mr_fail(err, MR_REFUSED,
		    "an agent's session may not send as '%s'\nthat name belongs to the person who runs the room; send as yourself",
		    OPERATOR);
	}
	rc = office_not_fenced(room, self, err);
	if (rc == MR_OK &&
	    !ROOM_HAS(room, take_life)) /* anybody may write; where it needs a return address the driver says so */
		return MR_OK;
	if (rc == MR_OK)
		rc = agent_exists(room, self->agent, err);
	if (rc != MR_NOTFOUND)
		return rc;
	return mr_fail(err, MR_NOTFOUND,
	    "the sender '%s' is not registered in room '%s'\n`mailroom register %s` makes its mailbox", self->agent,
	    room->name, self->agent);
}

/* ---- May this draft be sent ---- */

static bool
is_word(const char *s, size_t max, const char *also)
{
	size_t n = 0;

	for (; s[n]; n++) {
		bool letter = (s[n] >= 'a' && s[n] <= 'z') || (s[n] >= 'A' && s[n] <= 'Z');

		if (n == max || !(letter || (s[n] >= '0' && s[n] <= '9') || strchr(also, s[n])))
			return false;
	}
	return n > 0;
}

static enum mr_rc
check_key(const char *option, const char *key, struct mr_error *err)
{
	if (!key)
		return MR_OK;
	size_t len = strlen(key);

	if (len == 0 || len > KEY_MAX)
		return mr_fail(err, MR_REFUSED, "the %s has %zu bytes: 1 to %d are allowed", option, len, KEY_MAX);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)key[i] < 0x20 || key[i] == 0x7f)
			return mr_fail(err, MR_REFUSED, "the %s has a control character", option);
	return MR_OK;
}

static enum mr_rc
check_body(const struct mr_draft *draft, struct mr_error *err)
{
	struct mr_str body = { draft->body ? draft->body : "", draft->body ? draft->body_len : 0 };
	size_t i = 0;

	while (
	    i < body.len && (body.ptr[i] == ' ' || body.ptr[i] == '\t' || body.ptr[i] == '\n' || body.ptr[i] == '\r'))
		i++;
	if (i == body.len && !draft->no_text)
		return mr_fail(
		    err, MR_REFUSED, "the message has no text\ngive it with -m TEXT, with -f FILE or on stdin");
	if (body.len > MR_BODY_MAX)
		return mr_fail(err, MR_REFUSED,
		    "the text has %zu bytes: at most %zu (16 MiB) are allowed\nput it into a file and send its path",
		    body.len, MR_BODY_MAX);
	return MR_OK;
}

static enum mr_rc
check_headers(const struct mr_draft *draft, struct mr_error *err)
{
	if (draft->headers_n > HEADERS_MAX)
		return mr_fail(
		    err, MR_REFUSED, "%zu extra headers: at most %d are allowed", draft->headers_n, HEADERS_MAX);
	for (size_t i = 0; i < draft->headers_n; i++) {
		const struct mr_header *header = &draft->headers[i];

		if (!header->name || !header->value)
			return mr_fail(err, MR_REFUSED, "an extra header has no name or no value");
		if (ascii_caseeq(header->name, "References"))
			return mr_fail(err, MR_REFUSED,
			    "header 'References' is written by mailroom itself\nsay which message this one answers, or name a thread");
		if (strlen(header->value) > HEADER_VALUE_MAX)
			return mr_fail(
			    err, MR_REFUSED, "the header '%.76s' has over %d bytes", header->name, HEADER_VALUE_MAX);
	}
	return MR_OK;
}

static enum mr_rc
check_subject(const struct mr_draft *draft, struct mr_error *err)
{
	if (draft->subject && strlen(draft->subject) > SUBJECT_MAX)
		return mr_fail(err, MR_REFUSED, "the subject has %zu bytes: at most %d are allowed",
		    strlen(draft->subject), SUBJECT_MAX);
	return MR_OK;
}

static enum mr_rc
check_draft(const struct mr_room *room, const struct mr_draft *draft, struct mr_error *err)
{
	bool made = draft->type && *draft->type && (draft->fields_n > 0 || draft->body_len == 0);
	enum mr_rc rc = made ? MR_OK : check_body(draft, err); /* what its type makes is looked at then */

	if (rc == MR_OK)
		rc = check_key("key", draft->key, err);
	if (rc == MR_OK)
		rc = check_key("replace key", draft->replace_key, err);
	if (rc == MR_OK)
		rc = check_headers(draft, err);
	if (rc != MR_OK)
		return rc;
	if (draft->type && !is_word(draft->type, TYPE_MAX, "_.:-"))
		return mr_fail(err, MR_REFUSED, "'%.80s' is no message type: 1 to %d of A-Z a-z 0-9 _ . : -",
		    draft->type, TYPE_MAX);
	if (draft->priority < MR_LOW || draft->priority > MR_URGENT)
		return mr_fail(err, MR_REFUSED, "%d is no priority", (int)draft->priority);
	TRY(check_subject(draft, err));
	if ((draft->key || draft->replace_key) && !(room->driver->abilities & ROOM_KEYS))
		return office_lacks(room, "send keys", err);
	if (draft->reply_path && !(room->driver->abilities & ROOM_REPLY_PATHS))
		return office_lacks(room, "reply paths", err);
	if (draft->reply_path && draft->reply_path[0] != '/')
		return mr_fail(err, MR_REFUSED, "the reply path '%.100s' is not absolute", draft->reply_path);
	return MR_OK;
}

static const char *
first_of_kind(const struct mr_names *names, const char *prefix, bool has)
{
	for (size_t i = 0; i < names->n; i++)
		if (str_starts(str_of(names->v[i]), prefix) == has)
			return names->v[i];
	return NULL;
}

/* A delay is a promise that only a queue can keep: an agent's own mail is readable at once. And only an agent's mail
 * can be retired: what waits in a queue is work that somebody may have begun. */
static enum mr_rc
check_promises(const struct outgoing *l, struct mr_error *err)
{
	const char *other = first_of_kind(&l->who.all, "queue:", false);
	const char *queue = first_of_kind(&l->who.all, "queue:", true);
	const char *channel = first_of_kind(&l->who.all, "channel:", true);

	if (l->draft->not_before_ms != 0 && other)
		return mr_fail(err, MR_REFUSED,
		    "only mail to a work queue can wait for a time, and '%s' is none\n"
		    "send it to queue:NAME alone, or leave out --not-before",
		    other);
	if (l->draft->replace_key && (queue || channel))
		return mr_fail(err, MR_REFUSED,
		    "a replace key does nothing in '%s': no mail is retired there\nleave out --replace-key, or send to agents only",
		    queue ? queue : channel);
	return MR_OK;
}

/* ---- Composing ---- */

/* A thread is named by a message of the sender's, or is a word. */
static enum mr_rc
find_thread(struct outgoing *l, const char *given, const char **ret, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message known = { 0 };
	struct mr_error ignored = { 0 };
	char id[MR_ID_LEN + 1];
	bool full;
	enum mr_rc rc;

	if (lookup_spelling(l->room, given, id, &full, &ignored) == MR_OK) {
		rc = mr_resolve_id(l->room, l->self->agent, given, 0, id, err);
		if (rc == MR_REFUSED)
			return rc;
		if (rc == MR_OK && l->room->driver->fetch(l->room, l->self->agent, id,
				       office_folders(l->room, ALL_FOLDERS), SCAN_HEADERS, &known, &ignored) == MR_OK)
			given = *known.thread ? known.thread : known.id;
		else if (rc == MR_OK)
			given = id;
		*err = (struct mr_error){ 0 };
	} else if (!is_word(given, THREAD_MAX, "._-")) {
		return mr_fail(err, MR_REFUSED, "'%.90s' is no thread: a message id, or 1 to %d of A-Z a-z 0-9 . _ -",
		    given, THREAD_MAX);
	}
	*ret = arena_dup(&l->own, str_of(given));
	return *ret ? MR_OK : mr_nomem(err);
}

static enum mr_rc
find_original(struct outgoing *l, struct mr_error *err)
{
	enum mr_rc rc = lookup_original(l->room, l->self->agent, l->draft->reply_to, &l->original, err);

	return rc == MR_OK ? MR_OK : mr_wrap(err, "reply to '%.60s'", l->draft->reply_to);
}

static enum mr_rc
compose_thread(struct outgoing *l, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	if (l->draft->reply_to && *l->draft->reply_to) {
		rc = find_original(l, err);
		if (rc != MR_OK)
			return rc;
		l->msg.reply_to = lookup_spoken_id(l->room, &l->original, &l->own);
		if (!l->msg.reply_to)
			return mr_nomem(err);
		l->msg.thread = *l->original.thread ? l->original.thread : l->original.id;
	}
	if (l->draft->thread && *l->draft->thread)
		rc = find_thread(l, l->draft->thread, &l->msg.thread, err);
	return rc;
}

static enum mr_rc
compose_headers(struct outgoing *l, struct mr_error *err)
{
	mr_auto(buf_done) struct buf references = BUF_INIT;
	size_t n = l->draft->headers_n;
	struct mr_header *headers = arena_alloc(&l->own, (n + 1) * sizeof(*headers));

	if (!headers)
		return mr_nomem(err);
	for (size_t i = 0; i < n; i++)
		headers[i] = l->draft->headers[i];
	if (*l->msg.reply_to) {
		references_of(&references, l->room, &l->original);
		headers[n].name = "References";
		headers[n].value = buf_ok(&references) ? arena_dup(&l->own, buf_str(&references)) : NULL;
		if (!headers[n++].value)
			return mr_nomem(err);
	}
	l->msg.headers = headers;
	l->msg.headers_n = n;
	return MR_OK;
}

static enum mr_rc
compose_subject(struct outgoing *l, struct mr_error *err)
{
	char first[400];
	mr_auto(buf_done) struct buf subject = BUF_IN(first);

	l->msg.subject = l->draft->subject;
	if (l->typed.no_subject) /* programs of another system look at the text alone; a person here sees the type */
		l->msg.subject = office_has_lives(l->room) ? l->typed.def->name : "";
	if (l->typed.no_subject || (l->msg.subject && *l->msg.subject))
		return MR_OK;
	if (l->draft->no_subject) {
		l->msg.subject = "";
		return MR_OK;
	}
	subject_from_body(&subject, (struct mr_str){ l->draft->body, l->draft->body_len });
	l->msg.subject = buf_ok(&subject) ? arena_dup(&l->own, buf_str(&subject)) : NULL;
	return l->msg.subject ? MR_OK : mr_nomem(err);
}

/* Needs to know who gets it and what it answers: its fields may come from there. */
static enum mr_rc
compose_type(struct outgoing *l, struct mr_error *err)
{
	struct typed_from from = {
		.room = l->room, .self = l->self, .who = &l->who, .original = &l->original, .implied = l->implied
	};
	enum mr_rc rc = typed_compose(&l->typed, l->draft, &from, err);

	if (rc != MR_OK || !l->typed.def)
		return rc;
	l->draft = &l->typed.draft;
	l->implied |= l->typed.implied;
	l->msg.type = l->draft->type;
	l->msg.priority = l->draft->priority;
	l->msg.body = l->draft->body;
	l->msg.body_len = l->draft->body_len;
	rc = check_body(l->draft, err);
	return rc == MR_OK ? check_subject(l->draft, err) : rc;
}

static enum mr_rc
compose(struct outgoing *l, struct mr_error *err)
{
	const struct mr_draft *d = l->draft;
	enum mr_rc rc;

	l->msg = (struct mr_message){
		.from = l->self->agent,
		.to = l->who.to,
		.cc = l->who.cc,
		.date_ms = clock_now_ms(),
		.type = d->type ? d->type : "",
		.priority = d->priority,
		.thread = "", /* its own id: what is read back says so, and a send key does not depend on it */
		.reply_to = "",
		.replace_key = d->replace_key ? d->replace_key : "",
		.sender_life = l->self->life,
		.by_ms = d->by_ms,
		.not_before_ms = d->not_before_ms,
		.body = d->body,
		.body_len = d->body_len,
		.path = "",
	};
	id_new(l->msg.id);
	rc = compose_thread(l, err);
	if (rc == MR_OK)
		rc = compose_type(l, err);
	if (rc == MR_OK)
		rc = compose_headers(l, err);
	if (rc == MR_OK)
		rc = compose_subject(l, err);
	return rc;
}

/* ---- All of it ---- */

static bool
same_list(const char *const *a, const char *const *b)
{
	static const char *const nobody[] = { NULL };
	size_t i = 0;

	a = a ? a : nobody;
	b = b ? b : nobody;
	while (a[i] && b[i] && strcmp(a[i], b[i]) == 0)
		i++;
	return !a[i] && !b[i];
}

static bool
copy_names(struct mr_names *to, const struct mr_names *from)
{
	for (size_t i = 0; i < from->n; i++)
		if (!names_add(to, str_of(from->v[i])))
			return false;
	return true;
}

/* False: nobody asked for just these. */
static bool
copy_recipients(struct outgoing *l)
{
	for (size_t i = l->before_n; i-- > 0;) {
		const struct outgoing *other = &l->before[i];
		mr_auto(recipients_done) struct recipients who = { .missing = other->who.missing,
			.removals = other->who.removals };

		if (!same_list(l->draft->to, other->draft->to) || !same_list(l->draft->cc, other->draft->cc) ||
		    l->draft->hold != other->draft->hold)
			continue;
		if (!copy_names(&who.to, &other->who.to) || !copy_names(&who.cc, &other->who.cc) ||
		    !copy_names(&who.all, &other->who.all) || !copy_names(&who.not_live, &other->who.not_live) ||
		    !copy_names(&who.trouble, &other->who.trouble) || !copy_names(&who.away, &other->who.away))
			return false;
		l->who = who;
		who = (struct recipients){ 0 };
		return true;
	}
	return false;
}

enum mr_rc
outgoing_prepare(struct outgoing *l, struct mr_error *err)
{
	const struct mr_draft *draft = l->draft;
	enum mr_rc rc = check_draft(l->room, draft, err);

	if (rc == MR_OK && l->before_n == 0)
		rc = check_sender(l->room, l->self, err);
	if (rc == MR_OK && !copy_recipients(l))
		rc = recipients_resolve(l->room, l->self->agent, draft->to, draft->cc, draft->hold, &l->who, err);
	if (rc == MR_OK)
		rc = check_promises(l, err);
	if (rc == MR_OK)
		rc = compose(l, err);
	if (rc == MR_OK)
		rc = typed_check_member(l->room, l->self->agent, &l->msg, err);
	if (rc == MR_OK)
		rc = fields_check(l->room, l->draft, l->implied, &l->msg, err);
	if (rc == MR_OK && !draft->force)
		rc =
		    hygiene_check(l->room, l->self, &l->msg, &l->original, draft->key != NULL, &l->typed.warnings, err);
	return rc;
}
