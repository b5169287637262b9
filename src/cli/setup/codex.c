/* SPDX-License-Identifier: MIT */
/*
 * codex.c - Codex's config.toml: our server as a table at its end, and the folders that commands in its sandbox must be
 * able to write: mailroom's state folder, and the room. Codex passes no variable on to its servers, so those that say
 * where the state folder and the configuration are stand in the table: else hooks and server of one session would not
 * know of each other, and the server would trust no room.
 *
 * A line of comment above each table that we make tells it from one that was there, empty, before us.
 */
#include "cli/setup/setup.h"
#include "message/toml.h"

#define MARK "# added by `mailroom setup codex`"
#define SERVER "mcp_servers" TOML_DOT SETUP_SERVER_NAME
#define ENV SERVER TOML_DOT "env"
#define HOMES 2
static const char *const home_names[HOMES] = { "XDG_STATE_HOME", "XDG_CONFIG_HOME" };
#define SANDBOX "sandbox_workspace_write"
#define ROOTS SANDBOX TOML_DOT "writable_roots"

struct found {                          /* kind TOML_VALUE with end 0: not there */
	struct toml_item command, args; /* of our server */
	struct toml_item env;           /* of our server, as one value */
	struct toml_item env_table;     /* the same as a table */
	struct toml_item home[HOMES];   /* home_names in either */
	size_t env_n;                   /* values in either */
	struct toml_item servers;       /* all of them, as one value */
	struct toml_item server;        /* ours, as one value */
	struct toml_item server_table;  /* the last table of ours, or a part of it */
	struct toml_item server_last;   /* the last thing in that */
	struct toml_item sandbox;       /* as one value */
	struct toml_item sandbox_table, sandbox_dotted, roots;
	size_t sandbox_n; /* values in it */
	bool in_server;
};

static bool
is_within(const char *path, const char *what) /* or itself */
{
	size_t len = strlen(what);

	return strncmp(path, what, len) == 0 && (path[len] == '\0' || path[len] == TOML_DOT[0]);
}

static void
note_value(struct found *f, const struct toml_item *item)
{
	static const struct {
		const char *path;
		size_t at;
	} wanted[] = {
		{ SERVER TOML_DOT "command", offsetof(struct found, command) },
		{ SERVER TOML_DOT "args", offsetof(struct found, args) },
		{ ENV, offsetof(struct found, env) },
		{ ENV TOML_DOT "XDG_STATE_HOME", offsetof(struct found, home) },
		{ ENV TOML_DOT "XDG_CONFIG_HOME", offsetof(struct found, home) + sizeof(struct toml_item) },
		{ "mcp_servers", offsetof(struct found, servers) },
		{ SERVER, offsetof(struct found, server) },
		{ SANDBOX, offsetof(struct found, sandbox) },
		{ ROOTS, offsetof(struct found, roots) },
	};

	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
		if (strcmp(item->path, wanted[i].path) == 0)
			*(struct toml_item *)(void *)((char *)f + wanted[i].at) = *item;
	if (is_within(item->path, SANDBOX TOML_DOT) ||
	    (is_within(item->path, SANDBOX) && item->path[strlen(SANDBOX)])) {
		f->sandbox_n++;
		f->sandbox_dotted = *item;
	}
	if (is_within(item->path, ENV) && item->path[strlen(ENV)])
		f->env_n++;
	if (f->in_server && is_within(item->path, SERVER) && !item->nested)
		f->server_last = *item;
}

static bool
note(void *ctx, const struct toml_item *item)
{
	struct found *f = ctx;

	if (item->kind == TOML_VALUE) {
		note_value(f, item);
		return true;
	}
	bool continues = f->in_server;

	f->in_server = is_within(item->path, SERVER);
	if (f->in_server && !continues)
		f->server_table = *item;
	if (f->in_server)
		f->server_last = *item;
	if (strcmp(item->path, ENV) == 0)
		f->env_table = *item;
	if (strcmp(item->path, SANDBOX) == 0)
		f->sandbox_table = *item;
	return true;
}

static struct mr_str
value_of(const struct buf *text, const struct toml_item *item)
{
	return (struct mr_str){ text->ptr + item->at, item->end - item->at };
}

static void
replace(struct buf *text, const struct toml_item *item, struct mr_str value)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	buf_add(&out, (struct mr_str){ text->ptr, item->at });
	buf_add(&out, value);
	buf_add(&out, (struct mr_str){ text->ptr + item->end, text->len - item->end });
	text_take(text, &out);
}

/* Where the line of our comment begins, if it stands above that line; else that line. */
static size_t
marked_from(const struct buf *text, size_t line)
{
	for (const char *nl = "\n"; nl; nl = nl[0] == '\n' ? "\r\n" : NULL) {
		size_t len = strlen(MARK) + strlen(nl);

		if (line >= len && memcmp(text->ptr + line - len, MARK, strlen(MARK)) == 0 &&
		    memcmp(text->ptr + line - strlen(nl), nl, strlen(nl)) == 0)
			return line - len;
	}
	return line;
}

static size_t
end_of_line(const struct buf *text, size_t at)
{
	while (at < text->len && text->ptr[at] != '\n')
		at++;
	return at > 0 && at < text->len && text->ptr[at - 1] == '\r' ? at - 1 : at;
}

/* ---- The server ---- */

static bool
is_ours(const struct setup *s, const struct buf *text, const struct found *f)
{
	mr_auto(buf_done) struct buf command = BUF_INIT;
	struct mr_names args = { 0 };
	bool ours = f->command.end > 0 && toml_string(value_of(text, &f->command), &command) && buf_ok(&command) &&
		    command_is_program(s, buf_z(&command)) && f->args.end > 0 &&
		    toml_strings(value_of(text, &f->args), &args) && args.n > 0 && strcmp(args.v[0], "mcp") == 0;

	mr_names_done(&args);
	return ours;
}

static void
add_args(const struct setup *s, struct buf *out)
{
	buf_adds(out, "[\"mcp\"");
	if (s->room) {
		buf_adds(out, ", \"--room\", ");
		json_stringify(out, str_of(s->room));
	}
	buf_addc(out, ']');
}

static bool
same_args(const struct setup *s, const struct buf *text, const struct found *f)
{
	struct mr_names args = { 0 };
	bool same = toml_strings(value_of(text, &f->args), &args);

	same = same && (s->room ? args.n == 3 && strcmp(args.v[1], "--room") == 0 && strcmp(args.v[2], s->room) == 0
				: args.n == 1);
	mr_names_done(&args);
	return same;
}

static void
mend_server(const struct setup *s, struct buf *text, const struct found *f)
{
	mr_auto(buf_done) struct buf had = BUF_INIT, value = BUF_INIT, args = BUF_INIT;
	bool other_args = !same_args(s, text, f);

	(void)toml_string(value_of(text, &f->command), &had);
	json_stringify(&value, str_of(s->command));
	add_args(s, &args);
	bool other_command = strcmp(buf_z(&had), s->command) != 0, args_later = f->args.at > f->command.at;

	/* The later one first: the places of what stands before it stay the same. */
	if (args_later && other_args)
		replace(text, &f->args, buf_str(&args));
	if (other_command)
		replace(text, &f->command, buf_str(&value));
	if (!args_later && other_args)
		replace(text, &f->args, buf_str(&args));
}

static enum mr_rc
put_server(
    const struct setup *s, const struct setup_file *file, struct buf *text, const struct found *f, struct mr_error *err)
{
	mr_auto(buf_done) struct buf block = BUF_INIT, out = BUF_INIT;

	if (f->command.end > 0 || f->args.end > 0 || f->server.end > 0 || f->server_table.end > 0) {
		if (!is_ours(s, text, f)) {
			return mr_fail(err, MR_EXISTS,
			    "it has another server called '%s'\ngive that one another name, or remove it; then run this again",
			    SETUP_SERVER_NAME);
		}
		mend_server(s, text, f);
		return MR_OK;
	}
	if (f->servers.end > 0) {
		return mr_fail(err, MR_REFUSED,
		    "'mcp_servers' is one value, to which no table can be added\n"
		    "write its servers as tables, [mcp_servers.NAME]; then run this again");
	}
	buf_adds(&block, MARK "\n[mcp_servers." SETUP_SERVER_NAME "]\ncommand = ");
	json_stringify(&block, str_of(s->command));
	buf_adds(&block, "\nargs = ");
	add_args(s, &block);
	toml_add_block(buf_str(text), file->there, buf_str(&block), &out);
	text_take(text, &out);
	return buf_ok(&block) ? MR_OK : mr_nomem(err);
}

static void
take_server(const struct setup *s, struct buf *text, const struct found *f)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	if (!is_ours(s, text, f))
		return;
	if (f->server_table.end > 0)
		toml_drop_block(buf_str(text), marked_from(text, f->server_table.line),
		    end_of_line(text, f->server_last.end), &out);
	else if (f->server.end > 0 && !f->server.nested)
		toml_drop_line(buf_str(text), f->server.line, f->server.end, &out);
	else
		return;
	text_take(text, &out);
}

/* ---- Its environment ---- */

static void
insert(struct buf *text, size_t at, struct mr_str piece)
{
	replace(text, &(struct toml_item){ .at = at, .end = at }, piece);
}

/* Behind its last line, whichever of the two that is. */
static void
add_env_line(struct buf *text, const struct found *f, const char *pair)
{
	mr_auto(buf_done) struct buf line = BUF_INIT, out = BUF_INIT;

	buf_addf(&line, "%senv = { %s }", f->server_table.end > 0 ? "" : "mcp_servers." SETUP_SERVER_NAME ".", pair);
	toml_add_line(buf_str(text), f->args.end > f->command.end ? f->args.end : f->command.end, buf_str(&line), &out);
	out.failed |= line.failed;
	text_take(text, &out);
}

static void
add_home(struct buf *text, const struct found *f, const char *pair)
{
	mr_auto(buf_done) struct buf piece = BUF_INIT, out = BUF_INIT;

	if (f->env.end > 0) {
		buf_addf(&piece, " %s%s", pair, f->env_n > 0 ? "," : " ");
		insert(text, f->env.at + 1, buf_str(&piece));
		text->failed |= piece.failed;
	} else if (f->env_table.end > 0) {
		toml_add_line(buf_str(text), f->env_table.end, str_of(pair), &out);
		text_take(text, &out);
	} /* in a table of one line only its user knows what was meant */
}

static enum mr_rc
find(const struct buf *text, struct found *ret, struct mr_error *err)
{
	*ret = (struct found){ 0 };
	return toml_each(buf_str(text), note, ret, err);
}

/* What is found there is ours only in the very form that we write. */
static void
put_home(size_t i, const char *home, struct buf *text, const struct found *f)
{
	mr_auto(buf_done) struct buf had = BUF_INIT, value = BUF_INIT, pair = BUF_INIT;

	if (f->home[i].end > 0)
		(void)toml_string(value_of(text, &f->home[i]), &had);
	json_stringify(&value, str_of(home));
	buf_addf(&pair, "%s = %s", home_names[i], buf_z(&value));
	if (!buf_ok(&value) || !buf_ok(&pair))
		text->failed = true;
	else if (f->home[i].end == 0)
		add_home(text, f, buf_z(&pair));
	else if (strcmp(buf_z(&had), home) != 0)
		replace(text, &f->home[i], buf_str(&value));
}

/* The pairs that are to be there, with commas between them; nothing when neither variable is set. */
static void
join_homes(const char *const homes[HOMES], struct buf *out)
{
	for (size_t i = 0; i < HOMES; i++) {
		if (!homes[i])
			continue;
		buf_addf(out, "%s%s = ", out->len > 0 ? ", " : "", home_names[i]);
		json_stringify(out, str_of(homes[i]));
	}
}

/* One line with nothing but ours in it is written anew; beside the user's own each of ours is put in its place. */
static enum mr_rc
put_env(const struct setup *s, struct buf *text, struct mr_error *err)
{
	const char *const homes[HOMES] = { s->state_home, s->config_home };
	mr_auto(buf_done) struct buf pairs = BUF_INIT, line = BUF_INIT, out = BUF_INIT;
	struct found f;
	enum mr_rc rc = find(text, &f, err);

	if (rc != MR_OK)
		return rc;
	size_t ours = (size_t)(f.home[0].end > 0) + (f.home[1].end > 0);

	join_homes(homes, &pairs);
	buf_addf(&line, "{ %s }", buf_z(&pairs));
	if (!buf_ok(&pairs) || !buf_ok(&line))
		return mr_nomem(err);
	if (f.env.end > 0 && ours > 0 && f.env_n == ours && !f.env.nested) {
		if (pairs.len > 0) {
			replace(text, &f.env, buf_str(&line));
			return MR_OK;
		}
		toml_drop_line(buf_str(text), f.env.line, f.env.end, &out);
		text_take(text, &out);
		return MR_OK;
	}
	if (f.env.end == 0 && f.env_table.end == 0 && pairs.len > 0 && !f.command.nested) {
		add_env_line(text, &f, buf_z(&pairs));
		return MR_OK;
	}
	for (size_t i = 0; i < HOMES && rc == MR_OK; i++) {
		if (homes[i])
			put_home(i, homes[i], text, &f);
		rc = find(text, &f, err);
	}
	return rc;
}

/* ---- Writable roots ---- */

static bool
has_root(const struct buf *text, const struct found *f, const char *root)
{
	struct mr_names all = { 0 };
	bool has = f->roots.end > 0 && toml_strings(value_of(text, &f->roots), &all) && names_has(&all, root);

	mr_names_done(&all);
	return has;
}

static enum mr_rc
put_root(const struct setup_file *file, struct buf *text, const char *root, struct mr_error *err)
{
	mr_auto(buf_done) struct buf line = BUF_INIT, out = BUF_INIT;
	struct found f;

	TRY(find(text, &f, err));
	if (has_root(text, &f, root))
		return MR_OK;
	if (f.roots.end > 0 && text->ptr[f.roots.at] != '[')
		return mr_fail(err, MR_CORRUPT, "'writable_roots' in it is no array");
	if (f.sandbox.end > 0 && f.roots.end == 0) {
		return mr_fail(err, MR_REFUSED,
		    "'" SANDBOX "' is one value, to which nothing can be added\n"
		    "write it as a table, [" SANDBOX "]; then run this again");
	}
	if (f.roots.end == 0 && f.sandbox_table.end == 0 && f.sandbox_n > 0)
		buf_adds(&line, SANDBOX ".");
	buf_adds(&line, "writable_roots = [ ");
	json_stringify(&line, str_of(root));
	buf_adds(&line, " ]");
	if (f.roots.end > 0) {
		toml_array_add(buf_str(text), f.roots.at, f.roots.end, root, &out);
	} else if (f.sandbox_table.end > 0 || f.sandbox_n > 0) {
		const struct toml_item *at = f.sandbox_table.end > 0 ? &f.sandbox_table : &f.sandbox_dotted;

		toml_add_line(buf_str(text), at->end, buf_str(&line), &out);
	} else {
		mr_auto(buf_done) struct buf block = BUF_INIT;

		buf_addf(&block, MARK "\n[" SANDBOX "]\n%s", buf_z(&line));
		toml_add_block(buf_str(text), file->there, buf_str(&block), &out);
		out.failed |= block.failed;
	}
	out.failed |= line.failed;
	text_take(text, &out);
	return MR_OK;
}

/* Without a memory, only those in a table that our comment marks. */
static bool
is_our_root(const struct setup_file *file, bool marked, const char *root)
{
	return file->memory.known ? setup_memory_added(file, root) : marked && !file->keep_all;
}

/* The last one of ours; with it what would be left empty and is ours. MR_EMPTY: there is none. */
static enum mr_rc
take_root(const struct setup_file *file, struct buf *text, struct mr_error *err)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct mr_names all = { 0 };
	struct found f;
	enum mr_rc rc = find(text, &f, err);
	size_t i = 0;

	size_t from = rc == MR_OK ? marked_from(text, f.sandbox_table.line) : 0;
	bool marked = rc == MR_OK && f.sandbox_table.end > 0 && from < f.sandbox_table.line;

	if (rc == MR_OK && f.roots.end > 0 && toml_strings(value_of(text, &f.roots), &all))
		for (i = all.n; i > 0 && !is_our_root(file, marked, all.v[i - 1]);)
			i--;
	mr_names_done(&all);
	if (rc != MR_OK || i == 0)
		return rc == MR_OK ? MR_EMPTY : rc;
	if (!toml_array_is_ours(buf_str(text), f.roots.at, f.roots.end) || f.roots.nested)
		toml_array_drop(buf_str(text), f.roots.at, f.roots.end, i - 1, &out);
	else if (marked && f.sandbox_n == 1)
		toml_drop_block(buf_str(text), from, end_of_line(text, f.roots.end), &out);
	else
		toml_drop_line(buf_str(text), f.roots.line, f.roots.end, &out);
	text_take(text, &out);
	return MR_OK;
}

/* What the sandbox may write must not hold what says which rooms and commands are allowed. */
static enum mr_rc
check_roots_are_apart(const struct setup *s, struct mr_error *err)
{
	const char *const roots[] = { s->state_dir, s->room_dir };

	for (size_t i = 0; i < 2; i++) {
		size_t len = roots[i] ? strlen(roots[i]) : 0;

		if (!roots[i] || !s->config_dir || strncmp(s->config_dir, roots[i], len) != 0 ||
		    (s->config_dir[len] != '/' && s->config_dir[len] != '\0'))
			continue;
		return mr_fail(err, MR_REFUSED,
		    "mailroom's configuration '%.120s' lies in '%.120s', which Codex's sandbox would write\n"
		    "give $XDG_STATE_HOME and $XDG_CONFIG_HOME two different folders",
		    s->config_dir, roots[i]);
	}
	return MR_OK;
}

/* ---- Both ---- */

enum mr_rc
codex_edit(
    const struct setup *s, const struct setup_file *file, enum setup_way way, struct buf *text, struct mr_error *err)
{
	struct found f;
	enum mr_rc rc = MR_OK;

	if (way == SETUP_OUT) {
		while (rc == MR_OK)
			rc = take_root(file, text, err);
		if (rc == MR_EMPTY)
			rc = find(text, &f, err);
		if (rc == MR_OK)
			take_server(s, text, &f);
		return rc;
	}
	rc = find(text, &f, err);
	if (rc == MR_OK)
		rc = put_server(s, file, text, &f, err);
	if (rc != MR_OK || s->project)
		return rc; /* the folders of one user are no business of a project's file: see the note of cmd_setup.c
			    */
	rc = put_env(s, text, err);
	if (rc == MR_OK)
		rc = check_roots_are_apart(s, err);
	if (rc == MR_OK && s->state_dir)
		rc = put_root(file, text, s->state_dir, err);
	if (rc == MR_OK && s->room_dir)
		rc = put_root(file, text, s->room_dir, err);
	return rc;
}

enum mr_rc
codex_roots(const struct buf *text, struct mr_names *ret, struct mr_error *err)
{
	struct found f;
	enum mr_rc rc = find(text, &f, err);

	if (rc == MR_OK && f.roots.end > 0)
		(void)toml_strings(value_of(text, &f.roots), ret);
	return rc;
}

/* ---- For --check ---- */

enum mr_rc
codex_command(
    struct buf *text, struct mr_names *argv, struct mr_names *roots, struct buf homes[2], struct mr_error *err)
{
	mr_auto(buf_done) struct buf command = BUF_INIT;
	struct found f;

	TRY(find(text, &f, err));
	if (f.command.end > 0 && toml_string(value_of(text, &f.command), &command) &&
	    (!names_add(argv, str_of(buf_z(&command))) ||
		(f.args.end > 0 && !toml_strings(value_of(text, &f.args), argv))))
		return mr_nomem(err);
	if (f.roots.end > 0)
		(void)toml_strings(value_of(text, &f.roots), roots);
	for (size_t i = 0; i < HOMES; i++)
		if (f.home[i].end > 0)
			(void)toml_string(value_of(text, &f.home[i]), &homes[i]);
	return MR_OK;
}
