/* SPDX-License-Identifier: MIT */
/*
 * link_names.c - who of us is called what over there.
 *
 * The table is lines "Name: LOCAL FOREIGN" of the link's record, one to one: changed under the record's lock, where a
 * second use of either name is seen. The entry is durable before the mailbox over there is made, so that a mailbox of
 * ours is never taken for a stranger's after a kill; the next to write under that name makes the mailbox.
 *
 * The mailbox over there has a mark, which follows from this room's identity, the link and the agent it stands for. The
 * carrier asks for the mark each time it is about to read that mailbox or to write in its name: the table could be
 * written by anybody who can write into this room, and would otherwise open every mailbox of the other one.
 *
 * A name that somebody has over there is not taken: his mail would be carried to us. That he has none is looked up
 * under the lock, too, or the mailbox that another carrier just made for the same entry would pass for a stranger's.
 * Who registers there between that look and our mailbox, a moment later, is not seen: no lock spans two rooms.
 */
#include "message/address.h"
#include "base/id.h"
#include "office/rules/config.h"
#include "office/link/link.h"

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

/* Kinds whose own programs take fewer letters than an address has: what they would refuse or rewrite is a dash. */
static bool
wants_plain_names(const char *kind)
{
	static const char *const plain[] = { "teams", "chipset", "workspace" };

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (strcmp(kind, plain[i]) == 0)
			return true;
	return false;
}

static bool
is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* "rig/polecats/nux" -> "rig-polecats-nux", "bob@chip" -> "bob-at-chip" */
static enum mr_rc
make_name(const struct mr_room *there, const char *local, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;
	bool plain = wants_plain_names(there->driver->kind);

	for (const char *p = local; *p; p++) {
		if (*p == '@')
			buf_adds(&name, "-at-");
		else
			buf_addc(&name, plain && !is_plain(*p) ? '-' : *p);
	}
	if (!buf_ok(&name))
		return mr_nomem(err);
	return address_normal(buf_str(&name), ret, err);
}

/* What the user gave, in that room's spelling. */
static enum mr_rc
spell_name(struct mr_room *there, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	return ROOM_HAS(there, spell) ? there->driver->spell(there, given, ret, err)
				      : address_normal(str_of(given), ret, err);
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
		return DRIVER_HAS(d, find_agent) || DRIVER_HAS(d, has_agent) ? agent_exists(there, name, err)
									     : MR_NOTFOUND;
	/* Where everybody can be written to, he is there who has a mailbox. */
	if (DRIVER_HAS(d, each_agent))
		rc = d->each_agent(there, note_if_found, &search, err);
	return rc == MR_OK && !search.found ? MR_NOTFOUND : rc;
}

struct entering {
	struct mr_room *there;
	const char *link, *local, *foreign;
	bool adopt;
	char had[MR_ADDRESS_MAX + 1]; /* the name that `local` has already, or "" */
};

static enum mr_rc
refuse_taken(const struct entering *e, const char *foreign, const char *who, struct mr_error *err)
{
	return mr_fail(err, MR_EXISTS,
	    "'%s' cannot be '%s' in '%s': %s is called so there\n`mailroom link name %s %s OTHER` gives another name",
	    e->local, foreign, e->link, who, e->link, e->local);
}

/* MR_EMPTY: nothing to change, e->had says which name it is. */
static enum mr_rc
enter(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	struct entering *e = ctx;
	mr_auto(record_done) struct record lines = { 0 };
	size_t local_len = strlen(e->local);

	if (!exists)
		return mr_fail(err, MR_NOTFOUND, "no link '%s'", e->link);
	TRY(record_parse(buf_str(text), &lines, err));
	for (size_t i = 0; i < lines.n; i++) {
		const char *value = lines.lines[i].value, *space = strchr(value, ' ');

		if (!ascii_caseeq(lines.lines[i].name, "Name") || !space)
			continue;
		if ((size_t)(space - value) == local_len && strncmp(value, e->local, local_len) == 0) {
			(void)snprintf(e->had, sizeof(e->had), "%s", space + 1);
			return MR_EMPTY;
		}
		if (strcmp(space + 1, e->foreign) == 0) {
			mr_auto(buf_done) struct buf who = BUF_INIT;

			buf_addf(&who, "'%.*s'", (int)(space - value), value);
			return refuse_taken(e, e->foreign, buf_z(&who), err);
		}
	}
	enum mr_rc rc = e->adopt ? MR_NOTFOUND : link_lives_there(e->there, e->foreign, err);

	if (rc != MR_NOTFOUND)
		return rc == MR_OK ? refuse_taken(e, e->foreign, "somebody", err) : rc;
	*err = (struct mr_error){ 0 };
	buf_addf(text, "Name: %s %s\n", e->local, e->foreign);
	return buf_ok(text) ? MR_OK : mr_nomem(err);
}

static enum mr_rc
take_out(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	const struct entering *e = ctx;
	mr_auto(buf_done) struct buf line = BUF_INIT, out = BUF_INIT;
	const char *at;

	buf_addf(&line, "Name: %s %s\n", e->local, e->foreign);
	at = exists ? strstr(buf_z(text), buf_z(&line)) : NULL;
	if (!at)
		return MR_EMPTY;
	buf_add(&out, (struct mr_str){ text->ptr, (size_t)(at - text->ptr) });
	buf_adds(&out, at + line.len);
	buf_clear(text);
	buf_add(text, buf_str(&out));
	return buf_ok(&line) && buf_ok(&out) && buf_ok(text) ? MR_OK : mr_nomem(err);
}

/* ---- The mailbox ---- */

#define MARK_LEN 32

static void
make_mark(const struct mr_room *room, const char *link, const char *local, char ret[MARK_LEN + 1])
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char hash[65];

	buf_addf(&text, "%s\n%s\n%s", room->identity, link, local);
	sha256_hex(buf_str(&text), hash);
	memcpy(ret, hash, MARK_LEN);
	ret[MARK_LEN] = '\0';
}

enum mr_rc
link_is_stand_in(struct mr_room *room, struct mr_room *there, const char *link, const char *local, const char *foreign,
    struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	mr_auto(buf_done) struct buf right = BUF_INIT, pair = BUF_INIT;
	char mark[MARK_LEN + 1];
	enum mr_rc rc = ROOM_HAS(there, find_agent) ? there->driver->find_agent(there, foreign, &agent, err) : MR_OK;

	if (rc != MR_OK)
		return rc;
	make_mark(room, link, local, mark);
	buf_addf(&right, "Adopt-%s", link);
	buf_addf(&pair, "%s %s", local, foreign);
	if (agent.role && strstr(agent.role, mark))
		return MR_OK;
	if (config_has(room, buf_z(&right), buf_z(&pair)))
		return MR_OK;
	if (link_lives_there(there, foreign, err) == MR_NOTFOUND) /* a kind in which everybody can be written to */
		return MR_NOTFOUND;
	return mr_fail(err, MR_EXISTS,
	    "'%.80s' in '%s' is not a mailbox that this link made for '%.80s'\n"
	    "if it is meant, type in a terminal: mailroom link name %s '%.60s' '%.60s' --adopt",
	    foreign, link, local, link, local, foreign);
}

bool
link_is_marked(struct mr_room *room, const struct mr_link *link, const struct mr_link_name *name)
{
	struct mr_room *there = NULL;
	struct mr_error ignored = { 0 };
	enum mr_rc rc = link_open(room, link, &there, &ignored);

	if (rc == MR_OK)
		rc = link_is_stand_in(room, there, link->name, name->local, name->foreign, &ignored);
	mr_room_close(there);
	return rc == MR_OK || rc == MR_NOTFOUND; /* one that is not there is made with its mark */
}

/* Another spelling of case is another's name, too. */
static enum mr_rc
make_mailbox(struct mr_room *room, struct mr_room *there, const char *link, const char *local, const char *name,
    struct mr_error *err)
{
	char mark[MARK_LEN + 1];
	mr_auto(buf_done) struct buf role = BUF_INIT;
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .wake = "" };

	if (!ROOM_HAS(there, add_agent))
		return MR_OK;
	make_mark(room, link, local, mark);
	buf_addf(&role, "stands for %s of another room (mailroom link, mark %s)", local, mark);
	if (!buf_ok(&role))
		return mr_nomem(err);
	agent.role = buf_z(&role);
	(void)snprintf(agent.name, sizeof(agent.name), "%s", name);
	return there->driver->add_agent(there, &agent, err);
}

static enum mr_rc
enter_new(struct mr_room *room, struct entering *e, struct mr_error *err)
{
	struct mr_error second = { 0 };
	enum mr_rc rc = room->driver->record_change(room, LINK_KIND, "", e->link, enter, e, err);

	if (rc != MR_OK)
		return rc;
	rc = make_mailbox(room, e->there, e->link, e->local, e->foreign, err);
	if (rc == MR_EXISTS) /* adopted, or another carrier was quicker */
		rc = link_is_stand_in(room, e->there, e->link, e->local, e->foreign, err);
	if (rc == MR_REFUSED || rc == MR_UNSUPPORTED || rc == MR_EXISTS) /* then it is not his name */
		(void)room->driver->record_change(room, LINK_KIND, "", e->link, take_out, e, &second);
	return rc;
}

static enum mr_rc
introduce(struct mr_room *room, struct mr_room *there, const char *link, const char *local, const char *foreign,
    bool adopt, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	mr_auto(mr_link_done) struct mr_link now = { 0 };
	struct entering e = { .there = there, .link = link, .local = local, .foreign = ret, .adopt = adopt };
	const char *known;
	enum mr_rc rc = mr_link_get(room, link, &now, err);

	if (rc != MR_OK)
		return rc;
	known = link_foreign_of(&now, local);
	if (!known) {
		rc = foreign ? spell_name(there, foreign, ret, err) : make_name(there, local, ret, err);
		if (rc == MR_OK)
			rc = enter_new(room, &e, err);
		if (rc != MR_EMPTY)
			return rc;
		known = e.had; /* another carrier was quicker */
	}
	if (foreign && strcmp(known, foreign) != 0) {
		return mr_fail(err, MR_EXISTS,
		    "'%s' is known in '%s' already, as '%s'\nanswers come to that name; it is kept as long as the link",
		    local, link, known);
	}
	(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", known);
	*err = (struct mr_error){ 0 };
	/* A kill may have come before the mailbox, or its owner removed it. */
	if (link_lives_there(there, ret, err) == MR_OK)
		return link_is_stand_in(room, there, link, local, ret, err);
	rc = make_mailbox(room, there, link, local, ret, err);
	return rc == MR_EXISTS ? link_is_stand_in(room, there, link, local, ret, err) : rc;
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

/* An agent of this room in its registered spelling, or AGENT@LINK of another link. */
static enum mr_rc
check_local(
    struct mr_room *room, const char *link, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	mr_auto(mr_resolution_done) struct mr_resolution found = { 0 };

	TRY(mr_resolve(room, "", given, &found, err));
	if (strcmp(found.form, "agent") != 0 && strcmp(found.form, "operator") != 0 && strcmp(found.form, "link") != 0)
		return mr_fail(
		    err, MR_REFUSED, "'%.80s' is a %s: only agents can be known in '%s'", given, found.form, link);
	if (strcmp(found.form, "link") == 0 && str_ends(str_of(found.name), link) &&
	    found.name[strlen(found.name) - strlen(link) - 1] == '@')
		return mr_fail(err, MR_REFUSED, "'%.80s' lives in '%s' and needs no name there", given, link);
	(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", found.name);
	return MR_OK;
}

/* A mailbox that the link did not make is used only with a line in the user's configuration. */
static enum mr_rc
allow_adoption(struct mr_room *room, struct mr_room *there, const char *link, const char *local, const char *foreign,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf name = BUF_INIT, pair = BUF_INIT;
	char there_called[MR_ADDRESS_MAX + 1];
	enum mr_rc rc =
	    foreign ? spell_name(there, foreign, there_called, err) : make_name(there, local, there_called, err);

	if (rc != MR_OK)
		return rc;
	buf_addf(&name, "Adopt-%s", link);
	buf_addf(&pair, "%s %s", local, there_called);
	return mr_config_set(room, buf_z(&name), buf_z(&pair), true, err);
}

enum mr_rc
mr_link_introduce(struct mr_room *room, const char *link, const char *local, const char *foreign, bool adopt,
    char ret_foreign[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	mr_auto(mr_link_done) struct mr_link known = { 0 };
	struct mr_room *there = NULL;
	char name[MR_ADDRESS_MAX + 1], made[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = mr_link_get(room, link, &known, err);

	if (rc == MR_OK)
		rc = check_local(room, link, local, name, err);
	if (rc == MR_OK)
		rc = link_open(room, &known, &there, err);
	if (rc != MR_OK)
		return rc;
	if (adopt)
		rc = allow_adoption(room, there, link, name, foreign, err);
	if (rc == MR_OK)
		rc = introduce(room, there, link, name, foreign, adopt, made, err);
	mr_room_close(there);
	if (rc == MR_OK)
		(void)snprintf(ret_foreign, MR_ADDRESS_MAX + 1, "%s", made);
	return rc;
}
