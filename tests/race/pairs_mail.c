/* SPDX-License-Identifier: MIT */
/* pairs_mail.c - sending, reading, archiving, other programs' hands in the same Maildir, and fan-outs to be completed.
 */
#include "race.h"

#include <stdio.h>
#include <string.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define THREE "say alice bob m1; say alice bob m2; say carol bob m3\n"

static bool
ended(const struct world *w) /* neither was killed */
{
	return w->exit_a != -1 && w->exit_b != -1;
}

/* A send: accepted is there, killed is there once or not at all, refused is nowhere. */
static void
check_send(struct world *w, int exit_code, const char *agent, const char *tag)
{
	size_t n = copies(w, agent, tag);

	if (n > 1 || (exit_code == 0 && n != 1) || (exit_code > 0 && exit_code != 6 && n != 0))
		violate(w, "%zu copies of '%s' at %s, and its sender exited with %d", n, tag, agent, exit_code);
	if (exit_code != 0 && exit_code != -1)
		violate(w, "the sender of '%s' exited with %d", tag, exit_code);
}

static void
check_two_sends(struct world *w)
{
	check_send(w, w->exit_a, "bob", "n1");
	check_send(w, w->exit_b, "bob", "n2");
}

static void
check_two_fan_outs(struct world *w)
{
	for (size_t i = 0; i < 2; i++) {
		static const char *const to[] = { "bob", "carol", "dave", NULL };
		const char *tag = i == 0 ? "n1" : "n2";
		size_t have = 0;
		for (size_t k = 0; to[k]; k++) {
			check_send(w, i == 0 ? w->exit_a : w->exit_b, to[k], tag);
			have += copies(w, to[k], tag);
		}
		if (have != 0 && have != 3)
			violate(w, "%zu of 3 have '%s'", have, tag);
	}
}

/* Also with a recipient who comes to complete it, as any command would a dead sender's, and moves his copy. */
static void
check_fan_out_drain(struct world *w)
{
	size_t have = 0;

	for (const char *const *name = ARGS("bob", "carol", "dave"); *name; name++) {
		check_send(w, w->exit_a, *name, "n1");
		have += copies(w, *name, "n1");
	}
	if (have != 0 && have != 3 && w->exit_a != -1)
		violate(w, "%zu of 3 have 'n1'", have);
	const struct found *n1 = the_copy(w, "bob", "n1");
	if (n1 && consumed(n1) && shown_by(w->out_b, "n1") == 0)
		violate(w, "'n1' was consumed unseen");
	if (w->exit_b > 0 && w->exit_b != 3)
		violate(w, "drain exited with %d", w->exit_b);
}

static void
check_key(struct world *w)
{
	static const char *const to[] = { "bob", "carol", NULL };

	for (size_t k = 0; to[k]; k++)
		if (copies(w, to[k], "n1") > 1 || ((w->exit_a == 0 || w->exit_b == 0) && copies(w, to[k], "n1") != 1))
			violate(w, "%zu copies at %s of what was sent with one key", copies(w, to[k], "n1"), to[k]);
	if (w->exit_a == 0 && w->exit_b == 0 && strcmp(w->out_a, w->out_b) != 0)
		violate(w, "one key has two ids");
	if (w->exit_a > 0 || w->exit_b > 0)
		violate(w, "exits %d and %d", w->exit_a, w->exit_b);
}

/* What was shown with exit 0 is marked; but when another was showing it, that one marks it, or, killed, gives it back.
 */
static void
check_read(struct world *w, int exit_code, const char *tag)
{
	const struct found *f = the_copy(w, "bob", tag);

	if (exit_code == 0 && f && !consumed(f))
		violate(w, "'%s' was read with exit 0 and is unread", tag);
}

static void
check_send_read(struct world *w)
{
	check_send(w, w->exit_a, "bob", "n1");
	check_read(w, w->exit_b, "m1");
	if (w->exit_b > 0)
		violate(w, "read exited with %d", w->exit_b);
}

static void
check_send_drain(struct world *w)
{
	check_send(w, w->exit_a, "bob", "n1");
	const struct found *n1 = the_copy(w, "bob", "n1");
	if (n1 && consumed(n1) != (shown_by(w->out_b, "n1") > 0) && w->exit_b == 0)
		violate(
		    w, "'n1' was shown %u times and is %s", shown_by(w->out_b, "n1"), consumed(n1) ? "read" : "unread");
	for (const char *const *tag = ARGS("m1", "m2", "m3"); *tag; tag++) {
		check_read(w, w->exit_b, *tag);
		if (w->exit_b == 0 && shown_by(w->out_b, *tag) != 1)
			violate(w, "'%s' was there before and shown %u times", *tag, shown_by(w->out_b, *tag));
	}
}

static void
check_read_archive(struct world *w)
{
	const struct found *m1 = the_copy(w, "bob", "m1");

	check_read(w, w->exit_a, "m1");
	if (w->exit_b == 0 && m1 && m1->folder != MR_ARCHIVE)
		violate(w, "archived with exit 0, and it is not in the archive");
	if (w->exit_a > 0 && w->exit_b > 0)
		violate(w, "both failed: %d and %d", w->exit_a, w->exit_b);
}

static void
check_two_reads(struct world *w)
{
	if (ended(w)) {
		check_read(w, w->exit_a, "m1");
		check_read(w, w->exit_b, "m1");
	}
	if (w->exit_a > 0 && w->exit_b > 0)
		violate(w, "both failed: %d and %d", w->exit_a, w->exit_b);
}

static void
check_two_drains(struct world *w)
{
	for (const char *const *tag = ARGS("m1", "m2", "m3"); *tag; tag++) {
		unsigned n = shown_by(w->out_a, *tag) + shown_by(w->out_b, *tag);
		const struct found *f = the_copy(w, "bob", *tag);
		if (ended(w) && n != 1)
			violate(w, "'%s' was shown %u times by two drains", *tag, n);
		if (ended(w) && f && !consumed(f))
			violate(w, "'%s' is unread after two drains", *tag);
	}
	if (w->exit_a > 0 && w->exit_a != 3)
		violate(w, "a drain exited with %d", w->exit_a);
	if (w->exit_b > 0 && w->exit_b != 3)
		violate(w, "a drain exited with %d", w->exit_b);
}

static void
check_nothing_more(struct world *w)
{
	(void)w; /* each once, whole, none consumed unseen: that is looked at for every pair */
}

/* Mail that another program moves from new/ to cur/ is unread as before: a drain shows all of it. */
static void
check_moved(struct world *w)
{
	for (const char *const *tag = ARGS("m1", "m2", "m3"); *tag; tag++)
		if (w->exit_a == 0 && shown_by(w->out_a, *tag) != 1)
			violate(w, "'%s' was there before and shown %u times", *tag, shown_by(w->out_a, *tag));
	if (w->exit_a > 0)
		violate(w, "drain exited with %d", w->exit_a);
}

/* The flag that mflag was told to set and said it had set is there. */
static void
check_flagged(struct world *w)
{
	const struct found *m1 = the_copy(w, "bob", "m1");

	check_read(w, w->exit_a, "m1");
	if (w->exit_a > 0)
		violate(w, "read exited with %d", w->exit_a);
	if (w->exit_b == 0 && strstr(w->out_b, ":2,") && m1 && !(m1->flags & MR_PINNED) && strstr(w->out_b, "F\n"))
		violate(w, "the flag of mflag is lost");
}

/* Each line that was answered with an id is there once, before and after; the others once or not at all. */
static void
check_batch(struct world *w)
{
	for (unsigned i = 1; i <= 3; i++) {
		char tag[8], answer[24];
		(void)snprintf(tag, sizeof(tag), "n%u", i);
		(void)snprintf(answer, sizeof(answer), "{\"line\":%u,\"id\"", i);
		size_t n = copies(w, "bob", tag);
		bool answered = strstr(w->out_a, answer) != NULL;
		if (n > 1 || (answered && n != 1) || (w->exit_a == 0 && !answered))
			violate(w, "line %u was %s and bob has %zu", i, answered ? "accepted" : "not answered", n);
		const struct found *f = the_copy(w, "bob", tag);
		if (f && consumed(f) && shown_by(w->out_b, tag) == 0)
			violate(w, "'%s' was consumed unseen", tag);
	}
	if (w->exit_a > 0 || (w->exit_b > 0 && w->exit_b != 3))
		violate(w, "exits %d and %d", w->exit_a, w->exit_b);
}

static bool
answered_id(const char *out, unsigned line, char ret[40])
{
	char answer[32];

	(void)snprintf(answer, sizeof(answer), "{\"line\":%u,\"id\":\"", line);
	const char *at = strstr(out, answer);
	(void)snprintf(ret, 40, "%.26s", at ? at + strlen(answer) : "");
	return at != NULL;
}

/* One key is one message, whichever of the two brought it, and both are told its id. */
static void
check_two_batches(struct world *w)
{
	for (unsigned i = 1; i <= 3; i++) {
		char tag[8], a[40], b[40];
		(void)snprintf(tag, sizeof(tag), "n%u", i);
		size_t n = copies(w, "bob", tag);
		bool by_a = answered_id(w->out_a, i, a), by_b = answered_id(w->out_b, i, b);
		if (n > 1 || ((by_a || by_b) && n != 1))
			violate(w, "bob has %zu of line %u with one key", n, i);
		if (by_a && by_b && strcmp(a, b) != 0)
			violate(w, "one key has two ids");
		if ((w->exit_a == 0 && !by_a) || (w->exit_b == 0 && !by_b))
			violate(w, "line %u was not answered", i);
	}
	if (w->exit_a > 0 || w->exit_b > 0)
		violate(w, "exits %d and %d", w->exit_a, w->exit_b);
}

/* The sender is dead. One process completes its delivery, another moves the copy: neither makes a second one. */
static void
check_recovery(struct world *w)
{
	for (const char *const *name = ARGS("bob", "carol", "dave"); *name; name++)
		if (copies(w, *name, "f1") != 1)
			violate(
			    w, "%s has %zu copies of a fan-out that others completed", *name, copies(w, *name, "f1"));
	if (w->exit_a > 0 && w->exit_a != 3)
		violate(w, "A exited with %d", w->exit_a);
}

/* A send to three that dies when bob has his copy and dave has none. */
#define HALF_DONE                                                                                                      \
	"cp -a .mailroom clean; n=10\n"                                                                                \
	"while :; do rm -rf .mailroom; cp -a clean .mailroom\n"                                                        \
	"  (MAILROOM_FAULT=kill-after:$n \"$DEVBIN\" --room . --as alice send bob carol dave -s f1 -m 'f1: whole' "    \
	"</dev/null) "                                                                                                 \
	">>log 2>&1 && exit 1\n"                                                                                       \
	"  [ -n \"$(ls .mailroom/agents/bob/new)\" ] && [ -z \"$(ls .mailroom/agents/dave/new)\" ] && break\n"         \
	"  n=$((n + 1)); [ $n -lt 400 ]\n"                                                                             \
	"done; rm -rf clean\n"                                                                                         \
	"ls .mailroom/agents/bob/new | sed 's/^[0-9]*\\.//; s/\\.mr.*//' >f1\n"

#define LINES                                                                                                          \
	"for t in n1 n2 n3; do echo \"{\\\"to\\\":\\\"bob\\\",\\\"subject\\\":\\\"$t\\\",\\\"body\\\":\\\"$t: "        \
	"whole\\\"}\"; done >lines\n"
#define KEYED_LINES LINES "sed -i 's/{\\(.*\\(n[0-9]\\): whole.*\\)}/{\\1,\"key\":\"\\2\"}/' lines\n"
#define BATCH ARGS("!", "sh", "-c", "exec \"$BIN\" --as alice send --batch <lines")
#define ALICE "--as", "alice"
#define BOB "--as", "bob"
#define CAROL "--as", "carol"
#define DAVE "--as", "dave"

const struct pair pairs_mail[] = {
	{ "send x send", "", ARGS(ALICE, "send", "bob", "-s", "n1", "-m", "n1: whole"),
	    ARGS(CAROL, "send", "bob", "-s", "n2", "-m", "n2: whole"), "bob", NULL, "", false, check_two_sends },
	{ "fan-out x fan-out", "", ARGS(ALICE, "send", "bob", "carol", "dave", "-s", "n1", "-m", "n1: whole"),
	    ARGS(CAROL, "send", "dave", "carol", "bob", "-s", "n2", "-m", "n2: whole"), "bob carol dave", NULL, "",
	    false, check_two_fan_outs },
	{ "send x send, one key", "", ARGS(ALICE, "send", "bob", "carol", "--key", "k", "-s", "n1", "-m", "n1: whole"),
	    ARGS(ALICE, "send", "bob", "carol", "--key", "k", "-s", "n1", "-m", "n1: whole"), "bob carol", NULL, "",
	    false, check_key },
	{ "send x read", THREE, ARGS(ALICE, "send", "bob", "-s", "n1", "-m", "n1: whole"), ARGS(BOB, "read", "@m1"),
	    "bob", NULL, "m1 m2 m3", false, check_send_read },
	{ "send x drain", THREE, ARGS(ALICE, "send", "bob", "-s", "n1", "-m", "n1: whole"), ARGS(BOB, "drain"), "bob",
	    NULL, "m1 m2 m3", false, check_send_drain },
	{ "read x archive", THREE, ARGS(BOB, "read", "@m1"), ARGS(BOB, "archive", "@m1", "--include-unread"), "bob",
	    NULL, "m1 m2 m3", true, check_read_archive },
	{ "read x read", THREE, ARGS(BOB, "read", "@m1"), ARGS(BOB, "read", "@m1"), "bob", NULL, "m1 m2 m3", false,
	    check_two_reads },
	{ "drain x drain", THREE, ARGS(BOB, "drain"), ARGS(BOB, "drain"), "bob", NULL, "m1 m2 m3", false,
	    check_two_drains },
	{ "drain x mark read", THREE, ARGS(BOB, "drain"), ARGS(BOB, "mark", "read", "--all"), "bob", NULL, "m1 m2 m3",
	    true, check_nothing_more },
	{ "mflag -F of mblaze x read",
	    THREE "minc .mailroom/agents/bob >>log; ls .mailroom/agents/bob/cur/*$(cat m1)* >path\n",
	    ARGS(BOB, "read", "@m1"), ARGS("!", "mflag", "-F", "@path"), "bob", NULL, "m1 m2 m3", false,
	    check_flagged },
	{ "mflag -S of mblaze x read",
	    THREE "minc .mailroom/agents/bob >>log; ls .mailroom/agents/bob/cur/*$(cat m1)* >path\n",
	    ARGS(BOB, "read", "@m1"), ARGS("!", "mflag", "-S", "@path"), "bob", NULL, "m1 m2 m3", true,
	    check_two_reads },
	{ "minc of mblaze x drain", THREE, ARGS(BOB, "drain"), ARGS("!", "minc", ".mailroom/agents/bob"), "bob", NULL,
	    "m1 m2 m3", false, check_moved },
	{ "fan-out recovery x archive", HALF_DONE, ARGS(ALICE, "inbox"),
	    ARGS(BOB, "archive", "@f1", "--include-unread"), "bob carol dave", NULL, "f1", true, check_recovery },
	{ "fan-out recovery x drain", HALF_DONE, ARGS(ALICE, "inbox"), ARGS(BOB, "drain"), "bob carol dave", NULL, "f1",
	    false, check_recovery },
	/* No lock is needed for these two alone: both link the same file to the same names, and when dave can move his
	 * copy its file in spool/ is gone. The lock of a record is for its living sender: "fan-out x drain" fails
	 * without it. */
	{ "fan-out recovery x recovery and drain", HALF_DONE, ARGS(ALICE, "inbox"), ARGS(DAVE, "drain"),
	    "bob carol dave", NULL, "f1", false, check_recovery },
	{ "fan-out x drain", "", ARGS(ALICE, "send", "bob", "carol", "dave", "-s", "n1", "-m", "n1: whole"),
	    ARGS(BOB, "drain"), "bob carol dave", NULL, "", false, check_fan_out_drain },
	{ "send --batch x drain", LINES "say carol bob m1\n", BATCH, ARGS(BOB, "drain"), "bob", NULL, "m1", false,
	    check_batch },
	{ "send --batch x recv", LINES, BATCH, ARGS(BOB, "recv"), "bob", NULL, "", false, check_batch },
	{ "send --batch x archive", LINES "say carol bob m1\n", BATCH, ARGS(BOB, "archive", "@m1", "--include-unread"),
	    "bob", NULL, "m1", true, check_batch },
	{ "send --batch x send --batch, one key each", KEYED_LINES, BATCH, BATCH, "bob", NULL, "", false,
	    check_two_batches },
};
const size_t pairs_mail_n = sizeof(pairs_mail) / sizeof(pairs_mail[0]);
