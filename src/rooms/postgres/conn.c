/* SPDX-License-Identifier: MIT */
/*
 * conn.c - connecting: to which server, why not, and what is done first on a connection that was made anew.
 *
 * After a fork the connection is the parent's. PQfinish would end the parent's session and everything it holds, so
 * another process only closes the descriptor, and connects for itself.
 */
#include "rooms/postgres/postgres.h"
#include "base/sys.h"
#include <poll.h>
#include <unistd.h>

#define PAUSE_FIRST_MS 50
#define PAUSE_MAX_MS 1000
#define SETTINGS_MAX 64
#define HOST_MAX 256
#define SLOW_MS 1500

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
	{ "3D000", MR_NOTFOUND, "the database does not exist", "make it with: createdb NAME" },
	{ "53100", MR_FULL, "the disk of the server is full",
	    "nothing was changed; its administrator has to free some space" },
	{ "53300", MR_BUSY, "the server has no connection left",
	    "try again; its administrator can raise max_connections" },
	{ "53", MR_IO, "the server is out of memory or of locks", "nothing was changed; try again" },
	{ "57P03", MR_IO, "the server is starting or recovering", "try again in a moment" },
	{ "25006", MR_IO, "the server is read-only: a standby, or set so",
	    "name the primary as well: host=h1,h2 finds it by itself" },
	{ "57014", MR_BUSY, "the server cancelled it (statement_timeout, or an administrator)",
	    "nothing was changed; try again" },
	{ "55P03", MR_BUSY, "another transaction has it locked", "nothing was changed; try again" },
	{ "40", MR_BUSY, "it conflicted with other transactions again and again", "nothing was changed; try again" },
	{ "42501", MR_REFUSED, "the login may not do that",
	    "the room's owner can allow it: mailroom init --roles LOGIN=AGENT SPEC" },
	{ "3F000", MR_NOTFOUND, "there is no room in that schema", "make one with: mailroom init postgres:..." },
	{ "42883", MR_REFUSED, "the room lacks a function: it is of another version",
	    "bring it up to date with: mailroom init --upgrade postgres:..." },
	{ "42P01", MR_REFUSED, "the room lacks a table", "restore it from a backup" },
	{ "22021", MR_REFUSED, "it has bytes that are not text", "" },
};

static enum mr_rc
fail_as(const char *state, struct mr_str said, const char *what, struct mr_error *err)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (strncmp(state, meanings[i].state, strlen(meanings[i].state)) == 0)
			return mr_fail(err, meanings[i].code, "cannot %s: %s (%.*s)\n%s", what, meanings[i].what,
			    (int)(said.len < 150 ? said.len : 150), said.ptr, meanings[i].hint);
	said = said.len > 0 ? said : STR("no answer");
	return mr_fail(err, MR_IO, "cannot %s: %.*s", what, (int)(said.len < 220 ? said.len : 220), said.ptr);
}

const char *
pg_state_of(const PGresult *rows)
{
	const char *state = rows ? PQresultErrorField(rows, PG_DIAG_SQLSTATE) : NULL;

	return state ? state : "";
}

enum mr_rc
pg_fail(struct postgres *pg, const PGresult *rows, const char *what, struct mr_error *err)
{
	const char *said = rows ? PQresultErrorField(rows, PG_DIAG_MESSAGE_PRIMARY) : NULL;

	return fail_as(pg_state_of(rows), first_line(said ? said : PQerrorMessage(pg->conn)), what, err);
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
	    "cannot reach the room: %.*s\ncheck that the server is running there, and that this machine may connect to it",
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
	memset(pg->often, 0, sizeof(pg->often));
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

		PG_BIND(&c, TEXT(pg->token));
		(void)pg_ask(pg, &c, &ignored);
		pg_call_done(&c);
	}
	for (struct pg_watch *w = pg->watches; w && pg->conn; w = w->next) {
		struct pg_call c = PG_CALL("watch");

		PG_BIND(&c, PLACE(w->name));
		(void)pg_ask(pg, &c, &ignored);
		pg_call_done(&c);
		w->rung = true; /* what came meanwhile rang nobody */
	}
	for (struct pg_lock *l = pg->locks; l && pg->conn; l = l->next) {
		struct pg_call c = PG_CALL("record_lock");

		PG_BIND(&c, TEXT(l->kind), TEXT(l->owner), TEXT(l->name), INT(0), BOOL(false));
		(void)pg_ask(pg, &c, &ignored);
		pg_call_done(&c);
	}
}

static enum mr_rc
greet(struct postgres *pg, bool *ret_passing, bool *ret_old, struct mr_error *err)
{
	struct pg_call c = PG_READ("hello");

	pg->shift_ms = 0;
	PG_BIND(&c, INT(PQbackendPID(pg->conn)));
	struct pg_batch *expected = pg_expected(pg);

	if (expected)
		c.before = &expected->v[expected->n - 1];
	enum pg_asked outcome = pg_ask(pg, &c, err);
	enum mr_rc rc = outcome == PG_ASKED_DONE                     ? pg_greeted(pg, &c, err)
			: err->code == MR_IO || err->code == MR_BUSY ? err->code
								     : pg_no_room(pg, err);

	pg_call_done(&c);
	*ret_old = outcome == PG_ASKED_DONE && rc == MR_IO;
	*ret_passing =
	    *ret_old || outcome == PG_ASKED_LOST || outcome == PG_ASKED_AWAY; /* another is there, or will be */
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

unsigned
pg_each_host(const struct postgres *pg, struct buf *ret_line)
{
	char one[3][HOST_MAX] = { 0 };
	struct settings s;
	unsigned primaries = 0;

	for (size_t i = 0; connection_settings(pg, true, &s), one_host(pg->options, i, &s, one); i++) {
		PGconn *conn = PQconnectdbParams(s.names, s.values, 0);
		PGresult *rows = PQexec(conn,
		    "SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END");
		const char *timeline = PQresultStatus(rows) == PGRES_TUPLES_OK ? PQgetvalue(rows, 0, 0) : NULL;

		primaries += timeline && timeline[0];
		buf_addf(ret_line, "%s%s ", i > 0 ? ", " : "", one[0][0] ? one[0] : one[1]);
		if (timeline && timeline[0])
			buf_addf(ret_line, "is a primary (timeline %ld)", strtol(timeline, NULL, 16));
		else
			buf_adds(ret_line, timeline ? "is a standby" : "does not answer");
		PQclear(rows);
		PQfinish(conn);
	}
	return primaries;
}

void
pg_leave_pool(struct postgres *pg)
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
		pg_leave_pool(pg);
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

enum mr_rc
pg_connect_until(struct postgres *pg, int64_t until_ms, struct mr_error *err)
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
	return pg->conn ? MR_OK : pg_connect_until(pg, clock_boot_ms() + pg_patience_ms(pg), err);
}
