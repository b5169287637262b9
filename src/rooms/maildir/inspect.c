/* SPDX-License-Identifier: MIT */
/*
 * inspect.c - doctor's check of what this driver keeps: the tree (inspect_tree.c), unfinished fan-outs, mailboxes,
 * queues, holds, records of removed links, the reserve, the attic. It reports each fact, its cause and what to do. With
 * `fix` it repairs what is safe: modes, our own stray temporary files, fan-outs and holds that a crash cut off. Files
 * that it takes away go to the attic. Readable mail is never moved, except back to where it belongs.
 */
#include "base/findings.h"
#include "rooms/maildir/maildir.h"

#define LINKS_LOCK_WAIT_MS 1000

struct inspection {
	struct mr_room *room;
	struct maildir *md;
	struct findings f;
};

static void
inspection_done(struct inspection *in)
{
	findings_end(&in->f);
}

static void
say_fine(struct inspection *in, const char *code, const char *what)
{
	findings_say(&in->f, &(struct mr_finding){ .severity = MR_FINE, .code = code }, "%s", what);
}

/* ---- Fan-outs under way ---- */

static void
check_record(struct inspection *in, int spool_fd, const char *id)
{
	mr_auto(spool_done) struct spool_job job;
	struct mr_error why = { 0 }, failed = { 0 };
	const struct path at = path_of("spool/", id, NULL);
	const char *path = at.z;
	struct stat st;

	enum mr_rc rc = spool_lock(&job, in->room, id, 0, &why);
	size_t recipients = job.to.n;

	sys_close_fd(&job.record_fd); /* unlocks it for the recovery */
	if (rc == MR_NOTFOUND)
		return;
	if (rc == MR_BUSY) {
		findings_say(&in->f, &(struct mr_finding){ .severity = MR_FINE, .code = "spool", .path = path },
		    "message '%s' is being delivered right now", id);
		return;
	}
	if (rc != MR_OK) {
		findings_say(&in->f,
		    &(struct mr_finding){ MR_PROBLEM, "spool", path, NULL,
			"it says who is to get a message, and cannot be read: some of them may lack it",
			"its message, if any, is beside it; find the recipients that lack it, send it again, then remove both",
			false },
		    "%s", why.message);
		return;
	}
	if (in->f.fix)
		(void)maildir_sweep(in->room, NULL, &failed);
	bool fixed = in->f.fix && sys_stat(spool_fd, id, &st) < 0 && errno == ENOENT;

	findings_say(&in->f,
	    &(struct mr_finding){ MR_NOTE, "spool", path, NULL,
		"its sender was killed on the way; it goes to all of them, not to some",
		fixed         ? "all of them have it now"
		: failed.code ? failed.message
			      : "any sending command completes it, and so does `mailroom doctor --fix`",
		fixed },
	    "the sender of message '%s' died before all %zu recipients had it", id, recipients);
}

static enum mr_rc
check_spool(struct inspection *in, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	size_t records = 0;

	TRY(names_in(in->md->root_fd, "spool", &fd, &names, err));
	if (fd < 0)
		return MR_OK;
	for (size_t i = 0; i < names.n; i++) {
		if (!id_valid(str_of(names.v[i])))
			continue;
		records++;
		check_record(in, fd, names.v[i]);
	}
	if (records == 0)
		say_fine(in, "spool", "no delivery is half done");
	return MR_OK;
}

/* ---- Mailboxes ---- */

struct held_count {
	struct maildir *md;
	struct mr_names tokens; /* in use by some hold */
	unsigned newest;        /* newest life of the agent; 0: a queue */
	size_t n, orphans, over;
};

static void
held_done(struct held_count *count)
{
	mr_names_done(&count->tokens);
}

static bool
count_claim(void *ctx, const struct queue_item *item)
{
	struct held_count *count = ctx;
	const struct claim *hold = item->claim;
	struct file_name name = { .deadline_s = hold->deadline_ms / 1000 };
	struct stat st;

	memcpy(name.token, hold->token, sizeof name.token);
	count->n++;
	if (count->newest > 0 && (hold->life < count->newest || token_is_over(count->md, &name)))
		count->over++;
	else if (sys_stat(count->md->root_fd, path_of("holds/", hold->token, NULL).z, &st) < 0 && errno == ENOENT)
		count->orphans++;
	return names_add(&count->tokens, str_of(hold->token));
}

/* A folder without `agent`: a removal that was cut off, or a name that nobody registered. */
static enum mr_rc
check_unregistered(struct inspection *in, struct mailbox *box, const char *agent, struct mr_error *err)
{
	mr_auto(listing_done) struct listing unread = { 0 };
	size_t moved = 0;

	TRY(list_folders(box, MR_INBOX | MR_HELD, true, NULL, &unread, err));
	if (unread.n == 0)
		return MR_OK;
	if (in->f.fix)
		TRY(agents_empty_unregistered(in->md, agent, &moved, err));
	findings_say(&in->f,
	    &(struct mr_finding){ MR_PROBLEM, "mailboxes", agent, NULL,
		"its agent was pruned just now, or the removal was cut off: no agent would read it",
		moved > 0
		    ? "they are among the dead letters now"
		    : "register that name again to read it, or let `mailroom doctor --fix` move it to the dead letters",
		moved > 0 },
	    "'agents/%s' has %zu unread messages, but no agent is registered there", agent, unread.n);
	return MR_OK;
}

static enum mr_rc
check_mailbox(struct inspection *in, const char *agent, struct held_count *held, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(held_done) struct held_count before = { .md = in->md };
	size_t had_orphans = held->orphans, had_over = held->over;
	struct mr_agent found = { 0 };
	struct mr_error why = { 0 };
	struct stat st;

	TRY(mailbox_open_any(&box, in->md, agent, err));
	if (sys_stat(box.fd, "agent", &st) < 0)
		return check_unregistered(in, &box, agent, err);
	/* An unreadable registration or life keeps its agent from acting, and no other command says why. */
	if (maildir_find_agent(in->room, agent, &found, &why) == MR_CORRUPT)
		findings_say(&in->f,
		    &(struct mr_finding){ MR_PROBLEM, "agents", agent, NULL,
			"no session can act as this agent; its mail is kept",
			"look at 'agent' and the newest file in 'lives' by hand", false },
		    "%s", why.message);
	arena_free(found.own);
	TRY(life_newest(&box, 0, &held->newest, err));
	before.newest = held->newest;
	if (in->f.fix) {
		TRY(maildir_each_claim(in->room, agent, QUEUE_CLAIMED, count_claim, &before, err));
		TRY(sweep_mail(in->md, agent, err));
	}
	TRY(maildir_each_claim(in->room, agent, QUEUE_CLAIMED, count_claim, held, err));
	size_t left = held->over - had_over, over = in->f.fix ? before.over : left,
	       orphans = held->orphans - had_orphans;
	bool fixed = in->f.fix && left == 0;

	if (over > 0)
		findings_say(&in->f,
		    &(struct mr_finding){ MR_NOTE, "claims", agent, NULL,
			"its holder was killed, its time ran out, or its life was taken over",
			fixed ? "it is unread again, with its attempt counted"
			      : "the next command of that agent puts it back, and so does `mailroom doctor --fix`",
			fixed },
		    "'%s' has %zu messages whose hold is over", agent, over);
	if (orphans > 0)
		findings_say(&in->f,
		    &(struct mr_finding){ MR_NOTE, "holds", agent, NULL,
			"a power cut can lose that record; the time in the name of the held mail still counts",
			"it comes back when its time is up", false },
		    "'%s' has %zu held messages whose holder left no record", agent, orphans);
	return MR_OK;
}

static enum mr_rc
check_mailboxes(struct inspection *in, struct held_count *held, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	TRY(agents_collect(in->md, false, &names, err));
	for (size_t i = 0; i < names.n; i++)
		TRY(shared_pass(in->md, check_mailbox(in, names.v[i], held, err), err, "agents/%s", names.v[i]));
	held->newest = 0;
	return in->f.fix ? commit_flush(in->md, err) : MR_OK;
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

/* A removal that was cut off leaves work in a folder without settings. */
static enum mr_rc
check_queue(struct inspection *in, const char *name, struct held_count *held, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	size_t left = 0, moved = 0;
	enum mr_rc rc = maildir_each_claim(in->room, room_box("queue", name).z, QUEUE_CLAIMED, count_claim, held, err);

	if (rc != MR_NOTFOUND)
		return rc;
	TRY(queue_open_any(&q, in->md, name, err));
	TRY(queue_each_work(&q, QUEUE_WORK, count_work, &left, err));
	if (left == 0)
		return MR_OK;
	if (in->f.fix)
		TRY(maildir_queue_remove(in->room, name, true, &moved, err));
	findings_say(&in->f,
	    &(struct mr_finding){ MR_PROBLEM, "queues", name, NULL,
		"its removal was cut off: no agent can claim that work",
		moved > 0
		    ? "they are among the dead letters now"
		    : "make that queue again to go on, or let `mailroom doctor --fix` move it to the dead letters",
		moved > 0 },
	    "'queues/%s' has %zu messages of work, but there is no such queue", name, left);
	return MR_OK;
}

static enum mr_rc
check_queues(struct inspection *in, struct held_count *held, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	TRY(queue_names(in->md, &names, err));
	for (size_t i = 0; i < names.n; i++)
		TRY(shared_pass(in->md, check_queue(in, names.v[i], held, err), err, "queues/%s", names.v[i]));
	return MR_OK;
}

/* ---- holds/ ---- */

/* A file in holds/ that no held mail names and no process locks is useless. A new file of a lease may be about to be
 * used; that of a process is locked before it is visible. */
static enum mr_rc
check_holds(struct inspection *in, const struct held_count *held, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	size_t dead = 0;

	TRY(names_in(in->md->root_fd, "holds", &fd, &names, err));
	if (fd < 0)
		return MR_OK;
	for (size_t i = 0; i < names.n; i++) {
		const char *token = names.v[i];
		const struct path path = path_of("holds/", token, NULL);
		struct stat st;

		if (!token_valid(str_of(token)) || names_has(&held->tokens, token) || sys_stat(fd, token, &st) < 0 ||
		    lock_is_held(fd, token))
			continue;
		mr_auto(sys_close_fd) int dead_fd = token_of_dead(fd, token, NULL);

		if (dead_fd < 0 && findings_age_ms(&st) < FINDINGS_STRAY_MS)
			continue;
		dead++;
		findings_take(&in->f, fd, token,
		    &(struct mr_finding){ MR_NOTE, "holds", path.z, NULL,
			"its holder was killed before it had any mail, or when all was settled but for this file",
			"`mailroom doctor --fix` moves it to the attic", false },
		    "'%s' is the record of a hold that is over", path.z);
	}
	if (dead == 0)
		findings_say(&in->f, &(struct mr_finding){ .severity = MR_FINE, .code = "holds" },
		    "%zu messages are held", held->n);
	return MR_OK;
}

/* ---- Records of links that are gone ---- */

static bool
is_young(int fd, const char *name)
{
	struct stat st;

	return sys_stat(fd, name, &st) == 0 && findings_age_ms(&st) < FINDINGS_STRAY_MS;
}

/* Holds the lock that a command which makes a link of that name needs. */
static void
check_link(struct inspection *in, int kind_fd, const char *kind, const char *link)
{
	mr_auto(mr_names_done) struct mr_names records = { 0 };
	const struct path path = path_of("records/", kind, "/", link, NULL);
	mr_auto(sys_close_fd) int lock = -1, fd = -1;
	struct stat st;

	/* A folder's times tell only when names were added or removed, so its files must be old, too. */
	if (is_young(kind_fd, link) || names_in(kind_fd, link, &fd, &records, IGNORED) != MR_OK || records.n == 0)
		return;
	for (size_t i = 0; i < records.n; i++)
		if (is_young(fd, records.v[i]))
			return;
	if (in->f.fix) {
		enum mr_rc rc =
		    lock_take(in->md->root_fd, "links/.lock", in->md->file_mode, LINKS_LOCK_WAIT_MS, &lock, IGNORED);

		if (rc != MR_OK && rc != MR_NOTFOUND) /* without that folder there was never a link */
			return;
	}
	if (sys_stat(in->md->root_fd, path_of("links/", link, NULL).z, &st) == 0 || errno != ENOENT)
		return;
	findings_take(&in->f, kind_fd, link,
	    &(struct mr_finding){ MR_NOTE, "links", path.z, NULL,
		"an unlink that was killed leaves them; a new link of that name would use them",
		"`mailroom doctor --fix` moves them to the attic", false },
	    "'%s' has %zu records of a link that is gone", path.z, records.n);
}

static enum mr_rc
check_links(struct inspection *in, struct mr_error *err)
{
	static const char *const kinds[] = { "carrying", "carried" }; /* kept by the post office for each link */

	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		mr_auto(mr_names_done) struct mr_names links = { 0 };
		mr_auto(sys_close_fd) int fd = -1;
		const struct path folder = path_of("records/", kinds[i], NULL);

		TRY(shared_pass(in->md, names_in(in->md->root_fd, folder.z, &fd, &links, err), err, "%s", folder.z));
		for (size_t l = 0; l < links.n; l++)
			check_link(in, fd, kinds[i], links.v[l]);
	}
	return MR_OK;
}

/* ---- reserve/ and attic/ ---- */

static void
check_reserve(struct inspection *in)
{
	size_t missing = reserve_missing(in->md);
	struct mr_error err = { 0 };

	if (missing == 0) {
		say_fine(in, "reserve", "the space that is kept for a full disk is there");
		return;
	}
	bool fixed = in->f.fix && reserve_make(in->md, &err) == MR_OK;

	findings_say(&in->f,
	    &(struct mr_finding){ MR_NOTE, "reserve", "reserve", NULL,
		"an older mailroom made the room, or commands used it up on a full disk: without it a full disk stops "
		"drain, read, recv, archive and done",
		fixed ? "it was made"
		: in->f.fix
		    ? err.message
		    : "`mailroom doctor --fix` makes it; so does the next command that moves mail, once there is space",
		fixed },
	    "%zu of %d files that are kept for a full disk are missing", missing, RESERVE_FILES);
}

static void
check_attic(struct inspection *in)
{
	mr_auto(mr_names_done) struct mr_names days = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	size_t n = 0;

	(void)names_in(in->md->root_fd, ATTIC, &fd, &days, IGNORED);
	for (size_t i = 0; i < days.n; i++) {
		mr_auto(mr_names_done) struct mr_names things = { 0 };

		(void)names_in(fd, days.v[i], NULL, &things, IGNORED);
		n += things.n;
	}
	if (n > 0)
		findings_say(&in->f, &(struct mr_finding){ .severity = MR_FINE, .code = ATTIC, .path = ATTIC },
		    "'" ATTIC "' keeps what repairs took away, %zu so far ('" ATTIC
		    "/log' says why): look, then empty it",
		    n);
}

/* ---- All of it ---- */

enum mr_rc
maildir_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(inspection_done) struct inspection in = {
		.room = room, .md = maildir_of(room), .f = findings_begin(fix, fn, ctx)
	};
	mr_auto(held_done) struct held_count held = { .md = in.md };

	in.f.attic = (struct attic){ .home_fd = in.md->root_fd,
		.home = "",
		.dir_mode = in.md->dir_mode,
		.file_mode = in.md->file_mode,
		.fd = -1 };
	TRY(inspect_tree(room, &in.f, err));
	TRY(check_spool(&in, err));
	TRY(check_mailboxes(&in, &held, err));
	TRY(check_queues(&in, &held, err));
	TRY(check_holds(&in, &held, err));
	TRY(check_links(&in, err));
	check_reserve(&in);
	check_attic(&in);
	return MR_OK;
}
