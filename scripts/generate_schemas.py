"""Write the JSON Schemas of ``schema/`` from the types of the Python package.

Usage: ``.venv/bin/python scripts/generate_schemas.py [--check]``

``--check`` writes nothing, names the schemas that differ from the types, and then exits with 1.

A schema says what a program of this version writes. ``None`` in a type whose defaults are left out
means that the key is left out, so its schema allows no null. Fields marked with
:data:`~concurve.fields.ALWAYS` are required, although the type has a default; those that may be
UNSET are not, although it has none. A type's ``KEYWORDS`` are further keywords of its schema.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import msgspec

from concurve.fields import ALWAYS_KEY
from concurve.report.json.campaign import CampaignExport
from concurve.report.json.comparison import ComparisonExport
from concurve.report.json.explanation import Explained
from concurve.report.json.export import Export
from concurve.report.json.fit import FitExport
from concurve.report.json.history import HistoryExport
from concurve.store.campaign_head import CampaignHead
from concurve.store.run_head import RunHead
from concurve.wire import report
from concurve.wire.record import TrialRecord
from concurve.wire.spec import TrialSpec

FOLDER = Path(__file__).resolve().parents[1] / "schema"

Json = dict[str, Any]


class Generated(NamedTuple):
    """A schema: of one type, or of values that are one of several types. ``id`` is its ``$id``
    where that is not the file's name."""

    name: str
    title: str
    types: tuple[type[msgspec.Struct], ...]
    description: str = ""
    id: str = ""


SCHEMAS = (
    Generated("trial-spec", "Trial spec", (TrialSpec,)),
    Generated("trial-record", "Trial record", (TrialRecord,)),
    Generated(
        "report-line",
        "Report line",
        report.LINES,
        "One line that a measured program may write to the descriptor named in CONCURVE_REPORT.",
    ),
    Generated("run-head", "Head of a stored run", (RunHead,)),
    Generated("campaign-head", "Head of a stored campaign", (CampaignHead,)),
    Generated("export", "Export of a Concurve run", (Export,), id="concurve:export"),
    Generated(
        "explain", "What limits each cell of a Concurve run", (Explained,), id="concurve:explain"
    ),
    Generated("fit", "Scaling models fitted to measured numbers", (FitExport,), id="concurve:fit"),
    Generated(
        "compare",
        "Comparison of two Concurve runs, or of levels inside one",
        (ComparisonExport,),
        id="concurve:compare",
    ),
    Generated(
        "history",
        "An indicator over the stored runs of a study",
        (HistoryExport,),
        id="concurve:history",
    ),
    Generated(
        "campaign", "Export of a Concurve campaign", (CampaignExport,), id="concurve:campaign"
    ),
)


def main(arguments: list[str]) -> int:
    """Write the schemas, or name those that differ."""
    differing = []
    for schema in SCHEMAS:
        path = FOLDER / f"{schema.name}.schema.json"
        text = json.dumps(generate(schema), indent=2, ensure_ascii=False) + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            differing.append(path.name)
            if "--check" not in arguments:
                path.write_text(text, encoding="utf-8")
    verb = "differs from its type" if "--check" in arguments else "written"
    for name in differing:
        print(f"{name}: {verb}")
    if "--check" in arguments and differing:
        print("  try: make schemas, and commit what it writes")
        return 1
    return 0


def generate(schema: Generated) -> Json:
    """The whole schema."""
    _, components = msgspec.json.schema_components(schema.types, ref_template="#/$defs/{name}")
    classes = {class_.__name__: class_ for type_ in schema.types for class_ in structs(type_)}
    definitions = {name: tidy(found, classes[name]) for name, found in components.items()}
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": schema.id or f"{schema.name}.schema.json",
        "title": schema.title,
    }
    if len(schema.types) == 1:
        root = definitions.pop(schema.types[0].__name__)
        return {**head, **root, "$defs": definitions}
    choices = [{"$ref": f"#/$defs/{type_.__name__}"} for type_ in schema.types]
    return {**head, "description": schema.description, "oneOf": choices, "$defs": definitions}


def structs(type_: Any) -> Iterator[type[msgspec.Struct]]:
    """A type and all that it is made of."""
    seen: set[type[msgspec.Struct]] = set()

    def visit(info: Any) -> None:
        if isinstance(info, msgspec.inspect.StructType):
            if info.cls in seen:
                return
            seen.add(info.cls)
        if isinstance(info, msgspec.Struct):
            for name in info.__struct_fields__:
                visit(getattr(info, name))
        elif isinstance(info, tuple):
            for item in info:
                visit(item)

    visit(msgspec.inspect.type_info(type_))
    yield from seen


def tidy(found: Json, class_: type[msgspec.Struct]) -> Json:
    """The schema of one type: descriptions as plain text, no nulls that are never written."""
    properties, required = {}, set(found["required"]) - may_be_unset(class_)
    for name, given in found["properties"].items():
        field = plain(given)
        if class_.__struct_config__.omit_defaults and field.get("default", ...) is None:
            field = without_null(field)
        if field.pop(ALWAYS_KEY, False):
            field.pop("default", None)
            required.add(name)
        if not field.get("default", True):
            del field["default"]
        properties[name] = field
    result = {
        "description": prose(class_.__doc__ or ""),
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name in required],
        **getattr(class_, "KEYWORDS", {}),
    }
    closed = class_.__struct_config__.forbid_unknown_fields or issubclass(class_, report.Line)
    return {**result, "additionalProperties": False} if closed else result


def may_be_unset(class_: type[msgspec.Struct]) -> set[str]:
    """The keys of fields that are left out where they are UNSET."""
    fields = {field.name: field.encode_name for field in msgspec.structs.fields(class_)}
    hints = get_type_hints(class_)
    return {key for name, key in fields.items() if msgspec.UnsetType in get_args(hints[name])}


def plain(value: Any) -> Any:
    """With what matters most first, and a choice of plain types as a list of them."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    choices = value.get("anyOf", [])
    if choices and all(set(choice) == {"type"} for choice in choices):
        others = {key: item for key, item in value.items() if key != "anyOf"}
        value = {**others, "type": [choice["type"] for choice in choices]}
    first = {key: value[key] for key in ("description", "$ref", "type") if key in value}
    return {key: plain(item) for key, item in {**first, **value}.items()}


def without_null(field: Json) -> Json:
    """The schema of an optional field without its null."""
    rest = {key: item for key, item in field.items() if key not in ("anyOf", "default")}
    if isinstance(field.get("type"), list):
        types = [type_ for type_ in field["type"] if type_ != "null"]
        return {**rest, "type": types[0] if len(types) == 1 else types}
    choices = [choice for choice in field.get("anyOf", []) if choice != {"type": "null"}]
    return {**rest, **(choices[0] if len(choices) == 1 else {"anyOf": choices} if choices else {})}


def prose(text: str) -> str:
    """A docstring as plain text."""
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"\1", inspect.cleandoc(text))
    return re.sub(r"\s+", " ", text.replace("``", "")).strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
