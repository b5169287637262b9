/* SPDX-License-Identifier: MIT */
/* name.c - ids of agents, and file names: the time of the message, a dash, its sender, ".json". */
#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "message/foreign.h"
#include "rooms/chipset/chipset.h"
#include <stdio.h>

/* ---- Agents ---- */

static bool
id_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
	       c == '-';
}

const char *
chipset_id_problem(struct mr_str id)
{
	if (id.len == 0)
		return "is empty";
	if (id.len > CHIPSET_ID_MAX)
		return "has more than 64 bytes";
	if (id.ptr[0] == '.')
		return "begins with '.'";
	if (str_eq(id, STR("archive")))
		return "is the name of the folder for archived mail";
	for (size_t i = 0; i < id.len; i++)
		if (!id_byte(id.ptr[i]))
			return "has a character that is not allowed";
	return NULL;
}

enum mr_rc
chipset_id(const char *address, char ret[CHIPSET_ID_MAX + 1], struct mr_error *err)
{
	mr_auto(buf_done) struct buf id = BUF_INIT, shown = BUF_INIT;

	foreign_from_address(address, &id);
	if (!buf_ok(&id) && address[0])
		return mr_nomem(err);
	const char *problem = chipset_id_problem(buf_str(&id));

	if (!problem) {
		memcpy(ret, id.ptr, id.len + 1);
		return MR_OK;
	}
	text_clean_line(&shown, utf8_cut(buf_str(&id), 60));
	return mr_fail(err, MR_REFUSED,
	    "'%s' cannot be an agent of a chipset room: it %s\n"
	    "a name there has 1 to 64 of A-Z a-z 0-9 . _ - and does not begin with '.'",
	    buf_z(&shown), problem);
}

/* ---- Files ---- */

static size_t
digits_at(struct mr_str s, size_t at)
{
	size_t n = 0;

	while (at + n < s.len && s.ptr[at + n] >= '0' && s.ptr[at + n] <= '9')
		n++;
	return n;
}

static bool
is_any(struct mr_str s, size_t at, const char *of)
{
	return at < s.len && s.ptr[at] != '\0' && strchr(of, s.ptr[at]) != NULL;
}

/* Where the zone ends that begins there, written with a dash or a colon or nothing between hours and minutes; 0: it is
 * none. *ret_text is how RFC 3339 has it. */
static size_t
zone_end(struct mr_str name, size_t at, char ret_text[7])
{
	if (is_any(name, at, "Zz")) {
		(void)snprintf(ret_text, 7, "Z");
		return at + 1;
	}
	if (!is_any(name, at, "+-") || digits_at(name, at + 1) < 2)
		return 0;
	size_t minutes = at + 3 + is_any(name, at + 3, "-:");

	if (digits_at(name, minutes) < 2)
		return 0;
	(void)snprintf(ret_text, 7, "%.3s:%.2s", name.ptr + at, name.ptr + minutes);
	return minutes + 2;
}

/* Length of the time at the start, 0 if there is none. Senders have dashes themselves, so it ends behind the zone. */
static size_t
take_stamp(struct mr_str name, int64_t *ret_ms)
{
	char text[48], zone[7];
	size_t at = 19;

	if (name.len > 10 && name.ptr[10] == '-')
		return time_parse_rfc3339((struct mr_str){ name.ptr, 10 }, ret_ms) ? 10 : 0;
	if (name.len <= at || name.ptr[10] != 'T' || !is_any(name, 13, "-:") || !is_any(name, 16, "-:"))
		return 0;
	size_t digits = name.ptr[at] == '.' ? digits_at(name, at + 1) : 0;

	if (digits > 9 || (name.ptr[at] == '.' && digits == 0))
		return 0;
	at += digits > 0 ? digits + 1 : 0;
	size_t end = zone_end(name, at, zone);
	int n = snprintf(text, sizeof text, "%.13s:%.2s:%.2s%.*s%s", name.ptr, name.ptr + 14, name.ptr + 17,
	    (int)(at - 19), name.ptr + 19, end > 0 ? zone : "");

	return end > 0 && time_parse_rfc3339((struct mr_str){ text, (size_t)n }, ret_ms) ? end : 0;
}

bool
chipset_is_message(const char *name)
{
	return str_ends(str_of(name), ".json");
}

bool
chipset_name_parse(struct mr_str name, struct chipset_name *ret)
{
	const size_t ending = strlen(".json");

	if (name.len > CHIPSET_NAME_MAX || !str_ends(name, ".json") || memchr(name.ptr, '\0', name.len))
		return false;
	int64_t ms = 0;
	size_t at = take_stamp(name, &ms);

	if (at == 0 || at + 1 + ending >= name.len || name.ptr[at] != '-')
		return false;
	*ret = (struct chipset_name){ ms, { name.ptr + at + 1, name.len - at - 1 - ending } };
	return true;
}

void
chipset_name_make(int64_t ms, const char *sender, char ret[CHIPSET_NAME_MAX + 1])
{
	char stamp[RFC3339_LEN + 1];

	time_rfc3339(ms, stamp);
	for (char *c = stamp; *c; c++)
		if (*c == ':')
			*c = '-';
	(void)snprintf(ret, CHIPSET_NAME_MAX + 1, "%s-%s.json", stamp, sender);
}

bool
chipset_name_plain(struct mr_str name)
{
	if (name.len > CHIPSET_NAME_MAX || !str_ends(name, ".json") || !utf8_valid(name))
		return false;
	for (size_t i = 0; i < name.len; i++)
		if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == 0x7f || name.ptr[i] == '/')
			return false;
	return true;
}

bool
chipset_name_id(struct mr_str name, char ret_id[MR_ID_LEN + 1])
{
	struct chipset_name parts;

	if (!chipset_name_parse(name, &parts))
		return false;
	id_from_name(parts.ms, name, ret_id);
	return true;
}
