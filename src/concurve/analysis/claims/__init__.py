"""Claims of a study's source → verdicts, each kind by a small test of its own. Pure.

A verdict is ``supported`` or ``refuted`` only where the 95 % interval leaves no doubt; otherwise
``undecided``. A claim whose cells are missing in this run (fewer CPUs, a shorter effort, a skipped
cell) is ``not testable here``, with the reason.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from concurve.analysis.claims.answer import Answer, setting_in_words
from concurve.analysis.claims.exact import distinct, linear, mapping, overlap, same, step
from concurve.analysis.claims.levels import best_setting, constant_within, order
from concurve.analysis.claims.ratios import best_ratio, ratio, ratio_of_ratios, speedup, spread
from concurve.analysis.samples import MissingError, Samples
from concurve.definition.claim_kinds import Cell, ClaimTest, Untestable, at_levels, parse_test
from concurve.definition.study import Claim, Study
from concurve.findings.claims import ClaimFinding
from concurve.terms import Level


def judge_claims(study: Study, samples: Samples) -> tuple[ClaimFinding, ...]:
    """A verdict on every claim of a study; on one with ``each``, a verdict at every level."""
    return tuple(
        _judge(claim, at_levels(test, levels), levels, samples)
        for claim in study.claims
        for test in [parse_test(claim, "study")]
        for levels in _combinations(test.each, samples)
    )


def _combinations(
    each: Sequence[str] | Mapping[str, Sequence[Level]], samples: Samples
) -> list[Cell]:
    named = each if isinstance(each, Mapping) else dict.fromkeys(each, ())
    columns = [levels or samples.levels(factor) for factor, levels in named.items()]
    return [dict(zip(named, levels, strict=True)) for levels in itertools.product(*columns)]


def _judge(claim: Claim, test: ClaimTest, levels: Cell, samples: Samples) -> ClaimFinding:
    try:
        answer = _TESTS[claim.kind](test, samples)
    except MissingError as missing:
        answer = Answer("not testable here", str(missing), None, "")
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
    )


def _setting(levels: Cell, samples: Samples) -> str:
    """Where the claim was judged: the levels of factors that have several in this run."""
    varying = {name: level for name, level in levels.items() if len(samples.levels(name)) > 1}
    return f" [{setting_in_words(varying)}]" if varying else ""


def _untestable(test: Untestable, samples: Samples) -> Answer:
    raise MissingError(test.reason)


_TESTS: dict[str, Callable[[Any, Samples], Answer]] = {
    "speedup": speedup,
    "ratio": ratio,
    "constant_within": constant_within,
    "best_setting": best_setting,
    "best_ratio": best_ratio,
    "mapping": mapping,
    "spread": spread,
    "order": order,
    "ratio_of_ratios": ratio_of_ratios,
    "step": step,
    "same": same,
    "linear": linear,
    "distinct": distinct,
    "overlap": overlap,
    "untestable": _untestable,
}
