"""Published curves and what is known of them. Each file names its source."""

from __future__ import annotations

from pathlib import Path

from concurve.columns import read_columns

CURVES = Path(__file__).parent / "curves"


def curve(name: str) -> tuple[list[float], list[float]]:
    """Levels and figures of a published curve."""
    file = CURVES / f"{name}.csv"
    lines = file.read_text(encoding="utf-8").splitlines()
    heading = next(line for line in lines if not line.startswith("#")).split(",")
    columns = read_columns(file, heading)
    return columns[heading[0]], columns[heading[1]]
