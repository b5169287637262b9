/* SPDX-License-Identifier: MIT */
/* doctor_hooks.c - a session of a harness in which nothing tells the agent of new mail. What stands in the settings is
 * read as `setup --check` reads it; nothing is run. */
#include "cli/doctor_hooks.h"

#include "base/findings.h"
#include "cli/setup/setup.h"

struct look {
	struct cli *cli;
	struct findings f;
	struct mr_names seen; /* "<harness> <worktree>" */
	size_t sessions;
	bool failed;
};

/* "claude-code-1234" is of the harness "claude-code". */
static const struct harness *
harness_of(const char *session)
{
	char name[40];

	for (const char *dash = session ? strchr(session, '-') : NULL; dash; dash = strchr(dash + 1, '-')) {
		(void)snprintf(name, sizeof name, "%.*s", (int)(dash - session), session);
		const struct harness *harness = harness_named(name);

		if (harness)
			return harness;
	}
	return NULL;
}

/* "enabledPlugins": { "mailroom@somewhere": true }: the plugin brings the same hooks. */
static bool
has_plugin(const struct jsonc_node *root)
{
	const struct jsonc_node *all = jsonc_member(root, "enabledPlugins");

	for (const struct jsonc_node *p = all ? all->first : NULL; p; p = p->next) {
		struct mr_str name = { p->text.ptr + p->name, p->name_end - p->name };

		if (p->name < p->at && str_starts(name, "\"" SETUP_SERVER_NAME "@") && p->kind == JSON_TRUE)
			return true;
	}
	return false;
}

/* Clears the bit of each event that has its hook in these settings. */
static void
note_hooks(struct setup *s, unsigned *missing)
{
	struct mr_error ignored = { 0 };

	for (size_t i = 0; i < s->harness->files_n; i++) {
		mr_auto(file_done) struct setup_file f = { 0 };
		mr_auto(jsonc_done) struct jsonc doc = { 0 };

		if (!(s->harness->files[i].parts & SETUP_HOOKS) ||
		    read_settings(s, &s->harness->files[i], &f, &ignored) != MR_OK ||
		    text_object(&f.before, &doc, &ignored) != MR_OK)
			continue;
		if (has_plugin(doc.root))
			*missing = 0;
		for (unsigned e = 0; s->harness->events[e].name; e++) {
			mr_auto(buf_done) struct buf line = BUF_INIT;

			if (hooks_command(s, doc.root, s->harness->events[e].name, false, &line))
				*missing &= ~(1U << e);
		}
	}
}

static void
examine(struct look *l, const struct mr_agent *agent, const struct harness *harness)
{
	mr_auto(buf_done) struct buf what = BUF_INIT, fix = BUF_INIT;
	struct mr_error ignored = { 0 };
	unsigned missing = 0;

	for (unsigned e = 0; harness->events[e].name; e++)
		missing |= 1U << e;
	for (int project = 0; project < 2; project++) {
		struct setup s = { .cli = l->cli, .harness = harness, .project = project == 1 };

		if (setup_place(&s, &ignored) != MR_OK)
			return; /* nothing can be said */
		if (agent->worktree[0])
			s.project_dir = agent->worktree;
		note_hooks(&s, &missing);
	}
	if (!missing)
		return;
	for (unsigned e = 0; harness->events[e].name; e++)
		if (missing & (1U << e))
			buf_addf(&what, "%s%s", what.len ? ", " : "", harness->events[e].name);
	buf_addf(&fix, "mailroom setup %s --apply", harness->name);
	findings_say(&l->f,
	    &(struct mr_finding){ .severity = MR_NOTE,
		.code = "hooks",
		.path = agent->name,
		.why = "nothing tells that agent of new mail: it sees it only when it looks by itself",
		.fix = buf_z(&fix) },
	    "'%s' lives in a session of %s, whose settings have no hook of mailroom for %s", agent->name,
	    harness->title, buf_z(&what));
}

static bool
look_at(void *ctx, const struct mr_agent *agent)
{
	struct look *l = ctx;
	mr_auto(buf_done) struct buf key = BUF_INIT;
	const struct harness *harness = mr_agent_presence(agent) == MR_GONE ? NULL : harness_of(agent->session);

	if (!harness)
		return true;
	l->sessions++;
	buf_addf(&key, "%s %s", harness->name, agent->worktree);
	if (names_has(&l->seen, buf_z(&key)))
		return true;
	l->failed |= !names_add(&l->seen, buf_str(&key));
	examine(l, agent, harness);
	return !l->failed;
}

enum mr_rc
doctor_hooks(struct cli *cli, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	struct look l = { .cli = cli, .f = findings_begin(false, fn, ctx) };
	enum mr_rc rc = mr_each_agent(cli->room, look_at, &l, err);

	if (rc == MR_UNSUPPORTED) { /* a room that keeps no list */
		*err = (struct mr_error){ 0 };
		rc = MR_OK;
	}
	if (rc == MR_OK && l.failed)
		rc = mr_nomem(err);
	if (rc == MR_OK && l.sessions > 0 && l.f.told == 0)
		findings_say(&l.f, &(struct mr_finding){ .severity = MR_FINE, .code = "hooks" },
		    "the harnesses of %zu agents tell them of new mail", l.sessions);
	findings_end(&l.f);
	mr_names_done(&l.seen);
	return rc;
}
