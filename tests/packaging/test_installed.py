"""The wheels, installed by pip into a fresh environment on a machine without toolchains."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.version import __version__
from tests.helpers import wheels
from tests.helpers.real import missing
from tests.helpers.wheels import ROOT, Installation

pytestmark = pytest.mark.skipif(not (ROOT / "native").exists(), reason="not a checkout")

SWEEP = ("sweep", "-P", "n", "1,2", "--effort", "quick", "--repeats", "5", "--db", "runs.db", "--")


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the laboratory."""
    return wheels.laboratory_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(laboratory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Both distributions, the second with the programs that the tests run."""
    if (reason := missing()) is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("installed")
    installation = Installation(folder)
    programs = wheels.programs_wheel(folder)
    done = installation.pip("install", "--no-index", "--no-deps", str(laboratory), str(programs))
    assert done.returncode == 0, done.stderr
    installation.lend_packages()
    yield installation


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def works(installation: Installation, programs_too: bool = True) -> None:
    """What a new user does first, each with the programs of the environment. ``programs_too``: the
    compiled programs are commands as well."""
    version = installation.run("concurve", "--version")
    assert version.stdout == f"concurve {__version__}\n", version.stderr

    swept = installation.run("concurve", *SWEEP, "sh", "-c", "exit 0", "{n}")
    assert swept.returncode == 0, swept.stderr

    if programs_too:
        ours = ("concurve-targets", "busy", "--threads", "{n}", "--total-iterations", "1000000")
        swept = installation.run("concurve", *SWEEP, *ours)
        assert swept.returncode == 0, swept.stderr

    checked = installation.run("concurve", "machine", "check")
    assert checked.returncode == 0, checked.stderr
    assert len(checked.stdout.splitlines()) > 5

    shown = installation.run("concurve", "show", "last", "--db", "runs.db", "--json")
    assert shown.returncode == 0, shown.stderr
    assert len(json.loads(shown.stdout)["cells"]) == 2


@pytest.mark.real
def test_the_laboratory_works_without_a_toolchain(installed: Installation) -> None:
    works(installed)


@pytest.mark.real
def test_it_is_the_installed_laboratory_that_ran(installed: Installation) -> None:
    found = installed.run("python", "-c", "import concurve; print(concurve.__file__)")
    assert Path(found.stdout.strip()).is_relative_to(installed.folder)


@pytest.mark.real
def test_what_the_wheels_require_is_what_the_tests_run_with(installed: Installation) -> None:
    checked = installed.pip("check").stdout.splitlines()
    assert [line for line in checked if line.startswith("concurve")] == []


@pytest.mark.real
def test_a_missing_java_is_named(installed: Installation) -> None:
    """Without the jar, or without a Java where ``PATH`` has none: refused, with the remedy."""
    done = installed.run("concurve", "run", "java-threads/tc01", "--java", "/none")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "try:" in done.stderr
    assert "Traceback" not in done.stderr
    assert "mandelbrot-java/target" not in done.stderr  # a place in checkouts alone


@pytest.mark.real
def test_the_manual_and_the_completions_are_where_shells_look(installed: Installation) -> None:
    share = installed.folder / "venv" / "share"
    assert (share / "man/man1/concurve-sweep.1").is_file()
    assert (share / "bash-completion/completions/concurve").is_file()
    assert (share / "zsh/site-functions/_concurve").is_file()
    assert (share / "fish/vendor_completions.d/concurve.fish").is_file()


def test_the_wheel_holds_all_of_the_package(laboratory: Path) -> None:
    package = ROOT / "src"
    files = {
        str(file.relative_to(package))
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert files - names(laboratory) == set()


def test_the_wheel_holds_the_jar_where_it_has_been_built(laboratory: Path) -> None:
    built = (ROOT / "subjects/mandelbrot-java/target/concurve-mandelbrot.jar").is_file()
    assert ("concurve/jars/concurve-mandelbrot.jar" in names(laboratory)) == built


def test_the_wheel_has_its_licence_and_its_readme(laboratory: Path) -> None:
    folder = f"concurve-{__version__}.dist-info"
    assert f"{folder}/licenses/LICENSE" in names(laboratory)
    with zipfile.ZipFile(laboratory) as archive:
        metadata = archive.read(f"{folder}/METADATA").decode()
    assert "\nLicense-Expression: MIT\n" in metadata
    assert "\nDescription-Content-Type: text/markdown\n" in metadata


def test_both_distributions_have_one_version() -> None:
    laboratory = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    programs = tomllib.loads((ROOT / "native" / "pyproject.toml").read_text())["project"]
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    assert laboratory["version"] == programs["version"] == workspace["version"] == __version__
    assert laboratory["optional-dependencies"]["native"] == [f"concurve-native=={__version__}"]


@pytest.mark.soak
def test_the_wheels_of_make_wheels_install_with_all_that_they_require(tmp_path: Path) -> None:
    """As users have them: both wheels of ``dist/``, their requirements from the registry."""
    built = sorted((ROOT / "dist").glob("concurve*.whl"))
    if len(built) != 2:
        pytest.skip("dist/ does not hold both wheels: make wheels")
    installation = Installation(tmp_path)
    if installation.pip("download", "--no-deps", "--dest", str(tmp_path), "click").returncode != 0:
        pytest.skip("pip finds no registry of packages")
    done = installation.pip("install", *map(str, built))
    assert done.returncode == 0, done.stderr
    works(installation)


def pipx_rows() -> list[tuple[str, ...]]:
    """The commands of each row of the page on installation that begin with pipx."""
    page = ROOT / "docs" / "install.md"
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    rows = [line for line in text.splitlines() if "`pipx install" in line]
    return [tuple(re.findall(r"`(pipx [^`]+)`", row)) for row in rows]


def test_the_page_has_one_command_for_pipx_and_two_for_an_older_one() -> None:
    one, two = pipx_rows()
    assert (len(one), len(two)) == (1, 2)


@pytest.mark.soak
@pytest.mark.parametrize("commands", pipx_rows(), ids=len)
def test_pipx_installs_it_by_the_commands_of_the_page(
    laboratory: Path, commands: tuple[str, ...], tmp_path: Path
) -> None:
    """With the wheels of ``make wheels`` where they are built, else with those of the tests."""
    if (reason := missing()) is not None:
        pytest.skip(reason)
    installation = Installation(tmp_path)
    dist = installation.home / "dist"
    dist.mkdir()
    built = sorted((ROOT / "dist").glob("concurve*.whl"))
    for wheel in built if len(built) == 2 else (laboratory, wheels.programs_wheel(tmp_path)):
        shutil.copy(wheel, dist)
    if installation.pip("install", "pipx>=1.5").returncode != 0:
        pytest.skip("pip finds no registry of packages")
    pipx = installation.bin
    installation.bin = tmp_path / "bin"
    installation.environment |= {
        "PATH": f"{installation.bin}:{pipx}:{installation.environment['PATH']}",
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(installation.bin),
        "PIPX_MAN_DIR": str(tmp_path / "man"),
        "PIPX_DEFAULT_PYTHON": sys.executable,
    }
    for command in commands:
        done = installation.shell(command)
        assert done.returncode == 0, done.stdout + done.stderr
    works(installation, programs_too=len(commands) == 2)
    assert (tmp_path / "man/man1/concurve-sweep.1").exists()
