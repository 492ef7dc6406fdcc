"""The files and folders that the Markdown pages name, and the pages that they link to, exist."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import get_args

import pytest

from concurve.findings.explanation import Cause

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")

#: What is built or installed, and stands in no checkout.
BUILT = (".venv/", ".concurve/", "build/", "dist/", "subjects/mandelbrot-java/target")

#: Files and folders that a page tells its reader to write.
TO_WRITE = {
    "docs/howto/add-a-packaged-study.md": ("src/concurve/studies/lock-latching/study.toml",),
    "docs/howto/add-a-real-server.md": ("valkey.py", "valkey-server.toml"),
    "docs/howto/add-a-report-section.md": ("longest.py",),
    "docs/howto/add-a-scaling-model.md": ("usl_cbrt.py",),
}

#: Files of the reader's own in examples.
EXAMPLES = {
    "path/to/study.toml",
    "renderer.toml",
    "report.html",
    "report.md",
    "run.json",
    "std.html",
    "std.md",
}

#: Names that stand for any: ``NAME``, ``tcNN``, ``*``.
_PLACEHOLDER = re.compile(r"[A-Z]{2,}|\*")
_CODE_BLOCK = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`]+)`")
_WORD = re.compile(r"\.?[\w*-][\w.*-]*(?:/[\w.*-]+)*/?")
_LINK = re.compile(r"\]\(\s*([^)\s]+)[^)]*\)")
_HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)
_ANCHOR = re.compile(r'\b(?:id|name)="([^"]+)"')


@cache
def tree() -> frozenset[str]:
    """Every file of the checkout that git does not ignore, and every folder with such a file."""
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    files = [PurePosixPath(name) for name in done.stdout.splitlines() if (ROOT / name).exists()]
    folders = {folder for file in files for folder in file.parents}
    return frozenset(map(str, [*files, *folders]))


@cache
def suffixes() -> frozenset[str]:
    """The endings of the names of files in the tree."""
    return frozenset(PurePosixPath(name).suffix for name in tree()) - {""}


@cache
def ends() -> frozenset[str]:
    """Every path of the tree, from each of its parts on: pages name files from various folders."""
    parts = [PurePosixPath(name).parts for name in tree()]
    return frozenset("/".join(some[at:]) for some in parts for at in range(len(some)))


def pages() -> list[str]:
    """The Markdown files; those of the tests are what programs print."""
    if not (ROOT / ".git").exists():
        return []
    return sorted(n for n in tree() if n.endswith(".md") and not n.startswith("tests/"))


def text_of(page: str) -> str:
    """A page without its blocks of code."""
    return _CODE_BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))


def paths_in(text: str) -> Iterator[str]:
    """The words in backticks that look like a file or a folder of the tree."""
    for code in _CODE.findall(text):
        for word in code.split():
            path = word.split("::")[0].rstrip(".,;:")
            if _WORD.fullmatch(path) and _looks_like_one(path):
                yield path


def _looks_like_one(path: str) -> bool:
    first, *others = path.split("/")
    if others and path.rstrip("/") != path:
        return True
    return PurePosixPath(path).suffix in suffixes() or bool(others and first in ends())


def exists(path: str) -> bool:
    """Does a path of the tree end with it?"""
    path = path.rstrip("/")
    if not _PLACEHOLDER.search(path) or path in ends():
        return path in ends()
    pattern = re.compile(_PLACEHOLDER.sub("[^/]+", re.sub(r"([.+])", r"\\\1", path)))
    return any(pattern.fullmatch(name) for name in ends())


@pytest.mark.parametrize("page", pages())
def test_the_files_that_a_page_names_exist(page: str) -> None:
    unwritten = TO_WRITE.get(page, ())
    missing = [
        path
        for path in paths_in(text_of(page))
        if not (exists(path) or path.startswith(BUILT) or path in EXAMPLES)
        and not path.endswith(unwritten)
    ]
    assert missing == []


@pytest.mark.parametrize("page", pages())
def test_the_pages_that_a_page_links_to_exist(page: str) -> None:
    targets = [link.split("#")[0] for link in _LINK.findall(text_of(page)) if "://" not in link]
    missing = [target for target in targets if not ((ROOT / page).parent / target).exists()]
    assert missing == []


def anchors_of(page: Path) -> set[str]:
    """The places of a page that a link may name: its headings, as GitHub and the site call them."""
    text = _CODE_BLOCK.sub("", page.read_text(encoding="utf-8"))
    titles = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in _HEADING.findall(text)]
    slugs = {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}
    return slugs | set(_ANCHOR.findall(text))


@pytest.mark.parametrize("page", pages())
def test_the_headings_that_a_page_links_to_exist(page: str) -> None:
    links = [link.split("#") for link in _LINK.findall(text_of(page)) if "://" not in link]
    named = [(ROOT / page if not link[0] else (ROOT / page).parent / link[0], link[1])
             for link in links if len(link) == 2]  # fmt: skip
    missing = [f"{file.name}#{anchor}" for file, anchor in named
               if file.suffix == ".md" and anchor not in anchors_of(file)]  # fmt: skip
    assert missing == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`src/concurve/store/gone.py`", ["src/concurve/store/gone.py"]),
        ("`store/tables.py`, `tables.py`, `store/` and `tests/tree/test_documents.py::test_x`", []),
        ("in `no-such-folder/`, or `gone.rs`.", ["no-such-folder/", "gone.rs"]),
        ("`python -m pytest -q\ntests/tree/gone.py`", ["tests/tree/gone.py"]),
        ("`studies/NAME/`, `studies/java-threads/tcNN`, `schema/golden/run-head-*.json`", []),
        ("`schema/golden/no-head-*.json`", ["schema/golden/no-head-*.json"]),
        ("`p50/p90`, `/proc/stat`, `wall_seconds`, `--db FILE`, `redis://HOST/0`, `1.9`", []),
    ],
)
def test_what_is_taken_for_a_path(text: str, missing: list[str]) -> None:
    assert [path for path in paths_in(text) if not exists(path)] == missing


def test_the_glossary_has_every_cause_that_explain_names() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    missing = [cause for cause in get_args(Cause) if f"| `{cause}`" not in glossary]
    assert not missing
