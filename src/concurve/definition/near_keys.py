"""What somebody may have meant with a key that is not known: another spelling, another table, or
the word that another part of the laboratory, or another tool, has for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from concurve.words import did_you_mean, listed, nearest

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
        return did_you_mean(plain[_plain(key)])
    if meant and _plain(key) in meant:
        return meant[_plain(key)]
    slip = nearest(_plain(key), plain, _SLIP)
    if slip is not None:
        return did_you_mean(plain[slip])
    headings = [name for name, keys in (elsewhere or {}).items() if key in keys]
    if headings:
        return f"{key!r} is a key of {listed(headings, 'or')}: write it there"
    near = nearest(_plain(key), plain)
    if near is not None:
        return did_you_mean(plain[near])
    return f"the keys are {', '.join(known)}"


def _plain(key: str) -> str:
    return key.lower().replace("-", "_")
