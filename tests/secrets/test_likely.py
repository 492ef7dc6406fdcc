"""What is likely a secret in a command line, by where it stands."""

from __future__ import annotations

import shlex

import pytest

from concurve.secrets.likely import in_text, in_words, is_likely, masked, masked_line

S = "Pl4nt3d-word"


def found_in(words: list[str]) -> list[str]:
    """What is taken for a secret in a command line."""
    places = in_words(words)
    return [
        word[item.start : item.end]
        for word, of_word in zip(words, places, strict=True)
        for item in of_word
    ]


@pytest.mark.parametrize(
    "line",
    [
        f"psql postgresql://me:{S}@db1:5432/bank",
        f"psql postgresql://me@db1/bank?password={S}&sslmode=disable",
        f"psql 'host=db1 password={S} dbname=bank'",
        f"redis-cli -u redis://:{S}@db1",
        f"redis-cli -a {S} ping",
        f"redis-cli --pass {S} ping",
        f"redis-benchmark -h db1 -a {S}",
        f"mysql -ume -p{S} -h db1",
        f"/usr/bin/mariadb-slap -p{S}",
        f"client mysql+pymysql://me:{S}@db1/bank",
        f"client mongodb://me:{S}@db1:1,db2:2/bank",
        f"client --password {S}",
        f"client --password={S}",
        f"client -password {S}",
        f"client --db-password {S}",
        f"client --auth-token={S} --tokens 5",
        f"client --api-key {S} --key 2",
        f"client --client.secret={S}",
        f"env PGPASSWORD={S} psql",
        f"docker run --env=POSTGRES_PASSWORD={S} db",
        f"docker run --env=A=1,POSTGRES_PASSWORD={S} db",
        f"mount -o username=me,password={S} //db1/x /mnt",
        f"kubectl create secret generic x --from-literal=password={S}",
        f"sh -c 'docker run --env=PGPASSWORD={S} db'",
        f"sh -c 'docker run --env=\"PGPASSWORD={S}\" db'",
        f"sh -c 'mount -o \"mode=1,username=me,password={S},ro\" //db1/x /mnt'",
        f"env AWS_SECRET_ACCESS_KEY={S} ls",
        f"env GITHUB_TOKEN={S} gh",
        f"env DEPLOY_KEY={S} sh",
        f"env MYSQL_PWD={S} mysql",
        f"curl -u me:{S} http://db1",
        f"curl http://me:{S}@db1/x",
        f"curl -H 'Authorization: Bearer {S}' http://db1",
        f"curl -H 'X-Api-Key: {S}' http://db1",
        f'curl -d \'{{"password": "{S}"}}\' http://db1',
        f"ab -A me:{S} http://db1/",
        f"sshpass -p {S} ssh db1",
        f"sh -c 'PGPASSWORD={S} psql -c \"select 1\"'",
        f"sh -c 'client --password {S} && mysql -p{S} -e x'",
        f"sh -c 'redis-cli -a {S} ping | cat'",
    ],
)
def test_it_is_found_where_it_stands(line: str) -> None:
    assert set(found_in(shlex.split(line))) == {S}
    assert S not in masked_line(line, ())


@pytest.mark.parametrize(
    ("url", "password"),
    [
        ("redis://:pa/ss@h", "pa/ss"),
        ("redis://:pa?ss@h", "pa?ss"),
        ("redis://:pa#ss@h:1/0", "pa#ss"),
        ("redis://me:p@ss@h", "p@ss"),
        ("redis://me:p'\"ss@h", "p'\"ss"),
        ("redis://me:p%40ss@h", "p%40ss"),
        ("redis://me:1234@h", "1234"),
    ],
)
def test_a_password_of_a_url_may_hold_what_should_be_encoded(url: str, password: str) -> None:
    assert found_in(["client", url]) == [password]


@pytest.mark.parametrize(
    "line",
    [
        "client http://127.0.0.1:8080/@scope/package",
        "client http://[::1]:80/a@b",
        "client postgresql://me@db1/bank?sslmode=disable",
        "client redis://127.0.0.1:{free_port}",
        "client redis://:{password}@127.0.0.1",
        "sort --key 2 --password-file /etc/x --password-from PGPASSWORD",
        "llm --tokens 128 --max-token 128 --token 64",
        "client --password --host db1",
        "sh -c 'PGPASSWORD=$PW psql; curl -u \"$U\" x'",
        "client --use-password=true --secret none",
        "env PWD=/x OLDPWD=/y PRIMARY=1 MONKEY=1 monkey=abc sort_key=name",
        "client redis://:{secret:REDIS_PASSWORD}@db1 --password {secret:PASSWORD}",
        "client redis://:***@db1",
        "mysql -p -h db1",
        "ls -pa mysql",
    ],
)
def test_what_is_none_is_left(line: str) -> None:
    assert found_in(shlex.split(line)) == []
    assert masked_line(line, ()) == line


@pytest.mark.parametrize(
    "line",
    [
        "sh -c 'MODE=1 PGPASSWORD={} psql'",
        "psql 'host=db1 password={} dbname=bank'",
        "sh -c 'docker run --env=MODE=1 db --password={}'",
        "PGPASSWORD={} psql",
    ],
)
def test_a_comma_divides_only_inside_of_another_value(line: str) -> None:
    assert found_in(shlex.split(line.format(f"{S},rest"))) == [f"{S},rest"]


def test_many_values_in_values_are_looked_through() -> None:
    """As many as an argument of Linux may have."""
    for text in ("a=" * 60_000, "a=b," * 30_000, 'a="' * 40_000):
        assert in_text(f"{text} password={S}")


def test_names_are_those_of_variables() -> None:
    def names(line: str) -> list[str]:
        return [item.name for of_word in in_words(shlex.split(line)) for item in of_word]

    assert names(f"x --db-password {S} redis://:{S}@h") == ["DB_PASSWORD", "REDIS_PASSWORD"]
    assert names(f"x accessToken={S} PGPASSWORD={S}1") == ["ACCESS_TOKEN", "PGPASSWORD"]


@pytest.mark.parametrize("name", ["PGPASSWORD", "db_passwd", "api-key", "accessKey", "X_KEY"])
def test_names_that_say_so(name: str) -> None:
    assert is_likely(name)


@pytest.mark.parametrize("name", ["", "PWD", "key", "token_count", "passes", "keyboard", "tokens"])
def test_names_that_do_not(name: str) -> None:
    assert not is_likely(name)


def test_the_option_that_names_secrets_is_no_secret() -> None:
    line = f"concurve sweep --secret API_TOKEN -- client --secret {S}"
    shown = masked_line(line, ("--secret",))
    assert "--secret API_TOKEN" in shown
    assert S not in shown


def test_overlapping_places_are_one() -> None:
    text = f"--password=redis://:{S}@h"
    assert len(in_text(text)) == 1
    assert S not in masked(text)
