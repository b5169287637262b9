/* SPDX-License-Identifier: MIT */
/*
 * subscribe.c - clients that want to hear of new mail. Each of them has a process that looks (watch.c) and writes a
 * byte when mail came; here a byte becomes a notice in the form of the client's era.
 *
 * The lists of tools and resources never change while the server runs. Who asks only for those is acknowledged with
 * nothing, and hears nothing.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/mcp/mcp.h"

static struct mcp_listener *
find(struct mcp_server *s, struct mr_str id)
{
	for (size_t i = 0; i < MCP_LISTENERS_MAX; i++)
		if (s->listeners[i].id && str_eq(str_of(s->listeners[i].id), id))
			return &s->listeners[i];
	return NULL;
}

bool
subscribe_known(const struct mcp_server *s, struct mr_str id)
{
	for (size_t i = 0; i < MCP_LISTENERS_MAX; i++)
		if (s->listeners[i].id && str_eq(str_of(s->listeners[i].id), id))
			return true;
	return false;
}

void
listener_end(struct mcp_listener *l)
{
	if (l->pid > 0)
		(void)sys_close(l->fd); /* the process sees it, and ends */
	free(l->id);
	*l = (struct mcp_listener){ .fd = -1 };
}

void
subscribe_cancel(struct mcp_server *s, struct mr_str id)
{
	struct mcp_listener *l = find(s, id);

	if (l && id.len > 0)
		listener_end(l);
}

static bool
start_watch(struct mcp_server *s, const struct mcp_request *r, struct mcp_listener *l)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return false;
	pid_t pid = fork();

	if (pid == 0) {
		(void)sys_close(ends[0]);
		watch_run(s, r, ends[1]);
	}
	(void)sys_close(ends[1]);
	if (pid < 0) {
		(void)sys_close(ends[0]);
		return false;
	}
	l->pid = pid;
	l->fd = ends[0];
	return true;
}

/* NULL: it was answered with an error. */
static struct mcp_listener *
add(struct mcp_server *s, const struct mcp_request *r, struct mr_str id, bool inbox)
{
	struct mcp_listener *l = NULL;

	for (size_t i = 0; i < MCP_LISTENERS_MAX && !l; i++)
		if (!s->listeners[i].id)
			l = &s->listeners[i];
	if (!l) {
		mcp_error(s, r, MCP_INTERNAL, "too many subscriptions are open: cancel one");
		return NULL;
	}
	*l = (struct mcp_listener){ .fd = -1, .inbox = inbox, .id = strndup(id.ptr, id.len) };
	if (!l->id || (inbox && !start_watch(s, r, l))) {
		listener_end(l);
		mcp_error(s, r, MCP_INTERNAL, "the mail cannot be watched now: try again");
		return NULL;
	}
	return l;
}

/* ---- By resources/subscribe ---- */

void
subscribe_legacy(struct mcp_server *s, const struct mcp_request *r, bool on)
{
	mr_auto(buf_done) struct buf uri = BUF_INIT, line = BUF_INIT;
	struct json j = JSON_INIT(&line);
	struct mcp_listener *l = find(s, STR(""));

	if (!json_find_text(r->params, "uri", &uri)) {
		mcp_error(s, r, MCP_PARAMS, "'uri' of the resource is missing");
		return;
	}
	if (strcmp(buf_z(&uri), MCP_INBOX_URI) != 0) {
		mcp_no_resource(s, r, buf_z(&uri));
		return;
	}
	if (on && !l && !add(s, r, STR(""), true))
		return;
	if (!on && l)
		listener_end(l);
	answer_begin(&j, r);
	answer_end(&j, r);
	(void)mcp_write(s, &line);
}

/* ---- By subscriptions/listen ---- */

static void
add_subscription_id(struct json *j, struct mr_str id)
{
	json_key(j, "_meta");
	json_open(j, '{');
	json_key(j, MCP_META "subscriptionId");
	json_raw(j, id);
	json_close(j);
}

static bool
asks_for_inbox(struct json_value wanted)
{
	struct json_value uris, one;

	if (!json_find(wanted, "resourceSubscriptions", &uris))
		return false;
	for (size_t at = 0; json_item(uris, &at, &one);)
		if (one.kind == JSON_STRING && json_key_is(one, MCP_INBOX_URI))
			return true;
	return false;
}

/* The request stays open: its result would end the subscription. */
void
subscribe_listen(struct mcp_server *s, const struct mcp_request *r)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	struct json j = JSON_INIT(&line);
	struct json_value wanted;

	if (!json_find(r->params, "notifications", &wanted) || wanted.kind != JSON_OBJECT) {
		mcp_error(s, r, MCP_PARAMS, "'notifications' must be an object that says what to hear of");
		return;
	}
	bool inbox = asks_for_inbox(wanted);

	if (!add(s, r, r->id, inbox))
		return;
	notice_begin(&j, "notifications/subscriptions/acknowledged");
	add_subscription_id(&j, r->id);
	json_key(&j, "notifications");
	json_open(&j, '{');
	if (inbox) {
		json_key(&j, "resourceSubscriptions");
		json_raw(&j, STR("[\"" MCP_INBOX_URI "\"]"));
	}
	notice_end(&j);
	(void)mcp_write(s, &line);
}

/* ---- News ---- */

void
subscribe_readable(struct mcp_server *s, struct mcp_listener *l)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	struct json j = JSON_INIT(&line);
	char bytes[64];

	if (sys_read(l->fd, bytes, sizeof(bytes)) <= 0) { /* it died: there is nothing to hear any more */
		(void)sys_close(l->fd);
		l->fd = -1;
		l->pid = 0;
		return;
	}
	notice_begin(&j, "notifications/resources/updated");
	if (l->id[0])
		add_subscription_id(&j, str_of(l->id));
	json_key_str(&j, "uri", MCP_INBOX_URI);
	notice_end(&j);
	(void)mcp_write(s, &line);
}
