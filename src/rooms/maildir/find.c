/* SPDX-License-Identifier: MIT */
/*
 * find.c - one message by its id. Its name follows from the id except for fields and flags, so a few likely names are
 * tried before any folder is read, that of normal mail first. A folder is read for mail with rare flags, for held mail,
 * for mail that other programs named, and before "not found" is returned.
 */
#include "rooms/maildir/maildir.h"

#define TOKENS_TRIED 64 /* above that, reading held/ is cheaper */
#define NAMES_N 8       /* possible names of a message, without flags */
static const char *const new_ends[] = { "", ",A=1", ",A=2", NULL };
static const char *const cur_ends[] = { ":2,S", ":2,", ":2,RS", ":2,FS", ":2,F", NULL };
static const char *const archive_ends[] = { ":2,S", ":2,Sa", ":2,RS", ":2,RSa", NULL };

struct search {
	struct mailbox *box;
	const char *id;
	struct arena **own;
	char name[NAME_LEN]; /* the name without flags */
	struct listed *ret;
	/* for try_token */
	int held_fd;
	unsigned life;
	size_t tokens;
	bool found;
};

/* The i-th of these names; 0 is that of normal mail. */
static void
set_name(const char *id, unsigned i, char ret[NAME_LEN])
{
	static const enum mr_priority priorities[] = { MR_NORMAL, MR_URGENT, MR_HIGH, MR_LOW };

	name_new(id, priorities[i % 4], i >= 4, ret);
}

/* Is the message in that folder under its name with one of these ends? Then fills in *s->ret. */
static bool
try_ends(struct search *s, int fd, const char *const *ends, struct listed place)
{
	for (; *ends; ends++) {
		char name[NAME_LEN + 8];
		struct file_name parts;
		struct stat st;

		text_join(name, sizeof name, s->name, *ends, NULL);
		if (sys_stat(fd, name, &st) < 0 || !name_parse(str_of(name), &parts))
			continue;
		bool has_a = parts.flags.len > 0 && memchr(parts.flags.ptr, 'a', parts.flags.len);

		listed_fill(&place, &parts,
		    has_a && mailbox_keyword(s->box, place.subfolder ? place.subfolder : "") == KEYWORD_OURS);
		place.name = arena_dup(s->own, str_of(name));
		if (place.name)
			*s->ret = place;
		return place.name != NULL;
	}
	return false;
}

/* new/ and cur/ of the box itself: the inbox, or the dead letters if it is their box. */
static bool
try_box(struct search *s, struct mailbox *box, enum mr_folder folder)
{
	struct listed place = { .folder = (unsigned char)folder, .box = BOX_NEW };
	int fd = -1;

	if (mailbox_folder(box, BOX_NEW, &fd, IGNORED) == MR_OK && try_ends(s, fd, new_ends, place))
		return true;
	place.box = BOX_CUR;
	return mailbox_folder(box, BOX_CUR, &fd, IGNORED) == MR_OK && try_ends(s, fd, cur_ends, place);
}

static bool
try_subfolder(struct search *s, const char *subfolder, enum mr_folder folder)
{
	struct listed place = { .folder = (unsigned char)folder, .box = BOX_CUR };
	int fd = -1;

	if (mailbox_subfolder(s->box, subfolder, false, &fd, IGNORED) != MR_OK)
		return false;
	place.subfolder = arena_dup(s->own, str_of(subfolder));
	return place.subfolder && try_ends(s, fd, archive_ends, place);
}

/* If only dead letters are asked for, the box is theirs. */
static bool
try_dead(struct search *s)
{
	mr_auto(mailbox_done) struct mailbox own = MAILBOX_INIT;
	struct mailbox *dead = s->box->agent[0] ? &own : s->box;

	if (dead == &own && mailbox_open_dead(&own, s->box->md, IGNORED) != MR_OK)
		return false;
	for (unsigned i = 0; i < NAMES_N; i++) {
		set_name(s->id, i, s->name);
		if (try_box(s, dead, MR_DEAD))
			return true;
	}
	return false;
}

static bool
try_token(void *ctx, const struct dir_entry *entry)
{
	struct search *s = ctx;

	if (!token_valid(str_of(entry->name)))
		return true;
	for (unsigned i = 0; i < 2 * NAMES_N && !s->found; i++) {
		char original[NAME_LEN], name[NAME_LEN];
		unsigned attempt = 1 + i % 2;
		struct listed place = { .folder = MR_HELD, .life = s->life };
		struct file_name parts;
		struct stat st;

		set_name(s->id, i / 2, original);
		if (!name_build_held(
			entry->name, 0, attempt, str_of(path_of(original, attempt == 2 ? ",A=1" : "", NULL).z), name) ||
		    sys_stat(s->held_fd, name, &st) < 0 || !name_parse_held(str_of(name), &parts))
			continue;
		listed_fill(&place, &parts, false);
		place.name = arena_dup(s->own, str_of(name));
		if (!place.name)
			return false;
		*s->ret = place;
		s->found = true;
	}
	return !s->found && ++s->tokens < TOKENS_TRIED;
}

/* Mail that a process is showing right now: holds/ has few tokens, and the name of the held file follows from a token.
 * Several drains of a full mailbox need this for nearly every message. */
static bool
try_held(struct search *s)
{
	mr_auto(sys_close_fd) int holds_fd = -1;

	if (life_newest(s->box, 0, &s->life, IGNORED) != MR_OK ||
	    mailbox_held(s->box, s->life, false, &s->held_fd, IGNORED) != MR_OK ||
	    dir_open(s->box->md->root_fd, "holds", &holds_fd, IGNORED) != MR_OK)
		return false;
	return dir_each(holds_fd, try_token, s, IGNORED) == MR_OK && s->found;
}

/* Reads the folders; with `month` only that month of the archive. */
static enum mr_rc
read_folders(struct search *s, unsigned folders, const char *month, struct mr_error *err)
{
	mr_auto(listing_done) struct listing l = { 0 };

	if (folders == 0)
		return MR_NOTFOUND;
	if (month)
		TRY(list_month(s->box, month, &(struct scan_request){ .id_suffix = s->id }, &l, err));
	else
		TRY(list_folders(s->box, folders, false, s->id, &l, err));
	if (l.n == 0)
		return MR_NOTFOUND;
	struct listed found = l.v[0];

	found.name = arena_dup(s->own, str_of(found.name));
	if (found.subfolder)
		found.subfolder = arena_dup(s->own, str_of(found.subfolder));
	if (!found.name || (l.v[0].subfolder && !found.subfolder))
		return mr_nomem(err);
	*s->ret = found;
	return MR_OK;
}

void
list_guess(const char *id, char ret_name[NAME_LEN], struct listed *ret)
{
	name_for_id(id, ret_name);
	*ret = (struct listed){ .folder = MR_INBOX, .box = BOX_NEW, .name = ret_name, .priority = MR_NORMAL };
	text_join(ret->id, sizeof ret->id, id, NULL);
}

enum mr_rc
list_find(
    struct mailbox *box, const char *id, unsigned folders, struct arena **own, struct listed *ret, struct mr_error *err)
{
	struct search s = { .box = box, .id = id, .own = own, .ret = ret };
	const unsigned live = MR_INBOX | MR_HELD;
	char month[24], sent[24];
	struct stat st;

	if (folders == 0)
		folders = MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT;
	name_month(ARCHIVE_FOLDER, id_time_ms(id), month);
	name_month(SENT_FOLDER, id_time_ms(id), sent);
	for (unsigned i = 0; i < NAMES_N; i++) {
		set_name(id, i, s.name);
		if (((folders & MR_INBOX) && try_box(&s, box, MR_INBOX)) ||
		    ((folders & MR_ARCHIVE) && try_subfolder(&s, month, MR_ARCHIVE)) ||
		    ((folders & MR_HELD) && i == 0 && try_held(&s)))
			return MR_OK;
	}
	name_for_id(id, s.name);
	/* Mail to oneself is in .Sent under the same id: the agent's own copy has precedence, also if it is packed. */
	enum mr_rc rc = read_folders(&s, folders & live, NULL, err);

	if (rc == MR_NOTFOUND && (folders & MR_ARCHIVE) &&
	    sys_stat(box->fd, path_of(month, "/" PACK_FILE, NULL).z, &st) == 0)
		rc = read_folders(&s, MR_ARCHIVE, month, err);
	if (rc != MR_NOTFOUND)
		return rc;
	if (((folders & MR_SENT) && (try_subfolder(&s, sent, MR_SENT) || try_subfolder(&s, SENT_FOLDER, MR_SENT))) ||
	    ((folders & MR_DEAD) && try_dead(&s)))
		return MR_OK;
	/* After the inbox, because mail moves from there to here. The month of the id is searched first. */
	if (folders & MR_ARCHIVE)
		rc = read_folders(&s, MR_ARCHIVE, month, err);
	if (rc == MR_NOTFOUND)
		rc = read_folders(&s, folders & ~live, NULL, err);
	if (rc != MR_NOTFOUND)
		return rc;
	return mr_fail(err, MR_NOTFOUND, "no message '%s' in the mailbox '%s'", id, box->agent);
}
