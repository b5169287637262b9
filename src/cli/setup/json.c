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
const char *const setup_permissions[] = { "Bash(mailroom *)", "mcp__" SETUP_SERVER_NAME,
	GRANTED_COMMANDS(IN_SHELL) GRANTED_TOOLS(BY_SERVER) };
const size_t setup_permissions_n = sizeof(setup_permissions) / sizeof(setup_permissions[0]);

/* `value` as the member `name` of the object `outer`, or (`listed`) as the last item of the array of that name. What
 * is missing of them is made with it. */
static enum mr_rc
insert(const struct edit *e, const char *outer, const char *name, bool listed, const struct buf *value)
{
	mr_auto(buf_done) struct buf whole = BUF_INIT;
	struct json_value object, list = { 0 };
	bool has_object = json_find(e->doc->root, outer, &object);
	bool has_list = has_object && json_find(object, name, &list);

	if (has_object && object.kind != JSON_OBJECT)
		return mr_fail(e->err, MR_CORRUPT, "'%s' in it is not an object", outer);
	if (listed && has_list && list.kind != JSON_ARRAY)
		return mr_fail(e->err, MR_CORRUPT, "'%s' in it is not an array", name);
	if (!has_object)
		buf_addf(&whole, "{\"%s\":", name);
	buf_addf(&whole, listed && !has_list ? "[%s]" : "%s", buf_z(value));
	buf_adds(&whole, has_object ? "" : "}");
	TRY(mr_got(!value->failed && !whole.failed, e->err));
	if (has_list)
		jsonc_insert(e->doc, list, NULL, buf_str(&whole), e->out);
	else
		jsonc_insert(
		    e->doc, has_object ? object : e->doc->root, has_object ? name : outer, buf_str(&whole), e->out);
	return MR_OK;
}

static enum mr_rc
take_out(const struct edit *e, struct json_value value)
{
	jsonc_remove(e->doc, value, e->f->prior.was == WAS_THERE, e->out);
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
is_ours(const struct setup *s, struct json_value handler, enum sort sort)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	bool waits = false;

	return json_find_text(handler, "command", &line) && buf_ok(&line) && command_is_hook(s, buf_z(&line), &waits) &&
	       (sort == ANY || waits == (sort == WAITER));
}

/* The last handler of ours of that sort in an event's array. *ret_whole, if not NULL: its group when it is alone there,
 * whatever else is said in that; else the handler. */
static bool
find_handler(const struct setup *s, struct json_value event, enum sort sort, struct json_value *ret,
    struct json_value *ret_whole)
{
	struct json_value entry, one, found = { 0 }, whole = { 0 };

	for (size_t at = 0; json_item(event, &at, &entry);) {
		struct json_value group = json_get(entry, "hooks"), last = { 0 };
		size_t n = 0;

		for (size_t i = 0; json_item(group, &i, &one); n++)
			if (is_ours(s, one, sort))
				last = one;
		if (last.raw.ptr || is_ours(s, entry, sort)) {
			found = last.raw.ptr ? last : entry;
			whole = n == 1 ? entry : found;
		}
	}
	*ret = found;
	if (ret_whole)
		*ret_whole = whole;
	return found.raw.ptr;
}

/* Another command where ours stands; false: it is the right one. */
static bool
mend_command(const struct edit *e, struct json_value entry, const char *line)
{
	mr_auto(buf_done) struct buf value = BUF_INIT;
	struct json_value command;

	if (!json_find(entry, "command", &command) || json_is(command, line))
		return false;
	json_stringify(&value, str_of(line));
	jsonc_replace(e->doc, command, &value, e->out);
	return true;
}

static enum mr_rc
put_handlers(const struct edit *e, const struct harness_event *event, bool hook, bool waiter)
{
	mr_auto(buf_done) struct buf value = BUF_INIT, with_version = BUF_INIT;
	mr_auto(jsonc_done) struct jsonc again = { 0 };
	struct json j = JSON_INIT(&value);
	bool flat = e->s->harness->flat, first = !json_get(e->doc->root, "hooks").raw.ptr;

	if (!flat)
		json_cells(&j, CELLS(kv_open(""), kv_list("hooks")));
	if (hook)
		add_handler(e->s, &j, event, false);
	if (waiter)
		add_handler(e->s, &j, event, true);
	while (j.depth > 0)
		json_close(&j);
	TRY(insert(e, "hooks", event->name, true, &value));
	if (!first || !flat || json_get(e->doc->root, "version").raw.ptr)
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
		struct json_value event = json_get(json_get(e->doc->root, "hooks"), h->name), hook, waiter = { 0 };
		bool has_hook = find_handler(e->s, event, HOOK, &hook, NULL);
		bool has_waiter = !h->waits || find_handler(e->s, event, WAITER, &waiter, NULL);

		if (!has_hook || !has_waiter)
			return put_handlers(e, h, !has_hook, !has_waiter);
		if (mend_command(e, hook, e->s->hook) || mend_command(e, waiter, e->s->waiter))
			return MR_OK;
	}
	return MR_EMPTY;
}

enum mr_rc
hooks_take(const struct edit *e)
{
	struct json_value hooks = json_get(e->doc->root, "hooks"), key, event, handler, one, last = { 0 };

	for (size_t at = 0; json_member(hooks, &at, &key, &event);)
		if (find_handler(e->s, event, ANY, &handler, &one))
			last = one;
	return last.raw.ptr ? take_out(e, last) : MR_EMPTY;
}

/* A version that follows the hooks came with them (put_handlers), and goes with them: before them, as the later one,
 * and only if a try shows that nothing of the hooks is left. */
enum mr_rc
hooks_take_version(const struct edit *e)
{
	mr_auto(buf_done) struct buf without = BUF_INIT;
	mr_auto(jsonc_done) struct jsonc rest = { 0 };
	struct setup_file trial = *e->f;
	struct json_value key, value, version = { 0 };
	bool behind = false;

	if (!e->s->harness->flat)
		return MR_EMPTY;
	trial.prior.was = WAS_THERE;
	buf_add(&without, e->text);
	TRY(edit_all(e->s, &trial, hooks_take, &without, e->err));
	if (str_eq(buf_str(&without), e->text))
		return MR_EMPTY;
	TRY(text_object(&without, &rest, e->err));
	for (size_t at = 0; json_member(e->doc->root, &at, &key, &value);) {
		bool hooks = json_key_is(key, "hooks");

		if (hooks || (behind && json_key_is(key, "version")))
			version = hooks ? (struct json_value){ 0 } : value;
		behind = hooks;
	}
	return json_get(rest.root, "hooks").raw.ptr || !version.raw.ptr ? MR_EMPTY : take_out(e, version);
}

bool
hooks_command(const struct setup *s, struct json_value root, const char *event, bool waits, struct buf *ret)
{
	struct json_value all = json_get(json_get(root, "hooks"), event), handler;

	return find_handler(s, all, waits ? WAITER : HOOK, &handler, NULL) && json_find_text(handler, "command", ret);
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
add_string(struct json_value value, const char *before, struct mr_names *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_adds(&text, before);
	json_text(value, &text);
	return value.kind == JSON_STRING && buf_ok(&text) && names_add(ret, str_of(buf_z(&text)));
}

/* The program and its arguments; false: they are not all words. */
static bool
server_words(struct json_value entry, struct mr_names *ret)
{
	struct json_value command = json_get(entry, "command"), one;
	bool listed = command.kind == JSON_ARRAY;
	struct json_value more = listed ? command : json_get(entry, "args");

	if (!listed && !add_string(command, "", ret))
		return false;
	for (size_t at = 0; json_item(more, &at, &one);)
		if (!add_string(one, "", ret))
			return false;
	return ret->n > 0;
}

static bool
is_our_server(const struct setup *s, struct json_value entry)
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
list_is(struct json_value list, const char *const *words)
{
	struct json_value one;

	for (size_t at = 0; json_item(list, &at, &one); words++)
		if (!*words || !json_is(one, *words))
			return false;
	return !*words;
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
	struct json_value entry = json_get(json_get(e->doc->root, servers), SETUP_SERVER_NAME);

	if (s->peers)
		words[n++] = "--peers";
	if (s->room) {
		words[n++] = "--room";
		words[n] = s->room;
	}
	if (!entry.raw.ptr) {
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
	struct json_value list = json_get(entry, listed ? "command" : "args");

	if (list_is(list, words + !listed))
		return MR_EMPTY;
	add_words(&j, words, !listed);
	jsonc_replace(e->doc, list, &value, e->out);
	return MR_OK;
}

enum mr_rc
server_take(const struct edit *e)
{
	struct json_value entry = json_get(json_get(e->doc->root, servers_name(e->f->parts)), SETUP_SERVER_NAME);

	return is_our_server(e->s, entry) ? take_out(e, entry) : MR_EMPTY;
}

bool
server_command(struct json_value root, unsigned parts, struct mr_names *argv, struct mr_names *env)
{
	struct json_value entry = json_get(json_get(root, servers_name(parts)), SETUP_SERVER_NAME);
	struct json_value more = json_get(entry, "env"), key, value;

	if (!server_words(entry, argv))
		return false;
	for (size_t at = 0; json_member(more, &at, &key, &value);) {
		mr_auto(buf_done) struct buf name = BUF_INIT;

		json_text(key, &name);
		buf_addc(&name, '=');
		(void)add_string(value, buf_z(&name), env);
	}
	return true;
}

/* ---- permissions ---- */

/* The last of that text; nothing: it is not there. */
static struct json_value
find_permission(struct json_value root, const char *permission)
{
	struct json_value allow = json_get(json_get(root, "permissions"), "allow"), one, found = { 0 };

	for (size_t at = 0; json_item(allow, &at, &one);)
		if (json_is(one, permission))
			found = one;
	return found;
}

bool
allow_has(struct json_value root, const char *permission)
{
	return find_permission(root, permission).raw.ptr;
}

/* An earlier build left hooks of ours and no record: then its general permission is taken to be its own. */
enum mr_rc
allow_put(const struct edit *e)
{
	mr_auto(buf_done) struct buf value = BUF_INIT;

	for (size_t i = SETUP_OLD_PERMISSIONS; i > 0 && !e->f->fresh && !e->f->prior.known; i--) {
		struct json_value old = find_permission(e->doc->root, setup_permissions[i - 1]);

		if (old.raw.ptr) {
			jsonc_remove(e->doc, old, true, e->out);
			return MR_OK;
		}
	}
	for (size_t i = SETUP_OLD_PERMISSIONS; i < setup_permissions_n; i++) {
		if (allow_has(e->doc->root, setup_permissions[i]))
			continue;
		TRY(prior_add(e->f, setup_permissions[i], e->err));
		buf_addf(&value, "\"%s\"", setup_permissions[i]);
		return insert(e, "permissions", "allow", true, &value);
	}
	return MR_EMPTY;
}

/* In the opposite order, as everything that is taken out. */
enum mr_rc
allow_take(const struct edit *e)
{
	for (size_t i = setup_permissions_n; i > SETUP_OLD_PERMISSIONS; i--) {
		struct json_value one = find_permission(e->doc->root, setup_permissions[i - 1]);

		if (one.raw.ptr && prior_added(e->f, setup_permissions[i - 1]))
			return take_out(e, one);
	}
	return MR_EMPTY;
}
