"""What a picture is computed from, by which kernel and how; and the command line that it means."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Literal

import msgspec

from concurve.errors import HostError, StudyError
from concurve.host.machine import allowed_cpus
from concurve.measuring.packaged import command
from concurve.report import format as fmt
from concurve.web.bookmarks import DEPTH_MAX, SIDE_MAX, Bookmark, check

#: So many threads, pixels and repetitions may be asked for here; the command line takes more.
THREADS_MAX = 512
PIXELS_MAX = 4_000_000
REPEAT_MAX = 100

#: A version of Java as ``--java`` takes it, and a scheduling policy as ``--policy`` takes it.
_VERSION = re.compile(r"[0-9]{1,3}\+?")
_POLICY = re.compile(r"other|batch|idle|(?:fifo|rr):[1-9][0-9]?")

_WHERE = "the window"


class Jvm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The virtual machine and its threads. ``java`` is a version, empty for the Java that
    measurements take; ``collector`` is empty for the one that the JVM chooses. ``priority`` is
    Java's own, 1 to 10; it becomes one of the kernel only with ``maps_priority``."""

    java: str = ""
    collector: Literal["", "Serial", "Parallel", "G1", "Z", "Shenandoah"] = ""
    kind: Literal["platform", "virtual", "forkjoin", "parallel-stream"] = "platform"
    priority: int = 5
    maps_priority: bool = False
    after_loop: Literal["park", "spin"] = "park"


class Setting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is computed, and how. ``cpus``, ``nice`` and ``policy`` are as the options of
    ``concurve sweep`` take them; empty or 0: as they are."""

    bookmark: Bookmark
    iterations: int
    kernel: Literal["native", "jvm"] = "native"
    jvm: Jvm = Jvm()
    threads: int = 1
    sync: Literal["none", "method", "object", "cas"] = "none"
    grain: Literal["pixel", "line", "tile"] = "line"
    tile_size: int = 32
    simd: bool = False
    repeat: int = 1
    cpus: tuple[int, ...] = ()
    nice: int = 0
    policy: str = ""


def built_in() -> Bookmark:
    """The region that every measurement computes: that of the kernels' own bookmark."""
    return Bookmark(
        x_min=-0.7565,
        x_max=-0.73618,
        y_min=0.103,
        y_max=0.11736,
        width=1016,
        height=718,
        iterations_quick=2500,
        iterations_normal=19000,
        iterations_rigorous=240000,
    )


def check_setting(setting: Setting) -> None:
    """Refuse a setting that cannot be computed here.

    Raises:
        StudyError: a value out of its range, or two that exclude each other.
    """
    check(setting.bookmark)
    for name, value, least, most in (
        ("threads", setting.threads, 1, THREADS_MAX),
        ("iterations", setting.iterations, 1, DEPTH_MAX),
        ("repeat", setting.repeat, 1, REPEAT_MAX),
        ("tile size", setting.tile_size, 1, SIDE_MAX),
        ("nice", setting.nice, -20, 19),
        ("Java priority", setting.jvm.priority, 1, 10),
    ):
        if not least <= value <= most:
            raise StudyError(f"{name} {value} is out of range", f"a number from {least} to {most}")
    if setting.bookmark.width * setting.bookmark.height > PIXELS_MAX:
        raise StudyError("the picture is too large for a page", f"at most {PIXELS_MAX} pixels")
    if setting.policy and not _POLICY.fullmatch(setting.policy):
        raise StudyError(
            f"{setting.policy[:20]!r} is no scheduling policy",
            "other, batch, idle, fifo:P or rr:P with P from 1 to 99",
        )
    allowed = allowed_cpus()
    if wrong := [cpu for cpu in setting.cpus if cpu not in allowed]:
        raise StudyError(
            f"CPU {wrong[0]} is not granted", f"some of {', '.join(map(str, allowed))}"
        )
    if setting.kernel == "jvm":
        _check_jvm(setting)


def _check_jvm(setting: Setting) -> None:
    jvm = setting.jvm
    if setting.simd:
        raise StudyError("the JVM kernel computes pixel by pixel", "no SIMD, or the native kernel")
    if jvm.java and not _VERSION.fullmatch(jvm.java):
        raise StudyError(f"{jvm.java[:20]!r} is no version of Java", "17, or 21+")
    if jvm.kind == "virtual" and (jvm.priority != 5 or jvm.after_loop == "spin"):
        raise StudyError(
            "virtual threads always have priority 5, and none may busy-wait",
            "priority 5 and park, or platform threads",
        )


def kernel_of(setting: Setting) -> tuple[str, ...]:
    """The command line of the kernel of a setting, up to its arguments. To find a Java takes a
    while, the first time.

    Raises:
        HostError: the kernel is not built, there is no such Java, or the system refuses the
            priority.
        StudyError: the setting cannot be computed.
    """
    check_setting(setting)
    _check_controls(setting)
    if setting.kernel == "native":
        return command("mandelbrot", _WHERE)
    jvm = setting.jvm
    options = [f"-XX:+Use{jvm.collector}GC"] if jvm.collector else []
    options += ["-XX:ThreadPriorityPolicy=1"] if jvm.maps_priority else []
    return command("mandelbrot-java", _WHERE, jvm.java or None, options)


def _check_controls(setting: Setting) -> None:
    """Try the controls with a program that does nothing: where ``nice`` may not lower its value, it
    says so and goes on, and a picture of another priority than the one of the form would come."""
    line = _controls(setting)
    if not line:
        return
    tried = subprocess.run(
        [*line, _tool("true")], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if tried.returncode != 0 or tried.stderr:
        said = " ".join(tried.stderr.decode(errors="replace").split())
        raise HostError(
            f"the system refuses the priority or the CPUs: {fmt.clean(said)}",
            "a nice value of 0 or more, no real-time policy and CPUs that this user has, or root",
        )


def sharing(setting: Setting) -> list[str]:
    """The arguments that say how the picture is shared among threads, without their number."""
    line = [f"--sync={setting.sync}", f"--grain={setting.grain}"]
    if setting.grain == "tile":
        line.append(f"--tile-size={setting.tile_size}")
    if setting.kernel == "jvm":
        jvm = setting.jvm
        line += [f"--kind={jvm.kind}", f"--priority={jvm.priority}"]
        line.append(f"--after-loop={jvm.after_loop}")
    elif setting.simd:
        line.append("--simd")
    return [*line, f"--iterations={setting.iterations}"]


def words(setting: Setting, location: str, live: str, kernel: tuple[str, ...]) -> list[str]:
    """The command line of a picture.

    Raises:
        StudyError: a setting that cannot be computed here.
        HostError: a tool that it needs is not installed.
    """
    check_setting(setting)
    return [
        *_controls(setting),
        *kernel,
        f"--threads={setting.threads}",
        *sharing(setting),
        f"--repeat={setting.repeat}",
        f"--location={location}",
        f"--live={live}",
    ]


def _controls(setting: Setting) -> list[str]:
    """The beginning of a command line that sets priority and CPUs of what follows."""
    line: list[str] = []
    if setting.nice:
        line[:0] = [_tool("nice"), "-n", str(setting.nice)]
    if setting.policy:
        policy, _, priority = setting.policy.partition(":")
        line[:0] = [_tool("chrt"), f"--{policy}", priority or "0"]
    if setting.cpus:
        line[:0] = [_tool("taskset"), "-c", ",".join(map(str, setting.cpus))]
    return line


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise HostError(
            f"{name} is not installed", "the package util-linux, or leave the setting as it is"
        )
    return found
