/* SPDX-License-Identifier: MIT */
/*
 * frame.c - what a session writes to the socket of another, in two lines:
 *
 *	{"type":"auth","token":TOKEN}
 *	{"msgV":1,"msg_id":UUID,"type":"user","message":{"role":"user","content":TEXT},"priority":"next","from":"uds:PATH"}
 *
 * TOKEN is that of the key file, which only our user can read. A "session_id", if there is one, names the receiver.
 * TEXT stands bare, or between <cross-session-message from="..." ...> and its end, each with a line break. Such tags
 * in the text itself come as <\/cross-session-message> and stay so. `from` is the sender's word and not believed.
 */
#include "cli/peer/peer.h"

#include "message/json_read.h"

#define TAG "<cross-session-message"
#define TAG_END "\n</cross-session-message>"

static struct mr_str
without_envelope(struct mr_str text)
{
	const char *end = str_starts(text, TAG) ? memmem(text.ptr, text.len, ">\n", 2) : NULL;

	if (!end || !str_ends(text, TAG_END) || (size_t)(end + 2 - text.ptr) + strlen(TAG_END) > text.len)
		return text;
	return (struct mr_str){ end + 2, text.len - (size_t)(end + 2 - text.ptr) - strlen(TAG_END) };
}

const char *
frame_text(struct mr_str lines, const char *token, const char *session, struct buf *ret)
{
	struct mr_str rest = lines, first, second;
	struct json_value auth, frame, id;
	mr_auto(buf_done) struct buf content = BUF_INIT;

	if (!str_line(&rest, &first) || !str_line(&rest, &second) || rest.len > 0)
		return "it is not two lines";
	if (!json_whole(first, &auth, NULL) || !json_whole(second, &frame, NULL))
		return "it is not JSON";
	if (!json_is(json_get(auth, "type"), "auth") || !json_is(json_get(auth, "token"), token))
		return "its token is not the one of the key file";
	if (json_find(frame, "session_id", &id) && !json_is(id, session))
		return "it is for another session";
	if (!json_is(json_get(frame, "type"), "user") ||
	    !json_find_text(json_get(frame, "message"), "content", &content))
		return "it is not a message with a text";
	if (!buf_ok(&content))
		return "out of memory";
	buf_add(ret, without_envelope(buf_str(&content)));
	return NULL;
}
