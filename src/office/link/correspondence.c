/* SPDX-License-Identifier: MIT */
/*
 * correspondence.c - which message here is which one in the other room, so that an answer from another format finds its
 * thread. There is one record for each pair of correspondents of a link, with their newest messages, a line each:
 *
 *	Local: rig/polecats/nux
 *	Foreign: alice
 *	Sent: <id here> <thread here> <id there> <thread there> <hash of the subject> <+ answered, -> <name there>
 *	Got: ...
 *
 * "Sent" becomes "Read" when it was read there, or "Lost" when it was removed unread. Recording a message twice has no
 * effect: after a kill it is simply recorded again.
 *
 * Records end, or a room with changing correspondents would keep them all. A record is dropped when its newest message
 * is 90 days old and the carrier, which has the other room open, finds none of its mail unread there: neither outgoing
 * ("Sent": its sender is told when it vanishes) nor incoming. Carrying incoming mail once depends on that: a message
 * that cannot be marked as read there is found by every carry, its key is kept for a week only, and then only this
 * record shows that it is here. A late message of the peer loses nothing: an answer to a message that old only arrives
 * without its thread.
 */
#include "base/clock.h"
#include "base/id.h"
#include "message/address.h"
#include "message/message.h"
#include "office/link/link.h"

#define LINES_MAX 64

static const char *const state_words[] = {
	[CARRIED_SENT] = "Sent",
	[CARRIED_READ] = "Read",
	[CARRIED_LOST] = "Lost",
	[CARRIED_GOT] = "Got",
};

void
correspondence_done(struct correspondence *m)
{
	arena_free(m->own);
	*m = (struct correspondence){ 0 };
}

void
correspondence_subject(const char *subject, char ret[17])
{
	mr_auto(buf_done) struct buf reply = BUF_INIT;

	/* With one "Re:" in either case, so that a message and its answer have the same subject. */
	subject_reply(&reply, str_of(subject));
	(void)snprintf(ret, 17, "%.16s", hash_name("%s", buf_z(&reply)).z);
}

/* ---- Reading ---- */

static const char *
next_word(char **rest)
{
	char *word = strsep(rest, " ");

	return !word || strcmp(word, "-") == 0 ? "" : word;
}

static enum mr_rc
parse(struct mr_str text, struct correspondence *ret, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };
	mr_auto(correspondence_done) struct correspondence m = { 0 };

	TRY(record_parse(text, &lines, err));
	m.own = lines.own;
	lines.own = NULL;
	m.v = arena_alloc(&m.own, (lines.n + 2) * sizeof(*m.v)); /* one more, for a caller that adds a line */
	TRY(mr_got(m.v, err));
	m.local = record_get(&lines, "Local");
	m.foreign = record_get(&lines, "Foreign");
	m.local = m.local ? m.local : "";
	m.foreign = m.foreign ? m.foreign : "";
	for (size_t i = 0; i < lines.n; i++)
		for (size_t s = 0; s < sizeof(state_words) / sizeof(state_words[0]); s++) {
			struct carried_line *l = &m.v[m.n];
			char *rest;

			if (strcmp(lines.lines[i].name, state_words[s]) != 0)
				continue;
			rest = arena_dup(&m.own, str_of(lines.lines[i].value));
			TRY(mr_got(rest, err));
			l->state = (enum carried_state)s;
			l->id = next_word(&rest);
			l->thread = next_word(&rest);
			l->there = next_word(&rest);
			l->there_thread = next_word(&rest);
			(void)snprintf(l->subject, sizeof(l->subject), "%s", next_word(&rest));
			l->answered = strcmp(next_word(&rest), "+") == 0;
			l->native = rest ? rest : "";
			m.n++;
		}
	*ret = m;
	m = (struct correspondence){ 0 };
	return MR_OK;
}

static enum mr_rc
load_named(struct mr_room *room, const char *link, const char *name, struct correspondence *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	TRY(mr_unless(room->driver->record_get(room, CARRIED_KIND, link, name, &text, err), MR_NOTFOUND, err));
	return parse(buf_str(&text), ret, err);
}

enum mr_rc
correspondence_load(struct mr_room *room, const char *link, const char *local, const char *foreign,
    struct correspondence *ret, struct mr_error *err)
{
	return load_named(room, link, hash_name_short("%s\n%s", local, foreign).z, ret, err);
}

enum mr_rc
correspondence_each(struct mr_room *room, const char *link, correspondence_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	TRY(office_records(room, CARRIED_KIND, link, &names, err));
	for (size_t i = 0; i < names.n; i++) {
		mr_auto(correspondence_done) struct correspondence m = { 0 };

		/* If a record cannot be read, only its threads are not found. */
		if (load_named(room, link, names.v[i], &m, IGNORED) == MR_OK)
			TRY(fn(ctx, &m, err));
	}
	return MR_OK;
}

const struct carried_line *
correspondence_by_id(const struct correspondence *m, const char *id)
{
	for (size_t i = m->n; i > 0 && *id; i--)
		if (strcmp(m->v[i - 1].id, id) == 0)
			return &m->v[i - 1];
	return NULL;
}

const struct carried_line *
correspondence_by_there(const struct correspondence *m, const char *native)
{
	for (size_t i = m->n; i > 0 && *native; i--)
		if (strcmp(m->v[i - 1].there, native) == 0 || strcmp(m->v[i - 1].native, native) == 0)
			return &m->v[i - 1];
	return NULL;
}

enum mr_rc
correspondence_find(struct mr_room *room, const char *link, const char *local, const char *foreign,
    const struct carried_line *like, struct correspondence *ret, const struct carried_line **ret_line,
    struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	/* The record only helps: mail arrives even while it cannot be read. */
	TRY(mr_unless(correspondence_load(room, link, local, foreign, ret, err), MR_CORRUPT, err));
	*ret_line = like->id ? correspondence_by_id(ret, like->id) : correspondence_by_there(ret, like->there);
	if (!*ret_line)
		TRY(office_records(room, CARRIED_KIND, link, &names, err));
	for (size_t i = 0; i < names.n && !*ret_line; i++) {
		correspondence_done(ret);
		if (load_named(room, link, names.v[i], ret, IGNORED) != MR_OK)
			continue;
		if (like->id)
			*ret_line = correspondence_by_id(ret, like->id);
		else if (strcmp(ret->local, local) == 0)
			*ret_line = correspondence_by_there(ret, like->there);
	}
	return MR_OK;
}

const char *
correspondence_evidence(
    struct mr_room *room, const char *from, const char *address, const char *id, struct buf *evidence)
{
	mr_auto(correspondence_done) struct correspondence m = { 0 };
	struct mr_str agent, link;
	char name[MR_ADDRESS_MAX + 1];

	address_split(str_of(address), &agent, &link);
	if (link.len == 0 || agent.len > MR_ADDRESS_MAX || !target_exists(room, "link", link.ptr))
		return NULL;
	(void)snprintf(name, sizeof(name), "%.*s", (int)agent.len, agent.ptr);
	if (correspondence_load(room, link.ptr, from, name, &m, IGNORED) != MR_OK)
		return NULL;
	const struct carried_line *l = correspondence_by_id(&m, id);

	if (!l || l->state == CARRIED_GOT)
		return NULL;
	buf_addf(evidence, "delivered to '%s' in the linked room '%s'", name, link.ptr);
	if (*l->there)
		buf_addf(evidence, " as %s", l->there);
	if (l->state == CARRIED_LOST)
		buf_adds(evidence, ", removed there unread; its sender was told");
	else if (l->answered)
		buf_adds(evidence, ", and answered");
	else
		buf_adds(evidence, l->state == CARRIED_READ ? ", and read there" : ", not known to be read");
	return l->state == CARRIED_LOST ? "vanished" : l->state == CARRIED_READ ? "read" : "carried";
}

/* ---- Writing ---- */

/* A word of another room may hold anything; one with a space is dropped, because it is not worth a quoting. */
static const char *
word(const char *s)
{
	return *s && !strpbrk(s, " \t\r\n") ? s : "-";
}

static void
put_line(struct correspondence *m, const struct carried_line *line)
{
	for (size_t i = 0; i < m->n; i++) {
		struct carried_line *l = &m->v[i];
		bool answered = l->answered;

		if ((l->state == CARRIED_GOT) != (line->state == CARRIED_GOT) || strcmp(l->id, line->id) != 0 ||
		    strcmp(l->there, line->there) != 0)
			continue;
		if (line->state == CARRIED_SENT && l->state != CARRIED_SENT)
			return; /* keep the line as it is */
		*l = *line;
		l->answered |= answered;
		return;
	}
	m->v[m->n++] = *line;
}

static bool
is_over(const struct correspondence *m)
{
	int64_t before_ms = clock_now_ms() - ROOM_OVER_MS;

	for (size_t i = 0; i < m->n; i++)
		if (m->v[i].state == CARRIED_SENT || id_time_ms(m->v[i].id) >= before_ms)
			return false;
	return m->n > 0;
}

bool
correspondence_may_end(const struct correspondence *m, const struct mr_names *unread_there)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->v[i].state == CARRIED_GOT && names_has(unread_there, m->v[i].there))
			return false;
	return is_over(m);
}

bool
correspondence_forget(struct mr_room *room, const char *link, const struct correspondence *m)
{
	mr_auto(correspondence_done) struct correspondence now = { 0 };
	mr_auto(record_edit_done) struct record_edit e = { 0 };
	struct hash_name name = hash_name_short("%s\n%s", m->local, m->foreign);

	/* Under its lock, because another carrier may record a message at this moment. */
	return record_edit_begin(&e, room, CARRIED_KIND, link, name.z, IGNORED) == MR_OK &&
	       parse(buf_str(&e.text), &now, IGNORED) == MR_OK && is_over(&now) &&
	       room->driver->record_drop(room, CARRIED_KIND, link, name.z, IGNORED) == MR_OK;
}

enum mr_rc
correspondence_note(struct mr_room *room, const char *link, const char *local, const char *foreign,
    const struct carried_line *line, const char *answers, struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };
	mr_auto(correspondence_done) struct correspondence m = { 0 };
	struct hash_name name = hash_name_short("%s\n%s", local, foreign);

	TRY(record_edit_begin(&e, room, CARRIED_KIND, link, name.z, err));
	TRY(mr_unless(parse(buf_str(&e.text), &m, err), MR_CORRUPT, err));
	if (!m.v) /* an unreadable record is begun anew: it only helps */
		TRY(parse(STR(""), &m, err));
	put_line(&m, line);
	for (size_t i = 0; i < m.n && *answers; i++)
		if (strcmp(m.v[i].id, answers) == 0) {
			m.v[i].answered = true;
			if (m.v[i].state == CARRIED_SENT)
				m.v[i].state = CARRIED_READ;
		}
	buf_clear(&e.text);
	TRY(header_add(&e.text, "Local", str_of(local), err));
	TRY(header_add(&e.text, "Foreign", str_of(foreign), err));
	for (size_t i = m.n > LINES_MAX ? m.n - LINES_MAX : 0; i < m.n; i++) {
		mr_auto(buf_done) struct buf value = BUF_INIT;
		const struct carried_line *l = &m.v[i];

		buf_addf(&value, "%s %s %s %s %s %s %s", word(l->id), word(l->thread), word(l->there),
		    word(l->there_thread), word(l->subject), l->answered ? "+" : "-", l->native);
		TRY(mr_got(buf_ok(&value), err));
		TRY(header_add(&e.text, state_words[l->state], buf_str(&value), err));
	}
	return record_edit_save(&e, err);
}
