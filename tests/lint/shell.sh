#!/usr/bin/env bash
# shell.sh SOURCE_DIR - shellcheck over every script.
set -euo pipefail

cd "$1"
mapfile -t dirs < <(ls -d tests examples 2>/dev/null)
find "${dirs[@]}" -name '*.sh' -print0 | xargs -0 shellcheck dev .ci/run
