/* SPDX-License-Identifier: MIT */
/* letter.c - a message as the first generation of the original writes it, byte for byte like JSON.stringify. */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "message/foreign.h"
#include "rooms/teams/teams.h"

/* A team acts on bodies of this form without asking who sent them. */
static enum mr_rc
check_body(const struct delivery *what, struct mr_str body, bool *ret_control, struct mr_error *err)
{
	mr_auto(buf_done) struct buf type = BUF_INIT, shown = BUF_INIT;

	if (!utf8_valid(body))
		return mr_fail(err, MR_REFUSED,
		    "a team's inbox holds text only, and this body is not UTF-8\n"
		    "put it in a file that the recipient can read, and mail the path");
	*ret_control = entry_control_type(body, &type);
	if (!*ret_control)
		return MR_OK;
	if (!buf_ok(&type) && type.failed)
		return mr_nomem(err);
	text_clean_line(&shown, utf8_cut(buf_str(&type), 40));
	if (what->carried || type.len == 0 || strcmp(what->msg->type, buf_z(&type)) != 0) {
		(void)mr_fail(
		    err, MR_REFUSED, "a team would take this body for a control message of type '%s'", buf_z(&shown));
		return what->carried
			   ? mr_hint(err, "from another room it can come only as prose")
			   : mr_hint(err, "--type '%s' says that you mean it; prose needs a word before the {",
				 buf_z(&shown));
	}
	return MR_OK;
}

/* The first generation shows a model the text as it is, between tags: what would close its block early gets a
 * backslash, as later generations do it. A control message is no text for a model. */
static void
add_text(struct buf *out, struct mr_str body)
{
	static const char tag[] = "</teammate-message";

	for (size_t i = 0; i < body.len; i++) {
		buf_addc(out, body.ptr[i]);
		if (body.ptr[i] == '<' && body.len - i >= sizeof(tag) - 1 &&
		    strncasecmp(body.ptr + i, tag, sizeof(tag) - 1) == 0)
			buf_addc(out, '\\');
	}
}

/* An import is the same message however often it is repeated, and another than one that reads alike: it is written as
 * the newest generation does it, with an id, which follows from the one it had. */
static void
make_msg_id(struct letter *l, const char *id)
{
	char hex[65];

	sha256_hex(str_of(id), hex);
	hex[12] = '8'; /* of our own making, as RFC 9562 numbers it */
	hex[16] = "89ab"[hex[16] & 3];
	(void)snprintf(
	    l->msg_id, sizeof l->msg_id, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

enum mr_rc
letter_make(struct letter *l, const struct delivery *what, struct mr_error *err)
{
	const struct mr_message *msg = what->msg;
	struct mr_str body = { msg->body ? msg->body : "", msg->body ? msg->body_len : 0 };
	const char *color = mr_message_header(msg, "Color");
	mr_auto(buf_done) struct buf raw = BUF_INIT;
	bool control = false;

	TRY(check_body(what, body, &control, err));
	*l = (struct letter){ 0 };
	foreign_from_address(msg->from, &raw);
	teams_attribute(&l->from, buf_str(&raw));
	teams_attribute(&l->summary, str_trim(str_of(msg->subject)));
	if (color)
		teams_attribute(&l->color, str_trim(str_of(color)));
	if (control)
		buf_add(&l->text, body);
	else
		add_text(&l->text, body);
	if (raw.failed || l->from.failed || l->summary.failed || l->color.failed || l->text.failed) {
		letter_done(l);
		return mr_nomem(err);
	}
	if (l->from.len == 0 || !str_eq(buf_str(&l->from), buf_str(&raw))) {
		letter_done(l);
		return mr_fail(err, MR_REFUSED,
		    "'%s' cannot be the sender of a message to a team\n"
		    "a name without quotes, angle brackets and line breaks is needed",
		    msg->from);
	}
	if (what->keep)
		make_msg_id(l, msg->id);
	letter_date(l, msg->date_ms);
	return MR_OK;
}

void
letter_date(struct letter *l, int64_t date_ms)
{
	char when[RFC3339_LEN + 1];

	l->date_ms = date_ms;
	time_rfc3339(date_ms, when);
	entry_id(buf_str(&l->from), str_of(when), buf_str(&l->text), str_of(l->msg_id), 0, l->id);
}

static void
add_member(struct buf *out, const char *key, struct mr_str value)
{
	buf_addf(out, "    \"%s\": ", key);
	json_stringify(out, value);
	buf_adds(out, ",\n");
}

void
letter_add(const struct letter *l, struct buf *out)
{
	char when[RFC3339_LEN + 1];

	time_rfc3339(l->date_ms, when);
	buf_adds(out, "  {\n");
	add_member(out, "from", buf_str(&l->from));
	add_member(out, "text", buf_str(&l->text));
	if (l->summary.len > 0)
		add_member(out, "summary", buf_str(&l->summary));
	add_member(out, "timestamp", str_of(when));
	if (l->color.len > 0)
		add_member(out, "color", buf_str(&l->color));
	if (l->msg_id[0]) {
		buf_adds(out, "    \"msgV\": 1,\n");
		add_member(out, "msg_id", str_of(l->msg_id));
		add_member(out, "type", STR("message"));
	}
	buf_adds(out, "    \"read\": false\n  }");
}

void
letter_done(struct letter *l)
{
	buf_done(&l->from);
	buf_done(&l->text);
	buf_done(&l->summary);
	buf_done(&l->color);
}
