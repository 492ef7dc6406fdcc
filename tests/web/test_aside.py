"""What waits for others keeps nothing else waiting."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from concurve.web.aside import aside


def test_it_returns_and_raises_what_the_function_does() -> None:
    assert asyncio.run(aside(divmod, 7, 2)) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(aside(divmod, 7, 0))


def test_the_loop_goes_on_meanwhile() -> None:
    may_end = threading.Event()

    async def both() -> bool:
        waiting = asyncio.ensure_future(aside(may_end.wait))
        await asyncio.sleep(0)
        may_end.set()
        return await waiting

    assert asyncio.run(both())


def test_who_waits_no_more_is_not_told() -> None:
    may_end, ended = threading.Event(), threading.Event()

    def wait() -> None:
        may_end.wait()
        ended.set()

    async def given_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(aside(wait), 0.01)
        may_end.set()
        await asyncio.to_thread(ended.wait)
        await asyncio.sleep(0.01)

    asyncio.run(given_up())


def test_what_hangs_keeps_no_process_from_ending() -> None:
    code = (
        "import asyncio, threading\n"
        "from concurve.web.aside import aside\n"
        "async def main():\n"
        "    asyncio.ensure_future(aside(threading.Event().wait))\n"
        "    await asyncio.sleep(0)\n"
        "asyncio.run(main())\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0
