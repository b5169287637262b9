/* SPDX-License-Identifier: MIT */
/* page_threads.c - conversations: the list of them, one whole, and search. */
#include "base/clock.h"
#include "base/id.h"
#include "serve/page.h"

#define THREADS_SHOWN 100
#define FATES_SHOWN 40

/* ---- The list ---- */

static void
filter_form(struct buf *out, const struct letters_filter *f)
{
	static const char *const words[] = { "", "urgent", "high", "normal", "low" };

	html_addf(out,
	    "<form class=\"filters\" role=\"search\" aria-label=\"Filter\"><input type=\"search\" name=\"q\" value=\"%s\" placeholder=\"Words, from:bob, &quot;a phrase&quot;\" "
	    "aria-label=\"Words\"><input name=\"agent\" value=\"%s\" placeholder=\"Agent\" aria-label=\"Agent\" size=\"12\">"
	    "<input name=\"type\" value=\"%s\" placeholder=\"Type\" aria-label=\"Type\" size=\"10\">"
	    "<select name=\"priority\" aria-label=\"Priority\">",
	    f->is.words ? f->is.words : "", f->agent ? f->agent : "", f->is.type ? f->is.type : "");
	for (size_t i = 0; i < 5; i++)
		html_addf(out, "<option value=\"%s\"%s>%s</option>", words[i],
		    f->is.priority && strcmp(mr_priority_word(f->priority), words[i]) == 0 ? " selected" : "",
		    *words[i] ? words[i] : "any priority");
	html_addf(out,
	    "</select><label><input type=\"checkbox\" name=\"unread\" value=\"1\"%s> unread</label><button>Filter</button></form>\n",
	    f->is.unread ? " checked" : "");
}

/* The same list, of what came before that time. */
static void
older_link(struct buf *out, const struct request *req, int64_t before_ms)
{
	char at[RFC3339_LEN + 1];

	time_rfc3339(before_ms, at);
	html_addf(out, "<p><a class=\"button\" href=\"%s?", req->path);
	for (size_t i = 0; i < req->query.n; i++)
		if (*req->query.v[i].value && strcmp(req->query.v[i].name, "before") != 0 &&
		    strcmp(req->query.v[i].name, "note") != 0) {
			url_add(out, req->query.v[i].name, URL_PART);
			buf_addc(out, '=');
			url_add(out, req->query.v[i].value, URL_PART);
			buf_adds(out, "&amp;");
		}
	buf_adds(out, "before=");
	url_add(out, at, URL_PART);
	buf_adds(out, "\">Older</a></p>\n");
}

enum mr_rc
page_threads(struct request *req, struct mr_error *err)
{
	mr_auto(letters_done) struct letters all = { 0 };
	struct buf *out = req->out;
	struct letters_filter filter;
	char more[64];

	TRY(letters_filter(req, &filter, err));
	TRY(letters_threads(req, &filter, THREADS_SHOWN, &all, err));
	size_t shown = all.n < THREADS_SHOWN ? all.n : THREADS_SHOWN;
	int64_t older_ms = shown < all.n ? id_time_ms(all.v[shown - 1].is.id) : all.whole_ms;

	page_begin(req, "Conversations", NULL);
	(void)snprintf(more, sizeof(more), older_ms > 0 ? "the newest %zu%s" : "%zu%s", shown,
	    filter.is.before_ms > 0 ? " before that time"
	    : older_ms > 0          ? ""
				    : ", the newest first");
	page_head(out, "Conversations", more);
	filter_form(out, &filter);
	rows_begin(out, "threads");
	for (size_t i = 0; i < shown; i++)
		letter_row(out, &all.v[i], NULL);
	rows_end(out, shown, "No conversation", "Nothing was written yet, or no message matches the filter.");
	if (older_ms > 0)
		older_link(out, req, older_ms);
	return MR_OK;
}

/* ---- One of them ---- */

static void
reply_form(struct request *req, const struct letters *all)
{
	struct buf *out = req->out;
	const struct letter *newest = NULL;
	char nonce[MR_TOKEN_LEN + 1];

	/* The newest that somebody else wrote; all->v is newest first. */
	for (size_t i = 0; i < all->n && !newest; i++)
		newest = strcmp(all->v[i].is.from, OPERATOR_NAME) != 0 ? &all->v[i] : NULL;
	if (!newest || !req->may_write)
		return;
	const struct mr_message *to = &newest->is;

	buf_adds(out, "<section class=\"mail\" id=\"reply\"><h2 class=\"group\">Answer</h2>");
	form_begin(req, "/do/reply");
	token_new(nonce);
	html_addf(out,
	    "<input type=\"hidden\" name=\"id\" value=\"%s\"><input type=\"hidden\" name=\"nonce\" value=\"%s\"><p class=\"soft\">To ",
	    to->id, nonce);
	page_address(out, to->from);
	html_addf(out,
	    ", as an answer to \u201c%s\u201d</p><p><label class=\"hidden\" for=\"body\">Text</label>"
	    "<textarea id=\"body\" name=\"body\" required rows=\"5\"></textarea></p><div class=\"actions\"><button class=\"first\">Send</button>",
	    to->subject);
	if (newest->mine && to->to.n + to->cc.n > 1)
		buf_adds(out,
		    "<label><input type=\"checkbox\" name=\"all\" value=\"1\"> also to its other recipients</label>");
	buf_adds(out, "</div></form></section>\n");
}

enum mr_rc
page_thread(struct request *req, struct mr_error *err)
{
	mr_auto(letters_done) struct letters all = { .bodies = true };
	mr_auto(mr_message_done) struct mr_message named = { 0 };
	const char *agent = letter_find(req, req->rest, &named); /* the path names a thread, or any message of it */
	struct mr_filter filter = { .thread = agent ? named.thread : req->rest };
	struct buf *out = req->out;

	/* No message of a thread is older than its first one, whose id it has; a clock elsewhere may be behind. */
	if (strlen(filter.thread) == MR_ID_LEN && id_valid(str_of(filter.thread)))
		filter.since_ms = id_time_ms(filter.thread) - (int64_t)3600 * 1000;
	TRY(letters_load(req, agent, &filter, 0, &all, err));
	if (all.n == 0)
		return mr_fail(
		    err, MR_NOTFOUND, "no conversation '%.60s' in this room\nSearch finds what there is", req->rest);
	const struct mr_message *first = &all.v[all.n - 1].is;

	page_begin(req, page_subject(first->subject), NULL);
	html_addf(out, "<div class=\"head\"><h1>%s</h1><p class=\"soft\">", page_subject(first->subject));
	page_count(out, all.n, "message");
	buf_adds(out, "</p><div class=\"actions\">");
	page_link(out, "/picture?thread=", first->thread, "button", "Picture");
	if (req->may_write)
		buf_adds(out, "<a class=\"button\" href=\"#reply\" data-reply>Answer</a>");
	buf_adds(out, "</div></div>\n<div data-part=\"thread\">");
	for (size_t i = all.n; i > 0; i--) {
		const struct letter *l = &all.v[i - 1];

		letter_whole(req, &l->is, first->subject, i <= FATES_SHOWN);
		if (l->mine && l->unread > 0) {
			buf_adds(out, "<div class=\"actions\">");
			page_button(req, "/do/mark", "Mark read", "", FIELDS({ "id", l->is.id }));
			buf_adds(out, "</div>");
		}
		buf_adds(out, "</article>\n");
	}
	buf_adds(out, "</div>\n");
	reply_form(req, &all);
	return MR_OK;
}

/* ---- Search ---- */

/* Where a search has to open what it looks through, it looks through the newest mail, and a link leads on to what came
 * before *ret_older_ms: so it costs the same in a room of any size. A span of time after the other, the newest first,
 * each shown as soon as all mailboxes were looked through for it. */
static enum mr_rc
search(struct request *req, struct stream *stream, const struct query *query, struct letters_filter *filter,
    size_t *ret_n, int64_t *ret_older_ms, struct mr_error *err)
{
	static const int64_t hours[] = { 24, 30 * 24, 0 };
	mr_auto(letters_done) struct letters newest = { .before_ms = filter->is.before_ms };
	size_t each = letters_share(req, THREADS_SHOWN);
	bool opens = !mr_room_has(req->room, MR_HAS_INDEX), more = true;

	for (size_t i = 0; i < query->n; i++)
		opens &= query->v[i].field < QUERY_THREAD; /* else it says how far */
	enum mr_rc rc = opens ? letters_load(req, filter->agent, &(struct mr_filter){ 0 },
				    2 * letters_share(req, SIZE_MAX), &newest, err)
			      : MR_OK;

	filter->is.before_ms = 0; /* that is newest.before_ms now */
	for (size_t i = 0; more && i < sizeof(hours) / sizeof(hours[0]) && rc == MR_OK; i++) {
		mr_auto(letters_done) struct letters all = {
			.bodies = true, .seen = &newest, .whole_ms = newest.whole_ms, .before_ms = newest.before_ms
		};
		mr_auto(buf_done) struct buf rows = BUF_INIT;

		filter->is.since_ms = hours[i] > 0 ? clock_now_ms() - hours[i] * 3600 * 1000 : 0;
		rc = letters_load(req, filter->agent, &filter->is, each, &all, err);
		for (size_t k = 0; rc == MR_OK && k < all.n && *ret_n < THREADS_SHOWN; k++, ++*ret_n)
			letter_row(&rows, &all.v[k], query);
		*ret_older_ms = all.whole_ms;
		/* What is older than what was left out would come behind a gap. */
		more = stream_add(stream, buf_str(&rows)) && all.whole_ms == newest.whole_ms &&
		       *ret_n < THREADS_SHOWN && filter->is.since_ms >= newest.whole_ms;
		filter->is.before_ms = filter->is.since_ms;
	}
	return rc;
}

enum mr_rc
page_search(struct request *req, struct mr_error *err)
{
	mr_auto(query_done) struct query query = { 0 };
	mr_auto(buf_done) struct buf rest = BUF_INIT;
	struct letters_filter filter;
	struct buf *out = req->out;
	size_t n = 0;
	int64_t older_ms = 0;

	TRY(letters_filter(req, &filter, err));
	if (filter.is.words)
		TRY(query_parse(str_of(filter.is.words), &query, err));
	page_begin(req, "Search", "");
	html_addf(out,
	    "<form class=\"filters\" role=\"search\"><input type=\"search\" name=\"q\" id=\"q\" value=\"%s\" aria-label=\"Search all mail\" "
	    "placeholder=\"Words, &quot;a phrase&quot;, prefix*, from:bob, -word\"><button class=\"first\">Search</button></form>\n",
	    filter.is.words ? filter.is.words : "");
	rows_begin(out, NULL);
	if (!filter.is.words) {
		rows_end(out, 0, "All mail of all agents", "A word may end in * for all that begin with it.");
		return MR_OK;
	}
	struct stream *stream = stream_begin(req);

	TRY(mr_got(stream != NULL, err));
	enum mr_rc rc = search(req, stream, &query, &filter, &n, &older_ms, err);

	if (rc != MR_OK)
		html_addf(&rest, "<li class=\"now\"><div class=\"row\">%s</div></li>", err->message);
	rows_end(&rest, n + (rc != MR_OK), older_ms > 0 ? "Nothing found in the newest mail" : "Nothing found",
	    "Fewer words find more; a word may end in * for all that begin with it.");
	if (n > 0)
		html_addf(&rest, "<p class=\"soft\">%zu found%s</p>\n", n,
		    n == THREADS_SHOWN ? "; more words find fewer" : "");
	if (older_ms > 0 && n < THREADS_SHOWN)
		older_link(&rest, req, older_ms);
	buf_adds(&rest, PAGE_END);
	(void)stream_add(stream, buf_str(&rest));
	stream_end(stream);
	return MR_OK;
}
