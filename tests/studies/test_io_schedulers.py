"""The campaign of document 003: its figures, and a tiny simulation of it, whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import concurve
from concurve.definition.study_file import load_study
from concurve.errors import HostError
from concurve.host import native
from tests.helpers import real

FILE = Path(concurve.__file__).parent / "studies" / "io-schedulers" / "simulated" / "study.toml"

TINY = """[effort.quick]
factors = { writing = ["cached"], seek-curve = ["root"], average-seek-ms = [3.5], \
layout = ["linear"], cpu-ms-per-megabyte = [0], queue-depth = [1], write-cache-kib = [0] }
repeats = 3
time_allowed = "1h"
"""


def missing() -> str | None:
    """Why nothing can be simulated here, or ``None``."""
    try:
        native.binary("concurve-disk")
    except HostError as error:
        return str(error)
    return real.missing()


def test_the_figures_of_the_document_are_there() -> None:
    study = load_study(FILE, 2)
    assert [figure.value for figure in study.published] == [25908, 26645, 28217]
    assert {claim.id for claim in study.claims} == {"order", "as-slower", "deadline-slower"}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[real.Lab]:
    laboratory = real.Lab(tmp_path)
    text = FILE.read_text(encoding="utf-8")
    text = re.sub(r"\[effort\.quick\].*?(?=\[effort\.normal\])", TINY, text, flags=re.DOTALL)
    text = text.replace('quick = { scale = "0.01" }', 'quick = { scale = "0.002" }')
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    yield laboratory
    laboratory.end()


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_tiny_simulation_runs_whole(lab: real.Lab) -> None:
    done = lab.run(
        "run", "study.toml", "--effort", "quick", "--seed", "5", "--export-json", "run.json"
    )
    assert done.returncode == 0, done.stderr
    exported = json.loads((lab.folder / "run.json").read_text(encoding="utf-8"))
    seconds = {
        cell["parameters"]["scheduler"]: cell["indicators"]["simulated_seconds"]
        for cell in exported["cells"]
    }
    assert set(seconds) == {"cfq2", "as", "deadline", "noop", "cfq"}
    claims = {claim["id"]: claim for claim in exported["claims"]}
    (ratio,) = [claim for name, claim in claims.items() if name.startswith("deadline-slower")]
    assert ratio["verdict"] in ("supported", "refuted", "undecided")
    assert ratio["estimate"]["low"] < ratio["estimate"]["value"] < ratio["estimate"]["high"]
    # What else the machine does changes nothing: no trial is redone for it.
    assert exported["run"]["rejected"] == 0


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_the_same_seed_simulates_the_same(lab: real.Lab) -> None:
    means = []
    for name in ("one", "other"):
        file = f"{name}.json"
        done = lab.run(
            "run", "study.toml", "--effort", "quick", "--seed", "5", "--repeats", "1",
            "--export-json", file,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        exported = json.loads((lab.folder / file).read_text(encoding="utf-8"))
        means.append([c["indicators"]["simulated_seconds"]["value"] for c in exported["cells"]])
    assert means[0] == means[1]
