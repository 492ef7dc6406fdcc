"""Secrets that are known: hidden in every form, revealed to whoever asks, never formatted."""

from __future__ import annotations

import base64
import copy
import html
import json
import pickle
import re
import shlex
import urllib.parse

import msgspec
import pytest

from concurve.definition.hiding import hidden, secrets_of
from concurve.definition.study import Hooks
from concurve.errors import StudyError
from concurve.secrets import Secret, Secrets, references
from tests.helpers.fakes import small_study

S = "Pl4nt3d-w/o rd&'\"\\<é>"


def test_a_secret_cannot_be_formatted_or_stored() -> None:
    secret = Secret(S)
    for text in (str(secret), repr(secret), f"{secret}", f"{secret:>20}", "%s" % secret,  # noqa: UP031
                 repr([secret]), repr({"a": secret})):  # fmt: skip
        assert S not in text and "***" in text
    for keep in (pickle.dumps, copy.deepcopy, msgspec.json.encode, json.dumps):
        with pytest.raises(TypeError) as refused:
            keep(secret)
        assert S not in str(refused.value)
    assert secret == Secret(S) and secret != Secret("x") and secret.reveal() == S


@pytest.mark.parametrize(
    "form",
    [
        lambda it: it,
        lambda it: urllib.parse.quote(it, safe=""),
        urllib.parse.quote_plus,
        html.escape,
        lambda it: json.dumps({"a": it}),
        lambda it: json.dumps({"a": it}, ensure_ascii=False),
        shlex.quote,
        lambda it: shlex.join(["client", "--password", it]),
        repr,
        lambda it: base64.b64encode(it.encode()).decode(),
    ],
)
def test_every_form_is_hidden(form) -> None:  # type: ignore[no-untyped-def]
    known = Secrets({})
    known.add("PASSWORD", S)
    text = known.hide(f"before {form(S)} behind")
    assert "Pl4nt3d" not in text and "{secret:PASSWORD}" in text
    assert form(S) not in text


LONG = "Pl4nt3d-w/o+rd&'%?>~é-and-more"

#: How a text stands in an output.
FORMS = [
    lambda it: it,
    lambda it: urllib.parse.quote(it, safe=""),
    lambda it: re.sub("%..", lambda code: code[0].lower(), urllib.parse.quote(it, safe="")),
    lambda it: json.dumps(it)[1:-1],
    lambda it: base64.b64encode(it.encode()).decode(),
    lambda it: base64.urlsafe_b64encode(it.encode()).decode(),
]


def record_of(output: bytes, half: int) -> bytes:
    """A record with a copy of an output, as the runner bounds it."""
    head, rest = output[:half], output[half:]
    tail = rest[-half:]
    parts = {
        "bytes": len(output), "head": head.decode(errors="replace"),
        "tail": tail.decode(errors="replace"), "dropped": len(rest) - len(tail),
    }  # fmt: skip
    return json.dumps({"roles": [{"stdout": parts}]}).encode()


def leaked(text: str, form: str, chars: int = 5) -> bool:
    """Does the text have so many characters of the form in a row?"""
    return any(form[at : at + chars] in text for at in range(len(form) - chars + 1))


@pytest.mark.parametrize("form", FORMS)
def test_no_part_of_a_secret_stays_at_a_cut(form) -> None:  # type: ignore[no-untyped-def]
    known = Secrets({})
    known.add("PASSWORD", LONG)
    stands = form(LONG)
    raw = stands.encode()
    for half in (200, 10_000):  # the middle is dropped; nothing is
        for at in range(-2, len(raw) + 3):
            for place in ("head", "tail"):
                before = half - at if place == "head" else 3000 - half - at
                output = b"." * before + raw + b"." * (3000 - before - len(raw))
                if half == 10_000:
                    output = b"." * (half - at) + raw + b"." * 50
                hidden = known.hide_json(record_of(output, half)).decode()
                assert not leaked(json.dumps(json.loads(hidden), ensure_ascii=False), stands)
                assert not leaked(json.loads(hidden)["roles"][0]["stdout"]["head"], stands)


def test_what_is_cut_without_a_secret_stays_as_it_is() -> None:
    known = Secrets({})
    known.add("PASSWORD", LONG)
    record = record_of(b"rate=17\n" * 200, 100)
    assert known.hide_json(record) == record


@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "user:"])
def test_a_secret_inside_of_base64_is_hidden(before: str) -> None:
    known = Secrets({})
    known.add("PASSWORD", LONG)
    encoded = base64.b64encode(f"{before}{LONG} and more".encode()).decode()
    inside = base64.b64encode((before + LONG).encode()).decode()[-20:-4]
    assert inside in encoded and inside not in known.hide(f"Authorization: Basic {encoded}")


def test_each_line_of_a_secret_of_several_lines_is_hidden() -> None:
    lines = ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "-----END-----"]
    known = Secrets({})
    known.add("PRIVATE_KEY", "\n".join(lines))
    for text in ("\n".join(lines), f"  {lines[1]}", lines[1]):
        assert lines[1] not in known.hide(text)
    assert known.hide(lines[0]) == lines[0]


def test_the_beginning_of_a_secret_at_the_end_of_a_message_is_hidden() -> None:
    known = Secrets({})
    known.add("PASSWORD", LONG)
    for at in range(2, len(LONG)):
        text = "." * (400 - at) + LONG[:at]
        hidden = json.loads(known.hide_json(json.dumps({"message": text}).encode()))
        assert hidden["message"] == "." * (400 - at) + "{secret:PASSWORD}"


def test_a_reference_is_revealed_once_and_others_stay() -> None:
    known = Secrets({"OTHER": "from outside"})
    url = known.hide_likely("redis://:geheim-1@h")
    assert url == "redis://:{secret:REDIS_PASSWORD}@h"
    assert known.reveal(url) == "redis://:geheim-1@h"
    assert known.reveal("{secret:OTHER} {secret:NONE} {x}") == "from outside {secret:NONE} {x}"


def test_names_are_told_apart_and_fit_the_environment() -> None:
    known = Secrets({"MY_TOKEN": "the-value", "PASSWORD": "another one"})
    assert known.add("TOKEN", "the-value") == "{secret:MY_TOKEN}", "whoever resumes has it"
    assert known.add("PASSWORD", "first-1") == "{secret:PASSWORD_2}"
    assert known.add("PASSWORD", "second-2") == "{secret:PASSWORD_3}"
    assert known.add("ELSE", "first-1") == "{secret:PASSWORD_2}", "the same value, the same name"


def test_ordinary_words_and_numbers_are_hidden_by_themselves_alone() -> None:
    known = Secrets({})
    for value in ("postgres", "1234", "abc"):
        known.add("PASSWORD", value)
    assert known.hide("postgresql 12345 1234.5 abc") == "postgresql 12345 1234.5 abc"
    said = known.hide("user postgres, pin 1234")
    assert "postgres" not in said and "1234" not in said


def test_the_environment_is_looked_at_by_its_names() -> None:
    known = Secrets({"API_TOKEN": "t0ken-of-env", "SOME_KEY": "threads", "HOME": "/home/me-1"})
    known.add_environment()
    assert known.hide("t0ken-of-env threads /home/me-1") == "{secret:API_TOKEN} threads /home/me-1"


def test_what_is_missing_is_named() -> None:
    known = Secrets({"HAVE": "it-is-here"})
    known.require(["HAVE"], "run x")
    with pytest.raises(StudyError, match=r"run x needs a secret .* this variable: PASSWORD") as no:
        known.require(["HAVE", "PASSWORD"], "run x")
    assert "export PASSWORD=…" in no.value.remedy


def test_json_is_changed_in_its_texts_alone() -> None:
    known = Secrets({})
    data = b'{"name": "target", "n": 1.50, "stdout": {"head": "a"}}\n'
    assert known.hide_json(data) is data
    known.add("PASSWORD", "target")
    record = {"name": "target", "stdout": {"head": "it is target"}, "kind": "target", "n": 7}
    kept = json.loads(known.hide_json(json.dumps(record).encode()))
    assert kept == {**record, "stdout": {"head": "it is {secret:PASSWORD}"}}
    assert known.hide_json(data) is data, "bytes without a secret stay as they came"
    assert b"target!" not in known.hide_json(b"no JSON: target!")


def test_printed_json_is_changed_in_all_its_texts_and_in_no_number() -> None:
    known = Secrets({})
    data = b'{"n": 1000, "said": "1000"}\n'
    assert known.hide_printed_json(data) is data
    for name, value in (("PIN", "1000"), ("WORD", "nabcd"), ("ODD", 'qu"o\\te')):
        known.add(name, value)
    given = {
        "1000": [1000, 1000.5, -1000, "pin 1000", True, None], "name": "nabcd",
        "said": 'a qu"o\\te', "line": "\nabcd", "é": "1000é",
    }  # fmt: skip
    for is_ascii in (True, False):
        text = json.dumps(given, ensure_ascii=is_ascii, indent=2).encode()
        assert json.loads(known.hide_printed_json(text)) == {
            "{secret:PIN}": [1000, 1000.5, -1000, "pin {secret:PIN}", True, None],
            "name": "{secret:WORD}", "said": "a {secret:ODD}", "line": "\nabcd", "é": "1000é",
        }  # fmt: skip
    assert known.hide_printed_json(b"no JSON: 1000 \xff") == b"no JSON: {secret:PIN} \xff"
    assert b"nabcd" not in known.hide_printed_json(b'{"cut": "nabcd')


def test_a_study_keeps_references_everywhere() -> None:
    known = Secrets({})
    study = small_study(url=("redis://:Pl4nt3d-1@a", "redis://:Pl4nt3d-2@b"), n=(1, 2))
    role = msgspec.structs.replace(
        study.roles[0],
        command=("client", "--password", "Pl4nt3d-3", "{url}", "{n}", "say Pl4nt3d-4"),
        env={"API_TOKEN": "Pl4nt3d-4", "URL": "http://me:Pl4nt3d-5@h", "OMP_NUM_THREADS": "{n}"},
        cwd="/tmp/Pl4nt3d-3",
    )
    study = msgspec.structs.replace(
        study, roles=(role,), hooks=Hooks(prepare="PGPASSWORD=Pl4nt3d-6 psql"),
        base={"url": "redis://:Pl4nt3d-1@a", "n": 1},
    )  # fmt: skip
    kept = hidden(study, known=known)
    text = msgspec.json.encode(kept).decode()
    assert "Pl4nt3d" not in text
    assert kept.base["url"] == kept.factors[0].levels[0]
    assert kept.roles[0].env["OMP_NUM_THREADS"] == "{n}"
    assert hidden(kept, known=known) == kept
    assert known.reveal(" ".join(kept.roles[0].command)) == " ".join(role.command)
    assert secrets_of(kept) == references(text)
    assert hidden(small_study(), known=known) == small_study()


def test_all_levels_of_a_marked_factor_are_hidden() -> None:
    known = Secrets({})
    kept = hidden(small_study(word=("Pl4nt3d", 12345)), ["word"], known)
    assert kept.factors[0].levels == ("{secret:WORD}", "{secret:WORD_2}")
    with pytest.raises(StudyError, match="--secret word: a level of fewer than 4 characters"):
        hidden(small_study(word=("abc",)), ["word"], Secrets({}))


def test_what_is_hidden_twice_is_hidden_once() -> None:
    """A secret may be a word of the references themselves."""
    secrets = Secrets({})
    for name, value in (("WORD", "secret"), ("NAME", "WORD"), ("OTHER", "swordfish")):
        secrets.add(name, value)
    once = secrets.hide("the secret is swordfish, in a WORD")
    assert once == "the {secret:WORD} is {secret:OTHER}, in a {secret:NAME}"
    assert secrets.hide(once) == once


def test_a_secret_that_nobody_has_chosen() -> None:
    known, other = Secrets({}), Secrets({})
    for secrets in (known, other):
        secrets.draw("RUN_PASSWORD")
    text = known.reveal("{secret:RUN_PASSWORD}")
    assert len(text) == 32 and text.isalnum()
    assert text != other.reveal("{secret:RUN_PASSWORD}"), "another one in each process"
    known.draw("RUN_PASSWORD")
    assert known.reveal("{secret:RUN_PASSWORD}") == text, "the same for all trials of a run"
    assert known.hide(f"AUTH {text}") == "AUTH {secret:RUN_PASSWORD}"


def test_no_variable_sets_a_secret_that_is_drawn() -> None:
    """One that is short would not be hidden."""
    known = Secrets({"RUN_PASSWORD": "abc"})
    known.draw("RUN_PASSWORD")
    assert len(known.reveal("{secret:RUN_PASSWORD}")) == 32


@pytest.mark.parametrize(
    ("words", "is_given"),
    [
        (["load", "--password-from", "CONCURVE_PASSWORD"], True),
        (["sh", "-c", 'redis-cli -a "$CONCURVE_PASSWORD" ping'], True),
        (["sh", "-c", "redis-cli -a ${CONCURVE_PASSWORD} ping"], True),
        (["load", "--password-from", "CONCURVE_PASSWORD_OF_B"], False),
        (["load", "--password-from", "MY_CONCURVE_PASSWORD"], False),
        (["load", "--sessions", "4"], False),
    ],
)
def test_the_password_is_for_who_names_its_variable(words: list[str], is_given: bool) -> None:
    known = Secrets({"CONCURVE_PASSWORD": "of-my-own"})
    given = {"CONCURVE_PASSWORD": "{secret:CONCURVE_PASSWORD}"} if is_given else {}
    assert known.password_of(words) == given
