/* SPDX-License-Identifier: MIT */
/*
 * process.h - identifying processes. A pid alone is not enough: it is reused, and means another process in another pid
 * namespace or after a reboot. struct mr_process has all four facts.
 */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include "base/buf.h"

const char *boot_id(void); /* "" where there is no /proc */
/* The boot clock as every process of this boot reads it, in any time namespace. clock_boot_ms is cheaper, and for times
 * that are not stored. False: the time namespace is unknown. */
bool boot_clock_ms(int64_t *ret);
#ifdef MR_FAULT_ENV
void boot_id_pretend(const char *id); /* for tests: as if it ran before a restart; NULL ends that. Borrowed. */
#endif
/* Fills in start time, namespace and boot of a pid. False: no such process, or no /proc. */
bool process_describe(int64_t pid, struct mr_process *ret);
enum process_state { PROCESS_UNKNOWN /* cannot be told from here */, PROCESS_ALIVE, PROCESS_DEAD };
/* DEAD only on evidence: another boot of this host, or same namespace and no such process. Another
 * namespace on the same boot: UNKNOWN. */
enum process_state process_state(const struct mr_process *p);
/* True: a process with that number and start time exists. One system call; enough if a wrong no costs only time. */
bool process_runs(const struct mr_process *p);
bool process_same(const struct mr_process *a, const struct mr_process *b);
/* It is of this boot and another pid namespace: a container or a sandbox. */
bool process_is_elsewhere(const struct mr_process *p);
/* The nearest ancestor of ours that is not a shell or a wrapper (sh, bash, env, timeout, sudo, ...).
 * False: none found (pid namespace of our own, no /proc). */
bool process_harness(struct mr_process *ret);
bool process_is_ancestor(const struct mr_process *p); /* is it the calling process or an ancestor of it? */
/* The processes above us, the nearest first; returns their number. */
size_t process_ancestors(struct mr_process *v, size_t max);
/* The leader of our terminal session; it may be this process, because a shell replaces itself with its last command.
 * False: it is gone, or is a process that outlives every terminal. */
bool process_terminal(struct mr_process *ret);
/* Is `from` the process `pid` or an ancestor of it? Both are numbers in our pid namespace. */
bool process_descends(int64_t pid, int64_t from);
/* Is it an ancestor, with no process of the same program between it and us? Then it is our own harness, not an outer
 * one. */
bool process_is_innermost(const struct mr_process *p);
/* Codex runs the sessions of all terminals in one background server, unless it is told not to. */
enum process_codex {
	CODEX_NOT,    /* another program, or the kernel does not tell */
	CODEX_OWN,    /* of one terminal, or one run without a terminal */
	CODEX_SHARED, /* such a server: it outlives its sessions, and its environment is that of the first terminal */
};
enum process_codex process_codex(const struct mr_process *p);
/* The process at the other end of a Unix socket when it connected, if it is of our user. 0: it is not, or the kernel
 * does not tell. */
int64_t process_of_socket(int fd);
/* The variables by which harnesses give their shells and servers the id of the session, and the harness; our plugin in
 * OpenCode gives both: "opencode-ses_1". */
/* clang-format off */
#define SESSION_VARIABLES(X) \
	X("CLAUDE_CODE_SESSION_ID", "claude-code") X("CODEX_THREAD_ID", "codex") X("GEMINI_SESSION_ID", "gemini") \
	X("QWEN_CODE_SESSION_ID", "qwen") X("PI_SESSION_ID", "pi") X("COPILOT_AGENT_SESSION_ID", "copilot") \
	X("MAILROOM_SESSION", "")
/* clang-format on */
/* A variable of the environment that a living process was started with. False: it has none, or the kernel does not
 * tell. */
bool process_variable(const struct mr_process *p, const char *name, struct buf *ret);
/* "pid start ns boot" as one header value, and back. */
void process_format(const struct mr_process *p, struct buf *out);
bool process_parse(struct mr_str s, struct mr_process *ret);
const char *host_name(void);

/* How many inotify instances this user's processes use, as far as /proc shows them, and how many the kernel allows (0:
 * unknown). */
size_t process_watchers(size_t *ret_limit);

#endif
