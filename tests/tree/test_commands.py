"""Every command line of ``concurve`` that a document or an example shows can be parsed."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from tests.helpers.commands import code_blocks, command_lines, parse

ROOT = Path(__file__).resolve().parents[2]


def shown() -> list[tuple[str, list[str]]]:
    """Where a command line stands, and its words."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [(page, code_blocks(page.read_text(encoding="utf-8"))) for page in pages]
    scripts = sorted((ROOT / "examples").glob("*/run.sh"))
    found += [(script, script.read_text(encoding="utf-8")) for script in scripts]
    return [
        (str(file.relative_to(ROOT)), words)
        for file, code in found
        for words in command_lines(code)
    ]


pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="not a checkout")


def test_the_commands_of_documents_and_examples_can_be_parsed() -> None:
    lines = shown()
    wrong = []
    for where, words in lines:
        try:
            parse(words)
        except click.ClickException as error:
            wrong.append(f"{where}: {' '.join(words)}: {error.format_message()}")
    assert wrong == []
    assert {words[1] for _, words in lines} >= {"sweep", "run", "resume", "fit", "load", "compare"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("$ concurve sweep -P n 1,2 -- ./a {n}", ["sweep", "-P", "n", "1,2", "--", "./a", "{n}"]),
        ("concurve sweep -- \\\n    ./mine", ["sweep", "--", "./mine"]),
        ("concurve export last > run.json", ["export", "last"]),
        ("  concurve show last --json | jq", ["show", "last", "--json"]),
        ("concurve compare a b    # two runs", ["compare", "a", "b"]),
        ("concurve run x --attach \"$(cat pid)\"; y", ["run", "x", "--attach", "$(cat pid)"]),
    ],
)  # fmt: skip
def test_what_is_taken_for_a_command_line(text: str, words: list[str]) -> None:
    assert list(command_lines(text)) == [["concurve", *words]]


def test_what_is_no_command_line() -> None:
    assert list(command_lines("concurve: it failed\nxconcurve show\n# concurve show")) == []


@pytest.mark.parametrize(
    "line", ["concurve swep -- x", "concurve show last --jason", "concurve machine chek"]
)
def test_a_wrong_command_line_is_refused(line: str) -> None:
    with pytest.raises(click.ClickException):
        parse(line.split())
