/* SPDX-License-Identifier: MIT */
/* postgres.c - a room in one schema of a PostgreSQL database: its table of operations, its spec, and opening it.
 */
#include "rooms/postgres/postgres.h"
#include "message/address.h"
#include <inttypes.h>

#define SCHEMA_DEFAULT "mailroom"
extern const struct room_driver room_postgres;

#define HAS(name) .name = pg_slot_##name
const struct room_driver room_postgres = {
	.kind = "postgres",
	.abilities = ROOM_READ_STATE | ROOM_THREADS | ROOM_PRIORITIES | ROOM_ARCHIVE | ROOM_REGISTER | ROOM_HOLDS |
		     ROOM_SENT | ROOM_KEYS | ROOM_PIN | ROOM_TYPES | ROOM_PURGE | ROOM_DEAD | ROOM_RAW | ROOM_BATCH |
		     ROOM_QUEUES | ROOM_CHANNELS | ROOM_NAMES | ROOM_FETCH | ROOM_ATTACHMENTS,

	HAS(open),
	HAS(close),
	HAS(storage),

	HAS(each_agent),
	HAS(find_agent),
	HAS(add_agent),
	HAS(take_life),
	HAS(update_agent),
	HAS(check_life),
	HAS(seen),

	HAS(deliver),
	HAS(scan),
	HAS(fetch),
	HAS(mark),
	HAS(remove),

	HAS(flush),

	HAS(claim),
	HAS(settle),
	HAS(extend),
	HAS(each_claim),
	HAS(find_claim),
	HAS(each_past),
	HAS(sweep),
	HAS(make_box),
	HAS(remove_box),

	HAS(watch),
	HAS(watch_wait),
	HAS(watch_close),

	HAS(record_put),
	HAS(record_get),
	HAS(record_drop),
	HAS(record_each),
	HAS(record_lock),
	HAS(record_unlock),

	HAS(channel_scan),
	HAS(channel_range),

	HAS(each_place),
	HAS(each_cost),
	HAS(inspect),
};

/* ---- The spec ---- */

/* It becomes a part of SQL, and a person types it in psql: no quotes needed. */
static enum mr_rc
take_schema(struct postgres *pg, const char *name, struct mr_error *err)
{
	size_t len = strlen(name);

	if (len == 0 || len > PG_SCHEMA_MAX || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != len ||
	    (name[0] >= '0' && name[0] <= '9') || strncmp(name, "pg_", 3) == 0 || strcmp(name, "public") == 0 ||
	    strcmp(name, "information_schema") == 0)
		return mr_fail(err, MR_REFUSED,
		    "'%.60s' cannot be the schema of a room\n"
		    "write #SCHEMA at the end of the spec: at most %d small letters, digits and '_'; not 'public' or 'pg_...'",
		    name, PG_SCHEMA_MAX);
	(void)snprintf(pg->schema, sizeof(pg->schema), "%s", name);
	return MR_OK;
}

/* "//user@host/db?x=y#schema", or libpq's "host=... dbname=...#schema". Messages never have the text: a password may be
 * in it. */
static enum mr_rc
take_spec(struct postgres *pg, const char *where, struct mr_error *err)
{
	static const char *const secret[] = { "password", "sslpassword" };
	const char *hash = strrchr(where, '#');
	mr_auto(buf_done) struct buf info = BUF_INIT;
	char *why = NULL;

	buf_adds(&info, str_starts(str_of(where), "//") ? "postgresql:" : "");
	buf_add(&info, hash ? (struct mr_str){ where, (size_t)(hash - where) } : str_of(where));
	if (!buf_ok(&info))
		return mr_nomem(err);
	pg->options = PQconninfoParse(buf_z(&info), &why);
	if (!pg->options) {
		(void)mr_fail(err, MR_REFUSED,
		    "that is not the address of a database\n"
		    "write postgres://USER@HOST/DATABASE#SCHEMA, or postgres:service=NAME#SCHEMA");
		PQfreemem(why);
		return err->code;
	}
	for (const PQconninfoOption *o = pg->options; o->keyword; o++)
		for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++)
			if (o->val && strcmp(o->keyword, secret[i]) == 0)
				return mr_fail(err, MR_REFUSED,
				    "a password does not belong in the name of a room: it would be shown and stored\n"
				    "put it into ~/.pgpass or a service file, or use a client certificate; then take it out");
	return take_schema(pg, hash ? hash + 1 : SCHEMA_DEFAULT, err);
}

/* ---- Opening ---- */

static const char *
column(const struct pg_call *c, const char *name)
{
	int n = PQfnumber(c->rows, name);

	return n >= 0 ? pg_get_text(c, 0, n) : "";
}

static int64_t
column_int(const struct pg_call *c, const char *name)
{
	int n = PQfnumber(c->rows, name);

	return n >= 0 ? pg_get_int(c, 0, n) : 0;
}

/* How many copies there are of what is accepted, by name. */
static void
note_storage(struct postgres *pg, const struct pg_call *c)
{
	struct mr_storage *s = &pg->storage;
	const char *standbys = column(c, "standbys"), *wanted = column(c, "wanted"), *version = column(c, "version");
	bool syncs = strcmp(column(c, "fsync"), "on") == 0, pages = strcmp(column(c, "pages"), "on") == 0;

	*s = (struct mr_storage){ .power_safe = syncs && pages };
	(void)snprintf(s->file_system, sizeof(s->file_system), "postgresql %.*s", (int)strcspn(version, " "), version);
	if (!s->power_safe)
		(void)snprintf(
		    s->reason, sizeof(s->reason), "the server runs with %s off", syncs ? "full_page_writes" : "fsync");
	s->one_copy = standbys[0] == '\0';
	if (strcmp(standbys, "?") == 0)
		(void)snprintf(s->copies, sizeof(s->copies),
		    "this server and what '%.60s' means; GRANT pg_monitor to the room's owner shows which", wanted);
	else if (standbys[0])
		(void)snprintf(s->copies, sizeof(s->copies), "this server and %s", standbys);
	else if (wanted[0])
		(void)snprintf(s->copies, sizeof(s->copies),
		    "no standby of '%.60s' is there: nothing is accepted before one is", wanted);
	else
		(void)snprintf(s->copies, sizeof(s->copies),
		    "ONE COPY: no synchronous standby; the loss of the server's disk loses mail");
}

enum mr_rc
pg_greeted(struct postgres *pg, const struct pg_call *c, struct mr_error *err)
{
	struct mr_room *room = pg->room;
	int64_t format = column_int(c, "format"), migration = column_int(c, "migration");
	const char *instance = column(c, "instance"), *name = column(c, "name");

	if (PQntuples(c->rows) != 1 || format < 1)
		return mr_fail(err, MR_CORRUPT, "the room in schema '%s' has lost its settings", pg->schema);
	if (format > PG_FORMAT)
		return mr_fail(err, MR_REFUSED,
		    "the room in schema '%s' was made by a newer mailroom (format %" PRId64
		    ", this one knows %d)\ninstall a newer mailroom",
		    pg->schema, format, PG_FORMAT);
	if (migration < PG_MIGRATION)
		return mr_fail(err, MR_REFUSED,
		    "the room in schema '%s' is of an earlier mailroom (step %" PRId64 " of %d)\n"
		    "bring it up to date with: mailroom init --upgrade SPEC",
		    pg->schema, migration, PG_MIGRATION);
	if (pg->answered && strcmp(instance, room->identity) != 0)
		return mr_fail(err, MR_REFUSED, "another room has taken the place of '%s'", pg->schema);
	(void)snprintf(room->identity, sizeof(room->identity), "%s", instance);
	pg->seen = (struct pg_seen){ .timeline = strtoll(column(c, "timeline"), NULL, 16),
		.position = column_int(c, "written") };
	(void)snprintf(pg->seen.system, sizeof(pg->seen.system), "%s", column(c, "system"));
	TRY(pg_seen_check(room, &pg->seen, err));
	pg_seen_note(room, &pg->seen, false);
	pg->pooled = column_int(c, "pooled") != 0;
	pg->guarded = column_int(c, "guarded") != 0;
	pg->look_due = column_int(c, "look_due") != 0;
	pg->apart_ms = column_int(c, "now_ms") - clock_now_ms();
	pg->look_ms = clock_boot_ms() + (pg->look_due ? LOOK_SOON_MS : LOOK_AGAIN_MS);
	(void)snprintf(pg->acts, sizeof(pg->acts), "%s", column(c, "acts"));
	pg_remember(pg, "", c, 0, PQfnumber(c->rows, "small"));
	pg_forget(&pg->self_memo);
	note_storage(pg, c);
	if (pg->answered)
		return MR_OK;
	TRY(record_parse(str_of(column(c, "settings")), &room->settings, err));
	room->name = strdup(address_check(str_of(name), IGNORED) == MR_OK && !strchr(name, '/') ? name : "room");
	pg->answered = room->name != NULL;
	return room->name ? MR_OK : mr_nomem(err);
}

/* ---- The slots ---- */

enum mr_rc
pg_slot_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	struct postgres *pg = calloc(1, sizeof(*pg));

	if (!pg)
		return mr_nomem(err);
	pg->room = room;
	room->state = pg;
	TRY(take_spec(pg, where, err));
	pg->making = room->making != NULL;
	if (room->pool && !pg->making) {
		pg->pool = PQconninfoParse(room->pool, NULL);
		if (!pg->pool)
			return mr_fail(err, MR_REFUSED,
			    "MAILROOM_POOL is not the address of a database\nwrite host=... dbname=...");
	}
	if (!pg_expect(pg, room->expects))
		return mr_nomem(err);
	TRY(pg_connect(pg, err));
	if (!pg->making)
		return MR_OK;
	TRY(pg_make(pg, room->making, err));
	pg->making = false;
	pg_disconnect(pg);
	return pg_connect(pg, err);
}

void
pg_slot_close(struct mr_room *room)
{
	struct postgres *pg = pg_of(room);

	if (!pg)
		return;
	if (room->trace) {
		char line[60];

		(void)snprintf(
		    line, sizeof(line), "postgres: %u round trips%s", pg->trips, pg->pooled ? " through a pool" : "");
		room->trace(room->trace_ctx, line);
	}
	if (pg->look_due || clock_boot_ms() > pg->look_ms)
		pg_retain(room);
	pg_letters_done(pg);
	pg_contents_close(pg);
	if (pg->conn)
		(void)pg_slot_flush(room, IGNORED);
	if (pg->sweeps[0] && pg->conn) { /* best effort: the next look sweeps as well */
		mr_auto(pg_call_done) struct pg_call c = PG_READ("sweep");

		pg_add_sweep(pg, &c, NULL);
		pg_send_off(room, &c);
	}
	pg_disconnect(pg); /* and with the session all that it held and waited for */
	for (struct pg_watch *w = pg->watches, *next; w; w = next) {
		next = w->next;
		free(w);
	}
	for (struct pg_lock *l = pg->locks, *next; l; l = next) {
		next = l->next;
		pg_lock_free(l);
	}
	pg_forget_all(pg);
	mr_names_done(&pg->expects);
	mr_names_done(&pg->listed);
	mr_names_done(&pg->others);
	mr_names_done(&pg->ahead);
	mr_names_done(&pg->ends.ids);
	mr_names_done(&pg->ends.hows);
	mr_names_done(&pg->ends.ahead);
	PQconninfoFree(pg->options);
	PQconninfoFree(pg->pool);
	free(pg);
	room->state = NULL;
}

enum mr_rc
pg_slot_storage(struct mr_room *room, struct mr_storage *ret, struct mr_error *err)
{
	(void)err;
	*ret = pg_of(room)->storage;
	return MR_OK;
}
