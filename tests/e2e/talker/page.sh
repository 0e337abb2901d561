#!/usr/bin/env bash
# page.sh PAGE LANGUAGE - prints the first program of that language on a page of the manual.
set -euo pipefail

awk -v language="$2" '
    $0 == "```" language && !done { inside = 1; next }
    $0 == "```" && inside { inside = 0; done = 1 }
    inside { print }
    END { exit !done }' "$1"
