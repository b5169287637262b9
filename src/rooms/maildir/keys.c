/* SPDX-License-Identifier: MIT */
/*
 * keys.c - send keys: a retry with the same key is the same send.
 *
 * keys/<sender>/<sha256 of the key> is a hard link to the spool record of the send that used it, so
 * it says which id and which content (Digest:), and its link count says whether that send is still
 * under way (2: spool/ has it too) or complete (1). link(2) picks one winner among any number of
 * senders. A sender that finds the key taken
 *
 *	- refuses, if the content was another and counts;
 *	- else completes that send if its sender died (the record's lock is free), waits if it lives;
 *	- and returns its id.
 *
 * One race needs care: the winner may fail before its first link and withdraw. It removes the key
 * before the record, so "no record" means "delivered" only if the key is still the same file
 * afterwards; otherwise the key is free again and the search begins anew.
 */
#include "rooms/maildir/maildir.h"

#define KEY_WAIT_MS 10000
#define KEY_RECORD_MAX ((size_t)64 << 20)
#define KEEP_MS (7 * DAY_MS)
#define SWEPT ".swept" /* its mtime: when old keys of that sender were looked for last */

enum mr_rc
key_check(const char *key, struct mr_error *err)
{
	struct mr_str s = str_of(key);

	if (s.len > 0 && s.len <= ROOM_KEY_MAX && !header_value_problem(s) && str_trim(s).len == s.len)
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "that key cannot be used\na key is 1-%d bytes of UTF-8 text, one line, no spaces around it", ROOM_KEY_MAX);
}

struct key_file {
	int fd; /* keys/<sender> */
	char name[65];
};

static void
key_close(struct key_file *file)
{
	sys_close_fd(&file->fd);
}

static struct path
key_folder(const char *sender)
{
	char escaped[NAME_LEN];

	name_escape(sender ? sender : "", escaped);
	return path_of("keys/", escaped, NULL);
}

static enum mr_rc
key_open(
    struct key_file *file, struct maildir *md, const char *sender, const char *key, bool make, struct mr_error *err)
{
	sha256_hex(str_of(key), file->name);
	return maildir_folder(md, md->root_fd, key_folder(sender).z, make, &file->fd, err);
}

enum mr_rc
key_take(struct spool_job *job, const char *sender, const char *key, struct mr_error *err)
{
	mr_auto(key_close) struct key_file file = { .fd = -1 };
	int linked = -1;

	/* The second try is for a folder that was empty for long and was removed at this moment (key_expire). */
	for (int tries = 0; tries < 2 && linked < 0; tries++) {
		key_close(&file);
		if (key_open(&file, job->md, sender, key, true, err) != MR_OK)
			return mr_wrap(err, "cannot keep key '%s'", key);
		linked = sys_link(job->spool_fd, job->id, file.fd, file.name);
		if (linked < 0 && errno != ENOENT)
			break;
	}
	if (linked < 0) {
		if (errno != EEXIST)
			return mr_fail_errno(err, "cannot keep key '%s'", key);
		if (!file_is_same(job->record_fd, NULL, file.fd, file.name))
			return mr_fail(err, MR_EXISTS, "key '%s' is taken", key);
	}
	if (commit_name(job->md, job->record_fd, file.fd) < 0)
		return mr_fail_errno(err, "cannot make key '%s' durable", key);
	return MR_OK;
}

enum mr_rc
key_drop(struct spool_job *job, const char *sender, const char *key, struct mr_error *err)
{
	mr_auto(key_close) struct key_file file = { .fd = -1 };
	enum mr_rc rc = key_open(&file, job->md, sender, key, false, err);

	if (rc == MR_NOTFOUND || (rc == MR_OK && !file_is_same(job->record_fd, NULL, file.fd, file.name)))
		return MR_OK;
	if (rc != MR_OK)
		return rc;
	/* If the removal is not durable, the key would outlive its record: then the record must stay and be
	 * completed. */
	if ((sys_unlink(file.fd, file.name) < 0 && errno != ENOENT) || (job->md->sync && sys_fsync(file.fd) < 0))
		return mr_fail_errno(err, "cannot release key '%s'", key);
	return MR_OK;
}

/* ---- Finding the send that used it ---- */

struct key_owner {
	int fd; /* stays open while we compare inodes, so that the number is not given to another file */
	struct stat st;
	char id[MR_ID_LEN + 1];
	char digest[65];
};

static void
owner_done(struct key_owner *owner)
{
	sys_close_fd(&owner->fd);
}

static enum mr_rc
read_owner(const struct key_file *file, const char *key, struct key_owner *ret, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;

	ret->fd = sys_open(file->fd, file->name, O_RDONLY, 0);
	if (ret->fd < 0 && errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "key '%s' was not used", key);
	if (ret->fd < 0 || sys_stat_fd(ret->fd, &ret->st) < 0)
		return mr_fail_errno(err, "cannot look up key '%s'", key);
	if (file_read_fd(ret->fd, KEY_RECORD_MAX, &text, err) != MR_OK ||
	    record_parse(buf_str(&text), &lines, err) != MR_OK)
		return mr_wrap(err, "cannot look up key '%s'", key);
	const char *id = record_get(&lines, "Id"), *digest = record_get(&lines, "Digest");

	if (!id || !id_valid(str_of(id)) || !digest || strlen(digest) != 64)
		return mr_fail(err, MR_CORRUPT, "the record of key '%s' has no id or digest", key);
	memcpy(ret->id, id, sizeof ret->id);
	memcpy(ret->digest, digest, sizeof ret->digest);
	return MR_OK;
}

/* Completes the owner's send if necessary. MR_NOTFOUND: it withdrew, the key is free. */
static enum mr_rc
complete_owner(struct mr_room *room, const struct key_file *file, const struct key_owner *owner, struct mr_error *err)
{
	mr_auto(spool_done) struct spool_job job;
	struct stat now;
	bool lost = false;

	enum mr_rc rc = spool_lock(&job, room, owner->id, KEY_WAIT_MS, err);

	if (rc == MR_BUSY)
		return mr_hint(err, "try again with the same key");
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	if (rc == MR_OK && spool_roll_forward(&job, &lost, err) != MR_OK) {
		err->code = MR_INDOUBT;
		return mr_wrap(err, "cannot complete message '%s'", owner->id);
	}
	if (sys_stat(file->fd, file->name, &now) < 0 || now.st_ino != owner->st.st_ino)
		return mr_fail(err, MR_NOTFOUND, "message '%s' was withdrawn", owner->id);
	return MR_OK;
}

enum mr_rc
key_find(struct mr_room *room, const char *sender, const char *key, const char *digest, char ret_id[MR_ID_LEN + 1],
    struct mr_error *err)
{
	mr_auto(key_close) struct key_file file = { .fd = -1 };
	mr_auto(owner_done) struct key_owner owner = { .fd = -1 };

	TRY(key_open(&file, maildir_of(room), sender, key, false, err));
	TRY(read_owner(&file, key, &owner, err));
	if (digest && strcmp(owner.digest, digest) != 0)
		return mr_fail(err, MR_REFUSED,
		    "key '%s' was used for another message (%s)\n"
		    "a retry must repeat the message exactly; a new message needs a new key",
		    key, owner.id);
	enum mr_rc rc = complete_owner(room, &file, &owner, err);

	if (rc == MR_OK || rc == MR_INDOUBT)
		memcpy(ret_id, owner.id, sizeof owner.id);
	return rc;
}

void
key_expire(struct mr_room *room, const char *sender)
{
	mr_auto(key_close) struct key_file file = { .fd = -1 };
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct maildir *md = maildir_of(room);
	const char *keep = record_get(&room->settings, "Keep-Keys");
	int64_t keep_ms = KEEP_MS, now_ms = clock_now_ms();
	struct stat st;
	size_t left = 0;

	if (key_open(&file, md, sender, "", false, IGNORED) != MR_OK)
		return;
	int64_t swept_ms = sys_stat(file.fd, SWEPT, &st) == 0 ? (int64_t)st.st_mtime * 1000 : 0;

	if (swept_ms > now_ms - DAY_MS && swept_ms < now_ms + DAY_MS)
		return;
	if (keep && !duration_parse(str_of(keep), &keep_ms))
		keep_ms = KEEP_MS;
	/* The stamp first, so that other senders do not look, too. */
	mr_auto(sys_close_fd) int stamp = sys_open(file.fd, SWEPT, O_WRONLY | O_CREAT, md->file_mode);

	if (stamp < 0 || sys_set_mtime(stamp, now_ms * 1000000) < 0)
		return;
	/* A look with a clock that is far from that of the look before only notes its time: one command whose clock is
	 * wrong must not end keys, or a retry sends twice. */
	if (swept_ms < now_ms - PAUSE_MAX_MS || swept_ms > now_ms)
		return;
	(void)dir_names(file.fd, &names, IGNORED);
	for (size_t i = 0; i < names.n; i++)
		/* Two links: its send is not finished, however old it is. */
		if (strlen(names.v[i]) != 64 || sys_stat(file.fd, names.v[i], &st) < 0 || !S_ISREG(st.st_mode) ||
		    st.st_nlink != 1 || (int64_t)st.st_mtime * 1000 >= now_ms - keep_ms ||
		    sys_unlink(file.fd, names.v[i]) < 0)
			left++;
	if (left > 1) {                  /* than the stamp */
		retain_some(room, true); /* to remove the keys of senders that never send again */
		return;
	}
	(void)sys_unlink(file.fd, SWEPT);
	(void)sys_rmdir(md->root_fd, key_folder(sender).z);
}
