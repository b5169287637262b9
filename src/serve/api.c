/* SPDX-License-Identifier: MIT */
/*
 * api.c - /api/v1: a path is a command, and its answer is what the command prints with --json: one object, or an array
 * of those that are a line each. Arguments come from the query, or from the JSON object in the body of a POST; their
 * table is of the same kind as that of the tools of MCP, so both check them alike.
 *
 * Mail is listed here and not by a command where the operator looks into a mailbox of somebody else: a command that
 * runs as that agent would make it look alive, and take the reminders that are meant for it.
 */
#include <stdlib.h>

#include "base/text.h"
#include "cli/mcp/mcp.h"
#include "serve/page.h"

#define LIST_DEFAULT 100
#define LIST_MAX 1000

enum answer { ONE, MANY };
struct endpoint {
	const char *method, *path; /* behind /api/v1/; what follows a "/" at its end is the first argument */
	enum answer answer;
	struct tool tool; /* its name is the command, its first argument the operand */
};

#define OPERAND(is, of_kind)                                                                                           \
	{                                                                                                              \
		.name = is, .kind = of_kind, .option = ARG_OPERAND, .required = true                                   \
	}
#define ID OPERAND("id", ARG_TEXT)
#define NAME OPERAND("name", ARG_TEXT)
#define CALL(command, ...)                                                                                             \
	{                                                                                                              \
		.name = command, .args = { __VA_ARGS__ }                                                               \
	}

static const struct endpoint endpoints[] = {
	{ "GET", "agents", MANY, CALL("who", { "live", ARG_FLAG, "--live" }) },
	{ "GET", "attention", ONE, CALL("top --once", { 0 }) },
	{ "GET", "messages/", ONE, CALL("read --peek", ID) },
	{ "GET", "queues", MANY, CALL("queue list", { 0 }) },
	{ "GET", "queues/", ONE,
	    CALL("queue show", NAME, { "done", ARG_FLAG, "--done" }, { "limit", ARG_NUMBER, "--limit" }) },
	{ "GET", "channels", MANY, CALL("channel list", { 0 }) },
	{ "GET", "channels/", ONE, CALL("channel show", NAME) },
	{ "GET", "dead", MANY, CALL("dead list", { "limit", ARG_NUMBER, "--limit" }) },
	{ "GET", "dead/", ONE, CALL("dead show", ID) },
	{ "GET", "why/", MANY, CALL("why", ID) },
	{ "GET", "resolve", ONE, CALL("resolve", OPERAND("address", ARG_TEXT)) },
	{ "POST", "send", ONE, { 0 } }, /* those without a name are tools of MCP */
	{ "POST", "done", ONE, { 0 } }, /* also release and fail */
	{ "POST", "nudge", ONE, { 0 } },
	{ "POST", "reply", ONE,
	    CALL("reply", ID, { "body", ARG_TEXT, "--message", .required = true }, { "subject", ARG_TEXT, "--subject" },
		{ "all", ARG_FLAG, "--all" }) },
	{ "POST", "mark", ONE,
	    CALL("mark", { "as", ARG_TEXT, ARG_OPERAND, .required = true, .choices = "read|unread|pinned|unpinned" },
		OPERAND("id", ARG_LIST)) },
	{ "POST", "archive", ONE, CALL("archive --include-unread", OPERAND("id", ARG_LIST)) },
	{ "POST", "release", ONE, CALL("release", ID, { "reason", ARG_TEXT, "--reason" }) },
	{ "POST", "retry", ONE, CALL("dead retry", ID, { "to", ARG_TEXT, "--to" }) },
	{ "POST", "drop", ONE, CALL("dead drop --force", ID) },
	{ "POST", "pause", ONE, CALL("queue pause", NAME) },
	{ "POST", "resume", ONE, CALL("queue resume", NAME) },
};

/* ---- A command ---- */

struct call {
	struct buf text, warnings;
	struct arena **own;
	const char *code, *message, *hint; /* of its error; NULL: none */
};

static bool
take(void *ctx, const struct cli *cli, struct mr_str text)
{
	struct call *call = ctx;

	(void)cli;
	buf_add(&call->text, text);
	return buf_ok(&call->text);
}

static void
say(void *ctx, const char *code, const char *message, const char *hint)
{
	struct call *call = ctx;

	if (!code) {
		buf_addf(&call->warnings, "%s%s", call->warnings.len > 0 ? "; " : "", message);
		return;
	}
	call->code = arena_dup(call->own, str_of(code));
	call->message = arena_dup(call->own, str_of(message));
	call->hint = arena_dup(call->own, str_of(hint));
}

static unsigned
status_of_exit(int code)
{
	/* From EXIT_DONE on. */
	static const unsigned short statuses[EXIT_DOUBT + 1] = { 200, 500, 400, 404, 409, 404, 500 };

	return code >= EXIT_DONE && code <= EXIT_DOUBT ? statuses[code] : 500;
}

/* The lines as an array. They are whole objects: a string in one has no line break. */
static void
add_array(struct buf *out, struct mr_str lines)
{
	struct mr_str line;
	bool any = false;

	buf_addc(out, '[');
	while (str_line(&lines, &line)) {
		buf_adds(out, any ? ",\n" : "");
		buf_add(out, line);
		any = true;
	}
	buf_adds(out, "]\n");
}

static enum mr_rc
run_command(struct request *req, const struct words *words, enum answer answer, struct mr_error *err)
{
	struct call call = { .own = &req->own };
	struct cli_sink sink = { .take = take, .say = say, .ctx = &call };
	char **argv = arena_alloc(&req->own, sizeof(char *) * (words->v.n + 1));

	TRY(mr_got(argv != NULL, err));
	memcpy(argv, words->v.v, sizeof(char *) * words->v.n);
	argv[words->v.n] = NULL;
	int code = cli_call(&(struct cli_call){ .sink = &sink,
				.room = req->server->spec,
				.as = req->agent,
				.door = MR_DOOR_HTTP,
				.env_aged = true,
				.threaded = true },
	    (int)words->v.n, argv);

	if (call.warnings.len > 0) {
		char *kept = arena_dup(&req->own, utf8_cut(buf_str(&call.warnings), 500));

		for (char *p = kept; p && *p; p++)
			*p = (unsigned char)*p < ' ' || (unsigned char)*p > '~' ? '?' : *p; /* a header is ASCII */
		if (kept)
			reply_header(req, "Mailroom-Warning", kept);
	}
	if (code != EXIT_DONE && !(code == EXIT_NOTHING && !call.code))
		(void)reply_error(req, status_of_exit(code), call.code ? call.code : "failed",
		    call.message ? call.message : "the command failed", call.hint ? call.hint : "");
	else if (answer == MANY)
		add_array(req->out, buf_str(&call.text));
	else
		buf_add(req->out, buf_str(&call.text));
	req->reply->body.failed |= call.text.failed;
	buf_done(&call.text);
	buf_done(&call.warnings);
	return MR_OK;
}

/* ---- Mail, in one mailbox or in all ---- */

static enum mr_rc
read_limit(const struct request *req, uint64_t *most, struct mr_error *err)
{
	const char *limit = params_get(&req->query, "limit");

	if (limit && (!str_to_u64(str_of(limit), most) || *most == 0 || *most > LIST_MAX))
		return mr_fail(err, MR_REFUSED, "'limit' must be a number from 1 to %d", LIST_MAX);
	return MR_OK;
}

/* messages, threads/ID, and search, which is messages for words. The operator sees all mailboxes, or with ?agent= one;
 * an agent its own. A thread has also what is in no mailbox: work, posts, mail to other rooms. */
enum mr_rc
api_messages(struct request *req, struct mr_error *err)
{
	const char *thread = *req->rest ? req->rest : NULL;
	mr_auto(letters_done) struct letters all = { .bodies = thread != NULL, .json = true };
	uint64_t most = thread ? LIST_MAX : LIST_DEFAULT;
	struct letters_filter filter;

	req->reply->type = "application/json";
	if (str_ends(str_of(req->path), "/search") && !*req_value(req, "q"))
		return mr_fail(err, MR_REFUSED, "the search has no words\ngive them as search?q=WORDS");
	TRY(letters_filter(req, &filter, err));
	TRY(read_limit(req, &most, err));
	filter.is.folders = thread ? 0 : MR_INBOX | MR_HELD | MR_ARCHIVE;
	filter.is.thread = thread ? thread : filter.is.thread;
	TRY(letters_load(req, filter.agent, &filter.is, (size_t)most, &all, err));
	if (thread && all.n == 0)
		return mr_fail(err, MR_NOTFOUND, "there is no thread '%s'", thread);
	size_t n = all.n < most ? all.n : (size_t)most;

	buf_addc(req->out, '[');
	for (size_t i = 0; i < n; i++) {
		buf_adds(req->out, i > 0 ? ",\n" : "");
		buf_adds(req->out, all.v[thread ? n - 1 - i : i].json);
	}
	buf_adds(req->out, "]\n");
	return MR_OK;
}

/* Conversations, that with the newest message first. */
enum mr_rc
api_threads(struct request *req, struct mr_error *err)
{
	mr_auto(letters_done) struct letters all = { 0 };
	struct letters_filter filter;
	struct json j = JSON_INIT(req->out);
	uint64_t most = LIST_DEFAULT;

	req->reply->type = "application/json";
	TRY(letters_filter(req, &filter, err));
	TRY(read_limit(req, &most, err));
	TRY(letters_threads(req, &filter, (size_t)most, &all, err));
	json_open(&j, '[');
	for (size_t i = 0; i < all.n && i < most; i++) {
		const struct letter *l = &all.v[i];

		json_open(&j, '{');
		json_cells(
		    &j, CELLS(kv_str("thread", l->is.thread), kv_str("subject", l->is.subject),
			    kv_size("messages", l->letters), kv_size("unread", l->unread), kv_str("newest", l->is.id),
			    kv_time("date", l->is.date_ms), kv_str("from", l->is.from), kv_names("to", &l->is.to),
			    kv_opt("type", l->is.type), kv_str("priority", mr_priority_word(l->is.priority))));
		json_close(&j);
	}
	json_close(&j);
	buf_addc(req->out, '\n');
	return MR_OK;
}

/* The arguments of a GET: its query and what stood in the path, as the object that a POST would have sent. */
static void
query_as_json(const struct request *req, const char *first, struct buf *out)
{
	struct json j = JSON_INIT(out);

	json_open(&j, '{');
	for (size_t i = 0; i < req->query.n; i++)
		json_key_str(&j, req->query.v[i].name, req->query.v[i].value);
	if (*req->rest)
		json_key_str(&j, first, req->rest);
	json_close(&j);
}

enum mr_rc
api(struct request *req, struct mr_error *err)
{
	mr_auto(buf_done) struct buf arguments = BUF_INIT, said = BUF_INIT;
	bool post = strcmp(req->method, "POST") == 0;
	const char *type = req_header(req, "Content-Type"), *problem = NULL, *path = req->rest, *wrong = NULL;
	const struct endpoint *e = endpoints, *end = e + sizeof(endpoints) / sizeof(endpoints[0]);
	mr_auto(args_done) struct args args = { 0 };
	mr_auto(words_done) struct words words = { 0 };
	struct json_value given;

	req->reply->type = "application/json";
	while (e < end && (strcmp(e->method, req->method) != 0 || !path_fits(e->path, path, &req->rest)))
		e++;
	if (e == end)
		return mr_fail(err, MR_NOTFOUND, "there is nothing at this path\ndocs/HTTP.md lists what there is");
	/* A page of another site can send a form without being asked, but not this type. */
	if (post && (!type || !str_starts(str_of(type), "application/json")))
		return reply_error(
		    req, 415, "type", "the body must be a JSON object, with Content-Type: application/json", "");
	const struct tool *tool = e->tool.name ? &e->tool : tool_named(str_of(e->path));

	if (!post)
		query_as_json(req, tool->args[0].name ? tool->args[0].name : "", &arguments);
	TRY(mr_got(!arguments.failed, err));
	if (!json_whole(post ? req->body : buf_str(&arguments), &given, &problem) || given.kind != JSON_OBJECT)
		return reply_error(req, 400, "usage", "the body is not a JSON object", problem ? problem : "");
	words_add(&words, "mailroom");
	words_add(&words, "--json");
	if (!args_read(tool, given, &args, &said) || !args_command(tool, &args, &words, &wrong)) {
		struct mr_str rest = buf_str(&said), message = STR("");

		(void)str_line(&rest, &message);
		message = wrong ? str_of(wrong) : message;
		return reply_error(
		    req, 400, "usage", arena_dup(&req->own, message), !wrong && rest.len > 6 ? rest.ptr + 6 : "");
	}
	TRY(mr_got(!words.failed, err));
	return run_command(req, &words, e->answer, err);
}
