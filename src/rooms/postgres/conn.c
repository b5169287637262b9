/* SPDX-License-Identifier: MIT */
/*
 * conn.c - the connection to the server: calls, errors, and what becomes of a call whose answer is lost.
 *
 * The answer to a call may be missing although the server did what was asked: the connection broke, the server was
 * restarted or another one promoted, or nothing came for 15 s. It is also missing when an answer carries a WARNING: the
 * server says success with a warning when an administrator cancelled its wait for the standby.
 *
 * Then the driver reconnects, for up to 10 s, and asks again. Every function that changes something either does the
 * same twice without harm, or takes an argument that says "asked again" and looks for its own id or token first. What
 * it finds may be on this server alone, so the driver ends with settled(): a commit behind which everything before it
 * is on the standby. Only when no server answers in that time is the outcome in doubt (MR_INDOUBT), and a send is kept
 * on this machine for the next command (local.c); a call that changes nothing, or that was never sent, failed (MR_IO).
 *
 * After a fork the connection is the parent's. PQfinish would end the parent's session and everything it holds, so
 * another process only closes the descriptor, and connects for itself.
 */
#include "rooms/postgres/postgres.h"
#include "base/sys.h"
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#define ANSWER_MS 15000
#define ANSWER_LEAST_MS 1000
#define RECONNECT_MS 10000
#define PAUSE_FIRST_MS 50
#define PAUSE_MAX_MS 1000
#define REPEATS_MAX 5
#define SETTINGS_MAX 64
#define HOST_MAX 256
#define SLOW_MS 1500
#define PIECE ((size_t)256 << 10)

/* ---- Arguments ---- */

static void
add(struct pg_call *c, const char *value, size_t len, int format)
{
	if (c->n == PG_ARGS_MAX || len > INT32_MAX) {
		c->failed = true;
		return;
	}
	c->values[c->n] = value;
	c->lengths[c->n] = (int)len;
	c->formats[c->n++] = format;
}

void
pg_text(struct pg_call *c, const char *z)
{
	add(c, z, 0, 0);
}

void
pg_bytes(struct pg_call *c, struct mr_str s)
{
	add(c, s.ptr ? s.ptr : "", s.len, 1);
}

void
pg_int(struct pg_call *c, int64_t n)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%" PRId64, n);
	char *kept = arena_dup(&c->own, str_of(digits));

	c->failed |= kept == NULL;
	add(c, kept, 0, 0);
}

void
pg_bool(struct pg_call *c, bool b)
{
	add(c, b ? "t" : "f", 0, 0);
}

void
pg_again(struct pg_call *c)
{
	c->again = c->n;
	pg_bool(c, false);
}

static void
add_u32(struct buf *out, uint32_t n)
{
	uint32_t net = htonl(n);

	buf_add(out, (struct mr_str){ (const char *)&net, sizeof(net) });
}

/* The binary form of text[] and bytea[]: nothing has to be quoted. */
void
pg_array(struct pg_call *c, const struct mr_str *v, size_t n, bool bytes)
{
	struct buf out = BUF_INIT;

	add_u32(&out, n > 0 ? 1 : 0); /* dimensions */
	add_u32(&out, 0);             /* no NULL */
	add_u32(&out, bytes ? 17 : 25);
	if (n > 0) {
		add_u32(&out, (uint32_t)n);
		add_u32(&out, 1);
	}
	for (size_t i = 0; i < n; i++) {
		add_u32(&out, (uint32_t)v[i].len);
		buf_add(&out, v[i]);
	}
	char *kept = buf_ok(&out) ? arena_dup(&c->own, buf_str(&out)) : NULL;

	c->failed |= kept == NULL;
	add(c, kept, out.len, 1);
	buf_done(&out);
}

void
pg_names(struct pg_call *c, const struct mr_names *names)
{
	mr_auto(free_ptr) struct mr_str *v = names && names->n ? calloc(names->n, sizeof(*v)) : NULL;

	if (!names || names->n == 0) {
		pg_text(c, NULL);
		return;
	}
	c->failed |= v == NULL;
	for (size_t i = 0; v && i < names->n; i++)
		v[i] = str_of(names->v[i]);
	pg_array(c, v, v ? names->n : 0, false);
}

void
pg_process(struct pg_call *c, const struct mr_process *p)
{
	pg_int(c, p->pid);
	pg_int(c, (int64_t)p->start);
	pg_int(c, (int64_t)p->pid_ns);
	char *boot = arena_dup(&c->own, str_of(p->boot));

	c->failed |= boot == NULL;
	pg_text(c, boot);
}

void
pg_place(struct pg_call *c, const char *box)
{
	bool queue = str_starts(str_of(box), "queue:"), channel = str_starts(str_of(box), "channel:");

	pg_text(c, queue ? "q" : channel ? "c" : "a");
	pg_text(c, queue || channel ? strchr(box, ':') + 1 : box);
}

void
pg_call_done(struct pg_call *c)
{
	PQclear(c->rows);
	c->rows = NULL;
	arena_free(c->own);
	c->own = NULL;
}

/* ---- Rows, in binary form ---- */

int64_t
pg_get_int(const struct pg_call *c, int row, int column)
{
	const unsigned char *bytes = (const unsigned char *)PQgetvalue(c->rows, row, column);
	int len = PQgetlength(c->rows, row, column);
	uint64_t n = len > 0 && (bytes[0] & 0x80) ? UINT64_MAX : 0;

	for (int i = 0; i < len && i < 8; i++)
		n = n << 8 | bytes[i];
	return (int64_t)n;
}

const char *
pg_get_text(const struct pg_call *c, int row, int column)
{
	return PQgetvalue(c->rows, row, column); /* ends in NUL; NULL is "" */
}

struct mr_str
pg_get_bytes(const struct pg_call *c, int row, int column)
{
	return (struct mr_str){ PQgetvalue(c->rows, row, column), (size_t)PQgetlength(c->rows, row, column) };
}

struct mr_process
pg_get_process(const struct pg_call *c, int row, int column)
{
	struct mr_process p = { .pid = pg_get_int(c, row, column),
		.start = (uint64_t)pg_get_int(c, row, column + 1),
		.pid_ns = (uint64_t)pg_get_int(c, row, column + 2) };

	(void)snprintf(p.boot, sizeof(p.boot), "%s", pg_get_text(c, row, column + 3));
	return p;
}

/* ---- Errors ---- */

/* The first line of what libpq or the server said. */
static struct mr_str
first_line(const char *text)
{
	return (struct mr_str){ text, strcspn(text, "\n") };
}

struct meaning {
	const char *state; /* SQLSTATE, or the beginning of one */
	enum mr_rc code;
	const char *what, *hint;
};
static const struct meaning meanings[] = {
	{ "28", MR_REFUSED, "the server refuses the login",
	    "put the password into ~/.pgpass or a service file (a spec has none), or ask the server's administrator" },
	{ "3D000", MR_NOTFOUND, "the database is not there", "make it with: createdb NAME" },
	{ "53100", MR_FULL, "the disk of the server is full",
	    "nothing was changed; its administrator has to make room" },
	{ "53300", MR_BUSY, "the server has no connection left",
	    "try again; its administrator can raise max_connections" },
	{ "53", MR_IO, "the server is out of memory or of locks", "nothing was changed; try again" },
	{ "57P03", MR_IO, "the server is starting or recovering", "try again in a moment" },
	{ "25006", MR_IO, "the server is read-only: a standby, or set so",
	    "name the primary as well: host=h1,h2 finds it by itself" },
	{ "57014", MR_BUSY, "the server gave up on it (statement_timeout, or an administrator)",
	    "nothing was changed; try again" },
	{ "55P03", MR_BUSY, "another has it locked", "nothing was changed; try again" },
	{ "40", MR_BUSY, "it was in the way of others again and again", "nothing was changed; try again" },
	{ "42501", MR_REFUSED, "the login may not do that",
	    "the room's owner can allow it: mailroom init --roles LOGIN=AGENT SPEC" },
	{ "3F000", MR_NOTFOUND, "there is no room in that schema", "make one with: mailroom init postgres:..." },
	{ "42883", MR_REFUSED, "the room lacks a function: it is of another version",
	    "bring it up to date with: mailroom init --upgrade postgres:..." },
	{ "42P01", MR_REFUSED, "the room lacks a table", "restore it from a backup" },
	{ "22021", MR_REFUSED, "it has bytes that are no text", "" },
};

static enum mr_rc
fail_as(const char *state, struct mr_str said, const char *what, struct mr_error *err)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (strncmp(state, meanings[i].state, strlen(meanings[i].state)) == 0)
			return mr_fail(err, meanings[i].code, "cannot %s: %s (%.*s)\n%s", what, meanings[i].what,
			    (int)(said.len < 150 ? said.len : 150), said.ptr, meanings[i].hint);
	return mr_fail(err, MR_IO, "cannot %s: %.*s", what, (int)(said.len < 220 ? said.len : 220),
	    said.len ? said.ptr : "no answer");
}

static const char *
state_of(const PGresult *rows)
{
	const char *state = rows ? PQresultErrorField(rows, PG_DIAG_SQLSTATE) : NULL;

	return state ? state : "";
}

enum mr_rc
pg_fail(struct postgres *pg, const PGresult *rows, const char *what, struct mr_error *err)
{
	const char *said = rows ? PQresultErrorField(rows, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	return fail_as(state_of(rows), first_line(said ? said : PQerrorMessage(pg->conn)), what, err);
}

/* The server, or this connection to it, is gone, and with it the answer. */
static bool
is_lost(const struct postgres *pg, const char *state)
{
	return PQstatus(pg->conn) != CONNECTION_OK || strncmp(state, "57P0", 4) == 0 || strncmp(state, "08", 2) == 0;
}

static void
note_notice(void *ctx, const PGresult *notice)
{
	struct postgres *pg = ctx;
	const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);

	pg->warned |= severity && strcmp(severity, "WARNING") == 0;
}

/* ---- Connecting ---- */

struct settings {
	const char *names[SETTINGS_MAX], *values[SETTINGS_MAX];
	size_t n;
};

/* What the spec says, and what it leaves out. `any`: also a server that cannot be written to. */
static void
connection_settings(const struct postgres *pg, bool any, struct settings *s)
{
	static const char *const defaults[][2] = { { "target_session_attrs", "read-write" }, { "connect_timeout", "5" },
		{ "keepalives_idle", "10" }, { "keepalives_interval", "5" }, { "keepalives_count", "3" },
		{ "tcp_user_timeout", "15000" }, { "application_name", "mailroom" }, { "client_encoding", "UTF8" } };

	s->n = 0;
	for (const PQconninfoOption *o = pg->options; o->keyword; o++)
		if (o->val && s->n < SETTINGS_MAX - 16 && !(any && strcmp(o->keyword, "target_session_attrs") == 0)) {
			s->names[s->n] = o->keyword;
			s->values[s->n++] = o->val;
		}
	for (size_t i = any ? 1 : 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
		bool there = false;

		for (size_t k = 0; k < s->n; k++)
			there |= strcmp(s->names[k], defaults[i][0]) == 0;
		if (!there) {
			s->names[s->n] = defaults[i][0];
			s->values[s->n++] = defaults[i][1];
		}
	}
	s->names[s->n] = s->values[s->n] = NULL;
}

/* Why the server refuses a connection: libpq has no SQLSTATE of a failed one, but writes it into the message when it is
 * asked to before it connects. */
static void
ask_why(const struct postgres *pg, char ret_state[6])
{
	struct settings s;
	int64_t until_ms = clock_boot_ms() + 3000;

	connection_settings(pg, true, &s);
	PGconn *conn = PQconnectStartParams(s.names, s.values, 0);
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;

	if (!conn)
		return;
	(void)PQsetErrorVerbosity(conn, PQERRORS_VERBOSE);
	while (PQstatus(conn) != CONNECTION_BAD && status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED &&
	       clock_boot_ms() < until_ms) {
		struct pollfd p = { .fd = PQsocket(conn),
			.events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT };

		(void)poll(&p, 1, 200);
		status = PQconnectPoll(conn);
	}
	const char *text = PQerrorMessage(conn);

	for (const char *at = strstr(text, ":  "); at && !ret_state[0]; at = strstr(at + 3, ":  "))
		if (strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && at[8] == ':')
			(void)snprintf(ret_state, 6, "%.5s", at + 3);
	if (status == PGRES_POLLING_OK) /* connected: it only cannot be written to */
		(void)snprintf(ret_state, 6, "25006");
	PQfinish(conn);
}

/* `slow`: a host did not answer at all, and would not the second time. */
static enum mr_rc
diagnose(const struct postgres *pg, const char *said, bool needs_password, bool slow, bool *ret_passing,
    struct mr_error *err)
{
	char state[6] = "";

	if (needs_password)
		(void)snprintf(state, sizeof(state), "28P01");
	else if (!slow)
		ask_why(pg, state);
	else if (strstr(said, "read-only") || strstr(said, "hot standby")) /* another one did */
		(void)snprintf(state, sizeof(state), "25006");
	struct mr_str line = first_line(said);

	*ret_passing = strncmp(state, "53", 2) == 0 || strncmp(state, "57", 2) == 0 || strcmp(state, "25006") == 0;
	if (state[0])
		return fail_as(state, line, "reach the room", err);
	return mr_fail(err, MR_IO,
	    "cannot reach the room: %.*s\nis the server running there, and may this machine connect to it?",
	    (int)(line.len < 200 ? line.len : 200), line.ptr);
}

void
pg_disconnect(struct postgres *pg)
{
	if (!pg->conn)
		return;
	if (pg->owner == (int64_t)getpid()) {
		PQfinish(pg->conn);
	} else {
		int fd = PQsocket(pg->conn); /* and its memory stays: to free it would talk to the server */

		sys_close_fd(&fd);
	}
	pg->conn = NULL;
	pg->pending = 0;
}

/* ---- Talking ---- */

/* How long a server that is gone is waited for; half as long again counts one as gone that does not answer. */
static int64_t
patience_ms(const struct postgres *pg)
{
	const char *set = record_get(&pg->room->settings, "Reconnect");
	int64_t ms = 0;

	return set && duration_parse(str_of(set), &ms) ? ms : RECONNECT_MS;
}

static int64_t
answer_ms(const struct postgres *pg)
{
	int64_t ms = patience_ms(pg) * 3 / 2;

	return ms < ANSWER_LEAST_MS ? ANSWER_LEAST_MS : ms < ANSWER_MS ? ms : ANSWER_MS;
}

/* Until there is something to do. False: nothing moved for `quiet_ms`, or the connection is gone. */
static bool
move_bytes(struct postgres *pg, bool sends, int64_t quiet_ms)
{
	struct pollfd p = { .fd = PQsocket(pg->conn), .events = (short)(POLLIN | (sends ? POLLOUT : 0)) };
	int64_t until_ms = clock_boot_ms() + quiet_ms;
	int n;

	do {
		int64_t left_ms = until_ms - clock_boot_ms();

		n = poll(&p, 1, left_ms > 0 ? (int)left_ms : 0);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	return !(p.revents & (POLLIN | POLLERR | POLLHUP)) || PQconsumeInput(pg->conn);
}

static bool
flush_all(struct postgres *pg)
{
	int left;

	while ((left = PQflush(pg->conn)) > 0)
		if (!move_bytes(pg, true, answer_ms(pg)))
			return false;
	return left == 0;
}

/* False: no answer came. *ret NULL: the end of the results of one statement. */
static bool
next_result(struct postgres *pg, int64_t quiet_ms, PGresult **ret)
{
	while (PQisBusy(pg->conn))
		if (!move_bytes(pg, false, quiet_ms))
			return false;
	*ret = PQgetResult(pg->conn);
	return true;
}

/* Reads on to the end of a pipeline's part. */
static bool
read_to_sync(struct postgres *pg)
{
	PGresult *rows = NULL;
	bool synced = false;

	while (!synced) {
		if (!next_result(pg, answer_ms(pg), &rows) || PQstatus(pg->conn) != CONNECTION_OK) {
			PQclear(rows);
			return false;
		}
		synced = rows && PQresultStatus(rows) == PGRES_PIPELINE_SYNC;
		PQclear(rows);
		rows = NULL;
	}
	return true;
}

/* The answers of pokes and the like, which nobody waited for. */
static bool
read_pending(struct postgres *pg)
{
	bool ok = true;

	for (; pg->pending > 0 && ok; pg->pending--)
		ok = read_to_sync(pg);
	return ok;
}

static bool
drain(struct postgres *pg)
{
	return pg->pending == 0 || (read_pending(pg) && PQexitPipelineMode(pg->conn) == 1);
}

void
pg_notices(struct postgres *pg)
{
	PGnotify *n;

	while (pg->conn && (n = PQnotifies(pg->conn)) != NULL) {
		pg_forget_all(pg);
		for (struct pg_watch *w = pg->watches; w; w = w->next)
			w->rung |= strcmp(w->channel, n->relname) == 0;
		PQfreemem(n);
	}
}

static bool
send_call(struct postgres *pg, const struct pg_call *c)
{
	char sql[PG_SCHEMA_MAX + 40 + PG_ARGS_MAX * 4];
	int len = snprintf(sql, sizeof(sql), "SELECT * FROM %s.%s(", pg->schema, c->function);

	for (int i = 1; i <= c->n; i++)
		len += snprintf(sql + len, sizeof(sql) - (size_t)len, "%s$%d", i > 1 ? "," : "", i);
	(void)snprintf(sql + len, sizeof(sql) - (size_t)len, ")");
	return PQsendQueryParams(pg->conn, sql, c->n, NULL, c->values, c->lengths, c->formats, 1) == 1;
}

/* The answer of a call in front of another. A failed one has no rows. */
static bool
read_before(struct postgres *pg, struct pg_call *b)
{
	PGresult *end = NULL;

	PQclear(b->rows);
	b->rows = NULL;
	if (!next_result(pg, answer_ms(pg), &b->rows) || (b->rows && !next_result(pg, answer_ms(pg), &end)))
		return false;
	PQclear(end);
	if (PQresultStatus(b->rows) != PGRES_TUPLES_OK) {
		PQclear(b->rows);
		b->rows = NULL;
	}
	return true;
}

enum ask { ASK_DONE, ASK_LOST, ASK_AWAY /* nothing was done */, ASK_REPEAT, ASK_FAILED };

/* The body of a send, in pieces: each is on its way before the next one is read. */
static bool
send_content(struct postgres *pg, const struct pg_call *c, int *ret_pieces)
{
	mr_auto(free_ptr) char *piece = malloc(PIECE);
	uint64_t at = 0;
	bool ok = piece != NULL;

	for (*ret_pieces = 0; ok && at < c->content->bytes; ++*ret_pieces) {
		mr_auto(pg_call_done) struct pg_call chunk = PG_CALL("chunk");
		ssize_t n = sys_pread(c->content->file.fd, piece, PIECE, (off_t)at);

		pg_text(&chunk, c->values[0]); /* the id */
		pg_int(&chunk, (int64_t)at);
		pg_bytes(&chunk, (struct mr_str){ piece, n > 0 ? (size_t)n : 0 });
		ok = n > 0 && send_call(pg, &chunk) && flush_all(pg);
		at += n > 0 ? (uint64_t)n : 0;
	}
	return ok;
}

/* The answer to one of them; *ret_failed: the first error. */
static bool
read_piece(struct postgres *pg, PGresult **ret_failed)
{
	PGresult *rows = NULL, *end = NULL;

	if (!next_result(pg, answer_ms(pg), &rows) || (rows && !next_result(pg, answer_ms(pg), &end))) {
		PQclear(rows);
		return false;
	}
	PQclear(end);
	if (!*ret_failed && PQresultStatus(rows) == PGRES_FATAL_ERROR)
		*ret_failed = rows;
	else
		PQclear(rows);
	return true;
}

/* Sends the call with what goes in front of it and behind it, and reads its answer. False: the answer did not come
 * whole. In a pipeline the server commits at the sync: the rows before it promise nothing yet. */
static bool
exchange(struct postgres *pg, struct pg_call *c, PGresult **ret)
{
	const bool pokes = !pg->pooled && (c->poke[0] || c->poke[1] || c->poke[2]),
		   piped = pokes || c->before || c->content || pg->pending;
	mr_auto(pg_call_done) struct pg_call poke = PG_CALL("poke");
	PGresult *end = NULL, *failed = NULL;
	bool ok = !piped || PQenterPipelineMode(pg->conn) == 1;
	int pieces = 0;

	pg->warned = false;
	pg->trips++;
	/* What goes in front is in the same transaction. A pool takes the end of one for the end of a turn, and would
	 * give the answers behind it to another client: there nothing is sent behind a transaction before its answer.
	 */
	for (const struct pg_call *b = c->before; b && ok; b = b->before)
		ok = send_call(pg, b);
	ok = ok && (!c->content || send_content(pg, c, &pieces)) && send_call(pg, c) &&
	     (!piped || PQpipelineSync(pg->conn));
	if (ok && pokes) {
		for (size_t i = 0; i < 3; i++)
			pg_names(&poke, c->poke[i]);
		ok = send_call(pg, &poke) && PQpipelineSync(pg->conn);
	}
	ok = ok && flush_all(pg) && read_pending(pg); /* answers that nobody waited for come first */
	for (struct pg_call *b = c->before; b && ok; b = b->before)
		ok = read_before(pg, b);
	for (; pieces > 0 && ok; pieces--)
		ok = read_piece(pg, &failed);
	if (!ok || !next_result(pg, answer_ms(pg) + c->wait_ms, ret)) {
		PQclear(failed);
		return false;
	}
	if (failed) { /* that is why the call itself was not even tried */
		PQclear(*ret);
		*ret = failed;
	}
	if (piped) {
		ok = read_to_sync(pg);
		pg->pending = ok && pokes ? 1 : 0;
		return ok && (pokes || PQexitPipelineMode(pg->conn) == 1);
	}
	do {
		PQclear(end);
		end = NULL;
		ok = next_result(pg, answer_ms(pg), &end);
	} while (ok && end);
	return ok;
}

static enum ask
ask(struct postgres *pg, struct pg_call *c, struct mr_error *err)
{
	PGresult *rows = NULL;
	bool ok = exchange(pg, c, &rows), hello = strcmp(c->function, "hello") == 0;
	char what[80];

	pg_notices(pg);
	if (rows && PQresultStatus(rows) == PGRES_TUPLES_OK && ok && PQstatus(pg->conn) == CONNECTION_OK) {
		c->rows = rows;
		return ASK_DONE;
	}
	if (ok && c->before && PQresultStatus(rows) == PGRES_PIPELINE_ABORTED) { /* by what was in front of it */
		PQclear(rows);
		c->before = NULL;
		return ask(pg, c, err);
	}
	const char *state = state_of(rows);
	enum ask outcome = strcmp(state, "25006") == 0          ? ASK_AWAY
			   : !rows || !ok || is_lost(pg, state) ? ASK_LOST
			   : strncmp(state, "40", 2) == 0       ? ASK_REPEAT
								: ASK_FAILED;

	(void)snprintf(what, sizeof(what), "%s%s%s", hello ? "open" : "do '", hello ? "" : c->function,
	    hello ? " the room" : "' in the room");
	(void)pg_fail(pg, rows, what, err);
	PQclear(rows);
	return outcome;
}

/* ---- Connections that are made anew ---- */

/* What ended with the session before: the lock of this handle's claims, what it waits for, locks of records. A minute
 * passes before another takes for dead what is held. */
static void
resume(struct postgres *pg)
{
	struct mr_error ignored = { 0 };

	if (pg->token[0] != '\0') {
		struct pg_call c = PG_CALL("rehold");

		pg_text(&c, pg->token);
		(void)ask(pg, &c, &ignored);
		pg_call_done(&c);
	}
	for (struct pg_watch *w = pg->watches; w && pg->conn; w = w->next) {
		struct pg_call c = PG_CALL("watch");

		pg_place(&c, w->name);
		(void)ask(pg, &c, &ignored);
		pg_call_done(&c);
		w->rung = true; /* what came meanwhile rang nobody */
	}
	for (struct pg_lock *l = pg->locks; l && pg->conn; l = l->next) {
		struct pg_call c = PG_CALL("record_lock");

		pg_text(&c, l->kind);
		pg_text(&c, l->owner);
		pg_text(&c, l->name);
		pg_int(&c, 0);
		pg_bool(&c, false);
		(void)ask(pg, &c, &ignored);
		pg_call_done(&c);
	}
}

static enum mr_rc
greet(struct postgres *pg, bool *ret_passing, bool *ret_old, struct mr_error *err)
{
	struct pg_call c = PG_READ("hello");

	pg->shift_ms = 0;
	pg_int(&c, PQbackendPID(pg->conn));
	struct pg_batch *expected = pg_expected(pg);

	if (expected)
		c.before = &expected->v[expected->n - 1];
	enum ask outcome = ask(pg, &c, err);
	enum mr_rc rc = outcome == ASK_DONE                          ? pg_greeted(pg, &c, err)
			: err->code == MR_IO || err->code == MR_BUSY ? err->code
								     : pg_no_room(pg, err);

	pg_call_done(&c);
	*ret_old = outcome == ASK_DONE && rc == MR_IO;
	*ret_passing = *ret_old || outcome == ASK_LOST || outcome == ASK_AWAY; /* another is there, or will be */
	if (expected)
		pg_batch_keep(pg, expected);
	if (rc == MR_OK && pg->answered)
		resume(pg);
	return rc;
}

static enum mr_rc
connect_by(struct postgres *pg, const struct settings *s, bool *ret_passing, bool *ret_old, struct mr_error *err)
{
	int64_t begun_ms = clock_boot_ms();

	pg->conn = PQconnectdbParams(s->names, s->values, 0);
	pg->owner = (int64_t)getpid();
	*ret_passing = *ret_old = false;
	if (!pg->conn)
		return mr_nomem(err);
	if (PQstatus(pg->conn) != CONNECTION_OK) {
		mr_auto(free_ptr) char *said = strdup(PQerrorMessage(pg->conn));
		bool needs_password = PQconnectionNeedsPassword(pg->conn) != 0;
		bool slow = clock_boot_ms() - begun_ms > SLOW_MS;

		pg_disconnect(pg);
		return said ? diagnose(pg, said, needs_password, slow, ret_passing, err) : mr_nomem(err);
	}
	(void)PQsetNoticeReceiver(pg->conn, note_notice, pg);
	(void)PQsetnonblocking(pg->conn, 1);
	enum mr_rc rc = pg->making ? MR_OK : greet(pg, ret_passing, ret_old, err);

	if (rc != MR_REFUSED)
		return rc;
	/* Another process may have noted a later position between the server's answer and our look at the note. */
	*err = (struct mr_error){ 0 };
	return greet(pg, ret_passing, ret_old, err);
}

/* The n-th of a list with commas. False: it is not so long. */
static bool
nth(const char *list, size_t n, char ret[HOST_MAX])
{
	struct mr_str rest = str_of(list ? list : ""), one = { 0 };
	bool there = true;

	for (size_t i = 0; i <= n && there; i++)
		there = str_cut(&rest, ',', &one);
	(void)snprintf(ret, HOST_MAX, "%.*s", there ? (int)one.len : 0, there ? one.ptr : "");
	return there;
}

/* The settings with the n-th host of the list alone. False: there is none. */
static bool
one_host(const PQconninfoOption *options, size_t n, struct settings *s, char ret[3][HOST_MAX])
{
	static const char *const lists[] = { "host", "hostaddr", "port" };
	bool there = false;

	for (const PQconninfoOption *o = options; o->keyword; o++)
		for (size_t k = 0; k < 3; k++)
			if (strcmp(o->keyword, lists[k]) == 0 && nth(o->val, n, ret[k])) {
				there |= k < 2;
				s->names[s->n] = lists[k]; /* of a keyword that comes twice the last counts */
				s->values[s->n++] = ret[k];
			}
	s->names[s->n] = s->values[s->n] = NULL;
	return there;
}

static void
leave_pool(struct postgres *pg)
{
	pg_disconnect(pg);
	PQconninfoFree(pg->pool);
	pg->pool = NULL;
}

/* libpq tries the hosts of the list in their order, and takes the first that can be written to. The one that served
 * last is tried before: a machine that is down would cost each command the whole connect_timeout. Is what libpq took an
 * old primary, each host is tried alone. */
static enum mr_rc
connect_once(struct postgres *pg, bool *ret_passing, struct mr_error *err)
{
	char one[3][HOST_MAX];
	struct settings s = { 0 };
	bool old = false;
	size_t last = pg_host_last(pg->room);
	enum mr_rc rc = MR_IO;

	if (pg->pool) {
		for (const PQconninfoOption *o = pg->pool; o->keyword; o++)
			if (o->val && s.n < SETTINGS_MAX - 1) {
				s.names[s.n] = o->keyword;
				s.values[s.n++] = o->val;
			}
		s.names[s.n] = s.values[s.n] = NULL;
		if (connect_by(pg, &s, ret_passing, &old, IGNORED) == MR_OK)
			return MR_OK;
		leave_pool(pg);
	}
	connection_settings(pg, false, &s);
	if (last > 0 && one_host(pg->options, last, &s, one) && connect_by(pg, &s, ret_passing, &old, IGNORED) == MR_OK)
		return MR_OK;
	pg_disconnect(pg);
	connection_settings(pg, false, &s);
	rc = connect_by(pg, &s, ret_passing, &old, err);
	PQconninfoOption *used =
	    old ? PQconninfo(pg->conn) : NULL; /* with what a service file or the environment said */

	for (size_t i = 0; used && rc != MR_OK; i++) {
		bool passing;

		connection_settings(pg, false, &s);
		pg_disconnect(pg);
		if (!one_host(used, i, &s, one))
			break;
		rc = connect_by(pg, &s, &passing, &old, IGNORED) == MR_OK ? MR_OK : rc;
	}
	PQconninfoFree(used);
	for (size_t i = 0; rc == MR_OK && one_host(pg->options, i, &s, one); i++, connection_settings(pg, false, &s))
		if (strcmp(one[0], PQhost(pg->conn)) == 0)
			pg_host_note(pg->room, i, last);
	return rc;
}

/* Until `until_ms` by the boot clock, where it may help. */
static enum mr_rc
connect_until(struct postgres *pg, int64_t until_ms, struct mr_error *err)
{
	int64_t pause_ms = PAUSE_FIRST_MS;

	for (;;) {
		struct mr_error why = { 0 }; /* of a host that another one stood in for it is not told */
		bool passing = false;
		enum mr_rc rc = connect_once(pg, &passing, &why);

		if (rc == MR_OK)
			return rc;
		pg_disconnect(pg);
		/* A server that was there is expected back; one that never was is not waited for. */
		if (!(passing || (pg->answered && rc == MR_IO)) || clock_boot_ms() + pause_ms > until_ms) {
			*err = why;
			return rc;
		}
		(void)poll(NULL, 0, (int)pause_ms);
		pause_ms = pause_ms * 2 < PAUSE_MAX_MS ? pause_ms * 2 : PAUSE_MAX_MS;
	}
}

enum mr_rc
pg_connect(struct postgres *pg, struct mr_error *err)
{
	if (pg->conn && pg->owner != (int64_t)getpid())
		pg_disconnect(pg);
	return pg->conn ? MR_OK : connect_until(pg, clock_boot_ms() + patience_ms(pg), err);
}

#ifdef MR_FAULT_ENV
/* Tests shift the wall clock of this process; in a room that a test build made, wall() follows. */
static void
follow_clock(struct postgres *pg)
{
	struct timespec now;
	char sql[80];

	(void)clock_gettime(CLOCK_REALTIME, &now);
	int64_t shift_ms = clock_now_ms() - ((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);

	shift_ms = (shift_ms + (shift_ms < 0 ? -500 : 500)) / 1000 * 1000;
	if (!pg->conn || shift_ms == pg->shift_ms || !drain(pg))
		return;
	(void)snprintf(sql, sizeof(sql), "SET mailroom.test_shift = '%" PRId64 " ms'", shift_ms);
	PQclear(PQexec(pg->conn, sql));
	pg->shift_ms = shift_ms;
}
#endif

static enum mr_rc
in_doubt(const struct pg_call *c, struct mr_error *err)
{
	err->code = MR_INDOUBT;
	(void)mr_wrap(err, "the server went away and it is not known whether it did '%s'", c->function);
	return mr_hint(err, "once it answers again, 'mailroom why ID' tells; a send with --key can simply be repeated");
}

/* For the end of the command. A server that comes and goes is told of once. */
static void
tell_away(struct postgres *pg)
{
	char line[120];

	(void)snprintf(
	    line, sizeof(line), "the server was away for %lld ms, and was asked again", (long long)pg->away_ms);
	if (!pg->told_away)
		(void)names_add(&pg->room->barred, str_of(line)); /* out of memory: not worth a failure */
	pg->told_away = true;
}

static void
poke_alone(struct postgres *pg, const struct pg_call *c)
{
	struct pg_call poke = PG_CALL("poke");
	struct mr_error ignored = { 0 };

	if (!c->poke[0] && !c->poke[1] && !c->poke[2])
		return;
	for (size_t i = 0; i < 3; i++)
		pg_names(&poke, c->poke[i]);
	(void)ask(pg, &poke, &ignored);
	pg_call_done(&poke);
}

static void
drop_rows(struct pg_call *c)
{
	PQclear(c->rows);
	c->rows = NULL;
}

/* Asks, with the sweep of a mailbox in front of it that a command owes. What a sweep brought back is looked at again.
 */
static enum ask
ask_and_sweep(struct mr_room *room, struct pg_call *c, struct mr_error *err)
{
	struct postgres *pg = pg_of(room);
	char swept[MR_ADDRESS_MAX + 1];
	bool more = false;

	(void)snprintf(swept, sizeof(swept), "%s", pg->sweeps);
	if (!swept[0])
		return ask(pg, c, err);
	mr_auto(pg_call_done) struct pg_call sweep = PG_READ("sweep");

	pg_add_sweep(pg, &sweep, NULL);
	c->before = &sweep;
	enum ask outcome = ask(pg, c, err);

	c->before = NULL;
	if (outcome == ASK_DONE)
		(void)pg_swept(room, swept, &sweep, &more, IGNORED);
	if (!more || !c->reads)
		return outcome;
	drop_rows(c);
	return pg_connect(pg, err) == MR_OK ? ask(pg, c, err) : ASK_LOST;
}

/* What was found when it was asked for again, or came with a warning, may be on this server alone: a commit behind it
 * waits for the standby. */
static enum ask
settle(struct postgres *pg, struct pg_call *c, struct mr_error *err)
{
	if (c->reads || !(pg->warned || c->asked_again))
		return ASK_DONE;
	mr_auto(pg_call_done) struct pg_call settled = PG_CALL("settled");
	enum ask outcome = ask(pg, &settled, err);

	if (outcome != ASK_DONE)
		drop_rows(c);
	if (outcome == ASK_DONE && !pg->warned)
		return outcome;
	drop_rows(c);
	if (outcome == ASK_DONE)
		(void)mr_fail(err, MR_IO, "the server did not wait for its standby");
	return ASK_LOST;
}

/* A connection that can take the call. */
static enum mr_rc
connect_for(struct postgres *pg, const struct pg_call *c, int64_t lost_ms, struct mr_error *err)
{
	TRY(lost_ms ? connect_until(pg, lost_ms + patience_ms(pg), err) : pg_connect(pg, err));
	if (!c->session || !pg->pooled)
		return MR_OK;
	if (!pg->pool)
		return mr_fail(err, MR_UNSUPPORTED,
		    "this needs a session of its own, and a pool is between here and the server\n"
		    "give the direct address of the server in the spec, and that of the pool in MAILROOM_POOL");
	leave_pool(pg); /* from now on the direct way */
	return connect_for(pg, c, lost_ms, err);
}

static void
answered(struct postgres *pg, const struct pg_call *c, int64_t lost_ms)
{
	pg->away_ms = lost_ms ? clock_boot_ms() - lost_ms : 0;
	if (pg->away_ms > 0 && !c->tells)
		tell_away(pg);
	pg_keep_copy(pg, c);
	if (pg->pooled)
		poke_alone(pg, c);
}

/* On failure *err says why, whatever happened on the way; on success it is untouched. */
enum mr_rc
pg_run(struct mr_room *room, struct pg_call *c, struct mr_error *err)
{
	struct postgres *pg = pg_of(room);
	struct mr_error why = { 0 };
	bool doubt = false;
	int64_t lost_ms = 0;
	enum mr_rc rc = MR_OK;

	pg->away_ms = 0;
	if (c->failed)
		return mr_nomem(err);
	if (pg_kept_find(pg, c))
		return MR_OK;
	if (pg->ends.ids.n > 0) /* what comes now sees them ended */
		TRY(pg_slot_flush(room, err));
	if (!c->reads)
		pg_kept_done(pg);
	for (int repeats = 0; rc == MR_OK;) {
		rc = connect_for(pg, c, lost_ms, &why);
		if (rc != MR_OK)
			break;
#ifdef MR_FAULT_ENV
		follow_clock(pg);
#endif
		enum ask outcome = ask_and_sweep(room, c, &why);

		if (outcome == ASK_DONE) {
			outcome = settle(pg, c, &why);
			doubt |= outcome != ASK_DONE;
		}
		if (outcome == ASK_DONE) {
			answered(pg, c, lost_ms);
			return MR_OK;
		}
		if (outcome == ASK_FAILED || (outcome == ASK_REPEAT && ++repeats == REPEATS_MAX))
			break;
		if (outcome == ASK_REPEAT)
			continue;
		/* The answer is lost, or this server was the primary until now and another one is by now. */
		pg_disconnect(pg);
		doubt |= outcome == ASK_LOST && !c->reads;
		lost_ms = lost_ms ? lost_ms : clock_boot_ms();
		c->asked_again = true;
		if (c->again >= 0)
			c->values[c->again] = "t";
		if (clock_boot_ms() > lost_ms + patience_ms(pg))
			break;
	}
	*err = why;
	return doubt ? in_doubt(c, err) : err->code;
}

void
pg_ask_ahead(struct mr_room *room, struct pg_batch *b)
{
	struct postgres *pg = pg_of(room);
	struct pg_call last = PG_READ("life_newest"); /* a call that comes behind all of them */

	pg_text(&last, "");
	last.before = b->n > 0 ? &b->v[b->n - 1] : NULL;
	if (b->n > 0 && pg_connect(pg, IGNORED) == MR_OK)
		(void)ask(pg, &last, IGNORED);
	pg_call_done(&last);
	pg_batch_keep(pg, b);
}

void
pg_send_off(struct mr_room *room, struct pg_call *c)
{
	struct postgres *pg = pg_of(room);

	if (c->failed || pg_connect(pg, IGNORED) != MR_OK)
		return;
	if (pg->pooled) {
		(void)ask(pg, c, &(struct mr_error){ 0 });
		return;
	}
	if (PQenterPipelineMode(pg->conn) == 1 && send_call(pg, c) && PQpipelineSync(pg->conn) == 1 && flush_all(pg))
		pg->pending++;
	else
		pg_disconnect(pg);
}

enum mr_rc
pg_script(struct postgres *pg, const char *sql, const char *what, struct mr_error *err)
{
	PGresult *rows = PQexec(pg->conn, sql);
	ExecStatusType status = PQresultStatus(rows);
	enum mr_rc rc = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? MR_OK : pg_fail(pg, rows, what, err);

	PQclear(rows);
	return rc;
}
