/* SPDX-License-Identifier: MIT */
/*
 * show.c - one message as JSON, as a line of a listing, as a page of text. All that comes from mail goes
 * through the fence before it meets a terminal or an agent (promise 7): base/fence.h.
 */
#include "base/clock.h"
#include "base/text.h"
#include "cli/cli.h"
#include "message/foreign.h"

#define FROM_WIDTH 18
#define TO_SHOWN 3        /* recipients in a line of `sent`; the rest are counted */
#define SUBJECT_CHARS 120 /* off a terminal; `read` shows all of it */
#define DAY_MS ((int64_t)86400 * 1000)

/* ---- JSON ---- */

const char *
folder_word(enum mr_folder folder)
{
	switch (folder) {
	case MR_INBOX:
		return "inbox";
	case MR_HELD:
		return "held";
	case MR_ARCHIVE:
		return "archive";
	case MR_SENT:
		return "sent";
	case MR_DEAD:
		return "dead";
	}
	return "inbox";
}

static const char *
null_if_empty(const char *s)
{
	return s && s[0] ? s : NULL;
}

/* One key a name. Repeated headers become one value with line breaks, which no single value can contain. */
static void
json_headers(struct json *j, const struct mr_message *msg)
{
	json_key(j, "headers");
	json_open(j, '{');
	for (size_t i = 0; i < msg->headers_n; i++) {
		const char *name = msg->headers[i].name;
		mr_auto(buf_done) struct buf value = BUF_INIT;
		bool first = true;

		for (size_t k = 0; k < i && first; k++)
			first = !ascii_caseeq(msg->headers[k].name, name);
		if (!first)
			continue;
		buf_adds(&value, msg->headers[i].value);
		for (size_t k = i + 1; k < msg->headers_n; k++) {
			if (ascii_caseeq(msg->headers[k].name, name))
				buf_addf(&value, "\n%s", msg->headers[k].value);
		}
		json_key_str(j, name, buf_z(&value));
	}
	json_close(j);
}

void
json_message_keys(struct json *j, const struct mr_message *msg, struct mr_room *room, bool body)
{
	json_key_str(j, "id", msg->id);
	json_key_str(j, "from", msg->from);
	json_key(j, "proven");
	if (msg->proof == MR_PROOF_NONE)
		json_null(j);
	else
		json_bool(j, msg->proof == MR_PROVEN);
	json_key_names(j, "to", &msg->to);
	json_key_names(j, "cc", &msg->cc);
	json_key_str(j, "subject", msg->subject);
	json_key_time(j, "date", msg->date_ms);
	json_key_str(j, "type", null_if_empty(msg->type));
	json_key_str(j, "priority", mr_priority_word(msg->priority));
	json_key_str(j, "thread", null_if_empty(msg->thread));
	json_key_str(j, "reply_to", null_if_empty(msg->reply_to));
	json_key_bool(j, "read", (msg->flags & MR_SEEN) != 0);
	json_key_bool(j, "acked", (msg->flags & MR_ACKED) != 0);
	json_key_bool(j, "pinned", (msg->flags & MR_PINNED) != 0);
	json_key_bool(j, "replied", (msg->flags & MR_REPLIED) != 0);
	json_key(j, "body");
	if (body && msg->body)
		json_str(j, (struct mr_str){ msg->body, msg->body_len });
	else
		json_null(j);
	json_fields(j, room, msg, body);
	json_headers(j, msg);
	if (msg->envelope_n > 0) {
		json_key(j, "envelope");
		json_open(j, '{');
		for (size_t i = 0; i < msg->envelope_n; i++)
			json_key_str(j, msg->envelope[i].name, msg->envelope[i].value);
		json_close(j);
	}
	json_key_str(j, "room", mr_room_name(room));
	json_key_str(j, "path", null_if_empty(msg->path));
	json_key_str(j, "folder", folder_word(msg->folder));
	json_key_int(j, "attempt", (int64_t)msg->attempt);
	json_key_str(j, "token", null_if_empty(msg->token));
	json_key_int(j, "size", (int64_t)msg->size_bytes);
	json_key_time(j, "by", msg->by_ms);
	json_key_time(j, "not_before", msg->not_before_ms);
}

void
json_message(struct json *j, const struct mr_message *msg, struct mr_room *room, bool body)
{
	json_open(j, '{');
	json_message_keys(j, msg, room, body);
	json_close(j);
}

void
cli_json_message(struct cli *cli, const struct mr_message *msg, bool body)
{
	struct json j = JSON_INIT(&cli->out);

	json_message(&j, msg, cli->room, body);
	out_json_line(cli, &j);
}

/* ---- A line of a listing ---- */

const char *
short_id(const char *id)
{
	size_t len = strlen(id);

	return len > 6 ? id + len - 6 : id;
}

void
text_when(struct buf *out, int64_t ms)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	int64_t now = clock_now_ms();
	char age[24];

	if (ms <= now && now - ms < DAY_MS) {
		duration_text(now - ms, age);
		buf_adds(out, age);
		return;
	}
	struct civil then = civil_of(ms / 1000), today = civil_of(now / 1000);

	if (then.year == today.year && then.month >= 1 && then.month <= 12)
		buf_addf(out, "%.3s %02d", months + 3 * (then.month - 1), then.day);
	else
		buf_addf(out, "%04d-%02d-%02d", then.year, then.month, then.day);
}

/* Pads to `width` columns; longer text is cut only where lines have an end. */
static void
add_padded(struct cli *cli, struct buf *out, struct mr_str s, size_t width)
{
	size_t w = utf8_width(s);

	if (w > width && cli->columns > 0) {
		struct mr_str cut = utf8_cut(s, width - 1);

		while (cut.len > 0 && utf8_width(cut) > width - 1)
			cut = utf8_cut(cut, utf8_chars(cut) - 1);
		buf_add(out, cut);
		buf_adds(out, "…");
		w = utf8_width(cut) + 1;
	} else {
		buf_add(out, s);
	}
	for (; w < width; w++)
		buf_addc(out, ' ');
}

/* The type; else what its format says of it (a workspace: NEW or REPLY). */
static const char *
shown_type(const struct mr_message *msg)
{
	for (size_t i = 0; !msg->type[0] && i < msg->envelope_n; i++)
		if (strcmp(msg->envelope[i].name, "MESSAGE_TYPE") == 0)
			return msg->envelope[i].value;
	return msg->type;
}

static void
add_subject(struct cli *cli, struct buf *out, const struct mr_message *msg, size_t used)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT;
	const char *type = shown_type(msg);
	size_t extra = type[0] ? utf8_width(str_of(type)) + 4 : 0;
	bool unread = (msg->flags & MR_SEEN) == 0;

	(void)fence_add(&subject, str_of(msg->subject[0] ? msg->subject : "(no subject)"), out_form(cli, FENCE_LINE),
	    SUBJECT_CHARS);
	struct mr_str all = buf_str(&subject), cut = all;

	if (cli->columns > used + extra + 10) {
		size_t room = cli->columns - used - extra;

		while (cut.len > 0 && utf8_width(cut) + (cut.len < all.len) > room)
			cut = utf8_cut(cut, utf8_chars(cut) - 1);
	}
	out_colored(cli, out, unread ? STYLE_BOLD : STYLE_PLAIN, cut);
	if (cut.len < all.len)
		buf_adds(out, "…");
	if (subject.failed)
		out->failed = true;
}

/* In the rooms of other programs names have other letters: shown is what their people wrote, in quotes where it is no
 * address, so that it can be typed and cannot pass for something else. */
void
text_name(struct cli *cli, struct buf *out, const char *address)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	if (strchr(address, '%') && !mr_room_has_lives(cli->room))
		foreign_from_address(address, &name);
	if (!buf_ok(&name) || name.len == 0)
		fence_addf(out, "%s", address);
	else
		(void)fence_add(out, buf_str(&name), FENCE_NAME, FENCE_FIELD_CHARS);
}

/* Whom the mail comes from; for what one sent oneself, whom it went to. */
static void
add_correspondent(struct cli *cli, struct buf *out, const struct mr_message *msg)
{
	if (msg->folder != MR_SENT || msg->to.n == 0) {
		text_name(cli, out, msg->from[0] ? msg->from : "(nobody)");
		return;
	}
	for (size_t i = 0; i < msg->to.n && i < TO_SHOWN; i++) {
		buf_adds(out, i > 0 ? ", " : "to ");
		text_name(cli, out, msg->to.v[i]);
	}
	if (msg->to.n > TO_SHOWN)
		buf_addf(out, " +%zu", msg->to.n - TO_SHOWN);
}

void
text_line(struct cli *cli, struct buf *out, const struct mr_message *msg)
{
	mr_auto(buf_done) struct buf when = BUF_INIT, from = BUF_INIT, type = BUF_INIT;
	bool unread = (msg->flags & MR_SEEN) == 0, urgent = msg->priority >= MR_HIGH;

	cli->budget.marks |= (unread ? LINE_UNREAD : LINE_READ) | (urgent ? LINE_URGENT : 0) |
			     (msg->flags & MR_PINNED ? LINE_PINNED : 0);
	out_styled(cli, out, STYLE_DIM, short_id(msg->id));
	buf_adds(out, " ");
	out_styled(cli, out, STYLE_RED, urgent ? "!" : " ");
	out_styled(cli, out, STYLE_YELLOW, msg->flags & MR_PINNED ? "F" : " ");
	buf_adds(out, unread ? "● " : "○ ");
	text_when(&when, msg->date_ms);
	add_padded(cli, out, buf_str(&when), 6);
	buf_addc(out, ' ');
	add_correspondent(cli, &from, msg);
	add_padded(cli, out, buf_str(&from), FROM_WIDTH);
	buf_addc(out, ' ');
	add_subject(cli, out, msg, 6 + 1 + 2 + 2 + 6 + 1 + FROM_WIDTH + 1);
	if (shown_type(msg)[0]) {
		buf_addf(&type, "[%s]", shown_type(msg));
		buf_adds(out, "  ");
		out_styled(cli, out, STYLE_DIM, buf_z(&type));
	}
	if (msg->proof == MR_UNPROVEN) {
		buf_adds(out, "  ");
		out_styled(cli, out, STYLE_RED, "[unproven]");
	}
	buf_addc(out, '\n');
}

/* ---- A whole message ---- */

static void
add_header(struct cli *cli, struct buf *out, const char *name, const char *value)
{
	out_styled(cli, out, STYLE_DIM, name);
	buf_adds(out, ": ");
	out_styled(cli, out, STYLE_PLAIN, value);
	buf_addc(out, '\n');
}

static void
add_names(struct cli *cli, struct buf *out, const char *name, const struct mr_names *names)
{
	mr_auto(buf_done) struct buf list = BUF_INIT;

	for (size_t i = 0; i < names->n; i++) {
		buf_adds(&list, i ? ", " : "");
		text_name(cli, &list, names->v[i]);
	}
	if (names->n > 0)
		add_header(cli, out, name, buf_z(&list));
}

/* To the second: what is finer helps no reader, and --json has it. */
static void
add_time(struct cli *cli, struct buf *out, const char *name, int64_t ms)
{
	char date[RFC3339_LEN + 1];

	time_rfc3339(ms, date);
	char *fraction = strchr(date, '.');

	if (fraction)
		(void)snprintf(fraction, sizeof(date) - (size_t)(fraction - date), "Z");
	add_header(cli, out, name, date);
}

static void
add_headers(struct cli *cli, struct buf *out, const struct mr_message *msg)
{
	mr_auto(buf_done) struct buf from = BUF_INIT;
	char number[40];

	text_name(cli, &from, msg->from);
	add_header(cli, out, "From", buf_z(&from));
	if (msg->proof == MR_UNPROVEN)
		add_header(cli, out, "Unproven", "another user of this room may have written it in that name");
	add_names(cli, out, "To", &msg->to);
	add_names(cli, out, "Cc", &msg->cc);
	add_time(cli, out, "Date", msg->date_ms);
	add_header(cli, out, "Subject", msg->subject);
	add_header(cli, out, "Id", msg->id);
	if (msg->thread[0] && strcmp(msg->thread, msg->id) != 0 && !cli->budget.thread)
		add_header(cli, out, "Thread", msg->thread);
	if (msg->type[0])
		add_header(cli, out, "Type", msg->type);
	for (size_t i = 0; i < msg->envelope_n; i++)
		add_header(cli, out, msg->envelope[i].name, msg->envelope[i].value);
	if (msg->priority != MR_NORMAL)
		add_header(cli, out, "Priority", mr_priority_word(msg->priority));
	if (msg->by_ms > 0)
		add_time(cli, out, "Answer-By", msg->by_ms);
	if (msg->not_before_ms > 0)
		add_time(cli, out, "Not-Before", msg->not_before_ms);
	if (msg->attempt > (msg->folder == MR_HELD ? 1u : 0u)) { /* the first time goes without saying */
		(void)snprintf(number, sizeof(number), "%u", msg->attempt);
		add_header(cli, out, "Attempt", number);
	}
}

/* By whatever way it came here: what programs tell each other is no text for an agent. Of a copy that is nobody's own,
 * in a queue or among dead letters, the first recipient counts as its owner. */
bool
text_hides_body(struct cli *cli, const struct mr_message *msg)
{
	const char *first = msg->to.n > 0 ? msg->to.v[0] : "";
	bool own = msg->folder != MR_DEAD && cli->self.agent[0];
	struct mr_error broken = { 0 };

	return !cli->out_tty && msg->folder != MR_SENT &&
	       mr_is_control(cli->room, own ? cli->self.agent : first, msg, &broken);
}

/* On a terminal the body is indented, as git does it: no line of it can pass for a header or for the next
 * message. Off a terminal the fence's delimiter does that, and the text stays as it was written. */
static void
add_body(struct cli *cli, struct buf *out, const struct mr_message *msg)
{
	mr_auto(buf_done) struct buf clean = BUF_INIT;

	if (!msg->body)
		return;
	if (text_hides_body(cli, msg)) {
		buf_addf(out, "(a control message, for programs: --json shows it)\n");
		return;
	}
	(void)fence_add(&clean, (struct mr_str){ msg->body, msg->body_len }, out_form(cli, FENCE_TEXT), 0);
	if (clean.failed)
		out->failed = true;
	struct mr_str rest = buf_str(&clean);

	while (rest.len > 0) {
		const char *end = memchr(rest.ptr, '\n', rest.len);
		size_t len = end ? (size_t)(end - rest.ptr) : rest.len;

		if (!cli->budget.fenced && len > 0)
			buf_adds(out, "    ");
		buf_add(out, (struct mr_str){ rest.ptr, len });
		buf_addc(out, '\n');
		len += end ? 1 : 0;
		rest = (struct mr_str){ rest.ptr + len, rest.len - len };
	}
}

void
text_message(struct cli *cli, struct buf *out, const struct mr_message *msg)
{
	text_post(cli, out, 0, msg);
}

void
text_post(struct cli *cli, struct buf *out, uint64_t number, const struct mr_message *msg)
{
	char digits[24];

	/* Behind the line that opens the fence the first message needs none of its own. */
	if (cli->budget.fenced && (cli->budget.open || cli->budget.thread))
		buf_addf(out, "--- message %s ---\n", cli->budget.mark);
	(void)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	if (number > 0)
		add_header(cli, out, "Number", digits);
	add_headers(cli, out, msg);
	buf_addc(out, '\n');
	add_body(cli, out, msg);
	if (!cli->budget.fenced)
		buf_addc(out, '\n');
}
