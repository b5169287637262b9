/* SPDX-License-Identifier: MIT */
/*
 * harness.h - what can be seen from outside of where an agent works: its terminal (tmux, and what the screen shows) and
 * its git worktree. Facts only: whether and what to type, and which room is meant, is decided in the office. It may
 * call message and base.
 */
#ifndef HARNESS_HARNESS_H
#define HARNESS_HARNESS_H

#include "base/buf.h"
#include "mailroom.h"

/* ---- screen.c ---- */
enum screen_state {
	SCREEN_UNKNOWN, /* no prompt that we know */
	SCREEN_IDLE,
	SCREEN_BUSY,
	SCREEN_DIALOG, /* what is typed would choose something */
	SCREEN_DRAFT,  /* a person is typing */
};
/* `screen` is what `capture-pane -e` prints: with the escapes for how it looks. */
enum screen_state screen_judge(struct mr_str screen);
/* Does the input, from the last prompt on, show this text? `screen` is without escapes. */
bool screen_shows(struct mr_str screen, struct mr_str text);

/* ---- tmux.c ---- */
struct tmux {
	const char *socket, *pane;
};
struct tmux_pane { /* what tmux knows of it */
	bool dead, in_mode, synchronized, input_off;
	int64_t pid, clients, cursor_x, cursor_y, history;
	char tty[64], command[64];
};
enum mr_rc tmux_look(const struct tmux *t, struct tmux_pane *ret, struct mr_error *err);
enum tmux_capture { TMUX_LOOKS /* the screen, with escapes */, TMUX_TEXT /* and what scrolled away, without */ };
enum mr_rc tmux_capture(const struct tmux *t, enum tmux_capture how, struct buf *ret, struct mr_error *err);
/* The bytes as they are, in whole characters. One line: what it has of control characters was taken out before. */
enum mr_rc tmux_type(const struct tmux *t, struct mr_str text, struct mr_error *err);
/* NULL: leaves the mode in which the pane scrolls. */
enum mr_rc tmux_key(const struct tmux *t, const char *key, struct mr_error *err);

/* ---- git.c: reads the files of a repository; no git program is run ---- */
struct git_place {      /* all NULL outside a repository; finish with git_place_done */
	char *worktree; /* top of the worktree that holds the folder asked about */
	char *git_dir;  /* of that worktree: its index is there */
	char *common;   /* shared by all worktrees: info/exclude is there */
	char *main;     /* the main worktree; in a bare repository the folder where worktrees can meet */
};
enum mr_rc git_find(const char *folder, struct git_place *ret, struct mr_error *err);
void git_place_done(struct git_place *place);
/* The branch ("" when detached) and commit that are checked out there. False: no repository. */
bool git_head(const char *folder, struct buf *branch, struct buf *commit);
/* Does the index list that path (relative to the worktree)? Unreadable or huge indexes do not. */
bool git_tracks(const struct git_place *place, const char *path);

#endif
