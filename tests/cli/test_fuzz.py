"""``concurve fit`` of files with any contents: fitted, or refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from concurve.analysis.fit import Numbers, fit_numbers
from concurve.columns import read_columns
from concurve.models import little
from tests.helpers.fuzzing import fuzz
from tests.models.reference import CURVES

pytestmark = pytest.mark.fuzz

SMALL = (
    b"threads,rps,seconds\n1,100,0.01\n2,190,0.0105\n4,350,0.0114\n"
    b"8,600,0.0133\n8,610,0.0131\n16,800,0.02\n"
)
WORDS = [
    b",",
    b";",
    b"\t",
    b"\n",
    b"\r",
    b'"',
    b"#",
    b"threads",
    b"rps",
    b"1e308",
    b"1e-308",
    b"5e-324",
    b"\0",
    b"\x85",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b" ",
]


def columns(file: Path, data: bytes, *names: str) -> dict[str, list[float]]:
    file.write_bytes(data)
    return read_columns(file, names)


def test_files_of_numbers(tmp_path: Path) -> None:
    file = tmp_path / "measured.csv"
    curves = [path.read_bytes() for path in sorted(CURVES.glob("*.csv"))]
    fuzz(lambda data: columns(file, data, "threads", "rps"), [SMALL, *curves], WORDS)


def test_fits_of_such_numbers(tmp_path: Path) -> None:
    file = tmp_path / "measured.csv"

    def parse(data: bytes) -> None:
        read = columns(file, data, "threads", "rps")
        numbers = Numbers(read["threads"], read["rps"], "threads", "rps")
        fit_numbers(numbers, [32.0], absolute=False, confidence=0.95)

    fuzz(parse, [SMALL], WORDS, cases=10)


def test_numbers_completed_by_littles_law(tmp_path: Path) -> None:
    file = tmp_path / "measured.csv"

    def parse(data: bytes) -> None:
        read = columns(file, data, "threads", "seconds")
        little.check(little.complete(read["threads"], None, read["seconds"], 0.0))

    fuzz(parse, [SMALL], WORDS, cases=30)
