/* SPDX-License-Identifier: MIT */
/*
 * cmd_status.c - bare `mailroom`: who you are, the room, unread mail, who is live; to newcomers six commands. It is
 * what an agent types first, so it works without an identity; a person on a terminal sees what needs
 * attention before all else.
 */
#include "base/text.h"
#include "cli/roster.h"
#include "helptext.h"

#define DEAD_COUNTED 1000

struct status {
	struct roster roster;
	struct mr_counts mine;
	struct mr_error nobody; /* why there is no identity, and the line to type */
	struct mr_names problems;
};

static void
status_done(struct status *s)
{
	roster_done(&s->roster);
	mr_names_done(&s->problems);
}

static void
add_problem(struct status *s, struct buf *text)
{
	(void)names_add(&s->problems, buf_str(text)); /* out of memory: one line fewer */
	buf_clear(text);
}

static void
find_problems(struct cli *cli, struct status *s)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error err = { 0 };
	struct mr_storage storage = { 0 };
	size_t dead = 0;

	for (size_t i = 0; i < s->roster.n; i++) {
		const struct roster_entry *e = &s->roster.v[i];

		if (e->presence != MR_GONE || e->agent.life == 0 || e->counts.unread == 0)
			continue;
		buf_addf(&text, "%s is gone, with ", e->agent.name);
		out_count(&text, e->counts.unread, "unread message");
		add_problem(s, &text);
	}
	if (dead_letters(cli, DEAD_COUNTED, &dead, &err) == MR_OK && dead > 0) {
		out_count(&text, dead, "dead letter");
		buf_adds(&text, dead == DEAD_COUNTED ? " or more: mailroom dead list" : ": mailroom dead list");
		add_problem(s, &text);
	}
	if (mr_room_storage(cli->room, &storage, &err) == MR_OK && !storage.power_safe) {
		buf_addf(&text, "a power cut can lose mail here (%s): %s", storage.file_system, storage.reason);
		add_problem(s, &text);
	}
}

static bool
count_work(void *ctx, const struct mr_message *msg)
{
	(void)msg;
	++*(size_t *)ctx;
	return true;
}

/* What is in one's hands is mail of one's own and work of queues. */
static enum mr_rc
count_mine(struct cli *cli, struct mr_counts *ret, struct mr_error *err)
{
	enum mr_rc rc = mr_count(cli->room, cli->self.agent, ret, err);

	if (rc == MR_NOTFOUND) { /* a name in a variable that has no mailbox here yet */
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	return rc == MR_OK ? mr_queue_held(cli->room, cli->self.agent, NULL, count_work, &ret->held, err) : rc;
}

static enum mr_rc
gather(struct cli *cli, struct status *s, struct mr_error *err)
{
	/* Looking into every mailbox is for those who watch the fleet. */
	bool all = cli->out_tty || cli->json;

	if (cli_know_self(cli, &s->nobody) == MR_OK && count_mine(cli, &s->mine, err) != MR_OK)
		return err->code;
	TRY(roster_load(cli, all, &s->roster, err));
	if (all)
		find_problems(cli, s);
	return MR_OK;
}

/* ---- JSON ---- */

static void
json_present(struct json *j, const struct roster *roster, const char *state)
{
	json_key(j, state);
	json_open(j, '[');
	for (size_t i = 0; i < roster->n; i++) {
		if (strcmp(roster_state(&roster->v[i]), state) == 0)
			json_str(j, str_of(roster->v[i].agent.name));
	}
	json_close(j);
}

static void
print_json(struct cli *cli, const struct status *s)
{
	struct json j = JSON_INIT(&cli->out);

	json_open(&j, '{');
	json_key_str(&j, "agent", cli->self_known ? cli->self.agent : NULL);
	json_key_int(&j, "life", (int64_t)cli->self.life);
	json_key_str(&j, "how", cli->self_known ? cli->self.how : s->nobody.message);
	json_key_str(&j, "hint", cli->self_known ? NULL : s->nobody.hint);
	json_key_str(&j, "room", mr_room_name(cli->room));
	json_key_str(&j, "spec", mr_room_spec(cli->room));
	json_key_str(&j, "why", cli->place.why);
	json_key_int(&j, "unread", (int64_t)s->mine.unread);
	json_key_int(&j, "urgent", (int64_t)s->mine.urgent);
	json_key_int(&j, "held", (int64_t)s->mine.held);
	json_present(&j, &s->roster, "live");
	json_present(&j, &s->roster, "unknown");
	json_present(&j, &s->roster, "gone");
	json_key_names(&j, "problems", &s->problems);
	out_json_line(cli, &j);
}

/* ---- Text ---- */

static void
add_label(struct cli *cli, const char *label)
{
	out_styled(cli, &cli->out, STYLE_DIM, label);
}

static void
print_self(struct cli *cli, const struct status *s)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;
	struct buf *out = &cli->out;

	add_label(cli, "you   ");
	if (cli->self_known) {
		text_name(cli, &name, cli->self.agent);
		out_colored(cli, out, STYLE_BOLD, buf_str(&name));
		if (mr_room_has_lives(cli->room))
			buf_addf(out, ", life %u", cli->self.life);
		buf_adds(out, " (");
		(void)fence_add(out, str_of(cli->self.how), FENCE_LINE, 0);
		buf_adds(out, ")\n");
		add_label(cli, "mail  ");
		buf_addf(out, "%zu unread", s->mine.unread);
		if (s->mine.urgent > 0)
			buf_addf(out, ", %zu of it urgent", s->mine.urgent);
		if (s->mine.held > 0)
			buf_addf(out, ", %zu in your hands", s->mine.held);
		buf_addc(out, '\n');
		return;
	}
	(void)fence_add(out, str_of(s->nobody.message), FENCE_LINE, 0);
	buf_adds(out, "\n      ");
	(void)fence_add(out, str_of(s->nobody.hint[0] ? s->nobody.hint : "mailroom register NAME"), FENCE_LINE, 0);
	buf_addc(out, '\n');
}

static void
print_present(struct cli *cli, const struct roster *roster, const char *state)
{
	struct buf *out = &cli->out;
	size_t shown = 0, more = 0;

	for (size_t i = 0; i < roster->n; i++) {
		if (strcmp(roster_state(&roster->v[i]), state) != 0)
			continue;
		if (shown == 12) {
			more++;
			continue;
		}
		if (shown++ == 0) {
			buf_adds(out, "      ");
			buf_addf(out, "%s: ", state);
		} else {
			buf_adds(out, ", ");
		}
		text_name(cli, out, roster->v[i].agent.name);
	}
	if (more > 0)
		buf_addf(out, " and %zu more", more);
	if (shown > 0)
		buf_addc(out, '\n');
}

static void
print_commands(struct cli *cli)
{
	static const char *const six[][2] = {
		{ "mailroom register NAME", "become an agent here" },
		{ "mailroom send NAME -s SUBJECT <<'EOF'", "send the lines up to EOF" },
		{ "mailroom inbox", "look at your mail" },
		{ "mailroom read ID", "read a message" },
		{ "mailroom reply ID <<'EOF'", "answer it" },
		{ "mailroom wait", "wait for mail" },
	};

	buf_addc(&cli->out, '\n');
	for (size_t i = mr_room_registers(cli->room) ? 0 : 1; i < 6; i++)
		fence_addf(&cli->out, "  %-39s %s\n", six[i][0], six[i][1]);
	buf_adds(&cli->out, "  more: mailroom --help, mailroom describe\n");
}

static void
print_text(struct cli *cli, const struct status *s)
{
	struct buf *out = &cli->out;

	for (size_t i = 0; i < s->problems.n; i++) {
		out_styled(cli, out, STYLE_RED, "! ");
		(void)fence_add(out, str_of(s->problems.v[i]), FENCE_LINE, 0);
		buf_addc(out, '\n');
	}
	print_self(cli, s);
	add_label(cli, "room  ");
	out_styled(cli, out, STYLE_PLAIN, mr_room_name(cli->room));
	buf_adds(out, ": ");
	(void)fence_add(out, str_of(mr_room_spec(cli->room)), FENCE_LINE, 0);
	buf_adds(out, " (");
	(void)fence_add(out, str_of(cli->place.why), FENCE_LINE, 0);
	buf_adds(out, ")\n");
	print_present(cli, &s->roster, "live");
	print_present(cli, &s->roster, "unknown");
	if (!cli->self_known) /* an agent that has a name has learnt them */
		print_commands(cli);
}

int
cmd_status(struct cli *cli)
{
	mr_auto(status_done) struct status s = { 0 };
	struct mr_error err = { 0 };

	if (gather(cli, &s, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json)
		print_json(cli, &s);
	else
		print_text(cli, &s);
	return EXIT_DONE;
}
