/* SPDX-License-Identifier: MIT */
/* route.c - the table of paths, and what an error looks like. */
#include "serve/serve.h"

const struct route routes[] = {
	{ "GET", "/", page_attention, FOR_READERS },
	{ "GET", "/threads", page_threads, FOR_READERS },
	{ "GET", "/thread/", page_thread, FOR_READERS },
	{ "GET", "/picture", page_picture, FOR_READERS },
	{ "GET", "/picture.css", page_picture_css, FOR_ALL },
	{ "GET", "/picture/", page_picture_svg, FOR_READERS },
	{ "GET", "/queues", page_queues, FOR_READERS },
	{ "GET", "/agents", page_agents, FOR_READERS },
	{ "GET", "/agent/", page_agent, FOR_READERS },
	{ "GET", "/channels", page_channels, FOR_READERS },
	{ "GET", "/channel/", page_channel, FOR_READERS },
	{ "GET", "/dead", page_dead, FOR_READERS },
	{ "GET", "/dead/", page_dead_one, FOR_READERS },
	{ "GET", "/search", page_search, FOR_READERS },
	{ "GET", "/write", page_write, FOR_WRITERS },
	{ "POST", "/do/send", do_send, FOR_WRITERS | FOR_FORMS },
	{ "POST", "/do/reply", do_reply, FOR_WRITERS | FOR_FORMS },
	{ "POST", "/do/mark", do_mark, FOR_WRITERS | FOR_FORMS },
	{ "POST", "/do/nudge", do_nudge, FOR_WRITERS | FOR_FORMS },
	{ "POST", "/do/release", do_release, FOR_WRITERS | FOR_FORMS },
	{ "POST", "/do/retry", do_retry, FOR_WRITERS | FOR_FORMS },
	{ "POST", "/do/drop", do_drop, FOR_WRITERS | FOR_FORMS },
	{ "POST", "/do/queue", do_queue, FOR_WRITERS | FOR_FORMS },
	{ "GET", "/login", page_login, FOR_ALL },
	{ "GET", "/events", events, FOR_READERS },
	{ "GET", "/metrics", metrics, FOR_READERS | FOR_AGENTS },
	{ "POST", "/mcp", mcp, FOR_WRITERS | FOR_AGENTS },
	{ "GET", "/mcp", mcp, FOR_READERS | FOR_AGENTS },
	{ "DELETE", "/mcp", mcp, FOR_READERS | FOR_AGENTS },
	{ "GET", "/api/v1/messages", api_messages, FOR_READERS | FOR_AGENTS },
	{ "GET", "/api/v1/threads", api_threads, FOR_READERS | FOR_AGENTS },
	{ "GET", "/api/v1/threads/", api_messages, FOR_READERS | FOR_AGENTS },
	{ "GET", "/api/v1/search", api_messages, FOR_READERS | FOR_AGENTS },
	{ "GET", "/api/v1/", api, FOR_READERS | FOR_AGENTS },
	{ "POST", "/api/v1/", api, FOR_WRITERS | FOR_AGENTS },
	{ "GET", "/icon.svg", page_asset, FOR_ALL },
	{ "GET", "/style.css", page_asset, FOR_ALL },
	{ "GET", "/script.js", page_asset, FOR_ALL },
	{ 0 },
};

unsigned
status_of(enum mr_rc rc)
{
	static const unsigned short statuses[] = {
		[MR_OK] = 200,
		[MR_EMPTY] = 404,
		[MR_NOTFOUND] = 404,
		[MR_REFUSED] = 409,
		[MR_UNTRUSTED] = 403,
		[MR_UNSUPPORTED] = 501,
		[MR_EXISTS] = 409,
		[MR_BUSY] = 409,
		[MR_NOMEM] = 503,
		[MR_FULL] = 507,
	};

	return rc < sizeof(statuses) / sizeof(statuses[0]) && statuses[rc] ? statuses[rc] : 500;
}

enum mr_rc
reply_error(const struct request *req, unsigned status, const char *code, const char *message, const char *hint)
{
	struct json j = JSON_INIT(req->out);

	buf_clear(req->out);
	req->reply->status = status;
	/* Without a path it was refused for its first lines. */
	if (!req->path || str_starts(str_of(req->path), "/api/") || str_starts(str_of(req->path), "/mcp")) {
		req->reply->type = "application/json";
		json_open(&j, '{');
		json_cells(&j, CELLS(kv_open("error"), kv_str("code", code), kv_str("message", message),
				   kv_opt("hint", hint), kv_close()));
		json_close(&j);
		buf_addc(req->out, '\n');
		return MR_OK;
	}
	const char *title = status == 404   ? "Not found"
			    : status == 401 ? "Not signed in"
			    : status < 500  ? "Refused"
					    : "Failed";

	page_begin(req, title, NULL);
	html_addf(req->out, "<div class=\"head\"><h1>%s</h1></div><div class=\"trouble\" role=\"alert\"><p>%s</p>",
	    title, message);
	if (hint[0])
		html_addf(req->out, "<p class=\"soft\">%s</p>", hint);
	buf_adds(req->out, "</div>\n");
	return MR_OK;
}

bool
path_fits(const char *place, const char *path, const char **ret_rest)
{
	size_t len = strlen(place);
	bool open = len > 1 && place[len - 1] == '/';

	*ret_rest = "";
	if (!open || strncmp(place, path, len) != 0)
		return !open && strcmp(place, path) == 0;
	*ret_rest = path + len;
	return path[len] != '\0';
}

static void
answer(struct request *req)
{
	struct mr_error err = { 0 };
	const struct route *row = NULL;
	bool path_known = false;

	for (const struct route *r = routes; r->method && !row; r++) {
		if (!path_fits(r->path, req->path, &req->rest))
			continue;
		path_known = true;
		if (strcmp(r->method, req->method) == 0)
			row = r;
	}
	if (!access_check(req, row))
		return;
	if (!row) {
		(void)reply_error(req, path_known ? 405 : 404, path_known ? "method" : "not-found",
		    path_known ? "this path does not take that method" : "there is nothing at this path", "");
		return;
	}
	enum mr_rc rc = req->who == WHO_NOBODY ? MR_OK : mr_self_named(req->room, req->agent, &req->self, &err);

	if (rc == MR_OK)
		rc = row->run(req, &err);

	if (rc == MR_OK && req->reply->body.failed)
		rc = mr_nomem(&err);
	if (rc != MR_OK)
		(void)reply_error(req, status_of(rc), mr_rc_word(rc), err.message, err.hint);
}

void
route(struct request *req)
{
	answer(req);
	if (!req->begun && req->out->len > 0 && str_starts(str_of(req->reply->type), "text/html"))
		buf_adds(req->out, PAGE_END);
}

void
reply_header(const struct request *req, const char *name, const char *value)
{
	/* A line break in a value would begin another header. */
	if (req->reply->headers_n < sizeof(req->reply->headers) / sizeof(req->reply->headers[0]) &&
	    !strpbrk(value, "\r\n"))
		req->reply->headers[req->reply->headers_n++] = (struct mr_header){ name, value };
}

enum mr_rc
page_asset(struct request *req, struct mr_error *err)
{
	for (const struct asset *a = assets; a->name; a++)
		if (strcmp(a->name, req->path + 1) == 0) {
			req->reply->type = a->type;
			buf_add(req->out, (struct mr_str){ a->text, a->len });
			return MR_OK;
		}
	return mr_fail(err, MR_NOTFOUND, "there is nothing at this path");
}
