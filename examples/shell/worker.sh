#!/bin/sh
# A worker that never begins its work twice: an agent of Holdfast in a shell, with curl.
#
#     agentd run --name w1 --role count -- sh worker.sh
#
# Takes tasks of its role, one after the other. A task's payload is the number of steps; each
# step is followed by a checkpoint, which is the number of the last step and nothing else. When
# this process dies, its successor finds the newest checkpoint and goes on behind it.
set -eu

scratch=$(mktemp -d)
asks= # curl, while it does
trap 'kill "$asks" 2>/dev/null || :; wait; rm -rf "$scratch"' EXIT # no answer comes into it any more
trap 'exit 0' TERM
printf 'Authorization: Bearer %s\n' "$HOLDFAST_TOKEN" >"$scratch/token" # arguments are for all to see

# call METHOD PATH [curl options]: leaves the status in $status, the body in $scratch/body. What
# agentd cannot answer now is asked again, as is what came only in part. A shell hears a signal
# while it waits, but not while it runs a command: told to end, it would not before an answer came.
call() {
    method=$1 path=$2
    shift 2
    while :; do
        curl -s -o "$scratch/body" -w '%{http_code}' --max-time 120 \
            --unix-socket "$HOLDFAST_SOCKET" -H "@$scratch/token" \
            -X "$method" "$@" "http://localhost$path" >"$scratch/status" &
        asks=$!
        if wait "$asks"; then
            status=$(cat "$scratch/status")
        else
            status=000
        fi
        asks=
        case $status in
        '' | 000 | 503) sleep 0.2 ;;
        429) sleep 1 ;;
        *) break ;;
        esac
    done
}

refused() {
    echo "refused: $(cat "$scratch/body")" >&2
    exit 1
}

# must ...: the same, and the end of this process when it was refused.
must() {
    call "$@"
    case $status in
    2*) ;;
    *) refused ;;
    esac
}

# member NAME: of the JSON object in $scratch/body. Enough for texts without quotes in them.
member() {
    sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$scratch/body"
}

json='Content-Type: application/json'
bytes='Content-Type: application/octet-stream'
while :; do
    call POST /v1/tasks/claim -H "$json" -d '{"wait":"30s"}'
    [ "$status" != 204 ] || continue
    if [ "$status" != 200 ]; then # so it is when we are about to be told to end
        echo "refused: $(cat "$scratch/body")" >&2
        sleep 0.5
        continue
    fi
    task=$(member id)
    steps=$(member payload)
    must POST "/v1/tasks/$task/start"
    step=0
    call GET "/v1/tasks/$task/checkpoint"
    case $status in
    200)
        step=$(cat "$scratch/body")
        case $step in
        '' | *[!0-9]*)
            echo "the checkpoint of $task is no number" >&2
            exit 1
            ;;
        esac
        echo "resume $task behind step $step"
        ;;
    404) ;; # it has none: begin at the beginning
    *) refused ;;
    esac
    while [ "$step" -lt "${steps:-5}" ]; do
        sleep "${STEP_SECONDS:-0.1}"
        step=$((step + 1))
        must PUT "/v1/tasks/$task/checkpoint" -H "$bytes" --data-binary "$step"
        echo "$task step $step"
    done
    must POST "/v1/tasks/$task/complete" -H "$json" -d "{\"result\":\"$step steps\"}"
    echo "completed $task"
done
