/* SPDX-License-Identifier: MIT */
/* rows.c - send and fan-out in the library, send and inbox as commands, beside the bare system calls. */
#include "bench.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINKS_MAX 64000 /* ext4 allows 65,000 an inode */
#define UNREAD 10
#define SEEN_AT_MOST 128 /* what normal use leaves in cur/ */

struct side { /* what both sides of a row need */
	struct bench *bench;
	struct bare_box box;
	struct mr_self self;
	const char *const *to;
	const char *const *bare_argv, *const *argv;
	int base_fd, new_fd, cur_fd;
	const char *look_at; /* what the bare side reads instead of our folders */
	size_t n;
};

static void
send_from(struct bench *b, const struct mr_self *self, const char *const *to, char ret_id[MR_ID_LEN + 1])
{
	struct mr_draft draft = { .to = to, .body = b->body, .body_len = BODY_BYTES };
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };

	check(mr_send(b->room, self, &draft, &receipt, &err), &err, "send");
	if (ret_id)
		memcpy(ret_id, receipt.id, sizeof(receipt.id));
	mr_receipt_done(&receipt);
}

/* ---- Operations ---- */

static double
send_bare(void *ctx)
{
	return bare_send(&((struct side *)ctx)->box);
}

static double
send_ours(void *ctx)
{
	struct side *s = ctx;
	double began = now_us();

	send_from(s->bench, &s->self, s->to, NULL);
	return now_us() - began;
}

static double
start_empty(void *ctx)
{
	struct side *s = ctx;
	const char *argv[] = { s->bench->empty, NULL };

	return run_timed(s->bench, argv);
}

static double
start_and_send_bare(void *ctx)
{
	return start_empty(ctx) + send_bare(ctx);
}

static double
start_and_look_bare(void *ctx)
{
	struct side *s = ctx;

	return start_empty(ctx) + bare_inbox(s->new_fd, s->cur_fd);
}

static double
start_bare_command(void *ctx)
{
	struct side *s = ctx;

	return run_timed(s->bench, s->bare_argv);
}

static double
start_command(void *ctx)
{
	struct side *s = ctx;

	return run_timed(s->bench, s->argv);
}

static double
fan_out_bare(void *ctx)
{
	struct side *s = ctx;

	return bare_fan_out(s->base_fd, s->n);
}

/* ---- Send ---- */

void
rows_send(struct bench *b)
{
	const char *const bob[] = { "bob", NULL };
	const char *const argv[] = { b->command, "--as", "alice", "send", "bob", "-m", b->body, NULL };
	struct side s = { .bench = b, .self = self_of(b, "alice"), .to = bob, .argv = argv };
	struct comparison library = { .name = "send-library",
		.what = "durable send of 1 KB to one agent, in the library",
		.note = "bare: O_TMPFILE, write, fsync, link, fsync, fsync of the folder, link into sent",
		.budget = 1.10,
		.ops = 40,
		.bare = send_bare,
		.ours = send_ours,
		.ctx = &s };
	struct comparison command = { .name = "send-command",
		.what = "durable send of 1 KB to one agent, as a command",
		.note = "bare: start of an empty static program, and the calls of send-library",
		.budget = 1.35,
		.ops = 30,
		.bare = start_and_send_bare,
		.ours = start_command,
		.ctx = &s };

	bare_box_open(&s.box, "bare-send");
	compare(&library);
	compare(&command);
}

/* ---- Fan-out ---- */

static void
make_fan(struct bench *b)
{
	make_folder("bare-fan");
	for (size_t i = 0; i < FAN_OUT_MAX; i++) {
		struct bare_box box;
		char *path = path_of("bare-fan/%zu", i);

		bare_box_open(&box, path);
		(void)close(box.new_fd);
		(void)close(box.sent_fd);
		free(path);
		b->names[i] = path_of("fan/a%03zu", i);
		register_agent(b, b->names[i]);
	}
}

static void
fan_out_row(struct bench *b, const char *name, const char *what, size_t n, double budget)
{
	const char *to[FAN_OUT_MAX + 1] = { NULL };
	struct side s = { .bench = b, .self = self_of(b, "alice"), .to = to, .n = n };
	struct comparison row = { .name = name,
		.what = what,
		.note = "bare: write, fsync, then open, link, fsync and close of every folder",
		.budget = budget,
		.reason =
		    "for each agent ours also looks whether it is registered and resolves its name; before the first "
		    "link it makes a record durable, so that after a kill or a power cut all get it, or nobody",
		.ops = n >= FAN_OUT_MAX ? 3 : 8,
		.bare = fan_out_bare,
		.ours = send_ours,
		.ctx = &s };

	memcpy(to, b->names, n * sizeof(*to));
	s.base_fd = open("bare-fan", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	compare(&row);
	(void)close(s.base_fd);
}

void
rows_fan_out(struct bench *b)
{
	make_fan(b);
	fan_out_row(b, "fan-out-100", "durable send of 1 KB to 100 agents, in the library", 100, 0);
	fan_out_row(b, "fan-out-1000", "durable send of 1 KB to 1,000 agents, in the library", 1000, 1.25);
}

/* ---- Inbox ---- */

static void
fill_inbox(struct bench *b, const char *agent, unsigned seen)
{
	const char *const to[] = { agent, NULL };
	struct mr_self alice = self_of(b, "alice"), self;
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	register_agent(b, agent);
	self = self_of(b, agent);
	for (unsigned i = 0; i < seen; i++) {
		send_from(b, &alice, to, id);
		check(mr_mark(b->room, &self, id, MR_SEEN, 0, &err), &err, "mark");
	}
	check(mr_flush(b->room, &err), &err, "flush");
	for (unsigned i = 0; i < UNREAD; i++)
		send_from(b, &alice, to, NULL);
}

/* Years of mail in a moment: links of a few files under names of their own. */
static void
fill_archive(struct bench *b, const char *agent)
{
	const int64_t october_ms = INT64_C(1790812800000);
	char *folder = path_of(".mailroom/agents/%s/.Archive.2026-10", agent);
	char *cur = path_of("%s/cur", folder), name[LETTER_NAME_MAX], file[32] = "";

	make_folder(folder);
	make_folder(cur);
	int fd = open(cur, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (long i = 0; i < b->archived; i++) {
		if (i % LINKS_MAX == 0) {
			(void)snprintf(file, sizeof(file), "letter-%ld", i / LINKS_MAX);
			FILE *letter = fopen(file, "w");

			if (!letter || fputs("From: alice@bench\n\nold\n", letter) < 0 || fclose(letter) != 0)
				die("cannot write '%s'", file);
		}
		letter_name(name, october_ms + i * 2, ":2,S");
		if (linkat(AT_FDCWD, file, fd, name, 0) < 0)
			die("cannot fill the archive");
	}
	(void)close(fd);
	free(cur);
	free(folder);
}

void
rows_inbox(struct bench *b)
{
	const char *const small[] = { b->command, "--as", "carol", "inbox", NULL };
	const char *const large[] = { b->command, "--as", "dave", "inbox", NULL };
	struct side s = { .bench = b, .bare_argv = small, .argv = small };
	char *what =
	    path_of("inbox with 10 unread, as a command: %ld archived and 128 read beside 10 read", b->archived);
	struct comparison start = { .name = "inbox-command",
		.what = "inbox with 10 unread and 10 read, as a command",
		.note = "bare: start of an empty static program, new/ and cur/ read, the 10 files read",
		.ops = 60,
		.bare = start_and_look_bare,
		.ours = start_command,
		.ctx = &s };
	struct comparison history = { .name = "inbox-history",
		.what = what,
		.note = "both sides are mailroom: bare is the small mailbox, ours the large one",
		.budget = 1.2,
		.ops = 60,
		.bare = start_bare_command,
		.ours = start_command,
		.ctx = &s };

	fill_inbox(b, "carol", 10);
	fill_inbox(b, "dave", SEEN_AT_MOST);
	fill_archive(b, "dave");
	sync();
	(void)nanosleep(
	    &(struct timespec){ .tv_nsec = 100000000 }, NULL); /* folders that just changed are read twice */
	s.new_fd = open(".mailroom/agents/carol/new", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s.cur_fd = open(".mailroom/agents/carol/cur", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	compare(&start);
	s.argv = large;
	compare(&history);
}

/* ---- A hook on every prompt ---- */

/* The bare side reads folders of its own: a reader's trace in ours (the access time) would make each look the first
 * one. And what is remembered of a folder without mail is remembered once it held still for three seconds. */
static void
let_settle(struct side *s)
{
	struct bare_box box = { 0 };

	bare_box_open(&box, s->look_at);
	s->new_fd = box.new_fd;
	s->cur_fd = box.sent_fd;
	(void)nanosleep(&(struct timespec){ .tv_sec = 3, .tv_nsec = 200000000 }, NULL);
}

void
rows_check(struct bench *b)
{
	const char *const argv[] = { b->command, "--as", "erin", "check", "--inject", NULL };
	struct side s = { .bench = b, .argv = argv };
	struct comparison row = { .name = "check-empty",
		.what = "check --inject without mail, as a command",
		.note = "bare: start of an empty static program, empty new/ and cur/ read",
		.budget = 2.0,
		.ops = 60,
		.bare = start_and_look_bare,
		.ours = start_command,
		.ctx = &s };

	register_agent(b, "erin");
	s.look_at = "bare-check";
	let_settle(&s);
	compare(&row);
}

static void
write_event(const char *path, const char *event)
{
	FILE *file = fopen(path, "w");

	if (!file ||
	    fprintf(file,
		"{\"session_id\":\"bench\",\"hook_event_name\":\"%s\",\"source\":\"startup\",\"prompt\":\"go on\"}\n",
		event) < 0 ||
	    fclose(file) != 0)
		die("cannot write '%s'", path);
}

/* This process is the harness of the session. */
void
rows_hook(struct bench *b)
{
	const char *const argv[] = { b->command, "hook", "claude-code", NULL };
	struct side s = { .bench = b, .argv = argv };
	struct comparison row = { .name = "hook-empty",
		.what = "hook of a session at a prompt without mail, as a command",
		.note = "bare: start of an empty static program, empty new/ and cur/ read",
		.budget = 2.0,
		.reason =
		    "a hook also reads its event and whose session it is, and looks for links, holds, due answers and "
		    "nudges: its forty system calls in a program that does nothing else take 1.3 starts of an empty "
		    "program, before a byte of JSON is understood",
		.ops = 60,
		.bare = start_and_look_bare,
		.ours = start_command,
		.ctx = &s };

	const char *name = strrchr(b->work, '/') ? strrchr(b->work, '/') + 1 : b->work; /* of the worktree */
	char *box = path_of(".mailroom/agents/%s/new", name);

	write_event("hook-start", "SessionStart");
	write_event("hook-prompt", "UserPromptSubmit");
	b->input = "hook-start";
	if (run_program(b, argv, NULL) != 0)
		die("the session could not be started");
	b->input = "hook-prompt";
	if (access(box, F_OK) < 0)
		die("the session was not registered as '%s'", name);
	s.look_at = "bare-hook";
	let_settle(&s);
	compare(&row);
	b->input = NULL;
	free(box);
}
