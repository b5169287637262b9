/* SPDX-License-Identifier: MIT */
/*
 * conformance.c - runs the suite for every driver of the registry: bare, under the trace, and its
 * fault cases under tests/support/room_fault. A new kind of room adds to world_make() how an empty one is made.
 */
#include "suite.h"
#include "base/clock.h"
#include "base/id.h"
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Fresh rooms ---- */

static void
make_maildir(struct world *w, char *ret_spec, size_t size)
{
	static const char *const folders[] = { "agents", "dead", "dead/tmp", "dead/new", "dead/cur", "spool", "keys",
		"holds", "records" };
	static const char settings[] = "Format: 1\nName: town\nSync: none\n";
	const char *tmp = getenv("TMPDIR");
	char path[256];

	(void)snprintf(w->folder, sizeof w->folder, "%s/mailroom-suite-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->folder));
	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", w->folder, folders[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	(void)snprintf(path, sizeof path, "%s/room", w->folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_int_equal(write(fd, settings, sizeof settings - 1), sizeof settings - 1);
	(void)close(fd);
	(void)snprintf(ret_spec, size, "%s", w->folder);
}

/* A kind whose room is a folder that begins empty; WHERE is a name in it. */
static void
make_folder(struct world *w, const char *kind, const char *where, char *ret_spec, size_t size)
{
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(w->folder, sizeof w->folder, "%s/mailroom-suite-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->folder));
	(void)snprintf(ret_spec, size, "%s:%s%s", kind, w->folder, where);
}

/* With a list of members: without one a team lets anybody be written to. */
static void
add_members(const struct world *w)
{
	static const char config[] = "{\n  \"name\": \"town\",\n  \"members\": []\n}";
	char path[256];

	(void)snprintf(path, sizeof path, "%s/town", w->folder);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof path, "%s/town/config.json", w->folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_int_equal(write(fd, config, sizeof config - 1), sizeof config - 1);
	(void)close(fd);
}

#define SCHEMAS_MAX 4
/* A server for the whole run, begun with the first room and ended at the end; a schema for each room. */
static struct {
	char folder[160];
	char spec[200]; /* "": none can be had */
	bool tried;
	unsigned schemas;
	bool used[SCHEMAS_MAX];
} server;

static void
run_server_script(const char *verb, char *ret, size_t size)
{
	char command[600];

	(void)snprintf(command, sizeof command, "sh '" TEST_DATA "/../support/pg.sh' %s '%s' %d", verb, server.folder,
	    (int)getpid());
	FILE *said = popen(command, "r");

	assert_non_null(said);
	if (!fgets(ret, (int)size, said))
		ret[0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	(void)pclose(said);
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void
end_server(void)
{
	char said[8];

	if (server.folder[0] == '\0')
		return;
	run_server_script("stop", said, sizeof said);
	(void)nftw(server.folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static bool
has_server(void)
{
	const char *tmp = getenv("TMPDIR");

	if (server.tried)
		return server.spec[0] != '\0';
	server.tried = true;
	(void)snprintf(
	    server.folder, sizeof server.folder, "%s/mailroom-pg-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
	assert_non_null(mkdtemp(server.folder));
	(void)atexit(end_server);
	run_server_script("start", server.spec, sizeof server.spec);
	return server.spec[0] != '\0';
}

/* Making a schema takes longer than a case. So one that is free again is emptied and used by the next. */
static void
empty_schema(unsigned n)
{
	char command[700];

	(void)snprintf(command, sizeof command,
	    "psql -qX -h '%s' -U mailroom -d postgres -c \"DO \\$\\$ DECLARE t text; BEGIN FOR t IN SELECT tablename FROM pg_tables"
	    " WHERE schemaname = 'suite_%u' AND tablename NOT IN ('room', 'migration', 'epoch') LOOP"
	    " EXECUTE 'DELETE FROM suite_%u.' || t; END LOOP; END \\$\\$\"",
	    server.folder, n, n);
	assert_int_equal(system(command), 0);
}

static void
make_schema(struct world *w)
{
	struct mr_room *room = NULL;
	unsigned n = 0;

	while (n < SCHEMAS_MAX && server.used[n])
		n++;
	assert_true(n < SCHEMAS_MAX);
	server.used[n] = true;
	w->schema = n + 1;
	(void)snprintf(w->spec, sizeof w->spec, "%s#suite_%u", server.spec, n);
	if (n < server.schemas) {
		empty_schema(n);
		return;
	}
	server.schemas = n + 1;
	EXPECT(
	    MR_OK, room_open_spec(w->spec,
		       &(struct mr_room_options){ .init = &(struct mr_init_options){ .name = "town" } }, &room, &err));
	mr_room_close(room);
}

static void
world_make(struct world *w, const struct room_driver *driver, char *ret_spec, size_t size)
{
	static const struct {
		const char *kind, *where;
	} folders[] = { { "teams", "/town" }, { "chipset", "/state" }, { "handoff", "" }, { "workspace", "" } };

	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
		if (strcmp(driver->kind, folders[i].kind) == 0) {
			make_folder(w, driver->kind, folders[i].where, ret_spec, size);
			if (strcmp(driver->kind, "teams") == 0)
				add_members(w);
			return;
		}
	if (strcmp(driver->kind, "maildir") == 0)
		make_maildir(w, ret_spec, size);
	else if (strcmp(driver->kind, "mem") == 0)
		(void)snprintf(ret_spec, size, "mem:town");
	else if (strcmp(driver->kind, "postgres") == 0)
		make_schema(w);
	else
		fail_msg("world_make does not know how to make a room of kind '%s'", driver->kind);
}

static void
count_line(void *ctx, const char *line)
{
	struct world *w = ctx;

	assert_null(strchr(line, '\n'));
	if (strstr(line, "round trip")) /* what a driver says of itself */
		return;
	assert_non_null(strstr(line, "us"));
	w->traced++;
}

struct world *
world_new(const struct room_driver *driver, enum suite_mode mode)
{
	struct world *w = calloc(1, sizeof *w);
	char spec[256];

	assert_non_null(w);
	world_make(w, driver, spec, sizeof spec);
	if (w->folder[0] != '\0')
		(void)snprintf(w->spec, sizeof w->spec, "%s", spec);
	else if (w->spec[0] != '\0')
		(void)snprintf(spec, sizeof spec, "%s", w->spec);
	EXPECT(MR_OK, room_open_spec(spec, NULL, &w->room, &err));
	if (w->room->driver->abilities & ROOM_QUEUES) /* a kind of our own: it has a name of its own */
		assert_string_equal(mr_room_name(w->room), "town");
	assert_string_equal(mr_room_kind(w->room), driver->kind);
	w->room->trace = count_line;
	w->room->trace_ctx = w;
	if (mode == SUITE_TRACE)
		room_wrap_trace(w->room);
	if (mode == SUITE_FAULT)
		room_wrap_fault(w->room, &w->plan);
	w->ops = w->room->driver;
	return w;
}

void
world_free(struct world *w)
{
	mr_room_close(w->room);
	if (w->schema > 0)
		server.used[w->schema - 1] = false;
	if (w->folder[0] != '\0')
		(void)nftw(w->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(w);
}

/* ---- Short words ---- */

void
check_rc(enum mr_rc got, enum mr_rc want, const struct mr_error *err, const char *call, const char *file, int line)
{
	if (got == want)
		return;
	print_error("%s is %s, not %s: %s\n", call, mr_rc_word(got), mr_rc_word(want), err->message);
	_fail(file, line);
}

void
add_agent(struct world *w, const char *name)
{
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "tester", .wake = "" };

	(void)snprintf(agent.name, sizeof agent.name, "%s", name);
	EXPECT(MR_OK, w->ops->add_agent(w->room, &agent, &err));
}

size_t
take_life(struct world *w, const char *name, unsigned life)
{
	struct mr_agent agent = {
		.life = life, .worktree = "/tree", .session = "test-1", .host = "here", .role = "", .wake = ""
	};
	size_t returned = 99;

	(void)snprintf(agent.name, sizeof agent.name, "%s", name);
	EXPECT(MR_OK, w->ops->take_life(w->room, &agent, &returned, &err));
	return returned;
}

enum mr_rc
try_send(struct world *w, const struct letter *letter, struct delivered *ret, struct mr_error *err)
{
	struct mr_message msg = { .from = letter->from ? letter->from : "alice",
		.subject = "hello",
		.date_ms = clock_now_ms(),
		.type = "note",
		.priority = (enum mr_priority)(MR_HIGH + letter->priority),
		.reply_to = "",
		.replace_key = "",
		.sender_life = 1,
		.path = "",
		.body = letter->body.ptr ? letter->body.ptr : "hi\n",
		.body_len = letter->body.ptr ? letter->body.len : 3 };
	mr_auto(mr_names_done) struct mr_names to = { 0 };
	struct delivered done = { 0 };

	for (size_t i = 0; i < 4 && letter->to[i]; i++)
		assert_true(names_add(&to, str_of(letter->to[i])));
	id_new(msg.id);
	msg.thread = msg.id;
	msg.to = to;
	struct delivery what = { .msg = &msg,
		.to = &to,
		.sender = msg.from,
		.key = letter->key,
		.make_mailboxes = letter->make_mailboxes,
		.look = letter->look };
	enum mr_rc rc = w->ops->deliver(w->room, &what, &done, err);

	if (rc == MR_OK && !done.repeated)
		assert_true(id_valid(str_of(done.id))); /* the id that is stored: what a test fetches is found by it */
	mr_names_done(&done.missing);
	if (ret)
		*ret = (struct delivered){ .repeated = done.repeated };
	if (ret)
		memcpy(ret->id, done.id, sizeof ret->id);
	return rc;
}

void
send_to(struct world *w, const char *to, const char *body, char ret_id[MR_ID_LEN + 1])
{
	struct letter letter = { .to = { to }, .body = str_of(body) };
	struct delivered done = { 0 };

	EXPECT(MR_OK, try_send(w, &letter, &done, &err));
	memcpy(ret_id, done.id, sizeof done.id);
}

static bool
count_one(void *ctx, const struct mr_message *msg)
{
	(void)msg;
	++*(size_t *)ctx;
	return true;
}

static size_t
count(struct world *w, const char *agent, const struct scan_request *want)
{
	size_t n = 0;

	EXPECT(MR_OK, w->ops->scan(w->room, agent, want, count_one, &n, &err));
	return n;
}

size_t
count_in(struct world *w, const char *agent, unsigned folders)
{
	return count(w, agent, &(struct scan_request){ .folders = folders, .depth = SCAN_HEADERS });
}

size_t
count_unread(struct world *w, const char *agent)
{
	return count(w, agent, &(struct scan_request){ .folders = MR_INBOX, .unread_only = true });
}

struct mr_message
fetch_ok(struct world *w, const char *agent, const char *id, unsigned folders)
{
	struct mr_message msg = { 0 };

	EXPECT(MR_OK, w->ops->fetch(w->room, agent, id, folders, SCAN_BODIES, &msg, &err));
	assert_string_equal(msg.id, id);
	return msg;
}

unsigned
flags_of(struct world *w, const char *agent, const char *id, unsigned folders)
{
	struct mr_message msg = fetch_ok(w, agent, id, folders);
	unsigned flags = msg.flags;

	mr_message_done(&msg);
	return flags;
}

struct claim
hold_ok(struct world *w, const char *agent, const char *id, unsigned life, int64_t lease_ms)
{
	struct claim_terms terms = { .kind = CLAIM_LEASE, .life = life, .lease_ms = lease_ms, .session = "" };
	struct claim hold = { 0 };

	EXPECT(MR_OK, w->ops->claim(w->room, agent, id, &terms, &hold, &err));
	return hold;
}

/* ---- Running ---- */

static const struct room_driver *tested;
static enum suite_mode tested_mode;

static int
set_up(void **state)
{
	*state = world_new(tested, tested_mode);
	return 0;
}

static int
tear_down(void **state)
{
	struct world *w = *state;

	if (tested_mode == SUITE_TRACE && w->traced == 0)
		return -1; /* a wrapper that is not there would pass everything */
	world_free(w);
	return 0;
}

static int
run(const struct room_driver *driver, enum suite_mode mode)
{
	static const struct suite_case *const normal[] = { agent_cases, mail_cases, hold_cases, record_cases,
		queue_cases, channel_cases, keep_cases, ticket_cases, evidence_cases, NULL };
	static const struct suite_case *const faults[] = { fault_cases, NULL };
	static const char *const words[] = { "bare", "trace", "fault" };
	struct CMUnitTest tests[128];
	size_t n = 0;
	char name[64];

	for (const struct suite_case *const *list = mode == SUITE_FAULT ? faults : normal; *list; list++)
		for (const struct suite_case *c = *list; c->name; c++)
			if ((driver->abilities & c->needs) == c->needs)
				tests[n++] = (struct CMUnitTest){ .name = c->name,
					.test_func = c->test,
					.setup_func = set_up,
					.teardown_func = tear_down };
	tested = driver;
	tested_mode = mode;
	(void)snprintf(name, sizeof name, "%s, %s", driver->kind, words[mode]);
	print_message("room: %s\n", name); /* the output is shared by all runs */
	return _cmocka_run_group_tests(name, tests, n, NULL, NULL);
}

/* Without arguments every kind; with one, that kind. */
int
main(int argc, char **argv)
{
	int failed = 0;

	for (const struct room_driver *const *d = room_drivers(); *d; d++) {
		if ((argc > 1 && strcmp(argv[1], (*d)->kind) != 0) || !(*d)->add_agent) /* only read */
			continue;
		if (strcmp((*d)->kind, "postgres") == 0 && !has_server()) {
			print_message(
			    "1..1\nok 1 - postgres # SKIP no PostgreSQL server is installed (Debian: postgresql)\n");
			continue;
		}
		failed += run(*d, SUITE_BARE);
		failed += run(*d, SUITE_TRACE);
		failed += run(*d, SUITE_FAULT);
	}
	if (argc == 1)
		failed += _cmocka_run_group_tests("specs", spec_tests, spec_tests_n, NULL, NULL);
	return failed != 0;
}
