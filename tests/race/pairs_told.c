/* SPDX-License-Identifier: MIT */
/*
 * pairs_told.c - what hooks tell an agent while mail comes and goes: mail that was accepted is told by the hook that
 * runs meanwhile, or by the next one.
 */
#include "race.h"

#include <stdio.h>
#include <string.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define ALICE "--as", "alice"
#define BOB "--as", "bob"
#define CAROL "--as", "carol"
#define CHECK ARGS(BOB, "check", "--inject")
#define PROMPT ARGS("!", "sh", "-c", "exec \"$BIN\" hook claude-code <prompt")
#define SEND ARGS(ALICE, "send", "bob", "-s", "n1", "-m", "n1: whole")
#define FAN_OUT ARGS(ALICE, "send", "carol", "bob", "dave", "-s", "n1", "-m", "n1: whole")

/* bob is a session that was told of all there was; every folder rests for a minute, as it does between two prompts. */
#define SESSION                                                                                                        \
	"for e in SessionStart UserPromptSubmit; do echo \"{\\\"session_id\\\":\\\"s1\\\",\\\"cwd\\\":\\\"$PWD\\\","   \
	"\\\"hook_event_name\\\":\\\"$e\\\",\\\"source\\\":\\\"startup\\\",\\\"prompt\\\":\\\"go on\\\"}\" >$e; "      \
	"done\n"                                                                                                       \
	"mv UserPromptSubmit prompt; MAILROOM_AGENT=bob \"$BIN\" hook claude-code <SessionStart >>log 2>&1\n"          \
	"mr --as carol send bob -s m0 -m 'm0: whole'; mr --as bob drain\n"
#define AT_REST                                                                                                        \
	"cat >each <<'END_OF_EACH'\n"                                                                                  \
	"cd .mailroom; touch -c -d '1 minute ago' agents/bob/new agents/bob/cur holds spool; cd ..\n"
#define LOOKED "\"$BIN\" --as bob check --inject\n"
#define WITH_MAIL "\"$BIN\" --as carol send bob -s m1 -m 'm1: whole' >m1\n"
#define END "END_OF_EACH\n"

static bool
told(const char *out, const char *tag)
{
	return strstr(out, tag) != NULL;
}

static bool
told_next(struct world *w, const char *tag)
{
	char line[80];

	(void)snprintf(line, sizeof(line), "\"$BIN\" --as bob check --inject | grep -q %s", tag);
	return world_run(w, ARGS("!", "sh", "-c", line)) == 0;
}

/* Told by the hook that was under way, or by the next; twice only if the first was killed. */
static void
check_told(struct world *w, const char *tag, bool next)
{
	bool now = told(w->out_a, tag);

	if (!now && !next)
		violate(w, "'%s' is unread and no hook tells of it", tag);
	if (now && next && w->exit_a == 0)
		violate(w, "'%s' was told twice", tag);
}

static void
check_hook_send(struct world *w)
{
	bool next = told_next(w, "n1");

	world_look_at(w, "bob");
	size_t n = copies(w, "bob", "n1");
	if (n > 1 || (w->exit_b == 0 && n != 1) || w->exit_b > 0)
		violate(w, "bob has %zu copies, and the sender exited with %d", n, w->exit_b);
	/* A sender of several that was killed: the next command completes it, then tells of it. */
	if (n == 1)
		check_told(w, "n1", next);
	if (w->exit_a > 0)
		violate(w, "a hook exited with %d", w->exit_a);
}

static void
check_drained(struct world *w, bool next)
{
	world_look_at(w, "bob");
	const struct found *m1 = the_copy(w, "bob", "m1");
	if (copies(w, "bob", "m1") != 1)
		violate(w, "bob has %zu copies", copies(w, "bob", "m1"));
	else if (!consumed(m1))
		check_told(w, "m1", next);
	else if (shown_by(w->out_b, "m1") == 0)
		violate(w, "'m1' was consumed unseen");
	if (w->exit_a > 0 || w->exit_b > 0)
		violate(w, "exits %d and %d", w->exit_a, w->exit_b);
}

/* bob, or another of his processes, is being shown mail, and is killed at that: it is unread again. */
static void
check_hook_drain(struct world *w)
{
	check_drained(w, told_next(w, "m1"));
}

/* A hook of carol is no reason for bob's to believe that nobody holds anything. */
static void
check_other_hook(struct world *w)
{
	for (int turn = 0; turn < 2; turn++) { /* the first may tidy up, the second may note that there is nothing */
		(void)world_run(w, ARGS("!", "touch", "-d", "1 minute ago", ".mailroom/holds"));
		(void)world_run(w, ARGS(CAROL, "check", "--inject"));
	}
	check_drained(w, told_next(w, "m1"));
}

static void
check_two_hooks(struct world *w)
{
	unsigned n = (unsigned)told(w->out_a, "m1") + (unsigned)told(w->out_b, "m1");
	bool ended = w->exit_a != -1 && w->exit_b != -1;

	if (ended && n != 1)
		violate(w, "two hooks of one session told of it %u times", n);
	if (n == 0 && !told_next(w, "m1"))
		violate(w, "no hook tells of it");
	if (w->exit_a > 0 || w->exit_b > 0)
		violate(w, "exits %d and %d", w->exit_a, w->exit_b);
}

const struct pair pairs_told[] = {
	{ "check x send", SESSION AT_REST END, CHECK, SEND, "", NULL, "", false, check_hook_send },
	{ "check that knows of nothing x send", SESSION AT_REST LOOKED END, CHECK, SEND, "", NULL, "", false,
	    check_hook_send },
	{ "check that knows of nothing x fan-out", SESSION AT_REST LOOKED END, CHECK, FAN_OUT, "", NULL, "", false,
	    check_hook_send },
	{ "check that knows of no holds x drain", SESSION AT_REST LOOKED WITH_MAIL END, CHECK, ARGS(BOB, "drain"), "",
	    NULL, "", false, check_hook_drain },
	{ "check of another x drain", SESSION AT_REST LOOKED WITH_MAIL END, ARGS(CAROL, "check", "--inject"),
	    ARGS(BOB, "drain"), "", NULL, "", false, check_other_hook },
	{ "hook that knows of nothing x send", SESSION AT_REST LOOKED END, PROMPT, SEND, "", NULL, "", false,
	    check_hook_send },
	{ "hook x hook", SESSION AT_REST LOOKED WITH_MAIL END, PROMPT, PROMPT, "bob", NULL, "m1", false,
	    check_two_hooks },
	{ "check x check, a nudge", SESSION "mr --as alice nudge bob --mode queue -m 'm1: whole'\n", CHECK, CHECK,
	    "bob", NULL, "", false, check_two_hooks },
};
const size_t pairs_told_n = sizeof(pairs_told) / sizeof(pairs_told[0]);
