/* SPDX-License-Identifier: MIT */
/*
 * find.c - one message by its id. The name follows from the id but for the flags, so a few likely names are
 * tried before any folder is read; a folder is read for mail with rare flags, for held mail, for mail
 * that others named, and before "not found" is said (list.c says when that may be concluded).
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/maildir/maildir.h"
#include <stdio.h>

#define TOKENS_TRIED 64 /* beyond that reading held/ is cheaper */

static const char *const inbox_infos[] = { ":2,S", ":2,", ":2,RS", ":2,FS", ":2,F", NULL };
static const char *const came_back[] = { ",A=1", ",A=2", NULL };
static const char *const archive_infos[] = { ":2,S", ":2,Sa", ":2,RS", ":2,RSa", NULL };

enum mr_rc
list_open_folder(struct mailbox *box, const struct listed *at, int *ret_fd, struct mr_error *err)
{
	const char *part = at->box == BOX_NEW ? "new" : "cur";
	char path[NAME_LEN + 8];

	if (at->folder == MR_HELD)
		return mailbox_held(box, at->life, false, ret_fd, err);
	if (at->folder == MR_DEAD) {
		(void)snprintf(path, sizeof(path), "dead/%s", part);
		return dir_open(box->md->root_fd, path, ret_fd, err);
	}
	if (at->subfolder == NULL)
		return dir_open(box->fd, part, ret_fd, err);
	if (snprintf(path, sizeof(path), "%s/%s", at->subfolder, part) >= (int)sizeof(path))
		return mr_fail(err, MR_REFUSED, "folder name '%.40s...' is too long", at->subfolder);
	return dir_open(box->fd, path, ret_fd, err);
}

static bool
note_month(void *ctx, const struct dir_entry *entry)
{
	if (!str_starts(str_of(entry->name), ".Archive"))
		return true;
	return names_add(ctx, str_of(entry->name));
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

enum mr_rc
list_months(struct mailbox *box, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names months = { 0 };

	enum mr_rc rc = dir_each(box->fd, note_month, &months, err);
	if (rc != MR_OK)
		return mr_wrap(err, "archive of '%s'", box->agent);
	if (months.n > 1)
		qsort(months.v, months.n, sizeof(*months.v), by_name);
	*ret = months;
	months = (struct mr_names){ 0 };
	return MR_OK;
}

struct search {
	struct mailbox *box;
	const char *id;
	struct arena **own;
	char name[NAME_LEN]; /* what it is called without flags */
};

/* Fills in *ret when the file is there. */
static bool
try_name(struct search *s, int fd, const char *name, struct listed place, struct listed *ret)
{
	struct file_name parts;
	struct stat st;

	if (sys_stat(fd, name, &st) < 0 || !name_parse(str_of(name), &parts))
		return false;
	(void)snprintf(place.id, sizeof(place.id), "%s", s->id);
	place.name = arena_dup(s->own, str_of(name));
	place.attempt = parts.attempt;
	bool has_a = parts.flags.len > 0 && memchr(parts.flags.ptr, 'a', parts.flags.len) != NULL;
	place.flags = name_flags(
	    &parts, has_a && mailbox_keyword(s->box, place.subfolder != NULL ? place.subfolder : "") == KEYWORD_OURS);
	if (place.name == NULL)
		return false;
	*ret = place;
	return true;
}

static bool
try_infos(struct search *s, int fd, const char *const *infos, struct listed place, struct listed *ret)
{
	char name[NAME_LEN + 8];

	for (size_t i = 0; infos[i] != NULL; i++) {
		(void)snprintf(name, sizeof(name), "%s%s", s->name, infos[i]);
		if (try_name(s, fd, name, place, ret))
			return true;
	}
	return false;
}

/* new/ and cur/ of the box itself: the inbox, or the dead letters when it is their box. */
static bool
try_box(struct search *s, struct mailbox *box, enum mr_folder folder, struct listed *ret)
{
	struct mr_error ignored = { 0 };
	struct listed place = { .folder = (unsigned char)folder, .box = BOX_NEW };
	int fd = -1;

	if (mailbox_folder(box, BOX_NEW, &fd, &ignored) == MR_OK &&
	    (try_name(s, fd, s->name, place, ret) || try_infos(s, fd, came_back, place, ret)))
		return true;
	place.box = BOX_CUR;
	return mailbox_folder(box, BOX_CUR, &fd, &ignored) == MR_OK && try_infos(s, fd, inbox_infos, place, ret);
}

static bool
try_dead(struct search *s, struct listed *ret)
{
	mr_auto(mailbox_done) struct mailbox dead = MAILBOX_INIT;
	struct mr_error ignored = { 0 };

	return mailbox_open_dead(&dead, s->box->md, &ignored) == MR_OK && try_box(s, &dead, MR_DEAD, ret);
}

static bool
try_subfolder(struct search *s, const char *subfolder, enum mr_folder folder, struct listed *ret)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_error ignored = { 0 };

	if (mailbox_subfolder(s->box, subfolder, false, &fd, &ignored) != MR_OK)
		return false;
	struct listed place = {
		.folder = (unsigned char)folder, .box = BOX_CUR, .subfolder = arena_dup(s->own, str_of(subfolder))
	};
	return place.subfolder != NULL && try_infos(s, fd, archive_infos, place, ret);
}

/* Held by a process that shows mail right now: the tokens in holds/ are few, and with a token the name of the held
 * file follows. Several drains of a full mailbox ask this of nearly every message. */
struct held_search {
	struct search *s;
	int fd;
	unsigned life;
	struct listed *ret;
	size_t tokens;
	bool found;
};

static bool
try_token(void *ctx, const struct dir_entry *entry)
{
	struct held_search *h = ctx;
	char original[NAME_LEN + 8], name[NAME_LEN];
	struct stat st;

	if (!token_valid(str_of(entry->name)))
		return true;
	for (unsigned attempt = 1; attempt <= 2 && !h->found; attempt++) {
		(void)snprintf(original, sizeof(original), "%s%s", h->s->name, attempt == 2 ? ",A=1" : "");
		if (!name_build_held(entry->name, 0, attempt, str_of(original), name) || sys_stat(h->fd, name, &st) < 0)
			continue;
		struct listed place = { .folder = MR_HELD,
			.life = h->life,
			.attempt = attempt,
			.name = arena_dup(h->s->own, str_of(name)) };
		(void)snprintf(place.id, sizeof(place.id), "%s", h->s->id);
		if (place.name == NULL)
			return false;
		*h->ret = place;
		h->found = true;
	}
	return !h->found && ++h->tokens < TOKENS_TRIED;
}

static bool
try_held(struct search *s, struct listed *ret)
{
	mr_auto(sys_close_fd) int held_fd = -1;
	mr_auto(sys_close_fd) int holds_fd = -1;
	struct held_search h = { .s = s, .ret = ret };
	struct mr_error ignored = { 0 };

	if (life_newest(s->box, &h.life, &ignored) != MR_OK ||
	    mailbox_held(s->box, h.life, false, &held_fd, &ignored) != MR_OK ||
	    dir_open(s->box->md->root_fd, "holds", &holds_fd, &ignored) != MR_OK)
		return false;
	h.fd = held_fd;
	return dir_each(holds_fd, try_token, &h, &ignored) == MR_OK && h.found;
}

/* Takes one entry out of a listing; its strings move to the caller's arena. */
static enum mr_rc
take_first(struct search *s, struct listing *l, struct listed *ret, struct mr_error *err)
{
	if (l->n == 0)
		return MR_NOTFOUND;
	listing_sort(l, false);
	struct listed found = l->v[0];
	found.name = arena_dup(s->own, str_of(found.name));
	if (found.subfolder != NULL)
		found.subfolder = arena_dup(s->own, str_of(found.subfolder));
	if (found.name == NULL || (l->v[0].subfolder != NULL && found.subfolder == NULL))
		return mr_nomem(err);
	*ret = found;
	return MR_OK;
}

static enum mr_rc
read_folders(struct search *s, unsigned folders, struct listed *ret, struct mr_error *err)
{
	mr_auto(listing_done) struct listing l = { 0 };

	if (folders == 0)
		return MR_NOTFOUND;
	enum mr_rc rc = list_folders(s->box, folders, false, s->id, &l, err);
	return rc == MR_OK ? take_first(s, &l, ret, err) : rc;
}

/* The month that the id says, before all the others are read. */
static enum mr_rc
read_month(struct search *s, const char *month, struct listed *ret, struct mr_error *err)
{
	mr_auto(listing_done) struct listing l = { 0 };

	enum mr_rc rc = list_month(s->box, month, false, s->id, &l, err);
	return rc == MR_OK ? take_first(s, &l, ret, err) : rc;
}

enum mr_rc
list_find(
    struct mailbox *box, const char *id, unsigned folders, struct arena **own, struct listed *ret, struct mr_error *err)
{
	struct search s = { .box = box, .id = id, .own = own };
	const unsigned live = MR_INBOX | MR_HELD;
	char month[24];

	if (folders == 0)
		folders = MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT;
	name_for_id(id, s.name);
	name_month(id, month);
	if ((folders & MR_INBOX) && try_box(&s, box, MR_INBOX, ret))
		return MR_OK;
	if ((folders & MR_ARCHIVE) && try_subfolder(&s, month, MR_ARCHIVE, ret))
		return MR_OK;
	if ((folders & MR_HELD) && try_held(&s, ret))
		return MR_OK;
	/* Mail to oneself is in .Sent under the same id: the agent's own copy goes before it. */
	enum mr_rc rc = read_folders(&s, folders & live, ret, err);
	if (rc != MR_NOTFOUND)
		return rc;
	if (((folders & MR_SENT) && try_subfolder(&s, ".Sent", MR_SENT, ret)) ||
	    ((folders & MR_DEAD) && try_dead(&s, ret)))
		return MR_OK;
	/* After the inbox, because mail moves from there to here. */
	if (folders & MR_ARCHIVE)
		rc = read_month(&s, month, ret, err);
	if (rc == MR_NOTFOUND)
		rc = read_folders(&s, folders & ~live, ret, err);
	if (rc != MR_NOTFOUND)
		return rc;
	return mr_fail(err, MR_NOTFOUND, "no message '%s' in the mailbox '%s'", id, box->agent);
}
