/* SPDX-License-Identifier: MIT */
/*
 * types_send.c - a draft that names a type: made or checked by the type's definition before it is sent.
 *
 * May a program act on a message? A stranger that can write into a mailbox could command with it, so in a team only
 * members do, and an answer counts only where a request with the same id is found: in the asker's copies of its sent
 * mail, or in the mailbox of the answering agent. That mailbox is not ours and may be emptied with the answer, so for a
 * room without copies of sent mail the requests are recorded outside it:
 *
 *	<state>/asked/<hash of room, asker, answerer, field and value>    for 30 days
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/id.h"
#include "base/sys.h"
#include "office/address/address.h"
#include "office/types/types.h"

#define ASKED_FOLDER "asked"
#define ASKED_KEPT_MS ((int64_t)30 * 24 * 3600 * 1000)

enum mr_rc
typed_check_member(struct mr_room *room, const char *sender, const struct mr_message *msg, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent known = { 0 };
	const struct room_driver *driver = room->driver;

	if (office_has_lives(room) || !(driver->abilities & ROOM_REGISTER) || !ROOM_HAS(room, unsupported) ||
	    (driver->unsupported(room, msg) & FIELD_TYPE) || !control_is((struct mr_str){ msg->body, msg->body_len }))
		return MR_OK;
	if (driver->find_agent(room, sender, &known, IGNORED) == MR_OK && !known.stray)
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "'%s' is not a member of '%s', and only members send '%s'\n"
	    "`mailroom who` lists the members; send it as one of them, or as prose",
	    sender, room->name, msg->type);
}

/* ---- Requests that we sent ---- */

struct asking {
	struct mr_room *room;
	const char *asker, *answerer;
	const char *field, *value;
	bool found;
};

static struct hash_name
asked_name(const struct asking *a)
{
	return hash_name("%s\n%s\n%s\n%s\n%s", a->room->spec, a->asker, a->answerer, a->field, a->value);
}

static bool
forget_old(void *ctx, const struct dir_entry *entry)
{
	const int *fd = ctx;
	struct stat st;

	if (sys_stat(*fd, entry->name, &st) == 0 && S_ISREG(st.st_mode) &&
	    clock_now_ms() - (int64_t)st.st_mtim.tv_sec * 1000 > ASKED_KEPT_MS)
		(void)sys_unlink(*fd, entry->name);
	return true;
}

/* Notes the fields by which such an answer would name the request. */
static void
note_answered(struct asking *a, const struct type_def *answer, const struct type_def *request,
    const struct type_values *values, const struct mr_names *to, int fd)
{
	for (size_t i = 0; i < answer->fields_n; i++) {
		a->field = answer->fields[i].name;
		const struct type_field *own = answer->fields[i].answers ? type_field(request, a->field) : NULL;

		a->value = own && !own->answers ? type_value(values, a->field) : NULL;
		for (size_t k = 0; a->value && k < to->n; k++) {
			mr_auto(buf_done) struct buf text = BUF_INIT;

			a->answerer = to->v[k];
			buf_addf(&text, "%s asked %s: %s %s\n", a->asker, a->answerer, a->field, a->value);
			if (buf_ok(&text))
				(void)file_replace(fd, asked_name(a).z, buf_str(&text), 0600, IGNORED);
		}
	}
}

/* Called before the message is sent. A request that cannot be recorded is searched for in the mailbox of the answering
 * agent. */
void
types_note_asked(
    struct mr_room *room, const struct type_def *def, const struct mr_message *msg, const struct mr_names *to)
{
	mr_auto(type_values_done) struct type_values values = { 0 };
	struct mr_str body = { msg->body ? msg->body : "", msg->body ? msg->body_len : 0 };
	struct asking a = { .room = room, .asker = msg->from };
	mr_auto(sys_close_fd) int fd = -1;

	if ((room->driver->abilities & ROOM_SENT) ||
	    type_read(def, str_of(msg->subject), body, &values, IGNORED) != MR_OK ||
	    office_state(room, ASKED_FOLDER, true, &fd, IGNORED) != MR_OK || types_read_all(room, IGNORED) != MR_OK)
		return;
	(void)dir_each(fd, forget_old, &fd, IGNORED);
	for (size_t i = 0; i < room->office->types->n; i++)
		note_answered(&a, room->office->types->v[i], def, &values, to, fd);
}

/* ---- Requests in the mailboxes of others ---- */

static bool
look_for_request(void *ctx, const struct mr_message *msg)
{
	struct asking *a = ctx;
	mr_auto(type_values_done) struct type_values values = { 0 };
	const struct type_def *def = strcmp(msg->from, a->asker) == 0 ? types_of(a->room, msg) : NULL;
	struct mr_str body = { msg->body ? msg->body : "", msg->body ? msg->body_len : 0 };
	bool asks = false;

	/* The request's own field, not that of another answer to it. */
	for (size_t i = 0; def && i < def->fields_n && !asks; i++)
		asks = strcmp(def->fields[i].name, a->field) == 0 && !def->fields[i].answers;
	if (!asks || (msg->folder == MR_SENT && !names_has(&msg->to, a->answerer)) ||
	    type_read(def, str_of(msg->subject), body, &values, IGNORED) != MR_OK)
		return true;
	const char *value = type_value(&values, a->field);

	a->found = value && strcmp(value, a->value) == 0;
	return !a->found;
}

static enum mr_rc
look_into(struct asking *a, const char *mailbox, unsigned folders, struct mr_error *err)
{
	struct scan_request want = { .folders = folders, .depth = SCAN_BODIES, .order = SCAN_NEWEST };

	if (folders == 0 || a->found)
		return MR_OK;
	/* an agent without a mailbox was not asked */
	return mr_unless(office_scan(a->room, mailbox, &want, look_for_request, a, err), MR_NOTFOUND, err);
}

enum mr_rc
types_check_answer(struct mr_room *room, const struct type_def *def, const struct type_values *values,
    const char *asker, const char *answerer, struct mr_error *err)
{
	unsigned folders = office_folders(room, ALL_FOLDERS);

	for (size_t i = 0; i < def->fields_n; i++) {
		struct asking a = { .room = room, .asker = asker, .answerer = answerer, .field = def->fields[i].name };
		mr_auto(sys_close_fd) int fd = -1;
		struct stat st;

		a.value = def->fields[i].answers ? type_value(values, a.field) : NULL;
		if (!a.value)
			continue;
		if (!(room->driver->abilities & ROOM_SENT) &&
		    office_state(room, ASKED_FOLDER, false, &fd, IGNORED) == MR_OK &&
		    sys_stat(fd, asked_name(&a).z, &st) == 0)
			continue;
		TRY(look_into(&a, answerer, folders & ~(unsigned)MR_SENT, err));
		TRY(look_into(&a, asker, folders & MR_SENT, err));
		if (!a.found)
			return mr_fail(err, MR_REFUSED, "'%s' has sent '%s' no request with %s '%.80s'", asker,
			    answerer, a.field, a.value);
	}
	return MR_OK;
}

/* ---- Subject and text of a draft ---- */

struct composing { /* finish with composing_done */
	struct typed *t;
	const struct typed_from *from;
	struct type_context context;
	struct buf sender, recipient;
	struct type_values request;
	bool gave_subject; /* by the sender, not taken from the answered message */
};

static void
composing_done(struct composing *x)
{
	buf_done(&x->sender);
	buf_done(&x->recipient);
	type_values_done(&x->request);
}

static enum mr_rc
composing_init(struct composing *x, struct mr_error *err)
{
	const struct typed_from *from = x->from;
	const struct mr_names *to = from->who->to.n > 0 ? &from->who->to : &from->who->all;
	const struct mr_message *original = from->original;
	mr_auto(mr_message_done) struct mr_message whole = { 0 };

	office_name(from->room, from->self->agent, &x->sender);
	if (to->n > 0)
		office_name(from->room, to->v[0], &x->recipient);
	if (original->id[0]) {
		/* Only its headers were read so far. A message that is not readable any more has no fields to copy. */
		if (!original->body && mr_fetch(from->room, from->self->agent, original->id, &whole, IGNORED) == MR_OK)
			original = &whole;
		(void)types_fields(from->room, original, &x->request, IGNORED);
		x->context.request = &x->request;
	}
	TRY(mr_got(!x->sender.failed && !x->recipient.failed, err));
	x->context.sender = buf_z(&x->sender);
	x->context.recipient = buf_z(&x->recipient);
	return MR_OK;
}

/* The sender can correct it: the code is MR_REFUSED, and the hint says how. */
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

static enum mr_rc
render(struct composing *x, struct mr_error *err)
{
	struct typed *t = x->t;
	struct mr_str text = { t->draft.body ? t->draft.body : "", t->draft.body ? t->draft.body_len : 0 };

	if (type_render(t->def, t->draft.fields, t->draft.fields_n, &x->context, text, &t->subject, &t->body, err) !=
	    MR_OK)
		return refuse(t, err);
	t->draft.body = buf_z(&t->body);
	t->draft.body_len = t->body.len;
	return MR_OK;
}

static enum mr_rc
check_text(struct composing *x, struct mr_error *err)
{
	mr_auto(type_values_done) struct type_values values = { 0 };
	mr_auto(buf_done) struct buf filled = BUF_INIT;
	struct typed *t = x->t;
	struct mr_str subject = str_of(x->gave_subject ? t->draft.subject : "");
	enum mr_rc rc = type_read(t->def, subject, (struct mr_str){ t->draft.body, t->draft.body_len }, &values, err);

	if (rc == MR_OK)
		rc = type_complete(t->def, &x->context, &values, err);
	if (rc == MR_OK)
		rc = type_validate(t->def, &values, err);
	if (rc != MR_OK && (!t->draft.force || rc == MR_NOMEM))
		return refuse(t, err);
	*err = (struct mr_error){ 0 };
	if (x->gave_subject || !t->def->subject[0])
		return MR_OK;
	type_fill(&filled, t->def->subject, &values);
	buf_add(&t->subject, str_trim(buf_str(&filled)));
	t->subject.failed |= filled.failed;
	return MR_OK;
}

/* An answer without a request would be acted on by nobody, or by the wrong agent. */
static enum mr_rc
check_answer(struct composing *x, struct mr_error *err)
{
	mr_auto(type_values_done) struct type_values values = { 0 };
	const struct typed *t = x->t;
	const struct mr_names *to = x->from->who->to.n > 0 ? &x->from->who->to : &x->from->who->all;
	struct mr_str subject = str_of(t->draft.subject ? t->draft.subject : "");

	if (t->draft.force || to->n == 0 || strchr(to->v[0], ':') ||
	    type_read(t->def, subject, (struct mr_str){ t->draft.body, t->draft.body_len }, &values, IGNORED) != MR_OK)
		return MR_OK;
	enum mr_rc rc = types_check_answer(x->from->room, t->def, &values, to->v[0], x->from->self->agent, err);

	if (rc != MR_REFUSED)
		return rc;
	return mr_hint(
	    err, "`mailroom reply ID --type %s` copies it from the request; --force sends it as it is", t->def->name);
}

/* ---- Routes ---- */

static void
role_of(struct mr_room *room, const char *agent, struct buf *ret)
{
	mr_auto(mr_agent_done) struct mr_agent known = { 0 };

	if (room->driver->find_agent(room, agent, &known, IGNORED) == MR_OK && known.role)
		buf_adds(ret, known.role);
}

/* The operator may write to all agents, and any agent may take work from a queue or a channel. */
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
		if (type_route_fits(t->def, sender, buf_z(&own_role), to, buf_z(&role)))
			continue;
		format_addf(&sentence, "'%s' goes ", t->def->name);
		for (size_t k = 0; k < t->def->routes.n; k++)
			buf_addf(&sentence, "%s%s", k > 0 ? ", " : "", t->def->routes.v[k]);
		format_addf(&sentence, ", not from '%s' to '%s'", sender, to);
		if (wanted && ascii_caseeq(wanted, "refuse") && !t->draft.force)
			return mr_fail(err, MR_REFUSED,
			    "%s\nthis room refuses it (Wrong-Route: refuse); --force sends it anyway",
			    buf_z(&sentence));
		if (buf_ok(&sentence)) /* without memory there is no warning, but the message is sent */
			(void)names_add(&t->warnings, buf_str(&sentence));
		break;
	}
	return MR_OK;
}

/* ---- The whole draft ---- */

static bool
has_text(const struct mr_draft *draft)
{
	for (size_t i = 0; draft->body && i < draft->body_len; i++)
		if (!strchr(" \t\r\n", draft->body[i]) || draft->body[i] == '\0')
			return true;
	return false;
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
	mr_auto(composing_done) struct composing x = {
		.t = t, .from = from, .context = { .now_ms = clock_now_ms(), .force = given->force }
	};
	mr_auto(buf_done) struct buf sentence = BUF_INIT;

	*t = (struct typed){ .draft = *given };
	if (!given->type || !given->type[0])
		return mr_fail(err, MR_REFUSED,
		    "fields need a type, which says how they are written\ngive --type TYPE; `mailroom types list` shows them");
	TRY(find_type(t, from->room, err));
	if (!t->def)
		return MR_OK;
	t->draft.type = t->def->name; /* in the spelling of its definition */
	x.gave_subject = given->subject && given->subject[0] && !(from->implied & FIELD_SUBJECT);
	TRY(composing_init(&x, err));
	TRY(given->fields_n > 0 || !has_text(given) ? render(&x, err) : check_text(&x, err));
	TRY(mr_got(!t->subject.failed, err));
	if (!x.gave_subject && t->subject.len > 0) {
		t->draft.subject = buf_z(&t->subject);
		t->implied |= FIELD_SUBJECT;
	} else if (!x.gave_subject && t->def->body == TYPE_BODY_JSON) {
		t->no_subject = true;
	}
	TRY(check_answer(&x, err));
	TRY(check_routes(t, from, err));
	if (t->def->nudge) {
		format_addf(&sentence,
		    "'%s' is a nudge, not mail: `mailroom nudge` says it without leaving a message behind",
		    t->def->name);
		if (buf_ok(&sentence))
			(void)names_add(&t->warnings, buf_str(&sentence));
	}
	/* The sender's priority, else the type's, else that of the answered message. */
	bool asked = given->priority_given || (given->priority != MR_NORMAL && !(from->implied & FIELD_PRIORITY));

	if (!asked && t->def->priority != MR_NORMAL) {
		t->draft.priority = t->def->priority;
		t->implied |= FIELD_PRIORITY;
	}
	/* A room that cannot store the type shows it all the same, by the subject. */
	if (t->draft.subject && types_of_subject(from->room, t->draft.subject) == t->def)
		t->implied |= FIELD_TYPE;
	return MR_OK;
}
