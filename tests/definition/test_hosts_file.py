"""The file of hosts, what roles may say of hosts, and where their copies go."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from concurve.definition.hosts_file import load_hosts, parse_hosts
from concurve.definition.inventory import (
    Cluster,
    Host,
    Inventory,
    addresses,
    alike_hosts,
    used_hosts,
)
from concurve.definition.placing import placed_on
from concurve.definition.study import Study
from concurve.definition.study_file import parse_study
from concurve.errors import HostError, StudyError

LAB = """
[ray]
head = "server1"
port = 7000
python = "/opt/concurve/bin/python"

[hosts.server1]
address = "10.77.0.1"
ssh = "root@server1"
cpus = "0-1,4"
housekeeping = "2-3"

[hosts.load1]
address = "10.77.0.2"
labels = ["load"]

[hosts.load2]
address = "load2.lab"
labels = ["load", "spare-parts"]
"""

STUDY = """
[study]
name = "two-hosts"
question = "How fast is it from elsewhere?"

[factors]
threads = [1, 2]

[[roles]]
name = "target"
command = ["./serve", "--listen", "{host.server1}:7000", "--threads", "{threads}"]
end = "serve"
ready = "tcp:{host.server1}:7000"
host = "server1"

[[roles]]
name = "load"
program = "load"
arguments = ["{host.server1}:7000"]
copies = 3
host = "load"
"""


def lab() -> Inventory:
    return parse_hosts(LAB, "lab.toml")


def study(text: str = STUDY) -> Study:
    return parse_study(text, 2, "mine.toml")


def test_a_file_of_hosts() -> None:
    assert lab() == Inventory(
        hosts=(
            Host(name="server1", address="10.77.0.1", ssh="root@server1", cpus=(0, 1, 4),
                 housekeeping=(2, 3)),
            Host(name="load1", address="10.77.0.2", labels=("load",)),
            Host(name="load2", address="load2.lab", labels=("load", "spare-parts")),
        ),
        cluster=Cluster(head="server1", port=7000, python="/opt/concurve/bin/python"),
    )  # fmt: skip
    assert [host.login for host in lab().hosts] == ["root@server1", "10.77.0.2", "load2.lab"]


def test_the_first_host_has_the_head_unless_the_file_says_another() -> None:
    text = '[hosts.a]\naddress = "10.0.0.1"\n[hosts.b]\naddress = "10.0.0.2"\n'
    assert parse_hosts(text, "f").cluster == Cluster(head="a")


HOST = '[hosts.a]\naddress = "10.0.0.1"\n'


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "hosts"),
        ("[hosts]\n", "no hosts"),
        ("[hosts\n", "not TOML"),
        ("[hosts.a]\n", "address"),
        ('[hosts.a]\naddress = 5\n', "address"),
        (f'{HOST}speed = "fast"\n', "speed"),
        ('[hosts."a b"]\naddress = "10.0.0.1"\n', "not a name"),
        ('[hosts.each]\naddress = "10.0.0.1"\n', "stands for all hosts"),
        ('[hosts.any]\naddress = "10.0.0.1"\n', "stands for one of several hosts"),
        ('[hosts.a]\naddress = "10.0.0.256"\n', "neither an IP address"),
        ('[hosts.a]\naddress = "no host"\n', "neither an IP address"),
        ('[hosts.a]\naddress = ""\n', "neither an IP address"),
        ('[hosts.a]\naddress = "0.0.0.0"\n', "no address of one host"),
        ('[hosts.a]\naddress = "224.0.0.1"\n', "no address of one host"),
        ('[hosts.a]\naddress = "8.8.8.8"\n', "public address"),
        ('[hosts.a]\naddress = "2600::1"\n', "no IPv4 address"),
        ('[hosts.a]\naddress = "fd00::11"\n', "no IPv4 address"),
        (f'{HOST}labels = ["a b"]\n', "no label"),
        (f'{HOST}labels = ["each"]\n', "no label"),
        (f'{HOST}labels = ["any"]\n', "no label"),
        (f'{HOST}ssh = "-oProxyCommand=x"\n', "no host of OpenSSH"),
        (f'{HOST}cpus = "3-1"\n', "no range of CPUs"),
        (f'{HOST}cpus = "all"\n', "no list of CPUs"),
        (f'{HOST}cpus = "0-99999999"\n', "no list of CPUs"),
        (f'{HOST}cpus = "0-3"\nhousekeeping = "3"\n', "both in cpus and in housekeeping"),
        (f'{HOST}[hosts.b]\naddress = "10.0.0.1"\n', "is the address of a, too"),
        (f'{HOST}[hosts.b]\naddress = "10.0.0.1"\n', "is the address of a, too"),
        ('[hosts.a]\naddress = "one.lab"\n[hosts.b]\naddress = "ONE.lab."\n', "of a, too"),
        ('[hosts.a]\naddress = "::ffff:8.8.8.8"\n', "no IPv4 address"),
        (f'{HOST}[hosts.b]\naddress = "127.0.0.1"\n', "each machine's own address"),
        (f'{HOST}[hosts.b]\naddress = "localhost"\n', "each machine's own address"),
        (f'{HOST}[hosts.b]\naddress = "10.0.0.2"\nlabels = ["a"]\n', "is the name of a host"),
        (f'{HOST}[ray]\nhead = "b"\n', "no host 'b'"),
        (f"{HOST}[ray]\nport = 80\n", "port: 80"),
        (f"{HOST}[ray]\nport = 65500\n", "port: 65500"),
        (f'{HOST}[ray]\npython = " "\n', "python: empty"),
    ],
)  # fmt: skip
def test_a_file_that_no_hosts_can_have_is_refused_with_a_remedy(text: str, what: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse_hosts(text, "lab.toml")
    assert "lab.toml" in refused.value.what
    assert what in refused.value.what
    assert refused.value.remedy


def test_a_public_address_is_used_by_whoever_says_so() -> None:
    found = parse_hosts('[hosts.a]\naddress = "8.8.8.8"\npublic = true\n', "f")
    assert found.hosts[0].public


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="cannot be read"):
        load_hosts(tmp_path / "hosts.toml")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["server1"]),
        ("load2", ["load2"]),
        ("load", ["load1", "load2"]),
        ("each", ["server1", "load1", "load2"]),
        ("each:load", ["load1", "load2"]),
        ("any", ["server1", "load1", "load2"]),
        ("any:load", ["load1", "load2"]),
    ],
)
def test_what_a_host_of_a_role_means(text: str, names: list[str]) -> None:
    assert [host.name for host in lab().meant_by(text, "role load")] == names


def test_an_unknown_host_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(HostError) as refused:
        lab().meant_by("servr1", "role load")
    assert refused.value.what == "role load: no host 'servr1'"
    assert refused.value.remedy == "did you mean 'server1'?"
    with pytest.raises(HostError) as refused:
        lab().meant_by("each:gpu", "role load")
    assert "no host 'gpu'" in refused.value.what
    assert 'labels = ["gpu"]' in refused.value.remedy


def test_a_cluster_of_others_has_no_file_to_write_labels_into() -> None:
    theirs = lab()
    theirs = msgspec.structs.replace(
        theirs, cluster=msgspec.structs.replace(theirs.cluster, address="10.77.0.1:6379")
    )
    with pytest.raises(HostError) as refused:
        theirs.meant_by("each:gpu", "role load")
    assert "as --hosts FILE takes it" in refused.value.remedy


def test_the_address_of_a_host_is_a_placeholder() -> None:
    names = ["host.server1", "host.target", "host.load"]
    found = addresses(study(), lab())
    assert [found[name] for name in names] == ["10.77.0.1", "10.77.0.1", "10.77.0.2"]
    assert addresses(study(), None) == dict.fromkeys(names, "127.0.0.1")


def test_a_factor_that_is_called_host_stays_one_where_no_role_has_a_host() -> None:
    text = STUDY.replace('host = "server1"\n', "").replace('host = "load"\n', "")
    text = text.replace("{host.server1}", "{host}").replace(
        "[factors]\n", '[factors]\nhost = ["x"]\n'
    )
    assert study(text).factors[0].name == "host"


def test_only_the_hosts_that_a_study_uses_are_asked_for() -> None:
    assert [host.name for host in used_hosts(study(), lab())] == ["server1", "load1", "load2"]
    one = study(STUDY.replace("copies = 3\n", ""))
    assert [host.name for host in used_hosts(one, lab())] == ["server1", "load1"]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('host = "load"', 'host = "lo ad"', "neither a name, nor a label"),
        ('host = "load"', 'host = "each:"', "neither a name, nor a label"),
        ('host = "load"', 'host = "any:"', "neither a name, nor a label"),
        ('host = "load"', 'host = "{threads}"', "neither a name, nor a label"),
        ('host = "server1"', 'host = "each"', "the measured role has one copy"),
        ("{host.server1}:7000", "{host.server}:7000", "placeholder {host.server}"),
        ("[factors]\n", '[factors]\nhost = ["x"]\n', "factor 'host'"),
        ("name = \"load\"\nprogram = \"load\"\narguments = [\"{host.server1}:7000\"]\ncopies = 3",
         "name = \"load\"\nremote = \"redis://db:6379\"", "host beside remote"),
    ],
)  # fmt: skip
def test_what_a_role_cannot_say_of_hosts(old: str, new: str, what: str) -> None:
    with pytest.raises(StudyError) as refused:
        study(STUDY.replace(old, new))
    assert what in refused.value.what
    assert refused.value.remedy


def test_a_figure_of_a_role_on_each_host_is_that_of_several_outputs() -> None:
    text = STUDY.replace('copies = 3\nhost = "load"', 'host = "each:load"')
    text += '[[indicators]]\nname = "load.tps"\npattern = "tps = (.*)"\n'
    with pytest.raises(StudyError, match="starts several copies"):
        study(text)


def test_roles_are_placed_on_other_hosts_by_the_command_line() -> None:
    known = study(STUDY.replace("{host.server1}", "{host.target}"))
    placed = placed_on(known, ["load=load2", "target=load1", "load=each:load"])
    assert [role.host for role in placed.roles] == ["load1", "each:load"]
    assert addresses(placed, lab())["host.target"] == "10.77.0.2", "the address goes with the role"
    assert placed_on(known, []) == known


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("load", "not ROLE=HOST"),
        ("load=", "not ROLE=HOST"),
        ("lode=load1", "no role 'lode'"),
        ("load=a b", "neither a name"),
        ("target=each", "one copy"),
    ],
)
def test_a_place_that_cannot_be_is_refused(text: str, what: str) -> None:
    with pytest.raises(StudyError, match=what):
        placed_on(study(), [text])


ANY = STUDY.replace("{host.server1}", "{host.target}").replace('"server1"', '"any:load"')


def test_any_of_several_hosts_is_all_of_them_in_turn() -> None:
    known = study(ANY.replace('host = "load"', 'host = "server1"'))
    assert alike_hosts(known, lab()) == ("load1", "load2")
    assert alike_hosts(known, None) == alike_hosts(study(), lab()) == ()
    assert [host.name for host in used_hosts(known, lab())] == ["server1", "load1", "load2"]
    assert addresses(known, lab())["host.target"] == "10.77.0.2"
    assert addresses(known, lab(), "load2")["host.target"] == "load2.lab"
    assert addresses(known, None)["host.target"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (
            'host = "load"',
            'host = "any:spare-parts"',
            "role load: host 'any:spare-parts', and role target",
        ),
        ('"any:load"', '"any:spare-parts"', "too few hosts: load2 alone"),
        ('host = "load"', 'host = "load2"', "role load runs on load2, which is among the hosts"),
        ('"any:load"', '"any:gpu"', "no host 'gpu'"),
    ],
)
def test_hosts_that_blocks_cannot_be_dealt_out_over_are_refused(
    old: str, new: str, what: str
) -> None:
    """Before any host is asked for anything: by what says which hosts are used, too."""
    for say in (alike_hosts, used_hosts):
        with pytest.raises(HostError) as refused:
            say(study(ANY.replace(old, new)), lab())
        assert what in refused.value.what
        assert refused.value.remedy


def test_all_roles_are_placed_at_once() -> None:
    known = study(STUDY.replace("{host.server1}", "{host.target}"))
    assert [role.host for role in placed_on(known, ["*=any:load"]).roles] == ["any:load"] * 2
    assert [role.host for role in placed_on(known, ["*=any:load", "load=server1"]).roles] == [
        "any:load", "server1"
    ]  # fmt: skip
