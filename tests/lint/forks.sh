#!/usr/bin/env bash
# forks.sh OBJECT_OR_ARCHIVE… - fails when one of them makes processes. gRPC does not survive in a
# child, so whoever has it in the same process leaves that to the keeper; the exceptions below start
# another program and touch nothing before.
set -euo pipefail

MAKERS='fork|_Fork|vfork|clone|clone3|forkpty|daemon|posix_spawnp?|system|popen|wordexp|uv_spawn'
EXCEPTIONS='agentd-link\.dir/(\./)?link/program\.c\.o: uv_spawn$|controller\.dir/(\./)?alert\.c\.o: uv_spawn$|holdfast\.dir/(\./)?children\.c\.o: fork$'
EXCEPTIONS+='|agentd-link\.dir/(\./)?link/(s3|successor)\.c\.o: uv_spawn$'

makers=$(nm --print-file-name --undefined-only --format=posix "$@" |
    sed -nE "s/^(.*): ($MAKERS) U.*/\1: \2/p")
stray=$(grep -vE "$EXCEPTIONS" <<<"$makers" || true)
if [[ -n $stray ]]; then
    printf 'these make processes:\n%s\n' "$stray"
    exit 1
fi
printf '%s\n' "$# objects and archives make no processes, but for these:" "${makers:-none}"
