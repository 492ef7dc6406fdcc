"""Several programs on a command line where one was expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from concurve.definition.versions import as_levels, other_programs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sub").mkdir()
    for name in ("old", "new", "sub/third"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "data").write_text("")
    (tmp_path / "make").symlink_to("old")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "others"),
    [
        ("./old ./new", ["./new"]),
        ("./old ./new ./sub/third", ["./new", "./sub/third"]),
        ("{folder}/old ./new", ["./new"]),
        ("./old", []),
        ("./old ./data", []),
        ("./old ./new --fast", []),
        ("./old ./sub", []),
        ("./old ./none", []),
        ("./old {{n}}", []),
        ("make new", []),
        ("old new", []),
    ],
)
def test_arguments_that_are_programs_are_other_versions(
    folder: Path, line: str, others: list[str]
) -> None:
    assert other_programs(line.format(folder=folder).split()) == others


def test_versions_are_levels() -> None:
    assert as_levels(["./old", "./new"]) == ("old,new", "./{version}")
    assert as_levels(["/srv/old", "/srv/new"]) == ("old,new", "/srv/{version}")
    assert as_levels(["./a/p", "./b/p"]) == ("./a/p,./b/p", "{version}")
    assert as_levels(["./an old", "./new"]) == ("'an old,new'", "./{version}")
