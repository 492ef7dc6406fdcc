"""The names by which a study asks for a packaged program: ``program = "mandelbrot"``.

Names of real servers and of volumes are those of :mod:`concurve.attendants`.
"""

from __future__ import annotations

#: Compiled programs: their files.
PROGRAMS = {
    "disk": "concurve-disk",
    "load": "concurve-load",
    "mandelbrot": "concurve-mandelbrot",
    "server": "concurve-server",
    "storage": "concurve-storage",
    "targets": "concurve-targets",
}

#: Jars, which a Java runs.
JAVA_PROGRAMS = {
    "mandelbrot-java": "concurve-mandelbrot.jar",
}

#: Python modules.
MODULES = {
    "fill": "concurve.attendants.servers.fill",
}
