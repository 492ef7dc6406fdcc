"""What the collection of tests leaves in its process."""

from __future__ import annotations

import gc
import types

import tests.helpers


def test_the_collector_of_cycles_is_on_and_looks_at_no_module_of_the_tests() -> None:
    """They stay until the end, and are hundreds of thousands of objects beside those of a test."""
    assert gc.isenabled()
    modules = [it for it in gc.get_objects() if isinstance(it, types.ModuleType)]
    assert all(it is not tests.helpers for it in modules)
