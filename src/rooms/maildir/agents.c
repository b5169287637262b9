/* SPDX-License-Identifier: MIT */
/*
 * agents.c - names. An agent exists when agents/<address>/agent does: that file is made complete and
 * then linked, so one of many who want a name gets it. Folders alone are nobody's: a pruned
 * agent's (its archive and the numbers of its lives stay), or the "rig" of "rig/witness".
 *
 * New names are made under agents/.lock, because "Bob" and "bob" are two links and only a look at all
 * the names beside can tell that they clash.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "message/address.h"
#include "rooms/maildir/maildir.h"
#include <dirent.h>
#include <errno.h>

#define AGENT_FILE_MAX ((size_t)64 << 10)
#define LOCK_WAIT_MS 10000

/* ---- All of them ---- */

struct walk {
	struct maildir *md;
	bool registered;
	struct mr_names *found;
	char at[MR_ADDRESS_MAX + 2]; /* the folder being read, "" at the top */
	struct mr_names below;       /* its subfolders that can be part of an address */
	bool failed;
};

static bool
collect_below(void *ctx, const struct dir_entry *entry)
{
	struct walk *walk = ctx;
	struct mr_error ignored = { 0 };

	if (entry->type != DT_DIR && entry->type != DT_UNKNOWN)
		return true;
	if (address_check(str_of(entry->name), &ignored) != MR_OK) /* tmp, new, .Sent ... */
		return true;
	walk->failed |= !names_add(&walk->below, str_of(entry->name));
	return !walk->failed;
}

static bool
is_mailbox(int fd, bool registered)
{
	struct stat st;

	if (sys_stat(fd, "agent", &st) == 0 && S_ISREG(st.st_mode))
		return true;
	return !registered && sys_stat(fd, "new", &st) == 0 && S_ISDIR(st.st_mode);
}

static enum mr_rc walk_folder(struct walk *up, const char *address, struct mr_error *err);

static enum mr_rc
walk_below(struct walk *walk, struct mr_error *err)
{
	for (size_t i = 0; i < walk->below.n; i++) {
		char address[MR_ADDRESS_MAX + 2];
		struct mr_error not_one = { 0 };
		int n = snprintf(address, sizeof address, "%s%s%s", walk->at, walk->at[0] ? "/" : "", walk->below.v[i]);

		if (n < 0 || (size_t)n >= sizeof address || address_check(str_of(address), &not_one) != MR_OK)
			continue; /* too deep or too long: nothing that we made */
		TRY(walk_folder(walk, address, err));
	}
	return MR_OK;
}

/* A folder that vanishes while we walk, or that is a link or a file, is nobody's. */
static enum mr_rc
walk_folder(struct walk *up, const char *address, struct mr_error *err)
{
	struct walk walk = { .md = up->md, .registered = up->registered, .found = up->found };
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = dir_open(walk.md->agents_fd, address[0] ? address : ".", &fd, err);

	if (rc == MR_NOTFOUND || rc == MR_REFUSED || (address[0] && shared_skip(walk.md, err, "agents/%s", address)))
		return MR_OK;
	if (rc != MR_OK)
		return mr_wrap(err, "cannot read 'agents/%s'", address);
	if (address[0] && is_mailbox(fd, walk.registered) && !names_add(walk.found, str_of(address)))
		return mr_nomem(err);
	(void)snprintf(walk.at, sizeof walk.at, "%s", address);
	rc = dir_each(fd, collect_below, &walk, err);
	if (rc == MR_OK && walk.failed)
		rc = mr_nomem(err);
	if (rc == MR_OK)
		rc = walk_below(&walk, err);
	mr_names_done(&walk.below);
	return rc;
}

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

enum mr_rc
agents_collect(struct maildir *md, bool registered, struct mr_names *ret, struct mr_error *err)
{
	struct mr_names found = { 0 };
	struct walk top = { .md = md, .registered = registered, .found = &found };
	enum mr_rc rc = walk_folder(&top, "", err);

	if (rc != MR_OK) {
		mr_names_done(&found);
		return rc;
	}
	if (found.n > 1)
		qsort(found.v, found.n, sizeof *found.v, by_bytes);
	*ret = found;
	return MR_OK;
}

/* ---- One of them ---- */

static const char *
line_of(const struct record *lines, const char *name, struct arena **own)
{
	const char *value = record_get(lines, name);
	char *copy = value ? arena_dup(own, str_of(value)) : NULL;

	return copy ? copy : "";
}

static enum mr_rc
read_agent(struct mailbox *box, struct mr_agent *ret, struct arena **own, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };
	char first[500];
	mr_auto(buf_done) struct buf text = BUF_IN(first);

	TRY(file_read(box->fd, "agent", AGENT_FILE_MAX, &text, err));
	TRY(record_parse(buf_str(&text), &lines, err));
	const char *created = record_get(&lines, "Created");

	(void)snprintf(ret->name, sizeof ret->name, "%s", box->agent);
	if (created)
		(void)time_parse_rfc3339(str_of(created), &ret->created_ms);
	ret->role = line_of(&lines, "Role", own);
	ret->wake = line_of(&lines, "Wake", own);
	ret->others = shared_is_others(box->md, box->agent);
	return life_read(box, ret, own, err);
}

enum mr_rc
maildir_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	struct mr_agent agent = { .worktree = "", .session = "", .host = "" };
	struct arena *own = NULL;

	TRY(shared_check_agent(maildir_of(room), name, err));
	TRY(mailbox_open_any(&box, maildir_of(room), name, err));
	if (read_agent(&box, &agent, &own, err) != MR_OK) {
		arena_free(own);
		if (err->code == MR_NOTFOUND) /* a folder without `agent` is nobody's */
			return mr_fail(err, MR_NOTFOUND, "no mailbox '%s'", name);
		return mr_wrap(err, "cannot read agent '%s'", name);
	}
	agent.own = own;
	*ret = agent;
	return MR_OK;
}

/* One whose files are broken must not hide the others: it is there, with its mail, and nobody knows more. The time
 * is that of the folder, so that it does not look as if it had been gone since 1970. */
static struct mr_agent
unreadable_agent(struct maildir *md, const char *name)
{
	struct mr_agent agent = { .worktree = "",
		.session = "",
		.host = "",
		.wake = "",
		.role = "its registration cannot be read: mailroom doctor" };
	struct stat st;

	(void)snprintf(agent.name, sizeof agent.name, "%s", name);
	agent.created_ms = sys_stat(md->agents_fd, name, &st) == 0 ? (int64_t)st.st_mtim.tv_sec * 1000 : clock_now_ms();
	return agent;
}

enum mr_rc
maildir_each_agent(struct mr_room *room, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	struct mr_names names = { 0 };
	enum mr_rc rc = agents_collect(maildir_of(room), true, &names, err);
	bool more = true;

	for (size_t i = 0; rc == MR_OK && more && i < names.n; i++) {
		struct mr_agent agent = { 0 };

		if (shared_skip_agent(maildir_of(room), names.v[i]))
			continue;
		rc = maildir_find_agent(room, names.v[i], &agent, err);
		if (rc == MR_CORRUPT) {
			agent = unreadable_agent(maildir_of(room), names.v[i]);
			rc = MR_OK;
			*err = (struct mr_error){ 0 };
		}
		if (rc == MR_OK) {
			more = fn(ctx, &agent);
			arena_free(agent.own);
		} else if (rc == MR_NOTFOUND) {
			rc = MR_OK; /* pruned since we collected */
		}
	}
	mr_names_done(&names);
	return rc;
}

/* ---- A new one ---- */

struct sibling {
	struct mr_str wanted;
	char clash[NAME_LEN];
};

static bool
find_clash(void *ctx, const struct dir_entry *entry)
{
	struct sibling *s = ctx;
	struct mr_str name = str_of(entry->name);

	if (!str_caseeq(name, s->wanted) || str_eq(name, s->wanted))
		return true;
	(void)snprintf(s->clash, sizeof s->clash, "%s", entry->name);
	return false;
}

/* On every level: "Rig/x" clashes with "rig" as well as "bob" with "Bob". Stops at the first folder
 * that does not exist yet. */
static enum mr_rc
check_case(struct maildir *md, const char *address, struct mr_error *err)
{
	for (size_t at = 0; address[at];) {
		mr_auto(sys_close_fd) int fd = -1;
		char parent[MR_ADDRESS_MAX + 2];
		size_t len = strcspn(address + at, "/");
		struct sibling s = { .wanted = { address + at, len } };

		(void)snprintf(parent, sizeof parent, "%.*s", (int)at, address);
		enum mr_rc rc = dir_open(md->agents_fd, at ? parent : ".", &fd, err);

		if (rc == MR_NOTFOUND)
			return MR_OK;
		if (rc != MR_OK || dir_each(fd, find_clash, &s, err) != MR_OK)
			return err->code;
		if (s.clash[0])
			return mr_fail(err, MR_REFUSED,
			    "name '%s' differs from '%s%s' only in case\nuse '%s%s', or another name", address, parent,
			    s.clash, parent, s.clash);
		at += len;
		at += address[at] == '/';
	}
	return MR_OK;
}

static enum mr_rc
write_agent(const struct maildir *md, const struct mr_agent *agent, struct buf *out, struct mr_error *err)
{
	char created[RFC3339_LEN + 1];

	time_rfc3339(agent->created_ms ? agent->created_ms : clock_now_ms(), created);
	TRY(header_add(out, "Name", str_of(agent->name), err));
	TRY(header_add(out, "Created", str_of(created), err));
	if (agent->role && agent->role[0] && header_add(out, "Role", str_of(agent->role), err) != MR_OK)
		return err->code;
	shared_add_user(md, out);
	return buf_ok(out) ? MR_OK : mr_nomem(err);
}

/* One call. Delivery opens the folder again and follows no link there. */
enum mr_rc
maildir_has_agent(struct mr_room *room, const char *name, struct mr_error *err)
{
	char path[MR_ADDRESS_MAX + 8];
	struct stat st;

	TRY(shared_check_agent(maildir_of(room), name, err));
	text_join(path, sizeof path, name, "/agent", NULL);
	bool looked = sys_stat(maildir_of(room)->agents_fd, path, &st) == 0;

	if (looked && S_ISREG(st.st_mode))
		return MR_OK;
	if (!looked && errno != ENOENT && errno != ENOTDIR) /* who cannot look must not say that nobody is there */
		return mr_fail_errno(err, "cannot look for agent '%s'", name);
	return mr_fail(err, MR_NOTFOUND, "no agent '%s' is registered", name);
}

/* Whoever removes an agent makes the lock file of agents/ longer (bury.c). Other things than its length are looked at
 * because somebody may have removed and made it anew. */
uint64_t
maildir_removals(struct mr_room *room)
{
	struct stat st;

	if (sys_stat(maildir_of(room)->agents_fd, ".lock", &st) < 0)
		return errno == ENOENT ? 1 : 0;
	return ((uint64_t)st.st_size << 1 | 1) ^ (uint64_t)st.st_ino << 40 ^ (uint64_t)st.st_mtim.tv_nsec << 16;
}

enum mr_rc
maildir_add_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int lock_fd = -1, fd = -1;
	struct maildir *md = maildir_of(room);
	int tmp_fd;

	TRY(address_check(str_of(agent->name), err));
	TRY(write_agent(md, agent, &text, err));
	if (lock_take(md->agents_fd, ".lock", md->file_mode, LOCK_WAIT_MS, &lock_fd, err) != MR_OK)
		return mr_wrap(err, "cannot register '%s'", agent->name);
	TRY(check_case(md, agent->name, err));
	if (mailbox_make(md, agent->name, err) != MR_OK || mailbox_open_any(&box, md, agent->name, err) != MR_OK ||
	    mailbox_folder(&box, BOX_TMP, &tmp_fd, err) != MR_OK || dir_open(box.fd, ".", &fd, err) != MR_OK)
		return mr_wrap(err, "cannot make mailbox '%s'", agent->name);
	enum mr_rc rc = file_publish(
	    fd, tmp_fd, "agent", buf_str(&text), md->file_mode, md->sync ? PUBLISH_FULL : PUBLISH_NOSYNC, err);

	if (rc == MR_EXISTS)
		return mr_fail(err, MR_EXISTS, "agent '%s' is registered already", agent->name);
	if (rc == MR_OK)
		reserve_keep(md);
	return rc == MR_OK ? rc : mr_wrap(err, "cannot register '%s'", agent->name);
}

/* ---- Another role ---- */

/* All lines as they were, but the role. */
static enum mr_rc
write_role(struct mr_str before, const char *role, struct buf *out, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };
	enum mr_rc rc = record_parse(before, &lines, err);

	for (size_t i = 0; rc == MR_OK && i < lines.n; i++)
		if (!ascii_caseeq(lines.lines[i].name, "Role"))
			rc = header_add(out, lines.lines[i].name, str_of(lines.lines[i].value), err);
	if (rc == MR_OK && *role)
		rc = header_add(out, "Role", str_of(role), err);
	return rc == MR_OK && !buf_ok(out) ? mr_nomem(err) : rc;
}

enum mr_rc
maildir_set_role(struct mr_room *room, const char *name, const char *role, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(buf_done) struct buf before = BUF_INIT, text = BUF_INIT;
	mr_auto(sys_close_fd) int lock_fd = -1, fd = -1;
	struct maildir *md = maildir_of(room);

	TRY(shared_check_agent(md, name, err));
	if (shared_is_others(md, name)) /* whose file it is proves whose agent it is */
		return mr_fail(err, MR_REFUSED, "cannot change the role of '%s': it is another user's", name);
	/* Whoever removes an agent holds the same lock: it does not come back by this. */
	if (lock_take(md->agents_fd, ".lock", md->file_mode, LOCK_WAIT_MS, &lock_fd, err) != MR_OK ||
	    mailbox_open_any(&box, md, name, err) != MR_OK || dir_open(box.fd, ".", &fd, err) != MR_OK ||
	    file_read(fd, "agent", AGENT_FILE_MAX, &before, err) != MR_OK ||
	    write_role(buf_str(&before), role, &text, err) != MR_OK ||
	    file_replace(fd, "agent", buf_str(&text), md->file_mode, err) != MR_OK)
		return mr_wrap(err, "cannot change the role of '%s'", name);
	return MR_OK;
}
