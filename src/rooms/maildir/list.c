/* SPDX-License-Identifier: MIT */
/*
 * list.c - reading folders while others move files.
 *
 * The problem. Nothing locks a Maildir. While we read a folder, agents hold, mark and archive, and mail clients rename
 * files as they please. A file that is renamed within a folder can jump from the part that is not read yet to the part
 * that is, and then one reading does not see it at all; a file that moves from one folder to another can leave the
 * second before we read it and enter the first after we read that. Under load a third of all single readings miss
 * something. "No mail" would then be false, and missing mail is exactly the problem that this program has to solve.
 *
 * What helps, and what does not:
 * - Order. Mail moves new -> cur -> archive and new -> held -> archive. Folders are read in that order, so that a
 *   message that moves is seen twice and not missed. It counts once, where it was seen last. Only a message that moves
 *   back (a released hold) or is renamed in place can still be missed.
 * - A folder's mtime. If it is the same after reading as before, and old enough, nothing moved and the reading is
 *   exact. "Old enough", because the kernel's file times advance in ticks of up to 10 ms: a second change within one
 *   tick leaves the mtime unchanged. So an mtime of the last 20 ms proves nothing.
 * - Repetition. If something moved, another pass is made and the results are merged by id. To stay hidden, a file must
 *   move at just the wrong moment in every pass. We stop after the first exact pass, or after at least four passes of
 *   which the last three found no new id. Mail that was sent after we began does not count as new, else a steady stream
 *   would keep us here for ever. If a pass finds that all known mail has left, we do not stop either: its replacement
 *   (send --replace-key delivers the new message, then retires the old one) came after the pass had read new/, and one
 *   more pass sees it.
 * - A stat of each file does not help: it asks for the old name.
 *
 * Dropped entries. After an exact pass: all entries that it did not see. Otherwise only entries that three passes in a
 * row did not see and that are missing under their last name, too. A renamed file looks exactly like a removed one, so
 * in doubt the entry stays; a reader that opens it looks it up again (scan.c).
 *
 * One copy moves between inbox, held and archive, so these share one entry for each id. A copy in .Sent or in the dead
 * letters is another copy.
 *
 * The first N of an order (scan_request.most). Each pass keeps the first N + WINDOW_SPARE entries of all that were seen
 * so far, so that memory does not grow with the folder. This window only gets narrower from pass to pass: a new entry
 * in it is one that an earlier pass missed, as above. Mail that leaves meanwhile still takes places in it. If fewer
 * than N entries remain at the end, and others were rejected, all passes are repeated.
 *
 * Costs: no open and no stat of messages; names are in an arena; an entry takes some 150 bytes.
 */
#include "rooms/maildir/maildir.h"
#include <inttypes.h>

#define TICK_NS 20000000 /* twice the coarsest kernel tick */
#define PASSES_MIN 4u
#define PASSES_AGREED 3u /* as many in a row must find no new id */
#define PASSES_MAX 100u
#define WINDOW_SPARE 1024u
#define WINDOW_TRIES 5
#define SLOTS_FIRST 64

struct source { /* a folder to read, or only to watch for changes */
	int fd;
	bool owned, only_watch;
	bool closed;         /* new/ or cur/ of the mailbox itself, opened only when it is read */
	struct listed place; /* folder, box, life, subfolder of the messages in it */
	int64_t changed_ns;  /* its mtime before the pass */
	ino_t inode;         /* new/ and cur/ of the mailbox itself: the inode of that name before the pass */
};

struct walk { /* a group of folders that are read together until nothing moves */
	struct mailbox *box;
	struct listing *list;
	size_t first;    /* entries before it belong to other groups */
	uint32_t *slots; /* hash of id -> index + 1 */
	size_t slots_n;  /* a power of two */
	int keyword;     /* enum keyword of the group's folder, -1: not read yet */
	const struct scan_request *want;
	int64_t began_ms;
	size_t prune_at;     /* the group is cut to the window when it has so many entries; 0: all are kept */
	bool pruned;         /* some were rejected: those after `worst` */
	struct listed worst; /* the last one in the window */
	/* The current pass. */
	unsigned char number;
	struct source *v;
	size_t n, cap;
	const struct source *now; /* being read */
	size_t fresh;             /* new ids that are older than the listing itself */
	size_t passed;            /* names that match, kept or not */
	char moving[NAME_LEN];    /* ".moving.R" in the folder being read: renew.c */
	struct packed_at packed;  /* of the current name; length 0: it is a file */
	bool failed;              /* out of memory */
};

/* ---- Folders ---- */

struct path
list_path(const struct mailbox *box, const struct listed *at)
{
	const char *part = at->box == BOX_NEW ? "new" : "cur";
	char life[21];

	if (at->packed.length > 0)
		return path_of("agents/", box->agent, "/", at->subfolder, "/" PACK_FILE, NULL);
	if (at->folder == MR_DEAD || box->agent[0] == '\0')
		return path_of("dead/", part, NULL);
	if (at->folder == MR_HELD) {
		(void)text_number(life, at->life, 0);
		return path_of("agents/", box->agent, "/held/", life, NULL);
	}
	if (!at->subfolder)
		return path_of("agents/", box->agent, "/", part, NULL);
	return at->folder == MR_INBOX ? path_of("agents/", box->agent, "/", at->subfolder, NULL)
				      : path_of("agents/", box->agent, "/", at->subfolder, "/", part, NULL);
}

enum mr_rc
list_open_folder(struct mailbox *box, const struct listed *at, int *ret_fd, struct mr_error *err)
{
	if (at->packed.length > 0)
		return mr_fail(err, MR_REFUSED,
		    "message '%s' is in a packed month and cannot be changed there\n`mailroom archive --unpack %s` brings it back",
		    at->id, list_month_of(at->subfolder) + 1);
	return dir_open(box->md->root_fd, list_path(box, at).z, ret_fd, err);
}

const char *
list_month_of(const char *name)
{
	return name + 1 + strcspn(name + 1, ".");
}

static int
by_month(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	int order = strcmp(list_month_of(x), list_month_of(y));

	return order != 0 ? order : strcmp(x, y);
}

enum mr_rc
list_months(struct mailbox *box, unsigned folders, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	if (dir_names(box->fd, &names, err) != MR_OK)
		return mr_wrap(err, "archive of '%s'", box->agent);
	for (size_t i = 0; i < names.n; i++)
		if ((((folders & MR_ARCHIVE) && str_starts(str_of(names.v[i]), ".Archive")) ||
			((folders & MR_SENT) && str_starts(str_of(names.v[i]), SENT_FOLDER "."))) &&
		    !names_add(ret, str_of(names.v[i])))
			return mr_nomem(err);
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof *ret->v, by_month);
	return MR_OK;
}

/* ---- Entries, united by id ---- */

static uint32_t *
find_slot(const struct walk *w, const char *id)
{
	/* The end of an id is random or a hash, its beginning is a time. */
	uint64_t h = hash_bytes((struct mr_str){ id + 10, MR_ID_LEN - 10 });
	size_t at = (size_t)(h ^ (h >> 32)) & (w->slots_n - 1);

	while (w->slots[at] != 0 && memcmp(w->list->v[w->slots[at] - 1].id, id, MR_ID_LEN) != 0)
		at = (at + 1) & (w->slots_n - 1);
	return &w->slots[at];
}

/* Makes room for one more entry; at most half of the slots are used, so that searches are short. */
static bool
grow(struct walk *w)
{
	struct listing *l = w->list;

	if (l->n >= UINT32_MAX || !array_grow(&l->v, l->n, &l->cap, sizeof *l->v))
		return false;
	if (w->slots_n > 0 && (l->n - w->first) * 2 < w->slots_n)
		return true;
	size_t wanted = w->slots_n == 0 ? SLOTS_FIRST : w->slots_n * 2;
	uint32_t *slots = calloc(wanted, sizeof *slots);

	if (!slots)
		return false;
	free(w->slots);
	w->slots = slots;
	w->slots_n = wanted;
	for (size_t i = w->first; i < l->n; i++)
		*find_slot(w, l->v[i].id) = (uint32_t)(i + 1);
	return true;
}

static int
by_oldest(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	int order = memcmp(x->id, y->id, MR_ID_LEN);

	return order != 0 ? order : (int)!!(x->folder & (MR_SENT | MR_DEAD)) - (int)!!(y->folder & (MR_SENT | MR_DEAD));
}

static int
by_newest(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	return memcmp(x->id, y->id, MR_ID_LEN) != 0 ? by_oldest(b, a) : by_oldest(a, b);
}

static int
by_urgency(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	if (x->look != y->look)
		return x->look ? -1 : 1;
	return x->priority != y->priority ? y->priority - x->priority : by_newest(a, b);
}

static int
by_work(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	if (x->look != y->look)
		return x->look ? -1 : 1;
	if ((x->released_ms > 0) != (y->released_ms > 0))
		return x->released_ms > 0 ? 1 : -1;
	if (x->priority != y->priority)
		return y->priority - x->priority;
	return x->released_ms != y->released_ms ? (x->released_ms < y->released_ms ? -1 : 1) : by_oldest(a, b);
}

static int (*const compare[])(const void *, const void *) = {
	[SCAN_OLDEST] = by_oldest, [SCAN_NEWEST] = by_newest, [SCAN_URGENCY] = by_urgency, [SCAN_WORK] = by_work
};

static void
sort_from(struct listing *l, size_t first, enum scan_order order)
{
	size_t in_order = first + 1;

	while (in_order < l->n && compare[order](&l->v[in_order - 1], &l->v[in_order]) <= 0)
		in_order++;
	if (in_order < l->n) /* those of newest.c come in order */
		qsort(l->v + first, l->n - first, sizeof *l->v, compare[order]);
}

void
listing_sort(struct listing *l, enum scan_order order)
{
	sort_from(l, 0, order);
}

/* Of the sorted entries from `first` on, keeps the first `most` and those with `look`. Returns the place of the last
 * one without `look`. */
static size_t
keep_most(struct listing *l, size_t first, size_t most)
{
	size_t kept = first, plain = 0, last = first;

	for (size_t i = first; i < l->n; i++) {
		if (!l->v[i].look && plain++ >= most)
			continue;
		if (!l->v[i].look)
			last = kept;
		l->v[kept++] = l->v[i];
	}
	l->n = kept;
	return last;
}

/* Cuts the entries of this group to the window, and frees the memory of the other names. */
static bool
prune(struct walk *w)
{
	struct listing *l = w->list;
	size_t window = w->want->most + WINDOW_SPARE, n = l->n;
	struct arena *own = NULL;

	sort_from(l, w->first, w->want->order);
	size_t last = keep_most(l, w->first, window);

	w->prune_at = l->n - w->first + window;
	if (l->n == n) /* all of them have `look` */
		return true;
	w->worst = l->v[last];
	w->pruned = true;
	memset(w->slots, 0, w->slots_n * sizeof *w->slots);
	for (size_t i = 0; i < l->n; i++) {
		l->v[i].name = arena_dup(&own, str_of(l->v[i].name));
		if (!l->v[i].name) {
			arena_free(own);
			l->n = 0; /* the names of the old arena and of the freed one */
			return false;
		}
		if (i >= w->first)
			*find_slot(w, l->v[i].id) = (uint32_t)(i + 1);
	}
	arena_free(l->own);
	l->own = own;
	return true;
}

/* Does the id say so? Only for names that we made. */
static bool
is_of_another_time(const struct scan_request *want, const struct file_name *n)
{
	int64_t at_ms = id_time_ms(n->id);

	return n->ours && ((want->since_ms && at_ms < want->since_ms) || (want->before_ms && at_ms >= want->before_ms));
}

void
listed_fill(struct listed *l, const struct file_name *parts, bool acked)
{
	struct released released;

	memcpy(l->id, parts->id, sizeof l->id);
	l->flags = name_flags(parts, acked);
	l->attempt = parts->held ? parts->hold_attempt : parts->attempt;
	l->priority = (signed char)parts->priority;
	l->look = parts->look;
	l->released_ms = name_released(parts, &released) ? released.at_ms : 0;
}

static bool
take_entry(void *ctx, const struct dir_entry *entry)
{
	struct walk *w = ctx;
	const struct scan_request *want = w->want;
	struct listing *l = w->list;
	struct mr_str name = str_of(entry->name);
	struct listed found = w->now->place;
	struct file_name parts;

	if (str_starts(name, MOVING_PREFIX) && !found.subfolder)
		text_join(w->moving, sizeof w->moving, entry->name, NULL);
	if (found.folder == MR_HELD ? !name_parse_held(name, &parts) : !name_parse(name, &parts))
		return true;
	bool has_a = memchr(parts.flags.ptr ? parts.flags.ptr : "", 'a', parts.flags.len) != NULL;

	if (has_a && w->keyword < 0) /* read once a group, when the first 'a' is met */
		w->keyword =
		    (int)mailbox_keyword(w->box, found.folder == MR_INBOX || !found.subfolder ? "" : found.subfolder);
	listed_fill(&found, &parts, has_a && w->keyword == (int)KEYWORD_OURS);
	if ((want->id_suffix && !str_ends((struct mr_str){ parts.id, MR_ID_LEN }, want->id_suffix)) ||
	    is_of_another_time(want, &parts))
		return true;
	bool skip = want->unread_only && (found.flags & MR_SEEN) != 0;

	if (skip && l->n == w->first)
		return true;
	found.pass = w->number;
	found.packed = w->packed;
	w->passed += !skip;
	if ((!skip && want->wants && !want->wants(want->wants_ctx, found.id)) ||
	    (w->pruned && !found.look && compare[want->order](&found, &w->worst) > 0))
		return true;
	w->failed = (w->prune_at > 0 && l->n - w->first >= w->prune_at && !prune(w)) || !grow(w);
	if (w->failed)
		return false;
	uint32_t *slot = find_slot(w, parts.id);
	struct listed *known = *slot ? &l->v[*slot - 1] : NULL;

	if (known && found.packed.length > 0 && known->packed.length == 0 && known->pass == w->number)
		return true; /* the file has precedence over the pack */
	if (!known && skip)  /* it was never seen unread: nothing to correct */
		return true;
	found.name = known && strcmp(known->name, entry->name) == 0 ? known->name : arena_dup(&l->own, name);
	w->failed = !found.name;
	if (w->failed)
		return false;
	if (!known) {
		w->fresh += id_time_ms(found.id) < w->began_ms;
		known = &l->v[l->n++];
		*slot = (uint32_t)l->n;
	}
	*known = found; /* a later pass or folder is more current: new before cur, cur before held */
	return true;
}

void
listing_done(struct listing *l)
{
	if (!l)
		return;
	free(l->v);
	arena_free(l->own);
	arena_free(l->folders);
	*l = (struct listing){ 0 };
}

/* ---- The folders of a pass ---- */

static enum mr_rc
add_source(struct walk *w, struct source source, struct mr_error *err)
{
	if (!array_grow(&w->v, w->n, &w->cap, sizeof *w->v)) {
		if (source.owned)
			sys_close_fd(&source.fd);
		return mr_nomem(err);
	}
	w->v[w->n++] = source;
	return MR_OK;
}

static void
forget_sources(struct walk *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].owned)
			sys_close_fd(&w->v[i].fd);
	w->n = 0;
}

static void
walk_done(struct walk *w)
{
	forget_sources(w);
	free(w->v);
	free(w->slots);
}

/* Keeps for each id the entry that was added last. Mail moved there while we read, so the archive has precedence over
 * the inbox. */
static enum mr_rc
keep_last_of_each(struct listing *l, struct mr_error *err)
{
	mr_auto(walk_done) struct walk w = { .list = l };
	size_t n = l->n;

	l->n = 0;
	for (size_t i = 0; i < n; i++) {
		struct listed entry = l->v[i];

		TRY(mr_got(grow(&w), err));
		uint32_t *slot = find_slot(&w, entry.id);

		if (*slot == 0)
			*slot = (uint32_t)++l->n;
		l->v[*slot - 1] = entry;
	}
	return MR_OK;
}

/* new/ and cur/ of the mailbox itself, or of a Maildir++ folder in it; a missing folder is empty. Most commands list
 * once; then the descriptor that the mailbox keeps is also used for reading. It is opened after the mtime was read,
 * because some file systems show the state at the time of the open, without what changed since. */
static enum mr_rc
add_pair(struct walk *w, enum mr_folder folder, const char *subfolder, struct mr_error *err)
{
	for (unsigned which = BOX_NEW; which <= BOX_CUR; which++) {
		struct source s = { .fd = subfolder ? -1 : w->box->folder[which],
			.owned = subfolder != NULL,
			.place = {
			    .folder = (unsigned char)folder, .box = (unsigned char)which, .subfolder = subfolder } };

		if (subfolder) {
			TRY(shared_pass(w->box->md, list_open_folder(w->box, &s.place, &s.fd, err), err, "%s",
			    list_path(w->box, &s.place).z));
			if (s.fd < 0)
				continue;
		} else if (s.fd < 0) {
			s.closed = true;
		}
		TRY(add_source(w, s, err));
	}
	return MR_OK;
}

static enum mr_rc
add_held(struct walk *w, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names lives = { 0 };
	struct source top = { .only_watch = true };

	TRY(mailbox_folder(w->box, BOX_HELD, &top.fd, err));
	TRY(add_source(w, top, err)); /* before reading it, so that a life that begins meanwhile is noticed */
	TRY(dir_names(top.fd, &lives, err));
	for (size_t i = 0; i < lives.n; i++) {
		struct source s = { .fd = -1, .owned = true, .place = { .folder = MR_HELD } };

		/* ".gone.N" holds mail on its way back; the folder that it returns to changes, too. */
		if (!life_number(lives.v[i], &s.place.life))
			continue;
		enum mr_rc rc = mailbox_held(w->box, s.place.life, false, &s.fd, err);

		(void)mailbox_take(w->box, BOX_LIFE);
		/* Missing: fenced meanwhile; held/ has changed, so another pass follows. */
		TRY(shared_pass(w->box->md, rc, err, "agents/%s/held/%s", w->box->agent, lives.v[i]));
		if (s.fd >= 0)
			TRY(add_source(w, s, err));
	}
	return MR_OK;
}

/* ---- Passes until it is enough ---- */

/* new/ or cur/ of the mailbox itself: its name may lead to another folder now (renew.c). */
static bool
is_own_pair(const struct source *s)
{
	return !s->only_watch && s->place.folder != MR_HELD && !s->place.subfolder;
}

/* Are all mtimes old enough to show another change? The clock is read after the mtimes, so that a process that sleeps
 * in between does not take a new mtime for an old one. */
static bool
look_at_times(struct walk *w)
{
	struct stat st;
	bool old = true;

	for (size_t i = 0; i < w->n; i++) {
		struct source *s = &w->v[i];
		bool seen = (is_own_pair(s) ? sys_stat(w->box->fd, mailbox_folder_name(s->place.box), &st)
					    : sys_stat_fd(s->fd, &st)) == 0;

		s->changed_ns = seen ? time_ns(st.st_mtim) : -1;
		s->inode = seen ? st.st_ino : 0;
	}
	int64_t now_ns = clock_now_ns();

	for (size_t i = 0; i < w->n; i++) {
		int64_t age_ns = now_ns - w->v[i].changed_ns;

		if (w->v[i].changed_ns < 0 || (age_ns < TICK_NS && age_ns > -TICK_NS))
			old = false;
	}
	return old;
}

/* new/ or cur/ is being replaced, and some of its mail is still in the folder that had its name (renew.c). Mail moves
 * from there to here, so both readings may miss it; another pass follows. */
static enum mr_rc
read_moving(struct walk *w, const struct source *live, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	const struct path path = path_of(
	    "held/" GONE_PREFIX, mailbox_folder_name(live->place.box), ".", w->moving + strlen(MOVING_PREFIX), NULL);
	struct source gone = { .place = live->place };
	enum mr_rc rc = dir_open(w->box->fd, path.z, &fd, err);

	if (rc == MR_NOTFOUND) { /* it is finished; only the mark was left */
		(void)sys_unlink(live->fd, w->moving);
		return MR_OK;
	}
	TRY(rc);
	gone.place.subfolder = arena_dup(&w->list->folders, str_of(path.z));
	TRY(mr_got(gone.place.subfolder, err));
	w->now = &gone;
	return dir_each_once(fd, take_entry, w, err);
}

/* Reads every source; *ret_exact if certainly nothing moved meanwhile. */
static enum mr_rc
read_sources(struct walk *w, bool *ret_exact, struct mr_error *err)
{
	bool exact = look_at_times(w);
	struct stat st;

	for (size_t i = 0; i < w->n; i++) {
		struct source *s = &w->v[i];

		if (s->only_watch)
			continue;
		w->now = s;
		if (s->closed)
			TRY(mailbox_folder(w->box, s->place.box, &s->fd, err));
		w->moving[0] = '\0';
		TRY((s->closed ? dir_each_once : dir_each)(s->fd, take_entry, w, err));
		if (w->moving[0] != '\0') {
			TRY(read_moving(w, s, err));
			exact = false;
		}
		if (w->failed)
			return mr_nomem(err);
	}
	for (size_t i = 0; i < w->n; i++)
		if (sys_stat_fd(w->v[i].fd, &st) < 0 || time_ns(st.st_mtim) != w->v[i].changed_ns ||
		    st.st_ino != w->v[i].inode)
			exact = false;
	*ret_exact = exact;
	return MR_OK;
}

static bool
take_packed(void *ctx, const char *name, struct packed_at at)
{
	struct walk *w = ctx;

	w->packed = at;
	return take_entry(w, &(struct dir_entry){ .name = name });
}

/* The packed mail of a month is read after its folders, because mail moves from there into the pack. Mail that is
 * unpacked changes cur/. */
static enum mr_rc
read_pack(struct walk *w, const char *subfolder, struct mr_error *err)
{
	struct source pack = { .place = { .folder = MR_ARCHIVE, .box = BOX_CUR, .subfolder = subfolder } };
	const struct path folder = path_of("agents/", w->box->agent, "/", subfolder, NULL);

	w->now = &pack;
	enum mr_rc rc = pack_each(w->box->md, folder.z, take_packed, w, err);

	w->packed.length = 0;
	if (w->failed)
		return mr_nomem(err);
	if (rc == MR_CORRUPT) { /* the rest of the archive can still be read */
		(void)names_add_once(w->box->md->barred, err->message);
		rc = MR_NOTFOUND;
	}
	return shared_pass(w->box->md, rc, err, "%s", folder.z);
}

/* Drops entries that are gone: see "Dropped entries" above. */
static void
drop_gone(struct walk *w, bool exact)
{
	struct listing *l = w->list;
	size_t kept = w->first;
	struct stat st;

	for (size_t i = w->first; i < l->n; i++) {
		const struct listed *e = &l->v[i];
		bool missed = exact ? e->pass != w->number : e->pass + PASSES_AGREED <= w->number;

		if (missed && !exact) {
			mr_auto(sys_close_fd) int fd = -1;
			enum mr_rc rc = list_open_folder(w->box, e, &fd, IGNORED);

			missed = rc == MR_OK ? sys_stat(fd, e->name, &st) < 0 && errno == ENOENT : rc == MR_NOTFOUND;
		}
		if (!missed && !(w->want->unread_only && (e->flags & MR_SEEN)))
			l->v[kept++] = *e;
	}
	l->n = kept;
}

/* Some mail was listed, and the last pass saw none of it. */
static bool
all_left(const struct walk *w)
{
	const struct listing *l = w->list;

	for (size_t i = w->first; i < l->n; i++)
		if (l->v[i].pass == w->number && !(w->want->unread_only && (l->v[i].flags & MR_SEEN)))
			return false;
	return l->n > w->first;
}

/* Adds the messages in inbox and held, in a Maildir++ folder, or of the dead letters in that folder. */
static enum mr_rc
list_group(struct mailbox *box, unsigned folders, const char *subfolder, const struct scan_request *want,
    struct listing *ret, struct mr_error *err)
{
	mr_auto(walk_done) struct walk w = { .box = box,
		.list = ret,
		.first = ret->n,
		.keyword = -1,
		.want = want,
		.prune_at = want->most > 0 ? (want->most + WINDOW_SPARE) * 2 : 0,
		.began_ms = clock_now_ms() };
	unsigned agreed = 0;
	size_t most_passed = 0;
	bool exact = false;

	if (subfolder && !(subfolder = arena_dup(&ret->folders, str_of(subfolder))))
		return mr_nomem(err);
	while (!exact && w.number < PASSES_MAX && (w.number < PASSES_MIN || agreed < PASSES_AGREED || all_left(&w))) {
		for (unsigned which = BOX_NEW; which <= BOX_CUR && !subfolder; which++)
			if (w.number > 0) /* its name may lead elsewhere now */
				sys_close_fd(&box->folder[which]);
		w.number++;
		w.fresh = w.passed = 0;
		forget_sources(&w);
		if (folders & ~(unsigned)MR_HELD)
			TRY(add_pair(&w, (enum mr_folder)(folders & ~(unsigned)MR_HELD), subfolder, err));
		if (folders & MR_HELD)
			TRY(add_held(&w, err));
		TRY(read_sources(&w, &exact, err));
		if (folders == MR_ARCHIVE)
			TRY(read_pack(&w, subfolder, err));
		agreed = w.fresh == 0 ? agreed + 1 : 0;
		/* A moving file can only be missed, so the pass that saw the most is nearest to the truth. */
		most_passed = exact || w.passed > most_passed ? w.passed : most_passed;
	}
	drop_gone(&w, exact);
	ret->exact = exact;
	for (size_t i = 0; i < w.n; i++)
		if (w.v[i].place.folder == MR_INBOX)
			ret->changed_ns[w.v[i].place.box] = w.v[i].changed_ns;
	ret->total += w.pruned || want->wants ? most_passed : ret->n - w.first;
	return !exact && w.pruned && ret->n - w.first < want->most ? MR_BUSY : MR_OK;
}

/* Repeats while others take mail out of the window: see the essay. */
enum mr_rc
list_add(struct mailbox *box, unsigned folders, const char *subfolder, const struct scan_request *want,
    struct listing *ret, struct mr_error *err)
{
	size_t n = ret->n, total = ret->total;
	enum mr_rc rc = MR_BUSY;

	for (int tries = 0; rc == MR_BUSY && tries < WINDOW_TRIES; tries++) {
		ret->n = n;
		ret->total = total;
		rc = list_group(box, folders, subfolder, want, ret, err);
	}
	return rc == MR_BUSY ? MR_OK : rc;
}

/* ---- For the rest of the driver ---- */

void
list_state(const struct mailbox *box, char ret[SCAN_STATE_LEN], int64_t ret_changed_ns[2])
{
	size_t len = 0;

	for (unsigned which = BOX_NEW; which <= BOX_CUR; which++) {
		struct stat st;

		if (sys_stat(box->fd, mailbox_folder_name((enum box_folder)which), &st) < 0) {
			ret[0] = '\0';
			return;
		}
		ret_changed_ns[which] = time_ns(st.st_mtim);
		len += (size_t)snprintf(ret + len, SCAN_STATE_LEN - len, "%s%" PRIx64 ".%" PRIx64 ".%" PRIx64,
		    len > 0 ? "-" : "", (uint64_t)st.st_ino, (uint64_t)time_ns(st.st_mtim),
		    (uint64_t)time_ns(st.st_ctim));
	}
}

bool
list_skips_month(const char *name, const struct scan_request *want)
{
	const char *month = list_month_of(name);
	char since[24], before[24];

	/* Only a name of our own form tells a month. */
	if (strlen(month) != sizeof ".2026-11" - 1)
		return false;
	name_month("", want->since_ms, since);
	name_month("", want->before_ms, before);
	return (want->since_ms && strcmp(month, since) < 0) || (want->before_ms && strcmp(month, before) > 0);
}

enum mr_rc
list_month(
    struct mailbox *box, const char *name, const struct scan_request *want, struct listing *ret, struct mr_error *err)
{
	if (newest_list && *list_month_of(name) && newest_list(box, name, want, ret))
		return MR_OK;
	return list_add(box, str_starts(str_of(name), SENT_FOLDER) ? MR_SENT : MR_ARCHIVE, name, want, ret, err);
}

enum mr_rc
list_wanted(
    struct mailbox *box, unsigned folders, const struct scan_request *want, struct listing *ret, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox dead = MAILBOX_INIT;
	mr_auto(mr_names_done) struct mr_names months = { 0 }, sent = { 0 };
	mr_auto(listing_done) struct listing l = { 0 };
	unsigned live = folders & (MR_INBOX | MR_HELD);

	if (live)
		TRY(list_add(box, live, NULL, want, &l, err));
	bool exact = l.exact;
	int64_t changed_ns[2] = { l.changed_ns[BOX_NEW], l.changed_ns[BOX_CUR] };

	if (folders & MR_ARCHIVE)
		TRY(list_months(box, MR_ARCHIVE, &months, err));
	for (size_t i = 0; i < months.n; i++)
		if (!list_skips_month(months.v[i], want))
			TRY(list_month(box, months.v[i], want, &l, err));
	if (months.n > 0)
		TRY(keep_last_of_each(&l, err)); /* mail that was archived while we read is in both groups */
	if (folders & MR_SENT) {
		TRY(list_month(box, SENT_FOLDER, want, &l, err));
		TRY(list_months(box, MR_SENT, &sent, err));
	}
	for (size_t i = 0; i < sent.n; i++)
		if (!list_skips_month(sent.v[i], want))
			TRY(list_month(box, sent.v[i], want, &l, err));
	if (folders & MR_DEAD) {
		TRY(mailbox_open_dead(&dead, box->md, err));
		TRY(list_add(&dead, MR_DEAD, NULL, want, &l, err));
	}
	listing_sort(&l, want->order);
	if (want->most > 0)
		(void)keep_most(&l, 0, want->most);
	l.exact = exact;
	memcpy(l.changed_ns, changed_ns, sizeof changed_ns);
	*ret = l;
	l = (struct listing){ 0 };
	return MR_OK;
}

enum mr_rc
list_folders(struct mailbox *box, unsigned folders, bool unread_only, const char *id_suffix, struct listing *ret,
    struct mr_error *err)
{
	struct scan_request want = { .unread_only = unread_only, .id_suffix = id_suffix };

	return list_wanted(box, folders, &want, ret, err);
}
