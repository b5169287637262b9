/* SPDX-License-Identifier: MIT */
/*
 * registry.c - Claude Code's list of the sessions of this machine. A process with the number PID has there
 *
 *	sessions/PID.json              who it is, and the path of its socket
 *	sessions/PID.<hash>.key        a token for that socket; hash: SHA-256 of its path
 *
 * Another session lists it while the process runs and the socket accepts. One process has one entry, so there is one
 * process for each agent. Ours is marked by its kind; its socket is in mailroom's state folder. The entry is made
 * before the key and the socket and removed after them, so after a kill it leads to what is left; the next of our
 * processes removes that.
 */
#include "cli/peer/peer.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "base/process.h"
#include "base/sys.h"
#include "base/text.h"
#include "cli/hook/hook.h"
#include "cli/view.h"
#include "message/json_read.h"
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#define KIND "mailroom"
#define SOCKETS "peers" /* in the state folder */
#define ENTRY_MAX ((size_t)64 << 10)

enum mr_rc
registry_open(int *ret_fd, struct mr_error *err)
{
	const char *config = env_get("CLAUDE_CONFIG_DIR"), *home = env_get("HOME");
	mr_auto(buf_done) struct buf path = BUF_INIT;

	buf_addf(&path, "%s%s/sessions", config ? config : home ? home : "", config ? "" : "/.claude");
	TRY(mr_got(buf_ok(&path), err));
	if (dir_open(AT_FDCWD, buf_z(&path), ret_fd, err) == MR_OK)
		return MR_OK;
	return mr_hint(err, "Claude Code makes that folder (2.1.224 and later) when it is started");
}

static void
copy_text(struct json_value entry, const char *key, char *ret, size_t size)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	ret[0] = '\0';
	if (json_find_text(entry, key, &text) && buf_ok(&text) && text.len < size && utf8_text(buf_str(&text)))
		memcpy(ret, buf_z(&text), text.len + 1);
}

bool
registry_read(int registry_fd, int64_t pid, struct registry_entry *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char name[40], start[24];
	struct mr_process process;
	struct json_value all;
	uint64_t began = 0;

	(void)snprintf(name, sizeof name, "%" PRId64 ".json", pid);
	if (file_read(registry_fd, name, ENTRY_MAX, &text, IGNORED) != MR_OK || !json_whole(buf_str(&text), &all, NULL))
		return false;
	copy_text(all, "sessionId", ret->session, sizeof ret->session);
	copy_text(all, "status", ret->status, sizeof ret->status);
	copy_text(all, "kind", ret->kind, sizeof ret->kind);
	copy_text(all, "name", ret->name, sizeof ret->name);
	copy_text(all, "messagingSocketPath", ret->socket, sizeof ret->socket);
	copy_text(all, "procStart", start, sizeof start);
	ret->runs = str_to_u64(str_of(start), &began) && process_describe(pid, &process) && process.start == began;
	return true;
}

void
registry_key_name(int64_t pid, const char *socket, struct buf *ret)
{
	char hash[65];

	sha256_hex(str_of(socket), hash);
	buf_addf(ret, "%" PRId64 ".%s.key", pid, hash);
}

/* ---- An entry of ours ---- */

static void
remove_files(const struct stand_in *s, int64_t pid, const char *socket)
{
	mr_auto(buf_done) struct buf key = BUF_INIT;
	char name[40];

	registry_key_name(pid, socket, &key);
	(void)sys_unlink(s->sockets, path_name(socket));
	(void)sys_unlink(s->registry, buf_z(&key));
	(void)snprintf(name, sizeof name, "%" PRId64 ".json", pid);
	(void)sys_unlink(s->registry, name);
}

/* What one of ours left that was killed. */
static bool
remove_stale(void *ctx, const struct dir_entry *file)
{
	const struct stand_in *s = ctx;
	struct mr_str name = str_of(file->name);
	struct registry_entry entry;
	uint64_t pid = 0;

	if (str_ends(name, ".json") && str_to_u64((struct mr_str){ name.ptr, name.len - 5 }, &pid) && pid < INT32_MAX &&
	    registry_read(s->registry, (int64_t)pid, &entry) && strcmp(entry.kind, KIND) == 0 && !entry.runs)
		remove_files(s, (int64_t)pid, entry.socket);
	return true;
}

static enum mr_rc
publish(int registry_fd, const char *name, const struct buf *text, struct mr_error *err)
{
	TRY(mr_got(name && buf_ok(text), err));
	(void)sys_unlink(registry_fd, name); /* of an earlier process with our number */
	return file_publish(registry_fd, registry_fd, name, buf_str(text), 0600, PUBLISH_NOSYNC, err);
}

enum mr_rc
registry_enter(struct stand_in *s, struct cli *cli, const char *agent, struct mr_error *err)
{
	mr_auto(buf_done) struct buf who = BUF_INIT, path = BUF_INIT;
	const char *state_dir = cli->env.state_dir;
	char hash[65], lock[48];

	buf_addf(&who, "%s\n%s", mr_room_spec(cli->room), agent);
	buf_addf(&path, "%s/" SOCKETS "/%ld.sock", state_dir ? state_dir : "", (long)getpid());
	TRY(mr_got(buf_ok(&who) && buf_ok(&path), err));
	if (!state_dir || path.len >= sizeof s->socket)
		return mr_fail(err, MR_REFUSED, "'%s' cannot be the path of a socket: at most %zu bytes", buf_z(&path),
		    sizeof s->socket - 1);
	TRY(registry_open(&s->registry, err));
	TRY(dir_below(state_dir, SOCKETS, true, false, &s->sockets, err));
	sha256_hex(buf_str(&who), hash); /* one id for all processes that stand for it */
	(void)snprintf(s->session, sizeof s->session, "%.8s-%.4s-8%.3s-8%.3s-%.12s", hash, hash + 8, hash + 12,
	    hash + 15, hash + 18);
	(void)snprintf(lock, sizeof lock, "%s.lock", s->session);
	enum mr_rc rc = lock_take(s->sockets, lock, 0600, 0, &s->lock, err);

	if (rc == MR_BUSY)
		return mr_fail(err, MR_BUSY, "another process already stands for '%s'", agent);
	TRY(rc);
	(void)dir_each(s->registry, remove_stale, s, IGNORED);
	random_hex(s->token, 32);
	memcpy(s->socket, buf_z(&path), path.len + 1);

	mr_auto(buf_done) struct buf entry = BUF_INIT, key = BUF_INIT, key_name = BUF_INIT;
	struct json j = JSON_INIT(&entry), k = JSON_INIT(&key);
	struct mr_process self;
	char start[24], name[40];

	if (!process_describe((int64_t)getpid(), &self))
		return mr_fail(err, MR_UNSUPPORTED, "this system does not say when a process started");
	(void)snprintf(start, sizeof start, "%" PRIu64, self.start);
	(void)snprintf(name, sizeof name, "%" PRId64 ".json", self.pid);
	json_cells(
	    &j, CELLS(kv_open(""), kv_int("pid", self.pid), kv_str("sessionId", s->session), kv_str("cwd", "/"),
		    kv_int("startedAt", clock_now_ms()), kv_str("procStart", start), kv_int("peerProtocol", 1),
		    kv_raw("peerFeatures", STR("[]")), kv_str("kind", KIND), kv_str("messagingSocketPath", s->socket),
		    kv_str("name", agent), kv_str("status", "idle"), kv_close()));
	json_cells(&k, CELLS(kv_open(""), kv_str("peerToken", s->token), kv_str("procStart", start), kv_close()));
	registry_key_name(self.pid, s->socket, &key_name);
	TRY(publish(s->registry, name, &entry, err));
	TRY(publish(s->registry, buf_ok(&key_name) ? buf_z(&key_name) : NULL, &key, err));
	(void)sys_unlink(s->sockets, path_name(s->socket));
	s->listens = socket_listen(s->socket);
	return s->listens >= 0 ? MR_OK : mr_fail_errno(err, "cannot listen at '%s'", s->socket);
}

void
registry_leave(struct stand_in *s)
{
	sys_close_fd(&s->listens); /* what waits in it is refused */
	if (s->socket[0])
		remove_files(s, (int64_t)getpid(), s->socket);
	sys_close_fd(&s->registry);
	sys_close_fd(&s->sockets);
	sys_close_fd(&s->lock);
	*s = STAND_IN_INIT;
}
