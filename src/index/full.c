/* SPDX-License-Identifier: MIT */
/* full.c - which libraries mailroom-full was built with. */
#include <sqlite3.h>

#include "base/full.h"

const char full_libraries[] = "SQLite " SQLITE_VERSION;
