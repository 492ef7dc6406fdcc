"""The benches: that they run, and quick versions of what they judge."""

from __future__ import annotations

import sys
from pathlib import Path

# At the end of the path, since names of benches are those of other packages too.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benches"))
