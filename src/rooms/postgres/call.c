/* SPDX-License-Identifier: MIT */
/* call.c - a call of a function: its arguments as libpq takes them, and its rows. Both are binary where that spares
 * quoting. */
#include "rooms/postgres/postgres.h"
#include <arpa/inet.h>
#include <inttypes.h>

/* ---- Arguments ---- */

static void
add(struct pg_call *c, const char *value, size_t len, int format)
{
	if (c->n == PG_ARGS_MAX || len > INT32_MAX) {
		c->failed = true;
		return;
	}
	c->values[c->n] = value;
	c->lengths[c->n] = (int)len;
	c->formats[c->n++] = format;
}

static void
add_copy(struct pg_call *c, struct mr_str text, int format)
{
	char *kept = arena_dup(&c->own, text);

	c->failed |= kept == NULL;
	add(c, kept, text.len, format);
}

static void
add_int(struct pg_call *c, int64_t n)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%" PRId64, n);
	add_copy(c, str_of(digits), 0);
}

static void
add_u32(struct buf *out, uint32_t n)
{
	uint32_t net = htonl(n);

	buf_add(out, (struct mr_str){ (const char *)&net, sizeof(net) });
}

void
pg_array(struct pg_call *c, const struct mr_str *v, size_t n, bool bytes)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	add_u32(&out, n > 0 ? 1 : 0); /* dimensions */
	add_u32(&out, 0);             /* no NULL */
	add_u32(&out, bytes ? 17 : 25);
	if (n > 0) {
		add_u32(&out, (uint32_t)n);
		add_u32(&out, 1);
	}
	for (size_t i = 0; i < n; i++) {
		add_u32(&out, (uint32_t)v[i].len);
		buf_add(&out, v[i]);
	}
	c->failed |= !buf_ok(&out);
	if (buf_ok(&out))
		add_copy(c, buf_str(&out), 1);
}

static void
add_names(struct pg_call *c, const struct mr_names *names)
{
	mr_auto(free_ptr) struct mr_str *v = names && names->n ? calloc(names->n, sizeof(*v)) : NULL;

	if (!names || names->n == 0) {
		add(c, NULL, 0, 0);
		return;
	}
	c->failed |= v == NULL;
	for (size_t i = 0; v && i < names->n; i++)
		v[i] = str_of(names->v[i]);
	pg_array(c, v, v ? names->n : 0, false);
}

static void
add_place(struct pg_call *c, const char *box)
{
	bool queue = str_starts(str_of(box), "queue:"), channel = str_starts(str_of(box), "channel:");

	add(c, queue ? "q" : channel ? "c" : "a", 0, 0);
	add(c, queue || channel ? strchr(box, ':') + 1 : box, 0, 0);
}

static void
add_process(struct pg_call *c, const struct mr_process *p)
{
	add_int(c, p->pid);
	add_int(c, (int64_t)p->start);
	add_int(c, (int64_t)p->pid_ns);
	add_copy(c, str_of(p->boot), 0);
}

void
pg_bind(struct pg_call *c, const struct pg_arg *args, size_t n)
{
	for (const struct pg_arg *a = args; a < args + n; a++)
		switch (a->kind) {
		case PG_ARG_TEXT:
			add(c, a->text, 0, 0);
			break;
		case PG_ARG_INT:
			add_int(c, a->number);
			break;
		case PG_ARG_BYTES:
			add(c, a->bytes.ptr ? a->bytes.ptr : "", a->bytes.len, 1);
			break;
		case PG_ARG_NAMES:
			add_names(c, a->names);
			break;
		case PG_ARG_PROCESS:
			add_process(c, a->process);
			break;
		case PG_ARG_PLACE:
			add_place(c, a->text);
			break;
		case PG_ARG_AGAIN:
			c->again = c->n;
			add(c, "f", 0, 0);
			break;
		}
}

void
pg_call_done(struct pg_call *c)
{
	PQclear(c->rows);
	c->rows = NULL;
	arena_free(c->own);
	c->own = NULL;
}

/* ---- Rows, in binary form ---- */

int64_t
pg_get_int(const struct pg_call *c, int row, int column)
{
	const unsigned char *bytes = (const unsigned char *)PQgetvalue(c->rows, row, column);
	int len = PQgetlength(c->rows, row, column);
	uint64_t n = len > 0 && (bytes[0] & 0x80) ? UINT64_MAX : 0;

	for (int i = 0; i < len && i < 8; i++)
		n = n << 8 | bytes[i];
	return (int64_t)n;
}

int64_t
pg_rc(const struct pg_call *c)
{
	return PQntuples(c->rows) > 0 && !PQgetisnull(c->rows, 0, 0) ? pg_get_int(c, 0, 0) : PG_NOTHING;
}

const char *
pg_get_text(const struct pg_call *c, int row, int column)
{
	return PQgetvalue(c->rows, row, column); /* ends in NUL; NULL is "" */
}

struct mr_str
pg_get_bytes(const struct pg_call *c, int row, int column)
{
	return (struct mr_str){ PQgetvalue(c->rows, row, column), (size_t)PQgetlength(c->rows, row, column) };
}

struct mr_process
pg_get_process(const struct pg_call *c, int row, int column)
{
	struct mr_process p = { .pid = pg_get_int(c, row, column),
		.start = (uint64_t)pg_get_int(c, row, column + 1),
		.pid_ns = (uint64_t)pg_get_int(c, row, column + 2) };

	(void)snprintf(p.boot, sizeof(p.boot), "%s", pg_get_text(c, row, column + 3));
	return p;
}
