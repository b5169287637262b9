/* SPDX-License-Identifier: MIT */
/* cmd_picture.c - who told whom, drawn: the model is the office's, the drawing src/picture's. */
#include "helptext.h"

static void
print_json(struct cli *cli, const struct mr_picture *p)
{
	struct json j = JSON_INIT(&cli->out);

	json_cells(&j, CELLS(kv_open(""), kv_opt("title", p->title), kv_time("from", p->from_ms),
			   kv_time("to", p->to_ms), kv_list("lanes")));
	for (const struct mr_lane *l = p->lanes; l < p->lanes + p->lanes_n; l++)
		json_cells(&j, CELLS(kv_open(""), kv_str("name", l->name), kv_int("life", l->life),
				   kv_time("born", l->born_ms), kv_time("gone", l->died_ms), kv_close()));
	json_cells(&j, CELLS(kv_close(), kv_list("messages")));
	for (const struct mr_arrow *a = p->arrows; a < p->arrows + p->arrows_n; a++) {
		mr_auto(mr_names_done) struct mr_names to = { 0 }, unread = { 0 };

		for (size_t k = 0; k < a->to_n; k++) {
			(void)names_add(&to, str_of(p->lanes[a->to[k]].name)); /* out of memory: one fewer */
			if (!a->read[k])
				(void)names_add(&unread, str_of(p->lanes[a->to[k]].name));
		}
		json_cells(&j, CELLS(kv_open(""), kv_str("id", a->id), kv_str("thread", a->thread),
				   kv_time("date", a->at_ms), kv_str("from", p->lanes[a->from].name),
				   kv_names("to", &to), kv_names("unread", &unread), kv_str("subject", a->subject),
				   kv_opt("type", a->type), kv_str("priority", mr_priority_word(a->priority)),
				   kv_bool("answer", a->answer), kv_bool("question", a->question), kv_close()));
	}
	json_cells(&j, CELLS(kv_close(), kv_list("held")));
	for (const struct mr_bar *b = p->bars; b < p->bars + p->bars_n; b++)
		json_cells(
		    &j, CELLS(kv_open(""), kv_str("id", b->id), kv_str("agent", p->lanes[b->lane].name),
			    kv_time("from", b->from_ms), kv_time("to", b->to_ms), kv_str("how", b->how), kv_close()));
	json_cells(&j, CELLS(kv_close(), kv_size("left_out", p->left_out)));
	out_json_line(cli, &j);
}

int
cmd_picture(struct cli *cli, const struct picture_options *o)
{
	mr_auto(mr_picture_done) struct mr_picture picture = { 0 };
	struct mr_picture_options options = {
		.thread = cli->argc > 0 ? cli->argv[0] : NULL, .since_ms = o->since_ms, .limit = (size_t)o->limit
	};

	TRY_CLI(mr_picture(cli->room, cli->as_option ? cli->as_option : "operator", &options, &picture, &cli->err));
	if (cli->json) {
		print_json(cli, &picture);
	} else if (o->text || (cli->out_tty && !o->output)) {
		size_t width = (size_t)o->width;
		mr_auto(free_ptr) char *text = NULL;
		mr_auto(buf_done) struct buf fenced = BUF_INIT;
		size_t lines, len;

		if (width == 0 && !cli_window(&width, &lines))
			width = 80;
		TRY_CLI(mr_picture_text(&picture, width, &text, &len, &cli->err));
		(void)fence_add(&fenced, (struct mr_str){ text, len }, out_form(cli, FENCE_TEXT), 0);
		out_fenced(cli, &fenced);
	}
	if (o->output || (!cli->json && !o->text && !cli->out_tty)) {
		mr_auto(free_ptr) char *svg = NULL;
		size_t len;

		TRY_CLI(mr_picture_svg(&picture, NULL, &svg, &len, &cli->err));
		if (o->output)
			TRY_CLI(cli_write_file(o->output, (struct mr_str){ svg, len }, &cli->err));
		else
			buf_add(&cli->out, (struct mr_str){ svg, len });
		if (o->output && !cli->json)
			fence_addf(&cli->out, "%s: %s\n", o->output, counted(picture.arrows_n, "message").text);
	}
	return EXIT_DONE;
}
