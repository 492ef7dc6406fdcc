# A short program for each item, as many at a time as asked for.
seq 400 | xargs -P "$1" -n 1 sh -c 'i=0; while [ $i -lt 300 ]; do i=$((i+1)); done'
