/* SPDX-License-Identifier: MIT */
/*
 * picture.h - drawing who told whom (struct mr_picture): pure functions from the model to rows, and from rows to text.
 *
 *	layout.c   what stands in which row: messages, runs of messages, silence, the end of an agent
 *	svg.c      rows as SVG
 *	text.c     rows as columns and arrows of a terminal
 *
 * Rows have no size and lanes no place: both are the renderer's. What others wrote is made harmless there, once.
 */
#ifndef PICTURE_PICTURE_H
#define PICTURE_PICTURE_H

#include "base/buf.h"

#define RUNS_FROM 60 /* messages: fewer are all drawn */

struct picture_row {
	enum picture_row_kind {
		ROW_ARROW, /* one message */
		ROW_RUN,   /* several of the same sender to the same recipients, or of two agents in turn */
		ROW_GAP,   /* nothing happened */
		ROW_TAKEN, /* an agent took work into its hands */
		ROW_DEATH, /* the last sign of an agent that is gone */
	} kind;
	int64_t at_ms, until_ms; /* until_ms: of a run and a gap */
	size_t first, n;         /* messages */
	bool both_ways;          /* a run of two in turn */
	size_t lane;             /* ROW_TAKEN, ROW_DEATH */
	size_t bar;              /* ROW_TAKEN */
};
struct picture_span { /* of rows, the first and the one behind the last */
	size_t from, to;
	bool open; /* it goes on */
};
struct picture_layout { /* finish with picture_layout_done */
	const struct mr_picture *of;
	struct picture_row *rows;
	size_t n;
	struct picture_span *bars; /* as in the picture */
	size_t *born, *dead;       /* of each lane the row from which it is known to live, and from which it is gone */
	int64_t day_ms;            /* the day of the first row: times of that day need no date */
};
/* False: out of memory. */
bool picture_layout(struct picture_layout *ret, const struct mr_picture *picture, size_t runs_from);
void picture_layout_done(struct picture_layout *l);

/* The lanes that a row reaches, from the left to the right. */
void picture_reach(const struct picture_layout *l, const struct picture_row *row, size_t *ret_left, size_t *ret_right);
/* How many copies of the row's messages are unread. */
size_t picture_unread(const struct picture_layout *l, const struct picture_row *row);
/* "10:30:01"; on another day than the first "11-17 10:30". */
void picture_time(const struct picture_layout *l, int64_t at_ms, bool seconds, char ret[16]);
/* The subject of a message or how many there are in a run, harmless, on one line: "3 in 2m: build" */
void picture_label(const struct picture_layout *l, const struct picture_row *row, struct buf *out);

#endif
