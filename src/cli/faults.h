/* SPDX-License-Identifier: MIT */
/*
 * faults.h - test builds only (-Dfault_env=true): MAILROOM_FAULT makes a disk-touching call fail or kills the command
 * there, MAILROOM_TEST_CLOCK_OFFSET_MS shifts its clock, MAILROOM_TEST_RECORD names a file for the record of its calls
 * (tests/support/sys_record.h), MAILROOM_TEST_BREAK makes it wrong on purpose (tests/support/sys_break.h),
 * MAILROOM_TEST_BOOT_ID makes it believe in another boot. In every other build this does nothing.
 *
 *	MAILROOM_FAULT=kill-before:N  kill-after:N  errno:NAME:N  errno-from:NAME:N  short:N  delay:MICROSECONDS
 */
#ifndef CLI_FAULTS_H
#define CLI_FAULTS_H

#ifdef MR_FAULT_ENV
void faults_from_env(void);
#else
static inline void
faults_from_env(void)
{
}
#endif

#endif
