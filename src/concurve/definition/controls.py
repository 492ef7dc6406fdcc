"""Controls of a role (CPUs, nice, policy): from texts to the fields of a trial's spec."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import get_args

import msgspec

from concurve.definition.templates import Value, render
from concurve.errors import HostError, StudyError
from concurve.wire.spec import Controls, Policy, PolicyClass

#: The CPUs that no other role of the study is bound to.
SPARE = "spare"

#: A message names at most this many of the listed CPUs that the process may not use.
_MISSING_SHOWN = 8

POLICIES = ("other", "batch", "idle", "fifo", "rr")

#: Policies under which the kernel shares the CPUs by nice values.
_BY_NICE = ("other", "batch")


class ControlsTemplate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Controls as written: texts in which ``{parameter}`` may stand."""

    cpus: str | None = None
    nice: str | None = None
    policy: str | None = None

    def texts(self) -> dict[str, str]:
        """The texts of the controls that are set, by control."""
        pairs = {"cpus": self.cpus, "nice": self.nice, "policy": self.policy}
        return {name: text for name, text in pairs.items() if text is not None}

    def resolve(
        self,
        values: Mapping[str, Value],
        allowed_cpus: Sequence[int],
        where: str,
        spare_cpus: Sequence[int] = (),
    ) -> Controls:
        """The controls in the spec of one cell on this machine; a control whose text is empty
        there is left out. ``spare_cpus`` are what ``spare`` stands for.

        Raises:
            StudyError: a text is malformed, or the nice value has no effect under the policy.
            HostError: the machine does not have the CPUs.
        """
        rendered = {name: render(text, values) for name, text in self.texts().items()}
        rendered = {name: text for name, text in rendered.items() if text}
        controls = Controls(
            cpus=_cpus(rendered["cpus"], allowed_cpus, spare_cpus, f"{where} cpus")
            if "cpus" in rendered
            else None,
            nice=parse_nice(rendered["nice"], f"{where} nice") if "nice" in rendered else None,
            policy=parse_policy(rendered["policy"], f"{where} policy")
            if "policy" in rendered
            else None,
        )
        policy = controls.policy
        if controls.nice is not None and policy is not None and policy.class_ not in _BY_NICE:
            raise StudyError(
                f"{where}: a nice value ({controls.nice}) has no effect under the policy "
                f"{rendered['policy']}",
                "one of the two; in a study file an empty nice value for the levels of that policy "
                "(docs/studies.md, [levels.FACTOR])",
            )
        return controls


def _cpus(text: str, allowed: Sequence[int], spare: Sequence[int], where: str) -> tuple[int, ...]:
    return tuple(spare) if text == SPARE else parse_cpus(text, allowed, where)


def parse_cpus(text: str, allowed: Sequence[int], where: str) -> tuple[int, ...]:
    """CPUs of ``2`` (the first two allowed), ``0,1``, ``2-3`` or ``all``.

    Raises:
        StudyError: neither a count nor a list.
        HostError: this process may not use that many CPUs, or not these.
    """
    text = text.strip()
    if text == "all":
        return tuple(allowed)
    if re.fullmatch(r"\d+", text):
        count = int(text)
        if count < 1:
            raise StudyError(
                f"{where}: 0 CPUs", "a number of CPUs from 1; 0-0 is CPU 0 alone, 0,1 or 2-3 a list"
            )
        if count > len(allowed):
            raise HostError(
                f"{where}: {count} CPUs asked for, {len(allowed)} granted",
                f"at most {len(allowed)}, or a bigger machine",
            )
        return tuple(allowed[:count])
    if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*,?", text):
        raise StudyError(
            f"{where}: {text!r} is neither a count nor a list of CPUs",
            "2, or 0,1, or 0-3, or all, or spare",
        )
    spans = [part.partition("-") for part in text.split(",") if part]
    asked = [range(int(first), int(last or first) + 1) for first, _, last in spans]
    # Of a range such as 0-1000000000, take only the CPUs that the message shows.
    missing = sorted(
        {
            cpu
            for span in asked
            for cpu in islice((cpu for cpu in span if cpu not in allowed), _MISSING_SHOWN)
        }
    )[:_MISSING_SHOWN]
    if missing or not any(asked):
        raise HostError(
            f"{where}: CPU {', '.join(map(str, missing)) or text} is not among those that this "
            f"process may use ({', '.join(map(str, allowed))})",
            "a list of these, or a count",
        )
    return tuple(cpu for cpu in sorted(allowed) if any(cpu in span for span in asked))


def parse_nice(text: str, where: str) -> int:
    """A nice value, −20…19.

    Raises:
        StudyError: no integer in that range.
    """
    if not re.fullmatch(r"[+-]?\d+", text.strip()) or not -20 <= int(text) <= 19:
        raise StudyError(f"{where}: {text!r} is no nice value", "an integer from -20 to 19")
    return int(text)


def parse_policy(text: str, where: str) -> Policy:
    """A scheduling policy: ``other``, ``batch``, ``idle``, ``fifo:P`` or ``rr:P``.

    Raises:
        StudyError: an unknown class, or a priority that does not fit it.
    """
    name, colon, number = text.strip().partition(":")
    if name not in POLICIES or name not in get_args(PolicyClass):
        raise StudyError(
            f"{where}: {name!r} is no scheduling policy", "other, batch, idle, fifo:P or rr:P"
        )
    if name in ("fifo", "rr"):
        if not number.isdigit() or not 1 <= int(number) <= 99:
            raise StudyError(
                f"{where}: {name} needs a priority from 1 to 99", f"for example {name}:10"
            )
        return Policy(class_=name, priority=int(number))  # type: ignore[arg-type]
    if colon:
        raise StudyError(f"{where}: {name} takes no priority", f"{name}, or fifo:{number or 10}")
    return Policy(class_=name)  # type: ignore[arg-type]
