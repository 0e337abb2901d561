#!/usr/bin/env bash
# instead.sh PROGRAM SYMBOL… - fails when no library uses the program's SYMBOL instead of its own.
set -euo pipefail

# A linker that does not look into the libraries of libraries exports nothing for them, and the
# program works as before, only larger: nothing else would tell.
program=$1
shift
bindings=$(LD_BIND_NOW=1 LD_DEBUG=bindings "$program" --version 2>&1)
status=0
for symbol in "$@"; do
    if ! grep -qF " to $program [0]: normal symbol \`$symbol'" <<<"$bindings"; then
        echo "no library uses $symbol of $program"
        status=1
    fi
done
exit "$status"
