/* SPDX-License-Identifier: MIT */
/* definitions.c - the tools as tools/list shows them: schemas made from their tables, and annotations. */
#include "cli/mcp/mcp.h"

static void
add_choices(struct json *j, const char *choices)
{
	json_key(j, "enum");
	json_open(j, '[');
	for (;;) {
		size_t len = strcspn(choices, "|");

		json_str(j, (struct mr_str){ choices, len });
		if (!choices[len])
			break;
		choices += len + 1;
	}
	json_close(j);
}

static void
add_arg(struct json *j, const struct arg *arg)
{
	static const char *const types[] = {
		[ARG_TEXT] = "string",
		[ARG_NAMES] = "string",
		[ARG_LIST] = "array",
		[ARG_NUMBER] = "integer",
		[ARG_FLAG] = "boolean",
	};

	json_key(j, arg->name);
	json_open(j, '{');
	json_key_str(j, "type", types[arg->kind]);
	if (arg->kind == ARG_LIST) {
		json_key(j, "items");
		json_raw(j, STR("{\"type\":\"string\"}"));
	}
	if (arg->choices)
		add_choices(j, arg->choices);
	if (arg->help)
		json_key_str(j, "description", arg->help);
	json_close(j);
}

static void
add_input(struct json *j, const struct arg *args)
{
	bool required = false;

	json_key(j, "inputSchema");
	json_open(j, '{');
	json_key_str(j, "type", "object");
	json_key(j, "properties");
	json_open(j, '{');
	for (const struct arg *a = args; a->name; a++) {
		add_arg(j, a);
		required = required || a->required;
	}
	json_close(j);
	if (required) {
		json_key(j, "required");
		json_open(j, '[');
		for (const struct arg *a = args; a->name; a++)
			if (a->required)
				json_str(j, str_of(a->name));
		json_close(j);
	}
	json_key_bool(j, "additionalProperties", false);
	json_close(j);
}

static void
add_output(struct json *j, enum tool_output output)
{
	static const struct mr_str schemas[] = {
		[TOOL_TEXT] = STR("{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},"
				  "\"required\":[\"text\"]}"),
		[TOOL_SENT] = STR("{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"},"
				  "\"id\":{\"type\":\"string\"}},\"required\":[\"text\",\"id\"]}"),
		[TOOL_MAIL] = STR("{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"},"
				  "\"ids\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
				  "\"cut\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},"
				  "\"required\":[\"text\",\"ids\"]}"),
		[TOOL_WORK] = STR("{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"},"
				  "\"id\":{\"type\":\"string\"},\"token\":{\"type\":\"string\"},"
				  "\"attempt\":{\"type\":\"integer\"}},\"required\":[\"text\"]}"),
	};

	json_key(j, "outputSchema");
	json_raw(j, schemas[output]);
}

void
tool_json(struct json *j, const struct tool *tool)
{
	json_open(j, '{');
	json_key_str(j, "name", tool->name);
	json_key_str(j, "title", tool->title);
	json_key_str(j, "description", tool->about);
	add_input(j, tool->args);
	add_output(j, tool->output);
	json_key(j, "annotations");
	json_open(j, '{');
	json_key_bool(j, "readOnlyHint", tool->reads);
	json_key_bool(j, "destructiveHint", tool->destroys);
	json_key_bool(j, "idempotentHint", tool->repeats);
	json_key_bool(j, "openWorldHint", false);
	json_close(j);
	json_close(j);
}
