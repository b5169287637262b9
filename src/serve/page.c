/* SPDX-License-Identifier: MIT */
/* page.c - the frame of a page and its small parts. */
#include "base/clock.h"
#include "serve/page.h"

static const struct {
	const char *path, *below, *name;
} places[] = {
	{ "/", "", "Attention" },
	{ "/threads", "/thread/", "Conversations" },
	{ "/picture", "", "Picture" },
	{ "/queues", "", "Queues" },
	{ "/agents", "/agent/", "Agents" },
	{ "/channels", "/channel/", "Channels" },
	{ "/dead", "/dead/", "Dead letters" },
	{ "/search", "", "Search" },
};

/* What an action did, by the word it leaves in the address of the page. */
static const char *
note_of(const char *word)
{
	static const char *const notes[][2] = {
		{ "sent", "Sent, and on stable storage." },
		{ "doubt", "Accepted, but not everybody has it yet: it will be completed. Do not send it again." },
		{ "mark", "Marked as read." },
		{ "nudge", "Nudged." },
		{ "nudge-queued", "The nudge waits until the agent looks." },
		{ "release", "Released: the next claimer can take it." },
		{ "retry", "Delivered again." },
		{ "drop", "Dropped for good." },
		{ "queue", "Changed." },
	};

	for (size_t i = 0; word && i < sizeof(notes) / sizeof(notes[0]); i++)
		if (strcmp(word, notes[i][0]) == 0)
			return notes[i][1];
	return NULL;
}

/* How much needs the operator: every page says it. While the room is watched, what was counted is right until something
 * changes, or for NEEDS_MS, because time makes needs, too. */
#define NEEDS_MS 5000
static struct {
	pthread_mutex_t lock;
	uint64_t seen;
	int64_t at_ms;
	size_t n;
} needs = { .lock = PTHREAD_MUTEX_INITIALIZER };

enum mr_rc
page_needs(const struct request *req, struct mr_attention *ret, size_t *ret_n, struct mr_error *err)
{
	mr_auto(mr_attention_done) struct mr_attention counted = { 0 };
	struct mr_attention *a = ret ? ret : &counted;
	uint64_t seen = events_seen();
	int64_t now_ms = clock_boot_ms();

	(void)pthread_mutex_lock(&needs.lock);
	bool known = !ret && seen > 0 && seen == needs.seen && now_ms - needs.at_ms < NEEDS_MS;

	*ret_n = needs.n;
	(void)pthread_mutex_unlock(&needs.lock);
	if (known)
		return MR_OK;
	TRY(mr_attention(req->room, NULL, a, err));
	(void)pthread_mutex_lock(&needs.lock);
	needs.seen = seen; /* before it was counted */
	needs.at_ms = now_ms;
	*ret_n = needs.n = a->n + a->more;
	(void)pthread_mutex_unlock(&needs.lock);
	return MR_OK;
}

void
page_begin(const struct request *req, const char *title, const char *more)
{
	struct buf *out = req->out;
	const char *note = note_of(params_get(&req->query, "note"));
	bool known = req->who != WHO_NOBODY && req->room; /* without a token not even the name of the room is told */
	const char *name = known ? mr_room_name(req->room) : "mailroom";
	size_t waiting = 0;
	char before[24] = "";

	if (known && req->needs)
		waiting = *req->needs;
	else if (known)
		(void)page_needs(req, NULL, &waiting, IGNORED); /* a room that cannot be read: the page says so */
	if (waiting > 0)
		(void)snprintf(before, sizeof(before), "(%zu) ", waiting);
	html_addf(out,
	    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>%s%s \u00b7 %s</title>\n"
	    "<link rel=\"icon\" href=\"/icon.svg\">\n<link rel=\"stylesheet\" href=\"/style.css\">\n"
	    "<script src=\"/script.js\" defer></script>\n</head>\n<body>\n"
	    "<a class=\"skip\" href=\"#main\">Skip to the page</a>\n<div class=\"frame\">\n<div class=\"side\">"
	    "<a class=\"room\" href=\"/\">%s<small>%s%s</small></a>\n",
	    before, title, name, name, known ? mr_room_kind(req->room) : "",
	    known && !req->may_write ? ", read-only" : "");
	buf_adds(out, known ? "<nav aria-label=\"Pages\"><ul class=\"pages\" data-part=\"pages\">" : "");
	for (size_t i = 0; known && i < sizeof(places) / sizeof(places[0]); i++) {
		bool here = strcmp(req->path, places[i].path) == 0 ||
			    (*places[i].below && str_starts(str_of(req->path), places[i].below));

		html_addf(out, "<li><a href=\"%s\" aria-current=\"%s\">%s", places[i].path, here ? "page" : "false",
		    places[i].name);
		if (i == 0 && waiting > 0)
			html_addf(out, "<span class=\"count now\">%zu</span>", waiting);
		buf_adds(out, "</a></li>");
	}
	buf_adds(out, known ? "</ul></nav>\n" : "");
	if (req->may_write)
		buf_adds(out, "<a class=\"button first write\" href=\"/write\">Write</a>\n");
	buf_adds(out,
	    "<p class=\"foot\"><span class=\"live\" id=\"live\"></span></p></div>\n<main id=\"main\" tabindex=\"-1\">\n");
	if (note)
		html_addf(out, "<div class=\"note\" role=\"status\"><p>%s</p></div>\n", note);
	if (more)
		page_head(out, title, more);
}

void
page_head(struct buf *out, const char *title, const char *more)
{
	html_addf(out, "<div class=\"head\"><h1>%s</h1>", title);
	if (*more)
		html_addf(out, "<p class=\"soft\">%s</p>", more);
	buf_adds(out, "</div>\n");
}

void
page_time(struct buf *out, int64_t ms)
{
	char at[RFC3339_LEN + 1], age[24];
	int64_t ago = clock_now_ms() - ms;

	if (ms <= 0)
		return;
	time_rfc3339(ms, at);
	duration_text(ago < 0 ? -ago : ago, age);
	html_addf(out, "<time datetime=\"%s\" title=\"%s\">%s%s</time>", at, at, ago < 0 ? "in " : "", age);
}

void
page_at(struct buf *out, int64_t ms)
{
	char at[RFC3339_LEN + 1];

	if (ms <= 0)
		return;
	time_rfc3339(ms, at);
	html_addf(out, "<time class=\"at\" datetime=\"%s\" title=\"%s\">", at, at);
	buf_addf(out, "%.5s</time>", at + strlen("2026-03-05T"));
}

/* Evidence says when in RFC 3339, which is exact and tiring: the page shows hours and minutes, and the rest on a touch.
 */
void
page_evidence(struct buf *out, const char *text)
{
	struct mr_str rest = str_of(text);

	for (size_t i = 0; i + RFC3339_LEN <= rest.len; i++) {
		int64_t ms;

		if (rest.ptr[i] != '2' || !time_parse_rfc3339((struct mr_str){ rest.ptr + i, RFC3339_LEN }, &ms))
			continue;
		html_text(out, (struct mr_str){ rest.ptr, i });
		page_at(out, ms);
		rest = (struct mr_str){ rest.ptr + i + RFC3339_LEN, rest.len - i - RFC3339_LEN };
		i = (size_t)-1;
	}
	html_text(out, rest);
}

void
page_link(struct buf *out, const char *base, const char *name, const char *class, const char *text)
{
	html_addf(out, "<a class=\"%s\" href=\"%s", class, base);
	url_add(out, name, URL_PART);
	html_addf(out, "\">%s</a>", text);
}

void
page_address(struct buf *out, const char *address)
{
	if (str_starts(str_of(address), "queue:"))
		page_link(out, "/queues#", address, "", address);
	else if (str_starts(str_of(address), "channel:"))
		page_link(out, "/channel/", address + strlen("channel:"), "", address);
	else
		page_link(out, "/agent/", address, "", address);
}

void
page_addresses(struct buf *out, const struct mr_names *names, const struct mr_names *more)
{
	size_t n = names->n + (more ? more->n : 0);

	for (size_t i = 0; i < n && i < 6; i++) {
		buf_adds(out, i > 0 ? ", " : "");
		page_address(out, i < names->n ? names->v[i] : more->v[i - names->n]);
	}
	if (n > 6)
		html_addf(out, " and %zu more", n - 6);
}

void
page_tag(struct buf *out, const char *class, const char *text)
{
	html_addf(out, "<span class=\"tag %s\">%s</span>", class, text);
}

void
page_count(struct buf *out, size_t n, const char *noun)
{
	html_addf(out, "%zu %s%s", n, noun, n == 1 ? "" : "s");
}

void
page_button(
    const struct request *req, const char *action, const char *label, const char *class, const struct param *fields)
{
	if (!req->may_write)
		return;
	form_begin(req, action);
	for (const struct param *f = fields; f->name; f++)
		html_addf(req->out, "<input type=\"hidden\" name=\"%s\" value=\"%s\">", f->name, f->value);
	html_addf(req->out, "<input type=\"hidden\" name=\"back\" value=\"%s\"><button class=\"%s\">%s</button></form>",
	    req->path, class, label);
}

void
page_dead_buttons(const struct request *req, const char *id, const char *back)
{
	page_button(req, "/do/retry", "Retry", "", FIELDS({ "id", id }, { "back", back }));
	page_button(req, "/do/drop", "Drop", "danger", FIELDS({ "id", id }, { "back", back }));
}

const char *
page_subject(const char *subject)
{
	return *subject ? subject : "(no subject)";
}

void
page_quiet(struct buf *out, const char *what, const char *more)
{
	html_addf(out, "<div class=\"quiet\"><h2>%s</h2><p class=\"soft\">%s</p></div>\n", what, more);
}

/* ---- A list: rows with a title, what is said of it, and a side for a time or buttons ---- */

void
rows_begin(struct buf *out, const char *part)
{
	if (part)
		html_addf(out, "<div data-part=\"%s\"><ol class=\"list\">", part);
	else
		buf_adds(out, "<div><ol class=\"list\">");
}

void
rows_end(struct buf *out, size_t n, const char *quiet, const char *more)
{
	buf_adds(out, "</ol>\n");
	if (n == 0)
		page_quiet(out, quiet, more);
	buf_adds(out, "</div>\n");
}

void
row_begin(struct buf *out, const char *key, const char *class, const char *base, const char *name, const char *title)
{
	html_addf(out, "<li data-key=\"%s\" class=\"%s\"><div class=\"row\"><div class=\"line\">", key, class);
	if (base)
		page_link(out, base, name, "title", title);
}
