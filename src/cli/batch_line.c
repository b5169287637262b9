/* SPDX-License-Identifier: MIT */
/*
 * batch_line.c - from a JSON object to a draft. Names are those that `--json` prints. What is not known is refused and
 * not skipped: a name that is misspelt would else be a subject, or a key, that got lost.
 */
#include "cli/draft.h"
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
	TRY(mr_got(*ret, r->err));
	if (ret_len)
		*ret_len = text.len;
	else if (strlen(*ret) != text.len)
		return wrong(r, "has a NUL character in it");
	return MR_OK;
}

/* One string, or an array of them. */
static enum mr_rc
read_list(struct reading *r, struct json_value value, const char *const **ret)
{
	struct json_value one;
	size_t cap = value.kind != JSON_ARRAY, n = 0;

	for (size_t at = 0; value.kind == JSON_ARRAY && json_item(value, &at, &one);)
		cap++;
	if (cap > LIST_MAX)
		return wrong(r, "has too many entries");
	const char **list = arena_alloc(r->own, (cap + 1) * sizeof(*list));

	TRY(mr_got(list, r->err));
	*ret = list;
	if (value.kind != JSON_ARRAY)
		return read_text(r, value, &list[n], NULL);
	for (size_t at = 0; json_item(value, &at, &one);)
		TRY(read_text(r, one, &list[n++], NULL));
	return MR_OK;
}

static enum mr_rc
read_pairs(struct reading *r, struct json_value value, const struct mr_header **ret, size_t *ret_n)
{
	struct json_value key, one;
	size_t cap = 0;

	if (value.kind != JSON_OBJECT)
		return wrong(r, "must be an object: {\"Name\": \"value\"}");
	for (size_t at = 0; json_member(value, &at, &key, &one);)
		cap++;
	if (cap > LIST_MAX)
		return wrong(r, "has too many entries");
	struct mr_header *pair = arena_alloc(r->own, (cap + 1) * sizeof(*pair));

	TRY(mr_got(pair, r->err));
	*ret = pair;
	*ret_n = cap;
	for (size_t at = 0; json_member(value, &at, &key, &one); pair++) {
		TRY(read_text(r, key, &pair->name, NULL));
		if (one.kind == JSON_ARRAY || one.kind == JSON_OBJECT || one.kind == JSON_NULL)
			return wrong(r, "must have a text for each name");
		if (one.kind == JSON_STRING)
			TRY(read_text(r, one, &pair->value, NULL));
		else /* a number, or true */
			pair->value = arena_dup(r->own, one.raw);
		TRY(mr_got(pair->value, r->err));
	}
	return MR_OK;
}

/* "30m" from now, or a time. */
static enum mr_rc
read_time(struct reading *r, struct json_value value, int64_t *ret_ms)
{
	const char *text = NULL;
	int64_t wait_ms;

	TRY(read_text(r, value, &text, NULL));
	if (mr_duration_parse(text, &wait_ms, IGNORED) == MR_OK) /* first: "30m" is also a time, that long ago */
		*ret_ms = clock_now_ms() + wait_ms;
	else if (mr_time_parse(text, ret_ms, IGNORED) != MR_OK)
		return wrong(r, "is not a time: give 30m, 2h, or 2026-03-05T10:30:00Z");
	return MR_OK;
}

/* ---- Members ---- */

enum kind { TEXT, BODY, LIST, PAIRS, PRIORITY, TIME, FLAG };

static const struct member {
	const char *name;
	enum kind kind;
	size_t at, at_len; /* of struct mr_draft */
} members[] = {
#define AT(member) offsetof(struct mr_draft, member)
	{ "to", LIST, AT(to), 0 },
	{ "cc", LIST, AT(cc), 0 },
	{ "subject", TEXT, AT(subject), 0 },
	{ "body", BODY, AT(body), AT(body_len) },
	{ "type", TEXT, AT(type), 0 },
	{ "fields", PAIRS, AT(fields), AT(fields_n) },
	{ "headers", PAIRS, AT(headers), AT(headers_n) },
	{ "priority", PRIORITY, AT(priority), 0 },
	{ "thread", TEXT, AT(thread), 0 },
	{ "reply_to", TEXT, AT(reply_to), 0 },
	{ "key", TEXT, AT(key), 0 },
	{ "replace_key", TEXT, AT(replace_key), 0 },
	{ "by", TIME, AT(by_ms), 0 },
	{ "not_before", TIME, AT(not_before_ms), 0 },
	{ "hold", FLAG, AT(hold), 0 },
	{ "force", FLAG, AT(force), 0 },
#undef AT
};

static enum mr_rc
read_value(struct reading *r, const struct member *m, struct json_value value)
{
	void *at = (char *)r->draft + m->at, *at_len = (char *)r->draft + m->at_len;
	const char *word = NULL;

	switch (m->kind) {
	case TEXT:
		return read_text(r, value, at, NULL);
	case BODY:
		return read_text(r, value, at, at_len);
	case LIST:
		return read_list(r, value, at);
	case PAIRS:
		return read_pairs(r, value, at, at_len);
	case TIME:
		return read_time(r, value, at);
	case PRIORITY:
		r->draft->priority_given = true;
		TRY(read_text(r, value, &word, NULL));
		return mr_priority_parse(word, at, r->err);
	case FLAG:
		if (value.kind != JSON_TRUE && value.kind != JSON_FALSE)
			return wrong(r, "must be true or false");
		*(bool *)at = value.kind == JSON_TRUE;
		return MR_OK;
	}
	return MR_OK;
}

enum mr_rc
batch_line(struct mr_str line, struct arena **own, struct mr_draft *ret, struct mr_error *err)
{
	struct reading r = { .own = own, .draft = ret, .err = err };
	struct json_value all, key, value;
	const char *problem = "";

	*ret = (struct mr_draft){ 0 };
	if (!json_whole(line, &all, &problem) || all.kind != JSON_OBJECT)
		return mr_fail(err, MR_REFUSED,
		    "the line is not a JSON object%s%s\none message a line: {\"to\": \"bob\", \"body\": \"hi\"}",
		    *problem ? ": it " : "", problem);
	for (size_t at = 0; json_member(all, &at, &key, &value);) {
		const struct member *m = members, *end = members + sizeof(members) / sizeof(members[0]);

		while (m < end && !json_key_is(key, m->name))
			m++;
		if (m == end)
			return mr_fail(err, MR_REFUSED,
			    "%.*s is not a part of a message\nthe parts are: to, cc, subject, body, type, fields, "
			    "headers, priority, thread, reply_to, key, replace_key, by, not_before, hold, force",
			    (int)(key.raw.len < 60 ? key.raw.len : 60), key.raw.ptr);
		r.name = m->name;
		if (value.kind != JSON_NULL)
			TRY(read_value(&r, m, value));
	}
	if (!ret->to || !ret->to[0])
		return mr_fail(err, MR_REFUSED, "the message has no recipient\nname at least one agent in \"to\"");
	if (ret->fields_n > 0 && !ret->type)
		return mr_fail(err, MR_REFUSED, "'fields' need a 'type', which says how they are written");
	return MR_OK;
}
