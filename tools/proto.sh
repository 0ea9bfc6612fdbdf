#!/usr/bin/env bash
# Generates mesos_py/v1/*_pb2*.py and their type stubs from proto/mesos_py/v1/*.proto.
#
#   tools/proto.sh           what `make proto` runs
#   tools/proto.sh --check   fails when the committed stubs are not what the protos give
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly BIN=.venv/bin PACKAGE=mesos_py/v1

die() { printf 'proto: %s\n' "$*" >&2; exit 1; }

case "${1:-}" in
    '' | --check) ;;
    *) die "unknown argument: $1 (known: --check)" ;;
esac

shopt -s nullglob
protos=(proto/"$PACKAGE"/*.proto)
[ "${#protos[@]}" -gt 0 ] || die "no proto files in proto/$PACKAGE"
mapfile -t services < <(grep -l '^service ' "${protos[@]}")

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

protoc() { "$BIN/python" -m grpc_tools.protoc -I proto "$@"; }
protoc --python_out="$out" "${protos[@]}" \
    --plugin="$BIN/protoc-gen-mypy" --mypy_out="quiet:$out"
protoc --grpc_python_out="$out" "${services[@]}" \
    --plugin="$BIN/protoc-gen-mypy_grpc" --mypy_grpc_out="quiet:$out"

if [ "${1:-}" = --check ]; then
    diff -r -q --exclude=__init__.py --exclude=__pycache__ "$out/$PACKAGE" "$PACKAGE" ||
        die "$PACKAGE is not what the protos give; run: make proto"
else
    # Only what has changed is written: nobody's build or editor sees files move for nothing.
    for old in "$PACKAGE"/*_pb2*.py*; do
        [ -e "$out/$old" ] || rm "$old"
    done
    for new in "$out/$PACKAGE"/*; do
        cmp -s "$new" "$PACKAGE/${new##*/}" || cp "$new" "$PACKAGE/"
    done
fi
