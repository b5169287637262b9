/* SPDX-License-Identifier: MIT */
/* schedule.c - who moves when: written, read, thrown by dice and followed. See race.h. */
#include "race.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
schedule_add(struct schedule *s, char who, enum turn_end how, unsigned n)
{
	if (s->n < TURNS_MAX)
		s->turns[s->n++] = (struct turn){ who, how, n };
}

bool
schedule_parse(const char *text, struct schedule *ret)
{
	*ret = (struct schedule){ 0 };
	while (*text != '\0') {
		char who = *text++;
		if (who == ' ')
			continue;
		if (who != 'A' && who != 'B')
			return false;
		if (*text == '*' || *text == '!') {
			schedule_add(ret, who, *text == '*' ? TURN_TO_END : TURN_KILL, 0);
			text++;
			continue;
		}
		char *end = NULL;
		unsigned long n = strtoul(text, &end, 10);
		if (end == text)
			return false;
		schedule_add(ret, who, TURN_STEPS, (unsigned)n);
		text = end;
	}
	return ret->n > 0;
}

void
schedule_print(const struct schedule *s, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < s->n && n + 16 < size; i++) {
		const struct turn *t = &s->turns[i];
		const char *space = i > 0 ? " " : "";
		int len = t->how == TURN_STEPS
			      ? snprintf(ret + n, size - n, "%s%c%u", space, t->who, t->n)
			      : snprintf(ret + n, size - n, "%s%c%c", space, t->who, t->how == TURN_KILL ? '!' : '*');
		n += (size_t)len;
	}
}

uint32_t
race_dice(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

void
schedule_random(uint64_t *dice, unsigned length, struct schedule *ret)
{
	static const unsigned longest[] = { 2, 8, 40 }; /* steps a turn: some bugs need many switches, most need two */
	unsigned most = longest[race_dice(dice) % 3];
	unsigned turns = most > 8 ? 3 + race_dice(dice) % 3 : 4 + race_dice(dice) % (TURNS_MAX / 2);
	char who = race_dice(dice) % 2 ? 'A' : 'B';

	*ret = (struct schedule){ 0 };
	/* A start anywhere: else short turns would only ever meet at the beginning. */
	schedule_add(ret, who == 'A' ? 'B' : 'A', TURN_STEPS, 1 + race_dice(dice) % (length + 1));
	schedule_add(ret, who, TURN_STEPS, 1 + race_dice(dice) % (length + 1));
	for (unsigned i = 0; i < turns; i++, who = who == 'A' ? 'B' : 'A')
		schedule_add(ret, who == 'A' ? 'B' : 'A', TURN_STEPS, 1 + race_dice(dice) % most);
	if (race_dice(dice) % 4 == 0) {
		schedule_add(ret, who, TURN_KILL, 0);
	}
}

static void
take_turn(const struct turn *t, struct actor *one)
{
	if (t->how == TURN_KILL) {
		actor_kill(one);
		return;
	}
	for (unsigned i = 0; t->how == TURN_TO_END || i < t->n; i++)
		if (actor_step(one) != REACH_STEP)
			return;
}

bool
schedule_run(const struct schedule *s, struct actor *a, struct actor *b, bool *ret_beyond)
{
	*ret_beyond = false;
	for (size_t i = 0; i < s->n; i++) {
		struct actor *one = s->turns[i].who == 'A' ? a : b;
		take_turn(&s->turns[i], one);
		if (i == 0)
			*ret_beyond = one->ended;
	}
	return actors_finish(a, b);
}
