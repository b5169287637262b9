/* SPDX-License-Identifier: MIT */
/* storm_doors.c - the storm on what agents see of mail without typing a command: the server's read, and a hook. */
#include "chaos.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define AT_ONCE 8u /* fewer than a hook lists one by one */

static bool
write_input(const struct storm *s, const char *name, const char *text, char *ret_path, size_t size)
{
	(void)snprintf(ret_path, size, "%s/%s", s->c->dir, name);
	int fd = open(ret_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t len = strlen(text);
	bool done = fd >= 0 && write(fd, text, len) == (ssize_t)len;
	if (fd >= 0)
		(void)close(fd);
	return done;
}

/* ---- mailroom mcp: a client that asks for what is there, and reads it; server or worker is killed ---- */

static unsigned
unread_ids(struct storm *s, char *ret, size_t size)
{
	unsigned n = 0;
	size_t len = 0;

	run_command(&(struct order){ .bin = s->c->bin, .dir = s->c->dir },
	    ARGS("--as", "bob", "inbox", "--json", "--limit", "10"), s->answer);
	ret[0] = '\0';
	for (const char *at = s->answer->out; (at = strstr(at, "{\"id\":\"")) != NULL && len + 40 < size; at++, n++)
		len += (size_t)snprintf(ret + len, size - len, "%s\"%.26s\"", n ? "," : "", at + 7);
	return n;
}

bool
storm_mcp(struct storm *s, struct order *order)
{
	char ids[1024], lines[2048], path[160];

	if (unread_ids(s, ids, sizeof(ids)) == 0)
		return false;
	(void)snprintf(lines, sizeof(lines),
	    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\","
	    "\"capabilities\":{},\"clientInfo\":{\"name\":\"storm\",\"version\":\"1\"}}}\n"
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
	    "call\",\"params\":{\"name\":\"read\",\"arguments\":{\"ids\":["
	    "%s]}}}\n",
	    ids);
	if (!write_input(s, "requests", lines, path, sizeof(path)))
		return true;
	order->input = path;
	order->kill_child = dice(&s->state) % 2;
	run_command(order, ARGS("--as", "bob", "mcp"), s->answer);
	storm_note(s->answer->out, s->messages);
	return true;
}

/* ---- mailroom hook: some messages and nudges at a time. A nudge is gone once it was told; mail is not told again.
 * ---- */

/* Three of four are mail, the rest nudges. */
static bool
send_some(struct storm *s)
{
	unsigned from = s->sent + 1, to = s->sent + AT_ONCE < s->messages ? s->sent + AT_ONCE : s->messages;
	unsigned mail_to = to - (to - from + 1) / 4;
	char text[24];

	for (unsigned i = mail_to + 1; i <= to; i++) {
		(void)snprintf(text, sizeof(text), "t%05u: whole", i);
		run_command(&(struct order){ .bin = s->c->bin, .dir = s->c->dir },
		    ARGS("--as", "alice", "nudge", "bob", "--mode", "queue", "-m", text), s->answer);
		if (s->answer->exit_code != 0)
			return false;
	}
	s->sent = to;
	return storm_send(s, from, mail_to);
}

bool
storm_hook(struct storm *s, struct order *order)
{
	static const char event[] = "{\"session_id\":\"storm\",\"transcript_path\":null,\"cwd\":\".\","
				    "\"hook_event_name\":\"UserPromptSubmit\",\"prompt\":\"go on\"}";
	char path[160];

	if (!write_input(s, "event", event, path, sizeof(path)))
		return true;
	order->input = path;
	run_command(order, ARGS("--as", "bob", "hook", "claude-code"), s->answer);
	storm_note(s->answer->out, s->sent);
	/* A hook that was left alone and had nothing to tell: then there is none. */
	bool told_all = order->kill_after_us == 0 && s->answer->out[0] == '\0';
	return !told_all || (s->sent < s->messages && send_some(s));
}
