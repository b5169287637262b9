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
#define SERVERS "mcp_servers"
#define SERVER SERVERS TOML_DOT SETUP_SERVER_NAME
#define ENV SERVER TOML_DOT "env"
#define SANDBOX "sandbox_workspace_write"
#define HOMES 2

enum what {
	COMMAND,                    /* of our server */
	ARGS,                       /* likewise */
	ENV_VALUE,                  /* its environment as one value */
	HOME,                       /* the variables of setup_home_names in its environment, two items */
	ALL_SERVERS = HOME + HOMES, /* as one value */
	SERVER_VALUE,               /* ours as one value */
	SANDBOX_VALUE,              /* as one value */
	ROOTS,
	VALUES,
	ENV_TABLE = VALUES,
	SERVER_TABLE, /* the last table of ours, or a part of it */
	SERVER_LAST,  /* the last thing in that */
	SANDBOX_TABLE,
	SANDBOX_DOTTED, /* the last value in it, wherever it stands */
	ITEMS,
};
static const char *const paths[VALUES] = { SERVER TOML_DOT "command", SERVER TOML_DOT "args", ENV,
	ENV TOML_DOT "XDG_STATE_HOME", ENV TOML_DOT "XDG_CONFIG_HOME", SERVERS, SERVER, SANDBOX,
	SANDBOX TOML_DOT "writable_roots" };

struct found {
	struct toml_item at[ITEMS]; /* end 0: it is not there */
	size_t env_n, sandbox_n;    /* values in them */
	bool in_server;
};

static bool
has(const struct found *f, enum what what)
{
	return f->at[what].end > 0;
}

static bool
is_within(const char *path, const char *what) /* or itself */
{
	size_t len = strlen(what);

	return strncmp(path, what, len) == 0 && (path[len] == '\0' || path[len] == TOML_DOT[0]);
}

static bool
note(void *ctx, const struct toml_item *item)
{
	struct found *f = ctx;
	bool ours = is_within(item->path, SERVER);

	if (item->kind == TOML_VALUE) {
		for (size_t i = 0; i < VALUES; i++)
			if (strcmp(item->path, paths[i]) == 0)
				f->at[i] = *item;
		if (is_within(item->path, SANDBOX) && item->path[strlen(SANDBOX)]) {
			f->sandbox_n++;
			f->at[SANDBOX_DOTTED] = *item;
		}
		f->env_n += is_within(item->path, ENV) && item->path[strlen(ENV)];
		if (f->in_server && ours && !item->nested)
			f->at[SERVER_LAST] = *item;
		return true;
	}
	if (ours && !f->in_server)
		f->at[SERVER_TABLE] = *item;
	if (ours)
		f->at[SERVER_LAST] = *item;
	f->in_server = ours;
	if (strcmp(item->path, ENV) == 0)
		f->at[ENV_TABLE] = *item;
	if (strcmp(item->path, SANDBOX) == 0)
		f->at[SANDBOX_TABLE] = *item;
	return true;
}

static enum mr_rc
find(struct mr_str text, struct found *ret, struct mr_error *err)
{
	*ret = (struct found){ 0 };
	return toml_each(text, note, ret, err);
}

/* ---- Pieces of the text ---- */

static struct mr_str
value_of(struct mr_str text, const struct found *f, enum what what)
{
	return (struct mr_str){ text.ptr + f->at[what].at, f->at[what].end - f->at[what].at };
}

static bool
is_string(struct mr_str text, const struct found *f, enum what what, const char *string)
{
	mr_auto(buf_done) struct buf had = BUF_INIT;

	return has(f, what) && toml_string(value_of(text, f, what), &had) && strcmp(buf_z(&had), string) == 0;
}

/* From one offset to another; both the same: nothing is lost. */
static enum mr_rc
replace(const struct edit *e, size_t at, size_t end, const struct buf *value)
{
	buf_replace(e->out, at, end, buf_str(value));
	e->out->failed |= value->failed;
	return MR_OK;
}

/* Where the line of our comment begins, if it stands above that line; else that line. */
static size_t
marked_from(struct mr_str text, size_t line)
{
	static const char *const marks[] = { MARK "\n", MARK "\r\n" };

	for (size_t i = 0; i < 2; i++)
		if (str_ends((struct mr_str){ text.ptr, line }, marks[i]))
			return line - strlen(marks[i]);
	return line;
}

/* ---- The server ---- */

static bool
is_ours(const struct edit *e, const struct found *f)
{
	mr_auto(buf_done) struct buf command = BUF_INIT;
	mr_auto(mr_names_done) struct mr_names args = { 0 };

	return has(f, COMMAND) && toml_string(value_of(e->text, f, COMMAND), &command) && buf_ok(&command) &&
	       command_is_program(e->s, buf_z(&command)) && has(f, ARGS) &&
	       toml_strings(value_of(e->text, f, ARGS), &args) && args.n > 0 && strcmp(args.v[0], "mcp") == 0;
}

enum mr_rc
codex_put_server(const struct edit *e)
{
	mr_auto(buf_done) struct buf block = BUF_INIT, command = BUF_INIT, args = BUF_INIT;
	mr_auto(mr_names_done) struct mr_names there = { 0 };
	const char *room = e->s->room;
	struct found f;

	TRY(find(e->text, &f, e->err));
	json_stringify(&command, str_of(e->s->command));
	buf_adds(&args, room ? "[\"mcp\", \"--room\", " : "[\"mcp\"");
	if (room)
		json_stringify(&args, str_of(room));
	buf_addc(&args, ']');
	if (is_ours(e, &f)) {
		bool same = toml_strings(value_of(e->text, &f, ARGS), &there) &&
			    (room ? there.n == 3 && strcmp(there.v[1], "--room") == 0 && strcmp(there.v[2], room) == 0
				  : there.n == 1);

		if (!same)
			return replace(e, f.at[ARGS].at, f.at[ARGS].end, &args);
		return is_string(e->text, &f, COMMAND, e->s->command)
			   ? MR_EMPTY
			   : replace(e, f.at[COMMAND].at, f.at[COMMAND].end, &command);
	}
	if (has(&f, COMMAND) || has(&f, ARGS) || has(&f, SERVER_VALUE) || has(&f, SERVER_TABLE))
		return mr_fail(e->err, MR_EXISTS, SETUP_OTHER_SERVER, SETUP_SERVER_NAME);
	if (has(&f, ALL_SERVERS))
		return mr_fail(e->err, MR_REFUSED,
		    "'" SERVERS "' is one value, to which no table can be added\n"
		    "write its servers as tables, [" SERVERS ".NAME]; then run this again");
	buf_addf(&block, MARK "\n[" SERVERS "." SETUP_SERVER_NAME "]\ncommand = %s\nargs = %s", buf_z(&command),
	    buf_z(&args));
	block.failed |= command.failed || args.failed;
	toml_add_block(e->out, e->f->there, &block);
	return MR_OK;
}

enum mr_rc
codex_take_server(const struct edit *e)
{
	struct found f;

	TRY(find(e->text, &f, e->err));
	if (is_ours(e, &f) && has(&f, SERVER_TABLE))
		toml_drop_block(e->out, marked_from(e->text, f.at[SERVER_TABLE].line), f.at[SERVER_LAST].end);
	else if (is_ours(e, &f) && has(&f, SERVER_VALUE) && !f.at[SERVER_VALUE].nested)
		toml_drop_line(e->out, &f.at[SERVER_VALUE]);
	return MR_OK;
}

/* ---- Its environment ---- */

/* One line with nothing but ours in it is written anew; beside the user's own each of ours is put in its place. What is
 * found there is ours only in the very form that we write. A project's file does not name the folders of one user:
 * cmd_setup.c says so. */
enum mr_rc
codex_put_env(const struct edit *e)
{
	mr_auto(buf_done) struct buf pairs = BUF_INIT, line = BUF_INIT;
	struct found f;

	TRY(find(e->text, &f, e->err));
	const struct toml_item *env = &f.at[ENV_VALUE];
	size_t ours = (size_t)has(&f, HOME) + has(&f, HOME + 1);

	for (size_t i = 0; i < HOMES; i++) {
		if (!e->s->homes[i])
			continue;
		buf_addf(&pairs, "%s%s = ", pairs.len > 0 ? ", " : "", setup_home_names[i]);
		json_stringify(&pairs, str_of(e->s->homes[i]));
	}
	TRY(mr_got(!pairs.failed, e->err));
	if (e->s->project)
		return MR_EMPTY;
	if (env->end > 0 && ours > 0 && f.env_n == ours && !env->nested) {
		buf_addf(&line, "{ %s }", buf_z(&pairs));
		if (pairs.len > 0)
			return replace(e, env->at, env->end, &line);
		toml_drop_line(e->out, env);
		return MR_OK;
	}
	if (env->end == 0 && !has(&f, ENV_TABLE) && pairs.len > 0 && !f.at[COMMAND].nested) {
		size_t command = f.at[COMMAND].end, args = f.at[ARGS].end;

		buf_addf(&line, "%senv = { %s }", has(&f, SERVER_TABLE) ? "" : SERVERS "." SETUP_SERVER_NAME ".",
		    buf_z(&pairs));
		toml_add_line(e->out, args > command ? args : command, &line);
		return MR_OK;
	}
	for (size_t i = 0; i < HOMES; i++) {
		mr_auto(buf_done) struct buf value = BUF_INIT;
		const struct toml_item *at = &f.at[HOME + i];

		if (!e->s->homes[i] || is_string(e->text, &f, HOME + i, e->s->homes[i]))
			continue;
		json_stringify(&value, str_of(e->s->homes[i]));
		if (at->end > 0)
			return replace(e, at->at, at->end, &value);
		buf_addf(&line, "%s = %s", setup_home_names[i], buf_z(&value));
		line.failed |= value.failed;
		if (env->end > 0) {
			mr_auto(buf_done) struct buf piece = BUF_INIT;

			buf_addf(&piece, " %s%s", buf_z(&line), f.env_n > 0 ? "," : " ");
			piece.failed |= line.failed;
			return replace(e, env->at + 1, env->at + 1, &piece);
		}
		if (has(&f, ENV_TABLE))
			toml_add_line(e->out, f.at[ENV_TABLE].end, &line);
		break; /* in a table of one line only its user knows what was meant */
	}
	return MR_OK;
}

/* ---- Writable roots ---- */

/* What the sandbox may write must not hold what says which rooms and commands are allowed. */
static enum mr_rc
check_root(const struct setup *s, const char *root, struct mr_error *err)
{
	size_t len = strlen(root);

	if (!s->config_dir || strncmp(s->config_dir, root, len) != 0 ||
	    (s->config_dir[len] != '/' && s->config_dir[len] != '\0'))
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "mailroom's configuration '%.120s' lies in '%.120s', which Codex's sandbox would write\n"
	    "give $XDG_STATE_HOME and $XDG_CONFIG_HOME two different folders",
	    s->config_dir, root);
}

enum mr_rc
codex_put_root(const struct edit *e)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	mr_auto(mr_names_done) struct mr_names all = { 0 };
	const char *const wanted[] = { e->s->state_dir, e->s->room_dir };
	const char *root = NULL;
	struct found f;

	if (e->s->project)
		return MR_EMPTY;
	TRY(find(e->text, &f, e->err));
	const struct toml_item *roots = &f.at[ROOTS];
	bool read = roots->end > 0 && toml_strings(value_of(e->text, &f, ROOTS), &all);

	for (size_t i = 0; i < 2; i++) {
		if (wanted[i])
			TRY(check_root(e->s, wanted[i], e->err));
		if (wanted[i] && !root && !(read && names_has(&all, wanted[i])))
			root = wanted[i];
	}
	if (!root)
		return MR_EMPTY;
	TRY(prior_add(e->f, root, e->err));
	if (roots->end > 0) {
		if (e->text.ptr[roots->at] != '[')
			return mr_fail(e->err, MR_CORRUPT, "'writable_roots' in it is not an array");
		toml_array_add(e->out, roots->at, roots->end, root);
		return MR_OK;
	}
	if (has(&f, SANDBOX_VALUE))
		return mr_fail(e->err, MR_REFUSED,
		    "'" SANDBOX "' is one value, to which nothing can be added\n"
		    "write it as a table, [" SANDBOX "]; then run this again");
	bool table = has(&f, SANDBOX_TABLE), dotted = !table && f.sandbox_n > 0;

	buf_adds(&line, dotted ? SANDBOX "." : table ? "" : MARK "\n[" SANDBOX "]\n");
	buf_adds(&line, "writable_roots = [ ");
	json_stringify(&line, str_of(root));
	buf_adds(&line, " ]");
	if (table || dotted)
		toml_add_line(e->out, f.at[table ? SANDBOX_TABLE : SANDBOX_DOTTED].end, &line);
	else
		toml_add_block(e->out, e->f->there, &line);
	return MR_OK;
}

/* The last one of ours; with it what would be left empty and is ours. Without a record of what --apply added, those in
 * a table that our comment marks are ours. */
enum mr_rc
codex_take_root(const struct edit *e)
{
	mr_auto(mr_names_done) struct mr_names all = { 0 };
	struct found f;
	size_t i = 0;

	TRY(find(e->text, &f, e->err));
	const struct toml_item *roots = &f.at[ROOTS], *table = &f.at[SANDBOX_TABLE];
	size_t from = marked_from(e->text, table->line);
	bool marked = table->end > 0 && from < table->line;

	if (roots->end > 0 && toml_strings(value_of(e->text, &f, ROOTS), &all))
		for (i = all.n; i > 0; i--)
			if (e->f->prior.known ? prior_added(e->f, all.v[i - 1]) : marked && !e->f->keep_all)
				break;
	if (i == 0)
		return MR_EMPTY;
	if (!toml_array_is_ours(e->text, roots->at, roots->end) || roots->nested)
		toml_array_drop(e->out, roots->at, roots->end, i - 1);
	else if (marked && f.sandbox_n == 1)
		toml_drop_block(e->out, from, roots->end);
	else
		toml_drop_line(e->out, roots);
	return MR_OK;
}

/* ---- What is in it ---- */

enum mr_rc
codex_read(const struct buf *text, struct codex_says *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf command = BUF_INIT;
	struct mr_str all = buf_str(text);
	struct found f;

	TRY(find(all, &f, err));
	if (has(&f, COMMAND) && toml_string(value_of(all, &f, COMMAND), &command) &&
	    (!names_add(&ret->argv, str_of(buf_z(&command))) ||
		(has(&f, ARGS) && !toml_strings(value_of(all, &f, ARGS), &ret->argv))))
		return mr_nomem(err);
	for (size_t i = 0; i < HOMES; i++)
		if (has(&f, HOME + i))
			(void)toml_string(value_of(all, &f, HOME + i), &ret->homes[i]);
	if (has(&f, ROOTS))
		(void)toml_strings(value_of(all, &f, ROOTS), &ret->roots);
	return MR_OK;
}

void
codex_says_done(struct codex_says *c)
{
	mr_names_done(&c->argv);
	mr_names_done(&c->roots);
	buf_done(&c->homes[0]);
	buf_done(&c->homes[1]);
}
