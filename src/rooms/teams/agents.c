/* SPDX-License-Identifier: MIT */
/*
 * agents.c - who is there: the members of config.json, and whoever has an inbox. A team without config.json has no list
 * of its members: there, as in the original, anybody can be written to.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "message/address.h"
#include "message/foreign.h"
#include "rooms/teams/teams.h"
#include <errno.h>

/* ---- The roster: everything at once, small beside any inbox ---- */

struct roster {
	struct config config;
	struct mr_names files; /* of the inboxes */
	bool failed;
};

static void
roster_done(struct roster *r)
{
	config_done(&r->config);
	mr_names_done(&r->files);
}

static bool
note_file(void *ctx, const struct dir_entry *entry)
{
	struct roster *r = ctx;
	struct mr_str stem;

	if (teams_is_inbox(entry->name, &stem) && !names_add(&r->files, str_of(entry->name)))
		r->failed = true;
	return !r->failed;
}

static enum mr_rc
roster_read(struct mr_room *room, struct roster *r, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = config_read(teams_of(room), &r->config, err);

	if (rc != MR_OK)
		return rc;
	rc = teams_open_inboxes(teams_of(room), &fd, err);
	if (rc == MR_OK)
		rc = dir_each(fd, note_file, r, err);
	if (r->failed)
		return mr_nomem(err);
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

/* The member whose inbox that is, or any case of it. */
static bool
member_with_file(const struct roster *r, const char *file, bool any_case, char ret[MR_ADDRESS_MAX + 1])
{
	struct json_value member;
	char name[TEAM_NAME_LEN];

	for (size_t at = 0; config_next(&r->config, &at, &member, ret);) {
		teams_inbox_name(ret, name);
		if (any_case ? ascii_caseeq(name, file) : strcmp(name, file) == 0)
			return true;
	}
	return false;
}

static bool
stem_address(const char *file, char ret[MR_ADDRESS_MAX + 1])
{
	struct mr_error ignored = { 0 };
	struct mr_str stem;

	return teams_is_inbox(file, &stem) && foreign_to_address(stem, ret, &ignored) == MR_OK;
}

/* Somebody whose name differs only in case: most likely who was meant. */
static bool
find_near(const struct roster *r, const char *name, char ret[MR_ADDRESS_MAX + 1])
{
	char file[TEAM_NAME_LEN];

	teams_inbox_name(name, file);
	if (member_with_file(r, file, true, ret))
		return strcmp(ret, name) != 0;
	for (size_t i = 0; i < r->files.n; i++)
		if (ascii_caseeq(r->files.v[i], file) && strcmp(r->files.v[i], file) != 0 &&
		    stem_address(r->files.v[i], ret))
			return true;
	return false;
}

static enum mr_rc
nobody(const struct roster *r, const char *name, struct mr_error *err)
{
	char near[MR_ADDRESS_MAX + 1];

	(void)mr_fail(err, MR_NOTFOUND, "nobody called '%s' is in this team", name);
	if (find_near(r, name, near))
		return mr_hint(err, "did you mean '%s'? names of a team differ in case", near);
	return mr_hint(err, "`mailroom who` lists the team; --hold makes an inbox for somebody who will come");
}

static bool
is_member(const struct roster *r, const char *name, struct json_value *ret)
{
	char other[MR_ADDRESS_MAX + 1];

	for (size_t at = 0; config_next(&r->config, &at, ret, other);)
		if (strcmp(other, name) == 0)
			return true;
	return false;
}

static bool
is_known(const struct roster *r, const char *name)
{
	struct json_value member;
	char file[TEAM_NAME_LEN], near[MR_ADDRESS_MAX + 1];

	teams_inbox_name(name, file);
	if (is_member(r, name, &member) || names_has(&r->files, file))
		return true;
	return !r->config.there && !find_near(r, name, near);
}

static int64_t
file_time_ms(struct mr_room *room, const char *file)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_error ignored = { 0 };
	struct stat st;

	if (teams_open_inboxes(teams_of(room), &fd, &ignored) != MR_OK || sys_stat(fd, file, &st) < 0)
		return 0;
	return (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
}

/* A team without config.json has nowhere to say what an inbox is for: a file of that name in a folder of ours does. Not
 * beside the inbox: on btrfs a second rename in inboxes/ within one commit brought a temporary name back after a power
 * cut, and such a name says that its message was not published. */
#define NOTES ".mailroom-stand-ins"
#define NOTE_MAX ((size_t)4 << 10)

static enum mr_rc
open_notes(const struct teams *t, bool make, int *ret_fd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	buf_addf(&path, "%s/" NOTES, t->config_dir);
	return buf_ok(&path) ? dir_below(t->root, buf_z(&path), make, true, ret_fd, err) : mr_nomem(err);
}

static const char *
note_of(struct mr_room *room, const char *file, struct arena **own)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error ignored = { 0 };

	if (open_notes(teams_of(room), false, &fd, &ignored) != MR_OK ||
	    file_read(fd, file, NOTE_MAX, &text, &ignored) != MR_OK)
		return "";
	const char *copy = arena_dup(own, buf_str(&text));

	return copy ? copy : "";
}

static struct mr_agent
mere_inbox(struct mr_room *room, const struct roster *r, const char *name, const char *file)
{
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };
	struct arena *own = NULL;

	(void)snprintf(agent.name, sizeof agent.name, "%s", name);
	agent.created_ms = file_time_ms(room, file);
	agent.stray = r->config.there;
	if (!agent.stray)
		agent.role = note_of(room, file, &own);
	agent.own = own;
	return agent;
}

/* ---- Looking ---- */

enum mr_rc
teams_each_agent(struct mr_room *room, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(roster_done) struct roster r = { 0 };
	struct json_value member;
	char name[MR_ADDRESS_MAX + 1];

	TRY(roster_read(room, &r, err));
	for (size_t at = 0; config_next(&r.config, &at, &member, name);) {
		struct mr_agent agent = { 0 };

		TRY(config_agent(member, name, &agent, err));
		bool more = fn(ctx, &agent);

		arena_free(agent.own);
		if (!more)
			return MR_OK;
	}
	for (size_t i = 0; i < r.files.n; i++) {
		if (member_with_file(&r, r.files.v[i], false, name) || !stem_address(r.files.v[i], name))
			continue;
		struct mr_agent agent = mere_inbox(room, &r, name, r.files.v[i]);

		bool more = fn(ctx, &agent);

		arena_free(agent.own);
		if (!more)
			break;
	}
	return MR_OK;
}

enum mr_rc
teams_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	mr_auto(roster_done) struct roster r = { 0 };
	struct json_value member;
	char file[TEAM_NAME_LEN];

	TRY(roster_read(room, &r, err));
	if (is_member(&r, name, &member))
		return config_agent(member, name, ret, err);
	if (!is_known(&r, name))
		return nobody(&r, name, err);
	teams_inbox_name(name, file);
	*ret = mere_inbox(room, &r, name, file);
	return MR_OK;
}

enum mr_rc
teams_check_recipients(struct mr_room *room, const struct mr_names *to, bool make_mailboxes, struct mr_error *err)
{
	mr_auto(roster_done) struct roster r = { 0 };
	char near[MR_ADDRESS_MAX + 1];

	TRY(roster_read(room, &r, err));
	for (size_t i = 0; i < to->n; i++) {
		if (is_known(&r, to->v[i]))
			continue;
		if (!make_mailboxes)
			return nobody(&r, to->v[i], err);
		if (!find_near(&r, to->v[i], near))
			continue;
		return mr_fail(err, MR_REFUSED,
		    "'%s' is too like '%s' to get an inbox of its own\nwrite to '%s', or choose another name", to->v[i],
		    near, near);
	}
	return MR_OK;
}

enum mr_rc
teams_spell(struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	struct mr_error ignored = { 0 };

	(void)room;
	if (address_normal(str_of(given), ret, &ignored) == MR_OK)
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
	if (note && note[0] && sys_stat(fd, file, &st) == 0)
		return mr_fail(err, MR_EXISTS, "'%s' has an inbox already", name);
	if (note && note[0] &&
	    (open_notes(teams_of(room), true, &notes, err) != MR_OK ||
		file_replace(notes, file, str_of(note), 0600, err) != MR_OK))
		return err->code;
	return file_publish(fd, fd, file, STR("[]"), 0600, PUBLISH_FULL, err);
}

enum mr_rc
teams_add_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	mr_auto(roster_done) struct roster r = { 0 };
	char near[MR_ADDRESS_MAX + 1];
	enum mr_rc rc;

	TRY(roster_read(room, &r, err));
	if (find_near(&r, agent->name, near))
		return mr_fail(err, MR_REFUSED, "'%s' is too like '%s'\nchoose another name", agent->name, near);
	if (!r.config.there)
		rc = make_inbox(room, agent->name, agent->role, err);
	else
		rc = config_add(teams_of(room), agent, err);
	if (rc == MR_EXISTS)
		return mr_fail(err, MR_EXISTS, "'%s' is in this team already", agent->name);
	if (rc != MR_OK || !r.config.there)
		return rc;
	rc = make_inbox(room, agent->name, NULL, err);
	return rc == MR_EXISTS ? MR_OK : rc;
}

static bool
count_one(void *ctx, const struct mr_message *msg)
{
	(void)msg;
	++*(size_t *)ctx;
	return true;
}

static enum mr_rc
count(struct mr_room *room, const char *name, bool unread_only, size_t *ret, struct mr_error *err)
{
	struct scan_request want = { .folders = MR_INBOX, .depth = SCAN_NAMES, .unread_only = unread_only };

	return teams_scan(room, name, &want, count_one, ret, err);
}

/* Under the lock: whoever waits for it makes the file anew. */
static enum mr_rc
remove_inbox(struct mr_room *room, const char *name, struct mr_error *err)
{
	struct teams *t = teams_of(room);
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(team_lock_done) struct team_lock l = TEAM_LOCK_INIT;
	char file[TEAM_NAME_LEN];
	enum mr_rc rc = teams_open_inboxes(t, &fd, err);

	teams_inbox_name(name, file);
	if (rc == MR_OK)
		rc = team_lock_take(&l, fd, file, t->patience_ms, err);
	if (rc == MR_NOTFOUND)
		return MR_OK;
	if (rc != MR_OK)
		return rc;
	if ((sys_unlink(fd, file) < 0 && errno != ENOENT) || sys_fsync(fd) < 0)
		return mr_fail_errno(err, "cannot remove the inbox of '%s'", name);
	return MR_OK;
}

enum mr_rc
teams_remove_agent(struct mr_room *room, const char *name, bool force, size_t *ret_dead, struct mr_error *err)
{
	mr_auto(roster_done) struct roster r = { 0 };
	struct json_value member;
	char file[TEAM_NAME_LEN];
	size_t all = 0, unread = 0;

	teams_inbox_name(name, file);
	TRY(roster_read(room, &r, err));
	bool registered = is_member(&r, name, &member), inbox = names_has(&r.files, file);

	if (!registered && !inbox)
		return nobody(&r, name, err);
	TRY(count(room, name, false, &all, err));
	TRY(count(room, name, true, &unread, err));
	if (unread > 0 && !force) {
		return mr_fail(err, MR_REFUSED,
		    "'%s' has %zu unread message%s\na team has no dead letters; --force deletes them", name, unread,
		    unread == 1 ? "" : "s");
	}
	if (registered && config_remove(teams_of(room), name, err) != MR_OK)
		return err->code;
	if ((all == 0 || force) && remove_inbox(room, name, err) != MR_OK)
		return err->code;
	*ret_dead = unread;
	return MR_OK;
}
