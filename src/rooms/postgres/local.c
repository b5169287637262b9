/* SPDX-License-Identifier: MIT */
/*
 * local.c - what this machine keeps of a room, in the user's state folder:
 *
 *	postgres/host-SPEC            which host of its list served last
 *	postgres/INSTANCE/seen        the newest server that was met: timeline, position, system
 *	postgres/INSTANCE/outbox/ID   a message whose send is in doubt: how it was sent, an empty line, the message
 *	postgres/INSTANCE/outbox/ID.content   its body, where that is long
 *	postgres/INSTANCE/doubts/ID   what became of it; a month
 *
 * seen: after a failover the old primary may still answer, and may be the first of the list. It accepts nothing, for no
 * standby confirms it, but it shows an old mailbox. Every promotion begins a timeline with a higher number, so a server
 * of a lower one than this machine has met is refused. The position is that of a hello behind which a send was
 * acknowledged: a server that has not come so far lacks acknowledged mail (a backup was put back, or a standby was
 * promoted that nobody had waited for). Neither is worth an fsync.
 *
 * outbox: exit code 6 says that the message will be completed. The next command of this user on this machine that
 * reaches the room asks for the send again, with the same id; asked twice at once it is still one message.
 */
#include "base/file.h"
#include "base/format.h"
#include "base/sys.h"
#include "base/text.h"
#include "rooms/postgres/postgres.h"
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>

#define SEEN_MAX 200
#define CONTENT_END ".content"
#define DOUBT_KEPT_MS ((int64_t)30 * 24 * 3600 * 1000)

enum mr_rc
pg_folder(const struct mr_room *room, const char *below, bool make, int *ret_fd, struct mr_error *err)
{
	char path[ROOM_IDENTITY_LEN + 32];

	if (!room->state_dir || strlen(room->identity) != ROOM_IDENTITY_LEN)
		return mr_fail(err, MR_NOTFOUND, "there is no state folder\nset HOME or XDG_STATE_HOME");
	text_join(path, sizeof(path), "postgres/", room->identity, below, NULL);
	return dir_below(room->state_dir, path, make, make, ret_fd, err);
}

/* ---- The newest server ---- */

static bool
parse_seen(const char *text, struct pg_seen *ret)
{
	return sscanf(text, "%" SCNd64 " %" SCNd64 " %47[0-9/]", &ret->timeline, &ret->position, ret->system) == 3;
}

static void
read_seen(const struct mr_room *room, struct pg_seen *ret)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;

	*ret = (struct pg_seen){ 0 };
	if (pg_folder(room, "", false, &fd, IGNORED) != MR_OK ||
	    file_read(fd, "seen", SEEN_MAX, &text, IGNORED) != MR_OK || !parse_seen(buf_z(&text), ret))
		*ret = (struct pg_seen){ 0 };
}

static int64_t
position_now(struct postgres *pg)
{
	PGresult *rows = PQexec(pg->conn, "SELECT (pg_current_wal_lsn() - '0/0')::bigint");
	int64_t n = PQresultStatus(rows) == PGRES_TUPLES_OK ? strtoll(PQgetvalue(rows, 0, 0), NULL, 10) : 0;

	PQclear(rows);
	return n;
}

enum mr_rc
pg_seen_check(struct mr_room *room, const struct pg_seen *now, struct mr_error *err)
{
	const char *host = PQhost(pg_of(room)->conn);
	struct pg_seen seen;

	read_seen(room, &seen);
	if (seen.timeline == 0 || now->timeline == 0)
		return MR_OK;
	if (strcmp(now->system, seen.system) == 0 && now->timeline < seen.timeline)
		return mr_fail(err, MR_IO,
		    "%.60s is an old primary: its timeline is %" PRId64 ", and %" PRId64 " was already seen from here\n"
		    "its administrator has to stop it; name all servers of the room, and the new one is found",
		    host, now->timeline, seen.timeline);
	/* Since the server told its position another command may have had an answer and noted a later one. */
	if (strcmp(now->system, seen.system) != 0 ||
	    (now->position < seen.position && position_now(pg_of(room)) < seen.position))
		return mr_fail(err, MR_REFUSED,
		    "%.60s %s: it is a copy, a restored backup, or a standby that lagged and was promoted\n"
		    "if it is the room from now on, remove %s/postgres/%s/seen",
		    host,
		    strcmp(now->system, seen.system) != 0 ? "is not the database that was used from here"
							  : "lacks mail that was acknowledged here",
		    room->state_dir, room->identity);
	return MR_OK;
}

void
pg_seen_note(struct mr_room *room, struct pg_seen *now, bool acknowledged)
{
	mr_auto(sys_close_fd) int folder = -1;
	mr_auto(sys_close_fd) int fd = -1;
	struct pg_seen seen = { 0 };
	char text[SEEN_MAX];

	if (now->timeline == 0 || now->acknowledged)
		return;
	now->acknowledged = acknowledged;
	read_seen(room, &seen);
	if (strcmp(seen.system, now->system) == 0 && seen.timeline >= now->timeline &&
	    (!acknowledged || seen.position >= now->position))
		return;
	if (pg_folder(room, "", true, &folder, IGNORED) != MR_OK ||
	    (fd = sys_open(folder, "seen", O_RDWR | O_CREAT, 0600)) < 0 || sys_flock(fd, LOCK_EX) < 0)
		return;
	ssize_t n = sys_pread(fd, text, sizeof(text) - 1, 0); /* behind the lock: another may have met a newer one */

	text[n > 0 ? n : 0] = '\0';
	if (!parse_seen(text, &seen))
		seen = (struct pg_seen){ 0 };
	int64_t position = acknowledged && now->position > seen.position ? now->position : seen.position;
	int64_t timeline = now->timeline > seen.timeline ? now->timeline : seen.timeline;
	/* One write of one length: a reader meets the old line or the new one. */
	int len =
	    snprintf(text, sizeof(text), "%010" PRId64 " %020" PRId64 " %-40.40s\n", timeline, position, now->system);

	(void)sys_pwrite_all(fd, text, (size_t)len, 0);
}

/* ---- The host that served last ---- */

static void
host_file(const struct mr_room *room, char ret[32])
{
	char digest[65];

	sha256_hex(str_of(room->spec), digest);
	(void)snprintf(ret, 32, "host-%.16s", digest);
}

size_t
pg_host_last(const struct mr_room *room)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char name[32];
	uint64_t n = 0;

	host_file(room, name);
	return room->state_dir && dir_below(room->state_dir, "postgres", false, false, &fd, IGNORED) == MR_OK &&
		       file_read(fd, name, 20, &text, IGNORED) == MR_OK && str_to_u64(str_trim(buf_str(&text)), &n) &&
		       n < 100
		   ? (size_t)n
		   : 0;
}

void
pg_host_note(const struct mr_room *room, size_t host, size_t last)
{
	mr_auto(sys_close_fd) int folder = -1;
	mr_auto(sys_close_fd) int fd = -1;
	char name[32], text[8];

	host_file(room, name);
	if (host == last || host >= 100 || !room->state_dir ||
	    dir_below(room->state_dir, "postgres", true, false, &folder, IGNORED) != MR_OK)
		return;
	int len = snprintf(text, sizeof(text), "%02zu", host);

	fd = sys_open(folder, name, O_WRONLY | O_CREAT, 0600);
	if (fd >= 0)
		(void)sys_pwrite_all(fd, text, (size_t)len, 0);
}

/* ---- The outbox ---- */

/* The arguments of send(), by the names that the outbox has for them. */
static const struct {
	const char *name;
	enum { ARG_TEXT, ARG_NAMES, ARG_BYTES, ARG_AGAIN } kind;
} arguments[] = { { "Id", ARG_TEXT }, { "", ARG_BYTES }, { "", ARG_BYTES }, { "Digest", ARG_TEXT },
	{ "Sender", ARG_TEXT }, { "Agent", ARG_NAMES }, { "Queue", ARG_NAMES }, { "Channel", ARG_NAMES },
	{ "Key", ARG_TEXT }, { "How", ARG_TEXT }, { "Priority", ARG_TEXT }, { "Not-Before", ARG_TEXT },
	{ "Look", ARG_TEXT }, { "", ARG_AGAIN } };
#define ARGUMENTS (sizeof(arguments) / sizeof(arguments[0]))

enum mr_rc
pg_outbox_keep(struct mr_room *room, struct pg_call *c, const struct mr_names *const names[3], struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	char now[RFC3339_LEN + 1], bytes[24], name[MR_ID_LEN + sizeof(CONTENT_END)];

	time_rfc3339(clock_now_ms(), now);
	TRY(header_add(&text, "Since", str_of(now), err));
	if (c->content) { /* without that file it must not be sent */
		(void)snprintf(bytes, sizeof(bytes), "%" PRIu64, c->content->bytes);
		TRY(header_add(&text, "Content", str_of(bytes), err));
	}
	for (size_t i = 0, list = 0; i < ARGUMENTS; i++) {
		if (arguments[i].kind == ARG_TEXT && c->values[i])
			TRY(header_add(&text, arguments[i].name, str_of(c->values[i]), err));
		if (arguments[i].kind != ARG_NAMES)
			continue;
		for (size_t k = 0; k < names[list]->n; k++)
			TRY(header_add(&text, arguments[i].name, str_of(names[list]->v[k]), err));
		list++;
	}
	buf_addc(&text, '\n');
	for (size_t i = 0; i < ARGUMENTS; i++)
		if (arguments[i].kind == ARG_BYTES)
			buf_add(&text, (struct mr_str){ c->values[i], (size_t)c->lengths[i] });
	if (!buf_ok(&text))
		return mr_nomem(err);
	TRY(pg_folder(room, "/outbox", true, &fd, err));
	if (c->content) {
		text_join(name, sizeof(name), c->values[0], CONTENT_END, NULL);
		TRY(stage_publish(&c->content->file, fd, name, PUBLISH_FULL, err));
	}
	return file_replace(fd, c->values[0], buf_str(&text), 0600, err);
}

/* The body beside a message of the outbox, where it has one. One that is missing or of another size is told of, and the
 * message stays: without its attachments it would be another one. */
static enum mr_rc
open_content(struct mr_room *room, int outbox, const char *id, const struct record *r, struct pg_spool *ret,
    struct mr_error *err)
{
	const char *kept = record_get(r, "Content"); /* an earlier mailroom did not write it */
	char name[MR_ID_LEN + sizeof(CONTENT_END)];
	struct stat st = { 0 };
	uint64_t bytes = 0;

	text_join(name, sizeof(name), id, CONTENT_END, NULL);
	ret->file.fd = sys_open(outbox, name, O_RDONLY | O_CLOEXEC, 0);
	if (ret->file.fd < 0 && !kept)
		return MR_OK;
	bool there = ret->file.fd >= 0 && sys_stat_fd(ret->file.fd, &st) == 0;

	ret->bytes = (uint64_t)st.st_size;
	if (there && (!kept || (str_to_u64(str_of(kept), &bytes) && bytes == ret->bytes)))
		return MR_OK;
	if (sys_stat(outbox, id, &st) != 0)
		return mr_fail(err, MR_NOTFOUND, "another command has completed '%s'", id);
	(void)mr_fail(err, MR_CORRUPT, "message %s is in doubt and not sent again: the attachments in %s are %s", id,
	    name, there ? "not what was kept" : "not readable");
	(void)names_add(&room->barred, str_of(err->message));
	return MR_CORRUPT;
}

/* Fills in the call from a file of the outbox; what it points to is in `r` and `message`. */
static void
load(struct pg_call *c, struct mr_str message, const struct record *r)
{
	const char *end = strstr(message.ptr, "\n\n"); /* the buffer ends in NUL */
	size_t cut = end ? (size_t)(end - message.ptr) + 2 : message.len;

	for (size_t i = 0, part = 0; i < ARGUMENTS; i++) {
		mr_auto(mr_names_done) struct mr_names names = { 0 };

		switch (arguments[i].kind) {
		case ARG_TEXT: {
			const char *value = record_get(r, arguments[i].name);

			PG_BIND(c, TEXT(value || strcmp(arguments[i].name, "Key") == 0 ? value : ""));
			break;
		}
		case ARG_NAMES:
			for (size_t k = 0; k < r->n; k++)
				if (strcmp(r->lines[k].name, arguments[i].name) == 0)
					c->failed |= !names_add(&names, str_of(r->lines[k].value));
			PG_BIND(c, NAMES(&names));
			break;
		case ARG_BYTES:
			if (part++ == 0)
				PG_BIND(c, BYTES((struct mr_str){ message.ptr, cut }));
			else
				PG_BIND(c, BYTES((struct mr_str){ message.ptr + cut, message.len - cut }));
			break;
		case ARG_AGAIN:
			PG_BIND(c, BOOL(true));
			break;
		}
	}
	c->value = true;
	c->asked_again = true; /* what is found must be on the standby, too */
}

/* One message of the outbox is sent, and what came of it written down and told. */
static enum mr_rc
resolve(struct mr_room *room, int outbox, int doubts, const char *id, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, note = BUF_INIT;
	mr_auto(record_done) struct record r = { 0 };
	mr_auto(pg_call_done) struct pg_call c = PG_CALL("send");
	mr_auto(pg_spool_done) struct pg_spool content = PG_SPOOL_INIT;
	char now[RFC3339_LEN + 1], name[MR_ID_LEN + sizeof(CONTENT_END)];
	struct mr_str message;

	TRY(file_read(outbox, id, MR_BODY_MAX + (1 << 20), &text, err));
	if (text.len == 0)
		return mr_fail(err, MR_CORRUPT, "'%s' in the outbox is empty", id);
	TRY(record_and_rest(buf_str(&text), &r, &message, err));
	TRY(open_content(room, outbox, id, &r, &content, err));
	if (content.file.fd >= 0) {
		c.content = &content;
		c.function = "send_long";
	}
	load(&c, message, &r);
	enum mr_rc rc = pg_run(room, &c, err);

	if (rc == MR_REFUSED || rc == MR_UNSUPPORTED)
		buf_addf(&note, "refused: %s", err->message);
	else if (rc != MR_OK)
		return rc;
	else if (pg_sent(&c, 0).rc != PG_DONE)
		buf_addf(&note, "refused: %s",
		    pg_sent(&c, 0).rc == PG_NOTFOUND ? "a recipient no longer exists"
						     : "the room has another message of that id or key");
	else
		buf_adds(&note, strcmp(pg_sent(&c, 0).note, "repeated") == 0 ? "accepted: the server had it"
									     : "accepted: it was sent again");
	const char *since = record_get(&r, "Since");

	time_rfc3339(clock_now_ms(), now);
	buf_clear(&text);
	record_add(&text, "Since", since);
	record_add(&text, "Resolved", now);
	record_add(&text, "Outcome", buf_z(&note));
	if (!buf_ok(&text))
		return mr_nomem(err);
	TRY(file_replace(doubts, id, buf_str(&text), 0600, err));
	(void)sys_unlink(outbox, id);
	text_join(name, sizeof(name), id, CONTENT_END, NULL);
	(void)sys_unlink(outbox, name);
	buf_clear(&text);
	format_addf(&text, "message %s, in doubt since %s, is %s", id, since ? since : "a while", buf_z(&note));
	(void)names_add(&room->barred, buf_str(&text));
	return MR_OK;
}

static bool
remove_if_old(void *ctx, const struct dir_entry *entry)
{
	int fd = *(int *)ctx;
	struct stat st;

	if (sys_stat(fd, entry->name, &st) == 0 && clock_now_ms() - (int64_t)st.st_mtim.tv_sec * 1000 > DOUBT_KEPT_MS)
		(void)sys_unlink(fd, entry->name);
	return true;
}

enum mr_rc
pg_outbox_send(struct mr_room *room, struct mr_error *err)
{
	mr_auto(sys_close_fd) int outbox = -1;
	mr_auto(sys_close_fd) int doubts = -1;
	mr_auto(mr_names_done) struct mr_names ids = { 0 };

	if (pg_folder(room, "/outbox", false, &outbox, IGNORED) != MR_OK)
		return MR_OK;
	TRY(dir_names(outbox, &ids, err));
	names_sort(&ids);
	for (size_t i = 0; i < ids.n; i++) {
		if (!id_valid(str_of(ids.v[i])))
			continue;
		if (doubts < 0) {
			TRY(pg_folder(room, "/doubts", true, &doubts, err));
			(void)dir_each(doubts, remove_if_old, &doubts, IGNORED);
		}
		enum mr_rc rc = resolve(room, outbox, doubts, ids.v[i], err);

		if (rc != MR_OK && rc != MR_NOTFOUND &&
		    rc != MR_CORRUPT) /* another command was faster; the next goes on */
			return rc;
	}
	return MR_OK;
}

void
pg_outbox_tell(struct mr_room *room, const char *id, place_fn *fn, void *ctx)
{
	static const char *const folders[] = { "/outbox", "/doubts" };

	for (size_t i = 0; i < 2; i++) {
		mr_auto(sys_close_fd) int fd = -1;
		mr_auto(buf_done) struct buf text = BUF_INIT, evidence = BUF_INIT;
		mr_auto(record_done) struct record r = { 0 };

		if (pg_folder(room, folders[i], false, &fd, IGNORED) != MR_OK ||
		    file_read(fd, id, MR_BODY_MAX + (1 << 20), &text, IGNORED) != MR_OK)
			continue;
		struct mr_str message;

		if (record_and_rest(buf_str(&text), &r, &message, IGNORED) != MR_OK)
			continue;
		const char *since = record_get(&r, "Since"), *resolved = record_get(&r, "Resolved");

		format_addf(&evidence, "its send was in doubt at %s; ", since ? since : "?");
		if (resolved)
			format_addf(&evidence, "at %s it was %s", resolved, record_get(&r, "Outcome"));
		else
			buf_adds(&evidence, "it waits on this machine for the next command that reaches the room");
		fn(ctx, &(struct place_of){ .agent = "", .state = "pending", .evidence = buf_z(&evidence) });
	}
}
