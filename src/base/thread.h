/* SPDX-License-Identifier: MIT */
/*
 * thread.h - what each thread has for itself. The library is used by programs with threads. The static command has one
 * thread and lives for a millisecond: there the first such variable would cost a page of its own.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#ifdef MR_ONE_SHOT
#define PER_THREAD
#else
#define PER_THREAD _Thread_local
#endif

#endif
