"""Print the requirements of a dependency group of pyproject.toml, one argument each for pip.

Usage: requirements.py GROUP
"""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
groups = project["dependency-groups"]
if len(sys.argv) != 2 or sys.argv[1] not in groups:
    sys.exit(f"{__doc__}GROUP is one of: {', '.join(groups)}")
print(*groups[sys.argv[1]])
