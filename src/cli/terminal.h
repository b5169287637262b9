/* SPDX-License-Identifier: MIT */
/*
 * terminal.h - a screen of our own, with keys as they are pressed. The terminal is given back as it was when the
 * command ends by itself, by a signal or by a fault, and for as long as it is stopped with Ctrl-Z.
 *
 *	if (!terminal_begin(&cli->err)) ...
 *	while ((key = terminal_wait(bell_fd, 10000)) != KEY_END) { draw; terminal_show(&frame); }
 *	terminal_end();
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include "base/buf.h"

enum key {
	KEY_NONE, /* the time is up, the window has another size, or the key means nothing: draw again */
	KEY_BELL, /* something is to be read from bell_fd */
	KEY_END,  /* a signal, or nobody is at the keyboard any more */
	KEY_UP,
	KEY_DOWN,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_LAST,
	KEY_ENTER,
	KEY_BACK,
	KEY_QUIT,
	KEY_REFRESH,
};

/* stdin and stdout are a terminal. */
enum mr_rc terminal_begin(struct mr_error *err);
enum key terminal_wait(int bell_fd, int64_t timeout_ms);
/* The signal that ended it is sent again, so that the caller's parent sees it. */
void terminal_end(void);

#endif
