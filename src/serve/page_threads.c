/* SPDX-License-Identifier: MIT */
/* page_threads.c - conversations: the list of them, one whole, and search. */
#include "base/clock.h"
#include "base/id.h"
#include "serve/page.h"

#define THREADS_SHOWN 100
#define LETTERS_LOOKED_AT 4000 /* of all mailboxes together, and at least LETTERS_EACH of each */
#define LETTERS_EACH 40
#define FATES_SHOWN 40

/* How many of each mailbox: the cost of a page follows what it shows, not the size of the room. */
static size_t
share_of_each(struct request *req)
{
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };

	(void)mr_agent_list(req->room, &agents, IGNORED);
	size_t each = LETTERS_LOOKED_AT / (agents.n ? agents.n : 1);

	return each < LETTERS_EACH ? LETTERS_EACH : each;
}

/* ---- The list ---- */

/* Of each conversation its newest message stays, which then tells of all of them. Letters come newest first; the
 * messages of one conversation are near each other, so it is looked for from the end. */
static void
group_threads(struct letters *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++) {
		struct letter *l = &all->v[i], *t = NULL;

		for (size_t k = n; k > 0 && !t; k--)
			t = strcmp(all->v[k - 1].thread, l->thread) == 0 ? &all->v[k - 1] : NULL;
		if (!t) {
			all->v[n++] = *l;
			continue;
		}
		t->subject = l->subject;
		t->letters += l->letters;
		t->priority = l->unread > 0 && l->priority > t->priority ? l->priority : t->priority;
		t->unread += l->unread;
	}
	all->n = n;
}

static const char *
given(const struct request *req, const char *name)
{
	const char *value = params_get(&req->query, name);

	return value && *value ? value : NULL;
}

static void
filter_form(struct buf *out, const struct request *req)
{
	static const char *const priorities[] = { "", "urgent", "high", "normal", "low" };
	const char *priority = given(req, "priority"), *agent = given(req, "agent"), *type = given(req, "type"),
		   *words = given(req, "q");

	html_addf(out,
	    "<form class=\"filters\" role=\"search\" aria-label=\"Filter\"><input type=\"search\" name=\"q\" value=\"%s\" placeholder=\"Words, from:bob, &quot;a phrase&quot;\" "
	    "aria-label=\"Words\"><input name=\"agent\" value=\"%s\" placeholder=\"Agent\" aria-label=\"Agent\" size=\"12\">"
	    "<input name=\"type\" value=\"%s\" placeholder=\"Type\" aria-label=\"Type\" size=\"10\">"
	    "<select name=\"priority\" aria-label=\"Priority\">",
	    words ? words : "", agent ? agent : "", type ? type : "");
	for (size_t i = 0; i < 5; i++)
		html_addf(out, "<option value=\"%s\"%s>%s</option>", priorities[i],
		    priority && strcmp(priority, priorities[i]) == 0 ? " selected" : "",
		    *priorities[i] ? priorities[i] : "any priority");
	html_addf(out,
	    "</select><label><input type=\"checkbox\" name=\"unread\" value=\"1\"%s> unread</label><button>Filter</button></form>\n",
	    given(req, "unread") ? " checked" : "");
}

static enum mr_rc
filter_of_query(const struct request *req, struct mr_filter *ret, enum mr_priority *priority, struct mr_error *err)
{
	const char *word = given(req, "priority");

	*ret =
	    (struct mr_filter){ .words = given(req, "q"), .type = given(req, "type"), .unread = given(req, "unread") };
	if (word) {
		TRY(mr_priority_parse(word, priority, err));
		ret->priority = priority;
	}
	return MR_OK;
}

enum mr_rc
page_threads(struct request *req, struct reply *reply, struct mr_error *err)
{
	mr_auto(letters_done) struct letters all = { 0 };
	struct buf *out = &reply->body;
	enum mr_priority priority;
	struct mr_filter filter;
	char more[64];

	TRY(filter_of_query(req, &filter, &priority, err));
	TRY(letters_load(req, given(req, "agent"), &filter, share_of_each(req), &all, err));
	group_threads(&all);
	size_t shown = all.n < THREADS_SHOWN ? all.n : THREADS_SHOWN;

	page_begin(reply, req, "Conversations");
	(void)snprintf(more, sizeof(more), all.n > shown ? "the newest %zu" : "%zu, the newest first", shown);
	page_head(out, "Conversations", more);
	filter_form(out, req);
	rows_begin(out, "threads");
	for (size_t i = 0; i < shown; i++)
		letter_row(out, &all.v[i], NULL);
	rows_end(out, shown, "No conversation", "Nothing was written yet, or the filter lets nothing through.");
	page_end(reply, req);
	return MR_OK;
}

/* ---- One of them ---- */

/* No message of a thread is older than its first one, whose id it has; a clock elsewhere may be behind. */
static int64_t
begin_of(const char *thread)
{
	return strlen(thread) == MR_ID_LEN && id_valid(str_of(thread)) ? id_time_ms(thread) - (int64_t)3600 * 1000 : 0;
}

static void
reply_form(struct reply *reply, struct request *req, const struct letters *all)
{
	struct buf *out = &reply->body;
	const struct letter *to = NULL;
	char nonce[MR_TOKEN_LEN + 1];

	/* The newest that somebody else wrote; all->v is newest first. */
	for (size_t i = 0; i < all->n && !to; i++)
		to = strcmp(all->v[i].from, OPERATOR_NAME) != 0 ? &all->v[i] : NULL;
	if (!to || !req->may_write)
		return;
	buf_adds(out, "<section class=\"mail\" id=\"reply\"><h2 class=\"group\">Answer</h2>");
	form_begin(reply, req, "/do/reply");
	token_new(nonce);
	html_addf(out,
	    "<input type=\"hidden\" name=\"id\" value=\"%s\"><input type=\"hidden\" name=\"nonce\" value=\"%s\"><p class=\"soft\">To ",
	    to->id, nonce);
	page_address(out, to->from);
	html_addf(out,
	    ", as an answer to \u201c%s\u201d</p><p><label class=\"hidden\" for=\"body\">Text</label>"
	    "<textarea id=\"body\" name=\"body\" required rows=\"5\"></textarea></p><div class=\"actions\"><button class=\"first\">Send</button>",
	    to->subject);
	if (to->mine && to->to.n > 1)
		buf_adds(out,
		    "<label><input type=\"checkbox\" name=\"all\" value=\"1\"> also to its other recipients</label>");
	buf_adds(out, "</div></form></section>\n");
}

enum mr_rc
page_thread(struct request *req, struct reply *reply, struct mr_error *err)
{
	mr_auto(letters_done) struct letters all = { .bodies = true };
	struct letter named = { .thread = req->rest };
	const char *agent = letter_find(req, req->rest, &named); /* the path names a thread, or any message of it */
	struct mr_filter filter = { .thread = named.thread, .since_ms = begin_of(named.thread) };
	struct buf *out = &reply->body;

	TRY(letters_load(req, agent, &filter, 0, &all, err));
	if (all.n == 0)
		return mr_fail(
		    err, MR_NOTFOUND, "no conversation '%.60s' in this room\nSearch finds what there is", req->rest);
	const struct letter *first = &all.v[all.n - 1];

	page_begin(reply, req, *first->subject ? first->subject : "(no subject)");
	html_addf(out, "<div class=\"head\"><h1>%s</h1><p class=\"soft\">",
	    *first->subject ? first->subject : "(no subject)");
	page_count(out, all.n, "message");
	buf_adds(out, "</p><div class=\"actions\">");
	page_link(out, "/picture?thread=", first->thread, "button", "Picture");
	if (req->may_write)
		buf_adds(out, "<a class=\"button\" href=\"#reply\" data-reply>Answer</a>");
	buf_adds(out, "</div></div>\n<div data-part=\"thread\">");
	for (size_t i = all.n; i > 0; i--) {
		const struct letter *l = &all.v[i - 1];

		letter_whole(reply, req, l, first->subject, i <= FATES_SHOWN);
		if (l->mine && l->unread > 0) {
			buf_adds(out, "<div class=\"actions\">");
			page_button(reply, req, "/do/mark", "Mark read", "", FIELDS({ "id", l->id }));
			buf_adds(out, "</div>");
		}
		buf_adds(out, "</article>\n");
	}
	buf_adds(out, "</div>\n");
	reply_form(reply, req, &all);
	page_end(reply, req);
	return MR_OK;
}

/* ---- Search ---- */

enum mr_rc
page_search(struct request *req, struct reply *reply, struct mr_error *err)
{
	mr_auto(letters_done) struct letters all = { .bodies = true };
	mr_auto(query_done) struct query query = { 0 };
	struct mr_filter filter = { .words = given(req, "q") };
	struct buf *out = &reply->body;
	char more[64] = "";

	if (filter.words) {
		TRY(query_parse(str_of(filter.words), &query, err));
		TRY(letters_load(req, NULL, &filter, LETTERS_EACH, &all, err));
		(void)snprintf(more, sizeof(more), "%zu found, the newest first", all.n);
	}
	page_begin(reply, req, "Search");
	page_head(out, "Search", more);
	html_addf(out,
	    "<form class=\"filters\" role=\"search\"><input type=\"search\" name=\"q\" id=\"q\" value=\"%s\" aria-label=\"Search all mail\" "
	    "placeholder=\"Words, &quot;a phrase&quot;, prefix*, from:bob, -word\"><button class=\"first\">Search</button></form>\n",
	    filter.words ? filter.words : "");
	rows_begin(out, "found");
	for (size_t i = 0; i < all.n && i < THREADS_SHOWN; i++)
		letter_row(out, &all.v[i], &query);
	rows_end(out, all.n, filter.words ? "Nothing found" : "All mail of all agents",
	    "Fewer words find more; a word may end in * for all that begin with it.");
	page_end(reply, req);
	return MR_OK;
}
