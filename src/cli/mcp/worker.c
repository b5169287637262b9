/* SPDX-License-Identifier: MIT */
/*
 * worker.c - the processes that the server starts.
 *
 * A worker runs one call: the command with its text caught. It answers through a socket, and goes on (marks mail as
 * read, keeps a claim) only when the server has said that stdout took the answer. When the answer goes out: a command
 * that shows mail flushes before it marks, so its first flush is the answer. One that has changed the room already
 * cannot be undone by a lost answer, so its text waits for the warnings behind it.
 *
 * How it ends early: the server closes the socket, by cancelling or by dying. A worker that waits for mail holds
 * nothing and is ended by SIGIO at once. Any other is at work for milliseconds, finds out when it answers, and puts
 * back what nobody saw; killed in that moment it would keep a claim until its lease ends.
 *
 * A watcher looks for new mail for a subscription and writes a byte when some came. It consumes nothing and marks
 * nothing. New is what was not unread at the last look, by id: a wait alone would end at once while older mail is
 * unread. The wait therefore asks only for mail younger than all that is known. Dates are whole seconds, and a slow
 * sender delivers behind the others: such mail is found by the count of what is unread, looked at every two seconds
 * (more often right after mail came), and at the latest by a full look once a minute. Which agent we are may change
 * meanwhile (a session is bound late, a name is taken over): it is asked again each minute, and while there is no
 * answer, every two seconds.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/mcp/mcp.h"
#include "cli/view.h"

#define GLANCE_MS 2000
#define BUSY_GLANCE_MS 200
#define FULL_LOOK_MS (60 * 1000)
#define CROWDED_PAUSE_MS 500 /* what woke us is nothing that we can see */

/* ---- The process ---- */

static void
heed_nothing(int signal_number)
{
	(void)signal_number;
}

void
child_detach(struct mcp_server *s)
{
	int null_fd = sys_open(AT_FDCWD, "/dev/null", O_RDWR, 0);

	/* A handler, not SIG_IGN, which programs that a command starts would inherit. */
	(void)signal(SIGINT, heed_nothing);
	(void)signal(SIGTERM, heed_nothing);
	for (int fd = 0; fd < 2; fd++)
		if (null_fd < 0 || dup2(null_fd, fd) < 0)
			_exit(EXIT_FAILED);
	/* The other children must see it when the server ends: nobody else may hold its ends of their sockets. */
	for (size_t i = 0; i < MCP_CHILDREN_MAX; i++)
		if (s->children[i].pid > 0)
			(void)sys_close(s->children[i].fd);
}

static int followed_fd = -1; /* for the signal handler */

/* The server writes nothing to one that follows it: what can be read is the end. */
static void
look_up(int signal_number)
{
	struct pollfd end = { .fd = followed_fd, .events = POLLIN };

	(void)signal_number;
	if (poll(&end, 1, 0) > 0)
		_exit(EXIT_DONE);
}

/* From now on the end of the server ends this process. */
static void
follow(int fd)
{
	followed_fd = fd;
	(void)signal(SIGIO, look_up);
	(void)fcntl(fd, F_SETOWN, (int)getpid());
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC);
	look_up(SIGIO); /* it may have ended before */
}

void
child_begin(struct mcp_server *s, int fd)
{
	child_detach(s);
	follow(fd);
}

static void
say_nothing(void *ctx, const char *code, const char *message, const char *hint)
{
	(void)ctx, (void)code, (void)message, (void)hint;
}

bool
child_opens(struct cli *cli, const struct mcp_server *s, const char *session)
{
	static struct cli_sink silence = { .say = say_nothing };

	*cli = (struct cli){ .sink = &silence,
		.room_option = s->room,
		.as_option = s->as,
		.caller_session = session,
		.env_aged = true };
	return cli_open_room(cli, IGNORED) == MR_OK && (!cli->second_session || cli->as_option) &&
	       mr_self_resolve(cli->room, &cli->env, &cli->self, IGNORED) == MR_OK;
}

/* ---- A worker's answer ---- */

struct worker {
	const struct mcp_request *request;
	const struct job *job;
	int fd;
	struct cli_sink sink;
	struct buf text;  /* of the command's stdout */
	struct buf words; /* of its stderr */
	bool failed;      /* an error was said */
	char id[MR_ID_LEN + 1];
	struct mr_names whole, cut; /* ids of what is shown */
	char token[MR_TOKEN_LEN + 1];
	unsigned attempt;
};

static void
add_result(struct buf *line, const struct worker *w, struct mr_str text, bool error)
{
	struct json j = JSON_INIT(line);
	bool resource = w->job->resource;
	enum tool_output output = w->job->tool->output;
	bool work = output == TOOL_WORK && w->token[0];

	answer_begin(&j, w->request);
	json_cells(
	    &j, CELLS(kv_list(resource ? "contents" : "content"), kv_open(""),
		    kv_str(resource ? "uri" : "type", resource ? MCP_INBOX_URI : "text"),
		    kv_if("mimeType", resource ? "text/plain" : NULL), kv_text("text", text), kv_close(), kv_close()));
	if (resource)
		answer_cache(&j, w->request, 0, false);
	/* Nothing in it that others wrote, but the text: ids and tokens are ours. */
	if (!resource && !error)
		json_cells(&j, CELLS(kv_open("structuredContent"), kv_text("text", text),
				   work || output == TOOL_SENT ? kv_str("id", w->id) : kv_none(),
				   output == TOOL_MAIL ? kv_names("ids", &w->whole) : kv_none(),
				   output == TOOL_MAIL && w->cut.n > 0 ? kv_names("cut", &w->cut) : kv_none(),
				   work ? kv_str("token", w->token) : kv_none(),
				   work ? kv_int("attempt", w->attempt) : kv_none(), kv_close()));
	if (!resource)
		json_cells(&j, CELLS(kv_bool("isError", error)));
	answer_end(&j, w->request);
}

/* True: the server's stdout took it. */
static bool
deliver(struct worker *w, bool error)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, line = BUF_INIT;
	char mark[FENCE_MARK_LEN + 1], byte;
	bool fence = w->job->tool->fence && w->text.len > 0;

	w->sink.closed = true;
	/* The server's next byte is its word that stdout took the answer, not its end. */
	(void)fcntl(w->fd, F_SETFL, fcntl(w->fd, F_GETFL) & ~O_ASYNC);
	(void)signal(SIGIO, heed_nothing);
	fence_mark(mark);
	if (fence)
		fence_open(&text, mark);
	buf_add(&text, buf_str(&w->text));
	if (fence)
		fence_close(&text, mark); /* before the words, which are ours */
	buf_add(&text, buf_str(&w->words));
	while (text.len > 0 && text.ptr[text.len - 1] == '\n')
		text.ptr[--text.len] = '\0';
	if (w->text.failed || w->words.failed || text.failed)
		return false;
	if (w->job->resource && error)
		answer_error(&line, w->request, MCP_INTERNAL, buf_z(&text), NULL);
	else
		add_result(&line, w, buf_str(&text), error);
	return buf_ok(&line) && sys_write_all(w->fd, line.ptr, line.len) == 0 && sys_read(w->fd, &byte, 1) == 1;
}

/* ---- What the command says ---- */

static bool
take(void *ctx, const struct cli *cli, struct mr_str text)
{
	struct worker *w = ctx;

	buf_add(&w->text, text);
	if (cli->done_id)
		(void)snprintf(w->id, sizeof(w->id), "%s", cli->done_id);
	if (w->text.failed)
		return false;
	return cli->changed || deliver(w, w->failed && w->whole.n + w->cut.n == 0);
}

static void
say(void *ctx, const char *code, const char *message, const char *hint)
{
	struct worker *w = ctx;
	mr_auto(buf_done) struct buf late = BUF_INIT;
	struct buf *out = w->sink.closed ? &late : &w->words;

	w->failed |= code != NULL;
	buf_addf(out, "%s\n", message);
	if (hint[0])
		buf_addf(out, "hint: %s\n", hint);
	if (w->sink.closed && buf_ok(&late)) /* the client's log is what is left */
		(void)sys_write_all(2, late.ptr, late.len);
}

static void
note_shown(void *ctx, const struct mr_message *msg, bool whole)
{
	struct worker *w = ctx;

	if (!names_add(whole ? &w->whole : &w->cut, str_of(msg->id)))
		w->text.failed = true;
	if (w->job->tool->output != TOOL_WORK)
		return;
	(void)snprintf(w->id, sizeof(w->id), "%s", msg->id);
	(void)snprintf(w->token, sizeof(w->token), "%s", msg->token);
	w->attempt = msg->attempt;
}

_Noreturn void
worker_run(struct mcp_server *s, const struct mcp_request *r, const struct job *job, int fd)
{
	struct worker w = { .request = r, .job = job, .fd = fd };
	struct cli_call call = { .sink = &w.sink,
		.room = s->room,
		.as = s->as,
		.session = request_session(r, s->opencode),
		.door = s->greeted ? MR_DOOR_HTTP : MR_DOOR_MCP, /* greeted: src/serve/mcp.c hands requests over */
		.env_aged = true };
	char **argv = calloc(job->words.v.n + 2, sizeof(char *));
	static char self[] = "mailroom";

	child_detach(s);
	w.sink = (struct cli_sink){ .take = take, .say = say, .shown = note_shown, .ctx = &w };
	if (job->tool->patience_s > 0)
		follow(fd);
	if (!argv || job->words.failed)
		_exit(EXIT_FAILED);
	argv[0] = self;
	for (size_t i = 0; i < job->words.v.n; i++)
		argv[i + 1] = job->words.v.v[i];
	int code = cli_call(&call, (int)job->words.v.n + 1, argv);

	if (!w.sink.closed)
		(void)deliver(&w, code != EXIT_DONE && code != EXIT_NOTHING);
	_exit(code);
}

/* ---- A watcher ---- */

struct look {
	struct mr_names known, now;
	struct mr_counts counts; /* before the last look: what it did not see yet is counted later */
	int64_t newest_ms;
	bool fresh;
};

static bool
note_unread(void *ctx, const struct mr_message *msg)
{
	struct look *k = ctx;

	if (msg->date_ms > k->newest_ms)
		k->newest_ms = msg->date_ms;
	k->fresh |= !names_has(&k->known, msg->id);
	return names_add(&k->now, str_of(msg->id));
}

/* True: something is unread that was not before. */
static bool
look_for_new(struct cli *cli, struct look *k)
{
	struct mr_scan scan = { .filter = { .unread = true, .no_control = true } };

	k->fresh = false;
	(void)mr_count(cli->room, cli->self.agent, &k->counts, IGNORED);
	if (mr_scan(cli->room, cli->self.agent, &scan, note_unread, k, IGNORED) != MR_OK) {
		mr_names_done(&k->now);
		return false;
	}
	mr_names_done(&k->known);
	k->known = k->now;
	k->now = (struct mr_names){ 0 };
	return k->fresh;
}

static void
tell(int fd)
{
	if (sys_write_all(fd, "m", 1) < 0)
		_exit(EXIT_DONE);
}

/* For a minute; `k` knows what is unread. */
static void
watch_a_while(struct cli *cli, struct look *k, int fd)
{
	int64_t end_ms = clock_boot_ms() + FULL_LOOK_MS, carried_ms = 0;

	while (clock_boot_ms() < end_ms) {
		struct mr_filter younger = { .since_ms = k->newest_ms + 1 };
		struct mr_counts counts = { 0 };
		bool busy = clock_now_ms() - k->newest_ms < 2 * GLANCE_MS;

		if (clock_boot_ms() - carried_ms >= GLANCE_MS) { /* mail from linked rooms is mail */
			carried_ms = clock_boot_ms();
			cli_carry_first(cli, 0);
		}
		enum mr_rc rc =
		    mr_wait(cli->room, cli->self.agent, &younger, busy ? BUSY_GLANCE_MS : GLANCE_MS, NULL, IGNORED);

		if ((rc != MR_OK && rc != MR_EMPTY) || mr_count(cli->room, cli->self.agent, &counts, IGNORED) != MR_OK)
			return;
		if (rc == MR_EMPTY && counts.unread == k->counts.unread)
			continue;
		if (look_for_new(cli, k))
			tell(fd);
		else if (rc == MR_OK)
			(void)poll(NULL, 0, CROWDED_PAUSE_MS);
	}
}

_Noreturn void
watch_run(struct mcp_server *s, const struct mcp_request *r, int fd)
{
	struct look k = { 0 };
	char agent[MR_ADDRESS_MAX + 1] = "";
	char *session = request_session(r, s->opencode);

	child_begin(s, fd);
	for (bool first = true;; first = false) {
		struct cli cli;
		bool opened = child_opens(&cli, s, session), same = opened && strcmp(agent, cli.self.agent) == 0;
		bool fresh = opened && look_for_new(&cli, &k);

		/* The first look is what the client can see for itself; its end confirms the subscription. */
		if (first || (same && fresh))
			tell(fd);
		if (opened) {
			(void)snprintf(agent, sizeof(agent), "%s", cli.self.agent);
			watch_a_while(&cli, &k, fd);
		} else {
			(void)poll(NULL, 0, GLANCE_MS);
		}
		cli_done(&cli);
	}
}
