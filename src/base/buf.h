/* SPDX-License-Identifier: MIT */
/*
 * buf.h - the growing buffer, borrowed strings, and an arena for allocations that are freed together.
 *
 * struct buf is sticky: after an allocation failed, appends do nothing and buf_ok() is false, so check once at the end.
 * ptr[len] is always NUL once something was added.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "mailroom.h"
#include <string.h>

struct mr_str { /* borrowed bytes; may contain NUL, need not end in one */
	const char *ptr;
	size_t len;
};
#define STR(literal) ((struct mr_str){ (literal), sizeof(literal) - 1 })

static inline struct mr_str
str_of(const char *z)
{
	return (struct mr_str){ z, strlen(z) };
}
static inline struct mr_str
str_first(struct mr_str s, size_t n) /* its first n bytes */
{
	return (struct mr_str){ s.ptr, n };
}
static inline struct mr_str
str_from(struct mr_str s, size_t n) /* the bytes after them */
{
	return (struct mr_str){ s.ptr + n, s.len - n };
}
static inline struct mr_str
str_between(const char *from, const char *to)
{
	return (struct mr_str){ from, (size_t)(to - from) };
}
size_t str_find(struct mr_str s, char c); /* its first place; s.len: none */
bool str_eq(struct mr_str a, struct mr_str b);
bool str_caseeq(struct mr_str a, struct mr_str b); /* ASCII only */
bool str_starts(struct mr_str s, const char *prefix);
bool str_casestarts(struct mr_str s, const char *prefix); /* ASCII only */
bool str_ends(struct mr_str s, const char *suffix);
struct mr_str str_trim(struct mr_str s);     /* spaces and tabs on both sides */
struct mr_str str_trim_end(struct mr_str s); /* spaces, tabs and line ends at the end */
/* The parts before and after the first such byte. False: there is none. */
bool str_split(struct mr_str s, char separator, struct mr_str *ret_before, struct mr_str *ret_behind);
/* The next line without its end, LF or CRLF; *rest moves on. False: no more. */
bool str_line(struct mr_str *rest, struct mr_str *ret);
/* Takes the part up to the next `separator` (or the end) from the front of *rest. False: *rest is empty. */
bool str_cut(struct mr_str *rest, char separator, struct mr_str *ret);
/* Takes the next word; words are separated by bytes of `separators`. False: there is none. */
bool str_word(struct mr_str *rest, const char *separators, struct mr_str *ret);
/* Is it one of these words? ASCII case does not count. */
bool str_is_among(struct mr_str word, const char *words, const char *separators);
/* Decimal, no sign, no spaces; false on anything else or overflow. */
bool str_to_u64(struct mr_str s, uint64_t *ret);
bool ascii_caseeq(const char *a, const char *b);
static inline bool
ascii_blank(char c)
{
	return c == ' ' || c == '\t';
}
bool ascii_space(char c);
static inline bool
ascii_digit(char c)
{
	return c >= '0' && c <= '9';
}
static inline bool
ascii_alnum(char c)
{
	return ascii_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static inline char
ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

struct buf {
	char *ptr;
	size_t len, cap;
	bool failed;
	bool lent; /* ptr is the caller's array until that is too small */
};
#define BUF_INIT ((struct buf){ 0 })
/* Begins in an array that must live as long, so that a short text needs no allocation. */
#define BUF_IN(array) ((struct buf){ .ptr = (array), .cap = sizeof(array), .lent = true })

void buf_add(struct buf *b, struct mr_str s);
void buf_adds(struct buf *b, const char *z);
static inline void
buf_addc(struct buf *b, char c)
{
	buf_add(b, (struct mr_str){ &c, 1 });
}
void buf_addf(struct buf *b, const char *fmt, ...) MR_PRINTF(2, 3);
bool buf_reserve(struct buf *b, size_t more); /* room for that many further bytes and a NUL */
void buf_clear(struct buf *b);                /* keeps the memory */
void buf_cut(struct buf *b, size_t len);      /* keeps only the first len bytes */
/* Replaces the bytes between two offsets by others, which must not be its own. */
void buf_replace(struct buf *b, size_t from, size_t to, struct mr_str with);
static inline bool
buf_ok(const struct buf *b)
{
	return !b->failed;
}
static inline const char *
buf_z(const struct buf *b) /* "" when empty */
{
	return b->len > 0 ? b->ptr : "";
}
static inline struct mr_str
buf_str(const struct buf *b)
{
	return (struct mr_str){ buf_z(b), b->len };
}
char *buf_take(struct buf *b); /* the caller frees it; b is empty again; NULL if failed */
void buf_done(struct buf *b);

/* ---- Arena: strings that live as long as their owner ---- */
struct arena;                                       /* opaque; NULL is an empty one */
void *arena_alloc(struct arena **a, size_t size);   /* zeroed, aligned; NULL: out of memory */
char *arena_dup(struct arena **a, struct mr_str s); /* NUL-terminated copy */
/* The same for a caller that keeps many: never NULL; *failed is set if there is no memory. */
const char *arena_keep(struct arena **a, struct mr_str s, bool *failed);
/* Makes room for one more in an array in the arena, like array_grow. */
bool arena_grow(struct arena **a, void *array, size_t n, size_t *cap, size_t item);
void arena_free(struct arena *a);

/* ---- Lists of names ---- */
/* Adds a copy, with NULL after it; false: out of memory. Grows only lists that were zero or grown here. */
bool names_add(struct mr_names *n, struct mr_str s);
bool names_addf(struct mr_names *n, const char *fmt, ...) MR_PRINTF(2, 3);
const char *const *names_list(const struct mr_names *n); /* those of names_add, up to NULL */
bool names_has(const struct mr_names *n, const char *s);
void names_sort(struct mr_names *n); /* by bytes */
bool names_find(const struct mr_names *sorted, const char *s);
bool names_add_once(struct mr_names *n, const char *s); /* unless it is in the list; for short lists */

/* An index of the names of a long list. */
struct nameset { /* borrowed names in a hash table; finish with nameset_done */
	const char **v;
	size_t n, cap;
};
bool nameset_has(const struct nameset *s, const char *name);
/* Adds the name to the list, unless it is there; the set borrows the list's copy. False: out of memory. */
bool nameset_add_once(struct nameset *s, struct mr_names *list, const char *name);
void nameset_done(struct nameset *s);
uint64_t hash_bytes(struct mr_str s);

/* ---- Arrays ---- */
/* For comparison functions of qsort: ORDER(a->age, b->age) ?: strcmp(a->name, b->name) */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))
/* Makes room for one more after the n items of an array of *cap items; doubles it. `array` is the address of the
 * pointer: array_grow(&v, n, &cap, sizeof(*v)). False: out of memory, the array is unchanged. */
bool array_grow(void *array, size_t n, size_t *cap, size_t item);

/* Builds a list: items of one size and their strings, in one arena. The result is a struct of the form { void *own;
 * ITEM *v; size_t n; }, like the lists of mailroom.h:
 *
 *	mr_auto(roll_done) struct roll l = { 0 };
 *	... struct mr_token *t = roll_add(&l, sizeof(*t));
 *	return mr_got(roll_give(&l, ret), err); */
struct roll {
	struct arena *own;
	void *v;
	size_t n, cap;
	bool failed; /* it was out of memory once */
};
void *roll_add(struct roll *l, size_t item);         /* one more, zeroed; NULL: out of memory */
const char *roll_str(struct roll *l, const char *z); /* a copy that lives as long; "" for NULL and out of memory */
void roll_sort(struct roll *l, size_t item);         /* by name: a char array at the beginning of each item */
void roll_join(struct roll *l, void *own);           /* takes over the arena of an item */
void *roll_take(struct roll *l);                     /* the memory of the list; l does not own it any more */
bool roll_give(
    struct roll *l, void *ret_list); /* the whole list; false: it was out of memory, and ret_list is unchanged */
void roll_done(struct roll *l);

/* Joins the strings up to NULL, cut off at size - 1 bytes: like snprintf with "%s%s" in a tenth of the time, for code
 * that every command runs. */
void text_join(char *to, size_t size, ...) __attribute__((sentinel));
/* Decimal digits, with leading zeros up to `width`; returns their number. `to` holds 21 bytes, or width + 1. */
size_t text_number(char *to, uint64_t n, size_t width);

void free_ptr(void *pp); /* for mr_auto: frees *(void **)pp */

#endif
