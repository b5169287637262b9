/* SPDX-License-Identifier: MIT */
/*
 * batch_line.c - from a JSON object to a draft. Names are those that `--json` prints. What is not known is refused and
 * not skipped: a name that is misspelt would else be a subject, or a key, that got lost.
 */
#include "base/clock.h"
#include "base/error.h"
#include "cli/batch.h"
#include "message/json_read.h"

#define LIST_MAX ((size_t)10000)

struct reading {
	struct arena **own;
	struct mr_draft *draft;
	struct mr_error *err;
	const char *name; /* of the member at hand */
};

static enum mr_rc
wrong(struct reading *r, const char *what)
{
	return mr_fail(r->err, MR_REFUSED, "'%s' %s", r->name, what);
}

/* ---- Values ---- */

/* ret_len NULL: a text that ends with its first NUL byte must not have one. */
static enum mr_rc
read_text(struct reading *r, struct json_value value, const char **ret, size_t *ret_len)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (value.kind != JSON_STRING)
		return wrong(r, "must be a string");
	json_text(value, &text);
	*ret = buf_ok(&text) ? arena_dup(r->own, buf_str(&text)) : NULL;
	if (!*ret)
		return mr_nomem(r->err);
	if (ret_len)
		*ret_len = text.len;
	else if (strlen(*ret) != text.len)
		return wrong(r, "has a NUL character in it");
	return MR_OK;
}

static size_t
count_items(struct json_value array)
{
	struct json_value one;
	size_t n = 0;

	for (size_t at = 0; json_item(array, &at, &one);)
		n++;
	return n;
}

/* One string, or an array of them. */
static enum mr_rc
read_list(struct reading *r, struct json_value value, const char *const **ret)
{
	size_t cap = value.kind == JSON_ARRAY ? count_items(value) : 1, n = 0;
	const char **list = cap <= LIST_MAX ? arena_alloc(r->own, (cap + 1) * sizeof(*list)) : NULL;
	struct json_value one;
	enum mr_rc rc = MR_OK;

	if (cap > LIST_MAX)
		return wrong(r, "has too many entries");
	if (!list)
		return mr_nomem(r->err);
	if (value.kind != JSON_ARRAY)
		rc = read_text(r, value, &list[n], NULL);
	else
		for (size_t at = 0; rc == MR_OK && json_item(value, &at, &one);)
			rc = read_text(r, one, &list[n++], NULL);
	*ret = list;
	return rc;
}

static enum mr_rc
read_pair(struct reading *r, struct json_value key, struct json_value value, struct mr_header *ret)
{
	enum mr_rc rc = read_text(r, key, &ret->name, NULL);

	if (rc != MR_OK || value.kind == JSON_STRING)
		return rc == MR_OK ? read_text(r, value, &ret->value, NULL) : rc;
	if (value.kind == JSON_ARRAY || value.kind == JSON_OBJECT || value.kind == JSON_NULL)
		return wrong(r, "must have a text for each name");
	ret->value = arena_dup(r->own, value.raw); /* a number, or true */
	return ret->value ? MR_OK : mr_nomem(r->err);
}

static enum mr_rc
read_pairs(struct reading *r, struct json_value value, const struct mr_header **ret, size_t *ret_n)
{
	struct json_value key, one;
	size_t cap = 0, n = 0;
	enum mr_rc rc = MR_OK;

	if (value.kind != JSON_OBJECT)
		return wrong(r, "must be an object: {\"Name\": \"value\"}");
	for (size_t at = 0; json_member(value, &at, &key, &one);)
		cap++;
	if (cap > LIST_MAX)
		return wrong(r, "has too many entries");
	struct mr_header *pairs = arena_alloc(r->own, (cap + 1) * sizeof(*pairs));

	if (!pairs)
		return mr_nomem(r->err);
	for (size_t at = 0; rc == MR_OK && json_member(value, &at, &key, &one);)
		rc = read_pair(r, key, one, &pairs[n++]);
	*ret = pairs;
	*ret_n = n;
	return rc;
}

/* "30m" from now, or a time. */
static enum mr_rc
read_time(struct reading *r, struct json_value value, int64_t *ret_ms)
{
	struct mr_error ignored = { 0 };
	const char *text = NULL;
	int64_t wait_ms;

	TRY(read_text(r, value, &text, NULL));
	if (mr_duration_parse(text, &wait_ms, &ignored) == MR_OK) /* first: "30m" is also a time, that long ago */
		*ret_ms = clock_now_ms() + wait_ms;
	else if (mr_time_parse(text, ret_ms, &ignored) != MR_OK)
		return wrong(r, "is no time: give 30m, 2h, or 2026-03-05T10:30:00Z");
	return MR_OK;
}

static enum mr_rc
read_flag(struct reading *r, struct json_value value, bool *ret)
{
	if (value.kind != JSON_TRUE && value.kind != JSON_FALSE)
		return wrong(r, "must be true or false");
	*ret = value.kind == JSON_TRUE;
	return MR_OK;
}

/* ---- Members ---- */

static enum mr_rc
read_to(struct reading *r, struct json_value value)
{
	return read_list(r, value, &r->draft->to);
}

static enum mr_rc
read_cc(struct reading *r, struct json_value value)
{
	return read_list(r, value, &r->draft->cc);
}

static enum mr_rc
read_subject(struct reading *r, struct json_value value)
{
	return read_text(r, value, &r->draft->subject, NULL);
}

static enum mr_rc
read_body(struct reading *r, struct json_value value)
{
	return read_text(r, value, &r->draft->body, &r->draft->body_len);
}

static enum mr_rc
read_type(struct reading *r, struct json_value value)
{
	return read_text(r, value, &r->draft->type, NULL);
}

static enum mr_rc
read_fields(struct reading *r, struct json_value value)
{
	return read_pairs(r, value, &r->draft->fields, &r->draft->fields_n);
}

static enum mr_rc
read_headers(struct reading *r, struct json_value value)
{
	return read_pairs(r, value, &r->draft->headers, &r->draft->headers_n);
}

static enum mr_rc
read_priority(struct reading *r, struct json_value value)
{
	const char *word = NULL;
	enum mr_rc rc = read_text(r, value, &word, NULL);

	r->draft->priority_given = true;
	return rc == MR_OK ? mr_priority_parse(word, &r->draft->priority, r->err) : rc;
}

static enum mr_rc
read_thread(struct reading *r, struct json_value value)
{
	return read_text(r, value, &r->draft->thread, NULL);
}

static enum mr_rc
read_reply_to(struct reading *r, struct json_value value)
{
	return read_text(r, value, &r->draft->reply_to, NULL);
}

static enum mr_rc
read_key(struct reading *r, struct json_value value)
{
	return read_text(r, value, &r->draft->key, NULL);
}

static enum mr_rc
read_replace_key(struct reading *r, struct json_value value)
{
	return read_text(r, value, &r->draft->replace_key, NULL);
}

static enum mr_rc
read_by(struct reading *r, struct json_value value)
{
	return read_time(r, value, &r->draft->by_ms);
}

static enum mr_rc
read_not_before(struct reading *r, struct json_value value)
{
	return read_time(r, value, &r->draft->not_before_ms);
}

static enum mr_rc
read_hold(struct reading *r, struct json_value value)
{
	return read_flag(r, value, &r->draft->hold);
}

static enum mr_rc
read_force(struct reading *r, struct json_value value)
{
	return read_flag(r, value, &r->draft->force);
}

static const struct member {
	const char *name;
	enum mr_rc (*read)(struct reading *r, struct json_value value);
} members[] = {
	{ "to", read_to },
	{ "cc", read_cc },
	{ "subject", read_subject },
	{ "body", read_body },
	{ "type", read_type },
	{ "fields", read_fields },
	{ "headers", read_headers },
	{ "priority", read_priority },
	{ "thread", read_thread },
	{ "reply_to", read_reply_to },
	{ "key", read_key },
	{ "replace_key", read_replace_key },
	{ "by", read_by },
	{ "not_before", read_not_before },
	{ "hold", read_hold },
	{ "force", read_force },
};

static enum mr_rc
unknown_member(struct json_value key, struct mr_error *err)
{
	return mr_fail(err, MR_REFUSED,
	    "%.*s is no part of a message\n"
	    "there are: to, cc, subject, body, type, fields, headers, priority, thread, reply_to, key, replace_key, by, not_before, hold, force",
	    (int)(key.raw.len < 60 ? key.raw.len : 60), key.raw.ptr);
}

static enum mr_rc
read_member(struct reading *r, struct json_value key, struct json_value value)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		if (!json_key_is(key, members[i].name))
			continue;
		r->name = members[i].name;
		return value.kind == JSON_NULL ? MR_OK : members[i].read(r, value);
	}
	return unknown_member(key, r->err);
}

enum mr_rc
batch_line(struct mr_str line, struct arena **own, struct mr_draft *ret, struct mr_error *err)
{
	struct reading r = { .own = own, .draft = ret, .err = err };
	struct json_value all, key, value;
	const char *problem = "";
	enum mr_rc rc = MR_OK;

	*ret = (struct mr_draft){ 0 };
	if (!json_whole(line, &all, &problem) || all.kind != JSON_OBJECT) {
		return mr_fail(err, MR_REFUSED,
		    "the line is no JSON object%s%s\none message a line: {\"to\": \"bob\", \"body\": \"hi\"}",
		    *problem ? ": it " : "", problem);
	}
	for (size_t at = 0; rc == MR_OK && json_member(all, &at, &key, &value);)
		rc = read_member(&r, key, value);
	if (rc != MR_OK)
		return rc;
	if (!ret->to || !ret->to[0])
		return mr_fail(err, MR_REFUSED, "the message has no recipient\nname at least one agent in \"to\"");
	if (ret->fields_n > 0 && !ret->type)
		return mr_fail(err, MR_REFUSED, "'fields' need a 'type', which says how they are written");
	return MR_OK;
}
