/* SPDX-License-Identifier: MIT */
/*
 * cmd_top.c - what needs a person, live in a terminal: mr_attention as lines, the mailboxes that have something below
 * it, a message when one is opened. A frame is text that is as wide and as high as the window; everything that others
 * wrote passes the fence before it is cut to it.
 *
 * A second process waits for the room to change and rings a bell through a pipe, because the room tells it by a call
 * that waits; it ends with the first one.
 */
#include "base/sys.h"
#include "cli/terminal.h"
#include "helptext.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_EVERY_MS 30000 /* ages and leases change without a sign */
#define LOOK_GAP_MS 250     /* between two looks, or four times as long as one takes */
#define WATCH_MS 2000
#define NO_LIMIT SIZE_MAX

bool
cli_window(size_t *ret_columns, size_t *ret_lines)
{
	struct winsize size = { 0 };

	if (ioctl(1, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return false;
	*ret_columns = size.ws_col;
	*ret_lines = size.ws_row;
	return true;
}

/* ---- Frames ---- */

struct frame {
	struct cli *cli;
	struct buf out;
	size_t width, height; /* height NO_LIMIT: as many lines as there are */
	size_t lines;
	bool screen; /* a line ends by going to the next one, not by a line break alone */
};

static void
frame_done(struct frame *f)
{
	buf_done(&f->out);
}

/* One line, cut to the window. The text is fenced already. */
static void
add_str(struct frame *f, enum style style, bool chosen, struct mr_str text)
{
	mr_auto(buf_done) struct buf cut = BUF_INIT;

	if (f->height != NO_LIMIT && f->lines + 1 > f->height)
		return;
	/* Cleared first: behind the last column the cursor stays on it. */
	if (f->screen)
		buf_adds(&f->out, f->lines > 0 ? "\r\n\033[K" : "\033[H\033[K");
	f->lines++;
	(void)text_fit(&cut, text, f->width);
	if (chosen && f->cli->color)
		buf_adds(&f->out, "\033[7m");
	out_colored(f->cli, &f->out, chosen ? STYLE_PLAIN : style, buf_str(&cut));
	if (chosen && f->cli->color)
		buf_adds(&f->out, "\033[0m");
	buf_adds(&f->out, f->screen ? "" : "\n");
	f->out.failed |= cut.failed;
}

static void
add_line(struct frame *f, enum style style, bool chosen, const struct buf *line)
{
	add_str(f, style, chosen, buf_str(line));
	f->out.failed |= line->failed;
}

/* Fences a text of others and adds it, wrapped, at most so many lines. */
static void
add_wrapped(struct frame *f, enum style style, const char *indent, const char *text, size_t most)
{
	mr_auto(buf_done) struct buf clean = BUF_INIT, line = BUF_INIT;
	size_t width = f->width > strlen(indent) + 4 ? f->width - strlen(indent) : 4;

	(void)fence_add(&clean, str_of(text), out_form(f->cli, FENCE_LINE), 0);
	for (struct mr_str rest = buf_str(&clean); rest.len > 0 && most > 0; most--) {
		struct mr_str part = most == 1 ? rest : utf8_fit(rest, width);
		size_t blank = part.len;

		while (part.len < rest.len && blank > 0 && part.ptr[blank - 1] != ' ')
			blank--;
		if (part.len < rest.len && blank > 0)
			part.len = blank;
		if (part.len == 0) /* a character that is wider than the window */
			break;
		buf_clear(&line);
		buf_adds(&line, indent);
		buf_add(&line, part);
		add_line(f, style, false, &line);
		rest = (struct mr_str){ rest.ptr + part.len, rest.len - part.len };
	}
	f->out.failed |= clean.failed;
}

static void
add_fenced(struct frame *f, struct buf *out, const char *text)
{
	(void)fence_add(out, str_of(text), out_form(f->cli, FENCE_LINE), 0);
}

/* The keys, in the last line of the window. */
static void
add_foot(struct frame *f, struct mr_str narrow, struct mr_str wide)
{
	while (f->lines + 1 < f->height)
		add_str(f, STYLE_PLAIN, false, STR(""));
	if (f->height > 1)
		add_str(f, STYLE_DIM, false, f->width < 48 ? narrow : wide);
}

/* ---- The list ---- */

static void
add_head(struct frame *f, const struct mr_attention *a)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	add_fenced(f, &line, mr_room_name(f->cli->room));
	buf_addf(&line, ": %s, %zu unread", counted(a->boxes_n, "agent").text, a->unread);
	if (a->oldest_ms > 0)
		buf_addf(&line, " (oldest %s)", lasting(a->at_ms - a->oldest_ms).text);
	buf_addf(&line, ", %zu in hand, %zu dead", a->held, a->dead);
	add_line(f, STYLE_BOLD, false, &line);
}

const char *
need_about(const struct mr_need *n)
{
	return n->kind == MR_NEED_ANSWER ? n->from
	       : *n->queue               ? n->queue
	       : *n->agent               ? n->agent
	       : *n->link                ? n->link
	       : *n->thread              ? n->thread
					 : n->path;
}

static void
add_need(struct frame *f, const struct mr_attention *a, size_t i, bool chosen)
{
	const struct mr_need *n = &a->needs[i];
	mr_auto(buf_done) struct buf line = BUF_INIT;
	int64_t age_ms = n->since_ms < a->at_ms ? a->at_ms - n->since_ms : 0;

	buf_addf(&line, "%c%c ", chosen ? '>' : ' ', n->pressing ? '!' : ' ');
	if (f->width >= 48)
		buf_addf(&line, "%-10s ", mr_need_word(n->kind));
	buf_addf(&line, "%4s ", n->since_ms > 0 ? lasting(age_ms).text : "-");
	add_fenced(f, &line, need_about(n));
	buf_adds(&line, ": ");
	if (n->kind == MR_NEED_UNREAD || n->kind == MR_NEED_GONE || n->kind == MR_NEED_LINK)
		buf_addf(&line, "%zu %s", n->count, n->kind == MR_NEED_LINK ? "to be carried" : "unread");
	if (*n->subject && (n->kind == MR_NEED_UNREAD || n->kind == MR_NEED_GONE))
		buf_adds(&line, ", ");
	add_fenced(f, &line, *n->subject ? n->subject : n->count ? "" : n->why);
	if (n->due_ms > 0)
		buf_addf(
		    &line, n->due_ms > a->at_ms ? " (in %s)" : " (%s late)", lasting(llabs(n->due_ms - a->at_ms)).text);
	add_line(f, n->pressing ? STYLE_RED : STYLE_PLAIN, chosen, &line);
}

static void
add_quiet(struct frame *f, const struct mr_attention *a)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	buf_addf(&line, "all quiet; in the last minute %s came, %zu of them read", counted(a->came, "message").text,
	    a->seen);
	add_line(f, STYLE_GREEN, false, &line);
}

/* The evidence, and what can be done. */
static void
add_detail(struct frame *f, const struct mr_need *n, size_t lines)
{
	add_str(f, STYLE_PLAIN, false, STR(""));
	add_wrapped(f, STYLE_PLAIN, "  ", n->why, lines > n->actions_n ? lines - n->actions_n : 1);
	for (size_t i = 0; i < n->actions_n; i++) {
		mr_auto(buf_done) struct buf line = BUF_INIT;

		buf_adds(&line, "  mailroom");
		for (const char *const *w = n->actions[i].words; *w; w++) {
			buf_addc(&line, ' ');
			fence_name(&line, *w);
		}
		buf_adds(&line, n->actions[i].text ? " -m TEXT" : "");
		add_line(f, STYLE_DIM, false, &line);
	}
}

static int
by_oldest(const void *va, const void *vb)
{
	const struct mr_box *a = *(const struct mr_box *const *)va, *b = *(const struct mr_box *const *)vb;
	int64_t x = a->oldest_ms ? a->oldest_ms : INT64_MAX, y = b->oldest_ms ? b->oldest_ms : INT64_MAX;

	return x != y ? (x > y) - (x < y) : strcmp(a->agent, b->agent);
}

/* Of the mailboxes that have something, those with the oldest mail, as many as there is room for. */
static void
add_boxes(struct frame *f, const struct mr_attention *a, size_t lines)
{
	mr_auto(free_ptr) const struct mr_box **v = calloc(a->boxes_n + 1, sizeof *v);
	size_t n = 0;

	for (size_t i = 0; v && i < a->boxes_n; i++)
		if (a->boxes[i].unread > 0 || a->boxes[i].held > 0)
			v[n++] = &a->boxes[i];
	if (n == 0 || lines < 3)
		return;
	qsort(v, n, sizeof *v, by_oldest);
	add_str(f, STYLE_PLAIN, false, STR(""));
	for (size_t i = 0; i < n && i + 1 < lines; i++) {
		const struct mr_box *box = v[i];
		static const char *const words[] = { [MR_GONE] = "gone", [MR_UNKNOWN] = "unknown", [MR_LIVE] = "live" };
		mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
		mr_auto(buf_done) struct buf line = BUF_INIT, name = BUF_INIT;
		bool lives = mr_room_has(f->cli->room, MR_HAS_LIVES) &&
			     mr_agent_get(f->cli->room, box->agent, &agent, IGNORED) == MR_OK;

		text_name(f->cli, &name, box->agent);
		buf_adds(&line, "   ");
		for (size_t w = text_fit(&line, buf_str(&name), 20); w < 20; w++)
			buf_addc(&line, ' ');
		buf_addf(&line, " %-8s %5zu unread %5s %3zu in hand",
		    !lives || agent.life == 0 ? "-" : words[mr_agent_presence(&agent)], box->unread,
		    box->oldest_ms > 0 ? lasting(a->at_ms - box->oldest_ms).text : "-", box->held);
		add_line(f, STYLE_PLAIN, false, &line);
		f->out.failed |= name.failed;
	}
}

static void
add_more(struct frame *f, size_t more)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	buf_addf(&line, "   and %zu more", more);
	add_line(f, STYLE_DIM, false, &line);
}

struct top {
	struct cli *cli;
	struct mr_attention now;
	struct mr_error trouble; /* the room could not be read */
	struct mr_attention_options options;
	size_t chosen, first; /* of the needs: the chosen one, the first that is shown */
	bool open;            /* the message is shown */
	size_t scrolled;      /* its first line that is shown */
	size_t height;        /* of the window */
};

/* The lines of the list that fit between head and foot. */
static void
add_list(struct top *t, struct frame *f, size_t lines)
{
	const struct mr_attention *a = &t->now;
	size_t end;

	if (t->chosen >= a->n)
		t->chosen = a->n > 0 ? a->n - 1 : 0;
	bool more = a->more > 0 || a->n > lines;
	size_t rows = more && lines > 1 ? lines - 1 : lines;

	if (t->chosen < t->first)
		t->first = t->chosen;
	if (rows > 0 && t->chosen >= t->first + rows)
		t->first = t->chosen - rows + 1;
	if (a->n <= rows)
		t->first = 0;
	end = t->first + rows < a->n ? t->first + rows : a->n;
	for (size_t i = t->first; i < end; i++)
		add_need(f, a, i, f->screen && i == t->chosen);
	if (more && lines > 1)
		add_more(f, a->more + a->n - (end - t->first));
}

static void
draw_list(struct top *t, struct frame *f)
{
	const struct mr_attention *a = &t->now;
	size_t body = f->height > 2 ? f->height - 2 : 0, detail = f->height >= 12 ? 5 : 0;

	add_head(f, a);
	if (t->trouble.code != MR_OK)
		add_wrapped(f, STYLE_RED, "", t->trouble.message, 2);
	if (a->n == 0) {
		add_quiet(f, a);
	} else {
		add_list(t, f, body > detail ? body - detail : body);
		if (detail > 0)
			add_detail(f, &a->needs[t->chosen], detail - 1);
	}
	if (f->lines + 1 < f->height)
		add_boxes(f, a, f->height - f->lines - 1);
	add_foot(f, STR("j k enter r q"), STR("j k move   enter message   r look again   q quit"));
}

/* ---- One message ---- */

static void
draw_message(struct top *t, struct frame *f)
{
	const struct mr_need *n = &t->now.needs[t->chosen];
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error err = { 0 };
	struct mr_room *room = t->cli->room;
	bool color = t->cli->color, dead = n->kind == MR_NEED_FAILED || n->kind == MR_NEED_DEAD;
	char queue[MR_ADDRESS_MAX + 1];
	size_t i = 0;

	add_wrapped(f, STYLE_BOLD, "", n->why, f->height > 8 ? 2 : 1);
	/* A question is in the mailbox of the one who asked, too: among what was sent. */
	if (n->id[0] && (dead ? mr_dead_get(room, n->id, &msg, queue, &err)
			      : mr_fetch(room, n->agent, n->id, &msg, &err)) == MR_OK) {
		t->cli->color = false; /* lines are cut here, and what colours them would be, too */
		text_message(t->cli, &text, 0, &msg);
		t->cli->color = color;
	} else {
		(void)fence_add(&text, str_of(n->id[0] ? err.message : n->why), out_form(t->cli, FENCE_LINE), 0);
	}
	for (struct mr_str rest = buf_str(&text), line; f->lines + 1 < f->height && str_line(&rest, &line);) {
		/* Long lines go on in the next. */
		do {
			struct mr_str part = utf8_fit(line, f->width);

			part.len = part.len > 0 ? part.len : line.len;
			if (i++ >= t->scrolled && f->lines + 1 < f->height)
				add_str(f, STYLE_PLAIN, false, part);
			line = (struct mr_str){ line.ptr + part.len, line.len - part.len };
		} while (line.len > 0);
	}
	add_foot(f, STR("j k  q back"), STR("j k scroll   q back to the list"));
	f->out.failed |= text.failed;
}

/* ---- Live ---- */

static int
start_watch(struct cli *cli, pid_t *ret_pid)
{
	int ends[2];
	pid_t parent = getpid();

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	*ret_pid = fork();
	if (*ret_pid == 0) {
		(void)sys_close(ends[0]);
		/* Waits for the room to change, for the other process; ends with it. The room was judged there. */
		struct mr_room_options options = { .no_recover = true };
		struct mr_watch *room_watch = NULL;
		struct mr_room *room = NULL;

		if (mr_room_open(mr_room_spec(cli->room), &options, &room, IGNORED) != MR_OK ||
		    mr_watch_open(room, &room_watch, IGNORED) != MR_OK)
			_exit(1);
		while (getppid() == parent) {
			bool sees = mr_watch_sees(room_watch), changed = !sees || mr_watch_wait(room_watch, WATCH_MS);

			if (!sees) /* a kind of room that rings no bell */
				(void)poll(NULL, 0, WATCH_MS);
			if (changed && sys_write(ends[1], "", 1) < 0 && errno != EAGAIN) /* rung already */
				break;
		}
		_exit(0);
	}
	(void)sys_close(ends[1]);
	return ends[0];
}

/* Of an agent's backlog the oldest message changes, and it is still the same need. */
static bool
is_same(const struct mr_need *a, const struct mr_need *b)
{
	bool backlog = a->kind == MR_NEED_UNREAD || a->kind == MR_NEED_GONE;

	return a->kind == b->kind && (backlog || strcmp(a->id, b->id) == 0) && strcmp(a->agent, b->agent) == 0 &&
	       strcmp(a->link, b->link) == 0 && strcmp(a->thread, b->thread) == 0 && strcmp(a->path, b->path) == 0;
}

static void
look(struct top *t)
{
	struct mr_attention now = { 0 };
	size_t at = 0;

	t->trouble = (struct mr_error){ 0 };
	if (mr_attention(t->cli->room, &t->options, &now, &t->trouble) != MR_OK)
		return; /* what was seen last stays, with the reason */
	/* The mark stays on what it was on; a message that was open and needs nobody any more is closed. */
	while (t->now.n > 0 && at < now.n && !is_same(&t->now.needs[t->chosen], &now.needs[at]))
		at++;
	if (t->now.n > 0 && at < now.n)
		t->chosen = at;
	else
		t->open = false;
	if (t->chosen >= now.n)
		t->chosen = now.n > 0 ? now.n - 1 : 0;
	mr_attention_done(&t->now);
	t->now = now;
}

/* False: quit. */
static bool
obey(struct top *t, enum key key)
{
	size_t page = t->height > 4 ? t->height - 4 : 1, *at = t->open ? &t->scrolled : &t->chosen;
	size_t last = t->open ? SIZE_MAX : t->now.n > 0 ? t->now.n - 1 : 0;

	if (key == KEY_QUIT || key == KEY_BACK) {
		if (!t->open)
			return key == KEY_BACK;
		t->open = false;
	} else if (key == KEY_ENTER && !t->open && t->now.n > 0) {
		t->open = true;
		t->scrolled = 0;
	} else if (key == KEY_UP || key == KEY_PAGE_UP) {
		size_t step = key == KEY_UP ? 1 : page;

		*at -= *at < step ? *at : step;
	} else if (key == KEY_DOWN || key == KEY_PAGE_DOWN || key == KEY_ENTER) {
		*at += key == KEY_PAGE_DOWN ? page : 1;
	} else if (key == KEY_HOME) {
		*at = 0;
	} else if (key == KEY_LAST && !t->open) {
		*at = last;
	}
	if (!t->open && t->chosen > last)
		t->chosen = last;
	return true;
}

static void
run(struct top *t, int bell_fd)
{
	int64_t looked_ms = 0, gap_ms = LOOK_GAP_MS;
	bool rung = true, going = true;

	while (going) {
		int64_t begun_ms = clock_boot_ms(), wait_ms;

		if (begun_ms - looked_ms >= (rung ? gap_ms : LOOK_EVERY_MS)) {
			look(t);
			rung = false;
			looked_ms = clock_boot_ms();
			gap_ms = 4 * (looked_ms - begun_ms) > LOOK_GAP_MS ? 4 * (looked_ms - begun_ms) : LOOK_GAP_MS;
		}
		mr_auto(frame_done) struct frame f = { .cli = t->cli, .screen = true };

		if (!cli_window(&f.width, &f.height) || f.height == 0)
			f.width = 80, f.height = 24;
		t->height = f.height;
		(t->open && t->now.n > 0 ? draw_message : draw_list)(t, &f);
		if (!buf_ok(&f.out) || out_write(f.out.ptr, f.out.len) != 0)
			return;
		wait_ms = looked_ms + (rung ? gap_ms : LOOK_EVERY_MS) - clock_boot_ms();
		enum key key = terminal_wait(rung ? -1 : bell_fd, wait_ms > 0 ? wait_ms : 0);

		if (key == KEY_BELL) {
			char bytes[64];
			ssize_t n = sys_read(bell_fd, bytes, sizeof bytes);

			rung = n > 0;
			bell_fd = n == 0 ? -1 : bell_fd; /* nobody watches any more: looks at intervals go on */
		}
		rung |= key == KEY_REFRESH;
		looked_ms = key == KEY_REFRESH ? 0 : looked_ms;
		going = key != KEY_END && obey(t, key);
	}
}

static enum mr_rc
live(struct top *t)
{
	pid_t watcher = -1;
	int bell_fd = start_watch(t->cli, &watcher);
	enum mr_rc rc = terminal_begin(&t->cli->err);

	if (rc == MR_OK)
		run(t, bell_fd);
	if (watcher > 0) {
		(void)kill(watcher, SIGTERM);
		(void)waitpid(watcher, NULL, 0);
	}
	if (bell_fd >= 0)
		(void)sys_close(bell_fd);
	if (rc == MR_OK)
		terminal_end();
	return rc;
}

/* ---- The command ---- */

static void
top_done(struct top *t)
{
	mr_attention_done(&t->now);
}

int
cmd_top(struct cli *cli, const struct top_options *o)
{
	mr_auto(top_done) struct top t = { .cli = cli };

	t.options = (struct mr_attention_options){ .unread_ms = o->unread_ms, .limit = (size_t)o->limit };
	if (!cli->json && !o->once && cli->out_tty && isatty(0) && !cli->sink) {
		TRY_CLI(live(&t));
		return EXIT_DONE;
	}
	TRY_CLI(mr_attention(cli->room, &t.options, &t.now, &cli->err));
	const struct mr_attention *a = &t.now;

	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_cells(&j, CELLS(kv_open(""), kv_time("at", a->at_ms), kv_size("agents", a->boxes_n),
				   kv_size("unread", a->unread), kv_size("held", a->held), kv_size("dead", a->dead),
				   kv_time("oldest", a->oldest_ms), kv_size("came", a->came), kv_size("seen", a->seen),
				   kv_size("more", a->more), kv_list("needs")));
		for (const struct mr_need *n = a->needs; n < a->needs + a->n; n++) {
			json_cells(
			    &j, CELLS(kv_open(""), kv_str("kind", mr_need_word(n->kind)),
				    kv_bool("pressing", n->pressing), kv_opt("id", n->id), kv_opt("agent", n->agent),
				    kv_opt("queue", n->queue), kv_opt("link", n->link), kv_opt("thread", n->thread),
				    kv_opt("path", n->path), kv_opt("from", n->from), kv_opt("subject", n->subject),
				    kv_str("priority", mr_priority_word(n->priority)), kv_size("count", n->count),
				    kv_time("since", n->since_ms), kv_time("due", n->due_ms), kv_str("why", n->why),
				    kv_list("actions")));
			for (const struct mr_action *act = n->actions; act < n->actions + n->actions_n; act++)
				json_cells(
				    &j, CELLS(kv_open(""), kv_str("label", act->label), kv_words("command", act->words),
					    kv_bool("text", act->text), kv_close()));
			json_cells(&j, CELLS(kv_close(), kv_close()));
		}
		out_json_line(cli, &j);
		return EXIT_DONE;
	}
	mr_auto(frame_done) struct frame f = { .cli = cli, .height = NO_LIMIT };
	size_t lines;

	if (!cli_window(&f.width, &lines))
		f.width = 100;
	add_head(&f, a);
	for (size_t i = 0; i < a->n; i++) {
		add_need(&f, a, i, false);
		add_wrapped(&f, STYLE_DIM, "        ", a->needs[i].why, NO_LIMIT);
	}
	if (a->more > 0)
		add_more(&f, a->more);
	if (a->n == 0)
		add_quiet(&f, a);
	out_fenced(cli, &f.out);
	return EXIT_DONE;
}
