"""The Containerfile, against what the project has: no image is built here."""

from __future__ import annotations

import fnmatch
import re
import shlex
import tomllib

import pytest

from tests.helpers.wheels import ROOT

pytestmark = pytest.mark.skipif(not (ROOT / "native").exists(), reason="not a checkout")


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile, each with its arguments."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def test_what_is_copied_is_sent_to_the_builder() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sent = [line[1:] for line in ignored if line.startswith("!")]
    assert "*" in ignored
    copied = [rest.split()[0] for word, rest in instructions() if word == "COPY"]
    own = [source for source in copied if not source.startswith("--from")]
    assert own
    for source in own:
        assert source in sent, source
    assert sorted(sent) == sorted(own), "nothing is sent that is not copied"


def test_its_python_is_one_that_the_wheels_run_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    least = re.fullmatch(r">=3\.(\d+)", project["requires-python"])
    assert least is not None
    images = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    assert len(set(images)) == 1, "a virtual environment needs the Python that made it"
    found = re.fullmatch(r"python:3\.(\d+)-slim", images[0])
    assert found is not None and int(found[1]) >= int(least[1])


def test_it_installs_both_wheels_and_the_driver_of_the_store() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (install,) = (rest for word, rest in instructions() if word == "RUN" and "pip install" in rest)
    words = shlex.split(install)
    pattern = next(word for word in words if word.endswith(".whl")).removeprefix("/wheels/")
    assert fnmatch.fnmatch("concurve-0.1.0-py3-none-any.whl", pattern)
    assert fnmatch.fnmatch("concurve_native-0.1.0-py3-none-manylinux_2_28_x86_64.whl", pattern)
    assert set(project["optional-dependencies"]["postgresql"]) <= set(words)
    assert words[words.index("--constraint") + 1] == "/wheels/constraints.txt"


def test_it_runs_as_an_ordinary_user_who_owns_the_store() -> None:
    known = dict(instructions())
    store = re.search(r"CONCURVE_DB=(\S+)", known["ENV"])
    assert store is not None and store[1].startswith(f"{known['VOLUME']}/")
    assert known["WORKDIR"] == known["VOLUME"]
    assert known["USER"] != "0"
    (made,) = (rest for word, rest in instructions() if word == "RUN" and "useradd" in rest)
    assert f"useradd --uid {known['USER']} " in made
    assert f"--owner=concurve --group=concurve {known['VOLUME']}" in made
