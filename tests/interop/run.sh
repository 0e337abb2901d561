#!/usr/bin/env bash
# run.sh SOURCE_DIR WORK_DIR DESCRIPTORS PEER - compares our JSON with an implementation from npm,
# which it installs into WORK_DIR.
set -euo pipefail

source_dir=$1
work=$2
descriptors=$3
peer=$4

for tool in node npm; do
    if ! command -v "$tool" >/dev/null; then
        echo "skipped: $tool is not installed"
        exit 77
    fi
done

mkdir -p "$work"
cp "$source_dir"/{package.json,package-lock.json,json.mjs,json_texts.txt} "$work"
cd "$work"
# The stamp tells which lock file node_modules was made from: later runs need no network.
if ! cmp -s package-lock.json node_modules/.made-from; then
    if ! npm ci --no-audit --no-fund >npm.log 2>&1; then
        echo "skipped: npm could not fetch what package-lock.json names"
        tail -n 5 npm.log
        exit 77
    fi
    cp package-lock.json node_modules/.made-from
fi
node json.mjs "$descriptors" "$peer" "${HOLDFAST_SEED:-1}"
