/* SPDX-License-Identifier: MIT */
/*
 * types_answer.c - may a program act on a message? Whoever can write into a mailbox could command with it, so in a team
 * only members do, and an answer counts only where a request with the same id is found: in the mailbox of whoever
 * answers, or in what the asker keeps of its own mail.
 */
#include "base/error.h"
#include "office/office.h"
#include "office/types_send.h"

struct asking {
	struct mr_room *room;
	const char *asker, *answerer;
	const char *field, *value;
	bool found;
};

/* The request's own field, not that of another answer to it. */
static bool
asks_by(const struct type_def *def, const char *name)
{
	for (size_t i = 0; def && i < def->fields_n; i++)
		if (strcmp(def->fields[i].name, name) == 0)
			return !def->fields[i].answers;
	return false;
}

static bool
look_for_request(void *ctx, const struct mr_message *msg)
{
	struct asking *a = ctx;
	mr_auto(type_values_done) struct type_values values = { 0 };
	const struct type_def *def = strcmp(msg->from, a->asker) == 0 ? types_of(a->room, msg) : NULL;
	struct mr_str body = { msg->body ? msg->body : "", msg->body ? msg->body_len : 0 };
	struct mr_error ignored = { 0 };

	if (!asks_by(def, a->field) || (msg->folder == MR_SENT && !names_has(&msg->to, a->answerer)) ||
	    type_read(def, str_of(msg->subject), body, &values, &ignored) != MR_OK)
		return true;
	const char *value = type_value(&values, a->field);

	a->found = value && strcmp(value, a->value) == 0;
	return !a->found;
}

static enum mr_rc
look_into(struct asking *a, const char *mailbox, unsigned folders, struct mr_error *err)
{
	struct scan_request want = { .folders = folders, .depth = SCAN_BODIES, .newest_first = true };

	if (folders == 0 || a->found)
		return MR_OK;
	enum mr_rc rc = office_scan(a->room, mailbox, &want, look_for_request, a, err);

	if (rc != MR_NOTFOUND)
		return rc;
	*err = (struct mr_error){ 0 }; /* who has no mailbox was not asked */
	return MR_OK;
}

static enum mr_rc
check_field(struct asking *a, struct mr_error *err)
{
	unsigned folders = office_folders(a->room, ALL_FOLDERS);
	enum mr_rc rc = look_into(a, a->answerer, folders & ~(unsigned)MR_SENT, err);

	if (rc == MR_OK)
		rc = look_into(a, a->asker, folders & MR_SENT, err);
	if (rc != MR_OK || a->found)
		return rc;
	return mr_fail(
	    err, MR_REFUSED, "'%s' asked '%s' nothing with %s '%.80s'", a->asker, a->answerer, a->field, a->value);
}

enum mr_rc
types_check_answer(struct mr_room *room, const struct type_def *def, const struct type_values *values,
    const char *asker, const char *answerer, struct mr_error *err)
{
	for (size_t i = 0; i < def->fields_n; i++) {
		const char *value = def->fields[i].answers ? type_value(values, def->fields[i].name) : NULL;
		struct asking a = {
			.room = room, .asker = asker, .answerer = answerer, .field = def->fields[i].name, .value = value
		};

		if (value && check_field(&a, err) != MR_OK)
			return err->code;
	}
	return MR_OK;
}

enum mr_rc
types_usable(struct mr_room *room, const char *agent, const struct mr_message *msg, struct type_values *ret,
    struct mr_error *err)
{
	const struct type_def *def = types_of(room, msg);
	enum mr_rc rc = types_fields(room, msg, ret, err);

	if (rc == MR_OK)
		rc = typed_check_member(room, msg->from, msg, err);
	if (rc == MR_OK && def)
		rc = types_check_answer(room, def, ret, agent, msg->from, err);
	return rc;
}
