/* SPDX-License-Identifier: MIT */
/*
 * nudge.c - nudge/<id>/latest.json: one nudge an agent, of which the last wins; that loss is the format's intent. It is
 * written beside and renamed over, under a name of our own: the format's ".nudge.tmp" is everybody's.
 */
#include "base/error.h"
#include "base/sys.h"
#include "message/foreign.h"
#include "rooms/chipset/chipset.h"
#include <fcntl.h>

#define NUDGE_FOLDER "nudge"
#define LATEST "latest.json"

static const char *const types[] = { "health_check", "stall_warning", "priority_change", "abort", "sync_request",
	"nudge_response" };

static enum mr_rc
check_type(const char *type, struct mr_error *err)
{
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (strcmp(types[i], type) == 0)
			return MR_OK;
	return mr_fail(err, MR_UNSUPPORTED,
	    "a chipset room knows no nudge of kind '%.60s'\n"
	    "health_check, stall_warning, priority_change, abort, sync_request or nudge_response",
	    type);
}

static void
add_text(struct buf *out, const char *before, const char *key, const char *value)
{
	buf_addf(out, "%s  \"%s\": ", before, key);
	json_stringify(out, str_of(value));
}

/* Keys in ascending order, as in every file of this format. */
static void
write_nudge(struct buf *out, const char *from, const char *to, const struct mr_nudge *nudge)
{
	char stamp[RFC3339_LEN + 1];

	time_rfc3339(nudge->at_ms, stamp);
	add_text(out, "{\n", "from", from);
	add_text(out, ",\n", "message", nudge->text);
	buf_addf(out, ",\n  \"requires_response\": %s", nudge->answer_wanted ? "true" : "false");
	add_text(out, ",\n", "timestamp", stamp);
	add_text(out, ",\n", "to", to);
	add_text(out, ",\n", "type", nudge->kind[0] ? nudge->kind : "sync_request");
	buf_adds(out, "\n}\n");
}

static enum mr_rc
check_fields(const struct mr_nudge *nudge, struct mr_error *err)
{
	if (nudge->kind[0] && check_type(nudge->kind, err) != MR_OK)
		return err->code;
	if (nudge->priority == MR_URGENT || nudge->thread[0] || nudge->expires_ms || nudge->not_before_ms)
		return mr_fail(err, MR_UNSUPPORTED,
		    "a nudge in a chipset room has no urgency, no thread and no time to live\nsend it as mail: mailroom send");
	return MR_OK;
}

enum mr_rc
chipset_nudge_put(struct mr_room *room, const char *to, const struct mr_nudge *nudge, struct mr_error *err)
{
	mr_auto(sys_close_fd) int root_fd = -1, fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT, path = BUF_INIT;
	char from_id[CHIPSET_ID_MAX + 1], to_id[CHIPSET_ID_MAX + 1];

	TRY(check_fields(nudge, err));
	TRY(chipset_id(nudge->from, from_id, err));
	TRY(chipset_id(to, to_id, err));
	write_nudge(&text, from_id, to_id, nudge);
	buf_addf(&path, NUDGE_FOLDER "/%s", to_id);
	if (!buf_ok(&text) || !buf_ok(&path))
		return mr_nomem(err);
	TRY(dir_open(AT_FDCWD, chipset_of(room)->path, &root_fd, err));
	TRY(dir_make(root_fd, buf_z(&path), chipset_folder_mode(root_fd), true, &fd, err));
	return file_replace(fd, LATEST, buf_str(&text), chipset_file_mode(fd), err);
}

/* "from" may be anything that another program wrote there; who it is not clear is nobody. */
static const char *
keep_sender(struct json_value object, struct arena **own)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error ignored = { 0 };
	char address[MR_ADDRESS_MAX + 1] = "unknown";

	if (json_find_text(object, "from", &text) && text.len > 0 && !memchr(text.ptr, '\0', text.len) &&
	    foreign_to_address(buf_str(&text), address, &ignored) != MR_OK)
		(void)snprintf(address, sizeof address, "unknown");
	return arena_dup(own, str_of(address));
}

static const char *
keep_text(struct json_value object, const char *key, struct arena **own)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	(void)json_find_text(object, key, &text);
	return buf_ok(&text) || text.len == 0 ? arena_dup(own, str_of(buf_z(&text))) : NULL;
}

enum mr_rc
chipset_nudge_get(
    struct mr_room *room, const char *agent, struct mr_nudge *ret, struct arena **own, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT, path = BUF_INIT, stamp = BUF_INIT;
	char id[CHIPSET_ID_MAX + 1];
	struct json_value object, wanted;
	struct mr_nudge n = { .thread = "", .times = 1 };

	TRY(chipset_id(agent, id, err));
	buf_addf(&path, NUDGE_FOLDER "/%s", id);
	if (!buf_ok(&path))
		return mr_nomem(err);
	TRY(chipset_open_below(chipset_of(room), buf_z(&path), &fd, err));
	TRY(chipset_file_read(fd, LATEST, &text, err));
	TRY(chipset_object(buf_str(&text), &object, err));
	if (!json_find_text(object, "timestamp", &stamp) || !time_parse_rfc3339(buf_str(&stamp), &n.at_ms))
		return mr_fail(err, MR_CORRUPT, "'%s/" LATEST "' has no timestamp", buf_z(&path));
	n.from = keep_sender(object, own);
	n.text = keep_text(object, "message", own);
	n.kind = keep_text(object, "type", own);
	n.answer_wanted = json_find(object, "requires_response", &wanted) && json_truthy(wanted);
	if (!n.from || !n.text || !n.kind)
		return mr_nomem(err);
	*ret = n;
	return MR_OK;
}
