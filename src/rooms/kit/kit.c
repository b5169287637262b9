/* SPDX-License-Identifier: MIT */
/* kit.c - opening, agents, and building a message: see kit.h. */
#include "rooms/kit/kit.h"
#include "base/error.h"
#include "base/storage.h"
#include "message/address.h"

#define NOTE_MAX ((size_t)4 << 10)

/* ---- Opening ---- */

struct mr_str
kit_trim_slashes(struct mr_str path)
{
	while (path.len > 1 && path.ptr[path.len - 1] == '/')
		path.len--;
	return path;
}

struct mr_str
kit_last_part(struct mr_str path)
{
	size_t at;

	path = kit_trim_slashes(path);
	for (at = path.len; at > 0 && path.ptr[at - 1] != '/';)
		at--;
	return (struct mr_str){ path.ptr + at, path.len - at };
}

bool
kit_is_plain(struct mr_str name)
{
	for (size_t i = 0; i < name.len; i++)
		if (!ascii_alnum(name.ptr[i]) && !memchr("._-", name.ptr[i], 3))
			return false;
	return true;
}

enum mr_rc
kit_open(struct mr_room *room, size_t size, const struct kit_format *format, struct mr_str path, struct mr_error *err)
{
	struct kit_room *r = room->state = calloc(1, size);
	struct buf spec = BUF_INIT;

	TRY(mr_got(r, err));
	r->format = format;
	r->path = strndup(path.ptr, path.len);
	buf_addf(&spec, "%s:%s", room->driver->kind, r->path ? r->path : "");
	free(room->spec);
	room->spec = buf_take(&spec);
	return mr_got(r->path && room->spec, err);
}

void
kit_close(struct mr_room *room)
{
	struct kit_room *r = kit_room(room);

	if (!r)
		return;
	mr_names_done(&r->dirty);
	kit_items_done(&r->known);
	free(r->known_mailbox);
	free(r->path);
	free(r);
	room->state = NULL;
}

enum mr_rc
kit_storage(struct mr_room *room, struct mr_storage *ret, struct mr_error *err)
{
	return storage_of_path(kit_room(room)->path, ret, err);
}

enum mr_rc
kit_set_name(struct mr_room *room, struct mr_str name, const char *otherwise, struct mr_error *err)
{
	char address[MR_ADDRESS_MAX + 1];

	room->name = strdup(foreign_to_address(name, address, IGNORED) == MR_OK ? address : otherwise);
	return mr_got(room->name, err);
}

struct mr_agent
kit_agent(const char *name)
{
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };

	(void)snprintf(agent.name, sizeof agent.name, "%s", name);
	return agent;
}

enum mr_rc
kit_find_owner(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	if (strcmp(name, room->name) != 0)
		return mr_fail(err, MR_NOTFOUND, "'%s' has no mailbox here: all mail is of '%s'", name, room->name);
	if (ret)
		*ret = kit_agent(name);
	return MR_OK;
}

enum mr_rc
kit_each_owner(struct mr_room *room, bool names_only, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	struct mr_agent agent = kit_agent(room->name);

	(void)names_only;
	(void)err;
	(void)fn(ctx, &agent);
	return MR_OK;
}

const char *
kit_note(int dir_fd, const char *name, struct arena **own)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	(void)file_read(dir_fd, name, NOTE_MAX, &text, IGNORED);
	return arena_keep(own, buf_str(&text), &(bool){ false });
}

const char *
kit_json_text(struct json_value object, const char *key, struct arena **own, bool *failed)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	(void)json_find_text(object, key, &text);
	*failed |= text.failed;
	return arena_keep(own, buf_str(&text), failed);
}

/* ---- Building a message ---- */

struct kit_message
kit_message(const char *id, enum mr_folder folder, unsigned flags)
{
	struct kit_message m = { .msg = { .from = "",
				     .subject = "",
				     .type = "",
				     .thread = "",
				     .reply_to = "",
				     .replace_key = "",
				     .path = "",
				     .folder = folder,
				     .flags = flags } };

	memcpy(m.msg.id, id, sizeof m.msg.id);
	return m;
}

const char *
kit_keep(struct kit_message *m, struct mr_str s)
{
	return arena_keep(&m->own, s, &m->failed);
}

const char *
kit_keep_buf(struct kit_message *m, const struct buf *text)
{
	m->failed |= text->failed;
	return kit_keep(m, buf_str(text));
}

const char *
kit_keep_address(struct kit_message *m, struct mr_str name)
{
	char address[MR_ADDRESS_MAX + 1];

	if (name.len == 0 || memchr(name.ptr, '\0', name.len) || foreign_to_address(name, address, IGNORED) != MR_OK)
		return "";
	return kit_keep(m, str_of(address));
}

void
kit_to(struct kit_message *m, const char *address)
{
	char **v = arena_alloc(&m->own, sizeof *v);
	char *copy = arena_dup(&m->own, str_of(address));

	m->failed |= !v || !copy;
	if (!v || !copy)
		return;
	v[0] = copy;
	m->msg.to = (struct mr_names){ v, 1 };
}

static void
add_line(struct kit_message *m, const struct mr_header **lines, size_t *n, size_t *cap, struct mr_header line)
{
	struct mr_header *v;

	memcpy(&v, lines, sizeof v); /* they are ours, and const only for readers */
	m->failed |= !arena_grow(&m->own, &v, *n, cap, sizeof *v);
	if (m->failed)
		return;
	v[(*n)++] = line;
	*lines = v;
}

void
kit_header(struct kit_message *m, const char *name, const char *value)
{
	add_line(m, &m->msg.headers, &m->msg.headers_n, &m->headers_cap, (struct mr_header){ name, value });
}

void
kit_envelope(struct kit_message *m, const char *name, const char *value)
{
	add_line(m, &m->msg.envelope, &m->msg.envelope_n, &m->envelope_cap, (struct mr_header){ name, value });
}

void
kit_body(struct kit_message *m, struct mr_str body)
{
	m->msg.body = kit_keep(m, body);
	m->msg.body_len = body.len;
}

enum mr_rc
kit_message_end(struct kit_message *m, struct mr_message *ret, struct mr_error *err)
{
	if (m->failed) {
		arena_free(m->own);
		return mr_nomem(err);
	}
	m->msg.own = m->own;
	*ret = m->msg;
	return MR_OK;
}

enum mr_rc
kit_raw(const struct kit_item *item, struct mr_str bytes, struct mr_message *ret, struct mr_error *err)
{
	struct kit_message m = kit_message(item->id, item->folder, item->flags);

	kit_body(&m, bytes);
	return kit_message_end(&m, ret, err);
}
