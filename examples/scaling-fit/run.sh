#!/usr/bin/env bash
# Question:     Measured with 1 to 8 workers: what is to be expected of 16, and is it true?
# Needs:        Python
# Right answer: The interval of the prediction and that of the measurement overlap, and neither is wide.
. "$(dirname "$0")/../common.sh"
cp "$HERE/workers.py" .

measure() { # NAME LEVELS
    concurve sweep --name "$1" -P workers "$2" --effort quick --max-time 70s --primary rate_per_second -- \
        python3 workers.py {workers}
}

measure small 1,2,3,4,6,8
concurve export small --format trials -o small.csv
# On a busy machine no row may be fit to be used: then it is refused.
if ! concurve fit small.csv --x workers --y rate_per_second --predict 16 2>refusal.txt; then
    cat refusal.txt
    check refused small --says "$(head -1 refusal.txt)"
    exit
fi
concurve fit small.csv --x workers --y rate_per_second --predict 16 --json >fit.json

# Twice as many as were measured; one more level, so that there is something to compare with.
measure large 8,16
check predicted fit.json small large --factor workers --at 16 --by rate_per_second
