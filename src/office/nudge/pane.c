/* SPDX-License-Identifier: MIT */
/*
 * pane.c - typing a notice of a nudge into an agent's terminal. It counts as typed only if it was submitted.
 *
 *	one nudge at a time into a pane (a lock), the pane is the one of this life and its process is still in it,
 *	no shell is in front (a shell would run the words), no dialog, twice idle in a row,
 *	then the notice, seen on the screen, then Enter, seen to have worked.
 *
 * A model takes typed text for its user's words, so no text of another agent is typed: only our own notice, with the
 * sender's name if it is a plain one. The nudge stays in the queue; the hook of the prompt that the notice becomes, or
 * the command in the notice, shows it inside the fence.
 *
 * The socket and the pane are read from the room, which other users may be able to write. A tmux client obeys its
 * server, which can even make it run a command, so only a server of our own user is asked. In a room that several users
 * share, we type only to our own agents, and only if tmux confirms that the process of the life is in the pane; nobody
 * else can make the file of that life.
 *
 * If the typed text does not appear (a terminal without echo), it is removed with Control-U.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/process.h"
#include "base/sys.h"
#include "office/nudge/nudge.h"
#include "office/who/who.h"
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#define POLL_MS 200
#define SEEN_MS 2500       /* the screen is still for so long, without the typed text */
#define SEEN_MOST_MS 20000 /* ... or never still for so long */
#define SETTLE_MS 150      /* an Enter right after many letters counts as a part of a paste */
#define ENTER_TRIES 3
#define NAME_TYPED_MAX 40

/* ---- Which pane ---- */

struct typing { /* a nudge on its way */
	struct mr_room *room;
	const char *agent, *name;
	const struct mr_nudge_options *options;
	struct mr_agent life;
	struct record lines;
	struct tmux tmux;
	char notice[160]; /* the typed text; the number distinguishes it from an earlier one on the screen */
	void *pane_lock;
	int64_t deadline_ms;
	char *why;
	size_t why_size;
};

static enum pane_result
because(struct typing *t, enum pane_result result, const char *why)
{
	if (why != t->why) /* what tmux said is there already, and printing a buffer onto itself would empty it */
		(void)snprintf(t->why, t->why_size, "%s", why);
	return result;
}

static bool
is_ours(const char *socket)
{
	struct stat st;

	return socket[0] == '/' && sys_stat(AT_FDCWD, socket, &st) == 0 && S_ISSOCK(st.st_mode) &&
	       st.st_uid == geteuid();
}

static bool
is_pane(const char *pane)
{
	return pane[0] == '%' && pane[1] && strspn(pane + 1, "0123456789") == strlen(pane + 1);
}

/* NULL: it is known; else the reason why it cannot be typed into. */
static const char *
find_pane(struct typing *t)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error err = { 0 };

	if (!office_has_lives(t->room) || t->room->driver->find_agent(t->room, t->agent, &t->life, &err) != MR_OK ||
	    t->room->driver->record_get(t->room, PANE, t->agent, PANE_NAME, &text, &err) != MR_OK ||
	    record_parse(buf_str(&text), &t->lines, &err) != MR_OK)
		return "its terminal is not known";
	t->tmux.socket = record_get(&t->lines, "Socket");
	t->tmux.pane = record_get(&t->lines, "Pane");
	if (!t->tmux.socket || !t->tmux.pane || record_int(&t->lines, "Life", -1) != (int64_t)t->life.life)
		return "the terminal of its present life is not known";
	if (t->life.others)
		return "it is an agent of another user";
	if (!is_pane(t->tmux.pane) || !is_ours(t->tmux.socket))
		return "its terminal does not belong to a tmux server of yours";
	if (mr_agent_presence(&t->life) == MR_GONE)
		return "its process is gone";
	return NULL;
}

/* ---- May we type ---- */

/* A shell would run the text in its prompt. */
static bool
is_shell(const char *command)
{
	static const char *const shells[] = { "sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "ash", "busybox",
		"csh", "tcsh", "nu", "pwsh", "xonsh", "elvish", "login", "su", "sudo", "ssh", "tmux", "screen" };
	const char *name = command[0] == '-' ? command + 1 : command;

	for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
		if (strcmp(name, shells[i]) == 0)
			return true;
	return name[0] == '\0';
}

/* The terminal may have another use now. NULL: it is the agent's. */
static const char *
why_not_there(const struct typing *t, const struct tmux_pane *pane)
{
	struct mr_process here = { 0 };

	if (pane->dead)
		return "the program in its terminal has ended";
	if (pane->input_off)
		return "its terminal takes no input";
	if (pane->synchronized)
		return "its terminal is synchronized with others: all of them would get it";
	if (is_shell(pane->command))
		return "a shell is in front in its terminal and would run it";
	/* Only if we are in the same pid namespace. */
	bool can_tell = t->life.process.pid != 0 && process_describe(pane->pid, &here) &&
			here.pid_ns == t->life.process.pid_ns && strcmp(here.boot, t->life.process.boot) == 0;

	if (can_tell && !process_descends(t->life.process.pid, pane->pid))
		return "its process is no longer in that terminal";
	if (!can_tell && office_shares_room(t->room))
		return "it cannot be verified that its process is in that terminal";
	return NULL;
}

static const char *const state_reasons[] = {
	[SCREEN_IDLE] = "",
	[SCREEN_BUSY] = "it is busy",
	[SCREEN_DIALOG] = "a dialog is open in its terminal",
	[SCREEN_DRAFT] = "somebody is typing in its terminal",
	[SCREEN_UNKNOWN] = "its terminal shows no known prompt",
};

/* Copy mode: somebody reads there, if a client is attached. An immediate nudge ends it all the same. NULL: it is
 * left. */
static const char *
leave_mode(struct typing *t, struct tmux_pane *pane)
{
	if (!pane->in_mode)
		return NULL;
	if (pane->clients > 0 && t->options->mode != MR_NUDGE_IMMEDIATE)
		return "somebody scrolls in its terminal";
	(void)tmux_key(&t->tmux, NULL, IGNORED);
	if (tmux_look(&t->tmux, pane, IGNORED) != MR_OK || pane->in_mode)
		return "its terminal is in a mode of tmux";
	return NULL;
}

/* One look. NULL: type now. *ret_final: waiting longer is useless. */
static const char *
look_once(struct typing *t, struct tmux_pane *pane, bool *ret_final)
{
	mr_auto(buf_done) struct buf screen = BUF_INIT;
	struct mr_error err = { 0 };
	const char *why;

	*ret_final = true;
	if (tmux_look(&t->tmux, pane, &err) != MR_OK) {
		(void)snprintf(t->why, t->why_size, "%s", err.message);
		return t->why;
	}
	why = why_not_there(t, pane);
	if (why)
		return why;
	*ret_final = false;
	why = leave_mode(t, pane);
	if (why)
		return why;
	if (tmux_capture(&t->tmux, TMUX_LOOKS, &screen, &err) != MR_OK)
		return "tmux does not show its terminal";
	enum screen_state state = screen_judge(buf_str(&screen));

	bool hurry = t->options->mode == MR_NUDGE_IMMEDIATE && state != SCREEN_DIALOG && state != SCREEN_DRAFT;

	if (state == SCREEN_IDLE || hurry)
		return NULL;
	return state_reasons[state];
}

static void
sleep_ms(int64_t ms)
{
	(void)poll(NULL, 0, (int)ms);
}

static enum pane_result
wait_idle(struct typing *t, struct tmux_pane *pane)
{
	int needed = t->options->mode == MR_NUDGE_IMMEDIATE ? 1 : 2, idle = 0;

	for (;;) {
		bool final = false;
		const char *why = look_once(t, pane, &final);

		idle = why ? 0 : idle + 1;
		if (idle >= needed)
			return PANE_TYPED;
		if (!nudge_waits(t->room, t->agent, t->name))
			return PANE_GONE;
		/* Between two tools the agent looks idle for a moment, so one idle look is followed by a second one,
		 * even past the deadline. */
		if (why && (final || clock_boot_ms() >= t->deadline_ms || t->options->mode == MR_NUDGE_IMMEDIATE))
			return because(t, PANE_NOT, why);
		sleep_ms(POLL_MS);
	}
}

/* ---- Typing ---- */

enum sight { SIGHT_TEXT, SIGHT_OTHER, SIGHT_GONE };

/* The text on the terminal. A terminal that is gone shows nothing, which proves nothing. */
static enum sight
look_for_text(struct typing *t, char ret_hash[65])
{
	mr_auto(buf_done) struct buf screen = BUF_INIT;

	if (tmux_capture(&t->tmux, TMUX_TEXT, &screen, IGNORED) != MR_OK || !buf_ok(&screen))
		return SIGHT_GONE;
	if (ret_hash)
		sha256_hex(buf_str(&screen), ret_hash);
	return screen_shows(buf_str(&screen), str_of(t->notice)) ? SIGHT_TEXT : SIGHT_OTHER;
}

/* A busy machine shows it late: as long as the screen changes, keep waiting. */
static enum sight
appears(struct typing *t)
{
	int64_t now = clock_boot_ms(), end = now + SEEN_MS, last = now + SEEN_MOST_MS;
	char before[65] = "", after[65] = "";

	for (;;) {
		enum sight sight = look_for_text(t, after);

		now = clock_boot_ms();
		if (sight != SIGHT_OTHER || now >= end)
			return sight;
		if (strcmp(before, after) != 0 && now < last)
			end = now + SEEN_MS;
		memcpy(before, after, sizeof before);
		sleep_ms(POLL_MS / 4);
	}
}

/* The text has left the input; or the cursor is at the beginning of a later line, where a program that reads lines from
 * a plain terminal prints no new prompt. A terminal that is gone counts as not submitted. */
static bool
was_submitted(struct typing *t, const struct tmux_pane *before)
{
	struct tmux_pane now;
	enum sight sight = look_for_text(t, NULL);

	if (tmux_look(&t->tmux, &now, IGNORED) != MR_OK || now.dead)
		return false;
	if (sight == SIGHT_OTHER)
		return true;
	return sight == SIGHT_TEXT && before->cursor_x > 0 && now.cursor_x == 0 &&
	       now.cursor_y + now.history > before->cursor_y + before->history;
}

static enum pane_result
submit(struct typing *t)
{
	static const int pauses_ms[ENTER_TRIES] = { 1000, 1500, 2000 };
	struct tmux_pane before = { 0 };
	struct mr_error err = { 0 };

	if (tmux_look(&t->tmux, &before, &err) != MR_OK || before.dead)
		return because(t, PANE_NOT, "its terminal went away before Enter");
	for (int i = 0; i < ENTER_TRIES; i++) {
		int64_t end = clock_boot_ms() + pauses_ms[i];

		if (tmux_key(&t->tmux, "Enter", &err) != MR_OK)
			break;
		do {
			sleep_ms(POLL_MS / 4);
			if (was_submitted(t, &before))
				return PANE_TYPED;
		} while (clock_boot_ms() < end);
	}
	return because(t, PANE_DOUBT, "it was typed into its terminal, but Enter had no effect that can be seen");
}

/* Nothing is submitted before Enter. */
static enum pane_result
type_now(struct typing *t)
{
	struct mr_error err = { 0 };
	enum sight sight = tmux_type(&t->tmux, str_of(t->notice), &err) == MR_OK ? appears(t) : SIGHT_GONE;

	if (sight != SIGHT_TEXT)
		(void)tmux_key(&t->tmux, "C-u", &err);
	if (sight == SIGHT_GONE)
		return because(t, PANE_NOT, "its terminal went away while it was typed");
	if (sight == SIGHT_OTHER)
		return because(t, PANE_NOT, "what was typed did not appear in its terminal and was taken back");
	sleep_ms(SETTLE_MS);
	return submit(t);
}

static enum pane_result
type_when_idle(struct typing *t)
{
	struct tmux_pane pane = { 0 };

	const char *why = find_pane(t);

	if (why)
		return because(t, PANE_NOT, why);
	char name[32];
	int64_t wait_ms = t->deadline_ms - clock_boot_ms();

	(void)snprintf(name, sizeof name, "typing-%.16s", hash_name("%s\n%s", t->tmux.socket, t->tmux.pane).z);
	/* Two processes in one pane would mix their texts. */
	if (t->room->driver->record_lock(
		t->room, PANE, "", name, wait_ms > POLL_MS ? wait_ms : POLL_MS, &t->pane_lock, IGNORED) != MR_OK)
		return because(t, PANE_NOT, "others are typing into its terminal");
	enum pane_result result = wait_idle(t, &pane);

	if (result != PANE_TYPED)
		return result;
	return nudge_waits(t->room, t->agent, t->name) ? type_now(t) : PANE_GONE;
}

/* "[mailroom] nudge 39a2ed31 from bob waits for you, 3 in all: mailroom check --inject" */
static void
compose(struct typing *t, const char *number)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
	struct mr_nudges *nudges = NULL;
	char from[NAME_TYPED_MAX + sizeof " from "] = "", all[32] = "";
	size_t n = 0;

	if (mr_nudges_open(t->room, t->agent, false, &nudges, IGNORED) == MR_OK)
		n = mr_nudges_count(nudges);
	for (size_t i = 0; i < n; i++) {
		const char *name = mr_nudges_get(nudges, i)->from;
		size_t len = strspn(name, plain);

		if (strcmp(nudges_name(nudges, i), t->name) == 0 && len > 0 && len <= NAME_TYPED_MAX &&
		    name[len] == '\0')
			(void)snprintf(from, sizeof from, " from %s", name);
	}
	if (n > 1)
		(void)snprintf(all, sizeof all, ", %zu in all", n);
	(void)snprintf(t->notice, sizeof t->notice, "[mailroom] nudge %.8s%s waits for you%s: mailroom check --inject",
	    number, from, all);
	mr_nudges_close(nudges);
}

enum pane_result
pane_type(struct mr_room *room, const char *agent, const char *name, const struct mr_nudge_options *options, char *why,
    size_t why_size)
{
	const char *number = strrchr(name, '-');
	struct typing t = { .room = room,
		.agent = agent,
		.name = name,
		.options = options,
		.deadline_ms = clock_boot_ms() + options->patience_ms,
		.why = why,
		.why_size = why_size };

	compose(&t, number ? number + 1 : "");
	enum pane_result result = type_when_idle(&t);

	if (t.pane_lock)
		room->driver->record_unlock(room, t.pane_lock);
	mr_agent_done(&t.life);
	record_done(&t.lines);
	return result;
}
