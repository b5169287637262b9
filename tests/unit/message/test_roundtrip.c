/* SPDX-License-Identifier: MIT */
/* Whatever is written is read as the same, and garbage of any size is read quickly. */
#include "check.h"
#include "base/clock.h"
#include "base/id.h"
#include "message/message.h"

#if defined(__SANITIZE_ADDRESS__)
enum { ROUNDS = 1000 };
#else
enum { ROUNDS = 3000 };
#endif
/* Seconds of our own computing time, whatever else the machine does: what grows with the square takes hours. */
enum { GARBAGE = 20 << 20, QUICK_S = 10 };

static const char *const pieces[] = { "a", "Z", "9", " ", "  ", "\t", ":", "Re: ", "é", "漢", "🤝 HANDOFF: ", "=",
	"=?", "=?utf-8?q?x=0Ay?=", "?=", "\"", "<", ">", ",", ";", "(", "\\", "\x1b[1m", "\xe2\x80\xa8",
	"a-much-longer-word-" };

static const char *
random_text(uint64_t *seed, struct arena **own, uint32_t max_pieces)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	for (uint32_t n = random_below(seed, max_pieces + 1); n > 0; n--)
		buf_adds(&text, pieces[random_below(seed, sizeof(pieces) / sizeof(*pieces))]);
	return arena_dup(own, str_trim(buf_str(&text))); /* blanks at the ends of a header value do not count */
}

static char *
random_address(uint64_t *seed, struct arena **own)
{
	static const char *const names[] = { "alice", "rig/witness", "queue:work", "bob@elsewhere", "jörg@x",
		"a+b_c-d.e" };

	return arena_dup(own, str_of(names[random_below(seed, 6)]));
}

static struct mr_names
random_names(uint64_t *seed, struct arena **own)
{
	uint32_t n = random_below(seed, 8) == 0 ? random_below(seed, 300) : random_below(seed, 4);
	struct mr_names names = { arena_alloc(own, (n + 1) * sizeof(char *)), n };

	for (uint32_t i = 0; i < n; i++)
		names.v[i] = random_address(seed, own);
	return names;
}

static const char *
random_id(uint64_t *seed, struct arena **own)
{
	char id[MR_ID_LEN + 1];

	if (random_below(seed, 4) == 0)
		return "foreign.1@example.org";
	id_from_name(1772706600000 + random_below(seed, 1000000), STR("x"), id);
	return arena_dup(own, str_of(id));
}

static void
random_body(uint64_t *seed, struct arena **own, struct mr_message *m)
{
	mr_auto(buf_done) struct buf body = BUF_INIT;
	uint32_t kind = random_below(seed, 4);

	for (uint32_t n = random_below(seed, 50); n > 0; n--) {
		buf_adds(&body, pieces[random_below(seed, sizeof(pieces) / sizeof(*pieces))]);
		if (random_below(seed, 4) == 0)
			buf_adds(&body, random_below(seed, 3) ? "\n" : "\r\n");
		if (kind == 0)
			buf_addc(&body, (char)random_below(seed, 256));
	}
	if (body.len > 0)
		buf_addc(&body, '\n');
	m->body = arena_dup(own, buf_str(&body));
	m->body_len = body.len;
}

static struct mr_message
random_message(uint64_t *seed)
{
	struct mr_message m = { 0 };
	struct arena *own = NULL;

	id_from_name(1772706600000 + random_below(seed, 1000000), STR("own"), m.id);
	m.from = random_address(seed, &own);
	m.to = random_names(seed, &own);
	m.cc = random_names(seed, &own);
	m.subject = random_text(seed, &own, random_below(seed, 20) == 0 ? 2000 : 12);
	m.date_ms = 1000 * (int64_t)random_below(seed, UINT32_MAX);
	m.type = random_text(seed, &own, 2);
	m.priority = (enum mr_priority)((int)random_below(seed, 4) - 1);
	m.reply_to = random_below(seed, 2) ? random_id(seed, &own) : "";
	switch (random_below(seed, 4)) {
	case 0:
		m.thread = random_id(seed, &own);
		break;
	case 1:
		m.thread = random_text(seed, &own, 3);
		break;
	case 2:
		m.thread = m.reply_to;
		break;
	default:
		m.thread = arena_dup(&own, str_of(m.id));
		break;
	}
	m.replace_key = random_text(seed, &own, 2);
	m.sender_life = random_below(seed, 3) ? next_random(seed) : 0;
	m.by_ms = random_below(seed, 2) ? 1 + (int64_t)next_random(seed) * 500 : 0;
	m.not_before_ms = random_below(seed, 2) ? 1 + (int64_t)next_random(seed) * 500 : 0;
	struct mr_header *extra = arena_alloc(&own, 2 * sizeof(*extra));
	extra[0] = (struct mr_header){ "X-First", random_text(seed, &own, 8) };
	extra[1] = (struct mr_header){ random_below(seed, 2) ? "References" : "x-second",
		random_below(seed, 2) ? "<a@b> <c@d>" : random_text(seed, &own, 4) };
	m.headers = extra;
	m.headers_n = random_below(seed, 3);
	random_body(seed, &own, &m);
	m.own = own;
	return m;
}

static void
same_names(const struct mr_names *a, const struct mr_names *b)
{
	assert_int_equal(a->n, b->n);
	for (size_t i = 0; i < a->n; i++)
		assert_string_equal(a->v[i], b->v[i]);
}

static void
same_message(const struct mr_message *a, const struct mr_message *b)
{
	assert_string_equal(a->id, b->id);
	assert_string_equal(a->from, b->from);
	same_names(&a->to, &b->to);
	same_names(&a->cc, &b->cc);
	assert_string_equal(a->subject, b->subject);
	assert_int_equal(a->date_ms, b->date_ms);
	assert_string_equal(a->type, b->type);
	assert_int_equal(a->priority, b->priority);
	assert_string_equal(a->reply_to, b->reply_to);
	if (a->thread[0])
		assert_string_equal(a->thread, b->thread);
	assert_string_equal(a->replace_key, b->replace_key);
	assert_int_equal(a->sender_life, b->sender_life);
	assert_int_equal(a->by_ms, b->by_ms);
	assert_int_equal(a->not_before_ms, b->not_before_ms);
	for (size_t i = 0; i < a->headers_n; i++) {
		const char *value = mr_message_header(b, a->headers[i].name);
		if (a->headers[i].value[0] && strcmp(a->headers[i].name, "References") != 0)
			assert_string_equal(a->headers[i].value, value ? value : "(missing)");
	}
	assert_int_equal(a->body_len, b->body_len);
	assert_memory_equal(a->body, b->body, a->body_len);
}

static void
what_is_written_is_read_as_the_same(void **state)
{
	uint64_t seed = 20261105;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		mr_auto(mr_message_done) struct mr_message m = random_message(&seed);
		mr_auto(mr_message_done) struct mr_message back = { 0 };
		mr_auto(buf_done) struct buf text = BUF_INIT;
		struct mr_error err = { 0 };
		if (message_write(&m, "town", &text, &err) != MR_OK)
			fail_msg("round %d: %s", i, err.message);
		assert_true(message_headers_complete(buf_str(&text)));
		assert_int_equal(message_parse(buf_str(&text), "town", MESSAGE_ALL, &back, &err), MR_OK);
		same_message(&m, &back);
	}
}

/* Each filler once over 100 MB; what counts is that it ends soon and needs memory like the input, not more.
 */
static void
garbage_is_read_quickly(void **state)
{
	static const char *const fillers[] = { "x", "\n", "a:\n", "a: b\n c\n", "=?utf-8?q?", "(", "\"", "<", "<a>,",
		"=", "\r", " ", "To: a,b;c:\n", ": ", "\xff", "=?utf-8?q?a?= " };
	static const char *const heads[] = { "Subject: ", "To: ", "Content-Transfer-Encoding: quoted-printable\n\n",
		"Content-Transfer-Encoding: base64\nContent-Type: text/plain; charset=latin1\n\n" };
	size_t n = sizeof(fillers) / sizeof(*fillers);
	char *text = malloc(GARBAGE);

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < n + 4; i++) {
		size_t size = i < 4 ? GARBAGE : GARBAGE / 16;
		const char *filler = fillers[i % n], *head = heads[(i + i / n) % 4];
		size_t head_len = strlen(head), len = strlen(filler);
		memcpy(text, head, head_len);
		for (size_t k = head_len; k < size; k++)
			text[k] = filler[(k - head_len) % len];
		mr_auto(mr_message_done) struct mr_message m = { 0 };
		struct mr_error err = { 0 };
		clock_t start = clock();
		(void)message_parse((struct mr_str){ text, size }, "town", MESSAGE_ALL, &m, &err);
		(void)message_headers_complete((struct mr_str){ text, size });
		clock_t took = (clock() - start) / CLOCKS_PER_SEC;
		if (took > QUICK_S)
			fail_msg("'%s' after '%s' took %d s", filler, head, (int)took);
		assert_true(m.headers_n <= 1000);
	}
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_as_the_same),
		cmocka_unit_test(garbage_is_read_quickly),
	};
	return cmocka_run_group_tests_name("roundtrip", tests, NULL, NULL);
}
