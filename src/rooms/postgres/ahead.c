/* SPDX-License-Identifier: MIT */
/*
 * ahead.c - what need not be asked for, because it came with another answer. Over a network a round trip takes longer
 * than everything that the server does for it, so a command has two or three of them:
 *
 * - What a command will ask for is known from its words (room->expects): who acts, recipients, the token of a claim.
 * Calls for these go to the server in one pipeline with hello(), and for a list of sent mail another such pipeline asks
 * what became of each. The answers are kept by function and arguments, and pg_run finds them there.
 * - hello() and life_newest() bring the small records of the room and of the agent that acts.
 * - A list of names brings the text of the first letters, which the caller is about to open.
 * - A sweep goes in the pipeline of the next call.
 * - The first letter that a command takes to show it takes the page of it along; what was shown is marked together,
 * with the flush, and what was not goes back at the end.
 * - The first glance at one of the agents that were listed asks for all of them, each answer good for one glance.
 *
 * All of it stands for a second, in a command for five, and until this handle changes something of it, takes a lock or
 * is woken. A handle that was opened without a hint looks letters and agents up each time.
 */
#include "rooms/postgres/postgres.h"

#define MEMO_MS 1000
#define COMMAND_MS 5000 /* a command asks for all it needs at its beginning, and is over soon */
#define EXPECTED_MAX 32

static int64_t
memo_until(const struct postgres *pg)
{
	return clock_boot_ms() + (pg->expects.n > 0 ? COMMAND_MS : MEMO_MS);
}

void
pg_forget(struct pg_memo *memo)
{
	free(memo->small);
	free(memo->session);
	*memo = (struct pg_memo){ 0 };
}

const struct pg_memo *
pg_memo(const struct postgres *pg, const char *owner)
{
	const struct pg_memo *memo = owner[0] ? &pg->self_memo : &pg->room_memo;

	return memo->small && strcmp(memo->owner, owner) == 0 && clock_boot_ms() < memo->until_ms ? memo : NULL;
}

void
pg_remember(struct postgres *pg, const char *owner, const struct pg_call *c, int row, int column)
{
	struct pg_memo *memo = owner[0] ? &pg->self_memo : &pg->room_memo;
	pg_forget(memo);
	if (column < 0 || PQgetisnull(c->rows, row, column))
		return;
	memo->small = strdup(pg_get_text(c, row, column));
	memo->until_ms = memo_until(pg);
	(void)snprintf(memo->owner, sizeof(memo->owner), "%s", owner);
}

bool
pg_remember_life(struct postgres *pg, const char *name, const struct pg_call *c)
{
	struct pg_memo *memo = &pg->self_memo;

	pg_remember(pg, name, c, 0, 2);
	memo->life = (unsigned)pg_get_int(c, 0, 0);
	memo->session = strdup(pg_get_text(c, 0, 1));
	return memo->session != NULL;
}

/* ---- Small records: lines "KIND NAME", with the text in hexadecimal behind it where it is short ---- */

bool
pg_is_small(const char *kind, const char *owner)
{
	static const char *const own[] = { "due", "nudge", "announced", "announced-log", "dnd", NULL };
	static const char *const rooms[] = { "group", "queue", "channel", "link", "type", "wakes", NULL };

	for (const char *const *k = owner[0] ? own : rooms; *k; k++)
		if (strcmp(*k, kind) == 0)
			return true;
	return false;
}

static void
add_hex(struct buf *out, const char *hex)
{
	static const char digits[] = "0123456789abcdef";

	for (; hex[0] && strchr(digits, hex[0]) && hex[1] && strchr(digits, hex[1]); hex += 2)
		buf_addc(out, (char)((strchr(digits, hex[0]) - digits) << 4 | (strchr(digits, hex[1]) - digits)));
}

enum pg_known
pg_small_record(struct postgres *pg, const char *kind, const char *owner, const char *name, struct buf *ret)
{
	const struct pg_memo *memo = pg_is_small(kind, owner) ? pg_memo(pg, owner) : NULL;
	size_t kind_len = strlen(kind), name_len = strlen(name);

	bool told = owner[0] && strcmp(kind, "announced") == 0;

	if (!memo || (told && memo->told_looked))
		return PG_UNKNOWN;
	pg->self_memo.told_looked |= told;
	for (const char *at = memo->small; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		if (strncmp(at, kind, kind_len) != 0 || at[kind_len] != ' ' ||
		    strncmp(at + kind_len + 1, name, name_len) != 0)
			continue;
		const char *end = at + kind_len + 1 + name_len;

		if (*end == ' ') {
			add_hex(ret, end + 1);
			return PG_THERE;
		}
		if (*end == '\n' || *end == '\0')
			return PG_UNKNOWN; /* it is there, but too long to come along */
	}
	return PG_MISSING;
}

/* ---- Answers that are kept by what was asked ---- */

struct pg_kept {
	char *key;
	size_t key_len;
	PGresult *rows;
	int64_t until_ms;
	struct pg_kept *next;
};

static struct mr_str
key_of(const struct pg_call *c, struct buf *out)
{
	buf_adds(out, c->function);
	for (int i = 0; i < c->n; i++) {
		buf_addc(out, c->values[i] ? '\1' : '\0');
		if (c->values[i] && c->formats[i] == 0)
			buf_adds(out, c->values[i]);
		else if (c->values[i])
			buf_add(out, (struct mr_str){ c->values[i], (size_t)c->lengths[i] });
	}
	return buf_str(out);
}

bool
pg_kept_find(struct postgres *pg, struct pg_call *c)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	if (!pg->kept || !c->reads || pg->sweeps[0]) /* a sweep may change it */
		return false;
	struct mr_str key = key_of(c, &out);

	for (struct pg_kept *k = pg->kept; k && buf_ok(&out); k = k->next)
		if (k->key_len == key.len && memcmp(k->key, key.ptr, key.len) == 0 && clock_boot_ms() < k->until_ms) {
			c->rows = PQcopyResult(k->rows, PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
			if (strcmp(c->function, "scan") == 0) /* a glance: the second one is for what came since */
				k->until_ms = 0;
			return c->rows != NULL;
		}
	return false;
}

static void
keep(struct postgres *pg, struct pg_call *c)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct mr_str key = key_of(c, &out);
	struct pg_kept *k = buf_ok(&out) && c->rows ? calloc(1, sizeof(*k)) : NULL;

	if (!k)
		return;
	if (pg->kept && clock_boot_ms() > pg->kept->until_ms) /* the newest of them */
		pg_kept_done(pg);
	*k = (struct pg_kept){ .key_len = key.len, .rows = c->rows, .until_ms = memo_until(pg), .next = pg->kept };
	k->key = buf_take(&out);
	c->rows = NULL;
	pg->kept = k;
}

static bool
is_worth_keeping(const struct pg_call *c)
{
	static const char *const those[] = { "agents", "record_get", "places", "claims_past", "claim_find" };
	const char *function = c->function;

	if (strcmp(function, "record_get") == 0 && strncmp(c->values[0], "announced", 9) == 0)
		return false; /* another process may note more at any moment */
	for (size_t i = 0; i < sizeof(those) / sizeof(those[0]); i++)
		if (strcmp(those[i], function) == 0)
			return true;
	return false;
}

void
pg_keep_copy(struct postgres *pg, const struct pg_call *c)
{
	struct pg_call copy = *c;

	if (pg->expects.n == 0 || !c->reads || !is_worth_keeping(c))
		return;
	copy.rows = PQcopyResult(c->rows, PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
	keep(pg, &copy);
	PQclear(copy.rows);
}

/* ---- Many calls in one pipeline ---- */

struct pg_call *
pg_batch_add(struct pg_batch *b, const char *function)
{
	if (b->n == PG_BATCH_MAX)
		return NULL;
	b->v[b->n] = PG_READ(function);
	b->v[b->n].before = b->n > 0 ? &b->v[b->n - 1] : NULL;
	return &b->v[b->n++];
}

void
pg_batch_keep(struct postgres *pg, struct pg_batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		keep(pg, &b->v[i]);
		pg_call_done(&b->v[i]);
	}
	arena_free(b->own);
	free(b);
}

static bool
looks_like_token(const char *word)
{
	return strlen(word) == MR_TOKEN_LEN && strspn(word, "0123456789abcdefghjkmnpqrstvwxyz") == MR_TOKEN_LEN;
}

bool
pg_expect(struct postgres *pg, const struct mr_names *expects)
{
	for (size_t i = 0; expects && i < expects->n && i < EXPECTED_MAX; i++)
		if (strlen(expects->v[i]) <= MR_ADDRESS_MAX && !names_add(&pg->expects, str_of(expects->v[i])))
			return false;
	return true;
}

struct pg_batch *
pg_expected(struct postgres *pg)
{
	struct pg_batch *b = pg->expects.n > 0 ? calloc(1, sizeof(*b)) : NULL;

	if (!b)
		return NULL;
	for (size_t i = 0; i < pg->expects.n; i++) {
		bool token = i > 0 && looks_like_token(pg->expects.v[i]);

		PG_BIND(pg_batch_add(b, token ? "claim_find" : "agents"), TEXT(pg->expects.v[i]));
	}
	PG_BIND(pg_batch_add(b, "life_newest"), TEXT(pg->expects.v[0]));
	return b;
}

/* What `sent` asks about each message: its text, and where each recipient has it. */
void
pg_expect_sent(struct pg_batch *b, const char *agent, const struct mr_message *msg)
{
	if (b->n + 1 + msg->to.n > PG_BATCH_MAX)
		return;
	const char *id = arena_dup(&b->own, str_of(msg->id));
	struct pg_call *c = pg_batch_add(b, "mail_fetch");

	PG_BIND(c, TEXT(agent), TEXT(id), INT(MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT), INT(SCAN_BODIES));
	for (size_t i = 0; i < msg->to.n; i++) {
		c = pg_batch_add(b, "mail_fetch");
		PG_BIND(c, TEXT(arena_dup(&b->own, str_of(msg->to.v[i]))), TEXT(id),
		    INT(MR_INBOX | MR_HELD | MR_ARCHIVE), INT(SCAN_NAMES));
	}
}

/* ---- Letters ---- */

void
pg_letters_keep(struct postgres *pg, const char *box, struct pg_call *c)
{
	pg_letters_done(pg);
	pg->letters.rows = c->rows;
	c->rows = NULL; /* ours now */
	pg->letters.n = PQntuples(pg->letters.rows);
	pg->letters.held = calloc((size_t)pg->letters.n + 1, sizeof(*pg->letters.held));
	if (!pg->letters.held)
		pg->letters.n = 0;
	pg->letters.until_ms = clock_boot_ms() + COMMAND_MS;
	(void)snprintf(pg->letters.box, sizeof(pg->letters.box), "%s", box);
}

struct pg_held *
pg_letter_held(struct postgres *pg, const char *box, const char *id, int *ret_row)
{
	struct pg_letters *l = &pg->letters;
	bool old = clock_boot_ms() > l->until_ms; /* then only what is held by us is surely as it was */

	for (int i = 0; i < l->n && strcmp(l->box, box) == 0; i++)
		if (strcmp(PQgetvalue(l->rows, i, 0), id) == 0) {
			*ret_row = i;
			return old && !l->held[i].ahead && !l->held[i].claimed ? NULL : &l->held[i];
		}
	return NULL;
}

static void
drop_name(struct mr_names *names, size_t i)
{
	free(names->v[i]);
	names->v[i] = names->v[--names->n];
}

bool
pg_was_ahead(struct postgres *pg, const char *id)
{
	for (size_t i = 0; i < pg->ahead.n; i++)
		if (strcmp(pg->ahead.v[i], id) == 0) {
			drop_name(&pg->ahead, i); /* its next hold may be one by itself */
			return true;
		}
	return false;
}

void
pg_end_hold(struct postgres *pg, const char *box, const char *id, const char *how)
{
	struct pg_ends *e = &pg->ends;
	size_t n = e->ids.n;
	bool ahead = pg_was_ahead(pg, id);

	(void)snprintf(e->box, sizeof(e->box), "%s", box);
	if (names_add(&e->ids, str_of(id)) && names_add(&e->hows, str_of(how)) &&
	    names_add(&e->ahead, ahead ? STR("1") : STR("0")))
		return;
	/* Out of memory: the hold ends with the session, and the message is shown again. */
	for (size_t k = 0; k < 3; k++) {
		struct mr_names *list = k == 0 ? &e->ids : k == 1 ? &e->hows : &e->ahead;

		if (list->n > n)
			drop_name(list, n);
	}
}

void
pg_letter_gone(struct postgres *pg, const char *box, const char *id)
{
	int row;
	struct pg_held *held = pg_letter_held(pg, box, id, &row);

	if (held)
		held->gone = true;
}

void
pg_letters_done(struct postgres *pg)
{
	for (int i = 0; i < pg->letters.n; i++)
		if (pg->letters.held && pg->letters.held[i].ahead)
			pg_end_hold(pg, pg->letters.box, PQgetvalue(pg->letters.rows, i, 0), "n");
	PQclear(pg->letters.rows);
	free(pg->letters.held);
	pg->letters = (struct pg_letters){ 0 };
}

void
pg_kept_done(struct postgres *pg)
{
	for (struct pg_kept *k = pg->kept, *next; k; k = next) {
		next = k->next;
		PQclear(k->rows);
		free(k->key);
		free(k);
	}
	pg->kept = NULL;
}

void
pg_forget_all(struct postgres *pg)
{
	pg_forget(&pg->room_memo);
	pg_forget(&pg->self_memo);
	pg_letters_done(pg);
	pg_kept_done(pg);
}
