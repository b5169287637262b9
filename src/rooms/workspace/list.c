/* SPDX-License-Identifier: MIT */
/*
 * list.c - what is in an agent's folders. An id is made of a file's date and bytes: a rename keeps both, and the next
 * message of a conversation, which has the same name, differs in both.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/workspace/workspace.h"
#include <stdlib.h>

#define UNFINISHED_NS 10000000000 /* front matter without an end is waited for so long, then told */

void
memo_id(int64_t mtime_ns, struct mr_str bytes, char ret[MR_ID_LEN + 1])
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	buf_addf(&name, "%lld\n", (long long)mtime_ns);
	buf_add(&name, bytes);
	id_from_name(mtime_ns / 1000000, buf_str(&name), ret);
}

int
entry_fd(const struct box *box, const struct entry *e)
{
	return e->folder == MR_INBOX ? box->inbox_fd : box->scratch_fd;
}

bool
entry_is_older(const struct entry *a, const struct entry *b)
{
	if (a->mtime_ns != b->mtime_ns)
		return a->mtime_ns < b->mtime_ns;
	if (a->ctime_ns != b->ctime_ns)
		return a->ctime_ns < b->ctime_ns;
	return strcmp(a->name, b->name) < 0;
}

enum mr_rc
entry_text(const struct box *box, const struct entry *e, struct buf *ret, struct mr_error *err)
{
	return file_read(entry_fd(box, e), e->name, MEMO_MAX, ret, err);
}

void
entries_done(struct entries *entries)
{
	for (size_t i = 0; i < entries->n; i++) {
		free(entries->v[i].name);
		free(entries->v[i].request_id);
		free(entries->v[i].channel);
		free(entries->v[i].reply);
	}
	free(entries->v);
	*entries = (struct entries){ 0 };
}

/* ---- Names in scratch ---- */

/* ".7" or "" */
static bool
is_number_or_nothing(struct mr_str s)
{
	uint64_t n = 0;

	return s.len == 0 || (s.ptr[0] == '.' && str_to_u64((struct mr_str){ s.ptr + 1, s.len - 1 }, &n));
}

static struct mr_str
after(struct mr_str s, size_t n)
{
	return (struct mr_str){ s.ptr + n, s.len - n };
}

/* <id> and <id>.<n> were sent, <id>.in and <id>.in.<n> received. An id may itself look like one of these, so the one
 * that the file names comes first. */
static enum mr_folder
folder_in_scratch(struct mr_str name, struct mr_str request_id)
{
	bool named = name.len >= request_id.len && memcmp(name.ptr, request_id.ptr, request_id.len) == 0;

	if (named && is_number_or_nothing(after(name, request_id.len)))
		return MR_SENT;
	for (size_t at = 0; at + 3 <= name.len; at++)
		if (memcmp(name.ptr + at, ".in", 3) == 0 && is_number_or_nothing(after(name, at + 3)))
			return MR_ARCHIVE;
	return MR_SENT;
}

/* ---- Candidates ---- */

struct candidates {
	struct candidate *v;
	size_t n, cap;
	int dir_fd;
	int64_t only_ms; /* of this date; -1: any */
	bool failed;
};

static void
candidates_done(struct candidates *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->v[i].name);
	free(c->v);
}

static bool
collect(void *ctx, const struct dir_entry *entry)
{
	struct candidates *c = ctx;
	struct stat st;

	if (entry->name[0] == '.' || sys_stat(c->dir_fd, entry->name, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size == 0 || (c->only_ms >= 0 && mtime_of(&st) / 1000000 != c->only_ms))
		return true;
	if (c->n == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 16;
		struct candidate *grown = realloc(c->v, cap * sizeof *grown);

		c->failed = !grown;
		if (c->failed)
			return false;
		c->v = grown;
		c->cap = cap;
	}
	char *name = strdup(entry->name);

	c->failed = !name;
	if (name)
		c->v[c->n++] = (struct candidate){ .name = name, .st = st };
	return !c->failed;
}

/* ---- From candidates to entries ---- */

struct reading {
	const struct box *box;
	const struct listing *want;
	struct entries *ret;
	struct buf text;
	bool scratch;
};

static void
tell(const struct reading *r, const char *name, const struct mr_error *trouble)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	buf_addf(&path, "%s/.mailbox/%s/%s", r->box->address, r->scratch ? "scratch" : "inbox", name);
	if (r->want->trouble && buf_ok(&path))
		r->want->trouble(r->want->trouble_ctx, buf_z(&path), trouble);
}

static bool
keep_entry(struct reading *r, const struct candidate *c, enum mr_folder folder, const struct memo *memo)
{
	struct entries *all = r->ret;

	if (all->n == all->cap) {
		size_t cap = all->cap ? 2 * all->cap : 16;
		struct entry *grown = realloc(all->v, cap * sizeof *grown);

		if (!grown)
			return false;
		all->v = grown;
		all->cap = cap;
	}
	struct entry e = { .name = strdup(c->name),
		.folder = folder,
		.mtime_ns = mtime_of(&c->st),
		.ctime_ns = (int64_t)c->st.st_ctim.tv_sec * 1000000000 + c->st.st_ctim.tv_nsec,
		.request_id = strndup(memo->request_id.ptr, memo->request_id.len),
		.channel = strndup(memo->channel.len > 0 ? memo->channel.ptr : "", memo->channel.len),
		.reply = strndup(memo->reply.len > 0 ? memo->reply.ptr : "", memo->reply.len),
		.is_reply = memo->is_reply };

	memo_id(e.mtime_ns, buf_str(&r->text), e.id);
	all->v[all->n++] = e;
	return e.name && e.request_id && e.channel && e.reply;
}

/* What is private in scratch and no message is nobody's trouble. */
static enum mr_rc
read_candidate(struct reading *r, int dir_fd, const struct candidate *c, struct mr_error *err)
{
	struct mr_error trouble = { 0 };
	struct memo memo;

	buf_clear(&r->text);
	if (file_read(dir_fd, c->name, MEMO_MAX, &r->text, &trouble) != MR_OK) {
		if (trouble.code == MR_NOMEM)
			return mr_nomem(err);
		if (!r->scratch)
			tell(r, c->name, &trouble);
		return MR_OK;
	}
	struct mr_str text = buf_str(&r->text);
	const char *problem = memo_parse(text, &memo);

	if (problem && !r->scratch && !(memo_unfinished(text) && clock_now_ns() - mtime_of(&c->st) < UNFINISHED_NS)) {
		(void)mr_fail(&trouble, MR_CORRUPT, "it %s", problem);
		tell(r, c->name, &trouble);
	}
	if (problem)
		return MR_OK;
	if (!r->scratch && box_scratch_named(r->box, text)) {
		(void)mr_fail(&trouble, MR_REFUSED, "it names the scratch folder, which nobody else may know");
		tell(r, c->name, &trouble);
		return MR_OK;
	}
	enum mr_folder folder = r->scratch ? folder_in_scratch(str_of(c->name), memo.request_id) : MR_INBOX;

	if (!(r->want->folders & folder))
		return MR_OK;
	return keep_entry(r, c, folder, &memo) ? MR_OK : mr_nomem(err);
}

static enum mr_rc
read_folder(struct workspace *ws, struct reading *r, int dir_fd, struct mr_error *err)
{
	mr_auto(candidates_done) struct candidates c = { .dir_fd = dir_fd,
		.only_ms = r->want->id ? id_time_ms(r->want->id) : -1 };
	enum mr_rc rc = dir_each(dir_fd, collect, &c, err);

	if (rc == MR_OK && c.failed)
		return mr_nomem(err);
	if (rc == MR_OK && !r->scratch)
		candidates_settle(ws, dir_fd, c.v, c.n);
	for (size_t i = 0; i < c.n && rc == MR_OK; i++)
		if (c.v[i].ready || r->scratch)
			rc = read_candidate(r, dir_fd, &c.v[i], err);
	return rc;
}

static int
by_id(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;
	int order = strcmp(left->id, right->id);

	return order ? order : (int)left->folder - (int)right->folder;
}

/* ---- One message ---- */

/* A name says nothing here: the next message of the conversation has the same. So it counts only if it has the id. */
static bool
is_still(struct workspace *ws, struct reading *r, const struct known_file *file)
{
	struct candidate c = { .name = strdup(file->name) };
	struct mr_error ignored = { 0 };
	int fd = file->folder == MR_INBOX ? r->box->inbox_fd : r->box->scratch_fd;

	r->scratch = file->folder != MR_INBOX;
	if (c.name && fd >= 0 && sys_stat(fd, c.name, &c.st) == 0 && S_ISREG(c.st.st_mode) && c.st.st_size > 0) {
		c.ready = r->scratch;
		if (!r->scratch)
			candidates_settle(ws, fd, &c, 1);
		if (c.ready)
			(void)read_candidate(r, fd, &c, &ignored);
	}
	free(c.name);
	if (r->ret->n > 0 && strcmp(r->ret->v[0].id, file->id) == 0)
		return true;
	entries_done(r->ret);
	return false;
}

/* Where the last look at all of them found it. False: it has to be searched for. */
static bool
find_known(struct workspace *ws, const struct box *box, const struct listing *want, struct entries *ret)
{
	const struct listing silent = { .folders = want->folders, .id = want->id };
	struct reading r = { .box = box, .want = &silent, .ret = ret };
	const struct known_file *file = known_find(&ws->known, box->address, want->id);
	bool found = false;

	for (; file && file < ws->known.v + ws->known.n && strcmp(file->id, want->id) == 0 && !found; file++)
		found = (want->folders & file->folder) && is_still(ws, &r, file);
	buf_done(&r.text);
	return found;
}

/* ---- The whole ---- */

static void
remember(struct workspace *ws, const struct box *box, const struct entries *all)
{
	known_begin(&ws->known, box->address);
	for (size_t i = 0; i < all->n; i++)
		known_add(&ws->known, all->v[i].id, all->v[i].folder, all->v[i].name);
}

enum mr_rc
entries_read(
    struct workspace *ws, const struct box *box, const struct listing *want, struct entries *ret, struct mr_error *err)
{
	struct reading r = { .box = box, .want = want, .ret = ret };
	enum mr_rc rc = MR_OK;

	if (want->id && find_known(ws, box, want, ret))
		return MR_OK;
	if ((want->folders & MR_INBOX) && box->inbox_fd >= 0)
		rc = read_folder(ws, &r, box->inbox_fd, err);
	r.scratch = true;
	if (rc == MR_OK && (want->folders & (MR_ARCHIVE | MR_SENT)) && box->scratch_fd >= 0)
		rc = read_folder(ws, &r, box->scratch_fd, err);
	buf_done(&r.text);
	if (rc == MR_OK && ret->n > 0)
		qsort(ret->v, ret->n, sizeof *ret->v, by_id);
	if (rc == MR_OK && !want->id)
		remember(ws, box, ret);
	return rc;
}
