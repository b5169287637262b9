#!/bin/sh
# SPDX-License-Identifier: MIT
# once
# The operator's view in a real Chromium: tests/browser/view.mjs has what it must do. SHOTS=FOLDER keeps a screenshot of each page.
. "$(dirname "$0")/../lib/tap.sh"
gone() { echo "ok 1 - the operator's view # skip $1"; echo 1..1; exit 0; }
[ -x "${DEVBIN%/*}/mailroom-serve" ] || gone 'mailroom-serve was built without libmicrohttpd (Debian: libmicrohttpd-dev)'
CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || gone 'no Chromium is installed (Debian: chromium)'
[ -f "$top/build/browser/installed" ] || gone 'playwright-core is not installed (tools/deps test installs it from npm)'
export CHROMIUM

mkdir town && cd town || exit 1
lives=$(timeout 60 sh "$top/tests/browser/town.sh") || { echo 'Bail out! the town cannot be made'; exit 1; }
"$DEVBIN" serve --listen 127.0.0.1:0 >link 2>serve.err </dev/null & server=$!
trap 'kill $server $lives 2>/dev/null; wait $server 2>/dev/null; chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
tries=0
until [ -s link ]; do
	tries=$((tries + 1))
	[ $tries -lt 400 ] || { cat serve.err; echo 'Bail out! the server does not start'; exit 1; }
	sleep 0.05
done
timeout 200 node "$top/tests/browser/view.mjs" "$(cat link)"
code=$?
note <serve.err
exit $code
