/* SPDX-License-Identifier: MIT */
/* read.c - from a file to a message. The format has no sender: its name is that of the workspace where the answer shall
 * go, and that of an answer without such a path is the one whom we asked. */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "message/front.h"
#include "rooms/workspace/workspace.h"
#include <stdio.h>
#include <stdlib.h>

#define HEADERS_MAX 32

/* ---- Who ---- */

/* Whom did we ask under this id? Looks at our copies of what was sent, the newest first by name. */
static bool
asked_whom(const struct box *box, struct mr_str request_id, char ret[MR_ADDRESS_MAX + 1])
{
	for (unsigned n = 0; n < 10 && box->scratch_fd >= 0; n++) {
		mr_auto(buf_done) struct buf name = BUF_INIT, text = BUF_INIT;
		struct mr_error ignored = { 0 };
		struct mr_str place;
		struct memo memo;

		buf_add(&name, request_id);
		if (n > 0)
			buf_addf(&name, ".%u", n);
		if (file_read(box->scratch_fd, buf_z(&name), MEMO_MAX, &text, &ignored) != MR_OK)
			continue;
		if (!memo_parse(buf_str(&text), &memo) && workspace_in_path(memo.receiver, &place) &&
		    !str_eq(place, str_of(box->path))) {
			workspace_address_in(memo.receiver, ret);
			return true;
		}
	}
	return false;
}

static void
find_sender(struct workspace *ws, const struct box *box, const struct memo *memo, char ret[MR_ADDRESS_MAX + 1])
{
	struct mr_str place = STR("");

	if (memo->is_reply && memo->reply.len == 0 && asked_whom(box, memo->request_id, ret))
		return;
	workspace_address_in(memo->reply, ret);
	/* So that an answer finds whom it is for, in the yard or not; who wants none is refused with that reason. */
	if ((memo->reply.len > 0 && workspace_in_path(memo->reply, &place)) || strcmp(ret, CLIENT) == 0)
		workspace_remember(ws, ret, place);
}

/* ---- Filling in ---- */

struct filling {
	struct arena *own;
	bool failed;
};

static const char *
keep(struct filling *f, struct mr_str s)
{
	const char *copy = arena_dup(&f->own, s);

	f->failed |= !copy;
	return copy ? copy : "";
}

/* Message-ID, then what the front matter has beside the five keys: it is shown and changes nothing. */
static void
fill_headers(struct filling *f, const struct memo *memo, const char *warning, struct mr_message *msg)
{
	struct mr_header *headers = arena_alloc(&f->own, HEADERS_MAX * sizeof *headers);
	struct mr_str rest = memo->head, key, value;
	size_t n = 0;

	if (!headers) {
		f->failed = true;
		return;
	}
	headers[n++] = (struct mr_header){ "Message-ID", keep(f, memo->request_id) };
	if (warning)
		headers[n++] = (struct mr_header){ "Warning", warning };
	while (n < HEADERS_MAX && front_next(&rest, &key, &value)) {
		mr_auto(buf_done) struct buf clean = BUF_INIT;

		if (!memo_key_unknown(key) || !header_name_valid(key))
			continue;
		header_clean(&clean, value);
		headers[n++] = (struct mr_header){ keep(f, key), keep(f, buf_str(&clean)) };
	}
	msg->headers = headers;
	msg->headers_n = n;
}

/* What only this format has: whether it is a question or an answer, and where the two are. */
static void
fill_envelope(struct filling *f, const struct memo *memo, struct mr_message *msg)
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
	struct mr_header *envelope = arena_alloc(&f->own, sizeof lines / sizeof lines[0] * sizeof *envelope);
	size_t n = 0;

	f->failed |= !envelope;
	for (size_t i = 0; envelope && i < sizeof lines / sizeof lines[0]; i++)
		if (lines[i].value.len > 0)
			envelope[n++] = (struct mr_header){ lines[i].name, keep(f, lines[i].value) };
	msg->envelope = envelope;
	msg->envelope_n = n;
}

static void
fill_to(struct filling *f, const char *to, struct mr_message *msg)
{
	char **v = arena_alloc(&f->own, sizeof *v);

	f->failed |= !v;
	if (!v)
		return;
	v[0] = arena_dup(&f->own, str_of(to));
	f->failed |= !v[0];
	msg->to = (struct mr_names){ .v = v, .n = 1 };
}

static const char *
warning_of(const struct memo *memo, const struct entry *e)
{
	if (e->folder == MR_INBOX && !str_eq(memo->request_id, str_of(e->name)))
		return "the file is not named like its REQUEST_ID";
	return memo->quoted ? "quotes around a value of the front matter were left out" : NULL;
}

static void
fill_fields(struct workspace *ws, struct filling *f, const struct box *box, const struct entry *e,
    const struct memo *memo, struct mr_message *msg)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, path = BUF_INIT;
	char from[MR_ADDRESS_MAX + 1], to[MR_ADDRESS_MAX + 1];

	(void)snprintf(from, sizeof from, "%s", box->address);
	(void)snprintf(to, sizeof to, "%s", box->address);
	if (e->folder == MR_SENT)
		workspace_address_in(memo->receiver, to);
	else
		find_sender(ws, box, memo, from);
	memo_subject(&subject, memo->body);
	buf_addf(&path, "%s/.mailbox/%s/%s", box->address, e->folder == MR_INBOX ? "inbox" : "scratch", e->name);
	msg->from = keep(f, str_of(from));
	fill_to(f, to, msg);
	msg->subject = keep(f, buf_str(&subject));
	msg->thread = keep(f, memo->channel.len > 0 ? memo->channel : memo->request_id);
	msg->reply_to = memo->is_reply ? keep(f, memo->request_id) : "";
	msg->path = keep(f, buf_str(&path));
	fill_headers(f, memo, warning_of(memo, e), msg);
	fill_envelope(f, memo, msg);
}

enum mr_rc
memo_to_message(struct workspace *ws, const struct box *box, const struct entry *e, struct mr_str text,
    enum scan_depth depth, struct mr_message *ret, struct mr_error *err)
{
	struct filling f = { 0 };
	struct memo memo;
	struct mr_message msg = { .from = "",
		.subject = "",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.path = "",
		.date_ms = e->mtime_ns / 1000000,
		.folder = e->folder,
		.flags = e->folder == MR_INBOX ? 0 : MR_SEEN,
		.size_bytes = text.len };
	const char *problem = depth == SCAN_NAMES ? NULL : memo_parse(text, &memo);

	memcpy(msg.id, e->id, sizeof msg.id);
	if (problem)
		return mr_fail(err, MR_CORRUPT, "'%s' %s", e->name, problem);
	if (depth != SCAN_NAMES)
		fill_fields(ws, &f, box, e, &memo, &msg);
	if (depth == SCAN_BODIES) {
		msg.body = keep(&f, memo.body);
		msg.body_len = memo.body.len;
	}
	msg.own = f.own;
	if (f.failed) {
		mr_message_done(&msg);
		return mr_nomem(err);
	}
	*ret = msg;
	return MR_OK;
}

/* ---- Looking ---- */

static enum mr_rc
read_entry(struct workspace *ws, const struct box *box, const struct entry *e, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char id[MR_ID_LEN + 1];

	TRY(entry_text(box, e, &text, err));
	memo_id(e->mtime_ns, buf_str(&text), id);
	if (strcmp(id, e->id) != 0)
		return mr_fail(err, MR_NOTFOUND, "'%s' is another message by now", e->name);
	return memo_to_message(ws, box, e, buf_str(&text), depth, ret, err);
}

static bool
is_wanted(const struct entry *e, const struct scan_request *want)
{
	return !(want->unread_only && e->folder != MR_INBOX) &&
	       (!want->id_suffix || str_ends(str_of(e->id), want->id_suffix));
}

enum mr_rc
workspace_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	mr_auto(box_done) struct box box = BOX_INIT;
	mr_auto(entries_done) struct entries all = { 0 };
	const struct listing listing = {
		.folders = want->folders, .trouble = want->trouble, .trouble_ctx = want->trouble_ctx
	};

	if (want->folders == MR_DEAD)
		return MR_OK;
	TRY(box_open(&box, ws, agent, BOX_AS_IT_IS, err));
	TRY(entries_read(ws, &box, &listing, &all, err));
	for (size_t i = 0; i < all.n; i++) {
		const struct entry *e = &all.v[want->newest_first ? all.n - 1 - i : i];
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct mr_error trouble = { 0 };

		if (!is_wanted(e, want))
			continue;
		enum mr_rc rc = read_entry(ws, &box, e, want->depth, &msg, &trouble);

		if (rc == MR_NOMEM)
			return mr_nomem(err);
		if (rc != MR_OK && want->trouble)
			want->trouble(want->trouble_ctx, e->name, &trouble);
		if (rc == MR_OK && !fn(ctx, &msg))
			break;
	}
	return MR_OK;
}

/* The first of a kind: an inbox comes before scratch in the order of folders. */
static enum mr_rc
find_entry(struct workspace *ws, const struct box *box, const char *id, unsigned folders, struct entries *all,
    struct entry **ret, struct mr_error *err)
{
	const struct listing listing = { .folders = folders ? folders : MR_INBOX | MR_ARCHIVE | MR_SENT, .id = id };

	TRY(entries_read(ws, box, &listing, all, err));
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->v[i].id, id) == 0) {
			*ret = &all->v[i];
			return MR_OK;
		}
	return mr_fail(err, MR_NOTFOUND, "no message '%s' for '%s'", id, box->address);
}

enum mr_rc
workspace_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	mr_auto(box_done) struct box box = BOX_INIT;
	mr_auto(entries_done) struct entries all = { 0 };
	struct entry *e = NULL;

	TRY(box_open(&box, ws, agent, BOX_AS_IT_IS, err));
	TRY(find_entry(ws, &box, id, folders, &all, &e, err));
	return read_entry(ws, &box, e, depth, ret, err);
}

enum mr_rc
workspace_fetch_raw(struct mr_room *room, const char *agent, const char *id, struct buf *ret, struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	mr_auto(box_done) struct box box = BOX_INIT;
	mr_auto(entries_done) struct entries all = { 0 };
	struct entry *e = NULL;

	TRY(box_open(&box, ws, agent, BOX_AS_IT_IS, err));
	TRY(find_entry(ws, &box, id, 0, &all, &e, err));
	return entry_text(&box, e, ret, err);
}

/* ---- A client's answer ---- */

/* Out of the way first: what comes under this name afterwards is another message. */
static enum mr_rc
remove_answer(int dir_fd, const char *id, struct mr_error *err)
{
	mr_auto(buf_done) struct buf taken = BUF_INIT;
	char random[13];

	random_hex(random, 12);
	buf_addf(&taken, ".%s.taken-%s", id, random);
	if (!buf_ok(&taken))
		return mr_nomem(err);
	if (sys_rename_new(dir_fd, id, dir_fd, buf_z(&taken)) < 0 || sys_unlink(dir_fd, buf_z(&taken)) < 0 ||
	    sys_fsync(dir_fd) < 0)
		return mr_fail_errno(err, "cannot remove the answer '%s'", id);
	return MR_OK;
}

enum mr_rc
workspace_fetch_answer(
    struct mr_room *room, const char *dir, const char *id, bool take, struct mr_message *ret, struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	struct box nowhere = BOX_INIT;
	mr_auto(sys_close_fd) int dir_fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(free_ptr) char *name = strdup(id);
	struct entry e = { .name = name, .folder = MR_INBOX };
	struct candidate file = { .name = name };

	if (!name)
		return mr_nomem(err);
	if (!memo_id_safe(str_of(id)))
		return mr_fail(err, MR_REFUSED, "'%s' is not the REQUEST_ID of a message", id);
	TRY(route_open_dir(str_of(dir), &dir_fd, err));
	if (sys_stat(dir_fd, id, &file.st) < 0 || file.st.st_size == 0)
		return mr_fail(err, MR_NOTFOUND, "no answer to '%s' in '%s' yet", id, dir);
	candidates_settle(ws, dir_fd, &file, 1);
	if (!file.ready)
		return mr_fail(err, MR_NOTFOUND, "the answer to '%s' is still being written", id);
	TRY(file_read(dir_fd, id, MEMO_MAX, &text, err));
	if (memo_unfinished(buf_str(&text)))
		return mr_fail(err, MR_NOTFOUND, "the answer to '%s' is still being written", id);
	e.mtime_ns = mtime_of(&file.st);
	memo_id(e.mtime_ns, buf_str(&text), e.id);
	(void)snprintf(nowhere.address, sizeof nowhere.address, "%s", CLIENT);
	enum mr_rc rc = memo_to_message(ws, &nowhere, &e, buf_str(&text), SCAN_BODIES, ret, err);

	if (rc == MR_OK && take && remove_answer(dir_fd, id, err) != MR_OK) {
		mr_message_done(ret);
		return err->code;
	}
	return rc;
}
