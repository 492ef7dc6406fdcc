"""Which files a laboratory has, so that another host has the same ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from concurve.errors import HostError
from concurve.host import native
from concurve.host.own_files import PACKAGE, differing, own_files


def files(folder: Path) -> dict[str, str]:
    return own_files(folder / "concurve", [folder / "concurve-trial"])


def made(folder: Path) -> Path:
    (folder / "concurve" / "host").mkdir(parents=True)
    (folder / "concurve" / "host" / "a.py").write_text("1")
    (folder / "concurve-trial").write_text("trial")
    return folder


def test_a_change_of_any_file_is_seen_and_what_is_compiled_is_not(tmp_path: Path) -> None:
    one, other = made(tmp_path / "one"), made(tmp_path / "other")
    cache = other / "concurve" / "host" / "__pycache__"
    cache.mkdir()
    (cache / "a.pyc").write_text("x")
    before = files(one)
    assert differing(before, files(other)) is None
    (other / "concurve" / "host" / "a.py").write_text("2")
    assert differing(before, files(other)) == PACKAGE
    (other / "concurve" / "host" / "a.py").write_text("1")
    (other / "concurve" / "host" / "b.py").write_text("")
    assert differing(before, files(other)) == PACKAGE
    (other / "concurve" / "host" / "b.py").unlink()
    (other / "concurve-trial").write_text("another")
    assert str(differing(before, files(other))).startswith("concurve-native for ")


def test_programs_of_another_architecture_are_not_compared() -> None:
    ours = {PACKAGE: "1", "concurve-native for x86_64": "2"}
    assert differing(ours, {PACKAGE: "1", "concurve-native for aarch64": "3"}) is None
    assert differing(ours, {}) == PACKAGE, "an older version says nothing of its files"


def test_what_a_compiler_leaves_beside_the_programs_is_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = made(tmp_path) / "concurve"
    runner = tmp_path / "concurve-trial"
    runner.chmod(0o755)
    monkeypatch.setattr(native, "runner", lambda: runner)
    before = own_files(package)
    (tmp_path / "concurve-trial.d").write_text(f"{tmp_path}/concurve-trial: main.rs")
    assert own_files(package) == before


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    package = made(tmp_path) / "concurve"
    (package / "gone.py").symlink_to(tmp_path / "nothing")
    with pytest.raises(HostError, match=r"gone\.py: No such file"):
        own_files(package, [])


def test_this_laboratory_has_files() -> None:
    assert all(len(digest) == 64 for digest in own_files(programs=()).values())
