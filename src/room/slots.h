/* SPDX-License-Identifier: MIT */
/*
 * slots.h - the operations of a driver, one SLOT each. room.h makes struct room_driver from this list, calls.c the
 * stand-in for a slot that a driver leaves out, trace.c and the tests' room_fault.c a wrapper around each.
 *
 *	SLOT(name, parameters, arguments, result of the stub, words of the trace...)      returns enum mr_rc
 *	SLOT_VOID(name, parameters, arguments, words...)                                  the stub does nothing
 *	SLOT_VALUE(type, name, parameters, arguments, value of the stub, words...)
 *
 * Words are printed after the call and may use rc or value. They contain no body, subject or record text, because users
 * paste traces into bug reports. There is no include guard: the list is included once for each use.
 */

/* ---- Opening ---- */
/* Required. Sets room->state, ->name, and where the kind has them ->settings, ->owner and ->relief. MR_NOTFOUND: there
 * is no room (a kind whose first message makes the room returns it only with room->must_exist). MR_REFUSED: newer
 * format, or another user's. */
SLOT(open, (struct mr_room * room, const char *where, struct mr_error *err), (room, where, err),
    room_lacks(room, "way in", err), "open")
/* also after a failed open */
SLOT_VOID(close, (struct mr_room * room), (room), "close %s", room->spec)
/* NULL: unknown. */
SLOT(storage, (struct mr_room * room, struct mr_storage *ret, struct mr_error *err), (room, ret, err),
    room_lacks(room, "report on how it stores mail", err), "storage")

/* ---- Agents ---- */
/* With names_only a driver may fill in only name and stray: that is enough for a pattern, or to find a similar name
 * among thousands. */
SLOT(each_agent, (struct mr_room * room, bool names_only, mr_agent_fn *fn, void *ctx, struct mr_error *err),
    (room, names_only, fn, ctx, err), room_lacks(room, "list of agents", err), "each_agent%s",
    names_only ? " names" : "")
/* MR_NOTFOUND: that name is not registered. ret NULL: only asks whether it is registered, for a fan-out to a
 * thousand. */
SLOT(find_agent, (struct mr_room * room, const char *name, struct mr_agent *ret, struct mr_error *err),
    (room, name, ret, err), room_lacks(room, "registered agents", err), "find_agent '%s'%s", name,
    ret ? "" : " is there")
/* A number that changes when an agent is removed; 0: unknown. For struct delivery. */
SLOT_VALUE(uint64_t, removals, (struct mr_room * room), (room), 0, "removals %llu", (unsigned long long)value)
/* With ROOM_REGISTER: takes the name and makes the mailbox, durably. MR_EXISTS: the name is taken (of several callers
 * one wins); MR_REFUSED: it differs from another name only in case. agent->life is ignored. In a kind without lives,
 * whose mailboxes have ids of their own, agent->session is the id for the mailbox, or "". The role is stored in the
 * same step as the mailbox, and find_agent returns it: links find out by it whose mailbox this is. */
SLOT(add_agent, (struct mr_room * room, const struct mr_agent *agent, struct mr_error *err), (room, agent, err),
    room_lacks(room, "registered agents", err), "add_agent '%s'", agent->name)
/* Takes life `agent->life` with agent's process, session, worktree, host, durably. MR_EXISTS: another caller took that
 * number. Then fences the life before: its held mail is put back, *ret_returned counts it. */
SLOT(take_life, (struct mr_room * room, const struct mr_agent *agent, size_t *ret_returned, struct mr_error *err),
    (room, agent, ret_returned, err), room_lacks(room, "lives", err), "take_life '%s' %u", agent->name, agent->life)
/* Rewrites what is known of the life agent->life (process, session, worktree, host), or with life 0 the role, in one
 * step, durably. MR_REFUSED: the agent is another user's. NULL: agents cannot be changed. */
SLOT(update_agent, (struct mr_room * room, const struct mr_agent *agent, struct mr_error *err), (room, agent, err),
    room_lacks(room, "way to change an agent", err), "update_agent '%s' %u", agent->name, agent->life)
/* MR_REFUSED: a life newer than `life` exists. Cheap: every command that acts calls it. session not NULL: the life must
 * name that session, else MR_NOTFOUND, also if there is no such life. ret_newest not NULL: nothing is checked, and it
 * is set to the number of the newest life, 0: none yet. */
SLOT(check_life,
    (struct mr_room * room, const char *name, unsigned life, const char *session, unsigned *ret_newest,
	struct mr_error *err),
    (room, name, life, session, ret_newest, err), room_lacks(room, "lives", err), "check_life '%s' %u", name, life)
/* best effort */
SLOT_VOID(seen, (struct mr_room * room, const char *name, unsigned life, enum mr_door door), (room, name, life, door),
    "seen '%s' %u by %u", name, life, door)
/* The address for a name that a person writes, in a kind whose names have other letters or are looked up ("Old Bob", a
 * path). An address stands for itself. The agent need not exist. MR_REFUSED: it cannot be a name here. NULL: an address
 * is written as it is. */
SLOT(spell, (struct mr_room * room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err),
    (room, given, ret, err), room_lacks(room, "names of its own", err), "spell '%.60s'", given)

/* ---- Mail ---- */
/* Which fields of this message cannot be stored in this format (enum room_field)? NULL: none. The office refuses them
 * from a sender, and for a carried message writes them into the body. */
SLOT_VALUE(unsigned, unsupported, (struct mr_room * room, const struct mr_message *msg), (room, msg), 0,
    "unsupported %u", value)
/* Required. MR_OK: the message is complete, visible and durable for everyone in `to`. MR_INDOUBT: some have it, the
 * rest will get it (ret is filled in). Any other result: nobody has it. MR_REFUSED with a key: the key was used for
 * other content, unless key_is_all. In a format with ids of its own, msg->reply_to is the Message-ID header of the
 * message that is answered. */
SLOT(deliver, (struct mr_room * room, struct delivery *what, struct delivered *ret, struct mr_error *err),
    (room, what, ret, err), room_lacks(room, "delivery", err), "deliver %s from '%s' to %zu", what->msg->id,
    what->sender, what->to->n)
/* After a kill behind `staged`: was it published? The rest of an unpublished one is removed. */
SLOT(settle_ticket, (struct mr_room * room, const char *ticket, bool *ret_published, struct mr_error *err),
    (room, ticket, ret_published, err), room_lacks(room, "tickets", err), "settle_ticket '%.100s'", ticket)
/* Required. fn gets each message once, in the order of ids. MR_NOTFOUND: there is no such mailbox. */
SLOT(scan,
    (struct mr_room * room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
	struct mr_error *err),
    (room, agent, want, fn, ctx, err), room_lacks(room, "mail", err), "scan '%s' folders %u %s%s%s", agent,
    want->folders, depth_word(want->depth), want->unread_only ? " unread" : "",
    want->order == SCAN_NEWEST    ? " newest"
    : want->order == SCAN_URGENCY ? " urgency"
    : want->order == SCAN_WORK    ? " work"
				  : "")
/* Required. Looks in `folders` (0: all of that agent). With ROOM_QUEUES `agent` may be "queue:NAME": work in any state,
 * by its id, with its text. With ROOM_RAW the depth may be SCAN_RAW. */
SLOT(fetch,
    (struct mr_room * room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
	struct mr_message *ret, struct mr_error *err),
    (room, agent, id, folders, depth, ret, err), room_lacks(room, "mail", err), "fetch '%s' %s folders %u %s", agent,
    id, folders, depth_word(depth))
/* With ROOM_READ_STATE: sets and clears marks. With ROOM_ARCHIVE: moves the message to `to` (0: it stays), MR_INBOX <->
 * MR_ARCHIVE, MR_INBOX -> MR_DEAD, with its marks. MR_NOTFOUND: it is not in inbox or archive; MR_BUSY: it is held. */
SLOT(mark,
    (struct mr_room * room, const char *agent, const char *id, unsigned set, unsigned clear, enum mr_folder to,
	struct mr_error *err),
    (room, agent, id, set, clear, to, err), room_lacks(room, "marks on mail", err), "mark '%s' %s +%u -%u %s", agent,
    id, set, clear, to ? folder_word(to) : "")
/* Removes what struct removal says: REMOVE_EVERYWHERE (ROOM_PURGE), REMOVE_DEAD (ROOM_DEAD), REMOVE_POSTS
 * (ROOM_CHANNELS), REMOVE_INBOX (ROOM_CLEAR). ret_removed may be NULL. Posts are removed durably with the next
 * flush. */
SLOT(remove, (struct mr_room * room, const struct removal *what, size_t *ret_removed, struct mr_error *err),
    (room, what, ret_removed, err), room_lacks(room, "way to remove mail", err), "remove %d '%s' %s", (int)what->what,
    what->box ? what->box : "", what->id ? what->id : "")
/* Makes marks, moves and settles since the last flush durable. NULL: they already are. */
SLOT(flush, (struct mr_room * room, struct mr_error *err), (room, err), MR_OK, "flush")

/* ---- Claims on the mail of a mailbox, with ROOM_HOLDS, and on the work of a queue, with ROOM_QUEUES ---- */
/* Only one caller gets a message. In a mailbox: claims the unread message `id` of its inbox. MR_NOTFOUND: it is not
 * there; MR_BUSY: it is claimed; MR_REFUSED: terms->life is not the newest. In a queue (id NULL): claims the next ready
 * work. MR_EMPTY: none is ready; MR_BUSY: max_claims are live. The cost does not grow with the amount of waiting
 * work. */
SLOT(claim,
    (struct mr_room * room, const char *box, const char *id, const struct claim_terms *terms, struct claim *ret,
	struct mr_error *err),
    (room, box, id, terms, ret, err), room_lacks(room, "claims on mail", err), "claim '%s' for '%s'%s%s", box,
    terms->claimer ? terms->claimer : box, rc == MR_OK || id ? " " : "",
    rc == MR_OK ? ret->id
    : id        ? id
		: "")
/* Ends a claim; durable after flush. MR_NOTFOUND: that claim has ended (expired, taken over, settled): this is the
 * fence. Work ends with SETTLE_BACK, _LATER (which needs claim->agent), _DONE or _DEAD. The claim's data become its
 * history (each_past). */
SLOT(settle, (struct mr_room * room, const struct claim *claim, enum settle how, struct mr_error *err),
    (room, claim, how, err), room_lacks(room, "claims on mail", err), "settle '%s' %s token %s %s", claim->box,
    claim->id, claim->token, settle_word(how))
SLOT(extend, (struct mr_room * room, struct claim *claim, int64_t lease_ms, struct mr_error *err),
    (room, claim, lease_ms, err), room_lacks(room, "way to extend a claim", err), "extend '%s' %s token %s by %lldms",
    claim->box, claim->id, claim->token, (long long)lease_ms)
/* Messages of the box in any of the states (enum queue_state); of a mailbox only the claimed ones, of all lives. The
 * cost is bounded by the number of results only for claims. */
SLOT(each_claim,
    (struct mr_room * room, const char *box, unsigned states, bool (*fn)(void *ctx, const struct queue_item *item),
	void *ctx, struct mr_error *err),
    (room, box, states, fn, ctx, err), room_lacks(room, "claims on mail", err), "each_claim '%s' states %u", box,
    states)
/* The claim with this token, in any box. MR_NOTFOUND: it has ended or never existed, or a power cut left only the mail
 * of it, not the token; each_claim still finds that one. */
SLOT(find_claim, (struct mr_room * room, const char *token, struct claim *ret, struct mr_error *err),
    (room, token, ret, err), room_lacks(room, "claims on mail", err), "find_claim %s", token)
/* Ended claims in the order of their ends. With an id: the claims on that message, in that queue, or with box "" on
 * agents' own mail. With id NULL: the claim with that token in any box, or without a token all claims of the box since
 * then. Best effort: none is MR_OK, a power cut may lose some, and those on agents' own mail are kept for a month or
 * two. */
SLOT(each_past,
    (struct mr_room * room, const char *box, const char *id, const char *token, int64_t since_ms,
	void (*fn)(void *ctx, const struct past_claim *past), void *ctx, struct mr_error *err),
    (room, box, id, token, since_ms, fn, ctx, err), room_lacks(room, "claims on mail", err), "each_past %s",
    id      ? id
    : token ? token
	    : box)
/* Puts back claims of that mailbox that expired or whose holder died. agent NULL: completes what crashed commands left
 * behind in the room, except where another process is doing that. Cheap when there is nothing. */
SLOT(sweep, (struct mr_room * room, const char *agent, struct mr_error *err), (room, agent, err), MR_OK, "sweep '%s'",
    agent ? agent : "")
/* Makes a queue or a channel ("queue:NAME", "channel:NAME"), with ROOM_QUEUES, ROOM_CHANNELS; or with "" the room
 * itself, if it was opened without existing and the first message would make it. MR_OK if it exists. Durable. The
 * settings of queues and channels are records of the kinds "queue" and "channel". */
SLOT(make_box, (struct mr_room * room, const char *box, struct mr_error *err), (room, box, err),
    box[0] ? room_lacks(room, "work queues", err) : MR_OK, "make_box '%s'", box)
/* Removes a mailbox, a queue or a channel; *ret_dead is the number of messages moved to dead letters, or deleted. A
 * mailbox: removes the name first, then moves the unread mail to dead letters until none is left; numbers of lives are
 * kept. In a kind without dead letters: MR_REFUSED while there is unread mail, unless `force`, which deletes it. A
 * queue: MR_REFUSED while it has work (ready, delayed or claimed), unless `force`, which moves that to dead letters
 * first. Failed work is moved there in any case. A channel: ret_dead may be NULL. */
SLOT(remove_box, (struct mr_room * room, const char *box, bool force, size_t *ret_dead, struct mr_error *err),
    (room, box, force, ret_dead, err), room_lacks(room, "way to remove a mailbox", err), "remove_box '%s'", box)

/* ---- Waiting ---- */
/* Arms a watch before the caller scans. NULL: the office polls. `agent` may be "queue:NAME" or "channel:NAME"; "" is
 * the whole room. A driver that cannot watch that returns MR_NOTFOUND or MR_UNSUPPORTED. */
SLOT(watch, (struct mr_room * room, const char *agent, void **ret_watch, struct mr_error *err),
    (room, agent, ret_watch, err), room_lacks(room, "watch", err), "watch '%s'", agent)
/* True: something may have changed, look again. False: the time is up, and another look would find the same; a driver
 * that cannot tell returns true. */
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
/* MR_NOTFOUND: it is not there. name "": removes what is left of an owner without records, such as locks; MR_NOTFOUND
 * if nothing is left. */
SLOT(record_drop, (struct mr_room * room, const char *kind, const char *owner, const char *name, struct mr_error *err),
    (room, kind, owner, name, err), room_lacks(room, "records", err), "record_drop %s '%s' '%s'", kind, owner, name)
/* none: MR_OK */
SLOT(record_each,
    (struct mr_room * room, const char *kind, const char *owner, bool (*fn)(void *ctx, const char *name), void *ctx,
	struct mr_error *err),
    (room, kind, owner, fn, ctx, err), room_lacks(room, "records", err), "record_each %s '%s'", kind, owner)

/* A lock with that name beside the records of that kind and owner; record_edit_begin uses the name "". The kernel
 * releases it when this process ends. wait_ms 0: tries once. MR_BUSY: another process has it. */
SLOT(record_lock,
    (struct mr_room * room, const char *kind, const char *owner, const char *name, int64_t wait_ms, void **ret_lock,
	struct mr_error *err),
    (room, kind, owner, name, wait_ms, ret_lock, err), room_lacks(room, "records", err),
    "record_lock %s '%s' '%s' up to %lldms", kind, owner, name, (long long)wait_ms)
SLOT_VOID(record_unlock, (struct mr_room * room, void *lock), (room, lock), "record_unlock")

/* ---- Channels, with ROOM_CHANNELS. Settings are records of kind "channel". ---- */
/* Posts after that number, in order. Numbers become visible in order, so a cursor never skips one. */
SLOT(channel_scan,
    (struct mr_room * room, const char *channel, uint64_t after, enum scan_depth depth,
	bool (*fn)(void *ctx, uint64_t number, const struct mr_message *msg), void *ctx, struct mr_error *err),
    (room, channel, after, depth, fn, ctx, err), room_lacks(room, "channels", err), "channel_scan '%s' after %llu %s",
    channel, (unsigned long long)after, depth_word(depth))
/* First and last number that exist; 0, 0 if there is none. */
SLOT(channel_range,
    (struct mr_room * room, const char *channel, uint64_t *ret_first, uint64_t *ret_last, size_t *ret_count,
	struct mr_error *err),
    (room, channel, ret_first, ret_last, ret_count, err), room_lacks(room, "channels", err), "channel_range '%s'",
    channel)
/* ---- Evidence and maintenance ---- */
SLOT(each_place, (struct mr_room * room, const char *id, place_fn *fn, void *ctx, struct mr_error *err),
    (room, id, fn, ctx, err), room_lacks(room, "trail of its mail", err), "each_place %s", id)
/* Disk use of archive, sent mail, done work, dead letters and records: from names and a sample of sizes; no file is
 * opened. */
SLOT(each_cost, (struct mr_room * room, mr_cost_fn *fn, void *ctx, struct mr_error *err), (room, fn, ctx, err),
    room_lacks(room, "costs", err), "each_cost")
SLOT(inspect, (struct mr_room * room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err),
    (room, fix, fn, ctx, err), room_lacks(room, "inspection", err), "inspect%s", fix ? " and fix" : "")

#undef SLOT
#undef SLOT_VOID
#undef SLOT_VALUE
