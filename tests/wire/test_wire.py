"""The seam: golden specs and records, the schemas, and what each side tolerates."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
from referencing import Registry, Resource

from concurve.errors import StoreError
from concurve.wire import decode_record, encode_spec
from concurve.wire.record import TrialRecord, Waits
from concurve.wire.spec import FORMAT, Controls, Policy, RoleSpec, TrialSpec
from tests.helpers.fakes import record_of

SCHEMA = Path(__file__).parents[2] / "schema"
SPECS = sorted((SCHEMA / "golden").glob("trial-spec-*.json"))
RECORDS = sorted((SCHEMA / "golden").glob("trial-record-*.json"))
NO_KINDS = ("readings", "alone", "futex_words", "futexes", "calls")
LINES = (SCHEMA / "golden" / "report-lines-1.jsonl").read_text().splitlines()


def stem(path: Path) -> str:
    return path.stem


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    schemas = [json.loads(path.read_bytes()) for path in SCHEMA.glob("*.schema.json")]
    for schema in schemas:
        jsonschema.Draft202012Validator.check_schema(schema)
    registry = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in schemas
    )
    whole = registry.contents(f"{name}.schema.json")
    return jsonschema.Draft202012Validator(whole, registry=registry)


def plain(value: Any) -> Any:
    """Without what stands for nothing given: empty tables and lists, and nulls."""
    if isinstance(value, dict):
        pairs = ((key, plain(item)) for key, item in value.items())
        return {key: item for key, item in pairs if item not in (None, {}, [], "", 0, False)}
    return [plain(item) for item in value] if isinstance(value, list) else value


def test_there_are_goldens() -> None:
    assert SPECS and RECORDS and LINES


@pytest.mark.parametrize("path", SPECS, ids=stem)
def test_a_golden_spec_keeps_its_meaning(path: Path) -> None:
    raw = json.loads(path.read_bytes())
    validator("trial-spec").validate(raw)
    spec = msgspec.json.decode(path.read_bytes(), type=TrialSpec)
    again = json.loads(encode_spec(spec))
    validator("trial-spec").validate(again)
    assert msgspec.json.decode(encode_spec(spec), type=TrialSpec) == spec
    explicit = msgspec.json.decode(json.dumps(plain(raw) | {"roles": raw["roles"]}), type=TrialSpec)
    assert explicit == spec


@pytest.mark.parametrize("path", RECORDS, ids=stem)
def test_a_golden_record_is_understood_whole(path: Path) -> None:
    raw = json.loads(path.read_bytes())
    validator("trial-record").validate(raw)
    record = decode_record(path.read_bytes())
    assert plain(json.loads(msgspec.json.encode(record))) == plain(raw), "no key is lost"


def test_the_golden_waits_add_up() -> None:
    record = decode_record((SCHEMA / "golden" / "trial-record-1-waits.json").read_bytes())
    (role,) = record.roles
    phase = role.phases[0]
    thread = role.threads.listed[0]
    for waits in (role.waits, phase.waits, thread.waits):
        assert waits is not None
        kinds = [name for name in Waits.__struct_fields__ if name not in NO_KINDS]
        assert waits.readings == sum(getattr(waits, kind) or 0 for kind in kinds) > 0
    assert role.waits is not None and role.waits.futexes[0].threads > 1
    assert thread.waits is not None and not thread.waits.futexes
    assert thread.lived_ns
    for bare in (role.phases[1], role.threads.listed[1]):
        assert bare.waits is None and bare.absent["waits"]


def test_a_record_from_before_the_waits_loads() -> None:
    record = decode_record((SCHEMA / "golden" / "trial-record-1-threads.json").read_bytes())
    (role,) = record.roles
    assert role.waits is None and not role.absent
    assert all(thread.waits is None for thread in role.threads.listed)


@pytest.mark.parametrize("line", LINES)
def test_golden_report_lines_hold_the_schema(line: str) -> None:
    validator("report-line").validate(json.loads(line))


def test_garbage_lines_do_not_hold_the_schema() -> None:
    for line in ({}, {"ready": "yes"}, {"phase": "x"}, {"indicator": "x", "value": "y"}):
        assert not validator("report-line").is_valid(line)


def test_every_field_of_a_spec_is_in_the_schema() -> None:
    spec = TrialSpec(
        trial="t",
        roles=(
            RoleSpec(
                name="target",
                argv=("a", "b"),
                env={"A": "1"},
                cwd="/tmp",
                controls=Controls(cpus=(0, 1), nice=-5, policy=Policy(class_="fifo", priority=3)),
                end="serve",
                ready="report",
                after=("load",),
            ),
            RoleSpec(name="plain", argv=("a",)),
        ),
        time_limit_ns=5,
    )
    validator("trial-spec").validate(json.loads(encode_spec(spec)))


def test_an_unknown_key_in_a_spec_is_refused_by_type_and_schema() -> None:
    raw = json.loads(SPECS[0].read_bytes())
    raw["colour"] = "red"
    assert not validator("trial-spec").is_valid(raw)
    with pytest.raises(msgspec.ValidationError, match="colour"):
        msgspec.json.decode(json.dumps(raw), type=TrialSpec)


@pytest.mark.parametrize("path", RECORDS, ids=stem)
def test_unknown_keys_in_a_record_are_tolerated_everywhere(path: Path) -> None:
    raw = json.loads(path.read_bytes())
    raw["new"] = 1
    raw["outcome"]["new"] = {"deep": True}
    for role in raw["roles"]:
        role["new"] = role["usage"]["new"] = role["threads"]["new"] = 1
        for thread in role["threads"].get("listed", []):
            thread["new"] = 1
    raw["machine"]["new"] = 1
    assert decode_record(json.dumps(raw)) == decode_record(path.read_bytes())


def test_a_record_of_a_newer_format_is_refused() -> None:
    raw = json.loads(RECORDS[0].read_bytes())
    raw["format"] = FORMAT + 1
    with pytest.raises(StoreError, match=rf"has format {FORMAT + 1}, .* up to {FORMAT}") as refused:
        decode_record(json.dumps(raw))
    assert "newer" in refused.value.remedy


@pytest.mark.parametrize("cut", [0, 1, 200])
def test_a_torn_record_is_refused(cut: int) -> None:
    with pytest.raises(StoreError, match="not a trial record"):
        decode_record(RECORDS[0].read_bytes()[:cut])


def test_a_fake_record_holds_what_the_type_needs() -> None:
    spec = TrialSpec(trial="t", roles=(RoleSpec(name="target", argv=("x",)),))
    record = record_of(spec, 1.0)
    assert decode_record(msgspec.json.encode(record)) == record
    assert isinstance(record, TrialRecord)
    assert record.role("target") is record.roles[0]
    assert record.role("load") is None
