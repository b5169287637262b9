/* SPDX-License-Identifier: MIT */
/* size_files.c - growing mailboxes in which a message is a file. Years of mail in a moment: links of a few files under
 * names of their own; the unread ones of a look are real messages. */
#include "size.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LINKS_MAX 60000 /* of one file; ext4 allows 65,000 */
#define OCTOBER_MS INT64_C(1790812800000)

static const char letter_head[] = "From: alice@bench\nTo: bob@bench\nSubject: one of many\n\n";

static void
write_letter(const struct bench *b, const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file || fprintf(file, "%s%s", letter_head, b->body) < 0 || fclose(file) != 0)
		die("cannot write '%s'", path);
}

/* `ending` behind a name that sorts. */
static void
add_links(struct bench *b, const char *folder, const char *ending, long from, long to)
{
	static unsigned letters;
	char name[LETTER_NAME_MAX], letter[32] = "";
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		die("cannot open '%s'", folder);
	for (long i = from; i < to; i++) {
		if ((i - from) % LINKS_MAX == 0) {
			(void)snprintf(letter, sizeof(letter), "letter-%u", letters++);
			write_letter(b, letter);
		}
		letter_name(name, OCTOBER_MS + i * 2, ending);
		if (linkat(AT_FDCWD, letter, fd, name, 0) < 0)
			die("cannot fill '%s'", folder);
	}
	(void)close(fd);
}

static void
make_folders(const char *base, const char *const *parts)
{
	make_folder(base);
	for (size_t i = 0; parts[i]; i++) {
		char *path = path_of("%s/%s", base, parts[i]);

		make_folder(path);
		free(path);
	}
}

/* ---- mailroom: sender writes to full, reader looks ---- */

#define TOWN "size-mailroom"
#define BOX(agent) TOWN "/.mailroom/agents/" agent

static struct mr_room *room;
static struct mr_self sender;
static struct command *send_command, *look_command, *full_look_command;

static double
send_in_library(struct bench *b, const char *agent)
{
	const char *const to[] = { agent, NULL };
	struct mr_draft draft = { .to = to, .body = b->body, .body_len = BODY_BYTES };
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	double began = now_us();

	check(mr_send(room, &sender, &draft, &receipt, &err), &err, "send");
	mr_receipt_done(&receipt);
	return now_us() - began;
}

static bool
start_mailroom(struct bench *b)
{
	static const char *const archive[] = { ".Archive.2026-10", ".Archive.2026-10/cur", NULL };
	struct mr_init_options options = { .name = "sizes" };
	struct mr_error err = { 0 };
	struct bench town = *b;
	char *where = path_of("%s/" TOWN, b->work), *path = NULL;

	make_folder(TOWN);
	check(mr_room_init(where, where, &options, &path, &err), &err, "init");
	check(mr_room_open(path, NULL, &room, &err), &err, "open");
	town.room = room;
	register_agent(&town, "sender");
	register_agent(&town, "full");
	register_agent(&town, "reader");
	sender = self_of(&town, "sender");
	make_folders(BOX("reader"), archive);
	for (unsigned i = 0; i < UNREAD; i++)
		(void)send_in_library(b, "reader");
	const char *const send[] = { b->command, "--room", path, "--as", "sender", "send", "full", "-m", b->body,
		NULL };
	const char *const look[] = { b->command, "--room", path, "--as", "reader", "inbox", NULL };
	const char *const full_look[] = { b->command, "--room", path, "--as", "full", "inbox", "--limit", "10", NULL };

	send_command = command_new(send, NULL);
	look_command = command_new(look, NULL);
	full_look_command = command_new(full_look, NULL);
	send_command->owned[0] = path;
	free(where);
	return true;
}

static void
grow_mailroom(struct bench *b, long from, long to)
{
	add_links(b, BOX("full") "/new", "", from, to);
	add_links(b, BOX("reader") "/.Archive.2026-10/cur", ":2,S", from, to);
}

static double
send_mailroom(struct bench *b)
{
	return command_send(b, send_command);
}

static double
look_mailroom(struct bench *b)
{
	return command_send(b, look_command);
}

static double
look_full(struct bench *b)
{
	return command_send(b, full_look_command);
}

static double
send_library(struct bench *b)
{
	return send_in_library(b, "full");
}

static void
stop_mailroom(void)
{
	command_close(look_command);
	command_close(full_look_command);
	command_close(send_command);
	mr_room_close(room);
}

static bool
is_started(struct bench *b) /* the others share the room */
{
	(void)b;
	return true;
}

static void
grow_nothing(struct bench *b, long from, long to)
{
	(void)b, (void)from, (void)to;
}

const struct grower mailroom_grows = { .name = "mailroom",
	.how = COMMAND,
	.look_what = "inbox: 10 unread, the others archived",
	.most = 100000,
	.start = start_mailroom,
	.grow = grow_mailroom,
	.send = send_mailroom,
	.look = look_mailroom,
	.stop = stop_mailroom };

const struct grower mailroom_unread_grows = { .name = "mailroom, all unread",
	.how = COMMAND,
	.look_what = "inbox --limit 10: none of them was ever read",
	.most = 100000,
	.start = is_started,
	.grow = grow_nothing,
	.look = look_full };

const struct grower library_grows = { .name = "libmailroom",
	.how = OPEN,
	.most = 100000,
	.start = is_started,
	.grow = grow_nothing,
	.send = send_library };

/* ---- mblaze ---- */

#define MD "size-mdeliver"
#define MD_LOOK "size-mlist"

static bool
start_mdeliver(struct bench *b)
{
	static const char *const parts[] = { "tmp", "new", "cur", NULL };

	if (!is_here("mdeliver"))
		return false;
	make_folders(MD, parts);
	make_folders(MD_LOOK, parts);
	write_letter(b, "letter-1k");
	add_links(b, MD_LOOK "/new", "", 0, UNREAD);
	return true;
}

static void
grow_mdeliver(struct bench *b, long from, long to)
{
	add_links(b, MD "/new", "", from, to);
	add_links(b, MD_LOOK "/cur", ":2,S", from, to);
}

static double
send_mdeliver(struct bench *b)
{
	const char *const argv[] = { "mdeliver", MD, NULL };

	b->input = "letter-1k";
	double took = run_timed(b, argv);
	b->input = NULL;
	return took;
}

static double
look_mdeliver(struct bench *b)
{
	const char *const argv[] = { "mlist", "-s", MD_LOOK, NULL };

	return run_timed(b, argv);
}

const struct grower mdeliver_grows = { .name = "mblaze",
	.how = COMMAND,
	.look_what = "mlist -s: goes through all names for the unseen, opens no file (mlist -N, for what nobody listed "
		     "yet, reads only "
		     "new/)",
	.most = 100000,
	.start = start_mdeliver,
	.grow = grow_mdeliver,
	.send = send_mdeliver,
	.look = look_mdeliver };

/* ---- A mailbox of shell tools ---- */

#define SHELL "size-shell"

static struct peer shell_sender, shell_reader;

static bool
start_shell(struct bench *b)
{
	static const char *const parts[] = { "full", "full/tmp", "full/inbox", "reader", "reader/tmp", "reader/inbox",
		"reader/archive", NULL };
	char *script = path_of("%s/bench/peer-handoff", b->top);
	const char *const send[] = { "bash", script, SHELL, "sender", "full", NULL };
	const char *const look[] = { "bash", script, SHELL, "sender", "reader", "look", NULL };

	if (is_here("bash")) {
		make_folders(SHELL, parts);
		add_links(b, SHELL "/reader/inbox", ".md", 0, UNREAD);
		peer_start(&shell_sender, send);
		peer_start(&shell_reader, look);
	}
	free(script);
	return is_here("bash");
}

static void
grow_shell(struct bench *b, long from, long to)
{
	add_links(b, SHELL "/full/inbox", ".md", from, to);
	add_links(b, SHELL "/reader/archive", ".md", from, to);
}

static double
send_shell(struct bench *b)
{
	(void)b;
	return peer_send(&shell_sender);
}

static double
look_shell(struct bench *b)
{
	(void)b;
	return peer_send(&shell_reader);
}

static void
stop_shell(void)
{
	peer_stop(&shell_sender);
	peer_stop(&shell_reader);
}

const struct grower shell_grows = { .name = "shell mailbox",
	.how = OPEN,
	.look_what = "find, sort, head of 10, the others archived",
	.most = 100000,
	.start = start_shell,
	.grow = grow_shell,
	.send = send_shell,
	.look = look_shell,
	.stop = stop_shell };
