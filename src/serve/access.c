/* SPDX-License-Identifier: MIT */
/*
 * access.c - who asks, and whether a browser was tricked into asking.
 *
 * The link that `serve` prints has a token in it that is good once. The browser that brings it gets a cookie, which
 * scripts cannot read and which no other site can make it send. Beyond that:
 *
 *	Host     must be an address that we listen on: a name that was made to point to 127.0.0.1 is another site.
 *	Origin   of a POST, and of everything at /mcp, must be ours where it is given; so must Sec-Fetch-Site of all but
 *	         a link that is followed.
 *	csrf     a field of each form: a hash of the cookie and the form's action, which only a page of ours can have.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/id.h"
#include "serve/serve.h"

#define COOKIE_S (30 * 24 * 3600)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char link_token[MR_SECRET_LEN + 1]; /* "": it was used */
static char cookie_hash[65];               /* of the browser that brought it; "": none yet */

void
access_link(struct server *server, struct buf *out)
{
	/* A browser sends cookies to all ports of a host. */
	(void)snprintf(server->cookie, sizeof(server->cookie), "mailroom-%u", server->port);
	random_hex(link_token, MR_SECRET_LEN);
	buf_addf(out, "http://%s:%u/login?token=%s", server->address, server->port, link_token);
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
	const char *const names[] = { server->address, "localhost", "127.0.0.1" };
	char ours[80];

	for (size_t i = 0; i < 3; i++) {
		(void)snprintf(ours, sizeof(ours), "%s:%u", names[i], server->port);
		if (strcmp(host, ours) == 0)
			return true;
	}
	return false;
}

static bool
refuse(const struct request *req, unsigned status, const char *code, const char *message, const char *hint)
{
	return reply_error(req, status, code, message, hint) != MR_OK;
}

/* The token that the client sent, in the cookie or as a bearer; "": none. */
static void
given_token(const struct request *req, char ret[MR_SECRET_LEN + 1])
{
	const char *cookies = req_header(req, "Cookie"), *bearer = req_header(req, "Authorization");
	struct mr_str token = STR("");

	if (bearer && str_casestarts(str_of(bearer), "bearer "))
		token = str_trim(str_of(bearer + 7));
	else if (cookies)
		token = cookie_find(str_of(cookies), req->server->cookie);
	ret[0] = '\0';
	if (token.len == MR_SECRET_LEN && !memchr(token.ptr, '\0', token.len))
		(void)snprintf(ret, MR_SECRET_LEN + 1, "%.*s", (int)token.len, token.ptr);
}

/* The cookie that this process gave where the room cannot keep one; the hash of it. */
static bool
is_of_process(const char *hash)
{
	HOLD(lock);
	return same_secret(hash, cookie_hash);
}

bool
access_holds(struct mr_room *room, const char *token)
{
	struct mr_token known;
	char hash[65];

	sha256_hex(str_of(token), hash);
	/* A room that cannot be read now says nothing about tokens. */
	return is_of_process(hash) || mr_token_check(room, token, &known, IGNORED) != MR_NOTFOUND;
}

static void
find_who(struct request *req)
{
	char token[MR_SECRET_LEN + 1];
	struct mr_token known = { .agent = "operator" };

	given_token(req, token);
	if (!token[0])
		return;
	sha256_hex(str_of(token), req->secret);
	if (!is_of_process(req->secret) && mr_token_check(req->room, token, &known, IGNORED) != MR_OK)
		return;
	memcpy(req->token, token, sizeof(req->token));
	text_join(req->agent, sizeof(req->agent), known.agent, NULL);
	req->may_write = !req->server->read_only && !known.read_only;
	req->who = strcmp(known.agent, "operator") != 0 ? WHO_AGENT : known.read_only ? WHO_READER : WHO_OPERATOR;
}

/* Browsers say where a request comes from. A link may lead here; nothing else of another site, nor of another port of
 * this machine, which gets the cookie sent along, is answered. */
static bool
is_from_elsewhere(const struct request *req)
{
	const char *site = req_header(req, "Sec-Fetch-Site"), *mode = req_header(req, "Sec-Fetch-Mode");

	return site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0 &&
	       !(mode && strcmp(mode, "navigate") == 0 && strcmp(req->method, "GET") == 0);
}

bool
access_check(struct request *req, const struct route *row)
{
	const char *host = req_header(req, "Host"), *origin = req_header(req, "Origin");
	bool post = strcmp(req->method, "GET") != 0, mcp = strcmp(req->path, "/mcp") == 0;
	unsigned access = row ? row->access : FOR_READERS;
	char csrf[CSRF_LEN + 1];

	if (!host || !is_our_host(req->server, host))
		return refuse(req, 403, "host", "this address is not the one that the server listens on",
		    "open the link that 'mailroom serve' printed");
	if ((origin && (post || mcp) &&
		!(str_starts(str_of(origin), "http://") && is_our_host(req->server, origin + 7))) ||
	    is_from_elsewhere(req))
		return refuse(req, 403, "origin", "this request came from another site", "");
	find_who(req);
	if (access & FOR_ALL)
		return true;
	if (mcp && req->server->conformance) { /* the suite has no way to send a token */
		text_join(req->agent, sizeof(req->agent), "conformance", NULL);
		req->who = WHO_AGENT;
		req->may_write = true;
	}
	if (req->who == WHO_NOBODY && (mcp || str_starts(str_of(req->path), "/api/"))) {
		reply_header(req, "WWW-Authenticate", "Bearer");
		return refuse(req, 401, "token", "a token is missing, or is not known here",
		    "send 'Authorization: Bearer TOKEN'; 'mailroom token create AGENT' makes one");
	}
	if (req->who == WHO_NOBODY)
		return refuse(req, 401, "token", "this browser has no cookie of this server",
		    "open the link that 'mailroom serve' printed; it is good once, and the next start prints another");
	if (req->who == WHO_AGENT && !(access & FOR_AGENTS))
		return refuse(req, 403, "token", "the token of an agent is for /api and /mcp", "");
	if ((access & FOR_WRITERS) && !req->may_write)
		return refuse(req, 403, "read-only", "this access is read-only", "");
	if (!(access & FOR_FORMS) || req->who == WHO_AGENT)
		return true;
	req_csrf(req, req->path, csrf);
	const char *given = params_get(&req->form, "csrf");

	return (given && same_secret(csrf, given)) ||
	       refuse(req, 403, "form", "the token of this form is missing or of an older page",
		   "load the page again, then repeat it");
}

/* A cookie for the browser that brought the link: a token of the room, so that it is good after the next start, too.
 * Where the room cannot keep one it is good as long as we run. */
static enum mr_rc
new_cookie(struct request *req, char ret[MR_SECRET_LEN + 1], struct mr_error *err)
{
	struct mr_token token = { .agent = "operator", .browser = true, .read_only = req->server->read_only };

	token.expires_ms = clock_now_ms() + COOKIE_S * 1000LL;
	enum mr_rc rc = mr_token_create(req->room, &token, ret, &token, err);

	if (rc != MR_UNSUPPORTED)
		return rc;
	random_hex(ret, MR_SECRET_LEN);
	HOLD(lock);
	sha256_hex(str_of(ret), cookie_hash);
	return MR_OK;
}

static bool
link_used(const char *given)
{
	HOLD(lock);
	bool ours = same_secret(given, link_token);

	if (ours)
		link_token[0] = '\0';
	return ours;
}

/* The link of this start, once; or one that `mailroom token create --read-only` made, which is its own cookie. */
enum mr_rc
page_login(struct request *req, struct mr_error *err)
{
	const char *given = params_get(&req->query, "token");
	char cookie[MR_SECRET_LEN + 1];
	mr_auto(buf_done) struct buf line = BUF_INIT;
	struct mr_token known;
	int64_t left_s = COOKIE_S;

	if (given && link_used(given)) {
		TRY(new_cookie(req, cookie, err));
	} else if (req->who == WHO_OPERATOR) { /* an old link in a browser that has its cookie, and keeps it */
		text_join(cookie, sizeof(cookie), req->token, NULL);
	} else {
		if (!given || mr_token_check(req->room, given, &known, err) != MR_OK ||
		    strcmp(known.agent, "operator") != 0)
			return mr_fail(err, MR_UNTRUSTED,
			    "this link was used already, or is of another start of the server\n"
			    "start 'mailroom serve' again for a new one");
		text_join(cookie, sizeof(cookie), given, NULL);
		if (known.expires_ms > 0)
			left_s = (known.expires_ms - clock_now_ms()) / 1000;
	}
	buf_addf(&line, "%s=%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%lld", req->server->cookie, cookie,
	    (long long)left_s);
	char *kept = arena_dup(&req->own, buf_str(&line));

	TRY(mr_got(kept != NULL, err));
	reply_header(req, "Set-Cookie", kept);
	/* A page and no redirect: a link in a page of another site would not bring the new cookie along. */
	reply_header(req, "Refresh", "0; url=/");
	reply_header(req, "Referrer-Policy", "no-referrer"); /* the token is in the address of this page */
	page_begin(req, "Welcome", NULL);
	buf_adds(req->out, "<p><a href=\"/\">Go on</a></p>\n");
	return MR_OK;
}
