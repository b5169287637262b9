/* SPDX-License-Identifier: MIT */
/*
 * agents.c - names and lives.
 *
 * An agent exists when agents/<address>/agent does: that file is written completely and then linked, so that only one
 * of several processes gets the name. A folder without that file belongs to a pruned agent (its archive and the numbers
 * of its lives stay until the mail is gone and 90 days have passed: agents_retire), or is the "rig" of "rig/witness".
 * New names are made under agents/.lock, because "Bob" and "bob" clash, and only a comparison with all names in the
 * folder shows it.
 *
 * A life, lives/<N>, is one continuous occupation of an agent's name, by a session of a harness or by a process:
 * registering or taking over the name begins the next one. Numbers only grow. Number N is taken with link(2) of a
 * complete file, so only one of several processes gets it. Beginning a life fences the ones before (recover.c). The
 * mtime of the file is when the life was last seen; its digits below the milliseconds encode the door, an enum mr_door
 * (seen_at).
 *
 * Removal unlinks `agent`, so that nobody can send to it any more, then appends a byte to agents/.lock, so that a
 * running fan-out notices (fanout.c), then moves the unread mail to the dead letters. A crash in between leaves unread
 * mail in a folder without an agent: doctor finds it, and finishes the move with --fix; an agent that registers the
 * name again gets it.
 */
#include "base/fault.h"
#include "message/address.h"
#include "rooms/maildir/maildir.h"
#include <dirent.h>
#include <stddef.h>

#define FILE_MAX ((size_t)64 << 10)
#define LIVES_KEPT 16
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

/* In the folder `path`, which may be missing. */
static enum mr_rc
find_lives(int dir_fd, const char *path, struct span *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	unsigned n;

	*ret = (struct span){ 0 };
	TRY(mr_unless(dir_names_in(dir_fd, path, &names, err), MR_NOTFOUND, err));
	for (size_t i = 0; i < names.n; i++)
		if (life_number(names.v[i], &n) && n > 0) {
			ret->newest = n > ret->newest ? n : ret->newest;
			ret->oldest = ret->oldest == 0 || n < ret->oldest ? n : ret->oldest;
		}
	return MR_OK;
}

/* The file of a life in the folder `lives`. */
static struct path
life_path(const char *lives, unsigned life)
{
	char digits[21];

	(void)text_number(digits, life, 0);
	return path_of(lives, "/", digits, NULL);
}

/* Two system calls if `likely` is right: the newest files have no gaps, and of a life that many newer ones followed the
 * files are gone. */
static enum mr_rc
newest_if_not(int dir_fd, const char *lives, unsigned likely, unsigned *ret, struct mr_error *err)
{
	struct span span = { .newest = likely };
	struct stat st;

	if (likely == 0 || sys_stat(dir_fd, life_path(lives, likely + 1).z, &st) == 0 || errno != ENOENT ||
	    sys_stat(dir_fd, life_path(lives, likely).z, &st) < 0)
		TRY(find_lives(dir_fd, lives, &span, err));
	*ret = span.newest;
	return MR_OK;
}

enum mr_rc
life_newest(struct mailbox *box, unsigned likely, unsigned *ret, struct mr_error *err)
{
	return newest_if_not(box->fd, "lives", likely, ret, err);
}

/* ---- One of them ---- */

/* Adds the lines of a file. MR_CORRUPT: the file is no record. */
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

/* Every command of the agent sets the time of the life's file, so storing the door in it costs no call of its own. If
 * the file system keeps only whole milliseconds, or a program sets another time, the door is unknown. */
static int64_t
seen_at(const struct stat *st, enum mr_door *ret_door)
{
	long below = st->st_mtim.tv_nsec % 1000000;

	*ret_door = below <= MR_DOOR_HTTP ? (enum mr_door)below : MR_DOOR_UNKNOWN;
	return time_ms(st->st_mtim);
}

static enum mr_rc
read_agent(struct mailbox *box, struct mr_agent *ret, struct mr_error *err)
{
	char first[1000];
	mr_auto(buf_done) struct buf text = BUF_IN(first);
	struct record lines = { 0 };
	struct mr_agent agent = { 0 };
	struct stat st = { 0 };
	unsigned life = 0;
	enum mr_rc rc = MR_NOTFOUND;

	TRY(read_lines(box->fd, "agent", &text, &st, err));
	/* Most agents have one life: lives/2 is missing, and lives/1 can be read. Old files may be removed and a new
	 * life may begin between the two calls; then look again. */
	bool has_one = sys_stat(box->fd, "lives/2", &st) < 0 && errno == ENOENT;

	for (unsigned tries = 0; rc == MR_NOTFOUND && tries < 3; tries++) {
		life = 1;
		if (tries > 0 || !has_one)
			TRY(life_newest(box, 0, &life, err));
		rc = life == 0 ? MR_OK : read_lines(box->fd, life_path("lives", life).z, &text, &st, err);
	}
	if (rc != MR_OK)
		return rc;
	TRY(record_parse(buf_str(&text), &lines, err));
	record_read(&lines, RECORD_FIELDS(name_lines), &agent);
	record_read(&lines, RECORD_FIELDS(life_lines), &agent);
	agent.own = lines.own; /* owns the strings */
	agent.life = life;
	if (life > 0)
		agent.seen_ms = seen_at(&st, &agent.door);
	text_join(agent.name, sizeof agent.name, box->agent, NULL);
	agent.others = maildir_is_shared(box->md) && shared_is_others(box->md, box->agent);
	*ret = agent;
	return MR_OK;
}

/* Without `ret` only tells whether the agent is registered, in one call. Delivery opens the folder again and follows no
 * link there. */
enum mr_rc
maildir_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	struct maildir *md = maildir_of(room);
	struct stat st;

	if (maildir_is_shared(md))
		TRY(shared_check_agent(md, name, err));
	if (!ret) {
		bool looked = sys_stat(md->agents_fd, path_of(name, "/agent", NULL).z, &st) == 0;

		if (looked && S_ISREG(st.st_mode))
			return MR_OK;
		/* An error must not be reported as "no such agent". */
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

/* ---- All of them ---- */

/* Each folder is opened and read once: its entries show whether it is a mailbox, and which names may be deeper
 * agents. */
struct walk {
	struct maildir *md;
	bool registered; /* only folders with the file `agent`; else folders with new/, too */
	struct mr_names *found;
	int fd;                /* of the folder that is being read */
	struct mr_names below; /* names in it that may be agents' folders */
	bool is_mailbox, failed;
};

static bool
has_type(int fd, const struct dir_entry *entry, unsigned char type)
{
	struct stat st;

	if (entry->type != DT_UNKNOWN)
		return entry->type == type;
	return sys_stat(fd, entry->name, &st) == 0 && (type == DT_DIR ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));
}

static bool
walk_entry(void *ctx, const struct dir_entry *entry)
{
	struct walk *w = ctx;

	if (strcmp(entry->name, "agent") == 0 || (!w->registered && strcmp(entry->name, "new") == 0))
		w->is_mailbox |= has_type(w->fd, entry, entry->name[0] == 'a' ? DT_REG : DT_DIR);
	/* Skip the parts that every mailbox has first: a room of thousands of agents has tens of thousands of them. */
	if (entry->name[0] != '.' && !mailbox_has_part(entry->name) && has_type(w->fd, entry, DT_DIR))
		w->failed = !names_add(&w->below, str_of(entry->name));
	return !w->failed;
}

/* Adds the addresses at and below a folder of that address ("": agents/). A name that vanishes during the walk, a link
 * and a file are not mailboxes. */
static enum mr_rc
walk_folder(const struct walk *above, int above_fd, const char *address, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	const char *slash = strrchr(address, '/');
	struct walk w = { .md = above->md, .registered = above->registered, .found = above->found };
	enum mr_rc rc = dir_open(above_fd, !*address ? "." : slash ? slash + 1 : address, &fd, err);

	if (rc == MR_NOTFOUND || rc == MR_REFUSED || (*address && shared_skip(w.md, err, "agents/%s", address)))
		return MR_OK;
	if (rc != MR_OK)
		return mr_wrap(err, "cannot read 'agents/%s'", address);
	w.fd = fd;
	rc = dir_each_once(fd, walk_entry, &w, err);
	if (rc == MR_OK && (w.failed || (w.is_mailbox && *address && !names_add(w.found, str_of(address)))))
		rc = mr_nomem(err);
	for (size_t i = 0; i < w.below.n && rc == MR_OK; i++) {
		struct path below = path_of(address, *address ? "/" : "", w.below.v[i], NULL);

		if (address_check(str_of(below.z), IGNORED) == MR_OK) /* else mailroom did not make it */
			rc = walk_folder(&w, fd, below.z, err);
	}
	mr_names_done(&w.below);
	return rc;
}

enum mr_rc
agents_collect(struct maildir *md, bool registered, struct mr_names *ret, struct mr_error *err)
{
	TRY(walk_folder(&(struct walk){ .md = md, .registered = registered, .found = ret }, md->agents_fd, "", err));
	names_sort(ret);
	return MR_OK;
}

/* This opens the mailbox that the handle keeps, so a caller that counts the mail of each agent opens none twice. */
enum mr_rc
maildir_each_agent(struct mr_room *room, bool names_only, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct maildir *md = maildir_of(room);
	bool more = true;
	struct stat st;

	TRY(agents_collect(md, true, &names, err));
	for (size_t i = 0; more && i < names.n; i++) {
		struct mr_agent agent = room_agent(names.v[i]);
		enum mr_rc rc = MR_OK;

		if (shared_skip_agent(md, names.v[i]))
			continue;
		if (!names_only)
			rc = maildir_find_agent(room, names.v[i], &agent, err);
		/* An agent whose files are broken must not hide the others: it is listed with its name only. Its time
		 * is that of the folder, so that it does not look gone since 1970. */
		if (rc == MR_CORRUPT) {
			agent.role = "its registration cannot be read: mailroom doctor";
			agent.created_ms = sys_stat(md->agents_fd, names.v[i], &st) == 0
					       ? (int64_t)st.st_mtim.tv_sec * 1000
					       : clock_now_ms();
			rc = mr_unless(rc, MR_CORRUPT, err);
		}
		TRY(mr_unless(rc, MR_NOTFOUND, err));
		if (rc == MR_OK) /* else it was pruned since its folder was read */
			more = fn(ctx, &agent);
		arena_free(agent.own);
	}
	return MR_OK;
}

/* ---- A new one ---- */

/* Checks every level: "Rig/x" clashes with "rig", as "bob" does with "Bob". Stops at the first folder that does not
 * exist yet. */
static enum mr_rc
check_case(struct maildir *md, const char *address, struct mr_error *err)
{
	for (size_t at = 0; address[at];) {
		mr_auto(mr_names_done) struct mr_names names = { 0 };
		char parent[MR_ADDRESS_MAX + 2];
		struct mr_str wanted = { address + at, strcspn(address + at, "/") };

		(void)snprintf(parent, sizeof parent, "%.*s", (int)at, address);
		TRY(mr_unless(dir_names_in(md->agents_fd, at ? parent : ".", &names, err), MR_NOTFOUND, err));
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
	enum mr_rc rc = file_publish(fd, tmp_fd, "agent", buf_str(&text), md->file_mode, md->publish, err);

	if (rc == MR_EXISTS)
		return mr_fail(err, MR_EXISTS, "agent '%s' is already registered", agent->name);
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

	/* A record is cleaned, and the cleaned name could be that of another session. */
	TRY(header_add(out, "Session", str_of(agent->session ? agent->session : ""), err));
	buf_clear(out);
	life.started_ms = agent->started_ms ? agent->started_ms : clock_now_ms();
	record_write(out, RECORD_FIELDS(life_lines), &life);
	shared_add_user(md, out);
	return buf_ok(out) ? MR_OK : mr_nomem(err);
}

/* MR_EXISTS: that number or a higher one is taken. */
static enum mr_rc
link_life(struct mailbox *box, const struct mr_agent *agent, int lives_fd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct maildir *md = box->md;
	struct span span;
	char name[16];
	int tmp_fd;

	TRY(write_life(md, agent, &text, err));
	TRY(find_lives(lives_fd, ".", &span, err));
	TRY(mailbox_folder(box, BOX_TMP, &tmp_fd, err));
	(void)snprintf(name, sizeof name, "%u", agent->life);
	enum mr_rc rc = span.newest >= agent->life
			    ? MR_EXISTS
			    : file_publish(lives_fd, tmp_fd, name, buf_str(&text), md->file_mode, md->publish, err);

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
	/* Removes the oldest first and stops at the first failure, so that the rest has no gap: maildir_check_life
	 * finds the newest life in two calls because of that. */
	(void)find_lives(fd, ".", &span, IGNORED);
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

/* Two calls: for the next life and our own. The newest 16 files have no gaps, so a life whose file is gone is older
 * than all of them. */
enum mr_rc
maildir_check_life(struct mr_room *room, const char *name, unsigned life, const char *session, unsigned *ret_newest,
    struct mr_error *err)
{
	const struct path lives = path_of(name, "/lives", NULL), path = life_path(lives.z, life);
	char first[500];
	mr_auto(buf_done) struct buf text = BUF_IN(first);
	mr_auto(record_done) struct record lines = { 0 };
	struct maildir *md = maildir_of(room);
	struct span span;
	struct stat st;

	if (ret_newest) {
		TRY(maildir_find_agent(room, name, NULL, err));
		return newest_if_not(md->agents_fd, lives.z, 1, ret_newest, err); /* most agents have one */
	}
	bool fenced = sys_stat(md->agents_fd, life_path(lives.z, life + 1).z, &st) == 0;

	if (!fenced && errno != ENOENT && errno != ENOTDIR)
		return mr_fail_errno(err, "cannot look at the lives of '%s'", name);
	if (!fenced && session) {
		const char *named = NULL;

		if (file_read(md->agents_fd, path.z, FILE_MAX, &text, err) == MR_OK &&
		    record_parse(buf_str(&text), &lines, err) == MR_OK)
			named = record_get(&lines, "Session");
		return named && strcmp(named, session) == 0
			   ? MR_OK
			   : mr_fail(err, MR_NOTFOUND, "'%s' belongs to another session", path.z);
	}
	if (!fenced && (life == 0 || sys_stat(md->agents_fd, path.z, &st) == 0 || errno != ENOENT))
		return MR_OK;
	TRY(find_lives(md->agents_fd, lives.z, &span, err));
	if (span.newest == 0 && sys_stat(md->agents_fd, lives.z, &st) < 0 && errno == ENOENT) /* removed by hand */
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "agent '%s' is now life %u, this is life %u: its mail belongs to the new one\n"
	    "register under another name, or take it back with: mailroom takeover %s",
	    name, span.newest, life, name);
}

/* A stat costs a fifth of a change, so it first checks whether the agent was seen a moment ago. In a room that a group
 * shares, another member could put a link in the way, and one of our files elsewhere would be touched: there the folder
 * is opened first. */
void
maildir_seen(struct mr_room *room, const char *name, unsigned life, enum mr_door door)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct maildir *md = maildir_of(room);
	const struct path lives = path_of(name, "/lives", NULL), path = life_path(lives.z, life);
	struct stat st;

	if (life == 0)
		return;
	if (sys_stat(md->agents_fd, path.z, &st) == 0) {
		enum mr_door last;
		int64_t age_ms = clock_now_ms() - seen_at(&st, &last);

		if (age_ms >= 0 && age_ms < SEEN_EVERY_MS && last != MR_DOOR_UNKNOWN)
			return;
	}
	if (!maildir_is_shared(md))
		(void)sys_touch(md->agents_fd, path.z, door);
	else if (dir_open(md->agents_fd, lives.z, &fd, IGNORED) == MR_OK)
		(void)sys_touch(fd, strrchr(path.z, '/') + 1, door);
}

/* ---- Changing one ---- */

/* Keeps all lines of the registration except the role. */
static enum mr_rc
set_role(struct maildir *md, const char *name, const char *role, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(buf_done) struct buf before = BUF_INIT, text = BUF_INIT, line = BUF_INIT;
	mr_auto(record_done) struct record lines = { 0 };
	mr_auto(sys_close_fd) int lock_fd = -1, fd = -1;

	TRY(shared_check_agent(md, name, err));
	if (shared_is_others(md, name)) /* the owner of the file proves whose agent it is */
		return mr_fail(err, MR_REFUSED, "cannot change the role of '%s': it belongs to another user", name);
	/* A removal holds the same lock, so that this cannot bring a removed agent back. */
	if ((*role && header_add(&line, "Role", str_of(role), err) != MR_OK) ||
	    lock_take(md->agents_fd, ".lock", md->file_mode, LOCK_WAIT_MS, &lock_fd, err) != MR_OK ||
	    mailbox_open_any(&box, md, name, err) != MR_OK || dir_open(box.fd, ".", &fd, err) != MR_OK ||
	    file_read(fd, "agent", FILE_MAX, &before, err) != MR_OK ||
	    record_parse(buf_str(&before), &lines, err) != MR_OK)
		return mr_wrap(err, "cannot change the role of '%s'", name);
	for (size_t i = 0; i < lines.n; i++)
		if (!ascii_caseeq(lines.lines[i].name, "Role"))
			TRY(header_add(&text, lines.lines[i].name, str_of(lines.lines[i].value), err));
	buf_add(&text, buf_str(&line));
	TRY(mr_got(buf_ok(&text) && buf_ok(&line), err));
	if (file_replace(fd, "agent", buf_str(&text), md->file_mode, err) != MR_OK)
		return mr_wrap(err, "cannot change the role of '%s'", name);
	return MR_OK;
}

enum mr_rc
maildir_update_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	struct maildir *md = maildir_of(room);
	struct stat st;
	char name[16];

	if (agent->life == 0)
		return set_role(md, agent->name, agent->role, err);
	(void)snprintf(name, sizeof name, "%u", agent->life);
	TRY(write_life(md, agent, &text, err));
	TRY(dir_open(md->agents_fd, path_of(agent->name, "/lives", NULL).z, &fd, err));
	if (sys_stat(fd, name, &st) < 0)
		return errno == ENOENT
			   ? mr_fail(err, MR_NOTFOUND, "agent '%s' has no life %u", agent->name, agent->life)
			   : mr_fail_errno(err, "cannot look at life %u of '%s'", agent->life, agent->name);
	return file_replace(fd, name, buf_str(&text), md->file_mode, err);
}

/* ---- Removing one ---- */

/* Uses more than the length, because somebody may have removed .lock and made a new one. */
uint64_t
maildir_removals(struct mr_room *room)
{
	struct stat st;

	if (sys_stat(maildir_of(room)->agents_fd, ".lock", &st) < 0)
		return errno == ENOENT ? 1 : 0;
	return ((uint64_t)st.st_size << 1 | 1) ^ (uint64_t)st.st_ino << 40 ^ (uint64_t)st.st_mtim.tv_nsec << 16;
}

/* Written before the mail is searched for: so either a fan-out sees it, or we see its mail. */
static enum mr_rc
note_removal(int lock_fd, struct mr_error *err)
{
	struct stat st;

	if (sys_break_is(BREAK_UNTOLD_REMOVAL))
		return MR_OK;
	if (sys_stat_fd(lock_fd, &st) < 0 || sys_pwrite_all(lock_fd, ".", 1, st.st_size) < 0)
		return mr_fail_errno(err, "cannot record that an agent is removed");
	return MR_OK;
}

/* Two pruned agents may have had the same message: one inode becomes one dead letter. Another file under that name (a
 * copy across file systems) gets a name of its own. */
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

/* A sender that opened the folder before the name was removed may still deliver into it: repeat until two passes in a
 * row find nothing. *ret counts. */
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
			    rc != MR_NOTFOUND) /* marked by another process meanwhile: the next pass finds it */
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

/* True if it is empty (with `empty`) and unchanged since that time, or missing. */
static bool
is_quiet(const struct mailbox *box, const char *path, bool empty, int64_t before_ms)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct stat st;

	if (sys_stat(box->fd, path, &st) < 0)
		return errno == ENOENT;
	return S_ISDIR(st.st_mode) && (int64_t)st.st_mtime * 1000 < before_ms &&
	       (!empty || (dir_names_in(box->fd, path, &names, IGNORED) == MR_OK && names.n == 0));
}

/* Removes the numbers of its lives, too: a process that still has one of them did nothing for that long. */
void
agents_retire(struct maildir *md, const char *name, int64_t before_ms)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(mr_names_done) struct mr_names parts = { 0 };
	mr_auto(sys_close_fd) int lock_fd = -1, fd = -1;
	struct path path = path_of(name, NULL);
	struct stat st;

	if (lock_take(md->agents_fd, ".lock", md->file_mode, 0, &lock_fd, IGNORED) != MR_OK ||
	    mailbox_open_any(&box, md, name, IGNORED) != MR_OK || sys_stat(box.fd, "agent", &st) == 0 ||
	    dir_open_names(box.fd, ".", &fd, &parts, IGNORED) != MR_OK)
		return;
	for (size_t i = 0; i < parts.n; i++) /* others are `agent`, an archive, or files of other programs */
		if (!mailbox_has_part(parts.v[i]))
			return;
	if (!is_quiet(&box, "new", true, before_ms) || !is_quiet(&box, "cur", true, before_ms) ||
	    !is_quiet(&box, "tmp", true, before_ms) || !is_quiet(&box, "held", false, before_ms) ||
	    !is_quiet(&box, "lives", false, before_ms) || sys_rmdir(fd, "new") < 0 || sys_rmdir(fd, "cur") < 0 ||
	    sys_rmdir(fd, "tmp") < 0)
		return;
	for (size_t i = 0; i < 2; i++) { /* held/<N> is empty, lives/<N> a file */
		mr_auto(mr_names_done) struct mr_names lives = { 0 };
		mr_auto(sys_close_fd) int below = -1;

		(void)names_in(fd, i ? "lives" : "held", &below, &lives, IGNORED);
		for (size_t n = 0; n < lives.n; n++)
			(void)(i ? sys_unlink(below, lives.v[n]) : sys_rmdir(below, lives.v[n]));
		(void)sys_rmdir(fd, i ? "lives" : "held");
	}
	for (char *slash = path.z; slash && sys_rmdir(md->agents_fd, path.z) == 0;) /* and "rig" of rig/witness */
		if ((slash = strrchr(path.z, '/')))
			*slash = '\0';
}

enum mr_rc
maildir_agent_remove(struct mr_room *room, const char *name, size_t *ret_dead, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(sys_close_fd) int lock_fd = -1, fd = -1;
	struct maildir *md = maildir_of(room);
	size_t moved = 0;

	/* Without the lock, a new agent of this name could lose its first mail to us. */
	TRY(lock_take(md->agents_fd, ".lock", md->file_mode, LOCK_WAIT_MS, &lock_fd, err));
	TRY(mailbox_open(&box, md, name, err));
	TRY(dir_open(box.fd, ".", &fd, err));
	if (note_removal(lock_fd, err) !=
	    MR_OK) /* written here as well, so that a full disk is noticed before anything is done */
		return mr_wrap(err, "cannot remove agent '%s'", name);
	if (sys_unlink(fd, "agent") < 0 && errno != ENOENT)
		return mr_fail_errno(err, "cannot remove agent '%s'", name);
	box.registered = false;
	if (md->sync && sys_fsync(fd) < 0)
		return mr_fail_errno(err, "cannot make the removal of agent '%s' durable", name);
	if (note_removal(lock_fd, err) != MR_OK || empty_inbox(&box, &moved, err) != MR_OK)
		return mr_wrap(err, "agent '%s' is removed, but not all its mail is moved", name);
	*ret_dead = moved;
	retain_some(room, true); /* to remove the empty folder later */
	return MR_OK;
}
