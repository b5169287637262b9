/* SPDX-License-Identifier: MIT */
/* gt.c - which command of gt is meant (help/gt.txt lists them), and which agent calls. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sys.h"
#include "cli/gt/gt.h"
#include "message/json_read.h"

#define AGENT_FILE ".gt-agent"
#define AGENT_FILE_MAX ((size_t)64 << 10)

/* ---- Which command ---- */

/* No command was found: `gt --help` and nothing at all are about gt itself, "gt mail" begins commands, and the rest is
 * near one at best. typed[n] is "gt" and the first n words. */
static const struct cmd *
not_found(struct cli *cli, int argc, char **argv, const char *const *typed, int n)
{
	mr_auto(buf_done) struct buf more = BUF_INIT;
	size_t best = 4, len = strlen(typed[n]);
	const char *near = NULL;
	struct mr_str last = STR("");
	bool help = false;

	for (int i = 1; i < argc; i++)
		help |= strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
	for (size_t i = 0; gt_commands[i]; i++) {
		const char *name = gt_commands[i]->name;

		if (strncmp(name, typed[n], len) != 0 || name[len] != ' ')
			continue;
		struct mr_str word = { name + len + 1, strcspn(name + len + 1, " ") };

		if (!str_eq(word, last)) /* those of one word stand together */
			buf_addf(&more, "%s%.*s", more.len > 0 ? ", " : "", (int)word.len, word.ptr);
		last = word;
	}
	if (n == 0 || (more.len > 0 && help))
		return &command_gt;
	if (more.len > 0)
		return cli_usage(cli, "'%s' needs a command: %s", typed[n], buf_z(&more)), NULL;
	for (int words = 1; words <= n; words++)
		for (size_t i = 0; gt_commands[i]; i++) {
			size_t d = edit_distance(gt_commands[i]->name, typed[words], best);

			near = d < best ? gt_commands[i]->name : near;
			best = d < best ? d : best;
		}
	return cli_usage(cli, "there is no command '%.80s'%s%s%s", typed[n < 2 ? n : 2], near ? "; did you mean '" : "",
		   near ? near : "", near ? "'?" : ""),
	       NULL;
}

const struct cmd *
gt_command(struct cli *cli, int argc, char **argv, int *at)
{
	const char *typed[4] = { "gt" };
	int n = 0;

	for (char **word = argv + *at + 1; n < 3 && word < argv + argc && (*word)[0] != '-'; n++, word++) {
		mr_auto(buf_done) struct buf fenced = BUF_INIT;

		out_line(&fenced, *word);
		typed[n + 1] = cli_text(cli, "%s %s", typed[n], buf_z(&fenced));
		if (!typed[n + 1])
			return NULL;
	}
	for (int words = n; words > 0; words--)
		for (size_t i = 0; gt_commands[i]; i++)
			if (command_is_called(gt_commands[i], typed[words])) {
				*at += words;
				return gt_commands[i];
			}
	return not_found(cli, argc - *at, argv + *at, typed, n);
}

int
gt_exit(int code)
{
	if (code >= GT_EXIT(0))
		return code - GT_EXIT(0);
	return code == EXIT_DONE ? 0 : 1;
}

int
cmd_gt(struct cli *cli)
{
	return cli_usage(cli, "gt needs a command: 'mailroom gt --help' lists them");
}

/* ---- The caller ----
 *
 * The variables (GT_ROLE and those beside it, BD_ACTOR) are read in env.c for all commands; here is what only gt knows:
 * a file .gt-agent in the working folder or above, then the folder's own name, then the human. A harness session that
 * nobody knows is not taken for the human: it would act in a person's name. */

const char *
gt_town(struct cli *cli)
{
	static const char *const variables[] = { "GT_TOWN_ROOT", "GT_ROOT" };
	struct stat st;

	for (size_t i = 0; i < 2; i++) {
		const char *root = getenv(variables[i]);
		const char *path = root && root[0] == '/' ? cli_text(cli, "%s/.mailroom", root) : NULL;

		if (path && sys_stat_target(path, &st) == 0 && S_ISDIR(st.st_mode))
			return path;
	}
	return NULL;
}

/* What a role is called, and where its working folder is. The first that is in the path counts. */
static const struct {
	const char *role, *part;
	const char *form; /* %r: the rig, the part before; %n: the name, the part behind */
} roles[] = {
	{ "polecat", "/polecats/", "%r/%n" },
	{ "dog", "/deacon/dogs/", "deacon/dogs/%n" },
	{ "crew", "/crew/", "%r/crew/%n" },
	{ "refinery", "/refinery", "%r/refinery" },
	{ "witness", "/witness", "%r/witness" },
	{ "mayor", "/mayor", "mayor" },
};
#define ROLES_N (sizeof(roles) / sizeof(roles[0]))

/* NULL: a part that the form needs is empty. */
static const char *
fill(struct cli *cli, const char *form, struct mr_str rig, struct mr_str name)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	for (const char *p = form; *p; p++) {
		struct mr_str part = *p != '%' ? (struct mr_str){ p, 1 } : *++p == 'r' ? rig : name;

		if (part.len == 0)
			return NULL;
		buf_add(&text, part);
	}
	return arena_dup(&cli->own, buf_str(&text));
}

const char *
gt_address(struct cli *cli, const char *role, const char *rig, const char *name)
{
	const char *address = NULL;

	for (size_t i = 0; i < ROLES_N; i++)
		if (strcmp(roles[i].role, role) == 0)
			address = fill(cli, roles[i].form, str_of(rig), str_of(name));
	return address || !role[0] ? address : arena_dup(&cli->own, str_of(role));
}

static const char *
by_file(struct cli *cli, const char *cwd)
{
	mr_auto(buf_done) struct buf dir = BUF_INIT;
	const char *found = NULL;

	buf_adds(&dir, cwd);
	while (buf_ok(&dir) && !found && dir.len > 0) {
		mr_auto(buf_done) struct buf path = BUF_INIT, text = BUF_INIT;
		mr_auto(buf_done) struct buf role = BUF_INIT, rig = BUF_INIT, name = BUF_INIT;
		const char *slash = strrchr(dir.ptr, '/'), *problem;
		struct json_value all;

		buf_addf(&path, "%s/" AGENT_FILE, dir.ptr);
		mr_auto(sys_close_fd) int fd = sys_open_user(buf_z(&path), O_NONBLOCK);

		if (fd >= 0 && file_read_fd(fd, AGENT_FILE_MAX, &text, IGNORED) == MR_OK &&
		    json_whole(buf_str(&text), &all, &problem)) {
			(void)json_find_text(all, "role", &role);
			(void)json_find_text(all, "rig", &rig);
			(void)json_find_text(all, "name", &name);
			found = gt_address(cli, buf_z(&role), buf_z(&rig), buf_z(&name));
		}
		dir.len = slash ? (size_t)(slash - dir.ptr) : 0;
		dir.ptr[dir.len] = '\0';
	}
	return found;
}

static const char *
by_folder(struct cli *cli, const char *cwd)
{
	const char *found = NULL;

	for (size_t i = 0; i < ROLES_N && !found; i++) {
		const char *at = strstr(cwd, roles[i].part), *behind = at ? at + strlen(roles[i].part) : NULL,
			   *from = at;

		if (!at || (behind[-1] != '/' && behind[0] != '/' && behind[0] != '\0'))
			continue;
		while (from > cwd && from[-1] != '/')
			from--;
		if (from < at)
			found = fill(cli, roles[i].form, (struct mr_str){ from, (size_t)(at - from) },
			    (struct mr_str){ behind, strcspn(behind, "/") });
	}
	return found;
}

void
gt_find_agent(struct cli *cli)
{
	mr_auto(free_ptr) char *cwd = getcwd(NULL, 0);

	if (cli->env.agent || !cwd)
		return;
	cli->env.agent = by_file(cli, cwd);
	cli->env.agent_source = AGENT_FILE;
	if (!cli->env.agent) {
		cli->env.agent = by_folder(cli, cwd);
		cli->env.agent_source = "PWD";
	}
	if (!cli->env.agent)
		cli->env.agent_source = NULL;
}

bool
gt_is_overseer(struct cli *cli)
{
	return !cli->env.session && !cli->env.agent && !cli->as_option &&
	       mr_self_named(cli->room, "operator", &cli->self, IGNORED) == MR_OK;
}

enum mr_rc
gt_act_as(struct cli *cli, const char *agent)
{
	struct mr_self self = { 0 };

	if (!agent)
		return MR_OK;
	TRY(mr_self_named(cli->room, agent, &self, &cli->err));
	cli->self = self;
	return MR_OK;
}

struct mr_str
gt_rig_of(const char *agent)
{
	const char *slash = strchr(agent, '/');

	if (!slash || str_starts(str_of(agent), "deacon/"))
		return STR("");
	return (struct mr_str){ agent, (size_t)(slash - agent) };
}
