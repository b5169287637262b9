/* SPDX-License-Identifier: MIT */
/*
 * link.c - a link is a record of this room: the short name of another room, its spec, and the table of names.
 *
 * The queue of its outgoing mail is made before the record and removed before it: whoever finds a link finds its queue,
 * but for one that is being removed, and then the mail is refused as for any queue that is not there. A kill in between
 * leaves a queue without a link (the next `link` of that name takes it over) or a link without a queue (`unlink`
 * again).
 */
#include "office/link/link.h"

#include "base/clock.h"
#include "base/id.h"
#include "office/rules/config.h"
#include "office/address/targets.h"

enum mr_rc
link_able(const struct mr_room *room, struct mr_error *err)
{
	const struct room_driver *d = room->driver;

	if (DRIVER_HAS(d, record_change) && DRIVER_HAS(d, record_get) && DRIVER_HAS(d, record_each) &&
	    DRIVER_HAS(d, record_drop) && DRIVER_HAS(d, record_put) && (d->abilities & ROOM_KEYS))
		return office_queue_able(room, err);
	return office_lacks(room, "links", err);
}

bool
link_exists(struct mr_room *room, const char *name)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error ignored = { 0 };

	if (link_able(room, &ignored) != MR_OK || !target_name_valid(LINK_KIND, name))
		return false;
	return room->driver->record_get(room, LINK_KIND, "", name, &text, &ignored) != MR_NOTFOUND;
}

void
link_queue_of(const char *name, char ret[MR_NAME_MAX + 1])
{
	(void)snprintf(ret, MR_NAME_MAX + 1, LINK_QUEUE_PREFIX "%.*s", MR_LINK_NAME_MAX, name);
}

const char *
link_of_target(const char *target)
{
	static const char prefix[] = "queue:" LINK_QUEUE_PREFIX;

	return str_starts(str_of(target), prefix) ? target + sizeof(prefix) - 1 : NULL;
}

enum mr_rc
link_allowed(struct mr_room *room, const struct mr_link *link, struct mr_error *err)
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
	struct mr_error ignored = { 0 };

	return link_allowed(room, link, &ignored) == MR_OK;
}

enum mr_rc
link_open(struct mr_room *room, const struct mr_link *link, struct mr_room **ret, struct mr_error *err)
{
	struct mr_room_options options = {
		.state_dir = room->state_dir, .data_dir = room->data_dir, .must_exist = true
	};
	enum mr_rc rc = link_allowed(room, link, err);

	if (rc != MR_OK)
		return rc;
	rc = mr_room_open(link->room, &options, ret, err);
	if (rc == MR_OK)
		return MR_OK;
	(void)mr_wrap(err, "link '%s' to '%.120s'", link->name, link->room);
	if (rc == MR_NOTFOUND && !err->hint[0])
		(void)mr_hint(err, "is its disk mounted? `mailroom unlink %s` forgets it", link->name);
	return rc;
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

/* "LOCAL FOREIGN": neither has a space. */
static bool
read_name(struct arena **own, const char *value, struct mr_link_name *ret)
{
	const char *space = strchr(value, ' ');

	if (!space || space == value)
		return true; /* another program wrote it */
	ret->local = arena_dup(own, (struct mr_str){ value, (size_t)(space - value) });
	ret->foreign = arena_dup(own, str_trim(str_of(space)));
	return ret->local && ret->foreign;
}

static enum mr_rc
read_link(struct record *lines, const char *name, struct mr_link *ret, struct mr_error *err)
{
	const char *room = record_get(lines, "Room"), *by = record_get(lines, "Created-By");
	struct mr_link_name *names = arena_alloc(&lines->own, (lines->n + 1) * sizeof(*names));
	size_t n = 0;

	if (!names)
		return mr_nomem(err);
	if (!room)
		return mr_fail(err, MR_CORRUPT, "link '%s' does not say which room", name);
	for (size_t i = 0; i < lines->n; i++) {
		if (!ascii_caseeq(lines->lines[i].name, "Name"))
			continue;
		if (!read_name(&lines->own, lines->lines[i].value, &names[n]))
			return mr_nomem(err);
		n += names[n].local && names[n].foreign;
	}
	*ret = (struct mr_link){
		.room = room,
		.names = names,
		.names_n = n,
		.created_by = by ? by : "",
		.created_ms = record_time(lines, "Created"),
		.own = lines->own,
	};
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	lines->own = NULL; /* the strings are the link's now */
	return MR_OK;
}

enum mr_rc
mr_link_get(struct mr_room *room, const char *name, struct mr_link *ret, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };
	enum mr_rc rc = link_able(room, err);

	if (rc == MR_OK)
		rc = target_name_check(LINK_KIND, name, err);
	if (rc == MR_OK)
		rc = settings_load(room, LINK_KIND, name, &lines, err);
	if (rc == MR_NOTFOUND && !strstr(err->hint, "did you mean"))
		return mr_hint(err, "`mailroom link list` shows them, `mailroom link %s KIND:WHERE` makes one", name);
	return rc == MR_OK ? read_link(&lines, name, ret, err) : rc;
}

enum mr_rc
mr_link_each(struct mr_room *room, mr_link_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct mr_error broken = { 0 };
	enum mr_rc rc = link_able(room, err);

	if (rc == MR_OK)
		rc = settings_names(room, LINK_KIND, &names, err);
	for (size_t i = 0; rc == MR_OK && i < names.n; i++) {
		mr_auto(mr_link_done) struct mr_link link = { 0 };
		enum mr_rc one = mr_link_get(room, names.v[i], &link, err);

		if (one == MR_OK && !fn(ctx, &link))
			break;
		if (one == MR_OK || one == MR_NOTFOUND) /* removed this very moment */
			continue;
		if (one != MR_CORRUPT)
			return one;
		broken = broken.code == MR_OK ? *err : broken; /* one that is broken does not hide the others */
	}
	if (rc != MR_OK)
		return rc;
	*err = broken;
	return broken.code;
}

/* ---- Making ---- */

static enum mr_rc
check_name(struct mr_room *room, const char *name, struct mr_error *err)
{
	static const char *const words[] = { "list", "name" };

	TRY(target_name_check(LINK_KIND, name, err));
	if (strlen(name) > MR_LINK_NAME_MAX)
		return mr_fail(err, MR_REFUSED, "the name of a link has at most %d characters", MR_LINK_NAME_MAX);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(name, words[i]) == 0) {
			return mr_fail(err, MR_REFUSED,
			    "a link cannot be called '%s'\n`mailroom link %s` means something else; pick another name",
			    name, name);
		}
	if (ascii_caseeq(name, room->name)) {
		return mr_fail(err, MR_REFUSED,
		    "a link cannot be called '%s': that is this room\n"
		    "what stands after the @ would mean two rooms; pick another name",
		    name);
	}
	return MR_OK;
}

/* Specs may differ and mean one folder. What is written into one and read in the other tells. */
static enum mr_rc
check_is_another(struct mr_room *room, struct mr_room *there, struct mr_error *err)
{
	mr_auto(buf_done) struct buf seen = BUF_INIT;
	struct mr_error ignored = { 0 };
	char token[MR_TOKEN_LEN + 1];
	bool same = strcmp(room->spec, there->spec) == 0;

	if (!same && ROOM_HAS(there, record_get)) {
		token_new(token);
		TRY(room->driver->record_put(room, "linking", "", token, STR("Linking: yes\n"), err));
		same = there->driver->record_get(there, "linking", "", token, &seen, &ignored) == MR_OK;
		(void)room->driver->record_drop(room, "linking", "", token, &ignored);
	}
	if (!same)
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "'%.160s' is this very room\na link names another room", there->spec);
}

struct same_room {
	const char *spec;
	char name[MR_LINK_NAME_MAX + 1];
};

static bool
note_same_room(void *ctx, const struct mr_link *link)
{
	struct same_room *same = ctx;

	if (strcmp(link->room, same->spec) != 0)
		return true;
	(void)snprintf(same->name, sizeof(same->name), "%s", link->name);
	return false;
}

/* Two links to one room would be two names for everybody there, and his mail carried twice. */
static enum mr_rc
check_is_new(struct mr_room *room, const char *spec, struct mr_error *err)
{
	struct same_room same = { .spec = spec };
	enum mr_rc rc = mr_link_each(room, note_same_room, &same, err);

	if (rc != MR_OK && rc != MR_CORRUPT)
		return rc;
	*err = (struct mr_error){ 0 };
	if (!same.name[0])
		return MR_OK;
	return mr_fail(
	    err, MR_EXISTS, "'%.160s' is linked already, as '%s'\nwrite to AGENT@%s", spec, same.name, same.name);
}

static enum mr_rc
make_queue(struct mr_room *room, const struct mr_self *self, const char *link, struct mr_error *err)
{
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	mr_auto(mr_queue_done) struct mr_queue there = { 0 };
	char name[MR_NAME_MAX + 1];
	enum mr_rc rc;

	link_queue_of(link, name);
	/* Never given up for having been tried often: the other room may be away for a week. */
	buf_addf(&lines,
	    "Name: %s\nClaimers: %s\nOrder: priority\nMax-Claims: 0\nLease: 600s\nAttempts: 0\nStatus: active\n", name,
	    LINK_CLAIMERS);
	rc = room->driver->queue_make(room, name, err);
	if (rc == MR_OK)
		rc = settings_create(room, "queue", name, self->agent, &lines, err);
	if (rc != MR_EXISTS)
		return rc;
	*err = (struct mr_error){ 0 };
	rc = mr_queue_get(room, name, &there, err);
	if (rc == MR_OK && strcmp(there.claimers, LINK_CLAIMERS) != 0)
		return mr_fail(err, MR_EXISTS,
		    "the queue '%s' is there already, and is not that of a link\ncall the link something else", name);
	/* Left behind by a kill, maybe closed. */
	return rc == MR_OK ? mr_queue_set_status(room, name, MR_QUEUE_ACTIVE, err) : rc;
}

/* Without `make` nothing is made of a mistyped name, or in the place of what is away. */
static enum mr_rc
open_new(struct mr_room *room, const char *spec, bool make, struct mr_room **ret, struct mr_error *err)
{
	struct mr_room_options options = {
		.state_dir = room->state_dir, .data_dir = room->data_dir, .must_exist = !make
	};
	enum mr_rc rc = mr_room_open(spec, &options, ret, err);

	if (rc == MR_NOTFOUND && !make && !err->hint[0])
		(void)mr_hint(err, "if that is the right place, --make makes it");
	return rc;
}

enum mr_rc
mr_link_create(struct mr_room *room, const struct mr_self *self, const char *name, const char *spec, bool make,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	struct mr_room *there = NULL;
	char grant[MR_LINK_NAME_MAX + 8];
	enum mr_rc rc = link_able(room, err);

	if (rc == MR_OK)
		rc = office_not_fenced(room, self, err);
	if (rc == MR_OK)
		rc = check_name(room, name, err);
	if (rc == MR_OK)
		rc = open_new(room, spec, make, &there, err);
	if (rc != MR_OK)
		return rc;
	rc = check_is_another(room, there, err);
	if (rc == MR_OK && link_exists(room, name)) {
		(void)mr_fail(err, MR_EXISTS, "there is a link '%s' already", name);
		rc = mr_hint(err, "`mailroom link list` shows where it leads");
	}
	if (rc == MR_OK)
		rc = check_is_new(room, there->spec, err);
	if (rc == MR_OK && make && ROOM_HAS(there, make))
		rc = there->driver->make(there, err);
	(void)snprintf(grant, sizeof(grant), "Link-%s", name);
	if (rc == MR_OK) /* the right before the link: a right without a link does nothing */
		rc = mr_config_set(room, grant, there->spec, false, err);
	if (rc == MR_OK)
		rc = make_queue(room, self, name, err);
	if (rc == MR_OK)
		rc = header_add(&lines, "Room", str_of(there->spec), err);
	if (rc == MR_OK)
		rc = settings_create(room, LINK_KIND, name, self->agent, &lines, err);
	mr_room_close(there);
	return rc;
}

/* ---- Removing ---- */

struct record_names {
	struct mr_names names;
};

static bool
note_record(void *ctx, const char *name)
{
	struct record_names *all = ctx;

	return names_add(&all->names, str_of(name));
}

static void
drop_records(struct mr_room *room, const char *kind, const char *link)
{
	struct record_names all = { 0 };
	struct mr_error ignored = { 0 };

	(void)room->driver->record_each(room, kind, link, note_record, &all, &ignored);
	for (size_t i = 0; i < all.names.n; i++)
		(void)room->driver->record_drop(room, kind, link, all.names.v[i], &ignored);
	mr_names_done(&all.names);
}

static void
drop_rights(struct mr_room *room, const char *link)
{
	static const char *const rights[] = { "Link-", "Adopt-" };
	struct mr_error ignored = { 0 };

	for (size_t i = 0; i < 2; i++) {
		char name[MR_LINK_NAME_MAX + 8];

		(void)snprintf(name, sizeof(name), "%s%s", rights[i], link);
		(void)mr_config_set(room, name, NULL, false, &ignored); /* there may be none */
	}
}

enum mr_rc
mr_link_remove(struct mr_room *room, const char *name, bool force, size_t *ret_dead, struct mr_error *err)
{
	mr_auto(mr_link_done) struct mr_link link = { 0 };
	char queue[MR_NAME_MAX + 1];
	size_t dead = 0;
	enum mr_rc rc = mr_link_get(room, name, &link, err);

	if (rc == MR_CORRUPT && force)
		rc = MR_OK;
	if (rc != MR_OK)
		return rc;
	link_queue_of(name, queue);
	rc = mr_queue_delete(room, queue, force, &dead, err);
	if (rc == MR_REFUSED) {
		return mr_fail(err, MR_REFUSED,
		    "mail waits to be carried to '%s'\n"
		    "`mailroom carry %s` carries it; with --force it goes to dead letters, and its senders are told",
		    name, name);
	}
	if (rc == MR_NOTFOUND) /* an unlink that was cut off here */
		rc = MR_OK;
	if (rc == MR_OK)
		rc = room->driver->record_drop(room, LINK_KIND, "", name, err);
	if (rc != MR_OK)
		return rc;
	drop_rights(room, name);
	drop_records(room, CARRIED_KIND, name);
	drop_records(room, CARRYING_KIND, name);
	*err = (struct mr_error){ 0 };
	if (ret_dead)
		*ret_dead = dead;
	return MR_OK;
}
