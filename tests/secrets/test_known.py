"""Secrets that are known: hidden in every form, revealed to whoever asks, never formatted."""

from __future__ import annotations

import base64
import copy
import html
import json
import pickle
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
