/* SPDX-License-Identifier: MIT */
/* cmd_config.c - what this user lets a room start and touch: list, set, unset, edit, adopt. */
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "message/header.h"
#include "helptext.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#define EDIT_MAX ((size_t)1 << 20)
#define CHANGING "changing the configuration"

/* ---- list, set, unset ---- */

static void
print_setting(struct cli *cli, const char *name, const char *value)
{
	if (!out_json(cli, kv_str("name", name), kv_str("value", value)))
		fence_addf(&cli->out, "%s: %.65536s\n", name, value);
}

int
cmd_config_list(struct cli *cli, const struct config_options *)
{
	static const char *const own[] = { "Keep-Archive", "Keep-Sent", "Keep-Done", "Keep-Dead" }; /* the room's */
	mr_auto(mr_list_done) struct mr_settings lines = { 0 };

	TRY_CLI(mr_config_list(cli->room, &lines, &cli->err));
	for (size_t i = 0; i < lines.n; i++)
		print_setting(cli, lines.v[i].name, lines.v[i].value);
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if (mr_room_setting(cli->room, own[i]))
			print_setting(cli, own[i], mr_room_setting(cli->room, own[i]));
	if (!cli->json && cli->out.len == 0)
		buf_adds(
		    &cli->out, "this room may start nothing and touch no other room; mailroom config set NAME VALUE\n");
	return EXIT_DONE;
}

/* set NAME VALUE, unset NAME */
int
cmd_config_set(struct cli *cli, const struct config_options *o)
{
	const char *name = cli->argv[0], *value = cli->argc > 1 ? cli->argv[1] : NULL;

	TRY_CLI(env_not_in_session(cli, CHANGING, &cli->err));
	TRY_CLI(mr_config_set(cli->room, name, value, o->add, &cli->err));
	print_setting(cli, name, value ? value : "(unset)");
	if (value && strncmp(name, "Keep-", 5) == 0 && value[strspn(value, "0123456789")] == '\0')
		cli_warn(cli,
		    "%s is a number of messages, not of days: older ones are deleted from tomorrow on; a time is %sd",
		    value, value);
	return EXIT_DONE;
}

/* ---- edit ---- */

/* The settings in a file, and the user's editor on it. */
static enum mr_rc
edit(struct cli *cli, const char *path, struct mr_error *err)
{
	const char *editor = env_get("VISUAL") ? env_get("VISUAL") : env_get("EDITOR") ? env_get("EDITOR") : "vi";
	mr_auto(buf_done) struct buf text = BUF_INIT, line = BUF_INIT, edited = BUF_INIT;
	mr_auto(sys_close_fd) int fd = sys_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	mr_auto(mr_list_done) struct mr_settings old = { 0 };
	mr_auto(record_done) struct record lines = { 0 };
	int status = -1;

	TRY(mr_config_list(cli->room, &old, err));
	for (size_t i = 0; i < old.n; i++)
		TRY(header_add(&text, old.v[i].name, str_of(old.v[i].value), err));
	if (fd < 0 || (text.len > 0 && sys_write_all(fd, text.ptr, text.len) < 0))
		return mr_fail_errno(err, "cannot write a draft for the editor");
	buf_addf(&line, "%s \"$1\"", editor);
	pid_t pid = buf_ok(&line) ? fork() : -1;

	if (pid == 0) {
		(void)execl("/bin/sh", "sh", "-c", buf_z(&line), "sh", path, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return mr_fail(err, MR_REFUSED, "the editor failed; nothing was changed");
	TRY(file_read(AT_FDCWD, path, EDIT_MAX, &edited, err));
	TRY(record_parse(buf_str(&edited), &lines, err));
	return mr_config_replace(cli->room, lines.lines, lines.n, err);
}

int
cmd_config_edit(struct cli *cli, const struct config_options *o)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;
	char random[17];

	TRY_CLI(env_not_in_session(cli, CHANGING, &cli->err));
	if (!isatty(0) || !isatty(1))
		TRY_CLI(
		    mr_fail(&cli->err, MR_REFUSED, "an editor needs a terminal\nuse: mailroom config set NAME VALUE"));
	random_hex(random, sizeof(random) - 1);
	buf_addf(&path, "%s/edit-%s", env_config_dir(cli), random);
	enum mr_rc rc = edit(cli, buf_z(&path), &cli->err);

	(void)sys_unlink(AT_FDCWD, buf_z(&path));
	return rc == MR_OK ? cmd_config_list(cli, o) : cli_fail(cli, &cli->err);
}

/* ---- adopt ---- */

int
cmd_config_adopt(struct cli *cli, const struct config_options *)
{
	mr_auto(mr_list_done) struct mr_leftovers all = { 0 };
	char answer[8] = "";

	TRY_CLI(env_not_in_session(cli, CHANGING, &cli->err));
	TRY_CLI(mr_config_leftovers(cli->room, &all, &cli->err));
	for (size_t i = 0; i < all.n; i++) {
		const struct mr_leftover *l = &all.v[i];
		const char *parts[] = { "  ", l->where, ": ", l->line, "\n    would become  ", l->name, ": ",
			l->value };

		if (out_json(cli, kv_str("where", l->where), kv_str("line", l->line), kv_str("name", l->name),
			kv_str("value", l->value)))
			continue;
		for (size_t k = 0; k < 8; k += 2) {
			buf_adds(&cli->out, parts[k]);
			(void)fence_add(&cli->out, str_of(parts[k + 1]), FENCE_NAME, 0);
		}
		buf_addc(&cli->out, '\n');
	}
	if (all.n == 0 && !cli->json)
		buf_adds(&cli->out, "nothing in this room waits to be adopted\n");
	if (all.n == 0 || cli->json)
		return EXIT_DONE;
	if (!isatty(0) || !isatty(1)) {
		cli_warn(cli,
		    "nothing was adopted: that takes a person at a terminal; or type each line yourself: mailroom config set NAME VALUE");
		return EXIT_REFUSED;
	}
	buf_addf(&cli->out,
	    "Each of these lines lets this room start a program or touch another room. Adopt %s? Type 'yes': ",
	    all.n == 1 ? "it" : "all of them");
	if (!cli_flush(cli) || read(0, answer, sizeof(answer) - 1) < 3 || strncmp(answer, "yes", 3) != 0) {
		buf_adds(&cli->out, "nothing was adopted\n");
		return EXIT_REFUSED;
	}
	for (size_t i = 0; i < all.n; i++)
		TRY_CLI(mr_config_set(cli->room, all.v[i].name, all.v[i].value, true, &cli->err));
	buf_addf(&cli->out, "adopted %zu\n", all.n);
	return EXIT_DONE;
}
