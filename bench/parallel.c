/* SPDX-License-Identifier: MIT */
/* parallel.c - 1, 8 and 32 processes that send at once, each with a handle of its own: messages a second. */
#include "rival.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PARALLEL_ROUNDS 3
#define WORKER_SECONDS 120

#define BARE_SHARE 0.85 /* that the library must have of the bare calls' rate, by 8 */

static const unsigned counts[] = { 1, 8, 32 };
#define COUNTS (sizeof(counts) / sizeof(counts[0]))

/* Opens, says that it is ready, waits until all are, sends until the time is over, says how many. A write end that
 * nobody has any more is the signal to go. */
static _Noreturn void
work(struct bench *b, const struct rival *r, unsigned sender, int report, const int go[2])
{
	unsigned sent = 0;
	char byte;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)alarm(WORKER_SECONDS);
	(void)close(go[1]);
	void *handle = r->open(b, r, sender);
	(void)r->send(b, handle); /* now it has started for sure, whatever it is */

	if (write(report, &sent, sizeof(sent)) != sizeof(sent) || read(go[0], &byte, 1) != 0)
		_exit(1);
	double end = now_us() + r->window_ms * 1e3;

	do {
		(void)r->send(b, handle);
		sent += now_us() < end; /* a message that comes too late does not count */
	} while (now_us() < end);
	if (write(report, &sent, sizeof(sent)) != sizeof(sent))
		_exit(1);
	r->close(handle);
	_exit(0);
}

static unsigned
add_reports(int fd, unsigned n, const char *name)
{
	unsigned sum = 0, one;

	for (unsigned i = 0; i < n; i++) {
		if (read(fd, &one, sizeof(one)) != sizeof(one))
			die("'%s': a sender failed", name);
		sum += one;
	}
	return sum;
}

/* Messages a second. */
static double
send_at_once(struct bench *b, const struct rival *r, unsigned senders)
{
	pid_t pids[SENDERS_MAX];
	int report[2], go[2];

	if (pipe2(report, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0)
		die("cannot make a pipe");
	(void)fflush(stdout);
	for (unsigned i = 0; i < senders; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("cannot fork");
		if (pids[i] == 0)
			work(b, r, i, report[1], go);
	}
	(void)close(report[1]);
	(void)close(go[0]);
	(void)add_reports(report[0], senders, r->name);
	sync_disk();
	(void)close(go[1]);
	unsigned sent = add_reports(report[0], senders, r->name);

	for (unsigned i = 0; i < senders; i++)
		(void)waitpid(pids[i], NULL, 0);
	(void)close(report[0]);
	return sent / (r->window_ms / 1e3);
}

static void
record_rates(const struct rival *r, double rates[COUNTS][PARALLEL_ROUNDS])
{
	(void)printf("%-26s %-8s", r->name, r->how);
	for (size_t i = 0; i < COUNTS; i++) {
		FILE *out = record_begin("parallel");

		record_text(out, "name", r->name);
		record_text(out, "how", r->how);
		record_number(out, "senders", counts[i]);
		record_number(out, "per_second", median(rates[i], PARALLEL_ROUNDS));
		record_number(out, "low", rates[i][0]);
		record_number(out, "high", rates[i][PARALLEL_ROUNDS - 1]);
		record_end(out);
		(void)printf(" %8.0f/s by %u", rates[i][PARALLEL_ROUNDS / 2], counts[i]);
	}
	(void)fputc('\n', stdout);
}

void
rows_parallel(struct bench *b)
{
	static double rates[32][COUNTS][PARALLEL_ROUNDS];
	const struct rival *crowd[32];
	double bare = 0, ours = 0;
	size_t n = 0;

	b->senders = SENDERS_MAX;
	for (size_t i = 0; all_rivals[i]; i++)
		if (all_rivals[i]->window_ms > 0 && all_rivals[i]->start(b, all_rivals[i]))
			crowd[n++] = all_rivals[i];
	for (unsigned round = 0; round < PARALLEL_ROUNDS; round++)
		for (size_t c = 0; c < COUNTS; c++)
			for (size_t i = 0; i < n; i++)
				rates[i][c][round] = send_at_once(b, crowd[i], counts[c]);
	for (size_t i = 0; i < n; i++) {
		if (crowd[i]->stop)
			crowd[i]->stop(crowd[i]);
		record_rates(crowd[i], rates[i]); /* sorts */
		bare = crowd[i] == &bare_open ? rates[i][1][PARALLEL_ROUNDS / 2] : bare;
		ours = crowd[i] == &mailroom_library ? rates[i][1][PARALLEL_ROUNDS / 2] : ours;
	}
	(void)printf("libmailroom by 8: %.2f x bare, at least %.2f\n", ours / bare, BARE_SHARE);
	b->missed += ours < bare * BARE_SHARE;
}
