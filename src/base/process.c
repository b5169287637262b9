/* SPDX-License-Identifier: MIT */
/*
 * process.c - identifying processes, from /proc.
 *
 * A pid is a number within one pid namespace, so the namespace recorded with it is that of the reader (ours), not that
 * of the process itself: a container's process has one number here and another inside. And /proc must be of our
 * namespace: after `unshare --pid` without a new mount it still shows the outer one, where our numbers mean other
 * processes. Then we treat /proc as missing.
 *
 * A time namespace shifts the boot clock and the start times in /proc by an offset that the kernel shows. Stored times
 * are counted without it, so that all containers of one kernel compare the same numbers. The inode of the namespace is
 * no substitute: a new namespace gets the number of one that has ended.
 */
#include "base/process.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct proc_stat { /* the fields of /proc/<pid>/stat that we use */
	int64_t pid, parent;
	uint64_t start;
	char state;
	char name[64];
};

#ifdef MR_PORTABLE
enum { HAS_PROC = false };
#else
enum { HAS_PROC = true };
#endif

/* "pid (name) state ppid ...": the name may have spaces and parentheses, so search for the last ")". */
static bool
read_stat(const char *path, struct proc_stat *ret)
{
	char text[1024];
	uint64_t number;

	*ret = (struct proc_stat){ 0 };
	if (!HAS_PROC || sys_kernel_read(path, text, sizeof(text)) <= 0)
		return false;
	const char *open = strchr(text, '('), *close = strrchr(text, ')');

	if (!open || !close || close < open || !str_to_u64(str_trim(str_between(text, open)), &number))
		return false;
	(void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(close - open - 1), open + 1);
	ret->pid = (int64_t)number;
	struct mr_str rest = str_of(close + 1), field;

	for (int i = 3; i <= 22; i++) { /* numbered as in proc(5) */
		if (!str_word(&rest, " \n", &field))
			return false;
		if (i == 3)
			ret->state = field.ptr[0];
		else if (i == 4 && str_to_u64(field, &number))
			ret->parent = (int64_t)number;
	}
	return str_to_u64(field, &ret->start);
}

static bool
read_stat_of(int64_t pid, struct proc_stat *ret)
{
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
	return pid > 0 && read_stat(path, ret) && ret->pid == pid;
}

/* Not cached: a forked child may be in another namespace. */
static bool
proc_is_ours(void)
{
	struct proc_stat self;

	return read_stat("/proc/self/stat", &self) && self.pid == (int64_t)getpid();
}

static uint64_t
our_namespace(void)
{
	return HAS_PROC ? sys_kernel_inode("/proc/self/ns/pid") : 0;
}

/* linux/proc_ns.h: PROC_TIME_INIT_INO. The offsets of all other time namespaces are relative to this one. */
#define TIME_NS_INITIAL 0xEFFFFFFAU

/* How far the boot clock is ahead here. False: unknown. The file has the offsets for our children; before Linux 6.3 a
 * program may itself still run in an outer namespace. */
static bool
boot_offset_ns(int64_t *ret)
{
	uint64_t ns = HAS_PROC ? sys_kernel_inode("/proc/self/ns/time") : 0;
	char text[256];
	long long seconds, nanoseconds;

	*ret = 0;
	if (ns == TIME_NS_INITIAL || ns == 0) /* 0: there are no time namespaces */
		return true;
	if (ns != sys_kernel_inode("/proc/self/ns/time_for_children") ||
	    sys_kernel_read("/proc/self/timens_offsets", text, sizeof(text)) <= 0)
		return false;
	const char *line = strstr(text, "boottime");
	if (line == NULL || sscanf(line, "boottime %lld %lld", &seconds, &nanoseconds) != 2)
		return false;
	*ret = (int64_t)seconds * 1000000000 + nanoseconds;
	return true;
}

#ifdef MR_FAULT_ENV
static const char *pretended_boot;

void
boot_id_pretend(const char *id)
{
	pretended_boot = id;
}
#endif

const char *
boot_id(void)
{
	static _Thread_local char id[40];

#ifdef MR_FAULT_ENV
	if (HAS_PROC && pretended_boot != NULL)
		return pretended_boot;
#endif
	if (HAS_PROC && id[0] == '\0' && sys_kernel_read("/proc/sys/kernel/random/boot_id", id, sizeof(id)) > 0)
		id[strcspn(id, "\n ")] = '\0';
	return id;
}

bool
boot_clock_ms(int64_t *ret)
{
	int64_t offset_ns;

	if (!boot_offset_ns(&offset_ns))
		return false;
	*ret = clock_boot_ms() - offset_ns / 1000000;
	return true;
}

static uint64_t
start_since_boot(uint64_t start, int64_t offset_ns)
{
	return start - (uint64_t)(offset_ns / (1000000000 / sysconf(_SC_CLK_TCK)));
}

/* An offset that is not a whole number of ticks rounds up or down by one. No pid is reused within a tick. */
static bool
is_same_start(uint64_t a, uint64_t b)
{
	return a - b + 1 <= 2;
}

static struct mr_process
process_of(const struct proc_stat *stat)
{
	struct mr_process p = { .pid = stat->pid, .start = stat->start, .pid_ns = our_namespace() };
	int64_t offset_ns;

	if (boot_offset_ns(&offset_ns))
		p.start = start_since_boot(stat->start, offset_ns);
	else
		p.pid_ns = 0; /* no other process could compare it */
	(void)snprintf(p.boot, sizeof(p.boot), "%s", boot_id());
	return p;
}

static bool
is_dead(const struct proc_stat *stat)
{
	return stat->state == 'Z' || stat->state == 'X' || stat->state == 'x';
}

/* EPERM means that it exists and belongs to another user. */
static bool
is_there(int64_t pid)
{
	return pid > 0 && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

bool
process_describe(int64_t pid, struct mr_process *ret)
{
	struct proc_stat stat;

	if (!HAS_PROC) /* only its number: better than nothing, see process_state */
		stat = (struct proc_stat){ .pid = pid, .state = is_there(pid) ? 'S' : 'X' };
	else if (!proc_is_ours() || !read_stat_of(pid, &stat))
		return false;
	if (is_dead(&stat))
		return false;
	*ret = process_of(&stat);
	return true;
}

/* Is that the process that started then? Usually without another system call. */
static enum process_state
judge(const struct proc_stat *stat, uint64_t start)
{
	int64_t offset_ns;

	if (is_dead(stat))
		return PROCESS_DEAD;
	if (stat->start == start)
		return PROCESS_ALIVE;
	if (!boot_offset_ns(&offset_ns))
		return PROCESS_UNKNOWN;
	return is_same_start(start_since_boot(stat->start, offset_ns), start) ? PROCESS_ALIVE : PROCESS_DEAD;
}

bool
process_runs(const struct mr_process *p)
{
	struct proc_stat stat;

	return HAS_PROC && read_stat_of(p->pid, &stat) && judge(&stat, p->start) == PROCESS_ALIVE;
}

bool
process_same(const struct mr_process *a, const struct mr_process *b)
{
	return a->pid > 0 && a->pid == b->pid && is_same_start(a->start, b->start) && a->pid_ns == b->pid_ns &&
	       strcmp(a->boot, b->boot) == 0;
}

bool
process_is_elsewhere(const struct mr_process *p)
{
	return p->pid > 0 && strcmp(p->boot, boot_id()) == 0 && p->pid_ns != our_namespace();
}

/* ---- Alive? ---- */

enum process_state
process_state(const struct mr_process *p)
{
	const char *boot = boot_id();
	struct proc_stat stat;

	if (p->pid <= 0 || p->pid > INT32_MAX)
		return PROCESS_UNKNOWN;
	if (p->boot[0] != '\0' && boot[0] != '\0' && strcmp(p->boot, boot) != 0)
		return PROCESS_DEAD;
	/* Without /proc on one side only, it is unknown whether its number is valid here. */
	if (strcmp(p->boot, boot) != 0 || p->pid_ns != our_namespace())
		return PROCESS_UNKNOWN;
	/* On a system without /proc the number is all there is. A later process with that number counts as this one:
	 * then a name stays taken and a lease goes on, until a takeover. The opposite error would do work twice. */
	if (!HAS_PROC)
		return is_there(p->pid) ? PROCESS_ALIVE : PROCESS_DEAD;
	if (!proc_is_ours() || !read_stat_of(p->pid, &stat)) /* /proc may hide other users' processes */
		return is_there(p->pid) ? PROCESS_UNKNOWN : PROCESS_DEAD;
	return judge(&stat, p->start);
}

/* ---- Ancestors ---- */

static bool
is_listed(const char *name, const char *const *list)
{
	for (; *list != NULL; list++)
		if (strcmp(name, *list) == 0)
			return true;
	return false;
}

/* They start and end within a session. */
static const char *const wrappers[] = { "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "busybox", "env",
	"timeout", "nice", "ionice", "nohup", "setsid", "stdbuf", "sudo", "doas", "su", "script", "time", "xargs",
	"parallel", "make", "strace", "ltrace", "valgrind", "bwrap", "mailroom", "mailroom-full", "mailroom-serve",
	NULL };

/* They outlive every session: if a session's process were one of these, its work would never come back. */
static const char *const grounds[] = { "tmux: server", "screen", "sshd", "sshd-session", "login", "systemd", "init",
	"tini", "dumb-init", "docker-init", "cron", "crond", "containerd-shim", NULL };

bool
process_harness(struct mr_process *ret)
{
	struct proc_stat stat;

	if (!proc_is_ours())
		return false;
	for (int64_t pid = (int64_t)getppid(); pid > 1; pid = stat.parent) {
		if (!read_stat_of(pid, &stat) || is_listed(stat.name, grounds))
			return false;
		if (!is_listed(stat.name, wrappers)) {
			*ret = process_of(&stat);
			return true;
		}
	}
	return false;
}

bool
process_is_ancestor(const struct mr_process *p)
{
	struct mr_process found;

	if (!HAS_PROC)
		return p->boot[0] == '\0' && (p->pid == (int64_t)getpid() || p->pid == (int64_t)getppid());
	return process_descends((int64_t)getpid(), p->pid) && process_describe(p->pid, &found) &&
	       process_same(&found, p);
}

size_t
process_ancestors(struct mr_process *v, size_t max)
{
	struct proc_stat stat;
	size_t n = 0;

	if (!HAS_PROC || !proc_is_ours())
		return 0;
	for (int64_t pid = (int64_t)getppid(); pid > 0 && n < max && read_stat_of(pid, &stat); pid = stat.parent)
		v[n++] = process_of(&stat);
	return n;
}

bool
process_terminal(struct mr_process *ret)
{
	pid_t leader = getsid(0);
	struct proc_stat stat;

	if (leader <= 0 || !HAS_PROC || !proc_is_ours() || !read_stat_of(leader, &stat) || is_dead(&stat) ||
	    is_listed(stat.name, grounds))
		return false;
	*ret = process_of(&stat);
	return true;
}

bool
process_descends(int64_t pid, int64_t from)
{
	struct proc_stat stat;

	for (; pid > 0; pid = stat.parent) {
		if (pid == from)
			return true;
		if (!HAS_PROC || !read_stat_of(pid, &stat))
			return false;
	}
	return false;
}

bool
process_is_innermost(const struct mr_process *p)
{
	struct proc_stat named, stat;

	if (!process_is_ancestor(p) || !read_stat_of(p->pid, &named))
		return false;
	for (int64_t pid = (int64_t)getppid(); pid > 0 && pid != p->pid; pid = stat.parent)
		if (!read_stat_of(pid, &stat) || strcmp(stat.name, named.name) == 0)
			return false;
	return true;
}

/* ---- Arguments and environment ---- */

#define START_MAX ((size_t)4 << 20)

/* /proc/<pid>/<file>: words, each with a NUL after it. */
static bool
read_words(const struct mr_process *p, const char *file, struct buf *ret)
{
	char path[64];

	if (!HAS_PROC || process_state(p) != PROCESS_ALIVE || !buf_reserve(ret, START_MAX))
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%" PRId64 "/%s", p->pid, file);
	ssize_t n = sys_kernel_read(path, ret->ptr, START_MAX);

	ret->len = n > 0 ? (size_t)n : 0;
	return n > 0;
}

bool
process_variable(const struct mr_process *p, const char *name, struct buf *ret)
{
	mr_auto(buf_done) struct buf words = BUF_INIT;
	struct mr_str rest = read_words(p, "environ", &words) ? buf_str(&words) : STR(""), word, key, value;

	while (str_cut(&rest, '\0', &word))
		if (str_split(word, '=', &key, &value) && str_eq(key, str_of(name))) {
			buf_add(ret, value);
			return buf_ok(ret);
		}
	return false;
}

enum process_codex
process_codex(const struct mr_process *p)
{
	mr_auto(buf_done) struct buf words = BUF_INIT;

	struct mr_str rest = read_words(p, "cmdline", &words) ? buf_str(&words) : STR(""), word;

	if (!str_cut(&rest, '\0', &word) || !(str_eq(word, STR("codex")) || str_ends(word, "/codex")))
		return CODEX_NOT;
	while (str_cut(&rest, '\0', &word))
		if (str_eq(word, STR("app-server")) || str_eq(word, STR("mcp-server")))
			return CODEX_SHARED;
	return CODEX_OWN;
}

/* ---- As text ---- */

void
process_format(const struct mr_process *p, struct buf *out)
{
	buf_addf(out, "%" PRId64 " %" PRIu64 " %" PRIu64 " %s", p->pid, p->start, p->pid_ns,
	    p->boot[0] != '\0' ? p->boot : "-");
}

bool
process_parse(struct mr_str s, struct mr_process *ret)
{
	struct mr_process p = { 0 };
	struct mr_str pid, start, ns, boot, more;
	const char *gap = " \n";
	uint64_t number;

	if (!str_word(&s, gap, &pid) || !str_word(&s, gap, &start) || !str_word(&s, gap, &ns) ||
	    !str_word(&s, gap, &boot) || str_word(&s, gap, &more) || !str_to_u64(pid, &number) || number > INT32_MAX ||
	    !str_to_u64(start, &p.start) || !str_to_u64(ns, &p.pid_ns) || boot.len >= sizeof(p.boot))
		return false;
	p.pid = (int64_t)number;
	if (!str_eq(boot, STR("-")))
		memcpy(p.boot, boot.ptr, boot.len);
	*ret = p;
	return true;
}

int64_t
process_of_socket(int fd)
{
#if defined(SO_PEERCRED) && !defined(MR_PORTABLE)
	struct ucred who;
	socklen_t len = sizeof who;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && who.uid == sys_euid())
		return who.pid;
#else
	(void)fd;
#endif
	return 0;
}

/* Not thread-local: with musl a program with little thread-local data starts without a mapping for it. */
static char own_host_name[256];

static void
read_host_name(void)
{
	if (gethostname(own_host_name, sizeof(own_host_name) - 1) < 0 || own_host_name[0] == '\0')
		(void)snprintf(own_host_name, sizeof(own_host_name), "localhost");
}

const char *
host_name(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, read_host_name);
	return own_host_name;
}

/* ---- Watches on folders ---- */

static size_t
watchers_of(const char *pid)
{
	mr_auto(mr_names_done) struct mr_names fds = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	char path[300], text[256];
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%s/fdinfo", pid);
	if (dir_open(AT_FDCWD, path, &fd, IGNORED) != MR_OK || dir_names(fd, &fds, IGNORED) != MR_OK)
		return 0;
	for (size_t i = 0; i < fds.n; i++) {
		(void)snprintf(path, sizeof(path), "/proc/%s/fdinfo/%s", pid, fds.v[i]);
		n += sys_kernel_read(path, text, sizeof(text)) > 0 && strstr(text, "inotify wd:");
	}
	return n;
}

size_t
process_watchers(size_t *ret_limit)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	char line[32];
	uint64_t limit = 0;
	struct stat st;
	size_t n = 0;

	/* The limit of the user namespace; without one it is fs.inotify.max_user_instances. */
	if (HAS_PROC && (sys_kernel_read("/proc/sys/user/max_inotify_instances", line, sizeof(line)) > 0 ||
			    sys_kernel_read("/proc/sys/fs/inotify/max_user_instances", line, sizeof(line)) > 0))
		(void)str_to_u64((struct mr_str){ line, strcspn(line, "\n") }, &limit);
	*ret_limit = (size_t)limit;
	if (limit == 0 || dir_open(AT_FDCWD, "/proc", &fd, IGNORED) != MR_OK || dir_names(fd, &names, IGNORED) != MR_OK)
		return 0;
	for (size_t i = 0; i < names.n; i++)
		if (names.v[i][0] >= '1' && names.v[i][0] <= '9' && sys_stat(fd, names.v[i], &st) == 0 &&
		    st.st_uid == geteuid())
			n += watchers_of(names.v[i]);
	return n;
}
