#!/bin/sh
# Runs Maven on the JVM kernel, or says what is missing and goes on: the parts in Python and Rust need
# no Java. Usage: maven.sh WHAT-FOR ARGUMENT...
set -u
purpose=$1
shift

skip() { # what is missing, how to install it
    printf '%s: left out, %s. Install it:\n    %s\n' "$purpose" "$1" "$2" >&2
    exit 0
}

javac=${JAVA_HOME:+$JAVA_HOME/bin/}javac
command -v mvn >/dev/null 2>&1 || skip "Maven is missing" "apt-get install maven"
command -v "$javac" >/dev/null 2>&1 || skip "a JDK is missing" "apt-get install default-jdk-headless"
version=$("$javac" -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p')
[ "${version:-0}" -ge 17 ] || skip "$javac is version ${version:-unknown}, 17 or newer is needed" \
    "apt-get install default-jdk-headless"

cd "$(dirname "$0")/../subjects/mandelbrot-java" || exit 1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
mvn -q -B "$@" >"$log" 2>&1
code=$?
[ "$code" = 0 ] && exit 0
if grep -qE 'Could not (transfer|resolve)|Non-resolvable|in offline mode' "$log"; then
    grep -m1 'ERROR' "$log" >&2
    skip "Maven cannot fetch its plug-ins or JUnit" "a network connection, once; then: mvn -f subjects/mandelbrot-java dependency:go-offline"
fi
cat "$log" >&2
exit "$code"
