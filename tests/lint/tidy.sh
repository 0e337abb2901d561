#!/usr/bin/env bash
# tidy.sh SOURCE_DIR BUILD_DIR - static analysis of all that ships (generated code is not ours).
set -euo pipefail

cd "$1"
mapfile -t dirs < <(ls -d lib agentd controller cli 2>/dev/null)
find "${dirs[@]}" -name '*.c' -print0 |
    xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p "$2" --extra-arg=-Wno-unknown-warning-option
