"""The schemas are those of the types, and refuse what they should."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from concurve.store import campaign_head, run_head

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "schema" / "golden"
SCRIPT = ROOT / "scripts" / "generate_schemas.py"

#: Schemas, and the golden files of the format that they describe.
GOLDENS = [
    (name, path)
    for name, newest in (
        ("trial-spec", 1),
        ("trial-record", 1),
        ("run-head", run_head.FORMAT),
        ("campaign-head", campaign_head.FORMAT),
    )
    for path in sorted(GOLDEN.glob(f"{name}-{newest}-*.json"))
]

each_golden = pytest.mark.parametrize(
    ("name", "path"), GOLDENS, ids=[path.stem for _, path in GOLDENS]
)


#: What no key may hold.
WRONG = [[None]]


@cache
def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "schema" / f"{name}.schema.json").read_bytes())
    return found


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    return jsonschema.Draft202012Validator(schema(name))


def test_the_schemas_are_those_of_the_types() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@each_golden
def test_a_golden_holds_its_schema(name: str, path: Path) -> None:
    validator(name).validate(json.loads(path.read_bytes()))


def test_old_heads_hold_the_schema_when_they_are_brought_up_to_date() -> None:
    for path in GOLDEN.glob("run-head-*.json"):
        head = run_head.VERSIONS.decode(path.read_bytes())
        validator("run-head").validate(json.loads(msgspec.json.encode(head)))
    for path in GOLDEN.glob("campaign-head-*.json"):
        whole = campaign_head.VERSIONS.decode(path.read_bytes())
        validator("campaign-head").validate(json.loads(msgspec.json.encode(whole)))


@each_golden
def test_every_key_of_a_golden_is_described(name: str, path: Path) -> None:
    """Else a key could be lost from a type, and from its schema, unseen."""
    for place, value, part in parts(json.loads(path.read_bytes()), schema(name), schema(name)):
        if isinstance(value, dict) and "properties" in part:
            assert set(value) <= set(part["properties"]), place


@each_golden
def test_a_golden_without_a_required_key_or_with_one_of_another_type_is_refused(
    name: str, path: Path
) -> None:
    whole = json.loads(path.read_bytes())
    tried = 0
    for place, value, part in list(parts(whole, schema(name), schema(name))):
        if not isinstance(value, dict) or "properties" not in part:
            continue
        for key in value:
            if key in part["required"]:
                assert not validator(name).is_valid(changed(whole, place, key)), (place, key)
                tried += 1
            if part["properties"][key] not in ({}, True):
                assert not validator(name).is_valid(changed(whole, place, key, WRONG)), (place, key)
                tried += 1
    assert tried > 3


Place = tuple[str | int, ...]


def parts(
    value: Any, part: dict[str, Any], whole: dict[str, Any], place: Place = ()
) -> Iterator[tuple[Place, Any, dict[str, Any]]]:
    """Each value of a text with the schema that describes it."""
    if reference := part.get("$ref"):
        part = whole["$defs"][reference.rpartition("/")[2]]
    yield place, value, part
    if isinstance(value, dict):
        others = part.get("additionalProperties")
        for key, item in value.items():
            below = part.get("properties", {}).get(key, others)
            if isinstance(below, dict):
                yield from parts(item, below, whole, (*place, key))
    elif isinstance(value, list) and "items" in part:
        for index, item in enumerate(value[:2]):
            yield from parts(item, part["items"], whole, (*place, index))


def changed(whole: Any, place: Place, key: str, *value: Any) -> Any:
    """A copy with another value under a key, or without the key."""
    result = copy.deepcopy(whole)
    inner = result
    for step in place:
        inner = inner[step]
    if value:
        inner[key] = value[0]
    else:
        del inner[key]
    return result
