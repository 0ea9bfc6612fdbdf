#!/usr/bin/env bash
# What `make test-fast` runs: the checks, and the unit and property tests but the long ones, in a process
# for each core; all side by side. What the first of them says is shown as it comes, the rest after it.
#
#   tools/test_fast.sh [argument of pytest]... FOLDER...
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Each has to import what it tests: more of them would help little.
readonly MOST_PARTS=8 NONE_CHOSEN=5
parts=$(nproc)
[ "$parts" -le "$MOST_PARTS" ] || parts=$MOST_PARTS

said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT

# Bytecode is kept even where Python is told to keep none: of the tests too it need not be made each time.
run_part() {
    HYPOTHESIS_PROFILE=fast exec env -u PYTHONDONTWRITEBYTECODE \
        .venv/bin/python -m pytest -q --part "$1/$parts" -m 'not long' "${@:2}"
}

jobs=()
for part in $(seq 2 "$parts"); do
    (run_part "$part" "$@") >"$said/$part" 2>&1 &
    jobs+=($!)
done
make --no-print-directory lint types >"$said/checks" 2>&1 &
checks=$!

worst=$NONE_CHOSEN
# The worst of the parts; one in which nothing was chosen does not count beside another.
count() {
    if [ "$1" -ne "$NONE_CHOSEN" ]; then
        [ "$worst" -ne "$NONE_CHOSEN" ] || worst=0
        worst=$((worst | $1))
    fi
}

(run_part 1 "$@")
count $?
for part in "${!jobs[@]}"; do
    wait "${jobs[part]}"
    count $?
    cat "$said/$((part + 2))"
done
wait "$checks"
checked=$?
cat "$said/checks"
exit $((worst | checked))
