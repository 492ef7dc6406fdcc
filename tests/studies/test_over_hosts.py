"""The packaged studies with their load on another host than their server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from concurve.definition.inventory import Inventory
from concurve.definition.pointing import Pointing, point
from concurve.definition.study import Study
from concurve.definition.study_check import with_rules
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.planning.plan import make_plan, trial_spec
from concurve.secrets import KNOWN
from concurve.store import Store
from concurve.wire import decode_record
from concurve.wire.spec import RoleSpec
from tests.helpers import real
from tests.helpers.agents import Agents, inventory_of
from tests.helpers.lacking import lacking
from tests.helpers.packaged import find_study

SERVER, LOAD = "10.77.0.1", "10.77.0.2"
HOSTS = inventory_of({"first": SERVER, "second": LOAD}, second=("load",))

#: The studies in which a load reaches a server over the network.
STUDIES = (
    "enqueue-io-threads",
    *(f"kernel-mode/{name}" for name in (
        "modes", "engines", "statements", "disk", "mariadb", "postgresql",
    )),
    *(f"tpcb-multicore/{name}" for name in ("service", "relational", "mariadb", "postgresql")),
)  # fmt: skip

EMBEDDED = tuple(f"tpcb-multicore/{name}" for name in ("embedded", "sqlite", "checkpoints"))


def program(name: str, where: str, java: str | None, jvm: Sequence[str]) -> list[str]:
    return [name]


def roles_of(study: Study, hosts: Inventory | None) -> list[RoleSpec]:
    """The roles of the first trial of every cell."""
    plan = make_plan(study, "normal", 1, hosts)
    return [
        role
        for cell in plan.cells
        for role in trial_spec(
            plan, cell, "t", tuple(range(8)), program, 4711, folder="/t"
        ).roles
    ]  # fmt: skip


@pytest.mark.parametrize("name", STUDIES)
def test_the_load_is_on_the_host_with_its_label(name: str) -> None:
    roles = roles_of(find_study(name, 8), HOSTS)
    places = {role.name: role.host for role in roles}
    assert places["target"] == "first"
    assert places.pop("load") == "second"
    assert places.get("verify", "second") == "second", "it reads the ledger of the load"
    assert places.get("fill", "first") == "first", "it fills the folder of the server"


@pytest.mark.parametrize("name", STUDIES)
def test_the_server_listens_where_its_load_looks_for_it(name: str) -> None:
    for role in roles_of(find_study(name, 8), HOSTS):
        line = " ".join(role.argv)
        assert "127.0.0.1" not in line
        if role.name == "target":
            assert role.argv[1:] and role.argv[role.argv.index("--bind") + 1] == SERVER
        elif role.name in ("load", "verify", "make"):
            assert f"{SERVER}:4711" in line


@pytest.mark.parametrize("name", STUDIES)
def test_whoever_reaches_the_server_knows_the_password_of_the_run(name: str) -> None:
    """No study and no record has it: any other machine of the network may reach the server."""
    for role in roles_of(find_study(name, 8), HOSTS):
        if role.name != "fill":
            assert role.env["CONCURVE_PASSWORD"] == "{secret:RUN_PASSWORD}"
        if role.name in ("load", "verify", "make"):
            assert role.argv[role.argv.index("--password-from") + 1] == "CONCURVE_PASSWORD"


@pytest.mark.parametrize("name", STUDIES)
def test_without_hosts_the_server_is_on_loopback(name: str) -> None:
    for role in roles_of(find_study(name, 8), None):
        assert role.host is None
        if role.name == "target":
            assert role.argv[role.argv.index("--bind") + 1] == "127.0.0.1"


@pytest.mark.parametrize("name", EMBEDDED)
def test_an_engine_in_the_loads_own_process_is_on_the_first_host(name: str) -> None:
    for role in roles_of(find_study(name, 8), HOSTS):
        assert role.host == "first"
        assert "--password-from" not in role.argv, "an engine asks for none"


# -- tiny versions, whole ---------------------------------------------------------------------

#: One trial of each cell shows where its roles run and whom they reach; more show it again.
ONE_TRIAL = {"repeats_min": 1, "repeats_max": 1, "redo_max": 0}

TINY = {
    "enqueue-io-threads": (
        "procedure=document", "target=worker", "cpus=1", "processes=4", "io-threads=1,2",
    ),
    "kernel-mode/modes": ("idle=block", "clients=4"),
    "tpcb-multicore/service": (
        "workload=tpcb-rw3", "cpus=1", "files=4", "latching=global,record", "sessions=8",
    ),
    "tpcb-multicore/relational": (
        "cpus=1", "files=4", "engines=threads", "latching=global,record", "sessions=8",
    ),
    "kernel-mode/mariadb": ("threads=pool-of-threads", "clients=2,4"),
}  # fmt: skip

LACKING = {"kernel-mode/mariadb": lacking("mariadb")}


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Agents]:
    addresses = {"first": "127.0.0.2", "second": "127.0.0.3"}
    found = Agents(tmp_path, inventory_of(addresses, second=("load",)))
    try:
        found.start()
        yield found
    finally:
        found.end()


@pytest.mark.real
@pytest.mark.skipif(real.missing() is not None, reason=str(real.missing()))
@pytest.mark.parametrize("name", TINY)
def test_a_tiny_version_runs_over_two_hosts(agents: Agents, name: str, tmp_path: Path) -> None:
    if LACKING.get(name):
        pytest.skip(LACKING[name])
    study = with_rules(point(find_study(name, 2), Pointing(levels=TINY[name]), 2), ONE_TRIAL)
    store = Store(str(tmp_path / "runs.db"))
    with agents.connected() as engine:
        head = new_head(study, "quick", 1, "again", engine.inventory, engine)
        Runner(head, store, engine, site=engine).start()
    raw = list(store.records(head.id))
    cells = len(make_plan(study, "quick", 1).cells)
    assert sorted(row.key.cell for row in raw) == list(range(cells))
    password = KNOWN.reveal("{secret:RUN_PASSWORD}").encode()
    assert len(password) == 32
    for _, packed in raw:
        assert password not in packed
        record = decode_record(packed)
        assert record.outcome.kind == "ok", record.outcome
        places = {role.name: role.host for role in record.roles}
        assert (places["target"], places["load"]) == ("first", "second")
