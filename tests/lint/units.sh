#!/usr/bin/env bash
# units.sh SOURCE_DIR BIN_DIR WORK_DIR - the units of examples/systemd, as systemd reads them, with the
# programs of BIN_DIR in the place of those that would be installed.
set -euo pipefail

source_dir=$1
bin_dir=$2
work=$3/units
rm -rf "$work"
mkdir -p "$work"
for unit in "$source_dir"/examples/systemd/*.service; do
    sed "s|/usr/local/bin/|$bin_dir/|" "$unit" >"$work/${unit##*/}"
done
cd "$work"

# verify UNIT: it may complain and succeed all the same.
verify()
{
    local said
    said=$(systemd-analyze verify --man=no "./$1" 2>&1) && [[ -z $said ]] && return
    printf '%s\n' "$said"
    return 1
}

for unit in *.service; do
    verify "$unit"
    systemd-analyze security --offline=true --no-pager "./$unit" | tail -n 1
done
# The controller needs next to nothing, and has no more; 10 is exposed, 0 is not.
systemd-analyze security --offline=true --no-pager --threshold=20 ./holdfast-controller.service >/dev/null

# What a manager must not do to agentd and its agents.
demand()
{
    grep -qx "$2" "$1" && return
    echo "$1 does not say $2"
    return 1
}
for unit in *.service; do
    demand "$unit" Type=notify
    demand "$unit" NotifyAccess=main # agents, and alert programs, do not speak for it
    demand "$unit" 'WatchdogSec=.*'
    demand "$unit" KillMode=mixed
done
demand holdfast-agentd.service OOMPolicy=continue
demand holdfast-agentd.service 'Delegate=.*'
if grep -E '^(ProtectControlGroups|ProtectKernelLogs|ProtectClock|PrivateDevices|RestrictRealtime)=' \
    holdfast-agentd.service; then
    echo "that keeps agentd from its work"
    exit 1
fi

# A unit with a mistake is found, or all this says nothing.
for mistake in 'Nonsense=1' 'WatchdogSec=soon' 'ExecStartPre=/nonexistent/program'; do
    cp holdfast-agentd.service mistaken.service
    printf '[Service]\n%s\n' "$mistake" >>mistaken.service
    if verify mistaken.service >/dev/null; then
        echo "nobody noticed: $mistake"
        exit 1
    fi
done
