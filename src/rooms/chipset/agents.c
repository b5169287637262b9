/* SPDX-License-Identifier: MIT */
/*
 * agents.c - who lives here. Nobody registers: whoever has a mailbox in mail/ or an identity in agents/ is listed, and
 * anybody whose name can be one may be written to.
 */
#include "base/error.h"
#include "base/sys.h"
#include "message/foreign.h"
#include "rooms/chipset/chipset.h"
#include <dirent.h>
#include <stdlib.h>

#define IDENTITY_MAX ((size_t)1 << 20)

/* ---- Names of both folders ---- */

struct gathering {
	struct mr_names *names;
	bool identities; /* NAME.json in agents/, else folders in mail/ */
	bool failed;
};

static bool
gather(void *ctx, const struct dir_entry *entry)
{
	struct gathering *g = ctx;
	struct mr_str name = str_of(entry->name);

	if (name.ptr[0] == '.' || (entry->type == DT_DIR) == g->identities)
		return true;
	if (g->identities && !str_ends(name, ".json"))
		return true;
	name.len -= g->identities ? strlen(".json") : 0;
	g->failed = name.len > 0 && !names_add(g->names, name);
	return !g->failed;
}

static enum mr_rc
gather_from(struct chipset *cs, const char *folder, bool identities, struct mr_names *names, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct gathering g = { names, identities, false };
	enum mr_rc rc = chipset_open_below(cs, folder, &fd, err);

	if (rc == MR_OK)
		rc = dir_each_once(fd, gather, &g, err);
	if (rc == MR_NOTFOUND)
		return MR_OK;
	return rc == MR_OK && g.failed ? mr_nomem(err) : rc;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
sort(struct mr_names *names)
{
	if (names->n > 1)
		qsort(names->v, names->n, sizeof *names->v, by_name);
}

enum mr_rc
chipset_each_box(struct chipset *cs, bool (*fn)(void *ctx, const char *id), void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	enum mr_rc rc = gather_from(cs, "mail", false, &names, err);

	sort(&names);
	for (size_t i = 0; i < names.n && rc == MR_OK; i++)
		if (!fn(ctx, names.v[i]))
			break;
	return rc;
}

/* ---- One agent ---- */

/* What its mailbox or its identity file says of it, if there is one. */
static const char *
role_of(struct chipset *cs, const char *id, struct arena **own)
{
	mr_auto(sys_close_fd) int fd = -1, box = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT, role = BUF_INIT, name = BUF_INIT;
	struct mr_error ignored = { 0 };
	struct json_value object;
	const char *problem;

	buf_addf(&name, "%s.json", id);
	if (chipset_box_open(cs, id, MR_INBOX, &box, &ignored) == MR_OK &&
	    file_read(box, CHIPSET_NOTE, IDENTITY_MAX, &role, &ignored) == MR_OK)
		; /* made for an agent of another room */
	else if (chipset_open_below(cs, "agents", &fd, &ignored) != MR_OK ||
		 file_read(fd, buf_z(&name), IDENTITY_MAX, &text, &ignored) != MR_OK ||
		 !json_whole(buf_str(&text), &object, &problem) || !json_find_text(object, "role", &role))
		return "";
	const char *copy = arena_dup(own, buf_str(&role));

	return copy ? copy : "";
}

static enum mr_rc
describe(struct chipset *cs, const char *id, struct mr_agent *ret, struct mr_error *err)
{
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };
	struct arena *own = NULL;

	TRY(foreign_to_address(str_of(id), agent.name, err));
	agent.role = role_of(cs, id, &own);
	agent.own = own;
	*ret = agent;
	return MR_OK;
}

enum mr_rc
chipset_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	char id[CHIPSET_ID_MAX + 1];
	enum mr_rc rc = chipset_id(name, id, err);

	return rc == MR_OK ? describe(chipset_of(room), id, ret, err) : rc;
}

/* Names that cannot be an agent's are for the doctor to tell. */
enum mr_rc
chipset_each_agent(struct mr_room *room, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct chipset *cs = chipset_of(room);
	enum mr_rc rc = gather_from(cs, "mail", false, &names, err);

	if (rc == MR_OK)
		rc = gather_from(cs, "agents", true, &names, err);
	sort(&names);
	for (size_t i = 0; i < names.n && rc == MR_OK; i++) {
		struct mr_agent agent = { 0 };
		bool again = i > 0 && strcmp(names.v[i], names.v[i - 1]) == 0;

		if (again || chipset_id_problem(str_of(names.v[i])))
			continue;
		rc = describe(cs, names.v[i], &agent, err);
		bool more = rc == MR_OK && fn(ctx, &agent);

		arena_free(agent.own);
		if (!more)
			break;
	}
	return rc;
}

enum mr_rc
chipset_add_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	char id[CHIPSET_ID_MAX + 1];
	enum mr_rc rc = chipset_id(agent->name, id, err);

	if (rc == MR_OK)
		rc = chipset_box_open(chipset_of(room), id, MR_INBOX, &fd, err);
	if (rc == MR_OK)
		return mr_fail(err, MR_EXISTS, "'%s' has a mailbox already", agent->name);
	if (rc == MR_NOTFOUND && agent->role && agent->role[0])
		rc = chipset_box_publish(chipset_of(room), id, str_of(agent->role), err);
	else if (rc == MR_NOTFOUND)
		rc = chipset_box_make(chipset_of(room), id, MR_INBOX, &fd, err);
	return rc == MR_EXISTS ? mr_fail(err, MR_EXISTS, "'%s' has a mailbox already", agent->name) : rc;
}
