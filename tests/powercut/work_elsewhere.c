/* SPDX-License-Identifier: MIT */
/* work_elsewhere.c - work in a queue, in the rooms of other systems, and mail that is carried to other rooms. */
#include "elsewhere.h"
#include "work.h"
#include <sys/stat.h>

static char folder[400]; /* in which the room is, and the others beside it */

bool
set_up_elsewhere(const char *parent)
{
	char path[1100], spec[512];

	(void)snprintf(folder, sizeof(folder), "%s", parent);
	for (const char *const *name = elsewhere_folders; *name; name++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, *name);
		if (mkdir(path, 0700) < 0)
			return false;
	}
	(void)snprintf(path, sizeof(path), "%s/teams/crew/inboxes/dan.json", folder);
	FILE *dan = fopen(path, "w");
	if (!dan || fputs("[]", dan) < 0 || fclose(dan) != 0)
		return false;
	(void)snprintf(path, sizeof(path), "%s/blue", folder);
	if (RUN("init", path, "--name", "blue") != 0)
		return false;
	place("maildir:%s/blue/.mailroom", folder, spec);
	if (run_in(spec, (const char *const[]){ "register", "carol", NULL }) != 0 || RUN("link", "blue", spec) != 0)
		return false;
	place("teams:%s/teams/crew", folder, spec);
	return RUN("link", "crew", spec) == 0;
}

/* Several claim from one queue: what each gets is another's as often as its own. Now and then the claim is left alone.
 */
bool
do_queue(unsigned tag)
{
	char id[40], token[40];
	const char *at = out;

	if (!send_one("send", tag, NULL, id))
		return false;
	int code = RUN("--as", "worker", "recv", "queue:work", "--json");
	if (code == 3)
		return true; /* another took it */
	if (!worked(code, "recv queue:") || !next_value(&at, "token", token) || !(at = out, next_tag(&at, &tag)))
		return false;
	ack("recv", tag, "-");
	unsigned then = dice(10);

	if (then == 0)
		return true;
	const char *kind = then == 1 ? "release" : then == 2 ? "fail" : "done";
	code = then == 1   ? RUN("--as", "worker", "release", token)
	       : then == 2 ? RUN("--as", "worker", "fail", "--reason", "cannot", token)
			   : RUN("--as", "worker", "done", token);
	if (!worked(code, kind))
		return false;
	ack(kind, tag, "-");
	return true;
}

bool
do_elsewhere(unsigned tag)
{
	static char body[BODY_MAX];
	static unsigned first; /* tag that was not drained yet, + 1 */
	const struct elsewhere *there = &elsewhere[me];
	char spec[512], to[512], id[40], subject[20];

	(void)body_of(tag, body);
	place(there->sender, folder, spec);
	place(there->to, folder, to);
	say_try("send", tag);
	if (!worked(run_in(spec, (const char *const[]){ "--as", "alice", "send", to, "-m", body, NULL }), "send"))
		return false;
	first_word(id);
	ack("send", tag, id);
	first = first ? first : tag + 1;
	if (dice(3) > 0)
		return true;
	place(there->reader, folder, spec);
	if (!worked(run_in(spec, (const char *const[]){ "--as", "bob", "drain", "--json", NULL }), "drain"))
		return false;
	for (unsigned t = first - 1; t <= tag; t++) {
		(void)snprintf(subject, sizeof(subject), "\"tag %06u", t);
		if (strstr(out, subject))
			ack("drain", t, "-");
	}
	first = 0;
	return true;
}

bool
do_carry(unsigned tag)
{
	static char body[BODY_MAX];
	char id[40];

	(void)body_of(tag, body);
	say_try("send", tag);
	if (!worked(RUN("--as", "alice", "send", carried[tag % 2].to, "-m", body), "send to another room"))
		return false;
	first_word(id);
	ack("send", tag, id);
	return true;
}
