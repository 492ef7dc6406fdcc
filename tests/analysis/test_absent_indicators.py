"""What a claim says that names what the records lack, or a level otherwise than the study does."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from concurve.analysis.run import findings_of
from concurve.definition.study import Claim, Indicator, Rules
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.wire import decode_record
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study

WHY = "the CPU offers no counter"


class WithoutCounter(FakeEngine):
    """Answers as on a machine that has no counter of cache misses."""

    def run(self, spec: TrialSpec) -> bytes:
        record = decode_record(super().run(spec))
        lacking = {"cache_misses": WHY} if spec.cache_misses is True else {}
        roles = tuple(
            msgspec.structs.replace(role, usage=msgspec.structs.replace(role.usage, absent=lacking))
            for role in record.roles
        )
        return msgspec.json.encode(msgspec.structs.replace(record, roles=roles))


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_claim_on_an_absent_indicator_says_why_it_is_absent(
    is_asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONCURVE_LOCK", str(tmp_path / "lock"))
    claim = Claim(
        id="c", says="So.", kind="ratio",
        test={"indicator": "cache_misses", "of": {"threads": 2}, "over": {"threads": 1},
              "at_least": 1.1},
    )  # fmt: skip
    study = small_study(Rules(repeats_min=3, repeats_max=3), threads=(1, 2))
    asked = (Indicator(name="cache_misses"),) if is_asked else ()
    study = msgspec.structs.replace(study, claims=(claim,), indicators=(*study.indicators, *asked))
    store = Store(str(tmp_path / "s.db"))
    head = new_head(study, "normal", 1, "concurve run small")
    Runner(head, store, WithoutCounter(lambda spec, rng: 1.0), clock=FakeClock(0.001)).start()
    (found,) = findings_of(store, store.run(head.id)).claims
    assert found.verdict == "not testable here"
    why = f": {WHY}" if is_asked else ""
    assert found.reason == f"threads=2 has no cache_misses in this run{why}"


def test_a_claim_names_a_level_as_a_number_or_as_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONCURVE_LOCK", str(tmp_path / "lock"))
    claim = Claim(
        id="c", says="So.", kind="ratio",
        test={"indicator": "wall_seconds", "of": {"version": 3.9}, "over": {"version": "3.10"},
              "at_least": 0.5},
    )  # fmt: skip
    study = small_study(Rules(repeats_min=3, repeats_max=3), version=("3.9", "3.10"), n=(1,))
    store = Store(str(tmp_path / "s.db"))
    head = new_head(msgspec.structs.replace(study, claims=(claim,)), "normal", 1, "concurve run s")
    Runner(head, store, FakeEngine(lambda spec, rng: 1.0), clock=FakeClock(0.001)).start()
    (found,) = findings_of(store, store.run(head.id)).claims
    assert found.verdict != "not testable here", found.reason
