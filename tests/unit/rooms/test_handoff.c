/* SPDX-License-Identifier: MIT */
/* Rooms of the mailbox skill: the root, who is who, what a look finds and mends. */
#include "skill.h"

/* ---- The root ---- */

static enum mr_rc
reopen(struct place *p, struct mr_error *err)
{
	struct mr_room *again = NULL;
	enum mr_rc rc = room_open_spec(p->room->spec, NULL, &again, err);

	mr_room_close(again);
	return rc;
}

static void
a_root_that_others_could_have_laid_is_refused(void **state)
{
	struct place *p = *state;
	struct mr_error err = { 0 };
	struct stat st;
	char aside[200];

	assert_int_equal(reopen(p, &err), MR_OK);
	assert_int_equal(stat(path_of(p, ""), &st), -1); /* looking makes nothing */
	add(p, "alice");
	assert_int_equal(stat(path_of(p, ""), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(chmod(path_of(p, ""), 0755), 0);
	assert_int_equal(reopen(p, &err), MR_OK);
	assert_int_equal(chmod(path_of(p, ""), 0777), 0);
	assert_int_equal(reopen(p, &err), MR_REFUSED);
	assert_int_equal(chmod(path_of(p, ""), 0700), 0);
	(void)snprintf(aside, sizeof aside, "%s/aside", p->folder);
	assert_int_equal(rename(path_of(p, ""), aside), 0);
	assert_int_equal(symlink(aside, path_of(p, "")), 0);
	assert_int_equal(reopen(p, &err), MR_REFUSED);
	assert_int_equal(unlink(path_of(p, "")), 0);
	struct mr_room *none = NULL;

	assert_int_equal(room_open_spec("handoff:/no/such/place/root", NULL, &none, &err), MR_NOTFOUND);
	assert_int_equal(room_open_spec("handoff:relative", NULL, &none, &err), MR_REFUSED);
}

/* ---- Who is who ---- */

static void
names_are_spelled_as_addresses(void **state)
{
	struct place *p = *state;
	struct mr_error err = { 0 };
	char got[MR_ADDRESS_MAX + 1];
	static const char *const same[] = { "Old Bob", "Old%20Bob", NULL };

	add(p, "Old%20Bob");
	for (size_t i = 0; same[i]; i++) {
		assert_int_equal(p->ops->spell(p->room, same[i], got, &err), MR_OK);
		assert_string_equal(got, "Old%20Bob");
	}
	assert_int_equal(p->ops->spell(p->room, id_of(p, "Old%20Bob"), got, &err), MR_OK);
	assert_string_equal(got, "Old%20Bob");
	assert_int_equal(p->ops->spell(p->room, "nobody", got, &err), MR_OK);
	assert_string_equal(got, "nobody");
	assert_int_equal(p->ops->spell(p->room, "a\"b", got, &err), MR_REFUSED);
	assert_int_equal(p->ops->spell(p->room, "-x", got, &err), MR_REFUSED);
}

static bool
note_name(void *ctx, const struct mr_agent *agent)
{
	return names_add(ctx, str_of(agent->name));
}

static void
folders_without_a_name_are_agents_too(void **state)
{
	struct place *p = *state;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct mr_error err = { 0 };
	struct mr_agent agent = { 0 };

	add(p, "bob");
	assert_int_equal(mkdir(path_of(p, "stray-1"), 0755), 0);
	put(p, "body.md", "what the original's tests leave here");
	assert_int_equal(p->ops->each_agent(p->room, false, note_name, &names, &err), MR_OK);
	assert_int_equal(names.n, 2);
	assert_true(names_has(&names, "bob") && names_has(&names, "stray-1"));
	send(p, (struct sent){ .from = "stray-1" });
	assert_int_equal(look(p, "stray-1", BOTH).n, 0);
	assert_int_equal(p->ops->find_agent(p->room, "stray-2", &agent, &err), MR_NOTFOUND);
	assert_int_equal(p->ops->find_agent(p->room, "..", &agent, &err), MR_NOTFOUND);
	assert_int_equal(try_add(p, "stray-1", &err), MR_REFUSED);
	assert_int_equal(try_add(p, "bob", &err), MR_EXISTS);
}

static void
a_registry_cannot_lead_out_of_the_root(void **state)
{
	struct place *p = *state;
	struct mr_error err = { 0 };
	struct delivered done = { 0 };

	add(p, "alice");
	put(p, "registry.json",
	    "{\"evil\": {\"id\":\"../../etc\",\"inbox\":\"/etc/inbox\"}, \"alice\": {\"id\":\"a\"}}");
	assert_int_equal(try_send(p, (struct sent){ .to = "evil" }, &done, &err), MR_REFUSED);
	assert_int_equal(look(p, "alice", BOTH).n, 0);
}

static void
who_has_no_mailbox_cannot_send(void **state)
{
	struct place *p = *state;
	struct mr_error err = { 0 };
	struct delivered done = { 0 };

	add(p, "bob");
	assert_int_equal(try_send(p, (struct sent){ .from = "ghost" }, &done, &err), MR_REFUSED);
	assert_non_null(strstr(err.hint, "register"));
	assert_int_equal(try_send(p, (struct sent){ .from = "bob", .to = "ghost" }, &done, &err), MR_NOTFOUND);
}

static void
pruning_refuses_unread_mail_unless_forced(void **state)
{
	struct place *p = *state;
	struct mr_error err = { 0 };
	struct stat st;
	size_t dead = 99;
	char id[HANDOFF_ID_MAX + 1];

	add(p, "alice");
	add(p, "bob");
	(void)snprintf(id, sizeof id, "%s", id_of(p, "bob"));
	struct delivered first = send(p, (struct sent){ 0 });

	assert_int_equal(p->ops->remove_box(p->room, "bob", false, &dead, &err), MR_REFUSED);
	assert_int_equal(look(p, "bob", MR_INBOX).n, 1);
	assert_int_equal(p->ops->mark(p->room, "bob", first.id, MR_SEEN, 0, 0, &err), MR_OK);
	assert_int_equal(p->ops->remove_box(p->room, "bob", false, &dead, &err), MR_OK);
	assert_int_equal(dead, 0);
	assert_int_equal(stat(path_of(p, id), &st), -1);
	assert_int_equal(p->ops->remove_box(p->room, "bob", false, &dead, &err), MR_NOTFOUND);
	add(p, "bob");
	send(p, (struct sent){ 0 });
	assert_int_equal(p->ops->remove_box(p->room, "bob", true, &dead, &err), MR_OK);
	assert_int_equal(dead, 1);
}

/* ---- Care ---- */

static void
count_finding(void *ctx, const struct mr_finding *finding)
{
	struct seen *seen = ctx;

	seen->n += finding->severity != MR_FINE && strcmp(finding->code, "space") != 0;
	seen->troubles += finding->fixed;
}

static struct seen
inspect(struct place *p, bool fix)
{
	struct seen seen = { 0 };
	struct mr_error err = { 0 };

	assert_int_equal(p->ops->inspect(p->room, fix, count_finding, &seen, &err), MR_OK);
	return seen;
}

static void
a_look_finds_and_mends(void **state)
{
	struct place *p = *state;
	mr_auto(buf_done) struct buf registry = BUF_INIT;
	char path[400];

	add(p, "bob");
	free(p->room->state_dir); /* what is taken away is kept there */
	p->room->state_dir = strdup(p->folder);
	assert_int_equal(inspect(p, false).n, 0);
	buf_addf(&registry, "{\"bob\":\n{\"id\":\"%s\",\"inbox\":\"/elsewhere/inbox\"}}", id_of(p, "bob"));
	put(p, "registry.json", buf_z(&registry));
	for (int i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof path, "%s/tmp/%sleft.md", id_of(p, "bob"), i ? FILE_CARRY : "");
		put(p, path, "half");
	}
	assert_int_equal(chmod(path_of(p, ""), 0755), 0);
	assert_int_equal(inspect(p, false).n, 3); /* somebody may be writing these */
	clock_shift_ms((int64_t)3 * 86400 * 1000);
	assert_int_equal(inspect(p, false).n, 5);
	assert_int_equal(inspect(p, true).troubles, 4);
	assert_int_equal(inspect(p, false).n, 1);
	clock_shift_ms(0);
	assert_int_equal(look(p, "bob", BOTH).troubles, 0);
	assert_int_equal(access(path_of(p, path), F_OK), 0); /* a ticket tells of this one */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_root_that_others_could_have_laid_is_refused),
		TEST(names_are_spelled_as_addresses),
		TEST(folders_without_a_name_are_agents_too),
		TEST(a_registry_cannot_lead_out_of_the_root),
		TEST(who_has_no_mailbox_cannot_send),
		TEST(pruning_refuses_unread_mail_unless_forced),
		TEST(a_look_finds_and_mends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
