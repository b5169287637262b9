/* SPDX-License-Identifier: MIT */
/* cmd_types.c - mailroom types: what message types there are, what one looks like, and how a room gets one of its own.
 */
#include "message/type.h"
#include "helptext.h"

/* ---- list ---- */

static void
say_wrong(void *ctx, const char *path, const struct mr_error *err)
{
	cli_warn(ctx, "'%s' is left out: %s", path, err->message);
}

int
cmd_types_list(struct cli *cli, const struct types_options *o)
{
	mr_auto(mr_list_done) struct mr_types all = { 0 };
	struct listing list = { .cli = cli };

	TRY_CLI(cli_open_room(cli, &cli->err));
	TRY_CLI(mr_type_list(cli->room, &all, say_wrong, cli, &cli->err));
	for (size_t i = 0; i < all.n; i++) {
		const struct mr_type *t = &all.v[i];
		const char *pack = t->pack[0] ? t->pack : "room";

		if (!o->pack || strcmp(o->pack, pack) == 0)
			list_row(&list, col("NAME", kv_str("name", t->name)), kv_opt("pack", t->pack),
			    col_str("PACK", pack), kv_str("summary", t->summary), kv_opt("subject", t->subject),
			    col("VIA", kv_str("via", t->nudge ? "nudge" : "mail")), kv_bool("control", t->routed),
			    col_name("SUMMARY", kv_str(NULL, t->summary)));
	}
	return list_end(&list, "there are no such types; `mailroom types new NAME` makes one\n");
}

/* ---- show ---- */

static const char *
body_word(enum type_body body)
{
	static const char *const words[] = { [TYPE_BODY_LINES] = "lines",
		[TYPE_BODY_JSON] = "json",
		[TYPE_BODY_TEXT] = "text",
		[TYPE_BODY_FRONT] = "front" };

	return words[body];
}

static void
show_text(struct cli *cli, const struct type_def *def)
{
	mr_auto(buf_done) struct buf lines = BUF_INIT, command = BUF_INIT;
	struct buf *out = &lines;

	fence_addf(out, "%s (%s%s): ", def->name, def->pack[0] ? "pack " : "this room's own", def->pack);
	out_styled(cli, out, STYLE_PLAIN, def->summary);
	buf_addc(out, '\n');
	out_fact(cli, out, "  ", 9, "subject", def->subject);
	for (size_t i = 0; i < def->routes.n; i++)
		out_fact(cli, out, "  ", 9, i == 0 ? "route" : "", def->routes.v[i]);
	out_fact(cli, out, "  ", 9, "via", def->nudge ? "nudge" : "mail");
	if (def->priority != MR_NORMAL)
		out_fact(cli, out, "  ", 9, "priority", mr_priority_word(def->priority));
	out_fact(cli, out, "  ", 9, "body", body_word(def->body));
	out_fact(cli, out, "  ", 9, "handler", def->handler);
	if (def->any_life)
		out_fact(cli, out, "  ", 9, "earlier", "also acted on when its sender has begun another life");
	for (size_t i = 0; i < def->fields_n; i++) {
		mr_auto(buf_done) struct buf rule = BUF_INIT;

		const struct type_field *f = &def->fields[i];

		/* "Exit: one-of MERGED ESCALATED, required if Exit=MERGED, else from rig" */
		buf_addf(&rule, "%s: %s", f->name, type_kind_word(f->kind));
		for (size_t k = 0; k < f->choices.n; k++)
			buf_addf(&rule, " %s", f->choices.v[k]);
		if (f->required && f->when_field)
			buf_addf(&rule, ", required if %s=%s", f->when_field, f->when_value);
		else if (f->required)
			buf_adds(&rule, ", required");
		if (f->only_field)
			buf_addf(&rule, ", only if %s=%s", f->only_field, f->only_value);
		buf_adds(&rule, f->in_subject ? ", in the subject" : "");
		buf_adds(&rule, f->answers ? ", of a request" : "");
		if (f->derive)
			buf_addf(&rule, ", else from %s", f->derive);
		if (f->fallback)
			buf_addf(&rule, ", else %s", f->fallback);
		out_fact(cli, out, "  ", 9, i == 0 ? "fields" : "", buf_z(&rule));
	}
	buf_addf(&command, "mailroom send TO --type %s", def->name);
	for (size_t i = 0; i < def->fields_n; i++) {
		const struct type_field *f = &def->fields[i];
		bool found = f->derive && !str_starts(str_of(f->derive), "request"); /* that is for answers */

		if (f->required && !f->when_field && !found && !f->fallback && f->kind != TYPE_LITERAL &&
		    !strstr(f->name, "[]"))
			buf_addf(&command, strchr(f->name, ' ') ? " --field '%s=...'" : " --field %s=...", f->name);
	}
	out_fact(cli, out, "  ", 9, "send", def->nudge ? "" : buf_z(&command));
	out_fenced(cli, out);
}

int
cmd_types_show(struct cli *cli, const struct types_options *)
{
	mr_auto(free_ptr) char *text = NULL, *pack = NULL;
	mr_auto(type_done) struct type_def def = { 0 };
	struct mr_str name = str_of(cli->argv[0]), rest, line;
	size_t len = 0;

	TRY_CLI(cli_open_room(cli, &cli->err));
	TRY_CLI(mr_type_text(cli->room, cli->argv[0], &text, &len, &pack, &cli->err));
	/* Asked for in another case, the file says how it is spelled; checking that is not the business of showing. */
	rest = (struct mr_str){ text, len };
	while (str_cut(&rest, '\n', &line))
		if (str_starts(line, "Type:") && str_trim((struct mr_str){ line.ptr + 5, line.len - 5 }).len > 0) {
			name = str_trim((struct mr_str){ line.ptr + 5, line.len - 5 });
			break;
		}
	const char *spelled = arena_dup(&cli->own, name);

	TRY_CLI(mr_got(spelled, &cli->err));
	TRY_CLI(type_parse((struct mr_str){ text, len }, pack, spelled, &def, &cli->err));
	if (cli->json) {
		struct listing fields = { .cli = cli, .form = LIST_ARRAY };

		for (size_t i = 0; i < def.fields_n; i++) {
			const struct type_field *f = &def.fields[i];

			list_row(&fields, kv_str("name", f->name), kv_str("kind", type_kind_word(f->kind)),
			    kv_names("choices", &f->choices), kv_bool("required", f->required),
			    kv_str("when_field", f->when_field), kv_str("when_value", f->when_value),
			    kv_str("only_field", f->only_field), kv_str("only_value", f->only_value),
			    kv_str("default", f->fallback), kv_str("derive", f->derive),
			    kv_bool("in_subject", f->in_subject), kv_bool("answers", f->answers));
		}
		out_json(cli, kv_str("name", def.name), kv_opt("pack", def.pack), kv_str("summary", def.summary),
		    kv_opt("subject", def.subject), kv_names("routes", &def.routes),
		    kv_str("via", def.nudge ? "nudge" : "mail"), kv_str("priority", mr_priority_word(def.priority)),
		    kv_str("body", body_word(def.body)), kv_bool("control", def.routed), kv_opt("handler", def.handler),
		    kv_str("earlier_life", def.any_life ? "act" : "aside"), kv_json("fields", list_json(&fields)),
		    kv_text("file", ((struct mr_str){ text, len })));
		list_done(&fields);
	} else {
		show_text(cli, &def);
	}
	return EXIT_DONE;
}

/* ---- check, new ---- */

int
cmd_types_check(struct cli *cli, const struct types_options *)
{
	int code = EXIT_DONE;

	for (int i = 0; i < cli->argc; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		mr_auto(type_done) struct type_def def = { 0 };
		const char *path = cli->argv[i], *slash = strrchr(path, '/');
		int got = cli_body(cli, NULL, path, &text);

		if (got == EXIT_DONE &&
		    type_parse(buf_str(&text), "", slash ? slash + 1 : path, &def, &cli->err) != MR_OK) {
			got = cli_fail(cli, &cli->err);
		} else if (got == EXIT_DONE &&
			   !out_json(cli, kv_str("file", path), kv_str("name", def.name), kv_bool("fine", true))) {
			fence_addf(&cli->out, "%s: fine, %s\n", path, counted(def.fields_n, "field").text);
		}
		code = got != EXIT_DONE ? got : code;
	}
	return code;
}

int
cmd_types_new(struct cli *cli, const struct types_options *o)
{
	/* A file that works and shows where to go on. */
	static const char template[] = "# mailroom-types(5) explains the lines.\n"
				       "Type: %s\n"
				       "Summary: what it says, in a few words\n"
				       "Subject: %s {Subject}\n"
				       "Via: mail\n"
				       "Body: lines\n"
				       "Field: Subject; text; required; subject\n"
				       "Field: From; address; derive sender\n";
	mr_auto(buf_done) struct buf text = BUF_INIT;
	const char *name = cli->argv[0];

	if (o->file)
		TRY_CODE(cli_body(cli, NULL, o->file, &text));
	else
		buf_addf(&text, template, name, name);
	TRY_CLI(cli_open_room(cli, &cli->err));
	TRY_CLI(mr_type_put(cli->room, name, buf_z(&text), text.len, o->force, &cli->err));
	return out_answer(cli, CELLS(kv_str("name", name), kv_bool("made", true)),
	    "made type %s: its file is types/%s in the room\n", name, name);
}

/* ---- The command ---- */
