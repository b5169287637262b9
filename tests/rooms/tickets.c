/* SPDX-License-Identifier: MIT */
/* tickets.c - after a kill between writing and noting it: was it published? The same answer however often one asks. */
#include "suite.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include <ftw.h>

struct stager {
	struct world *w;
	enum mr_rc answer;
	bool settle; /* another takes us for dead, and asks */
	char ticket[ROOM_TICKET_MAX + 1];
};

static bool
settled(struct world *w, const char *ticket)
{
	bool published = false;

	EXPECT(MR_OK, w->ops->settle_ticket(w->room, ticket, &published, &err));
	return published;
}

static enum mr_rc
stage(void *ctx, const char *ticket, struct mr_error *err)
{
	struct stager *s = ctx;

	(void)snprintf(s->ticket, sizeof s->ticket, "%s", ticket);
	if (s->settle)
		assert_false(settled(s->w, ticket));
	return s->answer == MR_OK ? MR_OK : mr_fail(err, s->answer, "killed here");
}

static enum mr_rc
carry(struct stager *s, const char *to, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct mr_message msg = { .from = "alice",
		.subject = "",
		.date_ms = clock_now_ms(),
		.type = "",
		.reply_to = "",
		.replace_key = "",
		.body = "hello\n",
		.body_len = 6,
		.path = "" };
	struct delivery what = {
		.msg = &msg, .to = &names, .sender = "", .carried = true, .staged = stage, .staged_ctx = s
	};
	struct delivered done = { 0 };

	assert_true(names_add(&names, str_of(to)));
	assert_true(names_add(&msg.to, str_of(to)));
	id_new(msg.id);
	msg.thread = msg.id;
	enum mr_rc rc = s->w->ops->deliver(s->w->room, &what, &done, err);

	mr_names_done(&done.missing);
	mr_names_done(&msg.to);
	return rc;
}

static bool
has_tickets(struct world *w)
{
	add_agent(w, "alice");
	add_agent(w, "bob");
	return DRIVER_HAS(w->ops, settle_ticket);
}

static void
what_was_never_published_stays_so(void **state)
{
	struct world *w = *state;
	struct stager s = { .w = w, .answer = MR_BUSY };

	if (!has_tickets(w))
		return;
	EXPECT(MR_BUSY, carry(&s, "bob", &err));
	for (int i = 0; i < 3; i++) /* killed before it noted the answer, it asks again */
		assert_false(settled(w, s.ticket));
	assert_int_equal(count_in(w, "bob", MR_INBOX), 0);
}

static void
what_was_published_stays_so(void **state)
{
	struct world *w = *state;
	struct stager s = { .w = w };

	if (!has_tickets(w))
		return;
	EXPECT(MR_OK, carry(&s, "bob", &err));
	for (int i = 0; i < 3; i++)
		assert_true(settled(w, s.ticket));
	assert_int_equal(count_in(w, "bob", MR_INBOX), 1);
}

static void
who_only_slept_cannot_publish_any_more(void **state)
{
	struct world *w = *state;
	struct stager s = { .w = w, .settle = true };
	struct mr_error err = { 0 };

	if (!has_tickets(w))
		return;
	assert_int_not_equal(carry(&s, "bob", &err), MR_OK);
	assert_false(settled(w, s.ticket));
	assert_int_equal(count_in(w, "bob", MR_INBOX), 0);
}

static size_t voids_n;

static int
count_void(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	voids_n += str_starts(str_of(path + ftw->base), FILE_VOID);
	return 0;
}

static size_t
count_voids(const struct world *w)
{
	voids_n = 0;
	assert_int_equal(nftw(w->folder, count_void, 16, FTW_PHYS), 0);
	return voids_n;
}

static void
what_nobody_asks_for_goes_after_a_week(void **state)
{
	struct world *w = *state;
	struct stager s = { .w = w, .answer = MR_BUSY };

	if (!has_tickets(w))
		return;
	EXPECT(MR_BUSY, carry(&s, "bob", &err));
	assert_false(settled(w, s.ticket));
	s.answer = MR_OK;
	clock_shift_ms(INT64_C(6) * 24 * 3600 * 1000);
	EXPECT(MR_OK, carry(&s, "bob", &err));
	assert_int_equal(count_voids(w), 1);
	clock_shift_ms(INT64_C(8) * 24 * 3600 * 1000);
	EXPECT(MR_OK, carry(&s, "bob", &err));
	clock_shift_ms(0);
	assert_int_equal(count_voids(w), 0);
}

const struct suite_case ticket_cases[] = {
	CASE(what_was_never_published_stays_so, 0),
	CASE(what_was_published_stays_so, 0),
	CASE(who_only_slept_cannot_publish_any_more, 0),
	CASE(what_nobody_asks_for_goes_after_a_week, 0),
	{ 0 },
};
