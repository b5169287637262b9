/* SPDX-License-Identifier: MIT */
/*
 * error.h - filling in struct mr_error. The lowest frame says what failed (mr_fail, mr_fail_errno),
 * a frame that knows more wraps once (mr_wrap), and only a door prints.
 * Messages: lower case, no full stop, what failed first, subject in single quotes, reason last.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "mailroom.h"

/* What follows a newline in fmt is the hint:
 *
 *	return mr_fail(err, MR_NOTFOUND, "no agent '%s'\n"
 *					 "mailroom who lists them", name);
 */
enum mr_rc mr_fail(struct mr_error *err, enum mr_rc code, const char *fmt, ...) MR_PRINTF(3, 4);
/* Takes errno: ENOSPC and EDQUOT become MR_FULL, ENOMEM MR_NOMEM, all else MR_IO. EROFS, EACCES
 * and EPERM get a hint about sandboxes and ownership unless one is set later. */
enum mr_rc mr_fail_errno(struct mr_error *err, const char *fmt, ...) MR_PRINTF(2, 3);
/* Puts "<text>: " before the message; returns err->code. */
enum mr_rc mr_wrap(struct mr_error *err, const char *fmt, ...) MR_PRINTF(2, 3);
/* Sets the hint; returns err->code, so that `return mr_hint(err, ...)` reads well. */
enum mr_rc mr_hint(struct mr_error *err, const char *fmt, ...) MR_PRINTF(2, 3);
enum mr_rc mr_nomem(struct mr_error *err);

#define mr_auto(fn) __attribute__((cleanup(fn)))

/* Returns from this function unless the call is MR_OK. What this function owns is mr_auto, so it is freed. */
#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		enum mr_rc try_rc_ = (call);                                                                           \
		if (try_rc_ != MR_OK)                                                                                  \
			return try_rc_;                                                                                \
	} while (0)

/* For TRY: MR_NOMEM unless it was got.
 *
 *	TRY(mr_got(buf_ok(&path), err));
 */
static inline enum mr_rc
mr_got(bool got, struct mr_error *err)
{
	if (!got)
		(void)mr_nomem(err);
	return got ? MR_OK : MR_NOMEM;
}

/* For TRY: this one result is as good as MR_OK, and leaves no error behind.
 *
 *	TRY(mr_unless(driver->record_drop(room, kind, owner, name, err), MR_NOTFOUND, err));
 */
static inline enum mr_rc
mr_unless(enum mr_rc rc, enum mr_rc fine, struct mr_error *err)
{
	if (rc != fine)
		return rc;
	*err = (struct mr_error){ 0 };
	return MR_OK;
}

/* For a call whose error is not used. */
#define IGNORED (&(struct mr_error){ 0 })

#endif
