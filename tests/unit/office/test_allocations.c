/* SPDX-License-Identifier: MIT */
/* A send through an open handle takes next to no memory: the names of who gets it, half of which the receipt hands to
 * its caller. The linker leads every call of the allocator here (tests/meson.build). */
#include "town.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);

static bool counting;
static unsigned counted;

void *
__wrap_malloc(size_t size)
{
	counted += counting;
	return __real_malloc(size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	counted += counting;
	return __real_calloc(n, size);
}

void *
__wrap_realloc(void *old, size_t size)
{
	counted += counting;
	return __real_realloc(old, size);
}

static unsigned
allocations_of_a_send(struct town *t, const struct mr_draft *draft)
{
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };

	counted = 0;
	counting = true;
	enum mr_rc rc = mr_send(t->room, &t->alice, draft, &receipt, &err);
	counting = false;
	assert_rc(rc, MR_OK);
	assert_int_equal(receipt.to.n, 1);
	mr_receipt_done(&receipt);
	return counted;
}

static void
a_send_allocates_names_only(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("bob"), "hello");

	(void)allocations_of_a_send(&t, &draft); /* the first of a handle opens folders and keeps them */
	assert_in_range(allocations_of_a_send(&t, &draft), 1, 12);
	town_done(&t);
}

static void
a_long_text_takes_one_more(void **state)
{
	struct town t = town_new(state);
	static char text[100000];

	memset(text, 'x', sizeof(text) - 1);
	struct mr_draft draft = draft_to(TO("bob"), text);

	struct mr_draft brief = draft_to(TO("bob"), "hello");

	draft.subject = brief.subject = "text";
	(void)allocations_of_a_send(&t, &brief);
	assert_int_equal(allocations_of_a_send(&t, &draft), allocations_of_a_send(&t, &brief) + 1);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_MAILDIR(a_send_allocates_names_only),
		ON_MAILDIR(a_long_text_takes_one_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
