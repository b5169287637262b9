/* SPDX-License-Identifier: MIT */
/* mem_records.c - small values of the post office, and where the copies of a message are. */
#include "base/error.h"
#include "rooms/mem/mem.h"

/* ---- Records ---- */

void
mem_record_done(struct mem_record *record)
{
	free(record->kind);
	free(record->owner);
	free(record->name);
	buf_done(&record->text);
}

static bool
is_of(const struct mem_record *record, const char *kind, const char *owner)
{
	return strcmp(record->kind, kind) == 0 && strcmp(record->owner, owner) == 0;
}

static struct mem_record *
find(struct mem *mem, const char *kind, const char *owner, const char *name)
{
	for (size_t i = 0; i < mem->records_n; i++)
		if (is_of(&mem->records[i], kind, owner) && strcmp(mem->records[i].name, name) == 0)
			return &mem->records[i];
	return NULL;
}

/* Whoever finds new settings finds a queue or channel that works. */
static enum mr_rc
make_what_it_settles(struct mr_room *room, const char *kind, const char *owner, const char *name,
    struct mr_error *err)
{
	if (owner[0] == '\0' && strcmp(kind, "queue") == 0)
		return mem_queue_make(room, name, err);
	if (owner[0] == '\0' && strcmp(kind, "channel") == 0)
		return mem_channel_make(room, name, err);
	return MR_OK;
}

enum mr_rc
mem_record_put(struct mr_room *room, const char *kind, const char *owner, const char *name,
    struct mr_str text, struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	struct mem_record *old = find(mem, kind, owner, name);
	struct mem_record *grown = NULL;
	struct buf bytes = BUF_INIT;

	buf_add(&bytes, text);
	if (!buf_ok(&bytes))
		goto nomem;
	if (old) {
		buf_done(&old->text);
		old->text = bytes;
		return MR_OK;
	}
	if (make_what_it_settles(room, kind, owner, name, err) != MR_OK) {
		buf_done(&bytes);
		return err->code;
	}
	grown = realloc(mem->records, (mem->records_n + 1) * sizeof *grown);
	if (!grown)
		goto nomem;
	mem->records = grown;
	struct mem_record record = { .kind = strdup(kind), .owner = strdup(owner), .name = strdup(name),
		.text = bytes };

	if (!record.kind || !record.owner || !record.name) {
		mem_record_done(&record);
		return mr_nomem(err);
	}
	mem->records[mem->records_n++] = record;
	return MR_OK;
nomem:
	buf_done(&bytes);
	return mr_nomem(err);
}

enum mr_rc
mem_record_change(struct mr_room *room, const char *kind, const char *owner, const char *name,
    enum mr_rc (*edit)(void *ctx, bool exists, struct buf *text, struct mr_error *err), void *ctx,
    struct mr_error *err)
{
	const struct mem_record *old = find(mem_of(room), kind, owner, name);
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (old)
		buf_add(&text, buf_str(&old->text));
	enum mr_rc rc = edit(ctx, old != NULL, &text, err);

	if (rc == MR_OK && !buf_ok(&text))
		rc = mr_nomem(err);
	return rc == MR_OK ? mem_record_put(room, kind, owner, name, buf_str(&text), err) : rc;
}

static enum mr_rc
no_record(const char *kind, const char *owner, const char *name, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND, "no %s record '%s' of '%s'", kind, name, owner);
}

enum mr_rc
mem_record_get(struct mr_room *room, const char *kind, const char *owner, const char *name, struct buf *ret,
    struct mr_error *err)
{
	const struct mem_record *record = find(mem_of(room), kind, owner, name);

	if (!record)
		return no_record(kind, owner, name, err);
	buf_add(ret, buf_str(&record->text));
	return buf_ok(ret) ? MR_OK : mr_nomem(err);
}

enum mr_rc
mem_record_drop(struct mr_room *room, const char *kind, const char *owner, const char *name,
    struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	struct mem_record *record = find(mem, kind, owner, name);

	if (!record)
		return no_record(kind, owner, name, err);
	mem_record_done(record);
	*record = mem->records[--mem->records_n];
	return MR_OK;
}

enum mr_rc
mem_record_each(struct mr_room *room, const char *kind, const char *owner,
    bool (*fn)(void *ctx, const char *name), void *ctx, struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	mr_auto(mr_names_done) struct mr_names names = { 0 }; /* fn may drop what it is shown */

	for (size_t i = 0; i < mem->records_n; i++)
		if (is_of(&mem->records[i], kind, owner) &&
		    !names_add(&names, str_of(mem->records[i].name)))
			return mr_nomem(err);
	for (size_t i = 0; i < names.n; i++)
		if (!fn(ctx, names.v[i]))
			break;
	return MR_OK;
}

/* ---- Places ---- */

static const char *
state_word(const struct mem_copy *copy)
{
	switch (copy->folder) {
	case MR_INBOX: return copy->flags & MR_SEEN ? "read" : "unread";
	case MR_HELD: return "held";
	case MR_ARCHIVE: return "archived";
	case MR_SENT: return "sent";
	case MR_DEAD: return "dead";
	}
	return "nowhere";
}

static void
tell(const struct mem_box *box, const char *id, place_fn *fn, void *ctx)
{
	for (size_t i = 0; i < box->copies_n; i++) {
		const struct mem_copy *copy = &box->copies[i];
		char evidence[MR_ADDRESS_MAX + 120];

		if (strcmp(copy->id, id) != 0)
			continue;
		if (copy->folder == MR_HELD)
			(void)snprintf(evidence, sizeof evidence, "held by life %u of '%s', attempt %u",
			    copy->hold.life, box->name, copy->hold.attempt);
		else if (copy->folder == MR_DEAD)
			(void)snprintf(evidence, sizeof evidence, "among the dead letters of the room");
		else
			(void)snprintf(evidence, sizeof evidence, "in the memory of this process, %s of '%s'",
			    mem_folder_word(copy->folder), box->name);
		const struct place_of place = { .agent = box->name, .folder = copy->folder,
			.flags = copy->flags, .state = state_word(copy), .evidence = evidence };

		fn(ctx, &place);
	}
}

enum mr_rc
mem_each_place(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err)
{
	struct mem *mem = mem_of(room);

	(void)err;
	for (size_t i = 0; i < mem->boxes_n; i++)
		tell(mem->boxes[i], id, fn, ctx);
	tell(&mem->dead, id, fn, ctx);
	return MR_OK;
}

static size_t
remove_copies(struct mem_box *box, const char *id)
{
	size_t removed = 0;

	for (struct mem_copy *copy; (copy = mem_box_get(box, id, MEM_ANY_FOLDER)) != NULL; removed++)
		mem_box_drop(box, copy);
	return removed;
}

enum mr_rc
mem_purge(struct mr_room *room, const char *id, size_t *ret_removed, struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	size_t removed = remove_copies(&mem->dead, id);

	(void)err;
	for (size_t i = 0; i < mem->boxes_n; i++)
		removed += remove_copies(mem->boxes[i], id);
	*ret_removed = removed;
	return MR_OK;
}
