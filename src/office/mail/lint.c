/* SPDX-License-Identifier: MIT */
/*
 * lint.c - collects the facts for the rules of rules/hygiene.h: about a message that is to be sent, together with its
 * sender's earlier mail, also of earlier lives (from the sender's sent mail, newest first, as far back as a rule
 * needs); and about mail that was sent lately, judged as if it were sent now.
 */
#include "base/error.h"
#include "office/mail/mail.h"
#include "office/rules/hygiene.h"
#include "office/types/types.h"
#include <stdlib.h>

#define LOOK_BACK_MAX 1000

static int
by_sender(const void *va, const void *vb)
{
	const struct hygiene_mail *a = va, *b = vb;
	int order = strcmp(a->from, b->from);

	return order ? order : strcmp(a->id, b->id);
}

/* By sender, the oldest first. */
static void
put_in_order(struct roll *mail)
{
	if (mail->n > 1)
		qsort(mail->v, mail->n, sizeof(struct hygiene_mail), by_sender);
}

static enum mr_rc
add_mail(struct mr_room *room, const struct mr_message *msg, const char *role, struct roll *list, struct mr_error *err)
{
	mr_auto(type_values_done) struct type_values values = { 0 };
	const struct type_def *def = types_of(room, msg);
	struct hygiene_mail *m = roll_add(list, sizeof(*m));
	const char *topic = NULL;

	TRY(mr_got(m, err));
	if (def && msg->body) {
		(void)types_fields(room, msg, &values, IGNORED);
		topic = type_value(&values, "Issue");
		if (!topic || !*topic)
			topic = type_value(&values, "Bead");
	}
	*m = (struct hygiene_mail){
		.from = roll_str(list, msg->from),
		.role = roll_str(list, role),
		.type = roll_str(list, def ? def->name : msg->type),
		.topic = roll_str(list, topic),
		.subject = roll_str(list, msg->subject),
		.answers = *msg->reply_to ? "" : NULL,
		.life = msg->sender_life,
		.date_ms = msg->date_ms,
		.nudge = def && def->nudge,
	};
	(void)snprintf(m->id, sizeof(m->id), "%s", msg->id);
	return mr_got(!list->failed, err);
}

/* ---- A message that is about to be sent ---- */

struct looking_back { /* through the sender's earlier mail */
	struct mr_room *room;
	const struct hygiene_mail *mail; /* the message to be judged */
	int64_t within_ms;
	bool counts;
	struct roll *list;
	enum mr_rc rc;
	struct mr_error *err;
};

static bool
look_back(void *ctx, const struct mr_message *msg)
{
	struct looking_back *l = ctx;
	bool in_life = l->counts && msg->sender_life == l->mail->life;

	if ((l->mail->date_ms - msg->date_ms > l->within_ms && !in_life) || l->list->n == LOOK_BACK_MAX)
		return false;
	l->rc = add_mail(l->room, msg, l->mail->role, l->list, l->err);
	return l->rc == MR_OK;
}

struct warnings {
	struct mr_names *list;
	bool failed; /* out of memory */
};

static void
note_finding(void *ctx, const struct hygiene_mail *mail, const char *rule, const char *text)
{
	struct warnings *w = ctx;

	(void)mail;
	(void)rule;
	w->failed |= !names_add(w->list, str_of(text));
}

enum mr_rc
hygiene_check(struct mr_room *room, const struct mr_self *self, const struct mr_message *msg,
    const struct mr_message *original, bool keyed, struct mr_names *ret_warnings, struct mr_error *err)
{
	mr_auto(policy_done) struct policy policy = { 0 };
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	mr_auto(roll_done) struct roll one = { 0 }, before = { 0 };
	struct warnings found = { .list = ret_warnings };
	size_t others = ret_warnings->n;

	TRY(policy_load(room, NULL, &policy, err));
	if (policy.mode == HYGIENE_OFF)
		return MR_OK;
	bool known = room->driver->find_agent(room, self->agent, &agent, IGNORED) == MR_OK;

	TRY(add_mail(room, msg, known ? agent.role : "", &one, err));
	struct hygiene_mail *mail = one.v;
	const struct type_def *answered = original->id[0] ? types_of(room, original) : NULL;

	if (original->id[0])
		mail->answers = answered ? answered->name : original->type;
	hygiene_judge(&policy, mail, (struct mr_str){ msg->body, msg->body_len }, note_finding, &found);
	if (!keyed) {
		struct looking_back l = { .room = room,
			.mail = mail,
			.within_ms = policy.within_ms,
			.counts = hygiene_counts(&policy, mail),
			.list = &before,
			.err = err };
		/* Without a topic no text is needed. */
		struct scan_request want = {
			.folders = MR_SENT, .depth = *mail->topic ? SCAN_BODIES : SCAN_HEADERS, .order = SCAN_NEWEST
		};

		/* An error here must not stop the send. */
		(void)office_scan(room, mail->from, &want, look_back, &l, IGNORED);
		TRY(l.rc);
		put_in_order(&before);
		hygiene_judge_history(&policy, mail, before.v, before.n, note_finding, &found);
	}
	if (policy.mode == HYGIENE_REFUSE && ret_warnings->n > others)
		return mr_fail(err, MR_REFUSED,
		    "%s\nthis room refuses such mail (Hygiene: refuse); --force sends it anyway",
		    ret_warnings->v[others]);
	return mr_got(!found.failed, err);
}

/* ---- What was sent lately ---- */

struct linting {
	struct mr_room *room;
	const struct policy *policy;
	int64_t since_ms;
	mr_lint_fn *fn;
	void *ctx;
	size_t looked_at;
	struct roll *list; /* of one sender, or of all */
	const char *role;  /* of the sender: its registration says nothing where a room keeps no sent mail */
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

static bool
look_at(void *ctx, const struct mr_message *msg)
{
	struct linting *l = ctx;
	mr_auto(mr_message_done) struct mr_message original = { 0 };

	if (msg->date_ms < l->since_ms)
		return false;
	l->rc = add_mail(l->room, msg, l->role, l->list, l->err);
	if (l->rc != MR_OK)
		return false;
	struct hygiene_mail *m = (struct hygiene_mail *)l->list->v + l->list->n - 1;

	/* The answered message may be anywhere in the sender's mailbox, or gone. */
	if (m->answers && lookup_original(l->room, msg->from, msg->reply_to, &original, IGNORED) == MR_OK) {
		const struct type_def *def = types_of(l->room, &original);

		m->answers = roll_str(l->list, def ? def->name : original.type);
	}
	l->looked_at++;
	hygiene_judge(l->policy, m, (struct mr_str){ msg->body, msg->body_len }, report, l);
	return true;
}

/* Judges each message of the list by its sender's earlier ones. The list is empty then. */
static void
report_history(struct linting *l)
{
	struct hygiene_mail *v = l->list->v;
	size_t n = l->list->n, first = 0;

	put_in_order(l->list);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(v[first].from, v[i].from) != 0)
			first = i;
		hygiene_judge_history(l->policy, &v[i], v + first, i - first, report, l);
	}
	roll_done(l->list);
	*l->list = (struct roll){ 0 };
}

enum mr_rc
mr_lint_room(struct mr_room *room, const char *policy_name, int64_t since_ms, mr_lint_fn *fn, void *ctx,
    size_t *ret_looked_at, struct mr_error *err)
{
	mr_auto(policy_done) struct policy policy = { 0 };
	mr_auto(roll_done) struct roll list = { 0 };
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };
	struct linting l = {
		.room = room, .policy = &policy, .since_ms = since_ms, .fn = fn, .ctx = ctx, .list = &list, .err = err
	};
	/* If senders keep no sent mail, all recipients' mail is used. */
	bool sent = office_folders(room, MR_SENT) != 0;
	struct mr_scan want = { .filter = { .folders = sent ? MR_SENT : MR_INBOX | MR_ARCHIVE },
		.order = MR_NEWEST_FIRST,
		.bodies = true };

	TRY(policy_load(room, policy_name, &policy, err));
	TRY(mr_agent_list(room, &agents, err));
	for (size_t i = 0; i < agents.n; i++) {
		l.role = sent ? agents.v[i].role : "";
		TRY(mr_scan(room, agents.v[i].name, &want, look_at, &l, err));
		TRY(l.rc);
		if (sent || i + 1 == agents.n)
			report_history(&l);
	}
	if (ret_looked_at)
		*ret_looked_at = l.looked_at;
	return MR_OK;
}
