/* SPDX-License-Identifier: MIT */
/*
 * mail.c - looking at an inbox, marking, sending.
 *
 * Looking takes no lock. Marks are gathered: one lock and one write an inbox, at flush. A send to a file that is laid
 * out as the original does it parses nothing: the kernel copies all of it but the closing bracket into the next
 * version, behind which the entry is written. So a send costs what a copy in memory and a sync cost, not what reading
 * and writing JSON cost.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "rooms/teams/teams.h"
#include <errno.h>
#include <fcntl.h>

#define HEAD "[\n  {"
#define TAIL "\n  }\n]"
#define BRACKET 2              /* the end of TAIL that the new entry takes the place of */
#define TIE_WINDOW (128 << 10) /* bytes at the end in which the same moment is looked for */
#define SEND_TRIES 4
#define CHANGE_TRIES 3
#define SAME_MOMENT_MS 1000
#define SETTLED_NS 2000000000

/* ---- Looking ---- */

static void
path_of(const char *agent, char ret[TEAM_NAME_LEN + 16])
{
	char file[TEAM_NAME_LEN];

	teams_inbox_name(agent, file);
	(void)snprintf(ret, TEAM_NAME_LEN + 16, "inboxes/%s", file);
}

/* A known agent without a file has no mail; an unknown name has no mailbox: MR_NOTFOUND. */
static enum mr_rc
load(struct mr_room *room, const char *agent, bool cached, struct inbox **ret, struct mr_error *err)
{
	TRY(inbox_load(teams_of(room), agent, cached, ret, err));
	if ((*ret)->state == INBOX_MISSING)
		return teams_find_agent(room, agent, NULL, err);
	return (*ret)->state == INBOX_ALIEN ? inbox_corrupt(*ret, err) : MR_OK;
}

static enum mr_rc
show(const struct inbox *in, const struct entry *e, enum scan_depth depth, struct mr_message *ret, struct mr_error *err)
{
	char path[TEAM_NAME_LEN + 16];

	path_of(in->agent, path);
	TRY(entry_message(e, in->agent, path, depth, ret, err));
	ret->place = (size_t)(e - in->v) + 1;
	return MR_OK;
}

/* "" as long as a change could leave the same times. */
static void
state_of(const struct stat *st, char ret[SCAN_STATE_LEN])
{
	bool settled = clock_now_ns() - kit_mtime_ns(st) > SETTLED_NS;

	(void)snprintf(ret, SCAN_STATE_LEN, settled ? "%jx.%jx.%jx.%jx" : "", (uintmax_t)st->st_dev,
	    (uintmax_t)st->st_ino, (uintmax_t)st->st_size, (uintmax_t)kit_mtime_ns(st));
}

static bool
is_unchanged(struct teams *t, const char *agent, const char *state)
{
	mr_auto(sys_close_fd) int dir_fd = -1;
	char file[TEAM_NAME_LEN], now[SCAN_STATE_LEN];
	struct stat st;

	teams_inbox_name(agent, file);
	if (!state[0] || teams_open_dir(t, t->inboxes, &dir_fd, IGNORED) != MR_OK || sys_stat(dir_fd, file, &st) < 0)
		return false;
	state_of(&st, now);
	return strcmp(now, state) == 0;
}

enum mr_rc
teams_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	mr_auto(inbox_unref) struct inbox *in = NULL;
	char path[TEAM_NAME_LEN + 16];

	if (!(want->folders & MR_INBOX) && (want->folders & MR_DEAD))
		return MR_OK; /* the room's own dead letters: there are none */
	if (want->state) {
		want->state->same = is_unchanged(teams_of(room), agent, want->state->text);
		if (want->state->same)
			return MR_OK;
	}
	TRY(load(room, agent, true, &in, err));
	if (want->state)
		state_of(&in->st, want->state->text);
	if (!(want->folders & MR_INBOX))
		return MR_OK;
	path_of(agent, path);
	static const char no_id[MR_ID_LEN + 1];
	struct mr_error why = { 0 };

	if (want->trouble && in->state == INBOX_TORN) {
		(void)inbox_corrupt(in, &why);
		want->trouble(want->trouble_ctx, path, &why);
	}
	for (size_t i = 0; want->trouble && i < in->n; i++)
		if (in->v[i].problem) {
			(void)mr_fail(&why, MR_CORRUPT,
			    "entry %zu of the inbox of '%s' %s\n"
			    "it is kept as it is; some versions of the original delete such entries",
			    i, in->agent, in->v[i].problem);
			want->trouble(want->trouble_ctx, path, &why);
		}
	if (want->ret_total)
		*want->ret_total = 0;
	for (size_t i = 0; want->ret_total && i < in->order_n; i++)
		*want->ret_total += !want->unread_only || !in->order[i]->seen;
	for (size_t i = 0, first, n; i < in->order_n; i++) {
		size_t at = want->order == SCAN_NEWEST ? in->order_n - 1 - i : i;

		if (want->glance && (want->depth == SCAN_NAMES || in->order[at]->plain)) { /* without an id */
			struct kit_message m = kit_message(no_id, MR_INBOX, in->order[at]->seen ? MR_SEEN : 0);

			m.msg.date_ms = in->order[at]->date_ms;
			if (!(want->unread_only && in->order[at]->seen) && !fn(ctx, &m.msg))
				break;
			continue;
		}
		int64_t ms = in->order[at]->date_ms;
		bool alone = (at == 0 || in->order[at - 1]->date_ms != ms) &&
			     (at + 1 == in->order_n || in->order[at + 1]->date_ms != ms);

		if (alone && want->unread_only && in->order[at]->seen)
			continue;
		if (!in->order[at]->id[0]) /* puts those of this moment in order, too */
			TRY(inbox_moment(in, at, &first, &n, err));
		const struct entry *e = in->order[at];
		mr_auto(mr_message_done) struct mr_message msg = { 0 };

		if ((want->unread_only && e->seen) || (want->id_suffix && !str_ends(str_of(e->id), want->id_suffix)))
			continue;
		TRY(show(in, e, want->depth, &msg, err));
		if (!fn(ctx, &msg))
			break;
	}
	return MR_OK;
}

enum mr_rc
teams_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	mr_auto(inbox_unref) struct inbox *in = NULL;
	struct kit_item item = { .folder = MR_INBOX };

	TRY(load(room, agent, true, &in, err));
	const struct entry *e = inbox_find(in, id);

	if (!e || (depth != SCAN_RAW && folders != 0 && !(folders & MR_INBOX)))
		return mr_fail(err, MR_NOTFOUND, "no message '%s' for '%s'", id, agent);
	if (depth != SCAN_RAW)
		return show(in, e, depth, ret, err);
	memcpy(item.id, e->id, sizeof item.id);
	return kit_raw(&item, e->raw, ret, err);
}

/* ---- Marks, and emptying an inbox ---- */

enum mr_rc
teams_mark(struct mr_room *room, const char *agent, const char *id, unsigned set, unsigned clear, enum mr_folder to,
    struct mr_error *err)
{
	struct teams *t = teams_of(room);
	mr_auto(inbox_unref) struct inbox *in = NULL;

	if (to)
		return room_lacks(room, "archive", err);
	TRY(inbox_load(t, agent, true, &in, err));
	struct entry *e = inbox_find(in, id);

	if (!e)
		return mr_fail(err, MR_NOTFOUND, "no message '%s' for '%s'", id, agent);
	bool seen = (set & MR_SEEN) || (e->seen && !(clear & MR_SEEN));

	if (seen == e->seen)
		return MR_OK;
	TRY(mr_got(array_grow(&t->marks, t->marks_n, &t->marks_cap, sizeof *t->marks), err));
	struct teams_mark *mark = &t->marks[t->marks_n++];

	(void)snprintf(mark->agent, sizeof mark->agent, "%s", agent);
	(void)snprintf(mark->id, sizeof mark->id, "%s", id);
	mark->seen = seen;
	e->seen = seen;
	return MR_OK;
}

/* Writes the marks of this handle, or with ret_removed empties the file. */
static enum mr_rc
change_locked(struct mr_room *room, const char *agent, struct team_lock *l, int dir_fd, const char *file,
    size_t *ret_removed, struct mr_error *err)
{
	const struct teams *t = teams_of(room);
	mr_auto(inbox_unref) struct inbox *in = inbox_new(agent);
	mr_auto(buf_done) struct buf text = BUF_INIT;
	bool changed = false;

	TRY(mr_got(in, err));
	TRY(store_read_locked(room, in, dir_fd, file, err));
	if (in->state == INBOX_MISSING)
		return MR_OK; /* gone meanwhile, with all that was in it */
	if (ret_removed) {
		*ret_removed = in->n;
		changed = !str_eq(buf_str(&in->text), STR("[]"));
		buf_adds(&text, "[]");
	} else {
		inbox_mark(t, in);
		TRY(edit_inbox(in, NULL, &text, &changed, err));
	}
	struct fresh f = { .file = file, .mode = in->st.st_mode & 0777, .bytes = buf_str(&text) };

	return changed ? store_replace(l, &f, err) : MR_OK;
}

/* A folder or a file that is not there is not made. */
static enum mr_rc
change_file(struct mr_room *room, const char *agent, size_t *ret_removed, struct mr_error *err)
{
	struct teams *t = teams_of(room);
	mr_auto(sys_close_fd) int dir_fd = -1;
	char file[TEAM_NAME_LEN];
	enum mr_rc rc = teams_open_dir(t, t->inboxes, &dir_fd, err);

	teams_inbox_name(agent, file);
	for (int i = 0; rc == MR_OK && i < CHANGE_TRIES; i++) {
		mr_auto(team_lock_done) struct team_lock l = TEAM_LOCK_INIT;

		rc = team_lock_take(&l, dir_fd, file, t->patience_ms, err);
		if (rc == MR_OK)
			rc = change_locked(room, agent, &l, dir_fd, file, ret_removed, err);
		if (team_lock_release(&l))
			break; /* else another may have written over it: once more */
	}
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	size_t kept = 0;

	for (size_t i = 0; i < t->marks_n; i++)
		if (strcmp(t->marks[i].agent, agent) != 0)
			t->marks[kept++] = t->marks[i];
	t->marks_n = kept;
	return MR_OK;
}

enum mr_rc
teams_flush(struct mr_room *room, struct mr_error *err)
{
	struct teams *t = teams_of(room);

	while (t->marks_n > 0) {
		char agent[MR_ADDRESS_MAX + 1];

		memcpy(agent, t->marks[0].agent, sizeof agent);
		TRY(change_file(room, agent, NULL, err));
	}
	return MR_OK;
}

enum mr_rc
teams_remove(struct mr_room *room, const struct removal *what, size_t *ret_removed, struct mr_error *err)
{
	size_t removed = 0;

	if (what->what != REMOVE_INBOX)
		return room_lacks(room, "way to remove mail", err);
	TRY(teams_find_agent(room, what->box, NULL, err));
	TRY(change_file(room, what->box, &removed, err));
	if (ret_removed)
		*ret_removed = removed;
	return MR_OK;
}

/* ---- One more entry ---- */

struct sending {
	struct mr_room *room;
	const struct delivery *what;
	struct letter letter;
	/* Of one inbox: */
	const char *agent;
	char file[TEAM_NAME_LEN];
	struct delivered *ret;
};

static void
tell(const struct sending *s)
{
	memcpy(s->ret->id, s->letter.id, sizeof s->ret->id);
	(void)snprintf(s->ret->native_id, sizeof s->ret->native_id, "%s", s->letter.msg_id);
}

static bool
bytes_are(int fd, off_t at, const char *want, size_t n)
{
	char got[16];

	return sys_pread(fd, got, n, at) == (ssize_t)n && memcmp(got, want, n) == 0;
}

/* The fast way: the file as it is but for its end, then *text. fresh->copied stays 0 where the file has another form.
 */
static enum mr_rc
add_fast(const struct sending *s, int fd, struct buf *text, struct fresh *fresh, struct mr_error *err)
{
	const size_t head = sizeof HEAD - 1, tail = sizeof TAIL - 1;
	char when[RFC3339_LEN + 1];
	struct stat st;

	if (fd < 0 || sys_stat_fd(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uintmax_t)st.st_size > INBOX_MAX ||
	    s->what->keep || st.st_size < (off_t)(head + tail) || !bytes_are(fd, 0, HEAD, head) ||
	    !bytes_are(fd, st.st_size - (off_t)tail, TAIL, tail))
		return MR_OK;
	/* Mail of the very same millisecond? Then only parsing tells whether it is the same mail. */
	size_t n = st.st_size < TIE_WINDOW ? (size_t)st.st_size : TIE_WINDOW;
	mr_auto(free_ptr) char *window = malloc(n);
	ssize_t got = window ? sys_pread(fd, window, n, st.st_size - (off_t)n) : 0;

	TRY(mr_got(window, err));
	if (got < 0)
		return mr_fail_errno(err, "cannot read '%s'", s->file);
	time_rfc3339(s->letter.date_ms, when);
	if (memmem(window, (size_t)got, when, strlen(when)))
		return MR_OK;
	buf_adds(text, ",\n");
	letter_add(&s->letter, text);
	buf_adds(text, "\n]");
	fresh->from_fd = fd;
	fresh->copied = (size_t)st.st_size - BRACKET;
	fresh->mode = st.st_mode & 0777;
	return MR_OK;
}

/* The careful way: *text is the whole file. Sender, time and text are what the original takes for the identity of a
 * message: no two may share it. And what was sent one after the other within a millisecond is read in that order. */
static enum mr_rc
add_slowly(struct sending *s, int dir_fd, struct buf *text, struct fresh *fresh, struct mr_error *err)
{
	mr_auto(inbox_unref) struct inbox *in = inbox_new(s->agent);
	struct letter *letter = &s->letter;
	bool changed = false;

	TRY(mr_got(in, err));
	TRY(store_read_locked(s->room, in, dir_fd, s->file, err));
	int64_t last_ms = in->n > 0 ? in->v[in->n - 1].date_ms : 0, ahead_ms = last_ms - letter->date_ms;

	if (!s->what->keep && ahead_ms >= 0 && ahead_ms < SAME_MOMENT_MS)
		letter_date(letter, last_ms + 1);
	while (inbox_find(in, letter->id)) {
		if (s->what->keep)
			return mr_fail(err, MR_EXISTS, "'%s' already has that message", s->agent);
		letter_date(letter, letter->date_ms + 1);
	}
	fresh->mode = in->state == INBOX_MISSING ? 0600 : in->st.st_mode & 0777;
	return edit_inbox(in, letter, text, &changed, err);
}

static enum mr_rc
add_locked(struct sending *s, struct team_lock *l, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = sys_open(l->dir_fd, s->file, O_RDONLY | O_NONBLOCK, 0);
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct fresh fresh = { .file = s->file, .staged = s->what->staged ? s->what : NULL };

	TRY(add_fast(s, fd, &text, &fresh, err));
	if (fresh.copied == 0)
		TRY(add_slowly(s, l->dir_fd, &text, &fresh, err));
	TRY(mr_got(buf_ok(&text), err));
	fresh.bytes = buf_str(&text);
	if (fresh.copied + text.len > INBOX_MAX)
		return mr_fail(err, MR_REFUSED, "the inbox of '%s' is full: %zu MB\nits reader must empty it first",
		    s->agent, INBOX_MAX / 1000000);
	tell(s);
	return store_replace(l, &fresh, err);
}

static enum mr_rc
try_append(struct sending *s, bool *ret_lost, struct mr_error *err)
{
	struct teams *t = teams_of(s->room);
	mr_auto(sys_close_fd) int dir_fd = -1;
	mr_auto(team_lock_done) struct team_lock l = TEAM_LOCK_INIT;
	/* The next write of one handle keeps away for a while: a client of the original tries only 11 times in 0.7 s.
	 */
	int64_t past_ms = clock_boot_ms() - t->last_ms;
	int64_t away_ms = s->what->keep ? team_random(4, 9) : team_random(20, 50);

	if (strcmp(t->last, s->file) == 0 && past_ms < away_ms)
		lock_pause_us((unsigned)(away_ms - past_ms) * 1000);
	enum mr_rc rc = teams_make_inboxes(t, &dir_fd, err);

	if (rc == MR_OK)
		rc = team_lock_take(&l, dir_fd, s->file, t->patience_ms, err);
	if (rc == MR_OK)
		rc = add_locked(s, &l, err);
	bool taken = l.kernel_fd >= 0;

	*ret_lost = !team_lock_release(&l) && taken;
	memcpy(t->last, s->file, sizeof t->last);
	t->last_ms = clock_boot_ms();
	return rc;
}

static enum mr_rc
append(struct sending *s, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	for (int i = 0; i < SEND_TRIES; i++) {
		mr_auto(inbox_unref) struct inbox *in = NULL;
		struct mr_error why = { 0 };
		bool lost = false;

		rc = try_append(s, &lost, err);
		if (rc == MR_NOTFOUND && i + 1 < SEND_TRIES)
			continue;              /* the team's folder was removed and is made anew */
		if (!lost || rc == MR_INDOUBT) /* in doubt it is visible: a second try would double it */
			return rc;
		if (rc != MR_OK)
			continue;
		/* The lock was taken from us while we wrote: is our entry there? If the file cannot be read nobody
		 * knows, and a second try could double it. */
		if (inbox_load(teams_of(s->room), s->agent, false, &in, &why) != MR_OK) {
			(void)mr_fail(err, MR_INDOUBT,
			    "the lock of the inbox of '%s' was lost, and it cannot be read back: %s\n"
			    "see whether the message is there before sending it again",
			    s->agent, why.message);
			err->sys_errno = why.sys_errno;
			return err->code;
		}
		if (in->n == 0 || inbox_find(in, s->letter.id)) /* an empty one was read and emptied by its owner */
			return MR_OK;
	}
	TRY(rc);
	return mr_fail(err, MR_INDOUBT,
	    "the inbox of '%s' was written over by a program that keeps no lock\n"
	    "see whether the message is there before sending it again",
	    s->agent);
}

static enum mr_rc
send_one(void *sending, const char *agent, struct delivered *ret, struct mr_error *err)
{
	struct sending *s = sending;

	s->agent = agent;
	s->ret = ret;
	teams_inbox_name(agent, s->file);
	enum mr_rc rc = append(s, err);

	tell(s);
	return rc;
}

enum mr_rc
teams_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	struct sending s = { .room = room, .what = what };

	TRY(teams_check_recipients(room, what->to, what->make_mailboxes, err));
	enum mr_rc rc = letter_make(&s.letter, what, err);

	if (rc == MR_OK)
		rc = kit_deliver(what, send_one, &s, ret, err);
	letter_done(&s.letter);
	return rc;
}

unsigned
teams_unsupported(struct mr_room *room, const struct mr_message *msg)
{
	static const char *const known[] = { "Color", NULL };
	mr_auto(buf_done) struct buf type = BUF_INIT;
	unsigned fields = kit_fields(msg, known);

	(void)room;
	if (msg->type && entry_control_type(kit_text(msg), &type) && strcmp(msg->type, buf_z(&type)) == 0)
		fields &= ~(unsigned)FIELD_TYPE;
	return fields;
}
