/* SPDX-License-Identifier: MIT */
/*
 * nudge_record.c - a nudge as text: lines of what is known of it, an empty one, what it says.
 *
 *	From: alice
 *	At: 2026-03-05T10:30:00.000Z
 *	Expires: 2026-03-05T11:00:00.000Z
 *	Priority: urgent
 *
 *	still on task 12?
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "office/nudge/nudge.h"
#include <inttypes.h>

static enum mr_rc
add_time(struct buf *out, const char *name, int64_t ms, struct mr_error *err)
{
	char text[RFC3339_LEN + 1];

	if (ms == 0)
		return MR_OK;
	time_rfc3339(ms, text);
	return header_add(out, name, str_of(text), err);
}

static enum mr_rc
add_word(struct buf *out, const char *name, const char *value, struct mr_error *err)
{
	return value && value[0] ? header_add(out, name, str_of(value), err) : MR_OK;
}

enum mr_rc
nudge_write(const struct mr_nudge *nudge, struct buf *out, struct mr_error *err)
{
	char times[24];

	(void)snprintf(times, sizeof times, "%u", nudge->times);
	TRY(add_word(out, "From", nudge->from, err));
	TRY(add_time(out, "At", nudge->at_ms, err));
	TRY(add_time(out, "Expires", nudge->expires_ms, err));
	TRY(add_time(out, "Not-Before", nudge->not_before_ms, err));
	TRY(add_word(out, "Priority", nudge->priority == MR_URGENT ? "urgent" : "", err));
	TRY(add_word(out, "Kind", nudge->kind, err));
	TRY(add_word(out, "Thread", nudge->thread, err));
	TRY(add_word(out, "Times", nudge->times > 1 ? times : "", err));
	buf_addf(out, "\n%s\n", nudge->text);
	return buf_ok(out) ? MR_OK : mr_nomem(err);
}

static void
take_line(struct mr_nudge *n, struct mr_str name, struct mr_str value, struct arena **own, bool *failed)
{
	const char **words[] = { &n->from, &n->kind, &n->thread };
	static const char *const word_names[] = { "From", "Kind", "Thread" };
	int64_t *times[] = { &n->at_ms, &n->expires_ms, &n->not_before_ms };
	static const char *const time_names[] = { "At", "Expires", "Not-Before" };
	uint64_t number;

	for (size_t i = 0; i < 3; i++) {
		if (str_caseeq(name, str_of(word_names[i]))) {
			*words[i] = arena_dup(own, value);
			*failed |= !*words[i];
		}
		if (str_caseeq(name, str_of(time_names[i])))
			(void)time_parse_rfc3339(value, times[i]);
	}
	if (str_caseeq(name, STR("Priority")) && str_caseeq(value, STR("urgent")))
		n->priority = MR_URGENT;
	if (str_caseeq(name, STR("Times")) && str_to_u64(value, &number) && number > 0 && number < 1000000)
		n->times = (unsigned)number;
}

enum mr_rc
nudge_parse(struct mr_str text, struct mr_nudge *ret, struct arena **own, struct mr_error *err)
{
	struct mr_nudge n = { .from = "", .text = "", .kind = "", .thread = "", .times = 1 };
	struct header_cursor c = header_begin(text);
	struct header_line line;
	bool failed = false;

	while (header_next(&c, &line)) {
		mr_auto(buf_done) struct buf value = BUF_INIT;

		header_unfold(&value, line.raw);
		failed |= value.failed;
		take_line(&n, line.name, buf_str(&value), own, &failed);
	}
	if (!c.ended || c.rest.len == 0 || n.from[0] == '\0' || n.expires_ms == 0)
		return mr_fail(err, MR_CORRUPT, "no nudge: it does not say from whom, until when, or what");
	if (c.rest.ptr[c.rest.len - 1] == '\n')
		c.rest.len--;
	n.text = arena_dup(own, c.rest);
	if (failed || !n.text)
		return mr_nomem(err);
	*ret = n;
	return MR_OK;
}

void
nudge_name(char ret[NUDGE_NAME_LEN + 1])
{
	char random[9];

	random_hex(random, 8);
	(void)snprintf(ret, NUDGE_NAME_LEN + 1, "%019" PRId64 "-%s", clock_now_ns(), random);
}

int64_t
nudge_name_ms(const char *name)
{
	const char *dash = strchr(name, '-');
	uint64_t ns;

	if (!dash || !str_to_u64((struct mr_str){ name, (size_t)(dash - name) }, &ns))
		return -1;
	return (int64_t)(ns / 1000000);
}
