/* SPDX-License-Identifier: MIT */
/* sling.c - the commands that know about beads, from the user's configuration of the room. They are cut into words and
 * get theirs behind them: no shell ever sees the name of a bead. */
#include <stdlib.h>

#include "base/error.h"
#include "base/spawn.h"
#include "office/rules/config.h"
#include "office/patrol/patrol.h"
#include "office/work/sling.h"

#define RECORD_NAME_MAX 80
#define STATUS_LIMIT_MS ((int64_t)30 * 1000)
#define SLING_LIMIT_MS ((int64_t)10 * 60 * 1000)

enum mr_rc
sling_check_bead(const char *bead, struct mr_error *err)
{
	size_t len = strlen(bead);
	bool ok = len > 0 && len <= RECORD_NAME_MAX && bead[0] != '-' && bead[0] != '.';

	for (const char *p = bead; ok && *p; p++)
		ok = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *p) != NULL;
	if (ok)
		return MR_OK;
	return mr_fail(
	    err, MR_REFUSED, "'%.60s' is no id of a bead\nletters, digits, '.', '_' and '-', such as gt-abc12", bead);
}

/* Runs the command of a setting with further words behind its own. MR_NOTFOUND: the user allows none. */
static enum mr_rc
run_setting(struct mr_room *room, const char *setting, const char *const *more, int64_t limit_ms, struct spawned *ret,
    struct mr_error *err)
{
	const char *command = config_get(room, setting);
	mr_auto(mr_names_done) struct mr_names words = { 0 };
	mr_auto(buf_done) struct buf place = BUF_INIT;

	if (!command)
		return mr_fail(err, MR_NOTFOUND,
		    "your configuration has no '%s' for this room\ntype in a terminal: mailroom config set %s COMMAND",
		    setting, setting);
	words = split_command(command, err);
	if (words.n == 0)
		return mr_wrap(err, "setting '%s'", setting);
	for (; *more; more++)
		if (!names_add(&words, str_of(*more)))
			return mr_nomem(err);
	mr_auto(free_ptr) const char **argv = calloc(words.n + 1, sizeof(*argv));

	buf_addf(&place, "MAILROOM=%s", room->spec);
	if (!argv || !buf_ok(&place))
		return mr_nomem(err);
	for (size_t i = 0; i < words.n; i++)
		argv[i] = words.v[i];
	struct spawn what = { .argv = argv, .env = (const char *[]){ buf_z(&place), NULL }, .limit_ms = limit_ms };

	return spawn_run(&what, ret, err) == MR_OK ? MR_OK : mr_wrap(err, "setting '%s'", setting);
}

enum mr_rc
mr_sling(struct mr_room *room, const char *bead, const char *rig, const char *const *options, char **ret_output,
    struct mr_error *err)
{
	mr_auto(spawned_done) struct spawned ran = { 0 };
	mr_auto(buf_done) struct buf how = BUF_INIT;
	const char *more[16] = { bead, rig };
	size_t n = 2;
	enum mr_rc rc = sling_check_bead(bead, err);

	if (rc == MR_OK)
		rc = mr_address_check(rig, err);
	for (; rc == MR_OK && options && *options && n < 15; options++)
		more[n++] = *options;
	if (rc == MR_OK)
		rc = run_setting(room, "Sling", more, SLING_LIMIT_MS, &ran, err);
	if (rc != MR_OK)
		return rc;
	if (ran.exit_code != 0) {
		spawned_describe(&ran, SLING_LIMIT_MS, &how);
		(void)mr_fail(err, MR_REFUSED, "the sling of '%s' to '%s' failed: %s", bead, rig, buf_z(&how));
		struct mr_str last = str_trim(buf_str(&ran.err));

		return mr_hint(err, "it says: %.*s", (int)strcspn(last.len > 0 ? last.ptr : "nothing", "\n"),
		    last.len > 0 ? last.ptr : "nothing");
	}
	if (!ran.out.ptr)
		buf_adds(&ran.out, "");
	*ret_output = buf_take(&ran.out);
	return *ret_output ? MR_OK : mr_nomem(err);
}

void
sling_status(struct mr_room *room, const char *bead, char ret[32])
{
	mr_auto(spawned_done) struct spawned ran = { 0 };
	struct mr_error ignored = { 0 };
	const char *more[] = { bead, NULL };

	ret[0] = '\0';
	if (run_setting(room, "Bead-Status", more, STATUS_LIMIT_MS, &ran, &ignored) != MR_OK || ran.exit_code != 0)
		return;
	const char *text = buf_z(&ran.out);
	struct mr_str line = str_trim((struct mr_str){ text, strcspn(text, "\r\n") });

	(void)snprintf(ret, 32, "%.*s", line.len < 31 ? (int)line.len : 31, line.ptr);
}

struct mr_str
sling_rig_of(const struct mr_room *room, const char *bead)
{
	const char *list = mr_room_setting(room, "Bead-Prefixes");
	struct mr_str best = STR("");
	size_t best_len = 0;

	for (const char *p = list ? list : ""; *p;) {
		struct mr_str one = str_trim((struct mr_str){ p, strcspn(p, ",") });
		const char *equals = one.len > 0 ? memchr(one.ptr, '=', one.len) : NULL;
		size_t len = equals ? (size_t)(equals - one.ptr) : 0;

		if (len > best_len && strncmp(bead, one.ptr, len) == 0 && bead[len] == '-') {
			best_len = len;
			best = str_trim((struct mr_str){ equals + 1, one.len - len - 1 });
		}
		p += strcspn(p, ",");
		p += *p ? 1 : 0;
	}
	return best;
}
