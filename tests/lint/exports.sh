#!/usr/bin/env bash
# exports.sh LIBRARY… - fails when a library offers a symbol without the prefix hf_.
set -euo pipefail

# Programs link into one namespace: an unprefixed name of ours could meet one of theirs.
symbols_of()
{
    case $1 in
    *.so | *.so.*) nm --dynamic --defined-only --format=posix "$1" ;;
    *) nm --extern-only --defined-only --format=posix "$1" ;;
    esac
}

status=0
for library in "$@"; do
    names=$(symbols_of "$library" | awk 'NF > 1 { print $1 }' | sort -u)
    stray=$(grep -v '^hf_' <<<"$names" || true)
    if [[ -z $names ]]; then
        echo "$library offers nothing at all"
        status=1
    elif [[ -n $stray ]]; then
        printf '%s offers:\n%s\n' "$library" "$stray"
        status=1
    else
        echo "$library: $(wc -l <<<"$names") symbols, all hf_"
    fi
done
exit "$status"
