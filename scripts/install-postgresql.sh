#!/bin/sh
# Installs PostgreSQL servers of several versions side by side, for the campaign tpcb-multicore: to
# /opt/concurve as root (initdb refuses root, and user postgres must be able to read them), else to
# ~/.local/share/concurve. They come by Maven, as the packages "embedded-postgres-binaries" (each has
# initdb, pg_ctl and postgres). What Debian has installed stays as it is and is preferred.
# Usage: install-postgresql.sh [VERSION...]   9.6, 10 ... 18; without any: 10 and 18
set -eu

release() { # the pinned release of a version; PostgreSQL 10 and newer have two numbers
    case $1 in
    9.6) echo 9.6.24 ;; 10) echo 10.23.0 ;; 11) echo 11.22.1 ;; 12) echo 12.22.0 ;; 13) echo 13.23.0 ;;
    14) echo 14.20.0 ;; 15) echo 15.15.0 ;; 16) echo 16.11.0 ;; 17) echo 17.7.0 ;; 18) echo 18.1.0 ;;
    *)
        echo "PostgreSQL $1: no such version here; one of 9.6, 10, 11, 12, 13, 14, 15, 16, 17, 18" >&2
        return 2
        ;;
    esac
}

need() { # command, Debian's package
    command -v "$1" >/dev/null 2>&1 && return
    printf '%s is missing. Install it:\n    apt-get install %s\n' "$1" "$2" >&2
    exit 1
}

install_version() { # version, release
    target=$root/$1
    if [ -x "$target/bin/postgres" ]; then
        echo "PostgreSQL $1 is there already: $target"
        return
    fi
    echo "installing PostgreSQL $2 to $target"
    work=$(mktemp -d)
    trap 'rm -rf "$work" "${root:?}/.new.$$"' EXIT
    artifact=embedded-postgres-binaries-linux-$machine
    if ! mvn -q -B dependency:copy "-Dartifact=io.zonky.test.postgres:$artifact:$2" \
        "-DoutputDirectory=$work" >"$work/said" 2>&1; then
        cat "$work/said" >&2
        echo "PostgreSQL $2 could not be fetched by Maven; its last words are above" >&2
        exit 1
    fi
    unzip -q "$work/$artifact-$2.jar" '*.txz' -d "$work"
    mkdir -p "$root/.new.$$"
    tar -xJf "$work"/*.txz -C "$root/.new.$$"
    # Readable for user postgres, whatever the umask here. In place whole, or not at all.
    chmod -R a+rX "$root/.new.$$"
    mv "$root/.new.$$" "$target"
    rm -rf "$work"
    "$target/bin/postgres" --version
}

case $(uname -m) in
x86_64) machine=amd64 ;;
aarch64) machine=arm64v8 ;;
*)
    echo "no PostgreSQL binaries for $(uname -m); Debian's own: apt-get install postgresql" >&2
    exit 1
    ;;
esac
need mvn maven
need unzip unzip
need xz xz-utils

if [ "$(id -u)" = 0 ]; then
    root=/opt/concurve/postgresql
else
    root=${XDG_DATA_HOME:-$HOME/.local/share}/concurve/postgresql
fi

[ $# -gt 0 ] || set -- 10 18
for version in "$@"; do release "$version" >/dev/null; done
mkdir -p "$root"
for version in "$@"; do install_version "$version" "$(release "$version")"; done
