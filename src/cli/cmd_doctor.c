/* SPDX-License-Identifier: MIT */
/* cmd_doctor.c - looks a room over, explains what it finds, and repairs it only when told to. Also finds sessions of a
 * harness in which nothing tells the agent of new mail, and tries each harness that the user has set up with a message,
 * as `setup --check` does. What a project's settings name is not run. */
#include "base/findings.h"
#include "cli/setup/setup.h"
#include "helptext.h"

/* ---- Saying ---- */

struct visit {
	struct cli *cli;
	size_t problems, fixed, notes;
	size_t fixable; /* whose advice is --fix */
};

static void
report(void *ctx, const struct mr_finding *f)
{
	static const struct {
		const char *key, *label;
		enum style style;
	} words[] = { { "fine", "fine   ", STYLE_GREEN }, { "note", "note   ", STYLE_YELLOW },
		{ "problem", "PROBLEM", STYLE_RED } };
	struct visit *v = ctx;
	struct buf *out = &v->cli->out;

	v->fixed += f->fixed;
	v->problems += f->severity == MR_PROBLEM && !f->fixed;
	v->fixable += !f->fixed && f->severity != MR_FINE && strstr(f->fix, "--fix");
	v->notes += f->severity == MR_NOTE && !f->fixed;
	if (out_json(v->cli, kv_str("severity", words[f->severity].key), kv_str("code", f->code),
		kv_opt("path", f->path), kv_str("what", f->what), kv_opt("why", f->why), kv_opt("fix", f->fix),
		kv_bool("fixed", f->fixed)))
		return;
	out_styled(v->cli, out, f->fixed ? STYLE_GREEN : words[f->severity].style,
	    f->fixed ? "fixed  " : words[f->severity].label);
	fence_addf(out, "  %s: %.4096s\n", f->code, f->what);
	if (f->severity != MR_FINE && f->why[0])
		fence_addf(out, "         why: %.4096s\n", f->why);
	if (f->severity != MR_FINE && f->fix[0])
		fence_addf(out, "         %s: %.4096s\n", f->fixed ? "done" : "fix", f->fix);
}

/* ---- Hooks ---- */

/* "claude-code-1234" is of the harness "claude-code". */
static const struct harness *
harness_of(const char *session)
{
	for (size_t i = 0; session && i < harnesses_n; i++) {
		size_t len = strlen(harnesses[i].name);

		if (strncmp(session, harnesses[i].name, len) == 0 && session[len] == '-')
			return &harnesses[i];
	}
	return NULL;
}

/* "enabledPlugins": { "mailroom@somewhere": true }: the plugin has the same hooks. */
static bool
has_plugin(struct json_value root)
{
	struct json_value all = json_get(root, "enabledPlugins"), key, value;

	for (size_t at = 0; json_member(all, &at, &key, &value);)
		if (value.kind == JSON_TRUE && str_starts(key.raw, "\"" SETUP_SERVER_NAME "@"))
			return true;
	return false;
}

/* Clears the bit of each event that has its hook in these settings, or in a plugin. True: the settings name one. */
static bool
note_hooks(struct setup *s, unsigned *missing)
{
	const struct harness *harness = s->harness;
	bool named = false;

	for (size_t i = 0; harness->files[i].name; i++) {
		mr_auto(file_done) struct setup_file f = { 0 };
		mr_auto(jsonc_done) struct jsonc doc = { 0 };

		/* A plugin that is always wanted is all hooks in one. */
		if ((harness->files[i].parts & SETUP_PLUGIN) && settings_wanted(s, &harness->files[i], SETUP_IN) &&
		    !harness->files[i].only_with && read_settings(s, &harness->files[i], &f, IGNORED) == MR_OK &&
		    f.there) {
			*missing = 0;
			named = true;
		}
		if (!(harness->files[i].parts & SETUP_HOOKS) || !settings_wanted(s, &harness->files[i], SETUP_IN) ||
		    read_settings(s, &harness->files[i], &f, IGNORED) != MR_OK ||
		    text_object(&f.before, &doc, IGNORED) != MR_OK)
			continue;
		if (has_plugin(doc.root))
			*missing = 0;
		for (unsigned e = 0; harness->events[e].name; e++) {
			mr_auto(buf_done) struct buf line = BUF_INIT;

			if (!hooks_command(s, doc.root, harness->events[e].name, false, &line))
				continue;
			*missing &= ~(1U << e);
			named = true;
		}
	}
	return named;
}

static void
examine(struct cli *cli, struct findings *f, const struct mr_agent *agent, const struct harness *harness)
{
	mr_auto(buf_done) struct buf what = BUF_INIT, fix = BUF_INIT;
	unsigned missing = 0;

	for (unsigned e = 0; harness->events[e].name; e++)
		missing |= 1U << e;
	for (int project = 0; project < 2; project++) {
		struct setup s = { .cli = cli, .harness = harness, .project = project == 1 };

		if (setup_place(&s, IGNORED) != MR_OK)
			return; /* nothing can be said */
		if (agent->worktree[0])
			s.project_dir = agent->worktree;
		(void)note_hooks(&s, &missing);
	}
	for (unsigned e = 0; harness->events[e].name; e++)
		if (missing & (1U << e))
			buf_addf(&what, "%s%s", what.len ? ", " : "", harness->events[e].name);
	buf_addf(&fix, "mailroom setup %s --apply", harness->name);
	if (missing)
		findings_say(f,
		    &(struct mr_finding){ .severity = MR_NOTE,
			.code = "hooks",
			.path = agent->name,
			.why = "nothing tells that agent of new mail: it sees it only when it looks by itself",
			.fix = buf_z(&fix) },
		    "'%s' lives in a session of %s, whose settings have no hook of mailroom for %s", agent->name,
		    harness->title, buf_z(&what));
}

/* A note for each harness and worktree that an agent lives in and whose settings have no hook of mailroom. */
static enum mr_rc
look_for_hooks(struct cli *cli, struct visit *v, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };
	mr_auto(mr_names_done) struct mr_names seen = { 0 }; /* "<harness> <worktree>" */
	struct findings f = findings_begin(false, report, v);
	enum mr_rc rc = mr_unless(mr_agent_list(cli->room, &agents, err), MR_UNSUPPORTED, err); /* it keeps no list */
	size_t sessions = 0;

	for (size_t i = 0; i < agents.n && rc == MR_OK; i++) {
		mr_auto(buf_done) struct buf key = BUF_INIT;
		const struct mr_agent *a = &agents.v[i];
		const struct harness *harness = mr_agent_presence(a) == MR_GONE ? NULL : harness_of(a->session);

		if (!harness)
			continue;
		sessions++;
		buf_addf(&key, "%s %s", harness->name, a->worktree);
		if (names_has(&seen, buf_z(&key)))
			continue;
		rc = mr_got(names_add(&seen, buf_str(&key)), err);
		examine(cli, &f, a, harness);
	}
	if (rc == MR_OK && sessions > 0 && f.told == 0)
		findings_say(&f, &(struct mr_finding){ .severity = MR_FINE, .code = "hooks" },
		    "the harnesses of %zu agents tell them of new mail", sessions);
	findings_end(&f);
	return rc;
}

struct trial {
	struct findings *f;
	size_t wrong;
	bool rang; /* it has a bell, which was tried */
};

static void
note_part(void *ctx, struct setup *s, const char *part, const char *problem, const char *repair)
{
	struct trial *t = ctx;

	t->rang |= strcmp(part, "bell") == 0;
	if (!problem)
		return;
	t->wrong++;
	findings_say(t->f,
	    &(struct mr_finding){ .severity = MR_NOTE,
		.code = "bell",
		.path = s->harness->name,
		.why = "an agent there may not learn of its mail",
		.fix = repair },
	    "%s, %s: %s", s->harness->title, part, problem);
}

int
cmd_doctor(struct cli *cli, const struct doctor_options *o)
{
	struct visit v = { .cli = cli };

	progress_begin(cli, cli->room);
	enum mr_rc rc = mr_doctor(cli->room, o->fix, report, &v, &cli->err);

	progress_clear(cli);
	TRY_CLI(rc);
	TRY_CLI(look_for_hooks(cli, &v, &cli->err));
	/* Each harness in whose settings the user has something of ours. */
	struct findings f = findings_begin(false, report, &v);

	for (size_t i = 0; i < harnesses_n; i++) {
		struct setup s = { .cli = cli, .harness = &harnesses[i] };
		struct trial t = { .f = &f };
		struct mr_error err = { 0 };
		unsigned missing = 0;

		if (setup_place(&s, IGNORED) != MR_OK || !note_hooks(&s, &missing))
			continue;
		if (check_try(&s, note_part, &t, &err) != MR_OK)
			note_part(&t, &s, "trial", err.message, "see what is in the way");
		if (t.wrong == 0)
			findings_say(&f,
			    &(struct mr_finding){ .severity = MR_FINE, .code = "bell", .path = harnesses[i].name },
			    "%s: a message reaches its hooks%s", harnesses[i].title,
			    t.rang ? ", and wakes an idle session" : "");
	}
	findings_end(&f);
	if (!cli->json) {
		buf_addf(&cli->out, "%s, %s", counted(v.problems, "problem").text, counted(v.notes, "note").text);
		if (v.fixed > 0)
			buf_addf(&cli->out, ", %zu fixed", v.fixed);
		buf_adds(
		    &cli->out, v.fixable > 0 && !o->fix ? "; `mailroom doctor --fix` repairs what it can\n" : "\n");
	}
	return v.problems > 0 ? EXIT_FAILED : EXIT_DONE;
}
