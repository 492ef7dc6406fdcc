"""The files that `tests/conftest.py` names: one that has moved would lose its mark or its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import conftest

TESTS = Path(conftest.__file__).parent
HERE = {"/".join(file.parts[-2:]) for file in TESTS.rglob("test_*.py")}


# In one order: the processes that share the tests must collect the same.
@pytest.mark.parametrize(
    "name", sorted({*conftest.LONG, *conftest.SIMULATIONS, *conftest.REAL_FILES})
)
def test_a_named_file_exists(name: str) -> None:
    assert name in HERE
