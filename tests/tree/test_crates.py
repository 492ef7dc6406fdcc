"""Which crate may depend on which, as the READMEs in ``instrument`` and ``subjects`` say, and which
files their tests are made of."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

#: Each crate of the instrument, lowest first, and the crates of the instrument that it may use.
INSTRUMENT: dict[str, set[str]] = {
    "clock": set(),
    "files": set(),
    "fuzz": {"clock"},
    "reporter": {"clock"},
    "wire": {"reporter"},
    "probe": {"clock"},
    "sites": {"clock", "probe"},
    "interposer": set(),
    "perturb": set(),
    "trial": {"clock", "reporter", "wire", "probe", "sites"},
    "load": {"clock", "files", "reporter", "probe"},
}

#: Each subject, lowest first, and the subjects that it may use.
SUBJECTS: dict[str, set[str]] = {
    "latch": set(),
    "engines": {"latch"},
    "records": {"latch"},
    "statements": {"latch"},
    "server": {"engines", "latch", "records", "statements"},
    "disk": set(),
    "storage": {"disk", "records"},
    "mandelbrot": set(),
    "targets": set(),
}

#: What the tests of a subject use besides: they run its latches between processes.
SUBJECTS_FOR_TESTS = {"records": {"engines"}, "statements": {"engines"}}

#: What a subject may use of the instrument: it tells the time, writes files, reports, and asks the
#: system.
OFFERED_TO_SUBJECTS = {"clock", "files", "reporter", "probe"}

#: What the tests of every crate may use, and no program.
FOR_TESTS_ALONE = {"fuzz"}

#: The load generator drives the record engine in its own process, as it drives SQLite and LMDB, and
#: its other engines understand the same commands. So it names the engine as a library.
ENGINES_IN_THE_LOAD_GENERATOR = {("load", "records")}


def crates(folder: str) -> dict[str, dict[str, Any]]:
    """The manifests below a folder, by the name of the crate's own folder."""
    paths = sorted((ROOT / folder).glob("*/Cargo.toml"))
    return {path.parent.name: tomllib.loads(path.read_text()) for path in paths}


LINKED = ("dependencies", "build-dependencies")
FOR_TESTS = ("dev-dependencies",)


def ours(manifest: dict[str, Any], kinds: tuple[str, ...] = LINKED + FOR_TESTS) -> set[str]:
    """The crates of this repository that a manifest names, for tests or the build as well."""
    tables = [manifest, *manifest.get("target", {}).values()]
    names = {name for table in tables for kind in kinds for name in table.get(kind, {})}
    return {name.removeprefix("concurve-") for name in names if name.startswith("concurve-")}


def linked(name: str) -> set[str]:
    """All crates of this repository that end up in a program that links a crate."""
    manifests = crates("instrument") | crates("subjects")
    found: set[str] = set()
    to_read = [name]
    while to_read:
        lower = ours(manifests[to_read.pop()], LINKED) - found
        found |= lower
        to_read += lower
    return found


def test_every_crate_is_named_here() -> None:
    assert set(crates("instrument")) == set(INSTRUMENT)
    assert set(crates("subjects")) == set(SUBJECTS)
    members = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]
    places = {f"instrument/{name}" for name in INSTRUMENT} | {f"subjects/{n}" for n in SUBJECTS}
    assert set(members) == places | {"native"}


@pytest.mark.parametrize("name", INSTRUMENT)
def test_the_instrument_depends_on_nothing_but_lower_crates_of_its_own(name: str) -> None:
    used = ours(crates("instrument")[name]) - FOR_TESTS_ALONE
    engines = {engine for crate, engine in ENGINES_IN_THE_LOAD_GENERATOR if crate == name}
    assert used - INSTRUMENT[name] == engines


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_subject_uses_of_the_instrument_what_is_offered(name: str) -> None:
    used = ours(crates("subjects")[name]) - FOR_TESTS_ALONE
    assert used - set(SUBJECTS) <= OFFERED_TO_SUBJECTS


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_subject_uses_the_subjects_below_it_alone(name: str) -> None:
    manifest = crates("subjects")[name]
    assert ours(manifest, LINKED) & set(SUBJECTS) <= SUBJECTS[name]
    for_tests = ours(manifest, FOR_TESTS) & set(SUBJECTS)
    assert for_tests <= SUBJECTS[name] | SUBJECTS_FOR_TESTS.get(name, set())


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_subject_does_not_link_the_seam(name: str) -> None:
    assert linked(name) & set(INSTRUMENT) <= OFFERED_TO_SUBJECTS


def test_no_program_links_what_is_for_tests() -> None:
    for name in {*INSTRUMENT, *SUBJECTS} - FOR_TESTS_ALONE:
        assert not linked(name) & FOR_TESTS_ALONE, name


@pytest.mark.parametrize("crates_in_order", [INSTRUMENT, SUBJECTS], ids=["instrument", "subjects"])
def test_an_order_has_no_circle(crates_in_order: dict[str, set[str]]) -> None:
    order = list(crates_in_order)
    for name, lower in crates_in_order.items():
        assert all(order.index(other) < order.index(name) for other in lower)


#: The files that make a program of tests of a folder.
TEST_PROGRAMS = sorted(ROOT.glob("*/*/tests/*/main.rs"))


@pytest.mark.parametrize("main", TEST_PROGRAMS, ids=lambda it: str(it.relative_to(ROOT).parent))
def test_every_file_of_a_program_of_tests_is_compiled(main: Path) -> None:
    """A file that no other one names as a module is ignored by the compiler, with all its tests."""
    declared = set(re.findall(r"^mod (\w+);", main.read_text(), re.MULTILINE))
    assert {path.stem for path in main.parent.glob("*.rs")} - {"main"} - declared == set()
