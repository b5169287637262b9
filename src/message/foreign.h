/* SPDX-License-Identifier: MIT */
/*
 * foreign.h - names that other systems give their agents, as addresses and back.
 *
 * What an address cannot hold is written %XX (upper case, one for each byte): "Old Bob" is Old%20Bob. The way there and
 * back is one to one: nothing is escaped that need not be, and only what need be is unescaped.
 */
#ifndef MESSAGE_FOREIGN_H
#define MESSAGE_FOREIGN_H

#include "base/buf.h"

/* MR_REFUSED: empty, or longer than an address can be. "/" stays a slash. ret has room for MR_ADDRESS_MAX + 1. */
enum mr_rc foreign_to_address(struct mr_str name, char *ret, struct mr_error *err);
/* The name behind an address; added to out. */
void foreign_from_address(const char *address, struct buf *out);

#endif
