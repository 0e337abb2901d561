#!/bin/busybox sh
# shellcheck shell=dash
# init.sh - the first process of a guest: makes it a machine whose cgroups are all of version 2, runs
# what it was made for, and switches it off. The last line that it prints has the status.
PATH=/bin:/usr/bin
export PATH
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
chmod 1777 /tmp # which is in memory as all of it, and may have what is run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo '+memory +pids' >/sys/fs/cgroup/cgroup.subtree_control
ifconfig lo 127.0.0.1 up
echo 4 >/proc/sys/kernel/printk
"$(cat /program)"
echo "guest: status $?"
poweroff -f
