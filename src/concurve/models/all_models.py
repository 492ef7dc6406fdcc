"""All scaling models. A new one is a module with a ``MODEL``, and its name here."""

from __future__ import annotations

from concurve.models import amdahl, amdahl_cap, knee, linear, usl, usl_log, usl_sqrt
from concurve.models.model import Model

MODELS: dict[str, Model] = {
    module.MODEL.name: module.MODEL
    for module in (linear, amdahl, amdahl_cap, usl, usl_log, usl_sqrt, knee)
}
"""The models by name, simplest first within each kind."""
