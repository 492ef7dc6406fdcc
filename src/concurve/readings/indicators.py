"""What the laboratory itself measures, and how to call it."""

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
