#!/usr/bin/env bash
# headers.sh SOURCE_DIR PROTO_DIR - fails when a header does not compile on its own.
set -euo pipefail

cc=${CC:-cc}
cd "$1"
read -ra flags < <(pkg-config --cflags libprotobuf-c grpc libuv jansson yaml-0.1 libcrypto libcurl check)
flags+=(-std=gnu17 -D_GNU_SOURCE -DHOLDFAST_SOURCE_DIR='"."' -Wall -Wextra -Werror -I lib -I . -I tests -I "$2")

mapfile -t dirs < <(ls -d lib agentd controller cli tests 2>/dev/null)
status=0 count=0
while read -r header; do
    "$cc" "${flags[@]}" -fsyntax-only -x c "$header" || status=1
    count=$((count + 1))
done < <(find "${dirs[@]}" -name '*.h' | sort)
echo "$count headers"
((count > 0)) || status=1
exit "$status"
