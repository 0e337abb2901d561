#!/usr/bin/env bash
# install.sh SOURCE_DIR BUILD_DIR WORK_DIR - installs, and uses what was installed as a stranger would.
set -euo pipefail

source_dir=$1
build_dir=$2
work=$3/install
cc=${CC:-cc}
rm -rf "$work"
mkdir -p "$work"
cmake --install "$build_dir" --prefix "$work/usr" >"$work/install.log"
cd "$work"

PKG_CONFIG_PATH=$(dirname "$(find usr -name holdfast-etcd.pc)")
export PKG_CONFIG_PATH
read -ra cflags < <(pkg-config --cflags holdfast-etcd)
read -ra libs < <(pkg-config --libs holdfast-etcd)

# No installed header may need one that stayed at home.
while read -r header; do
    echo "#include \"${header#usr/include/holdfast/}\""
done < <(find usr/include -name '*.h' | sort) >all.h
while read -r line; do
    echo "$line" | "$cc" -std=gnu17 -Wall -Werror -fsyntax-only "${cflags[@]}" -x c -
done <all.h

cat >main.c <<'END'
#include "all.h"

#include <stdio.h>

int main(void)
{
    struct hf_etcd *etcd = NULL;
    struct hf_error err = { 0 };
    int rc = hf_etcd_new(uv_default_loop(), &(struct hf_etcd_config){ 0 }, &etcd, &err);

    printf("%s: %s\n", hf_err_name(rc), err.text);
    return rc == HF_EINVAL && uv_loop_close(uv_default_loop()) == 0 ? 0 : 1;
}
END
"$cc" -std=gnu17 -Wall -Wextra -Werror -I . "${cflags[@]}" main.c "${libs[@]}" -o main
libdir=$(dirname "$(find usr -name libholdfast-etcd.so)")
LD_LIBRARY_PATH=$libdir ./main
"$cc" -Wall -Werror "${cflags[@]}" "$source_dir/examples/c/presence.c" "${libs[@]}" -o example

# The client of agents: libc is all that it needs, and what it offers is what its header says.
read -ra cflags < <(pkg-config --cflags holdfast)
read -ra libs < <(pkg-config --libs holdfast)
cat >agent.c <<'END'
#include <holdfast.h>

#include <stdio.h>

int main(void)
{
    struct hf_client *client = NULL;
    struct hf_error err = { "" };
    int rc = hf_client_new(NULL, &client, &err);

    printf("%s: %s\n", hf_err_name(rc), err.text);
    hf_client_free(client);
    return rc == HF_ENOENT ? 0 : 1;
}
END
"$cc" -std=c11 -Wall -Wextra -Werror -pedantic "${cflags[@]}" agent.c "${libs[@]}" -o agent
env -u HOLDFAST_SOCKET LD_LIBRARY_PATH="$libdir" ./agent
if command -v c++ >/dev/null; then
    c++ -x c++ -Wall -Wextra -Werror "${cflags[@]}" agent.c -x none "${libs[@]}" -o agent
    env -u HOLDFAST_SOCKET LD_LIBRARY_PATH="$libdir" ./agent
fi
read -ra both < <(pkg-config --cflags --libs holdfast jansson)
"$cc" -Wall -Werror "$source_dir/examples/c/worker.c" "${both[@]}" -o worker
needed=$(readelf -d "$libdir/libholdfast.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
if grep -vE '^(libc|ld-linux.*|lib(a|ub|t)san)\.so' <<<"$needed"; then
    echo "libholdfast needs more than libc" >&2
    exit 1
fi
diff <(sed -nE 's/^[a-z].*[ *](hf_client_[a-z_]+)\(.*/\1/p' usr/include/holdfast/holdfast.h | sort) \
    <(nm --dynamic --defined-only --format=posix "$libdir/libholdfast.so" |
        sed -nE 's/^(hf_client_[a-z_]+) .*/\1/p' | sort)
test -L "$libdir/libholdfast.so.0"
test -s usr/share/holdfast/python/holdfast.py
test -s usr/share/holdfast/node/holdfast.mjs

for program in bin/agentd bin/holdfast bin/holdfast-controller libexec/holdfast/agentd-link \
    libexec/holdfast/agentd-s3 libexec/holdfast/demo-agent; do
    test -x "usr/$program"
done
# Nobody who sets a variable may end or stop what was installed.
if grep -rlaE 'HOLDFAST_(CRASH|STOP)_AT' usr/bin usr/libexec usr/lib*; then
    echo "what was installed has crash points" >&2
    exit 1
fi
test -L "$libdir/libholdfast-etcd.so.0"
test -s usr/share/doc/holdfast/LICENSE
for file in systemd/holdfast-agentd.service systemd/holdfast-controller.service etcd/certificates.sh \
    etcd/roles.sh; do
    cmp "$source_dir/examples/$file" "usr/share/doc/holdfast/examples/$file"
done
test -x usr/share/doc/holdfast/examples/etcd/roles.sh
echo "$(wc -l <all.h) headers installed; a program compiles, links and runs"
