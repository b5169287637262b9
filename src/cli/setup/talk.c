/* SPDX-License-Identifier: MIT */
/* talk.c - the configured MCP server, started and asked for the inbox as a client would. */
#include "base/spawn.h"
#include "cli/setup/setup.h"

#include "base/text.h"

#define LIMIT_MS 10000

static void
add_requests(const struct setup *s, const struct probe *p, struct buf *out)
{
	buf_adds(out,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\","
	    "\"capabilities\":{},\"clientInfo\":{\"name\":\"mailroom-setup\",\"version\":\"1\"}}}\n"
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"inbox\",\"arguments\":{}");
	if (strcmp(s->harness->name, "codex") == 0)
		buf_addf(out, ",\"_meta\":{\"threadId\":\"%s\"}", p->session);
	buf_adds(out, "}}\n");
}

/* The answer to a request is a line that has its id. */
static struct mr_str
answer_to(struct mr_str out, int64_t id)
{
	while (out.len > 0) {
		const char *end = memchr(out.ptr, '\n', out.len);
		struct mr_str line = { out.ptr, end ? (size_t)(end - out.ptr) : out.len };
		struct json_value all, got;
		const char *problem;
		uint64_t number = 0;

		if (end && json_whole(line, &all, &problem) && json_find(all, "id", &got) &&
		    str_to_u64(got.raw, &number) && number == (uint64_t)id)
			return line;
		out.ptr += line.len + (end != NULL);
		out.len -= line.len + (end != NULL);
	}
	return (struct mr_str){ 0 };
}

static bool
has_answered(void *ctx, const struct buf *out)
{
	(void)ctx;
	return answer_to(buf_str(out), 2).len > 0;
}

/* The first line of what it says, for a message. */
static void
add_words(struct buf *out, struct mr_str text)
{
	struct mr_str line = { text.ptr, text.len > 0 ? strcspn(text.ptr, "\n") : 0 };

	if (line.len > 0)
		buf_adds(out, ": ");
	text_clean_line(out, utf8_cut(line, 120));
}

static enum mr_rc
judge(const struct probe *p, const struct spawned *ran, struct mr_error *err)
{
	mr_auto(buf_done) struct buf why = BUF_INIT;
	struct mr_str answer = answer_to(buf_str(&ran->out), 2);

	if (answer.len > 0 && memmem(answer.ptr, answer.len, p->mark, strlen(p->mark)))
		return MR_OK;
	if (answer.len == 0) {
		spawned_describe(ran, LIMIT_MS, &why);
		add_words(&why, buf_str(&ran->err));
		return mr_fail(err, MR_REFUSED, "it gives no answer (%s)", buf_z(&why));
	}
	add_words(&why, answer);
	return mr_fail(err, MR_REFUSED, "its inbox is without the message%s", buf_z(&why));
}

enum mr_rc
talk_to_server(
    const struct setup *s, struct probe *p, const char *const *argv, const char *const *env, struct mr_error *err)
{
	mr_auto(buf_done) struct buf requests = BUF_INIT;
	struct spawned ran = { 0 };

	add_requests(s, p, &requests);
	struct spawn what = { .argv = argv,
		.input = buf_str(&requests),
		.env = env,
		.dir = p->root,
		.limit_ms = LIMIT_MS,
		.enough = has_answered };
	enum mr_rc rc = buf_ok(&requests) ? spawn_run(&what, &ran, err) : mr_nomem(err);

	if (rc == MR_OK)
		rc = judge(p, &ran, err);
	spawned_done(&ran);
	return rc;
}
