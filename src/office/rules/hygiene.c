/* SPDX-License-Identifier: MIT */
/* hygiene.c - reading a policy, and the rules: see hygiene.h. */
#include "office/rules/hygiene.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/sys.h"
#include "message/type.h"
#include <fcntl.h>

#define POLICY "policy" /* kind of record, and folder below the data folder */
#define POLICY_MAX ((size_t)64 << 10)
#define WITHIN_MS ((int64_t)10 * 60 * 1000)
#define WITHOUT_POLICY "No-Answer: HEALTH_CHECK\n"
#define SEPARATORS " ,\t"
#define EMPTY_NOTE 20 /* letters; a shorter note is empty */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- Reading a policy ---- */

void
policy_done(struct policy *policy)
{
	record_done(&policy->lines);
	*policy = (struct policy){ 0 };
}

/* Reads the room's own policy, else that of the first data folder that has it. */
static enum mr_rc
read_policy(struct mr_room *room, const char *name, struct buf *ret, struct mr_error *err)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	struct mr_str rest = str_of(room->data_dir ? office_data_dirs(room) : ""), one;

	if (!*name || *name == '.' || strlen(name) > 80 || name[strspn(name, plain)])
		return mr_fail(err, MR_REFUSED, "'%.80s' cannot be the name of a policy", name);
	if (room->driver->record_get(room, POLICY, "", name, ret, IGNORED) == MR_OK)
		return MR_OK;
	while (str_cut(&rest, ':', &one)) {
		mr_auto(buf_done) struct buf path = BUF_INIT;
		mr_auto(sys_close_fd) int fd = -1;

		buf_addf(&path, "%.*s/" POLICY, (int)one.len, one.ptr);
		if (buf_ok(&path) && dir_open(AT_FDCWD, buf_z(&path), &fd, IGNORED) == MR_OK &&
		    file_read(fd, name, POLICY_MAX, ret, IGNORED) == MR_OK)
			return MR_OK;
	}
	return mr_fail(err, MR_NOTFOUND,
	    "no policy '%.80s' for this room's mail\n"
	    "'gastown' comes with mailroom; a room's settings name one as Hygiene-Policy:",
	    name);
}

enum mr_rc
policy_load(struct mr_room *room, const char *name, struct policy *ret, struct mr_error *err)
{
	static const char *const words[] = { "off", "warn", "refuse" };
	const char *word = mr_room_setting(room, "Hygiene");
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct policy policy = { .within_ms = WITHIN_MS };
	unsigned mode = 0;

	if (!name)
		name = mr_room_setting(room, "Hygiene-Policy");
	if (!name)
		buf_adds(&text, WITHOUT_POLICY);
	while (word && mode < COUNT(words) && !ascii_caseeq(word, words[mode]))
		mode++;
	if (mode == COUNT(words))
		return mr_fail(err, MR_REFUSED,
		    "rules for mail: the settings of the room say 'Hygiene: %.40s', which is not off, warn or refuse",
		    word);
	policy.mode = word ? (enum hygiene_mode)mode : name ? HYGIENE_WARN : HYGIENE_OFF;
	if ((name && read_policy(room, name, &text, err) != MR_OK) ||
	    record_parse(buf_str(&text), &policy.lines, err) != MR_OK)
		return mr_wrap(err, "rules for mail");
	const char *within = record_get(&policy.lines, "Duplicate-Within");

	if (within && !duration_parse(str_of(within), &policy.within_ms))
		policy.within_ms = WITHIN_MS;
	*ret = policy;
	return MR_OK;
}

/* Is the word in the lines of that name? */
static bool
policy_has(const struct policy *policy, const char *line, const char *word)
{
	for (size_t i = 0; *word && i < policy->lines.n; i++)
		if (ascii_caseeq(policy->lines.lines[i].name, line) &&
		    str_is_among(str_of(word), policy->lines.lines[i].value, SEPARATORS))
			return true;
	return false;
}

/* ---- Budgets ---- */

struct budget_line {
	struct mr_str role;
	bool number;
	uint64_t most;     /* number */
	const char *types; /* types that are allowed, or with a number those that do not count */
};

/* The routes of the types say which agent has which role. */
static bool
has_role(struct mr_str role, const struct hygiene_mail *mail)
{
	mr_auto(buf_done) struct buf route = BUF_INIT;

	buf_addf(&route, "%.*s -> any", (int)role.len, role.ptr);
	if (!buf_ok(&route))
		return false;
	char *routes[] = { route.ptr };
	struct type_def def = { .name = "", .routes = { routes, 1 } };

	return type_route_fits(&def, mail->from, mail->role, "x", NULL);
}

static bool
find_budget(const struct policy *policy, const struct hygiene_mail *mail, struct budget_line *ret)
{
	for (size_t i = 0; i < policy->lines.n; i++) {
		struct mr_str rest = str_of(policy->lines.lines[i].value), word;
		struct budget_line b = { 0 };

		if (!ascii_caseeq(policy->lines.lines[i].name, "Budget") || !str_word(&rest, SEPARATORS, &b.role) ||
		    !has_role(b.role, mail))
			continue;
		b.types = rest.ptr; /* to the end of the value */
		b.number = str_word(&rest, SEPARATORS, &word) && str_to_u64(word, &b.most);
		if (b.number)
			b.types = str_word(&rest, SEPARATORS, &word) && str_caseeq(word, STR("except")) ? rest.ptr : "";
		*ret = b;
		return true;
	}
	return false;
}

static bool
is_free(const struct policy *policy, const struct budget_line *budget, const struct hygiene_mail *mail)
{
	return *mail->type && (policy_has(policy, "Always", mail->type) ||
				  str_is_among(str_of(mail->type), budget->types, SEPARATORS));
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
	const char *comma = "";
	uint64_t sent = 0;

	if (!find_budget(policy, mail, &budget) || is_free(policy, &budget, mail))
		return;
	if (budget.number) {
		for (size_t i = n; i > 0 && before[i - 1].life == mail->life && sent < budget.most; i--)
			sent += !is_free(policy, &budget, &before[i - 1]);
		if (sent < budget.most)
			return;
		buf_addf(&text, "a %.*s has a budget of %llu message%s a life", (int)budget.role.len, budget.role.ptr,
		    (unsigned long long)budget.most, budget.most == 1 ? "" : "s");
	} else {
		buf_addf(&text, "a %.*s mails only ", (int)budget.role.len, budget.role.ptr);
		for (struct mr_str rest = str_of(budget.types), w; str_word(&rest, SEPARATORS, &w); comma = ", ")
			buf_addf(&text, "%s%.*s", comma, (int)w.len, w.ptr);
	}
	buf_adds(&text, ": what need not outlive the session is a nudge");
	fn(ctx, mail, "budget", buf_z(&text));
}

/* ---- Duplicates ---- */

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
		bool topics = *mail->type && *mail->topic && *b->topic;

		if (mail->date_ms - b->date_ms > policy->within_ms)
			return;
		if (b->answers || (topics ? !ascii_caseeq(mail->type, b->type) || strcmp(mail->topic, b->topic) != 0
					  : strcmp(mail->subject, b->subject) != 0))
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

	for (; n < s.len && n < 60 && s.ptr[n] != '>'; n++) {
		char c = s.ptr[n];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && (n == 1 || !(strchr(" _-|.", c) || (c >= '0' && c <= '9'))))
			return 0;
	}
	return n > 2 && n < s.len && s.ptr[n] == '>' ? n + 1 : 0;
}

static bool
find_placeholder(struct mr_str s, bool angles, struct mr_str *ret)
{
	for (; s.len > 0; s.ptr++, s.len--) {
		size_t n = 2;

		ret->ptr = s.ptr;
		ret->len = s.ptr[0] == '<' && angles ? angle_placeholder(s) : 0;
		if (str_starts(s, "{{")) {
			while (n + 1 < s.len && s.ptr[n] != '\n' && !(s.ptr[n] == '}' && s.ptr[n + 1] == '}'))
				n++;
			ret->len = n + 1 < s.len && s.ptr[n] == '}' ? n + 2 : 0;
		}
		if (ret->len > 0)
			return true;
	}
	return false;
}

/* Text may be about C++ or HTML, so a bracket counts only as the whole value of a "Key: <value>" line. */
static bool
line_is_unfilled(struct mr_str line)
{
	struct mr_str value = line, key;

	if (!str_cut(&value, ':', &key) || key.len == line.len || key.len == 0 || key.len > 40)
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
	for (struct mr_str line; str_cut(&body, '\n', &line);)
		if (find_placeholder(line, line_is_unfilled(line), ret))
			return true;
	return false;
}

/* ---- Mail without content ---- */

static struct mr_str
without(struct mr_str s, const char *before, const char *behind)
{
	while (s.len > 0 && s.ptr[0] && strchr(before, s.ptr[0]))
		s = (struct mr_str){ s.ptr + 1, s.len - 1 };
	while (s.len > 0 && s.ptr[s.len - 1] && strchr(behind, s.ptr[s.len - 1]))
		s.len--;
	return s;
}

static bool
says_nothing(struct mr_str line)
{
	line = without(str_trim(line), "-*. \r", ".! \r");
	return line.len == 0 || line.ptr[0] == '#' || str_ends(line, "left no note") ||
	       str_is_among(line,
		   "nothing|none|n/a|routine|all quiet|no issues|nothing to report|no changes|idle|left no note", "|");
}

bool
hygiene_is_empty_handoff(struct mr_str body)
{
	size_t said = 0;

	for (struct mr_str line; said < EMPTY_NOTE && str_cut(&body, '\n', &line);)
		if (!says_nothing(line))
			said += str_trim(line).len;
	return said < EMPTY_NOTE;
}

/* The line says only that all is well. */
static bool
is_routine_line(struct mr_str line)
{
	static const char *const before[] = { "status update", "status report", "status", "update", "state",
		"heartbeat", "check-in", "ping", "health" };
	static const char words[] =
	    "fine|all fine|ok|okay|all ok|good|all good|well|all well|all is well|green|nominal|healthy|alive|still alive|"
	    "here|still here|on track|working|still working|running|still running|in progress|unchanged|no change|no news|"
	    "nothing new";

	line = str_trim(line);
	for (size_t i = 0; i < COUNT(before); i++) {
		size_t len = strlen(before[i]);

		if (line.len < len || strncasecmp(line.ptr, before[i], len) != 0 ||
		    (line.len > len && !strchr(": -=", line.ptr[len])))
			continue;
		line = without((struct mr_str){ line.ptr + len, line.len - len }, ": -=", "");
		break;
	}
	line = without(line, "", ".! \r");
	return str_is_among(line, words, "|") || says_nothing(line);
}

bool
hygiene_is_routine(struct mr_str subject, struct mr_str body)
{
	if ((subject.len == 0 && body.len == 0) || !is_routine_line(subject))
		return false;
	for (struct mr_str line; str_cut(&body, '\n', &line);)
		if (!is_routine_line(line))
			return false;
	return true;
}

/* ---- Rules for the message alone ---- */

void
hygiene_judge(
    const struct policy *policy, const struct hygiene_mail *mail, struct mr_str body, hygiene_fn *fn, void *ctx)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	bool no_answer = mail->answers && policy_has(policy, "No-Answer", mail->answers);
	struct mr_str found;

	if (no_answer) {
		buf_addf(&text, "a %s is not answered with mail: that the agent works is its answer", mail->answers);
		fn(ctx, mail, "health-check", buf_z(&text));
	} else if (mail->nudge) { /* "Re: HEALTH_CHECK" looks like a nudge, too */
		buf_addf(&text, "%s is a nudge, not mail: mailroom nudge AGENT -m TEXT", mail->type);
		fn(ctx, mail, "nudge", buf_z(&text));
	}
	if (hygiene_has_placeholder(str_of(mail->subject), body, &found)) {
		buf_clear(&text);
		format_addf(&text, "'%.*s' was not filled in", (int)found.len, found.ptr);
		fn(ctx, mail, "placeholder", buf_z(&text));
	}
	if (!*mail->type && !mail->answers && hygiene_is_routine(str_of(mail->subject), body))
		fn(ctx, mail, "routine", "that all is well needs no mail: mailroom nudge AGENT -m TEXT, or nothing");
	if (ascii_caseeq(mail->type, SUCCESSOR_TYPE) && hygiene_is_empty_handoff(body))
		fn(ctx, mail, "empty-handoff", "this hand-off says nothing that the next life does not know");
}
