"""What levels stand for: parts in every text of a role, and each refusal with its remedy."""

from __future__ import annotations

import pytest

from concurve.definition.study import unused_factors
from concurve.definition.study_file import parse_study
from concurve.errors import StudyError
from concurve.planning.plan import make_plan, trial_spec
from concurve.wire.spec import RoleSpec

STUDY = """
[study]
name = "classes"
question = "What does a class give?"

[factors]
kernel = ["jvm", "native"]
class = ["low", "high", "none"]

[levels.kernel]
jvm = { program = "targets", options = ["--kind", "{class}"] }
native = { program = "mandelbrot", options = [] }

[levels.class]
low = { nice = 10, prefix = ["nice", "-n", "1"] }
high = { nice = -5, prefix = [] }
none = { nice = "", prefix = [] }

[levels.effort]
quick = { width = 10 }
normal = { width = 100 }
rigorous = { width = 1000 }

[[roles]]
name = "target"
program = "{kernel.program}"
prefix = ["{class.prefix}"]
arguments = ["{kernel.options}", "--width", "{effort.width}"]
controls = { nice = "{class.nice}" }
"""


def role_of(kernel: str, class_: str, effort: str = "quick") -> RoleSpec:
    plan = make_plan(parse_study(STUDY, 2, "here"), effort, 1)
    (cell,) = [c for c in plan.cells if c.parameters == {"kernel": kernel, "class": class_}]
    return trial_spec(plan, cell, "t", (0, 1), lambda name, *_: [f"/bin/{name}"]).roles[0]


def refusal(study: str, before: str, after: str) -> StudyError:
    """What is said of a study with this change."""
    assert study.count(before) == 1
    with pytest.raises(StudyError) as refused:
        parse_study(study.replace(before, after), 2, "here")
    return refused.value


def test_parts_fill_programs_arguments_prefixes_and_controls() -> None:
    low = role_of("jvm", "low")
    assert low.argv == (
        "nice", "-n", "1", "/bin/targets", "--kind", "low", "--width", "10",
    )  # fmt: skip
    assert low.controls.nice == 10
    assert role_of("jvm", "none").controls.nice is None, "an empty control is left out"
    high = role_of("native", "high", "rigorous")
    assert high.argv == ("/bin/mandelbrot", "--width", "1000")
    assert high.controls.nice == -5


NESTED = STUDY.replace(
    'nice = 10, prefix = ["nice", "-n", "1"]', 'nice = "{kernel.nice}", prefix = []'
)
NESTED = NESTED.replace('"{class}"] }', '"{class}"], nice = 7 }').replace(
    "options = [] }", "options = [], nice = 3 }"
)


def test_a_part_may_be_a_part_of_another_factor() -> None:
    study = parse_study(NESTED, 2, "here")
    found = {
        (str(cell.parameters["kernel"]), str(cell.parameters["class"])): trial_spec(
            plan, cell, "t", (0, 1), lambda name, *_: [f"/bin/{name}"]
        )
        .roles[0]
        .controls.nice
        for plan in [make_plan(study, "quick", 1)]
        for cell in plan.cells
    }
    assert found == {
        ("jvm", "low"): 7, ("native", "low"): 3,
        ("jvm", "high"): -5, ("native", "high"): -5,
        ("jvm", "none"): None, ("native", "none"): None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "what", "remedy"),
    [
        (
            "nice = 7",
            'nice = "{class.nice}"',
            "{class.nice} is made of {kernel.nice}",
            "in its place",
        ),
        ("{kernel.nice}", "{class.nice}", "{class.nice} is made of {class.nice}", "in its place"),
        ("{kernel.nice}", "{kernel.options}", "is a list", "a text instead"),
        ("{kernel.nice}", "{kernel.price}", "placeholder {kernel.price}", "{kernel.nice}"),
    ],
)
def test_a_part_that_cannot_be_filled_is_refused(
    before: str, after: str, what: str, remedy: str
) -> None:
    refused = refusal(NESTED, before, after)
    assert what in refused.what and refused.what.startswith("here: levels.")
    assert remedy in refused.remedy


def test_a_factor_of_which_only_parts_are_used_is_used() -> None:
    assert unused_factors(parse_study(STUDY, 2, "here")) == []


@pytest.mark.parametrize(
    ("before", "after", "what", "remedy"),
    [
        ("[levels.kernel]", "[levels.kernal]", "levels.kernal is no factor", "'kernel'"),
        ("low = { nice", "slow = { nice", "'slow' is no level", "'low'"),
        ("low = { nice = 10, prefix", "low = { prefix", "'low' has no 'nice'", "for every level"),
        ("native = { program", "native-2 = { program", "'native-2' is no level", "'native'"),
        ("high = { nice = -5, prefix = [] }", "", "'high' stands for nothing", "an entry"),
        ("{effort.width}", "{effort.with}", "placeholder {effort.with}", "{effort.width}"),
        ('"{class.prefix}"', '"x{class.prefix}"', "is a list", "argument of its own"),
        ('nice = "{class.nice}"', 'nice = "{class.prefix}"', "is a list", "a text instead"),
        ('"--kind", "{class}"', '"--kind", "{clas}"', "placeholder {clas}", "{class}"),
    ],
)
def test_refusals_name_the_place_and_the_remedy(
    before: str, after: str, what: str, remedy: str
) -> None:
    refused = refusal(STUDY, before, after)
    assert what in refused.what and refused.what.startswith("here: ")
    assert remedy in refused.remedy
