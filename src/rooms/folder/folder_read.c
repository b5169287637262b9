/* SPDX-License-Identifier: MIT */
/*
 * folder_read.c - the mail of a plain Maildir. Its program may rename a message at any moment (new/ to cur/, other
 * flags): one that is gone from where it was listed is listed again.
 */
#include "base/error.h"
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "message/message.h"
#include "rooms/folder/folder.h"
#include <fcntl.h>

#define FILE_MAX ((size_t)64 << 20)
#define FIND_TRIES 20
#define SUBFOLDER_MAX 200

struct item {
	char id[MR_ID_LEN + 1];
	const char *path; /* relative to the folder */
	unsigned flags;
	enum mr_folder folder;
};
struct items { /* finish with items_done */
	struct item *v;
	size_t n, cap;
	struct arena *own;
	bool failed;
	/* while a folder is read */
	const char *prefix;
	enum mr_folder folder;
	const struct scan_request *want;
};

static void
items_done(struct items *l)
{
	free(l->v);
	arena_free(l->own);
	*l = (struct items){ 0 };
}

/* ---- Names ---- */

/* A message is its name without the flags: that stays while its program moves and marks it. */
static bool
name_split(const char *name, struct mr_str *ret_base, unsigned *ret_flags)
{
	static const struct {
		char letter;
		unsigned flag;
	} known[] = { { 'S', MR_SEEN }, { 'R', MR_REPLIED }, { 'F', MR_PINNED }, { 'T', MR_TRASHED } };
	const char *info = strstr(name, ":2,");

	if (name[0] == '.' || name[0] == '\0')
		return false;
	*ret_base = (struct mr_str){ name, info ? (size_t)(info - name) : strlen(name) };
	*ret_flags = 0;
	for (size_t i = 0; info && i < sizeof(known) / sizeof(known[0]); i++)
		if (strchr(info + 3, known[i].letter))
			*ret_flags |= known[i].flag;
	return true;
}

/* Names begin with the second of the delivery. Mail of ours (<seconds>.<id>.mr) keeps its id. */
static void
name_id(struct mr_str base, char ret[MR_ID_LEN + 1])
{
	uint64_t seconds = 0;
	size_t digits = 0;

	while (digits < base.len && base.ptr[digits] >= '0' && base.ptr[digits] <= '9')
		digits++;
	struct mr_str id = { base.ptr + digits + 1, MR_ID_LEN };

	if (base.len == digits + 1 + MR_ID_LEN + 3 && str_ends(base, ".mr") && id_valid(id)) {
		(void)snprintf(ret, MR_ID_LEN + 1, "%.*s", MR_ID_LEN, id.ptr);
		return;
	}
	if (!str_to_u64((struct mr_str){ base.ptr, digits }, &seconds) || seconds > UINT64_C(281474976710))
		seconds = 0; /* an id has 48 bits of milliseconds: this is no time */
	id_from_name((int64_t)seconds * 1000, base, ret);
}

/* ---- Listing ---- */

static bool
is_wanted(const struct items *l, const char *id, unsigned flags)
{
	if (l->want->unread_only && (flags & MR_SEEN))
		return false;
	return !l->want->id_suffix || str_ends(str_of(id), l->want->id_suffix);
}

static bool
add_item(void *ctx, const struct dir_entry *entry)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;
	struct items *l = ctx;
	char id[MR_ID_LEN + 1];
	struct mr_str base;
	unsigned flags;

	if (!name_split(entry->name, &base, &flags))
		return true;
	name_id(base, id);
	if (!is_wanted(l, id, flags))
		return true;
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 256;
		struct item *grown = realloc(l->v, cap * sizeof(*grown));

		if (!grown)
			return !(l->failed = true);
		l->v = grown;
		l->cap = cap;
	}
	struct item *item = &l->v[l->n];

	buf_addf(&path, "%s/%s", l->prefix, entry->name);
	*item = (struct item){ .path = arena_dup(&l->own, buf_str(&path)), .flags = flags, .folder = l->folder };
	memcpy(item->id, id, sizeof(item->id));
	if (!buf_ok(&path) || !item->path)
		return !(l->failed = true);
	l->n++;
	return true;
}

static enum mr_rc
list_part(struct folder *f, struct items *l, const char *sub, const char *part, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	char prefix[SUBFOLDER_MAX + 8];
	enum mr_rc rc;

	(void)snprintf(prefix, sizeof(prefix), "%s%s%s", sub, sub[0] ? "/" : "", part);
	rc = dir_open(f->fd, prefix, &fd, err);
	if (rc == MR_NOTFOUND && sub[0]) { /* a subfolder that is none */
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	if (rc != MR_OK)
		return rc;
	l->prefix = prefix;
	rc = dir_each(fd, add_item, l, err);
	return l->failed ? mr_nomem(err) : rc;
}

static bool
note_archive(void *ctx, const struct dir_entry *entry)
{
	if (!str_starts(str_of(entry->name), ".Archive") || strlen(entry->name) >= SUBFOLDER_MAX)
		return true;
	return names_add(ctx, str_of(entry->name));
}

static int
by_id(const void *a, const void *b)
{
	return memcmp(((const struct item *)a)->id, ((const struct item *)b)->id, MR_ID_LEN);
}

/* new/ before cur/: a message moves that way. One that was seen in both is the one in cur/. */
static enum mr_rc
list_all(struct folder *f, const struct scan_request *want, struct items *l, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names subs = { 0 };
	enum mr_rc rc = MR_OK;

	l->want = want;
	l->folder = MR_INBOX;
	if (want->folders & MR_INBOX)
		rc = list_part(f, l, "", "new", err);
	if (rc == MR_OK && (want->folders & MR_INBOX))
		rc = list_part(f, l, "", "cur", err);
	if (rc == MR_OK && (want->folders & MR_ARCHIVE))
		rc = dir_each(f->fd, note_archive, &subs, err);
	l->folder = MR_ARCHIVE;
	for (size_t i = 0; i < subs.n && rc == MR_OK; i++) {
		rc = list_part(f, l, subs.v[i], "new", err);
		if (rc == MR_OK)
			rc = list_part(f, l, subs.v[i], "cur", err);
	}
	if (rc == MR_OK && l->n > 1)
		qsort(l->v, l->n, sizeof(*l->v), by_id);
	return rc;
}

/* ---- Reading ---- */

/* A body of several parts stays as it is; without this line nobody could take it apart any more. */
static enum mr_rc
keep_content_type(struct mr_message *msg, struct mr_error *err)
{
	const char *type = mr_message_header(msg, "Content-Type");
	struct arena *own = msg->own;

	if (!type || strncasecmp(type, "text/", 5) == 0)
		return MR_OK;
	struct mr_header *all = arena_alloc(&own, (msg->headers_n + 1) * sizeof(*all));

	msg->own = own;
	if (!all)
		return mr_nomem(err);
	memcpy(all, msg->headers, msg->headers_n * sizeof(*all));
	all[msg->headers_n] = (struct mr_header){ "X-Content-Type", type };
	msg->headers = all;
	msg->headers_n++;
	return MR_OK;
}

static enum mr_rc
read_item(
    struct folder *f, const struct item *item, enum scan_depth depth, struct mr_message *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_message msg = { .flags = item->flags, .folder = item->folder };
	enum mr_rc rc = file_read(f->fd, item->path, FILE_MAX, &text, err);

	if (rc != MR_OK)
		return rc;
	memcpy(msg.id, item->id, sizeof(msg.id));
	rc = message_parse(buf_str(&text), "", depth == SCAN_BODIES ? MESSAGE_ALL : MESSAGE_HEADERS, &msg, err);
	if (rc != MR_OK)
		return rc;
	msg.size_bytes = text.len;
	rc = keep_content_type(&msg, err);
	struct arena *own = msg.own;

	msg.path = arena_dup(&own, str_of(item->path));
	msg.own = own;
	if (rc == MR_OK && !msg.path)
		rc = mr_nomem(err);
	if (rc == MR_OK)
		*ret = msg;
	else
		mr_message_done(&msg);
	return rc;
}

enum mr_rc
folder_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	struct scan_request want = { .folders = folders ? folders : MR_INBOX | MR_ARCHIVE, .id_suffix = id };
	struct folder *f = folder_of(room);

	for (int tries = 0; tries < FIND_TRIES; tries++) {
		mr_auto(items_done) struct items l = { 0 };
		enum mr_rc rc = list_all(f, &want, &l, err);

		if (rc == MR_OK && l.n == 0)
			return mr_fail(err, MR_NOTFOUND, "no message '%s' in '%s'", id, agent);
		if (rc == MR_OK)
			rc = read_item(f, &l.v[l.n - 1], depth, ret, err);
		if (rc != MR_NOTFOUND)
			return rc;
	}
	return mr_fail(err, MR_BUSY, "message '%s' is renamed all the time", id);
}

static enum mr_rc
show(struct mr_room *room, const char *agent, const struct item *item, const struct scan_request *want,
    mr_message_fn *fn, void *ctx, bool *ret_stopped, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_error trouble = { 0 };
	enum mr_rc rc = read_item(folder_of(room), item, want->depth, &msg, &trouble);

	if (rc == MR_NOTFOUND)
		rc = folder_fetch(room, agent, item->id, want->folders, want->depth, &msg, &trouble);
	if (rc == MR_NOMEM)
		return mr_nomem(err);
	if (rc == MR_OK)
		*ret_stopped = !fn(ctx, &msg);
	else if (rc != MR_NOTFOUND && want->trouble)
		want->trouble(want->trouble_ctx, item->path, &trouble);
	return MR_OK;
}

enum mr_rc
folder_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	mr_auto(items_done) struct items l = { 0 };
	bool stopped = false;
	enum mr_rc rc = list_all(folder_of(room), want, &l, err);

	for (size_t i = 0; i < l.n && rc == MR_OK && !stopped; i++) {
		size_t at = want->newest_first ? l.n - 1 - i : i;
		size_t next = want->newest_first ? at - 1 : at + 1;

		if (i + 1 < l.n && strcmp(l.v[at].id, l.v[next].id) == 0) /* it was moved while we looked */
			continue;
		rc = show(room, agent, &l.v[at], want, fn, ctx, &stopped, err);
	}
	return rc;
}
