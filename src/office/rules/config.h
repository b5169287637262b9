/* SPDX-License-Identifier: MIT */
/*
 * config.h - the user's own configuration of a room: only this lets mailroom start a program or touch another room; and
 * it records that this user trusts the room. All code of the office that starts a program or opens another room asks
 * here first.
 *
 * The file is <config_dir>/rooms/<identity>, 0600, "Name: value" lines:
 *
 *	Room:      spec of the room             these three must all fit the open room: else nothing in the file counts,
 *	Place:     device and inode             so that a clone, a copy, a link or a folder in the old place of a room
 *	Identity:  random, init wrote it        has none of the rights of that room.
 *	Trusted:   TIME init|trust              a room that was found (not named) is used only with this line
 *	Notify: Sling: Bead-Status: Handler-NAME: Wake-AGENT:     commands
 *	Link-NAME: SPEC                         this room may exchange mail with that room
 *	Adopt-NAME: LOCAL FOREIGN               ... also through this mailbox there, which the link did not make
 *	Session-Handlers: yes                   agents may give `patrol` a command
 *	Nudge-On-Send: yes                      a send may type into the recipient's terminal
 *
 * A room of a kind without identities is known by the hash of its spec, and has no Place.
 *
 * The folder office/rules: config.c (the file: reading, asking, changing it; which rooms are trusted), hygiene.c (rules
 * for mail, on facts). It may call who, address and types.
 */
#ifndef OFFICE_CONFIG_H
#define OFFICE_CONFIG_H

#include "office/office.h"

struct user_config {         /* of one room, read once for each handle; it goes with struct office */
	char *dir;           /* mr_room_options.config_dir, or NULL */
	char *paths;         /* mr_room_options.trust_paths, or NULL */
	bool found;          /* the room was found, not named */
	bool read;           /* the file was looked for */
	bool elsewhere;      /* there is a file, but for another place */
	struct record lines; /* empty if there is none that counts */
};

/* Keeps the options with the room. MR_UNTRUSTED, with the reason and the line to type: the room was found and is not
 * trusted. */
enum mr_rc config_attach(struct mr_room *room, const struct mr_room_options *options, struct mr_error *err);
/* mr_config_get of the name "<prefix><rest>". */
const char *config_get_of(struct mr_room *room, const char *prefix, const char *rest);
/* Does it allow a link; with `far` one to a room of a kind that only mailroom-full opens? */
bool config_has_link(struct mr_room *room, bool far);
bool config_has(struct mr_room *room, const char *name, const char *value);
/* `how` "init": records that init is making this room, before the room exists. */
enum mr_rc config_note_made(
    const char *config_dir, const char *spec, const char *place, const char *identity, struct mr_error *err);
/* Splits a command into words as a shell would, without any other feature of a shell. n 0: err says why. */
struct mr_names split_command(const char *command, struct mr_error *err);
/* MR_REFUSED: it passes a field of a message to a shell or another interpreter as program text. */
enum mr_rc config_check_command(const char *command, struct mr_error *err);

#endif
