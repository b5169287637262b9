/* SPDX-License-Identifier: MIT */
/*
 * lint.c - what the rules look at, taken from messages: one that is about to be sent, judged by itself and by
 * what its sender sent before, in earlier lives, too (a look into the sender's sent mail, newest first, as far back as
 * a rule asks); and what was sent lately, judged as if it were sent now.
 */
#include "base/error.h"
#include "office/mail/mail.h"
#include "office/rules/hygiene.h"
#include "office/types/types.h"
#include <stdlib.h>

#define LOOK_BACK_MAX 1000

/* The newest was met first: turned, the oldest is. */
static void
turn(struct roll *l)
{
	struct hygiene_mail *v = l->v;

	for (size_t i = 0; i < l->n / 2; i++) {
		struct hygiene_mail other = v[i];

		v[i] = v[l->n - 1 - i];
		v[l->n - 1 - i] = other;
	}
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

struct sending {
	struct mr_room *room;
	struct policy policy;
	struct roll mail;   /* struct hygiene_mail: the one */
	struct roll before; /* of the same sender */
	bool counts;
	struct mr_names found; /* a sentence each */
	bool failed;
	enum mr_rc rc;
	struct mr_error *err;
};

static void
sending_done(struct sending *s)
{
	policy_done(&s->policy);
	roll_done(&s->mail);
	roll_done(&s->before);
	mr_names_done(&s->found);
}

static bool
look_back(void *ctx, const struct mr_message *msg)
{
	struct sending *s = ctx;
	const struct hygiene_mail *mail = s->mail.v;
	bool in_life = s->counts && msg->sender_life == mail->life;

	if ((mail->date_ms - msg->date_ms > s->policy.within_ms && !in_life) || s->before.n == LOOK_BACK_MAX)
		return false;
	s->rc = add_mail(s->room, msg, mail->role, &s->before, s->err);
	return s->rc == MR_OK;
}

static void
note_finding(void *ctx, const struct hygiene_mail *mail, const char *rule, const char *text)
{
	struct sending *s = ctx;

	(void)mail;
	(void)rule;
	s->failed |= !names_add(&s->found, str_of(text));
}

static enum mr_rc
judge(struct sending *s, const char *sender, const struct mr_message *msg, const struct mr_message *original,
    bool keyed, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	bool known = s->room->driver->find_agent(s->room, sender, &agent, IGNORED) == MR_OK;

	TRY(add_mail(s->room, msg, known ? agent.role : "", &s->mail, err));
	struct hygiene_mail *mail = s->mail.v;
	const struct type_def *answered = original->id[0] ? types_of(s->room, original) : NULL;

	if (original->id[0])
		mail->answers = answered ? answered->name : original->type;
	hygiene_judge(&s->policy, mail, (struct mr_str){ msg->body, msg->body_len }, note_finding, s);
	if (!keyed) {
		/* Without a topic no text is needed. */
		struct scan_request want = {
			.folders = MR_SENT, .depth = *mail->topic ? SCAN_BODIES : SCAN_HEADERS, .order = SCAN_NEWEST
		};

		s->counts = hygiene_counts(&s->policy, mail);
		if (office_folders(s->room, MR_SENT)) /* what cannot be looked at is no reason not to send */
			(void)office_scan(s->room, mail->from, &want, look_back, s, IGNORED);
		if (s->rc != MR_OK)
			return s->rc;
		turn(&s->before);
		hygiene_judge_history(&s->policy, mail, s->before.v, s->before.n, note_finding, s);
	}
	return s->failed ? mr_nomem(err) : MR_OK;
}

enum mr_rc
hygiene_check(struct mr_room *room, const struct mr_self *self, const struct mr_message *msg,
    const struct mr_message *original, bool keyed, struct mr_names *ret_warnings, struct mr_error *err)
{
	mr_auto(sending_done) struct sending s = { .room = room, .err = err };

	TRY(policy_load(room, NULL, &s.policy, err));
	if (s.policy.mode == HYGIENE_OFF)
		return MR_OK;
	TRY(judge(&s, self->agent, msg, original, keyed, err));
	if (s.policy.mode == HYGIENE_REFUSE && s.found.n > 0)
		return mr_fail(err, MR_REFUSED,
		    "%s\nthis room refuses such mail (Hygiene: refuse); --force sends it all the same", s.found.v[0]);
	for (size_t i = 0; i < s.found.n; i++)
		TRY(mr_got(names_add(ret_warnings, str_of(s.found.v[i])), err));
	return MR_OK;
}

/* ---- What was sent lately ---- */

struct linting {
	struct mr_room *room;
	struct policy policy;
	int64_t since_ms;
	bool sent; /* every sender keeps what it sent; else what everybody got is looked at */
	mr_lint_fn *fn;
	void *ctx;
	size_t looked_at;
	struct roll list; /* of one sender, or of all */
	const char *role; /* of the sender: its registration says nothing where a room keeps no sent mail */
	struct mr_error *err;
	enum mr_rc rc;
};

static void
linting_done(struct linting *l)
{
	policy_done(&l->policy);
	roll_done(&l->list);
}

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
	l->rc = add_mail(l->room, msg, l->role, &l->list, l->err);
	if (l->rc != MR_OK)
		return false;
	struct hygiene_mail *m = (struct hygiene_mail *)l->list.v + l->list.n - 1;

	/* What it answers may be anywhere in the sender's mailbox, or gone. */
	if (m->answers && lookup_original(l->room, msg->from, msg->reply_to, &original, IGNORED) == MR_OK) {
		const struct type_def *def = types_of(l->room, &original);

		m->answers = roll_str(&l->list, def ? def->name : original.type);
	}
	l->looked_at++;
	hygiene_judge(&l->policy, m, (struct mr_str){ msg->body, msg->body_len }, report, l);
	return true;
}

static int
by_sender(const void *va, const void *vb)
{
	const struct hygiene_mail *a = va, *b = vb;
	int order = strcmp(a->from, b->from);

	return order ? order : strcmp(a->id, b->id);
}

enum mr_rc
mr_lint_room(struct mr_room *room, const char *policy_name, int64_t since_ms, mr_lint_fn *fn, void *ctx,
    size_t *ret_looked_at, struct mr_error *err)
{
	mr_auto(linting_done) struct linting l = { .room = room,
		.since_ms = since_ms,
		.sent = office_folders(room, MR_SENT) != 0,
		.fn = fn,
		.ctx = ctx,
		.err = err };
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };
	struct mr_scan want = { .filter = { .folders = l.sent ? MR_SENT : MR_INBOX | MR_ARCHIVE },
		.order = MR_NEWEST_FIRST,
		.bodies = true };
	struct hygiene_mail *v;
	size_t first = 0;

	TRY(policy_load(room, policy_name, &l.policy, err));
	TRY(mr_agent_list(room, &agents, err));
	for (size_t i = 0; i < agents.n; i++) {
		l.role = l.sent ? agents.v[i].role : "";
		TRY(mr_scan(room, agents.v[i].name, &want, look_at, &l, err));
		if (l.rc != MR_OK)
			return l.rc;
		if (!l.sent)
			continue;
		turn(&l.list);
		v = l.list.v;
		for (size_t k = 0; k < l.list.n; k++)
			hygiene_judge_history(&l.policy, &v[k], v, k, report, &l);
		roll_done(&l.list);
		l.list = (struct roll){ 0 };
	}
	v = l.list.v;
	if (l.list.n > 1)
		qsort(v, l.list.n, sizeof(*v), by_sender);
	for (size_t i = 0; i < l.list.n; i++) {
		if (strcmp(v[first].from, v[i].from) != 0)
			first = i;
		hygiene_judge_history(&l.policy, &v[i], v + first, i - first, report, &l);
	}
	if (ret_looked_at)
		*ret_looked_at = l.looked_at;
	return MR_OK;
}
