/* SPDX-License-Identifier: MIT */
/* mem_channel.c - channels: posts with numbers that grow by one and never come again. */
#include "base/error.h"
#include "message/message.h"
#include "support/mem/mem.h"
#include <inttypes.h>

enum mr_rc
mem_channel_find(struct mem *mem, const char *name, struct mem_channel **ret, struct mr_error *err)
{
	for (size_t i = 0; i < mem->channels_n; i++) {
		if (strcmp(mem->channels[i].name, name) == 0) {
			*ret = &mem->channels[i];
			return MR_OK;
		}
	}
	return mr_fail(err, MR_NOTFOUND, "no channel '%s' in this room", name);
}

bool
mem_channel_reserve(struct mem_channel *channel)
{
	if (channel->posts_n < channel->posts_cap)
		return true;
	size_t cap = channel->posts_cap * 2 + 8;
	struct mem_post *grown = realloc(channel->posts, cap * sizeof *grown);

	if (!grown)
		return false;
	channel->posts = grown;
	channel->posts_cap = cap;
	return true;
}

void
mem_channel_put(struct mem_channel *channel, const char *id, struct mem_letter *letter)
{
	struct mem_post post = { .number = ++channel->last, .letter = letter };

	memcpy(post.id, id, sizeof post.id);
	letter->refs++;
	channel->posts[channel->posts_n++] = post;
}

void
mem_channel_done(struct mem_channel *channel)
{
	for (size_t i = 0; i < channel->posts_n; i++)
		mem_letter_done(channel->posts[i].letter);
	free(channel->posts);
}

struct mem_post *
mem_post_get(struct mem_channel *channel, const char *id)
{
	for (size_t i = 0; i < channel->posts_n; i++)
		if (channel->posts[i].letter && strcmp(channel->posts[i].id, id) == 0)
			return &channel->posts[i];
	return NULL;
}

enum mr_rc
mem_channel_make(struct mr_room *room, const char *channel, struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	struct mem_channel *there = NULL;
	struct mr_error ignored = { 0 };

	if (mem_channel_find(mem, channel, &there, &ignored) == MR_OK)
		return MR_OK;
	struct mem_channel *grown = realloc(mem->channels, (mem->channels_n + 1) * sizeof *grown);

	if (!grown)
		return mr_nomem(err);
	mem->channels = grown;
	grown[mem->channels_n] = (struct mem_channel){ 0 };
	(void)snprintf(grown[mem->channels_n].name, sizeof grown->name, "%s", channel);
	mem->channels_n++;
	return MR_OK;
}

enum mr_rc
mem_channel_remove(struct mr_room *room, const char *channel, struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	struct mem_channel *c = NULL;

	if (mem_channel_find(mem, channel, &c, err) != MR_OK)
		return err->code;
	mem_channel_done(c);
	*c = mem->channels[--mem->channels_n];
	return MR_OK;
}

/* ---- Looking ---- */

static enum mr_rc
view(struct mr_room *room, const char *channel, const struct mem_post *post, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	struct mr_message msg = { .from = "",
		.subject = "",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.path = "",
		.size_bytes = post->letter->text.len };
	char path[MR_ADDRESS_MAX + 32];

	memcpy(msg.id, post->id, sizeof msg.id);
	if (message_parse(buf_str(&post->letter->text), room->name,
		depth == SCAN_BODIES ? MESSAGE_ALL : MESSAGE_HEADERS, &msg, err) != MR_OK)
		return err->code;
	struct arena *own = msg.own;

	(void)snprintf(path, sizeof path, "%s/%" PRIu64, channel, post->number);
	msg.path = arena_dup(&own, str_of(path));
	msg.own = own;
	if (!msg.path) {
		mr_message_done(&msg);
		return mr_nomem(err);
	}
	*ret = msg;
	return MR_OK;
}

static const struct mem_post *
first_after(const struct mem_channel *c, uint64_t after)
{
	for (size_t i = 0; i < c->posts_n; i++)
		if (c->posts[i].number > after && c->posts[i].letter)
			return &c->posts[i];
	return NULL;
}

enum mr_rc
mem_channel_scan(struct mr_room *room, const char *channel, uint64_t after, enum scan_depth depth,
    bool (*fn)(void *ctx, uint64_t number, const struct mr_message *msg), void *ctx, struct mr_error *err)
{
	struct mem_channel *c = NULL;
	bool more = true;

	while (more) {
		struct mr_message msg = { 0 };

		/* Looked up anew each time: fn may post, drop posts, or remove the channel. */
		if (mem_channel_find(mem_of(room), channel, &c, err) != MR_OK)
			return err->code;
		const struct mem_post *post = first_after(c, after);

		if (!post)
			break;
		after = post->number;
		if (view(room, channel, post, depth, &msg, err) != MR_OK)
			return err->code;
		more = fn(ctx, after, &msg);
		mr_message_done(&msg);
	}
	return MR_OK;
}

enum mr_rc
mem_channel_range(struct mr_room *room, const char *channel, uint64_t *ret_first, uint64_t *ret_last, size_t *ret_count,
    struct mr_error *err)
{
	struct mem_channel *c = NULL;

	if (mem_channel_find(mem_of(room), channel, &c, err) != MR_OK)
		return err->code;
	*ret_first = c->posts_n > 0 ? c->posts[0].number : 0;
	*ret_last = c->posts_n > 0 ? c->posts[c->posts_n - 1].number : 0;
	*ret_count = c->posts_n;
	return MR_OK;
}

enum mr_rc
mem_channel_drop(struct mr_room *room, const char *channel, uint64_t below, size_t *ret_removed, struct mr_error *err)
{
	struct mem_channel *c = NULL;
	size_t n = 0;

	if (mem_channel_find(mem_of(room), channel, &c, err) != MR_OK)
		return err->code;
	while (n < c->posts_n && c->posts[n].number < below)
		mem_letter_done(c->posts[n++].letter);
	c->posts_n -= n;
	if (n > 0)
		memmove(c->posts, c->posts + n, c->posts_n * sizeof *c->posts);
	*ret_removed = n;
	return MR_OK;
}
