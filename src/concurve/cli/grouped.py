"""A command whose help shows its options in groups, those that a newcomer needs first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click


class Grouped(click.Command):
    """A command with many options. ``groups`` has the names of the options below each heading, as
    the function of the command gets them; options that no group names come last."""

    #: The heading of what no group names.
    REST = "other"

    def __init__(self, *args: Any, groups: Mapping[str, Sequence[str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.groups = groups

    def grouped(self, ctx: click.Context) -> Iterator[tuple[str, list[click.Option]]]:
        """Each heading with its options, in the order of the help."""
        options = (item for item in self.get_params(ctx) if isinstance(item, click.Option))
        by_name = {item.name or "": item for item in options}
        for heading, names in self.groups.items():
            yield heading, [by_name.pop(name) for name in names]
        yield self.REST, list(by_name.values())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, each group below its heading."""
        for heading, options in self.grouped(ctx):
            records = [record for item in options if (record := item.get_help_record(ctx))]
            if records:
                formatter.write_paragraph()
                formatter.write(f"Options: {heading}\n")
                with formatter.indentation():
                    formatter.write_dl(records)
