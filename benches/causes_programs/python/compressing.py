"""A pool of threads that compress blocks: the library lets go of the interpreter's lock meanwhile,
so that nothing limits it."""

import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

BLOCK = b" ".join(b"%d" % (number * number % 9973) for number in range(20_000))


def packed(task: int) -> int:
    return len(zlib.compress(BLOCK[task:]))


with ThreadPoolExecutor(int(sys.argv[1])) as pool:
    assert sum(pool.map(packed, range(128))) > 0
