# Sourced by scripts/serve and scripts/test: the tree they stand in ($root) and the virtual environment they run in ($venv).
# shellcheck shell=bash
#
# The law: an environment bears its stamp only while it is whole. One process at a time changes it; the stamp goes
# before the change and comes back after it. The stamp is the very text that the environment was made from, so pip runs
# again when that text, the tree's place or the environment's place has changed, and at no other time.

root="$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")"
venv="${RLITE_VENV:-$root/.venv}"
[[ $venv == /* ]] || venv="$PWD/$venv"

say() { echo "${0##*/}: $*" >&2; }

die() {
    say "$@"
    exit 1
}

can_be_root() { [[ $EUID -eq 0 ]] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }

# dpkg refuses to run where PATH has no sbin, and a bare environment has none.
as_root() {
    local path="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
    if [[ $EUID -eq 0 ]]; then env PATH="$path" "$@"; else sudo -n env PATH="$path" "$@"; fi
}

can_install_packages() { command -v apt-get >/dev/null && can_be_root; }

package_lists_are_fresh=
refresh_package_lists() {
    [[ -z $package_lists_are_fresh ]] || return 0
    package_lists_are_fresh=yes
    # A foreign source that cannot be reached must not stop an install from those that can: the install is the proof.
    as_root apt-get update -qq </dev/null >&2 || say "apt-get update failed in part; going on"
}

install_packages() {
    say "apt-get install $*"
    refresh_package_lists
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
        -o DPkg::Lock::Timeout=300 "$@" </dev/null >&2
}

# Prints the first Python that is new enough and can make an environment (Debian's needs python3-venv for that).
find_python() {
    local candidate
    for candidate in python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return 0
        fi
    done
    return 1
}

provide_python() {
    find_python && return 0
    if can_install_packages && install_packages python3 python3-venv; then
        find_python && return 0
    fi
    die "Python 3.11 or newer with its venv module is needed and was not found (on Debian: apt-get install python3-venv)"
}

environment_text() { printf '%s\n' "$root" "$venv" "$(<"$root/setup.cfg")" "$(<"$root/pyproject.toml")"; }

is_whole() { [[ -x $venv/bin/python && -f $venv/.stamp-$1 && $(<"$venv/.stamp-$1") == "$(environment_text)" ]]; }

# Runs a command while no other process runs one so, in this environment.
alone() {
    {
        "$1" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)' && "${@:2}"
    } 9>"$venv/.lock"
}

# $1 is the python to make it with, $2 the kind: base, or dev, which is base and more.
install_environment() {
    is_whole "$2" && return 0
    local python="$1" kind="$2" text target="$root"
    local stamps=("$venv/.stamp-base")
    if [[ $kind == dev ]]; then
        stamps+=("$venv/.stamp-dev")
        target="${root}[dev]"
    fi
    say "installing into $venv (only when new or changed)"
    text="$(environment_text)"
    rm -f "${stamps[@]}"
    if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        # A link to a Python that has gone would be kept by venv, and stay broken.
        rm -f "$venv"/bin/python "$venv"/bin/python3*
        "$python" -m venv "$venv" >&2 || die "cannot make an environment in $venv"
    fi
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --editable "$target" </dev/null >&2 ||
        die "pip could not install $target into $venv"
    local stamp
    for stamp in "${stamps[@]}"; do
        { printf '%s\n' "$text" >"$stamp.new" && mv "$stamp.new" "$stamp"; } || die "cannot write $stamp"
    done
}

# After it $venv is whole, or the script has ended with a message.
make_environment() {
    is_whole "$1" && return 0
    local python
    python="$(provide_python)" || exit 1
    mkdir -p "$venv" || die "cannot make $venv"
    alone "$python" install_environment "$python" "$1" || die "cannot lock $venv"
}
