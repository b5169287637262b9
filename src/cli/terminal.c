/* SPDX-License-Identifier: MIT */
/*
 * terminal.c - see terminal.h. Signals are let in only while we wait, so a flag that a handler sets is always seen; a
 * fault is handled where it happens, with the two calls that a handler may make: the modes and a few bytes.
 */
#include "cli/terminal.h"
#include "base/sys.h"
#include "cli/cli.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>

#define ENTER "\033[?1049h\033[?25l\033[?7l" /* the other screen, no cursor, no wrapping at the edge */
#define LEAVE "\033[?7h\033[?25h\033[?1049l"
#define ESCAPE_MS 40 /* an escape that nothing follows is the key */

static struct termios before;
static bool entered;
static sigset_t outside; /* signals that were blocked before us */
static volatile sig_atomic_t ended, stopping;

static void
enter(void)
{
	struct termios raw = before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_iflag &= ~(tcflag_t)IXON;
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	(void)tcsetattr(0, TCSADRAIN, &raw);
	(void)sys_write_all(1, ENTER, sizeof ENTER - 1);
	entered = true;
}

static void
leave(void)
{
	if (!entered)
		return;
	entered = false;
	(void)sys_write_all(1, LEAVE, sizeof LEAVE - 1);
	(void)tcsetattr(0, TCSADRAIN, &before);
}

static void
on_signal(int number)
{
	if (number == SIGTSTP)
		stopping = 1;
	else if (number != SIGWINCH && number != SIGCONT) /* those end the wait, after which everything is drawn */
		ended = number;
}

static void
on_fault(int number)
{
	leave();
	(void)signal(number, SIG_DFL);
	(void)raise(number);
}

static const struct {
	int number;
	void (*how)(int);
} handled[] = { { SIGINT, on_signal }, { SIGTERM, on_signal }, { SIGHUP, on_signal }, { SIGQUIT, on_signal },
	{ SIGPIPE, on_signal }, { SIGWINCH, on_signal }, { SIGCONT, on_signal }, { SIGTSTP, on_signal },
	{ SIGSEGV, on_fault }, { SIGBUS, on_fault }, { SIGFPE, on_fault }, { SIGILL, on_fault },
	{ SIGABRT, on_fault } };
#define HANDLED (sizeof handled / sizeof handled[0])

enum mr_rc
terminal_begin(struct mr_error *err)
{
	sigset_t block;

	if (tcgetattr(0, &before) < 0)
		return mr_fail_errno(err, "stdin is not a terminal");
	(void)sigemptyset(&block);
	for (size_t i = 0; i < HANDLED; i++) {
		struct sigaction action = { .sa_handler = handled[i].how };

		(void)sigaction(handled[i].number, &action, NULL);
		if (handled[i].how == on_signal)
			(void)sigaddset(&block, handled[i].number);
	}
	(void)sigprocmask(SIG_BLOCK, &block, &outside);
	enter();
	return MR_OK;
}

void
terminal_end(void)
{
	leave();
	for (size_t i = 0; i < HANDLED; i++)
		(void)signal(handled[i].number, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &outside, NULL);
	if (ended && ended != SIGPIPE)
		(void)raise(ended);
}

/* ---- Keys ---- */

static enum key
read_key(void)
{
	static const struct {
		const char *bytes;
		enum key key;
	} keys[] = { { "\033[A", KEY_UP }, { "\033OA", KEY_UP }, { "k", KEY_UP }, { "\033[B", KEY_DOWN },
		{ "\033OB", KEY_DOWN }, { "j", KEY_DOWN }, { "\033[5~", KEY_PAGE_UP }, { "b", KEY_PAGE_UP },
		{ "\033[6~", KEY_PAGE_DOWN }, { " ", KEY_PAGE_DOWN }, { "\033[H", KEY_HOME }, { "g", KEY_HOME },
		{ "\033[F", KEY_LAST }, { "G", KEY_LAST }, { "\r", KEY_ENTER }, { "\n", KEY_ENTER },
		{ "\033", KEY_BACK }, { "\177", KEY_BACK }, { "\033[D", KEY_BACK }, { "h", KEY_BACK },
		{ "\033[C", KEY_ENTER }, { "l", KEY_ENTER }, { "q", KEY_QUIT }, { "\003", KEY_QUIT },
		{ "\004", KEY_QUIT }, { "r", KEY_REFRESH }, { "\014", KEY_REFRESH } };
	char bytes[16] = "";
	ssize_t n = sys_read(0, bytes, 1);

	if (n <= 0)
		return n < 0 && errno == EINTR ? KEY_NONE : KEY_END; /* the terminal is gone */
	/* What a key sends comes at once, or in two pieces. */
	for (size_t at = 1; bytes[0] == '\033' && at + 1 < sizeof bytes; at++) {
		struct pollfd in = { .fd = 0, .events = POLLIN };

		if (poll(&in, 1, ESCAPE_MS) <= 0 || sys_read(0, bytes + at, 1) <= 0)
			break;
		if (at > 1 && bytes[at] >= '@' && bytes[at] <= '~')
			break;
	}
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if (strcmp(keys[i].bytes, bytes) == 0)
			return keys[i].key;
	return KEY_NONE;
}

enum key
terminal_wait(int bell_fd, int64_t timeout_ms)
{
	struct pollfd in[2] = { { .fd = 0, .events = POLLIN }, { .fd = bell_fd, .events = POLLIN } };
	struct timespec limit = { timeout_ms / 1000, timeout_ms % 1000 * 1000000 };
	int n = ppoll(in, 2, timeout_ms < 0 ? NULL : &limit, &outside);

	if (ended)
		return KEY_END;
	if (stopping) {
		stopping = 0;
		leave();
		(void)raise(SIGSTOP);
		enter();
		return KEY_NONE;
	}
	if (n <= 0)
		return KEY_NONE;
	return in[0].revents ? read_key() : KEY_BELL;
}
