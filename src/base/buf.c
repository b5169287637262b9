/* SPDX-License-Identifier: MIT */
/* buf.c - borrowed strings, the growing buffer, the arena, lists and sets of names. */
#include "base/buf.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Borrowed strings ---- */

size_t
str_find(struct mr_str s, char c)
{
	const char *at = s.len > 0 ? memchr(s.ptr, c, s.len) : NULL;

	return at ? (size_t)(at - s.ptr) : s.len;
}

bool
str_eq(struct mr_str a, struct mr_str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool
str_casestarts(struct mr_str s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.len >= n && str_caseeq(str_first(s, n), str_of(prefix));
}

bool
str_ends(struct mr_str s, const char *suffix)
{
	size_t n = strlen(suffix);

	return s.len >= n && str_eq(str_from(s, s.len - n), str_of(suffix));
}

bool
ascii_space(char c)
{
	return ascii_blank(c) || c == '\n' || c == '\r';
}

bool
str_caseeq(struct mr_str a, struct mr_str b)
{
	size_t i = 0;

	while (a.len == b.len && i < a.len && ascii_lower(a.ptr[i]) == ascii_lower(b.ptr[i]))
		i++;
	return a.len == b.len && i == a.len;
}

bool
ascii_caseeq(const char *a, const char *b)
{
	while (*a && ascii_lower(*a) == ascii_lower(*b)) /* usually it ends at the first byte */
		a++, b++;
	return *a == *b;
}

bool
str_starts(struct mr_str s, const char *prefix)
{
	size_t i = 0;

	while (prefix[i] && i < s.len && s.ptr[i] == prefix[i]) /* usually it ends at the first byte */
		i++;
	return prefix[i] == '\0';
}

struct mr_str
str_trim(struct mr_str s)
{
	while (s.len > 0 && ascii_blank(s.ptr[0]))
		s = str_from(s, 1);
	while (s.len > 0 && ascii_blank(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

struct mr_str
str_trim_end(struct mr_str s)
{
	while (s.len > 0 && ascii_space(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

bool
str_split(struct mr_str s, char separator, struct mr_str *ret_before, struct mr_str *ret_behind)
{
	size_t at = str_find(s, separator);

	if (at == s.len)
		return false;
	*ret_before = str_first(s, at);
	*ret_behind = str_from(s, at + 1);
	return true;
}

bool
str_line(struct mr_str *rest, struct mr_str *ret)
{
	if (!str_cut(rest, '\n', ret))
		return false;
	if (ret->len > 0 && ret->ptr[ret->len - 1] == '\r')
		ret->len--;
	return true;
}

bool
str_cut(struct mr_str *rest, char separator, struct mr_str *ret)
{
	size_t at = str_find(*rest, separator);

	if (rest->len == 0)
		return false;
	*ret = str_first(*rest, at);
	*rest = str_from(*rest, at < rest->len ? at + 1 : at);
	return true;
}

static bool
is_one_of(char c, const char *set)
{
	while (*set && *set != c)
		set++;
	return *set;
}

bool
str_word(struct mr_str *rest, const char *separators, struct mr_str *ret)
{
	size_t from = 0, end;

	while (from < rest->len && is_one_of(rest->ptr[from], separators))
		from++;
	for (end = from; end < rest->len && !is_one_of(rest->ptr[end], separators); end++)
		;
	*ret = (struct mr_str){ rest->ptr + from, end - from };
	*rest = str_from(*rest, end);
	return ret->len > 0;
}

bool
str_is_among(struct mr_str word, const char *words, const char *separators)
{
	struct mr_str rest = str_of(words), one;

	while (str_word(&rest, separators, &one))
		if (str_caseeq(one, word))
			return true;
	return false;
}

bool
str_to_u64(struct mr_str s, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < s.len; i++)
		if (!ascii_digit(s.ptr[i]) || __builtin_mul_overflow(value, 10U, &value) ||
		    __builtin_add_overflow(value, (unsigned)(s.ptr[i] - '0'), &value))
			return false;
	if (s.len > 0)
		*ret = value;
	return s.len > 0;
}

/* Most pieces of text are short, and the memcpy of a small C library has the setup cost of a long copy for all of
 * them. */
static void
copy(char *to, const char *from, size_t n)
{
	if (n < 8 || n > 64) {
		if (n > 64)
			memcpy(to, from, n);
		else
			for (size_t i = 0; i < n; i++)
				to[i] = from[i];
		return;
	}
	for (size_t i = 0; i < n - 8; i += 8)
		memcpy(to + i, from + i, 8);
	memcpy(to + n - 8, from + n - 8, 8);
}

/* ---- The growing buffer ---- */

bool
buf_reserve(struct buf *b, size_t more)
{
	size_t need;

	if (b->failed || __builtin_add_overflow(b->len, more, &need) || __builtin_add_overflow(need, 1U, &need)) {
		b->failed = true;
		return false;
	}
	if (need <= b->cap)
		return true;
	size_t cap = b->cap < 64 ? 64 : b->cap;
	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : cap * 2;
	char *grown = realloc(b->lent ? NULL : b->ptr, cap);
	if (grown == NULL) {
		b->failed = true;
		return false;
	}
	if (b->lent)
		memcpy(grown, b->ptr, b->len);
	b->lent = false;
	b->ptr = grown;
	b->cap = cap;
	b->ptr[b->len] = '\0';
	return true;
}

void
buf_add(struct buf *b, struct mr_str s)
{
	if (!buf_reserve(b, s.len))
		return;
	copy(b->ptr + b->len, s.ptr, s.len);
	b->len += s.len;
	b->ptr[b->len] = '\0';
}

void
buf_adds(struct buf *b, const char *z)
{
	buf_add(b, str_of(z));
}

void
buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list args, again;

	va_start(args, fmt);
	va_copy(again, args);
	int n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (n < 0)
		b->failed = true;
	else if (buf_reserve(b, (size_t)n)) {
		(void)vsnprintf(b->ptr + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

void
buf_cut(struct buf *b, size_t len)
{
	b->len = len;
	if (b->ptr != NULL)
		b->ptr[len] = '\0';
}

void
buf_replace(struct buf *b, size_t from, size_t to, struct mr_str with)
{
	size_t behind = b->len - to;

	if (!buf_reserve(b, with.len))
		return;
	memmove(b->ptr + from + with.len, b->ptr + to, behind);
	if (with.len > 0)
		memcpy(b->ptr + from, with.ptr, with.len);
	buf_cut(b, from + with.len + behind);
}

void
buf_clear(struct buf *b)
{
	buf_cut(b, 0);
	b->failed = false;
}

char *
buf_take(struct buf *b)
{
	char *taken = NULL;

	if (b->lent)
		b->cap = 0; /* a borrowed array cannot be given away */
	if (buf_reserve(b, 0)) {
		taken = b->ptr;
		b->ptr = NULL;
	}
	buf_done(b);
	return taken;
}

void
buf_done(struct buf *b)
{
	if (!b->lent)
		free(b->ptr);
	*b = BUF_INIT;
}

/* ---- Arena ---- */

#define ARENA_FIRST 640  /* most arenas hold a few names */
#define ARENA_BLOCK 4000 /* the second block is twice the first, and so on, up to this size */

struct arena { /* one block; the newest is first */
	struct arena *next;
	size_t used, size;
	alignas(max_align_t) unsigned char bytes[];
};

void *
arena_alloc(struct arena **a, size_t size)
{
	const size_t align = alignof(max_align_t);

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + align - 1) / align * align;
	if (*a == NULL || (*a)->size - (*a)->used < size) {
		size_t twice = *a ? (*a)->size * 2 : ARENA_FIRST, usual = twice < ARENA_BLOCK ? twice : ARENA_BLOCK;
		size_t room = size > usual ? size : usual;
		struct arena *block = calloc(1, sizeof(*block) + room);
		if (block == NULL)
			return NULL;
		block->size = room;
		block->next = *a;
		*a = block;
	}
	void *got = (*a)->bytes + (*a)->used;
	(*a)->used += size;
	return got;
}

char *
arena_dup(struct arena **a, struct mr_str s)
{
	if (s.len == SIZE_MAX)
		return NULL;
	char *own = arena_alloc(a, s.len + 1);
	if (own != NULL)
		copy(own, s.ptr, s.len);
	return own;
}

const char *
arena_keep(struct arena **a, struct mr_str s, bool *failed)
{
	const char *copy = s.len > 0 ? arena_dup(a, s) : "";

	*failed |= !copy;
	return copy ? copy : "";
}

bool
arena_grow(struct arena **a, void *array, size_t n, size_t *cap, size_t item)
{
	void *old;

	if (n < *cap)
		return true;
	size_t more = *cap ? 2 * *cap : item < 64 ? 16 : 4;
	void *grown = arena_alloc(a, more * item);

	if (!grown)
		return false;
	memcpy(&old, array, sizeof(old));
	if (n > 0)
		memcpy(grown, old, n * item);
	memcpy(array, &grown, sizeof(grown));
	*cap = more;
	return true;
}

void
arena_free(struct arena *a)
{
	while (a != NULL) {
		struct arena *next = a->next;
		free(a);
		a = next;
	}
}

/* ---- Lists of names ---- */

bool
names_add(struct mr_names *n, struct mr_str s)
{
	mr_auto(free_ptr) char *copy = malloc(s.len + 1);

	if (!copy)
		return false;
	if ((n->n & (n->n + 1)) == 0) { /* the list stores no capacity: with its NULL it doubles at each power of two */
		char **grown = realloc(n->v, 2 * (n->n + 1) * sizeof(*n->v));

		if (!grown)
			return false;
		n->v = grown;
	}
	if (s.len > 0)
		memcpy(copy, s.ptr, s.len);
	copy[s.len] = '\0';
	n->v[n->n++] = copy;
	n->v[n->n] = NULL;
	copy = NULL;
	return true;
}

const char *const *
names_list(const struct mr_names *n)
{
	static const char *const none[] = { NULL };

	return n->n > 0 ? (const char *const *)n->v : none;
}

bool
names_addf(struct mr_names *n, const char *fmt, ...)
{
	mr_auto(free_ptr) char *text = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	return text && names_add(n, str_of(text));
}

bool
names_has(const struct mr_names *n, const char *s)
{
	for (size_t i = 0; i < n->n; i++)
		if (strcmp(n->v[i], s) == 0)
			return true;
	return false;
}

bool
names_add_once(struct mr_names *n, const char *s)
{
	return names_has(n, s) || names_add(n, str_of(s));
}

bool
array_grow(void *array, size_t n, size_t *cap, size_t item)
{
	void *old;

	if (n < *cap)
		return true;
	memcpy(&old, array, sizeof(old));
	size_t more = *cap ? 2 * *cap : item < 64 ? 16 : 4;
	void *grown = reallocarray(old, more, item);

	if (!grown)
		return false;
	memcpy(array, &grown, sizeof(grown));
	*cap = more;
	return true;
}

void *
roll_add(struct roll *l, size_t item)
{
	if (!arena_grow(&l->own, &l->v, l->n, &l->cap, item)) {
		l->failed = true;
		return NULL;
	}
	return (char *)l->v + item * l->n++;
}

const char *
roll_str(struct roll *l, const char *z)
{
	return arena_keep(&l->own, str_of(z ? z : ""), &l->failed);
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

void
roll_sort(struct roll *l, size_t item)
{
	if (l->n > 1)
		qsort(l->v, l->n, item, by_name);
}

void
roll_join(struct roll *l, void *own)
{
	struct arena *last = own;

	if (!last)
		return;
	while (last->next)
		last = last->next;
	last->next = l->own;
	l->own = own;
}

void *
roll_take(struct roll *l)
{
	void *own = l->own;

	l->own = NULL;
	return own;
}

void
roll_done(struct roll *l)
{
	arena_free(l->own);
}

bool
roll_give(struct roll *l, void *ret_list)
{
	struct mr_agents list = { .own = l->own, .v = l->v, .n = l->n }; /* the common layout of all lists */

	if (l->failed)
		return false;
	memcpy(ret_list, &list, sizeof list);
	*l = (struct roll){ 0 };
	return true;
}

void
mr_list_done(void *list)
{
	void *own;

	if (!list)
		return;
	memcpy(&own, list, sizeof(own)); /* the first member of every list */
	arena_free(own);
	memset(list, 0, sizeof(own));
}

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void
names_sort(struct mr_names *n)
{
	if (n->n > 1)
		qsort(n->v, n->n, sizeof *n->v, by_bytes);
}

bool
names_find(const struct mr_names *sorted, const char *s)
{
	return sorted->n > 0 && bsearch(&s, sorted->v, sorted->n, sizeof *sorted->v, by_bytes) != NULL;
}

void
mr_names_done(struct mr_names *names)
{
	if (names == NULL)
		return;
	for (size_t i = 0; i < names->n; i++)
		free(names->v[i]);
	free(names->v);
	*names = (struct mr_names){ 0 };
}

/* ---- Sets, for a fan-out to tens of thousands ---- */

uint64_t
hash_bytes(struct mr_str s)
{
	uint64_t h = UINT64_C(14695981039346656037);

	/* FNV-1a: the names are those of the room's own agents, so nobody forces collisions. */
	for (size_t i = 0; i < s.len; i++)
		h = (h ^ (unsigned char)s.ptr[i]) * UINT64_C(1099511628211);
	return h;
}

/* The slot of the name, or the free one where it belongs. There is always a free one. */
static const char **
slot_of(const struct nameset *s, const char *name)
{
	size_t at = (size_t)hash_bytes(str_of(name)) & (s->cap - 1);

	while (s->v[at] && strcmp(s->v[at], name) != 0)
		at = (at + 1) & (s->cap - 1);
	return &s->v[at];
}

bool
nameset_has(const struct nameset *s, const char *name)
{
	return s->cap > 0 && *slot_of(s, name) != NULL;
}

bool
nameset_add_once(struct nameset *s, struct mr_names *list, const char *name)
{
	if (s->cap > 0 && *slot_of(s, name))
		return true;
	if (!names_add(list, str_of(name)))
		return false;
	if (2 * (s->n + 1) > s->cap) {
		struct nameset bigger = { .n = s->n, .cap = s->cap ? 2 * s->cap : 16 };

		bigger.v = calloc(bigger.cap, sizeof(*bigger.v));
		if (!bigger.v)
			return false;
		for (size_t i = 0; i < s->cap; i++)
			if (s->v[i])
				*slot_of(&bigger, s->v[i]) = s->v[i];
		free(s->v);
		*s = bigger;
	}
	name = list->v[list->n - 1];
	*slot_of(s, name) = name;
	s->n++;
	return true;
}

void
nameset_done(struct nameset *s)
{
	free(s->v);
	*s = (struct nameset){ 0 };
}

/* ---- Text and numbers ---- */

void
text_join(char *to, size_t size, ...)
{
	size_t at = 0;
	va_list parts;

	va_start(parts, size);
	for (const char *part; (part = va_arg(parts, const char *)) != NULL;) {
		size_t n = strnlen(part, size - 1 - at);

		copy(to + at, part, n);
		at += n;
	}
	va_end(parts);
	to[at] = '\0';
}

size_t
text_number(char *to, uint64_t n, size_t width)
{
	size_t digits = 1;

	for (uint64_t rest = n; rest >= 10; rest /= 10)
		digits++;
	if (digits < width)
		digits = width;
	to[digits] = '\0';
	for (size_t i = digits; i-- > 0; n /= 10)
		to[i] = (char)('0' + n % 10);
	return digits;
}

void
free_ptr(void *pp)
{
	void **slot = pp;

	free(*slot);
	*slot = NULL;
}
