#!/usr/bin/env bash
# keys.sh SOURCE_DIR - fails when a file beside lib/schema/keys knows how a key in etcd is written.
#
# The keeper is left out: it has files of similar names, and never hears of etcd.
set -euo pipefail

KINDS='hosts|agents|wanted|health|tasks|pending|checkpoints|commands|recoveries|controller|events'
cd "$1"
mapfile -t dirs < <(ls -d lib agentd controller cli 2>/dev/null)
stray=$(grep -rnE --include='*.[ch]' --exclude='keys.[ch]' --exclude-dir=keeper \
    "\"(/holdfast(-data)?[/\"]|($KINDS)/(%|\"))" "${dirs[@]}" |
    grep -vE '^[^:]+:[0-9]+: */?\*' || true) # comments may tell of keys
if [[ -n $stray ]]; then
    printf 'these know the text of a key:\n%s\n' "$stray"
    exit 1
fi
echo "only lib/schema/keys knows the text of a key"
