/* SPDX-License-Identifier: MIT */
/* send.c - shared parts of drivers that write: see kit.h. */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/text.h"
#include "rooms/kit/kit.h"
#include <errno.h>
#include <fcntl.h>

#define COMPARED_MAX ((size_t)64 << 20)
#define NUMBERS_MAX 10000

struct mr_str
kit_text(const struct mr_message *msg)
{
	return msg->body ? (struct mr_str){ msg->body, msg->body_len } : STR("");
}

void
kit_splice(struct mr_str text, const char *from, const char *to, struct mr_str with, struct buf *out)
{
	buf_add(out, (struct mr_str){ text.ptr, (size_t)(from - text.ptr) });
	buf_add(out, with);
	buf_add(out, (struct mr_str){ to, (size_t)(text.ptr + text.len - to) });
}

bool
kit_set_flag(
    struct mr_str text, struct json_value object, const char *key, bool value, enum kit_layout layout, struct buf *out)
{
	mr_auto(buf_done) struct buf with = BUF_INIT;
	struct json_value now = { 0 }, name, member;
	const char *like = NULL, *gap, *end = object.raw.ptr + 1;
	struct mr_str word = str_of(value ? "true" : "false");

	if ((json_find(object, key, &now) && json_truthy(now)) == value)
		return false;
	if (now.raw.ptr) {
		kit_splice(text, now.raw.ptr, now.raw.ptr + now.raw.len, word, out);
		return true;
	}
	for (size_t at = 0; json_member(object, &at, &name, &member);) {
		like = like && layout == KIT_LIKE_FIRST ? like : name.raw.ptr;
		end = member.raw.ptr + member.raw.len;
	}
	for (gap = like; gap > object.raw.ptr && strchr(" \t\r\n", gap[-1]);)
		gap--;
	buf_adds(&with, like ? "," : "");
	buf_add(&with, (struct mr_str){ gap, (size_t)(like - gap) });
	buf_addf(&with, "\"%s\":%s", key, layout == KIT_LIKE_LAST || gap < like ? " " : "");
	buf_add(&with, word);
	out->failed |= with.failed;
	kit_splice(text, end, end, buf_str(&with), out);
	return true;
}

unsigned
kit_fields(const struct mr_message *msg, const char *const *known)
{
	unsigned fields = 0;

	fields |= msg->cc.n > 0 ? FIELD_CC : 0;
	fields |= msg->to.n > 1 ? FIELD_TO : 0;
	fields |= msg->type && msg->type[0] ? FIELD_TYPE : 0;
	fields |= msg->priority != MR_NORMAL ? FIELD_PRIORITY : 0;
	fields |= msg->thread && msg->thread[0] && strcmp(msg->thread, msg->id) != 0 ? FIELD_THREAD : 0;
	fields |= msg->reply_to && msg->reply_to[0] ? FIELD_REPLY_TO : 0;
	fields |= msg->by_ms ? FIELD_BY : 0;
	fields |= utf8_valid(kit_text(msg)) ? 0 : FIELD_BINARY;
	for (size_t i = 0; i < msg->headers_n; i++) {
		const char *const *k = known;

		while (k && *k && !ascii_caseeq(*k, msg->headers[i].name))
			k++;
		fields |= k && *k ? 0 : FIELD_HEADERS;
	}
	return fields;
}

enum mr_rc
kit_deliver(const struct delivery *what, kit_send_fn *send, void *sending, struct delivered *ret, struct mr_error *err)
{
	const struct mr_names *to = what->to;
	size_t there = 0;

	for (size_t i = 0; i < to->n; i++) {
		struct delivered one = { 0 };
		enum mr_rc rc = send(sending, to->v[i], i == 0 ? ret : &one, err);

		delivered_done(&one);
		there += rc == MR_EXISTS;
		if (rc == MR_OK || rc == MR_EXISTS)
			continue;
		if (rc != MR_INDOUBT && i <= there) /* this delivery reached no recipient */
			return rc;
		struct mr_error why = *err;

		size_t have = rc == MR_INDOUBT ? i + 1 : i;

		if (have == to->n)
			return rc;
		for (size_t rest = have; rest < to->n; rest++)
			(void)names_add(
			    &ret->missing, str_of(to->v[rest])); /* out of memory: the number is right all the same */
		(void)mr_fail(err, MR_INDOUBT,
		    "%zu of %zu recipients have it, the others do not: %s\nsend it again to the others only", have,
		    to->n, why.message);
		err->sys_errno = why.sys_errno;
		return err->code;
	}
	return there == to->n ? MR_EXISTS : MR_OK;
}

struct kit_temporary
kit_temporary(const char *prefix)
{
	struct kit_temporary name;
	char random[17];

	random_hex(random, 16);
	(void)snprintf(name.z, sizeof name.z, "%s%s.tmp", prefix, random);
	return name;
}

bool
kit_is_temporary(const char *name)
{
	return str_starts(str_of(name), KIT_TEMPORARY) && str_ends(str_of(name), ".tmp");
}

/* Writes a file without a name, or, if the system cannot link such a file, one with a temporary name, and names it by
 * link(2), which never overwrites. MR_EXISTS: the name is taken. */
static enum mr_rc
publish_at_once(const struct kit_file *file, struct mr_error *err)
{
	for (int named = 0; named < 2; named++) {
		/* "linked": not copied under a name that other programs would list. */
		mr_auto(stage_done) struct staged s = { .fd = -1, .tmp_fd = file->tmp_fd, .linked = true };

		if (named)
			(void)snprintf(s.name, sizeof s.name, "%s", kit_temporary(KIT_TEMPORARY).z);
		s.fd = named ? sys_open(file->tmp_fd, s.name, O_RDWR | O_CREAT | O_EXCL, file->mode)
			     : sys_open_unnamed(file->dir_fd, file->mode);
		if (s.fd < 0 && errno == EOPNOTSUPP && !named)
			continue;
		if (s.fd < 0)
			return mr_fail_errno(err, "cannot make a file for '%s'", file->name);
		TRY(stage_write(&s, file->bytes, err));
		if ((file->mtime_ns && sys_set_mtime(s.fd, file->mtime_ns) < 0) ||
		    (file->st && sys_stat_fd(s.fd, file->st) < 0))
			return mr_fail_errno(err, "cannot write '%s'", file->name);
		if (stage_publish(&s, file->dir_fd, file->name, PUBLISH_FULL, err) == MR_OK)
			return MR_OK;
		if (err->sys_errno != EOPNOTSUPP)
			return err->code;
	}
	return err->code;
}

enum mr_rc
kit_publish(const struct kit_file *file, const struct delivery *what, const char *folder, struct mr_error *err)
{
	const struct kit_temporary temporary = kit_temporary(FILE_CARRY);
	mr_auto(buf_done) struct buf ticket = BUF_INIT;

	if (!what || !what->staged)
		return publish_at_once(file, err);
	buf_addf(&ticket, "%s%s%s", folder, folder[0] ? "/" : "", temporary.z);
	TRY(mr_got(buf_ok(&ticket), err));
	if (ticket.len > ROOM_TICKET_MAX)
		return mr_fail(err, MR_REFUSED, "the path '%.60s...' is too long for mail that is carried", folder);
	file_void_clean(file->tmp_fd);
	TRY(file_prepare(file->tmp_fd, temporary.z, file->bytes, file->mode, file->mtime_ns, err));
	if (file->st && sys_stat(file->tmp_fd, temporary.z, file->st) < 0)
		return mr_fail_errno(err, "cannot look at '%s'", temporary.z);
	TRY(what->staged(what->staged_ctx, buf_z(&ticket), err));
	return file_prepared_publish(file->tmp_fd, temporary.z, file->dir_fd, file->name, err);
}

enum mr_rc
kit_settle_ticket(struct mr_room *room, const char *ticket, bool *ret_published, struct mr_error *err)
{
	const struct kit_format *format = kit_room(room)->format;
	const char *slash = strrchr(ticket, '/'), *name = slash ? slash + 1 : ticket;
	mr_auto(free_ptr) char *folder = strndup(ticket, slash ? (size_t)(slash - ticket) : 0);
	mr_auto(sys_close_fd) int fd = -1;

	TRY(mr_got(folder, err));
	if (!str_starts(str_of(name), FILE_CARRY) || !str_ends(str_of(name), ".tmp") || strlen(name) > NAME_MAX)
		return mr_fail(err, MR_REFUSED, "'%.80s' is not a ticket of this room", ticket);
	enum mr_rc rc = format->open_ticket(room, folder, &fd, err);

	if (rc == MR_OK)
		return file_prepared_void(fd, name, ret_published, err);
	if (rc != MR_NOTFOUND)
		return rc;
	*ret_published = format->gone_is_published;
	return MR_OK;
}

int
kit_exchange(int fd, const char *temporary, const char *name, kit_is_old_fn *is_old, const void *ctx, bool *ret_done)
{
	struct stat ours, left;

	if (sys_stat(fd, temporary, &ours) < 0 || sys_rename_exchange(fd, temporary, fd, name) < 0)
		return -1;
	*ret_done = is_old(ctx, fd, temporary);
	/* A newer file came in between: exchange back. If it was moved at the same time, ours takes the free name; if
	 * that is taken again, ours stays, and the other program sees it at its next look. */
	if (!*ret_done && sys_rename_exchange(fd, temporary, fd, name) < 0)
		(void)sys_rename_new(fd, temporary, fd, name);
	else if (*ret_done || (sys_stat(fd, temporary, &left) == 0 && left.st_ino == ours.st_ino))
		(void)sys_unlink(fd, temporary);
	return 0;
}

int
kit_rename_free(int from_fd, const char *name, int to_fd, const char *wanted, unsigned first, char ret[NAME_MAX + 1])
{
	for (unsigned n = first; n < NUMBERS_MAX; n++) {
		int len = snprintf(ret, NAME_MAX + 1, n == 0 ? "%s" : "%s.%u", wanted, n);

		errno = ENAMETOOLONG;
		if (len <= NAME_MAX && sys_rename_new(from_fd, name, to_fd, ret) == 0)
			return 0;
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

int
kit_move(int from_fd, const char *name, int to_fd, const char *ending, size_t longest)
{
	mr_auto(buf_done) struct buf here = BUF_INIT;
	int stem = (int)(strlen(name) - strlen(ending));
	char target[NAME_MAX + 1];

	(void)snprintf(target, sizeof target, "%s", name);
	for (int i = 1; i < NUMBERS_MAX; i++) {
		mr_auto(buf_done) struct buf there = BUF_INIT;

		if (sys_rename_new(from_fd, name, to_fd, target) == 0)
			return 0;
		if (errno != EEXIST)
			return -1;
		buf_clear(&here);
		if (file_read(from_fd, name, COMPARED_MAX, &here, IGNORED) == MR_OK &&
		    file_read(to_fd, target, COMPARED_MAX, &there, IGNORED) == MR_OK &&
		    str_eq(buf_str(&here), buf_str(&there)))
			return sys_unlink(from_fd, name);
		errno = EEXIST;
		int n = snprintf(target, sizeof target, "%.*s.%d%s", stem, name, i, ending);

		if (n < 0 || (size_t)n > longest)
			return -1;
	}
	return -1;
}

void
kit_dirty(struct kit_box *box, enum mr_folder folder)
{
	struct mr_names *dirty = &kit_room(box->room)->dirty;
	mr_auto(buf_done) struct buf path = BUF_INIT;
	char *moved = NULL;

	kit_path(box, folder, &path);
	/* Moves it to the end of the list: the folder that gained a name is synced first. */
	for (size_t i = 0; i < dirty->n && !moved; i++)
		if (strcmp(dirty->v[i], buf_z(&path)) == 0) {
			moved = dirty->v[i];
			memmove(&dirty->v[i], &dirty->v[i + 1], (dirty->n - i - 1) * sizeof *dirty->v);
			dirty->v[dirty->n - 1] = moved;
		}
	if (!moved && !(buf_ok(&path) && names_add(dirty, buf_str(&path))))
		(void)sys_fsync(kit_folder(box, folder)); /* no memory to defer it */
}

enum mr_rc
kit_flush(struct mr_room *room, struct mr_error *err)
{
	struct mr_names *dirty = &kit_room(room)->dirty;
	enum mr_rc first = MR_OK;

	for (size_t i = 0; i < dirty->n; i++) {
		mr_auto(sys_close_fd) int fd = -1;
		struct mr_error one = { 0 };
		enum mr_rc rc = dir_open(AT_FDCWD, dirty->v[i], &fd, &one);

		if (rc == MR_OK && sys_fsync(fd) < 0)
			rc = mr_fail_errno(&one, "cannot make '%s' durable", dirty->v[i]);
		if (rc != MR_OK && rc != MR_NOTFOUND && first == MR_OK) { /* a missing folder holds nothing */
			first = rc;
			*err = one;
		}
	}
	mr_names_done(dirty);
	*dirty = (struct mr_names){ 0 };
	return first;
}
