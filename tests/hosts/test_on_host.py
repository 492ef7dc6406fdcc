"""What the tests and the benches look at on a host is what is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import on_host, real
from tests.helpers.needs import needs_root

MB = 1 << 20

#: Two processes that have the same pages, and say so once both are there.
TWINS = f"""
import os, sys
kept = bytearray(os.urandom({32 * MB}))
child = os.fork()
if child:
    print(child, flush=True)
sys.stdin.read()
"""


@needs_root
def test_a_page_of_two_processes_counts_once() -> None:
    line = [sys.executable, "-c", TWINS]
    with subprocess.Popen(line, stdin=-1, stdout=subprocess.PIPE, text=True) as process:
        child = int(real.first_line(process))
        both = {process.pid: "one", child: "concurve.hosts.agent of another"}
        together, apart = on_host.memory(both, "nothing"), on_host.memory(both, "concurve.hosts.")
        assert process.stdin is not None
        process.stdin.close()
    if not together["is_exact"]:
        pytest.skip("root may not see the frames of pages here: it lacks CAP_SYS_ADMIN")
    assert 32 * MB <= together["others"] < 64 * MB
    assert apart["others"] >= 32 * MB > apart["ours"], "ours is what they have besides"
    assert abs(apart["others"] + apart["ours"] - together["others"]) < MB


def test_where_pages_may_not_be_seen_each_process_counts_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(on_host, "frames", lambda pids, page: set())
    with subprocess.Popen(["cat"], stdin=-1, stdout=subprocess.DEVNULL) as process:
        real.wait_until(lambda: Path(f"/proc/{process.pid}/statm").read_text()[0] != "0", "it")
        one = on_host.memory({process.pid: "cat"}, "nothing")
        again = on_host.memory({process.pid: "cat"}, "cat")
        assert process.stdin is not None
        process.stdin.close()
    assert one["others"] > 0 == one["ours"] and not one["is_exact"]
    assert again["ours"] > 0 == again["others"]
