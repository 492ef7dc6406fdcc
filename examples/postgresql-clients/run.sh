#!/usr/bin/env bash
# Question:     How many clients does my PostgreSQL serve best, and do its data hold under load?
# Needs:        PostgreSQL with pgbench
# Right answer: More than one client, by transactions per second and not by wall time: pgbench runs for a fixed time.
#               The data hold: every transaction that was confirmed is found.
. "$(dirname "$0")/../common.sh"

bin=$(find /usr/lib/postgresql/*/bin -maxdepth 0 2>/dev/null | sort -V | tail -1)
PATH="$PATH${bin:+:$bin}"
needs initdb postgresql
needs pgbench postgresql
as=()
if [ "$(id -u)" = 0 ]; then # initdb refuses root
    needs setpriv util-linux
    id postgres >/dev/null 2>&1 || skip "initdb refuses root, and there is no user postgres"
    as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
fi

# A server of one's own, as it would run already: Concurve only learns its process and its address.
port=$(free_port)
mkdir server
[ ${#as[@]} = 0 ] || chown postgres:postgres server
HOME=$PWD/server ${as[@]+"${as[@]}"} initdb -D "$PWD/server/data" -U postgres -A trust -N >>servers.log
HOME=$PWD/server serve ${as[@]+"${as[@]}"} postgres -D "$PWD/server/data" -p "$port" \
    -c listen_addresses=127.0.0.1 -c unix_socket_directories=
at=(-h 127.0.0.1 -p "$port" -U postgres)
wait_for pg_isready "${at[@]}"
pgbench "${at[@]}" --initialize --scale 10 --quiet postgres >>servers.log 2>&1

# --attach accounts the server's processes, and does nothing to them; --extract pgbench reads its usual output.
concurve sweep -P clients '1..16*2' --effort quick --max-time 80s --attach "$SERVER" --extract pgbench -- \
    pgbench "${at[@]}" --select-only -c {clients} -j {clients} -T 1 postgres
check best last --by tps --right more

# The same server under concurve's own load. --init makes the data, in a schema of its own; --scale is the number of
# branches, one for each session at least; --verify holds the data against what was confirmed.
if concurve load "postgresql://postgres@127.0.0.1:$port/postgres" --workload tpcb-strict --scale 4 --sessions 4 \
    --accounts 1000 --init --duration 3s --verify --attach "$SERVER"; then
    echo "right: the data hold"
else
    echo "WRONG: the load failed, or the data do not hold"
    exit 1
fi
