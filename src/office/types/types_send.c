/* SPDX-License-Identifier: MIT */
/* types_send.c - a draft that names a type: see types_send.h. */
#include "office/types/types_send.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "message/foreign.h"
#include "office/types/control.h"
#include "office/types/types_store.h"

void
typed_done(struct typed *t)
{
	buf_done(&t->subject);
	buf_done(&t->body);
	mr_names_done(&t->warnings);
}

static void
warn(struct typed *t, const struct buf *sentence)
{
	if (buf_ok(sentence)) /* without memory there is no warning, but the message goes */
		(void)names_add(&t->warnings, buf_str(sentence));
}

/* ---- Who and what ---- */

struct context { /* finish with context_done */
	struct type_context c;
	struct buf sender, recipient;
	struct type_values request;
};

static void
context_done(struct context *x)
{
	buf_done(&x->sender);
	buf_done(&x->recipient);
	type_values_done(&x->request);
}

/* Only its headers were read so far. What cannot be read any more has no fields to copy. */
static void
read_request(struct context *x, const struct typed_from *from)
{
	mr_auto(mr_message_done) struct mr_message whole = { 0 };
	const struct mr_message *original = from->original;
	struct mr_error ignored = { 0 };

	if (!original->body && mr_fetch(from->room, from->self->agent, original->id, &whole, &ignored) == MR_OK)
		original = &whole;
	types_fields_at_all(from->room, original, &x->request);
	x->c.request = &x->request;
}

static enum mr_rc
context_init(struct context *x, const struct typed_from *from, bool force, struct mr_error *err)
{
	const struct mr_names *to = from->who->to.n > 0 ? &from->who->to : &from->who->all;

	*x = (struct context){ .c = { .now_ms = clock_now_ms(), .force = force } };
	office_name(from->room, from->self->agent, &x->sender);
	if (to->n > 0)
		office_name(from->room, to->v[0], &x->recipient);
	if (from->original->id[0])
		read_request(x, from);
	if (x->sender.failed || x->recipient.failed)
		return mr_nomem(err);
	x->c.sender = buf_z(&x->sender);
	x->c.recipient = buf_z(&x->recipient);
	return MR_OK;
}

/* ---- Routes ---- */

static void
role_of(struct mr_room *room, const char *agent, struct buf *ret)
{
	mr_auto(mr_agent_done) struct mr_agent known = { 0 };
	struct mr_error ignored = { 0 };

	if (ROOM_HAS(room, find_agent) && room->driver->find_agent(room, agent, &known, &ignored) == MR_OK &&
	    known.role)
		buf_adds(ret, known.role);
}

static void
describe_misroute(const struct type_def *def, const char *sender, const char *recipient, struct buf *out)
{
	format_addf(out, "'%s' goes ", def->name);
	for (size_t i = 0; i < def->routes.n; i++)
		buf_addf(out, "%s%s", i > 0 ? ", " : "", def->routes.v[i]);
	format_addf(out, ", not from '%s' to '%s'", sender, recipient);
}

/* The operator may write to anybody, and what is in a queue or a channel is whoever's comes. */
static enum mr_rc
check_routes(struct typed *t, const struct typed_from *from, struct mr_error *err)
{
	mr_auto(buf_done) struct buf own_role = BUF_INIT;
	const char *sender = from->self->agent, *wanted = mr_room_setting(from->room, "Wrong-Route");

	if (t->def->routes.n == 0 || strcmp(sender, OPERATOR) == 0)
		return MR_OK;
	role_of(from->room, sender, &own_role);
	for (size_t i = 0; i < from->who->all.n; i++) {
		mr_auto(buf_done) struct buf role = BUF_INIT, sentence = BUF_INIT;
		const char *to = from->who->all.v[i];

		if (strchr(to, ':'))
			continue;
		role_of(from->room, to, &role);
		if (type_route_fits(t->def, sender, own_role.len > 0 ? buf_z(&own_role) : NULL, to,
			role.len > 0 ? buf_z(&role) : NULL))
			continue;
		describe_misroute(t->def, sender, to, &sentence);
		if (wanted && ascii_caseeq(wanted, "refuse") && !t->draft.force) {
			return mr_fail(err, MR_REFUSED,
			    "%s\nthis room refuses it (Wrong-Route: refuse); --force sends it all the same",
			    buf_z(&sentence));
		}
		warn(t, &sentence);
		break;
	}
	return MR_OK;
}

static void
warn_of_nudge(struct typed *t)
{
	mr_auto(buf_done) struct buf sentence = BUF_INIT;

	if (!t->def->nudge)
		return;
	format_addf(&sentence, "'%s' is a nudge, not mail: `mailroom nudge` says it without leaving a message behind",
	    t->def->name);
	warn(t, &sentence);
}

/* ---- Subject and text ---- */

/* Whatever was wrong with it, the sender can change it. */
static enum mr_rc
refuse(const struct typed *t, struct mr_error *err)
{
	if (err->code == MR_NOMEM)
		return MR_NOMEM;
	if (err->code == MR_CORRUPT)
		err->code = MR_REFUSED;
	struct mr_error said = *err;

	if (said.hint[0])
		return mr_hint(err, "%.190s; --force sends it as it is", said.hint);
	return mr_hint(err, "`mailroom types show %s` says what it must be; --force sends it as it is", t->def->name);
}

static bool
gave_subject(const struct typed *t, unsigned implied)
{
	return t->draft.subject && t->draft.subject[0] && !(implied & FIELD_SUBJECT);
}

static enum mr_rc
use_subject(struct typed *t, unsigned implied, struct mr_error *err)
{
	if (t->subject.failed)
		return mr_nomem(err);
	if (gave_subject(t, implied))
		return MR_OK;
	if (t->subject.len > 0) {
		t->draft.subject = buf_z(&t->subject);
		t->implied |= FIELD_SUBJECT;
	} else if (t->def->body == TYPE_BODY_JSON) {
		t->no_subject = true;
	}
	return MR_OK;
}

static enum mr_rc
render(struct typed *t, const struct typed_from *from, const struct context *x, struct mr_error *err)
{
	struct mr_str text = { t->draft.body ? t->draft.body : "", t->draft.body ? t->draft.body_len : 0 };
	enum mr_rc rc =
	    type_render(t->def, t->draft.fields, t->draft.fields_n, &x->c, text, &t->subject, &t->body, err);

	if (rc != MR_OK)
		return refuse(t, err);
	if (!buf_ok(&t->body))
		return t->body.failed ? mr_nomem(err) : MR_OK;
	t->draft.body = buf_z(&t->body);
	t->draft.body_len = t->body.len;
	return use_subject(t, from->implied, err);
}

static enum mr_rc
check_text(struct typed *t, const struct typed_from *from, const struct context *x, struct mr_error *err)
{
	mr_auto(type_values_done) struct type_values values = { 0 };
	bool given = gave_subject(t, from->implied);
	struct mr_str subject = str_of(given ? t->draft.subject : ""), body = { t->draft.body, t->draft.body_len };
	struct mr_error wrong = { 0 };
	enum mr_rc rc = type_read(t->def, subject, body, &values, &wrong);

	if (rc == MR_OK)
		rc = type_complete(t->def, &x->c, &values, &wrong);
	if (rc == MR_OK)
		rc = type_validate(t->def, &values, &wrong);
	if (rc != MR_OK && (!t->draft.force || rc == MR_NOMEM)) {
		*err = wrong;
		return refuse(t, err);
	}
	if (!given && t->def->subject[0]) {
		mr_auto(buf_done) struct buf filled = BUF_INIT;

		type_fill(&filled, t->def->subject, &values);
		buf_add(&t->subject, str_trim(buf_str(&filled)));
		t->subject.failed |= filled.failed;
	}
	return use_subject(t, from->implied, err);
}

/* An answer to nothing would be acted on by nobody, or by somebody who was not meant. */
static enum mr_rc
check_answer(struct typed *t, const struct typed_from *from, struct mr_error *err)
{
	mr_auto(type_values_done) struct type_values values = { 0 };
	const struct mr_names *to = from->who->to.n > 0 ? &from->who->to : &from->who->all;
	struct mr_str subject = str_of(t->draft.subject ? t->draft.subject : "");
	struct mr_error ignored = { 0 };
	enum mr_rc rc;

	if (t->draft.force || to->n == 0 || strchr(to->v[0], ':') ||
	    type_read(t->def, subject, (struct mr_str){ t->draft.body, t->draft.body_len }, &values, &ignored) != MR_OK)
		return MR_OK;
	rc = types_check_answer(from->room, t->def, &values, to->v[0], from->self->agent, err);
	return rc == MR_REFUSED ? mr_hint(err,
				      "`mailroom reply ID --type %s` copies it from the request; --force "
				      "sends it as it is",
				      t->def->name)
				: rc;
}

static bool
has_text(const struct mr_draft *draft)
{
	for (size_t i = 0; draft->body && i < draft->body_len; i++)
		if (!strchr(" \t\r\n", draft->body[i]) || draft->body[i] == '\0')
			return true;
	return false;
}

/* The type's own, unless the sender asked for one; before that of the message that is answered. */
static void
use_priority(struct typed *t, unsigned implied)
{
	bool asked = t->draft.priority_given || (t->draft.priority != MR_NORMAL && !(implied & FIELD_PRIORITY));

	if (asked || t->def->priority == MR_NORMAL)
		return;
	t->draft.priority = t->def->priority;
	t->implied |= FIELD_PRIORITY;
}

/* A room that has no place for types shows this one all the same, by the subject. */
static void
let_subject_say_it(struct typed *t, struct mr_room *room)
{
	if (t->draft.subject && types_of_subject(room, t->draft.subject) == t->def)
		t->implied |= FIELD_TYPE;
}

static enum mr_rc
find_type(struct typed *t, struct mr_room *room, struct mr_error *err)
{
	struct mr_error unknown = { 0 };
	enum mr_rc rc = types_get(room, t->draft.type, &t->def, &unknown);

	if (rc == MR_OK || ((rc == MR_NOTFOUND || t->draft.force) && t->draft.fields_n == 0))
		return MR_OK;
	*err = unknown;
	if (rc != MR_NOTFOUND)
		return mr_wrap(err, "the type '%.64s' cannot be used", t->draft.type);
	return mr_fail(err, MR_REFUSED, "there is no type '%.64s' that says how fields are written\n%s", t->draft.type,
	    unknown.hint);
}

enum mr_rc
typed_compose(struct typed *t, const struct mr_draft *given, const struct typed_from *from, struct mr_error *err)
{
	mr_auto(context_done) struct context x = { 0 };
	enum mr_rc rc;

	*t = (struct typed){ .draft = *given };
	if (!given->type || !given->type[0]) {
		if (given->fields_n == 0)
			return MR_OK;
		return mr_fail(err, MR_REFUSED,
		    "fields need a type, which says how they are written\ngive --type TYPE; `mailroom types list` shows them");
	}
	rc = find_type(t, from->room, err);
	if (rc != MR_OK || !t->def)
		return rc;
	t->draft.type = t->def->name; /* as it is spelled */
	rc = context_init(&x, from, given->force, err);
	if (rc == MR_OK)
		rc = given->fields_n > 0 || !has_text(given) ? render(t, from, &x, err) : check_text(t, from, &x, err);
	if (rc == MR_OK)
		rc = check_answer(t, from, err);
	if (rc == MR_OK)
		rc = check_routes(t, from, err);
	if (rc != MR_OK)
		return rc;
	warn_of_nudge(t);
	use_priority(t, from->implied);
	let_subject_say_it(t, from->room);
	return MR_OK;
}

enum mr_rc
typed_check_member(struct mr_room *room, const char *sender, const struct mr_message *msg, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent known = { 0 };
	struct mr_error ignored = { 0 };
	const struct room_driver *driver = room->driver;

	if (office_has_lives(room) || !(driver->abilities & ROOM_REGISTER) || !msg->type[0] ||
	    !DRIVER_HAS(driver, unsupported) || (driver->unsupported(room, msg) & FIELD_TYPE) ||
	    !control_is((struct mr_str){ msg->body, msg->body_len }))
		return MR_OK;
	if (driver->find_agent(room, sender, &known, &ignored) == MR_OK && !known.stray)
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "'%s' is no member of '%s', and only members send '%s'\n"
	    "`mailroom who` lists the members; send it as one of them, or as prose",
	    sender, room->name, msg->type);
}
