/* SPDX-License-Identifier: MIT */
/*
 * agents.c - registering, finding and removing agents. An agent is a mailbox: who has several names is listed under
 * the first, and found under each. A folder that nobody registered a name for is listed by its id.
 */
#include "rooms/handoff/handoff.h"

#include "base/clock.h"
#include "base/sys.h"
#include "message/foreign.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- Describing ---- */

/* life stays 0 and process empty: the pid that the registry has is of some shell that may be long gone. */
static enum mr_rc
describe(
    const char *address, const char *id, const struct registry_entry *entry, struct mr_agent *ret, struct mr_error *err)
{
	struct arena *own = NULL;
	struct mr_agent agent = { .worktree = "", .host = "", .wake = "", .role = "" };

	agent.session = arena_dup(&own, str_of(id));
	if (entry && entry->harness[0])
		agent.role = arena_dup(&own, str_of(entry->harness));
	if (!agent.session || !agent.role) {
		arena_free(own);
		return mr_nomem(err);
	}
	if (entry)
		(void)time_parse_rfc3339(str_of(entry->created), &agent.created_ms);
	(void)snprintf(agent.name, sizeof agent.name, "%s", address);
	agent.stray = entry == NULL;
	agent.own = own;
	*ret = agent;
	return MR_OK;
}

struct listing {
	struct handoff *h;
	const struct registry *r;
	mr_agent_fn *fn;
	void *ctx;
	struct mr_error *err;
	enum mr_rc rc;
	bool more;
};

static bool
show(struct listing *l, const char *address, const char *id, const struct registry_entry *entry)
{
	struct mr_agent agent = { 0 };

	l->rc = describe(address, id, entry, &agent, l->err);
	l->more = l->rc == MR_OK && l->fn(l->ctx, &agent);
	arena_free(agent.own);
	return l->more;
}

static bool
show_folder(void *ctx, const struct dir_entry *e)
{
	struct listing *l = ctx;
	struct mr_str id = str_of(e->name);
	char address[MR_ADDRESS_MAX + 1];
	struct mr_error ignored = { 0 };

	/* A name that leads elsewhere hides a folder of that id. */
	if (registry_with_id(l->r, id) || registry_named(l->r, id) || !handoff_has_mailbox(l->h, e->name) ||
	    foreign_to_address(id, address, &ignored) != MR_OK)
		return true;
	return show(l, address, e->name, NULL);
}

enum mr_rc
handoff_each_agent(struct mr_room *room, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	struct handoff *h = handoff_of(room);
	mr_auto(registry_done) struct registry r = { 0 };
	struct listing l = { h, &r, fn, ctx, err, MR_OK, true };
	struct mr_error ignored = { 0 };
	char address[MR_ADDRESS_MAX + 1];
	int root_fd = -1;
	enum mr_rc rc = handoff_root(h, false, &root_fd, err);

	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	TRY(handoff_registry_read(h, &r, err));
	for (size_t i = 0; i < r.n && l.more; i++) {
		const struct registry_entry *e = &r.v[i];

		if (registry_with_id(&r, str_of(e->id)) == e && registry_named(&r, str_of(e->name)) == e &&
		    handoff_id_ok(str_of(e->id)) && foreign_to_address(str_of(e->name), address, &ignored) == MR_OK)
			(void)show(&l, address, e->id, e);
	}
	if (l.more && dir_each(root_fd, show_folder, &l, err) != MR_OK)
		return err->code;
	return l.rc;
}

enum mr_rc
handoff_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	struct handoff *h = handoff_of(room);
	mr_auto(registry_done) struct registry r = { 0 };
	const struct registry_entry *entry = NULL;
	char id[HANDOFF_ID_MAX + 1];

	TRY(handoff_registry_read(h, &r, err));
	TRY(handoff_mailbox_of(h, &r, name, id, &entry, err));
	return describe(name, id, entry, ret, err);
}

enum mr_rc
handoff_spell(struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	struct handoff *h = handoff_of(room);
	mr_auto(registry_done) struct registry r = { 0 };
	mr_auto(buf_done) struct buf plain = BUF_INIT;

	TRY(handoff_registry_read(h, &r, err));
	foreign_from_address(given, &plain); /* an address is taken, too */
	const struct registry_entry *entry = registry_named(&r, str_of(given));

	if (!entry)
		entry = registry_named(&r, buf_str(&plain));
	if (!entry)
		entry = registry_with_id(&r, str_of(given));
	if (entry)
		return foreign_to_address(str_of(entry->name), ret, err);
	if (!handoff_has_mailbox(h, given) && handoff_name_check(buf_str(&plain), err) != MR_OK)
		return err->code;
	return foreign_to_address(buf_str(&plain), ret, err);
}

/* ---- Registering ---- */

struct taking {
	struct handoff *h;
	const struct registering *who;
};

static enum mr_rc
check_free(const struct taking *t, const struct registry *r, struct mr_error *err)
{
	const char *name = t->who->name;

	if (registry_named(r, str_of(name)))
		return mr_fail(err, MR_EXISTS, "cannot register '%s': the name is taken", name);
	for (size_t i = 0; t->who->strict && i < r->n; i++)
		if (ascii_caseeq(r->v[i].name, name))
			return mr_fail(err, MR_REFUSED,
			    "cannot register '%s': it differs from '%s' only in case\nuse '%s', or pick another name",
			    name, r->v[i].name, r->v[i].name);
	if (t->who->strict && strcmp(name, t->who->id) != 0 && handoff_has_mailbox(t->h, name))
		return mr_fail(err, MR_REFUSED,
		    "cannot register '%s': it is the id of another mailbox\nmail for that id would go to you: pick another name",
		    name);
	return MR_OK;
}

static enum mr_rc
take_name(void *ctx, struct registry *r, struct mr_error *err)
{
	const struct taking *t = ctx;
	mr_auto(buf_done) struct buf inbox = BUF_INIT;
	char created[RFC3339_LEN + 1], pid[24];

	TRY(check_free(t, r, err));
	time_rfc3339(clock_now_ms(), created);
	memcpy(created + 19, "Z", 2); /* whole seconds */
	(void)snprintf(pid, sizeof pid, "%" PRId64, t->who->pid);
	handoff_inbox_path(t->h, t->who->id, &inbox);
	if (!buf_ok(&inbox))
		return mr_nomem(err);
	return registry_add(r,
	    &(struct registry_entry){ .name = t->who->name,
		.id = t->who->id,
		.harness = t->who->harness[0] ? t->who->harness : "unknown",
		.inbox = buf_z(&inbox),
		.created = created,
		.pid = pid,
		.more = "" },
	    err);
}

enum mr_rc
handoff_register(struct handoff *h, const struct registering *who, struct mr_error *err)
{
	struct taking t = { h, who };

	TRY(handoff_name_check(str_of(who->name), err));
	TRY(handoff_id_check(who->id, err));
	return handoff_registry_change(h, take_name, &t, err);
}

enum mr_rc
handoff_add_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	struct handoff *h = handoff_of(room);
	mr_auto(buf_done) struct buf name = BUF_INIT;
	char fresh[HANDOFF_UUID_LEN + 1];

	foreign_from_address(agent->name, &name);
	if (!buf_ok(&name))
		return mr_nomem(err);
	handoff_uuid(fresh);
	const char *id = agent->session && agent->session[0] ? agent->session : fresh;
	struct registering who = { buf_z(&name), id, agent->role ? agent->role : "", agent->process.pid,
		.strict = true };
	/* The name first: of many who want it one wins, and only that one makes folders. Killed in between, the first
	 * delivery makes them. */
	TRY(handoff_register(h, &who, err));
	return handoff_make_mailbox(h, id, err);
}

/* ---- Removing ---- */

struct emptying {
	int fd;
	size_t mail, failed;
	bool count_only;
};

static bool
remove_file(void *ctx, const struct dir_entry *e)
{
	struct emptying *x = ctx;

	x->mail += handoff_name_is_mail(e->name, MR_INBOX);
	if (!x->count_only && sys_unlink(x->fd, e->name) < 0 && errno != ENOENT)
		x->failed++;
	return true;
}

/* A folder that is not there has nothing. */
static enum mr_rc
empty_folder(struct handoff *h, const char *id, const char *folder, struct emptying *x, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	char path[HANDOFF_ID_MAX + 16];
	int root_fd = -1;

	(void)snprintf(path, sizeof path, "%s/%s", id, folder);
	enum mr_rc rc = handoff_root(h, false, &root_fd, err);

	if (rc == MR_OK)
		rc = dir_open(root_fd, path, &fd, err);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	x->fd = fd;
	return dir_each(fd, remove_file, x, err);
}

static enum mr_rc
refuse_unread(const char *name, size_t unread, struct mr_error *err)
{
	return mr_fail(err, MR_REFUSED,
	    "'%s' has %zu unread %s\nlet somebody read it first; --force deletes it with the mailbox", name, unread,
	    unread == 1 ? "message" : "messages");
}

struct removing {
	struct handoff *h;
	const char *address;
	bool force;
	char id[HANDOFF_ID_MAX + 1];
	size_t unread;
	bool shared; /* the mailbox has another name */
};

static enum mr_rc
drop_entry(void *ctx, struct registry *r, struct mr_error *err)
{
	struct removing *m = ctx;
	struct emptying look = { .count_only = true };
	const struct registry_entry *entry = NULL;

	TRY(handoff_mailbox_of(m->h, r, m->address, m->id, &entry, err));
	if (entry)
		registry_remove(r, entry);
	m->shared = registry_with_id(r, str_of(m->id)) != NULL;
	if (m->shared)
		return MR_OK;
	TRY(empty_folder(m->h, m->id, "inbox", &look, err));
	m->unread = look.mail;
	return m->unread && !m->force ? refuse_unread(m->address, m->unread, err) : MR_OK;
}

/* Read mail goes, too: that is what removing a mailbox means here. Without force the inbox goes only while it is
 * empty, for whoever knows the id can still send to it. */
static enum mr_rc
remove_tree(struct removing *m, struct mr_error *err)
{
	static const char *const folders[] = { "inbox", "tmp", "archive" };
	int root_fd = -1;
	mr_auto(sys_close_fd) int box_fd = -1;
	enum mr_rc rc = handoff_root(m->h, false, &root_fd, err);

	if (rc == MR_OK)
		rc = dir_open(root_fd, m->id, &box_fd, err);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	for (size_t i = 0; i < 3; i++) {
		struct emptying x = { .count_only = i == 0 && !m->force };

		TRY(empty_folder(m->h, m->id, folders[i], &x, err));
		if (i == 0)
			m->unread = x.mail;
		if (i == 0 && x.mail && !m->force)
			return refuse_unread(m->id, x.mail, err);
		if (sys_rmdir(box_fd, folders[i]) < 0 && errno != ENOENT)
			return mr_fail_errno(err, "cannot remove '%s/%s'", m->id, folders[i]);
	}
	if (sys_rmdir(root_fd, m->id) < 0 || sys_fsync(root_fd) < 0)
		return mr_fail_errno(err, "cannot remove '%s'", m->id);
	return MR_OK;
}

enum mr_rc
handoff_remove_agent(struct mr_room *room, const char *name, bool force, size_t *ret_dead, struct mr_error *err)
{
	struct removing m = { .h = handoff_of(room), .address = name, .force = force };
	int root_fd = -1;

	if (handoff_root(m.h, false, &root_fd, err) != MR_OK)
		return mr_fail(err, MR_NOTFOUND, "no agent '%s' in this room", name);
	TRY(handoff_registry_change(m.h, drop_entry, &m, err));
	if (!m.shared && remove_tree(&m, err) != MR_OK)
		return mr_wrap(err, "the name '%s' is free now, but its mailbox is still there", name);
	*ret_dead = m.shared ? 0 : m.unread;
	return MR_OK;
}
