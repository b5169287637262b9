/* SPDX-License-Identifier: MIT */
/* inspect.c - for the doctor: locks that nobody renews, files that cannot be read, what crashed writers left. */
#include "base/clock.h"
#include "base/error.h"
#include "base/findings.h"
#include "base/sys.h"
#include "rooms/teams/teams.h"

#define LOCK_PATIENCE_MS 500

struct inspection {
	int fd;
	struct findings f;
	struct mr_names names;
	bool failed;
	size_t inboxes;
};

static bool
collect(void *ctx, const struct dir_entry *entry)
{
	struct inspection *in = ctx;

	in->failed |= !names_add(&in->names, str_of(entry->name));
	return !in->failed;
}

/* Taken as a writer takes it, and let go: whoever renewed it in this moment keeps it. */
static bool
take_dead_lock(int fd, const char *name)
{
	struct team_lock lock = TEAM_LOCK_INIT;
	struct mr_error ignored = { 0 };
	char file[TEAM_NAME_LEN];

	(void)snprintf(file, sizeof file, "%.*s", (int)(strlen(name) - strlen(".lock")), name);
	if (team_lock_take(&lock, fd, file, LOCK_PATIENCE_MS, &ignored) != MR_OK)
		return false;
	team_lock_done(&lock);
	return true;
}

static void
check_lock(struct inspection *in, const char *name, const struct stat *st)
{
	int64_t age = clock_now_ms() - (int64_t)st->st_mtim.tv_sec * 1000;
	struct mr_finding like = { .severity = MR_NOTE, .code = "locks", .path = name };
	char since[24];

	duration_text(age, since);
	if (!S_ISDIR(st->st_mode)) {
		like.severity = MR_PROBLEM;
		like.why = "a lock is a folder; nobody can write to that inbox while this is there";
		like.fix = "see whose it is and remove it";
		findings_say(&in->f, &like, "'%s' is no folder but stands where a lock goes, since %s", name, since);
	} else if (age <= TEAM_LOCK_STALE_MS) {
		like.severity = MR_FINE;
		findings_say(&in->f, &like, "'%s' is held right now", name);
	} else {
		like.why = "a living program renews its lock every few seconds";
		like.fixed = in->f.fix && take_dead_lock(in->fd, name);
		like.fix =
		    like.fixed ? "it is gone" : "the next to write takes it over; mailroom doctor --fix removes it";
		findings_say(&in->f, &like, "'%s' was left by a program that died, %s ago", name, since);
	}
}

static void
check_inbox(struct inspection *in, const char *name)
{
	mr_auto(inbox_unref) struct inbox *box = inbox_new(name);
	struct mr_error why = { 0 };
	size_t bad = 0;

	struct mr_finding like = { .severity = MR_PROBLEM, .code = "inboxes", .path = name };

	in->inboxes++;
	if (!box || inbox_read(box, in->fd, name, &why) != MR_OK || inbox_parse(box, &why) != MR_OK) {
		like.fix = why.hint;
		findings_say(&in->f, &like, "%s", why.message);
		return;
	}
	for (size_t i = 0; i < box->n; i++)
		bad += box->v[i].problem != NULL;
	if (box->state == INBOX_ALIEN) {
		like.why = "another program wrote it";
		like.fix = "see whose file it is; mailroom leaves it alone";
		findings_say(&in->f, &like, "'%s' %s", name, box->problem);
	} else if (box->state == INBOX_TORN) {
		like.why = "a writer that does not write in one step was killed";
		like.fix = "the next message to it saves it aside and keeps the whole ones";
		findings_say(&in->f, &like, "'%s' %s; %zu whole messages are before that", name, box->problem, box->n);
	} else if (bad > 0) {
		like.severity = MR_NOTE;
		like.why = "some versions of the original delete such entries";
		findings_say(&in->f, &like, "'%s' has %zu entries that are no messages", name, bad);
	}
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
		findings_leftover(&in->f, in->fd, name, name);
	else if (teams_is_inbox(name, &stem))
		check_inbox(in, name);
}

static void
check_members(struct inspection *in, struct mr_room *room)
{
	mr_auto(config_done) struct config config = { 0 };
	struct mr_error why = { 0 };
	struct mr_finding like = { .severity = MR_NOTE, .code = "members", .path = "config.json" };

	if (config_read(teams_of(room), &config, &why) != MR_OK) {
		like.severity = MR_PROBLEM;
		like.fix = why.hint;
		findings_say(&in->f, &like, "%s", why.message);
	} else if (!config.there)
		findings_say(&in->f, &like, "there is no config.json: anybody can be written to");
}

enum mr_rc
teams_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	struct inspection in = { .fd = -1, .f = findings_begin(fix, fn, ctx) };
	enum mr_rc rc = teams_open_inboxes(teams_of(room), &in.fd, err);

	findings_keep_in_state(&in.f, room->state_dir);
	if (rc == MR_NOTFOUND) {
		findings_say(&in.f,
		    &(struct mr_finding){
			.severity = MR_NOTE, .code = "inboxes", .fix = "the first message makes them" },
		    "this team has no inboxes yet");
		return MR_OK;
	}
	if (rc == MR_OK) {
		findings_space(&in.f, in.fd);
		rc = dir_each(in.fd, collect, &in, err);
	}
	for (size_t i = 0; rc == MR_OK && i < in.names.n; i++)
		check_name(&in, in.names.v[i]);
	if (rc == MR_OK)
		check_members(&in, room);
	if (rc == MR_OK && in.f.told == 0)
		findings_say(&in.f, &(struct mr_finding){ .severity = MR_FINE, .code = "inboxes" },
		    "%zu inboxes are in order", in.inboxes);
	findings_end(&in.f);
	mr_names_done(&in.names);
	sys_close_fd(&in.fd);
	return in.failed ? mr_nomem(err) : rc;
}
