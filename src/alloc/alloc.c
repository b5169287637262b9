/* SPDX-License-Identifier: MIT */
/*
 * alloc.c - malloc for the static command.
 *
 * A command lives for a millisecond and makes a few hundred small, short-lived objects, mostly one at a time. musl's
 * allocator gives the page of a size class back to the kernel when its last object goes, and maps it again for the
 * next one: two dozen system calls and as many page faults in one send, which is more than all our own work. Here a
 * freed object waits in the list of its class for the next of its size, and fresh ones come from one piece of
 * memory that grows.
 *
 * Sizes are rounded up to a power of two, the header comes on top (our buffers ask for powers of two); what is larger
 * than BIG is mapped and unmapped by itself, so that a large message does not stay with a command that waits for hours.
 * The command has one thread. Built only with musl, and only into the command: the library uses the program's own.
 */
#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SMALLEST 4 /* 16 bytes */
#define CLASSES 14 /* up to 128 KiB */
#define BIG ((size_t)1 << (SMALLEST + CLASSES - 1))
#define PIECE ((size_t)1 << 20)

struct head {                    /* before every object */
	alignas(16) size_t size; /* of the object: a power of two; of big ones what is left of whole pages */
	struct head *next;       /* while it is free */
};
#define HEAD sizeof(struct head)

static struct head *spare[CLASSES];
static alignas(16) unsigned char first_piece[96 << 10]; /* untouched pages of it cost nothing */
static unsigned char *fresh = first_piece, *fresh_end = first_piece + sizeof(first_piece);

static void *
map(size_t size)
{
	void *got = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return got == MAP_FAILED ? NULL : got;
}

static struct head *
new_big(size_t size)
{
	size_t whole = (HEAD + size + 4095) & ~(size_t)4095;
	struct head *h = map(whole);

	if (h != NULL)
		h->size = whole - HEAD;
	return h;
}

/* What is left of the old piece is forgotten: at most one object's worth, once a megabyte. */
static struct head *
new_small(size_t size)
{
	size_t whole = HEAD + size;

	if ((size_t)(fresh_end - fresh) < whole) {
		fresh = map(PIECE);
		fresh_end = fresh != NULL ? fresh + PIECE : NULL;
		if (fresh == NULL)
			return NULL;
	}
	struct head *h = (struct head *)(void *)fresh;
	fresh += whole;
	h->size = size;
	return h;
}

static unsigned
class_of(size_t size)
{
	unsigned class = 0;

	while (((size_t)1 << (SMALLEST + class)) < size)
		class ++;
	return class;
}

/* *ret_clean: the bytes are zero. */
static void *
allocate(size_t n, int *ret_clean)
{
	struct head *h;

	*ret_clean = 1;
	if (n > SIZE_MAX / 2) {
		errno = ENOMEM;
		return NULL;
	}
	if (n > BIG) {
		h = new_big(n);
	} else {
		unsigned class = class_of(n);
		h = spare[class];
		*ret_clean = h == NULL;
		if (h != NULL)
			spare[class] = h->next;
		else
			h = new_small((size_t)1 << (SMALLEST + class));
	}
	if (h == NULL)
		errno = ENOMEM;
	return h != NULL ? h + 1 : NULL;
}

void *
malloc(size_t n)
{
	int clean;

	return allocate(n, &clean);
}

void *
calloc(size_t count, size_t size)
{
	size_t n;
	int clean;

	if (__builtin_mul_overflow(count, size, &n)) {
		errno = ENOMEM;
		return NULL;
	}
	void *got = allocate(n, &clean);
	if (got != NULL && !clean)
		memset(got, 0, n);
	return got;
}

void
free(void *p)
{
	if (p == NULL)
		return;
	struct head *h = (struct head *)p - 1;
	if (h->size > BIG) {
		int saved = errno;
		(void)munmap(h, HEAD + h->size);
		errno = saved;
		return;
	}
	unsigned class = class_of(h->size);
	h->next = spare[class];
	spare[class] = h;
}

void *
realloc(void *p, size_t n)
{
	if (p == NULL)
		return malloc(n);
	size_t have = ((struct head *)p - 1)->size;
	/* A large object that shrinks a lot moves, so that its pages go back. */
	if (n <= have && (have <= BIG || n > have / 2))
		return p;
	void *moved = malloc(n);
	if (moved == NULL)
		return NULL;
	memcpy(moved, p, n < have ? n : have);
	free(p);
	return moved;
}
