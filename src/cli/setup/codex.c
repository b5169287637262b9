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
find(const struct buf *text, struct found *ret, struct mr_error *err)
{
	*ret = (struct found){ 0 };
	return toml_each(buf_str(text), note, ret, err);
}

/* ---- Pieces of the text ---- */

static struct mr_str
value_of(const struct buf *text, const struct found *f, enum what what)
{
	return (struct mr_str){ text->ptr + f->at[what].at, f->at[what].end - f->at[what].at };
}

static bool
is_string(const struct buf *text, const struct found *f, enum what what, const char *string)
{
	mr_auto(buf_done) struct buf had = BUF_INIT;

	return has(f, what) && toml_string(value_of(text, f, what), &had) && strcmp(buf_z(&had), string) == 0;
}

/* From one offset to another; both the same: nothing is lost. */
static void
replace(struct buf *text, size_t at, size_t end, const struct buf *value)
{
	text->failed |= value->failed;
	buf_replace(text, at, end, buf_str(value));
}

/* Where the line of our comment begins, if it stands above that line; else that line. */
static size_t
marked_from(const struct buf *text, size_t line)
{
	static const char *const marks[] = { MARK "\n", MARK "\r\n" };

	for (size_t i = 0; i < 2; i++)
		if (str_ends((struct mr_str){ text->ptr, line }, marks[i]))
			return line - strlen(marks[i]);
	return line;
}

/* ---- The server ---- */

static bool
is_ours(const struct setup *s, const struct buf *text, const struct found *f)
{
	mr_auto(buf_done) struct buf command = BUF_INIT;
	mr_auto(mr_names_done) struct mr_names args = { 0 };

	return has(f, COMMAND) && toml_string(value_of(text, f, COMMAND), &command) && buf_ok(&command) &&
	       command_is_program(s, buf_z(&command)) && has(f, ARGS) && toml_strings(value_of(text, f, ARGS), &args) &&
	       args.n > 0 && strcmp(args.v[0], "mcp") == 0;
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

static enum mr_rc
put_server(const struct setup *s, const struct setup_file *file, struct buf *text, struct mr_error *err)
{
	mr_auto(buf_done) struct buf block = BUF_INIT;
	struct found f;

	TRY(find(text, &f, err));
	if (is_ours(s, text, &f)) {
		mr_auto(buf_done) struct buf command = BUF_INIT, value = BUF_INIT;
		mr_auto(mr_names_done) struct mr_names args = { 0 };
		bool same =
		    toml_strings(value_of(text, &f, ARGS), &args) &&
		    (s->room ? args.n == 3 && strcmp(args.v[1], "--room") == 0 && strcmp(args.v[2], s->room) == 0
			     : args.n == 1);

		add_args(s, &value);
		if (!same)
			replace(text, f.at[ARGS].at, f.at[ARGS].end, &value);
		TRY(find(text, &f, err));
		json_stringify(&command, str_of(s->command));
		if (!is_string(text, &f, COMMAND, s->command))
			replace(text, f.at[COMMAND].at, f.at[COMMAND].end, &command);
		return MR_OK;
	}
	if (has(&f, COMMAND) || has(&f, ARGS) || has(&f, SERVER_VALUE) || has(&f, SERVER_TABLE))
		return mr_fail(err, MR_EXISTS,
		    "it has another server called '%s'\ngive that one another name, or remove it; then run this again",
		    SETUP_SERVER_NAME);
	if (has(&f, ALL_SERVERS))
		return mr_fail(err, MR_REFUSED,
		    "'" SERVERS "' is one value, to which no table can be added\n"
		    "write its servers as tables, [" SERVERS ".NAME]; then run this again");
	buf_adds(&block, MARK "\n[" SERVERS "." SETUP_SERVER_NAME "]\ncommand = ");
	json_stringify(&block, str_of(s->command));
	buf_adds(&block, "\nargs = ");
	add_args(s, &block);
	toml_add_block(text, file->there, &block);
	return MR_OK;
}

/* ---- Its environment ---- */

/* What is found there is ours only in the very form that we write. */
static void
put_home(size_t i, const char *home, struct buf *text, const struct found *f)
{
	mr_auto(buf_done) struct buf value = BUF_INIT, pair = BUF_INIT;
	const struct toml_item *at = &f->at[HOME + i], *env = &f->at[ENV_VALUE];

	json_stringify(&value, str_of(home));
	buf_addf(&pair, "%s = %s", setup_home_names[i], buf_z(&value));
	pair.failed |= value.failed;
	if (at->end > 0) {
		if (!is_string(text, f, HOME + i, home))
			replace(text, at->at, at->end, &value);
	} else if (env->end > 0) {
		mr_auto(buf_done) struct buf piece = BUF_INIT;

		buf_addf(&piece, " %s%s", buf_z(&pair), f->env_n > 0 ? "," : " ");
		piece.failed |= pair.failed;
		replace(text, env->at + 1, env->at + 1, &piece);
	} else if (has(f, ENV_TABLE)) {
		toml_add_line(text, f->at[ENV_TABLE].end, &pair);
	} /* in a table of one line only its user knows what was meant */
}

/* One line with nothing but ours in it is written anew; beside the user's own each of ours is put in its place. */
static enum mr_rc
put_env(const struct setup *s, struct buf *text, struct mr_error *err)
{
	mr_auto(buf_done) struct buf pairs = BUF_INIT, line = BUF_INIT;
	struct found f;

	TRY(find(text, &f, err));
	const struct toml_item *env = &f.at[ENV_VALUE];
	size_t ours = (size_t)has(&f, HOME) + has(&f, HOME + 1);

	for (size_t i = 0; i < HOMES; i++) {
		if (!s->homes[i])
			continue;
		buf_addf(&pairs, "%s%s = ", pairs.len > 0 ? ", " : "", setup_home_names[i]);
		json_stringify(&pairs, str_of(s->homes[i]));
	}
	if (env->end > 0 && ours > 0 && f.env_n == ours && !env->nested) {
		buf_addf(&line, "{ %s }", buf_z(&pairs));
		line.failed |= pairs.failed;
		if (pairs.len > 0)
			replace(text, env->at, env->end, &line);
		else
			toml_drop_line(text, env);
		return MR_OK;
	}
	if (env->end == 0 && !has(&f, ENV_TABLE) && pairs.len > 0 && !f.at[COMMAND].nested) {
		size_t command = f.at[COMMAND].end, args = f.at[ARGS].end;

		buf_addf(&line, "%senv = { %s }", has(&f, SERVER_TABLE) ? "" : SERVERS "." SETUP_SERVER_NAME ".",
		    buf_z(&pairs));
		line.failed |= pairs.failed;
		toml_add_line(text, args > command ? args : command, &line);
		return MR_OK;
	}
	for (size_t i = 0; i < HOMES; i++) {
		if (s->homes[i])
			put_home(i, s->homes[i], text, &f);
		TRY(find(text, &f, err));
	}
	return MR_OK;
}

/* ---- Writable roots ---- */

static enum mr_rc
put_root(const struct setup_file *file, struct buf *text, const char *root, struct mr_error *err)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;
	mr_auto(mr_names_done) struct mr_names all = { 0 };
	struct found f;

	TRY(find(text, &f, err));
	const struct toml_item *roots = &f.at[ROOTS];

	if (roots->end > 0) {
		if (toml_strings(value_of(text, &f, ROOTS), &all) && names_has(&all, root))
			return MR_OK;
		if (text->ptr[roots->at] != '[')
			return mr_fail(err, MR_CORRUPT, "'writable_roots' in it is no array");
		toml_array_add(text, roots->at, roots->end, root);
		return MR_OK;
	}
	if (has(&f, SANDBOX_VALUE))
		return mr_fail(err, MR_REFUSED,
		    "'" SANDBOX "' is one value, to which nothing can be added\n"
		    "write it as a table, [" SANDBOX "]; then run this again");
	bool table = has(&f, SANDBOX_TABLE), dotted = !table && f.sandbox_n > 0;

	buf_adds(&line, dotted ? SANDBOX "." : table ? "" : MARK "\n[" SANDBOX "]\n");
	buf_adds(&line, "writable_roots = [ ");
	json_stringify(&line, str_of(root));
	buf_adds(&line, " ]");
	if (table || dotted)
		toml_add_line(text, f.at[table ? SANDBOX_TABLE : SANDBOX_DOTTED].end, &line);
	else
		toml_add_block(text, file->there, &line);
	return MR_OK;
}

/* The last one of ours; with it what would be left empty and is ours. Without a record of what --apply added, those in
 * a table that our comment marks are ours. MR_EMPTY: there is none. */
static enum mr_rc
take_root(const struct setup_file *file, struct buf *text, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names all = { 0 };
	struct found f;
	size_t i = 0;

	TRY(find(text, &f, err));
	const struct toml_item *roots = &f.at[ROOTS], *table = &f.at[SANDBOX_TABLE];
	size_t from = marked_from(text, table->line);
	bool marked = table->end > 0 && from < table->line;

	if (roots->end > 0 && toml_strings(value_of(text, &f, ROOTS), &all))
		for (i = all.n; i > 0; i--)
			if (file->prior.known ? prior_added(file, all.v[i - 1]) : marked && !file->keep_all)
				break;
	if (i == 0)
		return MR_EMPTY;
	if (!toml_array_is_ours(buf_str(text), roots->at, roots->end) || roots->nested) {
		toml_array_drop(text, roots->at, roots->end, i - 1);
	} else if (marked && f.sandbox_n == 1) {
		toml_drop_block(text, from, roots->end);
	} else {
		toml_drop_line(text, roots);
	}
	return MR_OK;
}

/* ---- All of it ---- */

enum mr_rc
codex_edit(
    const struct setup *s, const struct setup_file *file, enum setup_way way, struct buf *text, struct mr_error *err)
{
	const char *const roots[] = { s->state_dir, s->room_dir };
	struct found f;
	enum mr_rc rc = MR_OK;

	if (way == SETUP_OUT) {
		while (rc == MR_OK)
			rc = take_root(file, text, err);
		if (rc != MR_EMPTY)
			return rc;
		TRY(find(text, &f, err));
		if (is_ours(s, text, &f) && has(&f, SERVER_TABLE))
			toml_drop_block(text, marked_from(text, f.at[SERVER_TABLE].line), f.at[SERVER_LAST].end);
		else if (is_ours(s, text, &f) && has(&f, SERVER_VALUE) && !f.at[SERVER_VALUE].nested)
			toml_drop_line(text, &f.at[SERVER_VALUE]);
		return MR_OK;
	}
	TRY(put_server(s, file, text, err));
	if (s->project) /* a project's file does not name the folders of one user: cmd_setup.c says so */
		return MR_OK;
	TRY(put_env(s, text, err));
	/* What the sandbox may write must not hold what says which rooms and commands are allowed. */
	for (size_t i = 0; i < 2; i++) {
		size_t len = roots[i] ? strlen(roots[i]) : 0;

		if (roots[i] && s->config_dir && strncmp(s->config_dir, roots[i], len) == 0 &&
		    (s->config_dir[len] == '/' || s->config_dir[len] == '\0'))
			return mr_fail(err, MR_REFUSED,
			    "mailroom's configuration '%.120s' lies in '%.120s', which Codex's sandbox would write\n"
			    "give $XDG_STATE_HOME and $XDG_CONFIG_HOME two different folders",
			    s->config_dir, roots[i]);
	}
	for (size_t i = 0; i < 2; i++)
		if (roots[i])
			TRY(put_root(file, text, roots[i], err));
	return MR_OK;
}

enum mr_rc
codex_roots(const struct buf *text, struct mr_names *ret, struct mr_error *err)
{
	struct found f;

	TRY(find(text, &f, err));
	if (has(&f, ROOTS))
		(void)toml_strings(value_of(text, &f, ROOTS), ret);
	return MR_OK;
}

enum mr_rc
codex_read(const struct buf *text, struct codex_says *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf command = BUF_INIT;
	struct found f;

	TRY(find(text, &f, err));
	if (has(&f, COMMAND) && toml_string(value_of(text, &f, COMMAND), &command) &&
	    (!names_add(&ret->argv, str_of(buf_z(&command))) ||
		(has(&f, ARGS) && !toml_strings(value_of(text, &f, ARGS), &ret->argv))))
		return mr_nomem(err);
	for (size_t i = 0; i < HOMES; i++)
		if (has(&f, HOME + i))
			(void)toml_string(value_of(text, &f, HOME + i), &ret->homes[i]);
	return codex_roots(text, &ret->roots, err);
}

void
codex_says_done(struct codex_says *c)
{
	mr_names_done(&c->argv);
	mr_names_done(&c->roots);
	buf_done(&c->homes[0]);
	buf_done(&c->homes[1]);
}
