"""Advice in the words of Python: where messages and reports name an option or a command of the
command line, who reads them in Python is told the parameter or the function.

Advice is written once, for the command line; the interface for Python rewords it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

#: The parameters whose names are not those of the options, and the options that have none.
PARAMETERS = {"extract": "extracts", "condition": "conditions", "set": "levels",
              "indicator": "indicators", "secret": "secrets"}  # fmt: skip
HOOKS = ("setup", "prepare", "conclude", "cleanup", "check")
_SAME = ("cpus", "nice", "policy", "env", "background", "server", "ready", "ready-within", "attach",
         "password-from", "counters", "primary", "work", "base", "name", "effort", "precision",
         "repeats", "timeout", "max-time", "wait-quiet", "seed", "db", "target", "java", "effect",
         "across-machines", "measure-anyway", "predict", "factor", "levels", "better",
         "in-doubt")  # fmt: skip
_FLAGS = ("across-machines", "in-doubt", "measure-anyway")
#: What shows in Python what an option shows.
_SHOWN = {"json": "frame()", "claims": "run.findings.claims", "published": "run.findings.published",
          "figures": "run.frame()", "models": "run.models()",
          "all": 'run.write("report.html")'}  # fmt: skip

#: The functions of Python that are commands, too.
_FUNCTIONS = "sweep|run|compare|history|fit"

#: What is quoted is the user's own text, and a command without a function is one for a shell.
_WORDS = re.compile(
    r" \(--all: the rule\)"
    r"|(?P<kept>'[^']*')"
    r"|command line: "
    r"|concurve show [\w-]+ (?=--(?:claims|published|models|all)\b)"
    r"|(?:concurve show [\w-]+ )?--best-by (?P<best>[\w.:-]*\w)"
    r"|concurve show [\w-]+ --rejected(?P<rejected>)"
    r"|concurve show (?P<shown>[\w-]+)(?= *[,;]| *$)"
    r"|concurve resume (?P<resumed>[\w-]+)(?: --db (?P<place>'[^']*'|[^\s;,']*[^\s;,'.]))?"
    r"(?: --max-time (?P<allowed>[\w.]*\w))?"
    r"|concurve (?:export (?P<exported>[\w-]+) --format csv|show (?P<listing>[\w-]+) --figures)"
    r"|concurve explain [\w-]+ --json(?P<lost>)"
    r"|concurve explain (?P<explained>[\w-]+)(?![\w-]| --)"
    r"|concurve compare (?P<compared>RUN1 RUN2)"
    r"|concurve (?P<listed>runs)(?= lists)"
    rf"|concurve (?P<helped>{_FUNCTIONS}) --help"
    rf"|concurve (?P<function>{_FUNCTIONS})(?= *[.,;)]| and\b| make| *$)"
    r"|(?P<command>concurve [a-z]+ (?:(?!\. )[^;,])*)"
    r"|--work (?P<amount>scales|fixed)\b"
    r"|-P (?P<added>[\w-]+) LEVELS"
    r"|-P (?P<given>[\w-]+) (?P<given_levels>\S+) (?=--repeats)"
    r"|-P (?P<parameter>[\w-]+)"
    r"|(?P<after>the command) after --(?!\w)"
    r"|--(?P<timed>wait-quiet|max-time|timeout|repeats) (?P<value>\d(?:[\w.]*\w)?)"
    r"(?: --max-time (?P<with_time>\d\w*))?"
    r"|(?<![\w-])--(?P<option>[a-z][a-z-]*)"
)


def python_words(text: str) -> str:
    """The text with functions of Python and their parameters where the command line has commands
    and options."""
    return _WORDS.sub(_word, text)


def _word(match: re.Match[str]) -> str:
    named = match.lastgroup or ""
    found = match[named] if named else ""  # what is left out, such as the place of an option
    return _SAID[named](found, match) if named in _SAID else found


def _resumed(found: str, match: re.Match[str]) -> str:
    allowed = match["allowed"] or ""
    time = f'max_time="{allowed}"' if allowed[:1].isdigit() else f"max_time={allowed}"
    return f"{_loaded(match['resumed'], match['place'])}.resume({time if allowed else ''})"


def _loaded(run: str, place: str | None = None) -> str:
    given = [] if run == "last" else [f'"{run}"']
    quoted = (place or "").strip("'")
    given += [f'db="{quoted}"'] if quoted else []
    return f"concurve.load({', '.join(given)})"


_SAID: dict[str, Callable[[str, re.Match[str]], str]] = {
    "amount": lambda found, _: f"work_amount={found!r}",
    "best": lambda found, _: f'run.best("{found}")',
    "rejected": lambda found, _: "run.trials()",
    "shown": lambda found, _: f"print({_loaded(found)})",
    "resumed": _resumed,
    "place": _resumed,
    "allowed": _resumed,
    "exported": lambda found, _: "run.frame()",
    "listing": lambda found, _: "run.frame()",
    "lost": lambda found, _: "speedup_lost of its cells",
    "explained": lambda found, _: "run.explain()",
    "compared": lambda found, _: "concurve.compare(RUN1, RUN2)",
    "listed": lambda found, _: "concurve.runs()",
    "helped": lambda found, _: f"help(concurve.{found})",
    "function": lambda found, _: f"concurve.{found}",
    "given_levels": lambda found, match: f'parameters={{"{match["given"]}": "{found}"}}, ',
    "parameter": lambda found, _: f"parameters, {found}",
    "added": lambda found, _: f'{{"{found}": LEVELS}} to parameters',
    "value": lambda _, match: _timed(match),
    "with_time": lambda _, match: _timed(match),
    "option": lambda found, _: _parameter(found),
}


def _timed(match: re.Match[str]) -> str:
    also = f', max_time="{match["with_time"]}"' if match["with_time"] else ""
    return f'{match["timed"].replace("-", "_")}="{match["value"]}"{also}'


def _parameter(option: str) -> str:
    if option in HOOKS:
        return f"Hooks({option}=…)"
    name = option.replace("-", "_")
    if option in _FLAGS:
        return f"{name}=True"
    return name if option in _SAME else PARAMETERS.get(option, _SHOWN.get(option, f"--{option}"))
