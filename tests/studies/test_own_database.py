"""Documents 001 and 004 on a PostgreSQL that runs already and asks for a password."""

from __future__ import annotations

import re
import shlex
import subprocess
from typing import NamedTuple

import pytest

from concurve.store import Store
from concurve.store.run_head import decode_head
from tests.helpers import real
from tests.helpers.postgres import Server

pytestmark = [pytest.mark.real, pytest.mark.postgresql]

PASSWORD = "the bank's w0rd"
#: A name that does not say that its value is secret.
VARIABLE = "BANK_ENTRY"


class Bank(NamedTuple):
    """A database that asks for the password, and its server's process."""

    url: str
    pid: int

    def run(
        self, lab: real.Lab, study: str, *words: str, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Point a study at it."""
        return lab.run(
            "run", study, "--effort", "quick", "--repeats", "2..2", "--set", "version=16",
            "--attach", str(self.pid), "--server", self.url, "--password-from", VARIABLE, *words,
            **environment,
        )  # fmt: skip


@pytest.fixture
def bank(request: pytest.FixtureRequest, postgres: Server) -> Bank:
    """One of its own for each test: the studies replace each other's data."""
    name = "bank_" + request.node.name.split("_")[2]
    return Bank(postgres.guarded(name, PASSWORD), postgres.pid())


def test_document_001_on_a_database_with_a_password(lab: real.Lab, bank: Bank) -> None:
    words = ("kernel-mode/postgresql", "--set", "clients=2")
    done = bank.run(lab, *words, **{VARIABLE: PASSWORD})
    assert done.returncode == 0, done.stderr
    head = decode_head(Store.existing(str(lab.db)).find_run("last"))
    load = next(role for role in head.study.roles if role.name == "load")
    assert load.env == {VARIABLE: f"{{secret:{VARIABLE}}}"}
    figures = lab.run("show", "last", "--figures").stdout
    assert "rate_per_second" in figures and "cpus_used" in figures
    for file in lab.folder.glob("concurve.db*"):
        assert PASSWORD.encode() not in file.read_bytes(), file

    unset = bank.run(lab, *words)
    assert unset.returncode == 2
    assert f"--password-from {VARIABLE}: this environment variable is not set" in unset.stderr
    wrong = bank.run(lab, *words, **{VARIABLE: "another word"})
    assert wrong.returncode != 0
    assert "password" in wrong.stderr and "another word" not in wrong.stderr


def test_document_004_names_the_command_that_makes_its_data(lab: real.Lab, bank: Bank) -> None:
    words = (
        "tpcb-multicore/postgresql", "--set", "sessions=2", "--set", "workload=tpcb-rw3",
        "--set", "cpus=all", "--set", "files=16",
    )  # fmt: skip
    given = {VARIABLE: PASSWORD}
    refused = bank.run(lab, *words, **given)
    assert refused.returncode != 0
    said = " ".join(refused.stderr.split())
    found = re.search(r"try: concurve[ -]load (\S+ .*?--init-only)", said)
    assert found, refused.stderr
    made = lab.run("load", *shlex.split(found[1]), **given)
    assert made.returncode == 0, made.stderr
    done = bank.run(lab, *words, **given)
    assert done.returncode == 0, done.stderr
