/* SPDX-License-Identifier: MIT */
/*
 * page_write.c - writing and answering as the operator, and the actions behind the buttons. An action is one call of
 * mr_*, then a redirect to the page that it came from: killed in between, it was done or not.
 *
 * Nothing is sent to an address that the operator has not seen resolved: the field "seen" has what the resolution shown
 * was for. The script fills it in as it shows one; without script the first press shows it, the second sends.
 */
#include "base/id.h"
#include "serve/page.h"

#define RECIPIENTS_MAX 64
#define LOOKED_UP 100 /* of the targets of an address: is it live? */

/* ---- Coming back ---- */

static enum mr_rc
go_back(struct request *req, const char *path, const char *note, const char *anchor)
{
	mr_auto(buf_done) struct buf to = BUF_INIT;
	bool ours = path[0] == '/' && path[1] != '/' && path[1] != '\\';

	url_add(&to, ours ? path : "/", URL_PATH); /* a path of ours is read again as a path */
	buf_addf(&to, "?note=%s%s%s", note, *anchor ? "#" : "", anchor);
	char *kept = arena_dup(&req->own, buf_str(&to));

	req->reply->status = 303;
	reply_header(req, "Location", kept ? kept : "/");
	return MR_OK;
}

static enum mr_rc
done(struct request *req, const char *note)
{
	return go_back(req, req_value(req, "back"), note, "");
}

/* ---- What an address means ---- */

static bool
is_live(struct request *req, const char *name)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };

	return strpbrk(name, ":@") || strcmp(name, OPERATOR_NAME) == 0 ||
	       (mr_agent_get(req->room, name, &agent, IGNORED) == MR_OK &&
		   (!mr_room_has(req->room, MR_HAS_LIVES) || (agent.life > 0 && mr_agent_presence(&agent) != MR_GONE)));
}

/* "7 agents, 2 not live: ..."; false: it cannot be sent there. */
static bool
add_resolution(struct buf *out, struct request *req, const char *address)
{
	mr_auto(mr_resolution_done) struct mr_resolution r = { 0 };
	struct mr_error err = { 0 };
	size_t gone = 0;

	if (mr_resolve(req->room, req->self.agent, address, &r, &err) != MR_OK) {
		html_addf(out, "<li class=\"now\"><b>%s</b>: %s; %s</li>", address, err.message, err.hint);
		return false;
	}
	for (size_t i = 0; i < r.targets.n && i < LOOKED_UP; i++)
		gone += !is_live(req, r.targets.v[i]);
	html_addf(out, "<li class=\"%s\"><b>%s</b> is %s %s: ", gone > 0 ? "soon" : "good", address,
	    strchr("aeiou", r.form[0]) ? "an" : "a", r.form);
	page_count(out, r.targets.n, strchr(r.targets.n ? r.targets.v[0] : "", ':') ? "target" : "agent");
	if (gone > 0)
		html_addf(out, ", %zu not live", gone);
	buf_adds(out, " (");
	page_addresses(out, &r.targets, NULL);
	buf_adds(out, ")");
	for (size_t i = 0; i < r.trouble.n; i++)
		html_addf(out, "; %s", r.trouble.v[i]);
	buf_adds(out, "</li>");
	return r.targets.n > 0;
}

/* The words of the field; the last place is NULL. */
static size_t
split_addresses(struct request *req, const char *text, const char *ret[RECIPIENTS_MAX + 1])
{
	struct mr_str rest = str_of(text), word;
	size_t n = 0;

	while (n < RECIPIENTS_MAX && str_word(&rest, " ,;\t\r\n", &word) && (ret[n] = arena_dup(&req->own, word)))
		n++;
	ret[n] = NULL;
	return n;
}

/* ---- The form ---- */

static void
write_form(struct request *req, const struct mr_error *trouble)
{
	static const char *const priorities[] = { "normal", "urgent", "high", "low" };
	const char *to[RECIPIENTS_MAX + 1], *chosen = req_value(req, "priority"), *nonce = req_value(req, "nonce");
	size_t n = split_addresses(req, req_value(req, "to"), to);
	struct buf *out = req->out;
	char fresh[MR_TOKEN_LEN + 1];
	bool good = n > 0;

	token_new(fresh);
	page_begin(req, "Write", "as the operator");
	if (trouble)
		html_addf(out, "<div class=\"trouble\" role=\"alert\"><p>%s</p><p class=\"soft\">%s</p></div>\n",
		    trouble->message, trouble->hint);
	form_begin(req, "/do/send");
	html_addf(out,
	    "<div class=\"fields\"><label for=\"to\">To</label><input id=\"to\" name=\"to\" required value=\"%s\" autocomplete=\"off\" "
	    "placeholder=\"bob, group:builders, queue:reviews, @all\"><div class=\"wide\" data-part=\"resolution\" id=\"resolution\" aria-live=\"polite\">",
	    req_value(req, "to"));
	if (n > 0)
		buf_adds(out, "<ul class=\"resolution\">");
	for (size_t i = 0; i < n; i++)
		good &= add_resolution(out, req, to[i]);
	buf_adds(out, n > 0 ? "</ul>" : "");
	html_addf(out,
	    "<input type=\"hidden\" name=\"seen\" value=\"%s\"></div><label for=\"subject\">Subject</label><input id=\"subject\" "
	    "name=\"subject\" value=\"%s\" placeholder=\"the first line of the text\"><label for=\"priority\">Priority</label>"
	    "<div><select id=\"priority\" name=\"priority\">",
	    good ? req_value(req, "to") : "", req_value(req, "subject"));
	for (size_t i = 0; i < 4; i++)
		html_addf(
		    out, "<option%s>%s</option>", strcmp(chosen, priorities[i]) == 0 ? " selected" : "", priorities[i]);
	buf_adds(out,
	    "</select></div><label for=\"body\">Text</label><textarea id=\"body\" name=\"body\" required rows=\"12\">\n");
	html_value(out, req_value(req, "body"));
	html_addf(out,
	    "</textarea><input type=\"hidden\" name=\"nonce\" value=\"%s\"><div class=\"wide actions\"><button class=\"first\">%s</button>"
	    "<span class=\"soft\">%s</span></div></div></form>\n",
	    *nonce ? nonce : fresh, good ? "Send" : "Continue",
	    good ? "" : "Nothing is sent before you have seen where it would go.");
}

enum mr_rc
page_write(struct request *req, struct mr_error *err)
{
	(void)err;
	write_form(req, NULL);
	return MR_OK;
}

/* ---- Sending ---- */

/* The same form sent twice, by a double click or by going back, is one message; other text in it is another. */
static const char *
send_key(struct request *req)
{
	mr_auto(buf_done) struct buf all = BUF_INIT;
	char hash[65];

	if (!mr_room_has(req->room, MR_HAS_LIVES))
		return NULL; /* rooms of other programs have no keys */
	buf_addf(&all, "%s\n%s\n%s\n%s\n%s", req_value(req, "nonce"), req_value(req, "to"), req_value(req, "id"),
	    req_value(req, "subject"), req_value(req, "body"));
	sha256_hex(buf_str(&all), hash);
	hash[32] = '\0';
	return *req_value(req, "nonce") ? arena_dup(&req->own, str_of(hash)) : NULL;
}

static enum mr_rc
sent(struct request *req, enum mr_rc rc, const struct mr_receipt *receipt)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	buf_addf(&path, "/thread/%s", receipt->id);
	return go_back(req, buf_z(&path), rc == MR_OK ? "sent" : "doubt", receipt->id);
}

enum mr_rc
do_send(struct request *req, struct mr_error *err)
{
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	const char *to[RECIPIENTS_MAX + 1], *subject = req_value(req, "subject");
	struct mr_draft draft = {
		.to = to, .subject = *subject ? subject : NULL, .body = req_value(req, "body"), .key = send_key(req)
	};
	struct mr_error trouble = { 0 };

	draft.body_len = strlen(draft.body);
	if (split_addresses(req, req_value(req, "to"), to) == 0 ||
	    strcmp(req_value(req, "seen"), req_value(req, "to")) != 0) {
		write_form(req, NULL);
		return MR_OK;
	}
	enum mr_rc rc = *req_value(req, "priority")
			    ? mr_priority_parse(req_value(req, "priority"), &draft.priority, &trouble)
			    : MR_OK;

	draft.priority_given = *req_value(req, "priority") && draft.priority != MR_NORMAL;
	if (rc == MR_OK)
		rc = mr_send(req->room, &req->self, &draft, &receipt, &trouble);
	if (rc == MR_OK || rc == MR_INDOUBT)
		return sent(req, rc, &receipt);
	if (rc != MR_REFUSED && rc != MR_NOTFOUND) {
		*err = trouble;
		return rc;
	}
	write_form(req, &trouble); /* what was written is not lost */
	req->reply->status = status_of(rc);
	return MR_OK;
}

/* A message that the operator has no copy of is not the operator's to answer: it gets a word in the same conversation.
 */
static enum mr_rc
send_into_thread(struct request *req, struct mr_draft *draft, struct mr_receipt *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT;
	mr_auto(mr_message_done) struct mr_message msg = { 0 };

	if (!letter_find(req, req_value(req, "id"), &msg))
		return mr_fail(
		    err, MR_NOTFOUND, "the message '%.40s' is no longer in any mailbox", req_value(req, "id"));
	const char *const to[] = { msg.from, NULL };

	buf_addf(&subject, "%s%s", str_casestarts(str_of(msg.subject), "re:") ? "" : "Re: ", msg.subject);
	draft->to = to;
	draft->subject = buf_z(&subject);
	draft->thread = msg.thread;
	return mr_send(req->room, &req->self, draft, ret, err);
}

enum mr_rc
do_reply(struct request *req, struct mr_error *err)
{
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	mr_auto(mr_message_done) struct mr_message own = { 0 };
	struct mr_draft draft = {
		.body = req_value(req, "body"), .body_len = strlen(req_value(req, "body")), .key = send_key(req)
	};
	bool mine = mr_fetch(req->room, req->self.agent, req_value(req, "id"), &own, err) == MR_OK;
	enum mr_rc rc = mine ? mr_reply(req->room, &req->self, req_value(req, "id"), &draft,
				   *req_value(req, "all") != '\0', &receipt, err)
			     : send_into_thread(req, &draft, &receipt, err);

	return rc == MR_OK || rc == MR_INDOUBT ? sent(req, rc, &receipt) : rc;
}

/* ---- The buttons ---- */

enum mr_rc
do_mark(struct request *req, struct mr_error *err)
{
	TRY(mr_mark(req->room, &req->self, req_value(req, "id"), MR_SEEN, 0, err));
	TRY(mr_flush(req->room, err));
	return done(req, "mark");
}

enum mr_rc
do_nudge(struct request *req, struct mr_error *err)
{
	const struct mr_nudge nudge = {
		.text = "the operator asks you to look at your mail", .kind = "", .thread = ""
	};
	const struct mr_nudge_options options = { .mode = MR_NUDGE_WAIT_IDLE };
	struct mr_nudged nudged = { 0 };

	TRY(mr_nudge_send(req->room, &req->self, req_value(req, "agent"), &nudge, &options, &nudged, err));
	return done(req, nudged.way == MR_NUDGE_QUEUED ? "nudge-queued" : "nudge");
}

enum mr_rc
do_release(struct request *req, struct mr_error *err)
{
	const struct mr_release how = { .reason = "by the operator" };
	char id[MR_ID_LEN + 1];

	TRY(mr_claim_release(req->room, &req->self, req_value(req, "id"), &how, id, err));
	return done(req, "release");
}

enum mr_rc
do_retry(struct request *req, struct mr_error *err)
{
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	enum mr_rc rc = mr_dead_retry(req->room, &req->self, req_value(req, "id"), NULL, &receipt, err);

	return rc == MR_OK || rc == MR_INDOUBT ? done(req, rc == MR_OK ? "retry" : "doubt") : rc;
}

enum mr_rc
do_drop(struct request *req, struct mr_error *err)
{
	TRY(mr_dead_drop(req->room, &req->self, req_value(req, "id"), err));
	return done(req, "drop");
}

enum mr_rc
do_queue(struct request *req, struct mr_error *err)
{
	bool pause = strcmp(req_value(req, "status"), "pause") == 0;

	TRY(mr_queue_set_status(req->room, req_value(req, "queue"), pause ? MR_QUEUE_PAUSED : MR_QUEUE_ACTIVE, err));
	return done(req, "queue");
}
