/* SPDX-License-Identifier: MIT */
#include "printout.h"

void
printout_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	struct printout *l = ctx;

	l->trouble++;
	cli_warn(l->cli, "skipped '%s': %s (it is kept; 'mailroom doctor' says more)", path, err->message);
}

void
printout_unreadable(struct printout *l)
{
	struct mr_error ignored = { 0 };
	size_t unread = 0;

	(void)mr_check_all(l->cli->room, l->cli->self.agent, printout_trouble, l, &unread, &ignored);
}

static void
print_turn(struct printout *l, const struct mr_message *msg)
{
	struct cli *cli = l->cli;
	size_t pieces = cli->budget.shown + cli->budget.cut, start = cli->out.len;
	size_t *grown = realloc(l->starts, (l->starts_n + 2) * sizeof(*grown));

	if (!grown) {
		cli->out.failed = true;
		return;
	}
	l->starts = grown;
	budget_turn(cli, msg, &l->brief);
	if (cli->budget.shown + cli->budget.cut == pieces)
		return;                           /* left out */
	if (l->starts_n == 0 && cli->budget.open) /* behind the line that opens the fence */
		start += strcspn(buf_z(&cli->out) + start, "\n") + 1;
	l->starts[l->starts_n++] = start;
}

void
printout_turn(struct printout *l)
{
	mr_auto(buf_done) struct buf turned = BUF_INIT;
	struct buf *out = &l->cli->out;

	if (l->starts_n < 2 || !buf_ok(out))
		return;
	l->starts[l->starts_n] = out->len;
	for (size_t i = l->starts_n; i-- > 0;)
		buf_add(&turned, (struct mr_str){ out->ptr + l->starts[i], l->starts[i + 1] - l->starts[i] });
	if (buf_ok(&turned))
		memcpy(out->ptr + l->starts[0], turned.ptr, turned.len);
	else
		out->failed = true;
}

static void
print_text(struct printout *l, const struct mr_message *msg)
{
	if (l->form == PRINTOUT_TURNS) {
		print_turn(l, msg);
		return;
	}
	if (l->form == PRINTOUT_WHOLE)
		(void)budget_message(l->cli, msg, 0);
	else
		(void)budget_line(l->cli, msg);
}

bool
printout_hides(struct printout *l, const struct mr_message *msg)
{
	struct mr_error err = { 0 };

	if (mr_is_control(l->cli->room, l->cli->self.agent, msg, &err))
		return true;
	if (err.code != MR_OK)
		cli_warn(l->cli, "the control message %s cannot be used: %s", short_id(msg->id), err.message);
	return false;
}

static bool
print_one(void *ctx, const struct mr_message *msg)
{
	struct printout *l = ctx;

	/* JSON is for programs, and what an agent sent itself it has seen. */
	if (!l->cli->json && msg->folder != MR_SENT && printout_hides(l, msg))
		return true;
	if (l->each_once) {
		if (names_has(&l->seen, msg->id))
			return true;
		if (!names_add(&l->seen, str_of(msg->id)))
			return false;
	}
	l->n++;
	if (l->cli->json)
		cli_json_message(l->cli, msg, l->form == PRINTOUT_WHOLE);
	else
		print_text(l, msg);
	return !l->stream || cli_flush(l->cli);
}

bool
printout_run(struct printout *l, struct mr_scan *scan, int *ret_exit)
{
	struct mr_error err = { 0 };

	scan->trouble = printout_trouble;
	scan->bodies = l->form != PRINTOUT_LINES;
	if (mr_scan(l->cli->room, l->cli->self.agent, scan, print_one, l, &err) == MR_OK)
		return true;
	*ret_exit = cli_fail(l->cli, &err);
	return false;
}

void
printout_done(struct printout *l)
{
	mr_names_done(&l->seen);
	free(l->starts);
	l->starts = NULL;
}
