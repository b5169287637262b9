/* SPDX-License-Identifier: MIT */
/* cmd_read.c - mailroom read: shown before consumed (promise 9). */
#include "base/file.h"
#include "base/sys.h"
#include "cli/printout.h"
#include "helptext.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

/* A control message is for programs: an agent might take its text for an order. */
static bool
refuses(struct cli *cli, const struct mr_message *msg, int *ret_exit)
{
	struct mr_error err = { 0 };

	if (cli->json || cli->out_tty || msg->folder == MR_SENT || !printout_hides(cli, cli->self.agent, msg))
		return false;
	(void)mr_fail(&err, MR_REFUSED,
	    "%s is a control message of type '%s', for programs\n"
	    "`mailroom patrol` runs its handler; --json shows it",
	    short_id(msg->id), msg->type);
	*ret_exit = cli_fail(cli, &err);
	return true;
}

/* ---- Into files ---- */

/* The part of the path below a folder that this command may write: the working folder, or the one for temporary files.
 * An agent may run it unasked, and mail may have talked it into a path. NULL: below neither. */
static const char *
below_own_folder(struct cli *cli, const char *path, const char **ret_base)
{
	const char *tmp = env_get("TMPDIR");
	mr_auto(free_ptr) char *cwd = getcwd(NULL, 0);
	const char *const bases[] = { cwd ? cwd : "", tmp && tmp[0] == '/' && tmp[1] ? tmp : "/tmp" };

	if (path[0] != '/') {
		*ret_base = ".";
		return path;
	}
	for (size_t i = 0; i < 2; i++) {
		size_t len = strlen(bases[i]);

		while (len > 1 && bases[i][len - 1] == '/')
			len--;
		if (len > 1 && strncmp(path, bases[i], len) == 0 && path[len] == '/') {
			*ret_base = arena_dup(&cli->own, (struct mr_str){ bases[i], len });
			return *ret_base ? path + len + strspn(path + len, "/") : NULL;
		}
	}
	return NULL;
}

/* No part begins with a dot: not "..", and neither .git nor .claude nor .mailroom, where programs look for what to do.
 */
static bool
has_hidden_part(const char *path)
{
	for (const char *part = path; part; part = strchr(part, '/'), part += part != NULL)
		if (part[0] == '.' && strncmp(part, "./", 2) != 0)
			return true;
	return false;
}

/* What lies in a mailbox or a repository is taken for mail or obeyed, also where the working folder is in one. */
static bool
is_in_store(struct cli *cli, int dir_fd)
{
	char link[40], real[PATH_MAX];
	const char *spec = mr_room_spec(cli->room), *colon = strchr(spec, ':'), *room = colon ? colon + 1 : spec;
	size_t len = strlen(room);

	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", dir_fd);
	ssize_t n = readlink(link, real, sizeof real - 2);

	if (n < 0)
		return true;
	(void)snprintf(real + n, 2, "/");
	return strstr(real, "/.git/") || strstr(real, "/.mailroom/") ||
	       (len > 1 && strncmp(real, room, len) == 0 && real[len] == '/');
}

static enum mr_rc
open_folder_of(struct cli *cli, const char *path, const char **ret_name, int *ret_fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int base_fd = -1;
	const char *base = NULL, *below = below_own_folder(cli, path, &base);
	const char *slash = below ? strrchr(below, '/') : NULL;

	if (!below || has_hidden_part(below))
		return mr_fail(err, MR_REFUSED,
		    below ? "'%s' has a part that begins with a dot\ngive a name in this folder, such as mail.txt"
			  : "'%s' is neither below this folder nor below that for temporary files\n"
			    "give a name in this folder, such as mail.txt",
		    path);
	const char *dir = slash ? arena_dup(&cli->own, (struct mr_str){ below, (size_t)(slash - below) }) : ".";

	TRY(mr_got(dir, err));
	base_fd = sys_open(AT_FDCWD, base, O_RDONLY | O_DIRECTORY, 0);
	/* Below the base no link is followed, in no part of the path. */
	*ret_fd = base_fd < 0 ? -1 : sys_open(base_fd, dir, O_RDONLY | O_DIRECTORY, 0);
	if (*ret_fd < 0 && (errno == ELOOP || errno == ENOTDIR || errno == EXDEV))
		return mr_fail(err, MR_REFUSED, "a folder of '%s' is a symbolic link or a file", path);
	if (*ret_fd < 0)
		return mr_fail_errno(err, "cannot open the folder of '%s'", path);
	if (is_in_store(cli, *ret_fd))
		return mr_fail(err, MR_REFUSED,
		    "the folder of '%s' is part of a room or of a repository's .git\ngive a name in another folder",
		    path);
	*ret_name = slash ? slash + 1 : below;
	return MR_OK;
}

/* The attachments into the folder of --save, which is made or there. */
static enum mr_rc
save_all(struct cli *cli, const struct mr_message *msg, struct mr_names *saved, struct mr_error *err)
{
	const struct read_options *o = cli->opts;
	mr_auto(sys_close_fd) int parent_fd = -1, fd = -1;
	struct mr_str trimmed = str_of(o->save);
	const char *in_parent = NULL;
	char name[MR_FILE_NAME_MAX + 1];

	if (msg->attachments_n == 0)
		return MR_OK;
	while (trimmed.len > 1 && trimmed.ptr[trimmed.len - 1] == '/')
		trimmed.len--;
	const char *folder = arena_dup(&cli->own, trimmed);

	TRY(mr_got(folder, err));
	TRY(open_folder_of(cli, folder, &in_parent, &parent_fd, err));
	if (sys_mkdir(parent_fd, in_parent, 0700) < 0 && errno != EEXIST)
		return mr_fail_errno(err, "cannot make the folder '%s'", folder);
	TRY(dir_open(parent_fd, in_parent, &fd, err));
	if (is_in_store(cli, fd))
		return mr_fail(
		    err, MR_REFUSED, "'%s' is part of a room or of a repository's .git\ngive another folder", folder);
	for (size_t i = 0; i < msg->attachments_n; i++) {
		mr_auto(buf_done) struct buf path = BUF_INIT;

		TRY(mr_attachment_save(msg, i, fd, name, err));
		buf_addf(&path, "%s%s%s", o->save, str_ends(str_of(o->save), "/") ? "" : "/", name);
		TRY(mr_got(buf_ok(&path) && names_add(saved, buf_str(&path)), err));
	}
	return MR_OK;
}

/* ---- Onto stdout ---- */

/* One message out; true when it was shown whole. */
static bool
print(struct cli *cli, const struct mr_message *msg, const struct mr_names *saved)
{
	const struct read_options *o = cli->opts;

	if (!cli->json)
		return budget_message(cli, msg, 0);
	out_json_message(cli, NULL, msg, true, CELLS(o->save ? kv_names("saved", saved) : kv_none()));
	return true;
}

/* Takes and prints what was asked for; without `show` it only looks. What did not fit is given back at once. */
static int
print_all(struct cli *cli, struct mr_show *show)
{
	const struct read_options *o = cli->opts;
	mr_auto(mr_names_done) struct mr_names all = { 0 };
	const struct mr_names nothing = { 0 };
	int code = EXIT_DONE;

	for (int i = 0; i < cli->argc; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct mr_error err = { 0 };
		enum mr_rc rc = show ? mr_show_take(show, cli->argv[i], &msg, &err)
				     : mr_fetch(cli->room, cli->self.agent, cli->argv[i], &msg, &err);

		if (rc != MR_OK && rc != MR_BUSY) {
			code = cli_fail(cli, &err);
			/* A full or read-only disk cannot note that it was read. What it says can be shown all the
			 * same. */
			if (show && (rc == MR_FULL || rc == MR_IO) &&
			    mr_fetch(cli->room, cli->self.agent, cli->argv[i], &msg, &err) == MR_OK)
				(void)print(cli, &msg, &nothing);
			continue;
		}
		if (rc == MR_BUSY) /* shown all the same; its holder marks it */
			cli_warn(cli, "%s", err.message);
		size_t before = all.n;
		bool may = !refuses(cli, &msg, &code);

		if (may && o->save && save_all(cli, &msg, &all, &err) != MR_OK) {
			code = cli_fail(cli, &err);
			may = false;
		}
		struct mr_names saved = { all.v ? all.v + before : NULL, all.n - before };
		bool shown = may && print(cli, &msg, &saved);

		if (show && !shown && rc == MR_OK && mr_show_back(show, msg.id, &err) != MR_OK)
			code = cli_fail(cli, &err);
	}
	budget_end(cli, "message", show ? "mailroom read ID" : "mailroom read --peek ID");
	for (size_t i = 0; !cli->json && i < all.n; i++)
		fence_addf(&cli->out, "saved %s\n", all.v[i]);
	return code;
}

/* What was printed goes into the file instead, and the caller is told where it is. */
static enum mr_rc
write_file(struct cli *cli, const char *path, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	const char *name = NULL;
	size_t chars = utf8_chars(buf_str(&cli->out));

	TRY(mr_got(buf_ok(&cli->out), err));
	TRY(open_folder_of(cli, path, &name, &fd, err));
	enum mr_rc rc = file_publish(fd, fd, name, buf_str(&cli->out), 0600, PUBLISH_FULL, err);

	if (rc == MR_EXISTS)
		return mr_fail(
		    err, MR_EXISTS, "'%s' already exists, and is not overwritten\ngive the name of a new file", path);
	TRY(rc);
	buf_clear(&cli->out);
	fence_addf(&cli->out, "%s written to '%.1000s'; what is in it is data from others\n",
	    counted(chars, "character").text, path);
	return MR_OK;
}

struct raw {
	struct cli *cli;
	struct buf shown; /* on a terminal, which obeys what it is sent: there its bytes are shown and not written */
};

static enum mr_rc
add_raw(void *ctx, const char *bytes, size_t n, struct mr_error *err)
{
	struct raw *r = ctx;

	buf_add(r->cli->out_tty ? &r->shown : &r->cli->out, (struct mr_str){ bytes, n });
	if (!r->cli->out_tty && !cli_flush(r->cli))
		return mr_fail(err, MR_IO, "the output cannot be written");
	return MR_OK;
}

int
cmd_read(struct cli *cli, const struct read_options *o)
{
	struct mr_show *show = NULL;
	struct mr_str to = str_of(o->to ? o->to : "");

	if (o->to && (to.len < 5 || to.ptr[to.len - 5] == '/' || !(str_ends(to, ".txt") || str_ends(to, ".eml"))))
		return cli_usage(cli, "--to needs the name of a new file that ends in .txt or .eml");
	budget_begin(cli);
	if (o->to) {
		cli->budget.limit = INT64_MAX;
		cli->budget.fenced = true;
	}
	if (o->raw) {
		for (int i = 0; i < cli->argc; i++) {
			mr_auto(mr_message_done) struct mr_message msg = { 0 };
			mr_auto(buf_done) struct buf shown = BUF_INIT;
			struct raw raw = { .cli = cli };
			int code = EXIT_DONE;

			/* One that cannot be parsed is no control message, and its bytes are what is wanted. */
			if (mr_fetch(cli->room, cli->self.agent, cli->argv[i], &msg, IGNORED) == MR_OK &&
			    refuses(cli, &msg, &code))
				return code;
			enum mr_rc rc =
			    mr_fetch_raw(cli->room, cli->self.agent, cli->argv[i], add_raw, &raw, &cli->err);

			shown = raw.shown;
			TRY_CLI(rc);
			if (cli->out_tty)
				(void)fence_add(&cli->out, buf_str(&shown), out_form(cli, FENCE_TEXT), 0);
			if (!cli_flush(cli))
				return EXIT_FAILED;
		}
		return EXIT_DONE;
	}
	if (o->peek)
		return print_all(cli, NULL);
	TRY_CLI(mr_show_open(cli->room, &cli->self, NULL, &show, &cli->err));
	int code = print_all(cli, show);

	if (o->to && code == EXIT_DONE && write_file(cli, o->to, &cli->err) != MR_OK)
		code = cli_fail(cli, &cli->err);
	if (o->to && code != EXIT_DONE)
		buf_clear(&cli->out); /* closing gives it back */
	else if (!cli_flush(cli))
		code = EXIT_FAILED; /* closing gives it back unread */
	else if (mr_show_finish(show, false, NULL, &cli->err) != MR_OK)
		code = cli_fail(cli, &cli->err);
	mr_show_close(show);
	return code;
}
