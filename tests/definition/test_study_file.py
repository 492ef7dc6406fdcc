"""Study files: the whole one, and each refusal with file, key and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from concurve.definition.catalogue import entries, find, find_study
from concurve.definition.study import (
    DEFAULT_RULES,
    Extract,
    Study,
    choose_work,
    unused_factors,
)
from concurve.definition.study_file import load_study, parse_study
from concurve.errors import StudyError
from concurve.planning.plan import make_plan

HEAD = '[study]\nname = "mine"\nquestion = "How?"\n'
FACTORS = "[factors]\nthreads = [1, 2]\n"
ROLE = '[[roles]]\nname = "target"\ncommand = ["./mine", "{threads}"]\n'
MINIMAL = HEAD + FACTORS + ROLE


def parse(text: str) -> Study:
    return parse_study(text, 4, "mine.toml")


def refusal(text: str) -> StudyError:
    with pytest.raises(StudyError) as refused:
        parse(text)
    return refused.value


def test_a_minimal_study_has_all_defaults() -> None:
    study = parse(MINIMAL)
    assert [(factor.name, factor.levels) for factor in study.factors] == [("threads", (1, 2))]
    assert study.primary == "wall_seconds"
    assert study.efforts["quick"].rules == DEFAULT_RULES["quick"]
    assert study.roles[0].end == "exit"


def test_a_full_study_reaches_every_field() -> None:
    study = parse(
        """
[study]
name = "full"
title = "All keys"
question = "How?"
source = "§1"
[factors]
threads = "1..8*2"
sync = ["none", "cas"]
share = ["50%", "100%"]
[[roles]]
name = "load"
command = ["./load", "{sync}"]
[[roles]]
name = "target"
after = ["load"]
program = "mandelbrot"
arguments = ["--threads", "{threads}"]
env = { N = "{share}" }
cwd = "/tmp"
controls = { cpus = 2, nice = "{share}", policy = "batch" }
end = "serve"
ready = "report"
[protocol]
work = "threads"
base = { threads = 2 }
target = "target"
repeats = [3, 9]
precision = 0.03
timeout = "2m"
[effort.quick]
repeats = 4
time_allowed = "30s"
factors = { sync = ["none"] }
[hooks]
setup = "echo {threads}"
check = "true"
[[indicators]]
name = "rate"
better = "higher"
unit = "1/s"
label = "total rate"
pattern = 'rate=(\\d+)'
[[claims]]
id = "c1"
says = "Twice."
kind = "speedup"
at_least = 1.9
of = { threads = 2 }
over = { threads = 1 }
"""
    )
    assert study.factors[0].levels == (1, 2, 4, 8)
    assert study.factors[2].levels == (2, 4)
    assert [factor.levels for factor in study.factors_at("quick")][1] == ("none",)
    assert [factor.levels for factor in study.factors_at("normal")][1] == ("none", "cas")
    quick, normal = study.efforts["quick"].rules, study.efforts["normal"].rules
    assert (quick.repeats_min, quick.repeats_max, quick.time_allowed_seconds) == (4, 4, 30)
    assert (normal.repeats_min, normal.repeats_max, normal.precision) == (3, 9, 0.03)
    assert normal.timeout_seconds == quick.timeout_seconds == 120
    target = study.roles[1]
    assert target.controls.texts() == {"cpus": "2", "nice": "{share}", "policy": "batch"}
    assert study.extracts == (Extract(name="rate", pattern=r"rate=(\d+)", unit="1/s"),)
    assert study.primary == "rate"
    assert study.claims[0].test == {
        "at_least": 1.9,
        "of": {"threads": 2},
        "over": {"threads": 1},
    }
    assert unused_factors(study) == []


REFUSALS = {
    # text: (what the message names, what the remedy offers)
    "not toml [": ("not TOML", "line"),
    MINIMAL.replace("name", "nmae", 1): ("study: unknown key 'nmae'", "did you mean 'name'?"),
    MINIMAL + "[protocl]\nx = 1\n": ("unknown key 'protocl'", "did you mean 'protocol'?"),
    MINIMAL + "comand = 1\n": ("roles 'target': unknown key 'comand'", "did you mean 'command'?"),
    MINIMAL + "zzzz = 1\n": ("roles 'target': unknown key 'zzzz'", "the keys are"),
    MINIMAL + "Command = 1\n": ("unknown key 'Command'", "did you mean 'command'?"),
    MINIMAL + "ready-within = 1\n": ("unknown key 'ready-within'", "did you mean 'ready_within'?"),
    MINIMAL + "timeout = 1\n": ("unknown key 'timeout'", "a key of protocol"),
    MINIMAL + "cpus = 1\n": ("roles 'target': unknown key 'cpus'", "a key of controls"),
    MINIMAL + "pid = 1\n": ("unknown key 'pid'", "attach ="),
    MINIMAL + "[[extract]]\nname = 'tps'\n": ("unknown key 'extract'", "[[indicators]]"),
    MINIMAL + "[parameters]\nn = [1]\n": ("unknown key 'parameters'", "[factors]"),
    MINIMAL + "[[indicators]]\nname = 'a'\nregex = 'x'\n": (
        "unknown key 'regex'", "did you mean 'pattern'?"),
    MINIMAL + "[[indicators]]\nname = 'a'\ndirection = 'x'\n": (
        "unknown key 'direction'", "better ="),
    MINIMAL + "controls = { cpu = 1 }\n": (
        "roles 'target', controls: unknown key 'cpu'", "did you mean 'cpus'?"),
    MINIMAL + "[hooks]\nprepair = 'x'\n": (
        "hooks: unknown key 'prepair'", "did you mean 'prepare'?"),
    MINIMAL + "[effort.quik]\n": ("effort: unknown key 'quik'", "did you mean 'quick'?"),
    MINIMAL + "[effort.quick]\nrepeat = 3\n": (
        "effort, quick: unknown key 'repeat'", "did you mean 'repeats'?"),
    MINIMAL + "[[indicators]]\nname = 'x'\nunits = 's'\n": (
        "indicators 'x': unknown key 'units'", "did you mean 'unit'?"),
    MINIMAL.replace('"How?"', "5"): ("study, question: expected a string, got an integer", ""),
    MINIMAL.replace("[1, 2]", "[1, true]"): ("factors", ""),
    MINIMAL.replace("[1, 2]", "{ a = 1 }"): ("factors", ""),
    MINIMAL.replace("[1, 2]", "5"): ("factors", ""),
    MINIMAL + "end = 'never'\n": (
        "roles 'target', end: invalid enum value 'never'", "one of exit, serve"),
    MINIMAL + "[[indicators]]\nname = 'x'\nbetter = 'low'\n": (
        "indicators 'x', better: invalid enum value 'low'", "one of lower, higher, neither"),
    MINIMAL.replace('name = "mine"', 'name = "my own"'): ("study 'my own': not a name", "letters"),
    MINIMAL + "[protocol]\nrepeats = 10000000\n": ("10000000 trials of a cell", "at most"),
    MINIMAL + "[protocol]\nprecision = 'high'\n": ("protocol, precision", ""),
    MINIMAL.replace('"./mine", "{threads}"', ""): ("role target has no command", "command"),
    MINIMAL.replace("[1, 2]", "[]"): ("factors, threads: no levels", "1,2,4,8"),
    MINIMAL.replace("[1, 2]", "[1, 2, 1]"): ("factors, threads: level 1 is repeated", "once"),
    MINIMAL.replace("[1, 2]", '"1,,2"'): ("factors, threads: an empty level", "commas: 1,2"),
    MINIMAL.replace("{threads}", "{thread}"): (
        "role target, argument 2: placeholder {thread} has no parameter",
        "did you mean {threads}?"),
    HEAD + "[factors]\n" + ROLE: ("no factors", "[factors]"),
    "roles = []\n" + HEAD + FACTORS: ("no roles", "[[roles]]"),
    HEAD + FACTORS: ("missing required field 'roles'", ""),
    MINIMAL + "program = 'mandelbrot'\n": (
        "roles 'target': needs either program or command", "program"),
    MINIMAL + "arguments = ['x']\n": ("roles 'target': arguments are for program", "command"),
    MINIMAL + "end = 'serve'\n": ("every role serves", 'end = "exit"'),
    MINIMAL + "after = ['server']\n": ("role target waits for 'server'", "one of target"),
    MINIMAL + "after = ['target']\n": (
        "role target waits for 'target', which is itself", "another role"),
    HEAD + FACTORS + ROLE.replace("target", "early") + "after = ['target']\n" + ROLE: (
        "role early waits for 'target', which is listed later", "before early"),
    HEAD + FACTORS + ROLE.replace("target", "server") + "end = 'serve'\n" + ROLE
    + "after = ['server']\n": (
        "role target waits for 'server', which serves and so does not exit", 'ready = "report"'),
    MINIMAL + ROLE: ("role 'target' is named twice", "one name for each"),
    MINIMAL.replace('"target"', '"the target"'): ("role 'the target': not a name", "letters"),
    MINIMAL + "[protocol]\ntarget = 'targt'\n": (
        "the study has no role 'targt' to measure", "did you mean 'target'?"),
    MINIMAL + "[protocol]\nwork = 'thread'\n": (
        "work 'thread' is no factor", "did you mean 'threads'?"),
    MINIMAL.replace("[1, 2]", "['a', 'b']") + "[protocol]\nwork = 'threads'\n": (
        "work 'threads' has levels that are no numbers", "counts"),
    MINIMAL + "[protocol]\nbase = { thread = 1 }\n": (
        "base 'thread' is no factor", "did you mean 'threads'?"),
    MINIMAL + "[protocol]\nbase = { threads = 3 }\n": (
        "base threads=3 is not among the levels", "one of 1, 2"),
    MINIMAL + "[protocol]\nconditions = ['thread']\n": (
        "conditions: 'thread' is no factor", "did you mean 'threads'?"),
    MINIMAL + "[protocol]\nconditions = ['threads']\n": (
        "conditions: 'threads' is the work factor", "another work factor"),
    MINIMAL + "[protocol]\nrepeats = [5]\n": ("protocol: repeats [5]", "[5, 30]"),
    MINIMAL + "[protocol]\nrepeats = [9, 3]\n": ("repeats 9..3", "5..30"),
    MINIMAL + "[protocol]\nrepeats = 0\n": ("repeats 0..0", "at least 1"),
    MINIMAL + "[protocol]\nprecision = 2.0\n": ("precision 2.0", "0.02"),
    MINIMAL + "[protocol]\ntimeout = 'soon'\n": ("protocol: timeout: 'soon'", "200ms"),
    MINIMAL + "[effort.quick]\ntime_allowed = '0s'\n": ("effort.quick: time_allowed", "30s"),
    MINIMAL + "[effort.quick]\nfactors = { thread = [1] }\n": (
        "effort quick: factor 'thread' is not in the study", "did you mean 'threads'?"),
    MINIMAL + "[effort.quick]\nfactors = { threads = [] }\n": (
        "effort.quick, factors, threads: no levels", "1,2,4,8"),
    MINIMAL.replace("threads = [1, 2]", "effort = [1, 2]").replace("{threads}", "{effort}"): (
        "factor 'effort' is a built-in name", "another name"),
    MINIMAL + "[[indicators]]\nname = 'x'\npattern = '(unclosed'\n": (
        "indicators x: '(unclosed' is no regular expression of RE2", "rate="),
    MINIMAL + "[[indicators]]\nname = 'x'\npattern = 'rate'\n": ("'rate' has no group", "(\\d+)"),
    MINIMAL + "[[claims]]\nid = 'c'\nkind = 'speedup'\n": ("claims 'c': no says", "says"),
    MINIMAL + "[hooks]\nsetup = 'echo {nowhere}'\n": (
        "hooks, setup: placeholder {nowhere} has no parameter", "nowhere"),
    MINIMAL + "[hooks]\nsetup = 5\n": ("hooks, setup: expected a string", ""),
    "hooks = 5\n" + MINIMAL: ("hooks: expected a table", ""),
    "study = 5\n" + FACTORS + ROLE: ("study: expected a table", ""),
    "roles = 5\n" + HEAD + FACTORS: ("roles: expected an array", ""),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSALS, ids=[what for what, _ in REFUSALS.values()])
def test_a_refusal_names_file_key_and_remedy(text: str) -> None:
    what, remedy = REFUSALS[text]
    error = refusal(text)
    assert error.what.startswith("mine.toml: ")
    assert what in error.what
    assert remedy in error.remedy
    assert error.remedy
    assert "\n" not in error.what


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(StudyError, match=str(path)):
            load_study(path, 2)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(StudyError, match=r"binary\.toml: cannot be read"):
        load_study(binary, 2)


def test_every_packaged_study_loads_and_uses_all_its_factors() -> None:
    assert entries()
    for entry in entries():
        study = find_study(entry.name, 2)
        assert study.name == entry.name
        assert unused_factors(study) == []


def test_an_unknown_study_gets_a_guess() -> None:
    with pytest.raises(StudyError) as refused:
        find_study("thread-scalling", 2)
    assert refused.value.remedy == "did you mean 'thread-scaling'?"
    with pytest.raises(StudyError, match=r"one of .*thread-scaling"):
        find_study("zzz", 2)


def test_a_figure_of_another_role_and_the_amount_of_work() -> None:
    text = MINIMAL + (
        "[[roles]]\nname = 'load'\ncommand = ['true']\n"
        "[[indicators]]\nname = 'load.tps'\npattern = 'tps=(\\d+)'\nbetter = 'higher'\n"
        "[protocol]\nwork_amount = 'scales'\n"
    )
    study = parse_study(text, 2, "s.toml")
    assert study.extracts == (Extract(name="load.tps", pattern=r"tps=(\d+)", role="load"),)
    assert (study.primary, study.work_amount) == ("load.tps", "scales")
    assert parse_study(MINIMAL, 2, "s.toml").work_amount == "", "the same work, as ever"
    for wrong, says in (
        (text.replace("name = 'load.tps'", "name = 'laod.tps'"), "laod.tps"),
        (text.replace("'scales'", "'grows'"), "work_amount"),
        (text.replace("command = ['true']\n[[ind", "command = ['true']\ncopies = 2\n[[ind"),
         "indicators load.tps: role load starts several copies"),
    ):  # fmt: skip
        with pytest.raises(StudyError) as refused:
            parse_study(wrong, 2, "s.toml")
        assert says in str(refused.value)


def test_a_file_that_is_misspelt_is_named_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "ngx-workers.toml").write_text(MINIMAL, encoding="utf-8")
    for wrong in ("ngx-workers.tml", "ngx-worker.toml", "ngx-workers.txt"):
        with pytest.raises(StudyError, match="no such file") as refused:
            find(str(tmp_path / wrong), 2)
        assert refused.value.remedy == f"did you mean '{tmp_path / 'ngx-workers.toml'}'?"
    with pytest.raises(StudyError, match="no such file") as refused:
        find("ngx-workers.tml", 2)
    assert "ends with .toml" in refused.value.remedy


def test_types_have_the_words_of_toml() -> None:
    text = MINIMAL + '[protocol]\nrepeats = "many"\n'
    with pytest.raises(StudyError) as refused:
        parse_study(text, 2, "study.toml")
    for word in ("'int", "'str'", "array'"):
        assert word not in refused.value.what
    assert "got a string" in refused.value.what


def test_a_factor_that_nothing_uses_is_refused() -> None:
    error = refusal(MINIMAL.replace("{threads}", "4"))
    assert "factor 'threads': no command" in error.what and "uses {threads}" in error.what
    assert parse(MINIMAL.replace("{threads}", "4").replace("[1, 2]", "[1]")).factors


def test_of_two_factors_that_seem_to_count_workers_none_is_taken_silently() -> None:
    role = ROLE.replace('"{threads}"', '"{threads}", "{clients}"')
    text = HEAD + FACTORS + "clients = [1, 8]\n" + role
    refused = refusal(text)
    assert refused.what == "mine.toml: which factor counts workers: threads or clients?"
    assert refused.remedy == 'work = "threads" in [protocol]; or work = "" if none of them does'
    for work in ("threads", "clients", ""):
        assert parse(f'{text}[protocol]\nwork = "{work}"\n').work == work
    words = text.replace("clients = [1, 8]", 'clients = ["few", "many"]')
    assert choose_work(parse(words)) == "threads"


VERSIONS = """
[study]
name = "versions"
question = "Which is faster?"
[factors]
python = {levels}
[[roles]]
name = "target"
command = ["python{{python}}"]
"""


def test_further_lists_of_a_factor_have_its_levels() -> None:
    """Whether 3.9 is a number depends on the other levels of its list; the program gets the same
    text in any case."""
    study = parse(
        VERSIONS.format(levels='["3.9", "3.10", "3.11"]')
        + '[protocol]\nbase = { python = 3.9 }\noptional = { python = ["3.11"] }\n'
        + '[effort.quick]\nfactors = { python = ["3.9", "3.11"] }\n'
    )
    assert study.factors_at("quick")[0].levels == ("3.9", "3.11")
    assert study.base == {"python": "3.9"} and study.optional == {"python": ("3.11",)}
    assert [cell.base for cell in make_plan(study, "quick", 1).cells] == [0, 0]


def test_a_base_is_a_level_of_the_factor_also_where_that_has_numbers() -> None:
    study = parse(
        VERSIONS.format(levels='["3.9", "3.11"]') + '[protocol]\nbase = { python = "3.11" }\n'
    )
    assert study.base == {"python": 3.11}
    assert [cell.base for cell in make_plan(study, "normal", 1).cells] == [1, 1]


def test_an_effort_may_have_texts_where_the_factor_has_numbers() -> None:
    study = parse(
        VERSIONS.format(levels='["3.9", "3.11"]')
        + '[protocol]\nbase = { python = "3.9" }\n'
        + '[effort.quick]\nfactors = { python = "3.9,3.10" }\n'
    )
    assert study.factors_at("quick")[0].levels == (3.9, "3.10")
    assert [cell.base for cell in make_plan(study, "quick", 1).cells] == [0, 0]
