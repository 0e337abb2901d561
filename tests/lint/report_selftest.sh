#!/usr/bin/env bash
# report_selftest.sh WORK_DIR - shows that report.awk counts what a real ctest reports.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
work=$1/report_selftest
rm -rf "$work"
mkdir -p "$work"
cd "$work"

cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(sample NONE)
enable_testing()
function(sample name script)
    add_test(NAME ${name} COMMAND sh -c "${script}")
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 60)
endfunction()
sample(five_cases "echo '100%: Checks: 5, Failures: 0, Errors: 0'")
sample(two_of_five_bad "echo '60%: Checks: 5, Failures: 1, Errors: 1'; exit 1")
sample(leak_after_all_was_well "echo '100%: Checks: 4, Failures: 0, Errors: 0'; exit 1")
sample(two_of_six_skipped "echo 'skipped: no ink'; echo 'skipped: no ink';
    echo '100%: Checks: 6, Failures: 0, Errors: 0'")
sample(no_check_program "true")
sample(plain_failure "echo because; exit 1")
sample(skipped "echo no reason; exit 77")
sample(crashed "kill -SEGV $$")
sample(hangs "exec sleep 60")
set_tests_properties(hangs PROPERTIES TIMEOUT 1)
add_test(NAME absent COMMAND /nonexistent)
END
cmake -G Ninja -B build . >cmake.log
ctest --test-dir build -j 4 >ctest.log 2>&1 && exit 1
awk -v counts=counts -f "$here/../report.awk" ctest.log build/Testing/Temporary/LastTest.log >out

cat out
diff counts - <<<"13 7 3"
grep -q 'two_of_six_skipped: 2 skipped: no ink$' out
grep -q '| because$' out
grep -q '| no reason$' out
if grep -q five_cases out; then
    exit 1
fi

# What passed on a second look counts as passed, whole.
awk -v counts=again -v unsteady="two_of_five_bad plain_failure" -f "$here/../report.awk" ctest.log \
    build/Testing/Temporary/LastTest.log >out
diff again - <<<"16 4 3"
if grep -q because out; then
    exit 1
fi
