/* SPDX-License-Identifier: MIT */
/*
 * inspect_tree.c - doctor's walk over every file and folder of a room: modes, owners, times, stray temporary files,
 * foreign files; and a check of each message. Only the beginning of a message is read: on storage that is not safe, a
 * power cut leaves files that are empty or have zero bytes in place of the text.
 *
 * A message that was found fine is not read again within a day, so that a walk that was stopped goes on where it was,
 * and the next one costs one stat a message. <state>/doctor/<hash of the room> has a line for each large folder of
 * mail:
 *
 *	<when its reading began, ms> <the last name that was read, in order of names; "-": all> <path>
 *
 * Any change of a file (its bytes, its mode, a rename) sets its ctime, so a file whose ctime is before that time has
 * not changed since it was checked. Times are the kernel's. A folder with a finding gets no line.
 */
#include "base/findings.h"
#include "message/message.h"
#include "rooms/maildir/maildir.h"
#include <dirent.h>
#include <unistd.h>

#define DEEPEST 12
#define BEGINNING ((size_t)8 << 10)
#define KEYWORDS_MAX ((size_t)64 << 10)
#define NOTED_MIN 1000 /* messages: reading fewer is quick */
#define NOTES_MAX ((size_t)1 << 20)
#define NOTES_KEPT_MS ((int64_t)24 * 3600 * 1000)

struct done_folder { /* a line of the notes of an earlier walk */
	int64_t began_ms;
	const char *through, *path;
};

struct tree {
	struct mr_room *room;
	struct maildir *md;
	struct findings *f;
	struct buf path; /* relative path of the file or folder that is being checked */
	uid_t owner;     /* of the room */
	gid_t group;
	size_t modes, stray, mail; /* findings of that kind; zero is reported as well */
	uint32_t keywords;         /* letters a-z with a meaning for another program in the current folder */
	size_t seen, total;        /* messages; total 0: not counted */
	int notes_fd;              /* <state>/doctor, or -1 */
	char notes_name[65];
	struct buf old, new; /* the notes, before and after */
	struct arena *own;
	int64_t now_ms;                 /* start of this walk by the kernel's clock; 0: take no notes */
	const struct done_folder *done; /* of the current folder, or NULL */
};

static void
tree_done(struct tree *t)
{
	sys_close_fd(&t->notes_fd);
	buf_done(&t->path);
	buf_done(&t->old);
	buf_done(&t->new);
	arena_free(t->own);
}

/* ---- Modes, owners, times ---- */

static void
check_mode(struct tree *t, int dir_fd, const char *name, const struct stat *st)
{
	bool folder = S_ISDIR(st->st_mode), fixed = false;
	mode_t allowed = folder ? t->md->dir_mode : t->md->file_mode, needed = folder ? 0700 : 0400;
	bool open = (st->st_mode & 0777 & ~allowed) != 0;

	if (!open && (st->st_mode & needed) == needed)
		return;
	t->modes++;
	if (t->f->fix && st->st_uid == geteuid()) {
		mr_auto(sys_close_fd) int fd = sys_open(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);

		fixed = fd >= 0 && sys_chmod_fd(fd, (st->st_mode & 07777 & allowed) | needed | (allowed & 07000)) == 0;
	}
	findings_say(t->f,
	    &(struct mr_finding){ MR_PROBLEM, "modes", buf_z(&t->path), NULL,
		open ? "others on this machine can read it or write into it; mailroom makes nothing so open, whatever "
		       "the umask"
		     : "its own owner cannot use it, so commands fail there",
		fixed ? "its mode was corrected" : "`mailroom doctor --fix` corrects it, if it is yours", fixed },
	    "'%s' has mode %04o", buf_z(&t->path), (unsigned)st->st_mode & 07777);
}

static void
check_owner(struct tree *t, const struct stat *st)
{
	bool shared = maildir_is_shared(t->md);
	unsigned long is = shared ? st->st_gid : st->st_uid, wants = shared ? t->group : t->owner;

	if (is == wants)
		return;
	/* It is not safe to change: a hard link that somebody made here could lead the chown to another file. */
	findings_say(t->f,
	    &(struct mr_finding){ MR_PROBLEM, "owners", buf_z(&t->path), NULL,
		"a command that another user ran (sudo?) made it, and the owner of the room may not be able to use it",
		shared ? "give it to the room's group: chgrp" : "give it to the owner of the room: sudo chown", false },
	    "'%s' belongs to %s %lu, the room to %lu", buf_z(&t->path), shared ? "group" : "user", is, wants);
}

static void
check_mtime(struct tree *t, const struct stat *st)
{
	int64_t ahead = (int64_t)st->st_mtim.tv_sec * 1000 - clock_now_ms();
	char text[24];

	if (ahead <= FINDINGS_FUTURE_MS)
		return;
	duration_text(ahead, text);
	findings_say(t->f,
	    &(struct mr_finding){ MR_PROBLEM, "clock", buf_z(&t->path), NULL,
		"this machine's clock is behind, or was ahead when it was written: until then it counts as new, and "
		"what depends on age (leftovers, 'last seen') waits",
		"compare this machine's clock (date -u) with others'; touch(1) sets the file's time", false },
	    "'%s' was changed in the future: %s ahead of the clock", buf_z(&t->path), text);
}

/* ---- What does not belong there ---- */

static bool
is_temporary(const char *name)
{
	struct mr_str s = str_of(name);

	return str_ends(s, ".tmp") && (str_starts(s, "mr-") || name[0] == '.');
}

/* The message of a fan-out gets its name before its record; without the record it has no meaning. */
static bool
is_unrecorded(const struct tree *t, int dir_fd, const char *name)
{
	char record[NAME_LEN];
	struct stat st;

	if (!str_starts(buf_str(&t->path), "spool/") || !str_ends(str_of(name), ".mr"))
		return false;
	(void)snprintf(record, sizeof record, "%.*s", (int)(strlen(name) - strlen(".mr")), name);
	return sys_stat(dir_fd, record, &st) < 0 && errno == ENOENT;
}

static void
check_stray(struct tree *t, int dir_fd, const char *name, const struct stat *st)
{
	char since[24];

	if (findings_age_ms(st) < FINDINGS_STRAY_MS || findings_in_use(dir_fd, name))
		return;
	t->stray++;
	duration_text(findings_age_ms(st), since);
	findings_take(t->f, dir_fd, name,
	    &(struct mr_finding){ MR_NOTE, "leftovers", buf_z(&t->path), NULL,
		"its writer was killed before the file got its name: nothing reads it, and no send had returned",
		"`mailroom doctor --fix` moves it to the attic", false },
	    "'%s' is a temporary file, %s old", buf_z(&t->path), since);
}

/* Foreign files are neither changed nor read. */
static void
say_foreign(struct tree *t, enum mr_severity severity, const char *what, const char *why)
{
	findings_say(t->f,
	    &(struct mr_finding){ severity, "foreign", buf_z(&t->path), NULL, why,
		"find out whose it is, and move it away; mailroom leaves it alone", false },
	    "'%s' %s", buf_z(&t->path), what);
}

static bool
is_ours_at_the_top(const char *name)
{
	static const char *const ours[] = { "room", ".gitignore", ".git", "agents", "dead", "spool", "keys", "holds",
		"past", "records", "groups", "queues", "channels", "nudges", "types", "links", "reserve", "index",
		ATTIC, NULL };

	return name_is_one_of(name, ours) || is_temporary(name);
}

/* ---- Messages ---- */

static const char junk_why[] =
    "another program or a person put it there: every command that reads the mailbox skips it, and says so";
static const char torn_why[] =
    "a power cut on storage that is not power safe leaves such files, or a program that wrote into the folder "
    "itself: its contents are lost; its sender may have it in .Sent";

/* It holds no readable message, and no process is writing it any more. */
static void
take_torn(struct tree *t, int dir_fd, const char *name, const struct stat *st, const char *why, const char *what)
{
	const char *path = buf_z(&t->path);
	struct mr_finding torn = { .severity = MR_PROBLEM, .code = "messages", .path = path, .why = why };

	t->mail++;
	if (findings_age_ms(st) < FINDINGS_STRAY_MS || findings_in_use(dir_fd, name)) {
		torn.fix =
		    "it is young: look at it; once it is 36 hours old, `mailroom doctor --fix` moves it to the attic";
		findings_say(t->f, &torn, "'%s' %s", path, what);
		return;
	}
	torn.fix = "`mailroom doctor --fix` moves it to the attic";
	findings_take(t->f, dir_fd, name, &torn, "'%s' %s", path, what);
}

static void
check_text(struct tree *t, int dir_fd, const char *name, const struct stat *st, bool ours)
{
	mr_auto(sys_close_fd) int fd = sys_open(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	char text[BEGINNING];
	ssize_t n = fd < 0 ? -1 : sys_read(fd, text, BEGINNING);

	sys_close_fd(&fd); /* an open descriptor would make the file look in use */
	if (n <= 0)
		return; /* it moved, or its mode is reported */
	struct mr_str head = { text, (size_t)n };
	const char *nul = memchr(text, '\0', head.len);

	if (nul && !message_headers_complete((struct mr_str){ text, (size_t)(nul - text) })) {
		take_torn(t, dir_fd, name, st, torn_why, "has zero bytes where its header lines should be");
	} else if (message_parse(head, "", MESSAGE_HEADERS, &msg, IGNORED) == MR_CORRUPT) {
		take_torn(t, dir_fd, name, st, junk_why, "is not a message: there is no header line");
	} else if (ours && head.len < sizeof text && !message_headers_complete(head)) {
		t->mail++;
		findings_say(t->f,
		    &(struct mr_finding){ MR_PROBLEM, "messages", buf_z(&t->path), NULL, torn_why,
			"what is left can still be read (mailroom read); ask its sender to send it again", false },
		    "'%s' ends within its header lines", buf_z(&t->path));
	}
}

/* "0 $MailroomDone": the letter a. */
static uint32_t
read_keywords(int box_fd)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	uint32_t letters = 0;

	if (file_read(box_fd, "dovecot-keywords", KEYWORDS_MAX, &text, IGNORED) != MR_OK)
		return 0;
	for (const char *line = buf_z(&text); line; line = strchr(line, '\n')) {
		line += *line == '\n';
		size_t digits = strspn(line, "0123456789");
		uint64_t number = 0;

		if (digits > 0 && line[digits] == ' ' && str_to_u64((struct mr_str){ line, digits }, &number) &&
		    number < 26)
			letters |= UINT32_C(1) << number;
	}
	return letters;
}

static void
check_mail(struct tree *t, int dir_fd, const char *name, const struct stat *st)
{
	struct file_name parts;
	char ahead[24];

	if (!name_parse(str_of(name), &parts))
		return;
	if (st->st_size == 0)
		take_torn(t, dir_fd, name, st, torn_why, "is empty");
	else if (!t->done || time_ms(st->st_ctim) >= t->done->began_ms ||
		 (strcmp(t->done->through, "-") != 0 && strcmp(name, t->done->through) > 0))
		check_text(t, dir_fd, name, st, parts.ours);
	int64_t ahead_ms = id_time_ms(parts.id) - clock_now_ms();

	if (parts.ours && ahead_ms > FINDINGS_FUTURE_MS) {
		duration_text(ahead_ms, ahead);
		findings_say(t->f,
		    &(struct mr_finding){ MR_PROBLEM, "clock", buf_z(&t->path), NULL,
			"this machine's clock is behind, or its sender's was ahead; newer mail is listed before it "
			"until then",
			"compare the clocks (date -u) of all machines that use this room; the message is kept as it is",
			false },
		    "'%s' is from the future: %s ahead of the clock", buf_z(&t->path), ahead);
	}

	char unknown[27] = "";
	size_t n = 0;

	for (size_t i = 0; i < parts.flags.len && n + 1 < sizeof unknown; i++) {
		char c = parts.flags.ptr[i];
		bool keyword = c >= 'a' && c <= 'z' && (t->keywords & (UINT32_C(1) << (c - 'a')));

		if (!strchr("DFPRST", c) && !keyword)
			unknown[n++] = c;
	}
	if (n > 0)
		findings_say(t->f,
		    &(struct mr_finding){ MR_NOTE, "flags", buf_z(&t->path), NULL,
			"another program or a person set them: mailroom keeps letters that it does not know through "
			"every move",
			"rename the file if they are wrong; the letters of a Maildir are D F P R S T, and those in "
			"dovecot-keywords",
			false },
		    "'%s' has unknown flags: '%s'", buf_z(&t->path), unknown);
}

static const char pack_why[] =
    "the storage lost bytes of it, or another program wrote into it: a pack gets its name when it is whole";

static void
say_lost(void *ctx, const char *id)
{
	struct tree *t = ctx;

	findings_say(t->f,
	    &(struct mr_finding){ MR_PROBLEM, "messages", buf_z(&t->path), NULL, pack_why,
		"a copy of the room may have it; its sender may have it in .Sent", false },
	    "message '%s' in '%s' cannot be read", id, buf_z(&t->path));
}

/* A packed month: pack.c. The readable messages of a damaged pack become files before it goes to the attic. */
static void
check_pack(struct tree *t, int dir_fd)
{
	mr_auto(free_ptr) char *folder = path_parent(buf_z(&t->path));
	struct mr_error trouble = { 0 }, why = { 0 };
	struct mr_finding damaged = { MR_PROBLEM, "messages", buf_z(&t->path), NULL, pack_why,
		"put a whole copy of it there; or `mailroom doctor --fix` makes files of all that can be read in it, and moves "
		"it to the attic",
		false };
	size_t saved = 0;

	if (!folder || pack_check(t->md, folder, &trouble) != MR_CORRUPT)
		return;
	t->mail++;
	if (!t->f->fix) {
		findings_say(t->f, &damaged, "%s", trouble.message);
		return;
	}
	if (pack_salvage(t->room, folder, &saved, say_lost, t, &why) != MR_OK) {
		damaged.fix = why.message;
		findings_say(t->f, &damaged, "%s", trouble.message);
		return;
	}
	findings_take(
	    t->f, dir_fd, PACK_FILE, &damaged, "%s; %zu messages of it are files now", trouble.message, saved);
}

/* ---- Notes of an earlier walk ---- */

static bool
find_notes(struct tree *t, const char *path, struct done_folder *ret)
{
	for (const char *line = buf_z(&t->old); *line; line += strcspn(line, "\n"), line += *line == '\n') {
		struct mr_str rest = { line, strcspn(line, "\n") }, began, through;
		uint64_t ms = 0;

		if (!str_cut(&rest, ' ', &began) || !str_cut(&rest, ' ', &through) || !str_eq(rest, str_of(path)) ||
		    !str_to_u64(began, &ms) || (int64_t)ms > t->now_ms || (int64_t)ms < t->now_ms - NOTES_KEPT_MS)
			continue;
		*ret = (struct done_folder){ (int64_t)ms, arena_dup(&t->own, through), path };
		return ret->through != NULL;
	}
	return false;
}

static void
open_notes(struct tree *t)
{
	struct stat st;

	sha256_hex(str_of(t->room->spec), t->notes_name);
	if (!t->room->state_dir || dir_below(t->room->state_dir, "doctor", true, false, &t->notes_fd, IGNORED) != MR_OK)
		return;
	(void)file_read(t->notes_fd, t->notes_name, NOTES_MAX, &t->old, IGNORED);
	/* The kernel's own clock, by which it sets the times of files. */
	mr_auto(sys_close_fd) int fd = sys_open(t->notes_fd, ".now", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd >= 0 && sys_touch(t->notes_fd, ".now", 0) == 0 && sys_stat_fd(fd, &st) == 0)
		t->now_ms = time_ms(st.st_mtim) - 1000; /* for coarse clocks, and file systems with whole seconds */
}

/* ---- The walk ---- */

enum walk_kind { WALK_PLAIN, WALK_MAIL /* new/ or cur/ */, WALK_WORK /* where a queue keeps work */ };

/* queues/<name>/ready/<p>/<bucket>, or one of the plain folders, at any depth. */
static bool
is_work_folder(const char *path)
{
	static const char *const folders[] = { "ready", "delayed", "claimed", "failed", "done" };
	const char *inside = str_starts(str_of(path), "queues/") ? strchr(path + strlen("queues/"), '/') : NULL;

	for (size_t i = 0; inside && i < sizeof folders / sizeof folders[0]; i++) {
		size_t len = strlen(folders[i]);

		if (strncmp(inside + 1, folders[i], len) == 0 && (inside[1 + len] == '/' || inside[1 + len] == '\0'))
			return true;
	}
	return false;
}

static enum mr_rc walk(struct tree *t, int parent_fd, const char *name, unsigned depth, struct mr_error *err);

static enum mr_rc
look_at(struct tree *t, int fd, const char *name, enum walk_kind kind, unsigned depth, struct mr_error *err)
{
	struct stat st;

	if (sys_stat(fd, name, &st) < 0)
		return MR_OK; /* mail moves during the walk */
	bool ours = depth > 0 || is_ours_at_the_top(name);

	if (!ours)
		say_foreign(t, MR_NOTE, "is not a part of a room", "somebody put it there, or a newer mailroom did");
	if (S_ISLNK(st.st_mode))
		findings_say(t->f,
		    &(struct mr_finding){ MR_PROBLEM, "symlinks", buf_z(&t->path), NULL,
			"another program or a person put it there: mailroom makes no symbolic links and follows none",
			"see where it leads (ls -l), then remove it", false },
		    "'%s' is a symbolic link", buf_z(&t->path));
	if (!ours || S_ISLNK(st.st_mode))
		return MR_OK;
	check_owner(t, &st);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
		say_foreign(t, MR_PROBLEM, "is neither a file nor a folder", "mailroom makes no pipes and no devices");
		return MR_OK;
	}
	check_mode(t, fd, name, &st);
	if (S_ISDIR(st.st_mode) && kind != WALK_MAIL)
		return walk(t, fd, name, depth + 1, err);
	if (S_ISDIR(st.st_mode)) {
		say_foreign(t, MR_PROBLEM, "is a folder where only mail can be", "no agent sees mail in it");
		return MR_OK;
	}
	check_mtime(t, &st);
	if (strcmp(name, PACK_FILE) == 0 && strstr(buf_z(&t->path), "/.Archive."))
		check_pack(t, fd);
	if (is_temporary(name) || is_unrecorded(t, fd, name))
		check_stray(t, fd, name, &st);
	else if (kind != WALK_PLAIN && name[0] != '.')
		check_mail(t, fd, name, &st);
	return MR_OK;
}

static enum mr_rc
walk(struct tree *t, int parent_fd, const char *name, unsigned depth, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	size_t len = t->path.len;
	bool mail = strcmp(name, "new") == 0 || strcmp(name, "cur") == 0;
	enum walk_kind kind = is_work_folder(buf_z(&t->path)) ? WALK_WORK : mail ? WALK_MAIL : WALK_PLAIN;

	if (strcmp(name, ".git") == 0 || (depth == 1 && strcmp(name, ATTIC) == 0) || depth > DEEPEST)
		return MR_OK;
	if (dir_open(parent_fd, name, &fd, err) != MR_OK) {
		if (err->code != MR_NOTFOUND)
			findings_say(t->f,
			    &(struct mr_finding){ MR_PROBLEM, "folders", buf_z(&t->path), NULL,
				"what is in it cannot be seen, and commands that need it fail", err->hint, false },
			    "%s", err->message);
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	TRY(dir_names(fd, &names, err));
	t->keywords = kind == WALK_MAIL ? read_keywords(parent_fd) : 0;
	struct done_folder done;
	bool large = kind != WALK_PLAIN && names.n >= NOTED_MIN, known = large && find_notes(t, buf_z(&t->path), &done);
	size_t trouble = t->f->told;
	enum mr_rc rc = MR_OK;
	size_t i = 0;

	if (large)
		names_sort(&names);
	for (; i < names.n && rc == MR_OK; i++) {
		t->done = known ? &done : NULL;
		buf_addf(&t->path, "%s%s", len ? "/" : "", names.v[i]);
		rc = look_at(t, fd, names.v[i], kind, depth, err);
		t->path.len = len;
		if (t->path.ptr)
			t->path.ptr[len] = '\0';
		t->seen += kind != WALK_PLAIN;
		if (rc == MR_OK && kind != WALK_PLAIN && t->seen % 64 == 0 &&
		    !room_step(t->room, "messages", t->seen, t->total))
			rc = mr_fail(err, MR_STOPPED,
			    "stopped after %zu messages; the findings above are all that was found in them\n"
			    "the same command continues from there, for one day",
			    t->seen);
	}
	t->done = NULL;
	if (large && trouble == t->f->told && i > 0 && t->now_ms > 0) {
		const char *through = i < names.n ? names.v[i - 1] : "-";

		/* Stopped before the end of what an earlier walk had read: the rest still counts as read. */
		if (known && (strcmp(done.through, "-") == 0 || (i < names.n && strcmp(through, done.through) < 0)))
			through = done.through;
		buf_addf(
		    &t->new, "%lld %s %s\n", (long long)(known ? done.began_ms : t->now_ms), through, buf_z(&t->path));
	}
	return rc;
}

struct counting {
	size_t files;
	struct mr_names folders;
};

static bool
count_entry(void *ctx, const struct dir_entry *entry)
{
	struct counting *c = ctx;

	c->files += entry->type != DT_DIR;
	return entry->type != DT_DIR || names_add(&c->folders, str_of(entry->name));
}

/* Counts messages by names alone, to estimate the remaining time. */
static size_t
count_messages(int parent_fd, const char *name, unsigned depth)
{
	struct counting c = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	bool mail = strcmp(name, "new") == 0 || strcmp(name, "cur") == 0;

	if (depth > DEEPEST || dir_open(parent_fd, name, &fd, IGNORED) != MR_OK)
		return 0;
	(void)dir_each(fd, count_entry, &c, IGNORED);
	size_t n = mail ? c.files : 0;

	for (size_t i = 0; i < c.folders.n; i++)
		n += count_messages(fd, c.folders.v[i], depth + 1);
	mr_names_done(&c.folders);
	return n;
}

static void
say_none(struct tree *t, size_t found, const char *code, const char *what)
{
	if (found == 0)
		findings_say(t->f, &(struct mr_finding){ .severity = MR_FINE, .code = code }, "%s", what);
}

enum mr_rc
inspect_tree(struct mr_room *room, struct findings *f, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	mr_auto(tree_done) struct tree t = { .room = room, .md = md, .f = f, .notes_fd = -1 };
	mr_auto(sys_close_fd) int root = -1;
	struct stat st;

	TRY(dir_open(md->root_fd, ".", &root, err));
	if (sys_stat_fd(root, &st) < 0)
		return mr_fail_errno(err, "cannot look at the room");
	t.owner = st.st_uid;
	t.group = st.st_gid;
	findings_space(f, root);
	buf_adds(&t.path, ".");
	check_mode(&t, root, ".", &st);
	buf_clear(&t.path);
	open_notes(&t);
	if (room->progress)
		t.total = count_messages(root, "agents", 0);
	enum mr_rc rc = walk(&t, root, ".", 0, err);

	if (t.now_ms > 0 && buf_ok(&t.new) && (t.new.len > 0 || t.old.len > 0))
		(void)file_replace(t.notes_fd, t.notes_name, buf_str(&t.new), 0600, IGNORED);
	TRY(rc);
	say_none(&t, t.modes, "modes", "nothing is open to others");
	say_none(&t, t.stray, "leftovers", "no temporary files were left behind");
	say_none(&t, t.mail, "messages", "no message is empty or torn");
	return MR_OK;
}
