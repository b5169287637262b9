/* SPDX-License-Identifier: MIT */
/*
 * hello.c - a program that links libmailroom: makes a room, registers two agents, sends, and takes the mail
 * as work.
 *
 *	cc hello.c $(pkg-config --cflags --libs mailroom) -o hello && ./hello /tmp/somewhere
 */
#include <mailroom.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int
failed(const struct mr_error *err)
{
	fprintf(stderr, "hello: %s\n", err->message);
	if (err->hint[0] != '\0')
		fprintf(stderr, "hello: %s\n", err->hint);
	return 1;
}

static enum mr_rc
greet(struct mr_room *room, struct mr_error *err)
{
	static const char text[] = "Hello from C.\n";
	const char *to[] = { "bob", NULL };
	struct mr_draft draft = { 0 };
	struct mr_receipt receipt = { 0 };
	struct mr_self alice = { 0 };

	draft.to = to;
	draft.body = text;
	draft.body_len = strlen(text);
	enum mr_rc rc = mr_self_named(room, "alice", &alice, err);
	if (rc == MR_OK)
		rc = mr_send(room, &alice, &draft, &receipt, err);
	if (rc == MR_OK)
		printf("sent %s\n", receipt.id);
	mr_receipt_done(&receipt);
	return rc;
}

static enum mr_rc
work(struct mr_room *room, struct mr_error *err)
{
	struct mr_self bob = { 0 };
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	char id[MR_ID_LEN + 1];

	enum mr_rc rc = mr_self_named(room, "bob", &bob, err);
	if (rc == MR_OK)
		rc = mr_recv(room, &bob, NULL, 60 * 1000, &claim, &msg, err);
	if (rc != MR_OK)
		return rc;
	printf("took %s from %s: %.*s", claim.id, msg.from, (int)msg.body_len, msg.body);
	mr_message_done(&msg);
	rc = mr_claim_done(room, &bob, claim.token, NULL, id, NULL, err);
	if (rc == MR_OK)
		printf("done %s\n", id);
	return rc;
}

int
main(int argc, char **argv)
{
	struct mr_error err = { 0 };
	struct mr_room *room = NULL;
	struct mr_registration reg = { 0 };
	struct mr_env nobody = { 0 };
	char cwd[4096];
	char *path = NULL;
	int status = 0;

	if (argc != 2 || !getcwd(cwd, sizeof(cwd))) {
		fprintf(stderr, "usage: hello FOLDER\n");
		return 2;
	}
	if (mr_room_init(argv[1], cwd, NULL, &path, &err) != MR_OK || mr_room_open(path, NULL, &room, &err) != MR_OK ||
	    mr_register(room, "alice", &nobody, NULL, &reg, &err) != MR_OK ||
	    mr_register(room, "bob", &nobody, NULL, &reg, &err) != MR_OK || greet(room, &err) != MR_OK ||
	    work(room, &err) != MR_OK)
		status = failed(&err);
	mr_room_close(room);
	free(path);
	return status;
}
