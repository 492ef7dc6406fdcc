"""The secrets that this process knows: hidden in everything that it stores or shows, revealed to
whoever starts a program.

One process has one command line and one environment, so it has one such collection, :data:`KNOWN`.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import shlex
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from concurve.errors import StudyError
from concurve.secrets.likely import Found, in_text, in_words, is_likely, of_value
from concurve.secrets.secret import Secret, reference, references, replaced

#: A shorter value is hidden where it stands, and not looked for elsewhere: it would be found in
#: words and numbers that have nothing to do with it.
CHARS_MIN = 4

#: A value of the environment is looked for in all texts only if it is no ordinary word.
_ENVIRONMENT_CHARS_MIN = 8

#: Values that are words of letters are looked for as whole words up to this length, and others up
#: to the second one.
_WORD_CHARS = 12
_SHORT_CHARS = 7

#: Keys of heads and records whose texts are names and kinds, by which the parts of stored data
#: refer to each other.
_STRUCTURE = frozenset({
    "after", "better", "class", "combine", "effort", "end", "ended_by", "factor", "format", "id",
    "indicator", "kind", "marked_by", "name", "phase", "primary", "program", "ready", "role",
    "runner", "sources", "started", "state", "target", "trial", "unit", "version", "work",
    "work_amount",
})  # fmt: skip

#: Keys whose objects have levels, which may be secret, as their own keys.
_LEVELS_AS_KEYS = "meanings"


class Secrets:
    """Secrets by their names, which are those of variables of the environment."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment
        self._known: dict[str, Secret] = {}
        self._names: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    # -- getting to know them ---------------------------------------------------------------

    def add(self, name: str, value: str) -> str:
        """Know a secret; what stands for it in texts. The same value keeps its first name. A name
        that means something else already gets a number: ``PASSWORD_2``."""
        known = next((n for n, it in self._known.items() if it == Secret(value)), None)
        if known is not None:
            return reference(known)
        chosen = self._variable_with(value) or self._free_name(name, value)
        self._known[chosen] = Secret(value)
        self._names |= {variant: chosen for variant in _variants(value)}
        self._pattern = None
        return reference(chosen)

    def add_environment(self) -> None:
        """Know the variables of the environment whose names say that they are secret, where their
        values are no ordinary words."""
        for name, value in self._environment.items():
            is_word = value.isalpha() or value.isdigit() or len(value) < _ENVIRONMENT_CHARS_MIN
            if not is_word and of_value(name, value):
                self.add(name, value)

    def require(self, names: Iterable[str], what: str) -> None:
        """Know these secrets, from the environment if need be.

        Raises:
            StudyError: ``what`` needs one that the environment does not have.
        """
        missing = [name for name in names if not self._has(name)]
        if missing:
            listed = ", ".join(missing)
            variables = "this variable" if len(missing) == 1 else "these variables"
            raise StudyError(
                f"{what} needs {'a secret' if len(missing) == 1 else 'secrets'} that no store "
                f"keeps, and the environment does not have {variables}: {listed}",
                " ".join(f"export {name}=…" for name in missing) + ", then the same command",
            )

    def _has(self, name: str) -> bool:
        if name not in self._known and self._environment.get(name):
            self._know(name, self._environment[name])
        return name in self._known

    def _know(self, name: str, value: str) -> None:
        self._known[name] = Secret(value)
        for variant in _variants(value):
            self._names.setdefault(variant, name)
        self._pattern = None

    def _variable_with(self, value: str) -> str | None:
        """A variable of the environment that has this value and a name that says so: whoever
        resumes the run has it, too."""
        found = [
            name
            for name, other in self._environment.items()
            if other == value and name.isidentifier() and is_likely(name)
        ]
        return min((name for name in found if name not in self._known), default=None)

    def _free_name(self, name: str, value: str) -> str:
        base = re.sub(r"\W", "_", name, flags=re.ASCII) or "SECRET"
        base = f"_{base}" if base[0].isdigit() else base
        number, chosen = 1, base
        while chosen in self._known or self._environment.get(chosen, value) != value:
            number += 1
            chosen = f"{base}_{number}"
        return chosen

    # -- hiding them ------------------------------------------------------------------------

    def hide(self, text: str) -> str:
        """The text with references in place of the secrets that are known."""
        if not self._names:
            return text
        if self._pattern is None:
            self._pattern = _pattern_of(self._names)
        return self._pattern.sub(lambda match: reference(self._names[match[0]]), text)

    def hide_likely(self, text: str) -> str:
        """The same for a text of a study, of which what is likely a secret is known from then
        on."""
        return self.hide(self._with_references(text, in_text(text)))

    def hide_words(self, words: Sequence[str], own: Sequence[str] = ()) -> tuple[str, ...]:
        """The same for the words of a command line; ``own`` are options whose values are the names
        of secrets."""
        found = in_words(words, own)
        pairs = list(zip(words, found, strict=True))
        hidden = [self._with_references(word, of_word) for word, of_word in pairs]
        return tuple(map(self.hide, hidden))

    def hide_variable(self, name: str, value: str) -> str:
        """The same for the value of a variable."""
        if of_value(name, value):
            return self.add(name, value)
        return self.hide_likely(value)

    def hide_json(self, data: bytes) -> bytes:
        """JSON with references in place of the secrets in its texts; as it is if it has none.
        Names and kinds stay: parts of stored data refer to each other by them."""
        if not self._names:
            return data
        try:
            value = json.loads(data)
        except ValueError:
            return self.hide(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        hidden = self._hidden(value, "")
        if hidden == value:
            return data
        return json.dumps(hidden, separators=(",", ":")).encode()

    def _hidden(self, value: Any, key: str) -> Any:
        if isinstance(value, str):
            return value if key in _STRUCTURE else self.hide(value)
        if isinstance(value, list):
            return [self._hidden(item, key) for item in value]
        if not isinstance(value, dict):
            return value
        if key == _LEVELS_AS_KEYS:
            return {
                factor: {self.hide(level): self._hidden(part, "") for level, part in parts.items()}
                for factor, parts in value.items()
            }
        return {name: self._hidden(item, name) for name, item in value.items()}

    def _with_references(self, text: str, found: Sequence[Found]) -> str:
        for item in reversed(found):
            here = self.add(item.name, text[item.start : item.end])
            text = text[: item.start] + here + text[item.end :]
        return text

    # -- revealing them ---------------------------------------------------------------------

    def reveal(self, text: str) -> str:
        """The text with the secrets in place of their references; what refers to none that is
        known, or in the environment, stays."""
        names = [name for name in references(text) if self._has(name)]
        return replaced(text, {name: self._known[name].reveal() for name in names})


def _variants(value: str) -> set[str]:
    """The value as it may stand in texts: as it is, quoted, escaped or encoded."""
    if len(value) < CHARS_MIN:
        return set()
    raw = value.encode(errors="surrogateescape")
    quoted = shlex.quote(value)
    found = {
        value,
        urllib.parse.quote(raw, safe=""),
        urllib.parse.quote(raw),
        urllib.parse.quote_plus(raw),
        html.escape(value),
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
        quoted[1:-1] if quoted.startswith("'") else quoted,
        base64.b64encode(raw).decode(),
    }
    return {variant for variant in found if len(variant) >= CHARS_MIN}


def _pattern_of(names: Iterable[str]) -> re.Pattern[str]:
    """Any of the values, the longest first. An ordinary word is one by itself alone, and a number
    is no part of another one."""
    parts = []
    for value in sorted(names, key=lambda it: (-len(it), it)):
        text = re.escape(value)
        if value.isdigit():
            text = rf"(?<![\w.]){text}(?![\w.])"
        elif len(value) <= (_WORD_CHARS if value.isalpha() else _SHORT_CHARS) and value.isalnum():
            text = rf"(?<![A-Za-z0-9]){text}(?![A-Za-z0-9])"
        parts.append(text)
    return re.compile("|".join(parts))


#: Those of this process: of its command line, its environment, and the studies that it runs.
KNOWN = Secrets()
