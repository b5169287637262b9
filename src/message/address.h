/* SPDX-License-Identifier: MIT */
/*
 * address.h - the grammar of an agent's address: components of 1-64 bytes [A-Za-z0-9._+-], not beginning with ".", none
 * of the reserved names (tmp new cur held lives agent dovecot-keywords, any case), 1-4 of them joined by "/", 160
 * bytes. In a name of another system each byte that is not allowed becomes %XX (foreign_to_address).
 */
#ifndef MESSAGE_ADDRESS_H
#define MESSAGE_ADDRESS_H

#include "base/buf.h"

enum mr_rc address_check(struct mr_str address, struct mr_error *err);
/* Removes one trailing slash ("mayor/"). ret has room for MR_ADDRESS_MAX + 1. */
enum mr_rc address_normal(struct mr_str address, char *ret, struct mr_error *err);
/* Splits "agent@room" at the last @; room is empty if there is none. */
void address_split(struct mr_str address, struct mr_str *ret_agent, struct mr_str *ret_room);
/* Can it be in a list without quotes: no space, control character, comma, semicolon, bracket, quote or backslash? */
bool address_plain(struct mr_str address);
/* A mailbox list as in To: ("A B" <a@x>, b@y), from which address_next takes the bare addresses. */
struct address_list {
	struct mr_str rest;
	bool groups; /* a colon may name a group */
};
struct address_list address_list(struct mr_str value);
bool address_next(struct address_list *list, struct mr_str *ret); /* false: no more */

/* ---- Names that other systems give their agents ----
 *
 * Bytes that an address cannot have are written %XX (upper case, one for each byte): "Old Bob" is Old%20Bob. The
 * conversion is one to one: only bytes that need it are escaped, and only those are unescaped. */
/* MR_REFUSED: empty, or longer than an address can be. "/" stays a slash. ret has room for MR_ADDRESS_MAX + 1. */
enum mr_rc foreign_to_address(struct mr_str name, char *ret, struct mr_error *err);
/* Adds the name of that address to out. */
void foreign_from_address(const char *address, struct buf *out);

#endif
