"""``concurve export``: a stored run as data."""

from __future__ import annotations

from pathlib import Path

import click

from concurve.cli import options

HELP = """Export a stored run or campaign as data, to standard output or a file.

\b
Examples:
  concurve export last > run.json
  concurve export last --format csv -o run.csv
  concurve export last --format trials > trials.csv
  concurve export last --format hdr -o run.hdr
  concurve export last --format firefox -o blocked.json

json has every raw trial; csv is one row a cell; trials is one CSV row a trial; hdr is the
histograms that programs reported, as an HdrHistogram interval log; collapsed and firefox say where
threads were blocked, to tools that draw flame graphs and to Firefox Profiler. A campaign has json,
markdown and html.
"""


@click.command("export", help=HELP, short_help="Export a stored run or campaign as data.")
@options.run_name
@click.option(
    "--format",
    "kind",
    type=click.Choice(["json", "csv", "trials", "hdr", "collapsed", "firefox", "markdown", "html"]),
    help="What to write (default: by the ending of -o FILE, else json).",
)
@options.output
@options.db
def verb(run: str, kind: str | None, file: Path | None, db: str | None) -> None:
    """Write a run or a campaign as data."""
    from concurve import exports
    from concurve.analysis.run import trial_findings_of
    from concurve.cli.streams import tell_bytes, tell_hidden, tell_json, with_store
    from concurve.report import csv
    from concurve.store import Store

    if file is not None:
        exports.check_writable(file)
    if kind is None:
        kind = exports.FORMATS.get(file.suffix.lower(), "json") if file is not None else "json"
    store = Store.existing(db)
    campaign = store.find_campaign(run)
    if campaign is not None:
        one_run = kind in ("trials", "hdr", "collapsed", "firefox")
        form: exports.Format = "csv" if one_run else exports.FORMATS[f".{kind}"]
        exports.check_campaign_format(form)
        content = exports.export_campaign(store, campaign, form, with_store)
    elif kind == "trials":
        found = trial_findings_of(store, store.find_run(run), with_warned=False)
        content = csv.trials(found).encode()
    elif kind == "hdr":
        content = exports.export_hdr(store, store.find_run(run))
    elif kind in ("collapsed", "firefox"):
        content = exports.export_blocked(store, store.find_run(run), kind)
    else:
        form = exports.FORMATS[f".{kind}"]
        content = exports.export_run(store, store.find_run(run), form, with_store)
    if file is not None:
        exports.write(file, content)
    elif kind in ("json", "firefox"):
        tell_json(content)
    elif kind in ("csv", "trials"):
        tell_hidden(content)
    else:
        tell_bytes(content)
