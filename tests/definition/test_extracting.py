"""``--extract`` and ``--primary``: names, patterns, units, directions, and what is refused."""

from __future__ import annotations

import shlex

import pytest

from concurve.definition.extracting import (
    Extraction,
    extract_option,
    parse_extract,
    parse_named_direction,
    tool_of,
    tool_to_read,
    tools,
)
from concurve.definition.study import Extract, Indicator
from concurve.definition.study_line import split_work, sweep_study
from concurve.definition.units import in_base_unit, parse_duration
from concurve.errors import StudyError


def one(text: str) -> Extraction:
    (found,) = parse_extract(text)
    return found


@pytest.mark.parametrize(
    ("text", "pattern", "unit", "better"),
    [
        (r"x=(\d+)", r"(\d+)", "", "neither"),
        (r"x=(\d+) req/s:1/s", r"(\d+) req/s", "1/s", "neither"),
        (r"x=(\d+) req/s:1/s:higher", r"(\d+) req/s", "1/s", "higher"),
        (r"x=took (\d+) ms:ms:lower", r"took (\d+) ms", "ms", "lower"),
        (r"x=(\d+)::higher", r"(\d+)", "", "higher"),
        (r"x=(\d+):lower", r"(\d+)", "", "lower"),
        (r"x=(\d+):B:neither", r"(\d+)", "B", "neither"),
        (r"x=share (\d+):%:lower", r"share (\d+)", "%", "lower"),
        (r"x=(\d+) naps:1", r"(\d+) naps", "1", "neither"),
        # Colons of the pattern.
        (r"x=at: (\d+)", r"at: (\d+)", "", "neither"),
        (r"x=at: (\d+):s:lower", r"at: (\d+)", "s", "lower"),
        (r"x=y=(\d+)", r"y=(\d+)", "", "neither"),
        (r"x=(?:a|b): (\d+)", r"(?:a|b): (\d+)", "", "neither"),
        (r"x=(\d+):00", r"(\d+):00", "", "neither"),
        (r"x=(\d+):00:s:higher", r"(\d+):00", "s", "higher"),
        (r"x=(\d+) is\:higher", r"(\d+) is\:higher", "", "neither"),
        (r"x=(\d+) is\:s", r"(\d+) is\:s", "", "neither"),
        (r"x=(\d+)\\:s", r"(\d+)\\", "s", "neither"),
        (r"x=(\d+):", r"(\d+):", "", "neither"),
        (r"x=([[:digit:]]+)", r"([[:digit:]]+)", "", "neither"),
    ],
)
def test_unit_and_direction_are_split_off_the_end(
    text: str, pattern: str, unit: str, better: str
) -> None:
    found = one(text)
    assert (found.extract.pattern, found.extract.unit) == (pattern, unit)
    assert (found.indicator.unit, found.indicator.better) == (unit, better)


@pytest.mark.parametrize("unit", ["", "1/s", "µs", "%"])
@pytest.mark.parametrize("pattern", [r"(\d+)", r"at: (\d+)", r"it's (\d+)", r"(\d+):00"])
def test_the_option_that_is_advised_reads_what_it_says(pattern: str, unit: str) -> None:
    extract = Extract(name="x", pattern=pattern, unit=unit)
    option, value = shlex.split(extract_option(extract, "higher"))
    assert option == "--extract"
    assert one(value) == Extraction(extract, Indicator(name="x", unit=unit, better="higher"))


def test_figures_of_other_roles_are_named_after_them() -> None:
    found = one(r"load.tps=(\d+):1/s:higher")
    assert (found.extract.name, found.extract.role) == ("load.tps", "load")
    assert found.indicator.name == "load.tps"
    assert one(r"target.tps=(\d+)").extract == one(r"tps=(\d+)").extract
    first, *_ = parse_extract("load.pgbench")
    assert (first.extract.name, first.extract.role) == ("load.tps", "load")


@pytest.mark.parametrize(
    ("text", "says", "remedy"),
    [
        ("pgbnch", "a tool whose output is known", "did you mean 'pgbench'?"),
        ("psql", "a tool whose output is known", "pgbench"),
        (r"=(\d+)", "not NAME=REGEX", "--extract"),
        ("x=", "not NAME=REGEX", ":higher"),
        (r".x=(\d+)", "no role before the dot", "ROLE.NAME"),
        (r"cpu_seconds=(\d+)", "always measured", "printed_cpu_seconds"),
    ],
)
def test_what_is_no_extraction_is_refused(text: str, says: str, remedy: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse_extract(text)
    assert says in refused.value.what and remedy in refused.value.remedy


@pytest.mark.parametrize(
    ("pattern", "remedy"),
    [
        ("(?=x)(a)", "look-around"),
        (r"(a)\1", "references back"),
        ("(a){2000}", "1000 repetitions"),
        ("(a", "rate="),
    ],
)
def test_another_dialect_is_refused_with_what_re2_lacks(pattern: str, remedy: str) -> None:
    with pytest.raises(StudyError, match="no regular expression of RE2") as refused:
        sweep_study(["true"], [], 2, extracts=(f"x={pattern}",))
    assert refused.value.what.startswith("command line: --extract x: ")
    assert remedy in refused.value.remedy


def test_an_unknown_role_and_a_role_of_several_copies_are_refused() -> None:
    with pytest.raises(StudyError, match=r"--extract load\.x: no role 'load'") as refused:
        sweep_study(["true"], [], 2, extracts=(r"load.x=(\d)",), background=("1",))
    assert refused.value.remedy == "one of background, target"
    with pytest.raises(StudyError, match="background starts several copies"):
        sweep_study(["true"], [], 2, extracts=(r"background.x=(\d)",), background=("2",))


@pytest.mark.parametrize(
    ("tool", "command", "remedy"),
    [
        ("ab", ["wrk", "-c{n}", "http://h/"], "--extract wrk"),
        ("wrk", ["taskset", "-c", "1", "/usr/bin/ab", "-c{n}", "http://h/"], "--extract ab"),
        ("pgbench", ["docker", "exec", "db", "sysbench", "--threads={n}", "run"],
         "--extract sysbench or --extract sysbench-fileio"),
        ("hey or oha", ["k6", "run", "-u{n}", "x.js"], "--extract k6"),
        ("jmh", ["redis-benchmark", "-c", "{n}"], "--extract redis-benchmark"),
    ],
)  # fmt: skip
def test_the_figures_of_a_tool_that_the_command_does_not_run_are_refused(
    tool: str, command: list[str], remedy: str
) -> None:
    with pytest.raises(StudyError, match=f"is printed by {tool}, and the command st") as refused:
        sweep_study(command, [("n", "1,2")], 2, extracts=(tool.rsplit(maxsplit=1)[-1],))
    assert refused.value.remedy == remedy


@pytest.mark.parametrize(
    "command",
    [
        ["./run-wrk.sh", "{n}"],
        ["sh", "-c", "wrk -c{n} http://h/; ab -c{n} http://h/"],
        ["hyperfine", "--show-output", "ab -c {n} http://h/"],
        ["./bench", "{n}"],
        ["ab", "-c{n}", "http://h/"],
    ],
)
def test_what_a_script_or_an_unknown_program_prints_may_be_that_of_any_tool(
    command: list[str],
) -> None:
    sweep_study(command, [("n", "1,2")], 2, extracts=("ab",))


# -- the primary indicator ----------------------------------------------------------------------

TPS, LATENCY = r"tps=(\d+):1/s:higher", r"latency=lat (\d+):ms:lower"


def primary(*extracts: str, **more: object) -> str:
    return sweep_study(["true"], [], 2, extracts=extracts, **more).primary  # type: ignore[arg-type]


def test_the_primary_figure_is_the_one_that_compares_the_settings() -> None:
    assert primary() == "wall_seconds"
    assert primary(LATENCY, TPS) == "tps", "a throughput"
    assert primary(LATENCY) == "wall_seconds", "what a program takes for one operation"
    assert primary(r"tps=(\d+):1/s") == "wall_seconds", "its direction is not known"
    assert primary(r"rss=(\d+):MB:lower") == "wall_seconds"
    assert primary(r"operations=(\d+)") == "rate_per_second"
    assert primary("hyperfine") == "mean_seconds", "of a tool"
    assert primary(work_amount="scales") == "rate_per_second"
    for text, name in (
        ("latency", "latency"),
        ("wall_seconds", "wall_seconds"),
        ("cpu_seconds", "cpu_seconds"),
        ("requests:higher", "requests"),
    ):
        assert primary(LATENCY, TPS, primary=text) == name


def test_all_figures_stay_indicators_whichever_is_primary() -> None:
    study = sweep_study(["true"], [], 2, extracts=(TPS, LATENCY), primary="latency")
    assert [item.name for item in study.indicators] == ["latency", "wall_seconds", "tps"]
    turned = sweep_study(["true"], [], 2, extracts=(TPS,), primary="tps:lower")
    assert turned.indicators[0].better == "lower"


@pytest.mark.parametrize("name", ["tps", "threads_peak", "requests", "tps:neither"])
def test_a_primary_figure_without_a_direction_is_refused(name: str) -> None:
    with pytest.raises(StudyError, match=f"--primary '{name}': whether higher or lower") as refused:
        primary(r"tps=(\d+):1/s", primary=name)
    bare = name.partition(":")[0]
    assert f"--primary {bare}:higher" in refused.value.remedy


def test_a_name_with_a_direction() -> None:
    assert parse_named_direction("tps:higher") == ("tps", "higher")
    assert parse_named_direction("load.p99:lower") == ("load.p99", "lower")
    assert parse_named_direction("tps") == ("tps", "neither")
    assert parse_named_direction("a:b") == ("a:b", "neither")


def test_the_amount_of_work_and_its_parameter_are_told_apart() -> None:
    assert split_work((), ("n",)) == (None, None)
    assert split_work(("n",), ("n",)) == ("n", None)
    assert split_work(("scales", "n"), ("n",)) == ("n", "scales")
    assert split_work(("fixed",), ("n",)) == (None, "fixed")
    assert split_work(("scales",), ("scales",)) == ("scales", None), "a parameter of that name"
    for texts in (("n", "m"), ("scales", "fixed")):
        with pytest.raises(StudyError, match="only one of them"):
            split_work(texts, ("n", "m"))


def test_tools_say_what_they_read() -> None:
    assert "pgbench" in tools() and all(tools().values())


def test_a_pattern_is_named_as_it_was_typed() -> None:
    for pattern in (r"a\d+", r"(\d", r"(a)\1"):
        with pytest.raises(StudyError) as refused:
            sweep_study(["true"], [], 2, extracts=[f"x={pattern}"])
        assert pattern in refused.value.what


@pytest.mark.parametrize(
    ("end", "word"),
    [(":MB/s:more", "more"), ("::more", "more"), (":more", "more"), (":MB/s:highr", "highr"),
     (":1/s:desc", "desc"), (":lowr", "lowr")],
)  # fmt: skip
def test_a_word_that_is_no_direction_is_no_unit_either(end: str, word: str) -> None:
    with pytest.raises(StudyError, match=f"'{word}' is no direction: lower, higher, neither"):
        parse_extract(rf"thr=thr ([0-9.]+){end}")


@pytest.mark.parametrize(
    ("text", "base"),
    [
        (r"lat=latency ([0-9.]+)(?P<unit>ms|s):ms:lower", "s"),
        (r"bw=([0-9.]+)(?P<unit>[KMG]iB)/s:MiB/s:higher", "B/s"),
        (r"r=([0-9.]+)(?P<unit>k?) req/s:kreq/s:higher", "req/s"),
        (r"r=([0-9.]+) (?P<unit>ops/\w+):ops/ms:higher", "ops/s"),
        (r"n=([0-9.]+)(?P<unit>M):M", "1"),
        (r"bw=([0-9.]+) (?P<unit>[KMG]B/s):MB/s:higher", "B/s"),
        (r"r=([0-9.]+) (?P<unit>\S+):rows/min:higher", "rows/s"),
        (r"lat=([0-9.]+)(?P<unit>[mu]s)/request:ms/request", "s/request"),
        (r"bw=([0-9.]+) (?P<unit>[KMG]bits/sec):Mbit/s:higher", "bit/s"),
        (r"bw=([0-9.]+) (?P<unit>[KMG]Bytes/sec):MB/s:higher", "B/s"),
        (r"lat=([0-9.]+) (?P<unit>nsec|usec|msec|sec):ms:lower", "s"),
        (r"lat=([0-9.]+) (?P<unit>milliseconds|seconds):ms:lower", "s"),
        (r"r=([0-9.]+) (?P<unit>rows/minute):rows/min:higher", "rows/s"),
        (r"r=([0-9.]+) (?P<unit>[kM]?requests/s):kreq/s:higher", "req/s"),
    ],
)
def test_a_unit_that_the_group_for_it_contradicts_is_refused(text: str, base: str) -> None:
    unit = parse_extract(text)[0].extract.unit
    with pytest.raises(StudyError, match=f"converts the figure to {base}, .*says {unit}") as said:
        sweep_study(["true"], [], 2, extracts=(text,))
    assert said.value.remedy.startswith(f"{base} as its unit")
    with_base = text.replace(f":{unit}", f":{base}")
    without = text.replace("?P<unit>", "?:")
    assert sweep_study(["true"], [], 2, extracts=(with_base,)).extracts[0].unit == base
    assert sweep_study(["true"], [], 2, extracts=(without,)).extracts[0].unit == unit


@pytest.mark.parametrize(
    "text",
    [
        r"rate=x=([0-9.]+)(?P<unit>[kM]?) rows/min:rows/min:higher",
        r"rate=x=([0-9.]+)(?P<unit>[kM]?) ops/ms:ops/ms:higher",
        r"rate=x=([0-9.]+) ?(?P<unit>\w*) req/min:req/min:higher",
        r"lat=x=([0-9.]+)(?P<unit>k?)ms:ms:lower",
        r"rate=x=([0-9.]+) (?P<unit>[(]k[)]|\(|[^)]?) rows/h:rows/h:higher",
        r"bw=([0-9.]+) (?P<unit>[KMG]B/s):B/s:higher",
    ],
)
def test_a_group_that_cannot_be_the_time_of_a_unit_contradicts_none(text: str) -> None:
    assert sweep_study(["true"], [], 2, extracts=(text,)).extracts


@pytest.mark.parametrize("unit", ["rows/min", "rows/s"])
def test_a_group_around_the_time_of_a_rate_is_refused(unit: str) -> None:
    text = rf"rate=([0-9.]+) rows/(?P<unit>min|s):{unit}:higher"
    with pytest.raises(StudyError, match=f"holds a time, and its unit {unit} is a rate") as said:
        sweep_study(["true"], [], 2, extracts=(text,))
    assert "rows/s as its unit" in said.value.remedy
    around = r"rate=([0-9.]+) (?P<unit>rows/(?:min|s)):rows/s:higher"
    assert sweep_study(["true"], [], 2, extracts=(around,)).extracts


@pytest.mark.parametrize("tool", tools())
def test_the_units_of_tools_contradict_no_group(tool: str) -> None:
    assert sweep_study(["true"], [], 2, extracts=(tool,)).extracts


def test_a_unit_alone_is_no_figure() -> None:
    with pytest.raises(StudyError, match="no group for the figure"):
        sweep_study(["true"], [], 2, extracts=("x=took 5 (?P<unit>ms)",))


@pytest.mark.parametrize("text", ["tps:highest", "tps:", "tps:heigher"])
def test_a_primary_figure_with_a_word_that_is_no_direction(text: str) -> None:
    with pytest.raises(StudyError, match="is no direction: higher, lower") as refused:
        primary(TPS, primary=text)
    assert refused.value.remedy.startswith("--primary tps:higher where more")


@pytest.mark.parametrize("text", [r"t=took ([0-9]+):ms", r"a=a:b ([0-9]+):1/s", r"a=x:y (\d+)"])
def test_units_and_colons_of_patterns_stay(text: str) -> None:
    assert parse_extract(text)


@pytest.mark.parametrize(("named", "meant"), [("thr", "thrr"), ("trr:higher", "thrr")])
def test_a_misspelt_primary_figure_is_named_before_any_trial(named: str, meant: str) -> None:
    with pytest.raises(StudyError, match="no figure") as refused:
        primary(r"thrr=thr=(\d+):1/s:higher", r"size=(\d+):B", primary=named)
    assert refused.value.remedy.startswith(f"did you mean '{meant}'?")
    assert "size" in refused.value.remedy


def test_a_figure_near_to_one_that_is_measured_may_be_meant_as_that() -> None:
    with pytest.raises(StudyError, match="whether higher or lower is better") as refused:
        primary(r"size=(\d+):B", primary="wal_seconds")
    assert refused.value.remedy.startswith("did you mean 'wall_seconds'? Else --primary wal_sec")


def test_another_percentile_is_no_slip() -> None:
    assert primary(r"p99=p99=(\d+):ms:lower", primary="p95:lower") == "p95"


@pytest.mark.parametrize(
    ("command", "tool"),
    [
        (["wrk", "-c", "1"], "wrk"),
        (["/usr/bin/wrk2"], "wrk"),
        (["env", "A=1", "pgbench", "-T", "2"], "pgbench"),
        (["valkey-benchmark"], "redis-benchmark"),
        (["ab", "-n", "100", "http://127.0.0.1/"], "ab"),
        (["sh", "-c", "echo 'GET http://a/' | vegeta attack | /opt/vegeta report"], "vegeta"),
        (["bash", "-c", "cd /tmp && A=1 exec iperf3 -c localhost;"], "iperf3"),
        (["sh", "-c", "wrk -c 1 | tee out"], None),
        (["sh", "-c", "echo 'wrk"], None),
        (["sh", "./wrk"], None),
        (["env", "-u", "LANG", "-i", "A=1", "wrk"], "wrk"),
        (["env", "{name}={n}", "wrk"], "wrk"),
        (["taskset", "-c", "1", "wrk"], "wrk"),
        (["/usr/bin/taskset", "0x3", "wrk"], "wrk"),
        (["nice", "-n", "5", "wrk"], "wrk"),
        (["nice", "-5", "wrk"], "wrk"),
        (["nice", "wrk"], "wrk"),
        (["timeout", "9", "wrk"], "wrk"),
        (["timeout", "-sINT", "-k", "1", "9", "wrk"], "wrk"),
        (["numactl", "-N", "0", "--membind=0", "--", "wrk"], "wrk"),
        (["numactl", "--cpunodebind", "0", "-l", "wrk"], "wrk"),
        (["chrt", "-b", "0", "wrk"], "wrk"),
        (["stdbuf", "-oL", "-e", "0", "wrk"], "wrk"),
        (["ionice", "-c2", "-n", "0", "nice", "taskset", "1", "wrk"], "wrk"),
        (["setsid", "-w", "nohup", "wrk"], "wrk"),
        (["time", "-f", "%e", "wrk"], "wrk"),
        (["ip", "netns", "exec", "ours", "wrk"], "wrk"),
        (["perf", "stat", "-e", "cycles", "--", "wrk"], "wrk"),
        (["docker", "exec", "db", "pgbench"], "pgbench"),
        (["docker", "exec", "-it", "-e", "A=1", "wrk", "pgbench"], "pgbench"),
        (
            ["podman", "container", "exec", "-u", "postgres", "db", "bash", "-lc", "pgbench"],
            "pgbench",
        ),
        (["kubectl", "exec", "-it", "db-0", "-c", "main", "--", "pgbench"], "pgbench"),
        (["sudo", "-u", "postgres", "pgbench"], "pgbench"),
        (["sudo", "-nu", "postgres", "pgbench"], "pgbench"),
        (["sudo", "-upostgres", "PGPORT=1", "pgbench"], "pgbench"),
        (["su", "-", "postgres", "-c", "pgbench -T 2"], "pgbench"),
        (["runuser", "-u", "postgres", "--", "pgbench", "-c", "4"], "pgbench"),
        (["runuser", "-l", "postgres", "-c", "pgbench -T 2"], "pgbench"),
        (["ssh", "-p", "22", "me@db1", "pgbench", "-T", "2"], "pgbench"),
        (["ssh", "db1", "cd /tmp && taskset -c 1 pgbench -T 2"], "pgbench"),
        (["sh", "-c", "cd x && nice -n 5 wrk -c 1"], "wrk"),
        (["bash", "-euo", "pipefail", "-c", "(cd x; A=1 timeout 9 wrk)"], "wrk"),
        (["sh", "-c", "--", "wrk"], "wrk"),
        (["sh", "-c", "ssh db1 'sh -c \"wrk -c 1\"'"], "wrk"),
        (["taskset", "-c", "1", "./mine", "wrk"], None),
        (["docker", "exec", "wrk", "./mine"], None),
        (["sudo", "-u", "pgbench", "./mine"], None),
        (["ssh", "wrk", "./mine"], None),
        (["ssh", "wrk"], None),
        (["taskset", "-c", "1"], None),
        (["timeout"], None),
        (["sh", "-c"], None),
        (["./mine", "wrk"], None),
        (["perf", "record", "--call-graph", "dwarf", "wrk"], "wrk"),
        (["perf", "stat", "--timeout", "5", "-G", "ours", "wrk"], "wrk"),
        (["sysbench", "cpu", "--threads=4", "run"], "sysbench"),
        (["sysbench", "--threads", "4", "fileio", "run"], "sysbench-fileio"),
        (["sysbench", "--test=fileio", "run"], "sysbench-fileio"),
        (["sysbench", "threads", "run"], "sysbench"),
        (["sysbench", "--test=mutex", "run"], "sysbench"),
        ([], None),
    ],
)
def test_a_tool_is_known_by_its_program(command: list[str], tool: str | None) -> None:
    assert tool_of(command) == tool


@pytest.mark.parametrize(
    ("command", "tool"),
    [
        ("sysbench cpu run", "sysbench"),
        ("sysbench --test=fileio run", "sysbench-fileio"),
        ("sysbench threads run", None),
        ("taskset -c 1 sysbench --test=mutex run", None),
        ("wrk -c 1", "wrk"),
        ("./mine", None),
        ("", None),
    ],
)
def test_a_tool_is_suggested_where_all_its_versions_print_its_figures(
    command: str, tool: str | None
) -> None:
    assert tool_to_read(command.split()) == tool


def test_a_unit_may_be_long_and_one_with_blanks_is_refused() -> None:
    found = one("rate=rate: ([0-9.]+):operations/second:higher")
    assert (found.extract.pattern, found.extract.unit) == ("rate: ([0-9.]+)", "operations/second")
    with pytest.raises(StudyError, match="'frames per second' is no unit"):
        one("rate=rate: ([0-9.]+):frames per second:higher")
    text = one("rate=([0-9]+): fast:higher")
    assert text.extract.pattern == "([0-9]+): fast", "a blank begins no unit"


def test_the_greek_letter_is_the_micro_sign() -> None:
    assert in_base_unit("\u03bcs") == in_base_unit("\u00b5s") == 1e-6
    assert parse_duration("5\u03bcs", "here") == parse_duration("5us", "here")
    assert one("t=t: ([0-9.]+):\u03bcs:lower").extract.unit == "\u03bcs"
