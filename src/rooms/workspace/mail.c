/* SPDX-License-Identifier: MIT */
/*
 * mail.c - what is in an agent's folders. An id is made of a file's date and bytes: a rename keeps both, and the next
 * message of a conversation, which has the same name, differs in both. So a name says nothing about which message a
 * file is.
 *
 * Is a file complete? Our own appear whole, but a peer's cp makes an empty file, writes, closes. A file that nobody
 * wrote to for 200 ms is taken as complete; a younger one when two looks, 50 ms apart, find it the same.
 *
 * The format has no sender: its name is that of the workspace where the answer shall go, and that of an answer without
 * such a path is the agent that was asked.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "message/front.h"
#include "rooms/workspace/workspace.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define OLD_NS 200000000
#define LOOK_AGAIN_MS 50
#define SETTLED_MAX 4096
#define UNFINISHED_NS 10000000000 /* front matter without an end is waited for so long, then told */
#define HEADERS_MAX 32

/* ---- Is it complete? ---- */

struct candidate {
	const char *name;
	struct stat st;
	bool ready;
};

void
workspace_settled(struct workspace *ws, const struct stat *st)
{
	if (!ws->settled)
		ws->settled = calloc(SETTLED_MAX, sizeof *ws->settled);
	if (!ws->settled)
		return; /* it is only looked at once more */
	ws->settled[ws->settled_n++ % SETTLED_MAX] = (struct settled){
		.inode = (uint64_t)st->st_ino, .mtime_ns = kit_mtime_ns(st), .size = (int64_t)st->st_size
	};
}

/* Sets ready; looks twice when one of them is young. */
static void
settle(struct workspace *ws, int dir_fd, struct candidate *v, size_t n)
{
	int64_t now_ns = clock_now_ns();
	size_t young = 0;

	for (size_t i = 0; i < n; i++) {
		const struct stat *st = &v[i].st;
		int64_t mtime_ns = kit_mtime_ns(st);

		/* A date in the future says nothing about its age. */
		v[i].ready = mtime_ns <= now_ns && now_ns - mtime_ns > OLD_NS;
		for (size_t s = 0; s < ws->settled_n && s < SETTLED_MAX && !v[i].ready; s++)
			v[i].ready = ws->settled[s].inode == (uint64_t)st->st_ino &&
				     ws->settled[s].mtime_ns == mtime_ns && ws->settled[s].size == (int64_t)st->st_size;
		young += !v[i].ready;
	}
	if (young == 0)
		return;
	(void)poll(NULL, 0, LOOK_AGAIN_MS);
	for (size_t i = 0; i < n; i++) {
		struct stat st;

		if (v[i].ready || sys_stat(dir_fd, v[i].name, &st) < 0 || st.st_ino != v[i].st.st_ino ||
		    st.st_size != v[i].st.st_size || kit_mtime_ns(&st) != kit_mtime_ns(&v[i].st))
			continue;
		v[i].ready = true;
		workspace_settled(ws, &st);
	}
}

/* ---- Listing ---- */

void
workspace_message_id(int64_t mtime_ns, struct mr_str bytes, char ret[MR_ID_LEN + 1])
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	buf_addf(&name, "%lld\n", (long long)mtime_ns);
	buf_add(&name, bytes);
	id_from_name(mtime_ns / 1000000, buf_str(&name), ret);
}

enum mr_rc
workspace_text(struct kit_box *kit, const struct kit_item *item, struct buf *ret, struct mr_error *err)
{
	return file_read(item->folder == MR_INBOX ? kit->inbox_fd : kit->other_fd, item->name, MEMO_MAX, ret, err);
}

/* ".7" or "" */
static bool
is_number_or_nothing(struct mr_str s)
{
	uint64_t n = 0;

	return s.len == 0 || (s.ptr[0] == '.' && str_to_u64((struct mr_str){ s.ptr + 1, s.len - 1 }, &n));
}

/* <id> and <id>.<n> were sent, <id>.in and <id>.in.<n> received. An id may itself look like one of these, so the one
 * that the file names comes first. */
static enum mr_folder
folder_in_scratch(struct mr_str name, struct mr_str request_id)
{
	bool named = name.len >= request_id.len && memcmp(name.ptr, request_id.ptr, request_id.len) == 0;

	if (named && is_number_or_nothing((struct mr_str){ name.ptr + request_id.len, name.len - request_id.len }))
		return MR_SENT;
	for (size_t at = 0; at + 3 <= name.len; at++)
		if (memcmp(name.ptr + at, ".in", 3) == 0 &&
		    is_number_or_nothing((struct mr_str){ name.ptr + at + 3, name.len - at - 3 }))
			return MR_ARCHIVE;
	return MR_SENT;
}

struct reading { /* of one folder */
	struct kit_box *box;
	const struct scan_request *want;
	struct kit_items *ret;
	bool scratch;
	int fd;
	char path[MR_ADDRESS_MAX + 32]; /* for people */
};

static void
folder_path(const struct kit_box *box, enum mr_folder folder, struct buf *out)
{
	buf_addf(out, "%s/.mailbox/%s", box->agent, folder == MR_INBOX ? "inbox" : "scratch");
}

/* Other files in scratch are private, and not reported. */
static enum mr_rc
read_candidate(const struct reading *r, const struct candidate *c, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error trouble = { 0 };
	struct memo memo = { 0 };

	if (file_read(r->fd, c->name, MEMO_MAX, &text, &trouble) == MR_NOMEM)
		return mr_nomem(err);
	const char *problem = trouble.code == MR_OK ? memo_parse(buf_str(&text), &memo) : NULL;
	bool young = memo_unfinished(buf_str(&text)) && clock_now_ns() - kit_mtime_ns(&c->st) < UNFINISHED_NS;

	if (problem)
		(void)mr_fail(&trouble, MR_CORRUPT, "it %s", problem);
	else if (trouble.code == MR_OK && !r->scratch && box_scratch_named(r->box, buf_str(&text)))
		(void)mr_fail(&trouble, MR_REFUSED, "it names the scratch folder, which nobody else may know");
	if (trouble.code != MR_OK) {
		mr_auto(buf_done) struct buf path = BUF_INIT;

		buf_addf(&path, "%s/%s", r->path, c->name);
		if (!r->scratch && !(problem && young) && r->want->trouble && buf_ok(&path))
			r->want->trouble(r->want->trouble_ctx, buf_z(&path), &trouble);
		return MR_OK;
	}
	enum mr_folder folder = r->scratch ? folder_in_scratch(str_of(c->name), memo.request_id) : MR_INBOX;

	if (!(r->want->folders & folder))
		return MR_OK;
	struct kit_item *item = kit_add(r->ret, r->path, c->name, folder);
	struct entry *e = arena_alloc(&r->ret->own, sizeof *e);

	TRY(mr_got(item && e, err));
	*e = (struct entry){ .request_id = arena_keep(&r->ret->own, memo.request_id, &r->ret->failed),
		.channel = arena_keep(&r->ret->own, memo.channel, &r->ret->failed),
		.reply = arena_keep(&r->ret->own, memo.reply, &r->ret->failed),
		.is_reply = memo.is_reply,
		.ctime_ns = (int64_t)c->st.st_ctim.tv_sec * 1000000000 + c->st.st_ctim.tv_nsec };
	item->more = e;
	item->mtime_ns = kit_mtime_ns(&c->st);
	item->rank = folder; /* of one message in several places the unread one comes first */
	workspace_message_id(item->mtime_ns, buf_str(&text), item->id);
	return MR_OK;
}

static enum mr_rc
list_folder(const struct reading *r, const char *only_id, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(free_ptr) struct candidate *v = NULL;
	size_t n = 0;

	if (r->fd < 0)
		return MR_OK;
	TRY(dir_names(r->fd, &names, err));
	v = calloc(names.n + 1, sizeof *v);
	TRY(mr_got(v, err));
	for (size_t i = 0; i < names.n; i++) {
		struct candidate c = { .name = names.v[i], .ready = r->scratch };

		if (c.name[0] == '.' || sys_stat(r->fd, c.name, &c.st) < 0 || !S_ISREG(c.st.st_mode) ||
		    c.st.st_size == 0 || (only_id && kit_mtime_ns(&c.st) / 1000000 != id_time_ms(only_id)))
			continue;
		v[n++] = c;
	}
	if (!r->scratch)
		settle(workspace_of(r->box->room), r->fd, v, n);
	for (size_t i = 0; i < n; i++)
		if (v[i].ready)
			TRY(read_candidate(r, &v[i], err));
	return MR_OK;
}

static enum mr_rc
list(struct kit_box *box, const struct scan_request *want, const char *only_id, struct kit_items *ret,
    struct mr_error *err)
{
	for (int scratch = 0; scratch < 2; scratch++) {
		struct reading r = { .box = box, .want = want, .ret = ret, .scratch = scratch };

		r.fd = scratch ? box->other_fd : box->inbox_fd;
		(void)snprintf(r.path, sizeof r.path, "%s/.mailbox/%s", box->agent, scratch ? "scratch" : "inbox");
		if (want->folders & (scratch ? MR_ARCHIVE | MR_SENT : MR_INBOX))
			TRY(list_folder(&r, only_id, err));
	}
	return MR_OK;
}

/* ---- As a message ---- */

/* Whom did we ask under this id? Looks at our copies of what was sent, the newest first by name. */
static bool
asked_whom(struct kit_box *box, struct mr_str request_id, char ret[MR_ADDRESS_MAX + 1])
{
	for (unsigned n = 0; n < 10 && box->other_fd >= 0; n++) {
		mr_auto(buf_done) struct buf name = BUF_INIT, text = BUF_INIT;
		struct mr_str place;
		struct memo memo;

		buf_add(&name, request_id);
		if (n > 0)
			buf_addf(&name, ".%u", n);
		if (file_read(box->other_fd, buf_z(&name), MEMO_MAX, &text, IGNORED) != MR_OK)
			continue;
		if (!memo_parse(buf_str(&text), &memo) && workspace_in_path(memo.receiver, &place) &&
		    !str_eq(place, str_of(box_of(box)->path))) {
			workspace_address_in(memo.receiver, ret);
			return true;
		}
	}
	return false;
}

static void
find_sender(struct kit_box *box, const struct memo *memo, char ret[MR_ADDRESS_MAX + 1])
{
	struct mr_str place = STR("");

	if (memo->is_reply && memo->reply.len == 0 && asked_whom(box, memo->request_id, ret))
		return;
	workspace_address_in(memo->reply, ret);
	/* So that an answer finds its recipient, in the yard or not; a sender that wants no answer is refused later. */
	if ((memo->reply.len > 0 && workspace_in_path(memo->reply, &place)) || strcmp(ret, CLIENT) == 0)
		workspace_remember(box->room, ret, place);
}

/* Message-ID, then what the front matter has beside the five keys (it is shown and changes nothing), then what only
 * this format has: whether it is a question or an answer, and where the two are. */
static void
fill_lines(struct kit_message *m, const struct kit_item *item, const struct memo *memo)
{
	const struct {
		const char *name;
		struct mr_str value;
	} lines[] = {
		{ "REQUEST_ID", memo->request_id },
		{ "MESSAGE_TYPE", memo->is_reply ? STR("REPLY") : STR("NEW") },
		{ "CHANNEL_ID", memo->channel },
		{ "RECEIVER_INBOX_PATH", memo->receiver },
		{ "REPLY_INBOX_PATH", memo->reply },
	};
	struct mr_str rest = memo->head, key, value;

	kit_header(m, "Message-ID", kit_keep(m, memo->request_id));
	if (item->folder == MR_INBOX && !str_eq(memo->request_id, str_of(item->name)))
		kit_header(m, "Warning", "the file is not named like its REQUEST_ID");
	else if (memo->quoted)
		kit_header(m, "Warning", "quotes around a value of the front matter were left out");
	while (m->msg.headers_n < HEADERS_MAX && front_next(&rest, &key, &value)) {
		mr_auto(buf_done) struct buf clean = BUF_INIT;

		if (!memo_key_unknown(key) || !header_name_valid(key))
			continue;
		header_clean(&clean, value);
		kit_header(m, kit_keep(m, key), kit_keep_buf(m, &clean));
	}
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		if (lines[i].value.len > 0)
			kit_envelope(m, lines[i].name, kit_keep(m, lines[i].value));
}

static enum mr_rc
to_message(struct kit_box *box, const struct kit_item *item, struct mr_str text, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	struct kit_message m = kit_message(item->id, item->folder, item->folder == MR_INBOX ? 0 : MR_SEEN);
	mr_auto(buf_done) struct buf subject = BUF_INIT;
	char other[MR_ADDRESS_MAX + 1];
	struct memo memo;
	const char *problem = memo_parse(text, &memo);
	bool sent = item->folder == MR_SENT;

	m.msg.date_ms = item->mtime_ns / 1000000;
	m.msg.size_bytes = text.len;
	if (depth == SCAN_NAMES)
		return kit_message_end(&m, ret, err);
	if (problem)
		return mr_fail(err, MR_CORRUPT, "'%s' %s", item->name, problem);
	if (sent)
		workspace_address_in(memo.receiver, other);
	else
		find_sender(box, &memo, other);
	m.msg.from = kit_keep(&m, str_of(sent ? box->agent : other));
	kit_to(&m, sent ? other : box->agent);
	memo_subject(&subject, memo.body);
	m.msg.subject = kit_keep_buf(&m, &subject);
	m.msg.thread = kit_keep(&m, memo.channel.len > 0 ? memo.channel : memo.request_id);
	m.msg.reply_to = memo.is_reply ? kit_keep(&m, memo.request_id) : "";
	m.msg.path = kit_keep(&m, str_of(item->path));
	fill_lines(&m, item, &memo);
	if (depth == SCAN_BODIES)
		kit_body(&m, memo.body);
	return kit_message_end(&m, ret, err);
}

static enum mr_rc
read_item(struct kit_box *box, const struct kit_item *item, enum scan_depth depth, struct mr_message *ret,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char id[MR_ID_LEN + 1];

	TRY(workspace_text(box, item, &text, err));
	workspace_message_id(item->mtime_ns, buf_str(&text), id);
	if (strcmp(id, item->id) != 0)
		return mr_fail(err, MR_NOTFOUND, "'%s' has become another message", item->name);
	return depth == SCAN_RAW ? kit_raw(item, buf_str(&text), ret, err)
				 : to_message(box, item, buf_str(&text), depth, ret, err);
}

static enum mr_rc
open_ticket(struct mr_room *room, const char *folder, int *ret_fd, struct mr_error *err)
{
	(void)room;
	return route_open_dir(str_of(folder), ret_fd, err);
}

static enum mr_rc
watched(struct mr_room *room, const char *agent, struct buf *ret, struct mr_error *err)
{
	mr_auto(kit_box_close) struct kit_box *box = NULL;

	TRY(kit_box_open(room, agent, BOX_MAKE_OWN, &box, err));
	box_path(box, MR_INBOX, ret);
	return MR_OK;
}

/* ---- A client's answer ---- */

enum mr_rc
workspace_fetch_answer(
    struct mr_room *room, const char *dir, const char *id, bool take, struct mr_message *ret, struct mr_error *err)
{
	struct box nowhere = { .kit = { .room = room, .agent = CLIENT, .inbox_fd = -1, .other_fd = -1 }, .fd = -1 };
	mr_auto(sys_close_fd) int dir_fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT, path = BUF_INIT;
	struct candidate file = { .name = id };
	const struct kit_temporary taken = kit_temporary(KIT_TEMPORARY);

	if (!memo_id_safe(str_of(id)))
		return mr_fail(err, MR_REFUSED, "'%s' is not the REQUEST_ID of a message", id);
	TRY(route_open_dir(str_of(dir), &dir_fd, err));
	if (sys_stat(dir_fd, id, &file.st) < 0 || file.st.st_size == 0)
		return mr_fail(err, MR_NOTFOUND, "no answer to '%s' in '%s' yet", id, dir);
	settle(workspace_of(room), dir_fd, &file, 1);
	if (file.ready)
		TRY(file_read(dir_fd, id, MEMO_MAX, &text, err));
	if (!file.ready || memo_unfinished(buf_str(&text)))
		return mr_fail(err, MR_NOTFOUND, "the answer to '%s' is still being written", id);
	buf_addf(&path, CLIENT "/.mailbox/inbox/%s", id);
	struct kit_item item = {
		.path = buf_z(&path), .name = id, .folder = MR_INBOX, .mtime_ns = kit_mtime_ns(&file.st)
	};

	workspace_message_id(item.mtime_ns, buf_str(&text), item.id);
	TRY(to_message(&nowhere.kit, &item, buf_str(&text), SCAN_BODIES, ret, err));
	if (!take)
		return MR_OK;
	/* Out of the way first: what comes under this name afterwards is another message. */
	if (sys_rename_new(dir_fd, id, dir_fd, taken.z) == 0 && sys_unlink(dir_fd, taken.z) == 0 &&
	    sys_fsync(dir_fd) == 0)
		return MR_OK;
	(void)mr_fail_errno(err, "cannot remove the answer '%s'", id);
	mr_message_done(ret);
	return err->code;
}

/* ---- Taking mail out of an inbox: a rename, of which one worker gets it. To another program it looks as after its own
 * delete. ---- */

enum mr_rc
claim_take(struct kit_box *box, struct kit_items *items, struct kit_item *item, struct mr_error *err)
{
	mr_auto(buf_done) struct buf wanted = BUF_INIT;
	char *taken = arena_alloc(&items->own, NAME_MAX + 1);

	buf_addf(&wanted, "%s.in", item->name);
	TRY(mr_got(taken && buf_ok(&wanted), err));
	TRY(box_need_scratch(box, err));
	if (kit_rename_free(box->inbox_fd, item->name, box->other_fd, buf_z(&wanted), 0, taken) == 0) {
		item->name = taken;
		item->folder = MR_ARCHIVE;
		return MR_OK;
	}
	if (errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "'%s' was taken out of the inbox by another program", item->name);
	if (errno == EEXIST)
		return mr_fail(
		    err, MR_BUSY, "cannot take '%s' out of the inbox: scratch has too many of that name", item->name);
	return mr_fail_errno(err, "cannot take '%s' out of the inbox", item->name);
}

enum mr_rc
claim_back(const struct kit_box *box, const struct kit_item *item, struct mr_error *err)
{
	const char *end = item->name, *in;

	for (const char *at = item->name; (in = strstr(at, ".in")) != NULL; at = in + 1)
		end = in; /* the last one: an id may have .in in it */
	mr_auto(free_ptr) char *name = strndup(item->name, (size_t)(end - item->name));

	TRY(mr_got(name, err));
	if (sys_rename_new(box->other_fd, item->name, box->inbox_fd, name) == 0)
		return MR_OK;
	if (errno == EEXIST)
		return mr_fail(err, MR_BUSY,
		    "cannot put '%s' back: the next message of that conversation waits there\nread that one first",
		    name);
	if (errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "'%s' no longer exists", item->name);
	return mr_fail_errno(err, "cannot put '%s' back", name);
}

static enum mr_rc
set_read(struct kit_box *box, struct kit_item *item, bool read, struct mr_error *err)
{
	mr_auto(kit_items_done) struct kit_items names = { 0 };
	const enum mr_folder from = item->folder, to = read ? MR_ARCHIVE : MR_INBOX;
	struct kit_item taken = *item; /* what the last look found stays as it is */

	if (from == to)
		return MR_OK;
	TRY(read ? claim_take(box, &names, &taken, err) : claim_back(box, item, err));
	/* The folder that gained the name first: without a journal the other order can lose both. */
	kit_dirty(box, to);
	kit_dirty(box, from);
	return MR_OK;
}

const struct kit_format workspace_format = {
	.folders = MR_INBOX | MR_ARCHIVE | MR_SENT,
	.unread = MR_INBOX,
	.box_size = sizeof(struct box),
	.open = box_open,
	.close = box_close,
	.list = list,
	.read = read_item,
	.place = box_path,
	.folder_path = folder_path,
	.set_read = set_read,
	.open_ticket = open_ticket,
	.watched = watched,
};
