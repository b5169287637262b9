/* SPDX-License-Identifier: MIT */
/*
 * resolve.c - what one address means, tried in this order:
 *
 *	PREFIX:NAME   agent, group (list), queue, channel (announce)
 *	@NAME         a group of that name, then a pattern
 *	with a star   a wildcard over the registered agents
 *	with a slash  an agent
 *	NAME          an agent, a group, a queue or a channel; of several kinds it is refused, never guessed
 *
 * An agent has several spellings for one mailbox. A registered name is always that agent. Only an unregistered name is
 * tried as another spelling:
 *
 *	rig/mayor, rig/deacon             mayor and deacon: there is one a town
 *	rig/name                          the one agent rig/TYPE/name
 *	rig/crew/name, rig/polecats/name  rig/name, or the other of the two: they share their names
 */
#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "message/address.h"
#include "office/address/address.h"

/* ---- What comes out ---- */

void
resolver_reach(struct resolver *r, const char *target, bool gone)
{
	r->reached++;
	if (gone && strcmp(target, OPERATOR) != 0 && !nameset_has(&r->in_all, target))
		r->failed |= !names_add(&r->out->not_live, str_of(target));
	r->failed |= !nameset_add_once(&r->in_all, &r->out->all, target);
	if (!r->subscribers)
		r->failed |= !nameset_add_once(&r->in_header, r->header, target);
}

void
resolver_reach_away(struct resolver *r, const char *target, const char *address, bool missing)
{
	r->reached++;
	r->failed |= !nameset_add_once(&r->in_all, &r->out->all, target) ||
		     (missing && !names_add_once(&r->out->away, address)) ||
		     !nameset_add_once(&r->in_header, r->header, address);
}

bool
resolver_leaves_out(struct resolver *r, const char *name)
{
	if (strcmp(name, r->sender) != 0)
		return false;
	r->left_out++;
	return true;
}

void
resolver_form(struct resolver *r, const char *form, const char *name)
{
	if (r->depth > 0 || r->form)
		return;
	r->form = form;
	text_join(r->name, sizeof(r->name), name, NULL);
}

/* Adds a sentence to one of the two lists. */
void
resolver_say(struct resolver *r, struct mr_names *list, const char *fmt, ...)
{
	char text[600];
	va_list args;

	va_start(args, fmt);
	format_print(text, sizeof(text), fmt, args);
	va_end(args);
	/* Two groups may name the same missing member. */
	r->failed |= list == &r->trail ? !names_add(list, str_of(text)) : !names_add_once(list, text);
}

/* ---- The agents of the room ---- */

bool
resolver_is_gone(struct resolver *r, const char *name)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };

	return !r->many && office_has_lives(r->room) &&
	       r->room->driver->find_agent(r->room, name, &agent, IGNORED) == MR_OK &&
	       mr_agent_presence(&agent) == MR_GONE;
}

static bool
note_agent(void *ctx, const struct mr_agent *agent)
{
	struct roll *agents = ctx;
	struct known_agent *known = roll_add(agents, sizeof(*known));

	if (known)
		*known = (struct known_agent){ roll_str(agents, agent->name), agent->stray };
	return !agents->failed;
}

enum mr_rc
resolver_agents(struct resolver *r, struct mr_error *err)
{
	if (r->agents_read)
		return MR_OK;
	if (!ROOM_HAS(r->room, each_agent))
		return room_lacks(r->room, "list of agents to match patterns with", err);
	roll_done(&r->agents); /* of a failed attempt */
	r->agents = (struct roll){ 0 };
	TRY(r->room->driver->each_agent(r->room, true, note_agent, &r->agents, err));
	TRY(mr_got(!r->agents.failed, err));
	r->agents_read = true;
	return MR_OK;
}

/* ---- Names near one that is unknown ---- */

#define NEAR_DISTANCE 2 /* "witnes" and "witness2" */

bool
near_offer(void *ctx, const char *name)
{
	struct near *near = ctx;
	size_t distance = edit_distance(near->wanted, name, NEAR_DISTANCE), at = near->n;

	/* "witness" may mean "green/witness". */
	if (distance > NEAR_DISTANCE && ascii_caseeq(path_name(near->wanted), path_name(name)))
		distance = NEAR_DISTANCE;
	if (distance > NEAR_DISTANCE || (distance > 0 && distance >= strlen(near->wanted)))
		return true;
	for (; at > 0 && near->v[at - 1].distance > distance; at--)
		near->v[at] = near->v[at - 1];
	(void)snprintf(near->v[at].shown, sizeof(near->v[at].shown), "%s%.160s", near->prefix, name);
	near->v[at].distance = distance;
	if (near->n < NEAR_MAX)
		near->n++;
	return true;
}

void
near_list(const struct near *near, struct buf *out)
{
	for (size_t i = 0; i < near->n; i++)
		format_addf(out, "%s'%s'", i > 0 ? ", " : "", near->v[i].shown);
}

enum mr_rc
resolve_unknown(struct resolver *r, const char *what, const char *name, struct mr_error *err)
{
	static const struct {
		const char *kind, *prefix, *advice; /* advice: if no similar name exists */
	} kinds[] = {
		{ "group", "group:", "`mailroom group list` lists them" },
		{ "queue", "queue:", "`mailroom queue list` lists them" },
		{ "channel", "channel:", "`mailroom channel list` lists them" },
		{ "pattern", "@",
		    "known are @all @town @overseer @witnesses @refineries @deacons @dogs @crew @polecats @rig/R "
		    "@crew/R @polecats/R, groups, and Pattern- lines of the room" },
	};
	mr_auto(mr_names_done) struct mr_names patterns = { 0 };
	mr_auto(buf_done) struct buf list = BUF_INIT;
	struct near near = { .wanted = name, .prefix = "" };
	bool may_wait = strstr(what, "agent") && (r->room->driver->abilities & ROOM_REGISTER);
	const char *advice = "`mailroom who` lists the agents; --hold makes a mailbox that waits";

	(void)mr_fail(err, MR_NOTFOUND, "no %s '%s%.160s' in room '%s'", what, strcmp(what, "pattern") == 0 ? "@" : "",
	    name, r->room->name);
	if (r->depth > 0) /* the hint of a member is not shown */
		return err->code;
	(void)resolver_agents(r, IGNORED);
	for (size_t i = 0; i < r->agents.n; i++)
		(void)near_offer(&near, ((const struct known_agent *)r->agents.v)[i].name);
	for (size_t i = 0; i < 4; i++) {
		near.prefix = kinds[i].prefix;
		if (i < 3 && target_supported(r->room, kinds[i].kind, IGNORED) == MR_OK)
			(void)r->room->driver->record_each(r->room, kinds[i].kind, "", near_offer, &near, IGNORED);
		if (strcmp(what, kinds[i].kind) == 0)
			advice = kinds[i].advice;
	}
	(void)pattern_names(r->room, &patterns);
	for (size_t i = 0; i < patterns.n; i++)
		(void)near_offer(&near, patterns.v[i]);
	near_list(&near, &list);
	if (near.n > 0 && buf_ok(&list))
		return mr_hint(
		    err, "did you mean %.180s?%s", buf_z(&list), may_wait ? " --hold makes a mailbox that waits" : "");
	return mr_hint(err, "%s", office_has_lives(r->room) ? advice : "`mailroom who` lists the agents");
}

/* ---- Spellings of one agent ---- */

bool
address_is_operator(struct mr_str name)
{
	return str_caseeq(name, STR("human")) || str_caseeq(name, STR("overseer")) || str_caseeq(name, STR(OPERATOR));
}

struct parts { /* of an address */
	struct mr_str v[4];
	size_t n;
};

static struct parts
parts_of(struct mr_str rest)
{
	struct parts parts = { 0 };

	while (parts.n < 4 && str_cut(&rest, '/', &parts.v[parts.n]))
		parts.n++;
	return parts;
}

static bool
is_worker_type(struct mr_str type)
{
	return str_eq(type, STR("crew")) || str_eq(type, STR("polecats"));
}

/* There is one of them a town. */
static bool
is_of_town(const struct parts *name)
{
	return name->n == 2 && (str_eq(name->v[1], STR("mayor")) || str_eq(name->v[1], STR("deacon")));
}

struct mr_str
address_short(struct mr_str name, char ret[MR_ADDRESS_MAX + 1])
{
	struct parts parts = parts_of(name);

	if (is_of_town(&parts))
		return parts.v[1];
	if (parts.n != 3 || !is_worker_type(parts.v[1]))
		return name;
	(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%.*s/%.*s", (int)parts.v[0].len, parts.v[0].ptr, (int)parts.v[2].len,
	    parts.v[2].ptr);
	return str_of(ret);
}

static bool
is_spelling_of(const struct parts *given, const char *name)
{
	struct parts have = parts_of(str_of(name));

	if (given->n < 2 || have.n < 2 || given->n > 3 || have.n > 3 || !str_eq(given->v[0], have.v[0]) ||
	    !str_eq(given->v[given->n - 1], have.v[have.n - 1]))
		return false;
	if (given->n == 2)
		return have.n == 3;
	return is_worker_type(given->v[1]) && (have.n == 2 || is_worker_type(have.v[1]));
}

static enum mr_rc
find_registered(struct resolver *r, const char *name, bool *ret_live, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	enum mr_rc rc =
	    r->many ? agent_exists(r->room, name, err) : r->room->driver->find_agent(r->room, name, &agent, err);

	if (rc == MR_OK && !r->many)
		*ret_live = !office_has_lives(r->room) || mr_agent_presence(&agent) != MR_GONE;
	return rc == MR_OK || rc == MR_NOTFOUND ? rc : mr_wrap(err, "recipient '%s'", name);
}

/* `name` is a normal address. MR_NOTFOUND: not registered; ret is then the name under which a mailbox would be made.
 * MR_REFUSED: it is short for several. */
static enum mr_rc
find_spelled(struct resolver *r, const char *name, char ret[MR_ADDRESS_MAX + 1], bool *ret_live, struct mr_error *err)
{
	mr_auto(buf_done) struct buf list = BUF_INIT;
	size_t n = 0;

	text_join(ret, MR_ADDRESS_MAX + 1, address_is_operator(str_of(name)) ? OPERATOR : name, NULL);
	*ret_live = true;
	if (!ROOM_HAS(r->room, find_agent)) /* a kind without registration: every recipient exists */
		return MR_OK;
	enum mr_rc rc = find_registered(r, ret, ret_live, err);

	if (rc != MR_NOTFOUND)
		return rc;
	struct parts parts = parts_of(str_of(name));

	if (is_of_town(&parts)) {
		(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%.*s", (int)parts.v[1].len, parts.v[1].ptr);
		rc = find_registered(r, ret, ret_live, err);
	}
	if (rc != MR_NOTFOUND || parts.n < 2 || !ROOM_HAS(r->room, each_agent))
		return rc;
	TRY(resolver_agents(r, err));
	const struct known_agent *known = r->agents.v;

	for (size_t i = 0; i < r->agents.n; i++, known++) {
		if (!is_spelling_of(&parts, known->name))
			continue;
		format_addf(&list, "%s'%s'", n++ > 0 ? ", " : "", known->name);
		(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", known->name);
	}
	*ret_live = n != 1 || !resolver_is_gone(r, ret);
	if (n <= 1)
		return n == 1 ? MR_OK : MR_NOTFOUND;
	return mr_fail(
	    err, MR_REFUSED, "'%s' is short for %zu agents\nwrite one of them in full: %s", name, n, buf_z(&list));
}

enum mr_rc
address_registered(struct mr_room *room, const char *name, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	mr_auto(recipients_done) struct recipients nobody = { 0 };
	mr_auto(resolver_done) struct resolver r;
	bool live;

	resolver_init(&r, room, "", false, &nobody);
	return find_spelled(&r, name, ret, &live, err);
}

/* ---- Agents ---- */

/* `spelling` as written, `found` as registered. */
static enum mr_rc
reach_agent(struct resolver *r, const char *spelling, const char *found, bool live)
{
	resolver_form(r, strcmp(found, OPERATOR) == 0 ? "operator" : "agent", found);
	if (strcmp(spelling, found) != 0) {
		mr_auto(buf_done) struct buf name = BUF_INIT;

		office_name(r->room, found, &name);
		if (!str_eq(buf_str(&name), str_of(spelling)))
			resolver_say(r, &r->trail, "'%s' is another spelling of '%s'", spelling, found);
	}
	if (r->depth == 0 || !resolver_leaves_out(r, found))
		resolver_reach(r, found, !live);
	return MR_OK;
}

/* With --hold: makes the mailbox of an unregistered name. */
static enum mr_rc
make_agent(struct resolver *r, const char *name, struct mr_error *err)
{
	*err = (struct mr_error){ 0 };
	r->out->missing = true;
	return reach_agent(r, name, name, false);
}

enum mr_rc
resolve_agent(struct resolver *r, struct mr_str spelling, struct mr_error *err)
{
	char name[MR_ADDRESS_MAX + 1], found[MR_ADDRESS_MAX + 1];
	bool live = false;

	TRY(address_normal(spelling, name, err));
	enum mr_rc rc = find_spelled(r, name, found, &live, err);

	if (rc == MR_OK)
		return reach_agent(r, name, found, live);
	if (rc != MR_NOTFOUND)
		return rc;
	return r->hold ? make_agent(r, found, err) : resolve_unknown(r, "agent", name, err);
}

/* In a room of another program: its own spelling, and no names that stand for others. Without registration, every name
 * that is written to exists. */
static enum mr_rc
resolve_foreign(struct resolver *r, const char *given, struct mr_error *err)
{
	unsigned abilities = r->room->driver->abilities;
	char name[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = agent_spelled(r->room, given, name, err);
	bool spelled = rc == MR_OK;

	if (spelled)
		rc = agent_exists(r->room, name, err);
	if (rc == MR_OK)
		return reach_agent(r, given, name, true);
	if (rc != MR_NOTFOUND)
		return rc;
	if (spelled && (r->hold || ((abilities & ROOM_OPEN_BOXES) && !(abilities & ROOM_REGISTER))))
		return make_agent(r, name, err);
	return resolve_unknown(r, "agent", given, err);
}

/* ---- Names with a prefix, bare names ---- */

static const struct {
	const char *prefix, *kind;
} prefixes[] = {
	{ "agent:", "agent" },
	{ "group:", "group" },
	{ "queue:", "queue" },
	{ "channel:", "channel" },
	{ "list:", "group" },
	{ "announce:", "channel" },
};

const char *
address_kind(struct mr_str *address)
{
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (str_starts(*address, prefixes[i].prefix)) {
			*address = str_from(*address, strlen(prefixes[i].prefix));
			return prefixes[i].kind;
		}
	return NULL;
}

static enum mr_rc
resolve_kind(struct resolver *r, const char *kind, const char *name, struct mr_error *err)
{
	if (strcmp(kind, "agent") == 0)
		return office_has_lives(r->room) ? resolve_agent(r, str_of(name), err) : resolve_foreign(r, name, err);
	TRY(target_supported(r->room, kind, err));
	TRY(target_name_check(kind, name, err));
	return strcmp(kind, "group") == 0 ? expand_group(r, name, err) : expand_target(r, kind, name, err);
}

static enum mr_rc
resolve_bare(struct resolver *r, const char *name, struct mr_error *err)
{
	char found[MR_ADDRESS_MAX + 1] = "";
	bool is[4], live = false;
	size_t kinds = 0, which = 0;
	enum mr_rc agent = address_check(str_of(name), err);

	if (agent == MR_OK)
		agent = find_spelled(r, name, found, &live, err);
	if (agent != MR_OK && agent != MR_NOTFOUND && agent != MR_REFUSED)
		return agent;
	for (size_t i = 0; i < 4; i++) {
		const char *kind = prefixes[i].kind;
		struct mr_names *named = &r->named[i];

		/* The names of groups, queues and channels are read once, not for each of a thousand recipients. */
		if (i > 0 && r->named_read[i] == 0 && ROOM_HAS(r->room, record_each)) {
			r->named_read[i] = office_records(r->room, kind, "", named, IGNORED) == MR_OK ? 1 : -1;
			names_sort(named);
		}
		is[i] = i == 0                 ? agent == MR_OK
			: r->named_read[i] < 0 ? target_exists(r->room, kind, name)
					       : names_find(named, name);
		kinds += is[i];
		which = is[i] ? i : which;
	}
	if (kinds > 1) {
		mr_auto(buf_done) struct buf forms = BUF_INIT;

		for (size_t i = 0; i < 4; i++)
			if (is[i])
				buf_addf(&forms, "%s%s%s", forms.len > 0 ? ", " : "", prefixes[i].prefix, name);
		return mr_fail(err, MR_REFUSED, "'%s' is ambiguous: it could be %s\nwrite which one you mean: %s", name,
		    buf_z(&forms), buf_z(&forms));
	}
	if (kinds == 1 && which == 0)
		return reach_agent(r, name, found, live);
	if (kinds == 1) {
		*err = (struct mr_error){ 0 };
		resolver_say(r, &r->trail, "'%s' is a %s", name, prefixes[which].kind);
		return resolve_kind(r, prefixes[which].kind, name, err);
	}
	if (agent == MR_REFUSED)
		return agent;
	return r->hold ? make_agent(r, found, err) : resolve_unknown(r, "agent, group, queue or channel", name, err);
}

/* ---- One address ---- */

/* "Old Bob": a name with a blank, of an agent here, or perhaps "Old Bob@hand" in a linked room. */
static bool
may_be_spelled_so(struct resolver *r, const char *given, struct mr_str room)
{
	const struct room_driver *driver = r->room->driver;
	char name[MR_ADDRESS_MAX + 1];

	if (DRIVER_HAS(driver, spell) && DRIVER_HAS(driver, find_agent) &&
	    driver->spell(r->room, given, name, IGNORED) == MR_OK && agent_exists(r->room, name, IGNORED) == MR_OK)
		return true;
	return room.len > 0 && room.len <= MR_LINK_NAME_MAX && target_exists(r->room, "link", room.ptr);
}

enum mr_rc
resolve_address(struct resolver *r, const char *given, struct mr_error *err)
{
	mr_auto(buf_done) struct buf shown = BUF_INIT;
	struct mr_str agent = { 0 }, room = { 0 };
	char name[2 * MR_ADDRESS_MAX + 1];

	if (*given == '\0')
		return mr_fail(err, MR_REFUSED, "an empty address is not a recipient");
	address_split(str_of(given), &agent, &room);
	if (str_eq(room, str_of(r->room->name)))
		room.len = 0;
	bool blank = strpbrk(given, " \t\r\n") && !may_be_spelled_so(r, given, room);

	if (blank || strlen(given) > 2 * MR_ADDRESS_MAX || header_value_problem(str_of(given))) {
		text_clean_line(&shown, utf8_cut(str_of(given), 60));
		(void)mr_fail(err, MR_REFUSED, "'%s' is not a recipient%s", buf_z(&shown),
		    blank ? "" : ": it is too long or no text");
		return mr_hint(err, "%s", blank ? "did you mean -m? give the text with -m or on stdin" : "");
	}
	if (*given == '@')
		return expand_at(r, given + 1, err);
	if (room.len > 0)
		return r->room->office->links->resolve(r, agent, room, err);
	if (agent.len == 0)
		return mr_fail(err, MR_REFUSED, "'%.60s' does not name an agent", given);
	const char *kind = address_kind(&agent);

	memcpy(name, agent.ptr, agent.len);
	name[agent.len] = '\0';
	if (kind)
		return resolve_kind(r, kind, name, err);
	if (strchr(name, '*'))
		return expand_wildcard(r, name, err);
	if (!office_has_lives(r->room))
		return resolve_foreign(r, name, err);
	return strchr(name, '/') ? resolve_agent(r, str_of(name), err) : resolve_bare(r, name, err);
}

/* ---- All of them ---- */

void
resolver_init(struct resolver *r, struct mr_room *room, const char *sender, bool hold, struct recipients *out)
{
	const char *rule = mr_room_setting(room, "Unknown-Recipients");

	*r = (struct resolver){
		.room = room,
		.sender = sender ? sender : "",
		.hold = hold || (rule && ascii_caseeq(rule, "hold")),
		.out = out,
		.header = &out->to,
	};
}

void
resolver_done(struct resolver *r)
{
	nameset_done(&r->in_all);
	nameset_done(&r->in_header);
	mr_names_done(&r->trail);
	mr_names_done(&r->visited);
	for (size_t i = 0; i < sizeof(r->named) / sizeof(r->named[0]); i++)
		mr_names_done(&r->named[i]);
	arena_free(r->agents.own);
}

enum mr_rc
resolver_take(struct resolver *r, const char *given, struct mr_error *err)
{
	/* Each address is counted by itself: a group whose members were all reached before is not empty. */
	mr_names_done(&r->visited);
	r->form = NULL;
	r->reached = r->left_out = 0;
	r->trouble_before = r->out->trouble.n;
	TRY(resolve_address(r, given, err));
	return r->failed ? mr_nomem(err) : MR_OK;
}

enum mr_rc
recipients_resolve(struct mr_room *room, const char *sender, const char *const *to, const char *const *cc, bool hold,
    struct recipients *ret, struct mr_error *err)
{
	mr_auto(recipients_done) struct recipients out = { .removals = room->driver->removals(room) };
	mr_auto(resolver_done) struct resolver r;
	const char *const *lists[] = { to, cc };
	size_t n = 0;

	resolver_init(&r, room, sender, hold, &out);
	for (size_t i = 0; i < 2; i++)
		for (size_t j = 0; lists[i] && lists[i][j]; j++)
			n++;
	r.many = n > NOT_LIVE_MAX;
	for (size_t i = 0; i < 2; i++) {
		r.header = i == 0 ? &out.to : &out.cc;
		for (size_t j = 0; lists[i] && lists[i][j]; j++)
			TRY(resolver_take(&r, lists[i][j], err));
	}
	if (out.all.n == 0)
		return mr_fail(err, MR_REFUSED,
		    "the message has no recipient\nname at least one agent; `mailroom who` lists them");
	*ret = out;
	out = (struct recipients){ 0 };
	return MR_OK;
}

bool
recipients_copy(const struct recipients *from, struct recipients *ret)
{
	mr_auto(recipients_done) struct recipients copy = { .missing = from->missing, .removals = from->removals };
	const struct mr_names *have[] = { &from->to, &from->cc, &from->all, &from->not_live, &from->trouble,
		&from->away };
	struct mr_names *want[] = { &copy.to, &copy.cc, &copy.all, &copy.not_live, &copy.trouble, &copy.away };

	for (size_t i = 0; i < sizeof(have) / sizeof(have[0]); i++)
		for (size_t k = 0; k < have[i]->n; k++)
			if (!names_add(want[i], str_of(have[i]->v[k])))
				return false;
	*ret = copy;
	copy = (struct recipients){ 0 };
	return true;
}

void
recipients_done(struct recipients *r)
{
	mr_names_done(&r->to);
	mr_names_done(&r->cc);
	mr_names_done(&r->all);
	mr_names_done(&r->not_live);
	mr_names_done(&r->trouble);
	mr_names_done(&r->away);
}

enum mr_rc
mr_resolve(
    struct mr_room *room, const char *sender, const char *address, struct mr_resolution *ret, struct mr_error *err)
{
	mr_auto(recipients_done) struct recipients out = { 0 };
	mr_auto(resolver_done) struct resolver r;

	resolver_init(&r, room, sender, false, &out);
	TRY(resolver_take(&r, address, err));
	if (out.missing)
		resolver_say(&r, &r.trail, "no agent has registered '%s': the first mail makes its mailbox", r.name);
	*ret = (struct mr_resolution){ .form = r.form, .targets = out.all, .trouble = out.trouble, .trail = r.trail };
	(void)snprintf(ret->name, sizeof(ret->name), "%s", r.name);
	out.all = out.trouble = r.trail = (struct mr_names){ 0 };
	return MR_OK;
}

void
mr_resolution_done(struct mr_resolution *resolution)
{
	if (!resolution)
		return;
	mr_names_done(&resolution->targets);
	mr_names_done(&resolution->trouble);
	mr_names_done(&resolution->trail);
	*resolution = (struct mr_resolution){ 0 };
}
