/* SPDX-License-Identifier: MIT */
/*
 * type.h - message types as data. A type file says how the subject and the body of a message of that type look, who
 * sends it to whom, and what handles it; everything here works from that and knows no type by name.
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
 *	Earlier-Life: act                      also when its sender has begun another life; else it is set aside then
 *
 * Kinds of fields: word (no blank), address, time (RFC 3339), number, boolean, literal X, one-of A B C, list (", "
 * between), text (the rest of the line; in JSON any string), json (anything), object, objects (a list of them).
 * After the kind, in any order:
 *	required | required if FIELD=VALUE
 *	only if FIELD=VALUE      not there otherwise, and neither default nor derive then
 *	subject                  stands in the subject only, not in the body
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

#define TYPE_FIELDS_MAX 100           /* of a definition; and of what a message has beyond it */
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
	const char *name; /* as it is written: "Previous Status", "hostPattern.host", "rules[].toolName" */
	enum type_kind kind;
	struct mr_names choices; /* one-of, literal */
	bool required;
	const char *when_field, *when_value; /* required only if that field has that value; NULL: always */
	const char *only_field, *only_value; /* only there if that field has that value; NULL: always */
	const char *fallback;                /* default, or NULL */
	const char *derive;                  /* where the value comes from when it is not given, or NULL */
	bool in_subject;                     /* there only, not in the body */
	bool answers;                        /* names a request by a field of the same name */
};

struct type_def { /* finish with type_done */
	const char *name, *pack, *summary;
	const char *subject;    /* form, "" when the type has no subject of its own (a team's messages) */
	struct mr_names routes; /* "witness -> refinery"; none: any to any */
	bool nudge;             /* a tap on the shoulder, not mail */
	enum mr_priority priority;
	enum type_body body;
	bool receive_type;        /* a receiver looks at the literal fields only */
	const char *intro, *text; /* lines, filled in when rendered; "" */
	bool routed;
	struct type_field *fields;
	size_t fields_n;
	struct mr_header *also; /* name: another spelling, value: the field's own name */
	size_t also_n;
	const char *handler; /* or "" */
	int64_t time_limit_ms, cooldown_ms;
	const char *cooldown_key, *escalate_to;
	unsigned escalate_after; /* 0: never */
	bool any_life;           /* it still holds when its sender has begun another life */
	struct arena *own;
};

/* Reads a type file. `name` is its file name, which Type: must repeat. MR_REFUSED says the line that is wrong; unknown
 * header names are refused, two fields that make the same environment variable too. */
enum mr_rc type_parse(
    struct mr_str text, const char *pack, const char *name, struct type_def *ret, struct mr_error *err);
void type_done(struct type_def *def);
const struct type_field *type_field(const struct type_def *def, const char *name); /* any spelling; NULL: none */
const char *type_kind_word(enum type_kind kind);

/* ---- Which type is it? ---- */

/* Does a subject have this form ("TYPE arg", "TYPE: text", with or without "Re: " and a sign such as a handshake before
 * it)? 0: no. Of several types that fit, the largest counts ("LIFECYCLE:Shutdown x" is no "LIFECYCLE: ..."). */
size_t type_subject_weight(const struct type_def *def, struct mr_str subject);
/* What the first word of a subject says when no type is known: "TYPE" of "TYPE arg", "TYPE: text" or "🤝 HANDOFF:
 * ..."; empty when it is not in capitals, shorter than three, or goes on behind the colon ("LIFECYCLE:Shutdown"). */
struct mr_str type_word(struct mr_str subject);

/* May this one send it to that one? A side of a route is a role: the one that the agent registered with (may be NULL),
 * a part of its address, also in the plural ("gp/polecats/nux"), or with something behind or before a dash
 * ("polecat-7", "team-lead"). "any" is every agent, "self" the sender itself, "worker" every agent that is no lead; an
 * agent that has no part that says its role ("gp/nux") is a polecat or crew. */
bool type_route_fits(const struct type_def *def, const char *sender, const char *sender_role, const char *recipient,
    const char *recipient_role);

/* ---- The fields of a message ---- */

struct type_values {         /* finish with type_values_done; in the order of the type, then what it does not know */
	struct mr_header *v; /* name; value as text (objects and lists of a JSON body: as JSON) */
	size_t n;
	struct mr_str free_text; /* after the fields */
	struct mr_str json;      /* of a JSON body: the whole object */
	struct arena *own;
};
void type_values_done(struct type_values *values);
const char *type_value(const struct type_values *values, const char *name); /* or NULL */
/* Both spellings of a key, any blanks after the colon, fields in the subject. MR_CORRUPT: a JSON body is none. */
enum mr_rc type_read(const struct type_def *def, struct mr_str subject, struct mr_str body, struct type_values *ret,
    struct mr_error *err);
/* For sending: every field. MR_REFUSED names the field and what it must be. In lines, something in angle brackets
 * ("<branch>", as documents print it) passes for any value: the search for placeholders judges it. */
enum mr_rc type_validate(const struct type_def *def, const struct type_values *values, struct mr_error *err);
/* For receiving: as strict as the protocol's own receivers. Fields that must be there, literals and choices, and what
 * sort of JSON they are, not the form of words and times; with "Receive: type" the literals only. */
enum mr_rc type_validate_received(const struct type_def *def, const struct type_values *values, struct mr_error *err);
bool type_is_placeholder(struct mr_str value); /* "<...>" at the start */

struct type_context { /* what "derive" can take */
	const char *sender, *recipient;
	int64_t now_ms;
	const struct type_values *request; /* of the message answered: its id fields are copied; or NULL */
	bool force;                        /* render it whatever is wrong with it */
};
/* After type_read of a received message: what it leaves out and its sender's and recipient's addresses tell (rig,
 * name, sender, recipient), and defaults, are added. */
enum mr_rc type_complete(
    const struct type_def *def, const struct type_context *context, struct type_values *values, struct mr_error *err);
/* From given fields ("Name", value) to subject and body; validated, and read again as they were given. `free_text`
 * stands after the fields ("": the type's own text). ret_subject is left empty when the type has no form and none of
 * its own. A member of an object is given as "a.b", or the object as JSON. */
enum mr_rc type_render(const struct type_def *def, const struct mr_header *given, size_t given_n,
    const struct type_context *context, struct mr_str free_text, struct buf *ret_subject, struct buf *ret_body,
    struct mr_error *err);
/* "{Polecat}" -> its value; "" when there is none. */
void type_fill(struct buf *out, const char *form, const struct type_values *values);
/* MAILROOM_FIELD_<NAME>: letters in upper case, every other byte that is no digit an underscore. */
void type_variable(struct buf *out, const char *field);

#endif
