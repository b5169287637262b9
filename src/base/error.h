/* SPDX-License-Identifier: MIT */
/*
 * error.h - filling in struct mr_error. The lowest function reports the failure (mr_fail, mr_fail_errno), a caller that
 * knows more wraps it once (mr_wrap), and only a door prints it.
 * Messages: lower case, no full stop, what failed first, subject in single quotes, reason last.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "mailroom.h"

/* The text after a newline in fmt is the hint:
 *
 *	return mr_fail(err, MR_NOTFOUND, "no agent '%s'\n"
 *					 "mailroom who lists them", name); */
enum mr_rc mr_fail(struct mr_error *err, enum mr_rc code, const char *fmt, ...) MR_PRINTF(3, 4);
/* Uses errno: ENOSPC and EDQUOT become MR_FULL, ENOMEM MR_NOMEM, all others MR_IO. EROFS, EACCES and EPERM get a hint
 * about sandboxes and ownership unless one is set later. */
enum mr_rc mr_fail_errno(struct mr_error *err, const char *fmt, ...) MR_PRINTF(2, 3);
/* Puts "<text>: " before the message; returns err->code. */
enum mr_rc mr_wrap(struct mr_error *err, const char *fmt, ...) MR_PRINTF(2, 3);
/* Sets the hint; returns err->code, so that `return mr_hint(err, ...)` reads well. */
enum mr_rc mr_hint(struct mr_error *err, const char *fmt, ...) MR_PRINTF(2, 3);
enum mr_rc mr_nomem(struct mr_error *err);

#define mr_auto(fn) __attribute__((cleanup(fn)))

/* Returns from the calling function unless the call is MR_OK. Variables of that function are mr_auto, so they are
 * freed. */
#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		enum mr_rc try_rc_ = (call);                                                                           \
		if (try_rc_ != MR_OK)                                                                                  \
			return try_rc_;                                                                                \
	} while (0)

/* For TRY: MR_NOMEM if `got` is false.
 *
 *	TRY(mr_got(buf_ok(&path), err)); */
static inline enum mr_rc
mr_got(bool got, struct mr_error *err)
{
	if (!got)
		(void)mr_nomem(err);
	return got ? MR_OK : MR_NOMEM;
}

/* For TRY: treats this one result as MR_OK, and clears the error.
 *
 *	TRY(mr_unless(driver->record_drop(room, kind, owner, name, err), MR_NOTFOUND, err)); */
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
