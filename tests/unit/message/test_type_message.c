/* SPDX-License-Identifier: MIT */
/* Messages beyond the examples: what documents print, other spellings, what is derived, what a receiver lets through.
 */
#include "types.h"

static void
read_as(const struct type_def *def, const char *subject, const char *body, struct type_values *ret)
{
	struct mr_error err = { 0 };

	if (type_read(def, str_of(subject), str_of(body), ret, &err) == MR_OK)
		return;
	print_error("%s: %s\n", def->name, err.message);
	fail();
}

static void
assert_value(const struct type_values *values, const char *name, const char *want)
{
	const char *is = type_value(values, name);

	if (is ? want && strcmp(is, want) == 0 : !want)
		return;
	print_error("%s is '%s', not '%s'\n", name, is ? is : "missing", want ? want : "missing");
	fail();
}

/* ---- As the protocol's document prints them, placeholders and remarks included ---- */

static const struct {
	const char *type, *subject, *body;
} printed[] = {
	{ "POLECAT_DONE", "POLECAT_DONE <polecat-name>",
	    "Exit: MERGED|ESCALATED|DEFERRED\nIssue: <issue-id>\nMR: <mr-id> # if exit=MERGED\nBranch: <branch>\n" },
	{ "POLECAT_DONE", "POLECAT_DONE nux", "Exit: ESCALATED\nIssue: gp-abc\nBranch: b\n" },
	{ "MERGE_READY", "MERGE_READY <polecat-name>",
	    "Branch: <branch>\nIssue: <issue-id>\nPolecat: <polecat-name>\nVerified: clean git state, issue closed\n" },
	{ "MERGE_READY", "MERGE_READY nux", "Branch: feature-xyz\nIssue: gp-abc\nPolecat: nux\nVerified: clean" },
	{ "MERGE_READY", "MERGE_READY greenplace/nux", "Branch: feature-xyz" },
	{ "MERGED", "MERGED <polecat-name>",
	    "Branch: <branch>\nIssue: <issue-id>\nPolecat: <polecat-name>\nRig: <rig>\nTarget: <target-branch>\n"
	    "Merged-At: <timestamp>\nMerge-Commit: <sha>\n" },
	{ "MERGE_FAILED", "MERGE_FAILED <polecat-name>",
	    "Branch: <branch>\nIssue: <issue-id>\nPolecat: <polecat-name>\nRig: <rig>\nTarget: <target-branch>\n"
	    "Failed-At: <timestamp>\nFailure-Type: <tests|build|push|other>\nError: <error-message>\n" },
	{ "REWORK_REQUEST", "REWORK_REQUEST <polecat-name>",
	    "Branch: <branch>\nIssue: <issue-id>\nPolecat: <polecat-name>\nRig: <rig>\nTarget: <target-branch>\n"
	    "Requested-At: <timestamp>\nConflict-Files: <file1>, <file2>, ...\n\n"
	    "Please rebase your changes onto <target-branch>:\n\ngit fetch origin\ngit rebase "
	    "origin/<target-branch>\n" },
	{ "RECOVERED_BEAD", "RECOVERED_BEAD <bead-id>",
	    "Recovered abandoned bead from dead polecat.\n\nBead: <bead-id>\nPolecat: <rig>/<polecat-name>\n"
	    "Previous Status: <hooked|in_progress>\n\nThe bead has been reset to open with no assignee.\n" },
	{ "RECOVERY_NEEDED", "RECOVERY_NEEDED <rig>/<polecat-name>",
	    "Polecat: <rig>/<polecat-name>\nCleanup Status: <has_uncommitted|has_stash|has_unpushed>\nBranch: "
	    "<branch>\n"
	    "Issue: <issue-id>\nDetected: <timestamp>\n" },
	{ "HELP", "HELP: <brief-description>",
	    "Agent: <agent-id>\nIssue: <issue-id> # if applicable\nProblem: <description>\nTried: <what was "
	    "attempted>\n" },
	{ "HELP", "HELP: Polecat stuck on test failures", "it hangs" },
	{ "HANDOFF", "🤝 HANDOFF: <brief-context>",
	    "attached_molecule: <molecule-id>   # if work in progress\nattached_at: <timestamp>\n\n## Context\n"
	    "<freeform notes for successor>\n\n## Status\n<where things stand>\n\n## Next\n<what successor should "
	    "do>\n" },
	{ "HANDOFF", "🤝 HANDOFF: Schema work in progress", "" },
	{ "DOG_DONE", "DOG_DONE: plugin-name success", "" },
};

static void
test_what_documents_print_is_accepted(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(printed) / sizeof(printed[0]); i++) {
		mr_auto(type_done) struct type_def def = { 0 };
		mr_auto(type_values_done) struct type_values values = { 0 };
		struct mr_error err = { 0 };

		load_type("gastown", printed[i].type, &def);
		assert_true(type_fits_subject(&def, str_of(printed[i].subject), NULL));
		read_as(&def, printed[i].subject, printed[i].body, &values);
		if (type_validate(&def, &values, &err) == MR_OK)
			continue;
		print_error("'%s': %s\n", printed[i].subject, err.message);
		fail();
	}
}

/* ---- Reading ---- */

static void
test_both_spellings_and_any_blanks(void **state)
{
	static const char *const bodies[] = { "FailureType: build\n", "Failure-Type: build\n", "failure_type:build\n",
		"  Failure Type :   build  \r\n", "Other: x\nFailureType:build", "{\"FailureType\": \"build\"}" };
	mr_auto(type_done) struct type_def def = { 0 };

	(void)state;
	load_type("gastown", "MERGE_FAILED", &def);
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		mr_auto(type_values_done) struct type_values values = { 0 };
		mr_auto(buf_done) struct buf body = BUF_INIT;

		buf_adds(&body, bodies[i][0] == '{' ? "" : "Branch: b\n");
		buf_adds(&body, bodies[i]);
		read_as(&def, "MERGE_FAILED nux", buf_z(&body), &values);
		assert_value(&values, "Failure-Type", "build");
		assert_value(&values, "Polecat", "nux");
	}
}

static void
test_fields_end_where_the_text_begins(void **state)
{
	mr_auto(type_done) struct type_def def = { 0 };
	mr_auto(type_values_done) struct type_values values = { 0 };

	(void)state;
	load_type("gastown", "HELP", &def);
	read_as(&def, "HELP: x: y",
	    "Hello,\n\nProblem: it says: no\n  and goes on\nsee https://example.org:80/\nhttp://a.b\nNew: "
	    "thing\nTried: a\n"
	    "Tried: b\n\n\nIssue: not one\n\n  end  \n\n",
	    &values);
	assert_value(&values, "Topic", "x: y");
	assert_value(&values, "Problem", "it says: no and goes on see https://example.org:80/ http://a.b");
	assert_value(&values, "Tried", "a");
	assert_value(&values, "Issue", NULL);
	assert_value(&values, "New", "thing");
	assert_string_equal(values.v[values.n - 1].name, "New");
	assert_str(values.free_text, "Issue: not one\n\n  end");
}

static void
test_a_body_without_fields_is_text(void **state)
{
	mr_auto(type_done) struct type_def def = { 0 };
	mr_auto(type_values_done) struct type_values values = { 0 };

	(void)state;
	load_type("gastown", "HANDOFF", &def);
	read_as(&def, "HANDOFF", "## Context\nfoo: bar\n", &values);
	assert_int_equal(values.n, 0);
	assert_str(values.free_text, "## Context\nfoo: bar");
}

static void
test_values_outlive_their_type(void **state)
{
	mr_auto(type_values_done) struct type_values values = { 0 };
	struct type_def def = { 0 };

	(void)state;
	load_type("gastown", "MERGED", &def);
	read_as(&def, "MERGED nux", "Branch: b", &values);
	type_done(&def);
	assert_value(&values, "Branch", "b");
	assert_value(&values, "Polecat", "nux");
}

static void
test_a_nul_is_no_end(void **state)
{
	mr_auto(type_done) struct type_def def = { 0 };
	mr_auto(type_values_done) struct type_values values = { 0 };

	(void)state;
	load_type("teams", "mode_set_request", &def);
	read_as(&def, "", "{\"type\":\"mode_set_request\",\"mode\":\"plan\\u0000x\",\"from\":\"a\"}", &values);
	assert_value(&values, "mode", "plan\xEF\xBF\xBDx");
}

/* ---- What a receiver lets through ---- */

static enum mr_rc
receive(const char *type, const char *body, struct mr_error *err)
{
	mr_auto(type_done) struct type_def def = { 0 };
	mr_auto(type_values_done) struct type_values values = { 0 };

	load_type("teams", type, &def);
	enum mr_rc rc = type_read(&def, STR(""), str_of(body), &values, err);

	return rc == MR_OK ? type_validate_received(&def, &values, err) : rc;
}

static void
test_receiving_is_as_strict_as_the_original(void **state)
{
	struct mr_error err = { 0 };

	(void)state;
	/* only the type counts */
	assert_int_equal(receive("permission_request", "{\"type\":\"permission_request\"}", &err), MR_OK);
	assert_int_equal(receive("permission_request", "{\"type\":\"permission_request\",\"input\":3}", &err), MR_OK);
	assert_int_equal(receive("permission_request", "{\"type\":\"other\"}", &err), MR_REFUSED);
	assert_int_equal(receive("permission_request", "{}", &err), MR_REFUSED);
	/* all fields count, the form of their strings does not; what is unknown is let through */
	assert_int_equal(
	    receive("shutdown_request",
		"{\"x\":null,\"type\":\"shutdown_request\",\"requestId\":\"a b\",\"from\":\"\",\"timestamp\":\"now\"}",
		&err),
	    MR_OK);
	assert_int_equal(
	    receive("shutdown_request", "{\"type\":\"shutdown_request\",\"from\":\"a\",\"timestamp\":\"now\"}", &err),
	    MR_REFUSED);
	assert_non_null(strstr(err.message, "'requestId'"));
	assert_int_equal(
	    receive("plan_approval_response",
		"{\"type\":\"plan_approval_response\",\"requestId\":\"a\",\"approved\":\"yes\",\"timestamp\":\"t\"}",
		&err),
	    MR_REFUSED);
	assert_non_null(strstr(err.message, "'approved'"));
	assert_int_equal(
	    receive("mode_set_request", "{\"type\":\"mode_set_request\",\"mode\":\"root\",\"from\":\"a\"}", &err),
	    MR_REFUSED);
	assert_int_equal(receive("mode_set_request", "[]", &err), MR_CORRUPT);
	assert_int_equal(receive("mode_set_request", "{\"type\":", &err), MR_CORRUPT);
}

static void
test_ten_types_of_a_team_are_routed(void **state)
{
	static const char *const shown[] = { "idle_notification", "shutdown_rejected", "task_assignment" };
	static const char *const routed[] = { "permission_request", "permission_response", "sandbox_permission_request",
		"sandbox_permission_response", "plan_approval_request", "plan_approval_response", "shutdown_request",
		"shutdown_approved", "team_permission_update", "mode_set_request" };

	(void)state;
	for (size_t i = 0; i < 13; i++) {
		mr_auto(type_done) struct type_def def = { 0 };

		load_type("teams", i < 10 ? routed[i] : shown[i - 10], &def);
		assert_int_equal(def.routed, i < 10);
	}
}

/* ---- Rendering: what nobody gave ---- */

struct rendered {
	struct type_def def;
	struct buf subject, body;
	struct mr_error err;
};

static void
rendered_done(struct rendered *r)
{
	type_done(&r->def);
	buf_done(&r->subject);
	buf_done(&r->body);
}

static enum mr_rc
render(struct rendered *r, const char *pack, const char *type, const struct mr_header *given, size_t n,
    const struct type_context *context, const char *text)
{
	rendered_done(r);
	*r = (struct rendered){ 0 };
	load_type(pack, type, &r->def);
	return type_render(&r->def, given, n, context, str_of(text), &r->subject, &r->body, &r->err);
}

static void
test_fields_are_derived(void **state)
{
	mr_auto(rendered_done) struct rendered r = { 0 };
	struct type_context context = { .sender = "gp/refinery", .recipient = "gp/witness", .now_ms = NOW_MS };
	struct mr_header request[] = { { "Branch", "b" }, { "Polecat", "nux" }, { "issue", "gp-1" },
		{ "Rig", "other" } };
	struct type_values asked = { .v = request, .n = 4 };

	(void)state;
	context.request = &asked;
	assert_int_equal(render(&r, "gastown", "MERGED", NULL, 0, &context, ""), MR_OK);
	assert_str(buf_str(&r.subject), "MERGED nux");
	assert_str(buf_str(&r.body),
	    "Branch: b\nIssue: gp-1\nPolecat: nux\nRig: other\nTarget: main\nMerged-At: 2026-07-01T08:15:30.250Z\n");
	context = (struct type_context){ .sender = "gp/polecats/nux", .recipient = "gp/witness", .now_ms = NOW_MS };
	assert_int_equal(
	    render(&r, "gastown", "POLECAT_DONE", &(struct mr_header){ "exit", "DEFERRED" }, 1, &context, ""), MR_OK);
	assert_str(buf_str(&r.subject), "POLECAT_DONE nux");
	assert_str(buf_str(&r.body), "Exit: DEFERRED\n");
	assert_int_equal(
	    render(&r, "gastown", "POLECAT_DONE", &(struct mr_header){ "Exit", "MERGED" }, 1, &context, ""),
	    MR_REFUSED);
	assert_non_null(strstr(r.err.message, "'MR' of POLECAT_DONE is missing: it is required when Exit is MERGED"));
}

static void
test_ids_of_a_team(void **state)
{
	mr_auto(rendered_done) struct rendered r = { 0 };
	mr_auto(type_values_done) struct type_values asked = { 0 };
	struct type_context context = { .sender = "team-lead", .recipient = "worker-1", .now_ms = NOW_MS };

	(void)state;
	assert_int_equal(render(&r, "teams", "shutdown_request", NULL, 0, &context, ""), MR_OK);
	assert_str(buf_str(&r.body), "{\"type\":\"shutdown_request\",\"requestId\":\"shutdown-1782893730250@worker-1\","
				     "\"from\":\"team-lead\",\"timestamp\":\"2026-07-01T08:15:30.250Z\"}");
	assert_int_equal(r.subject.len, 0);
	read_as(&r.def, "", buf_z(&r.body), &asked);
	context = (struct type_context){
		.sender = "worker-1", .recipient = "team-lead", .now_ms = NOW_MS, .request = &asked
	};
	assert_int_equal(render(&r, "teams", "shutdown_approved", NULL, 0, &context, ""), MR_OK);
	assert_str(buf_str(&r.body),
	    "{\"type\":\"shutdown_approved\",\"requestId\":\"shutdown-1782893730250@worker-1\","
	    "\"from\":\"worker-1\",\"timestamp\":\"2026-07-01T08:15:30.250Z\"}");
}

static void
test_an_answer_has_one_of_two_forms(void **state)
{
	mr_auto(rendered_done) struct rendered r = { 0 };
	struct type_context context = { .sender = "team-lead", .recipient = "w", .now_ms = NOW_MS };
	struct mr_header given[] = { { "request_id", "p-1" }, { "subtype", "error" }, { "response", "{}" } };

	(void)state;
	assert_int_equal(render(&r, "teams", "permission_response", given, 2, &context, ""), MR_OK);
	assert_str(buf_str(&r.body), "{\"type\":\"permission_response\",\"request_id\":\"p-1\",\"subtype\":\"error\","
				     "\"error\":\"Permission denied\"}");
	assert_int_equal(render(&r, "teams", "permission_response", given, 3, &context, ""), MR_REFUSED);
	assert_non_null(
	    strstr(r.err.message, "'response' of permission_response is allowed only when subtype is success"));
	given[1].value = "success";
	assert_int_equal(render(&r, "teams", "permission_response", given, 2, &context, ""), MR_OK);
	assert_str(
	    buf_str(&r.body), "{\"type\":\"permission_response\",\"request_id\":\"p-1\",\"subtype\":\"success\"}");
	given[2] = (struct mr_header){ "error", "no" };
	assert_int_equal(render(&r, "teams", "permission_response", given, 3, &context, ""), MR_REFUSED);
}

static void
test_objects_are_given_whole_or_by_member(void **state)
{
	static const char want[] =
	    "{\"type\":\"team_permission_update\",\"permissionUpdate\":{\"type\":\"addRules\","
	    "\"rules\":[{\"toolName\":\"Edit\",\"ruleContent\":\"x\",\"more\":1}],\"behavior\":\"ask\","
	    "\"destination\":\"session\"},\"directoryPath\":\"/d\",\"toolName\":\"Edit\"}";
	mr_auto(rendered_done) struct rendered r = { 0 };
	struct type_context context = { .now_ms = NOW_MS };
	struct mr_header whole[] = { { "directoryPath", "/d" }, { "toolName", "Edit" },
		{ "permissionUpdate",
		    "{\"behavior\":\"ask\", \"rules\":[{\"more\":1,\"ruleContent\":\"x\", \"toolName\":\"Edit\"}]}" } };
	struct mr_header parts[] = { { "directoryPath", "/d" }, { "toolName", "Edit" },
		{ "permissionUpdate.behavior", "ask" },
		{ "permissionUpdate.rules", "[{\"ruleContent\":\"x\",\"toolName\":\"Edit\",\"more\":1}]" } };

	(void)state;
	assert_int_equal(render(&r, "teams", "team_permission_update", whole, 3, &context, ""), MR_OK);
	assert_string_equal(buf_z(&r.body), want);
	assert_int_equal(render(&r, "teams", "team_permission_update", parts, 4, &context, ""), MR_OK);
	assert_string_equal(buf_z(&r.body), want);
	parts[3].value = "[{\"ruleContent\":\"x\"}]";
	assert_int_equal(render(&r, "teams", "team_permission_update", parts, 4, &context, ""), MR_REFUSED);
	assert_non_null(strstr(r.err.message, "'permissionUpdate.rules[].toolName'"));
	parts[3].value = "[3]";
	assert_int_equal(render(&r, "teams", "team_permission_update", parts, 4, &context, ""), MR_REFUSED);
	assert_non_null(
	    strstr(r.err.message, "'permissionUpdate.rules' of team_permission_update must be a list of objects"));
}

static void
test_what_cannot_be_rendered(void **state)
{
	mr_auto(rendered_done) struct rendered r = { 0 };
	struct type_context context = { .sender = "gp/refinery", .recipient = "gp/witness", .now_ms = NOW_MS };
	struct mr_header given[] = { { "Branch", "b" }, { "Polecat", "nux" }, { "Brnach", "b" } };

	(void)state;
	assert_int_equal(render(&r, "gastown", "MERGED", given, 3, &context, ""), MR_REFUSED);
	assert_string_equal(r.err.message, "MERGED has no field 'Brnach'");
	assert_string_equal(r.err.hint, "did you mean 'Branch'?");
	given[2].name = "branch";
	assert_int_equal(render(&r, "gastown", "MERGED", given, 3, &context, ""), MR_REFUSED);
	assert_non_null(strstr(r.err.message, "given twice"));
	given[0].value = "b\nRig: forged";
	assert_int_equal(render(&r, "gastown", "MERGED", given, 2, &context, ""), MR_REFUSED);
	context.force = true;
	given[0] = (struct mr_header){ "Merged-At", "soon" };
	given[2] = (struct mr_header){ "New", "x" };
	assert_int_equal(render(&r, "gastown", "MERGED", given, 3, &context, "text\n"), MR_OK);
	assert_str(buf_str(&r.body), "Polecat: nux\nRig: gp\nTarget: main\nMerged-At: soon\nNew: x\n\ntext\n");
	given[0] = (struct mr_header){ "mode", "root" };
	given[1] = (struct mr_header){ "New", "[1]" };
	assert_int_equal(render(&r, "teams", "mode_set_request", given, 2, &context, ""), MR_OK);
	assert_str(
	    buf_str(&r.body), "{\"type\":\"mode_set_request\",\"mode\":\"root\",\"from\":\"gp/refinery\",\"New\":[1]}");
}

static void
test_a_received_message_is_completed(void **state)
{
	mr_auto(type_done) struct type_def def = { 0 };
	mr_auto(type_values_done) struct type_values values = { 0 };
	struct type_context context = {
		.sender = "greenplace/witness", .recipient = "other/refinery", .now_ms = NOW_MS
	};
	struct mr_error err = { 0 };

	(void)state;
	load_type("gastown", "MERGED", &def);
	read_as(&def, "MERGED nux", "Branch: b\nOther: x\n", &values);
	assert_value(&values, "Rig", NULL);
	assert_int_equal(type_complete(&def, &context, &values, &err), MR_OK);
	assert_value(&values, "Rig", "greenplace");
	assert_value(&values, "Target", "main");
	assert_value(&values, "Merged-At", NULL); /* not invented */
	assert_value(&values, "Branch", "b");
	assert_value(&values, "Other", "x");
	assert_string_equal(values.v[values.n - 1].name, "Other");
}

static void
test_names_of_variables(void **state)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	(void)state;
	type_variable(&out, "Previous Status-2.b");
	assert_str(buf_str(&out), "MAILROOM_FIELD_PREVIOUS_STATUS_2_B");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_documents_print_is_accepted),
		cmocka_unit_test(test_both_spellings_and_any_blanks),
		cmocka_unit_test(test_fields_end_where_the_text_begins),
		cmocka_unit_test(test_a_body_without_fields_is_text),
		cmocka_unit_test(test_values_outlive_their_type),
		cmocka_unit_test(test_a_nul_is_no_end),
		cmocka_unit_test(test_receiving_is_as_strict_as_the_original),
		cmocka_unit_test(test_ten_types_of_a_team_are_routed),
		cmocka_unit_test(test_fields_are_derived),
		cmocka_unit_test(test_ids_of_a_team),
		cmocka_unit_test(test_an_answer_has_one_of_two_forms),
		cmocka_unit_test(test_objects_are_given_whole_or_by_member),
		cmocka_unit_test(test_what_cannot_be_rendered),
		cmocka_unit_test(test_a_received_message_is_completed),
		cmocka_unit_test(test_names_of_variables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
