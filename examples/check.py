#!/usr/bin/env python3
"""Judges what Concurve answers: right, "cannot be said, because …", or wrong.

    check.py [--quiet] best RUN --by INDICATOR --right LEVELS [--where FACTOR=LEVEL]
    check.py cause RUN --where FACTOR=LEVEL,… --right CAUSE,…
    check.py compared A B --right VERDICT,…
    check.py compared RUN --factor NAME --levels BASE,NEW --right VERDICT,…
    check.py predicted FIT.json FITTED RUN --factor NAME --at N --by INDICATOR
    check.py resumed BEFORE.csv AFTER.csv RUN
    check.py refused RUN --says WHY

LEVELS of --right are those that are right, with commas between them. ``cpus..`` stands for those
from the number of granted CPUs on (or the greatest one), ``more`` for all but the lowest where more
than one CPU is granted.

It reads what ``concurve show --json``, ``compare --json``, ``explain --json`` and ``fit --json``
print, and needs Python alone. Exit code: 0 right or not said, 1 wrong.

``refused`` is for a verb that gives no figure of a run: an answer only where a trial is in doubt.

With --quiet an answer may be withheld only where a trial is in doubt: a machine that was quiet
throughout is no reason to say nothing.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

RIGHT, WITHHELD, WRONG = "right", "cannot be said", "WRONG"


class Verdict(NamedTuple):
    """What became of an answer, and why."""

    kind: str
    says: str

    @property
    def exit_code(self) -> int:
        """1 where the answer is wrong."""
        return 1 if self.kind == WRONG else 0

    def on_a_quiet_machine(self, is_doubted: bool) -> Verdict:
        """The verdict where only a trial in doubt excuses that an answer is withheld."""
        if self.kind != WITHHELD or is_doubted:
            return self
        return Verdict(WRONG, f"no trial is in doubt, and yet: {self.says}")


class UnusableError(Exception):
    """What is to be judged cannot be read."""


# -- the judgements -------------------------------------------------------------------------------


def best(run: dict[str, Any], by: str, right: str, where: dict[str, str]) -> Verdict:
    """The setting that a run recommends by an indicator, among the cells with these levels."""
    found = _best_set(run, where)
    under = f" under {_words(where)}" if where else ""
    if found is None:
        return _unsaid(run, f"nothing is recommended{under}")
    if found.get("doubt"):
        return Verdict(WITHHELD, f"{found['doubt']}{under}")
    if found["indicator"] != by:
        return Verdict(WRONG, f"settings are compared by {found['indicator']}, not by {by}{under}")
    named = found.get("recommended", found.get("use"))
    if named is None:
        return _unsaid(run, f"no one setting is named{under}")
    level = _only_level(named)
    levels = right_levels(right, _levels(run, found["factors"][0]), granted_cpus(run["run"]))
    setting = _words(dict.fromkeys(found["factors"], level))
    how = "recommended" if "recommended" in found else "the one to use of those not told apart"
    said = f"{setting} is {how}, by {by}{under}"
    if level in levels:
        return Verdict(RIGHT, said)
    return Verdict(WRONG, f"{said}, right is {' or '.join(levels)}")


def cause(explained: dict[str, Any], where: dict[str, str], right: Sequence[str]) -> Verdict:
    """What limits the cell with these levels. A cause that is named is an answer, on a busy machine
    too; so is that no limit was found, except where the cell is in doubt. Nothing is said where the
    doubt names no cause, and where other processes took the CPUs."""
    cells = [cell for cell in explained["cells"] if _is_at(cell["parameters"], where)]
    if not cells:
        return Verdict(WITHHELD, f"{_words(where)} is not explained: {_all(explained['missing'])}")
    for cell in cells:
        name, doubt = cell["cause"], cell.get("doubt")
        said = f"{name} limits {_words(cell['parameters'])}: {doubt or cell['evidence']}"
        if name in right:
            continue
        if name in ("in doubt", "contamination") or (name == "none" and doubt):
            return Verdict(WITHHELD, said)
        return Verdict(WRONG, f"{said}; right is {' or '.join(right)}")
    return Verdict(RIGHT, f"{cells[-1]['cause']} limits {_words(where)}")


def compared(comparison: dict[str, Any], right: Sequence[str]) -> Verdict:
    """What a comparison says of each of its cells."""
    undecided = ""
    for cell in comparison["cells"]:
        ratio = cell.get("ratio", {}).get("value")
        figure = "" if ratio is None else f" (ratio {ratio:.3f})"
        said = f"{comparison['new']} is {cell['verdict']}{figure}"
        where = _words(cell["parameters"])
        if cell["verdict"] == "undecided":
            undecided = f"{where}: {cell.get('note') or 'the trials do not decide'}{figure}"
        elif cell["verdict"] not in right:
            return Verdict(WRONG, f"{where}: {said}, right is {' or '.join(right)}")
    if not comparison["cells"]:
        return Verdict(WRONG, "no cells were compared")
    return Verdict(WITHHELD, undecided) if undecided else Verdict(RIGHT, said)


#: An interval whose ends differ by more than this factor says nothing: almost anything is in it.
WIDEST = 1.5


def predicted(fit: dict[str, Any], run: dict[str, Any], factor: str, at: float, by: str) -> Verdict:
    """What was predicted for ``at`` against what was measured there: do the intervals overlap?"""
    expected = next((item for item in fit["predictions"] if item["n"] == at), None)
    if expected is None or expected["low"] is None or expected["high"] is None:
        reasons = [*fit["warnings"], *fit["notes"]]
        return Verdict(WITHHELD, f"no prediction at {at:g}: {_all(dict(enumerate(reasons)))}")
    cell = next((cell for cell in run["cells"] if cell["parameters"].get(factor) == at), None)
    if cell is None:
        raise UnusableError(f"{factor}={at:g} was not measured")
    measured = cell["indicators"].get(by)
    if measured is None:
        return Verdict(WITHHELD, f"{by} was not measured: {cell['absent'].get(by, cell['note'])}")
    low, high = measured.get("low", measured["value"]), measured.get("high", measured["value"])
    said = (
        f"predicted {expected['low']:.4g} to {expected['high']:.4g}, "
        f"measured {low:.4g} to {high:.4g}"
    )
    if expected["low"] <= high and low <= expected["high"]:
        if _is_wide(expected["low"], expected["high"]) or _is_wide(low, high):
            return Verdict(WITHHELD, f"{said}: ends that differ by more than {WIDEST:g} times")
        return Verdict(RIGHT, said)
    if measured.get("in_doubt"):
        return Verdict(WITHHELD, f"{said}, but the machine was not quiet")
    return Verdict(WRONG, said)


def _is_wide(low: float, high: float) -> bool:
    return low <= 0 or high / low > WIDEST


#: Columns of a trial that later trials may change: it may be set aside for quieter ones, and the
#: status is that of its cell, which an interrupted run leaves partial.
_JUDGED_LATER = {"used", "set_aside", "in_doubt", "cause", "status"}
_KEY = ("cell", "block", "attempt")


def resumed(
    before: Sequence[dict[str, str]], after: Sequence[dict[str, str]], run: dict[str, Any]
) -> Verdict:
    """Did a resumed run keep each trial as it was, repeat none, and come to its end?"""
    keys = [tuple(row[name] for name in _KEY) for row in after]
    if len(set(keys)) < len(keys):
        return Verdict(WRONG, "a trial stands twice in the resumed run")
    rows = dict(zip(keys, after, strict=True))
    for row in before:
        key = tuple(row[name] for name in _KEY)
        now = rows.get(key)
        if now is None:
            return Verdict(WRONG, f"the trial {key} is gone")
        same = set(row) - _JUDGED_LATER
        changed = sorted(name for name in same if row[name] != now.get(name))
        if changed:
            return Verdict(WRONG, f"the trial {key} has another {changed[0]}")
    state = run["run"]["state"]
    said = f"{len(before)} trials were kept, {len(after) - len(before)} came"
    if state != "complete":
        return Verdict(WRONG, f"{said}, and the run is {state}: {run['run']['reason']}")
    return Verdict(RIGHT, said)


# -- parts ----------------------------------------------------------------------------------------


def right_levels(text: str, levels: Sequence[str], cpus: float) -> list[str]:
    """The right levels as ``--right`` names them, among those that were measured."""
    if text == "cpus..":
        enough = [level for level in levels if float(level) >= math.floor(cpus)]
        return enough or [max(levels, key=float)]
    if text == "more":
        lowest = min(levels, key=float)
        return [level for level in levels if level != lowest or cpus < 2]
    return text.split(",")


def granted_cpus(run: dict[str, Any]) -> float:
    """The CPUs that the run was granted: those of its affinity, or the quota of its cgroup."""
    machine = run["machine"]
    granted = float(len(machine["cpus_allowed"]))
    limits = machine.get("cgroup", {})
    # What this machine's cgroup does not have, or does not limit, is none, max or -1.
    quota, _, period = str(limits.get("cpu_max", "max")).partition(" ")
    if quota.isdecimal():
        granted = min(granted, int(quota) / int(period))
    quota = str(limits.get("cpu_quota_us", "-1"))
    if quota.isdecimal() and int(quota) > 0:
        granted = min(granted, int(quota) / 100_000)
    return granted


def _best_set(run: dict[str, Any], where: dict[str, str]) -> dict[str, Any] | None:
    whole = run.get("best")
    sets = [*run.get("best_by_condition", []), *(whole or {}).get("groups", [])]
    if not where:
        return whole
    return next((item for item in sets if _is_at(item.get("group", {}), where)), None)


def _unsaid(run: dict[str, Any], what: str) -> Verdict:
    """Nothing was said: that is an answer where the run says of a setting why it has no figure or
    one in doubt, and wrong where nothing stood in the way."""
    warnings = [item["sentence"] for item in run["findings"] if item["kind"] == "warning"]
    if has_doubt(run):
        reasons = [sentence for sentence in warnings if "in doubt" in sentence]
    else:
        short = (cell for cell in run["cells"] if cell["status"] != "ok")
        reasons = [cell["note"] or cell["stop_reason"] for cell in short]
    if any(reasons):
        return Verdict(WITHHELD, f"{what}: {next(filter(None, reasons))}")
    return Verdict(WRONG, f"{what}, and no reason is given")


def has_doubt(document: dict[str, Any]) -> bool:
    """Is a trial in doubt on which a run, an explanation or a comparison rests?"""
    return any(
        cell.get("doubtful") or cell.get("doubt") or cell.get("ratio", {}).get("in_doubt")
        for cell in document["cells"]
    )


def _only_level(setting: Any) -> str:
    values = list(setting.values()) if isinstance(setting, dict) else [setting]
    return ",".join(map(str, values))


def _levels(run: dict[str, Any], factor: str) -> list[str]:
    (found,) = (item for item in run["run"]["factors"] if item["name"] == factor)
    return [str(level) for level in found["levels"]]


def _is_at(parameters: dict[str, Any], where: dict[str, str]) -> bool:
    return all(str(parameters.get(name)) == level for name, level in where.items())


def _words(levels: dict[str, Any]) -> str:
    return " ".join(f"{name}={level}" for name, level in levels.items()) or "the only cell"


def _all(reasons: dict[Any, str]) -> str:
    return "; ".join(reasons.values()) or "no reason is given"


# -- what is judged -------------------------------------------------------------------------------


def asked(*words: str) -> Any:
    """What a verb of ``concurve`` prints as JSON."""
    program = shutil.which("concurve") or str(Path(sys.executable).parent / "concurve")
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UnusableError(f"concurve {' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def _rows(file: str) -> list[dict[str, str]]:
    with Path(file).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def _where(text: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in text.split(",") if part)


class Judged(NamedTuple):
    """A verdict, and what it was read from."""

    verdict: Verdict
    documents: tuple[dict[str, Any], ...]


def _best(given: argparse.Namespace) -> Judged:
    run = asked("show", given.run, "--json")
    return Judged(best(run, given.by, given.right, _where(given.where)), (run,))


def _cause(given: argparse.Namespace) -> Judged:
    explained = asked("explain", given.run, "--json")
    verdict = cause(explained, _where(given.where), given.right.split(","))
    return Judged(verdict, (explained, asked("show", given.run, "--json")))


def _compared(given: argparse.Namespace) -> Judged:
    inside = ["--factor", given.factor, "--levels", given.levels] if given.factor else []
    comparison = asked("compare", *given.runs, *inside, "--json")
    runs = (asked("show", run, "--json") for run in given.runs)
    return Judged(compared(comparison, given.right.split(",")), (comparison, *runs))


def _predicted(given: argparse.Namespace) -> Judged:
    fit = json.loads(Path(given.fit).read_text(encoding="utf-8"))
    fitted, run = (asked("show", name, "--json") for name in (given.fitted, given.run))
    return Judged(predicted(fit, run, given.factor, given.at, given.by), (fitted, run))


def _resumed(given: argparse.Namespace) -> Judged:
    run = asked("show", given.run, "--json")
    return Judged(resumed(_rows(given.before), _rows(given.after), run), (run,))


def _refused(given: argparse.Namespace) -> Judged:
    run = asked("show", given.run, "--json")
    return Judged(Verdict(WITHHELD, given.says).on_a_quiet_machine(has_doubt(run)), (run,))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Judge what Concurve answers.")
    parser.add_argument("--quiet", action="store_true", help="only a trial in doubt excuses")
    kinds = parser.add_subparsers(required=True)

    def kind(
        name: str, judge: Callable[[argparse.Namespace], Judged], places: Iterable[str]
    ) -> argparse.ArgumentParser:
        made = kinds.add_parser(name)
        made.set_defaults(judge=judge)
        for place in places:
            made.add_argument(place)
        return made

    of_best = kind("best", _best, ["run"])
    of_best.add_argument("--by", required=True)
    of_best.add_argument("--right", required=True)
    of_best.add_argument("--where", default="")
    of_cause = kind("cause", _cause, ["run"])
    of_cause.add_argument("--where", required=True)
    of_cause.add_argument("--right", required=True)
    of_compared = kind("compared", _compared, [])
    of_compared.add_argument("runs", nargs="+")
    of_compared.add_argument("--factor")
    of_compared.add_argument("--levels", default="")
    of_compared.add_argument("--right", required=True)
    of_predicted = kind("predicted", _predicted, ["fit", "fitted", "run"])
    of_predicted.add_argument("--factor", required=True)
    of_predicted.add_argument("--at", type=float, required=True)
    of_predicted.add_argument("--by", required=True)
    kind("resumed", _resumed, ["before", "after", "run"])
    kind("refused", _refused, ["run"]).add_argument("--says", required=True)
    return parser


def main(arguments: Sequence[str]) -> int:
    """Judge, and print the verdict in a line."""
    given = _parser().parse_args(arguments)
    try:
        judged: Judged = given.judge(given)
    except (UnusableError, OSError) as error:
        print(f"{WRONG}: {error}")
        return 1
    verdict = judged.verdict
    if given.quiet:
        verdict = verdict.on_a_quiet_machine(any(map(has_doubt, judged.documents)))
    print(f"{verdict.kind}: {verdict.says}")
    return verdict.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
