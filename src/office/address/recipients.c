/* SPDX-License-Identifier: MIT */
/* recipients.c - from what stands after `send` to those who get the message, each of them once. */
#include "base/format.h"
#include "base/text.h"
#include "office/address/resolve.h"

/* ---- What comes out ---- */

enum mr_rc
resolver_reach(struct resolver *r, const char *target, bool live, bool chosen, struct mr_error *err)
{
	bool gone = !live && strcmp(target, OPERATOR) != 0;
	enum mr_rc rc = MR_OK;

	if (!chosen && strcmp(target, r->sender) == 0) {
		r->left_out++;
		return MR_OK;
	}
	r->reached++;
	if (gone && !nameset_has(&r->in_all, target) && !names_add(&r->out->not_live, str_of(target)))
		return mr_nomem(err);
	rc = nameset_add_once(&r->in_all, &r->out->all, target, err);
	if (rc == MR_OK && !r->unlisted)
		rc = nameset_add_once(&r->in_header, r->header, target, err);
	return rc;
}

enum mr_rc
resolver_reach_away(struct resolver *r, const char *target, const char *address, bool missing, struct mr_error *err)
{
	enum mr_rc rc = nameset_add_once(&r->in_all, &r->out->all, target, err);

	r->reached++;
	if (rc == MR_OK && missing && !names_has(&r->out->away, address) && !names_add(&r->out->away, str_of(address)))
		rc = mr_nomem(err);
	return rc == MR_OK ? nameset_add_once(&r->in_header, r->header, address, err) : rc;
}

void
resolver_form(struct resolver *r, const char *form, const char *name)
{
	if (r->depth > 0 || r->form)
		return;
	r->form = form;
	text_join(r->name, sizeof(r->name), name, NULL);
}

static enum mr_rc add_sentence(struct mr_names *list, const char *fmt, va_list args, struct mr_error *err)
    MR_PRINTF(2, 0);

static enum mr_rc
add_sentence(struct mr_names *list, const char *fmt, va_list args, struct mr_error *err)
{
	char text[600];

	format_print(text, sizeof(text), fmt, args);
	return names_add(list, str_of(text)) ? MR_OK : mr_nomem(err);
}

enum mr_rc
resolver_trail(struct resolver *r, struct mr_error *err, const char *fmt, ...)
{
	va_list args;
	enum mr_rc rc;

	va_start(args, fmt);
	rc = add_sentence(&r->trail, fmt, args, err);
	va_end(args);
	return rc;
}

enum mr_rc
resolver_trouble(struct resolver *r, struct mr_error *err, const char *fmt, ...)
{
	struct mr_names *trouble = &r->out->trouble;
	va_list args;
	enum mr_rc rc;

	va_start(args, fmt);
	rc = add_sentence(trouble, fmt, args, err);
	va_end(args);
	if (rc != MR_OK)
		return rc;
	/* Two groups may name the same missing member: it is said once. */
	struct mr_names before = { trouble->v, trouble->n - 1 };

	if (names_has(&before, trouble->v[before.n]))
		free(trouble->v[--trouble->n]);
	return MR_OK;
}

/* ---- The agents of the room ---- */

void
resolver_expect_many(struct resolver *r, size_t n)
{
	const struct room_driver *driver = r->room->driver;

	r->many = r->many || n > NOT_LIVE_MAX;
	/* For one recipient another look is cheaper. Once somebody was found it is too late: that was before. */
	if (n > 1 && r->out->all.n == 0 && !r->agents_read && r->out->removals == 0)
		r->out->removals = driver->removals(r->room);
}

static bool
note_agent(void *ctx, const struct mr_agent *agent)
{
	struct resolver *r = ctx;

	if (r->agents_n == r->agents_cap) {
		size_t cap = r->agents_cap ? 2 * r->agents_cap : 64;
		struct known_agent *grown = realloc(r->agents, cap * sizeof(*grown));

		if (!grown)
			return false;
		r->agents = grown;
		r->agents_cap = cap;
	}
	struct known_agent *known = &r->agents[r->agents_n];

	known->stray = agent->stray;
	known->name = arena_dup(&r->own, str_of(agent->name));
	known->live = !office_has_lives(r->room) || (agent->life > 0 && mr_agent_presence(agent) != MR_GONE);
	if (!known->name)
		return false;
	r->agents_n++;
	return true;
}

struct noting {
	struct resolver *r;
	bool failed;
};

static bool
note_or_fail(void *ctx, const struct mr_agent *agent)
{
	struct noting *n = ctx;

	n->failed = !note_agent(n->r, agent);
	return !n->failed;
}

enum mr_rc
resolver_agents(struct resolver *r, struct mr_error *err)
{
	struct noting noting = { .r = r };
	enum mr_rc rc;

	if (r->agents_read)
		return MR_OK;
	if (!ROOM_HAS(r->room, each_agent))
		return office_lacks(r->room, "list of agents to match patterns with", err);
	r->agents_n = 0;
	rc = r->room->driver->each_agent(r->room, note_or_fail, &noting, err);
	if (rc == MR_OK && noting.failed)
		rc = mr_nomem(err);
	r->agents_read = rc == MR_OK;
	return rc;
}

/* ---- From start to end ---- */

void
resolver_init(struct resolver *r, struct mr_room *room, const char *sender, bool hold, struct recipients *out)
{
	const char *rule = mr_room_setting(room, "Unknown-Recipients");

	*r = (struct resolver){
		.room = room,
		.sender = sender ? sender : "",
		.hold = hold || (rule && ascii_caseeq(rule, "hold")),
		.out = out,
		.header = &out->to,
	};
}

void
resolver_done(struct resolver *r)
{
	nameset_done(&r->in_all);
	nameset_done(&r->in_header);
	mr_names_done(&r->trail);
	mr_names_done(&r->visited);
	free(r->agents);
	arena_free(r->own);
}

enum mr_rc
resolver_take(struct resolver *r, const char *given, struct mr_error *err)
{
	/* What one address reaches is counted for itself: a group whose members all stood before it is not
	 * empty. */
	mr_names_done(&r->visited);
	r->form = NULL;
	r->reached = r->left_out = 0;
	r->trouble_before = r->out->trouble.n;
	return resolve_address(r, given, err);
}

static enum mr_rc
take_list(struct resolver *r, const char *const *given, struct mr_names *header, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	r->header = header;
	for (size_t i = 0; rc == MR_OK && given && given[i]; i++)
		rc = resolver_take(r, given[i], err);
	return rc;
}

static size_t
list_length(const char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

enum mr_rc
recipients_resolve(struct mr_room *room, const char *sender, const char *const *to, const char *const *cc, bool hold,
    struct recipients *ret, struct mr_error *err)
{
	mr_auto(recipients_done) struct recipients out = { 0 };
	mr_auto(resolver_done) struct resolver r;
	enum mr_rc rc;

	resolver_init(&r, room, sender, hold, &out);
	resolver_expect_many(&r, list_length(to) + list_length(cc));
	rc = take_list(&r, to, &out.to, err);
	if (rc == MR_OK)
		rc = take_list(&r, cc, &out.cc, err);
	if (rc != MR_OK)
		return rc;
	if (out.all.n == 0) {
		return mr_fail(err, MR_REFUSED,
		    "the message has no recipient\nname at least one agent; `mailroom who` lists them");
	}
	*ret = out;
	out = (struct recipients){ 0 };
	return MR_OK;
}

void
recipients_done(struct recipients *r)
{
	mr_names_done(&r->to);
	mr_names_done(&r->cc);
	mr_names_done(&r->all);
	mr_names_done(&r->not_live);
	mr_names_done(&r->trouble);
	mr_names_done(&r->away);
}
