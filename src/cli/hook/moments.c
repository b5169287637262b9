/* SPDX-License-Identifier: MIT */
/*
 * moments.c - what is done at which moment of a session:
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
 */
#include "cli/hook/hook.h"

#include <unistd.h>

#define BRING_MOMENT_MS 400 /* for answers from linked rooms; what comes later wakes */

static bool
source_is(const struct event *event, const char *word)
{
	return strcmp(event->source, word) == 0;
}

static enum mr_rc
arrive(struct cli *cli, const struct event *event, bool tells, struct mr_arrival *ret, struct mr_error *err)
{
	bool start = event->moment == MOMENT_START;
	struct mr_arrive_options how = {
		.begins = start,
		.goes_on =
		    start && (source_is(event, "clear") || source_is(event, "compact") || source_is(event, "resume")),
		.cleared = start && source_is(event, "clear"),
		.anew = start && tells && !source_is(event, "resume") && !once_is_repeat(),
	};

	*err = (struct mr_error){ 0 };
	return mr_arrive(cli->room, &cli->env, &how, ret, err);
}

enum mr_rc
moment_know_self(
    struct cli *cli, const struct event *event, bool tells, struct mr_arrival *ret_arrival, struct mr_error *err)
{
	bool start = event->moment == MOMENT_START;

	/* The room and the worktree are those of the session's folder, wherever the hook was started. */
	if (event->cwd[0] == '/' && chdir(event->cwd) < 0)
		log_line("the session's folder cannot be entered");
	cli->unheard = true;
	cli->hooked = true; /* a session that is resumed begins with the event for it */
	bool end = event->moment == MOMENT_END;
	enum mr_rc rc = start || end ? cli_open_room(cli, err) : cli_open_as_self(cli, err);

	/* A session that was nobody does not become somebody at its end. */
	if (rc == MR_OK && end && mr_room_has_lives(cli->room))
		cli->env.agent = cli->env.worktree = NULL;
	if (rc == MR_OK && end)
		rc = cli_know_self(cli, err);

	cli->self_known = false; /* answers that did not come are told with the mail */
	if (!cli->room)
		return rc;
	/* Only a session has hooks: what a worktree says of who lived there is not enough to speak to somebody. */
	if (!cli->env.session && !cli->as_option && mr_room_has_lives(cli->room))
		return mr_fail(err, MR_NOTFOUND, "the event says no session id");
	ret_arrival->self = cli->self;
	if (start && tells)
		once_begin(cli, event);
	if (start || (event->moment == MOMENT_PROMPT && (rc == MR_NOTFOUND || rc == MR_REFUSED)))
		rc = arrive(cli, event, tells, ret_arrival, err);
	if (rc != MR_OK)
		return rc;
	cli->self = ret_arrival->self;
	if (start)
		mr_self_seen(cli->room, &cli->self);
	return MR_OK;
}

enum mr_inject_format
moment_format(const struct cli *cli)
{
	return strcmp(mr_room_kind(cli->room), "teams") == 0 ? MR_INJECT_TEAMS : MR_INJECT_REMINDER;
}

/* False: stdout did not take it. */
static bool
answer(struct cli *cli, const struct harness *harness, const struct event *event, enum answer kind, struct mr_str text)
{
	if (!answer_fits(harness, event, kind) || text.len == 0)
		return false;
	answer_write(harness, event, kind, text, &cli->out);
	if (cli_flush(cli))
		return true;
	log_line("the harness did not take the answer");
	return false;
}

/* ---- Start, prompt, tool ---- */

static enum mr_rc
open_mail(struct cli *cli, const struct event *event, struct mr_injection **ret, struct mr_error *err)
{
	return event->moment == MOMENT_TOOL ? mr_inject_open_urgent(cli->room, &cli->self, moment_format(cli), ret, err)
					    : mr_inject_open(cli->room, &cli->self, moment_format(cli), ret, err);
}

/* Mostly there is nothing to tell, and nothing to keep others from. */
static enum mr_rc
open_mail_alone(struct cli *cli, const struct event *event, struct mr_injection **ret, struct mr_error *err)
{
	enum mr_rc rc = open_mail(cli, event, ret, err);

	if (rc != MR_OK || event->moment == MOMENT_START)
		return rc;
	mr_inject_close(*ret);
	*ret = NULL;
	once_begin(cli, event);
	return open_mail(cli, event, ret, err);
}

static void
tell(struct cli *cli, const struct harness *harness, const struct event *event, const struct mr_arrival *arrival)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_injection *mail = NULL;
	struct mr_error err = { 0 };

	if (!answer_fits(harness, event, ANSWER_CONTEXT) || once_is_repeat())
		return;
	enum mr_rc rc = open_mail_alone(cli, event, &mail, &err);

	if (event->moment == MOMENT_START || arrival->registered)
		greeting_add(cli, harness, arrival, &text);
	if (rc == MR_OK)
		buf_adds(&text, mr_inject_text(mail));
	else if (rc != MR_EMPTY)
		log_error(&err);
	if (buf_ok(&text) && answer(cli, harness, event, ANSWER_CONTEXT, buf_str(&text))) {
		if (event->moment == MOMENT_START)
			once_note(event);
		if (mail && answer_reaches(harness, event) && mr_inject_shown(mail, &err) != MR_OK)
			log_error(&err);
	}
	mr_inject_close(mail);
}

/* ---- Stop ---- */

/* True: the turn goes on. */
static bool
hold_up(struct cli *cli, const struct harness *harness, const struct event *event)
{
	struct mr_stop *stop = NULL;
	struct mr_error err = { 0 };
	bool held_up = false;

	if (event->stopping || event->aborted)
		return false;
	enum mr_rc rc = mr_stop_open(cli->room, &cli->self, moment_format(cli), &stop, &err);

	if (rc == MR_OK) {
		mr_stop_close(stop);
		stop = NULL;
		once_begin(cli, event);
		rc = mr_stop_open(cli->room, &cli->self, moment_format(cli), &stop, &err);
	}
	if (rc == MR_OK)
		held_up = answer(cli, harness, event, ANSWER_GO_ON, str_of(mr_stop_text(stop)));
	if (held_up)
		rc = mr_stop_shown(stop, &err);
	if (rc != MR_OK && rc != MR_EMPTY)
		log_error(&err);
	mr_stop_close(stop);
	return held_up;
}

/* ---- End ---- */

static void
leave(struct cli *cli, const struct event *event)
{
	struct mr_error err = { 0 };

	waiter_dismiss(cli);
	once_forget(cli);
	/* The agent goes on as another session of the same process, which has a waiter of its own. */
	if (strcmp(event->reason, "clear") == 0 || strcmp(event->reason, "resume") == 0)
		return;
	if (mr_leave(cli->room, &cli->self, &err) != MR_OK)
		log_error(&err);
}

/* Did the model get what commands of this session showed? A call that names us is the one that showed it, and is over
 * now; what another, interrupted or in the background, showed is judged when the turn is over. */
static void
confirm(struct cli *cli, const struct harness *harness, const struct event *event)
{
	bool tool = event->moment == MOMENT_TOOL;

	if (event->moment == MOMENT_END || !harness->shows_results)
		return;
	if (tool || event->moment == MOMENT_START)
		mr_confirm_begin(cli->room, &cli->self, harness->name, tool);
	if (event->subagent) /* what a helper got, the session itself did not */
		return;
	mr_confirm(cli->room, &cli->self, event->result.ptr, event->result.len, !tool || event->mailroom);
}

void
moment_run(struct cli *cli, const struct harness *harness, const struct event *event)
{
	struct mr_arrival arrival = { 0 };
	struct mr_error err = { 0 };
	enum mr_rc rc = moment_know_self(cli, event, true, &arrival, &err);

	if (rc == MR_UNTRUSTED) {
		if (event->moment == MOMENT_START)
			(void)answer(cli, harness, event, ANSWER_USER,
			    STR("mailroom: a room in this folder is not trusted, and is not used: mailroom trust"));
		return;
	}
	/* Outside of any room, and nobody in the middle of a session, is nothing to write down each time. */
	if (rc != MR_OK && (rc != MR_NOTFOUND || (cli->room && event->moment == MOMENT_START) || cli->room_option))
		log_error(&err);
	if (rc != MR_OK)
		return;
	confirm(cli, harness, event);
	if (event->subagent) /* a helper shares the mailbox of its session, and is told nothing */
		return;
	if (event->moment == MOMENT_START || event->moment == MOMENT_PROMPT || event->moment == MOMENT_STOP)
		cli_bring(cli, BRING_MOMENT_MS);
	if (event->moment == MOMENT_END) {
		leave(cli, event);
		return;
	}
	if (event->moment != MOMENT_STOP)
		tell(cli, harness, event, &arrival);
	else if (!hold_up(cli, harness, event))
		idle_notify(cli, event);
	/* Not at a prompt, which must cost next to nothing: a tool or a stop follows. */
	if (event->moment != MOMENT_PROMPT && mr_claims_keep(cli->room, &cli->self, &err) != MR_OK)
		log_error(&err);
}
