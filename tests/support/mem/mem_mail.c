/* SPDX-License-Identifier: MIT */
/* mem_mail.c - looking, marking and moving. */
#include "base/error.h"
#include "base/id.h"
#include "message/message.h"
#include "support/mem/mem.h"

const char *
mem_folder_word(enum mr_folder folder)
{
	switch (folder) {
	case MR_INBOX:
		return "inbox";
	case MR_HELD:
		return "held";
	case MR_ARCHIVE:
		return "archive";
	case MR_SENT:
		return "sent";
	case MR_DEAD:
		return "dead";
	}
	return "nowhere";
}

/* ---- Looking ---- */

static enum mr_rc
view(struct mr_room *room, const char *agent, const struct mem_copy *copy, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	struct mr_message msg = {
		.from = "", .subject = "", .type = "", .thread = "", .reply_to = "", .replace_key = "", .path = ""
	};

	memcpy(msg.id, copy->id, sizeof msg.id);
	msg.look = copy->look;
	msg.priority = depth == SCAN_NAMES ? copy->priority : MR_NORMAL;
	if (depth != SCAN_NAMES) {
		enum mr_rc rc = message_parse(buf_str(&copy->letter->text), room->name,
		    depth == SCAN_BODIES ? MESSAGE_ALL : MESSAGE_HEADERS, &msg, err);

		if (rc != MR_OK)
			return rc;
	}
	char path[MR_ADDRESS_MAX + MR_ID_LEN + 16];
	struct arena *own = msg.own;

	(void)snprintf(path, sizeof path, "%s/%s/%s", agent, mem_folder_word(copy->folder), copy->id);
	msg.path = arena_dup(&own, str_of(path));
	msg.own = own;
	if (!msg.path) {
		mr_message_done(&msg);
		return mr_nomem(err);
	}
	msg.flags = copy->flags;
	msg.folder = copy->folder;
	msg.attempt = copy->attempt;
	msg.released_ms = copy->released_ms;
	msg.size_bytes = copy->letter->text.len;
	if (copy->folder == MR_HELD)
		memcpy(msg.token, copy->hold.token, sizeof msg.token);
	*ret = msg;
	return MR_OK;
}

struct view_list { /* the copies that a scan will show, with a reference to each letter */
	struct mem_copy *v;
	size_t n, total;
};

static void
view_list_done(struct view_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		mem_letter_done(list->v[i].letter);
	free(list->v);
}

static void
pick(const struct mem_box *box, const struct scan_request *want, struct view_list *list)
{
	for (size_t i = 0; i < box->copies_n; i++) {
		const struct mem_copy *copy = &box->copies[i];

		if (!(copy->folder & want->folders) || (want->unread_only && (copy->flags & MR_SEEN)))
			continue;
		int64_t at_ms = id_time_ms(copy->id);

		if ((want->id_suffix && !str_ends(str_of(copy->id), want->id_suffix)) ||
		    (want->since_ms && at_ms < want->since_ms) || (want->before_ms && at_ms >= want->before_ms))
			continue;
		list->total++;
		if (want->wants && !want->wants(want->wants_ctx, copy->id))
			continue;
		copy->letter->refs++;
		list->v[list->n++] = *copy;
	}
}

static int
by_id(const void *a, const void *b)
{
	const struct mem_copy *left = a, *right = b;

	return strcmp(left->id, right->id);
}

static int
by_newest(const void *a, const void *b)
{
	return by_id(b, a);
}

static int
by_urgency(const void *a, const void *b)
{
	const struct mem_copy *x = a, *y = b;

	if (x->look != y->look)
		return x->look ? -1 : 1;
	return x->priority != y->priority ? (int)y->priority - (int)x->priority : by_id(b, a);
}

static int
by_work(const void *a, const void *b)
{
	const struct mem_copy *x = a, *y = b;

	if (x->look != y->look)
		return x->look ? -1 : 1;
	if (!x->released_ms != !y->released_ms)
		return x->released_ms ? 1 : -1;
	if (x->priority != y->priority)
		return (int)y->priority - (int)x->priority;
	return x->released_ms != y->released_ms ? (x->released_ms < y->released_ms ? -1 : 1) : by_id(a, b);
}

enum mr_rc
mem_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	struct mem_box *box = NULL;
	mr_auto(view_list_done) struct view_list list = { 0 };

	if (want->folders != MR_DEAD && mem_box_find(mem, agent, &box, err) != MR_OK)
		return err->code;
	size_t most = (box ? box->copies_n : 0) + mem->dead.copies_n;

	list.v = calloc(most + 1, sizeof *list.v);
	if (!list.v)
		return mr_nomem(err);
	if (box)
		pick(box, want, &list);
	pick(&mem->dead, want, &list);
	static int (*const orders[])(const void *, const void *) = {
		[SCAN_OLDEST] = by_id, [SCAN_NEWEST] = by_newest, [SCAN_URGENCY] = by_urgency, [SCAN_WORK] = by_work
	};
	size_t plain = 0;

	qsort(list.v, list.n, sizeof *list.v, orders[want->order]);
	if (want->ret_total)
		*want->ret_total = list.total;
	if (want->state)
		*want->state = (struct scan_state){ 0 };
	for (size_t i = 0; i < list.n; i++) {
		const struct mem_copy *copy = &list.v[i];
		struct mr_message msg = { 0 };

		if (want->most && !copy->look && plain++ >= want->most)
			continue;
		enum mr_rc rc = view(room, agent, copy, want->depth, &msg, err);

		if (rc == MR_NOMEM)
			return rc;
		if (rc != MR_OK) {
			if (want->trouble)
				want->trouble(want->trouble_ctx, copy->id, err);
			continue;
		}
		bool more = fn(ctx, &msg);

		mr_message_done(&msg);
		if (!more)
			break;
	}
	return MR_OK;
}

static enum mr_rc
find_copy(struct mr_room *room, const char *agent, const char *id, unsigned folders, struct mem_box **ret_box,
    struct mem_copy **ret, struct mr_error *err)
{
	static const enum mr_folder order[] = { MR_INBOX, MR_HELD, MR_ARCHIVE, MR_SENT, MR_DEAD };
	struct mem *mem = mem_of(room);
	struct mem_box *box = NULL;

	if (folders != MR_DEAD && mem_box_find(mem, agent, &box, err) != MR_OK)
		return err->code;
	for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
		struct mem_box *in = order[i] == MR_DEAD ? &mem->dead : box;
		struct mem_copy *copy = in ? mem_box_get(in, id, order[i] & folders) : NULL;

		if (copy) {
			*ret_box = in;
			*ret = copy;
			return MR_OK;
		}
	}
	return mr_fail(err, MR_NOTFOUND, "no message '%s' for '%s'", id, agent);
}

#define EVERYWHERE_OF_AGENT (MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT)

enum mr_rc
mem_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	struct mem_box *box = NULL;
	struct mem_copy *copy = NULL;

	if (find_copy(room, agent, id, folders ? folders : EVERYWHERE_OF_AGENT, &box, &copy, err) != MR_OK)
		return err->code;
	return view(room, agent, copy, depth, ret, err);
}

enum mr_rc
mem_fetch_raw(struct mr_room *room, const char *agent, const char *id, struct mr_message *ret, struct mr_error *err)
{
	struct mem_box *box = NULL;
	struct mem_copy *copy = NULL;

	if (find_copy(room, agent, id, EVERYWHERE_OF_AGENT, &box, &copy, err) != MR_OK)
		return err->code;
	struct mr_message msg = message_blank("");

	struct arena *own = NULL;

	msg.body = arena_dup(&own, buf_str(&copy->letter->text));
	msg.own = own;
	msg.body_len = copy->letter->text.len;
	TRY(mr_got(msg.body, err));
	*ret = msg;
	return MR_OK;
}

/* ---- Marking and moving ---- */

static enum mr_rc
find_unheld(struct mr_room *room, const char *agent, const char *id, unsigned folders, struct mem_box **ret_box,
    struct mem_copy **ret, struct mr_error *err)
{
	if (find_copy(room, agent, id, folders | MR_HELD, ret_box, ret, err) != MR_OK)
		return err->code;
	if ((*ret)->folder == MR_HELD) {
		(void)mr_fail(err, MR_BUSY, "message '%s' is being shown or worked on", id);
		return mr_hint(err, "finish it with its token, or try again later");
	}
	return MR_OK;
}

enum mr_rc
mem_mark(struct mr_room *room, const char *agent, const char *id, unsigned set, unsigned clear, struct mr_error *err)
{
	struct mem_box *box = NULL;
	struct mem_copy *copy = NULL;

	if (find_unheld(room, agent, id, MR_INBOX | MR_ARCHIVE, &box, &copy, err) != MR_OK)
		return err->code;
	copy->flags = (copy->flags & ~clear) | set;
	return MR_OK;
}

enum mr_rc
mem_move(struct mr_room *room, const char *agent, const char *id, enum mr_folder to, struct mr_error *err)
{
	struct mem_box *box = NULL;
	struct mem_copy *copy = NULL;

	if (to != MR_INBOX && to != MR_ARCHIVE && to != MR_DEAD)
		return mr_fail(err, MR_REFUSED, "mail cannot be moved to '%s'", mem_folder_word(to));
	unsigned from = to == MR_DEAD ? MR_INBOX : MR_INBOX | MR_ARCHIVE;

	if (find_unheld(room, agent, id, from, &box, &copy, err) != MR_OK)
		return err->code;
	if (to == MR_DEAD)
		return mem_box_move(box, copy, &mem_of(room)->dead, MR_DEAD, err);
	copy->folder = to;
	return MR_OK;
}
