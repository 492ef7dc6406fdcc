"""Whoever reads that a test was skipped learns what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.lacking import lacking


def test_a_reason_names_the_versions_and_the_script(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for version in ("10", "18"):
        monkeypatch.setenv(f"CONCURVE_POSTGRESQL_{version}", str(tmp_path / "nothing"))
    reason = lacking("postgresql-10", "postgresql-18")
    assert reason.startswith("needs postgresql-10 and postgresql-18; ")
    assert "scripts/install-postgresql.sh 10" in reason
    assert "scripts/install-postgresql.sh 18" in reason
