# SPDX-License-Identifier: MIT
"""schema.py SCHEMA <JSON - checks one value, or each line of several, by the part of JSON Schema that docs/schema uses: type, enum,
required, properties, items. Silence is success."""
import json
import sys

TYPES = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list, "null": type(None)}


def check(value, schema, where):
    types = schema.get("type")
    if types is not None:
        names = types if isinstance(types, list) else [types]
        if not any(isinstance(value, TYPES[t]) and not (t == "integer" and isinstance(value, bool)) for t in names):
            yield "%s is %s, not %s" % (where, type(value).__name__, " or ".join(names))
            return
    if "enum" in schema and value not in schema["enum"]:
        yield "%s is %r" % (where, value)
    if isinstance(value, dict):
        for key in schema.get("required", []):
            if key not in value:
                yield "%s has no '%s'" % (where, key)
        known = schema.get("properties")
        for key, one in value.items():
            if known is not None and key not in known:
                yield "%s has '%s', of which the schema says nothing" % (where, key)
            elif known is not None:
                yield from check(one, known[key], where + "." + key)
    if isinstance(value, list) and "items" in schema:
        for i, one in enumerate(value):
            yield from check(one, schema["items"], "%s[%d]" % (where, i))


with open(sys.argv[1]) as f:
    wanted = json.load(f)
text = sys.stdin.read()
values = [json.loads(line) for line in text.splitlines() if line.strip()]
problems = ["no value"] if not values else [p for v in values for p in check(v, wanted, "it")]
print("\n".join(problems[:20]), end="")
sys.exit(1 if problems else 0)
