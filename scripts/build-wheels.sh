#!/bin/sh
# Builds the wheels of both distributions into dist/: the laboratory, and its compiled programs as a
# release. With zig as their linker, the programs need glibc 2.28 or newer (2018: the server calls
# renameat2); without it, the glibc of this machine or newer.
# Usage: build-wheels.sh BIN, the folder of the environment's programs
set -eu
bin=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
export PATH="$bin:$PATH"

mkdir -p dist
new=$(mktemp -d dist/.new.XXXXXX)
trap 'rm -rf "$new"' EXIT

echo "packing the laboratory"
pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$new" .
[ -e subjects/mandelbrot-java/target/concurve-mandelbrot.jar ] ||
    echo "the wheel has no JVM kernel: it is not built (make says what is missing)" >&2

linker=
if python -c 'import ziglang' 2>/dev/null; then
    linker="--zig --compatibility manylinux_2_28"
else
    echo "ziglang is not installed: the wheel of the programs will need the glibc of this machine or" >&2
    echo "newer. For any Linux since 2018: $bin/pip install --constraint constraints.txt ziglang" >&2
fi
echo "compiling the programs as a release${linker:+, with zig as linker}"
# shellcheck disable=SC2086
maturin build --quiet --release $linker --manifest-path native/Cargo.toml --out "$new"

twine check --strict "$new"/*.whl
rm -f dist/concurve-*.whl dist/concurve_native-*.whl
mv "$new"/*.whl dist/
ls dist/*.whl
