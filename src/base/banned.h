/* SPDX-License-Identifier: MIT */
/* banned.h - functions that are banned because a call does not show whether it is safe. Force-included by the build. */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol mktemp localtime gmtime ctime asctime gets strncpy  \
    strncat
#endif
