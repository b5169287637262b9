/* SPDX-License-Identifier: MIT */
/* faults.c - see faults.h. A plan that cannot be understood stops the command: a test that injects nothing
 * proves nothing. */
#include "cli/faults.h"

#include <errno.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "support/sys_break.h"
#include "support/sys_record.h"
#include "support/sys_fault.h"

static int
errno_named(struct mr_str name)
{
	static const struct {
		const char *name;
		int value;
	} known[] = {
		{ "EIO", EIO },
		{ "ENOSPC", ENOSPC },
		{ "EDQUOT", EDQUOT },
		{ "EMFILE", EMFILE },
		{ "EACCES", EACCES },
		{ "EROFS", EROFS },
		{ "EINTR", EINTR },
		{ "EPERM", EPERM },
		{ "ENOENT", ENOENT },
		{ "EXDEV", EXDEV },
		{ "EMLINK", EMLINK },
		{ "EOPNOTSUPP", EOPNOTSUPP },
		{ "EEXIST", EEXIST },
		{ "ENFILE", ENFILE },
		{ "ENOMEM", ENOMEM },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (str_eq(str_of(known[i].name), name))
			return known[i].value;
	}
	return 0;
}

/* Takes the text up to ":" off the front of rest. */
static struct mr_str
take_word(struct mr_str *rest)
{
	const char *colon = rest->len > 0 ? memchr(rest->ptr, ':', rest->len) : NULL;
	size_t len = colon ? (size_t)(colon - rest->ptr) : rest->len;
	struct mr_str word = { rest->ptr, len };

	len += colon ? 1 : 0;
	*rest = (struct mr_str){ rest->ptr + len, rest->len - len };
	return word;
}

static bool
parse_plan(struct mr_str text, struct sys_plan *ret)
{
	struct mr_str word = take_word(&text);
	uint64_t n = 0;

	if (str_eq(word, STR("kill-before")))
		ret->fault = SYS_FAULT_KILL_BEFORE;
	else if (str_eq(word, STR("kill-after")))
		ret->fault = SYS_FAULT_KILL_AFTER;
	else if (str_eq(word, STR("short")))
		ret->fault = SYS_FAULT_SHORT;
	else if (str_eq(word, STR("errno")) || str_eq(word, STR("errno-from"))) {
		ret->fault = SYS_FAULT_ERRNO;
		ret->for_good = str_eq(word, STR("errno-from"));
		ret->error = errno_named(take_word(&text));
		if (!ret->error)
			return false;
	} else if (!str_eq(word, STR("delay")))
		return false;
	if (!str_to_u64(text, &n) || n > 1000000000)
		return false;
	if (ret->fault == SYS_FAULT_NONE)
		ret->delay_us = (unsigned)n;
	else
		ret->at = (unsigned long)n;
	return true;
}

void
faults_from_env(void)
{
	const char *fault = getenv("MAILROOM_FAULT"), *shift = getenv("MAILROOM_TEST_CLOCK_OFFSET_MS");
	const char *record = getenv("MAILROOM_TEST_RECORD"), *how = getenv("MAILROOM_TEST_BREAK");
	const char *boot = getenv("MAILROOM_TEST_BOOT_ID");
	struct sys_plan plan = { 0 };

	if ((record && record[0] && sys_record_to(record) < 0) || (how && how[0] && !sys_break_set(how))) {
		(void)fprintf(stderr, "mailroom: MAILROOM_TEST_RECORD or MAILROOM_TEST_BREAK is not understood\n");
		exit(99);
	}
	if (boot && boot[0])
		boot_id_pretend(boot);
	if (shift && shift[0])
		clock_shift_ms(strtoll(shift, NULL, 10));
	if (!fault || !fault[0])
		return;
	if (!parse_plan(str_of(fault), &plan)) {
		(void)fprintf(stderr, "mailroom: MAILROOM_FAULT '%s' is not understood\n", fault);
		exit(99);
	}
	sys_plan_set(&plan);
}
