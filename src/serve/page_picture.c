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

static struct mr_str
style_of(const char *svg)
{
	const char *open = strstr(svg, STYLE_OPEN) + strlen(STYLE_OPEN);

	return (struct mr_str){ open, (size_t)(strstr(open, STYLE_CLOSE) - open) };
}

/* The thread, or the span of time of the query; the caller frees *ret. */
static enum mr_rc
draw(struct request *req, const char *thread, struct mr_picture *picture, char **ret, size_t *ret_len,
    struct mr_error *err)
{
	struct mr_picture_options options = { .thread = thread };
	const char *since = params_get(&req->query, "since");

	if (!thread)
		TRY(mr_time_parse(since && *since ? since : "1h", &options.since_ms, err));
	TRY(mr_picture(req->room, req->self.agent, &options, picture, err));
	return mr_picture_svg(picture, "/thread/", ret, ret_len, err);
}

enum mr_rc
page_picture_svg(struct request *req, struct mr_error *err)
{
	mr_auto(mr_picture_done) struct mr_picture picture = { 0 };
	mr_auto(free_ptr) char *svg = NULL;
	struct mr_str thread = str_of(req->rest);
	size_t len;

	thread.len -= str_ends(thread, ".svg") ? strlen(".svg") : 0;
	TRY(draw(req, arena_dup(&req->own, thread), &picture, &svg, &len, err));
	req->reply->type = "image/svg+xml";
	/* A file of its own, with its style in it. */
	reply_header(
	    req, "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
	buf_add(req->out, (struct mr_str){ svg, len });
	return MR_OK;
}

enum mr_rc
page_picture_css(struct request *req, struct mr_error *err)
{
	const struct mr_picture nothing = { .title = "" };
	mr_auto(free_ptr) char *svg = NULL;
	size_t len;

	(void)req;
	TRY(mr_picture_svg(&nothing, NULL, &svg, &len, err));
	buf_add(req->out, style_of(svg));
	req->reply->type = "text/css; charset=utf-8";
	return MR_OK;
}

enum mr_rc
page_picture(struct request *req, struct mr_error *err)
{
	const char *thread = params_get(&req->query, "thread"), *since = params_get(&req->query, "since");
	mr_auto(mr_picture_done) struct mr_picture picture = { 0 };
	mr_auto(free_ptr) char *svg = NULL;
	struct buf *out = req->out;
	size_t len;

	TRY(draw(req, thread && *thread ? thread : NULL, &picture, &svg, &len, err));
	bool is_thread = *picture.title;
	struct mr_str style = style_of(svg);

	page_begin(req, "Picture", NULL);
	html_addf(out,
	    "<link rel=\"stylesheet\" href=\"/picture.css\"><div class=\"head\"><h1>%s</h1><div class=\"actions\">",
	    is_thread ? picture.title : "Who told whom");
	for (size_t i = 0; !is_thread && i < sizeof(spans) / sizeof(spans[0]); i++)
		html_addf(out, "<a class=\"button\" aria-current=\"%s\" href=\"/picture?since=%s\">%s</a>",
		    strcmp(since && *since ? since : "1h", spans[i].word) == 0 ? "true" : "false", spans[i].word,
		    spans[i].label);
	if (is_thread)
		page_link(out, "/thread/", thread, "button", "Conversation");
	html_addf(out,
	    "</div></div>\n<div class=\"picture%s\" data-part=\"picture\" tabindex=\"0\" role=\"group\" aria-label=\"Sequence of messages\">",
	    picture.lanes_n > LANES_WIDE ? " wide" : "");
	if (picture.arrows_n + picture.bars_n == 0) {
		page_quiet(out, "No mail", "Nothing was sent in this time. Choose a longer one.");
	} else {
		buf_add(out, (struct mr_str){ svg, (size_t)(style.ptr - svg) - strlen(STYLE_OPEN) });
		buf_adds(out, style.ptr + style.len + strlen(STYLE_CLOSE));
	}
	buf_adds(out, "</div>\n");
	return MR_OK;
}
