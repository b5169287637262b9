#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/support/pg.sh start FOLDER PID - a PostgreSQL server of its own for a test: data and socket in FOLDER (made by the caller, mode 700),
# no TCP, run by an unprivileged user. It ends with `stop FOLDER`, and by itself when the process PID is gone.
# Prints the beginning of a spec: postgres:host=FOLDER ...; exit 3: there is no server on this machine.
# tests/support/pg.sh stop|kill|restart FOLDER - ends it in order, as a crash does (SIGQUIT), or ends and starts it again.
set -eu
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -n "$bin" ] && [ -x "$bin/initdb" ] || { echo "pg.sh: no PostgreSQL server is installed (Debian: postgresql)" >&2; exit 3; }
folder=$2
cd / # where that user may be
unpriv() { # a server refuses to be root's
	if [ "$(id -u)" -eq 0 ]; then setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; else "$@"; fi
}
up() {
	(cd "$folder" && unpriv "$bin/postgres" -D "$folder/data") >>"$folder/log" 2>&1 </dev/null &
	n=0
	until unpriv "$bin/pg_isready" -q -h "$folder" -U mailroom; do
		n=$((n + 1)); [ $n -lt 300 ] || { cat "$folder/log" >&2; exit 1; }
		sleep 0.05
	done
}
down() { # down SIGNAL
	pid=$(head -n 1 "$folder/data/postmaster.pid" 2>/dev/null) || return 0
	kill -s "$1" "$pid" 2>/dev/null || return 0
	n=0
	while kill -0 "$pid" 2>/dev/null; do n=$((n + 1)); [ $n -lt 400 ] || break; sleep 0.05; done
}
case $1 in
start)
	[ "$(id -u)" -ne 0 ] || chown postgres: "$folder"
	unpriv "$bin/initdb" -D "$folder/data" -A trust -U mailroom -E UTF8 --no-locale --no-sync >"$folder/initdb" 2>&1 || { cat "$folder/initdb" >&2; exit 1; }
	cat >>"$folder/data/postgresql.conf" <<-CONF
		listen_addresses = ''
		unix_socket_directories = '$folder'
		shared_buffers = 32MB
		max_connections = 60
		autovacuum_naptime = 10s
	CONF
	: >"$folder/log"; [ "$(id -u)" -ne 0 ] || chown postgres: "$folder/log"
	up
	(while kill -0 "$3" 2>/dev/null && [ -e "$folder/data" ]; do sleep 1; done; down QUIT) >/dev/null 2>&1 </dev/null &
	echo "postgres:host=$folder user=mailroom dbname=postgres"
	;;
stop) down INT ;;
kill) down QUIT ;;
restart) down INT; up ;;
*) echo "usage: tests/support/pg.sh start FOLDER PID | stop|kill|restart FOLDER" >&2; exit 2 ;;
esac
