"""The variable by which a server of ours is told the password of its clients.

Whoever exports it means a server of their own. So no program of a trial inherits it: a server that
a study starts would be protected, and its clients, which know of no password, would be refused. A
role has one of its own in its ``env``, or it names the variable in its command.
"""

from __future__ import annotations

import os

PASSWORD_VARIABLE = "CONCURVE_PASSWORD"


#: What the user types to start the load generator, for its messages: who has ``concurve`` need not
#: have ``concurve-load`` on the path.
CALLED = {"CONCURVE_CALLED": "concurve load"}


def environment_of_trials() -> dict[str, str]:
    """What the programs of trials inherit of this process, and the name of the load generator."""
    kept = {name: value for name, value in os.environ.items() if name != PASSWORD_VARIABLE}
    return {**kept, **CALLED}
