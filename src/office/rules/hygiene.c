/* SPDX-License-Identifier: MIT */
/* hygiene.c - the rules: see hygiene.h. */
#include "office/mail/mail.h"
#include "office/rules/hygiene.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "message/type.h"

#define EMPTY_NOTE 20 /* letters; less than that says nothing */

/* ---- Words of a line ---- */

static struct mr_str
next_word(struct mr_str *rest)
{
	while (rest->len > 0 && (rest->ptr[0] == ' ' || rest->ptr[0] == ',' || rest->ptr[0] == '\t')) {
		rest->ptr++;
		rest->len--;
	}
	size_t n = 0;

	while (n < rest->len && rest->ptr[n] != ' ' && rest->ptr[n] != ',' && rest->ptr[n] != '\t')
		n++;
	struct mr_str word = { rest->ptr, n };

	rest->ptr += n;
	rest->len -= n;
	return word;
}

static bool
has_word(struct mr_str line, const char *word)
{
	for (struct mr_str w = next_word(&line); w.len > 0; w = next_word(&line))
		if (str_caseeq(w, str_of(word)))
			return true;
	return false;
}

bool
policy_has(const struct policy *policy, const char *line, const char *word)
{
	for (size_t i = 0; *word && i < policy->lines.n; i++)
		if (ascii_caseeq(policy->lines.lines[i].name, line) &&
		    has_word(str_of(policy->lines.lines[i].value), word))
			return true;
	return false;
}

/* ---- Budgets ---- */

struct budget_line {
	struct mr_str role;
	bool number;
	uint64_t most;       /* number */
	struct mr_str types; /* that are allowed, or with a number those that do not count */
};

static struct budget_line
read_budget(const char *value)
{
	struct mr_str rest = str_of(value);
	struct budget_line b = { .role = next_word(&rest) };
	struct mr_str all = rest, first = next_word(&rest);

	b.number = str_to_u64(first, &b.most);
	b.types = b.number ? rest : all;
	if (b.number) {
		struct mr_str word = next_word(&rest);

		b.types = str_caseeq(word, STR("except")) ? rest : (struct mr_str){ "", 0 };
	}
	return b;
}

/* Who has which role is what the routes of types say. */
static bool
has_role(struct mr_str role, const struct hygiene_mail *mail)
{
	mr_auto(buf_done) struct buf route = BUF_INIT;

	buf_add(&route, role);
	buf_adds(&route, " -> any");
	if (!buf_ok(&route))
		return false;
	char *routes[] = { route.ptr };
	struct type_def def = { .name = "", .routes = { routes, 1 } };

	return type_route_fits(&def, mail->from, *mail->role ? mail->role : NULL, "x", NULL);
}

static bool
find_budget(const struct policy *policy, const struct hygiene_mail *mail, struct budget_line *ret)
{
	for (size_t i = 0; i < policy->lines.n; i++) {
		if (!ascii_caseeq(policy->lines.lines[i].name, "Budget"))
			continue;
		*ret = read_budget(policy->lines.lines[i].value);
		if (ret->role.len > 0 && has_role(ret->role, mail))
			return true;
	}
	return false;
}

static bool
is_free(const struct policy *policy, const struct budget_line *budget, const struct hygiene_mail *mail)
{
	return *mail->type && (policy_has(policy, "Always", mail->type) || has_word(budget->types, mail->type));
}

bool
hygiene_counts(const struct policy *policy, const struct hygiene_mail *mail)
{
	struct budget_line budget;

	return find_budget(policy, mail, &budget) && budget.number;
}

static void
judge_budget(const struct policy *policy, const struct hygiene_mail *mail, const struct hygiene_mail *before, size_t n,
    hygiene_fn *fn, void *ctx)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct budget_line budget;
	uint64_t sent = 0;

	if (!find_budget(policy, mail, &budget) || is_free(policy, &budget, mail))
		return;
	if (!budget.number) {
		buf_addf(&text, "a %.*s mails only ", (int)budget.role.len, budget.role.ptr);
		for (struct mr_str w = next_word(&budget.types), next; w.len > 0; w = next) {
			next = next_word(&budget.types);
			buf_addf(&text, "%.*s%s", (int)w.len, w.ptr, next.len > 0 ? ", " : "");
		}
		buf_adds(&text, ": what need not outlive the session is a nudge");
		fn(ctx, mail, "budget", buf_z(&text));
		return;
	}
	for (size_t i = n; i > 0 && before[i - 1].life == mail->life && sent < budget.most; i--)
		sent += !is_free(policy, &budget, &before[i - 1]);
	if (sent < budget.most)
		return;
	buf_addf(&text, "a %.*s has a budget of %llu message%s a life: what need not outlive the session is a nudge",
	    (int)budget.role.len, budget.role.ptr, (unsigned long long)budget.most, budget.most == 1 ? "" : "s");
	fn(ctx, mail, "budget", buf_z(&text));
}

/* ---- Duplicates ---- */

static bool
is_same(const struct hygiene_mail *a, const struct hygiene_mail *b)
{
	if (*a->type && *a->topic && *b->topic)
		return ascii_caseeq(a->type, b->type) && strcmp(a->topic, b->topic) == 0;
	return strcmp(a->subject, b->subject) == 0;
}

static void
judge_duplicate(const struct policy *policy, const struct hygiene_mail *mail, const struct hygiene_mail *before,
    size_t n, hygiene_fn *fn, void *ctx)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char ago[24];

	if (mail->answers) /* a conversation keeps its subject */
		return;
	for (size_t i = n; i > 0; i--) {
		const struct hygiene_mail *b = &before[i - 1];

		if (mail->date_ms - b->date_ms > policy->within_ms)
			return;
		if (b->answers || !is_same(mail, b))
			continue;
		duration_text(mail->date_ms - b->date_ms, ago);
		buf_addf(&text, "the same was sent %s before, as %s", ago, b->id);
		fn(ctx, mail, "duplicate", buf_z(&text));
		return;
	}
}

void
hygiene_judge_history(const struct policy *policy, const struct hygiene_mail *mail, const struct hygiene_mail *before,
    size_t n, hygiene_fn *fn, void *ctx)
{
	judge_budget(policy, mail, before, n, fn, ctx);
	judge_duplicate(policy, mail, before, n, fn, ctx);
}

/* ---- Placeholders ---- */

/* "<name>", "<your branch>", not "<a@b>", "<https://x>", "<3" or "<b>". */
static size_t
angle_placeholder(struct mr_str s)
{
	size_t n = 1;

	while (n < s.len && n < 60 && s.ptr[n] != '>') {
		char c = s.ptr[n];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && (n == 1 || !(strchr(" _-|.", c) || (c >= '0' && c <= '9'))))
			return 0;
		n++;
	}
	return n > 2 && n < s.len && s.ptr[n] == '>' ? n + 1 : 0;
}

static size_t
brace_placeholder(struct mr_str s)
{
	if (!str_starts(s, "{{"))
		return 0;
	for (size_t n = 2; n + 1 < s.len && s.ptr[n] != '\n'; n++)
		if (s.ptr[n] == '}' && s.ptr[n + 1] == '}')
			return n + 2;
	return 0;
}

static bool
find_placeholder(struct mr_str s, bool angles, struct mr_str *ret)
{
	for (; s.len > 0; s.ptr++, s.len--) {
		size_t n = s.ptr[0] == '{'             ? brace_placeholder(s)
			   : s.ptr[0] == '<' && angles ? angle_placeholder(s)
						       : 0;

		if (n == 0)
			continue;
		*ret = (struct mr_str){ s.ptr, n };
		return true;
	}
	return false;
}

/* Text may be about C++ or HTML: there a bracket counts only as the whole value of a "Key: <value>" line. */
static bool
line_is_unfilled(struct mr_str line)
{
	const char *colon = memchr(line.ptr, ':', line.len);
	size_t key = colon ? (size_t)(colon - line.ptr) : 0;
	struct mr_str value = { line.ptr + key + 1, key > 0 ? line.len - key - 1 : 0 };

	if (key == 0 || key > 40)
		return false;
	while (value.len > 0 && value.ptr[value.len - 1] == '\r')
		value.len--;
	value = str_trim(value);
	return value.len > 2 && value.ptr[0] == '<' && angle_placeholder(value) == value.len;
}

bool
hygiene_has_placeholder(struct mr_str subject, struct mr_str body, struct mr_str *ret)
{
	if (find_placeholder(subject, true, ret))
		return true;
	while (body.len > 0) {
		const char *lf = memchr(body.ptr, '\n', body.len);
		struct mr_str line = { body.ptr, lf ? (size_t)(lf - body.ptr) : body.len };

		if (find_placeholder(line, line_is_unfilled(line), ret))
			return true;
		body.ptr += line.len + (lf != NULL);
		body.len -= line.len + (lf != NULL);
	}
	return false;
}

/* ---- Hand-offs that say nothing ---- */

static bool
says_nothing(struct mr_str line)
{
	static const char *const words[] = { "nothing", "none", "n/a", "routine", "all quiet", "no issues",
		"nothing to report", "no changes", "idle", "left no note" };

	line = str_trim(line);
	while (line.len > 0 && strchr("-*. \r", line.ptr[0])) {
		line.ptr++;
		line.len--;
	}
	while (line.len > 0 && strchr(".! \r", line.ptr[line.len - 1]))
		line.len--;
	if (line.len == 0 || line.ptr[0] == '#')
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (str_caseeq(line, str_of(words[i])) ||
		    (i + 1 == sizeof(words) / sizeof(words[0]) && str_ends(line, words[i])))
			return true;
	return false;
}

bool
hygiene_is_empty_handoff(struct mr_str body)
{
	size_t said = 0;

	while (body.len > 0 && said < EMPTY_NOTE) {
		const char *lf = memchr(body.ptr, '\n', body.len);
		struct mr_str line = { body.ptr, lf ? (size_t)(lf - body.ptr) : body.len };

		if (!says_nothing(line))
			said += str_trim(line).len;
		body.ptr += line.len + (lf != NULL);
		body.len -= line.len + (lf != NULL);
	}
	return said < EMPTY_NOTE;
}

/* ---- Mail that says only that all is well ---- */

static bool
is_routine_line(struct mr_str line)
{
	static const char *const before[] = { "status update", "status report", "status", "update", "state",
		"heartbeat", "check-in", "ping", "health" };
	static const char *const words[] = { "fine", "all fine", "ok", "okay", "all ok", "good", "all good", "well",
		"all well", "all is well", "green", "nominal", "healthy", "alive", "still alive", "here", "still here",
		"on track", "working", "still working", "running", "still running", "in progress", "unchanged",
		"no change", "no news", "nothing new" };

	line = str_trim(line);
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		size_t len = strlen(before[i]);

		if (line.len < len || strncasecmp(line.ptr, before[i], len) != 0)
			continue;
		struct mr_str rest = { line.ptr + len, line.len - len };

		if (rest.len > 0 && !strchr(": -=", rest.ptr[0]))
			continue;
		while (rest.len > 0 && strchr(": -=", rest.ptr[0])) {
			rest.ptr++;
			rest.len--;
		}
		line = rest;
		break;
	}
	while (line.len > 0 && strchr(".! \r", line.ptr[line.len - 1]))
		line.len--;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (str_caseeq(line, str_of(words[i])))
			return true;
	return says_nothing(line);
}

bool
hygiene_is_routine(struct mr_str subject, struct mr_str body)
{
	if (subject.len == 0 && body.len == 0)
		return false;
	if (!is_routine_line(subject))
		return false;
	while (body.len > 0) {
		const char *lf = memchr(body.ptr, '\n', body.len);
		struct mr_str line = { body.ptr, lf ? (size_t)(lf - body.ptr) : body.len };

		if (!is_routine_line(line))
			return false;
		body.ptr += line.len + (lf != NULL);
		body.len -= line.len + (lf != NULL);
	}
	return true;
}

/* ---- What can be said of it alone ---- */

void
hygiene_judge(
    const struct policy *policy, const struct hygiene_mail *mail, struct mr_str body, hygiene_fn *fn, void *ctx)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_str found;

	bool no_answer = mail->answers && policy_has(policy, "No-Answer", mail->answers);

	if (mail->nudge && !no_answer) { /* "Re: HEALTH_CHECK" looks like one, too */
		buf_addf(&text, "%s is a nudge, not mail: mailroom nudge AGENT -m TEXT", mail->type);
		fn(ctx, mail, "nudge", buf_z(&text));
	}
	if (no_answer) {
		buf_clear(&text);
		buf_addf(&text, "a %s is not answered with mail: that the agent works is its answer", mail->answers);
		fn(ctx, mail, "health-check", buf_z(&text));
	}
	if (hygiene_has_placeholder(str_of(mail->subject), body, &found)) {
		buf_clear(&text);
		format_addf(&text, "'%.*s' was not filled in", (int)found.len, found.ptr);
		fn(ctx, mail, "placeholder", buf_z(&text));
	}
	if (!*mail->type && !mail->answers && hygiene_is_routine(str_of(mail->subject), body))
		fn(ctx, mail, "routine", "that all is well is no mail: mailroom nudge AGENT -m TEXT, or nothing");
	if (ascii_caseeq(mail->type, SUCCESSOR_TYPE) && hygiene_is_empty_handoff(body))
		fn(ctx, mail, "empty-handoff", "this hand-off says nothing that the next life does not know");
}
