/* SPDX-License-Identifier: MIT */
/* hygiene_policy.c - reading a policy: the room's own, or one that came with mailroom. */
#include "office/rules/hygiene.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sys.h"
#include <fcntl.h>

#define POLICY "policy" /* kind of record, and folder below the data folder */
#define POLICY_MAX ((size_t)64 << 10)
#define WITHIN_MS ((int64_t)10 * 60 * 1000)
#define WITHOUT_POLICY "No-Answer: HEALTH_CHECK\n"

void
policy_done(struct policy *policy)
{
	record_done(&policy->lines);
	*policy = (struct policy){ 0 };
}

static enum mr_rc
read_mode(const struct mr_room *room, bool has_policy, enum hygiene_mode *ret, struct mr_error *err)
{
	const char *word = mr_room_setting(room, "Hygiene");

	*ret = has_policy ? HYGIENE_WARN : HYGIENE_OFF;
	if (!word)
		return MR_OK;
	if (ascii_caseeq(word, "off"))
		*ret = HYGIENE_OFF;
	else if (ascii_caseeq(word, "warn"))
		*ret = HYGIENE_WARN;
	else if (ascii_caseeq(word, "refuse"))
		*ret = HYGIENE_REFUSE;
	else
		return mr_fail(err, MR_REFUSED,
		    "the settings of the room say 'Hygiene: %.40s', which is not off, warn or refuse", word);
	return MR_OK;
}

static bool
is_plain(const char *name)
{
	return *name && *name != '.' && strlen(name) <= 80 &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == strlen(name);
}

/* Of several data folders the first that has it. */
static enum mr_rc
read_shipped(struct mr_room *room, const char *name, struct buf *ret, struct mr_error *err)
{
	struct mr_str rest = str_of(room->data_dir ? office_data_dirs(room) : "");

	while (rest.len > 0) {
		const char *colon = memchr(rest.ptr, ':', rest.len);
		size_t len = colon ? (size_t)(colon - rest.ptr) : rest.len, step = colon ? len + 1 : len;
		mr_auto(buf_done) struct buf path = BUF_INIT;
		mr_auto(sys_close_fd) int fd = -1;
		struct mr_error ignored = { 0 };

		buf_add(&path, (struct mr_str){ rest.ptr, len });
		buf_adds(&path, "/" POLICY);
		if (buf_ok(&path) && dir_open(AT_FDCWD, buf_z(&path), &fd, &ignored) == MR_OK &&
		    file_read(fd, name, POLICY_MAX, ret, &ignored) == MR_OK)
			return MR_OK;
		rest.ptr += step;
		rest.len -= step;
	}
	return mr_fail(err, MR_NOTFOUND,
	    "no policy '%.80s' for this room's mail\n"
	    "'gastown' comes with mailroom; a room's settings name one as Hygiene-Policy:",
	    name);
}

static enum mr_rc
read_policy(struct mr_room *room, const char *name, struct buf *ret, struct mr_error *err)
{
	struct mr_error ignored = { 0 };

	if (!is_plain(name))
		return mr_fail(err, MR_REFUSED, "'%.80s' cannot be the name of a policy", name);
	if (ROOM_HAS(room, record_get) && room->driver->record_get(room, POLICY, "", name, ret, &ignored) == MR_OK)
		return MR_OK;
	return read_shipped(room, name, ret, err);
}

enum mr_rc
policy_load(struct mr_room *room, const char *name, struct policy *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct policy policy = { .within_ms = WITHIN_MS };
	enum mr_rc rc;

	if (!name)
		name = mr_room_setting(room, "Hygiene-Policy");
	rc = read_mode(room, name != NULL, &policy.mode, err);
	if (rc == MR_OK && name)
		rc = read_policy(room, name, &text, err);
	else
		buf_adds(&text, WITHOUT_POLICY);
	if (rc == MR_OK)
		rc = record_parse(buf_str(&text), &policy.lines, err);
	if (rc != MR_OK)
		return mr_wrap(err, "rules for mail");
	const char *within = record_get(&policy.lines, "Duplicate-Within");

	if (within && !duration_parse(str_of(within), &policy.within_ms))
		policy.within_ms = WITHIN_MS;
	*ret = policy;
	return MR_OK;
}
