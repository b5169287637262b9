/* SPDX-License-Identifier: MIT */
/* mailroom types: what message types there are, what one looks like, and how a room gets one of its own. */
#include "base/text.h"
#include "cli/subword.h"
#include "message/type.h"
#include "helptext.h"

/* ---- list ---- */

struct listing {
	struct cli *cli;
	struct table table;
	size_t n;
	bool failed; /* out of memory */
};

static void
say_wrong(void *ctx, const char *path, const struct mr_error *err)
{
	const struct listing *l = ctx;

	cli_warn(l->cli, "'%s' is left out: %s", path, err->message);
}

static bool
list_one(void *ctx, const struct mr_type *type)
{
	struct listing *l = ctx;
	const char *wanted = opt_text(l->cli, "pack");

	if (wanted && strcmp(wanted, type->pack[0] ? type->pack : "room") != 0)
		return true;
	l->n++;
	if (l->cli->json) {
		struct json j = JSON_INIT(&l->cli->out);

		json_open(&j, '{');
		json_key_str(&j, "name", type->name);
		json_key_str(&j, "pack", type->pack[0] ? type->pack : NULL);
		json_key_str(&j, "summary", type->summary);
		json_key_str(&j, "subject", type->subject[0] ? type->subject : NULL);
		json_key_str(&j, "via", type->nudge ? "nudge" : "mail");
		json_key_bool(&j, "control", type->routed);
		out_json_line(l->cli, &j);
		return true;
	}
	l->failed |= !table_add(&l->table, type->name) || !table_add(&l->table, type->pack[0] ? type->pack : "room") ||
		     !table_add(&l->table, type->nudge ? "nudge" : "mail") || !table_name(&l->table, type->summary);
	return !l->failed;
}

static int
run_list(struct cli *cli)
{
	static const char *const heading[] = { "NAME", "PACK", "VIA", "SUMMARY" };
	struct listing l = { .cli = cli, .table = { .columns = 4 } };
	struct mr_error err = { 0 };
	enum mr_rc rc = cli_open_room(cli, &err);

	for (size_t i = 0; i < 4; i++)
		l.failed |= !table_add(&l.table, heading[i]);
	if (rc == MR_OK)
		rc = mr_type_each(cli->room, list_one, say_wrong, &l, &err);
	if (rc == MR_OK && l.failed)
		rc = mr_nomem(&err);
	if (rc == MR_OK && !cli->json && l.n > 0)
		table_print(cli, &l.table, &cli->out);
	else if (rc == MR_OK && !cli->json)
		buf_adds(&cli->out, "there are no such types; mailroom types new NAME makes one\n");
	mr_names_done(&l.table.cells);
	return rc == MR_OK ? EXIT_DONE : cli_fail(cli, &err);
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
json_field(struct json *j, const struct type_field *f)
{
	json_open(j, '{');
	json_key_str(j, "name", f->name);
	json_key_str(j, "kind", type_kind_word(f->kind));
	json_key_names(j, "choices", &f->choices);
	json_key_bool(j, "required", f->required);
	json_key_str(j, "when_field", f->when_field);
	json_key_str(j, "when_value", f->when_value);
	json_key_str(j, "only_field", f->only_field);
	json_key_str(j, "only_value", f->only_value);
	json_key_str(j, "default", f->fallback);
	json_key_str(j, "derive", f->derive);
	json_key_bool(j, "in_subject", f->in_subject);
	json_key_bool(j, "answers", f->answers);
	json_close(j);
}

static void
show_json(struct cli *cli, const struct type_def *def, struct mr_str text)
{
	struct json j = JSON_INIT(&cli->out);

	json_open(&j, '{');
	json_key_str(&j, "name", def->name);
	json_key_str(&j, "pack", def->pack[0] ? def->pack : NULL);
	json_key_str(&j, "summary", def->summary);
	json_key_str(&j, "subject", def->subject[0] ? def->subject : NULL);
	json_key_names(&j, "routes", &def->routes);
	json_key_str(&j, "via", def->nudge ? "nudge" : "mail");
	json_key_str(&j, "priority", mr_priority_word(def->priority));
	json_key_str(&j, "body", body_word(def->body));
	json_key_bool(&j, "control", def->routed);
	json_key_str(&j, "handler", def->handler[0] ? def->handler : NULL);
	json_key_str(&j, "earlier_life", def->any_life ? "act" : "aside");
	json_key(&j, "fields");
	json_open(&j, '[');
	for (size_t i = 0; i < def->fields_n; i++)
		json_field(&j, &def->fields[i]);
	json_close(&j);
	json_key(&j, "file");
	json_str(&j, text);
	out_json_line(cli, &j);
}

/* "one-of MERGED ESCALATED, required if Exit=MERGED, derive rig" */
static void
add_rule(struct buf *out, const struct type_field *f)
{
	buf_adds(out, type_kind_word(f->kind));
	for (size_t i = 0; i < f->choices.n; i++)
		buf_addf(out, " %s", f->choices.v[i]);
	if (f->required && f->when_field)
		buf_addf(out, ", required if %s=%s", f->when_field, f->when_value);
	else if (f->required)
		buf_adds(out, ", required");
	if (f->only_field)
		buf_addf(out, ", only if %s=%s", f->only_field, f->only_value);
	if (f->in_subject)
		buf_adds(out, ", in the subject");
	if (f->answers)
		buf_adds(out, ", of a request");
	if (f->derive)
		buf_addf(out, ", else from %s", f->derive);
	if (f->fallback)
		buf_addf(out, ", else %s", f->fallback);
}

static void
add_line(struct cli *cli, struct buf *out, const char *name, const char *value)
{
	if (!value[0])
		return;
	buf_addf(out, "  %-9s ", name);
	(void)fence_add(out, str_of(value), out_form(cli, FENCE_LINE), 0);
	buf_addc(out, '\n');
}

static void
add_command(struct cli *cli, struct buf *out, const struct type_def *def)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	buf_addf(&line, "mailroom send TO --type %s", def->name);
	for (size_t i = 0; i < def->fields_n; i++) {
		const struct type_field *f = &def->fields[i];

		bool found = f->derive && !str_starts(str_of(f->derive), "request"); /* that is for answers */

		if (f->required && !f->when_field && !found && !f->fallback && f->kind != TYPE_LITERAL &&
		    !strstr(f->name, "[]"))
			buf_addf(&line, strchr(f->name, ' ') ? " --field '%s=...'" : " --field %s=...", f->name);
	}
	add_line(cli, out, "send", buf_z(&line));
}

static void
show_text(struct cli *cli, const struct type_def *def)
{
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	struct buf *out = &lines;

	fence_addf(out, "%s (%s%s): ", def->name, def->pack[0] ? "pack " : "this room's own", def->pack);
	(void)fence_add(out, str_of(def->summary), out_form(cli, FENCE_LINE), 0);
	buf_addc(out, '\n');
	add_line(cli, out, "subject", def->subject);
	for (size_t i = 0; i < def->routes.n; i++)
		add_line(cli, out, i == 0 ? "route" : "", def->routes.v[i]);
	add_line(cli, out, "via", def->nudge ? "nudge" : "mail");
	if (def->priority != MR_NORMAL)
		add_line(cli, out, "priority", mr_priority_word(def->priority));
	add_line(cli, out, "body", body_word(def->body));
	add_line(cli, out, "handler", def->handler);
	if (def->any_life)
		add_line(cli, out, "earlier", "also acted on when its sender has begun another life");
	for (size_t i = 0; i < def->fields_n; i++) {
		mr_auto(buf_done) struct buf rule = BUF_INIT;

		buf_addf(&rule, "%s: ", def->fields[i].name);
		add_rule(&rule, &def->fields[i]);
		add_line(cli, out, i == 0 ? "fields" : "", buf_z(&rule));
	}
	if (!def->nudge)
		add_command(cli, out, def);
	out_fenced(cli, out);
}

static int
run_show(struct cli *cli)
{
	mr_auto(free_ptr) char *text = NULL, *pack = NULL;
	struct mr_error err = { 0 };
	struct type_def def = { 0 };
	struct mr_str name = { 0 };
	size_t len = 0;

	if (cli_open_room(cli, &err) != MR_OK ||
	    mr_type_text(cli->room, cli->argv[0], &text, &len, &pack, &err) != MR_OK)
		return cli_fail(cli, &err);
	/* Asked for in another case, the file says how it is spelled; checking that is not the business of showing. */
	for (const char *line = text; line && !name.len; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (str_starts(str_of(line), "Type:"))
			name = str_trim((struct mr_str){ line + 5, strcspn(line + 5, "\r\n") });
	const char *spelled = arena_dup(&cli->own, name.len > 0 ? name : str_of(cli->argv[0]));

	if (!spelled) {
		(void)mr_nomem(&err);
		return cli_fail(cli, &err);
	}
	if (type_parse((struct mr_str){ text, len }, pack, spelled, &def, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json)
		show_json(cli, &def, (struct mr_str){ text, len });
	else
		show_text(cli, &def);
	type_done(&def);
	return EXIT_DONE;
}

/* ---- check, new ---- */

static const char *
last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int
run_check(struct cli *cli)
{
	int code = EXIT_DONE;

	for (int i = 0; i < cli->argc; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		struct mr_error err = { 0 };
		struct type_def def = { 0 };
		int got = cli_body(cli, NULL, cli->argv[i], &text);

		if (got == EXIT_DONE && type_parse(buf_str(&text), "", last_part(cli->argv[i]), &def, &err) != MR_OK) {
			got = cli_fail(cli, &err);
		} else if (got == EXIT_DONE && cli->json) {
			struct json j = JSON_INIT(&cli->out);

			json_open(&j, '{');
			json_key_str(&j, "file", cli->argv[i]);
			json_key_str(&j, "name", def.name);
			json_key_bool(&j, "fine", true);
			out_json_line(cli, &j);
		} else if (got == EXIT_DONE) {
			fence_addf(&cli->out, "%s: fine, ", cli->argv[i]);
			out_count(&cli->out, def.fields_n, "field");
			buf_addc(&cli->out, '\n');
		}
		type_done(&def);
		code = got != EXIT_DONE ? got : code;
	}
	return code;
}

/* A file that works and shows where to go on. */
static void
add_template(struct buf *out, const char *name)
{
	buf_addf(out,
	    "# mailroom-types(5) explains the lines.\n"
	    "Type: %s\n"
	    "Summary: what it says, in a few words\n"
	    "Subject: %s {Subject}\n"
	    "Via: mail\n"
	    "Body: lines\n"
	    "Field: Subject; text; required; subject\n"
	    "Field: From; address; derive sender\n",
	    name, name);
}

static int
run_new(struct cli *cli)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	const char *name = cli->argv[0], *file = opt_text(cli, "file");
	struct mr_error err = { 0 };
	int code = EXIT_DONE;

	if (file)
		code = cli_body(cli, NULL, file, &text);
	else
		add_template(&text, name);
	if (code != EXIT_DONE)
		return code;
	if (cli_open_room(cli, &err) != MR_OK ||
	    mr_type_put(cli->room, name, buf_z(&text), text.len, opt_flag(cli, "force"), &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "name", name);
		json_key_bool(&j, "made", true);
		out_json_line(cli, &j);
	} else {
		fence_addf(&cli->out, "made type %s: its file is types/%s in the room\n", name, name);
	}
	return EXIT_DONE;
}

/* ---- The command ---- */

static const struct subword words[] = {
	{ "list", "", 0, 0, false, run_list },
	{ "show", "NAME", 1, 1, false, run_show },
	{ "check", "FILE...", 1, -1, false, run_check },
	{ "new", "NAME [-f FILE]", 1, 1, false, run_new },
	{ 0 },
};

static int
run(struct cli *cli)
{
	return subword_run(cli, words);
}

const struct cmd cmd_types = {
	.name = "types",
	.help = &help_types,
	.needs = CMD_NOTHING,
	.max_args = -1,
	.run = run,
};
