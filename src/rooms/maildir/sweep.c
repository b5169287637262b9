/* SPDX-License-Identifier: MIT */
/*
 * sweep.c - giving held mail back: of holders that died, of leases that ran out, of lives that were taken over.
 * Anyone may sweep at any time; claim.c says why that takes nothing from the living. Every command
 * sweeps, so an agent that holds nothing must cost only a few system calls.
 *
 * A life that is over: the new life exists first, then every held/<M> of an older one is renamed away, then its mail
 * goes back to the inbox. Whatever an old life does late to mail that it holds fails on the missing source. A crash
 * after the rename leaves held/.gone.<M>.<random>, which the next sweep finishes.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/maildir/claim.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GONE_PREFIX ".gone."
#define RETURN_ROUNDS 10
#define TOKENS_MAX 8 /* beyond that a sweep does not look for dead ones: doctor does */

/* Back to where it was. Someone else was faster: fine, not counted. */
static enum mr_rc
give_back(struct mailbox *box, int held_fd, const char *name, struct file_name *n, size_t *count, struct mr_error *err)
{
	enum mr_rc rc = mail_end(box, held_fd, name, n, SETTLE_BACK, err);

	*count += rc == MR_OK;
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

/* ---- A life that was taken over ---- */

/* Gives back all that is in the folder of a fenced life, and removes it. */
static enum mr_rc
empty_gone(struct mailbox *box, int held_fd, const char *gone, size_t *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	size_t count = 0, before = SIZE_MAX;

	enum mr_rc rc = dir_open(held_fd, gone, &fd, err);
	if (rc == MR_NOTFOUND || rc == MR_REFUSED || /* emptied by another; a planted link is left alone */
	    (rc != MR_OK && shared_skip(box->md, err, "agents/%s/held/%s", box->agent, gone)))
		return MR_OK;
	/* Again until nothing came in late. */
	for (int round = 0; round < RETURN_ROUNDS && rc == MR_OK && count != before; round++) {
		mr_auto(mr_names_done) struct mr_names names = { 0 };

		before = count;
		rc = dir_names(fd, &names, err);
		for (size_t i = 0; i < names.n && rc == MR_OK; i++) {
			struct file_name n;
			bool held = name_parse_held(str_of(names.v[i]), &n);

			/* A file that someone put there by hand has no token: it goes back under the name it has. */
			if (!held && !name_parse(str_of(names.v[i]), &n))
				continue;
			if (!held)
				n.hold_attempt = n.attempt;
			rc = give_back(box, fd, names.v[i], &n, &count, err);
		}
	}
	*ret += count;
	/* Without a journal the loss of the folder may reach the disk before the mail's new names do. */
	if (rc == MR_OK && count > 0)
		rc = commit_flush(box->md, err);
	if (rc == MR_OK)
		(void)sys_rmdir(held_fd, gone); /* not empty: something strange is in it, kept */
	return rc;
}

enum mr_rc
life_fence(struct mailbox *box, unsigned before, size_t *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	int held_fd;

	enum mr_rc rc = mailbox_folder(box, BOX_HELD, &held_fd, err);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	TRY(dir_names(held_fd, &names, err));
	/* First all are renamed away, then they are emptied. */
	for (size_t i = 0; i < names.n; i++) {
		char random[7], gone[64];
		unsigned life;

		if (!life_number(names.v[i], &life) || life >= before)
			continue;
		random_hex(random, 6);
		(void)snprintf(gone, sizeof gone, GONE_PREFIX "%.20s.%s", names.v[i], random);
		if (sys_rename(held_fd, names.v[i], held_fd, gone) == 0) {
			if (!names_add(&names, str_of(gone)))
				return mr_nomem(err);
		} else if (errno != ENOENT) { /* else another fence was faster */
			return mr_fail_errno(err, "cannot fence 'held/%s'", names.v[i]);
		}
	}
	for (size_t i = 0; i < names.n; i++)
		if (str_starts(str_of(names.v[i]), GONE_PREFIX))
			TRY(empty_gone(box, held_fd, names.v[i], ret, err));
	return MR_OK;
}

/* ---- Holders that died, leases that ran out ---- */

static enum mr_rc
sweep_life(struct mailbox *box, unsigned life, size_t *count, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	char judged[MR_TOKEN_LEN + 1] = ""; /* the last token: a dead process may have held hundreds */
	bool over = false;
	unsigned newest = 0;

	enum mr_rc rc = mailbox_held(box, life, false, &fd, err);
	if (rc == MR_OK)
		rc = dir_names(fd, &names, err);
	if (rc == MR_NOTFOUND || (rc != MR_OK && shared_skip(box->md, err, "agents/%s/held/%u", box->agent, life)))
		return MR_OK;
	if (rc != MR_OK || names.n == 0)
		return rc;
	TRY(life_newest(box, &newest, err));
	if (life < newest) /* a takeover was cut off before it fenced this life */
		return life_fence(box, newest, count, err);
	for (size_t i = 0; i < names.n; i++) {
		struct file_name n;

		if (!name_parse_held(str_of(names.v[i]), &n))
			continue;
		if (strcmp(judged, n.token) != 0) {
			over = token_is_over(box->md, &n);
			memcpy(judged, n.token, sizeof(judged));
		}
		if (!over)
			continue;
		TRY(give_back(box, fd, names.v[i], &n, count, err));
		if (n.deadline_s == 0)
			token_drop(box->md, n.token); /* its lock is free: it says "dead" with and without the file */
	}
	return MR_OK;
}

enum mr_rc
sweep_mail(struct maildir *md, const char *agent, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	size_t count = 0;
	int held_fd = -1;

	enum mr_rc rc = mailbox_open_any(&box, md, agent, err);
	if (rc == MR_OK)
		rc = mailbox_folder(&box, BOX_HELD, &held_fd, err);
	if (rc == MR_OK)
		rc = dir_names(held_fd, &names, err);
	for (size_t i = 0; i < names.n && rc == MR_OK; i++) {
		unsigned life = 0;

		if (str_starts(str_of(names.v[i]), GONE_PREFIX)) /* a takeover was cut off after it */
			rc = life_fence(&box, 0, &count, err);
		else if (life_number(names.v[i], &life))
			rc = sweep_life(&box, life, &count, err);
	}
	if (rc == MR_OK && count > 0)
		rc = commit_flush(md, err);
	return rc == MR_OK ? rc : mr_wrap(err, "give back held mail of '%s'", agent);
}

/* A command that was killed before it held anything, or after it had settled all, leaves its file in holds/. Only files
 * of this agent's dead processes go: what others' commands held has not been given back yet. */
enum mr_rc
maildir_sweep(struct mr_room *room, const char *agent, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	mr_auto(mr_names_done) struct mr_names tokens = { 0 }, dead = { 0 };
	mr_auto(sys_close_fd) int holds_fd = -1;

	if (agent == NULL)
		return maildir_recover(room, err);
	if (dir_open(md->root_fd, "holds", &holds_fd, IGNORED) != MR_OK ||
	    dir_names(holds_fd, &tokens, IGNORED) != MR_OK || tokens.n > TOKENS_MAX)
		return sweep_mail(md, agent, err);
	/* A process that is dead before the sweep has put all it will ever hold where the sweep finds it. */
	for (size_t i = 0; i < tokens.n; i++) {
		mr_auto(sys_close_fd) int fd = token_of_dead(holds_fd, tokens.v[i], agent);

		if (fd >= 0)
			(void)names_add(&dead, str_of(tokens.v[i]));
	}
	TRY(sweep_mail(md, agent, err));
	for (size_t i = 0; i < dead.n; i++) {
		mr_auto(sys_close_fd) int fd = token_of_dead(holds_fd, dead.v[i], agent);

		if (fd >= 0)
			(void)sys_unlink(holds_fd, dead.v[i]);
	}
	return MR_OK;
}
