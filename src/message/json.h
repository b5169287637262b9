/* SPDX-License-Identifier: MIT */
/*
 * json.h - writing JSON: one object or NDJSON line at a time; a small state sets the commas.
 *
 *	struct json j = JSON_INIT(&buf);
 *	json_open(&j, '{'); json_key_str(&j, "id", id); json_key(&j, "to"); json_open(&j, '['); ... json_close(&j);
 */
#ifndef MESSAGE_JSON_H
#define MESSAGE_JSON_H

#include "base/buf.h"

struct json {
	struct buf *out;
	unsigned depth;
	bool comma; /* the next value needs one before it */
	char closer[16];
};
#define JSON_INIT(buffer) ((struct json){ .out = (buffer) })
void json_open(struct json *j, char bracket); /* '{' or '[' */
void json_close(struct json *j);
void json_key(struct json *j, const char *key);
void json_str(struct json *j, struct mr_str value);
void json_int(struct json *j, int64_t value);
void json_bool(struct json *j, bool value);
void json_null(struct json *j);
void json_time(struct json *j, int64_t ms); /* RFC 3339; 0: null */
void json_raw(
    struct json *j, struct mr_str value); /* is JSON already; blanks are removed, hidden characters become escapes */
void json_key_str(struct json *j, const char *key, const char *value); /* NULL: null */
void json_names(struct json *j, const struct mr_names *names);

#endif
