"""Experiments on a real program: from its cell to what the stored trials say.

The cell is made up, since a busy machine may name another cause. Of the result only what no load
changes is judged: which locks were held, how often, and that all trials were made.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from concurve.definition.study import Rules, Study
from concurve.engine.local import LocalEngine
from concurve.errors import HostError
from concurve.explain.confirmation import confirm_run
from concurve.explain.experiments import experiments, reach_of
from concurve.explain.predicted_gain import BEYOND
from concurve.findings.explanation import CellExplanation, WaitSite
from concurve.host import native
from concurve.host.machine import allowed_cpus
from concurve.host.preloading import why_not_preloaded
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from tests.helpers.fakes import small_study

pytestmark = pytest.mark.real

SOURCE = Path(__file__).parents[2] / "benches" / "confirm_programs" / "c"
HOLDS = 1500


def built(folder: Path, source: str) -> Path:
    for tool in ("gcc", "objdump"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} here")
    try:
        native.binary("concurve-perturb")
    except HostError:
        pytest.skip("concurve-perturb is not built: make build")
    program = folder / source.removesuffix(".c")
    command = ["gcc", "-O2", "-pthread", "-o", str(program), str(SOURCE / source)]
    subprocess.run(command, check=True)
    return program


def study_of(program: Path, *arguments: str) -> Study:
    study = small_study(Rules(repeats_min=5, repeats_max=5), threads=(1, 2))
    command = (str(program), *arguments)
    role = msgspec.structs.replace(study.roles[0], command=command)
    return msgspec.structs.replace(study, roles=(role,), work_amount="fixed")


def cell_of(cause: str, *sites: WaitSite) -> CellExplanation:
    return CellExplanation(
        parameters={"threads": 2},
        cause=cause,  # type: ignore[arg-type]
        evidence="",
        index=1,
        sites=sites,
    )


def place(program: Path, function: str, called: str) -> str:
    """Where a function calls another one, by the address inside of the call."""
    listed = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", program], check=True, capture_output=True, text=True
    ).stdout
    body = listed.split(f"<{function}>:", 1)[1].split("\n\n", 1)[0].splitlines()
    at = next(i for i, line in enumerate(body) if re.search(rf"call.*<{called}[@>]", line))
    return hex(int(body[at + 1].split(":")[0].strip(), 16) - 1)


def test_a_lock_is_held_longer_in_every_trial(tmp_path: Path) -> None:
    program = built(tmp_path, "locks.c")
    store = Store(str(tmp_path / "concurve.db"))
    study = study_of(program, "mutex", "{threads}", str(HOLDS), "300", "100")
    head = new_head(study, "normal", 1, "concurve sweep …")
    site = WaitSite(
        name="under_mutex",
        primitive="mutex",
        module=str(program),
        readings=50,
        share=1.0,
        threads=2,
        operation="pthread_mutex_lock",
        lock="hot",
        offsets=(place(program, "under_mutex", "pthread_mutex_lock"),),
    )
    cell = cell_of("lock", site)
    reach = reach_of(cell, why_not_preloaded)
    assert not reach.why_not
    perturb = str(native.binary("concurve-perturb"))
    made = experiments(head, cell, reach, perturb, allowed_cpus(), 100.0, 3000.0)
    new = msgspec.structs.replace(
        new_head(made.study, "normal", 1, "concurve explain --confirm"), confirms=made.confirms
    )
    Runner(new, store, LocalEngine()).start()
    found = confirm_run(store, store.find_run(new.id))
    assert found.result in ("confirmed", "not confirmed", "open")
    assert found.blocks == made.study.effort("normal").rules.repeats_min
    assert found.holds == HOLDS and (found.held_ns or 0) > 0
    assert found.gain is not None
    times = found.gain.times
    assert 0 < times.value <= 1 / found.gain.held + 1e-9
    assert times.value <= (times.high or 0) <= BEYOND / found.gain.held + 1e-9


def test_hogs_and_one_cpu_run_beside_and_below(tmp_path: Path) -> None:
    if len(allowed_cpus()) < 2:
        pytest.skip("one CPU")
    program = built(tmp_path, "shared.c")
    store = Store(str(tmp_path / "concurve.db"))
    study = study_of(program, "shared", "{threads}", "200000")
    head = new_head(study, "normal", 1, "concurve sweep …")
    cell = cell_of("coherency")
    perturb = str(native.binary("concurve-perturb"))
    made = experiments(head, cell, reach_of(cell, str), perturb, allowed_cpus(), 100.0, 3000.0)
    new = msgspec.structs.replace(
        new_head(made.study, "normal", 1, "concurve explain --confirm"), confirms=made.confirms
    )
    Runner(new, store, LocalEngine()).start()
    found = confirm_run(store, store.find_run(new.id))
    assert found.result in ("confirmed", "not confirmed", "open")
    assert found.blocks == made.study.effort("normal").rules.repeats_min
    levels = {item.level for item in found.tried if item.wall is not None}
    assert levels == {"one-cpu", "cpu-hog-half", "cpu-hog", "memory-hog-half", "memory-hog"}
