/* SPDX-License-Identifier: MIT */
/* office.c - shared questions about a room: what it can do, whether self may act; and the wait loop. */
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/id.h"
#include "message/address.h"
#include "office/office.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#define WATCHED_MS 2000 /* beside a watch: expired leases and dead holders raise no event */
#define BLIND_FIRST_MS 20
#define BLIND_MAX_MS 250

/* ---- What a room can do ---- */

bool
office_note_id(void *names, const struct mr_message *msg)
{
	return names_add(names, str_of(msg->id));
}

enum mr_rc
office_flush(struct mr_room *room, struct mr_error *err)
{
	return room->driver->flush(room, err);
}

const char *
mr_spec_agent_variable(const char *spec)
{
	struct mr_str kind = { 0 }, where;
	const struct room_driver *driver = str_split(str_of(spec), ':', &kind, &where) ? room_driver_named(kind) : NULL;

	return driver ? driver->agent_variable : NULL;
}

const char *
mr_room_lead(const struct mr_room *room)
{
	return room->driver->lead;
}

void
office_name(const struct mr_room *room, const char *address, struct buf *out)
{
	if (office_has_lives(room))
		buf_adds(out, address);
	else
		foreign_from_address(address, out);
}

bool
office_shares_room(const struct mr_room *room)
{
	const char *share = mr_room_setting(room, "Share");

	return share && ascii_caseeq(share, "group");
}

unsigned
office_folders(const struct mr_room *room, unsigned folders)
{
	unsigned abilities = room->driver->abilities;

	if (!(abilities & ROOM_HOLDS))
		folders &= ~(unsigned)MR_HELD;
	if (!(abilities & ROOM_SENT))
		folders &= ~(unsigned)MR_SENT;
	if (!(room->driver->abilities & ROOM_DEAD))
		folders &= ~(unsigned)MR_DEAD;
	return folders;
}

enum mr_rc
mr_room_folders(const struct mr_room *room, unsigned folders, struct mr_error *err)
{
	bool only_archive = folders == MR_ARCHIVE && !(room->driver->abilities & ROOM_ARCHIVE);

	if (office_folders(room, folders) != 0 && !only_archive)
		return MR_OK;
	return room_lacks(room,
	    folders & MR_SENT   ? "copies of sent mail"
	    : folders & MR_DEAD ? "dead letters"
	    : only_archive      ? "archive"
				: "claims on mail",
	    err);
}

enum mr_rc
office_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	struct scan_request there = *want;
	enum mr_rc rc;

	there.folders = office_folders(room, want->folders);
	if (there.folders == 0)
		return MR_OK;
	rc = room->driver->scan(room, agent, &there, fn, ctx, err);
	return room->driver->abilities & ROOM_OPEN_BOXES ? mr_unless(rc, MR_NOTFOUND, err) : rc;
}

static bool
note_agent(void *ctx, const struct mr_agent *agent)
{
	return names_add(ctx, str_of(agent->name));
}

enum mr_rc
office_agents(struct mr_room *room, struct mr_names *ret, struct mr_error *err)
{
	return room->driver->each_agent(room, true, note_agent, ret, err);
}

static void
note_place(void *ctx, const struct place_of *place)
{
	struct place_of *kept = roll_add(ctx, sizeof(*kept));

	if (!kept)
		return;
	*kept = *place;
	kept->agent = roll_str(ctx, place->agent);
	kept->state = roll_str(ctx, place->state);
	kept->evidence = roll_str(ctx, place->evidence);
}

enum mr_rc
office_places(struct mr_room *room, const char *id, struct places *ret, struct mr_error *err)
{
	mr_auto(roll_done) struct roll r = { 0 };

	TRY(room->driver->each_place(room, id, note_place, &r, err));
	return mr_got(roll_give(&r, ret), err);
}

enum mr_rc
office_state(const struct mr_room *room, const char *name, bool make, int *ret_fd, struct mr_error *err)
{
	if (!room->state_dir)
		return mr_fail(err, MR_NOTFOUND, "there is no state folder\nset HOME or XDG_STATE_HOME");
	return dir_below(room->state_dir, name, make, true, ret_fd, err);
}

enum mr_rc
office_own_file(int folder, const char *path, const char *what, size_t max, struct record *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = sys_open(folder, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	char first[1000];
	mr_auto(buf_done) struct buf text = BUF_IN(first);
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return mr_fail(err, MR_NOTFOUND, "there is no %s '%s'", what, path);
	if (fd < 0 || sys_stat_fd(fd, &st) < 0)
		return mr_fail_errno(err, "cannot read the %s '%s'", what, path);
	if (!S_ISREG(st.st_mode) || st.st_uid != sys_euid() || (st.st_mode & 022))
		return mr_fail(err, MR_REFUSED,
		    "the %s '%s' is not a file that this user alone can write\nlook at it; chmod 600 if it is yours",
		    what, path);
	if (file_read_sized(fd, st.st_size, max, &text, err) != MR_OK ||
	    record_parse(buf_str(&text), ret, err) != MR_OK)
		return mr_wrap(err, "%s '%s'", what, path);
	return MR_OK;
}

/* The verbs of the program whose format the room has, passed to the driver. */
enum mr_rc
mr_room_face(struct mr_room *room, const char *verb, const char *const *args, const char *input, size_t input_len,
    char **ret, size_t *ret_len, struct mr_error *err)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	if (!ROOM_FACE_HAS(room, run))
		return room_lacks(room, "verbs of another program", err);
	TRY(room->driver->face->run(room, verb, args, (struct mr_str){ input, input_len }, &out, err));
	*ret_len = out.len;
	if (out.len == 0)
		buf_addc(&out, '\0');
	*ret = buf_take(&out);
	return *ret ? MR_OK : mr_nomem(err);
}

/* ---- Records of the room ---- */

static bool
note_name(void *ctx, const char *name)
{
	return names_add(ctx, str_of(name));
}

enum mr_rc
office_records(struct mr_room *room, const char *kind, const char *owner, struct mr_names *ret, struct mr_error *err)
{
	return room->driver->record_each(room, kind, owner, note_name, ret, err);
}

void
office_drop_records(struct mr_room *room, const char *kind, const char *owner)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	(void)office_records(room, kind, owner, &names, IGNORED);
	for (size_t i = 0; i < names.n; i++)
		(void)room->driver->record_drop(room, kind, owner, names.v[i], IGNORED);
	(void)room->driver->record_drop(room, kind, owner, "", IGNORED);
}

enum mr_rc
office_record(struct mr_room *room, const char *kind, const char *owner, const char *name, struct record *ret,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	TRY(room->driver->record_get(room, kind, owner, name, &text, err));
	return record_parse(buf_str(&text), ret, err);
}

/* ---- May this self act ---- */

enum mr_rc
office_not_fenced(struct mr_room *room, const struct mr_self *self, struct mr_error *err)
{
	if (self->life == 0 || !ROOM_HAS(room, check_life))
		return MR_OK;
	return room->driver->check_life(room, self->agent, self->life, NULL, NULL, err);
}

/* ---- Waiting ---- */

struct waiter
waiter_begin(struct mr_room *room, const char *whom, int64_t timeout_ms)
{
	struct waiter w = { .room = room, .pause_ms = BLIND_FIRST_MS, .endless = timeout_ms < 0 };

	w.deadline_ms = w.endless ? 0 : clock_boot_ms() + timeout_ms;
	if (!whom || timeout_ms == 0)
		return w;
	w.box = *whom && !strchr(whom, ':') ? whom : NULL;
	if (room->watch && strcmp(room->watched, whom) == 0) {
		w.watch = room->watch;
		room->watch = NULL;
		return w;
	}
	room_forget_watch(room);
	/* Many agents can use up the watches: then the poll must do. */
	if (room->driver->watch(room, whom, &w.watch, IGNORED) != MR_OK)
		w.watch = NULL;
	return w;
}

bool
waiter_pause(struct waiter *w)
{
	int64_t rest_ms = w->endless ? INT64_MAX : w->deadline_ms - clock_boot_ms();
	int64_t ms = w->watch ? WATCHED_MS : w->pause_ms;

	if (rest_ms <= 0)
		return false;
	ms = rest_ms < ms ? rest_ms : ms;
	if (w->watch) {
		w->same = !w->room->driver->watch_wait(w->room, w->watch, ms);
		return true;
	}
	(void)poll(NULL, 0, (int)ms);
	w->pause_ms = 2 * w->pause_ms < BLIND_MAX_MS ? 2 * w->pause_ms : BLIND_MAX_MS;
	return true;
}

void
waiter_end(struct waiter *w)
{
	struct mr_room *room = w->room;

	if (!w->watch)
		return;
	/* Only the watch of a mailbox is reusable: a queue gets new folders. */
	if (!w->box) {
		room->driver->watch_close(room, w->watch);
	} else {
		room_forget_watch(room); /* of a nested wait */
		room->watch = w->watch;
		(void)snprintf(room->watched, sizeof room->watched, "%s", w->box);
	}
	w->watch = NULL;
}
