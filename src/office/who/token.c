/* SPDX-License-Identifier: MIT */
/*
 * token.c - tokens of the HTTP door. A token is 160 random bits that only its bearer has; the room keeps a record of
 * kind "token" whose name is its SHA-256, so the files of a room reveal no token. (The hashes need no salt and no slow
 * function, because 160 bits cannot be guessed.) A process that may write the room can write a record of its own, as it
 * can write mail under any name: mailroom(7) SECURITY.
 */
#include "base/id.h"
#include "message/header.h"
#include "office/who/who.h"

#define TOKEN "token" /* kind of record */
#define TOKENS_MAX 1000

#define AT(member) offsetof(struct mr_token, member)
static const struct record_field fields[] = {
	{ "Read-Only", RECORD_YES, AT(read_only) },
	{ "Browser", RECORD_YES, AT(browser) },
	{ "Created", RECORD_TIME, AT(created_ms) },
	{ "Expires", RECORD_TIME, AT(expires_ms) },
};

static enum mr_rc
load(struct mr_room *room, const char *hash, struct mr_token *ret, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };

	TRY(office_record(room, TOKEN, "", hash, &lines, err));
	const char *agent = record_get(&lines, "Agent");

	if (!agent || strlen(agent) > MR_ADDRESS_MAX)
		return mr_fail(err, MR_CORRUPT, "the record of token '%.8s' names no agent", hash);
	*ret = (struct mr_token){ 0 };
	record_read(&lines, RECORD_FIELDS(fields), ret);
	text_join(ret->agent, sizeof(ret->agent), agent, NULL);
	text_join(ret->name, sizeof(ret->name), hash, NULL);
	return MR_OK;
}

static bool
is_over(const struct mr_token *token)
{
	return token->expires_ms > 0 && token->expires_ms <= clock_now_ms();
}

enum mr_rc
mr_token_list(struct mr_room *room, struct mr_tokens *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names hashes = { 0 };
	mr_auto(roll_done) struct roll l = { 0 };

	if (!ROOM_HAS(room, record_put))
		return room_lacks(room, "tokens", err);
	TRY(office_records(room, TOKEN, "", &hashes, err));
	for (size_t i = 0; i < hashes.n; i++) {
		struct mr_token token, *t;

		/* An unreadable record grants nothing. */
		if (load(room, hashes.v[i], &token, IGNORED) == MR_OK && !is_over(&token) &&
		    (t = roll_add(&l, sizeof(*t))))
			*t = token;
	}
	return mr_got(roll_give(&l, ret), err);
}

enum mr_rc
mr_token_create(struct mr_room *room, const struct mr_token *what, char ret_secret[MR_SECRET_LEN + 1],
    struct mr_token *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names hashes = { 0 };
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	struct mr_token token = *what;
	size_t left = 0;

	if (!ROOM_HAS(room, record_put))
		return room_lacks(room, "tokens", err);
	TRY(agent_exists(room, token.agent, err));
	/* Expired ones are removed when a new one is made: only then their number grows. */
	TRY(office_records(room, TOKEN, "", &hashes, err));
	for (size_t i = 0; i < hashes.n; i++) {
		struct mr_token old;

		if (load(room, hashes.v[i], &old, IGNORED) == MR_OK && is_over(&old))
			(void)room->driver->record_drop(room, TOKEN, "", hashes.v[i], IGNORED);
		else
			left++;
	}
	if (left >= TOKENS_MAX)
		return mr_fail(err, MR_REFUSED,
		    "there are %d tokens already\n`mailroom token list` shows them, `mailroom token revoke NAME` removes one",
		    TOKENS_MAX);
	random_hex(ret_secret, MR_SECRET_LEN);
	sha256_hex((struct mr_str){ ret_secret, MR_SECRET_LEN }, token.name);
	token.created_ms = clock_now_ms();
	record_add(&lines, "Agent", token.agent);
	record_write(&lines, RECORD_FIELDS(fields), &token);
	TRY(mr_got(buf_ok(&lines), err));
	TRY(room->driver->record_put(room, TOKEN, "", token.name, buf_str(&lines), err));
	*ret = token;
	return MR_OK;
}

enum mr_rc
mr_token_check(struct mr_room *room, const char *secret, struct mr_token *ret, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent now = { 0 };
	char hash[65];
	struct mr_token token;

	if (!ROOM_HAS(room, record_put))
		return room_lacks(room, "tokens", err);
	sha256_hex(str_of(secret), hash);
	bool known = strlen(secret) == MR_SECRET_LEN && load(room, hash, &token, err) == MR_OK && !is_over(&token);

	/* A name that was pruned and registered again belongs to another agent, which must not get the first one's
	 * tokens. */
	if (!known || (mr_agent_get(room, token.agent, &now, IGNORED) == MR_OK && now.created_ms > token.created_ms))
		return mr_fail(err, MR_NOTFOUND,
		    "this token is not known here, or its time is up\n`mailroom token create` makes another");
	*ret = token;
	return MR_OK;
}

enum mr_rc
mr_token_revoke(struct mr_room *room, const char *name, struct mr_token *ret, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_tokens all = { 0 };
	const struct mr_token *found = NULL;
	size_t n = 0;

	TRY(mr_token_list(room, &all, err));
	for (size_t i = 0; i < all.n && *name; i++)
		if (str_starts(str_of(all.v[i].name), name)) {
			found = &all.v[i];
			n++;
		}
	if (!found)
		return mr_fail(err, MR_NOTFOUND, "there is no token '%s'\n`mailroom token list` shows them", name);
	if (n > 1)
		return mr_fail(
		    err, MR_REFUSED, "%zu tokens begin with '%s'\n`mailroom token list` shows them", n, name);
	TRY(room->driver->record_drop(room, TOKEN, "", found->name, err));
	*ret = *found;
	return MR_OK;
}
