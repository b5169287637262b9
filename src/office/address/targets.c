/* SPDX-License-Identifier: MIT */
/* targets.c - what is no agent and still gets mail, or stands for those who do: which names groups, queues
 * and channels may have, where their settings are read, and whether mail may go to them now. */
#include "base/error.h"
#include "base/text.h"
#include "message/address.h"
#include "office/address/resolve.h"
#include "office/address/targets.h"

/* ---- Names ---- */

static bool
plain_name(struct mr_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];
		bool alnum = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

		if (!alnum && (i == 0 || (c != '_' && c != '-')))
			return false;
	}
	return s.len > 0 && s.len <= MR_NAME_MAX;
}

bool
target_name_valid(const char *kind, const char *name)
{
	const char *slash = strcmp(kind, "queue") == 0 ? strchr(name, '/') : NULL;
	struct mr_error ignored = { 0 };

	if (!slash)
		return plain_name(str_of(name));
	return address_check((struct mr_str){ name, (size_t)(slash - name) }, &ignored) == MR_OK &&
	       plain_name(str_of(slash + 1));
}

enum mr_rc
target_name_check(const char *kind, const char *name, struct mr_error *err)
{
	mr_auto(buf_done) struct buf shown = BUF_INIT;

	if (target_name_valid(kind, name))
		return MR_OK;
	text_clean_line(&shown, utf8_cut(str_of(name), 60));
	return mr_fail(err, MR_REFUSED,
	    "'%s' cannot name a %s\n1 to %d of a-z 0-9 _ -, beginning with a letter or digit%s", buf_z(&shown), kind,
	    MR_NAME_MAX, strcmp(kind, "queue") == 0 ? "; of a rig: RIG/NAME" : "");
}

struct pattern_search {
	struct mr_str name;
	bool found;
};

static void
note_if_pattern(void *ctx, struct mr_str pattern)
{
	struct pattern_search *search = ctx;

	search->found |= str_eq(pattern, search->name);
}

enum mr_rc
target_name_free(struct mr_room *room, const char *kind, const char *name, struct mr_error *err)
{
	struct pattern_search search = { .name = str_of(name) };
	struct mr_error ignored = { 0 };

	pattern_each(room, note_if_pattern, &search);
	if (search.found || canonical_operator(search.name)) {
		return mr_fail(err, MR_REFUSED,
		    "cannot make a %s '%s': '@%s' has a meaning already\n"
		    "pick another name; `mailroom resolve @%s` says who is meant",
		    kind, name, name, name);
	}
	if (!ROOM_HAS(room, find_agent) && !ROOM_HAS(room, has_agent)) /* a kind without registration */
		return MR_OK;
	enum mr_rc rc = agent_exists(room, name, &ignored);

	if (rc == MR_NOTFOUND)
		return MR_OK;
	if (rc != MR_OK) {
		*err = ignored;
		return rc;
	}
	return mr_fail(err, MR_REFUSED,
	    "cannot make a %s '%s': an agent is called so\n"
	    "with both, mail to '%s' would be ambiguous; pick another name, such as %ss",
	    kind, name, name, name);
}

/* ---- Settings ---- */

enum mr_rc
target_supported(const struct mr_room *room, const char *kind, struct mr_error *err)
{
	unsigned abilities = room->driver->abilities;

	if (strcmp(kind, "queue") == 0 && !(abilities & ROOM_QUEUES))
		return office_lacks(room, "queues", err);
	if (strcmp(kind, "channel") == 0 && !(abilities & ROOM_CHANNELS))
		return office_lacks(room, "channels", err);
	if (!ROOM_HAS(room, record_get) || !ROOM_HAS(room, record_each) || !ROOM_HAS(room, record_change))
		return office_lacks(room, "groups", err);
	return MR_OK;
}

enum mr_rc
target_settings(struct mr_room *room, const char *kind, const char *name, struct record *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	enum mr_rc rc = target_supported(room, kind, err);

	if (rc == MR_OK)
		rc = target_name_check(kind, name, err);
	if (rc != MR_OK)
		return rc;
	rc = room->driver->record_get(room, kind, "", name, &text, err);
	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND, "no %s '%s' in room '%s'", kind, name, room->name);
	if (rc == MR_OK)
		rc = record_parse(buf_str(&text), ret, err);
	/* What a crash or an editor emptied must not pass for one with the default settings. */
	if (rc == MR_OK && ret->n == 0)
		rc = mr_fail(err, MR_CORRUPT, "its settings have no line");
	return rc == MR_OK ? MR_OK : mr_wrap(err, "%s '%s'", kind, name);
}

bool
target_exists(struct mr_room *room, const char *kind, const char *name)
{
	mr_auto(record_done) struct record settings = { 0 };
	struct mr_error ignored = { 0 };
	enum mr_rc rc;

	if (!target_name_valid(kind, name))
		return false;
	rc = target_settings(room, kind, name, &settings, &ignored);
	return rc != MR_NOTFOUND && rc != MR_UNSUPPORTED;
}

enum mr_rc
target_check(struct mr_room *room, const char *target, struct mr_error *err)
{
	mr_auto(record_done) struct record settings = { 0 };
	bool queue = str_starts(str_of(target), "queue:");
	const char *kind = queue ? "queue" : "channel", *status;
	enum mr_rc rc;

	if (!queue && !str_starts(str_of(target), "channel:"))
		return MR_OK;
	const char *name = strchr(target, ':') + 1;

	rc = target_settings(room, kind, name, &settings, err);
	if (rc != MR_OK)
		return rc;
	status = record_get(&settings, "Status");
	if (!status || !ascii_caseeq(status, "closed"))
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "%s '%s' is closed: it takes no mail\n`mailroom %s show %s` tells more", kind,
	    name, kind, name);
}
