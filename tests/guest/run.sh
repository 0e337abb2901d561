#!/usr/bin/env bash
# run.sh KERNEL PROGRAM FILE…: boots that kernel in a machine of its own, with nothing but PROGRAM, what
# it is linked with and the FILEs, each under the name that it has here; ends with the program's status,
# or with 77 where no such machine can be had.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kernel=$1 program=$2
shift 2

skip()
{
    echo "skipped: $1"
    exit 77
}
[[ -e $kernel ]] || skip "no kernel at $kernel: ./dev test --all fetches one"
command -v qemu-system-x86_64 >/dev/null || skip "qemu-system-x86_64 is not installed"
[[ -x /bin/busybox ]] || skip "busybox is not installed"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
root=$scratch/root

# give FILE [NAME]: with the libraries that it needs.
give()
{
    local library
    install -D "$1" "$root/${2:-$1}"
    while read -r library; do
        [[ -e $root/$library ]] || install -D "$library" "$root/$library"
    done < <(ldd "$1" 2>/dev/null | grep -o '/[^ ]*' || true)
}

mkdir -p "$root"/{proc,sys,dev,tmp,etc,bin,usr/bin}
give /bin/busybox
for file in "$program" "$@" /usr/bin/tail /usr/bin/sleep; do
    give "$file"
done
give /bin/dash /usr/bin/sh # busybox makes links in /bin for what is not there
give /bin/dash /bin/sh
install "$here/init.sh" "$root/init"
printf '%s\n' "$program" >"$root/program"
printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >"$root/etc/passwd"
(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$scratch/initrd"

# Emulated: a machine within a machine is not to be had everywhere, and this takes seconds.
timeout 300 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -m 1024 -smp 2 -nodefaults -no-reboot \
    -display none -serial stdio -kernel "$kernel" -initrd "$scratch/initrd" \
    -append 'console=ttyS0 quiet panic=-1' </dev/null | tr -d '\r' | tee "$scratch/said"
status=$(sed -n 's/^guest: status //p' "$scratch/said" | tail -n 1)
exit "${status:-1}"
