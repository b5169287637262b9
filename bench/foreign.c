/* SPDX-License-Identifier: MIT */
/*
 * foreign.c - sending into the mailboxes of other systems, beside the way of those systems themselves. Here `bare` is
 * their way, in a program that is already running and only sends; ratios below 1 mean that ours is faster.
 * Ours is durable when it returns; none of theirs is.
 */
#include "bench.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HELD "10000" /* in the team's inbox */

struct sides {
	struct bench *bench;
	struct peer peer;
	struct mr_room *room;
	struct mr_self self;
	const char *const *argv, *const *peer_argv;
};

/* What theirs leaves unwritten would have to be written by our next fsync: it is, in between, at nobody's cost. */
static double
theirs(void *ctx)
{
	struct sides *s = ctx;
	double took = peer_send(&s->peer);
	int disk = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (disk < 0 || syncfs(disk) < 0)
		die("cannot sync");
	(void)close(disk);
	return took;
}

static double
theirs_started(void *ctx)
{
	struct sides *s = ctx;

	return run_timed(s->bench, s->peer_argv);
}

static double
ours_as_command(void *ctx)
{
	struct sides *s = ctx;

	return run_timed(s->bench, s->argv);
}

static double
ours_in_library(void *ctx)
{
	struct sides *s = ctx;
	const char *const to[] = { "bob", NULL };
	struct mr_draft draft = { .to = to, .body = s->bench->body, .body_len = BODY_BYTES, .hold = true };
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	double began = now_us();

	check(mr_send(s->room, &s->self, &draft, &receipt, &err), &err, "send");
	mr_receipt_done(&receipt);
	return now_us() - began;
}

/* ---- A team's inbox of 10,000 messages ---- */

#define COPY_FOLDER "bare-team"

/* What replacing a file takes at least: a copy in the kernel with one more entry, synced, renamed. */
static double
copy_in_kernel(void *ctx)
{
	static const char entry[300] = "  {\"from\": ...";
	struct stat st;
	double began = now_us();

	(void)ctx;
	int from = open(COPY_FOLDER "/box.json", O_RDONLY | O_CLOEXEC);
	int to = open(COPY_FOLDER "/box.tmp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int folder = open(COPY_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (from < 0 || to < 0 || folder < 0 || fstat(from, &st) < 0)
		die("cannot open the files of the floor");
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = copy_file_range(from, NULL, to, NULL, (size_t)left, 0);

		if (n <= 0)
			die("copy_file_range failed");
		left -= n;
	}
	if (write(to, entry, sizeof(entry)) != sizeof(entry) || fsync(to) < 0 ||
	    rename(COPY_FOLDER "/box.tmp", COPY_FOLDER "/box.json") < 0 || fsync(folder) < 0)
		die("cannot replace the file of the floor");
	(void)close(from);
	(void)close(to);
	(void)close(folder);
	return now_us() - began;
}

static void
fill_inbox(struct bench *b, const char *script, const char *inbox)
{
	const char *const argv[] = { "node", script, "fill", inbox, HELD, "200", NULL };

	if (run_program(b, argv, NULL) != 0)
		die("cannot fill '%s'", inbox);
}

static void
rows_teams(struct bench *b)
{
	char *script = path_of("%s/tests/peers/teams-peer.mjs", b->top), *spec = path_of("teams:%s/team", b->work);
	const char *const node[] = { "node", script, "bench", "team/inboxes/theirs.json", NULL };
	const char *const argv[] = { b->command, "--room", spec, "--as", "alice", "send", "ours", "-m",
		"What agents say to each other: a text of about two hundred bytes, as long as those that the other "
		"side of this row sends, so that both have the same to write and to copy, again and again, and so on",
		NULL };
	struct sides s = { .bench = b, .argv = argv };
	struct comparison row = { .name = "teams-send-10000",
		.what = "durable send into a team's inbox of 10,000 messages, as a command; at least 5 times as fast",
		.note = "bare: Node with proper-lockfile, in a running program: lock, read, parse, push, rewrite in "
			"place, release; nothing is synced",
		.budget = 0.20,
		.ops = 5,
		.bare = theirs,
		.ours = ours_as_command,
		.ctx = &s };
	struct comparison floor = { .name = "teams-floor",
		.what = "the same, beside what replacing that file takes at least",
		.note = "bare: copy_file_range of the inbox, write of one entry, fsync, rename, fsync of the folder",
		.ops = 5,
		.bare = copy_in_kernel,
		.ours = ours_as_command,
		.ctx = &s };

	make_folder("team");
	make_folder("team/inboxes");
	make_folder(COPY_FOLDER);
	fill_inbox(b, script, "team/inboxes/theirs.json");
	fill_inbox(b, script, "team/inboxes/ours.json");
	fill_inbox(b, script, COPY_FOLDER "/box.json");
	sync();
	peer_start(&s.peer, node);
	compare(&row);
	peer_stop(&s.peer);
	compare(&floor);
	free(script);
	free(spec);
}

/* ---- chipset ---- */

static void
open_room(struct sides *s, const char *spec)
{
	struct mr_error err = { 0 };

	check(mr_room_open(spec, NULL, &s->room, &err), &err, spec);
	check(mr_self_named(s->room, "alice", &s->self, &err), &err, "alice");
}

static void
rows_chipset(struct bench *b)
{
	char *script = path_of("%s/bench/peer-chipset.mjs", b->top), *spec = path_of("chipset:%s/chip-ours", b->work);
	const char *const node[] = { "node", script, "chip-theirs", "alice", "bob", NULL };
	const char *const once[] = { "node", script, "chip-theirs", "alice", "bob", "once", NULL };
	const char *const argv[] = { b->command, "--room", spec, "--as", "alice", "send", "bob", "-m", b->body, NULL };
	struct sides s = { .bench = b, .argv = argv, .peer_argv = once };
	struct comparison library = { .name = "chipset-library",
		.what = "durable send of 1 KB into a chipset mailbox, in the library",
		.note = "bare: Node in a running program: mkdir, write of .msg.tmp, fsync, rename; the folder is not "
			"synced",
		.ops = 40,
		.bare = theirs,
		.ours = ours_in_library,
		.ctx = &s };
	struct comparison command = { .name = "chipset-command",
		.what = "the same as a command",
		.note = "bare: the start of Node and that send",
		.budget = 1.0,
		.ops = 4,
		.bare = theirs_started,
		.ours = ours_as_command,
		.ctx = &s };

	make_folder("chip-ours");
	open_room(&s, spec);
	peer_start(&s.peer, node);
	compare(&library);
	peer_stop(&s.peer);
	compare(&command);
	mr_room_close(s.room);
	free(script);
	free(spec);
}

/* ---- handoff ---- */

static void
rows_handoff(struct bench *b)
{
	char *script = path_of("%s/bench/peer-handoff", b->top), *spec = path_of("handoff:%s/hand-ours", b->work);
	const char *const folders[] = { "hand-ours", "hand-ours/alice", "hand-ours/alice/inbox", "hand-ours/bob",
		"hand-ours/bob/tmp", "hand-ours/bob/inbox" };
	const char *const bash[] = { "bash", script, "hand-theirs", "alice", "bob", NULL };
	const char *const argv[] = { b->command, "--room", spec, "--as", "alice", "send", "bob", "-m", b->body, NULL };
	struct sides s = { .bench = b, .argv = argv };
	struct comparison command = { .name = "handoff-send",
		.what = "durable send of 1 KB into a handoff mailbox, as a command",
		.note = "bare: bash in a running program, with some twenty of the shell's tools a message; nothing is "
			"synced",
		.budget = 1.0,
		.ops = 10,
		.bare = theirs,
		.ours = ours_as_command,
		.ctx = &s };

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		make_folder(folders[i]);
	peer_start(&s.peer, bash);
	compare(&command);
	peer_stop(&s.peer);
	free(script);
	free(spec);
}

void
rows_foreign(struct bench *b)
{
	char *installed = path_of("%s/build/node/installed", b->top);

	if (access(installed, R_OK) == 0) {
		rows_teams(b);
		rows_chipset(b);
	} else
		(void)fprintf(
		    stderr, "bench: no build/node (tools/deps test): teams and chipset are not measured beside Node\n");
	rows_handoff(b);
	free(installed);
}
