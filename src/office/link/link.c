/* SPDX-License-Identifier: MIT */
/*
 * link.c - a link is a record of this room: the short name of another room, its spec, and the table of names.
 *
 * The queue of its outgoing mail is made before the record and removed before it. So an existing link has its queue,
 * except while it is being removed; then the mail is refused as for any missing queue. A kill in between leaves a queue
 * without a link (the next `link` of that name takes it over) or a link without a queue (repeat `unlink`).
 *
 * AGENT@LINK as a recipient is looked up in the other room, by its rules, before anything is accepted: a misspelled
 * name is refused where it was written. While the other room cannot be reached, the names that were seen there before
 * count (a record, KNOWN_KIND), so that a laptop without network still takes mail for its fleet. The mail itself goes
 * into the queue of the link, with all promises of a queue; carrying it may fail now, and is repeated.
 */
#include "office/link/link.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "message/address.h"
#include "office/rules/config.h"
#include "office/work/work.h"

#define REMEMBER_MS ((int64_t)10 * 60 * 1000) /* interval for reading the names of the other room */

enum mr_rc
link_able(const struct mr_room *room, struct mr_error *err)
{
	const struct room_driver *d = room->driver;

	if (DRIVER_HAS(d, record_put) && (d->abilities & ROOM_KEYS))
		return target_supported(room, "queue", err);
	return room_lacks(room, "links", err);
}

struct room_box
link_box(const char *name)
{
	struct room_box box;

	(void)snprintf(box.z, sizeof(box.z), "queue:" LINK_QUEUE_PREFIX "%.*s", MR_LINK_NAME_MAX, name);
	return box;
}

struct waiting {
	size_t n;
	int64_t since_ms;
};

static bool
note_waiting(void *ctx, const struct queue_item *item)
{
	struct waiting *w = ctx;
	int64_t at_ms = id_time_ms(item->id);

	w->since_ms = w->n++ == 0 || at_ms < w->since_ms ? at_ms : w->since_ms;
	return true;
}

size_t
link_waiting(struct mr_room *room, const char *name, int64_t *ret_since_ms)
{
	struct waiting waits = { 0 };

	(void)room->driver->each_claim(
	    room, link_box(name).z, QUEUE_READY | QUEUE_DELAYED | QUEUE_CLAIMED, note_waiting, &waits, IGNORED);
	*ret_since_ms = waits.since_ms;
	return waits.n;
}

const char *
link_of_target(const char *target)
{
	static const char prefix[] = "queue:" LINK_QUEUE_PREFIX;

	return str_starts(str_of(target), prefix) ? target + sizeof(prefix) - 1 : NULL;
}

/* ---- Opening the other room ---- */

/* Does the user's configuration let this room exchange mail with that one? */
static enum mr_rc
check_allowed(struct mr_room *room, const struct mr_link *link, struct mr_error *err)
{
	const char *granted = config_get_of(room, "Link-", link->name);

	if (granted && strcmp(granted, link->room) == 0)
		return MR_OK;
	if (granted)
		(void)mr_fail(err, MR_REFUSED, "link '%s' leads to '%.80s', but your configuration allows '%.80s' only",
		    link->name, link->room, granted);
	else
		(void)mr_fail(
		    err, MR_REFUSED, "your configuration does not allow link '%s' to '%.120s'", link->name, link->room);
	return mr_hint(
	    err, "if it is meant, type in a terminal: mailroom config set Link-%s '%.120s'", link->name, link->room);
}

bool
mr_link_allowed(struct mr_room *room, const struct mr_link *link)
{
	return check_allowed(room, link, IGNORED) == MR_OK;
}

static enum mr_rc
open_other(struct mr_room *room, const char *spec, bool must_exist, struct mr_room **ret, struct mr_error *err)
{
	struct mr_room_options options = {
		.state_dir = room->state_dir, .data_dir = room->data_dir, .must_exist = must_exist
	};

	return mr_room_open(spec, &options, ret, err);
}

enum mr_rc
link_open(struct mr_room *room, const struct mr_link *link, struct mr_room **ret, struct mr_error *err)
{
	TRY(check_allowed(room, link, err));
	enum mr_rc rc = open_other(room, link->room, true, ret, err);

	if (rc == MR_OK)
		return MR_OK;
	(void)mr_wrap(err, "link '%s' to '%.120s'", link->name, link->room);
	if (rc == MR_NOTFOUND)
		(void)mr_hint(err, "is its disk mounted? `mailroom unlink %s` forgets it", link->name);
	return rc;
}

void
link_close(struct mr_room **there)
{
	mr_room_close(*there);
}

/* ---- Reading ---- */

void
mr_link_done(struct mr_link *link)
{
	if (!link)
		return;
	arena_free(link->own);
	*link = (struct mr_link){ 0 };
}

enum mr_rc
link_parse(struct record *lines, const char *name, struct mr_link *ret, struct mr_error *err)
{
	const char *spec = record_get(lines, "Room"), *by = record_get(lines, "Created-By");
	struct mr_link_name *names = arena_alloc(&lines->own, (lines->n + 1) * sizeof(*names));
	size_t n = 0;

	TRY(mr_got(names, err));
	if (!spec)
		return mr_fail(err, MR_CORRUPT, "the record of link '%s' names no room", name);
	for (size_t i = 0; i < lines->n; i++) {
		const char *value = lines->lines[i].value, *space = strchr(value, ' ');

		/* "LOCAL FOREIGN", neither with a space; any other form is from another program. */
		if (!ascii_caseeq(lines->lines[i].name, "Name") || !space || space == value)
			continue;
		names[n].local = arena_dup(&lines->own, (struct mr_str){ value, (size_t)(space - value) });
		names[n].foreign = arena_dup(&lines->own, str_trim(str_of(space)));
		TRY(mr_got(names[n].local && names[n].foreign, err));
		n++;
	}
	*ret = (struct mr_link){
		.room = spec,
		.names = names,
		.names_n = n,
		.created_by = by ? by : "",
		.created_ms = record_time(lines, "Created"),
		.own = lines->own,
	};
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	lines->own = NULL;
	return MR_OK;
}

enum mr_rc
mr_link_get(struct mr_room *room, const char *name, struct mr_link *ret, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };

	TRY(link_able(room, err));
	TRY(target_name_check(LINK_KIND, name, err));
	enum mr_rc rc = settings_load(room, LINK_KIND, name, &lines, err);

	if (rc == MR_NOTFOUND && !strstr(err->hint, "did you mean"))
		return mr_hint(err, "`mailroom link list` shows them, `mailroom link %s KIND:WHERE` makes one", name);
	return rc == MR_OK ? link_parse(&lines, name, ret, err) : rc;
}

enum mr_rc
mr_link_list(struct mr_room *room, struct mr_links *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(roll_done) struct roll l = { 0 };
	struct mr_error broken = { 0 };

	TRY(link_able(room, err));
	TRY(settings_names(room, LINK_KIND, &names, err));
	for (size_t i = 0; i < names.n; i++) {
		struct mr_link link, *at;
		enum mr_rc one = mr_link_get(room, names.v[i], &link, err);

		if (one == MR_NOTFOUND) /* removed at the same time */
			continue;
		if (one != MR_OK && one != MR_CORRUPT)
			return one;
		if (one == MR_CORRUPT) { /* a broken one does not hide the others */
			broken = broken.code == MR_OK ? *err : broken;
			continue;
		}
		roll_join(&l, link.own);
		link.own = NULL;
		at = roll_add(&l, sizeof(*at));
		TRY(mr_got(at, err));
		*at = link;
	}
	*ret = (struct mr_links){ .v = l.v, .n = l.n, .own = roll_take(&l) };
	*err = broken;
	return broken.code;
}

/* ---- Making ---- */

/* Different specs may mean one folder: write into one room and read it in the other. */
static enum mr_rc
check_is_another(struct mr_room *room, struct mr_room *there, struct mr_error *err)
{
	mr_auto(buf_done) struct buf seen = BUF_INIT;
	char token[MR_TOKEN_LEN + 1];
	bool same = strcmp(room->spec, there->spec) == 0;

	if (!same && ROOM_HAS(there, record_get)) {
		token_new(token);
		TRY(room->driver->record_put(room, "linking", "", token, STR("Linking: yes\n"), err));
		same = there->driver->record_get(there, "linking", "", token, &seen, IGNORED) == MR_OK;
		(void)room->driver->record_drop(room, "linking", "", token, IGNORED);
	}
	if (!same)
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "'%.160s' is this very room\na link names another room", there->spec);
}

/* One folder has many spellings: "..", links, and before --make there was none to look at. */
static bool
is_same_place(const char *a, const char *b)
{
	size_t kind = strcspn(a, ":");

	if (!a[kind] || strncmp(a, b, kind + 1) != 0)
		return false;
	mr_auto(free_ptr) char *one = path_full("/", a + kind + 1), *other = path_full("/", b + kind + 1);

	return one && other && strcmp(one, other) == 0;
}

static enum mr_rc
make_queue(struct mr_room *room, const struct mr_self *self, const char *link, struct mr_error *err)
{
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	mr_auto(mr_queue_done) struct mr_queue there = { 0 };
	struct room_box box = link_box(link);
	const char *name = box_queue(box.z);

	/* Without a limit of attempts: the other room may be away for a week. */
	buf_addf(&lines,
	    "Name: %s\nClaimers: %s\nOrder: priority\nMax-Claims: 0\nLease: 600s\nAttempts: 0\nStatus: active\n", name,
	    LINK_CLAIMERS);
	TRY(room->driver->make_box(room, box.z, err));
	enum mr_rc rc = settings_create(room, "queue", name, self->agent, &lines, NULL, err);

	if (rc != MR_EXISTS)
		return rc;
	*err = (struct mr_error){ 0 };
	TRY(mr_queue_get(room, name, &there, err));
	if (strcmp(there.claimers, LINK_CLAIMERS) != 0)
		return mr_fail(err, MR_EXISTS,
		    "the queue '%s' already exists, and does not belong to a link\ngive the link another name", name);
	return mr_queue_set_status(room, name, MR_QUEUE_ACTIVE, err); /* a kill left it behind, maybe closed */
}

enum mr_rc
mr_link_create(struct mr_room *room, const struct mr_self *self, const char *name, const char *spec, bool make,
    struct mr_error *err)
{
	mr_auto(link_close) struct mr_room *there = NULL;
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	char grant[MR_LINK_NAME_MAX + 8];

	TRY(link_able(room, err));
	TRY(office_not_fenced(room, self, err));
	TRY(target_name_check(LINK_KIND, name, err));
	if (strlen(name) > MR_LINK_NAME_MAX)
		return mr_fail(err, MR_REFUSED, "the name of a link has at most %d characters", MR_LINK_NAME_MAX);
	if (strcmp(name, "list") == 0 || strcmp(name, "name") == 0)
		return mr_fail(err, MR_REFUSED,
		    "a link cannot be called '%s'\n`mailroom link %s` means something else; pick another name", name,
		    name);
	if (ascii_caseeq(name, room->name))
		return mr_fail(err, MR_REFUSED,
		    "a link cannot be called '%s': that is this room\n"
		    "the part after '@' would mean two rooms; pick another name",
		    name);
	/* Without `make` nothing is created for a mistyped name, or in place of a room that is away. */
	enum mr_rc rc = open_other(room, spec, !make, &there, err);

	if (rc == MR_NOTFOUND && !make && !err->hint[0])
		(void)mr_hint(err, "if that is the right place, give --make to make it");
	TRY(rc);
	TRY(check_is_another(room, there, err));
	if (target_exists(room, "link", name))
		return mr_fail(
		    err, MR_EXISTS, "there is already a link '%s'\n`mailroom link list` shows where it leads", name);
	/* Two links to one room would give every agent there two names, and carry its mail twice. */
	mr_auto(mr_list_done) struct mr_links all = { 0 };

	TRY(mr_unless(mr_link_list(room, &all, err), MR_CORRUPT, err));
	for (size_t i = 0; i < all.n; i++)
		if (is_same_place(all.v[i].room, there->spec))
			return mr_fail(err, MR_EXISTS, "'%.160s' is already linked, as '%s'\nwrite to AGENT@%s",
			    there->spec, all.v[i].name, all.v[i].name);
	if (make)
		TRY(there->driver->make_box(there, "", err));
	(void)snprintf(grant, sizeof(grant), "Link-%s", name);
	/* The right before the link: a right without a link has no effect. */
	TRY(mr_config_set(room, grant, there->spec, false, err));
	TRY(make_queue(room, self, name, err));
	TRY(header_add(&lines, "Room", str_of(there->spec), err));
	link_remember(room, there, name);
	return settings_create(room, LINK_KIND, name, self->agent, &lines, NULL, err);
}

/* ---- Removing ---- */

enum mr_rc
mr_link_remove(struct mr_room *room, const char *name, bool force, size_t *ret_dead, struct mr_error *err)
{
	static const char *const rights[] = { "Link-", "Adopt-" };
	mr_auto(mr_link_done) struct mr_link link = { 0 };
	char right[MR_LINK_NAME_MAX + 8];
	size_t dead = 0;
	enum mr_rc rc = mr_link_get(room, name, &link, err);

	if (rc != MR_OK && !(rc == MR_CORRUPT && force))
		return rc;
	rc = mr_queue_delete(room, box_queue(link_box(name).z), force, &dead, err);
	if (rc == MR_REFUSED)
		return mr_fail(err, MR_REFUSED,
		    "mail waits to be carried to '%s'\n"
		    "`mailroom carry %s` carries it; with --force it goes to dead letters, and its senders are told",
		    name, name);
	if (rc != MR_OK && rc != MR_NOTFOUND) /* not found: an unlink was cut off here */
		return rc;
	TRY(room->driver->record_drop(room, LINK_KIND, "", name, err));
	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(right, sizeof(right), "%s%s", rights[i], name);
		(void)mr_config_set(room, right, NULL, false, IGNORED); /* there may be none */
	}
	office_drop_records(room, CARRIED_KIND, name);
	office_drop_records(room, CARRYING_KIND, name);
	(void)room->driver->record_drop(room, KNOWN_KIND, "", name, IGNORED);
	*err = (struct mr_error){ 0 };
	if (ret_dead)
		*ret_dead = dead;
	return MR_OK;
}

/* ---- Names of the other room, for the time when it is away ---- */

/* Adds the names that were seen there; returns the time, 0: never. */
static int64_t
known_names(struct mr_room *room, const char *link, struct mr_names *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(record_done) struct record lines = { 0 };

	if (room->driver->record_get(room, KNOWN_KIND, "", link, &text, IGNORED) != MR_OK ||
	    record_parse(buf_str(&text), &lines, IGNORED) != MR_OK)
		return 0;
	for (size_t i = 0; i < lines.n; i++)
		if (ascii_caseeq(lines.lines[i].name, "Agent"))
			(void)names_add(ret, str_of(lines.lines[i].value));
	return record_time(&lines, "Seen");
}

static void
put_known(struct mr_room *room, const char *link, struct mr_names *names, int64_t seen_ms)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	names_sort(names);
	buf_addf(&text, "Seen: %s\n", time_text(seen_ms).z);
	for (size_t i = 0; i < names->n; i++)
		buf_addf(&text, "Agent: %s\n", names->v[i]);
	if (buf_ok(&text))
		(void)room->driver->record_put(room, KNOWN_KIND, "", link, buf_str(&text), IGNORED);
}

void
link_remember(struct mr_room *room, struct mr_room *there, const char *link)
{
	mr_auto(mr_names_done) struct mr_names before = { 0 }, names = { 0 };
	int64_t now_ms = clock_now_ms(), age_ms = now_ms - known_names(room, link, &before);

	if ((age_ms >= 0 && age_ms < REMEMBER_MS) || !ROOM_HAS(there, each_agent))
		return;
	if (office_agents(there, &names, IGNORED) == MR_OK)
		put_known(room, link, &names, now_ms);
}

/* Was that agent seen there? */
static bool
is_known(const struct mr_names *names, const char *name, char ret[MR_ADDRESS_MAX + 1])
{
	char normal[MR_ADDRESS_MAX + 1];
	bool fine = address_normal(str_of(name), normal, IGNORED) == MR_OK;

	for (size_t i = 0; fine && i < names->n; i++) {
		if (!ascii_caseeq(names->v[i], normal))
			continue;
		(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", names->v[i]);
		return true;
	}
	return false;
}

/* ---- AGENT@LINK ---- */

static enum mr_rc
refuse_room(struct resolver *r, struct mr_str room, struct mr_error *err)
{
	bool able = link_able(r->room, IGNORED) == MR_OK;

	return mr_fail(err, MR_REFUSED, "no link to room '%.*s'\nthis room is '%s'%s",
	    (int)(room.len < 60 ? room.len : 60), room.ptr, r->room->name,
	    able ? "; `mailroom link list` shows the others, `mailroom link NAME KIND:WHERE` makes one" : "");
}

/* An agent of the other room, in its registered spelling. */
static enum mr_rc
find_there(struct resolver *r, const struct mr_link *link, const char *name, char ret[MR_ADDRESS_MAX + 1],
    bool *ret_missing, struct mr_error *err)
{
	mr_auto(link_close) struct mr_room *there = NULL;
	mr_auto(recipients_done) struct recipients out = { 0 };
	mr_auto(resolver_done) struct resolver other = { 0 };
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	char known[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = link_open(r->room, link, &there, err);

	int64_t seen_ms = known_names(r->room, link->name, &names);

	if (rc == MR_IO && !r->hold) { /* away, not gone */
		if (is_known(&names, name, ret)) {
			*err = (struct mr_error){ 0 };
			return MR_OK;
		}
		return mr_hint(err,
		    "until it can be reached, mail is taken only for names that were seen there; '%.80s' was not",
		    name);
	}
	TRY(rc);
	resolver_init(&other, there, "", r->hold, &out);
	TRY(resolver_take(&other, name, err));
	if (!other.form || (strcmp(other.form, "agent") != 0 && strcmp(other.form, "operator") != 0))
		return mr_fail(err, MR_REFUSED,
		    "'%.80s' is not an agent of room '%s'\nonly single agents of another room can get mail: write NAME@LINK",
		    name, there->name);
	(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", other.name);
	*ret_missing = out.missing;
	if (!out.missing && !is_known(&names, ret, known) && names_add(&names, str_of(ret)))
		put_known(r->room, link->name, &names, seen_ms);
	return MR_OK;
}

static enum mr_rc
link_resolve(struct resolver *r, struct mr_str agent, struct mr_str room, struct mr_error *err)
{
	mr_auto(mr_link_done) struct mr_link link = { 0 };
	char name[2 * MR_ADDRESS_MAX + 1], found[MR_ADDRESS_MAX + 1], link_name[MR_LINK_NAME_MAX + 1];
	char address[2 * MR_ADDRESS_MAX];
	bool missing = false;

	if (room.len > MR_LINK_NAME_MAX)
		return refuse_room(r, room, err);
	(void)snprintf(link_name, sizeof(link_name), "%.*s", (int)room.len, room.ptr);
	if (!target_exists(r->room, "link", link_name))
		return refuse_room(r, room, err);
	if (str_starts(agent, "agent:")) /* an answer names its recipient like this */
		agent = (struct mr_str){ agent.ptr + 6, agent.len - 6 };
	if (agent.len == 0 || agent.len > 2 * MR_ADDRESS_MAX)
		return mr_fail(err, MR_REFUSED, "'%.60s' does not name an agent", agent.len > 0 ? agent.ptr : "");
	(void)snprintf(name, sizeof(name), "%.*s", (int)agent.len, agent.ptr);
	TRY(mr_link_get(r->room, link_name, &link, err));
	TRY(find_there(r, &link, name, found, &missing, err));
	const char *ours = link_local_of(&link, found);

	if (ours)
		return mr_fail(
		    err, MR_REFUSED, "'%s@%s' is the name of '%s' there\nwrite to '%s'", found, link_name, ours, ours);
	(void)snprintf(address, sizeof(address), "%s@%s", found, link_name);
	if (strlen(address) > MR_ADDRESS_MAX)
		return mr_fail(err, MR_REFUSED, "'%.80s...' has more than %d bytes", address, MR_ADDRESS_MAX);
	struct room_box target = link_box(link_name);

	TRY(target_check(r->room, target.z, err));
	resolver_say(r, &r->trail, "'%s' lives in the linked room %s", address, link.room);
	resolver_form(r, LINK_KIND, address);
	resolver_reach_away(r, target.z, address, missing);
	return MR_OK;
}

/* ---- Around a send ---- */

static enum mr_rc
link_hold(struct mr_room *room, const struct mr_names *away, struct mr_error *err)
{
	for (size_t i = 0; i < away->n; i++) {
		mr_auto(link_close) struct mr_room *there = NULL;
		mr_auto(mr_link_done) struct mr_link link = { 0 };
		struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };
		struct mr_str name, of;

		address_split(str_of(away->v[i]), &name, &of);
		(void)snprintf(agent.name, sizeof(agent.name), "%.*s", (int)name.len, name.ptr);
		TRY(mr_link_get(room, of.ptr, &link, err));
		TRY(link_open(room, &link, &there, err));
		if (ROOM_HAS(there, add_agent))
			TRY(mr_unless(there->driver->add_agent(there, &agent, err), MR_EXISTS, err));
	}
	return MR_OK;
}

static void
tell_trouble(void *ctx, const char *link, const struct mr_error *err)
{
	(void)names_addf(ctx, "%s: %s%s%s", link, err->message, err->hint[0] ? "; " : "", err->hint);
}

static void
carry_now(struct mr_room *room, const char *id, const char *link, struct mr_names *trouble)
{
	struct mr_error err = { 0 };
	bool waits = false;
	enum mr_rc rc = carry_after_send(room, link, id, tell_trouble, trouble, &waits, &err);

	if (rc != MR_OK || waits)
		(void)names_addf(trouble, "%s%sthe mail to %s is stored; `mailroom carry %s` delivers it",
		    rc != MR_OK ? err.message : "", rc != MR_OK ? "; " : "", link, link);
}

static bool
add_those_of(struct mr_names *list, const struct mr_names *names, const char *link)
{
	for (size_t i = 0; i < names->n; i++) {
		struct mr_str agent, of;

		address_split(str_of(names->v[i]), &agent, &of);
		if (str_eq(of, str_of(link)) && !names_add(list, str_of(names->v[i])))
			return false;
	}
	return true;
}

static void
link_after_delivery(struct mr_room *room, const char *id, struct mr_names *targets, const struct mr_names *to,
    const struct mr_names *cc, struct mr_names *trouble)
{
	mr_auto(mr_names_done) struct mr_names shown = { 0 };
	bool fine = true, any = false;

	for (size_t i = 0; i < targets->n && !any; i++)
		any = link_of_target(targets->v[i]) != NULL;
	if (!any) /* the usual case */
		return;
	any = false;
	for (size_t i = 0; i < targets->n; i++) {
		const char *link = link_of_target(targets->v[i]);
		bool linked = link && target_exists(room, "link", link);

		if (linked && trouble)
			carry_now(room, id, link, trouble);
		any |= linked;
		if (linked)
			fine = fine && add_those_of(&shown, to, link) && add_those_of(&shown, cc, link);
		else
			fine = fine && names_add(&shown, str_of(targets->v[i]));
	}
	if (fine && any) {
		struct mr_names queues = *targets;

		*targets = shown;
		shown = queues;
	}
}

const struct linked_rooms linked_rooms = {
	.resolve = link_resolve,
	.hold = link_hold,
	.delivered = link_after_delivery,
	.evidence = correspondence_evidence,
};
