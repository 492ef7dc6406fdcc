"""Which settings cannot be distinguished from the best."""

from __future__ import annotations

import msgspec

from concurve.terms import Level


class BestFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Which settings cannot be distinguished from the best by an indicator, among the cells of a
    group.

    ``group`` has the levels that these cells share (empty: all cells of the run), ``factors``
    those that vary among them. ``settings`` holds levels of the latter, as do ``smallest``, the
    smallest of the set, and ``leader``, the one with the best centre. ``decide`` says what would
    decide between the best two, and ``trials`` how many of each setting it takes. ``doubt`` says
    why nothing is recommended, where a setting's figure rests on trials in doubt. ``is_tentative``:
    what these figures would say is worth a mention; it is not where they do not compare settings.
    """

    indicator: str
    label: str
    group: dict[str, Level]
    factors: tuple[str, ...]
    settings: tuple[dict[str, Level], ...]
    smallest: dict[str, Level]
    leader: dict[str, Level]
    compared: int
    decide: str = ""
    trials: int | None = None
    doubt: str = ""
    is_tentative: bool = False

    @property
    def recommended(self) -> dict[str, Level] | None:
        """The setting to use; ``None`` where ``doubt`` says why none is recommended."""
        return None if self.doubt else self.smallest
