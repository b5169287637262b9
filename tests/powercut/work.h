/* SPDX-License-Identifier: MIT */
/* work.h - what the workers of the power-cut campaign share. */
#ifndef TESTS_POWERCUT_WORK_H
#define TESTS_POWERCUT_WORK_H

#include "cut.h"

extern const char *room;
extern enum worker me;
extern char out[1 << 18]; /* what the last command printed */
extern int input_fd;      /* standard input of the next; -1: nothing */

unsigned dice(unsigned sides);
void say_try(const char *kind, unsigned tag);
void ack(const char *kind, unsigned tag, const char *id); /* may cut the power */
int run_command(const char *const *argv);                 /* exit code */
#define RUN(...) run_command((const char *const[]){ __VA_ARGS__, NULL })
int run_in(const char *spec, const char *const *argv); /* in another room */
bool worked(int code, const char *what);               /* false: the disk is gone */
void first_word(char ret[40]);
bool next_value(const char **at, const char *key, char ret[40]);
bool next_tag(const char **at, unsigned *ret_tag); /* of the messages that were shown as JSON */
bool send_one(const char *kind, unsigned tag, const char *key, char ret_id[40]);

/* ---- work_batch.c ---- */
bool do_batch(unsigned tag);

/* ---- work_elsewhere.c ---- */
bool set_up_elsewhere(const char *folder);
bool do_queue(unsigned tag);
bool do_elsewhere(unsigned tag);
bool do_carry(unsigned tag);

#endif
