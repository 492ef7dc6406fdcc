"""Bookmarks of the picture: a region and its iteration depths, as TOML and as XML. Pure.

The TOML file is the one that the kernels and studies take (``--location``). The XML file has the
same nine names as elements; document 002 kept its region in a ``benchmark-location.xml`` whose form
it does not show.
"""

from __future__ import annotations

import math
import tomllib
import xml.etree.ElementTree as ET
from typing import Any

import msgspec

from concurve.errors import StudyError

#: The greatest width and height, and the greatest depth, that the kernels take.
SIDE_MAX = 16_384
DEPTH_MAX = 2**32 - 1

_ROOT = "bookmark"
_REALS = ("x_min", "x_max", "y_min", "y_max")
_SIDES = ("width", "height")
_DEPTHS = ("iterations_quick", "iterations_normal", "iterations_rigorous")
_KEYS = (*_REALS, *_SIDES, *_DEPTHS)


class Bookmark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A region of the complex plane, the size of its picture, and its iteration depths."""

    x_min: float
    x_max: float
    y_min: float
    y_max: float
    width: int
    height: int
    iterations_quick: int
    iterations_normal: int
    iterations_rigorous: int


def check(bookmark: Bookmark) -> Bookmark:
    """The bookmark, if it means a picture.

    Raises:
        StudyError: a number that makes no sense, by its name.
    """
    for name in _REALS:
        if not math.isfinite(getattr(bookmark, name)):
            raise StudyError(f"bookmark, {name}: not finite", "a number such as -0.75")
    for low, high in (("x_min", "x_max"), ("y_min", "y_max")):
        if getattr(bookmark, low) >= getattr(bookmark, high):
            raise StudyError(f"bookmark, {high}: it must be greater than {low}", "the upper bound")
    for names, most in ((_SIDES, SIDE_MAX), (_DEPTHS, DEPTH_MAX)):
        for name in names:
            if not 1 <= getattr(bookmark, name) <= most:
                raise StudyError(
                    f"bookmark, {name}: {getattr(bookmark, name)} is out of range",
                    f"a whole number from 1 to {most}",
                )
    return bookmark


def parse(text: str) -> Bookmark:
    """The bookmark of a file in either form.

    Raises:
        StudyError: it is neither, a number is missing, or one makes no sense.
    """
    text = text.strip("\ufeff \t\r\n")
    values = _of_xml(text) if text.startswith("<") else _of_toml(text)
    try:
        return check(msgspec.convert(values, Bookmark))
    except msgspec.ValidationError as error:
        raise StudyError(
            f"bookmark: {error}", f"numbers for {', '.join(_KEYS)} and nothing else"
        ) from error


def to_toml(bookmark: Bookmark) -> str:
    """The file that kernels and studies take."""
    return "".join(f"{name} = {getattr(bookmark, name)!r}\n" for name in _KEYS)


def to_xml(bookmark: Bookmark) -> str:
    """The same as XML."""
    root = ET.Element(_ROOT)
    for name in _KEYS:
        ET.SubElement(root, name).text = repr(getattr(bookmark, name))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _of_toml(text: str) -> dict[str, Any]:
    try:
        found = tomllib.loads(text.replace("\r\n", "\n"))
        # TOML tells whole numbers from others, and both are numbers here.
        return {
            name: float(value) if name in _REALS and type(value) is int else value
            for name, value in found.items()
        }
    except (ValueError, OverflowError, RecursionError) as error:
        raise StudyError(f"bookmark: {error}", "lines such as x_min = -0.75") from error


def _of_xml(text: str) -> dict[str, Any]:
    if "<!" in text.replace("<!--", ""):
        # A document type may define entities that grow without bounds.
        raise StudyError("bookmark: a document type is not read", f"<{_ROOT}> and its elements")
    try:
        root = ET.fromstring(text)
    except (ET.ParseError, ValueError, RecursionError) as error:
        raise StudyError(f"bookmark: {error}", f"<{_ROOT}><x_min>-0.75</x_min>…") from error
    if root.tag != _ROOT:
        raise StudyError(f"bookmark: the root is <{root.tag[:40]}>", f"<{_ROOT}>")
    values: dict[str, Any] = {}
    for element in root:
        if element.tag in values or len(element):
            raise StudyError(f"bookmark, {element.tag[:40]}: not one number", "each name once")
        values[element.tag] = _number(element.tag, (element.text or "").strip())
    return values


def _number(name: str, text: str) -> float | int | str:
    try:
        return int(text) if name in (*_SIDES, *_DEPTHS) else float(text)
    except ValueError:
        return text  # refused by its type, with its name
