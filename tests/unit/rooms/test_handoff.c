/* SPDX-License-Identifier: MIT */
/* A handoff room on disk: who may open it, who is who, where mail goes, and what a failure or a kill leaves behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/sys.h"
#include "rooms/handoff/handoff.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct place {
	char folder[160];
	struct mr_room *room;
	const struct room_driver *ops;
};

static int
open_it(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	const char *tmp = getenv("TMPDIR");
	struct mr_error err = { 0 };
	char spec[200];

	assert_non_null(p);
	(void)snprintf(p->folder, sizeof p->folder, "%s/mailroom-handoff-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
	assert_non_null(mkdtemp(p->folder));
	(void)snprintf(spec, sizeof spec, "handoff:%s/root", p->folder);
	assert_int_equal(room_open_spec(spec, NULL, &p->room, &err), MR_OK);
	p->ops = p->room->driver;
	*state = p;
	return 0;
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int
close_it(void **state)
{
	struct place *p = *state;

	room_free(p->room);
	(void)nftw(p->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(p);
	return 0;
}

/* ---- Short words ---- */

static const char *
path_of(const struct place *p, const char *below)
{
	static char path[600];

	(void)snprintf(path, sizeof path, "%s/root%s%s", p->folder, below[0] ? "/" : "", below);
	return path;
}

static void
put(const struct place *p, const char *name, const char *text)
{
	FILE *file = fopen(path_of(p, name), "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	(void)fclose(file);
}

static enum mr_rc
try_add(struct place *p, const char *name, struct mr_error *err)
{
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "codex", .wake = "" };

	(void)snprintf(agent.name, sizeof agent.name, "%s", name);
	return p->ops->add_agent(p->room, &agent, err);
}

static void
add(struct place *p, const char *name)
{
	struct mr_error err = { 0 };

	if (try_add(p, name, &err) != MR_OK)
		fail_msg("%s", err.message);
}

/* The id of an agent's mailbox. */
static const char *
id_of(struct place *p, const char *name)
{
	static char id[2][HANDOFF_ID_MAX + 1];
	static unsigned turn;
	struct mr_agent agent = { 0 };
	struct mr_error err = { 0 };

	if (p->ops->find_agent(p->room, name, &agent, &err) != MR_OK)
		fail_msg("%s", err.message);
	turn ^= 1;
	(void)snprintf(id[turn], sizeof id[turn], "%s", agent.session);
	mr_agent_done(&agent);
	return id[turn];
}

struct sent {
	const char *from, *to, *subject, *body, *reply_to;
	bool keep, carried;
	int64_t date_ms;
	enum mr_rc (*staged)(void *ctx, const char *ticket, struct mr_error *err);
	void *ctx;
};

static enum mr_rc
try_send(struct place *p, struct sent s, struct delivered *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names to = { 0 };
	struct mr_message msg = { .id = "01k9w3b7zq8m4c2v6t1x5n0prs",
		.from = s.from ? s.from : "alice",
		.subject = s.subject ? s.subject : "hello",
		.date_ms = s.date_ms,
		.type = "",
		.thread = "",
		.reply_to = s.reply_to ? s.reply_to : "",
		.replace_key = "",
		.path = "",
		.body = s.body ? s.body : "hi\n" };
	struct delivery what = { .msg = &msg,
		.to = &to,
		.sender = "",
		.keep = s.keep,
		.carried = s.carried,
		.staged = s.staged,
		.staged_ctx = s.ctx };

	msg.body_len = strlen(msg.body);
	assert_true(names_add(&to, str_of(s.to ? s.to : "bob")));
	return p->ops->deliver(p->room, &what, ret, err);
}

static struct delivered
send(struct place *p, struct sent s)
{
	struct delivered done = { 0 };
	struct mr_error err = { 0 };

	if (try_send(p, s, &done, &err) != MR_OK)
		fail_msg("%s", err.message);
	return done;
}

static struct mr_message
fetch(struct place *p, const char *agent, const char *id)
{
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	if (p->ops->fetch(p->room, agent, id, 0, SCAN_BODIES, &msg, &err) != MR_OK)
		fail_msg("%s", err.message);
	return msg;
}

struct seen {
	size_t n, troubles;
	char last[400];
};

static bool
count_one(void *ctx, const struct mr_message *msg)
{
	(void)msg;
	((struct seen *)ctx)->n++;
	return true;
}

static void
note_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	struct seen *seen = ctx;

	seen->troubles++;
	(void)snprintf(seen->last, sizeof seen->last, "%s: %s", path, err->message);
}

static struct seen
look(struct place *p, const char *agent, unsigned folders)
{
	struct seen seen = { 0 };
	struct mr_error err = { 0 };
	struct scan_request want = {
		.folders = folders, .depth = SCAN_BODIES, .trouble = note_trouble, .trouble_ctx = &seen
	};

	if (p->ops->scan(p->room, agent, &want, count_one, &seen, &err) != MR_OK)
		fail_msg("%s", err.message);
	return seen;
}

#define BOTH (MR_INBOX | MR_ARCHIVE)

/* ---- The root ---- */

static enum mr_rc
reopen(struct place *p, struct mr_error *err)
{
	struct mr_room *again = NULL;
	enum mr_rc rc = room_open_spec(p->room->spec, NULL, &again, err);

	room_free(again);
	return rc;
}

static void
a_root_that_others_could_have_laid_is_refused(void **state)
{
	struct place *p = *state;
	struct mr_error err = { 0 };
	struct stat st;
	char aside[200];

	assert_int_equal(reopen(p, &err), MR_OK);
	assert_int_equal(stat(path_of(p, ""), &st), -1); /* looking makes nothing */
	add(p, "alice");
	assert_int_equal(stat(path_of(p, ""), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(chmod(path_of(p, ""), 0755), 0);
	assert_int_equal(reopen(p, &err), MR_OK);
	assert_int_equal(chmod(path_of(p, ""), 0777), 0);
	assert_int_equal(reopen(p, &err), MR_REFUSED);
	assert_int_equal(chmod(path_of(p, ""), 0700), 0);
	(void)snprintf(aside, sizeof aside, "%s/aside", p->folder);
	assert_int_equal(rename(path_of(p, ""), aside), 0);
	assert_int_equal(symlink(aside, path_of(p, "")), 0);
	assert_int_equal(reopen(p, &err), MR_REFUSED);
	assert_int_equal(unlink(path_of(p, "")), 0);
	struct mr_room *none = NULL;

	assert_int_equal(room_open_spec("handoff:/no/such/place/root", NULL, &none, &err), MR_NOTFOUND);
	assert_int_equal(room_open_spec("handoff:relative", NULL, &none, &err), MR_REFUSED);
}

/* ---- Who is who ---- */

static void
names_are_spelled_as_addresses(void **state)
{
	struct place *p = *state;
	struct mr_error err = { 0 };
	char got[MR_ADDRESS_MAX + 1];
	static const char *const same[] = { "Old Bob", "Old%20Bob", NULL };

	add(p, "Old%20Bob");
	for (size_t i = 0; same[i]; i++) {
		assert_int_equal(p->ops->spell(p->room, same[i], got, &err), MR_OK);
		assert_string_equal(got, "Old%20Bob");
	}
	assert_int_equal(p->ops->spell(p->room, id_of(p, "Old%20Bob"), got, &err), MR_OK);
	assert_string_equal(got, "Old%20Bob");
	assert_int_equal(p->ops->spell(p->room, "nobody", got, &err), MR_OK);
	assert_string_equal(got, "nobody");
	assert_int_equal(p->ops->spell(p->room, "a\"b", got, &err), MR_REFUSED);
	assert_int_equal(p->ops->spell(p->room, "-x", got, &err), MR_REFUSED);
}

static bool
note_name(void *ctx, const struct mr_agent *agent)
{
	return names_add(ctx, str_of(agent->name));
}

static void
folders_without_a_name_are_agents_too(void **state)
{
	struct place *p = *state;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct mr_error err = { 0 };
	struct mr_agent agent = { 0 };

	add(p, "bob");
	assert_int_equal(mkdir(path_of(p, "stray-1"), 0755), 0);
	put(p, "body.md", "what the original's tests leave here");
	assert_int_equal(p->ops->each_agent(p->room, note_name, &names, &err), MR_OK);
	assert_int_equal(names.n, 2);
	assert_true(names_has(&names, "bob") && names_has(&names, "stray-1"));
	send(p, (struct sent){ .from = "stray-1" });
	assert_int_equal(look(p, "stray-1", BOTH).n, 0);
	assert_int_equal(p->ops->find_agent(p->room, "stray-2", &agent, &err), MR_NOTFOUND);
	assert_int_equal(p->ops->find_agent(p->room, "..", &agent, &err), MR_NOTFOUND);
	assert_int_equal(try_add(p, "stray-1", &err), MR_REFUSED);
	assert_int_equal(try_add(p, "bob", &err), MR_EXISTS);
}

static void
a_registry_cannot_lead_out_of_the_root(void **state)
{
	struct place *p = *state;
	struct mr_error err = { 0 };
	struct delivered done = { 0 };

	add(p, "alice");
	put(p, "registry.json",
	    "{\"evil\": {\"id\":\"../../etc\",\"inbox\":\"/etc/inbox\"}, \"alice\": {\"id\":\"a\"}}");
	assert_int_equal(try_send(p, (struct sent){ .to = "evil" }, &done, &err), MR_REFUSED);
	assert_int_equal(look(p, "alice", BOTH).n, 0);
}

static void
who_has_no_mailbox_cannot_send(void **state)
{
	struct place *p = *state;
	struct mr_error err = { 0 };
	struct delivered done = { 0 };

	add(p, "bob");
	assert_int_equal(try_send(p, (struct sent){ .from = "ghost" }, &done, &err), MR_REFUSED);
	assert_non_null(strstr(err.hint, "register"));
	assert_int_equal(try_send(p, (struct sent){ .from = "bob", .to = "ghost" }, &done, &err), MR_NOTFOUND);
}

static void
pruning_refuses_unread_mail_unless_forced(void **state)
{
	struct place *p = *state;
	struct mr_error err = { 0 };
	struct stat st;
	size_t dead = 99;
	char id[HANDOFF_ID_MAX + 1];

	add(p, "alice");
	add(p, "bob");
	(void)snprintf(id, sizeof id, "%s", id_of(p, "bob"));
	struct delivered first = send(p, (struct sent){ 0 });

	assert_int_equal(p->ops->remove_agent(p->room, "bob", false, &dead, &err), MR_REFUSED);
	assert_int_equal(look(p, "bob", MR_INBOX).n, 1);
	assert_int_equal(p->ops->mark(p->room, "bob", first.id, MR_SEEN, 0, &err), MR_OK);
	assert_int_equal(p->ops->remove_agent(p->room, "bob", false, &dead, &err), MR_OK);
	assert_int_equal(dead, 0);
	assert_int_equal(stat(path_of(p, id), &st), -1);
	assert_int_equal(p->ops->remove_agent(p->room, "bob", false, &dead, &err), MR_NOTFOUND);
	add(p, "bob");
	send(p, (struct sent){ 0 });
	assert_int_equal(p->ops->remove_agent(p->room, "bob", true, &dead, &err), MR_OK);
	assert_int_equal(dead, 1);
}

/* ---- Mail ---- */

static void
mail_is_the_format_of_the_original(void **state)
{
	struct place *p = *state;
	mr_auto(buf_done) struct buf raw = BUF_INIT, want = BUF_INIT;
	struct mr_error err = { 0 };
	struct stat st;

	add(p, "alice");
	add(p, "Old%20Bob");
	struct delivered done =
	    send(p, (struct sent){ .to = "Old%20Bob", .subject = "Parser: next", .reply_to = "m-1", .body = "no end" });
	struct mr_message msg = fetch(p, "Old%20Bob", done.id);

	assert_string_equal(msg.from, "alice");
	assert_string_equal(msg.to.v[0], "Old%20Bob");
	assert_string_equal(msg.subject, "Parser: next");
	assert_string_equal(msg.reply_to, "m-1");
	assert_string_equal(msg.thread, done.id);
	assert_string_equal(mr_message_header(&msg, "Message-ID"), done.spoken);
	assert_true(msg.date_ms > clock_now_ms() - 60000);
	assert_int_equal(stat(path_of(p, msg.path), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(p->ops->fetch_raw(p->room, "Old%20Bob", done.id, &raw, &err), MR_OK);
	buf_addf(&want, "---\nfrom: %s\nmsg_id: %s\nsubject: Parser: next\nreply_to: m-1\nto: %s\n---\n\nno end",
	    id_of(p, "alice"), done.spoken, id_of(p, "Old%20Bob"));
	assert_string_equal(buf_z(&raw), buf_z(&want));
	mr_message_done(&msg);
}

static void
an_id_stays_when_mail_is_read(void **state)
{
	struct place *p = *state;
	struct mr_error err = { 0 };

	add(p, "alice");
	add(p, "bob");
	struct delivered done = send(p, (struct sent){ 0 });

	assert_int_equal(p->ops->mark(p->room, "bob", done.id, MR_SEEN, 0, &err), MR_OK);
	assert_int_equal(p->ops->mark(p->room, "bob", done.id, MR_SEEN, 0, &err), MR_OK);
	struct mr_message msg = fetch(p, "bob", done.id);

	assert_int_equal(msg.folder, MR_ARCHIVE);
	assert_int_equal(msg.flags, MR_SEEN);
	mr_message_done(&msg);
	assert_int_equal(p->ops->mark(p->room, "bob", done.id, 0, MR_SEEN, &err), MR_OK);
	assert_int_equal(look(p, "bob", MR_INBOX).n, 1);
	assert_int_equal(p->ops->mark(p->room, "bob", done.id, MR_PINNED, 0, &err), MR_UNSUPPORTED);
}

static void
what_is_no_message_is_reported_and_the_rest_goes_on(void **state)
{
	struct place *p = *state;
	char path[300];
	const char *id;

	add(p, "alice");
	add(p, "bob");
	send(p, (struct sent){ 0 });
	id = id_of(p, "bob");
	(void)snprintf(path, sizeof path, "%s/inbox/notes.md", id);
	put(p, path, "just notes\n");
	(void)snprintf(path, sizeof path, "%s/inbox/.other.md", id);
	put(p, path, "---\nfrom: x y\nto: somebody-else\n---\n\nhi\n");
	(void)snprintf(path, sizeof path, "%s/inbox/readme.txt", id);
	put(p, path, "---\nfrom: x\n---\n");
	(void)snprintf(path, sizeof path, "%s/inbox/link.md", id);
	assert_int_equal(symlink("/etc/passwd", path_of(p, path)), 0);
	struct seen seen = look(p, "bob", MR_INBOX);

	assert_int_equal(seen.n, 2);        /* ours, and the one for somebody else, which is shown all the same */
	assert_int_equal(seen.troubles, 2); /* that one, and the notes */
}

static void
a_root_that_was_moved_is_reported(void **state)
{
	struct place *p = *state;
	mr_auto(buf_done) struct buf registry = BUF_INIT;

	add(p, "bob");
	assert_int_equal(look(p, "bob", BOTH).troubles, 0);
	buf_addf(&registry, "{\"bob\":{\"id\":\"%s\",\"inbox\":\"/elsewhere/inbox\"}}", id_of(p, "bob"));
	put(p, "registry.json", buf_z(&registry));
	struct seen seen = look(p, "bob", BOTH);

	assert_int_equal(seen.troubles, 1);
	assert_non_null(strstr(seen.last, "/elsewhere/inbox"));
}

/* ---- Archive ---- */

static void
archiving_never_overwrites(void **state)
{
	struct place *p = *state;
	struct mr_error err = { 0 };
	struct handoff *h = handoff_of(p->room);
	char path[300], id[HANDOFF_ID_MAX + 1];

	add(p, "bob");
	(void)snprintf(id, sizeof id, "%s", id_of(p, "bob"));
	for (int i = 0; i < 4; i++) { /* one, its copy, another of that name, a third */
		static const char *const texts[] = { "from: a\n1", "from: a\n1", "from: a\n2", "from: a\n3" };

		(void)snprintf(path, sizeof path, "%s/inbox/x.md", id);
		put(p, path, texts[i]);
		assert_int_equal(handoff_move_file(h, id, "x.md", MR_INBOX, &err), MR_OK);
	}
	assert_int_equal(handoff_move_file(h, id, "x.md", MR_INBOX, &err), MR_NOTFOUND);
	assert_int_equal(look(p, "bob", MR_INBOX).n, 0);
	assert_int_equal(look(p, "bob", MR_ARCHIVE).n, 3);
	(void)snprintf(path, sizeof path, "%s/archive/x.md.2", id);
	assert_int_equal(access(path_of(p, path), F_OK), 0);
}

/* ---- Imports and carried mail ---- */

static void
an_import_is_found_again_wherever_it_is(void **state)
{
	struct place *p = *state;
	struct sent s = { .keep = true, .date_ms = 1700000000123, .subject = "old" };
	struct delivered first = { 0 }, again = { 0 };
	struct mr_error err = { 0 };

	add(p, "alice");
	add(p, "bob");
	first = send(p, s);
	assert_int_equal(try_send(p, s, &again, &err), MR_EXISTS);
	assert_string_equal(first.id, again.id);
	assert_int_equal(p->ops->mark(p->room, "bob", first.id, MR_SEEN, 0, &err), MR_OK);
	assert_int_equal(try_send(p, s, &again, &err), MR_EXISTS);
	struct mr_message msg = fetch(p, "bob", first.id);

	assert_int_equal(msg.date_ms, s.date_ms);
	assert_non_null(strstr(msg.path, "20231114T221320Z-"));
	mr_message_done(&msg);
	s.date_ms++;
	assert_string_not_equal(send(p, s).id, first.id);
	assert_int_equal(look(p, "bob", BOTH).n, 2);
}

struct staging {
	char ticket[ROOM_TICKET_MAX];
	enum mr_rc answer;
};

static enum mr_rc
keep_ticket(void *ctx, const char *ticket, struct mr_error *err)
{
	struct staging *s = ctx;

	(void)snprintf(s->ticket, sizeof s->ticket, "%s", ticket);
	return s->answer == MR_OK ? MR_OK : mr_fail(err, s->answer, "said no");
}

static enum mr_rc
die(void *ctx, const char *ticket, struct mr_error *err)
{
	(void)err;
	FILE *file = fopen(ctx, "w");

	(void)fputs(ticket, file);
	(void)fclose(file);
	_exit(9);
}

static void
a_ticket_tells_whether_it_was_published(void **state)
{
	struct place *p = *state;
	struct staging staging = { .answer = MR_REFUSED };
	struct sent s = { .carried = true, .date_ms = 1700000000000, .staged = keep_ticket, .ctx = &staging };
	struct delivered done = { 0 };
	struct mr_error err = { 0 };
	bool published = true;
	char note[200];

	add(p, "alice");
	add(p, "bob");
	assert_int_equal(try_send(p, s, &done, &err), MR_REFUSED);
	assert_int_equal(look(p, "bob", BOTH).n, 0);
	staging.answer = MR_OK;
	send(p, s);
	assert_int_equal(p->ops->settle_ticket(p->room, staging.ticket, &published, &err), MR_OK);
	assert_true(published);
	(void)snprintf(note, sizeof note, "%s/ticket", p->folder);
	if (fork() == 0) {
		s.staged = die;
		s.ctx = note;
		(void)try_send(p, s, &done, &err);
		_exit(1);
	}
	assert_true(wait(NULL) > 0);
	FILE *file = fopen(note, "r");

	assert_non_null(file);
	assert_non_null(fgets(staging.ticket, sizeof staging.ticket, file));
	(void)fclose(file);
	assert_int_equal(p->ops->settle_ticket(p->room, staging.ticket, &published, &err), MR_OK);
	assert_false(published);
	assert_int_equal(look(p, "bob", BOTH).n, 1);
	assert_int_equal(p->ops->settle_ticket(p->room, "../x/.mailroom-carry-y", &published, &err), MR_CORRUPT);
	assert_int_equal(p->ops->settle_ticket(p->room, "x/other.md", &published, &err), MR_CORRUPT);
}

/* ---- Failures and kills ---- */

static void
a_failed_call_leaves_nothing_or_all(void **state)
{
	struct place *p = *state;
	size_t before = 0, points = 0;

	add(p, "alice");
	add(p, "bob");
	for (bool hit = true; hit; points++) {
		struct delivered done = { 0 };
		struct mr_error err = { 0 };

		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = points + 1, .error = EIO });
		enum mr_rc rc = try_send(p, (struct sent){ 0 }, &done, &err);

		hit = sys_plan_hit();
		sys_plan_set(NULL);
		size_t now = look(p, "bob", BOTH).n;

		assert_int_equal(now, before + (rc == MR_OK));
		before = now;
	}
	assert_true(points > 5);
}

/* In a child that is killed at its n-th call. True: it was. */
static bool
killed_at(
    struct place *p, enum sys_fault how, unsigned long n, void (*work)(struct place *p, const char *id), const char *id)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		sys_plan_set(&(struct sys_plan){ .fault = how, .at = n });
		work(p, id);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status);
}

static void
work_send(struct place *p, const char *id)
{
	struct delivered done = { 0 };
	struct mr_error err = { 0 };

	(void)id;
	(void)try_send(p, (struct sent){ 0 }, &done, &err);
}

static void
work_mark(struct place *p, const char *id)
{
	struct mr_error err = { 0 };

	(void)p->ops->mark(p->room, "bob", id, MR_SEEN, 0, &err);
}

static void
work_register(struct place *p, const char *id)
{
	struct mr_error err = { 0 };

	(void)id;
	(void)try_add(p, "carol", &err);
}

static void
a_kill_tears_and_loses_nothing(void **state)
{
	struct place *p = *state;
	struct mr_error err = { 0 };
	unsigned long n = 0;

	add(p, "alice");
	add(p, "bob");
	struct delivered done = send(p, (struct sent){ 0 });
	size_t before = 1;

	for (n = 1; killed_at(p, SYS_FAULT_KILL_AFTER, n, work_send, ""); n++) {
		struct seen seen = look(p, "bob", MR_INBOX);

		assert_int_equal(seen.troubles, 0);
		assert_true(seen.n == before || seen.n == before + 1);
		before = seen.n;
	}
	assert_true(n > 5);
	before = look(p, "bob", BOTH).n;
	for (n = 1; killed_at(p, SYS_FAULT_KILL_AFTER, n, work_mark, done.id); n++) {
		assert_int_equal(look(p, "bob", BOTH).n, before);
		assert_int_equal(p->ops->mark(p->room, "bob", done.id, 0, MR_SEEN, &err), MR_OK);
	}
	assert_true(n > 3);
}

static void
a_killed_registration_is_whole_or_not_there(void **state)
{
	struct place *p = *state;
	struct mr_agent agent = { 0 };
	struct mr_error err = { 0 };
	unsigned long n = 1;

	add(p, "alice");
	for (; killed_at(p, SYS_FAULT_KILL_AFTER, n, work_register, ""); n++) {
		size_t dead = 0;

		assert_int_equal(p->ops->find_agent(p->room, "alice", &agent, &err), MR_OK);
		mr_agent_done(&agent);
		if (p->ops->find_agent(p->room, "carol", &agent, &err) != MR_OK)
			continue;
		mr_agent_done(&agent);
		send(p, (struct sent){ .to = "carol" }); /* also when its folders were not made yet */
		assert_int_equal(p->ops->remove_agent(p->room, "carol", true, &dead, &err), MR_OK);
	}
	assert_true(n > 5);
}

/* ---- Care ---- */

static void
count_finding(void *ctx, const struct mr_finding *finding)
{
	struct seen *seen = ctx;

	seen->n += finding->severity != MR_FINE && strcmp(finding->code, "space") != 0;
	seen->troubles += finding->fixed;
}

static struct seen
inspect(struct place *p, bool fix)
{
	struct seen seen = { 0 };
	struct mr_error err = { 0 };

	assert_int_equal(p->ops->inspect(p->room, fix, count_finding, &seen, &err), MR_OK);
	return seen;
}

static void
a_look_finds_and_mends(void **state)
{
	struct place *p = *state;
	mr_auto(buf_done) struct buf registry = BUF_INIT;
	char path[400];

	add(p, "bob");
	free(p->room->state_dir); /* what is taken away is kept there */
	p->room->state_dir = strdup(p->folder);
	assert_int_equal(inspect(p, false).n, 0);
	buf_addf(&registry, "{\"bob\":\n{\"id\":\"%s\",\"inbox\":\"/elsewhere/inbox\"}}", id_of(p, "bob"));
	put(p, "registry.json", buf_z(&registry));
	for (int i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof path, "%s/tmp/%sleft.md", id_of(p, "bob"), i ? FILE_CARRY : "");
		put(p, path, "half");
	}
	assert_int_equal(chmod(path_of(p, ""), 0755), 0);
	assert_int_equal(inspect(p, false).n, 3); /* somebody may be writing these */
	clock_shift_ms((int64_t)3 * 86400 * 1000);
	assert_int_equal(inspect(p, false).n, 5);
	assert_int_equal(inspect(p, true).troubles, 4);
	assert_int_equal(inspect(p, false).n, 1);
	clock_shift_ms(0);
	assert_int_equal(look(p, "bob", BOTH).troubles, 0);
	assert_int_equal(access(path_of(p, path), F_OK), 0); /* a ticket tells of this one */
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_it, close_it)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_root_that_others_could_have_laid_is_refused),
		TEST(names_are_spelled_as_addresses),
		TEST(folders_without_a_name_are_agents_too),
		TEST(a_registry_cannot_lead_out_of_the_root),
		TEST(who_has_no_mailbox_cannot_send),
		TEST(pruning_refuses_unread_mail_unless_forced),
		TEST(mail_is_the_format_of_the_original),
		TEST(an_id_stays_when_mail_is_read),
		TEST(what_is_no_message_is_reported_and_the_rest_goes_on),
		TEST(a_root_that_was_moved_is_reported),
		TEST(archiving_never_overwrites),
		TEST(an_import_is_found_again_wherever_it_is),
		TEST(a_ticket_tells_whether_it_was_published),
		TEST(a_failed_call_leaves_nothing_or_all),
		TEST(a_kill_tears_and_loses_nothing),
		TEST(a_killed_registration_is_whole_or_not_there),
		TEST(a_look_finds_and_mends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
