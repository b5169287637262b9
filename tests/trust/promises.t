# SPDX-License-Identifier: MIT
# once
# docs/SECURITY.md is kept true by the names of tests: every test that it names is there. What the skill may run is what is granted.
. "$(dirname "$0")/../lib/tap.sh"

doc=$top/docs/SECURITY.md
grep -o '`[a-z0-9-]*\.t`' "$doc" | tr -d '`' | sort -u >scripts
[ "$(wc -l <scripts)" -ge 8 ] && ok 'the table names tests' || not_ok 'the table names tests'
while read -r script; do check "$script is there" sh -c "ls '$top/tests/trust/$script' '$top/tests/e2e/$script' 2>/dev/null | grep -q ."; done <scripts
# `script.t` "a name", "another"
grep -o '`[a-z0-9-]*\.t` "[^|`;]*' "$doc" | while IFS= read -r row; do
	script=$(printf %s "$row" | sed 's/^`\([^`]*\)`.*/\1/')
	printf '%s\n' "$row" | grep -o '"[^"]*"' | tr -d '"' | while IFS= read -r name; do printf '%s\t%s\n' "$script" "$name"; done
done >names
[ "$(wc -l <names)" -ge 10 ] && ok 'and single cases' || not_ok 'and single cases'
while IFS='	' read -r script name; do
	base=${script%.t}
	check "$script has '$name'" sh -c "grep -rqF -e \"\$1\" \"\$2\"/tests/trust/\"\$3\".* || { [ \"\$1\" = CLAUDE_CODE_SESSION_ID: ] && grep -q 'CLAUDE_CODE_SESSION_ID' \"\$2/tests/trust/\$3.t\"; }" x "$name" "$top" "$base"
done <names
mr describe --all | jq -r '.commands[] | .name as $n | if .granted == true then $n elif .granted == false then empty else (.granted[] | "\($n) \(.)") end' | sort >granted
sed -n 's/^allowed-tools: "\(.*\)"$/\1/p' "$top/share/mailroom/skill/SKILL.md" | tr ',' '\n' | sed 's/^ *Bash(mailroom //; s/:\*)$//' | sort >skill
same "$(cat granted)" "$(cat skill)" 'the skill may run what is granted, and no more'
for page in mailroom-config.5 mailroom.7; do check "$page is sound" sh -c "mandoc -T lint -W warning '$top/man/$page'"; done
finish
