#!/bin/sh
# later_etcd.sh DIRECTORY PROGRAM: runs a test with the etcd of that directory; ends with 77 where none is
# there that runs on this machine.
set -eu
if ! "$1/etcd" --version; then
    echo "skipped: no etcd of a later Debian at $1: ./dev test --all fetches one"
    exit 77
fi
PATH=$1:$PATH exec "$2"
