/* SPDX-License-Identifier: MIT */
/*
 * spec.c - what stands after the colon of --room, where another system has its own place for it: that place is known
 * from the environment, which only a door reads. The library gets absolute paths.
 *
 *	teams:[TEAM]      $CLAUDE_CONFIG_DIR/teams/TEAM, else ~/.claude/teams/TEAM; $CLAUDE_CODE_TEAM_NAME, else default
 *	chipset:[PATH]    .chipset/state
 *	handoff:[PATH]    $MB_TEST_ROOT, else /tmp/agent-mailbox
 *	workspace:[PATH]  the working folder
 */
#include "cli/cli.h"
#include <unistd.h>

static void
add_absolute(struct buf *out, const char *cwd, const char *path)
{
	if (path[0] != '/')
		buf_addf(out, "%s%s", cwd, path[0] ? "/" : "");
	buf_adds(out, path);
}

static void
add_team(struct buf *out, const char *cwd, const char *where)
{
	const char *config = env_get("CLAUDE_CONFIG_DIR"), *home = env_get("HOME"), *team = where;

	if (strchr(where, '/')) {
		add_absolute(out, cwd, where);
		return;
	}
	if (!team[0])
		team = env_get("CLAUDE_CODE_TEAM_NAME");
	if (config)
		add_absolute(out, cwd, config);
	else
		buf_addf(out, "%s/.claude", home ? home : "");
	buf_addf(out, "/teams/%s", team ? team : "default");
}

const char *
spec_expand(struct cli *cli, const char *spec, const char *cwd)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	const char *colon = spec ? strchr(spec, ':') : NULL;

	if (!colon)
		return spec;
	struct mr_str kind = { spec, (size_t)(colon - spec) };
	const char *where = colon + 1, *root = env_get("MB_TEST_ROOT");

	buf_add(&out, (struct mr_str){ spec, kind.len + 1 });
	if (str_eq(kind, STR("teams")))
		add_team(&out, cwd, where);
	else if (str_eq(kind, STR("chipset")))
		add_absolute(&out, cwd, where[0] ? where : ".chipset/state");
	else if (str_eq(kind, STR("handoff")))
		add_absolute(&out, cwd, where[0] ? where : root ? root : "/tmp/agent-mailbox");
	else if (str_eq(kind, STR("workspace")))
		add_absolute(&out, cwd, where);
	else
		return spec;
	return arena_dup(&cli->own, buf_str(&out));
}

const char *
cli_folder(struct cli *cli, const char *path)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	mr_auto(free_ptr) char *cwd = path && path[0] != '/' ? getcwd(NULL, 0) : NULL;

	if (!path)
		return NULL;
	add_absolute(&out, cwd ? cwd : "", strcmp(path, ".") == 0 ? "" : strncmp(path, "./", 2) == 0 ? path + 2 : path);
	while (out.len > 1 && out.ptr[out.len - 1] == '/')
		out.len--;
	return arena_dup(&cli->own, buf_str(&out));
}
