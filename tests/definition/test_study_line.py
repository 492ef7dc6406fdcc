"""The options of ``concurve sweep`` as a study."""

from __future__ import annotations

from typing import Any

import pytest

from concurve.definition.beside_line import Beside
from concurve.definition.controls import ControlsTemplate
from concurve.definition.purposes import purposes_of
from concurve.definition.study import Hooks, Study, choose_work, unused_factors
from concurve.definition.study_line import (
    parse_base,
    parse_environment,
    parse_repeats,
    rules_from_options,
    sweep_study,
)
from concurve.errors import HostError, StudyError
from concurve.measuring import packaged
from concurve.terms import Level
from concurve.wire.spec import ReadyProbe


def study_of(*command: str, parameters: tuple[tuple[str, str], ...] = (), **more: Any) -> Study:
    return sweep_study(command or ("./mine", "{threads}"), parameters or (("threads", "1,2"),), 2,
                       **more)  # fmt: skip


def test_options_become_a_study() -> None:
    study = study_of(
        "/opt/bin/my renderer", "--threads", "{threads}", "--on", "{cpus}",
        parameters=(("threads", "1..4*2"), ("cpus", "1,2")),
        controls=ControlsTemplate(cpus="{cpus}", nice="5"),
        env={"OMP_NUM_THREADS": "{threads}"},
        hooks=Hooks(prepare="sync"),
        background=("2@nice=5,cpus=0,1", "{threads}"),
        extracts=(r"rate=(\d+) req/s:1/s",),
        base="threads=2",
        rules={"repeats_min": 3},
    )  # fmt: skip
    assert study.name == "sweep-my-renderer"
    assert [factor.levels for factor in study.factors] == [(1, 2, 4), (1, 2)]
    first, second, target = study.roles
    assert (first.name, first.program, first.end, first.ready) == (
        "background", "targets", "serve", "report"
    )  # fmt: skip
    assert first.controls == ControlsTemplate(cpus="0,1", nice="5")
    assert (first.copies, second.copies, second.name) == ("2", "{threads}", "background2")
    assert target.env == {"OMP_NUM_THREADS": "{threads}"}
    assert [indicator.name for indicator in study.indicators] == ["wall_seconds", "rate"]
    assert study.base == {"threads": 2}
    assert {effort.rules.repeats_min for effort in study.efforts.values()} == {3}
    assert choose_work(study) == "threads"


def test_a_command_without_parameters_is_a_study_of_one_cell() -> None:
    study = sweep_study(["true"], [], 2)
    assert study.factors == ()
    assert study.question == "How fast is true?"
    assert choose_work(study) is None


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("python3 lib/pool.py {n}", "sweep-pool-py"),
        ("/usr/bin/python3.11 pool.py {n}", "sweep-pool-py"),
        ("java Primes {n}", "sweep-Primes"),
        ("python3 -m pool {n}", "sweep-python3"),
        ("sh -c work:{n}", "sweep-sh"),
        ("python3 {n}", "sweep-python3"),
        ("java Collatz {n}", "sweep-Collatz"),
        ("java -cp x Collatz {n}", "sweep-Collatz"),
        ("java -Xmx1g --class-path a:b -ea com.example.Collatz {n}", "sweep-com-example-Collatz"),
        ("/opt/jdk/bin/java -Dn={n} -jar build/app.jar", "sweep-app"),
        ("java -p mods -m app/com.example.Main {n}", "sweep-com-example-Main"),
        ("java -cp x {n}", "sweep-java"),
        ("java -version {n}", "sweep-java"),
        ("env THREADS={n} LC_ALL=C ./mine", "sweep-mine"),
        ("env THREADS={n} python3 pool.py", "sweep-pool-py"),
        ("env -i ./mine {n}", "sweep-mine"),
        ("taskset -c {n} nice -n 5 ./mine", "sweep-mine"),
        ("docker exec db pgbench -c {n}", "sweep-pgbench"),
        ("timeout {n}", "sweep-timeout"),
        ("env A={n}", "sweep-env"),
        ("sort {n}", "sweep-sort"),
    ],
)
def test_a_run_has_the_name_of_its_script_and_not_of_an_interpreter(line: str, name: str) -> None:
    assert sweep_study(line.split(), [("n", "1,2")], 2).name == name


@pytest.mark.parametrize(
    ("command", "levels", "question"),
    [
        ("./mine-{n}", "old,new", "How does mine-… depend on n?"),
        ("{n}", "a,b", "How does the program depend on n?"),
        ("./mine", "1,2", "How does mine scale with n?"),
        ("./mine", "1,all", "How does mine scale with n?"),
    ],
)
def test_a_sweep_asks_what_it_answers(command: str, levels: str, question: str) -> None:
    assert sweep_study([command, "{n}"], [("n", levels)], 2).question == question


@pytest.mark.parametrize(
    ("command", "beside", "question"),
    [
        (["wrk", "-c{n}"], Beside(server="env P={n} ./serve", ready="launch"), "serve scale"),
        (["wrk", "-c{n}"], Beside(server="redis://127.0.0.1:6379"), "the server scale"),
        (["wrk", "-c{n}"], Beside(attach="unit:nginx"), "the server scale"),
        (["concurve", "load", "{n}"], Beside(server="./serve", ready="launch"), "serve scale"),
        (["concurve", "load", "{n}"], None, "concurve load scale"),
    ],
)
def test_a_sweep_asks_about_the_server_if_there_is_one(
    command: list[str], beside: Beside | None, question: str
) -> None:
    study = sweep_study(command, [("n", "1,2")], 2, beside=beside)
    assert study.question == f"How does {question} with n?"


def test_which_parameter_counts_as_concurrency() -> None:
    assert choose_work(study_of("m", "{n}", parameters=(("n", "1,2"),))) == "n", "the only number"
    two = (("n", "1,2"), ("m", "1,2"))
    with pytest.raises(StudyError, match=r"which parameter counts workers .*: n or m\?") as asked:
        study_of("m", "{n}", "{m}", parameters=two)
    assert "--work n" in asked.value.remedy and "--work none" in asked.value.remedy
    assert choose_work(study_of("m", "{n}", "{m}", parameters=two, work="none")) is None
    assert choose_work(study_of("m", "{n}", "{m}", parameters=two, work="m")) == "m"
    zero = study_of("m", "{n}", parameters=(("n", "0,1"),))
    assert choose_work(zero) is None, "nothing is a multiple of none"
    part = study_of("m", "{n}", parameters=(("n", "0.5,1.0,2.0"),))
    assert choose_work(part) is None, "half of a worker is none"
    for name in ("python", "pg-version", "seed", "java", "rate", "max_qps"):
        numbered = study_of("m", f"{{{name}}}", parameters=((name, "14,15"),))
        assert choose_work(numbered) is None, "a number, and no count"
    load = (("load", "1,2"),)
    assert choose_work(study_of("m", parameters=load, background=["{load}@nice=0"])) is None
    nice = ControlsTemplate(nice="{load}")
    assert choose_work(study_of("m", parameters=load, controls=nice)) is None, "a priority"
    cpus = ControlsTemplate(cpus="{load}")
    assert choose_work(study_of("m", parameters=load, controls=cpus)) == "load"
    clients = (("n", "1,2"), ("clients", "1,2"))
    assert choose_work(study_of("m", "{n}", "{clients}", parameters=clients)) == "clients"


def test_a_parameter_that_nothing_uses_is_refused() -> None:
    with pytest.raises(StudyError, match=r"-P threads: no .* uses \{threads\}") as refused:
        study_of("mine", parameters=(("threads", "1,2"),))
    assert "{threads} where its level belongs" in refused.value.remedy
    one = study_of("mine", parameters=(("threads", "1"),))
    assert unused_factors(one) == ["threads"], "a single level is a label"
    # The remedy for who compares a program with itself.
    assert "env AA={threads} ./mine" in refused.value.remedy
    aa = study_of("env", "AA={threads}", "./mine", parameters=(("threads", "1,2"),))
    assert unused_factors(aa) == []
    with pytest.raises(StudyError, match=r"no .* uses \{threads\}"):
        study_of("mine", "{{threads}}", parameters=(("threads", "1,2"),))


def test_the_level_of_a_process_that_runs_is_set_by_a_hook() -> None:
    attached = Beside(attach="4711")
    with pytest.raises(StudyError, match=r"-P pool: no .* uses \{pool\}") as refused:
        study_of("./load", parameters=(("pool", "1,2"),), beside=attached)
    assert refused.value.remedy.startswith("--prepare with a command that sets it in the process")
    hooks = Hooks(prepare="redis-cli config set io-threads {pool}")
    study = study_of("./load", parameters=(("pool", "1,2"),), beside=attached, hooks=hooks)
    assert unused_factors(study) == []
    with pytest.raises(StudyError) as without:
        study_of("./load", parameters=(("pool", "1,2"),))
    assert "--prepare" not in without.value.remedy


@pytest.mark.parametrize("name", ["gpu_seconds", "run_seconds", "wall_second"])
def test_a_primary_figure_may_be_one_that_the_program_reports(name: str) -> None:
    """It is not known before the first trial, however near to another name it is."""
    study = study_of("m", "{n}", parameters=(("n", "1,2"),), primary=f"{name}:lower")
    assert study.primary == name


@pytest.mark.parametrize(
    ("command", "primary"),
    [
        ("concurve load redis://h --sessions {n} --duration 1s", "rate_per_second"),
        ("/usr/bin/concurve load redis://h --sessions {n} --rate 50%", "rate_per_second"),
        ("env A=1 taskset -c 1 nice -n 5 concurve load redis://h {n}", "rate_per_second"),
        ("timeout 9 concurve-load redis://h --sessions {n}", "rate_per_second"),
        ("concurve load redis://h --sessions {n} --slo p99=2ms", "slo_rate_per_second"),
        ("concurve load redis://h --sessions {n} --slo=p99=2ms --rate 9", "wall_seconds"),
        ("concurve load sqlite:b.db --scale {n} --init-only", "wall_seconds"),
        ("concurve sweep {n} load", "wall_seconds"),
    ],
)
def test_a_load_of_ours_is_judged_by_its_rate(command: str, primary: str) -> None:
    """It runs for a fixed time, so its wall time compares nothing."""
    parameters = (("n", "1,2"),)
    study = study_of(*command.split(), parameters=parameters)
    assert study.primary == primary
    named = study_of(*command.split(), parameters=parameters, primary="cpu_seconds")
    assert named.primary == "cpu_seconds"
    tps = ("tps=([0-9.]+):1/s:higher",)
    found = study_of(*command.split(), parameters=parameters, extracts=tps)
    assert found.primary == "tps", "what is extracted is asked for"


@pytest.mark.parametrize(
    ("typed", "proposed"),
    [
        (r"Requests/sec: ([0-9.]+)", r"'requests_sec=Requests/sec: ([0-9.]+):higher'"),
        (r"([0-9.]+) req", r"'req=([0-9.]+) req:higher'"),
        (r"(\d+)", r"'rate=(\d+):higher'"),
        (r"(\d+) req/s:1/s:higher", r"'req=(\d+) req/s:1/s:higher'"),
        (r"took (\d+) ms:ms:lower", r"'took_ms=took (\d+) ms:ms:lower'"),
        ("tps", r"'tps=tps\D*([\d.]+):higher'"),
        ("pgbnch", "'pgbench'?"),
    ],
)
def test_what_was_typed_without_a_name_is_proposed_with_one(typed: str, proposed: str) -> None:
    with pytest.raises(StudyError) as refused:
        study_of("m", "{threads}", parameters=(("threads", "1,2"),), extracts=(typed,))
    assert proposed in refused.value.remedy
    if proposed.startswith("'") and proposed.endswith("'"):
        # And it works as it stands.
        own = (proposed.strip("'"),)
        study_of("m", "{threads}", parameters=(("threads", "1,2"),), extracts=own)


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"extracts": (r"(\d+)",)}, "neither NAME=REGEX nor a tool"),
    "no pattern": ({"extracts": ("rate=",)}, "not NAME=REGEX"),
    "no group": ({"extracts": ("rate=rate",)}, "has no group"),
    "bad regex": ({"extracts": ("rate=(",)}, "no regular expression"),
    "twice": ({"extracts": (r"a=(\d)", r"a=(\d)")}, "'a' is named twice"),
    "own name": (
        {"extracts": (r"wall_seconds=(\d)",)}, "a figure that is always measured"),
    "background count": ({"background": ("many",)}, "no number of competitors"),
    "background key": ({"background": ("2@color=red",)}, "'color=red' is no setting"),
    "background part": ({"background": ("2@nice=1,7",)}, "'7' is no setting"),
    "base": ({"base": "threads=9"}, "--base 'threads=9'"),
    "base form": ({"base": "threads"}, "--base 'threads'"),
    "work": ({"work": "clients"}, "work 'clients' is no factor"),
    "levels": ({"parameters": (("threads", "1,1"),)}, "-P threads: level 1 is repeated"),
    "empty": ({"parameters": (("threads", ""),)}, "-P threads: an empty level"),
    "named twice": (
        {"parameters": (("threads", "1"), ("threads", "2"))}, "-P threads is given more"),
    "not a name": ({"parameters": (("a b", "1"), ("threads", "1"))}, "'a b': not a name"),
    "built in": ({"parameters": (("effort", "1"), ("threads", "1"))}, "a built-in name"),
    "control": ({"controls": ControlsTemplate(nice="{nise}")}, "nice: placeholder {nise}"),
    "hook": ({"hooks": Hooks(check="test {x}")}, "--check: placeholder {x}"),
    "not UTF-8": ({"env": {"A": "\udcff"}}, "env A: '\\udcff' is not UTF-8"),
    "a level not UTF-8": (
        {"parameters": (("threads", "a,\udcff"),)}, "factor threads: '\\udcff' is not UTF-8"),
    "env": ({"env": {"A": "{x}"}}, "env A: placeholder {x}"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_names_the_option_and_the_remedy(name: str) -> None:
    options, says = REFUSALS[name]
    with pytest.raises(StudyError) as refused:
        study_of(**options)
    assert says in refused.value.what
    assert refused.value.remedy


def test_no_command_and_a_missing_parameter() -> None:
    for command in ([], [""]):
        with pytest.raises(StudyError, match="no command"):
            sweep_study(command, [], 2)
    with pytest.raises(StudyError, match=r"argument 2: placeholder \{threads\} has no parameter"):
        sweep_study(["mine", "{threads}"], [], 2)


def test_a_name_is_enough_as_the_base_of_the_only_factor() -> None:
    versions: dict[str, tuple[Level, ...]] = {"version": ("old", "new")}
    assert parse_base("old", versions) == {"version": "old"}
    assert parse_base("old", {**versions, "size": (8,)}) == {"version": "old"}
    for factors, meant in (
        ({**versions, "n": (1, 2)}, "--base version=old"),
        ({**versions, "other": ("old", "x")}, "--base version=old or --base other=old"),
    ):
        with pytest.raises(StudyError) as raised:
            parse_base("old", factors)
        assert raised.value.remedy == meant
    with pytest.raises(StudyError) as raised:
        parse_base("2", {"threads": (1, 2)})
    assert raised.value.remedy == "--base threads=2", "a number may be slipped from elsewhere"


def test_environment_base_and_repeats() -> None:
    assert parse_environment(["A=1", "B=x=y", "C="]) == {"A": "1", "B": "x=y", "C": ""}
    for text in ("A", "=1"):
        with pytest.raises(StudyError, match="--env"):
            parse_environment([text])
    assert parse_base("a=1,b=x", {"a": (1, 2), "b": ("x",)}) == {"a": 1, "b": "x"}
    assert parse_base(None, {}) == {}
    assert parse_base(r"tool=awk -F\, x,n=2", {"tool": ("awk -F, x", "cut"), "n": (2,)}) == {
        "tool": "awk -F, x",
        "n": 2,
    }
    assert parse_base({"python": 3.9}, {"python": ("3.9", "3.10")}) == {"python": "3.9"}
    assert (parse_repeats("5..30"), parse_repeats("10")) == ((5, 30), (10, 10))
    for text in ("0", "5..3", "five", "5...9", "-1"):
        with pytest.raises(StudyError, match=r"--repeats .*: not MIN\.\.MAX"):
            parse_repeats(text)


def test_rules_from_options() -> None:
    assert rules_from_options(None, None, None, None) == {}
    assert rules_from_options("3..4", "10%", "2s", "1m") == {
        "repeats_min": 3,
        "repeats_max": 4,
        "choosing_max": 0,
        "precision": 0.1,
        "timeout_seconds": 2.0,
        "time_allowed_seconds": 60.0,
    }


def test_a_server_beside_the_command_is_a_role() -> None:
    study = study_of(
        "./client", "{threads}",
        beside=Beside(server="./serve -p {free_port}", ready="tcp:{free_port}", ready_within="5s"),
    )  # fmt: skip
    server, client = study.roles
    assert (server.name, server.end, client.name) == ("server", "serve", study.target)
    assert server.command == ("./serve", "-p", "{free_port}")
    assert server.ready_probe == ReadyProbe(tcp="127.0.0.1:{free_port}")
    assert server.ready_seconds == 5.0
    assert purposes_of(study).subject == "server", "what is explained is the server"


def test_an_attached_or_remote_server_is_a_role() -> None:
    attached = study_of(beside=Beside(attach="4711")).roles[0]
    assert (attached.name, attached.attach, attached.command) == ("server", "4711", ())
    url = "redis://db1:6379"
    remote = study_of(beside=Beside(server=url, counters="command:./c -x")).roles[0]
    assert (remote.program, remote.command) == ("remote", (url, "--command", "./c", "-x"))
    assert study_of(beside=Beside()).target == "target"


@pytest.mark.parametrize(
    ("beside", "says"),
    [
        (Beside(server="./serve"), "when is it ready"),
        (Beside(server="'a", ready="launch"), "No closing quotation"),
        (Beside(server=" ", ready="launch"), "no command"),
        (Beside(server="./serve", ready="soon"), "does not say when"),
        (Beside(server="./serve", ready="launch", ready_within="5s"), "as soon as it runs"),
        (Beside(server="./serve", ready="tcp:1", ready_within="soon"), "--ready-within"),
        (Beside(server="./serve {bogus}", ready="launch"), "{bogus} has no parameter"),
        (Beside(server="./serve", ready="tcp:{bogus}"), "{bogus} has no parameter"),
        (Beside(server="./serve", ready="command:./up {bogus}"), "{bogus} has no parameter"),
        (Beside(server="./serve", ready="launch", counters="http://a/m"), "--counters beside"),
        (Beside(server="redis://a", ready="launch"), "--ready beside"),
        (Beside(server="redis://a", counters="ftp://a/m"), "no URL of HTTP"),
        (Beside(server="redis://a", counters="command:"), "no command"),
        (Beside(ready="launch"), "without --server"),
        (Beside(counters="http://a/m"), "without --server"),
        (Beside(attach="redis"), "names no process"),
        (Beside(attach="1", server="./serve"), "runs already"),
        (Beside(attach="1", ready="launch"), "runs already"),
    ],
)
def test_servers_that_make_no_sense(beside: Beside, says: str) -> None:
    with pytest.raises(StudyError) as raised:
        study_of(beside=beside)
    assert says in f"{raised.value.what} {raised.value.remedy}"
    assert raised.value.remedy


def test_an_address_within_a_command_is_that_of_no_server() -> None:
    command = "DATABASE_URL=postgres://h/db ./serve"
    assert not Beside(server=command).is_address
    role = study_of(beside=Beside(server=command, ready="tcp:8080")).roles[0]
    assert role.command == ("DATABASE_URL=postgres://h/db", "./serve")
    assert Beside(server="postgres://h/db").is_address and Beside(server="{url}://h").is_address


@pytest.mark.parametrize("where", ["env", "cpus"])
def test_what_varies_for_the_client_alone_is_refused_beside_a_server(where: str) -> None:
    """Who writes ``--server ./srv --env GOMAXPROCS={n}`` means the server."""
    given: dict[str, Any] = (
        {"env": {"GOMAXPROCS": "{n}"}}
        if where == "env"
        else {"controls": ControlsTemplate(cpus="{n}")}
    )

    def study(server: str) -> Study:
        beside = Beside(server=server, ready="tcp:1")
        return sweep_study(["client"], [("n", "1,2")], 2, beside=beside, **given)

    with pytest.raises(StudyError, match=r"varies \{n\} for the command after --") as raised:
        study("./srv")
    assert "env NAME={n}" in raised.value.remedy
    assert study("env N={n} ./srv").factors[0].name == "n"


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ("mode=fsat", "did you mean 'fast'?"),
        ("mood=fast", "did you mean 'mode'?"),
        ("threads=3", "mode is one of fast, slow; threads is one of 1, 2"),
        ("threads", "mode is one of fast, slow; threads is one of 1, 2"),
    ],
)
def test_a_base_that_is_none_has_what_may_be_meant(given: str, remedy: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse_base(given, {"mode": ("fast", "slow"), "threads": (1, 2)})
    assert refused.value.remedy == remedy


def test_a_packaged_program_that_is_none_has_the_one_that_may_be_meant() -> None:
    with pytest.raises(HostError) as refused:
        packaged.program("redis-servr", "role target")
    assert refused.value.remedy == "did you mean 'redis-server'?"


@pytest.mark.parametrize("text", ["1..2", "1..30"])
def test_one_trial_sets_no_number_of_trials(text: str) -> None:
    with pytest.raises(StudyError, match="one trial has none") as refused:
        parse_repeats(text)
    assert refused.value.remedy.startswith("2..")
    assert parse_repeats("1") == parse_repeats("1..1") == (1, 1)


@pytest.mark.parametrize(
    ("command", "primary", "meant"),
    [
        (("./mine", "{threads}"), "cpu", "did you mean 'cpu_seconds',"),
        (("./mine", "{threads}"), "rate", "did you mean 'rate_per_second' or 'rate_per_worker'?"),
        (("taskset", "1", "concurve", "load", "x"), "p99", "did you mean 'latency_ns_p99', "),
        (("./mine", "{threads}"), "p99", "--primary p99:higher, or --primary p99:lower"),
    ],
)
def test_a_primary_figure_that_is_none_has_those_that_may_be_meant(
    command: tuple[str, ...], primary: str, meant: str
) -> None:
    with pytest.raises(StudyError, match="whether higher or lower is better") as refused:
        sweep_study(command, [("threads", "1,2")], 2, primary=primary)
    assert refused.value.remedy.startswith(meant)
