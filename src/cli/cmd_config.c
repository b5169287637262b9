/* SPDX-License-Identifier: MIT */
/* cmd_config.c - what this user lets a room start and touch: list, set, unset, edit, adopt. */
#include "base/fence.h"
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "cli/subword.h"
#include "message/header.h"
#include "helptext.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#define EDIT_MAX ((size_t)1 << 20)

/* ---- list ---- */

static void
print_line(struct cli *cli, const char *name, const char *value)
{
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "name", name);
		json_key_str(&j, "value", value);
		out_json_line(cli, &j);
		return;
	}
	(void)fence_add(&cli->out, str_of(name), FENCE_LINE, 0);
	buf_adds(&cli->out, ": ");
	(void)fence_add(&cli->out, str_of(value), FENCE_LINE, 0);
	buf_addc(&cli->out, '\n');
}

static bool
print_setting(void *ctx, const char *name, const char *value)
{
	print_line(ctx, name, value);
	return true;
}

static int
run_list(struct cli *cli)
{
	struct mr_error err = { 0 };

	if (mr_config_each(cli->room, print_setting, cli, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (!cli->json && cli->out.len == 0)
		buf_adds(
		    &cli->out, "this room may start nothing and touch no other room; mailroom config set NAME VALUE\n");
	return EXIT_DONE;
}

/* ---- set, unset ---- */

static int
change(struct cli *cli, const char *name, const char *value)
{
	const struct config_options *o = cli->opts;
	struct mr_error err = { 0 };

	if (env_not_in_session(cli, "changing the configuration", &err) != MR_OK ||
	    mr_config_set(cli->room, name, value, o->add, &err) != MR_OK)
		return cli_fail(cli, &err);
	print_line(cli, name, value ? value : "(unset)");
	return EXIT_DONE;
}

static int
run_set(struct cli *cli)
{
	return change(cli, cli->argv[0], cli->argv[1]);
}

static int
run_unset(struct cli *cli)
{
	return change(cli, cli->argv[0], NULL);
}

/* ---- edit ---- */

static bool
add_setting(void *ctx, const char *name, const char *value)
{
	struct mr_error ignored = { 0 };

	return header_add(ctx, name, str_of(value), &ignored) == MR_OK;
}

static int
run_editor(const char *path)
{
	const char *editor = env_get("VISUAL") ? env_get("VISUAL") : env_get("EDITOR") ? env_get("EDITOR") : "vi";
	mr_auto(buf_done) struct buf line = BUF_INIT;
	int status = -1;

	buf_addf(&line, "%s \"$1\"", editor);
	pid_t pid = buf_ok(&line) ? fork() : -1;

	if (pid == 0) {
		(void)execl("/bin/sh", "sh", "-c", buf_z(&line), "sh", path, (char *)NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static enum mr_rc
take_edited(struct cli *cli, const char *path, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(record_done) struct record lines = { 0 };
	enum mr_rc rc = file_read(AT_FDCWD, path, EDIT_MAX, &text, err);

	if (rc == MR_OK)
		rc = record_parse(buf_str(&text), &lines, err);
	return rc == MR_OK ? mr_config_replace(cli->room, lines.lines, lines.n, err) : rc;
}

static enum mr_rc
write_draft(struct cli *cli, const char *path, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int fd = sys_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	(void)mr_config_each(cli->room, add_setting, &text, err);
	if (fd < 0 || (text.len > 0 && sys_write_all(fd, text.ptr, text.len) < 0))
		return mr_fail_errno(err, "cannot write a draft for the editor");
	return MR_OK;
}

static int
run_edit(struct cli *cli)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;
	struct mr_error err = { 0 };
	char random[17];

	if (env_not_in_session(cli, "changing the configuration", &err) != MR_OK)
		return cli_fail(cli, &err);
	if (!isatty(0) || !isatty(1)) {
		(void)mr_fail(&err, MR_REFUSED, "an editor needs a terminal");
		(void)mr_hint(&err, "use: mailroom config set NAME VALUE");
		return cli_fail(cli, &err);
	}
	random_hex(random, sizeof(random) - 1);
	buf_addf(&path, "%s/edit-%s", env_config_dir(cli), random);
	enum mr_rc rc = write_draft(cli, buf_z(&path), &err);

	if (rc == MR_OK)
		rc = run_editor(buf_z(&path)) == 0
			 ? take_edited(cli, buf_z(&path), &err)
			 : mr_fail(&err, MR_REFUSED, "the editor failed; nothing was changed");
	(void)sys_unlink(AT_FDCWD, buf_z(&path));
	return rc == MR_OK ? run_list(cli) : cli_fail(cli, &err);
}

/* ---- adopt ---- */

struct adoption {
	struct cli *cli;
	struct mr_names names, values;
	bool failed;
};

static bool
note_leftover(void *ctx, const struct mr_leftover *l)
{
	struct adoption *a = ctx;
	struct cli *cli = a->cli;

	a->failed |= !names_add(&a->names, str_of(l->name)) || !names_add(&a->values, str_of(l->value));
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "where", l->where);
		json_key_str(&j, "line", l->line);
		json_key_str(&j, "name", l->name);
		json_key_str(&j, "value", l->value);
		out_json_line(cli, &j);
	} else {
		buf_adds(&cli->out, "  ");
		(void)fence_add(&cli->out, str_of(l->where), FENCE_NAME, 0);
		buf_adds(&cli->out, ": ");
		(void)fence_add(&cli->out, str_of(l->line), FENCE_NAME, 0);
		buf_adds(&cli->out, "\n    would become  ");
		(void)fence_add(&cli->out, str_of(l->name), FENCE_NAME, 0);
		buf_adds(&cli->out, ": ");
		(void)fence_add(&cli->out, str_of(l->value), FENCE_NAME, 0);
		buf_addc(&cli->out, '\n');
	}
	return !a->failed;
}

static bool
is_confirmed(struct cli *cli, size_t n)
{
	char answer[8] = "";

	buf_addf(&cli->out,
	    "Each of these lines lets this room start a program or touch another room. Adopt %s? Type 'yes': ",
	    n == 1 ? "it" : "all of them");
	return cli_flush(cli) && read(0, answer, sizeof(answer) - 1) >= 3 && strncmp(answer, "yes", 3) == 0;
}

static int
adopt_all(struct adoption *a)
{
	struct cli *cli = a->cli;
	struct mr_error err = { 0 };

	if (!isatty(0) || !isatty(1)) {
		cli_warn(cli, "nothing was adopted: that takes a person at a terminal; or type each line yourself: "
			      "mailroom config "
			      "set NAME VALUE");
		return EXIT_REFUSED;
	}
	if (!is_confirmed(cli, a->names.n)) {
		buf_adds(&cli->out, "nothing was adopted\n");
		return EXIT_REFUSED;
	}
	for (size_t i = 0; i < a->names.n; i++)
		if (mr_config_set(cli->room, a->names.v[i], a->values.v[i], true, &err) != MR_OK)
			return cli_fail(cli, &err);
	buf_addf(&cli->out, "adopted %zu\n", a->names.n);
	return EXIT_DONE;
}

static int
run_adopt(struct cli *cli)
{
	struct adoption a = { .cli = cli };
	struct mr_error err = { 0 };
	int code = EXIT_DONE;

	if (env_not_in_session(cli, "changing the configuration", &err) != MR_OK ||
	    mr_config_leftovers(cli->room, note_leftover, &a, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (a.failed)
		code = EXIT_FAILED;
	else if (a.names.n == 0 && !cli->json)
		buf_adds(&cli->out, "nothing in this room waits to be adopted\n");
	else if (a.names.n > 0 && !cli->json)
		code = adopt_all(&a);
	mr_names_done(&a.names);
	mr_names_done(&a.values);
	return code;
}

/* ---- The command ---- */

int
cmd_config(struct cli *cli)
{
	static const struct subword words[] = {
		{ "list", "", 0, 0, false, run_list },
		{ "set", "NAME VALUE", 2, 2, false, run_set },
		{ "unset", "NAME", 1, 1, false, run_unset },
		{ "edit", "", 0, 0, false, run_edit },
		{ "adopt", "", 0, 0, false, run_adopt },
		{ NULL, NULL, 0, 0, false, NULL },
	};

	return subword_run(cli, words);
}
