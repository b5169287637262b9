/* SPDX-License-Identifier: MIT */
/*
 * link_names.c - the name that an agent of this room has in the other room.
 *
 * The table is lines "Name: LOCAL FOREIGN" of the link's record, one to one. It is changed under the record's lock,
 * where a second use of either name is noticed. The entry is durable before the mailbox there is made, so that a
 * mailbox of ours is never taken for a stranger's after a kill; the next to write under that name makes the mailbox.
 *
 * The mailbox there has a mark, which follows from this room's identity, the link and the agent that it stands for. The
 * carrier checks the mark each time before it reads that mailbox or writes in its name: any program that can write into
 * this room could change the table, and would otherwise open every mailbox of the other room.
 *
 * A name that an agent has there is not used, because its mail would be carried to us. The check for this is also made
 * under the lock; otherwise the mailbox that another carrier just made for the same entry would look like a stranger's.
 * A registration there between that check and our mailbox, a moment later, is not noticed, because no lock spans two
 * rooms.
 */
#include "base/id.h"
#include "message/address.h"
#include "office/link/link.h"
#include "office/rules/config.h"

const char *
link_foreign_of(const struct mr_link *link, const char *local)
{
	for (size_t i = 0; i < link->names_n; i++)
		if (strcmp(link->names[i].local, local) == 0)
			return link->names[i].foreign;
	return NULL;
}

const char *
link_local_of(const struct mr_link *link, const char *foreign)
{
	for (size_t i = 0; i < link->names_n; i++)
		if (strcmp(link->names[i].foreign, foreign) == 0)
			return link->names[i].local;
	return NULL;
}

/* ---- Making a name ---- */

/* The user's name, in that room's spelling. Without one it is made of `local`: "rig/polecats/nux" -> "rig-polecats-nux"
 * and "bob@chip" -> "bob-at-chip". */
static enum mr_rc
choose_name(
    struct mr_room *there, const char *local, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;
	bool plain = there->driver->abilities &
		     ROOM_PLAIN_NAMES; /* characters that they would refuse or rewrite become dashes */

	if (given)
		return ROOM_HAS(there, spell) ? there->driver->spell(there, given, ret, err)
					      : address_normal(str_of(given), ret, err);
	for (const char *p = local; *p; p++) {
		bool fits = ascii_alnum(*p) || *p == '_' || *p == '-';

		if (*p == '@')
			buf_adds(&name, "-at-");
		else
			buf_addc(&name, plain && !fits ? '-' : *p);
	}
	return buf_ok(&name) ? address_normal(buf_str(&name), ret, err) : mr_nomem(err);
}

/* ---- The table ---- */

struct search {
	const char *name;
	bool found;
};

static bool
note_if_found(void *ctx, const struct mr_agent *agent)
{
	struct search *search = ctx;

	search->found = strcmp(agent->name, search->name) == 0;
	return !search->found;
}

enum mr_rc
link_lives_there(struct mr_room *there, const char *name, struct mr_error *err)
{
	const struct room_driver *d = there->driver;
	struct search search = { .name = name };
	enum mr_rc rc = MR_NOTFOUND;

	if (!(d->abilities & ROOM_OPEN_BOXES))
		return DRIVER_HAS(d, find_agent) ? agent_exists(there, name, err) : MR_NOTFOUND;
	/* In a room where any name can be written to, an agent exists if it has a mailbox. */
	if (DRIVER_HAS(d, each_agent))
		rc = d->each_agent(there, true, note_if_found, &search, err);
	return rc == MR_OK && !search.found ? MR_NOTFOUND : rc;
}

/* Enters the name, unless it is taken. MR_EMPTY: `local` has the name ret_had already. */
static enum mr_rc
enter(struct mr_room *room, struct mr_room *there, const char *link, const char *local, const char *foreign, bool adopt,
    char ret_had[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };
	mr_auto(record_done) struct record lines = { 0 };
	mr_auto(mr_link_done) struct mr_link now = { 0 };
	mr_auto(buf_done) struct buf by = BUF_INIT;

	TRY(record_edit_begin(&e, room, LINK_KIND, "", link, err));
	if (!e.exists)
		return mr_fail(err, MR_NOTFOUND, "no link '%s'", link);
	TRY(record_parse(buf_str(&e.text), &lines, err));
	TRY(link_parse(&lines, link, &now, err));
	const char *had = link_foreign_of(&now, local), *taken = link_local_of(&now, foreign);

	if (had) {
		(void)snprintf(ret_had, MR_ADDRESS_MAX + 1, "%s", had);
		return MR_EMPTY;
	}
	enum mr_rc rc = taken ? MR_OK : adopt ? MR_NOTFOUND : link_lives_there(there, foreign, err);

	if (rc == MR_OK) {
		if (taken)
			buf_addf(&by, "'%s'", taken);
		return mr_fail(err, MR_EXISTS,
		    "'%s' cannot be '%s' in '%s': %s has that name there\n`mailroom link name %s %s OTHER` gives another name",
		    local, foreign, link, taken ? buf_z(&by) : "somebody", link, local);
	}
	if (rc != MR_NOTFOUND)
		return rc;
	*err = (struct mr_error){ 0 };
	buf_addf(&e.text, "Name: %s %s\n", local, foreign);
	return record_edit_save(&e, err);
}

static enum mr_rc
take_out(struct mr_room *room, const char *link, const char *local, const char *foreign, struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };
	mr_auto(buf_done) struct buf line = BUF_INIT;

	TRY(record_edit_begin(&e, room, LINK_KIND, "", link, err));
	buf_addf(&line, "Name: %s %s\n", local, foreign);
	const char *at = buf_ok(&line) ? strstr(buf_z(&e.text), buf_z(&line)) : NULL;

	if (!at)
		return MR_EMPTY;
	size_t from = (size_t)(at - e.text.ptr);

	buf_clear(&e.text);
	buf_add(&e.text, (struct mr_str){ e.before.ptr, from });
	buf_adds(&e.text, e.before.ptr + from + line.len);
	return record_edit_save(&e, err);
}

/* ---- The mailbox ---- */

static struct hash_name
make_mark(const struct mr_room *room, const char *link, const char *local)
{
	return hash_name_short("%s\n%s\n%s", room->identity, link, local);
}

enum mr_rc
link_is_stand_in(struct mr_room *room, struct mr_room *there, const char *link, const char *local, const char *foreign,
    struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	mr_auto(buf_done) struct buf right = BUF_INIT, pair = BUF_INIT;

	if (ROOM_HAS(there, find_agent))
		TRY(there->driver->find_agent(there, foreign, &agent, err));
	buf_addf(&right, "Adopt-%s", link);
	buf_addf(&pair, "%s %s", local, foreign);
	if ((agent.role && strstr(agent.role, make_mark(room, link, local).z)) ||
	    config_has(room, buf_z(&right), buf_z(&pair)))
		return MR_OK;
	if (link_lives_there(there, foreign, err) == MR_NOTFOUND) /* a kind in which any name can be written to */
		return MR_NOTFOUND;
	return mr_fail(err, MR_EXISTS,
	    "'%.80s' in '%s' is not a mailbox that this link made for '%.80s'\n"
	    "if it is meant, type in a terminal: mailroom link name %s '%.60s' '%.60s' --adopt",
	    foreign, link, local, link, local, foreign);
}

bool
link_is_marked(struct mr_room *room, const struct mr_link *link, const struct mr_link_name *name)
{
	mr_auto(link_close) struct mr_room *there = NULL;
	enum mr_rc rc = link_open(room, link, &there, IGNORED);

	if (rc == MR_OK)
		rc = link_is_stand_in(room, there, link->name, name->local, name->foreign, IGNORED);
	/* MR_NOTFOUND: a missing mailbox is made with its mark. MR_IO: the other room is away, and its marks with it.
	 */
	return rc == MR_OK || rc == MR_NOTFOUND || rc == MR_IO;
}

/* Makes the mailbox with its mark. An existing one is accepted if it is adopted, or if another carrier made it. */
static enum mr_rc
make_mailbox(struct mr_room *room, struct mr_room *there, const char *link, const char *local, const char *name,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf role = BUF_INIT;
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .wake = "" };

	if (!ROOM_HAS(there, add_agent))
		return MR_OK;
	buf_addf(
	    &role, "stands for %s of another room (mailroom link, mark %s)", local, make_mark(room, link, local).z);
	TRY(mr_got(buf_ok(&role), err));
	agent.role = buf_z(&role);
	(void)snprintf(agent.name, sizeof(agent.name), "%s", name);
	enum mr_rc rc = there->driver->add_agent(there, &agent, err);

	return rc == MR_EXISTS ? link_is_stand_in(room, there, link, local, name, err) : rc;
}

enum mr_rc
link_unread(struct mr_room *there, const char *name, unsigned folders, struct mr_names *ret, struct mr_error *err)
{
	struct scan_request want = { .folders = folders, .depth = SCAN_NAMES, .unread_only = true };

	return there->driver->scan(there, name, &want, office_note_id, ret, err);
}

/* The mailbox first: a name without a mailbox is noticed later, a mailbox without a name never. */
void
link_forget_name(struct mr_room *room, struct mr_room *there, const struct mr_link *link, const char *local)
{
	mr_auto(mr_names_done) struct mr_names unread = { 0 };
	unsigned folders = office_folders(there, MR_INBOX | MR_HELD);
	const char *foreign = link_foreign_of(link, local);
	size_t dead;

	if (!foreign || strchr(local, '@') || agent_exists(room, local, IGNORED) != MR_NOTFOUND)
		return;
	enum mr_rc rc = link_is_stand_in(room, there, link->name, local, foreign, IGNORED);

	if (rc == MR_OK && (link_unread(there, foreign, folders, &unread, IGNORED) != MR_OK || unread.n > 0 ||
			       !ROOM_HAS(there, remove_box)))
		return;
	if (rc == MR_OK)
		rc = there->driver->remove_box(there, foreign, false, &dead, IGNORED);
	if (rc == MR_OK || rc == MR_NOTFOUND)
		(void)take_out(room, link->name, local, foreign, IGNORED);
}

static enum mr_rc
introduce(struct mr_room *room, struct mr_room *there, const char *link, const char *local, const char *foreign,
    bool adopt, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	mr_auto(mr_link_done) struct mr_link now = { 0 };
	char had[MR_ADDRESS_MAX + 1];

	TRY(mr_link_get(room, link, &now, err));
	const char *known = link_foreign_of(&now, local);

	if (!known) {
		TRY(choose_name(there, local, foreign, ret, err));
		enum mr_rc rc = enter(room, there, link, local, ret, adopt, had, err);

		if (rc == MR_OK) {
			rc = make_mailbox(room, there, link, local, ret, err);
			if (rc == MR_REFUSED || rc == MR_UNSUPPORTED || rc == MR_EXISTS) /* then it is not its name */
				(void)take_out(room, link, local, ret, IGNORED);
		}
		if (rc != MR_EMPTY)
			return rc;
		known = had; /* another carrier was faster */
	}
	if (foreign && strcmp(known, foreign) != 0)
		return mr_fail(err, MR_EXISTS,
		    "'%s' is already known in '%s', as '%s'\nanswers come to that name; it is kept as long as the link exists",
		    local, link, known);
	(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", known);
	*err = (struct mr_error){ 0 };
	/* A kill may have come before the mailbox was made, or its owner removed it. */
	if (link_lives_there(there, ret, err) == MR_OK)
		return link_is_stand_in(room, there, link, local, ret, err);
	return make_mailbox(room, there, link, local, ret, err);
}

enum mr_rc
link_proxy(struct mr_room *room, struct mr_room *there, const char *link, const char *local,
    char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	struct mr_str agent, of;

	address_split(str_of(local), &agent, &of);
	if (str_eq(of, str_of(link)))
		return mr_fail(err, MR_REFUSED, "'%s' lives in '%s' and needs no name there", local, link);
	return introduce(room, there, link, local, NULL, false, ret, err);
}

enum mr_rc
mr_link_introduce(struct mr_room *room, const char *link, const char *local, const char *foreign, bool adopt,
    char ret_foreign[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	mr_auto(link_close) struct mr_room *there = NULL;
	mr_auto(mr_link_done) struct mr_link known = { 0 };
	mr_auto(buf_done) struct buf right = BUF_INIT, pair = BUF_INIT;
	char name[MR_ADDRESS_MAX + 1], made[MR_ADDRESS_MAX + 1];

	TRY(mr_link_get(room, link, &known, err));
	/* An agent of this room in its registered spelling, or AGENT@LINK of another link. */
	mr_auto(mr_resolution_done) struct mr_resolution found = { 0 };

	TRY(mr_resolve(room, "", local, &found, err));
	if (strcmp(found.form, "agent") != 0 && strcmp(found.form, "operator") != 0 && strcmp(found.form, "link") != 0)
		return mr_fail(
		    err, MR_REFUSED, "'%.80s' is a %s: only agents can be known in '%s'", local, found.form, link);
	if (strcmp(found.form, "link") == 0 && str_ends(str_of(found.name), link) &&
	    found.name[strlen(found.name) - strlen(link) - 1] == '@')
		return mr_fail(err, MR_REFUSED, "'%.80s' lives in '%s' and needs no name there", local, link);
	(void)snprintf(name, MR_ADDRESS_MAX + 1, "%s", found.name);
	TRY(link_open(room, &known, &there, err));
	if (adopt) { /* a mailbox that the link did not make needs a line in the user's configuration */
		TRY(choose_name(there, name, foreign, made, err));
		buf_addf(&right, "Adopt-%s", link);
		buf_addf(&pair, "%s %s", name, made);
		TRY(mr_config_set(room, buf_z(&right), buf_z(&pair), true, err));
	}
	TRY(introduce(room, there, link, name, foreign, adopt, made, err));
	(void)snprintf(ret_foreign, MR_ADDRESS_MAX + 1, "%s", made);
	return MR_OK;
}
