/* SPDX-License-Identifier: MIT */
/* count.c - reads every message file of the room and compares with what was said. Knows the layout, not the code. */
#include "chaos.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tally { /* of one tag */
	unsigned char copies[AGENTS], dead, queue;
	unsigned char consumed; /* mask */
};
static struct tally *tallies;
static unsigned broken;
static size_t prefix;

static void __attribute__((format(printf, 1, 2))) complain(const char *fmt, ...)
{
	va_list args;

	if (++broken > 12)
		return;
	va_start(args, fmt);
	(void)printf("# VIOLATION ");
	(void)vprintf(fmt, args);
	(void)printf("\n");
	va_end(args);
}

static bool
read_tag(const char *path, unsigned *ret, bool *ret_whole)
{
	char text[4096], whole[24];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *subject = strstr(text, "\nSubject: t");
	*ret_whole = n > 0 && strstr(text, "\n\n") != NULL;
	if (!subject || strspn(subject + 11, "0123456789") != 5 || subject[16] != '\n')
		return false;
	*ret = (unsigned)strtoul(subject + 11, NULL, 10);
	(void)snprintf(whole, sizeof(whole), "t%05u: whole", *ret);
	*ret_whole = strstr(text, whole) != NULL;
	return *ret < TAGS;
}

static bool
is_message(const char *rel)
{
	static const char *const in[] = { "/new/", "/cur/", "/held/", "queues/" };

	if (!strstr(rel, ".mr") || strstr(rel, "/.Sent") || strstr(rel, "/tmp/") ||
	    strstr(rel, "/past/")) /* a token there may begin with "mr" */
		return false;
	for (size_t i = 0; i < 4; i++)
		if (strstr(rel, in[i]))
			return strncmp(rel, "agents/", 7) == 0 || strncmp(rel, "dead/", 5) == 0 ||
			       strncmp(rel, "queues/", 7) == 0;
	return false;
}

static int
visit(const char *path, const struct stat *st, int type, struct FTW *where)
{
	const char *rel = path + prefix;
	unsigned tag = 0;
	bool whole = false;

	(void)st;
	(void)where;
	if (type != FTW_F || !is_message(rel))
		return 0;
	bool ours = read_tag(path, &tag, &whole);
	if (!whole)
		complain("'%s' is torn", rel);
	if (!ours)
		return 0;
	struct tally *t = &tallies[tag];
	if (strncmp(rel, "dead/", 5) == 0)
		t->dead++;
	else if (strncmp(rel, "queues/", 7) == 0)
		t->queue++;
	for (unsigned i = 0; i < AGENTS; i++) {
		size_t len = strlen(agent_names[i]);
		if (strncmp(rel, "agents/", 7) != 0 || strncmp(rel + 7, agent_names[i], len) != 0 ||
		    rel[7 + len] != '/')
			continue;
		t->copies[i]++;
		const char *flags = strstr(rel, ":2,");
		if (strstr(rel, "/.Archive.") || (flags && strchr(flags + 3, 'S') && !strstr(rel, "/held/")))
			t->consumed |= (unsigned char)(1u << i);
	}
	return 0;
}

static void
judge(unsigned number)
{
	const struct tag *tag = &model->tags[number];
	const struct tally *t = &tallies[number];
	unsigned outcome = atomic_load(&tag->outcome), have = 0, want = 0;

	for (unsigned i = 0; i < AGENTS; i++) {
		bool to = tag->to & (1u << i);
		want += to;
		have += t->copies[i];
		if (t->copies[i] > 1 || (t->copies[i] && !to))
			complain("t%05u: %s has %u copies", number, agent_names[i], t->copies[i]);
		if ((t->consumed & (1u << i)) && !(atomic_load(&tag->shown) & (1u << i)) &&
		    number >= atomic_load(&model->asked[i]))
			complain("t%05u: %s never saw it, and it is read", number, agent_names[i]);
	}
	if (tag->to & QUEUE_BIT) {
		want++;
		have += t->queue;
	}
	have += t->dead;
	if (outcome == SENT_REFUSED && have != 0)
		complain("t%05u: refused, and %u have it", number, have);
	if ((outcome == SENT_ACCEPTED || outcome == SENT_DOUBT) && have != want)
		complain("t%05u: %s, and %u of %u have it", number, outcome == SENT_DOUBT ? "in doubt" : "accepted",
		    have, want);
	if (outcome == SENT_KILLED && have != 0 && have != want)
		complain("t%05u: killed, and %u of %u have it", number, have, want);
}

unsigned
count_all(const struct chaos *c)
{
	char room[128];

	broken = 0;
	tallies = calloc(TAGS, sizeof(*tallies));
	if (!tallies)
		return 1;
	(void)snprintf(room, sizeof(room), "%s/.mailroom", c->dir);
	prefix = strlen(room) + 1;
	(void)nftw(room, visit, 16, FTW_PHYS);
	unsigned upto = atomic_load(&model->next);
	for (unsigned i = 1; i < upto && i < TAGS; i++)
		judge(i);
	free(tallies);
	if (atomic_load(&model->crashed) > 0 || model->crash[0])
		complain("%u commands crashed: %s", atomic_load(&model->crashed), model->crash);
	return broken;
}
