/* SPDX-License-Identifier: MIT */
/* words.c - names, ids and priorities as gt writes them, and back. */
#include "cli/gt/gt.h"

static const struct {
	const char *id, *kind;
} ids[] = {
	{ "hq-group-", "group" },
	{ "hq-q-", "queue" },
	{ "gt-q-", "queue" },
	{ "hq-channel-", "channel" },
};

const char *
gt_spelled(struct cli *cli, const char *agent)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (strcmp(agent, "operator") == 0)
		return "overseer";
	if (strcmp(agent, "mayor") != 0 && strcmp(agent, "deacon") != 0)
		return agent;
	buf_addf(&text, "%s/", agent);
	const char *copy = arena_dup(&cli->own, buf_str(&text));

	return copy ? copy : agent;
}

struct rig_search {
	const char *name, *rig;
	size_t rig_len;
	char found[MR_ADDRESS_MAX + 1];
	bool in_rig;
};

static bool
match_queue(void *ctx, const struct mr_queue *queue)
{
	struct rig_search *s = ctx;
	const char *slash = strrchr(queue->name, '/');

	if (!slash || strcmp(slash + 1, s->name) != 0 || s->in_rig)
		return true;
	s->in_rig = (size_t)(slash - queue->name) == s->rig_len && strncmp(queue->name, s->rig, s->rig_len) == 0;
	if (s->in_rig || !s->found[0])
		(void)snprintf(s->found, sizeof(s->found), "%s", queue->name);
	return true;
}

/* The queue of a rig by its last part: the caller's rig first. Where there is none, the name says what is missing. */
static const char *
rig_queue(struct cli *cli, const char *name)
{
	struct mr_str rig = gt_rig_of(cli->self_known ? cli->self.agent : "");
	struct rig_search search = { .name = name, .rig = rig.ptr, .rig_len = rig.len };
	struct mr_error ignored = { 0 };

	if (mr_queue_each(cli->room, match_queue, &search, &ignored) != MR_OK || !search.found[0])
		return name;
	const char *copy = arena_dup(&cli->own, str_of(search.found));

	return copy ? copy : name;
}

const char *
gt_name(struct cli *cli, const char *kind, const char *given)
{
	size_t len = strlen(kind);

	if (strncmp(given, kind, len) == 0 && given[len] == ':')
		return given + len + 1;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		if (strcmp(ids[i].kind, kind) != 0 || !str_starts(str_of(given), ids[i].id))
			continue;
		const char *name = given + strlen(ids[i].id);

		return ids[i].id[0] == 'g' ? rig_queue(cli, name) : name;
	}
	return given;
}

const char *
gt_recipient(struct cli *cli, const char *given)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		if (!str_starts(str_of(given), ids[i].id))
			continue;
		buf_addf(&text, "%s:%s", ids[i].kind, gt_name(cli, ids[i].kind, given));
		const char *copy = arena_dup(&cli->own, buf_str(&text));

		return copy ? copy : given;
	}
	return strcmp(given, "@overseer") == 0 ? "operator" : given;
}

void
gt_add_id(struct buf *out, const char *kind, const char *name)
{
	const char *slash = strrchr(name, '/');

	if (strcmp(kind, "queue") != 0)
		buf_addf(out, "hq-%s-%s", kind, name);
	else
		buf_addf(out, "%s-q-%s", slash ? "gt" : "hq", slash ? slash + 1 : name);
}

bool
gt_priority(struct cli *cli, const char *text, enum mr_priority *ret)
{
	static const enum mr_priority levels[] = { MR_URGENT, MR_HIGH, MR_NORMAL, MR_LOW, MR_LOW };
	struct mr_error *err = &cli->err;
	uint64_t n = 0;

	if (text && str_to_u64(str_of(text), &n))
		*ret = n < sizeof(levels) / sizeof(levels[0]) ? levels[n] : MR_NORMAL;
	else if (text && mr_priority_parse(text, ret, err) != MR_OK)
		return cli_usage(cli, "option '--priority': %s%s%s", err->message, err->hint[0] ? "; " : "", err->hint),
		       false;
	return true;
}

int
gt_priority_number(enum mr_priority priority)
{
	return 2 - (int)priority;
}
