# report.awk - what a ctest run amounts to, in single test cases.
#
#     awk -v counts=FILE [-v unsteady='NAME…'] -f report.awk CTEST_OUTPUT LAST_TEST_LOG
#
# The outcome of each test stands in ctest's own output; what it printed, and how many cases a
# Check program ran, in LastTest.log. Prints the output of every test that failed or was skipped,
# and writes "passed failed skipped" to FILE. A test that is no Check program is one case, and a
# program that failed without a failed case (a leak, a crash, a time-out) is one failure. A case that
# says "skipped: WHY" (hft_skip) and is not bad counts as skipped, and is named. The tests that are
# called unsteady passed when they were run again: all their cases count as passed.

BEGIN {
    split(unsteady, list, " ")
    for (i in list)
        passed_again[list[i]] = 1
}

FNR == 1 { file++ }

file == 1 && /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / {
    outcome[$4] = "Passed"
    if (match($0, /\*\*\*.*/) && !($4 in passed_again))
        outcome[$4] = substr($0, RSTART + 3)
}

file == 2 && /^[0-9]+\/[0-9]+ Test: / {
    name = $3
    if (outcome[name] != "Passed")
        printf "      %s: %s\n", name, outcome[name]
}

file == 2 && /^<end of output>$/ { inside = 0 }

file == 2 && inside && /^skipped: / && outcome[name] !~ /^Skipped/ {
    skips[name]++
    reasons[name SUBSEP substr($0, 10)]++
}

file == 2 && inside {
    if (outcome[name] != "Passed")
        print "      | " $0
    if (/^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+$/) {
        split($0, part, /[:,] */)
        cases[name] += part[3]
        if (!(name in passed_again))
            bad[name] += part[5] + part[7]
    }
}

# The line after "Output:" is a rule.
file == 2 && /^Output:$/ { getline; inside = 1 }

END {
    for (name in outcome) {
        if (outcome[name] ~ /^Skipped/) {
            skipped++
        } else if (outcome[name] != "Passed" && !bad[name]) {
            failed++
        } else {
            failed += bad[name]
            left_out = (name in cases) ? skips[name] : 0
            skipped += left_out
            passed += (name in cases) ? cases[name] - bad[name] - left_out : 1
        }
    }
    for (reason in reasons) {
        split(reason, part, SUBSEP)
        if (part[1] in cases)
            printf "      %s: %d skipped: %s\n", part[1], reasons[reason], part[2]
    }
    print passed + 0, failed + 0, skipped + 0 > counts
}
