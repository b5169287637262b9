/* SPDX-License-Identifier: MIT */
/* show_fields.c - the fields of a message, as its type names them, in JSON. */
#include "base/text.h"
#include "cli/cli.h"

static bool
came_before(const struct mr_fields *fields, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(fields->v[k].name, fields->v[i].name) == 0)
			return true;
	return false;
}

void
json_fields_value(struct json *j, const struct mr_fields *fields)
{
	json_key(j, "fields");
	if (fields && fields->json && fields->json[0] && utf8_valid(str_of(fields->json))) {
		json_raw(j, str_of(fields->json)); /* an object: numbers stay numbers, lists stay lists */
		return;
	}
	json_open(j, '{');
	for (size_t i = 0; fields && i < fields->n; i++)
		if (!came_before(fields, i))
			json_key_str(j, fields->v[i].name, fields->v[i].value);
	json_close(j);
}

void
json_fields(struct json *j, struct mr_room *room, const struct mr_message *msg, bool body)
{
	mr_auto(mr_fields_done) struct mr_fields fields = { 0 };
	struct mr_error err = { 0 };
	enum mr_rc rc = body && msg->body ? mr_message_fields(room, msg, &fields, &err) : MR_OK;

	json_fields_value(j, &fields);
	if (rc != MR_OK)
		json_key_str(j, "fields_error", err.message);
}
