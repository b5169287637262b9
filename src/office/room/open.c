/* SPDX-License-Identifier: MIT */
/* open.c - opening a room for use: the driver's open, trust, tracing, and completing what crashed
 * commands left behind. */
#include "base/error.h"
#include "office/rules/config.h"
#include "office/types/types.h"
#include "office/who/who.h"

static void
free_office(struct mr_room *room)
{
	types_detach(room);
	config_detach(room);
	free(room->office);
	room->office = NULL;
}

/* What could not be completed now is completed by a later command; reading mail must not wait for it. */
static void
recover(struct mr_room *room)
{
	struct mr_error err = { 0 };

	if (room->driver->sweep(room, NULL, &err) == MR_OK || !room->trace)
		return;
	mr_auto(buf_done) struct buf line = BUF_INIT;

	buf_addf(&line, "recover: put off: %s", err.message);
	room->trace(room->trace_ctx, buf_z(&line));
}

enum mr_rc
mr_room_open(const char *spec, const struct mr_room_options *options, struct mr_room **ret_room, struct mr_error *err)
{
	static const struct mr_room_options plain = { 0 };
	const struct mr_room_options *o = options ? options : &plain;
	struct mr_room *room = NULL;
	enum mr_rc rc = room_open_spec(spec, o, &room, err);

	if (rc != MR_OK)
		return rc;
	room->trace = o->trace;
	room->trace_ctx = o->trace_ctx;
	if (o->trace)
		room_wrap_trace(room);
	room->data_dir = o->data_dir ? strdup(o->data_dir) : NULL;
	room->office = calloc(1, sizeof(*room->office));
	room->office_free = free_office;
	rc = (o->data_dir && !room->data_dir) || !room->office ? mr_nomem(err) : types_attach(room, err);
	if (rc == MR_OK)
		rc = config_attach(room, o, err);
	if (rc == MR_OK) /* before anything in it is acted on: recovery completes deliveries */
		rc = config_trusts(room, err);
	if (rc != MR_OK) {
		room_free(room);
		return rc;
	}
	if (!o->no_recover)
		recover(room);
	*ret_room = room;
	return MR_OK;
}
