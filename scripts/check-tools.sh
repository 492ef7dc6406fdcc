#!/bin/sh
# Names each missing tool with the command that installs it. Usage: check-tools.sh PYTHON
set -u
python=${1:-python3}
missing=0

need() { # tool, what it is for, how to install it
    command -v "$1" >/dev/null 2>&1 && return
    printf '%s is missing (%s). Install it:\n    %s\n' "$1" "$2" "$3" >&2
    missing=1
}

need "$python" "Python 3.11 or newer" "apt-get install python3 python3-venv"
need cargo "the Rust toolchain, 1.85 or newer" "apt-get install rustup && rustup default stable, or see rustup's own page"
need cc "a C compiler, to link the native programs" "apt-get install gcc"
[ "$missing" = 0 ] || exit 1

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "$python is $("$python" -V 2>&1), 3.11 or newer is needed. Try: make PYTHON=python3.12" >&2
    exit 1
}
"$python" -c 'import venv, ensurepip' 2>/dev/null || {
    printf '%s has no venv module. Install it:\n    apt-get install python3-venv\n' "$python" >&2
    exit 1
}
