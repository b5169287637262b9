/* SPDX-License-Identifier: MIT */
/* care.c - where a message is, and the doctor's look at the server. */
#include "base/findings.h"
#include "base/format.h"
#include "rooms/postgres/postgres.h"
#include <inttypes.h>

#define OLD_SNAPSHOT_S 600
#define CLOCK_APART_MS 2000

enum mr_rc
pg_slot_each_place(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(pg_call_done) struct pg_call c = PG_READ("places");

	pg_text(&c, id);
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

/* A probe that is written, woken and read back: "connected" proves nothing. */
static enum mr_rc
prove_both_ways(struct mr_room *room, struct findings *f, struct mr_error *err)
{
	mr_auto(buf_done) struct buf got = BUF_INIT;
	char probe[MR_ID_LEN + 1];
	int64_t begin_ms = clock_boot_ms();

	id_new(probe);
	TRY(pg_slot_record_put(room, "probe", "", "doctor", str_of(probe), err));
	TRY(pg_slot_record_get(room, "probe", "", "doctor", &got, err));
	TRY(pg_slot_record_drop(room, "probe", "", "doctor", err));
	findings_say(f, &(struct mr_finding){ .severity = MR_FINE, .code = "server" },
	    "a probe was written, read and removed within %" PRId64 " ms (schema '%s', %s)", clock_boot_ms() - begin_ms,
	    pg_of(room)->schema, pg_of(room)->storage.file_system);
	return MR_OK;
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
		    "%" PRId64 " keys of sends and ends of leases were older than anybody asks for", removed);
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
				.why = "every waiting agent has one; without one left commands are refused",
				.fix = "raise max_connections, or let fewer agents wait" },
			    "%" PRId64 " of %" PRId64 " connections are in use", used, most);
		if (lost > 0)
			findings_say(&f,
			    &(struct mr_finding){ .severity = MR_PROBLEM,
				.code = "lost-text",
				.why = "somebody deleted rows by hand, or a restore was not whole",
				.fix = "restore the table message from a backup" },
			    "%" PRId64 " messages are listed in mailboxes or queues and have no text", lost);
		if (fix)
			tidy(room, &f);
	}
	findings_end(&f);
	return rc;
}
