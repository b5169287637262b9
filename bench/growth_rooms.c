/* SPDX-License-Identifier: MIT */
/* growth_rooms.c - years of mail in a moment: message files as mailroom writes them, without its syncs. */
#include "growth.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)
#define NOW_MS ((int64_t)time(NULL) * 1000)
#define SHOWN 10
#define THREAD 5
#define AT_ONCE 1000 /* messages that a drain takes, shows and settles before it syncs */
#define BOX "%s/.mailroom/agents/%s/"

/* ---- Message files ---- */

struct lot {                /* of messages, spread evenly over a time that ends an hour ago */
	const char *folder; /* below the mailbox; %s is the month */
	const char *flags, *from, *to;
	long n;
	int64_t span_ms, ended_ms; /* how long it is, how long ago it ended */
};

static void
name_month(char ret[8], int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	(void)strftime(ret, 8, "%Y-%m", gmtime_r(&seconds, &tm));
}

static void
write_text(struct town *t, const struct lot *lot, int fd, long i, int64_t ms, const char id[MR_ID_LEN + 1])
{
	static const char *const words[] = { "build", "branch", "review", "deploy", "cache", "socket", "merge", "green",
		"queue", "token", "parser", "agent", "release", "folder", "window", "lease" };
	static char text[2048], root[MR_ID_LEN + 1], links[200];
	long part = lot->n / THREAD > 0 ? lot->n / THREAD : 1, tenth = lot->n / SHOWN > 0 ? lot->n / SHOWN : 1;
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	char date[40];
	unsigned dice = (unsigned)i * 2654435761u;

	(void)strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S +0000", gmtime_r(&seconds, &tm));
	links[0] = '\0';
	if (t->kind == ARCHIVED && (i + 1) % part == 0) {
		if (i + 1 == part)
			memcpy(root, id, sizeof(root));
		else
			(void)snprintf(
			    links, sizeof(links), "In-Reply-To: <%s@bench>\nReferences: <%s@bench>\n", root, root);
	}
	int len = snprintf(text, sizeof(text),
	    "From: %s@bench\nTo: %s@bench\nSubject: letter %ld\nDate: %s\nMessage-ID: <%s@bench>\n%sMailroom-Life: 1\n"
	    "MIME-Version: 1.0\nContent-Type: text/markdown; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n%s",
	    lot->from, lot->to, i, date, id, links, (i + 1) % tenth == 0 ? "needle\n" : "");

	for (int k = 0; k < 40; k++, dice = dice * 1664525u + 1013904223u)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%u%c", words[dice >> 28], dice >> 20 & 255,
		    k % 10 == 9 ? '\n' : ' ');
	if (write(fd, text, (size_t)len) != len)
		die("cannot write a message");
}

static int
open_maildir(const char *path)
{
	static const char *const parts[] = { "", "/tmp", "/new", "/cur", NULL };
	char *base = path_of("%.*s", (int)(strrchr(path, '/') - path), path);

	for (size_t i = 0; parts[i]; i++) {
		char *part = path_of("%s%s", base, parts[i]);

		make_folder(part);
		free(part);
	}
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		die("cannot open '%s'", path);
	free(base);
	return fd;
}

static void
add_lot(struct town *t, const struct lot *lot)
{
	char name[LETTER_NAME_MAX], month[8] = "", last[8] = "-";
	int64_t first = NOW_MS - lot->ended_ms - lot->span_ms;
	int folder = -1, got = -1; /* where the recipient of what was sent has it */

	for (long i = 0; i < lot->n; i++) {
		int64_t ms = first + lot->span_ms * (i + 1) / lot->n;

		name_month(month, ms);
		if (folder < 0 || (strchr(lot->folder, '%') && strcmp(month, last) != 0)) {
			char *below = path_of(lot->folder, month), *path = path_of(BOX "%s", t->folder, "bob", below);

			(void)close(folder), (void)close(got);
			folder = open_maildir(path);
			if (t->kind == SENT) {
				free(path);
				path = path_of(BOX ".Archive.%s/cur", t->folder, lot->to, month);
				got = open_maildir(path);
			}
			memcpy(last, month, sizeof(last));
			free(path);
			free(t->last);
			t->last = below;
		}
		letter_name(name, ms, lot->flags);
		(void)snprintf(t->id, sizeof(t->id), "%.*s", MR_ID_LEN, strchr(name, '.') + 1);
		int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);

		if (fd < 0)
			die("cannot make '%s'", name);
		write_text(t, lot, fd, i, ms, t->id);
		if (t->kind == SENT && linkat(folder, name, got, name, 0) < 0)
			die("cannot link '%s'", name);
		(void)close(fd);
	}
	(void)close(folder), (void)close(got);
}

/* The archive holds what one drain puts there, as the bare side's does: many drains would make it a large folder. */
static void
empty_archive(const struct town *t)
{
	char *path = path_of(BOX, t->folder, "bob");
	DIR *months = opendir(path);

	for (struct dirent *month; months && (month = readdir(months)) != NULL;) {
		char *below = path_of("%s/%s/cur", path, month->d_name);
		DIR *cur = strncmp(month->d_name, ".Archive.", 9) == 0 ? opendir(below) : NULL;

		for (struct dirent *e; cur && (e = readdir(cur)) != NULL;)
			(void)unlinkat(dirfd(cur), e->d_name, 0);
		if (cur)
			(void)closedir(cur);
		free(below);
	}
	if (!months || closedir(months) < 0)
		die("cannot read '%s'", path);
	free(path);
}

void
refill(struct bench *b, struct town *t)
{
	(void)b;
	empty_archive(t);
	add_lot(t, &(struct lot){ "new", "", "alice", "bob", t->n, 30 * DAY_MS, HOUR_MS });
}

void
new_copy(struct bench *b, struct town *t)
{
	char *line = path_of(
	    "rm -rf %s/../copy && mkdir %s/../copy && %s init %s/../copy", t->folder, t->folder, b->command, t->folder);

	if (run_program(b, (const char *const[]){ "sh", "-c", line, NULL }, NULL) != 0)
		die("'%s' failed", line);
	free(line);
}

/* ---- Rooms ---- */

static void
write_beside(const struct town *t, const char *name, const char *text)
{
	char *path = path_of("%s/../%s", t->folder, name);
	FILE *file = fopen(path, "w");

	if (!file || fputs(text, file) < 0 || fclose(file) != 0)
		die("cannot write '%s'", path);
	free(path);
}

/* The command, in the room. */
static void
tell(struct bench *b, struct town *t, const char *const *words)
{
	const char *argv[16] = { b->command };

	b->input = t->kind == AGENTS ? "../names" : NULL;
	for (size_t i = 0; words[i]; i++)
		argv[1 + i] = words[i];
	if (chdir(t->folder) < 0 || run_program(b, argv, NULL) != 0 || chdir(b->work) < 0)
		die("'%s' failed", words[0]);
	b->input = NULL;
}
#define TELL(b, t, ...) tell(b, t, (const char *const[]){ __VA_ARGS__, NULL })

void
empty_group(struct bench *b, struct town *t)
{
	TELL(b, t, "--as", "rig000/a00000", "group", "remove", "fleet", "-");
}

static void
make_team(struct town *t)
{
	char *teams = path_of("%s/teams", t->folder), *crew = path_of("%s/crew", teams),
	     *inboxes = path_of("%s/inboxes", crew), *path = path_of("%s/bob.json", inboxes);

	make_folder(teams);
	make_folder(crew);
	make_folder(inboxes);
	FILE *file = fopen(path, "w");

	for (long i = 0; file && i < t->n; i++)
		(void)fprintf(file,
		    "%s  {\n    \"from\": \"alice\",\n    \"text\": \"letter %ld: the branch is green, the review waits\",\n"
		    "    \"timestamp\": \"2026-10-%02ldT%02ld:%02ld:%02ld.%03ldZ\",\n    \"read\": false\n  }",
		    i ? ",\n" : "[\n", i, 1 + i / 86400 % 28, i / 3600 % 24, i / 60 % 60, i % 60, i % 1000);
	if (!file || fputs("\n]", file) < 0 || fclose(file) != 0)
		die("cannot write '%s'", path);
	/* Nobody has written it lately. */
	const struct timespec old = { .tv_sec = NOW_MS / 1000 - 60 };
	if (utimensat(AT_FDCWD, path, (const struct timespec[]){ old, old }, 0) < 0)
		die("cannot change '%s'", path);
	free(teams), free(crew), free(inboxes), free(path);
}

static void
fill(struct bench *b, struct town *t)
{
	const struct lot unread = { "new", "", "alice", "bob", t->n, 30 * DAY_MS, HOUR_MS };
	const struct lot few = { "new", "", "alice", "bob", SHOWN, HOUR_MS, HOUR_MS };
	const struct lot archived = { ".Archive.%s/cur", ":2,S", "alice", "bob", t->n, 360 * DAY_MS, 2 * DAY_MS };
	const struct lot sent = { ".Sent.%s/cur", ":2,S", "bob", "alice", t->n, 360 * DAY_MS, 2 * DAY_MS };
	char *text = NULL;
	size_t len = 0;
	FILE *names;

	switch (t->kind) {
	case UNREAD:
		add_lot(t, &unread);
		break;
	case READ:
		add_lot(t, &unread);
		TELL(b, t, "--as", "bob", "mark", "read", "--all");
		add_lot(t, &few);
		break;
	case ARCHIVED:
		add_lot(t, &few);
		add_lot(t, &archived);
		text = path_of("%s/help/index.txt", b->top);
		if (access(text, F_OK) == 0) /* this command has an index */
			TELL(b, t, "index");
		free(text);
		break;
	case SENT:
		add_lot(t, &sent);
		break;
	case AGENTS:
		names = open_memstream(&text, &len);
		for (long i = 0; i < t->n; i++) {
			char *name = path_of("rig%03ld/a%05ld", i / 10, i),
			     *path = path_of("%s/../bare/%ld", t->folder, i);
			struct bare_box box;

			register_agent(b, name);
			(void)fprintf(names, "%s\n", name);
			bare_box_open(&box, path);
			(void)close(box.new_fd), (void)close(box.sent_fd);
			free(name), free(path);
		}
		(void)fclose(names);
		write_beside(t, "names", text);
		free(text);
		TELL(b, t, "--as", "rig000/a00000", "group", "create", "fleet");
		break;
	case TEAM:
		make_team(t);
		break;
	case DRAINED:
	case KINDS:
		break;
	}
}

/* Filled without syncs, used with them. */
static void
begin_syncs(const struct town *t)
{
	char text[512], *path = path_of("%s/.mailroom/room", t->folder);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	text[n > 0 ? n : 0] = '\0';
	char *at = strstr(text, "Sync: none");

	if (!at || pwrite(fd, "Sync: full", 10, at - text) != 10)
		die("cannot change '%s'", path);
	(void)close(fd);
	free(path);
}

static struct town *
make_town(struct bench *b, enum kind kind, long n)
{
	static const char *const names[KINDS] = { "unread", "drained", "read", "archived", "sent", "agents", "team" };
	struct town *t = calloc(1, sizeof(*t));
	char *config = path_of("%s/.config/mailroom", b->work), *beside = path_of("%s/%s-%ld", b->work, names[kind], n),
	     *bare = path_of("%s/bare", beside), *path = NULL;
	struct mr_init_options options = { .name = "bench", .sync = "none", .config_dir = config };
	struct mr_error err = { 0 };

	*t = (struct town){ .kind = kind, .n = n, .folder = path_of("%s/home", beside) };
	make_folder(beside);
	make_folder(bare);
	make_folder(t->folder);
	check(mr_room_init(t->folder, t->folder, &options, &path, &err), &err, "init");
	check(mr_room_open(path, NULL, &b->room, &err), &err, "open");
	register_agent(b, "alice");
	write_beside(t, "names", "");
	b->variable = "CLAUDE_CODE_SESSION_ID=growth";
	TELL(b, t, "register", "bob");
	b->variable = NULL;
	write_beside(
	    t, "prompt", "{\"session_id\":\"growth\",\"hook_event_name\":\"UserPromptSubmit\",\"prompt\":\"go on\"}\n");
	fill(b, t);
	mr_room_close(b->room);
	b->room = NULL;
	begin_syncs(t);
	sync();
	(void)nanosleep(
	    &(struct timespec){ .tv_nsec = 100000000 }, NULL); /* folders that just changed are read twice */
	free(config), free(beside), free(bare), free(path);
	return t;
}

struct town *
town_of(struct bench *b, enum kind kind, long n)
{
	static struct town *made;

	for (struct town *t = made; t; t = t->next)
		if (t->kind == kind && t->n == n)
			return t;
	double began = now_us();
	struct town *t = make_town(b, kind, n);

	if (now_us() - began > 1e6)
		(void)printf("(a room of %ld took %.0f s)\n", n, (now_us() - began) / 1e6);
	t->next = made;
	made = t;
	return t;
}

/* ---- What peers make of the same mail ---- */

void
town_index(struct bench *b, struct town *t, const char *peer)
{
	char *made = path_of("%s/../%s.made", t->folder, peer), *text = NULL;
	const char *line = NULL;

	if (access(made, F_OK) == 0) {
		free(made);
		return;
	}
	if (strcmp(peer, "notmuch") == 0) {
		text = path_of(
		    "[database]\npath=%s/../notmuch\nmail_root=%s/.mailroom/agents/bob\n[user]\nname=b\nprimary_email=bob@bench\n"
		    "[new]\ntags=\nignore=\n[maildir]\nsynchronize_flags=false\n",
		    t->folder, t->folder);
		write_beside(t, "notmuch-config", text);
		line = "mkdir -p ../notmuch && notmuch new --quiet 2>/dev/null";
	} else if (strcmp(peer, "sqlite3") == 0) {
		text = path_of(
		    "PRAGMA journal_mode=wal; CREATE TABLE mail(id INTEGER PRIMARY KEY, thread TEXT, subject TEXT, seen INTEGER, body TEXT);"
		    "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %ld) INSERT INTO mail SELECT i, CASE WHEN i %% %ld = 0 THEN "
		    "'%s' ELSE 't' || i END, 'letter ' || i, %d, CASE WHEN i %% %ld = 0 THEN 'needle ' ELSE '' END || hex(randomblob(120)) FROM c;"
		    "CREATE INDEX unread ON mail(id) WHERE seen = 0; CREATE INDEX threads ON mail(thread);"
		    "CREATE VIRTUAL TABLE words USING fts5(subject, body, content='mail', content_rowid='id'); INSERT INTO words(words) VALUES('rebuild');",
		    t->n, t->n < THREAD ? 1 : t->n / THREAD, t->id, t->kind == ARCHIVED,
		    t->n < SHOWN ? 1 : t->n / SHOWN);
		write_beside(t, "sql", text);
		line = "sqlite3 ../mail.db <../sql";
	}
	b->variable = "NOTMUCH_CONFIG=../notmuch-config";
	if (line &&
	    (chdir(t->folder) < 0 || run_program(b, (const char *const[]){ "sh", "-c", line, NULL }, NULL) != 0))
		die("'%s' failed", line);
	b->variable = NULL;
	if (chdir(b->work) < 0)
		die("cannot go back");
	char *name = path_of("%s.made", peer);

	write_beside(t, name, "");
	free(name), free(text), free(made);
}

/* ---- The bare side ---- */

static double
start_empty(struct bench *b)
{
	return run_timed(b, (const char *const[]){ b->empty, NULL });
}

static void
read_file(int folder, const char *name)
{
	static char text[65536];
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text)) <= 0)
		die("cannot read '%s'", name);
	(void)close(fd);
}

static int
open_in(const struct town *t, const char *what)
{
	char *path = path_of("%s/%s", t->folder, what);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		die("cannot open '%s'", path);
	free(path);
	return fd;
}

double
bare_names(struct bench *b, struct town *t)
{
	double took = start_empty(b), began = now_us();
	const char *const folders[] = { "new", "cur", t->last };

	for (size_t i = 0; i < 3 && folders[i]; i++) {
		char *path = path_of(".mailroom/agents/bob/%s", folders[i]);
		int fd = open_in(t, path);
		DIR *dir = fdopendir(fd);
		unsigned shown = 0;

		for (struct dirent *e; dir && (e = readdir(dir)) != NULL;)
			if (e->d_name[0] != '.' && shown++ < SHOWN)
				read_file(fd, e->d_name);
		(void)closedir(dir);
		free(path);
	}
	return took + now_us() - began;
}

double
bare_moves(struct bench *b, struct town *t)
{
	static const char *const names[] = { "new", "held", "archive" };
	char(*letters)[LETTER_NAME_MAX] = malloc((size_t)t->n * sizeof(*letters)),
	*path = path_of("%s/../bare", t->folder);
	int fd[3], at;

	if (!letters)
		die("out of memory");

	for (size_t i = 0; i < 3; i++) {
		char *folder = path_of("%s/%s", path, names[i]);

		make_folder(folder);
		fd[i] = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		free(folder);
	}
	for (long i = 0; i < t->n; i++) {
		letter_name(letters[i], NOW_MS, "");
		at = openat(fd[0], letters[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (at < 0 || write(at, b->body, sizeof(b->body) / 2) < 0 || close(at) < 0)
			die("cannot write '%s'", letters[i]);
	}
	sync();
	double took = start_empty(b), began = now_us();

	for (long first = 0; first < t->n; first += AT_ONCE) {
		long end = first + AT_ONCE < t->n ? first + AT_ONCE : t->n;

		for (long i = first; i < end; i++) {
			if (renameat(fd[0], letters[i], fd[1], letters[i]) < 0)
				die("rename");
			read_file(fd[1], letters[i]);
		}
		for (long i = first; i < end; i++)
			if (renameat(fd[1], letters[i], fd[2], letters[i]) < 0)
				die("rename");
		for (int k = 2; k >= 0; k--)
			(void)fsync(fd[k]);
	}
	took += now_us() - began;
	for (long i = 0; i < t->n; i++)
		(void)unlinkat(fd[2], letters[i], 0);
	for (size_t i = 0; i < 3; i++)
		(void)close(fd[i]);
	free(path), free(letters);
	return took;
}

double
bare_links(struct bench *b, struct town *t)
{
	int fd = open_in(t, "../bare");
	double took = start_empty(b) + bare_fan_out(fd, (size_t)t->n);

	(void)close(fd);
	return took;
}

double
bare_json(struct bench *b, struct town *t)
{
	char *path = path_of("%s/teams/crew/inboxes/bob.json", t->folder);
	double took = start_empty(b), began = now_us();
	int fd = open(path, O_RDONLY | O_CLOEXEC), depth = 0;
	struct stat st;
	long entries = 0;
	bool quoted = false;

	if (fd < 0 || fstat(fd, &st) < 0)
		die("cannot open '%s'", path);
	char *text = malloc((size_t)st.st_size);

	if (!text || read(fd, text, (size_t)st.st_size) != st.st_size)
		die("cannot read '%s'", path);
	for (off_t i = 0; i < st.st_size; i++) {
		if (text[i] == '"')
			quoted = !quoted;
		else if (quoted)
			i += text[i] == '\\';
		else if (text[i] == '{')
			depth++;
		else if (text[i] == '}')
			entries += --depth == 0;
	}
	(void)close(fd);
	took += now_us() - began;
	if (entries != t->n)
		die("%ld entries in '%s'", entries, path);
	free(text);
	free(path);
	return took;
}
