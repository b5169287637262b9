/* SPDX-License-Identifier: MIT */
/*
 * agents.c - names and lives.
 *
 * An agent exists when agents/<address>/agent does: that file is made complete and then linked, so one of many who want
 * a name gets it. A folder without that file is a pruned agent's (its archive and the numbers of its lives stay until
 * the mail is gone and 90 days have passed: agents_retire), or the "rig" of "rig/witness". New names are made under
 * agents/.lock, because "Bob" and "bob" are two links and only a look at all the names beside can tell that they clash.
 *
 * A life, lives/<N>, is one continuous occupation of an agent's name, by a session of a harness or by a process:
 * registering or taking over the name begins the next one. Numbers only grow. Number N is taken with link(2) of a
 * complete file, so of several that want it one gets it. Beginning a life fences the ones before (recover.c). The mtime
 * of the file is when the life was last seen; below its milliseconds stands the door, an enum mr_door (seen_at).
 *
 * Removal unlinks `agent`, so that nobody sends to it any more, then appends a byte to agents/.lock, which tells a
 * fan-out under way (fanout.c), then moves the unread mail to the dead letters. A crash in between leaves unread mail
 * in a folder without an agent: doctor finds it, and finishes the move with --fix; an agent that registers the name
 * again gets it.
 */
#include "base/fault.h"
#include "message/address.h"
#include "rooms/maildir/maildir.h"
#include <dirent.h>
#include <stddef.h>

#define FILE_MAX ((size_t)64 << 10)
#define LOCK_WAIT_MS 10000
#define LIVES_KEPT 16
#define LIFE_PATH (MR_ADDRESS_MAX + 24)
#define SEEN_EVERY_MS 5000

/* Lines of `agent`, behind Name:, and of lives/<N>. */
static const struct record_field name_lines[] = {
	{ "Created", RECORD_TIME, offsetof(struct mr_agent, created_ms) },
	{ "Role", RECORD_TEXT, offsetof(struct mr_agent, role) },
	{ "Wake", RECORD_TEXT, offsetof(struct mr_agent, wake) },
};
static const struct record_field life_lines[] = {
	{ "Life", RECORD_COUNT, offsetof(struct mr_agent, life) },
	{ "Started", RECORD_TIME, offsetof(struct mr_agent, started_ms) },
	{ "Session", RECORD_TEXT, offsetof(struct mr_agent, session) },
	{ "Process", RECORD_PROCESS, offsetof(struct mr_agent, process) },
	{ "Worktree", RECORD_TEXT, offsetof(struct mr_agent, worktree) },
	{ "Host", RECORD_TEXT, offsetof(struct mr_agent, host) },
};

/* ---- The newest life ---- */

bool
life_number(const char *name, unsigned *ret)
{
	uint64_t n;

	if (!str_to_u64(str_of(name), &n) || n > UINT32_MAX || (name[0] == '0' && name[1] != '\0'))
		return false;
	*ret = (unsigned)n;
	return true;
}

struct span { /* of the numbers in a folder; 0: none */
	unsigned oldest, newest;
};

static bool
note_number(void *ctx, const struct dir_entry *entry)
{
	struct span *span = ctx;
	unsigned n;

	if (life_number(entry->name, &n) && n > 0) {
		span->newest = n > span->newest ? n : span->newest;
		span->oldest = span->oldest == 0 || n < span->oldest ? n : span->oldest;
	}
	return true;
}

/* In the folder `path`; 0: there is none, or nothing in it. */
static enum mr_rc
newest_in(int dir_fd, const char *path, unsigned *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct span span = { 0 };
	enum mr_rc rc = dir_open(dir_fd, path, &fd, err);

	if (rc == MR_OK)
		rc = dir_each_once(fd, note_number, &span, err);
	if (rc == MR_OK || rc == MR_NOTFOUND)
		*ret = span.newest;
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

/* The file of a life in the folder `lives`. */
static void
life_path(const char *lives, unsigned life, char ret[LIFE_PATH])
{
	char digits[21];

	(void)text_number(digits, life, 0);
	text_join(ret, LIFE_PATH, lives, "/", digits, NULL);
}

/* Two looks where it is the likely one: the newest files are without gaps, and of a life that many followed neither is
 * there. */
static enum mr_rc
newest_if_not(int dir_fd, const char *lives, unsigned likely, unsigned *ret, struct mr_error *err)
{
	char next[LIFE_PATH], own[LIFE_PATH];
	struct stat st;

	life_path(lives, likely + 1, next);
	life_path(lives, likely, own);
	if (likely == 0 || sys_stat(dir_fd, next, &st) == 0 || errno != ENOENT || sys_stat(dir_fd, own, &st) < 0)
		return newest_in(dir_fd, lives, ret, err);
	*ret = likely;
	return MR_OK;
}

enum mr_rc
life_newest(struct mailbox *box, unsigned likely, unsigned *ret, struct mr_error *err)
{
	return newest_if_not(box->fd, "lives", likely, ret, err);
}

/* ---- One of them ---- */

/* Adds the lines of a file. MR_CORRUPT: it has none. */
static enum mr_rc
read_lines(int fd, const char *name, struct buf *text, struct stat *ret_st, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };
	char first[500];
	mr_auto(buf_done) struct buf file = BUF_IN(first);

	TRY(file_read_stat(fd, name, FILE_MAX, &file, ret_st, err));
	TRY(record_parse(buf_str(&file), &lines, err));
	buf_add(text, buf_str(&file));
	buf_addc(text, '\n');
	return buf_ok(text) ? MR_OK : mr_nomem(err);
}

/* The time of a life's file is set by every command of the agent, so the door costs no call of its own. A file system
 * that keeps whole milliseconds, or a program that sets another time, leaves it unknown. */
static int64_t
seen_at(const struct stat *st, enum mr_door *ret_door)
{
	long below = st->st_mtim.tv_nsec % 1000000;

	*ret_door = below <= MR_DOOR_HTTP ? (enum mr_door)below : MR_DOOR_UNKNOWN;
	return (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
}

static enum mr_rc
read_agent(struct mailbox *box, struct mr_agent *ret, struct mr_error *err)
{
	char first[1000], path[24];
	mr_auto(buf_done) struct buf text = BUF_IN(first);
	struct record lines = { 0 };
	struct mr_agent agent = { 0 };
	struct stat st = { 0 };
	unsigned life = 0;
	enum mr_rc rc = MR_NOTFOUND;

	TRY(read_lines(box->fd, "agent", &text, &st, err));
	/* Most agents have one life. The files are without gaps, so no second one and the first are proof, and lives/
	 * need not be read: that counts in a room of thousands. */
	if (sys_stat(box->fd, "lives/2", &st) < 0 && errno == ENOENT &&
	    read_lines(box->fd, "lives/1", &text, &st, IGNORED) == MR_OK) {
		life = 1;
		rc = MR_OK;
	}
	/* Old files are removed, and a new life may begin, between the two looks: then look again. */
	for (unsigned tries = 0; rc == MR_NOTFOUND && tries < 3; tries++) {
		TRY(life_newest(box, 0, &life, err));
		(void)snprintf(path, sizeof path, "lives/%u", life);
		rc = life == 0 ? MR_OK : read_lines(box->fd, path, &text, &st, err);
	}
	if (rc != MR_OK)
		return rc;
	TRY(record_parse(buf_str(&text), &lines, err));
	record_read(&lines, RECORD_FIELDS(name_lines), &agent);
	record_read(&lines, RECORD_FIELDS(life_lines), &agent);
	agent.own = lines.own; /* which has the strings */
	agent.life = life;
	if (life > 0)
		agent.seen_ms = seen_at(&st, &agent.door);
	text_join(agent.name, sizeof agent.name, box->agent, NULL);
	agent.others = maildir_is_shared(box->md) && shared_is_others(box->md, box->agent);
	*ret = agent;
	return MR_OK;
}

/* Without `ret` only whether it is registered: one call. Delivery opens the folder again and follows no link there. */
enum mr_rc
maildir_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	struct maildir *md = maildir_of(room);
	char path[MR_ADDRESS_MAX + 8];
	struct stat st;

	if (maildir_is_shared(md))
		TRY(shared_check_agent(md, name, err));
	if (!ret) {
		text_join(path, sizeof path, name, "/agent", NULL);
		bool looked = sys_stat(md->agents_fd, path, &st) == 0;

		if (looked && S_ISREG(st.st_mode))
			return MR_OK;
		/* A failed look must not say that nobody is there. */
		if (!looked && errno != ENOENT && errno != ENOTDIR)
			return mr_fail_errno(err, "cannot look for agent '%s'", name);
		return mr_fail(err, MR_NOTFOUND, "no agent '%s' is registered", name);
	}
	TRY(mailbox_open_any(&box, md, name, err));
	enum mr_rc rc = read_agent(&box, ret, err);

	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND, "no mailbox '%s'", name);
	return rc == MR_OK ? rc : mr_wrap(err, "cannot read agent '%s'", name);
}

/* An agent whose files are broken must not hide the others: it is there, with its mail, and no more is known. The time
 * is that of the folder, so that it does not look as if it had been gone since 1970. */
static struct mr_agent
unreadable_agent(struct maildir *md, const char *name)
{
	struct mr_agent agent = { .worktree = "",
		.session = "",
		.host = "",
		.wake = "",
		.role = "its registration cannot be read: mailroom doctor" };
	struct stat st;

	text_join(agent.name, sizeof agent.name, name, NULL);
	agent.created_ms = sys_stat(md->agents_fd, name, &st) == 0 ? (int64_t)st.st_mtim.tv_sec * 1000 : clock_now_ms();
	return agent;
}

/* ---- All of them ---- */

/*
 * Each folder is opened and read once: its entries say whether it is a mailbox, and which names are deeper. For names
 * alone nothing in it is opened, so a room of thousands of agents costs a few system calls each. Else the registration
 * is read while it is open, and it is the mailbox that the handle keeps: a caller that counts the mail of each agent
 * opens no mailbox twice.
 */
struct walk {
	struct maildir *md;
	bool registered;        /* only with the file `agent`; else a folder with new/ counts, too */
	struct mr_names *found; /* the addresses; NULL: fn is called */
	mr_agent_fn *fn;
	void *ctx;
	struct mr_names below; /* a stack: what may be agents' folders in those on the way to the one that is read */
	char address[MR_ADDRESS_MAX + NAME_LEN]; /* of the folder that is read; "" for agents/ itself */
	int fd;                                  /* of that folder */
	bool is_mailbox, failed, stopped;
	struct mr_error *err;
};

static bool
has_type(int fd, const struct dir_entry *entry, unsigned char type)
{
	struct stat st;

	if (entry->type != DT_UNKNOWN)
		return entry->type == type;
	return sys_stat(fd, entry->name, &st) == 0 && (type == DT_DIR ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));
}

/* What every mailbox has, told apart first: a room of thousands of agents has tens of thousands of these. */
static bool
is_part_of_mailbox(const char *name)
{
	static const char *const parts[] = { "tmp", "new", "cur", "held", "lives" };

	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (name[0] == '.' || strcmp(name, parts[i]) == 0) /* .Sent ... */
			return true;
	return false;
}

static bool
walk_entry(void *ctx, const struct dir_entry *entry)
{
	struct walk *w = ctx;

	if (strcmp(entry->name, "agent") == 0 || (!w->registered && strcmp(entry->name, "new") == 0))
		w->is_mailbox |= has_type(w->fd, entry, entry->name[0] == 'a' ? DT_REG : DT_DIR);
	if (!is_part_of_mailbox(entry->name) && has_type(w->fd, entry, DT_DIR))
		w->failed = !names_add(&w->below, str_of(entry->name));
	return !w->failed;
}

/* The folder of an agent: fd is taken. */
static enum mr_rc
walk_agent(struct walk *w, int fd)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };

	box.md = w->md;
	box.fd = fd;
	box.seen.at_ms = box.registered_ms = clock_boot_ms();
	text_join(box.agent, sizeof box.agent, w->address, NULL);
	if (shared_skip_agent(w->md, w->address))
		return MR_OK;
	enum mr_rc rc = read_agent(&box, &agent, w->err);

	mailbox_done(&box);
	if (rc == MR_CORRUPT)
		agent = unreadable_agent(w->md, w->address);
	else if (rc != MR_OK && rc != MR_NOTFOUND)
		return mr_wrap(w->err, "cannot read agent '%s'", w->address);
	if (rc != MR_OK)
		*w->err = (struct mr_error){ 0 };
	if (rc != MR_NOTFOUND) /* pruned since we read its folder */
		w->stopped = !w->fn(w->ctx, &agent);
	arena_free(agent.own);
	return MR_OK;
}

static enum mr_rc walk_folder(struct walk *w, int above_fd, const char *name);

/* The folders in that of fd, whose names are on the stack from `first` on: they are taken off. */
static enum mr_rc
walk_below(struct walk *w, int fd, size_t first)
{
	size_t end = w->below.n, len = strlen(w->address);

	if (end == first)
		return MR_OK;
	names_sort(&(struct mr_names){ .v = w->below.v + first, .n = end - first });
	for (size_t i = first; i < end && !w->stopped; i++) {
		text_join(w->address + len, sizeof w->address - len, len > 0 ? "/" : "", w->below.v[i], NULL);
		if (address_check(str_of(w->address), IGNORED) == MR_OK) /* else nothing that we made */
			TRY(walk_folder(w, fd, w->below.v[i]));
		w->address[len] = '\0';
	}
	while (w->below.n > first)
		free(w->below.v[--w->below.n]);
	return MR_OK;
}

/* A folder that vanishes while we walk, or that is a link or a file, is no mailbox. */
static enum mr_rc
walk_folder(struct walk *w, int above_fd, const char *name)
{
	mr_auto(sys_close_fd) int fd = -1;
	size_t first = w->below.n;
	enum mr_rc rc = dir_open(above_fd, name, &fd, w->err);

	if (rc == MR_NOTFOUND || rc == MR_REFUSED ||
	    (w->address[0] && shared_skip(w->md, w->err, "agents/%s", w->address)))
		return MR_OK;
	if (rc != MR_OK)
		return mr_wrap(w->err, "cannot read 'agents/%s'", w->address);
	w->fd = fd;
	w->is_mailbox = false;
	TRY(dir_each_once(fd, walk_entry, w, w->err));
	bool is_agent = w->is_mailbox && w->address[0];

	if (w->failed || (is_agent && w->found && !names_add(w->found, str_of(w->address))))
		return mr_nomem(w->err);
	if (is_agent && !w->found && w->below.n == first) {
		int taken = fd;

		fd = -1;
		return walk_agent(w, taken);
	}
	if (is_agent && !w->found)
		TRY(walk_agent(w, fcntl(fd, F_DUPFD_CLOEXEC, 0)));
	return walk_below(w, fd, first);
}

enum mr_rc
agents_collect(struct maildir *md, bool registered, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names found = { 0 };
	struct walk w = { .md = md, .registered = registered, .found = &found, .err = err };
	enum mr_rc rc = walk_folder(&w, md->agents_fd, ".");

	mr_names_done(&w.below);
	TRY(rc);
	names_sort(&found);
	*ret = found;
	found = (struct mr_names){ 0 };
	return MR_OK;
}

enum mr_rc
maildir_each_agent(struct mr_room *room, bool names_only, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct maildir *md = maildir_of(room);
	struct walk w = { .md = md, .registered = true, .fn = fn, .ctx = ctx, .err = err };
	bool stopped = false;

	if (!names_only) {
		enum mr_rc rc = walk_folder(&w, md->agents_fd, ".");

		mr_names_done(&w.below);
		return rc;
	}
	TRY(agents_collect(md, true, &names, err));
	for (size_t i = 0; !stopped && i < names.n; i++) {
		struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };

		if (shared_skip_agent(md, names.v[i]))
			continue;
		text_join(agent.name, sizeof agent.name, names.v[i], NULL);
		stopped = !fn(ctx, &agent);
	}
	return MR_OK;
}

/* ---- A new one ---- */

/* On every level: "Rig/x" clashes with "rig" as well as "bob" with "Bob". Stops at the first folder
 * that does not exist yet. */
static enum mr_rc
check_case(struct maildir *md, const char *address, struct mr_error *err)
{
	for (size_t at = 0; address[at];) {
		mr_auto(mr_names_done) struct mr_names names = { 0 };
		mr_auto(sys_close_fd) int fd = -1;
		char parent[MR_ADDRESS_MAX + 2];
		struct mr_str wanted = { address + at, strcspn(address + at, "/") };

		(void)snprintf(parent, sizeof parent, "%.*s", (int)at, address);
		enum mr_rc rc = dir_open(md->agents_fd, at ? parent : ".", &fd, err);

		if (rc == MR_NOTFOUND)
			return MR_OK;
		if (rc != MR_OK)
			return rc;
		TRY(dir_names(fd, &names, err));
		for (size_t i = 0; i < names.n; i++)
			if (str_caseeq(str_of(names.v[i]), wanted) && !str_eq(str_of(names.v[i]), wanted))
				return mr_fail(err, MR_REFUSED,
				    "name '%s' differs from '%s%s' only in case\nuse '%s%s', or another name", address,
				    parent, names.v[i], parent, names.v[i]);
		at += wanted.len;
		at += address[at] == '/';
	}
	return MR_OK;
}

enum mr_rc
maildir_add_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int lock_fd = -1, fd = -1;
	struct maildir *md = maildir_of(room);
	char created[RFC3339_LEN + 1];
	int tmp_fd;

	TRY(address_check(str_of(agent->name), err));
	time_rfc3339(agent->created_ms ? agent->created_ms : clock_now_ms(), created);
	TRY(header_add(&text, "Name", str_of(agent->name), err));
	TRY(header_add(&text, "Created", str_of(created), err));
	if (agent->role && agent->role[0])
		TRY(header_add(&text, "Role", str_of(agent->role), err));
	shared_add_user(md, &text);
	if (!buf_ok(&text))
		return mr_nomem(err);
	if (lock_take(md->agents_fd, ".lock", md->file_mode, LOCK_WAIT_MS, &lock_fd, err) != MR_OK)
		return mr_wrap(err, "cannot register '%s'", agent->name);
	TRY(check_case(md, agent->name, err));
	if (mailbox_make(md, agent->name, err) != MR_OK || mailbox_open_any(&box, md, agent->name, err) != MR_OK ||
	    mailbox_folder(&box, BOX_TMP, &tmp_fd, err) != MR_OK || dir_open(box.fd, ".", &fd, err) != MR_OK)
		return mr_wrap(err, "cannot make mailbox '%s'", agent->name);
	enum mr_rc rc = file_publish(
	    fd, tmp_fd, "agent", buf_str(&text), md->file_mode, md->sync ? PUBLISH_FULL : PUBLISH_NOSYNC, err);

	if (rc == MR_EXISTS)
		return mr_fail(err, MR_EXISTS, "agent '%s' is registered already", agent->name);
	if (rc != MR_OK)
		return mr_wrap(err, "cannot register '%s'", agent->name);
	reserve_refill(md);
	return MR_OK;
}

/* ---- A life ---- */

static enum mr_rc
write_life(const struct maildir *md, const struct mr_agent *agent, struct buf *out, struct mr_error *err)
{
	struct mr_agent life = *agent;

	/* A record is cleaned, and a cleaned name would be that of another session. */
	TRY(header_add(out, "Session", str_of(agent->session ? agent->session : ""), err));
	buf_clear(out);
	life.started_ms = agent->started_ms ? agent->started_ms : clock_now_ms();
	record_write(out, RECORD_FIELDS(life_lines), &life);
	shared_add_user(md, out);
	return buf_ok(out) ? MR_OK : mr_nomem(err);
}

static enum mr_rc
open_lives(struct maildir *md, const char *name, int *ret_fd, struct mr_error *err)
{
	char path[MR_ADDRESS_MAX + 8];

	text_join(path, sizeof path, name, "/lives", NULL);
	return dir_open(md->agents_fd, path, ret_fd, err);
}

/* MR_EXISTS: that number, or a higher one, is taken. */
static enum mr_rc
link_life(struct mailbox *box, const struct mr_agent *agent, int lives_fd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct maildir *md = box->md;
	unsigned newest = 0;
	char name[16];
	int tmp_fd;

	TRY(write_life(md, agent, &text, err));
	TRY(newest_in(lives_fd, ".", &newest, err));
	TRY(mailbox_folder(box, BOX_TMP, &tmp_fd, err));
	(void)snprintf(name, sizeof name, "%u", agent->life);
	enum mr_rc rc = newest >= agent->life ? MR_EXISTS
					      : file_publish(lives_fd, tmp_fd, name, buf_str(&text), md->file_mode,
						    md->sync ? PUBLISH_FULL : PUBLISH_NOSYNC, err);

	if (rc == MR_EXISTS)
		return mr_fail(err, MR_EXISTS, "life %u of agent '%s' is taken", agent->life, agent->name);
	return rc;
}

enum mr_rc
maildir_take_life(struct mr_room *room, const struct mr_agent *agent, size_t *ret_returned, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	struct maildir *md = maildir_of(room);
	struct span span = { 0 };
	size_t returned = 0;
	char name[16];

	TRY(mailbox_open(&box, md, agent->name, err));
	TRY(dir_make(box.fd, "lives", md->dir_mode, md->sync, &fd, err));
	TRY(link_life(&box, agent, fd, err));
	if (life_fence(&box, agent->life, &returned, err) != MR_OK || commit_flush(md, err) != MR_OK)
		return mr_wrap(
		    err, "life %u of '%s' has begun, but its mail is not all back", agent->life, agent->name);
	/* The oldest first, and none after one that stays: whatever stops us, those that are left have no gap, which is
	 * how maildir_check_life sees by two looks which one is the newest. */
	(void)dir_each(fd, note_number, &span, IGNORED);
	for (unsigned n = span.oldest, done = 0; n > 0 && n + LIVES_KEPT <= agent->life && done < LIVES_KEPT;
	     n++, done++) {
		(void)snprintf(name, sizeof name, "%u", n);
		if (sys_unlink(fd, name) < 0 && errno != ENOENT)
			break;
	}
	reserve_refill(md);
	*ret_returned = returned;
	return MR_OK;
}

/* Two looks: the next life, and our own. The newest 16 files are kept without gaps, so a life whose
 * own file is gone is older than all of them. */
enum mr_rc
maildir_check_life(struct mr_room *room, const char *name, unsigned life, const char *session, unsigned *ret_newest,
    struct mr_error *err)
{
	char lives[MR_ADDRESS_MAX + 8], path[LIFE_PATH], first[500];
	mr_auto(buf_done) struct buf text = BUF_IN(first);
	mr_auto(record_done) struct record lines = { 0 };
	struct maildir *md = maildir_of(room);
	unsigned newest = 0;
	struct stat st;

	text_join(lives, sizeof lives, name, "/lives", NULL);
	if (ret_newest) {
		TRY(maildir_find_agent(room, name, NULL, err));
		return newest_if_not(md->agents_fd, lives, 1, ret_newest, err); /* most agents have one */
	}
	life_path(lives, life + 1, path);
	bool fenced = sys_stat(md->agents_fd, path, &st) == 0;

	if (!fenced && errno != ENOENT && errno != ENOTDIR)
		return mr_fail_errno(err, "cannot look at the lives of '%s'", name);
	life_path(lives, life, path);
	if (!fenced && session) {
		const char *named = NULL;

		if (file_read(md->agents_fd, path, FILE_MAX, &text, err) == MR_OK &&
		    record_parse(buf_str(&text), &lines, err) == MR_OK)
			named = record_get(&lines, "Session");
		return named && strcmp(named, session) == 0
			   ? MR_OK
			   : mr_fail(err, MR_NOTFOUND, "'%s' is another session's", path);
	}
	if (!fenced && (life == 0 || sys_stat(md->agents_fd, path, &st) == 0 || errno != ENOENT))
		return MR_OK;
	TRY(newest_in(md->agents_fd, lives, &newest, err));
	if (newest == 0 && sys_stat(md->agents_fd, lives, &st) < 0 && errno == ENOENT) /* removed by hand */
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "agent '%s' is now life %u, this is life %u: its mail belongs to the new one\n"
	    "register under another name, or take it back with: mailroom takeover %s",
	    name, newest, life, name);
}

/* A look costs a fifth of a change, and an agent that acts many times a minute was seen often enough. Where a group
 * shares the room, another member could put a link in the way, and a file of ours elsewhere would be touched: there the
 * folder is opened first. */
void
maildir_seen(struct mr_room *room, const char *name, unsigned life, enum mr_door door)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct maildir *md = maildir_of(room);
	char lives[MR_ADDRESS_MAX + 8], path[LIFE_PATH];
	struct stat st;

	if (life == 0)
		return;
	text_join(lives, sizeof lives, name, "/lives", NULL);
	life_path(lives, life, path);
	if (sys_stat(md->agents_fd, path, &st) == 0) {
		enum mr_door last;
		int64_t age_ms = clock_now_ms() - seen_at(&st, &last);

		if (age_ms >= 0 && age_ms < SEEN_EVERY_MS && last != MR_DOOR_UNKNOWN)
			return;
	}
	if (!maildir_is_shared(md))
		(void)sys_touch(md->agents_fd, path, door);
	else if (open_lives(md, name, &fd, IGNORED) == MR_OK)
		(void)sys_touch(fd, strrchr(path, '/') + 1, door);
}

/* ---- Changing one ---- */

/* All lines as they were, but the role. */
static enum mr_rc
write_role(struct mr_str before, const char *role, struct buf *out, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };

	TRY(record_parse(before, &lines, err));
	for (size_t i = 0; i < lines.n; i++)
		if (!ascii_caseeq(lines.lines[i].name, "Role"))
			TRY(header_add(out, lines.lines[i].name, str_of(lines.lines[i].value), err));
	if (*role)
		TRY(header_add(out, "Role", str_of(role), err));
	return buf_ok(out) ? MR_OK : mr_nomem(err);
}

static enum mr_rc
set_role(struct maildir *md, const char *name, const char *role, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(buf_done) struct buf before = BUF_INIT, text = BUF_INIT;
	mr_auto(sys_close_fd) int lock_fd = -1, fd = -1;

	TRY(shared_check_agent(md, name, err));
	if (shared_is_others(md, name)) /* the owner of the file proves whose agent it is */
		return mr_fail(err, MR_REFUSED, "cannot change the role of '%s': it is another user's", name);
	/* A removal holds the same lock: a removed agent does not come back by this. */
	if (lock_take(md->agents_fd, ".lock", md->file_mode, LOCK_WAIT_MS, &lock_fd, err) != MR_OK ||
	    mailbox_open_any(&box, md, name, err) != MR_OK || dir_open(box.fd, ".", &fd, err) != MR_OK ||
	    file_read(fd, "agent", FILE_MAX, &before, err) != MR_OK ||
	    write_role(buf_str(&before), role, &text, err) != MR_OK ||
	    file_replace(fd, "agent", buf_str(&text), md->file_mode, err) != MR_OK)
		return mr_wrap(err, "cannot change the role of '%s'", name);
	return MR_OK;
}

static enum mr_rc
update_life(struct maildir *md, const struct mr_agent *agent, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	struct stat st;
	char name[16];

	(void)snprintf(name, sizeof name, "%u", agent->life);
	TRY(write_life(md, agent, &text, err));
	TRY(open_lives(md, agent->name, &fd, err));
	if (sys_stat(fd, name, &st) < 0)
		return errno == ENOENT
			   ? mr_fail(err, MR_NOTFOUND, "agent '%s' has no life %u", agent->name, agent->life)
			   : mr_fail_errno(err, "cannot look at life %u of '%s'", agent->life, agent->name);
	return file_replace(fd, name, buf_str(&text), md->file_mode, err);
}

enum mr_rc
maildir_update_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	if (agent->life > 0)
		return update_life(maildir_of(room), agent, err);
	return set_role(maildir_of(room), agent->name, agent->role, err);
}

/* ---- Removing one ---- */

/* Other things than the length are looked at because somebody may have removed .lock and made it anew. */
uint64_t
maildir_removals(struct mr_room *room)
{
	struct stat st;

	if (sys_stat(maildir_of(room)->agents_fd, ".lock", &st) < 0)
		return errno == ENOENT ? 1 : 0;
	return ((uint64_t)st.st_size << 1 | 1) ^ (uint64_t)st.st_ino << 40 ^ (uint64_t)st.st_mtim.tv_nsec << 16;
}

/* Written before the mail is looked for: so either a fan-out sees it, or we see its mail. */
static enum mr_rc
note_removal(int lock_fd, struct mr_error *err)
{
	struct stat st;

	if (sys_break_is(BREAK_UNTOLD_REMOVAL))
		return MR_OK;
	if (sys_stat_fd(lock_fd, &st) < 0 || sys_pwrite_all(lock_fd, ".", 1, st.st_size) < 0)
		return mr_fail_errno(err, "cannot note that an agent is removed");
	return MR_OK;
}

/* Two pruned agents may have had the same message: one inode, one dead letter. Another file under that
 * name (a copy across file systems) gets a name of its own. */
static enum mr_rc
move_to_dead(struct mailbox *box, struct mailbox *dead, const struct listed *at, struct mr_error *err)
{
	mr_auto(sys_close_fd) int from_fd = -1;
	struct file_name parts;
	int to_fd;
	bool info = name_parse(str_of(at->name), &parts) && parts.has_info;

	TRY(list_open_folder(box, at, &from_fd, err));
	TRY(mailbox_folder(dead, info ? BOX_CUR : BOX_NEW, &to_fd, err));
	enum mr_rc rc = commit_move(box->md, from_fd, at->name, to_fd, at->name, err);

	if (rc != MR_EXISTS)
		return rc;
	if (!file_is_same(from_fd, at->name, to_fd, at->name))
		return mark_to_dead(box->md, from_fd, at->name, &parts, parts.attempt, err);
	if (sys_unlink(from_fd, at->name) < 0 && errno != ENOENT)
		return mr_fail_errno(err, "cannot remove '%s'", at->name);
	return MR_OK;
}

/* A sender that opened the folder before the name went may still deliver into it: look until two
 * passes in a row find nothing. *ret counts. */
static enum mr_rc
empty_inbox(struct mailbox *box, size_t *ret, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox dead = MAILBOX_INIT;

	TRY(mailbox_open_dead(&dead, box->md, err));
	for (unsigned empty = 0; empty < 2;) {
		mr_auto(listing_done) struct listing unread = { 0 };
		size_t moved = 0, returned = 0;

		TRY(life_fence(box, UINT32_MAX, &returned, err));
		TRY(list_folders(box, MR_INBOX, true, NULL, &unread, err));
		for (size_t i = 0; i < unread.n; i++) {
			enum mr_rc rc = move_to_dead(box, &dead, &unread.v[i], err);

			if (rc != MR_OK &&
			    rc != MR_NOTFOUND) /* marked by another meanwhile: the next pass looks again */
				return rc;
			moved += rc == MR_OK;
		}
		*ret += moved;
		empty = moved == 0 && returned == 0 ? empty + 1 : 0;
	}
	return commit_flush(box->md, err);
}

enum mr_rc
agents_empty_unregistered(struct maildir *md, const char *name, size_t *ret, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(sys_close_fd) int lock_fd = -1;
	struct stat st;

	TRY(lock_take(md->agents_fd, ".lock", md->file_mode, LOCK_WAIT_MS, &lock_fd, err));
	TRY(mailbox_open_any(&box, md, name, err));
	if (sys_stat(box.fd, "agent", &st) == 0)
		return MR_OK; /* registered again meanwhile: it is that agent's mail now */
	TRY(note_removal(lock_fd, err));
	return empty_inbox(&box, ret, err);
}

/* ---- What is left of one ---- */

struct quiet { /* is that so of a folder? */
	int64_t before_ms;
	bool so;
};

static bool
is_folder_of_ours(void *ctx, const struct dir_entry *entry)
{
	static const char *const ours[] = { "new", "cur", "tmp", "held", "lives" };
	struct quiet *quiet = ctx;

	for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
		if (strcmp(entry->name, ours[i]) == 0)
			return true;
	return quiet->so = false; /* `agent`, an archive, what another program put there */
}

static bool
stop_at_entry(void *ctx, const struct dir_entry *entry)
{
	struct quiet *quiet = ctx;

	(void)entry;
	return quiet->so = false;
}

/* Nothing is in it, and nothing was put in or taken out since then. */
static void
look_if_quiet(const struct mailbox *box, const char *path, bool empty, struct quiet *quiet)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct stat st;
	enum mr_rc rc = dir_open(box->fd, path, &fd, IGNORED);

	if (rc == MR_NOTFOUND)
		return;
	if (rc != MR_OK || sys_stat_fd(fd, &st) < 0 || (int64_t)st.st_mtime * 1000 >= quiet->before_ms ||
	    (empty && dir_each(fd, stop_at_entry, quiet, IGNORED) != MR_OK))
		quiet->so = false;
}

/* The numbers of its lives go, too: a process that still has one of them did nothing for as long. */
void
agents_retire(struct maildir *md, const char *name, int64_t before_ms)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(mr_names_done) struct mr_names lives = { 0 };
	mr_auto(sys_close_fd) int lock_fd = -1, fd = -1;
	struct quiet quiet = { .before_ms = before_ms, .so = true };
	char path[MR_ADDRESS_MAX + 24];
	struct stat st;

	if (lock_take(md->agents_fd, ".lock", md->file_mode, 0, &lock_fd, IGNORED) != MR_OK ||
	    mailbox_open_any(&box, md, name, IGNORED) != MR_OK || sys_stat(box.fd, "agent", &st) == 0 ||
	    dir_open(box.fd, ".", &fd, IGNORED) != MR_OK || dir_each(fd, is_folder_of_ours, &quiet, IGNORED) != MR_OK)
		return;
	look_if_quiet(&box, "new", true, &quiet);
	look_if_quiet(&box, "cur", true, &quiet);
	look_if_quiet(&box, "tmp", true, &quiet);
	look_if_quiet(&box, "held", false, &quiet);
	look_if_quiet(&box, "lives", false, &quiet);
	if (!quiet.so || sys_rmdir(fd, "new") < 0 || sys_rmdir(fd, "cur") < 0 || sys_rmdir(fd, "tmp") < 0)
		return;
	for (size_t i = 0; i < 2; i++) { /* held/<N> is empty, lives/<N> a file */
		mr_auto(sys_close_fd) int below = -1;

		mr_names_done(&lives);
		if (dir_open(fd, i ? "lives" : "held", &below, IGNORED) == MR_OK)
			(void)dir_names(below, &lives, IGNORED);
		for (size_t n = 0; n < lives.n; n++)
			(void)(i ? sys_unlink(below, lives.v[n]) : sys_rmdir(below, lives.v[n]));
		(void)sys_rmdir(fd, i ? "lives" : "held");
	}
	text_join(path, sizeof path, name, NULL);
	for (char *slash = path; slash && sys_rmdir(md->agents_fd, path) == 0;) /* and "rig" of rig/witness */
		if ((slash = strrchr(path, '/')))
			*slash = '\0';
}

enum mr_rc
maildir_agent_remove(struct mr_room *room, const char *name, size_t *ret_dead, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(sys_close_fd) int lock_fd = -1, fd = -1;
	struct maildir *md = maildir_of(room);
	size_t moved = 0;

	/* The lock keeps a new agent of this name from losing its first mail to us. */
	TRY(lock_take(md->agents_fd, ".lock", md->file_mode, LOCK_WAIT_MS, &lock_fd, err));
	TRY(mailbox_open(&box, md, name, err));
	TRY(dir_open(box.fd, ".", &fd, err));
	if (note_removal(lock_fd, err) != MR_OK) /* also before: a full disk is noticed while nothing is done */
		return mr_wrap(err, "cannot remove agent '%s'", name);
	if (sys_unlink(fd, "agent") < 0 && errno != ENOENT)
		return mr_fail_errno(err, "cannot remove agent '%s'", name);
	box.registered_ms = 0;
	if (md->sync && sys_fsync(fd) < 0)
		return mr_fail_errno(err, "cannot make the removal of agent '%s' durable", name);
	if (note_removal(lock_fd, err) != MR_OK || empty_inbox(&box, &moved, err) != MR_OK)
		return mr_wrap(err, "agent '%s' is removed, but not all its mail is moved", name);
	*ret_dead = moved;
	retain_some(room, true); /* it looks after the folder that is left */
	return MR_OK;
}
