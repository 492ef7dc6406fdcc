#!/usr/bin/env bash
# Question:     How many connections to its database should a server have? Asked by a study file of two roles, whose run
#               is interrupted by ^C and resumed.
# Needs:        Python
# Right answer: Eight, the most that is measured: sixteen sessions wait for them. The resumed run keeps every trial that
#               it had, repeats none, and comes to its end.
. "$(dirname "$0")/../common.sh"
cp "$HERE/study.toml" "$HERE/server.py" "$HERE/client.py" .

trials() { # FILE: the stored trials as CSV
    concurve export last --format trials -o "$1" 2>/dev/null
}

# In the background without ^C being ignored, as a shell in the foreground would start it.
set -m
concurve run study.toml --effort quick --max-time 100s &
run=$!
set +m
until trials early.csv && [ "$(wc -l <early.csv)" -gt 4 ]; do
    kill -0 "$run" 2>/dev/null || break
    sleep 0.5
done
kill -INT "$run"
code=0
wait "$run" || code=$?
if [ "$code" != 130 ]; then
    echo "WRONG: an interrupted run ends with exit code 130, not $code"
    exit 1
fi
trials before.csv

concurve resume last
trials after.csv
check resumed before.csv after.csv last
check best last --by rate --right 8
