/* SPDX-License-Identifier: MIT */
/* pairs_work.c - work under a lease, of an inbox and of a queue; leases that end; lives that end. */
#include "race.h"

#include <stdio.h>
#include <string.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define BOB "--as", "bob"
#define CAROL "--as", "carol"
#define THREE "say alice bob m1; say alice bob m2; say carol bob m3\n"
/* A claim on m1 by nobody who lives, whose time is over; nobody has looked since. */
#define CLAIM(lease, from)                                                                                             \
	"\"$BIN\" --as bob recv " from " --lease " lease " --json </dev/null 2>>log >claim\n"                          \
	"sed 's/.*\"token\":\"//; s/\".*//' claim >token\n"
#define OVER "sleep 1.1\n"
#define QUEUE "mr --as alice queue create work --attempts 5; say alice queue:work m1; say alice queue:work m2\n"
#define QUEUE_OF_ONE                                                                                                   \
	"mr --as alice queue create work --max-claims 1 --attempts 5; say alice queue:work m1; say alice queue:work "  \
	"m2\n"

static bool
is_over(int exit_code) /* a claim that is over: refused, not found, or nothing to take */
{
	return exit_code == 4 || exit_code == 5;
}

/* What an accepted recv printed is held under its token, and the token is good for one `done`. */
static void
check_claim(struct world *w, int exit_code, const char *out)
{
	char token[40] = "", subject[40] = "";

	if (exit_code != 0)
		return;
	if (!out_value(out, "token", token, sizeof(token)) || !out_value(out, "subject", subject, sizeof(subject))) {
		violate(w, "recv exited with 0 and printed no claim");
		return;
	}
	int done = world_run(w, ARGS(BOB, "done", token));
	if (done != 0)
		violate(w, "the claim on '%s' was given out, and done says %d", subject, done);
	int again = world_run(w, ARGS(BOB, "done", token));
	if (again == 0)
		violate(w, "done was accepted twice for '%s'", subject);
}

static void
check_two_recvs(struct world *w)
{
	char a[40] = "", b[40] = "";

	if (w->exit_a == 0 && w->exit_b == 0 && out_value(w->out_a, "id", a, sizeof(a)) &&
	    out_value(w->out_b, "id", b, sizeof(b)) && strcmp(a, b) == 0)
		violate(w, "two were given the same work");
	if (w->exit_a > 0 || w->exit_b > 0)
		violate(w, "exits %d and %d, and there was work for both", w->exit_a, w->exit_b);
	check_claim(w, w->exit_a, w->out_a);
	check_claim(w, w->exit_b, w->out_b);
}

static void
check_one_recv(struct world *w)
{
	if (w->exit_a == 0 && w->exit_b == 0)
		violate(w, "two were given the same work");
	if (w->exit_a > 0 && w->exit_b > 0)
		violate(w, "nobody was given the work: %d and %d", w->exit_a, w->exit_b);
	check_claim(w, w->exit_a, w->out_a);
	check_claim(w, w->exit_b, w->out_b);
}

static void
check_recv_drain(struct world *w)
{
	char subject[40] = "";

	if ((w->exit_a > 0 && w->exit_a != 3) || (w->exit_b > 0 && w->exit_b != 3))
		violate(w, "exits %d and %d", w->exit_a, w->exit_b);
	if (w->exit_a == 0 && out_value(w->out_a, "subject", subject, sizeof(subject)) &&
	    shown_by(w->out_b, subject) > 0)
		violate(w, "'%s' was given out as work and shown by a drain", subject);
	check_claim(w, w->exit_a, w->out_a);
}

/* One settles the claim, and only one; whatever the other says, it is done once. */
static void
check_two_dones(struct world *w)
{
	const struct found *m1 = the_copy(w, "bob", "m1");
	bool accepted = w->exit_a == 0 || w->exit_b == 0;

	if (w->exit_a == 0 && w->exit_b == 0)
		violate(w, "done was accepted twice");
	if (w->exit_a > 0 && w->exit_b > 0)
		violate(w, "neither could finish it: %d and %d", w->exit_a, w->exit_b);
	if (m1 && accepted && !(m1->flags & MR_ACKED))
		violate(w, "done was accepted, and it is not done");
}

static void
check_release(struct world *w)
{
	const struct found *m1 = the_copy(w, "bob", "m1");

	if ((w->exit_a > 0 && !is_over(w->exit_a)) || w->exit_b > 0)
		violate(w, "exits %d and %d", w->exit_a, w->exit_b);
	if (m1 && (consumed(m1) || m1->folder != MR_INBOX) && w->exit_a != -1)
		violate(w, "released and not back in the inbox");
}

/* A recv beside somebody who only looks, which puts back what is over. */
static void
check_recv_expire(struct world *w)
{
	if (w->exit_a > 0)
		violate(w, "recv exited with %d, and there was work", w->exit_a);
	if (w->exit_b > 0)
		violate(w, "looking exited with %d", w->exit_b);
	check_claim(w, w->exit_a, w->out_a);
}

/* A: done with a token whose time is over. B: recv. Never may both have m1. */
static void
check_done_recv(struct world *w)
{
	char subject[40] = "";
	bool given =
	    w->exit_b == 0 && out_value(w->out_b, "subject", subject, sizeof(subject)) && strcmp(subject, "m1") == 0;
	const struct found *m1 = the_copy(w, "bob", "m1");

	if (w->exit_a == 0 && given)
		violate(w, "done was accepted, and the work was given to another");
	if (w->exit_a > 0 && !is_over(w->exit_a))
		violate(w, "done exited with %d", w->exit_a);
	if (w->exit_a == 0 && m1 && !(m1->flags & MR_ACKED))
		violate(w, "done was accepted, and it is not done");
	if (w->exit_a > 0 && m1 && (m1->flags & MR_ACKED))
		violate(w, "done was refused, and it is done");
	check_claim(w, w->exit_b, w->out_b);
}

/* A: done. B: a look, which puts back what is over; or a new life. */
static void
check_done_expire(struct world *w)
{
	const struct found *m1 = the_copy(w, "bob", "m1");

	if (w->exit_a > 0 && !is_over(w->exit_a))
		violate(w, "done exited with %d", w->exit_a);
	if (w->exit_b > 0)
		violate(w, "B exited with %d", w->exit_b);
	if (w->exit_a == 0 && m1 && !(m1->flags & MR_ACKED))
		violate(w, "done was accepted, and it is not done");
	if (w->exit_a > 0 && m1 && ((m1->flags & MR_ACKED) || m1->folder == MR_ARCHIVE))
		violate(w, "done was refused, and it is done");
	if (w->exit_a > 0 && w->exit_b == 0 && m1 && m1->folder != MR_INBOX)
		violate(w, "neither done nor back in the inbox");
}

/* A shows mail, B begins a new life of him: what A said it had read is read; else it waits for the new life. */
static void
check_takeover(struct world *w)
{
	const struct found *m1 = the_copy(w, "bob", "m1");

	if (w->exit_b > 0)
		violate(w, "takeover exited with %d", w->exit_b);
	if (w->exit_a == 0 && m1 && !consumed(m1))
		violate(w, "read with exit 0 and unread");
	if (w->exit_b == 0 && m1 && m1->folder == MR_HELD)
		violate(w, "still held by a life that is over");
}

static void
check_takeover_recv(struct world *w)
{
	const struct found *m1 = the_copy(w, "bob", "m1");

	if (w->exit_b > 0)
		violate(w, "takeover exited with %d", w->exit_b);
	/* A claim of the old life is given back by the takeover. One that came back later, when the mailboxes were
	 * looked at, was made when that life was over. */
	if (w->exit_a == 0 && w->exit_b == 0 &&
	    world_run(w,
		ARGS("!", "sh", "-c", "find .mailroom/agents/bob/new -name '*,A=*' -cnewer ../out.b | grep -q .")) == 0)
		violate(w, "work was given to a life that was over");
	if (w->exit_a == 0 && w->exit_b == 0 && m1 && m1->folder == MR_HELD) {
		/* of the new life, then: the old one's would be back */
		int done = world_run(w, ARGS(BOB, "done", m1->token));
		if (done != 0)
			violate(w, "a claim that nobody can finish: %d", done);
	}
}

/* Nobody else may have it, and somebody has it: prints the state of the whole queue for counting. */
static void
check_queue(struct world *w)
{
	int shown =
	    world_run(w, ARGS("!", "sh", "-c", "[ $(find .mailroom/queues/work -name '*.mr*' -type f | wc -l) = 2 ]"));

	if (shown != 0)
		violate(w, "two messages of the queue are not two files");
}

static void
check_queue_recvs(struct world *w)
{
	check_queue(w);
	char a[40] = "", b[40] = "";
	if (w->exit_a == 0 && w->exit_b == 0 && out_value(w->out_a, "id", a, sizeof(a)) &&
	    out_value(w->out_b, "id", b, sizeof(b)) && strcmp(a, b) == 0)
		violate(w, "two were given the same work");
	if (w->exit_a > 0 || w->exit_b > 0)
		violate(w, "exits %d and %d, and there was work for both", w->exit_a, w->exit_b);
}

static void
check_one_claim(struct world *w)
{
	check_queue(w);
	if (w->exit_a == 0 && w->exit_b == 0)
		violate(w, "two claims at once, and the limit is one");
	if (w->exit_a > 0 && w->exit_b > 0)
		violate(w, "neither got work: %d and %d", w->exit_a, w->exit_b);
}

static void
check_queue_done(struct world *w)
{
	char subject[40] = "";
	bool given =
	    w->exit_b == 0 && out_value(w->out_b, "subject", subject, sizeof(subject)) && strcmp(subject, "m1") == 0;

	check_queue(w);
	if (w->exit_a == 0 && given)
		violate(w, "done was accepted, and the work was given to another");
	if (w->exit_a > 0 && !is_over(w->exit_a))
		violate(w, "done exited with %d", w->exit_a);
	if (w->exit_b > 0)
		violate(w, "recv exited with %d", w->exit_b);
}

#define RECV ARGS(BOB, "recv", "--json")
const struct pair pairs_work[] = {
	{ "recv x recv", THREE, RECV, RECV, "bob", NULL, "m1 m2 m3", true, check_two_recvs },
	{ "recv x recv, one message", "say alice bob m1\n", RECV, RECV, "bob", NULL, "m1", true, check_one_recv },
	{ "recv x drain", THREE, RECV, ARGS(BOB, "drain"), "bob", NULL, "m1 m2 m3", true, check_recv_drain },
	{ "recv x expire", THREE CLAIM("1s", "") OVER, RECV, ARGS(BOB, "inbox"), "bob", NULL, "m1 m2 m3", true,
	    check_recv_expire },
	{ "recv x expire and recv", THREE CLAIM("1s", "") OVER, RECV, RECV, "bob", NULL, "m1 m2 m3", true,
	    check_two_recvs },
	{ "done x expire", THREE CLAIM("1s", "") OVER, ARGS(BOB, "done", "@token"), ARGS(BOB, "inbox"), "bob", NULL,
	    "m1 m2 m3", true, check_done_expire },
	{ "done x expire and recv", THREE CLAIM("1s", "") OVER, ARGS(BOB, "done", "@token"), RECV, "bob", NULL,
	    "m1 m2 m3", true, check_done_recv },
	{ "done x done", THREE CLAIM("1h", ""), ARGS(BOB, "done", "@token"), ARGS(BOB, "done", "@token"), "bob", NULL,
	    "m1 m2 m3", true, check_two_dones },
	{ "release x expire", THREE CLAIM("1s", "") OVER, ARGS(BOB, "release", "@token"), ARGS(BOB, "inbox"), "bob",
	    NULL, "m1 m2 m3", true, check_release },
	{ "read x takeover", THREE, ARGS(BOB, "read", "@m1"), ARGS("takeover", "bob"), "bob", NULL, "m1 m2 m3", false,
	    check_takeover },
	{ "drain x takeover", THREE, ARGS(BOB, "drain"), ARGS("takeover", "bob"), "bob", NULL, "m1 m2 m3", false,
	    check_takeover },
	{ "recv x takeover", THREE, RECV, ARGS("takeover", "bob"), "bob", NULL, "m1 m2 m3", true, check_takeover_recv },
	{ "done x takeover", THREE CLAIM("1h", ""), ARGS(BOB, "done", "@token"), ARGS("takeover", "bob"), "bob", NULL,
	    "m1 m2 m3", true, check_done_expire },
	{ "queue: recv x recv", QUEUE, ARGS(BOB, "recv", "queue:work", "--json"),
	    ARGS(CAROL, "recv", "queue:work", "--json"), "bob", NULL, "", true, check_queue_recvs },
	{ "queue of one claim: recv x recv", QUEUE_OF_ONE, ARGS(BOB, "recv", "queue:work", "--json"),
	    ARGS(CAROL, "recv", "queue:work", "--json"), "bob", NULL, "", true, check_one_claim },
	{ "queue: recv x expire and recv", QUEUE CLAIM("1s", "queue:work") OVER,
	    ARGS(BOB, "recv", "queue:work", "--json"), ARGS(CAROL, "recv", "queue:work", "--json"), "bob", NULL, "",
	    true, check_queue_recvs },
	{ "queue: done x expire and recv", QUEUE CLAIM("1s", "queue:work") OVER, ARGS(BOB, "done", "@token"),
	    ARGS(CAROL, "recv", "queue:work", "--json"), "bob", NULL, "", true, check_queue_done },
};
const size_t pairs_work_n = sizeof(pairs_work) / sizeof(pairs_work[0]);
