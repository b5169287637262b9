/* SPDX-License-Identifier: MIT */
/*
 * page_picture.c - who told whom, as a picture: a thread, or the room in a span of time. The drawing is the library's.
 * In a page its style must not stand inside it, because no page of ours allows that: it is served as a file of its own.
 */
#include "serve/page.h"

static const struct {
	const char *word, *label;
} spans[] = { { "15m", "15 minutes" }, { "1h", "1 hour" }, { "3h", "3 hours" }, { "1d", "1 day" } };
#define LANES_WIDE 16 /* more are scrolled, not made smaller */
#define STYLE_OPEN "<style>"
#define STYLE_CLOSE "</style>"

/* What stands before its style, the style, and what follows. */
static void
split_style(struct mr_str svg, struct mr_str *ret_before, struct mr_str *ret_style, struct mr_str *ret_rest)
{
	const char *open = strstr(svg.ptr, STYLE_OPEN), *close = open ? strstr(open, STYLE_CLOSE) : NULL;

	*ret_before = close ? (struct mr_str){ svg.ptr, (size_t)(open - svg.ptr) } : svg;
	*ret_style =
	    close ? (struct mr_str){ open + strlen(STYLE_OPEN), (size_t)(close - open) - strlen(STYLE_OPEN) } : STR("");
	*ret_rest = close ? str_of(close + strlen(STYLE_CLOSE)) : STR("");
}

/* The thread of the query, or its span of time; the caller frees *ret. */
static enum mr_rc
draw(struct request *req, const char *thread, struct buf *title, size_t *ret_lanes, char **ret, size_t *ret_len,
    struct mr_error *err)
{
	mr_auto(mr_picture_done) struct mr_picture picture = { 0 };
	struct mr_picture_options options = { .thread = thread };
	const char *since = params_get(&req->query, "since");

	if (!thread)
		TRY(mr_time_parse(since && *since ? since : "1h", &options.since_ms, err));
	TRY(mr_picture(req->room, req->self.agent, &options, &picture, err));
	buf_adds(title, picture.title);
	*ret_lanes = picture.lanes_n;
	return mr_picture_svg(&picture, "/thread/", ret, ret_len, err);
}

enum mr_rc
page_picture_svg(struct request *req, struct reply *reply, struct mr_error *err)
{
	mr_auto(buf_done) struct buf title = BUF_INIT;
	mr_auto(free_ptr) char *svg = NULL;
	char *thread = arena_dup(&req->own, str_of(req->rest));
	size_t len, lanes, end = strlen(req->rest);

	if (thread && str_ends(str_of(thread), ".svg"))
		thread[end - strlen(".svg")] = '\0';
	TRY(draw(req, thread, &title, &lanes, &svg, &len, err));
	reply->type = "image/svg+xml";
	/* A file of its own, with its style in it. */
	reply_header(
	    reply, "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
	buf_add(&reply->body, (struct mr_str){ svg, len });
	return MR_OK;
}

enum mr_rc
page_picture_css(struct request *req, struct reply *reply, struct mr_error *err)
{
	const struct mr_picture nothing = { .title = "" };
	mr_auto(free_ptr) char *svg = NULL;
	size_t len;

	(void)req;
	TRY(mr_picture_svg(&nothing, NULL, &svg, &len, err));
	struct mr_str before, style, rest;

	split_style((struct mr_str){ svg, len }, &before, &style, &rest);
	buf_add(&reply->body, style);
	reply->type = "text/css; charset=utf-8";
	return MR_OK;
}

enum mr_rc
page_picture(struct request *req, struct reply *reply, struct mr_error *err)
{
	const char *thread = params_get(&req->query, "thread"), *since = params_get(&req->query, "since");
	mr_auto(buf_done) struct buf title = BUF_INIT;
	mr_auto(free_ptr) char *svg = NULL;
	struct buf *out = &reply->body;
	size_t len, lanes;

	TRY(draw(req, thread && *thread ? thread : NULL, &title, &lanes, &svg, &len, err));
	page_begin(reply, req, "Picture");
	html_addf(out,
	    "<link rel=\"stylesheet\" href=\"/picture.css\"><div class=\"head\"><h1>%s</h1><div class=\"actions\">",
	    title.len > 0 ? buf_z(&title) : "Who told whom");
	for (size_t i = 0; title.len == 0 && i < sizeof(spans) / sizeof(spans[0]); i++)
		html_addf(out, "<a class=\"button\" aria-current=\"%s\" href=\"/picture?since=%s\">%s</a>",
		    strcmp(since && *since ? since : "1h", spans[i].word) == 0 ? "true" : "false", spans[i].word,
		    spans[i].label);
	if (title.len > 0)
		page_link(out, "/thread/", thread, "button", "Conversation");
	html_addf(out,
	    "</div></div>\n<div class=\"picture%s\" data-part=\"picture\" tabindex=\"0\" role=\"group\" aria-label=\"Sequence of messages\">",
	    lanes > LANES_WIDE ? " wide" : "");
	struct mr_str before, style, rest;

	split_style((struct mr_str){ svg, len }, &before, &style, &rest);
	buf_add(out, before);
	buf_add(out, rest);
	buf_adds(out, "</div>\n");
	page_end(reply, req);
	return MR_OK;
}
