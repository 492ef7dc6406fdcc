"""Advice in the words of Python: where messages and reports name an option of the command line, who
reads them in Python is told the parameter of the function.

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
         "counters", "primary", "work", "base", "name", "effort", "precision", "repeats", "timeout",
         "max-time", "wait-quiet", "seed", "db", "target", "java", "effect", "across-machines",
         "predict", "factor", "levels", "better", "in-doubt")  # fmt: skip
_FLAGS = ("across-machines", "in-doubt")
_METHODS = {"json": "frame()"}

#: What is quoted is the user's own text, and a command of concurve is one for a shell.
_OPTION = re.compile(
    r" \(--all: the rule\)"
    r"|(?P<kept>'[^']*'|concurve [a-z]+ (?:(?!\. )[^;,])*)"
    r"|command line: "
    r"|--work (?P<amount>scales|fixed)\b"
    r"|--best-by (?P<best>[\w.:-]+)"
    r"|-P (?P<added>[\w-]+) LEVELS"
    r"|-P (?P<parameter>[\w-]+)"
    r"|(?P<after>the command) after --(?!\w)"
    r"|(?P<more>more warnings?): --all"
    r"|--(?P<timed>wait-quiet|max-time|timeout|repeats) (?P<value>\d(?:[\w.]*\w)?)"
    r"|(?<![\w-])--(?P<option>[a-z][a-z-]*)"
)


def python_words(text: str) -> str:
    """The text with parameters of Python's functions where the command line has options."""
    return _OPTION.sub(_word, text)


def _word(match: re.Match[str]) -> str:
    found = match[match.lastgroup] if match.lastgroup else ""  # the place of an option
    named = match.lastgroup or ""
    if named == "option":
        return _parameter(found)
    return _SAID[named](found, match) if named in _SAID else found


_SAID: dict[str, Callable[[str, re.Match[str]], str]] = {
    "amount": lambda found, _: f"work_amount={found!r}",
    "best": lambda found, _: f'best("{found}")',
    "parameter": lambda found, _: f"parameters, {found}",
    "added": lambda found, _: f'{{"{found}": LEVELS}} to parameters',
    "more": lambda found, _: f'{found}: run.write("report.html")',
    "value": lambda found, match: f'{match["timed"].replace("-", "_")}="{found}"',
}


def _parameter(option: str) -> str:
    if option in HOOKS:
        return f"Hooks({option}=…)"
    name = option.replace("-", "_")
    if option in _FLAGS:
        return f"{name}=True"
    return name if option in _SAME else PARAMETERS.get(option, _METHODS.get(option, f"--{option}"))
