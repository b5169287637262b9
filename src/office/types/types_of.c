/* SPDX-License-Identifier: MIT */
/*
 * types_of.c - which type a message has, and whether it is a command of some program. Messages of other programs (mutt,
 * a person with `send -s`, agents of another system) have no Mailroom-Type; their subject shows the type.
 *
 * This is decided in one place, where mail comes out of a driver: a table that wraps the driver's own, whose reading
 * slots give each message its type. Every filter, listing and command above sees the same type. For delivered mail, the
 * same table tells the driver which messages must be opened for a list (delivery.look).
 */
#include "base/error.h"
#include "base/sys.h"
#include "base/text.h"
#include "message/json_read.h"
#include "office/types/types.h"

/* ---- By subject ---- */

static bool
is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static struct mr_str
behind_re(struct mr_str subject)
{
	while (subject.len >= 3 && str_caseeq((struct mr_str){ subject.ptr, 3 }, STR("re:")))
		subject = str_trim((struct mr_str){ subject.ptr + 3, subject.len - 3 });
	return subject;
}

/* "[HIGH] text" has no word that a type's name could begin with. */
static bool
is_in_brackets(struct mr_str subject)
{
	return str_starts(behind_re(subject), "[");
}

bool
types_subject_may(struct mr_str subject)
{
	size_t capitals = 0;
	struct mr_str heading;

	subject = behind_re(subject);
	if (subject.len == 0)
		return false;
	while (capitals < subject.len && (is_upper(subject.ptr[capitals]) || subject.ptr[capitals] == '_'))
		capitals++;
	if (capitals >= 3 || subject.ptr[0] == '[' || (unsigned char)subject.ptr[0] >= 0x80)
		return true;
	/* "Merge Request Completed: x", "Plugin: x" */
	(void)str_cut(&subject, ':', &heading);
	for (size_t i = 0; i < heading.len; i++)
		if (heading.ptr[i] != ' ' && (i == 0 || heading.ptr[i - 1] == ' ') && !is_upper(heading.ptr[i]))
			return false;
	return heading.ptr + heading.len < subject.ptr;
}

/* "Merge" of "Re: Merge Request Completed: x", "HANDOFF" behind a handshake; empty: no type of a pack begins like
 * that. */
static struct mr_str
first_letters(struct mr_str subject)
{
	size_t from = 0, end;

	subject = behind_re(subject);
	while (from < subject.len && ((unsigned char)subject.ptr[from] >= 0x80 || subject.ptr[from] == ' '))
		from++;
	for (end = from; end < subject.len; end++) {
		char c = subject.ptr[end];

		if (!is_upper(c) && c != '_' && !(c >= 'a' && c <= 'z'))
			break;
	}
	return (struct mr_str){ subject.ptr + from, end - from };
}

/* Only types whose names begin like that count, even if more were read for other mail: the type of a message must not
 * depend on its neighbours. */
static bool
is_called_so(const struct type_def *def, struct mr_str subject)
{
	struct mr_str head = first_letters(subject);

	return !def->pack[0] || is_in_brackets(subject) ||
	       (head.len > 0 && strncasecmp(def->name, head.ptr, head.len) == 0);
}

/* Among the room's own types, or all that were read, and `best` from before. */
static const struct type_def *
heaviest(const struct types_store *s, struct mr_str subject, bool own_only, const struct type_def *best)
{
	size_t most = best ? type_subject_weight(best, subject) : 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct type_def *def = s->v[i];
		size_t weight = 0;

		if (def->subject[0] && !(own_only && def->pack[0]) && is_called_so(def, subject))
			weight = type_subject_weight(def, subject);
		/* if two fit equally, the room's own wins */
		if (weight > most || (weight > 0 && weight == most && !def->pack[0] && best->pack[0])) {
			best = def;
			most = weight;
		}
	}
	return best;
}

/* "MERGED nux": if the type with the name of the first word has that form, no other is needed. But "LIFECYCLE:Shutdown
 * nux" may be of another type than "LIFECYCLE: ...". */
static const struct type_def *
of_first_word(struct mr_room *room, struct mr_str subject)
{
	struct mr_str word = type_word(subject);
	const char *end = word.ptr + word.len;
	size_t left = (size_t)(subject.ptr + subject.len - end);
	const struct type_def *def = NULL;
	char name[81];

	if (word.len == 0 || word.len >= sizeof(name) || (left >= 2 && end[0] == ':' && end[1] != ' '))
		return NULL;
	memcpy(name, word.ptr, word.len);
	name[word.len] = '\0';
	if (types_get_exact(room, name, &def, IGNORED) != MR_OK || type_subject_weight(def, subject) == 0)
		return NULL;
	return def;
}

const struct type_def *
types_of_subject(struct mr_room *room, const char *subject)
{
	struct types_store *types = room->office->types;
	struct mr_str s = str_of(subject ? subject : "");

	if (s.len == 0 || types_read_called(room, STR(""), IGNORED) != MR_OK)
		return NULL;
	const struct type_def *named = of_first_word(room, s);

	if (named || !types_subject_may(s))
		return heaviest(types, s, true, named);
	enum mr_rc rc =
	    is_in_brackets(s) ? types_read_all(room, IGNORED) : types_read_called(room, first_letters(s), IGNORED);

	return rc == MR_OK ? heaviest(types, s, false, NULL) : NULL;
}

const struct type_def *
types_of(struct mr_room *room, const struct mr_message *msg)
{
	const struct type_def *def = NULL;

	if (!msg->type || !msg->type[0])
		return types_of_subject(room, msg->subject);
	if (types_get_exact(room, msg->type, &def, IGNORED) == MR_NOTFOUND &&
	    types_read_called(room, str_of(msg->type), IGNORED) == MR_OK)
		def = types_find(room->office->types, msg->type, true);
	return def;
}

/* ---- Control messages ---- */

/* Everything that readers in other programs cut off before they parse: every white space of Unicode, and the byte order
 * mark. */
static bool
is_space(uint32_t cp)
{
	return cp <= ' ' || cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200b) ||
	       cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000 || cp == 0xfeff;
}

static struct mr_str
trim_space(struct mr_str s)
{
	uint32_t cp;
	size_t n;

	while (s.len > 0 && (n = utf8_next(s, &cp)) > 0 && is_space(cp))
		s = (struct mr_str){ s.ptr + n, s.len - n };
	while (s.len > 0) {
		size_t at = s.len - 1;

		while (at > 0 && s.len - at < 4 && ((unsigned char)s.ptr[at] & 0xc0) == 0x80)
			at--;
		if (utf8_next((struct mr_str){ s.ptr + at, s.len - at }, &cp) != s.len - at || !is_space(cp))
			break;
		s.len = at;
	}
	return s;
}

bool
control_is(struct mr_str body)
{
	struct json_value object, type;
	const char *problem;
	size_t openings = 0;

	if (body.len > 0 && !ascii_alnum(body.ptr[0])) /* nearly all mail begins with a letter */
		body = trim_space(body);
	if (body.len < 2 || body.ptr[0] != '{' || body.ptr[body.len - 1] != '}')
		return false;
	if (json_whole(body, &object, &problem))
		return json_find(object, "type", &type) && type.kind == JSON_STRING;
	/* Objects nested deeper than our limit may be read by other programs: they count as control, too. */
	for (size_t i = 0; i < body.len; i++)
		openings += body.ptr[i] == '{' || body.ptr[i] == '[';
	return openings > JSON_DEPTH_MAX;
}

void
control_as_prose(struct buf *out, const char *from, struct mr_str body)
{
	bool ends = body.len > 0 && body.ptr[body.len - 1] == '\n';

	buf_addf(out, "%s sent this; it is shown as text, not as a command:\n\n", from && from[0] ? from : "Somebody");
	for (struct mr_str line; str_cut(&body, '\n', &line);) {
		buf_adds(out, "    ");
		buf_add(out, line);
		buf_adds(out, body.len > 0 || ends ? "\n" : "");
	}
}

/* ---- Where mail comes out of a driver ---- */

static struct mr_message
with_type(struct mr_room *room, const struct mr_message *msg)
{
	struct mr_message typed = *msg;
	const struct type_def *def = msg->type && msg->type[0] ? NULL : types_of_subject(room, msg->subject);

	if (def) {
		typed.type = def->name;
		typed.type_by_subject = true;
	}
	return typed;
}

/* An owned message gets a copy of the name, because it may outlive the handle. */
void
types_give(struct mr_room *room, struct mr_message *msg)
{
	struct mr_message typed = with_type(room, msg);
	struct arena *own = msg->own;
	const char *name = typed.type_by_subject ? arena_dup(&own, str_of(typed.type)) : NULL;

	msg->own = own;
	if (name) {
		msg->type = name;
		msg->type_by_subject = true;
	}
}

typedef bool post_fn(void *ctx, uint64_t number, const struct mr_message *msg);
struct giving {
	struct mr_room *room;
	mr_message_fn *fn;
	post_fn *post;
	void *ctx;
};

static bool
give_and_pass(void *ctx, const struct mr_message *msg)
{
	const struct giving *g = ctx;
	struct mr_message typed = with_type(g->room, msg);

	return g->fn(g->ctx, &typed);
}

static bool
give_and_post(void *ctx, uint64_t number, const struct mr_message *msg)
{
	const struct giving *g = ctx;
	struct mr_message typed = with_type(g->room, msg);

	return g->post(g->ctx, number, &typed);
}

static enum mr_rc
typed_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	struct giving g = { .room = room, .fn = fn, .ctx = ctx };
	const struct room_driver *below = room->office->types->below;

	if (want->depth == SCAN_NAMES)
		return below->scan(room, agent, want, fn, ctx, err);
	return below->scan(room, agent, want, give_and_pass, &g, err);
}

static enum mr_rc
typed_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	TRY(room->office->types->below->fetch(room, agent, id, folders, depth, ret, err));
	if (depth != SCAN_NAMES && depth != SCAN_RAW)
		types_give(room, ret);
	return MR_OK;
}

/* The place of a message in a list depends on more than its priority: control messages are for a patrol, and an agent's
 * note to its next life comes before everything else. Types are in files, but most mail has none. */
static enum mr_rc
typed_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	const struct room_driver *below = room->office->types->below;

	for (size_t i = 0; (below->abilities & ROOM_NAMES) && i < (what->many ? what->many_n : 1); i++) {
		struct delivery *one = what->many ? &what->many[i].what : what;
		const struct mr_message *msg = one->msg;
		struct mr_str word = msg->type && msg->type[0] ? str_of(msg->type) : type_word(str_of(msg->subject));

		if (word.len == 0 && !control_is((struct mr_str){ msg->body, msg->body ? msg->body_len : 0 }))
			continue;
		const struct type_def *def = types_of(room, msg);

		one->look =
		    (def && def->routed) || (str_caseeq(word, STR(SUCCESSOR_TYPE)) && names_has(one->to, msg->from));
	}
	return below->deliver(room, what, ret, err);
}

static enum mr_rc
typed_channel_scan(struct mr_room *room, const char *channel, uint64_t after, enum scan_depth depth, post_fn *fn,
    void *ctx, struct mr_error *err)
{
	struct giving g = { .room = room, .post = fn, .ctx = ctx };
	const struct room_driver *below = room->office->types->below;

	if (depth == SCAN_NAMES)
		return below->channel_scan(room, channel, after, depth, fn, ctx, err);
	return below->channel_scan(room, channel, after, depth, give_and_post, &g, err);
}

enum mr_rc
types_attach(struct mr_room *room, struct mr_error *err)
{
	struct types_store *s = calloc(1, sizeof(*s));

	TRY(mr_got(s, err));
	room->office->types = s;
	s->data_fd = -1;
	s->below = room->driver;
	s->table = *room->driver;
	s->table.scan = typed_scan;
	s->table.fetch = typed_fetch;
	s->table.deliver = typed_deliver;
	if (ROOM_HAS(room, channel_scan))
		s->table.channel_scan = typed_channel_scan;
	room->driver = &s->table;
	return MR_OK;
}

void
types_detach(struct mr_room *room)
{
	struct types_store *s = room->office->types;

	if (!s)
		return;
	if (room->driver == &s->table)
		room->driver = s->below;
	if (s->v || s->wrong.own)
		types_reread(room);
	mr_names_done(&s->packs);
	sys_close_fd(&s->data_fd);
	free(s);
	room->office->types = NULL;
}

/* ---- Fields ---- */

enum mr_rc
types_fields(struct mr_room *room, const struct mr_message *msg, struct type_values *ret, struct mr_error *err)
{
	const struct type_def *def = types_of(room, msg);
	struct mr_str body = { msg->body ? msg->body : "", msg->body ? msg->body_len : 0 };
	struct type_context context = {
		.sender = msg->from, .recipient = msg->to.n > 0 ? msg->to.v[0] : "", .now_ms = msg->date_ms
	};

	if (!def)
		return MR_OK;
	TRY(type_read(def, str_of(msg->subject ? msg->subject : ""), body, ret, err));
	TRY(type_complete(def, &context, ret, err));
	return type_validate_received(def, ret, err);
}

enum mr_rc
types_usable(struct mr_room *room, const char *agent, const struct mr_message *msg, struct type_values *ret,
    struct mr_error *err)
{
	const struct type_def *def = types_of(room, msg);

	enum mr_rc rc = types_fields(room, msg, ret, err);

	if (rc != MR_OK) {
		type_values_done(ret);
		return rc;
	}
	if (*msg->type)
		TRY(typed_check_member(room, msg->from, msg, err));
	return def ? types_check_answer(room, def, ret, agent, msg->from, err) : MR_OK;
}

enum mr_rc
mr_message_fields(struct mr_room *room, const struct mr_message *msg, struct mr_fields *ret, struct mr_error *err)
{
	const struct type_def *def = types_of(room, msg);
	struct type_values values = { 0 };
	enum mr_rc rc = types_fields(room, msg, &values, err);
	const char *type = arena_dup(&values.own, str_of(def ? def->name : ""));
	const char *text = arena_dup(&values.own, values.free_text);
	const char *json = arena_dup(&values.own, values.json);

	if (rc == MR_NOMEM || !type || !text || !json) {
		type_values_done(&values);
		return mr_nomem(err);
	}
	*ret = (struct mr_fields){
		.type = type, .v = values.v, .n = values.n, .text = text, .json = json, .own = values.own
	};
	return rc;
}

void
mr_fields_done(struct mr_fields *fields)
{
	if (!fields)
		return;
	arena_free(fields->own);
	*fields = (struct mr_fields){ 0 };
}
