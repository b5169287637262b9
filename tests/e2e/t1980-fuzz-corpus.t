# once
# Replays what the fuzzers found, and the seeds, through every target: under the sanitizers where they are built.
. "$(dirname "$0")/../lib/tap.sh"

for source in "$top"/tests/fuzz/fuzz_*.c; do
	target=${source##*/fuzz_} target=${target%.c}
	program=$top/build/asan/tests/test_fuzz_$target
	[ -x "$program" ] || program=$top/build/dev/tests/test_fuzz_$target
	exits 0 "$target takes its corpus" "$program" "$top/tests/fuzz/corpus/$target"
	same "$(find "$top/tests/fuzz/corpus/$target" -type f | wc -l) inputs replayed" "$(tail -n 1 out)" 'all of it'
done
finish
