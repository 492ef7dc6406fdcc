#!/usr/bin/env bash
# Question:     How many workers should a pool of Python processes have, with and without a lock that they share?
# Needs:        Python
# Right answer: As many as there are CPUs, or more, without the lock. One under the lock, which limits all others.
. "$(dirname "$0")/../common.sh"
cp "$HERE/pool.py" .

# The parameter workers is found to count workers, and sync to be a condition: a number of workers is recommended under
# each of its levels.
concurve sweep -P workers 1,2,4 -P sync none,lock --effort quick --max-time 120s -- \
    python3 pool.py {workers} {sync}

check best last --by wall_seconds --where sync=none --right cpus..
check best last --by wall_seconds --where sync=lock --right 1
check cause last --where sync=lock,workers=4 --right lock
