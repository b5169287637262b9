/* SPDX-License-Identifier: MIT */
/*
 * carry.c - the mail of one link, both ways: first what came, then what goes, so that a notice about mail that could
 * not be taken in goes out with the same call.
 *
 * There is no lock a link: any number may carry at once. Going out, the claim of the queue gives a message to one of
 * them (carry_out.c); coming in, a key of this room lets it in once (carry_in.c).
 *
 * Nothing goes in circles: a message names the rooms and links that it was carried through, where the format has
 * headers; it never goes through the same one twice, and through at most eight.
 */
#include "message/address.h"
#include "message/message.h"
#include "office/link/link.h"
#include <stdlib.h>

#define TRAIL_HEADER "X-Mailroom-Carried" /* "town/blue, hall/red" */
#define HOPS_MAX 8

void
carrier_trouble(const struct carrier *c, struct mr_error *err)
{
	if (c->trouble)
		c->trouble(c->ctx, c->link.name, err);
	*err = (struct mr_error){ 0 };
}

bool
carry_is_temporary(enum mr_rc rc)
{
	return rc == MR_IO || rc == MR_FULL || rc == MR_NOMEM || rc == MR_BUSY || rc == MR_INDOUBT || rc == MR_CORRUPT;
}

enum mr_rc
carry_target(struct mr_room *room, const char *address, char ret[MR_ADDRESS_MAX + 8], struct mr_error *err)
{
	struct mr_str agent, link;
	char name[MR_LINK_NAME_MAX + 1], queue[MR_NAME_MAX + 1];

	address_split(str_of(address), &agent, &link);
	if (link.len == 0) {
		enum mr_rc rc = address_check(agent, err);

		if (rc == MR_OK)
			rc = agent_exists(room, address, err);
		if (rc == MR_OK)
			(void)snprintf(ret, MR_ADDRESS_MAX + 8, "%s", address);
		return rc;
	}
	if (link.len > MR_LINK_NAME_MAX)
		return mr_fail(err, MR_NOTFOUND, "no link for '%.80s'", address);
	(void)snprintf(name, sizeof(name), "%.*s", (int)link.len, link.ptr);
	if (!link_exists(room, name))
		return mr_fail(err, MR_NOTFOUND, "no link for '%.80s'", address);
	link_queue_of(name, queue);
	(void)snprintf(ret, MR_ADDRESS_MAX + 8, "queue:%s", queue);
	return MR_OK;
}

/* ---- Circles ---- */

static enum mr_rc
check_trail(const char *trail, const char *step, struct mr_error *err)
{
	size_t hops = 0;

	for (struct mr_str rest = str_of(trail); rest.len > 0; hops++) {
		const char *comma = memchr(rest.ptr, ',', rest.len);
		size_t len = comma ? (size_t)(comma - rest.ptr) : rest.len;

		if (str_eq(str_trim((struct mr_str){ rest.ptr, len }), str_of(step)))
			return mr_fail(err, MR_REFUSED, "it was carried through '%s' before: it goes in circles", step);
		len += comma ? 1 : 0;
		rest = (struct mr_str){ rest.ptr + len, rest.len - len };
	}
	if (hops < HOPS_MAX)
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "it was carried %d times: it goes in circles", HOPS_MAX);
}

static bool
holds_headers(struct mr_room *room, const struct mr_message *msg)
{
	return !ROOM_HAS(room, lacks) || !(room->driver->lacks(room, msg) & FIELD_HEADERS);
}

enum mr_rc
carry_headers(const struct mr_message *msg, const char *step, struct mr_room *to, struct mr_message *ret,
    struct arena **own, struct mr_error *err)
{
	mr_auto(buf_done) struct buf trail = BUF_INIT;
	const char *before = mr_message_header(msg, TRAIL_HEADER);
	struct mr_header *headers = arena_alloc(own, (msg->headers_n + 1) * sizeof(*headers));
	size_t n = 0;

	if (!headers)
		return mr_nomem(err);
	TRY(check_trail(before ? before : "", step, err));
	for (size_t i = 0; i < msg->headers_n; i++) {
		const struct mr_header *h = &msg->headers[i];

		if (!message_header_reserved(str_of(h->name)) && !ascii_caseeq(h->name, "References") &&
		    !ascii_caseeq(h->name, TRAIL_HEADER))
			headers[n++] = *h;
	}
	buf_addf(&trail, "%s%s%s", before ? before : "", before ? ", " : "", step);
	headers[n].name = TRAIL_HEADER;
	headers[n].value = buf_ok(&trail) ? arena_dup(own, buf_str(&trail)) : NULL;
	if (!headers[n].value)
		return mr_nomem(err);
	ret->headers = headers;
	ret->headers_n = n + 1;
	if (!holds_headers(to, ret)) /* no reader there looks for it, and as text it would only be noise */
		ret->headers_n = n;
	return MR_OK;
}

/* ---- One link ---- */

static void
carrier_done(struct carrier *c)
{
	mr_room_close(c->there);
	mr_link_done(&c->link);
	free(c->stuck);
}

static enum mr_rc
carry_both(struct carrier *c, unsigned ways, struct mr_error *err)
{
	enum mr_rc rc = link_open(c->room, &c->link, &c->there, err);

	if (rc == MR_NOTFOUND && (ways & MR_CARRY_IN)) {
		struct mr_error second = { 0 };

		/* The room is gone, and with it what nobody had read. */
		if (carry_lost(c, &second) != MR_OK)
			carrier_trouble(c, &second);
	}
	if (rc != MR_OK)
		return rc;
	if (ways & MR_CARRY_IN)
		rc = carry_in(c, err);
	if (rc == MR_OK && (ways & MR_CARRY_OUT))
		rc = carry_out(c, err);
	if (rc == MR_OK && (ways & MR_CARRY_IN))
		rc = carry_lost(c, err);
	return rc == MR_OK ? MR_OK : mr_wrap(err, "link '%s'", c->link.name);
}

enum mr_rc
mr_carry(struct mr_room *room, const char *link, unsigned ways, mr_carry_trouble_fn *trouble, void *ctx,
    struct mr_carried *ret, struct mr_error *err)
{
	mr_auto(carrier_done) struct carrier c = { .room = room, .trouble = trouble, .ctx = ctx };
	enum mr_rc rc = mr_link_get(room, link, &c.link, err);

	if (rc != MR_OK)
		return rc;
	link_queue_of(link, c.queue);
	rc = carry_both(&c, ways, err);
	*ret = c.count;
	return rc;
}

enum mr_rc
carry_after_send(struct mr_room *room, const char *link, const char *id, mr_carry_trouble_fn *trouble, void *ctx,
    bool *ret_waits, struct mr_error *err)
{
	mr_auto(carrier_done) struct carrier c = { .room = room, .own = id, .trouble = trouble, .ctx = ctx };
	enum mr_rc rc = mr_link_get(room, link, &c.link, err);

	if (rc != MR_OK)
		return rc;
	link_queue_of(link, c.queue);
	rc = carry_both(&c, MR_CARRY_OUT, err);
	*ret_waits = c.own_waits;
	return rc;
}
