"""Names of runs."""

from __future__ import annotations

import itertools
import secrets

import pytest

from concurve.measuring import heads
from tests.helpers.fakes import small_study


def test_runs_that_begin_within_a_second_have_names_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digits = itertools.chain(["beef", "beef", "beef"], map("{:04x}".format, itertools.count()))
    monkeypatch.setattr(secrets, "token_hex", lambda _: next(digits))
    first, second = (heads.new_head(small_study(), "quick", 1, "again").id for _ in range(2))
    assert first != second
