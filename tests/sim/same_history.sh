#!/usr/bin/env bash
# same_history.sh SIMULATOR COUNT - a seed is a history: whoever lives through it again, in another process
# at other addresses, sees the same to the byte. So many of them, some with an etcd that is restored.
set -euo pipefail

history()
{
    { "$simulator" --seeds 1 --trace --values "$@" || true; } | sha256sum # failures are sim_seeds'
}

simulator=$1 count=$2
empty=$(sha256sum </dev/null)
histories=
for ((i = 1; i <= count; i++)); do
    seed=(--from $((i % 2 ? i : 100000 + i)))
    ((i % 5)) || seed+=(--profile restores)
    once=$(history "${seed[@]}")
    if [[ $once != "$(history "${seed[@]}")" || $once == "$empty" ]]; then
        echo "${seed[*]} has two histories, or none"
        exit 1
    fi
    histories+=$once$'\n'
done
if [[ $(sort <<<"$histories" | uniq -d) ]]; then
    echo "two seeds have one history"
    exit 1
fi
echo "$(sort -u <<<"$histories" | grep -c .) histories, each twice the same"
