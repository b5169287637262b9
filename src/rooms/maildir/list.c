/* SPDX-License-Identifier: MIT */
/*
 * list.c - reading folders while others move files.
 *
 * The problem. Nothing locks a Maildir. While we read a folder, agents hold, mark and archive, and mail
 * clients rename files as they please. A file that is renamed within a folder can jump from the part
 * that is not read yet to the part that is, and then one reading does not see it at all; a file
 * that goes from one folder to another can leave the second before we come and enter the first after we
 * left. Under load a third of all single readings miss something. "No mail" would then be a lie,
 * and mail that is reported as missing is the complaint that this program exists to end.
 *
 * What helps, and what does not:
 * - Order. Mail moves new -> cur -> archive and new -> held -> archive. Folders are read in that order,
 *   so that what moves along is seen twice rather than not at all. What is seen twice counts
 *   once, where it was seen last. Only what goes back (a released hold) or is renamed in place can
 *   still hide.
 * - A folder's mtime. If it is the same after reading as before, and old enough, nothing moved and the
 *   reading is exact. "Old enough", because the kernel's file times advance in ticks of up to 10 ms: a
 *   second change within the tick leaves the mtime as it was. So an mtime of the last 20 ms proves nothing.
 * - Looking again. When something moved, another pass is made and the results are united by id. A file must
 *   jump at just the wrong moment in every pass to stay hidden. We stop after the first exact pass,
 *   or when at least four passes were made and the last three found no id that was not known. Mail
 *   that was sent after we began does not count as unknown: under a steady stream we would never end.
 *   But "all that was there has left" is no end: what took its place (send --replace-key delivers the new one,
 *   then retires the old) came after the pass had read new/, and one more pass sees it.
 * - Asking for each file (stat) does not help: the name we know is the one it had.
 *
 * What is dropped. After an exact pass: all that it did not see. Without one: only what three
 * passes in a row did not see and what is not there under its last name either. A file that was
 * renamed looks exactly like one that is gone, so the doubt goes to the file; whoever opens it looks
 * it up again (scan.c).
 *
 * Inbox, held and archive are stations of one copy and share one entry an id. A copy in .Sent or in
 * the dead letters is another copy.
 *
 * Costs: no open and no stat for a message, names in an arena, some 100 bytes an entry.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/maildir/listing.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define TICK_NS 20000000 /* twice the coarsest kernel tick */
#define PASSES_MIN 4u
#define PASSES_AGREED 3u /* that many in a row without a new id */
#define PASSES_MAX 100u
#define CROWDED_AT 128 /* mark.c files the oldest then */

/* ---- One pass over the folders of a group ---- */

struct source { /* a folder to read, or only to watch for changes */
	int fd;
	bool owned, only_watch;
	struct mailbox *closed; /* new/ or cur/ of this mailbox, to be opened when its turn comes; or NULL */
	struct listed place;    /* folder, box, life, subfolder for what is found in it */
	int64_t changed_ns;     /* its mtime before the pass */
};
struct pass {
	struct listing_walk *walk;
	struct mailbox *box;
	struct source *v;
	size_t n, cap;
	const struct source *now; /* being read */
	size_t fresh;             /* ids nobody knew, older than the listing itself */
	size_t seen_in_cur;
	unsigned char number;
	bool failed; /* out of memory */
};

static void
pass_done(struct pass *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].owned)
			sys_close_fd(&p->v[i].fd);
	free(p->v);
}

static enum mr_rc
add_source(struct pass *p, struct source source, struct mr_error *err)
{
	if (p->n == p->cap) {
		size_t cap = p->cap == 0 ? 8 : p->cap * 2;
		struct source *grown = realloc(p->v, cap * sizeof(*grown));
		if (grown == NULL) {
			if (source.owned)
				sys_close_fd(&source.fd);
			return mr_nomem(err);
		}
		p->v = grown;
		p->cap = cap;
	}
	p->v[p->n++] = source;
	return MR_OK;
}

static int64_t
mtime_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static int64_t
folder_changed_ns(int fd)
{
	struct stat st;

	return sys_stat_fd(fd, &st) < 0 ? -1 : mtime_ns(&st);
}

/* new/ and cur/ of a mailbox whose descriptors it keeps. Most commands list once: then the descriptor that the mailbox
 * keeps is also the one that is read. It is opened after the look at the mtime, because some file systems show
 * what was there when the folder was opened, and not what came in between. */
static enum mr_rc
add_maildir(struct pass *p, struct mailbox *box, enum mr_folder folder, struct mr_error *err)
{
	static const enum box_folder order[] = { BOX_NEW, BOX_CUR };

	for (size_t i = 0; i < 2; i++) {
		struct source s = { .fd = box->folder[order[i]],
			.place = { .folder = (unsigned char)folder, .box = (unsigned char)order[i] } };
		s.closed = s.fd < 0 ? box : NULL;

		TRY(add_source(p, s, err));
	}
	return MR_OK;
}

static bool
note_life(void *ctx, const struct dir_entry *entry)
{
	uint64_t life = 0;

	/* ".gone.N" is mail on its way back; the folder it comes to changes with it. */
	if (!str_to_u64(str_of(entry->name), &life) || life > UINT32_MAX)
		return true;
	return names_add(ctx, str_of(entry->name));
}

static enum mr_rc
add_held(struct pass *p, struct mr_error *err)
{
	struct source top = { .only_watch = true };
	mr_auto(mr_names_done) struct mr_names lives = { 0 };

	enum mr_rc rc = mailbox_folder(p->box, BOX_HELD, &top.fd, err);
	if (rc == MR_OK)
		rc = add_source(p, top, err); /* before reading it: a life that begins meanwhile shows */
	if (rc == MR_OK)
		rc = dir_each(top.fd, note_life, &lives, err);
	for (size_t i = 0; i < lives.n && rc == MR_OK; i++) {
		uint64_t life = 0;
		(void)str_to_u64(str_of(lives.v[i]), &life);
		struct source s = { .fd = -1, .owned = true, .place = { .folder = MR_HELD, .life = (unsigned)life } };
		rc = mailbox_held(p->box, s.place.life, false, &s.fd, err);
		if (rc == MR_NOTFOUND || /* fenced meanwhile; held/ has changed, so we come again */
		    (rc != MR_OK && shared_skip(p->box->md, err, "agents/%s/held/%s", p->box->agent, lives.v[i]))) {
			rc = MR_OK;
			continue;
		}
		if (rc == MR_OK)
			rc = add_source(p, s, err);
	}
	return rc;
}

/* A Maildir++ folder. One that is not there is empty. */
static enum mr_rc
add_subfolder(struct pass *p, enum mr_folder folder, const char *name, struct mr_error *err)
{
	static const enum box_folder order[] = { BOX_NEW, BOX_CUR };
	const char *kept = arena_dup(&p->walk->list->own, str_of(name));

	if (kept == NULL)
		return mr_nomem(err);
	for (size_t i = 0; i < 2; i++) {
		struct source s = { .fd = -1,
			.owned = true,
			.place = {
			    .folder = (unsigned char)folder, .box = (unsigned char)order[i], .subfolder = kept } };
		enum mr_rc rc = list_open_folder(p->box, &s.place, &s.fd, err);
		if (rc == MR_NOTFOUND || (rc != MR_OK && shared_skip(p->box->md, err, "agents/%s/%s/%s", p->box->agent,
							     name, mailbox_folder_name(order[i]))))
			continue;
		if (rc == MR_OK)
			rc = add_source(p, s, err);
		if (rc != MR_OK)
			return rc;
	}
	return MR_OK;
}

/* ---- What a pass finds ---- */

static bool
acked_mapped(struct pass *p)
{
	struct listing_walk *w = p->walk;

	if (w->keyword < 0) /* read when the first 'a' is met, once a group */
		w->keyword = (int)mailbox_keyword(p->box, p->now->place.subfolder ? p->now->place.subfolder : "");
	return w->keyword == (int)KEYWORD_OURS;
}

static bool
take_entry(void *ctx, const struct dir_entry *entry)
{
	struct pass *p = ctx;
	struct listing_walk *w = p->walk;
	struct mr_str name = str_of(entry->name);
	struct file_name parts;
	struct listed found = p->now->place;

	if (found.folder == MR_HELD ? !name_parse_held(name, &parts) : !name_parse(name, &parts))
		return true;
	bool has_a = memchr(parts.flags.ptr != NULL ? parts.flags.ptr : "", 'a', parts.flags.len) != NULL;
	found.flags = name_flags(&parts, has_a && acked_mapped(p));
	if (found.folder == MR_INBOX && found.box == BOX_CUR && (found.flags & (MR_SEEN | MR_PINNED)) == MR_SEEN)
		p->seen_in_cur++;
	if (w->id_suffix != NULL && !str_ends((struct mr_str){ parts.id, MR_ID_LEN }, w->id_suffix))
		return true;
	memcpy(found.id, parts.id, sizeof(found.id));
	found.name = entry->name;
	found.attempt = parts.held ? parts.hold_attempt : parts.attempt;
	found.pass = p->number;
	switch (listing_unite(w, &found)) {
	case UNITE_NEW:
		if (id_time_ms(found.id) < w->began_ms)
			p->fresh++;
		return true;
	case UNITE_KNOWN:
		return true;
	case UNITE_NOMEM:
		break;
	}
	p->failed = true;
	return false;
}

/* Are all of them old enough that another change must show? Asked of the clock after the mtimes were read: a process
 * that is put to sleep in between must not take a young one for old. */
static bool
look_at_times(struct pass *p)
{
	bool old = true;

	for (size_t i = 0; i < p->n; i++) {
		struct source *s = &p->v[i];
		struct stat st;

		if (s->closed != NULL)
			s->changed_ns =
			    sys_stat(s->closed->fd, mailbox_folder_name(s->place.box), &st) < 0 ? -1 : mtime_ns(&st);
		else
			s->changed_ns = folder_changed_ns(s->fd);
	}
	int64_t now_ns = clock_now_ns();
	for (size_t i = 0; i < p->n; i++) {
		int64_t age_ns = now_ns - p->v[i].changed_ns;
		if (p->v[i].changed_ns < 0 || (age_ns < TICK_NS && age_ns > -TICK_NS))
			old = false;
	}
	return old;
}

static enum mr_rc
read_source(struct pass *p, struct source *s, struct mr_error *err)
{
	p->now = s;
	if (s->closed == NULL)
		return dir_each(s->fd, take_entry, p, err);
	enum mr_rc rc = mailbox_folder(s->closed, s->place.box, &s->fd, err);
	return rc == MR_OK ? dir_each_once(s->fd, take_entry, p, err) : rc;
}

/* Reads every source; *ret_exact when surely nothing moved meanwhile. */
static enum mr_rc
read_sources(struct pass *p, bool *ret_exact, struct mr_error *err)
{
	bool exact = look_at_times(p);

	for (size_t i = 0; i < p->n; i++) {
		if (p->v[i].only_watch)
			continue;

		TRY(read_source(p, &p->v[i], err));
		if (p->failed)
			return mr_nomem(err);
	}
	for (size_t i = 0; i < p->n; i++)
		if (folder_changed_ns(p->v[i].fd) != p->v[i].changed_ns)
			exact = false;
	*ret_exact = exact;
	return MR_OK;
}

/* ---- Passes until it is enough ---- */

struct group {              /* folders that are read together until they hold still */
	unsigned folders;   /* MR_INBOX, MR_HELD, MR_DEAD */
	enum mr_folder sub; /* or one Maildir++ folder */
	const char *name;
	struct mailbox *dead; /* with MR_DEAD */
};

static enum mr_rc
add_sources(struct pass *p, const struct group *g, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	if (g->folders & MR_INBOX)
		rc = add_maildir(p, p->box, MR_INBOX, err);
	if (rc == MR_OK && (g->folders & MR_HELD))
		rc = add_held(p, err);
	if (rc == MR_OK && (g->folders & MR_DEAD))
		rc = add_maildir(p, g->dead, MR_DEAD, err);
	if (rc == MR_OK && g->name != NULL)
		rc = add_subfolder(p, g->sub, g->name, err);
	return rc;
}

/* Is it really gone? See "What is dropped" above. */
static bool
is_gone(struct mailbox *box, const struct listed *at)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_error ignored = { 0 };
	struct stat st;

	enum mr_rc rc = list_open_folder(box, at, &fd, &ignored);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND;
	return sys_stat(fd, at->name, &st) < 0 && errno == ENOENT;
}

static void
drop_gone(struct listing_walk *w, struct mailbox *box, unsigned last_pass, bool exact)
{
	struct listing *l = w->list;
	size_t kept = w->first;

	for (size_t i = w->first; i < l->n; i++) {
		const struct listed *e = &l->v[i];
		bool missed = exact ? e->pass != last_pass : e->pass + PASSES_AGREED <= last_pass && is_gone(box, e);
		if (!missed && !(w->unread_only && (e->flags & MR_SEEN)))
			l->v[kept++] = *e;
	}
	l->n = kept;
}

/* Something was listed, and by the last pass nothing of it is left. */
static bool
all_left(const struct listing_walk *w, unsigned last_pass)
{
	const struct listing *l = w->list;

	for (size_t i = w->first; i < l->n; i++)
		if (l->v[i].pass == last_pass && !(w->unread_only && (l->v[i].flags & MR_SEEN)))
			return false;
	return l->n > w->first;
}

static enum mr_rc
list_group(struct mailbox *box, const struct group *g, bool unread_only, const char *id_suffix, struct listing *ret,
    struct mr_error *err)
{
	mr_auto(listing_walk_done) struct listing_walk w = { .list = ret,
		.first = ret->n,
		.keyword = -1,
		.unread_only = unread_only,
		.id_suffix = id_suffix,
		.began_ms = clock_now_ms() };
	bool exact = false;
	unsigned number = 0, agreed = 0;

	while (
	    !exact && number < PASSES_MAX && (number < PASSES_MIN || agreed < PASSES_AGREED || all_left(&w, number))) {
		mr_auto(pass_done) struct pass p = { .walk = &w, .box = box, .number = (unsigned char)++number };
		enum mr_rc rc = add_sources(&p, g, err);
		if (rc == MR_OK)
			rc = read_sources(&p, &exact, err);
		if (rc != MR_OK)
			return rc;
		agreed = p.fresh == 0 ? agreed + 1 : 0;
		for (size_t i = 0; exact && g->folders == MR_INBOX && i < 2; i++)
			ret->still_ns[i] = p.v[i].changed_ns;
		if (p.seen_in_cur > CROWDED_AT)
			(void)snprintf(box->md->crowded, sizeof(box->md->crowded), "%s", box->agent);
	}
	drop_gone(&w, box, number, exact);
	return MR_OK;
}

/* ---- For the rest of the driver ---- */

enum mr_rc
list_month(struct mailbox *box, const char *name, bool unread_only, const char *id_suffix, struct listing *ret,
    struct mr_error *err)
{
	struct group g = { .sub = MR_ARCHIVE, .name = name };

	return list_group(box, &g, unread_only, id_suffix, ret, err);
}

enum mr_rc
list_folders(struct mailbox *box, unsigned folders, bool unread_only, const char *id_suffix, struct listing *ret,
    struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox dead = MAILBOX_INIT;
	mr_auto(mr_names_done) struct mr_names months = { 0 };
	mr_auto(listing_done) struct listing l = { 0 };
	struct group live = { .folders = folders & (MR_INBOX | MR_HELD) };
	struct group sent = { .sub = MR_SENT, .name = ".Sent" };
	struct group letters = { .folders = MR_DEAD, .dead = &dead };
	enum mr_rc rc = MR_OK;

	if (live.folders != 0)
		rc = list_group(box, &live, unread_only, id_suffix, &l, err);
	if (rc == MR_OK && (folders & MR_ARCHIVE))
		rc = list_months(box, &months, err);
	for (size_t i = 0; i < months.n && rc == MR_OK; i++)
		rc = list_month(box, months.v[i], unread_only, id_suffix, &l, err);
	if (rc == MR_OK)
		rc = listing_unique(&l, err); /* archived while we read: it is in both groups */
	if (rc == MR_OK && (folders & MR_SENT))
		rc = list_group(box, &sent, unread_only, id_suffix, &l, err);
	if (rc == MR_OK && (folders & MR_DEAD)) {
		rc = mailbox_open_dead(&dead, box->md, err);
		if (rc == MR_OK)
			rc = list_group(box, &letters, unread_only, id_suffix, &l, err);
	}
	if (rc != MR_OK)
		return rc;
	*ret = l;
	l = (struct listing){ 0 };
	return MR_OK;
}
