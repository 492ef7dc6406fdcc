"""Numbers in sentences: counts with their nouns, lists, durations, shares, short figures; causes
that are codes in a record; and texts from outside, such as the names of processes."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence

#: What stands for a figure that is none.
MISSING = "–"

#: What was read of a trial that is rejected or in doubt, in words; other causes are words already.
_CAUSES = {
    "steal": "the hypervisor took CPU time",
    "foreign_cpu": "other processes used the CPUs",
    "low_priority": "processes of low priority used the CPUs",
    "run_queue": "threads waited for a CPU that others used",
    "late_reading": "the probes were read late",
    "late_start": "a host started its roles late",
    "program_failed": "the program failed",
    "not_ready": "was not ready",
    "timed_out": "timed out",
    "undecided": "the search for a rate gave none",
    "timed_out, machine busy": "timed out on a busy machine",
}

#: Those of them by which others disturbed a trial: their details are figures of that trial alone.
DISTURBANCES = frozenset(
    ("steal", "foreign_cpu", "low_priority", "run_queue", "late_reading", "late_start")
)

#: A message names so many of the names that may be meant, and so many of all.
NAMES_MEANT, NAMES_LISTED = 3, 12

#: How much alike two names are, of 1, so that one may be a slip for the other; what is longer than
#: so many letters may be a part of the name.
NEAR, LETTERS_HELD = 0.6, 2

#: Parts of a second, each up to where three digits would be rounded to 1e+03.
_PARTS = ((0.9995e-6, 1e9, "ns"), (0.9995e-3, 1e6, "µs"), (0.9995, 1e3, "ms"))

#: Of a process that is to serve, and hardly ran while its load was answered.
IDLE_SERVER = (
    "the attached process, or the server, used no CPU time while the load was answered: is it the "
    "process that answers?"
)


def clean(text: str) -> str:
    """Text on one line, without control characters that a terminal would execute."""
    if text.isprintable():
        return text
    return "".join(" " if char in "\n\t\r" else "�" if _steers(char) else char for char in text)


def _steers(char: str) -> bool:
    """Is it a control character, or one that changes the direction of the text?"""
    code = ord(char)
    return (
        code < 32
        or 0x7F <= code < 0xA0
        or 0x202A <= code <= 0x202E
        or 0x2066 <= code <= 0x2069
        or 0xD800 <= code <= 0xDFFF
    )


def count(number: int, singular: str, plural: str = "") -> str:
    """A count with its noun: ``1 trial``, ``12,000 trials``, ``2 studies``."""
    return f"{number:,} {singular if number == 1 else plural or plural_of(singular)}"


def count_of(number: int, total: int, singular: str, plural: str = "") -> str:
    """A part of a count: ``2 of 3 studies``; ``1 study`` of a single one."""
    if number == total == 1:
        return count(1, singular)
    return f"{number:,} of {count(total, singular, plural)}"


def all_of(number: int, singular: str) -> str:
    """All of several: ``both cells``, ``all 3 cells``."""
    return f"both {plural_of(singular)}" if number == 2 else f"all {count(number, singular)}"


def plural_of(singular: str) -> str:
    """``trials`` of ``trial``, ``studies`` of ``study``."""
    if singular.endswith("y") and singular[-2:-1] not in "aeiou":
        return f"{singular[:-1]}ies"
    return f"{singular}s"


def verb(number: int, one: str = "is", many: str = "are") -> str:
    """The verb that follows a count: ``is`` after 1, else ``are``; or another pair."""
    return one if number == 1 else many


def listed(names: Sequence[str], last: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def figure(label: str) -> str:
    """The label of a figure in a sentence: ``CPU time of the role client`` for ``client: CPU
    time``."""
    role, colon, what = label.partition(": ")
    return f"{what} of the role {role}" if colon else label


def sentence(text: str) -> str:
    """A text as the beginning of a sentence; one that begins with the name of a figure keeps it:
    ``load.unanswered``, ``wall_seconds``."""
    first = text.partition(" ")[0]
    is_name = "." in first or "_" in first
    return text if is_name else text[:1].upper() + text[1:]


def nearest(wanted: str, names: Iterable[str], cutoff: float = NEAR) -> str | None:
    """The name that is most alike; ``None`` where none is alike enough (``cutoff``, of 1)."""
    return next(iter(difflib.get_close_matches(wanted, list(names), n=1, cutoff=cutoff)), None)


def meant(wanted: str, names: Iterable[str], otherwise: str | None = None) -> str:
    """A remedy for a name that is none of these: ``did you mean 'threads'?``, with more than one
    where they hold what was written; else ``otherwise``, or ``one of`` the names. A number is no
    slip for another one."""
    known = list(names)
    is_wanted_number = is_number(wanted)
    holding = (name for name in known if wanted.lower() in name.lower())
    held = sorted((name for name in holding if not (is_wanted_number and is_number(name))), key=len)
    near = None if is_wanted_number else nearest(wanted, known)
    if near is not None:
        return did_you_mean(near)
    if held and len(wanted) > LETTERS_HELD:
        return did_you_mean(*held[:NAMES_MEANT])
    return otherwise or one_of(known)


def did_you_mean(*names: str | None) -> str:
    """``did you mean 'threads'?``, or one of several; empty without a name."""
    shown = [repr(name) for name in names if name is not None]
    return f"did you mean {listed(shown, 'or')}?" if shown else ""


def is_number(text: str) -> bool:
    """Whether Python reads it as a number, ``inf`` and ``nan`` included."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def one_of(names: Sequence[str]) -> str:
    """``one of`` the first names, and how many more there are; ``one of none`` without any."""
    more = f" and {len(names) - NAMES_LISTED} more" if len(names) > NAMES_LISTED else ""
    return f"one of {', '.join(names[:NAMES_LISTED]) or 'none'}{more}"


def duration(seconds: float) -> str:
    """A duration: ``24.6 µs``, ``850 ms``, ``9.9 s``, ``71 s``, ``3 min 20 s``, ``2 h 05 min``,
    ``3 d 2 h``; a dash for what is none."""
    if not math.isfinite(seconds) or seconds < 0:
        return MISSING
    for below, in_a_second, unit in _PARTS:
        if 0 < seconds < below:
            return f"{seconds * in_a_second:.3g} {unit}"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 89.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours < 24 else f"{hours // 24} d {hours % 24} h"


def quantity(value: float, unit: str) -> str:
    """A figure with its unit to three digits: ``1.15 s``, ``24.6 µs``, ``12,300 1/s``."""
    size, shown = _scale(value, unit)
    return f"{_three_digits(value * size)} {shown}".rstrip()


def quantity_with_interval(value: float, low: float | None, high: float | None, unit: str) -> str:
    """The same with its interval: ``24.6 µs [24.1, 25.2]``."""
    size, _ = _scale(value, unit)
    span = "(one trial, no interval)"
    if low is not None and high is not None:
        span = f"[{_three_digits(low * size)}, {_three_digits(high * size)}]"
    return f"{quantity(value, unit)} {span}"


def quantity_range(low: float, high: float, unit: str) -> str:
    """The least and the greatest of some figures, with their unit: ``0.975 to 1.02 s``."""
    size, shown = _scale(high, unit)
    return f"{_three_digits(low * size)} to {_three_digits(high * size)} {shown}".rstrip()


#: A ratio is written with so many decimals, unless they hide on which side of 1 it is.
_RATIO_DIGITS = 2
_RATIO_DIGITS_MAX = 6


def ratio_digits(value: float, low: float | None = None, high: float | None = None) -> int:
    """With how many decimals a ratio and its interval are written: so many that an interval that
    leaves out 1 does so in print, and that a small ratio has two digits of its own."""
    digits = _RATIO_DIGITS
    ends = [end for end in (low, high) if end is not None]
    if ends and not min(ends) <= 1 <= max(ends):
        nearest_end = min(ends, key=lambda end: abs(end - 1))
        while digits < _RATIO_DIGITS_MAX and round(nearest_end, digits) == 1:
            digits += 1
    if not 0 < value < 1:
        return digits
    return max(digits, min(_RATIO_DIGITS_MAX, 1 - math.floor(math.log10(value))))


def _scale(value: float, unit: str) -> tuple[float, str]:
    """How many of the unit that is shown make one of the unit that is given, and that unit."""
    for below, in_a_second, part in _PARTS if unit == "s" else ():
        if 0 < value < below:
            return in_a_second, part
    return 1.0, unit


def _three_digits(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def in_decimals(value: float, digits: int = 3) -> str:
    """A small number without an exponent, to so many digits: ``0.0000012``. What is next to nothing
    beside 1 is 0."""
    if abs(value) < 1e-8:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:.{max(places, 0)}f}".rstrip("0").rstrip(".")


def share(part: float) -> str:
    """A difference as a share, to two digits: ``0.34 %``, ``2.1 %``, ``120 %``."""
    percent = 100 * part
    digits = 0 if percent >= 10 else 1 if percent >= 1 else 2
    return f"{percent:.{digits}f} %"


def in_percent(part: float, digits: int = 2) -> str:
    """The number of a percentage, to so many digits and without an exponent: ``0.34``, ``150``."""
    value = float(f"{100 * part:.{digits}g}")
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:g}"


def percent(part: float) -> str:
    """A part of a whole, in prose: ``51 %``, ``0.4 %``."""
    value = 100 * part
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.1f} %"


def whole_percent(part: float) -> str:
    """A part of a whole in whole percent, for tables; a very small one as ``<1 %``."""
    return "<1 %" if 0 < part < 0.005 else f"{100 * part:.0f} %"


def cause(name: str) -> str:
    """Why a trial is rejected or in doubt, in words."""
    return _CAUSES.get(name, name)


def why(code: str, detail: str) -> str:
    """A cause and what was read: ``timed out: the time limit of 2 s passed``; either may be
    empty."""
    return ": ".join(filter(None, (cause(code), detail)))


def option_duration(seconds: float) -> str:
    """A duration as one gives it to an option: ``95s``, ``25m``, ``12h``, rounded up, since what is
    advised is to suffice."""
    if seconds <= 120:
        return f"{math.ceil(seconds)}s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes}m" if minutes < 600 else f"{math.ceil(minutes / 60)}h"
