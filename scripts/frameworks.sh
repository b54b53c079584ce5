# Sourced by scripts/test: the environments of compat_tests/frameworks and tests/integrations, each framework at its
# newest version.
# shellcheck shell=bash
#
# The promise: what cannot be installed is named in $frameworks/missing, a line each, and keeps nothing else from running.

frameworks="$venv/frameworks"
framework_tests="$root/compat_tests/frameworks"

frameworks_text() { printf '%s\n' "$(environment_text)"; cat "$framework_tests"/*.txt "$framework_tests/package.json"; }

pip_into() {
    "$venv/bin/python" -m pip --disable-pip-version-check --no-input --python "$1/bin/python" install --quiet "${@:2}" \
        </dev/null
}

# $1 is an environment, $2 the list of what belongs into it. All at once; if that fails, one after the other.
install_list() {
    local line
    [[ -x $1/bin/python ]] || "$venv/bin/python" -m venv --without-pip "$1" || return 1
    pip_into "$1" --requirement "$2" && return 0
    while read -r line; do
        [[ -z $line || $line == \#* ]] || pip_into "$1" "$line" || echo "$line" >>"$frameworks/missing"
    done <"$2"
}

install_frameworks() {
    local wheel=("$compiled"/wheel/*.whl)
    if [[ ! -f $frameworks/.stamp || $(<"$frameworks/.stamp") != "$(frameworks_text)" ]]; then
        mkdir -p "$frameworks" && rm -f "$frameworks"/{.stamp,missing} && touch "$frameworks/missing" || return 1
        install_list "$frameworks/python" "$framework_tests/requirements.txt" &&
            pip_into "$frameworks/python" "${wheel[0]}[cli,http]" || return 1
        install_list "$frameworks/old-redis" "$framework_tests/requirements-old-redis.txt" || return 1
        if [[ -n $RLITE_TEST_NODE ]]; then
            local node npm
            mkdir -p "$frameworks/node" && cp "$framework_tests/package.json" "$frameworks/node" && find_node &&
                (cd "$frameworks/node" && "${npm[@]}" install --no-package-lock --no-audit --no-fund --loglevel=error </dev/null) ||
                echo "what runs on Node" >>"$frameworks/missing"
        fi
        frameworks_text >"$frameworks/.stamp"
    fi
    pip_into "$frameworks/python" --no-deps --force-reinstall "${wheel[0]}"
}

# On the wheel, as everything else: in $place. Where workers and servers are killed, most of the time is spent waiting for what was
# theirs to be given to others: beside the rest it costs next to nothing.
test_frameworks() {
    alone "$venv/bin/python" install_frameworks || return 1
    cd "$place" || return 1
    local killed=(compat_tests/frameworks/test_killed_*.py) log beside status=0
    export NODE_PATH="$frameworks/node/node_modules" RLITE_TEST_OLD_REDIS="$frameworks/old-redis/bin/python"
    log="$(mktemp)"
    test_twice 1 "$frameworks/python/bin/python" --durations=10 "${killed[@]}" >"$log" 2>&1 &
    beside=$!
    test_twice 1 "$frameworks/python/bin/python" --durations=10 tests/test_imports.py tests/integrations compat_tests/frameworks \
        "${killed[@]/#/--ignore=}" || status=$?
    # The blocks of pages that need a framework: elsewhere they are skipped.
    test_twice 1 "$frameworks/python/bin/python" tests/docs/test_blocks.py -k "README or frameworks or celery" || status=$?
    wait "$beside" || status=$?
    cat "$log"
    rm -f "$log"
    return "$status"
}
