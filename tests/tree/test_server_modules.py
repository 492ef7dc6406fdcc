"""The order of the server's modules: its root file lists them, and each imports only lower ones."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from tests.tree.test_import_circles import SCRIPT

CRATE = Path(__file__).parents[2] / "subjects" / "server"
#: The crate's own root, and the binary's.
ROOTS = {"lib", "under_test"}


def rows() -> list[list[str]]:
    """The modules of each row of the table in ``lib.rs``, the highest first."""
    text = (CRATE / "src" / "lib.rs").read_text()
    cells = re.findall(r"^//! \| (\[?`\w+`.*?) \|", text, re.MULTILINE)
    return [re.findall(r"`(\w+)`", cell) for cell in cells]


@functools.cache
def imported() -> dict[str, set[str]]:
    """What each module, with the files below it, imports of other modules."""
    modules: dict[str, set[str]] = {}
    for file, others in SCRIPT.rust_imports(CRATE).items():
        used = modules.setdefault(module(file), set())
        used |= {module(other) for other in others} - {module(file)}
    return {name: used for name, used in modules.items() if name not in ROOTS}


def module(file: str) -> str:
    return Path(file).parts[0].removesuffix(".rs")


HEIGHTS = {name: -height for height, row in enumerate(rows()) for name in row}


def test_every_module_is_listed_once() -> None:
    names = [name for row in rows() for name in row]
    assert sorted(names) == sorted(imported())


@pytest.mark.parametrize("name", HEIGHTS)
def test_a_module_imports_only_lower_ones(name: str) -> None:
    not_lower = {used for used in imported()[name] if HEIGHTS[used] >= HEIGHTS[name]}
    assert not not_lower
