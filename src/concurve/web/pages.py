"""The pages: templates, filled in. Whatever comes from outside is escaped by the templates."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from concurve.report import format as fmt
from concurve.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment


def page(name: str, **content: Any) -> str:
    """A page by the name of its template."""
    return _environment().get_template(f"{name}.html.j2").render(version=__version__, **content)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("concurve.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"clean": fmt.clean, "moment": fmt.moment, "as_json": _as_json}
    return made


def _as_json(content: Any) -> str:
    """JSON for an attribute of an element; the template escapes it."""
    return msgspec.json.encode(content).decode()
