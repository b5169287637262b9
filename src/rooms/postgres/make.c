/* SPDX-License-Identifier: MIT */
/*
 * make.c - making a room in a schema, bringing one up to date, and logins that act for some agents only.
 *
 * With init --roles the schema belongs to a role of its own, mailroom_SCHEMA, in whose name all functions run, and the
 * logins are members of mailroom_SCHEMA_user, which may call the functions and touches no table. What a login may do
 * says the table actor. Steps of the schema are numbered: tables.sql is the first, stepN.sql the others. A room gets
 * those it lacks, and all functions anew, in one transaction.
 */
#include "message/address.h"
#include "rooms/postgres/postgres.h"
#include <inttypes.h>

#define SERVER_OLDEST 140000

struct found { /* in the schema */
	bool schema, ours;
	int64_t objects, version;
	bool utf8, syncs;
};

static enum mr_rc
look_at_schema(struct postgres *pg, struct found *ret, struct mr_error *err)
{
	char sql[800];

	(void)snprintf(sql, sizeof(sql),
	    "SELECT (n.oid IS NOT NULL)::int, (SELECT count(*) FROM pg_class WHERE relnamespace = n.oid AND relname IN ('room', 'migration', 'sendkey')), "
	    "(SELECT count(*) FROM pg_class WHERE relnamespace = n.oid), current_setting('server_version_num'), "
	    "(current_setting('server_encoding') = 'UTF8')::int, (current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on')::int "
	    "FROM (SELECT (SELECT oid FROM pg_namespace WHERE nspname = '%s') AS oid) n",
	    pg->schema);
	PGresult *rows = PQexec(pg->conn, sql);
	enum mr_rc rc = PQresultStatus(rows) == PGRES_TUPLES_OK ? MR_OK : pg_fail(pg, rows, "look at the schema", err);

	if (rc == MR_OK) {
		int64_t v[6];

		for (int i = 0; i < 6; i++)
			v[i] = strtoll(PQgetvalue(rows, 0, i), NULL, 10);
		*ret = (struct found){ v[0] == 1, v[1] == 3, v[2], v[3], v[4] == 1, v[5] == 1 };
	}
	PQclear(rows);
	return rc;
}

static enum mr_rc
not_ours(const struct postgres *pg, struct mr_error *err)
{
	return mr_fail(err, MR_REFUSED,
	    "schema '%s' belongs to another application: it has tables, and none of a room\nuse another schema: #NAME at the end of the spec",
	    pg->schema);
}

enum mr_rc
pg_no_room(struct postgres *pg, struct mr_error *err)
{
	struct found found = { 0 };
	struct mr_error why = *err;

	*err = (struct mr_error){ 0 };
	TRY(look_at_schema(pg, &found, err));
	if (found.objects > 0 && !found.ours)
		return not_ours(pg, err);
	if (!found.ours)
		return mr_fail(err, MR_NOTFOUND,
		    "no room in schema '%s' of that database\nmake one with: mailroom init postgres:...#%s", pg->schema,
		    pg->schema);
	*err = why;
	return why.code;
}

/* ---- The text of what is run ---- */

struct terms { /* what the text of a room's SQL depends on */
	char lock_class[16], wait_class[16];
	bool guarded;
};

static void
add_sql(struct buf *out, const char *sql, const struct postgres *pg, const struct terms *t)
{
	for (const char *at = sql; *at;) {
		size_t plain = strcspn(at, "@");

		buf_add(out, (struct mr_str){ at, plain });
		at += plain;
		if (*at == '@' && at[1] && at[2] == '@' && strchr("SCWG", at[1])) {
			buf_adds(out, at[1] == 'S'   ? pg->schema
				      : at[1] == 'C' ? t->lock_class
				      : at[1] == 'W' ? t->wait_class
				      : t->guarded   ? "true"
						     : "false");
			at += 3;
		} else if (*at) {
			buf_addc(out, *at++);
		}
	}
}

/* Steps that come after `done`, and the functions. */
static void
add_steps(struct buf *sql, const struct postgres *pg, int64_t done, const struct terms *t)
{
	static const char *const steps[PG_MIGRATION] = { pg_tables_sql, pg_step2_sql, pg_step3_sql, pg_step4_sql,
		pg_step5_sql, pg_step6_sql };

	for (int64_t n = done; n < PG_MIGRATION; n++) {
		add_sql(sql, steps[n], pg, t);
		buf_addf(sql, "INSERT INTO migration (n) VALUES (%" PRId64 ");", n + 1);
	}
}

static void
add_functions(struct buf *sql, const struct postgres *pg, const struct terms *t)
{
	add_sql(sql, pg_functions_sql, pg, t);
#ifdef MR_FAULT_ENV
	buf_adds(sql,
	    "CREATE OR REPLACE FUNCTION wall() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT clock_timestamp() + "
	    "coalesce(nullif(current_setting('mailroom.test_shift', true), ''), '0')::interval $$;");
#endif
}

static enum mr_rc
run_whole(struct postgres *pg, struct buf *sql, struct mr_error *err)
{
	buf_adds(sql, "COMMIT;");
	if (!buf_ok(sql))
		return mr_nomem(err);
	enum mr_rc rc = pg_script(pg, buf_z(sql), "make the room", err);

	if (rc != MR_OK)
		PQclear(PQexec(pg->conn, "ROLLBACK"));
	return rc;
}

static void
begin(struct buf *sql)
{
	buf_adds(sql,
	    "BEGIN; SET LOCAL lock_timeout = '5s'; SET LOCAL client_min_messages = error; SET LOCAL check_function_bodies = off; SET LOCAL synchronous_commit = on;");
}

/* What follows is done as the owner of the schema: functions run in that name, whichever login upgrades them. */
static void
go_inside(struct buf *sql, const struct postgres *pg)
{
	buf_addf(sql,
	    "DO $$ BEGIN EXECUTE format('SET LOCAL ROLE %%I', (SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = '%s')); END $$;"
	    "SET LOCAL search_path = %s, pg_temp;",
	    pg->schema, pg->schema);
}

/* ---- Logins ---- */

static void
add_quoted(struct buf *out, struct mr_str s, char quote)
{
	buf_addc(out, quote);
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] == quote)
			buf_addc(out, quote);
		buf_addc(out, s.ptr[i]);
	}
	buf_addc(out, quote);
}

static bool
can_be_login(struct mr_str s)
{
	bool fine = s.len > 0 && s.len < 64 && !str_starts(s, "pg_");

	for (size_t i = 0; i < s.len; i++)
		fine = fine && (unsigned char)s.ptr[i] > ' ' && s.ptr[i] != '\\' && s.ptr[i] != '$';
	return fine;
}

static bool
can_be_actor(struct mr_str s)
{
	struct mr_str name = s;

	if (str_eq(s, STR("*")))
		return true;
	name.len -= s.len > 2 && memcmp(s.ptr + s.len - 2, "/*", 2) == 0 ? 2 : 0;
	return address_check(name, IGNORED) == MR_OK;
}

/* "alice,worker=rig/crew": logins, each with what it acts for; nothing behind the '=': it acts for nobody any more.
 * `admin` gets what an administrator does, who makes a login that is not there, without a password; `inside` what is
 * written into the room. */
static enum mr_rc
add_logins(struct buf *admin, struct buf *inside, const struct postgres *pg, const char *list, struct mr_error *err)
{
	struct mr_str rest = str_of(list), one;

	while (str_cut(&rest, ',', &one)) {
		struct mr_str login = one, agent = one;
		const char *sign = memchr(one.ptr, '=', one.len);

		if (sign) {
			login.len = (size_t)(sign - one.ptr);
			agent = (struct mr_str){ sign + 1, one.len - login.len - 1 };
		}
		if (!can_be_login(login) || (agent.len > 0 && !can_be_actor(agent)))
			return mr_fail(err, MR_REFUSED,
			    "'%.*s' is not a login with an agent\nwrite LOGIN=AGENT, with AGENT a name, NAME/* or * "
			    "(an owner); LOGIN alone acts for the agent of that name",
			    (int)(one.len < 80 ? one.len : 80), one.ptr);
		buf_adds(inside, agent.len > 0 ? "INSERT INTO actor VALUES (" : "DELETE FROM actor WHERE (login) IN (");
		add_quoted(inside, login, '\'');
		if (agent.len > 0) {
			buf_adds(inside, ", ");
			add_quoted(inside, agent, '\'');
		}
		buf_adds(inside, agent.len > 0 ? ") ON CONFLICT DO NOTHING;" : ");");
		buf_adds(admin, "DO $do$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = ");
		add_quoted(admin, login, '\'');
		buf_adds(admin, ") THEN CREATE ROLE ");
		add_quoted(admin, login, '"');
		buf_addf(admin, " LOGIN; END IF; END $do$; %s mailroom_%s_user %s ", agent.len > 0 ? "GRANT" : "REVOKE",
		    pg->schema, agent.len > 0 ? "TO" : "FROM");
		add_quoted(admin, login, '"');
		buf_addc(admin, ';');
	}
	return MR_OK;
}

/* The two roles of a guarded room. One that may see standbys says how many copies there are; without the right to grant
 * that it does not. */
static void
add_roles(struct buf *admin, const struct postgres *pg)
{
	const char *s = pg->schema;

	buf_addf(admin,
	    "DO $do$ BEGIN"
	    " IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'mailroom_%s') THEN CREATE ROLE mailroom_%s NOLOGIN; END IF;"
	    " IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'mailroom_%s_user') THEN CREATE ROLE mailroom_%s_user NOLOGIN; END IF;"
	    " EXECUTE format('GRANT mailroom_%s, mailroom_%s_user TO %%I', session_user);"
	    " BEGIN GRANT pg_monitor TO mailroom_%s; EXCEPTION WHEN insufficient_privilege THEN NULL; END;"
	    " END $do$;",
	    s, s, s, s, s, s, s);
}

/* ---- Making and upgrading ---- */

static enum mr_rc
make(struct postgres *pg, const struct found *found, const struct mr_init_options *how, struct mr_error *err)
{
	mr_auto(buf_done) struct buf sql = BUF_INIT, inside = BUF_INIT;
	struct terms t = { .guarded = how->roles != NULL };
	uint32_t random[2];
	char created[RFC3339_LEN + 1];

	random_bytes(random, sizeof(random)); /* not the schema's number: a restore changes that */
	(void)snprintf(t.lock_class, sizeof(t.lock_class), "%" PRIu32, (random[0] & 0x3fffffff) + 1);
	(void)snprintf(t.wait_class, sizeof(t.wait_class), "%" PRIu32, (random[1] & 0x3fffffff) + 1);
	time_rfc3339(clock_now_ms(), created);
	begin(&sql);
	if (t.guarded) {
		add_roles(&sql, pg);
		TRY(add_logins(&sql, &inside, pg, how->roles, err));
	}
	if (!found->schema && t.guarded)
		buf_addf(&sql, "CREATE SCHEMA %s AUTHORIZATION mailroom_%s;", pg->schema, pg->schema);
	else if (!found->schema)
		buf_addf(&sql, "CREATE SCHEMA %s;", pg->schema);
	go_inside(&sql, pg);
	add_steps(&sql, pg, 0, &t);
	buf_addf(&sql,
	    "INSERT INTO room (format, name, settings, lock_class, wait_class) VALUES (%d, '%s', 'Created: %s' || chr(10), %s, %s);",
	    PG_FORMAT, how->name ? how->name : pg->schema, created, t.lock_class, t.wait_class);
	if (t.guarded)
		buf_addf(&sql,
		    "UPDATE room SET users = 'mailroom_%s_user'; INSERT INTO actor VALUES (session_user, '*');",
		    pg->schema);
	buf_add(&sql, buf_str(&inside));
	add_functions(&sql, pg, &t);
	return run_whole(pg, &sql, err);
}

static enum mr_rc
upgrade(struct postgres *pg, const struct mr_init_options *how, struct mr_error *err)
{
	mr_auto(buf_done) struct buf sql = BUF_INIT, inside = BUF_INIT, ask = BUF_INIT;
	struct terms t = { 0 };

	/* by way of JSON: a room of the first step has no column users */
	buf_addf(&ask,
	    "SELECT lock_class, wait_class, format, (SELECT coalesce(max(n), 1) FROM %s.migration), "
	    "(to_jsonb(r) ->> 'users' IS NOT NULL)::int FROM %s.room r",
	    pg->schema, pg->schema);
	if (!buf_ok(&ask))
		return mr_nomem(err);
	PGresult *rows = PQexec(pg->conn, buf_z(&ask));

	if (PQresultStatus(rows) != PGRES_TUPLES_OK || PQntuples(rows) != 1) {
		(void)pg_fail(pg, rows, "upgrade the room", err);
		PQclear(rows);
		return err->code;
	}
	int64_t format = strtoll(PQgetvalue(rows, 0, 2), NULL, 10), done = strtoll(PQgetvalue(rows, 0, 3), NULL, 10);
	bool was_guarded = strcmp(PQgetvalue(rows, 0, 4), "1") == 0;

	(void)snprintf(t.lock_class, sizeof(t.lock_class), "%s", PQgetvalue(rows, 0, 0));
	(void)snprintf(t.wait_class, sizeof(t.wait_class), "%s", PQgetvalue(rows, 0, 1));
	PQclear(rows);
	if (format > PG_FORMAT || done > PG_MIGRATION) /* its functions would be replaced by older ones */
		return mr_fail(err, MR_REFUSED, "the room was made by a newer mailroom\ninstall a newer mailroom");
	t.guarded = was_guarded || how->roles;
	begin(&sql);
	if (how->roles) {
		if (!was_guarded)
			add_roles(&sql, pg);
		TRY(add_logins(&sql, &inside, pg, how->roles, err));
	}
	go_inside(&sql, pg);
	buf_addf(&sql, "SELECT pg_advisory_xact_lock(%s, 0);", t.lock_class);
	add_steps(&sql, pg, done, &t);
	buf_addf(&sql, "UPDATE room SET format = %d;", PG_FORMAT); /* older programs are refused from now on */
	if (how->roles && !was_guarded)
		buf_addf(&sql,
		    "UPDATE room SET users = 'mailroom_%s_user'; INSERT INTO actor VALUES (session_user, '*') ON CONFLICT DO NOTHING;",
		    pg->schema);
	buf_add(&sql, buf_str(&inside));
	add_functions(&sql, pg, &t);
	return run_whole(pg, &sql, err);
}

/* MR_EXISTS: a room is there. */
enum mr_rc
pg_make(struct postgres *pg, const struct mr_init_options *how, struct mr_error *err)
{
	const char *name = how->name ? how->name : pg->schema;
	struct found found = { 0 };

	TRY(look_at_schema(pg, &found, err));
	if (found.ours && (how->upgrade || how->roles))
		return upgrade(pg, how, err);
	if (found.ours)
		return mr_fail(err, MR_EXISTS, "there is already a room in schema '%s'", pg->schema);
	if (how->upgrade)
		return mr_fail(err, MR_NOTFOUND, "no room in schema '%s' that could be upgraded", pg->schema);
	if (found.objects > 0)
		return not_ours(pg, err);
	if (found.version < SERVER_OLDEST)
		return mr_fail(
		    err, MR_REFUSED, "the server is older than PostgreSQL %d\nuse a newer one", SERVER_OLDEST / 10000);
	if (!found.utf8)
		return mr_fail(
		    err, MR_REFUSED, "the database is not in UTF-8\nmake one with: createdb -E UTF8 -T template0 NAME");
	if (!found.syncs)
		return mr_fail(err, MR_REFUSED,
		    "the server runs with fsync or full_page_writes off: a power cut would lose what was accepted\nset both to on");
	if (strchr(name, '/'))
		return mr_fail(err, MR_REFUSED, "'%.80s' has a slash in it", name);
	TRY(address_check(str_of(name), err));
	enum mr_rc rc = make(pg, &found, how, err);
	struct mr_error why = *err;

	if (rc == MR_REFUSED && how->roles) /* of the login */
		return mr_hint(err,
		    "roles are made by an administrator: run it as a login with CREATEROLE and CREATE on the database");
	if (rc == MR_REFUSED)
		return mr_hint(err, "let an administrator run: CREATE SCHEMA %s AUTHORIZATION \"%s\"", pg->schema,
		    PQuser(pg->conn));
	if (rc != MR_OK && look_at_schema(pg, &found, err) == MR_OK && found.ours)
		return mr_fail(err, MR_EXISTS, "there is already a room in schema '%s'", pg->schema);
	if (rc != MR_OK)
		*err = why;
	return rc;
}
