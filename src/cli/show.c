/* SPDX-License-Identifier: MIT */
/*
 * show.c - one message as JSON, as a line of a listing, as a page of text. All that comes from mail goes
 * through the fence before it meets a terminal or an agent (promise 7): base/fence.h.
 */
#include "cli/view.h"
#include "message/address.h"

#define FROM_WIDTH 18
#define TO_SHOWN 3        /* recipients in a line of `sent`; the rest are counted */
#define SUBJECT_CHARS 120 /* off a terminal; `read` shows all of it */
#define DAY_MS ((int64_t)86400 * 1000)

/* ---- JSON ---- */

void
json_fields_value(struct json *j, const struct mr_fields *fields)
{
	json_key(j, "fields");
	if (fields && fields->json && fields->json[0] && utf8_valid(str_of(fields->json))) {
		json_raw(j, str_of(fields->json)); /* an object: numbers stay numbers, lists stay lists */
		return;
	}
	json_open(j, '{');
	for (size_t i = 0; fields && i < fields->n; i++) {
		size_t first = 0;

		while (strcmp(fields->v[first].name, fields->v[i].name) != 0)
			first++;
		if (first == i)
			json_key_str(j, fields->v[i].name, fields->v[i].value);
	}
	json_close(j);
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
		size_t first = 0;

		while (!ascii_caseeq(msg->headers[first].name, name))
			first++;
		if (first < i)
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

static void
message_keys(struct json *j, const struct mr_message *msg, struct mr_room *room, bool body)
{
	static const char *const folders[] = { "inbox", [MR_INBOX] = "inbox", [MR_HELD] = "held",
		[MR_ARCHIVE] = "archive", [MR_SENT] = "sent", [MR_DEAD] = "dead" };
	mr_auto(mr_fields_done) struct mr_fields fields = { 0 };
	struct mr_error err = { 0 };
	bool has_body = body && msg->body;

	json_cells(
	    j, CELLS(kv_str("id", msg->id), kv_str("from", msg->from),
		   msg->proof == MR_PROOF_NONE ? kv_str("proven", NULL) : kv_bool("proven", msg->proof == MR_PROVEN),
		   kv_names("to", &msg->to), kv_names("cc", &msg->cc), kv_str("subject", msg->subject),
		   kv_time("date", msg->date_ms), kv_opt("type", msg->type),
		   kv_str("priority", mr_priority_word(msg->priority)), kv_opt("thread", msg->thread),
		   kv_opt("reply_to", msg->reply_to), kv_bool("read", (msg->flags & MR_SEEN) != 0),
		   kv_bool("acked", (msg->flags & MR_ACKED) != 0), kv_bool("pinned", (msg->flags & MR_PINNED) != 0),
		   kv_bool("replied", (msg->flags & MR_REPLIED) != 0),
		   has_body ? kv_text("body", (struct mr_str){ msg->body, msg->body_len }) : kv_str("body", NULL)));
	json_cells(j, CELLS(kv_list("attachments")));
	for (size_t i = 0; has_body && i < msg->attachments_n; i++)
		json_cells(j, CELLS(kv_open(""), kv_str("name", msg->attachments[i].name),
				  kv_str("type", msg->attachments[i].type),
				  kv_size("size", msg->attachments[i].size_bytes), kv_close()));
	json_close(j);
	/* Fields by the message's type; without its body none. */
	bool wrong = has_body && mr_message_fields(room, msg, &fields, &err) != MR_OK;

	json_fields_value(j, &fields);
	if (wrong)
		json_key_str(j, "fields_error", err.message);
	json_headers(j, msg);
	for (size_t i = 0; i < msg->envelope_n; i++)
		json_cells(j, CELLS(i == 0 ? kv_open("envelope") : kv_none(),
				  kv_str(msg->envelope[i].name, msg->envelope[i].value),
				  i + 1 == msg->envelope_n ? kv_close() : kv_none()));
	json_cells(j,
	    CELLS(kv_str("room", mr_room_name(room)), kv_opt("path", msg->path), kv_str("folder", folders[msg->folder]),
		kv_int("attempt", msg->attempt), kv_opt("token", msg->token), kv_size("size", msg->size_bytes),
		kv_time("by", msg->by_ms), kv_time("not_before", msg->not_before_ms)));
}

void
json_message(struct json *j, const struct mr_message *msg, struct mr_room *room, bool body)
{
	json_open(j, '{');
	message_keys(j, msg, room, body);
	json_close(j);
}

void
out_json_message(
    struct cli *cli, const struct cell *before, const struct mr_message *msg, bool body, const struct cell *behind)
{
	struct json j = JSON_INIT(&cli->out);

	json_open(&j, '{');
	json_cells(&j, before);
	message_keys(&j, msg, cli->room, body);
	json_cells(&j, behind);
	out_json_line(cli, &j);
}

/* ---- Fields as text ---- */

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

	if (ms <= now && now - ms < DAY_MS) {
		buf_adds(out, lasting(now - ms).text);
		return;
	}
	struct civil then = civil_of(ms / 1000), today = civil_of(now / 1000);

	if (then.year == today.year && then.month >= 1 && then.month <= 12)
		buf_addf(out, "%.3s %02d", months + 3 * (then.month - 1), then.day);
	else
		buf_addf(out, "%04d-%02d-%02d", then.year, then.month, then.day);
}

/* Rooms of other programs allow other characters in names, which an address escapes with '%'. The original name is
 * shown, in quotes where it is no address, so that it can be typed and cannot pass for something else. */
void
text_name(struct cli *cli, struct buf *out, const char *address)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	if (strchr(address, '%') && !mr_room_has(cli->room, MR_HAS_LIVES))
		foreign_from_address(address, &name);
	if (!buf_ok(&name) || name.len == 0)
		fence_addf(out, "%s", address);
	else
		(void)fence_add(out, buf_str(&name), FENCE_NAME, FENCE_FIELD_CHARS);
}

void
text_names(struct cli *cli, struct buf *out, const struct mr_names *names, size_t most)
{
	for (size_t i = 0; i < names->n && i < most; i++) {
		buf_adds(out, i > 0 ? ", " : "");
		text_name(cli, out, names->v[i]);
	}
}

/* ---- A line of a listing ---- */

/* Pads to `width` columns; longer text is cut only where lines have an end. */
static void
add_padded(struct cli *cli, struct buf *out, struct mr_str s, size_t width)
{
	for (size_t w = text_fit(out, s, cli->columns > 0 ? width : SIZE_MAX); w < width; w++)
		buf_addc(out, ' ');
}

/* The sender; of sent mail the recipients. */
static void
add_correspondent(struct cli *cli, struct buf *out, const struct mr_message *msg)
{
	if (msg->folder != MR_SENT || msg->to.n == 0) {
		text_name(cli, out, msg->from[0] ? msg->from : "(nobody)");
		return;
	}
	buf_adds(out, "to ");
	text_names(cli, out, &msg->to, TO_SHOWN);
	if (msg->to.n > TO_SHOWN)
		buf_addf(out, " +%zu", msg->to.n - TO_SHOWN);
}

void
text_line(struct cli *cli, struct buf *out, const struct mr_message *msg, const char *behind)
{
	mr_auto(buf_done) struct buf when = BUF_INIT, from = BUF_INIT, type = BUF_INIT, subject = BUF_INIT;
	enum line_mark state = msg->folder == MR_HELD ? LINE_HELD : msg->flags & MR_SEEN ? LINE_READ : LINE_UNREAD;
	bool urgent = msg->priority >= MR_HIGH;
	const char *shown_type = msg->type;

	/* Without a type, what the room's format calls it (a workspace: NEW or REPLY). */
	for (size_t i = 0; !shown_type[0] && i < msg->envelope_n; i++)
		if (strcmp(msg->envelope[i].name, "MESSAGE_TYPE") == 0)
			shown_type = msg->envelope[i].value;
	cli->budget.marks |= state | (urgent ? LINE_URGENT : 0) | (msg->flags & MR_PINNED ? LINE_PINNED : 0);
	out_styled(cli, out, STYLE_DIM, short_id(msg->id));
	buf_adds(out, " ");
	out_styled(cli, out, STYLE_RED, urgent ? "!" : " ");
	out_styled(cli, out, STYLE_YELLOW, msg->flags & MR_PINNED ? "F" : " ");
	buf_adds(out, state == LINE_HELD ? "◐ " : state == LINE_UNREAD ? "● " : "○ ");
	text_when(&when, msg->date_ms);
	add_padded(cli, out, buf_str(&when), 6);
	buf_addc(out, ' ');
	add_correspondent(cli, &from, msg);
	add_padded(cli, out, buf_str(&from), FROM_WIDTH);
	buf_addc(out, ' ');
	(void)fence_add(&subject, str_of(msg->subject[0] ? msg->subject : "(no subject)"), out_form(cli, FENCE_LINE),
	    SUBJECT_CHARS);
	struct mr_str all = buf_str(&subject), cut = all;
	size_t used = 6 + 1 + 2 + 2 + 6 + 1 + FROM_WIDTH + 1 + (shown_type[0] ? utf8_width(str_of(shown_type)) + 4 : 0);

	if (cli->columns > used + 10 && utf8_width(all) > cli->columns - used)
		cut = utf8_fit(all, cli->columns - used - 1);
	out_colored(cli, out, state == LINE_UNREAD ? STYLE_BOLD : STYLE_PLAIN, cut);
	buf_adds(out, cut.len < all.len ? "…" : "");
	out->failed |= subject.failed;
	if (shown_type[0]) {
		buf_addf(&type, "[%s]", shown_type);
		buf_adds(out, "  ");
		out_styled(cli, out, STYLE_DIM, buf_z(&type));
	}
	if (msg->proof == MR_UNPROVEN) {
		buf_adds(out, "  ");
		out_styled(cli, out, STYLE_RED, "[unproven]");
	}
	buf_adds(out, behind);
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
	char first[200];
	mr_auto(buf_done) struct buf list = BUF_IN(first);

	text_names(cli, &list, names, names->n);
	if (names->n > 0)
		add_header(cli, out, name, buf_z(&list));
}

/* In seconds; --json has the milliseconds. */
static void
add_time(struct cli *cli, struct buf *out, const char *name, int64_t ms)
{
	struct said date = dated(ms);

	(void)snprintf(date.text + strcspn(date.text, "."), 2, "Z");
	add_header(cli, out, name, date.text);
}

/* A control message is for programs: an agent might take its text for an order. A copy in a queue or among the dead
 * letters has no owner; its first recipient counts as one. */
bool
text_hides_body(struct cli *cli, const struct mr_message *msg)
{
	const char *first = msg->to.n > 0 ? msg->to.v[0] : "";
	bool own = msg->folder != MR_DEAD && cli->self.agent[0];

	return !cli->out_tty && msg->folder != MR_SENT &&
	       mr_is_control(cli->room, own ? cli->self.agent : first, msg, IGNORED);
}

/* On a terminal the body is indented, as git does it, so that no line of it can pass for a header or for the next
 * message. Off a terminal the fence's delimiter does that, and the text stays as it was written. */
static void
add_body(struct cli *cli, struct buf *out, const struct mr_message *msg)
{
	char first[4000];
	mr_auto(buf_done) struct buf clean = BUF_IN(first);

	if (!msg->body)
		return;
	if (text_hides_body(cli, msg)) {
		buf_addf(out, "(a control message, for programs: --json shows it)\n");
		return;
	}
	(void)fence_add(&clean, (struct mr_str){ msg->body, msg->body_len }, out_form(cli, FENCE_TEXT), 0);
	out->failed |= clean.failed;
	for (struct mr_str rest = buf_str(&clean), line; str_cut(&rest, '\n', &line);) {
		buf_adds(out, !cli->budget.fenced && line.len > 0 ? "    " : "");
		buf_add(out, line);
		buf_addc(out, '\n');
	}
}

void
text_message(struct cli *cli, struct buf *out, uint64_t number, const struct mr_message *msg)
{
	char digits[24], first[200];
	mr_auto(buf_done) struct buf from = BUF_IN(first);

	/* Behind the line that opens the fence the first message needs none of its own. */
	if (cli->budget.fenced && (cli->budget.open || cli->budget.thread)) {
		buf_adds(out, "--- message ");
		buf_adds(out, cli->budget.mark);
		buf_adds(out, " ---\n");
	}
	(void)text_number(digits, number, 0);
	if (number > 0)
		add_header(cli, out, "Number", digits);
	text_name(cli, &from, msg->from);
	add_header(cli, out, "From", buf_z(&from));
	if (msg->proof == MR_UNPROVEN)
		add_header(cli, out, "Unproven", "another user of this room may have written it in that name");
	else if (msg->proof == MR_PROVEN)
		add_header(cli, out, "Proven", "yes");
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
	(void)text_number(digits, msg->attempt, 0);
	if (msg->attempt > (msg->folder == MR_HELD ? 1u : 0u)) /* a first attempt is not worth a line */
		add_header(cli, out, "Attempt", digits);
	for (size_t i = 0; i < msg->attachments_n; i++) {
		mr_auto(buf_done) struct buf line = BUF_INIT;
		const struct mr_attachment *a = &msg->attachments[i];

		buf_addf(&line, "%s, %llu bytes%s%s", a->type, (unsigned long long)a->size_bytes,
		    a->name[0] ? ", " : "", a->name);
		add_header(cli, out, "Attachment", buf_z(&line));
	}
	buf_addc(out, '\n');
	add_body(cli, out, msg);
	if (!cli->budget.fenced)
		buf_addc(out, '\n');
}
