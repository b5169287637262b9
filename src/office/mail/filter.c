/* SPDX-License-Identifier: MIT */
/* filter.c - does a message pass a filter. A filter is compiled once into a matcher, which also knows how
 * much of a message must be read to decide: most need only headers, an empty one only the name. */
#include "base/error.h"
#include "message/address.h"
#include "office/mail/handoff.h"
#include "office/office.h"

/* ---- Compiling ---- */

static enum mr_rc
compile_from(struct matcher *m, struct mr_room *room, struct mr_error *err)
{
	char spelled[MR_ADDRESS_MAX + 1];
	struct mr_error ignored = { 0 };
	struct mr_str agent, at;

	if (!m->filter->from)
		return MR_OK;
	if (!office_has_lives(room)) {
		const char *name =
		    agent_spelled(room, m->filter->from, spelled, &ignored) == MR_OK ? spelled : m->filter->from;

		m->from = arena_dup(&m->own, str_of(name));
		return m->from ? MR_OK : mr_nomem(err);
	}
	address_split(str_of(m->filter->from), &agent, &at);
	if (at.len > 0 && !str_eq(at, str_of(room->name)))
		agent = str_of(m->filter->from); /* someone in another room */
	if (agent.len > 1 && agent.ptr[agent.len - 1] == '/')
		agent.len--;
	if (str_caseeq(agent, STR("human")) || str_caseeq(agent, STR("overseer")))
		agent = STR(OPERATOR);
	m->from = arena_dup(&m->own, agent);
	return m->from ? MR_OK : mr_nomem(err);
}

/* A thread is named by its word or root, or by any message in it. */
static enum mr_rc
compile_thread(struct matcher *m, struct mr_room *room, const char *agent, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_error ignored = { 0 };
	char id[MR_ID_LEN + 1];
	const char *thread = m->filter->thread;
	bool full;
	char *copy;

	if (!thread)
		return MR_OK;
	if (lookup_spelling(room, thread, id, &full, &ignored) == MR_OK) {
		enum mr_rc rc = mr_resolve_id(room, agent, thread, 0, id, err);

		if (rc != MR_OK && rc != MR_NOTFOUND)
			return rc;
		if (rc == MR_OK) {
			thread = id;
			if (room->driver->fetch(room, agent, id, office_folders(room, ALL_FOLDERS), SCAN_HEADERS, &msg,
				&ignored) == MR_OK &&
			    *msg.thread)
				thread = msg.thread;
		}
		*err = (struct mr_error){ 0 };
	}
	copy = arena_dup(&m->own, str_of(thread));
	if (!copy)
		return mr_nomem(err);
	m->thread = str_of(copy);
	return MR_OK;
}

static enum mr_rc
compile_words(struct matcher *m, struct mr_error *err)
{
	const char *at = m->filter->words ? m->filter->words : "";

	for (at += strspn(at, " \t\n"); *at; at += strspn(at, " \t\n")) {
		size_t len = strcspn(at, " \t\n");

		if (!names_add(&m->words, (struct mr_str){ at, len }))
			return mr_nomem(err);
		for (char *c = m->words.v[m->words.n - 1]; *c; c++)
			if (*c >= 'A' && *c <= 'Z')
				*c = (char)(*c - 'A' + 'a');
		at += len;
	}
	return MR_OK;
}

static enum mr_rc
compile_regex(struct matcher *m, struct mr_error *err)
{
	char reason[120];
	int code;

	if (!m->filter->regex)
		return MR_OK;
	code = regcomp(&m->regex, m->filter->regex, REG_EXTENDED | REG_ICASE | REG_NEWLINE | REG_NOSUB);
	if (code == 0) {
		m->has_regex = true;
		return MR_OK;
	}
	(void)regerror(code, &m->regex, reason, sizeof(reason));
	return mr_fail(err, MR_REFUSED, "cannot understand the pattern '%.80s': %s", m->filter->regex, reason);
}

static enum scan_depth
depth_needed(const struct matcher *m)
{
	const struct mr_filter *f = m->filter;

	if (m->words.n > 0 || m->has_regex)
		return SCAN_BODIES;
	if (m->from || f->type || m->thread.len > 0 || *m->reply_to || f->priority || f->since_ms || f->before_ms ||
	    f->no_control)
		return SCAN_HEADERS;
	return SCAN_NAMES;
}

enum mr_rc
filter_can_tell_answers(struct mr_room *room, const struct mr_message *question, struct mr_error *err)
{
	struct arena *own = NULL;
	struct mr_message answer = { .from = question->to.n > 0 ? question->to.v[0] : "",
		.subject = "",
		.type = "",
		.thread = "",
		.replace_key = "",
		.path = "",
		.body = "" };
	enum mr_rc rc = MR_OK;

	if (!ROOM_HAS(room, lacks))
		return MR_OK;
	answer.reply_to = lookup_spoken_id(room, question, &own);
	if (!answer.reply_to)
		rc = mr_nomem(err);
	else if (room->driver->lacks(room, &answer) & FIELD_REPLY_TO)
		rc = office_lacks(room, "answers that say what they answer", err);
	arena_free(own);
	return rc;
}

/* An answer names the message as its writer called it. */
static enum mr_rc
find_answered(struct matcher *m, struct mr_room *room, const char *agent, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_error ignored = { 0 };
	enum mr_rc rc = mr_resolve_id(room, agent, m->filter->reply_to, 0, m->reply_to, err), found;

	if (rc != MR_OK)
		return rc;
	found = room->driver->fetch(
	    room, agent, m->reply_to, office_folders(room, ALL_FOLDERS), SCAN_HEADERS, &msg, &ignored);
	/* Where senders keep no copy, the recipient's says what it is called. */
	if (found != MR_OK && !(room->driver->abilities & ROOM_SENT))
		found = lookup_anyones(room, m->reply_to, &msg, &ignored);
	if (found != MR_OK)
		return MR_OK;
	m->reply_to_spoken = lookup_spoken_id(room, &msg, &m->own);
	return filter_can_tell_answers(room, &msg, err);
}

/* To ask for what no message of this room can have is a mistake: an empty answer would look like "none came". */
static enum mr_rc
check_fields(struct mr_room *room, const struct mr_filter *filter, struct mr_error *err)
{
	unsigned abilities = room->driver->abilities;

	if (filter->thread && !(abilities & ROOM_THREADS))
		return office_lacks(room, "threads", err);
	if (filter->priority && !(abilities & ROOM_PRIORITIES))
		return office_lacks(room, "priorities", err);
	return MR_OK;
}

enum mr_rc
matcher_init(
    struct matcher *m, struct mr_room *room, const char *agent, const struct mr_filter *filter, struct mr_error *err)
{
	static const struct mr_filter everything = { 0 };
	enum mr_rc rc;

	*m = (struct matcher){ .room = room, .agent = agent, .filter = filter ? filter : &everything };
	rc = check_fields(room, m->filter, err);
	if (rc == MR_OK)
		rc = compile_from(m, room, err);
	if (rc == MR_OK)
		rc = compile_thread(m, room, agent, err);
	if (rc == MR_OK && m->filter->reply_to)
		rc = find_answered(m, room, agent, err);
	if (rc == MR_OK)
		rc = compile_words(m, err);
	if (rc == MR_OK)
		rc = compile_regex(m, err);
	if (rc == MR_OK)
		m->depth = depth_needed(m);
	return rc;
}

void
matcher_done(struct matcher *m)
{
	if (m->has_regex)
		regfree(&m->regex);
	mr_names_done(&m->words);
	arena_free(m->own);
	*m = (struct matcher){ 0 };
}

/* ---- Matching ---- */

static unsigned char
lower(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c - 'A' + 'a') : c;
}

/* `word` is in lower case. Bytes beyond ASCII must be the same. */
static bool
has_word(struct mr_str text, const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i + len <= text.len; i++) {
		size_t k = 0;

		while (k < len && lower((unsigned char)text.ptr[i + k]) == (unsigned char)word[k])
			k++;
		if (k == len)
			return true;
	}
	return false;
}

static bool
names_have_word(const struct mr_names *names, const char *word)
{
	for (size_t i = 0; i < names->n; i++)
		if (has_word(str_of(names->v[i]), word))
			return true;
	return false;
}

static bool
fits_words(const struct matcher *m, const struct mr_message *msg)
{
	for (size_t i = 0; i < m->words.n; i++) {
		const char *word = m->words.v[i];

		if (!has_word(str_of(msg->subject), word) && !has_word(str_of(msg->from), word) &&
		    !names_have_word(&msg->to, word) && !names_have_word(&msg->cc, word) &&
		    !has_word(str_of(msg->type), word) &&
		    !(msg->body && has_word((struct mr_str){ msg->body, msg->body_len }, word)))
			return false;
	}
	return true;
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

	if (!m->has_regex)
		return true;
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

static bool
fits_from(const struct matcher *m, const struct mr_message *msg)
{
	struct mr_str agent, room;

	if (!m->from || strcmp(m->from, msg->from) == 0)
		return true;
	address_split(str_of(msg->from), &agent, &room);
	return room.len > 0 && str_eq(agent, str_of(m->from));
}

static bool
is_hidden(const struct matcher *m, const struct mr_message *msg)
{
	struct mr_error ignored = { 0 };

	return m->filter->no_control && msg->folder != MR_SENT && mr_is_control(m->room, m->agent, msg, &ignored);
}

bool
matcher_fits(const struct matcher *m, const struct mr_message *msg)
{
	const struct mr_filter *f = m->filter;

	if ((f->unread && (msg->flags & MR_SEEN)) || (f->seen && !(msg->flags & MR_SEEN)))
		return false;
	if (f->life > 0 && msg->sender_life == f->life && handoff_is_own(msg, m->agent))
		return false;
	if (m->depth == SCAN_NAMES)
		return true;
	if (!fits_from(m, msg) || (f->type && !ascii_caseeq(f->type, msg->type)))
		return false;
	if (m->thread.len > 0 && !str_eq(m->thread, str_of(msg->thread)) && !str_eq(m->thread, str_of(msg->id)))
		return false;
	if (*m->reply_to && strcmp(m->reply_to, msg->reply_to) != 0 &&
	    (!m->reply_to_spoken || strcmp(m->reply_to_spoken, msg->reply_to) != 0))
		return false;
	if (f->priority && *f->priority != msg->priority)
		return false;
	if ((f->since_ms && msg->date_ms < f->since_ms) || (f->before_ms && msg->date_ms >= f->before_ms))
		return false;
	return fits_words(m, msg) && fits_regex(m, msg) && !is_hidden(m, msg);
}
