/* SPDX-License-Identifier: MIT */
/* inspect.c - what `doctor` finds in the mailboxes of the mailbox skill. */
#include "rooms/handoff/handoff.h"

#include "base/findings.h"
#include "base/sys.h"
#include "base/text.h"
#include <stdio.h>

struct inspection {
	struct mr_room *room;
	struct handoff *h;
	int root_fd;
	struct findings f;
	const struct registry *registry;
	const char *box; /* the mailbox looked at */
	int tmp_fd;      /* of it */
};

static void
find(struct inspection *x, const char *code, const char *text, const char *why, const char *fix, bool fixed)
{
	findings_say(&x->f,
	    &(struct mr_finding){ .severity = MR_PROBLEM,
		.code = code,
		.path = "registry.json",
		.why = why,
		.fix = fixed ? "it was written anew" : fix,
		.fixed = fixed },
	    "%s", text);
}

/* ---- The registry ---- */

static enum mr_rc
put_right(void *ctx, struct registry *r, struct mr_error *err)
{
	const struct inspection *x = ctx;

	(void)err;
	/* An empty path is filled in with that of this root when it is written. */
	for (size_t i = 0; i < r->n; i++) {
		mr_auto(buf_done) struct buf here = BUF_INIT;

		handoff_inbox_path(x->h, r->v[i].id, &here);
		if (strcmp(r->v[i].inbox, buf_z(&here)) != 0)
			r->v[i].inbox = "";
	}
	return MR_OK;
}

static bool
is_canonical(const struct inspection *x)
{
	mr_auto(buf_done) struct buf here = BUF_INIT, canonical = BUF_INIT;
	struct mr_error ignored = { 0 };

	if (file_read(x->root_fd, "registry.json", (size_t)4 << 20, &here, &ignored) != MR_OK)
		return ignored.code == MR_NOTFOUND;
	registry_write(x->registry, x->h->path, &canonical);
	return str_eq(buf_str(&here), buf_str(&canonical));
}

static size_t
count_elsewhere(const struct inspection *x)
{
	size_t n = 0;

	for (size_t i = 0; i < x->registry->n; i++) {
		mr_auto(buf_done) struct buf here = BUF_INIT;

		handoff_inbox_path(x->h, x->registry->v[i].id, &here);
		n += x->registry->v[i].inbox[0] && strcmp(x->registry->v[i].inbox, buf_z(&here)) != 0;
	}
	return n;
}

static void
inspect_entries(struct inspection *x)
{
	const struct registry *r = x->registry;

	for (size_t i = 0; i < r->n; i++) {
		mr_auto(buf_done) struct buf name = BUF_INIT;
		char text[400];

		text_clean_line(&name, utf8_cut(str_of(r->v[i].name), 80));
		if (!handoff_id_ok(str_of(r->v[i].id))) {
			(void)snprintf(text, sizeof text,
			    "'%s' is registered with an id that is no folder of this room", buf_z(&name));
			find(x, "registry", text, "mail to that name cannot be stored",
			    "take the entry out of registry.json", false);
		} else if (registry_named(r, str_of(r->v[i].name)) != &r->v[i]) {
			(void)snprintf(text, sizeof text, "the name '%s' is registered twice", buf_z(&name));
			find(x, "registry", text, "the first one counts", "take the other out of registry.json", false);
		} else if (strcmp(r->v[i].name, r->v[i].id) != 0 && handoff_has_mailbox(x->h, r->v[i].name)) {
			(void)snprintf(
			    text, sizeof text, "the name '%s' is also the id of another mailbox", buf_z(&name));
			find(x, "registry", text, "mailroom reaches only the name", "register under another name",
			    false);
		}
	}
}

static enum mr_rc
inspect_registry(struct inspection *x, struct mr_error *err)
{
	size_t elsewhere = count_elsewhere(x);
	bool good = is_canonical(x), fixed = false;
	char text[400];

	if (x->f.fix && (elsewhere || !good)) {
		TRY(handoff_registry_change(x->h, put_right, x, err));
		fixed = true;
	}
	if (x->registry->broken)
		find(x, "registry", "registry.json is no JSON; only some of its entries can be read",
		    "two programs wrote it at the same time, or one was killed",
		    "mailroom doctor --fix writes those again; the others have to register anew", fixed);
	else if (!good)
		find(x, "registry", "registry.json has not the layout that the mailbox skill reads",
		    "another program wrote it, and the skill finds no names in it",
		    "mailroom doctor --fix, or any registration through mailroom, writes it again", fixed);
	if (elsewhere) {
		(void)snprintf(text, sizeof text, "%zu of %zu registered inboxes are not in '%s'", elsewhere,
		    x->registry->n, x->h->path);
		find(x, "root", text, "the root was moved, or this is a copy",
		    "is this the right root? If it was moved, mailroom doctor --fix writes its paths", fixed);
	}
	inspect_entries(x);
	return MR_OK;
}

/* ---- Mail that no command can read ---- */

static void
tell_unreadable(void *ctx, const char *path, const struct mr_error *err)
{
	struct inspection *x = ctx;

	if (strcmp(path, "registry.json") == 0)
		return; /* inspect_registry tells of that */
	findings_say(&x->f,
	    &(struct mr_finding){ .severity = MR_PROBLEM,
		.code = "messages",
		.path = path,
		.why = "it is damaged, or another program put it there: commands pass it over, and say so",
		.fix = "look at it; put it right, or move it out of the mailbox" },
	    "%s", err->message);
}

static bool
pass_over(void *ctx, const struct mr_message *msg)
{
	(void)ctx;
	(void)msg;
	return true;
}

static void
inspect_mail(struct inspection *x, const char *box)
{
	struct scan_request want = {
		.folders = MR_INBOX, .depth = SCAN_BODIES, .trouble = tell_unreadable, .trouble_ctx = x
	};
	struct mr_error ignored = { 0 };

	(void)handoff_scan(x->room, box, &want, pass_over, NULL, &ignored);
}

/* ---- What interrupted sends left behind ---- */

static bool
look_at_leftover(void *ctx, const struct dir_entry *e)
{
	struct inspection *x = ctx;
	mr_auto(buf_done) struct buf path = BUF_INIT;

	buf_addf(&path, "%s/tmp/%s", x->box, e->name);
	if (buf_ok(&path))
		findings_leftover(&x->f, x->tmp_fd, e->name, buf_z(&path));
	return true;
}

static bool
look_into(void *ctx, const struct dir_entry *e)
{
	struct inspection *x = ctx;
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_error ignored = { 0 };
	char path[HANDOFF_ID_MAX + 16];

	if (str_starts(str_of(e->name), ".registry.json.") && str_ends(str_of(e->name), ".tmp"))
		findings_leftover(&x->f, x->root_fd, e->name, e->name);
	if (!handoff_has_mailbox(x->h, e->name))
		return true;
	inspect_mail(x, e->name);
	(void)snprintf(path, sizeof path, "%s/tmp", e->name);
	if (dir_open(x->root_fd, path, &fd, &ignored) != MR_OK)
		return true;
	x->box = e->name;
	x->tmp_fd = fd;
	(void)dir_each(fd, look_at_leftover, x, &ignored);
	return true;
}

static void
inspect_modes(struct inspection *x)
{
	struct stat st;

	if (sys_stat_fd(x->root_fd, &st) < 0 || (st.st_mode & 077) == 0)
		return;
	bool fixed = x->f.fix && sys_chmod_fd(x->root_fd, 0700) == 0;

	findings_say(&x->f,
	    &(struct mr_finding){ .severity = MR_NOTE,
		.code = "modes",
		.path = ".",
		.why = "a mailbox is its owner's alone",
		.fix = fixed ? "its mode is 0700 now" : "mailroom doctor --fix closes it: mode 0700",
		.fixed = fixed },
	    "other users can look into the root");
}

enum mr_rc
handoff_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(registry_done) struct registry r = { 0 };
	struct inspection x = {
		.room = room, .h = handoff_of(room), .f = findings_begin(fix, fn, ctx), .registry = &r, .tmp_fd = -1
	};
	enum mr_rc rc = handoff_root(x.h, false, &x.root_fd, err);

	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	TRY(handoff_registry_read(x.h, &r, err));
	findings_keep_in_state(&x.f, room->state_dir);
	findings_space(&x.f, x.root_fd);
	inspect_modes(&x);
	rc = inspect_registry(&x, err);
	if (rc == MR_OK)
		rc = dir_each(x.root_fd, look_into, &x, err);
	findings_end(&x.f);
	return rc;
}
