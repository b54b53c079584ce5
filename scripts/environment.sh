# Sourced by scripts/serve and scripts/test: the tree they stand in ($root) and the virtual environment they run in ($venv).
# In $venv the package is the tree itself, as it stands there. A compiled one has an environment of its own below $venv:
# in the tree it would hide every later change of its sources, and in $venv the tests would no longer test the sources.
# shellcheck shell=bash
#
# The law: an environment bears its stamp only while it is whole. One process at a time changes it; the stamp goes
# before the change and comes back after it. The stamp is the very text that the environment was made from, so pip runs
# again when that text, the tree's place or the environment's place has changed, and at no other time.

# In an empty environment the shell has a PATH of its own, and Python finds itself by the one that it is given.
export PATH

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

# The extras that the tests are run with: all but the frameworks, which have environments of their own (frameworks.sh).
tested_extras=cli,cold,delta,http,msgpack,spark

# What developing needs, a requirement a line: the dependency group `dev` of pyproject.toml, which older pips can't read.
development_requirements() {
    "$1" -c 'import sys, tomllib; print(*tomllib.load(open(sys.argv[1], "rb"))["dependency-groups"]["dev"], sep="\n")' \
        "$root/pyproject.toml"
}

# $1 is the python to make it with, $2 the kind: base, or dev, which is base and more.
install_environment() {
    is_whole "$2" && return 0
    local python="$1" kind="$2" text target="$root" requirement
    local stamps=("$venv/.stamp-base") development=()
    if [[ $kind == dev ]]; then
        stamps+=("$venv/.stamp-dev")
        target="${root}[$tested_extras]"
        while read -r requirement; do
            development+=("$requirement")
        done < <(development_requirements "$python")
        [[ ${#development[@]} -gt 0 ]] || die "cannot read the dependency group dev of $root/pyproject.toml"
    fi
    say "installing into $venv (only when new or changed)"
    text="$(environment_text)"
    rm -f "${stamps[@]}"
    if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        # A link to a Python that has gone would be kept by venv, and stay broken.
        rm -f "$venv"/bin/python "$venv"/bin/python3*
        "$python" -m venv "$venv" >&2 || die "cannot make an environment in $venv"
    fi
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --editable "$target" \
        "${development[@]}" </dev/null >&2 || die "pip could not install $target into $venv"
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

# What a server that is started with these words needs beside the base, a line each: what its file says counts, too.
needed_extras() {
    local said
    said="$(printf '%s\n' "$@")"
    if [[ $# -gt 0 && -f $1 ]]; then
        said+=$'\n'"$(sed 's/^[[:space:]]*/--/' "$1")"
    fi
    echo cli
    ! grep -qiE -e '^--http-(tls-)?port' <<<"$said" || echo http
    if grep -qi -e '^--cold-store' <<<"$said" || tr '\n' ' ' <<<"$said" | grep -qiE -e '--backup-to +[a-z0-9]+://'; then
        echo cold
    fi
}

# The requirements of extras, as setup.cfg has them; $1 is a python.
requirements_of() {
    "$1" - "$root/setup.cfg" "${@:2}" <<'EOF'
import configparser, sys
config = configparser.ConfigParser(interpolation=None)
config.read(sys.argv[1])
extras = config["options.extras_require"]
print(*[line for extra in sys.argv[2:] for line in extras[extra].split("\n") if line], sep="\n")
EOF
}

has_extra() { [[ -f $1/.extra-$2 && $(<"$1/.extra-$2") == "$(<"$root/setup.cfg")" ]]; }

# $1 is an environment that is whole, the others are extras.
install_extras() {
    local extra missing=() requirements=() requirement
    for extra in "${@:2}"; do
        has_extra "$1" "$extra" || missing+=("$extra")
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0
    say "installing what ${missing[*]} needs into $1 (only when new or changed)"
    while read -r requirement; do
        requirements+=("$requirement")
    done < <(requirements_of "$1/bin/python" "${missing[@]}")
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "${requirements[@]}" </dev/null >&2 ||
        return 1
    for extra in "${missing[@]}"; do
        cp "$root/setup.cfg" "$1/.extra-$extra.new" && mv "$1/.extra-$extra.new" "$1/.extra-$extra" || return 1
    done
}

# Goes on without: the server names what it cannot do without.
make_extras() {
    local extra
    for extra in "${@:2}"; do
        if ! has_extra "$1" "$extra"; then
            alone "$1/bin/python" install_extras "$@" || say "pip could not install what ${*:2} needs"
            return 0
        fi
    done
}

# All that goes into the package, with sums in which any change shows.
sources_text() {
    (cd "$root" && find -L setup.py setup.cfg pyproject.toml pyspark_rlite.py rlite_pubsub \
        -name __pycache__ -prune -o -type f -exec cksum {} + | LC_ALL=C sort)
}

# Why nothing can be compiled here, or nothing. setup.py obeys the same.
compiling_obstacle() { "$1" "$root/setup.py" obstacle; }

# What keeps it from being compiled is part of it: once that has gone, it is made anew.
compiled_text() {
    printf '%s\n' "$1" "$("$1/bin/python" -V 2>&1)" "$(compiling_obstacle "$1/bin/python")" "$(sources_text)"
}

is_compiled_whole() { [[ -x $1/bin/python && -f $1/.stamp && $(<"$1/.stamp") == "$(compiled_text "$1")" ]]; }

# $1 is the python to make it with, $2 the environment to install a compiled package into, with what it needs.
install_compiled() {
    is_compiled_whole "$2" && return 0
    say "compiling into $2 (only when new or changed; takes a minute or two)"
    local text
    rm -f "$2/.stamp"
    if ! "$2/bin/python" -m pip --version >/dev/null 2>&1; then
        rm -rf "$2"
        "$1" -m venv "$2" >&2 || return 1
    fi
    text="$(compiled_text "$2")"
    "$2/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "$root" </dev/null >&2 || return 1
    printf '%s\n' "$text" >"$2/.stamp.new" && mv "$2/.stamp.new" "$2/.stamp"
}

# The same for the tests: $1 is an environment that has the compiled package, and all else from $venv. What keeps anything from
# being compiled is allowed; that compiling fails is not.
install_tested() {
    is_compiled_whole "$1" && return 0
    local text pip="$venv/bin/python -m pip --disable-pip-version-check --no-input"
    rm -rf "$1"
    "$venv/bin/python" -m venv --without-pip "$1" || return 1
    text="$(compiled_text "$1")"
    $pip wheel --verbose --no-deps --wheel-dir "$1/wheel" "$root" </dev/null >"$1/log" 2>&1 || { cat "$1/log"; return 1; }
    $pip --python "$1/bin/python" install --quiet --no-deps "$1"/wheel/*.whl </dev/null || return 1
    "$1/bin/python" - "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" <<'EOF' || return 1
import pathlib, sys, sysconfig
pathlib.Path(sysconfig.get_path("purelib"), "shared.pth").write_text(sys.argv[1] + "\n")
EOF
    if [[ -z $(compiling_obstacle "$1/bin/python") ]] && ! has_compiled "$1"; then
        grep -E ' error: |pure Python, because' "$1/log"
        return 1
    fi
    printf '%s\n' "$text" >"$1/.stamp"
}

# Whether the package in the environment $1 is compiled. Looked at from a folder where no sources are in the way.
has_compiled() { (cd "$1" && bin/python -c 'import sys, rlite_pubsub.build as b; sys.exit(not b.is_compiled())'); }

make_tested() { alone "$venv/bin/python" install_tested "$1"; }

# After it $1 holds a package that is compiled and up to date; fails, with one line that says why, where that cannot be.
make_compiled() {
    local python why
    is_compiled_whole "$1" && has_compiled "$1" && return 0
    python="$(provide_python)" || exit 1
    why="$(compiling_obstacle "$python")"
    if [[ -z $why ]]; then
        mkdir -p "$venv" || die "cannot make $venv"
        alone "$python" install_compiled "$python" "$1" && has_compiled "$1" && return 0
        why="compiling failed (more by: pip wheel -v --no-deps $root)"
    fi
    say "pure Python, because $why"
    return 1
}
