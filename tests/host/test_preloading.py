"""Whether a library can stand in front of a program's functions, by its file."""

from __future__ import annotations

import contextlib
import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from concurve.host.preloading import is_statically_linked, why_not_preloaded

DYNAMIC, INTERPRETER, LOAD = 2, 3, 1


def elf(*segments: int, flags: int | None = None, order: str = "<") -> bytes:
    """An ELF file with segments of these kinds; the dynamic one has these flags."""
    count = len(segments)
    dynamic_at = 64 + 56 * count
    entries = [(1, 1)] + ([(0x6FFFFFFB, flags)] if flags is not None else []) + [(0, 0)]
    dynamic = b"".join(struct.pack(f"{order}qQ", *entry) for entry in entries)
    head = b"\x7fELF\x02" + (b"\x01" if order == "<" else b"\x02") + bytes(10)
    head += struct.pack(f"{order}HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, count, 0, 0, 0)
    made = [
        struct.pack(f"{order}IIQQQQQQ", kind, 0, dynamic_at, 0, 0,
                    len(dynamic) if kind == DYNAMIC else 8, 0, 0)
        for kind in segments
    ]  # fmt: skip
    return head + b"".join(made) + dynamic


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_program_without_a_loader_is_statically_linked(order: str) -> None:
    assert is_statically_linked(elf(LOAD, order=order))
    assert is_statically_linked(elf(LOAD, DYNAMIC, flags=0x08000001, order=order))
    assert not is_statically_linked(elf(LOAD, INTERPRETER, DYNAMIC, flags=0x08000001, order=order))
    # A library.
    assert not is_statically_linked(elf(LOAD, DYNAMIC, order=order))
    assert not is_statically_linked(elf(LOAD, DYNAMIC, flags=1, order=order))


def test_damaged_files_are_refused_and_nothing_else_happens() -> None:
    whole = elf(LOAD, INTERPRETER, DYNAMIC, flags=1)
    rng = random.Random(1)
    for _ in range(2000):
        damaged = bytearray(whole[: rng.randint(0, len(whole))])
        for _ in range(rng.randint(0, 4)):
            if damaged:
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        with contextlib.suppress(ValueError):
            is_statically_linked(bytes(damaged))


def test_what_stands_here(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n" + "#" * 80)
    empty = tmp_path / "empty"
    empty.touch()
    assert "cannot be read: no ELF file" in why_not_preloaded(str(script))
    assert "is empty" in why_not_preloaded(str(empty))
    assert "cannot be read" in why_not_preloaded(str(tmp_path / "none"))


def test_real_programs(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no cc here")
    source = tmp_path / "main.c"
    source.write_text("int main(void) { return 0; }\n")
    usual = tmp_path / "usual"
    subprocess.run([compiler, "-o", usual, source], check=True)
    assert why_not_preloaded(str(usual)) == ""
    usual.chmod(0o4755)
    assert "rights of its owner" in why_not_preloaded(str(usual))
    static = tmp_path / "static"
    done = subprocess.run(
        [compiler, "-static", "-o", static, source], capture_output=True, check=False
    )
    if done.returncode == 0:
        assert "statically linked" in why_not_preloaded(str(static))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ELF is the format of Linux")
def test_the_library_of_a_process_is_a_library() -> None:
    import _ctypes

    file = getattr(_ctypes, "__file__", None)
    if file is None:
        pytest.skip("it is a part of Python here")
    assert why_not_preloaded(file) == ""
