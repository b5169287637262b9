# SPDX-License-Identifier: MIT
# The real Gemini CLI: it connects to the server that setup configured.
. "$(dirname "$0")/lib.sh"
need gemini

project proj bob
mkdir -p "$HOME/.gemini"
printf '{"%s":"TRUST_FOLDER"}\n' "$PWD" >"$HOME/.gemini/trustedFolders.json"
exits 0 'setup' mailroom setup gemini --apply
exits 0 'and its own proof of the round trip' mailroom setup gemini --check
exits 0 'gemini mcp list' timeout 60 gemini mcp list
cat out err >both
says both 'mailroom: .*Connected' 'says that the server is connected'
check 'what setup wrote is JSON' jq -e .mcpServers.mailroom "$HOME/.gemini/settings.json"
exits 0 'remove' mailroom setup gemini --remove
timeout 60 gemini mcp list >both 2>&1
silent_about both 'mailroom' 'and gemini no longer knows it'
finish
