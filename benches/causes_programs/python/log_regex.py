"""Lines of a web log, taken apart by a regular expression in a pool of threads, in 125 batches.

Neither `re` nor what counts the answers gives the interpreter's lock away, so one thread runs
at any time and two take as long as one. The batches are equal, and the results small: lock.
"""

import re
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

LINE = re.compile(r'(\d+\.\d+\.\d+\.\d+) - - \[([^\]]+)\] "(GET|POST) (\S+) [^"]*" (\d{3}) (\d+)')


def made(number: int) -> str:
    method = "POST" if number % 5 == 0 else "GET"
    status = (200, 200, 304, 404)[number % 4]
    return (
        f"10.0.{number % 200}.{number % 250} - - [12/Mar/2024:10:{number % 60:02}:00 +0000] "
        f'"{method} /articles/{number % 90}.html HTTP/1.1" {status} {number * 37 % 9000}'
    )


def count(lines: list[str]) -> Counter[tuple[str, str]]:
    statuses: Counter[tuple[str, str]] = Counter()
    for line in lines:
        found = LINE.match(line)
        if found is not None:
            statuses[found.group(3), found.group(5)] += int(found.group(6))
    return statuses


def main() -> None:
    lines = [made(number) for number in range(2_000)]
    total: Counter[tuple[str, str]] = Counter()
    with ThreadPoolExecutor(int(sys.argv[1])) as pool:
        for statuses in pool.map(count, [lines] * 125):
            total.update(statuses)
    print(sum(total.values()))


main()
