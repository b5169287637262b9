/* SPDX-License-Identifier: MIT */
/* Definitions and what is wrong with them; subjects; routes; reading, deriving and rendering beyond the examples. */
#include "types.h"

/* ---- Definitions ---- */

static void
test_a_definition_is_read(void **state)
{
	mr_auto(type_done) struct type_def def = { 0 };
	struct mr_error err = { 0 };

	(void)state;
	assert_int_equal(
	    parse_text("# a remark\n\nType: BUILD_BROKEN\r\nSummary: the build is broken\n"
		       "Subject: BUILD_BROKEN {Commit}\nRoute: ci -> mayor\nRoute: any -> self\nVia: nudge\n"
		       "Priority: urgent\nField: Commit; word; required\n"
		       "Field: Kind; one-of a  b c; default b; c\nField: Log; text; only if Kind=a\n"
		       "Also: Sha = Commit\nText:   two in\nText:\nText: last {Commit}\n"
		       "Handler: ./fix {Commit} {id}\nTime-Limit: 90s\nCooldown: 5m\nCooldown-Key: {Commit}\n"
		       "Escalate-After: 3\nEscalate-To: mayor\n",
		"BUILD_BROKEN", &def, &err),
	    MR_OK);
	assert_string_equal(def.subject, "BUILD_BROKEN {Commit}");
	assert_int_equal(def.routes.n, 2);
	assert_true(def.nudge);
	assert_int_equal(def.priority, MR_URGENT);
	assert_int_equal(def.fields_n, 3);
	assert_int_equal(def.fields[1].choices.n, 3);
	assert_string_equal(def.fields[1].fallback, "b; c");
	assert_string_equal(def.fields[2].only_field, "Kind");
	assert_string_equal(def.text, "  two in\n\nlast {Commit}");
	assert_string_equal(def.handler, "./fix {Commit} {id}");
	assert_int_equal(def.time_limit_ms, 90000);
	assert_int_equal(def.cooldown_ms, 300000);
	assert_int_equal(def.escalate_after, 3);
	assert_string_equal(type_field(&def, "sha")->name, "Commit");
	assert_null(type_field(&def, "Other"));
}

static const struct {
	const char *text, *says;
} wrong[] = {
	{ "Summary: x\n", "no line 'Type: X'" },
	{ "Type: Y\n", "not the name of the file" },
	{ "Type: X\nType: X\n", "line 2 of type 'X': 'Type: X' is given twice" },
	{ "Type: X\nFeild: A; word\n", "is not a setting" },
	{ "Type: X\njust text\n", "line 2" },
	{ "Type: X\nField: A; werd\n", "an unknown kind" },
	{ "Type: X\nField: A; word more\n", "text after its kind" },
	{ "Type: X\nField: A\n", "kind" },
	{ "Type: X\nField: ; word\n", "not a valid name" },
	{ "Type: X\nField: A.b; word\n", "not a valid name" },
	{ "Type: X\nBody: json\nField: A.b; word\n", "not an object" },
	{ "Type: X\nBody: json\nField: A; object\nField: A[].b; word\n", "not an object" },
	{ "Type: X\nBody: json\nField: A.; word\n", "not a valid name" },
	{ "Type: X\nField: A; one-of\n", "has no value" },
	{ "Type: X\nField: A; word; requird\n", "unknown word after the kind" },
	{ "Type: X\nField: A; word; required when B=1\n", "after 'required'" },
	{ "Type: X\nField: A; word; required if B\n", "not 'FIELD=VALUE'" },
	{ "Type: X\nField: A; word; required if B=1\n", "depends on a field that does not exist" },
	{ "Type: X\nField: A; word; only if B=1\n", "depends on a field that does not exist" },
	{ "Type: X\nField: A-b; word\nField: A_b; word\n", "the same name as an earlier one" },
	{ "Type: X\nField: AB; word\nField: A B; word\n", "the same name as an earlier one" },
	{ "Type: X\nBody: json\nField: a-b; word\nField: a_b; word\n", "the same name as an earlier one" },
	{ "Type: X\nField: A; word; subject\n", "not in 'Subject:'" },
	{ "Type: X\nField: A; word\nBody: json\n", "before the fields" },
	{ "Type: X\nSubject: X {B}\n", "names a field that does not exist" },
	{ "Type: X\nText: {B}\n", "names a field that does not exist" },
	{ "Type: X\nHandler: ./x {B}\n", "names a field that does not exist" },
	{ "Type: X\nAlso: A = B\n", "does not exist" },
	{ "Type: X\nAlso: A\n", "not 'SPELLING = FIELD'" },
	{ "Type: X\nRoute: mayor\n", "not 'SENDER -> RECEIVER'" },
	{ "Type: X\nVia: post\n", "neither mail nor nudge" },
	{ "Type: X\nPriority: huge\n", "none of low" },
	{ "Type: X\nBody: xml\n", "none of lines" },
	{ "Type: X\nReceive: some\n", "neither all nor type" },
	{ "Type: X\nControl: maybe\n", "not routed" },
	{ "Type: X\nTime-Limit: soon\n", "is not a duration" },
	{ "Type: X\nCooldown: -1\n", "is not a duration" },
	{ "Type: X\nEscalate-After: 0\n", "not a number" },
	{ "Type: X\nEarlier-Life: maybe\n", "neither act nor aside" },
	{ "Type: X\nSummary: \xff\n", "not text" },
};

static void
test_a_wrong_definition_is_refused_with_its_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		mr_auto(type_done) struct type_def def = { 0 };
		struct mr_error err = { 0 };

		if (parse_text(wrong[i].text, "X", &def, &err) == MR_REFUSED && strstr(err.message, wrong[i].says))
			continue;
		print_error("'%s': '%s'\n", wrong[i].text, err.message);
		fail();
	}
}

static void
test_limits_of_a_definition(void **state)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(type_done) struct type_def def = { 0 };
	struct mr_error err = { 0 };

	(void)state;
	buf_adds(&text, "Type: X\n");
	for (int i = 0; i < TYPE_FIELDS_MAX; i++)
		buf_addf(&text, "Field: F%d; word\n", i);
	assert_int_equal(type_parse(buf_str(&text), "p", "X", &def, &err), MR_OK);
	type_done(&def);
	buf_adds(&text, "Field: more; word\n");
	assert_int_equal(type_parse(buf_str(&text), "p", "X", &def, &err), MR_REFUSED);
	assert_non_null(strstr(err.message, "one field too many"));
	while (text.len <= TYPE_FILE_MAX)
		buf_adds(&text, "# a line that says nothing\n");
	assert_int_equal(type_parse(buf_str(&text), "p", "X", &def, &err), MR_REFUSED);
	assert_int_equal(parse_text("Type: ../X\n", "../X", &def, &err), MR_REFUSED);
	assert_int_equal(parse_text("Type: \n", "", &def, &err), MR_REFUSED);
}

/* ---- Subjects ---- */

static const struct {
	const char *type, *subject, *first; /* NULL: does not fit */
} subjects[] = {
	{ "MERGED", "MERGED nux", "nux" },
	{ "MERGED", "MERGED: nux", "nux" },
	{ "MERGED", "Re: MERGED nux and more", "nux" },
	{ "MERGED", "RE: re:  MERGED   nux", "nux" },
	{ "MERGED", "✅ MERGED nux", "nux" },
	{ "MERGED", "MERGED", "" },
	{ "MERGED", "MERGEDX nux", NULL },
	{ "MERGED", "merged nux", NULL },
	{ "MERGED", "was MERGED nux", NULL },
	{ "MERGED", "", NULL },
	{ "MERGE_READY", "MERGE_READY greenplace/nux", "greenplace/nux" },
	{ "POLECAT_DONE", "POLECAT_DONE nux exit=COMPLETED", "nux" },
	{ "HELP", "HELP: Polecat stuck on test failures", "Polecat stuck on test failures" },
	{ "HELP", "HELP me", "me" },
	{ "HANDOFF", "🤝 HANDOFF: Schema work in progress", "Schema work in progress" },
	{ "HANDOFF", "🤝HANDOFF", "" },
	{ "HANDOFF", "HANDOFF: x", "x" },
	{ "RECOVERY_NEEDED", "RECOVERY_NEEDED <rig>/<polecat-name>", "<rig>/<polecat-name>" },
	{ "SPAWN_STORM", "SPAWN_STORM RECOVERED_BEAD gp-1 (respawned 4x)", "gp-1" },
	{ "RECOVERED_BEAD", "SPAWN_STORM RECOVERED_BEAD gp-1 (respawned 4x)", NULL },
	{ "LIFECYCLE_SHUTDOWN", "LIFECYCLE:Shutdown nux", "nux" },
	{ "LIFECYCLE_SHUTDOWN", "LIFECYCLE: Shutdown nux", NULL },
	{ "PLUGIN", "Plugin: sweep", "sweep" },
	{ "PLUGIN", "Plugin trouble", NULL },
	{ "PLUGIN", "Plugin: two words", "two" },
	{ "ESCALATE", "[HIGH] disk full", "HIGH" },
	{ "ESCALATE", "[critical] disk full", "critical" },
	{ "ESCALATE", "[channel:alerts] disk full", NULL },
	{ "ESCALATE", "[HIGH]", NULL },
	{ "ESCALATE", "[HIGH→CRITICAL] Re-escalated: disk full", NULL },
	{ "RE_ESCALATED", "[HIGH→CRITICAL] Re-escalated: disk full", "HIGH" },
	{ "DOG_DONE", "DOG_DONE: plugin-name success", "plugin-name success" },
};

static void
test_subjects_say_their_type(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++) {
		mr_auto(type_done) struct type_def def = { 0 };
		struct mr_names fields = { 0 };
		const char *want = subjects[i].first;

		load_type("gastown", subjects[i].type, &def);
		bool fits = type_fits_subject(&def, str_of(subjects[i].subject), &fields);
		bool fine = fits == (want != NULL) && (!want || (fields.n > 0 && strcmp(fields.v[0], want) == 0));

		if (!fine)
			print_error("%s: '%s': %d '%s'\n", subjects[i].type, subjects[i].subject, fits,
			    fields.n > 0 ? fields.v[0] : "");
		mr_names_done(&fields);
		assert_true(fine);
	}
	assert_str(type_word(STR("Re: 🤝 HANDOFF: x")), "HANDOFF");
	assert_str(type_word(STR("BUILD_BROKEN")), "BUILD_BROKEN");
	assert_str(type_word(STR("HELP: x")), "HELP");
	assert_str(type_word(STR("LIFECYCLE:Shutdown nux")), "");
	assert_str(type_word(STR("OK then")), "");
	assert_str(type_word(STR("Hello")), "");
	assert_str(type_word(STR("MERGED-by")), "");
	assert_str(type_word(STR("")), "");
}

/* ---- Routes ---- */

static const struct {
	const char *pack, *type, *from, *from_role, *to;
	bool fits;
} routes[] = {
	{ "gastown", "POLECAT_DONE", "gp/polecats/nux", NULL, "gp/witness", true },
	{ "gastown", "POLECAT_DONE", "gp/nux", NULL, "gp/witness", true },
	{ "gastown", "POLECAT_DONE", "nux", "polecat", "gp/witness", true },
	{ "gastown", "POLECAT_DONE", "gp/refinery", NULL, "gp/witness", false },
	{ "gastown", "POLECAT_DONE", "gp/nux", NULL, "mayor/", false },
	{ "gastown", "RECOVERED_BEAD", "gp/witness", NULL, "deacon/", true },
	{ "gastown", "RECOVERED_BEAD", "gp/witness", NULL, "deacon/dogs/rex", false },
	{ "gastown", "DOG_DONE", "deacon/dogs/rex", NULL, "deacon", true },
	{ "gastown", "HANDOFF", "mayor/", NULL, "mayor", true },
	{ "gastown", "HANDOFF", "mayor", NULL, "deacon", false },
	{ "gastown", "ESCALATE", "x", NULL, "y", true },
	{ "chipset", "work_assignment", "mayor-a1b2c", NULL, "polecat-alpha", true },
	{ "chipset", "work_assignment", "polecat-alpha", NULL, "mayor-a1b2c", false },
	{ "chipset", "coordination", "a", NULL, "b", true },
	{ "teams", "shutdown_request", "team-lead", NULL, "worker-1", true },
	{ "teams", "shutdown_request", "worker-2", NULL, "worker-1", false },
	{ "teams", "shutdown_approved", "worker-1", NULL, "team-lead@alpha", true },
	{ "teams", "shutdown_approved", "boss", "lead", "team-lead", false },
};

static void
test_routes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		mr_auto(type_done) struct type_def def = { 0 };

		load_type(routes[i].pack, routes[i].type, &def);
		if (type_route_fits(&def, routes[i].from, routes[i].from_role, routes[i].to, NULL) == routes[i].fits)
			continue;
		print_error("%s from %s to %s\n", routes[i].type, routes[i].from, routes[i].to);
		fail();
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_definition_is_read),
		cmocka_unit_test(test_a_wrong_definition_is_refused_with_its_line),
		cmocka_unit_test(test_limits_of_a_definition),
		cmocka_unit_test(test_subjects_say_their_type),
		cmocka_unit_test(test_routes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
