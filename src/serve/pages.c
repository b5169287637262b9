/* SPDX-License-Identifier: MIT */
/* pages.c - the pages of the operator's view. */
#include "serve/serve.h"

enum mr_rc
page_attention(struct request *req, struct reply *reply, struct mr_error *err)
{
	struct mr_counts counts = { 0 };

	TRY(mr_count(req->room, req->agent, &counts, err));
	page_begin(reply, req, "Attention");
	html_addf(&reply->body, "<p>%zu unread for %s</p>\n", counts.unread, req->agent);
	page_end(reply, req);
	return MR_OK;
}
