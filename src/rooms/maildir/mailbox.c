/* SPDX-License-Identifier: MIT */
/*
 * mailbox.c - an agent's folders. They are held as descriptors and opened when first used; nothing
 * here follows a symbolic link, so a planted one is refused with its name and never leads outside.
 */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>
#include <stdio.h>

#define KEYWORDS_FILE "dovecot-keywords"
#define KEYWORDS_TEXT "0 $MailroomDone\n"
#define KEYWORDS_LIMIT ((size_t)64 << 10)

static const char *const folder_names[BOX_FOLDERS] = {
	[BOX_NEW] = "new",
	[BOX_CUR] = "cur",
	[BOX_TMP] = "tmp",
	[BOX_HELD] = "held",
};

static enum mr_rc
open_at(
    struct mailbox *box, struct maildir *md, int parent_fd, const char *path, const char *agent, struct mr_error *err)
{
	struct mailbox opened = MAILBOX_INIT;

	opened.md = md;
	text_join(opened.agent, sizeof(opened.agent), agent, NULL);

	TRY(dir_reach(parent_fd, path, &opened.fd, err));
	*box = opened;
	return MR_OK;
}

enum mr_rc
mailbox_open_any(struct mailbox *box, struct maildir *md, const char *agent, struct mr_error *err)
{
	if (agent[0] == '\0' || strlen(agent) > MR_ADDRESS_MAX)
		return mr_fail(err, MR_NOTFOUND, "no mailbox '%s'", agent);
	enum mr_rc rc = open_at(box, md, md->agents_fd, agent, agent, err);
	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND, "no mailbox '%s'", agent);
	return rc == MR_OK ? rc : mr_wrap(err, "mailbox '%s'", agent);
}

enum mr_rc
mailbox_open(struct mailbox *box, struct maildir *md, const char *agent, struct mr_error *err)
{
	struct mailbox opened = MAILBOX_INIT;
	struct stat st;

	enum mr_rc rc = mailbox_open_any(&opened, md, agent, err);
	if (rc != MR_OK)
		return rc;
	bool looked = sys_stat(opened.fd, "agent", &st) == 0;
	if (looked && S_ISREG(st.st_mode)) {
		*box = opened;
		return MR_OK;
	}
	/* A folder without `agent` is nobody's: half made, pruned, or only on the way to a deeper name. But who
	 * cannot look must not say so: an accepted fan-out would go on without this recipient. */
	if (looked || errno == ENOENT)
		rc = mr_fail(err, MR_NOTFOUND, "no mailbox '%s'", agent);
	else
		rc = mr_fail_errno(err, "cannot look at mailbox '%s'", agent);
	mailbox_done(&opened);
	return rc;
}

enum mr_rc
mailbox_open_dead(struct mailbox *box, struct maildir *md, struct mr_error *err)
{
	enum mr_rc rc = open_at(box, md, md->root_fd, "dead", "", err);
	if (rc != MR_NOTFOUND)
		return rc;
	int fd = -1;
	rc = dir_make(md->root_fd, "dead", md->dir_mode, md->sync, &fd, err);
	if (rc != MR_OK)
		return mr_wrap(err, "dead letters");
	sys_close_fd(&fd);
	return open_at(box, md, md->root_fd, "dead", "", err);
}

const char *
mailbox_folder_name(enum box_folder which)
{
	return folder_names[which];
}

enum mr_rc
mailbox_folder(struct mailbox *box, enum box_folder which, int *ret_fd, struct mr_error *err)
{
	if (box->folder[which] < 0) {
		/* tmp/ is only for names beneath it, and mostly for none: what is staged there has no name. */
		enum mr_rc rc =
		    (which == BOX_TMP ? dir_reach : dir_open)(box->fd, folder_names[which], &box->folder[which], err);
		if (rc == MR_NOTFOUND) /* a copy made by a tool that drops empty folders */
			rc = dir_make(
			    box->fd, folder_names[which], box->md->dir_mode, box->md->sync, &box->folder[which], err);
		if (rc != MR_OK) {
			box->folder[which] = -1;
			return mr_wrap(err, "mailbox '%s'", box->agent[0] != '\0' ? box->agent : "dead");
		}
	}
	*ret_fd = box->folder[which];
	return MR_OK;
}

enum mr_rc
mailbox_held(struct mailbox *box, unsigned life, bool make, int *ret_fd, struct mr_error *err)
{
	char name[16];
	int held_fd = -1;

	enum mr_rc rc = mailbox_folder(box, BOX_HELD, &held_fd, err);
	if (rc != MR_OK)
		return rc;
	(void)snprintf(name, sizeof(name), "%u", life);
	rc = dir_open(held_fd, name, ret_fd, err);
	if (rc == MR_NOTFOUND && make)
		rc = dir_make(held_fd, name, box->md->dir_mode, box->md->sync, ret_fd, err);
	return rc;
}

/* Without this file the letter 'a' in a name would mean nothing, and Dovecot might give it away. */
static enum mr_rc
write_keywords(struct mailbox *box, int sub_fd, struct mr_error *err)
{
	struct stat st;
	int tmp_fd = -1;

	if (sys_stat(sub_fd, KEYWORDS_FILE, &st) == 0)
		return MR_OK;
	enum mr_rc rc = mailbox_folder(box, BOX_TMP, &tmp_fd, err);
	if (rc == MR_OK)
		rc = file_publish(sub_fd, tmp_fd, KEYWORDS_FILE, STR(KEYWORDS_TEXT), box->md->file_mode,
		    box->md->sync ? PUBLISH_FULL : PUBLISH_NOSYNC, err);
	return rc == MR_EXISTS ? MR_OK : rc;
}

#define PARTS_MAX 5

/* Makes the folders, then syncs each and their parent once: with a journal that is one commit for all of them. */
static enum mr_rc
make_parts(struct maildir *md, int parent_fd, const char *const *parts, size_t n, struct mr_error *err)
{
	int fds[PARTS_MAX];
	size_t made = 0;
	enum mr_rc rc = MR_OK;

	for (; made < n && rc == MR_OK; made += rc == MR_OK)
		rc = dir_make(parent_fd, parts[made], md->dir_mode, false, &fds[made], err);
	for (size_t i = 0; i < made; i++) {
		if (rc == MR_OK && md->sync && sys_fsync(fds[i]) < 0)
			rc = mr_fail_errno(err, "cannot make folder '%s' durable", parts[i]);
		sys_close_fd(&fds[i]);
	}
	if (rc == MR_OK && md->sync && sys_fsync(parent_fd) < 0)
		rc = mr_fail_errno(err, "cannot make folder '%s' durable", parts[0]);
	return rc;
}

static enum mr_rc
make_subfolder(struct mailbox *box, const char *name, struct mr_error *err)
{
	static const char *const parts[] = { "tmp", "new", "cur" };
	mr_auto(sys_close_fd) int sub_fd = -1;
	int tmp_fd = -1;

	enum mr_rc rc = dir_make(box->fd, name, box->md->dir_mode, box->md->sync, &sub_fd, err);
	if (rc == MR_OK)
		rc = mailbox_folder(box, BOX_TMP, &tmp_fd, err);
	if (rc == MR_OK && strncmp(name, ".Archive.", 9) == 0)
		rc = write_keywords(box, sub_fd, err);
	if (rc == MR_OK) {
		rc = file_publish(sub_fd, tmp_fd, "maildirfolder", STR(""), box->md->file_mode, PUBLISH_NOSYNC, err);
		rc = rc == MR_EXISTS ? MR_OK : rc;
	}
	/* cur/ comes last: whoever finds it may take the rest for made. */
	return rc == MR_OK ? make_parts(box->md, sub_fd, parts, 3, err) : rc;
}

enum mr_rc
mailbox_subfolder(struct mailbox *box, const char *name, bool make, int *ret_cur_fd, struct mr_error *err)
{
	char path[NAME_LEN];

	if (snprintf(path, sizeof(path), "%s/cur", name) >= (int)sizeof(path))
		return mr_fail(err, MR_REFUSED, "folder name '%.40s...' is too long", name);
	enum mr_rc rc = dir_open(box->fd, path, ret_cur_fd, err);
	if (rc == MR_NOTFOUND && make) {
		rc = make_subfolder(box, name, err);
		if (rc == MR_OK)
			rc = dir_open(box->fd, path, ret_cur_fd, err);
	}
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return mr_wrap(err, "folder '%s' of '%s'", name, box->agent);
	return rc;
}

enum keyword
mailbox_keyword(struct mailbox *box, const char *subfolder)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error ignored = { 0 };
	char path[NAME_LEN];

	if (snprintf(path, sizeof(path), "%s%s%s", subfolder, subfolder[0] != '\0' ? "/" : "", KEYWORDS_FILE) >=
	    (int)sizeof(path))
		return KEYWORD_NOBODYS;
	if (file_read(box->fd, path, KEYWORDS_LIMIT, &text, &ignored) != MR_OK)
		return KEYWORD_NOBODYS;
	for (struct mr_str rest = buf_str(&text); rest.len > 0;) {
		const char *end = memchr(rest.ptr, '\n', rest.len);
		size_t len = end != NULL ? (size_t)(end - rest.ptr) : rest.len;
		struct mr_str line = str_trim((struct mr_str){ rest.ptr, len });
		if (str_starts(line, "0 "))
			return str_eq(line, STR("0 $MailroomDone")) ? KEYWORD_OURS : KEYWORD_FOREIGN;
		size_t step = end != NULL ? len + 1 : len;
		rest = (struct mr_str){ rest.ptr + step, rest.len - step };
	}
	return KEYWORD_NOBODYS;
}

bool
mailbox_map_acked(struct mailbox *box, const char *subfolder)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_error ignored = { 0 };

	enum keyword now = mailbox_keyword(box, subfolder);
	if (now != KEYWORD_NOBODYS)
		return now == KEYWORD_OURS;
	if (dir_open(box->fd, subfolder[0] != '\0' ? subfolder : ".", &fd, &ignored) != MR_OK ||
	    write_keywords(box, fd, &ignored) != MR_OK)
		return false;
	return mailbox_keyword(box, subfolder) == KEYWORD_OURS; /* the file may have been there without a line 0 */
}

enum mr_rc
mailbox_make(struct maildir *md, const char *agent, struct mr_error *err)
{
	static const char *const parts[PARTS_MAX] = { "tmp", "new", "cur", "held", "lives" };
	mr_auto(sys_close_fd) int box_fd = -1;

	enum mr_rc rc = dir_make(md->agents_fd, agent, md->dir_mode, md->sync, &box_fd, err);
	if (rc == MR_OK)
		rc = make_parts(md, box_fd, parts, PARTS_MAX, err);
	return rc == MR_OK ? rc : mr_wrap(err, "make mailbox '%s'", agent);
}

void
mailbox_done(struct mailbox *box)
{
	if (box == NULL || box->md == NULL) /* zeroed or never opened */
		return;
	sys_close_fd(&box->fd);
	for (int i = 0; i < BOX_FOLDERS; i++)
		sys_close_fd(&box->folder[i]);
	*box = MAILBOX_INIT;
}
