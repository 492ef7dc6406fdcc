#!/usr/bin/env bash
# Runs the tests as the user nobody, who has a fresh home, on a copy of this tree: those of Python, and
# those of Rust that are compiled. Usage, as root: test-as-nobody.sh [ARGUMENTS OF PYTEST]
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

if [ "$(id -u)" != 0 ]; then
    echo "only root can become another user; make test runs the tests as the user that you are" >&2
    exit 0
fi

folder=$(mktemp -d "${TMPDIR:-/tmp}/concurve-nobody-XXXXXX")
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
tree=$folder/tree
home=$folder/home
libraries=
mkdir "$tree" "$home"

link() { # FROM TO: a copy that shares the files, where one file system has both
    cp -al "$1" "$2" 2>/dev/null || { rm -rf "$2" && cp -a "$1" "$2"; }
}

as_nobody() {
    setpriv --reuid=65534 --regid=65534 --clear-groups env -i \
        HOME="$home" USER=nobody LOGNAME=nobody LANG="${LANG:-C.UTF-8}" \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        ${JAVA_HOME:+JAVA_HOME="$JAVA_HOME"} ${PROPTEST_RNG_SEED:+PROPTEST_RNG_SEED="$PROPTEST_RNG_SEED"} \
        ${libraries:+LD_LIBRARY_PATH="$libraries"} \
        CONCURVE_NATIVE="$tree/target/checked" PYTHONDONTWRITEBYTECODE=1 "$@"
}

copy_sources() { # what git knows, as it stands here
    git ls-files -z --cached --others --exclude-standard |
        tar --create --null --ignore-failed-read --files-from=- 2>/dev/null | tar --extract --directory="$tree"
    chown -R 65534:65534 "$tree" "$home"
    # Tests ask git which files there are.
    as_nobody git init --quiet "$tree"
}

copy_programs() { # those of the tests, the jar, the checker of histories
    mkdir -p "$tree/target/checked" "$tree/build" "$tree/subjects/mandelbrot-java/target"
    find target/checked -maxdepth 1 -type f -perm -u+x -exec sh -c 'cp -l "$0" "$1" 2>/dev/null || cp "$0" "$1"' \
        {} "$tree/target/checked/" \;
    cp subjects/mandelbrot-java/target/*.jar "$tree/subjects/mandelbrot-java/target/" 2>/dev/null || true
    cp build/histories-checker "$tree/build/" 2>/dev/null || true
}

copy_python() { # the environment, moved; and its Python, if that stands in somebody's home
    local python prefix name
    python=$(readlink -f .venv/bin/python)
    prefix=$(dirname "$(dirname "$python")")
    if ! as_nobody test -x "$python"; then
        link "$prefix" "$folder/python"
        python=$folder/python/bin/$(basename "$python")
        # Its own shared library, and not that of another Python of this version.
        libraries=$folder/python/lib
    fi
    link "$root/.venv" "$tree/.venv"
    for name in "$tree"/.venv/bin/python*; do
        ln -sf "$python" "$name"
    done
    sed -i "s#^home = .*#home = $(dirname "$python")#" "$tree/.venv/pyvenv.cfg"
    grep -rlI --fixed-strings "$root" "$tree/.venv/bin" "$tree"/.venv/lib/python*/site-packages/*.pth |
        xargs --no-run-if-empty sed -i "s#$root/#$tree/#g"
}

test_python() {
    (cd "$tree" && as_nobody .venv/bin/python -m pytest -q -rs -p no:cacheprovider "$@")
}

test_rust() { # each program of tests in the folder of its crate
    local programs crate program failed=0
    programs=$(cargo test --workspace --profile checked --quiet --no-run --message-format=json |
        .venv/bin/python -c '
import json, os, sys
for line in map(json.loads, sys.stdin):
    if line.get("reason") == "compiler-artifact" and line["profile"]["test"] and line["executable"]:
        print(os.path.relpath(os.path.dirname(line["manifest_path"])), line["executable"])
')
    while read -r crate program; do
        # The tests know their programs by where cargo has left them.
        if ! as_nobody test -x "$program"; then
            echo "the tests of Rust are skipped: nobody cannot read $root" >&2
            return 0
        fi
        echo "$crate: $(basename "$program")"
        (cd "$tree/$crate" && as_nobody "$program" --quiet) || failed=1
    done <<<"$programs"
    return "$failed"
}

copy_sources
copy_programs
copy_python
outcome=0
if [ $# -gt 0 ]; then
    # Somebody looks for something among the tests of Python.
    test_python "$@" || outcome=1
else
    test_python --numprocesses 4 --dist loadfile --no-loadscope-reorder || outcome=1
    test_rust || outcome=1
fi
exit "$outcome"
