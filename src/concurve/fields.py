"""What the JSON Schemas say of a field beside its type: a description, bounds, and whether it is
always there.

The schemas are generated from the types (``scripts/generate_schemas.py``). They say what this
version writes. Reading checks the types alone, so that data of older and newer versions loads.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

#: The key that marks :data:`ALWAYS` in a generated schema; it is removed before writing.
ALWAYS_KEY = "x-always"

#: Marks a field that has a default for tests and older data, but is always written.
ALWAYS = Meta(extra_json_schema={ALWAYS_KEY: True})


def about(description: str = "", **keywords: Any) -> Meta:
    """A description, with further keywords of JSON Schema."""
    given = {"description": description} if description else {}
    return Meta(extra_json_schema={**given, **keywords})


Count = Annotated[int, about(minimum=0)]
Positive = Annotated[int, about(minimum=1)]
Text = Annotated[str, about(minLength=1)]
