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
    """By the part of the schema that describes the object with the key."""
    whole = json.loads(path.read_bytes())
    tried = 0
    for place, value, part in list(parts(whole, schema(name), schema(name))):
        if not isinstance(value, dict) or "properties" not in part:
            continue
        own = validator(name).evolve(schema=part)
        assert own.is_valid(value), place
        for key, wrong in changes(value, part):
            assert not own.is_valid(wrong), (place, key)
            tried += 1
    assert tried > 3


@pytest.mark.parametrize("name", dict.fromkeys(name for name, _ in GOLDENS))
def test_the_whole_schema_applies_each_of_its_parts(name: str) -> None:
    """A wrong object makes the whole wrong: each place of the schema once, in the smallest golden
    file that has it."""
    seen: set[Place] = set()
    paths = [path for known, path in GOLDENS if known == name]
    for path in sorted(paths, key=lambda it: (it.stat().st_size, it.name)):
        whole = json.loads(path.read_bytes())
        for place, value, part in parts(whole, schema(name), schema(name)):
            if not isinstance(value, dict) or "properties" not in part:
                continue
            kind = tuple("each" if isinstance(step, int) else step for step in place)
            change = next(changes(value, part), None)
            if kind in seen or change is None:
                continue
            seen.add(kind)
            assert not validator(name).is_valid(replaced(whole, place, change[1])), (path, place)
    assert seen


def changes(value: dict[str, Any], part: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """An object without a key that its schema requires, or with one of another type: by key."""
    for key in value:
        if key in part["required"]:
            yield key, {other: value[other] for other in value if other != key}
        if part["properties"][key] not in ({}, True):
            yield key, {**value, key: WRONG}


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


def replaced(whole: Any, place: Place, value: Any) -> Any:
    """A copy with another value at a place."""
    if not place:
        return value
    result = copy.copy(whole)
    result[place[0]] = replaced(whole[place[0]], place[1:], value)
    return result
