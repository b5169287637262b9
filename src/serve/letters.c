/* SPDX-License-Identifier: MIT */
/*
 * letters.c - mail of the whole room. A mailbox shows one agent's copies; the operator asks for the message, so copies
 * with the same id are one letter here. Then how a letter looks: a row of a list, or whole with what became of it.
 */
#include "base/clock.h"
#include "base/id.h"
#include "message/message.h"
#include "serve/page.h"

#define LETTERS_LOOKED_AT 1000 /* of all mailboxes together, and at least LETTERS_EACH of each */

/* ---- Loading ---- */

static bool
note_letter(void *ctx, const struct mr_message *msg)
{
	struct letters *all = ctx;

	if (!array_grow(&all->v, all->n, &all->cap, sizeof(*all->v)))
		return all->failed = true, false;
	struct letter *l = &all->v[all->n];
	struct mr_message said = *msg;

	said.headers_n = said.envelope_n = 0; /* nobody asks for them here */
	*l = (struct letter){ .letters = 1, .agent = all->agent, .mine = strcmp(all->agent, OPERATOR_NAME) == 0 };
	if (message_copy(&said, &l->is, IGNORED) != MR_OK)
		return all->failed = true, false;
	all->n++;
	l->unread = msg->folder != MR_SENT && msg->folder != MR_ARCHIVE && !(msg->flags & MR_SEEN);
	if (all->json) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		struct json j = JSON_INIT(&text);

		json_message(&j, msg, all->room, all->bodies);
		l->json = arena_dup(&all->own, buf_str(&text));
		all->failed |= !l->json || text.failed;
	}
	return !all->failed;
}

static int
newest_first(const void *a, const void *b)
{
	const struct letter *x = a, *y = b;

	return strcmp(y->is.id, x->is.id);
}

enum mr_rc
room_agents(struct mr_room *room, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };

	if (ret->n > 0) /* of this request */
		return MR_OK;
	TRY(mr_agent_list(room, &agents, err));
	for (size_t i = 0; i < agents.n; i++)
		TRY(mr_got(names_add(ret, str_of(agents.v[i].name)), err));
	return MR_OK;
}

static const struct letter *
known_letter(const struct letters *all, const struct letter *key)
{
	return all && all->known > 0 ? bsearch(key, all->v, all->known, sizeof(*all->v), newest_first) : NULL;
}

static bool
is_new(void *ctx, const char *id)
{
	const struct letters *all = ctx;
	struct letter key;

	if (id_time_ms(id) < all->whole_ms || (all->before_ms && id_time_ms(id) >= all->before_ms) ||
	    (all->only && strcmp(all->only, id) != 0))
		return false;
	text_join(key.is.id, sizeof(key.is.id), id, NULL);
	const struct letter *seen = all->sent ? known_letter(all->seen, &key) : NULL;

	return !known_letter(all, &key) && !(seen && seen->is.folder != MR_SENT);
}

/* Of one mailbox. With a limit, mail may be missing before the oldest that was found: nothing older is shown then. */
static enum mr_rc
load_box(struct request *req, const char *agent, const struct mr_scan *scan, struct letters *ret, struct mr_error *err)
{
	size_t from = ret->n;

	ret->agent = arena_keep(&ret->own, str_of(agent), &ret->failed);
	enum mr_rc rc = mr_scan(req->room, agent, scan, note_letter, ret, err);

	if (scan->limit && ret->n - from >= scan->limit && id_time_ms(ret->v[ret->n - 1].is.id) > ret->whole_ms)
		ret->whole_ms = id_time_ms(ret->v[ret->n - 1].is.id);
	return rc;
}

/* Copies of a message are one letter, those before ret->whole_ms are none. */
static void
merge(struct letters *ret)
{
	size_t kept = 0;

	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), newest_first);
	for (size_t i = 0; i < ret->n; i++) {
		struct letter *l = &ret->v[i], *last = kept > 0 ? &ret->v[kept - 1] : NULL;
		bool shown = id_time_ms(l->is.id) >= ret->whole_ms, copy = last && strcmp(last->is.id, l->is.id) == 0;

		if (shown && !copy) {
			ret->v[kept++] = *l;
			continue;
		}
		if (shown) {
			last->unread += l->unread;
			last->mine |= l->mine;
		}
		mr_message_done(&l->is);
	}
	ret->n = ret->known = kept;
}

size_t
letters_share(struct request *req, size_t most)
{
	(void)room_agents(req->room, &req->agents, IGNORED);
	size_t each = LETTERS_LOOKED_AT / (req->agents.n ? req->agents.n : 1);

	each = each < LETTERS_EACH ? LETTERS_EACH : each;
	return each < most ? each : most;
}

enum mr_rc
letters_load(struct request *req, const char *agent, const struct mr_filter *filter, size_t limit, struct letters *ret,
    struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names agents = { 0 };
	struct mr_scan scan = { .filter = *filter, .order = MR_NEWEST_FIRST, .limit = limit, .wants = is_new };
	bool all = filter->folders == 0;
	bool follow = all && agent && filter->thread && req->who != WHO_AGENT; /* other mailboxes are not an agent's */

	ret->room = req->room;
	scan.bodies = ret->bodies;
	if (all)
		scan.filter.folders =
		    follow ? MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT : MR_INBOX | MR_HELD | MR_ARCHIVE;
	if (!agent)
		TRY(room_agents(req->room, &req->agents, err));
	for (size_t i = 0; i < (agent ? 1 : req->agents.n); i++)
		TRY(mr_got(names_add(&agents, str_of(agent ? agent : req->agents.v[i])), err));
	for (size_t i = 0; i < agents.n; i++) {
		size_t from = ret->n;

		scan.ids_since_ms = ret->whole_ms;
		enum mr_rc rc = load_box(req, agents.v[i], &scan, ret, err);

		if (rc != MR_OK && (i == 0 || (rc != MR_NOTFOUND && rc != MR_REFUSED)))
			return rc; /* else it was pruned, or is no agent of this room */
		for (size_t k = from; follow && k < ret->n; k++) {
			const struct mr_message *msg = &ret->v[k].is;

			ret->failed |= !names_add_once(&agents, msg->from);
			for (size_t n = 0; n < msg->to.n + msg->cc.n; n++) {
				const char *name = n < msg->to.n ? msg->to.v[n] : msg->cc.v[n - msg->to.n];

				ret->failed |= !strchr(name, ':') && !names_add_once(&agents, name);
			}
		}
	}
	/* What was sent and is in nobody's mailbox: work, posts, mail to other rooms. */
	scan.filter.folders = MR_SENT;
	merge(ret);
	ret->sent = true;
	for (size_t i = 0; i < agents.n && all && !follow; i++) {
		scan.ids_since_ms = ret->whole_ms;
		TRY(load_box(req, agents.v[i], &scan, ret, err));
	}
	if (ret->failed)
		return mr_nomem(err);
	merge(ret);
	return MR_OK;
}

static const char *
given(const struct request *req, const char *name)
{
	const char *value = params_get(&req->query, name);

	return value && *value ? value : NULL;
}

enum mr_rc
letters_filter(const struct request *req, struct letters_filter *ret, struct mr_error *err)
{
	const char *priority = given(req, "priority"), *since = given(req, "since"), *before = given(req, "before");
	const char *unread = given(req, "unread");

	*ret = (struct letters_filter){ .agent = given(req, "agent"),
		.is = { .words = given(req, "q"),
		    .from = given(req, "from"),
		    .type = given(req, "type"),
		    .thread = given(req, "thread"),
		    .unread = unread && strcmp(unread, "false") != 0 } };
	if (req->who == WHO_AGENT && ret->agent && strcmp(ret->agent, req->agent) != 0)
		return mr_fail(err, MR_UNTRUSTED, "the token of '%s' opens only its own mailbox", req->agent);
	if (req->who == WHO_AGENT)
		ret->agent = req->agent;
	if (since)
		TRY(mr_time_parse(since, &ret->is.since_ms, err));
	if (before)
		TRY(mr_time_parse(before, &ret->is.before_ms, err));
	if (priority) {
		TRY(mr_priority_parse(priority, &ret->priority, err));
		ret->is.priority = &ret->priority;
	}
	return MR_OK;
}

/* Of each conversation its newest message stays, which then tells of all of them. Letters come newest first, and the
 * messages of one conversation are near each other: it is looked for from the end. */
static void
letters_group(struct letters *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++) {
		struct letter *l = &all->v[i], *t = NULL;

		for (size_t k = n; k > 0 && !t; k--)
			t = strcmp(all->v[k - 1].is.thread, l->is.thread) == 0 ? &all->v[k - 1] : NULL;
		if (!t) {
			all->v[n++] = *l;
			continue;
		}
		t->letters += l->letters;
		t->unread += l->unread;
		if (l->unread > 0 && l->is.priority > t->is.priority)
			t->is.priority = l->is.priority;
		char *subject = arena_dup(&all->own, str_of(l->is.subject));

		t->is.subject = subject ? subject : "";
		mr_message_done(&l->is);
	}
	all->n = n;
}

/* Where a mailbox has more than n, n letters are known to be the newest of all; they may be of a few conversations. */
enum mr_rc
letters_threads(
    struct request *req, const struct letters_filter *filter, size_t n, struct letters *ret, struct mr_error *err)
{
	size_t most = letters_share(req, SIZE_MAX), each = most < n ? most : n;

	for (;; each = most, *ret = (struct letters){ 0 }) {
		TRY(letters_load(req, filter->agent, &filter->is, each, ret, err));
		letters_group(ret);
		if (each == most || ret->n >= n || ret->whole_ms == 0)
			return MR_OK;
		letters_done(ret);
	}
}

/* Where an id says that its message is: in new mail, or in the month of that time. Only what a hand has put elsewhere
 * costs a look into every month. */
const char *
letter_find(struct request *req, const char *id, struct mr_message *ret)
{
	mr_auto(letters_done) struct letters near = { .only = id };
	int64_t at_ms = strlen(id) == MR_ID_LEN && id_valid(str_of(id)) ? id_time_ms(id) : 0;

	if (at_ms == 0)
		return NULL;
	(void)letters_load(
	    req, NULL, &(struct mr_filter){ .since_ms = at_ms, .before_ms = at_ms + 1 }, 0, &near, IGNORED);
	for (size_t i = 0; i < near.n; i++)
		if (strcmp(near.v[i].is.id, id) == 0) {
			*ret = near.v[i].is;
			near.v[i].is = (struct mr_message){ 0 };
			return arena_dup(&req->own, str_of(near.v[i].agent));
		}
	for (size_t i = 0; i < req->agents.n; i++)
		if (mr_fetch(req->room, req->agents.v[i], id, ret, IGNORED) == MR_OK)
			return req->agents.v[i];
	return NULL;
}

void
letters_done(struct letters *letters)
{
	for (size_t i = 0; i < letters->n; i++)
		mr_message_done(&letters->v[i].is);
	free(letters->v);
	arena_free(letters->own);
}

/* ---- A row ---- */

void
letter_way(struct buf *out, const struct mr_message *msg)
{
	page_address(out, msg->from);
	buf_adds(out, " \u2192 ");
	page_addresses(out, &msg->to, &msg->cc);
}

static void
letter_tags(struct buf *out, const struct mr_message *msg)
{
	if (*msg->type)
		page_tag(out, "", msg->type);
	if (msg->priority >= MR_HIGH)
		page_tag(out, msg->priority == MR_URGENT ? "now" : "soon", mr_priority_word(msg->priority));
}

void
letter_row(struct buf *out, const struct letter *l, const struct query *query)
{
	const struct mr_message *msg = &l->is;
	struct query_snippet s;

	row_begin(out, msg->id, l->unread > 0 ? "letter unread" : "letter", "/thread/", msg->thread,
	    page_subject(msg->subject));
	letter_tags(out, msg);
	if (l->letters > 1)
		html_addf(out, "<span class=\"soft\">%zu messages</span>", l->letters);
	if (l->unread > 0)
		html_addf(out, "<span class=\"soft\">%zu unread</span>", l->unread);
	buf_adds(out, ROW_WHY);
	letter_way(out, msg);
	if (query && query_snippet(query, (struct mr_str){ msg->body, msg->body_len }, &s)) {
		buf_adds(out, "</span></div><div class=\"hit\"><span>");
		html_text(out, s.before);
		buf_adds(out, "<mark>");
		html_text(out, s.hit);
		buf_adds(out, "</mark>");
		html_text(out, s.after);
	}
	buf_adds(out, ROW_WHEN);
	page_time(
	    out, id_time_ms(msg->id)); /* when it came; a dead letter that was delivered again has an older date */
	buf_adds(out, ROW_END);
}

/* ---- The text: what stands between ``` or ` is code ---- */

static void
add_inline(struct buf *out, struct mr_str line)
{
	struct mr_str before, code, rest;

	while (str_split(line, '`', &before, &rest) && rest.len > 0 && rest.ptr[0] != '`' &&
	       str_split(rest, '`', &code, &rest)) {
		html_text(out, before);
		buf_adds(out, "<code>");
		html_text(out, code);
		buf_adds(out, "</code>");
		line = rest;
	}
	html_text(out, line);
}

static void
letter_text(struct buf *out, struct mr_str body)
{
	struct mr_str line;
	bool code = false;

	buf_adds(out, "<div class=\"text\">");
	while (str_line(&body, &line)) {
		if (str_starts(line, "```")) {
			while (!code && out->len > 0 && out->ptr[out->len - 1] == '\n')
				out->len--; /* the block has space around it */
			buf_adds(out, code ? "</pre>" : "<pre tabindex=\"0\">");
			code = !code;
			continue;
		}
		if (code)
			html_text(out, line);
		else
			add_inline(out, line);
		buf_addc(out, '\n');
	}
	buf_adds(out, code ? "</pre></div>" : "</div>");
}

/* ---- What became of it: a ladder for each recipient ---- */

/* The states of a message in the order in which it goes through them; the last ones end it badly. */
enum { STORED, BAD = 5 };
static const struct step {
	const char *state;
	int rung;
	enum { NOT, MAIL, WORK } waits; /* whose mail waits for it */
} steps[] = { { "announced", 1, MAIL }, { "held", 2, NOT }, { "claimed", 2, WORK }, { "read", 3, MAIL },
	{ "archived", 3, NOT }, { "answered", 4, MAIL }, { "done", 4, WORK }, { "dead", BAD, NOT },
	{ "dropped", BAD, NOT }, { "purged", BAD, NOT }, { "nowhere", BAD, NOT }, { "failed", BAD, NOT },
	{ "vanished", BAD, NOT } };
/* All others are as good as stored: unread, ready, delayed, released, came back, pending, carried. */

static int
rung_of(const char *state)
{
	for (const struct step *step = steps; step < steps + sizeof(steps) / sizeof(steps[0]); step++)
		if (strcmp(step->state, state) == 0)
			return step->rung;
	return STORED;
}

static void
add_rung(struct buf *out, const char *class, const char *word, int64_t at_ms)
{
	html_addf(out, "<li class=\"%s\">%s ", class, word);
	page_at(out, at_ms);
	buf_adds(out, "</li>");
}

/* Rungs below the highest that was reached are shown only with evidence of their own: nobody saw the others. */
static void
add_ladder(struct buf *out, const struct mr_message *msg, const struct mr_trails *f, const char *whose)
{
	const struct mr_trail *at[BAD + 1] = { 0 };
	bool queue = str_starts(str_of(whose), "queue:");
	int top = STORED;

	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->v[i].agent, whose) == 0) {
			int rung = rung_of(f->v[i].state);

			at[rung] = &f->v[i];
			top = rung > top ? rung : top;
		}
	html_addf(out, "<details data-key=\"%s %s\"><summary><span class=\"whose\">%s</span><ol class=\"ladder\">",
	    msg->id, whose, *whose ? whose : "room");
	add_rung(out, "done", "stored", msg->date_ms);
	for (const struct step *step = steps; step < steps + sizeof(steps) / sizeof(steps[0]); step++)
		if (at[step->rung] && strcmp(at[step->rung]->state, step->state) == 0)
			add_rung(out, step->rung == BAD ? "bad" : "done",
			    strcmp(step->state, "held") == 0 ? "in its hands" : step->state, at[step->rung]->at_ms);
		else if (!at[step->rung] && top < step->rung && step->waits == (queue ? WORK : MAIL))
			add_rung(out, "", step->state, 0);
	buf_adds(out, "</ol></summary><ul class=\"evidence\">");
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->v[i].agent, whose) == 0) {
			html_addf(out, "<li>%s: ", f->v[i].state);
			page_evidence(out, f->v[i].evidence);
			buf_adds(out, "</li>");
		}
	buf_adds(out, "</ul></details>");
}

static void
letter_fate(struct buf *out, struct request *req, const struct mr_message *msg)
{
	mr_auto(mr_list_done) struct mr_trails all = { 0 };
	bool work = msg->to.n == 1 && msg->cc.n == 0 && str_starts(str_of(msg->to.v[0]), "queue:");
	struct mr_trails told;

	(void)mr_why(req->room, &req->self, msg->id, &all, IGNORED);
	told = all;
	told.n = 0;
	for (size_t i = 0; i < all.n; i++) {
		all.v[i].agent = work ? msg->to.v[0] : all.v[i].agent; /* all that is known is known of that work */
		if (strcmp(all.v[i].state, "sent") != 0)
			told.v[told.n++] = all.v[i];
	}
	buf_adds(out, told.n > 0 ? "<div class=\"fate\">" : "");
	for (size_t i = 0; i < told.n; i++) {
		size_t first = 0;

		while (strcmp(told.v[first].agent, told.v[i].agent) != 0)
			first++;
		if (first == i)
			add_ladder(out, msg, &told, told.v[i].agent);
	}
	buf_adds(out, told.n > 0 ? "</div>" : "");
}

void
letter_whole(struct request *req, const struct mr_message *msg, const char *above, bool fate)
{
	struct buf *out = req->out;
	const char *subject = msg->subject + (str_casestarts(str_of(msg->subject), "re: ") ? strlen("re: ") : 0);

	html_addf(out, "<article class=\"mail\" id=\"%s\" data-key=\"%s\"><header class=\"line\"><span class=\"way\">",
	    msg->id, msg->id);
	letter_way(out, msg);
	buf_adds(out, "</span>");
	letter_tags(out, msg);
	if (msg->by_ms > 0) {
		bool late = msg->by_ms < clock_now_ms();

		buf_adds(out,
		    late ? "<span class=\"tag now\">answer was wanted " : "<span class=\"tag soon\">answer wanted ");
		page_time(out, msg->by_ms);
		buf_adds(out, late ? " ago</span>" : "</span>");
	}
	page_time(out, msg->date_ms);
	buf_adds(out, "</header>");
	if (strcmp(subject, above) != 0)
		html_addf(out, "<h2 class=\"subject\">%s</h2>", msg->subject);
	letter_text(out, (struct mr_str){ msg->body, msg->body_len });
	for (size_t i = 0; i < msg->attachments_n; i++)
		html_addf(out, i > 0 ? ", %s (%s, %zu bytes)" : "<p class=\"soft\">Attached: %s (%s, %zu bytes)",
		    msg->attachments[i].name, msg->attachments[i].type, (size_t)msg->attachments[i].size_bytes);
	buf_adds(out, msg->attachments_n > 0 ? "</p>" : "");
	if (fate)
		letter_fate(out, req, msg);
}
