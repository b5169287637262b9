/* SPDX-License-Identifier: MIT */
/* request.c - what a client wrote, as values. Pure functions on any bytes: tests/fuzz/fuzz_request.c. */
#include "serve/serve.h"

#include "base/text.h"

static char *
decode(struct mr_str raw, bool plus, struct arena **own)
{
	char *out = arena_alloc(own, raw.len + 1), *to = out;

	for (size_t i = 0; out && i < raw.len; i++) {
		char c = raw.ptr[i];

		if (c == '+' && plus) {
			c = ' ';
		} else if (c == '%') {
			int high = i + 2 < raw.len ? hex_digit(raw.ptr[i + 1]) : -1;
			int low = i + 2 < raw.len ? hex_digit(raw.ptr[i + 2]) : -1;

			if (high < 0 || low < 0)
				return NULL;
			c = (char)(high * 16 + low);
			i += 2;
		}
		if (c == '\0')
			return NULL;
		*to++ = c;
	}
	return out && utf8_valid((struct mr_str){ out, (size_t)(to - out) }) ? out : NULL;
}

char *
path_decode(struct mr_str raw, struct arena **own)
{
	return decode(raw, false, own);
}

bool
params_parse(struct mr_str text, struct params *ret, struct arena **own)
{
	struct mr_str pair, name;

	*ret = (struct params){ .v = arena_alloc(own, sizeof(struct param) * PARAMS_MAX) };
	if (!ret->v)
		return false;
	while (str_cut(&text, '&', &pair)) {
		if (pair.len == 0)
			continue;
		if (ret->n == PARAMS_MAX)
			return false;
		(void)str_cut(&pair, '=', &name); /* the rest is the value */
		struct param *p = &ret->v[ret->n++];

		p->name = decode(name, true, own);
		p->value = decode(pair, true, own);
		if (!p->name || !p->value)
			return false;
	}
	return true;
}

const char *
params_get(const struct params *params, const char *name)
{
	for (size_t i = 0; i < params->n; i++)
		if (strcmp(params->v[i].name, name) == 0)
			return params->v[i].value;
	return NULL;
}

struct mr_str
cookie_find(struct mr_str header, const char *name)
{
	struct mr_str pair, key = STR("");

	while (str_cut(&header, ';', &pair)) {
		pair = str_trim(pair);
		if (str_cut(&pair, '=', &key) && str_eq(key, str_of(name)))
			return pair;
	}
	return STR("");
}

const char *
req_value(const struct request *req, const char *name)
{
	const char *value = params_get(&req->form, name);

	value = value ? value : params_get(&req->query, name);
	return value ? value : "";
}
