/* SPDX-License-Identifier: MIT */
/* face.c - the verbs of the program whose format a room has: handed through. */
#include "base/error.h"
#include "office/office.h"

enum mr_rc
mr_room_face(struct mr_room *room, const char *verb, const char *const *args, const char *input, size_t input_len,
    char **ret, size_t *ret_len, struct mr_error *err)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	if (!ROOM_FACE_HAS(room, run))
		return room_lacks(room, "verbs of another program", err);

	TRY(room->driver->face->run(room, verb, args, (struct mr_str){ input, input_len }, &out, err));
	*ret_len = out.len;
	if (out.len == 0)
		buf_addc(&out, '\0');
	*ret = buf_take(&out);
	return *ret ? MR_OK : mr_nomem(err);
}
