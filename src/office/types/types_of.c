/* SPDX-License-Identifier: MIT */
/*
 * types_of.c - which type a message has. What other programs write (mutt, a person with `send -s`, another system's
 * agents) has no Mailroom-Type; its subject says the type then.
 *
 * That is decided in one place, where mail comes out of a driver: a table around the driver's own whose slots that
 * read give each message its type. Every filter, listing and command above sees the same.
 */
#include "base/error.h"
#include "office/office.h"
#include "office/types/types_store.h"

/* ---- By subject ---- */

static bool
is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

/* "Merge Request Completed: x", "Plugin: x" */
static bool
has_capital_heading(struct mr_str s)
{
	for (size_t i = 0; i < s.len && s.ptr[i] != ':'; i++)
		if (s.ptr[i] != ' ' && (i == 0 || s.ptr[i - 1] == ' ') && !is_upper(s.ptr[i]))
			return false;
	return memchr(s.ptr, ':', s.len) != NULL;
}

static struct mr_str
behind_re(struct mr_str subject)
{
	while (subject.len >= 3 && str_caseeq((struct mr_str){ subject.ptr, 3 }, STR("re:")))
		subject = str_trim((struct mr_str){ subject.ptr + 3, subject.len - 3 });
	return subject;
}

/* "[HIGH] text" has no word that a name could begin with. */
static bool
is_in_brackets(struct mr_str subject)
{
	return str_starts(behind_re(subject), "[");
}

bool
types_subject_may(struct mr_str subject)
{
	size_t capitals = 0;

	subject = behind_re(subject);
	if (subject.len == 0)
		return false;
	while (capitals < subject.len && (is_upper(subject.ptr[capitals]) || subject.ptr[capitals] == '_'))
		capitals++;
	return capitals >= 3 || subject.ptr[0] == '[' || (unsigned char)subject.ptr[0] >= 0x80 ||
	       has_capital_heading(subject);
}

/* "Merge" of "Re: Merge Request Completed: x", "HANDOFF" behind a handshake; empty: none of a pack is called so. */
static struct mr_str
first_letters(struct mr_str subject)
{
	size_t n = 0;

	subject = behind_re(subject);
	while (subject.len > 0 && ((unsigned char)subject.ptr[0] >= 0x80 || subject.ptr[0] == ' ')) {
		subject.ptr++;
		subject.len--;
	}
	while (n < subject.len &&
	       (is_upper(subject.ptr[n]) || subject.ptr[n] == '_' || (subject.ptr[n] >= 'a' && subject.ptr[n] <= 'z')))
		n++;
	return (struct mr_str){ subject.ptr, n };
}

/* Only those count, whatever else was read for other mail: what a message is must not depend on its neighbours. */
static bool
is_called_so(const struct type_def *def, struct mr_str subject)
{
	struct mr_str head = first_letters(subject);

	return !def->pack[0] || is_in_brackets(subject) ||
	       (head.len > 0 && strlen(def->name) >= head.len &&
		   str_caseeq((struct mr_str){ def->name, head.len }, head));
}

/* Of the room's own, or of all that were read, and of `best` already found. */
static const struct type_def *
heaviest(const struct types_store *s, struct mr_str subject, bool own_only, const struct type_def *best)
{
	size_t most = best ? type_subject_weight(best, subject) : 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct type_def *def = s->v[i];
		size_t weight = 0;

		if (def->subject[0] && !(own_only && def->pack[0]) && is_called_so(def, subject))
			weight = type_subject_weight(def, subject);
		/* The room's own decides where two fit alike. */
		if (weight > most || (weight > 0 && weight == most && !def->pack[0] && best->pack[0])) {
			best = def;
			most = weight;
		}
	}
	return best;
}

/* "LIFECYCLE:Shutdown nux" may be of another type than "LIFECYCLE: ...". */
static bool
goes_on(struct mr_str word, struct mr_str subject)
{
	const char *end = word.ptr + word.len;
	size_t left = (size_t)(subject.ptr + subject.len - end);

	return left >= 2 && end[0] == ':' && end[1] != ' ';
}

/* "MERGED nux": a type that is called like the first word and has that form needs no look at the others. */
static const struct type_def *
of_first_word(struct mr_room *room, struct mr_str subject)
{
	struct mr_str word = type_word(subject);
	const struct type_def *def = NULL;
	struct mr_error ignored = { 0 };
	char name[81];

	if (word.len == 0 || word.len >= sizeof(name) || goes_on(word, subject))
		return NULL;
	memcpy(name, word.ptr, word.len);
	name[word.len] = '\0';
	if (types_get_exact(room, name, &def, &ignored) != MR_OK || type_subject_weight(def, subject) == 0)
		return NULL;
	return def;
}

/* Of the packs, all that could fit. */
static enum mr_rc
read_candidates(struct mr_room *room, struct mr_str subject, struct mr_error *err)
{
	return is_in_brackets(subject) ? types_read_all(room, err)
				       : types_read_called(room, first_letters(subject), err);
}

const struct type_def *
types_of_subject(struct mr_room *room, const char *subject)
{
	struct mr_error ignored = { 0 };
	struct mr_str s = str_of(subject ? subject : "");
	const struct type_def *named;

	if (s.len == 0 || types_read_own(room, &ignored) != MR_OK)
		return NULL;
	named = of_first_word(room, s);
	if (named || !types_subject_may(s))
		return heaviest(room->types, s, true, named);
	return read_candidates(room, s, &ignored) == MR_OK ? heaviest(room->types, s, false, NULL) : NULL;
}

const struct type_def *
types_of(struct mr_room *room, const struct mr_message *msg)
{
	const struct type_def *def = NULL;
	struct mr_error ignored = { 0 };

	if (!msg->type || !msg->type[0])
		return types_of_subject(room, msg->subject);
	if (types_get_exact(room, msg->type, &def, &ignored) == MR_NOTFOUND &&
	    types_read_called(room, str_of(msg->type), &ignored) == MR_OK)
		def = types_find(room->types, msg->type, true);
	return def;
}

bool
types_route_fits(const struct type_def *def, const char *sender, const char *recipient)
{
	return type_route_fits(def, sender, NULL, recipient, NULL);
}

/* ---- Where mail comes out of a driver ---- */

static const struct type_def *
unsaid_type(struct mr_room *room, const struct mr_message *msg)
{
	return msg->type && msg->type[0] ? NULL : types_of_subject(room, msg->subject);
}

/* An owned message gets a copy of the name: it may outlive the handle. */
void
types_give(struct mr_room *room, struct mr_message *msg)
{
	const struct type_def *def = room->types ? unsaid_type(room, msg) : NULL;
	struct arena *own = msg->own;
	const char *name = def ? arena_dup(&own, str_of(def->name)) : NULL;

	msg->own = own;
	if (name) {
		msg->type = name;
		msg->type_by_subject = true;
	}
}

struct giving {
	struct mr_room *room;
	mr_message_fn *fn;
	bool (*post_fn)(void *ctx, uint64_t number, const struct mr_message *msg);
	void *ctx;
};

static bool
give_and_pass(void *ctx, const struct mr_message *msg)
{
	const struct giving *g = ctx;
	const struct type_def *def = unsaid_type(g->room, msg);
	struct mr_message typed = *msg;

	if (def) {
		typed.type = def->name;
		typed.type_by_subject = true;
	}
	return g->fn(g->ctx, &typed);
}

static bool
give_and_post(void *ctx, uint64_t number, const struct mr_message *msg)
{
	const struct giving *g = ctx;
	const struct type_def *def = unsaid_type(g->room, msg);
	struct mr_message typed = *msg;

	if (def) {
		typed.type = def->name;
		typed.type_by_subject = true;
	}
	return g->post_fn(g->ctx, number, &typed);
}

static const struct room_driver *
below(const struct mr_room *room)
{
	return ((const struct types_store *)room->types)->below;
}

static enum mr_rc
typed_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	struct giving g = { .room = room, .fn = fn, .ctx = ctx };

	if (want->depth == SCAN_NAMES)
		return below(room)->scan(room, agent, want, fn, ctx, err);
	return below(room)->scan(room, agent, want, give_and_pass, &g, err);
}

static enum mr_rc
typed_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	enum mr_rc rc = below(room)->fetch(room, agent, id, folders, depth, ret, err);

	if (rc == MR_OK && depth != SCAN_NAMES)
		types_give(room, ret);
	return rc;
}

static enum mr_rc
typed_queue_fetch(struct mr_room *room, const char *queue, const char *id, struct mr_message *ret, struct mr_error *err)
{
	enum mr_rc rc = below(room)->queue_fetch(room, queue, id, ret, err);

	if (rc == MR_OK)
		types_give(room, ret);
	return rc;
}

static enum mr_rc
typed_channel_scan(struct mr_room *room, const char *channel, uint64_t after, enum scan_depth depth,
    bool (*fn)(void *ctx, uint64_t number, const struct mr_message *msg), void *ctx, struct mr_error *err)
{
	struct giving g = { .room = room, .post_fn = fn, .ctx = ctx };

	if (depth == SCAN_NAMES)
		return below(room)->channel_scan(room, channel, after, depth, fn, ctx, err);
	return below(room)->channel_scan(room, channel, after, depth, give_and_post, &g, err);
}

enum mr_rc
types_attach(struct mr_room *room, struct mr_error *err)
{
	struct types_store *s = types_store(room, err);

	if (!s)
		return err->code;
	s->below = room->driver;
	s->table = *room->driver;
	s->table.scan = typed_scan;
	s->table.fetch = typed_fetch;
	if (ROOM_HAS(room, queue_fetch))
		s->table.queue_fetch = typed_queue_fetch;
	if (ROOM_HAS(room, channel_scan))
		s->table.channel_scan = typed_channel_scan;
	room->driver = &s->table;
	return MR_OK;
}
