/* SPDX-License-Identifier: MIT */
/*
 * types_answer.c - may a program act on a message? Whoever can write into a mailbox could command with it, so in a team
 * only members do, and an answer counts only where a request with the same id is found: in what the asker keeps of its
 * own mail, or in the mailbox of whoever answers. That mailbox is not ours and may be emptied with the answer, so where
 * a room keeps no copy of what was sent, what was asked is remembered outside it:
 *
 *	<state>/asked/<hash of room, asker, answerer, field and value>    for 30 days
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "office/mail/mail.h"
#include "office/office.h"
#include "office/types/types_send.h"

struct asking {
	struct mr_room *room;
	const char *asker, *answerer;
	const char *field, *value;
	bool found;
};

/* ---- What we asked ---- */

#define ASKED_KEPT_MS ((int64_t)30 * 24 * 3600 * 1000)

static enum mr_rc
open_asked(const struct mr_room *room, bool make, int *ret_fd, struct mr_error *err)
{
	if (!room->state_dir || (room->driver->abilities & ROOM_SENT))
		return mr_fail(err, MR_NOTFOUND, "nothing is remembered of what was asked");
	return dir_below(room->state_dir, "asked", make, true, ret_fd, err);
}

static void
asked_name(const struct asking *a, char ret[65])
{
	mr_auto(buf_done) struct buf whole = BUF_INIT;

	buf_addf(&whole, "%s\n%s\n%s\n%s\n%s", a->room->spec, a->asker, a->answerer, a->field, a->value);
	sha256_hex(buf_str(&whole), ret);
}

static bool
is_remembered(const struct asking *a)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_error ignored = { 0 };
	struct stat st;
	char name[65];

	if (open_asked(a->room, false, &fd, &ignored) != MR_OK)
		return false;
	asked_name(a, name);
	return sys_stat(fd, name, &st) == 0;
}

static bool
forget_old(void *ctx, const struct dir_entry *entry)
{
	const int *fd = ctx;
	struct stat st;

	if (sys_stat(*fd, entry->name, &st) == 0 && S_ISREG(st.st_mode) &&
	    clock_now_ms() - (int64_t)st.st_mtim.tv_sec * 1000 > ASKED_KEPT_MS)
		(void)sys_unlink(*fd, entry->name);
	return true;
}

struct noting {
	struct asking asking;
	const struct type_values *values;
	const struct type_def *request;
	const struct mr_names *to;
	int fd;
};

static void
note_field(struct noting *n, const char *field, const char *value)
{
	struct mr_error ignored = { 0 };

	for (size_t i = 0; i < n->to->n; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		char name[65];

		n->asking.answerer = n->to->v[i];
		n->asking.field = field;
		n->asking.value = value;
		asked_name(&n->asking, name);
		buf_addf(&text, "%s asked %s: %s %s\n", n->asking.asker, n->asking.answerer, field, value);
		if (buf_ok(&text))
			(void)file_replace(n->fd, name, buf_str(&text), 0600, &ignored);
	}
}

/* A field by which some answer names its request. */
static bool
note_answered(void *ctx, const struct type_def *answer)
{
	struct noting *n = ctx;

	for (size_t i = 0; i < answer->fields_n; i++) {
		const char *name = answer->fields[i].name;
		const struct type_field *own = answer->fields[i].answers ? type_field(n->request, name) : NULL;
		const char *value = own && !own->answers ? type_value(n->values, name) : NULL;

		if (value)
			note_field(n, name, value);
	}
	return true;
}

/* Before it goes out. What cannot be remembered is looked for in the mailbox of whoever answers. */
void
types_note_asked(
    struct mr_room *room, const struct type_def *def, const struct mr_message *msg, const struct mr_names *to)
{
	mr_auto(type_values_done) struct type_values values = { 0 };
	struct mr_str body = { msg->body ? msg->body : "", msg->body ? msg->body_len : 0 };
	struct noting n = {
		.asking = { .room = room, .asker = msg->from }, .values = &values, .request = def, .to = to, .fd = -1
	};
	struct mr_error ignored = { 0 };

	if (!def || (room->driver->abilities & ROOM_SENT) ||
	    type_read(def, str_of(msg->subject), body, &values, &ignored) != MR_OK ||
	    open_asked(room, true, &n.fd, &ignored) != MR_OK)
		return;
	(void)dir_each(n.fd, forget_old, &n.fd, &ignored);
	(void)types_each(room, note_answered, NULL, &n, &ignored);
	sys_close_fd(&n.fd);
}

/* ---- What others have ---- */

/* The request's own field, not that of another answer to it. */
static bool
asks_by(const struct type_def *def, const char *name)
{
	for (size_t i = 0; def && i < def->fields_n; i++)
		if (strcmp(def->fields[i].name, name) == 0)
			return !def->fields[i].answers;
	return false;
}

static bool
look_for_request(void *ctx, const struct mr_message *msg)
{
	struct asking *a = ctx;
	mr_auto(type_values_done) struct type_values values = { 0 };
	const struct type_def *def = strcmp(msg->from, a->asker) == 0 ? types_of(a->room, msg) : NULL;
	struct mr_str body = { msg->body ? msg->body : "", msg->body ? msg->body_len : 0 };
	struct mr_error ignored = { 0 };

	if (!asks_by(def, a->field) || (msg->folder == MR_SENT && !names_has(&msg->to, a->answerer)) ||
	    type_read(def, str_of(msg->subject), body, &values, &ignored) != MR_OK)
		return true;
	const char *value = type_value(&values, a->field);

	a->found = value && strcmp(value, a->value) == 0;
	return !a->found;
}

static enum mr_rc
look_into(struct asking *a, const char *mailbox, unsigned folders, struct mr_error *err)
{
	struct scan_request want = { .folders = folders, .depth = SCAN_BODIES, .newest_first = true };

	if (folders == 0 || a->found)
		return MR_OK;
	enum mr_rc rc = office_scan(a->room, mailbox, &want, look_for_request, a, err);

	if (rc != MR_NOTFOUND)
		return rc;
	*err = (struct mr_error){ 0 }; /* who has no mailbox was not asked */
	return MR_OK;
}

static enum mr_rc
check_field(struct asking *a, struct mr_error *err)
{
	unsigned folders = office_folders(a->room, ALL_FOLDERS);

	if (is_remembered(a))
		return MR_OK;
	enum mr_rc rc = look_into(a, a->answerer, folders & ~(unsigned)MR_SENT, err);

	if (rc == MR_OK)
		rc = look_into(a, a->asker, folders & MR_SENT, err);
	if (rc != MR_OK || a->found)
		return rc;
	return mr_fail(
	    err, MR_REFUSED, "'%s' asked '%s' nothing with %s '%.80s'", a->asker, a->answerer, a->field, a->value);
}

enum mr_rc
types_check_answer(struct mr_room *room, const struct type_def *def, const struct type_values *values,
    const char *asker, const char *answerer, struct mr_error *err)
{
	for (size_t i = 0; i < def->fields_n; i++) {
		const char *value = def->fields[i].answers ? type_value(values, def->fields[i].name) : NULL;
		struct asking a = {
			.room = room, .asker = asker, .answerer = answerer, .field = def->fields[i].name, .value = value
		};

		if (value && check_field(&a, err) != MR_OK)
			return err->code;
	}
	return MR_OK;
}

enum mr_rc
types_usable(struct mr_room *room, const char *agent, const struct mr_message *msg, struct type_values *ret,
    struct mr_error *err)
{
	const struct type_def *def = types_of(room, msg);
	enum mr_rc rc = types_fields(room, msg, ret, err);

	if (rc == MR_OK)
		rc = typed_check_member(room, msg->from, msg, err);
	if (rc == MR_OK && def)
		rc = types_check_answer(room, def, ret, agent, msg->from, err);
	return rc;
}
