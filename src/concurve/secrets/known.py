"""The secrets that this process knows: hidden in everything that it stores or shows, revealed to
whoever starts a program.

One process has one command line and one environment, so it has one such collection, :data:`KNOWN`.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from concurve.errors import StudyError
from concurve.secrets.likely import Found, in_text, in_words, is_likely, of_value
from concurve.secrets.password import PASSWORD_VARIABLE
from concurve.secrets.secret import REFERENCE, Secret, reference, references, replaced

#: A shorter value is hidden where it stands, and not looked for elsewhere: it would be found in
#: words and numbers that have nothing to do with it.
CHARS_MIN = 4

#: The name of a store's password: no study needs it.
STORE_PASSWORD = "STORE_PASSWORD"

#: A word in which the variable of the password stands, and not a longer name that holds it.
_NAMES_PASSWORD = re.compile(rf"(?<!\w){PASSWORD_VARIABLE}(?!\w)")

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

#: Keys of a bounded copy of an output: its first part, its last part, and how many bytes between
#: them were dropped.
_HEAD, _TAIL, _DROPPED = "head", "tail", "dropped"

#: Keys whose texts may be the beginning of a longer one, if they have so many characters.
_BEGINNINGS, _BEGINNING_CHARS = frozenset({"excerpt", "message"}), 120

#: A part of a secret at a cut is hidden from so many characters on.
_PART_CHARS_MIN = 2

#: A text in JSON (RFC 8259, 7).
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')

#: What decoding leaves of a character that was cut.
_HALF_CHARACTER = "\N{REPLACEMENT CHARACTER}"

#: Of a part of a text that is encoded in Base64, so many characters are looked for.
_BASE64_CHARS_MIN = 10

#: A secret that is drawn has so many bytes.
_DRAWN_BYTES = 16

#: A line of a secret of several lines is looked for by itself if it has so many characters.
_LINE_CHARS_MIN = 12


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

    def add_marked(self, text: str, environment: Mapping[str, str] | None = None) -> None:
        """Know what a mark names: a text as ``NAME=TEXT``, or a variable of the environment, if it
        is there."""
        found = self._environment if environment is None else environment
        name, equals, value = text.partition("=")
        if equals and value and not references(value):
            self.add(name, value)
        elif not equals and len(found.get(name, "")) >= CHARS_MIN:
            self.add(name, found[name])

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

    def password_of(self, words: Iterable[str]) -> dict[str, str]:
        """The variable of the password, by its reference, for a program whose ``words`` name it:
        nothing else gives a program of a trial the one of the environment."""
        is_named = any(_NAMES_PASSWORD.search(word) for word in words)
        is_there = is_named and self._has(PASSWORD_VARIABLE)
        return {PASSWORD_VARIABLE: reference(PASSWORD_VARIABLE)} if is_there else {}

    def password_from(self, variable: str) -> str:
        """Know the password in the environment variable that ``--password-from`` names.

        Raises:
            StudyError: the environment does not have it.
        """
        password = self._environment.get(variable)
        if not password:
            # Another text may be the password itself, and is not shown.
            is_name = re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable)
            raise StudyError(
                f"--password-from {variable if is_name else '…'}: this environment variable is not "
                "set",
                f"export {variable if is_name else 'NAME'}=… before, and --password-from its name",
            )
        self.add(variable, password)
        return password

    def draw(self, name: str) -> None:
        """Know a secret of this name, a text that nobody has chosen: no variable of the environment
        sets it."""
        if name not in self._known:
            self._know(name, os.urandom(_DRAWN_BYTES).hex())

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
        return self._pattern.sub(self._reference_for, text)

    def _reference_for(self, match: re.Match[str]) -> str:
        """A reference stays as it is: a secret may be a word of it."""
        name = self._names.get(match[0])
        return match[0] if name is None else reference(name)

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

    def hide_store(self, url: str) -> str:
        """The same for the place of a store: a file, or a URL with passwords."""
        for item in reversed(in_text(url) if "://" in url else []):
            here = self.add(STORE_PASSWORD, url[item.start : item.end])
            url = url[: item.start] + here + url[item.end :]
        return url

    def hide_variable(self, name: str, value: str) -> str:
        """The same for the value of a variable."""
        if of_value(name, value):
            return self.add(name, value)
        return self.hide_likely(value)

    def hide_cut(self, text: str, begins: bool = False, ends: bool = False) -> str:
        """The same for a part of a longer text: what is before its beginning was cut away if
        ``begins``, what is behind its end if ``ends``. A secret may stand across the cut, so a part
        of one there is hidden, too."""
        text = self.hide(text)
        if begins:
            text = self._without_end_of_secret(text)
        return self._without_begin_of_secret(text) if ends else text

    def _without_begin_of_secret(self, text: str) -> str:
        """The text with a reference in place of the beginning of a secret at its end."""
        whole = text.rstrip(_HALF_CHARACTER)
        found = [(_overlap(whole, value), name) for value, name in self._names.items()]
        length, name = max(found, default=(0, ""))
        return text if length < _PART_CHARS_MIN else whole[: len(whole) - length] + reference(name)

    def _without_end_of_secret(self, text: str) -> str:
        """The text with a reference in place of the end of a secret at its beginning."""
        whole = text.lstrip(_HALF_CHARACTER)
        found = [(_overlap(value, whole), name) for value, name in self._names.items()]
        length, name = max(found, default=(0, ""))
        return text if length < _PART_CHARS_MIN else reference(name) + whole[length:]

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

    def hide_printed_json(self, data: bytes) -> bytes:
        """JSON as it is printed, with references in place of the secrets in all its texts, names
        and keys too. Its numbers stay: a reference in place of one that is the same as a secret
        would leave no JSON. What is no JSON is hidden as any text."""
        if not self._names:
            return data
        text = data.decode(errors="surrogateescape")
        try:
            msgspec.json.decode(data, type=msgspec.Raw)  # is it JSON? Nothing is kept of it
            hidden = _JSON_TEXT.sub(self._hidden_literal, text)
        except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
            hidden = self.hide(text)
        return hidden.encode(errors="surrogateescape")

    def _hidden_literal(self, match: re.Match[str]) -> str:
        """A text of JSON, without its escapes while secrets are looked for."""
        text = json.loads(match[0])
        hidden = self.hide(text)
        return match[0] if hidden == text else json.dumps(hidden)

    def _hidden(self, value: Any, key: str) -> Any:
        if isinstance(value, str):
            is_cut = key in _BEGINNINGS and len(value) >= _BEGINNING_CHARS
            return value if key in _STRUCTURE else self.hide_cut(value, ends=is_cut)
        if isinstance(value, list):
            return [self._hidden(item, key) for item in value]
        if not isinstance(value, dict):
            return value
        if value.keys() >= {_HEAD, _TAIL, _DROPPED}:
            value = {**value, **self._hidden_output(value)}
        elif key == _LEVELS_AS_KEYS:
            return {
                factor: {self.hide(level): self._hidden(part, "") for level, part in parts.items()}
                for factor, parts in value.items()
            }
        return {name: self._hidden(item, name) for name, item in value.items()}

    def _hidden_output(self, output: dict[str, Any]) -> dict[str, str]:
        """The two parts of a copy of an output. If nothing between them was dropped, not even a
        part of a character, a secret may stand across: then all of it becomes the first part."""
        head, tail = str(output[_HEAD]), str(output[_TAIL])
        if output[_DROPPED] or head.endswith(_HALF_CHARACTER):
            return {
                _HEAD: self.hide_cut(head, ends=True),
                _TAIL: self.hide_cut(tail, begins=True),
            }
        apart, whole = self.hide(head) + self.hide(tail), self.hide(head + tail)
        if apart == whole:
            return {_HEAD: self.hide(head), _TAIL: self.hide(tail)}
        return {_HEAD: whole, _TAIL: ""}

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
    import html  # here: there mostly is no secret, and it takes longer than all the rest

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
    }
    found |= {re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), it) for it in found}
    in_base64 = {base64.b64encode(raw).decode(), *_inside_base64(raw)}
    found |= in_base64 | {it.translate(_URL_SAFE) for it in in_base64}
    if "\n" in value:
        lines = (line.strip() for line in value.splitlines())
        found |= {it for it in lines if len(it) >= _LINE_CHARS_MIN and not it.startswith("-----")}
    return {variant for variant in found if len(variant) >= CHARS_MIN}


_BASE64 = re.compile("[A-Za-z0-9+/]*[+/][A-Za-z0-9+/]*=*")
_URL_SAFE = str.maketrans("+/", "-_")


def _inside_base64(raw: bytes) -> Iterator[str]:
    """The bytes as they stand in the Base64 of a longer text (RFC 4648, 4), such as
    ``USER:PASSWORD`` in a header of HTTP: without the characters that others have a part in, at
    each of three places."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw).decode()
        inside = encoded[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
        if len(inside) >= _BASE64_CHARS_MIN:
            yield inside


def _overlap(first: str, second: str) -> int:
    """The length of the longest end of ``first`` that is a beginning of ``second``."""
    most = min(len(first), len(second))
    return next((n for n in range(most, 0, -1) if first.endswith(second[:n])), 0)


def _pattern_of(names: Iterable[str]) -> re.Pattern[str]:
    """Any of the values, the longest first. An ordinary word is one by itself alone, and a number
    is no part of another one. References are matched, too, so that nothing inside of one is."""
    parts = [REFERENCE.pattern]
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
