"""Study files that extend others: what is taken over, what is taken by name, and each refusal."""

from __future__ import annotations

import copy
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concurve.definition.catalogue import campaigns, entries
from concurve.definition.study import Study
from concurve.definition.study_file import load_study, parse_study
from concurve.definition.templates import expand
from concurve.definition.toml_file import parse_toml
from concurve.errors import StudyError

SHARED = """
[study]
source = "a paper"

[with]
operation = "lock"
size = 3
fast = { threads = 2 }
files = ["--files", "{threads}"]

[test_case]
id = "1"
objective = "See."
steps = ["One.", "Two."]

[levels.effort]
quick = { times = ["1s"] }
normal = { times = ["2s"] }
rigorous = { times = ["3s"] }

[[roles]]
name = "load"
command = ["load", "{with.address}", "{with.files}", "{effort.times}", "--size={with.size}"]

[[roles]]
name = "target"
command = ["target", "{threads}"]

[protocol]
base = { threads = 1 }
timeout = "9s"

[effort.quick]
repeats = 2
time_allowed = "30s"

[[indicators]]
name = "speed"
better = "higher"
label = "{with.operation}s a minute"

[[claims]]
id = "faster"
says = "Two are faster than one ({with.address})."
kind = "ratio"
indicator = "speed"
of = { with = "fast" }
over = { with = "fast", threads = 1 }
at_least = 1.1
"""

STUDY = """extends = "../shared.toml"

[study]
name = "mine"
question = "How?"

[with]
address = "here:1"

[factors]
threads = [1, 2]

[levels]
use = ["effort"]

[[roles]]
use = ["load", "target"]

[effort.quick]
time_allowed = "40s"

[[indicators]]
use = ["speed", "cpu_seconds"]

[[claims]]
use = ["faster"]
"""

IN_FULL = """
[study]
name = "mine"
question = "How?"
source = "a paper"

[test_case]
id = "1"
objective = "See."
steps = ["One.", "Two."]

[factors]
threads = [1, 2]

[levels.effort]
quick = { times = ["1s"] }
normal = { times = ["2s"] }
rigorous = { times = ["3s"] }

[[roles]]
name = "load"
command = ["load", "here:1", "--files", "{threads}", "{effort.times}", "--size=3"]

[[roles]]
name = "target"
command = ["target", "{threads}"]

[protocol]
base = { threads = 1 }
timeout = "9s"

[effort.quick]
repeats = 2
time_allowed = "40s"

[[indicators]]
name = "speed"
better = "higher"
label = "locks a minute"

[[indicators]]
name = "cpu_seconds"
better = "lower"
unit = "s"

[[claims]]
id = "faster"
says = "Two are faster than one (here:1)."
kind = "ratio"
indicator = "speed"
of = { threads = 2 }
over = { threads = 1 }
at_least = 1.1
"""


def write(folder: Path, study: str = STUDY, **shared: str) -> Path:
    """A study in a folder beside ``shared.toml``, and beside others by name."""
    for name, text in {"shared": SHARED, **shared}.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    (folder / "mine").mkdir(exist_ok=True)
    (folder / "mine" / "study.toml").write_text(study, encoding="utf-8")
    return folder / "mine" / "study.toml"


def refusal(path: Path) -> StudyError:
    with pytest.raises(StudyError) as refused:
        load_study(path, 2)
    return refused.value


def test_a_study_that_extends_is_the_one_in_full(tmp_path: Path) -> None:
    assert load_study(write(tmp_path), 2) == parse_study(IN_FULL, 2, "full.toml")


def test_what_is_stored_needs_no_other_file(tmp_path: Path) -> None:
    study = load_study(write(tmp_path), 2)
    stored = msgspec.json.encode(study)
    (tmp_path / "shared.toml").unlink()
    assert msgspec.json.decode(stored, type=Study) == study
    assert b"with" not in stored and b"extends" not in stored


def test_own_entries_stand_between_those_that_are_used(tmp_path: Path) -> None:
    own = '[[roles]]\nname = "between"\ncommand = ["true"]\n'
    study = STUDY.replace(
        'use = ["load", "target"]', f'use = ["load"]\n{own}[[roles]]\nuse = ["target"]'
    )
    roles = load_study(write(tmp_path, study), 2).roles
    assert [role.name for role in roles] == ["load", "between", "target"]


def test_an_own_entry_replaces_a_shared_one_that_is_not_used(tmp_path: Path) -> None:
    own = '[[indicators]]\nname = "speed"\nbetter = "lower"\n'
    study = STUDY.replace('use = ["speed", "cpu_seconds"]\n', 'use = ["cpu_seconds"]\n' + own)
    indicators = load_study(write(tmp_path, study), 2).indicators
    assert [(item.name, item.better, item.label) for item in indicators] == [
        ("cpu_seconds", "lower", ""), ("speed", "lower", "")
    ]  # fmt: skip


def test_the_nearest_of_several_files_wins_and_own_factors_come_first(tmp_path: Path) -> None:
    nearer = (
        'extends = "shared.toml"\n[protocol]\ntimeout = "5s"\n[factors]\nother = [7]\n'
        'threads = [4]\n[with]\nsize = 8\n[[roles]]\nname = "target"\n'
        'command = ["nearer", "{threads}", "{other}"]\n'
    )
    study = load_study(write(tmp_path, STUDY.replace("shared", "nearer"), nearer=nearer), 2)
    assert [(factor.name, factor.levels) for factor in study.factors] == [
        ("threads", (1, 2)), ("other", (7,))
    ]  # fmt: skip
    assert study.efforts["normal"].rules.timeout_seconds == 5
    assert study.roles[0].command[-1] == "--size=8"
    assert study.roles[1].command[0] == "nearer"
    assert study.source == "a paper"


def test_a_word_that_is_a_whole_text_keeps_its_type(tmp_path: Path) -> None:
    study = IN_FULL.replace("at_least = 1.1", 'at_least = "{with.bound}"')
    study = "[with]\nbound = 1.5\nnone = []\n" + study.replace('"target",', '"{with.none}", "t",')
    found = parse_study(study, 2, "mine.toml")
    assert found.claims[0].test["at_least"] == 1.5
    assert found.roles[1].command == ("t", "{threads}")


def test_a_doubled_brace_is_literal(tmp_path: Path) -> None:
    study = parse_study(IN_FULL.replace('"target",', '"{{with.x}}",'), 2, "mine.toml")
    assert study.roles[1].command[0] == "{{with.x}}"


def test_a_factor_may_be_called_with_as_before() -> None:
    study = IN_FULL.replace("threads", "with").replace('"{with}"', '"{with.n}"')
    study += "[levels.with]\n1 = { n = 3 }\n2 = { n = 4 }\n"
    found = parse_study(study, 2, "mine.toml")
    assert found.roles[1].command == ("target", "{with.n}")
    assert found.claims[0].test["of"] == {"with": 2}
    with pytest.raises(StudyError, match="factor 'with' beside a table"):
        parse_study("[with]\nx = 1\n" + study, 2, "mine.toml")


REFUSED_STUDIES = {
    # what is changed: what the message names, what the remedy offers
    ('"../shared.toml"', "5"): ("study.toml: extends: no text", "../shared.toml"),
    ('"../shared.toml"', '"../share.toml"'): ("extends: there is no file", "folder of this file"),
    ('"../shared.toml"', '"study.toml"'): ("in turn extends this file", "remove extends"),
    ('"target"]', '"targt"]'): ("roles, use: 'targt' is not in", "'target'"),
    ('"effort"]', '"efort"]'): ("levels, use: 'efort' is not in", "'effort'"),
    ('["faster"]', '["slower"]'): ("claims, use: 'slower' is not in", "one of faster"),
    ('["faster"]', '["fastr"]'): ("claims, use: 'fastr' is not in", "'faster'"),
    ('"speed", ', '"sped", '): ("indicators, use: 'sped' is described neither", "'speed'"),
    ('"speed", ', '"zzzzz", '): ("indicators, use: 'zzzzz' is described neither", "of its own"),
    ('["faster"]', '"faster"'): ("claims: use: no list of names", "use ="),
    ('["faster"]', '["faster"]\nsays = "Other."'): ("claims: 'says' beside use", "[[claims]]"),
    ('["faster"]', '["faster", "faster"]'): ("claim 'faster' is named twice", "one name"),
    ('extends = "../shared.toml"', ""): ("'effort', but the study extends no file", "extends ="),
    ('use = ["effort"]', 'use = ["effort"]\n[levels.effort]\nquick = {}'): (
        "levels, use: 'effort' is also written here", "remove one"),
    ('address = "here:1"', ""): ("roles 'load': {with.address} has no value", "entry address"),
    ('address = "here:1"', 'adress = "here:1"'): (
        "roles 'load': {with.address} has no value", "'adress'"),
    ('address = "here:1"', 'address = "here:1"\nsiz = 4'): (
        "with, siz: nothing uses {with.siz}", "'size'"),
    ('address = "here:1"', 'address = ["a", "b"]'): (
        "claims 'faster': {with.address} is a list within a text", "argument of its own"),
    ('address = "here:1"', 'address = { threads = 1 }'): (
        "{with.address} is a table", "in the cell of a claim"),
    ('address = "here:1"', 'address = "{with.size}"'): ("with, address: {with.…} in it", "in full"),
    ('address = "here:1"', 'address = "here:1"\nfast = 5'): (
        "claims 'faster': with = 'fast' is no table of levels", "threads = 1"),
    ('[with]\naddress = "here:1"\n', ""): ("{with.address} has no value", "address"),
    ('address = "here:1"', 'address = "here:1"\nfast = { thread = 1 }'): (
        "claims 'faster': 'thread' is no factor", "'threads'"),
}  # fmt: skip


@pytest.mark.parametrize(
    "change", REFUSED_STUDIES, ids=[what for what, _ in REFUSED_STUDIES.values()]
)
def test_a_refusal_names_file_key_and_remedy(tmp_path: Path, change: tuple[str, str]) -> None:
    what, remedy = REFUSED_STUDIES[change]
    assert change[0] in STUDY
    path = write(tmp_path, STUDY.replace(*change))
    error = refusal(path)
    assert what in error.what
    assert str(path) in error.what
    assert remedy in error.remedy


REFUSED_SHARED = {
    ("[protocol]", "[protocl]"): ("unknown key 'protocl'", "'protocol'"),
    ("timeout =", "timeot ="): ("protocol: unknown key 'timeot'", "'timeout'"),
    ('timeout = "9s"', 'timeout = "soon"'): ("protocol: timeout: 'soon'", "200ms"),
    ("repeats = 2", "repeats = [2]"): ("effort.quick: repeats [2]", "[5, 30]"),
    ("timeout = ", "timeot = 3\ntimeout ="): ("protocol: unknown key 'timeot'", "'timeout'"),
    ("repeats = 2", "repets = 2"): ("effort, quick: unknown key 'repets'", "'repeats'"),
    ('"target", "{threads}"]', '"{thread}"]'): (
        "role target, argument 1: placeholder {thread} has no parameter", "{threads}"),
    ('command = ["target"', 'comand = ["target"'): (
        "roles 'target': unknown key 'comand'", "'command'"),
    ('command = ["target"', 'arguments = ["target"'): (
        "roles 'target': needs either program", "program"),
    ('kind = "ratio"', 'kind = "rato"'): ("claims 'faster': unknown kind 'rato'", "'ratio'"),
    ('kind = "ratio"\n', ""): ("claims 'faster': no kind", "id, says, kind"),
    ("at_least = 1.1", ""): ("claims 'faster': neither at_least nor at_most", "at_least"),
    ('better = "higher"', 'better = "high"'): ("indicators 'speed', better", "higher"),
    ('rigorous = { times = ["3s"] }', ""): (
        "levels.effort: 'rigorous' stands for nothing", "rigorous"),
    ("base = { threads = 1 }", "base = { threads = 3 }"): ("base threads=3", "1, 2"),
    ("base = { threads = 1 }", "base = { threads = 1 }\nwork = 'x'"): ("work 'x'", "threads"),
    ("base = { threads = 1 }", "base = { threads = 1 }\ntarget = 'x'"): ("role 'x'", "target"),
    ('id = "1"', 'id = ""'): ("test_case, id: empty", "words"),
}  # fmt: skip


@pytest.mark.parametrize(
    "change", REFUSED_SHARED, ids=[what for what, _ in REFUSED_SHARED.values()]
)
def test_what_is_wrong_in_a_shared_file_is_named_there(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    what, remedy = REFUSED_SHARED[change]
    assert change[0] in SHARED
    path = write(tmp_path, shared=SHARED.replace(*change))
    error = refusal(path)
    place = f"{tmp_path / 'shared.toml'} (extended by {path}): "
    assert error.what.startswith(place), error.what
    assert what in error.what
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        ("[oops", "not TOML", "line"),
        (
            SHARED + SHARED[SHARED.index("[[claims]]") :],
            "claims: 'faster' appears twice",
            "remove one",
        ),
        (SHARED.replace('id = "faster"', 'name = "faster"'), "claims: an entry without id", "id"),
        (SHARED + '[[claims]]\nuse = ["x"]\n', "claims: an entry without id", "in full"),
        (SHARED.replace("[levels.effort]", "[levels]\nuse = ['x']"), "levels: no levels", "full"),
        ('extends = "mine/study.toml"\n' + SHARED, "in turn extends this file", "remove extends"),
        ('extends = "shared.toml"\n' + SHARED, "in turn extends this file", "remove extends"),
        ('extends = "none.toml"\n' + SHARED, "extends: there is no file", "folder"),
    ],
)
def test_a_malformed_shared_file_is_refused(
    tmp_path: Path, text: str, what: str, remedy: str
) -> None:
    error = refusal(write(tmp_path, shared=text))
    assert error.what.startswith(f"{tmp_path / 'shared.toml'}: ")
    assert what in error.what
    assert remedy in error.remedy


def test_a_wrong_type_in_with_names_its_file_and_key(tmp_path: Path) -> None:
    path = write(tmp_path, shared=SHARED.replace("size = 3", "size = 3\nodd-one = [[1]]"))
    error = refusal(path)
    place = f"{tmp_path / 'shared.toml'} (extended by {path}): "
    assert error.what.startswith(f"{place}with, odd-one[0]: expected")
    assert "docs/studies.md" in error.remedy


#: What a table is replaced by in a study or a file that it extends: what the message names.
WRONG_TYPES = {
    "factors = 3": "factors: expected a table, got an integer",
    "factors = [1]": "factors: expected a table, got an array",
    'factors = "x"': "factors: expected a table, got a string",
    "factors = { threads = true }": "factors, threads: expected ",
    "factors = { threads = 2.5 }": "factors, threads: expected ",
    "factors = { threads = { a = 1 } }": "factors, threads: expected ",
    "roles = 3": "roles: expected an array, got an integer",
    "indicators = 3": "indicators: expected an array, got an integer",
    "claims = 3": "claims: expected an array, got an integer",
    "levels = 3": "levels: expected a table, got an integer",
    "levels = { threads = [3] }": "levels, threads: expected a table, got an array",
    "levels = { threads = { 1 = { n = true } } }": "levels, threads, 1, n: expected ",
    "protocol = 3": "protocol: expected a table, got an integer",
    "protocol = { base = { threads = true } }": "protocol, base, threads: expected ",
    "effort = 3": "effort: expected a table, got an integer",
    "effort = { quick = 3 }": "effort, quick: expected a table, got an integer",
    "hooks = { setup = 3 }": "hooks, setup: expected ",
    "test_case = 3": "test_case: expected a table",
    "with = 3": "with: expected a table, got an integer",
    "with = { a = true }": "with, a: expected ",
    "with = { a = [1] }": "with, a[0]: expected a string, got an integer",
    'with = { "A b" = 1 }': "with: 'A b' is no name",
}


@pytest.mark.parametrize("text", WRONG_TYPES)
@pytest.mark.parametrize("shared", [False, True])
def test_a_wrong_type_is_refused_where_it_stands_though_a_nearer_value_wins(
    tmp_path: Path, text: str, shared: bool
) -> None:
    table = text.partition(" ")[0]
    tables = parse_toml(SHARED if shared else STUDY, "")
    tables[table] = parse_toml(text, "")[table]
    path = write(tmp_path, **{"shared" if shared else "study": as_toml(tables)})
    error = refusal(path)
    place = f"{tmp_path / 'shared.toml'} (extended by {path})" if shared else str(path)
    assert error.what.startswith(f"{place}: {WRONG_TYPES[text]}")
    assert error.remedy


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("{with.address}", "{with.A b}"), "roles 'load': {with.A b}: 'A b' is no name"),
        (("{with.address}", "{with.}"), "roles 'load': {with.}: '' is no name"),
    ],
)
def test_a_placeholder_of_with_needs_a_name(
    tmp_path: Path, change: tuple[str, str], what: str
) -> None:
    error = refusal(write(tmp_path, shared=SHARED.replace(*change)))
    assert what in error.what
    assert "for the literal text" in error.remedy


def test_a_doubled_brace_is_literal_in_with_too(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, STUDY.replace('"here:1"', '"{{with.b}}"')), 2)
    assert study.roles[0].command[1] == "{{with.b}}"


@pytest.mark.parametrize("name", ["address", "A b", ""])
def test_a_doubled_brace_is_rendered_with_single_ones(tmp_path: Path, name: str) -> None:
    shared = SHARED.replace('"target", "{threads}"', f'"{{{{with.{name}}}}}", "{{threads}}"')
    command = load_study(write(tmp_path, shared=shared), 2).roles[1].command
    assert expand(command, {"threads": 1}) == [f"{{with.{name}}}", "1"]


def test_use_that_is_no_list_of_names_names_its_table(tmp_path: Path) -> None:
    error = refusal(write(tmp_path, STUDY.replace('use = ["effort"]', "use = [3]")))
    assert "study.toml: levels: use: no list of names" in error.what


@pytest.mark.parametrize("name", ["a" * 5000, "a/" * 3000, "", ".", "a\\u0000b"])
def test_a_path_that_cannot_be_a_file_is_refused(tmp_path: Path, name: str) -> None:
    error = refusal(write(tmp_path, STUDY.replace("../shared.toml", name)))
    assert error.what.startswith(f"{tmp_path / 'mine' / 'study.toml'}: extends: ")
    assert error.remedy


@pytest.mark.parametrize("text", ["a = " + "1" * 5000, "a = " + "[" * 5000 + "]" * 5000])
def test_what_python_cannot_parse_is_refused(tmp_path: Path, text: str) -> None:
    error = refusal(write(tmp_path, shared=text))
    assert error.what.startswith(f"{tmp_path / 'shared.toml'}: ")


@pytest.mark.parametrize("levels", [["mandelbrot"], "mandelbrot, zzz"])
def test_programs_that_are_levels_describe_indicators(levels: Any) -> None:
    tables = {
        "study": {"name": "mine", "question": "How?"},
        "factors": {"engine": levels},
        "roles": [{"name": "target", "program": "{engine}"}],
        "indicators": [{"use": ["threads_peak"]}],
    }
    assert parse_study(as_toml(tables), 2, "mine.toml").primary == "threads_peak"


def as_toml(tables: dict[str, Any]) -> str:
    """The tables as a TOML text."""

    def value(item: Any) -> str:
        if isinstance(item, dict):
            return f"{{ {', '.join(f'{json.dumps(k)} = {value(v)}' for k, v in item.items())} }}"
        if isinstance(item, list):
            return f"[{', '.join(map(value, item))}]"
        return str(item) if isinstance(item, float) else json.dumps(item)

    return "".join(f"{json.dumps(key)} = {value(item)}\n" for key, item in tables.items())


def paths(value: Any) -> Iterator[tuple[str | int, ...]]:
    """The path of every key and element within a value."""
    if isinstance(value, dict | list):
        for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield (key,)
            yield from ((key, *rest) for rest in paths(item))


#: A study with all that one may have, for what is replaced in it.
ALL: dict[str, Any] = {
    "shared": parse_toml(SHARED, "") | {"hooks": {"setup": "true"}, "factors": {"other": [1]}},
    "study": parse_toml(STUDY, "")
    | {
        "protocol": {
            "precision": 0.1,
            "optional": {"threads": [2]},
            "conditions": ["other"],
            "work": "threads",
        },
        "hooks": {"check": "true {with.address}"},
        "test_case": {"goal": "it"},
    },
}
PLACES = [(file, path) for file, tables in ALL.items() for path in paths(tables)]

TEXTS = st.sampled_from(
    ["", "x", "{threads}", "{with.size}", "{with.files}", "{with.fast}", "{with.}", "{{with.a}}",
     "{effort.times}", "1..3", "50%", "mandelbrot", "target", "effort", "../shared.toml"]
)  # fmt: skip
VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            TEXTS
            | st.sampled_from(["threads", "use", "name", "with", "quick", "factors", "program"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=5,
)


def test_the_study_for_any_value_loads(tmp_path: Path) -> None:
    texts = {name: as_toml(tables) for name, tables in ALL.items()}
    assert load_study(write(tmp_path, **texts), 2).work == "threads"


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=2))
def test_any_value_at_any_key_loads_or_is_refused(
    changes: list[tuple[tuple[str, tuple[str | int, ...]], Any]],
) -> None:
    files = copy.deepcopy(ALL)
    for (file, path), value in changes:
        table = files[file]
        try:
            for step in path[:-1]:
                table = table[step]
            table[path[-1]] = value
        except (TypeError, KeyError, IndexError):  # gone with the change before
            continue
    with tempfile.TemporaryDirectory() as folder:
        texts = {name: as_toml(tables) for name, tables in files.items()}
        try:
            study = load_study(write(Path(folder), **texts), 2)
        except StudyError as error:
            assert error.what.startswith(folder)
            assert error.remedy
        else:
            assert msgspec.json.decode(msgspec.json.encode(study), type=Study)


DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str) -> list[str]:
    """The TOML blocks of a page."""
    return re.findall(r"^```toml\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_documents_load(tmp_path: Path) -> None:
    shared, study = (b for b in blocks("studies.md") if b.startswith(("# shared", "# sqlite")))
    found = load_study(write(tmp_path, study, shared=shared), 2)
    assert found.roles[0].command[:3] == (
        "sqlite:{trial_folder}/data.db?journal={journal}", "--workload", "{workload}"
    )  # fmt: skip
    assert found.claims[0].test["of"] == {"journal": "wal", "workload": "read"}
    (packaged,) = blocks("howto/add-a-packaged-study.md")
    assert parse_study(packaged, 2, "study.toml").indicators[0].label == "locks per second"


def test_packaged_studies_use_all_that_they_share() -> None:
    for folder in [entry.folder for entry in (*campaigns(), *entries())]:
        files = [parse_toml(f.read_text(), str(f)) for f in folder.glob("**/study.toml")]
        for path in folder.glob("shared.toml"):
            shared = parse_toml(path.read_text(), str(path))
            for table in ("roles", "indicators", "claims", "levels"):
                entries_ = shared.get(table, [])
                names = {e.get("name", e.get("id")) if isinstance(e, dict) else e for e in entries_}
                used = set()
                for file in files:
                    lists = file.get(table, [])
                    for entry in [lists] if isinstance(lists, dict) else lists:
                        used |= set(entry.get("use", ()))
                assert names <= used, f"{path}: {table}"
