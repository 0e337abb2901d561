#!/bin/sh
# watched.sh PROGRAM [ARGUMENT…]: runs a test, and lets it fail when ThreadSanitizer has found
# something in any process that came of it. A link is the child of an agentd that the test started:
# nobody would hear of what it says, nor of the status that it ends with.
reports=$(mktemp -d) || exit 1
trap 'rm -rf "$reports"' EXIT
TSAN_OPTIONS="${TSAN_OPTIONS:+$TSAN_OPTIONS:}log_path=$reports/found" "$@"
status=$?
for report in "$reports"/found*; do
    [ -e "$report" ] || continue
    cat "$report"
    status=66
done
exit "$status"
