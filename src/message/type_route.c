/* SPDX-License-Identifier: MIT */
/* type_route.c - may this one send a message of this type to that one? See type.h. */
#include "message/address.h"
#include "message/type_own.h"

struct party {
	struct mr_str agent; /* without room, without slash at the end */
	const char *role;    /* or NULL */
};

static struct party
party_of(const char *address, const char *role)
{
	struct party p = { .role = role };
	struct mr_str room;

	address_split(str_of(address ? address : ""), &p.agent, &room);
	if (p.agent.len > 1 && p.agent.ptr[p.agent.len - 1] == '/')
		p.agent.len--;
	return p;
}

/* "polecat", "polecats", "polecat-7", "team-lead" */
static bool
part_says(struct mr_str part, struct mr_str role)
{
	if (part.len < role.len)
		return false;
	struct mr_str begin = { part.ptr, role.len }, end = { part.ptr + part.len - role.len, role.len };
	size_t more = part.len - role.len;

	if (str_caseeq(begin, role))
		return more == 0 || part.ptr[role.len] == '-' || (more == 1 && part.ptr[role.len] == 's');
	return str_caseeq(end, role) && part.ptr[more - 1] == '-';
}

static bool
address_says(struct mr_str agent, struct mr_str role)
{
	for (size_t i = 0, from = 0; i <= agent.len; i++)
		if (i == agent.len || agent.ptr[i] == '/') {
			if (part_says((struct mr_str){ agent.ptr + from, i - from }, role))
				return true;
			from = i + 1;
		}
	return false;
}

/* "deacon/dogs/rex" is a dog and "gp/witness" a witness: the last part that says a role counts. */
static bool
says_another(struct mr_str agent)
{
	static const char *const roles[] = { "mayor", "deacon", "witness", "refinery", "polecat", "crew", "dog", "boot",
		"overseer", NULL };

	for (size_t i = 0; roles[i]; i++)
		if (address_says(agent, str_of(roles[i])))
			return true;
	return false;
}

static bool
is_role(const struct party *p, struct mr_str role)
{
	if (str_eq(role, STR("any")))
		return true;
	if (p->role && p->role[0] && str_caseeq(str_of(p->role), role))
		return true;
	if (str_eq(role, STR("worker")))
		return !is_role(p, STR("lead"));
	if (address_says(p->agent, role))
		return !str_eq(role, STR("deacon")) || p->agent.len == role.len;
	bool a_worker = str_eq(role, STR("polecat")) || str_eq(role, STR("crew"));

	return a_worker && memchr(p->agent.ptr, '/', p->agent.len) && !says_another(p->agent);
}

static bool
side_fits(struct mr_str side, const struct party *p, const struct party *sender)
{
	while (side.len > 0) {
		size_t n = 0;

		while (n < side.len && side.ptr[n] != ' ' && side.ptr[n] != ',')
			n++;
		struct mr_str role = { side.ptr, n };

		if (str_eq(role, STR("self")) ? str_eq(p->agent, sender->agent) : n > 0 && is_role(p, role))
			return true;
		side.ptr += n < side.len ? n + 1 : n;
		side.len -= n < side.len ? n + 1 : n;
	}
	return false;
}

bool
type_route_fits(const struct type_def *def, const char *sender, const char *sender_role, const char *recipient,
    const char *recipient_role)
{
	struct party from = party_of(sender, sender_role), to = party_of(recipient, recipient_role);

	for (size_t i = 0; i < def->routes.n; i++) {
		const char *route = def->routes.v[i], *arrow = strstr(route, "->");

		if (arrow && side_fits(str_trim((struct mr_str){ route, (size_t)(arrow - route) }), &from, &from) &&
		    side_fits(str_trim(str_of(arrow + 2)), &to, &from))
			return true;
	}
	return def->routes.n == 0;
}
