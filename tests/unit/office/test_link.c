/* SPDX-License-Identifier: MIT */
/* Links: their records, the table of names, and who is meant by AGENT@LINK. */
#include "office/link/link.h"
#include "town.h"

struct pair { /* a town and another room */
	struct town town;
	char dir[64];
	char spec[96];
	struct mr_room *blue;
};

static void
add_blue(struct pair *p, const char *name)
{
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };
	struct mr_error err = { 0 };

	(void)snprintf(agent.name, sizeof(agent.name), "%s", name);
	assert_ok(p->blue->driver->add_agent(p->blue, &agent, &err));
}

static struct pair
pair_new(void **state, bool linked)
{
	struct pair p = { .town = town_new(state) };
	struct mr_init_options options = { .name = "blue", .sync = "none" };
	struct mr_error err = { 0 };
	char *path = NULL;

	(void)snprintf(p.dir, sizeof(p.dir), "/tmp/mailroom-blue-XXXXXX");
	assert_non_null(mkdtemp(p.dir));
	assert_ok(mr_room_init(p.dir, p.dir, &options, &path, &err));
	(void)snprintf(p.spec, sizeof(p.spec), "maildir:%s", path);
	free(path);
	assert_ok(mr_room_open(p.spec, NULL, &p.blue, &err));
	add_blue(&p, "dora");
	if (linked)
		assert_ok(mr_link_create(p.town.room, &p.town.alice, "blue", p.spec, false, &err));
	return p;
}

static void
pair_done(struct pair *p)
{
	mr_room_close(p->blue);
	(void)nftw(p->dir, town_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	town_done(&p->town);
}

static void
a_link_is_read_back_as_it_was_made(void **state)
{
	struct pair p = pair_new(state, true);
	struct mr_link link = { 0 };
	struct mr_error err = { 0 };
	char foreign[MR_ADDRESS_MAX + 1];

	assert_ok(mr_link_introduce(p.town.room, "blue", "bob", "bob-of-town", false, foreign, &err));
	assert_ok(mr_link_get(p.town.room, "blue", &link, &err));
	assert_string_equal(link.room, p.spec);
	assert_string_equal(link.created_by, "alice");
	assert_true(link.created_ms > 0);
	assert_int_equal(link.names_n, 1);
	assert_string_equal(link_foreign_of(&link, "bob"), "bob-of-town");
	assert_string_equal(link_local_of(&link, "bob-of-town"), "bob");
	assert_null(link_foreign_of(&link, "alice"));
	mr_link_done(&link);
	assert_ok(agent_exists(p.blue, "bob-of-town", &err));
	pair_done(&p);
}

static void
what_makes_no_sense_is_refused(void **state)
{
	struct pair p = pair_new(state, true);
	struct mr_room *room = p.town.room;
	struct mr_error err = { 0 };
	char foreign[MR_ADDRESS_MAX + 1];

	assert_rc(mr_link_create(room, &p.town.alice, "azure", p.spec, false, &err), MR_EXISTS);
	assert_rc(mr_link_create(room, &p.town.alice, "town", p.spec, false, &err), MR_REFUSED);
	assert_rc(mr_link_create(room, &p.town.alice, "list", p.spec, false, &err), MR_REFUSED);
	assert_rc(mr_link_create(room, &p.town.alice, "Blue", p.spec, false, &err), MR_REFUSED);
	assert_rc(mr_link_create(room, &p.town.alice, "gone", "maildir:/nonexistent/room", false, &err), MR_NOTFOUND);
	if (p.town.dir[0])
		assert_rc(mr_link_create(room, &p.town.alice, "me", room->spec, false, &err), MR_REFUSED);
	assert_rc(mr_link_introduce(room, "blue", "nobody", NULL, false, foreign, &err), MR_NOTFOUND);
	assert_rc(mr_link_introduce(room, "blue", "dora@blue", NULL, false, foreign, &err), MR_REFUSED);
	assert_rc(mr_link_introduce(room, "red", "bob", NULL, false, foreign, &err), MR_NOTFOUND);
	pair_done(&p);
}

/* A room whose place the first message makes. */
static void
what_is_not_there_is_linked_only_when_it_shall_be_made(void **state)
{
	static const char *const kinds[] = { "teams", "chipset", "handoff" };
	struct pair p = pair_new(state, false);
	struct mr_room *room = p.town.room, *there = NULL;
	struct mr_error err = { 0 };
	struct mr_link link = { 0 };
	struct stat st;
	size_t dead = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char spec[128], path[96];

		(void)snprintf(path, sizeof(path), "%s/far-%s", p.dir, kinds[i]);
		(void)snprintf(spec, sizeof(spec), "%s:%s", kinds[i], path);
		assert_rc(mr_link_create(room, &p.town.alice, "far", spec, false, &err), MR_NOTFOUND);
		assert_non_null(strstr(err.hint, "--make"));
		assert_int_equal(stat(path, &st), -1);
		err = (struct mr_error){ 0 };
		assert_ok(mr_link_create(room, &p.town.alice, "far", spec, true, &err));
		assert_int_equal(stat(path, &st), 0);
		assert_ok(mr_link_get(room, "far", &link, &err));
		assert_ok(link_open(room, &link, &there, &err));
		mr_room_close(there);
		(void)nftw(path, town_remove_one, 16, FTW_DEPTH | FTW_PHYS);
		assert_rc(link_open(room, &link, &there, &err), MR_NOTFOUND);
		assert_non_null(strstr(err.hint, "mailroom unlink far"));
		mr_link_done(&link);
		err = (struct mr_error){ 0 };
		assert_ok(mr_link_remove(room, "far", false, &dead, &err));
	}
	pair_done(&p);
}

static void
a_name_has_one_meaning_in_both_directions(void **state)
{
	struct pair p = pair_new(state, true);
	struct mr_room *room = p.town.room;
	struct mr_error err = { 0 };
	char foreign[MR_ADDRESS_MAX + 1] = "";

	assert_ok(mr_link_introduce(room, "blue", "bob", "b", false, foreign, &err));
	assert_rc(mr_link_introduce(room, "blue", "carol", "b", false, foreign, &err), MR_EXISTS);
	assert_non_null(strstr(err.hint, "mailroom link name blue carol OTHER"));
	assert_rc(mr_link_introduce(room, "blue", "carol", "dora", false, foreign, &err), MR_EXISTS);
	assert_rc(mr_link_introduce(room, "blue", "bob", "b2", false, foreign, &err), MR_EXISTS);
	assert_ok(mr_link_introduce(room, "blue", "bob", NULL, false, foreign, &err)); /* as he is known */
	assert_string_equal(foreign, "b");
	assert_ok(mr_link_introduce(room, "blue", "carol", "dora", true, foreign, &err)); /* adopted */
	assert_string_equal(foreign, "dora");
	pair_done(&p);
}

/* A kill after the entry, before the mailbox. */
static void
an_entry_without_its_mailbox_is_made_whole(void **state)
{
	struct pair p = pair_new(state, true);
	struct mr_error err = { 0 };
	char name[MR_ADDRESS_MAX + 1] = "";
	size_t dead = 0;

	assert_ok(link_proxy(p.town.room, p.blue, "blue", "bob", name, &err));
	assert_string_equal(name, "bob");
	assert_ok(p.blue->driver->remove_box(p.blue, "bob", true, &dead, &err));
	assert_rc(agent_exists(p.blue, "bob", &err), MR_NOTFOUND);
	assert_ok(link_proxy(p.town.room, p.blue, "blue", "bob", name, &err));
	assert_ok(agent_exists(p.blue, "bob", &err));
	assert_rc(link_proxy(p.town.room, p.blue, "blue", "dora@blue", name, &err), MR_REFUSED);
	assert_ok(link_proxy(p.town.room, p.blue, "blue", "eve@chip", name, &err));
	assert_string_equal(name, "eve-at-chip");
	pair_done(&p);
}

static void
an_address_there_is_asked_for_there(void **state)
{
	struct pair p = pair_new(state, true);
	struct mr_resolution r = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_resolve(p.town.room, "alice", "dora@blue", &r, &err));
	assert_string_equal(r.form, "link");
	assert_string_equal(r.name, "dora@blue");
	assert_int_equal(r.targets.n, 1);
	assert_string_equal(r.targets.v[0], "queue:link-blue");
	mr_resolution_done(&r);
	assert_ok(mr_resolve(p.town.room, "alice", "agent:dora@blue", &r, &err));
	mr_resolution_done(&r);
	assert_rc(mr_resolve(p.town.room, "alice", "dor@blue", &r, &err), MR_NOTFOUND);
	assert_non_null(strstr(err.hint, "'dora'"));
	assert_rc(mr_resolve(p.town.room, "alice", "dora@red", &r, &err), MR_REFUSED);
	assert_rc(mr_resolve(p.town.room, "alice", "*@blue", &r, &err), MR_REFUSED);
	pair_done(&p);
}

static void
nobody_may_claim_what_waits_for_another_room(void **state)
{
	struct pair p = pair_new(state, true);
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	assert_rc(mr_queue_recv(p.town.room, &p.town.bob, "link-blue", 0, 0, &claim, &msg, &err), MR_REFUSED);
	pair_done(&p);
}

static void
a_link_with_mail_is_removed_by_force_only(void **state)
{
	struct pair p = pair_new(state, true);
	struct mr_error err = { 0 };
	size_t dead = 0;

	add_blue(&p, "alice"); /* a stranger: the mail cannot go */
	town_send(&p.town, &p.town.alice, "dora@blue", "waits", NULL);
	assert_rc(mr_link_remove(p.town.room, "blue", false, &dead, &err), MR_REFUSED);
	assert_ok(mr_link_remove(p.town.room, "blue", true, &dead, &err));
	assert_int_equal(dead, 1);
	assert_int_equal(town_unread(&p.town, "alice").n, 1); /* told */
	assert_rc(mr_link_remove(p.town.room, "blue", true, &dead, &err), MR_NOTFOUND);
	assert_ok(mr_link_create(p.town.room, &p.town.alice, "blue", p.spec, false, &err)); /* and again */
	pair_done(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_link_is_read_back_as_it_was_made),
		ON_BOTH(what_makes_no_sense_is_refused),
		ON_BOTH(what_is_not_there_is_linked_only_when_it_shall_be_made),
		ON_BOTH(a_name_has_one_meaning_in_both_directions),
		ON_BOTH(an_entry_without_its_mailbox_is_made_whole),
		ON_BOTH(an_address_there_is_asked_for_there),
		ON_BOTH(nobody_may_claim_what_waits_for_another_room),
		ON_BOTH(a_link_with_mail_is_removed_by_force_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
