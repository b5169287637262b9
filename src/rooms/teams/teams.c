/* SPDX-License-Identifier: MIT */
/*
 * teams.c - the driver of kind 'teams': opening, names of files, agents, the doctor.
 *
 * Nothing need be there yet, unless that is asked for: the first send makes it. Agents are the members of config.json,
 * and those who have an inbox. A team without config.json has no list of its members: there, as in the original, every
 * name can be written to.
 */
#include "rooms/teams/teams.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/text.h"
#include "message/address.h"
#include <errno.h>
#include <fcntl.h>

#define PATIENCE_MS 30000 /* more than a dead holder's lock needs to become stale */
#define SANITISED_MAX 200
#define DOCTOR_PATIENCE_MS 500

/* A team without config.json has nowhere to say what an inbox is for: a file of that name in a folder of ours does. Not
 * beside the inbox: on btrfs a second rename in inboxes/ within one commit brought a temporary name back after a power
 * cut, and such a name says that its message was not published. */
#define NOTES ".mailroom-stand-ins"

/* ---- Names of teams and agents as names of files, as the original spells them: lossy, in two ways ---- */

void
teams_sanitise(struct buf *out, struct mr_str raw, enum sanitise how)
{
	while (raw.len > 0) {
		uint32_t c = 0xfffd;
		size_t n = utf8_next(raw, &c);
		bool kept = (c < 0x80 && ascii_alnum((char)c)) || (how == SANITISE_INBOX && (c == '_' || c == '-'));

		if (kept)
			buf_addc(out, how == SANITISE_CONFIG ? ascii_lower((char)c) : (char)c);
		else
			buf_adds(out, c > 0xffff ? "--" : "-"); /* the original counts UTF-16 units */
		raw = str_from(raw, n > 0 ? n : 1);
	}
}

void
teams_inbox_name(const char *agent, char ret[TEAM_NAME_LEN])
{
	mr_auto(buf_done) struct buf raw = BUF_INIT, name = BUF_INIT;

	foreign_from_address(agent, &raw);
	teams_sanitise(&name, buf_str(&raw), SANITISE_INBOX);
	(void)snprintf(ret, TEAM_NAME_LEN, "%.180s.json", buf_z(&name));
}

bool
teams_is_inbox(const char *file, struct mr_str *ret_stem)
{
	struct mr_str name = str_of(file);

	if (name.len <= 5 || name.len > 185 || !str_ends(name, ".json"))
		return false;
	name.len -= 5;
	*ret_stem = name;
	return kit_is_plain(name) && !memchr(name.ptr, '.', name.len);
}

/* ---- Opening ---- */

/* The root may be reached through links; below it none is followed. */
enum mr_rc
teams_open_dir(const struct teams *t, const char *dir, int *ret_fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int root_fd = -1;

	TRY(dir_open(AT_FDCWD, t->kit.path, &root_fd, err));
	return dir_open(root_fd, dir, ret_fd, err);
}

enum mr_rc
teams_make_inboxes(const struct teams *t, int *ret_fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int root_fd = -1;

	if (dir_make(AT_FDCWD, t->kit.path, 0700, true, &root_fd, err) == MR_OK &&
	    dir_make(root_fd, t->inboxes, 0700, true, ret_fd, err) == MR_OK)
		return MR_OK;
	return mr_wrap(err, "cannot make '%s/%s'", t->kit.path, t->inboxes);
}

static char *
sanitised(const char *team, enum sanitise how, const char *below)
{
	struct buf path = BUF_INIT;

	teams_sanitise(&path, str_of(team), how);
	buf_adds(&path, below);
	return buf_take(&path);
}

static void
describe_place(const struct mr_message *msg, struct buf *evidence)
{
	buf_addf(
	    evidence, "entry %zu of %s, %s", msg->place - 1, msg->path, msg->flags & MR_SEEN ? "read" : "not read");
}

static enum mr_rc
open_ticket(struct mr_room *room, const char *folder, int *ret_fd, struct mr_error *err)
{
	if (folder[0])
		return mr_fail(err, MR_CORRUPT, "'%.60s' is not a folder of a team's inboxes", folder);
	return teams_open_dir(teams_of(room), teams_of(room)->inboxes, ret_fd, err);
}

static enum mr_rc
watched(struct mr_room *room, const char *agent, struct buf *ret_folder, struct mr_error *err)
{
	(void)agent; /* all inboxes are in one folder */
	(void)err;
	buf_addf(ret_folder, "%s/%s", teams_of(room)->kit.path, teams_of(room)->inboxes);
	return MR_OK;
}

static const struct kit_format teams_format = {
	.folders = MR_INBOX,
	.open_ticket = open_ticket,
	.gone_is_published = true,
	.watched = watched,
	.describe = describe_place,
};

enum mr_rc
teams_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	const char *slash = strrchr(where, '/');
	mr_auto(sys_close_fd) int fd = -1;

	if (where[0] != '/' || !slash[1] || strlen(slash + 1) > SANITISED_MAX)
		return mr_fail(err, MR_REFUSED,
		    "'%s' is not the folder of all teams and the name of a team\n"
		    "write teams:TEAM, or teams:/path/of/teams/TEAM",
		    where);
	TRY(kit_open(room, sizeof(struct teams), &teams_format, str_of(where), err));
	struct teams *t = teams_of(room);

	t->kit.path[slash == where ? 1 : slash - where] = '\0';
	t->team = strdup(slash + 1);
	t->patience_ms = PATIENCE_MS;
	t->inboxes = sanitised(slash + 1, SANITISE_INBOX, "/inboxes");
	t->config_dir = sanitised(slash + 1, SANITISE_CONFIG, "");
	TRY(mr_got(t->team && t->inboxes && t->config_dir, err));
	TRY(kit_set_name(room, str_of(t->team), "team", err));
	if (!room->must_exist)
		return MR_OK;
	/* Its members or its inboxes: the program makes the members first, and a room of ours may have none. */
	enum mr_rc rc = teams_open_dir(t, t->inboxes, &fd, err);

	if (rc == MR_NOTFOUND)
		rc = teams_open_dir(t, t->config_dir, &fd, err);
	return rc == MR_NOTFOUND ? mr_fail(err, MR_NOTFOUND, "there is no team '%s' in '%s'", t->team, t->kit.path)
				 : rc;
}

enum mr_rc
teams_make_box(struct mr_room *room, const char *box, struct mr_error *err)
{
	(void)box; /* there are no others than the room itself */
	mr_auto(sys_close_fd) int fd = -1;

	return teams_make_inboxes(teams_of(room), &fd, err);
}

void
teams_close(struct mr_room *room)
{
	struct teams *t = teams_of(room);

	if (!t)
		return;
	inbox_unref(&t->cache);
	free(t->marks);
	free(t->team);
	free(t->inboxes);
	free(t->config_dir);
	kit_close(room);
}

/* ---- The roster: everything at once, small beside any inbox ---- */

struct known {                         /* a member, or an inbox that is no member's */
	char name[MR_ADDRESS_MAX + 1]; /* "": an inbox whose name cannot be one */
	char file[TEAM_NAME_LEN];      /* of its inbox */
	struct json_value member;      /* raw.ptr NULL: it is none */
	bool has_inbox;
};
struct roster { /* members first */
	struct config config;
	struct known *v;
	size_t n, cap;
};

static void
roster_done(struct roster *r)
{
	config_done(&r->config);
	free(r->v);
}

static enum mr_rc
roster_add(struct roster *r, const struct known *k, struct mr_error *err)
{
	TRY(mr_got(array_grow(&r->v, r->n, &r->cap, sizeof *r->v), err));
	r->v[r->n++] = *k;
	return MR_OK;
}

static enum mr_rc
roster_read(struct mr_room *room, struct roster *r, struct mr_error *err)
{
	const struct teams *t = teams_of(room);
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(mr_names_done) struct mr_names files = { 0 };
	struct known k = { .name = "" };

	TRY(config_read(t, &r->config, err));
	enum mr_rc rc = teams_open_dir(t, t->inboxes, &fd, err);

	if (rc == MR_OK)
		rc = dir_names(fd, &files, err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	for (size_t at = 0; config_next(&r->config, &at, &k.member, k.name);) {
		teams_inbox_name(k.name, k.file);
		TRY(roster_add(r, &k, err));
	}
	for (size_t i = 0, members = r->n; i < files.n; i++) {
		struct known inbox = { .has_inbox = true };
		struct mr_str stem;
		bool owned = false;

		for (size_t m = 0; m < members; m++)
			if (strcmp(r->v[m].file, files.v[i]) == 0)
				owned = r->v[m].has_inbox = true;
		if (owned || !teams_is_inbox(files.v[i], &stem))
			continue;
		if (foreign_to_address(stem, inbox.name, IGNORED) != MR_OK)
			inbox.name[0] = '\0';
		(void)snprintf(inbox.file, sizeof inbox.file, "%s", files.v[i]);
		TRY(roster_add(r, &inbox, err));
	}
	return MR_OK;
}

/* The member of that name, else one with the same inbox; NULL: there is none. */
static const struct known *
find_known(const struct roster *r, const char *name)
{
	const struct known *found = NULL;
	char file[TEAM_NAME_LEN];

	teams_inbox_name(name, file);
	for (const struct known *k = r->v; k < r->v + r->n; k++) {
		if (k->member.raw.ptr && strcmp(k->name, name) == 0)
			return k;
		if (!found && k->has_inbox && strcmp(k->file, file) == 0)
			found = k;
	}
	return found;
}

static bool
is_member(const struct known *k, const char *name)
{
	return k && k->member.raw.ptr && strcmp(k->name, name) == 0;
}

/* An agent whose name differs only in case: most likely the intended one. */
static const struct known *
find_near(const struct roster *r, const char *name)
{
	char file[TEAM_NAME_LEN];

	teams_inbox_name(name, file);
	for (const struct known *k = r->v; k < r->v + r->n; k++) {
		if (!ascii_caseeq(k->file, file))
			continue;
		if (k->member.raw.ptr)
			return strcmp(k->name, name) != 0 ? k : NULL;
		if (strcmp(k->file, file) != 0 && k->name[0])
			return k;
	}
	return NULL;
}

static enum mr_rc
nobody(const struct roster *r, const char *name, struct mr_error *err)
{
	const struct known *near = find_near(r, name);

	(void)mr_fail(err, MR_NOTFOUND, "no member '%s' in this team", name);
	if (near)
		return mr_hint(err, "did you mean '%s'? names in a team are case-sensitive", near->name);
	return mr_hint(err, "`mailroom who` lists the team; --hold makes an inbox for a member that will join later");
}

/* Without a list of members every name that is like no other can be written to. */
static bool
is_known(const struct roster *r, const char *name)
{
	return find_known(r, name) || (!r->config.there && !find_near(r, name));
}

/* ---- Looking for agents ---- */

static enum mr_rc
open_notes(const struct teams *t, bool make, int *ret_fd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	buf_addf(&path, "%s/" NOTES, t->config_dir);
	return buf_ok(&path) ? dir_below(t->kit.path, buf_z(&path), make, true, ret_fd, err) : mr_nomem(err);
}

/* k NULL, or no member: all that is known of it is its inbox. */
static enum mr_rc
describe(struct mr_room *room, const struct roster *r, const struct known *k, const char *name, struct mr_agent *ret,
    struct mr_error *err)
{
	const struct teams *t = teams_of(room);
	mr_auto(sys_close_fd) int fd = -1, notes = -1;
	struct mr_agent agent = kit_agent(name);
	struct arena *own = NULL;
	char file[TEAM_NAME_LEN];
	struct stat st;

	if (is_member(k, name))
		return config_agent(k->member, name, ret, err);
	teams_inbox_name(name, file);
	if (teams_open_dir(t, t->inboxes, &fd, IGNORED) == MR_OK && sys_stat(fd, file, &st) == 0)
		agent.created_ms = kit_mtime_ns(&st) / 1000000;
	agent.stray = r->config.there;
	if (!agent.stray && open_notes(t, false, &notes, IGNORED) == MR_OK)
		agent.role = kit_note(notes, file, &own);
	agent.own = own;
	*ret = agent;
	return MR_OK;
}

enum mr_rc
teams_each_agent(struct mr_room *room, bool names_only, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(roster_done) struct roster r = { 0 };
	bool more = true;

	(void)names_only;
	TRY(roster_read(room, &r, err));
	for (size_t i = 0; i < r.n && more; i++) {
		mr_auto(mr_agent_done) struct mr_agent agent = { 0 };

		if (!r.v[i].name[0])
			continue;
		TRY(describe(room, &r, &r.v[i], r.v[i].name, &agent, err));
		more = fn(ctx, &agent);
	}
	return MR_OK;
}

enum mr_rc
teams_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	mr_auto(roster_done) struct roster r = { 0 };

	TRY(roster_read(room, &r, err));
	if (!is_known(&r, name))
		return nobody(&r, name, err);
	return ret ? describe(room, &r, find_known(&r, name), name, ret, err) : MR_OK;
}

enum mr_rc
teams_check_recipients(struct mr_room *room, const struct mr_names *to, bool make_mailboxes, struct mr_error *err)
{
	mr_auto(roster_done) struct roster r = { 0 };

	TRY(roster_read(room, &r, err));
	for (size_t i = 0; i < to->n; i++) {
		const struct known *near = find_near(&r, to->v[i]);

		if (is_known(&r, to->v[i]))
			continue;
		if (!make_mailboxes)
			return nobody(&r, to->v[i], err);
		if (near)
			return mr_fail(err, MR_REFUSED,
			    "'%s' is too similar to '%s' to get an inbox of its own\nwrite to '%s', or choose another name",
			    to->v[i], near->name, near->name);
	}
	return MR_OK;
}

enum mr_rc
teams_spell(struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	(void)room;
	if (address_normal(str_of(given), ret, IGNORED) == MR_OK)
		return MR_OK;
	return foreign_to_address(str_of(given), ret, err);
}

/* ---- Coming and going ---- */

/* The note comes first: killed in between, the inbox is made with the next try, which finds the note. */
static enum mr_rc
make_inbox(struct mr_room *room, const char *name, const char *note, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1, notes = -1;
	char file[TEAM_NAME_LEN];
	struct stat st;

	teams_inbox_name(name, file);
	TRY(teams_make_inboxes(teams_of(room), &fd, err));
	if (note && note[0]) {
		if (sys_stat(fd, file, &st) == 0)
			return mr_fail(err, MR_EXISTS, "'%s' already has an inbox", name);
		TRY(open_notes(teams_of(room), true, &notes, err));
		TRY(file_replace(notes, file, str_of(note), 0600, err));
	}
	return file_publish(fd, fd, file, STR("[]"), 0600, PUBLISH_FULL, err);
}

enum mr_rc
teams_add_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	mr_auto(roster_done) struct roster r = { 0 };

	TRY(roster_read(room, &r, err));
	const struct known *near = find_near(&r, agent->name);

	if (near)
		return mr_fail(
		    err, MR_REFUSED, "'%s' is too similar to '%s'\nchoose another name", agent->name, near->name);
	enum mr_rc rc = r.config.there ? members_change(teams_of(room), agent, NULL, err)
				       : make_inbox(room, agent->name, agent->role, err);

	if (rc == MR_EXISTS)
		return mr_fail(err, MR_EXISTS, "'%s' is already in this team", agent->name);
	if (rc != MR_OK || !r.config.there)
		return rc;
	rc = make_inbox(room, agent->name, NULL, err);
	return rc == MR_EXISTS ? MR_OK : rc;
}

enum mr_rc
teams_remove_box(struct mr_room *room, const char *name, bool force, size_t *ret_dead, struct mr_error *err)
{
	struct teams *t = teams_of(room);
	mr_auto(inbox_unref) struct inbox *in = NULL;
	mr_auto(roster_done) struct roster r = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(team_lock_done) struct team_lock l = TEAM_LOCK_INIT;
	char file[TEAM_NAME_LEN];
	size_t unread = 0;

	teams_inbox_name(name, file);
	TRY(roster_read(room, &r, err));
	const struct known *k = find_known(&r, name);
	bool registered = is_member(k, name);

	if (!k)
		return nobody(&r, name, err);
	TRY(inbox_load(t, name, true, &in, err));
	if (in->state == INBOX_ALIEN)
		return inbox_corrupt(in, err);
	for (size_t i = 0; i < in->order_n; i++)
		unread += !in->order[i]->seen;
	if (unread > 0 && !force)
		return mr_fail(err, MR_REFUSED,
		    "'%s' has %zu unread message%s\na team has no dead letters; --force deletes them", name, unread,
		    unread == 1 ? "" : "s");
	if (registered)
		TRY(members_change(teams_of(room), NULL, name, err));
	/* The file goes under the lock: a writer that waits for it makes it anew. */
	enum mr_rc rc = in->order_n == 0 || force ? teams_open_dir(t, t->inboxes, &fd, err) : MR_NOTFOUND;

	if (rc == MR_OK)
		rc = team_lock_take(&l, fd, file, t->patience_ms, err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	if (rc == MR_OK && ((sys_unlink(fd, file) < 0 && errno != ENOENT) || sys_fsync(fd) < 0))
		return mr_fail_errno(err, "cannot remove the inbox of '%s'", name);
	*ret_dead = unread;
	return MR_OK;
}

/* ---- Evidence and care ---- */

static void
check_lock(struct findings *f, int fd, const char *name, const struct stat *st)
{
	int64_t age = clock_now_ms() - (int64_t)st->st_mtim.tv_sec * 1000;
	struct mr_finding like = { .severity = MR_NOTE, .code = "locks", .path = name };
	char since[24], file[TEAM_NAME_LEN];

	duration_text(age, since);
	if (!S_ISDIR(st->st_mode)) {
		like.severity = MR_PROBLEM;
		like.why = "a lock is a folder; no program can write to that inbox while this is there";
		like.fix = "find out whose it is and remove it";
		findings_say(f, &like, "'%s' is not a folder but is in the place of a lock, since %s", name, since);
	} else if (age <= TEAM_LOCK_STALE_MS) {
		like.severity = MR_FINE;
		findings_say(f, &like, "'%s' is held right now", name);
	} else {
		/* Taken as a writer takes it, and let go: a holder that renewed it in this moment keeps it. */
		mr_auto(team_lock_done) struct team_lock lock = TEAM_LOCK_INIT;

		(void)snprintf(file, sizeof file, "%.*s", (int)(strlen(name) - strlen(".lock")), name);
		like.why = "a living program renews its lock every few seconds";
		like.fixed = f->fix && team_lock_take(&lock, fd, file, DOCTOR_PATIENCE_MS, IGNORED) == MR_OK;
		like.fix =
		    like.fixed ? "it is gone" : "the next writer takes it over; `mailroom doctor --fix` removes it";
		findings_say(f, &like, "'%s' was left by a program that died, %s ago", name, since);
	}
}

static void
check_inbox(struct findings *f, int fd, const char *name)
{
	mr_auto(inbox_unref) struct inbox *box = inbox_new(name);
	struct mr_finding like = { .severity = MR_PROBLEM, .code = "inboxes", .path = name };
	struct mr_error why = { 0 };
	size_t bad = 0;

	if (!box || inbox_read(box, fd, name, 0, &why) != MR_OK) {
		like.fix = why.hint;
		findings_say(f, &like, "%s", why.message);
		return;
	}
	for (size_t i = 0; i < box->n; i++)
		bad += box->v[i].problem != NULL;
	if (box->state == INBOX_ALIEN) {
		like.why = "another program wrote it";
		like.fix = "see whose file it is; mailroom leaves it alone";
		findings_say(f, &like, "'%s' %s", name, box->problem);
	} else if (box->state == INBOX_TORN) {
		like.why = "a writer that does not write in one step was killed";
		like.fix = "the next message to it saves it aside and keeps the whole ones";
		findings_say(f, &like, "'%s' %s; %zu whole messages are before that", name, box->problem, box->n);
	} else if (bad > 0) {
		like.severity = MR_NOTE;
		like.why = "some versions of the original delete such entries";
		findings_say(f, &like, "'%s' has %zu entries that are not messages", name, bad);
	}
}

enum mr_rc
teams_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(findings_end) struct findings f = findings_begin(fix, fn, ctx);
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(config_done) struct config config = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	size_t inboxes = 0;
	enum mr_rc rc = teams_open_dir(teams_of(room), teams_of(room)->inboxes, &fd, err);

	findings_keep_in_state(&f, room->state_dir);
	if (rc == MR_NOTFOUND)
		findings_say(&f,
		    &(struct mr_finding){
			.severity = MR_NOTE, .code = "inboxes", .fix = "the first message makes them" },
		    "this team has no inboxes yet");
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	findings_space(&f, fd);
	TRY(dir_names(fd, &names, err));
	for (size_t i = 0; i < names.n; i++) {
		const char *name = names.v[i];
		struct mr_str stem;
		struct stat st;

		if (sys_stat(fd, name, &st) < 0)
			continue;
		if (str_ends(str_of(name), ".json.lock"))
			check_lock(&f, fd, name, &st);
		else if (kit_is_temporary(name) || strstr(name, ".json.tmp.") || strstr(name, ".json.lock.stale."))
			findings_leftover(&f, fd, name, name);
		else if (teams_is_inbox(name, &stem)) {
			check_inbox(&f, fd, name);
			inboxes++;
		}
	}
	struct mr_finding like = { .severity = MR_PROBLEM, .code = "members", .path = "config.json" };
	struct mr_error why = { 0 };

	if (config_read(teams_of(room), &config, &why) != MR_OK) {
		like.fix = why.hint;
		findings_say(&f, &like, "%s", why.message);
	} else if (!config.there) {
		like.severity = MR_NOTE;
		findings_say(&f, &like, "there is no config.json: mail to any name is accepted");
	}
	if (f.told == 0)
		findings_say(&f, &(struct mr_finding){ .severity = MR_FINE, .code = "inboxes" },
		    "%zu inboxes are in order", inboxes);
	return MR_OK;
}

const struct room_driver room_teams = {
	.kind = "teams",
	.abilities =
	    ROOM_READ_STATE | ROOM_REGISTER | ROOM_TYPES | ROOM_OPEN_BOXES | ROOM_RAW | ROOM_CLEAR | ROOM_PLAIN_NAMES,
	.lead = "team-lead",
	.open = teams_open,
	.close = teams_close,
	.make_box = teams_make_box,
	.storage = kit_storage,
	.each_agent = teams_each_agent,
	.find_agent = teams_find_agent,
	.add_agent = teams_add_agent,
	.remove_box = teams_remove_box,
	.spell = teams_spell,
	.unsupported = teams_unsupported,
	.deliver = teams_deliver,
	.settle_ticket = kit_settle_ticket,
	.remove = teams_remove,
	.scan = teams_scan,
	.fetch = teams_fetch,
	.mark = teams_mark,
	.flush = teams_flush,
	.watch = kit_watch_agent,
	.watch_wait = kit_watch_wait,
	.watch_close = kit_watch_close,
	.each_place = kit_each_place,
	.inspect = teams_inspect,
};
