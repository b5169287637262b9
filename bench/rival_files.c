/* SPDX-License-Identifier: MIT */
/* rival_files.c - those that keep a message as a file: mailroom, mblaze, nq, a shell mailbox. */
#include "rival.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- A command as a handle ---- */

struct command *
command_new(const char *const *argv, const char *input)
{
	struct command *c = calloc(1, sizeof(*c));

	if (!c)
		die("out of memory");
	for (size_t i = 0; argv[i]; i++) {
		if (i + 1 == COMMAND_ARGS)
			die("too many arguments");
		c->argv[i] = argv[i];
	}
	c->input = input;
	return c;
}

double
command_send(struct bench *b, void *handle)
{
	struct command *c = handle;

	b->input = c->input;
	b->variable = c->variable;
	double took = run_timed(b, c->argv);
	b->input = b->variable = NULL;
	return took;
}

void
command_close(void *handle)
{
	struct command *c = handle;

	free(c->owned[0]);
	free(c->owned[1]);
	free(c);
}

static bool
start_folder(struct bench *b, const struct rival *r)
{
	(void)b;
	make_folder(r->folder);
	return true;
}

static void
write_file(const char *path, const char *head, const char *body)
{
	FILE *file = fopen(path, "w");

	if (!file || fprintf(file, "%s%s", head, body) < 0 || fclose(file) != 0)
		die("cannot write '%s'", path);
}

/* ---- mailroom ---- */

/* A room of its own with one who gets all the mail and a name for every sender. */
static struct mr_room *
open_town(struct bench *b, const char *folder)
{
	char *path = path_of("%s/%s/.mailroom", b->work, folder);
	struct mr_room *room = NULL;
	struct mr_error err = { 0 };

	check(mr_room_open(path, NULL, &room, &err), &err, "open");
	free(path);
	return room;
}

static bool
start_town(struct bench *b, const struct rival *r)
{
	bool fast = r == &mailroom_fast_command || r == &mailroom_fast_library;
	struct mr_init_options options = { .name = "rivals", .sync = fast ? "fast" : "full" };
	struct mr_error err = { 0 };
	struct bench town = *b;
	char *path = NULL, *where = path_of("%s/%s", b->work, r->folder);

	make_folder(r->folder);
	check(mr_room_init(where, where, &options, &path, &err), &err, "init");
	town.room = open_town(b, r->folder);
	register_agent(&town, "rita");
	for (unsigned i = 0; i < b->senders; i++) {
		char *name = path_of("sender%02u", i);

		register_agent(&town, name);
		free(name);
	}
	mr_room_close(town.room);
	free(path);
	free(where);
	return true;
}

static void *
open_mailroom_command(struct bench *b, const struct rival *r, unsigned sender)
{
	char *room = path_of("%s/%s/.mailroom", b->work, r->folder), *name = path_of("sender%02u", sender);
	const char *const argv[] = { b->command, "--room", room, "--as", name, "send", "rita", "-m", b->body, NULL };
	struct command *c = command_new(argv, NULL);

	c->owned[0] = room;
	c->owned[1] = name;
	return c;
}

struct town {
	struct mr_room *room;
	struct mr_self self;
};

static void *
open_mailroom(struct bench *b, const struct rival *r, unsigned sender)
{
	struct town *t = calloc(1, sizeof(*t));
	struct mr_error err = { 0 };
	char name[16];

	if (!t)
		die("out of memory");
	(void)snprintf(name, sizeof(name), "sender%02u", sender);
	t->room = open_town(b, r->folder);
	check(mr_self_named(t->room, name, &t->self, &err), &err, name);
	return t;
}

static double
send_mailroom(struct bench *b, void *handle)
{
	struct town *t = handle;
	const char *const to[] = { "rita", NULL };
	struct mr_draft draft = { .to = to, .body = b->body, .body_len = BODY_BYTES };
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	double began = now_us();

	check(mr_send(t->room, &t->self, &draft, &receipt, &err), &err, "send");
	mr_receipt_done(&receipt);
	return now_us() - began;
}

static void
close_mailroom(void *handle)
{
	struct town *t = handle;

	mr_room_close(t->room);
	free(t);
}

#define MAILROOM_KEEPS                                                                                                 \
	"full: the file is synced before it gets its name and again behind it, then the folder; a message that was "   \
	"accepted survives a power cut"

const struct rival mailroom_command = { .name = "mailroom send",
	.how = COMMAND,
	.folder = "rival-mailroom-command",
	.durability = MAILROOM_KEEPS,
	.note = "the message is kept for the sender as well, as a second name of the same file",
	.window_ms = 500,
	.start = start_town,
	.open = open_mailroom_command,
	.send = command_send,
	.close = command_close };

const struct rival mailroom_library = { .name = "libmailroom",
	.how = OPEN,
	.folder = "rival-mailroom-library",
	.durability = MAILROOM_KEEPS,
	.window_ms = 500,
	.start = start_town,
	.open = open_mailroom,
	.send = send_mailroom,
	.close = close_mailroom };

/* ---- The bare calls of the same: one new/, and a folder of what was sent for every sender ---- */

static bool
start_bare(struct bench *b, const struct rival *r)
{
	(void)b;
	make_folder(r->folder);
	return true;
}

static void *
open_bare(struct bench *b, const struct rival *r, unsigned sender)
{
	struct bare_box *box = calloc(1, sizeof(*box)), own;
	char *path = path_of("%s/sender%02u", r->folder, sender);

	(void)b;
	if (!box)
		die("out of memory");
	bare_box_open(box, r->folder);
	bare_box_open(&own, path);
	(void)close(own.new_fd), (void)close(box->sent_fd);
	box->sent_fd = own.sent_fd;
	free(path);
	return box;
}

static double
send_bare(struct bench *b, void *handle)
{
	(void)b;
	return bare_send(handle);
}

static void
close_bare(void *handle)
{
	struct bare_box *box = handle;

	(void)close(box->new_fd), (void)close(box->sent_fd);
	free(box);
}

const struct rival bare_open = { .name = "bare calls",
	.how = OPEN,
	.folder = "rival-bare",
	.durability = MAILROOM_KEEPS,
	.window_ms = 500,
	.start = start_bare,
	.open = open_bare,
	.send = send_bare,
	.close = close_bare };

#define FAST_KEEPS                                                                                                     \
	"full, where the journal is known to keep the order: the bytes are handed to the disk, then the name, and "    \
	"one "                                                                                                         \
	"sync of the folder takes both"

const struct rival mailroom_fast_command = { .name = "mailroom send, Sync: fast",
	.how = COMMAND,
	.folder = "rival-fast-command",
	.durability = FAST_KEEPS,
	.window_ms = 500,
	.start = start_town,
	.open = open_mailroom_command,
	.send = command_send,
	.close = command_close };

const struct rival mailroom_fast_library = { .name = "libmailroom, Sync: fast",
	.how = OPEN,
	.folder = "rival-fast-library",
	.durability = FAST_KEEPS,
	.window_ms = 500,
	.start = start_town,
	.open = open_mailroom,
	.send = send_mailroom,
	.close = close_mailroom };

/* ---- mblaze ---- */

static bool
start_mdeliver(struct bench *b, const struct rival *r)
{
	static const char *const parts[] = { "tmp", "new", "cur" };

	if (!is_here("mdeliver"))
		return false;
	make_folder(r->folder);
	for (size_t i = 0; i < 3; i++) {
		char *path = path_of("%s/%s", r->folder, parts[i]);

		make_folder(path);
		free(path);
	}
	write_file("letter-1k", "From: alice@bench\nTo: bob@bench\nSubject: one of many\n\n", b->body);
	return true;
}

static void *
open_mdeliver(struct bench *b, const struct rival *r, unsigned sender)
{
	const char *const argv[] = { "mdeliver", r->folder, NULL };

	(void)b, (void)sender;
	return command_new(argv, "letter-1k");
}

const struct rival mdeliver_command = { .name = "mblaze mdeliver",
	.how = COMMAND,
	.folder = "rival-mdeliver",
	.durability =
	    "nearly: the file is synced, then renamed, the folder is not synced; a power cut can take the last "
	    "message after it was accepted",
	.window_ms = 500,
	.start = start_mdeliver,
	.open = open_mdeliver,
	.send = command_send,
	.close = command_close };

/* ---- nq ---- */

static bool
start_nq(struct bench *b, const struct rival *r)
{
	return is_here("nq") && start_folder(b, r);
}

static void *
open_nq(struct bench *b, const struct rival *r, unsigned sender)
{
	const char *const argv[] = { "nq", "true", b->body, NULL };
	struct command *c = command_new(argv, NULL);

	(void)sender;
	c->owned[0] = path_of("NQDIR=%s/%s", b->work, r->folder);
	c->variable = c->owned[0];
	return c;
}

/* Jobs go on in the background: the next peer shall not run beside them. */
static void
rest_nq(struct bench *b, void *handle)
{
	struct command *c = handle;
	const char *const argv[] = { "nq", "-w", NULL };

	b->variable = c->variable;
	(void)run_program(b, argv, NULL);
	b->variable = NULL;
}

const struct rival nq_command = { .name = "nq",
	.how = COMMAND,
	.folder = "rival-nq",
	.durability =
	    "the name only: the folder is synced, what is in the file is written behind that and is not; a power "
	    "cut leaves empty jobs",
	.note = "its message is a job: the words are arguments of true(1), which it starts in the background",
	.start = start_nq,
	.open = open_nq,
	.send = command_send,
	.rest = rest_nq,
	.close = command_close };

/* ---- A mailbox of shell tools ---- */

static bool
start_shell(struct bench *b, const struct rival *r)
{
	write_file("one-line", "", "\n");
	return is_here("bash") && start_folder(b, r);
}

static void *
open_shell_command(struct bench *b, const struct rival *r, unsigned sender)
{
	char *script = path_of("%s/bench/peer-handoff", b->top), *from = path_of("sender%02u", sender);
	const char *const argv[] = { "bash", script, r->folder, from, "rita", NULL };
	struct command *c = command_new(argv, "one-line");

	c->owned[0] = script;
	c->owned[1] = from;
	return c;
}

static void *
open_shell(struct bench *b, const struct rival *r, unsigned sender)
{
	struct command *c = open_shell_command(b, r, sender);
	struct peer *p = calloc(1, sizeof(*p));

	if (!p)
		die("out of memory");
	peer_start(p, c->argv);
	command_close(c);
	return p;
}

static double
send_peer(struct bench *b, void *handle)
{
	(void)b;
	return peer_send(handle);
}

static void
close_peer(void *handle)
{
	peer_stop(handle);
	free(handle);
}

const struct rival shell_command = { .name = "shell mailbox",
	.how = COMMAND,
	.folder = "rival-shell-command",
	.durability = "none: nothing is synced",
	.start = start_shell,
	.open = open_shell_command,
	.send = command_send,
	.close = command_close };

const struct rival shell_open = { .name = "shell mailbox",
	.how = OPEN,
	.folder = "rival-shell-open",
	.durability = "none: nothing is synced",
	.note = "a bash that runs already; it starts some twenty tools for a message",
	.window_ms = 1500,
	.start = start_shell,
	.open = open_shell,
	.send = send_peer,
	.close = close_peer };
