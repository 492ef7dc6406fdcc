"""Tasks of one asyncio loop that compute: however many there are, one thread does it all."""

import asyncio
import sys


async def work(steps: int) -> int:
    total = 0
    for step in range(steps):
        total += sum(range(2000 + step % 7))
        await asyncio.sleep(0)
    return total


async def main() -> None:
    tasks = int(sys.argv[1])
    await asyncio.gather(*(work(24_000 // tasks) for _ in range(tasks)))


asyncio.run(main())
