#!/usr/bin/env bash
# layers_selftest.sh WORK_DIR - shows that layers.sh finds each kind of broken layer.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
work=$1/layers_selftest

# A small tree in which all is well.
make_tree()
{
    rm -rf "$work"
    mkdir -p "$work"/lib/{base,schema,core,etcd,io} "$work/agentd" \
        "$work"/proto/{etcd,holdfast/v1,grpc/health/v1}
    touch "$work"/proto/{etcd/rpc,holdfast/v1/task,grpc/health/v1/health}.pb-c.h
    touch "$work/lib/base/err.h"
    echo '#include "base/err.h"' >"$work/lib/schema/keys.h"
    printf '#include "%s"\n' schema/keys.h holdfast/v1/task.pb-c.h >"$work/lib/core/lease.h"
    printf '#include "core/lease.h"\n#include <stdlib.h>\n' >"$work/lib/core/lease.c"
    printf '#include "base/err.h"\n#include <uv.h>\n' >"$work/lib/etcd/kv.h"
    printf '#include "%s"\n' etcd/kv.h etcd/rpc.pb-c.h >"$work/lib/etcd/kv.c"
    printf '#include "%s"\n' core/lease.h etcd/kv.h grpc/health/v1/health.pb-c.h \
        >"$work/lib/io/runner.h"
    printf '#include "io/runner.h"\n#include <time.h>\n' >"$work/agentd/main.c"
}

run()
{
    "$here/layers.sh" "$work" "$work/proto" >"$work/out" 2>&1
}

# broken FILE LINE EXPECTED: with LINE added to FILE, the output must have EXPECTED.
broken()
{
    make_tree
    mkdir -p "$(dirname "$work/$1")"
    echo "$2" >>"$work/$1"
    if run; then
        echo "not found: $2 in $1"
        exit 1
    fi
    grep -qF "$3" "$work/out" || {
        echo "'$3' is not said of $2 in $1:"
        head -n 40 "$work/out"
        exit 1
    }
}

make_tree
run || {
    echo "an intact tree is rejected:"
    head -n 40 "$work/out"
    exit 1
}

broken lib/base/str.c '#include "schema/keys.h"' "lib/base/str.c: base must not see lib/schema/keys.h"
broken lib/schema/keys.c '#include "core/lease.h"' "schema must not see lib/core/lease.h"
broken lib/schema/keys.h '#include "etcd/rpc.pb-c.h"' "schema must not see proto/etcd/rpc.pb-c.h"
broken lib/core/lease.c '#include "etcd/kv.h"' "core must not see lib/etcd/kv.h"
broken lib/core/lease.c '#include "io/runner.h"' "core must not see lib/io/runner.h"
broken lib/core/lease.c '#include <time.h>' "core must not see /usr/include/time.h"
broken lib/etcd/kv.c '#include "schema/keys.h"' "etcd must not see lib/schema/keys.h"
broken lib/etcd/kv.c '#include "holdfast/v1/task.pb-c.h"' "etcd must not see proto/holdfast"
broken lib/io/runner.h '#include "etcd/rpc.pb-c.h"' "io must not see proto/etcd/rpc.pb-c.h"
broken agentd/main.c '#include "etcd/rpc.pb-c.h"' "program must not see proto/etcd/rpc.pb-c.h"
# Through another header: what base or schema may use, core must not see even so.
broken lib/base/err.h '#include <uv.h>' "lib/core/lease.c: core must not see /usr/include/uv.h"
broken lib/schema/keys.h '#include <pthread.h>' "lib/core/lease.c: core must not see /usr/include/time.h"
# A file that cannot be judged is not let through.
broken lib/base/err.h '#include "absent.h"' "absent.h"
broken lib/other/new.h '#include "base/err.h"' "there is no layer called 'other'"
echo "every kind of broken layer is found"
