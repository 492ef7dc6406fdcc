"""Damaged stores: every view refuses them by name, and none ends in a traceback."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from concurve.cli import app
from concurve.errors import ConcurveError, StoreError
from concurve.figures import decode_figures, encode_figures
from concurve.store import Store

GOLDEN = Path(__file__).parents[2] / "schema" / "golden" / "store-2.db"

#: A run of the golden store, and the campaign of another one.
RUN, STUDY = "20261122-123329-ab60", "naps"
CAMPAIGN, OF_CAMPAIGN = "c20261122-123334-6717", "20261122-123334-90ac"

#: Its first trial, as it is named in messages.
FIRST = rf"run {RUN}, trial \(cell \d+, block 0, attempt 0\)"

Damage = Callable[[bytes], Any]

#: What becomes of stored bytes.
DAMAGES: dict[str, Damage] = {
    "empty": lambda whole: b"",
    "cut": lambda whole: whole[: len(whole) // 2],
    "one byte missing": lambda whole: whole[:-1],
    "eight bytes missing": lambda whole: whole[:-8],
    "first byte flipped": lambda whole: bytes([whole[0] ^ 0xFF]) + whole[1:],
    "byte flipped": lambda whole: whole[:20] + bytes([whole[20] ^ 0xFF]) + whole[21:],
    "other bytes": lambda whole: b"\x00\x01\x02",
    "text": lambda whole: "some text",
    "a number": lambda whole: 5,
    "null in JSON": lambda whole: b"null",
    "deep": lambda whole: b"[" * 100_000,
}

#: The stored bytes of the run.
BLOBS = {
    "head": "UPDATE concurve_runs SET head = ? WHERE id = ?",
    "figures": "UPDATE concurve_trials SET figures = ? WHERE id = "
    "(SELECT min(id) FROM concurve_trials WHERE run = ?)",
    "record": "UPDATE concurve_records SET record = ? WHERE trial = "
    "(SELECT min(id) FROM concurve_trials WHERE run = ?)",
}
QUERIES = {
    "head": "SELECT head FROM concurve_runs WHERE id = ?",
    "figures": "SELECT figures FROM concurve_trials WHERE run = ? ORDER BY id",
    "record": "SELECT record FROM concurve_records JOIN concurve_trials ON trial = id "
    "WHERE run = ? ORDER BY id",
}

VERBS = {
    "show": ["show", RUN],
    "show json": ["show", RUN, "--json"],
    "report": ["report", RUN, "-o", "report.md"],
    "explain": ["explain", RUN],
    "export": ["export", RUN],
    "export trials": ["export", RUN, "--format", "trials"],
    "export csv": ["export", RUN, "--format", "csv"],
    "export hdr": ["export", RUN, "--format", "hdr"],
    "history": ["history", STUDY],
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(GOLDEN, tmp_path / "s.db")
    return tmp_path / "s.db"


def change(store: Path, blob: str, damage: Damage) -> None:
    connection = sqlite3.connect(store)
    (whole,) = connection.execute(QUERIES[blob], (RUN,)).fetchone()
    connection.execute(BLOBS[blob], (damage(whole), RUN))
    connection.commit()
    connection.close()


def run(store: Path, words: list[str]) -> Result:
    return CliRunner().invoke(app, [*words, "--db", str(store)])


def check_no_traceback(result: Result) -> str:
    """Its error message; the verb succeeded or refused."""
    if result.exception is None:
        return ""
    if not isinstance(result.exception, ConcurveError):
        raise result.exception
    assert result.exception.remedy or "no histograms" in str(result.exception)
    return str(result.exception)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("blob", BLOBS)
def test_no_damage_ends_in_a_traceback(store: Path, blob: str, damage: str) -> None:
    change(store, blob, DAMAGES[damage])
    messages = {name: check_no_traceback(run(store, words)) for name, words in VERBS.items()}
    damaged = {name: text for name, text in messages.items() if text}
    for name, text in damaged.items():
        assert RUN in text or name == "export hdr", name
    assert damaged or damage in ("byte flipped",), "it is found"
    if blob != "head" and damage != "byte flipped":
        assert any("trial (cell" in text for text in damaged.values())


@pytest.mark.parametrize(
    "damage", ["empty", "cut", "first byte flipped", "other bytes", "text", "a number"]
)
@pytest.mark.parametrize(
    ("blob", "says"),
    [
        ("head", rf"not a run \({RUN}\)"),
        ("figures", rf"the figures of {FIRST} are damaged"),
        ("record", rf"the record of {FIRST} is damaged"),
    ],
)
def test_damage_is_named_with_its_run_and_trial(
    store: Path, blob: str, says: str, damage: str
) -> None:
    change(store, blob, DAMAGES[damage])
    with pytest.raises(StoreError, match=says) as refused:
        raise run(store, VERBS["show"]).exception or AssertionError("not refused")
    assert "cut or edited" in refused.value.remedy


@pytest.mark.parametrize(
    "record", [b"", b"no JSON", b"null", b"[]", b"{}", b"\xff", b'{"roles":1}']
)
def test_a_record_that_is_none_is_named(store: Path, record: bytes) -> None:
    change(store, "record", lambda _whole: zlib.compress(record))
    for name, words in VERBS.items():
        message = check_no_traceback(run(store, words))
        if name in ("show", "report", "explain"):
            assert RUN in message and "trial (cell" in message, name


def without_roles(whole: bytes) -> bytes:
    return zlib.compress(json.dumps(json.loads(zlib.decompress(whole)) | {"roles": []}).encode())


def test_a_record_without_roles_is_no_traceback(store: Path) -> None:
    change(store, "record", without_roles)
    for words in VERBS.values():
        check_no_traceback(run(store, words))


#: What a head says, and what contradicts it.
CONTRADICTIONS: dict[str, dict[str, Any]] = {
    "factors": {"factors": []},
    "work": {"work": "nix"},
    "roles": {"roles": []},
    "indicators": {"indicators": []},
    "efforts": {"efforts": {}},
    "target": {"target": "nix"},
    "base": {"base": {"nix": 1}},
    "conditions": {"conditions": ["nix"]},
    "levels": {"factors": [{"name": "threads", "levels": []}]},
    "twice": {"factors": [{"name": "threads", "levels": [1]}] * 2},
    "text levels": {"factors": [{"name": "threads", "levels": ["a", "b"]}], "work": "threads"},
}


def changed_study(**study: Any) -> Damage:
    def damage(whole: bytes) -> bytes:
        head = json.loads(whole)
        return json.dumps(head | {"study": head["study"] | study}).encode()

    return damage


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_head_that_contradicts_itself_is_refused(store: Path, name: str) -> None:
    change(store, "head", changed_study(**CONTRADICTIONS[name]))
    for words in VERBS.values():
        message = check_no_traceback(run(store, words))
        assert RUN in message
        if name != "factors":  # a study may have none: then the trials do not fit the plan
            assert f"not a run ({RUN})" in message


@pytest.mark.parametrize(
    "change_of", [{"effort": "nix"}, {"rules": {"repeats_min": 0}}, {"rules": {"repeats_max": 1}}]
)
def test_a_head_with_impossible_rules_is_refused(store: Path, change_of: dict[str, Any]) -> None:
    change(store, "head", lambda whole: json.dumps(json.loads(whole) | change_of).encode())
    for words in VERBS.values():
        assert f"not a run ({RUN})" in check_no_traceback(run(store, words))


def test_a_head_that_is_no_utf8_is_refused(store: Path) -> None:
    change(store, "head", lambda whole: whole.replace(b"naps", b"nap\xff", 1))
    for words in VERBS.values():
        assert f"not a run ({RUN})" in check_no_traceback(run(store, words))


def newer(whole: bytes) -> bytes:
    return json.dumps(json.loads(whole) | {"format": 99}).encode()


@pytest.mark.parametrize("damage", [newer, DAMAGES["cut"]], ids=["newer", "cut"])
def test_a_history_names_a_damaged_run_and_shows_the_rest(store: Path, damage: Damage) -> None:
    connection = sqlite3.connect(store)
    connection.execute("UPDATE concurve_runs SET study = ?", (STUDY,))
    connection.execute("DELETE FROM concurve_runs WHERE id NOT IN (?, ?)", (RUN, OF_CAMPAIGN))
    connection.commit()
    connection.close()
    change(store, "head", damage)
    result = run(store, VERBS["history"])
    assert result.exception is None
    shown, warning, _ = " ".join(result.stdout.split()).partition(f"run {RUN} is left out")
    assert warning and OF_CAMPAIGN in shown and RUN not in shown


@pytest.mark.parametrize("damage", ["empty", "cut", "other bytes", "text"])
def test_a_damaged_campaign_is_refused_by_name(store: Path, damage: str) -> None:
    connection = sqlite3.connect(store)
    connection.execute(
        "UPDATE concurve_campaigns SET head = ? WHERE id = ?", (DAMAGES[damage](b"{}"), CAMPAIGN)
    )
    connection.commit()
    connection.close()
    for verb in (["show"], ["export"], ["report", "-o", "report.md"]):
        message = check_no_traceback(run(store, [verb[0], CAMPAIGN, *verb[1:]]))
        assert f"not a campaign ({CAMPAIGN})" in message


@pytest.mark.parametrize("values", [(1e308,), (1e308, 1.0), (-1e308,), (1e300, 1e-300), (5e-324,)])
def test_figures_at_the_limits_of_a_float_are_no_traceback(
    store: Path, values: tuple[float, ...]
) -> None:
    connection = sqlite3.connect(store)
    query = "SELECT id, figures FROM concurve_trials WHERE run = ? AND cell = 0 ORDER BY id"
    for number, (trial, stored) in enumerate(connection.execute(query, (RUN,)).fetchall()):
        figures = decode_figures([stored]).row(0) | {
            name: values[number % len(values)] for name in ("wall_seconds", "cpu_seconds")
        }
        connection.execute(
            "UPDATE concurve_trials SET figures = ? WHERE id = ?", (encode_figures(figures), trial)
        )
    connection.commit()
    connection.close()
    for words in VERBS.values():
        check_no_traceback(run(store, words))


@pytest.mark.parametrize("studies", [[], None])
def test_a_campaign_without_its_studies_is_refused(store: Path, studies: list[Any] | None) -> None:
    connection = sqlite3.connect(store)
    query = "SELECT head FROM concurve_campaigns WHERE id = ?"
    head = json.loads(connection.execute(query, (CAMPAIGN,)).fetchone()[0])
    head["campaign"]["studies"] = head["campaign"]["studies"][:1] if studies is None else studies
    connection.execute(
        "UPDATE concurve_campaigns SET head = ? WHERE id = ?",
        (json.dumps(head).encode(), CAMPAIGN),
    )
    connection.commit()
    connection.close()
    assert CAMPAIGN in check_no_traceback(run(store, ["show", CAMPAIGN]))


@pytest.mark.parametrize("format_", ["", "x", "-1", "0", "²", "٢", "1.0", " 2", "9" * 5000])
def test_an_unreadable_format_of_the_store_is_refused(store: Path, format_: str) -> None:
    connection = sqlite3.connect(store)
    connection.execute("UPDATE concurve_meta SET value = ?", (format_,))
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match=r"has store format .* no format number") as refused:
        Store(str(store))
    assert "backup" in refused.value.remedy
