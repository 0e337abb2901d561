#!/usr/bin/env bash
# format.sh SOURCE_DIR [--fix] - checks that the C sources are formatted, or formats them.
set -euo pipefail

cd "$1"
mode=(--dry-run -Werror)
[[ ${2:-} != --fix ]] || mode=(-i)
mapfile -t dirs < <(ls -d lib agentd controller cli tests examples docs 2>/dev/null)
find "${dirs[@]}" -name '*.[ch]' -print0 | xargs -0 clang-format "${mode[@]}"
