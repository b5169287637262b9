/* SPDX-License-Identifier: MIT */
/* format.c - see format.h. */
#include "base/format.h"

#include "base/error.h"

#include <assert.h>

/* What stands in the format itself, up to the next conversion. */
static struct mr_str
take_ours(struct format *f)
{
	const char *start = f->rest;

	for (; *f->rest && *f->rest != '%'; f->before = *f->rest++) {
		char c = *f->rest;

		if (c == f->quote)
			f->quote = '\0';
		else if (!f->quote && (c == '\'' || c == '"') && !ascii_alnum(f->before))
			f->quote = c;
	}
	return (struct mr_str){ start, (size_t)(f->rest - start) };
}

static size_t
take_number(struct format *f)
{
	size_t n = 0;

	for (; *f->rest >= '0' && *f->rest <= '9'; f->rest++)
		n = n * 10 + (size_t)(*f->rest - '0');
	return n;
}

static bool
takes(struct format *f, const char *word)
{
	bool there = strncmp(f->rest, word, strlen(word)) == 0;

	f->rest += there ? strlen(word) : 0;
	return there;
}

/* False: a conversion that we do not know. */
static bool
print_number(struct format *f, va_list *args, struct format_piece *ret)
{
	bool size = takes(f, "z"), twice = takes(f, "ll"), once = takes(f, "l");
	char kind = *f->rest;
	int len;

	if (!kind || !strchr("duco", kind))
		return false;
	f->rest++;
	if (kind == 'd') {
		long long n = twice ? va_arg(*args, long long) : once ? va_arg(*args, long) : va_arg(*args, int);

		len = snprintf(ret->number, sizeof ret->number, "%lld", n);
	} else {
		unsigned long long n = twice  ? va_arg(*args, unsigned long long)
				       : once ? va_arg(*args, unsigned long)
				       : size ? va_arg(*args, size_t)
					      : va_arg(*args, unsigned);

		if (kind == 'c')
			len = snprintf(ret->number, sizeof ret->number, "%c", (int)n);
		else if (kind == 'o')
			len = snprintf(ret->number, sizeof ret->number, "%0*llo", (int)ret->width, n);
		else
			len = snprintf(ret->number, sizeof ret->number, "%llu", n);
	}
	ret->width = 0;
	ret->text = (struct mr_str){ ret->number, len > 0 ? (size_t)len : 0 };
	return true;
}

bool
format_next(struct format *f, va_list *args, struct format_piece *ret)
{
	*ret = (struct format_piece){ .precision = SIZE_MAX };
	if (!*f->rest)
		return false;
	if (*f->rest != '%') {
		ret->text = take_ours(f);
		return true;
	}
	const char *start = f->rest++;

	if (takes(f, "%")) {
		f->before = '%';
		ret->text = STR("%");
		return true;
	}
	ret->left = takes(f, "-");
	ret->width = take_number(f);
	if (takes(f, ".")) {
		ret->counted = takes(f, "*");
		ret->precision = ret->counted ? (size_t)va_arg(*args, int) : take_number(f);
	}
	f->before = 's'; /* "%s's" has an apostrophe */
	ret->quote = f->quote;
	ret->argument = takes(f, "s");
	if (ret->argument) {
		const char *text = va_arg(*args, const char *);

		ret->text = text ? (struct mr_str){ text, ret->counted ? ret->precision : 0 } : STR("");
	} else if (!print_number(f, args, ret)) { /* the rest stands as it is: no argument is taken for another */
		*ret = (struct format_piece){ .text = str_of(start) };
		f->rest = start + strlen(start);
	}
	return true;
}

static void
put_piece(struct buf *out, const struct format_piece *piece)
{
	struct mr_str s = piece->text;

	if (piece->argument && !piece->counted)
		s.len = strnlen(s.ptr, piece->precision);
	for (size_t i = s.len; !piece->left && i < piece->width; i++)
		buf_addc(out, ' ');
	for (size_t i = 0; i < s.len && s.ptr[i]; i++) {
		if (piece->argument && piece->quote && (s.ptr[i] == piece->quote || s.ptr[i] == '\\'))
			buf_addc(out, '\\');
		buf_addc(out, s.ptr[i]);
	}
	for (size_t i = s.len; piece->left && i < piece->width; i++)
		buf_addc(out, ' ');
}

/* Takes the arguments of all of fmt, also when the text had to be cut off. */
static void
print_all(char *ret, size_t size, const char *fmt, va_list *args)
{
	char space[1024]; /* for most texts, so that a lack of memory can still be told */
	mr_auto(buf_done) struct buf out = BUF_IN(space);
	struct format f = { .rest = fmt };
	struct format_piece piece;
	bool whole = true;
	char quote = '\0'; /* that was open where the text was cut off */

	while (format_next(&f, args, &piece)) {
		if (!whole)
			continue;
		put_piece(&out, &piece);
		whole = out.len < size && !out.failed;
		quote = piece.quote;
	}
	size_t len = out.len < size ? out.len : size - 1;

	memcpy(ret, buf_z(&out), len);
	if (!whole && quote && len > 0) /* what is cut off within quotes must not leave them open */
		len--;
	while (!whole && len > 0 && ((unsigned char)ret[len - 1] & 0xC0) == 0x80)
		len--;
	if (!whole && len > 0 && (unsigned char)ret[len - 1] >= 0xC0)
		len--;
	if (!whole && quote && len + 1 < size)
		ret[len++] = quote;
	ret[len] = '\0';
}

void
format_print(char *ret, size_t size, const char *fmt, va_list args)
{
	va_list own;

	va_copy(own, args); /* a parameter of this type cannot be pointed to everywhere */
	print_all(ret, size, fmt, &own);
	va_end(own);
}

void
format_lines(char *ret, size_t size, char *ret_rest, size_t rest_size, const char *fmt, va_list args)
{
	size_t len = strcspn(fmt, "\n");
	char line[512];
	va_list own;

	assert(len < sizeof(line));
	memcpy(line, fmt, len);
	line[len] = '\0';
	va_copy(own, args);
	print_all(ret, size, line, &own);
	if (fmt[len] == '\n')
		print_all(ret_rest, rest_size, fmt + len + 1, &own);
	va_end(own);
}

void
format_addf(struct buf *out, const char *fmt, ...)
{
	struct format f = { .rest = fmt };
	struct format_piece piece;
	va_list args;

	va_start(args, fmt);
	while (format_next(&f, &args, &piece))
		put_piece(out, &piece);
	va_end(args);
}
