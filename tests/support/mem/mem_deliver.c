/* SPDX-License-Identifier: MIT */
/* mem_deliver.c - sending: everything that can fail comes first, then nothing can. */
#include "base/error.h"
#include "base/id.h"
#include "message/message.h"
#include "support/mem/mem.h"

static bool
id_is_taken(struct mem *mem, const char *id)
{
	for (size_t i = 0; i < mem->boxes_n; i++)
		if (mem_box_get(mem->boxes[i], id, MEM_ANY_FOLDER))
			return true;
	for (size_t i = 0; i < mem->queues_n; i++)
		if (mem_work_get(&mem->queues[i], id))
			return true;
	return mem_box_get(&mem->dead, id, MEM_ANY_FOLDER) != NULL;
}

static void
pick_free_id(struct mem *mem, struct mr_message *msg)
{
	while (msg->id[0] == '\0' || id_is_taken(mem, msg->id)) {
		bool starts_thread = msg->thread && strcmp(msg->thread, msg->id) == 0;

		id_new(msg->id);
		if (starts_thread)
			msg->thread = msg->id;
	}
}

/* An import: is it in that mailbox already? MR_OK: no. */
static enum mr_rc
check_kept(struct mem *mem, const struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	struct mem_box *box = what->to->n == 1 ? mem_box_any(mem, what->to->v[0]) : NULL;

	if (what->to->n != 1 || what->key)
		return mr_fail(err, MR_REFUSED, "cannot import a message for several at once, or with a key");
	if (!id_valid(str_of(what->msg->id)))
		id_from_name(what->msg->date_ms, str_of(what->msg->from), what->msg->id);
	if (!box || !mem_box_get(box, what->msg->id, MR_INBOX | MR_HELD | MR_ARCHIVE))
		return MR_OK;
	*ret = (struct delivered){ 0 };
	memcpy(ret->id, what->msg->id, sizeof ret->id);
	return mr_fail(err, MR_EXISTS, "'%s' has the message '%s' already", box->name, what->msg->id);
}

static struct mem_key *
key_find(struct mem *mem, const char *sender, const char *key)
{
	for (size_t i = 0; i < mem->keys_n; i++)
		if (strcmp(mem->keys[i].sender, sender) == 0 && strcmp(mem->keys[i].key, key) == 0)
			return &mem->keys[i];
	return NULL;
}

static enum mr_rc
repeat(const struct mem_key *known, const struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	char digest[65];

	message_digest(what->msg, digest);
	if (!what->key_is_all && strcmp(digest, known->digest) != 0) {
		(void)mr_fail(err, MR_REFUSED, "key '%s' was used for another message, '%s'", what->key, known->id);
		return mr_hint(err, "repeat the same message, or use a new key");
	}
	*ret = (struct delivered){ .repeated = true };
	memcpy(ret->id, known->id, sizeof ret->id);
	return MR_OK;
}

/* The key is in the list afterwards but counts only once keys_n is raised. */
static bool
key_prepare(struct mem *mem, const struct delivery *what)
{
	struct mem_key *grown = realloc(mem->keys, (mem->keys_n + 1) * sizeof *grown);

	if (!grown)
		return false;
	mem->keys = grown;
	struct mem_key key = { .sender = strdup(what->sender), .key = strdup(what->key) };

	if (!key.sender || !key.key) {
		free(key.sender);
		free(key.key);
		return false;
	}
	message_digest(what->msg, key.digest);
	memcpy(key.id, what->msg->id, sizeof key.id);
	mem->keys[mem->keys_n] = key;
	return true;
}

/* A queue or a channel; both NULL: an agent. */
struct target {
	struct mem_queue *queue;
	struct mem_channel *channel;
};

static enum mr_rc
find_target(struct mem *mem, const char *to, struct target *ret, struct mr_error *err)
{
	const char *queue = mem_target(to, "queue:"), *channel = mem_target(to, "channel:");

	*ret = (struct target){ 0 };
	if (queue)
		return mem_queue_find(mem, queue, &ret->queue, err);
	return channel ? mem_channel_find(mem, channel, &ret->channel, err) : MR_OK;
}

/* Refuses before anything is made: with one recipient wrong, no other's mailbox may appear. */
static enum mr_rc
check_recipients(struct mem *mem, const struct delivery *what, struct mr_error *err)
{
	for (size_t i = 0; i < what->to->n; i++) {
		const char *name = what->to->v[i];
		struct mem_box *box = NULL;
		struct target target;

		if (find_target(mem, name, &target, err) != MR_OK)
			return err->code;
		if (target.queue || target.channel)
			continue;
		if (mem_box_find(mem, name, &box, err) == MR_OK)
			continue;
		if (!what->make_mailboxes)
			return err->code;
		for (size_t k = 0; k < mem->boxes_n; k++)
			if (mem->boxes[k]->registered && ascii_caseeq(mem->boxes[k]->name, name))
				return mr_fail(err, MR_REFUSED,
				    "cannot make mailbox '%s': it differs from '%s' only in case", name,
				    mem->boxes[k]->name);
	}
	return MR_OK;
}

static enum mr_rc
reserve_box(struct mr_room *room, const char *name, struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	struct mem_box *box = mem_box_any(mem, name);

	if (!box || !box->registered) {
		struct mr_agent agent = { 0 };

		(void)snprintf(agent.name, sizeof agent.name, "%s", name);
		if (mem_add_agent(room, &agent, err) != MR_OK)
			return err->code;
		box = mem_box_any(mem, name);
	}
	return mem_box_reserve(box, 2) ? MR_OK : mr_nomem(err); /* two: a sender may write to itself */
}

static enum mr_rc
reserve_all(struct mr_room *room, const struct delivery *what, struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	struct mem_box *sent = NULL;

	for (size_t i = 0; i < what->to->n; i++) {
		struct target target;

		if (find_target(mem, what->to->v[i], &target, err) != MR_OK)
			return err->code;
		if ((target.queue && !mem_queue_reserve(target.queue)) ||
		    (target.channel && !mem_channel_reserve(target.channel)))
			return mr_nomem(err);
		if (!target.queue && !target.channel && reserve_box(room, what->to->v[i], err) != MR_OK)
			return err->code;
	}
	sent = mem_box_any(mem, what->sender);
	if (sent && !mem_box_reserve(sent, 2))
		return mr_nomem(err);
	return MR_OK;
}

static void
put_copies(struct mem *mem, const struct delivery *what, struct mem_letter *letter)
{
	struct mem_box *sent = mem_box_any(mem, what->sender);
	struct mem_copy copy = {
		.folder = MR_INBOX, .priority = what->msg->priority, .look = what->look, .letter = letter
	};

	memcpy(copy.id, what->msg->id, sizeof copy.id);
	for (size_t i = 0; i < what->to->n; i++) {
		struct mr_error ignored = { 0 };
		struct target target;

		(void)find_target(mem, what->to->v[i], &target, &ignored); /* it was there when room was reserved */
		if (target.queue)
			mem_queue_put(target.queue, what->msg, letter);
		if (target.channel)
			mem_channel_put(target.channel, what->msg->id, letter);
		if (target.queue || target.channel)
			continue;
		letter->refs++;
		mem_box_put(mem_box_any(mem, what->to->v[i]), &copy);
	}
	if (sent && sent->registered) {
		copy.folder = MR_SENT;
		copy.flags = MR_SEEN;
		letter->refs++;
		mem_box_put(sent, &copy);
	}
}

enum mr_rc
mem_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	const struct mem_key *known = what->key ? key_find(mem, what->sender, what->key) : NULL;

	if (known)
		return repeat(known, what, ret, err);
	if (check_recipients(mem, what, err) != MR_OK)
		return err->code;
	if (what->keep && check_kept(mem, what, ret, err) != MR_OK)
		return err->code;
	if (!what->keep) /* the same message may be in other mailboxes, under the same id */
		pick_free_id(mem, what->msg);

	struct mem_letter *letter = calloc(1, sizeof *letter);

	if (!letter)
		return mr_nomem(err);
	letter->refs = 1;
	enum mr_rc rc = message_write(what->msg, room->name, &letter->text, err);

	if (rc == MR_OK && !buf_ok(&letter->text))
		rc = mr_nomem(err);
	if (rc == MR_OK)
		rc = reserve_all(room, what, err);
	if (rc == MR_OK && what->key && !key_prepare(mem, what))
		rc = mr_nomem(err);
	if (rc == MR_OK) {
		put_copies(mem, what, letter);
		mem->keys_n += what->key != NULL;
		*ret = (struct delivered){ 0 };
		memcpy(ret->id, what->msg->id, sizeof ret->id);
	}
	mem_letter_done(letter);
	return rc;
}
