/* SPDX-License-Identifier: MIT */
/* hygiene_mail.c - what the rules look at, taken from a message. */
#include "base/error.h"
#include "office/rules/hygiene.h"
#include "office/types/types_store.h"
#include <stdlib.h>

static const char *
topic_of(struct mr_room *room, const struct mr_message *msg, struct arena **own)
{
	struct type_values values = { 0 };
	const char *value = NULL, *kept;

	if (!msg->body)
		return "";
	types_fields_at_all(room, msg, &values);
	value = type_value(&values, "Issue");
	if (!value || !*value)
		value = type_value(&values, "Bead");
	kept = value ? arena_dup(own, str_of(value)) : "";
	type_values_done(&values);
	return kept;
}

enum mr_rc
hygiene_mail_of(struct mr_room *room, const struct mr_message *msg, const char *role, struct hygiene_mail *ret,
    struct arena **own, struct mr_error *err)
{
	const struct type_def *def = types_of(room, msg);
	struct hygiene_mail m = {
		.from = arena_dup(own, str_of(msg->from)),
		.role = arena_dup(own, str_of(role ? role : "")),
		.type = arena_dup(own, str_of(def ? def->name : msg->type)),
		.topic = def ? topic_of(room, msg, own) : "",
		.subject = arena_dup(own, str_of(msg->subject)),
		.answers = *msg->reply_to ? "" : NULL,
		.life = msg->sender_life,
		.date_ms = msg->date_ms,
		.nudge = def && def->nudge,
	};

	if (!m.from || !m.role || !m.type || !m.topic || !m.subject)
		return mr_nomem(err);
	(void)snprintf(m.id, sizeof(m.id), "%s", msg->id);
	*ret = m;
	return MR_OK;
}

struct hygiene_mail *
hygiene_list_add(struct hygiene_list *l)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 32;
		struct hygiene_mail *v = reallocarray(l->v, cap, sizeof(*v));

		if (!v)
			return NULL;
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n] = (struct hygiene_mail){ 0 };
	return &l->v[l->n++];
}

void
hygiene_list_turn(struct hygiene_list *l)
{
	for (size_t i = 0; i < l->n / 2; i++) {
		struct hygiene_mail other = l->v[i];

		l->v[i] = l->v[l->n - 1 - i];
		l->v[l->n - 1 - i] = other;
	}
}

void
hygiene_list_done(struct hygiene_list *l)
{
	free(l->v);
	arena_free(l->own);
	*l = (struct hygiene_list){ 0 };
}
