/* SPDX-License-Identifier: MIT */
/*
 * plugin.c - a file that is all ours, which a harness loads as a program: our text with the command in it, and in its
 * first line the sum of the rest. A file with another sum was changed, or is somebody else's, and is left alone.
 *
 *	// mailroom 0.1.0 <sha256>
 */
#include "base/id.h"
#include "cli/setup/setup.h"

#define FIRST "// mailroom "
extern const char text_common_js[];
#define PLACE "const COMMAND = [\"mailroom\"];"

static bool
is_ours(struct mr_str text)
{
	char sum[65];
	struct mr_str line;

	if (!str_line(&text, &line) || !str_starts(line, FIRST))
		return false;
	sha256_hex(text, sum);
	return str_ends(line, sum);
}

static void
compose(const struct setup *s, struct buf *out)
{
	mr_auto(buf_done) struct buf body = BUF_INIT;
	const char *place = strstr(text_common_js, PLACE);
	char sum[65];

	buf_add(&body, (struct mr_str){ text_common_js, (size_t)(place - text_common_js) });
	buf_adds(&body, "const COMMAND = [");
	json_stringify(&body, str_of(s->command));
	if (s->room) {
		buf_adds(&body, ", \"--room\", ");
		json_stringify(&body, str_of(s->room));
	}
	buf_adds(&body, "];");
	buf_adds(&body, place + strlen(PLACE));
	buf_adds(&body, s->harness->plugin);
	sha256_hex(buf_str(&body), sum);
	buf_addf(out, FIRST MAILROOM_VERSION " %s\n", sum);
	buf_add(out, buf_str(&body));
	out->failed |= body.failed;
}

bool
plugin_is_current(const struct setup *s, const struct buf *text)
{
	mr_auto(buf_done) struct buf want = BUF_INIT;

	compose(s, &want);
	return buf_ok(&want) && str_eq(buf_str(&want), buf_str(text));
}

enum mr_rc
plugin_put(const struct edit *e)
{
	if (e->text.len > 0 && !is_ours(e->text))
		return mr_fail(e->err, MR_EXISTS,
		    "it was not written by mailroom, or was changed since\nmove it away, then run this again");
	compose(e->s, e->out);
	return MR_OK;
}

enum mr_rc
plugin_take(const struct edit *e)
{
	return is_ours(e->text) ? MR_OK : MR_EMPTY; /* what is not ours stays */
}
