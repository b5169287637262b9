/* SPDX-License-Identifier: MIT */
/* types_face.c - what the public interface tells of message types and of the fields of a message. */
#include "base/error.h"
#include "office/office.h"
#include "office/patrol/patrol.h"
#include "office/types/types_store.h"

/* ---- Types ---- */

struct facing {
	mr_type_fn *fn;
	mr_trouble_fn *trouble;
	void *ctx;
};

static bool
pass_type(void *ctx, const struct type_def *def)
{
	const struct facing *f = ctx;
	struct mr_type type = {
		.name = def->name,
		.pack = def->pack,
		.summary = def->summary,
		.subject = def->subject,
		.nudge = def->nudge,
		.routed = def->routed,
	};

	return f->fn(f->ctx, &type);
}

static void
pass_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	const struct facing *f = ctx;

	f->trouble(f->ctx, path, err);
}

enum mr_rc
mr_type_each(struct mr_room *room, mr_type_fn *fn, mr_trouble_fn *trouble, void *ctx, struct mr_error *err)
{
	struct facing f = { .fn = fn, .trouble = trouble, .ctx = ctx };

	return types_each(room, pass_type, trouble ? pass_trouble : NULL, &f, err);
}

enum mr_rc
mr_type_text(struct mr_room *room, const char *name, char **ret, size_t *ret_len, char **ret_pack, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	const struct type_def *def = NULL;
	const char *pack = "";
	enum mr_rc rc = types_file(room, name, &text, &pack, err);

	if (rc == MR_NOTFOUND) { /* another spelling of it, or near names */
		rc = types_get(room, name, &def, err);
		if (rc == MR_OK)
			rc = types_file(room, def->name, &text, &pack, err);
	}
	if (rc != MR_OK)
		return rc;
	size_t len = text.len;
	char *taken = buf_take(&text), *from = strdup(pack);

	if (!taken || !from) {
		free(taken);
		free(from);
		return mr_nomem(err);
	}
	*ret = taken;
	*ret_len = len;
	*ret_pack = from;
	return MR_OK;
}

struct putting {
	struct mr_str text;
	const char *name;
	bool replace;
};

static enum mr_rc
put_text(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	const struct putting *p = ctx;

	if (exists && !p->replace)
		return mr_fail(err, MR_EXISTS,
		    "this room has a type '%s' already\nchange its file, types/%s of the room, or replace it with --force",
		    p->name, p->name);
	buf_clear(text);
	buf_add(text, p->text);
	return MR_OK;
}

enum mr_rc
mr_type_put(
    struct mr_room *room, const char *name, const char *text, size_t text_len, bool replace, struct mr_error *err)
{
	struct putting p = { .text = { text, text_len }, .name = name, .replace = replace };
	struct type_def def = { 0 };
	enum mr_rc rc;

	if (!ROOM_HAS(room, record_put) || !office_has_lives(room))
		return office_lacks(room, "types of its own", err);
	rc = type_parse(p.text, "", name, &def, err);
	if (rc == MR_OK && !patrol_handler_is_name(def.handler)) {
		(void)mr_fail(
		    err, MR_REFUSED, "'Handler: %.60s' is a command, and a room holds no commands", def.handler);
		rc = mr_hint(err,
		    "name it in the type (Handler: my-handler), then type in a terminal: mailroom config set "
		    "Handler-my-handler COMMAND");
	}
	type_done(&def);
	if (rc == MR_OK)
		rc = room_record_change(room, "type", "", name, put_text, &p, err);
	if (rc == MR_OK)
		types_reread(room);
	return rc;
}

/* ---- Fields ---- */

static enum mr_rc
read_fields(const struct type_def *def, const struct mr_message *msg, struct type_values *ret, struct mr_error *wrong)
{
	struct mr_str body = { msg->body ? msg->body : "", msg->body ? msg->body_len : 0 };
	struct type_context context = {
		.sender = msg->from, .recipient = msg->to.n > 0 ? msg->to.v[0] : "", .now_ms = msg->date_ms
	};
	enum mr_rc rc = type_read(def, str_of(msg->subject ? msg->subject : ""), body, ret, wrong);

	if (rc == MR_OK)
		rc = type_complete(def, &context, ret, wrong);
	if (rc == MR_OK)
		rc = type_validate_received(def, ret, wrong);
	return rc;
}

enum mr_rc
types_fields(struct mr_room *room, const struct mr_message *msg, struct type_values *ret, struct mr_error *err)
{
	const struct type_def *def = types_of(room, msg);
	struct type_values values = { 0 };
	enum mr_rc rc = def ? read_fields(def, msg, &values, err) : MR_OK;

	if (rc == MR_OK)
		*ret = values;
	else
		type_values_done(&values);
	return rc;
}

void
types_fields_at_all(struct mr_room *room, const struct mr_message *msg, struct type_values *ret)
{
	const struct type_def *def = types_of(room, msg);
	struct mr_error ignored = { 0 };

	if (def)
		(void)read_fields(def, msg, ret, &ignored);
}

enum mr_rc
mr_message_fields(struct mr_room *room, const struct mr_message *msg, struct mr_fields *ret, struct mr_error *err)
{
	const struct type_def *def = types_of(room, msg);
	struct type_values values = { 0 };
	enum mr_rc rc = def ? read_fields(def, msg, &values, err) : MR_OK;
	const char *type = arena_dup(&values.own, str_of(def ? def->name : ""));
	const char *text = arena_dup(&values.own, values.free_text);
	const char *json = arena_dup(&values.own, values.json);

	if (rc == MR_NOMEM || !type || !text || !json) {
		type_values_done(&values);
		return mr_nomem(err);
	}
	*ret = (struct mr_fields){
		.type = type, .v = values.v, .n = values.n, .text = text, .json = json, .own = values.own
	};
	return rc;
}

void
mr_fields_done(struct mr_fields *fields)
{
	if (!fields)
		return;
	arena_free(fields->own);
	*fields = (struct mr_fields){ 0 };
}
