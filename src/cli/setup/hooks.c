/* SPDX-License-Identifier: MIT */
/*
 * hooks.c - "hooks" of a settings file: an array for each event, of groups {"hooks": [handlers]}, or (flat) of
 * handlers. One edit at a time, then the text is read anew.
 */
#include "cli/setup/setup.h"

#define WAITER_TIMEOUT 86400 /* seconds: longer than anybody sleeps */

/* ---- What we write ---- */

static void
add_handler(const struct setup *s, struct json *j, const struct setup_event *e, bool waits)
{
	json_open(j, '{');
	if (!s->harness->flat)
		json_key_str(j, "type", "command");
	if (s->harness->named)
		json_key_str(j, "name", SETUP_SERVER_NAME);
	json_key(j, "command");
	json_str(j, str_of(waits ? s->waiter : s->hook));
	if (waits)
		json_key_bool(j, "asyncRewake", true);
	if (s->harness->timeout > 0)
		json_key_int(j, "timeout", waits ? WAITER_TIMEOUT : e->timeout ? e->timeout : s->harness->timeout);
	json_close(j);
}

/* An entry of an event's array. */
static void
add_entry(const struct setup *s, struct json *j, const struct setup_event *e, bool hook, bool waiter)
{
	if (s->harness->flat) {
		add_handler(s, j, e, false);
		return;
	}
	json_open(j, '{');
	json_key(j, "hooks");
	json_open(j, '[');
	if (hook)
		add_handler(s, j, e, false);
	if (waiter)
		add_handler(s, j, e, true);
	json_close(j);
	json_close(j);
}

static void
add_event(const struct setup *s, struct json *j, const struct setup_event *event)
{
	json_open(j, '[');
	add_entry(s, j, event, true, event->waits);
	json_close(j);
}

static void
add_all(const struct setup *s, struct json *j)
{
	json_open(j, '{');
	for (const struct setup_event *e = s->harness->events; e->name; e++) {
		json_key(j, e->name);
		add_event(s, j, e);
	}
	json_close(j);
}

/* ---- What is there ---- */

/* The command of a handler of ours, else NULL. */
static struct jsonc_node *
command_of(const struct setup *s, const struct jsonc_node *handler, bool *ret_waits)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	struct jsonc_node *command = jsonc_member(handler, "command");

	return jsonc_string(command, &line) && buf_ok(&line) && command_is_hook(s, buf_z(&line), ret_waits) ? command
													    : NULL;
}

/* The last handler of ours of that sort in an event's array, or of any sort. */
static struct jsonc_node *
find_handler(const struct setup *s, const struct jsonc_node *event, bool any, bool waits)
{
	bool is_waiter = false;

	if (event->kind != JSON_ARRAY)
		return NULL;
	for (struct jsonc_node *entry = event->last; entry; entry = entry->prev) {
		const struct jsonc_node *handlers = jsonc_member(entry, "hooks");

		if (command_of(s, entry, &is_waiter) && (any || is_waiter == waits))
			return entry;
		if (!handlers || handlers->kind != JSON_ARRAY)
			continue;
		for (struct jsonc_node *h = handlers->last; h; h = h->prev)
			if (command_of(s, h, &is_waiter) && (any || is_waiter == waits))
				return h;
	}
	return NULL;
}

/* ---- In ---- */

static enum mr_rc
no_array(const char *what, struct mr_error *err)
{
	return mr_fail(err, MR_CORRUPT, "'%s' in it is no array", what);
}

/* Another command where ours stands; false: it is the right one. */
static bool
set_command(
    const struct setup *s, const struct jsonc *doc, const struct jsonc_node *handler, bool waits, struct buf *out)
{
	mr_auto(buf_done) struct buf value = BUF_INIT;
	const struct jsonc_node *command = jsonc_member(handler, "command");

	if (jsonc_is(command, waits ? s->waiter : s->hook))
		return false;
	json_stringify(&value, str_of(waits ? s->waiter : s->hook));
	jsonc_replace(doc, command, buf_str(&value), out);
	out->failed |= value.failed;
	return true;
}

/* MR_EMPTY: this event is as it should be. */
static enum mr_rc
mend_event(const struct setup *s, const struct jsonc *doc, const struct jsonc_node *hooks, const struct setup_event *e,
    struct buf *out, struct mr_error *err)
{
	mr_auto(buf_done) struct buf value = BUF_INIT;
	struct json j = JSON_INIT(&value);
	const struct jsonc_node *event = jsonc_member(hooks, e->name);

	if (!event) {
		add_event(s, &j, e);
		jsonc_insert(doc, hooks, e->name, buf_str(&value), out);
		return buf_ok(&value) ? MR_OK : mr_nomem(err);
	}
	if (event->kind != JSON_ARRAY)
		return no_array(e->name, err);
	const struct jsonc_node *hook = find_handler(s, event, false, false);
	const struct jsonc_node *waiter = e->waits ? find_handler(s, event, false, true) : NULL;

	if (!hook || (e->waits && !waiter)) {
		add_entry(s, &j, e, !hook, e->waits && !waiter);
		jsonc_insert(doc, event, NULL, buf_str(&value), out);
		return buf_ok(&value) ? MR_OK : mr_nomem(err);
	}
	if (set_command(s, doc, hook, false, out) || (waiter && set_command(s, doc, waiter, true, out)))
		return MR_OK;
	return MR_EMPTY;
}

static enum mr_rc
add_new(const struct setup *s, struct buf *text, struct jsonc *doc, struct mr_error *err)
{
	mr_auto(buf_done) struct buf value = BUF_INIT, changed = BUF_INIT;
	struct json j = JSON_INIT(&value);
	bool version = s->harness->flat && !jsonc_member(doc->root, "version");

	add_all(s, &j);
	jsonc_insert(doc, doc->root, "hooks", buf_str(&value), &changed);
	text_take(text, &changed);
	if (!version)
		return MR_OK;
	mr_auto(jsonc_done) struct jsonc again = { 0 };

	TRY(text_object(text, &again, err));
	jsonc_insert(&again, again.root, "version", STR("1"), &changed);
	text_take(text, &changed);
	return MR_OK;
}

/* MR_EMPTY: nothing is left to do. */
static enum mr_rc
put_one(const struct setup *s, struct buf *text, struct mr_error *err)
{
	mr_auto(jsonc_done) struct jsonc doc = { 0 };
	mr_auto(buf_done) struct buf changed = BUF_INIT;
	enum mr_rc rc = text_object(text, &doc, err);

	if (rc != MR_OK)
		return rc;
	const struct jsonc_node *hooks = jsonc_member(doc.root, "hooks");

	if (!hooks)
		return add_new(s, text, &doc, err);
	if (hooks->kind != JSON_OBJECT)
		return mr_fail(err, MR_CORRUPT, "'hooks' in it is no object");
	rc = MR_EMPTY;
	for (const struct setup_event *e = s->harness->events; e->name && rc == MR_EMPTY; e++)
		rc = mend_event(s, &doc, hooks, e, &changed, err);
	if (rc == MR_OK)
		text_take(text, &changed);
	return rc;
}

/* ---- Out ---- */

/* A group without handlers goes as a whole, with whatever else is said in it. */
static const struct jsonc_node *
whole_group(const struct jsonc_node *handler)
{
	const struct jsonc_node *in = handler->parent;

	return in->n == 1 && jsonc_name_is(in, "hooks") && in->parent->parent->kind == JSON_ARRAY ? in->parent
												  : handler;
}

static enum mr_rc
take_one(const struct setup *s, bool keep_root, struct buf *text, struct mr_error *err)
{
	mr_auto(jsonc_done) struct jsonc doc = { 0 };
	mr_auto(buf_done) struct buf changed = BUF_INIT;
	enum mr_rc rc = text_object(text, &doc, err);
	const struct jsonc_node *hooks = rc == MR_OK ? jsonc_member(doc.root, "hooks") : NULL;

	if (rc != MR_OK || !hooks || hooks->kind != JSON_OBJECT)
		return rc == MR_OK ? MR_EMPTY : rc;
	for (const struct jsonc_node *event = hooks->last; event; event = event->prev) {
		const struct jsonc_node *handler = find_handler(s, event, true, false);

		if (!handler)
			continue;
		jsonc_remove(&doc, whole_group(handler), keep_root, &changed);
		text_take(text, &changed);
		return MR_OK;
	}
	return MR_EMPTY;
}

/* MR_EMPTY when no text is left at all, too. */
static enum mr_rc
take_all(const struct setup *s, bool keep_root, struct buf *text, struct mr_error *err)
{
	enum mr_rc rc;

	do
		rc = take_one(s, keep_root, text, err);
	while (rc == MR_OK);
	if (rc == MR_EMPTY)
		*err = (struct mr_error){ 0 };
	return rc == MR_EMPTY ? MR_OK : rc;
}

/* A version that follows the hooks came with them (add_new), and goes with them: before them, as the later one. */
static enum mr_rc
drop_version(struct buf *text, bool keep_root, struct mr_error *err)
{
	mr_auto(jsonc_done) struct jsonc doc = { 0 };
	mr_auto(buf_done) struct buf changed = BUF_INIT;

	TRY(text_object(text, &doc, err));
	const struct jsonc_node *hooks = jsonc_member(doc.root, "hooks");

	if (hooks && hooks->next && jsonc_name_is(hooks->next, "version")) {
		jsonc_remove(&doc, hooks->next, keep_root, &changed);
		text_take(text, &changed);
	}
	return MR_OK;
}

static enum mr_rc
take_with_version(const struct setup *s, bool keep_root, struct buf *text, struct mr_error *err)
{
	mr_auto(buf_done) struct buf without = BUF_INIT;
	mr_auto(jsonc_done) struct jsonc doc = { 0 };
	struct mr_error blank = { 0 };

	buf_add(&without, buf_str(text));
	enum mr_rc rc = take_all(s, true, &without, err);

	if (rc != MR_OK)
		return rc;
	rc = text_object(&without, &doc, &blank);
	if (!str_eq(buf_str(&without), buf_str(text)) && rc == MR_OK && !jsonc_member(doc.root, "hooks"))
		rc = drop_version(text, keep_root, err);
	return rc == MR_OK ? take_all(s, keep_root, text, err) : err->code;
}

enum mr_rc
hooks_edit(const struct setup *s, enum setup_way way, bool keep_root, struct buf *text, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	if (way == SETUP_OUT)
		return s->harness->flat ? take_with_version(s, keep_root, text, err)
					: take_all(s, keep_root, text, err);
	while (rc == MR_OK)
		rc = put_one(s, text, err);
	return rc == MR_EMPTY ? MR_OK : rc;
}

/* ---- For --check ---- */

bool
hooks_command(const struct setup *s, const struct jsonc_node *root, const char *event, bool waits, struct buf *ret)
{
	const struct jsonc_node *all = jsonc_member(jsonc_member(root, "hooks"), event);

	return all && jsonc_string(jsonc_member(find_handler(s, all, false, waits), "command"), ret);
}
