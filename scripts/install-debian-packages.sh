#!/bin/sh
# Installs the Debian packages that the tests use beyond Python, Rust and a C compiler:
#   hyperfine    compared with in make bench
#   postgresql   the store's tests start a server of their own; a target of tpcb-multicore
#   mariadb-server  a target of tpcb-multicore; other versions of PostgreSQL: install-postgresql.sh,
#   unzip, xz-utils  which unpacks them with these
#   redis-server a target of the study enqueue-io-threads
#   redis-server, redis-tools  the load generator speaks to it; redis-benchmark is compared with
#   xfsprogs, btrfs-progs  file systems of volumes, beside ext4
#   maven, openjdk  build and run the JVM kernel
#   chromium     opens the HTML report
#   dwz          writes debug information that programs share
# With the word `soak`, also what only make soak uses:
#   nginx-light, wrk  measured by the examples
#   golang-go    builds the checker of histories (make checker), and a server of the examples
# Without them the tests that need one are skipped, with the reason. openssh-server is not among them: it would
# open this machine; tests/hosts/test_clusters.py says that it lacks it.
set -eu
packages="hyperfine postgresql mariadb-server unzip xz-utils xfsprogs btrfs-progs redis-server chromium maven default-jdk-headless dwz"
if [ "${1:-}" = soak ]; then
    packages="$packages nginx-light wrk"
    command -v go >/dev/null || packages="$packages golang-go"
fi
missing=""
for package in $packages; do
    dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
echo "installing Debian packages:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing >/dev/null
