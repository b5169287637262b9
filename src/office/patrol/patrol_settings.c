/* SPDX-License-Identifier: MIT */
/*
 * patrol_settings.c - how a patrol goes: lines "Patrol-NAME: value" of the room's settings, or the same NAME given for
 * one run, which counts first. Commands are not among them: see config.h. A value that cannot be understood is refused
 * before anything is done: a patrol with half its settings would do half of what was meant.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/rules/config.h"
#include "office/patrol/patrol.h"
#include <stddef.h>

#define PREFIX "Patrol-"
#define HANDLER "Handler"

enum kind { TEXT, NUMBER, TIME, YES_NO, NAMES };

#define AT(member) offsetof(struct patrol_settings, member)
static const struct setting {
	const char *name;
	enum kind kind;
	size_t at;
	const char *otherwise;
} known[] = {
	{ "Escalate-To", TEXT, AT(escalate_to), "" },
	{ "Alert-To", TEXT, AT(alert_to), "" },
	{ "Escalate-After", NUMBER, AT(escalate_after), "3" },
	{ "Time-Limit", TIME, AT(time_limit_ms), "60s" },
	{ "Stale-After", TIME, AT(stale_after_ms), "5m" },
	{ "Archive-After", TIME, AT(archive_after_ms), "0s" },
	{ "Keep", TIME, AT(keep_ms), "30d" },
	{ "Watch", NAMES, AT(watch), "" },
	{ "Stale-Guard", NAMES, AT(stale_guard), "all" },
	{ "Wake", YES_NO, AT(wake), "yes" },
	{ "Channels", YES_NO, AT(channels), "yes" },
	{ "Leases", YES_NO, AT(leases), "yes" },
	{ "Overdue", YES_NO, AT(overdue), "yes" },
};
#define KNOWN_N (sizeof(known) / sizeof(known[0]))

void
patrol_settings_done(struct patrol_settings *set)
{
	mr_names_done(&set->watch);
	mr_names_done(&set->stale_guard);
	arena_free(set->own);
	*set = (struct patrol_settings){ 0 };
}

/* ---- Where they stand ---- */

static const char *
find(const struct patrol *p, const char *name)
{
	char full[64];

	for (size_t i = p->options->settings_n; i > 0; i--)
		if (ascii_caseeq(p->options->settings[i - 1].name, name))
			return p->options->settings[i - 1].value;
	(void)snprintf(full, sizeof(full), PREFIX "%s", name);
	return mr_room_setting(p->room, full);
}

static enum mr_rc
check_name(const char *name, struct mr_error *err)
{
	mr_auto(buf_done) struct buf list = BUF_INIT;

	if (ascii_caseeq(name, HANDLER))
		return MR_OK;
	for (size_t i = 0; i < KNOWN_N; i++) {
		if (ascii_caseeq(name, known[i].name))
			return MR_OK;
		buf_addf(&list, "%s, ", known[i].name);
	}
	(void)mr_fail(err, MR_REFUSED, "a patrol has no setting '%.60s'", name);
	return mr_hint(err, "there are %s" HANDLER, buf_z(&list));
}

static enum mr_rc
check_names(const struct patrol *p, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	for (size_t i = 0; i < p->options->settings_n && rc == MR_OK; i++) {
		const char *value = p->options->settings[i].value;

		rc = check_name(p->options->settings[i].name, err);
		if (rc == MR_OK && ascii_caseeq(p->options->settings[i].name, HANDLER))
			rc = config_check_command(value + strcspn(value, " \t"), err);
	}
	for (size_t i = 0; i < p->room->settings.n && rc == MR_OK; i++)
		if (str_starts(str_of(p->room->settings.lines[i].name), PREFIX))
			rc = check_name(p->room->settings.lines[i].name + strlen(PREFIX), err);
	return rc;
}

/* ---- What they say ---- */

static bool
read_names(const char *value, struct mr_names *ret)
{
	for (;;) {
		value += strspn(value, " ,\t");
		size_t n = strcspn(value, " ,\t");

		if (n == 0)
			return true;
		if (!names_add(ret, (struct mr_str){ value, n }))
			return false;
		value += n;
	}
}

static bool
read_yes_no(const char *value, bool *ret)
{
	*ret = ascii_caseeq(value, "yes");
	return *ret || ascii_caseeq(value, "no");
}

static bool
read_number(const char *value, int64_t *ret)
{
	uint64_t n = 0;

	if (!str_to_u64(str_of(value), &n) || n > 1000000)
		return false;
	*ret = (int64_t)n;
	return true;
}

static enum mr_rc
read_one(struct patrol *p, const struct setting *s, struct mr_error *err)
{
	static const char *const wanted[] = { [TEXT] = "",
		[NUMBER] = "a number",
		[TIME] = "a time such as 90s, 5m or 2h",
		[YES_NO] = "yes or no",
		[NAMES] = "" };
	void *at = (char *)&p->set + s->at;
	const char *value = find(p, s->name);
	bool ok = false;

	if (!value)
		value = s->otherwise;
	if (s->kind == TEXT) {
		*(const char **)at = arena_dup(&p->set.own, str_of(value));
		return *(const char **)at ? MR_OK : mr_nomem(err);
	}
	if (s->kind == NAMES)
		return read_names(value, at) ? MR_OK : mr_nomem(err);
	if (s->kind == NUMBER)
		ok = read_number(value, at);
	else if (s->kind == TIME)
		ok = duration_parse(str_of(value), at);
	else
		ok = read_yes_no(value, at);
	if (ok)
		return MR_OK;
	return mr_fail(
	    err, MR_REFUSED, "the setting '%s' of a patrol is %s, not '%.60s'", s->name, wanted[s->kind], value);
}

/* Whom to tell when nothing says it: the person behind the room, where there is one. */
static enum mr_rc
find_ears(struct patrol *p, struct mr_error *err)
{
	if (!*p->set.escalate_to && office_has_lives(p->room))
		p->set.escalate_to = OPERATOR;
	if (!*p->set.alert_to)
		p->set.alert_to = p->set.escalate_to;
	if (p->set.time_limit_ms > 0)
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "the setting 'Time-Limit' of a patrol must be more than nothing");
}

enum mr_rc
patrol_settings_read(struct patrol *p, struct mr_error *err)
{
	enum mr_rc rc = check_names(p, err);

	for (size_t i = 0; i < KNOWN_N && rc == MR_OK; i++)
		rc = read_one(p, &known[i], err);
	return rc == MR_OK ? find_ears(p, err) : rc;
}

/* ---- Handlers ---- */

/* "TYPE command": the command, if it is for that type. */
static const char *
command_for(const char *value, const char *type)
{
	size_t n = strcspn(value, " \t");

	if (n != strlen(type) || strncmp(value, type, n) != 0)
		return NULL;
	return value + n + strspn(value + n, " \t");
}

bool
patrol_handler_is_name(const char *handler)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	return handler[strspn(handler, letters)] == '\0';
}

/* What the command line says counts first; then the user's configuration, by the name of the type, then by the name
 * that the type gives its handler. A command in the type itself, which lies in the room, is none. */
const char *
patrol_handler(const struct patrol *p, const struct type_def *def)
{
	const char *command = NULL;

	for (size_t i = p->options->settings_n; i > 0 && !command; i--)
		if (ascii_caseeq(p->options->settings[i - 1].name, HANDLER))
			command = command_for(p->options->settings[i - 1].value, def->name);
	if (!command)
		command = config_get_of(p->room, HANDLER "-", def->name);
	if (!command && *def->handler && patrol_handler_is_name(def->handler))
		command = config_get_of(p->room, HANDLER "-", def->handler);
	return command ? command : "";
}
