"""What all tests share: fixtures, and the same conditions on every machine."""

from __future__ import annotations

import copy
import fcntl
import gc
import os
import pwd
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from concurve.host import native
from concurve.secrets import KNOWN
from tests.helpers import postgres as server
from tests.helpers.real import STEERING, Lab, missing

# The same examples everywhere, however long they take; --hypothesis-profile=default looks further.
settings.register_profile(
    "same-everywhere",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("same-everywhere")


def own_file(name: str) -> Path:
    """A file in the temporary folder, where that of another user would be in the way."""
    return Path(tempfile.gettempdir()) / f"concurve-test-{os.getuid()}-{name}"


def pytest_configure(config: pytest.Config) -> None:
    """Undo settings that the tests and their processes inherit from the caller of the tests."""
    if "not real" in config.option.markexpr:
        # Where programs are built, a test that needs one without saying so would pass.
        native._scripts = lambda: "a-folder-without-programs"  # type: ignore[assignment]
    for name in STEERING:
        os.environ.pop(name, None)
    sys.dont_write_bytecode = False
    # What a fixture of a whole module measures waits for nobody either, and is kept in no store of
    # the user's.
    folder = tempfile.mkdtemp(prefix="concurve-test-")
    os.environ["CONCURVE_LOCK"] = str(Path(folder) / "lock")
    os.environ["CONCURVE_DB"] = str(Path(folder) / "concurve.db")
    # A shell starts what it puts into the background with these ignored.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGQUIT) == signal.SIG_IGN:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have the collector of cycles look at no module and no test: all of them stay, and to look at
    them again and again takes as long as to collect half of the tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Remove the lock and the store of the modules' fixtures."""
    shutil.rmtree(Path(os.environ["CONCURVE_LOCK"]).parent, ignore_errors=True)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """The command line in a folder of its own; nothing that it starts is left."""
    if reason := missing():
        pytest.skip(reason)
    own = Lab(tmp_path)
    yield own
    own.end()


@pytest.fixture(autouse=True)
def secrets_of_its_own() -> Iterator[None]:
    """What one test makes the process know is hidden in no other."""
    known = vars(KNOWN)
    before = {name: copy.copy(value) for name, value in known.items()}
    yield
    known |= before


#: So many open files are far from the 1,024 that `select` can tell apart.
OPEN_FILES = 200


@pytest.fixture(autouse=True, scope="module")
def few_open_files() -> Iterator[None]:
    """Stores that tests leave open are closed by the collector, which seldom looks: beside all that
    is imported, what a test leaves is little."""
    yield
    if len(list(Path("/proc/self/fd").iterdir())) > OPEN_FILES:
        gc.collect()


#: Folders and files whose tests start programs, servers or devices, and fixtures that do so.
REAL_FOLDERS = {"attendants", "benches", "histories", "instrument", "monitor", "subjects"}
REAL_FIXTURES = {"lab", "large", "loop_devices", "measured", "postgres", "redis", "server", "swept"}
REAL_FILES = {
    "cli/test_completion.py", "measuring/test_resume_after_kill.py", "packaging/test_site.py",
    "store/test_changed_file.py",
}  # fmt: skip


#: Files that simulate so many runs or curves that they take a third of the unit tests' time.
SIMULATIONS = {
    "analysis/test_judging_noise.py", "models/test_bands.py", "models/test_properties.py",
    "models/test_sentences.py", "models/test_stated.py", "planning/test_noise.py",
    "store/test_scale.py",
}  # fmt: skip


#: The files that take longest, the longest first: they begin first, so that none of them runs alone
#: at the end, while the other processes of `make test` have nothing left to do.
LONG = (
    "benches/test_benches.py", "studies/test_tpcb_multicore.py", "cli/test_cli.py",
    "servers/test_servers_databases.py", "cli/test_streams.py", "studies/test_kernel_mode.py",
    "benches/test_simulated_runs.py", "analysis/test_judging_noise.py", "subjects/test_storage.py",
    "measuring/test_resume_after_kill.py", "models/test_misfit.py", "models/test_properties.py",
    "cli/test_secrets.py", "studies/test_over_hosts.py", "subjects/test_server_damage.py",
)  # fmt: skip


def file_of(item: pytest.Item) -> str:
    """The file of a test with its folder."""
    return "/".join(item.path.parts[-2:])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts real processes or simulates for long, which `make check` leaves out; and let
    the longest files begin first."""
    order = {file: place for place, file in enumerate(LONG)}
    items.sort(key=lambda item: order.get(file_of(item), len(LONG)))
    for item in items:
        file = file_of(item)
        folders = REAL_FOLDERS & set(item.path.parts)
        fixtures = REAL_FIXTURES & set(getattr(item, "fixturenames", ()))
        if folders or fixtures or file in REAL_FILES:
            item.add_marker("real")
        if file in SIMULATIONS:
            item.add_marker("simulation")


@pytest.fixture(autouse=True)
def _own_lock_and_store(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Each test has a store and a measurement lock of its own. Pytest takes longer to make a folder
    and to remove it than most tests run: only those that ask for one have it."""
    has_folder = "tmp_path" in request.fixturenames
    folder = (
        request.getfixturevalue("tmp_path")
        if has_folder
        else Path(tempfile.mkdtemp(prefix="concurve-test-"))
    )
    monkeypatch.setenv("CONCURVE_LOCK", str(folder / "lock"))
    monkeypatch.setenv("CONCURVE_DB", str(folder / "concurve.db"))
    yield
    if not has_folder:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def empty_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages whose pictures are empty, for tests of their words: drawing takes a second, and its
    result belongs to another program's version."""
    empty = '<svg width="1" viewBox="0 0 1 1"></svg>'
    monkeypatch.setattr("concurve.report.html.to_svg", lambda *_, **__: empty)


@pytest.fixture
def fits_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits of the same numbers are computed once, for tests of what is asked and said: a fit takes
    half a second."""
    from concurve.models.fit_curves import fit_curves
    from tests.helpers.remembered import remembering

    monkeypatch.setattr("concurve.models.fit_curves", remembering(fit_curves))


@pytest.fixture
def loop_devices() -> Iterator[None]:
    """The machine's loop devices, for one test at a time: what is set of one stays when it is
    detached, and who attaches the next one finds it."""
    with own_file("loop-devices").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[server.Server]:
    """A PostgreSQL server of the tests' own, or the reason why there is none."""
    reason = server.missing()
    if reason is not None:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="concurve-postgres-"))
    try:
        if os.geteuid() == 0:
            user = pwd.getpwnam(server.USER)
            shutil.chown(folder, user.pw_uid, user.pw_gid)
        with server.running(folder) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)
