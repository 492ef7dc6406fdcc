"""Parts of addresses: ids and numbers."""

from __future__ import annotations

import re

from starlette.exceptions import HTTPException
from starlette.requests import Request

#: An id of a run or a campaign. It stands in command lines, so it is none of their options.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")

#: The number of a measurement or of a picture.
_NUMBER = re.compile(r"[0-9]{1,9}")


def id_of(request: Request) -> str:
    """The run or campaign that an address names; 404 where it can be none."""
    found: str = request.path_params["run"]
    if not _ID.fullmatch(found):
        raise HTTPException(404)
    return found


def number_of(request: Request) -> int:
    """The number that an address names; 404 where it is none."""
    found: str = request.path_params["number"]
    if not _NUMBER.fullmatch(found):
        raise HTTPException(404)
    return int(found)
