/* SPDX-License-Identifier: MIT */
/*
 * pack.c - an old month of an archive in one compressed file, agents/<address>/.Archive.<month>/mbox.gz.
 *
 * The file. An mbox (mboxrd: a line that begins with "From ", behind any number of ">", gets one more ">"), one gzip
 * member a message, so that zcat, zgrep and mail programs read all of it and mailroom one message alone. The header of
 * each member has the name of the file and its size in bytes. A last member is empty; its comment is the table of all
 * the others, a line each:
 *
 *	<offset> <length of the member> <size of the message> <its time, seconds> <name of its file, flags and all>
 *
 * and as its last line the checksum of these lines, because nothing else protects the names. After the table comes the
 * length of that member, in 20 digits. So a listing reads the end of one file and needs no zlib; and text and table
 * always fit each other, because one rename publishes both.
 *
 * It is in the folder of its month, which stays: its keywords tell what the letter 'a' means, other programs and older
 * versions ignore the file, and new mail of that month goes into cur/ as before. A message that is in cur/ and in the
 * pack counts once, as in cur/.
 *
 * Order. Packing writes TEMPORARY, compares every new member with its file, syncs, renames, syncs the folder, and then
 * removes the files. Unpacking makes the files durable and then removes the pack. After a kill at any point every
 * message is in one of both or in both. The next pack, or a purge, removes the leftovers.
 *
 * Races. The lock of retention (KEPT_LOCK) is held by commands that pack, unpack, purge, remove old mail, or move mail
 * out of an archive, so that none of them finds a message as a file that is in a pack a moment later. Mail programs
 * take no lock. If one of them moved a file between its reading and its removal, the message is removed from the pack
 * again.
 */
#include "base/id.h"
#include "pack/pack.h"
#include "rooms/maildir/maildir.h"
#include <inttypes.h>
#include <time.h>

#define TEMPORARY ".mbox.gz.tmp"
#define TABLE_BEGIN "mailroom pack 1\n"
#define SUM_BEGIN "sum "
#define SUM_LEN (strlen(SUM_BEGIN) + 64 + 1)
#define DIGITS 20
#define ENDING (DIGITS + 1 + 2 + 8) /* digits, NUL, an empty block, checksum and length of nothing */
#define TABLE_MAX ((uint64_t)1 << 30)
#define MEMBER_MAX ((size_t)80 << 20)

static const char member_head[10] = { 0x1f, (char)0x8b, 8, 16 /* a comment */, 0, 0, 0, 0, 0, 3 };
static const char member_tail[10] = { 3 };

/* ---- Text ---- */

/* Adds the text with one ">" more, or one less, before each line that has "From " after any number of ">". */
static void
add_quoted(struct buf *out, struct mr_str text, bool quote)
{
	for (const char *at = text.ptr, *end = text.ptr + text.len; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at)), *mark = at;
		size_t len = newline ? (size_t)(newline - at) + 1 : (size_t)(end - at);

		while (mark < at + len && *mark == '>')
			mark++;
		bool is_from = (size_t)(at + len - mark) >= 5 && memcmp(mark, "From ", 5) == 0;

		if (is_from && quote)
			buf_addc(out, '>');
		else if (is_from && mark > at) {
			at++;
			len--;
		}
		buf_add(out, (struct mr_str){ at, len });
		at += len;
	}
}

static bool
add_member(struct buf *out, struct mr_str text, const char *name, const char *id, uint32_t mtime_s)
{
	mr_auto(buf_done) struct buf mbox = BUF_INIT;
	time_t at = (time_t)(id_time_ms(id) / 1000);
	char when[40] = "", size[24];
	struct tm tm;

	if (gmtime_r(&at, &tm))
		(void)strftime(when, sizeof when, "%a %b %e %H:%M:%S %Y", &tm);
	buf_addf(&mbox, "From mailroom %s\n", when);
	add_quoted(&mbox, text, true);
	buf_adds(&mbox, text.len > 0 && text.ptr[text.len - 1] == '\n' ? "\n" : "\n\n");
	(void)snprintf(size, sizeof size, "%zu", text.len);
	return buf_ok(&mbox) && pack_deflate(buf_str(&mbox), name, size, mtime_s, out);
}

/* The reverse of add_member. */
static bool
read_member(struct mr_str member, size_t size, struct buf *ret)
{
	mr_auto(buf_done) struct buf mbox = BUF_INIT;

	if (!pack_inflate(member, MEMBER_MAX, NULL, &mbox))
		return false;
	struct mr_str text = buf_str(&mbox), from;

	if (!str_starts(text, "From ") || !str_line(&text, &from))
		return false;
	add_quoted(ret, text, false);
	/* The checksum does not cover the size; the end that add_member wrote does. */
	if (!buf_ok(ret) || ret->len < size || ret->len - size != (size > 0 && ret->ptr[size - 1] == '\n' ? 1 : 2))
		return false;
	ret->len = size;
	if (ret->ptr)
		ret->ptr[size] = '\0';
	return true;
}

/* ---- The table ---- */

struct packed {
	uint64_t offset, length, size, mtime_s;
	const char *name;
	char id[MR_ID_LEN + 1];
};
struct pack { /* an open one; finish with pack_done */
	int fd;
	uint64_t size, end; /* of the file; of its messages */
	struct packed *v;
	size_t n, cap;
	struct buf table; /* v points into it */
};
#define PACK_INIT ((struct pack){ .fd = -1 })

static void
pack_done(struct pack *p)
{
	sys_close_fd(&p->fd);
	free(p->v);
	buf_done(&p->table);
}

static bool
add_packed(struct pack *p, const struct packed *entry)
{
	if (!array_grow(&p->v, p->n, &p->cap, sizeof *p->v))
		return false;
	p->v[p->n++] = *entry;
	return true;
}

/* Parses one line. False: we did not write it. */
static bool
parse_line(char *line, uint64_t end, struct packed *ret)
{
	struct mr_str rest = str_of(line), part;
	uint64_t *const numbers[] = { &ret->offset, &ret->length, &ret->size, &ret->mtime_s };
	struct file_name parts;

	for (size_t i = 0; i < 4; i++)
		if (!str_cut(&rest, ' ', &part) || !str_to_u64(part, numbers[i]))
			return false;
	ret->name = rest.ptr;
	if (rest.len >= NAME_LEN || strchr(ret->name, '/') || !name_parse(rest, &parts) || ret->length > MEMBER_MAX ||
	    ret->size > MEMBER_MAX || ret->offset > end || ret->length > end - ret->offset)
		return false;
	memcpy(ret->id, parts.id, sizeof ret->id);
	return true;
}

static bool
read_at(int fd, uint64_t at, size_t n, struct buf *ret)
{
	if (!buf_reserve(ret, n))
		return false;
	for (size_t got = 0; got < n;) {
		ssize_t more = sys_pread(fd, ret->ptr + ret->len, n - got, (off_t)(at + got));

		if (more <= 0)
			return false;
		got += (size_t)more;
		ret->len += (size_t)more;
	}
	ret->ptr[ret->len] = '\0';
	return true;
}

/* The last line is the checksum of those before it, and is cut off; packs of the first version have none. False: it
 * differs, and no name in the table can be trusted. */
static bool
take_sum(char *table)
{
	size_t len = strlen(table);
	char sum[65];

	if (len < SUM_LEN || memcmp(table + len - SUM_LEN, SUM_BEGIN, strlen(SUM_BEGIN)) != 0)
		return true;
	sha256_hex((struct mr_str){ table, len - SUM_LEN }, sum);
	bool same = memcmp(table + len - SUM_LEN + strlen(SUM_BEGIN), sum, sizeof sum - 1) == 0;

	table[len - SUM_LEN] = '\0';
	return same;
}

static bool
read_table(struct pack *p)
{
	char *line = NULL, *next = NULL;
	uint64_t len = 0;

	if (p->size < sizeof member_head + ENDING || !read_at(p->fd, p->size - ENDING, ENDING, &p->table) ||
	    p->table.ptr[DIGITS] != '\0' || memcmp(p->table.ptr + DIGITS + 1, member_tail, sizeof member_tail) != 0 ||
	    !str_to_u64((struct mr_str){ p->table.ptr, DIGITS }, &len) || len > p->size || len > TABLE_MAX ||
	    len < sizeof member_head + ENDING)
		return false;
	p->end = p->size - len;
	buf_clear(&p->table);
	if (!read_at(p->fd, p->end, (size_t)len, &p->table) ||
	    memcmp(p->table.ptr, member_head, sizeof member_head) != 0 ||
	    memchr(p->table.ptr + sizeof member_head, '\0', (size_t)len - sizeof member_head - (ENDING - DIGITS)))
		return false;
	line = p->table.ptr + sizeof member_head;
	p->table.ptr[len - ENDING] = '\0';
	if (!str_starts(str_of(line), TABLE_BEGIN) || !take_sum(line))
		return false;
	for (line += strlen(TABLE_BEGIN); *line; line = next) {
		struct packed entry;

		next = strchr(line, '\n');
		if (!next)
			return false;
		*next++ = '\0';
		if (!parse_line(line, p->end, &entry) || !add_packed(p, &entry))
			return false;
	}
	return true;
}

/* Opens the pack of a folder such as agents/bob/.Archive.2026-01. MR_NOTFOUND: it has none. MR_CORRUPT. */
static enum mr_rc
pack_open(struct pack *p, const struct maildir *md, const char *folder, struct mr_error *err)
{
	const struct path path = path_of(folder, "/" PACK_FILE, NULL);
	struct stat st;

	TRY(message_open(md->root_fd, path.z, &p->fd, &st, err));
	p->size = (uint64_t)st.st_size;
	if (read_table(p))
		return MR_OK;
	return mr_fail(err, MR_CORRUPT,
	    "'%s' is damaged: the table at its end cannot be read\n"
	    "`zcat` reads what is intact in it; a copy of the room may have it whole",
	    path.z);
}

static enum mr_rc
pack_open_in(struct pack *p, const struct mailbox *box, const char *subfolder, struct mr_error *err)
{
	return pack_open(p, box->md, path_of("agents/", box->agent, "/", subfolder, NULL).z, err);
}

enum mr_rc
pack_each(struct maildir *md, const char *folder, pack_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(pack_done) struct pack p = PACK_INIT;

	TRY(pack_open(&p, md, folder, err));
	for (size_t i = 0; fn && i < p.n; i++)
		if (!fn(ctx, p.v[i].name,
			(struct packed_at){ p.v[i].offset, (uint32_t)p.v[i].length, (uint32_t)p.v[i].size }))
			break;
	return MR_OK;
}

/* Is this the name in the head of the member? */
static bool
is_member_of(struct mr_str member, const char *name)
{
	size_t len = strlen(name) + 1;

	return member.len >= sizeof member_head + len && memcmp(member.ptr + sizeof member_head, name, len) == 0;
}

enum mr_rc
pack_check(struct maildir *md, const char *folder, struct mr_error *err)
{
	mr_auto(pack_done) struct pack p = PACK_INIT;
	uint64_t at = 0;

	TRY(pack_open(&p, md, folder, err));
	for (size_t i = 0; i < p.n; at += p.v[i++].length) {
		mr_auto(buf_done) struct buf member = BUF_INIT, text = BUF_INIT;

		if (p.v[i].offset != at || !read_at(p.fd, at, (size_t)p.v[i].length, &member) ||
		    !is_member_of(buf_str(&member), p.v[i].name) ||
		    (pack_inflate && !read_member(buf_str(&member), (size_t)p.v[i].size, &text)))
			return mr_fail(
			    err, MR_CORRUPT, "'%s/" PACK_FILE "' is damaged at message '%s'", folder, p.v[i].id);
	}
	return at == p.end ? MR_OK
			   : mr_fail(err, MR_CORRUPT, "'%s/" PACK_FILE "' has bytes that belong to no message", folder);
}

/* ---- One message ---- */

enum mr_rc
pack_open_message(int pack_fd, const struct listed *at, int *ret_fd, struct stat *ret_st, struct mr_error *err)
{
	mr_auto(buf_done) struct buf member = BUF_INIT, text = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;

	if (sys_stat_fd(pack_fd, ret_st) < 0)
		return mr_fail_errno(err, "cannot read '%s'", PACK_FILE);
	/* Otherwise the pack was replaced since it was listed. */
	if (!read_at(pack_fd, at->packed.offset, at->packed.length, &member) ||
	    !is_member_of(buf_str(&member), at->name))
		return mr_fail(err, MR_NOTFOUND, "'%s' no longer exists", at->name);
	if (!pack_inflate) {
		full_missed = true;
		return mr_fail(err, MR_UNSUPPORTED,
		    "%s/" PACK_FILE " is a packed month, which needs zlib, and this program is not built with it\n"
		    "zcat reads it; `make install` puts libexec/mailroom/mailroom-full beside the command where Debian's "
		    "packages libsqlite3-dev and zlib1g-dev are installed",
		    at->subfolder);
	}
	if (!read_member(buf_str(&member), at->packed.size, &text))
		return mr_fail(err, MR_CORRUPT, "message '%s' in %s/" PACK_FILE " is damaged", at->id, at->subfolder);
	fd = sys_open_memory();
	if (fd < 0 || sys_pwrite_all(fd, text.ptr ? text.ptr : "", text.len, 0) < 0)
		return mr_fail_errno(err, "cannot unpack '%s'", at->name);
	ret_st->st_size = (off_t)text.len;
	*ret_fd = sys_take_fd(&fd);
	return MR_OK;
}

/* ---- Writing ---- */

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct packed *)a)->name, ((const struct packed *)b)->name);
}

struct writer { /* a pack being written */
	struct mailbox *box;
	const char *subfolder;
	int folder_fd, cur_fd, fd;
	uint64_t at;
	struct buf table;
};

static void
writer_done(struct writer *w)
{
	if (w->fd >= 0)
		(void)sys_unlink(w->folder_fd, TEMPORARY);
	sys_close_fd(&w->fd);
	sys_close_fd(&w->cur_fd);
	sys_close_fd(&w->folder_fd);
	buf_done(&w->table);
}

static enum mr_rc
writer_begin(struct writer *w, struct mr_error *err)
{
	TRY(dir_open(w->box->fd, w->subfolder, &w->folder_fd, err));
	if (sys_unlink(w->folder_fd, TEMPORARY) < 0 && errno != ENOENT)
		return mr_fail_errno(err, "cannot remove '%s'", TEMPORARY);
	w->fd = sys_open(w->folder_fd, TEMPORARY, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, w->box->md->file_mode);
	if (w->fd < 0)
		return mr_fail_errno(err, "cannot make '%s' in '%s'", TEMPORARY, w->subfolder);
	buf_adds(&w->table, TABLE_BEGIN);
	return MR_OK;
}

static enum mr_rc
write_member(struct writer *w, struct packed *e, struct mr_str member, struct mr_error *err)
{
	if (sys_write_all(w->fd, member.ptr, member.len) < 0)
		return mr_fail_errno(err, "cannot write '%s'", TEMPORARY);
	e->offset = w->at;
	e->length = member.len;
	w->at += member.len;
	buf_addf(&w->table, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", e->offset, e->length, e->size,
	    e->mtime_s, e->name);
	return MR_OK;
}

/* Copies a message from the old pack. */
static enum mr_rc
write_old(struct writer *w, const struct pack *old, struct packed *e, struct mr_error *err)
{
	mr_auto(buf_done) struct buf member = BUF_INIT;

	if (!read_at(old->fd, e->offset, (size_t)e->length, &member))
		return mr_fail_errno(err, "cannot read '%s' in the pack", e->name);
	return write_member(w, e, buf_str(&member), err);
}

/* Writes the table and renames the whole pack into its place, durably. */
static enum mr_rc
writer_publish(struct writer *w, struct mr_error *err)
{
	char digits[DIGITS + 1], sum[65];

	sha256_hex(buf_str(&w->table), sum);
	buf_addf(&w->table, SUM_BEGIN "%s\n", sum);
	(void)snprintf(digits, sizeof digits, "%020zu", sizeof member_head + w->table.len + ENDING);
	if (!buf_ok(&w->table))
		return mr_nomem(err);
	if (sys_write_all(w->fd, member_head, sizeof member_head) < 0 ||
	    sys_write_all(w->fd, w->table.ptr, w->table.len) < 0 || sys_write_all(w->fd, digits, sizeof digits) < 0 ||
	    sys_write_all(w->fd, member_tail, sizeof member_tail) < 0 || sys_fsync(w->fd) < 0)
		return mr_fail_errno(err, "cannot write the pack of '%s'", w->subfolder);
	if (sys_rename(w->folder_fd, TEMPORARY, w->folder_fd, PACK_FILE) < 0)
		return mr_fail_errno(err, "cannot put the pack of '%s' in its place", w->subfolder);
	sys_close_fd(&w->fd); /* its name is final now: do not remove it */
	if (sys_fsync(w->folder_fd) < 0)
		return mr_fail_errno(err, "cannot make the pack of '%s' durable", w->subfolder);
	return MR_OK;
}

/* Writes the pack without these messages. The lock is held. */
static enum mr_rc
drop_ids(struct mailbox *box, const char *subfolder, const struct mr_names *ids, size_t *ret_n, struct mr_error *err)
{
	mr_auto(pack_done) struct pack old = PACK_INIT;
	mr_auto(writer_done) struct writer w = {
		.box = box, .subfolder = subfolder, .folder_fd = -1, .cur_fd = -1, .fd = -1, .table = BUF_INIT
	};
	size_t dropped = 0;

	TRY(pack_open_in(&old, box, subfolder, err));
	for (size_t i = 0; i < old.n; i++)
		dropped += names_has(ids, old.v[i].id);
	*ret_n = dropped;
	if (dropped == 0)
		return MR_OK;
	TRY(writer_begin(&w, err));
	if (dropped == old.n) {
		if (sys_unlink(w.folder_fd, PACK_FILE) < 0 || sys_fsync(w.folder_fd) < 0)
			return mr_fail_errno(err, "cannot remove the pack of '%s'", subfolder);
		return MR_OK;
	}
	for (size_t i = 0; i < old.n; i++)
		if (!names_has(ids, old.v[i].id))
			TRY(write_old(&w, &old, &old.v[i], err));
	return writer_publish(&w, err);
}

enum mr_rc
pack_purge(struct mailbox *box, const char *subfolder, const char *id, size_t *ret_n, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names ids = { 0 };

	if (!names_add(&ids, str_of(id)))
		return mr_nomem(err);
	return drop_ids(box, subfolder, &ids, ret_n, err);
}

void
pack_sweep(struct mailbox *box, const char *subfolder)
{
	(void)sys_unlink(box->fd, path_of(subfolder, "/" TEMPORARY, NULL).z);
}

/* ---- Packing ---- */

static bool
can_be_packed(
    const struct maildir *md, int cur_fd, const char *name, const struct file_name *parts, struct stat *ret_st)
{
	return (name_flags(parts, false) & (MR_SEEN | MR_PINNED)) == MR_SEEN && !strchr(name, '\n') &&
	       sys_stat(cur_fd, name, ret_st) == 0 && S_ISREG(ret_st->st_mode) &&
	       ret_st->st_size <= (off_t)MEMBER_MAX / 2 && (!maildir_is_shared(md) || ret_st->st_uid == sys_euid());
}

/* A member may replace its file only if reading it back from the disk gives the same bytes. */
static enum mr_rc
write_new(struct writer *w, struct packed *e, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, member = BUF_INIT, again = BUF_INIT, back = BUF_INIT;
	struct stat st;

	TRY(file_read_stat(w->cur_fd, e->name, MEMBER_MAX / 2, &text, &st, err));
	e->size = text.len;
	e->mtime_s = st.st_mtim.tv_sec > 0 ? (uint64_t)st.st_mtim.tv_sec : 0;
	if (!add_member(&member, buf_str(&text), e->name, e->id, (uint32_t)e->mtime_s))
		return mr_nomem(err);
	TRY(write_member(w, e, buf_str(&member), err));
	if (!read_at(w->fd, e->offset, (size_t)e->length, &again) ||
	    !read_member(buf_str(&again), (size_t)e->size, &back) || !str_eq(buf_str(&text), buf_str(&back)))
		return mr_fail(
		    err, MR_IO, "'%s' does not come back from the pack as it went in; nothing was removed", e->name);
	return MR_OK;
}

/* Removes files that are in the pack now. If a file is no longer under that name, a mail program moved it: the pack
 * must not keep a second copy. */
static enum mr_rc
remove_files(struct writer *w, const struct mr_names *files, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names moved = { 0 };
	struct file_name parts;
	size_t n;

	for (size_t i = 0; i < files->n; i++) {
		if (sys_unlink(w->cur_fd, files->v[i]) == 0)
			continue;
		if (errno != ENOENT)
			return mr_fail_errno(err, "cannot remove '%s', which is packed", files->v[i]);
		if (name_parse(str_of(files->v[i]), &parts) && !names_add(&moved, str_of(parts.id)))
			return mr_nomem(err);
	}
	if (sys_fsync(w->cur_fd) < 0)
		return mr_fail_errno(err, "cannot make the removal of packed files durable");
	return moved.n > 0 ? drop_ids(w->box, w->subfolder, &moved, &n, err) : MR_OK;
}

static enum mr_rc
pack_month(
    struct mr_room *room, struct mailbox *box, const char *subfolder, struct mr_packed *ret, struct mr_error *err)
{
	mr_auto(writer_done) struct writer w = {
		.box = box, .subfolder = subfolder, .folder_fd = -1, .cur_fd = -1, .fd = -1, .table = BUF_INIT
	};
	mr_auto(pack_done) struct pack old = PACK_INIT, all = PACK_INIT;
	mr_auto(mr_names_done) struct mr_names names = { 0 }, files = { 0 }, ids = { 0 };
	struct mr_packed packed = { .left = 0 };
	struct file_name parts;
	struct stat st = { 0 };

	TRY(mailbox_subfolder(box, subfolder, false, &w.cur_fd, err));
	(void)mailbox_take(box, BOX_MONTH);
	TRY(dir_names(w.cur_fd, &names, err));
	for (size_t i = 0; i < names.n; i++) {
		if (!name_parse(str_of(names.v[i]), &parts))
			continue;
		if (!can_be_packed(box->md, w.cur_fd, names.v[i], &parts, &st)) {
			packed.left++;
			continue;
		}
		packed.bytes_before += (uint64_t)st.st_blocks * 512;
		TRY(mr_got(names_add(&files, str_of(names.v[i])) && names_add(&ids, str_of(parts.id)), err));
	}
	TRY(mr_unless(pack_open_in(&old, box, subfolder, err), MR_NOTFOUND, err));
	if (files.n == 0) {
		*ret = (struct mr_packed){ .left = packed.left, .total = old.n };
		return MR_OK;
	}
	TRY(writer_begin(&w, err));
	names_sort(&ids);
	for (size_t i = 0; i < old.n; i++)
		if (!names_find(&ids, old.v[i].id)) /* else the file has precedence */
			TRY(mr_got(add_packed(&all, &old.v[i]), err));
	for (size_t i = 0; i < files.n; i++) {
		struct packed e = { .name = files.v[i], .length = 0 };

		(void)name_parse(str_of(e.name), &parts);
		memcpy(e.id, parts.id, sizeof e.id);
		TRY(mr_got(add_packed(&all, &e), err));
	}
	if (all.n > 1)
		qsort(all.v, all.n, sizeof *all.v, by_name);
	for (size_t i = 0; i < all.n; i++) {
		TRY(all.v[i].length > 0 ? write_old(&w, &old, &all.v[i], err) : write_new(&w, &all.v[i], err));
		if (!room_step(room, "messages", i, all.n))
			return mr_fail(err, MR_STOPPED, "stopped; nothing was changed");
	}
	TRY(writer_publish(&w, err));
	TRY(remove_files(&w, &files, err));
	/* A folder that held many names stays large; a new one is small. If mail comes in between, delivery makes the
	 * folder. */
	if (packed.left == 0 && sys_rmdir(w.folder_fd, "cur") == 0)
		(void)sys_mkdir(w.folder_fd, "cur", box->md->dir_mode);
	(void)sys_stat(w.folder_fd, PACK_FILE, &st);
	packed.messages = files.n;
	packed.total = all.n;
	packed.bytes_after = (uint64_t)st.st_blocks * 512;
	*ret = packed;
	return MR_OK;
}

/* ---- Unpacking ---- */

/* Writes a message back as a file. */
static enum mr_rc
put_back(struct mailbox *box, const struct packed *e, struct mr_str text, int cur_fd, struct mr_error *err)
{
	mr_auto(stage_done) struct staged file = STAGED_INIT;
	int tmp_fd = -1;

	TRY(mailbox_folder(box, BOX_TMP, &tmp_fd, err));
	TRY(stage_open(&file, cur_fd, tmp_fd, box->md->message_mode, err));
	TRY(stage_write(&file, text, err));
	(void)sys_set_mtime(file.fd, (int64_t)e->mtime_s * 1000000000);
	TRY(stage_sync(&file, err));
	TRY(stage_link(&file, cur_fd, e->name, err));
	/* The second sync writes the link count on file systems without a journal. The caller syncs the folder. */
	return sys_fsync(file.fd) < 0 ? mr_fail_errno(err, "cannot make '%s' durable", e->name) : MR_OK;
}

static bool
note_id(void *ctx, const struct dir_entry *entry)
{
	struct file_name parts;

	return !name_parse(str_of(entry->name), &parts) || names_add(ctx, str_of(parts.id));
}

static enum mr_rc
unpack_month(
    struct mr_room *room, struct mailbox *box, const char *subfolder, struct mr_packed *ret, struct mr_error *err)
{
	mr_auto(pack_done) struct pack p = PACK_INIT;
	mr_auto(mr_names_done) struct mr_names there = { 0 };
	mr_auto(sys_close_fd) int cur_fd = -1, folder_fd = -1;

	enum mr_rc rc = pack_open_in(&p, box, subfolder, err);

	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND, "'%s' of '%s' is not packed", subfolder + 1, box->agent);
	TRY(rc);
	TRY(mailbox_subfolder(box, subfolder, true, &cur_fd, err));
	(void)mailbox_take(box, BOX_MONTH);
	TRY(dir_open(box->fd, subfolder, &folder_fd, err));
	TRY(dir_each(cur_fd, note_id, &there, err));
	names_sort(&there);
	for (size_t i = 0; i < p.n; i++) {
		mr_auto(buf_done) struct buf member = BUF_INIT, text = BUF_INIT;
		const struct packed *e = &p.v[i];

		if (!names_find(&there, e->id)) {
			if (!read_at(p.fd, e->offset, (size_t)e->length, &member) ||
			    !read_member(buf_str(&member), (size_t)e->size, &text))
				return mr_fail(err, MR_CORRUPT,
				    "message '%s' in the pack is damaged; the pack stays\n"
				    "`mailroom doctor --fix` makes files of all that can be read",
				    e->id);
			TRY(put_back(box, e, buf_str(&text), cur_fd, err));
		}
		if (!room_step(room, "messages", i, p.n))
			return mr_fail(err, MR_STOPPED, "stopped; the pack stays, and the next --unpack goes on");
	}
	if (sys_fsync(cur_fd) < 0)
		return mr_fail_errno(err, "cannot make the unpacked files durable");
	if (sys_unlink(folder_fd, PACK_FILE) < 0 || sys_fsync(folder_fd) < 0)
		return mr_fail_errno(err, "cannot remove the pack");
	*ret = (struct mr_packed){ .messages = p.n };
	return MR_OK;
}

/* ---- A damaged pack ---- */

/*
 * The head and the checksum of a member are enough to know that its text is complete, so a damaged or truncated table
 * costs no message. The name is taken from the table if the table has a message at that place, because nothing protects
 * the name in the head.
 */
struct salvage {
	struct pack p; /* as much of its table as can be read */
	struct buf all;
	struct mailbox box;
	int cur_fd;
	struct mr_names there, lost; /* ids */
	size_t saved;
};

static void
salvage_done(struct salvage *s)
{
	pack_done(&s->p);
	buf_done(&s->all);
	mailbox_done(&s->box);
	sys_close_fd(&s->cur_fd);
	mr_names_done(&s->there);
	mr_names_done(&s->lost);
}

/* Is it a name of ours, and the name of this text? Either the head or the table may be damaged. */
static unsigned
rate_name(const char *name, struct mr_str text)
{
	struct file_name parts;

	if (strchr(name, '/') || strchr(name, '\n') || !name_parse(str_of(name), &parts))
		return 0;
	return text.len > 0 && memmem(text.ptr, text.len, parts.id, MR_ID_LEN) ? 2 : 1;
}

/* Reads the head and the table. A message without a name gets one. */
static void
describe_member(const struct salvage *s, struct mr_str member, uint64_t offset, struct mr_str text, char name[NAME_LEN],
    struct packed *ret)
{
	const char *in_head = member.ptr + sizeof member_head;
	size_t len = strnlen(in_head, member.len - sizeof member_head);
	struct file_name parts;

	*ret = (struct packed){ .offset = offset, .name = name };
	for (int i = 3; i >= 0; i--)
		ret->mtime_s = ret->mtime_s << 8 | (unsigned char)member.ptr[4 + i];
	(void)snprintf(name, NAME_LEN, "%.*s", len < NAME_LEN ? (int)len : 0, in_head);
	for (size_t i = 0; i < s->p.n; i++)
		if (s->p.v[i].offset == offset && rate_name(s->p.v[i].name, text) > rate_name(name, text))
			(void)snprintf(name, NAME_LEN, "%s", s->p.v[i].name);
	if (rate_name(name, text) == 0)
		(void)snprintf(name, NAME_LEN, "%" PRIu64 ".P%" PRIu64 ".salvaged:2,S", ret->mtime_s, offset);
	if (name_parse(str_of(name), &parts))
		memcpy(ret->id, parts.id, sizeof ret->id);
	if (len + 1 < member.len - sizeof member_head)
		(void)str_to_u64(str_of(in_head + len + 1), &ret->size); /* the bytes of the file end with a NUL */
}

/* *ret_used: its length in bytes; 1 if there is no member here. */
static enum mr_rc
salvage_member(struct salvage *s, struct mr_str member, uint64_t offset, size_t *ret_used, struct mr_error *err)
{
	mr_auto(buf_done) struct buf mbox = BUF_INIT, text = BUF_INIT;
	char name[NAME_LEN];
	struct packed e;
	struct mr_str rest, from;

	bool whole = pack_inflate(member, MEMBER_MAX, ret_used, &mbox);

	rest = buf_str(&mbox);
	describe_member(s, member, offset, rest, name, &e);
	if (!whole || !str_starts(rest, "From ") || !str_line(&rest, &from)) {
		*ret_used = 1;
		return names_add_once(&s->lost, e.id) ? MR_OK : mr_nomem(err);
	}
	for (size_t i = 0; i < s->p.n; i++)
		if (s->p.v[i].offset == offset)
			s->p.v[i].length = 0; /* it was read, under whatever name */
	add_quoted(&text, rest, false);
	if (!buf_ok(&text))
		return mr_nomem(err);
	/* add_member appends one line break or two; if the size is damaged, too, one of them may be too many. */
	if (e.size + 1 != text.len && e.size + 2 != text.len)
		e.size = text.len > 0 ? text.len - 1 : 0;
	text.len = (size_t)e.size;
	if (names_has(&s->there, e.id))
		return MR_OK;
	TRY(put_back(&s->box, &e, buf_str(&text), s->cur_fd, err));
	s->saved++;
	return names_add(&s->there, str_of(e.id)) ? MR_OK : mr_nomem(err);
}

static enum mr_rc
salvage_all(struct salvage *s, struct mr_error *err)
{
	static const char begin[4] = { 0x1f, (char)0x8b, 8, 24 /* a name and a comment */ };
	const char *end = s->all.ptr + s->all.len;

	for (const char *at = s->all.ptr; at && (size_t)(end - at) > sizeof member_head;) {
		size_t used = 1;

		at = memmem(at, (size_t)(end - at), begin, sizeof begin);
		if (!at || (size_t)(end - at) <= sizeof member_head)
			break;
		struct mr_str rest = { at, (size_t)(end - at) < MEMBER_MAX ? (size_t)(end - at) : MEMBER_MAX };

		TRY(salvage_member(s, rest, (uint64_t)(at - s->all.ptr), &used, err));
		at += used;
	}
	for (size_t i = 0; i < s->p.n; i++)
		if (s->p.v[i].length > 0 && !names_add_once(&s->lost, s->p.v[i].id))
			return mr_nomem(err);
	return sys_fsync(s->cur_fd) < 0 ? mr_fail_errno(err, "cannot make the saved files durable") : MR_OK;
}

static enum mr_rc
salvage_folder(struct salvage *s, struct maildir *md, const char *folder, struct mr_error *err)
{
	const char *subfolder = strrchr(folder, '/');
	char path[LISTED_PATH], agent[MR_ADDRESS_MAX + 1];
	struct stat st;

	if (!subfolder || !str_starts(str_of(folder), "agents/"))
		return mr_fail(err, MR_REFUSED, "'%s' is not a folder of an archive", folder);
	(void)snprintf(agent, sizeof agent, "%.*s", (int)(subfolder++ - folder) - (int)strlen("agents/"),
	    folder + strlen("agents/"));
	if (shared_is_others(md, agent))
		return mr_fail(err, MR_REFUSED, "the mailbox '%s' belongs to another user", agent);
	TRY(mailbox_open(&s->box, md, agent, err));
	TRY(mailbox_subfolder(&s->box, subfolder, true, &s->cur_fd, err));
	TRY(dir_each(s->cur_fd, note_id, &s->there, err));
	text_join(path, sizeof path, folder, "/" PACK_FILE, NULL);
	TRY(message_open(md->root_fd, path, &s->p.fd, &st, err));
	s->p.size = (uint64_t)st.st_size;
	if (!read_table(&s->p))
		s->p.n = 0;
	if (s->p.size > TABLE_MAX || !read_at(s->p.fd, 0, (size_t)s->p.size, &s->all))
		return mr_fail(err, MR_IO, "'%s' cannot be read completely", path);
	return salvage_all(s, err);
}

enum mr_rc
pack_salvage(struct mr_room *room, const char *folder, size_t *ret_saved, void (*lost)(void *ctx, const char *id),
    void *ctx, struct mr_error *err)
{
	mr_auto(pack_unlock) void *lock = NULL;
	mr_auto(salvage_done) struct salvage s = { .p = PACK_INIT, .box = MAILBOX_INIT, .cur_fd = -1 };

	if (!pack_inflate)
		return mr_fail(err, MR_UNSUPPORTED, "a packed month needs zlib, which this program is not built with");
	TRY(pack_lock(room, &lock, err));
	TRY(salvage_folder(&s, maildir_of(room), folder, err));
	*ret_saved = s.saved;
	for (size_t i = 0; i < s.lost.n; i++)
		if (!names_has(&s.there, s.lost.v[i]))
			lost(ctx, s.lost.v[i]);
	return MR_OK;
}

/* ---- For the post office ---- */

/* This month and the one before stay plain files. */
static enum mr_rc
check_month(const char *month, struct mr_error *err)
{
	static const char digits[] = "0123456789";
	char before[24];
	int64_t now_ms = clock_now_ms();
	time_t now_s = (time_t)(now_ms / 1000);
	struct tm tm = { .tm_mday = 31 };

	if (strlen(month) != 7 || strspn(month, digits) != 4 || month[4] != '-' || strspn(month + 5, digits) != 2 ||
	    strcmp(month + 5, "01") < 0 || strcmp(month + 5, "12") > 0)
		return mr_fail(err, MR_REFUSED, "'%s' is not a month\na month is written 2026-01", month);
	(void)gmtime_r(&now_s, &tm);
	name_month(ARCHIVE_FOLDER, now_ms - tm.tm_mday * (int64_t)24 * 3600 * 1000, before);
	if (strcmp(month, list_month_of(before) + 1) >= 0)
		return mr_fail(
		    err, MR_REFUSED, "%s is too recent: this month and the one before stay plain files", month);
	return MR_OK;
}

enum mr_rc
pack_lock(struct mr_room *room, void **ret_lock, struct mr_error *err)
{
	enum mr_rc rc = maildir_record_lock(room, ROOM_KEPT, "", KEPT_LOCK, LOCK_WAIT_MS, ret_lock, err);

	return rc == MR_BUSY ? mr_fail(err, MR_BUSY, "another command is packing or removing old mail\ntry again later")
			     : rc;
}

void
pack_unlock(void **lock)
{
	maildir_record_unlock(NULL, *lock);
}

enum mr_rc
maildir_pack(struct mr_room *room, const char *agent, const char *month, bool unpack, struct mr_packed *ret,
    struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	struct maildir *md = maildir_of(room);
	mr_auto(pack_unlock) void *lock = NULL;
	char subfolder[24];

	if (!unpack)
		TRY(check_month(month, err));
	if (!pack_inflate) {
		full_missed = true;
		return mr_fail(err, MR_UNSUPPORTED,
		    "packing needs zlib, which this program is not built with\n"
		    "`make install` puts libexec/mailroom/mailroom-full beside the command where Debian's packages "
		    "libsqlite3-dev and zlib1g-dev are installed");
	}
	if (shared_is_others(md, agent))
		return mr_fail(err, MR_REFUSED, "the mailbox '%s' belongs to another user", agent);
	TRY(mailbox_open(&box, md, agent, err));
	text_join(subfolder, sizeof subfolder, ".Archive.", month, NULL);
	if (!unpack) /* recorded before the first pack, because commands that read old mail check it */
		TRY(maildir_record_put(room, ROOM_KEPT, "", ROOM_PACKED, STR("yes\n"), err));
	TRY(pack_lock(room, &lock, err));
	enum mr_rc rc = (unpack ? unpack_month : pack_month)(room, &box, subfolder, ret, err);

	if (rc == MR_NOTFOUND && !unpack)
		return mr_fail(err, MR_NOTFOUND, "'%s' has no archive of %s", agent, month);
	return rc;
}
