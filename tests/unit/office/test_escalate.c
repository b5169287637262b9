/* SPDX-License-Identifier: MIT */
/* Escalations: on record, told to their route, raised when nobody cares. */
#include "base/clock.h"
#include "settings.h"

#define HOUR_MS ((int64_t)3600 * 1000)

static struct mr_escalated
escalate(struct town *t, const struct mr_self *self, const char *text, enum mr_level severity, bool force)
{
	struct mr_escalation what = { .severity = severity, .text = text, .reason = "why", .related = "gp-1" };
	struct mr_escalated made = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_escalate(t->room, self, &what, force, false, &made, &err));
	return made;
}

static struct mr_escalation
get(struct town *t, const char *id)
{
	struct mr_escalation e = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_escalation_get(t->room, id, &e, &err));
	return e;
}

static void
it_is_on_record_and_told(void **state)
{
	struct town t = town_new(state);
	struct mr_escalated made = escalate(&t, &t.alice, "main does not build", MR_LEVEL_HIGH, false);
	struct mr_escalation e = get(&t, made.id + 4);
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	assert_string_equal(e.id, made.id);
	assert_string_equal(e.text, "main does not build");
	assert_string_equal(e.reason, "why");
	assert_string_equal(e.by, "alice");
	assert_int_equal(e.severity, MR_LEVEL_HIGH);
	assert_true(e.mailed);
	assert_int_equal(made.to.n, 1);
	assert_ok(mr_fetch(t.room, OPERATOR, made.message, &msg, &err));
	assert_string_equal(msg.subject, "[HIGH] main does not build");
	assert_string_equal(msg.type, "ESCALATE");
	assert_string_equal(mr_message_header(&msg, "GT-Type"), "escalation");
	assert_string_equal(msg.thread, made.id);
	assert_int_equal(msg.priority, MR_HIGH);
	assert_non_null(strstr(msg.body, "Reason: why\nRelated: gp-1\n"));
	mr_message_done(&msg);
	mr_escalation_done(&e);
	mr_escalated_done(&made);
	town_done(&t);
}

static void
the_same_is_not_escalated_twice(void **state)
{
	struct town t = town_new(state);
	struct mr_escalated first = escalate(&t, &t.alice, "the disk is full", MR_LEVEL_LOW, false);
	struct mr_escalated second = escalate(&t, &t.alice, "the disk is full", MR_LEVEL_CRITICAL, false);
	struct mr_escalated others = escalate(&t, &t.bob, "the disk is full", MR_LEVEL_LOW, false);
	struct mr_escalated forced = escalate(&t, &t.alice, "the disk is full", MR_LEVEL_LOW, true);
	struct mr_error err = { 0 };

	assert_true(second.repeated);
	assert_string_equal(first.id, second.id);
	assert_int_equal(second.severity, MR_LEVEL_LOW);
	assert_false(others.repeated);
	assert_false(forced.repeated);
	assert_int_equal(town_unread(&t, OPERATOR).n, 3);
	assert_ok(mr_escalation_close(t.room, &t.bob, first.id, "cleaned", &err));
	assert_ok(mr_escalation_close(t.room, &t.bob, forced.id, "cleaned", &err));
	struct mr_escalated again = escalate(&t, &t.alice, "the disk is full", MR_LEVEL_LOW, false);

	assert_false(again.repeated); /* a closed one is over */
	mr_escalated_done(&first);
	mr_escalated_done(&second);
	mr_escalated_done(&others);
	mr_escalated_done(&forced);
	mr_escalated_done(&again);
	town_done(&t);
}

static void
a_route_is_a_setting(void **state)
{
	struct town t = town_new(state);
	struct mr_self mayor;
	struct mr_escalated made;

	town_register(&t, "mayor", false, &mayor);
	made = escalate(&t, &t.alice, "one", MR_LEVEL_LOW, false);
	assert_int_equal(made.to.n, 2); /* where there is a mayor, he is told, too */
	mr_escalated_done(&made);
	made = escalate(&t, &mayor, "two", MR_LEVEL_LOW, false);
	assert_int_equal(made.to.n, 1);
	mr_escalated_done(&made);
	town_settings(&t, "Escalate-Low: bob, carol\n");
	made = escalate(&t, &t.alice, "three", MR_LEVEL_LOW, false);
	assert_int_equal(made.to.n, 2);
	assert_string_equal(made.to.v[0], "bob");
	assert_int_equal(town_unread(&t, "carol").n, 1);
	mr_escalated_done(&made);
	town_done(&t);
}

static void
those_who_can_be_told_are_told(void **state)
{
	struct town t = town_new(state);
	struct mr_escalation what = { .severity = MR_LEVEL_LOW, .text = "trouble" };
	struct mr_escalated made = { 0 };
	struct mr_error err = { 0 };
	struct mr_escalation e;

	town_settings(&t, "Escalate-Low: bob, nobody\n");
	assert_rc(mr_escalate(t.room, &t.alice, &what, false, false, &made, &err), MR_INDOUBT);
	assert_int_equal(made.to.n, 1);
	assert_int_equal(made.failed_n, 1);
	assert_string_equal(made.failed[0].address, "nobody");
	assert_int_equal(town_unread(&t, "bob").n, 1);
	e = get(&t, made.id);
	assert_false(e.mailed);
	mr_escalation_done(&e);
	town_settings(&t, "Escalate-Low: bob, carol\n"); /* mended: the next run tells who is left, and nobody twice */
	assert_ok(mr_escalation_stale(t.room, &t.alice, false, NULL, NULL, &err));
	assert_int_equal(town_unread(&t, "bob").n, 1);
	assert_int_equal(town_unread(&t, "carol").n, 1);
	e = get(&t, made.id);
	assert_true(e.mailed);
	assert_int_equal(e.severity, MR_LEVEL_LOW);
	mr_escalation_done(&e);
	mr_escalated_done(&made);
	town_done(&t);
}

static void
it_is_acknowledged_and_closed(void **state)
{
	struct town t = town_new(state);
	struct mr_escalated made = escalate(&t, &t.alice, "trouble", MR_LEVEL_MEDIUM, false);
	struct mr_error err = { 0 };
	bool changed = false;
	struct mr_escalation e;

	assert_ok(mr_escalation_ack(t.room, &t.bob, made.id, &changed, &err));
	assert_true(changed);
	assert_ok(mr_escalation_ack(t.room, &t.carol, made.id, &changed, &err));
	assert_false(changed);
	assert_rc(mr_escalation_close(t.room, &t.bob, made.id, "", &err), MR_REFUSED);
	assert_ok(mr_escalation_close(t.room, &t.bob, made.id, "mended", &err));
	assert_rc(mr_escalation_close(t.room, &t.bob, made.id, "mended", &err), MR_REFUSED);
	assert_rc(mr_escalation_ack(t.room, &t.bob, made.id, NULL, &err), MR_REFUSED);
	assert_rc(mr_escalation_ack(t.room, &t.bob, "nosuchthing", NULL, &err), MR_NOTFOUND);
	e = get(&t, made.id);
	assert_int_equal(e.status, MR_ESCALATION_CLOSED);
	assert_string_equal(e.acked_by, "bob");
	assert_string_equal(e.closed_reason, "mended");
	mr_escalation_done(&e);
	mr_escalated_done(&made);
	town_done(&t);
}

static void
count_raised(void *ctx, const struct mr_escalation *e, const struct mr_escalated *told)
{
	(void)e;
	(void)told;
	++*(size_t *)ctx;
}

static size_t
raised(struct town *t, bool dry_run)
{
	struct mr_error err = { 0 };
	size_t n = 0;

	assert_ok(mr_escalation_stale(t->room, &t->bob, dry_run, count_raised, &n, &err));
	return n;
}

static void
what_nobody_cares_for_is_raised_twice(void **state)
{
	struct town t = town_new(state);
	struct mr_escalated low = escalate(&t, &t.alice, "low", MR_LEVEL_LOW, false);
	struct mr_escalated high = escalate(&t, &t.alice, "high", MR_LEVEL_HIGH, false);
	struct mr_escalated seen = escalate(&t, &t.alice, "seen", MR_LEVEL_LOW, false);
	struct mr_error err = { 0 };
	struct mr_escalation e;

	assert_ok(mr_escalation_ack(t.room, &t.bob, seen.id, NULL, &err));
	clock_shift_ms(4 * HOUR_MS - 60000);
	assert_int_equal(raised(&t, false), 0);
	clock_shift_ms(4 * HOUR_MS + 1000);
	assert_int_equal(raised(&t, true), 2); /* only said */
	assert_int_equal(raised(&t, false), 2);
	assert_int_equal(raised(&t, false), 0); /* its age counts anew */
	clock_shift_ms(9 * HOUR_MS);
	assert_int_equal(raised(&t, false), 1); /* what is critical stays so */
	clock_shift_ms(99 * HOUR_MS);
	assert_int_equal(raised(&t, false), 0);
	e = get(&t, low.id);
	assert_int_equal(e.severity, MR_LEVEL_HIGH);
	assert_int_equal(e.original, MR_LEVEL_LOW);
	assert_int_equal(e.raised, 2);
	mr_escalation_done(&e);
	e = get(&t, high.id);
	assert_int_equal(e.severity, MR_LEVEL_CRITICAL);
	mr_escalation_done(&e);
	struct seen mail = town_unread(&t, OPERATOR);
	bool said = false;

	assert_int_equal(mail.n, 6);
	for (size_t i = 0; i < mail.n; i++)
		said |= strcmp(mail.subjects[i], "[MEDIUM\xE2\x86\x92HIGH] Re-escalated: low") == 0;
	assert_true(said);
	clock_shift_ms(0);
	mr_escalated_done(&low);
	mr_escalated_done(&high);
	mr_escalated_done(&seen);
	town_done(&t);
}

static void
what_was_cut_off_is_told_later(void **state)
{
	static const char record[] =
	    "Text: cut off\nSeverity: high\nStatus: open\nBy: alice\nAt: 2026-03-05T10:30:00Z\nMailed: no\n"
	    "Raised: 2\n";
	struct town t = town_new(state);
	struct mr_error err = { 0 };

	assert_ok(t.room->driver->record_put(t.room, "escalation", "", "esc-abcdefghjkmn", str_of(record), &err));
	assert_int_equal(raised(&t, false), 1);
	assert_int_equal(town_unread(&t, OPERATOR).n, 1);
	assert_int_equal(raised(&t, false), 0);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(it_is_on_record_and_told),
		ON_BOTH(the_same_is_not_escalated_twice),
		ON_BOTH(a_route_is_a_setting),
		ON_BOTH(those_who_can_be_told_are_told),
		ON_BOTH(it_is_acknowledged_and_closed),
		ON_BOTH(what_nobody_cares_for_is_raised_twice),
		ON_BOTH(what_was_cut_off_is_told_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
