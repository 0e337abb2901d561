#!/usr/bin/env bash
# layers.sh SOURCE_DIR PROTO_DIR - fails when a file sees a header that its layer must not see.
#
# The compiler says what a file includes, directly or through others, so a forbidden header cannot
# hide behind a permitted one. PROTO_DIR is where the C of proto/ was generated.
set -euo pipefail

source_dir=$(realpath "$1")
proto_dir=$(realpath "$2")
cc=${CC:-cc}

# Which of our own layers a layer may include, besides itself. `program` is everything with a main.
declare -A MAY_INCLUDE=(
    [base]=""
    [schema]="base records"
    [core]="base schema records"
    [etcd]="base rpc"
    [io]="base schema core etcd records health"
    [client]="base schema"
    [program]="base schema core etcd io client records health"
)

# The decisions are pure: no loop, no network, no storage, no clock.
FORBIDDEN_IN_CORE='/include/(.*-linux-gnu/)?(uv\.h|uv/|grpc/|curl/|microhttpd\.h|sqlite3\.h|(sys/)?time\.h)'

read -ra flags < <(pkg-config --cflags libprotobuf-c grpc libuv jansson yaml-0.1 libcrypto libmicrohttpd libcurl)
flags+=(-std=gnu17 -D_GNU_SOURCE -I "$source_dir/lib" -I "$source_dir" -I "$proto_dir")

# Sets `layer` to that of a path; no subshell, because it is asked ten thousand times.
layer_of()
{
    case $1 in
    "$source_dir"/lib/*/*)
        layer=${1#"$source_dir"/lib/}
        layer=${layer%%/*}
        ;;
    "$proto_dir"/etcd/*) layer=rpc ;;
    "$proto_dir"/holdfast/* | "$proto_dir"/google/*) layer=records ;;
    "$proto_dir"/grpc/*) layer=health ;;
    "$source_dir"/tests/*) layer=tests ;;
    "$source_dir"/*) layer=program ;;
    *) layer=foreign ;;
    esac
}

# Every file that the compiler reads for this one, as absolute paths; those of the system only where
# some of them are forbidden.
files_seen_by()
{
    "$cc" "${flags[@]}" "$2" -x c "$1" |
        awk '{ for (i = 1; i <= NF; i++) if ($i != "\\" && $i !~ /:$/) print $i }' | xargs realpath
}

check_file()
{
    local file=$1 layer own which=-MM seen header bad=0
    layer_of "$file"
    own=$layer
    if [[ ! -v MAY_INCLUDE[$own] ]]; then
        echo "${file#"$source_dir"/}: there is no layer called '$own'"
        return 1
    fi
    [[ $own != core ]] || which=-M
    seen=$(files_seen_by "$file" "$which") || return 1
    for header in $seen; do
        layer_of "$header"
        if [[ $layer == foreign ]]; then
            [[ $own == core && $header =~ $FORBIDDEN_IN_CORE ]] || continue
        elif [[ $layer == "$own" || " ${MAY_INCLUDE[$own]} " == *" $layer "* ]]; then
            continue
        fi
        echo "${file#"$source_dir"/}: $own must not see ${header#"$source_dir"/}"
        bad=1
    done
    return "$bad"
}

cd "$source_dir"
mapfile -t dirs < <(ls -d lib agentd controller cli 2>/dev/null)
status=0 count=0
while read -r file; do
    check_file "$source_dir/$file" || status=1
    count=$((count + 1))
done < <(find "${dirs[@]}" -name '*.[ch]' | sort)
echo "$count files"
((count > 0)) || status=1
exit "$status"
