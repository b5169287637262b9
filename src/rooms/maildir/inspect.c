/* SPDX-License-Identifier: MIT */
/*
 * inspect.c - the doctor's look at what this driver keeps. Says what is so, why, and what to do; with `fix` it repairs
 * what is safe without thinking: modes, our own stray temporary files, fan-outs and holds that a crash cut off. What it
 * takes away goes to the attic. Mail that anybody can read is never moved, but back to whom it belongs.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/maildir/claim.h"
#include "rooms/maildir/inspect.h"
#include "rooms/maildir/claim.h"
#include <errno.h>

void
inspect_fine(struct inspection *in, const char *code, const char *what)
{
	findings_say(&in->f, &(struct mr_finding){ .severity = MR_FINE, .code = code }, "%s", what);
}

/* ---- Mailboxes ---- */

struct held_count {
	struct maildir *md;
	struct mr_names tokens; /* in use by some hold */
	unsigned newest;        /* life of the agent looked at; 0: a queue */
	size_t n, orphans, over;
};

static bool
count_claim(void *ctx, const struct queue_item *item)
{
	struct held_count *count = ctx;
	const struct claim *hold = item->claim;
	struct file_name name = { .deadline_s = hold->deadline_ms / 1000 };
	struct stat st;
	char path[MR_TOKEN_LEN + 8];

	(void)snprintf(path, sizeof path, "holds/%s", hold->token);
	memcpy(name.token, hold->token, sizeof name.token);
	count->n++;
	if (count->newest > 0 && (hold->life < count->newest || token_is_over(count->md, &name)))
		count->over++;
	else if (sys_stat(count->md->root_fd, path, &st) < 0 && errno == ENOENT)
		count->orphans++;
	return names_add(&count->tokens, str_of(hold->token));
}

/* A registration or a life that cannot be read keeps its agent from acting, and nobody else tells why. */
static void
check_registration(struct inspection *in, const char *agent)
{
	struct mr_agent found = { 0 };
	struct mr_error why = { 0 };

	if (maildir_find_agent(in->room, agent, &found, &why) == MR_OK)
		arena_free(found.own);
	else if (why.code == MR_CORRUPT)
		findings_say(&in->f,
		    &(struct mr_finding){ .severity = MR_PROBLEM,
			.code = "agents",
			.path = agent,
			.why = "nobody can act as this agent; its mail is kept",
			.fix = "look at 'agent' and the newest file in 'lives' by hand" },
		    "%s", why.message);
}

/* Folders without `agent`: a removal that was cut off, or a name that nobody took. */
static enum mr_rc
check_nobodys(struct inspection *in, struct mailbox *box, const char *agent, struct mr_error *err)
{
	mr_auto(listing_done) struct listing unread = { 0 };
	size_t buried = 0;

	TRY(list_folders(box, MR_INBOX | MR_HELD, true, NULL, &unread, err));
	if (unread.n > 0 && in->f.fix && agents_empty_unregistered(in->md, agent, &buried, err) != MR_OK)
		return err->code;
	if (unread.n > 0)
		findings_say(&in->f,
		    &(struct mr_finding){ .severity = MR_PROBLEM,
			.code = "mailboxes",
			.path = agent,
			.why = "its agent was pruned in this very moment, or the removal was cut off: nobody would "
			       "read it",
			.fix = buried > 0
				   ? "they are among the dead letters now"
				   : "register that name again to read it, or let mailroom doctor --fix move it to the "
				     "dead letters",
			.fixed = buried > 0 },
		    "'agents/%s' has %zu unread messages, but no agent is registered there", agent, unread.n);
	return MR_OK;
}

static void
say_holds(struct inspection *in, const char *agent, size_t over, size_t left, size_t orphans)
{
	bool fixed = in->f.fix && left == 0;

	if (over > 0)
		findings_say(&in->f,
		    &(struct mr_finding){ .severity = MR_NOTE,
			.code = "claims",
			.path = agent,
			.why = "whoever held it was killed, its time ran out, or its life was taken over",
			.fix = fixed ? "it is unread again, with its attempt counted"
				     : "the next command of that agent puts it back, and so does mailroom doctor --fix",
			.fixed = fixed },
		    "'%s' has %zu messages in hands that are dead", agent, over);
	if (orphans > 0)
		findings_say(&in->f,
		    &(struct mr_finding){ .severity = MR_NOTE,
			.code = "holds",
			.path = agent,
			.why = "a power cut can lose that record; the time in the name of the held mail still counts",
			.fix = "it comes back when its time is up" },
		    "'%s' has %zu held messages whose holder left no record", agent, orphans);
}

static enum mr_rc
check_mailbox(struct inspection *in, const char *agent, struct held_count *held, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	struct held_count before = { .md = in->md };
	size_t orphans = held->orphans, over = held->over;
	struct stat st;

	if (mailbox_open_any(&box, in->md, agent, err) != MR_OK)
		return err->code == MR_NOTFOUND ? MR_OK : err->code;
	if (sys_stat(box.fd, "agent", &st) < 0)
		return check_nobodys(in, &box, agent, err);
	check_registration(in, agent);
	enum mr_rc rc = life_newest(&box, &held->newest, err);

	before.newest = held->newest;
	if (rc == MR_OK && in->f.fix) {
		rc = maildir_each_claim(in->room, agent, QUEUE_CLAIMED, count_claim, &before, err);
		mr_names_done(&before.tokens);
		if (rc == MR_OK)
			rc = sweep_mail(in->md, agent, err);
	}
	if (rc == MR_OK)
		rc = maildir_each_claim(in->room, agent, QUEUE_CLAIMED, count_claim, held, err);
	if (rc == MR_OK)
		say_holds(
		    in, agent, in->f.fix ? before.over : held->over - over, held->over - over, held->orphans - orphans);
	return rc;
}

static enum mr_rc
check_mailboxes(struct inspection *in, struct held_count *held, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	enum mr_rc rc = agents_collect(in->md, false, &names, err);

	for (size_t i = 0; rc == MR_OK && i < names.n; i++) {
		rc = check_mailbox(in, names.v[i], held, err);
		if (rc != MR_OK && shared_skip(in->md, err, "agents/%s", names.v[i]))
			rc = MR_OK;
	}
	held->newest = 0;
	if (rc == MR_OK && in->f.fix)
		rc = commit_flush(in->md, err);
	return rc;
}

/* ---- Queues ---- */

static enum mr_rc
count_work(void *ctx, const struct work_at *at, const struct work_name *n, struct mr_error *err)
{
	(void)at;
	(void)n;
	(void)err;
	++*(size_t *)ctx;
	return MR_OK;
}

/* A removal that was cut off leaves work in a folder that is no queue. */
static enum mr_rc
check_queue(struct inspection *in, const char *name, struct held_count *held, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	size_t left = 0;
	enum mr_rc rc = maildir_each_claim(in->room, room_box("queue", name).z, QUEUE_CLAIMED, count_claim, held, err);

	if (rc != MR_NOTFOUND)
		return rc;
	rc = queue_open_any(&q, in->md, name, err);
	if (rc == MR_OK)
		rc = queue_each_work(&q, QUEUE_WORK, count_work, &left, err);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	size_t buried = 0;
	if (left > 0 && in->f.fix && maildir_queue_remove(in->room, name, true, &buried, err) != MR_OK)
		return err->code;
	if (left > 0)
		findings_say(&in->f,
		    &(struct mr_finding){ .severity = MR_PROBLEM,
			.code = "queues",
			.path = name,
			.why = "its removal was cut off: nobody can claim that work",
			.fix = buried > 0
				   ? "they are among the dead letters now"
				   : "make that queue again to go on, or let mailroom doctor --fix move it to the dead "
				     "letters",
			.fixed = buried > 0 },
		    "'queues/%s' has %zu messages of work, but there is no such queue", name, left);
	return MR_OK;
}

static enum mr_rc
check_queues(struct inspection *in, struct held_count *held, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	enum mr_rc rc = queue_names(in->md, &names, err);

	for (size_t i = 0; rc == MR_OK && i < names.n; i++) {
		rc = check_queue(in, names.v[i], held, err);
		if (rc != MR_OK && shared_skip(in->md, err, "queues/%s", names.v[i]))
			rc = MR_OK;
	}
	return rc;
}

/* ---- holds/ ---- */

struct tokens {
	struct inspection *in;
	const struct held_count *held;
	int fd;
	size_t dead;
};

/* A file in holds/ that no held mail names and nobody locks says nothing any more. The fresh one of a lease may be
 * about to be used; that of a process is locked before it is there. */
static bool
check_token(void *ctx, const struct dir_entry *entry)
{
	struct tokens *tokens = ctx;
	char path[MR_TOKEN_LEN + 8];
	struct stat st;

	if (!token_valid(str_of(entry->name)) || names_has(&tokens->held->tokens, entry->name) ||
	    sys_stat(tokens->fd, entry->name, &st) < 0 || lock_is_held(tokens->fd, entry->name))
		return true;
	mr_auto(sys_close_fd) int dead_fd = token_of_dead(tokens->fd, entry->name, NULL);
	if (dead_fd < 0 && findings_age_ms(&st) < FINDINGS_STRAY_MS)
		return true;
	tokens->dead++;
	(void)snprintf(path, sizeof path, "holds/%s", entry->name);
	findings_take(&tokens->in->f, tokens->fd, entry->name,
	    &(struct mr_finding){ .severity = MR_NOTE,
		.code = "holds",
		.path = path,
		.why = "its holder was killed before it had any mail, or when all was settled but for this file",
		.fix = "mailroom doctor --fix moves it to the attic" },
	    "'%s' tells of a hold that is over", path);
	return true;
}

static enum mr_rc
check_holds(struct inspection *in, const struct held_count *held, struct mr_error *err)
{
	struct tokens tokens = { .in = in, .held = held, .fd = -1 };
	enum mr_rc rc = dir_open(in->md->root_fd, "holds", &tokens.fd, err);

	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	rc = dir_each(tokens.fd, check_token, &tokens, err);
	(void)sys_close(tokens.fd);
	if (rc == MR_OK && tokens.dead == 0)
		findings_say(&in->f, &(struct mr_finding){ .severity = MR_FINE, .code = "holds" },
		    "%zu messages are held", held->n);
	return rc;
}

/* ---- reserve/ ---- */

static void
check_reserve(struct inspection *in)
{
	size_t missing = reserve_missing(in->md);
	struct mr_error err = { 0 };

	if (missing == 0) {
		inspect_fine(in, "reserve", "the space that is kept for a full disk is there");
		return;
	}
	bool fixed = in->f.fix && reserve_make(in->md, &err) == MR_OK;

	findings_say(&in->f,
	    &(struct mr_finding){ .severity = MR_NOTE,
		.code = "reserve",
		.path = "reserve",
		.why = "an older mailroom made the room, or commands used it up on a full disk: without it a full disk "
		       "stops drain, read, recv, archive and done",
		.fix = fixed       ? "it was made"
		       : in->f.fix ? err.message
				   : "mailroom doctor --fix makes it; so does the next command that moves mail, once "
				     "there is space",
		.fixed = fixed },
	    "%zu of %d files that are kept for a full disk are missing", missing, RESERVE_FILES);
}

/* ---- All of it ---- */

static enum mr_rc
check_tree(struct inspection *in, struct mr_error *err)
{
	mr_auto(sys_close_fd) int root = -1;
	struct stat st;
	enum mr_rc rc = dir_open(in->md->root_fd, ".", &root, err);

	if (rc != MR_OK)
		return rc;
	if (sys_stat_fd(root, &st) < 0)
		return mr_fail_errno(err, "cannot look at the room");
	in->owner = st.st_uid;
	in->group = st.st_gid;
	findings_space(&in->f, root);
	buf_adds(&in->path, ".");
	inspect_mode(in, root, ".", &st);
	buf_clear(&in->path);
	rc = inspect_walk(in, root, ".", 0, err);
	if (rc == MR_OK && in->modes == 0)
		inspect_fine(in, "modes", "nothing is open to others");
	if (rc == MR_OK && in->stray == 0)
		inspect_fine(in, "leftovers", "no temporary files were left behind");
	if (rc == MR_OK && in->mail == 0)
		inspect_fine(in, "messages", "no message is empty or torn");
	return rc;
}

enum mr_rc
maildir_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	struct inspection in = { .room = room, .md = maildir_of(room), .f = findings_begin(fix, fn, ctx) };
	struct held_count held = { .md = in.md };

	in.f.attic = (struct attic){ .home_fd = in.md->root_fd,
		.home = "",
		.dir_mode = in.md->dir_mode,
		.file_mode = in.md->file_mode,
		.fd = -1 };
	enum mr_rc rc = check_tree(&in, err);

	if (rc == MR_OK)
		rc = inspect_spool(&in, err);
	if (rc == MR_OK)
		rc = check_mailboxes(&in, &held, err);
	if (rc == MR_OK)
		rc = check_queues(&in, &held, err);
	if (rc == MR_OK)
		rc = check_holds(&in, &held, err);
	if (rc == MR_OK)
		rc = inspect_orphans(&in, err);
	if (rc == MR_OK) {
		check_reserve(&in);
		inspect_attic(&in);
	}
	findings_end(&in.f);
	mr_names_done(&held.tokens);
	buf_done(&in.path);
	return rc;
}
