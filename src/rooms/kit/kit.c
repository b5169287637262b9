/* SPDX-License-Identifier: MIT */
/* kit.c - what drivers share beside looking and waiting: see kit.h. */
#include "rooms/kit/kit.h"
#include "base/error.h"
#include "base/id.h"
#include "base/storage.h"
#include "base/sys.h"
#include "base/text.h"
#include "message/foreign.h"
#include <errno.h>
#include <fcntl.h>

#define NOTE_MAX ((size_t)4 << 10)
#define COMPARED_MAX ((size_t)64 << 20)
#define NUMBERS_MAX 1000

/* ---- Opening ---- */

struct mr_str
kit_trim_slashes(struct mr_str path)
{
	while (path.len > 1 && path.ptr[path.len - 1] == '/')
		path.len--;
	return path;
}

struct mr_str
kit_last_part(struct mr_str path)
{
	size_t at;

	path = kit_trim_slashes(path);
	for (at = path.len; at > 0 && path.ptr[at - 1] != '/';)
		at--;
	return (struct mr_str){ path.ptr + at, path.len - at };
}

bool
kit_is_plain(struct mr_str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '.' &&
		    c != '_' && c != '-')
			return false;
	}
	return true;
}

enum mr_rc
kit_set_spec(struct mr_room *room, const char *path, struct mr_error *err)
{
	struct buf spec = BUF_INIT;

	buf_addf(&spec, "%s:%s", room->driver->kind, path);
	char *whole = buf_take(&spec);

	TRY(mr_got(whole, err));
	free(room->spec);
	room->spec = whole;
	return MR_OK;
}

enum mr_rc
kit_storage(struct mr_room *room, struct mr_storage *ret, struct mr_error *err)
{
	return storage_of_path(strchr(room->spec, ':') + 1, ret, err);
}

enum mr_rc
kit_set_name(struct mr_room *room, struct mr_str name, const char *otherwise, struct mr_error *err)
{
	char address[MR_ADDRESS_MAX + 1];

	room->name = strdup(foreign_to_address(name, address, IGNORED) == MR_OK ? address : otherwise);
	return room->name ? MR_OK : mr_nomem(err);
}

struct mr_agent
kit_agent(const char *name)
{
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };

	(void)snprintf(agent.name, sizeof agent.name, "%s", name);
	return agent;
}

const char *
kit_note(int dir_fd, const char *name, struct arena **own)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	const char *copy = NULL;

	if (file_read(dir_fd, name, NOTE_MAX, &text, IGNORED) == MR_OK)
		copy = arena_dup(own, buf_str(&text));
	return copy ? copy : "";
}

/* ---- Building a message ---- */

struct kit_message
kit_message(const char *id, enum mr_folder folder, unsigned flags)
{
	struct kit_message m = { .msg = { .from = "",
				     .subject = "",
				     .type = "",
				     .thread = "",
				     .reply_to = "",
				     .replace_key = "",
				     .path = "",
				     .folder = folder,
				     .flags = flags } };

	memcpy(m.msg.id, id, sizeof m.msg.id);
	return m;
}

const char *
kit_keep(struct kit_message *m, struct mr_str s)
{
	const char *copy = s.len > 0 ? arena_dup(&m->own, s) : "";

	m->failed |= !copy;
	return copy ? copy : "";
}

const char *
kit_keep_buf(struct kit_message *m, const struct buf *text)
{
	m->failed |= text->failed;
	return kit_keep(m, buf_str(text));
}

const char *
kit_keep_address(struct kit_message *m, struct mr_str name)
{
	char address[MR_ADDRESS_MAX + 1];

	if (name.len == 0 || memchr(name.ptr, '\0', name.len) || foreign_to_address(name, address, IGNORED) != MR_OK)
		return "";
	return kit_keep(m, str_of(address));
}

void
kit_to(struct kit_message *m, const char *address)
{
	char **v = arena_alloc(&m->own, sizeof *v);
	char *copy = arena_dup(&m->own, str_of(address));

	m->failed |= !v || !copy;
	if (!v || !copy)
		return;
	v[0] = copy;
	m->msg.to = (struct mr_names){ v, 1 };
}

static void
add_line(struct kit_message *m, const struct mr_header **lines, size_t *n, struct mr_header line)
{
	const size_t first = 4;
	struct mr_header *v;

	memcpy(&v, lines, sizeof v); /* they are ours, and constant only for readers */
	if (*n == 0 || (*n >= first && (*n & (*n - 1)) == 0)) {
		v = arena_alloc(&m->own, (*n == 0 ? first : 2 * *n) * sizeof *v);
		m->failed |= !v;
		if (!v)
			return;
		if (*n > 0)
			memcpy(v, *lines, *n * sizeof *v);
		*lines = v;
	}
	v[(*n)++] = line;
}

void
kit_header(struct kit_message *m, const char *name, const char *value)
{
	add_line(m, &m->msg.headers, &m->msg.headers_n, (struct mr_header){ name, value });
}

void
kit_envelope(struct kit_message *m, const char *name, const char *value)
{
	add_line(m, &m->msg.envelope, &m->msg.envelope_n, (struct mr_header){ name, value });
}

void
kit_body(struct kit_message *m, struct mr_str body)
{
	m->msg.body = kit_keep(m, body);
	m->msg.body_len = body.len;
}

enum mr_rc
kit_message_end(struct kit_message *m, struct mr_message *ret, struct mr_error *err)
{
	if (m->failed) {
		arena_free(m->own);
		return mr_nomem(err);
	}
	m->msg.own = m->own;
	*ret = m->msg;
	return MR_OK;
}

enum mr_rc
kit_raw(const struct kit_item *item, struct mr_str bytes, struct mr_message *ret, struct mr_error *err)
{
	struct kit_message m = kit_message(item->id, item->folder, item->flags);

	kit_body(&m, bytes);
	return kit_message_end(&m, ret, err);
}

/* ---- Sending ---- */

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
kit_missing(const struct delivery *what, size_t from, struct delivered *ret, struct mr_error *err)
{
	for (size_t i = from; i < what->to->n; i++)
		TRY(mr_got(names_add(&ret->missing, str_of(what->to->v[i])), err));
	return MR_OK;
}

enum mr_rc
kit_publish(const struct kit_file *file, const struct delivery *what, const char *folder, struct mr_error *err)
{
	const bool staged = what && what->staged;
	char random[17], temporary[MR_ADDRESS_MAX + 300];
	mr_auto(buf_done) struct buf ticket = BUF_INIT;

	random_hex(random, 16);
	if (staged)
		(void)snprintf(temporary, sizeof temporary, FILE_CARRY "%s.tmp", random);
	else
		(void)snprintf(temporary, sizeof temporary, ".%s.tmp-%s", file->name, random);
	buf_addf(&ticket, "%s%s%s", folder, folder[0] ? "/" : "", temporary);
	TRY(mr_got(buf_ok(&ticket), err));
	if (staged && ticket.len > ROOM_TICKET_MAX)
		return mr_fail(err, MR_REFUSED, "the path '%.60s...' is too long for mail that is carried", folder);
	if (staged)
		file_void_clean(file->tmp_fd);
	TRY(file_prepare(file->tmp_fd, temporary, file->bytes, file->mode, file->mtime_ns, err));
	enum mr_rc rc = MR_OK;

	if (file->st && sys_stat(file->tmp_fd, temporary, file->st) < 0)
		rc = mr_fail_errno(err, "cannot look at '%s'", temporary);
	if (rc == MR_OK && staged)
		rc = what->staged(what->staged_ctx, buf_z(&ticket), err);
	if (rc == MR_OK)
		rc = file_prepared_publish(file->tmp_fd, temporary, file->dir_fd, file->name, err);
	if (rc != MR_OK && !staged)
		(void)sys_unlink(file->tmp_fd, temporary);
	return rc;
}

bool
kit_ticket(const char *ticket, struct mr_str *ret_folder, const char **ret_name)
{
	const char *slash = strrchr(ticket, '/'), *name = slash ? slash + 1 : ticket;

	*ret_folder = (struct mr_str){ ticket, slash ? (size_t)(slash - ticket) : 0 };
	*ret_name = name;
	return str_starts(str_of(name), FILE_CARRY) && strlen(name) <= NAME_MAX;
}

enum mr_rc
kit_settle(enum mr_rc opened, int fd, const char *name, bool gone, bool *ret_published, struct mr_error *err)
{
	if (opened == MR_OK)
		return file_prepared_void(fd, name, ret_published, err);
	if (opened != MR_NOTFOUND)
		return opened;
	*ret_published = gone;
	return MR_OK;
}

int
kit_move(int from_fd, const char *name, int to_fd, kit_numbered_fn *numbered)
{
	mr_auto(buf_done) struct buf here = BUF_INIT;
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
		if (!numbered(name, i, target))
			return -1;
	}
	return -1;
}

void
kit_dirty(struct mr_names *dirty, const char *path, int fd)
{
	/* To the end of the list, wherever it was: the folder that gained a name is synced first. */
	for (size_t i = 0; i + 1 < dirty->n; i++)
		if (strcmp(dirty->v[i], path) == 0) {
			char *moved = dirty->v[i];

			memmove(&dirty->v[i], &dirty->v[i + 1], (dirty->n - i - 1) * sizeof *dirty->v);
			dirty->v[dirty->n - 1] = moved;
		}
	if (dirty->n > 0 && strcmp(dirty->v[dirty->n - 1], path) == 0)
		return;
	if (!names_add(dirty, str_of(path)))
		(void)sys_fsync(fd); /* no memory to put it off */
}

enum mr_rc
kit_flush(struct mr_names *dirty, struct mr_error *err)
{
	enum mr_rc first = MR_OK;

	for (size_t i = 0; i < dirty->n; i++) {
		mr_auto(sys_close_fd) int fd = -1;
		struct mr_error one = { 0 };
		enum mr_rc rc = dir_open(AT_FDCWD, dirty->v[i], &fd, &one);

		if (rc == MR_OK && sys_fsync(fd) < 0)
			rc = mr_fail_errno(&one, "cannot make '%s' durable", dirty->v[i]);
		if (rc != MR_OK && rc != MR_NOTFOUND && first == MR_OK) { /* a folder that is gone holds nothing */
			first = rc;
			*err = one;
		}
	}
	mr_names_done(dirty);
	*dirty = (struct mr_names){ 0 };
	return first;
}
