"""Study files, campaign files and published figures with any contents: read or refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from concurve.definition.campaign_file import load_campaign
from concurve.definition.extracting import parse_extract, tools
from concurve.definition.published import load_published
from concurve.definition.study_file import load_study
from tests.helpers.campaigns import write_campaign
from tests.helpers.fuzzing import fuzz

pytestmark = pytest.mark.fuzz

STUDIES = Path(__file__).parents[2] / "src" / "concurve" / "studies"

TOML = [
    b"=",
    b"[",
    b"]",
    b"[[",
    b'"',
    b"'''",
    b"\n",
    b"{",
    b"}",
    b"#",
    b".",
    b"nan",
    b"1979-05-27",
    b"true",
    b"[factors]\n",
    b"[[roles]]\n",
    b"extends = ",
    b"{threads}",
    b"1..9999999999*2",
    b"1..8+0",
    b"50%",
    b"\xff",
    b"\\u0000",
    b'use = ["x"]\n',
    b"name = ",
    b"levels",
    b"(a+)+",
]


def test_study_files(tmp_path: Path) -> None:
    file = tmp_path / "mine" / "study.toml"
    file.parent.mkdir()
    corpus = [path.read_bytes() for path in sorted(STUDIES.glob("*/study.toml"))] + [
        b'[study]\nname = "mine"\nquestion = "How?"\n'
        b'[factors]\nthreads = "1..8*2"\nsync = ["none", "cas"]\n'
        b'[[roles]]\nname = "target"\ncommand = ["./mine", "{threads}"]\n'
        b'[[claims]]\nid = "a"\ntext = "b"\nkind = "order"\n',
    ]

    def parse(data: bytes) -> None:
        file.write_bytes(data)
        load_study(file, 4)

    fuzz(parse, corpus, TOML)


def test_shared_files(tmp_path: Path) -> None:
    campaign = STUDIES / "java-threads"
    study = tmp_path / "tc01" / "study.toml"
    study.parent.mkdir()
    study.write_bytes((campaign / "tc01" / "study.toml").read_bytes())
    shared = tmp_path / "shared.toml"

    def parse(data: bytes) -> None:
        shared.write_bytes(data)
        load_study(study, 4)

    fuzz(parse, [(campaign / "shared.toml").read_bytes()], TOML, cases=30)


def test_campaign_files(tmp_path: Path) -> None:
    file = write_campaign(tmp_path)
    words = [
        b"[campaign]\n",
        b"studies = ",
        b"[effort.quick]\n",
        b"[glossary]\n",
        b"../tc01",
        b"/",
        *TOML,
    ]

    def parse(data: bytes) -> None:
        file.write_bytes(data)
        load_campaign(file, 4)

    fuzz(parse, [file.read_bytes()], words)


def test_published_figures(tmp_path: Path) -> None:
    file = tmp_path / "published.csv"
    words = [
        b",",
        b'"',
        b"\n",
        b"\r",
        b"\0",
        b"1:09",
        b"=",
        b";",
        b"factor",
        b"ratio",
        b"\xef\xbb\xbf",
    ]

    def parse(data: bytes) -> None:
        file.write_bytes(data)
        load_published(file)

    corpus = [path.read_bytes() for path in sorted(STUDIES.glob("*/published.csv"))]
    fuzz(parse, corpus, words)


def test_extractions_of_a_command_line() -> None:
    corpus = [
        rb"rate=(\d+) req/s:1/s:higher",
        b"load.p99=p99 (\\S+)",
        *map(str.encode, tools()),
    ]

    def parse(data: bytes) -> None:
        parse_extract(data.decode(errors="surrogateescape"))

    fuzz(parse, corpus, [b"=", b":", b".", b"\\", b"higher", b"(", b"[", b"{1001}"])
