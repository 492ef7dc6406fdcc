"""Secrets: passwords, tokens and keys that a measured command needs, and nobody is to read.

In texts a reference stands for a secret, ``{secret:NAME}``. Whoever starts a program or opens a
connection reveals it at the last moment; everything else sees the reference alone.
"""

from __future__ import annotations

from concurve.secrets.known import KNOWN, Secrets
from concurve.secrets.password import CALLED, PASSWORD_VARIABLE, environment_of_trials
from concurve.secrets.secret import MASK, Secret, reference, references

#: The options of the command line whose values are the names of secrets.
NAMING_OPTIONS = ("--secret",)

__all__ = [
    "CALLED",
    "KNOWN",
    "MASK",
    "NAMING_OPTIONS",
    "PASSWORD_VARIABLE",
    "Secret",
    "Secrets",
    "environment_of_trials",
    "reference",
    "references",
]
