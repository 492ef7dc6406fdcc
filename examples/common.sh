# What the examples share. Each begins with: . "$(dirname "$0")/../common.sh"
#
# It goes to an empty folder with a store of its own. At the end the folder is removed, and every server that `serve`
# has started is stopped. EXAMPLE_KEEP=1 keeps the folder. EXAMPLE_QUIET=1 takes a withheld answer for wrong where no
# trial is in doubt.
#
# Exit codes: 0 the answer is right, or Concurve says why it cannot be given; 1 it is wrong; 77 a program is missing.
# shellcheck shell=bash
set -euo pipefail

EXAMPLES=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
HERE=$(cd "$(dirname "$0")" && pwd)
FOLDER=$(mktemp -d "${TMPDIR:-/tmp}/concurve-example-XXXXXX")
SERVERS=()

end() {
    # A server gets half a minute for its own end.
    for pid in ${SERVERS[@]+"${SERVERS[@]}"}; do
        kill "$pid" 2>/dev/null || continue
        for _ in $(seq 150); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.2
        done
        kill -KILL "$pid" 2>/dev/null || true
    done
    if [ -n "${EXAMPLE_KEEP:-}" ]; then
        echo "kept: $FOLDER"
    else
        rm -rf "$FOLDER"
    fi
}
trap end EXIT
trap 'exit 130' INT TERM

skip() { # REASON
    echo "skipped: $1"
    exit 77
}

needs() { # PROGRAM PACKAGE: skip the example if the program is missing
    command -v "$1" >/dev/null || skip "$1 is not installed (Debian: apt-get install $2)"
}

check() { # judge the answer of a stored run: check.py says how
    python3 "$EXAMPLES/check.py" ${EXAMPLE_QUIET:+--quiet} "$@"
}

free_port() { # print a free TCP port of loopback
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

serve() { # COMMAND…: start a server that ends with the example; its process is $SERVER
    "$@" >>"$FOLDER/servers.log" 2>&1 &
    SERVER=$!
    SERVERS+=("$SERVER")
}

wait_for() { # COMMAND…: until it succeeds, two minutes at most
    for _ in $(seq 600); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.2
    done
    echo "failed: '$*' did not succeed within two minutes; $FOLDER/servers.log ends with:" >&2
    tail -5 "$FOLDER/servers.log" >&2 || true
    exit 1
}

command -v concurve >/dev/null || skip "concurve is not on the PATH (docs/install.md; in a checkout: PATH=\$PWD/.venv/bin:\$PATH)"
needs python3 python3
export CONCURVE_DB="$FOLDER/concurve.db"
# A server that runs as another user finds its files.
chmod 755 "$FOLDER"
cd "$FOLDER"
