/* SPDX-License-Identifier: MIT */
/*
 * check.c - does a message reach an agent of this harness? Not what we would write is tried, but what stands in the
 * files: the very command lines, in a room of their own.
 */
#include "base/spawn.h"
#include "base/text.h"
#include "cli/setup/setup.h"

#include <limits.h>
#include <unistd.h>

#define HOOK_LIMIT_MS 10000

struct check {
	struct setup *s;
	struct probe probe;
	size_t wrong;
};

/* ---- Saying ---- */

/* problem NULL: it is fine. */
static void
say(struct check *c, const char *part, const char *problem, const char *repair)
{
	struct cli *cli = c->s->cli;

	c->wrong += problem != NULL;
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "part", part);
		json_key_bool(&j, "ok", problem == NULL);
		json_key_str(&j, "problem", problem);
		json_key_str(&j, "repair", problem ? repair : NULL);
		out_json_line(cli, &j);
		return;
	}
	out_styled(cli, &cli->out, problem ? STYLE_RED : STYLE_GREEN, problem ? "wrong" : "ok   ");
	buf_addf(&cli->out, "  %s", part);
	if (problem) {
		buf_adds(&cli->out, ": ");
		(void)fence_add(&cli->out, str_of(problem), FENCE_LINE, 0);
		fence_addf(&cli->out, "\n       repair: %.4096s", repair);
	}
	buf_addc(&cli->out, '\n');
}

static const char *
apply_line(struct check *c)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	buf_addf(&line, "mailroom setup %s%s --apply", c->s->harness->name, c->s->project ? " --project" : "");
	const char *kept = arena_dup(&c->s->cli->own, buf_str(&line));

	return kept ? kept : "mailroom setup";
}

/* ---- Hooks ---- */

static void
add_event(const struct check *c, const char *event, struct buf *out)
{
	struct json j = JSON_INIT(out);

	json_open(&j, '{');
	json_key_str(&j, c->s->harness->session_key, c->probe.session);
	json_key_str(&j, "hook_event_name", event);
	json_key_str(&j, "cwd", c->probe.root);
	json_key(&j, "workspace_roots");
	json_open(&j, '[');
	json_str(&j, str_of(c->probe.root));
	json_close(&j);
	json_key_str(&j, "source", "startup");
	json_key_str(&j, "prompt", "is there mail?");
	json_close(&j);
	buf_addc(out, '\n');
}

static enum mr_rc
run_hook(struct check *c, const char *line, const struct setup_event *event, struct mr_error *err)
{
	mr_auto(buf_done) struct buf input = BUF_INIT, why = BUF_INIT;
	const char *const argv[] = { "sh", "-c", probe_line(&c->probe, line), NULL };
	struct spawned ran = { 0 };
	enum mr_rc rc = probe_send(&c->probe, c->s, err);

	add_event(c, event->name, &input);
	if (rc == MR_OK && (!buf_ok(&input) || !argv[2]))
		rc = mr_nomem(err);
	if (rc == MR_OK)
		rc = spawn_run(&(struct spawn){ .argv = argv,
				   .input = buf_str(&input),
				   .env = c->probe.env,
				   .dir = c->probe.root,
				   .limit_ms = HOOK_LIMIT_MS },
		    &ran, err);
	bool seen = !event->shows || memmem(buf_z(&ran.out), ran.out.len, c->probe.mark, strlen(c->probe.mark));

	if (rc == MR_OK && (ran.exit_code != 0 || !seen)) {
		struct mr_str words = ran.err.len > 0 ? buf_str(&ran.err) : buf_str(&ran.out);

		spawned_describe(&ran, HOOK_LIMIT_MS, &why);
		buf_adds(&why, words.len > 0 ? ": " : "");
		text_clean_line(&why, utf8_cut(words, 120));
		rc = mr_fail(err, MR_REFUSED, "the message is not in what it prints (%s)", buf_z(&why));
	}
	spawned_done(&ran);
	return rc;
}

static void
check_hooks(struct check *c, const struct jsonc_node *root)
{
	for (const struct setup_event *e = c->s->harness->events; e->name; e++) {
		mr_auto(buf_done) struct buf line = BUF_INIT, waiter = BUF_INIT, part = BUF_INIT;
		struct mr_error err = { 0 };

		buf_addf(&part, "hook %s", e->name);
		if (!hooks_command(c->s, root, e->name, false, &line))
			say(c, buf_z(&part), "it is not configured", apply_line(c));
		else if (e->waits && !hooks_command(c->s, root, e->name, true, &waiter))
			say(c, buf_z(&part), "the waiter that wakes an idle session is not configured", apply_line(c));
		else if (run_hook(c, buf_z(&line), e, &err) != MR_OK)
			say(c, buf_z(&part), err.message, apply_line(c));
		else
			say(c, buf_z(&part), NULL, NULL);
	}
}

/* ---- The server ---- */

/* With the probe's room in the place of the one that is named. */
static bool
make_argv(struct check *c, const struct mr_names *words, const char *ret[16])
{
	size_t n = 0;

	for (size_t i = 0; i < words->n && n < 15; i++) {
		bool room = i > 0 && strcmp(words->v[i - 1], "--room") == 0;

		ret[n++] = room ? mr_room_spec(c->probe.room) : words->v[i];
	}
	ret[n] = NULL;
	return n > 0;
}

static void
check_permission(struct check *c, const struct jsonc_node *root, const char *permission)
{
	mr_auto(buf_done) struct buf part = BUF_INIT;

	buf_addf(&part, "permission %s", permission);
	say(c, buf_z(&part), allow_has(root, permission) ? NULL : "it is not given", apply_line(c));
}

/* Every command without asking, also those that start programs: an earlier setup wrote it, or the user. */
static void
check_no_permission(struct check *c, const struct jsonc_node *root, const char *permission)
{
	mr_auto(buf_done) struct buf part = BUF_INIT;

	if (!allow_has(root, permission))
		return;
	buf_addf(&part, "permission %s", permission);
	say(c, buf_z(&part), "it lets an agent start any program through mailroom (patrol --handler, config)",
	    "take it out, or let --apply do it if an earlier setup wrote it");
}

static void
check_server(struct check *c, const struct mr_names *words, const struct mr_names *more)
{
	const char *argv[16], *env[64];
	struct mr_error err = { 0 };
	size_t n = 0;

	if (!make_argv(c, words, argv)) {
		say(c, "MCP server", "it is not configured", apply_line(c));
		return;
	}
	for (size_t i = 0; more && i < more->n && n < 40; i++)
		env[n++] = more->v[i];
	for (size_t i = 0; c->probe.env[i]; i++)
		env[n++] = c->probe.env[i];
	env[n] = NULL;
	if (probe_send(&c->probe, c->s, &err) != MR_OK || talk_to_server(c->s, &c->probe, argv, env, &err) != MR_OK)
		say(c, "MCP server", err.message, apply_line(c));
	else
		say(c, "MCP server", NULL, NULL);
}

/* ---- Shells ---- */

/* A command that the agent types: is it the agent that the hooks speak to? */
static void
check_shell(struct check *c)
{
	mr_auto(buf_done) struct buf line = BUF_INIT, why = BUF_INIT;
	struct mr_error err = { 0 };
	struct spawned ran = { 0 };

	if (probe_send(&c->probe, c->s, &err) != MR_OK) {
		say(c, "shell", err.message, apply_line(c));
		return;
	}
	command_quote(&line, c->s->program);
	buf_adds(&line, " inbox; :"); /* so that a shell stays in between, as it does in a harness */
	const char *const argv[] = { "sh", "-c", buf_z(&line), NULL };
	enum mr_rc rc = spawn_run(
	    &(struct spawn){ .argv = argv, .env = c->probe.shell_env, .dir = c->probe.root, .limit_ms = HOOK_LIMIT_MS },
	    &ran, &err);

	if (rc == MR_OK && !memmem(buf_z(&ran.out), ran.out.len, c->probe.mark, strlen(c->probe.mark))) {
		text_clean_line(&why, utf8_cut(ran.err.len > 0 ? buf_str(&ran.err) : buf_str(&ran.out), 120));
		rc = mr_fail(&err, MR_REFUSED, "a command there does not see the message: %s", buf_z(&why));
	}
	say(c, "shell", rc == MR_OK ? NULL : err.message,
	    "mailroom --as NAME with each command of the agent, or a newer version of the harness");
	spawned_done(&ran);
}

/* ---- Files ---- */

static void
check_roots(struct check *c, const struct mr_names *roots)
{
	const char *const wanted[] = { c->s->state_dir, c->s->room_dir };

	for (size_t i = 0; i < 2; i++) {
		mr_auto(buf_done) struct buf part = BUF_INIT;

		if (!wanted[i])
			continue;
		buf_addf(&part, "writable root %s", wanted[i]);
		say(c, buf_z(&part), names_has(roots, wanted[i]) ? NULL : "commands in Codex's sandbox cannot write it",
		    apply_line(c));
	}
}

/* Codex tells its servers no variable but these, and what is tried here had them all. */
static void
check_homes(struct check *c, const char *state, const char *config)
{
	const char *want = c->s->state_home ? c->s->state_home : "";
	mr_auto(buf_done) struct buf problem = BUF_INIT;

	buf_addf(&problem, "it has XDG_STATE_HOME '%s', and the hooks '%s': they would not be one agent", state, want);
	say(c, "state folder of the MCP server", strcmp(state, want) == 0 ? NULL : buf_z(&problem), apply_line(c));
	want = c->s->config_home ? c->s->config_home : "";
	buf_clear(&problem);
	buf_addf(&problem, "it has XDG_CONFIG_HOME '%s', and the hooks '%s': they would not trust the same rooms",
	    config, want);
	say(c, "configuration of the MCP server", strcmp(config, want) == 0 ? NULL : buf_z(&problem), apply_line(c));
}

/* For a project, with the roots and variables of the user's own file: Codex reads both. */
static void
check_toml(struct check *c, struct setup_file *f)
{
	struct buf homes[2] = { BUF_INIT, BUF_INIT };
	struct mr_names argv = { 0 }, roots = { 0 };
	struct mr_error err = { 0 };

	struct mr_names unused = { 0 };
	mr_auto(file_done) struct setup_file own = { 0 };
	struct setup as_user = *c->s;

	as_user.project = false;
	if ((c->s->project && (read_settings(&as_user, &c->s->harness->files[1], &own, &err) != MR_OK ||
				  codex_command(&own.before, &unused, &roots, homes, &err) != MR_OK)) ||
	    codex_command(&f->before, &argv, &roots, homes, &err) != MR_OK)
		say(c, f->path, err.message, "mend the file by hand");
	else {
		check_server(c, &argv, NULL);
		if (argv.n > 0)
			check_homes(c, buf_z(&homes[0]), buf_z(&homes[1]));
		check_roots(c, &roots);
	}
	buf_done(&homes[0]);
	buf_done(&homes[1]);
	mr_names_done(&argv);
	mr_names_done(&roots);
	mr_names_done(&unused);
}

static void
check_json(struct check *c, struct setup_file *f)
{
	mr_auto(jsonc_done) struct jsonc doc = { 0 };
	struct mr_names argv = { 0 }, env = { 0 };
	struct mr_error err = { 0 };

	if (text_object(&f->before, &doc, &err) != MR_OK && err.code != MR_EMPTY) {
		say(c, f->path, err.message, "mend the file by hand");
		return;
	}
	if (f->parts & SETUP_HOOKS)
		check_hooks(c, doc.root);
	for (size_t i = 0; i < setup_permissions_n && (f->parts & SETUP_ALLOW); i++)
		check_permission(c, doc.root, setup_permissions[i]);
	for (size_t i = 0; i < 2 && (f->parts & SETUP_ALLOW); i++)
		check_no_permission(c, doc.root, setup_old_permissions[i]);
	if (f->parts & SETUP_SERVER) {
		(void)server_command(doc.root, &argv, &env);
		check_server(c, &argv, &env);
	}
	mr_names_done(&argv);
	mr_names_done(&env);
}

/* Agents type "mailroom", and that is what they are allowed. */
static void
check_path(struct check *c)
{
	mr_auto(buf_done) struct buf repair = BUF_INIT;

	buf_addf(&repair, "ln -s %s DIR, where DIR is a folder of $PATH", c->s->program);
	say(c, "mailroom in $PATH", command_in_path(c->s) ? NULL : "a shell does not find it by its name",
	    buf_z(&repair));
}

int
check_run(struct setup *s)
{
	struct check c = { .s = s };
	struct mr_error err = { 0 };
	enum mr_rc rc = probe_open(s, &c.probe, &err);

	for (size_t i = 0; i < s->harness->files_n && rc == MR_OK; i++) {
		mr_auto(file_done) struct setup_file f = { 0 };

		rc = read_settings(s, &s->harness->files[i], &f, &err);
		if (rc == MR_OK && (f.parts & SETUP_TOML))
			check_toml(&c, &f);
		else if (rc == MR_OK)
			check_json(&c, &f);
	}
	if (rc == MR_OK) {
		check_shell(&c);
		check_path(&c);
	}
	probe_close(&c.probe);
	if (rc != MR_OK)
		return cli_fail(s->cli, &err);
	return c.wrong > 0 ? EXIT_FAILED : EXIT_DONE;
}
