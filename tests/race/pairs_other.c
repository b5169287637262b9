/* SPDX-License-Identifier: MIT */
/* pairs_other.c - carriers between rooms, names, groups, channels, and the rooms of other programs. */
#include "race.h"

#include <stdio.h>
#include <string.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define ALICE "--as", "alice"
#define BOB "--as", "bob"
#define CAROL "--as", "carol"

/* bob's mail has to wait because somebody has his name over there; then it may go, and two carriers come. */
#define WAITING                                                                                                        \
	"for t in m1 m2; do mr --as bob send carol@blue -s $t -m \"$t: whole\"; done\n"                                \
	"mr link name blue bob bob2\n"
#define BLUE                                                                                                           \
	"mkdir blue; mr init --name blue ./blue; mr --room ./blue register carol; mr --room ./blue register bob\n"     \
	"mr link blue ./blue\n"
#define TEAM                                                                                                           \
	"mkdir -p teams/blue/inboxes; echo '[]' >teams/blue/inboxes/carol.json; echo '[]' "                            \
	">teams/blue/inboxes/bob.json\n"                                                                               \
	"mr link blue \"teams:$PWD/teams/blue\"\n"

static void
check_carried_out(struct world *w)
{
	for (const char *const *tag = ARGS("m1", "m2"); *tag; tag++) {
		size_t n = copies(w, "there/carol", *tag);
		bool one_ended = w->exit_a == 0 || w->exit_b == 0;
		if (n > 1 || (n == 0 && one_ended && w->exit_a != -1 && w->exit_b != -1))
			violate(w, "'%s' arrived %zu times", *tag, n);
	}
	if (w->exit_a > 0 || w->exit_b > 0)
		violate(w, "exits %d and %d", w->exit_a, w->exit_b);
	/* after whatever happened: the next carrier completes it */
	if (world_run(w, ARGS("carry")) != 0)
		violate(w, "a later carry fails");
	w->found_n = 0;
	world_look(w);
	for (const char *const *tag = ARGS("m1", "m2"); *tag; tag++)
		if (copies(w, "there/carol", *tag) != 1)
			violate(w, "'%s' is there %zu times after a later carry", *tag, copies(w, "there/carol", *tag));
}

static void
check_carried_in(struct world *w)
{
	if (world_run(w, ARGS("carry")) != 0)
		violate(w, "a later carry fails");
	w->found_n = 0;
	world_look(w);
	if (copies(w, "alice", "m1") != 1)
		violate(w, "the answer arrived %zu times", copies(w, "alice", "m1"));
	if (w->exit_a > 0 || w->exit_b > 0)
		violate(w, "exits %d and %d", w->exit_a, w->exit_b);
}

static void
check_one_name(struct world *w)
{
	if (w->exit_a == 0 && w->exit_b == 0)
		violate(w, "one name was given to two");
	if (w->exit_a > 0 && w->exit_b > 0)
		violate(w, "nobody got the name: %d and %d", w->exit_a, w->exit_b);
}

static void
check_members(struct world *w)
{
	static const char *const who[] = { "carol", "dave" };

	for (size_t i = 0; i < 2; i++) {
		char test[120];
		(void)snprintf(test, sizeof(test), "grep -q '^Member: %s$' .mailroom/groups/team", who[i]);
		if ((i == 0 ? w->exit_a : w->exit_b) == 0 && world_run(w, ARGS("!", "sh", "-c", test)) != 0)
			violate(w, "%s was added with exit 0 and is no member", who[i]);
	}
	if (w->exit_a > 0 || w->exit_b > 0)
		violate(w, "exits %d and %d", w->exit_a, w->exit_b);
}

static void
check_posts(struct world *w)
{
	int rc = world_run(w, ARGS("!", "sh", "-c",
				  "n=$(ls .mailroom/channels/news/posts | sort -n | uniq | wc -l); "
				  "[ $(ls .mailroom/channels/news/posts | wc -l) = $n ]"));

	if (rc != 0)
		violate(w, "a number was used twice");
	for (size_t i = 0; i < 2; i++) {
		const char *tag = i == 0 ? "n1" : "n2";
		int code = i == 0 ? w->exit_a : w->exit_b;
		size_t n = copies(w, "bob", tag);
		if (n > 1 || (code == 0 && n != 1))
			violate(w, "the subscriber has '%s' %zu times", tag, n);
		if (code > 0)
			violate(w, "a post exited with %d", code);
	}
}

/* Accepted mail to an agent that is taken off the room is in his mailbox or among the dead letters. */
static void
check_pruned(struct world *w)
{
	/* Killed between the name and the mail, it leaves mail of nobody, which doctor finds. */
	if (w->exit_b == -1 && world_run(w, ARGS("doctor", "--fix")) == 0) {
		w->found_n = 0;
		world_look(w);
	}
	size_t n = copies(w, "bob", "n1") + copies(w, "dead", "n1");

	if (w->exit_a == 0 && n != 1)
		violate(w, "accepted, and there are %zu copies", n);
	if (n > 1)
		violate(w, "%zu copies", n);
	if (w->exit_a == 0 && w->exit_b == 0 && copies(w, "bob", "n1") > 0)
		violate(w, "accepted, and it lies where nobody looks any more");
	if (copies(w, "bob", "m1") + copies(w, "dead", "m1") != 1)
		violate(w, "%zu copies of what was there before", copies(w, "bob", "m1") + copies(w, "dead", "m1"));
}

/* To him and two others: his copy goes to the dead letters, also if its sender is killed and another command has to
 * complete it. */
static void
check_pruned_of_many(struct world *w)
{
	if (w->exit_a == -1 && world_run(w, ARGS(CAROL, "inbox")) == 0) {
		w->found_n = 0;
		world_look(w);
	}
	check_pruned(w);
	size_t his = copies(w, "bob", "n1") + copies(w, "dead", "n1"); /* what lies with nobody is not counted */

	for (size_t i = 0; i < 2; i++) {
		const char *who = i == 0 ? "carol" : "dave";
		size_t n = copies(w, who, "n1");
		if (n > 1 || (w->exit_a == 0 && n != 1) || (w->exit_a == -1 && n != his))
			violate(w, "%s has %zu copies, he %zu", who, n, his);
	}
}

/* ---- Rooms of other programs: carol's mailbox there ---- */

static void
check_there_sends(struct world *w)
{
	for (size_t i = 0; i < 2; i++) {
		const char *tag = i == 0 ? "n1" : "n2";
		int code = i == 0 ? w->exit_a : w->exit_b;
		size_t n = copies(w, "there/carol", tag);
		if (n > 1 || (code == 0 && n != 1) || code > 0)
			violate(w, "'%s' is there %zu times, exit %d", tag, n, code);
	}
	if (copies(w, "there/carol", "m1") != 1)
		violate(w, "what was there before is there %zu times", copies(w, "there/carol", "m1"));
}

static void
check_there_drains(struct world *w)
{
	bool ended = w->exit_a != -1 && w->exit_b != -1;

	for (const char *const *tag = ARGS("m1", "m2"); *tag; tag++) {
		unsigned shown = shown_by(w->out_a, *tag) + shown_by(w->out_b, *tag);
		if (shown == 0 && ended)
			violate(w, "'%s' was shown by neither", *tag);
		if (copies(w, "there/carol", *tag) > 1)
			violate(w, "'%s' is there %zu times", *tag, copies(w, "there/carol", *tag));
		const struct found *f = the_copy(w, "there/carol", *tag);
		if (f && consumed(f) && shown == 0)
			violate(w, "'%s' was consumed unseen", *tag);
	}
}

static void
check_there_send_read(struct world *w)
{
	size_t n = copies(w, "there/carol", "n1");

	if (n > 1 || (w->exit_a == 0 && n != 1 && shown_by(w->out_b, "n1") == 0) || w->exit_a > 0)
		violate(w, "'n1' is there %zu times, exit %d", n, w->exit_a);
	if (w->exit_b == 0 && shown_by(w->out_b, "m1") != 1)
		violate(w, "'m1' was shown %u times", shown_by(w->out_b, "m1"));
}

static void
check_registry(struct world *w)
{
	for (size_t i = 0; i < 2; i++) {
		const char *name = i == 0 ? "dave" : "erin";
		int code = i == 0 ? w->exit_a : w->exit_b;
		char line[80];
		(void)snprintf(line, sizeof(line), "\"$BIN\" --room \"$(cat place)\" who | grep -qw %s", name);
		if (code > 0 || (code == 0 && world_run(w, ARGS("!", "sh", "-c", line)) != 0))
			violate(w, "%s was registered with exit %d and is nobody", name, code);
	}
}

#define TWO "for t in m1 m2; do mr --room \"$place\" --as alice send carol -s $t -m \"$t: whole\"; done\n"
#define TEAMS_PLACE                                                                                                    \
	"mkdir -p teams/blue/inboxes; echo '[]' >teams/blue/inboxes/carol.json; place=teams:$PWD/teams/blue\n"
#define CHIPSET_PLACE "mkdir state; place=chipset:$PWD/state\n"
#define HANDOFF_PLACE                                                                                                  \
	"mkdir root; place=handoff:$PWD/root; for n in alice bob carol; do mr --room $place register $n; done\n"
#define KIND(kind, place, there)                                                                                       \
	{ kind ": send x send", place TWO "echo $place >place\n",                                                      \
		ARGS("--room", "@place", ALICE, "send", "carol", "-s", "n1", "-m", "n1: whole"),                       \
		ARGS("--room", "@place", BOB, "send", "carol", "-s", "n2", "-m", "n2: whole"), "", there, "", true,    \
		check_there_sends },                                                                                   \
	    { kind ": send x drain", place TWO "echo $place >place\n",                                                 \
		    ARGS("--room", "@place", ALICE, "send", "carol", "-s", "n1", "-m", "n1: whole"),                   \
		    ARGS("--room", "@place", CAROL, "drain", "--json"), "", there, "", true, check_there_send_read },  \
	{                                                                                                              \
		kind ": drain x drain", place TWO "echo $place >place\n",                                              \
		    ARGS("--room", "@place", CAROL, "drain", "--json"),                                                \
		    ARGS("--room", "@place", CAROL, "drain", "--json"), "", there, "", true, check_there_drains        \
	}

const struct pair pairs_other[] = {
	{ "carry x carry, out", BLUE WAITING, ARGS("carry"), ARGS("carry"), "bob", "maildir:blue/.mailroom", "", true,
	    check_carried_out },
	{ "carry x carry, out to a team", TEAM WAITING, ARGS("carry"), ARGS("carry"), "bob", "teams:teams/blue", "",
	    true, check_carried_out },
	{ "carry x carry, in",
	    BLUE "mr link name blue alice\n"
		 "mr --room ./blue --as carol send alice -s m1 -m 'm1: whole'\n",
	    ARGS("carry"), ARGS("carry"), "alice", NULL, "", true, check_carried_in },
	{ "carry x drain, in",
	    BLUE "mr link name blue alice\n"
		 "mr --room ./blue --as carol send alice -s m1 -m 'm1: whole'\n",
	    ARGS("carry"), ARGS(ALICE, "drain"), "alice", NULL, "", true, check_carried_in },
	{ "register x register", "echo $PPID >pid\n", ARGS("register", "zoe", "--pid", "1"),
	    ARGS("register", "zoe", "--pid", "@pid"), "bob", NULL, "", true, check_one_name },
	/* The name itself is taken by a link, which has one winner; the lock is for names that differ in their case
	   only. */
	{ "register x register, in two cases", "", ARGS("register", "zoe"), ARGS("register", "Zoe"), "bob", NULL, "",
	    true, check_one_name },
	{ "group add x group add", "mr --as alice group create team alice bob\n", ARGS("group", "add", "team", "carol"),
	    ARGS("group", "add", "team", "dave"), "bob", NULL, "", true, check_members },
	{ "post x post", "mr --as alice channel create news; mr --as bob channel subscribe news\n",
	    ARGS(ALICE, "send", "channel:news", "-s", "n1", "-m", "n1: whole"),
	    ARGS(CAROL, "send", "channel:news", "-s", "n2", "-m", "n2: whole"), "bob", NULL, "", true, check_posts },
	{ "send x prune", "say carol bob m1\n", ARGS(ALICE, "send", "bob", "-s", "n1", "-m", "n1: whole"),
	    ARGS("prune", "bob", "--force"), "bob", NULL, "", true, check_pruned },
	{ "fan-out x prune", "say carol bob m1\n",
	    ARGS(ALICE, "send", "carol", "bob", "dave", "-s", "n1", "-m", "n1: whole"), ARGS("prune", "bob", "--force"),
	    "bob carol dave", NULL, "", true, check_pruned_of_many },
	KIND("teams", TEAMS_PLACE, "teams:teams/blue"),
	KIND("chipset", CHIPSET_PLACE, "chipset:state"),
	KIND("handoff", HANDOFF_PLACE, "handoff:root"),
	{ "handoff: register x register", HANDOFF_PLACE "echo $place >place\n",
	    ARGS("--room", "@place", "register", "dave"), ARGS("--room", "@place", "register", "erin"), "", NULL, "",
	    true, check_registry },
};
const size_t pairs_other_n = sizeof(pairs_other) / sizeof(pairs_other[0]);
