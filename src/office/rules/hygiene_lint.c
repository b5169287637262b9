/* SPDX-License-Identifier: MIT */
/* hygiene_lint.c - what was sent lately, judged as if it were sent now. */
#include "base/error.h"
#include "office/mail/mail.h"
#include "office/rules/hygiene.h"
#include "office/types/types.h"
#include <stdlib.h>

struct linting {
	struct mr_room *room;
	const struct policy *policy;
	int64_t since_ms;
	mr_lint_fn *fn;
	void *ctx;
	size_t looked_at;
	struct hygiene_list list; /* of one sender, or of all where nobody keeps what he sent */
	const char *role;
	struct mr_error *err;
	enum mr_rc rc;
};

static void
report(void *ctx, const struct hygiene_mail *mail, const char *rule, const char *text)
{
	struct linting *l = ctx;

	l->fn(l->ctx, &(struct mr_lint){
			  .rule = rule, .agent = mail->from, .id = mail->id, .text = text, .date_ms = mail->date_ms });
}

/* What it answers may be anywhere in the sender's mailbox, or gone. */
static const char *
answered_type(struct linting *l, const struct mr_message *msg)
{
	mr_auto(mr_message_done) struct mr_message original = { 0 };
	struct mr_error ignored = { 0 };
	const struct type_def *def;
	const char *type;

	if (lookup_original(l->room, msg->from, msg->reply_to, &original, &ignored) != MR_OK)
		return "";
	def = types_of(l->room, &original);
	type = arena_dup(&l->list.own, str_of(def ? def->name : original.type));
	return type ? type : "";
}

static bool
look_at(void *ctx, const struct mr_message *msg)
{
	struct linting *l = ctx;
	struct hygiene_mail *m;

	if (msg->date_ms < l->since_ms)
		return false;
	m = hygiene_list_add(&l->list);
	l->rc = m ? hygiene_mail_of(l->room, msg, l->role, m, &l->list.own, l->err) : mr_nomem(l->err);
	if (l->rc != MR_OK)
		return false;
	if (m->answers)
		m->answers = answered_type(l, msg);
	l->looked_at++;
	hygiene_judge(l->policy, m, (struct mr_str){ msg->body, msg->body_len }, report, l);
	return true;
}

static void
judge_list(struct linting *l)
{
	hygiene_list_turn(&l->list);
	for (size_t i = 0; i < l->list.n; i++)
		hygiene_judge_history(l->policy, &l->list.v[i], l->list.v, i, report, l);
	hygiene_list_done(&l->list);
}

static bool
lint_agent(void *ctx, const struct mr_agent *agent)
{
	struct linting *l = ctx;
	struct mr_scan sent = { .filter = { .folders = MR_SENT }, .order = MR_NEWEST_FIRST, .bodies = true };
	enum mr_rc rc;

	l->role = agent->role ? agent->role : "";
	rc = mr_scan(l->room, agent->name, &sent, look_at, l, l->err);
	if (l->rc == MR_OK)
		l->rc = rc;
	judge_list(l);
	return l->rc == MR_OK;
}

/* ---- Where nobody keeps what he sent: what everybody got ---- */

static bool
look_at_received(void *ctx, const struct mr_agent *agent)
{
	struct linting *l = ctx;
	struct mr_scan got = {
		.filter = { .folders = MR_INBOX | MR_ARCHIVE }, .order = MR_NEWEST_FIRST, .bodies = true
	};
	enum mr_rc rc;

	l->role = ""; /* of the sender, whose registration says nothing here */
	rc = mr_scan(l->room, agent->name, &got, look_at, l, l->err);
	if (l->rc == MR_OK)
		l->rc = rc;
	return l->rc == MR_OK;
}

static int
by_sender(const void *va, const void *vb)
{
	const struct hygiene_mail *a = va, *b = vb;
	int order = strcmp(a->from, b->from);

	return order ? order : strcmp(a->id, b->id);
}

static void
judge_received(struct linting *l)
{
	size_t first = 0;

	if (l->list.n > 1)
		qsort(l->list.v, l->list.n, sizeof(*l->list.v), by_sender);
	for (size_t i = 0; i < l->list.n; i++) {
		if (strcmp(l->list.v[first].from, l->list.v[i].from) != 0)
			first = i;
		hygiene_judge_history(l->policy, &l->list.v[i], l->list.v + first, i - first, report, l);
	}
	hygiene_list_done(&l->list);
}

enum mr_rc
mr_lint_room(struct mr_room *room, const char *policy_name, int64_t since_ms, mr_lint_fn *fn, void *ctx,
    size_t *ret_looked_at, struct mr_error *err)
{
	mr_auto(policy_done) struct policy policy = { 0 };
	struct linting l = { .room = room, .policy = &policy, .since_ms = since_ms, .fn = fn, .ctx = ctx, .err = err };
	bool sent = office_folders(room, MR_SENT) != 0;
	enum mr_rc rc = policy_load(room, policy_name, &policy, err);

	if (rc == MR_OK)
		rc = mr_each_agent(room, sent ? lint_agent : look_at_received, &l, err);
	if (rc == MR_OK)
		rc = l.rc;
	if (rc == MR_OK && !sent)
		judge_received(&l);
	hygiene_list_done(&l.list);
	if (rc == MR_OK && ret_looked_at)
		*ret_looked_at = l.looked_at;
	return rc;
}
