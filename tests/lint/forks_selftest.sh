#!/usr/bin/env bash
# forks_selftest.sh WORK_DIR - shows that forks.sh finds who makes processes.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
work=$1/forks_selftest
cc=${CC:-cc}
rm -rf "$work"
mkdir -p "$work/controller.dir"
cd "$work"

echo 'int fork_it(void); int fork_it(void) { return 0; } /* fork() */' >good.c
echo 'int fork(void); int make(void); int make(void) { return fork(); }' >forks.c
echo 'int uv_spawn(void); int make(void); int make(void) { return uv_spawn(); }' >spawns.c
for name in good forks spawns; do
    "$cc" -c "$name.c"
    ar rcs "lib$name.a" "$name.o"
done
cp spawns.o controller.dir/alert.c.o

must_fail()
{
    if "$here/forks.sh" good.o "$1" >out 2>&1; then
        echo "accepted: $1"
        exit 1
    fi
    grep -q "$2" out || {
        cat out
        exit 1
    }
}

"$here/forks.sh" good.o libgood.a
"$here/forks.sh" good.o controller.dir/alert.c.o
must_fail forks.o 'forks.o: fork$'
must_fail libforks.a 'forks.o.*: fork$'
must_fail spawns.o 'spawns.o: uv_spawn$'
echo "who makes processes is found"
