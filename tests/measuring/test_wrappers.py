"""A command that is a shell script around the program is said before its trials."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from concurve.measuring.wrappers import wrapper_before
from tests.helpers.fakes import small_study


def script(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "python9"
    file.write_text(text)
    file.chmod(0o755)
    return file


def said(monkeypatch: pytest.MonkeyPatch, file: Path, command: str = "python9") -> str:
    monkeypatch.setenv("PATH", str(file.parent))
    study = small_study(threads=(1, 2))
    role = msgspec.structs.replace(study.roles[0], command=(command, "p.py", "{threads}"))
    return wrapper_before(msgspec.structs.replace(study, roles=(role,)))


@pytest.mark.parametrize("first", ["#!/bin/sh", "#! /usr/bin/env bash", "#!/usr/bin/bash -e"])
def test_a_shim_is_told_with_what_prints_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, first: str
) -> None:
    shim = script(tmp_path / ".pyenv" / "shims", f"{first}\nexec pyenv exec python9\n")
    note = said(monkeypatch, shim)
    assert note.startswith(f"python9 is a shell script, {shim}: each trial holds")
    assert note.endswith("as `pyenv which python9` prints it")
    assert len(note.split()) <= 40
    other = script(tmp_path / "bin", f"{first}\nexec python9.1\n")
    assert said(monkeypatch, other).endswith("as its last lines have it")


def test_a_program_and_a_path_that_the_user_wrote_are_not_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = script(tmp_path / "a", "\x7fELF")
    assert said(monkeypatch, file) == ""
    assert said(monkeypatch, file, "missing") == ""
    perl = script(tmp_path / "b", "#!/usr/bin/perl\n")
    assert said(monkeypatch, perl) == ""
    shell = script(tmp_path / "c", "#!/bin/sh\n")
    assert said(monkeypatch, shell, str(shell)) == "", "as written"
    assert said(monkeypatch, shell, "{threads}") == "", "a level"
