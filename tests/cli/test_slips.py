"""Options of other tools in the place of ours: the refusal names what to type."""

from __future__ import annotations

import re
import subprocess

import click
import pytest

from concurve.cli import VERBS, _with_meant, app, repeated, slips
from concurve.cli.fit import verb as fit
from concurve.cli.run import verb as run
from concurve.cli.show import verb as show
from concurve.cli.sweep import verb as sweep
from concurve.errors import StudyError
from tests.helpers import real


def refused(*words: str) -> str:
    """What is said of the options of a sweep."""
    with pytest.raises(click.NoSuchOption) as error:
        sweep.make_context("sweep", [*words, "--", "true"])
    known = slips.as_meant(error.value)
    return known.format_message() if known else ""


def refused_words(*words: str) -> str:
    """What is said of words of a sweep that stand where others are expected."""
    arguments = list(words)
    context = sweep.make_context("sweep", arguments)
    with pytest.raises(StudyError) as error:
        slips.refuse_words(
            sweep, context.params["command"], context.params["parameters"], list(words)
        )
    return str(error.value)


def refused_before(*words: str) -> str:
    """What is said of words in the place of a verb."""
    with pytest.raises(click.UsageError) as error, app.make_context("concurve", list(words)) as ctx:
        app.invoke(ctx)
    known = slips.as_meant(error.value)
    return known.format_message() if known else ""


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        (("-p", "n", "1,2"), "-P NAME LEVELS"),
        (("--param", "n", "1,2"), "-P NAME LEVELS"),
        (("-L", "n", "1,2"), "-P NAME LEVELS"),
        (("-t4",), "-P threads 1,2,4 -- COMMAND {threads}"),
        (("--threads=4",), "behind --"),
        (("-n", "5"), "--repeats 10 for ten"),
        (("--runs", "5"), "--repeats 5..20"),
        (("-w", "1"), "--prepare CMD"),
        (("--warmup", "1"), "--prepare CMD"),
        (("--time", "5s"), "--max-time 5m"),
        (("-o", "f"), "--export-json"),
    ],
)
def test_a_slip_names_what_is_meant(words: tuple[str, ...], typed: str) -> None:
    said = refused(*words)
    assert typed in said and "No such option" in said
    assert len(said.split()) <= 40


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        ("threads 1.. -- ./mine {threads}", "-P threads 1.. -- ./mine {threads};"),
        ("threads=1,2 -- ./mine {threads}", "-P threads 1,2 -- ./mine {threads};"),
        ("threads 4 -- ./mine {threads}", "-P threads 4 -- ./mine {threads};"),
        ("n 1,2 mode a,b -- ./mine {n}", "-P n 1,2 -P mode a,b -- ./mine {n};"),
        ("-P n 1,2 mode a,b -- ./mine {n}", "-P n 1,2 -P mode a,b -- ./mine {n};"),
        ("n 1,2 ./mine {n}", "-P n 1,2 -- ./mine {n};"),
        ("./mine {n} -P n 1,2 --dry-run", "concurve sweep -P n 1,2 --dry-run -- ./mine {n}"),
        ("-P n 1 2 4 -- ./mine {n}", "-P n 1,2,4;"),
        ("-P -- ./mine {n}", "-P: -- stands where the name"),
        ("-P {n} 1,2 -- ./mine {n}", "-P n 1,2"),
        ("-P <n> 1,2 -- ./mine {n}", "-P n 1,2"),
    ],
)
def test_words_that_stand_elsewhere_name_what_to_type(words: str, typed: str) -> None:
    said = refused_words(*words.split())
    assert typed in said
    assert len(said.split()) <= 40


@pytest.mark.parametrize(
    "words",
    [
        "-P n 1,2 -- ./mine {n}",
        "-P n 1,2 ./mine {n}",
        "-P n 1,2 xargs -P {n} echo",
        "-P n 1,2 -- n 1,2 -- {n}",
        "sleep 1",
        "sleep 0,1",
        "env A=1,2 ./mine",
    ],
)
def test_words_of_a_command_are_no_slip(words: str) -> None:
    given = words.split()
    context = sweep.make_context("sweep", list(given))
    slips.refuse_words(sweep, context.params["command"], context.params["parameters"], given)


def test_a_sweep_without_a_command_or_levels_names_both() -> None:
    for words in (["-P", "n", "1,2"], ["-P", "n", "1,2", "--"], []):
        with pytest.raises(click.MissingParameter) as missing:
            sweep.make_context("sweep", words)
        known = slips.as_meant(missing.value)
        assert known is not None and "-- ./mine --threads {threads}" in known.format_message()
    with pytest.raises(click.BadOptionUsage) as short:
        sweep.make_context("sweep", ["-P", "n"])
    known = slips.as_meant(short.value)
    assert known is not None and "-P NAME LEVELS" in known.format_message()


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        (("-P", "n", "1,2", "--", "true"), "concurve sweep -P"),
        (("--effort", "quick", "sweep"), "concurve sweep --effort"),
        (("-V",), "concurve --version"),
        (("help",), "concurve --help"),
        (("list",), "concurve runs"),
        (("sh", "-c", "true"), "concurve sweep -- sh"),
        (("swep",), ""),
        (("no-such-verb",), ""),
    ],
)
def test_what_is_no_verb_names_what_is_meant(words: tuple[str, ...], typed: str) -> None:
    said = refused_before(*words)
    assert (typed in said) if typed else not said


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("-c", "50"), "--sessions"),
        (("-c50",), "--sessions"),
        (("--connections=50",), "--sessions"),
        (("-n", "1000"), "--transactions"),
        (("-d", "10s"), "--duration"),
        (("--rps", "100"), "--rate"),
    ],
)
def test_options_of_other_loads_name_ours(words: tuple[str, ...], meant: str) -> None:
    with pytest.raises(StudyError, match=f"(?s)no option .*{meant} in its place"):
        slips.refuse_of_load(("redis://127.0.0.1:6379", *words))


@pytest.mark.real
def test_no_option_that_the_help_of_the_load_names_is_refused() -> None:
    """Aliases too: ``[alias: --clients]`` of --sessions."""
    asked = (real.program("concurve-load"), "--help")
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    named = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", done.stdout))
    assert {"--sessions", "--clients", "--rate", "-h"} <= named
    slips.refuse_of_load(("redis://h:1", *sorted(named)))


def test_what_the_load_generator_takes_is_no_slip() -> None:
    given = "redis://h:1 --sessions 5 --duration 1s --rate 50% --command=GET --json -V --seed 1"
    slips.refuse_of_load(given.split())


@pytest.mark.parametrize(
    ("verb", "typed", "near"),
    [
        (fit, "-x", "Did you mean --x?"),
        (show, "-f", "Did you mean --figures?"),
        (show, "-m", "Did you mean --models or --machine?"),
        (show, "-z", ""),
        (show, "--figure", ""),
        (sweep, "-e", "--extract"),
    ],
)
def test_a_letter_names_the_options_that_begin_with_it(
    verb: click.Command, typed: str, near: str
) -> None:
    with pytest.raises(click.NoSuchOption) as error:
        verb.make_context(str(verb.name), [typed, "1"])
    known = slips.as_meant(error.value)
    assert (near in known.format_message()) if known else not near


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("-P", "--set threads=1,2,4"),
        ("--param", "--set threads=1,2,4"),
        ("-n", "--repeats 10"),
        ("-o", "--export-json"),
        ("-t", "--target"),
    ],
)
def test_a_run_of_a_study_has_options_of_its_own(typed: str, meant: str) -> None:
    with pytest.raises(click.NoSuchOption) as error:
        run.make_context("run", ["thread-scaling", typed, "1"])
    known = slips.as_meant(error.value)
    assert known is not None and meant in known.format_message()
    assert not {option for item in run.params for option in item.opts} & set(
        slips._BY_OPTION_OF_RUN
    )


def test_no_verb_is_taken_for_a_slip() -> None:
    assert not set(VERBS) & set(slips._BY_VERB)


def test_what_is_no_known_slip_stays_as_it_is() -> None:
    assert refused("--condtion", "n") == ""


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("--thread", "1,2"), "-P thread 1,2 -- COMMAND {thread}"),
        (("--thread=1,2",), "-P thread 1,2 -- COMMAND {thread}"),
        (("--buffer-size", "1..16*2"), "-P buffer-size 1..16*2 -- COMMAND {buffer-size}"),
        (("--sort-by", "merge,quick"), "-P sort-by merge,quick --"),
        (("--cpu", "1,2"), ""),  # a slip of a letter
        (("--repeets", "5..20"), ""),
        (("--thread", "fast"), ""),
        (("--thread", "4"), ""),
        (("--thread",), ""),
    ],
)
def test_an_option_of_the_program_with_levels_is_a_parameter(
    words: tuple[str, ...], meant: str
) -> None:
    said = refused(*words)
    assert meant in said if meant else not said


def test_no_option_of_a_sweep_is_taken_for_a_slip() -> None:
    own = {option for parameter in sweep.params for option in parameter.opts}
    assert not own & set(slips._BY_OPTION)


def test_other_verbs_have_other_options() -> None:
    context = click.Context(click.Command("show"), info_name="show")
    assert slips.as_meant(click.NoSuchOption("-n", ctx=context)) is None


@pytest.mark.parametrize(
    ("words", "said", "remedy"),
    [
        (
            ("--attach", "--extract", "pgbench", "--", "pgbench"),
            "--attach took '--extract' as its value",
            "--extract pgbench",
        ),
        (("--attach", "--effort=quick", "--", "x"), "took '--effort=quick'", "--effort=quick"),
        (("--name", "-P", "n", "1,2", "--", "x"), "--name took '-P' as its value", "-P n"),
        (("--extract", "--", "x"), "--extract took '--' as its value", "-- x"),
    ],
)
def test_an_option_in_the_place_of_a_value_is_refused(
    words: tuple[str, ...], said: str, remedy: str
) -> None:
    with pytest.raises(StudyError) as error, app.make_context("concurve", ["sweep", *words]) as ctx:
        app.invoke(ctx)
    assert said in error.value.what
    name = words[0]
    assert re.fullmatch(rf"{name} \S+ {re.escape(remedy)}", error.value.remedy or "")


def test_an_option_behind_the_command_is_a_value_of_that() -> None:
    context = click.Context(app, info_name="concurve")
    repeated.refuse_repeated(context, sweep, ["--name", "a", "--", "./x", "--attach", "--extract"])


@pytest.mark.parametrize(
    ("word", "meant"),
    [("fast", "quick"), ("quik", "quick"), ("default", "normal"), ("slow", "rigorous"), ("7", "")],
)
def test_a_word_that_is_none_of_a_choice_is_asked_after(word: str, meant: str) -> None:
    with pytest.raises(click.BadParameter) as error:
        sweep.make_context("sweep", ["--effort", word, "--", "true"])
    known = slips.as_meant(error.value)
    said = known.format_message() if known else ""
    assert (f"did you mean '{meant}'?" in said) if meant else not said
    assert not meant or f"'{word}' is not one of" in said


def test_a_name_behind_the_list_of_studies_names_what_shows_one() -> None:
    assert "concurve run java-threads --dry-run" in refused_before("studies", "java-threads")


def test_the_help_is_no_slip_for_an_option_that_there_is_not() -> None:
    for option, said in (("--cell", ""), ("--hepl", "--help")):
        with pytest.raises(click.NoSuchOption) as error:
            app.main(["explain", "last", option], standalone_mode=False)
        assert ("--help" in _with_meant(error.value).format_message()) is bool(said)
