/* SPDX-License-Identifier: MIT */
/*
 * html.c - the text of HTML mail: tags are removed, blocks become lines, links keep their target, scripts and styles
 * are removed with their content. The layout need not be exact, but no text that a reader would see may be missing.
 */
#include "base/text.h"
#include "message/parts.h"

struct page {
	struct buf *out;
	size_t start;    /* start of this page in out */
	unsigned breaks; /* line ends to be written before the next text */
	bool space;      /* a blank to be written before the next text */
	bool pre;
	struct mr_str skip; /* no text is shown inside of this tag; "": all is shown */
	struct buf link;
};

static void
put(struct page *p, struct mr_str text)
{
	bool begun = p->out->len > p->start;

	for (; begun && p->breaks > 0; p->breaks--)
		buf_addc(p->out, '\n');
	if (begun && p->space && p->out->ptr[p->out->len - 1] != '\n')
		buf_addc(p->out, ' ');
	p->breaks = 0;
	p->space = false;
	buf_add(p->out, text);
}

static void
put_char(struct page *p, uint32_t c)
{
	put(p, STR(""));
	utf8_add(p->out, c ? c : 0xfffd);
}

/* "&name;" or "&#...;" at the front of s: adds its character, returns its length; 0: none. */
static size_t
entity(struct page *p, struct mr_str s)
{
	static const struct {
		const char *name;
		uint32_t is;
	} known[] = { { "amp", '&' }, { "lt", '<' }, { "gt", '>' }, { "quot", '"' }, { "apos", '\'' }, { "nbsp", ' ' },
		{ "mdash", 0x2014 }, { "ndash", 0x2013 }, { "hellip", 0x2026 }, { "bull", 0x2022 }, { "euro", 0x20ac },
		{ "lsquo", 0x2018 }, { "rsquo", 0x2019 }, { "ldquo", 0x201c }, { "rdquo", 0x201d }, { "copy", 0xa9 },
		{ "auml", 0xe4 }, { "ouml", 0xf6 }, { "uuml", 0xfc }, { "Auml", 0xc4 }, { "Ouml", 0xd6 },
		{ "Uuml", 0xdc }, { "szlig", 0xdf }, { "eacute", 0xe9 }, { "egrave", 0xe8 }, { "agrave", 0xe0 } };
	const char *end = memchr(s.ptr, ';', s.len < 12 ? s.len : 12);
	struct mr_str name = { s.ptr + 1, end ? (size_t)(end - s.ptr) - 1 : 0 };
	uint32_t c = 0;

	if (name.len < 2)
		return 0;
	if (name.ptr[0] == '#') {
		bool hex = name.ptr[1] == 'x' || name.ptr[1] == 'X';

		for (size_t i = hex ? 2 : 1; i < name.len; i++) {
			int digit = hex_digit(name.ptr[i]);

			if (digit < 0 || (!hex && digit > 9))
				return 0;
			c = c > 0x110000 ? c : c * (hex ? 16 : 10) + (uint32_t)digit;
		}
		put_char(p, c == 0xa0 ? ' ' : c);
		return name.len + 2;
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (str_eq(name, str_of(known[i].name))) {
			put_char(p, known[i].is);
			return name.len + 2;
		}
	return 0;
}

/* The target of <a href="...">, if it is a link elsewhere. */
static void
note_link(struct page *p, struct mr_str tag)
{
	buf_clear(&p->link);
	for (size_t i = 0; i + 6 < tag.len; i++) {
		struct mr_str at = { tag.ptr + i, tag.len - i };

		if (!str_casestarts(at, "href="))
			continue;
		char quote = at.ptr[5] == '"' || at.ptr[5] == '\'' ? at.ptr[5] : ' ';
		struct mr_str url = { at.ptr + 5 + (quote != ' '), at.len - 5 - (quote != ' ') }, value;

		if (str_cut(&url, quote, &value) && (str_casestarts(value, "http") || str_casestarts(value, "mailto:")))
			buf_add(&p->link, value);
		return;
	}
}

static void
take_tag(struct page *p, struct mr_str tag)
{
	bool closing = tag.len > 0 && tag.ptr[0] == '/';
	struct mr_str name = { tag.ptr + closing, 0 };

	while (closing + name.len < tag.len && !strchr(" \t\r\n/", name.ptr[name.len]))
		name.len++;
	if (p->skip.len > 0) {
		if ((closing && str_caseeq(name, p->skip)) || str_caseeq(name, STR("body")))
			p->skip.len = 0;
		return;
	}
	if (str_is_among(name, "script style head title", " ")) {
		if (!closing)
			p->skip = name;
	} else if (str_caseeq(name, STR("br"))) {
		p->breaks++;
	} else if (str_is_among(name, "p h1 h2 h3 h4 h5 h6 blockquote ul ol table pre hr", " ")) {
		p->breaks = p->breaks > 2 ? p->breaks : 2;
		p->pre = str_caseeq(name, STR("pre")) ? !closing : p->pre;
	} else if (str_is_among(name, "div tr li dt dd section article header footer", " ")) {
		p->breaks = p->breaks > 1 ? p->breaks : 1;
		if (!closing && str_caseeq(name, STR("li")))
			put(p, STR("- "));
	} else if (str_is_among(name, "td th", " ")) {
		p->space = true;
	} else if (str_caseeq(name, STR("a"))) {
		if (!closing) {
			note_link(p, tag);
		} else if (p->link.len > 0) {
			struct mr_str link = buf_str(&p->link);

			if (p->out->len < link.len ||
			    memcmp(p->out->ptr + p->out->len - link.len, link.ptr, link.len) != 0) {
				p->space = true;
				put(p, STR("("));
				put(p, link);
				put(p, STR(")"));
			}
			buf_clear(&p->link);
		}
	} else if (str_caseeq(name, STR("img"))) {
		put(p, STR("[image]"));
	}
}

void
html_to_text(struct buf *out, struct mr_str html)
{
	struct page p = { .out = out, .start = out->len };

	while (html.len > 0) {
		char next = html.len > 1 ? html.ptr[1] : '\0';
		bool tag = (next && strchr("/!?", next)) || (ascii_lower(next) >= 'a' && ascii_lower(next) <= 'z');
		size_t n = 1;

		if (str_starts(html, "<!--")) {
			const char *end = memmem(html.ptr, html.len, "-->", 3);

			n = end ? (size_t)(end + 3 - html.ptr) : html.len;
		} else if (html.ptr[0] == '<' && tag) {
			const char *end = memchr(html.ptr, '>', html.len);

			n = end ? (size_t)(end + 1 - html.ptr) : html.len;
			take_tag(&p, (struct mr_str){ html.ptr + 1, end ? n - 2 : n - 1 });
		} else if (p.skip.len > 0) {
			n = 1 + str_find(str_from(html, 1), '<');
		} else if (html.ptr[0] == '&') {
			n = entity(&p, html);
			if (n == 0) {
				n = 1;
				put(&p, STR("&"));
			}
		} else if (p.pre && html.ptr[0] == '\n') {
			p.breaks++;
		} else if (ascii_space(html.ptr[0])) {
			if (p.pre && html.ptr[0] != '\r')
				put(&p, str_first(html, 1));
			p.space = !p.pre;
		} else {
			while (n < html.len && !strchr("<& \t\r\n", html.ptr[n]))
				n++;
			put(&p, str_first(html, n));
		}
		html = str_from(html, n);
	}
	if (out->len > p.start && out->ptr[out->len - 1] != '\n')
		buf_addc(out, '\n');
	out->failed |= p.link.failed;
	buf_done(&p.link);
}
