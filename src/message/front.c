/* SPDX-License-Identifier: MIT */
/* front.c - splitting a file with front matter. See front.h. */
#include "message/front.h"

bool
front_split(struct mr_str text, struct front *ret)
{
	struct mr_str rest = text, line;

	if (!str_line(&rest, &line) || !str_eq(line, STR("---")))
		return false;
	const char *head = rest.ptr;

	for (const char *at = rest.ptr; str_line(&rest, &line); at = rest.ptr)
		if (str_eq(line, STR("---"))) {
			ret->head = (struct mr_str){ head, (size_t)(at - head) };
			ret->body = rest;
			return true;
		}
	return false;
}

bool
front_next(struct mr_str *rest, struct mr_str *ret_key, struct mr_str *ret_value)
{
	struct mr_str line;

	while (str_line(rest, &line)) {
		if (!str_split(line, ':', ret_key, ret_value) || ret_key->len == 0)
			continue;
		*ret_key = str_trim(*ret_key);
		*ret_value = str_trim(*ret_value);
		return true;
	}
	return false;
}

bool
front_get(struct mr_str head, const char *key, struct mr_str *ret)
{
	struct mr_str name, value;

	while (front_next(&head, &name, &value))
		if (str_eq(name, str_of(key))) {
			*ret = value;
			return true;
		}
	return false;
}
