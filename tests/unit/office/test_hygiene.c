/* SPDX-License-Identifier: MIT */
/* Rules for mail: budgets, duplicates, what is no mail, what was not filled in. */
#include "base/clock.h"
#include "office/rules/hygiene.h"
#include "settings.h"

#define POLICY                                                                                                         \
	"Always: escalation HANDOFF\nBudget: polecat 1 except POLECAT_DONE\nBudget: refinery MERGED MERGE_FAILED\n"    \
	"Budget: dog 0\nNo-Answer: HEALTH_CHECK\n"

static struct town
strict_town(void **state, const char *settings)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };

	assert_ok(t.room->driver->record_put(t.room, "policy", "", "mine", str_of(POLICY), &err));
	town_settings(&t, settings);
	return t;
}

/* How many warnings; -1: refused. */
static int
sent(struct town *t, const struct mr_self *self, const char *subject, const char *body, const char *type)
{
	struct mr_draft draft = draft_to(TO("bob"), body);
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	enum mr_rc rc;
	int n;

	draft.subject = subject;
	draft.type = type;
	rc = mr_send(t->room, self, &draft, &receipt, &err);
	if (rc == MR_REFUSED)
		return -1;
	assert_ok(rc);
	n = (int)receipt.warnings.n;
	mr_receipt_done(&receipt);
	return n;
}

static void
a_room_without_rules_lets_everything_pass(void **state)
{
	struct town t = town_new(state);

	for (int i = 0; i < 3; i++)
		assert_int_equal(sent(&t, &t.alice, "MERGED <name>", "Branch: <branch>", NULL), 0);
	town_done(&t);
}

static void
a_role_has_a_budget(void **state)
{
	struct town t = strict_town(state, "Hygiene-Policy: mine\n");
	struct mr_self nux, again, dog, refinery;

	town_register(&t, "gp/polecats/nux", false, &nux);
	town_register(&t, "gp/dog", false, &dog);
	town_register(&t, "gp/refinery", false, &refinery);
	assert_int_equal(sent(&t, &nux, "one", "text", NULL), 0);
	assert_int_equal(sent(&t, &nux, "two", "text", NULL), 1);
	assert_int_equal(sent(&t, &nux, "three", "text", "POLECAT_DONE"), 0); /* does not count */
	assert_int_equal(sent(&t, &nux, "four", "text", "escalation"), 0);
	town_register(&t, "gp/polecats/nux", true, &again);
	assert_int_equal(sent(&t, &again, "five", "text", NULL), 0); /* a life anew */
	assert_int_equal(sent(&t, &again, "six", "text", NULL), 1);
	assert_int_equal(sent(&t, &dog, "seven", "text", NULL), 1);
	assert_int_equal(sent(&t, &refinery, "eight", "text", "MERGED"), 0);
	assert_int_equal(sent(&t, &refinery, "nine", "text", "gossip"), 1);
	assert_int_equal(sent(&t, &refinery, "ten", "text", NULL), 1);
	assert_int_equal(sent(&t, &t.alice, "eleven", "text", NULL), 0); /* no role */
	assert_int_equal(sent(&t, &t.alice, "twelve", "text", NULL), 0);
	town_done(&t);
}

static void
a_registered_role_counts_too(void **state)
{
	struct town t = strict_town(state, "Hygiene-Policy: mine\n");
	struct mr_env env = { 0 };
	struct mr_register_options options = { .role = "dog" };
	struct mr_registration got = { 0 };
	struct mr_error err = { 0 };
	struct mr_self rex = { .agent = "rex" };

	assert_ok(mr_register(t.room, "rex", &env, &options, &got, &err));
	rex.life = got.life;
	assert_int_equal(sent(&t, &rex, "woof", "text", NULL), 1);
	town_done(&t);
}

static void
the_same_twice_is_noticed_across_lives(void **state)
{
	struct town t = strict_town(state, "Hygiene: warn\n");
	struct mr_self again;
	char id[MR_ID_LEN + 1];
	struct mr_receipt receipt = { 0 };
	struct mr_draft answer = draft_to(NULL, "yes"), keyed = draft_to(TO("bob"), "text");
	struct mr_error err = { 0 };

	assert_int_equal(sent(&t, &t.alice, "the build", "is red", NULL), 0);
	assert_int_equal(sent(&t, &t.alice, "the build", "is still red", NULL), 1);
	assert_int_equal(sent(&t, &t.carol, "the build", "is red", NULL), 0);
	town_register(&t, "alice", true, &again);
	assert_int_equal(sent(&t, &again, "the build", "is red", NULL), 1);
	clock_shift_ms(11 * 60 * 1000);
	assert_int_equal(sent(&t, &again, "the build", "is red", NULL), 0);
	clock_shift_ms(0);
	town_send(&t, &t.bob, "carol", "which one?", id);
	for (int i = 0; i < 2; i++) { /* a conversation keeps its subject */
		assert_ok(mr_reply(t.room, &t.carol, id, &answer, false, &receipt, &err));
		assert_int_equal(receipt.warnings.n, 0);
		mr_receipt_done(&receipt);
	}
	keyed.key = "k1";
	for (int i = 0; i < 2; i++) { /* and a retry is none */
		assert_ok(mr_send(t.room, &t.carol, &keyed, &receipt, &err));
		assert_int_equal(receipt.warnings.n, 0);
		assert_int_equal(receipt.repeated, i == 1);
		mr_receipt_done(&receipt);
	}
	town_done(&t);
}

static void
the_issue_tells_what_is_the_same(void **state)
{
	struct town t = strict_town(state, "Hygiene: warn\n");

	town_data(&t);
	assert_int_equal(sent(&t, &t.alice, "POLECAT_DONE nux", "Exit: DEFERRED\nIssue: gp-1\nBranch: b", NULL), 0);
	assert_int_equal(sent(&t, &t.alice, "POLECAT_DONE nux", "Exit: DEFERRED\nIssue: gp-2\nBranch: b", NULL), 0);
	assert_int_equal(sent(&t, &t.alice, "POLECAT_DONE max", "Exit: DEFERRED\nIssue: gp-2\nBranch: c", NULL), 1);
	town_done(&t);
}

static void
what_is_a_nudge_is_no_mail(void **state)
{
	struct town t = strict_town(state, "Hygiene: warn\n");
	struct mr_draft draft = draft_to(TO("carol"), "Task: x\nare you there?"), answer = draft_to(NULL, "yes");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_data(&t);
	draft.type = "HEALTH_CHECK";
	draft.subject = "HEALTH_CHECK";
	draft.force = true;
	town_send_draft(&t, &t.alice, &draft, id);
	assert_ok(mr_reply(t.room, &t.carol, id, &answer, false, &receipt, &err));
	assert_int_equal(receipt.warnings.n, 1);
	assert_non_null(strstr(receipt.warnings.v[0], "HEALTH_CHECK is not answered with mail"));
	mr_receipt_done(&receipt);
	draft.force = false;
	assert_ok(mr_send(t.room, &t.bob, &draft, &receipt, &err));
	bool said = false;

	for (size_t i = 0; i < receipt.warnings.n; i++)
		said |= strstr(receipt.warnings.v[i], "HEALTH_CHECK is a nudge, not mail") != NULL;
	assert_true(said);
	mr_receipt_done(&receipt);
	town_done(&t);
}

static void
what_is_not_filled_in_is_found(void **state)
{
	static const struct {
		const char *subject, *body, *found;
	} cases[] = {
		{ "MERGED <name>", "x", "<name>" },
		{ "about {{topic}}", "x", "{{topic}}" },
		{ "x", "Branch: <your branch>\nIssue: gp-1", "<your branch>" },
		{ "x", "text {{ name }} text", "{{ name }}" },
		{ "x", "std::vector<int> v; if (a < b && c > d) <b>bold</b>", NULL },
		{ "i <3 you", "From: <a@b.example>\nSee: <https://example.org>\nmap[<key>]", NULL },
		{ "a <-> b", "x {} {y}", NULL },
		{ "x", "Note: vector<int>", NULL },
	};
	struct mr_str found;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool got = hygiene_has_placeholder(str_of(cases[i].subject), str_of(cases[i].body), &found);

		if (got != (cases[i].found != NULL) || (got && !str_eq(found, str_of(cases[i].found))))
			fail_msg("'%s' / '%s'", cases[i].subject, cases[i].body);
	}
}

static void
a_status_that_is_fine_is_found(void **state)
{
	static const struct {
		const char *subject, *body;
		bool routine;
	} cases[] = {
		{ "status: fine", "status: fine\n", true },
		{ "Status update", "All good.\n\n- nothing to report\n", true },
		{ "ping", "", true },
		{ "status: fine", "the build broke\n", false },
		{ "release 2 is out", "ok\n", false },
		{ "statusquo", "ok\n", false },
		{ "", "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (hygiene_is_routine(str_of(cases[i].subject), str_of(cases[i].body)) != cases[i].routine)
			fail_msg("'%s' / '%s'", cases[i].subject, cases[i].body);
}

static void
a_note_that_says_nothing_is_found(void **state)
{
	(void)state;
	assert_true(hygiene_is_empty_handoff(STR("")));
	assert_true(hygiene_is_empty_handoff(STR("## Context\n\n## Status\nAll quiet.\n## Next\n- none\n")));
	assert_true(hygiene_is_empty_handoff(STR("## Context\n\nbob left no note.\n")));
	assert_false(hygiene_is_empty_handoff(STR("## Context\nporting the parser to the new grammar\n")));
}

static void
a_room_can_refuse(void **state)
{
	struct town t = strict_town(state, "Hygiene: refuse\n");
	struct mr_draft draft = draft_to(TO("bob"), "x");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };

	assert_int_equal(sent(&t, &t.alice, "MERGED <name>", "x", NULL), -1);
	assert_int_equal(town_unread(&t, "bob").n, 0);
	draft.subject = "MERGED <name>";
	draft.force = true;
	assert_ok(mr_send(t.room, &t.alice, &draft, &receipt, &err));
	mr_receipt_done(&receipt);
	town_settings(&t, "Hygiene: maybe\n");
	assert_int_equal(sent(&t, &t.alice, "fine", "x", NULL), -1); /* a rule nobody can read is not passed over */
	town_done(&t);
}

struct found {
	size_t n;
	char rules[16][24];
};

static void
note_lint(void *ctx, const struct mr_lint *f)
{
	struct found *found = ctx;

	if (found->n < 16)
		(void)snprintf(found->rules[found->n], 24, "%s", f->rule);
	found->n++;
}

static size_t
count_rule(const struct found *f, const char *rule)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n && i < 16; i++)
		n += strcmp(f->rules[i], rule) == 0;
	return n;
}

static void
lint_finds_what_was_sent(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	struct found found = { 0 };
	struct mr_self nux;
	size_t looked_at = 0;

	town_data(&t);
	town_register(&t, "gp/polecats/nux", false, &nux);
	(void)sent(&t, &t.alice, "old <name>", "x", NULL);
	clock_shift_ms(48 * 3600 * 1000);
	(void)sent(&t, &t.alice, "new <name>", "x", NULL);
	(void)sent(&t, &nux, "one", "x", NULL);
	(void)sent(&t, &nux, "one", "x", NULL);
	assert_ok(
	    mr_lint_room(t.room, "gastown", clock_now_ms() - 24 * 3600 * 1000, note_lint, &found, &looked_at, &err));
	assert_int_equal(looked_at, 3);
	assert_int_equal(count_rule(&found, "placeholder"), 1);
	assert_int_equal(count_rule(&found, "budget"), 1);
	assert_int_equal(count_rule(&found, "duplicate"), 1);
	assert_int_equal(found.n, 3);
	assert_rc(mr_lint_room(t.room, "nosuch", 0, note_lint, &found, NULL, &err), MR_NOTFOUND);
	clock_shift_ms(0);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_room_without_rules_lets_everything_pass),
		ON_BOTH(a_role_has_a_budget),
		ON_BOTH(a_registered_role_counts_too),
		ON_BOTH(the_same_twice_is_noticed_across_lives),
		ON_BOTH(the_issue_tells_what_is_the_same),
		ON_BOTH(what_is_a_nudge_is_no_mail),
		cmocka_unit_test(what_is_not_filled_in_is_found),
		cmocka_unit_test(a_status_that_is_fine_is_found),
		cmocka_unit_test(a_note_that_says_nothing_is_found),
		ON_BOTH(a_room_can_refuse),
		ON_BOTH(lint_finds_what_was_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
