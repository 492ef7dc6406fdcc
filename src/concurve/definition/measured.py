"""The indicators that the laboratory measures of any program, which a study may use by name, with
their labels."""

from __future__ import annotations

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
    IndicatorInfo(name="threads_peak", label="threads at peak", better="neither"),
    IndicatorInfo(name="rss_bytes_max", label="peak memory", unit="B", better="lower",
                  note="largest process"),
    IndicatorInfo(name="rate_per_second", label="total rate", unit="1/s", better="higher",
                  note="reported operations, else whole runs, per second of wall time"),
    IndicatorInfo(name="rate_per_worker", label="rate per worker", unit="1/s", better="higher"),
    IndicatorInfo(name="seconds_per_operation", label="time per operation", unit="s",
                  better="lower", note="wall time over reported operations: no latency, many may "
                  "be under way at once"),
    IndicatorInfo(name="cpu_seconds_per_operation", label="CPU time per operation", unit="s",
                  better="lower", note="of the measured role, over reported operations"),
    IndicatorInfo(name="switches_per_operation", label="switches per operation", better="lower",
                  note="of the measured role, voluntary and involuntary"),
    IndicatorInfo(name="run_seconds", label="run time", unit="s", better="lower",
                  note="release to exit, start-up included"),
    IndicatorInfo(name="run_cpu_seconds", label="CPU time of the run", unit="s", better="lower",
                  note="whole life, start-up included"),
    IndicatorInfo(name="cpus_used", label="CPUs used", better="higher",
                  note="CPU time over wall time"),
    IndicatorInfo(name="minor_faults", label="minor faults", better="lower"),
    IndicatorInfo(name="major_faults", label="major faults", better="lower"),
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

#: All of them by name.
MEASURED: dict[str, IndicatorInfo] = {
    **{info.name: info for info in INDICATORS},
    **THREAD_INDICATORS,
}
