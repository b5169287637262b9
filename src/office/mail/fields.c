/* SPDX-License-Identifier: MIT */
/* fields.c - what a sender asked for and a kind of room cannot hold is refused, never dropped; what came by itself,
 * from the message that is answered, is left out. */
#include "base/error.h"
#include "office/office.h"

static const struct {
	enum room_field field;
	const char *what, *hint;
} fields[] = {
	{ FIELD_SUBJECT, "subjects", "leave out -s: the first line of the text can say it" },
	{ FIELD_CC, "copies that say so", "leave out --cc: name everyone as a recipient" },
	{ FIELD_TYPE, "message types", "leave out --type, and say it in the text" },
	{ FIELD_PRIORITY, "priorities", "leave out --priority, and say it in the text" },
	{ FIELD_THREAD, "threads", "leave out --thread" },
	{ FIELD_REPLY_TO, "answers that say what they answer", "leave out --reply-to" },
	{ FIELD_HEADERS, "such headers", "leave out --header, and say it in the text" },
	{ FIELD_BY, "times by which an answer is wanted", "leave out --by, and say it in the text" },
	{ FIELD_BINARY, "way to hold what is not text", "put it into a file and send its path" },
};

/* Which of the fields did the sender ask for? */
static unsigned
asked_for(const struct mr_draft *d, unsigned implied)
{
	unsigned asked = FIELD_BINARY;

	asked |= d->subject && *d->subject ? FIELD_SUBJECT : 0;
	asked |= d->cc && d->cc[0] ? FIELD_CC : 0;
	asked |= d->type && *d->type ? FIELD_TYPE : 0;
	asked |= d->priority != MR_NORMAL ? FIELD_PRIORITY : 0;
	asked |= d->thread && *d->thread ? FIELD_THREAD : 0;
	asked |= d->reply_to && *d->reply_to ? FIELD_REPLY_TO : 0;
	asked |= d->headers_n > 0 ? FIELD_HEADERS : 0;
	asked |= d->by_ms ? FIELD_BY : 0;
	return asked & ~implied;
}

enum mr_rc
fields_check(
    struct mr_room *room, const struct mr_draft *draft, unsigned implied, struct mr_message *msg, struct mr_error *err)
{
	struct mr_message own = *msg; /* without References, which nobody asked for */
	unsigned lacks, refused;

	if (!ROOM_HAS(room, lacks))
		return MR_OK;
	own.headers_n = draft->headers_n;
	lacks = room->driver->lacks(room, &own);
	refused = lacks & asked_for(draft, implied);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (refused & fields[i].field) {
			if (fields[i].field == FIELD_PRIORITY && (room->driver->abilities & ROOM_PRIORITIES))
				(void)mr_fail(err, MR_UNSUPPORTED, "a %s room has no priority '%s'", room->driver->kind,
				    mr_priority_word(draft->priority));
			else
				(void)office_lacks(room, fields[i].what, err);
			return mr_hint(err, "%s", fields[i].hint);
		}
	if (lacks & FIELD_PRIORITY)
		msg->priority = MR_NORMAL;
	if (lacks & FIELD_TYPE) /* the subject says it */
		msg->type = "";
	if (lacks & FIELD_THREAD)
		msg->thread = "";
	if (room->driver->lacks(room, msg) & FIELD_HEADERS)
		msg->headers_n = draft->headers_n;
	return MR_OK;
}
