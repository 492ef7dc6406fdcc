#!/bin/sh
# Names each missing or too old tool with the command that installs it. Usage: check-tools.sh PYTHON
set -u
python=${1:-python3}
missing=0
cd "$(dirname "$0")/.." || exit 1
rust_needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

refuse() { # what is wrong, how to correct it
    printf '%s. Install it:\n    %s\n' "$1" "$2" >&2
    missing=1
}

need() { # tool, what it is for, how to install it
    command -v "$1" >/dev/null 2>&1 || refuse "$1 is missing ($2)" "$3"
}

at_least() { # needed version, version that was found
    [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

rust_hint="rustup update stable (apt-get install rustup && rustup default stable where rustup is missing)"
need "$python" "Python 3.11 or newer" "apt-get install python3 python3-venv"
need cargo "the Rust toolchain, $rust_needed or newer" "$rust_hint"
need cc "a C compiler, to link the native programs" "apt-get install gcc"
[ "$missing" = 0 ] || exit 1

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "$python is $("$python" -V 2>&1), 3.11 or newer is needed. Try: make PYTHON=python3.12" >&2
    missing=1
}
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    refuse "$python has no venv module" "apt-get install python3-venv"
rust_found=$(rustc --version 2>/dev/null | cut -d ' ' -f 2)
at_least "$rust_needed" "${rust_found:-0}" ||
    refuse "rustc is version ${rust_found:-unknown}, $rust_needed or newer is needed" "$rust_hint"
exit "$missing"
