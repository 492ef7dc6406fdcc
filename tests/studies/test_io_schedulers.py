"""The campaign of document 003: its figures, and a tiny simulation of it, whole."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import concurve
from concurve.definition.claim_kinds import parse_test
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
    text = text.replace('quick = { scale = "0.03" }', 'quick = { scale = "0.002" }')
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


def test_claims_on_the_order_need_that_schedulers_differ() -> None:
    """By the source's smaller difference, noop beside the three: at the source's time all are
    alike, and the model has nothing to say."""
    least = min(other / 25908 for other in (26645, 28217)) - 1
    for claim in load_study(FILE, 2).claims:
        needs = parse_test(claim, claim.id).needs
        assert needs is not None
        assert [cell["scheduler"] for cell in needs.cells] == ["noop", "cfq2", "as", "deadline"]
        assert needs.differ_by == round(least, 3)


def test_the_overview_is_simulated_with_options_that_the_simulator_has() -> None:
    study = load_study(FILE.parents[1] / "overview" / "study.toml", 2)
    assert study.simulation
    options = {
        word
        for name in ("scheduler", "load")
        for parts in study.level_parts[name].values()
        for value in parts.values()
        for word in (value if isinstance(value, (list, tuple)) else [value])
        if str(word).startswith("--")
    }
    assert {"--reader-nice", "--reader-class", "--antic-expire-ms"} <= options
    if missing() is None:
        said = subprocess.run(
            [str(native.binary("concurve-disk")), "streams", "--help"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert {word for word in options if str(word) not in said} == set()


def test_each_assumption_is_an_option_of_the_simulator_and_is_changed_alone() -> None:
    study = load_study(FILE.parents[1] / "assumptions" / "study.toml", 2)
    changed = {level: parts["options"] for level, parts in study.level_parts["assumption"].items()}
    assert changed.pop("usual") == ()
    pairs = [options for options in changed.values() if isinstance(options, tuple)]
    assert len(pairs) == len(changed)
    assert all(len(pair) == 2 and pair[0].startswith("--") for pair in pairs)
    assert {pair[0] for pair in pairs} >= {
        "--writing", "--scattered-pages", "--export-share", "--log-share", "--commit-mb",
        "--closing-share", "--page-cache-gib",
    }  # fmt: skip
    if missing() is None:
        said = subprocess.run(
            [str(native.binary("concurve-disk")), "load", "--help"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert {pair[0] for pair in pairs if pair[0] not in said} == set()


def test_the_largest_exports_fit_on_the_disks_of_the_document() -> None:
    """Six volumes of 15 GB and a log of 2 GB leave 4.5 of 96.5 GB for the exports of 73 GB."""
    study = load_study(FILE.parents[1] / "assumptions" / "study.toml", 2)
    options = [parts["options"] for parts in study.level_parts["assumption"].values()]
    pairs = [pair for pair in options if isinstance(pair, tuple) and "--export-share" in pair]
    assert pairs
    assert all(float(pair[1]) * 73 <= 96.5 - 6 * 15 - 2 for pair in pairs)
