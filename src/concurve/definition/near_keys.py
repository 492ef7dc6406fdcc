"""What somebody may have meant with a key that is not known: another spelling, another table, or
the word that another part of the laboratory, or another tool, has for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from concurve.words import nearest

#: From here on, two keys differ by a slip of the fingers.
_SLIP = 0.65


def remedy_for(
    key: str,
    known: Iterable[str],
    elsewhere: Mapping[str, Iterable[str]] | None = None,
    meant: Mapping[str, str] | None = None,
) -> str:
    """What to write instead of ``key``, in a table with the keys ``known``: ``elsewhere`` has those
    of other tables by their headings, ``meant`` what to do for other words."""
    known = list(known)
    plain = {_plain(name): name for name in known}
    if _plain(key) in plain:
        return f"did you mean {plain[_plain(key)]!r}?"
    if meant and _plain(key) in meant:
        return meant[_plain(key)]
    slip = nearest(_plain(key), plain, _SLIP)
    if slip is not None:
        return f"did you mean {plain[slip]!r}?"
    headings = [name for name, keys in (elsewhere or {}).items() if key in keys]
    if headings:
        return f"{key!r} is a key of {_either(headings)}: write it there"
    near = nearest(_plain(key), plain)
    if near is not None:
        return f"did you mean {plain[near]!r}?"
    return f"the keys are {', '.join(known)}"


def _plain(key: str) -> str:
    return key.lower().replace("-", "_")


def _either(names: list[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
