"""Print the development requirements of pyproject.toml, one argument each for pip."""

import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
print(*project["dependency-groups"]["dev"])
