/* SPDX-License-Identifier: MIT */
/* near.c - nothing is called so: what of all that there is could have been meant. */
#include "base/format.h"
#include "base/text.h"
#include "office/address/resolve.h"

#define NEAR_MAX 4
#define NEAR_DISTANCE 2

struct near { /* the nearest few, nearest first; the last place is for the one that drops out */
	const char *wanted;
	const char *prefix; /* "group:" and the like, put before the name that is offered */
	struct {
		char shown[MR_ADDRESS_MAX + 16];
		size_t distance;
	} v[NEAR_MAX + 1];
	size_t n;
};

static const char *
last_part(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash ? slash + 1 : name;
}

static bool
offer(struct near *near, const char *name)
{
	size_t distance = edit_distance(near->wanted, name, NEAR_DISTANCE), at = near->n;

	/* "witness" may mean "green/witness". */
	if (distance > NEAR_DISTANCE && ascii_caseeq(last_part(near->wanted), last_part(name)))
		distance = NEAR_DISTANCE;
	if (distance > NEAR_DISTANCE || (distance > 0 && distance >= strlen(near->wanted)))
		return true;
	for (; at > 0 && near->v[at - 1].distance > distance; at--)
		near->v[at] = near->v[at - 1];
	(void)snprintf(near->v[at].shown, sizeof(near->v[at].shown), "%s%.160s", near->prefix, name);
	near->v[at].distance = distance;
	if (near->n < NEAR_MAX)
		near->n++;
	return true;
}

static bool
offer_name(void *ctx, const char *name)
{
	return offer(ctx, name);
}

static void
offer_pattern(void *ctx, struct mr_str name)
{
	char z[MR_ADDRESS_MAX + 1];

	if (name.len == 0 || name.len > MR_ADDRESS_MAX || name.ptr[name.len - 1] == '/')
		return;
	memcpy(z, name.ptr, name.len);
	z[name.len] = '\0';
	(void)offer(ctx, z);
}

static void
look(struct resolver *r, struct near *near)
{
	static const char *const kinds[][2] = { { "group", "group:" }, { "queue", "queue:" },
		{ "channel", "channel:" } };
	struct mr_error ignored = { 0 };

	near->prefix = "";
	if (resolver_agents(r, &ignored) == MR_OK)
		for (size_t i = 0; i < r->agents_n; i++)
			(void)offer(near, r->agents[i].name);
	for (size_t i = 0; i < 3; i++) {
		near->prefix = kinds[i][1];
		if (target_supported(r->room, kinds[i][0], &ignored) == MR_OK)
			(void)r->room->driver->record_each(r->room, kinds[i][0], "", offer_name, near, &ignored);
	}
	near->prefix = "@";
	pattern_each(r->room, offer_pattern, near);
}

/* What else helps, at the end of the hint. */
static const char *
advice(const struct mr_room *room, const char *what)
{
	if (!office_has_lives(room))
		return "`mailroom who` lists the agents";
	if (strcmp(what, "pattern") == 0)
		return "known are @all @town @overseer @witnesses @refineries @deacons @dogs @crew @polecats "
		       "@rig/R "
		       "@crew/R @polecats/R, groups, and Pattern- lines of the room";
	if (strcmp(what, "group") == 0)
		return "`mailroom group list` lists them";
	if (strcmp(what, "queue") == 0)
		return "`mailroom queue list` lists them";
	if (strcmp(what, "channel") == 0)
		return "`mailroom channel list` lists them";
	return "`mailroom who` lists the agents; --hold makes a mailbox that waits";
}

enum mr_rc
near_unknown(struct resolver *r, const char *what, const char *name, struct mr_error *err)
{
	mr_auto(buf_done) struct buf list = BUF_INIT;
	struct near near = { .wanted = name };
	bool may_wait = strstr(what, "agent") && (r->room->driver->abilities & ROOM_REGISTER);

	(void)mr_fail(err, MR_NOTFOUND, "no %s '%s%.160s' in room '%s'", what, strcmp(what, "pattern") == 0 ? "@" : "",
	    name, r->room->name);
	if (r->depth > 0) /* nobody sees the hint of a member */
		return err->code;
	look(r, &near);
	for (size_t i = 0; i < near.n; i++)
		format_addf(&list, "%s'%s'", i > 0 ? ", " : "", near.v[i].shown);
	if (near.n > 0 && buf_ok(&list))
		return mr_hint(
		    err, "did you mean %.180s?%s", buf_z(&list), may_wait ? " --hold makes a mailbox that waits" : "");
	return mr_hint(err, "%s", advice(r->room, what));
}
