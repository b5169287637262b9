/* SPDX-License-Identifier: MIT */
/* words.c - names, ids, priorities and messages as gt writes them, and back. */
#include <strings.h>
#include <time.h>

#include "cli/gt/gt.h"
#include "cli/printout.h"
#include "message/jsonc.h"

/* ---- Names ---- */

const char *
gt_verb(const struct cli *cli)
{
	return strrchr(cli->cmd->name, ' ') + 1;
}

const char *
gt_spelled(const char *agent)
{
	static const char *const words[][2] = { { "operator", "overseer" }, { "mayor", "mayor/" },
		{ "deacon", "deacon/" } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(agent, words[i][0]) == 0)
			return words[i][1];
	return agent;
}

/* The queue of a rig by its last part, in the caller's rig first. Where there is none, the name says what is missing.
 */
static const char *
queue_of_rig(struct cli *cli, const char *name)
{
	mr_auto(mr_list_done) struct mr_queues all = { 0 };
	struct mr_str rig = gt_rig_of(cli->self_known ? cli->self.agent : ""), found = { 0 };

	(void)mr_queue_list(cli->room, &all, IGNORED);
	for (size_t i = 0; i < all.n; i++) {
		const char *queue = all.v[i].name, *slash = strrchr(queue, '/');
		bool in_rig = slash && str_eq((struct mr_str){ queue, (size_t)(slash - queue) }, rig);

		if (slash && strcmp(slash + 1, name) == 0 && (in_rig || found.len == 0))
			found = str_of(queue);
	}
	const char *copy = found.len > 0 ? arena_dup(&cli->own, found) : NULL;

	return copy ? copy : name;
}

static const struct {
	const char *id, *kind;
} ids[] = {
	{ "hq-group-", "group" },
	{ "hq-q-", "queue" },
	{ "gt-q-", "queue" },
	{ "hq-channel-", "channel" },
};

const char *
gt_name(struct cli *cli, const char *kind, const char *given)
{
	const char *bare = bare_name(kind, given);

	if (bare != given)
		return bare;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		if (strcmp(ids[i].kind, kind) != 0 || !str_starts(str_of(given), ids[i].id))
			continue;
		const char *name = given + strlen(ids[i].id);

		return ids[i].id[0] == 'h' ? name : queue_of_rig(cli, name);
	}
	return given;
}

const char *
gt_recipient(struct cli *cli, const char *given)
{
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		if (!str_starts(str_of(given), ids[i].id))
			continue;
		const char *address = cli_text(cli, "%s:%s", ids[i].kind, gt_name(cli, ids[i].kind, given));

		return address ? address : given;
	}
	return strcmp(given, "@overseer") == 0 ? "operator" : given;
}

bool
gt_priority(struct cli *cli, const char *given, enum mr_priority *ret)
{
	static const enum mr_priority levels[] = { MR_URGENT, MR_HIGH, MR_NORMAL, MR_LOW, MR_LOW };
	struct mr_error err = { 0 };
	uint64_t n = 0;

	if (!given)
		return true;
	if (str_to_u64(str_of(given), &n)) {
		*ret = n < sizeof(levels) / sizeof(levels[0]) ? levels[n] : MR_NORMAL;
		return true;
	}
	if (mr_priority_parse(given, ret, &err) == MR_OK)
		return true;
	(void)cli_usage(cli, "option '--priority': %s%s%s", err.message, err.hint[0] ? "; " : "", err.hint);
	return false;
}

/* ---- JSON with line breaks ---- */

void
gt_json_out(struct cli *cli, const struct buf *compact)
{
	cli->out.failed |= compact->failed;
	jsonc_pretty(buf_str(compact), "\n", &cli->out);
	buf_addc(&cli->out, '\n');
}

bool
gt_json_cells(struct cli *cli, const struct cell *cells)
{
	mr_auto(list_done) struct listing one = { .cli = cli, .form = LIST_ONE };

	if (cli->json && list_cells(&one, cells))
		gt_json_out(cli, list_json(&one));
	return cli->json;
}

int
gt_list_end(struct listing *list, enum mr_rc rc, const char *nothing)
{
	struct cli *cli = list->cli;
	int code = rc == MR_OK ? EXIT_DONE : cli_fail(cli, &cli->err);

	if (code == EXIT_DONE && cli->json)
		gt_json_out(cli, list_json(list));
	else if (code == EXIT_DONE && list->n == 0)
		fence_addf(&cli->out, "%s\n", nothing);
	list_done(list);
	return code;
}

/* ---- What gt knows of a message that we keep in headers ---- */

const char *
gt_type(const struct mr_message *msg)
{
	static const char *const types[] = { "task", "escalation", "scavenge", "notification", "reply" };
	const char *given = mr_message_header(msg, "GT-Type");

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcasecmp(given ? given : msg->type, types[i]) == 0)
			return types[i];
	return msg->reply_to[0] ? "reply" : "notification";
}

bool
gt_is_wisp(const struct mr_message *msg)
{
	static const char *const prefixes[] = { "polecat_started", "polecat_done", "work_done", "start_work", "nudge",
		"lifecycle:", "merged", "merge_ready", "merge_failed" };

	if (mr_message_header(msg, "GT-Wisp"))
		return true;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncasecmp(msg->subject, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

bool
gt_is_pinned(const struct mr_message *msg)
{
	return (msg->flags & MR_PINNED) != 0 || mr_message_header(msg, "GT-Pinned");
}

/* The one recipient that gt has: the owner of the mailbox, else the first that is named. */
static const char *
addressee(const struct mr_message *msg, const char *owner)
{
	if (owner[0] && (msg->to.n == 0 || names_has(&msg->to, owner)))
		return owner;
	return msg->to.n > 0 ? msg->to.v[0] : owner;
}

struct mr_str
gt_text_of(const struct mr_message *msg)
{
	struct mr_str text = { msg->body ? msg->body : "", msg->body ? msg->body_len : 0 };

	while (text.len > 0 && text.ptr[text.len - 1] == '\n')
		text.len--;
	return text;
}

bool
gt_list_message(struct listing *list, const struct mr_message *msg, const char *owner)
{
	struct cli *cli = list->cli;
	mr_auto(mr_names_done) struct mr_names cc = { 0 };
	bool read = (msg->flags & MR_SEEN) != 0 || msg->folder == MR_ARCHIVE;
	const char *target = addressee(msg, owner), *name = strchr(target, ':');
	bool queue = str_starts(str_of(target), "queue:"), channel = str_starts(str_of(target), "channel:");

	for (size_t i = 0; i < msg->cc.n; i++)
		cli->out.failed |= !names_add(&cc, str_of(gt_spelled(msg->cc.v[i])));
	return list_row(list, kv_str("id", msg->id), kv_str("from", gt_spelled(msg->from)),
	    queue     ? kv_str("queue", name + 1)
	    : channel ? kv_str("channel", name + 1)
		      : kv_str("to", gt_spelled(target)),
	    kv_str("subject", msg->subject), kv_text("body", gt_text_of(msg)), kv_time("timestamp", msg->date_ms),
	    kv_bool("read", read), kv_str("priority", mr_priority_word(msg->priority)), kv_str("type", gt_type(msg)),
	    kv_if("thread_id", msg->thread), kv_if("reply_to", msg->reply_to),
	    gt_is_pinned(msg) ? kv_bool("pinned", true) : kv_none(),
	    gt_is_wisp(msg) ? kv_bool("wisp", true) : kv_none(), cc.n > 0 ? kv_names("cc", &cc) : kv_none(),
	    kv_if("claimed_by", msg->token[0] ? gt_spelled(owner) : ""),
	    kv_str("delivery_state", read ? "acked" : "pending"),
	    kv_if("delivery_acked_by", read ? gt_spelled(owner) : ""));
}

/* A control message is for programs: not shown as text, but in JSON, and to its sender. */
bool
gt_hides(struct cli *cli, const struct mr_message *msg, const char *owner)
{
	return !cli->json && msg->folder != MR_SENT && printout_hides(cli, owner, msg);
}

/* ---- Text ---- */

void
gt_text_when(struct buf *out, int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	char text[32];

	if (localtime_r(&seconds, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &tm) > 0)
		buf_adds(out, text);
}

static void
add_header(struct buf *out, const char *name, const char *value)
{
	if (!value[0])
		return;
	buf_addf(out, "%s: ", name);
	out_line(out, value);
	buf_addc(out, '\n');
}

void
gt_text_message(struct cli *cli, struct buf *out, const struct mr_message *msg, const char *owner)
{
	add_header(out, "Subject", msg->subject);
	add_header(out, "From", gt_spelled(msg->from));
	add_header(out, "To", gt_spelled(addressee(msg, owner)));
	for (size_t i = 0; i < msg->cc.n; i++)
		add_header(out, "CC", gt_spelled(msg->cc.v[i]));
	buf_adds(out, "Date: ");
	gt_text_when(out, msg->date_ms);
	buf_addc(out, '\n');
	add_header(out, "ID", msg->id);
	add_header(out, "Thread", msg->thread);
	add_header(out, "Reply-To", msg->reply_to);
	buf_addc(out, '\n');
	if (text_hides_body(cli, msg))
		buf_adds(out, "(a control message, for programs: --json shows it)\n");
	else
		(void)fence_add(out, (struct mr_str){ msg->body ? msg->body : "", msg->body ? msg->body_len : 0 },
		    out_form(cli, FENCE_TEXT), 0);
	if (out->len > 0 && out->ptr[out->len - 1] != '\n')
		buf_addc(out, '\n');
}
