#!/bin/sh
# Runs a command in a control group that may use one CPU's time in each 100 ms, and removes the group.
set -eu
group="concurve-quota-$$"
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    folder="/sys/fs/cgroup/$group"
    mkdir "$folder"
    echo "100000 100000" >"$folder/cpu.max"
else
    folder="/sys/fs/cgroup/cpu/$group"
    mkdir "$folder"
    echo 100000 >"$folder/cpu.cfs_period_us"
    echo 100000 >"$folder/cpu.cfs_quota_us"
fi
status=0
sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$folder" "$@" || status=$?
rmdir "$folder"
exit "$status"
