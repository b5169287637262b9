/* SPDX-License-Identifier: MIT */
/*
 * carry_memory.c - which message here is which one over there, so that an answer that comes from another format finds
 * its thread. One record for each two correspondents of a link, with their newest messages, a line each:
 *
 *	Local: rig/polecats/nux
 *	Foreign: alice
 *	Sent: <id here> <thread here> <id there> <thread there> <hash of the subject> <+ answered, -> <name there>
 *	Got: ...
 *
 * "Sent" becomes "Read" when it was read over there, or "Lost" when it is gone unread. Noting a message twice notes it
 * once: after a kill it is simply noted again.
 */
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
memory_done(struct memory *m)
{
	arena_free(m->own);
	*m = (struct memory){ 0 };
}

void
memory_subject(const char *subject, char ret[17])
{
	mr_auto(buf_done) struct buf reply = BUF_INIT;
	char hash[65];

	/* With one "Re:" in either case: so what is answered and its answer have one subject. */
	subject_reply(&reply, str_of(subject));
	sha256_hex(buf_str(&reply), hash);
	(void)snprintf(ret, 17, "%.16s", hash);
}

static void
record_name(const char *local, const char *foreign, char ret[33])
{
	mr_auto(buf_done) struct buf pair = BUF_INIT;
	char hash[65];

	buf_addf(&pair, "%s\n%s", local, foreign);
	sha256_hex(buf_str(&pair), hash);
	(void)snprintf(ret, 33, "%.32s", hash);
}

/* ---- Reading ---- */

static const char *
next_word(char **rest)
{
	char *word = strsep(rest, " ");

	return !word || strcmp(word, "-") == 0 ? "" : word;
}

static bool
read_line(struct arena **own, const struct mr_header *from, struct carried_line *ret)
{
	char *rest = arena_dup(own, str_of(from->value));

	if (!rest)
		return false;
	ret->id = next_word(&rest);
	ret->thread = next_word(&rest);
	ret->there = next_word(&rest);
	ret->there_thread = next_word(&rest);
	(void)snprintf(ret->subject, sizeof(ret->subject), "%s", next_word(&rest));
	ret->answered = strcmp(next_word(&rest), "+") == 0;
	ret->spoken = rest ? rest : "";
	return true;
}

static enum mr_rc
read_memory(struct mr_str text, struct memory *ret, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };
	struct memory m = { .local = "", .foreign = "" };

	TRY(record_parse(text, &lines, err));
	m.own = lines.own;
	lines.own = NULL;
	m.v = arena_alloc(&m.own, (lines.n + 2) * sizeof(*m.v)); /* one more, for who adds one */
	for (size_t i = 0; m.v && i < lines.n; i++) {
		if (ascii_caseeq(lines.lines[i].name, "Local"))
			m.local = lines.lines[i].value;
		else if (ascii_caseeq(lines.lines[i].name, "Foreign"))
			m.foreign = lines.lines[i].value;
		for (size_t s = 0; s < sizeof(state_words) / sizeof(state_words[0]); s++) {
			if (strcmp(lines.lines[i].name, state_words[s]) != 0)
				continue;
			m.v[m.n].state = (enum carried_state)s;
			if (!read_line(&m.own, &lines.lines[i], &m.v[m.n++])) {
				memory_done(&m);
				return mr_nomem(err);
			}
		}
	}
	if (!m.v) {
		memory_done(&m);
		return mr_nomem(err);
	}
	*ret = m;
	return MR_OK;
}

enum mr_rc
memory_load(struct mr_room *room, const char *link, const char *local, const char *foreign, struct memory *ret,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char name[33];
	enum mr_rc rc;

	record_name(local, foreign, name);
	rc = room->driver->record_get(room, CARRIED_KIND, link, name, &text, err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	*err = (struct mr_error){ 0 };
	return read_memory(buf_str(&text), ret, err);
}

static bool
note_record(void *ctx, const char *name)
{
	return names_add(ctx, str_of(name));
}

enum mr_rc
memory_each(struct mr_room *room, const char *link, memory_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	enum mr_rc rc = room->driver->record_each(room, CARRIED_KIND, link, note_record, &names, err);

	for (size_t i = 0; i < names.n && rc == MR_OK; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		mr_auto(memory_done) struct memory m = { 0 };
		struct mr_error ignored = { 0 };

		/* What cannot be read is only a thread that is not found. */
		if (room->driver->record_get(room, CARRIED_KIND, link, names.v[i], &text, &ignored) == MR_OK &&
		    read_memory(buf_str(&text), &m, &ignored) == MR_OK)
			rc = fn(ctx, &m, err);
	}
	return rc;
}

const struct carried_line *
memory_by_id(const struct memory *m, const char *id)
{
	for (size_t i = m->n; i > 0 && *id; i--)
		if (strcmp(m->v[i - 1].id, id) == 0)
			return &m->v[i - 1];
	return NULL;
}

const struct carried_line *
memory_by_there(const struct memory *m, const char *spoken)
{
	for (size_t i = m->n; i > 0 && *spoken; i--)
		if (strcmp(m->v[i - 1].there, spoken) == 0 || strcmp(m->v[i - 1].spoken, spoken) == 0)
			return &m->v[i - 1];
	return NULL;
}

const char *
memory_evidence(struct mr_room *room, const char *from, const char *address, const char *id, struct buf *evidence)
{
	mr_auto(memory_done) struct memory m = { 0 };
	struct mr_error ignored = { 0 };
	struct mr_str agent, link;
	char name[MR_ADDRESS_MAX + 1];

	address_split(str_of(address), &agent, &link);
	if (link.len == 0 || agent.len > MR_ADDRESS_MAX || !link_exists(room, link.ptr))
		return NULL;
	(void)snprintf(name, sizeof(name), "%.*s", (int)agent.len, agent.ptr);
	if (memory_load(room, link.ptr, from, name, &m, &ignored) != MR_OK)
		return NULL;
	const struct carried_line *l = memory_by_id(&m, id);

	if (!l || l->state == CARRIED_GOT)
		return NULL;
	buf_addf(evidence, "delivered to '%s' in the linked room '%s'", name, link.ptr);
	if (*l->there)
		buf_addf(evidence, " as %s", l->there);
	if (l->state == CARRIED_LOST)
		buf_adds(evidence, ", gone from there unread; its sender was told");
	else if (l->answered)
		buf_adds(evidence, ", and answered");
	else
		buf_adds(evidence, l->state == CARRIED_READ ? ", and read there" : ", not known to be read");
	return l->state == CARRIED_LOST ? "vanished" : l->state == CARRIED_READ ? "read" : "carried";
}

/* ---- Writing ---- */

struct noting {
	const char *local, *foreign, *answers;
	const struct carried_line *line;
};

/* A word of another room may have anything in it; one with a space is not worth a format of its own. */
static const char *
word(const char *s)
{
	return *s && !strpbrk(s, " \t\r\n") ? s : "-";
}

static enum mr_rc
write_line(struct buf *out, const struct carried_line *l, struct mr_error *err)
{
	mr_auto(buf_done) struct buf value = BUF_INIT;

	buf_addf(&value, "%s %s %s %s %s %s %s", word(l->id), word(l->thread), word(l->there), word(l->there_thread),
	    word(l->subject), l->answered ? "+" : "-", l->spoken);
	if (!buf_ok(&value))
		return mr_nomem(err);
	return header_add(out, state_words[l->state], buf_str(&value), err);
}

static bool
is_same(const struct carried_line *a, const struct carried_line *b)
{
	return (a->state == CARRIED_GOT) == (b->state == CARRIED_GOT) && strcmp(a->id, b->id) == 0 &&
	       strcmp(a->there, b->there) == 0;
}

static void
put_line(struct memory *m, const struct carried_line *line)
{
	for (size_t i = 0; i < m->n; i++)
		if (is_same(&m->v[i], line)) {
			bool answered = m->v[i].answered;

			/* What is known of it stays known. */
			if (line->state == CARRIED_SENT && m->v[i].state != CARRIED_SENT)
				return;
			m->v[i] = *line;
			m->v[i].answered |= answered;
			return;
		}
	m->v[m->n++] = *line;
}

static enum mr_rc
edit(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	const struct noting *n = ctx;
	mr_auto(memory_done) struct memory m = { 0 };
	enum mr_rc rc = read_memory(exists ? buf_str(text) : STR(""), &m, err);

	if (rc == MR_CORRUPT) { /* begun anew: it is a help, not the mail */
		*err = (struct mr_error){ 0 };
		rc = read_memory(STR(""), &m, err);
	}
	if (rc != MR_OK)
		return rc;
	put_line(&m, n->line);
	for (size_t i = 0; i < m.n && *n->answers; i++)
		if (strcmp(m.v[i].id, n->answers) == 0) {
			m.v[i].answered = true;
			if (m.v[i].state == CARRIED_SENT)
				m.v[i].state = CARRIED_READ;
		}
	buf_clear(text);
	rc = header_add(text, "Local", str_of(n->local), err);
	if (rc == MR_OK)
		rc = header_add(text, "Foreign", str_of(n->foreign), err);
	for (size_t i = m.n > LINES_MAX ? m.n - LINES_MAX : 0; i < m.n && rc == MR_OK; i++)
		rc = write_line(text, &m.v[i], err);
	return rc;
}

enum mr_rc
memory_note(struct mr_room *room, const char *link, const char *local, const char *foreign,
    const struct carried_line *line, const char *answers, struct mr_error *err)
{
	struct noting n = { .local = local, .foreign = foreign, .answers = answers, .line = line };
	char name[33];

	record_name(local, foreign, name);
	return room->driver->record_change(room, CARRIED_KIND, link, name, edit, &n, err);
}
