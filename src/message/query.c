/* SPDX-License-Identifier: MIT */
/* query.c - words, and queries made of them: see query.h. */
#include "message/query.h"
#include "base/error.h"

#define BEFORE_BYTES 60
#define HIT_BYTES 80
#define AFTER_BYTES 100

/* ---- Words ---- */

static bool
is_word_byte(char c)
{
	return ascii_alnum(c) || c == '_' || (unsigned char)c >= 0x80;
}

bool
query_word(struct mr_str *rest, struct mr_str *ret)
{
	size_t at = 0, end;

	while (at < rest->len && !is_word_byte(rest->ptr[at]))
		at++;
	for (end = at; end < rest->len && is_word_byte(rest->ptr[end]);)
		end++;
	*ret = (struct mr_str){ rest->ptr + at, end - at };
	*rest = str_from(*rest, end);
	return ret->len > 0;
}

static bool
is_word(struct mr_str word, struct mr_str wanted, bool prefix)
{
	return (prefix ? word.len >= wanted.len : word.len == wanted.len) &&
	       str_caseeq(str_first(word, wanted.len), wanted);
}

bool
query_finds(struct mr_str text, const char *phrase, bool prefix, struct mr_str *ret_hit)
{
	struct mr_str wanted[QUERY_WORDS_MAX], rest = str_of(phrase), word;
	size_t n = 0;

	while (n < QUERY_WORDS_MAX && query_word(&rest, &wanted[n]))
		n++;
	while (n > 0 && query_word(&text, &word)) {
		struct mr_str ahead = text, last = word;
		size_t same = is_word(word, wanted[0], prefix && n == 1) ? 1 : 0;

		while (same > 0 && same < n && query_word(&ahead, &last) &&
		       is_word(last, wanted[same], prefix && same + 1 == n))
			same++;
		if (same < n)
			continue;
		if (ret_hit)
			*ret_hit = str_first(word, (size_t)(last.ptr + last.len - word.ptr));
		return true;
	}
	return false;
}

/* ---- Parsing ---- */

/* Takes the term at the beginning of *rest. */
static enum mr_rc
take_term(struct mr_str *rest, struct query *q, struct mr_error *err)
{
	static const struct {
		const char *name;
		enum query_field field;
	} fields[] = { { "from:", QUERY_FROM }, { "to:", QUERY_TO }, { "type:", QUERY_TYPE },
		{ "thread:", QUERY_THREAD }, { "after:", QUERY_AFTER }, { "before:", QUERY_BEFORE } };
	struct query_term *term = &q->v[q->n];
	struct mr_str text = STR("");

	term->exclude = rest->len > 1 && rest->ptr[0] == '-' && !strchr(" \t\n-", rest->ptr[1]);
	if (term->exclude)
		*rest = str_from(*rest, 1);
	term->field = QUERY_TEXT;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && term->field == QUERY_TEXT; i++) {
		size_t len = strlen(fields[i].name);

		if (str_casestarts(*rest, fields[i].name) && rest->len > len && !strchr(" \t\n", rest->ptr[len])) {
			*rest = str_from(*rest, len);
			term->field = fields[i].field;
		}
	}
	if (rest->ptr[0] == '"') {
		*rest = str_from(*rest, 1);
		(void)str_cut(rest, '"', &text); /* without a closing quote it ends with the query */
		term->prefix = rest->len > 0 && rest->ptr[0] == '*';
	} else {
		(void)str_word(rest, " \t\n", &text);
		term->prefix = text.len > 0 && text.ptr[text.len - 1] == '*';
	}
	char *copy = arena_dup(&q->own, text);

	TRY(mr_got(copy, err));
	term->text = copy;
	if (term->field != QUERY_TEXT)
		return MR_OK;
	for (; *copy; copy++)
		*copy = ascii_lower(*copy);
	struct mr_str words = str_of(term->text), word;
	size_t n = 0;

	while (query_word(&words, &word))
		n++;
	if (n == 0)
		return mr_fail(err, MR_REFUSED,
		    "'%.60s' has no letter and no digit\n`mailroom search --regex` also finds punctuation", term->text);
	if (n > QUERY_WORDS_MAX)
		return mr_fail(err, MR_REFUSED, "more than %d words in one phrase", QUERY_WORDS_MAX);
	return MR_OK;
}

enum mr_rc
query_parse(struct mr_str text, struct query *ret, struct mr_error *err)
{
	mr_auto(query_done) struct query q = { 0 };

	q.v = arena_alloc(&q.own, QUERY_TERMS_MAX * sizeof(*q.v));
	TRY(mr_got(q.v, err));
	for (;; q.n++) {
		while (text.len > 0 && strchr(" \t\n*", text.ptr[0])) /* a NUL is not part of a word either */
			text = str_from(text, 1);
		if (text.len == 0)
			break;
		if (q.n == QUERY_TERMS_MAX)
			return mr_fail(err, MR_REFUSED, "more than %d words in one search", QUERY_TERMS_MAX);
		TRY(take_term(&text, &q, err));
	}
	*ret = q;
	q = (struct query){ 0 };
	return MR_OK;
}

void
query_done(struct query *q)
{
	arena_free(q->own);
	*q = (struct query){ 0 };
}

/* ---- Snippets ---- */

static bool
is_inside(struct mr_str text, size_t at) /* inside a character of several bytes */
{
	return at > 0 && at < text.len && ((unsigned char)text.ptr[at] & 0xC0) == 0x80;
}

bool
query_snippet(const struct query *q, struct mr_str text, struct query_snippet *ret)
{
	struct mr_str hit = { 0 };

	for (size_t i = 0; i < q->n && !hit.ptr; i++)
		if (q->v[i].field == QUERY_TEXT && !q->v[i].exclude)
			(void)query_finds(text, q->v[i].text, q->v[i].prefix, &hit);
	if (!hit.ptr)
		return false;
	size_t at = (size_t)(hit.ptr - text.ptr), from = at > BEFORE_BYTES ? at - BEFORE_BYTES : 0;
	size_t end = at + (hit.len < HIT_BYTES ? hit.len : HIT_BYTES);
	size_t to = text.len - end > AFTER_BYTES ? end + AFTER_BYTES : text.len;

	while (is_inside(text, from) && from < at)
		from++;
	while (is_inside(text, end) && end > at)
		end--;
	while (is_inside(text, to) && to > end)
		to--;
	/* Blocks of a message are shown separately: the line of the hit is enough if it is long enough. */
	for (size_t i = at; i-- > from;)
		if (text.ptr[i] == '\n') {
			from = i + 1;
			break;
		}
	for (size_t i = end; i < to; i++)
		if (text.ptr[i] == '\n')
			to = i;
	ret->before = (struct mr_str){ text.ptr + from, at - from };
	ret->hit = (struct mr_str){ text.ptr + at, end - at };
	ret->after = (struct mr_str){ text.ptr + end, to - end };
	return true;
}
