/* SPDX-License-Identifier: MIT */
/*
 * list.c - looking at mailboxes without an index. A look lists all items, sorts them by id and reads those that are
 * wanted. To find one message afterwards, the last look is remembered: it says where to look first, and the driver says
 * whether the message is still there. So marking ten thousand messages does not list the folder ten thousand times.
 */
#include "base/error.h"
#include "base/text.h"
#include "rooms/kit/kit.h"
#include <stdlib.h>

/* ---- Items ---- */

struct kit_item *
kit_add(struct kit_items *items, const char *folder_path, const char *name, enum mr_folder folder)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	buf_addf(&path, "%s%s%s", folder_path, folder_path[0] ? "/" : "", name);
	const char *kept = buf_ok(&path) ? arena_dup(&items->own, buf_str(&path)) : NULL;

	if (!kept || !array_grow(&items->v, items->n, &items->cap, sizeof *items->v)) {
		items->failed = true;
		return NULL;
	}
	struct kit_item *item = &items->v[items->n];

	*item = (struct kit_item){
		.path = kept, .name = kept + path.len - strlen(name), .folder = folder, .rank = items->n++
	};
	return item;
}

static int
by_id(const void *a, const void *b)
{
	const struct kit_item *left = a, *right = b;
	int order = strcmp(left->id, right->id);

	return order ? order : (left->rank > right->rank) - (left->rank < right->rank);
}

void
kit_sort(struct kit_items *items)
{
	if (items->n > 1)
		qsort(items->v, items->n, sizeof *items->v, by_id);
}

struct kit_item *
kit_with_id(const struct kit_items *items, const char *id)
{
	size_t low = 0, high = items->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(items->v[middle].id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < items->n && strcmp(items->v[low].id, id) == 0 ? &items->v[low] : NULL;
}

void
kit_items_done(struct kit_items *items)
{
	free(items->v);
	arena_free(items->own);
	*items = (struct kit_items){ 0 };
}

static bool
copy_item(struct kit_items *to, const struct kit_item *item)
{
	size_t folder = (size_t)(item->name - item->path);
	struct kit_item *copy = kit_add(to, "", item->path, item->folder);

	if (!copy)
		return false;
	const char *path = copy->path;

	*copy = *item;
	copy->path = path;
	copy->name = path + folder;
	copy->more = NULL;
	return true;
}

/* ---- What the last look found ---- */

void
kit_known_done(struct kit_known *known)
{
	free(known->mailbox);
	kit_items_done(&known->items);
	known->mailbox = NULL;
}

static bool
find_known(struct kit_box *box, const char *id, unsigned folders, struct kit_items *ret)
{
	const struct kit_known *known = box->known;

	if (!known || !known->mailbox || strcmp(known->mailbox, box->agent) != 0 || !box->reader->is_there)
		return false;
	const struct kit_item *item = kit_with_id(&known->items, id), *end = known->items.v + known->items.n;

	for (; item && item < end && strcmp(item->id, id) == 0; item++) {
		kit_items_done(ret);
		if (copy_item(ret, item) && box->reader->is_there(box, folders, &ret->v[0]))
			return true;
	}
	kit_items_done(ret);
	return false;
}

/* ---- The whole mailbox, and one message of it ---- */

enum mr_rc
kit_list(struct kit_box *box, const struct scan_request *want, const char *only_id, struct kit_items *ret,
    struct mr_error *err)
{
	struct kit_known *known = box->known;

	TRY(box->reader->list(box, want, only_id, ret, err));
	TRY(mr_got(!ret->failed, err));
	if (only_id || !known)
		return MR_OK;
	kit_known_done(known);
	known->mailbox = strdup(box->agent);
	for (size_t i = 0; known->mailbox && i < ret->n; i++)
		if (ret->v[i].steady && !copy_item(&known->items, &ret->v[i]))
			break; /* it is not known, and the next search is longer */
	return MR_OK;
}

enum mr_rc
kit_scan(struct kit_box *box, const struct scan_request *want, mr_message_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(kit_items_done) struct kit_items items = { 0 };

	TRY(kit_list(box, want, NULL, &items, err));
	for (size_t i = 0; i < items.n; i++) {
		const struct kit_item *item = &items.v[want->order == SCAN_NEWEST ? items.n - 1 - i : i];
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct mr_error why = { 0 };

		if (want->id_suffix && !str_ends(str_of(item->id), want->id_suffix))
			continue;
		enum mr_rc rc = box->reader->read(box, item, want->depth, &msg, &why);

		if (rc == MR_NOMEM)
			return mr_nomem(err);
		if (rc != MR_OK) {
			if (rc != MR_NOTFOUND && want->trouble)
				want->trouble(want->trouble_ctx, item->path, &why);
			continue;
		}
		/* It may have been moved between the listing and this look: a request for unread mail must not get it.
		 */
		if ((msg.folder & want->folders) && !(want->unread_only && (msg.flags & MR_SEEN)) && !fn(ctx, &msg))
			break;
	}
	return MR_OK;
}

enum mr_rc
kit_find(struct kit_box *box, const char *id, unsigned folders, struct kit_items *items, struct kit_item **ret,
    struct mr_error *err)
{
	const struct scan_request want = { .folders = folders };

	if (!find_known(box, id, folders, items))
		TRY(kit_list(box, &want, id, items, err));
	*ret = kit_with_id(items, id);
	return *ret ? MR_OK : mr_fail(err, MR_NOTFOUND, "no message '%s' for '%s'", id, box->agent);
}

enum mr_rc
kit_fetch(struct kit_box *box, const char *id, unsigned folders, enum scan_depth depth, struct mr_message *ret,
    struct mr_error *err)
{
	mr_auto(kit_items_done) struct kit_items items = { 0 };
	struct kit_item *item = NULL;

	TRY(kit_find(box, id, folders, &items, &item, err));
	return box->reader->read(box, item, depth, ret, err);
}

/* ---- Where its copies are ---- */

struct search {
	struct mr_room *room;
	const char *id;
	kit_describe_fn *describe;
	place_fn *fn;
	void *ctx;
};

/* What cannot be read there is no evidence of anything. */
static bool
look_in(void *ctx, const struct mr_agent *agent)
{
	const struct search *s = ctx;
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	const char *state = "unread";

	if (s->room->driver->fetch(s->room, agent->name, s->id, 0, SCAN_HEADERS, &msg, IGNORED) != MR_OK)
		return true;
	if (msg.folder == MR_SENT)
		state = "sent";
	else if (msg.folder == MR_ARCHIVE && (s->room->driver->abilities & ROOM_ARCHIVE))
		state = "archived";
	else if (msg.flags & MR_SEEN)
		state = "read";
	if (s->describe)
		s->describe(&msg, &evidence);
	else
		buf_addf(&evidence, "it is %s, where %s mail is kept", msg.path, state);
	s->fn(s->ctx, &(struct place_of){ .agent = agent->name,
			  .folder = msg.folder,
			  .flags = msg.flags,
			  .state = state,
			  .evidence = buf_z(&evidence) });
	return true;
}

enum mr_rc
kit_places(
    struct mr_room *room, const char *id, kit_describe_fn *describe, place_fn *fn, void *ctx, struct mr_error *err)
{
	struct search s = { room, id, describe, fn, ctx };

	return room->driver->each_agent(room, true, look_in, &s, err);
}

enum mr_rc
kit_each_place(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err)
{
	return kit_places(room, id, NULL, fn, ctx, err);
}

/* ---- For the doctor ---- */

void
kit_leftovers(struct findings *f, int fd, const char *path, bool (*is_ours)(const char *name))
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	(void)dir_names(fd, &names, IGNORED);
	for (size_t i = 0; i < names.n; i++) {
		mr_auto(buf_done) struct buf whole = BUF_INIT;

		if (is_ours && !is_ours(names.v[i]))
			continue;
		buf_addf(&whole, "%s/%s", path, names.v[i]);
		findings_leftover(f, fd, names.v[i], buf_z(&whole));
	}
}

void
kit_tell_trouble(void *ctx, const char *path, const struct mr_error *why)
{
	mr_auto(buf_done) struct buf shown = BUF_INIT;

	text_clean_line(&shown, str_of(path));
	findings_say(ctx,
	    &(struct mr_finding){ MR_PROBLEM, "mail", buf_z(&shown), NULL,
		"a writer of another program was killed, or wrote something else",
		"it is kept and passed over; look at it, then mend or remove it", false },
	    "%s: %s", buf_z(&shown), why->message);
}

bool
kit_pass_over(void *ctx, const struct mr_message *msg)
{
	(void)ctx;
	(void)msg;
	return true;
}
