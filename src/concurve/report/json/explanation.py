"""What limits each cell, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar

import msgspec

from concurve.estimate import Estimate
from concurve.fields import Count, Positive, about
from concurve.findings.explanation import (
    Cause,
    CellExplanation,
    Explanation,
    Holders,
    RunnerUp,
    WaitSite,
)
from concurve.report.json.confirmation import ConfirmedCell, confirmed_cell
from concurve.terms import Level

FORMAT = 1
#: Always there; ``null`` where it was not read, and ``missing`` gives the reason.
_PROMISED = ("cpu", "run_queue", "blocked")


Time = Annotated[float, about(minimum=0)]
Kind = Annotated[
    str,
    about(
        enum=[
            "futex",
            "disk",
            "network",
            "poll",
            "pipe",
            "sleep",
            "child",
            "file_lock",
            "memory",
            "wake_up",
            "other",
        ]
    ),
]
Part = Annotated[
    str,
    about(
        enum=[
            "cpu",
            "serial",
            "imbalance",
            "stage",
            "collector",
            "quota",
            "queue",
            "waiting",
            "helping",
        ]
    ),
]
Missing = Annotated[dict[str, str], about("Kinds of evidence that the records lack, and why.")]


class Excess(msgspec.Struct, frozen=True):
    """By how much a component exceeds the base's, with its interval where there is one."""

    KEYWORDS: ClassVar = {"dependentRequired": {"low": ["high"], "high": ["low"]}}

    value: float
    low: float | msgspec.UnsetType = msgspec.UNSET
    high: float | msgspec.UnsetType = msgspec.UNSET


class SecondCause(msgspec.Struct, frozen=True, omit_defaults=True):
    """The cause with the next greatest part of the loss."""

    cause: Cause
    share: Annotated[float | None, about("Of the loss.", minimum=0, maximum=1)] = None
    is_indistinct: Annotated[
        bool, about("The evidence cannot tell it apart from the cause; left out if it can.")
    ] = False
    parts: Annotated[
        tuple[Part, ...],
        about(
            "The parts of speedup_lost that the share is of; left out where that is not divided. "
            "Where the cause is none, only these are known."
        ),
    ] = ()


class SiteHolders(msgspec.Struct, frozen=True, omit_defaults=True):
    """Threads of one kind that had a lock while others waited for it."""

    name: Annotated[
        str, about("That of the threads, without digits; empty if the record has none.")
    ]
    threads: Annotated[Positive, about("The most of them that had it in a trial.")]
    readings: Annotated[Count, about("In so many readings one of them had it.")]
    takes_in: Annotated[
        str,
        about(
            "The function in which they were seen waiting for the same lock; left out if in none."
        ),
    ] = ""


class SampledStacks(msgspec.Struct, frozen=True):
    """What became of the samples of stacks of threads that waited for locks, in all trials."""

    known: Annotated[Count, about("Their place in the program is known.")]
    unknown: Annotated[Count, about("The stack led to no function of the program.")]
    torn: Annotated[Count, about("Dropped, because the thread ran meanwhile.")]
    skipped: Annotated[
        Count,
        about(
            "Left out: for what sampling may cost, or because the program changed its address "
            "space."
        ),
    ]


class Site(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place in the program where threads were seen waiting for a lock."""

    module: Annotated[str, about("The program or library that it is in.")]
    primitive: Annotated[
        str,
        about(
            "What is waited at; once: what another thread does once for all.",
            enum=[
                "mutex",
                "reader_writer_lock",
                "condition",
                "semaphore",
                "barrier",
                "once",
                "file_lock",
                "other",
            ],
        ),
    ]
    readings: Annotated[Positive, about("Readings of threads that waited there, in all trials.")]
    share: Annotated[float, about("Of the readings whose place is known.", minimum=0, maximum=1)]
    threads: Annotated[Positive, about("Most threads that were seen there in a trial.")]
    found: Annotated[
        str,
        about(
            "How the least sure frame on the way was found. cfi: by call frame information, or as "
            "a runtime says it. scan_exact: behind a call of the very function on the stack. "
            "scan_weak: behind another call.",
            enum=["cfi", "scan_exact", "scan_weak"],
        ),
    ]
    function: Annotated[str | None, about("Left out if the program has no symbols.")] = None
    file: Annotated[str | None, about("Left out without debug information.")] = None
    line: Count | None = None
    operation: Annotated[str | None, about("The function of a library that was called.")] = None
    lock: Annotated[
        str | None, about("The variable that is the lock, or that it is a part of.")
    ] = None
    held: Annotated[
        Count | None, about("In so many readings the lock said that a thread had it.")
    ] = None
    holders: Annotated[
        tuple[SiteHolders, ...],
        about(
            "The threads that had it in these readings, by kind, most readings first; of each "
            "trial, the four that had it most often."
        ),
    ] = ()
    is_sure: Annotated[
        bool,
        about(
            "No frame on the way was found by less than call frame information or a call of the "
            "very function; left out if so."
        ),
    ] = True
    callers: Annotated[
        tuple[str, ...], about("The functions that called this one, the nearest first.")
    ] = ()


class ExplainedCell(msgspec.Struct, frozen=True, omit_defaults=True):
    """What limits a cell."""

    parameters: dict[str, Level]
    cause: Annotated[
        Cause,
        about(
            "none: no limit was found, or the records lack the evidence for one. in doubt: none is "
            "named, because the machine was not quiet; doubt has more. With ceiling_cpus, what "
            "most of the rest is lost to. coherency, memory, smt: what more CPU time may be of; "
            "the evidence does not tell these apart, and of Java not from its compilers and "
            "collector."
        ),
    ]
    per_operation_ns: Annotated[
        dict[str, Time | None],
        about(
            "total is the sum of the others; null: not read, and missing gives the reason. Where "
            "run_queue is null it is in blocked.",
            required=list(_PROMISED),
        ),
    ]
    evidence: Annotated[str, about("One sentence.")]
    limit: Annotated[
        str,
        about(
            "The resource of a loaded server that is used up: CPUs, a kind of threads, or load; "
            "of a stage, its thread; left out if none is."
        ),
    ] = ""
    doubt: Annotated[
        str,
        about(
            "Why its figures or the base's are in doubt: then no cause is named but "
            "contamination, what quiet trials show as well, and a lock for which threads waited "
            "longer than others can have made them; left out if they are not."
        ),
    ] = ""
    blocked_by_kind_ns: Annotated[
        dict[Kind, Time],
        about("blocked, divided as the samples are; left out without samples."),
    ] = {}
    intervals_ns: Annotated[
        dict[str, Annotated[list[float], about(minItems=2, maxItems=2)]],
        about("95 % intervals by component or kind: low, high."),
    ] = {}
    base: Annotated[
        dict[str, Level] | None,
        about("The cell that this one is held against; left out for that cell itself."),
    ] = None
    excess_ns: Annotated[dict[str, Excess], about("By how much components exceed the base's.")] = {}
    threads: Annotated[Positive | None, about("Active ones at once.")] = None
    trials: Count | None = None
    missing: Missing = {}
    share: Annotated[
        Excess | None,
        about("The part of the loss that the cause stands for, from 0 to 1, with its interval."),
    ] = None
    share_parts: Annotated[
        tuple[Part, ...],
        about(
            "The parts of speedup_lost whose sum, over all that is lost, is the share; left out "
            "where that is not divided."
        ),
    ] = ()
    runner_up: SecondCause | None = None
    server_cpu_ns: Annotated[
        Excess | None,
        about(
            "The CPU time of all threads of a loaded server per operation, with its interval; left "
            "out of what serves no load, and where operations are not counted."
        ),
    ] = None
    speedup: Annotated[
        float | None,
        about(
            "Over the base, as the tables of figures have it where that is the same quantity; left "
            "out where the record lacks what it takes to divide its loss."
        ),
    ] = None
    speedup_possible: Annotated[
        float | None,
        about("Workers that can run at once on the CPUs granted, over those of the base."),
    ] = None
    ceiling_cpus: Annotated[
        Positive | None,
        about(
            "The CPUs, where nearly all of the speed-up that they allow is reached: they limit the "
            "cell, before its cause. Left out elsewhere."
        ),
    ] = None
    speedup_lost: Annotated[
        dict[Part, float],
        about(
            "It adds up with speedup to speedup_possible. cpu: more CPU time for an operation. "
            "serial, imbalance, stage, collector, quota: as the causes of these names. queue: "
            "waiting for a CPU. waiting: for anything else. helping: CPU time of threads beside "
            "the workers. Below 0: less than in the base."
        ),
    ] = {}
    sites: Annotated[
        tuple[Site, ...],
        about("Where in the program threads waited for locks, most readings first."),
    ] = ()
    sampled_stacks: Annotated[
        SampledStacks | None, about("The samples behind sites; left out without any.")
    ] = None


class Explained(msgspec.Struct, frozen=True, omit_defaults=True):
    """Written by ``concurve explain --json``. Times are thread time per operation, in
    nanoseconds."""

    format: Annotated[int, about(const=FORMAT)]
    run: str
    study: str
    operation: Annotated[str, about("What counts as an operation.")]
    cells: list[ExplainedCell]
    missing: Missing
    notes: tuple[str, ...]
    confirmations: Annotated[
        tuple[ConfirmedCell, ...],
        about("What experiments on the run say, the newest last; left out without any."),
    ] = ()
    warnings: Annotated[
        tuple[str, ...],
        about("What programs of the trials warned of, and where; left out if of nothing."),
    ] = ()


def to_json(explanation: Explanation) -> bytes:
    """The explanation as JSON, as ``schema/explain.schema.json`` describes it."""
    return msgspec.json.encode(
        Explained(
            format=FORMAT,
            run=explanation.run,
            study=explanation.study,
            operation=explanation.operation,
            cells=[_cell(cell) for cell in explanation.cells],
            missing=explanation.missing,
            notes=explanation.notes,
            confirmations=tuple(map(confirmed_cell, explanation.confirmations)),
            warnings=explanation.warnings,
        )
    )


def _cell(cell: CellExplanation) -> ExplainedCell:
    return ExplainedCell(
        parameters=cell.parameters,
        cause=cell.cause,
        per_operation_ns=dict.fromkeys(_PROMISED)
        | {name: figure.value for name, figure in cell.per_operation.items()},
        evidence=cell.evidence,
        limit=cell.limit,
        doubt=cell.doubt,
        blocked_by_kind_ns={name: figure.value for name, figure in cell.by_kind.items()},
        intervals_ns=dict(_intervals({**cell.per_operation, **cell.by_kind})),
        base=cell.base,
        excess_ns={name: _figure(figure) for name, figure in cell.excess.items()},
        threads=cell.threads,
        trials=cell.trials,
        missing=cell.missing,
        share=None if cell.share is None else _figure(cell.share),
        share_parts=cell.share_parts,
        runner_up=_second(cell.runner_up),
        server_cpu_ns=None if cell.server_cpu is None else _figure(cell.server_cpu),
        speedup=cell.speedup,
        speedup_possible=cell.speedup_possible,
        ceiling_cpus=cell.ceiling if cell.is_at_ceiling else None,
        speedup_lost=cell.speedup_lost,
        sites=tuple(map(_site, cell.sites)),
        sampled_stacks=_stacks(cell),
    )


def _site(site: WaitSite) -> Site:
    return Site(
        module=site.module,
        primitive=site.primitive,
        readings=site.readings,
        share=site.share,
        threads=site.threads,
        found=site.found,
        function=site.function,
        file=site.file,
        line=site.line,
        operation=site.operation,
        lock=site.lock,
        held=site.held,
        holders=tuple(map(_holders, site.holders)),
        is_sure=site.is_sure,
        callers=site.callers,
    )


def _holders(found: Holders) -> SiteHolders:
    return SiteHolders(found.name, found.threads, found.readings, found.takes_in)


def _stacks(cell: CellExplanation) -> SampledStacks | None:
    found = cell.sampled_stacks
    if found is None:
        return None
    return SampledStacks(found.known, found.unknown, found.torn, found.skipped)


def _second(found: RunnerUp | None) -> SecondCause | None:
    if found is None:
        return None
    share = None if found.share is None else found.share.value
    return SecondCause(found.cause, share, found.is_indistinct, found.parts)


def _intervals(figures: Mapping[str, Estimate]) -> Iterator[tuple[str, list[float]]]:
    for name, figure in figures.items():
        if figure.low is not None and figure.high is not None:
            yield name, [figure.low, figure.high]


def _figure(figure: Estimate) -> Excess:
    if figure.low is None or figure.high is None:
        return Excess(figure.value)
    return Excess(figure.value, figure.low, figure.high)
