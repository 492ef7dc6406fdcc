"""The packaged studies and campaigns."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from concurve import words
from concurve.definition.study_files import CAMPAIGN_NAME, STUDY_NAME
from concurve.errors import StudyError
from concurve.words import did_you_mean, meant, nearest, one_of

if TYPE_CHECKING:
    from concurve.definition.campaign import Campaign
    from concurve.definition.study import Study


#: The first part of ``java-thread/tc09`` is a slip for a campaign, and that of a path is none.
_NEAR_CAMPAIGN = 0.8


class Entry(NamedTuple):
    """A packaged study or campaign and its folder."""

    name: str
    folder: Path


def entries() -> list[Entry]:
    """All packaged studies, by name."""
    return _holding(STUDY_NAME)


def campaigns() -> list[Entry]:
    """All packaged campaigns, by name."""
    return _holding(CAMPAIGN_NAME)


def packaged_name(study: Study) -> str:
    """The name by which a packaged study is found; empty if it is none, or one whose roles were
    edited since it was copied."""
    names = [entry.name for entry in entries() if entry.name == study.name]
    for campaign in campaigns():
        member = study.name.removeprefix(f"{campaign.name}-")
        if member != study.name and (campaign.folder / member / STUDY_NAME).is_file():
            names.append(f"{campaign.name}/{member}")
    return next((name for name in names if find_study(name, 1).roles == study.roles), "")


def find(name: str, cpus: int) -> Study | Campaign:
    """A packaged study or campaign by name, one from a ``.toml`` file, or a campaign's study as
    ``CAMPAIGN/STUDY``.

    Raises:
        StudyError: no such one, or one that cannot be run.
    """
    # A list of what is packaged does without what checks a study: half of its time.
    from concurve.definition.campaign_file import load_campaign, load_member
    from concurve.definition.study_file import load_study

    if name.endswith(".toml"):
        path = Path(name)
        if not path.exists():
            raise StudyError(f"{name}: no such file", _near_file(path))
        return (load_campaign if path.name == CAMPAIGN_NAME else load_study)(path, cpus)
    packaged = {entry.name: entry.folder for entry in campaigns()}
    if name in packaged:
        return load_campaign(packaged[name] / CAMPAIGN_NAME, cpus)
    campaign, _, member = name.partition("/")
    if campaign in packaged:
        return load_member(packaged[campaign] / CAMPAIGN_NAME, member, cpus)
    return load_study(_study_file(name, list(packaged)), cpus)


def find_study(name: str, cpus: int) -> Study:
    """As :func:`find`, of a study.

    Raises:
        StudyError: no such study, or a campaign, or one that cannot be run.
    """
    from concurve.definition.campaign import Campaign

    found = find(name, cpus)
    if isinstance(found, Campaign):
        raise StudyError(
            f"{name!r} is a campaign of {words.count(len(found.studies), 'study')}",
            f"one of them, such as {found.name}/{found.studies[0].name}",
        )
    return found


def _holding(file: str) -> list[Entry]:
    root = Path(str(resources.files("concurve") / "studies"))
    return [
        Entry(folder.name, folder) for folder in sorted(root.iterdir()) if (folder / file).is_file()
    ]


def _near_file(path: Path) -> str:
    """A remedy for a path that is no TOML file: the nearest one of its folder."""
    try:
        files = sorted(file.name for file in path.parent.glob("*.toml"))
    except OSError:
        files = []
    near = nearest(path.name, files, 0.7)
    if near is not None:
        return did_you_mean(str(path.with_name(near)))
    return "a file whose name ends with .toml, or a packaged study: concurve studies lists them"


def _study_file(name: str, others: list[str]) -> Path:
    path = Path(name)
    if "/" in name and path.exists():
        return path  # also a pipe, as /dev/stdin is
    known = {entry.name: entry.folder for entry in entries()}
    if name in known:
        return known[name] / STUDY_NAME
    # A dot, or a slash, says that a file is meant: no packaged study has one in its name.
    if "/" in name or path.suffix or path.is_file():
        there = "is no .toml file" if path.is_file() else "no such file"
        campaign, _, member = name.partition("/")
        near = None if path.suffix else nearest(campaign, others, _NEAR_CAMPAIGN)
        remedy = did_you_mean(f"{near}/{member}") if near and member else _near_file(path)
        raise StudyError(f"{name}: {there}", remedy)
    names = [*known, *others]
    if name == "last":
        raise StudyError(
            "run takes a study, and last is a stored run",
            "concurve resume last goes on with it, concurve show last prints it, concurve run "
            "run:last measures it again",
        )
    raise StudyError(
        f"no packaged study {name!r}",
        meant(name, names, f"{one_of(names)}, or the path of a .toml file"),
    )
