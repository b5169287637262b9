/* SPDX-License-Identifier: MIT */
/* Any bytes as a query, a path and a Cookie header: values are whole strings of UTF-8, never longer than what was sent.
 */
#include "fuzz.h"
#include "serve/request.c"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size);
	struct arena *own = NULL;
	struct params params = { 0 };

	if (params_parse(text, &params, &own)) {
		assert(params.n <= PARAMS_MAX);
		for (size_t i = 0; i < params.n; i++) {
			assert(strlen(params.v[i].name) + strlen(params.v[i].value) <= size);
			assert(utf8_valid(str_of(params.v[i].name)) && utf8_valid(str_of(params.v[i].value)));
			assert(params_get(&params, params.v[i].name) != NULL);
		}
	}
	char *path = path_decode(text, &own);

	assert(!path || (strlen(path) <= size && utf8_valid(str_of(path))));
	struct mr_str cookie = cookie_find(text, "mailroom-8025");

	assert(cookie.len == 0 || (cookie.ptr >= text.ptr && cookie.ptr + cookie.len <= text.ptr + text.len));
	arena_free(own);
	return 0;
}
