/* SPDX-License-Identifier: MIT */
/*
 * wake_limit.c - how often mail from one agent to another in a thread has woken the recipient lately: one small record
 * of the room, a line for each,
 *
 *	<sha256 of the thread> <+ or -: was the operator told> <unix ms> ... [=<thread, where the operator was told>]
 *
 * changed under its lock. Entries older than a day are removed with the next change. We put no files into rooms of
 * other programs: there it is a file in the state folder.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "office/tell/tell.h"
#include <inttypes.h>
#include <stdlib.h>

#define WAKES_NAME "threads"
#define WAKES_MAX ((size_t)4 << 20)
#define DAY_MS ((int64_t)24 * 3600 * 1000)
#define LOCK_WAIT_MS 3000
#define AUTO "auto\n" /* precedes the key of mail from programs */

void
wakes_done(struct wakes *w)
{
	free(w->v);
	*w = (struct wakes){ 0 };
}

/* ---- As text ---- */

static struct wake_thread *
add_thread(struct wakes *w)
{
	if (!array_grow(&w->v, w->n, &w->cap, sizeof(*w->v)))
		return NULL;
	w->v[w->n] = (struct wake_thread){ 0 };
	return &w->v[w->n++];
}

static void
parse(struct mr_str text, struct wakes *w)
{
	for (struct mr_str line, hash, told, word; str_cut(&text, '\n', &line);) {
		struct wake_thread *t;
		uint64_t ms;

		if (!str_word(&line, " ", &hash) || hash.len != 64 || !str_word(&line, " ", &told) ||
		    !(t = add_thread(w)))
			continue;
		memcpy(t->hash, hash.ptr, 64);
		t->told = told.ptr[0] == '+';
		while (str_word(&line, " ", &word)) {
			if (word.ptr[0] == '=')
				(void)snprintf(t->name, sizeof t->name, "%.*s", (int)word.len - 1, word.ptr + 1);
			else if (t->n < WAKE_LIMIT_MAX && str_to_u64(word, &ms) && ms <= INT64_MAX)
				t->at_ms[t->n++] = (int64_t)ms;
			else
				break;
		}
	}
}

/* ---- Keys ---- */

void
wake_thread_key(const struct mr_room *room, const struct mr_message *msg, const char *agent, struct buf *out)
{
	bool swap = strcmp(msg->from, agent) > 0;

	if ((room->driver->abilities & ROOM_THREADS) && *msg->thread)
		buf_addf(out, "thread\n%s", msg->thread);
	else
		buf_addf(out, "pair\n%s\n%s", swap ? agent : msg->from, swap ? msg->from : agent);
}

void
wake_key(const struct mr_room *room, const struct mr_message *msg, const char *agent, struct buf *out)
{
	const char *how = mr_message_header(msg, "Auto-Submitted");

	/* Programs that answer each other never stop. */
	if ((how && !ascii_caseeq(how, "no")) || ascii_caseeq(msg->type, "notice"))
		buf_adds(out, AUTO);
	wake_thread_key(room, msg, agent, out);
	buf_addf(out, "\n%s\n%s", msg->from, agent);
}

static struct wake_thread *
find(const struct wakes *w, const char *key)
{
	struct hash_name hash = hash_name("%s", key);

	for (size_t i = 0; i < w->n; i++)
		if (strcmp(w->v[i].hash, hash.z) == 0)
			return &w->v[i];
	return NULL;
}

bool
wakes_told(const struct wakes *w, const char *thread)
{
	const struct wake_thread *t = find(w, thread);

	return t && t->told;
}

/* Counts from the last wake: the mail wakes when that time is over, so a loop goes on at that pace at most. A clock
 * that was set back does not prolong it. */
int64_t
wakes_until(const struct wakes *w, const char *key)
{
	const struct wake_thread *t = find(w, key);

	if (!t || t->n == 0)
		return 0;
	if (str_starts(str_of(key), AUTO))
		return WAKE_NEVER;
	int64_t now_ms = clock_now_ms(), last = t->at_ms[t->n - 1], until = last + w->rule.window_ms;

	if (t->n < w->rule.limit || last - t->at_ms[t->n - w->rule.limit] >= w->rule.window_ms)
		return 0;
	return last <= now_ms && now_ms < until ? until : 0;
}

bool
wake_rule_parse(const char *line, struct wake_rule *ret)
{
	const char *slash = line ? strchr(line, '/') : NULL;
	uint64_t n = 0;
	int64_t ms = 0;

	*ret = (struct wake_rule){ WAKE_LIMIT, WAKE_WINDOW_MS };
	if (!line)
		return true;
	if (!slash || !str_to_u64((struct mr_str){ line, (size_t)(slash - line) }, &n) || n < 1 || n > WAKE_LIMIT_MAX ||
	    !duration_parse(str_of(slash + 1), &ms) || ms < 1000 || ms > DAY_MS)
		return false;
	*ret = (struct wake_rule){ (size_t)n, ms };
	return true;
}

/* ---- Storage ---- */

void
wakes_load(struct mr_room *room, struct wakes *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;

	if (ROOM_HAS(room, record_put))
		(void)room->driver->record_get(room, WAKES, "", WAKES_NAME, &text, IGNORED);
	else if (office_state(room, WAKES, true, &fd, IGNORED) == MR_OK)
		(void)file_read(fd, hash_name("%s", room->spec).z, WAKES_MAX, &text, IGNORED);
	(void)wake_rule_parse(mr_room_setting(room, "Wake-Limit"), &ret->rule);
	parse(buf_str(&text), ret);
}

/* Adds the time to each key; told: when the operator was told, else when it woke the agent. */
static enum mr_rc
edit(struct buf *text, const struct mr_names *keys, size_t limit, bool told, struct mr_error *err)
{
	mr_auto(wakes_done) struct wakes w = { 0 };
	int64_t now_ms = clock_now_ms();

	parse(buf_str(text), &w);
	for (size_t i = 0; i < keys->n; i++) {
		struct wake_thread *t = find(&w, keys->v[i]);

		if (!t && (t = add_thread(&w)))
			sha256_hex(str_of(keys->v[i]), t->hash);
		TRY(mr_got(t, err));
		t->told = t->told || told;
		if (told) {
			/* A key is "thread\n<word>"; a word of another program's mail that would break the line is left
			 * out. */
			const char *word = str_starts(str_of(keys->v[i]), "thread\n") ? keys->v[i] + 7 : "";

			if (strlen(word) < sizeof t->name &&
			    strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					 "0123456789._-@+") == strlen(word))
				(void)snprintf(t->name, sizeof t->name, "%s", word);
		}
		if (t->n >= limit) {
			memmove(t->at_ms, t->at_ms + (t->n - limit + 1), (limit - 1) * sizeof t->at_ms[0]);
			t->n = limit - 1;
		}
		t->at_ms[t->n++] = now_ms; /* for a thread that was told: the time of telling */
	}
	buf_clear(text);
	for (size_t i = 0; i < w.n; i++) {
		const struct wake_thread *t = &w.v[i];

		if (t->n == 0 || t->at_ms[t->n - 1] < now_ms - DAY_MS)
			continue;
		buf_addf(text, "%s %c", t->hash, t->told ? '+' : '-');
		for (size_t k = 0; k < t->n; k++)
			buf_addf(text, " %" PRId64, t->at_ms[k]);
		if (t->name[0])
			buf_addf(text, " =%s", t->name);
		buf_addc(text, '\n');
	}
	return mr_got(!text->failed, err);
}

enum mr_rc
wakes_note(struct mr_room *room, const struct mr_names *keys, bool told, struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1, lock = -1;
	struct hash_name name = hash_name("%s", room->spec);
	struct wake_rule rule;

	if (keys->n == 0)
		return MR_OK;
	(void)wake_rule_parse(mr_room_setting(room, "Wake-Limit"), &rule);
	size_t limit = told ? 1 : rule.limit; /* so many times are kept */

	if (ROOM_HAS(room, record_put)) {
		TRY(record_edit_begin(&e, room, WAKES, "", WAKES_NAME, err));
		TRY(edit(&e.text, keys, limit, told, err));
		return record_edit_save(&e, err);
	}
	TRY(office_state(room, WAKES, true, &fd, err));
	TRY(lock_take(fd, ".lock", 0600, LOCK_WAIT_MS, &lock, err));
	(void)file_read(fd, name.z, WAKES_MAX, &text, IGNORED);
	TRY(edit(&text, keys, limit, told, err));
	return file_replace(fd, name.z, buf_str(&text), 0600, err);
}
