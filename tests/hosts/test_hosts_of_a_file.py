"""The tests and the bench of hosts, run on the hosts of a file as an engineer with real ones runs
them. Long: marked for the soak.

The hosts are network namespaces with an ``sshd`` each; what runs here is started in that of Ray's
head, is given the file, and reaches the others by OpenSSH and by their addresses alone.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import clusters, openssh, real
from tests.helpers.agents import no_namespaces
from tests.helpers.clusters import FILE_VARIABLE, LINK_VARIABLE
from tests.helpers.openssh import Reached

pytestmark = [
    pytest.mark.soak,
    pytest.mark.real,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(real.missing() is not None, reason=str(real.missing())),
    pytest.mark.skipif(no_namespaces() is not None, reason=str(no_namespaces())),
    pytest.mark.skipif(clusters.missing() is not None, reason=str(clusters.missing())),
    pytest.mark.skipif(openssh.no_sshd() is not None, reason=str(openssh.no_sshd())),
]

ROOT = Path(__file__).resolve().parents[2]

#: Of Ray's head: other than those of the tests that run beside this one.
PORT = 8300

#: Seconds for a command here.
SECONDS = 1800

HOSTS = ("server", "one", "two")


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reached]:
    with openssh.reached(HOSTS, tmp_path_factory.mktemp("hosts"), PORT) as found:
        yield found


def run(hosts: Reached, *words: str, **environment: str) -> str:
    """What a command on the host of Ray's head prints, run in this checkout.

    Raises:
        AssertionError: it failed.
    """
    done = subprocess.run(
        hosts.within(HOSTS[0], sys.executable, *words),
        env={**hosts.environment, FILE_VARIABLE: str(hosts.file), **environment},
        cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-9000:] + done.stderr[-9000:]
    return done.stdout


def test_the_tests_of_trials_over_ray(hosts: Reached) -> None:
    said = run(hosts, "-m", "pytest", "-q", "-m", "soak", "tests/hosts/test_ray.py")
    last = said.splitlines()[-1]
    assert re.match(r"\d+ passed\b", last) and "skipped" not in last, said


@pytest.mark.parametrize(
    ("number", "kind"),
    [(0, "worker killed"), (1, "head killed"), (2, "raylet killed"), (3, "head stopped"),
     (8, "driver killed"), (14, "link down")],
)  # fmt: skip
def test_faults(hosts: Reached, number: int, kind: str) -> None:
    words = ["-m", "tests.hosts.test_faults", "--first", str(number), "--count", "1"]
    said = run(hosts, *words, **{LINK_VARIABLE: hosts.link()})
    assert f"| {kind} | 1 |" in said
    assert said.splitlines()[-1].endswith("all as they must be")


def test_the_bench(hosts: Reached) -> None:
    parts = [word for part in ("sockets", "ray", "p99") for word in ("--only", part)]
    said = run(hosts, "benches/hosts.py", "--quick", *parts)
    assert said.splitlines()[-1] == "failed: none; missed: none"
    assert said.count("not measured: ") == 1
    assert "not measured: its agents are processes of one machine" in said
    assert "skew of a start, p95, Ray" in said
    assert "error of an offset, worst, Ray" not in said, "no clock is shared"
