/* SPDX-License-Identifier: MIT */
/* config.c - one file of the user's configuration: reading it, asking it, changing it. See config.h. */
#include "office/rules/config.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include <errno.h>
#include <fcntl.h>

#define FOLDER "rooms"
#define CONFIG_MAX ((size_t)1 << 20)
#define LOCK_WAIT_MS 5000

/* ---- One file ---- */

/* What names the room's file: its identity, checked because it becomes a file name, or the hash of its spec. */
bool
config_file_of(const struct mr_room *room, char ret[ROOM_IDENTITY_LEN + 1])
{
	char hash[65];

	if (room->place[0]) {
		memcpy(ret, room->identity, ROOM_IDENTITY_LEN + 1);
		return strlen(ret) == ROOM_IDENTITY_LEN && strspn(ret, "0123456789abcdef") == ROOM_IDENTITY_LEN;
	}
	sha256_hex(str_of(room->spec), hash);
	memcpy(ret, hash, ROOM_IDENTITY_LEN);
	ret[ROOM_IDENTITY_LEN] = '\0';
	return true;
}

/* Only a file of this user's that nobody else can write says anything. MR_NOTFOUND: none. */
enum mr_rc
config_read_file(int folder, const char *path, struct record *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = sys_open(folder, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return mr_fail(err, MR_NOTFOUND, "there is no configuration '%s'", path);
	if (fd < 0 || sys_stat_fd(fd, &st) < 0)
		return mr_fail_errno(err, "cannot read the configuration '%s'", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != sys_euid() || (st.st_mode & 022)) {
		return mr_fail(err, MR_REFUSED,
		    "the configuration '%s' is not a file that this user alone can write\nlook at it; chmod 600 if it is yours",
		    path);
	}
	if (file_read_sized(fd, st.st_size, CONFIG_MAX, &text, err) != MR_OK ||
	    record_parse(buf_str(&text), ret, err) != MR_OK)
		return mr_wrap(err, "configuration '%s'", path);
	return MR_OK;
}

static bool
line_is(const struct record *lines, const char *name, const char *value)
{
	const char *have = record_get(lines, name);

	return strcmp(have ? have : "", value) == 0;
}

bool
config_fits(const struct record *lines, const struct mr_room *room)
{
	return line_is(lines, "Room", room->spec) && line_is(lines, "Place", room->place) &&
	       line_is(lines, "Identity", room->identity);
}

static void
config_forget(struct mr_room *room)
{
	free(room->user->dir);
	free(room->user->paths);
	record_done(&room->user->lines);
	free(room->user);
	room->user = NULL;
}

enum mr_rc
config_attach(struct mr_room *room, const struct mr_room_options *options, struct mr_error *err)
{
	struct user_config *u = calloc(1, sizeof(*u));

	if (!u)
		return mr_nomem(err);
	room->user = u;
	room->forget_user = config_forget;
	u->found = options->found;
	u->dir = options->config_dir ? strdup(options->config_dir) : NULL;
	u->paths = options->trust_paths ? strdup(options->trust_paths) : NULL;
	if ((options->config_dir && !u->dir) || (options->trust_paths && !u->paths))
		return mr_nomem(err);
	return MR_OK;
}

/* What is wrong with the file is told by the doctor and by whoever changes it; until then it allows nothing. */
const struct record *
config_lines(struct mr_room *room)
{
	static const struct record none = { 0 };
	struct user_config *u = room->user;
	mr_auto(buf_done) struct buf path = BUF_INIT;
	struct mr_error ignored = { 0 };
	char name[ROOM_IDENTITY_LEN + 1];

	if (!u || !u->dir || u->read || !config_file_of(room, name))
		return u ? &u->lines : &none;
	u->read = true;
	buf_adds(&path, u->dir);
	buf_adds(&path, "/" FOLDER "/");
	buf_adds(&path, name);
	if (buf_ok(&path) && config_read_file(AT_FDCWD, buf_z(&path), &u->lines, &ignored) == MR_OK &&
	    !config_fits(&u->lines, room)) {
		u->elsewhere = true;
		record_done(&u->lines);
	}
	return &u->lines;
}

const char *
config_get(struct mr_room *room, const char *name)
{
	const char *value = record_get(config_lines(room), name);

	return value && *value ? value : NULL;
}

const char *
config_get_of(struct mr_room *room, const char *prefix, const char *rest)
{
	char name[CONFIG_NAME_MAX + 1];

	if ((size_t)snprintf(name, sizeof(name), "%s%s", prefix, rest) >= sizeof(name))
		return NULL;
	return config_get(room, name);
}

bool
config_has(struct mr_room *room, const char *name, const char *value)
{
	const struct record *lines = config_lines(room);

	for (size_t i = 0; i < lines->n; i++)
		if (ascii_caseeq(lines->lines[i].name, name) && strcmp(lines->lines[i].value, value) == 0)
			return true;
	return false;
}

const char *
mr_config_get(struct mr_room *room, const char *name)
{
	return config_get(room, name);
}

enum mr_rc
mr_config_each(struct mr_room *room, mr_config_fn *fn, void *ctx, struct mr_error *err)
{
	const struct record *lines = config_lines(room);

	(void)err;
	for (size_t i = 0; i < lines->n; i++) {
		if (config_is_setting(lines->lines[i].name) && !fn(ctx, lines->lines[i].name, lines->lines[i].value))
			break;
	}
	return MR_OK;
}

/* ---- Changing it ---- */

enum mr_rc
config_folder(const char *config_dir, bool make, int *ret_fd, struct mr_error *err)
{
	if (!config_dir)
		return mr_fail(err, MR_NOTFOUND, "there is no configuration folder\nset HOME or XDG_CONFIG_HOME");
	return dir_below(config_dir, FOLDER, make, true, ret_fd, err);
}

static enum mr_rc
lock_folder(const char *config_dir, int *ret_folder, int *ret_lock, struct mr_error *err)
{
	enum mr_rc rc = config_folder(config_dir, true, ret_folder, err);

	if (rc == MR_OK)
		rc = lock_take(*ret_folder, ".lock", 0600, LOCK_WAIT_MS, ret_lock, err);
	return rc == MR_OK ? MR_OK : mr_wrap(err, "cannot change the configuration in '%.120s'", config_dir);
}

static enum mr_rc
add_head(struct buf *out, const char *spec, const char *place, const char *identity, struct mr_error *err)
{
	if (header_add(out, "Room", str_of(spec), err) != MR_OK ||
	    (*place && header_add(out, "Place", str_of(place), err) != MR_OK) ||
	    (*identity && header_add(out, "Identity", str_of(identity), err) != MR_OK))
		return err->code;
	return MR_OK;
}

static enum mr_rc
add_trusted(struct buf *out, const char *how, struct mr_error *err)
{
	mr_auto(buf_done) struct buf value = BUF_INIT;
	char now[RFC3339_LEN + 1];

	time_rfc3339(clock_now_ms(), now);
	buf_addf(&value, "%s %s", now, how);
	return header_add(out, "Trusted", buf_str(&value), err);
}

enum mr_rc
config_note_made(
    const char *config_dir, const char *spec, const char *place, const char *identity, struct mr_error *err)
{
	mr_auto(sys_close_fd) int folder = -1, lock = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;

	TRY(lock_folder(config_dir, &folder, &lock, err));
	TRY(add_head(&text, spec, place, identity, err));
	TRY(add_trusted(&text, "init", err));
	return buf_ok(&text) ? file_replace(folder, identity, buf_str(&text), 0600, err) : mr_nomem(err);
}

/* The file as it shall be: head, trust, then the lines that stay, then the new one. */
static enum mr_rc
compose(const struct mr_room *room, const struct record *old, const struct config_change *c, struct buf *out,
    bool *ret_removed, struct mr_error *err)
{
	const char *trusted = record_get(old, "Trusted");
	enum mr_rc rc = add_head(out, room->spec, room->place, room->identity, err);

	if (rc == MR_OK && c->trusted)
		rc = add_trusted(out, c->trusted, err);
	else if (rc == MR_OK && trusted)
		rc = header_add(out, "Trusted", str_of(trusted), err);
	const struct mr_header *kept = c->all ? c->all : old->lines;
	size_t kept_n = c->all ? c->all_n : old->n;

	for (size_t i = 0; i < kept_n && rc == MR_OK; i++) {
		bool same = c->name && ascii_caseeq(kept[i].name, c->name);

		*ret_removed |= same && !c->add;
		if (config_is_head(kept[i].name) || (same && (!c->add || strcmp(kept[i].value, c->value) == 0)))
			continue;
		rc = header_add(out, kept[i].name, str_of(kept[i].value), err);
	}
	if (rc == MR_OK && c->name && c->value)
		rc = header_add(out, c->name, str_of(c->value), err);
	return rc == MR_OK && !buf_ok(out) ? mr_nomem(err) : rc;
}

enum mr_rc
config_change(struct mr_room *room, const struct config_change *c, struct mr_error *err)
{
	mr_auto(sys_close_fd) int folder = -1, lock = -1;
	mr_auto(record_done) struct record old = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char name[ROOM_IDENTITY_LEN + 1];
	bool removed = false;
	enum mr_rc rc;

	if (!config_file_of(room, name))
		return mr_fail(err, MR_REFUSED,
		    "room '%.160s' has no identity yet\nmailroom trust '%.160s' gives it one",
		    config_path_of(room->spec), config_path_of(room->spec));
	rc = lock_folder(room->user ? room->user->dir : NULL, &folder, &lock, err);
	if (rc != MR_OK)
		return rc;
	rc = config_read_file(folder, name, &old, err);
	if (rc == MR_NOTFOUND)
		rc = MR_OK;
	if (rc == MR_OK && old.n > 0 && !c->moved && !config_fits(&old, room)) {
		if (config_room_is_there(&old))
			return mr_fail(err, MR_REFUSED,
			    "room '%.100s' is a copy of '%.100s' and has its identity\nmailroom trust '%.160s' gives it one of its own",
			    config_path_of(room->spec), config_path_of(record_get(&old, "Room")),
			    config_path_of(room->spec));
		record_done(&old);
	}
	if (rc == MR_OK)
		rc = compose(room, &old, c, &text, &removed, err);
	if (rc == MR_OK && c->name && !c->value && !removed)
		return mr_fail(err, MR_NOTFOUND, "there is no setting '%s' for this room", c->name);
	if (rc == MR_OK)
		rc = file_replace(folder, name, buf_str(&text), 0600, err);
	record_done(&room->user->lines);
	room->user->read = room->user->elsewhere = false;
	return rc;
}

enum mr_rc
mr_config_set(struct mr_room *room, const char *name, const char *value, bool add, struct mr_error *err)
{
	struct config_change c = { .name = name, .value = value, .add = add };

	TRY(mr_config_check(name, value, err));
	return config_change(room, &c, err);
}

enum mr_rc
mr_config_replace(struct mr_room *room, const struct mr_header *lines, size_t n, struct mr_error *err)
{
	static const struct mr_header none = { 0 };
	enum mr_rc rc = MR_OK;

	for (size_t i = 0; i < n && rc == MR_OK; i++)
		rc = mr_config_check(lines[i].name, lines[i].value, err);
	return rc == MR_OK
		   ? config_change(room, &(struct config_change){ .all = lines ? lines : &none, .all_n = n }, err)
		   : rc;
}
