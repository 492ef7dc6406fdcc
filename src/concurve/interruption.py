"""Signals that ask a command to end, as Ctrl-C does.

They raise ``KeyboardInterrupt``, which may come between any two steps of Python. So it could leave
half done what must be done whole, and it is lost where Python ignores exceptions (in a finalizer,
in a callback of the garbage collector). Here it waits until what is :func:`whole` has ended, and
:func:`refuse_if_asked` raises one that was lost.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class _State:
    """What the handler knows. Signals are handled in the main thread, which alone changes it."""

    asked = False  # since the outermost block in which signals are handled
    waits = False  # one came within what is whole
    depth = 0  # of blocks that are whole
    users = 0  # blocks in which signals are handled


_state = _State()


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """Handle a signal that asks the command to end. The second one does not wait."""
    _state.asked = True
    if _state.depth and not _state.waits:
        _state.waits = True
        return
    _state.waits = False
    if signal.getsignal(signal.SIGHUP) is interrupt:
        # A terminal that closes sends more than one: the next must not disturb the orderly end.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise KeyboardInterrupt


@contextmanager
def handled() -> Iterator[None]:
    """Handle Ctrl-C so within, where Python would otherwise handle it. The outermost of such blocks
    begins without the signals of an earlier one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if not _state.users:
        _state.asked = _state.waits = False
    _state.users += 1
    is_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if is_python:
            signal.signal(signal.SIGINT, interrupt)
        yield
    finally:
        _state.users -= 1
        if is_python:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def whole() -> Iterator[None]:
    """What is done within is done whole: a signal raises at its end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _state.depth += 1
    try:
        yield
    finally:
        _state.depth -= 1
        if not _state.depth:
            refuse_to_wait()


def refuse_to_wait() -> None:
    """For a place within what is whole at which nothing is half done, as where it waits for others.

    Raises:
        KeyboardInterrupt: a signal came within what is whole.
    """
    if _state.waits and threading.current_thread() is threading.main_thread():
        _state.waits = False
        raise KeyboardInterrupt


def refuse_if_asked() -> None:
    """For a place at which a command would go on.

    Raises:
        KeyboardInterrupt: a signal has asked the command to end, and what it raised was lost.
    """
    if _state.asked and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


def heed() -> None:
    """The command ends, or does something else now: nobody need be told again of the signal."""
    _state.asked = False
