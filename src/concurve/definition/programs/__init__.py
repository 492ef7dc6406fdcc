"""What our programs report: ``PROGRAM.toml`` beside this file states each indicator once, with its
label, unit and better direction, so that a study need only name it.

``[indicators]`` has what the program reports itself. ``[measured]`` has what the laboratory
measures of the measured role and the program gives a meaning to: the operations that a load counts
are those of the server. Labels may hold ``{with.NAME}``; ``[with]`` has the default values, which a
study may replace.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from concurve.definition.toml_file import read_tables, read_text


class IndicatorText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The entry of an indicator in a table; ``description`` adds to the label. ``failures`` says
    that it counts failures, and among what (:mod:`~concurve.definition.failures`)."""

    label: str
    unit: str = ""
    better: Literal["lower", "higher", "neither"] = "neither"
    description: str = ""
    failures: str = ""


class Led(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ``figures`` that one copy reports for all of them, where each other copy has a ``fact``
    of this ``value``."""

    fact: str
    value: str
    figures: tuple[str, ...]


class Copies(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the figures of several copies of a program are together: the ``sum`` of these
    indicators, or the ``greatest`` of them; and which ``histograms``, added, give the percentiles
    that begin with a name. The first histogram is that of each copy; the others are not always
    reported. ``led``: where one of the copies leads the others."""

    sum: tuple[str, ...] = ("operations",)
    greatest: tuple[str, ...] = ()
    led: Led | None = None
    histograms: dict[str, tuple[str, ...]] = {}


class Program(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"words": "with"}):
    """The table of a program; ``java`` marks those that a JVM runs, ``copies`` says what the
    figures of several copies are together."""

    indicators: dict[str, IndicatorText]
    measured: dict[str, IndicatorText] = {}
    words: dict[str, str] = {}
    java: bool = False
    copies: Copies = Copies()


_KEYS: dict[str, type[msgspec.Struct]] = {"": Program, "copies": Copies, "led": Led}


@cache
def programs() -> Mapping[str, Program]:
    """The tables by program."""
    return {
        path.stem: read_tables(
            read_text(path, "a program's table"), str(path), Program, _KEYS, "docs/studies.md"
        )
        for path in sorted(Path(__file__).parent.glob("*.toml"))
    }


def program(name: str) -> Program | None:
    """The table of a program by the name that studies use: ``postgresql-18`` has that of
    ``postgresql``. ``None`` if the program reports nothing and so has no table."""
    tables = programs()
    return tables.get(name) or tables.get(name.partition("-")[0])


def java_programs() -> list[str]:
    """The packaged programs that are jars."""
    return [name for name, table in programs().items() if table.java]
