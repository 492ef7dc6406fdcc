"""The indicators that the laboratory measures of any program, which a study may use by name, with
their labels."""

from __future__ import annotations

import msgspec

from concurve.definition.indicator_names import split_name
from concurve.definition.study import Study
from concurve.terms import IndicatorInfo

#: What the laboratory itself measures, in the order in which views show it.
INDICATORS: tuple[IndicatorInfo, ...] = (
    IndicatorInfo(name="wall_seconds", label="wall time", unit="s", better="lower",
                  note="measured phase, or release to exit"),
    IndicatorInfo(name="speedup", label="speed-up", unit="×", better="higher",
                  note="time of the base cell over this one's; per operation, where reported"),
    IndicatorInfo(name="efficiency", label="efficiency", unit="", better="higher",
                  note="speed-up over the ratio of concurrency"),
    IndicatorInfo(name="cpu_seconds", label="CPU time", unit="s", better="lower",
                  note="user plus system, whole tree"),
    IndicatorInfo(name="user_seconds", label="user time", unit="s", better="lower"),
    IndicatorInfo(name="system_seconds", label="system time", unit="s", better="lower"),
    IndicatorInfo(name="run_queue_seconds", label="run-queue wait", unit="s", better="lower",
                  note="runnable, waiting for a CPU; all threads together"),
    IndicatorInfo(name="voluntary_switches", label="voluntary switches", better="lower"),
    IndicatorInfo(name="involuntary_switches", label="involuntary switches", better="lower"),
    IndicatorInfo(name="context_switches", label="context switches", better="lower",
                  note="voluntary and involuntary"),
    IndicatorInfo(name="migrations", label="migrations", better="lower",
                  note="moves from one CPU to another"),
    IndicatorInfo(name="cache_misses", label="cache misses", better="lower",
                  note="of the CPU's caches, of most CPUs those of the last level; counted where "
                  "a study names them and the CPU has a counter"),
    IndicatorInfo(name="threads_peak", label="threads at peak", better="neither"),
    IndicatorInfo(name="rss_bytes_max", label="peak memory (largest process)", unit="B",
                  better="lower"),
    IndicatorInfo(name="rss_bytes_tree_max", label="peak memory of all processes", unit="B",
                  better="lower", note="greatest sum that a sample saw; shared pages count in each "
                  "process. Only of several processes"),
    IndicatorInfo(name="rate_per_second", label="operations per second", unit="1/s",
                  better="higher", note="that the program reports, over the wall time"),
    IndicatorInfo(name="rate_per_worker", label="rate per worker", unit="1/s", better="higher"),
    IndicatorInfo(name="seconds_per_operation", label="time per operation", unit="s",
                  better="lower", note="wall time over reported operations: no latency, many may "
                  "be under way at once"),
    IndicatorInfo(name="cpu_seconds_per_operation", label="CPU time per operation", unit="s",
                  better="lower", note="of the measured role, over reported operations"),
    IndicatorInfo(name="switches_per_operation", label="switches per operation", better="lower",
                  note="of the measured role, voluntary and involuntary"),
    IndicatorInfo(name="cache_misses_per_operation", label="cache misses per operation",
                  better="lower", note="of the measured role, over reported operations; as "
                  "cache_misses"),
    IndicatorInfo(name="run_seconds", label="run time", unit="s", better="lower",
                  note="release to exit, start-up included"),
    IndicatorInfo(name="run_cpu_seconds", label="CPU time of the run", unit="s", better="lower",
                  note="whole life, start-up included"),
    IndicatorInfo(name="cpus_used", label="CPUs used", better="higher",
                  note="CPU time over wall time: of the measured phase; without one, of a server "
                       "the time of its load, where that is known; else of the whole life, with "
                       "what it waits before and after"),
    IndicatorInfo(name="minor_faults", label="minor faults", better="lower"),
    IndicatorInfo(name="major_faults", label="major faults", better="lower"),
)  # fmt: skip

#: What says how fast the machine itself ran.
_OF_MACHINE = (
    IndicatorInfo(name="fixed_loop_per_ns", label="fixed loop beside the trial", unit="1/ns",
                  better="neither",
                  note="independent instructions of a fixed loop, beside the trial; less where "
                  "something else shares the core, or the clock is slower"),
    IndicatorInfo(name="fixed_chain_per_ns", label="fixed chain beside the trial", unit="1/ns",
                  better="neither", note="of a fixed loop, beside the trial; as fast as the clock, "
                  "whatever shares the core"),
)  # fmt: skip

_OF_THREADS = (
    IndicatorInfo(name="worker_threads_total", label="worker threads",
                  note="kernel threads that bore a worker's name, whole life"),
    IndicatorInfo(name="carrier_threads_total", label="carrier threads",
                  note="kernel threads that carried virtual threads, whole life"),
    IndicatorInfo(name="service_threads_total", label="service threads",
                  note="kernel threads that were neither workers nor carriers, whole life"),
    IndicatorInfo(name="worker_nice_min", label="workers' nice, least"),
    IndicatorInfo(name="worker_nice_max", label="workers' nice, greatest"),
    IndicatorInfo(name="worker_priority_min", label="workers' kernel priority, least",
                  note="PRI of ps: 0 to 39 by nice (19 is nice 0), 41 to 139 real-time; "
                  "-1 for SCHED_IDLE"),
    IndicatorInfo(name="worker_priority_max", label="workers' kernel priority, greatest",
                  note="PRI of ps: 0 to 39 by nice (19 is nice 0), 41 to 139 real-time; "
                  "-1 for SCHED_IDLE"),
    IndicatorInfo(name="worker_policy_min", label="workers' policy, least",
                  note="the kernel's number: 0 other, 1 fifo, 2 rr, 3 batch, 5 idle"),
    IndicatorInfo(name="worker_policy_max", label="workers' policy, greatest",
                  note="the kernel's number: 0 other, 1 fifo, 2 rr, 3 batch, 5 idle"),
    IndicatorInfo(name="worker_cpus_min", label="CPUs allowed to a worker, least"),
    IndicatorInfo(name="worker_cpus_max", label="CPUs allowed to a worker, most"),
    IndicatorInfo(name="threads_off_affinity", label="threads off the affinity", better="lower",
                  note="threads whose allowed CPUs are not those of their process"),
)  # fmt: skip

#: The scheduling settings that the kernel gave the threads of the measured role, by name.
THREAD_INDICATORS: dict[str, IndicatorInfo] = {info.name: info for info in _OF_THREADS}

#: The rates of a program that reports no operations: a run of it is one.
OF_RUNS: dict[str, IndicatorInfo] = {
    info.name: info
    for info in (
        IndicatorInfo(name="rate_per_second", label="runs per second", unit="1/s",
                      better="higher", note="one over the wall time: the program reports no "
                      "operations"),
        IndicatorInfo(name="rate_per_worker", label="runs per second and worker", unit="1/s",
                      better="higher", note="one over the wall time and the workers: the program "
                      "reports no operations"),
    )
}  # fmt: skip

#: Those for which the runner opens a counter of the CPU: who does not ask for one pays for none.
_OF_CACHES = frozenset({"cache_misses", "cache_misses_per_operation"})

#: Those that are figures of the measured role alone. Where that is a client of what is asked about,
#: their labels say whose they are.
OF_ROLE = frozenset({
    "cpu_seconds", "user_seconds", "system_seconds", "run_queue_seconds", "voluntary_switches",
    "involuntary_switches", "context_switches", "migrations", "cache_misses", "threads_peak",
    "rss_bytes_max", "rss_bytes_tree_max", "cpu_seconds_per_operation", "switches_per_operation",
    "cache_misses_per_operation", "run_cpu_seconds", "cpus_used", "minor_faults", "major_faults",
})  # fmt: skip

#: All of them by name.
MEASURED: dict[str, IndicatorInfo] = {
    **{info.name: info for info in INDICATORS},
    **{info.name: info for info in _OF_MACHINE},
    **THREAD_INDICATORS,
}

#: The figures derived from an indicator that each worker reports, by the ending of their names.
FAIRNESS: dict[str, IndicatorInfo] = {
    info.name: info
    for info in (
        IndicatorInfo(name="jain", label="Jain's fairness", better="higher",
                      note="over workers: 1/n if one has all, 1 for equal shares"),
        IndicatorInfo(name="cv", label="CV over workers", better="lower",
                      note="standard deviation of the workers' shares over their mean"),
        IndicatorInfo(name="cv_floor", label="Poisson floor of the CV",
                      note="1/√mean: what chance alone gives to counts"),
        IndicatorInfo(name="min_over_mean", label="worst worker over mean", better="higher",
                      note="0 is starvation"),
        IndicatorInfo(name="max_over_min", label="best over worst worker", better="lower"),
        IndicatorInfo(name="gini", label="Gini over workers", better="lower"),
        IndicatorInfo(name="range_over_mean", label="range over mean of workers", better="lower",
                      note="best less worst worker over their mean"),
        IndicatorInfo(name="jain_window_min", label="Jain's fairness, worst window",
                      better="higher", note="over the workers' successive reports"),
    )
}  # fmt: skip


def fairness_info(name: str) -> IndicatorInfo | None:
    """The description of a figure of fairness by its name, ``worker_operations_jain``."""
    endings = sorted(FAIRNESS, key=len, reverse=True)
    ending = next((ending for ending in endings if name.endswith(f"_{ending}")), None)
    if ending is None:
        return None
    of = name.removesuffix(f"_{ending}").replace("_", " ")
    return msgspec.structs.replace(
        FAIRNESS[ending], name=name, label=f"{of}: {FAIRNESS[ending].label}"
    )


def asks_for_cache_misses(study: Study) -> bool:
    """Does a study name an indicator, of any role, that is made of cache misses?"""
    return any(split_name(item.name).own in _OF_CACHES for item in study.indicators)


def better_of(study: Study, name: str) -> str:
    """The better direction of an indicator of a study: ``lower``, ``higher`` or ``neither``. What
    the study says counts first, then what the laboratory knows of the figures that it computes."""
    asked = next((item.better for item in study.indicators if item.name == name), "neither")
    if asked != "neither":
        return asked
    own = {info.name: info for info in INDICATORS}
    known = MEASURED.get(name) or own.get(split_name(name).own)
    if known is None and name not in {extract.name for extract in study.extracts}:
        known = fairness_info(name)
    return known.better if known else "neither"
