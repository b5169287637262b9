/* SPDX-License-Identifier: MIT */
/* care.c - where a message is, and the doctor's look at the server. */
#include "base/findings.h"
#include "base/format.h"
#include "message/message.h"
#include "rooms/postgres/postgres.h"
#include <inttypes.h>

#define OLD_SNAPSHOT_S 600
#define CLOCK_APART_MS 2000
#define WOKEN_MS 10000

enum mr_rc
pg_slot_each_place(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_READ("places");

	PG_BIND(&c, TEXT(id));
	TRY(pg_run(room, &c, err));
	for (int i = 0; i < PQntuples(c.rows); i++) {
		const struct place_of place = { .agent = pg_get_text(&c, i, 0),
			.folder = (enum mr_folder)pg_get_int(&c, i, 1),
			.flags = (unsigned)pg_get_int(&c, i, 2),
			.state = pg_get_text(&c, i, 3),
			.evidence = pg_get_text(&c, i, 4) };

		fn(ctx, &place);
	}
	pg_outbox_tell(room, id, fn, ctx);
	return MR_OK;
}

static int64_t
value_of(const struct pg_call *c, const char *name)
{
	for (int i = 0; i < PQntuples(c->rows); i++)
		if (strcmp(pg_get_text(c, i, 0), name) == 0)
			return pg_get_int(c, i, 1);
	return 0;
}

/* A probe that is written, read back and removed, for a login that may not send to the operator. */
static enum mr_rc
prove_by_record(struct mr_room *room, struct mr_error *err)
{
	mr_auto(buf_done) struct buf got = BUF_INIT;
	char probe[MR_ID_LEN + 1];

	id_new(probe);
	TRY(pg_slot_record_put(room, "probe", "", probe, str_of(probe), err));
	TRY(pg_slot_record_get(room, "probe", "", probe, &got, err));
	return pg_slot_record_drop(room, "probe", "", probe, err);
}

/* Sends a message to the operator, waits for it on a second connection, reads it there and takes it away. */
static enum mr_rc
prove_by_message(struct mr_room *room, struct mr_room *second, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message got = { 0 };
	char operator_name[] = "operator", *names[] = { operator_name };
	const struct mr_names to = { .v = names, .n = 1 };
	struct mr_message msg =
	    message_new("operator", "a probe of mailroom doctor", STR("It takes this away again.\n"));
	struct delivery what = { .msg = &msg, .to = &to, .sender = "" };
	struct delivered done = { 0 };
	void *watch = NULL;
	int64_t until_ms = clock_boot_ms() + WOKEN_MS;
	bool rung = false;

	msg.to = to;
	msg.thread = msg.id;
	TRY(pg_slot_watch(second, "operator", &watch, err));
	enum mr_rc rc = pg_slot_deliver(room, &what, &done, err);

	while (rc == MR_OK && !rung && clock_boot_ms() < until_ms)
		rung = pg_slot_watch_wait(second, watch, until_ms - clock_boot_ms()) && pg_watch_rang(watch);
	if (rc == MR_OK && !rung)
		rc = mr_fail(err, MR_IO,
		    "a message was accepted, but within %d s no NOTIFY came for it\n"
		    "check for a pool in between, and the load of the server",
		    WOKEN_MS / 1000);
	if (rc == MR_OK)
		rc = pg_slot_fetch(second, "operator", msg.id, MR_INBOX, SCAN_BODIES, &got, err);
	if (msg.id[0])
		(void)pg_slot_remove(room, &(struct removal){ .what = REMOVE_EVERYWHERE, .id = msg.id }, NULL,
		    rc == MR_OK ? err : IGNORED);
	pg_slot_watch_close(second, watch);
	delivered_done(&done);
	return rc;
}

/* "Connected" proves nothing. */
static enum mr_rc
prove_both_ways(struct mr_room *room, struct findings *f, struct mr_error *err)
{
	struct postgres *pg = pg_of(room);
	struct mr_room *second = NULL;
	int64_t begin_ms = clock_boot_ms();

	if (pg->pooled || (pg->guarded && strcmp(pg->acts, "*") != 0) ||
	    pg_slot_find_agent(room, "operator", NULL, IGNORED) != MR_OK) {
		TRY(prove_by_record(room, err));
		findings_say(f, &(struct mr_finding){ .severity = MR_FINE, .code = "server" },
		    "a probe was written, read and removed within %" PRId64 " ms (schema '%s', %s)",
		    clock_boot_ms() - begin_ms, pg->schema, pg->storage.file_system);
		return MR_OK;
	}
	TRY(room_open_spec(room->spec, NULL, &second, err));
	enum mr_rc rc = prove_by_message(room, second, err);

	mr_room_close(second);
	TRY(rc);
	findings_say(f, &(struct mr_finding){ .severity = MR_FINE, .code = "server" },
	    "a message to itself was accepted, woke a second connection, was read there and removed within %" PRId64
	    " ms (schema '%s', %s)",
	    clock_boot_ms() - begin_ms, pg->schema, pg->storage.file_system);
	return MR_OK;
}

static void
look_at_hosts(const struct postgres *pg, struct findings *f)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	unsigned primaries = pg_each_host(pg, &line);

	if (!strchr(buf_z(&line), ','))
		return; /* one alone is the one that we talk to */
	findings_say(f,
	    &(struct mr_finding){ .severity = primaries > 1 ? MR_PROBLEM : MR_FINE,
		.code = "hosts",
		.why = primaries > 1
			   ? "an old primary was not stopped: agents that do not know the new one read an old mailbox"
			   : "",
		.fix = primaries > 1 ? "stop the one with the lower timeline, and make it a standby" : "" },
	    "%s", buf_z(&line));
}

static void
tidy(struct mr_room *room, struct findings *f)
{
	int64_t removed = 0, n = 0;

	do {
		mr_auto(pg_call_done) struct pg_call c = PG_CALL("tidy");

		n = pg_run(room, &c, IGNORED) == MR_OK ? pg_get_int(&c, 0, 0) : 0;
		removed += n;
	} while (n >= 1000);
	if (removed > 0)
		findings_say(f,
		    &(struct mr_finding){
			.severity = MR_NOTE, .code = "old-rows", .fix = "they were removed", .fixed = true },
		    "%" PRId64 " keys of sends and ends of leases were older than any retry needs", removed);
}

enum mr_rc
pg_slot_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	struct postgres *pg = pg_of(room);
	mr_auto(pg_call_done) struct pg_call c = PG_READ("state");
	struct findings f = findings_begin(fix, fn, ctx);

	TRY(pg_run(room, &c, err));
	enum mr_rc rc = prove_both_ways(room, &f, err);

	if (rc == MR_OK) {
		int64_t lost = value_of(&c, "lost_copies"), snapshot_s = value_of(&c, "oldest_snapshot_s");
		int64_t used = value_of(&c, "connections"), most = value_of(&c, "connections_max");

		findings_say(&f,
		    &(struct mr_finding){ .severity = pg->storage.one_copy ? MR_NOTE : MR_FINE,
			.code = "copies",
			.fix = pg->storage.one_copy ? "add a standby and set synchronous_standby_names" : "" },
		    "%s", pg->storage.copies);
		findings_say(&f, &(struct mr_finding){ .severity = MR_FINE, .code = "size" },
		    "%" PRId64 " messages, %" PRId64 " KiB in all tables, %" PRId64 " dead rows in the busy ones",
		    value_of(&c, "messages"), value_of(&c, "bytes") / 1024, value_of(&c, "dead_rows"));
		if (pg->guarded)
			findings_say(&f, &(struct mr_finding){ .severity = MR_FINE, .code = "logins" },
			    "guarded: login '%s' acts for %s; senders are proven", PQuser(pg->conn),
			    pg->acts[0] ? pg->acts : "nobody");
		look_at_hosts(pg, &f);
		if (llabs(pg->apart_ms) > CLOCK_APART_MS)
			findings_say(&f,
			    &(struct mr_finding){ .severity = MR_NOTE,
				.code = "clock",
				.why = "ids have the time of the sender's clock, and mailboxes their order",
				.fix = "let all machines keep their time by NTP" },
			    "the clock of the database is %" PRId64 " s %s that of this machine",
			    (int64_t)llabs(pg->apart_ms) / 1000, pg->apart_ms > 0 ? "ahead of" : "behind");
		if (snapshot_s > OLD_SNAPSHOT_S)
			findings_say(&f,
			    &(struct mr_finding){ .severity = MR_NOTE,
				.code = "old-transaction",
				.why = "until it ends no dead row can be removed, and the busy tables grow",
				.fix = "see pg_stat_activity: a dump, or a forgotten psql" },
			    "a transaction has been open for %" PRId64 " s", snapshot_s);
		if (used * 10 > most * 9)
			findings_say(&f,
			    &(struct mr_finding){ .severity = MR_NOTE,
				.code = "connections",
				.why = "every waiting agent has one; when none is left, commands are refused",
				.fix = "raise max_connections, or let fewer agents wait" },
			    "%" PRId64 " of %" PRId64 " connections are in use", used, most);
		if (lost > 0)
			findings_say(&f,
			    &(struct mr_finding){ .severity = MR_PROBLEM,
				.code = "lost-text",
				.why = "rows were deleted by hand, or a restore was incomplete",
				.fix = "restore the table message from a backup" },
			    "%" PRId64 " messages are listed in mailboxes or queues and have no text", lost);
		pg->tidies |= fix;
		if (fix)
			tidy(room, &f);
	}
	findings_end(&f);
	return rc;
}

/* ---- What is kept ---- */

enum mr_rc
pg_slot_each_cost(struct mr_room *room, mr_cost_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_READ("costs");

	TRY(pg_run(room, &c, err));
	for (int i = 0; i < PQntuples(c.rows); i++) {
		struct mr_cost cost = { .what = pg_get_text(&c, i, 0),
			.setting = "",
			.keep = "",
			.files = (size_t)pg_get_int(&c, i, 1),
			.bytes = (uint64_t)pg_get_int(&c, i, 2) };

		for (size_t k = 0; k < ROOM_SHELVES; k++)
			if (strcmp(cost.what, room_shelves[k].record) == 0) {
				const char *keep = record_get(&room->settings, room_shelves[k].setting);

				cost.setting = room_shelves[k].setting;
				cost.keep = keep ? keep : "";
			}
		fn(ctx, &cost);
	}
	return MR_OK;
}

/* The server knows the settings, and does a little at a time; the next command goes on. */
void
pg_retain(struct mr_room *room)
{
	struct postgres *pg = pg_of(room);
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("retain");

	if (!pg->tidies || !pg->conn)
		return;
	pg->look_due = false;
	pg->look_ms = clock_boot_ms() + LOOK_AGAIN_MS;
	if (pg_run(room, &c, IGNORED) == MR_OK && pg_rc(&c) > 0)
		pg->look_ms = clock_boot_ms() + LOOK_SOON_MS;
}
