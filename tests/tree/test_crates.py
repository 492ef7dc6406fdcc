"""Which crate may depend on which: the rules of the READMEs in ``instrument`` and ``subjects``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

#: Each crate of the instrument, lowest first, and the crates of the instrument that it may use.
INSTRUMENT: dict[str, set[str]] = {
    "clock": set(),
    "reporter": {"clock"},
    "wire": {"reporter"},
    "probe": set(),
    "trial": {"clock", "reporter", "wire", "probe"},
    "load": {"clock", "reporter"},
}

#: What a subject may use of the instrument: it tells the time, reports, and asks the system.
OFFERED_TO_SUBJECTS = {"clock", "reporter", "probe"}

#: The load generator drives the record engine in its own process, as it drives SQLite and LMDB, and
#: its other engines understand the same commands. So it names the engine as a library.
ENGINES_IN_THE_LOAD_GENERATOR = {("load", "records")}


def crates(folder: str) -> dict[str, dict[str, Any]]:
    """The manifests below a folder, by the name of the crate's own folder."""
    paths = sorted((ROOT / folder).glob("*/Cargo.toml"))
    return {path.parent.name: tomllib.loads(path.read_text()) for path in paths}


def ours(manifest: dict[str, Any]) -> set[str]:
    """The crates of this repository that a manifest names, for tests or the build as well."""
    tables = [manifest, *manifest.get("target", {}).values()]
    kinds = ("dependencies", "dev-dependencies", "build-dependencies")
    names = {name for table in tables for kind in kinds for name in table.get(kind, {})}
    return {name.removeprefix("concurve-") for name in names if name.startswith("concurve-")}


SUBJECTS = crates("subjects")


def test_every_crate_is_named_here() -> None:
    assert set(crates("instrument")) == set(INSTRUMENT)
    members = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]
    places = {f"instrument/{name}" for name in INSTRUMENT} | {f"subjects/{n}" for n in SUBJECTS}
    assert set(members) == places | {"native"}


@pytest.mark.parametrize("name", INSTRUMENT)
def test_the_instrument_depends_on_nothing_but_lower_crates_of_its_own(name: str) -> None:
    used = ours(crates("instrument")[name])
    engines = {engine for crate, engine in ENGINES_IN_THE_LOAD_GENERATOR if crate == name}
    assert used - INSTRUMENT[name] == engines


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_subject_uses_of_the_instrument_what_is_offered(name: str) -> None:
    used = ours(SUBJECTS[name])
    assert used - set(SUBJECTS) <= OFFERED_TO_SUBJECTS


def test_the_order_of_the_instrument_has_no_circle() -> None:
    order = list(INSTRUMENT)
    for name, lower in INSTRUMENT.items():
        assert all(order.index(other) < order.index(name) for other in lower)
