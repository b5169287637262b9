/* SPDX-License-Identifier: MIT */
/*
 * access.c - who asks, and whether a browser was tricked into asking.
 *
 * The link that `serve` prints has a token in it that is good once. The browser that brings it gets a cookie, which
 *scripts cannot read and which no other site can make it send. Beyond that:
 *
 *	Host     must be an address that we listen on: a name that was made to point to 127.0.0.1 is another site.
 *	Origin   of a POST, and of everything at /mcp, must be ours where it is given.
 *	csrf     a field of each form: a hash of the cookie and the form's action, which only a page of ours can have.
 */
#include <pthread.h>
#include <stdio.h>

#include "base/id.h"
#include "serve/serve.h"

#define SECRET_LEN 40 /* hex digits: 160 bits */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char link_token[SECRET_LEN + 1]; /* "": it was used */
static char cookie_hash[65];            /* of the browser that brought it; "": none yet */

void
access_link(const struct server *server, struct buf *out)
{
	random_hex(link_token, SECRET_LEN);
	buf_addf(out, "http://%s:%u/login?token=%s", server->address, server->port, link_token);
}

static void
cookie_name(const struct server *server, char ret[32])
{
	(void)snprintf(ret, 32, "mailroom-%u", server->port); /* a browser sends cookies to all ports of a host */
}

/* Takes the same time wherever the two differ. */
static bool
same_secret(const char *a, const char *b)
{
	unsigned char differs = 0;

	if (strlen(a) != strlen(b) || !a[0])
		return false;
	for (size_t i = 0; a[i]; i++)
		differs |= (unsigned char)(a[i] ^ b[i]);
	return differs == 0;
}

void
req_csrf(const struct request *req, const char *action, char ret[CSRF_LEN + 1])
{
	struct sha256 hash;
	char hex[65];

	sha256_init(&hash);
	sha256_add(&hash, STR("form "));
	sha256_add(&hash, str_of(req->secret));
	sha256_add(&hash, str_of(action));
	sha256_end_hex(&hash, hex);
	(void)snprintf(ret, CSRF_LEN + 1, "%.*s", CSRF_LEN, hex);
}

static bool
is_our_host(const struct server *server, const char *host)
{
	char ours[3][80];

	(void)snprintf(ours[0], sizeof(ours[0]), "%s:%u", server->address, server->port);
	(void)snprintf(ours[1], sizeof(ours[1]), "localhost:%u", server->port);
	(void)snprintf(ours[2], sizeof(ours[2]), "127.0.0.1:%u", server->port);
	return strcmp(host, ours[0]) == 0 || strcmp(host, ours[1]) == 0 || strcmp(host, ours[2]) == 0;
}

static bool
refuse(const struct request *req, struct reply *reply, unsigned status, const char *code, const char *message,
    const char *hint)
{
	reply_error(req, reply, status, code, message, hint);
	return false;
}

static void
find_who(struct request *req)
{
	const char *header = req_header(req, "Cookie");
	char name[32], value[129];

	cookie_name(req->server, name);
	struct mr_str cookie = cookie_find(str_of(header ? header : ""), name);

	if (cookie.len == 0 || cookie.len >= sizeof(value))
		return;
	sha256_hex(cookie, req->secret);
	(void)pthread_mutex_lock(&lock);
	if (same_secret(req->secret, cookie_hash))
		req->who = WHO_OPERATOR;
	(void)pthread_mutex_unlock(&lock);
	if (req->who == WHO_NOBODY)
		return;
	text_join(req->agent, sizeof(req->agent), "operator", NULL);
	req->may_write = !req->server->read_only;
}

bool
access_check(struct request *req, const struct route *row, struct reply *reply)
{
	const char *host = req_header(req, "Host"), *origin = req_header(req, "Origin");
	bool post = strcmp(req->method, "GET") != 0, mcp = strcmp(req->path, "/mcp") == 0;
	unsigned access = row ? row->access : FOR_READERS;
	char csrf[CSRF_LEN + 1];

	if (!host || !is_our_host(req->server, host))
		return refuse(req, reply, 403, "host", "this address is not the one that the server listens on",
		    "open the link that 'mailroom serve' printed");
	if (origin && (post || mcp) && !(str_starts(str_of(origin), "http://") && is_our_host(req->server, origin + 7)))
		return refuse(req, reply, 403, "origin", "another site asked for this", "");
	find_who(req);
	if (access & FOR_ALL)
		return true;
	if (req->who == WHO_NOBODY)
		return refuse(req, reply, 401, "token", "this browser has no cookie of this server",
		    "open the link that 'mailroom serve' printed; it is good once");
	if (req->who == WHO_AGENT && !(access & FOR_AGENTS))
		return refuse(req, reply, 403, "token", "the token of an agent is for /api and /mcp", "");
	if ((access & FOR_WRITERS) && !req->may_write)
		return refuse(req, reply, 403, "read-only", "this access is read-only", "");
	if (!(access & FOR_FORMS) || req->who == WHO_AGENT)
		return true;
	req_csrf(req, req->path, csrf);
	const char *given = params_get(&req->form, "csrf");

	return (given && same_secret(csrf, given)) ||
	       refuse(req, reply, 403, "form", "the token of this form is missing or of an older page",
		   "load the page again, then repeat it");
}

enum mr_rc
page_login(struct request *req, struct reply *reply, struct mr_error *err)
{
	const char *given = params_get(&req->query, "token");
	char cookie[SECRET_LEN + 1], name[32];
	mr_auto(buf_done) struct buf line = BUF_INIT;
	bool good = false;

	random_hex(cookie, SECRET_LEN);
	(void)pthread_mutex_lock(&lock);
	good = given && same_secret(given, link_token);
	if (good) {
		link_token[0] = '\0';
		sha256_hex(str_of(cookie), cookie_hash);
	}
	(void)pthread_mutex_unlock(&lock);
	if (!good)
		return mr_fail(err, MR_UNTRUSTED,
		    "this link was used already, or is of another start of the server\n"
		    "start 'mailroom serve' again for a new one");
	cookie_name(req->server, name);
	buf_addf(&line, "%s=%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%d", name, cookie, 30 * 24 * 3600);
	char *kept = arena_dup(&req->own, buf_str(&line));

	TRY(mr_got(kept != NULL, err));
	reply_header(reply, "Set-Cookie", kept);
	/* A page and no redirect: a link in a page of another site would not bring the new cookie along. */
	reply_header(reply, "Refresh", "0; url=/");
	page_begin(reply, req, "Welcome");
	buf_adds(&reply->body, "<p><a href=\"/\">Go on</a></p>\n");
	page_end(reply, req);
	return MR_OK;
}
