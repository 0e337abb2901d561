#!/usr/bin/env bash
# run.sh SOURCE_DIR WORK_DIR DESCRIPTORS PEER - compares our JSON with an implementation from npm,
# which it installs into WORK_DIR. Without it nothing is compared, and that is a failure: only
# HOLDFAST_OFFLINE=1 says that somebody knows and wants the rest all the same.
set -euo pipefail

source_dir=$1
work=$2
descriptors=$3
peer=$4

# give_up WHY: nothing can be compared.
give_up()
{
    if [[ ${HOLDFAST_OFFLINE:-0} == 1 ]]; then
        echo "skipped: $1"
        exit 77
    fi
    echo "$1; our JSON was compared with nothing. HOLDFAST_OFFLINE=1 skips this test instead."
    exit 1
}

for tool in node npm; do
    command -v "$tool" >/dev/null || give_up "$tool is not installed"
done

mkdir -p "$work"
cp "$source_dir"/{package.json,package-lock.json,json.mjs,json_texts.txt} "$work"
cd "$work"
# The stamp tells which lock file node_modules was made from: later runs need no network.
if ! cmp -s package-lock.json node_modules/.made-from; then
    if ! npm ci --no-audit --no-fund >npm.log 2>&1; then
        tail -n 5 npm.log
        give_up "npm could not fetch what package-lock.json names"
    fi
    cp package-lock.json node_modules/.made-from
fi
node json.mjs "$descriptors" "$peer" "${HOLDFAST_SEED:-1}"
