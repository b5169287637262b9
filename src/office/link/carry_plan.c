/* SPDX-License-Identifier: MIT */
/* carry_plan.c - the record of how far a message is on its way to one recipient; carry_one.c says what the states mean.
 */
#include "office/link/carry_plan.h"

#include "base/error.h"
#include "base/id.h"

void
plan_name(const char *id, const char *recipient, char ret[64])
{
	char hash[65];

	sha256_hex(str_of(recipient), hash);
	(void)snprintf(ret, 64, "%s-%.16s", id, hash);
}

void
plan_done(struct plan *p)
{
	record_done(&p->lines);
}

static const char *
line(const struct plan *p, const char *name)
{
	const char *value = record_get(&p->lines, name);

	return value ? value : "";
}

enum mr_rc
plan_load(struct carrier *c, const char *name, struct plan *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_room *room = c->room;
	enum mr_rc rc = room->driver->record_get(room, CARRYING_KIND, c->link.name, name, &text, err);

	*ret = (struct plan){ 0 };
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	*err = (struct mr_error){ 0 };
	if (rc == MR_OK)
		rc = record_parse(buf_str(&text), &ret->lines, err);
	else
		rc = MR_OK;
	if (rc != MR_OK)
		return rc;
	ret->as = line(ret, "As");
	ret->reply_to = line(ret, "Reply-To");
	ret->thread = line(ret, "Thread");
	ret->ticket = line(ret, "Ticket");
	ret->id = line(ret, "Id");
	ret->done = line(ret, "Done");
	ret->spoken = line(ret, "Spoken");
	ret->exists = *ret->as != '\0';
	ret->is_done = *ret->done != '\0';
	ret->failed = record_get(&ret->lines, "Failed") != NULL;
	return MR_OK;
}

static enum mr_rc
add_line(struct buf *out, const char *name, const char *value, struct mr_error *err)
{
	return *value ? header_add(out, name, str_of(value), err) : MR_OK;
}

enum mr_rc
plan_save(struct carrier *c, const char *name, const char *recipient, const struct plan *p, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	const struct {
		const char *name, *value;
	} lines[] = {
		{ "To", recipient },
		{ "As", p->as },
		{ "Reply-To", p->reply_to },
		{ "Thread", p->thread },
		{ "Ticket", p->ticket },
		{ "Id", p->id },
		{ "Done", p->done },
		{ "Spoken", p->spoken },
	};
	enum mr_rc rc = MR_OK;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]) && rc == MR_OK; i++)
		rc = add_line(&text, lines[i].name, lines[i].value, err);
	if (rc == MR_OK && !buf_ok(&text))
		rc = mr_nomem(err);
	if (rc != MR_OK)
		return rc;
	return c->room->driver->record_put(c->room, CARRYING_KIND, c->link.name, name, buf_str(&text), err);
}

enum mr_rc
carry_state(struct carrier *c, const char *id, const char *recipient, enum carry_state *ret, struct mr_error *err)
{
	mr_auto(plan_done) struct plan plan = { 0 };
	char name[64];
	enum mr_rc rc;

	plan_name(id, recipient, name);
	rc = plan_load(c, name, &plan, err);
	if (rc != MR_OK)
		return rc;
	if (plan.failed)
		*ret = CARRY_FAILED;
	else if (plan.is_done)
		*ret = CARRY_DONE;
	else
		*ret = plan.exists ? CARRY_ON_THE_WAY : CARRY_NEW;
	return MR_OK;
}

enum mr_rc
carry_note_failed(struct carrier *c, const char *id, const char *recipient, struct mr_error *err)
{
	char name[64];

	plan_name(id, recipient, name);
	return c->room->driver->record_put(c->room, CARRYING_KIND, c->link.name, name, STR("Failed: yes\n"), err);
}

void
carry_forget(struct carrier *c, const char *id, const char *recipient)
{
	struct mr_error ignored = { 0 };
	char name[64];

	plan_name(id, recipient, name);
	(void)c->room->driver->record_drop(c->room, CARRYING_KIND, c->link.name, name, &ignored);
}
