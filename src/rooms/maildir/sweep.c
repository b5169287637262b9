/* SPDX-License-Identifier: MIT */
/*
 * sweep.c - giving held mail back: of holders that died, of leases that ran out, of lives that were taken over.
 * Anyone may sweep at any time; hold.c says why that takes nothing from the living. Every command
 * sweeps, so an agent that holds nothing must cost only a few system calls.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/maildir/holding.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GONE_PREFIX ".gone."
#define RETURN_ROUNDS 10
#define TOKENS_MAX 8 /* beyond that a sweep does not look for dead ones: doctor does */

static bool
note_name(void *ctx, const struct dir_entry *entry)
{
	return names_add(ctx, str_of(entry->name));
}

/* Names are gathered first: a folder is not read while its files are moved. */
static enum mr_rc
names_in(int fd, struct mr_names *ret, struct mr_error *err)
{
	return dir_each(fd, note_name, ret, err);
}

/* Back to where it was. Someone else was faster: fine, not counted. */
static enum mr_rc
give_back(struct mailbox *box, int held_fd, const char *name, struct file_name *n, size_t *count, struct mr_error *err)
{
	enum mr_rc rc = hold_end(box, held_fd, name, n, SETTLE_BACK, err);
	if (rc == MR_OK)
		(*count)++;
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

/* ---- A life that was taken over (lives.c renames its folder away first) ---- */

/* A file that someone put there by hand has no token: it goes back under the name it has. */
static bool
parse_any(const char *name, struct file_name *ret)
{
	if (name_parse_held(str_of(name), ret))
		return true;
	if (!name_parse(str_of(name), ret))
		return false;
	ret->hold_attempt = ret->attempt;
	return true;
}

enum mr_rc
hold_return_all(struct mailbox *box, int held_fd, size_t *ret, struct mr_error *err)
{
	size_t count = 0;
	enum mr_rc rc = MR_OK;

	for (int round = 0; round < RETURN_ROUNDS && rc == MR_OK; round++) {
		mr_auto(mr_names_done) struct mr_names names = { 0 };
		size_t before = count;
		rc = names_in(held_fd, &names, err);
		for (size_t i = 0; i < names.n && rc == MR_OK; i++) {
			struct file_name n;
			if (parse_any(names.v[i], &n))
				rc = give_back(box, held_fd, names.v[i], &n, &count, err);
		}
		if (count == before) /* nothing came in late */
			break;
	}
	*ret += count;
	return rc;
}

/* ---- Holders that died, leases that ran out ---- */

struct verdict { /* of the last token: a dead process may have held hundreds */
	char token[MR_TOKEN_LEN + 1];
	bool over;
};

static bool
is_over(struct maildir *md, const struct file_name *n, struct verdict *last)
{
	if (strcmp(last->token, n->token) != 0) {
		last->over = token_is_over(md, n);
		memcpy(last->token, n->token, sizeof(last->token));
	}
	return last->over;
}

static enum mr_rc
sweep_life(struct mailbox *box, unsigned life, size_t *count, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct verdict last = { 0 };
	unsigned newest = 0;

	enum mr_rc rc = mailbox_held(box, life, false, &fd, err);
	if (rc == MR_OK)
		rc = names_in(fd, &names, err);
	if (rc == MR_NOTFOUND || (rc != MR_OK && shared_skip(box->md, err, "agents/%s/held/%u", box->agent, life)))
		return MR_OK;
	if (rc != MR_OK || names.n == 0)
		return rc;
	rc = life_newest(box, &newest, err);
	if (rc == MR_OK && life < newest) /* a takeover was cut off before it fenced this life */
		return life_fence(box, newest, count, err);
	for (size_t i = 0; i < names.n && rc == MR_OK; i++) {
		struct file_name n;
		if (!name_parse_held(str_of(names.v[i]), &n) || !is_over(box->md, &n, &last))
			continue;
		rc = give_back(box, fd, names.v[i], &n, count, err);
		if (rc == MR_OK && n.deadline_s == 0)
			token_drop(box->md, n.token); /* its lock is free: it says "dead" with and without the file */
	}
	return rc;
}

enum mr_rc
sweep_mail(struct maildir *md, const char *agent, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(mr_names_done) struct mr_names lives = { 0 };
	size_t count = 0;
	int held_fd = -1;

	enum mr_rc rc = mailbox_open_any(&box, md, agent, err);
	if (rc == MR_OK)
		rc = mailbox_folder(&box, BOX_HELD, &held_fd, err);
	if (rc == MR_OK)
		rc = names_in(held_fd, &lives, err);
	for (size_t i = 0; i < lives.n && rc == MR_OK; i++) {
		uint64_t life = 0;
		if (str_starts(str_of(lives.v[i]), GONE_PREFIX)) /* a takeover was cut off after it */
			rc = life_return_gone(&box, &count, err);
		else if (str_to_u64(str_of(lives.v[i]), &life) && life <= UINT32_MAX)
			rc = sweep_life(&box, (unsigned)life, &count, err);
	}
	if (count > 0 && rc == MR_OK)
		rc = commit_flush(box.md, err);
	return rc == MR_OK ? rc : mr_wrap(err, "give back held mail of '%s'", agent);
}

/* A command that was killed before it held anything, or after it had settled all, leaves its file in holds/. Only files
 * of this agent's dead processes: what others' commands held has not been given back yet. */
static void
choose_dead(int holds_fd, const char *agent, struct mr_names *names, bool remove)
{
	mr_auto(mr_names_done) struct mr_names dead = { 0 };

	for (size_t i = 0; i < names->n; i++) {
		mr_auto(sys_close_fd) int dead_fd =
		    token_valid(str_of(names->v[i])) ? token_of_dead(holds_fd, names->v[i], agent) : -1;

		if (dead_fd >= 0 && remove)
			(void)sys_unlink(holds_fd, names->v[i]);
		else if (dead_fd >= 0)
			(void)names_add(&dead, str_of(names->v[i]));
	}
	struct mr_names all = *names;

	*names = dead;
	dead = all;
}

enum mr_rc
maildir_sweep(struct mr_room *room, const char *agent, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	mr_auto(mr_names_done) struct mr_names tokens = { 0 };
	mr_auto(sys_close_fd) int holds_fd = -1;

	/* A process that is dead before the sweep has put all it will ever hold where the sweep finds it. */
	if (dir_open(md->root_fd, "holds", &holds_fd, IGNORED) == MR_OK &&
	    dir_names(holds_fd, &tokens, IGNORED) == MR_OK && tokens.n <= TOKENS_MAX)
		choose_dead(holds_fd, agent, &tokens, false);
	else
		mr_names_done(&tokens);
	TRY(sweep_mail(md, agent, err));
	choose_dead(holds_fd, agent, &tokens, true);
	return MR_OK;
}
