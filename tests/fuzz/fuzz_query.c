/* SPDX-License-Identifier: MIT */
/* Any bytes as a query, and as the text that it is asked of: words lie within the text, a query finds itself. */
#include "fuzz.h"

#include "message/query.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size), rest = text, word;
	struct mr_error err = { 0 };
	struct query q = { 0 };
	struct query_snippet s;

	while (query_word(&rest, &word))
		assert(word.len > 0 && lies_within(word, text));
	if (query_parse(text, &q, &err) != MR_OK) {
		assert(err.code == MR_REFUSED && q.n == 0);
		return 0;
	}
	assert(q.n <= QUERY_TERMS_MAX);
	for (size_t i = 0; i < q.n; i++) {
		struct mr_str hit = { 0 };

		assert(q.v[i].text != NULL);
		if (q.v[i].field != QUERY_TEXT)
			continue;
		assert(query_finds(str_of(q.v[i].text), q.v[i].text, q.v[i].prefix, &hit) && hit.len > 0);
		assert(query_finds(text, q.v[i].text, true, &hit) && lies_within(hit, text));
	}
	if (query_snippet(&q, text, &s))
		assert(lies_within(s.before, text) && lies_within(s.hit, text) && lies_within(s.after, text) &&
		       s.before.ptr + s.before.len == s.hit.ptr && s.hit.ptr + s.hit.len == s.after.ptr);
	query_done(&q);
	return 0;
}
