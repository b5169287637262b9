/* SPDX-License-Identifier: MIT */
/*
 * sys_record.h - test builds only (-Dfault_env=true): every successful call that changes the disk is written down, so
 * that a model can replay what a power cut would have left (tests/model). In every other build base/fault.h makes it
 * nothing.
 *
 * The record is a file that is only appended to, unbuffered: a struct record_head, two paths, bytes. What stands
 * between two records was written there by another process: a test gives the file to the command as its standard
 * output, and so knows what had been said before which call.
 */
#ifndef SUPPORT_SYS_RECORD_H
#define SUPPORT_SYS_RECORD_H

#include <stdint.h>
#include <sys/types.h>

#define RECORD_MAGIC 0x1b7f01c5u

enum record_call {
	RECORD_CREATE = 'C',    /* path a, file */
	RECORD_UNNAMED = 'O',   /* file */
	RECORD_MKDIR = 'M',     /* path a, folder */
	RECORD_LINK = 'L',      /* path b is file, wherever its first name was */
	RECORD_RENAME = 'R',    /* path a becomes path b */
	RECORD_EXCHANGE = 'X',  /* paths a and b swap */
	RECORD_UNLINK = 'U',    /* path a; also of folders */
	RECORD_WRITE = 'W',     /* bytes at `at` of file */
	RECORD_TRUNCATE = 'T',  /* file, to `at` bytes */
	RECORD_SYNC = 'S',      /* file or folder */
	RECORD_SYNC_ALL = 'A',  /* the whole file system */
	RECORD_WRITE_OUT = 'F', /* bytes of file, nothing else */
	RECORD_CHANGE = 'H',    /* mode or times of file */
};
struct record_head {
	uint32_t magic;
	uint32_t kind;
	uint64_t inode; /* "file": what the call was about, after it */
	uint64_t at;
	int64_t mtime_ns;
	uint32_t mode;
	uint32_t a_len, b_len, bytes_len;
};

/* From now on into that file; NULL: no more. Returns -1 when it cannot be opened. */
int sys_record_to(const char *path);
/* Both pass the result and errno through. A NULL name: the file is `fd`. */
int record_names(int result, enum record_call kind, int a_fd, const char *a, int b_fd, const char *b);
int record_file(int result, enum record_call kind, int fd, int dir_fd, const char *name);
/* n bytes of fd were written, and end where its position is now (at < 0) or begin at `at`. */
ssize_t record_bytes(ssize_t n, int fd, off_t at);

#endif
