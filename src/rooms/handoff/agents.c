/* SPDX-License-Identifier: MIT */
/*
 * agents.c - registering, finding and removing agents. An agent is a mailbox: one with several names is listed under
 * the first, and found under each. A folder that nobody registered a name for is listed by its id.
 */
#include "rooms/handoff/handoff.h"

#include "base/clock.h"
#include "base/sys.h"
#include "message/foreign.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- Looking ---- */

/* life stays 0 and process empty: the pid that the registry has is of some shell that may be long gone. */
static enum mr_rc
describe(
    const char *address, const char *id, const struct registry_entry *entry, struct mr_agent *ret, struct mr_error *err)
{
	struct arena *own = NULL;
	struct mr_agent agent = kit_agent(address);

	agent.session = arena_dup(&own, str_of(id));
	if (entry && entry->harness[0])
		agent.role = arena_dup(&own, str_of(entry->harness));
	if (!agent.session || !agent.role) {
		arena_free(own);
		return mr_nomem(err);
	}
	if (entry)
		(void)time_parse_rfc3339(str_of(entry->created), &agent.created_ms);
	agent.stray = entry == NULL;
	agent.own = own;
	*ret = agent;
	return MR_OK;
}

enum mr_rc
handoff_each_agent(struct mr_room *room, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	struct handoff *h = handoff_of(room);
	mr_auto(registry_done) struct registry r = { 0 };
	mr_auto(mr_names_done) struct mr_names folders = { 0 };
	int root_fd = -1;
	enum mr_rc rc = handoff_root(h, false, &root_fd, err);

	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	TRY(handoff_registry_read(h, &r, err));
	TRY(dir_names(root_fd, &folders, err));
	for (size_t i = 0; i < r.n + folders.n; i++) {
		const struct registry_entry *e = i < r.n ? &r.v[i] : NULL;
		const char *id = e ? e->id : folders.v[i - r.n];
		mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
		char address[MR_ADDRESS_MAX + 1];

		if (e && (registry_with_id(&r, str_of(id)) != e || registry_named(&r, str_of(e->name)) != e ||
			     !handoff_id_ok(str_of(id))))
			continue;
		/* A name that leads elsewhere hides a folder of that id. */
		if (!e &&
		    (registry_with_id(&r, str_of(id)) || registry_named(&r, str_of(id)) || !handoff_has_mailbox(h, id)))
			continue;
		if (foreign_to_address(str_of(e ? e->name : id), address, IGNORED) != MR_OK)
			continue;
		TRY(describe(address, id, e, &agent, err));
		if (!fn(ctx, &agent))
			break;
	}
	return MR_OK;
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
	return ret ? describe(name, id, entry, ret, err) : MR_OK;
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
	if (!handoff_has_mailbox(h, given))
		TRY(handoff_name_check(buf_str(&plain), err));
	return foreign_to_address(buf_str(&plain), ret, err);
}

/* ---- Registering ---- */

enum mr_rc
handoff_register(struct handoff *h, const struct registering *who, struct mr_error *err)
{
	mr_auto(registry_done) struct registry r = { 0 };
	mr_auto(buf_done) struct buf inbox = BUF_INIT;
	mr_auto(sys_close_fd) int lock = -1;
	const char *name = who->name;
	char created[RFC3339_LEN + 1], pid[24];

	TRY(handoff_name_check(str_of(name), err));
	TRY(handoff_id_check(who->id, err));
	TRY(handoff_registry_lock(h, &lock, &r, err));
	if (registry_named(&r, str_of(name)))
		return mr_fail(err, MR_EXISTS, "cannot register '%s': the name is taken", name);
	for (size_t i = 0; who->strict && i < r.n; i++)
		if (ascii_caseeq(r.v[i].name, name))
			return mr_fail(err, MR_REFUSED,
			    "cannot register '%s': it differs from '%s' only in case\nuse '%s', or pick another name",
			    name, r.v[i].name, r.v[i].name);
	if (who->strict && strcmp(name, who->id) != 0 && handoff_has_mailbox(h, name))
		return mr_fail(err, MR_REFUSED,
		    "cannot register '%s': it is the id of another mailbox\nmail for that id would go to you: pick another name",
		    name);
	time_rfc3339(clock_now_ms(), created);
	memcpy(created + 19, "Z", 2); /* whole seconds */
	(void)snprintf(pid, sizeof pid, "%" PRId64, who->pid);
	handoff_inbox_path(h, who->id, &inbox);
	if (!buf_ok(&inbox))
		return mr_nomem(err);
	TRY(registry_add(&r,
	    &(struct registry_entry){ .name = name,
		.id = who->id,
		.harness = who->harness[0] ? who->harness : "unknown",
		.inbox = buf_z(&inbox),
		.created = created,
		.pid = pid,
		.more = "" },
	    err));
	return handoff_registry_store(h, &r, err);
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

/* Counts the mail in a folder, and removes all that is in it unless `keep`. A missing folder has nothing. */
static enum mr_rc
empty_folder(struct handoff *h, const char *id, const char *folder, bool keep, size_t *ret_mail, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	enum mr_rc rc = handoff_dir(h, id, folder, false, &fd, err);

	if (rc == MR_OK)
		rc = dir_names(fd, &names, err);
	for (size_t i = 0; i < names.n; i++) {
		*ret_mail += handoff_name_is_mail(names.v[i], MR_INBOX);
		if (!keep)
			(void)sys_unlink(fd, names.v[i]); /* what stays is told when the folder cannot be removed */
	}
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

static enum mr_rc
refuse_unread(const char *name, size_t unread, struct mr_error *err)
{
	return mr_fail(err, MR_REFUSED,
	    "'%s' has %zu unread %s\nlet somebody read it first; --force deletes it with the mailbox", name, unread,
	    unread == 1 ? "message" : "messages");
}

/* Read mail goes, too: that is what removing a mailbox means here. Without force the inbox goes only while it is
 * empty, for with its id mail can still be sent to it. */
static enum mr_rc
remove_tree(struct handoff *h, const char *id, bool force, size_t *ret_unread, struct mr_error *err)
{
	static const char *const folders[] = { "inbox", "tmp", "archive" };
	mr_auto(sys_close_fd) int box_fd = -1;
	int root_fd = -1;
	enum mr_rc rc = handoff_root(h, false, &root_fd, err);

	if (rc == MR_OK)
		rc = dir_open(root_fd, id, &box_fd, err);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	for (size_t i = 0; i < 3; i++) {
		size_t mail = 0;

		TRY(empty_folder(h, id, folders[i], i == 0 && !force, &mail, err));
		if (i == 0)
			*ret_unread = mail;
		if (i == 0 && mail && !force)
			return refuse_unread(id, mail, err);
		if (sys_rmdir(box_fd, folders[i]) < 0 && errno != ENOENT)
			return mr_fail_errno(err, "cannot remove '%s/%s'", id, folders[i]);
	}
	if (sys_rmdir(root_fd, id) < 0 || sys_fsync(root_fd) < 0)
		return mr_fail_errno(err, "cannot remove '%s'", id);
	return MR_OK;
}

/* The entry goes under the lock, the folders afterwards. */
enum mr_rc
handoff_remove_agent(struct mr_room *room, const char *name, bool force, size_t *ret_dead, struct mr_error *err)
{
	struct handoff *h = handoff_of(room);
	mr_auto(registry_done) struct registry r = { 0 };
	mr_auto(sys_close_fd) int lock = -1;
	const struct registry_entry *entry = NULL;
	char id[HANDOFF_ID_MAX + 1];
	size_t unread = 0;
	int root_fd = -1;

	if (handoff_root(h, false, &root_fd, err) != MR_OK)
		return mr_fail(err, MR_NOTFOUND, "no agent '%s' in this room", name);
	TRY(handoff_registry_lock(h, &lock, &r, err));
	TRY(handoff_mailbox_of(h, &r, name, id, &entry, err));
	if (entry)
		registry_remove(&r, entry);
	bool shared = registry_with_id(&r, str_of(id)) != NULL; /* the mailbox has another name */

	if (!shared)
		TRY(empty_folder(h, id, "inbox", true, &unread, err));
	if (unread > 0 && !force)
		return refuse_unread(name, unread, err);
	TRY(handoff_registry_store(h, &r, err));
	sys_close_fd(&lock);
	lock = -1;
	unread = 0;
	if (!shared && remove_tree(h, id, force, &unread, err) != MR_OK)
		return mr_wrap(err, "the name '%s' is free now, but its mailbox is still there", name);
	*ret_dead = unread;
	return MR_OK;
}
