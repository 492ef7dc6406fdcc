"""The values of a run that the tests of claims and of published figures read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from concurve.estimate import Estimate
from concurve.planning.doubt import is_doubtful
from concurve.stats.blocks import Blocks, block_ratio, block_ratios, log_ratios
from concurve.stats.centre import centre_estimate
from concurve.stats.resolution import relative
from concurve.stats.signed_ranks import Ranked
from concurve.terms import Level

Setting = Mapping[str, Level]
"""The levels that name a cell."""


class MissingError(Exception):
    """A cell or an indicator that this run does not have.

    ``cell`` names the cell if one lacks something, and ``reason`` says what is missing; the text of
    the error is both.
    """

    def __init__(self, reason: str, cell: str = "") -> None:
        self.reason = reason
        self.cell = cell
        super().__init__(f"{cell} {reason}" if cell else reason)


def exact(_cell: Setting, _indicator: str) -> float:
    """The resolution of readings that are exact."""
    return 0.0


class Samples(NamedTuple):
    """Reads the values of a run; raises :class:`MissingError` where there are none.

    ``by_block`` gives a cell's values of an indicator by block. ``resolution`` says by how much a
    reading of an indicator in a cell may be off, in its unit: 0 for counts and other exact
    readings. ``is_staged``: the data have set the number of trials. ``quiet`` are the samples of
    the quiet trials alone, where figures of a cell rest on others too.
    """

    by_block: Callable[[Setting, str], Blocks]
    levels: Callable[[str], Sequence[Level]]
    better: Callable[[str], str]
    resolution: Callable[[Setting, str], float] = exact
    is_staged: bool = False
    quiet: Any = None  # Samples | None: a named tuple cannot name itself

    def values(self, cell: Setting, indicator: str) -> Sequence[float]:
        """The values of an indicator in a cell, in the order of the blocks.

        Raises:
            MissingError: the cell or the indicator was not measured.
        """
        return list(self.by_block(cell, indicator).values())

    def centre(self, cell: Setting, indicator: str, confidence: float = 0.95) -> Estimate:
        """The centre of an indicator in a cell.

        Raises:
            MissingError: the cell or the indicator was not measured.
        """
        values = self.values(cell, indicator)
        found = centre_estimate(
            values,
            confidence=confidence,
            is_staged=self.is_staged,
            resolution=self.resolution(cell, indicator),
        )
        if self.quiet is None:
            return found
        try:
            quiet = self.quiet.values(cell, indicator)
        except MissingError:
            quiet = ()
        return found.doubted(quiet) if is_doubtful(len(quiet), len(values)) else found

    def ratio(
        self, top: Setting, bottom: Setting, indicator: str, confidence: float = 0.95
    ) -> Estimate | None:
        """``indicator`` in the cell ``top`` over that in ``bottom``, over their common blocks;
        ``None`` where a value is not above 0.

        Raises:
            MissingError: a cell or the indicator was not measured, or no block holds both.
        """
        pair = self._both(top, bottom, indicator)
        found = block_ratio(
            *pair, confidence, self.is_staged, self.ratio_resolution(top, bottom, indicator)
        )
        if self.quiet is None or found is None:
            return found
        try:
            above, below = self.quiet._both(top, bottom, indicator)
        except MissingError:
            return found.doubted()
        return found.doubted() if is_doubtful(len(above.keys() & below.keys()), found.n) else found

    def ratios(
        self, pairs: Sequence[tuple[Setting, Setting]], indicator: str
    ) -> list[Estimate | None]:
        """:meth:`ratio` of many pairs of cells; ``None`` also where a cell or the indicator was not
        measured, or no block holds both."""
        known: dict[int, tuple[Blocks, Blocks]] = {}
        for place, (top, bottom) in enumerate(pairs):
            with suppress(MissingError):
                known[place] = self._both(top, bottom, indicator)
        found: list[Estimate | None] = [None] * len(pairs)
        if self.quiet is not None:
            for place in known:
                found[place] = self.ratio(*pairs[place], indicator)
            return found
        off = [self.ratio_resolution(*pairs[place], indicator) for place in known]
        computed = block_ratios(list(known.values()), is_staged=self.is_staged, resolutions=off)
        for place, figure in zip(known, computed, strict=True):
            found[place] = figure
        return found

    def log_ratios(self, top: Setting, bottom: Setting, indicator: str) -> Ranked | None:
        """The log ratios of the common blocks, for tests; ``None`` for fewer than two blocks, or
        where a value is not above 0.

        Raises:
            MissingError: as in :meth:`ratio`.
        """
        return log_ratios(
            *self._both(top, bottom, indicator), self.ratio_resolution(top, bottom, indicator)
        )

    def ratio_resolution(self, top: Setting, bottom: Setting, indicator: str) -> float:
        """By which share a ratio of two readings may be off: 0.01 for 1 %."""
        steps = ((cell, self.resolution(cell, indicator)) for cell in (top, bottom))
        return sum(relative(step, self.values(cell, indicator)) for cell, step in steps if step)

    def _both(self, top: Setting, bottom: Setting, indicator: str) -> tuple[Blocks, Blocks]:
        above, below = self.by_block(top, indicator), self.by_block(bottom, indicator)
        if not above.keys() & below.keys():
            raise MissingError(
                f"has {indicator} in no block that has it in {_named(bottom)}", _named(top)
            )
        return above, below


def _named(cell: Setting) -> str:
    return ", ".join(f"{name}={level}" for name, level in cell.items())
