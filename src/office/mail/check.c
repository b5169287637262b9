/* SPDX-License-Identifier: MIT */
/*
 * check.c - is there mail for an agent? Control messages, by which programs steer each other, are none: they wait for
 * a patrol and are never shown to an agent as text. One of them that no program can use is shown, for it would be lost
 * otherwise.
 */
#include "base/error.h"
#include "message/type.h"
#include "office/types/control.h"
#include "office/office.h"
#include "office/types/types.h"

/* The types are files, and reading them all costs more than looking at a mailbox: most mail has no type. */
static bool
may_have_type(const struct mr_message *msg)
{
	return *msg->type || type_word(str_of(msg->subject)).len > 0 ||
	       (msg->body && control_is((struct mr_str){ msg->body, msg->body_len }));
}

bool
mr_is_control(struct mr_room *room, const char *agent, const struct mr_message *msg, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message whole = { 0 };
	struct type_values values = { 0 };
	const struct type_def *def = may_have_type(msg) ? types_of(room, msg) : NULL;
	struct mr_error broken = { 0 };
	enum mr_rc rc;

	*err = (struct mr_error){ 0 };
	if (!def || !def->routed)
		return false;
	if (!msg->body) {
		rc = room->driver->fetch(room, agent, msg->id, msg->folder, SCAN_BODIES, &whole, &broken);
		if (rc != MR_OK) /* gone meanwhile, or nobody can read it: that is told elsewhere */
			return true;
		msg = &whole;
	}
	rc = types_usable(room, agent, msg, &values, &broken);
	type_values_done(&values);
	if (rc == MR_OK)
		return true;
	*err = broken;
	(void)mr_wrap(err, "type '%s'", def->name);
	return false;
}

struct counting {
	struct mr_room *room;
	const char *agent;
	size_t n;
};

static bool
count_mail(void *ctx, const struct mr_message *msg)
{
	struct counting *c = ctx;
	struct mr_error broken = { 0 };

	if (!(msg->flags & MR_SEEN) && !mr_is_control(c->room, c->agent, msg, &broken))
		c->n++;
	return true;
}

/* Nobody's mail costs the names alone. */
enum mr_rc
mr_check_all(struct mr_room *room, const char *agent, mr_trouble_fn *trouble, void *ctx, size_t *ret_unread,
    struct mr_error *err)
{
	struct scan_request want = {
		.folders = MR_INBOX, .depth = SCAN_HEADERS, .unread_only = true, .trouble = trouble, .trouble_ctx = ctx
	};
	struct counting c = { .room = room, .agent = agent };

	scan_sweep(room, agent);
	enum mr_rc rc = office_scan(room, agent, &want, count_mail, &c, err);

	if (rc == MR_OK)
		*ret_unread = c.n;
	return rc;
}

enum mr_rc
mr_check(struct mr_room *room, const char *agent, size_t *ret_unread, struct mr_error *err)
{
	return mr_check_all(room, agent, NULL, NULL, ret_unread, err);
}
