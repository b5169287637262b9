/* SPDX-License-Identifier: MIT */
/*
 * json.c - our entries in settings files of JSON:
 *
 *	"hooks"        an array for each event, of groups {"hooks": [handlers]}, or (flat) of handlers
 *	"mcpServers"   an object with a member for each server; OpenCode: "mcp"
 *	"permissions"  "allow" in it is an array of strings
 *
 * Each edit below makes one change in a parsed text, or none: setup.h.
 */
#include "cli/setup/setup.h"
#include "cli/view.h"

#define WAITER_TIMEOUT 86400 /* seconds: longer than anybody sleeps */

#define IN_SHELL(words) "Bash(mailroom " words " *)",
#define BY_SERVER(tool) "mcp__" SETUP_SERVER_NAME "__" tool,
const char *const setup_permissions[] = { GRANTED_COMMANDS(IN_SHELL) GRANTED_TOOLS(BY_SERVER) };
const size_t setup_permissions_n = sizeof(setup_permissions) / sizeof(setup_permissions[0]);
const char *const setup_old_permissions[SETUP_OLD_PERMISSIONS] = { "Bash(mailroom *)", "mcp__" SETUP_SERVER_NAME };

/* `value` as the member `name` of the object `outer`, or (`listed`) as the last item of the array of that name. What
 * is missing of them is made with it. */
static enum mr_rc
insert(const struct edit *e, const char *outer, const char *name, bool listed, const struct buf *value)
{
	mr_auto(buf_done) struct buf whole = BUF_INIT;
	const struct jsonc_node *root = e->doc->root, *object = jsonc_member(root, outer);
	const struct jsonc_node *list = jsonc_member(object, name);

	if (object && object->kind != JSON_OBJECT)
		return mr_fail(e->err, MR_CORRUPT, "'%s' in it is no object", outer);
	if (listed && list && list->kind != JSON_ARRAY)
		return mr_fail(e->err, MR_CORRUPT, "'%s' in it is no array", name);
	if (!object)
		buf_addf(&whole, "{\"%s\":", name);
	buf_addf(&whole, listed && !list ? "[%s]" : "%s", buf_z(value));
	buf_adds(&whole, object ? "" : "}");
	TRY(mr_got(!value->failed && !whole.failed, e->err));
	jsonc_insert(e->doc,
	    list     ? list
	    : object ? object
		     : root,
	    list     ? NULL
	    : object ? name
		     : outer,
	    buf_str(&whole), e->out);
	return MR_OK;
}

static enum mr_rc
remove_node(const struct edit *e, const struct jsonc_node *node)
{
	jsonc_remove(e->doc, node, e->f->prior.was == WAS_THERE, e->out);
	return MR_OK;
}

/* ---- hooks ---- */

static void
add_handler(const struct setup *s, struct json *j, const struct harness_event *e, bool waits)
{
	const struct harness *h = s->harness;

	json_cells(
	    j, CELLS(kv_open(""), kv_if("type", h->flat ? NULL : "command"),
		   kv_if("name", h->named ? SETUP_SERVER_NAME : NULL), kv_str("command", waits ? s->waiter : s->hook),
		   waits ? kv_bool(h->bell == BELL_EXIT ? "asyncRewake" : "async", true) : kv_none(),
		   h->timeout > 0 ? kv_int("timeout", waits        ? WAITER_TIMEOUT * (h->timeout < 1000 ? 1 : 1000)
						      : e->timeout ? e->timeout
								   : h->timeout)
				  : kv_none(),
		   kv_close()));
}

enum sort { ANY = -1, HOOK = false, WAITER = true };

static bool
is_ours(const struct setup *s, const struct jsonc_node *handler, enum sort sort)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	bool waits = false;

	return jsonc_string(jsonc_member(handler, "command"), &line) && buf_ok(&line) &&
	       command_is_hook(s, buf_z(&line), &waits) && (sort == ANY || waits == (sort == WAITER));
}

/* The last handler of ours of that sort in an event's array. */
static const struct jsonc_node *
find_handler(const struct setup *s, const struct jsonc_node *event, enum sort sort)
{
	for (const struct jsonc_node *entry = event && event->kind == JSON_ARRAY ? event->last : NULL; entry;
	     entry = entry->prev) {
		const struct jsonc_node *group = jsonc_member(entry, "hooks");

		if (is_ours(s, entry, sort))
			return entry;
		for (const struct jsonc_node *h = group && group->kind == JSON_ARRAY ? group->last : NULL; h;
		     h = h->prev)
			if (is_ours(s, h, sort))
				return h;
	}
	return NULL;
}

/* Another command where ours stands; false: it is the right one. */
static bool
mend_command(const struct edit *e, const struct jsonc_node *entry, const char *line)
{
	mr_auto(buf_done) struct buf value = BUF_INIT;
	const struct jsonc_node *command = jsonc_member(entry, "command");

	if (!command || jsonc_is(command, line))
		return false;
	json_stringify(&value, str_of(line));
	jsonc_replace(e->doc, command, buf_str(&value), e->out);
	e->out->failed |= value.failed;
	return true;
}

static enum mr_rc
put_handlers(const struct edit *e, const struct harness_event *event, bool hook, bool waiter)
{
	mr_auto(buf_done) struct buf value = BUF_INIT, with_version = BUF_INIT;
	mr_auto(jsonc_done) struct jsonc again = { 0 };
	struct json j = JSON_INIT(&value);
	bool flat = e->s->harness->flat, first = !jsonc_member(e->doc->root, "hooks");

	if (!flat)
		json_cells(&j, CELLS(kv_open(""), kv_list("hooks")));
	if (hook)
		add_handler(e->s, &j, event, false);
	if (waiter)
		add_handler(e->s, &j, event, true);
	while (j.depth > 0)
		json_close(&j);
	TRY(insert(e, "hooks", event->name, true, &value));
	if (!first || !flat || jsonc_member(e->doc->root, "version"))
		return MR_OK;
	TRY(text_object(e->out, &again, e->err));
	jsonc_insert(&again, again.root, "version", STR("1"), &with_version);
	text_take(e->out, &with_version);
	return MR_OK;
}

enum mr_rc
hooks_put(const struct edit *e)
{
	for (const struct harness_event *h = e->s->harness->events; h->name; h++) {
		const struct jsonc_node *event = jsonc_member(jsonc_member(e->doc->root, "hooks"), h->name);
		const struct jsonc_node *hook = find_handler(e->s, event, HOOK);
		const struct jsonc_node *waiter = h->waits ? find_handler(e->s, event, WAITER) : NULL;

		if (!hook || (h->waits && !waiter))
			return put_handlers(e, h, !hook, h->waits && !waiter);
		if (mend_command(e, hook, e->s->hook) || mend_command(e, waiter, e->s->waiter))
			return MR_OK;
	}
	return MR_EMPTY;
}

enum mr_rc
hooks_take(const struct edit *e)
{
	const struct jsonc_node *hooks = jsonc_member(e->doc->root, "hooks");

	for (const struct jsonc_node *event = hooks && hooks->kind == JSON_OBJECT ? hooks->last : NULL; event;
	     event = event->prev) {
		const struct jsonc_node *handler = find_handler(e->s, event, ANY),
					*in = handler ? handler->parent : NULL;

		if (!handler)
			continue;
		/* A group without handlers goes as a whole, with whatever else is said in it. */
		bool alone = in->n == 1 && jsonc_name_is(in, "hooks") && in->parent->parent->kind == JSON_ARRAY;

		return remove_node(e, alone ? in->parent : handler);
	}
	return MR_EMPTY;
}

/* A version that follows the hooks came with them (put_handlers), and goes with them: before them, as the later one,
 * and only if a try shows that nothing of the hooks is left. */
enum mr_rc
hooks_take_version(const struct edit *e)
{
	mr_auto(buf_done) struct buf without = BUF_INIT;
	mr_auto(jsonc_done) struct jsonc rest = { 0 };
	struct setup_file trial = *e->f;
	const struct jsonc_node *hooks = jsonc_member(e->doc->root, "hooks");

	if (!e->s->harness->flat)
		return MR_EMPTY;
	trial.prior.was = WAS_THERE;
	buf_add(&without, e->text);
	TRY(edit_all(e->s, &trial, hooks_take, &without, e->err));
	if (str_eq(buf_str(&without), e->text))
		return MR_EMPTY;
	TRY(text_object(&without, &rest, e->err));
	if (jsonc_member(rest.root, "hooks") || !hooks->next || !jsonc_name_is(hooks->next, "version"))
		return MR_EMPTY;
	return remove_node(e, hooks->next);
}

bool
hooks_command(const struct setup *s, const struct jsonc_node *root, const char *event, bool waits, struct buf *ret)
{
	const struct jsonc_node *all = jsonc_member(jsonc_member(root, "hooks"), event);

	return jsonc_string(jsonc_member(find_handler(s, all, waits ? WAITER : HOOK), "command"), ret);
}

/*
 * ---- Servers ----
 *
 *	"mcpServers": {"mailroom": {"command": "/path/mailroom", "args": ["mcp"]}}
 *	"mcp": {"mailroom": {"type": "local", "command": ["/path/mailroom", "mcp"], "enabled": true}}	OpenCode
 */

static const char *
servers_name(unsigned parts)
{
	return parts & SETUP_MCP_SERVER ? "mcp" : "mcpServers";
}

static bool
add_string(const struct jsonc_node *node, const char *before, struct mr_names *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_adds(&text, before);
	return jsonc_string(node, &text) && buf_ok(&text) && names_add(ret, str_of(buf_z(&text)));
}

/* The program and its arguments; false: they are not all words. */
static bool
server_words(const struct jsonc_node *entry, struct mr_names *ret)
{
	const struct jsonc_node *command = jsonc_member(entry, "command"), *more = jsonc_member(entry, "args");

	if (command && command->kind == JSON_ARRAY)
		more = command;
	else if (!add_string(command, "", ret))
		return false;
	for (const struct jsonc_node *one = more && more->kind == JSON_ARRAY ? more->first : NULL; one; one = one->next)
		if (!add_string(one, "", ret))
			return false;
	return ret->n > 0;
}

static bool
is_our_server(const struct setup *s, const struct jsonc_node *entry)
{
	mr_auto(mr_names_done) struct mr_names words = { 0 };

	return server_words(entry, &words) && words.n > 1 && command_is_program(s, words.v[0]) &&
	       strcmp(words.v[1], "mcp") == 0;
}

/* An array of what the server is started with, `from` the program or its first argument. */
static void
add_words(struct json *j, const char *const *words, size_t from)
{
	json_open(j, '[');
	for (size_t i = from; words[i]; i++)
		json_str(j, str_of(words[i]));
	json_close(j);
}

static bool
list_is(const struct jsonc_node *list, const char *const *words)
{
	const struct jsonc_node *one = list && list->kind == JSON_ARRAY ? list->first : NULL;

	for (; *words && one && jsonc_is(one, *words); words++)
		one = one->next;
	return !*words && !one;
}

enum mr_rc
server_put(const struct edit *e)
{
	const struct setup *s = e->s;
	const char *words[6] = { s->command, "mcp" };
	size_t n = 2;
	mr_auto(buf_done) struct buf value = BUF_INIT;
	struct json j = JSON_INIT(&value);
	const char *servers = servers_name(e->f->parts);
	bool listed = e->f->parts & SETUP_MCP_SERVER;
	const struct jsonc_node *entry = jsonc_member(jsonc_member(e->doc->root, servers), SETUP_SERVER_NAME);

	if (s->peers)
		words[n++] = "--peers";
	if (s->room) {
		words[n++] = "--room";
		words[n] = s->room;
	}
	if (!entry) {
		json_cells(&j, CELLS(kv_open(""),
				   kv_if("type", listed              ? "local"
						 : s->harness->typed ? "stdio"
								     : NULL),
				   kv_if("command", listed ? NULL : s->command)));
		json_key(&j, listed ? "command" : "args");
		add_words(&j, words, !listed);
		json_cells(&j, CELLS(listed ? kv_bool("enabled", true) : kv_none(), kv_close()));
		return insert(e, servers, SETUP_SERVER_NAME, false, &value);
	}
	if (!is_our_server(s, entry))
		return mr_fail(e->err, MR_EXISTS, SETUP_OTHER_SERVER, SETUP_SERVER_NAME);
	if (!listed && mend_command(e, entry, s->command))
		return MR_OK;
	const struct jsonc_node *list = jsonc_member(entry, listed ? "command" : "args");

	if (list_is(list, words + !listed))
		return MR_EMPTY;
	add_words(&j, words, !listed);
	jsonc_replace(e->doc, list, buf_str(&value), e->out);
	e->out->failed |= value.failed;
	return MR_OK;
}

enum mr_rc
server_take(const struct edit *e)
{
	const struct jsonc_node *entry =
	    jsonc_member(jsonc_member(e->doc->root, servers_name(e->f->parts)), SETUP_SERVER_NAME);

	return entry && is_our_server(e->s, entry) ? remove_node(e, entry) : MR_EMPTY;
}

bool
server_command(const struct jsonc_node *root, unsigned parts, struct mr_names *argv, struct mr_names *env)
{
	const struct jsonc_node *entry = jsonc_member(jsonc_member(root, servers_name(parts)), SETUP_SERVER_NAME);
	const struct jsonc_node *more = jsonc_member(entry, "env");

	if (!server_words(entry, argv))
		return false;
	for (const struct jsonc_node *one = more ? more->first : NULL; one; one = one->next) {
		mr_auto(buf_done) struct buf name = BUF_INIT;

		json_text((struct json_value){ JSON_STRING, { one->text.ptr + one->name, one->name_end - one->name } },
		    &name);
		buf_addc(&name, '=');
		(void)add_string(one, buf_z(&name), env);
	}
	return true;
}

/* ---- permissions ---- */

static const struct jsonc_node *
find_permission(const struct jsonc_node *root, const char *permission)
{
	const struct jsonc_node *allow = jsonc_member(jsonc_member(root, "permissions"), "allow");

	for (const struct jsonc_node *one = allow && allow->kind == JSON_ARRAY ? allow->last : NULL; one;
	     one = one->prev)
		if (jsonc_is(one, permission))
			return one;
	return NULL;
}

bool
allow_has(const struct jsonc_node *root, const char *permission)
{
	return find_permission(root, permission) != NULL;
}

/* An earlier build left hooks of ours and no record: then its general permission is taken to be its own. */
enum mr_rc
allow_put(const struct edit *e)
{
	mr_auto(buf_done) struct buf value = BUF_INIT;

	for (size_t i = SETUP_OLD_PERMISSIONS; i > 0 && !e->f->fresh && !e->f->prior.known; i--) {
		const struct jsonc_node *old = find_permission(e->doc->root, setup_old_permissions[i - 1]);

		if (old) {
			jsonc_remove(e->doc, old, true, e->out);
			return MR_OK;
		}
	}
	for (size_t i = 0; i < setup_permissions_n; i++) {
		if (find_permission(e->doc->root, setup_permissions[i]))
			continue;
		buf_addf(&value, "\"%s\"", setup_permissions[i]);
		return insert(e, "permissions", "allow", true, &value);
	}
	return MR_EMPTY;
}

/* In the opposite order, as everything that is taken out. */
enum mr_rc
allow_take(const struct edit *e)
{
	for (size_t i = setup_permissions_n; i > 0; i--) {
		const struct jsonc_node *one = find_permission(e->doc->root, setup_permissions[i - 1]);

		if (one && prior_added(e->f, setup_permissions[i - 1]))
			return remove_node(e, one);
	}
	return MR_EMPTY;
}
