#!/usr/bin/env bash
# certificates.sh - a certificate authority to try Holdfast with: for etcd's members and their clients.
#
# It keeps its key in a plain file. Where certificates matter, let an authority make them that you
# trust; what they must say is the same.
set -euo pipefail

usage()
{
    cat <<'END'
usage: certificates.sh [--days N] DIRECTORY COMMAND

  authority           make DIRECTORY/ca.crt and ca.key, unless they are there
  server NAME SAN...  make NAME.crt and NAME.key for a member of etcd that is reached by these names
                      and addresses: `server m1 IP:10.0.0.1 DNS:etcd-1.example`
  client NAME         make NAME.crt and NAME.key for a program or person, whom etcd knows by that
                      name (roles.sh user NAME ROLE)

A server or client that has a pair already gets another one in its place, first the key, then the
certificate, each at once. Holdfast's programs look for that every 30 s and use the new pair as soon as
both are there, without losing a connection that they have. Certificates are valid for N days (30), an
authority for ten years.
END
}

die()
{
    printf 'certificates.sh: %s\n' "$*" >&2
    exit 1
}

usage_error()
{
    printf 'certificates.sh: %s\n\n' "$*" >&2
    usage >&2
    exit 2
}

days=30
umask 077

new_key()
{
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"
}

cmd_authority()
{
    if [[ -e $dir/ca.crt && -e $dir/ca.key ]]; then
        echo "$dir/ca.crt: is there already"
        return
    fi
    mkdir -p "$dir"
    new_key "$dir/ca.key"
    openssl req -x509 -new -key "$dir/ca.key" -sha256 -days 3650 -subj "/CN=Holdfast test authority" \
        -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign" \
        -out "$dir/ca.crt"
    chmod 644 "$dir/ca.crt"
    echo "$dir/ca.crt: made"
}

# issue NAME EXTENSION…: both files are written beside the old ones and take their place.
issue()
{
    local name=$1 base=$dir/$1 said
    shift
    [[ $name =~ ^[A-Za-z0-9][A-Za-z0-9._@-]*$ && $name != ca ]] || usage_error "$name is not a name"
    [[ -e $dir/ca.crt && -e $dir/ca.key ]] || die "$dir has no authority: make one first"
    new_key "$base.key.new"
    said=$(openssl req -new -key "$base.key.new" -subj "/CN=$name" |
        openssl x509 -req -sha256 -days "$days" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" \
            -set_serial "0x$(openssl rand -hex 16)" -extfile <(printf '%s\n' "$@") \
            -out "$base.crt.new" 2>&1) || die "no certificate for $name: $said"
    chmod 644 "$base.crt.new"
    mv "$base.key.new" "$base.key"
    mv "$base.crt.new" "$base.crt"
    echo "$base.crt: valid for $days days"
}

# A member also dials itself, for its HTTP gateway.
cmd_server()
{
    local names
    names=$(IFS=, && printf '%s' "${*:2}")
    issue "$1" "subjectAltName=$names" "extendedKeyUsage=serverAuth,clientAuth"
}

cmd_client()
{
    issue "$1" "extendedKeyUsage=clientAuth"
}

while [[ ${1:-} == -* ]]; do
    case $1 in
    --days)
        [[ ${2:-} =~ ^[1-9][0-9]{0,4}$ ]] || usage_error "--days needs a number"
        days=$2
        shift
        ;;
    -h | --help)
        usage
        exit
        ;;
    *) usage_error "$1 is not an option" ;;
    esac
    shift
done
(($# >= 2)) || usage_error "a directory and a command are missing"
command -v openssl >/dev/null || die "openssl is not installed"
dir=$1
case $2 in
authority) (($# == 2)) || usage_error "authority takes no argument" ;;
server) (($# >= 4)) || usage_error "server needs a name, and what it is reached by" ;;
client) (($# == 3)) || usage_error "client needs a name" ;;
*) usage_error "$2 is not a command" ;;
esac
"cmd_$2" "${@:3}"
