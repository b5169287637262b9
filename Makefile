# SPDX-License-Identifier: MIT
# A thin face over Meson. `make demo` and `make test` work as the first and only command on a fresh Debian machine.
#
#   build/musl     the command: one static binary of musl libc alone
#   build/glibc    the same command with the plain compiler, and libmailroom (static and shared)
#   build/dev      tests, warnings as errors, fault points reachable from the environment
#   build/asan     the same under AddressSanitizer and UBSan
#   build/portable the same with nothing but POSIX

PREFIX ?= /usr/local
DESTDIR ?=
# make install GT=1 also installs it under the name gt, for those who have no Gas Town
GT ?=
MUSL := $(shell command -v musl-gcc 2>/dev/null)

.PHONY: all demo test bench bench-postgres lint fuzz asan install clean deps deps-test peers screenshots powercut chaos soak soak-postgres races crash stress failover serve-load format musl glibc dev deb deb-test npm
all: musl glibc

deps:
	@tools/deps build
deps-test:
	@tools/deps build test

musl: deps
	@tools/build musl
glibc: deps
	@tools/build glibc
dev: deps-test
	@tools/build dev
asan: deps-test
	@tools/build asan && tests/run --only asan

demo: musl
	@tools/demo

test: deps-test
	@tools/build musl glibc dev asan portable
	@tests/run

lint: deps-test
	@tools/lint

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

# BENCH_ROWS=rivals make bench: only a part. Fails when a row of growth is above its limit. Writes build/bench.json and, of all parts, docs/BENCHMARKS.md with its plot
bench: deps-test
	@tools/deps bench || echo 'mailroom: a peer that is missing is left out' >&2
	@tools/build musl glibc dev
	@bench/run; code=$$?; [ $$code != 0 ] && [ $$code != 3 ] || bench/report || code=$$?; exit $$code
	@[ -n "$$BENCH_ROWS" ] || bench/run-postgres

# A room in PostgreSQL beside bare statements. BENCH_LONG=1 make bench-postgres: a million waiting and archived. Writes build/bench-postgres.json
bench-postgres: deps-test
	@tools/build musl glibc
	@bench/run-postgres

fuzz: deps-test
	@tools/fuzz

powercut: deps-test
	@tools/build musl dev
	@tests/model/run && tests/powercut/run --long

# 60 seconds; TIME=2h make chaos for hours. SEED=N repeats one
chaos: deps-test
	@tools/build musl dev
	@tests/chaos/run

# months of a room with retention, in fast motion: 100,000 messages, and no folder may grow
soak: deps-test
	@tools/build dev
	@tests/soak/soak.py 100000

# a million messages through a room in PostgreSQL with retention: no table and no index may grow
soak-postgres: deps-test
	@tools/build dev
	@tests/soak/postgres.sh 1000000

# a room in PostgreSQL on two machines (network namespaces: needs root), whose primary dies ROUNDS times (100) under real commands
failover: deps-test
	@tools/build dev
	@tests/failover/campaign.py $${ROUNDS:-100}

# every pair of operations under every schedule with one pause, and by dice for TIME (10m)
races: deps-test
	@tools/build musl dev tsan
	@build/tsan/tests/test_threads && tests/load/serve-races && tests/race/run

# on a quiet machine: 200 open pages and 50 requests a second, what they cost a send; 100,000 events; 100 kills
# ROUNDS=40 EVENTS=2000 KILLS=5: three minutes
serve-load: deps-test
	@tools/build musl glibc dev
	@tests/load/serve-load.py --rounds $${ROUNDS:-40} --events $${EVENTS:-100000} && tests/load/serve-kills.py $${KILLS:-100}

crash stress: deps-test
	@tools/build dev musl
	@tests/run --only $@ --long

# every page of the operator's view at 1280 and 400 pixels, into build/screenshots; those of the README into docs/
screenshots: deps-test
	@tools/build dev musl
	@SHOTS=$(CURDIR)/build/screenshots sh tests/e2e/t8300-view.t
	@cp build/screenshots/attention-1280.png docs/view-attention.png
	@cp build/screenshots/thread-1280-dark.png docs/view-conversation.png
	@cp build/screenshots/picture.svg docs/view-picture.svg

# the official MCP peers and the real harnesses, from npm: heavy
peers: deps-test
	@tools/build musl dev
	@tests/peers/run

# Debian packages in build/deb; deb-test also tries them in a clean system (debootstrap, root)
deb: deps
	@tools/deps deb
	@tools/deb
deb-test: deps
	@tools/deps deb
	@tests/packages/run

# packages for npm in build/npm: a wrapper, and the static command for this platform. Nothing is published
npm: musl
	@tools/npm-pack

install: all
	@GT='$(GT)' tools/install-files '$(DESTDIR)' '$(PREFIX)'

clean:
	rm -rf build
