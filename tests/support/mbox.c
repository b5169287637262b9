/* SPDX-License-Identifier: MIT */
/*
 * mbox.c - a kind of room that keeps mail in one mbox file, read only: the example of docs/ADDING-A-ROOM.md. It is
 * linked only into test builds.
 *
 *	From alice@example.org Thu Mar  5 10:30:00 2026      a line that begins with "From " begins a message
 *	From: alice@example.org
 *	Subject: hello
 *	Status: RO                                           R: it was read
 *
 *	>From here on a line of the text that begins so has a ">" before it.
 *
 * An id is made of the date and the bytes of a message, so it stays while the file grows.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "message/message.h"
#include "rooms/kit/kit.h"
#include <fcntl.h>

#define FILE_MAX ((size_t)64 << 20)

struct part {                /* item.more */
	struct mr_str bytes; /* of the file, in the arena of the items */
};

/* ---- Listing: where messages begin and end ---- */

/* The end of the message that begins at `at`: the next line that begins with "From " behind an empty line. */
static size_t
end_of(struct mr_str text, size_t at)
{
	const char *end = memmem(text.ptr + at, text.len - at, "\n\nFrom ", 7);

	return end ? (size_t)(end - text.ptr) + 2 : text.len;
}

/* Without the line that begins the message, and with "From " where it was escaped. */
static void
add_bytes(struct buf *out, struct mr_str part)
{
	const char *line = memchr(part.ptr, '\n', part.len), *end = part.ptr + part.len;

	for (line = line ? line + 1 : end; line < end;) {
		const char *next = memchr(line, '\n', (size_t)(end - line));
		struct mr_str s = { line, (size_t)((next ? next + 1 : end) - line) };
		size_t marks = 0;

		while (marks < s.len && s.ptr[marks] == '>')
			marks++;
		bool escaped = marks > 0 && str_starts((struct mr_str){ s.ptr + marks, s.len - marks }, "From ");

		buf_add(out, (struct mr_str){ s.ptr + escaped, s.len - escaped });
		line += s.len;
	}
}

static unsigned
flags_of(const struct mr_message *msg)
{
	const char *status = mr_message_header(msg, "Status"), *more = mr_message_header(msg, "X-Status");
	unsigned flags = status && strchr(status, 'R') ? MR_SEEN : 0;

	flags |= more && strchr(more, 'A') ? MR_REPLIED : 0;
	return flags | (more && strchr(more, 'F') ? MR_PINNED : 0);
}

/* Adds the message in these bytes; the kit reports what is no message when it is read. */
static enum mr_rc
add_item(struct kit_items *items, struct mr_str bytes, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(mr_message_done) struct mr_message head = { 0 };
	struct part *part = arena_alloc(&items->own, sizeof *part);
	char name[32];

	(void)snprintf(name, sizeof name, "message %zu", items->n + 1);
	struct kit_item *item = kit_add(items, "", name, MR_INBOX);

	if (!item || !part)
		return mr_nomem(err);
	*part = (struct part){ bytes };
	item->more = part;
	add_bytes(&text, bytes);
	if (message_parse(buf_str(&text), "", MESSAGE_HEADERS, &head, IGNORED) == MR_OK)
		item->flags = flags_of(&head);
	id_from_name(head.date_ms > 0 ? head.date_ms : 0, buf_str(&text), item->id);
	return MR_OK;
}

static enum mr_rc
list(struct kit_box *box, const struct scan_request *want, const char *only_id, struct kit_items *ret,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf file = BUF_INIT;

	(void)only_id;
	if (!(want->folders & MR_INBOX))
		return MR_OK;
	TRY(file_read(AT_FDCWD, kit_room(box->room)->path, FILE_MAX, &file, err));
	struct mr_str text = { arena_dup(&ret->own, buf_str(&file)), file.len };

	if (!text.ptr)
		return mr_nomem(err);
	for (size_t at = 0; at < text.len;) {
		size_t end = end_of(text, at);

		TRY(add_item(ret, (struct mr_str){ text.ptr + at, end - at }, err));
		at = end;
	}
	return MR_OK;
}

/* ---- Reading one ---- */

static enum mr_rc
read_item(struct kit_box *box, const struct kit_item *item, enum scan_depth depth, struct mr_message *ret,
    struct mr_error *err)
{
	const struct part *part = item->more;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct kit_message m = { .msg = { .flags = item->flags, .folder = item->folder } };

	(void)box;
	add_bytes(&text, part->bytes);
	memcpy(m.msg.id, item->id, sizeof m.msg.id);
	TRY(message_parse(buf_str(&text), "", depth == SCAN_BODIES ? MESSAGE_ALL : MESSAGE_HEADERS, &m.msg, err));
	m.own = m.msg.own;
	m.msg.size_bytes = part->bytes.len;
	m.msg.path = kit_keep(&m, str_of(item->path));
	return kit_message_end(&m, ret, err);
}

static const struct kit_format format = { .folders = MR_INBOX, .list = list, .read = read_item };

/* ---- The slots that the kit does not have ---- */

static enum mr_rc
mbox_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	struct stat st;

	if (where[0] != '/' || sys_stat(AT_FDCWD, where, &st) < 0 || !S_ISREG(st.st_mode))
		return mr_fail(err, MR_NOTFOUND, "no file '%s'\nan mbox room is mbox:/PATH/OF/FILE", where);
	TRY(kit_open(room, sizeof(struct kit_room), &format, str_of(where), err));
	TRY(kit_set_name(room, kit_last_part(str_of(where)), "mbox", err));
	room->owner = room->name;
	return MR_OK;
}

static enum mr_rc
mbox_watch(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err)
{
	struct mr_str path = str_of(kit_room(room)->path), file = kit_last_part(path);
	mr_auto(buf_done) struct buf folder = BUF_INIT;

	(void)agent;
	buf_add(&folder, (struct mr_str){ path.ptr, path.len - file.len });
	return kit_watch(&folder, ret_watch, err);
}

const struct room_driver room_mbox = {
	.kind = "mbox",
	.abilities = ROOM_THREADS | ROOM_PRIORITIES | ROOM_TYPES,
	.open = mbox_open,
	.close = kit_close,
	.each_agent = kit_each_owner,
	.find_agent = kit_find_owner,
	.scan = kit_scan,
	.fetch = kit_fetch,
	.watch = mbox_watch,
	.watch_wait = kit_watch_wait,
	.watch_close = kit_watch_close,
	.each_place = kit_each_place,
};
