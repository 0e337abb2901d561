#!/usr/bin/env bash
# tidy.sh SOURCE_DIR BUILD_DIR CHECKS - static analysis of all that ships (generated code is not ours).
set -euo pipefail

# One file; silent when all is well, in one piece when not.
analyse()
{
    local out
    out=$(clang-tidy --quiet -p "$1" "--checks=$2" --extra-arg=-Wno-unknown-warning-option \
        "$3" 2>&1) && return
    grep -v 'warnings\? \(generated\|treated as errors\)' <<<"$out"
    return 1
}
export -f analyse

cd "$1"
mapfile -t dirs < <(ls -d lib agentd controller cli 2>/dev/null)
# shellcheck disable=SC2016 # the inner shell expands these
find "${dirs[@]}" -name '*.c' -print0 |
    xargs -0 -n 1 -P "$(nproc)" bash -c 'analyse "$0" "$1" "$2"' "$2" "$3"
