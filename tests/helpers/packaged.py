"""The packaged studies, each read once for all tests of a process: to read all takes a second.

For tests that read what is found and change nothing in it. A file may change, so it is read anew.
"""

from __future__ import annotations

from functools import cache

from concurve.definition import catalogue
from concurve.definition.campaign import Campaign
from concurve.definition.study import Study

_find = cache(catalogue.find)
_find_study = cache(catalogue.find_study)


def find(name: str, cpus: int) -> Study | Campaign:
    """As that of the catalogue."""
    return (catalogue.find if name.endswith(".toml") else _find)(name, cpus)


def find_study(name: str, cpus: int) -> Study:
    """As that of the catalogue."""
    return (catalogue.find_study if name.endswith(".toml") else _find_study)(name, cpus)
