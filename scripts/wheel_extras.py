"""Adds to the wheel of the laboratory what is made from the checkout: the manual pages, the
completions of shells, and the jar of the JVM kernel where it has been built.

hatchling calls it (pyproject.toml). An editable installation gets none of them: it finds the jar in
the checkout.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

JAR = Path("subjects/mandelbrot-java/target/concurve-mandelbrot.jar")

#: Where a shell looks for the completions of a command, below ``share`` of its prefix.
COMPLETIONS = {
    "bash": "bash-completion/completions/concurve",
    "zsh": "zsh/site-functions/_concurve",
    "fish": "fish/vendor_completions.d/concurve.fish",
}


class WheelExtras(BuildHookInterface[Any]):
    """Adds files to the wheel before it is written, and removes their originals after that."""

    _folder: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        self._folder = Path(tempfile.mkdtemp(prefix="concurve-wheel-"))
        self._write_share(self._folder)
        build_data["shared_data"][str(self._folder)] = "share"
        jar = Path(self.root, JAR)
        if jar.is_file():
            build_data["force_include"][str(jar)] = f"concurve/jars/{jar.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder)

    def _write_share(self, share: Path) -> None:
        sys.path[:0] = [str(Path(self.root, "src")), str(Path(self.root, "scripts"))]
        from man_pages import pages

        from concurve.cli import app
        from concurve.cli.completion import script
        from concurve.version import __version__

        manual = pages(app, "concurve", __version__)
        texts = {f"man/man1/{name}": text for name, text in manual.items()}
        texts |= {place: script(app, shell) for shell, place in COMPLETIONS.items()}
        for name, text in texts.items():
            file = share / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
