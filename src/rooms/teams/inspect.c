/* SPDX-License-Identifier: MIT */
/* inspect.c - for the doctor: locks that nobody renews, files that cannot be read, what crashed writers left. */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "rooms/teams/teams.h"
#include <stdarg.h>
#include <stdio.h>

#define LEFTOVER_MS 600000 /* no writer takes that long */

struct inspection {
	struct mr_room *room;
	int fd;
	bool fix;
	mr_finding_fn *fn;
	void *ctx;
	struct mr_names names;
	bool failed;
	size_t inboxes, problems;
};

static void MR_PRINTF(6, 7) say(struct inspection *in, enum mr_severity severity, const char *check, bool fixed,
    const char *advice, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	in->problems += severity != MR_FINE;
	in->fn(in->ctx,
	    &(struct mr_finding){
		.severity = severity, .check = check, .text = text, .advice = fixed ? "" : advice, .fixed = fixed });
}

static bool
collect(void *ctx, const struct dir_entry *entry)
{
	struct inspection *in = ctx;

	in->failed |= !names_add(&in->names, str_of(entry->name));
	return !in->failed;
}

static int64_t
age_ms(const struct stat *st)
{
	return clock_now_ms() - ((int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000);
}

static void
check_lock(struct inspection *in, const char *name, const struct stat *st)
{
	char since[24];

	duration_text(age_ms(st), since);
	if (!S_ISDIR(st->st_mode))
		say(in, MR_PROBLEM, "locks", false, "see whose it is and remove it: nobody can write to that inbox",
		    "'%s' is no folder but stands where a lock goes, since %s", name, since);
	else if (age_ms(st) <= TEAM_LOCK_STALE_MS)
		say(in, MR_FINE, "locks", false, "", "'%s' is held right now", name);
	else if (in->fix && sys_rmdir(in->fd, name) == 0)
		say(in, MR_NOTE, "locks", true, "", "'%s' was left by a program that died, %s ago", name, since);
	else
		say(in, MR_NOTE, "locks", false, "the next to write takes it over; doctor --fix removes it",
		    "'%s' was left by a program that died, %s ago", name, since);
}

static void
check_leftover(struct inspection *in, const char *name, const struct stat *st)
{
	bool ticket = str_starts(str_of(name), FILE_CARRY);
	char since[24];

	if (age_ms(st) < LEFTOVER_MS || (str_starts(str_of(name), FILE_VOID) && !file_void_is_old(in->fd, name)))
		return;
	duration_text(age_ms(st), since);
	bool fixed =
	    in->fix && !ticket && (S_ISDIR(st->st_mode) ? sys_rmdir(in->fd, name) : sys_unlink(in->fd, name)) == 0;

	say(in, MR_NOTE, "leftovers", fixed,
	    ticket ? "the link that left it clears it away with `mailroom carry`" : "doctor --fix removes it",
	    "'%s' was left by a writer that died, %s ago", name, since);
}

static void
check_inbox(struct inspection *in, const char *name)
{
	mr_auto(inbox_unref) struct inbox *box = inbox_new(name);
	struct mr_error why = { 0 };
	size_t bad = 0;

	in->inboxes++;
	if (!box || inbox_read(box, in->fd, name, &why) != MR_OK || inbox_parse(box, &why) != MR_OK) {
		say(in, MR_PROBLEM, "inboxes", false, why.hint, "%s", why.message);
		return;
	}
	for (size_t i = 0; i < box->n; i++)
		bad += box->v[i].problem != NULL;
	if (box->state == INBOX_ALIEN)
		say(in, MR_PROBLEM, "inboxes", false, "see whose file it is; mailroom leaves it alone", "'%s' %s", name,
		    box->problem);
	else if (box->state == INBOX_TORN)
		say(in, MR_PROBLEM, "inboxes", false, "the next message to it saves it aside and keeps the whole ones",
		    "'%s' %s; %zu whole messages are before that", name, box->problem, box->n);
	else if (bad > 0)
		say(in, MR_NOTE, "inboxes", false, "some versions of the original delete such entries",
		    "'%s' has %zu entries that are no messages", name, bad);
}

static void
check_name(struct inspection *in, const char *name)
{
	struct mr_str stem;
	struct stat st;

	if (sys_stat(in->fd, name, &st) < 0)
		return;
	if (str_ends(str_of(name), ".json.lock"))
		check_lock(in, name, &st);
	else if (teams_is_leftover(name))
		check_leftover(in, name, &st);
	else if (teams_is_inbox(name, &stem))
		check_inbox(in, name);
}

enum mr_rc
teams_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	struct inspection in = { .room = room, .fd = -1, .fix = fix, .fn = fn, .ctx = ctx };
	mr_auto(config_done) struct config config = { 0 };
	struct mr_error why = { 0 };
	enum mr_rc rc = teams_open_inboxes(teams_of(room), &in.fd, err);

	if (rc == MR_NOTFOUND) {
		say(&in, MR_NOTE, "inboxes", false, "the first message makes them", "this team has no inboxes yet");
		return MR_OK;
	}
	if (rc == MR_OK)
		rc = dir_each(in.fd, collect, &in, err);
	for (size_t i = 0; rc == MR_OK && i < in.names.n; i++)
		check_name(&in, in.names.v[i]);
	if (rc == MR_OK && config_read(teams_of(room), &config, &why) != MR_OK)
		say(&in, MR_PROBLEM, "members", false, why.hint, "%s", why.message);
	else if (rc == MR_OK && !config.there)
		say(&in, MR_NOTE, "members", false, "", "there is no config.json: anybody can be written to");
	if (rc == MR_OK && in.problems == 0)
		say(&in, MR_FINE, "inboxes", false, "", "%zu inboxes are in order", in.inboxes);
	mr_names_done(&in.names);
	sys_close_fd(&in.fd);
	return in.failed ? mr_nomem(err) : rc;
}
