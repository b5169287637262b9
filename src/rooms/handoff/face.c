/* SPDX-License-Identifier: MIT */
/*
 * face.c - the verbs of the mailbox skill, with its outputs. They speak of ids where the rest of mailroom speaks of
 * agents, and a mailbox need not be registered for them.
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
#include "base/clock.h"
#include "base/fence.h"
#include "rooms/handoff/handoff.h"

static void
add_line(struct buf *out, const char *text)
{
	(void)fence_add(out, str_of(text), FENCE_LINE, 0);
	buf_addc(out, '\n');
}

struct asked {
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
	struct handoff_post post = { .to = a->args[0],
		.from = a->args[1],
		.subject = a->args[2][0] ? a->args[2] : "message",
		.reply_to = a->args[3],
		.body = a->input };

	TRY(handoff_post(a->h, &post, a->err));
	buf_adds(a->out, post.name);
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
	mr_auto(kit_items_done) struct kit_items list = { 0 };

	TRY(handoff_id_check(a->args[0], a->err));
	TRY(handoff_list(a->h, a->args[0], MR_INBOX, &list, a->err));
	if (list.n > 0)
		qsort(list.v, list.n, sizeof *list.v, by_name);
	for (size_t i = 0; i < list.n; i++) {
		buf_addf(a->out, "%s/%s/inbox/", a->h->path, a->args[0]);
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
	void *watch = NULL;
	enum mr_rc rc = MR_EMPTY;

	if (!str_to_u64(str_of(a->args[0]), &ms) || ms > INT32_MAX * (uint64_t)1000)
		return mr_fail(a->err, MR_REFUSED, "'%s' is no time to wait", a->args[0]);
	TRY(handoff_watch_box(a->h, mailbox, &watch, a->err));
	for (int64_t end_ms = clock_boot_ms() + (int64_t)ms; rc == MR_EMPTY;) {
		mr_auto(kit_items_done) struct kit_items list = { 0 };
		int64_t left_ms = end_ms - clock_boot_ms();

		rc = handoff_list(a->h, mailbox, MR_INBOX, &list, a->err);
		if (rc != MR_OK || list.n > 0)
			break;
		rc = MR_EMPTY;
		if (left_ms <= 0)
			break;
		kit_watch_wait(NULL, watch, left_ms);
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
names(const struct asked *a)
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
	{ "whois", 1, names },
	{ "names", 0, names },
};

enum mr_rc
handoff_face(struct mr_room *room, const char *verb, const char *const *args, struct mr_str input, struct buf *out,
    struct mr_error *err)
{
	struct asked a = { handoff_of(room), args, input, out, err };
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
