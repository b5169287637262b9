/* SPDX-License-Identifier: MIT */
/*
 * handoff.c - the table of the driver for the mailbox skill's mailboxes, their root, the doctor and the
 * verbs of the skill.
 *
 * The root has a well-known name in /tmp, so any user of the machine may make it first: a link, another user's folder
 * and one that others can write to are refused. One that is missing is made by the first command that writes.
 */
#include "rooms/handoff/handoff.h"

#include "base/clock.h"
#include "base/fence.h"
#include "base/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* ---- The root ---- */

enum mr_rc
handoff_root(struct handoff *h, bool make, struct mr_error *err)
{
	mr_auto(sys_close_fd) int made = -1, fd = -1;
	struct stat st;

	if (h->root_fd >= 0)
		return MR_OK;
	if (make)
		TRY(dir_make(AT_FDCWD, h->kit.path, 0700, true, &made, err));
	fd = sys_open(AT_FDCWD, h->kit.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0 && errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "no folder '%s'", h->kit.path);
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR || errno == EXDEV))
		return mr_fail(err, MR_REFUSED,
		    "'%s' is not a folder, or is reached through a symbolic link\n"
		    "a link in the place of the root may be somebody else's: look at it before you go on",
		    h->kit.path);
	if (fd < 0 || sys_stat_fd(fd, &st) < 0)
		return mr_fail_errno(err, "cannot open '%s'", h->kit.path);
	if (st.st_uid != geteuid())
		return mr_fail(err, MR_REFUSED,
		    "the mailboxes in '%s' belong to another user (uid %ld)\n"
		    "use a root of your own: --room handoff:PATH, and MB_TEST_ROOT for the skill itself",
		    h->kit.path, (long)st.st_uid);
	/* Many systems give each user a group of their own and umask 002: that group has no other member. */
	if (st.st_mode & S_IWOTH || (st.st_mode & S_IWGRP && st.st_gid != getegid()))
		return mr_fail(err, MR_REFUSED,
		    "others can write to '%s', so they could put mail there or take it away\nfind out who did, then: chmod go-w %s",
		    h->kit.path, h->kit.path);
	h->root_fd = fd;
	fd = -1;
	return MR_OK;
}

enum mr_rc
handoff_dir(struct handoff *h, const char *id, const char *name, bool make, int *ret_fd, struct mr_error *err)
{
	char path[HANDOFF_ID_MAX + 16];

	TRY(handoff_root(h, make, err));
	(void)snprintf(path, sizeof path, "%s/%s", id, name);
	return make ? dir_make(h->root_fd, path, 0700, true, ret_fd, err) : dir_open(h->root_fd, path, ret_fd, err);
}

/* ---- Opening ---- */

enum mr_rc
handoff_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	struct mr_str path = kit_trim_slashes(str_of(where)), last = kit_last_part(path);

	if (where[0] != '/' || where[1] == '\0')
		return mr_fail(err, MR_REFUSED, "cannot open '%s': not the absolute path of a folder", room->spec);
	enum mr_rc opened = kit_open(room, sizeof(struct handoff), &handoff_format, path, err);
	struct handoff *h = handoff_of(room);

	if (h) /* also when opening failed half-way: the close that follows looks at it */
		h->root_fd = -1;
	TRY(opened);
	/* What stands after @: the last part of the path, as far as it can. */
	struct buf name = BUF_INIT;

	for (size_t i = 0; i < last.len; i++) {
		char c = last.ptr[i];

		if (ascii_alnum(c) || (name.len > 0 && memchr("._+-", c, 4)))
			buf_addc(&name, c);
	}
	if (name.len == 0)
		buf_adds(&name, "handoff");
	room->name = buf_take(&name);
	TRY(mr_got(room->name, err));
	enum mr_rc rc = handoff_root(h, false, err);

	/* A root that is missing is no error, for the original makes it too; but a typing error in the way there is. */
	if (rc == MR_NOTFOUND && !room->must_exist) {
		mr_auto(buf_done) struct buf parent = BUF_INIT;
		mr_auto(sys_close_fd) int parent_fd = -1;

		buf_add(&parent, kit_trim_slashes((struct mr_str){ path.ptr, (size_t)(last.ptr - path.ptr) }));
		rc = buf_ok(&parent) ? dir_open(AT_FDCWD, buf_z(&parent), &parent_fd, err) : mr_nomem(err);
	}
	return rc == MR_OK ? MR_OK : mr_wrap(err, "cannot open room '%s'", h->kit.path);
}

enum mr_rc
handoff_make_box(struct mr_room *room, const char *box, struct mr_error *err)
{
	(void)box; /* there are no others than the room itself */
	return handoff_root(handoff_of(room), true, err);
}

void
handoff_close(struct mr_room *room)
{
	struct handoff *h = handoff_of(room);

	if (h)
		sys_close_fd(&h->root_fd);
	kit_close(room);
}

/* ---- The doctor ---- */

/* A finding about registry.json; with `fixed` it was put right. */
MR_PRINTF(6, 7)
static void
say_registry(struct findings *f, bool fixed, const char *code, const char *why, const char *fix, const char *fmt, ...)
{
	char text[400];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	findings_say(f,
	    &(struct mr_finding){
		MR_PROBLEM, code, "registry.json", NULL, why, fixed ? "it was written anew" : fix, fixed },
	    "%s", text);
}

static void
inspect_entry(struct handoff *h, struct findings *f, const struct registry *r, const struct registry_entry *e)
{
	if (!handoff_id_ok(str_of(e->id)))
		say_registry(f, false, "registry", "mail to that name cannot be stored",
		    "take the entry out of registry.json",
		    "'%.80s' is registered with an id that is not a folder of this room", e->name);
	else if (registry_named(r, str_of(e->name)) != e)
		say_registry(f, false, "registry", "the first one counts", "take the other out of registry.json",
		    "the name '%.80s' is registered twice", e->name);
	else if (strcmp(e->name, e->id) != 0 && handoff_has_mailbox(h, e->name))
		say_registry(f, false, "registry", "mailroom reaches only the name", "register under another name",
		    "the name '%.80s' is also the id of another mailbox", e->name);
}

static enum mr_rc
inspect_registry(struct handoff *h, struct findings *f, struct mr_error *err)
{
	mr_auto(registry_done) struct registry r = { 0 };
	mr_auto(buf_done) struct buf here = BUF_INIT, canonical = BUF_INIT;
	size_t elsewhere = 0;
	bool fixed = false;

	TRY(handoff_registry_read(h, &r, err));
	registry_write(&r, h->kit.path, &canonical);
	enum mr_rc rc = file_read(h->root_fd, "registry.json", (size_t)4 << 20, &here, IGNORED);
	bool good = rc == MR_NOTFOUND || (rc == MR_OK && str_eq(buf_str(&here), buf_str(&canonical)));

	for (size_t i = 0; i < r.n; i++)
		elsewhere += handoff_is_elsewhere(h, &r.v[i]);
	if (f->fix && (elsewhere || !good)) {
		mr_auto(registry_done) struct registry now = { 0 };
		mr_auto(sys_close_fd) int lock = -1;

		TRY(handoff_registry_lock(h, &lock, &now, err));
		for (size_t i = 0; i < now.n; i++)
			if (handoff_is_elsewhere(h, &now.v[i]))
				now.v[i].inbox = ""; /* filled in when it is written */
		TRY(handoff_registry_store(h, &now, err));
		fixed = true;
	}
	if (r.broken)
		say_registry(f, fixed, "registry", "two programs wrote it at the same time, or one was killed",
		    "`mailroom doctor --fix` writes those again; the others have to register anew",
		    "registry.json is not JSON; only some of its entries can be read");
	else if (!good)
		say_registry(f, fixed, "registry", "another program wrote it, and the skill finds no names in it",
		    "`mailroom doctor --fix`, or any registration through mailroom, writes it again",
		    "registry.json does not have the layout that the mailbox skill reads");
	if (elsewhere)
		say_registry(f, fixed, "root", "the root was moved, or this is a copy",
		    "is this the right root? If it was moved, `mailroom doctor --fix` writes its paths",
		    "%zu of %zu registered inboxes are not in '%s'", elsewhere, r.n, h->kit.path);
	for (size_t i = 0; i < r.n; i++)
		inspect_entry(h, f, &r, &r.v[i]);
	return MR_OK;
}

static void
tell_unreadable(void *ctx, const char *path, const struct mr_error *err)
{
	if (strcmp(path, "registry.json") == 0)
		return; /* inspect_registry tells of that */
	findings_say(ctx,
	    &(struct mr_finding){ MR_PROBLEM, "messages", path, NULL,
		"it is damaged, or another program put it there: commands pass it over, and say so",
		"look at it; repair it, or move it out of the mailbox", false },
	    "%s", err->message);
}

enum mr_rc
handoff_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	struct handoff *h = handoff_of(room);
	mr_auto(findings_end) struct findings f = findings_begin(fix, fn, ctx);
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	const struct scan_request want = {
		.folders = MR_INBOX, .depth = SCAN_BODIES, .trouble = tell_unreadable, .trouble_ctx = &f
	};
	struct stat st;
	enum mr_rc rc = handoff_root(h, false, err);

	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	findings_keep_in_state(&f, room->state_dir);
	findings_space(&f, h->root_fd);
	if (sys_stat_fd(h->root_fd, &st) == 0 && (st.st_mode & 077)) {
		bool fixed = fix && sys_chmod_fd(h->root_fd, 0700) == 0;

		findings_say(&f,
		    &(struct mr_finding){ MR_NOTE, "modes", ".", NULL, "a mailbox is its owner's alone",
			fixed ? "its mode is 0700 now" : "`mailroom doctor --fix` closes it: mode 0700", fixed },
		    "other users can look into the root");
	}
	TRY(inspect_registry(h, &f, err));
	TRY(dir_names(h->root_fd, &names, err));
	for (size_t i = 0; i < names.n; i++) {
		const char *name = names.v[i];
		mr_auto(sys_close_fd) int fd = -1;
		char path[HANDOFF_ID_MAX + 16];

		if (str_starts(str_of(name), ".registry.json.") && str_ends(str_of(name), ".tmp"))
			findings_leftover(&f, h->root_fd, name, name);
		if (!handoff_has_mailbox(h, name))
			continue;
		(void)kit_scan(room, name, &want, kit_pass_over, NULL, IGNORED);
		(void)snprintf(path, sizeof path, "%s/tmp", name);
		if (handoff_dir(h, name, "tmp", false, &fd, IGNORED) == MR_OK)
			kit_leftovers(&f, fd, path, NULL);
	}
	return MR_OK;
}

/*
 * ---- The verbs of the mailbox skill, with its outputs ----
 *
 * They speak of ids where the rest of mailroom speaks of agents, and a mailbox need not be registered for them.
 *
 *	ensure_inbox ID                              send TO FROM SUBJECT REPLY_TO, the body as input: file name
 *	list ID: paths, a line each                  archive FILE ID: "moved", or nothing when it was not there
 *	wait MILLISECONDS ID: MR_EMPTY in vain       register NAME ID HARNESS PID: MR_EXISTS when taken
 *	lookup NAME: id TAB inbox                    whois ID: names, a line each
 *	names                                        resolve_self: a new id
 *
 * Names and paths were chosen by other agents, and each is one line of the output: they go through the fence, which
 * leaves those of the original's alphabet as they are.
 */

static void
add_line(struct buf *out, const char *text)
{
	(void)fence_add(out, str_of(text), FENCE_LINE, 0);
	buf_addc(out, '\n');
}

struct asked {
	struct mr_room *room;
	struct handoff *h;
	const char *const *args;
	struct mr_str input;
	struct buf *out;
	struct mr_error *err;
};

static enum mr_rc
ensure_inbox(const struct asked *a)
{
	return handoff_make_mailbox(a->h, a->args[0], a->err);
}

static enum mr_rc
mint_self(const struct asked *a)
{
	char id[HANDOFF_UUID_LEN + 1];

	handoff_uuid(id);
	buf_adds(a->out, id);
	return MR_OK;
}

static enum mr_rc
send_letter(const struct asked *a)
{
	char name[HANDOFF_NAME_MAX + 1];

	TRY(handoff_post(
	    a->h, a->args[1], a->args[0], a->args[2][0] ? a->args[2] : "message", a->args[3], a->input, name, a->err));
	buf_adds(a->out, name);
	return MR_OK;
}

static int
by_name(const void *a, const void *b)
{
	const struct kit_item *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static enum mr_rc
list_inbox(const struct asked *a)
{
	mr_auto(kit_box_close) struct kit_box *box = NULL;
	mr_auto(kit_items_done) struct kit_items list = { 0 };

	TRY(kit_box_open(a->room, a->args[0], BOX_WITH_ID, &box, a->err));
	TRY(kit_list(box, MR_INBOX, &list, a->err));
	if (list.n > 0)
		qsort(list.v, list.n, sizeof *list.v, by_name);
	for (size_t i = 0; i < list.n; i++) {
		buf_addf(a->out, "%s/%s/inbox/", a->h->kit.path, a->args[0]);
		add_line(a->out, list.v[i].name);
	}
	return MR_OK;
}

static enum mr_rc
archive(const struct asked *a)
{
	const char *slash = strrchr(a->args[0], '/'), *name = slash ? slash + 1 : a->args[0];

	TRY(handoff_id_check(a->args[1], a->err));
	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return mr_fail(a->err, MR_REFUSED, "'%s' is not the name of a message", a->args[0]);
	enum mr_rc rc = handoff_move_file(a->h, a->args[1], name, MR_INBOX, a->err);

	if (rc == MR_OK)
		buf_adds(a->out, "moved");
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

/* Until a message is in the inbox, which is made, or the time is up: MR_EMPTY. */
static enum mr_rc
wait_for_mail(const struct asked *a)
{
	const char *mailbox = a->args[1];
	uint64_t ms = 0;
	mr_auto(buf_done) struct buf path = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	void *watch = NULL;
	enum mr_rc rc;

	if (!str_to_u64(str_of(a->args[0]), &ms) || ms > INT32_MAX * (uint64_t)1000)
		return mr_fail(a->err, MR_REFUSED, "'%s' is not a time to wait", a->args[0]);
	TRY(handoff_id_check(mailbox, a->err));
	TRY(handoff_dir(a->h, mailbox, "inbox", true, &fd, a->err));
	handoff_inbox_path(a->h, mailbox, &path);
	TRY(kit_watch(&path, &watch, a->err));
	for (int64_t end_ms = clock_boot_ms() + (int64_t)ms;;
	     (void)kit_watch_wait(NULL, watch, end_ms - clock_boot_ms())) {
		mr_auto(kit_items_done) struct kit_items list = { 0 };
		mr_auto(kit_box_close) struct kit_box *box = NULL; /* anew: it may be removed and made again */

		rc = kit_box_open(a->room, mailbox, BOX_WITH_ID, &box, a->err);
		if (rc == MR_OK)
			rc = kit_list(box, MR_INBOX, &list, a->err);
		if (rc == MR_OK && list.n == 0)
			rc = MR_EMPTY;
		if (rc != MR_EMPTY || clock_boot_ms() >= end_ms)
			break;
	}
	kit_watch_close(NULL, watch);
	return rc == MR_EMPTY ? mr_fail(a->err, MR_EMPTY, "no mail for '%s'", mailbox) : rc;
}

static enum mr_rc
register_name(const struct asked *a)
{
	uint64_t pid = 0;

	(void)str_to_u64(str_of(a->args[3]), &pid);
	return handoff_register(a->h,
	    &(struct registering){
		.name = a->args[0], .id = a->args[1], .harness = a->args[2], .pid = (int64_t)(pid & INT32_MAX) },
	    a->err);
}

static enum mr_rc
lookup(const struct asked *a)
{
	mr_auto(registry_done) struct registry r = { 0 };

	TRY(handoff_registry_read(a->h, &r, a->err));
	const struct registry_entry *e = registry_named(&r, str_of(a->args[0]));

	if (!e)
		return mr_fail(a->err, MR_NOTFOUND, "nobody is registered as '%s'", a->args[0]);
	mr_auto(buf_done) struct buf inbox = BUF_INIT;

	if (!e->inbox[0])
		handoff_inbox_path(a->h, e->id, &inbox);
	(void)fence_add(a->out, str_of(e->id), FENCE_LINE, 0);
	buf_addc(a->out, '\t');
	add_line(a->out, e->inbox[0] ? e->inbox : buf_z(&inbox));
	return inbox.failed ? mr_nomem(a->err) : MR_OK;
}

/* The names of all, or of one id. */
static enum mr_rc
list_names(const struct asked *a)
{
	mr_auto(registry_done) struct registry r = { 0 };
	const char *id = a->args[0];
	bool found = !id;

	TRY(handoff_registry_read(a->h, &r, a->err));
	for (size_t i = 0; i < r.n; i++)
		if (!id || strcmp(r.v[i].id, id) == 0) {
			add_line(a->out, r.v[i].name);
			found = true;
		}
	return found ? MR_OK : mr_fail(a->err, MR_NOTFOUND, "no name is registered for '%s'", id);
}

static const struct {
	const char *verb;
	size_t args;
	enum mr_rc (*run)(const struct asked *a);
} verbs[] = {
	{ "resolve_self", 0, mint_self },
	{ "ensure_inbox", 1, ensure_inbox },
	{ "send", 4, send_letter },
	{ "list", 1, list_inbox },
	{ "archive", 2, archive },
	{ "wait", 2, wait_for_mail },
	{ "register", 4, register_name },
	{ "lookup", 1, lookup },
	{ "whois", 1, list_names },
	{ "names", 0, list_names },
};

static enum mr_rc
run_verb(struct mr_room *room, const char *verb, const char *const *args, struct mr_str input, struct buf *out,
    struct mr_error *err)
{
	struct asked a = { room, handoff_of(room), args, input, out, err };
	size_t given = 0;

	while (args[given])
		given++;
	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
		if (strcmp(verbs[i].verb, verb) != 0)
			continue;
		if (given != verbs[i].args)
			return mr_fail(
			    err, MR_REFUSED, "'%s' takes %zu arguments, not %zu", verb, verbs[i].args, given);
		enum mr_rc rc = verbs[i].run(&a);

		return rc == MR_OK && out->failed ? mr_nomem(err) : rc;
	}
	return mr_fail(err, MR_UNSUPPORTED, "no verb '%s' in a handoff room", verb);
}

const struct room_driver room_handoff = {
	.kind = "handoff",
	.abilities = ROOM_READ_STATE | ROOM_ARCHIVE | ROOM_REGISTER | ROOM_RAW,
	.agent_variable = "AGENT_MAILBOX_ID",
	.open = handoff_open,
	.close = handoff_close,
	.make_box = handoff_make_box,
	.storage = kit_storage,
	.each_agent = handoff_each_agent,
	.find_agent = handoff_find_agent,
	.add_agent = handoff_add_agent,
	.remove_box = handoff_remove_box,
	.spell = handoff_spell,
	.unsupported = handoff_unsupported,
	.deliver = handoff_deliver,
	.settle_ticket = kit_settle_ticket,
	.scan = kit_scan,
	.fetch = kit_fetch,
	.mark = kit_mark,
	.watch = kit_watch_agent,
	.watch_wait = kit_watch_wait,
	.watch_close = kit_watch_close,
	.each_place = kit_each_place,
	.inspect = handoff_inspect,
	.face = &(const struct room_face){ .run = run_verb },
};
