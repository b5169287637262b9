/* SPDX-License-Identifier: MIT */
#include "town.h"

struct letters {
	size_t n;
	char id[16][MR_ID_LEN + 1], queue[16][80], subject[16][80];
};

static bool
note_letter(void *ctx, const char *queue, const struct mr_message *msg)
{
	struct letters *l = ctx;

	if (l->n < 16) {
		memcpy(l->id[l->n], msg->id, MR_ID_LEN + 1);
		(void)snprintf(l->queue[l->n], 80, "%s", queue);
		(void)snprintf(l->subject[l->n], 80, "%s", msg->subject);
	}
	l->n++;
	return true;
}

static struct letters
list(struct town *t)
{
	struct letters letters = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_dead_each(t->room, 0, note_letter, &letters, NULL, &err));
	return letters;
}

/* bob gives up a message of alice's. */
static void
fail_mail(struct town *t, const char *body, char ret_id[MR_ID_LEN + 1])
{
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	town_send(t, &t->alice, "bob", body, NULL);
	assert_ok(mr_recv(t->room, &t->bob, NULL, 60000, &claim, &msg, &err));
	mr_message_done(&msg);
	assert_ok(mr_claim_fail(t->room, &t->bob, claim.token, "cannot", ret_id, &err));
}

static void
fail_work(struct town *t, const char *body, char ret_id[MR_ID_LEN + 1])
{
	struct mr_queue settings = { .name = "builds", .attempts = 3 };
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_queue_create(t->room, &t->alice, &settings, &err));
	town_send(t, &t->alice, "queue:builds", body, NULL);
	assert_ok(mr_queue_recv(t->room, &t->bob, "builds", 0, 0, &claim, &msg, &err));
	mr_message_done(&msg);
	assert_ok(mr_claim_fail(t->room, &t->bob, claim.token, "cannot", ret_id, &err));
}

static void
failed_mail_and_failed_work_are_listed_and_shown(void **state)
{
	struct town t = town_new(state);
	mr_auto(mr_message_done) struct mr_message msg = { 0 }, work = { 0 }, none = { 0 };
	struct mr_error err = { 0 };
	char mail[MR_ID_LEN + 1], job[MR_ID_LEN + 1], queue[MR_ADDRESS_MAX + 1];

	assert_int_equal(list(&t).n, 0);
	fail_mail(&t, "mail", mail);
	fail_work(&t, "job", job);
	struct letters letters = list(&t);

	assert_int_equal(letters.n, 2);
	assert_string_equal(letters.id[0], job); /* the newest first */
	assert_string_equal(letters.queue[0], "builds");
	assert_string_equal(letters.id[1], mail);
	assert_string_equal(letters.queue[1], "");
	assert_ok(mr_dead_get(t.room, mail + 18, &msg, queue, &err));
	assert_string_equal(msg.id, mail);
	assert_string_equal(queue, "");
	assert_non_null(msg.body);
	assert_ok(mr_dead_get(t.room, job, &work, queue, &err));
	assert_string_equal(queue, "builds");
	assert_int_equal(work.folder, MR_DEAD);
	assert_rc(mr_dead_get(t.room, "zzzzzz", &none, queue, &err), MR_NOTFOUND);
	assert_rc(mr_dead_get(t.room, "!", &none, queue, &err), MR_REFUSED);
	town_done(&t);
}

static void
the_newest_letters_are_told_up_to_a_limit(void **state)
{
	struct town t = town_new(state);
	struct letters letters = { 0 };
	struct mr_error err = { 0 };
	char old[MR_ID_LEN + 1], job[MR_ID_LEN + 1], new[MR_ID_LEN + 1];
	size_t all = 0;

	fail_mail(&t, "old", old);
	fail_work(&t, "job", job);
	fail_mail(&t, "new", new);
	assert_ok(mr_dead_each(t.room, 2, note_letter, &letters, &all, &err));
	assert_int_equal(letters.n, 2);
	assert_string_equal(letters.id[0], new);
	assert_string_equal(letters.id[1], job);
	assert_int_equal(all, 3);
	assert_ok(mr_dead_each(t.room, 0, NULL, NULL, &all, &err));
	assert_int_equal(all, 3);
	town_done(&t);
}

static void
a_retry_delivers_under_a_new_id_in_the_old_thread(void **state)
{
	struct town t = town_new(state);
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	fail_mail(&t, "mail", id);
	assert_ok(mr_dead_retry(t.room, &t.carol, id + 18, NULL, &receipt, &err));
	assert_int_equal(receipt.to.n, 1);
	assert_string_equal(receipt.to.v[0], "bob");
	assert_string_not_equal(receipt.id, id);
	assert_int_equal(list(&t).n, 0);
	assert_int_equal(town_unread(&t, "bob").n, 1);
	assert_ok(mr_fetch(t.room, "bob", receipt.id, &msg, &err));
	assert_string_equal(msg.from, "alice");
	assert_string_equal(msg.subject, "mail");
	assert_string_equal(msg.thread, id);
	assert_non_null(strstr(mr_message_header(&msg, "Resent-Message-ID"), id));
	mr_receipt_done(&receipt);
	assert_rc(mr_dead_retry(t.room, &t.carol, id, NULL, &receipt, &err), MR_NOTFOUND);
	town_done(&t);
}

static void
only_recipients_without_a_copy_get_it_again(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("bob", "carol"), "for both");
	struct mr_receipt receipt = { 0 };
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send_draft(&t, &t.alice, &draft, NULL);
	assert_ok(mr_recv(t.room, &t.bob, NULL, 60000, &claim, &msg, &err));
	mr_message_done(&msg);
	assert_ok(mr_claim_fail(t.room, &t.bob, claim.token, "cannot", id, &err));
	assert_ok(mr_dead_retry(t.room, &t.operator, id, NULL, &receipt, &err));
	assert_int_equal(receipt.to.n, 1);
	assert_string_equal(receipt.to.v[0], "bob");
	mr_receipt_done(&receipt);
	assert_int_equal(town_unread(&t, "carol").n, 1);
	town_done(&t);
}

static void
a_retry_can_name_others(void **state)
{
	struct town t = town_new(state);
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	fail_mail(&t, "mail", id);
	assert_rc(mr_dead_retry(t.room, &t.alice, id, TO("nobody"), &receipt, &err), MR_NOTFOUND);
	assert_int_equal(list(&t).n, 1);
	assert_ok(mr_dead_retry(t.room, &t.alice, id, TO("carol"), &receipt, &err));
	mr_receipt_done(&receipt);
	assert_int_equal(town_unread(&t, "carol").n, 1);
	assert_int_equal(town_unread(&t, "bob").n, 0);
	assert_int_equal(list(&t).n, 0);
	town_done(&t);
}

static void
failed_work_is_retried_in_its_queue_with_all_its_attempts(void **state)
{
	struct town t = town_new(state);
	struct mr_queue_counts counts = { 0 };
	struct mr_receipt receipt = { 0 };
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	fail_work(&t, "job", id);
	assert_ok(mr_dead_retry(t.room, &t.alice, id, NULL, &receipt, &err));
	assert_string_equal(receipt.to.v[0], "queue:builds");
	mr_receipt_done(&receipt);
	assert_int_equal(list(&t).n, 0);
	assert_ok(mr_queue_count(t.room, "builds", &counts, &err));
	assert_int_equal(counts.ready, 1);
	assert_int_equal(counts.failed, 0);
	assert_ok(mr_queue_recv(t.room, &t.carol, "builds", 0, 0, &claim, &msg, &err));
	assert_int_equal(claim.attempt, 1);
	assert_string_equal(msg.subject, "job");
	mr_message_done(&msg);
	town_done(&t);
}

static enum mr_rc
drop_dies(struct mr_room *room, const struct removal *what, size_t *ret_removed, struct mr_error *err)
{
	(void)room;
	(void)what;
	(void)ret_removed;
	return mr_fail(err, MR_IO, "killed");
}

static void
a_retry_cut_off_before_the_removal_delivers_nothing_twice(void **state)
{
	struct town t = town_new(state);
	const struct room_driver *real = t.room->driver;
	struct room_driver dying = *real;
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	fail_mail(&t, "mail", id);
	dying.remove = drop_dies;
	t.room->driver = &dying;
	assert_rc(mr_dead_retry(t.room, &t.alice, id, TO("bob"), &receipt, &err), MR_IO);
	t.room->driver = real;
	assert_int_equal(list(&t).n, 1);
	assert_int_equal(town_unread(&t, "bob").n, 1);
	assert_ok(mr_dead_retry(t.room, &t.carol, id, TO("bob"), &receipt, &err)); /* repeated by another agent */
	assert_true(receipt.repeated);
	mr_receipt_done(&receipt);
	assert_int_equal(list(&t).n, 0);
	assert_int_equal(town_unread(&t, "bob").n, 1);
	town_done(&t);
}

static void
dropping_removes_the_letter_and_nobody_elses_copy(void **state)
{
	struct town t = town_new(state);
	struct mr_self stranger = { .agent = "stranger" };
	mr_auto(mr_message_done) struct mr_message sent = { 0 };
	struct mr_error err = { 0 };
	char mail[MR_ID_LEN + 1], job[MR_ID_LEN + 1];

	fail_mail(&t, "mail", mail);
	fail_work(&t, "job", job);
	assert_rc(mr_dead_drop(t.room, &stranger, mail, &err), MR_NOTFOUND);
	assert_ok(mr_dead_drop(t.room, &t.operator, mail + 18, &err));
	assert_int_equal(list(&t).n, 1);
	assert_ok(mr_dead_drop(t.room, &t.carol, job, &err));
	assert_int_equal(list(&t).n, 0);
	assert_rc(mr_dead_drop(t.room, &t.carol, job, &err), MR_NOTFOUND);
	assert_ok(t.room->driver->fetch(t.room, "alice", mail, MR_SENT, SCAN_HEADERS, &sent, &err));
	town_done(&t);
}

static void
mail_of_a_pruned_agent_goes_to_whom_one_says(void **state)
{
	struct town t = town_new(state);
	struct mr_prune_options prune = { .names = TO("carol"), .force = true };
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "carol", "unread", id);
	assert_ok(mr_prune(t.room, &prune, NULL, &err));
	assert_int_equal(list(&t).n, 1);
	struct seen told = town_unread(&t, "alice");

	assert_int_equal(told.n, 1);
	assert_string_equal(told.subjects[0], "Failed: unread");
	assert_rc(mr_dead_retry(t.room, &t.alice, id, NULL, &receipt, &err), MR_NOTFOUND); /* nobody is carol */
	assert_non_null(strstr(err.hint, "--to"));
	assert_ok(mr_dead_retry(t.room, &t.alice, id, TO("bob"), &receipt, &err));
	mr_receipt_done(&receipt);
	assert_int_equal(town_unread(&t, "bob").n, 1);
	assert_int_equal(list(&t).n, 0);
	town_done(&t);
}

/* One of them gives up the only thing it has; "" for its own mail. */
static void
fail_as(struct town *t, const struct mr_self *self, const char *queue, char ret_id[MR_ID_LEN + 1])
{
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	if (*queue)
		assert_ok(mr_queue_recv(t->room, self, queue, 0, 0, &claim, &msg, &err));
	else
		assert_ok(mr_recv(t->room, self, NULL, 60000, &claim, &msg, &err));
	mr_message_done(&msg);
	assert_ok(mr_claim_fail(t->room, self, claim.token, "cannot", ret_id, &err));
}

/* Retries and says to whom, "bob carol". */
static const char *
retry(struct town *t, const char *id, const char *const *to)
{
	static char who[200];
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_dead_retry(t->room, &t->alice, id, to, &receipt, &err));
	who[0] = '\0';
	for (size_t i = 0; i < receipt.to.n; i++)
		(void)snprintf(who + strlen(who), sizeof(who) - strlen(who), "%s%s", i > 0 ? " " : "", receipt.to.v[i]);
	mr_receipt_done(&receipt);
	return who;
}

static void
copies_that_fail_one_after_the_other_are_retried_one_after_the_other(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("bob", "carol"), "for both");
	char id[MR_ID_LEN + 1];

	town_send_draft(&t, &t.alice, &draft, NULL);
	fail_as(&t, &t.bob, "", id);
	assert_string_equal(retry(&t, id, NULL), "bob");
	fail_as(&t, &t.carol, "", id);
	assert_int_equal(list(&t).n, 1);
	assert_string_equal(retry(&t, id, NULL), "carol");
	assert_int_equal(list(&t).n, 0);
	assert_int_equal(town_unread(&t, "bob").n, 1);
	assert_int_equal(town_unread(&t, "carol").n, 1);
	town_done(&t);
}

static void
a_later_copy_can_be_retried_for_whom_one_says(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("bob", "carol"), "for both");
	char id[MR_ID_LEN + 1];

	town_send_draft(&t, &t.alice, &draft, NULL);
	fail_as(&t, &t.bob, "", id);
	assert_string_equal(retry(&t, id, TO("bob")), "bob");
	fail_as(&t, &t.carol, "", id);
	assert_string_equal(retry(&t, id, TO("carol")), "carol");
	assert_int_equal(list(&t).n, 0);
	town_done(&t);
}

static void
copies_that_met_among_the_dead_letters_go_together(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("bob", "carol"), "for both");
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send_draft(&t, &t.alice, &draft, NULL);
	fail_as(&t, &t.bob, "", id);
	fail_as(&t, &t.carol, "", id);
	assert_string_equal(retry(&t, id, NULL), "bob carol");
	assert_int_equal(list(&t).n, 0);
	fail_as(&t, &t.bob, "", id);
	fail_as(&t, &t.carol, "", id);
	assert_ok(mr_dead_drop(t.room, &t.alice, id, &err));
	assert_int_equal(list(&t).n, 0);
	town_done(&t);
}

static void
one_message_failed_in_a_mailbox_and_in_a_queue_is_two_letters(void **state)
{
	struct town t = town_new(state);
	struct mr_queue settings = { .name = "builds", .attempts = 3 };
	struct mr_draft draft = draft_to(TO("bob", "queue:builds"), "for both");
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	assert_ok(mr_queue_create(t.room, &t.alice, &settings, &err));
	town_send_draft(&t, &t.alice, &draft, NULL);
	fail_as(&t, &t.bob, "", id);
	fail_as(&t, &t.carol, "builds", id);
	assert_int_equal(list(&t).n, 2);
	assert_string_equal(retry(&t, id, NULL), "bob");
	assert_int_equal(list(&t).n, 1);
	assert_string_equal(retry(&t, id, NULL), "queue:builds");
	assert_int_equal(list(&t).n, 0);
	town_done(&t);
}

static void
work_of_a_deleted_queue_goes_back_when_it_is_there_again(void **state)
{
	struct town t = town_new(state);
	struct mr_queue settings = { .name = "builds", .attempts = 3 };
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];
	size_t dead = 0;

	assert_ok(mr_queue_create(t.room, &t.alice, &settings, &err));
	town_send(&t, &t.alice, "queue:builds", "job", id);
	assert_ok(mr_queue_delete(t.room, "builds", true, &dead, &err));
	assert_rc(mr_dead_retry(t.room, &t.alice, id, NULL, &receipt, &err), MR_NOTFOUND);
	assert_string_equal(err.message, "queue 'builds' no longer exists");
	assert_non_null(strstr(err.hint, "--to"));
	assert_int_equal(list(&t).n, 1);
	assert_ok(mr_queue_create(t.room, &t.alice, &settings, &err));
	assert_string_equal(retry(&t, id, NULL), "queue:builds");
	assert_int_equal(list(&t).n, 0);
	town_done(&t);
}

static void
a_retry_cut_off_before_the_removal_is_finished_without_naming_anybody(void **state)
{
	struct town t = town_new(state);
	const struct room_driver *real = t.room->driver;
	struct room_driver dying = *real;
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	fail_mail(&t, "mail", id);
	dying.remove = drop_dies;
	t.room->driver = &dying;
	assert_rc(mr_dead_retry(t.room, &t.alice, id, NULL, &receipt, &err), MR_IO);
	t.room->driver = real;
	assert_ok(mr_dead_retry(t.room, &t.carol, id, NULL, &receipt, &err));
	assert_true(receipt.repeated);
	assert_string_equal(receipt.id, town_unread(&t, "bob").ids[0]);
	mr_receipt_done(&receipt);
	assert_int_equal(list(&t).n, 0);
	assert_int_equal(town_unread(&t, "bob").n, 1);
	town_done(&t);
}

static enum mr_rc
note_dies(struct mr_room *room, const char *kind, const char *owner, const char *name, struct mr_str text,
    struct mr_error *err)
{
	(void)room;
	(void)kind;
	(void)owner;
	(void)name;
	(void)text;
	return mr_fail(err, MR_IO, "killed");
}

static void
a_letter_stays_as_long_as_its_end_cannot_be_noted(void **state)
{
	struct town t = town_new(state);
	const struct room_driver *real = t.room->driver;
	struct room_driver dying = *real;
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	fail_mail(&t, "mail", id);
	dying.record_put = note_dies;
	t.room->driver = &dying;
	assert_rc(mr_dead_drop(t.room, &t.alice, id, &err), MR_IO);
	assert_rc(mr_dead_retry(t.room, &t.alice, id, NULL, &receipt, &err), MR_IO);
	t.room->driver = real;
	assert_int_equal(list(&t).n, 1);
	assert_string_equal(retry(&t, id, NULL), "bob");
	assert_int_equal(list(&t).n, 0);
	assert_int_equal(town_unread(&t, "bob").n, 1);
	town_done(&t);
}

/* A subscriber's copy of a post does not name him: it must not be taken for what is left of another's retry. */
static void
the_copy_of_a_subscriber_is_never_removed_undelivered(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("bob", "channel:news"), "for all");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	assert_ok(mr_channel_create(t.room, &t.alice, "news", 0, 0, &err));
	assert_ok(mr_channel_subscribe(t.room, "news", "carol", true, NULL, &err));
	town_send_draft(&t, &t.alice, &draft, NULL);
	fail_as(&t, &t.bob, "", id);
	assert_string_equal(retry(&t, id, NULL), "bob");
	fail_as(&t, &t.carol, "", id);
	assert_rc(mr_dead_retry(t.room, &t.alice, id, NULL, &receipt, &err), MR_REFUSED);
	assert_int_equal(list(&t).n, 1);
	assert_string_equal(retry(&t, id, TO("carol")), "carol");
	assert_int_equal(list(&t).n, 0);
	town_done(&t);
}

struct told {
	char of[16][400];
	size_t n;
};

static void
why(struct town *t, const char *id, struct told *told)
{
	mr_auto(mr_list_done) struct mr_trails all = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_why(t->room, &t->carol, id, &all, &err));
	for (const struct mr_trail *fact = all.v; fact < all.v + all.n && told->n < 16; fact++)
		(void)snprintf(told->of[told->n++], 400, "%s %s: %s", fact->agent, fact->state, fact->evidence);
}

static const char *
told_of(const struct told *told, const char *begin)
{
	for (size_t i = 0; i < told->n; i++)
		if (strncmp(told->of[i], begin, strlen(begin)) == 0)
			return told->of[i];
	return NULL;
}

static void
why_remembers_what_became_of_a_dead_letter(void **state)
{
	struct town t = town_new(state);
	struct told again = { 0 }, dropped = { 0 }, work = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1], fresh[MR_ID_LEN + 1], job[MR_ID_LEN + 1];

	fail_mail(&t, "mail", id);
	assert_string_equal(retry(&t, id, NULL), "bob");
	memcpy(fresh, town_unread(&t, "bob").ids[0], sizeof(fresh));
	why(&t, id, &again);
	assert_non_null(told_of(&again, "bob retried: "));
	assert_non_null(strstr(told_of(&again, "bob retried: "), fresh));
	assert_non_null(strstr(told_of(&again, "bob retried: "), "by 'alice'"));
	assert_null(told_of(&again, "bob nowhere"));
	fail_as(&t, &t.bob, "", fresh);
	assert_ok(mr_dead_drop(t.room, &t.carol, fresh, &err));
	why(&t, fresh, &dropped);
	assert_non_null(strstr(told_of(&dropped, "bob dropped: "), "by 'carol'"));
	assert_null(told_of(&dropped, "bob nowhere"));
	fail_work(&t, "job", job);
	assert_string_equal(retry(&t, job, NULL), "queue:builds");
	why(&t, job, &work);
	assert_non_null(told_of(&work, "queue:builds retried: "));
	assert_null(told_of(&work, "queue:builds nowhere"));
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(failed_mail_and_failed_work_are_listed_and_shown),
		ON_BOTH(the_newest_letters_are_told_up_to_a_limit),
		ON_BOTH(a_retry_delivers_under_a_new_id_in_the_old_thread),
		ON_BOTH(only_recipients_without_a_copy_get_it_again),
		ON_BOTH(a_retry_can_name_others),
		ON_BOTH(failed_work_is_retried_in_its_queue_with_all_its_attempts),
		ON_BOTH(a_retry_cut_off_before_the_removal_delivers_nothing_twice),
		ON_BOTH(dropping_removes_the_letter_and_nobody_elses_copy),
		ON_BOTH(mail_of_a_pruned_agent_goes_to_whom_one_says),
		ON_BOTH(copies_that_fail_one_after_the_other_are_retried_one_after_the_other),
		ON_BOTH(a_later_copy_can_be_retried_for_whom_one_says),
		ON_BOTH(copies_that_met_among_the_dead_letters_go_together),
		ON_BOTH(one_message_failed_in_a_mailbox_and_in_a_queue_is_two_letters),
		ON_BOTH(work_of_a_deleted_queue_goes_back_when_it_is_there_again),
		ON_BOTH(a_retry_cut_off_before_the_removal_is_finished_without_naming_anybody),
		ON_BOTH(a_letter_stays_as_long_as_its_end_cannot_be_noted),
		ON_BOTH(the_copy_of_a_subscriber_is_never_removed_undelivered),
		ON_BOTH(why_remembers_what_became_of_a_dead_letter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
