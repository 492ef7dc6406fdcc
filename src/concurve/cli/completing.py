"""The values that a shell offers for arguments: names of studies, ids of runs.

A completion cannot show an error: where nothing can be read, it offers nothing.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def studies(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Packaged studies and campaigns, and files."""
    from concurve.definition.catalogue import campaigns, entries

    names = [entry.name for entry in [*entries(), *campaigns()]]
    # Files come first: bash's script forgets at a file what was offered before it.
    return [*files(_, __, typed), *_beginning(typed, names)]


def runs(context: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """``last``, and the stored runs and campaigns, the newest first."""
    from concurve.errors import ConcurveError
    from concurve.store import Store

    ids: list[str] = []
    with contextlib.suppress(ConcurveError):
        store = Store.existing(context.params.get("db"))
        ids += [run.id for run in reversed(store.runs())]
        ids += [campaign.id for campaign in reversed(store.campaigns())]
    return _beginning(typed, ["last", *ids])


def files(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Files: a command, or its arguments."""
    return [_item(typed, "file")]


def _beginning(typed: str, names: list[str]) -> list[CompletionItem]:
    return [_item(name) for name in names if name.startswith(typed)]


def _item(value: str, kind: str = "plain") -> CompletionItem:
    from click.shell_completion import CompletionItem

    return CompletionItem(value, type=kind)
