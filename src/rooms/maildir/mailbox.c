/* SPDX-License-Identifier: MIT */
/*
 * mailbox.c - an agent's folders. They are held as descriptors and opened at their first use. Nothing here follows a
 * symbolic link: a planted one is refused by name and never leads outside.
 *
 * A handle keeps the mailbox that it used last, because a command that takes a thousand messages asks for the same
 * folders three thousand times. A kept descriptor may be stale: new/ and cur/ are replaced (renew.c), held/<life> is
 * renamed away when the life is taken over (recover.c) and removed when it is large and empty, a month is removed
 * (retain.c), or a person moves a mailbox. So after 20 ms the names are checked again, and descriptors that no longer
 * match are closed. Thus an operation uses folders that belonged to the mailbox when it began, or 20 ms before; since
 * any operation may take that long, all of them can handle this. The same holds for the file `agent`. A takeover is
 * checked for each time: a claim looks at lives/, and settling uses the name held/<life>.
 */
#include "rooms/maildir/maildir.h"

#define KEYWORDS_FILE "dovecot-keywords"
#define KEYWORDS_LINE "0 $MailroomDone"
#define KEYWORDS_LIMIT ((size_t)64 << 10)
#define TRUSTED_MS 20

static const char *const folder_names[BOX_FOLDERS] = {
	[BOX_NEW] = "new",
	[BOX_CUR] = "cur",
	[BOX_TMP] = "tmp",
	[BOX_HELD] = "held",
};

#define PARTS_N 5
static const char *const parts[PARTS_N + 1] = { "tmp", "new", "cur", "held", "lives", NULL };

bool
mailbox_has_part(const char *name)
{
	return name_is_one_of(name, parts);
}

const char *
mailbox_folder_name(enum box_folder which)
{
	return folder_names[which];
}

/* ---- Opening ---- */

enum mr_rc
maildir_folder(struct maildir *md, int dir_fd, const char *path, bool make, int *ret_fd, struct mr_error *err)
{
	return make ? dir_make(dir_fd, path, md->dir_mode, md->sync, ret_fd, err) : dir_open(dir_fd, path, ret_fd, err);
}

enum mr_rc
names_in(int dir_fd, const char *path, int *ret_fd, struct mr_names *ret, struct mr_error *err)
{
	size_t n = 0;

	TRY(mr_unless(dir_open_names(dir_fd, path, ret_fd, ret, err), MR_NOTFOUND, err));
	for (size_t i = 0; i < ret->n; i++) {
		if (ret->v[i][0] == '.')
			free(ret->v[i]);
		else
			ret->v[n++] = ret->v[i];
	}
	ret->n = n;
	names_sort(ret);
	return MR_OK;
}

bool
mailbox_holds_nothing(const struct mailbox *box)
{
	struct stat st;

	return box->md->counts_folders && sys_stat(box->fd, folder_names[BOX_HELD], &st) == 0 && st.st_nlink == 2 &&
	       st.st_dev == box->md->dev;
}

void
mailbox_close(struct mailbox *box)
{
	sys_close_fd(&box->fd);
	for (int i = 0; i < BOX_FOLDERS; i++)
		sys_close_fd(&box->folder[i]);
	*box = MAILBOX_INIT;
}

enum mr_rc
mailbox_open_any(struct mailbox *box, struct maildir *md, const char *agent, struct mr_error *err)
{
	struct mailbox opened = MAILBOX_INIT;

	if (agent[0] == '\0' || strlen(agent) > MR_ADDRESS_MAX)
		return mr_fail(err, MR_NOTFOUND, "no mailbox '%s'", agent);
	int64_t now_ms = clock_boot_ms();

	if (md->kept.md && strcmp(md->kept.agent, agent) == 0) {
		*box = md->kept;
		md->kept = MAILBOX_INIT;
		if (now_ms - box->opened_ms < TRUSTED_MS)
			return MR_OK;
		if (file_is_same(box->fd, NULL, md->agents_fd, agent)) {
			(void)mailbox_refresh(box);
			box->registered = false;
			box->opened_ms = now_ms;
			return MR_OK;
		}
		mailbox_close(box);
	}
	opened.md = md;
	text_join(opened.agent, sizeof opened.agent, agent, NULL);
	enum mr_rc rc = dir_reach(md->agents_fd, agent, &opened.fd, err);

	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND, "no mailbox '%s'", agent);
	if (rc != MR_OK)
		return mr_wrap(err, "mailbox '%s'", agent);
	opened.opened_ms = now_ms;
	*box = opened;
	return MR_OK;
}

enum mr_rc
mailbox_open(struct mailbox *box, struct maildir *md, const char *agent, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox opened = MAILBOX_INIT;
	struct stat st;

	TRY(mailbox_open_any(&opened, md, agent, err));
	bool looked = opened.registered || sys_stat(opened.fd, "agent", &st) == 0;

	/* A folder without `agent` is half made, pruned, or only the parent of a deeper name. An error must not look
	 * like that, because an accepted fan-out would then skip this recipient. */
	if (!looked && errno != ENOENT)
		return mr_fail_errno(err, "cannot look at mailbox '%s'", agent);
	if (!opened.registered && (!looked || !S_ISREG(st.st_mode)))
		return mr_fail(err, MR_NOTFOUND, "no mailbox '%s'", agent);
	opened.registered = true;
	*box = opened;
	opened = MAILBOX_INIT;
	return MR_OK;
}

enum mr_rc
mailbox_open_dead(struct mailbox *box, struct maildir *md, struct mr_error *err)
{
	struct mailbox opened = MAILBOX_INIT;

	opened.md = md;
	enum mr_rc rc = dir_reach(md->root_fd, "dead", &opened.fd, err);

	if (rc == MR_NOTFOUND && dir_make(md->root_fd, "dead", md->dir_mode, md->sync, &opened.fd, err) != MR_OK)
		return mr_wrap(err, "dead letters");
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	*box = opened;
	return MR_OK;
}

void
mailbox_done(struct mailbox *box)
{
	if (box == NULL || box->md == NULL) /* zeroed or never opened */
		return;
	struct mailbox last = *box;

	if (last.agent[0] != '\0') { /* not the dead letters */
		*box = last.md->kept;
		last.md->kept = last;
	}
	mailbox_close(box);
}

/* The path at which an open folder was opened. */
static struct path
folder_path(const struct mailbox *box, enum box_folder which)
{
	char life[21];

	if (which == BOX_MONTH)
		return path_of(box->month, "/cur", NULL);
	if (which != BOX_LIFE)
		return path_of(folder_names[which], NULL);
	(void)text_number(life, box->life, 0);
	return path_of("held/", life, NULL);
}

bool
mailbox_refresh(struct mailbox *box)
{
	bool removed = false;

	for (unsigned which = 0; which < BOX_FOLDERS; which++) {
		struct stat st;

		if (box->folder[which] < 0)
			continue;

		removed |= sys_stat_fd(box->folder[which], &st) < 0 || st.st_nlink == 0;
		if (!file_is_same(box->folder[which], NULL, box->fd, folder_path(box, (enum box_folder)which).z))
			sys_close_fd(&box->folder[which]);
	}
	return removed;
}

int
mailbox_take(struct mailbox *box, enum box_folder which)
{
	return sys_take_fd(&box->folder[which]);
}

enum mr_rc
mailbox_folder(struct mailbox *box, enum box_folder which, int *ret_fd, struct mr_error *err)
{
	const char *name = folder_names[which];

	if (box->folder[which] < 0) {
		int fd = -1;
		/* tmp/ is only needed for names in it, and usually not even for that: a staged file has no name. */
		enum mr_rc rc = (which == BOX_TMP ? dir_reach : dir_open)(box->fd, name, &fd, err);

		if (rc == MR_NOTFOUND) /* a copying tool dropped the empty folder */
			rc = dir_make(box->fd, name, box->md->dir_mode, box->md->sync, &fd, err);
		if (rc != MR_OK)
			return mr_wrap(err, "mailbox '%s'", box->agent[0] != '\0' ? box->agent : "dead");
		box->folder[which] = fd;
	}
	*ret_fd = box->folder[which];
	return MR_OK;
}

enum mr_rc
mailbox_held(struct mailbox *box, unsigned life, bool make, int *ret_fd, struct mr_error *err)
{
	int held_fd = -1, fd = -1;
	struct stat st;

	if (box->life != life)
		sys_close_fd(&box->folder[BOX_LIFE]);
	box->life = life;
	const struct path path = folder_path(box, BOX_LIFE);

	/* With `make` it was opened just now, or the caller checks lives/. Otherwise: does it still belong to this
	 * life? */
	if (!make && box->folder[BOX_LIFE] >= 0 && (sys_stat(box->fd, path.z, &st) < 0 || st.st_ino != box->life_inode))
		sys_close_fd(&box->folder[BOX_LIFE]);
	if (box->folder[BOX_LIFE] < 0) {
		TRY(mailbox_folder(box, BOX_HELD, &held_fd, err));
		TRY(maildir_folder(box->md, held_fd, path.z + strlen("held/"), make, &fd, err));
		box->folder[BOX_LIFE] = fd;
		box->life_inode = sys_stat_fd(fd, &st) == 0 ? st.st_ino : 0;
	}
	*ret_fd = box->folder[BOX_LIFE];
	return MR_OK;
}

/* ---- Making ---- */

/* Makes the first n parts, then syncs each and their parent once: a journal needs only one commit for all of them. */
static enum mr_rc
make_parts(struct maildir *md, bool sync, int parent_fd, size_t n, struct mr_error *err)
{
	int fds[PARTS_N];
	size_t made = 0;
	enum mr_rc rc = MR_OK;

	for (; made < n && rc == MR_OK; made += rc == MR_OK)
		rc = dir_make(parent_fd, parts[made], md->dir_mode, false, &fds[made], err);
	for (size_t i = 0; i < made; i++) {
		if (rc == MR_OK && sync && sys_fsync(fds[i]) < 0)
			rc = mr_fail_errno(err, "cannot make folder '%s' durable", parts[i]);
		sys_close_fd(&fds[i]);
	}
	if (rc == MR_OK && sync && sys_fsync(parent_fd) < 0)
		rc = mr_fail_errno(err, "cannot make folder '%s' durable", parts[0]);
	return rc;
}

/* A small file in a folder. It may exist already. */
static enum mr_rc
make_file(
    struct mailbox *box, int fd, const char *name, struct mr_str text, enum publish_sync sync, struct mr_error *err)
{
	int tmp_fd = -1;

	TRY(mailbox_folder(box, BOX_TMP, &tmp_fd, err));
	enum mr_rc rc = file_publish(fd, tmp_fd, name, text, box->md->file_mode, sync, err);

	return rc == MR_EXISTS ? MR_OK : rc;
}

/* Without this file the letter 'a' in a name would have no meaning, and Dovecot might assign it. */
static enum mr_rc
write_keywords(struct mailbox *box, int sub_fd, struct mr_error *err)
{
	struct stat st;

	if (sys_stat(sub_fd, KEYWORDS_FILE, &st) == 0)
		return MR_OK;
	return make_file(box, sub_fd, KEYWORDS_FILE, STR(KEYWORDS_LINE "\n"), box->md->publish, err);
}

/* Copies of sent mail are a courtesy, so their folders are not synced. */
static enum mr_rc
make_subfolder(struct mailbox *box, const char *name, struct mr_error *err)
{
	mr_auto(sys_close_fd) int sub_fd = -1;
	bool sync = box->md->sync && !str_starts(str_of(name), SENT_FOLDER);

	TRY(dir_make(box->fd, name, box->md->dir_mode, sync, &sub_fd, err));
	if (str_starts(str_of(name), ARCHIVE_FOLDER "."))
		TRY(write_keywords(box, sub_fd, err));
	TRY(make_file(box, sub_fd, "maildirfolder", STR(""), PUBLISH_NOSYNC, err));
	return make_parts(box->md, sync, sub_fd, 3, err); /* cur/ is made last: if it exists, so do the others */
}

enum mr_rc
mailbox_make(struct maildir *md, const char *agent, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	char id[MR_ID_LEN + 1], sent[24];

	box.md = md;
	text_join(box.agent, sizeof box.agent, agent, NULL);
	if (dir_make(md->agents_fd, agent, md->dir_mode, md->sync, &box.fd, err) != MR_OK ||
	    make_parts(md, md->sync, box.fd, PARTS_N, err) != MR_OK)
		return mr_wrap(err, "make mailbox '%s'", agent);
	/* Made here, so that the first send is faster. */
	id_new(id);
	name_month(SENT_FOLDER, id_time_ms(id), sent);
	(void)make_subfolder(&box, sent, IGNORED);
	return MR_OK;
}

enum mr_rc
mailbox_subfolder(struct mailbox *box, const char *name, bool make, int *ret_cur_fd, struct mr_error *err)
{
	const struct path path = path_of(name, "/cur", NULL);
	enum mr_rc rc = MR_OK;
	int fd = -1;

	if (strcmp(box->month, name) != 0)
		sys_close_fd(&box->folder[BOX_MONTH]);
	text_join(box->month, sizeof box->month, strlen(name) < sizeof box->month ? name : "", NULL);
	if (box->folder[BOX_MONTH] < 0) {
		rc = dir_open(box->fd, path.z, &fd, err);
		if (rc == MR_NOTFOUND && make) {
			rc = make_subfolder(box, name, err);
			if (rc == MR_OK)
				rc = dir_open(box->fd, path.z, &fd, err);
		}
		box->folder[BOX_MONTH] = fd;
	}
	*ret_cur_fd = box->folder[BOX_MONTH];
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return mr_wrap(err, "folder '%s' of '%s'", name, box->agent);
	return rc;
}

/* ---- The letter 'a' ---- */

enum keyword
mailbox_keyword(struct mailbox *box, const char *subfolder)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	const struct path path = path_of(subfolder, subfolder[0] != '\0' ? "/" : "", KEYWORDS_FILE, NULL);

	if (file_read(box->fd, path.z, KEYWORDS_LIMIT, &text, IGNORED) != MR_OK)
		return KEYWORD_NOBODYS;
	for (const char *line = buf_z(&text); *line;) {
		size_t len = strcspn(line, "\n");
		struct mr_str trimmed = str_trim((struct mr_str){ line, len });

		if (str_starts(trimmed, "0 "))
			return str_eq(trimmed, STR(KEYWORDS_LINE)) ? KEYWORD_OURS : KEYWORD_FOREIGN;
		line += len + (line[len] == '\n');
	}
	return KEYWORD_NOBODYS;
}

bool
mailbox_map_acked(struct mailbox *box, const char *subfolder)
{
	mr_auto(sys_close_fd) int fd = -1;
	enum keyword now = mailbox_keyword(box, subfolder);

	if (now != KEYWORD_NOBODYS)
		return now == KEYWORD_OURS;
	if (dir_open(box->fd, subfolder[0] != '\0' ? subfolder : ".", &fd, IGNORED) != MR_OK ||
	    write_keywords(box, fd, IGNORED) != MR_OK)
		return false;
	return mailbox_keyword(box, subfolder) == KEYWORD_OURS; /* the file may have existed without a line 0 */
}
