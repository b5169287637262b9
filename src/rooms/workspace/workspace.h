/* SPDX-License-Identifier: MIT */
/*
 * workspace.h - inside the driver of kind 'workspace'.
 *
 * A yard is a folder with workspaces in it, one an agent: <yard>/<name>/.mailbox/{inbox,scratch}. A file in inbox is a
 * message that waits; taking it is a rename to scratch/<name>.in, and that rename is what decides between two workers.
 * Nothing is ever unlinked from an inbox by name: the next message of the conversation has the same name.
 *
 *	workspace.c  opening, names and places of agents
 *	mail.c       what is in an agent's folders, whether it is complete, as messages; taking it and putting it back
 *	post.c       one file into one folder; where an answer may go
 *	deliver.c    new messages and answers
 */
#ifndef ROOMS_WORKSPACE_WORKSPACE_H
#define ROOMS_WORKSPACE_WORKSPACE_H

#include "message/memo.h"
#include "rooms/kit/kit.h"

#define WORKSPACE_BUSY_MS 30000 /* how long a taken name at the destination is waited for */
#define CLIENT "client"         /* the name of a sender without a workspace */

struct peer { /* a workspace outside the yard that was named by its path, or a client */
	char address[MR_ADDRESS_MAX + 1];
	char *path; /* absolute; "" for the client */
};
struct settled { /* a file that is known to be complete */
	uint64_t inode;
	int64_t mtime_ns, size;
};
struct workspace { /* kit.path is what was opened: the owner's workspace, or the yard */
	struct kit_room kit;
	char *yard;                     /* absolute, no slash at the end: "" is the root */
	char owner[MR_ADDRESS_MAX + 1]; /* "": the room is the yard */
	struct peer *peers;
	size_t peers_n, peers_cap;
	struct settled *settled;
	size_t settled_n;
	char *reply_path; /* of the next delivery: the folder of a client without a mailbox; or NULL */
	int64_t last_ms;  /* date of the last message that this handle wrote */
	int64_t busy_ms;  /* WORKSPACE_BUSY_MS, but for tests */
};

static inline struct workspace *
workspace_of(const struct mr_room *room)
{
	return room->state;
}

/* ---- workspace.c ---- */
/* The workspace of an address, whether it exists or not. MR_REFUSED: it can be none here. */
enum mr_rc workspace_path(struct workspace *ws, const char *address, struct buf *ret, struct mr_error *err);
/* ".../lead/.mailbox/inbox/<id>" or ".../lead/.mailbox/inbox": the workspace. False: no such path. */
bool workspace_in_path(struct mr_str path, struct mr_str *ret);
/* The address of the workspace in a path, CLIENT when there is none. */
void workspace_address_in(struct mr_str path, char ret[MR_ADDRESS_MAX + 1]);
/* For find_agent and deliver: that address is there. One that is in the yard, or known already, is left alone. */
void workspace_remember(struct mr_room *room, const char *address, struct mr_str path);

/* One agent's folders: inbox, and as the other one scratch. A folder is not there where it was never needed: of the
 * owner, or scratch of anybody. */
struct box {
	struct kit_box kit;
	char *path; /* of the workspace */
	int fd;
};
static inline struct box *
box_of(struct kit_box *kit)
{
	return (struct box *)kit;
}
enum box_make { BOX_AS_IT_IS, BOX_MAKE_OWN, BOX_MAKE_ANY }; /* only the owner's own is ever made, unless MAKE_ANY */
/* For kit_format. MR_NOTFOUND: that agent has no inbox. */
enum mr_rc box_open(struct kit_box *kit, struct mr_error *err);
void box_close(struct kit_box *kit);
/* Adds the path of its inbox or scratch folder. */
void box_path(struct kit_box *kit, enum mr_folder folder, struct buf *out);
enum mr_rc box_need_scratch(struct kit_box *kit, struct mr_error *err);
/* Does this text name the box's scratch folder? Nobody else may know it. */
bool box_scratch_named(struct kit_box *kit, struct mr_str text);

/* ---- mail.c ---- */
extern const struct kit_format workspace_format;
/* What the listing knows of an item beside: item.folder is INBOX, ARCHIVE (scratch/<id>.in) or SENT (scratch/<id>). */
struct entry {
	const char *request_id, *channel;
	const char *reply; /* where the answer shall go */
	bool is_reply;
	int64_t ctime_ns;
};
static inline const struct entry *
entry_of(const struct kit_item *item)
{
	return item->more;
}
/* The bytes of an item. MR_NOTFOUND: it moved on. */
enum mr_rc workspace_text(struct kit_box *kit, const struct kit_item *item, struct buf *ret, struct mr_error *err);
void workspace_message_id(int64_t mtime_ns, struct mr_str bytes, char ret[MR_ID_LEN + 1]);
/* Is this file complete for sure? */
void workspace_settled(struct workspace *ws, const struct stat *st);

/* Renames inbox/<name> to scratch/<name>.in, numbered if that is taken; *item is where it is now. MR_NOTFOUND: another
 * was faster. */
enum mr_rc claim_take(struct kit_box *kit, struct kit_items *items, struct kit_item *item, struct mr_error *err);
/* MR_BUSY: the next message of the conversation waits under that name. */
enum mr_rc claim_back(const struct kit_box *kit, const struct kit_item *item, struct mr_error *err);

enum mr_rc workspace_fetch_answer(
    struct mr_room *room, const char *dir, const char *id, bool take, struct mr_message *ret, struct mr_error *err);

/* ---- post.c: where an answer may go ---- */
struct route {
	int dir_fd;
	char *path; /* of the file to be */
	char *name; /* its last part: the REQUEST_ID, or what the sender calls it */
};
#define ROUTE_INIT ((struct route){ .dir_fd = -1 })
/* Folder and name of the answer's file, as cp takes a path: that of the file, or of a folder for it. */
void route_split(struct mr_str reply, struct mr_str request_id, struct mr_str *ret_dir, struct mr_str *ret_name);
/* Applies the path policy to REPLY_INBOX_PATH. MR_REFUSED, MR_NOTFOUND (no such folder). */
enum mr_rc route_answer(struct kit_box *from, const struct memo *memo, struct route *ret, struct mr_error *err);
/* Opens an inbox, or a folder that a client named; no link as its last parts. */
enum mr_rc route_open_dir(struct mr_str dir, int *ret_fd, struct mr_error *err);
void route_done(struct route *route);

struct posting {
	struct mr_str bytes;
	int64_t mtime_ns;            /* in: wanted; out: as the file system keeps it */
	const struct delivery *what; /* for staged; or NULL */
	bool over_empty;             /* the empty answer to the same question makes room for it */
	bool at_once;                /* no wait for a name that is taken */
};
/* Whole, durable, never over another. What has these bytes already is success, a message of the same conversation is
 * waited for, then MR_BUSY; one of another request is MR_BUSY at once. `dir` is the folder's path, for the ticket. */
enum mr_rc post_deliver(
    struct workspace *ws, int dir_fd, const char *dir, const char *name, struct posting *p, struct mr_error *err);
/* scratch/<id>, after what has that name went to scratch/<id>.<n>. */
enum mr_rc post_draft(struct kit_box *kit, const char *id, struct posting *p, struct mr_error *err);
/* A date that no other message of this handle has. */
int64_t post_stamp(struct workspace *ws);

/* ---- The operations of room/slots.h that this driver has are workspace_<name> ---- */
#define SLOT(name, parameters, ...) enum mr_rc workspace_##name parameters;
#define SLOT_VOID(name, parameters, ...) void workspace_##name parameters;
#define SLOT_VALUE(type, name, parameters, ...) type workspace_##name parameters;
#include "room/slots.h"

#endif
