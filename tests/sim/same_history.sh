#!/usr/bin/env bash
# same_history.sh SIMULATOR - a seed is a history: whoever lives through it again, in another process
# at other addresses, sees the same to the byte.
set -euo pipefail

history()
{
    "$simulator" --seeds 1 --from "$1" --trace --values || true # failures are sim_seeds'
}

simulator=$1
histories=
for seed in 1 42 1234 100007; do
    once=$(history "$seed")
    if [[ $once != "$(history "$seed")" ]]; then
        echo "seed $seed has two histories"
        exit 1
    fi
    lines=$(wc -l <<<"$once")
    echo "seed $seed: $lines lines, twice the same"
    ((lines > 100)) || exit 1
    histories+=$(sha256sum <<<"$once")$'\n'
done
if [[ $(sort <<<"$histories" | uniq -d) ]]; then
    echo "two seeds have one history"
    exit 1
fi
