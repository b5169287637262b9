/* SPDX-License-Identifier: MIT */
/*
 * type.h - message types as data. A type file defines the subject and the body of a message of that type, its routes,
 * and its handler; the code here knows no type by name.
 *
 *	# a line that begins with a number sign is a remark
 *	Type: MERGED                           the file's name
 *	Summary: a branch was merged
 *	Subject: MERGED {Polecat}
 *	Route: refinery -> witness             any number of them; none: any agent to any
 *	Via: mail                              or nudge
 *	Priority: high
 *	Body: lines                            "Key: value" lines; json: one object; text; front: lines between "---"
 *	Receive: type                          a receiver checks only the type (literal fields), or all (all fields)
 *	Intro: a line of free text before the fields
 *	Field: Branch; word; required
 *	Field: Exit; one-of MERGED ESCALATED DEFERRED; required
 *	Field: MR; word; required if Exit=MERGED
 *	Field: error; text; only if subtype=error; default Permission denied
 *	Field: Rig; word; derive rig
 *	Field: Polecat; word; required; derive request name; subject
 *	Field: Merged-At; time; derive now
 *	Field: rules; objects
 *	Field: rules[].toolName; word; required        a member of each object of a list; "a.b" a member of an object
 *	Also: FailureType = Failure-Type       another spelling of a key, accepted on reading
 *	Text: Please rebase onto {Target}:     lines after the fields, filled in
 *	Control: routed                        for programs: never shown to an agent as text
 *	Handler: ./on-merged {Polecat}         argv of what handles it; no shell
 *	Time-Limit: 60s
 *	Cooldown: 5m
 *	Cooldown-Key: {Bead}
 *	Escalate-After: 3
 *	Escalate-To: mayor
 *	Earlier-Life: act                      handle it even if its sender began another life; else set aside
 *
 * Kinds of fields: word (no blank), address, time (RFC 3339), number, boolean, literal X, one-of A B C, list (", "
 * between), text (the rest of the line; in JSON any string), json (anything), object, objects (a list of them). After
 * the kind, in any order:
 *	required | required if FIELD=VALUE
 *	only if FIELD=VALUE      not there otherwise, and neither default nor derive then
 *	subject                  is in the subject only, not in the body
 *	answers                  names the request that this message answers: one that has the same field must exist
 *	derive WORD...           the first that gives something: request (the same field of the message answered),
 *	                         request:FIELD, sender, recipient, rig (first part of the sender's address, else of the
 *	                         recipient's), name (last part of the sender's), now, now-ms, id (a new one), id:PREFIX,
 *	                         or these in braces: shutdown-{now-ms}@{recipient}
 *	default VALUE            the rest of the line
 *
 * Keys of lines are compared without regard to case, dashes, underscores and blanks: "Failure-Type", "FailureType" and
 * "failure_type" are one. Those of JSON and front matter are compared exactly.
 */
#ifndef MESSAGE_TYPE_H
#define MESSAGE_TYPE_H

#include "base/buf.h"
#include "message/header.h"

#define TYPE_FIELDS_MAX 100           /* fields of a definition; and of further fields in a message */
#define TYPE_FILE_MAX ((size_t)65536) /* of a definition */
#define TYPE_NEST_MAX 8               /* parts of "a.b[].c" */

enum type_kind {
	TYPE_WORD,
	TYPE_ADDRESS,
	TYPE_TIME,
	TYPE_NUMBER,
	TYPE_BOOLEAN,
	TYPE_LITERAL,
	TYPE_ONE_OF,
	TYPE_LIST,
	TYPE_TEXT,
	TYPE_JSON,
	TYPE_OBJECT,
	TYPE_OBJECTS,
};
enum type_body { TYPE_BODY_LINES, TYPE_BODY_JSON, TYPE_BODY_TEXT, TYPE_BODY_FRONT };

struct type_field {
	const char *name; /* as written: "Previous Status", "hostPattern.host", "rules[].toolName" */
	enum type_kind kind;
	struct mr_names choices; /* one-of, literal */
	bool required;
	const char *when_field, *when_value; /* required only if that field has that value; NULL: always */
	const char *only_field, *only_value; /* allowed only if that field has that value; NULL: always */
	const char *fallback;                /* default, or NULL */
	const char *derive;                  /* source of the value if it is not given, or NULL */
	bool in_subject;                     /* not in the body */
	bool answers;                        /* names a request by a field of the same name */
};

struct type_def { /* finish with type_done */
	const char *name, *pack, *summary;
	const char *subject;    /* template, "" if the type has no subject of its own (a team's messages) */
	struct mr_names routes; /* "witness -> refinery"; none: any to any */
	bool nudge;             /* a nudge, not mail */
	enum mr_priority priority;
	enum type_body body;
	bool receive_type;        /* a receiver checks the literal fields only */
	const char *intro, *text; /* lines that are filled in when rendered; or "" */
	bool routed;
	struct type_field *fields;
	size_t fields_n;
	struct mr_header *also; /* name: another spelling, value: the field's own name */
	size_t also_n;
	const char *handler; /* or "" */
	int64_t time_limit_ms, cooldown_ms;
	const char *cooldown_key, *escalate_to;
	unsigned escalate_after; /* 0: never */
	bool any_life;           /* valid even if its sender has begun another life */
	struct arena *own;
};

/* Reads a type file. `name` is its file name, which Type: must repeat. MR_REFUSED names the wrong line; unknown header
 * names, and two fields that make the same environment variable, are refused, too. */
enum mr_rc type_parse(
    struct mr_str text, const char *pack, const char *name, struct type_def *ret, struct mr_error *err);
void type_done(struct type_def *def);
const struct type_field *type_field(const struct type_def *def, const char *name); /* any spelling; NULL: none */
const char *type_kind_word(enum type_kind kind);

/* ---- Which type is it? ---- */

/* Does a subject have this form ("TYPE arg", "TYPE: text", with or without "Re: " and a sign such as a handshake before
 * it)? 0: no. If several types fit, the largest weight wins ("LIFECYCLE:Shutdown x" is no "LIFECYCLE: ..."). */
size_t type_subject_weight(const struct type_def *def, struct mr_str subject);
/* The type that the first word of a subject names if no definition is known: "TYPE" of "TYPE arg", "TYPE: text" or
 * "🤝 HANDOFF: ..."; empty if the word is not in capitals, is shorter than three, or goes on after the colon
 * ("LIFECYCLE:Shutdown"). */
struct mr_str type_word(struct mr_str subject);

/* May this sender send it to that recipient? A side of a route is a role: the one that the agent registered with (may
 * be NULL), or a part of its address, also in the plural ("gp/polecats/nux") or joined to other text by a dash
 * ("polecat-7", "team-lead"). "any" is every agent, "self" the sender itself, "worker" every agent but a lead; an agent
 * whose address names no role ("gp/nux") is a polecat or crew. */
bool type_route_fits(const struct type_def *def, const char *sender, const char *sender_role, const char *recipient,
    const char *recipient_role);

/* ---- The fields of a message ---- */

struct type_values {         /* finish with type_values_done; in the order of the type, then unknown fields */
	struct mr_header *v; /* name; value as text (objects and lists of a JSON body: as JSON) */
	size_t n;
	struct mr_str free_text; /* the text after the fields */
	struct mr_str json;      /* of a JSON body: the whole object */
	struct arena *own;
};
void type_values_done(struct type_values *values);
const char *type_value(const struct type_values *values, const char *name); /* or NULL */
/* Reads both spellings of a key, any blanks after the colon, and fields in the subject. MR_CORRUPT: a JSON body is not
 * JSON. */
enum mr_rc type_read(const struct type_def *def, struct mr_str subject, struct mr_str body, struct type_values *ret,
    struct mr_error *err);
/* For sending: checks every field. MR_REFUSED names the field and what it must be. In lines, text in angle brackets
 * ("<branch>", as documents print it) is accepted for any value: the search for placeholders judges it. */
enum mr_rc type_validate(const struct type_def *def, const struct type_values *values, struct mr_error *err);
/* For receiving: as strict as the protocol's own receivers. Checks required fields, literals and choices, and the JSON
 * kinds, not the form of words and times; with "Receive: type" only the literals. */
enum mr_rc type_validate_received(const struct type_def *def, const struct type_values *values, struct mr_error *err);
bool type_is_placeholder(struct mr_str value); /* "<...>" at the start */

struct type_context { /* sources of "derive" */
	const char *sender, *recipient;
	int64_t now_ms;
	const struct type_values *request; /* of the answered message: its id fields are copied; or NULL */
	bool force;                        /* render it in spite of errors */
};
/* After type_read of a received message: adds missing fields that follow from the addresses of sender and recipient
 * (rig, name, sender, recipient), and defaults. */
enum mr_rc type_complete(
    const struct type_def *def, const struct type_context *context, struct type_values *values, struct mr_error *err);
/* From given fields ("Name", value) to subject and body, validated, and read back to compare with what was given.
 * `free_text` follows the fields ("": the type's own text). ret_subject stays empty if the type has no form and none is
 * given. A member of an object is given as "a.b", or the object as JSON. */
enum mr_rc type_render(const struct type_def *def, const struct mr_header *given, size_t given_n,
    const struct type_context *context, struct mr_str free_text, struct buf *ret_subject, struct buf *ret_body,
    struct mr_error *err);
/* "{Polecat}" -> its value; "" if there is none. */
void type_fill(struct buf *out, const char *form, const struct type_values *values);
/* MAILROOM_FIELD_<NAME>: letters in upper case, other bytes except digits become an underscore. */
void type_variable(struct buf *out, const char *field);

#endif
