/* SPDX-License-Identifier: MIT */
/* config.c - see config.h. */
#include "office/config.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "message/address.h"
#include "office/patrol.h"
#include "office/who.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define FOLDER "rooms"
#define CONFIG_MAX ((size_t)1 << 20)
#define LOCK_WAIT_MS 5000
#define NAME_MAX_BYTES 76 /* of a header line */

/* ---- Names and values ---- */

enum value_kind { COMMAND, SPEC, PAIR, YES_NO, FIXED };
static const struct known {
	const char *name; /* one that ends in "-" is the beginning of a name */
	enum value_kind kind;
} known[] = {
	{ "Notify", COMMAND },
	{ "Sling", COMMAND },
	{ "Bead-Status", COMMAND },
	{ "Handler-", COMMAND },
	{ "Wake-", COMMAND },
	{ "Link-", SPEC },
	{ "Adopt-", PAIR },
	{ "Session-Handlers", YES_NO },
	{ "Nudge-On-Send", YES_NO },
	{ "Room", FIXED },
	{ "Place", FIXED },
	{ "Identity", FIXED },
	{ "Trusted", FIXED },
};
#define KNOWN_N (sizeof(known) / sizeof(known[0]))

static const struct known *
known_as(const char *name)
{
	for (size_t i = 0; i < KNOWN_N; i++) {
		size_t n = strlen(known[i].name);

		if (known[i].name[n - 1] == '-'
			? strlen(name) > n && str_caseeq((struct mr_str){ name, n }, str_of(known[i].name))
			: ascii_caseeq(known[i].name, name))
			return &known[i];
	}
	return NULL;
}

/* Programs that take a program as an argument. */
static bool
is_interpreter(const char *word)
{
	static const char *const names[] = { "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "csh", "tcsh",
		"eval", "perl", "ruby", "node", "awk", "gawk", "mawk", "php", "lua", "tclsh", "expect", "ssh", "su",
		NULL };
	const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;

	for (size_t i = 0; names[i]; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return str_starts(str_of(name), "python");
}

/* The last word that an interpreter at `from` reads as program text: its script, or what follows -c or -e. */
static size_t
program_end(const struct mr_names *words, size_t from)
{
	size_t end = from;

	if (str_ends(str_of(words->v[from]), "ssh")) /* all that follows is a command line over there */
		return words->n;
	for (size_t i = from + 1; i < words->n && end == from; i++)
		end = words->v[i][0] == '-' ? end : i;
	for (size_t i = from + 1; i < words->n; i++)
		if (words->v[i][0] == '-' && strpbrk(words->v[i], "ce") && i + 1 > end)
			end = i + 1;
	return end;
}

static enum mr_rc
refuse_program_text(const char *open, const char *close, struct mr_error *err)
{
	mr_auto(buf_done) struct buf field = BUF_INIT, variable = BUF_INIT;

	buf_add(&field, (struct mr_str){ open + 1, (size_t)(close - open - 1) });
	type_variable(&variable, buf_z(&field));
	(void)mr_fail(err, MR_REFUSED, "the command would run {%.40s} of a message as program text", buf_z(&field));
	return mr_hint(
	    err, "write \"$%.80s\" in its place: the field is in that environment variable", buf_z(&variable));
}

enum mr_rc
config_check_command(const char *command, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names words = split_command(command, err);
	size_t end = 0;

	if (words.n == 0)
		return err->code;
	for (size_t i = 0; i < words.n; i++) {
		const char *open = strchr(words.v[i], '{'), *close = open ? strchr(open, '}') : NULL;

		if (end > 0 && i <= end && close && close > open + 1)
			return refuse_program_text(open, close, err);
		if (is_interpreter(words.v[i]))
			end = program_end(&words, i);
	}
	return MR_OK;
}

static enum mr_rc
check_pair(const char *value, struct mr_error *err)
{
	const char *space = strchr(value, ' ');
	mr_auto(free_ptr) char *local = space ? strndup(value, (size_t)(space - value)) : NULL;

	if (local && *local && space[1] && !strchr(space + 1, ' '))
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "'%.80s' is not 'LOCAL FOREIGN': an agent here and a mailbox there", value);
}

enum mr_rc
mr_config_check(const char *name, const char *value, struct mr_error *err)
{
	const struct known *k = known_as(name);

	if (!k || k->kind == FIXED) {
		(void)mr_fail(err, MR_REFUSED,
		    k ? "'%.60s' is set by `mailroom trust`, not by hand" : "the configuration has no setting '%.60s'",
		    name);
		return mr_hint(err,
		    "there are Notify, Handler-NAME, Wake-AGENT, Link-NAME, Adopt-LINK, Sling, Bead-Status, "
		    "Nudge-On-Send and Session-Handlers: man 5 mailroom-config");
	}
	if (strlen(name) > NAME_MAX_BYTES)
		return mr_fail(err, MR_REFUSED, "the name of a setting has at most %d characters", NAME_MAX_BYTES);
	if (!header_name_valid(str_of(name)))
		return mr_fail(err, MR_REFUSED, "'%.60s' cannot be the name of a setting", name);
	if (!value)
		return MR_OK;
	if (header_value_problem(str_of(value)))
		return mr_fail(err, MR_REFUSED, "the value of '%s' %s", name, header_value_problem(str_of(value)));
	if (k->kind == COMMAND)
		return config_check_command(value, err) == MR_OK ? MR_OK : mr_wrap(err, "'%s'", name);
	if (k->kind == PAIR)
		return check_pair(value, err);
	if (k->kind == SPEC && !strchr(value, ':'))
		return mr_fail(err, MR_REFUSED, "'%.80s' is no room: KIND:WHERE", value);
	if (k->kind == YES_NO && !ascii_caseeq(value, "yes") && !ascii_caseeq(value, "no"))
		return mr_fail(err, MR_REFUSED, "'%s' is 'yes' or 'no', not '%.60s'", name, value);
	return MR_OK;
}

/* ---- One file ---- */

/* What names the room's file: its identity, checked because it becomes a file name, or the hash of its spec. */
static bool
file_of(const struct mr_room *room, char ret[ROOM_IDENTITY_LEN + 1])
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
static enum mr_rc
read_file(int folder, const char *path, struct record *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = sys_open(folder, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return mr_fail(err, MR_NOTFOUND, "there is no configuration '%s'", path);
	if (fd < 0 || sys_stat_fd(fd, &st) < 0)
		return mr_fail_errno(err, "cannot read the configuration '%s'", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != sys_euid() || (st.st_mode & 022)) {
		(void)mr_fail(
		    err, MR_REFUSED, "the configuration '%s' is not a file that this user alone can write", path);
		return mr_hint(err, "look at it; chmod 600 if it is yours");
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

static bool
is_about(const struct record *lines, const struct mr_room *room)
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
static const struct record *
lines_of(struct mr_room *room)
{
	static const struct record none = { 0 };
	struct user_config *u = room->user;
	mr_auto(buf_done) struct buf path = BUF_INIT;
	struct mr_error ignored = { 0 };
	char name[ROOM_IDENTITY_LEN + 1];

	if (!u || !u->dir || u->read || !file_of(room, name))
		return u ? &u->lines : &none;
	u->read = true;
	buf_adds(&path, u->dir);
	buf_adds(&path, "/" FOLDER "/");
	buf_adds(&path, name);
	if (buf_ok(&path) && read_file(AT_FDCWD, buf_z(&path), &u->lines, &ignored) == MR_OK &&
	    !is_about(&u->lines, room)) {
		u->elsewhere = true;
		record_done(&u->lines);
	}
	return &u->lines;
}

const char *
config_get(struct mr_room *room, const char *name)
{
	const char *value = record_get(lines_of(room), name);

	return value && *value ? value : NULL;
}

const char *
config_get_of(struct mr_room *room, const char *prefix, const char *rest)
{
	char name[NAME_MAX_BYTES + 1];

	if ((size_t)snprintf(name, sizeof(name), "%s%s", prefix, rest) >= sizeof(name))
		return NULL;
	return config_get(room, name);
}

bool
config_has(struct mr_room *room, const char *name, const char *value)
{
	const struct record *lines = lines_of(room);

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
	const struct record *lines = lines_of(room);

	(void)err;
	for (size_t i = 0; i < lines->n; i++) {
		const struct known *k = known_as(lines->lines[i].name);

		if (k && k->kind != FIXED && !fn(ctx, lines->lines[i].name, lines->lines[i].value))
			break;
	}
	return MR_OK;
}

/* ---- Trust ---- */

const char *
mr_trust_word(enum mr_trust trust)
{
	static const char *const words[] = {
		[MR_TRUST_NONE] = "not trusted",
		[MR_TRUST_NAMED] = "named explicitly",
		[MR_TRUST_VARIABLE] = "$MAILROOM_TRUST",
		[MR_TRUST_USER] = "mailroom trust",
		[MR_TRUST_INIT] = "mailroom init",
	};

	return words[trust];
}

/* The line "TIME init" or "TIME trust". */
static enum mr_trust
read_trusted(const struct record *lines, int64_t *ret_since_ms)
{
	const char *line = record_get(lines, "Trusted"), *space = line ? strchr(line, ' ') : NULL;

	if (!space)
		return MR_TRUST_NONE;
	(void)time_parse_rfc3339((struct mr_str){ line, (size_t)(space - line) }, ret_since_ms);
	return strcmp(space + 1, "init") == 0 ? MR_TRUST_INIT : MR_TRUST_USER;
}

/* The room's own path, or that of the folder around it. */
static bool
is_in_paths(const char *paths, const char *room_path)
{
	mr_auto(free_ptr) char *home = path_parent(room_path);

	for (const char *p = paths; p && *p && home;) {
		struct mr_str one = { p, strcspn(p, ":") };

		while (one.len > 1 && one.ptr[one.len - 1] == '/')
			one.len--;
		if (str_eq(one, str_of(room_path)) || str_eq(one, str_of(home)))
			return true;
		p += strcspn(p, ":");
		p += *p ? 1 : 0;
	}
	return false;
}

static const char *
path_of(const char *spec)
{
	return str_starts(str_of(spec), "maildir:") ? spec + strlen("maildir:") : spec;
}

enum mr_trust
mr_room_trust(struct mr_room *room, int64_t *ret_since_ms)
{
	enum mr_trust by;

	*ret_since_ms = 0;
	by = read_trusted(lines_of(room), ret_since_ms);
	if (by != MR_TRUST_NONE)
		return by;
	if (room->user && is_in_paths(room->user->paths, path_of(room->spec)))
		return MR_TRUST_VARIABLE;
	return room->user && room->user->found ? MR_TRUST_NONE : MR_TRUST_NAMED;
}

static const char *
reason(struct mr_room *room)
{
	const char *path = path_of(room->spec);
	struct stat st;

	if (sys_stat(AT_FDCWD, path, &st) == 0 && S_ISLNK(st.st_mode))
		return "it is a symbolic link to another folder";
	if (room->user->elsewhere)
		return "it is not the folder that was trusted: it was copied, moved, replaced or mounted anew";
	if (!room->user->dir)
		return "there is no configuration folder ($XDG_CONFIG_HOME, $HOME) that could say so";
	if (!room->identity[0])
		return "it was made by an earlier mailroom, or came with a folder from elsewhere";
	return "you did not make it on this machine, and have not trusted it";
}

enum mr_rc
config_trusts(struct mr_room *room, struct mr_error *err)
{
	int64_t since_ms;

	if (!room->user->found || mr_room_trust(room, &since_ms) != MR_TRUST_NONE)
		return MR_OK;
	(void)mr_fail(err, MR_UNTRUSTED, "room '%.200s' is not trusted: %s", path_of(room->spec), reason(room));
	return mr_hint(err, "if it is yours, type in a terminal: mailroom trust '%.140s'", path_of(room->spec));
}

/* ---- Changing it ---- */

static enum mr_rc
open_folder(const char *config_dir, bool make, int *ret_fd, struct mr_error *err)
{
	if (!config_dir) {
		(void)mr_fail(err, MR_NOTFOUND, "there is no configuration folder");
		return mr_hint(err, "set HOME or XDG_CONFIG_HOME");
	}
	return dir_below(config_dir, FOLDER, make, true, ret_fd, err);
}

static enum mr_rc
lock_folder(const char *config_dir, int *ret_folder, int *ret_lock, struct mr_error *err)
{
	enum mr_rc rc = open_folder(config_dir, true, ret_folder, err);

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

	if (lock_folder(config_dir, &folder, &lock, err) != MR_OK ||
	    add_head(&text, spec, place, identity, err) != MR_OK || add_trusted(&text, "init", err) != MR_OK)
		return err->code;
	return buf_ok(&text) ? file_replace(folder, identity, buf_str(&text), 0600, err) : mr_nomem(err);
}

struct change {
	const char *name, *value;    /* value NULL: removed */
	bool add;                    /* beside the others of that name */
	const char *trusted;         /* NULL: as it is */
	bool moved;                  /* what was allowed at another place goes on here */
	const struct mr_header *all; /* NULL, or in the place of all lines */
	size_t all_n;
};

/* The file as it shall be: head, trust, then the lines that stay, then the new one. */
static enum mr_rc
compose(const struct mr_room *room, const struct record *old, const struct change *c, struct buf *out,
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
		const struct known *k = known_as(kept[i].name);
		bool same = c->name && ascii_caseeq(kept[i].name, c->name);

		*ret_removed |= same && !c->add;
		if ((k && k->kind == FIXED) || (same && (!c->add || strcmp(kept[i].value, c->value) == 0)))
			continue;
		rc = header_add(out, kept[i].name, str_of(kept[i].value), err);
	}
	if (rc == MR_OK && c->name && c->value)
		rc = header_add(out, c->name, str_of(c->value), err);
	return rc == MR_OK && !buf_ok(out) ? mr_nomem(err) : rc;
}

/* Is the room that a record is about where the record says? */
static bool
is_there(const struct record *lines)
{
	const char *spec = record_get(lines, "Room"), *place = record_get(lines, "Place");
	struct mr_room *there = NULL;
	struct mr_error ignored = { 0 };

	if (!spec)
		return false;
	if (!place) /* a room of another program: nothing tells it from a later one */
		return true;
	bool same = room_open_spec(spec, &(struct mr_room_options){ .must_exist = true }, &there, &ignored) == MR_OK &&
		    is_about(lines, there);

	room_free(there);
	return same;
}

static enum mr_rc
change(struct mr_room *room, const struct change *c, struct mr_error *err)
{
	mr_auto(sys_close_fd) int folder = -1, lock = -1;
	mr_auto(record_done) struct record old = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char name[ROOM_IDENTITY_LEN + 1];
	bool removed = false;
	enum mr_rc rc;

	if (!file_of(room, name)) {
		(void)mr_fail(err, MR_REFUSED, "room '%.160s' has no identity yet", path_of(room->spec));
		return mr_hint(err, "mailroom trust '%.160s' gives it one", path_of(room->spec));
	}
	rc = lock_folder(room->user ? room->user->dir : NULL, &folder, &lock, err);
	if (rc != MR_OK)
		return rc;
	rc = read_file(folder, name, &old, err);
	if (rc == MR_NOTFOUND)
		rc = MR_OK;
	if (rc == MR_OK && old.n > 0 && !c->moved && !is_about(&old, room)) {
		if (is_there(&old)) {
			(void)mr_fail(err, MR_REFUSED, "room '%.100s' is a copy of '%.100s' and has its identity",
			    path_of(room->spec), path_of(record_get(&old, "Room")));
			return mr_hint(err, "mailroom trust '%.160s' gives it one of its own", path_of(room->spec));
		}
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
	struct change c = { .name = name, .value = value, .add = add };

	if (mr_config_check(name, value, err) != MR_OK)
		return err->code;
	return change(room, &c, err);
}

enum mr_rc
mr_config_replace(struct mr_room *room, const struct mr_header *lines, size_t n, struct mr_error *err)
{
	static const struct mr_header none = { 0 };
	enum mr_rc rc = MR_OK;

	for (size_t i = 0; i < n && rc == MR_OK; i++)
		rc = mr_config_check(lines[i].name, lines[i].value, err);
	return rc == MR_OK ? change(room, &(struct change){ .all = lines ? lines : &none, .all_n = n }, err) : rc;
}

/* A room of an earlier build has no identity, and a copy beside its original has one that is taken. */
static enum mr_rc
ensure_identity(struct mr_room *room, bool *ret_moved, struct mr_error *err)
{
	mr_auto(sys_close_fd) int folder = -1;
	mr_auto(record_done) struct record old = { 0 };
	struct mr_error ignored = { 0 };
	char name[ROOM_IDENTITY_LEN + 1];

	if (!room->place[0])
		return MR_OK;
	if (file_of(room, name)) {
		if (open_folder(room->user->dir, false, &folder, &ignored) != MR_OK ||
		    read_file(folder, name, &old, &ignored) != MR_OK || is_about(&old, room))
			return MR_OK;
		*ret_moved = !is_there(&old);
		if (*ret_moved)
			return MR_OK;
	}
	return room_give_identity(path_of(room->spec), room->identity, err);
}

enum mr_rc
mr_trust_add(struct mr_room *room, struct mr_error *err)
{
	struct change c = { .trusted = "trust" };
	enum mr_rc rc = ensure_identity(room, &c.moved, err);

	return rc == MR_OK ? change(room, &c, err) : mr_wrap(err, "cannot trust '%.160s'", path_of(room->spec));
}

/* ---- All records ---- */

struct all_records {
	struct mr_names names;
	bool failed;
};

static bool
note_record(void *ctx, const struct dir_entry *entry)
{
	struct all_records *all = ctx;

	all->failed |= entry->name[0] != '.' && !names_add(&all->names, str_of(entry->name));
	return !all->failed;
}

typedef bool record_visit_fn(void *ctx, int folder, const char *name, const struct record *lines);

static enum mr_rc
each_record(const char *config_dir, record_visit_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(sys_close_fd) int folder = -1;
	struct all_records all = { 0 };
	enum mr_rc rc = open_folder(config_dir, false, &folder, err);

	if (rc == MR_NOTFOUND)
		return MR_OK;
	if (rc == MR_OK)
		rc = dir_each(folder, note_record, &all, err);
	if (rc == MR_OK && all.failed)
		rc = mr_nomem(err);
	for (size_t i = 0; rc == MR_OK && i < all.names.n; i++) {
		mr_auto(record_done) struct record lines = { 0 };
		struct mr_error ignored = { 0 };

		if (read_file(folder, all.names.v[i], &lines, &ignored) == MR_OK && record_get(&lines, "Room") &&
		    !fn(ctx, folder, all.names.v[i], &lines))
			break;
	}
	mr_names_done(&all.names);
	return rc;
}

struct telling {
	mr_trust_fn *fn;
	void *ctx;
	bool prune, dry_run;
	const char *spec; /* remove: of this room */
	bool removed;
	int failed_errno;
};

static bool
tell(void *ctx, int folder, const char *name, const struct record *lines)
{
	struct telling *t = ctx;
	struct mr_trust_record r = { .spec = record_get(lines, "Room"), .gone = !is_there(lines) };

	(void)folder;
	(void)name;
	r.by = read_trusted(lines, &r.since_ms);
	if (t->prune && !r.gone)
		return true;
	if (t->prune && !t->dry_run && sys_unlink(folder, name) < 0) {
		t->failed_errno = errno;
		return false;
	}
	return t->fn(t->ctx, &r);
}

enum mr_rc
mr_trust_each(const char *config_dir, mr_trust_fn *fn, void *ctx, struct mr_error *err)
{
	return each_record(config_dir, tell, &(struct telling){ .fn = fn, .ctx = ctx }, err);
}

enum mr_rc
mr_trust_prune(const char *config_dir, bool dry_run, mr_trust_fn *fn, void *ctx, struct mr_error *err)
{
	struct telling t = { .fn = fn, .ctx = ctx, .prune = true, .dry_run = dry_run };
	enum mr_rc rc = each_record(config_dir, tell, &t, err);

	if (rc == MR_OK && t.failed_errno) {
		errno = t.failed_errno;
		return mr_fail_errno(err, "cannot remove a trust record");
	}
	return rc;
}

static bool
remove_if(void *ctx, int folder, const char *name, const struct record *lines)
{
	struct telling *t = ctx;

	if (strcmp(record_get(lines, "Room"), t->spec) != 0)
		return true;
	if (sys_unlink(folder, name) < 0)
		t->failed_errno = errno;
	t->removed |= t->failed_errno == 0;
	return true;
}

enum mr_rc
mr_trust_remove(const char *config_dir, const char *spec, struct mr_error *err)
{
	struct telling t = { .spec = spec };
	enum mr_rc rc = each_record(config_dir, remove_if, &t, err);

	if (rc == MR_OK && t.failed_errno) {
		errno = t.failed_errno;
		return mr_fail_errno(err, "cannot remove the trust record of '%.160s'", spec);
	}
	if (rc == MR_OK && !t.removed)
		return mr_fail(err, MR_NOTFOUND, "there is no trust record of '%.160s'", spec);
	return rc;
}
