/* SPDX-License-Identifier: MIT */
/*
 * dispatch.c - giving out work that is kept elsewhere (beads), by lines of the user's configuration and of the room's
 * settings:
 *
 *	Sling: COMMAND           gets BEAD RIG and options, gives the bead to a worker of the rig
 *	Bead-Status: COMMAND     gets BEAD, prints its status; an unknown bead counts as not open
 *	Bead-Prefixes: gt=gastown, bd=beads
 *
 * The commands are split into words and their arguments appended, so that no shell ever sees the name of a bead.
 *
 * Work that lost its worker is given out again, but not for ever. Each bead has a record (kind "redispatch"): how
 * often, when and to which rig. An attempt is recorded before the Sling: command runs, under the record's lock: of two
 * redispatches at once, one goes on and the other finds the cooldown, and one that is killed in between has been
 * counted.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/office.h"
#include "office/patrol/patrol.h"
#include "office/rules/config.h"
#include <stddef.h>

#define LEDGER "redispatch"
#define RECORD_NAME_MAX 80
#define STATUS_LIMIT_MS ((int64_t)30 * 1000)
#define SLING_LIMIT_MS ((int64_t)10 * 60 * 1000)

/* ---- Commands ---- */

/* The id of a bead is also the name of a record, and must not look like an option. */
static enum mr_rc
check_bead(const char *bead, struct mr_error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strlen(bead);

	if (len > 0 && len <= RECORD_NAME_MAX && bead[0] != '-' && bead[0] != '.' && strspn(bead, letters) == len)
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "'%.60s' is not the id of a bead\nuse letters, digits, '.', '_' and '-', such as gt-abc12", bead);
}

/* Runs the command of a setting with further words appended. MR_NOTFOUND: the user allows none. */
static enum mr_rc
run_setting(struct mr_room *room, const char *setting, const char *const *more, int64_t limit_ms, struct spawned *ret,
    struct mr_error *err)
{
	const char *command = mr_config_get(room, setting);
	mr_auto(mr_names_done) struct mr_names words = { 0 }, env = { 0 };

	if (!command)
		return mr_fail(err, MR_NOTFOUND,
		    "your configuration has no '%s' for this room\ntype in a terminal: mailroom config set %s COMMAND",
		    setting, setting);
	words = split_command(command, err);
	if (words.n == 0)
		return mr_wrap(err, "setting '%s'", setting);
	for (; *more; more++)
		TRY(mr_got(names_add(&words, str_of(*more)), err));
	TRY(mr_got(names_addf(&env, "MAILROOM=%s", room->spec), err));
	struct spawn how = { .argv = names_list(&words), .env = names_list(&env), .limit_ms = limit_ms };

	return spawn_run(&how, ret, err) == MR_OK ? MR_OK : mr_wrap(err, "setting '%s'", setting);
}

enum mr_rc
mr_sling(struct mr_room *room, const char *bead, const char *rig, const char *const *options, char **ret_output,
    struct mr_error *err)
{
	mr_auto(spawned_done) struct spawned ran = { 0 };
	mr_auto(buf_done) struct buf how = BUF_INIT;
	const char *more[16] = { bead, rig };

	TRY(check_bead(bead, err));
	TRY(mr_address_check(rig, err));
	for (size_t n = 2; options && *options && n < 15; options++)
		more[n++] = *options;
	TRY(run_setting(room, "Sling", more, SLING_LIMIT_MS, &ran, err));
	if (ran.exit_code != 0) {
		struct mr_str said = str_trim(buf_str(&ran.err));
		const char *first = said.len > 0 ? said.ptr : "nothing";

		spawned_describe(&ran, SLING_LIMIT_MS, &how);
		(void)mr_fail(err, MR_REFUSED, "the sling of '%s' to '%s' failed: %s", bead, rig, buf_z(&how));
		return mr_hint(err, "it printed: %.*s", (int)strcspn(first, "\n"), first);
	}
	if (!ran.out.ptr)
		buf_adds(&ran.out, "");
	*ret_output = buf_take(&ran.out);
	return *ret_output ? MR_OK : mr_nomem(err);
}

/* "open", "closed", ...; "" if it is unknown. */
static void
bead_status(struct mr_room *room, const char *bead, char ret[32])
{
	mr_auto(spawned_done) struct spawned ran = { 0 };
	const char *more[] = { bead, NULL };

	ret[0] = '\0';
	if (run_setting(room, "Bead-Status", more, STATUS_LIMIT_MS, &ran, IGNORED) != MR_OK || ran.exit_code != 0)
		return;
	const char *text = buf_z(&ran.out);
	struct mr_str line = str_trim((struct mr_str){ text, strcspn(text, "\r\n") });
	(void)snprintf(ret, 32, "%.*s", line.len < 31 ? (int)line.len : 31, line.ptr);
}

/* The rig of the longest prefix that the bead begins with; empty: none. */
static struct mr_str
rig_of(const struct mr_room *room, const char *bead)
{
	const char *list = mr_room_setting(room, "Bead-Prefixes");
	struct mr_str rest = str_of(list ? list : ""), one, best = STR("");
	size_t best_len = 0;

	while (str_cut(&rest, ',', &one)) {
		one = str_trim(one);
		const char *equals = one.len > 0 ? memchr(one.ptr, '=', one.len) : NULL;
		size_t len = equals ? (size_t)(equals - one.ptr) : 0;

		if (len > best_len && strncmp(bead, one.ptr, len) == 0 && bead[len] == '-') {
			best_len = len;
			best = str_trim((struct mr_str){ equals + 1, one.len - len - 1 });
		}
	}
	return best;
}

/* ---- The ledger ---- */

struct entry { /* finish with entry_done */
	struct record lines;
	unsigned attempts;
	int64_t last_ms, escalated_ms; /* 0: never */
	const char *rig;
};
static const struct record_field entry_fields[] = {
	{ "Attempts", RECORD_COUNT, offsetof(struct entry, attempts) },
	{ "Last-Rig", RECORD_TEXT, offsetof(struct entry, rig) },
	{ "Last-Attempt", RECORD_TIME, offsetof(struct entry, last_ms) },
	{ "Escalated", RECORD_TIME, offsetof(struct entry, escalated_ms) },
};

static void
entry_done(struct entry *e)
{
	record_done(&e->lines);
}

static enum mr_rc
entry_load(struct mr_room *room, const char *bead, struct entry *ret, struct mr_error *err)
{
	TRY(mr_unless(office_record(room, LEDGER, "", bead, &ret->lines, err), MR_NOTFOUND, err));
	record_read(&ret->lines, RECORD_FIELDS(entry_fields), ret);
	return MR_OK;
}

static enum mr_rc
able(const struct mr_room *room, struct mr_error *err)
{
	if (ROOM_HAS(room, record_put))
		return MR_OK;
	return room_lacks(room, "memory for work that is given out again", err);
}

enum mr_rc
mr_redispatch_list(struct mr_room *room, struct mr_redispatches *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names beads = { 0 };
	mr_auto(roll_done) struct roll r = { 0 };

	TRY(able(room, err));
	TRY(office_records(room, LEDGER, "", &beads, err));
	names_sort(&beads);
	for (size_t i = 0; i < beads.n; i++) {
		mr_auto(entry_done) struct entry e = { 0 };

		TRY(entry_load(room, beads.v[i], &e, err));
		struct mr_redispatch_entry *one = e.attempts > 0 ? roll_add(&r, sizeof(*one)) : NULL;

		if (one)
			*one = (struct mr_redispatch_entry){ roll_str(&r, beads.v[i]), roll_str(&r, e.rig), e.attempts,
				e.last_ms, e.escalated_ms };
	}
	TRY(mr_got(!r.failed, err));
	*ret = (struct mr_redispatches){ .v = r.v, .n = r.n, .own = roll_take(&r) };
	return MR_OK;
}

/* ---- One redispatch ---- */

struct redispatch {
	struct mr_room *room;
	const struct mr_self *self;
	const char *bead;
	const struct mr_redispatch_options *options;
	struct mr_redispatched *ret;
	int64_t now_ms;
	bool escalating; /* the mail was sent: record that */
};

/* The first three checks, against the ledger. True: ret->end is the outcome. */
static bool
is_over(const struct redispatch *r, const struct entry *e)
{
	int64_t since_ms = r->now_ms - e->last_ms, cooldown_ms = r->options->cooldown_ms;

	r->ret->attempts = e->attempts;
	r->ret->wait_ms = 0;
	if (e->escalated_ms > 0) {
		r->ret->end = MR_REDISPATCH_WAS_ESCALATED;
		return true;
	}
	/* A time in the near future was written by a process that read the clock later; one in the far future by a
	 * wrong clock. */
	if (e->last_ms > 0 && since_ms > -cooldown_ms && since_ms < cooldown_ms) {
		r->ret->wait_ms = cooldown_ms - since_ms;
		r->ret->end = MR_REDISPATCH_COOLDOWN;
		return true;
	}
	if (e->attempts < r->options->max_attempts)
		return false;
	r->ret->end = MR_REDISPATCH_ESCALATED;
	return true;
}

/* MR_EMPTY: another process was faster, and its attempt counts. */
static enum mr_rc
write_down(struct redispatch *r, struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit edit = { 0 };
	mr_auto(entry_done) struct entry e = { 0 };

	TRY(record_edit_begin(&edit, r->room, LEDGER, "", r->bead, err));
	if (edit.text.len > 0)
		TRY(record_parse(buf_str(&edit.text), &e.lines, err));
	record_read(&e.lines, RECORD_FIELDS(entry_fields), &e);
	if (r->escalating) {
		e.escalated_ms = r->now_ms;
	} else {
		if (is_over(r, &e))
			return MR_EMPTY;
		r->ret->attempts = ++e.attempts;
		e.last_ms = r->now_ms;
		e.rig = r->ret->rig;
	}
	buf_clear(&edit.text);
	record_write(&edit.text, RECORD_FIELDS(entry_fields), &e);
	return record_edit_save(&edit, err);
}

/* The key makes it one mail, even if the sender is killed before that is recorded. */
static enum mr_rc
escalate(struct redispatch *r, const struct entry *e, struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT, key = BUF_INIT;

	buf_addf(&subject, "REDISPATCH_FAILED: %s (%u attempts)", r->bead, e->attempts);
	buf_addf(&body, "Bead: %s\nAttempts: %u\n", r->bead, e->attempts);
	if (e->last_ms > 0)
		buf_addf(&body, "Last Rig: %s\nLast Attempt: %s\n", e->rig, time_text(e->last_ms).z);
	buf_addf(&key, "redispatch-%s-%u", r->bead, e->attempts);
	TRY(mr_got(buf_ok(&key), err));
	if (patrol_send(r->room, r->self, "mayor", MR_HIGH, buf_z(&key), &subject, &body, err) != MR_OK)
		return mr_wrap(err, "cannot tell the mayor that '%s' failed %u times", r->bead, e->attempts);
	r->escalating = true;
	return write_down(r, err);
}

static enum mr_rc
dispatch(struct redispatch *r, struct mr_error *err)
{
	static const char *const options[] = { "--force", "--no-convoy", NULL };
	mr_auto(free_ptr) char *output = NULL;
	struct mr_str rig = r->options->rig ? str_of(r->options->rig) : rig_of(r->room, r->bead);

	if (rig.len == 0 || rig.len >= sizeof(r->ret->rig))
		return mr_fail(err, MR_NOTFOUND,
		    "no rig is known for '%s'\ngive --rig RIG, or add a line 'Bead-Prefixes: PREFIX=RIG' to the room's settings",
		    r->bead);
	(void)snprintf(r->ret->rig, sizeof(r->ret->rig), "%.*s", (int)rig.len, rig.ptr);
	bead_status(r->room, r->bead, r->ret->status);
	if (strcmp(r->ret->status, "open") != 0) {
		r->ret->end = MR_REDISPATCH_NOT_OPEN;
		return MR_OK;
	}
	enum mr_rc rc = write_down(r, err);
	if (rc != MR_OK)
		return rc == MR_EMPTY ? MR_OK : rc;
	r->ret->end = MR_REDISPATCH_SLUNG;
	return mr_sling(r->room, r->bead, r->ret->rig, options, &output, err);
}

enum mr_rc
mr_redispatch(struct mr_room *room, const struct mr_self *self, const char *bead,
    const struct mr_redispatch_options *options, struct mr_redispatched *ret, struct mr_error *err)
{
	struct mr_redispatched result = { 0 };
	struct redispatch r = {
		.room = room, .self = self, .bead = bead, .options = options, .ret = &result, .now_ms = clock_now_ms()
	};
	mr_auto(entry_done) struct entry entry = { 0 };

	TRY(able(room, err));
	TRY(check_bead(bead, err));
	TRY(entry_load(room, bead, &entry, err));
	if (!is_over(&r, &entry))
		TRY(dispatch(&r, err));
	else if (result.end == MR_REDISPATCH_ESCALATED)
		TRY(escalate(&r, &entry, err));
	*ret = result;
	return MR_OK;
}
