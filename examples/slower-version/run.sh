#!/usr/bin/env bash
# Question:     Is the new version of my program slower than the old one? It is, by 4 %.
# Needs:        Python
# Right answer: Slower, or undecided with the number of trials that would decide; never the same, never faster.
. "$(dirname "$0")/../common.sh"
cp "$HERE/renderer.py" .

# Both versions are levels of one run: their trials are interleaved, so what the machine does affects both alike.
concurve sweep -P version old,new --repeats 40 --max-time 120s -- python3 renderer.py {version}

# Exit code 10 says that --fail-on was met: in CI it would stop the build.
concurve compare last --factor version --levels old,new --fail-on slower || echo "exit code $?"
check compared last --factor version --levels old,new --right slower
