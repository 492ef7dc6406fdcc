"""Patterns are matched in linear time, and a search ends."""

from __future__ import annotations

import random
import time

import pytest

from concurve.definition import patterns
from concurve.definition.patterns import check_for_runner, group_can_be
from concurve.definition.study import Extract
from concurve.engine.local import LocalEngine
from concurve.errors import StudyError
from concurve.readings.extraction import MissedExtractError, extracted, printed_line
from concurve.wire.record import Output, RoleRecord
from concurve.wire.spec import ReadyProbe, RoleSpec, TrialSpec
from tests.helpers.real import missing

#: Patterns that take exponential or high polynomial time by backtracking, and texts.
SLOW = {
    "nested": (r"((?:a+)+)b", "a" * 50_000),
    "alternatives": (r"((?:a|aa)+)b", "a" * 50_000),
    "blanks": (r"(\s*\s*\s*\s*)x", " " * 50_000),
    "greedy": (r"(.*.*.*.*.*)=x", "y" * 50_000),
}


def role(text: str) -> RoleRecord:
    return RoleRecord(name="target", stdout=Output(bytes=len(text), head=text))


@pytest.mark.parametrize("name", SLOW)
def test_what_stops_a_backtracking_engine_ends(name: str) -> None:
    pattern, text = SLOW[name]
    with pytest.raises(MissedExtractError):
        extracted(Extract(name="x", pattern=pattern), role(text))


def test_a_search_that_takes_too_long_ends_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    with pytest.raises(MissedExtractError) as missed:
        extracted(Extract(name="x", pattern="(a)"), role("a" * 50))
    assert missed.value.reason.startswith(f"the search took more than {patterns.SEARCH_SECONDS:g}")


def test_text_that_is_no_utf8_is_searched() -> None:
    assert extracted(Extract(name="x", pattern=r"(\d+) µs"), role("\udcff 5 µs")) == 5.0


@pytest.mark.parametrize(
    ("pattern", "text", "figure"),
    [
        (r"(\d+) (?P<unit>ms|s)", "took 12 ms\ntook 5 ms", 0.005),
        (r"in (?P<unit>ms): (?P<value>\d+)", "in ms: 7", 0.007),
        (r"(\d+)(?P<unit>[KMG]iB)", "3KiB 2MiB", 2.0 * 2**20),
        (r"(\d+) (?P<unit>\w+)", "5 parsecs", None),
        (r"(\d+) (?P<unit>\S+)", "5 ops/ms", 5000.0),
        (r"(\d+) (?P<unit>\S+)", "5 us/op", 5e-6),
        (r"in (?P<unit>ms): (\d+)", "in ms: 7", 0.007),
        (r"(\d+) (?P<unit>[KMG]B/s)", "5 MB/s", 5e6),
        (r"x=([0-9.]+)(?P<unit>[kM]?) rows/min", "x=3.5k rows/min", 3500.0),
    ],
)
def test_a_unit_that_the_program_chose_is_converted(
    pattern: str, text: str, figure: float | None
) -> None:
    extract = Extract(name="x", pattern=pattern)
    if figure is None:
        with pytest.raises(MissedExtractError):
            extracted(extract, role(text))
    else:
        assert extracted(extract, role(text)) == pytest.approx(figure)


def test_the_sum_over_all_matches() -> None:
    extract = Extract(name="x", pattern=r"iops=([\d.]+)(?P<unit>k?)", combine="sum")
    assert extracted(extract, role("iops=1.5k\niops=20")) == 1520.0


def test_a_unit_that_is_not_known_is_named() -> None:
    with pytest.raises(MissedExtractError) as missed:
        extracted(Extract(name="x", pattern=r"(\d+) (?P<unit>\w+)"), role("5 parsecs"))
    assert missed.value.reason == "the unit 'parsecs' is not known" and missed.value.remedy


@pytest.mark.parametrize(
    ("text", "figure"),
    [
        ("1,234", 1234.0),
        ("1,234,567.5", 1234567.5),
        ("12,34,567", 1234567.0),
        ("-1,234", -1234.0),
        ("12,", 12.0),
        # Of these the comma may be a decimal one.
        ("0,145", None),
        ("1234,567", None),
        ("12,5", None),
        ("1.234,5", None),
    ],
)
def test_commas_divide_thousands_where_they_can(text: str, figure: float | None) -> None:
    extract = Extract(name="x", pattern=r"rate ([-0-9.,]+)")
    if figure is not None:
        assert extracted(extract, role(f"rate {text} req/s")) == figure
        return
    with pytest.raises(MissedExtractError) as missed:
        extracted(extract, role(f"rate {text} req/s"))
    assert missed.value.reason == f"the comma of '{text}' divides no thousands"
    assert "(?P<decimal>" in missed.value.remedy


def test_a_comma_is_a_decimal_point_where_the_group_says_so() -> None:
    extract = Extract(name="x", pattern=r"rate (?P<decimal>[0-9.,]+)")
    assert extracted(extract, role("rate 1,234")) == 1.234
    assert extracted(extract, role("rate 1.234")) == 1.234
    with pytest.raises(MissedExtractError) as missed:
        extracted(extract, role("rate 1.23,5"))
    assert missed.value.reason == "'1.23,5' is no number"


@pytest.mark.parametrize("text", ["1.234.567,5", "1 234 567,5", "1\u202f234\u202f567,5"])
def test_thousands_before_a_decimal_comma_may_be_divided(text: str) -> None:
    extract = Extract(name="x", pattern=r"rate (?P<decimal>[0-9][0-9.,\pZ]+)")
    assert extracted(extract, role(f"rate {text}\n")) == 1234567.5


def cut(head: str, tail: str) -> RoleRecord:
    return RoleRecord(name="target", stdout=Output(head=head, tail=tail, dropped=777))


def test_nothing_is_read_out_of_the_mark_of_a_gap_or_across_it() -> None:
    size = Extract(name="x", pattern=r"([0-9]+) bytes")
    assert extracted(size, cut("a\n", "size=5 bytes\nend\n")) == 5.0
    words = Extract(name="x", pattern=r"rate ([0-9]+)(?: req)?")
    assert extracted(words, cut("rate 7 req\n", "45\nrate 8 req\n")) == 8.0
    with pytest.raises(MissedExtractError) as missed:
        extracted(size, cut("a\n", "b\n"))
    assert missed.value.reason.startswith("777 bytes of it were dropped")


def test_the_last_match_before_a_gap_is_not_surely_the_last() -> None:
    rate = Extract(name="x", pattern=r"rate ([0-9]+)")
    with pytest.raises(MissedExtractError) as missed:
        extracted(rate, cut("rate 7\nrate 12", "34 req\nend\n"))
    assert missed.value.reason == (
        "its last match counts, and behind all that were kept 777 bytes of the output were dropped"
    )
    assert missed.value.remedy.startswith("the figure at the end of the output")


def test_a_line_is_quoted_in_which_the_number_stands() -> None:
    extract = Extract(name="x", pattern=r"(?s)failed: (\d+).*")
    assert printed_line(extract, role("failed: 5\nother\n")) == "failed: 5"


@pytest.mark.parametrize(
    ("pattern", "text", "can"),
    [
        (r"(\d+)(?P<unit>[kM]?)", "k", True),
        (r"(\d+)(?P<unit>[kM]?)", "", True),
        (r"(\d+)(?P<unit>[kM]?) ms", "ms", False),
        (r"(\d+)(?P<unit2>a|b(?:c|d))(x)", "bd", True),
        (r"(\d+)(?<unit>[)]\)|\Q(\E|m)s", "m", True),
        (r"(\d+)(?P<other>m)", "m", False),
    ],
)
def test_what_a_group_can_be(pattern: str, text: str, can: bool) -> None:
    assert group_can_be(pattern, "unit", text) is can


# -- the dialect that RE2 and the trial runner share -------------------------------------------

SHARED = [
    "Ready to accept connections", r"listening on .*:(\d+)$", r"^up\b|\bdown$", "a{2}b{2,}c{2,3}?",
    "(?i)ready", "(?i:a)(?s-i:b)", "(?P<port>[0-9]+)", "(?<port>x)", r"[^]a\]-][[:alpha:]\d_-]+",
    r"\x41\x{1F600}\pL\p{Greek}\P{Lu}", r"\.\*\-\ \@\{\}",
    "]}", "é+", "(a|b|)*", "[[:^space:]]", "x{0}", r"\A\z\a\f\n\r\t\v", "", "(?:)*",
]  # fmt: skip

#: What one of the two refuses, or reads in another way.
UNLIKE = [
    r"\Qa.b\E", r"\C", r"\01", r"\123", r"\<up\>", "a{", "{", "x{,3}", "{x}", "a{b}", "[[a]b]",
    "[a&&b]", "[a--b]", "[--a]", "[a~~b]",
    "[[=a=]]", "[[:loower:]]", r"\p{^Greek}", r"\p{Cs}", r"\x{D800}",
    "a(?i)*", "(?P<1a>x)", "a**", "(?=a)", r"(a)\1", r"\Z", r"\u0041", r"\b{start}", r"(?x)a b",
    "(abcdefghijkl){900}", "(" * 70 + "a" + ")" * 70,
]  # fmt: skip


@pytest.mark.parametrize("pattern", SHARED)
def test_a_pattern_that_both_read_alike_is_taken(pattern: str) -> None:
    check_for_runner(pattern)


@pytest.mark.parametrize("pattern", UNLIKE)
def test_a_pattern_that_only_one_of_them_reads_is_refused_with_a_remedy(pattern: str) -> None:
    with pytest.raises(StudyError) as refused:
        check_for_runner(pattern)
    assert "RE2" in refused.value.what or "not available" in refused.value.what
    assert refused.value.remedy


def drawn_patterns(count: int) -> list[str]:
    """Patterns of pieces that the dialects treat in their own ways, those that are taken."""
    rng = random.Random(7)
    pieces = [
        *"ab1 .-_:/@#&~^$|?*+()[]{}<>,=é", "\\", r"\d", r"\W", r"\b", r"\.", r"\-", r"\{", r"\<",
        r"\_", r"\pL", r"\p{Lu}", r"\p{Han}", r"\x41", r"\x{e9}", r"\Q", r"\C", r"\1", "[a-c]",
        "[^]x]", "[[:digit:]]", "[a&&b]", "[--a]", "[a[b]]", r"[\d-]", r"[a-\]]", "(?:", "(?i)",
        "(?P<n>", "(?s:", "{2}", "{0,3}", "{2,}", "{,2}", "{200}",
    ]  # fmt: skip
    taken: list[str] = []
    while len(taken) < count:
        pattern = "".join(rng.choice(pieces) for _ in range(rng.randint(1, 9)))
        try:
            check_for_runner(pattern)
        except StudyError:
            continue
        taken.append(pattern)
    return taken


@pytest.mark.real
def test_the_runner_takes_what_is_taken_here() -> None:
    if reason := missing():
        pytest.skip(reason)
    patterns_taken = [*SHARED, *drawn_patterns(400)]
    for start in range(0, len(patterns_taken), 60):
        roles = tuple(
            RoleSpec(name=f"r{number}", argv=("true",), ready_probe=ReadyProbe(line=pattern))
            for number, pattern in enumerate(patterns_taken[start : start + 60])
            if pattern
        )
        assert LocalEngine().check(TrialSpec(trial="check", roles=roles)) == []
