/* SPDX-License-Identifier: MIT */
/* print.c - messages as gt prints them: its JSON keys, its lines of text. */
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/gt/gt.h"

/* ---- JSON with line breaks ---- */

static void
break_line(struct buf *out, size_t depth)
{
	buf_addc(out, '\n');
	for (size_t i = 0; i < depth; i++)
		buf_adds(out, "  ");
}

static size_t
string_end(const char *p, size_t n)
{
	size_t i = 1;

	while (i < n && p[i] != '"')
		i += p[i] == '\\' ? 2 : 1;
	return i < n ? i + 1 : n;
}

void
gt_json_out(struct cli *cli, const struct buf *compact)
{
	struct buf *out = &cli->out;
	size_t depth = 0;

	if (compact->failed)
		out->failed = true;
	for (size_t i = 0; i < compact->len; i++) {
		const char *p = compact->ptr + i;
		bool opens = *p == '{' || *p == '[', closes = *p == '}' || *p == ']';

		if (*p == '"') {
			size_t len = string_end(p, compact->len - i);

			buf_add(out, (struct mr_str){ p, len });
			i += len - 1;
			continue;
		}
		if (closes && p[-1] != '{' && p[-1] != '[')
			break_line(out, depth - 1);
		buf_addc(out, *p);
		depth += opens ? 1 : 0;
		depth -= closes ? 1 : 0;
		if (*p == ':')
			buf_addc(out, ' ');
		else if (*p == ',' || (opens && p[1] != '}' && p[1] != ']'))
			break_line(out, depth);
	}
	buf_addc(out, '\n');
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

static void
key_agents(struct cli *cli, struct json *j, const char *key, const struct mr_names *names)
{
	if (names->n == 0)
		return;
	json_key(j, key);
	json_open(j, '[');
	for (size_t i = 0; i < names->n; i++)
		json_str(j, str_of(gt_spelled(cli, names->v[i])));
	json_close(j);
}

/* Where it was addressed to: to an agent, a queue or a channel, exactly one of them. */
static void
key_target(struct cli *cli, struct json *j, const char *target)
{
	if (str_starts(str_of(target), "queue:"))
		json_key_str(j, "queue", target + 6);
	else if (str_starts(str_of(target), "channel:"))
		json_key_str(j, "channel", target + 8);
	else
		json_key_str(j, "to", gt_spelled(cli, target));
}

struct mr_str
gt_text_of(const struct mr_message *msg)
{
	struct mr_str text = { msg->body ? msg->body : "", msg->body ? msg->body_len : 0 };

	while (text.len > 0 && text.ptr[text.len - 1] == '\n')
		text.len--;
	return text;
}

void
gt_json_message(struct cli *cli, struct json *j, const struct mr_message *msg, const char *owner)
{
	bool read = (msg->flags & MR_SEEN) != 0 || msg->folder == MR_ARCHIVE;
	const char *target = addressee(msg, owner);

	json_open(j, '{');
	json_key_str(j, "id", msg->id);
	json_key_str(j, "from", gt_spelled(cli, msg->from));
	key_target(cli, j, target);
	json_key_str(j, "subject", msg->subject);
	json_key(j, "body");
	json_str(j, gt_text_of(msg));
	json_key_time(j, "timestamp", msg->date_ms);
	json_key_bool(j, "read", read);
	json_key_str(j, "priority", mr_priority_word(msg->priority));
	json_key_str(j, "type", gt_type(msg));
	if (msg->thread[0])
		json_key_str(j, "thread_id", msg->thread);
	if (msg->reply_to[0])
		json_key_str(j, "reply_to", msg->reply_to);
	if (gt_is_pinned(msg))
		json_key_bool(j, "pinned", true);
	if (gt_is_wisp(msg))
		json_key_bool(j, "wisp", true);
	key_agents(cli, j, "cc", &msg->cc);
	if (msg->token[0] && owner[0])
		json_key_str(j, "claimed_by", gt_spelled(cli, owner));
	json_key_str(j, "delivery_state", read ? "acked" : "pending");
	if (read && owner[0])
		json_key_str(j, "delivery_acked_by", gt_spelled(cli, owner));
	json_close(j);
}

/* What programs tell each other is no text for an agent. JSON is for programs, and what one sent oneself is known. */
bool
gt_hides(struct cli *cli, const struct mr_message *msg, const char *owner)
{
	struct mr_error err = { 0 };

	if (cli->json || msg->folder == MR_SENT)
		return false;
	if (mr_is_control(cli->room, owner, msg, &err))
		return true;
	if (err.code != MR_OK)
		cli_warn(cli, "the control message %s cannot be used: %s", msg->id, err.message);
	return false;
}

/* ---- Text ---- */

void
gt_clean(struct buf *out, const char *text)
{
	(void)fence_add(out, str_of(text), FENCE_LINE, 0);
}

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
	gt_clean(out, value);
	buf_addc(out, '\n');
}

void
gt_text_message(struct cli *cli, struct buf *out, const struct mr_message *msg, const char *owner)
{
	add_header(out, "Subject", msg->subject);
	add_header(out, "From", gt_spelled(cli, msg->from));
	add_header(out, "To", gt_spelled(cli, addressee(msg, owner)));
	for (size_t i = 0; i < msg->cc.n; i++)
		add_header(out, "CC", gt_spelled(cli, msg->cc.v[i]));
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

void
gt_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	cli_warn(*(struct cli **)ctx, "skipped '%s': %s (it is kept; 'mailroom doctor' says more)", path, err->message);
}
