/* SPDX-License-Identifier: MIT */
/*
 * scan.c - reading the messages of a mailbox. A file that is gone when we open it is looked for in the other folder.
 */
#include "rooms/handoff/handoff.h"

#include "base/sys.h"
#include "base/text.h"
#include <errno.h>
#include <stdio.h>

struct opened {
	struct handoff *h;
	struct registry registry;
	const char *agent;
	char mailbox[HANDOFF_ID_MAX + 1];
};

static void
opened_done(struct opened *o)
{
	registry_done(&o->registry);
}

static enum mr_rc
open_mailbox(struct mr_room *room, const char *agent, struct opened *o, const struct registry_entry **ret_entry,
    struct mr_error *err)
{
	o->h = handoff_of(room);
	o->agent = agent;
	TRY(handoff_registry_read(o->h, &o->registry, err));
	return handoff_mailbox_of(o->h, &o->registry, agent, o->mailbox, ret_entry, err);
}

static enum mr_rc
read_file(const struct opened *o, const struct handoff_item *item, struct buf *ret, struct stat *st,
    enum mr_folder *ret_folder, struct mr_error *err)
{
	char path[HANDOFF_ID_MAX + 300];
	int root_fd = -1;

	*ret_folder = item->folder;
	TRY(handoff_root(o->h, false, &root_fd, err));
	for (int round = 0; round < 2; round++) {
		(void)snprintf(path, sizeof path, "%s/%s/%s", o->mailbox, handoff_folder(*ret_folder), item->name);
		enum mr_rc rc = file_read(root_fd, path, HANDOFF_FILE_MAX, ret, err);

		if (rc == MR_OK && sys_stat(root_fd, path, st) < 0)
			rc = errno == ENOENT ? MR_NOTFOUND : mr_fail_errno(err, "cannot look at '%s'", path);
		if (rc != MR_NOTFOUND)
			return rc;
		buf_clear(ret);
		*ret_folder = *ret_folder == MR_INBOX ? MR_ARCHIVE : MR_INBOX;
	}
	return mr_fail(err, MR_NOTFOUND, "'%s' is gone", item->name);
}

static enum mr_rc
load(const struct opened *o, const struct handoff_item *item, bool body, struct mr_message *ret, bool *ret_astray,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct letter letter;
	struct letter_at at = { .agent = o->agent, .mailbox = o->mailbox, .name = item->name };
	struct stat st;

	TRY(read_file(o, item, &text, &st, &at.folder, err));
	if (!letter_parse(buf_str(&text), &letter))
		return mr_fail(err, MR_CORRUPT,
		    "'%s' has no sender and no msg_id in it\n"
		    "it is no message of this format: look at it, and take it out of the inbox",
		    item->name);
	at.mtime_ms = handoff_mtime_ms(&st);
	TRY(letter_to_message(&letter, &at, &o->registry, body, ret, err));
	ret->size_bytes = text.len;
	*ret_astray = letter.to.len > 0 && !str_eq(letter.to, str_of(o->mailbox));
	return MR_OK;
}

static struct mr_message
bare(const struct handoff_item *item)
{
	struct mr_message msg = { .from = "",
		.subject = "",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.path = "",
		.folder = item->folder,
		.flags = item->folder == MR_ARCHIVE ? MR_SEEN : 0 };

	memcpy(msg.id, item->id, sizeof msg.id);
	return msg;
}

static void
report(const struct opened *o, const struct handoff_item *item, const struct scan_request *want,
    const struct mr_error *problem)
{
	char path[HANDOFF_ID_MAX + 300];

	(void)snprintf(path, sizeof path, "%s/%s/%s", o->mailbox, handoff_folder(item->folder), item->name);
	if (want->trouble)
		want->trouble(want->trouble_ctx, path, problem);
}

/* MR_EMPTY: fn wants no more. */
static enum mr_rc
show(const struct opened *o, const struct handoff_item *item, const struct scan_request *want, mr_message_fn *fn,
    void *ctx, struct mr_error *err)
{
	struct mr_message msg = { 0 };
	struct mr_error problem = { 0 };
	bool astray = false;

	if (want->depth == SCAN_NAMES) {
		msg = bare(item);
		return fn(ctx, &msg) ? MR_OK : MR_EMPTY;
	}
	enum mr_rc rc = load(o, item, want->depth == SCAN_BODIES, &msg, &astray, &problem);

	if (rc == MR_NOTFOUND)
		return MR_OK; /* somebody removed it meanwhile */
	if (rc == MR_NOMEM)
		return mr_nomem(err);
	if (rc != MR_OK) {
		report(o, item, want, &problem);
		return MR_OK;
	}
	/* Archived between the list and this look: nobody who asks for unread mail may get it. */
	if (!(msg.folder & want->folders) || (want->unread_only && msg.flags & MR_SEEN)) {
		mr_message_done(&msg);
		return MR_OK;
	}
	if (astray) {
		(void)mr_fail(&problem, MR_CORRUPT, "'%s' says that it is for another mailbox", item->name);
		(void)mr_hint(&problem, "it is shown all the same: the folder decides");
		report(o, item, want, &problem);
	}
	bool more = fn(ctx, &msg);

	mr_message_done(&msg);
	return more ? MR_OK : MR_EMPTY;
}

/* A root that was moved or copied: senders who follow the registry's paths write elsewhere. */
static void
report_elsewhere(const struct opened *o, const struct registry_entry *entry, const struct scan_request *want)
{
	mr_auto(buf_done) struct buf here = BUF_INIT, shown = BUF_INIT;
	struct mr_error problem = { 0 };

	handoff_inbox_path(o->h, o->mailbox, &here);
	if (!entry || !want->trouble || !entry->inbox[0] || strcmp(entry->inbox, buf_z(&here)) == 0)
		return;
	text_clean_line(&shown, utf8_cut(str_of(entry->inbox), 200));
	(void)mr_fail(
	    &problem, MR_CORRUPT, "the registry says that the inbox of '%s' is '%s'", o->agent, buf_z(&shown));
	(void)mr_hint(
	    &problem, "mail sent there is not seen here; `mailroom doctor --fix` writes the paths of this root");
	want->trouble(want->trouble_ctx, "registry.json", &problem);
}

enum mr_rc
handoff_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	mr_auto(opened_done) struct opened o = { 0 };
	mr_auto(handoff_list_done) struct handoff_list list = { 0 };
	const struct registry_entry *entry = NULL;
	unsigned folders = want->folders & (want->unread_only ? MR_INBOX : MR_INBOX | MR_ARCHIVE);

	if (agent[0] == '\0') /* the room's own folders: there are none */
		return MR_OK;
	TRY(open_mailbox(room, agent, &o, &entry, err));
	TRY(handoff_list(o.h, o.mailbox, folders, &list, err));
	report_elsewhere(&o, entry, want);
	for (size_t i = 0; i < list.n; i++) {
		const struct handoff_item *item = &list.v[want->newest_first ? list.n - 1 - i : i];

		if (want->id_suffix && !str_ends(str_of(item->id), want->id_suffix))
			continue;
		enum mr_rc rc = show(&o, item, want, fn, ctx, err);

		if (rc != MR_OK)
			return rc == MR_EMPTY ? MR_OK : rc;
	}
	return MR_OK;
}

/* ---- One message ---- */

static enum mr_rc
no_message(const char *agent, const char *id, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND, "no message '%s' in the mailbox of '%s'", id, agent);
}

enum mr_rc
handoff_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	mr_auto(opened_done) struct opened o = { 0 };
	mr_auto(handoff_list_done) struct handoff_list list = { 0 };
	bool astray = false;

	TRY(open_mailbox(room, agent, &o, NULL, err));
	TRY(handoff_list_one(o.h, o.mailbox, folders ? folders : MR_INBOX | MR_ARCHIVE, id, &list, err));
	if (list.n == 0)
		return no_message(agent, id, err);
	const struct handoff_item *item = &list.v[0];

	if (depth == SCAN_NAMES) {
		*ret = bare(item);
		return MR_OK;
	}
	struct mr_message msg = { 0 };

	TRY(load(&o, item, depth == SCAN_BODIES, &msg, &astray, err));
	if (folders && !(msg.folder & folders)) { /* moved meanwhile */
		mr_message_done(&msg);
		return no_message(agent, id, err);
	}
	*ret = msg;
	return MR_OK;
}

enum mr_rc
handoff_fetch_raw(struct mr_room *room, const char *agent, const char *id, struct buf *ret, struct mr_error *err)
{
	mr_auto(opened_done) struct opened o = { 0 };
	mr_auto(handoff_list_done) struct handoff_list list = { 0 };
	enum mr_folder folder;
	struct stat st;

	TRY(open_mailbox(room, agent, &o, NULL, err));
	TRY(handoff_list_one(o.h, o.mailbox, MR_INBOX | MR_ARCHIVE, id, &list, err));
	return list.n > 0 ? read_file(&o, &list.v[0], ret, &st, &folder, err) : no_message(agent, id, err);
}
