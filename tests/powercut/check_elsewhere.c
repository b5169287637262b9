/* SPDX-License-Identifier: MIT */
/*
 * check_elsewhere.c - what is there after the cut in queues, channels and the rooms of other systems. Formats differ,
 * so a message is known by its text: whole, byte for byte, wherever in a file it stands.
 */
#include "check.h"
#include "elsewhere.h"
#include <ftw.h>
#include <sys/stat.h>

static char folder[400]; /* in which the room is */

void
set_state_folder(void)
{
	char state[420];

	(void)snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(room, '/') - room), room);
	(void)snprintf(state, sizeof(state), "%s/own", folder);
	(void)setenv("XDG_STATE_HOME", state, 1);
}

/* ---- Texts in files ---- */

static unsigned counted_worker, counted_recipient;
static bool counted_done; /* files found now are finished work */

/* JSON writes a line break as \n. */
static size_t
unescape(char *text, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n; i++) {
		if (text[i] == '\\' && i + 1 < n && text[i + 1] == 'n') {
			text[to++] = '\n';
			i++;
		} else {
			text[to++] = text[i];
		}
	}
	return to;
}

/* Every text begins with "<tag> line 0", so a place with that and no whole text behind it is torn. */
static void
count_texts(const char *path, const char *text, size_t n)
{
	static char body[BODY_MAX];
	const char *at = text, *end = text + n;

	while ((at = memmem(at, (size_t)(end - at), " line 0: ", 9)) != NULL) {
		unsigned tag = 0;
		const char *begin = at - 6 - 11; /* "tag 000123\n000123 line 0: " */

		at += 9;
		if (begin < text || sscanf(begin, "tag %6u", &tag) != 1 || tag / TAGS_A_WORKER != counted_worker) {
			sum.torn++;
			(void)printf("# torn: %s\n", path);
			continue;
		}
		size_t want = body_of(tag, body) - 1; /* formats differ in the last line break */
		if ((size_t)(end - begin) < want || memcmp(begin, body, want) != 0) {
			sum.torn++;
			(void)printf("# torn: tag %u in %s\n", tag, path);
			continue;
		}
		struct op *op = &ops[tag];
		if (op->copies[counted_recipient]++ > 0)
			(void)printf("# again: tag %u in %s\n", tag, path);
		if (counted_done)
			op->seen = op->finished = op->in_archive = true;
	}
}

static int
count_file(const char *path, const struct stat *st, int type, struct FTW *where)
{
	const char *name = path + where->base;

	/* Not files of ours: temporary ones, which a cut may leave, and copies of what was sent. */
	if (type != FTW_F || st->st_size == 0 || name[0] == '.' || strstr(path, "/.Sent") || strstr(name, ".tmp") ||
	    strstr(name, ".lock"))
		return 0;
	FILE *f = fopen(path, "r");
	size_t size = (size_t)st->st_size, n = 0;
	char *text = malloc(size + 1);

	if (f && text) {
		n = fread(text, 1, size, f);
		text[n] = '\0';
		n = unescape(text, n);
		text[n] = '\0';
		count_texts(path, text, n);
	}
	if (f)
		(void)fclose(f);
	free(text);
	return 0;
}

static void
count_below(enum worker worker, unsigned recipient, const char *path, bool done)
{
	counted_worker = worker;
	counted_recipient = recipient;
	counted_done = done;
	(void)nftw(path, count_file, 16, FTW_PHYS);
}

/* ---- What was drained is not unread ---- */

static void
note_read(enum worker worker)
{
	static char out[1 << 20];
	char spec[512], subject[40];

	place(elsewhere[worker].reader, folder, spec);
	if (run_there(spec, (const char *const[]){ "--as", "bob", "inbox", "--unread", "--json", NULL }, out,
		sizeof(out)) != 0)
		complain(&sum.trouble, "inbox failed after the cut", worker * TAGS_A_WORKER);
	for (unsigned tag = worker * TAGS_A_WORKER; tag < (worker + 1) * TAGS_A_WORKER; tag++) {
		(void)snprintf(subject, sizeof(subject), "\"subject\":\"tag %06u\"", tag);
		ops[tag].seen = ops[tag].in_archive = strstr(out, subject) == NULL;
	}
}

void
take_elsewhere(void)
{
	static const char *const waiting[] = { "ready", "claimed", "failed" };
	char path[512], under[600];

	place("%s/.mailroom/queues/work", folder, path);
	for (unsigned i = 0; i < 3; i++) {
		(void)snprintf(under, sizeof(under), "%s/%s", path, waiting[i]);
		count_below(W_QUEUE, 0, under, false);
	}
	(void)snprintf(under, sizeof(under), "%s/done", path);
	count_below(W_QUEUE, 0, under, true);
	place("%s/.mailroom/channels/news/posts", folder, path);
	count_below(W_CHANNEL, 2, path, false);
	for (enum worker w = W_TEAM; w <= W_WORKSPACE; w++) {
		place(elsewhere[w].box, folder, path);
		count_below(w, 0, path, false);
		note_read(w);
	}
	for (unsigned i = 0; i < 2; i++) {
		place(carried[i].box, folder, path);
		count_below(W_CARRY, 0, path, false);
	}
}
