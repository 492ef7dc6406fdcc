"""Claims of a study's source → verdicts, each kind by a small test of its own. Pure.

A verdict is ``supported`` or ``refuted`` only where the interval leaves no doubt; otherwise
``undecided``. All verdicts of a study hold together with 95 %
(:func:`~concurve.stats.comparison.together`), except those on exact readings, which have no error.
A claim that ``needs`` cells to differ which are alike ``cannot be decided``
(:mod:`concurve.analysis.claims.needs`). One whose cells are missing in this run (fewer CPUs, a
shorter effort, a skipped cell) is ``not testable here``, with the reason.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from concurve import words
from concurve.analysis.claims.answer import Answer, setting_in_words
from concurve.analysis.claims.exact import (
    distinct,
    linear,
    mapping,
    overlap,
    ratio_of_steps,
    same,
    step,
)
from concurve.analysis.claims.levels import best_setting, constant_within, order, steadier
from concurve.analysis.claims.needs import where_they_differ
from concurve.analysis.claims.parsed import tests_of
from concurve.analysis.claims.ratios import (
    best_ratio,
    figure,
    ratio,
    ratio_of_indicators,
    ratio_of_ratios,
    speedup,
    spread,
)
from concurve.analysis.samples import MissingError, Samples
from concurve.definition.claim_kinds import Cell, ClaimTest, Untestable, at_levels
from concurve.definition.study import Claim, Study
from concurve.findings.claims import ClaimFinding
from concurve.stats.comparison import together
from concurve.terms import Level


class _AtLevels(NamedTuple):
    """A claim at the levels at which it is judged."""

    claim: Claim
    test: ClaimTest
    levels: Cell

    def ask(self, samples: Samples, confidence: float) -> Answer:
        """The answer of this run."""
        try:
            if self.claim.kind in _EXACT:
                return _EXACT[self.claim.kind](self.test, samples)
            test = partial(_TESTS[self.claim.kind], self.test, samples)
            if self.test.needs is None:
                return test(confidence)
            needs, indicator = self.test.needs, self.test.indicator
            return where_they_differ(test, needs, indicator, samples, confidence)
        except MissingError as missing:
            return Answer("not testable here", str(missing), None, "")


def judge_claims(
    study: Study, samples: Samples, block_seconds: float | None = None, had: int = 0
) -> tuple[ClaimFinding, ...]:
    """A verdict on every claim of a study; on one with ``each``, a verdict at every level.

    ``block_seconds``: the time of one block, to say how long further trials take. ``had``: the
    trials of a cell in use, where some are set aside and not in the samples: as many again would
    only repeat the run.
    """
    asked = [
        _AtLevels(claim, at_levels(test, levels), levels)
        for claim, test in tests_of(study, samples)
        for levels in _combinations(test.each, samples)
    ]
    first = [one.ask(samples, 0.95) for one in asked]
    # What has no error, or no test, is not counted.
    counted = [
        index
        for index, (one, answer) in enumerate(zip(asked, first, strict=True))
        if one.claim.kind in _TESTS and answer.verdict != "not testable here"
    ]
    tests = [partial(asked[index].ask, samples) for index in counted]
    answers = together(tests, lambda answer: answer.verdict != "undecided")
    found = dict(zip(counted, answers, strict=True))
    return tuple(
        _finding(
            one,
            _with_what_decides(found.get(index, answer), block_seconds, had),
            len(counted) if index in found else 0,
            samples,
        )
        for index, (one, answer) in enumerate(zip(asked, first, strict=True))
    )


def _combinations(
    each: Sequence[str] | Mapping[str, Sequence[Level]], samples: Samples
) -> list[Cell]:
    named = each if isinstance(each, Mapping) else dict.fromkeys(each, ())
    columns = [levels or samples.levels(factor) for factor, levels in named.items()]
    return [dict(zip(named, levels, strict=True)) for levels in itertools.product(*columns)]


def _with_what_decides(answer: Answer, block_seconds: float | None, had: int = 0) -> Answer:
    """An undecided answer with how many trials would decide it, where that is known: more than
    this run ``had``."""
    figure = answer.estimate
    if answer.trials is None or figure is None or answer.verdict != "undecided":
        return answer
    trials = max(answer.trials, figure.n + 1, had + 1)
    run = f" (a new run of about {words.duration(trials * block_seconds)})" if block_seconds else ""
    return answer._replace(
        trials=trials,
        reason=f"{answer.reason}; {words.count(trials, 'trial')} of each would decide it{run}",
    )


def _finding(one: _AtLevels, answer: Answer, family: int, samples: Samples) -> ClaimFinding:
    claim, test, levels = one
    return ClaimFinding(
        id="-".join([claim.id, *map(str, levels.values())]),
        says=claim.says + _setting(levels, samples),
        source=claim.source,
        kind=claim.kind,
        verdict=answer.verdict,
        reason=answer.reason,
        threshold=answer.threshold,
        estimate=answer.estimate,
        published=test.published,
        claim=claim.id,
        indicator=test.indicator,
        cell=getattr(test, "of", {}),
        family=family,
        trials=answer.trials,
        setting=levels,
        differ=answer.differ,
        differ_by=None if test.needs is None else test.needs.differ_by,
    )


def _setting(levels: Cell, samples: Samples) -> str:
    """Where the claim was judged: the levels of factors that have several in this run."""
    varying = {name: level for name, level in levels.items() if len(samples.levels(name)) > 1}
    return f" [{setting_in_words(varying)}]" if varying else ""


def _untestable(test: Untestable, samples: Samples) -> Answer:
    raise MissingError(test.reason)


#: Tests of figures with an error, at a confidence.
_TESTS: dict[str, Callable[[Any, Samples, float], Answer]] = {
    "speedup": speedup,
    "ratio": ratio,
    "ratio_of_indicators": ratio_of_indicators,
    "constant_within": constant_within,
    "steadier": steadier,
    "figure": figure,
    "best_setting": best_setting,
    "best_ratio": best_ratio,
    "spread": spread,
    "order": order,
    "ratio_of_ratios": ratio_of_ratios,
}

#: Tests of exact readings, which have none.
_EXACT: dict[str, Callable[[Any, Samples], Answer]] = {
    "mapping": mapping,
    "step": step,
    "ratio_of_steps": ratio_of_steps,
    "same": same,
    "linear": linear,
    "distinct": distinct,
    "overlap": overlap,
    "untestable": _untestable,
}
