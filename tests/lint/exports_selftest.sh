#!/usr/bin/env bash
# exports_selftest.sh WORK_DIR - shows that exports.sh finds a stray symbol.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
work=$1/exports_selftest
cc=${CC:-cc}
rm -rf "$work"
mkdir -p "$work"
cd "$work"

echo 'int hf_good(void); int hf_good(void) { return 0; } static int own; int *hf_own = &own;' >good.c
echo 'int stray; int hf_good(void); int hf_good(void) { return stray; }' >stray.c
for name in good stray; do
    "$cc" -fPIC -c "$name.c"
    ar rcs "lib$name.a" "$name.o"
    "$cc" -shared -o "lib$name.so.0" "$name.o"
done
: | "$cc" -x c -c - -o empty.o
ar rcs libempty.a empty.o

must_fail()
{
    if "$here/exports.sh" "$1" >out 2>&1; then
        echo "accepted: $1"
        exit 1
    fi
    grep -q "$2" out || {
        cat out
        exit 1
    }
}

"$here/exports.sh" libgood.a libgood.so.0
must_fail libstray.a '^stray$'
must_fail libstray.so.0 '^stray$'
must_fail libempty.a 'nothing at all'
echo "stray symbols are found"
