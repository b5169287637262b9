/* SPDX-License-Identifier: MIT */
/*
 * control.h - bodies that are control messages of some program: JSON objects with a "type". Whoever can write into a
 * mailbox could command with them, so mail from elsewhere never is one.
 */
#ifndef OFFICE_CONTROL_H
#define OFFICE_CONTROL_H

#include "base/buf.h"

bool control_is(struct mr_str body);
/* A line that says from whom it is, then the body indented by four spaces: no JSON any more. */
void control_as_prose(struct buf *out, const char *from, struct mr_str body);

#endif
