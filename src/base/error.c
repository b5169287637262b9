/* SPDX-License-Identifier: MIT */
/* error.c - the sentence for people that goes with an enum mr_rc. */
#include "base/error.h"
#include "base/full.h"

#include "base/format.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum mr_rc
mr_fail(struct mr_error *err, enum mr_rc code, const char *fmt, ...)
{
	struct mr_error fresh = { .code = code }; /* an argument may point into the old one */
	va_list args;

	va_start(args, fmt);
	format_lines(fresh.message, sizeof(fresh.message), fresh.hint, sizeof(fresh.hint), fmt, args);
	va_end(args);
	*err = fresh;
	return code;
}

static const char *
hint_of_errno(int error)
{
	switch (error) {
	case EROFS:
	case EACCES:
	case EPERM:
		return "the file system, its owner or a sandbox refuses this: in a harness sandbox add the "
		       "room's folder to its writable folders";
	case ENOSPC:
	case EDQUOT:
		return "free some space, then repeat the command";
	case EFBIG:
		return "the limit on file size was reached: raise it with 'ulimit -f', then repeat the command";
	case EXDEV:
		return "a sandbox forbids moving files between folders of the room, or a mount is inside the room: "
		       "use the room outside of that sandbox, on one file system";
	case EMFILE:
	case ENFILE:
		return "too many open files: raise the limit with 'ulimit -n', then repeat the command";
	default:
		return "";
	}
}

/* "<what>: <reason>"; if both do not fit, the subject is cut and the reason stays */
enum mr_rc
mr_fail_errno(struct mr_error *err, const char *fmt, ...)
{
	struct mr_error fresh = { .sys_errno = errno, .code = errno == ENOMEM ? MR_NOMEM : MR_IO };
	const char *reason = strerror(fresh.sys_errno);
	size_t reason_len = strlen(reason) < 100 ? strlen(reason) : 100;
	va_list args;

	if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
		fresh.code = MR_FULL;
	va_start(args, fmt);
	format_print(fresh.message, sizeof(fresh.message) - reason_len - 2, fmt, args);
	va_end(args);
	size_t len = strlen(fresh.message);
	(void)snprintf(fresh.message + len, sizeof(fresh.message) - len, ": %.*s", (int)reason_len, reason);
	(void)snprintf(fresh.hint, sizeof(fresh.hint), "%s", hint_of_errno(fresh.sys_errno));
	*err = fresh;
	return fresh.code;
}

enum mr_rc
mr_wrap(struct mr_error *err, const char *fmt, ...)
{
	char text[sizeof(err->message)];
	size_t old = strlen(err->message);
	size_t space = sizeof(text) - old > 3 ? sizeof(text) - old - 2 : 1;
	va_list args;

	va_start(args, fmt);
	format_print(text, space, fmt, args);
	va_end(args);
	size_t len = strlen(text);
	if (len > 0) { /* len + 2 + old < sizeof, by the choice of `space` */
		memmove(err->message + len + 2, err->message, old + 1);
		memcpy(err->message, text, len);
		memcpy(err->message + len, ": ", 2);
	}
	return err->code;
}

enum mr_rc
mr_hint(struct mr_error *err, const char *fmt, ...)
{
	char hint[sizeof(err->hint)] = "";
	va_list args;

	va_start(args, fmt);
	format_print(hint, sizeof(hint), fmt, args);
	va_end(args);
	memcpy(err->hint, hint, sizeof(hint));
	return err->code;
}

enum mr_rc
mr_nomem(struct mr_error *err)
{
	enum mr_rc rc = mr_fail(err, MR_NOMEM, "out of memory");

	err->sys_errno = ENOMEM;
	return rc;
}

const char *
mr_rc_word(enum mr_rc rc)
{
	static const char *const words[] = {
		[MR_OK] = "ok",
		[MR_EMPTY] = "empty",
		[MR_NOTFOUND] = "not-found",
		[MR_UNTRUSTED] = "untrusted",
		[MR_REFUSED] = "refused",
		[MR_UNSUPPORTED] = "unsupported",
		[MR_EXISTS] = "exists",
		[MR_BUSY] = "busy",
		[MR_INDOUBT] = "in-doubt",
		[MR_FULL] = "full",
		[MR_CORRUPT] = "corrupt",
		[MR_NOMEM] = "no-memory",
		[MR_IO] = "io",
		[MR_STOPPED] = "stopped",
	};
	const size_t n = sizeof(words) / sizeof(words[0]);

	return (size_t)rc < n && words[rc] ? words[rc] : "unknown";
}

bool full_missed;
