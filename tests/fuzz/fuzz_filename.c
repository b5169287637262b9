/* SPDX-License-Identifier: MIT */
/* Any name that a folder can hold: its id is an id, and a name built from its parts says the same. */
#include "fuzz.h"

#include "base/id.h"
#include "rooms/maildir/maildir.h"

static const unsigned some_flags[] = { 0, MR_SEEN, MR_SEEN | MR_REPLIED,
	MR_PINNED | MR_TRASHED | MR_SEEN | MR_REPLIED };

static void
check_built(const struct file_name *n, unsigned attempt, unsigned flags, bool with_info)
{
	char built[NAME_LEN];
	struct file_name back;

	if (!name_build(n, attempt, flags, with_info, built))
		return;
	assert(strlen(built) < NAME_LEN && !strchr(built, '/') && built[0] != '.');
	assert(name_parse(str_of(built), &back));
	assert(back.has_info == with_info);
	assert(strcmp(back.id, n->id) == 0 && back.ours == n->ours);
	assert(back.priority == n->priority && back.look == n->look);
	assert(str_eq(back.base, n->base) || attempt == 0);
	if (attempt > 0)
		assert(back.attempt == attempt);
	if (with_info)
		assert((name_flags(&back, false) & ~(unsigned)MR_ACKED) == flags);
}

static void
check_name(struct mr_str name)
{
	struct file_name n;

	if (!name_parse(name, &n)) {
		assert(name.len == 0 || name.len >= NAME_LEN || name.ptr[0] == '.');
		return;
	}
	assert(id_valid(str_of(n.id)) && !n.held);
	assert(lies_within(n.base, name) && lies_within(n.flags, name));
	assert((name_flags(&n, false) & MR_ACKED) == 0);
	assert(n.priority >= MR_LOW && n.priority <= MR_URGENT && (n.ours || (n.priority == MR_NORMAL && !n.look)));
	for (size_t i = 0; i < sizeof(some_flags) / sizeof(*some_flags); i++) {
		check_built(&n, 3, some_flags[i], true);
		check_built(&n, 3, 0, false);
		if (n.ours)
			check_built(&n, n.attempt, some_flags[i], true);
	}
	char month[24], escaped[NAME_LEN];
	name_month(ARCHIVE_FOLDER, id_time_ms(n.id), month);
	assert(strlen(month) == sizeof(".Archive.2026-11") - 1);
	char agent[MR_ADDRESS_MAX + 1] = "";
	memcpy(agent, name.ptr, name.len < MR_ADDRESS_MAX ? name.len : MR_ADDRESS_MAX);
	name_escape(agent, escaped);
	assert(escaped[0] && !strchr(escaped, '/'));
}

static void
check_held(struct mr_str name)
{
	struct file_name n, back;
	char built[NAME_LEN];

	if (name_parse_held(name, &n)) {
		assert(n.held && token_valid(str_of(n.token)) && n.deadline_s >= 0 && id_valid(str_of(n.id)));
		assert(lies_within(n.base, name));
	}
	if (!name_parse(name, &n) || !name_build_held("0123456789ab", 1772706600, 2, name, built))
		return;
	assert(name_parse_held(str_of(built), &back));
	assert(strcmp(back.id, n.id) == 0 && strcmp(back.token, "0123456789ab") == 0);
	assert(back.deadline_s == 1772706600 && back.hold_attempt == 2 && back.attempt == n.attempt);
	assert(back.has_info == n.has_info && str_eq(back.flags, n.flags));
	assert(back.priority == n.priority && back.look == n.look);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str name = input_of(data, size);

	/* What no file name can hold ends it. */
	for (size_t i = 0; i < name.len; i++) {
		if (name.ptr[i] == '\0' || name.ptr[i] == '/')
			name.len = i;
	}
	check_name(name);
	check_held(name);
	return 0;
}
