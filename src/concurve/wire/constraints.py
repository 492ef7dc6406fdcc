"""What the schemas say of a field beside its type: a description, bounds, and whether it may be
left out.

The schemas are generated from the types (``scripts/generate_schemas.py``). They are strict: they
say what a runner of this version writes. Reading checks types alone, so that records of older and
newer runners load.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

#: The key by which a schema is told of :data:`ALWAYS`; no schema that is written holds it.
ALWAYS_KEY = "x-always"

#: Of a field that has a default for tests and older records, and that a runner always writes.
ALWAYS = Meta(extra_json_schema={ALWAYS_KEY: True})


def says(description: str, **constraints: Any) -> Meta:
    """A description, with further keywords of JSON Schema."""
    return Meta(extra_json_schema={"description": description, **constraints})


Count = Annotated[int, Meta(extra_json_schema={"minimum": 0})]
Positive = Annotated[int, Meta(extra_json_schema={"minimum": 1})]
