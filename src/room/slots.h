/* SPDX-License-Identifier: MIT */
/*
 * slots.h - the operations of a driver, one SLOT each. room.h makes struct room_driver from this list, calls.c the
 * stand-in for a slot that a driver leaves out, trace.c and the tests' room_fault.c a wrapper around each.
 *
 *	SLOT(name, parameters, arguments, result of the stub, words of the trace...)      returns enum mr_rc
 *	SLOT_VOID(name, parameters, arguments, words...)                                  the stub does nothing
 *	SLOT_VALUE(type, name, parameters, arguments, value of the stub, words...)
 *
 * Words are printed after the call and may use rc or value. They have no body, subject or record text: traces are
 * pasted into bug reports. A slot leaves its ret_ parameters alone on failure, but where said, and fills in err.
 * There is no include guard: the list is included once for each use.
 */

/* ---- Opening ---- */
/* Required. Sets room->state, ->name, and where the kind has them ->settings, ->owner and ->relief. MR_NOTFOUND,
 * MR_REFUSED (newer format, another user's). Where nothing need be there: MR_NOTFOUND only with room->must_exist. */
SLOT(open, (struct mr_room * room, const char *where, struct mr_error *err), (room, where, err),
    room_lacks(room, "way in", err), "open")
/* also after a failed open */
SLOT_VOID(close, (struct mr_room * room), (room), "close %s", room->spec)
/* NULL: unknown. */
SLOT(storage, (struct mr_room * room, struct mr_storage *ret, struct mr_error *err), (room, ret, err),
    room_lacks(room, "word on how it stores mail", err), "storage")

/* ---- Who lives here ---- */
/* With names_only a driver may fill in name and stray alone, and leave all else empty: a pattern or a near name among
 * thousands needs no more. */
SLOT(each_agent, (struct mr_room * room, bool names_only, mr_agent_fn *fn, void *ctx, struct mr_error *err),
    (room, names_only, fn, ctx, err), room_lacks(room, "list of agents", err), "each_agent%s",
    names_only ? " names" : "")
/* MR_NOTFOUND: nobody registered that name. ret NULL: only whether it is registered, for a fan-out to a thousand. */
SLOT(find_agent, (struct mr_room * room, const char *name, struct mr_agent *ret, struct mr_error *err),
    (room, name, ret, err), room_lacks(room, "registered agents", err), "find_agent '%s'%s", name,
    ret ? "" : " is there")
/* A number that changes when an agent is removed; 0: unknown. For struct delivery. */
SLOT_VALUE(uint64_t, removals, (struct mr_room * room), (room), 0, "removals %llu", (unsigned long long)value)
/* With ROOM_REGISTER: makes the mailbox and takes the name. MR_EXISTS: taken (one winner among many);
 * MR_REFUSED: differs from another name only in case. agent->life is ignored. A kind without lives, whose
 * mailboxes have ids of their own: agent->session is the id that the mailbox shall have, or "". Durable. The
 * role is kept with the mailbox and comes back from find_agent, at once with it or not at all: links tell by
 * it whose mailbox it is. */
SLOT(add_agent, (struct mr_room * room, const struct mr_agent *agent, struct mr_error *err), (room, agent, err),
    room_lacks(room, "registered agents", err), "add_agent '%s'", agent->name)
/* Takes life `agent->life` with agent's process, session, worktree, host. MR_EXISTS: another took that
 * number. Then fences the life before: its held mail comes back, *ret_returned says how much. Durable. */
SLOT(take_life, (struct mr_room * room, const struct mr_agent *agent, size_t *ret_returned, struct mr_error *err),
    (room, agent, ret_returned, err), room_lacks(room, "lives", err), "take_life '%s' %u", agent->name, agent->life)
/* Rewrites what is known of the life agent->life (process, session, worktree, host), or with life 0 the role. In one
 * step, durable. MR_REFUSED: it is another user's. NULL: an agent stays as it was made. */
SLOT(update_agent, (struct mr_room * room, const struct mr_agent *agent, struct mr_error *err), (room, agent, err),
    room_lacks(room, "way to change an agent", err), "update_agent '%s' %u", agent->name, agent->life)
/* MR_REFUSED when a newer life than `life` exists. Cheap: called by every command that acts. session NULL, or
 * the one that the life must name: else MR_NOTFOUND, with or without such a life. With ret_newest nothing is checked:
 * it gets the number of the newest life, 0: none yet. */
SLOT(check_life,
    (struct mr_room * room, const char *name, unsigned life, const char *session, unsigned *ret_newest,
	struct mr_error *err),
    (room, name, life, session, ret_newest, err), room_lacks(room, "lives", err), "check_life '%s' %u", name, life)
/* best effort */
SLOT_VOID(seen, (struct mr_room * room, const char *name, unsigned life, enum mr_door door), (room, name, life, door),
    "seen '%s' %u by %u", name, life, door)
/* What a person writes for an agent where names have other letters, or are looked up ("Old Bob", a path): its
 * address; what is an address already stands for itself. It need not exist. MR_REFUSED: it cannot be a name
 * here. NULL: an address is written as it is. */
SLOT(spell, (struct mr_room * room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err),
    (room, given, ret, err), room_lacks(room, "names of its own", err), "spell '%.60s'", given)

/* ---- Mail ---- */
/* Which of the fields that this message has can this format not hold (enum room_field)? NULL: it holds all. The
 * office refuses those of a sender here, and states those of a carried message in its body. */
SLOT_VALUE(unsigned, unsupported, (struct mr_room * room, const struct mr_message *msg), (room, msg), 0,
    "unsupported %u", value)
/* Required. MR_OK: whole, visible and durable for everyone in `to`. MR_INDOUBT: some have it, the rest will (ret is
 * filled in). Anything else: nobody has it. With a key: MR_REFUSED when it was used for another content, unless
 * key_is_all. A format with ids of its own: msg->reply_to is in that form, as the header Message-ID of the message
 * answered had it. */
SLOT(deliver, (struct mr_room * room, struct delivery *what, struct delivered *ret, struct mr_error *err),
    (room, what, ret, err), room_lacks(room, "delivery", err), "deliver %s from '%s' to %zu", what->msg->id,
    what->sender, what->to->n)
/* After a kill behind `staged`: was it published? What is left of one that was not is removed. */
SLOT(settle_ticket, (struct mr_room * room, const char *ticket, bool *ret_published, struct mr_error *err),
    (room, ticket, ret_published, err), room_lacks(room, "tickets", err), "settle_ticket '%.100s'", ticket)
/* Required. fn gets each message once, in order of ids. A mailbox that does not exist is MR_NOTFOUND. */
SLOT(scan,
    (struct mr_room * room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
	struct mr_error *err),
    (room, agent, want, fn, ctx, err), room_lacks(room, "mail", err), "scan '%s' folders %u %s%s%s", agent,
    want->folders, depth_word(want->depth), want->unread_only ? " unread" : "",
    want->order == SCAN_NEWEST    ? " newest"
    : want->order == SCAN_URGENCY ? " urgency"
    : want->order == SCAN_WORK    ? " work"
				  : "")
/* Required. Looks in `folders` (0: everywhere of that agent). With ROOM_QUEUES `agent` may be "queue:NAME": work in
 * whatever state, by its id, with its text. With ROOM_RAW the depth may be SCAN_RAW. */
SLOT(fetch,
    (struct mr_room * room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
	struct mr_message *ret, struct mr_error *err),
    (room, agent, id, folders, depth, ret, err), room_lacks(room, "mail", err), "fetch '%s' %s folders %u %s", agent,
    id, folders, depth_word(depth))
/* With ROOM_READ_STATE: sets and clears marks. With ROOM_ARCHIVE: moves it to `to` (0: it stays), MR_INBOX <->
 * MR_ARCHIVE, MR_INBOX -> MR_DEAD; marks are kept. MR_NOTFOUND when it is not in inbox or archive, MR_BUSY when held.
 */
SLOT(mark,
    (struct mr_room * room, const char *agent, const char *id, unsigned set, unsigned clear, enum mr_folder to,
	struct mr_error *err),
    (room, agent, id, set, clear, to, err), room_lacks(room, "marks on mail", err), "mark '%s' %s +%u -%u %s", agent,
    id, set, clear, to ? folder_word(to) : "")
/* What REMOVE_EVERYWHERE (ROOM_PURGE), REMOVE_DEAD (ROOM_DEAD), REMOVE_POSTS (ROOM_CHANNELS) or REMOVE_INBOX
 * (ROOM_CLEAR) says. ret_removed may be NULL. Posts go with the next flush. */
SLOT(remove, (struct mr_room * room, const struct removal *what, size_t *ret_removed, struct mr_error *err),
    (room, what, ret_removed, err), room_lacks(room, "way to remove mail", err), "remove %d '%s' %s", (int)what->what,
    what->box ? what->box : "", what->id ? what->id : "")
/* Makes marks, moves and settles since the last flush durable. NULL: they already are. */
SLOT(flush, (struct mr_room * room, struct mr_error *err), (room, err), MR_OK, "flush")

/* ---- Claims on the mail of a mailbox, with ROOM_HOLDS, and on the work of a queue, with ROOM_QUEUES ---- */
/* One winner a message. Of a mailbox: the unread message `id` of its inbox. MR_NOTFOUND: not there; MR_BUSY: it is
 * claimed; MR_REFUSED: terms->life is not the newest. Of a queue (id NULL): the next that is ready. MR_EMPTY: nothing
 * is; MR_BUSY: max_claims are live. The cost does not grow with what waits. */
SLOT(claim,
    (struct mr_room * room, const char *box, const char *id, const struct claim_terms *terms, struct claim *ret,
	struct mr_error *err),
    (room, box, id, terms, ret, err), room_lacks(room, "claims on mail", err), "claim '%s' for '%s'%s%s", box,
    terms->claimer ? terms->claimer : box, rc == MR_OK || id ? " " : "",
    rc == MR_OK ? ret->id
    : id        ? id
		: "")
/* MR_NOTFOUND: that claim is over (expired, taken over, settled): the fence. Work ends with SETTLE_BACK, _LATER, which
 * needs claim->agent, _DONE or _DEAD. Durable after flush. What is known of the claim becomes its past. */
SLOT(settle, (struct mr_room * room, const struct claim *claim, enum settle how, struct mr_error *err),
    (room, claim, how, err), room_lacks(room, "claims on mail", err), "settle '%s' %s token %s %s", claim->box,
    claim->id, claim->token, settle_word(how))
SLOT(extend, (struct mr_room * room, struct claim *claim, int64_t lease_ms, struct mr_error *err),
    (room, claim, lease_ms, err), room_lacks(room, "way to extend a claim", err), "extend '%s' %s token %s by %lldms",
    claim->box, claim->id, claim->token, (long long)lease_ms)
/* Messages of the box in any of the states (enum queue_state). Of a mailbox only those that are claimed, by all lives.
 * Only for claims is the cost bounded by their number. */
SLOT(each_claim,
    (struct mr_room * room, const char *box, unsigned states, bool (*fn)(void *ctx, const struct queue_item *item),
	void *ctx, struct mr_error *err),
    (room, box, states, fn, ctx, err), room_lacks(room, "claims on mail", err), "each_claim '%s' states %u", box,
    states)
/* The claim with this token, in whatever box. MR_NOTFOUND: over, or never was; also a claim on mail of which a power
 * cut left nothing but the mail: each_claim knows it. */
SLOT(find_claim, (struct mr_room * room, const char *token, struct claim *ret, struct mr_error *err),
    (room, token, ret, err), room_lacks(room, "claims on mail", err), "find_claim %s", token)
/* The claims on `id` that are over, in the order of their ends: in that queue, or with box "" on agents' own mail; or
 * with id NULL the one with that token, in whatever box, or without a token all of the box since then. As far as there
 * is evidence: none is MR_OK, a power cut may take some, and those on own mail are kept for a month or two. */
SLOT(each_past,
    (struct mr_room * room, const char *box, const char *id, const char *token, int64_t since_ms,
	void (*fn)(void *ctx, const struct past_claim *past), void *ctx, struct mr_error *err),
    (room, box, id, token, since_ms, fn, ctx, err), room_lacks(room, "claims on mail", err), "each_past %s",
    id      ? id
    : token ? token
	    : box)
/* Puts back what expired or whose holder died in that mailbox. agent NULL: completes what crashed commands left behind
 * in the room, as far as nobody is working on it. Cheap when there is nothing. */
SLOT(sweep, (struct mr_room * room, const char *agent, struct mr_error *err), (room, agent, err), MR_OK, "sweep '%s'",
    agent ? agent : "")
/* The place of a queue or a channel ("queue:NAME", "channel:NAME"), with ROOM_QUEUES, ROOM_CHANNELS; "": that of a room
 * which was opened without being there, and which else the first message makes. There already: MR_OK. Durable. The
 * settings of queues and channels are records of the kinds "queue" and "channel". */
SLOT(make_box, (struct mr_room * room, const char *box, struct mr_error *err), (room, box, err),
    box[0] ? room_lacks(room, "work queues", err) : MR_OK, "make_box '%s'", box)
/* A mailbox, a queue or a channel; *ret_dead is set to the messages that were moved to dead letters, or deleted. A
 * mailbox: takes the name away first, then moves the unread mail to dead letters until nothing is left; numbers of
 * lives survive. A kind without dead letters: MR_REFUSED while there is unread mail, unless `force`, which deletes it.
 * A queue: MR_REFUSED with work in it (ready, delayed or claimed), unless `force`, which moves that to dead letters
 * first. Failed work goes there in any case. A channel: ret_dead may be NULL. */
SLOT(remove_box, (struct mr_room * room, const char *box, bool force, size_t *ret_dead, struct mr_error *err),
    (room, box, force, ret_dead, err), room_lacks(room, "way to remove a mailbox", err), "remove_box '%s'", box)

/* ---- Waiting ---- */
/* Arms before the caller scans. NULL: the office polls. `agent` may be "queue:NAME" or "channel:NAME"; "" is
 * the whole room, where the driver can: any other answers MR_NOTFOUND or MR_UNSUPPORTED. */
SLOT(watch, (struct mr_room * room, const char *agent, void **ret_watch, struct mr_error *err),
    (room, agent, ret_watch, err), room_lacks(room, "watch", err), "watch '%s'", agent)
/* True: something may have changed: look again. False: the time is up, and a look would find what the one before found;
 * a driver that cannot tell says true. */
SLOT_VALUE(bool, watch_wait, (struct mr_room * room, void *watch, int64_t timeout_ms), (room, watch, timeout_ms), true,
    "watch_wait up to %lldms%s", (long long)timeout_ms, value ? "" : " nothing changed")
SLOT_VOID(watch_close, (struct mr_room * room, void *watch), (room, watch), "watch_close")

/* ---- Records of the post office: small named values (due answers, tombstones, later groups ...) ---- */
/* kind is a word such as "due"; owner an agent or ""; name 1-80 bytes [A-Za-z0-9._-]. Each op is atomic and
 * durable. */
/* replaces */
SLOT(record_put,
    (struct mr_room * room, const char *kind, const char *owner, const char *name, struct mr_str text,
	struct mr_error *err),
    (room, kind, owner, name, text, err), room_lacks(room, "records", err), "record_put %s '%s' '%s' %zu bytes", kind,
    owner, name, text.len)
SLOT(record_get,
    (struct mr_room * room, const char *kind, const char *owner, const char *name, struct buf *ret,
	struct mr_error *err),
    (room, kind, owner, name, ret, err), room_lacks(room, "records", err), "record_get %s '%s' '%s'", kind, owner, name)
/* MR_NOTFOUND when it is not there. name "": what is left of an owner whose records are all dropped, such as locks;
 * MR_NOTFOUND where that is nothing. */
SLOT(record_drop, (struct mr_room * room, const char *kind, const char *owner, const char *name, struct mr_error *err),
    (room, kind, owner, name, err), room_lacks(room, "records", err), "record_drop %s '%s' '%s'", kind, owner, name)
/* none: MR_OK */
SLOT(record_each,
    (struct mr_room * room, const char *kind, const char *owner, bool (*fn)(void *ctx, const char *name), void *ctx,
	struct mr_error *err),
    (room, kind, owner, fn, ctx, err), room_lacks(room, "records", err), "record_each %s '%s'", kind, owner)

/* A lock of that name beside the records of that kind and owner; name "" is the one of record_edit_begin. The kernel
 * lets it go when this process ends. wait_ms 0: tries once. MR_BUSY: another has it. */
SLOT(record_lock,
    (struct mr_room * room, const char *kind, const char *owner, const char *name, int64_t wait_ms, void **ret_lock,
	struct mr_error *err),
    (room, kind, owner, name, wait_ms, ret_lock, err), room_lacks(room, "records", err),
    "record_lock %s '%s' '%s' up to %lldms", kind, owner, name, (long long)wait_ms)
SLOT_VOID(record_unlock, (struct mr_room * room, void *lock), (room, lock), "record_unlock")

/* ---- Channels, with ROOM_CHANNELS. Settings are records of kind "channel". ---- */
/* Posts after that number, in order; numbers become visible in order, so a cursor never skips one. */
SLOT(channel_scan,
    (struct mr_room * room, const char *channel, uint64_t after, enum scan_depth depth,
	bool (*fn)(void *ctx, uint64_t number, const struct mr_message *msg), void *ctx, struct mr_error *err),
    (room, channel, after, depth, fn, ctx, err), room_lacks(room, "channels", err), "channel_scan '%s' after %llu %s",
    channel, (unsigned long long)after, depth_word(depth))
/* First and last number that are there; 0, 0 when there is none. */
SLOT(channel_range,
    (struct mr_room * room, const char *channel, uint64_t *ret_first, uint64_t *ret_last, size_t *ret_count,
	struct mr_error *err),
    (room, channel, ret_first, ret_last, ret_count, err), room_lacks(room, "channels", err), "channel_range '%s'",
    channel)
/* ---- Evidence and care ---- */
SLOT(each_place, (struct mr_room * room, const char *id, place_fn *fn, void *ctx, struct mr_error *err),
    (room, id, fn, ctx, err), room_lacks(room, "trail of its mail", err), "each_place %s", id)
/* What archive, sent mail, done work, dead letters and records cost: names and a sample of sizes, no file is opened. */
SLOT(each_cost, (struct mr_room * room, mr_cost_fn *fn, void *ctx, struct mr_error *err), (room, fn, ctx, err),
    room_lacks(room, "costs", err), "each_cost")
SLOT(inspect, (struct mr_room * room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err),
    (room, fix, fn, ctx, err), room_lacks(room, "inspection", err), "inspect%s", fix ? " and fix" : "")

#undef SLOT
#undef SLOT_VOID
#undef SLOT_VALUE
