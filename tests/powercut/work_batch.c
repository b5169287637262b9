/* SPDX-License-Identifier: MIT */
/* work_batch.c - many messages with one command: each line that it prints is a message that is there. */
#include "work.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define BATCH_MAX 60u

static void
add_line(FILE *lines, unsigned tag, bool keyed)
{
	static char body[BODY_MAX];

	(void)body_of(tag, body);
	(void)fprintf(lines, "{\"to\":\"%s\",\"body\":\"", batch_recipient(tag));
	for (const char *c = body; *c; c++)
		(void)(*c == '\n' ? fputs("\\n", lines) : fputc(*c, lines));
	(void)fputc('"', lines);
	if (keyed)
		(void)fprintf(lines, ",\"key\":\"key-%u\"", tag);
	(void)fputs("}\n", lines);
}

/* {"line":N,"id":"...",...} for each that is durable; N counts from 1. */
static void
ack_lines(unsigned first, unsigned n)
{
	const char *at = out;
	char key[24], id[40];

	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(key, sizeof(key), "{\"line\":%u,", i + 1);
		const char *line = strstr(at, key);

		if (!line || !next_value(&line, "id", id))
			continue;
		at = line;
		ack("send", first + i, id);
	}
}

/* One in three has keys, so that what was cut off can be repeated. */
bool
do_batch(unsigned tag)
{
	static unsigned next; /* tags are used up faster than jobs; the second of two processes has the upper half */
	unsigned half = TAGS_A_WORKER / 2, first = me * TAGS_A_WORKER + tag % 2 * half + next,
		 n = 2 + dice(dice(3) == 0 ? BATCH_MAX - 1 : 12);
	bool keyed = dice(3) == 0;

	if (next + n >= half)
		return false;
	next += n;
	input_fd = memfd_create("batch", MFD_CLOEXEC);
	FILE *lines = fdopen(dup(input_fd), "w");
	if (!lines)
		return false;
	for (unsigned i = 0; i < n; i++) {
		add_line(lines, first + i, keyed);
		say_try(keyed ? "batchkey" : "batch", first + i);
	}
	(void)fclose(lines);
	(void)lseek(input_fd, 0, SEEK_SET);
	int code = RUN("--as", "alice", "send", "--batch");
	(void)close(input_fd);
	input_fd = -1;
	ack_lines(first, n); /* also when the disk went away: what was printed holds */
	return worked(code, "send --batch");
}
