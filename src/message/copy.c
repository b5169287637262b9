/* SPDX-License-Identifier: MIT */
/* copy.c - a message that outlives the one it was taken from: all its strings are in an arena of its own. */
#include "base/error.h"
#include "message/message.h"

struct copying {
	struct arena *own;
	bool failed; /* out of memory */
};

static char *
copy_text(struct copying *c, const char *text)
{
	char *mine = arena_dup(&c->own, str_of(text ? text : ""));

	c->failed |= !mine;
	return mine;
}

static void
copy_names(struct copying *c, const struct mr_names *from, struct mr_names *to)
{
	*to = (struct mr_names){ 0 };
	if (from->n == 0)
		return;
	to->v = arena_alloc(&c->own, from->n * sizeof(*to->v));
	c->failed |= !to->v;
	for (; to->v && to->n < from->n; to->n++)
		to->v[to->n] = copy_text(c, from->v[to->n]);
}

/* NULL when there are none. */
static const struct mr_header *
copy_headers(struct copying *c, const struct mr_header *from, size_t n)
{
	struct mr_header *headers = n > 0 ? arena_alloc(&c->own, n * sizeof(*headers)) : NULL;

	c->failed |= n > 0 && !headers;
	for (size_t i = 0; headers && i < n; i++) {
		headers[i].name = copy_text(c, from[i].name);
		headers[i].value = copy_text(c, from[i].value);
	}
	return headers;
}

enum mr_rc
message_copy(const struct mr_message *from, struct mr_message *ret, struct mr_error *err)
{
	struct copying c = { 0 };
	struct mr_message to = *from;

	to.from = copy_text(&c, from->from);
	to.subject = copy_text(&c, from->subject);
	to.type = copy_text(&c, from->type);
	to.thread = copy_text(&c, from->thread);
	to.reply_to = copy_text(&c, from->reply_to);
	to.replace_key = copy_text(&c, from->replace_key);
	to.path = copy_text(&c, from->path);
	copy_names(&c, &from->to, &to.to);
	copy_names(&c, &from->cc, &to.cc);
	to.headers = copy_headers(&c, from->headers, from->headers_n);
	to.envelope = copy_headers(&c, from->envelope, from->envelope_n);
	if (from->body) {
		to.body = arena_dup(&c.own, (struct mr_str){ from->body, from->body_len });
		c.failed |= !to.body;
	}
	if (c.failed) {
		arena_free(c.own);
		return mr_nomem(err);
	}
	to.own = c.own;
	*ret = to;
	return MR_OK;
}
