/* SPDX-License-Identifier: MIT */
/* filter.c - does a message pass a filter. A filter is compiled once into a matcher, which also knows how
 * much of a message must be read to decide: most need only headers, an empty one only the name. */
#include "message/address.h"
#include "message/message.h"
#include "message/type.h"
#include "office/address/address.h"
#include "office/mail/mail.h"

/* ---- Compiling ---- */

/* The sender in the spelling of this room's messages. */
static enum mr_rc
compile_from(struct matcher *m, const char *from, const char **ret, struct mr_error *err)
{
	char spelled[MR_ADDRESS_MAX + 1];
	struct mr_str agent, at;

	address_split(str_of(from), &agent, &at);
	if (!office_has_lives(m->room)) {
		bool known = agent_spelled(m->room, from, spelled, IGNORED) == MR_OK;

		agent = str_of(known ? spelled : from);
	} else {
		if (at.len > 0 && !str_eq(at, str_of(m->room->name)))
			agent = str_of(from); /* in another room */
		if (agent.len > 1 && agent.ptr[agent.len - 1] == '/')
			agent.len--;
		if (address_is_operator(agent))
			agent = STR(OPERATOR);
	}
	*ret = arena_dup(&m->own, agent);
	return *ret ? MR_OK : mr_nomem(err);
}

/* The value of a term in the form of this room's messages; times narrow the span. */
static enum mr_rc
compile_term(struct matcher *m, struct query_term *term, struct mr_error *err)
{
	int64_t ms;

	switch (term->field) {
	case QUERY_FROM:
		return compile_from(m, term->text, &term->text, err);
	case QUERY_THREAD:
		if (!(m->room->driver->abilities & ROOM_THREADS))
			return room_lacks(m->room, "threads", err);
		return lookup_thread(m->room, m->agent, term->text, &m->own, &term->text, err);
	case QUERY_AFTER:
	case QUERY_BEFORE:
		TRY(mr_time_parse(term->text, &ms, err));
		if ((term->field == QUERY_AFTER) != term->exclude)
			m->since_ms = ms > m->since_ms ? ms : m->since_ms;
		else
			m->before_ms = m->before_ms == 0 || ms < m->before_ms ? ms : m->before_ms;
		return MR_OK;
	case QUERY_TEXT:
		m->depth = SCAN_BODIES;
		return MR_OK;
	case QUERY_TO:
	case QUERY_TYPE:
		return MR_OK;
	}
	return MR_OK;
}

static enum mr_rc
compile_text(struct matcher *m, struct mr_error *err)
{
	char reason[120];

	TRY(query_parse(str_of(m->filter->words ? m->filter->words : ""), &m->query, err));
	m->depth = m->query.n > 0 ? SCAN_HEADERS : SCAN_NAMES;
	for (size_t i = 0; i < m->query.n; i++)
		TRY(compile_term(m, &m->query.v[i], err));
	if (!m->filter->regex)
		return MR_OK;
	int code = regcomp(&m->regex, m->filter->regex, REG_EXTENDED | REG_ICASE | REG_NEWLINE | REG_NOSUB);

	m->has_regex = code == 0;
	if (code == 0)
		return MR_OK;
	(void)regerror(code, &m->regex, reason, sizeof(reason));
	return mr_fail(err, MR_REFUSED, "cannot understand the pattern '%.80s': %s", m->filter->regex, reason);
}

enum mr_rc
filter_can_tell_answers(struct mr_room *room, const struct mr_message *question, struct mr_error *err)
{
	struct mr_message answer = message_new(question->to.n > 0 ? question->to.v[0] : "", "", STR(""));
	struct arena *own = NULL;
	enum mr_rc rc = MR_OK;

	answer.reply_to = lookup_native_id(room, question, &own);
	if (!answer.reply_to)
		rc = mr_nomem(err);
	else if (room->driver->unsupported(room, &answer) & FIELD_REPLY_TO)
		rc = room_lacks(room, "answers that name what they answer", err);
	arena_free(own);
	return rc;
}

/* An answer names the message by its writer's id of it. */
static enum mr_rc
compile_reply_to(struct matcher *m, struct mr_room *room, const char *agent, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };

	TRY(mr_resolve_id(room, agent, m->filter->reply_to, 0, m->reply_to, err));
	enum mr_rc rc = lookup_own(room, agent, m->reply_to, SCAN_HEADERS, &msg, IGNORED);

	/* If senders keep no copy, the recipient's copy tells that id. */
	if (rc != MR_OK && !(room->driver->abilities & ROOM_SENT))
		rc = lookup_anyones(room, m->reply_to, &msg, IGNORED);
	if (rc != MR_OK)
		return MR_OK;
	m->reply_to_native = lookup_native_id(room, &msg, &m->own);
	return filter_can_tell_answers(room, &msg, err);
}

enum mr_rc
matcher_init(
    struct matcher *m, struct mr_room *room, const char *agent, const struct mr_filter *filter, struct mr_error *err)
{
	static const struct mr_filter everything = { 0 };
	const struct mr_filter *f = filter ? filter : &everything;
	unsigned abilities = room->driver->abilities;

	*m = (struct matcher){
		.room = room, .agent = agent, .filter = f, .since_ms = f->since_ms, .before_ms = f->before_ms
	};
	/* Filtering by a field that this room lacks is an error: an empty result would look like "none came". */
	if (f->thread && !(abilities & ROOM_THREADS))
		return room_lacks(room, "threads", err);
	if (f->priority && !(abilities & ROOM_PRIORITIES))
		return room_lacks(room, "priorities", err);
	if (f->from)
		TRY(compile_from(m, f->from, &m->from, err));
	if (f->thread)
		TRY(lookup_thread(room, agent, f->thread, &m->own, &m->thread, err));
	if (f->reply_to)
		TRY(compile_reply_to(m, room, agent, err));
	TRY(compile_text(m, err));
	bool by_headers = m->from || f->type || (m->thread && *m->thread) || *m->reply_to || f->priority ||
			  m->since_ms || m->before_ms;

	if (m->has_regex)
		m->depth = SCAN_BODIES;
	m->by_name = m->depth == SCAN_NAMES && !by_headers;
	if (m->depth == SCAN_NAMES && (by_headers || f->no_control))
		m->depth = SCAN_HEADERS;
	return MR_OK;
}

/* A filter has dates of messages, an id the time at which this room got the message. Carried mail is older than its id,
 * by days if the other side was away; a clock elsewhere may be ahead. */
#define CLOCK_AHEAD_MS ((int64_t)3600 * 1000)
#define CARRIED_LATE_MS ((int64_t)31 * 24 * 3600 * 1000)

void
matcher_span(const struct matcher *m, struct scan_request *want)
{
	want->since_ms = m->since_ms > CLOCK_AHEAD_MS ? m->since_ms - CLOCK_AHEAD_MS : 0;
	want->before_ms = m->before_ms > 0 && m->before_ms < INT64_MAX / 2 ? m->before_ms + CARRIED_LATE_MS : 0;
}

void
matcher_done(struct matcher *m)
{
	if (m->has_regex)
		regfree(&m->regex);
	query_done(&m->query);
	arena_free(m->own);
	*m = (struct matcher){ 0 };
}

/* ---- Matching ---- */

bool
successor_is_own(const struct mr_message *msg, const char *agent)
{
	/* In a shared room anybody may write under our name: that is no note of ours. */
	if (strcmp(msg->from, agent) != 0 || msg->proof == MR_UNPROVEN)
		return false;
	if (*msg->type)
		return ascii_caseeq(msg->type, SUCCESSOR_TYPE);
	return str_eq(type_word(str_of(msg->subject)), STR(SUCCESSOR_TYPE));
}

static bool
names_have(const struct mr_names *names, const struct query_term *term)
{
	for (size_t i = 0; i < names->n; i++)
		if (query_finds(str_of(names->v[i]), term->text, term->prefix, NULL))
			return true;
	return false;
}

static bool
has_text(const struct mr_message *msg, const struct query_term *term)
{
	const struct mr_str fields[] = { str_of(msg->subject), str_of(msg->from), str_of(msg->type),
		{ msg->body ? msg->body : "", msg->body_len } };

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (query_finds(fields[i], term->text, term->prefix, NULL))
			return true;
	return names_have(&msg->to, term) || names_have(&msg->cc, term);
}

static bool
is_from(const char *from, const struct mr_message *msg)
{
	struct mr_str agent, room;

	if (strcmp(from, msg->from) == 0)
		return true;
	address_split(str_of(msg->from), &agent, &room);
	return room.len > 0 && str_eq(agent, str_of(from));
}

static bool
is_in_thread(const char *thread, const struct mr_message *msg)
{
	return strcmp(thread, msg->thread) == 0 || strcmp(thread, msg->id) == 0;
}

static bool
fits_term(const struct query_term *term, const struct mr_message *msg)
{
	switch (term->field) {
	case QUERY_TEXT:
		return has_text(msg, term);
	case QUERY_FROM:
		return is_from(term->text, msg);
	case QUERY_TO:
		return names_has(&msg->to, term->text) || names_has(&msg->cc, term->text);
	case QUERY_TYPE:
		return ascii_caseeq(term->text, msg->type);
	case QUERY_THREAD:
		return is_in_thread(term->text, msg);
	case QUERY_AFTER:
	case QUERY_BEFORE: /* the span of the matcher */
		return !term->exclude;
	}
	return false;
}

static void
add_names_line(struct buf *text, const char *header, const struct mr_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		buf_addf(text, "%s%s", i == 0 ? header : ", ", names->v[i]);
	if (names->n > 0)
		buf_addc(text, '\n');
}

static bool
fits_regex(const struct matcher *m, const struct mr_message *msg)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_addf(&text, "From: %s\n", msg->from);
	add_names_line(&text, "To: ", &msg->to);
	add_names_line(&text, "Cc: ", &msg->cc);
	buf_addf(&text, "Subject: %s\n\n", msg->subject);
	if (msg->body)
		buf_add(&text, (struct mr_str){ msg->body, msg->body_len });
	if (!buf_ok(&text))
		return false;
	for (size_t i = 0; i < text.len; i++) /* regexec ends at a NUL; what follows is searched too */
		if (text.ptr[i] == '\0')
			text.ptr[i] = ' ';
	return regexec(&m->regex, buf_z(&text), 0, NULL, 0) == 0;
}

bool
matcher_fits(const struct matcher *m, const struct mr_message *msg)
{
	const struct mr_filter *f = m->filter;

	if ((f->unread && (msg->flags & MR_SEEN)) || (f->seen && !(msg->flags & MR_SEEN)))
		return false;
	if (f->life > 0 && msg->sender_life == f->life && successor_is_own(msg, m->agent))
		return false;
	if (m->depth == SCAN_NAMES)
		return true;
	if ((m->from && !is_from(m->from, msg)) || (f->type && !ascii_caseeq(f->type, msg->type)))
		return false;
	if (m->thread && *m->thread && !is_in_thread(m->thread, msg))
		return false;
	if (*m->reply_to && strcmp(m->reply_to, msg->reply_to) != 0 &&
	    (!m->reply_to_native || strcmp(m->reply_to_native, msg->reply_to) != 0))
		return false;
	if (f->priority && *f->priority != msg->priority)
		return false;
	if ((m->since_ms && msg->date_ms < m->since_ms) || (m->before_ms && msg->date_ms >= m->before_ms))
		return false;
	for (size_t i = 0; i < m->query.n; i++)
		if (fits_term(&m->query.v[i], msg) == m->query.v[i].exclude)
			return false;
	if (m->has_regex && !fits_regex(m, msg))
		return false;
	return !f->no_control || msg->folder == MR_SENT || !mr_is_control(m->room, m->agent, msg, IGNORED);
}
