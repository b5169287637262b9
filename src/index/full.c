/* SPDX-License-Identifier: MIT */
/* full.c - which libraries mailroom-full was built with. */
#ifdef MR_POSTGRES
#include <pg_config.h>
#endif
#include <sqlite3.h>
#ifdef MR_ZLIB
#include <zlib.h>
#endif

#include "base/full.h"

const char full_libraries[] = "SQLite " SQLITE_VERSION
#ifdef MR_POSTGRES
			      ", libpq " PG_VERSION
#endif
#ifdef MR_ZLIB
			      ", zlib " ZLIB_VERSION
#endif
    ;
