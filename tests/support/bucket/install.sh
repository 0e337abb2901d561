#!/usr/bin/env bash
# install.sh SOURCE_DIR WORK_DIR - what package-lock.json names, from npm, into WORK_DIR. Tests that need it
# run at the same time: one of them fetches it, and later runs need no network.
set -euo pipefail

source_dir=$1
work=$2
mkdir -p "$work"
exec 9>"$work/lock"
flock 9
cp "$source_dir"/{package.json,package-lock.json} "$work"
cd "$work"
cmp -s package-lock.json node_modules/.made-from && exit 0
if ! npm ci --no-audit --no-fund >npm.log 2>&1; then
    tail -n 5 npm.log
    exit 1
fi
cp package-lock.json node_modules/.made-from
