"""A small campaign in a folder, for the tests of campaigns."""

from __future__ import annotations

from pathlib import Path

CAMPAIGN = """
[campaign]
name = "small-campaign"
title = "A small campaign"
question = "How does it scale?"
source = "document 002"
studies = ["tc01", "tc02"]

[texts]
introduction = "Why this | is asked."
scope = '''
What it covers:

- one thing
- another <b>thing</b>
'''
procedure = "As the source did it."
deviations = "Linux instead of Windows."

[glossary]
CAS = "compare and swap"
"""

STUDY = """
[study]
name = "small-{name}"
question = "How does {name} scale?"

[factors]
cpus = [1, 2]
threads = [1, 2]

[[roles]]
name = "target"
command = ["{command}", "{{cpus}}", "{{threads}}"]

[protocol]
repeats = 5
conditions = []

[[indicators]]
name = "wall_seconds"
better = "lower"
unit = "s"

[test_case]
id = "Test case {number}"
area = "Hardware"
goal = "T{number}"
objective = "Find how far {name} scales."
expected = ["a factor", "no more"]
conditions = ["a machine with two CPUs"]
indicators = ["computation time"]
steps = ["run it", "write it down"]

[[claims]]
id = "halves"
says = "Two threads on two CPUs halve the time."
source = "§10.1.3"
kind = "speedup"
of = {{ cpus = 2, threads = 2 }}
over = {{ cpus = 2, threads = 1 }}
at_least = 1.8
published = 1.95

[[claims]]
id = "worse-on-one"
says = "Two threads on one CPU take twice as long."
kind = "ratio"
of = {{ cpus = 1, threads = 2 }}
over = {{ cpus = 1, threads = 1 }}
at_least = 1.9
"""

PUBLISHED = """\
test_case,table,title,figure,figure_title,figure_row,figure_column,value,unit,indicator,parameters,base
tc01,11,Degree of scaling,5,Scaling,Time 1 CPU,1 thread,69.41,s,wall_seconds,cpus=1;threads=1,
tc01,11,,,,Time 1 CPU,2 threads,69.77,s,wall_seconds,cpus=1;threads=2,
tc01,11,,,,Time 2 CPUs,1 thread,68.10,s,wall_seconds,cpus=2;threads=1,
tc01,11,,,,Time 2 CPUs,2 threads,35.72,s,wall_seconds,cpus=2;threads=2,
tc01,11,,,,Factor,2 threads,1.95,factor,wall_seconds,cpus=2;threads=2,cpus=1
tc01,12,CPU time,,,CPU time 1 CPU,1 thread,1:09,s,cpu_seconds,cpus=1;threads=1,
tc01,12,,,,Process,1 thread,2572,,,,
"""


def write_campaign(
    folder: Path,
    commands: tuple[str, str] = ("true", "true"),
    published: str = PUBLISHED,
    campaign: str = CAMPAIGN,
) -> Path:
    """Write the campaign of two studies into a folder; the path of its file."""
    for number, command in enumerate(commands, 1):
        name = f"tc{number:02d}"
        (folder / name).mkdir(parents=True, exist_ok=True)
        text = STUDY.format(name=name, number=number, command=command)
        (folder / name / "study.toml").write_text(text)
    (folder / "published.csv").write_text(published)
    path = folder / "campaign.toml"
    path.write_text(campaign)
    return path
