/* SPDX-License-Identifier: MIT */
/*
 * escalate.h - trouble that somebody must see to. An escalation is a record (kind "escalation", header lines) and mail
 * to those on the route of its severity:
 *
 *	Escalate-Low, -Medium, -High, -Critical: addresses, with commas between them     lines of the room's settings
 *
 * By default it goes to the operator, and to the mayor where there is one. The record comes first, so that what was
 * cut off before the mail went out is found and told by the next `escalate stale`.
 */
#ifndef OFFICE_ESCALATE_H
#define OFFICE_ESCALATE_H

#include "office/office.h"

#define ESCALATION "escalation" /* kind of record */
#define ESCALATION_RAISED_MAX 2
#define ESCALATION_STALE_MS ((int64_t)4 * 3600 * 1000)

/* ---- escalate_record.c ---- */
enum mr_rc escalation_able(const struct mr_room *room, struct mr_error *err); /* MR_UNSUPPORTED */
enum mr_rc escalation_write(const struct mr_escalation *e, struct buf *out, struct mr_error *err);
enum mr_rc escalation_parse(const char *id, struct mr_str text, struct mr_escalation *ret, struct mr_error *err);
/* Reads it, lets `edit` change it, writes it, under its lock. MR_EMPTY from edit: nothing to write, and no error. Its
 * strings may be borrowed from anywhere until the call ends. ret (may be NULL) gets it as it is afterwards. */
typedef enum mr_rc escalation_edit_fn(void *ctx, struct mr_escalation *e, struct mr_error *err);
enum mr_rc escalation_change(struct mr_room *room, const char *id, escalation_edit_fn *edit, void *ctx,
    struct mr_escalation *ret, struct mr_error *err);
/* The full id for the end of one. */
enum mr_rc escalation_find(
    struct mr_room *room, const char *given, char ret[MR_ESCALATION_ID_LEN + 1], struct mr_error *err);

/* ---- escalate_mail.c ---- */
/* Tells those on the route who were not told yet (e->told), and notes who got the mail in ret; ret_told gets all who
 * were told by now, as they stand in the route. Safe to repeat. `before`: the severity that it had, when it was raised;
 * else its own. MR_INDOUBT: not all of them. */
enum mr_rc escalation_tell(struct mr_room *room, const struct mr_self *self, const struct mr_escalation *e,
    enum mr_level before, bool dry_run, struct mr_escalated *ret, struct buf *ret_told, struct mr_error *err);

#endif
