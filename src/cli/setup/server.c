/* SPDX-License-Identifier: MIT */
/* server.c - our MCP server in "mcpServers", and the permission to run mailroom in "permissions". */
#include "cli/setup/setup.h"

/* ---- mcpServers ---- */

static void
add_args(const struct setup *s, struct json *j)
{
	json_open(j, '[');
	json_str(j, STR("mcp"));
	if (s->room) {
		json_str(j, STR("--room"));
		json_str(j, str_of(s->room));
	}
	json_close(j);
}

static void
add_server(const struct setup *s, struct json *j)
{
	json_open(j, '{');
	if (s->harness->typed)
		json_key_str(j, "type", "stdio");
	json_key(j, "command");
	json_str(j, str_of(s->command));
	json_key(j, "args");
	add_args(s, j);
	json_close(j);
}

static bool
is_our_server(const struct setup *s, const struct jsonc_node *entry)
{
	mr_auto(buf_done) struct buf command = BUF_INIT;
	const struct jsonc_node *args = jsonc_member(entry, "args");

	return jsonc_string(jsonc_member(entry, "command"), &command) && buf_ok(&command) &&
	       command_is_program(s, buf_z(&command)) && args && args->kind == JSON_ARRAY &&
	       jsonc_is(args->first, "mcp");
}

static bool
same_args(const struct setup *s, const struct jsonc_node *args)
{
	if (!s->room)
		return args->n == 1;
	return args->n == 3 && jsonc_is(args->first->next, "--room") && jsonc_is(args->last, s->room);
}

/* False: it is as it should be. */
static bool
mend_server(const struct setup *s, const struct jsonc *doc, const struct jsonc_node *entry, struct buf *out)
{
	mr_auto(buf_done) struct buf value = BUF_INIT;
	struct json j = JSON_INIT(&value);
	const struct jsonc_node *command = jsonc_member(entry, "command"), *args = jsonc_member(entry, "args");

	if (!jsonc_is(command, s->command)) {
		json_stringify(&value, str_of(s->command));
		jsonc_replace(doc, command, buf_str(&value), out);
	} else if (!same_args(s, args)) {
		add_args(s, &j);
		jsonc_replace(doc, args, buf_str(&value), out);
	} else {
		return false;
	}
	out->failed |= value.failed;
	return true;
}

static enum mr_rc
not_ours(struct mr_error *err)
{
	return mr_fail(err, MR_EXISTS,
	    "it has another server called '%s'\ngive that one another name, or remove it; then run this again",
	    SETUP_SERVER_NAME);
}

/* MR_EMPTY: nothing to do. */
static enum mr_rc
put_server(const struct setup *s, const struct jsonc *doc, struct buf *out, struct mr_error *err)
{
	mr_auto(buf_done) struct buf value = BUF_INIT;
	struct json j = JSON_INIT(&value);
	const struct jsonc_node *servers = jsonc_member(doc->root, "mcpServers");
	const struct jsonc_node *entry = jsonc_member(servers, SETUP_SERVER_NAME);

	if (servers && servers->kind != JSON_OBJECT)
		return mr_fail(err, MR_CORRUPT, "'mcpServers' in it is no object");
	if (entry && !is_our_server(s, entry))
		return not_ours(err);
	if (entry)
		return mend_server(s, doc, entry, out) ? MR_OK : MR_EMPTY;
	if (!servers) {
		json_open(&j, '{');
		json_key(&j, SETUP_SERVER_NAME);
	}
	add_server(s, &j);
	while (j.depth > 0)
		json_close(&j);
	jsonc_insert(
	    doc, servers ? servers : doc->root, servers ? SETUP_SERVER_NAME : "mcpServers", buf_str(&value), out);
	return buf_ok(&value) ? MR_OK : mr_nomem(err);
}

static enum mr_rc
take_server(const struct setup *s, const struct jsonc *doc, bool keep_root, struct buf *out)
{
	const struct jsonc_node *entry = jsonc_member(jsonc_member(doc->root, "mcpServers"), SETUP_SERVER_NAME);

	if (!entry || !is_our_server(s, entry))
		return MR_EMPTY;
	jsonc_remove(doc, entry, keep_root, out);
	return MR_OK;
}

/* ---- permissions ---- */

#define IN_SHELL(words) "Bash(mailroom " words " *)",
#define BY_SERVER(tool) "mcp__" SETUP_SERVER_NAME "__" tool,
const char *const setup_permissions[] = { GRANTED_COMMANDS(IN_SHELL) GRANTED_TOOLS(BY_SERVER) };
const size_t setup_permissions_n = sizeof(setup_permissions) / sizeof(setup_permissions[0]);
const char *const setup_old_permissions[2] = { "Bash(mailroom *)", "mcp__" SETUP_SERVER_NAME };

static enum mr_rc
put_permission(const struct jsonc *doc, const char *permission, struct buf *out, struct mr_error *err)
{
	mr_auto(buf_done) struct buf value = BUF_INIT;
	const struct jsonc_node *all = jsonc_member(doc->root, "permissions"), *allow = jsonc_member(all, "allow");

	if (all && all->kind != JSON_OBJECT)
		return mr_fail(err, MR_CORRUPT, "'permissions' in it is no object");
	if (allow && allow->kind != JSON_ARRAY)
		return mr_fail(err, MR_CORRUPT, "'allow' in it is no array");
	for (const struct jsonc_node *one = allow ? allow->first : NULL; one; one = one->next)
		if (jsonc_is(one, permission))
			return MR_EMPTY;
	buf_addf(&value, all ? allow ? "\"%s\"" : "[\"%s\"]" : "{\"allow\":[\"%s\"]}", permission);
	jsonc_insert(doc,
	    allow ? allow
	    : all ? all
		  : doc->root,
	    allow ? NULL
	    : all ? "allow"
		  : "permissions",
	    buf_str(&value), out);
	return buf_ok(&value) ? MR_OK : mr_nomem(err);
}

static enum mr_rc
take_permission(const struct jsonc *doc, const char *permission, bool keep_root, struct buf *out)
{
	const struct jsonc_node *allow = jsonc_member(jsonc_member(doc->root, "permissions"), "allow");

	for (const struct jsonc_node *one = allow && allow->kind == JSON_ARRAY ? allow->last : NULL; one;
	     one = one->prev)
		if (jsonc_is(one, permission)) {
			jsonc_remove(doc, one, keep_root, out);
			return MR_OK;
		}
	return MR_EMPTY;
}

/* ---- As edits of a text ---- */

enum mr_rc
server_edit(const struct setup *s, enum setup_way way, bool keep_root, struct buf *text, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	while (rc == MR_OK) {
		mr_auto(jsonc_done) struct jsonc doc = { 0 };
		mr_auto(buf_done) struct buf changed = BUF_INIT;

		rc = text_object(text, &doc, err);
		if (rc == MR_OK)
			rc = way == SETUP_IN ? put_server(s, &doc, &changed, err)
					     : take_server(s, &doc, keep_root, &changed);
		if (rc == MR_OK)
			text_take(text, &changed);
	}
	if (rc == MR_EMPTY)
		*err = (struct mr_error){ 0 };
	return rc == MR_EMPTY ? MR_OK : rc;
}

static enum mr_rc
permission_edit(const char *permission, enum setup_way way, bool keep_root, struct buf *text, struct mr_error *err)
{
	mr_auto(jsonc_done) struct jsonc doc = { 0 };
	mr_auto(buf_done) struct buf changed = BUF_INIT;
	enum mr_rc rc = text_object(text, &doc, err);

	if (rc == MR_OK && way == SETUP_IN)
		rc = put_permission(&doc, permission, &changed, err);
	else if (rc == MR_OK)
		rc = take_permission(&doc, permission, keep_root, &changed);
	if (rc == MR_OK)
		text_take(text, &changed);
	if (rc == MR_EMPTY)
		*err = (struct mr_error){ 0 };
	return rc == MR_EMPTY ? MR_OK : rc;
}

/* Out in the opposite order, as everything else. An earlier build left hooks of ours and no memory: then its general
 * permission is taken to be its own. */
enum mr_rc
allow_edit(const struct setup *s, const struct setup_file *f, enum setup_way way, bool keep_root, struct buf *text,
    struct mr_error *err)
{
	enum mr_rc rc = MR_OK;
	size_t n = setup_permissions_n;

	(void)s;
	for (size_t i = 0; i < 2 && rc == MR_OK && way == SETUP_IN && !f->fresh && !f->memory.known; i++)
		rc = permission_edit(setup_old_permissions[1 - i], SETUP_OUT, true, text, err);
	for (size_t i = 0; i < n && rc == MR_OK; i++) {
		const char *permission = setup_permissions[way == SETUP_IN ? i : n - 1 - i];

		if (way == SETUP_IN || setup_memory_added(f, permission))
			rc = permission_edit(permission, way, keep_root, text, err);
	}
	return rc;
}

/* ---- For --check ---- */

static bool
add_string(const struct jsonc_node *node, const char *before, struct mr_names *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_adds(&text, before);
	return jsonc_string(node, &text) && buf_ok(&text) && names_add(ret, str_of(buf_z(&text)));
}

bool
server_command(const struct jsonc_node *root, struct mr_names *argv, struct mr_names *env)
{
	const struct jsonc_node *entry = jsonc_member(jsonc_member(root, "mcpServers"), SETUP_SERVER_NAME);
	const struct jsonc_node *args = jsonc_member(entry, "args"), *more = jsonc_member(entry, "env");

	if (!add_string(jsonc_member(entry, "command"), "", argv))
		return false;
	for (const struct jsonc_node *one = args ? args->first : NULL; one; one = one->next)
		if (!add_string(one, "", argv))
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

bool
allow_has(const struct jsonc_node *root, const char *permission)
{
	const struct jsonc_node *allow = jsonc_member(jsonc_member(root, "permissions"), "allow");

	for (const struct jsonc_node *one = allow && allow->kind == JSON_ARRAY ? allow->first : NULL; one;
	     one = one->next)
		if (jsonc_is(one, permission))
			return true;
	return false;
}
