"""What the studies of a campaign say to its question, and on what that hangs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from concurve import words
from concurve.analysis.campaign.compared import Compared, LeftOut, Setting, compared
from concurve.analysis.campaign.summary import name_of
from concurve.analysis.claims.answer import setting_in_words
from concurve.definition.campaign import Answer, Campaign
from concurve.estimate import Estimate
from concurve.findings.campaign import StudyFindings
from concurve.findings.claims import ClaimFinding
from concurve.findings.run import Finding, TrialFindings
from concurve.planning.plan import describe
from concurve.stats.best import ALIKE
from concurve.terms import Level
from concurve.words import listed

#: Where a campaign does not say what answers it, so many of its studies are quoted: each with its
#: first answer, a lone one with so many.
STUDIES_QUOTED = 6
OF_A_LONE_ONE = 4

#: Two levels whose interval of the ratio lies within 5 % of 1 are alike.
_ALIKE = 1 + ALIKE

#: What stands in brackets at the end of a sentence.
_BRACKETS = re.compile(r" \([^()]*\)$")


class CampaignAnswers(NamedTuple):
    """The sentences, that which answers the question first; and the study that it is said of, or
    empty where none has an answer."""

    said: tuple[Finding, ...]
    study: str


def answers(campaign: Campaign, studies: Sequence[StudyFindings[TrialFindings]]) -> CampaignAnswers:
    """What the entries of the campaign's ``answer`` say of the studies that have a run; where it
    has none, or none of these has a figure, what the studies say themselves."""
    by_name = {study.name: study for study in studies}
    said = [
        (asked.study, found)
        for asked in campaign.answer
        if asked.study in by_name and (found := list(_said(asked, by_name[asked.study])))
    ]
    # A sentence without the name of a study is the answer that the campaign asks for first.
    is_meant = bool(said) and said[0][0] == campaign.answer[0].study
    said = said or list(_of_the_studies(studies))
    if not said:
        why = "none of its studies has an answer yet"
        return CampaignAnswers((_warning(f"The question cannot be answered: {why}."),), "")
    is_plain = is_meant or (len(studies) == 1 and not campaign.answer)
    sentences = [
        text if is_plain and not place else f"{_lead(by_name[name])}: {text}"
        for place, (name, texts) in enumerate(said)
        for text in texts
    ]
    quoted = [Finding(kind="answer", sentence=text) for text in sentences]
    if not is_plain:
        quoted.append(_warning(_not_meant(campaign)))
    return CampaignAnswers(tuple(quoted), said[0][0])


def _warning(text: str) -> Finding:
    return Finding(kind="warning", sentence=text)


def _lead(study: StudyFindings[TrialFindings]) -> str:
    name = name_of(study)
    return f"{name[:1].upper()}{name[1:]}"


def _not_meant(campaign: Campaign) -> str:
    """Why the first sentence is not the answer to the question of the campaign."""
    if not campaign.answer:
        return (
            "The campaign does not name what answers its question, so each study answers its own: "
            "[[answer]] in campaign.toml names it."
        )
    return (
        f"The study that answers the question first, {campaign.answer[0].study}, has no figures; "
        "this is what the others say."
    )


def _said(asked: Answer, study: StudyFindings[TrialFindings]) -> Iterator[str]:
    """What one entry says of its study; nothing where that has no figures."""
    if study.run is None:
        return
    if asked.factor:
        found = compared(study.run, asked)
        if found is not None:
            where = f"With {describe(dict(asked.where))}: " if asked.where else ""
            text = _answer(asked, found)
            yield f"{where}{text[0].lower()}{text[1:]}" if where else text
            yield from _hangs(asked, found)
    elif not asked.claims:
        yield from _own(study.run)[:1]
    for claim in asked.claims:
        yield from _claim([item for item in study.run.claims if item.claim == claim])


def _of_the_studies(
    studies: Sequence[StudyFindings[TrialFindings]],
) -> Iterator[tuple[str, list[str]]]:
    """The first answer of each study; the answers of a lone one."""
    own = [(study.name, _own(study.run)) for study in studies if study.run is not None]
    most = OF_A_LONE_ONE if len(studies) == 1 else 1
    for name, found in [item for item in own if item[1]][:STUDIES_QUOTED]:
        yield name, found[:most]


def _own(run: TrialFindings) -> list[str]:
    return [item.sentence for item in run.sentences if item.kind == "answer"]


# -- the comparison ---------------------------------------------------------------------------


def _answer(asked: Answer, found: Compared) -> str:
    """Which level is best, and in how many of the settings; and what is not compared."""
    if found.doubt:
        return f"{_whether(asked, found)} cannot be said: {found.doubt}."
    said = f"{_whether(asked, found)} cannot be said: no setting has two of them to compare."
    if found.settings:
        said = _best(asked, found)
    return " ".join((said, *(_not_compared(asked, found, item) for item in found.left_out)))


def _not_compared(asked: Answer, found: Compared, item: LeftOut) -> str:
    """``With clients=8 and 64 the load of processes failed.``"""
    names = listed([_name(asked, level) for level in item.levels])
    cells = len(item.levels) * len(item.where)
    what = {
        "load failed": f"the load of {names} failed",
        "skipped": f"the {words.verb(cells, 'cell', 'cells')} of {names} "
        f"{words.verb(cells, 'was', 'were')} skipped",
        "no figures": f"there are no figures of {names}",
    }[item.why]
    where = _where(found, item.where)
    return f"{words.sentence(f'{where} {what}' if where else what)}."


def _where(found: Compared, some: Sequence[Mapping[str, Level]]) -> str:
    """In which of the settings that were asked for; empty for all of them."""
    if len(some) == len(found.every):
        return ""
    if len(some) == 1:
        return f"with {describe(dict(some[0]))}"
    for factor in found.factors:
        levels = dict.fromkeys(where[factor] for where in some)
        if sum(where[factor] in levels for where in found.every) == len(some):
            return f"with {factor}={listed([str(level) for level in levels])}"
    return f"in {len(some)} of {len(found.every)} settings"


def _total(found: Compared) -> str:
    """How many settings are compared."""
    total = words.count(len(found.settings), "setting")
    are = words.verb(len(found.settings), "is", "are")
    return f"{total} that {are} compared" if found.is_partial else total


def _best(asked: Answer, found: Compared) -> str:
    """Which level is best, and in how many of the settings that are compared."""
    settings, label = found.settings, found.label
    wins = Counter(setting.best for setting in settings if setting.best is not None)
    doubted = sum(setting.in_doubt for setting in settings)
    total = _total(found)
    are = words.verb(doubted)
    doubt = f" {doubted} of {total} {are} in doubt: the machine was not quiet." if doubted else ""
    if doubted == len(settings):
        return f"{_whether(asked, found)} cannot be said: the machine was not quiet."
    if not wins:
        return _open(asked, found) + doubt
    if len(settings) == 1:
        (setting,) = settings
        return f"Use {_name(asked, setting.best)}: by {label} {_as_good(asked, setting)}."
    if len(wins) == 1:
        ((level, count),) = wins.items()
        won = [setting for setting in settings if setting.best is not None]
        if count == len(settings):
            least, most = min(won, key=_size), max(won, key=_size)
            return (
                f"Use {_name(asked, level)}: best by {label} in all {total}, from "
                f"{_as_good(asked, least)} to {_as_good(asked, most)}."
            )
        most = max(won, key=_size)
        others = _not_told(len(settings) - count, doubted)
        return (
            f"Use {_name(asked, level)}: best by {label} in {count} of {total}{others}. At most it "
            f"is {_as_good(asked, most)}.{doubt}"
        )
    counted = listed([f"{_name(asked, level)} in {count}" for level, count in wins.most_common()])
    others = _not_told(len(settings) - wins.total(), doubted)
    return f"It depends: of {total}, {counted} are best by {label}{others}.{doubt}"


def _not_told(left: int, doubted: int) -> str:
    """In how many settings no level is told from the others, beside those that are in doubt."""
    if left == doubted:
        return ""
    alone = "the other" if left == 1 else "the others"
    which = str(left - doubted) if doubted else alone
    return f"; in {which} they cannot be told apart"


def _open(asked: Answer, found: Compared) -> str:
    """No level is best anywhere. Of the settings in doubt nothing is said here."""
    ratios = [setting.ratio for setting in found.settings if not setting.in_doubt]
    number, total = len(found.settings), _total(found)
    where = describe(dict(found.settings[0].where)) if number == 1 and found.is_partial else ""
    some = f" with {where}" if where else ""
    if len(ratios) < number:
        some = f" in {len(ratios)} of {total}"
    if len(found.levels) == 2 and all(map(_is_alike, ratios)):
        names = listed([_name(asked, level) for level in found.levels])
        where = some or (f" in all {total}" if number > 1 else "")
        return f"It makes no difference: {names} are alike by {found.label}{where}, within 5 %."
    where = some or (f" in any of {total}" if number > 1 else "")
    return (
        f"{_whether(asked, found)} cannot be said: they cannot be told apart by "
        f"{found.label}{where}."
    )


def _whether(asked: Answer, found: Compared) -> str:
    names = listed([_name(asked, level) for level in found.levels], "or")
    return f"Whether to use {names}"


def _as_good(asked: Answer, setting: Setting) -> str:
    """``1.05× [1.01, 1.09] as good as processes (clients=8)``."""
    where = f" ({describe(dict(setting.where))})" if setting.where else ""
    as_good = "better than"
    if setting.ratio is not None:
        as_good = f"{_figure(setting.ratio)} as good as"
    return f"{as_good} {_name(asked, setting.next)}{where}"


def _figure(ratio: Estimate) -> str:
    digits = words.ratio_digits(ratio.value, ratio.low, ratio.high)
    interval = ""
    if ratio.low is not None and ratio.high is not None:
        interval = f" [{ratio.low:.{digits}f}, {ratio.high:.{digits}f}]"
    return f"{ratio.value:.{digits}f}×{interval}"


def _size(setting: Setting) -> float:
    return setting.ratio.value if setting.ratio is not None else 0.0


def _is_alike(ratio: Estimate | None) -> bool:
    return (
        ratio is not None
        and ratio.low is not None
        and ratio.high is not None
        and ratio.low >= 1 / _ALIKE
        and ratio.high <= _ALIKE
    )


def _name(asked: Answer, level: Level | None) -> str:
    """What a level is called."""
    return asked.names.get(str(level), f"{asked.factor}={level}")


# -- on what it hangs -------------------------------------------------------------------------


def _hangs(asked: Answer, found: Compared) -> Iterator[str]:
    """Which factor turns the answer, if one does: at its levels others are best."""
    wins = {setting.best for setting in found.settings if setting.best is not None}
    if found.doubt or not found.factors or not wins:
        return
    factor, by_level = max(
        ((factor, _by_level(found, factor)) for factor in found.factors),
        key=lambda item: _told(item[1]),
    )
    names = {level: _sole(counts) for level, counts in by_level.items()}
    best = dict.fromkeys(name for name in names.values() if name is not None)
    if len(best) > 1:
        parts = [f"{_name(asked, level)} with {_levels(factor, names, level)}" for level in best]
        rest = _rest(factor, by_level)
        yield f"It hangs on {factor}: {'; '.join(parts)}{rest}."
    elif len(wins) > 1:
        yield f"No single factor turns it: {listed(list(found.factors))} do together."
    elif found.left_out or found.is_partial:
        return  # of the settings that are not compared nothing is known
    elif all(setting.best is not None for setting in found.settings):
        yield f"It does not hang on {listed(list(found.factors), 'or')}."
    elif None in names.values() and len(best) == 1:
        (level,) = best
        yield (
            f"It shows with {_levels(factor, names, level)}, and cannot be told with "
            f"{_levels(factor, names, None)}."
        )


def _by_level(found: Compared, factor: str) -> dict[Level, Counter[Level | None]]:
    """For each level of a factor, how often each compared level is best, ``None`` for none."""
    counts: dict[Level, Counter[Level | None]] = {}
    for setting in found.settings:
        counts.setdefault(setting.where[factor], Counter())[setting.best] += 1
    return counts


def _sole(counts: Counter[Level | None]) -> Level | None:
    """The only level that is best somewhere; ``None`` where none is, or several are."""
    best = [level for level in counts if level is not None]
    return best[0] if len(best) == 1 else None


def _told(by_level: dict[Level, Counter[Level | None]]) -> tuple[int, int]:
    """How well a factor tells the settings apart: how many levels are the only best one at one of
    its levels, then in how many settings the most frequent one there is best."""
    right = sum(counts.most_common(1)[0][1] for counts in by_level.values())
    soles = {_sole(counts) for counts in by_level.values()} - {None}
    return len(soles), right


def _levels(factor: str, names: dict[Level, Level | None], wanted: Level | None) -> str:
    """``clients=8, 16 and 32``: the levels of a factor at which this one is best."""
    own = [str(level) for level, best in names.items() if best == wanted]
    return f"{factor}={listed(own)}"


def _rest(factor: str, by_level: dict[Level, Counter[Level | None]]) -> str:
    """At which levels of a factor now one is best and now another, and at which none is."""
    several = [str(level) for level, counts in by_level.items() if len(counts.keys() - {None}) > 1]
    none = [str(level) for level, counts in by_level.items() if not counts.keys() - {None}]
    said = f"; now one and now the other with {factor}={listed(several)}" if several else ""
    return said + (f"; neither with {factor}={listed(none)}" if none else "")


# -- claims -----------------------------------------------------------------------------------


def _claim(found: Sequence[ClaimFinding]) -> Iterator[str]:
    """``Clients of threads do alike: supported in 9 of 14 settings, undecided in 5.``; where the
    level of one factor decides it, ``as is slower: refuted with cpu=0; supported with cpu=9.``"""
    if not found:
        return
    says = _plain(found)
    counts = Counter(item.verdict for item in found)
    if len(found) == 1:
        yield f"{says}: {found[0].verdict}."
        return
    factor = _decides(found) if len(counts) > 1 else None
    if factor is not None:
        verdicts = {item.setting[factor]: item.verdict for item in found}
        parts = [
            f"{verdict} with {factor}="
            + listed([str(level) for level, own in verdicts.items() if own == verdict])
            for verdict in counts
        ]
        yield f"{says}: {'; '.join(parts)}."
        return
    (first, most), *others = counts.most_common()
    counted = ", ".join(
        [f"{first} in {most} of {len(found)} settings", *(f"{name} in {n}" for name, n in others)]
    )
    yield f"{says}: {counted}."


def _plain(found: Sequence[ClaimFinding]) -> str:
    """What the claim says, without the setting at which the first of them was judged, and without
    the figures and the measure that stand in brackets at its end: the verdicts have them."""
    says, mark, inside = found[0].says.rpartition(" [")
    own = found[0].setting.items()
    named = {name: level for name, level in own if f"{name}={level}" in inside}
    is_setting = bool(mark) and inside == f"{setting_in_words(named)}]"
    return _BRACKETS.sub("", (says if is_setting else found[0].says).rstrip("."))


def _decides(found: Sequence[ClaimFinding]) -> str | None:
    """The factor whose level alone decides the verdict; ``None`` where none does."""
    for factor in found[0].setting:
        verdicts: dict[Level, set[str]] = {}
        for item in found:
            verdicts.setdefault(item.setting[factor], set()).add(item.verdict)
        if all(len(own) == 1 for own in verdicts.values()):
            return factor
    return None
