"""TOML → :class:`~concurve.definition.study.Study`; every error names file, key and remedy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from concurve.definition import study as domain
from concurve.definition.claim_kinds import check_claims
from concurve.definition.extending import resolved_tables
from concurve.definition.load_commands import with_load_commands
from concurve.definition.origins import Origins
from concurve.definition.published import PublishedFigure, load_published
from concurve.definition.study_check import check
from concurve.definition.study_files import CAMPAIGN_NAME, PUBLISHED_NAME
from concurve.definition.study_tables import KEYS, File, to_study
from concurve.definition.sweep_factors import with_conditions
from concurve.definition.toml_file import read_text, to_type
from concurve.errors import StudyError
from concurve.words import meant


def load_study(path: Path, cpus: int) -> domain.Study:
    """Read a study file, with the published figures that stand beside it or in its campaign.

    ``cpus`` is what levels such as ``50%`` refer to.

    Raises:
        StudyError: unreadable, not TOML, unknown key, wrong type, or a study that cannot be run.
    """
    study = parse_study(read_text(path, "a study file"), cpus, str(path))
    published = tuple(_published_beside(path))
    _check_published(published, study, path)
    return msgspec.structs.replace(study, published=published)


def _published_beside(path: Path) -> Iterator[PublishedFigure]:
    """The figures of ``published.csv`` in the study's folder, else those for it in the
    campaign's."""
    own, shared = path.parent / PUBLISHED_NAME, path.parent.parent / PUBLISHED_NAME
    if own.is_file():
        for figures in load_published(own).values():
            yield from figures
    elif shared.is_file() and (path.parent.parent / CAMPAIGN_NAME).is_file():
        yield from load_published(shared).get(path.resolve().parent.name, ())


def _check_published(
    published: tuple[PublishedFigure, ...], study: domain.Study, path: Path
) -> None:
    """Refuse a published figure whose cell has a factor that the study lacks."""
    names = [factor.name for factor in study.factors]
    for figure in published:
        for name in figure.base_parameters:
            if name not in names:
                raise StudyError(
                    f"{path}: {PUBLISHED_NAME}: table {figure.table}, {figure.row}, "
                    f"{figure.column}: {name!r} is no factor of {study.name}",
                    meant(name, names),
                )


def parse_study(text: str, cpus: int, where: str) -> domain.Study:
    """A study from the text of its file; ``where`` names it in messages.

    Raises:
        StudyError: as :func:`load_study`.
    """
    tables, origins = resolved_tables(text, where)
    file = to_type(tables, origins.at, File, KEYS, "docs/studies.md")
    study = with_load_commands(to_study(file, cpus, origins))
    if file.protocol.conditions is None:
        study = with_conditions(study)
    check(study, origins)
    _refuse_two_works(study, origins)
    check_claims(study, origins)
    return study


def _refuse_two_works(study: domain.Study, where: Origins) -> None:
    """Refuse a study of which two factors seem to count workers: every figure of scaling depends on
    which one is meant."""
    named = domain.usual_work(study)
    if study.work is None and len(named) > 1:
        raise StudyError(
            f"{where.of('protocol', 'work')}: which factor counts workers: {' or '.join(named)}?",
            f'work = "{named[0]}" in [protocol]; or work = "" if none of them does',
        )


def states_conditions(path: Path) -> bool:
    """Does a study file, or what it extends, say which factors are conditions?

    Raises:
        StudyError: as :func:`load_study`.
    """
    tables, _ = resolved_tables(read_text(path, "a study file"), str(path))
    return "conditions" in tables.get("protocol", {})
