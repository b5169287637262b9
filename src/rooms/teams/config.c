/* SPDX-License-Identifier: MIT */
/* config.c - config.json: who belongs to the team. Changed as the newest generation does it: under config.json.lock,
 * member by member, all other bytes kept. */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "message/address.h"
#include "rooms/teams/teams.h"
#include <errno.h>
#include <inttypes.h>

#define FILE_NAME "config.json"
#define CONFIG_MAX ((size_t)4 << 20)

void
config_done(struct config *c)
{
	buf_done(&c->text);
	*c = (struct config){ 0 };
}

/* MR_CORRUPT: it is no JSON object. Others write it in place, so it is read again before that counts. */
static enum mr_rc
read_in(int fd, struct config *c, struct mr_error *err)
{
	for (unsigned pause_ms = 5;; pause_ms *= 2) {
		struct json_value all = { 0 }, members = { 0 };
		const char *problem = "is not an object";
		struct stat st;

		buf_clear(&c->text);
		TRY(file_read_stat(fd, FILE_NAME, CONFIG_MAX, &c->text, &st, err));
		c->there = true;
		c->mode = st.st_mode & 0777;
		if (json_whole(buf_str(&c->text), &all, &problem) && all.kind == JSON_OBJECT) {
			bool listed = json_find(all, "members", &members) && members.kind == JSON_ARRAY;

			c->members = listed ? members : (struct json_value){ 0 };
			return MR_OK;
		}
		if (pause_ms > 160)
			return mr_fail(err, MR_CORRUPT,
			    "the team's config.json %s\nit is left as it is; its team lead writes it", problem);
		lock_pause_us(pause_ms * 1000);
	}
}

enum mr_rc
config_read(const struct teams *t, struct config *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = teams_open_dir(t, t->config_dir, &fd, err);

	if (rc == MR_OK)
		rc = read_in(fd, ret, err);
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

bool
config_next(const struct config *c, size_t *at, struct json_value *ret, char ret_address[MR_ADDRESS_MAX + 1])
{
	struct json_value member;

	while (c->members.raw.ptr && json_item(c->members, at, &member)) {
		mr_auto(buf_done) struct buf name = BUF_INIT;

		if (!json_find_text(member, "name", &name) ||
		    foreign_to_address(buf_str(&name), ret_address, IGNORED) != MR_OK)
			continue;
		*ret = member;
		return true;
	}
	return false;
}

enum mr_rc
config_agent(struct json_value member, const char *address, struct mr_agent *ret, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = kit_agent(address);
	struct arena *own = NULL;
	struct json_value joined = { 0 };
	uint64_t ms = 0;
	bool failed = false;

	agent.worktree = kit_json_text(member, "cwd", &own, &failed);
	agent.role = kit_json_text(member, "agentType", &own, &failed);
	if (json_find(member, "joinedAt", &joined) && joined.kind == JSON_NUMBER && str_to_u64(joined.raw, &ms) &&
	    ms < INT64_MAX)
		agent.created_ms = (int64_t)ms;
	agent.own = own;
	TRY(mr_got(!failed, err));
	*ret = agent;
	agent = (struct mr_agent){ 0 };
	return MR_OK;
}

/* ---- Changing ---- */

/* Behind the last member, or between empty brackets. */
static void
insert(const struct config *c, const struct teams *t, const struct mr_agent *agent, struct buf *out)
{
	mr_auto(buf_done) struct buf name = BUF_INIT, id = BUF_INIT, with = BUF_INIT;
	const struct {
		const char *key, *text;
	} optional[] = { { "agentType", agent->role }, { "cwd", agent->worktree } };
	struct json_value member = { 0 };
	struct mr_str list = c->members.raw;

	for (size_t at = 0; json_item(c->members, &at, &member);)
		;
	const char *from = member.raw.ptr ? member.raw.ptr + member.raw.len : list.ptr + 1;

	foreign_from_address(agent->name, &name);
	buf_addf(&id, "%s@%s", buf_z(&name), t->team);
	buf_addf(&with, "%s\n    {\n      \"agentId\": ", member.raw.ptr ? "," : "");
	json_stringify(&with, buf_str(&id));
	buf_adds(&with, ",\n      \"name\": ");
	json_stringify(&with, buf_str(&name));
	buf_addf(&with, ",\n      \"joinedAt\": %" PRId64 ",\n      \"tmuxPaneId\": \"\",\n      \"subscriptions\": []",
	    clock_now_ms());
	for (size_t i = 0; i < 2; i++)
		if (optional[i].text && optional[i].text[0]) {
			buf_addf(&with, ",\n      \"%s\": ", optional[i].key);
			json_stringify(&with, str_of(optional[i].text));
		}
	buf_addf(&with, "\n    }%s", member.raw.ptr ? "" : "\n  ");
	out->failed |= name.failed || id.failed || with.failed;
	kit_splice(buf_str(&c->text), from, member.raw.ptr ? from : list.ptr + list.len - 1, buf_str(&with), out);
}

/* MR_EXISTS: is a member. MR_REFUSED: could be taken for one, or has its inbox. */
static enum mr_rc
check_free(const struct config *c, const char *agent, struct mr_error *err)
{
	struct json_value member;
	char other[MR_ADDRESS_MAX + 1], file[TEAM_NAME_LEN], other_file[TEAM_NAME_LEN];

	teams_inbox_name(agent, file);
	for (size_t at = 0; config_next(c, &at, &member, other);) {
		if (strcmp(other, agent) == 0)
			return mr_fail(err, MR_EXISTS, "'%s' is already a member of the team", agent);
		teams_inbox_name(other, other_file);
		if (!ascii_caseeq(other_file, file))
			continue;
		return mr_fail(err, MR_REFUSED, "'%s' is too similar to the member '%s': %s\nchoose another name",
		    agent, other, ascii_caseeq(other, agent) ? "only the case differs" : "both would have one inbox");
	}
	return MR_OK;
}

/* The member's bytes and one comma: the one before it, or of the first the one behind it. */
static enum mr_rc
cut_out(const struct config *c, const char *agent, struct buf *out, struct mr_error *err)
{
	struct json_value member = { 0 }, last = { 0 };
	char name[MR_ADDRESS_MAX + 1];

	for (size_t at = 0; json_item(c->members, &at, &member); last = member) {
		mr_auto(buf_done) struct buf text = BUF_INIT;

		if (!json_find_text(member, "name", &text) ||
		    foreign_to_address(buf_str(&text), name, IGNORED) != MR_OK || strcmp(name, agent) != 0)
			continue;
		const char *from = last.raw.ptr ? last.raw.ptr + last.raw.len : member.raw.ptr;
		const char *to = member.raw.ptr + member.raw.len;
		struct json_value next = { 0 };

		if (!last.raw.ptr && json_item(c->members, &at, &next))
			to = next.raw.ptr;
		kit_splice(buf_str(&c->text), from, to, STR(""), out);
		return MR_OK;
	}
	return mr_fail(err, MR_NOTFOUND, "'%s' is not a member of the team", agent);
}

enum mr_rc
members_change(const struct teams *t, const struct mr_agent *add, const char *remove, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(config_done) struct config c = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(team_lock_done) struct team_lock l = TEAM_LOCK_INIT;

	TRY(teams_open_dir(t, t->config_dir, &fd, err));
	TRY(team_lock_take(&l, fd, FILE_NAME, t->patience_ms, err));
	TRY(read_in(fd, &c, err));
	if (!c.members.raw.ptr)
		return mr_fail(err, MR_CORRUPT, "the team's config.json has no list of members");
	if (add) {
		TRY(check_free(&c, add->name, err));
		insert(&c, t, add, &text);
	} else {
		TRY(cut_out(&c, remove, &text, err));
	}
	TRY(mr_got(buf_ok(&text), err));
	return store_replace(&l, &(struct fresh){ .file = FILE_NAME, .mode = c.mode, .bytes = buf_str(&text) }, err);
}
