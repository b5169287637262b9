/* SPDX-License-Identifier: MIT */
/* hygiene_send.c - a message that is about to be sent, judged by itself and by what its sender sent before, in earlier
 * lives, too. It costs a look into the sender's sent mail, newest first, as far back as a rule asks. */
#include "base/error.h"
#include "office/rules/hygiene.h"
#include "office/types/types.h"

#define LOOK_BACK_MAX 1000

struct looking_back {
	struct mr_room *room;
	const struct policy *policy;
	const struct hygiene_mail *mail;
	bool counts;
	struct hygiene_list list;
	struct mr_error *err;
	enum mr_rc rc;
};

static bool
look_at(void *ctx, const struct mr_message *msg)
{
	struct looking_back *l = ctx;
	bool in_life = l->counts && msg->sender_life == l->mail->life;
	struct hygiene_mail *m;

	if ((l->mail->date_ms - msg->date_ms > l->policy->within_ms && !in_life) || l->list.n == LOOK_BACK_MAX)
		return false;
	m = hygiene_list_add(&l->list);
	l->rc = m ? hygiene_mail_of(l->room, msg, l->mail->role, m, &l->list.own, l->err) : mr_nomem(l->err);
	return l->rc == MR_OK;
}

struct findings {
	struct mr_names *warnings;
	bool failed;
};

static void
note_finding(void *ctx, const struct hygiene_mail *mail, const char *rule, const char *text)
{
	struct findings *f = ctx;

	(void)mail;
	(void)rule;
	if (!names_add(f->warnings, str_of(text)))
		f->failed = true;
}

static enum mr_rc
judge_with_history(struct mr_room *room, const struct policy *policy, const struct hygiene_mail *mail,
    struct findings *found, struct mr_error *err)
{
	struct looking_back l = { .room = room, .policy = policy, .mail = mail, .err = err };
	/* Without a topic nobody's text is needed. */
	struct scan_request want = {
		.folders = MR_SENT, .depth = *mail->topic ? SCAN_BODIES : SCAN_HEADERS, .newest_first = true
	};
	struct mr_error ignored = { 0 };

	l.counts = hygiene_counts(policy, mail);
	if (office_folders(room, MR_SENT)) /* what cannot be looked at is no reason not to send */
		(void)office_scan(room, mail->from, &want, look_at, &l, &ignored);
	hygiene_list_turn(&l.list);
	if (l.rc == MR_OK)
		hygiene_judge_history(policy, mail, l.list.v, l.list.n, note_finding, found);
	hygiene_list_done(&l.list);
	return l.rc;
}

static enum mr_rc
judge(struct mr_room *room, const struct policy *policy, const struct mr_self *self, const struct mr_message *msg,
    const struct mr_message *original, bool keyed, struct findings *found, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	struct hygiene_mail mail;
	struct mr_error ignored = { 0 };
	struct arena *own = NULL;
	bool known =
	    ROOM_HAS(room, find_agent) && room->driver->find_agent(room, self->agent, &agent, &ignored) == MR_OK;
	enum mr_rc rc = hygiene_mail_of(room, msg, known ? agent.role : "", &mail, &own, err);

	if (rc == MR_OK && original->id[0]) {
		const struct type_def *def = types_of(room, original);

		mail.answers = def ? def->name : original->type;
	}
	if (rc == MR_OK) {
		hygiene_judge(policy, &mail, (struct mr_str){ msg->body, msg->body_len }, note_finding, found);
		rc = keyed ? MR_OK : judge_with_history(room, policy, &mail, found, err);
	}
	arena_free(own);
	return rc == MR_OK && found->failed ? mr_nomem(err) : rc;
}

enum mr_rc
hygiene_check(struct mr_room *room, const struct mr_self *self, const struct mr_message *msg,
    const struct mr_message *original, bool keyed, struct mr_names *ret_warnings, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names warnings = { 0 };
	mr_auto(policy_done) struct policy policy = { 0 };
	struct findings found = { .warnings = &warnings };
	enum mr_rc rc;

	if (!mr_room_setting(room, "Hygiene") && !mr_room_setting(room, "Hygiene-Policy"))
		return MR_OK;
	rc = policy_load(room, NULL, &policy, err);
	if (rc != MR_OK || policy.mode == HYGIENE_OFF)
		return rc;
	rc = judge(room, &policy, self, msg, original, keyed, &found, err);
	if (rc != MR_OK || warnings.n == 0)
		return rc;
	if (policy.mode == HYGIENE_REFUSE) {
		return mr_fail(err, MR_REFUSED,
		    "%s\nthis room refuses such mail (Hygiene: refuse); --force sends it all the same", warnings.v[0]);
	}
	for (size_t i = 0; i < warnings.n; i++)
		if (!names_add(ret_warnings, str_of(warnings.v[i])))
			return mr_nomem(err);
	return MR_OK;
}
