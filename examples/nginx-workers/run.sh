#!/usr/bin/env bash
# Question:     How many worker processes should nginx have, if it compresses what it sends?
# Needs:        nginx, wrk
# Right answer: As many as there are CPUs, or more: compressing takes CPU time, and a worker is one thread.
. "$(dirname "$0")/../common.sh"
needs nginx nginx-light
needs wrk wrk

# nginx reads its port from its file, so the port is chosen here.
port=$(free_port)
seq 1 20000 >page.txt
{
    echo "pid nginx.pid;"
    echo "error_log stderr;"
    echo "events { worker_connections 512; }"
    echo "http {"
    echo "    access_log off;"
    # Each module that is built in wants a folder that it may write to.
    for module in client_body proxy fastcgi uwsgi scgi; do
        nginx -V 2>&1 | grep -q -- "--without-http_${module}_module" || echo "    ${module}_temp_path temp_$module;"
    done
    echo "    gzip on;"
    echo "    gzip_comp_level 9;"
    echo "    gzip_types *;"
    # reuseport spreads the connections over the workers.
    echo "    server { listen 127.0.0.1:$port reuseport; root $FOLDER; }"
    echo "}"
} >nginx.conf

# The server has to stay in the foreground, so that each trial can start and stop it.
concurve sweep -P workers 1,2,4 --effort quick --max-time 100s \
    --server "nginx -p $FOLDER/ -c nginx.conf -g 'daemon off; worker_processes {workers};'" \
    --ready "tcp:$port" --extract wrk -- \
    wrk -t1 -c32 -d1s -H 'Accept-Encoding: gzip' "http://127.0.0.1:$port/page.txt"

check best last --by requests_per_second --right cpus..
