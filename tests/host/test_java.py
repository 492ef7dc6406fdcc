"""Which Java is chosen, and what is said of those that will not do."""

from __future__ import annotations

from pathlib import Path

import pytest

from concurve.definition.study import with_java
from concurve.definition.study_file import parse_study
from concurve.errors import HostError, StudyError
from concurve.host import java
from concurve.host.java import find_java, parse_version
from concurve.measuring import packaged

TEMURIN = """openjdk version "25.0.1" 2025-10-21 LTS
OpenJDK Runtime Environment Temurin-25.0.1+8 (build 25.0.1+8-LTS)
OpenJDK 64-Bit Server VM Temurin-25.0.1+8 (build 25.0.1+8-LTS, mixed mode, sharing)
"""
OLD = 'java version "1.8.0_392"\nJava(TM) SE Runtime Environment (build 1.8.0_392-b08)\n'


@pytest.fixture(autouse=True)
def _bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java anywhere, but what a test puts there."""
    for name in ("CONCURVE_JAVA", "JAVA_HOME", "CONCURVE_JAR", "CONCURVE_NATIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(java, "JDK_FOLDERS", tmp_path / "jvm")


def jdk(folder: Path, script: str) -> Path:
    """The folder of a JDK whose ``java`` does what the script says."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return folder


def of_version(folder: Path, version: str) -> Path:
    return jdk(folder, f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")


def test_versions_are_read() -> None:
    found = parse_version(TEMURIN, Path("/j"))
    assert isinstance(found, java.Java)
    assert (found.version, found.major) == ("25.0.1", 25)
    assert found.runtime.startswith("OpenJDK Runtime Environment Temurin")
    old = parse_version(OLD, Path("/j"))
    assert isinstance(old, java.Java)
    assert old.major == 8
    assert "names no version" in str(parse_version("hello", Path("/j")))


def test_the_order_is_variable_home_path_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_version(tmp_path / "jvm" / "a17", "17.0.1")
    of_version(tmp_path / "jvm" / "b25", "25")
    assert find_java(None, "x").version == "25"
    assert find_java("17", "x").version == "17.0.1"
    assert find_java("17+", "x").version == "17.0.1"
    assert find_java("18+", "x").version == "25"
    monkeypatch.setenv("PATH", str(of_version(tmp_path / "path", "21.0.2") / "bin"))
    assert find_java(None, "x")[1::3] == ("21.0.2", "first on PATH")
    monkeypatch.setenv("JAVA_HOME", str(of_version(tmp_path / "home", "22")))
    assert find_java(None, "x").chosen == "by JAVA_HOME"
    own = of_version(tmp_path / "own", "23")
    monkeypatch.setenv("CONCURVE_JAVA", str(own / "bin" / "java"))
    assert find_java(None, "x")[1::3] == ("23", "by CONCURVE_JAVA")
    assert find_java(str(tmp_path / "home"), "x").version == "22"


def test_none_at_all_names_the_package() -> None:
    with pytest.raises(HostError, match=r"(?s)role target: no Java found.*apt-get install default"):
        find_java(None, "role target")
    with pytest.raises(HostError, match=r"(?s)no Java 25 found; there is none.*openjdk-25-jre"):
        find_java("25", "role target")
    with pytest.raises(HostError, match="neither a program nor the folder of a JDK"):
        find_java("/nonexistent", "role target")


def test_broken_ones_are_named_and_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_version(tmp_path / "jvm" / "good", "21")
    monkeypatch.setenv("JAVA_HOME", str(jdk(tmp_path / "broken", "echo no libjvm.so; exit 6")))
    with pytest.raises(HostError, match=r"broken/bin/java \(by JAVA_HOME\) is broken: .* with 6"):
        find_java(None, "x")
    assert find_java("21", "x").version == "21"
    mute = jdk(tmp_path / "mute", "exit 0")
    with pytest.raises(HostError, match=r"mute.*names no version"):
        find_java(str(mute), "x")
    with pytest.raises(HostError, match=r"is version 11\.0\.2, 17 or newer is needed"):
        find_java(str(of_version(tmp_path / "old", "11.0.2")), "x")


def test_the_command_line_of_a_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = of_version(tmp_path / "home", "21")
    jar = tmp_path / "k.jar"
    monkeypatch.setenv("CONCURVE_JAR", str(jar))
    with pytest.raises(HostError, match=r"(?s)concurve-mandelbrot\.jar is not built.*maven"):
        packaged.command("mandelbrot-java", "x", str(home))
    jar.touch()
    head = packaged.command("mandelbrot-java", "x", str(home), ["-XX:+UseSerialGC"])
    assert head[0] == str(home / "bin" / "java")
    assert head[-3:] == ("-XX:+UseSerialGC", "-jar", str(jar))
    described = packaged.describe("mandelbrot-java", "x", str(home))
    assert described["path"] == str(jar)
    assert described["java"]["version"] == "21"


STUDY = """
[study]
name = "s"
question = "?"
[factors]
java = [17, 25]
[[roles]]
name = "target"
{role}
"""


def test_a_study_says_which_java_and_how() -> None:
    role = 'program = "mandelbrot-java"\njava = "{java}"\njvm = ["-XX:+UseSerialGC"]'
    study = parse_study(STUDY.replace("{role}", role), 2, "s.toml")
    assert (study.roles[0].java, study.roles[0].jvm) == ("{java}", ("-XX:+UseSerialGC",))
    assert with_java(study, "21") == study
    one = STUDY.replace("[17, 25]", "[17]")
    bare = parse_study(one.replace("{role}", 'program = "mandelbrot-java"'), 2, "s.toml")
    assert with_java(bare, "21").roles[0].java == "21"


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ('program = "mandelbrot"\njvm = ["-Xint"]', "jvm given, but mandelbrot is no packaged"),
        ('command = ["java"]\njava = 17', "java given, but a command is no packaged"),
        ('program = "mandelbrot-java"\njvm = ["Xint"]', "'Xint' is no option of a JVM"),
        ('program = "mandelbrot-java"\njava = "{jdk}"', "role target, java: placeholder {jdk}"),
    ],
)
def test_java_where_it_does_not_belong_is_refused(role: str, words: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse_study(STUDY.replace("{role}", role), 2, "s.toml")
    assert words in str(refused.value)
