#!/usr/bin/env bash
# Question:     Do more I/O threads make a Redis on a single CPU faster? Asked of two servers that run already, and of
#               one that each trial starts.
# Needs:        redis-server, redis-cli, taskset
# Right answer: No: on one CPU the threads take turns. Up to Redis 7 they even spin, so four are much slower than one.
. "$(dirname "$0")/../common.sh"
needs redis-server redis-server
needs redis-cli redis-tools
needs taskset util-linux

cpu=$(python3 -c 'import os; print(min(os.sched_getaffinity(0)))')

# Two servers that run already, each attached by its process. The same sweep of each has a name, and the names are
# compared. concurve-load reports what it counts, so nothing has to be read out of its output.
for threads in 1 4; do
    port=$(free_port)
    serve taskset -c "$cpu" redis-server --port "$port" --io-threads "$threads" --save "" --dir "$FOLDER"
    wait_for redis-cli -p "$port" ping
    concurve sweep --name "io$threads" -P clients 16,64 --effort quick --max-time 40s --attach "$SERVER" \
        --primary rate_per_second -- \
        concurve load "redis://127.0.0.1:$port" --workload get --prefill --sessions {clients} --duration 0.7s
done
concurve compare io1 io4
check compared io1 io4 --right slower,same

# The same question of a server that each trial starts: then its threads are the parameter.
concurve sweep -P io-threads 1,4 --effort quick --max-time 40s --primary rate_per_second \
    --server "taskset -c $cpu redis-server --port {free_port} --io-threads {io-threads} --save ''" \
    --ready tcp:{free_port} -- \
    concurve load redis://127.0.0.1:{free_port} --workload get --prefill --sessions 64 --duration 0.7s
check best last --by rate_per_second --right 1
