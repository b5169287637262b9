/* SPDX-License-Identifier: MIT */
/*
 * html.c - text of others in HTML. Mail is data: it passes the fence, which makes control
 * characters and reordering visible, and is escaped then. Nothing else puts text of others into a page.
 */
#include <stdarg.h>

#include "base/format.h"
#include "serve/serve.h"

static void
escape(struct buf *out, struct mr_str text)
{
	static const char *const entities[256] = {
		['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;"
	};

	for (size_t i = 0, from = 0; i <= text.len; i++) {
		const char *entity = i < text.len ? entities[(unsigned char)text.ptr[i]] : NULL;

		if (!entity && i < text.len)
			continue;
		buf_add(out, (struct mr_str){ text.ptr + from, i - from });
		buf_adds(out, entity ? entity : "");
		from = i + 1;
	}
}

static void
fenced(struct buf *out, struct mr_str text, unsigned form)
{
	mr_auto(buf_done) struct buf clean = BUF_INIT;

	(void)fence_add(&clean, text, form | FENCE_PERSON, 0);
	out->failed |= clean.failed;
	escape(out, buf_str(&clean));
}

void
html_text(struct buf *out, struct mr_str text)
{
	fenced(out, text, FENCE_TEXT);
}

void
html_value(struct buf *out, const char *text)
{
	escape(out, str_of(text));
}

void
html_addf(struct buf *out, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	for (const char *p = fmt; *p;) {
		size_t plain = strcspn(p, "%");

		buf_add(out, (struct mr_str){ p, plain });
		p += plain;
		if (!*p)
			break;
		if (p[1] == 's')
			fenced(out, str_of(va_arg(args, const char *)), FENCE_LINE);
		else if (p[1] == 'u')
			buf_addf(out, "%u", va_arg(args, unsigned));
		else if (p[1] == 'z')
			buf_addf(out, "%zu", va_arg(args, size_t));
		else
			buf_addc(out, '%');
		p += p[1] == 'z' ? 3 : p[1] ? 2 : 1;
	}
	va_end(args);
}

void
url_add(struct buf *out, const char *text, const char *plain)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		if ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
		    strchr(plain, *p))
			buf_addc(out, (char)*p);
		else
			buf_addf(out, "%%%02X", *p);
}

void
form_begin(const struct request *req, const char *action)
{
	char csrf[CSRF_LEN + 1];

	req_csrf(req, action, csrf);
	html_addf(req->out, "<form method=\"post\" action=\"%s\"><input type=\"hidden\" name=\"csrf\" value=\"%s\">",
	    action, csrf);
}
