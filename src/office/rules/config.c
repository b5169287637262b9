/* SPDX-License-Identifier: MIT */
/* config.c - one file of the user's configuration: its names and values, reading and changing it; and which rooms this
 * user trusts, by its line Trusted:. */
#include "office/rules/config.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "message/type.h"
#include "office/who/who.h"
#include <fcntl.h>

#define FOLDER "rooms"
#define CONFIG_MAX ((size_t)1 << 20)
#define CONFIG_NAME_MAX 76 /* bytes: the longest name of a header line */
#define LOCK_WAIT_MS 5000

/* ---- Names and values ---- */

enum value_kind { UNKNOWN, COMMAND, SPEC, PAIR, YES_NO, FIXED, KEEP };

static enum value_kind
kind_of(const char *name)
{
	static const struct {
		const char *name; /* a name that ends in "-" is a prefix */
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
		{ "Keep-Archive", KEEP },
		{ "Keep-Sent", KEEP },
		{ "Keep-Done", KEEP },
		{ "Keep-Dead", KEEP },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t n = strlen(known[i].name);
		bool prefix = known[i].name[n - 1] == '-';

		if (strncasecmp(name, known[i].name, n) == 0 && prefix == (name[n] != '\0'))
			return known[i].kind;
	}
	return UNKNOWN;
}

/* ---- Commands ---- */

/* Reads one word without its quotes and moves *rest behind it. False: a quote is open. */
static bool
next_word(const char **rest, struct buf *out)
{
	const char *p = *rest;
	char quote = 0;

	for (; *p && (quote || !strchr(" \t", *p)); p++) {
		if (quote && *p == quote) {
			quote = 0;
		} else if (!quote && (*p == '\'' || *p == '"')) {
			quote = *p;
		} else {
			if (*p == '\\' && quote != '\'' && p[1])
				p++;
			buf_addc(out, *p);
		}
	}
	*rest = p;
	return !quote;
}

struct mr_names
split_command(const char *command, struct mr_error *err)
{
	struct mr_names words = { 0 };

	for (;;) {
		mr_auto(buf_done) struct buf word = BUF_INIT;

		command += strspn(command, " \t");
		if (!*command)
			break;
		bool closed = next_word(&command, &word);
		if (closed && !word.failed && names_add(&words, (struct mr_str){ buf_z(&word), word.len }))
			continue;
		(void)(closed ? mr_nomem(err) : mr_fail(err, MR_REFUSED, "a quote is not closed in the command"));
		mr_names_done(&words);
		return (struct mr_names){ 0 };
	}
	if (words.n == 0)
		(void)mr_fail(err, MR_REFUSED, "the command is empty");
	return words;
}

/* Programs that take program text as an argument; and python in any version. */
#define INTERPRETERS                                                                                                   \
	"sh bash dash ash ksh mksh zsh fish csh tcsh eval perl ruby node awk gawk mawk php lua tclsh expect ssh su"

/* The last word that an interpreter at `from` reads as program text: its script, or the word after -c or -e. */
static size_t
program_end(const struct mr_names *words, size_t from)
{
	size_t end = from;

	if (str_ends(str_of(words->v[from]), "ssh")) /* all that follows is a command line on the other machine */
		return words->n;
	for (size_t i = from + 1; i < words->n && end == from; i++)
		end = words->v[i][0] == '-' ? end : i;
	for (size_t i = from + 1; i < words->n; i++)
		if (words->v[i][0] == '-' && strpbrk(words->v[i], "ce") && i + 1 > end)
			end = i + 1;
	return end;
}

enum mr_rc
config_check_command(const char *command, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names words = split_command(command, err);
	size_t end = 0;

	if (words.n == 0)
		return err->code;
	for (size_t i = 0; i < words.n; i++) {
		struct mr_str program = str_of(path_name(words.v[i]));
		const char *open = strchr(words.v[i], '{'), *close = open ? strchr(open, '}') : NULL;
		mr_auto(buf_done) struct buf field = BUF_INIT, variable = BUF_INIT;

		if (end > 0 && i <= end && close && close > open + 1) {
			buf_add(&field, (struct mr_str){ open + 1, (size_t)(close - open - 1) });
			type_variable(&variable, buf_z(&field));
			return mr_fail(err, MR_REFUSED,
			    "the command would run {%.40s} of a message as program text\n"
			    "write \"$%.80s\" in its place: the field is in that environment variable",
			    buf_z(&field), buf_z(&variable));
		}
		if (str_starts(program, "python") || str_is_among(program, INTERPRETERS, " "))
			end = program_end(&words, i);
	}
	return MR_OK;
}

static enum mr_rc
check_line(const char *name, const char *value, struct mr_error *err)
{
	enum value_kind kind = kind_of(name);

	if (kind == UNKNOWN || kind == FIXED) {
		(void)mr_fail(err, MR_REFUSED,
		    kind == FIXED ? "'%.60s' is set by `mailroom trust`, not by hand"
				  : "the configuration has no setting '%.60s'",
		    name);
		return mr_hint(err,
		    "the settings are Notify, Handler-NAME, Wake-AGENT, Link-NAME, Adopt-LINK, Sling, Bead-Status, "
		    "Nudge-On-Send and Session-Handlers: man 5 mailroom-config; and of the room itself Keep-Archive, "
		    "Keep-Sent, Keep-Done and Keep-Dead");
	}
	if (strlen(name) > CONFIG_NAME_MAX)
		return mr_fail(err, MR_REFUSED, "the name of a setting has at most %d characters", CONFIG_NAME_MAX);
	if (!header_name_valid(str_of(name)))
		return mr_fail(err, MR_REFUSED, "'%.60s' cannot be the name of a setting", name);
	if (!value)
		return MR_OK;
	if (header_value_problem(str_of(value)))
		return mr_fail(err, MR_REFUSED, "the value of '%s' %s", name, header_value_problem(str_of(value)));
	const char *space = strchr(value, ' ');

	if (kind == COMMAND && config_check_command(value, err) != MR_OK)
		return mr_wrap(err, "'%s'", name);
	if (kind == PAIR && (!space || space == value || !space[1] || strchr(space + 1, ' ')))
		return mr_fail(
		    err, MR_REFUSED, "'%.80s' is not 'LOCAL FOREIGN': an agent here and a mailbox there", value);
	if (kind == SPEC && !strchr(value, ':'))
		return mr_fail(err, MR_REFUSED, "'%.80s' is not a room: write KIND:WHERE", value);
	if (kind == KEEP && (!*value || !room_keep_parse(value, &(struct room_keep){ 0 })))
		return mr_fail(err, MR_REFUSED, "'%s' cannot be '%.60s'\nwrite " ROOM_KEEP_ALLOWED, name, value);
	if (kind == YES_NO && !ascii_caseeq(value, "yes") && !ascii_caseeq(value, "no"))
		return mr_fail(err, MR_REFUSED, "'%s' must be 'yes' or 'no', not '%.60s'", name, value);
	return MR_OK;
}

/* ---- Reading ---- */

/* The identity is checked because it becomes a file name; without a place it is the hash of the room's spec. */
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

static enum mr_rc
read_file(int folder, const char *path, struct record *ret, struct mr_error *err)
{
	return office_own_file(folder, path, "configuration", CONFIG_MAX, ret, err);
}

static bool
fits(const struct record *lines, const struct mr_room *room)
{
	const char *spec = record_get(lines, "Room"), *place = record_get(lines, "Place");
	const char *identity = record_get(lines, "Identity");

	return strcmp(spec ? spec : "", room->spec) == 0 && strcmp(place ? place : "", room->place) == 0 &&
	       strcmp(identity ? identity : "", room->identity) == 0;
}

/* The path of a native room. */
static const char *
path_of(const char *spec)
{
	return str_starts(str_of(spec), "maildir:") ? spec + strlen("maildir:") : spec;
}

/* Does the room of these lines exist at their place? */
static bool
room_is_there(const struct record *lines)
{
	const char *spec = record_get(lines, "Room"), *place = record_get(lines, "Place");
	struct mr_room *there = NULL;

	if (!spec)
		return false;
	if (!place) /* a room of another program: it cannot be told from a later one */
		return true;
	bool same = room_open_spec(spec, &(struct mr_room_options){ .must_exist = true }, &there, IGNORED) == MR_OK &&
		    fits(lines, there);

	mr_room_close(there);
	return same;
}

/* Done before anything in the room is acted on, because recovery completes deliveries. */
enum mr_rc
config_attach(struct mr_room *room, const struct mr_room_options *options, struct mr_error *err)
{
	struct user_config *u = calloc(1, sizeof(*u));
	const char *path, *why;
	int64_t since_ms;
	struct stat st;

	TRY(mr_got(u, err));
	room->office->user = u;
	u->found = options->found;
	u->dir = options->config_dir ? strdup(options->config_dir) : NULL;
	u->paths = options->trust_paths ? strdup(options->trust_paths) : NULL;
	if ((options->config_dir && !u->dir) || (options->trust_paths && !u->paths))
		return mr_nomem(err);
	if (!u->found || mr_room_trust(room, &since_ms) != MR_TRUST_NONE)
		return MR_OK;
	path = path_of(room->spec);
	if (sys_stat(AT_FDCWD, path, &st) == 0 && S_ISLNK(st.st_mode))
		why = "it is a symbolic link to another folder";
	else if (u->elsewhere)
		why = "it is not the folder that was trusted: it was copied, moved, replaced or mounted anew";
	else if (!u->dir)
		why = "there is no configuration folder ($XDG_CONFIG_HOME, $HOME) in which trust is recorded";
	else if (!room->identity[0])
		why = "it was made by an earlier mailroom, or came with a folder from elsewhere";
	else
		why = "you did not make it on this machine, and have not trusted it";
	return mr_fail(err, MR_UNTRUSTED,
	    "room '%.200s' is not trusted: %s\nif it is yours, type in a terminal: mailroom trust '%.140s'", path, why,
	    path);
}

/* doctor, and any change of the file, report its errors; until then it allows nothing. */
static const struct record *
lines_of(struct mr_room *room)
{
	static const struct record none = { 0 };
	struct user_config *u = room->office ? room->office->user : NULL;
	mr_auto(buf_done) struct buf path = BUF_INIT;
	char name[ROOM_IDENTITY_LEN + 1];

	if (!u || !u->dir || u->read || !file_of(room, name))
		return u ? &u->lines : &none;
	u->read = true;
	buf_addf(&path, "%s/" FOLDER "/%s", u->dir, name);
	if (buf_ok(&path) && read_file(AT_FDCWD, buf_z(&path), &u->lines, IGNORED) == MR_OK && !fits(&u->lines, room)) {
		u->elsewhere = true;
		record_done(&u->lines);
	}
	return &u->lines;
}

const char *
mr_config_get(struct mr_room *room, const char *name)
{
	const char *value = record_get(lines_of(room), name);

	return value && *value ? value : NULL;
}

const char *
config_get_of(struct mr_room *room, const char *prefix, const char *rest)
{
	char name[CONFIG_NAME_MAX + 1];

	if ((size_t)snprintf(name, sizeof(name), "%s%s", prefix, rest) >= sizeof(name))
		return NULL;
	return mr_config_get(room, name);
}

bool
config_has(struct mr_room *room, const char *name, const char *value)
{
	return record_has(lines_of(room), name, value);
}

bool
config_has_link(struct mr_room *room, bool far)
{
	const struct record *lines = lines_of(room);

	for (size_t i = 0; i < lines->n; i++) {
		struct mr_str name = str_of(lines->lines[i].name), spec = str_of(lines->lines[i].value);

		if (str_starts(name, "Link-") && !str_eq(name, STR("Link-")) &&
		    (!far || room_kind_needs_full(str_first(spec, str_find(spec, ':')))))
			return true;
	}
	return false;
}

enum mr_rc
mr_config_list(struct mr_room *room, struct mr_settings *ret, struct mr_error *err)
{
	mr_auto(roll_done) struct roll l = { 0 };
	const struct record *lines = lines_of(room);

	for (size_t i = 0; i < lines->n; i++) {
		enum value_kind kind = kind_of(lines->lines[i].name);
		bool listed = kind != UNKNOWN && kind != FIXED && kind != KEEP;
		struct mr_header *h = listed ? roll_add(&l, sizeof(*h)) : NULL;

		if (h)
			*h = (struct mr_header){ roll_str(&l, lines->lines[i].name),
				roll_str(&l, lines->lines[i].value) };
	}
	return mr_got(roll_give(&l, ret), err);
}

/* ---- Changing it ---- */

struct config_change {
	const char *name, *value;    /* value NULL: removed */
	bool add;                    /* keep the other lines of that name */
	const char *trusted;         /* NULL: unchanged */
	bool moved;                  /* the permissions of the old place go on here */
	const struct mr_header *all; /* NULL, or replaces all lines */
	size_t all_n;
};

static enum mr_rc
open_folder(const char *config_dir, bool make, int *ret_fd, struct mr_error *err)
{
	if (!config_dir)
		return mr_fail(err, MR_NOTFOUND, "there is no configuration folder\nset HOME or XDG_CONFIG_HOME");
	return dir_below(config_dir, FOLDER, make, true, ret_fd, err);
}

static enum mr_rc
lock_folder(const char *config_dir, int *ret_folder, int *ret_lock, struct mr_error *err)
{
	if (open_folder(config_dir, true, ret_folder, err) != MR_OK ||
	    lock_take(*ret_folder, ".lock", 0600, LOCK_WAIT_MS, ret_lock, err) != MR_OK)
		return mr_wrap(err, "cannot change the configuration in '%.120s'", config_dir);
	return MR_OK;
}

/* Adds Room, Place, Identity and Trusted. `how`: the way in which it is trusted now; NULL: as in `trusted`, or not. */
static enum mr_rc
add_head(struct buf *out, const char *spec, const char *place, const char *identity, const char *how,
    const char *trusted, struct mr_error *err)
{
	mr_auto(buf_done) struct buf value = BUF_INIT;
	char now[RFC3339_LEN + 1];

	TRY(header_add(out, "Room", str_of(spec), err));
	if (*place)
		TRY(header_add(out, "Place", str_of(place), err));
	if (*identity)
		TRY(header_add(out, "Identity", str_of(identity), err));
	time_rfc3339(clock_now_ms(), now);
	if (how)
		buf_addf(&value, "%s %s", now, how);
	else
		buf_adds(&value, trusted ? trusted : "");
	return value.len > 0 ? header_add(out, "Trusted", buf_str(&value), err) : MR_OK;
}

enum mr_rc
config_note_made(
    const char *config_dir, const char *spec, const char *place, const char *identity, struct mr_error *err)
{
	mr_auto(sys_close_fd) int folder = -1, lock = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;

	TRY(lock_folder(config_dir, &folder, &lock, err));
	TRY(add_head(&text, spec, place, identity, "init", NULL, err));
	return buf_ok(&text) ? file_replace(folder, identity, buf_str(&text), 0600, err) : mr_nomem(err);
}

static enum mr_rc
apply(struct mr_room *room, const struct config_change *c, struct mr_error *err)
{
	mr_auto(sys_close_fd) int folder = -1, lock = -1;
	mr_auto(record_done) struct record old = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct user_config *u = room->office ? room->office->user : NULL;
	const char *path = path_of(room->spec);
	char name[ROOM_IDENTITY_LEN + 1];

	if (!file_of(room, name))
		return mr_fail(err, MR_REFUSED,
		    "room '%.160s' has no identity yet\nmailroom trust '%.160s' gives it one", path, path);
	TRY(lock_folder(u ? u->dir : NULL, &folder, &lock, err));
	TRY(mr_unless(read_file(folder, name, &old, err), MR_NOTFOUND, err));
	if (old.n > 0 && !c->moved && !fits(&old, room)) {
		if (room_is_there(&old))
			return mr_fail(err, MR_REFUSED,
			    "room '%.100s' is a copy of '%.100s' and has its identity\nmailroom trust '%.160s' gives it one of its own",
			    path, path_of(record_get(&old, "Room")), path);
		record_done(&old);
	}
	/* The new file: head, trust, the lines that stay, then the new line. */
	const struct mr_header *kept = c->all ? c->all : old.lines;
	size_t kept_n = c->all ? c->all_n : old.n;
	bool removed = false;

	TRY(add_head(&text, room->spec, room->place, room->identity, c->trusted, record_get(&old, "Trusted"), err));
	for (size_t i = 0; i < kept_n; i++) {
		bool same = c->name && ascii_caseeq(kept[i].name, c->name);

		removed |= same && !c->add;
		if (kind_of(kept[i].name) != FIXED && !(same && (!c->add || strcmp(kept[i].value, c->value) == 0)))
			TRY(header_add(&text, kept[i].name, str_of(kept[i].value), err));
	}
	if (c->name && c->value)
		TRY(header_add(&text, c->name, str_of(c->value), err));
	if (c->name && !c->value && !removed)
		return mr_fail(err, MR_NOTFOUND, "there is no setting '%s' for this room", c->name);
	TRY(mr_got(buf_ok(&text), err));
	enum mr_rc rc = file_replace(folder, name, buf_str(&text), 0600, err);

	record_done(&u->lines); /* read again at the next use */
	u->read = u->elsewhere = false;
	return rc;
}

enum mr_rc
mr_config_set(struct mr_room *room, const char *name, const char *value, bool add, struct mr_error *err)
{
	TRY(check_line(name, value, err));
	if (!room)
		return MR_OK;
	if (kind_of(name) ==
	    KEEP) /* grants nothing: it is the room's policy for its own mail, the same for all users */
		return DRIVER_HAS(room->driver, record_put) && room->place[0]
			   ? room_put_setting(path_of(room->spec), name, value, err)
		       : DRIVER_HAS(room->driver, each_cost) && value /* a room in a database */
			   ? room->driver->record_put(room, "setting", "", name, str_of(value), err)
			   : DRIVER_HAS(room->driver, each_cost)
				 ? room->driver->record_drop(room, "setting", "", name, err)
				 : room_lacks(room, "retention", err);
	return apply(room, &(struct config_change){ .name = name, .value = value, .add = add }, err);
}

enum mr_rc
mr_config_replace(struct mr_room *room, const struct mr_header *lines, size_t n, struct mr_error *err)
{
	static const struct mr_header none = { 0 };

	for (size_t i = 0; i < n; i++) {
		TRY(check_line(lines[i].name, lines[i].value, err));
		if (kind_of(lines[i].name) == KEEP)
			return mr_fail(err, MR_REFUSED, "'%s' is a setting of the room\nuse: mailroom config set %s %s",
			    lines[i].name, lines[i].name, lines[i].value);
	}
	return apply(room, &(struct config_change){ .all = lines ? lines : &none, .all_n = n }, err);
}

/* ---- Trust: the line Trusted: ---- */

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

enum mr_trust
mr_room_trust(struct mr_room *room, int64_t *ret_since_ms)
{
	const struct user_config *u = room->office->user;
	struct mr_str rest = str_of(u->paths ? u->paths : ""), one;

	*ret_since_ms = 0;
	enum mr_trust by = read_trusted(lines_of(room), ret_since_ms);

	if (by != MR_TRUST_NONE)
		return by;
	const char *path = path_of(room->spec);
	mr_auto(free_ptr) char *home = path_parent(path);

	/* The path of the room itself, or of the folder around it. */
	while (home && str_cut(&rest, ':', &one)) {
		while (one.len > 1 && one.ptr[one.len - 1] == '/')
			one.len--;
		if (str_eq(one, str_of(path)) || str_eq(one, str_of(home)))
			return MR_TRUST_VARIABLE;
	}
	return u->found ? MR_TRUST_NONE : MR_TRUST_NAMED;
}

/* ---- Trusting a room ---- */

enum mr_rc
mr_trust_add(struct mr_room *room, struct mr_error *err)
{
	struct config_change c = { .trusted = "trust" };
	mr_auto(sys_close_fd) int folder = -1;
	mr_auto(record_done) struct record old = { 0 };
	char name[ROOM_IDENTITY_LEN + 1], identity[ROOM_IDENTITY_LEN + 1];
	bool named = file_of(room, name);
	/* The configuration under its identity is about another place. */
	bool other = named && open_folder(room->office->user->dir, false, &folder, IGNORED) == MR_OK &&
		     read_file(folder, name, &old, IGNORED) == MR_OK && !fits(&old, room);

	c.moved = other && !room_is_there(&old);
	/* A room of an earlier build has no identity; a copy beside its original has one that is taken. */
	if (room->place[0] && (!named || (other && !c.moved))) {
		random_hex(identity, ROOM_IDENTITY_LEN);
		if (room_put_setting(path_of(room->spec), "Identity", identity, err) != MR_OK)
			return mr_wrap(err, "cannot trust '%.160s'", path_of(room->spec));
		memcpy(room->identity, identity, sizeof identity);
	}
	return apply(room, &c, err);
}

/* ---- All records ---- */

enum mr_rc
mr_trust_list(
    const char *config_dir, const char *spec, bool gone_only, bool drop, struct mr_trusted *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int folder = -1;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(roll_done) struct roll l = { 0 };
	enum mr_rc rc = open_folder(config_dir, false, &folder, err);

	if (rc == MR_OK)
		rc = dir_names(folder, &names, err);
	TRY(mr_unless(rc, MR_NOTFOUND, err));
	for (size_t i = 0; i < names.n; i++) {
		mr_auto(record_done) struct record lines = { 0 };
		struct mr_trust_record *r;

		if (names.v[i][0] == '.' || read_file(folder, names.v[i], &lines, IGNORED) != MR_OK)
			continue;
		const char *room = record_get(&lines, "Room");
		bool gone = room && !spec && !room_is_there(&lines);

		if (!room || (spec && strcmp(room, spec) != 0) || (gone_only && !gone))
			continue;
		if (drop && sys_unlink(folder, names.v[i]) < 0)
			return mr_fail_errno(err, "cannot remove the trust record of '%.160s'", room);
		r = roll_add(&l, sizeof(*r));
		TRY(mr_got(r, err));
		r->spec = roll_str(&l, room);
		r->gone = gone;
		r->by = read_trusted(&lines, &r->since_ms);
	}
	return mr_got(roll_give(&l, ret), err);
}
