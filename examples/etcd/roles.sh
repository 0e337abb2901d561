#!/usr/bin/env bash
# roles.sh - says to an etcd who may do what in a namespace of Holdfast.
#
# One role for each kind of program and person, by prefixes of keys; users that are known by the
# common name of their client certificate, and have no password; and authentication turned on. Each
# command may be repeated: it makes what is missing, takes away what is too much, and leaves the
# rest alone.
set -euo pipefail

usage()
{
    cat <<'END'
usage: roles.sh [--namespace NAME] COMMAND

  roles            make the five roles of the namespace, or make them right again
  user NAME ROLE   let whoever shows a certificate with the common name NAME have that role,
                   and no other role of the namespace
  enable           turn authentication on. From then on only root administers etcd, so the
                   certificate that this is called with must be root's
  show             print the roles of the namespace and who has them
  table            print what each role may do, without asking etcd

Roles: controller agentd submitter operator viewer. etcd knows them as holdfast-NAMESPACE-ROLE.

Where etcd is, and who asks, is taken from the environment, as etcdctl does:

  export ETCDCTL_ENDPOINTS=https://10.0.0.1:2379 ETCDCTL_CACERT=ca.crt
  export ETCDCTL_CERT=root.crt ETCDCTL_KEY=root.key
  roles.sh roles
  roles.sh user agentd-node7 agentd
  roles.sh enable

etcd must have been started with --client-cert-auth and --trusted-ca-file: a user without a password
is known by a certificate alone.
END
}

say()
{
    printf '%s\n' "$*"
}

die()
{
    printf 'roles.sh: %s\n' "$*" >&2
    exit 1
}

usage_error()
{
    printf 'roles.sh: %s\n\n' "$*" >&2
    usage >&2
    exit 2
}

export ETCDCTL_API=3
ROLES=(controller agentd submitter operator viewer)
namespace=default

# permissions ROLE: what it may do, one line each: `read` or `write`, and the keys, of which those that
# end in a slash stand for all that begin so. A transaction needs both rights to what it compares and
# changes.
permissions()
{
    local root=/holdfast/$namespace/ data=/holdfast-data/$namespace/ kind
    local -A writes=(
        [controller]="meta hosts/ agents/ health/ tasks/ pending/ checkpoints/ commands/ recoveries/
            controller/ events/"
        [agentd]="hosts/ agents/ commands/ tasks/ pending/ checkpoints/ events/"
        [submitter]="tasks/ pending/"
        [operator]="wanted/ hosts/ agents/ tasks/ pending/ checkpoints/ recoveries/ health/ events/"
        [viewer]=""
    )
    if [[ $1 == submitter ]]; then
        echo "read ${root}tasks/"
    else
        echo "read $root"
    fi
    for kind in ${writes[$1]}; do
        echo "write $root$kind"
    done
    [[ $1 == viewer ]] || printf '%s\n' "read $data" "write $data"
}

# The end of the range of all keys that begin with the text; they end in a slash, behind which comes 0.
end_of()
{
    [[ $1 != */ ]] || printf '%s0' "${1%/}"
}

# wanted_of ROLE, granted_to ROLE: `read|write KEY END` for each right, sorted; END is - where it is one
# key, + where there is none.
wanted_of()
{
    local type key end
    while read -r type key; do
        end=$(end_of "$key")
        echo "$type $key ${end:--}"
    done < <(permissions "$1") | sort
}

granted_to()
{
    etcdctl role get "holdfast-$namespace-$1" | awk '
        /^KV Read:/ { type = "read" }
        /^KV Write:/ { type = "write" }
        /^\t\[/ { sub(/^\t\[/, ""); split($0, part, ", "); sub(/\).*/, "", part[2])
                  print type, part[1], part[2] == "<open ended>" ? "+" : part[2]; next }
        /^\t/ { print type, $1, "-" }' | sort
}

# change COMMAND ROLE [TYPE] KEY END: grant-permission or revoke-permission.
change()
{
    local command=$1 role=holdfast-$namespace-$2 words=("${@:3}")
    local end=${words[-1]}
    unset 'words[-1]'
    case $end in
    -) ;;
    +) words+=(--from-key) ;;
    *) words+=("$end") ;;
    esac
    etcdctl role "$command" "$role" "${words[@]}" >/dev/null
}

# has_line TEXT LINE
has_line()
{
    grep -qxF -e "$2" <<<"$1"
}

# right_to LIST KEY END: read, write or readwrite, or nothing.
right_to()
{
    awk -v key="$2" -v end="$3" '$2 == key && $3 == end { right = right $1 } END { print right }' <<<"$1"
}

make_role()
{
    local role=$1 known wanted granted key end type
    known=$(etcdctl role list)
    if ! has_line "$known" "holdfast-$namespace-$role"; then
        etcdctl role add "holdfast-$namespace-$role" >/dev/null
        say "role holdfast-$namespace-$role: made"
    fi
    wanted=$(wanted_of "$role")
    granted=$(granted_to "$role")
    while read -r key end; do
        type=$(right_to "$wanted" "$key" "$end")
        if [[ -z $type ]]; then
            change revoke-permission "$role" "$key" "$end"
            say "role holdfast-$namespace-$role: may no longer use $key"
        elif [[ $type != "$(right_to "$granted" "$key" "$end")" ]]; then
            change grant-permission "$role" "$type" "$key" "$end" # instead of what it had
            say "role holdfast-$namespace-$role: $type $key"
        fi
    done < <(printf '%s\n%s\n' "$wanted" "$granted" | awk 'NF { print $2, $3 }' | sort -u)
}

cmd_roles()
{
    local role
    for role in "${ROLES[@]}"; do
        make_role "$role"
    done
    say "namespace $namespace: the roles are as they should be"
}

is_role()
{
    [[ " ${ROLES[*]} " == *" $1 "* ]]
}

roles_of()
{
    etcdctl user get "$1" | sed -n 's/^Roles://p' | tr ' ' '\n' | grep . || true
}

# give NAME ROLE: by the name that etcd has for the role.
give()
{
    local name=$1 role=$2 known has
    known=$(etcdctl user list)
    if ! has_line "$known" "$name"; then
        etcdctl user add "$name" --no-password >/dev/null
        say "user $name: made"
    fi
    known=$(roles_of "$name")
    if ! has_line "$known" "$role"; then
        etcdctl user grant-role "$name" "$role" >/dev/null
        say "user $name: is $role"
    fi
    # Those of a namespace whose name begins with this one are none of ours.
    while read -r has; do
        if [[ $has != "$role" && $has == "holdfast-$namespace-"* ]] &&
            is_role "${has#"holdfast-$namespace-"}"; then
            etcdctl user revoke-role "$name" "$has" >/dev/null
            say "user $name: is no longer $has"
        fi
    done <<<"$known"
}

cmd_user()
{
    is_role "$2" || usage_error "there is no role $2"
    [[ $1 =~ ^[A-Za-z0-9][A-Za-z0-9._@-]*$ && $1 != root ]] || usage_error "$1 is not a name"
    give "$1" "holdfast-$namespace-$2"
}

# Whoever turns it on without being root has locked everybody out.
cmd_enable()
{
    local subject known
    [[ -n ${ETCDCTL_CERT:-} ]] || die "ETCDCTL_CERT is not set: call this with root's certificate"
    subject=$(openssl x509 -in "$ETCDCTL_CERT" -noout -subject -nameopt multiline)
    grep -qE '^ *commonName *= root$' <<<"$subject" ||
        die "$ETCDCTL_CERT is not root's: its common name must be root, who alone could turn this off"
    known=$(etcdctl role list)
    has_line "$known" root || etcdctl role add root >/dev/null
    give root root
    etcdctl auth enable >/dev/null
    say "authentication is on"
}

cmd_show()
{
    local role users user has
    users=$(etcdctl user list)
    for role in "${ROLES[@]}"; do
        etcdctl role get "holdfast-$namespace-$role"
        for user in $users; do
            has=$(roles_of "$user")
            ! has_line "$has" "holdfast-$namespace-$role" || say "held by $user"
        done
    done
}

cmd_table()
{
    local role
    for role in "${ROLES[@]}"; do
        permissions "$role" | sed "s/^/$role /"
    done
}

while [[ ${1:-} == -* ]]; do
    case $1 in
    --namespace)
        [[ ${2:-} =~ ^[a-z0-9][a-z0-9._-]{0,252}$ ]] || usage_error "--namespace needs a name"
        namespace=$2
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
case ${1:-} in
roles | enable | show | table) (($# == 1)) || usage_error "$1 takes no argument" ;;
user) (($# == 3)) || usage_error "user needs a name and a role" ;;
'') usage_error "a command is missing" ;;
*) usage_error "$1 is not a command" ;;
esac
if [[ $1 != table ]]; then
    command -v etcdctl >/dev/null || die "etcdctl is not installed"
    [[ -n ${ETCDCTL_ENDPOINTS:-} ]] || die "ETCDCTL_ENDPOINTS is not set: say where etcd is"
fi
"cmd_$1" "${@:2}"
