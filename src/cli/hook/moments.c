/* SPDX-License-Identifier: MIT */
/*
 * moments.c - the command `hook`, and what is done at which moment of a session:
 *
 *	start    it is bound, registered if it is nobody; who it is, its hand-off, its mail
 *	prompt   new mail and nudges
 *	tool     urgent ones only
 *	stop     urgent mail or work in its hands: once, the turn goes on; else, in a team, its lead is told
 *	end      nothing is said; the life is gone
 *
 * In a room that was found and is not trusted nothing is done; at a start the user is told, not the model.
 *
 * At each of them but the end: mail that a command of this session showed and the model did not get is unread again.
 * At start, tool and stop work in its hands gets a new lease. What was told is remembered only after stdout took it.
 *
 * Standard input is read to its end: a harness that is still writing when its hook stops reading may take that for an
 * error. The time is limited because a harness waits for its hooks: one that hangs (a lock, a dead network file system,
 * an input that never ends) hangs the agent.
 *
 * The log is one line each in <state>/hook.log; a full one becomes hook.log.old, so there are never more than two of
 * LOG_MAX. What the harness sent, and the environment, are never written: they hold secrets. When the time is up a line
 * comes from a signal handler. It may neither take memory nor open files, and a file system that hangs is one reason
 * why it runs: the log is opened and the line written down before; the handler sets its time and calls write(2). Where
 * no log is there yet, or none can be opened, the line goes to standard error.
 */
#include "cli/hook/hook.h"

#include "base/file.h"
#include "base/sys.h"
#include "helptext.h"
#include "message/address.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define INPUT_MAX ((size_t)4 << 20)
#define TIME_LIMIT_S 5
#define END_LIMIT_S 1       /* when a session ends its hooks get little time */
#define CARRY_MOMENT_MS 400 /* for answers from linked rooms; what comes later wakes */
/* Of the record of a session: it may be long, and the last prompt is near its end. */
#define TAIL_MAX ((off_t)4 << 20)

#define LOG "hook.log"
#define LOG_MAX ((off_t)64 << 10)
#define LINE_MAX_BYTES 600
#define PIECE ((size_t)511) /* the least that is asked for; a buffer that has grown is filled */

/* ---- Standard input, the log, the time limit ---- */

/* Standard input to its end; of more than INPUT_MAX the rest is read and dropped. */
static enum mr_rc
input_read(struct buf *ret, struct mr_error *err)
{
	for (ssize_t n = 1; n > 0;) {
		if (!buf_reserve(ret, PIECE))
			return mr_nomem(err);
		n = sys_read(0, ret->ptr + ret->len, ret->cap - ret->len - 1);
		if (n < 0)
			return mr_fail_errno(err, "cannot read the event");
		ret->len = ret->len + (size_t)n < INPUT_MAX ? ret->len + (size_t)n : INPUT_MAX;
	}
	ret->ptr[ret->len] = '\0';
	return MR_OK;
}

/* One line without its time: " HARNESS EVENT: TEXT\n". */
static size_t
compose(const struct hook *h, char *ret, size_t size, const char *text)
{
	int len = snprintf(ret, size, " %s %s: %s", h->harness->name, h->event.name ? h->event.name : "?", text);
	size_t n = len < 0 ? 0 : (size_t)len < size - 1 ? (size_t)len : size - 2;

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)ret[i] < ' ' || ret[i] == 0x7f)
			ret[i] = ' ';
	ret[n] = '\n';
	ret[n + 1] = '\0';
	return n + 1;
}

void
log_line(const struct hook *h, const char *text)
{
	mr_auto(sys_close_fd) int dir = -1, fd = -1;
	mr_auto(buf_done) struct buf fenced = BUF_INIT;
	char line[LINE_MAX_BYTES];
	struct stat st;

	(void)fence_add(&fenced, str_of(text), FENCE_LINE, 0);
	if (!h->log_dir || dir_make(AT_FDCWD, h->log_dir, 0700, false, &dir, IGNORED) != MR_OK)
		return;
	if (sys_stat(dir, LOG, &st) == 0 && st.st_size > LOG_MAX)
		(void)sys_rename(dir, LOG, dir, LOG ".old");
	fd = sys_open(dir, LOG, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	time_rfc3339(clock_now_ms(), line);
	size_t n = RFC3339_LEN + compose(h, line + RFC3339_LEN, sizeof line - RFC3339_LEN, buf_z(&fenced));

	(void)sys_write_all(fd, line, n);
}

static struct {                        /* for the signal handler */
	char lines[2][LINE_MAX_BYTES]; /* it may come while the other one is written */
	char *volatile line;
	int fd;
} late;

/* Only calls that signal-safety(7) lists, and arithmetic. Nothing that this process has done so far needs an end of its
 * own: locks go with it, and what it did not say it was shown is shown again. */
static void
time_is_up(int signal_number)
{
	char *line = late.line, when[RFC3339_LEN + 1];

	(void)signal_number;
	time_rfc3339(clock_now_ms(), when);
	memcpy(line, when, RFC3339_LEN);
	(void)!write(late.fd, line, RFC3339_LEN + strlen(line + RFC3339_LEN));
	_exit(EXIT_DONE);
}

static void
time_limit_named(const struct hook *h)
{
	char *line = late.line == late.lines[0] ? late.lines[1] : late.lines[0];

	(void)compose(h, line + RFC3339_LEN, LINE_MAX_BYTES - RFC3339_LEN, "the time is up");
	late.line = line;
}

void
time_limit(const struct hook *h, int seconds)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	if (!late.line) {
		late.fd = -1;
		buf_addf(&path, "%s/" LOG, h->log_dir ? h->log_dir : "");
		if (h->log_dir && buf_ok(&path))
			late.fd = sys_open(AT_FDCWD, buf_z(&path), O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0);
		late.fd = late.fd < 0 ? 2 : late.fd;
		time_limit_named(h);
	}
	(void)signal(SIGALRM, seconds > 0 ? time_is_up : SIG_IGN);
	(void)alarm((unsigned)seconds);
}

/* ---- Who the session is ---- */

enum mr_rc
hook_know_self(struct hook *h, bool tells, struct mr_arrival *ret_arrival, struct mr_error *err)
{
	struct cli *cli = h->cli;
	bool start = h->event.moment == MOMENT_START, end = h->event.moment == MOMENT_END;

	/* The room and the worktree are those of the session's folder, wherever the hook was started. */
	if (h->event.cwd[0] == '/' && chdir(h->event.cwd) < 0)
		log_line(h, "the session's folder cannot be entered");
	cli->unheard = true;
	cli->hooked = true; /* a session that is resumed begins with the event for it */
	enum mr_rc rc = start || end ? cli_open_room(cli, err) : cli_open_as_self(cli, err);

	/* A session that was nobody does not become somebody at its end. */
	if (rc == MR_OK && end && mr_room_has(cli->room, MR_HAS_LIVES))
		cli->env.agent = cli->env.worktree = NULL;
	if (rc == MR_OK && end)
		rc = cli_know_self(cli, err);
	cli->self_known = false; /* answers that did not come are told with the mail */
	if (!cli->room)
		return rc;
	/* Only a session has hooks: what a worktree says of who lived there is not enough to speak to somebody. */
	if (!cli->env.session && !cli->as_option && mr_room_has(cli->room, MR_HAS_LIVES))
		return mr_fail(err, MR_NOTFOUND, "the event has no session id");
	ret_arrival->self = cli->self;
	if (start && tells)
		(void)telling_begin(h, 0);
	if (start || (h->event.moment == MOMENT_PROMPT && (rc == MR_NOTFOUND || rc == MR_REFUSED))) {
		const char *source = start ? h->event.source : "";
		bool resumed = strcmp(source, "resume") == 0, cleared = strcmp(source, "clear") == 0;

		*err = (struct mr_error){ 0 };
		rc = mr_arrive(cli->room, &cli->env,
		    &(struct mr_arrive_options){ .begins = start,
			.goes_on = cleared || resumed || strcmp(source, "compact") == 0,
			.cleared = cleared,
			.anew = start && tells && !resumed && !h->repeat },
		    ret_arrival, err);
	}
	if (rc != MR_OK)
		return rc;
	cli->self = ret_arrival->self;
	if (start)
		cli_seen(cli);
	return MR_OK;
}

enum mr_inject_format
hook_format(const struct hook *h)
{
	return mr_room_lead(h->cli->room) ? MR_INJECT_TEAMS : MR_INJECT_REMINDER;
}

/* False: stdout did not take it. */
static bool
answer(struct hook *h, enum answer kind, struct mr_str text)
{
	if (!answer_fits(h->harness, &h->event, kind) || text.len == 0)
		return false;
	answer_write(h->harness, &h->event, kind, text, &h->cli->out);
	if (cli_flush(h->cli))
		return true;
	log_line(h, "the harness did not take the answer");
	return false;
}

/* ---- Start, prompt, tool ---- */

static void
count(void *ctx, const char *path, const struct mr_error *err)
{
	(void)path, (void)err;
	++*(size_t *)ctx;
}

/* What a session is told at its start. Stated as facts: models take what reads like orders from nowhere for an attack.
 */
static void
add_greeting(struct hook *h, const struct mr_arrival *arrival, struct buf *out)
{
	struct cli *cli = h->cli;
	const struct mr_self *self = &arrival->self;
	mr_auto(buf_done) struct buf name = BUF_INIT;
	size_t unread = 0, unreadable = 0;

	if (mr_room_has(cli->room, MR_HAS_LIVES))
		buf_adds(&name, self->agent);
	else
		foreign_from_address(self->agent, &name);
	fence_addf(out, "<system-reminder>\nThis session is the agent '%s' of the mailroom '%s'", buf_z(&name),
	    mr_room_name(cli->room));
	if (self->life > 0)
		buf_addf(out, ", life %u", self->life);
	buf_adds(out, ": other agents write to it by that name, with `mailroom send`.\n");
	if (arrival->was[0])
		fence_addf(out, "Before, this session was '%s', life %u; another session took that name since. ",
		    arrival->was, arrival->was_life);
	if (arrival->was[0] && strcmp(arrival->was, self->agent) == 0)
		buf_addf(out,
		    "That one is gone, and this session has the name again, as life %u: mail and work here may be "
		    "meant for the one in between.\n",
		    self->life);
	else if (arrival->was[0])
		fence_addf(out, "Mail to '%s' goes to that one now, and no longer comes here.\n", arrival->was);
	if (arrival->maybe[0])
		fence_addf(out,
		    "Before /clear it may have been one of '%s'; the harness does not say which. If the user says "
		    "which one this terminal was: mailroom takeover NAME.\n",
		    arrival->maybe);
	if (!harness_says_session(h->harness))
		fence_addf(out, "Nothing tells a shell here which session it belongs to: mailroom --as '%s' ...\n",
		    buf_z(&name));
	if (mr_check(cli->room, cli->self.agent, count, &unreadable, &unread, IGNORED) == MR_OK) {
		if (unread > 0)
			buf_addf(out, "%s: mailroom inbox. ", counted(unread, "unread message").text);
		else
			buf_adds(out, unreadable > 0 ? "No unread mail that can be read. " : "No unread mail. ");
	}
	if (arrival->returned > 0)
		buf_addf(out, "%s that the last life had in its hands came back. ",
		    counted(arrival->returned, "message").text);
	buf_adds(out, "`mailroom describe` explains the commands. Helpers (subagents) share this mailbox: they may "
		      "send, and leave read, drain and recv to this session.\n</system-reminder>\n");
}

/* Mostly there is nothing to tell, so the lock is taken when something was found. */
static void
tell(struct hook *h, const struct mr_arrival *arrival)
{
	static const char *const doors[] = {
		[MOMENT_START] = "start", [MOMENT_PROMPT] = "prompt", [MOMENT_TOOL] = "tool"
	};
	struct cli *cli = h->cli;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_injection *mail = NULL;
	struct mr_error err = { 0 };
	bool start = h->event.moment == MOMENT_START, keep = false;
	bool rung = h->event.moment == MOMENT_PROMPT && mr_bell_is(cli->room, &cli->self, h->event.prompt, &keep);
	enum mr_rc rc;

	if (!answer_fits(h->harness, &h->event, ANSWER_CONTEXT) || h->repeat)
		return;
	do {
		mr_inject_close(mail);
		mail = NULL;
		rc = mr_inject_open(cli->room, &cli->self,
		    h->event.moment == MOMENT_TOOL ? MR_INJECT_URGENT : MR_INJECT_ALL, hook_format(h), &mail, &err);
	} while (rc == MR_OK && telling_begin(h, h->began_ms));
	if (start || arrival->registered)
		add_greeting(h, arrival, &text);
	if (rc == MR_OK)
		buf_adds(&text, mr_inject_text(mail));
	else if (rc != MR_EMPTY)
		log_line(h, err.message);
	if (buf_ok(&text) && answer(h, ANSWER_CONTEXT, buf_str(&text))) {
		if (mail && answer_reaches(h->harness, &h->event) &&
		    mr_inject_shown(mail, doors[h->event.moment], &err) != MR_OK)
			log_line(h, err.message);
		telling_note(h);
	}
	mr_inject_close(mail);
	if (rung && text.len == 0 && !keep)
		(void)answer(h, ANSWER_BLOCK, STR("mailroom: the mail that this bell was for has been read"));
	if (rung || (start && text.len > 0)) /* a start may come with the prompt that a ring was */
		mr_bell_end(cli->room, &cli->self, text.len > 0 || keep ? MR_BELL_ANSWERED : MR_BELL_STALE);
}

/* ---- Stop ---- */

/* True: the turn goes on. */
static bool
hold_up(struct hook *h)
{
	struct cli *cli = h->cli;
	struct mr_injection *stop = NULL;
	struct mr_error err = { 0 };
	enum mr_rc rc;

	if (h->event.stopping || h->event.aborted)
		return false;
	do {
		mr_inject_close(stop);
		stop = NULL;
		rc = mr_inject_open(cli->room, &cli->self, MR_INJECT_STOP, hook_format(h), &stop, &err);
	} while (rc == MR_OK && telling_begin(h, h->began_ms));
	bool held_up = rc == MR_OK && answer(h, ANSWER_GO_ON, str_of(mr_inject_text(stop)));

	if (held_up) {
		rc = mr_inject_shown(stop, "stop", &err);
		telling_note(h);
	}
	if (rc != MR_OK && rc != MR_EMPTY)
		log_line(h, err.message);
	mr_inject_close(stop);
	return held_up;
}

/* A worker of a team that stops tells its lead, as the workers of the original do by themselves. */
static void
tell_lead(struct hook *h)
{
	struct cli *cli = h->cli;
	const char *lead = mr_room_lead(cli->room), *to[] = { lead, NULL };
	const char *path = h->event.transcript;
	mr_auto(buf_done) struct buf text = BUF_INIT, summary = BUF_INIT;
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	struct mr_header fields[2] = { { "idleReason", h->event.aborted ? "interrupted" : "available" } };
	struct mr_draft draft = {
		.to = to, .type = "idle_notification", .fields = fields, .fields_n = 1, .no_text = true, .body = ""
	};
	struct mr_error err = { 0 };

	if (!lead || ascii_caseeq(cli->self.agent, lead))
		return;
	/* Whom it wrote to last. The path comes from the harness, which knows its own files; with a wrong one there is
	 * no summary. */
	mr_auto(sys_close_fd) int fd = path[0] == '/' ? sys_open_user(path, O_NONBLOCK) : -1;
	struct stat st;

	if (fd >= 0 && sys_stat_fd(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		off_t from = st.st_size > TAIL_MAX ? st.st_size - TAIL_MAX : 0;
		size_t want = (size_t)(st.st_size - from);
		ssize_t n = buf_reserve(&text, want) ? sys_pread(fd, text.ptr, want, from) : -1;

		text.len = n > 0 ? (size_t)n : 0;
		(void)transcript_last_peer(buf_str(&text), lead, &summary);
	}
	if (buf_ok(&summary) && summary.len > 0)
		fields[draft.fields_n++] = (struct mr_header){ "summary", buf_z(&summary) };
	if (mr_send(cli->room, &cli->self, &draft, &receipt, &err) != MR_OK)
		log_line(h, err.message);
}

/* ---- Every moment ---- */

static void
run_moment(struct hook *h)
{
	struct cli *cli = h->cli;
	enum moment moment = h->event.moment;
	struct mr_arrival arrival = { 0 };
	struct mr_error err = { 0 };
	enum mr_rc rc = hook_know_self(h, true, &arrival, &err);

	if (rc == MR_UNTRUSTED) {
		if (moment == MOMENT_START)
			(void)answer(h, ANSWER_USER,
			    STR("mailroom: a room in this folder is not trusted, and is not used; if it is yours, "
				"type in a terminal: mailroom trust"));
		return;
	}
	/* Outside of any room, and nobody in the middle of a session, is nothing to write down each time. */
	if (rc != MR_OK && (rc != MR_NOTFOUND || (cli->room && moment == MOMENT_START) || cli->room_option))
		log_line(h, err.message);
	if (rc != MR_OK)
		return;
	/* Did the model get what commands of this session showed? A call that names us is the one that showed it, and
	 * is over now; what another, interrupted or in the background, showed is judged when the turn is over. */
	if (h->harness->shows_results && (moment == MOMENT_TOOL || moment == MOMENT_START))
		mr_confirm_begin(cli->room, &cli->self, h->harness->name, moment == MOMENT_TOOL);
	if (h->event.subagent) /* a helper shares the mailbox of its session, and is told nothing */
		return;
	if (h->harness->shows_results && moment != MOMENT_END)
		mr_confirm(cli->room, &cli->self, h->event.result.ptr, h->event.result.len,
		    moment != MOMENT_TOOL || h->event.mailroom);
	if (moment == MOMENT_END) {
		session_forget(h);
		/* After /clear and resume the agent goes on as another session, which has a waiter of its own. */
		if (strcmp(h->event.reason, "clear") != 0 && strcmp(h->event.reason, "resume") != 0 &&
		    mr_leave(cli->room, &cli->self, &err) != MR_OK)
			log_line(h, err.message);
		return;
	}
	if (moment != MOMENT_TOOL)
		cli_carry_first(cli, CARRY_MOMENT_MS);
	if (moment != MOMENT_STOP)
		tell(h, &arrival);
	else if (!hold_up(h))
		tell_lead(h);
	/* Not at a prompt, which must cost next to nothing: a tool or a stop follows. */
	if (moment != MOMENT_PROMPT && mr_claims_keep(cli->room, &cli->self, &err) != MR_OK)
		log_line(h, err.message);
}

/* ---- The command ---- */

/* A harness takes 2 for "blocked": a mistake in its settings must not stop its user at every prompt. With --wait it
 * means "awake". */
int
hook_exit(int code)
{
	return code == HOOK_WAKES ? 2 : code == EXIT_USAGE ? EXIT_FAILED : code;
}

static bool
take(void *ctx, const struct cli *cli, struct mr_str text)
{
	(void)ctx, (void)cli;
	return out_write(text.ptr, text.len) == 0;
}

/* What the library and the other parts of the command say goes to the log alone. */
static void
say(void *ctx, const char *code, const char *message, const char *hint)
{
	(void)hint;
	if (code)
		log_line(ctx, message);
}

int
cmd_hook(struct cli *cli, const struct hook_options *o)
{
	struct hook *h = arena_alloc(&cli->own, sizeof *h);             /* the sink is used after this function */
	mr_auto(buf_done) struct buf text = BUF_INIT, words = BUF_INIT; /* a part of the text is in the event */
	const char *problem = NULL;
	struct mr_error err = { 0 };

	if (!h)
		return EXIT_DONE;
	*h = (struct hook){
		.cli = cli, .harness = harness_named(cli->argv[0]), .began_ms = clock_boot_ms(), .telling = -1
	};
	h->sink = (struct cli_sink){ .take = take, .say = say, .ctx = h };
	if (!h->harness) {
		harness_names(&words);
		return cli_usage(cli, "'%.40s' is not a harness with hooks: give %s", cli->argv[0], buf_z(&words));
	}
	if (o->wait && h->harness->bell == BELL_NONE)
		return cli_usage(cli, "--wait: a session of %s cannot be woken by its hooks", cli->argv[0]);
	h->log_dir = env_state_dir(cli);
	time_limit(h, TIME_LIMIT_S);
	cli->sink = &h->sink;
	cli->door = MR_DOOR_HOOK;
	if (input_read(&text, &err) != MR_OK) {
		log_line(h, err.message);
		return EXIT_DONE;
	}
	if (!event_parse(h->harness, buf_str(&text), &cli->own, &h->event, &problem)) {
		buf_addf(&words, "not an event: %s", problem);
		log_line(h, buf_z(&words));
		return EXIT_DONE;
	}
	if (h->event.moment == MOMENT_NONE ||
	    (h->event.subagent && !(h->event.moment == MOMENT_TOOL && h->harness->shows_results)))
		return EXIT_DONE;
	time_limit_named(h);
	if (h->event.session[0])
		cli->caller_session = cli_text(cli, "%s-%s", h->harness->name, h->event.session);
	if (h->event.moment == MOMENT_END)
		time_limit(h, END_LIMIT_S);
	if (o->wait)
		return waiter_run(h, o->gather_ms);
	run_moment(h);
	return EXIT_DONE;
}
