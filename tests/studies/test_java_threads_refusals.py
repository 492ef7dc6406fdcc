"""What the campaign java-threads says where it cannot run: no Java, a broken one, a bad setting."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import concurve
from concurve.cli import app
from concurve.definition.study_file import load_study, parse_study
from concurve.engine.local import LocalEngine
from concurve.errors import CampaignError, HostError, RunError, StudyError
from concurve.host import java, native
from concurve.measuring import packaged
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store

FOLDER = Path(concurve.__file__).parent / "studies" / "java-threads"


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any."""
    for name in ("CONCURVE_JAVA", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(java, "JDK_FOLDERS", tmp_path / "none")
    jar = tmp_path / "kernel.jar"
    jar.touch()
    monkeypatch.setenv("CONCURVE_JAR", str(jar))


def run_some() -> Result:
    """Test cases 2 and 3 of the campaign."""
    arguments = ["run", "java-threads", "--only", "tc02,tc03", "--effort", "quick", "--seed", "1"]
    return CliRunner().invoke(app, arguments)


def reasons() -> dict[str, str]:
    store = Store()
    (row,) = store.campaigns()
    return {member.name: member.reason for member in store.members(row.id)}


@pytest.mark.real
@pytest.mark.usefixtures("no_java")
def test_without_java_each_study_names_the_package() -> None:
    done = run_some()
    assert isinstance(done.exception, CampaignError)
    assert "tc02 (not run), tc03 (not run)" in done.exception.what
    for name, reason in reasons().items():
        assert "no Java found" in reason, name
        assert "apt-get install default-jre-headless" in reason, name
        assert f"{name} was not run: " in done.stderr


@pytest.mark.real
@pytest.mark.usefixtures("no_java")
def test_a_broken_java_is_named_with_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "jdk" / "bin" / "java"
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/bin/sh\necho libjvm.so: cannot open shared object file >&2\nexit 6\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CONCURVE_JAVA", str(broken.parent.parent))
    assert isinstance(run_some().exception, CampaignError)
    for reason in reasons().values():
        assert f"the Java {broken} (by CONCURVE_JAVA) is broken" in reason
        assert "libjvm.so" in reason and "apt-get install" in reason


def test_a_class_that_stands_for_nothing_is_refused(tmp_path: Path) -> None:
    text = (FOLDER / "tc04" / "study.toml").read_text().replace('"high", ', '"high", "turbo", ', 1)
    (tmp_path / "tc04").mkdir()
    (tmp_path / "tc04" / "study.toml").write_text(text)
    (tmp_path / "shared.toml").write_text((FOLDER / "shared.toml").read_text())
    with pytest.raises(StudyError) as refused:
        load_study(tmp_path / "tc04" / "study.toml", 2)
    assert "'turbo' stands for nothing" in refused.value.what
    assert "levels.class" in refused.value.what and refused.value.remedy


STUDY = """
[study]
name = "bad"
question = "?"
[factors]
value = [{value}]
[[roles]]
name = "target"
program = "mandelbrot-java"
arguments = ["--width", "8", "--height", "8", "{option}", "{{value}}"]
"""


def why_not() -> str | None:
    """Why the kernel cannot be run here, or ``None``."""
    try:
        native.runner()
        packaged.command("mandelbrot-java", "test")
    except HostError as error:
        return str(error)
    return None


@pytest.mark.real
@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--priority", "11", ["'11'", "--priority", "1..=10"]),
        ("--threads", "4000000000", ["0 of 4000000000 could be created", "the limit that bit"]),
    ],
)
def test_what_the_kernel_refuses_the_run_says(option: str, value: str, words: list[str]) -> None:
    study = parse_study(STUDY.format(option=option, value=value), 2, "bad.toml")
    store = Store()
    head = new_head(study, "quick", 1, "concurve run bad.toml")
    with pytest.raises(RunError) as failed:
        Runner(head, store, LocalEngine()).start()
    said = f"{failed.value.what} {failed.value.remedy}"
    for word in words:
        assert word in said, said
