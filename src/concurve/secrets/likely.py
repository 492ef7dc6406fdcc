"""What is likely a secret in a command line, a shell command or a URL. Pure.

It is found by where it stands: the password of a URL (RFC 3986, 3.2.1), the value of an option, a
variable or a field whose name says so (``--password``, ``PGPASSWORD=``, ``"token": "…"``), a header
of HTTP (RFC 7235), and the short options by which some clients take a password.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from concurve.secrets.secret import MASK, references


class Found(NamedTuple):
    """A likely secret: its name, and where it begins and ends in the text."""

    name: str
    start: int
    end: int


#: The last words of names whose values are secret.
_LAST_WORDS = {
    "apikey", "authtoken", "credential", "credentials", "pass", "passphrase", "passwd", "password",
    "pwd", "secret", "token",
}  # fmt: skip

#: Endings of names that are written as one word: ``PGPASSWORD``, ``requirepass``.
_ENDINGS = (
    "accesskey", "accesstoken", "apikey", "authtoken", "masterauth", "passphrase", "passwd",
    "password", "requirepass", "secretkey",
)  # fmt: skip

#: The words before ``key`` in a name that make it a secret one.
_BEFORE_KEY = {
    "access", "account", "api", "auth", "encryption", "master", "private", "secret", "session",
    "shared", "signing",
}  # fmt: skip

#: The working folder of a shell is none.
_NONE = {"PWD", "OLDPWD"}

#: Values that are no secrets, whatever the name.
_NO_VALUES = {"true", "false", "yes", "no", "none", "null", "on", "off"}

#: Clients that take a password after these options: as the same word (``-pX``), as the next one,
#: or as ``USER:PASSWORD``.
_MYSQL = ("", "admin", "check", "dump", "import", "show", "slap")
_ATTACHED = {
    **{f"mysql{tool}": "-p" for tool in _MYSQL},
    **{f"mariadb{tool and f'-{tool}'}": "-p" for tool in _MYSQL},
    "sshpass": "-p",
}
_NEXT = {
    **{f"{kind}-{tool}": ("-a",) for kind in ("redis", "valkey", "keydb")
       for tool in ("cli", "benchmark")},
    "memtier_benchmark": ("-a",),
    "sshpass": ("-p",),
    **{tool: ("-p",) for tool in ("mongo", "mongosh", "mongodump", "mongoimport", "mongostat")},
    "ldapsearch": ("-w",),
    "sqlcmd": ("-P",),
}  # fmt: skip
_AFTER_USER = {
    "curl": ("-u", "--user", "-U", "--proxy-user"),
    "ab": ("-A", "-P"),
    "hey": ("-a",),
    "http": ("-a", "--auth"),
    "https": ("-a", "--auth"),
}

_PLACEHOLDER = re.compile(r"(?<!\{)\{[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)?\}")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"
_VALUE = r"""(?:"(?P<q2>[^"]*)"|'(?P<q1>[^']*)'|(?P<bare>[^\s'"&;|<>]+))"""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_ASSIGNED = re.compile(rf"(?<![A-Za-z0-9_.])(?P<name>{_NAME})={_VALUE}")
#: The same inside of a value, where a comma divides.
_IN_VALUE = re.compile(
    rf"""(?<![A-Za-z0-9_.])(?P<name>{_NAME})=(?:"(?P<q2>[^"]*)"|'(?P<q1>[^']*)'|"""
    r"""(?P<bare>[^\s'"&;|<>,]+))"""
)
#: So many assignments inside of each other are looked at.
_DEEP_MAX = 64
_WHOLE_WORD = re.compile(rf"-*(?P<name>{_NAME})=(?P<bare>\S+)")
_FIELD = re.compile(
    rf"""(?<![A-Za-z0-9_.])["']?(?P<name>{_NAME})["']?\s*:\s*(?:"(?P<q2>[^"]+)"|'(?P<q1>[^']+)')"""
)
_HEADER = re.compile(
    r"(?<![A-Za-z0-9_.])(?P<name>[A-Za-z]+(?:-[A-Za-z]+)+):\s*(?P<bare>[^\s'\",]+)"
)
_AUTHORIZATION = re.compile(
    r"(?i)(?<![A-Za-z0-9])(?P<name>authorization)\s*[:=]\s*"
    r"(?:(?:basic|bearer|token|digest)\s+)?(?P<bare>[^\s'\",]+)"
)
_OPTION = re.compile(rf"(?<![^\s'\"])--?(?P<name>{_NAME})\s+(?!-){_VALUE}")
_OPTION_WORD = re.compile(rf"--?({_NAME})")

#: The same short options inside of a shell command.
_CLIENTS = re.compile(
    r"(?<![\w-])(?P<client>" + "|".join(sorted({*_ATTACHED, *_NEXT, *_AFTER_USER}, key=len)[::-1])
    + r")(?![\w-])(?P<rest>[^|;&\n]*)"
)  # fmt: skip


def is_likely(name: str) -> bool:
    """Is the value of a variable, an option or a field of this name likely a secret?"""
    if name in _NONE:
        return False
    words = _words(name)
    if not words:
        return False
    whole = "".join(words)
    if words[-1] in _LAST_WORDS or whole.endswith(_ENDINGS) or words == ["rediscli", "auth"]:
        return True
    is_key = len(words) > 1 and words[-1] == "key"
    return is_key and (name.isupper() or words[-2] in _BEFORE_KEY)


def in_text(text: str) -> list[Found]:
    """The likely secrets of a text: a URL, a shell command, a field of JSON."""
    return _apart([*_of_urls(text), *_of_names(text), *_of_clients(text)])


def in_words(words: Sequence[str], own: Sequence[str] = ()) -> list[list[Found]]:
    """The likely secrets of each word of a command line. The values of the options ``own`` that
    stand before ``--`` are the names of secrets."""
    found: list[list[Found]] = []
    end_of_own = list(words).index("--") if "--" in words else len(words)
    clients: set[str] = set()
    for number, word in enumerate(words):
        before = words[number - 1] if number else ""
        if number < end_of_own and (before in own or word.partition("=")[0] in own):
            found.append([])
            continue
        of_word = _of_option(before, word) or _of_client(clients, before, word)
        if not of_word:
            whole = _WHOLE_WORD.fullmatch(word)
            of_word = _matched(whole) if whole else []
        found.append(_apart(of_word or in_text(word)))
        clients.add(word.rsplit("/", 1)[-1])
    return found


def of_value(name: str, value: str) -> bool:
    """Is the value of a variable or an option of this name likely a secret?"""
    return is_likely(name) and _may_be(name, value)


def _of_option(option: str, word: str) -> list[Found]:
    """The value that stands after an option."""
    match = _OPTION_WORD.fullmatch(option)
    if match is None or word.startswith("-") or not of_value(match[1], word):
        return []
    return [Found(_shown(match[1]), 0, len(word))]


def _of_client(clients: set[str], option: str, word: str) -> list[Found]:
    for client in clients:
        attached = _ATTACHED.get(client)
        if attached and word.startswith(attached) and _may_be("password", word[len(attached) :]):
            return [Found("PASSWORD", len(attached), len(word))]
        if option in _NEXT.get(client, ()) and _may_be("password", word):
            return [Found("PASSWORD", 0, len(word))]
        if option in _AFTER_USER.get(client, ()) and (at := word.find(":")) >= 0:
            return [Found("PASSWORD", at + 1, len(word))] if word[at + 1 :] else []
    return []


def _of_clients(text: str) -> Iterator[Found]:
    """The same inside of a shell command."""
    for match in _CLIENTS.finditer(text):
        words = list(re.finditer(r"\"[^\"]*\"|'[^']*'|\S+", match["rest"]))
        before = ""
        for word in words:
            for found in _of_client({match["client"]}, before, word[0].strip("\"'")):
                begin = match.start("rest") + word.start() + (word[0][:1] in "\"'")
                yield Found(found.name, begin + found.start, begin + found.end)
            before = word[0]


def _of_urls(text: str) -> Iterator[Found]:
    """The passwords of URLs."""
    schemes = list(_SCHEME.finditer(text))
    ends = [*(scheme.start() for scheme in schemes[1:]), len(text)]
    for scheme, end in zip(schemes, ends, strict=False):
        rest = text[scheme.end() : end]
        if text[: scheme.start()]:  # inside of a text, where it ends at a blank or a quote
            rest = re.split(r"[\s'\"<>`]", rest, maxsplit=1)[0]
        info = _user_info(rest)
        user, colon, password = info.partition(":")
        kind = scheme[0].removesuffix("://")
        if colon and _may_be("password", password):
            begin = scheme.end() + len(user) + 1
            yield Found(f"{_shown(kind.split('+')[0])}_PASSWORD", begin, begin + len(password))
        elif kind.lower() in ("http", "https", "git") and len(user) >= _TOKEN_CHARS and not colon:
            yield Found("TOKEN", scheme.end(), scheme.end() + len(user))


#: A user in a URL of HTTP that is so long is a token.
_TOKEN_CHARS = 16


def _user_info(rest: str) -> str:
    """``USER:PASSWORD`` of what follows ``SCHEME://``; empty if there is none."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in authority:
        return authority.rpartition("@")[0]
    # A password with one of these characters, which should be percent-encoded: what stands after
    # the colon is no port.
    before, at, _ = rest.rpartition("@")
    _, colon, port = authority.rpartition(":")
    is_port = port.isdigit() or not port or port.endswith(("]", "}"))
    return before if at and colon and (not is_port or authority.startswith(":")) else ""


def _of_names(text: str) -> Iterator[Found]:
    yield from _of_assignments(text, _ASSIGNED)
    for pattern in (_FIELD, _HEADER, _OPTION):
        for match in pattern.finditer(text):
            yield from _matched(match)
    for match in _AUTHORIZATION.finditer(text):
        if _may_be("password", match["bare"]):
            yield Found("AUTHORIZATION", *match.span("bare"))


def _of_assignments(text: str, pattern: re.Pattern[str], start: int = 0) -> Iterator[Found]:
    """Those of ``NAME=VALUE``. A value whose name is none of a secret may be assignments itself,
    one or several: ``--env=PGPASSWORD=…``, ``-o username=me,password=…``."""
    deep = 0
    while match := pattern.search(text, start):
        found = _matched(match)
        yield from found
        inside = match["bare"] is not None and not found and deep < _DEEP_MAX
        deep = deep + 1 if inside else 0
        start = match.start("bare") if inside else match.end()
        pattern = _IN_VALUE if inside else _ASSIGNED


def _matched(match: re.Match[str]) -> list[Found]:
    name = match["name"]
    given = match.groupdict()
    kind = next((kind for kind in ("bare", "q1", "q2") if given.get(kind) is not None), None)
    if kind is None or not of_value(name, match[kind]):
        return []
    return [Found(_shown(name), *match.span(kind))]


def _may_be(name: str, value: str) -> bool:
    """May the value be a secret? What refers to another text, to a parameter or to a variable of
    the shell is none; a number is one of a password alone."""
    if not value or value.startswith("$") or set(value) == {"*"}:
        return False
    if _PLACEHOLDER.search(value) or references(value):
        return False
    if _NUMBER.fullmatch(value) and not any("pass" in it or it == "pwd" for it in _words(name)):
        return False
    return value.lower() not in _NO_VALUES


def _words(name: str) -> list[str]:
    """The words of a name in lower case: of ``accessToken``, ``ACCESS_TOKEN``, ``access-token``."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [word.lower() for word in re.split(r"[^A-Za-z0-9]+", apart) if word]


def _shown(name: str) -> str:
    """A name as one of a variable of the environment."""
    shown = "_".join(_words(name)).upper() or "SECRET"
    return f"_{shown}" if shown[0].isdigit() else shown


def _apart(found: Sequence[Found]) -> list[Found]:
    """Those that do not overlap, in order: of two that do, the one that begins first, or the longer
    one."""
    kept: list[Found] = []
    for item in sorted(found, key=lambda it: (it.start, -it.end)):
        if not kept or item.start >= kept[-1].end:
            kept.append(item)
    return kept


def masked(text: str) -> str:
    """The text with a mask in place of what is likely a secret."""
    return _masked(text, in_text(text))


def masked_line(line: str, own: Sequence[str]) -> str:
    """The same for a command line; ``own`` as in :func:`in_words`."""
    try:
        words = shlex.split(line)
    except ValueError:
        return masked(line)
    found = in_words(words, own)
    if not any(found):
        return line
    return shlex.join(_masked(word, of_word) for word, of_word in zip(words, found, strict=True))


def _masked(text: str, found: Sequence[Found]) -> str:
    for item in reversed(found):
        text = f"{text[: item.start]}{MASK}{text[item.end :]}"
    return text
