"""Why studies of real servers cannot run here, in words that say what to install."""

from __future__ import annotations

from concurve.attendants import servers


def lacking(*names: str) -> str:
    """What this machine lacks of these servers, of which all are needed, and the remedies; empty if
    it has them."""
    found = []
    for name in names:
        server = servers.SERVERS[name]
        if server.find() is None:
            found.append(f"{name} is not installed: {server.remedy}")
        elif (lacks := server.lacks()) is not None:
            found.append(": ".join(lacks))
    if not found:
        return ""
    needed = f"needs {' and '.join(names)}; " if len(names) > 1 else ""
    return needed + "; ".join(found)
