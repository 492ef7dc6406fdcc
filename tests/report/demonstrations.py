"""The run of `make demo`, with a fake engine in place of its program."""

from __future__ import annotations

import random

import msgspec

from concurve.analysis.run import trial_findings_of
from concurve.definition.controls import ControlsTemplate
from concurve.estimate import Estimate
from concurve.findings.explanation import CellExplanation, Explanation, RunnerUp
from concurve.findings.run import Finding, Report, TrialFindings
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine
from tests.helpers.packaged import find_study

#: What befalls the trials: their times as multiples of what they take on a
#: quiet machine, and the share of trials during which the host took CPU time away.
BEFALLS = {
    "nothing": ((1.0,), 0.0),
    "stalls": ((1.0, 1.0, 1.0, 1.0, 3.0), 0.0),
    "two levels": ((1.0, 1.0, 1.15), 0.0),
    "stolen now and then": ((1.0,), 0.2),
    "stalls, and stolen now and then": ((1.0, 1.0, 1.0, 3.0), 0.2),
    "always stolen": ((1.0, 1.0, 1.4), 1.0),
}


def of_the_demonstration(befalls: str, seed: int) -> Report:
    """A run of the packaged study that a newcomer starts with, as `make demo` runs it; its program
    is not started."""
    levels, stolen = BEFALLS[befalls]
    study = find_study("thread-scaling", 2)
    (target,) = study.roles
    command = ("true", "{cpus}", "{sync}", "{threads}")
    stood_in = msgspec.structs.replace(
        target, program=None, command=command, controls=ControlsTemplate()
    )
    study = msgspec.structs.replace(study, roles=(stood_in,))

    def is_stolen(spec: TrialSpec) -> bool:
        return random.Random(f"{seed} stolen {spec.trial.partition('/')[2]}").random() < stolen

    def seconds(spec: TrialSpec, _: random.Random) -> float:
        rng = random.Random(f"{seed} {spec.trial.partition('/')[2]}")
        cpus, _sync, threads = spec.roles[0].argv[1:]
        quiet = 1.07 / min(int(cpus), int(threads)) * rng.lognormvariate(0, 0.01)
        return quiet * rng.choice(levels) * (1.2 if is_stolen(spec) else 1.0)

    engine = FakeEngine(seconds, steal_of=lambda spec: 10**9 if is_stolen(spec) else 0)
    store = Store()
    head = new_head(study, "quick", seed, "concurve run …")
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    return limited_by_locks(trial_findings_of(store, store.find_run(head.id)))


def limited_by_locks(findings: TrialFindings) -> Report:
    """The report with the longest of the explanations that are usual; where trials are in doubt no
    cause is named."""
    wanted = findings.cell_to_explain
    assert wanted is not None
    base = {**wanted.parameters, "threads": 1}
    limited = CellExplanation(
        parameters=wanted.parameters, cause="lock", index=wanted.index, base=base,
        trials=wanted.trials,
        evidence="With cpus=2 threads=32 an operation takes 1.10 × the thread time of threads=1: "
        "81 % of the increase is blocked on futexes.",
        share=Estimate(value=0.68, low=0.37, high=1.0),
        runner_up=RunnerUp("imbalance", None, is_indistinct=True),
        place="Of 10 sampled waits, 80 % were in os::PlatformMonitor::wait and 10 % were in "
        "PosixSemaphore::wait.",
    )  # fmt: skip
    if wanted.indicators["speedup"].in_doubt:
        why = "the machine was not quiet during 5 of 5 trials"
        limited = msgspec.structs.replace(limited, cause="in doubt", doubt=why)
    explanation = Explanation(
        run=findings.run.id, study=findings.run.study, factors=("cpus", "threads"),
        work="threads", operation="a whole run", cells=(limited,), missing={},
    )  # fmt: skip
    return msgspec.structs.replace(Report.of_figures(findings), explanation=explanation)


#: What was said on a machine with other work, where each setting had three trials.
_SAID = (
    "No setting is recommended: the machine was not quiet. cpus=2 threads=2 seems best; all others "
    "may be as good.",
    "With cpus=1: 32 threads seem best, 1.38× as fast as 1 by time per operation (too few trials "
    "for a useful interval); all others may be as good.",
    "With cpus=2: 2 threads seem best, 1.25× as fast as 1 [0.36, 4.47] by time per operation; all "
    "others may be as good.",
)


def on_a_busy_machine() -> Report:
    """The demonstration with the longest answers that were seen of it."""
    report = of_the_demonstration("always stolen", 0)
    others = (item for item in report.sentences if item.kind != "answer")
    said = (Finding(kind="answer", sentence=text) for text in _SAID)
    return msgspec.structs.replace(report, sentences=(*said, *others))
