/* SPDX-License-Identifier: MIT */
/*
 * patrol.c - one round: unread mail of a type with a handler is handled, then the room is cared for. A message that
 * cannot be taken or noted does not keep the others waiting: its error is reported, and is the round's result in the
 * end.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/mail/mail.h"
#include "office/patrol/patrol.h"
#include "office/rules/config.h"
#include "office/types/types.h"
#include <poll.h>
#include <stddef.h>

#define PAUSE_MAX_MS 2000 /* the end of a cooldown or of a lease raises no event */
#define PREFIX "Patrol-"
#define HANDLER "Handler"

/* ---- Settings ----
 *
 * Lines "Patrol-NAME: value" of the room's settings, or the same NAME given for one run, which has precedence. Commands
 * are not among them: see config.h. A wrong value is refused before anything is done, because a patrol with half of its
 * settings would do half of what was intended. */
enum kind { TEXT, NUMBER, SPAN, YES_NO, NAMES };

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
	{ "Time-Limit", SPAN, AT(time_limit_ms), "60s" },
	{ "Stale-After", SPAN, AT(stale_after_ms), "5m" },
	{ "Archive-After", SPAN, AT(archive_after_ms), "0s" },
	{ "Keep", SPAN, AT(keep_ms), "30d" },
	{ "Watch", NAMES, AT(watch), "" },
	{ "Stale-Guard", NAMES, AT(stale_guard), "all" },
	{ "Wake", YES_NO, AT(wake), "yes" },
	{ "Channels", YES_NO, AT(channels), "yes" },
	{ "Leases", YES_NO, AT(leases), "yes" },
	{ "Overdue", YES_NO, AT(overdue), "yes" },
};
#define KNOWN_N (sizeof(known) / sizeof(known[0]))

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
	return mr_fail(
	    err, MR_REFUSED, "a patrol has no setting '%.60s'\nthe settings are %s" HANDLER, name, buf_z(&list));
}

static enum mr_rc
read_setting(struct patrol *p, const struct setting *s, struct mr_error *err)
{
	static const char *const wanted[] = {
		[NUMBER] = "a number", [SPAN] = "a time such as 90s, 5m or 2h", [YES_NO] = "yes or no"
	};
	void *at = (char *)&p->set + s->at;
	const char *value = NULL;
	char full[64];
	uint64_t number = 0;
	bool ok = false;

	/* The last one given for this run, else the line of the room. */
	for (size_t i = p->options->settings_n; i > 0 && !value; i--)
		if (ascii_caseeq(p->options->settings[i - 1].name, s->name))
			value = p->options->settings[i - 1].value;
	(void)snprintf(full, sizeof(full), PREFIX "%s", s->name);
	value = value ? value : mr_room_setting(p->room, full);
	value = value ? value : s->otherwise;
	switch (s->kind) {
	case TEXT:
		*(const char **)at = arena_dup(&p->set.own, str_of(value));
		return mr_got(*(const char **)at, err);
	case NAMES:
		for (size_t n; value += strspn(value, " ,\t"), (n = strcspn(value, " ,\t")) > 0; value += n)
			TRY(mr_got(names_add(at, (struct mr_str){ value, n }), err));
		return MR_OK;
	case NUMBER:
		ok = str_to_u64(str_of(value), &number) && number <= 1000000;
		*(int64_t *)at = (int64_t)number;
		break;
	case SPAN:
		ok = duration_parse(str_of(value), at);
		break;
	case YES_NO:
		*(bool *)at = ascii_caseeq(value, "yes");
		ok = *(bool *)at || ascii_caseeq(value, "no");
		break;
	}
	if (ok)
		return MR_OK;
	return mr_fail(
	    err, MR_REFUSED, "the setting '%s' of a patrol must be %s, not '%.60s'", s->name, wanted[s->kind], value);
}

static enum mr_rc
read_settings(struct patrol *p, struct mr_error *err)
{
	for (size_t i = 0; i < p->options->settings_n; i++) {
		const char *value = p->options->settings[i].value;

		TRY(check_name(p->options->settings[i].name, err));
		if (ascii_caseeq(p->options->settings[i].name, HANDLER))
			TRY(config_check_command(value + strcspn(value, " \t"), err));
	}
	for (size_t i = 0; i < p->room->settings.n; i++)
		if (str_starts(str_of(p->room->settings.lines[i].name), PREFIX))
			TRY(check_name(p->room->settings.lines[i].name + strlen(PREFIX), err));
	for (size_t i = 0; i < KNOWN_N; i++)
		TRY(read_setting(p, &known[i], err));
	/* By default the operator is told, if there is one. */
	if (!*p->set.escalate_to && office_has_lives(p->room))
		p->set.escalate_to = OPERATOR;
	if (!*p->set.alert_to)
		p->set.alert_to = p->set.escalate_to;
	if (p->set.time_limit_ms > 0)
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "the setting 'Time-Limit' of a patrol must be more than 0");
}

/* The command line ("TYPE command") has precedence; then the user's configuration, by the name of the type, then by the
 * name that the type gives its handler. A command in the type itself is in the room, so it does not count. */
const char *
patrol_handler(const struct patrol *p, const struct type_def *def)
{
	const char *command = NULL;

	for (size_t i = p->options->settings_n; i > 0; i--) {
		const char *value = p->options->settings[i - 1].value;
		size_t n = strcspn(value, " \t");

		if (ascii_caseeq(p->options->settings[i - 1].name, HANDLER) &&
		    str_eq((struct mr_str){ value, n }, str_of(def->name)))
			return value + n + strspn(value + n, " \t");
	}
	command = config_get_of(p->room, HANDLER "-", def->name);
	if (!command && *def->handler && types_handler_is_name(def->handler))
		command = config_get_of(p->room, HANDLER "-", def->handler);
	return command ? command : "";
}

/* ---- Mail ---- */

void
patrol_tell(const struct patrol *p, struct mr_patrol_step step)
{
	const char **const texts[] = { &step.id, &step.type, &step.from, &step.handler, &step.result };

	if (!p->options->fn)
		return;
	step.at_ms = clock_now_ms();
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		*texts[i] = *texts[i] ? *texts[i] : "";
	p->options->fn(p->options->ctx, &step);
}

struct gathering {
	struct patrol *p;
	struct candidates found;
	struct mr_names unhandled; /* types that were reported */
};

static bool
gather(void *ctx, const struct mr_message *msg)
{
	struct gathering *g = ctx;
	const struct type_def *def = types_of(g->p->room, msg);
	bool has_handler = def && *patrol_handler(g->p, def);

	if (has_handler && msg->proof != MR_UNPROVEN)
		return candidates_add(&g->found, msg);
	g->p->count.left++;
	if (has_handler) { /* another member of a shared room wrote it under that name */
		patrol_tell(
		    g->p, (struct mr_patrol_step){ .what = "unproven",
			      .id = msg->id,
			      .type = def->name,
			      .from = msg->from,
			      .result = "its file belongs to another user than its sender: it is not acted on" });
	} else if (def && *def->handler && !names_has(&g->unhandled, def->name)) {
		mr_auto(buf_done) struct buf text = BUF_INIT;

		(void)names_add(&g->unhandled, str_of(def->name)); /* without memory it is reported again */
		buf_addf(&text, "your configuration has no handler for it: mailroom config set Handler-%s COMMAND",
		    types_handler_is_name(def->handler) ? def->handler : def->name);
		patrol_tell(
		    g->p, (struct mr_patrol_step){ .what = "unhandled", .type = def->name, .result = buf_z(&text) });
	}
	return true;
}

static void
tell_unreadable(void *ctx, const char *path, const struct mr_error *err)
{
	const struct gathering *g = ctx;

	(void)path;
	patrol_tell(g->p, (struct mr_patrol_step){ .what = "trouble", .result = err->message });
}

static bool
is_stopped(const struct patrol *p)
{
	return p->options->stop && p->options->stop(p->options->ctx);
}

static enum mr_rc
do_mail(struct patrol *p, struct mr_error *err)
{
	mr_auto(candidates_done) struct candidates work = { 0 };
	struct gathering g = { .p = p };
	struct scan_request want = {
		.folders = MR_INBOX,
		.depth = SCAN_HEADERS,
		.unread_only = true,
		.trouble = tell_unreadable,
		.trouble_ctx = &g,
	};

	scan_sweep(p->room, p->self->agent);
	enum mr_rc worst = office_scan(p->room, p->self->agent, &want, gather, &g, err);

	work = g.found;
	mr_names_done(&g.unhandled);
	TRY(worst);
	TRY(mr_got(!work.failed, err));
	candidates_sort(work.v, work.n, MR_WORK_ORDER);
	for (size_t i = 0; i < work.n && worst != MR_NOMEM && worst != MR_FULL && !is_stopped(p); i++) {
		struct mr_error trouble = { 0 };

		TRY(office_not_fenced(p->room, p->self, err));
		enum mr_rc rc = patrol_message(p, work.v[i].id, &trouble);
		if (rc == MR_OK)
			continue;
		patrol_tell(
		    p, (struct mr_patrol_step){ .what = "trouble", .id = work.v[i].id, .result = trouble.message });
		if (worst == MR_OK || rc == MR_NOMEM || rc == MR_FULL) {
			*err = trouble;
			worst = rc;
		}
	}
	return worst;
}

static void
patrol_done(struct patrol *p)
{
	mr_names_done(&p->set.watch);
	mr_names_done(&p->set.stale_guard);
	arena_free(p->set.own);
}

enum mr_rc
mr_patrol(struct mr_room *room, const struct mr_self *self, const struct mr_patrol_options *options,
    struct mr_patrolled *ret, struct mr_error *err)
{
	mr_auto(patrol_done) struct patrol p = { .room = room, .self = self, .options = options };
	mr_auto(notes_unlock) struct notes_lock lock = { .fd = -1 };
	void *watch = NULL;
	struct mr_error late = { 0 };

	*ret = p.count;
	TRY(notes_able(room, err));
	TRY(read_settings(&p, err));
	TRY(office_not_fenced(room, self, err));
	/* In a room without claims, only one patrol at a time goes through a mailbox. */
	if (!options->dry_run && !(room->driver->abilities & ROOM_HOLDS)) {
		enum mr_rc rc = notes_lock(room, NOTE_KIND, self->agent, 0, &lock, err);
		if (rc == MR_BUSY)
			return mr_fail(err, MR_BUSY,
			    "another patrol is at work in the mailbox of '%s'\none is enough: there is nothing to do",
			    self->agent);
		TRY(rc);
	}
	if (options->rest_ms > 0 && ROOM_HAS(room, watch))
		(void)room->driver->watch(room, self->agent, &watch, IGNORED);
	if (options->patient) /* a patrol that runs for days picks up added and changed types */
		types_reread(room);
	enum mr_rc rc = do_mail(&p, err);

	if (!options->dry_run && office_flush(room, &late) != MR_OK && rc == MR_OK) {
		*err = late;
		rc = late.code;
	}
	if (p.count.handled > 0)
		patrol_forget_old(&p);
	if (rc == MR_OK && !is_stopped(&p))
		rc = patrol_care(&p, err);
	notes_unlock(&lock);
	/* Mail that waits or is left alone stays unread, so a wait for unread mail would return at once: the watch was
	 * armed before the round and reports later mail. */
	int64_t rest_ms = options->rest_ms < PAUSE_MAX_MS ? options->rest_ms : PAUSE_MAX_MS;
	size_t did = p.count.handled + p.count.failed + p.count.dead + p.count.aside;
	if (rc == MR_OK && did == 0 && rest_ms > 0 && !is_stopped(&p)) {
		if (watch)
			(void)room->driver->watch_wait(room, watch, rest_ms);
		else
			(void)poll(NULL, 0, (int)rest_ms);
	}
	if (watch)
		room->driver->watch_close(room, watch);
	*ret = p.count;
	return rc;
}
